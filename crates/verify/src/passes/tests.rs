//! Random workloads, written in any number of passes to a disk in memory, and checked by a job that does not know how
//! many there were.

use super::*;
use crate::block::{Diagnosis, Identity, Kind, Mismatch, Spec as Blocks, Stamper};
use crate::question::seed_of;
use crate::rivals::Rivals;
use crate::rules::{EarlierRun, ReadBackRules, StateRules};
use crate::verification::Verification;
use crate::{Owners, Rules};
use iolite_types::{BlockSize, Direction, PerDirection};
use iolite_workload::{General, Generator, Mix, Next, Region};
use proptest::prelude::*;
use std::sync::Arc;

const SECTOR: u64 = 512;
const SEED: u64 = 7;

#[test]
fn runs_grow_and_join_in_any_order() {
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [0, 2, 4, 1, 3], [3, 1, 0, 4, 2]] {
        let mut runs = Runs::default();
        for expected in order {
            runs.insert(expected, 10);
            runs.insert(expected, 10);
        }
        assert_eq!(runs.0.iter().collect::<Vec<_>>(), [(&0, &(5, 10))], "{order:?}");
        assert_eq!((runs.get(4), runs.get(5)), (Some(14), None));
    }
    let mut runs = Runs::default();
    (0..6).for_each(|expected| runs.insert(expected, if expected < 3 { 6 } else { 0 }));
    assert_eq!(runs.0.len(), 2);
    assert_eq!((runs.get(2), runs.get(3)), (Some(8), Some(3)));
}

/// How the run repeats its workload.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repeat {
    /// `loops`
    Loops,
    /// `io_size` above `size`
    Laps,
    /// `time_based`
    Endless,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Places {
    Sequential,
    Covering,
    Anywhere,
    Mixed,
    Sizes,
}

fn workload(places: Places, blocks: u64, seed: u64) -> Spec {
    let random = places != Places::Sequential;
    let size = match places {
        Places::Sizes => BlockSize::Range(SECTOR, 4 * SECTOR),
        _ => BlockSize::Fixed(SECTOR),
    };
    Spec {
        files: vec![Region { offset: 0, length: blocks * SECTOR }],
        mix: if places == Places::Mixed { Mix::ReadWrite(40) } else { Mix::Single(Direction::Write) },
        random_percent: PerDirection::all(if random { 100 } else { 0 }),
        cover: places != Places::Anywhere,
        block_size: PerDirection::new(size.clone(), size.clone(), size),
        align: PerDirection::all(SECTOR),
        seed,
        ..Spec::plain(blocks * SECTOR, SECTOR)
    }
}

/// The first writes of a run.
fn writes(workload: &Spec, repeat: Repeat, count: usize) -> Vec<Io> {
    let spec = match repeat {
        Repeat::Loops => workload.clone(),
        Repeat::Laps => Spec { pass_bytes: Some(workload.files[0].length * 10), ..workload.clone() },
        Repeat::Endless => Spec { endless: true, ..workload.clone() },
    };
    let mut generator = General::new(&spec).unwrap();
    let mut all = Vec::new();
    while all.len() < count {
        match generator.next() {
            Next::Io(io) if io.direction == Direction::Write => all.push(io),
            Next::Done => generator.rewind(),
            _ => {}
        }
    }
    all
}

/// The disk after these writes by a job with this seed, one of which is `lost`; and the number of the write that each
/// sector holds.
fn disk(blocks: u64, writes: &[Io], seed: u64, lost: Option<usize>) -> (Vec<u8>, Vec<Option<usize>>) {
    let mut stamper = Stamper::new(&Blocks { interval: SECTOR as usize, ..Blocks::new(Kind::Crc32c) });
    let mut bytes = vec![0; (blocks * SECTOR) as usize];
    let mut holds = vec![None; blocks as usize];
    for (number, io) in writes.iter().enumerate().filter(|(number, _)| Some(*number) != lost) {
        let sequence = number as u64;
        let identity = Identity {
            offset: io.offset,
            sequence,
            seed: seed_of(seed, sequence),
            seconds: number as u32,
            job: 1,
            ..Identity::default()
        };
        let range = io.offset as usize..(io.offset + io.length) as usize;
        stamper.stamp(&mut bytes[range], &identity);
        holds[(io.offset / SECTOR) as usize..((io.offset + io.length) / SECTOR) as usize].fill(Some(number));
    }
    (bytes, holds)
}

