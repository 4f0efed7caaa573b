//! A run over time: windows of equal length, with the I/Os, bytes and latencies of each job in each of them.
//!
//! A [`Recorder`] reads the snapshots of a run, takes their differences, and keeps them as windows, whose ends are
//! multiples of the interval from the start of the run. (A snapshot is always a little late; what happened since the one
//! before is divided at the edge in proportion to the time.) So the windows of several machines can be added. The last one
//! ends with the run. There is one budget
//! for the whole run. When it is used up, pairs of neighbouring windows are merged over the whole run, and windows are
//! twice as long from then on. So all windows have the same length, however long the run takes, and memory is bounded.
//! Each window keeps the lowest and highest rate of its samples, so that a stall of a tenth of a second is visible in a
//! run of a day.

use crate::histogram::midpoint;
use crate::rate::per_second;
use crate::snapshot::{Asked, Counters, Snapshot, WorkerSnapshot};
use iolite_types::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The shortest time between two samples.
const SHORTEST: Duration = Duration::from_millis(100);
/// The time between two samples, per worker: reading a worker's counters and latencies takes some microseconds, so a
/// run with hundreds of workers is sampled less often.
const PER_WORKER: Duration = Duration::from_millis(2);
/// A run with more workers than this is sampled without latencies: remembering them would take too much memory.
pub const MOST_WITH_LATENCIES: usize = 512;

/// The most parts (windows of one direction of one job) that are kept.
const MOST_PARTS: usize = 20_000;
/// The most latency buckets that are kept in all parts: 32 MB.
const MOST_BUCKETS: usize = 4 << 20;
/// The most windows that are kept: more than a screen has columns.
const MOST_WINDOWS: usize = 1024;
/// The fewest windows that are kept, even with a few thousand jobs: fewer do not make a chart.
const LEAST_WINDOWS: usize = 16;

/// Parts of a latency histogram for each power of two, in reports: 8 of them are 9% to 12% wide.
const COARSE_SHIFT: usize = 3;

/// A run over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Nanoseconds from one sample to the next: the length of a window, before windows are merged. Extremes are those of
    /// rates over this time.
    pub interval_ns: u64,
    /// When the first window begins, in nanoseconds from the start of the run.
    pub begin_ns: u64,
    /// The windows, one after the other.
    pub windows: Vec<Window>,
}

/// A window of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When it ends, in nanoseconds from the start of the run. It begins where the one before ends.
    pub end_ns: u64,
    /// The samples that it is made of.
    pub samples: u32,
    /// The jobs that were running, ascending by block and direction.
    pub parts: Vec<Part>,
}

/// One direction of one job in one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The report block of the job.
    pub block: u32,
    /// The direction.
    pub direction: Direction,
    /// The job is in its ramp during the window or a part of it.
    pub ramping: bool,
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The lowest and the highest IOPS of the samples.
    pub iops: (u64, u64),
    /// The lowest and the highest bandwidth of the samples, in bytes per second.
    pub bandwidth: (u64, u64),
    /// The sum of completion latencies, in nanoseconds.
    pub latency_sum: u64,
    /// Completion latencies: buckets that are not empty, ascending, with their counts.
    pub latencies: Vec<(u16, u32)>,
    /// What its `rate_schedule` asked for.
    #[serde(default, skip_serializing_if = "Asked::is_nothing")]
    pub asked: Asked,
}

impl Part {
    /// The number of latencies that were measured.
    pub fn measured(&self) -> u64 {
        self.latencies.iter().map(|&(_, count)| u64::from(count)).sum()
    }

    /// For each percentile (ascending): the latency in nanoseconds up to which that share lies; zeros without latencies.
    pub fn percentiles<const N: usize>(&self, percentiles: [f64; N]) -> [u64; N] {
        let total = self.measured() as f64;
        let mut buckets = self.latencies.iter();
        let (mut seen, mut value) = (0, 0);
        percentiles.map(|percentile| {
            while seen == 0 || (seen as f64) < percentile / 100.0 * total {
                let Some(&(bucket, count)) = buckets.next() else { break };
                seen += u64::from(count);
                value = midpoint(bucket.into());
            }
            value
        })
    }

