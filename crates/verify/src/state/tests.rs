//! Recorded writes are required, whatever was in flight; and any file is read without harm.

use super::*;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::fs;
use tempfile::TempDir;

const BLOCK: u64 = 4096;

fn setup(files: u64, blocks: u64, has_flushes: bool) -> Setup {
    let file = |number| StateFile {
        name: format!("f{number}"),
        offset: number << 20,
        length: blocks * BLOCK,
        identity: None,
        place: None,
    };
    Setup {
        program: "iolite-test".into(),
        job: "job".into(),
        number: 1,
        kind: "crc32c".into(),
        began: 1_700_000_000,
        seed: u64::MAX - 3,
        block: BLOCK,
        depth: 4,
        is_uniform: true,
        is_durable: false,
        is_copied: false,
        per_pass: 0,
        has_flushes,
        imprint: None,
        files: (0..files).map(file).collect(),
    }
}

/// A recorder whose file is read while it records, as after a kill.
struct Recorded {
    dir: TempDir,
    recorder: Recorder,
}

impl Recorded {
    fn new(setup: &Setup) -> Recorded {
        let dir = TempDir::new().unwrap();
        let recorder = Recorder::create(&dir.path().join("state"), setup).unwrap();
        Recorded { dir, recorder }
    }

    fn saved(&self) -> Saved {
        Saved::open(&self.dir.path().join("state")).unwrap()
    }

    fn demands(&self, file: u32, policy: Policy) -> Vec<(u64, u64, Accepted)> {
        let saved = self.saved();
        let file = saved.file(file, policy).unwrap();
        file.demands().map(|demand| (demand.offset, demand.length, demand.accepted)).collect()
    }

    fn flush(&mut self, file: u32) {
        let covered = self.recorder.flush(file);
        self.recorder.flushed(file, covered);
    }

    fn write(&self, number: u64, file: u32, offset: u64, length: u64) {
        self.recorder.issue(0, number, file, offset, length);
        self.recorder.acknowledge(0);
    }
}

fn exactly(number: u64) -> Accepted {
    Accepted { oldest: number, latest: number, in_flight: None }
}

#[test]
fn acknowledged_writes_are_demanded_and_those_in_flight_may_be_there() {
    let state = Recorded::new(&setup(2, 8, false));
    state.write(0, 0, 0, BLOCK);
    state.write(1, 0, BLOCK, BLOCK);
    state.write(2, 1, 1 << 20, BLOCK);
    state.write(3, 0, 0, BLOCK);
    state.recorder.issue(1, 4, 0, BLOCK, BLOCK);
    state.recorder.issue(2, 5, 0, 5 * BLOCK, BLOCK);
    let maybe = Accepted { in_flight: Some(4), ..exactly(1) };
    assert_eq!(
        state.demands(0, Policy::Completed),
        [(0, BLOCK, exactly(3)), (BLOCK, BLOCK, maybe)],
        "nothing is demanded of a block that was never acknowledged"
    );
    assert_eq!(state.demands(1, Policy::Completed), [(1 << 20, BLOCK, exactly(2))]);
    let saved = state.saved();
    assert_eq!((saved.issued, saved.acknowledged, saved.in_flight.len()), (6, 4, 2));
    assert_eq!(saved.setup, setup(2, 8, false));
    assert_eq!(
        saved.file(0, Policy::Completed).unwrap().summary(),
        Summary { blocks: 2, writes: 2, demands: 2, open: 1 }
    );
}

#[test]
fn a_write_of_which_a_part_was_overwritten_is_not_demanded() {
    let state = Recorded::new(&setup(1, 16, false));
    state.write(0, 0, 0, 4 * BLOCK);
    state.write(1, 0, 4 * BLOCK, 4 * BLOCK);
    state.write(2, 0, 8 * BLOCK, 4 * BLOCK);
    state.write(3, 0, BLOCK, BLOCK);
    state.recorder.issue(1, 4, 0, 9 * BLOCK, 4 * BLOCK);
    assert_eq!(
        state.demands(0, Policy::Completed),
        [(BLOCK, BLOCK, exactly(3)), (4 * BLOCK, 4 * BLOCK, exactly(1))]
    );
}

