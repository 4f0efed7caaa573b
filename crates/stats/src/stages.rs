//! Where the time of I/Os went: the stages between issue and completion.
//!
//! The stages of one I/O follow each other without gaps, so they add up to its latency. Sums are kept for each bucket
//! of that latency: what p99 is made of, and whose the tail is, follow from them and merge exactly.

use crate::histogram::{bucket_of, midpoint};
use crate::latency::Latency;
use iolite_types::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// A stage of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From issue until the kernel's block layer has it, or the request to a server is handed over.
    Submit,
    /// From the block layer until the driver has it.
    Queue,
    /// From the driver until the device has completed it.
    Device,
    /// From submission until the answer of the server is there.
    Server,
    /// Until the connection to the server is established.
    Connect,
    /// Until the handshake of TLS is over.
    Tls,
    /// Until the request is sent.
    Send,
    /// Until the first byte of the answer.
    FirstByte,
    /// Until its last byte.
    LastByte,
    /// From completion until the job has noticed.
    Reap,
}

impl Stage {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Submit => "submit",
            Stage::Queue => "queue",
            Stage::Device => "device",
            Stage::Server => "server",
            Stage::Connect => "connect",
            Stage::Tls => "tls",
            Stage::Send => "send",
            Stage::FirstByte => "first byte",
            Stage::LastByte => "last byte",
            Stage::Reap => "reap",
        }
    }

    /// Whose time it is, as the subject of a sentence.
    pub fn owner(self) -> &'static str {
        match self {
            Stage::Submit => "the submission's",
            Stage::Queue => "the queue's",
            Stage::Device => "the device's",
            Stage::Connect => "the connection's",
            Stage::Tls => "the TLS handshake's",
            Stage::Send => "the sending's",
            Stage::Server | Stage::FirstByte | Stage::LastByte => "the server's and the network's",
            Stage::Reap => "the software's after completion",
        }
    }

    /// The most stages of any engine.
    pub const MOST: usize = 5;

    /// The stages of I/Os on block devices.
    pub const OF_BLOCK_DEVICES: [Stage; 4] = [Stage::Submit, Stage::Queue, Stage::Device, Stage::Reap];

    /// The stages of requests over HTTP.
    pub const OF_REQUESTS: [Stage; 5] =
        [Stage::Connect, Stage::Tls, Stage::Send, Stage::FirstByte, Stage::LastByte];

    /// The stages of I/Os that a server answers.
    pub const OF_ANSWERS: [Stage; 3] = [Stage::Submit, Stage::Server, Stage::Reap];
}

/// Why the stages of an I/O are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    /// Records of the kernel or of the job were lost meanwhile.
    Lost,
    /// Others accessed the same sectors at the same time.
    Overlap,
    /// I/Os of one submission could not be told apart.
    Batch,
    /// The kernel handed it to another thread, and its place on the device is not known.
    Thread,
    /// The kernel's stamps contradict the job's.
    Order,
    /// The job's own stamps were lost: the process that collects them was too slow.
    Stamps,
    /// The engine does not know them: the I/O was several requests, or was sent again.
    Untold,
}

impl Unmatched {
    /// All reasons.
    pub const ALL: [Unmatched; 7] = [
        Unmatched::Lost,
        Unmatched::Overlap,
        Unmatched::Batch,
        Unmatched::Thread,
        Unmatched::Order,
        Unmatched::Stamps,
        Unmatched::Untold,
    ];

    /// The key of the reason in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Unmatched::Lost => "lost",
            Unmatched::Overlap => "overlap",
            Unmatched::Batch => "batch",
            Unmatched::Thread => "thread",
            Unmatched::Order => "order",
            Unmatched::Stamps => "stamps",
            Unmatched::Untold => "untold",
        }
    }

    /// The reason, for a report.
    pub fn words(self) -> &'static str {
        match self {
            Unmatched::Lost => "while records were lost",
            Unmatched::Overlap => "same sectors in flight twice",
            Unmatched::Batch => "submitted together",
            Unmatched::Thread => "submitted by another thread",
            Unmatched::Order => "stamps out of order",
            Unmatched::Stamps => "own stamps lost",
            Unmatched::Untold => "not told by the engine",
        }
    }
}

