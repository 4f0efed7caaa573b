//! Finds files that the run needs but would destroy: traces that it replays, and states. Also data that its additional
//! files would overwrite: logs, outputs of programs, the donor of `e4defrag`.

use crate::commands::{When, output_file};
use crate::verification::{StateUse, state_of};
use crate::{FileKind, JobPlan, Layout, Plan, Problem, ReplayPlan, WorkerPlan};
use iolite_host::{FileKey, Machine};
use iolite_options::JobOptions;
use iolite_options::engines::{E4defragOptions, ExecOptions};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A file that the run needs unchanged.
enum Own<'a> {
    Trace(&'a ReplayPlan),
    State { path: PathBuf, job: &'a str, used: StateUse },
}

impl Own<'_> {
    /// Whether a job's file must not be this file.
    fn minds(&self, is_changed: bool) -> bool {
        match self {
            // A state that is kept replaces the file at its path.
            Own::State { used: StateUse::Kept, .. } => true,
            Own::Trace(_) | Own::State { used: StateUse::Loaded, .. } => is_changed,
        }
    }

    fn path(&self) -> &Path {
        match self {
            Own::Trace(replay) => &replay.name,
            Own::State { path, .. } => path,
        }
    }

    fn what(&self) -> String {
        match self {
            Own::Trace(replay) => {
                format!("the trace that is replayed (read_iolog={})", replay.name.display())
            }
            Own::State { path, job, .. } => format!("the verify state of job {job} ({})", path.display()),
        }
    }
}

/// A file that a job creates or replaces in addition to its data.
struct Beside<'a> {
    job: &'a JobPlan,
    /// The option that asks for it.
    option: &'static str,
    path: PathBuf,
    kind: Kind,
}

/// The kind of such a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Log,
    Output,
    Donor,
}

impl Beside<'_> {
    /// The problem if this file is also `what`.
    fn refusal(&self, what: &str) -> Problem {
        let (option, path) = (self.option, self.path.display());
        let message = match self.kind {
            Kind::Log => format!("{option}={path}: the log would go into {what}; give another name"),
            Kind::Output => {
                format!(
                    "{option}: what the program prints would go into {path}, which is {what}; rename the job"
                )
            }
            Kind::Donor => {
                format!("{option}={path}: what the donor holds is lost, and it is {what}; give another name")
            }
        };
        Problem::of(&self.job.options, option, message)
    }

    fn what(&self) -> String {
        let (option, path, job) = (self.option, self.path.display(), &self.job.options.name);
        match self.kind {
            Kind::Log => format!("a log of job {job} ({option}={path})"),
            Kind::Output => format!("the output of a program of job {job} ({option})"),
            Kind::Donor => format!("the donor of job {job} ({option}={path})"),
        }
    }
}

/// The jobs that would change a file that the run needs unchanged. (The files of a live replay are checked when the
/// trace names them.)
pub fn overwritten(plan: &Plan, layouts: &[Layout], machine: &dyn Machine) -> Vec<Problem> {
    let own = own_files(plan, machine);
    let mut found = beside_data(plan, layouts, &own, machine);
    if own.is_empty() {
        return found;
    }
    let places: Vec<_> = own.values().map(|own| machine.place(own.path())).collect();
    for worker in plan.workers.iter().filter(|worker| plan.job_of(worker).engine.facets.has_local_files()) {
        for (path, is_changed) in files(plan, worker, &layouts[worker.index], Some(&places)) {
            let own = own.get(&machine.key(&path));
            found
                .extend(own.filter(|own| own.minds(is_changed)).map(|own| problem(plan, worker, &path, own)));
        }
    }
    // Usually all clones have the same problem.
    found.dedup();
    found
}

fn own_files<'a>(plan: &'a Plan, machine: &dyn Machine) -> HashMap<FileKey, Own<'a>> {
    let replays = plan.workers.iter().filter_map(|worker| worker.replay.as_deref());
    let traces = replays
        .filter(|replay| !iolite_trace::is_stream(&replay.name))
        .map(|replay| (machine.key(&replay.name), Own::Trace(replay)));
    let states = plan.workers.iter().filter_map(|worker| {
        let (path, used) = state_of(plan, worker)?;
        let job = &plan.job_of(worker).options.name;
        Some((machine.key(&path), Own::State { path, job, used }))
    });
    states.chain(traces).collect()
}

/// The files of a worker, all or only those that may lie at one of these places, and whether it changes them (writes,
/// trims, removes or extends).
fn files<'a>(
    plan: &Plan,
    worker: &'a WorkerPlan,
    layout: &'a Layout,
    places: Option<&'a [PathBuf]>,
) -> impl Iterator<Item = (Cow<'a, Path>, bool)> {
    let job = plan.job_of(worker);
    let changes_all = job.options.files.removal().is_some() || job.engine.facets.removes();
    let changes = job.options.pattern.rw.changes();
    let is_changed = move |index: usize| match worker.replay.as_deref() {
        Some(replay) => changes_all || replay.needs.get(index).is_some_and(|needs| needs.changes()),
        None => changes_all || changes,
    };
    let laid_out = layout.files.iter().enumerate().map(move |(index, file)| {
        (Cow::Borrowed(file.path.as_path()), file.extend_to.is_some() || is_changed(index))
    });
    let named = layout.named.iter().flat_map(move |named| match places {
        Some(places) => named.names.near(places),
        None => Box::new(named.names.iter()),
    });
    laid_out.chain(named.map(move |name| (name, changes_all)))
}

