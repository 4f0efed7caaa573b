//! Jobs become workers: clones, waves between stonewalls, reporting groups, seeds.

use crate::dedupe::{self, SharedContent};
use crate::{Problem, ReplayPlan, check, files, logs, replay, room};
use iolite_host::Machine;
use iolite_options::engines::{EngineInfo, engine};
use iolite_options::{JobOptions, RunOptions};
use std::collections::HashMap;
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

/// A job section.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// What it asked for.
    pub options: Arc<JobOptions>,
    /// Its engine.
    pub engine: &'static EngineInfo,
    /// The run status group.
    pub group: u32,
    /// The first of its workers, as an index into [`Plan::workers`].
    pub first_worker: usize,
    /// Where files go that the run makes for itself (`--aux-path`).
    pub auxiliary: PathBuf,
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
    /// Makes the plan for the jobs of one job file or command line, from what is asked for and from what the machine is
    /// like. Traces that are replayed are read; nothing is changed.
    ///
    /// # Errors
    /// Everything that is in the way, for all jobs.
    pub fn build(
        jobs: Vec<JobOptions>,
        run: &RunOptions,
        machine: &dyn Machine,
    ) -> Result<Plan, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut plan = Plan { jobs: Vec::new(), workers: Vec::new(), waves: 1 };
        let mut by_name = ByName::new();
        let mut group = 0;
        let room = machine.memory().obtainable();
        for (position, mut options) in jobs.into_iter().enumerate() {
            let wave = plan.waves - 1 + u32::from(position > 0 && options.stonewall);
            let awaited = awaited(&options, &by_name);
            let recording = plan.recording_of(&options, wave, awaited.as_ref().unwrap_or(&(0..0)), machine);
            let replays = match find_replays(&mut options, run, recording, machine) {
                Ok(replays) => replays,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            let problem = |option: &str, message: String| Problem::of(&options, option, message);
            let Some(engine) = engine(&options.ioengine) else {
                problems
                    .push(problem("ioengine", format!("there is no I/O engine \"{}\"", options.ioengine)));
                continue;
            };
            if let Some((option, message)) = room::exceeded(&options, run.parse_only, room) {
                problems.push(problem(option, message));
                continue;
            }
            problems.extend(check::job(&options, engine, run, &replays, machine));
            if position > 0 && (options.stonewall || options.new_group) {
                group += 1;
            }
            if position > 0 && options.stonewall {
                plan.waves += 1;
            }
            let wait_for = awaited.unwrap_or_else(|message| {
                problems.push(problem("wait_for", message));
                0..0
            });
            let first_worker = plan.workers.len();
            let base = if options.randrepeat { options.randseed } else { machine.random() };
            for clone in 0..options.numjobs {
                let index = plan.workers.len();
                let replay = replays.get(clone as usize);
                let place = options.left_out_before.saturating_add(index as u64);
                match worker_files(&options, engine, run, clone, replay, machine) {
                    Ok(files) => plan.workers.push(WorkerPlan {
                        job: plan.jobs.len(),
                        clone,
                        index,
                        place,
                        wave: plan.waves - 1,
                        wait_for: wait_for.clone(),
                        files,
                        seed: mix(base.wrapping_add(mix(place.wrapping_add(1)))),
                        replay: replay.map(|(replay, _)| replay.clone()),
                        shared_content: None,
                    }),
                    Err((option, message)) => {
                        problems.push(problem(option, message));
                        break;
                    }
                }
            }
            let is_only = !by_name.contains_key(&options.name);
            by_name.insert(options.name.clone(), (first_worker..plan.workers.len(), is_only));
            let auxiliary = run.aux_path.clone().unwrap_or_default();
            plan.jobs.push(JobPlan { options: Arc::new(options), engine, group, first_worker, auxiliary });
        }
        dedupe::share(&plan.jobs, &mut plan.workers);
        problems.extend(plan.refused_by(run, machine));
        problems.extend(plan.disagreements());
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }

    /// What the options of the run stand against.
    fn refused_by(&self, run: &RunOptions, machine: &dyn Machine) -> Vec<Problem> {
        let Some(first) = self.jobs.first() else { return Vec::new() };
        let problem = |message| Problem { job: first.options.name.clone(), origin: None, message };
        let mut found = Vec::new();
        let (workers, most) = (self.workers.len(), run.max_jobs);
        if workers > most as usize {
            let message =
                format!("{workers} jobs are more than the limit of {most}; raise it with --max-jobs");
            found.push(problem(message));
        }
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

    /// The job before this one that records a trace which this one replays, if there is one.
    fn recording_of(
        &self,
        options: &JobOptions,
        wave: u32,
        wait_for: &std::ops::Range<usize>,
        machine: &dyn Machine,
    ) -> Option<Recording> {
        if options.read_iolog.is_empty() {
            // Most jobs, of which there may be very many.
            return None;
        }
        let current = machine.current_directory().ok()?;
        let same = |name: &String, trace: &String| current.join(name) == current.join(trace);
        self.jobs.iter().rev().find_map(|job| {
            let name = job.options.write_iolog.as_ref()?;
            let trace = options.read_iolog.iter().find(|trace| same(name, trace))?;
            let is_over = self.is_over_before(job, wave, wait_for);
            Some(Recording { trace: trace.clone(), job: job.options.name.clone(), is_over })
        })
    }

    /// Whether a job has ended when workers of this wave, which wait for those, begin.
    fn is_over_before(&self, job: &JobPlan, wave: u32, wait_for: &std::ops::Range<usize>) -> bool {
        // Of a job that has a problem there may be fewer than it asked for.
        let mut clones = self.workers.iter().skip(job.first_worker).take(job.options.numjobs as usize);
        clones.all(|worker| worker.wave < wave || wait_for.contains(&worker.index))
    }

    /// Whether a job has ended when this worker begins.
    pub fn has_ended_before(&self, job: &JobPlan, worker: &WorkerPlan) -> bool {
        self.is_over_before(job, worker.wave, &worker.wait_for)
    }

    /// The CPU that keeps the time for all workers, and is left to that (`gtod_cpu`).
    pub fn reserved_cpu(&self) -> Option<u32> {
        self.jobs.iter().find_map(|job| job.options.gtod_cpu)
    }

    /// The job of a worker.
    pub fn job_of(&self, worker: &WorkerPlan) -> &JobPlan {
        &self.jobs[worker.job]
    }

    /// The job's clones.
    pub fn clones(&self, job: &JobPlan) -> std::ops::Range<usize> {
        job.first_worker..job.first_worker + job.options.numjobs as usize
    }
}

