//! The progress of the run: the share that is done and the time that remains.

use crate::shared::{Phase, Slot};
use iolite_plan::EstimateRules;
use iolite_types::Direction;
use std::sync::atomic::Ordering::Relaxed;

/// The remaining time of a worker in seconds, not counting the time until it starts.
///
/// The estimate is based on the worker's total work (`pass_bytes` in each pass, a number of I/Os, a time) and on its
/// rate so far. A worker that is ended only by its time still reads back its writes until then. `None` = nothing is
/// known yet.
pub fn seconds_left(rules: &EstimateRules, pass_bytes: u64, slot: &Slot, now_ns: u64) -> Option<f64> {
    let phase = slot.control.phase();
    if phase == Phase::Exited {
        return Some(0.0);
    }
    let limit = |elapsed_s: f64| rules.limit_s.map(|limit_s| (limit_s - elapsed_s).max(0.0));
    if phase < Phase::Ramping {
        return limit(0.0);
    }
    let elapsed_s = now_ns.saturating_sub(slot.control.started_ns.load(Relaxed)) as f64 / 1e9;
    let by_time = limit(elapsed_s);
    let reads_left = (phase == Phase::Verifying).then(|| ReadsLeft::of(slot, now_ns)).flatten();
    if rules.only_time {
        return match (by_time, reads_left) {
            (Some(time), Some(reads)) => Some(reads.seconds.max(time)),
            (time, _) => time,
        };
    }
    let work = Work { rules, slot, elapsed_s, reads_left };
    let by_bytes = work.by_bytes(pass_bytes as f64 * rules.byte_passes);
    let by_ios = rules.ios.and_then(|ios| work.by_ios(ios));
    [by_time, by_bytes, by_ios].into_iter().flatten().reduce(f64::min)
}

/// The work of a worker, and its progress.
struct Work<'a> {
    rules: &'a EstimateRules,
    slot: &'a Slot,
    elapsed_s: f64,
    reads_left: Option<ReadsLeft>,
}

impl Work<'_> {
    /// Seconds until `total` bytes are moved.
    fn by_bytes(&self, total: f64) -> Option<f64> {
        let moved = self.sum(|slot, direction| slot.stats.moved(direction).bytes);
        let reads = self.reads_left.map_or(0.0, |reads| reads.bytes);
        self.seconds(total - moved - reads, moved)
    }

    /// Seconds until `total` I/Os are done.
    fn by_ios(&self, total: f64) -> Option<f64> {
        let ever = self.sum(|slot, direction| slot.stats.moved(direction).ios);
        let reads = self.reads_left.map_or(0.0, |reads| reads.ios);
        // I/Os of a ramp do not count.
        let counted = self.sum(|slot, direction| slot.stats.directions[direction].ios.get());
        let left = self.seconds(total - counted - reads, ever)?;
        let ramp_left = self.rules.ramp_s - self.elapsed_s;
        // If the ramp ends first, all I/Os come after it.
        if ramp_left > 0.0 && left > ramp_left {
            Some(ramp_left + self.seconds(total, ever)?)
        } else {
            Some(left)
        }
    }

    fn sum(&self, of: impl Fn(&Slot, usize) -> u64) -> f64 {
        Direction::ALL.into_iter().map(|direction| of(self.slot, direction.index())).sum::<u64>() as f64
    }

    /// Seconds until the rest is done, at the rate so far, after the current reading back.
    fn seconds(&self, rest: f64, done: f64) -> Option<f64> {
        let reads_s = self.reads_left.map_or(0.0, |reads| reads.seconds);
        (done > 0.0 && self.elapsed_s > 0.0).then(|| reads_s + rest.max(0.0) / (done / self.elapsed_s))
    }
}

/// The rest of a phase that reads back the writes of a pass.
#[derive(Clone, Copy, Debug)]
struct ReadsLeft {
    seconds: f64,
    ios: f64,
    bytes: f64,
}

impl ReadsLeft {
    fn of(slot: &Slot, now_ns: u64) -> Option<ReadsLeft> {
        let read = &slot.stats.directions[Direction::Read.index()];
        let (begun, issued) = slot.stats.consistent(|_| read.clock.span())?;
        let done = read.issued.get().saturating_sub(issued);
        let moved = slot.stats.moved(Direction::Read.index());
        let left = slot.control.read_until.load(Relaxed).saturating_sub(moved.ios) as f64;
        (done > 0 && moved.ios > 0).then(|| ReadsLeft {
            seconds: left * (now_ns.saturating_sub(begun) as f64 / 1e9) / done as f64,
            ios: left,
            bytes: left * moved.bytes as f64 / moved.ios as f64,
        })
    }
}

