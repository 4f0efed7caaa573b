//! Checks that the system supports what jobs use: clocks by number, atomic writes, tracepoints.

use crate::{JobPlan, Plan, Problem, StagesBy, WorkerPlan};
use iolite_host::{AtomicWrites, Machine};
use iolite_options::JobOptions;
use iolite_types::Direction;

/// Problems of jobs that use a feature that the system does not support.
pub(crate) fn problems(plan: &Plan, machine: &dyn Machine) -> Vec<Problem> {
    let clocks = plan.jobs.iter().filter_map(|job| {
        let message = without_clock(&job.options, machine)?;
        Some(Problem::of(&job.options, "job_start_clock_id", message))
    });
    let writes = plan.workers.iter().filter_map(|worker| {
        let job = plan.job_of(worker);
        Some(Problem::of(&job.options, "atomic", atomic_writes(job, worker, machine)?))
    });
    let stages =
        plan.jobs.iter().filter(|job| job.stages.is_some_and(|stages| stages.told_by == StagesBy::Kernel));
    let stages = stages.filter_map(|job| {
        let refusal = machine.tracing().err()?;
        Some(Problem::of(&job.options, "stages", format!("stages: {refusal}")))
    });
    clocks.chain(writes).chain(stages).collect()
}

fn without_clock(options: &JobOptions, machine: &dyn Machine) -> Option<String> {
    let id = options.measurement.job_start_clock_id;
    let refusal = machine.clock(id as i32).err()?;
    Some(format!("job_start_clock_id={id}: the system has no such clock ({refusal}); 0 is the wall clock"))
}

/// Why blocks of this size cannot be written atomically.
fn refusal(writes: AtomicWrites, block: u64) -> Option<String> {
    let AtomicWrites { least, most } = writes;
    if most == 0 {
        return Some("its file system or device cannot do that".to_owned());
    }
    let fits = block.is_power_of_two() && (least..=most).contains(&block);
    (!fits).then(|| format!("it takes powers of two from {least} to {most} bytes, not blocks of {block}"))
}

fn atomic_writes(job: &JobPlan, worker: &WorkerPlan, machine: &dyn Machine) -> Option<String> {
    let options = &job.options;
    if !options.durability.atomic || !options.pattern.rw.writes() {
        return None;
    }
    let sizes = options.block_size(Direction::Write);
    worker.files.iter().find_map(|file| {
        // A file that does not exist yet cannot be queried.
        let writes = machine.atomic_writes(&file)?;
        let reason = refusal(writes, sizes.min()).or_else(|| refusal(writes, sizes.max()))?;
        Some(format!("atomic=1: {} cannot be written atomically: {reason}", file.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::{ExtentOptions, PatternOptions, ReadWrite, RunOptions, SizeValue};
    use iolite_types::PerDirection;

    fn told(machine: &MadeUp, change: impl FnOnce(&mut JobOptions)) -> Vec<String> {
        let mut options = JobOptions {
            name: "j".into(),
            ioengine: "pvsync2".into(),
            pattern: PatternOptions { rw: ReadWrite::Write, ..PatternOptions::default() },
            extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
            ..JobOptions::default()
        };
        change(&mut options);
        let plan = Plan::build(vec![options], &RunOptions::default(), machine).unwrap();
        problems(&plan, machine).into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn clocks_are_known_by_number() {
        let told = |id| told(&MadeUp::new(), |o| o.measurement.job_start_clock_id = id);
        assert_eq!(told(0), [""; 0]);
        assert_eq!(told(libc::CLOCK_MONOTONIC as u32), [""; 0]);
        let message = "the system has no such clock (Invalid argument); 0 is the wall clock";
        assert_eq!(told(12345), [format!("job_start_clock_id=12345: {message}")]);
    }

    #[test]
    fn blocks_must_fit_the_atomic_write_limits() {
        let machine = MadeUp::new()
            .with_file("/can", 1 << 20)
            .atomic("/can", AtomicWrites { least: 4096, most: 65536 })
            .with_file("/cannot", 1 << 20);
        let told = |file: &str, block| {
            told(&machine, |o| {
                (o.durability.atomic, o.files.filename) = (true, vec![file.into()]);
                o.pattern.bs = PerDirection::all(block);
            })
        };
        assert_eq!(told("/can", 4096), [""; 0]);
        assert_eq!(told("/can", 65536), [""; 0]);
        for block in [512, 12288, 131_072] {
            let found = told("/can", block);
            assert!(found[0].contains("it takes powers of two from 4096 to 65536 bytes"), "{found:?}");
        }
        let message =
            "atomic=1: /cannot cannot be written atomically: its file system or device cannot do that";
        assert_eq!(told("/cannot", 4096), [message]);
        assert_eq!(told("/new", 4096), [""; 0], "nothing is known of it yet");
    }
}
