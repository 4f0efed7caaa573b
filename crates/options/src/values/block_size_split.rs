//! `bssplit`: a mix of block sizes, `4k/10:64k/50:32k/40`, per direction with commas.

use super::{Notes, integer, split};
use crate::SplitEntry;

/// Parses the split of one direction.
///
/// Entries without a percentage share the remainder evenly. If the percentages add up to less than 100, the last entry
/// gets the rest, and a note says so.
///
/// # Errors
/// A block size is not a positive number, a share is not a percentage, or the percentages add up to more than 100.
pub fn block_size_split(text: &str, kb_base: u32, notes: &mut Notes) -> Result<Vec<SplitEntry>, String> {
    let parts = split(text, &[':']);
    let mut entries = Vec::with_capacity(parts.len());
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        entries.push(entry(part, kb_base, notes)?);
    }
    let given: u32 = entries.iter().filter_map(|(_, percent)| *percent).sum();
    if given > 100 {
        return Err(format!("the percentages add up to {given}, more than 100"));
    }
    let open = entries.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
    let left = 100 - given;
    if open == 0 && left > 0 && !entries.is_empty() {
        notes.push(format!("the percentages add up to {given} only; the last size gets the other {left}"));
    }
    let last = entries.len().saturating_sub(1);
    let mut still_open = open;
    let mut still_left = left;
    Ok(entries
        .into_iter()
        .enumerate()
        .map(|(index, (size, percent))| {
            let percent = match percent {
                // Whole percents: the remainder of a division goes to the entries at the end.
                None => {
                    let share = still_left / still_open;
                    still_open -= 1;
                    still_left -= share;
                    share
                }
                Some(percent) if open == 0 && index == last => percent + left,
                Some(percent) => percent,
            };
            SplitEntry { size, percent }
        })
        .collect())
}

/// One `size[/percent]`.
fn entry(part: &str, kb_base: u32, notes: &mut Notes) -> Result<(u64, Option<u32>), String> {
    let pieces = split(part, &['/']);
    let size = integer(pieces[0], kb_base, notes)?;
    let size = match u64::try_from(size) {
        Ok(size @ 1..) => size,
        _ => return Err(format!("block size {size} is less than 1")),
    };
    if pieces.len() > 2 {
        notes.ignore(format!("\"/{}\" in \"{part}\" means nothing", pieces[2..].join("/")), ", ignored")?;
    }
    let percent = match pieces.get(1).map(|percent| percent.trim_end_matches('%')) {
        None | Some("") => None,
        Some(text) => match u32::try_from(integer(text, kb_base, notes)?) {
            Ok(percent @ 0..=100) => Some(percent),
            _ => return Err(format!("\"{text}\" is not a percentage from 0 to 100")),
        },
    };
    Ok((size, percent))
}

/// Writes a split the way [`block_size_split`] reads it.
pub fn format_block_size_split(entries: &[SplitEntry]) -> String {
    entries.iter().map(|entry| format!("{}/{}", entry.size, entry.percent)).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    fn read(text: &str) -> (Result<Vec<(u64, u32)>, String>, usize) {
        let mut notes = Notes::of(Name::Fio);
        let entries = block_size_split(text, 1024, &mut notes)
            .map(|entries| entries.iter().map(|entry| (entry.size, entry.percent)).collect());
        (entries, notes.len())
    }

    /// Shares as measured over 20 000 I/Os of the reference program, to the nearest percent.
    #[test]
    fn shares() {
        for (text, expected, notes) in [
            ("4k/10:64k/50:32k/40", vec![(4096, 10), (65536, 50), (32768, 40)], 0),
            ("4k/50:8k", vec![(4096, 50), (8192, 50)], 0),
            ("4k/50:1k/:32k/", vec![(4096, 50), (1024, 25), (32768, 25)], 0),
            ("4k/:8k/50", vec![(4096, 50), (8192, 50)], 0),
            ("4k/33:8k:16k:32k", vec![(4096, 33), (8192, 22), (16384, 22), (32768, 23)], 0),
            ("4k:8k", vec![(4096, 50), (8192, 50)], 0),
            ("4k/100:8k", vec![(4096, 100), (8192, 0)], 0),
            ("4k/0:8k/100", vec![(4096, 0), (8192, 100)], 0),
            ("4k", vec![(4096, 100)], 0),
            ("4k/10:8k/20", vec![(4096, 10), (8192, 90)], 1),
            ("4k/10:8k/10:16k/10", vec![(4096, 10), (8192, 10), (16384, 80)], 1),
            ("4k/50/3:8k/50", vec![(4096, 50), (8192, 50)], 1),
            ("4k/25%:8k/75%", vec![(4096, 25), (8192, 75)], 0),
        ] {
            assert_eq!(read(text), (Ok(expected), notes), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(read("4k/60:8k/60").0, Err("the percentages add up to 120, more than 100".to_owned()));
        assert_eq!(read("4k/101").0, Err("\"101\" is not a percentage from 0 to 100".to_owned()));
        assert_eq!(read("x").0, Err("\"x\" is not a number".to_owned()));
        assert_eq!(read("4k/x").0, Err("\"x\" is not a number".to_owned()));
        assert_eq!(read("0/50").0, Err("block size 0 is less than 1".to_owned()));
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in "[0-9kx/:%,-]{0,40}") {
            let _ = read(&text);
        }

        #[test]
        fn shares_add_up_and_read_back(sizes in prop::collection::vec((1u64..1 << 40, 0u32..5), 1..20)) {
            let text: Vec<String> = sizes.iter().map(|(size, percent)| match percent {
                0 => size.to_string(),
                percent => format!("{size}/{percent}"),
            }).collect();
            let entries = block_size_split(&text.join(":"), 1024, &mut Notes::of(Name::Fio)).unwrap();
            prop_assert_eq!(entries.iter().map(|entry| entry.percent).sum::<u32>(), 100);
            let again = block_size_split(&format_block_size_split(&entries), 1024, &mut Notes::of(Name::Fio)).unwrap();
            prop_assert_eq!(again, entries);
        }
    }
}
