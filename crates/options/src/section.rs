//! The low phase's result: what was written, word for word and with its place, before any of it is given a
//! meaning.
//!
//! A job file and a command line both come down to the same thing: a list of sections, each a list of
//! `key[=value]`.

use crate::{Diagnostic, Origin};
use std::borrow::Cow;

/// One `key` or `key=value`, after substitution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The option's name as it was written (on the command line: what an abbreviation stood for).
    pub key: String,
    /// The text after `=`; `None` where there was no `=`.
    pub value: Option<String>,
    /// Where the key is.
    pub key_origin: Origin,
    /// Where the value is, or the key where there is no value.
    pub value_origin: Origin,
}

/// A job, or defaults for the jobs after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// What stands between the brackets, or after `--name=`; empty for the defaults at the start of a command line.
    pub name: String,
    /// Its settings are defaults.
    pub is_global: bool,
    /// `--section` does not choose this job. It only counts among those that come before others.
    pub is_left_out: bool,
    /// Where it begins.
    pub origin: Origin,
    /// What it sets, in the order written.
    pub settings: Vec<Setting>,
}

impl Section {
    /// The name of the job: its section's, unless an option renames it.
    pub fn job_name(&self) -> &str {
        self.last("name").unwrap_or(&self.name)
    }

    /// What the section sets an option to.
    pub fn last(&self, key: &str) -> Option<&str> {
        self.settings.iter().rev().find(|setting| setting.key == key)?.value.as_deref()
    }
}

/// Does a section of this name hold defaults? As in fio, whatever begins with `global` does.
pub(crate) fn is_global_name(name: &str) -> bool {
    name.starts_with("global")
}

/// The warning that goes with a name that merely begins with `global`.
pub(crate) fn odd_global_name(name: &str, origin: &Origin) -> Option<Diagnostic> {
    let odd = is_global_name(name) && name != "global";
    odd.then(|| Diagnostic {
        origin: Some(origin.clone()),
        message: format!(
            "section \"{name}\" is taken as [global], because its name begins with that word; it is not a job"
        ),
    })
}

/// A name longer than this is no option with a typing mistake.
const LONGEST_NAME: usize = 64;

/// Is it worth asking which option was meant by this name?
pub(crate) fn could_be_a_typing_mistake(name: &str) -> bool {
    name.len() <= LONGEST_NAME
}

/// Enough of a text to recognise it in a message.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    const ENOUGH: usize = 80;
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
