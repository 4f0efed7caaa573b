//! Durations: `30`, `10m`, `500ms`, in microseconds.
//!
//! A bare number is in the option's default unit (usually seconds). Hexadecimal numbers, and bare numbers in an
//! expression, are microseconds. `min` is minutes, but not for fio, which ignores it: `1min` is then a microsecond.

use super::Notes;
use super::number::{counts_no_zones, hexadecimal, not_a_number, too_large};
use crate::expression;

/// Microseconds per second: the default unit of most options.
pub const SECOND: u64 = 1_000_000;

/// Microseconds per minute.
const MINUTE: u64 = 60 * SECOND;

/// Parses a duration; a bare number counts `default_unit` microseconds.
///
/// # Errors
/// The text is not a number, is negative, counts zones or does not fit, or an expression in parentheses is malformed.
pub fn time(text: &str, default_unit: u64, notes: &mut Notes) -> Result<u64, String> {
    let text = text.trim();
    let of_fio = notes.are_of_fio();
    let value = if text.starts_with('(') {
        let value = expression::evaluate(text, &mut |suffix| {
            unit(suffix, of_fio).ok_or_else(|| unknown(suffix, of_fio))
        })?;
        u128::try_from(value).map_err(|_| "must not be negative".to_owned())?
    } else if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        counts_no_zones(&hex[end..])?;
        if end < hex.len() {
            let what = format!("\"{}\" behind a hexadecimal number means nothing", &hex[end..]);
            notes.ignore(what, ", ignored: this is in microseconds")?;
        }
        hexadecimal(&hex[..end], notes).ok_or_else(|| not_a_number(text))?
    } else {
        decimal(text, default_unit, notes)?
    };
    u64::try_from(value).map_err(|_| too_large())
}

