use super::{WorkerZones, ZoneMaps, has_memory};
use iolite_os::process;
use iolite_os::shared::{Arena, Phase};
use iolite_os::zones::{Zone, ZoneCondition, ZoneKind};
use iolite_plan::resolve::ZoneRules;
use iolite_plan::{FileLayout, Layout, ZonedDevice, ZonedFile};
use iolite_types::{Direction, FileKind};
use iolite_workload::{Claim, Fate, Io, Zones};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const SIZE: u64 = 100;

fn zone(number: u64, condition: ZoneCondition) -> Zone {
    let start = number * SIZE;
    let kind = match condition {
        ZoneCondition::Conventional => ZoneKind::Conventional,
        _ => ZoneKind::Sequential,
    };
    Zone { start, size: SIZE, capacity: 80, pointer: start + 20, kind, condition }
}

/// Zones in these conditions, and the workers of a run.
struct Run {
    maps: Arc<ZoneMaps>,
    arena: Arc<Arena>,
    rules: ZoneRules,
    most_open: u32,
}

impl Run {
    fn new(conditions: &[ZoneCondition]) -> Run {
        let zones = (0..).zip(conditions).map(|(number, &condition)| zone(number, condition)).collect();
        let device = ZonedDevice {
            names: vec!["d".into()],
            zones,
            is_real: false,
            counts_closed: true,
            written: Vec::new(),
            notes: Vec::new(),
        };
        let rules = ZoneRules {
            zone: SIZE,
            skip: 0,
            read_beyond: false,
            rewrites: true,
            begins_empty: false,
            writes_remainder: false,
            reset_threshold: 0.0,
            reset_every: 0,
            most_open: 0,
            recovers: false,
            one_by_one: false,
            skip_wraps: false,
            laps: false,
        };
        let maps = Arc::new(ZoneMaps::new(&[device]).unwrap());
        Run { maps, arena: Arc::new(Arena::new(4).unwrap()), rules, most_open: 0 }
    }

    fn empty(zones: usize) -> Run {
        Run::new(&vec![ZoneCondition::Empty; zones])
    }

    fn worker(&self, index: usize, is_dry: bool) -> WorkerZones {
        let file = FileLayout {
            path: "d".into(),
            kind: FileKind::Block,
            exists: true,
            offset: 0,
            length: 8 * SIZE,
            amount: 8 * SIZE,
            extend_to: None,
            is_whole: true,
            zoned: Some(ZonedFile { size: SIZE, is_real: false, most_open: self.most_open }),
        };
        let layout = Layout {
            files: vec![file],
            pass_bytes: None,
            left_out: iolite_plan::LeftOut::default(),
            named: None,
        };
        self.arena.slot(index).control.set_phase(Phase::Running);
        WorkerZones::new(&self.maps, &self.rules, &layout, is_dry, true, (&self.arena, index)).unwrap()
    }
}

fn is_granted(zones: &mut WorkerZones, zone: u32) -> bool {
    matches!(zones.claim(0, zone, true, false), Claim::Granted(_))
}

/// A write to a claimed zone that is in flight.
fn write(zones: &mut WorkerZones, zone: u32, length: u64, is_last: bool) -> Io {
    let offset = zones.reserve(0, zone, length, is_last);
    Io { offset, length, file: 0, direction: Direction::Write }
}

/// A completed write, which claims its zone.
#[track_caller]
fn wrote(zones: &mut WorkerZones, zone: u32, length: u64, is_last: bool) -> u64 {
    assert!(is_granted(zones, zone), "zone {zone}");
    let io = write(zones, zone, length, is_last);
    zones.completed(&io, Fate::Done).unwrap();
    io.offset
}

#[test]
fn a_zone_belongs_to_one_worker_while_its_writes_are_in_flight() {
    let run = Run::empty(2);
    let (mut one, mut other) = (run.worker(0, false), run.worker(1, false));
    assert!(is_granted(&mut one, 0));
    let first = write(&mut one, 0, 10, false);
    assert!(is_granted(&mut one, 0), "its own writes go on");
    let second = write(&mut one, 0, 10, false);
    assert_eq!((first.offset, second.offset), (0, 10));
    // (A thread must not try to take its own lock again; a worker is one thread.)
    let is_busy = |other: &mut WorkerZones| {
        std::thread::scope(|scope| {
            scope.spawn(|| other.claim(0, 0, true, false) == Claim::Busy).join().unwrap()
        })
    };
    assert!(is_busy(&mut other));
    one.completed(&second, Fate::Done).unwrap();
    assert!(is_busy(&mut other));
    one.completed(&first, Fate::Done).unwrap();
    assert_eq!(wrote(&mut other, 0, 10, false), 20, "the other goes on where it ended");
    assert_eq!(one.zone(0, 0).written, 30);
}

