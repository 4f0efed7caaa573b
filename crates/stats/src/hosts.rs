//! The results of several machines that ran together.

use crate::facts::Facts;
use crate::report::{First, Identity, JobError, JobReport, Report};
use crate::series::{Series, Window};
use crate::steady::SteadyReport;
use iolite_types::RunEnd;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The results of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// Its host name, made unique if several machines have the same one.
    pub label: String,
    /// Its address, as the user gave it.
    pub address: String,
    /// The port.
    pub port: u16,
    /// Its report.
    pub report: Report,
    /// Why it was lost. Then the report is the last one that arrived.
    pub lost: Option<String>,
}

/// All machines of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// The machines, in the order in which they were named.
    pub hosts: Vec<HostReport>,
    /// How far apart they began, and with what uncertainty; `None` = they did not begin together.
    pub start: Option<StartSpread>,
    /// The steady states that were judged over all of them.
    pub steady: Vec<SteadyReport>,
    /// How the run ended; `None` = it has not ended yet.
    pub end: Option<RunEnd>,
}

/// How far apart machines began their I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartSpread {
    /// From the first to the last, in nanoseconds.
    pub spread_ns: u64,
    /// How much the clocks of two machines may differ, in nanoseconds.
    pub uncertainty_ns: u64,
}

/// The name of the totals over all machines.
const ALL: &str = "All clients";
/// `EHOSTDOWN`, the error of what a lost machine had measured: the only mark for which every format has room.
const HOST_IS_DOWN: i32 = 112;
/// The most lost machines that are named in one line.
const MOST_NAMED: usize = 8;

impl Cluster {
    /// When the report was made: the latest time stamp of all.
    pub fn timestamp_ms(&self) -> u64 {
        self.hosts.iter().map(|host| host.report.timestamp_ms).max().unwrap_or(0)
    }

    /// All jobs of all machines as one, exactly; `None` = there are no jobs. If machines were lost, it has an error,
    /// even if no machine had measured anything.
    pub fn all(&self) -> Option<Report> {
        let reports = self.hosts.iter().map(|host| &host.report);
        let lost = self.lost();
        let mut all = match one_of(reports.flat_map(|report| &report.jobs), ALL, self.timestamp_ms()) {
            Some(all) => all,
            None if lost.is_none() => return None,
            None => {
                let nothing = JobReport { name: ALL.to_owned(), ..JobReport::default() };
                Report { timestamp_ms: self.timestamp_ms(), jobs: vec![nothing], ..Report::default() }
            }
        };
        let job = &mut all.jobs[0];
        // A depth that was searched for belongs to a single job.
        job.depth = 0;
        // If there are several steady states, none of them applies to all jobs.
        if let [state] = &self.steady[..] {
            job.steady_state = Some(state.clone());
        }
        if let Some(lost) = lost {
            mark(job, &lost);
        }
        Some(all)
    }

    /// Which machines were lost, for a reader; `None` = none.
    pub fn lost(&self) -> Option<String> {
        let lost = || self.hosts.iter().filter(|host| host.lost.is_some());
        let mut names: Vec<&str> = lost().take(MOST_NAMED).map(|host| host.label.as_str()).collect();
        let count = lost().count();
        if count > names.len() {
            names.push("…");
        }
        (count > 0).then(|| format!("{count} of {} hosts lost: {}", self.hosts.len(), names.join(", ")))
    }
}

/// Gives measurements that are incomplete because of a lost machine an error, unless they have one.
fn mark(job: &mut JobReport, what: &str) {
    job.error.get_or_insert_with(|| First {
        worker: job.identity.worker,
        value: JobError { errno: HOST_IS_DOWN, what: what.to_owned() },
    });
}

