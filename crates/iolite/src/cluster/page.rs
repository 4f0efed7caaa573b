//! `--web` for a run on several machines: a row and curves for each machine, after those for all machines together.
//!
//! Each machine sends samples of itself, summed over its workers, at its own times. One sample of each machine makes a
//! combined sample. So each window of a machine's curve counts the I/Os between two of its own samples.

use crate::live_page::{About, LOST, Live, Lost, WAITS};
use iolite_options::{Name, RunOptions};
use iolite_page::Html;
use iolite_report::{Exporter, Program};
use iolite_stats::{
    Cluster, DiskSnapshot, Event, EventKind, Identity, JobReport, MOST_WITH_LATENCIES, Recorder, Report,
    Snapshot, Source, Stuck, WorkerSnapshot,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The shortest interval between two samples of a machine: they come over the network.
const SHORTEST: Duration = Duration::from_millis(500);
/// The most samples of a machine that wait for other machines. Older ones are dropped.
const MOST_WAITING: usize = 4;

/// The sampling interval for this many machines.
pub fn interval(hosts: usize) -> Duration {
    SHORTEST.max(Recorder::interval(hosts + 1))
}

/// The state of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It was sent its jobs.
    Asked,
    /// It is setting up its jobs.
    SetsUp,
    /// Its next jobs are set up and wait for other machines.
    Waits,
    /// Its jobs run.
    Goes,
    /// Its run has ended.
    Ended {
        /// Without success.
        failed: bool,
    },
    /// The connection is lost.
    Lost,
}

/// A sample of a machine.
#[derive(Clone, Debug, Default)]
struct Told {
    sum: WorkerSnapshot,
    percent: Option<f64>,
    eta_s: Option<u64>,
    stuck: Option<Stuck>,
    disks: Vec<DiskSnapshot>,
}

#[derive(Debug)]
struct Host {
    label: String,
    stage: Stage,
    /// Samples that are not part of a combined sample yet.
    waiting: VecDeque<Told>,
    /// The sample in the last combined one; `None` = none yet.
    last: Option<Told>,
}

impl Host {
    /// Whether the next combined sample waits for this machine.
    fn is_awaited(&self) -> bool {
        let is_over = matches!(self.stage, Stage::Ended { .. } | Stage::Lost);
        !is_over && self.last.is_some() && self.waiting.is_empty()
    }

    /// The machine as a worker of the combined sample.
    fn worker(&self) -> WorkerSnapshot {
        let mut worker = self.last.as_ref().map(|told| told.sum.clone()).unwrap_or_default();
        worker.state = match self.stage {
            Stage::Asked => 'P',
            Stage::SetsUp => 'C',
            Stage::Waits => WAITS,
            Stage::Goes => worker.state,
            Stage::Ended { failed: false } => '_',
            Stage::Ended { failed: true } => 'X',
            Stage::Lost => LOST,
        };
        worker.running &= !matches!(self.stage, Stage::Ended { .. } | Stage::Lost);
        worker
    }
}

/// Combines the samples of machines.
#[derive(Debug)]
struct Gathered {
    hosts: Vec<Host>,
    interval: Duration,
    began: Instant,
    /// The number of intervals up to the last combined sample.
    ticks: u64,
    /// A state has changed since the last combined sample.
    has_changed: bool,
    /// The time of the last combined sample.
    made: Instant,
}

impl Gathered {
    fn of(labels: &[String]) -> Gathered {
        let host = |label: &String| Host {
            label: label.clone(),
            stage: Stage::Asked,
            waiting: VecDeque::new(),
            last: None,
        };
        let now = Instant::now();
        Gathered {
            hosts: labels.iter().map(host).collect(),
            interval: interval(labels.len()),
            began: now,
            ticks: 0,
            has_changed: false,
            made: now,
        }
    }

    fn sampled(&mut self, index: usize, snapshot: &Snapshot) {
        let host = &mut self.hosts[index];
        let disk = |disk: &DiskSnapshot| DiskSnapshot {
            name: format!("{} {}", host.label, disk.name),
            ..disk.clone()
        };
        let told = Told {
            sum: snapshot.summed(),
            percent: snapshot.percent,
            eta_s: snapshot.eta_s,
            stuck: snapshot.stuck.clone(),
            disks: snapshot.disks.iter().map(disk).collect(),
        };
        if host.waiting.len() >= MOST_WAITING {
            host.waiting.pop_front();
        }
        host.waiting.push_back(told);
        if host.last.is_none() {
            host.last = host.waiting.pop_front();
        }
    }

