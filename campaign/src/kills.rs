//! SIGKILL at a random moment of one process of a run: of the controller, the spawner, or one of its children (a worker,
//! the process that lays out files, the host of workers that are threads).
//!
//! - The run ends, and no process is left.
//! - A worker that has not completed its work is an error in the report, and the exit status is 1. So a run that
//!   reports success has done everything: the kill came too late to matter.
//! - An earlier report is still there, or the new one is there completely.
//! - The writes of a verified job can be checked with its state, and nothing is wrong with them.

use crate::jobs::{any_engine, any_method, sometimes};
use crate::processes::{self, Role};
use crate::reading::{Job, jobs, tells_of_damage};
use crate::running::Finished;
use crate::stop::Stop;
use crate::trial::Trial;
use std::fs;
use std::time::Duration;

/// The content of `report` before the run.
const OLD_REPORT: &str = "an old report\n";

/// A job whose work is known.
struct Work {
    /// Its options.
    options: String,
    /// How many workers it has.
    workers: usize,
    /// I/Os of each of them.
    ios: u64,
    /// It has a state with which it can be checked later.
    is_verified: bool,
    /// Milliseconds within which something happens in it.
    horizon: u64,
}

/// Performs one trial.
pub fn perform(trial: &mut Trial) -> Result<(), Stop> {
    trial.expect_files(&["data", "v.*", "report", "*.log", "*-verify.state"]);
    let work = if trial.once_in(2) { verified(trial) } else { plain(trial) };
    let report = trial.dir().join("report");
    fs::write(&report, OLD_REPORT).map_err(Stop::of("a report"))?;
    let is_json = !trial.once_in(4);
    let format = if is_json { "json" } else { "normal" };
    let line = format!("{} --output-format={format} --output=report --eta=never", work.options);
    let mut running = trial.start(&line)?;
    let moment = Duration::from_micros(trial.between(0, work.horizon * 1000));
    running.go_on(moment);
    let victim = kill_one(trial, running.pid(), running.has_ended());
    let run = running.wait()?;
    trial.expect_no_process();
    let report = fs::read_to_string(&report).map_err(Stop::of("the report"))?;
    let said = format!("{:?} killed after {moment:?}: {run}", victim);
    match victim {
        Some(Role::Controller) => look_at_remains(trial, is_json, &report, &said),
        Some(Role::Spawner | Role::Worker) => judge(trial, &work, is_json, &run, &report, &said),
        None => {
            trial.moot();
            return Ok(());
        }
    }
    if work.is_verified { check(trial, &work, &said) } else { Ok(()) }
}

/// Kills a process of the run. Returns its role; `None` = no process was left.
fn kill_one(trial: &mut Trial, controller: i32, is_over: bool) -> Option<Role> {
    if is_over {
        return None;
    }
    let family = processes::family(controller);
    let wanted = trial.one_of(&[Role::Controller, Role::Spawner, Role::Worker, Role::Worker]);
    let matching: Vec<_> = family.iter().copied().filter(|&(_, role)| role == wanted).collect();
    let &(pid, role) = matching.get(trial.luck.below(matching.len().max(1) as u64) as usize)?;
    trial.fault();
    processes::signal(pid, libc::SIGKILL).then_some(role)
}

/// The controller was killed, so there can be no report.
fn look_at_remains(trial: &mut Trial, is_json: bool, report: &str, said: &str) {
    // The new report grows beside the old one, and nobody is left to remove it.
    trial.expect_files(&["report.unfinished"]);
    let is_whole = if is_json { jobs(report).is_ok() } else { report.contains(": (groupid=") };
    match report == OLD_REPORT || is_whole {
        true => trial.found(),
        false => trial.missed(format!("neither the old report nor a new one: {report:?}: {said}")),
    }
}