/// The time of one stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTime {
    /// The stage.
    pub stage: Stage,
    /// How long it took.
    pub latency: Latency,
}

/// One of the slowest I/Os. They are ordered by their latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlowIo {
    /// Its latency, in nanoseconds.
    pub whole_ns: u64,
    /// The time of each stage.
    pub stages_ns: Vec<u64>,
    /// When it was complete, in nanoseconds since the first I/O.
    pub at_ns: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
    /// The file.
    pub file: String,
    /// Its direction.
    pub direction: Option<Direction>,
}

/// The I/Os that were completed in a window of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageWindow {
    /// How many.
    pub ios: u64,
    /// The sum of each stage, in nanoseconds.
    pub sums_ns: Vec<u64>,
}

/// Where the time of the I/Os of a direction went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTimes {
    /// The stages, in the order of time.
    pub stages: Vec<StageTime>,
    /// The latency that they add up to.
    pub whole: Latency,
    /// It begins before submission (lat), because the engine's own issue stamp comes after it; else it is clat.
    pub from_start: bool,
    /// For each bucket of that latency, the sum of each stage in nanoseconds.
    sums: BTreeMap<u16, Vec<u64>>,
    /// The length of a window, in nanoseconds.
    pub window_ns: u64,
    /// The windows, from the first I/O on.
    pub windows: Vec<StageWindow>,
    /// The slowest, in descending order: at most [`StageTimes::MOST_SLOWEST`].
    pub slowest: Vec<SlowIo>,
    /// I/Os that needed several requests: their stages are those of the one that was complete last.
    pub split: u64,
    /// I/Os that shared a request with others.
    pub merged: u64,
    /// I/Os that no device took part in: answered from or taken over by the page cache.
    pub without_device: u64,
    /// I/Os whose stages are not known, and why.
    pub unmatched: BTreeMap<Unmatched, u64>,
    /// Records of the kernel that were lost in the whole run.
    pub lost_records: u64,
    /// I/Os of other jobs that are reported together with these and have other stages, or a latency that begins
    /// elsewhere.
    pub left_out: u64,
}

impl StageTimes {
    /// How many of the slowest I/Os are kept.
    pub const MOST_SLOWEST: usize = 100;
    /// The length of the first windows.
    const SHORTEST_WINDOW_NS: u64 = 100_000_000;
    /// The most windows; then they become twice as long.
    const MOST_WINDOWS: usize = 240;

    /// Nothing yet, of these stages.
    pub fn new(stages: &[Stage], from_start: bool) -> StageTimes {
        StageTimes {
            stages: stages.iter().map(|&stage| StageTime { stage, latency: Latency::default() }).collect(),
            whole: Latency::default(),
            from_start,
            sums: BTreeMap::new(),
            window_ns: Self::SHORTEST_WINDOW_NS,
            windows: Vec::new(),
            slowest: Vec::new(),
            split: 0,
            merged: 0,
            without_device: 0,
            unmatched: BTreeMap::new(),
            lost_records: 0,
            left_out: 0,
        }
    }

