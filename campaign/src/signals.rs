//! Signals in bursts: to the controller, or to the whole process group, as a terminal and `timeout` send them.
//!
//! - A run that a signal ends has exit status 128, and a complete report.
//! - No measurements are lost: there are as many lines in the log of latencies as I/Os in the report, and the CPU time
//!   is there.
//! - SIGUSR1 requests a report, and ends nothing.
//! - The writes of a verified job can be checked with its state.

use crate::jobs::{any_engine, any_method, sometimes};
use crate::processes;
use crate::reading::{Job, jobs, tells_of_damage};
use crate::running::Running;
use crate::stop::Stop;
use crate::trial::Trial;
use std::fs;
use std::time::Duration;

/// Performs one trial.
pub fn perform(trial: &mut Trial) -> Result<(), Stop> {
    trial.expect_files(&["data", "v.*", "report", "*.log", "*-verify.state"]);
    let options = job(trial);
    let mut running = trial.start(&format!("{options} --output-format=json --output=report --eta=never"))?;
    let moment = Duration::from_micros(trial.between(0, 900_000));
    running.go_on(moment);
    let sent = burst(trial, &mut running);
    let run = running.wait()?;
    trial.expect_no_process();
    let said = format!("{sent:?} after {moment:?}: {run}");
    let ends = sent.iter().any(|&signal| signal != libc::SIGUSR1);
    match run.code() {
        // It was just about to end.
        Some(0) if ends => trial.moot(),
        Some(0) => trial.found(),
        Some(128) if ends => trial.found(),
        // Before it handles signals, they end it like any other program. It has done nothing yet then.
        None if !trial.dir().join("report").exists() => {
            trial.moot();
            return Ok(());
        }
        _ => trial.wrong(said.clone()),
    }
    let report = fs::read_to_string(trial.dir().join("report")).map_err(Stop::of("the report"))?;
    match jobs(&report) {
        Ok(jobs) => judge(trial, &jobs, &said),
        Err(why) => trial.missed(format!("{why}: {said}")),
    }
    check(trial, &options, &said)
}

/// Sends some signals shortly after each other. Returns those that were sent while the run was there.
fn burst(trial: &mut Trial, running: &mut Running) -> Vec<i32> {
    let asks = trial.once_in(5);
    let whole_group = trial.once_in(2);
    let mut sent = Vec::new();
    for _ in 0..trial.between(1, 6) {
        if running.has_ended() {
            break;
        }
        let signal = match asks {
            true => libc::SIGUSR1,
            false => trial.one_of(&[libc::SIGINT, libc::SIGTERM, libc::SIGTERM, libc::SIGUSR1]),
        };
        let there = match whole_group && signal != libc::SIGUSR1 {
            true => processes::signal_group(running.pid(), signal),
            false => processes::signal(running.pid(), signal),
        };
        if there {
            trial.fault();
            sent.push(signal);
        }
        let pause = trial.one_of(&[0, 100, 1000, 3000, 20_000]);
        running.go_on(Duration::from_micros(trial.between(0, pause)));
    }
    // The burst counts as one fault, rather than each signal.
    trial.outcome.faults -= sent.len() as u64;
    trial.fault();
    sent
}

/// No measurements are lost.
fn judge(trial: &mut Trial, jobs: &[Job], said: &str) {
    let ios: u64 = jobs.iter().map(Job::all_ios).sum();
    let logs = fs::read_dir(trial.dir()).into_iter().flatten().flatten();
    let is_log = |name: &str| name.starts_with("l_lat.") && name.ends_with(".log");
    let logs = logs.filter(|entry| entry.file_name().to_str().is_some_and(is_log));
    let lines: usize =
        logs.map(|log| fs::read_to_string(log.path()).unwrap_or_default().lines().count()).sum();
    if lines as u64 != ios {
        trial.missed(format!("{lines} lines in the logs, of {ios} I/Os: {said}"));
    }
    let busy = |job: &&Job| job.all_ios() > 2000 && job.cpu == 0.0;
    if jobs.iter().any(|job| busy(&job)) {
        trial.missed(format!("the CPU time is lost: {said}"));
    }
    if let Some(job) = jobs.iter().find(|job| job.error != 0) {
        trial.false_alarm(format!("error {} of {}: {said}", job.error, job.name));
    }
}

/// Checks the writes of the job by its state, if it has one.
fn check(trial: &mut Trial, options: &str, said: &str) -> Result<(), Stop> {
    let state = trial.dir().join("local-v-0-verify.state");
    if !options.contains("--verify=") || !state.exists() {
        return Ok(());
    }
    let options = options.replace("--write_lat_log=l", "");
    let run = trial
        .run(&format!("{options} --verify_only --verify_state_load=1 --output-format=json --eta=never"))?;
    if run.code() != Some(0) || tells_of_damage(&run.said()) {
        trial.false_alarm(format!("after {said}: {run}"));
    }
    Ok(())
}

/// A job that logs each of its I/Os.
fn job(trial: &mut Trial) -> String {
    let engine = any_engine(trial);
    let mut options = match trial.between(0, 2) {
        0 => format!("--name=v --rw=randread --size=8m {engine} --time_based --runtime=1200ms"),
        1 => format!("--name=v --rw=randrw --size=8m {engine} --time_based --runtime=1200ms"),
        _ => format!(
            "--name=v --rw=randwrite --norandommap --size=4m --filename=data {engine} {} --do_verify=0 \
             --verify_state_save=1 --time_based --runtime=1200ms",
            any_method(trial).options
        ),
    };
    if !options.contains("--verify=") {
        options += &sometimes(trial, 2, &["--numjobs=3", "--numjobs=2 --startdelay=100ms"]);
    }
    options += &sometimes(trial, 3, &["--thread"]);
    options += &sometimes(trial, 3, &["--rate_iops=3000", "--thinktime=200"]);
    options += " --write_lat_log=l";
    options += &sometimes(
        trial,
        3,
        &["--log_store_compressed=0 --log_compression=64k", "--disable_slat=1", "--log_offset=1"],
    );
    options
}
