//! The other workers of the run that a worker depends on.

use crate::{JobPlan, Plan, Problem, WorkerPlan};
use iolite_options::engines::{NetOptions, Protocol, RdmaOptions, port_of_clone};
use iolite_options::{JobOptions, Sample};
use iolite_types::{BlockSize, Direction, is_loopback};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::IpAddr;
use std::path::Path;

/// Workers that keep in step (`flow`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRules {
    /// The worker's weight.
    pub weight: u32,
    /// The other workers of the flow, as indices of the run, with their weights.
    pub others: Vec<(usize, u32)>,
    /// Nanoseconds to sleep when it is ahead; 0 = check again at once.
    pub sleep_ns: u64,
}

/// Workers that read samples for one accelerator (`batch_size`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchRules {
    /// The worker whose words all of them share, as an index of the run.
    pub first: usize,
    /// The other workers, as indices of the run.
    pub others: Vec<usize>,
    /// Samples in a batch.
    pub size: u64,
    /// What a sample is.
    pub sample: Sample,
    /// The smallest block of a read.
    pub block: u64,
    /// Nanoseconds that the accelerator computes with a batch.
    pub compute_ns: u64,
    /// How many batches may be read while the one before is computed.
    pub prefetch: u64,
}

/// Workers that share a ramp in bytes (`ramp_size`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizedRampRules {
    /// Bytes that all of them together have to move before counting begins.
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