    /// Where a stage begins and ends.
    pub fn span(&self, stage: Stage) -> &'static str {
        let has_server = self.stages.iter().any(|one| one.stage == Stage::Server);
        match stage {
            Stage::Submit if has_server && self.from_start => "start -> handed over",
            Stage::Submit if has_server => "issue -> sent",
            Stage::Submit if self.from_start => "start -> block layer",
            Stage::Submit => "issue -> block layer",
            Stage::Queue => "block layer -> driver",
            Stage::Device => "driver -> completion",
            Stage::Server if self.from_start => "handed over -> answer",
            Stage::Server => "sent -> answer",
            Stage::Connect => "issue -> connected",
            Stage::Tls => "connected -> encrypted",
            Stage::Send => "encrypted -> request sent",
            Stage::FirstByte => "sent -> first byte",
            Stage::LastByte => "first -> last byte, reaped",
            Stage::Reap if has_server => "answer -> reaped",
            Stage::Reap => "completion -> reaped",
        }
    }

    /// Adds an I/O whose stages took this long, which was complete at `at_ns`. `slow` describes it, if it is among the
    /// slowest.
    pub fn record(&mut self, stages_ns: &[u64], at_ns: u64, slow: impl FnOnce() -> SlowIo) {
        let whole_ns = stages_ns.iter().sum();
        let bucket = bucket_of(whole_ns) as u16;
        record(&mut self.whole, whole_ns);
        let sums = self.sums.entry(bucket).or_insert_with(|| vec![0; stages_ns.len()]);
        for ((stage, sum), &time) in self.stages.iter_mut().zip(sums).zip(stages_ns) {
            record(&mut stage.latency, time);
            *sum += time;
        }
        let mut number = (at_ns / self.window_ns) as usize;
        while number >= Self::MOST_WINDOWS {
            self.coarsen();
            number = (at_ns / self.window_ns) as usize;
        }
        if self.windows.len() <= number {
            let empty = StageWindow { ios: 0, sums_ns: vec![0; stages_ns.len()] };
            self.windows.resize(number + 1, empty);
        }
        let window = &mut self.windows[number];
        window.ios += 1;
        window.sums_ns.iter_mut().zip(stages_ns).for_each(|(sum, time)| *sum += time);
        let is_full = self.slowest.len() == Self::MOST_SLOWEST;
        if !is_full || self.slowest.last().is_some_and(|last| last.whole_ns < whole_ns) {
            let place = self.slowest.partition_point(|known| known.whole_ns >= whole_ns);
            let stages_ns = stages_ns.to_vec();
            self.slowest.insert(place, SlowIo { whole_ns, stages_ns, at_ns, ..slow() });
            self.slowest.truncate(Self::MOST_SLOWEST);
        }
    }

    /// Counts I/Os whose stages are not known.
    pub fn not_matched(&mut self, why: Unmatched, count: u64) {
        *self.unmatched.entry(why).or_default() += count;
    }

    /// Makes windows twice as long.
    fn coarsen(&mut self) {
        self.window_ns *= 2;
        let pairs = std::mem::take(&mut self.windows);
        self.windows = pairs
            .chunks(2)
            .map(|pair| {
                let mut sum = pair[0].clone();
                pair[1..].iter().for_each(|more| sum += more);
                sum
            })
            .collect();
    }

    /// I/Os whose stages are not known.
    pub fn all_unmatched(&self) -> u64 {
        self.unmatched.values().sum()
    }

    /// All I/Os that were seen.
    pub fn seen(&self) -> u64 {
        self.whole.moments.count + self.without_device + self.all_unmatched()
    }

    /// The share of each stage in the time of the slowest part of the I/Os (0.001 = the slowest 0.1%); `None` = there
    /// are none. Of a bucket that belongs to it only in part, all I/Os count in proportion.
    pub fn shares_of_slowest(&self, part: f64) -> Option<Vec<f64>> {
        let wanted = (self.whole.moments.count as f64 * part).max(1.0);
        let counts: BTreeMap<usize, u64> = self.whole.histogram.occupied().collect();
        let mut left = wanted;
        let mut sums = vec![0.0; self.stages.len()];
        for (bucket, &count) in counts.iter().rev() {
            let taken = (left / count as f64).min(1.0);
            if let Some(times) = self.sums.get(&(*bucket as u16)) {
                sums.iter_mut().zip(times).for_each(|(sum, &time)| *sum += taken * time as f64);
            }
            left -= count as f64;
            if left <= 0.0 {
                break;
            }
        }
        let whole: f64 = sums.iter().sum();
        (whole > 0.0).then(|| sums.iter().map(|sum| sum / whole).collect())
    }

    /// What a percentile of the latency is made of: the mean time of each stage among the I/Os of its bucket, in
    /// nanoseconds. Zeros if there are no I/Os.
    pub fn made_of(&self, percentile: f64) -> Vec<f64> {
        let value = self.whole.histogram.percentiles(&[percentile])[0];
        let count = self.whole.histogram.occupied().find(|&(bucket, _)| midpoint(bucket) == value);
        match count.and_then(|(bucket, count)| Some((self.sums.get(&(bucket as u16))?, count))) {
            Some((sums, count)) => sums.iter().map(|&sum| sum as f64 / count as f64).collect(),
            None => vec![0.0; self.stages.len()],
        }
    }

    /// The sums of each stage for each bucket of the latency that has I/Os.
    pub fn sums(&self) -> impl Iterator<Item = (usize, &[u64])> {
        self.sums.iter().map(|(&bucket, sums)| (usize::from(bucket), &sums[..]))
    }

    /// Whose the tail is: the stage with the largest share in the slowest 0.1%, and that share.
    pub fn tail(&self) -> Option<(Stage, f64)> {
        let shares = self.shares_of_slowest(SLOWEST_PART)?;
        let largest = shares.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((self.stages[largest.0].stage, *largest.1))
    }
}

