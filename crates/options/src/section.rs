//! The result of the first phase: the input before its interpretation, word for word and with its places.
//!
//! A job file and a command line have the same form: a list of sections, each a list of `key[=value]`.

use crate::{Diagnostic, Origin};
use std::borrow::Cow;

/// One `key` or `key=value`, after substitution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The option's name as written (on the command line: the full name if it was abbreviated).
    pub key: String,
    /// The text after `=`; `None` if there was no `=`.
    pub value: Option<String>,
    /// Where the key is.
    pub key_origin: Origin,
    /// Where the value is, or the key if there is no value.
    pub value_origin: Origin,
}

/// A job, or defaults for the jobs after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The name between the brackets, or after `--name=`; empty for the defaults at the start of a command line.
    pub name: String,
    /// It holds defaults.
    pub is_global: bool,
    /// `--section` leaves this job out. It only affects the numbering of the jobs after it.
    pub is_left_out: bool,
    /// Where it begins.
    pub origin: Origin,
    /// Its settings, in the order written.
    pub settings: Vec<Setting>,
}

impl Section {
    /// The name of the job: the section's, unless an option renames it.
    pub fn job_name(&self) -> &str {
        self.last("name").unwrap_or(&self.name)
    }

    /// The last value of an option in the section.
    pub fn last(&self, key: &str) -> Option<&str> {
        self.settings.iter().rev().find(|setting| setting.key == key)?.value.as_deref()
    }
}

/// Whether a section of this name holds defaults. As in fio, any name that begins with `global` does.
pub(crate) fn is_global_name(name: &str) -> bool {
    name.starts_with("global")
}

/// The warning about a name that merely begins with `global`.
pub(crate) fn odd_global_name(name: &str, origin: &Origin) -> Option<Diagnostic> {
    let odd = is_global_name(name) && name != "global";
    odd.then(|| Diagnostic {
        origin: Some(origin.clone()),
        message: format!(
            "section \"{name}\" is taken as [global], because its name begins with that word; it is not a job"
        ),
    })
}

/// A name longer than this is not a misspelt option.
const LONGEST_NAME: usize = 64;

/// Whether to look for the option that was meant by this name.
pub(crate) fn could_be_a_typing_mistake(name: &str) -> bool {
    name.len() <= LONGEST_NAME
}

/// The start of a text, enough to recognise it in a message.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    const ENOUGH: usize = 80;
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