    /// The latencies in eight classes for each power of two: pairs of number and count, ascending. The class `c` begins at
    /// `8·c` ns below 16, else at `(8 + c mod 8) · 2^(c div 8 + 2)` ns.
    pub fn coarse(&self) -> Vec<(u16, u64)> {
        let mut classes: Vec<(u16, u64)> = Vec::new();
        for &(bucket, count) in &self.latencies {
            let class = bucket >> COARSE_SHIFT;
            match classes.last_mut() {
                Some((last, sum)) if *last == class => *sum += u64::from(count),
                _ => classes.push((class, count.into())),
            }
        }
        classes
    }

    /// Replaces its lowest and highest rates by those of the same job in this window, if the window has that job.
    fn take_extremes_of(&mut self, window: &Window) {
        if let Ok(position) = window.parts.binary_search_by_key(&self.place(), Part::place) {
            (self.iops, self.bandwidth) = (window.parts[position].iops, window.parts[position].bandwidth);
        }
    }

    /// The block and the direction.
    pub fn place(&self) -> (u32, Direction) {
        (self.block, self.direction)
    }

    /// Adds the same job's part in the next window.
    pub fn append(&mut self, next: &Part) {
        self.ramping |= next.ramping;
        self.ios += next.ios;
        self.bytes += next.bytes;
        self.iops = (self.iops.0.min(next.iops.0), self.iops.1.max(next.iops.1));
        self.bandwidth = (self.bandwidth.0.min(next.bandwidth.0), self.bandwidth.1.max(next.bandwidth.1));
        self.latency_sum = self.latency_sum.saturating_add(next.latency_sum);
        self.latencies = merged(&self.latencies, &next.latencies);
        self.asked += next.asked;
    }
}

impl Part {
    /// Takes this share, a part of a whole, of its I/Os.
    fn take_share(&mut self, part: u64, whole: u64) -> Part {
        let take = |amount: &mut u64| {
            let taken =
                (u128::from(*amount) * u128::from(part) + u128::from(whole / 2)) / u128::from(whole.max(1));
            let taken = (taken as u64).min(*amount);
            *amount -= taken;
            taken
        };
        let mut taken = Part {
            ios: take(&mut self.ios),
            bytes: take(&mut self.bytes),
            latency_sum: take(&mut self.latency_sum),
            latencies: Vec::new(),
            asked: Asked { ios: take(&mut self.asked.ios), bytes: take(&mut self.asked.bytes) },
            ..*self
        };
        for (bucket, count) in &mut self.latencies {
            let mut left = u64::from(*count);
            let count_taken = take(&mut left);
            // Neither is more than the count.
            *count = left as u32;
            if count_taken > 0 {
                taken.latencies.push((*bucket, count_taken as u32));
            }
        }
        self.latencies.retain(|(_, count)| *count > 0);
        taken
    }
}

impl Window {
    /// Its parts, and the buckets in them.
    fn size(&self) -> (usize, usize) {
        (self.parts.len(), self.parts.iter().map(|part| part.latencies.len()).sum())
    }

    /// Adds the next window.
    fn append(&mut self, next: Window) {
        self.end_ns = next.end_ns;
        self.samples += next.samples;
        for part in next.parts {
            match self.parts.binary_search_by_key(&part.place(), Part::place) {
                Ok(position) => self.parts[position].append(&part),
                Err(position) => self.parts.insert(position, part),
            }
        }
    }
}

/// Merges two lists of buckets.
fn merged(mine: &[(u16, u32)], theirs: &[(u16, u32)]) -> Vec<(u16, u32)> {
    let mut all = Vec::with_capacity(mine.len().max(theirs.len()));
    let (mut mine, mut theirs) = (mine.iter().peekable(), theirs.iter().peekable());
    loop {
        let next = match (mine.peek(), theirs.peek()) {
            (None, None) => return all,
            (Some(a), Some(b)) if a.0 == b.0 => (a.0, a.1.saturating_add(b.1)),
            (Some(a), Some(b)) if a.0 < b.0 => **a,
            (Some(a), None) => **a,
            (_, Some(b)) => **b,
        };
        mine.next_if(|entry| entry.0 == next.0);
        theirs.next_if(|entry| entry.0 == next.0);
        all.push(next);
    }
}

