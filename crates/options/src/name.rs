//! The name under which the program was called, and its consequences.
//!
//! Scripts that call `fio` depend on the output of fio: they parse its version, and they treat any line on standard
//! error as a failure. So a program called `fio` reproduces fio's output exactly. Under its own name it prints more.

use crate::Diagnostic;
use crate::rules::NEEDS_RUNTIME;
use crate::run_options::UNKNOWN_CATEGORY;
use crate::values::{LIST_TOO_LONG, NOT_A_NUMBER};
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

/// The version of Iolite.
const OWN_VERSION: &str = concat!("iolite-", env!("CARGO_PKG_VERSION"));
/// The version of fio whose language is implemented, in fio's own format: scripts parse the text after the dash.
const LANGUAGE: &str = "fio-3.42";

/// The name under which the program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `iolite`, or any name other than `fio`.
    Iolite,
    /// `fio`, through a link of that name.
    Fio,
}

impl Name {
    /// The name in the path by which the program was called.
    pub fn of(program: &OsStr) -> Name {
        if Path::new(program).file_name().is_some_and(|name| name == "fio") {
            Name::Fio
        } else {
            Name::Iolite
        }
    }

    /// The name with which messages begin.
    pub const fn word(self) -> &'static str {
        match self {
            Name::Iolite => "iolite",
            Name::Fio => "fio",
        }
    }

    /// The name and version in one word, in the form that programs look for: `iolite-1.0.0`, or `fio-3.42`.
    pub const fn version(self) -> &'static str {
        match self {
            Name::Iolite => OWN_VERSION,
            Name::Fio => LANGUAGE,
        }
    }

    /// The real program, whatever its name: `iolite-1.0.0`.
    pub const fn own_version(self) -> &'static str {
        OWN_VERSION
    }

    /// Whether scripts expect fio: standard error is empty whenever fio's is, and exit statuses are fio's.
    pub const fn is_strict(self) -> bool {
        matches!(self, Name::Fio)
    }
}

/// Words of warnings about input that fio complains about on standard error, too, although it accepts it.
const SAID_BY_FIO: [&str; 4] = [LIST_TOO_LONG, NOT_A_NUMBER, NEEDS_RUNTIME, UNKNOWN_CATEGORY];

/// The reason why something is refused. Under the name `fio`, fio's sentence about the same mistake comes first: people
/// and tests look for it.
pub(crate) fn refusal(as_fio: bool, in_fio: impl fmt::Display, reason: String) -> String {
    if as_fio { format!("{in_fio} ({reason})") } else { reason }
}

impl Diagnostic {
    /// Whether fio says the same on standard error, whatever the format of its output is. (About other accepted input,
    /// it is silent, or has a line in its normal output.)
    pub fn is_said_by_fio(&self) -> bool {
        SAID_BY_FIO.iter().any(|words| self.message.contains(words))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_that_name_are_fio() {
        let of = |path: &str| Name::of(OsStr::new(path));
        for (path, name) in [
            ("fio", Name::Fio),
            ("/usr/local/bin/fio", Name::Fio),
            ("iolite", Name::Iolite),
            ("./fio-3.42", Name::Iolite),
            ("/opt/fio/iolite", Name::Iolite),
            ("", Name::Iolite),
        ] {
            assert_eq!(of(path), name, "{path}");
        }
    }

    #[test]
    fn the_version_of_fio_can_be_parsed() {
        let (program, number) = Name::Fio.version().split_once('-').unwrap();
        assert_eq!(program, "fio");
        assert!(number.parse::<f64>().is_ok_and(|number| number > 3.0), "{number}");
    }
}
