//! What a run has done lately: rates and latencies of the last second, rates of the last minute, messages.

use iolite_stats::{DiskSnapshot, Event, EventKind, Part, Snapshot, parts_between, per_second};
use iolite_types::Direction;
use iolite_web::{Hello, Message, in_words};
use std::collections::{BTreeMap, VecDeque};

/// Figures of "now" are those of this time.
const NOW_NS: u64 = 1_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// The seconds of a sparkline.
const SECONDS: u64 = 60;
/// The most messages that are kept.
const MOST_MESSAGES: usize = 100;

/// A direction of a job, or of a machine.
type Place = (u32, Direction);

/// A run.
#[derive(Debug)]
pub struct Figures {
    /// The program and its version.
    pub program: String,
    /// The machine, if there is one.
    pub host: String,
    /// The jobs stand for machines; the first stands for all of them.
    pub of_hosts: bool,
    names: BTreeMap<u32, String>,
    blocks: Vec<Option<u32>>,
    /// The last sample.
    pub latest: Option<Snapshot>,
    /// The parts between the last samples, with the length of each.
    now: VecDeque<(u64, Vec<Part>)>,
    /// The I/Os of each second of the run.
    seconds: BTreeMap<Place, BTreeMap<u64, f64>>,
    /// The disks, with what they did between the last samples.
    disks: Vec<DiskSnapshot>,
    disks_before: VecDeque<Vec<DiskSnapshot>>,
    /// How long files have been laid out, in nanoseconds; `None` = they are not.
    pub laying_out: Option<u64>,
    /// The last messages.
    pub messages: VecDeque<Message>,
    /// The run was asked to end.
    pub is_stopping: bool,
}

/// A line of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The job or the machine.
    pub name: String,
    /// `None` = it has done no I/O.
    pub direction: Option<Direction>,
    /// I/Os per second.
    pub iops: u64,
    /// Bytes per second.
    pub bandwidth: u64,
    /// The latencies that half and 99% of the I/Os have not exceeded, in nanoseconds, if they were measured.
    pub latencies: Option<[u64; 2]>,
    /// The mean number of I/Os under way, if latencies were measured (Little's law).
    pub depth: Option<f64>,
    /// The I/Os in each second of the last minute.
    pub minute: Vec<f64>,
    /// What it does.
    pub doing: &'static str,
}

/// A disk in the last second.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskRow {
    /// Its name.
    pub name: String,
    /// The share of the time in which it was busy.
    pub busy: f64,
    /// Reads per second, and bytes per second.
    pub read: [u64; 2],
    /// Writes per second, and bytes per second.
    pub written: [u64; 2],
    /// The mean number of requests.
    pub queue: f64,
}

impl Figures {
    /// A run that has not begun.
    pub fn of(hello: Hello) -> Figures {
        let Hello { outline, blocks, program, of_hosts, .. } = hello;
        let facts = outline.facts.iter().flat_map(|facts| &facts.host);
        let host = facts.into_iter().find(|(name, _)| name == "name").map(|(_, value)| value.clone());
        let names = outline.jobs.iter().map(|job| (job.identity.block, job.name.clone())).collect();
        Figures {
            program,
            host: host.unwrap_or_default(),
            of_hosts,
            names,
            blocks,
            latest: None,
            now: VecDeque::new(),
            seconds: BTreeMap::new(),
            disks: Vec::new(),
            disks_before: VecDeque::new(),
            laying_out: None,
            messages: VecDeque::new(),
            is_stopping: false,
        }
    }

    /// Takes an event of the run.
    pub fn take(&mut self, event: Event) {
        self.is_stopping |= matches!(event.kind, EventKind::Terminating(_));
        match event.kind {
            EventKind::Sample(snapshot) => {
                self.laying_out = None;
                self.sampled(*snapshot);
            }
            EventKind::Snapshot(snapshot) => {
                self.laying_out = snapshot.is_laying_out.then_some(snapshot.elapsed_ns);
            }
            kind => {
                self.messages.extend(Message::of(Event { kind, ..event }));
                if self.messages.len() > MOST_MESSAGES {
                    self.messages.pop_front();
                }
            }
        }
    }

    fn sampled(&mut self, mut snapshot: Snapshot) {
        let disks = std::mem::take(&mut snapshot.disks);
        if let Some(before) = self.latest.take()
            && snapshot.elapsed_ns > before.elapsed_ns
        {
            let parts = parts_between(&self.blocks, &before, &snapshot);
            parts.iter().for_each(|part| self.count(part, before.elapsed_ns, snapshot.elapsed_ns));
            self.now.push_back((snapshot.elapsed_ns - before.elapsed_ns, parts));
            self.disks_before.push_back(std::mem::take(&mut self.disks));
            let mut span: u64 = self.now.iter().map(|(span, _)| span).sum();
            while let Some((oldest, _)) = self.now.front()
                && span - oldest >= NOW_NS
            {
                span -= oldest;
                self.now.pop_front();
                self.disks_before.pop_front();
            }
        }
        if !disks.is_empty() {
            self.disks = disks;
        }
        self.latest = Some(snapshot);
    }

