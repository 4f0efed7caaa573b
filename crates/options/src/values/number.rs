//! Integers with a base prefix and a unit suffix: `4096`, `0x1000`, `4k`, `4kib`.
//!
//! With `kb_base=1024`, the default, `k` and `kb` are 1024 and `kib` is 1000, so that old scripts keep their meaning.
//! With `kb_base=1000` it is the other way round, as the standards say. `ki` without a `b` is the same as `k`: fio's
//! manual says otherwise, but fio does this. Case does not matter.
//!
//! Text behind a unit (`4kk`, `1mb/s`), and any other suffix, is an error under our own name, and ignored with a note under
//! that of fio.

use super::Notes;
use crate::{Name, expression};

/// The suffixes, for messages.
const SUFFIXES: &str = "k, m, g, t, p, kib, mib, …";

/// Parses an integer. `kb_base` is 1024 or 1000.
///
/// # Errors
/// The text does not start with a number, the suffix is unknown or counts zones, the number does not fit, or an
/// expression in parentheses is malformed.
pub fn integer(text: &str, kb_base: u32, notes: &mut Notes) -> Result<i128, String> {
    let text = text.trim();
    if text.starts_with('(') {
        return expression::evaluate(text, &mut |suffix| {
            // (In an expression nothing is ignored under any name.)
            factor(suffix, kb_base, &mut Notes::of(Name::Iolite))
        });
    }
    let (negative, digits) = sign(text);
    let (value, suffix) = if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let value = hexadecimal(&hex[..end], notes).ok_or_else(|| not_a_number(text))?;
        counts_no_zones(&hex[end..])?;
        if end < hex.len() {
            notes.ignore(
                format!("\"{}\" behind a hexadecimal number means nothing", &hex[end..]),
                ", ignored",
            )?;
        }
        (value, "")
    } else {
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if end == 0 {
            return Err(not_a_number(text));
        }
        (digits[..end].parse().map_err(|_| too_large())?, &digits[end..])
    };
    let factor = factor(suffix, kb_base, notes).map_err(|why| match without_fraction(digits, kb_base) {
        Some(whole) => format!("{why}; write {whole}"),
        None => why,
    })?;
    let value = value.checked_mul(factor).ok_or_else(too_large)?;
    let value = i128::try_from(value).map_err(|_| too_large())?;
    Ok(if negative { -value } else { value })
}

/// The value of hexadecimal digits. For fio, no digits are 0.
pub(super) fn hexadecimal(digits: &str, notes: &Notes) -> Option<u128> {
    if digits.is_empty() && notes.are_of_fio() { Some(0) } else { u128::from_str_radix(digits, 16).ok() }
}

/// A number with a fraction as a whole one: 1536 for `1.5k`.
fn without_fraction(text: &str, kb_base: u32) -> Option<u64> {
    /// Above it, a floating-point number is not exact.
    const MOST: f64 = 1e15;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let factor = factor(suffix, kb_base, &mut Notes::of(Name::Iolite)).ok()?;
    let value = number.parse::<f64>().ok().filter(|_| number.contains('.'))? * factor as f64;
    (value < MOST && value.fract() == 0.0).then_some(value as u64)
}

/// Splits off a leading sign.
pub(super) fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

pub(super) fn not_a_number(text: &str) -> String {
    format!("\"{text}\" is not a number")
}

pub(super) fn too_large() -> String {
    "the number is too large".to_owned()
}

fn unknown(suffix: &str) -> String {
    format!("unknown size suffix \"{suffix}\" ({SUFFIXES})")
}

/// `z` counts zones of a device. If it were ignored, the number would have another meaning.
pub(super) fn counts_no_zones(suffix: &str) -> Result<(), String> {
    if suffix.ends_with(['z', 'Z']) {
        return Err(format!("the suffix \"{suffix}\" counts zones, and there are none here"));
    }
    Ok(())
}

/// The factor that a suffix stands for.
fn factor(suffix: &str, kb_base: u32, notes: &mut Notes) -> Result<u128, String> {
    counts_no_zones(suffix)?;
    let lower = suffix.to_ascii_lowercase();
    let mut letters = lower.chars();
    let Some(first) = letters.next() else {
        return Ok(1);
    };
    let Some(power) = "kmgtp".find(first) else {
        if first == '.' {
            notes.ignore("numbers here are whole".to_owned(), &format!(", \"{suffix}\" is ignored"))?;
        } else if lower != "b" {
            notes.ignore(unknown(suffix), ", ignored")?;
        }
        return Ok(1);
    };
    let base = match letters.as_str() {
        "" | "b" => kb_base,
        "ib" => 2024 - kb_base,
        "i" => {
            notes.push(format!(
                "\"{suffix}\" is read like \"{first}\", in powers of {kb_base} (kb_base={kb_base}); write \"{first}\" or \
                 \"{first}ib\""
            ));
            kb_base
        }
        rest => {
            let is_other = rest.starts_with("ib");
            let unit = &suffix[..if is_other { 3 } else { 1 }];
            notes.ignore(unknown(suffix), &format!("; it is read like \"{unit}\""))?;
            if is_other { 2024 - kb_base } else { kb_base }
        }
    };
    Ok(u128::from(base).pow(power as u32 + 1))
}

