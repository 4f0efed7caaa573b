//! Draws the page of a run from the logs that the run writes.

use iolite_page::logs::{Drawings, LogFile};
use iolite_page::value_of;
use iolite_plan::{Plan, logs_of_workers};
use iolite_report::Program;
use iolite_stats::Report;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// At the end of a run, at most this many bytes are read, which takes some seconds. `iolite report` reads more.
const MOST_BYTES: u64 = 1 << 30;

/// The logs that a run writes.
#[derive(Debug, Default)]
pub struct Logs(Vec<Written>);

/// A log of the run.
#[derive(Debug)]
struct Written {
    /// Its path and kind; the job is filled in once there is a report.
    file: LogFile,
    /// The report block of the job that writes it; `None` = several jobs, or no block.
    block: Option<u32>,
}

impl Logs {
    /// The logs of a planned run, before it starts.
    pub fn of(plan: &Plan) -> Logs {
        let blocks = plan.blocks_of_workers();
        let mut known: HashMap<PathBuf, usize> = HashMap::new();
        let mut logs: Vec<Written> = Vec::new();
        for (worker, kind, path, is_shared) in logs_of_workers(plan) {
            let block = blocks.get(worker).copied().flatten();
            if let Some(&place) = known.get(&path) {
                if logs[place].block != block {
                    logs[place].block = None;
                }
                continue;
            }
            // A shared log may start with entries of an earlier run.
            let skip = if is_shared { fs::metadata(&path).map_or(0, |file| file.len()) } else { 0 };
            known.insert(path.clone(), logs.len());
            logs.push(Written { file: LogFile { path, kind, job: None, skip }, block });
        }
        Logs(logs)
    }

    /// The drawings of these logs for the page of this report.
    pub fn drawn(self, report: &Report, program: &Program) -> Drawings {
        // A log may be a pipe, whose reader has consumed it.
        let is_file = |file: &LogFile| fs::metadata(&file.path).is_ok_and(|found| found.is_file());
        let mut room = MOST_BYTES;
        let mut notes = Vec::new();
        let mut files = Vec::new();
        for Written { mut file, block } in self.0 {
            if !is_file(&file) {
                continue;
            }
            let length = fs::metadata(&file.path).map_or(0, |found| found.len().saturating_sub(file.skip));
            if length > room {
                let told = file.path.display();
                notes.push(format!(
                    "{told}: with it, more than {} MiB of logs would have to be read at the end of the run; iolite report \
                     RESULT.json --logs={told} draws it",
                    MOST_BYTES >> 20
                ));
                continue;
            }
            room -= length;
            file.job = block.and_then(|block| report.jobs.iter().position(|job| job.identity.block == block));
            files.push(file);
        }
        if files.is_empty() && notes.is_empty() {
            return Drawings::default();
        }
        // Without the report, there is no page.
        let Ok(value) = value_of(report, program) else { return Drawings::default() };
        let mut drawings = Drawings::of(&value, &files);
        drawings.notes.append(&mut notes);
        drawings
    }
}