fn decimal(text: &str, default_unit: u64, notes: &mut Notes) -> Result<u128, String> {
    if text.starts_with('-') {
        return Err("must not be negative".to_owned());
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u128 = match &text[..end] {
        "" => return Err(not_a_number(text)),
        digits => digits.parse().map_err(|_| too_large())?,
    };
    let suffix = text[end..].trim_start();
    counts_no_zones(suffix)?;
    let unit = match suffix {
        "" => u128::from(default_unit),
        _ if suffix.starts_with('.') => {
            let consequence = format!(", \"{suffix}\" is ignored together with its unit");
            let ignored = notes.ignore("numbers here are whole".to_owned(), &consequence);
            ignored.map_err(|why| match in_a_smaller_unit(text, default_unit) {
                Some(whole) => format!("{why}; write {whole}"),
                None => why,
            })?;
            u128::from(default_unit)
        }
        _ => match unit(suffix, notes.are_of_fio()) {
            Some(unit) => unit,
            None if notes.are_of_fio() && within(suffix) != suffix => {
                let unit = match within(suffix) {
                    "" => u128::from(default_unit),
                    letters => unit(letters, true).unwrap_or(1),
                };
                let consequence = format!(", read like {}", duration(number.saturating_mul(unit)));
                notes.ignore(unknown(suffix, true), &consequence)?;
                unit
            }
            None => {
                notes.ignore(unknown(suffix, notes.are_of_fio()), ", ignored: this is in microseconds")?;
                1
            }
        },
    };
    number.checked_mul(unit).ok_or_else(too_large)
}

/// The part of a suffix that fio looks at: from its first letter to its last letter or digit.
fn within(suffix: &str) -> &str {
    let letters = suffix.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    letters.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// The same duration as a whole number: `200ms` for `0.2`.
fn in_a_smaller_unit(text: &str, default_unit: u64) -> Option<String> {
    /// Above it, and beside it, a floating-point number is not exact.
    const MOST: f64 = 1e15;
    const CLOSE: f64 = 1e-3;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match text[end..].trim_start() {
        "" => default_unit.into(),
        suffix => unit(suffix, false)?,
    };
    let microseconds = text[..end].parse::<f64>().ok()? * unit as f64;
    let whole = microseconds.round();
    if !(1.0..MOST).contains(&whole) || (microseconds - whole).abs() > CLOSE {
        return None;
    }
    Some(duration(whole as u128))
}

/// Microseconds in the largest unit that has a whole number of them.
fn duration(microseconds: u128) -> String {
    const UNITS: [(&str, u64); 4] = [("h", 60 * MINUTE), ("m", MINUTE), ("s", SECOND), ("ms", 1000)];
    let fits = |(_, unit): &(&str, u64)| microseconds.is_multiple_of(u128::from(*unit));
    let (name, unit) = UNITS.into_iter().find(fits).unwrap_or(("us", 1));
    format!("{}{name}", microseconds / u128::from(unit))
}

fn unknown(suffix: &str, of_fio: bool) -> String {
    let minute = if of_fio { "" } else { "min, " };
    format!("unknown time suffix \"{suffix}\" (d, h, m, {minute}s, sec, ms, msec, us, usec)")
}

fn unit(suffix: &str, of_fio: bool) -> Option<u128> {
    let seconds = u128::from(SECOND);
    match suffix.to_ascii_lowercase().as_str() {
        "d" => Some(86_400 * seconds),
        "h" => Some(3600 * seconds),
        "m" => Some(MINUTE.into()),
        "min" if !of_fio => Some(MINUTE.into()),
        "s" | "sec" => Some(seconds),
        "ms" | "msec" => Some(1000),
        "us" | "usec" => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    fn read(text: &str) -> (Result<u64, String>, usize) {
        let mut notes = Notes::of(Name::Fio);
        let value = time(text, SECOND, &mut notes);
        (value, notes.len())
    }

    /// As fio 3.41 ran.
    #[test]
    fn signs_around_a_unit_are_ignored_as_by_fio_only() {
        for (text, value) in [("2*1s", 2 * SECOND), ("400-ms", 400_000), ("300ms.", 300_000), ("1;", SECOND)]
        {
            assert_eq!(read(text), (Ok(value), 1), "{text}");
            assert!(time(text, SECOND, &mut Notes::default()).is_err(), "{text}");
        }
        assert_eq!(read("2x300ms").0, Ok(2));
    }

    /// Each row except `5sec` (which the manual defines) was compared with the value that the reference program stores.
    #[test]
    fn units() {
        for (text, value) in [
            ("5", 5_000_000),
            ("5s", 5_000_000),
            ("5sec", 5_000_000),
            ("5m", 300_000_000),
            ("5M", 300_000_000),
            ("5h", 18_000_000_000),
            ("5d", 432_000_000_000),
            ("5D", 432_000_000_000),
            ("5ms", 5000),
            ("5msec", 5000),
            ("5us", 5),
            ("5usec", 5),
            ("5 s", 5_000_000),
            ("0x10", 16),
            ("(2*30s)", 60_000_000),
            ("(1500)", 1500),
            ("(2)m", 120_000_000),
        ] {
            assert_eq!(read(text), (Ok(value), 0), "{text}");
        }
        let mut notes = Notes::of(Name::Fio);
        assert_eq!(time("5", 1000, &mut notes), Ok(5000), "the default unit is the option's own");
    }

    #[test]
    fn nothing_is_ignored_under_our_own_name() {
        let read = |text| time(text, SECOND, &mut Notes::default());
        for text in ["5min", "5Min", "5 min", "(1min+4m)"] {
            assert_eq!(read(text), Ok(300_000_000), "{text}");
        }
        for (text, message) in [
            ("1h30m", "unknown time suffix \"h30m\" (d, h, m, min, s, sec, ms, msec, us, usec)"),
            ("5mins", "unknown time suffix \"mins\" (d, h, m, min, s, sec, ms, msec, us, usec)"),
            ("1.5m", "numbers here are whole; write 90s"),
            ("0.2", "numbers here are whole; write 200ms"),
            ("1.5 min", "numbers here are whole; write 90s"),
            ("0.0000001", "numbers here are whole"),
            ("1.5.5", "numbers here are whole"),
            ("0x10s", "\"s\" behind a hexadecimal number means nothing"),
        ] {
            assert_eq!(read(text), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn ignored_text_is_noted() {
        for (text, value) in
            [("5min", 5), ("1h30m", 1), ("5x", 5), ("1.5m", 1_000_000), ("1.5", 1_000_000), ("0x10s", 16)]
        {
            assert_eq!(read(text), (Ok(value), 1), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(read("inf").0, Err("\"inf\" is not a number".to_owned()));
        assert_eq!(read("-1").0, Err("must not be negative".to_owned()));
        assert_eq!(read("(1-2)").0, Err("must not be negative".to_owned()));
        assert_eq!(read("99999999999999d").0, Err("the number is too large".to_owned()));
        assert_eq!(
            read("(4q)").0,
            Err("unknown time suffix \"q\" (d, h, m, s, sec, ms, msec, us, usec)".to_owned())
        );
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in ".{0,30}") {
            let _ = read(&text);
        }

        #[test]
        fn reads_back_microseconds(value: u64) {
            prop_assert_eq!(read(&format!("{value}us")), (Ok(value), 0));
        }
    }
}
