//! Verified jobs without faults: neither the run that writes nor a later one may report damage.

use crate::jobs::{any_engine, any_method, sometimes};
use crate::reading::{Job, jobs, tells_of_damage};
use crate::running::Finished;
use crate::stop::Stop;
use crate::trial::Trial;

/// Performs one trial. Every I/O that is read back is something that could be a false alarm.
pub fn perform(trial: &mut Trial) -> Result<(), Stop> {
    trial.expect_files(&["data", "v.*", "*-verify.state"]);
    let line = job(trial);
    let run = trial.run(&format!("{line} --output-format=json --eta=never"))?;
    let report = match jobs(&run.stdout) {
        Ok(report) => report,
        Err(why) => {
            trial.wrong(format!("{why}: {run}"));
            return Ok(());
        }
    };
    // A job that cannot be verified is refused before it writes.
    if is_refused(&run, &report) {
        trial.moot();
        return Ok(());
    }
    if run.code() != Some(0) || tells_of_damage(&run.said()) || report.iter().any(|job| job.error != 0) {
        trial.false_alarm(run.to_string());
        return Ok(());
    }
    // Of a few I/Os of a mix, all may be reads.
    if report.iter().map(|job| job.ios[1]).sum::<u64>() == 0 && line.contains("write") {
        trial.wrong(format!("nothing was written: {run}"));
    }
    // With any state and any choices, a later run has to agree.
    let again = trial.run(&format!("{line} --verify_only --output-format=json --eta=never"))?;
    let refused = jobs(&again.stdout).is_ok_and(|report| is_refused(&again, &report));
    if tells_of_damage(&again.said()) || (again.code() != Some(0) && !refused) {
        trial.false_alarm(format!("later: {again}"));
    }
    Ok(())
}

/// Whether the run has ended before its first I/O, with words.
fn is_refused(run: &Finished, report: &[Job]) -> bool {
    run.code() == Some(1) && !run.stderr.is_empty() && report.iter().all(|job| job.all_ios() == 0)
}

/// A verified job.
fn job(trial: &mut Trial) -> String {
    let method = any_method(trial);
    let size = trial.one_of(&["256k", "1m", "1m", "3m"]);
    let rw = trial.one_of(&["write", "randwrite", "randwrite", "rw", "randrw", "randrw --rwmixread=80"]);
    let mut line = format!("--name=v --size={size} --rw={rw} {} {}", method.options, any_engine(trial));
    line += match trial.between(0, 5) {
        0 => " --bs=4k",
        1 => " --bs=16k",
        2 => " --bs=64k --verify_interval=4k",
        3 => " --bsrange=4k-32k",
        4 => " --bssplit=4k/60:12k/20:64k/20",
        _ => " --bs=8k --blockalign=4k",
    };
    line += match trial.between(0, 5) {
        0 | 1 => " --filename=data",
        2 => " --numjobs=3",
        3 => " --filename=data --numjobs=2",
        4 => " --nrfiles=3",
        _ => " --nrfiles=4 --openfiles=2 --file_service_type=random",
    };
    line += &sometimes(
        trial,
        4,
        &["--norandommap", "--norandommap --io_size=2m", "--random_generator=tausworthe64"],
    );
    line += &sometimes(
        trial,
        5,
        &["--random_distribution=zipf:1.1", "--random_distribution=normal:20", "--percentage_random=50"],
    );
    line += &sometimes(trial, 4, &["--loops=2", "--loops=3", "--time_based --runtime=300ms"]);
    line += &sometimes(
        trial,
        4,
        &["--verify_backlog=16", "--verify_backlog=7 --verify_backlog_batch=3", "--verify_async=2"],
    );
    line += &sometimes(trial, 4, &["--fsync=8", "--fdatasync=5", "--end_fsync=1", "--sync=1"]);
    line += &sometimes(
        trial,
        6,
        &["--thread", "--mem=shm", "--mem=mmap", "--mem=mmapshared", "--iomem_align=8k"],
    );
    line += &sometimes(
        trial,
        6,
        &["--buffer_compress_percentage=50", "--refill_buffers", "--zero_buffers", "--dedupe_percentage=30"],
    );
    line += &sometimes(
        trial,
        8,
        &["--randrepeat=0", "--verify_header_format=3.33", "--io_submit_mode=offload", "--verify_fatal=1"],
    );
    line += &sometimes(
        trial,
        8,
        &["--rate_iops=2000 --number_ios=200", "--thinktime=100", "--number_ios=33", "--iodepth_batch=4"],
    );
    line += &sometimes(
        trial,
        8,
        &["--fallocate=none", "--fallocate=posix", "--overwrite=1", "--create_serialize=0"],
    );
    line
}
