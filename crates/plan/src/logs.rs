//! The log files of a worker, and whether they can be written.

use crate::{JobPlan, Plan, Problem, WorkerPlan};
use iolite_host::{Access, EntryKind, Machine};
use iolite_logs::LogKind;
use iolite_options::JobOptions;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Upper limit of entries in the queues of all workers together: 32 MiB.
const MOST_WAITING: usize = 1 << 20;
/// Upper limit of entries in the queue of one worker: 2 MiB.
const MOST_ROOM: usize = 1 << 16;
/// Lower limit of entries in the queue of one worker. With fewer it would wait for its writer all the time.
const LEAST_ROOM: usize = 1 << 12;

/// The log files of a worker: kind and path.
pub fn files(options: &JobOptions, worker: usize) -> Vec<(LogKind, PathBuf)> {
    kinds(options).into_iter().map(|(kind, _, prefix)| (kind, path(options, worker, kind, prefix))).collect()
}

/// All log files that a run writes: the job, the option, and the path.
pub fn logs_asked(plan: &Plan) -> impl Iterator<Item = (&JobPlan, &'static str, PathBuf)> {
    let writing = plan.workers.iter().map(|worker| (worker, plan.job_of(worker)));
    writing.flat_map(|(worker, job)| {
        asked(&job.options, worker.index).into_iter().map(move |(option, path)| (job, option, path))
    })
}

/// The log files of each worker that writes logs: its number, the kind, the path, and whether other workers write
/// there, too.
pub fn logs_of_workers(plan: &Plan) -> impl Iterator<Item = (usize, LogKind, PathBuf, bool)> {
    let writing = plan.workers.iter().map(|worker| (worker, &plan.job_of(worker).options));
    let writing = writing.filter(|(_, options)| options.writes_logs());
    writing.flat_map(|(worker, options)| {
        let is_shared = !options.logs.per_job_logs;
        files(options, worker.index)
            .into_iter()
            .map(move |(kind, path)| (worker.index, kind, path, is_shared))
    })
}

/// The log files of a worker, each with its option.
pub fn asked(options: &JobOptions, worker: usize) -> Vec<(&'static str, PathBuf)> {
    let of_worker = kinds(options).into_iter();
    let of_worker = of_worker.map(|(kind, option, prefix)| (option, path(options, worker, kind, prefix)));
    of_worker.chain(of_stages(options, worker).map(|path| (STAGES, path))).collect()
}

/// The option that asks for a log of stages.
const STAGES: &str = "write_stages_log";

/// The log of a worker's stages, if it has one.
pub fn stages_log(job: &JobPlan, worker: usize) -> Option<PathBuf> {
    of_stages(&job.options, worker)
}

fn of_stages(options: &JobOptions, worker: usize) -> Option<PathBuf> {
    let prefix = options.logs.write_stages_log.as_deref().filter(|_| options.measures_stages())?;
    let prefix = if prefix.is_empty() { &options.name } else { prefix };
    let number = if options.logs.per_job_logs { format!(".{}", worker + 1) } else { String::new() };
    Some(PathBuf::from(format!("{prefix}_stages{number}.log")))
}

fn path(options: &JobOptions, worker: usize, kind: LogKind, prefix: &str) -> PathBuf {
    let prefix = if prefix.is_empty() { &options.name } else { prefix };
    let number = options.logs.per_job_logs.then_some(worker);
    kind.file_name(prefix, number, options.logs.log_store_compressed)
}

