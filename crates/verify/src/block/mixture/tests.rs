//! Blocks that a kill left in the middle of a write.

use super::*;
use crate::block::tests::{block, identity, pattern, spec};
use crate::block::{Identity, Kind};
use iolite_content::Fill;

const SIZE: usize = 1536;
const OFFSET: u64 = 12_288;

/// The write that was there first, and the one after it.
fn writes(offset: u64) -> [Identity; 2] {
    let old = identity(offset, 5);
    // Seeds differ in nearly every byte.
    let new =
        Identity { seconds: 1_700_000_077, nanoseconds: 5_000, seed: !old.seed, ..identity(offset, 70_007) };
    [old, new]
}

fn blocks(spec: &Spec, offset: u64) -> [Vec<u8>; 2] {
    writes(offset).map(|identity| block(spec, SIZE, &identity))
}

fn is_mixture(spec: &Spec, block: &[u8], offset: u64, new_is_copied: bool) -> bool {
    let [old, new] = writes(offset);
    let mut mixture = Mixture::new(spec, block, offset);
    let part =
        |of: Identity, is_copied| Part { job: of.job, sequence: of.sequence, seed: of.seed, is_copied };
    [part(new, new_is_copied), part(old, false), part(new, false)]
        .into_iter()
        .any(|part| mixture.explain(part))
}

/// The beginning of one block and the end of another.
fn cut(one: &[u8], other: &[u8], at: usize) -> Vec<u8> {
    [&one[..at], &other[at..]].concat()
}

/// Kinds with headers, in both layouts, with several intervals and places of the header.
fn variants(shapes: &[(usize, usize)]) -> Vec<Spec> {
    let kinds = Kind::all().filter(|kind| kind.has_header());
    let formats = [HeaderFormat::V342, HeaderFormat::V333];
    let shapes = shapes.iter().flat_map(|shape| formats.map(|format| (*shape, format)));
    let shapes: Vec<_> = shapes.collect();
    let specs = kinds.flat_map(|kind| {
        let of = move |((interval, offset), format)| Spec { interval, offset, format, ..spec(kind) };
        shapes.clone().into_iter().map(of)
    });
    specs.filter(|spec| spec.validate(SIZE).is_ok()).collect()
}

const SHAPES: [(usize, usize); 5] = [(0, 0), (512, 0), (768, 200), (0, 1000), (192, 0)];
/// Headers that lie across sectors and are cut in each of their parts.
const ACROSS: [(usize, usize); 7] = [(0, 470), (0, 480), (0, 484), (0, 490), (0, 500), (300, 0), (0, 1000)];

#[test]
fn sectors_of_several_writes_are_a_mixture() {
    let shapes = [&SHAPES[..], &ACROSS[..]].concat();
    for spec in variants(&shapes) {
        for fill in [spec.fill.clone(), pattern()] {
            let spec = Spec { fill, ..spec.clone() };
            for offset in [OFFSET, OFFSET + 300] {
                let [old, new] = blocks(&spec, offset);
                let sector = |at: &usize| (offset as usize + at).is_multiple_of(SECTOR as usize);
                for at in (0..=SIZE).filter(sector) {
                    assert!(is_mixture(&spec, &cut(&new, &old, at), offset, false), "{at} {spec:?}");
                    assert!(is_mixture(&spec, &cut(&old, &new, at), offset, false), "{at} {spec:?}");
                }
            }
        }
    }
}

#[test]
fn no_byte_of_a_mixture_may_be_another() {
    for (number, spec) in variants(&SHAPES).into_iter().enumerate() {
        let [old, new] = blocks(&spec, OFFSET);
        let step = if spec.kind == Kind::Crc32c { 1 } else { 13 };
        for at in [0, 512, 1024, SIZE] {
            let mut block = cut(&new, &old, at);
            for byte in (number % step..SIZE).step_by(step) {
                block[byte] ^= 1 << (byte % 8);
                assert!(!is_mixture(&spec, &block, OFFSET, false), "{at} {byte} {spec:?}");
                block[byte] ^= 1 << (byte % 8);
            }
        }
    }
}

