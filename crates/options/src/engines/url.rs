//! URLs, in which there may be a password.

use super::secret::PLACEHOLDER;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A URL. Debug output has no password that is in it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Url(String);

impl Url {
    /// Keeps this text.
    pub fn new(text: String) -> Url {
        Url(text)
    }

    /// All of it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// As it may be shown.
    pub fn shown(&self) -> Cow<'_, str> {
        masked(&self.0)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown(), f)
    }
}

/// Words of queries whose values are secret.
const SECRET: [&str; 3] = ["password", "secret", "passphrase"];

/// A text without the passwords of the URLs in it: `nbd://me:***@host`, `iscsi://me%***@host`. Most texts have none, and
/// stay what they are.
pub fn masked(text: &str) -> Cow<'_, str> {
    if !text.contains("//") || !(text.contains('@') || SECRET.iter().any(|word| text.contains(word))) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("//") {
        shown.push_str(before);
        shown.push_str("//");
        let end = after.find(['/', '?', ' ']).unwrap_or(after.len());
        let (authority, behind) = after.split_at(end);
        match authority.rsplit_once('@') {
            // In lists of names a colon has a backslash in front.
            Some((user, host)) => match user.find([':', '%', '\\']) {
                Some(place) => {
                    let place = place + usize::from(user[place..].starts_with("\\:"));
                    shown.push_str(&user[..=place]);
                    shown.push_str(PLACEHOLDER);
                    shown.push('@');
                    shown.push_str(host);
                }
                None => shown.push_str(authority),
            },
            None => shown.push_str(authority),
        }
        rest = behind;
    }
    shown.push_str(rest);
    Cow::Owned(without_secret_words(&shown))
}

/// `?user=me&password=sesame` without the values of such words.
fn without_secret_words(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (number, word) in text.split_inclusive(['?', '&']).enumerate() {
        match word.split_once('=') {
            Some((key, value)) if number > 0 && SECRET.iter().any(|secret| key.contains(secret)) => {
                let end = value.find(['&', '?', ' ', ':']).map_or("", |end| &value[end..]);
                shown.extend([key, "=", PLACEHOLDER, end]);
            }
            _ => shown.push_str(word),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("nfs://h/x@y?uid=0", "nfs://h/x@y?uid=0"),
            ("nbd://h:10/x@y", "nbd://h:10/x@y"),
            ("nbds://me@h/x", "nbds://me@h/x"),
            ("nbds://me:sesame@h/x", "nbds://me:***@h/x"),
            ("iscsi://me%sesame@h:3260/iqn:x/1", "iscsi://me%***@h:3260/iqn:x/1"),
            (r"iscsi\://me%sesame@h\:3260/iqn\:x/1:/tmp/x", r"iscsi\://me%***@h\:3260/iqn\:x/1:/tmp/x"),
            (r"nbd\://me\:ses@me@h", r"nbd\://me\:***@h"),
            (
                "iscsi://h/t/1?target_user=u&target_password=sesame&x=1",
                "iscsi://h/t/1?target_user=u&target_password=***&x=1",
            ),
            ("a//b c//me:sesame@h", "a//b c//me:***@h"),
            ("/tmp/a@b", "/tmp/a@b"),
            ("", ""),
        ] {
            assert_eq!(masked(url), shown, "{url}");
        }
        let url = Url::new("nbd://me:sesame@h".into());
        assert_eq!((format!("{url:?}").as_str(), url.reveal()), ("\"nbd://me:***@h\"", "nbd://me:sesame@h"));
    }
}