/// Logs and the like that would go into files that the run needs, or into the data of a job.
fn beside_data(
    plan: &Plan,
    layouts: &[Layout],
    own: &HashMap<FileKey, Own>,
    machine: &dyn Machine,
) -> Vec<Problem> {
    let beside: Vec<_> = all_beside(plan).map(|file| (machine.key(&file.path), file)).collect();
    if beside.is_empty() {
        return Vec::new();
    }
    let places: Vec<_> = beside.iter().map(|(_, file)| machine.place(&file.path)).collect();
    let data = data(plan, layouts, &beside.iter().map(|(key, _)| key).collect(), &places, machine);
    let of_file = |(key, file): &(FileKey, Beside)| {
        let what = match (own.get(key), data.get(key)) {
            (Some(Own::Trace(_)), None)
                if file.kind == Kind::Log && is_made_before(plan, file.job, key, machine) =>
            {
                return None;
            }
            (Some(own), _) => own.what(),
            (None, Some(name)) => format!("the data of job {name}"),
            (None, None) => {
                let is_met = |(other, met): &&(FileKey, Beside)| {
                    file.kind == Kind::Donor && met.kind != Kind::Donor && other == key
                };
                beside.iter().find(is_met)?.1.what()
            }
        };
        Some(file.refusal(&what))
    };
    let mut found: Vec<Problem> = beside.iter().filter_map(of_file).collect();
    found.dedup();
    found
}

/// All files that workers write in addition to their data.
fn all_beside(plan: &Plan) -> impl Iterator<Item = Beside<'_>> {
    plan.workers.iter().flat_map(|worker| {
        let job = plan.job_of(worker);
        let of_kind =
            move |kind| move |(option, path): (&'static str, PathBuf)| Beside { job, option, path, kind };
        let donor =
            job.options.engine.of::<E4defragOptions>().map(|own| ("donorname", (&own.donorname).into()));
        logs(job, worker)
            .map(of_kind(Kind::Log))
            .chain(outputs(job).map(of_kind(Kind::Output)))
            .chain(donor.into_iter().map(of_kind(Kind::Donor)))
    })
}

/// The files that jobs create in addition to their data, with the options that ask for them: logs, outputs of programs,
/// donors.
pub fn made(plan: &Plan) -> impl Iterator<Item = (&JobOptions, &'static str, PathBuf)> {
    all_beside(plan).map(|file| (&*file.job.options, file.option, file.path))
}

/// The files and devices with data that the run would overwrite, trim, remove, replace or extend: regular files that
/// are not empty, and devices. Each once, with its size if that is known.
pub fn holding(plan: &Plan, layouts: &[Layout], machine: &dyn Machine) -> Vec<(PathBuf, Option<u64>)> {
    let mut known = HashSet::new();
    let mut found = Vec::new();
    let mut look = |path: &Path| {
        if !known.insert(machine.key(path)) {
            return;
        }
        // A file that cannot be examined cannot be written either.
        match machine.usable_file(path) {
            Ok((FileKind::Regular, None | Some(0)) | (FileKind::Pipe, _)) | Err(_) => {}
            Ok((FileKind::Char, None)) if !keeps_data(machine, path) => {}
            Ok((_, size)) => found.push((path.to_owned(), size)),
        }
    };
    for worker in plan.workers.iter().filter(|worker| plan.job_of(worker).engine.facets.has_local_files()) {
        let changed = files(plan, worker, &layouts[worker.index], None).filter(|(_, is_changed)| *is_changed);
        changed.for_each(|(path, _)| look(&path));
    }
    // Logs have their own names, and each run replaces them.
    let made = all_beside(plan).filter(|file| file.kind != Kind::Log || file.option == "write_iolog");
    made.for_each(|file| look(&file.path));
    plan.jobs
        .iter()
        .filter_map(|job| job.options.buffers.mem_file.as_ref())
        .for_each(|path| look(Path::new(path)));
    found
}

/// The first files and block devices of the run, at most so many: their places, without links, and whether the run makes
/// or changes them.
pub fn used(plan: &Plan, layouts: &[Layout], machine: &dyn Machine, most: usize) -> BTreeMap<PathBuf, bool> {
    let mut used = BTreeMap::new();
    let local = plan.workers.iter().filter(|worker| plan.job_of(worker).engine.facets.has_local_files());
    let all = local.flat_map(|worker| files(plan, worker, &layouts[worker.index], None));
    let holds_data = |path: &Path| {
        let found = machine.usable_file(path);
        found.is_ok_and(|(kind, _)| matches!(kind, FileKind::Regular | FileKind::Block))
    };
    for (path, is_changed) in all.take(most).filter(|(path, _)| holds_data(path)) {
        *used.entry(machine.place(&path)).or_default() |= is_changed;
    }
    used
}

