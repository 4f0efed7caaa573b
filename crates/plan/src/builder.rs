//! Jobs become workers: clones, waves between stonewalls, reporting groups, seeds.

use crate::control_groups::ControlGroup;
use crate::resolve::address_there;
use crate::{
    JobPlan, Names, Plan, Problem, WorkerPlan, affinity, check, dedupe, files, logs, memory_need, replay,
};
use iolite_host::Machine;
use iolite_options::engines::{EngineInfo, UnitKind};
use iolite_options::{JobOptions, RunOptions};
use std::collections::HashMap;
use std::ops::Range;

impl Plan {
    /// Makes the plan for the jobs of one job file or command line, from the options and the facts about the machine.
    /// Reads traces that are replayed, and changes nothing.
    ///
    /// # Errors
    /// The problems of all jobs.
    pub fn build(
        jobs: Vec<JobOptions>,
        run: &RunOptions,
        machine: &dyn Machine,
    ) -> Result<Plan, Vec<Problem>> {
        let (plan, problems) = Plan::draft(jobs, run, machine);
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }

    /// The plan as far as it can be made, and all problems. It has every job of a known engine, with its clones, so
    /// that a report can list the refused jobs.
    pub fn draft(jobs: Vec<JobOptions>, run: &RunOptions, machine: &dyn Machine) -> (Plan, Vec<Problem>) {
        let mut builder = Builder {
            plan: Plan { jobs: Vec::new(), workers: Vec::new(), waves: 1, readonly: run.readonly },
            problems: Vec::new(),
            by_name: ByName::new(),
            group: 0,
            run,
            machine,
        };
        for (position, options) in jobs.into_iter().enumerate() {
            builder.add(options, position == 0);
        }
        let Builder { mut plan, mut problems, .. } = builder;
        dedupe::share(&plan.jobs, &mut plan.workers);
        problems.extend(plan.refused_by(run, machine));
        problems.extend(plan.disagreements());
        problems.extend(plan.never_met());
        problems.extend(plan.at_odds());
        (plan, problems)
    }

    /// Problems with the options of the run.
    fn refused_by(&self, run: &RunOptions, machine: &dyn Machine) -> Vec<Problem> {
        let Some(first) = self.jobs.first() else { return Vec::new() };
        let problem = |message| Problem::of_job(&first.name, message);
        let mut found = Vec::new();
        if run.parse_only {
            return found;
        }
        if let Some(path) = &run.aux_path
            && let Some(why) = logs::no_place_for_files(path, machine)
        {
            found.push(problem(format!("--aux-path={}: {why}", path.display())));
        }
        found
    }
}

/// The workers of the latest job of each name, and whether it is the only job of that name.
type ByName = HashMap<String, (Range<usize>, bool)>;

/// The most workers on a system that does not report its limit of threads: the kernel's limit of process IDs.
const MOST_WORKERS: u64 = 1 << 22;

/// A plan that is being made.
struct Builder<'a> {
    plan: Plan,
    problems: Vec<Problem>,
    by_name: ByName,
    /// The run status group of the latest job.
    group: u32,
    run: &'a RunOptions,
    machine: &'a dyn Machine,
}

/// The common part of all workers of a job.
struct Common<'a> {
    engine: EngineInfo,
    replays: &'a [replay::Replay],
    wait_for: Range<usize>,
    /// Together with its place, this decides a worker's seed.
    seed: u64,
}

