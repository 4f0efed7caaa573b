//! Files before the run: what is there, and what it has to become.

use iolite_options::JobOptions;
use iolite_options::engines::Facets;
use iolite_plan::{FileFacts, FileKind, JobPlan, Layout, LayoutContext, Plan, Problem, WorkerPlan};
use iolite_types::describe_error;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Decides the layout of every worker's files, in order, as if the files of the earlier ones had been made already.
pub fn resolve(plan: &Plan) -> Result<Vec<Layout>, Vec<Problem>> {
    let mut known: HashMap<PathBuf, FileFacts> = HashMap::new();
    let mut layouts = Vec::with_capacity(plan.workers.len());
    let mut problems: Vec<Problem> = Vec::new();
    for worker in &plan.workers {
        let job = plan.job_of(worker);
        match of_worker(job, worker, &mut known) {
            Ok(layout) => layouts.push(layout),
            Err(message) => {
                let problem = Problem { job: job.options.name.clone(), origin: None, message };
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
    }
    if problems.is_empty() { Ok(layouts) } else { Err(problems) }
}

fn of_worker(
    job: &JobPlan,
    worker: &WorkerPlan,
    known: &mut HashMap<PathBuf, FileFacts>,
) -> Result<Layout, String> {
    let options = &job.options;
    let facets = job.engine.facets;
    let mut files = Vec::with_capacity(worker.files.len());
    for path in &worker.files {
        let found = if !facets.has_local_files() {
            FileFacts { kind: FileKind::Regular, size: None }
        } else if let Some(known) = known.get(path) {
            *known
        } else {
            facts(path).map_err(|error| unusable(path, &error))?
        };
        check_kind(options, path, found)?;
        files.push((path.clone(), found));
    }
    if let Some(replay) = &worker.replay {
        let layout = iolite_plan::replay_layout(replay, &files, facets.keeps_data())?;
        return checked(options, layout, facets, known);
    }
    let context = LayoutContext { clone: worker.clone, keeps_data: facets.keeps_data(), seed: worker.seed };
    let layout = iolite_plan::layout(options, context, &files).map_err(|error| error.to_string())?;
    checked(options, layout, facets, known)
}

/// The layout, if its files may be made; then they are known to become what it says.
fn checked(
    options: &JobOptions,
    layout: Layout,
    facets: Facets,
    known: &mut HashMap<PathBuf, FileFacts>,
) -> Result<Layout, String> {
    if facets.has_local_files() {
        for file in &layout.files {
            if !file.exists && !options.allow_file_create {
                return Err(format!("{} does not exist, and allow_file_create=0", file.path.display()));
            }
            // (How large a file becomes that fills the file system is seen when it has.)
            if let (FileKind::Regular, Some(size), false) =
                (file.kind, file.extend_to, iolite_plan::is_endless(options))
            {
                known.insert(file.path.clone(), FileFacts { kind: FileKind::Regular, size: Some(size) });
            }
        }
    }
    Ok(layout)
}

/// `filetype` says what the job expects to find.
fn check_kind(options: &JobOptions, path: &Path, found: FileFacts) -> Result<(), String> {
    use iolite_options::FileType;
    let expected = match options.filetype {
        FileType::None => return Ok(()),
        FileType::File => FileKind::Regular,
        FileType::Block => FileKind::Block,
        FileType::Char => FileKind::Char,
    };
    if found.kind == expected {
        return Ok(());
    }
    Err(format!("filetype={}: {} is not of that type", options.filetype.keyword(), path.display()))
}

fn unusable(path: &Path, error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::EISDIR) => "; name a file in it, or give it as directory=",
        _ => "",
    };
    format!("{}: {}{remedy}", path.display(), describe_error(error))
}

/// What is there under this name.
fn facts(path: &Path) -> io::Result<FileFacts> {
    let kind = iolite_engine::kind_of(path)?;
    let size = match kind {
        FileKind::Char | FileKind::Pipe => None,
        FileKind::Block => Some(iolite_engine::block_device_size(path)?),
        FileKind::Regular => match std::fs::metadata(path) {
            Ok(metadata) => Some(metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        },
    };
    Ok(FileFacts { kind, size })
}