#[test]
fn a_write_that_was_never_issued_leaves_the_write_pointer_where_it_was() {
    let run = Run::empty(1);
    let mut zones = run.worker(0, false);
    wrote(&mut zones, 0, 10, false);
    assert!(is_granted(&mut zones, 0));
    let io = write(&mut zones, 0, 70, true);
    zones.completed(&io, Fate::Withdrawn).unwrap();
    assert_eq!(zones.zone(0, 0).next, 10);
    assert_eq!(wrote(&mut zones, 0, 10, false), 10);
}

#[test]
fn the_limit_of_open_zones_is_that_of_all_workers_together() {
    let mut run = Run::empty(4);
    run.most_open = 2;
    let (mut one, mut other) = (run.worker(0, false), run.worker(1, false));
    wrote(&mut one, 0, 10, false);
    wrote(&mut other, 1, 10, false);
    assert_eq!(one.claim(0, 2, true, false), Claim::Limit);
    assert_eq!(one.open_zone(0, 0..4, 0), Some(0));
    assert_eq!(one.open_zone(0, 0..4, 1), Some(1));
    assert_eq!(one.open_zone(0, 2..4, 1), None, "none in its region");
    wrote(&mut other, 1, 70, true);
    wrote(&mut one, 2, 10, false);
    // A zone that was opened and then not written to is not open.
    assert_eq!(other.claim(0, 3, true, false), Claim::Limit);
    wrote(&mut one, 0, 70, true);
    assert!(is_granted(&mut one, 3));
    one.release(0, 3);
    assert_eq!(wrote(&mut other, 3, 10, false), 300);
}

/// Zones that others fill or reset no longer count as open for the worker that opened them, until it reopens them.
#[test]
fn the_limit_of_a_worker_counts_its_open_zones() {
    let mut run = Run::empty(4);
    (run.most_open, run.rules.most_open) = (2, 1);
    let (mut one, mut other) = (run.worker(0, false), run.worker(1, false));
    wrote(&mut one, 0, 10, false);
    assert_eq!(one.claim(0, 1, true, false), Claim::Limit);
    wrote(&mut other, 0, 70, true);
    wrote(&mut one, 1, 10, false);
    // Its first owner reopens it, so it counts again.
    wrote(&mut one, 1, 70, true);
    assert!(is_granted(&mut one, 0));
    one.reset(0, 0).unwrap();
    one.release(0, 0);
    wrote(&mut one, 0, 10, false);
    assert_eq!(one.claim(0, 2, true, false), Claim::Limit);
    wrote(&mut other, 2, 10, false);
    assert_eq!(run.worker(2, false).claim(0, 3, true, false), Claim::Limit, "two are open in all");
}

#[test]
fn partial_zones_are_finished_and_full_zones_are_closed() {
    let mut run = Run::empty(2);
    run.most_open = 1;
    let mut zones = run.worker(0, false);
    assert_eq!(wrote(&mut zones, 0, 70, true), 0);
    assert_eq!((zones.zone(0, 0).next, zones.zone(0, 0).written), (80, 70));
    wrote(&mut zones, 1, 10, false);
    assert!(is_granted(&mut zones, 1));
    zones.finish(0, 1).unwrap();
    zones.release(0, 1);
    assert_eq!((zones.zone(0, 1).next, zones.open_zone(0, 0..2, 0)), (180, None));
    assert!(is_granted(&mut zones, 0));
    zones.reset(0, 0).unwrap();
    assert_eq!(run.arena.slot(0).stats.zone_resets.get(), 1);
    assert_eq!((zones.zone(0, 0).next, zones.written(0, 0..2)), (0, 80));
}

#[test]
fn zones_of_a_worker_that_died_go_to_the_next_one() {
    iolite_testing::or_skip!(iolite_testing::kernel::has_robust_locks());
    let run = Run::empty(2);
    let mut dead = run.worker(0, false);
    std::thread::spawn(move || {
        wrote(&mut dead, 0, 10, false);
        assert!(is_granted(&mut dead, 0));
        write(&mut dead, 0, 10, false);
        std::mem::forget(dead);
    })
    .join()
    .unwrap();
    let mut heir = run.worker(1, false);
    assert!(is_granted(&mut heir, 0), "the lock has no owner");
    heir.release(0, 0);
    // The controller notes that it is dead, so no worker waits for it.
    assert!(!heir.waits_in_vain());
    run.arena.slot(0).control.zones.store(0, Relaxed);
    assert!(heir.waits_in_vain());
    assert!(
        has_memory(process::thread_id()) && !has_memory(0),
        "whose writes may be in flight is waited for"
    );
}

