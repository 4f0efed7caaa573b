//! The files of the whole run: report, bandwidth log, trigger. None of them may be a file that a job needs.

use crate::console::OpenError;
use crate::output_file;
use iolite_host::ThisMachine;
use iolite_options::RunOptions;
use iolite_plan::{Plan, own_files};
use std::path::Path;

/// Checks that the run does not need the store's file.
///
/// # Errors
/// The run needs this file.
pub fn check_store(store: &Path, plan: &Plan, machine: &ThisMachine) -> Result<(), String> {
    own_files::at(plan, store, machine).map_or(Ok(()), |what| {
        Err(format!(
            "{} cannot be the store of runs: it is {what}; name another one with --store",
            store.display()
        ))
    })
}

/// Checks that no file of the whole run has the name of a file that the run needs.
///
/// # Errors
/// One has, and a file would be lost.
pub fn check(run: &RunOptions, plan: &Plan, machine: &ThisMachine) -> Result<(), OpenError> {
    check_against(run, &|path| own_files::at(plan, path, machine))
}

/// Checks that no file of the whole run is a store of runs, or another file that must be kept: `needed` describes
/// those.
///
/// # Errors
/// One is, and its content would be lost.
pub fn check_against(run: &RunOptions, needed: &dyn Fn(&Path) -> Option<String>) -> Result<(), OpenError> {
    let there = |path: &Path| {
        let is_store = || iolite_store::is_store(path).then(|| "a store of runs".to_owned());
        needed(path).or_else(is_store)
    };
    if let Some(path) = &run.output {
        let option = format!("--output={}", path.display());
        let refused =
            |how: String| OpenError::taken(&option, &format!("the report would {how}; give another name"));
        if let Some(what) = there(path) {
            return Err(refused(format!("go into {what}")));
        }
        let beside = output_file::beside(path);
        if let Some(what) = there(&beside) {
            return Err(refused(format!("grow in {}, which is {what}", beside.display())));
        }
    }
    if let Some(path) = run.page_file() {
        for path in [output_file::beside(&path), path] {
            if let Some(what) = there(&path) {
                let how = format!(
                    "the page would go into {}, which is {what}; give --output another name",
                    path.display()
                );
                return Err(OpenError::taken("--output-format=html", &how));
            }
        }
    }
    if run.bandwidth_log {
        for name in iolite_run::BANDWIDTH_LOGS {
            if let Some(what) = there(name.as_ref()) {
                let why =
                    format!("the log would go into {name}, which is {what}; run this in another directory");
                return Err(OpenError::taken("--bandwidth-log", &why));
            }
        }
    }
    if let Some(path) = &run.trigger_file
        && let Some(what) = there(path)
    {
        let option = format!("--trigger-file={}", path.display());
        let why = format!("the file would be removed, and it is {what}; give another name");
        return Err(OpenError::taken(&option, &why));
    }
    Ok(())
}
