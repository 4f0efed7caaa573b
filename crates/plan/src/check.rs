//! The checks that can be made on a job before anything runs.
//!
//! What a subject demands of the options is in the module of that subject. Here is what depends on the engine, on the
//! command line, and on the files that are there.

use crate::replay::Replay;
use crate::safety::is_missing_device;
use crate::{
    Problem, amounts, dedupe, files, in_use, measuring, memory, offsets, placement, priorities, rates,
    replay, trims,
};
use iolite_options::engines::{self, Capability, EngineInfo};
use iolite_options::{JobOptions, RunOptions};
use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// An option to blame, and what is wrong.
type Obstacle = (&'static str, String);

/// Everything that is wrong with this job.
pub fn job(options: &JobOptions, engine: &EngineInfo, run: &RunOptions, replays: &[Replay]) -> Vec<Problem> {
    let of_options = [
        dedupe::obstacles,
        offsets::obstacles,
        rates::obstacles,
        amounts::obstacles,
        priorities::obstacles,
        measuring::obstacles,
    ];
    let mut obstacles = of_engine(options, engine);
    obstacles.extend(readonly_forbids(options, run, replays));
    obstacles.extend(of_options.iter().flat_map(|obstacles| obstacles(options)));
    // The language can be checked anywhere; whether this machine can run the job is another question.
    if !run.parse_only {
        obstacles.extend(of_replay(options, replays));
        obstacles.extend(placement::obstacles(options));
        obstacles.extend(memory::obstacles(options));
        obstacles.extend(of_files(options, engine, replays));
    }
    let problem = |(option, message): Obstacle| Problem {
        job: options.name.clone(),
        origin: options.origins.get(option).cloned(),
        message,
    };
    obstacles.into_iter().map(problem).collect()
}

/// What the engine cannot do.
fn of_engine(options: &JobOptions, engine: &EngineInfo) -> Vec<Obstacle> {
    let mut found = Vec::new();
    if !engine.supported {
        found.push(("ioengine", format!("ioengine={}: this engine is not supported yet", engine.name)));
    }
    if options.atomic && options.rw.writes() && !engine.facets.can(Capability::AtomicWrites) {
        let (name, can) = (engine.name, engines::capable(Capability::AtomicWrites));
        let message = format!("atomic=1: ioengine={name} cannot ask for atomic writes; {can} can");
        found.push(("atomic", message));
    }
    found
}

/// What stands in the way of traces.
fn of_replay(options: &JobOptions, replays: &[Replay]) -> Vec<Obstacle> {
    let mut found = Vec::new();
    let recorded = options.write_iolog.as_ref();
    if let Some(message) = recorded.and_then(|path| replay::recording_obstacle(path.as_ref())) {
        found.push(("write_iolog", format!("write_iolog: {message}")));
    }
    if !replays.is_empty() && options.verification.is_on() && options.verification.trim_percentage > 0 {
        let message = "trim_percentage: what a replay trims is in its trace; leave trim_percentage out";
        found.push(("trim_percentage", message.into()));
    }
    found
}

/// What `--readonly` has against the job.
fn readonly_forbids(options: &JobOptions, run: &RunOptions, replays: &[Replay]) -> Option<Obstacle> {
    let changes = options.rw.writes() || options.rw.trims();
    (run.readonly && changes).then(|| {
        let blamed = if replays.is_empty() { "rw" } else { "read_iolog" };
        let what = what_changes(options, replays);
        (blamed, format!("{what} would change data, and --readonly forbids that"))
    })
}

/// What makes the job change data, for a message.
fn what_changes(options: &JobOptions, replays: &[Replay]) -> String {
    if replays.is_empty() { format!("rw={}", options.rw.name()) } else { "the trace".to_owned() }
}

/// Files that are not there, or that must not be changed.
fn of_files(options: &JobOptions, engine: &EngineInfo, replays: &[Replay]) -> Vec<Obstacle> {
    let mut found = Vec::new();
    let names = names(options, engine, replays);
    for name in names.iter().filter(|name| is_missing_device(name)) {
        let message = format!("{} does not exist, and no file is made among devices", name.display());
        found.push(("filename", message));
    }
    if !options.rw.writes() && !options.rw.trims() {
        return found;
    }
    let is_replay = !replays.is_empty();
    if !is_replay && engine.facets.has_local_files() {
        // Names of devices that are missing have been told.
        let there = names.iter().filter(|name| !is_missing_device(name));
        found.extend(trims::obstacles(options, there));
    }
    let what = what_changes(options, replays);
    if options.allow_mounted_write {
        return found;
    }
    let is_changed =
        |name: &&PathBuf| !is_replay || replays.iter().any(|(replay, files)| replay.changes(files, name));
    for name in names.iter().filter(is_changed) {
        let is_block = std::fs::metadata(name).is_ok_and(|found| found.file_type().is_block_device());
        if is_block && let Some(reason) = in_use(name) {
            let blamed = if is_replay { "read_iolog" } else { "filename" };
            let name = name.display();
            let message = format!(
                "{what} would change data on {name}, but {reason}; allow_mounted_write=1 overrides this"
            );
            found.push((blamed, message));
        }
    }
    found
}

/// The files that are known by name now: those of a directory are looked for later.
fn names(options: &JobOptions, engine: &EngineInfo, replays: &[Replay]) -> BTreeSet<PathBuf> {
    if !engine.facets.has_local_files() {
        return BTreeSet::new();
    }
    if !replays.is_empty() {
        return replays.iter().flat_map(|(_, files)| files.iter().cloned()).collect();
    }
    if options.opendir.is_some() {
        return BTreeSet::new();
    }
    (0..options.numjobs).flat_map(|clone| files::nominal(options, clone)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::engines::engine;
    use iolite_options::{ReadWrite, SizeValue};

    fn messages(change: impl FnOnce(&mut JobOptions), run: RunOptions) -> Vec<String> {
        let mut options = JobOptions { name: "j".into(), ..JobOptions::default() };
        change(&mut options);
        let engine = engine(&options.ioengine).unwrap();
        job(&options, engine, &run, &[]).into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn readonly_forbids_changes_only() {
        let readonly = || RunOptions { readonly: true, ..RunOptions::default() };
        assert_eq!(messages(|o| o.rw = ReadWrite::RandRead, readonly()), [""; 0]);
        assert_eq!(messages(|o| o.rw = ReadWrite::RandWrite, readonly()).len(), 1);
        // That regular files cannot be trimmed is told as well.
        let trims = messages(|o| o.rw = ReadWrite::Trim, readonly());
        assert!(trims.len() == 2 && trims.iter().any(|text| text.contains("--readonly")), "{trims:?}");
    }

    #[test]
    fn several_mistakes_are_told_together() {
        let found = messages(
            |o| {
                o.iodepth = 0;
                o.time_based = true;
                o.size = Some(SizeValue::Bytes(100));
            },
            RunOptions::default(),
        );
        assert_eq!(found.len(), 3, "{found:?}");
    }
}
