//! Merging block traces before a replay (`merge_blktrace_file`).
//!
//! The merged trace replaces its inputs in the job. It gets its final name only when it is complete, so a failed merge
//! leaves nothing behind and overwrites nothing.

use iolite_options::JobOptions;
use iolite_plan::Problem;
use iolite_trace::blk::ByteOrder;
use iolite_trace::{MergeInput, merge};
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};
use tracing::debug;

/// Merges the traces of every job that asks for it. Returns the number of merged traces, or the first problem.
pub fn all(jobs: &mut [JobOptions]) -> Result<usize, Problem> {
    let mut count = 0;
    for job in jobs.iter_mut().filter(|job| job.is_replay()) {
        if let Some(to) = job.replay.merge_blktrace_file.clone() {
            one(job, Path::new(&to)).map_err(|why| problem(job, &why))?;
            job.replay.read_iolog = vec![to];
            count += 1;
        }
    }
    Ok(count)
}

fn problem(job: &JobOptions, why: &str) -> Problem {
    Problem::of(job, "merge_blktrace_file", format!("merge_blktrace_file: {why}"))
}

fn one(job: &JobOptions, to: &Path) -> Result<(), String> {
    let inputs = inputs(job)?;
    check_target(&inputs, to)?;
    let words = |error: io::Error| format!("{}: {error}", to.display());
    if to.exists() && !to.is_file() {
        // A pipe or a character device has no content to keep.
        let mut output = BufWriter::new(File::options().write(true).open(to).map_err(words)?);
        return merge_into(&inputs, &mut output, to);
    }
    let half_done = half_done_name(to);
    let mut output = BufWriter::new(File::create(&half_done).map_err(words)?);
    let merged =
        merge_into(&inputs, &mut output, to).and_then(|()| std::fs::rename(&half_done, to).map_err(words));
    if merged.is_err() {
        // The file may not exist, and only the first error matters.
        let _ = std::fs::remove_file(&half_done);
    }
    merged
}

fn merge_into(inputs: &[MergeInput], output: &mut BufWriter<File>, to: &Path) -> Result<(), String> {
    for MergeInput { path, percent, times } in inputs {
        debug!(target: "blktrace", "merged: {} in {percent} % of its time, {times} times", path.display());
    }
    let merged = merge(inputs, output, &to.display().to_string()).map_err(|error| error.to_string())?;
    debug!(target: "blktrace", "merged into {}: {} records", to.display(), merged.records);
    Ok(())
}

/// A temporary name in the same directory.
fn half_done_name(to: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(to.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    to.with_file_name(name)
}

/// The traces with their speeds and repetitions.
fn inputs(job: &JobOptions) -> Result<Vec<MergeInput>, String> {
    let traces = job.replay.read_iolog.len();
    let fits = |option: &str, count: usize| match count {
        0 => Ok(()),
        count if count == traces => Ok(()),
        count => Err(format!("{option} has {count} values for {traces} traces")),
    };
    fits("merge_blktrace_scalars", job.replay.merge_blktrace_scalars.len())?;
    fits("merge_blktrace_iters", job.replay.merge_blktrace_iters.len())?;
    let input = |(position, path): (usize, &String)| {
        let times = job.replay.merge_blktrace_iters.get(position).copied().unwrap_or(1);
        if times > 1 && iolite_trace::is_stream(Path::new(path)) {
            return Err(format!(
                "{path} can be read only once, and merge_blktrace_iters asks for {times} times"
            ));
        }
        let percent = job.replay.merge_blktrace_scalars.get(position).copied().unwrap_or(100.0);
        Ok(MergeInput { path: path.into(), percent, times })
    };
    job.replay.read_iolog.iter().enumerate().map(input).collect()
}

/// The result must not overwrite an input or a device, nor any file except an earlier result.
fn check_target(inputs: &[MergeInput], to: &Path) -> Result<(), String> {
    use std::os::unix::fs::FileTypeExt;
    if let Ok(target) = std::fs::canonicalize(to)
        && let Some(input) =
            inputs.iter().find(|input| std::fs::canonicalize(&input.path).is_ok_and(|path| path == target))
    {
        return Err(format!("{} is one of the traces to be merged", input.path.display()));
    }
    let Ok(found) = std::fs::metadata(to) else { return Ok(()) };
    if found.file_type().is_block_device() {
        return Err(format!("{} is a device; give the name of a file", to.display()));
    }
    if found.is_file() && found.len() > 0 && !holds_block_trace(to)? {
        return Err(format!(
            "{} holds something other than a block trace, and that is not replaced; remove it, or choose another name",
            to.display()
        ));
    }
    Ok(())
}

fn holds_block_trace(path: &Path) -> Result<bool, String> {
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(4).read_to_end(&mut start))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(start.first_chunk().copied().and_then(ByteOrder::of_magic).is_some())
}