/// Makes a series of the snapshots of a run.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// The report block of each worker; `None` = it has none.
    blocks: Vec<Option<u32>>,
    before: Option<Snapshot>,
    /// The samples of a full window.
    per_window: u32,
    /// The number of parts in all windows, and the number of buckets in these parts.
    parts: usize,
    buckets: usize,
    most_buckets: usize,
    series: Series,
    /// The current window: what happened since the last edge.
    current: BTreeMap<(u32, Direction), Part>,
}

impl Recorder {
    /// The time between two samples of a run with this many workers.
    pub fn interval(workers: usize) -> Duration {
        SHORTEST.max(PER_WORKER * u32::try_from(workers).unwrap_or(u32::MAX))
    }

    /// A recorder of workers that are reported in these blocks, in the order of their numbers.
    pub fn new(blocks: Vec<Option<u32>>) -> Recorder {
        let interval = Recorder::interval(blocks.len());
        Recorder::sampled(blocks, interval)
    }

    /// The same for a run that is sampled at this interval.
    pub fn sampled(blocks: Vec<Option<u32>>, interval: Duration) -> Recorder {
        let interval_ns = interval.as_nanos() as u64;
        let series = Series { interval_ns, ..Series::default() };
        Recorder {
            blocks,
            before: None,
            per_window: 1,
            parts: 0,
            buckets: 0,
            most_buckets: MOST_BUCKETS,
            series,
            current: BTreeMap::new(),
        }
    }

    /// Takes the next snapshot.
    pub fn take(&mut self, now: Snapshot) {
        if let Some(before) = self.before.take() {
            let mut parts = parts_between(&self.blocks, &before, &now);
            let interval = self.series.interval_ns;
            let mut from = before.elapsed_ns;
            loop {
                let edge = (from / interval + 1).saturating_mul(interval);
                if edge > now.elapsed_ns {
                    break;
                }
                let (part, whole) = (edge - from, now.elapsed_ns - from);
                let until_edge = parts.iter_mut().map(|one| one.take_share(part, whole)).collect();
                self.add(until_edge);
                self.close(edge, interval);
                from = edge;
            }
            if from > before.elapsed_ns {
                // The next snapshot tells whether the direction is still expected to run, or in its ramp.
                parts.retain(|part| {
                    part.ios > 0 || part.bytes > 0 || !part.latencies.is_empty() || !part.asked.is_nothing()
                });
                parts.iter_mut().for_each(|part| part.ramping = false);
            }
            self.add(parts);
        }
        self.before = Some(now);
    }

    /// Adds what happened to the current window.
    fn add(&mut self, parts: Vec<Part>) {
        for part in parts {
            match self.current.get_mut(&part.place()) {
                Some(all) => all.append(&part),
                None => drop(self.current.insert(part.place(), part)),
            }
        }
    }

    /// Ends the current window, which is this long. There are no windows before the first I/O.
    fn close(&mut self, end_ns: u64, span: u64) {
        let mut parts: Vec<Part> = std::mem::take(&mut self.current).into_values().collect();
        if self.series.windows.is_empty() {
            if parts.iter().all(|part| part.ios == 0) {
                return;
            }
            self.series.begin_ns = end_ns - span;
        }
        let joins = span < self.series.interval_ns / 10 && !self.series.windows.is_empty();
        for part in &mut parts {
            let (iops, bandwidth) = (per_second(part.ios, span), per_second(part.bytes, span));
            (part.iops, part.bandwidth) = ((iops, iops), (bandwidth, bandwidth));
        }
        self.push(Window { end_ns, samples: 1, parts }, joins);
    }