    /// Adds I/Os to the seconds in which they happened: evenly, if there are several.
    fn count(&mut self, part: &Part, from: u64, until: u64) {
        let seconds = self.seconds.entry(part.place()).or_default();
        let mut begin = from;
        while begin < until {
            let end = ((begin / SECOND_NS + 1) * SECOND_NS).min(until);
            let share = (end - begin) as f64 / (until - from) as f64;
            *seconds.entry(begin / SECOND_NS).or_default() += part.ios as f64 * share;
            begin = end;
        }
        while seconds.len() as u64 > SECONDS + 1 {
            seconds.pop_first();
        }
    }

    /// The sum of all jobs if there are several, then the jobs in their order, each with its directions.
    pub fn rows(&self) -> (Vec<Row>, Vec<Row>) {
        let blocks: Vec<u32> = self.names.keys().copied().collect();
        let (all, ones): (&[u32], &[u32]) = match self.of_hosts {
            true => blocks.split_at(1.min(blocks.len())),
            false if blocks.len() > 1 => (&blocks, &blocks),
            false => (&[], &blocks),
        };
        let total = match all {
            [] => Vec::new(),
            _ if self.of_hosts => self.rows_of("all machines", all),
            _ => self.rows_of("all jobs", all),
        };
        let name = |block: &u32| self.names.get(block).map_or("", String::as_str);
        (total, ones.iter().flat_map(|block| self.rows_of(name(block), &[*block])).collect())
    }

    /// The rows of these jobs together.
    fn rows_of(&self, name: &str, blocks: &[u32]) -> Vec<Row> {
        let workers = self.latest.iter().flat_map(|latest| &latest.workers).zip(&self.blocks);
        let mine = || workers.clone().filter(|(_, block)| block.is_some_and(|block| blocks.contains(&block)));
        let state = iolite_stats::WorkerSnapshot::sum(mine().map(|(worker, _)| worker)).state;
        let doing = if self.latest.is_some() { in_words(state) } else { "set up" };
        let is_in_use = |direction: &Direction| {
            mine().any(|(worker, _)| worker.uses[*direction])
                || blocks.iter().any(|block| self.seconds.contains_key(&(*block, *direction)))
        };
        let rows = Direction::ALL.into_iter().filter(is_in_use);
        let mut rows: Vec<Row> = rows
            .map(|direction| Row { name: name.to_owned(), doing, ..self.row(blocks, direction) })
            .collect();
        if rows.is_empty() {
            rows.push(Row { name: name.to_owned(), doing, ..Row::default() });
        }
        rows
    }

    fn row(&self, blocks: &[u32], direction: Direction) -> Row {
        let mut sum: Option<Part> = None;
        let parts = self.now.iter().flat_map(|(_, parts)| parts);
        for part in parts.filter(|part| part.direction == direction && blocks.contains(&part.block)) {
            match &mut sum {
                Some(sum) => sum.append(part),
                None => sum = Some(part.clone()),
            }
        }
        let span: u64 = self.now.iter().map(|(span, _)| span).sum();
        let mut row =
            Row { direction: Some(direction), minute: self.minute(blocks, direction), ..Row::default() };
        if let Some(sum) = sum {
            row.iops = per_second(sum.ios, span);
            row.bandwidth = per_second(sum.bytes, span);
            if sum.measured() > 0 {
                row.latencies = Some(sum.percentiles([50.0, 99.0]));
                row.depth = Some(sum.latency_sum as f64 / span as f64);
            }
        }
        row
    }

    /// The I/Os of the complete seconds of the last minute.
    fn minute(&self, blocks: &[u32], direction: Direction) -> Vec<f64> {
        let current = self.latest.as_ref().map_or(0, |latest| latest.elapsed_ns / SECOND_NS);
        let lines: Vec<_> =
            blocks.iter().filter_map(|block| self.seconds.get(&(*block, direction))).collect();
        let at = |second: u64| lines.iter().filter_map(|line| line.get(&second)).sum();
        (current.saturating_sub(SECONDS)..current).map(at).collect()
    }

