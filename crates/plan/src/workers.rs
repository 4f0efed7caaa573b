//! The plan: jobs, and workers that are their clones.

use crate::{JobPlan, Names, ReplayPlan};
use std::sync::Arc;

/// Everything that a run will do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One entry per job section, in order.
    pub jobs: Vec<JobPlan>,
    /// One entry per clone of each job, in order.
    pub workers: Vec<WorkerPlan>,
    /// The number of waves. The workers of a wave start together, when all workers of the wave before have ended.
    pub waves: u32,
    /// No file or device that holds data may be changed (`--readonly`).
    pub readonly: bool,
}

/// One worker: a clone of a job.
#[derive(Clone, Debug)]
pub struct WorkerPlan {
    /// Its job, as an index into [`Plan::jobs`].
    pub job: usize,
    /// The index of the clone in its job, from 0.
    pub clone: u32,
    /// The index of the worker in the whole run, from 0.
    pub index: usize,
    /// Its index in a run of all sections. With `--section` only some of them run, and the choice must not change what
    /// a job does or the names of its files.
    pub place: u64,
    /// Its wave, from 0.
    pub wave: u32,
    /// Workers (indices) that must have ended before this one starts, beyond those of earlier waves.
    pub wait_for: std::ops::Range<usize>,
    /// How long after the beginning of its wave it starts, in nanoseconds (`startdelay`).
    pub start_delay_ns: u64,
    /// Its files, in order.
    pub files: Names,
    /// Seed of all its random choices.
    pub seed: u64,
    /// Its replay, if any.
    pub replay: Option<Arc<ReplayPlan>>,
    /// Its share of the content that several workers repeat (`dedupe_global`), if any.
    pub shared_content: Option<SharedContent>,
}

/// A worker's share of the working set of all jobs with `dedupe_global`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedContent {
    /// The seed of the set, the same for all sharing workers.
    pub seed: u64,
    /// The index among the sharing workers, from 0.
    pub position: u64,
    /// How many workers share the set.
    pub workers: u64,
}

impl WorkerPlan {
    /// Its number in the verify headers of the blocks that it writes. The first is 1, as with fio.
    pub fn number(&self) -> u16 {
        self.place.wrapping_add(1) as u16
    }

    /// Whether it begins with its wave, rather than later.
    pub(crate) fn begins_with_wave(&self) -> bool {
        self.wait_for.is_empty() && self.start_delay_ns == 0
    }

    /// Its random choices, each with its seed.
    pub fn seeds(&self) -> Vec<(&'static str, u64)> {
        let streams = iolite_workload::stream_seeds(self.seed);
        // Choices without a separate stream use the worker's seed itself.
        streams.into_iter().chain([("order of blocks, sizes of files, content", self.seed)]).collect()
    }
}

/// A point at which all hosts of a client begin together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// This wave.
    Wave(u32),
    /// The workers of this job, which wait for those of another one.
    Job(usize),
    /// The end of this job's ramp in bytes (`ramp_size`): it ends when the ramps of all hosts are over.
    Ramp(usize),
}

impl Plan {
    /// Whether the first of these workers of one wave begins only when the second has ended.
    pub(crate) fn waits_for(&self, one: usize, other: usize) -> bool {
        let wait_for = &self.workers[one].wait_for;
        // All clones of a job wait for the same workers.
        wait_for.contains(&other) || wait_for.clone().next().is_some_and(|next| self.waits_for(next, other))
    }

    /// Whether these workers run at the same time.
    pub(crate) fn run_together(&self, one: usize, other: usize) -> bool {
        let wave = |worker: usize| self.workers[worker].wave;
        wave(one) == wave(other) && !self.waits_for(one, other) && !self.waits_for(other, one)
    }

    /// The points at which all hosts of a client begin together, in the order of the jobs: the first wave, and the
    /// waves, jobs and ramps with `client_barrier`. All others begin independently.
    pub fn barriers(&self) -> Vec<Barrier> {
        let mut barriers = vec![Barrier::Wave(0)];
        let asking = self.jobs.iter().enumerate().filter(|(_, job)| job.keeps_step);
        for (number, job) in asking {
            let Some(first) = self.workers.get(job.first_worker) else { continue };
            let barrier =
                if first.wait_for.is_empty() { Barrier::Wave(first.wave) } else { Barrier::Job(number) };
            if !barriers.contains(&barrier) {
                barriers.push(barrier);
            }
            if job.options.schedule.ramp_size > 0 {
                barriers.push(Barrier::Ramp(number));
            }
        }
        barriers
    }

    /// Whether a job has ended when workers of this wave begin that wait for `wait_for`.
    pub(crate) fn is_over_before(&self, job: &JobPlan, wave: u32, wait_for: &std::ops::Range<usize>) -> bool {
        // A job with a problem may have fewer workers than it asked for.
        let mut clones = self.workers.iter().skip(job.first_worker).take(job.clones as usize);
        clones.all(|worker| worker.wave < wave || wait_for.contains(&worker.index))
    }

    /// Whether a job has ended when this worker begins.
    pub fn has_ended_before(&self, job: &JobPlan, worker: &WorkerPlan) -> bool {
        self.is_over_before(job, worker.wave, &worker.wait_for)
    }

    /// The CPU that is reserved for the thread that keeps the time for all workers (`gtod_cpu`).
    pub fn reserved_cpu(&self) -> Option<u32> {
        self.jobs.iter().find_map(|job| job.clock_cpu)
    }

    /// The job of a worker.
    pub fn job_of(&self, worker: &WorkerPlan) -> &JobPlan {
        &self.jobs[worker.job]
    }

    /// The job's clones.
    pub fn clones(&self, job: &JobPlan) -> std::ops::Range<usize> {
        job.first_worker..job.first_worker + job.clones as usize
    }
}
