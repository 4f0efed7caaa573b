//! Compares every kind of history with a table of the last write of each byte.

use super::*;
use crate::{General, Generator, Next, Region};
use iolite_types::PerDirection;
use proptest::prelude::*;
use std::collections::HashMap;

fn spec(length: u64) -> Spec {
    Spec {
        files: vec![Region { offset: 4096, length }],
        mix: Mix::Single(Direction::Write),
        random_percent: PerDirection::all(100),
        seed: 7,
        ..Spec::plain(length, 4096)
    }
}

fn sizes(write: BlockSize, align: u64) -> (PerDirection<BlockSize>, PerDirection<u64>) {
    (PerDirection::new(write.clone(), write.clone(), write), PerDirection::all(align))
}

/// The kinds of workloads, with the history that each needs.
fn workloads() -> Vec<(&'static str, Spec, Need)> {
    let base = || spec(1 << 17);
    let sequential = Spec { random_percent: PerDirection::all(0), ..base() };
    let (ranged, ranged_align) = sizes(BlockSize::Range(1024, 8192), 1024);
    let (split, split_align) = sizes(BlockSize::Split(vec![(2048, 50), (6144, 50)]), 2048);
    let mixed = Spec { mix: Mix::ReadWrite(50), ..base() };
    vec![
        ("write", sequential.clone(), Need::Replay),
        ("randwrite", base(), Need::Replay),
        ("randrw", mixed, Need::Replay),
        ("lfsr", Spec { lfsr: true, ..base() }, Need::Replay),
        ("bsrange", Spec { block_size: ranged.clone(), align: ranged_align, ..base() }, Need::Replay),
        ("norandommap", Spec { cover: false, ..base() }, Need::Map(4096)),
        ("io_size > size", Spec { pass_bytes: Some(3 << 17), ..base() }, Need::Map(4096)),
        ("percentage_random", Spec { random_percent: PerDirection::all(50), ..base() }, Need::Map(4096)),
        ("runs", Spec { ios_per_random: 4, ..base() }, Need::Map(4096)),
        ("skips", Spec { sequential_skip: 2048, ..sequential.clone() }, Need::Map(2048)),
        ("odd skips", Spec { sequential_skip: -1000, ..sequential }, Need::Extents),
        (
            "sizes that overlap",
            Spec { block_size: ranged, align: ranged_align, cover: false, ..base() },
            Need::Map(1024),
        ),
        ("split", Spec { block_size: split, align: split_align, cover: false, ..base() }, Need::Map(2048)),
        (
            "unaligned",
            {
                let (sizes, align) = sizes(BlockSize::Range(1000, 5000), 1000);
                Spec { block_size: sizes, align, unaligned: true, cover: false, ..base() }
            },
            Need::Extents,
        ),
    ]
}

/// All writes of a pass, and those that have not been overwritten, from a table of bytes.
fn truth(spec: &Spec, writes: usize) -> (Vec<Written>, Vec<Written>) {
    let mut generator = General::new(spec).unwrap();
    let mut bytes: HashMap<u64, u64> = HashMap::new();
    let mut all: Vec<Written> = Vec::new();
    while all.len() < writes {
        match generator.next() {
            Next::Io(io) if io.direction == Direction::Write => {
                let number = all.len() as u64;
                (io.offset..io.offset + io.length).for_each(|byte| {
                    bytes.insert(byte, number);
                });
                all.push(Written { io, number });
            }
            Next::Done => break,
            _ => {}
        }
    }
    let whole = |written: &&Written| {
        let Io { offset, length, .. } = written.io;
        (offset..offset + length).all(|byte| bytes[&byte] == written.number)
    };
    let mut standing: Vec<Written> = all.iter().filter(whole).copied().collect();
    standing.sort_by_key(|written| written.io.offset);
    (all, standing)
}

fn standing(history: &Standing, issued: u64) -> Vec<Written> {
    let mut found: Vec<Written> = Vec::new();
    let mut place = (0, 0);
    while let Some(written) = history.next(place.0, place.1, issued) {
        place = (written.io.file, written.io.offset + written.io.length);
        found.push(written);
    }
    found
}

#[test]
fn each_workload_has_the_expected_need() {
    for (name, spec, need) in workloads() {
        assert_eq!(Need::of(&spec, true), need, "{name}");
        if need == Need::Replay {
            assert!(matches!(Need::of(&spec, false), Need::Map(_)), "{name}");
        }
    }
}

#[test]
fn replays_are_the_writes_themselves() {
    for (name, spec, _) in workloads() {
        let (all, _) = truth(&spec, usize::MAX);
        let mut replay = Replay::new(&spec).unwrap();
        let replayed: Vec<Written> = std::iter::from_fn(|| replay.next_write()).collect();
        assert_eq!(replayed, all, "{name}");
    }
}

#[test]
fn workloads_without_a_history_repeat_no_block() {
    for (name, spec, need) in workloads() {
        let (all, standing) = truth(&spec, usize::MAX);
        assert!(need != Need::Replay || all.len() == standing.len(), "{name}");
    }
}

#[test]
fn histories_know_the_last_writes() {
    for (name, spec, _) in workloads() {
        for stop in [usize::MAX, 20] {
            let (all, expected) = truth(&spec, stop);
            for need in [Need::of(&spec, false), Need::Extents] {
                let mut history = Standing::new(&spec, need).unwrap().unwrap();
                all.iter().for_each(|&written| history.wrote(written));
                assert_eq!(standing(&history, all.len() as u64), expected, "{name} {need:?}");
            }
        }
    }
}

#[test]
fn a_few_writes_far_apart_are_listed() {
    let files = [Region { offset: 0, length: 1 << 40 }, Region { offset: 0, length: 4096 }];
    assert_eq!(Need::Map(512).map_bytes(&files), (8 << 30) + 32);
    assert!(Need::Map(512).is_more_than_list(&files, 100_000_000));
    assert!(!Need::Map(512).is_more_than_list(&files, 200_000_000));
    assert!(!Need::Extents.is_more_than_list(&files, 1));
}

proptest! {
    #![proptest_config(iolite_testing::properties(256))]

    /// For any writes in blocks of 512, a map and a list of extents agree, even if writes are forgotten.
    #[test]
    fn map_and_extents_agree(
        writes in prop::collection::vec((0u64..60, 1u64..9, any::<bool>()), 1..80),
        (from, to) in (0u64..40_000, 0u64..40_000),
    ) {
        let spec = Spec { files: vec![Region { offset: 0, length: 70 * 512 }], ..spec(0) };
        let mut map = Standing::new(&spec, Need::Map(512)).unwrap().unwrap();
        let mut extents = Standing::new(&spec, Need::Extents).unwrap().unwrap();
        for (number, &(block, blocks, failed)) in (0..).zip(&writes) {
            let io = Io { offset: block * 512, length: blocks * 512, file: 0, direction: Direction::Write };
            for history in [&mut map, &mut extents] {
                if failed { history.forget(&io) } else { history.wrote(Written { io, number }) }
            }
        }
        let issued = writes.len() as u64;
        let all = standing(&map, issued);
        prop_assert_eq!(&all, &standing(&extents, issued));
        let place = Io { offset: from, length: to.saturating_sub(from), file: 0, direction: Direction::Read };
        let inside = |written: &&Written| written.io.offset >= from && written.io.offset + written.io.length <= to;
        let first = all.iter().find(inside).copied();
        prop_assert_eq!((map.first_within(&place, issued), extents.first_within(&place, issued)), (first, first));
    }
}
