//! `stages`: where the time of I/Os went. The process that finds out, and its results.

use crate::RunError;
use iolite_host::Machine;
use iolite_os::time;
use iolite_plan::{Layout, Plan, Problem, StagesBy, WorkerPlan};
use iolite_stages::{Collector, Observed, Results, StageArea};
use iolite_stats::{Stage, StagesSoFar, StuckAt};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use iolite_stages::Results as StageResults;

/// The process beside the workers, seen from both sides.
#[derive(Clone)]
pub(crate) struct StageCollection {
    area: Arc<StageArea>,
    collector: Arc<Collector>,
    results: Arc<File>,
    asks_kernel: bool,
}

impl StageCollection {
    /// For the workers whose jobs ask for it; `None` = none does.
    pub(crate) fn new(
        plan: &Plan,
        layouts: &[Layout],
        machine: &dyn Machine,
    ) -> Result<Option<StageCollection>, RunError> {
        let rules = |worker: &WorkerPlan| plan.job_of(worker).stages;
        let Some(first) = plan.workers.iter().find(|worker| rules(worker).is_some()) else { return Ok(None) };
        let of_kernel =
            |worker: &WorkerPlan| rules(worker).is_some_and(|rules| rules.told_by == StagesBy::Kernel);
        let asks_kernel = plan.workers.iter().any(of_kernel);
        let tracing = match asks_kernel {
            true => machine.tracing(),
            false => Ok(iolite_host::Tracing::default()),
        };
        let tracing = tracing.map_err(|refusal| {
            let problem = Problem::of_job(&plan.job_of(first).name, format!("stages: {refusal}"));
            RunError::Problems(vec![problem])
        })?;
        let observed = plan.workers.iter().zip(layouts).map(|(worker, layout)| {
            let Some(rules) = rules(worker) else { return Observed::default() };
            let files = layout.files.iter().map(|file| file.path.display().to_string());
            Observed {
                files: files.collect(),
                from_start: rules.from_start,
                by_other_threads: rules.by_other_threads,
                passes_commands: rules.passes_commands,
                given: match rules.told_by {
                    StagesBy::Kernel => Vec::new(),
                    StagesBy::Requests => Stage::OF_REQUESTS.to_vec(),
                    StagesBy::Answers => Stage::OF_ANSWERS.to_vec(),
                },
                log: iolite_plan::stages_log(plan.job_of(worker), worker.index),
            }
        });
        let made = || {
            let asks: Vec<bool> = plan.workers.iter().map(|worker| rules(worker).is_some()).collect();
            let area = Arc::new(StageArea::new(&asks)?);
            let collector = Collector::new(area.clone(), tracing, observed.collect())?;
            let results = Arc::new(collector.results()?);
            Ok(StageCollection { area, collector: Arc::new(collector), results, asks_kernel })
        };
        made().map(Some).map_err(|error| RunError::System("no memory for stages", error))
    }

    /// The memory that the workers write to.
    pub(crate) fn area(&self) -> &StageArea {
        &self.area
    }

    /// Does the work of the process.
    pub(crate) fn run(&self) -> i32 {
        self.collector.run()
    }

    /// Removes what a process that was killed has left in the kernel.
    pub(crate) fn clean_up(&self) {
        if self.asks_kernel {
            iolite_stages::remove_leftovers();
        }
    }

    /// Waits until it records.
    pub(crate) fn wait_until_ready(&self) -> io::Result<()> {
        /// For opening some tracepoints on each CPU of a busy machine.
        const PATIENCE: Duration = Duration::from_secs(30);
        let patience = Instant::now() + PATIENCE;
        loop {
            match self.area.readiness() {
                Some(0) => return Ok(()),
                Some(errno) => return Err(io::Error::from_raw_os_error(errno)),
                None if Instant::now() > patience => {
                    return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
                }
                None => std::thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// The workers have ended.
    pub(crate) fn end(&self) {
        self.area.end();
    }

    /// Its results, when it has ended.
    pub(crate) fn read(&self) -> io::Result<Results> {
        Collector::read(&self.results)
    }

    /// Its results so far; `None` = it is too busy to tell them, or gone. A late answer is for the next report.
    pub(crate) fn read_so_far(&self) -> Option<Results> {
        /// It looks for questions every few milliseconds.
        const PATIENCE: Duration = Duration::from_millis(300);
        let (question, end) = (self.area.ask(), Instant::now() + PATIENCE);
        while self.area.answered() < question {
            if Instant::now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.read().ok()
    }

    /// Where the time of a worker's I/Os went so far.
    pub(crate) fn so_far(&self, worker: usize) -> Vec<StagesSoFar> {
        self.collector.so_far(worker)
    }

    /// Where the kernel has an I/O of a worker that is in flight for this long; `None` = unknown.
    pub(crate) fn place_of_old(&self, worker: usize, age_ns: u64) -> Option<StuckAt> {
        /// The age of an I/O is known to a second, or two.
        const DIFFERENCE_NS: u64 = 2_000_000_000;
        let old = self.area.old_request(worker)?;
        let age = time::monotonic_ns().saturating_sub(old.queued);
        (age.abs_diff(age_ns) < DIFFERENCE_NS).then_some(if old.is_issued {
            StuckAt::Device
        } else {
            StuckAt::Queue
        })
    }
}
