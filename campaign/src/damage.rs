//! Damage of verified files: the program has to report every damaged place, and no other.
//!
//! A job writes a file that it could verify. Some of its intervals (the smallest units with a checksum) are damaged.
//! Then the file is checked, in one of several ways that continue after errors. The reported places have to be the
//! damaged ones.

use crate::jobs::{Written, any_engine, sometimes, written};
use crate::reading::{jobs, wrong_blocks};
use crate::stop::Stop;
use crate::trial::Trial;
use std::collections::BTreeSet;
use std::fs;

/// Performs one trial.
pub fn perform(trial: &mut Trial) -> Result<(), Stop> {
    trial.expect_files(&["data", "*-verify.state"]);
    let job = written(trial);
    let engine = any_engine(trial);
    let keeps = if trial.once_in(2) { "--verify_state_save=1" } else { "" };
    let run = trial.run(&format!("{} {engine} --do_verify=0 {keeps}", job.options))?;
    if run.code() != Some(0) {
        trial.wrong(format!("writing failed: {run}"));
        return Ok(());
    }
    let path = trial.dir().join("data");
    let right = fs::read(&path).map_err(Stop::of("data"))?;
    let (wrong, places) = damaged(trial, &job, &right);
    fs::write(&path, &wrong).map_err(Stop::of("data"))?;
    let line = check(trial, &job, !keeps.is_empty());
    let run = trial.run(&line)?;
    let told: BTreeSet<u64> = wrong_blocks(&run.said()).into_iter().map(|wrong| wrong.offset).collect();
    for place in &places {
        trial.fault();
        match told.contains(place) {
            true => trial.found(),
            false => trial.missed(format!("damage at {place}, of {}: {run}", job.options)),
        }
    }
    for place in told.difference(&places) {
        trial.false_alarm(format!("at {place}, which is right, of {}: {run}", job.options));
    }
    // A check that continues after errors succeeds (as with fio); its report has the errors.
    let counted = jobs(&run.stdout).is_ok_and(|jobs| jobs.iter().any(|job| job.error != 0));
    if run.code() != Some(0) || counted == places.is_empty() {
        trial.wrong(format!(
            "{} places are wrong, and the report has an error: {counted}: {run}",
            places.len()
        ));
    }
    Ok(())
}

/// A command line that checks the writes of the job.
fn check(trial: &mut Trial, job: &Written, has_state: bool) -> String {
    // The last `rw` counts.
    let ways = ["--verify_only", "--rw=read", "--rw=randread", "--verify_only --verify_state_load=1"];
    let how = trial.one_of(&ways[..if has_state { 4 } else { 3 }]);
    let engine = any_engine(trial);
    let more =
        sometimes(trial, 4, &["--verify_async=2", "--thread", "--mem=shm", "--verify_async=1 --thread"]);
    format!(
        "{} {how} {engine}{more} --continue_on_error=verify --output-format=json --eta=never",
        job.options
    )
}

/// Damages some intervals. Returns the data, and where those begin that are wrong now.
fn damaged(trial: &mut Trial, job: &Written, right: &[u8]) -> (Vec<u8>, BTreeSet<u64>) {
    let mut data = right.to_vec();
    let intervals = job.blocks * job.block / job.interval;
    for _ in 0..trial.between(1, 6) {
        let at = trial.luck.below(intervals) * job.interval;
        // Of two damages of the same interval, a weak method may see none.
        let interval = at as usize..(at + job.interval) as usize;
        if !job.method.is_strong && data[interval.clone()] != right[interval] {
            continue;
        }
        damage(trial, job, &mut data, at);
    }
    let step = job.interval as usize;
    let is_wrong = |&at: &u64| {
        let range = at as usize..at as usize + step;
        data[range.clone()] != right[range]
    };
    let wrong = (0..intervals).map(|number| number * job.interval).filter(is_wrong).collect();
    (data, wrong)
}

/// Damages the interval that begins at `at`, in a way that its method of verification can see.
fn damage(trial: &mut Trial, job: &Written, data: &mut [u8], at: u64) {
    let (start, length) = (at as usize, job.interval as usize);
    // Only the header is checked, or only few bits are certain to be seen.
    if !job.method.covers_data || !job.method.is_strong {
        let end = if job.method.covers_data { job.interval } else { job.method.header };
        let byte = start + trial.luck.below(end) as usize;
        // A second flip of the same bit would be none.
        data[byte] ^= 1 << trial.luck.below(8);
        return;
    }
    let interval = start..start + length;
    match trial.between(0, 6) {
        0 => data[start + trial.luck.below(job.interval) as usize] ^= 1 << trial.luck.below(8),
        1 => {
            let from = trial.luck.below(job.interval) as usize;
            let many = trial.between(1, 100) as usize;
            data[interval].iter_mut().skip(from).take(many).for_each(|byte| *byte = !*byte);
        }
        2 => {
            let sector = trial.luck.below(job.interval / 512) as usize * 512;
            data[start + sector..][..512].fill(0);
        }
        3 => data[interval].fill(0),
        // Data that belongs to another place.
        4 => {
            let other = trial.luck.below(job.blocks * job.block / job.interval) * job.interval;
            data.copy_within(other as usize..other as usize + length, start);
        }
        5 => {
            let by = trial.between(1, 500) as usize;
            data.copy_within(start..start + length - by, start + by);
        }
        _ => {
            let from = trial.luck.below(job.interval) as usize;
            for byte in data[interval].iter_mut().skip(from) {
                *byte = trial.luck.draw() as u8;
            }
        }
    }
}