    /// The combined sample, if it is due.
    fn due(&mut self, now: Instant) -> Option<Snapshot> {
        let silence = now.saturating_duration_since(self.made);
        let is_complete = self.hosts.iter().any(|host| !host.waiting.is_empty())
            && !self.hosts.iter().any(Host::is_awaited);
        if is_complete || silence >= 2 * self.interval {
            // The machines sample at regular intervals, so times of combined samples are multiples of the interval.
            let passed =
                now.saturating_duration_since(self.began).as_secs_f64() / self.interval.as_secs_f64();
            self.ticks = (passed.round() as u64).max(self.ticks + 1);
            for host in &mut self.hosts {
                host.last = host.waiting.pop_front().or(host.last.take());
            }
        } else if !self.has_changed || silence < self.interval / 2 {
            return None;
        }
        // Only states differ from the last sample.
        (self.made, self.has_changed) = (now, false);
        Some(self.whole())
    }

    fn whole(&self) -> Snapshot {
        let mut workers: Vec<WorkerSnapshot> = self.hosts.iter().map(Host::worker).collect();
        workers.insert(0, WorkerSnapshot::sum(&workers));
        if self.hosts.len() > MOST_WITH_LATENCIES {
            let counters = workers.iter_mut().skip(1).flat_map(|worker| worker.counters.values.iter_mut());
            counters.for_each(|counters| counters.latency = Default::default());
        }
        let is_going = |host: &&Host| matches!(host.stage, Stage::Goes | Stage::Waits);
        let going = || self.hosts.iter().filter(is_going).filter_map(|host| host.last.as_ref());
        let told = self.hosts.iter().filter_map(|host| host.last.as_ref());
        Snapshot {
            disks: told.flat_map(|told| told.disks.iter().cloned()).collect(),
            elapsed_ns: self.ticks * self.interval.as_nanos() as u64,
            percent: going().map(|told| told.percent).reduce(|one, other| Some(one?.min(other?))).flatten(),
            eta_s: going().map(|told| told.eta_s).reduce(|one, other| Some(one?.max(other?))).flatten(),
            workers,
            stuck: going().filter_map(|told| told.stuck.clone()).reduce(Stuck::and),
            ..Snapshot::default()
        }
    }
}

/// The page of a run on several machines.
#[derive(Debug)]
pub struct HostsPage {
    live: Live,
    gathered: Gathered,
    /// Why jobs were refused, for the result page.
    refusals: Vec<String>,
}

impl HostsPage {
    /// Starts serving the page for these machines, if it was requested.
    ///
    /// # Errors
    /// The page cannot be served.
    pub fn start(name: Name, run: &RunOptions, labels: &[String]) -> Result<Option<HostsPage>, String> {
        if !run.is_watched() {
            return Ok(None);
        }
        let gathered = Gathered::of(labels);
        let names = std::iter::once("All clients").chain(labels.iter().map(String::as_str));
        let jobs: Vec<JobReport> = (0..)
            .zip(names)
            .map(|(block, name)| JobReport {
                identity: Identity::of(block, block),
                name: name.to_owned(),
                members: 1,
                ..JobReport::default()
            })
            .collect();
        let about = About {
            blocks: (0..jobs.len() as u32).map(Some).collect(),
            outline: Report { jobs, ..Report::default() },
            interval: gathered.interval,
            of_hosts: true,
        };
        let live = Live::start(name, run, about)?;
        Ok(Some(HostsPage { live, gathered, refusals: Vec::new() }))
    }

    /// Takes a sample of a machine.
    ///
    /// # Errors
    /// The server of the page has ended. This is reported once, also by the functions below.
    pub fn sampled(&mut self, index: usize, snapshot: &Snapshot) -> Result<(), Lost> {
        self.gathered.sampled(index, snapshot);
        self.show()
    }

    /// Changes the state of a machine.
    ///
    /// # Errors
    /// As above.
    pub fn stands(&mut self, index: usize, stage: Stage) -> Result<(), Lost> {
        let host = &mut self.gathered.hosts[index];
        self.gathered.has_changed |= host.stage != stage;
        host.stage = stage;
        self.show()
    }

