//! Entries of the tables: the number of a write, and whether the block is its first and its last one.
//!
//! Numbers are kept modulo [`CYCLE`], plus one: an entry of 0 stands for an unknown block.

/// The block is the first one of the write.
pub(super) const FIRST: u32 = 1 << 31;
/// The block is the last one of the write.
pub(super) const LAST: u32 = 1 << 30;
/// The bits of the number.
pub(super) const NUMBER: u32 = LAST - 1;
/// The number of different numbers.
pub(super) const CYCLE: u64 = NUMBER as u64;

/// The entry for a write, without its ends.
pub(super) fn of(number: u64) -> u32 {
    (number % CYCLE) as u32 + 1
}

/// The largest number below `issued` that an entry can stand for. (An entry older than the last thousand million writes
/// is mistaken for a newer one.)
pub(super) fn latest(entry: u32, issued: u64) -> u64 {
    let kept = u64::from(entry & NUMBER).saturating_sub(1);
    let last = issued.saturating_sub(1);
    let number = last - last % CYCLE + kept;
    if number > last { number.saturating_sub(CYCLE) } else { number }
}