/// The elapsed share of the total time, in percent.
pub fn percent(elapsed_s: f64, left_s: f64) -> f64 {
    let all = elapsed_s + left_s;
    if all <= 0.0 { 0.0 } else { (100.0 * elapsed_s / all).clamp(0.0, 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Arena;

    const READ: [bool; 3] = [true, false, false];
    const WRITE: [bool; 3] = [false, true, false];

    /// A job that moves all bytes once.
    const ONCE: EstimateRules =
        EstimateRules { limit_s: None, only_time: false, ramp_s: 0.0, byte_passes: 1.0, ios: None };

    /// A worker that started at second 1.
    fn running(slot: &Slot) {
        slot.control.set_phase(Phase::Running);
        slot.control.started_ns.store(1_000_000_000, Relaxed);
        slot.control.counting_ns.store(1_000_000_000, Relaxed);
    }

    /// It completes this number of I/Os of 10 bytes.
    fn moves(slot: &Slot, direction: Direction, ios: u64) {
        let live = &slot.stats.directions[direction.index()];
        live.issued.add(ios);
        live.ios.add(ios);
        live.bytes.add(10 * ios);
    }

    #[test]
    fn the_eta_follows_bytes_or_time_whichever_ends_first() {
        let arena = Arena::new(1).unwrap();
        let slot = arena.slot(0);
        running(slot);
        let now = 3_000_000_000;
        let rules = ONCE;
        assert_eq!(seconds_left(&rules, 400, slot, now), None);
        moves(slot, Direction::Read, 10);
        assert_eq!(seconds_left(&rules, 400, slot, now), Some(6.0));
        let flash = EstimateRules { byte_passes: 1.25, ..ONCE };
        assert_eq!(seconds_left(&flash, 400, slot, now), Some(8.0));
        let limited = EstimateRules { limit_s: Some(5.0), ..ONCE };
        assert_eq!(seconds_left(&limited, 400, slot, now), Some(3.0));
        assert_eq!(seconds_left(&limited, 200, slot, now), Some(2.0));
        let based = EstimateRules { only_time: true, ..limited };
        assert_eq!(seconds_left(&based, 200, slot, now), Some(3.0));
        // Bytes that were moved in a ramp count.
        slot.stats.reset(now);
        assert_eq!(seconds_left(&rules, 400, slot, now), Some(6.0));
    }

    #[test]
    fn by_ios() {
        let arena = Arena::new(1).unwrap();
        let slot = arena.slot(0);
        running(slot);
        let rules = EstimateRules { ios: Some(60.0), byte_passes: 2.0, ..ONCE };
        moves(slot, Direction::Read, 10);
        // 10 of 60 in 2 s.
        assert_eq!(seconds_left(&rules, 1 << 20, slot, 3_000_000_000), Some(10.0));
        assert_eq!(seconds_left(&rules, 200, slot, 3_000_000_000), Some(6.0));
        let based = EstimateRules { only_time: true, limit_s: Some(60.0), ..rules };
        assert_eq!(seconds_left(&based, 200, slot, 3_000_000_000), Some(58.0));
        // The ramp ends before the I/Os do, so all of them follow it.
        slot.control.set_phase(Phase::Ramping);
        let ramping = EstimateRules { ramp_s: 6.0, ..rules };
        assert_eq!(seconds_left(&ramping, 1 << 20, slot, 3_000_000_000), Some(4.0 + 12.0));
        let ramping = EstimateRules { ramp_s: 20.0, ..rules };
        assert_eq!(seconds_left(&ramping, 1 << 20, slot, 3_000_000_000), Some(10.0));
        // I/Os of the ramp do not count, but their rate is known.
        slot.control.set_phase(Phase::Running);
        slot.stats.reset(3_000_000_000);
        assert_eq!(seconds_left(&rules, 1 << 20, slot, 3_000_000_000), Some(12.0));
        moves(slot, Direction::Read, 10);
        assert_eq!(seconds_left(&rules, 1 << 20, slot, 5_000_000_000), Some(10.0));
        let pairs = EstimateRules { byte_passes: 2.0, ..rules };
        moves(slot, Direction::Write, 10);
        moves(slot, Direction::Trim, 10);
        // 30 of 60 since the ramp, and 40 in 8 s.
        assert_eq!(seconds_left(&pairs, 1 << 20, slot, 9_000_000_000), Some(6.0));
    }

    #[test]
    fn reading_back_is_part_of_it_from_the_start() {
        let arena = Arena::new(1).unwrap();
        let slot = arena.slot(0);
        running(slot);
        // Written blocks are read back.
        let rules = EstimateRules { byte_passes: 2.0, ..ONCE };
        slot.stats.begin_span(WRITE, 1_000_000_000);
        moves(slot, Direction::Write, 20);
        // 200 of 400 bytes are written in 2 s, and 400 will be read.
        assert_eq!(seconds_left(&rules, 400, slot, 3_000_000_000), Some(6.0));
        moves(slot, Direction::Write, 20);
        slot.stats.end_span(WRITE, 5_000_000_000);
        slot.control.set_phase(Phase::Verifying);
        slot.control.read_until.store(40, Relaxed);
        slot.stats.begin_span(READ, 5_000_000_000);
        moves(slot, Direction::Read, 10);
        // A quarter is read in half a second.
        assert_eq!(seconds_left(&rules, 400, slot, 5_500_000_000), Some(1.5));
        let based = EstimateRules { only_time: true, limit_s: Some(4.0), ..rules };
        assert_eq!(seconds_left(&based, 400, slot, 5_500_000_000), Some(1.5));
        let counted = EstimateRules { ios: Some(80.0), ..rules };
        assert_eq!(seconds_left(&counted, 1 << 20, slot, 5_500_000_000), Some(1.5));
    }

    #[test]
    fn shares() {
        assert_eq!(percent(1.0, 3.0), 25.0);
        assert_eq!(percent(0.0, 0.0), 0.0);
        assert_eq!(percent(5.0, 0.0), 100.0);
    }
}