    /// The last snapshot.
    pub fn latest(&self) -> Option<&Snapshot> {
        self.before.as_ref()
    }

    /// The series so far.
    pub fn so_far(&self) -> &Series {
        &self.series
    }

    /// The number of samples in a full window. As long as it does not change, windows are appended and only the last
    /// one grows.
    pub fn samples_per_window(&self) -> u32 {
        self.per_window
    }

    /// The series until the last snapshot; `None` = it has no samples yet. A last window that is shorter than a tenth of
    /// a full one joins the one before it.
    pub fn series(&self) -> Option<Series> {
        let mut whole = self.clone();
        let end = self.before.as_ref().map_or(0, |last| last.elapsed_ns);
        let rest = end % self.series.interval_ns;
        // (A snapshot may have been taken just before the last worker was seen to have ended a little earlier.)
        if rest > 0 || !self.current.is_empty() {
            whole.close(end, rest);
        }
        (!whole.series.windows.is_empty()).then_some(whole.series)
    }

    /// The length of the windows, as long as their number has not reached its limit.
    fn length(&self) -> u64 {
        self.series.interval_ns.saturating_mul(self.per_window.into())
    }

    /// Adds a sample. One that joins the one before it has no rate of its own.
    fn push(&mut self, mut window: Window, joins: bool) {
        let length = self.length();
        match self.series.windows.last_mut() {
            Some(last) if joins || !last.end_ns.is_multiple_of(length) => {
                if joins {
                    window.samples = 0;
                    window.parts.iter_mut().for_each(|part| part.take_extremes_of(last));
                }
                let before = last.size();
                last.append(window);
                let now = last.size();
                self.parts += now.0 - before.0;
                self.buckets += now.1 - before.1;
            }
            _ => {
                let (parts, buckets) = window.size();
                self.parts += parts;
                self.buckets += buckets;
                self.series.windows.push(window);
            }
        }
        let count = self.series.windows.len();
        let is_too_much = self.parts > MOST_PARTS || self.buckets > self.most_buckets;
        if count > MOST_WINDOWS || (is_too_much && count > LEAST_WINDOWS) {
            self.coarsen();
        }
    }

    /// Makes the windows twice as long.
    fn coarsen(&mut self) {
        self.per_window = self.per_window.saturating_mul(2);
        self.series.coarsen(self.length());
        let sizes = self.series.windows.iter().map(Window::size);
        (self.parts, self.buckets) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
    }
}

impl Series {
    /// Merges windows into those that end at multiples of this length.
    fn coarsen(&mut self, length: u64) {
        let windows = std::mem::take(&mut self.windows);
        for window in windows {
            match self.windows.last_mut() {
                Some(last) if !last.end_ns.is_multiple_of(length) => last.append(window),
                _ => self.windows.push(window),
            }
        }
    }

    /// Makes windows longer until they fit into the budget of a run.
    pub(crate) fn fit(&mut self) {
        let mut length = self.interval_ns;
        while self.windows.len() > LEAST_WINDOWS
            && self.windows.iter().map(|window| window.parts.len()).sum::<usize>() > MOST_PARTS
        {
            length = length.saturating_mul(2);
            self.coarsen(length);
        }
    }
}

/// The progress of the jobs between two snapshots, without rates: ascending by block and direction. `blocks`: the report
/// block of each worker.
pub fn parts_between(blocks: &[Option<u32>], before: &Snapshot, now: &Snapshot) -> Vec<Part> {
    let mut parts: BTreeMap<(u32, Direction), Part> = BTreeMap::new();
    for ((before, now), block) in before.workers.iter().zip(&now.workers).zip(blocks) {
        let Some(block) = *block else { continue };
        for direction in Direction::ALL {
            let Some(one) = part(block, direction, before, now) else { continue };
            match parts.get_mut(&(block, direction)) {
                Some(all) => all.append(&one),
                None => drop(parts.insert((block, direction), one)),
            }
        }
    }
    parts.into_values().collect()
}