pub(super) fn batches(plan: &Plan, worker: &WorkerPlan) -> Option<BatchRules> {
    let job = plan.job_of(worker);
    let options = &job.options.batches;
    let block = job.options.block_size(Direction::Read).min().max(1);
    (options.batch_size > 0).then(|| BatchRules {
        first: job.first_worker,
        others: plan.clones(job).filter(|&index| index != worker.index).collect(),
        size: options.batch_size,
        sample: options.batch_sample,
        block,
        compute_ns: options.batch_compute.saturating_mul(1000),
        prefetch: options.batch_prefetch,
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
    /// The protocol of sockets; `None` = RDMA.
    protocol: Option<Protocol>,
    port: u32,
    /// The address that the waiting end is bound to, or that the other one connects to; `None` = any.
    host: Option<&'a str>,
    /// The multicast group, if any.
    group: Option<IpAddr>,
    /// The path of a local socket.
    path: Option<Cow<'a, Path>>,
}

impl End<'_> {
    /// Whether one end may connect to the other.
    fn may_meet(&self, other: &End) -> bool {
        if self.protocol != other.protocol || self.waits == other.waits {
            return false;
        }
        match self.protocol {
            Some(Protocol::Unix) => self.path == other.path,
            _ => self.port == other.port && self.group == other.group && self.may_be_at(other),
        }
    }

    /// Whether both hosts may be the same. A name may stand for any address.
    fn may_be_at(&self, other: &End) -> bool {
        let address =
            |end: &End| end.host.and_then(|host| host.parse().ok()).map(|ip: IpAddr| ip.to_canonical());
        match (address(self), address(other)) {
            (Some(here), Some(there)) => here == there || here.is_unspecified() || there.is_unspecified(),
            _ => true,
        }
    }
}

/// A worker's end of a connection; `None` = its other end is on another machine, or it has no connection.
fn end<'a>(plan: &'a Plan, worker: &'a WorkerPlan) -> Option<End<'a>> {
    let JobPlan { options, connects_elsewhere, .. } = plan.job_of(worker);
    if *connects_elsewhere {
        return None;
    }
    let waits = options.waits_for_peer();
    if let Some(rdma) = options.engine.of::<RdmaOptions>() {
        let host = if waits { &rdma.bindname } else { &rdma.hostname };
        return Some(End {
            waits,
            protocol: None,
            port: port_of_clone(rdma.port, worker.clone),
            host: Some(host),
            group: None,
            path: None,
        });
    }
    let net = options.engine.of::<NetOptions>()?;
    let path = match (net.protocol, net.hostname.is_empty()) {
        (Protocol::Unix, true) => worker.files.iter().next(),
        (Protocol::Unix, false) => Some(Cow::Borrowed(Path::new(&net.hostname))),
        _ => None,
    };
    Some(End {
        waits,
        protocol: Some(net.protocol),
        port: port_of_clone(net.port, worker.clone),
        // A waiting end accepts connections at all addresses.
        host: net.connects_to(options),
        group: net.group(),
        path,
    })
}

/// The address that a job connects to, unless it is a name or a multicast group.
pub(crate) fn address_there(options: &JobOptions) -> Option<IpAddr> {
    let host = match (options.engine.of::<NetOptions>(), options.engine.of::<RdmaOptions>()) {
        (Some(net), _) if net.group().is_none() => net.connects_to(options),
        (_, Some(rdma)) if !options.waits_for_peer() => Some(rdma.hostname.as_str()),
        _ => None,
    };
    host?.parse().ok()
}

impl Plan {
    /// The workers that connect to this one, or that it connects to. Several pairs may use one address one after the
    /// other.
    pub fn other_ends(&self, worker: &WorkerPlan) -> Vec<usize> {
        let mut others = self.at_one_place(worker);
        let is_beside = |&other: &usize| {
            let other = &self.workers[other];
            !self.has_ended_before(self.job_of(other), worker)
                && !self.has_ended_before(self.job_of(worker), other)
        };
        // If none runs at the same time, keep them all: the worker learns from their ends that it will meet nobody.
        if others.iter().any(is_beside) {
            others.retain(is_beside);
        }
        others
    }

    /// The workers that could be its other end if they ran at the same time.
    fn at_one_place(&self, worker: &WorkerPlan) -> Vec<usize> {
        let Some(own) = end(self, worker) else { return Vec::new() };
        let is_other = |other: &&WorkerPlan| end(self, other).is_some_and(|other| own.may_meet(&other));
        self.workers.iter().filter(is_other).map(|other| other.index).collect()
    }
}

impl Plan {
    /// Jobs that wait for a local connection from a job that starts only after they end: a deadlock.
    pub(crate) fn never_met(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        for waiting in self.workers.iter().filter(|worker| end(self, worker).is_some_and(|end| end.waits)) {
            let job = self.job_of(waiting);
            let others = self.at_one_place(waiting);
            let comes_too_late = |other: &&WorkerPlan| {
                self.stays_here(other) && self.has_ended_before(job, other) && other.job != waiting.job
            };
            let late: Vec<_> =
                others.iter().map(|&other| &self.workers[other]).filter(comes_too_late).collect();
            // (One message per job is enough: that of its first clone.)
            if let Some(first) = late.first().filter(|_| late.len() == others.len() && waiting.clone == 0) {
                found.push(self.too_late(job, self.job_of(first)));
            }
        }
        found
    }

    /// Jobs that meet another job of the run on this machine but cannot exchange a block with it: both would wait for
    /// ever, or fail.
    pub(crate) fn at_odds(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut jobs = Vec::new();
        for waiting in self.workers.iter().filter(|worker| end(self, worker).is_some_and(|end| end.waits)) {
            if jobs.contains(&waiting.job) {
                continue;
            }
            let others: Vec<_> =
                self.other_ends(waiting).into_iter().map(|other| &self.workers[other]).collect();
            if !others.iter().all(|other| self.stays_here(other)) {
                continue;
            }
            // Any of them may be the one that connects.
            let together = others.into_iter().filter(|other| other.wave == waiting.wave);
            let problems: Option<Vec<_>> =
                together.map(|other| self.mismatch(self.job_of(waiting), self.job_of(other))).collect();
            let problems = problems.into_iter().flatten().chain(self.takes_place_of(waiting));
            if let Some(problem) = problems.take(1).next() {
                jobs.push(waiting.job);
                found.push(problem);
            }
        }
        found
    }

    /// Why these two ends of a connection cannot exchange a block.
    fn mismatch(&self, waiting: &JobPlan, connecting: &JobPlan) -> Option<Problem> {
        let [here, there] = [waiting, connecting].map(|job| job.options.engine.of::<NetOptions>());
        let (here, there) = (here?, there?);
        let receives = |job: &JobPlan| job.options.pattern.rw.reads();
        if receives(waiting) == receives(connecting) {
            let (both, remedy) = match receives(waiting) {
                true => ("receives as well, so both would wait for ever", "send (rw=write)"),
                false => ("sends as well", "receive (rw=read)"),
            };
            let job = &waiting.name;
            let message = format!(
                "rw={rw}: job {job}, at the other end of the connection, {both}; one of both has to {remedy}",
                rw = connecting.options.pattern.rw.name()
            );
            return Some(connecting.problem("rw", message));
        }
        let (receiver, sender) =
            if receives(waiting) { (waiting, connecting) } else { (connecting, waiting) };
        let is_udp = here.protocol.is_udp();
        if here.pingpong != there.pingpong {
            let answers = if receives(waiting) { here.pingpong } else { there.pingpong };
            // A sender of datagrams ignores answers.
            return (!answers || !is_udp).then(|| {
                let (with, without, what) = match answers {
                    true => (receiver, sender, "does not expect its blocks back"),
                    false => (sender, receiver, "would never send a block back"),
                };
                let message = format!(
                    "pingpong: job {without}, at the other end of the connection, does not have it and {what}; \
                     set it at both ends",
                    without = without.name
                );
                with.problem("pingpong", message)
            });
        }
        let sizes =
            (sender.options.block_size(Direction::Write), receiver.options.block_size(Direction::Read));
        let (BlockSize::Fixed(sent), BlockSize::Fixed(awaited)) = sizes else { return None };
        // A stream may be answered piece by piece.
        let is_answered = if is_udp { sent == awaited } else { sent.is_multiple_of(awaited) };
        (here.pingpong && !is_answered).then(|| {
            let message = format!(
                "bs={awaited}: job {name} sends {sent} bytes and waits until they come back (pingpong), which blocks of this \
                 size do not answer; give both the same bs",
                name = sender.name
            );
            receiver.problem("bs", message)
        })
    }

    /// Two jobs that wait at one path at the same time: the socket of the second replaces that of the first.
    fn takes_place_of(&self, waiting: &WorkerPlan) -> Option<Problem> {
        let own = end(self, waiting)?;
        let is_rival = |other: &&WorkerPlan| {
            other.job != waiting.job
                && other.wave == waiting.wave
                && other.wait_for.is_empty()
                && waiting.wait_for.is_empty()
                && end(self, other).is_some_and(|end| end.waits && end.path.is_some() && end.path == own.path)
        };
        let path = own.path.as_ref()?;
        let first = self.workers.iter().take_while(|worker| worker.index < waiting.index).find(is_rival)?;
        let (job, name) = (self.job_of(waiting), &self.job_of(first).name);
        let message = format!(
            "rw=read: job {name} waits at {path} as well, so nobody connects; one of both has to send (rw=write), or to \
             wait elsewhere (filename)",
            path = path.display()
        );
        Some(job.problem("rw", message))
    }

    /// Whether this end connects to this machine.
    fn stays_here(&self, worker: &WorkerPlan) -> bool {
        let options = &self.job_of(worker).options;
        let Some(net) = options.engine.of::<NetOptions>() else { return false };
        net.protocol == Protocol::Unix || net.connects_to(options).is_some_and(is_loopback)
    }

    fn too_late(&self, waiting: &JobPlan, late: &JobPlan) -> Problem {
        let option = match &late.options.schedule.wait_for {
            Some(name) if *name == waiting.name => "wait_for",
            _ => "stonewall",
        };
        let message = format!(
            "{option}: this job connects to job {waiting}, which waits for that and has to end before this one begins, so \
             both would wait for ever; let them begin together (leave {option} out)",
            waiting = waiting.name
        );
        late.problem(option, message)
    }
}

/// The other workers whose jobs satisfy this.
fn others<'a>(
    plan: &'a Plan,
    worker: &'a WorkerPlan,
    are: impl Fn(&JobPlan) -> bool + 'a,
) -> impl Iterator<Item = (&'a JobPlan, usize)> {
    let others = plan.workers.iter().filter(|other| other.index != worker.index);
    others.map(|other| (plan.job_of(other), other.index)).filter(move |(job, _)| are(job))
}