    /// Shows an event of a machine; `None` = of all machines.
    ///
    /// # Errors
    /// As above.
    pub fn told(&mut self, index: Option<usize>, kind: EventKind) -> Result<(), Lost> {
        let source = index.map(|index| Source {
            job: self.gathered.hosts[index].label.clone(),
            worker: u32::try_from(index).unwrap_or(u32::MAX),
        });
        self.live.take(&self.event(source, kind))
    }

    /// Adds the reasons why a machine refused its jobs.
    pub fn refused(&mut self, index: usize, problems: &[String]) {
        let label = &self.gathered.hosts[index].label;
        self.refusals.extend(problems.iter().map(|problem| format!("{label}: {problem}")));
    }

    /// Gives the terminal back, if the run has taken it.
    pub fn leave_screen(&mut self) {
        self.live.leave_screen();
    }

    fn show(&mut self) -> Result<(), Lost> {
        let Some(sample) = self.gathered.due(Instant::now()) else { return Ok(()) };
        let event = self.event(None, EventKind::Sample(Box::new(sample)));
        self.live.take(&event)
    }

    fn event(&self, source: Option<Source>, kind: EventKind) -> Event {
        Event::new(self.gathered.began.elapsed().as_nanos() as u64, source, kind)
    }

    /// Shows the final result.
    ///
    /// # Errors
    /// As above.
    pub fn end(mut self, name: Name, cluster: &Cluster) -> Result<(), Lost> {
        // `own_version`, even under the name `fio`: the page is not fio's.
        let version = name.own_version();
        let program = Program { version: version.to_owned(), own_version: version.to_owned() };
        let mut whole = cluster.together();
        whole.facts.get_or_insert_default().warnings.append(&mut self.refusals);
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = Html.write(&whole, &program, &mut text);
        self.live.end_with(String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_types::Direction;

    fn sample(state: char, ios: u64) -> Snapshot {
        let mut worker = WorkerSnapshot { state, running: true, ..WorkerSnapshot::default() };
        worker.counters[Direction::Read].ios = ios;
        Snapshot { workers: vec![worker], percent: Some(ios as f64), ..Snapshot::default() }
    }

    fn ios(snapshot: &Snapshot) -> Vec<u64> {
        snapshot.workers.iter().map(|worker| worker.counters[Direction::Read].ios).collect()
    }

    fn states(snapshot: &Snapshot) -> String {
        snapshot.workers.iter().skip(1).map(|worker| worker.state).collect()
    }

    #[test]
    fn one_sample_of_each_makes_one_of_all() {
        let mut gathered = Gathered::of(&["a", "b"].map(str::to_owned));
        let (began, interval) = (gathered.began, gathered.interval);
        let at = |intervals: f64| began + interval.mul_f64(intervals);
        assert!(gathered.due(at(0.1)).is_none(), "nobody has told anything");
        gathered.hosts[0].stage = Stage::Waits;
        gathered.has_changed = true;
        let changed = gathered.due(at(0.6)).unwrap();
        assert_eq!((states(&changed), changed.elapsed_ns), ("BP".into(), 0));
        for (index, first) in [(0, 1), (1, 5)] {
            gathered.hosts[index].stage = Stage::Goes;
            gathered.sampled(index, &sample('r', first));
        }
        gathered.sampled(0, &sample('r', 2));
        gathered.sampled(0, &sample('r', 3));
        assert!(gathered.due(at(0.9)).is_none(), "one of them has told nothing since");
        gathered.sampled(1, &sample('r', 6));
        let one = gathered.due(at(1.1)).unwrap();
        assert_eq!(
            (ios(&one), one.elapsed_ns, one.percent),
            (vec![8, 2, 6], interval.as_nanos() as u64, Some(2.0))
        );
        // A silent machine delays the sample, but not for ever; a lost one does not delay it.
        assert!(gathered.due(at(2.0)).is_none());
        let other = gathered.due(at(3.2)).unwrap();
        assert_eq!((ios(&other), other.elapsed_ns), (vec![9, 3, 6], 3 * interval.as_nanos() as u64));
        gathered.hosts[1].stage = Stage::Lost;
        gathered.sampled(0, &sample('r', 4));
        let last = gathered.due(at(4.0)).unwrap();
        assert_eq!((ios(&last), states(&last)), (vec![10, 4, 6], "rL".into()));
        assert!(!last.workers[2].running);
    }
}