/// Whether a character device is one that holds data.
fn keeps_data(machine: &dyn Machine, device: &Path) -> bool {
    machine.file(device).ok().flatten().is_some_and(|found| found.class.is_some())
}

/// The logs of a worker, with the options that ask for them.
fn logs(job: &JobPlan, worker: &WorkerPlan) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let recorded = job.options.replay.write_iolog.as_ref().map(|path| ("write_iolog", PathBuf::from(path)));
    recorded.into_iter().chain(crate::logs::asked(&job.options, worker.index))
}

/// The output files of the programs that a job starts, with their options.
fn outputs(job: &JobPlan) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let options = &job.options;
    let of_command = |option, command: &Option<String>, when| {
        command.as_ref().map(|_| (option, PathBuf::from(output_file(&options.name, when))))
    };
    let commands = [
        of_command("exec_prerun", &options.schedule.exec_prerun, When::Before),
        of_command("exec_postrun", &options.schedule.exec_postrun, When::After),
    ];
    let own = options.engine.of::<ExecOptions>();
    let programs = own.and_then(|own| own.outputs(&job.auxiliary, &options.name));
    commands.into_iter().flatten().chain(programs.into_iter().flatten().map(|path| ("std_redirect", path)))
}

/// Those of these files that hold data of jobs, with the names of the jobs.
fn data<'a>(
    plan: &'a Plan,
    layouts: &[Layout],
    asked: &HashSet<&FileKey>,
    places: &[PathBuf],
    machine: &dyn Machine,
) -> HashMap<FileKey, &'a str> {
    let mut data = HashMap::new();
    for worker in plan.workers.iter().filter(|worker| plan.job_of(worker).engine.facets.has_local_files()) {
        let name = plan.job_of(worker).options.name.as_str();
        let Layout { files, named, .. } = &layouts[worker.index];
        // A device that stores nothing (such as /dev/null) may take both.
        let kept = files.iter().filter(|file| matches!(file.kind, FileKind::Regular | FileKind::Block));
        let kept = kept.map(|file| machine.key(&file.path));
        let named = named.iter().flat_map(|named| named.names.near(places)).map(|name| machine.key(&name));
        data.extend(kept.chain(named).filter(|key| asked.contains(key)).map(|key| (key, name)));
    }
    data
}

/// Describes the file that a report or another file at this path would destroy: one that the run needs, or a block
/// device; `None` = none. (A run that is refused may have no layouts.)
pub fn at(plan: &Plan, path: &Path, machine: &dyn Machine) -> Option<String> {
    let key = machine.key(path);
    if let Some(own) = own_files(plan, machine).get(&key) {
        return Some(own.what());
    }
    // A device that stores nothing (such as /dev/null) may take both.
    if machine.usable_file(path).is_ok_and(|(kind, _)| matches!(kind, FileKind::Char | FileKind::Pipe)) {
        return None;
    }
    if let Some(file) = all_beside(plan).find(|file| machine.key(&file.path) == key) {
        return Some(file.what());
    }
    let places = [machine.place(path)];
    let is_here = |worker: &&WorkerPlan| worker.files.near(&places).any(|file| machine.key(&file) == key);
    let local = plan.workers.iter().filter(|worker| plan.job_of(worker).engine.facets.has_local_files());
    if let Some(owner) = local.clone().find(is_here) {
        return Some(format!("the data of job {}", plan.job_of(owner).options.name));
    }
    let is_block = machine.file(path).ok().flatten().is_some_and(|found| found.is_block_device());
    is_block.then(|| "a block device".to_owned())
}

/// Whether other jobs replay this recording only after the job has ended.
fn is_made_before(plan: &Plan, job: &JobPlan, trace: &FileKey, machine: &dyn Machine) -> bool {
    plan.workers.iter().all(|worker| match worker.replay.as_deref() {
        Some(replay) if machine.key(&replay.name) == *trace => {
            replay.is_live && plan.has_ended_before(job, worker)
        }
        _ => true,
    })
}

fn problem(plan: &Plan, worker: &WorkerPlan, path: &Path, own: &Own) -> Problem {
    let options = &plan.job_of(worker).options;
    let blamed = match (&worker.replay, &options.replay.replay_redirect) {
        (Some(_), Some(_)) => "replay_redirect",
        (Some(_), None) => "read_iolog",
        (None, _) => "filename",
    };
    let remedy = match (&worker.replay, &options.replay.replay_redirect, own) {
        (_, _, Own::State { .. }) => "give another name, or keep states elsewhere (--aux-path)",
        (Some(_), None, _) => "send it elsewhere with replay_redirect or directory",
        _ => "give another name",
    };
    let (path, what) = (path.display(), own.what());
    let message = match own {
        Own::State { used: StateUse::Kept, .. } => format!("{path}: the run writes {what} there; {remedy}"),
        Own::Trace(_) | Own::State { .. } => format!("{path} would be changed, and it is {what}; {remedy}"),
    };
    Problem::of(options, blamed, message)
}
