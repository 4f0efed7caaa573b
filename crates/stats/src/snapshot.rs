//! Snapshots: the progress of a run, taken at intervals.
//!
//! A snapshot has cumulative counters and no rates: a reader takes the difference of any two snapshots. A lost
//! snapshot costs nothing.

use crate::in_flight::Stuck;
use crate::latency::Latency;
use crate::report::DiskCounters;
use crate::stages::StagesSoFar;
use iolite_types::{Direction, PerDirection};
use serde::{Deserialize, Serialize};

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Nanoseconds from the start of the run to the moment at which the counters were read.
    pub elapsed_ns: u64,
    /// All workers, in the order of their numbers.
    pub workers: Vec<WorkerSnapshot>,
    /// Percent done, if known.
    pub percent: Option<f64>,
    /// Seconds left, if known.
    pub eta_s: Option<u64>,
    /// 1024 or 1000.
    pub kb_base: u32,
    /// 0, 8 or 1.
    pub unit_base: u32,
    /// I/Os that have been in flight for long, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// Files are being laid out, for `elapsed_ns`; the run begins after that.
    #[serde(default)]
    pub is_laying_out: bool,
    /// The disks below the files, in samples for those who watch the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskSnapshot>,
}

/// What a disk has done since the machine was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskSnapshot {
    /// Its name, with that of its machine if there are several.
    pub name: String,
    /// When it was looked at, in nanoseconds of a clock of its machine.
    pub at_ns: u64,
    /// The milliseconds in which it was busy.
    pub busy_ms: u64,
    /// Its counters.
    pub counters: DiskCounters,
}

/// The most kinds of failed I/Os: there are not so many errors, whatever another machine says.
const MOST_KINDS: usize = 1000;

impl Snapshot {
    /// All workers as one.
    pub fn summed(&self) -> WorkerSnapshot {
        WorkerSnapshot::sum(&self.workers)
    }
}

impl WorkerSnapshot {
    /// The latency that 99% of its I/Os have not exceeded, in nanoseconds; `None` = no latency is known.
    pub fn p99(&self) -> Option<u64> {
        let mut all = Latency::default();
        self.counters.iter().for_each(|(_, counters)| all += &counters.latency);
        if all.moments.count == 0 { None } else { all.histogram.percentiles(&[99.0]).first().copied() }
    }

    /// Several workers as one: sums, and the state of the least advanced worker that does I/O; if none does I/O, that
    /// of the least advanced worker of all.
    pub fn sum<'a>(workers: impl IntoIterator<Item = &'a WorkerSnapshot>) -> WorkerSnapshot {
        let mut sum = WorkerSnapshot { state: '_', ..WorkerSnapshot::default() };
        for one in workers {
            if rank(one.state) < rank(sum.state) {
                sum.state = one.state;
            }
            sum.running |= one.running;
            sum.open_files = sum.open_files.saturating_add(one.open_files);
            sum.limits += &one.limits;
            sum.resets = sum.resets.saturating_add(one.resets);
            for failures in &one.failures {
                let kind = |of: &Failures| (of.direction, of.errno);
                let has_room = sum.failures.len() < MOST_KINDS;
                match sum.failures.iter_mut().find(|mine| kind(mine) == kind(failures)) {
                    Some(mine) => mine.count = mine.count.saturating_add(failures.count),
                    None if has_room => sum.failures.push(*failures),
                    None => {}
                }
            }
            one.stages.iter().for_each(|stages| stages.add_to(&mut sum.stages));
            for direction in Direction::ALL {
                sum.uses[direction] |= one.uses[direction];
                let (mine, theirs) = (&mut sum.counters[direction], &one.counters[direction]);
                mine.ios = mine.ios.saturating_add(theirs.ios);
                mine.bytes = mine.bytes.saturating_add(theirs.bytes);
                mine.latency += &theirs.latency;
                mine.asked += theirs.asked;
            }
        }
        sum
    }
}

/// The rank of a state: of several workers, the state with the lowest rank is shown.
fn rank(state: char) -> u32 {
    match state {
        '/' => 0,
        'R' | 'r' | 'W' | 'w' | 'D' | 'd' | 'M' | 'm' => 1,
        'V' => 2,
        'F' => 3,
        'p' => 4,
        'C' | 'I' => 5,
        'P' => 6,
        'f' | 'E' => 7,
        'K' => 8,
        'X' => 9,
        _ => 10,
    }
}