/// Another process was killed.
fn judge(trial: &mut Trial, work: &Work, is_json: bool, run: &Finished, report: &str, said: &str) {
    if !is_json {
        // The text report does not reliably show which worker did what.
        match run.code() {
            Some(0) if !report.contains("err=") => trial.missed(format!("no report: {said}")),
            Some(0) => trial.moot(),
            Some(1) => trial.found(),
            _ => trial.wrong(said),
        }
        return;
    }
    let jobs = match jobs(report) {
        Ok(jobs) => jobs,
        Err(why) => return trial.wrong(format!("{why}: {said}")),
    };
    let short = |job: &&Job| job.error == 0 && job.all_ios() < work.ios;
    let untold: Vec<String> =
        jobs.iter().filter(short).map(|job| format!("{} I/Os", job.all_ios())).collect();
    if !untold.is_empty() || jobs.len() != work.workers {
        let told = format!("{} jobs, of {} I/Os each, without an error: {untold:?}", jobs.len(), work.ios);
        return trial.missed(format!("{told}: {said}"));
    }
    let fails = jobs.iter().any(|job| job.error != 0);
    match (run.code(), fails) {
        (Some(0), false) => trial.moot(),
        (Some(0), true) => trial.missed(format!("errors, and exit status 0: {said}")),
        (Some(1), _) => trial.found(),
        _ => trial.wrong(said),
    }
}

/// Checks the writes of the job by its state.
fn check(trial: &mut Trial, work: &Work, said: &str) -> Result<(), Stop> {
    let has_states = (0..work.workers).all(|number| {
        let state = trial.dir().join(format!("local-v-{number}-verify.state"));
        fs::metadata(state).is_ok_and(|state| state.len() > 0)
    });
    // It was killed before it began to write.
    if !has_states {
        return Ok(());
    }
    let line =
        format!("{} --verify_only --verify_state_load=1 --output-format=json --eta=never", work.options);
    let run = trial.run(&line)?;
    if run.code() != Some(0) || tells_of_damage(&run.said()) {
        trial.false_alarm(format!("after {said}: {run}"));
    }
    Ok(())
}

/// A job that verifies its writes, and keeps a state.
fn verified(trial: &mut Trial) -> Work {
    let block = trial.one_of(&[4096u64, 8192, 65536]);
    let ios = trial.between(30, 600);
    let rate = trial.between(ios / 2 + 1, ios * 4);
    let workers = trial.one_of(&[1, 1, 1, 2, 3]);
    let size = ios * block;
    let mut options = format!(
        "--name=v --size={size} --bs={block} --number_ios={ios} --rate_iops={rate} --numjobs={workers} {} {}",
        any_method(trial).options,
        any_engine(trial)
    );
    // Clones have files of their own, or parts of one.
    options += if workers == 1 || trial.once_in(2) { " --filename=data" } else { "" };
    options += match trial.between(0, 2) {
        0 => " --rw=write",
        1 => " --rw=randwrite",
        _ => " --rw=randwrite --norandommap",
    };
    options += " --do_verify=0 --verify_state_save=1";
    options += &sometimes(trial, 3, &["--fsync=10", "--fdatasync=3", "--sync=1"]);
    options += &sometimes(trial, 3, &["--thread"]);
    Work { options, workers, ios, is_verified: true, horizon: 1000 * ios / rate + 300 }
}

/// A job that reads or writes, after its files were laid out.
fn plain(trial: &mut Trial) -> Work {
    let ios = trial.between(50, 2000);
    let rate = trial.between(ios / 2 + 1, ios * 4);
    let workers = trial.one_of(&[1, 1, 2, 4]);
    let megabytes = trial.one_of(&[1u64, 16, 96]);
    let mut options = format!(
        "--name=v --size={megabytes}m --bs=512 --number_ios={ios} --rate_iops={rate} --numjobs={workers} {}",
        any_engine(trial)
    );
    options += match trial.between(0, 3) {
        0 => " --rw=randread",
        1 => " --rw=randread --create_serialize=0",
        2 => " --rw=randrw",
        _ => " --rw=write --overwrite=1",
    };
    options += match trial.between(0, 2) {
        0 => " --thread",
        1 => " --startdelay=300ms",
        _ => "",
    };
    options += " --fallocate=none";
    options +=
        &sometimes(trial, 3, &["--write_lat_log=l", "--write_bw_log=l --log_avg_msec=100", "--pre_read=1"]);
    Work { options, workers, ios, is_verified: false, horizon: 1000 * ios / rate + 400 }
}
