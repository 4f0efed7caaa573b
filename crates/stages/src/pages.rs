//! The pages of the kernel's trace buffers, taken apart (`events/header_page` and `events/header_event` of tracefs
//! describe them).

use iolite_host::Page;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// A tracepoint was passed at this time of the buffer's clock.
    Event(u64, &'a [u8]),
    /// So many records before the next one did not fit into the buffer; 0 = unknown how many.
    Lost(u64),
}

/// The kinds of entries, in the lowest five bits of their first word.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The bits of the time behind them.
const TIME_BITS: u32 = 27;
/// The count of bytes, without flags.
const BYTES: u64 = (1 << TIME_BITS) - 1;
/// Records before this page were lost, and their number follows the last record.
const MISSED: u64 = 1 << 31;
const MISSED_COUNT: u64 = 1 << 30;

/// Visits the records of a page. What is damaged ends it.
pub(crate) fn visit<'a>(bytes: &'a [u8], page: Page, mut each: impl FnMut(Record<'a>)) {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let (Some(mut time), Some(commit)) = (long(0), long(page.commit)) else { return };
    let end = (page.data + (commit & BYTES) as usize).min(bytes.len());
    if commit & MISSED != 0 {
        let count = if commit & MISSED_COUNT != 0 { long(end) } else { None };
        each(Record::Lost(count.unwrap_or(0)));
    }
    let mut at = page.data;
    while at + 4 <= end {
        let Some(head) = word(at) else { return };
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        let next = word(at + 4).unwrap_or(0);
        match kind {
            PADDING if delta == 0 => return,
            PADDING => {
                time += delta;
                at += 4 + next as usize;
            }
            TIME_EXTEND => {
                time += (u64::from(next) << TIME_BITS) + delta;
                at += 8;
            }
            TIME_STAMP => {
                // The highest bits are those of the last time.
                const HIGHEST: u64 = 31 << 59;
                time = (time & HIGHEST) | (u64::from(next) << TIME_BITS) | delta;
                at += 8;
            }
            _ => {
                time += delta;
                let (start, length) = match kind {
                    // The length counts its own word.
                    0 => (at + 8, (next as usize).saturating_sub(4)),
                    words => (at + 4, words as usize * 4),
                };
                let Some(data) = bytes.get(start..start + length).filter(|_| start + length <= end) else {
                    return;
                };
                each(Record::Event(time, data));
                at = start + length;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page { commit: 8, data: 16, size: 4096 };

    fn page(time: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(time.to_ne_bytes());
        bytes.extend(((words.len() as u64 * 4) | flags).to_ne_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes
    }

    fn records(bytes: &[u8]) -> Vec<Record<'_>> {
        let mut all = Vec::new();
        visit(bytes, PAGE, |record| all.push(record));
        all
    }

    fn head(kind: u32, delta: u32) -> u32 {
        (delta << 5) | kind
    }

    #[test]
    fn times_are_sums_of_differences() {
        let bytes =
            page(1000, 0, &[head(2, 5), 1, 2, head(TIME_EXTEND, 7), 1, head(0, 3), 8, 9, head(PADDING, 0)]);
        let found = records(&bytes);
        let second = 1005 + (1 << TIME_BITS) + 7 + 3;
        assert_eq!(
            found,
            [
                Record::Event(1005, &[1_u32.to_ne_bytes(), 2_u32.to_ne_bytes()].concat()),
                Record::Event(second, &9_u32.to_ne_bytes()),
            ]
        );
    }

    #[test]
    fn absolute_times_and_discarded_records() {
        let time: u64 = (3 << 59) | 12_345;
        let bytes = page(time, 0, &[head(TIME_STAMP, 11), 2, head(PADDING, 4), 8, 0, head(1, 1), 77]);
        let at = (3 << 59) | (2 << TIME_BITS) | 11;
        assert_eq!(records(&bytes), [Record::Event(at + 5, &77_u32.to_ne_bytes())]);
    }

    #[test]
    fn losses_are_told_before_what_follows() {
        let mut bytes = page(0, MISSED | MISSED_COUNT, &[head(1, 1), 5]);
        bytes.extend(42_u64.to_ne_bytes());
        assert_eq!(records(&bytes), [Record::Lost(42), Record::Event(1, &5_u32.to_ne_bytes())]);
        assert_eq!(records(&page(0, MISSED, &[])), [Record::Lost(0)]);
    }

    #[test]
    fn damaged_pages_end() {
        assert_eq!(records(&[1, 2, 3]), []);
        assert_eq!(records(&page(0, 0, &[head(28, 1), 5])), []);
        assert_eq!(records(&page(0, 0, &[head(0, 1), 4000])), []);
        assert_eq!(records(&page(0, 4096 - 4, &[head(PADDING, 1), u32::MAX])), []);
    }
}
