//! Ranges: `1k-4k`, `1k:4k`.

use super::{Notes, integer, split};
use crate::Range;

/// Parses `low-high` (or `low:high`), or a single number if `single`. The ends may be swapped. A range without its high end
/// (`256k-`) is a single number, as in fio.
///
/// # Errors
/// The text is not a range, or an end is not a number of 0 or more.
pub fn range(text: &str, kb_base: u32, single: bool, notes: &mut Notes) -> Result<Range, String> {
    range_with(text, single, |part| {
        u64::try_from(integer(part, kb_base, notes)?)
            .map_err(|_| format!("\"{part}\" is not a number from 0 on"))
    })
}

/// The same with any parser for the two ends.
///
/// # Errors
/// The text is not a range, or `read` fails.
pub fn range_with(
    text: &str,
    single: bool,
    mut read: impl FnMut(&str) -> Result<u64, String>,
) -> Result<Range, String> {
    if text.starts_with('-') {
        return Err("must not be negative".to_owned());
    }
    match split(text, &['-', ':']).as_slice() {
        [one] | [one, ""] if single && !one.is_empty() => {
            let value = read(one)?;
            Ok(Range { low: value, high: value })
        }
        [low, high] if !low.is_empty() && !high.is_empty() => {
            let (low, high) = (read(low)?, read(high)?);
            Ok(Range { low: low.min(high), high: low.max(high) })
        }
        _ => Err(format!("\"{text}\" is not a range such as 1k-4k")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    fn read(text: &str, single: bool) -> Result<(u64, u64), String> {
        range(text, 1024, single, &mut Notes::of(Name::Fio)).map(|range| (range.low, range.high))
    }

    #[test]
    fn both_separators_and_swapped_ends() {
        assert_eq!(read("1k-4k", false), Ok((1024, 4096)));
        assert_eq!(read("1k:4k", false), Ok((1024, 4096)));
        assert_eq!(read("4k-1k", false), Ok((1024, 4096)));
        assert_eq!(read("0-4k", false), Ok((0, 4096)));
        assert_eq!(read("(2-1)k-(2*2)k", false), Ok((1024, 4096)));
        for single in ["8k", "8k-", "8k:"] {
            assert_eq!(read(single, true), Ok((8192, 8192)));
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(read("4k", false), Err("\"4k\" is not a range such as 1k-4k".to_owned()));
        assert_eq!(read("1k-", false), Err("\"1k-\" is not a range such as 1k-4k".to_owned()));
        assert_eq!(read("-", true), Err("must not be negative".to_owned()));
        assert_eq!(read(":", true), Err("\":\" is not a range such as 1k-4k".to_owned()));
        assert_eq!(read("", true), Err("\"\" is not a range such as 1k-4k".to_owned()));
        assert_eq!(read("1-2-3", true), Err("\"1-2-3\" is not a range such as 1k-4k".to_owned()));
        assert_eq!(read("-1", true), Err("must not be negative".to_owned()));
        assert_eq!(read("x-2", false), Err("\"x\" is not a number".to_owned()));
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in ".{0,30}") {
            let _ = read(&text, true);
        }

        #[test]
        fn reads_back_what_was_written(a: u64, b: u64) {
            prop_assert_eq!(read(&format!("{a}-{b}"), false), Ok((a.min(b), a.max(b))));
        }
    }
}
