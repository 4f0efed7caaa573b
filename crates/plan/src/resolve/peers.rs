//! The other workers of the run that a worker keeps an eye on.

use crate::{JobPlan, Plan, WorkerPlan};
use iolite_options::engines::{NetOptions, Protocol};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;

/// Workers that keep in step (`flow`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRules {
    /// The worker's weight.
    pub weight: u32,
    /// The other workers of the flow, as indices of the run, with their weights.
    pub others: Vec<(usize, u32)>,
    /// Nanoseconds to sleep when it is ahead; 0 = only look again.
    pub sleep_ns: u64,
}

/// Workers that share a ramp in bytes (`ramp_size`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizedRampRules {
    /// Bytes to be moved by all of them before counting begins.
    pub bytes: u64,
    /// The other workers of the ramp, as indices of the run.
    pub others: Vec<usize>,
}

pub(super) fn flow(plan: &Plan, worker: &WorkerPlan) -> Option<FlowRules> {
    let options = &plan.job_of(worker).options;
    let is_in_step =
        |job: &JobPlan| job.options.rates.flow > 0 && job.options.rates.flow_id == options.rates.flow_id;
    (options.rates.flow > 0).then(|| FlowRules {
        weight: options.rates.flow,
        others: others(plan, worker, is_in_step)
            .map(|(job, index)| (index, job.options.rates.flow))
            .collect(),
        sleep_ns: options.rates.flow_sleep.saturating_mul(1000),
    })
}

pub(super) fn sized_ramp(plan: &Plan, worker: &WorkerPlan) -> Option<SizedRampRules> {
    let own = plan.job_of(worker);
    let shares = |job: &JobPlan| {
        let merged = own.options.measurement.group_reporting && job.options.measurement.group_reporting;
        merged && job.group == own.group && job.options.schedule.ramp_size > 0
    };
    (own.options.schedule.ramp_size > 0).then(|| SizedRampRules {
        bytes: own.options.schedule.ramp_size,
        others: others(plan, worker, shares).map(|(_, index)| index).collect(),
    })
}

/// One end of a connection.
struct End<'a> {
    waits: bool,
    protocol: Protocol,
    port: u32,
    /// The path of a local socket.
    path: Option<Cow<'a, Path>>,
}

fn end<'a>(plan: &'a Plan, worker: &'a WorkerPlan) -> Option<End<'a>> {
    let options = &plan.job_of(worker).options;
    let net = options.engine.of::<NetOptions>()?;
    let path = match (net.protocol, net.hostname.is_empty()) {
        (Protocol::Unix, true) => worker.files.iter().next(),
        (Protocol::Unix, false) => Some(Cow::Borrowed(Path::new(&net.hostname))),
        _ => None,
    };
    let waits = net.waits(options.pattern.rw.reads());
    Some(End { waits, protocol: net.protocol, port: net.port + worker.clone, path })
}

impl Plan {
    /// The workers that connect to this one, or that it connects to.
    pub fn other_ends(&self, worker: &WorkerPlan) -> Vec<usize> {
        let Some(own) = end(self, worker) else { return Vec::new() };
        let is_other = |other: &&WorkerPlan| {
            end(self, other).is_some_and(|other| {
                let same_place = match own.protocol {
                    Protocol::Unix => own.path == other.path,
                    _ => own.port == other.port,
                };
                own.protocol == other.protocol && own.waits != other.waits && same_place
            })
        };
        self.workers.iter().filter(is_other).map(|other| other.index).collect()
    }
}

/// The other workers whose jobs are like this.
fn others<'a>(
    plan: &'a Plan,
    worker: &'a WorkerPlan,
    are: impl Fn(&JobPlan) -> bool + 'a,
) -> impl Iterator<Item = (&'a JobPlan, usize)> {
    let others = plan.workers.iter().filter(|other| other.index != worker.index);
    others.map(|other| (plan.job_of(other), other.index)).filter(move |(job, _)| are(job))
}
