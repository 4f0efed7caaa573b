//! Tests of the generator on a simulated disk, which refuses the same operations as a real one.

use super::{Claim, ZoneState, ZoneUse, ZonedGenerator, Zones};
use crate::rng::Rng;
use crate::{Fate, Generator, Io, Mix, Next, Region, Spec, Step};
use iolite_types::{BlockSize, Direction};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// The size of a zone in bytes.
const ZONE: u64 = 100;

/// A zone of the disk, and what the workers know about it.
#[derive(Clone, Debug)]
struct One {
    is_sequential: bool,
    is_usable: bool,
    capacity: u64,
    /// The disk's own write pointer, relative to the beginning of the zone.
    pointer: u64,
    /// The end of the part that workers have reserved, relative to the beginning of the zone.
    next: u64,
    owner: Option<usize>,
    in_flight: u32,
    ends: bool,
    is_open: bool,
}

#[derive(Clone, Debug, Default)]
struct Disk {
    zones: Vec<One>,
    most_open: usize,
    resets: u32,
    finishes: u32,
    /// For each worker, whether it waits for room or has ended.
    idle: Vec<bool>,
}

impl Disk {
    fn new(zones: usize, capacity: u64) -> Disk {
        let one = One {
            is_sequential: true,
            is_usable: true,
            capacity,
            pointer: 0,
            next: 0,
            owner: None,
            in_flight: 0,
            ends: false,
            is_open: false,
        };
        Disk { zones: vec![one; zones], most_open: usize::MAX, idle: vec![false], ..Disk::default() }
    }

    fn open(&self) -> usize {
        self.zones.iter().filter(|zone| zone.is_open).count()
    }

    fn pointers(&self) -> Vec<u64> {
        self.zones.iter().map(|zone| zone.pointer).collect()
    }
}

/// The disk as one worker sees it.
struct Seen {
    disk: Rc<RefCell<Disk>>,
    me: usize,
}

impl Zones for Seen {
    fn at(&self, _: u32, offset: u64) -> u32 {
        (offset / ZONE) as u32
    }

    fn zone(&self, _: u32, zone: u32) -> ZoneState {
        let (start, one) = (u64::from(zone) * ZONE, &self.disk.borrow().zones[zone as usize]);
        ZoneState {
            start,
            size: ZONE,
            capacity: one.capacity,
            is_sequential: one.is_sequential,
            is_readable: one.is_usable,
            next: start + one.next,
            written: start + one.pointer,
            in_flight: if one.owner == Some(self.me) { one.in_flight } else { 0 },
        }
    }

    fn claim(&mut self, _: u32, zone: u32, opens: bool, _: bool) -> Claim {
        let mut disk = self.disk.borrow_mut();
        let (open, most) = (disk.open(), disk.most_open);
        let one = &mut disk.zones[zone as usize];
        if !one.is_usable {
            return Claim::Unusable;
        }
        if one.owner.is_some_and(|owner| owner != self.me) {
            return Claim::Busy;
        }
        if opens && !one.is_open {
            if open >= most {
                return Claim::Limit;
            }
            one.is_open = true;
        }
        one.owner = Some(self.me);
        disk.idle[self.me] = false;
        drop(disk);
        Claim::Granted(self.zone(0, zone))
    }

    fn release(&mut self, _: u32, zone: u32) {
        let one = &mut self.disk.borrow_mut().zones[zone as usize];
        if one.owner == Some(self.me) && one.in_flight == 0 {
            one.owner = None;
            one.is_open &= one.next > 0 && one.next < one.capacity;
        }
    }

    fn open_zone(&mut self, _: u32, zones: Range<u32>, choice: u64) -> Option<u32> {
        let disk = self.disk.borrow();
        let open = zones.filter(|&zone| disk.zones[zone as usize].is_open && !disk.zones[zone as usize].ends);
        let open: Vec<u32> = open.collect();
        open.get(choice.checked_rem(open.len() as u64)? as usize).copied()
    }

    fn reserve(&mut self, _: u32, zone: u32, length: u64, is_last: bool) -> u64 {
        let one = &mut self.disk.borrow_mut().zones[zone as usize];
        assert_eq!(one.owner, Some(self.me), "only its owner writes to a zone");
        let offset = u64::from(zone) * ZONE + one.next;
        one.next += length;
        one.ends |= is_last && length > 0;
        one.in_flight += 1;
        offset
    }

