//! Sizes in bytes, in percent of a file or device, or in its zones, which are known only where the job runs: `4g`,
//! `20%`, `3z`.

use super::{Notes, integer};
use crate::SizeValue;

/// Parses a size; `0%` is 0 bytes.
///
/// # Errors
/// The text is not a number, a percentage is above 100, or the size is negative.
pub fn size(text: &str, kb_base: u32, notes: &mut Notes) -> Result<SizeValue, String> {
    let text = text.trim();
    if let Some(number) = text.strip_suffix('%') {
        let digits = number.trim_end_matches('%');
        if digits != number {
            notes.ignore("a percentage has one % sign".to_owned(), "; the others are ignored")?;
        }
        return match u32::try_from(integer(digits, kb_base, notes)?) {
            Ok(0) => Ok(SizeValue::Bytes(0)),
            Ok(percent @ 1..=100) => Ok(SizeValue::Percent(percent)),
            _ => Err("a percentage is between 0 and 100".to_owned()),
        };
    }
    if let Some(zones) = in_zones(text, kb_base, notes)? {
        return Ok(if zones == 0 { SizeValue::Bytes(0) } else { SizeValue::Zones(zones) });
    }
    let bytes = integer(text, kb_base, notes)?;
    u64::try_from(bytes).map(SizeValue::Bytes).map_err(|_| super::outside(bytes, 0, i128::from(u64::MAX)))
}

/// The number of zones of `4z`; `None` = it is not a number of zones.
pub(super) fn in_zones(text: &str, kb_base: u32, notes: &mut Notes) -> Result<Option<u32>, String> {
    let number = text.strip_suffix(['z', 'Z']).filter(|zones| zones.ends_with(|c: char| c.is_ascii_digit()));
    let Some(number) = number else { return Ok(None) };
    let zones = integer(number, kb_base, notes)?;
    u32::try_from(zones).map(Some).map_err(|_| super::outside(zones, 0, i128::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<SizeValue, String> {
        size(text, 1024, &mut Notes::of(Name::Fio))
    }

    #[test]
    fn bytes_and_percent() {
        assert_eq!(read("4k"), Ok(SizeValue::Bytes(4096)));
        assert_eq!(read("20%"), Ok(SizeValue::Percent(20)));
        assert_eq!(read("20%%"), Ok(SizeValue::Percent(20)));
        assert_eq!(size("20%%", 1024, &mut Notes::default()), Err("a percentage has one % sign".to_owned()));
        assert_eq!(read("100%"), Ok(SizeValue::Percent(100)));
        assert_eq!(read("0%"), Ok(SizeValue::Bytes(0)));
        assert_eq!(read("(10*2)%"), Ok(SizeValue::Percent(20)));
        assert_eq!(read("101%"), Err("a percentage is between 0 and 100".to_owned()));
        assert_eq!(read("-1"), Err("must not be negative".to_owned()));
        assert_eq!(read("4z"), Ok(SizeValue::Zones(4)));
        assert_eq!(read("0z"), Ok(SizeValue::Bytes(0)));
        assert!(read("z").is_err() && read("-1z").is_err());
        assert_eq!(read("20000p"), Err("must be at most 18446744073709551615".to_owned()));
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in ".{0,30}") {
            let _ = read(&text);
        }

        #[test]
        fn reads_back_what_was_written(bytes: u64, percent in 1u32..=100) {
            prop_assert_eq!(read(&bytes.to_string()), Ok(SizeValue::Bytes(bytes)));
            prop_assert_eq!(read(&format!("{percent}%")), Ok(SizeValue::Percent(percent)));
        }
    }
}