/// The kinds of logs, with the option that asks for each and the prefix of its file's name. A latency that is not
/// measured is not logged, nor what no schedule asks for.
fn kinds(options: &JobOptions) -> Vec<(LogKind, &'static str, &str)> {
    let logs = &options.logs;
    let counts_bytes = options.fixed_schedule().map(|schedule| schedule.is_bytes);
    [
        (LogKind::Bandwidth, "write_bw_log", &logs.write_bw_log, false),
        (LogKind::Iops, "write_iops_log", &logs.write_iops_log, false),
        (LogKind::Submission, "write_lat_log", &logs.write_lat_log, options.measurement.disable_slat),
        (LogKind::Completion, "write_lat_log", &logs.write_lat_log, options.measurement.disable_clat),
        (LogKind::Total, "write_lat_log", &logs.write_lat_log, options.measurement.disable_lat),
        (LogKind::FirstByte, "write_lat_log", &logs.write_lat_log, !options.has_first_bytes()),
        (LogKind::AskedIops, "write_asked_log", &logs.write_asked_log, counts_bytes != Some(false)),
        (LogKind::AskedBandwidth, "write_asked_log", &logs.write_asked_log, counts_bytes != Some(true)),
        (LogKind::Histogram, "write_hist_log", &logs.write_hist_log, false),
    ]
    .into_iter()
    .filter(|(.., disabled)| !disabled)
    .filter_map(|(kind, option, prefix, _)| Some((kind, option, prefix.as_deref()?)))
    .collect()
}

/// The default capacity of a worker's queue, in entries. The more queues there are, the smaller each is.
pub fn room(plan: &Plan) -> usize {
    let queues = |options: &JobOptions| {
        usize::from(options.writes_logs()) + usize::from(options.replay.write_iolog.is_some())
    };
    let all: usize = plan.workers.iter().map(|worker| queues(&plan.job_of(worker).options)).sum();
    (MOST_WAITING / all.max(1)).clamp(LEAST_ROOM, MOST_ROOM)
}

/// Everything that prevents logs from being written, as far as it is known.
pub(crate) fn problems(plan: &Plan, machine: &dyn Machine) -> Vec<Problem> {
    let mut seen = HashSet::new();
    let mut problems = Vec::new();
    for worker in &plan.workers {
        let job = plan.job_of(worker);
        let options = &job.options;
        if !options.writes_logs() && !options.measures_stages() {
            continue;
        }
        for (option, message) in in_the_way(job, worker, machine) {
            if seen.insert((worker.job, option)) {
                problems.push(Problem::of(options, option, message));
            }
        }
    }
    problems
}

fn in_the_way(job: &JobPlan, worker: &WorkerPlan, machine: &dyn Machine) -> Vec<(&'static str, String)> {
    let paths = files(&job.options, worker.index);
    let mut problems: Vec<_> = kinds(&job.options)
        .iter()
        .zip(&paths)
        .filter_map(|(&(_, option, prefix), (_, path))| {
            let why = unwritable(path, machine)?;
            Some((option, format!("{option}={prefix}: {why}")))
        })
        .collect();
    if let Some(path) = of_stages(&job.options, worker.index)
        && let Some(why) = unwritable(&path, machine)
    {
        problems.push((STAGES, format!("{STAGES}: {why}")));
    }
    let logs = &job.options.logs;
    let clock = logs.log_alternate_epoch_clock_id;
    if logs.log_alternate_epoch && machine.clock(clock).is_err() {
        let option = "log_alternate_epoch_clock_id";
        let message = format!(
            "{option}={clock}: this system has no such clock (0 is the wall clock, 1 the monotonic one)"
        );
        problems.push((option, message));
    }
    problems
}

/// Why this file cannot be written.
fn unwritable(path: &Path, machine: &dyn Machine) -> Option<String> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let shown = path.display();
    match machine.file(path) {
        Ok(Some(file)) if file.kind == EntryKind::Directory => Some(format!("{shown} is a directory")),
        Ok(Some(_)) => {
            let refusal = machine.access(path, Access::Write).err()?;
            Some(format!("{shown} cannot be written: {refusal}"))
        }
        Ok(None) | Err(_) => no_place_for_files(directory, machine),
    }
}