    fn finish(&mut self, _: u32, zone: u32) -> Result<(), String> {
        let mut disk = self.disk.borrow_mut();
        disk.finishes += 1;
        let one = &mut disk.zones[zone as usize];
        assert_eq!((one.owner, one.in_flight), (Some(self.me), 0));
        (one.next, one.pointer) = (one.capacity, one.capacity);
        Ok(())
    }

    fn reset(&mut self, _: u32, zone: u32) -> Result<(), String> {
        let mut disk = self.disk.borrow_mut();
        disk.resets += 1;
        let one = &mut disk.zones[zone as usize];
        assert_eq!(
            (one.owner, one.in_flight),
            (Some(self.me), 0),
            "nothing is in flight in a zone that is reset"
        );
        (one.next, one.pointer, one.ends) = (0, 0, false);
        Ok(())
    }

    fn completed(&mut self, io: &Io, fate: Fate) -> Result<(), String> {
        let number = self.at(0, io.offset);
        let mut disk = self.disk.borrow_mut();
        let one = &mut disk.zones[number as usize];
        if io.direction == Direction::Read || !one.is_sequential {
            return Ok(());
        }
        one.in_flight -= 1;
        if io.direction == Direction::Trim {
            assert_eq!(
                (io.length, one.in_flight),
                (ZONE, 0),
                "a trim covers a zone, with no other I/O in flight"
            );
            (one.next, one.pointer, one.ends) = (0, 0, false);
            disk.resets += 1;
        } else if fate == Fate::Done && one.in_flight == 0 && one.ends {
            (one.next, one.pointer, one.ends) = (one.capacity, one.capacity, false);
        }
        drop(disk);
        self.release(0, number);
        Ok(())
    }

    fn written(&self, _: u32, zones: Range<u32>) -> u64 {
        let disk = self.disk.borrow();
        zones.map(|zone| &disk.zones[zone as usize]).filter(|one| one.is_sequential).map(|one| one.next).sum()
    }

    fn loss(&self, _: &Io) -> Option<String> {
        None
    }

    fn waits_in_vain(&mut self) -> bool {
        let mut disk = self.disk.borrow_mut();
        disk.idle[self.me] = true;
        disk.idle.iter().all(|&idle| idle)
    }
}

const USE: ZoneUse = ZoneUse {
    skip: 0,
    read_beyond: false,
    rewrites: true,
    begins_empty: false,
    writes_remainder: false,
    one_by_one: false,
    skip_wraps: false,
    reset_threshold: 0.0,
    reset_every: 0,
    laps: false,
};

/// A job over all zones of a disk.
struct Job {
    spec: Spec,
    how: ZoneUse,
}

impl Job {
    fn new(disk: &Disk, mix: Mix, block: u64, random: bool) -> Job {
        let mut spec = Spec::plain(disk.zones.len() as u64 * ZONE, block);
        (spec.mix, spec.random_percent) =
            (mix, iolite_types::PerDirection::all(if random { 100 } else { 0 }));
        Job { spec, how: USE }
    }

    fn write(disk: &Disk, block: u64, random: bool) -> Job {
        Job::new(disk, Mix::Single(Direction::Write), block, random)
    }

    fn bytes(mut self, bytes: u64) -> Job {
        self.spec.pass_bytes = Some(bytes);
        self.how.laps = true;
        self
    }
}