/// The I/O of one worker in one direction; `None` = it did no I/O, and none was expected.
fn part(block: u32, direction: Direction, before: &WorkerSnapshot, now: &WorkerSnapshot) -> Option<Part> {
    let (old, new) = (&before.counters[direction], &now.counters[direction]);
    let ios = new.ios.saturating_sub(old.ios);
    let is_expected = |worker: &WorkerSnapshot| {
        worker.running && worker.uses[direction] && "RrWwDdMm/".contains(worker.state)
    };
    let asked = new.asked.since(old.asked);
    if ios == 0 && asked.is_nothing() && !(is_expected(before) && is_expected(now)) {
        return None;
    }
    // Latencies are reset at the end of a ramp.
    let is_anew = before.resets != now.resets;
    let nothing = Counters::default();
    let old_latency = if is_anew { &nothing.latency } else { &old.latency };
    let sum = new.latency.moments.sum.saturating_sub(old_latency.moments.sum);
    Some(Part {
        block,
        direction,
        ramping: before.state == '/' || now.state == '/',
        ios,
        bytes: new.bytes.saturating_sub(old.bytes),
        iops: (0, 0),
        bandwidth: (0, 0),
        latency_sum: u64::try_from(sum).unwrap_or(u64::MAX),
        latencies: old_latency.histogram.growth_to(&new.latency.histogram),
        asked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A worker that has read this many blocks of 4 KiB, with these latencies.
    fn worker(state: char, ios: u64, latencies: &[u64]) -> WorkerSnapshot {
        let mut worker = WorkerSnapshot { state, running: true, ..WorkerSnapshot::default() };
        worker.uses[Direction::Read] = true;
        let read = &mut worker.counters[Direction::Read];
        (read.ios, read.bytes) = (ios, ios * 4096);
        for &latency in latencies {
            read.latency.moments.record(latency);
            read.latency.histogram.record(latency);
        }
        worker
    }

    fn snapshot(elapsed_ns: u64, workers: Vec<WorkerSnapshot>) -> Snapshot {
        Snapshot { elapsed_ns, workers, ..Snapshot::default() }
    }

    #[test]
    fn windows_are_differences() {
        let mut recorder = Recorder::sampled(vec![Some(3)], Duration::from_secs(1));
        recorder.take(snapshot(0, vec![worker('C', 0, &[])]));
        recorder.take(snapshot(SECOND, vec![worker('C', 0, &[])]));
        recorder.take(snapshot(2 * SECOND, vec![worker('R', 10, &[100, 100, 120])]));
        recorder.take(snapshot(3 * SECOND, vec![worker('R', 40, &[100, 100, 120, 1000])]));
        recorder.take(snapshot(4 * SECOND, vec![worker('R', 40, &[100, 100, 120, 1000])]));
        let series = recorder.series().unwrap();
        assert_eq!((series.begin_ns, series.windows.len()), (SECOND, 3), "before it began, there is nothing");
        let parts: Vec<&Part> = series.windows.iter().map(|window| &window.parts[0]).collect();
        assert_eq!(
            [parts[0].ios, parts[1].ios, parts[2].ios],
            [10, 30, 0],
            "a stall is a window with nothing"
        );
        assert_eq!((parts[0].block, parts[0].bytes, parts[1].iops), (3, 40_960, (30, 30)));
        assert_eq!((parts[0].latency_sum, parts[1].latency_sum), (320, 1000));
        assert_eq!(parts[0].percentiles([50.0, 99.0]), [100, 120]);
        assert_eq!((parts[1].percentiles([50.0]), parts[2].percentiles([50.0])), ([1004], [0]));
    }

    #[test]
    fn the_end_of_a_ramp_takes_nothing_away() {
        let mut recorder = Recorder::sampled(vec![Some(0)], Duration::from_secs(1));
        recorder.take(snapshot(0, vec![worker('C', 0, &[])]));
        recorder.take(snapshot(SECOND, vec![worker('/', 5, &[100; 5])]));
        let mut after = worker('R', 8, &[200; 2]);
        after.resets = 1;
        recorder.take(snapshot(2 * SECOND, vec![after]));
        let windows = recorder.series().unwrap().windows;
        let seen: Vec<_> = windows.iter().map(|window| &window.parts[0]).collect();
        assert_eq!(
            (seen[0].ramping, seen[1].ramping),
            (true, true),
            "the ramp began in the first, and ended in the second"
        );
        assert_eq!((seen[1].ios, seen[1].measured(), seen[1].latency_sum), (3, 2, 400));
    }

    #[test]
    fn workers_of_a_block_are_summed_and_others_left_out() {
        let mut recorder = Recorder::sampled(vec![Some(0), None, Some(0)], Duration::from_millis(500));
        let workers = |n: u64| vec![worker('R', n, &[]), worker('R', 100 * n, &[]), worker('R', 2 * n, &[])];
        recorder.take(snapshot(0, workers(0)));
        recorder.take(snapshot(SECOND / 2, workers(7)));
        let windows = recorder.series().unwrap().windows;
        assert_eq!(windows[0].parts.len(), 1);
        assert_eq!((windows[0].parts[0].ios, windows[0].parts[0].iops), (21, (42, 42)));
    }

    /// A long run: sums are exact, windows are even, extremes are there, and the number of windows has its limit.
    #[test]
    fn a_day_is_coarsened_evenly() {
        let mut recorder = Recorder::new(vec![Some(0)]);
        let (mut ios, tenth) = (0, SECOND / 10);
        let samples = 20_000;
        for sample in 0..=samples {
            recorder.take(snapshot(sample * tenth, vec![worker('R', ios, &[])]));
            // One stall, and one burst.
            ios += match sample {
                777 => 0,
                15_000 => 900,
                _ => 100,
            };
        }
        let series = recorder.series().unwrap();
        let count = series.windows.len();
        assert!((MOST_WINDOWS / 2..=MOST_WINDOWS).contains(&count), "{count}");
        let total: u64 = series.windows.iter().map(|window| window.parts[0].ios).sum();
        assert_eq!(total, samples * 100 - 100 + 800);
        let lengths: Vec<u64> =
            series.windows.windows(2).map(|pair| pair[1].end_ns - pair[0].end_ns).collect();
        assert!(lengths[..count - 2].iter().all(|&length| length == lengths[0]), "{lengths:?}");
        let extremes = |of: fn(&Part) -> u64| {
            series.windows.iter().map(|window| of(&window.parts[0])).collect::<Vec<_>>()
        };
        assert_eq!(extremes(|part| part.iops.0).into_iter().min(), Some(0));
        assert_eq!(extremes(|part| part.iops.1).into_iter().max(), Some(9000));
        assert_eq!(series.windows.last().unwrap().end_ns, samples * tenth);
    }

    #[test]
    fn many_jobs_share_one_budget() {
        let jobs = 500;
        let mut recorder = Recorder::sampled((0..jobs).map(Some).collect(), Duration::from_secs(1));
        for sample in 0..300 {
            let workers = (0..jobs).map(|_| worker('R', sample * 10, &[])).collect();
            recorder.take(snapshot(sample * SECOND, workers));
        }
        let series = recorder.series().unwrap();
        let parts: usize = series.windows.iter().map(|window| window.parts.len()).sum();
        assert!(parts <= MOST_PARTS + jobs as usize && series.windows.len() >= LEAST_WINDOWS / 2, "{parts}");
        let total: u64 = series.windows.iter().flat_map(|window| &window.parts).map(|part| part.ios).sum();
        assert_eq!(total, u64::from(jobs) * 299 * 10);
    }

    /// Thousands of jobs have few windows, and so have wide distributions.
    #[test]
    fn budgets_hold_for_thousands_of_jobs_and_wide_distributions() {
        let jobs = 2000;
        let mut recorder = Recorder::sampled((0..jobs).map(Some).collect(), Duration::from_secs(10));
        for sample in 0..100 {
            let workers = (0..jobs).map(|_| worker('R', sample * 10, &[])).collect();
            recorder.take(snapshot(sample * 10 * SECOND, workers));
        }
        let windows = recorder.series().unwrap().windows.len();
        assert!((LEAST_WINDOWS / 2..=LEAST_WINDOWS).contains(&windows), "{windows}");

        let (jobs, most) = (10, 50_000);
        let latencies: Vec<u64> = (0..200).map(|n| (n + 2) << (n % 30)).collect();
        let recorder = Recorder::sampled((0..jobs).map(Some).collect(), Duration::from_secs(1));
        let mut recorder = Recorder { most_buckets: most, ..recorder };
        let mut workers: Vec<WorkerSnapshot> = (0..jobs).map(|_| worker('R', 0, &[])).collect();
        for sample in 0..120 {
            recorder.take(snapshot(sample * SECOND, workers.clone()));
            for worker in &mut workers {
                let read = &mut worker.counters[Direction::Read];
                read.ios += 200;
                latencies.iter().for_each(|&latency| read.latency.histogram.record(latency));
            }
        }
        let series = recorder.series().unwrap();
        let buckets: usize = series.windows.iter().map(|window| window.size().1).sum();
        assert!((most / 4..=most).contains(&buckets), "{buckets}");
    }

    /// However late the snapshots are, windows end at multiples of the interval, with what happened in them.
    #[test]
    fn late_snapshots_do_not_move_the_windows() {
        let mut recorder = Recorder::new(vec![Some(0)]);
        let ms = SECOND / 1000;
        // 10 I/Os per millisecond from the 50th on, each with a latency of 100 ns.
        let at = |time: u64| {
            let ios = 10 * time.saturating_sub(50);
            snapshot(time * ms, vec![worker('R', ios, &vec![100; ios as usize])])
        };
        [0, 10, 103, 207, 405, 450].into_iter().for_each(|time| recorder.take(at(time)));
        let series = recorder.series().unwrap();
        let ends: Vec<u64> = series.windows.iter().map(|window| window.end_ns / ms).collect();
        assert_eq!((series.begin_ns, ends), (0, vec![100, 200, 300, 400, 450]));
        let parts: Vec<&Part> = series.windows.iter().map(|window| &window.parts[0]).collect();
        let ios: Vec<u64> = parts.iter().map(|part| part.ios).collect();
        // At the first edge, the job was assumed to have begun with the second snapshot.
        assert_eq!(ios, [513, 987, 1000, 1000, 500]);
        assert!(parts.iter().all(|part| part.measured() == part.ios));
        assert_eq!(parts.iter().map(|part| part.latency_sum).sum::<u64>(), 100 * 4000);
        assert_eq!((parts[1].iops, parts[4].iops), ((9870, 9870), (10_000, 10_000)));
    }

    /// Windows of any length lie on one grid, so those of machines that began with different ones can be added.
    #[test]
    fn longer_windows_end_at_multiples_of_their_length() {
        let mut recorder = Recorder::new(vec![Some(0)]);
        let tenth = SECOND / 10;
        for sample in 0..3000 {
            let ios = 10 * u64::saturating_sub(sample, 7);
            recorder.take(snapshot(sample * tenth + 1, vec![worker('R', ios, &[])]));
        }
        let length = recorder.length();
        assert!(length > tenth);
        let windows = &recorder.so_far().windows;
        assert!(windows[..windows.len() - 1].iter().all(|window| window.end_ns.is_multiple_of(length)));
        let mut series = recorder.series().unwrap();
        series.coarsen(4 * length);
        assert_eq!(series.windows.iter().map(|window| window.parts[0].ios).sum::<u64>(), 10 * 2992);
        let last = series.windows.pop().unwrap();
        assert_eq!(last.end_ns, 2999 * tenth + 1);
        assert!(series.windows.iter().all(|window| window.end_ns.is_multiple_of(4 * length)));
    }

    #[test]
    fn a_job_that_has_ended_does_not_stall() {
        let mut recorder = Recorder::new(vec![Some(0)]);
        let tenth = SECOND / 10;
        recorder.take(snapshot(0, vec![worker('R', 0, &[])]));
        recorder.take(snapshot(tenth + 10, vec![worker('R', 50, &[])]));
        let ended = WorkerSnapshot { running: false, ..worker('_', 70, &[]) };
        recorder.take(snapshot(2 * tenth + 10, vec![ended.clone()]));
        recorder.take(snapshot(3 * tenth + 10, vec![ended]));
        let parts: Vec<usize> =
            recorder.series().unwrap().windows.iter().map(|window| window.parts.len()).collect();
        assert_eq!(parts, [1, 1, 0]);
    }

    #[test]
    fn classes_of_latency_begin_where_they_say() {
        for value in [0_u64, 7, 8, 100, 127, 128, 1000, 123_456, 5_000_000_000] {
            let bucket = crate::bucket_of(value) as u16;
            let part = Part { latencies: vec![(bucket, 2)], ..empty() };
            let [(class, count)] = part.coarse()[..] else { panic!("one class") };
            let begin = |class: u64| match class {
                0..16 => 8 * class,
                _ => (8 + class % 8) << (class / 8 + 2),
            };
            let class = u64::from(class);
            assert!(begin(class) <= value && value < begin(class + 1), "{value} in {class}");
            assert_eq!(count, 2);
        }
        let part = Part { latencies: vec![(200, 1), (201, 2), (300, 4)], ..empty() };
        assert_eq!(part.coarse(), [(25, 3), (37, 4)]);
    }

    fn empty() -> Part {
        Part {
            block: 0,
            direction: Direction::Read,
            ramping: false,
            ios: 0,
            bytes: 0,
            iops: (0, 0),
            bandwidth: (0, 0),
            latency_sum: 0,
            latencies: Vec::new(),
            asked: Asked::default(),
        }
    }

    #[test]
    fn a_short_sample_has_no_rate_of_its_own() {
        let mut recorder = Recorder::new(vec![Some(0)]);
        let tenth = SECOND / 10;
        for (at, ios) in [(0, 0), (tenth, 100), (2 * tenth, 200), (2 * tenth + 1000, 201)] {
            recorder.take(snapshot(at, vec![worker('R', ios, &[])]));
        }
        let windows = recorder.series().unwrap().windows;
        assert_eq!((windows.len(), windows[1].end_ns, windows[1].samples), (2, 2 * tenth + 1000, 1));
        assert_eq!((windows[1].parts[0].ios, windows[1].parts[0].iops), (101, (1000, 1000)));
    }

    /// What was asked in a window stands beside what was given, also where that is nothing, and both are divided alike.
    #[test]
    fn windows_have_what_was_asked() {
        let mut recorder = Recorder::sampled(vec![Some(0), Some(0)], Duration::from_secs(1));
        let asking = |ios, asked| {
            let mut worker = worker('R', ios, &[]);
            worker.counters[Direction::Read].asked = Asked { ios: asked, bytes: 2 * asked };
            worker
        };
        for (at, ios, asked) in [(0, 0, 0), (10, 50, 100), (20, 50, 500), (35, 50, 560), (40, 90, 600)] {
            recorder.take(snapshot(at * SECOND / 10, vec![asking(ios, asked), asking(0, asked)]));
        }
        let windows = recorder.series().unwrap().windows;
        let asked: Vec<Asked> = windows.iter().map(|window| window.parts[0].asked).collect();
        let told: Vec<(u64, u64)> = asked.iter().map(|asked| (asked.ios, asked.bytes)).collect();
        assert_eq!(told, [(200, 400), (800, 1600), (80, 160), (120, 240)]);
        assert_eq!(windows.iter().map(|window| window.parts[0].ios).collect::<Vec<_>>(), [50, 0, 0, 40]);
    }

    #[test]
    fn buckets_merge_in_order() {
        let merged = merged(&[(1, 1), (5, 2)], &[(0, 9), (5, 3), (7, 1)]);
        assert_eq!(merged, [(0, 9), (1, 1), (5, 5), (7, 1)]);
    }
}
