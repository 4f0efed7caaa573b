//! Percent-encoding, hexadecimal digits, dates.

use iolite_types::civil;
use std::time::{SystemTime, UNIX_EPOCH};

/// Appends a path in the form of URLs and signatures: everything except letters, digits, `-._~` and slashes becomes
/// `%XX`.
pub fn percent_encoded(path: &[u8], out: &mut String) {
    for &byte in path {
        push_encoded(byte, byte == b'/', out);
    }
}

/// Appends the value of a query parameter: slashes are encoded as well.
pub fn query_encoded(value: &[u8], out: &mut String) {
    for &byte in value {
        push_encoded(byte, false, out);
    }
}

/// Decodes percent-encoded text; `None` = the encoding is wrong, or the result is not UTF-8.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

fn push_encoded(byte: u8, is_kept: bool, out: &mut String) {
    if is_kept || byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        out.push(byte.into());
    } else {
        out.push('%');
        out.push(DIGITS[usize::from(byte >> 4)].to_ascii_uppercase().into());
        out.push(DIGITS[usize::from(byte & 15)].to_ascii_uppercase().into());
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends bytes as hexadecimal digits.
pub(crate) fn hex<const BYTES: usize>(bytes: [u8; BYTES], out: &mut String) {
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)].into());
        out.push(DIGITS[usize::from(byte & 15)].into());
    }
}

/// A time in the form of signatures: `20130524T000000Z`. The first eight characters are the date.
pub(crate) fn stamp(now: SystemTime) -> [u8; 16] {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut stamp = *b"00000000T000000Z";
    let mut put = |at: usize, digits: usize, mut value: u64| {
        for place in (at..at + digits).rev() {
            stamp[place] = b'0' + (value % 10) as u8;
            value /= 10;
        }
    };
    put(0, 4, year);
    put(4, 2, month);
    put(6, 2, day);
    put(9, 2, second / 3600);
    put(11, 2, second / 60 % 60);
    put(13, 2, second % 60);
    stamp
}

/// Converts a time such as `2013-05-24T00:00:00.000Z` to whole seconds since 1970.
pub(crate) fn seconds_of(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let seconds = (number(11, 13)? * 60 + number(14, 16)?) * 60 + number(17, 19)?;
    // Tries each day of that year. This is called too rarely for its speed to matter.
    let first = year.checked_sub(1970)? * 365;
    let days = (first..first + 600).find(|&days| civil(days) == (year, month, day))?;
    Some(days * 86_400 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_of_lists_are_read() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("2013-05-24T00:00:00Z", Some(1_369_353_600)),
            ("2024-12-31T23:59:59.5Z", Some(1_735_689_599)),
            ("2100-01-01T00:00:00Z", Some(4_102_444_800)),
            ("2100-02-30T00:00:00Z", None),
            ("yesterday", None),
        ] {
            assert_eq!(seconds_of(text), seconds, "{text}");
        }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        // Values from date(1).
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (1_735_689_599, "20241231T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            let moment = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(std::str::from_utf8(&stamp(moment)).unwrap(), text);
        }
    }

    #[test]
    fn paths_keep_their_slashes() {
        let mut path = String::new();
        percent_encoded("/a b/ü+~_0_4096".as_bytes(), &mut path);
        assert_eq!(path, "/a%20b/%C3%BC%2B~_0_4096");
    }
}
