//! Secret texts: keys, passwords, tokens, and addresses that contain a password.
//!
//! Beside an option with such a value there are two more, `NAME_file` and `NAME_env`, so that the value need not be on
//! a command line, which other users can see. `elsewhere!` declares them, and all three are stored in one [`Secret`]:
//! the one given last counts. The file or variable is read only when the secret is needed ([`Secret::reveal`]), so
//! plans and stored runs contain only its name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The text that replaces a secret in output.
pub(crate) const PLACEHOLDER: &str = "***";
/// Most bytes of a file with a secret.
const MOST: u64 = 64 << 10;

/// A key, a password or a token. It does not appear in debug output. (Plans contain it, because it is needed where the
/// job runs.)
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Secret {
    /// The text itself; empty = no secret.
    Text(String),
    /// The content of this file, without the line break.
    File(PathBuf),
    /// The value of this environment variable.
    Environment(String),
}

impl Default for Secret {
    fn default() -> Self {
        Secret::new(String::new())
    }
}

impl Secret {
    /// A secret with this text.
    pub fn new(text: String) -> Secret {
        Secret::Text(text)
    }

    /// Whether a secret was given.
    pub fn is_given(&self) -> bool {
        !matches!(self, Secret::Text(text) if text.is_empty())
    }

    /// The text itself; empty = no secret.
    ///
    /// # Errors
    /// The reason why it cannot be read from its place, as text.
    pub fn reveal(&self) -> Result<String, String> {
        match self {
            Secret::Text(text) if text.is_empty() => Ok(String::new()),
            Secret::Text(text) => one_line(text).map_err(str::to_owned),
            Secret::File(path) => content(path),
            Secret::Environment(name) => match std::env::var(name) {
                Ok(text) => one_line(&text).map_err(|why| format!("the environment variable {name}: {why}")),
                Err(std::env::VarError::NotPresent) => {
                    Err(format!("there is no environment variable {name}"))
                }
                Err(std::env::VarError::NotUnicode(_)) => {
                    Err(format!("the environment variable {name} is not text"))
                }
            },
        }
    }

    /// The name of the file that contains it, if there is one.
    pub fn file(&self) -> Option<String> {
        match self {
            Secret::File(path) => Some(path.to_string_lossy().into_owned()),
            Secret::Text(_) | Secret::Environment(_) => None,
        }
    }

    /// The text itself, if there is one. `name` is the option for the text itself.
    ///
    /// # Errors
    /// As [`Secret::reveal`], preceded by the name of the option that was given.
    pub fn given(&self, name: &str) -> Result<Option<String>, String> {
        if !self.is_given() {
            return Ok(None);
        }
        let suffix = match self {
            Secret::Text(_) => "",
            Secret::File(_) => "_file",
            Secret::Environment(_) => "_env",
        };
        self.reveal().map(Some).map_err(|why| format!("{name}{suffix}: {why}"))
    }
}

/// The content of a file with a secret.
fn content(path: &Path) -> Result<String, String> {
    let of_file = |why: &str| format!("{}: {why}", path.display());
    let metadata = fs::metadata(path).map_err(|error| of_file(&iolite_types::describe_error(&error)))?;
    if !metadata.is_file() {
        return Err(of_file("each job reads the secret, so it has to be in a regular file"));
    }
    if metadata.len() > MOST {
        return Err(of_file("it is larger than 64 KiB, which no secret is"));
    }
    let text = fs::read_to_string(path).map_err(|error| of_file(&iolite_types::describe_error(&error)))?;
    one_line(&text).map_err(of_file)
}

/// A secret without the line break at its end. Secrets become parts of requests, where a line break would begin a new
/// field.
fn one_line(text: &str) -> Result<String, &'static str> {
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err("it is empty"),
        text if text.contains(['\n', '\r']) => Err("it has several lines, and a secret has one"),
        text if text.contains(char::is_control) => Err("it has control characters, which no secret has"),
        text => Ok(text.to_owned()),
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Text(text) => f.write_str(if text.is_empty() { "none" } else { PLACEHOLDER }),
            Secret::File(path) => write!(f, "in {}", path.display()),
            Secret::Environment(name) => write!(f, "in ${name}"),
        }
    }
}

/// The landing of a secret: `secret!(HttpOptions.http_pass)`.
macro_rules! secret {
    ($type:ident.$field:ident) => {
        |own, given| {
            $crate::engines::own::place::<$type>(own)?.$field =
                $crate::engines::secret::Secret::new(given.string()?);
            Ok(())
        }
    };
}

/// The two further options of this secret, `NAME_file` and `NAME_env`. `NAME` is the name of its field.
macro_rules! elsewhere {
    ($type:ident.$field:ident) => {
        [
            $crate::definition::Definition::engine(
                concat!(stringify!($field), "_file"),
                $crate::definition::Kind::Str,
                concat!("File with the value of ", stringify!($field), ", so that no process list has it"),
            )
            .names_files(|job| {
                let own = job.engine.of::<$type>();
                own.and_then(|own| own.$field.file()).into_iter().collect()
            })
            .lands_in_engine(|own, given| {
                $crate::engines::own::place::<$type>(own)?.$field =
                    $crate::engines::secret::Secret::File(given.string()?.into());
                Ok(())
            }),
            $crate::definition::Definition::engine(
                concat!(stringify!($field), "_env"),
                $crate::definition::Kind::Str,
                concat!("Environment variable with the value of ", stringify!($field)),
            )
            .lands_in_engine(|own, given| {
                $crate::engines::own::place::<$type>(own)?.$field =
                    $crate::engines::secret::Secret::Environment(given.string()?);
                Ok(())
            }),
        ]
    };
}

pub(super) use {elsewhere, secret};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let secret = Secret::new("sesame".into());
        assert_eq!((format!("{secret:?}").as_str(), secret.reveal()), ("***", Ok("sesame".into())));
        assert_eq!(
            (format!("{:?}", Secret::default()).as_str(), Secret::default().given("http_pass")),
            ("none", Ok(None))
        );
    }

    #[test]
    fn files_hold_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pass");
        let of = || Secret::File(path.clone()).given("http_pass");
        let missing = of().unwrap_err();
        assert!(missing.starts_with("http_pass_file: ") && missing.contains("No such file"), "{missing}");
        for (content, outcome) in [
            ("sesame\n", Ok("sesame")),
            (" two words \r\n", Ok(" two words ")),
            ("\n", Err("is empty")),
            ("a\nb\n", Err("several lines")),
            ("a\rb", Err("several lines")),
            ("a\u{1b}b", Err("control characters")),
        ] {
            fs::write(&path, content).unwrap();
            match outcome {
                Ok(text) => assert_eq!(of(), Ok(Some(text.to_owned()))),
                Err(why) => assert!(of().unwrap_err().contains(why)),
            }
        }
        assert!(Secret::File("/dev/null".into()).reveal().unwrap_err().contains("regular file"));
        assert!(Secret::new("a\r\nb".into()).reveal().unwrap_err().contains("several lines"));
        let none = Secret::Environment("IOLITE_THERE_IS_NO_SUCH".into());
        assert!(none.is_given() && none.reveal().unwrap_err().contains("IOLITE_THERE_IS_NO_SUCH"));
    }
}
