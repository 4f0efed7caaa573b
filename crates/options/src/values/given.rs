//! A value as it was given, on its way into the job.

use crate::definition::Definition;

/// The text of one option's value, with what is needed to read it.
#[derive(Debug)]
pub struct Given<'a> {
    /// The option it was given for.
    pub definition: &'static Definition,
    /// The text, without surrounding blanks; `None` where the option stood alone.
    pub text: Option<&'a str>,
    /// 1024 or 1000: what `k` means (see [`crate::values`]).
    pub kb_base: u32,
    /// What is accepted but suspicious; the caller adds name, value and place.
    pub notes: Vec<String>,
}

impl<'a> Given<'a> {
    /// The text, or a complaint that there is none.
    pub fn required(&self) -> Result<&'a str, String> {
        self.text.ok_or_else(|| "needs a value".to_owned())
    }
}