/// A trace that is made in the run that replays it.
struct Recording {
    trace: String,
    job: String,
    /// It is whole when the replay begins.
    is_over: bool,
}

/// The replays of a job's clones, if it replays traces; then it does what they do, whatever `rw` says.
fn find_replays(
    options: &mut JobOptions,
    run: &RunOptions,
    recording: Option<Recording>,
    machine: &dyn Machine,
) -> Result<Vec<replay::Replay>, Problem> {
    let Some(engine) = engine(&options.ioengine) else { return Ok(Vec::new()) };
    if options.read_iolog.is_empty() || run.parse_only {
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
        // There is nothing yet to look through.
        options.read_iolog_chunked = true;
    }
    let replays = replay::of_job(options, engine, run, recorded, machine)?;
    options.rw = replay::all_directions(&replays);
    Ok(replays)
}

/// The workers of the last job of each name, and whether it is the only one of that name.
type ByName = HashMap<String, (std::ops::Range<usize>, bool)>;

/// The workers of the job that `wait_for` names, which comes before this one.
fn awaited(options: &JobOptions, by_name: &ByName) -> Result<std::ops::Range<usize>, String> {
    let Some(name) = &options.wait_for else { return Ok(0..0) };
    match by_name.get(name) {
        Some((workers, true)) => Ok(workers.clone()),
        Some(_) => Err(format!("wait_for={name}: several jobs have that name; give each a name of its own")),
        None => Err(format!("wait_for={name}: no job of that name comes before this one")),
    }
}

