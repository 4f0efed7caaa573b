//! Decisions for a job as a whole: everything that is needed to start its workers, watch them, end them and report
//! them.
//!
//! [`Plan::resolve`](crate::Plan::resolve) decides the work of a single worker.

mod estimate;
mod report;
mod watching;

pub use estimate::EstimateRules;
pub use report::ReportRules;
pub use watching::{SamplingRules, SteadyRules};

use crate::Problem;
use crate::control_groups::ControlGroup;
use crate::measuring::StageRules;
use crate::resolve::Demand;
use iolite_options::engines::{CpuioOptions, EngineInfo, NameAct, NameKind, NameUse, Target, UnitKind};
use iolite_options::{ExitWhat, JobOptions, NumaPolicy, ReadWrite};
use iolite_stats::RateLimits;
use iolite_types::{BlockSize, Direction, PerDirection};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// A job section.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// Its name.
    pub name: String,
    /// Its engine.
    pub engine: EngineInfo,
    /// The kind of its workload: directions, and sequential or random.
    pub rw: ReadWrite,
    /// The block sizes of each direction.
    pub block_sizes: PerDirection<BlockSize>,
    /// The block sizes of reads are those of sequential I/Os, and those of writes are those of random ones
    /// (`bs_is_seq_rand`).
    pub sizes_by_randomness: bool,
    /// The number of I/Os that a worker keeps in flight.
    pub depth: u32,
    /// The most I/Os that a worker can have in flight: less than the depth, if its engine does not queue.
    pub most_in_flight: u32,
    /// The run status group.
    pub group: u32,
    /// The first of its workers, as an index into [`Plan::workers`](crate::Plan::workers).
    pub first_worker: usize,
    /// How many workers it has.
    pub clones: u32,
    /// Its workers are threads, rather than processes.
    pub thread: bool,
    /// Its files are those found in a directory (`opendir`).
    pub found_files: bool,
    /// It keeps in step with the same job on the other hosts of a client (`client_barrier`).
    pub keeps_step: bool,
    /// The rules by which its workers end others.
    pub end: EndRules,
    /// Its workers end when all workers that do I/O have ended (`exit_on_io_done`).
    pub ends_with_io: bool,
    /// Its engine starts programs, which must not outlive the run.
    pub starts_programs: bool,
    /// The rules of its report.
    pub report: ReportRules,
    /// The rate limits of a worker, summed over the directions that it uses, for the status line.
    pub limits: RateLimits,
    /// What its schedule of rates asks each worker for.
    pub demand: Option<Demand>,
    /// How often its bandwidth and IOPS are sampled.
    pub sampling: SamplingRules,
    /// The steady state that ends it; `None` = it has no `steadystate`.
    pub steady: Option<SteadyRules>,
    /// The basis for estimates of its remaining time.
    pub estimate: EstimateRules,
    /// Statistics of the disks below its files are reported.
    pub watches_disks: bool,
    /// The CPU of the thread that keeps the time for all workers (`gtod_cpu`).
    pub clock_cpu: Option<u32>,
    /// Memory to lock during the run, in bytes.
    pub locked_memory: u64,
    /// The CPUs of the memory nodes on which its workers run; `None` = on any node.
    pub node_cpus: Option<Vec<u32>>,
    /// Where its workers' memory comes from, with the nodes that the policy applies to; `None` = the system's own
    /// policy.
    pub memory_policy: Option<NumaPolicy>,
    /// Its workers connect to another machine: to an address that this one does not have.
    pub connects_elsewhere: bool,
    /// The control group of its workers.
    pub control_group: Option<ControlGroup>,
    /// The directory of files that the run creates for itself (`--aux-path`).
    pub auxiliary: PathBuf,
    /// How the stages of its I/Os are found; `None` = they are not measured (`stages`).
    pub stages: Option<StageRules>,
    /// Its options.
    pub(crate) options: Arc<JobOptions>,
}

/// The rules by which workers of a job end other workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndRules {
    /// The end of a worker ends others (`exitall`).
    pub ends_others: bool,
    /// The end of a worker with an error ends others (`exitall_on_error`).
    pub ends_others_on_error: bool,
    /// The workers that end (`exit_what`).
    pub whom: ExitWhat,
}

impl EndRules {
    fn of(options: &JobOptions) -> EndRules {
        EndRules {
            ends_others: options.schedule.exitall,
            ends_others_on_error: options.schedule.exitall_on_error,
            whom: options.schedule.exit_what,
        }
    }

    /// The workers that end after one of the job has ended, or has `failed`; `None` = no others.
    pub fn ended_by(&self, failed: bool) -> Option<ExitWhat> {
        (self.ends_others || (self.ends_others_on_error && failed)).then_some(self.whom)
    }
}