/// Reads everything back as often as `loops` says. Returns the sectors that were read, the mismatches, and what the job
/// says about them.
fn check(
    workload: &Spec,
    alike: Alike,
    disk: &[u8],
    loops: usize,
) -> (Vec<u64>, Vec<Mismatch>, Option<String>) {
    let rules = Rules {
        job: "v".into(),
        number: 1,
        worker: 0,
        seed: SEED,
        spec: Blocks { interval: SECTOR as usize, ..Blocks::new(Kind::Crc32c) },
        depth: 1,
        writes: false,
        reads_back: true,
        read_back: ReadBackRules::AtEnd(Need::of(workload, true)),
        earlier: Some(EarlierRun {
            has_own_seeds: false,
            alike,
            may_have_failed: false,
            is_mix: matches!(workload.mix, Mix::ReadWrite(_)),
            any_pass: true,
            mixes_sizes: workload.block_size[Direction::Write] != BlockSize::Fixed(SECTOR),
        }),
        state: StateRules::None,
        trims: None,
        rivals: Rivals::default(),
        threads: 0,
        thread_cpus: Vec::new(),
        reads_data: true,
        atomic_writes: false,
        is_replay: false,
        has_unforeseen_blocks: false,
        compares: false,
        fatal: false,
        dump: None,
        outlasts_time: false,
        open_files: 1,
        wants_no_history: false,
    };
    let owners = Arc::new(Owners::of(Vec::new()).unwrap());
    let mut verification = Verification::begin(&rules, workload, &owners).unwrap();
    let mut generator = General::new(workload).unwrap();
    loop {
        match generator.next() {
            Next::Io(io) if io.direction == Direction::Write => verification.assume(io),
            Next::Done => break,
            _ => {}
        }
    }
    let (mut read, mut wrong) = (Vec::new(), Vec::new());
    let mut hint = None;
    for _ in 0..loops {
        read.clear();
        verification.begin_reads();
        loop {
            while let Some((io, expect)) = verification.next_at_end() {
                read.extend(io.offset / SECTOR..(io.offset + io.length) / SECTOR);
                let question = verification.question(&io, expect).unwrap();
                let block = &disk[io.offset as usize..(io.offset + io.length) as usize];
                let mismatches = verification.checker.check(block, question);
                let found = verification.checker.found();
                if verification.checked(&io, expect, &mismatches, found) {
                    wrong.extend(mismatches);
                }
            }
            if !verification.read_again(|| false) {
                break;
            }
        }
        hint = verification.hint(true);
        verification.next_pass(true, || false);
    }
    read.sort_unstable();
    read.dedup();
    (read, wrong, hint)
}

fn places() -> impl Strategy<Value = Places> {
    use Places::{Anywhere, Covering, Mixed, Sequential, Sizes};
    prop_oneof![Just(Sequential), Just(Covering), Just(Anywhere), Just(Mixed), Just(Sizes)]
}

fn repeat() -> impl Strategy<Value = Repeat> {
    prop_oneof![Just(Repeat::Loops), Just(Repeat::Laps), Just(Repeat::Endless)]
}

