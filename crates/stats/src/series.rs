//! A run over time: windows of equal length, with the I/Os, bytes and latencies of each job in each of them.
//!
//! A [`Recorder`] reads the snapshots of a run, takes their differences, and keeps them as windows. There is one budget
//! for the whole run. When it is used up, pairs of neighbouring windows are merged over the whole run, and windows are
//! twice as long from then on. So all windows have the same length, however long the run takes, and memory is bounded.
//! Each window keeps the lowest and highest rate of its samples, so that a stall of a tenth of a second is visible in a
//! run of a day.

use crate::{Counters, Snapshot, WorkerSnapshot, midpoint, per_second};
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
    /// Nanoseconds from one sample to the next. Extremes are those of rates over this time.
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

    pub(crate) fn place(&self) -> (u32, Direction) {
        (self.block, self.direction)
    }

    /// Adds the same job's part in the next window.
    pub(crate) fn append(&mut self, next: &Part) {
        self.ramping |= next.ramping;
        self.ios += next.ios;
        self.bytes += next.bytes;
        self.iops = (self.iops.0.min(next.iops.0), self.iops.1.max(next.iops.1));
        self.bandwidth = (self.bandwidth.0.min(next.bandwidth.0), self.bandwidth.1.max(next.bandwidth.1));
        self.latency_sum = self.latency_sum.saturating_add(next.latency_sum);
        self.latencies = merged(&self.latencies, &next.latencies);
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
        }
    }

    /// Takes the next snapshot.
    pub fn take(&mut self, now: Snapshot) {
        if let Some(before) = self.before.take() {
            let span = now.elapsed_ns.saturating_sub(before.elapsed_ns);
            let is_short = span < self.series.interval_ns / 2;
            // One I/O in ten microseconds is not a meaningful rate: the rate of a short sample is taken over the length of
            // a full one.
            let rated = if is_short { self.series.interval_ns } else { span };
            let parts = self.differences(&before, &now, rated);
            let is_empty = parts.iter().all(|part| part.ios == 0);
            if span > 0 && !(is_empty && self.series.windows.is_empty()) {
                if self.series.windows.is_empty() {
                    self.series.begin_ns = before.elapsed_ns;
                }
                self.push(Window { end_ns: now.elapsed_ns, samples: 1, parts }, is_short);
            }
        }
        self.before = Some(now);
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

    /// The series until now; `None` = it has no samples yet.
    pub fn series(&self) -> Option<Series> {
        (!self.series.windows.is_empty()).then(|| self.series.clone())
    }

    /// The progress of the jobs between two snapshots. `span`: the time between them, for rates.
    fn differences(&self, before: &Snapshot, now: &Snapshot, span: u64) -> Vec<Part> {
        let mut parts: BTreeMap<(u32, Direction), Part> = BTreeMap::new();
        for ((before, now), block) in before.workers.iter().zip(&now.workers).zip(&self.blocks) {
            let Some(block) = *block else { continue };
            for direction in Direction::ALL {
                let Some(one) = part(block, direction, before, now) else { continue };
                match parts.get_mut(&(block, direction)) {
                    Some(all) => all.append(&one),
                    None => drop(parts.insert((block, direction), one)),
                }
            }
        }
        let mut parts: Vec<Part> = parts.into_values().collect();
        for part in &mut parts {
            let (iops, bandwidth) = (per_second(part.ios, span), per_second(part.bytes, span));
            (part.iops, part.bandwidth) = ((iops, iops), (bandwidth, bandwidth));
        }
        parts
    }

    /// Adds a sample. A short one (the last, mostly) belongs to the one before it: its rates would be those of an
    /// instant.
    fn push(&mut self, mut window: Window, is_short: bool) {
        match self.series.windows.last_mut() {
            Some(last) if is_short || last.samples < self.per_window => {
                if is_short {
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

    /// Merges each pair of windows.
    fn coarsen(&mut self) {
        self.per_window = self.per_window.saturating_mul(2);
        let mut windows = std::mem::take(&mut self.series.windows).into_iter();
        while let Some(mut window) = windows.next() {
            if let Some(next) = windows.next() {
                window.append(next);
            }
            self.series.windows.push(window);
        }
        let sizes = self.series.windows.iter().map(Window::size);
        (self.parts, self.buckets) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
    }
}

/// The I/O of one worker in one direction; `None` = it did no I/O, and none was expected.
fn part(block: u32, direction: Direction, before: &WorkerSnapshot, now: &WorkerSnapshot) -> Option<Part> {
    let (old, new) = (&before.counters[direction], &now.counters[direction]);
    let ios = new.ios.saturating_sub(old.ios);
    let is_expected = |worker: &WorkerSnapshot| {
        worker.running && worker.uses[direction] && "RrWwDdMm/".contains(worker.state)
    };
    if ios == 0 && !(is_expected(before) && is_expected(now)) {
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
        let mut recorder = Recorder::new(vec![Some(3)]);
        recorder.take(snapshot(0, vec![worker('C', 0, &[])]));
        recorder.take(snapshot(SECOND, vec![worker('C', 0, &[])]));
        recorder.take(snapshot(2 * SECOND, vec![worker('R', 10, &[100, 100, 120])]));
        recorder.take(snapshot(4 * SECOND, vec![worker('R', 40, &[100, 100, 120, 1000])]));
        recorder.take(snapshot(5 * SECOND, vec![worker('R', 40, &[100, 100, 120, 1000])]));
        let series = recorder.series().unwrap();
        assert_eq!((series.begin_ns, series.windows.len()), (SECOND, 3), "before it began, there is nothing");
        let parts: Vec<&Part> = series.windows.iter().map(|window| &window.parts[0]).collect();
        assert_eq!(
            [parts[0].ios, parts[1].ios, parts[2].ios],
            [10, 30, 0],
            "a stall is a window with nothing"
        );
        assert_eq!((parts[0].block, parts[0].bytes, parts[1].iops), (3, 40_960, (15, 15)));
        assert_eq!((parts[0].latency_sum, parts[1].latency_sum), (320, 1000));
        assert_eq!(parts[0].percentiles([50.0, 99.0]), [100, 120]);
        assert_eq!((parts[1].percentiles([50.0]), parts[2].percentiles([50.0])), ([1004], [0]));
    }

    #[test]
    fn the_end_of_a_ramp_takes_nothing_away() {
        let mut recorder = Recorder::new(vec![Some(0)]);
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
        let mut recorder = Recorder::new(vec![Some(0), None, Some(0)]);
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
        let mut recorder = Recorder::new((0..jobs).map(Some).collect());
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
        let mut recorder = Recorder::new((0..jobs).map(Some).collect());
        for sample in 0..100 {
            let workers = (0..jobs).map(|_| worker('R', sample * 10, &[])).collect();
            recorder.take(snapshot(sample * 10 * SECOND, workers));
        }
        let windows = recorder.series().unwrap().windows.len();
        assert!((LEAST_WINDOWS / 2..=LEAST_WINDOWS).contains(&windows), "{windows}");

        let (jobs, most) = (10, 50_000);
        let latencies: Vec<u64> = (0..200).map(|n| (n + 2) << (n % 30)).collect();
        let mut recorder = Recorder { most_buckets: most, ..Recorder::new((0..jobs).map(Some).collect()) };
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

    #[test]
    fn a_short_first_sample_has_no_rate_of_a_moment() {
        let mut recorder = Recorder::new(vec![Some(0)]);
        let tenth = SECOND / 10;
        recorder.take(snapshot(0, vec![worker('R', 0, &[])]));
        recorder.take(snapshot(10_000, vec![worker('R', 1, &[])]));
        recorder.take(snapshot(tenth, vec![worker('R', 51, &[])]));
        let windows = recorder.series().unwrap().windows;
        let highest: Vec<u64> = windows.iter().map(|window| window.parts[0].iops.1).collect();
        assert!(highest.iter().all(|&rate| rate <= 501), "{highest:?}");
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

    #[test]
    fn buckets_merge_in_order() {
        let merged = merged(&[(1, 1), (5, 2)], &[(0, 9), (5, 3), (7, 1)]);
        assert_eq!(merged, [(0, 9), (1, 1), (5, 5), (7, 1)]);
    }
}
