//! Readable texts and numbers.

pub use iolite_findings::numbers::{bandwidth, bytes, count, digits, latency, percent, seconds, signed};
pub use iolite_summary::one_line;
use iolite_types::is_bidi_control;
use std::fmt::Write;

/// The most characters of a name if there is little room.
const SHORT: usize = 80;

/// Escapes a text so that it is not markup. Control characters, and those that change the direction of writing, are
/// shown as their numbers.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            // Writing to a String does not fail.
            acts if acts.is_control() || is_bidi_control(acts) => {
                let _ = write!(out, "\\x{:02x}", u32::from(acts));
            }
            other => out.push(other),
        }
    }
    out
}

/// The escaped value, cut after a few thousand characters: the packed report has all of it.
pub fn limited(value: &str) -> String {
    const MOST: usize = 4000;
    match value.char_indices().nth(MOST) {
        Some((end, _)) => escaped(&value[..end]) + "…",
        None => escaped(value),
    }
}

/// The escaped name on one line, cut after some characters.
pub fn short(name: &str) -> String {
    escaped(&one_line(name, SHORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        assert_eq!(
            escaped("<script>alert(\"1\" & '2')</script>"),
            "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;"
        );
        assert_eq!(escaped("a\x1b[31m\0\u{9b}\u{202e}b"), "a\\x1b[31m\\x00\\x9b\\x202eb");
        assert_eq!(escaped("Größe\n\t日本"), "Größe\n\t日本");
    }

    #[test]
    fn names_are_short() {
        assert_eq!(short("a\nb"), "a b");
        let long = "<".repeat(1 << 20);
        assert_eq!(short(&long), "&lt;".repeat(80) + "…");
        assert_eq!(limited(&"ä".repeat(5000)), "ä".repeat(4000) + "…");
        assert_eq!(limited("<a>"), "&lt;a&gt;");
    }
}
