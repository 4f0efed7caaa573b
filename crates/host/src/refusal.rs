//! Errors of the system as plain values.

use iolite_types::describe_error;
use serde::{Deserialize, Serialize};
use std::io;

/// A refusal of the system, in its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{words}")]
pub struct Refusal {
    /// The error number, if there is one.
    pub errno: Option<i32>,
    /// The words, without the number.
    pub words: String,
}

impl Refusal {
    /// The refusal with this error number.
    pub fn of(errno: i32) -> Refusal {
        io::Error::from_raw_os_error(errno).into()
    }

    /// The refusal for a file that does not exist.
    pub fn not_found() -> Refusal {
        Refusal::of(libc::ENOENT)
    }

    /// Whether the subject of the query does not exist.
    pub fn is_not_found(&self) -> bool {
        self.errno == Some(libc::ENOENT)
    }

    /// The same refusal for a job that passes commands to a device: the text says which users may.
    #[must_use]
    pub fn of_commands(self) -> Refusal {
        match self.errno {
            Some(errno @ (libc::EACCES | libc::EPERM)) => {
                Refusal { errno: Some(errno), words: iolite_os::nvme::forbidden(errno) }
            }
            _ => self,
        }
    }

    /// The same refusal, prefixed with its subject: `/proc/swaps: Permission denied`.
    pub(crate) fn about(self, what: impl std::fmt::Display) -> Refusal {
        Refusal { words: format!("{what}: {}", self.words), ..self }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { errno: error.raw_os_error(), words: describe_error(&error) }
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> io::Error {
        match refusal.errno {
            Some(errno) => iolite_os::explained(&io::Error::from_raw_os_error(errno), refusal.words),
            None => io::Error::other(refusal.words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::errno_of;

    #[test]
    fn refusals_keep_words_and_number() {
        let refusal = Refusal::of(libc::EACCES).about("/x");
        assert_eq!(refusal.to_string(), "/x: Permission denied");
        assert!(!refusal.is_not_found() && Refusal::of(libc::ENOENT).is_not_found());
        let error = io::Error::from(refusal);
        assert_eq!((errno_of(&error), error.to_string()), (libc::EACCES, "/x: Permission denied".into()));
        assert_eq!(Refusal::from(io::Error::other("lost")), Refusal { errno: None, words: "lost".into() });
    }
}