#[test]
fn forgotten_or_failed_writes_are_not_demanded() {
    let state = Recorded::new(&setup(1, 8, true));
    for number in 0..4 {
        state.write(number, 0, number * BLOCK, BLOCK);
    }
    state.recorder.forget(0, BLOCK, BLOCK);
    state.recorder.issue(1, 4, 0, 2 * BLOCK, BLOCK);
    state.recorder.failed(1);
    let rest = [(0, BLOCK, exactly(0)), (3 * BLOCK, BLOCK, exactly(3))];
    assert_eq!(state.demands(0, Policy::Completed), rest);
}

#[test]
fn a_flush_covers_the_writes_acknowledged_before_it() {
    let mut state = Recorded::new(&setup(1, 8, true));
    state.write(0, 0, 0, BLOCK);
    assert_eq!(state.demands(0, Policy::Fsynced), [], "nothing has been flushed");
    let covered = state.recorder.flush(0);
    state.write(1, 0, BLOCK, BLOCK);
    state.recorder.flushed(0, covered);
    assert_eq!(state.demands(0, Policy::Fsynced), [(0, BLOCK, exactly(0))]);
    // Overwritten without a flush: the old write, the new one, and all in between are valid.
    state.write(2, 0, 0, BLOCK);
    state.write(3, 0, 0, BLOCK);
    let any = Accepted { oldest: 0, latest: 3, in_flight: None };
    assert_eq!(state.demands(0, Policy::Fsynced), [(0, BLOCK, any)]);
    state.recorder.issue(1, 4, 0, 5 * BLOCK, BLOCK);
    state.recorder.issue(2, 5, 0, 6 * BLOCK, BLOCK);
    state.recorder.acknowledge(2);
    state.flush(0);
    state.recorder.acknowledge(1);
    let flushed = [(0, BLOCK, exactly(3)), (BLOCK, BLOCK, exactly(1)), (6 * BLOCK, BLOCK, exactly(5))];
    assert_eq!(state.demands(0, Policy::Fsynced), flushed);
    assert_eq!(state.demands(0, Policy::Completed).len(), 4);
}

#[test]
fn durable_writes_need_no_flush() {
    let state = Recorded::new(&Setup { is_durable: true, ..setup(1, 8, false) });
    state.write(0, 0, 0, BLOCK);
    assert_eq!(state.demands(0, Policy::Fsynced), [(0, BLOCK, exactly(0))]);
}

#[test]
fn numbers_are_found_again_in_headers_of_any_width() {
    let accepted = Accepted { oldest: 70_000, latest: 70_010, in_flight: Some(140_000) };
    for (found, bits, picked) in [
        (None, 64, 70_010),
        (Some(70_003), 64, 70_003),
        (Some(70_003 & 0xffff), 16, 70_003),
        (Some(140_000), 64, 140_000),
        (Some(140_000 & 0xffff), 16, 140_000),
        (Some(69_999), 64, 70_010),
        (Some(70_011), 64, 70_010),
        (Some(69_999 & 0xffff), 16, 70_010),
    ] {
        assert_eq!(accepted.pick(found, bits), picked, "{found:?} of {bits} bits");
    }
}

#[test]
fn a_new_state_replaces_an_old_one_and_can_be_removed() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("state");
    Recorder::create(&path, &setup(1, 8, false)).unwrap().issue(0, 0, 0, 0, BLOCK);
    let recorder = Recorder::create(&path, &setup(3, 8, true)).unwrap();
    assert_eq!(Saved::open(&path).unwrap().setup.files.len(), 3);
    assert_eq!(fs::metadata(&path).unwrap().len(), recorder.bytes());
    recorder.remove().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_state_that_cannot_be_made_is_an_error_and_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("state");
    let huge = Setup { block: 1, ..setup(1, u64::MAX / BLOCK / 2, false) };
    assert!(Recorder::create(&path, &huge).is_err());
    assert!(Recorder::create(&path, &Setup { block: 0, ..setup(1, 1, false) }).is_err());
    assert!(Recorder::create(&dir.path().join("nosuch/state"), &setup(1, 1, false)).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A state file with all kinds of entries.
fn sample() -> Vec<u8> {
    let mut state = Recorded::new(&setup(2, 8, true));
    for number in 0..6 {
        state.write(number, number as u32 % 2, ((number % 2) << 20) + number * BLOCK, BLOCK);
    }
    state.flush(0);
    state.write(6, 0, 0, BLOCK);
    state.recorder.issue(1, 7, 0, 0, BLOCK);
    fs::read(state.recorder.path()).unwrap()
}

/// Reads all of a state file.
fn read(bytes: &[u8]) -> Result<(), StateError> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("state");
    fs::write(&path, bytes).unwrap();
    let saved = Saved::open(&path)?;
    for file in 0..saved.setup.files.len() as u32 {
        for policy in [Policy::Completed, Policy::Fsynced] {
            saved.file(file, policy)?.summary();
        }
    }
    Ok(())
}