impl Builder<'_> {
    /// Adds a job with its workers. Its problems are added to the list.
    fn add(&mut self, mut options: JobOptions, is_first: bool) {
        let Some(engine) = options.chosen_engine() else {
            let message = format!("there is no I/O engine \"{}\"", options.ioengine);
            return self.problems.push(Problem::of(&options, "ioengine", message));
        };
        if let Some(name) = options.engine.only_name() {
            options.files.filename = vec![name.to_owned()];
        }
        let stonewall = options.schedule.stonewall && !is_first;
        self.group += u32::from(stonewall || (options.schedule.new_group && !is_first));
        self.plan.waves += u32::from(stonewall);
        let first_worker = self.plan.workers.len();
        let room = self.machine.memory().obtainable();
        let exceeded = memory_need::exceeded(&options, self.run.parse_only, room)
            .or_else(|| Some(("numjobs", self.more_than_there_may_be(&options)?)));
        if let Some((option, message)) = exceeded {
            self.problems.push(Problem::of(&options, option, message));
            // If there are too many clones, plan only one.
            options.schedule.numjobs = 1;
            let common = Common { engine, replays: &[], wait_for: 0..0, seed: 0 };
            self.plan.workers.push(self.worker(&options, &common, 0, Names::default()));
        } else {
            self.add_clones(&mut options, engine);
        }
        let is_only = !self.by_name.contains_key(&options.name);
        self.by_name.insert(options.name.clone(), (first_worker..self.plan.workers.len(), is_only));
        let auxiliary = self.run.aux_path.clone().unwrap_or_default();
        let group = self.group;
        let mut job = JobPlan { group, first_worker, auxiliary, ..JobPlan::of(options, engine) };
        // A check of the language does not depend on the machine.
        if !self.run.parse_only {
            self.place_on_machine(&mut job);
        }
        self.plan.jobs.push(job);
    }

    /// Adds the parts that depend on the machine: addresses, control group, CPUs, memory nodes.
    fn place_on_machine(&mut self, job: &mut JobPlan) {
        job.connects_elsewhere =
            address_there(&job.options).is_some_and(|address| !self.machine.has_address(address));
        match ControlGroup::of(&job.options, self.machine) {
            Ok(found) => job.control_group = found,
            Err(message) => self.problems.push(job.problem("cgroup", message)),
        }
        // If the kernel does not list nodes, `impossible` refuses the job.
        job.node_cpus = affinity::of_nodes(&job.options, self.machine).unwrap_or_default();
        match affinity::memory_policy(&job.options, self.machine) {
            Ok(found) => job.memory_policy = found,
            Err(refusal) => {
                let message =
                    format!("numa_mem_policy: the kernel does not say what nodes there are: {refusal}");
                self.problems.push(job.problem("numa_mem_policy", message));
            }
        }
    }

    /// Why the system cannot run as many workers as this job has. fio has no such limit: it runs all jobs, whatever
    /// `--max-jobs` says.
    fn more_than_there_may_be(&self, options: &JobOptions) -> Option<String> {
        let most = self.machine.limits().threads.unwrap_or(MOST_WORKERS);
        let workers = self.plan.workers.len() as u64 + u64::from(options.schedule.numjobs);
        (workers > most).then(|| {
            format!("{workers} workers are more than the {most} threads that this system has room for")
        })
    }

    /// Adds the clones of the next job.
    fn add_clones(&mut self, options: &mut JobOptions, engine: EngineInfo) {
        let awaited = self.awaited(options);
        let recording = self.recording_of(options, awaited.as_ref().unwrap_or(&(0..0)));
        let replays = match self.find_replays(options, recording) {
            Ok(replays) => {
                self.problems.extend(check::job(options, &engine, self.run, &replays, self.machine));
                replays
            }
            Err(problem) => {
                self.problems.push(problem);
                Vec::new()
            }
        };
        let wait_for = awaited.unwrap_or_else(|message| {
            self.problems.push(Problem::of(options, "wait_for", message));
            0..0
        });
        let seed = if options.pattern.randrepeat { options.pattern.randseed } else { self.machine.random() };
        let common = Common { engine, replays: &replays, wait_for, seed };
        let mut blamed = None;
        for clone in 0..options.schedule.numjobs {
            let replay = common.replays.get(clone as usize);
            let files = self.worker_files(options, &common.engine, clone, replay).unwrap_or_else(|blame| {
                blamed.get_or_insert(blame);
                Names::default()
            });
            self.plan.workers.push(self.worker(options, &common, clone, files));
        }
        self.problems.extend(blamed.map(|(option, refusal)| Problem {
            errno: refusal.errno.unwrap_or(libc::EINVAL),
            ..Problem::of(options, option, refusal.words)
        }));
    }

    /// A clone of the next job.
    fn worker(&self, options: &JobOptions, common: &Common<'_>, clone: u32, files: Names) -> WorkerPlan {
        let index = self.plan.workers.len();
        let place = options.left_out_before.saturating_add(index as u64);
        let seed = mix(common.seed.wrapping_add(mix(place.wrapping_add(1))));
        WorkerPlan {
            job: self.plan.jobs.len(),
            clone,
            index,
            place,
            wave: self.plan.waves - 1,
            wait_for: common.wait_for.clone(),
            start_delay_ns: start_delay_ns(options, seed),
            files,
            seed,
            replay: common.replays.get(clone as usize).map(|(replay, _)| replay.clone()),
            shared_content: None,
        }
    }

    /// The files of a clone, or the option to blame and the reason.
    fn worker_files(
        &self,
        options: &JobOptions,
        engine: &EngineInfo,
        clone: u32,
        replay: Option<&replay::Replay>,
    ) -> Result<Names, files::Blame> {
        match replay {
            Some((_, files)) => Ok(files.clone().into()),
            None if engine.facets.unit == UnitKind::Works => Ok(Names::default()),
            None if !engine.facets.has_local_files() || self.run.parse_only => {
                Ok(files::nominal(options, clone))
            }
            None => files::names(options, clone, self.machine),
        }
    }

    /// The workers of the job that `wait_for` names, which comes before this one.
    fn awaited(&self, options: &JobOptions) -> Result<Range<usize>, String> {
        let Some(name) = &options.schedule.wait_for else { return Ok(0..0) };
        match self.by_name.get(name) {
            Some((workers, true)) => Ok(workers.clone()),
            Some(_) => {
                Err(format!("wait_for={name}: several jobs have that name; give each a separate name"))
            }
            None => Err(format!("wait_for={name}: no job of that name comes before this one")),
        }
    }

    /// The earlier job that records the trace that this job replays, if any.
    fn recording_of(&self, options: &JobOptions, wait_for: &Range<usize>) -> Option<Recording> {
        if !options.is_replay() {
            // This is quick for the many jobs without a trace.
            return None;
        }
        let current = self.machine.current_directory().ok()?;
        let same = |name: &String, trace: &String| current.join(name) == current.join(trace);
        self.plan.jobs.iter().rev().find_map(|job| {
            let name = job.options.replay.write_iolog.as_ref()?;
            let trace = options.replay.read_iolog.iter().find(|trace| same(name, trace))?;
            let is_over = self.plan.is_over_before(job, self.plan.waves - 1, wait_for);
            Some(Recording { trace: trace.clone(), job: job.name.clone(), is_over })
        })
    }

    /// The replays of a job's clones, if it replays traces. The directions of the traces replace `rw`.
    fn find_replays(
        &self,
        options: &mut JobOptions,
        recording: Option<Recording>,
    ) -> Result<Vec<replay::Replay>, Problem> {
        let Some(engine) = options.chosen_engine() else { return Ok(Vec::new()) };
        if !options.is_replay() || self.run.parse_only {
            return Ok(Vec::new());
        }
        let recorded = recording.as_ref().map(|recording| (recording.trace.as_str(), recording.job.as_str()));
        if let Some(Recording { trace, job, is_over }) = &recording {
            if !is_over {
                let message = format!(
                    "read_iolog={trace}: job {job} records it in this run and is not over before; let this job begin \
                     behind it (stonewall, or wait_for={job})"
                );
                return Err(Problem::of(options, "read_iolog", message));
            }
            // The trace does not exist yet, so it cannot be scanned.
            options.replay.read_iolog_chunked = true;
        }
        let replays = replay::of_job(options, &engine, self.run, recorded, self.machine)?;
        options.pattern.rw = replay::all_directions(&replays);
        Ok(replays)
    }
}