/// The message for a number that is out of range.
pub(crate) fn outside(value: i128, low: i128, high: i128) -> String {
    if value < low {
        if low == 0 { "must not be negative".to_owned() } else { format!("must be at least {low}") }
    } else {
        format!("must be at most {high}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, kb_base: u32) -> (Result<i128, String>, usize) {
        let mut notes = Notes::of(Name::Fio);
        let value = integer(text, kb_base, &mut notes);
        (value, notes.len())
    }

    /// Each row was compared with the value that the reference program stores.
    #[test]
    fn units_under_both_bases() {
        for (text, at_1024, at_1000) in [
            ("4", 4, 4),
            ("4b", 4, 4),
            ("4B", 4, 4),
            ("4k", 4096, 4000),
            ("4K", 4096, 4000),
            ("4kb", 4096, 4000),
            ("4kB", 4096, 4000),
            ("4kib", 4000, 4096),
            ("4KiB", 4000, 4096),
            ("4m", 4 << 20, 4_000_000),
            ("4mib", 4_000_000, 4 << 20),
            ("4g", 4 << 30, 4_000_000_000),
            ("4t", 4 << 40, 4_000_000_000_000),
            ("4p", 4 << 50, 4_000_000_000_000_000),
            ("1tib", 1_000_000_000_000, 1 << 40),
            ("0x10", 16, 16),
            ("0X1f", 31, 31),
            ("010", 10, 10),
            ("+4k", 4096, 4000),
            ("-1", -1, -1),
            ("-1k", -1024, -1000),
            ("4k ", 4096, 4000),
            ("(2*4)k", 8192, 8000),
            ("(2k+1)", 2049, 2001),
        ] {
            assert_eq!(read(text, 1024), (Ok(at_1024), 0), "{text} at 1024");
            assert_eq!(read(text, 1000), (Ok(at_1000), 0), "{text} at 1000");
        }
    }

    #[test]
    fn nothing_is_ignored_under_our_own_name() {
        let read = |text| integer(text, 1024, &mut Notes::default());
        for text in ["4x", "4e", "4i", "4bk", "4s", "4 k", "4q", "4*1024"] {
            assert!(read(text).unwrap_err().starts_with("unknown size suffix"), "{text}");
        }
        assert_eq!(read("1.5k"), Err("numbers here are whole; write 1536".to_owned()));
        assert_eq!(read("1.5"), Err("numbers here are whole".to_owned()));
        assert_eq!(read("0x10k"), Err("\"k\" behind a hexadecimal number means nothing".to_owned()));
        assert_eq!(read("4ki"), Ok(4096), "a note, because it is not ignored");
    }

    #[test]
    fn ignored_text_is_noted() {
        for (text, value) in [
            ("4x", 4),
            ("4e", 4),
            ("4i", 4),
            ("4bk", 4),
            ("4s", 4),
            ("4 k", 4),
            ("1.5k", 1),
            ("0x10k", 16),
            ("4*1024", 4),
            ("4ki", 4096),
            ("4mi", 4 << 20),
        ] {
            assert_eq!(read(text, 1024), (Ok(value), 1), "{text}");
        }
        assert_eq!(read("4mi", 1000), (Ok(4_000_000), 1));
    }

    /// As in fio 3.41, where the offset of the first I/O showed the values.
    #[test]
    fn text_behind_a_unit_is_ignored_as_by_fio_only() {
        for (text, value) in [
            ("8kk", 8192),
            ("8kx", 8192),
            ("8kibx", 8000),
            ("8kib/s", 8000),
            ("8mbps", 8 << 20),
            ("8mb/s", 8 << 20),
            ("8ms", 8 << 20),
            ("8mkb", 8 << 20),
            ("8kik", 8192),
            ("0xg", 0),
        ] {
            assert_eq!(read(text, 1024), (Ok(value), 1), "{text}");
            assert!(integer(text, 1024, &mut Notes::default()).is_err(), "{text}");
        }
        let own = integer("4kk", 1024, &mut Notes::default());
        assert_eq!(own, Err("unknown size suffix \"kk\" (k, m, g, t, p, kib, mib, …)".to_owned()));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("4z", "the suffix \"z\" counts zones, and there are none here"),
            ("4xZ", "the suffix \"xZ\" counts zones, and there are none here"),
            ("0x4z", "the suffix \"z\" counts zones, and there are none here"),
            ("(4z)", "the suffix \"z\" counts zones, and there are none here"),
            ("k", "\"k\" is not a number"),
            ("", "\"\" is not a number"),
            ("-", "\"-\" is not a number"),
            ("(4x)", "unknown size suffix \"x\" (k, m, g, t, p, kib, mib, …)"),
        ] {
            assert_eq!(read(text, 1024).0, Err(message.to_owned()), "{text}");
        }
        assert!(read(&"9".repeat(60), 1024).0.is_err());
        assert!(read("340282366920938463463374607431768211455p", 1024).0.is_err());
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in ".{0,30}") {
            let _ = read(&text, 1024);
        }

        #[test]
        fn reads_back_what_was_written(value: i64) {
            prop_assert_eq!(read(&value.to_string(), 1024), (Ok(i128::from(value)), 0));
        }

        #[test]
        fn reads_back_units(value in 0u32.., power in 1u32..=5) {
            let unit = ["k", "m", "g", "t", "p"][power as usize - 1];
            let expected = i128::from(value) * 1024i128.pow(power);
            prop_assert_eq!(read(&format!("{value}{unit}"), 1024).0, Ok(expected));
            prop_assert_eq!(read(&format!("0x{value:x}"), 1024).0, Ok(i128::from(value)));
        }
    }
}