#[test]
fn damage_in_a_state_file_is_reported() {
    let sample = sample();
    read(&sample).unwrap();
    let with = |at: usize, value: &[u8]| {
        let mut bytes = sample.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        read(&bytes).unwrap_err().to_string()
    };
    assert!(with(0, b"I").contains("not a verify state"));
    assert!(with(8, &[2]).contains("version 2"));
    assert!(with(60, b"#").contains("checksum"));
    assert!(with(4104, &[9]).contains("9 writes acknowledged of 8"));
    for length in [0, 7, 8, 39, 40, 4096, sample.len() - 1] {
        let why = read(&sample[..length]).unwrap_err().to_string();
        assert!(why.contains("cut") || length < 8, "{length}: {why}");
    }
    let mut longer = sample.clone();
    longer.push(0);
    assert!(read(&longer).unwrap_err().to_string().contains("cut or extended"));
}

/// A state that is read while its job is running is not corrupt.
#[test]
fn the_state_of_a_running_job_is_not_damaged() {
    let mut state = Recorded::new(&setup(3, 1 << 14, true));
    let path = state.dir.path().join("state");
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let (place, file) = ((number % 4) as u32, (number % 3) as u32);
                state.recorder.issue(
                    place,
                    number,
                    file,
                    (u64::from(file) << 20) + number % 9 * BLOCK,
                    BLOCK,
                );
                state.recorder.acknowledge(place);
                if number % 100 == 0 {
                    state.flush(file);
                }
            }
        });
        let wrong = (0..300).find_map(|_| {
            let look = || {
                let saved = Saved::open(&path)?;
                (0..3).try_for_each(|file| saved.file(file, Policy::Fsynced).map(|_| ()))
            };
            look().err()
        });
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(wrong.is_none(), "{wrong:?}");
    });
}

proptest! {
    #![proptest_config(iolite_testing::properties(300))]

    /// No changed byte does harm.
    #[test]
    fn damaged_files_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in 0usize..100,
    ) {
        let mut bytes = sample();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(bytes.len() - cut.saturating_sub(90) * 64);
        let _ = read(&bytes);
    }

    /// Compared with a model that remembers all events, for any events in any order.
    #[test]
    fn demands_match_a_model(steps in prop::collection::vec((0u32..4, 0u64..8, 0u8..8), 1..200)) {
        let mut state = Recorded::new(&setup(1, 8, true));
        let mut number = 0;
        let mut flushed: HashSet<u64> = HashSet::new();
        let mut in_flight: HashMap<u32, (u64, u64)> = HashMap::new();
        let mut acknowledged: HashMap<u64, Vec<u64>> = HashMap::new();
        for (place, block, action) in steps {
            match (action, in_flight.get(&place).copied()) {
                (0, _) => {
                    flushed.extend(acknowledged.values().flatten());
                    state.flush(0);
                }
                (_, Some((write, block))) => {
                    state.recorder.acknowledge(place);
                    in_flight.remove(&place);
                    acknowledged.entry(block).or_default().push(write);
                }
                (_, None) if in_flight.values().all(|write| write.1 != block) => {
                    state.recorder.issue(place, number, 0, block * BLOCK, BLOCK);
                    in_flight.insert(place, (number, block));
                    number += 1;
                }
                _ => {}
            }
        }
        for policy in [Policy::Completed, Policy::Fsynced] {
            let mut expected: Vec<_> = acknowledged.iter().filter_map(|(&block, writes)| {
                let latest = *writes.last()?;
                let oldest = match policy {
                    Policy::Completed => latest,
                    Policy::Fsynced => *writes.iter().rev().find(|write| flushed.contains(write))?,
                };
                let maybe = in_flight.values().find(|write| write.1 == block).map(|write| write.0);
                Some((block * BLOCK, BLOCK, Accepted { oldest, latest, in_flight: maybe }))
            }).collect();
            expected.sort_unstable_by_key(|demand| demand.0);
            let found = state.demands(0, policy);
            prop_assert_eq!(&found, &expected);
        }
    }
}
