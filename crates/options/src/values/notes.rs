//! Notes about suspicious input, and the decision about text that would be ignored.

use crate::Name;
use crate::name::refusal;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Notes about suspicious input that is accepted; they become warnings.
///
/// fio ignores text behind a number that it does not understand, so that `runtime=1min` is a microsecond. Under the name
/// `fio`, that is what such values mean, with a note. Under our own name they are errors.
#[derive(Clone, Debug)]
pub struct Notes {
    texts: Vec<String>,
    name: Name,
}

impl Notes {
    /// No notes yet, for a program of this name.
    pub const fn of(name: Name) -> Notes {
        Notes { texts: Vec::new(), name }
    }

    /// Whether values have the meaning that fio gives them, even where that is a trap.
    pub const fn are_of_fio(&self) -> bool {
        self.name.is_strict()
    }

    /// The reason why a value is refused; under the name `fio`, behind fio's sentence about the same mistake.
    pub fn refusal(&self, in_fio: impl fmt::Display, reason: String) -> String {
        refusal(self.are_of_fio(), in_fio, reason)
    }

    /// Records that a part of a value is ignored, and what follows from that.
    ///
    /// # Errors
    /// Under our own name nothing is ignored: the message is `what`.
    pub fn ignore(&mut self, what: String, consequence: &str) -> Result<(), String> {
        if !self.are_of_fio() {
            return Err(what);
        }
        self.texts.push(format!("{what}{consequence}"));
        Ok(())
    }

    /// The notes, which are then forgotten.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.texts)
    }
}

impl Default for Notes {
    /// Those of our own name.
    fn default() -> Self {
        Notes::of(Name::Iolite)
    }
}

impl Deref for Notes {
    type Target = Vec<String>;

    fn deref(&self) -> &Self::Target {
        &self.texts
    }
}

impl DerefMut for Notes {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.texts
    }
}
