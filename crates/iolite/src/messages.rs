//! What the program says about itself and its input, on standard error or as an answer.

use crate::console;
use iolite_options::{Diagnostic, Name};
use iolite_report::Program;
use std::fmt::Display;
use std::process::ExitCode;

/// Warnings about the input as lines.
pub(crate) fn told(name: Name, warnings: &[Diagnostic]) -> String {
    warnings.iter().map(|warning| diagnostic(name, &warning.as_warning())).collect()
}

/// Prints the answer. The exit status is this one unless printing fails.
pub(crate) fn answer(name: &str, text: &str, status: u8) -> ExitCode {
    match console::print(text) {
        Ok(()) => ExitCode::from(status),
        Err(error) => {
            complain(name, &format_args!("standard output cannot be written: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a diagnostic to standard error, after the program's name.
pub(crate) fn complain(name: impl Display, what: &dyn Display) {
    console::print_error(&diagnostic(name, what));
}

pub(crate) fn diagnostic(name: impl Display, what: &dyn Display) -> String {
    format!("{name}: {}\n", iolite_types::without_error_numbers(&what.to_string()))
}

/// The program as a report names it.
pub(crate) fn program(name: Name) -> Program {
    Program { version: name.version().to_owned(), own_version: name.own_version().to_owned() }
}