/// Runs one worker for each job on the disk, each with `depth` I/Os in flight, and returns the I/Os of each worker in
/// order. The disk accepts writes at its write pointers only, in the order in which they are issued.
#[track_caller]
fn run(disk: Disk, jobs: &[Job], depth: usize) -> (Vec<Vec<Io>>, Disk) {
    let mut disk = disk;
    disk.idle = vec![false; jobs.len()];
    let disk = Rc::new(RefCell::new(disk));
    let seen = |me| Seen { disk: disk.clone(), me };
    let mut workers: Vec<_> = jobs
        .iter()
        .enumerate()
        .map(|(me, job)| ZonedGenerator::new(&job.spec, job.how, seen(me)).unwrap())
        .collect();
    let mut done: Vec<Vec<Io>> = vec![Vec::new(); jobs.len()];
    let mut flight: Vec<VecDeque<Io>> = vec![VecDeque::new(); jobs.len()];
    let mut over = vec![false; jobs.len()];
    let mut rng = Rng::new(iolite_testing::seed());
    for step in 0.. {
        assert!(step < 100_000, "the run does not end: {:?}", disk.borrow());
        if over.iter().all(|&over| over) && flight.iter().all(VecDeque::is_empty) {
            break;
        }
        let me = rng.below(jobs.len() as u64) as usize;
        disk.borrow_mut().idle[me] |= over[me] && flight[me].is_empty();
        let completes = flight[me].len() >= depth || over[me] || rng.percent(30);
        if completes && !flight[me].is_empty() {
            let place = rng.below(flight[me].len() as u64) as usize;
            let io = flight[me].remove(place).unwrap();
            workers[me].completed(&io, Fate::Done);
        } else if !over[me] && flight[me].len() < depth {
            match workers[me].next() {
                Next::Io(io) => {
                    issue(&mut disk.borrow_mut(), &io);
                    done[me].push(io);
                    flight[me].push_back(io);
                }
                Next::Done => over[me] = true,
                Next::Script(Step::Wait) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    drop(workers);
    (done, Rc::into_inner(disk).unwrap().into_inner())
}

/// Performs an I/O on a disk.
#[track_caller]
fn issue(disk: &mut Disk, io: &Io) {
    let (open, most) = (disk.open(), disk.most_open);
    let one = &mut disk.zones[(io.offset / ZONE) as usize];
    let (from, to) = (io.offset % ZONE, io.offset % ZONE + io.length);
    let is_limited = one.is_sequential && io.direction == Direction::Write;
    assert!(one.is_usable && to <= if is_limited { one.capacity } else { ZONE }, "{io:?}");
    match io.direction {
        Direction::Write if one.is_sequential => {
            assert_eq!(from, one.pointer, "{io:?}: writes are at the write pointer");
            assert!(one.is_open && open <= most, "{open} zones are open");
            one.pointer = to;
        }
        Direction::Read if one.is_sequential => {
            assert!(to <= one.pointer, "{io:?}: reads are below the write pointer")
        }
        _ => {}
    }
}

fn places(ios: &[Io]) -> Vec<(u64, u64)> {
    ios.iter().map(|io| (io.offset, io.length)).collect()
}

#[test]
fn zones_are_filled_one_after_the_other() {
    let disk = Disk::new(3, 70);
    let job = Job::write(&disk, 30, false);
    let (done, disk) = run(disk, &[job], 4);
    let blocks = [(0, 30), (30, 30), (100, 30), (130, 30), (200, 30), (230, 30)];
    assert_eq!(places(&done[0]), blocks, "30 bytes do not fit into the last 10");
    assert_eq!((disk.resets, disk.open(), disk.pointers()), (0, 0, vec![70; 3]), "all zones are finished");
}

#[test]
fn the_rest_of_a_zone_is_written_with_a_smaller_block() {
    let disk = Disk::new(2, 70);
    let mut job = Job::write(&disk, 30, false);
    job.how.writes_remainder = true;
    let (done, _) = run(disk, &[job], 1);
    assert_eq!(places(&done[0]), [(0, 30), (30, 30), (60, 10), (100, 30), (130, 30), (160, 10)]);
}

#[test]
fn full_zones_are_reset_when_they_are_written_again() {
    let disk = Disk::new(2, 100);
    let job = Job::write(&disk, 50, false).bytes(350);
    let (done, disk) = run(disk, &[job], 3);
    assert_eq!(done[0].len(), 7);
    assert_eq!((disk.resets, disk.pointers()), (2, vec![100, 50]));
}

/// `io_size` is larger than the room in the zones, but not larger than the region. The last 8 bytes are less than a
/// block.
#[test]
fn a_pass_starts_over_until_as_many_bytes_are_done_as_are_asked_for() {
    let written = |asks: bool| {
        let disk = Disk::new(4, 75);
        let mut job = Job::write(&disk, 25, false).bytes(358);
        job.how.laps = asks;
        let (done, disk) = run(disk, &[job], 3);
        (done[0].len(), disk.resets, disk.pointers())
    };
    assert_eq!(written(true), (15, 1, vec![75; 4]), "the block that crosses the limit is done");
    assert_eq!(written(false), (12, 0, vec![75; 4]), "a size without io_size ends with the zones");
    let disk = Disk::new(4, 75);
    let job = Job::write(&disk, 25, false).bytes(308);
    assert_eq!(run(disk, &[job], 1).1.resets, 0, "no lap for less than a block");
}

#[test]
fn reads_and_trims_start_over_too() {
    let partly = || {
        let mut disk = Disk::new(4, 80);
        for zone in [0, 2] {
            (disk.zones[zone].pointer, disk.zones[zone].next) = (40, 40);
        }
        disk
    };
    let mut job = Job::new(&partly(), Mix::Single(Direction::Read), 20, false).bytes(120);
    assert_eq!(
        places(&run(partly(), &[job], 1).0[0]),
        [(0, 20), (20, 20), (200, 20), (220, 20), (0, 20), (20, 20)]
    );
    // Half of the reads are random; the sequential ones reach the end of the zones.
    job = Job::new(&partly(), Mix::Single(Direction::Read), 20, true).bytes(400);
    job.spec.random_percent = iolite_types::PerDirection::all(50);
    assert_eq!(run(partly(), &[job], 1).0[0].len(), 20);
    job = Job::new(&partly(), Mix::TrimWrite, 20, false).bytes(400);
    job.spec.block_size[Direction::Trim] = BlockSize::Fixed(ZONE);
    let (done, _) = run(partly(), &[job], 1);
    let writes = done[0].iter().filter(|io| io.direction == Direction::Write).count();
    assert_eq!((writes, done[0].len()), (20, 25), "16 fill all zones");
    job = Job::new(&Disk::new(4, 80), Mix::Single(Direction::Read), 20, false).bytes(120);
    assert_eq!(run(Disk::new(4, 80), &[job], 1).0[0], [], "there is nothing to read");
}

#[test]
fn random_writes_fill_zones_and_write_nothing_twice_without_a_reset() {
    let disk = Disk::new(8, 60);
    let job = Job::write(&disk, 20, true).bytes(8 * 60 * 3);
    let (done, disk) = run(disk, &[job], 4);
    let bytes: u64 = done[0].iter().map(|io| io.length).sum();
    assert_eq!(bytes, 8 * 60 * 3);
    assert_eq!(disk.pointers().iter().sum::<u64>() + 60 * u64::from(disk.resets), bytes);
}

/// Random writes choose among the open zones, and each open zone is written.
#[test]
fn a_limit_of_open_zones_is_kept_and_all_that_are_open_are_written_to() {
    let mut disk = Disk::new(16, 100);
    disk.most_open = 3;
    let job = Job::write(&disk, 10, true).bytes(1500);
    let (done, disk) = run(disk, &[job], 2);
    let zones = |ios: &[Io]| ios.iter().map(|io| io.offset / ZONE).collect::<std::collections::BTreeSet<_>>();
    assert_eq!((done[0].len(), zones(&done[0][..20]).len()), (150, 3), "before any of them can be full");
    assert!(disk.open() <= 3);
}

#[test]
fn an_open_zone_that_no_block_fits_into_is_finished_when_another_is_to_be_opened() {
    let mut disk = Disk::new(2, 100);
    disk.most_open = 1;
    (disk.zones[1].pointer, disk.zones[1].next, disk.zones[1].is_open) = (95, 95, true);
    let job = Job::write(&disk, 10, false).bytes(50);
    let (done, disk) = run(disk, &[job], 1);
    assert_eq!(places(&done[0]), [(0, 10), (10, 10), (20, 10), (30, 10), (40, 10)]);
    assert_eq!((disk.finishes, disk.pointers()), (1, vec![50, 100]));
}

#[test]
fn a_job_that_may_open_no_zone_waits_and_gives_up_if_none_can_be_closed() {
    let mut disk = Disk::new(3, 100);
    disk.most_open = 1;
    // The first job writes to one zone and leaves it half full, so the second job would wait for ever.
    let mut first = Job::write(&disk, 10, false).bytes(50);
    first.spec.files[0] = Region { offset: 0, length: 100 };
    let mut second = Job::write(&disk, 10, false);
    second.spec.files[0] = Region { offset: 100, length: 200 };
    let (done, disk) = run(disk, &[first, second], 1);
    assert!(done[0].len() == 5 || done[1].len() == 20, "{done:?}");
    assert!(disk.open() <= 1);
}

#[test]
fn resets_come_as_often_as_asked_once_enough_is_written() {
    let disk = Disk::new(2, 100);
    let mut job = Job::write(&disk, 10, false);
    (job.how.reset_every, job.how.reset_threshold) = (4, 0.1);
    let (done, disk) = run(disk, &[job], 1);
    // The zone is reset before the fifth write, before the ninth, and so on.
    assert_eq!(
        places(&done[0][..10])[3..],
        [(30, 10), (0, 10), (10, 10), (20, 10), (30, 10), (0, 10), (10, 10)]
    );
    assert_eq!((done[0].len(), disk.resets), (20, 4));
    let disk = Disk::new(2, 100);
    let mut job = Job::write(&disk, 10, false);
    (job.how.reset_every, job.how.reset_threshold) = (4, 1.0);
    assert_eq!(run(disk, &[job], 1).1.resets, 0, "the written share never exceeds 1");
}

#[test]
fn reads_stay_below_write_pointers() {
    for random in [false, true] {
        let mut disk = Disk::new(4, 80);
        for (zone, pointer) in [(0, 40), (1, 0), (2, 80), (3, 10)] {
            (disk.zones[zone].pointer, disk.zones[zone].next) = (pointer, pointer);
        }
        let job = Job::new(&disk, Mix::Single(Direction::Read), 20, random);
        let (done, _) = run(disk, &[job], 4);
        match random {
            false => {
                assert_eq!(places(&done[0]), [(0, 20), (20, 20), (200, 20), (220, 20), (240, 20), (260, 20)])
            }
            true => assert_eq!(done[0].len(), 20, "as many as the region has room for"),
        }
    }
    let disk = Disk::new(4, 80);
    let job = Job::new(&disk, Mix::Single(Direction::Read), 20, true);
    assert_eq!(run(disk, &[job], 1).0[0], [], "nothing is written");
}

#[test]
fn reads_of_a_mix_follow_its_writes() {
    for random in [false, true] {
        let disk = Disk::new(4, 100);
        let job = Job::new(&disk, Mix::ReadWrite(50), 10, random);
        let (done, _) = run(disk, &[job], 4);
        let reads = done[0].iter().filter(|io| io.direction == Direction::Read).count();
        assert!(done[0].len() == 40 && reads > 0, "{reads} reads of {}", done[0].len());
    }
}

#[test]
fn trims_reset_sequential_zones() {
    let mut disk = Disk::new(4, 80);
    disk.zones[0].is_sequential = false;
    (disk.zones[2].pointer, disk.zones[2].next) = (40, 40);
    let job = Job::new(&disk, Mix::Single(Direction::Trim), ZONE, false);
    let (done, disk) = run(disk, &[job], 2);
    assert_eq!(places(&done[0]), [(100, 100), (200, 100), (300, 100)]);
    assert_eq!(disk.pointers(), [0; 4]);
}

/// Writes into a trimmed zone wait until the trim is complete.
#[test]
fn writes_follow_their_trims() {
    for random in [false, true] {
        let mut disk = Disk::new(3, 80);
        disk.zones.iter_mut().for_each(|zone| (zone.pointer, zone.next) = (80, 80));
        let mut job = Job::new(&disk, Mix::TrimWrite, 20, random);
        job.spec.block_size[Direction::Trim] = BlockSize::Fixed(ZONE);
        let (done, disk) = run(disk, &[job.bytes(200)], 4);
        let directions: String =
            done[0].iter().map(|io| io.direction.name().chars().next().unwrap()).collect();
        assert_eq!(directions, "twwwwtwwwwtww", "each zone is filled before the next one is trimmed");
        let filled = done[0].iter().zip(&done[0][1..]).all(|(trim, write)| {
            trim.direction != Direction::Trim || (write.offset, write.length) == (trim.offset, 20)
        });
        assert!(filled, "{done:?}");
        assert_eq!((disk.resets, disk.pointers().iter().sum::<u64>()), (3, 200));
        let mut job = Job::new(&disk, Mix::TrimWrite, 20, random).bytes(200);
        job.spec.block_size[Direction::Trim] = BlockSize::Fixed(ZONE);
        job.spec.total_ios = Some(2);
        assert_eq!(run(disk, &[job], 1).0[0].len(), 4, "a trim and its write count as one");
    }
}

/// A trim closes its zone. If the zone may not be opened again, the write goes to a zone that is open.
#[test]
fn writes_of_trims_keep_to_the_limit_of_open_zones() {
    for random in [false, true] {
        let mut disk = Disk::new(3, 80);
        disk.most_open = 1;
        disk.zones.iter_mut().for_each(|zone| (zone.pointer, zone.next) = (80, 80));
        let mut job = Job::new(&disk, Mix::TrimWrite, 20, random);
        job.spec.block_size[Direction::Trim] = BlockSize::Fixed(ZONE);
        let (done, _) = run(disk, &[job.bytes(60)], 4);
        let writes = done[0].iter().filter(|io| io.direction == Direction::Write).count();
        assert_eq!(writes, 3, "{done:?}");
    }
    // The open zone is outside the job's region, so there is no zone to write to.
    let mut disk = Disk::new(3, 80);
    disk.most_open = 1;
    (disk.zones[2].pointer, disk.zones[2].next, disk.zones[2].is_open) = (40, 40, true);
    let mut job = Job::new(&disk, Mix::TrimWrite, 20, false);
    job.spec.block_size[Direction::Trim] = BlockSize::Fixed(ZONE);
    job.spec.files[0] = Region { offset: 0, length: 2 * ZONE };
    let (done, _) = run(disk, &[job], 4);
    assert_eq!(places(&done[0]), [(0, ZONE)]);
}

#[test]
fn a_trim_that_shows_its_zone_to_be_unusable_has_no_write() {
    let disk = Disk::new(2, 80);
    let mut job = Job::new(&disk, Mix::TrimWrite, 20, false);
    job.spec.block_size[Direction::Trim] = BlockSize::Fixed(ZONE);
    let disk = Rc::new(RefCell::new(disk));
    let mut worker = ZonedGenerator::new(&job.spec, job.how, Seen { disk: disk.clone(), me: 0 }).unwrap();
    let Next::Io(trim) = worker.next() else { panic!("a trim") };
    disk.borrow_mut().zones[0].is_usable = false;
    worker.completed(&trim, Fate::Failed);
    let next = worker.next();
    let is_other_trim = |io: &Io| io.direction == Direction::Trim && (io.offset, io.length) == (ZONE, ZONE);
    assert!(matches!(&next, Next::Io(io) if is_other_trim(io)), "{next:?}");
}

#[test]
fn conventional_zones_are_written_and_unusable_ones_skipped() {
    let mut disk = Disk::new(4, 80);
    disk.zones[0].is_sequential = false;
    disk.zones[2].is_usable = false;
    let job = Job::write(&disk, 20, false);
    let (done, _) = run(disk, &[job], 4);
    let zones: Vec<u64> = done[0].iter().map(|io| io.offset / ZONE).collect();
    assert_eq!(zones, [0, 0, 0, 0, 0, 1, 1, 1, 1, 3, 3, 3, 3]);
    let mut disk = Disk::new(4, 80);
    disk.zones[0].is_sequential = false;
    disk.zones[2].is_usable = false;
    let job = Job::write(&disk, 20, true).bytes(2000);
    let (done, _) = run(disk, &[job], 4);
    let at = |zone: u64| done[0].iter().filter(|io| io.offset / ZONE == zone).count();
    assert!(at(0) > 0 && at(1) > 0 && at(2) == 0 && at(3) > 0);
}

/// A disk with two conventional zones, one of which is cut by the region, and four sequential ones.
fn of_both_kinds() -> (Disk, Region) {
    let mut disk = Disk::new(6, 80);
    disk.zones[..2].iter_mut().for_each(|zone| (zone.is_sequential, zone.capacity) = (false, ZONE));
    (disk, Region { offset: 40, length: 560 })
}

/// How often each byte is visited.
fn visits(ios: &[Io]) -> Vec<u32> {
    let mut visits = vec![0; 600];
    let bytes = ios.iter().flat_map(|io| io.offset..io.offset + io.length);
    bytes.for_each(|byte| visits[byte as usize] += 1);
    visits
}

/// How often each byte is visited by a job that goes over the usable bytes of the disk `times` times.
fn evenly(times: u32) -> Vec<u32> {
    let is_usable = |byte: u64| byte >= 40 && (byte < 200 || byte % ZONE < 80);
    (0..600).map(|byte| if is_usable(byte) { times } else { 0 }).collect()
}

/// The usable bytes of the disk.
const USABLE: u64 = 60 + 100 + 4 * 80;

#[test]
fn random_writes_visit_each_block_of_every_zone_once_in_a_lap() {
    let sizes = [BlockSize::Fixed(20), BlockSize::Range(4, 20), BlockSize::Split(vec![(4, 50), (20, 50)])];
    for (size, most_open, depth) in
        sizes.iter().flat_map(|size| [(size, usize::MAX, 4), (size, 2, 1), (size, 2, 4)])
    {
        let (mut disk, region) = of_both_kinds();
        disk.most_open = most_open;
        for (count, laps) in [(USABLE, 1), (USABLE * 3, 3)] {
            let mut job = Job::write(&disk, 20, true).bytes(count);
            (job.spec.files[0], job.spec.block_size[Direction::Write]) = (region, size.clone());
            job.spec.align[Direction::Write] = size.min();
            let (done, disk) = run(disk.clone(), &[job], depth);
            assert_eq!(visits(&done[0]), evenly(laps), "{size:?}, at most {most_open} open");
            assert_eq!(disk.resets, 4 * (laps - 1));
        }
    }
}

/// A zone that was partly written before gets its remaining blocks first and is then reset.
#[test]
fn random_writes_visit_each_block_once_in_zones_that_were_written_before() {
    let (mut disk, region) = of_both_kinds();
    for (zone, pointer) in [(2, 40), (3, 80)] {
        (disk.zones[zone].pointer, disk.zones[zone].next) = (pointer, pointer);
    }
    let mut job = Job::write(&disk, 20, true).bytes(USABLE);
    job.spec.files[0] = region;
    let (done, disk) = run(disk, &[job], 4);
    assert_eq!((visits(&done[0]), disk.resets), (evenly(1), 2));
}

#[test]
fn a_pass_of_verified_random_writes_fills_each_zone_and_then_ends() {
    let (mut disk, region) = of_both_kinds();
    disk.zones[3].is_usable = false;
    let mut job = Job::write(&disk, 20, true);
    job.spec.files[0] = region;
    (job.how.rewrites, job.how.begins_empty) = (false, true);
    let (done, _) = run(disk, &[job], 4);
    let mut expected = evenly(1);
    expected[300..400].fill(0);
    assert_eq!(visits(&done[0]), expected);
}

#[test]
fn random_reads_visit_each_written_block_once() {
    let (mut disk, region) = of_both_kinds();
    for zone in 2..6 {
        (disk.zones[zone].pointer, disk.zones[zone].next) = (80, 80);
    }
    let mut job = Job::new(&disk, Mix::Single(Direction::Read), 20, true).bytes(2 * USABLE);
    job.spec.files[0] = region;
    assert_eq!(visits(&run(disk, &[job], 4).0[0]), evenly(2));
    // The rest of a zone behind its capacity can be read, but not written.
    let (disk, region) = of_both_kinds();
    let mut job = Job::new(&disk, Mix::Single(Direction::Read), 20, true);
    (job.spec.files[0], job.how.read_beyond) = (region, true);
    let (mut zoned, mut whole) = (Disk::new(6, 80), vec![1; 600]);
    zoned.zones.clone_from(&disk.zones);
    zoned.zones.iter_mut().for_each(|zone| zone.pointer = ZONE);
    whole[..40].fill(0);
    assert_eq!(visits(&run(zoned, &[job], 4).0[0]), whole);
}

/// The shares of zones follow the distribution, as those of blocks do without zones.
#[test]
fn distributions_apply_to_zones() {
    let mut disk = Disk::new(10, 80);
    disk.zones[..5].iter_mut().for_each(|zone| (zone.is_sequential, zone.capacity) = (false, ZONE));
    let mut job = Job::write(&disk, 20, true).bytes(20_000);
    let zone = |share, percent| crate::Zone { share, size: crate::ZoneSize::Percent(percent) };
    let zones = vec![zone(90, 20.0), zone(10, 80.0)];
    job.spec.distribution = crate::Distribution::Zones(iolite_types::PerDirection::all(zones));
    let (done, _) = run(disk, &[job], 1);
    let first = done[0].iter().filter(|io| io.offset < 200).count();
    assert!((800..990).contains(&first), "{first} of 1000");
}

/// Verified writes without coverage go to conventional zones when the others are full.
#[test]
fn writes_that_may_come_twice_go_on_in_conventional_zones() {
    let (disk, region) = of_both_kinds();
    let mut job = Job::write(&disk, 20, true);
    (job.spec.files[0], job.spec.cover) = (region, false);
    (job.how.rewrites, job.how.begins_empty) = (false, true);
    let (done, disk) = run(disk, &[job], 1);
    assert_eq!(done[0].len() as u64, region.length / 20, "as many as the region has room for");
    assert_eq!(disk.resets, 0);
}

/// A run continues behind its random first block: in a conventional zone there, in a sequential one at the write pointer.
#[test]
fn runs_follow_their_first_block() {
    let (mut disk, _) = of_both_kinds();
    disk.zones.truncate(2);
    let mut job = Job::write(&disk, 20, true).bytes(2000);
    job.spec.ios_per_random = 3;
    let (done, _) = run(disk, &[job], 1);
    let follows = |pair: &&[Io]| pair[0].offset + 20 == pair[1].offset;
    let count = done[0].windows(2).filter(follows).count();
    assert!(count >= 40, "{count} of 100 follow the block before them");
}

#[test]
fn several_workers_write_to_the_same_zones() {
    for (random, most_open) in [(false, usize::MAX), (true, usize::MAX), (true, 2), (false, 1)] {
        let mut disk = Disk::new(6, 80);
        disk.most_open = most_open;
        let job = || Job::write(&Disk::new(6, 80), 20, random).bytes(400);
        let (done, disk) = run(disk, &[job(), job(), job()], 4);
        let bytes: u64 = done.iter().flatten().map(|io| io.length).sum();
        // (A sequential worker reaches the end sooner if others have filled its zones.)
        assert!(bytes == 1200 || (!random && bytes < 1200), "random: {random}, at most {most_open} open");
        assert_eq!(disk.pointers().iter().sum::<u64>() + 80 * u64::from(disk.resets), bytes);
    }
}

#[test]
fn sequential_jobs_skip_zones_and_go_on_at_the_beginning_of_a_whole_device() {
    let zones = |wraps: bool, verifies: bool| {
        let disk = Disk::new(5, 100);
        let mut job = Job::write(&disk, 50, false);
        (job.how.skip, job.how.skip_wraps, job.how.rewrites) = (ZONE, wraps, !verifies);
        let (done, disk) = run(disk, &[job], 1);
        let zones = done[0].iter().step_by(2).map(|io| io.offset / ZONE).collect::<Vec<u64>>();
        (zones, disk.resets)
    };
    assert_eq!(zones(false, false), (vec![0, 2, 4], 0));
    assert_eq!(zones(true, false), (vec![0, 2, 4, 0, 2], 2));
    assert_eq!(zones(true, true), (vec![0, 2, 4, 1, 3], 0), "verified zones are written once");
}

#[test]
fn passes_begin_with_empty_zones_where_that_is_asked_for() {
    let mut disk = Disk::new(3, 100);
    disk.zones.iter_mut().for_each(|zone| (zone.pointer, zone.next) = (100, 100));
    (disk.zones[1].is_usable, disk.zones[2].pointer, disk.zones[2].next) = (false, 0, 0);
    let mut job = Job::write(&disk, 50, false);
    (job.how.begins_empty, job.how.rewrites) = (true, false);
    let (done, disk) = run(disk, &[job], 2);
    assert_eq!(places(&done[0]), [(0, 50), (50, 50), (200, 50), (250, 50)]);
    assert_eq!(disk.resets, 1, "empty zones are not reset");
}

#[test]
fn one_write_at_a_time_where_engines_keep_no_order() {
    let disk = Rc::new(RefCell::new(Disk::new(4, 100)));
    let mut job = Job::write(&disk.borrow(), 50, false);
    job.how.one_by_one = true;
    let mut worker = ZonedGenerator::new(&job.spec, job.how, Seen { disk: disk.clone(), me: 0 }).unwrap();
    let Next::Io(first) = worker.next() else { panic!("there is a write") };
    assert!(matches!(worker.next(), Next::Script(Step::Wait)));
    worker.completed(&first, Fate::Done);
    assert!(matches!(worker.next(), Next::Io(Io { offset: 50, .. })));
}
