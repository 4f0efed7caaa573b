//! The ways in which storage damages data, and the expected diagnosis of each.

use iolite_content::{Fill, PatternPiece};
use iolite_verify::block::{Diagnosis, Identity, Mismatch, Spec, Stamper, Write};

pub const BLOCK: usize = 4096;
pub const BLOCKS: usize = 6;
const SECTOR: usize = 512;

/// A file that was written twice: the second generation should be there. One more block follows its end.
pub struct Image {
    pub old: Vec<u8>,
    pub new: Vec<u8>,
    /// Each variant has other content.
    variant: u64,
}

impl Image {
    pub fn new(spec: &Spec, variant: u64) -> Image {
        let write = |generation: u64| {
            let mut bytes = vec![0; BLOCK * (BLOCKS + 1)];
            let mut stamper = Stamper::new(spec);
            for (number, block) in bytes.chunks_mut(BLOCK).enumerate() {
                stamper.stamp(block, &identity(number, generation, variant));
            }
            bytes
        };
        Image { old: write(0), new: write(1), variant }
    }

    /// The write that is expected in a block.
    pub fn write(&self, number: usize) -> Write {
        let Identity { sequence, seed, job, .. } = identity(number, 1, self.variant);
        Write { sequence: Some(sequence), seed: Some(seed), job: Some(job) }
    }
}

fn identity(number: usize, generation: u64, variant: u64) -> Identity {
    let sequence = number as u64 + generation * 100;
    Identity {
        offset: (number * BLOCK) as u64,
        sequence,
        seed: mixed(sequence + variant * 1000),
        seconds: 1_700_000_000 + sequence as u32,
        nanoseconds: 5 * sequence as u32,
        job: 3,
    }
}

/// A damaged file.
pub struct Damage {
    pub bytes: Vec<u8>,
    /// The most blocks that are wrong.
    pub blocks: u64,
    /// Whether the report of a mismatch is correct.
    pub is_right: Judge,
}

/// Judges a report, given how blocks are written and whether the writes are known.
pub type Judge = Box<dyn Fn(&Spec, bool, &Mismatch) -> bool>;

/// A sort of damage.
pub struct Corrupt {
    pub name: &'static str,
    /// Makes the damage of a sample: the same one each time.
    pub inject: fn(&Image, &Spec, u64) -> Damage,
}

pub fn all() -> Vec<Corrupt> {
    vec![
        Corrupt { name: "bit flip", inject: bit_flip },
        Corrupt { name: "zeroed sectors", inject: zeroed_sectors },
        Corrupt { name: "zeroed block", inject: zeroed_block },
        Corrupt { name: "swapped blocks", inject: swapped },
        Corrupt { name: "stale block", inject: stale },
        Corrupt { name: "torn write", inject: torn },
        Corrupt { name: "shifted data", inject: shifted },
        Corrupt { name: "shifted sectors", inject: shifted_sectors },
        Corrupt { name: "wrong length", inject: wrong_length },
        Corrupt { name: "overwritten bytes", inject: overwritten },
    ]
}