/// Where the time of a direction's I/Os went so far: sums, of which a reader takes the difference of any two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagesSoFar {
    /// The direction.
    pub direction: Direction,
    /// The stages, in the order of time.
    pub stages: Vec<Stage>,
    /// I/Os whose stages are known.
    pub ios: u64,
    /// The sum of each stage, in nanoseconds.
    pub sums_ns: Vec<u64>,
}

impl StagesSoFar {
    /// Adds these to those of the same direction and stages in a list. What no machine of ours says is left out.
    pub fn add_to(&self, list: &mut Vec<StagesSoFar>) {
        /// Each direction may have the stages of each kind of engine.
        const MOST: usize = 9;
        if self.stages.len() > Stage::MOST || self.sums_ns.len() != self.stages.len() {
            return;
        }
        let is_same = |one: &&mut StagesSoFar| one.direction == self.direction && one.stages == self.stages;
        let length = list.len();
        let Some(same) = list.iter_mut().find(is_same) else {
            if length < MOST {
                list.push(self.clone());
            }
            return;
        };
        same.ios = same.ios.saturating_add(self.ios);
        let sums = same.sums_ns.iter_mut().zip(&self.sums_ns);
        sums.for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
    }
}

/// The part of all I/Os that reports call the tail.
pub const SLOWEST_PART: f64 = 0.001;

fn record(latency: &mut Latency, value: u64) {
    latency.moments.record(value);
    latency.histogram.record(value);
}

impl AddAssign<&StageWindow> for StageWindow {
    fn add_assign(&mut self, other: &StageWindow) {
        self.ios = self.ios.saturating_add(other.ios);
        let sums = self.sums_ns.iter_mut().zip(&other.sums_ns);
        sums.for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
    }
}

impl AddAssign<&StageTimes> for StageTimes {
    /// Adds up I/Os with the same stages. Those of other stages (one job is reported with another whose engine is of
    /// another kind) are left out: there is no sum of a device's and a server's time.
    fn add_assign(&mut self, other: &StageTimes) {
        let same = self.stages.iter().map(|stage| stage.stage).eq(other.stages.iter().map(|one| one.stage));
        if !same || self.from_start != other.from_start {
            self.left_out = self.left_out.saturating_add(other.seen()).saturating_add(other.left_out);
            return;
        }
        self.whole += &other.whole;
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.latency += &theirs.latency;
        }
        for (&bucket, sums) in &other.sums {
            let mine = self.sums.entry(bucket).or_insert_with(|| vec![0; sums.len()]);
            mine.iter_mut().zip(sums).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
        }
        let mut other_windows = other.clone_windows();
        // Results of another machine may contain anything.
        let factor = other.window_ns / Self::SHORTEST_WINDOW_NS;
        if !factor.is_power_of_two()
            || factor > 1 << 32
            || other.windows.iter().any(|it| it.sums_ns.len() != self.stages.len())
        {
            other_windows = StageTimes::new(&[], self.from_start);
        }
        while self.window_ns < other_windows.window_ns {
            self.coarsen();
        }
        while other_windows.window_ns < self.window_ns {
            other_windows.coarsen();
        }
        for (number, window) in other_windows.windows.iter().enumerate() {
            match self.windows.get_mut(number) {
                Some(mine) => *mine += window,
                None => self.windows.push(window.clone()),
            }
        }
        self.slowest.extend(other.slowest.iter().cloned());
        self.slowest.sort_by(|a, b| b.cmp(a));
        self.slowest.truncate(Self::MOST_SLOWEST);
        for (mine, theirs) in [
            (&mut self.split, other.split),
            (&mut self.merged, other.merged),
            (&mut self.without_device, other.without_device),
            (&mut self.left_out, other.left_out),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        for (&why, count) in &other.unmatched {
            let mine = self.unmatched.entry(why).or_default();
            *mine = mine.saturating_add(*count);
        }
        // Both saw the same losses, unless they come from different machines.
        self.lost_records = self.lost_records.max(other.lost_records);
    }
}