/// It is unknown only if its time belongs to another write.
#[test]
fn the_checksum_of_a_header_across_sectors_is_checked() {
    for spec in variants(&ACROSS) {
        for fill in [Fill::Random, pattern()] {
            let spec = Spec { fill, ..spec.clone() };
            let is_random = spec.fill == Fill::Random;
            let [old, new] = blocks(&spec, OFFSET);
            let whole = Mixture::new(&spec, &new, OFFSET);
            let headers: Vec<HeaderParts> = whole.headers(&(0..SIZE)).collect();
            for at in [512, 1024, SIZE] {
                let mut block = cut(&new, &old, at);
                for HeaderParts { all, time, checksum } in &headers {
                    let is_torn = |cut: &usize| (time.start + 1..all.end).contains(cut);
                    let known = if is_random { !is_torn(&at) } else { ![512, 1024].iter().any(is_torn) };
                    for byte in time.clone().chain(checksum.clone()).filter(|_| known) {
                        block[byte] ^= 0x10;
                        assert!(!is_mixture(&spec, &block, OFFSET, false), "{at} {byte} {spec:?}");
                        block[byte] ^= 0x10;
                    }
                }
            }
        }
    }
}

#[test]
fn a_copy_may_begin_and_end_anywhere() {
    for spec in variants(&[(0, 0), (512, 0), (0, 480), (0, 484)]) {
        for fill in [spec.fill.clone(), pattern()] {
            let spec = Spec { fill, ..spec.clone() };
            let step = if spec.kind == Kind::Crc32c { 1 } else { 11 };
            let [old, new] = blocks(&spec, OFFSET);
            for at in (0..=SIZE).step_by(step) {
                assert!(is_mixture(&spec, &cut(&new, &old, at), OFFSET, true), "{at} {spec:?}");
                assert!(is_mixture(&spec, &cut(&old, &new, at), OFFSET, true), "{at} {spec:?}");
                let inner = cut(&cut(&old, &new, at.min(64)), &old, at.max(64));
                assert!(is_mixture(&spec, &inner, OFFSET, true), "{at} {spec:?}");
            }
        }
    }
}

#[test]
fn no_byte_of_a_copy_may_be_another() {
    for spec in variants(&[(0, 0), (512, 0), (0, 480), (0, 484)]) {
        let [old, new] = blocks(&spec, OFFSET);
        let headers: Vec<HeaderParts> = Mixture::new(&spec, &new, OFFSET).headers(&(0..SIZE)).collect();
        let step = if spec.kind == Kind::Crc32c { 1 } else { 17 };
        for at in [0, 5, 13, 27, 35, 41, 46, 60, 512, 777, SIZE] {
            let mut block = cut(&new, &old, at);
            let unknown = |byte: &usize| {
                headers.iter().any(|HeaderParts { all, time, checksum }| {
                    let is_across = all.start / 512 != (all.end - 1) / 512;
                    let from = if is_across { all.start } else { time.start };
                    let is_torn = (from + 1..all.end).contains(&at) || spec.fill != Fill::Random;
                    is_torn && (time.contains(byte) || checksum.contains(byte))
                })
            };
            for byte in (at % step..SIZE).step_by(step).filter(|byte| !unknown(byte)) {
                let is = block[byte];
                block[byte] = (0..=255).rfind(|value| ![is, old[byte], new[byte]].contains(value)).unwrap();
                assert!(!is_mixture(&spec, &block, OFFSET, true), "{at} {byte} {spec:?}");
                block[byte] = is;
            }
        }
    }
}

