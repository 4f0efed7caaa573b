//! Readable texts and numbers.

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

/// The text on one line, cut after this many characters. (It is not escaped.)
pub fn one_line(text: &str, most: usize) -> String {
    let mut characters =
        text.chars().map(|character| if character.is_whitespace() { ' ' } else { character });
    let mut start: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        start.push('…');
    }
    start
}

/// The escaped name on one line, cut after some characters.
pub fn short(name: &str) -> String {
    escaped(&one_line(name, SHORT))
}

/// Three significant figures, without zeros at the end.
pub fn digits(value: f64) -> String {
    // No measurement is that large, but a stored file may say anything, and 1e308 has 309 digits.
    const MOST: f64 = 1e9;
    if value.abs() >= MOST {
        return format!("{value:.2e}");
    }
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        0.0 => 0,
        size => (2 - size.log10().floor() as i32).clamp(0, 9),
    };
    let text = format!("{value:.*}", decimals.unsigned_abs() as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn scaled(value: f64, base: f64, units: &[&str], between: &str) -> String {
    let mut rest = value;
    let mut units = units.iter().peekable();
    let mut unit = units.next().copied().unwrap_or_default();
    while rest.abs() >= base * 0.9995
        && let Some(next) = units.next()
    {
        rest /= base;
        unit = next;
    }
    format!("{}{between}{unit}", digits(rest))
}

/// A count: `54.7k`.
pub fn count(value: f64) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G", "T"], "")
}

/// Bytes per second: `214 MiB/s`.
pub fn bandwidth(value: f64) -> String {
    scaled(value, 1024.0, &["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"], " ")
}

/// Bytes: `1.86 TiB`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"], " ")
}

/// Nanoseconds: `82.4 µs`.
pub fn latency(value: f64) -> String {
    scaled(value, 1000.0, &["ns", "µs", "ms", "s"], " ")
}

/// Seconds: `0.5 s`.
pub fn seconds(value: f64) -> String {
    match value {
        few if few < 120.0 => format!("{} s", digits(few)),
        minutes if minutes < 7200.0 => format!("{} min", digits(minutes / 60.0)),
        hours => format!("{} h", digits(hours / 3600.0)),
    }
}

/// A share: `3.2%`.
pub fn percent(value: f64) -> String {
    format!("{}%", digits(value))
}

/// A relative change as a percentage with its sign.
pub fn signed(change: f64) -> String {
    let percent = change * 100.0;
    match percent.abs() {
        small if small < 0.995 => format!("{percent:+.2}%"),
        middling if middling < 99.95 => format!("{percent:+.1}%"),
        large if large < 1e6 => format!("{percent:+.0}%"),
        _ => format!("{percent:+.1e}%"),
    }
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

    #[test]
    fn numbers_have_three_figures() {
        let counts = [0.0, 0.25, 7.0, 999.4, 999.6, 1000.0, 54_740.0, 1_234_567.0].map(count);
        assert_eq!(counts, ["0", "0.25", "7", "999", "1k", "1k", "54.7k", "1.23M"]);
        assert_eq!([0.0, 1023.0, 224_395_264.0].map(bandwidth), ["0 B/s", "1023 B/s", "214 MiB/s"]);
        assert_eq!([1e308, -1e308, 1e24].map(count), ["1.00e296T", "-1.00e296T", "1.00e12T"]);
        assert_eq!((percent(1e308), latency(f64::MAX)), ("1.00e308%".to_owned(), "1.80e299 s".to_owned()));
        assert_eq!([41.0, 1500.0, 82_432.0, 12e9].map(latency), ["41 ns", "1.5 µs", "82.4 µs", "12 s"]);
        assert_eq!([0.1, 60.0, 300.0, 86_400.0].map(seconds), ["0.1 s", "60 s", "5 min", "24 h"]);
    }
}