impl Cluster {
    /// The jobs of all machines side by side in one report, as if one machine had run them: their names have that of the machine.
    pub fn together(&self) -> Report {
        let mut whole =
            Report { timestamp_ms: self.timestamp_ms(), end: self.end.clone(), ..Report::default() };
        let mut facts = Facts::default();
        let mut names: Vec<&str> = Vec::new();
        let mut series = Vec::new();
        let (mut first_block, mut first_worker) = (0, 0);
        for host in &self.hosts {
            let report = &*host.marked();
            if self.hosts.len() == 1 {
                whole.global_options.clone_from(&report.global_options);
            }
            series.extend(host.report.series.as_ref().map(|series| (first_block, series)));
            let (mut blocks, mut workers) = (0, 0);
            for job in &report.jobs {
                let Identity { block, worker, last } = job.identity;
                (blocks, workers) = (blocks.max(block + 1), workers.max(last + 1));
                let mut job = job.clone();
                job.name = format!("{} on {}", job.name, host.label);
                job.host = Some(host.label.clone());
                if self.hosts.len() > 1 {
                    // Global options of one machine become options of each of its jobs.
                    let own = std::mem::take(&mut job.options);
                    let global = report.global_options.iter();
                    let is_else = |(name, _): &&(String, String)| own.iter().all(|(other, _)| other != name);
                    job.options = global.filter(is_else).cloned().chain(own.iter().cloned()).collect();
                }
                job.identity = Identity {
                    block: first_block + block,
                    worker: first_worker + worker,
                    last: first_worker + last,
                };
                whole.jobs.push(job);
            }
            (first_block, first_worker) = (first_block + blocks, first_worker + workers);
            names.push(&host.label);
            let told = report.facts.clone().unwrap_or_default();
            let own = told.host.into_iter().filter(|(name, _)| name != "name");
            facts.host.extend(own.map(|(name, value)| (format!("{}: {name}", host.label), value)));
            facts.targets.extend(told.targets.into_iter().map(|mut target| {
                target.insert(0, ("host".to_owned(), host.label.clone()));
                target
            }));
            let warnings = told.warnings.into_iter().map(|warning| format!("{}: {warning}", host.label));
            facts.warnings.extend(warnings);
            facts.warnings.extend(host.lost.iter().map(|why| format!("{} was lost: {why}", host.label)));
        }
        facts.host.insert(0, ("name".to_owned(), names.join(", ")));
        whole.facts = Some(facts);
        whole.series = side_by_side(&series);
        whole
    }
}

/// Series of machines that began together, as one; each with the number that its blocks begin with. The windows are
/// those of the series with the longest ones; a window of another series is added to the one that contains its middle.
/// As all windows end at multiples of their lengths, none crosses an edge, unless machines with different intervals met.
fn side_by_side(all: &[(u32, &Series)]) -> Option<Series> {
    let length = |series: &Series| {
        let end = series.windows.last().map_or(0, |window| window.end_ns);
        end.saturating_sub(series.begin_ns) / (series.windows.len() as u64).max(1)
    };
    let shifted = |first: u32, window: &Window| {
        let mut window = window.clone();
        window.parts.iter_mut().for_each(|part| part.block += first);
        window
    };
    let (chosen, (first, longest)) = all.iter().enumerate().max_by_key(|(_, (_, series))| length(series))?;
    let mut whole = Series {
        windows: longest.windows.iter().map(|window| shifted(*first, window)).collect(),
        ..Series::clone(longest)
    };
    for (_, (first, series)) in all.iter().enumerate().filter(|(place, _)| *place != chosen) {
        let mut begin = series.begin_ns;
        for window in &series.windows {
            let middle = begin + (window.end_ns.saturating_sub(begin)) / 2;
            begin = window.end_ns;
            let window = shifted(*first, window);
            let place = whole.windows.partition_point(|known| known.end_ns <= middle);
            let Some(known) = whole.windows.get_mut(place) else {
                // This machine ran longer.
                whole.windows.push(window);
                continue;
            };
            for part in window.parts {
                match known.parts.binary_search_by_key(&part.place(), crate::Part::place) {
                    Ok(place) => known.parts[place].append(&part),
                    Err(place) => known.parts.insert(place, part),
                }
            }
        }
        whole.begin_ns = whole.begin_ns.min(series.begin_ns);
    }
    whole.fit();
    Some(whole)
}