/// A search finds the same writes as an exhaustive one.
#[test]
fn a_search_finds_the_same_as_trying_all() {
    let part = |number: u64| Part {
        job: 3,
        sequence: number,
        seed: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        is_copied: false,
    };
    let shapes = [&SHAPES[..], &ACROSS[..]].concat();
    for (number, spec) in variants(&shapes).into_iter().enumerate() {
        for fill in [Fill::Random, pattern()] {
            let spec = Spec { fill, ..spec.clone() };
            let offset = OFFSET + [0, 300][number % 2];
            let written = |number| {
                let Part { job, sequence, seed, .. } = part(number);
                block(&spec, SIZE, &Identity { sequence, seed, job, ..identity(offset, 0) })
            };
            let first = (SECTOR - offset % SECTOR) as usize;
            let front = cut(&written(70_009), &written(70_001), first);
            let mixed = cut(&front, &written(70_003), first + SECTOR as usize);
            let mut cases = vec![mixed.clone(), vec![0; SIZE], written(70_050), vec![0xee; SIZE]];
            for at in (0..SIZE).step_by(61) {
                let mut damaged = mixed.clone();
                damaged[at] ^= 0x20;
                cases.push(damaged);
            }
            for lost_at in [0, first, SIZE - 512] {
                let mut lost = mixed.clone();
                lost[lost_at..lost_at + 512].fill(0);
                cases.push(lost);
            }
            let candidates = |named: Option<Named>| {
                let is_named = move |part: &Part| {
                    named.is_none_or(|named| {
                        (part.job, part.sequence & named.mask) == (named.job, named.sequence)
                    })
                };
                (70_000..70_020).rev().map(part).filter(is_named)
            };
            for (case, block) in cases.iter().enumerate() {
                let mixture = || {
                    let mut mixture = Mixture::new(&spec, block, offset);
                    assert!(!mixture.explain(part(70_030)), "{case} {spec:?}");
                    mixture
                };
                let mut all = mixture();
                let is_mixture = candidates(None).any(|part| all.explain(part));
                assert_eq!(mixture().search(candidates), is_mixture, "{case} {spec:?}");
                assert!(is_mixture || case > 0, "{spec:?}");
            }
        }
    }
}

/// Even among many writes, only those that a header names are tried, and none for data that no write can have left.
#[test]
fn a_search_asks_for_few_writes() {
    let spec = spec(Kind::Crc32c);
    let [old, new] = writes(OFFSET);
    let whole = block(&spec, SIZE, &old);
    let mut lost = whole.clone();
    lost[512..1024].fill(0);
    for (block, wanted) in [
        (vec![0; SIZE], None),
        (lost, None),
        (whole, Some(Named { job: old.job, sequence: old.sequence, mask: u64::MAX })),
    ] {
        let mut mixture = Mixture::new(&spec, &block, OFFSET);
        let part =
            |of: Identity| Part { job: of.job, sequence: of.sequence, seed: of.seed, is_copied: false };
        let is_lost = wanted.is_none();
        assert!(!mixture.explain(part(if is_lost { old } else { new })));
        let asked = std::cell::RefCell::new(Vec::new());
        assert!(!mixture.search(|named| {
            asked.borrow_mut().push(named);
            std::iter::empty()
        }));
        assert_eq!(asked.into_inner(), Vec::from_iter(wanted.map(Some)));
    }
}

/// One bit of the number of a write in flight is wrong, so that it is the number of another write.
#[test]
fn a_copy_has_no_hole() {
    let spec = Spec { offset: 480, ..spec(Kind::Xxhash) };
    let [_, new] = writes(OFFSET);
    let other = Identity { sequence: new.sequence ^ 0x40, seed: new.seed ^ 0x5555, ..new };
    let mut block = block(&spec, SIZE, &new);
    let is_mixture = |block: &[u8]| {
        let mut mixture = Mixture::new(&spec, block, OFFSET);
        let part =
            |of: Identity, is_copied| Part { job: of.job, sequence: of.sequence, seed: of.seed, is_copied };
        mixture.explain(part(new, true)) || mixture.explain(part(other, false))
    };
    assert!(is_mixture(&block));
    block[480 + 32] ^= 0x40;
    assert!(!is_mixture(&block));
}