    /// The disks in the last second.
    pub fn disks(&self) -> Vec<DiskRow> {
        let Some(before) = self.disks_before.iter().find(|disks| !disks.is_empty()) else {
            return Vec::new();
        };
        let row = |now: &DiskSnapshot| {
            let old = before.iter().find(|old| old.name == now.name)?;
            let span = now.at_ns.saturating_sub(old.at_ns);
            let rate = |new: u64, old: u64| per_second(new.saturating_sub(old), span);
            let share = |new: u64, old: u64| new.saturating_sub(old) as f64 * 1e6 / span.max(1) as f64;
            let (a, b) = (&old.counters, &now.counters);
            Some(DiskRow {
                name: now.name.clone(),
                busy: share(now.busy_ms, old.busy_ms).min(1.0),
                // (Sectors of the kernel's counters have 512 bytes.)
                read: [rate(b.read_ios, a.read_ios), 512 * rate(b.read_sectors, a.read_sectors)],
                written: [rate(b.write_ios, a.write_ios), 512 * rate(b.write_sectors, a.write_sectors)],
                queue: share(b.in_queue, a.in_queue),
            })
        };
        self.disks.iter().filter_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_stats::{DiskCounters, Report, WorkerSnapshot};

    fn figures(jobs: u32) -> Figures {
        let mut outline = Report::default();
        for block in 0..jobs {
            let mut job = iolite_stats::JobReport { name: format!("job{block}"), ..Default::default() };
            job.identity.block = block;
            outline.jobs.push(job);
        }
        Figures::of(Hello {
            outline,
            blocks: (0..jobs).map(Some).collect(),
            program: "iolite-0".to_owned(),
            interval_ns: 1,
            of_hosts: false,
            linger_ms: None,
        })
    }

    /// Each job has read this many blocks, each with a latency of 1 ms.
    fn sample(tenths: u64, ios: &[u64]) -> Event {
        let worker = |ios: &u64| {
            let mut worker = WorkerSnapshot { state: 'r', running: true, ..WorkerSnapshot::default() };
            worker.uses[Direction::Read] = true;
            let read = &mut worker.counters[Direction::Read];
            (read.ios, read.bytes) = (*ios, ios * 4096);
            (0..*ios).for_each(|_| {
                read.latency.moments.record(1_000_000);
                read.latency.histogram.record(1_000_000);
            });
            worker
        };
        let disk = DiskSnapshot {
            name: "vda".to_owned(),
            at_ns: tenths * 100_000_000,
            busy_ms: tenths * 50,
            counters: DiskCounters { read_ios: ios[0], read_sectors: 8 * ios[0], ..Default::default() },
        };
        let snapshot = Snapshot {
            elapsed_ns: tenths * 100_000_000,
            workers: ios.iter().map(worker).collect(),
            disks: vec![disk],
            ..Snapshot::default()
        };
        Event::new(0, None, EventKind::Sample(Box::new(snapshot)))
    }

    #[test]
    fn rates_are_those_of_the_last_second() {
        let mut figures = figures(2);
        assert_eq!(figures.rows().1[0], Row { name: "job0".into(), doing: "set up", ..Row::default() });
        // Slowly for three seconds, then ten times as fast for two.
        for tenths in 0..=50 {
            let ios = if tenths <= 30 { tenths * 10 } else { 300 + (tenths - 30) * 100 };
            figures.take(sample(tenths, &[ios, 0]));
        }
        let (total, rows) = figures.rows();
        let row = &rows[0];
        assert_eq!((row.iops, row.bandwidth, row.doing), (1000, 4_096_000, "runs"));
        assert_eq!(row.minute, [100.0, 100.0, 100.0, 1000.0, 1000.0]);
        let [p50, p99] = row.latencies.unwrap();
        assert!((990_000..1_010_000).contains(&p50) && p50 == p99, "{p50}");
        assert!((row.depth.unwrap() - 1.0).abs() < 0.01, "{row:?}");
        assert_eq!((rows.len(), rows[1].iops, rows[1].latencies), (2, 0, None));
        assert_eq!((total.len(), total[0].iops, &total[0].minute), (1, 1000, &row.minute));
        let [disk] = &figures.disks()[..] else { panic!("{:?}", figures.disks()) };
        assert_eq!((disk.busy, disk.read), (0.5, [1000, 1000 * 4096]));
    }

    #[test]
    fn a_minute_is_kept() {
        let mut figures = figures(1);
        // Samples that are longer than a second are spread evenly.
        for tenths in (0..=2000).step_by(25) {
            figures.take(sample(tenths, &[tenths]));
        }
        let (total, rows) = figures.rows();
        assert_eq!((total.len(), rows[0].minute.len()), (0, 60));
        assert!(rows[0].minute.iter().all(|ios| (ios - 10.0).abs() < 1e-6), "{:?}", rows[0].minute);
        assert!(figures.seconds.values().all(|seconds| seconds.len() <= 61));
    }

    #[test]
    fn messages_are_kept_up_to_a_limit() {
        let mut figures = figures(1);
        for number in 0..1000 {
            figures.take(Event::new(0, None, EventKind::Warning(number.to_string())));
        }
        assert_eq!((figures.messages.len(), figures.messages[99].text.as_str()), (100, "999"));
        figures.take(Event::new(0, None, EventKind::Terminating(2)));
        assert!(figures.is_stopping);
    }
}