/// A worker on another device frees no zones on this one.
#[test]
fn workers_are_waited_for_on_the_same_device_only() {
    let run = Run::empty(1);
    let mut waiting = run.worker(0, false);
    let other = run.worker(1, false);
    assert!(!waiting.waits_in_vain());
    run.arena.slot(1).control.zones.store(super::doing::works_on(1), Relaxed);
    assert!(waiting.waits_in_vain());
    let both = super::doing::works_on(1) | super::doing::works_on(0);
    run.arena.slot(1).control.zones.store(both, Relaxed);
    assert!(!waiting.waits_in_vain());
    run.arena.slot(1).control.zones.store(both | super::doing::WAITS, Relaxed);
    assert!(waiting.waits_in_vain(), "it waits as well");
    drop(other);
}

#[test]
fn a_worker_that_dies_while_counting_open_zones_leaves_the_count_right() {
    iolite_testing::or_skip!(iolite_testing::kernel::has_robust_locks());
    let run = Run::empty(3);
    let mut zones = run.worker(0, false);
    wrote(&mut zones, 0, 10, false);
    wrote(&mut zones, 1, 10, false);
    let open = || run.maps.devices[0].header().open.load(Relaxed);
    assert_eq!(open(), 2);
    let maps = run.maps.clone();
    std::thread::spawn(move || maps.devices[0].lock_header()).join().unwrap();
    assert!(is_granted(&mut zones, 0));
    zones.reset(0, 0).unwrap();
    zones.release(0, 0);
    assert_eq!(open(), 1, "the zone that is closed is taken off once");
}

#[test]
fn zones_that_cannot_be_written_are_left_out() {
    use ZoneCondition::*;
    let run = Run::new(&[Full, ReadOnly, Offline, ImplicitlyOpen, Closed, Conventional]);
    let mut zones = run.worker(0, false);
    let states: Vec<(u64, bool)> =
        (0..6).map(|zone| (zones.zone(0, zone).next % SIZE, zones.zone(0, zone).is_readable)).collect();
    assert_eq!(states, [(80, true), (80, true), (80, false), (20, true), (20, true), (0, true)]);
    for unusable in [1, 2] {
        assert_eq!(zones.claim(0, unusable, true, false), Claim::Unusable);
    }
    assert_eq!(zones.zone(0, 1).written, SIZE, "nobody knows how far it is written");
    assert_eq!(zones.written(0, 0..6), 80 + 20 * 2, "what cannot be written does not count");
    let mut dry = run.worker(1, true);
    assert_eq!(
        (dry.claim(0, 1, true, false), dry.zone(0, 3).next),
        (Claim::Unusable, 300),
        "as in the run that wrote"
    );
}

/// A pass without I/O chooses the same zones as the one that wrote.
#[test]
fn a_dry_pass_is_like_the_one_that_wrote() {
    let mut run = Run::empty(6);
    run.most_open = 3;
    let (mut real, mut dry) = (run.worker(0, false), run.worker(1, true));
    let mut numbers = iolite_workload::rng::Rng::new(iolite_testing::seed());
    for _ in 0..1000 {
        let (zone, choice) = (numbers.below(6) as u32, numbers.next_u64());
        let step = |zones: &mut WorkerZones| {
            let mut zone = zone;
            if zones.claim(0, zone, true, false) == Claim::Limit {
                zone = zones.open_zone(0, 0..6, choice).expect("some are open");
                assert!(is_granted(zones, zone));
            }
            let state = zones.zone(0, zone);
            if state.next >= state.start + state.capacity {
                zones.reset(0, zone).unwrap();
            }
            let state = zones.zone(0, zone);
            let is_last = state.next + 20 >= state.start + state.capacity;
            let io = write(zones, zone, 20, is_last);
            zones.completed(&io, Fate::Done).unwrap();
            io.offset
        };
        assert_eq!(step(&mut real), step(&mut dry));
    }
    let before = dry.zone(0, 0).start;
    assert!(matches!(dry.claim(0, 0, false, false), Claim::Granted(_)));
    dry.reserve(0, 0, 0, true);
    assert_eq!(dry.zone(0, 0).next, before, "a trim makes it empty");
}

#[test]
fn a_failed_write_blocks_its_zone_until_the_device_is_asked() {
    let mut run = Run::empty(1);
    run.rules.recovers = true;
    let mut zones = run.worker(0, false);
    assert!(is_granted(&mut zones, 0));
    let first = write(&mut zones, 0, 10, false);
    let second = write(&mut zones, 0, 10, false);
    zones.completed(&first, Fate::Failed).unwrap();
    assert_eq!(
        zones.claim(0, 0, true, false),
        Claim::Busy,
        "nothing is written behind it until the device was asked"
    );
    zones.completed(&second, Fate::Failed).unwrap();
    assert_eq!(zones.zone(0, 0).written, 0);
    assert!(is_granted(&mut zones, 0));
}