/// A different random-looking number for each input.
fn mixed(number: u64) -> u64 {
    iolite_content::mix(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Two numbers below the limits.
fn draw(sample: u64, first: usize, second: usize) -> (usize, usize) {
    let number = mixed(sample ^ 0xabcd);
    ((number % first as u64) as usize, (number / first as u64 % second as u64) as usize)
}

fn bit_flip(image: &Image, _: &Spec, sample: u64) -> Damage {
    // Every fourth one near the beginning, where headers are.
    let range = if sample.is_multiple_of(4) { 60 } else { BLOCK };
    let (number, at) = draw(sample, BLOCKS, range);
    let (at, bit) = (number * BLOCK + at, (sample % 8) as u8);
    let mut bytes = image.new.clone();
    bytes[at] ^= 1 << bit;
    let wanted = Diagnosis::BitFlip { offset: at as u64, bit };
    Damage { bytes, blocks: 1, is_right: Box::new(move |_, _, found| found.diagnosis == wanted) }
}

fn zeroed_sectors(image: &Image, _: &Spec, sample: u64) -> Damage {
    let (first, count) = draw(sample, BLOCKS * 8 - 1, 3);
    // Less than a block, and nothing beyond it.
    let last = (first + count).min(first / 8 * 8 + 7);
    let last = if (first, last) == (first / 8 * 8, first / 8 * 8 + 7) { last - 1 } else { last };
    let range = first * SECTOR..(last + 1) * SECTOR;
    let mut bytes = image.new.clone();
    bytes[range.clone()].fill(0);
    let is_right = move |_: &Spec, _: bool, found: &Mismatch| match &found.diagnosis {
        // Each interval has its own report, and one may be all zeros.
        Diagnosis::ZeroedSectors(zeroed) => {
            range.start as u64 <= zeroed.start && zeroed.end <= range.end as u64 && zeroed.start < zeroed.end
        }
        Diagnosis::Zeros => found.length < BLOCK && range.start as u64 <= found.offset,
        _ => false,
    };
    Damage { bytes, blocks: 1, is_right: Box::new(is_right) }
}

fn zeroed_block(image: &Image, _: &Spec, sample: u64) -> Damage {
    let (number, _) = draw(sample, BLOCKS, 1);
    let mut bytes = image.new.clone();
    bytes[number * BLOCK..][..BLOCK].fill(0);
    Damage { bytes, blocks: 1, is_right: Box::new(|_, _, found| found.diagnosis == Diagnosis::Zeros) }
}

fn swapped(image: &Image, _: &Spec, sample: u64) -> Damage {
    let (one, by) = draw(sample, BLOCKS, BLOCKS - 1);
    let other = (one + 1 + by) % BLOCKS;
    let mut bytes = image.new.clone();
    bytes[one * BLOCK..][..BLOCK].copy_from_slice(&image.new[other * BLOCK..][..BLOCK]);
    bytes[other * BLOCK..][..BLOCK].copy_from_slice(&image.new[one * BLOCK..][..BLOCK]);
    let is_right = move |_: &Spec, _: bool, found: &Mismatch| {
        let from = if found.block_offset == (one * BLOCK) as u64 { other } else { one };
        let belongs_to = (from * BLOCK) as u64 + (found.offset - found.block_offset);
        found.diagnosis == Diagnosis::Misdirected { belongs_to }
    };
    Damage { bytes, blocks: 2, is_right: Box::new(is_right) }
}

fn stale(image: &Image, _: &Spec, sample: u64) -> Damage {
    let (number, _) = draw(sample, BLOCKS, 1);
    let mut bytes = image.new.clone();
    bytes[number * BLOCK..][..BLOCK].copy_from_slice(&image.old[number * BLOCK..][..BLOCK]);
    mark(&mut bytes, &image.new);
    let (found, expected) = (number as u64, number as u64 + 100);
    let wanted = Diagnosis::Older { found, expected, passes: None, in_flight_above: None };
    Damage { bytes, blocks: 1, is_right: Box::new(move |_, known, found| known && found.diagnosis == wanted) }
}

fn torn(image: &Image, _: &Spec, sample: u64) -> Damage {
    let (number, cut) = draw(sample, BLOCKS, 7);
    let cut = number * BLOCK + (cut + 1) * SECTOR;
    let is_beginning = sample.is_multiple_of(2);
    let old = if is_beginning { cut..(number + 1) * BLOCK } else { number * BLOCK..cut };
    let mut bytes = image.new.clone();
    bytes[old.clone()].copy_from_slice(&image.old[old]);
    mark(&mut bytes, &image.new);
    let is_right = move |spec: &Spec, known: bool, found: &Mismatch| match found.diagnosis {
        // A check that does not know the writes cannot distinguish the write from the rest.
        Diagnosis::Torn { at, beginning } => {
            let at = at as usize;
            // If data is not checked, or is the same, only the headers distinguish writes.
            let is_near = at.abs_diff(cut) < found.length && at.is_multiple_of(found.length);
            let sees_data = spec.kind.has_digest() && spec.fill == Fill::Random;
            (at == cut || !sees_data && is_near) && (!known || beginning == is_beginning)
        }
        // Both have the same data: only the header of an interval can differ.
        Diagnosis::Older { found: old, expected, .. } => {
            let is_same = spec.fill != Fill::Random;
            known && is_same && (old, expected) == (number as u64, number as u64 + 100)
        }
        _ => false,
    };
    Damage { bytes, blocks: 1, is_right: Box::new(is_right) }
}

fn shifted(image: &Image, spec: &Spec, sample: u64) -> Damage {
    let (number, which) = draw(sample, BLOCKS, 6);
    let by = [1, 8, 61, 100, 512, 1000][which];
    // A pattern that moves by a multiple of its period is unchanged.
    let period = period(spec);
    let by = if period > 0 && by % period == 0 { by + 1 } else { by };
    let (start, up) = (number * BLOCK, sample.is_multiple_of(2));
    let mut bytes = image.new.clone();
    if up {
        bytes.copy_within(start..start + BLOCK - by, start + by);
        bytes[start..start + by].fill(0xa5);
    } else {
        bytes.copy_within(start + by..start + BLOCK + by, start);
    }
    let moved = if up { by as i64 } else { -(by as i64) };
    let is_right = move |spec: &Spec, known: bool, found: &Mismatch| match found.diagnosis {
        Diagnosis::Shifted(by) if period > 0 => (by - moved) % period as i64 == 0,
        Diagnosis::Shifted(by) => by == moved,
        // A part of the header is gone without a replacement: there is no other evidence.
        Diagnosis::Unknown => !known && !up && by < spec.format.size(),
        _ => false,
    };
    Damage { bytes, blocks: 2, is_right: Box::new(is_right) }
}

/// Sectors have moved within a block. Its last sector (or its first) is right.
fn shifted_sectors(image: &Image, spec: &Spec, sample: u64) -> Damage {
    let (number, by) = draw(sample, BLOCKS, 2);
    let by = (by + 1) * SECTOR;
    let (start, end, up) = (number * BLOCK, (number + 1) * BLOCK, sample.is_multiple_of(2));
    let mut bytes = image.new.clone();
    if up {
        bytes.copy_within(start..end - by, start + by);
    } else {
        bytes.copy_within(start + by..end, start);
    }
    mark(&mut bytes, &image.new);
    let moved = if up { by as i64 } else { -(by as i64) };
    let is_pattern = period(spec) > 0;
    let is_right = move |spec: &Spec, known: bool, found: &Mismatch| match found.diagnosis {
        Diagnosis::Shifted(by) => by == moved || is_pattern,
        // No part of a block that belongs to another write shows where it was.
        Diagnosis::Unknown => !known && !up,
        // Smaller intervals come from one another; a pattern resembles itself; compressed data is zero in places.
        _ => found.length < BLOCK || is_pattern || spec.offset > 0 || spec.compress.is_some(),
    };
    Damage { bytes, blocks: 1, is_right: Box::new(is_right) }
}

fn wrong_length(image: &Image, spec: &Spec, sample: u64) -> Damage {
    let (number, _) = draw(sample, BLOCKS - 1, 1);
    // One write of two blocks in place of two writes of one block.
    let mut two = vec![0; 2 * BLOCK];
    let one_interval = Spec { interval: 0, ..spec.clone() };
    Stamper::new(&one_interval).stamp(&mut two, &identity(number, 1, image.variant));
    let mut bytes = image.new.clone();
    bytes[number * BLOCK..][..2 * BLOCK].copy_from_slice(&two);
    mark(&mut bytes, &image.new);
    let wanted = Diagnosis::WrongLength { written: 2 * BLOCK as u64 };
    let is_right = move |_: &Spec, _: bool, found: &Mismatch| {
        // It has a header only at its beginning; a pattern has no header, and the second block has the offset of the
        // first.
        let is_rest = found.offset != (number * BLOCK) as u64;
        if is_rest { found.header.is_none() } else { found.diagnosis == wanted }
    };
    Damage { bytes, blocks: 2, is_right: Box::new(is_right) }
}

fn overwritten(image: &Image, _: &Spec, sample: u64) -> Damage {
    let (number, at) = draw(sample, BLOCKS, BLOCK - 100 - 700);
    let at = number * BLOCK + 700 + at;
    let mut bytes = image.new.clone();
    for (place, value) in bytes[at..at + 20].iter_mut().zip(1..) {
        *place ^= mixed(sample + value) as u8 | 1;
    }
    let is_right = move |spec: &Spec, known: bool, found: &Mismatch| {
        // The part of the damage that is in this interval.
        let first = at.max(found.offset as usize);
        let end = (at + 20).min(found.offset as usize + found.length);
        let is_all = |differences: iolite_verify::block::Differences| {
            (differences.first, differences.last, differences.bytes)
                == (first as u64, end as u64 - 1, (end - first) as u64)
        };
        let is_exact = found.differences.is_some_and(is_all);
        let is_header_hit = spec.kind.has_header() && found.header.is_none();
        match found.diagnosis {
            // Without the header, only the writer knows the intended content.
            Diagnosis::Damaged | Diagnosis::Unknown if is_header_hit && !known => true,
            Diagnosis::DamagedHeader => is_header_hit && (is_exact || !known),
            Diagnosis::Damaged => is_exact,
            Diagnosis::BitFlip { offset, .. } => is_exact && end - first == 1 && offset == first as u64,
            _ => false,
        }
    };
    Damage { bytes, blocks: 1, is_right: Box::new(is_right) }
}

/// Both generations of a pattern may be equal. Then this changes a byte that is not checked, so that there is a damage.
fn mark(bytes: &mut [u8], right: &[u8]) {
    if bytes == right {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    }
}

/// The period of the data in bytes; 0: it does not repeat.
fn period(spec: &Spec) -> usize {
    let Fill::Pattern(pieces) = &spec.fill else { return 0 };
    let bytes = |piece: &PatternPiece| match piece {
        PatternPiece::Bytes(bytes) => bytes.len(),
        PatternPiece::Offset => 8,
    };
    pieces.iter().map(bytes).sum()
}