/// Why no file can be created in this directory.
pub(crate) fn no_place_for_files(directory: &Path, machine: &dyn Machine) -> Option<String> {
    let shown = directory.display();
    match machine.file(directory) {
        Ok(None) => Some(format!("there is no directory {shown}; mkdir -p {shown} creates it")),
        Ok(Some(place)) if place.kind != EntryKind::Directory => Some(format!("{shown} is not a directory")),
        _ => {
            let refusal = machine.access(directory, Access::MakeFiles).err()?;
            Some(format!("no file can be made in {shown}: {refusal}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::{ExtentOptions, RunOptions, ScheduleOptions, SizeValue};

    fn plan(jobs: &[(&str, u32)], change: impl Fn(&mut JobOptions)) -> Plan {
        let jobs = jobs.iter().map(|&(name, numjobs)| {
            let mut options = JobOptions {
                name: name.into(),
                ioengine: "null".into(),
                extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
                schedule: ScheduleOptions { numjobs, ..ScheduleOptions::default() },
                ..JobOptions::default()
            };
            change(&mut options);
            options
        });
        Plan::build(jobs.collect(), &RunOptions::default(), &MadeUp::new()).unwrap()
    }

    fn names(plan: &Plan, worker: usize) -> Vec<String> {
        let files = files(&plan.job_of(&plan.workers[worker]).options, worker);
        files.into_iter().map(|(_, path)| path.display().to_string()).collect()
    }

    #[test]
    fn workers_are_numbered_through_all_jobs() {
        let plan = plan(&[("a", 2), ("b", 1)], |options| {
            options.logs.write_bw_log = Some(String::new());
            options.logs.write_lat_log = Some("out/x".into());
            options.measurement.disable_clat = options.name == "b";
        });
        assert_eq!(
            names(&plan, 1),
            ["a_bw.2.log", "out/x_slat.2.log", "out/x_clat.2.log", "out/x_lat.2.log"]
        );
        assert_eq!(names(&plan, 2), ["b_bw.3.log", "out/x_slat.3.log", "out/x_lat.3.log"]);
    }

    #[test]
    fn one_for_all_and_compressed() {
        let plan = plan(&[("a", 2)], |options| {
            options.logs.write_hist_log = Some("h".into());
            options.logs.per_job_logs = false;
            options.logs.log_store_compressed = true;
        });
        assert_eq!(names(&plan, 0), ["h_clat_hist.log.fz"]);
        assert_eq!(names(&plan, 1), names(&plan, 0));
    }

    #[test]
    fn many_workers_have_less_room_each() {
        let room =
            |count| room(&plan(&[("a", count)], |options| options.logs.write_bw_log = Some("x".into())));
        assert_eq!((room(1), room(16), room(64), room(2000)), (1 << 16, 1 << 16, 1 << 14, 1 << 12));
    }

    #[test]
    fn obstacles_are_reported_once_with_their_reason() {
        let machine = MadeUp::new()
            .with_file("/data/file", 0)
            .with_directory("/data/x_iops.1.log")
            .with_file("/data/old_bw.1.log", 0)
            .read_only("/data/old_bw.1.log")
            .with_directory("/fixed")
            .read_only("/fixed");
        let told = |change: &dyn Fn(&mut JobOptions)| -> Vec<String> {
            let problems = problems(&plan(&[("a", 2)], change), &machine);
            problems.into_iter().map(|problem| problem.message).collect()
        };
        let bandwidth = |prefix: &str| told(&|options| options.logs.write_bw_log = Some(prefix.into()));
        assert_eq!(bandwidth("/data/x"), [""; 0]);
        let missing = told(&|options| options.logs.write_lat_log = Some("/data/no/such/x".into()));
        let remedy = "there is no directory /data/no/such; mkdir -p /data/no/such creates it";
        assert_eq!(missing, [format!("write_lat_log=/data/no/such/x: {remedy}")]);
        assert_eq!(bandwidth("/data/file/x"), ["write_bw_log=/data/file/x: /data/file is not a directory"]);
        let taken = told(&|options| options.logs.write_iops_log = Some("/data/x".into()));
        assert_eq!(taken, ["write_iops_log=/data/x: /data/x_iops.1.log is a directory"]);
        assert!(bandwidth("/data/old")[0].ends_with("old_bw.1.log cannot be written: Permission denied"));
        assert!(bandwidth("/fixed/x")[0].ends_with("no file can be made in /fixed: Permission denied"));
        let clock = told(&|options| {
            options.logs.write_bw_log = Some("x".into());
            options.logs.log_alternate_epoch = true;
            options.logs.log_alternate_epoch_clock_id = 99;
        });
        assert!(clock[0].starts_with("log_alternate_epoch_clock_id=99: this system has no such clock"));
    }
}
