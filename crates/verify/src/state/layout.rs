//! The layout of a state file. All numbers are little endian.
//!
//! | at | what |
//! |---|---|
//! | 0 | `iolstate` |
//! | 8 | u64: version of the layout, 1 |
//! | 16 | u64: XXH3 of the bytes from 24 to the end of the description |
//! | 24 | u64: bytes of the file |
//! | 32 | u64: bytes of the description |
//! | 40 | the description: JSON |
//! | D | u64: writes that were issued |
//! | D+8 | u64: writes that were acknowledged |
//! | D+16 | for each file, the writes covered by a flush: see below |
//! | S | for each slot of the depth, 4 × u64: number of the write + 1 (0: free), file, offset, length |
//! | T | for each file, the table of acknowledged writes: u32 for each block |
//! | F | for each file, the table of flushed writes: u32 for each block; only where there are flushes |
//!
//! D is the end of the description, rounded up to a multiple of 4096, as are T and the beginning of each table. S
//! follows the words of the files.
//!
//! The coverage of the last flush of a file is written next to that of the flush before it; then a word is switched.
//! First comes that word, a u64 of 0 or 1 that selects the valid one of the two; then twice 2 + depth × u64: a number
//! (all writes with smaller numbers are covered), how many exceptions there are, and the numbers of these writes.

use super::setup::Setup;

/// The first bytes.
pub(super) const MAGIC: &[u8; 8] = b"iolstate";
pub(super) const VERSION: u64 = 1;
/// Bytes before the description.
pub(super) const FRONT: u64 = 40;
/// The first byte that the checksum covers.
pub(super) const CHECKED: u64 = 24;
/// Words of a slot for a write in flight.
pub(super) const PLACE_WORDS: u64 = 4;
const PAGE: u64 = 4096;

/// The writes that a flush has made durable: those that had been acknowledged when it was issued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// All writes with smaller numbers are covered,
    pub below: u64,
    /// except for these, which were in flight.
    pub except: Vec<u64>,
}

impl Covered {
    /// Whether a write is covered.
    pub fn has(&self, number: u64) -> bool {
        number < self.below && !self.except.contains(&number)
    }
}

/// The places in the file, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) issued: u64,
    pub(super) acknowledged: u64,
    flushed: u64,
    depth: u32,
    pub(super) places: u64,
    pub(super) tables: Vec<Tables>,
    pub(super) total: u64,
}

/// The tables of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) blocks: u64,
    pub(super) acknowledged: u64,
    pub(super) flushed: Option<u64>,
}

impl Layout {
    /// The layout for a description of this many bytes. `None`: its numbers contradict each other.
    pub(super) fn new(setup: &Setup, description: u64) -> Option<Layout> {
        let page = |at: u64| at.checked_next_multiple_of(PAGE);
        let issued = page(FRONT.checked_add(description)?)?;
        let flushed = issued + 16;
        let words_per_file = 1 + 2 * Layout::covered_words(setup.depth);
        let places = flushed.checked_add((8 * words_per_file).checked_mul(setup.files.len() as u64)?)?;
        let mut end = page(places.checked_add(8 * PLACE_WORDS * u64::from(setup.depth))?)?;
        let mut tables = Vec::with_capacity(setup.files.len());
        for file in &setup.files {
            file.offset.checked_add(file.length)?;
            let blocks =
                file.length.checked_next_multiple_of(setup.block.max(1))?.checked_div(setup.block)?;
            tables.push(Tables { blocks, acknowledged: end, flushed: None });
            end = page(end.checked_add(blocks.checked_mul(4)?)?)?;
        }
        if setup.has_flushes {
            for table in &mut tables {
                table.flushed = Some(end);
                end = page(end.checked_add(4 * table.blocks)?)?;
            }
        }
        let (acknowledged, depth) = (issued + 8, setup.depth);
        Some(Layout { issued, acknowledged, flushed, depth, places, tables, total: end })
    }

    /// How many words the coverage of a flush takes.
    pub(super) fn covered_words(depth: u32) -> u64 {
        2 + u64::from(depth)
    }

    /// The word that selects one of a file's two flushes.
    pub(super) fn which_flush(&self, file: u32) -> u64 {
        self.flushed + 8 * (1 + 2 * Layout::covered_words(self.depth)) * u64::from(file)
    }

    /// The first word of the coverage of one of the two flushes.
    pub(super) fn covered(&self, file: u32, which: u64) -> u64 {
        self.which_flush(file) + 8 * (1 + which * Layout::covered_words(self.depth))
    }

    /// The first word of a slot for a write in flight.
    pub(super) fn place(&self, place: u32) -> u64 {
        self.places + 8 * PLACE_WORDS * u64::from(place)
    }
}