/// The progress of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// The letter of its state in the status line.
    pub state: char,
    /// It runs, or is about to start.
    pub running: bool,
    /// The number of files that it has open.
    pub open_files: u32,
    /// The directions that its job uses.
    pub uses: PerDirection<bool>,
    /// The limits of its rates, summed over the directions that it uses.
    pub limits: RateLimits,
    /// Its counters.
    pub counters: PerDirection<Counters>,
    /// Its failed I/Os.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failures>,
    /// Where the time of its I/Os went (`stages`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StagesSoFar>,
    /// How often its latencies were cleared (at the end of a ramp). The latencies of two snapshots can be subtracted
    /// if this is the same in both.
    pub resets: u64,
}

/// The counters of one direction since the worker began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Completion latencies since they were last cleared.
    pub latency: Latency,
    /// What its `rate_schedule` has asked for.
    #[serde(default, skip_serializing_if = "Asked::is_nothing")]
    pub asked: Asked,
}

/// What a schedule of rates has asked for: I/Os or bytes, whichever it counts. Workers of both kinds can be added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Asked {
    /// There is no schedule, or it has asked for nothing so far.
    pub fn is_nothing(&self) -> bool {
        *self == Asked::default()
    }

    /// What was asked for since then.
    pub fn since(self, earlier: Asked) -> Asked {
        Asked { ios: self.ios.saturating_sub(earlier.ios), bytes: self.bytes.saturating_sub(earlier.bytes) }
    }
}

impl std::ops::AddAssign for Asked {
    fn add_assign(&mut self, other: Asked) {
        self.ios = self.ios.saturating_add(other.ios);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Failed I/Os of one kind since the worker began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// `None` = syncs, and what else has no direction.
    pub direction: Option<Direction>,
    /// The error; 0 = any of those beyond the first few.
    pub errno: i32,
    /// How many.
    pub count: u64,
}

/// Limits on rates; 0 = none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimits {
    /// Bytes per second; a slower worker gives up.
    pub min_bandwidth: u64,
    /// Bytes per second; a worker is not faster.
    pub max_bandwidth: u64,
    /// I/Os per second; a slower worker gives up.
    pub min_iops: u64,
    /// I/Os per second; a worker is not faster.
    pub max_iops: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_as_one() {
        let worker = |state, ios: u64| {
            let mut worker = WorkerSnapshot { state, running: state != '_', resets: 1, ..Default::default() };
            let read = &mut worker.counters[Direction::Read];
            (read.ios, read.bytes) = (ios, 4096 * ios);
            read.asked = Asked { ios: 2 * ios, bytes: 0 };
            (0..ios).for_each(|value| {
                read.latency.moments.record(value);
                read.latency.histogram.record(value);
            });
            worker.uses[Direction::Read] = true;
            worker.failures = vec![Failures { direction: None, errno: 5, count: ios }];
            worker
        };
        let snapshot =
            Snapshot { workers: vec![worker('_', 3), worker('r', 5), worker('P', 0)], ..Default::default() };
        let sum = snapshot.summed();
        assert_eq!((sum.state, sum.running, sum.resets), ('r', true, 3));
        let read = &sum.counters[Direction::Read];
        assert_eq!((read.ios, read.bytes, read.latency.moments.count), (8, 8 * 4096, 8));
        assert_eq!(read.latency.histogram.occupied().next(), Some((0, 2)));
        assert_eq!(read.asked, Asked { ios: 16, bytes: 0 });
        assert_eq!(sum.failures, [Failures { direction: None, errno: 5, count: 8 }]);
        assert!(sum.uses[Direction::Read] && !sum.uses[Direction::Write]);
        assert_eq!(WorkerSnapshot::sum(&[worker('r', 1), worker('/', 1)]).state, '/');
        let nobody: [WorkerSnapshot; 0] = [];
        assert_eq!((WorkerSnapshot::sum(&nobody).state, WorkerSnapshot::sum(&nobody).running), ('_', false));
    }
}
