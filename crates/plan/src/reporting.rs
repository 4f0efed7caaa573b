//! The workers that are reported as one, and the options that must be the same for them.

use crate::{Plan, Problem};

impl Plan {
    /// The workers that are reported as one: neighbours in one group that all have `group_reporting`. (The numbers of a
    /// job without it would appear under the name of another job.) A job without statistics is a separate block, and
    /// does not separate the jobs before and after it.
    pub fn reporting_blocks(&self) -> Vec<Vec<usize>> {
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        // The block that may get more members, and their group.
        let mut open: Option<(usize, u32)> = None;
        for worker in &self.workers {
            let job = self.job_of(worker);
            let asks = job.report.as_group && job.report.is_reported;
            match open {
                Some((block, group)) if asks && group == job.group => blocks[block].push(worker.index),
                _ => {
                    if job.report.is_reported {
                        open = asks.then_some((blocks.len(), job.group));
                    }
                    blocks.push(vec![worker.index]);
                }
            }
        }
        blocks
    }

    /// The report block of each worker; `None` = the worker is not reported.
    pub fn blocks_of_workers(&self) -> Vec<Option<u32>> {
        let mut blocks = vec![None; self.workers.len()];
        for (block, members) in (0..).zip(self.reporting_blocks()) {
            for worker in members {
                let is_reported = self.job_of(&self.workers[worker]).report.is_reported;
                blocks[worker] = is_reported.then_some(block);
            }
        }
        blocks
    }

    /// Jobs that are reported as one but have different `steadystate` options.
    pub(crate) fn disagreements(&self) -> Vec<Problem> {
        let job = |worker: &usize| self.job_of(&self.workers[*worker]);
        let blocks = self.reporting_blocks();
        let odd = blocks.iter().filter_map(|block| {
            let first = block.first()?;
            let other = block.iter().find(|worker| job(worker).steady != job(first).steady)?;
            Some((job(first), job(other)))
        });
        odd.map(|(first, other)| {
            let blamed = ["steadystate", "steadystate_duration", "group_reporting"];
            let blamed = blamed.into_iter().find(|option| other.options.is_set(option));
            let message = format!(
                "steadystate: has to be the same as that of {}, because group_reporting makes them one; \
                 new_group parts them",
                first.name
            );
            other.problem(blamed.unwrap_or("steadystate"), message)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{ExtentOptions, JobOptions, MeasurementOptions, RunOptions, SizeValue};

    fn build(jobs: &[(&str, bool, bool, u64)]) -> Result<Plan, Vec<Problem>> {
        let jobs = jobs.iter().map(|&(name, group_reporting, stats, steadystate_duration)| JobOptions {
            name: name.into(),
            ioengine: "null".into(),
            measurement: MeasurementOptions {
                group_reporting,
                stats,
                steadystate_duration,
                ..MeasurementOptions::default()
            },
            extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
            ..JobOptions::default()
        });
        Plan::build(jobs.collect(), &RunOptions::default(), &iolite_host::MadeUp::new())
    }

    #[test]
    fn neighbours_that_ask_for_it_are_one() {
        let plan = build(&[
            ("a", true, true, 0),
            ("silent", false, false, 0),
            ("b", true, true, 0),
            ("c", false, true, 0),
            ("d", true, true, 0),
        ]);
        assert_eq!(plan.unwrap().reporting_blocks(), [vec![0, 2], vec![1], vec![3], vec![4]]);
    }

    #[test]
    fn they_are_steady_together() {
        assert!(build(&[("a", true, true, 5), ("b", true, true, 5), ("c", false, true, 0)]).is_ok());
        let problems = build(&[("a", true, true, 5), ("b", true, true, 0)]).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].job == "b" && problems[0].message.contains("the same as that of a"));
    }
}
