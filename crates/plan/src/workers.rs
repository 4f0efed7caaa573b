//! The plan: jobs, and workers that are their clones.

use crate::{JobPlan, ReplayPlan, SharedContent};
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that will be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One entry per job section, in order.
    pub jobs: Vec<JobPlan>,
    /// One entry per clone of each job, in order.
    pub workers: Vec<WorkerPlan>,
    /// How many waves: workers of one wave start together, when all of the wave before have ended.
    pub waves: u32,
}

/// One worker: a clone of a job.
#[derive(Clone, Debug)]
pub struct WorkerPlan {
    /// Its job, as an index into [`Plan::jobs`].
    pub job: usize,
    /// Which clone of the job, from 0.
    pub clone: u32,
    /// Which worker of the whole run, from 0.
    pub index: usize,
    /// The same in the run of all sections, of which `--section` may have chosen some: what a job does and how it is
    /// called on disk does not depend on whether the others run as well.
    pub place: u64,
    /// Its wave, from 0.
    pub wave: u32,
    /// Workers (indices) that must have ended before this one starts, beyond those of earlier waves.
    pub wait_for: std::ops::Range<usize>,
    /// How long after the beginning of its wave it starts, in nanoseconds (`startdelay`).
    pub start_delay_ns: u64,
    /// Its files, in order.
    pub files: Vec<PathBuf>,
    /// Seed of all its random choices.
    pub seed: u64,
    /// What it replays, where it replays something.
    pub replay: Option<Arc<ReplayPlan>>,
    /// Its share of the buffers that several workers repeat, where it has one (`dedupe_global`).
    pub shared_content: Option<SharedContent>,
}

impl WorkerPlan {
    /// Its number in the headers of what it writes. They begin with 1, as fio's do.
    pub fn number(&self) -> u16 {
        self.place.wrapping_add(1) as u16
    }
}

impl Plan {
    /// Whether a job has ended when workers of this wave, which wait for those, begin.
    pub(crate) fn is_over_before(&self, job: &JobPlan, wave: u32, wait_for: &std::ops::Range<usize>) -> bool {
        // Of a job that has a problem there may be fewer than it asked for.
        let mut clones = self.workers.iter().skip(job.first_worker).take(job.clones as usize);
        clones.all(|worker| worker.wave < wave || wait_for.contains(&worker.index))
    }

    /// Whether a job has ended when this worker begins.
    pub fn has_ended_before(&self, job: &JobPlan, worker: &WorkerPlan) -> bool {
        self.is_over_before(job, worker.wave, &worker.wait_for)
    }

    /// The CPU that keeps the time for all workers, and is left to that (`gtod_cpu`).
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