impl JobPlan {
    /// The job with these options. The builder of the plan fills in its place in the plan, and the parts that depend on
    /// the options of the run and on the machine.
    pub(crate) fn of(options: JobOptions, engine: EngineInfo) -> JobPlan {
        JobPlan {
            name: options.name.clone(),
            engine,
            rw: options.pattern.rw,
            block_sizes: PerDirection {
                values: Direction::ALL.map(|direction| options.block_size_as_given(direction)),
            },
            sizes_by_randomness: options.pattern.bs_is_seq_rand,
            depth: options.depth.iodepth,
            most_in_flight: options.most_in_flight(engine.facets),
            group: 0,
            first_worker: 0,
            clones: options.schedule.numjobs,
            thread: options.schedule.thread,
            found_files: options.finds_files(),
            keeps_step: options.schedule.client_barrier,
            end: EndRules::of(&options),
            ends_with_io: options.engine.of::<CpuioOptions>().is_some_and(|own| own.exit_on_io_done),
            starts_programs: options.engine.starts_programs(),
            stages: StageRules::of(&options, engine.facets),
            report: ReportRules::of(&options),
            limits: limits(&options),
            demand: Demand::of(&options),
            sampling: SamplingRules::of(&options),
            steady: SteadyRules::of(&options),
            estimate: EstimateRules::of(&options),
            watches_disks: options.measurement.disk_util
                && engine.facets.has_local_files()
                && !is_without_disk(&engine),
            clock_cpu: options.measurement.gtod_cpu,
            locked_memory: options.buffers.lockmem,
            node_cpus: None,
            memory_policy: None,
            connects_elsewhere: false,
            control_group: None,
            auxiliary: PathBuf::new(),
            options: Arc::new(options),
        }
    }

    /// The longest time that an I/O may take (`io_timeout`), in nanoseconds; `None` = no limit.
    pub fn io_timeout_ns(&self) -> Option<u64> {
        let limit = self.options.errors.io_timeout;
        (limit > 0).then(|| limit.saturating_mul(1000))
    }

    /// Whether its workers do I/O, or only work.
    pub fn does_io(&self) -> bool {
        self.engine.facets.unit != UnitKind::Works
    }

    /// A problem of this job, for which an option is to blame.
    pub fn problem(&self, option: &str, message: String) -> Problem {
        Problem::of(&self.options, option, message)
    }

    /// The options that were set for it and whose names begin with one of these prefixes: name and text. Global ones
    /// come first.
    pub fn given(&self, prefixes: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        let all = self.options.given_global.iter().chain(&self.options.given);
        all.map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(move |(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)))
    }
}

/// Whether disk statistics do not apply to it, so that fio reports none: it creates names, or acts on names of
/// directories.
fn is_without_disk(engine: &EngineInfo) -> bool {
    let acts_without =
        |name_use: NameUse| name_use.act == NameAct::Make || name_use.of == NameKind::Directory;
    engine.facets.target == Target::DaxFile || engine.facets.name_use().is_some_and(acts_without)
}

fn limits(options: &JobOptions) -> RateLimits {
    let sum =
        |rates: &PerDirection<u64>| options.pattern.rw.directions().map(|direction| rates[direction]).sum();
    RateLimits {
        min_bandwidth: sum(&options.rates.rate_min),
        max_bandwidth: sum(&options.rates.rate),
        min_iops: sum(&options.rates.rate_iops_min),
        max_iops: sum(&options.rates.rate_iops),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(change: impl FnOnce(&mut JobOptions)) -> JobPlan {
        let mut options = JobOptions { name: "j".into(), ..JobOptions::default() };
        change(&mut options);
        let engine = options.chosen_engine().unwrap();
        JobPlan::of(options, engine)
    }

    #[test]
    fn limits_are_summed_over_the_directions_that_are_used() {
        let rates = |o: &mut JobOptions| {
            o.rates.rate = PerDirection::new(100, 10, 1);
            o.rates.rate_iops_min = PerDirection::new(3, 4, 5);
        };
        assert_eq!(
            job(rates).limits,
            RateLimits { max_bandwidth: 100, min_iops: 3, ..RateLimits::default() }
        );
        let mixed = job(|o| {
            rates(o);
            o.pattern.rw = ReadWrite::RandRw;
        });
        assert_eq!(mixed.limits, RateLimits { max_bandwidth: 110, min_iops: 7, ..RateLimits::default() });
    }

    #[test]
    fn exit_options_decide_which_jobs_are_ended() {
        let of = |change: &dyn Fn(&mut JobOptions), failed| {
            job(|o| {
                o.schedule.exit_what = ExitWhat::Stonewall;
                change(o);
            })
            .end
            .ended_by(failed)
        };
        assert_eq!(of(&|_| (), true), None);
        assert_eq!(of(&|o| o.schedule.exitall_on_error = true, false), None);
        assert_eq!(of(&|o| o.schedule.exitall_on_error = true, true), Some(ExitWhat::Stonewall));
        assert_eq!(of(&|o| o.schedule.exitall = true, false), Some(ExitWhat::Stonewall));
    }

    #[test]
    fn given_options_of_a_subject() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let job = job(|o| {
            o.given_global = vec![pair("rate", "1m")];
            o.given = vec![pair("bs", "4k"), pair("thinktime", "5")];
        });
        let given: Vec<_> = job.given(&["rate", "thinktime"]).collect();
        assert_eq!(given, [("rate", "1m"), ("thinktime", "5")]);
        assert_eq!(job.given(&["zone"]).count(), 0);
    }
}