impl HostReport {
    /// Its report; the jobs of a lost machine have an error.
    pub fn marked(&self) -> Cow<'_, Report> {
        let Some(why) = &self.lost else { return Cow::Borrowed(&self.report) };
        let mut report = self.report.clone();
        report.jobs.iter_mut().for_each(|job| mark(job, &format!("lost: {why}")));
        Cow::Owned(report)
    }

    /// All jobs of this machine as one, exactly; `None` = there are no jobs.
    pub fn all(&self) -> Option<Report> {
        one_of(self.report.jobs.iter(), &self.label, self.report.timestamp_ms)
    }
}

/// Jobs of any machines as one job of this name.
fn one_of<'a>(jobs: impl Iterator<Item = &'a JobReport>, name: &str, timestamp_ms: u64) -> Option<Report> {
    // Each machine numbers its workers from 0.
    let mut taken = 0_u32;
    let mut group = 0;
    let parts = jobs.map(|job| {
        let mut job = job.clone();
        group = group.max(job.group);
        let first = taken;
        let width = job.identity.last.saturating_sub(job.identity.worker);
        taken = first.saturating_add(width).saturating_add(1);
        job.identity = Identity { block: 0, worker: first, last: first.saturating_add(width) };
        if let Some(error) = &mut job.error {
            error.worker = first;
        }
        if let Some(error) = job.continued_errors.as_mut().and_then(|errors| errors.first.as_mut()) {
            error.worker = first;
        }
        job.connected.clear();
        Report { timestamp_ms, jobs: vec![job], ..Report::default() }
    });
    let mut whole = Report::merge(parts);
    let job = whole.jobs.first_mut()?;
    name.clone_into(&mut job.name);
    job.group = group;
    job.pid = 0;
    job.engine.clear();
    job.options.clear();
    (job.description, job.steady_state) = (None, None);
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary;
    use proptest::prelude::*;

    fn host(jobs: Vec<JobReport>) -> HostReport {
        HostReport { report: Report { jobs, ..Report::default() }, ..HostReport::default() }
    }

    /// The values that do not depend on the order of the machines.
    fn sums(cluster: &Cluster) -> Option<(u32, u64, Vec<crate::DirectionReport>, crate::Usage)> {
        let whole = cluster.all()?;
        let job = &whole.jobs[0];
        let mut directions = job.directions.values.to_vec();
        // Their places come from the first job that has them.
        directions.iter_mut().for_each(|direction| direction.priorities.clear());
        Some((job.members, job.job_runtime_ms, directions, job.usage))
    }

    proptest! {
        // A report is large.
        #![proptest_config(iolite_testing::properties(32))]

        #[test]
        fn however_jobs_are_spread_over_hosts_all_of_them_are_the_same(
            jobs in arbitrary::jobs(),
            cut in any::<prop::sample::Index>(),
        ) {
            let together = Cluster { hosts: vec![host(jobs.clone())], ..Cluster::default() };
            let (one, other) = jobs.split_at(if jobs.is_empty() { 0 } else { cut.index(jobs.len()) });
            let apart = vec![host(other.to_vec()), host(one.to_vec())];
            let apart = Cluster { hosts: apart, ..Cluster::default() };
            prop_assert_eq!(sums(&together), sums(&apart));
        }
    }

    #[test]
    fn machines_are_side_by_side() {
        let part = |ios| crate::Part {
            block: 0,
            direction: iolite_types::Direction::Read,
            ramping: false,
            ios,
            bytes: 0,
            iops: (ios, ios),
            bandwidth: (0, 0),
            latency_sum: 0,
            latencies: Vec::new(),
            asked: crate::Asked::default(),
        };
        let series = |length: u64, count: u64| Series {
            interval_ns: 100,
            begin_ns: 0,
            windows: (1..=count)
                .map(|number| Window { end_ns: number * length + 3, samples: 1, parts: vec![part(number)] })
                .collect(),
        };
        let one = |label: &str, series| {
            let jobs = vec![JobReport { name: "a".into(), members: 1, ..JobReport::default() }];
            let report = Report { jobs, series: Some(series), ..Report::default() };
            HostReport { label: label.into(), report, ..HostReport::default() }
        };
        // The second has windows of half the length, and runs for longer.
        let hosts = vec![one("x", series(200, 2)), one("y", series(100, 6))];
        let whole = Cluster { hosts, ..Cluster::default() }.together();
        let names: Vec<(&str, u32)> =
            whole.jobs.iter().map(|job| (job.name.as_str(), job.identity.block)).collect();
        assert_eq!(names, [("a on x", 0), ("a on y", 1)]);
        assert_eq!(whole.facts.unwrap().host, [("name".to_owned(), "x, y".to_owned())]);
        let series = whole.series.unwrap();
        let ends: Vec<u64> = series.windows.iter().map(|window| window.end_ns).collect();
        assert_eq!(ends, [203, 403, 503, 603]);
        let ios: Vec<Vec<(u32, u64)>> = series
            .windows
            .iter()
            .map(|window| window.parts.iter().map(|part| (part.block, part.ios)).collect())
            .collect();
        assert_eq!(ios, [vec![(0, 1), (1, 3)], vec![(0, 2), (1, 7)], vec![(1, 5)], vec![(1, 6)]]);
    }

    #[test]
    fn measurements_of_a_lost_machine_are_kept_and_marked() {
        let fine = || JobReport { members: 1, job_runtime_ms: 5, ..JobReport::default() };
        let mut hosts = ["one", "two"].map(|label| HostReport { label: label.into(), ..host(vec![fine()]) });
        hosts[1].lost = Some("cut off".into());
        let error =
            |report: &Report| report.jobs[0].error.clone().map(|error| (error.value.errno, error.value.what));
        assert_eq!(error(&hosts[0].marked()), None);
        assert_eq!(error(&hosts[1].marked()), Some((112, "lost: cut off".into())));
        let cluster = Cluster { hosts: hosts.to_vec(), ..Cluster::default() };
        let all = cluster.all().unwrap();
        assert_eq!(error(&all), Some((112, "1 of 2 hosts lost: two".into())));
        assert_eq!((all.jobs[0].members, all.jobs[0].job_runtime_ms), (2, 10));
        let errors: Vec<bool> = cluster.together().jobs.iter().map(|job| job.error.is_some()).collect();
        assert_eq!(errors, [false, true]);

        let nothing =
            |label: &str| HostReport { lost: Some("cut off".into()), label: label.into(), ..host(vec![]) };
        let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let cluster =
            Cluster { hosts: names.iter().map(|name| nothing(name)).collect(), ..Cluster::default() };
        let told = "10 of 10 hosts lost: 0, 1, 2, 3, 4, 5, 6, 7, …";
        assert_eq!(error(&cluster.all().unwrap()), Some((112, told.into())));
    }

    #[test]
    fn the_error_of_a_later_host_is_kept() {
        let failed = JobReport {
            error: Some(crate::First { worker: 0, value: crate::JobError { errno: 5, what: "read".into() } }),
            group: 3,
            members: 1,
            ..JobReport::default()
        };
        let fine = JobReport { members: 1, ..JobReport::default() };
        let hosts = vec![host(vec![fine]), host(vec![failed])];
        let all = Cluster { hosts, ..Cluster::default() }.all().unwrap();
        let job = &all.jobs[0];
        assert_eq!((job.members, job.group, job.name.as_str()), (2, 3, "All clients"));
        assert_eq!(job.error.as_ref().map(|error| error.value.errno), Some(5));
        assert_eq!(Cluster::default().all(), None);
    }
}
