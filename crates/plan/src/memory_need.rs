//! Checks that a job's lists of files and of I/Os in flight fit into memory, and so do the buffers of all jobs.
//! Otherwise the program would be killed while it builds them, or the machine would swap out everything else.

use crate::resolve::buffers_in_use;
use crate::workload::workload_spec;
use crate::{Layout, Plan, Problem, WorkerPlan};
use iolite_host::Machine;
use iolite_options::{JobOptions, MemoryKind};
use iolite_types::Direction;

/// Approximate memory per file, in bytes: its name in the plan, in the layout and in the worker's table.
const PER_FILE: u64 = 512;

/// Approximate memory per I/O in flight, in bytes, without its buffer: its unit, its time stamps, its queue entries.
const PER_IO: u64 = 256;

/// The option that asks for more memory than is `available` (bytes), and a message; `None` = all fits. A run that only
/// `parses` also makes lists of files, but no queues.
pub fn exceeded(options: &JobOptions, parses: bool, available: u64) -> Option<(&'static str, String)> {
    let numbered = !options.files.names_files() && !options.is_replay();
    let depth = if parses { 0 } else { options.depth.iodepth };
    let files = if numbered { options.files.nrfiles } else { 0 };
    let asked = [("nrfiles", files, PER_FILE, "files"), ("iodepth", depth, PER_IO, "I/Os in flight")];
    asked.into_iter().find_map(|(option, number, each, things)| {
        let all = u64::from(number) * u64::from(options.schedule.numjobs);
        let needed = all.saturating_mul(each);
        // If each worker needs little, there are too many workers.
        let blamed = if number < options.schedule.numjobs { "numjobs" } else { option };
        (needed > available).then(|| {
            let numjobs = options.schedule.numjobs;
            let jobs = if numjobs > 1 { format!(" of {numjobs} workers") } else { String::new() };
            let message = format!(
                "{option}={number}: {things}{jobs} need about {} MiB of memory, and {} MiB are available; use a smaller {blamed}",
                needed >> 20,
                available >> 20
            );
            (blamed, message)
        })
    })
}

/// The problem if the buffers of workers that run together need more memory than is available without swapping. Only
/// memory that will certainly carry data counts: neither a depth that is never reached, nor the largest of several
/// block sizes.
pub fn buffers(plan: &Plan, layouts: &[Layout], machine: &dyn Machine) -> Option<Problem> {
    let available = machine.memory().available?;
    (0..plan.waves).find_map(|wave| {
        let together = |worker: &WorkerPlan| worker.wave == wave && worker.begins_with_wave();
        let workers = plan.workers.iter().zip(layouts).filter(|(worker, _)| together(worker));
        let needs: Vec<_> = workers
            .map(|(worker, layout)| (worker, buffers_of(plan, worker, layout)))
            .filter(|(_, (number, _))| *number > 0)
            .collect();
        let needed = needs.iter().fold(0u64, |sum, (_, (number, block))| {
            sum.saturating_add(number.saturating_mul(*block))
        });
        if needed <= available {
            return None;
        }
        let &(worker, (number, block)) =
            needs.iter().max_by_key(|(_, (number, block))| number.saturating_mul(*block))?;
        let options = &plan.job_of(worker).options;
        let (blamed, what) = if block >= available {
            ("bs", "smaller blocks")
        } else if number > 1 {
            ("iodepth", "a lower depth or smaller blocks")
        } else {
            ("numjobs", "fewer jobs or smaller blocks")
        };
        let whose = match needs.len() {
            1 => "the buffers".into(),
            workers => format!("the buffers of {workers} workers"),
        };
        let message = format!(
            "{blamed}: {whose} need {} MiB of memory (here: {number} of {block} bytes), and {} MiB are available; use \
             {what}",
            needed >> 20,
            available >> 20
        );
        Some(Problem::of(options, blamed, message))
    })
}

/// The number of a worker's buffers that take memory, and the smallest size of the data moved through each.
fn buffers_of(plan: &Plan, worker: &WorkerPlan, layout: &Layout) -> (u64, u64) {
    let job = plan.job_of(worker);
    let kind = job.options.buffers.mem;
    // Huge pages are reserved separately, and the pages of a file are not anonymous memory.
    if matches!(kind, MemoryKind::MmapHuge | MemoryKind::ShmHuge) || job.options.buffers.mem_file.is_some() {
        return (0, 0);
    }
    let workload = workload_spec(job, worker, layout);
    let moves =
        |direction: &Direction| *direction != Direction::Trim && job.options.pattern.rw.uses(*direction);
    let sizes =
        Direction::ALL.into_iter().filter(moves).map(|direction| workload.block_size[direction].min());
    let block = sizes.min().unwrap_or(0);
    (buffers_in_use(&job.options, job.engine.facets, &workload), block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{DepthOptions, FileOptions, ScheduleOptions};

    #[test]
    fn excessive_memory_is_reported_with_the_option() {
        let options = |nrfiles, iodepth, numjobs| JobOptions {
            files: FileOptions { nrfiles, ..FileOptions::default() },
            depth: DepthOptions { iodepth, ..DepthOptions::default() },
            schedule: ScheduleOptions { numjobs, ..ScheduleOptions::default() },
            ..JobOptions::default()
        };
        let blamed = |options: &JobOptions| exceeded(options, false, 1 << 30).map(|(option, _)| option);
        assert_eq!(blamed(&options(1 << 20, 1 << 16, 1)), None);
        assert_eq!(blamed(&options(u32::MAX, 1, 1)), Some("nrfiles"));
        assert_eq!(blamed(&options(1, u32::MAX, 1)), Some("iodepth"));
        assert_eq!(blamed(&options(1000, 1, 1 << 20)), Some("numjobs"));
        let named = {
            let mut options = options(u32::MAX, 1, 1);
            options.files.filename = vec!["f".into()];
            options
        };
        assert_eq!(blamed(&named), None);
        let (_, message) = exceeded(&options(1 << 22, 1, 1), false, 1 << 30).unwrap();
        assert_eq!(
            message,
            "nrfiles=4194304: files need about 2048 MiB of memory, and 1024 MiB are available; use a smaller nrfiles"
        );
    }
}
