//! A map of the last write of each block, with four bytes per block.
//!
//! The entry of a block holds the number of the write that covered it last (30 bits of it), and whether it is the first
//! or the last block of that write. So if later writes overwrite the beginning, the end or the middle of a write, this
//! is recognised without storing lengths. The entry of a block that was never written is 0.

use super::Written;
use crate::{Error, Io, Region};
use iolite_types::Direction;

const FIRST: u32 = 1 << 31;
const LAST: u32 = 1 << 30;
const NUMBER: u32 = LAST - 1;
/// A stored number is the number of the write modulo this, plus one: it is never 0.
const CYCLE: u64 = NUMBER as u64;

/// The last write of each block.
#[derive(Clone, Debug)]
pub struct WriteMap {
    slot: u64,
    files: Vec<FileMap>,
}

#[derive(Clone, Debug)]
struct FileMap {
    region: Region,
    slots: Vec<u32>,
}

impl WriteMap {
    /// A map of these regions in blocks of `slot` bytes. Its memory is touched only when blocks are written.
    ///
    /// # Errors
    ///
    /// [`Error::HistoryMemory`] if there is no memory for the map.
    pub fn new(files: &[Region], slot: u64) -> Result<WriteMap, Error> {
        let files = files.iter().map(|&region| {
            let blocks = region.length.div_ceil(slot);
            let count = usize::try_from(blocks).map_err(|_| Error::HistoryMemory { blocks })?;
            Ok(FileMap { region, slots: zeros(count).ok_or(Error::HistoryMemory { blocks })? })
        });
        Ok(WriteMap { slot, files: files.collect::<Result<_, _>>()? })
    }

    /// The bytes of memory that the map takes when all blocks have been written.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| size_of_val(&file.slots[..]) as u64).sum()
    }

    /// Records a write, which overwrites earlier ones.
    pub fn wrote(&mut self, written: Written) {
        let Io { file, offset, length, .. } = written.io;
        let slot = self.slot;
        let FileMap { region, slots } = &mut self.files[file as usize];
        let start = offset - region.offset;
        let range = (start / slot) as usize..(start + length).div_ceil(slot) as usize;
        let fits = start.is_multiple_of(slot) && length.is_multiple_of(slot);
        debug_assert!(fits, "{:?} in blocks of {slot}", written.io);
        let place = &mut slots[range];
        let number = (written.number % CYCLE) as u32 + 1;
        place.fill(if fits { number } else { 0 });
        if fits && let [first, ..] = place {
            *first |= FIRST;
        }
        if fits && let [.., last] = place {
            *last |= LAST;
        }
    }

    /// Forgets all writes that touch this place: its content is unknown now.
    pub fn forget(&mut self, io: &Io) {
        let slot = self.slot;
        let FileMap { region, slots } = &mut self.files[io.file as usize];
        let start = io.offset - region.offset;
        slots[(start / slot) as usize..(start + io.length).div_ceil(slot) as usize].fill(0);
    }

    /// The first write at or after this place that is still intact. `issued` is the number of writes so far.
    pub fn next(&self, file: u32, offset: u64, issued: u64) -> Option<Written> {
        let mut offset = offset;
        for (file, map) in (file..).zip(&self.files[(file as usize).min(self.files.len())..]) {
            let from = offset.saturating_sub(map.region.offset).div_ceil(self.slot) as usize;
            if let Some(found) = whole_write(&map.slots, from) {
                return Some(self.written(file, found, issued));
            }
            offset = 0;
        }
        None
    }

    /// The first write that lies entirely within this place and is still intact.
    pub fn first_within(&self, place: &Io, issued: u64) -> Option<Written> {
        let map = &self.files[place.file as usize];
        let start = place.offset.saturating_sub(map.region.offset);
        let end = (place.offset + place.length).saturating_sub(map.region.offset);
        let end = ((end / self.slot) as usize).min(map.slots.len());
        let found = whole_write(&map.slots[..end], start.div_ceil(self.slot) as usize)?;
        Some(self.written(place.file, found, issued))
    }

    /// The write in these slots of a file, from the first to the last inclusive.
    fn written(&self, file: u32, (first, last): (usize, usize), issued: u64) -> Written {
        let FileMap { region, slots } = &self.files[file as usize];
        let stored = u64::from(slots[first] & NUMBER) - 1;
        let io = Io {
            file,
            offset: region.offset + first as u64 * self.slot,
            length: (last - first + 1) as u64 * self.slot,
            direction: Direction::Write,
        };
        Written { io, number: latest(stored, issued) }
    }

    /// Whether the map cannot distinguish writes with these numbers, because it stores the same number for both.
    pub fn same(one: u64, other: u64) -> bool {
        one % CYCLE == other % CYCLE
    }
}

/// The first and the last slot of the first complete write at or after `from`.
fn whole_write(slots: &[u32], from: usize) -> Option<(usize, usize)> {
    let mut first = from;
    while first < slots.len() {
        let value = slots[first];
        if value & FIRST == 0 {
            first += 1;
            continue;
        }
        let number = value & NUMBER;
        let mut last = first;
        while slots[last] & LAST == 0
            && last + 1 < slots.len()
            && slots[last + 1] & (NUMBER | FIRST) == number
        {
            last += 1;
        }
        if slots[last] & LAST != 0 {
            return Some((first, last));
        }
        first = last + 1;
    }
    None
}

/// The largest number below `issued` that the map stores as `stored`.
fn latest(stored: u64, issued: u64) -> u64 {
    let last = issued.saturating_sub(1);
    let base = last - last % CYCLE + stored;
    if base > last { base.saturating_sub(CYCLE) } else { base }
}

/// This many zeros, on pages that are not touched before they are written.
fn zeros(count: usize) -> Option<Vec<u32>> {
    // `vec![0; n]` touches no page, but aborts the process if the address space is exhausted.
    let mut probe: Vec<u32> = Vec::new();
    probe.try_reserve_exact(count).ok()?;
    drop(probe);
    Some(vec![0; count])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_after_many_writes() {
        for issued in [1, 2, CYCLE, CYCLE + 1, 5 * CYCLE + 7] {
            for back in [1, 2, 1000, CYCLE] {
                if back <= issued {
                    let number = issued - back;
                    assert_eq!(latest(number % CYCLE, issued), number, "{issued} {back}");
                }
            }
        }
    }

    #[test]
    fn a_hundred_million_blocks_fit_in_a_gibibyte() {
        let region = Region { offset: 0, length: 100_000_000 * 4096 };
        let map = WriteMap::new(&[region], 4096).unwrap();
        assert_eq!(map.bytes(), 400_000_000);
    }
}
