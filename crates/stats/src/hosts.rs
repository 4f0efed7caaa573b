//! The results of several machines that ran together.

use crate::{Identity, JobReport, Report, SteadyReport};
use serde::{Deserialize, Serialize};

/// What one machine has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// What it calls itself, or how it is told from another one that calls itself the same.
    pub label: String,
    /// Its address, as it was asked for.
    pub address: String,
    /// The port.
    pub port: u16,
    /// What it has measured.
    pub report: Report,
    /// Why it was lost. Then the report is the last one that arrived.
    pub lost: Option<String>,
}

/// All machines of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// The machines, in the order in which they were named.
    pub hosts: Vec<HostReport>,
    /// How far apart they began, and how well that is known; `None` = they did not begin together.
    pub start: Option<StartSpread>,
    /// The steady states that were judged over all of them.
    pub steady: Vec<SteadyReport>,
}

/// How far apart machines began their I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartSpread {
    /// From the first to the last, in nanoseconds.
    pub spread_ns: u64,
    /// How far the clocks of two machines may be off, in nanoseconds.
    pub uncertainty_ns: u64,
}

/// The name of what all machines have measured together.
const ALL: &str = "All clients";

impl Cluster {
    /// When the report was made: the latest time stamp of all.
    pub fn timestamp_ms(&self) -> u64 {
        self.hosts.iter().map(|host| host.report.timestamp_ms).max().unwrap_or(0)
    }

    /// All jobs of all machines as one, exactly; `None` = there are none.
    pub fn all(&self) -> Option<Report> {
        let reports = self.hosts.iter().map(|host| &host.report);
        let mut all = one_of(reports.flat_map(|report| &report.jobs), ALL, self.timestamp_ms())?;
        // Of several, none is that of all jobs.
        if let ([state], Some(job)) = (&self.steady[..], all.jobs.first_mut()) {
            job.steady_state = Some(state.clone());
        }
        Some(all)
    }
}

impl HostReport {
    /// All jobs of this machine as one, exactly; `None` = there are none.
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

    /// What does not depend on who comes first.
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