/// The files of a clone, or the option that is in the way and why.
fn worker_files(
    options: &JobOptions,
    engine: &EngineInfo,
    run: &RunOptions,
    clone: u32,
    replay: Option<&replay::Replay>,
    machine: &dyn Machine,
) -> Result<Vec<PathBuf>, files::Blame> {
    match replay {
        Some((_, files)) => Ok(files.clone()),
        None if !engine.facets.has_local_files() || run.parse_only => Ok(files::nominal(options, clone)),
        None => files::names(options, clone, machine),
    }
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
    use iolite_host::MadeUp;

    fn job(name: &str, change: impl FnOnce(&mut JobOptions)) -> JobOptions {
        let mut options = JobOptions {
            name: name.into(),
            size: Some(iolite_options::SizeValue::Bytes(1 << 20)),
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
            job("a", |o| o.numjobs = 2),
            job("b", |_| {}),
            job("c", |o| o.stonewall = true),
            job("d", |o| o.new_group = true),
        ]);
        let of =
            |f: fn(&Plan, &WorkerPlan) -> u32| plan.workers.iter().map(|w| f(&plan, w)).collect::<Vec<_>>();
        assert_eq!(of(|_, w| w.wave), [0, 0, 0, 1, 1]);
        assert_eq!(of(|p, w| p.job_of(w).group), [0, 0, 0, 1, 2]);
        assert_eq!(plan.waves, 2);
    }

    #[test]
    fn a_stonewall_on_the_first_job_waits_for_nobody() {
        let plan = build(vec![job("a", |o| o.stonewall = true), job("b", |_| {})]);
        assert_eq!((plan.waves, plan.jobs[0].group), (1, 0));
    }

    #[test]
    fn wait_for_names_an_earlier_job() {
        let plan = build(vec![job("a", |o| o.numjobs = 3), job("b", |o| o.wait_for = Some("a".into()))]);
        assert_eq!(plan.workers[3].wait_for, 0..3);
        let problems = Plan::build(
            vec![job("a", |o| o.wait_for = Some("b".into())), job("b", |_| {})],
            &RunOptions::default(),
            &MadeUp::new(),
        );
        assert!(problems.unwrap_err()[0].message.contains("wait_for=b: no job"));
    }

    #[test]
    fn of_two_jobs_of_one_name_none_can_be_waited_for() {
        let jobs = |awaited: &str| {
            let job_a = job("a", |o| o.wait_for = Some(awaited.into()));
            vec![job("b", |_| {}), job("b", |_| {}), job("c", |_| {}), job_a]
        };
        assert_eq!(build(jobs("c")).workers[3].wait_for, 2..3);
        let problems = Plan::build(jobs("b"), &RunOptions::default(), &MadeUp::new());
        assert!(problems.unwrap_err()[0].message.contains("wait_for=b: several jobs"));
    }

    #[test]
    fn seeds_repeat_unless_told_otherwise() {
        let machine = MadeUp::new();
        let seeds = |repeat: bool| {
            let clones = job("a", |o| {
                o.numjobs = 4;
                o.randrepeat = repeat;
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
        let all = build(vec![job("a", |o| o.numjobs = 3), job("b", |o| o.numjobs = 2)]);
        let alone = build(vec![job("b", |o| {
            o.numjobs = 2;
            o.left_out_before = 3;
        })]);
        let of = |worker: &WorkerPlan| (worker.seed, worker.place, worker.number());
        assert!(all.workers[3..].iter().map(of).eq(alone.workers.iter().map(of)));
        assert_eq!((alone.workers[1].index, alone.workers[1].number()), (1, 5));
    }

    #[test]
    fn more_workers_than_allowed() {
        let run = RunOptions { max_jobs: 3, ..RunOptions::default() };
        let problems = Plan::build(vec![job("a", |o| o.numjobs = 4)], &run, &MadeUp::new()).unwrap_err();
        assert!(problems[0].message.contains("--max-jobs"));
    }
}
