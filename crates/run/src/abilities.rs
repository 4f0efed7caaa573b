//! What jobs ask of the system that it may not be able to do: clocks by number, atomic writes. Told before the first
//! file is touched.

use crate::sys;
use iolite_options::JobOptions;
use iolite_plan::{JobPlan, Plan, Problem, WorkerPlan};
use iolite_types::Direction;
use std::path::Path;

/// Everything that the jobs ask for and the system cannot do.
pub fn missing(plan: &Plan) -> Vec<Problem> {
    let clocks = plan.jobs.iter().filter_map(|job| clock(&job.options).map(|message| (job, message)));
    let clocks = clocks.map(|(job, message)| problem(job, "job_start_clock_id", message));
    let writes = plan.workers.iter().filter_map(|worker| {
        let job = plan.job_of(worker);
        atomic_writes(job, worker).map(|message| problem(job, "atomic", message))
    });
    clocks.chain(writes).collect()
}

fn problem(job: &JobPlan, option: &str, message: String) -> Problem {
    let options = &job.options;
    Problem { job: options.name.clone(), origin: options.origins.get(option).cloned(), message }
}

fn clock(options: &JobOptions) -> Option<String> {
    let id = options.job_start_clock_id;
    let error = sys::clock_ms(id).err()?;
    Some(format!("job_start_clock_id={id}: the system has no such clock ({error}); 0 is the wall clock"))
}

/// How much may be written at once so that all or nothing is stored, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AtomicUnit {
    least: u64,
    most: u64,
}

impl AtomicUnit {
    /// Of the file at a path; zeros where it has none, `None` where that cannot be said.
    fn of(path: &Path) -> Option<AtomicUnit> {
        let found = sys::statx(path, libc::STATX_WRITE_ATOMIC)?;
        Some(AtomicUnit {
            least: u64::from(found.stx_atomic_write_unit_min),
            most: u64::from(found.stx_atomic_write_unit_max),
        })
    }

    /// Why blocks of this size cannot be written so.
    fn refuses(self, block: u64) -> Option<String> {
        let AtomicUnit { least, most } = self;
        if most == 0 {
            return Some("its file system or device cannot do that".to_owned());
        }
        let fits = block.is_power_of_two() && (least..=most).contains(&block);
        (!fits).then(|| format!("it takes powers of two from {least} to {most} bytes, not blocks of {block}"))
    }
}

fn atomic_writes(job: &JobPlan, worker: &WorkerPlan) -> Option<String> {
    let options = &job.options;
    if !options.atomic || !options.rw.writes() {
        return None;
    }
    let sizes = options.block_size(Direction::Write);
    worker.files.iter().find_map(|file| {
        // A file that is still to be made is like the directory it will be in as far as that can be said: nothing is.
        let unit = AtomicUnit::of(file)?;
        let reason = unit.refuses(sizes.min()).or_else(|| unit.refuses(sizes.max()))?;
        Some(format!("atomic=1: {} cannot be written atomically: {reason}", file.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_known_by_number() {
        let of = |id| clock(&JobOptions { job_start_clock_id: id, ..JobOptions::default() });
        assert_eq!(of(0), None);
        assert_eq!(of(libc::CLOCK_MONOTONIC as u32), None);
        assert!(of(12345).unwrap().starts_with("job_start_clock_id=12345: the system has no such clock"));
    }

    #[test]
    fn blocks_have_to_fit_the_unit() {
        let unit = AtomicUnit { least: 4096, most: 65536 };
        assert_eq!(unit.refuses(4096), None);
        assert_eq!(unit.refuses(65536), None);
        for block in [512, 12288, 131072] {
            assert!(unit.refuses(block).unwrap().contains("4096 to 65536"), "{block}");
        }
        assert!(AtomicUnit { least: 0, most: 0 }.refuses(4096).is_some());
        // Memory file systems have no such unit.
        assert_eq!(AtomicUnit::of(Path::new("/proc/self/stat")), Some(AtomicUnit { least: 0, most: 0 }));
    }
}
