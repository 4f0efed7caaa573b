//! URLs, which may contain a password.

use super::secret::PLACEHOLDER;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A URL. Debug output does not show its password.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Url(String);

impl Url {
    /// A URL with this text.
    pub fn new(text: String) -> Url {
        Url(text)
    }

    /// The whole text, with its password.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without its password.
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

/// A text without the passwords of the URLs in it: `nbd://me:***@host`, `iscsi://me%***@host`. Most texts contain no
/// passwords, and stay unchanged. A password may contain any character, so everything up to the last `@` is hidden,
/// which may be too much, but never too little.
pub fn masked(text: &str) -> Cow<'_, str> {
    if let Some((front, host)) = without_slashes(text) {
        return format!("{}{PLACEHOLDER}{host}", masked(front)).into();
    }
    if !text.contains("//") || !(text.contains('@') || SECRET.iter().any(|word| text.contains(word))) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("//") {
        shown.push_str(before);
        shown.push_str("//");
        let (url, behind) = after.split_at(next_url(after));
        match url.rsplit_once('@') {
            // In lists of names, a backslash precedes a colon.
            Some((user, host)) if user.contains([':', '%', '\\']) => {
                let place = user.find([':', '%', '\\']).unwrap_or_default();
                let place = place + usize::from(user[place..].starts_with("\\:"));
                shown.extend([&user[..=place], PLACEHOLDER, "@", host]);
            }
            _ => shown.push_str(url),
        }
        rest = behind;
    }
    shown.push_str(rest);
    Cow::Owned(without_secret_words(&shown))
}

/// Schemes of URLs with passwords.
const SCHEMES: [&str; 8] = ["nbd", "nbds", "nbd+unix", "nbds+unix", "iscsi", "nfs", "http", "https"];

/// The parts around the password of a URL with missing slashes: `iscsi:/` and `@host`.
fn without_slashes(text: &str) -> Option<(&str, &str)> {
    let last = text.rfind('@')?;
    let colons = text[..last].match_indices(':').map(|(place, _)| place);
    let mut ends = colons.filter_map(|colon| {
        let front = text[..colon].trim_end_matches('\\');
        let is_of_scheme = |sign: char| sign.is_ascii_alphanumeric() || "+-".contains(sign);
        let scheme = &front[front.trim_end_matches(is_of_scheme).len()..];
        let before = &front[..front.len() - scheme.len()];
        let is_url = SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known))
            && (before.is_empty() || before.ends_with([':', ',', ' ']));
        let behind = &text[colon + 1..];
        let slashes = behind.len() - behind.trim_start_matches('/').len();
        (is_url && slashes < 2).then_some(colon + 1 + slashes)
    });
    Some((&text[..ends.next()?], &text[last..]))
}

/// The position in a list of names where the next URL begins: `…:iscsi://…`, `…,iscsi\://…`, `… nbd://…`.
fn next_url(text: &str) -> usize {
    let starts = text.match_indices("://").map(|(place, _)| place);
    let scheme = |place: usize| {
        let front = text[..place].trim_end_matches('\\');
        let name = front.trim_end_matches(|sign: char| sign.is_ascii_lowercase() || "+-".contains(sign));
        (name.len() < front.len() && name.ends_with([':', ',', ' '])).then_some(name.len())
    };
    starts.filter_map(scheme).next().unwrap_or(text.len())
}

/// `?user=me&password=sesame` without the values of such words, which go as far as the next `&`.
fn without_secret_words(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (number, piece) in text.split_inclusive('&').enumerate() {
        let starts = piece.match_indices('?').map(|(place, _)| place + 1);
        let starts = (number > 0).then_some(0).into_iter().chain(starts);
        let secret = starts.filter_map(|start| {
            let key = piece[start..].split_once('=')?.0;
            let is_secret = !key.contains('?') && SECRET.iter().any(|word| key.contains(word));
            is_secret.then_some(start + key.len() + 1)
        });
        match secret.min() {
            Some(value) => {
                let end = if piece.ends_with('&') { "&" } else { "" };
                shown.extend([&piece[..value], PLACEHOLDER, end]);
            }
            None => shown.push_str(piece),
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
            // A port cannot be distinguished from a password with a slash.
            ("nbd://h:10/x@y", "nbd://h:***@y"),
            ("nbd://me:ses/ame@h/x", "nbd://me:***@h/x"),
            ("nbd://me:ses?ame#@h/x", "nbd://me:***@h/x"),
            ("nbd://me:ses ame@h/x", "nbd://me:***@h/x"),
            ("nbd://me:ses//ame@h/x", "nbd://me:***@h/x"),
            ("iscsi://me%ses/ame@h/t/1", "iscsi://me%***@h/t/1"),
            (
                r"iscsi\://h\:1/t/1:iscsi\://me%ses/ame@h/t/1:iscsi://you%x@h/t/2",
                r"iscsi\://h\:1/t/1:iscsi\://me%***@h/t/1:iscsi://you%***@h/t/2",
            ),
            ("iscsi://h/t/1?target_password=ses?a:me&x=1", "iscsi://h/t/1?target_password=***&x=1"),
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
            ("ISCSI://me%sesame@h/t/1", "ISCSI://me%***@h/t/1"),
            ("iscsi:/me%sesame@h/t/1", "iscsi:/***@h/t/1"),
            ("ISCSI:me%ses//ame@h/t/1", "ISCSI:***@h/t/1"),
            ("nbd:/me:sesame@h//x", "nbd:/***@h//x"),
            (r"/a:iscsi:/me%sesame@h/t/1:iscsi\://h/t/2", r"/a:iscsi:/***@h/t/1:iscsi\://h/t/2"),
            ("/mnt/a:/mnt/b:/mnt/@home/c", "/mnt/a:/mnt/b:/mnt/@home/c"),
            ("/srv/nfs:/x@y", "/srv/nfs:/x@y"),
            ("/tmp/a@b", "/tmp/a@b"),
            ("", ""),
        ] {
            assert_eq!(masked(url), shown, "{url}");
        }
        let url = Url::new("nbd://me:sesame@h".into());
        assert_eq!((format!("{url:?}").as_str(), url.reveal()), ("\"nbd://me:***@h\"", "nbd://me:sesame@h"));
    }
}