impl StageTimes {
    /// Only the windows.
    fn clone_windows(&self) -> StageTimes {
        StageTimes {
            window_ns: self.window_ns,
            windows: self.windows.clone(),
            ..StageTimes::new(&[], self.from_start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ios: &[[u64; 4]]) -> StageTimes {
        let mut times = StageTimes::new(&Stage::OF_BLOCK_DEVICES, false);
        for (number, stages) in ios.iter().enumerate() {
            times.record(stages, number as u64 * 1_000_000, || SlowIo {
                offset: number as u64,
                ..SlowIo::default()
            });
        }
        times
    }

    #[test]
    fn stages_add_up_to_the_whole() {
        let times = times(&[[1000, 200, 50_000, 800], [1000, 0, 70_000, 1000]]);
        let sum: u128 = times.stages.iter().map(|stage| stage.latency.moments.sum).sum();
        assert_eq!(times.whole.moments.sum, sum);
        assert_eq!((times.whole.moments.count, times.seen()), (2, 2));
        assert_eq!(times.stages[2].latency.moments.max, 70_000);
        assert_eq!(times.slowest.iter().map(|slow| slow.offset).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn the_tail_is_whose_time_it_is_and_not_what_is_usual() {
        let mut ios = vec![[10_000, 100, 5_000, 900]; 999];
        ios.push([10_000, 100, 900_000, 900]);
        let times = times(&ios);
        let (stage, share) = times.tail().unwrap();
        assert_eq!(stage, Stage::Device);
        assert!((0.98..0.99).contains(&share), "{share}");
        let usual = times.made_of(50.0);
        assert_eq!(usual, [10_000.0, 100.0, 5_000.0, 900.0]);
        assert_eq!(times.made_of(99.99)[2], 900_000.0);
        assert!(StageTimes::new(&Stage::OF_BLOCK_DEVICES, false).tail().is_none());
    }

    #[test]
    fn merging_is_the_same_as_recording_together() {
        let (first, second) = ([[10, 20, 3000, 40]; 30], [[11, 0, 9000, 1]; 90]);
        let mut merged = times(&first);
        merged += &times(&second);
        let all: Vec<[u64; 4]> = first.into_iter().chain(second).collect();
        let together = times(&all);
        assert_eq!(
            (&merged.whole, &merged.stages, &merged.sums),
            (&together.whole, &together.stages, &together.sums)
        );
        assert_eq!(merged.slowest.len(), 100);
        assert_eq!(merged.windows.iter().map(|window| window.ios).sum::<u64>(), 120);
        let mut other = StageTimes::new(&[Stage::FirstByte], false);
        other += &merged;
        assert_eq!(
            (other.whole.moments.count, other.left_out),
            (0, 120),
            "stages of another kind are only counted"
        );
    }

    #[test]
    fn windows_become_longer_and_keep_all_ios() {
        let mut times = StageTimes::new(&Stage::OF_BLOCK_DEVICES, false);
        for second in 0..1000 {
            times.record(&[1, 2, 3, 4], second * 1_000_000_000, SlowIo::default);
        }
        assert!(times.windows.len() <= StageTimes::MOST_WINDOWS && times.windows.len() > 100);
        assert_eq!(times.windows.iter().map(|window| window.ios).sum::<u64>(), 1000);
        let mut short = StageTimes::new(&Stage::OF_BLOCK_DEVICES, false);
        short.record(&[1, 1, 1, 1], 0, SlowIo::default);
        short += &times;
        assert_eq!((short.windows[0].ios, short.window_ns), (times.windows[0].ios + 1, times.window_ns));
    }
}