/// A trace that is recorded in the run that replays it.
struct Recording {
    trace: String,
    job: String,
    /// It is complete when the replay begins.
    is_over: bool,
}

/// The delay between the beginning of its wave and the start of a worker, in nanoseconds. The seed picks it from the
/// range.
fn start_delay_ns(options: &JobOptions, seed: u64) -> u64 {
    let delay_us = options.schedule.startdelay.map_or(0, |range| {
        let width = (range.high - range.low).saturating_add(1);
        range.low + ((u128::from(seed) * u128::from(width)) >> 64) as u64
    });
    delay_us.saturating_mul(1000)
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::{Limits, MadeUp};
    use iolite_options::ExtentOptions;

    fn job(name: &str, change: impl FnOnce(&mut JobOptions)) -> JobOptions {
        let mut options = JobOptions {
            name: name.into(),
            extent: ExtentOptions {
                size: Some(iolite_options::SizeValue::Bytes(1 << 20)),
                ..ExtentOptions::default()
            },
            ..JobOptions::default()
        };
        change(&mut options);
        options
    }

    fn build(jobs: Vec<JobOptions>) -> Plan {
        Plan::build(jobs, &RunOptions::default(), &MadeUp::new()).expect("a valid plan")
    }

    #[test]
    fn stonewalls_make_waves_and_groups() {
        let plan = build(vec![
            job("a", |o| o.schedule.numjobs = 2),
            job("b", |_| {}),
            job("c", |o| o.schedule.stonewall = true),
            job("d", |o| o.schedule.new_group = true),
        ]);
        let of =
            |f: fn(&Plan, &WorkerPlan) -> u32| plan.workers.iter().map(|w| f(&plan, w)).collect::<Vec<_>>();
        assert_eq!(of(|_, w| w.wave), [0, 0, 0, 1, 1]);
        assert_eq!(of(|p, w| p.job_of(w).group), [0, 0, 0, 1, 2]);
        assert_eq!(plan.waves, 2);
    }

    #[test]
    fn a_stonewall_on_the_first_job_waits_for_nobody() {
        let plan = build(vec![job("a", |o| o.schedule.stonewall = true), job("b", |_| {})]);
        assert_eq!((plan.waves, plan.jobs[0].group), (1, 0));
    }

    #[test]
    fn wait_for_names_an_earlier_job() {
        let plan = build(vec![
            job("a", |o| o.schedule.numjobs = 3),
            job("b", |o| o.schedule.wait_for = Some("a".into())),
        ]);
        assert_eq!(plan.workers[3].wait_for, 0..3);
        let problems = Plan::build(
            vec![job("a", |o| o.schedule.wait_for = Some("b".into())), job("b", |_| {})],
            &RunOptions::default(),
            &MadeUp::new(),
        );
        assert!(problems.unwrap_err()[0].message.contains("wait_for=b: no job"));
    }

    #[test]
    fn two_jobs_of_one_name_cannot_be_waited_for() {
        let jobs = |awaited: &str| {
            let job_a = job("a", |o| o.schedule.wait_for = Some(awaited.into()));
            vec![job("b", |_| {}), job("b", |_| {}), job("c", |_| {}), job_a]
        };
        assert_eq!(build(jobs("c")).workers[3].wait_for, 2..3);
        let problems = Plan::build(jobs("b"), &RunOptions::default(), &MadeUp::new());
        assert!(problems.unwrap_err()[0].message.contains("wait_for=b: several jobs"));
    }

    #[test]
    fn seeds_repeat_unless_randrepeat_is_off() {
        let machine = MadeUp::new();
        let seeds = |repeat: bool| {
            let clones = job("a", |o| {
                o.schedule.numjobs = 4;
                o.pattern.randrepeat = repeat;
            });
            let plan = Plan::build(vec![clones], &RunOptions::default(), &machine).unwrap();
            plan.workers.iter().map(|worker| worker.seed).collect::<Vec<_>>()
        };
        assert_eq!(seeds(true), seeds(true));
        assert_ne!(seeds(false), seeds(false));
        let mut unique = seeds(true);
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), 4);
    }

    #[test]
    fn sections_that_are_not_chosen_change_no_seeds() {
        let all = build(vec![job("a", |o| o.schedule.numjobs = 3), job("b", |o| o.schedule.numjobs = 2)]);
        let alone = build(vec![job("b", |o| {
            o.schedule.numjobs = 2;
            o.left_out_before = 3;
        })]);
        let of = |worker: &WorkerPlan| (worker.seed, worker.place, worker.number());
        assert!(all.workers[3..].iter().map(of).eq(alone.workers.iter().map(of)));
        assert_eq!((alone.workers[1].index, alone.workers[1].number()), (1, 5));
    }

    #[test]
    fn more_workers_than_there_is_room_for() {
        let jobs = || vec![job("a", |o| o.schedule.numjobs = 5000), job("b", |o| o.schedule.numjobs = 5000)];
        let run = RunOptions::default();
        let with = |threads| MadeUp::new().with_limits(Limits { threads, ..Limits::default() });
        assert_eq!(Plan::build(jobs(), &run, &with(Some(10_000))).unwrap().workers.len(), 10_000);
        let problems = Plan::build(jobs(), &run, &with(Some(9_999))).unwrap_err();
        assert!(problems[0].message.contains("10000 workers are more than the 9999 threads"), "{problems:?}");
        let many = vec![job("a", |o| o.schedule.numjobs = u32::MAX)];
        assert!(Plan::build(many, &run, &with(None)).is_err());
    }
}