proptest! {
    #![proptest_config(iolite_testing::properties(300))]

    /// However often a workload was written, and wherever its last pass was stopped, its data is right. If one of its
    /// last writes to a block is lost, it is found if the block was never written before, or if another block holds a
    /// later write.
    #[test]
    fn any_number_of_passes_is_right_and_lost_writes_are_found(
        (places, repeat) in (places(), repeat()),
        (blocks, passes, rest) in (4u64..40, 1usize..4, 0usize..40),
        seed in prop_oneof![Just(SEED), Just(SEED + 1)],
        (lost, loops) in (any::<prop::sample::Index>(), 1usize..3),
    ) {
        // The places of a job with another seed are known only if they do not depend on it.
        let seed = if places == Places::Sequential { seed } else { SEED };
        let alike = match places {
            Places::Sequential => Alike::Writes,
            Places::Covering => Alike::Places,
            Places::Anywhere | Places::Mixed | Places::Sizes => Alike::Nothing,
        };
        let job = workload(places, blocks, SEED);
        let per_pass = {
            let mut one = Replay::new(&job).unwrap();
            std::iter::from_fn(|| one.next_write()).count()
        };
        prop_assume!(per_pass > 0);
        let written = writes(&job, repeat, per_pass * passes + rest % per_pass);
        let (whole, held) = disk(blocks, &written, seed, None);
        let (_, wrong, _) = check(&job, alike, &whole, loops);
        prop_assert_eq!(wrong, vec![], "written in {} passes", passes);

        // Only a write that still stands can be missed.
        let standing: Vec<usize> = held.iter().copied().flatten().collect();
        let lost = standing[lost.index(standing.len())];
        let (damaged, holds) = disk(blocks, &written, seed, Some(lost));
        let (read, wrong, hint) = check(&job, alike, &damaged, 1);
        let of_lost = (0..blocks).filter(|&sector| held[sector as usize] == Some(lost));
        let is_old = of_lost.clone().any(|sector| holds[sector as usize].is_some());
        // What only later passes wrote is known up to the last write that was found.
        let is_unread = of_lost.clone().all(|sector| !read.contains(&sector));
        let proves = |sector: &u64| holds[*sector as usize] > Some(lost);
        let sizes_change = places == Places::Sizes && repeat != Repeat::Loops;
        // By chance, the numbers on a small disk may fit another order as well.
        let explains = |other: &Repeat| {
            let order = writes(&job, *other, written.len());
            let covers = |io: &Io, sector: u64| (io.offset..io.offset + io.length).contains(&(sector * SECTOR));
            read.iter().all(|&sector| holds[sector as usize].is_none_or(|number| covers(&order[number], sector)))
                && order != written
        };
        let is_ambiguous = [Repeat::Loops, Repeat::Laps, Repeat::Endless].iter().any(explains);
        let is_proven = read.iter().any(proves) && !sizes_change && !is_ambiguous;
        let is_seen = !is_old && !is_unread || is_proven && (!is_unread || hint.is_none());
        prop_assert!(!wrong.is_empty() || !is_seen, "write {} was lost, {} per pass, {:?}", lost, per_pass, holds);
        prop_assert!(
            wrong.iter().all(|mismatch| is_ambiguous || held[(mismatch.offset / SECTOR) as usize] == Some(lost)),
            "write {} was lost: {:?}", lost, wrong
        );
        if is_old && repeat == Repeat::Loops && passes == 3 && places != Places::Sizes && !wrong.is_empty() {
            let is_older = |mismatch: &Mismatch| matches!(mismatch.diagnosis, Diagnosis::Older { .. });
            prop_assert!(wrong.iter().all(is_older), "{:?}", wrong);
        }
    }
}

/// A run of fewer passes than an older one has lost writes: only the times tell which blocks are left from the older one.
#[test]
fn blocks_left_from_an_older_run_of_more_passes_are_found() {
    for places in [Places::Sequential, Places::Covering] {
        let job = workload(places, 16, SEED);
        let (older, later) = (writes(&job, Repeat::Loops, 32), writes(&job, Repeat::Loops, 16));
        for (count, left) in [(16, vec![5, 6]), (12, vec![5]), (16, vec![]), (12, vec![])] {
            let (mut bytes, _) = disk(16, &older, SEED, None);
            let mut stamper =
                Stamper::new(&Blocks { interval: SECTOR as usize, ..Blocks::new(Kind::Crc32c) });
            for (number, io) in later[..count].iter().enumerate().filter(|(number, _)| !left.contains(number))
            {
                let sequence = number as u64;
                let identity = Identity {
                    offset: io.offset,
                    sequence,
                    seed: seed_of(SEED, sequence),
                    seconds: 1000 + number as u32,
                    job: 1,
                    ..Identity::default()
                };
                stamper.stamp(&mut bytes[io.offset as usize..(io.offset + io.length) as usize], &identity);
            }
            let (_, wrong, _) = check(&job, Alike::Nothing, &bytes, 1);
            let found: Vec<_> = wrong.iter().map(|mismatch| mismatch.diagnosis.clone()).collect();
            let wanted = |number: &usize| Diagnosis::EarlierRun {
                found: *number as u64 + 16,
                expected: *number as u64,
            };
            assert_eq!(found, left.iter().map(wanted).collect::<Vec<_>>(), "{places:?} {count}");
        }
    }
}
