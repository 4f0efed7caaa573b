//! Duplicate data: checks for `dedupe_mode=working_set`, and the state that workers share with `dedupe_global`.
//!
//! Workers in several processes write the same blocks without communicating. The content of the working set's blocks
//! follows from one seed and their numbers, so each worker needs only the seed, and the numbers of the blocks that it
//! writes first.

use crate::{JobPlan, SharedContent, WorkerPlan, files};
use iolite_options::{DedupeMode, JobOptions};

/// Obstacles to a working set: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if !has_working_set(options) {
        return found;
    }
    let (wanted, set) = (options.buffers.dedupe_percentage, options.buffers.dedupe_working_set_percentage);
    if wanted + set > 100 {
        found.push((
            "dedupe_percentage",
            format!(
                "dedupe_percentage={wanted}: cannot be reached while the working set alone, which is \
                 dedupe_working_set_percentage={set} percent of the file, is unique"
            ),
        ));
    }
    if options.extent.size.is_none() {
        found.push((
            "dedupe_mode",
            "dedupe_mode=working_set: needs size= to know how large the set is".into(),
        ));
    }
    let count = files::nominal(options, 0).len();
    if count > 1 {
        found.push((
            "dedupe_mode",
            format!("dedupe_mode=working_set: works with one file per job, this one has {count}"),
        ));
    }
    found
}

/// Gives each sharing worker its share.
pub(crate) fn share(jobs: &[JobPlan], workers: &mut [WorkerPlan]) {
    let shares = |worker: &WorkerPlan| {
        let options = &jobs[worker.job].options;
        options.buffers.dedupe_global && has_working_set(options)
    };
    let sharing: Vec<&mut WorkerPlan> = workers.iter_mut().filter(|worker| shares(worker)).collect();
    let count = sharing.len() as u64;
    let seed = sharing.first().map_or(0, |worker| worker.seed);
    for (position, worker) in (0..).zip(sharing) {
        worker.shared_content = Some(SharedContent { seed, position, workers: count });
    }
}

fn has_working_set(options: &JobOptions) -> bool {
    options.buffers.dedupe_percentage > 0
        && options.buffers.dedupe_mode == DedupeMode::WorkingSet
        && options.pattern.rw.writes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use iolite_options::{BufferOptions, ExtentOptions, PatternOptions, ReadWrite, RunOptions, SizeValue};

    fn job(change: impl FnOnce(&mut JobOptions)) -> JobOptions {
        let mut options = JobOptions {
            name: "job".into(),
            pattern: PatternOptions { rw: ReadWrite::Write, ..PatternOptions::default() },
            extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
            buffers: BufferOptions {
                dedupe_percentage: 50,
                dedupe_mode: DedupeMode::WorkingSet,
                ..BufferOptions::default()
            },
            ..JobOptions::default()
        };
        change(&mut options);
        options
    }

    fn blamed(change: impl FnOnce(&mut JobOptions)) -> Vec<&'static str> {
        obstacles(&job(change)).into_iter().map(|(option, _)| option).collect()
    }

    /// The limits of fio 3.33: 50 + 50 runs, 90 + 20 does not.
    #[test]
    fn limits_of_dedupe_working_sets_are_checked() {
        assert!(blamed(|_| {}).is_empty());
        assert!(blamed(|o| o.buffers.dedupe_working_set_percentage = 50).is_empty());
        assert_eq!(blamed(|o| o.buffers.dedupe_working_set_percentage = 51), ["dedupe_percentage"]);
        assert_eq!(blamed(|o| o.extent.size = None), ["dedupe_mode"]);
        assert_eq!(blamed(|o| o.files.nrfiles = 2), ["dedupe_mode"]);
        assert_eq!(blamed(|o| o.files.filename = vec!["a".into(), "b".into()]), ["dedupe_mode"]);
        let repeat = |o: &mut JobOptions| {
            o.buffers.dedupe_mode = DedupeMode::Repeat;
            o.extent.size = None;
        };
        assert!(blamed(repeat).is_empty());
    }

    #[test]
    fn shares_are_handed_out_across_jobs() {
        let plan = Plan::build(
            vec![
                job(|o| {
                    o.buffers.dedupe_global = true;
                    o.schedule.numjobs = 2;
                }),
                job(|_| {}),
                job(|o| o.buffers.dedupe_global = true),
            ],
            &RunOptions::default(),
            &iolite_host::MadeUp::new(),
        )
        .expect("a valid plan");
        let shares: Vec<_> = plan.workers.iter().map(|worker| worker.shared_content).collect();
        let seed = plan.workers[0].seed;
        let share = |position| Some(SharedContent { seed, position, workers: 3 });
        assert_eq!(shares, [share(0), share(1), None, share(2)]);
    }
}
