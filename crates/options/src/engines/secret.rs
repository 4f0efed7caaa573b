//! Texts that nobody may read.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What stands where a secret would.
pub(crate) const PLACEHOLDER: &str = "***";

/// A key, a password or a token. It is in no debug output. (Plans carry it, as it is needed where the job runs.)
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(String);

impl Secret {
    /// Keeps this text.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text itself, unless it is empty.
    pub fn given(&self) -> Option<&str> {
        Some(self.reveal()).filter(|text| !text.is_empty())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { PLACEHOLDER })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let secret = Secret::new("sesame".into());
        assert_eq!((format!("{secret:?}").as_str(), secret.reveal()), ("***", "sesame"));
        assert_eq!((format!("{:?}", Secret::default()).as_str(), Secret::default().given()), ("none", None));
    }
}
