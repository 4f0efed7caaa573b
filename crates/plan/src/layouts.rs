//! The layouts of all workers' files before the run: which files exist, and which have to be created or extended.

use crate::storages::{self, Namespace, Namespaces, Storages};
use crate::{
    FileFacts, FileKind, FileLayout, JobPlan, Layout, LayoutContext, Plan, Problem, WorkerPlan, is_endless,
};
use crate::{layout, layout_of_names, readonly, replay_layout, zone_conflicts, zones};
use iolite_host::{Access, Machine, Refusal};
use iolite_options::JobOptions;
use iolite_options::engines::{Capability, IoUringCmdOptions, NameAct};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

impl Plan {
    /// The layout of every worker's files, in order. A worker finds the files as the workers before it will have
    /// created them.
    ///
    /// # Errors
    /// Everything that is wrong with the files, for all jobs.
    pub fn layouts(
        &self,
        machine: &dyn Machine,
        storages: &dyn Storages,
    ) -> Result<Vec<Layout>, Vec<Problem>> {
        let mut search = Search {
            plan: self,
            machine,
            storages,
            namespaces: Namespaces::default(),
            known: HashMap::new(),
            made: HashSet::new(),
        };
        let mut layouts = Vec::with_capacity(self.workers.len());
        let mut problems: Vec<Problem> = Vec::new();
        for worker in &self.workers {
            match search.of_worker(worker) {
                Ok(layout) => {
                    let options = &self.job_of(worker).options;
                    let misfit = zone_conflicts::regions(options, &layout);
                    problems.extend(misfit.map(|(option, message)| Problem::of(options, option, message)));
                    layouts.push(layout);
                }
                Err(refusal) => {
                    let errno = refusal.errno.unwrap_or(libc::EINVAL);
                    let problem =
                        Problem { errno, ..Problem::of_job(&self.job_of(worker).name, refusal.words) };
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        if problems.is_empty() { Ok(layouts) } else { Err(problems) }
    }
}

/// The files of all workers, one worker after the other.
struct Search<'a> {
    plan: &'a Plan,
    machine: &'a dyn Machine,
    storages: &'a dyn Storages,
    namespaces: Namespaces,
    /// Files in the state that earlier workers will leave, and the answers of storages.
    known: HashMap<(Namespace, PathBuf), FileFacts>,
    /// Directories that earlier workers will make.
    made: HashSet<PathBuf>,
}

impl Search<'_> {
    fn of_worker(&mut self, worker: &WorkerPlan) -> Result<Layout, Refusal> {
        let job = self.plan.job_of(worker);
        let (options, facets) = (&job.options, job.engine.facets);
        let context = LayoutContext { clone: worker.clone, facets, seed: worker.seed };
        if let Some(name_use) = facets.name_use() {
            if facets.has_local_files() {
                let makes = options.makes_files() || name_use.act != NameAct::LookUp;
                self.check_directories(options, makes, worker.files.in_all_directories())?;
            }
            let mut layout = layout_of_names(options, context, &worker.files, name_use)
                .map_err(|error| invalid(error.to_string()))?;
            if let Some(named) = &mut layout.named {
                named.may_be_made &= !self.plan.readonly;
            }
            return Ok(layout);
        }
        // (If writing creates an object, it need not exist, unless nothing may be created; but its size is needed if no
        // option gives one.)
        let is_guarded = !options.files.allow_file_create && !options.as_fio;
        let asks = facets.needs_files()
            || (facets.can(Capability::MadeByWriting) && (is_guarded || !options.extent.gives_size()));
        let namespace = self.namespaces.of(job).filter(|_| asks);
        let mut files = Vec::with_capacity(worker.files.len());
        for path in worker.files.iter() {
            let found = match namespace {
                Some(namespace) => self.find(job, namespace, &path)?,
                None => FileFacts { kind: FileKind::Regular, size: None },
            };
            check_kind(options, &path, found).map_err(invalid)?;
            files.push((path.into_owned(), found));
        }
        let layout = match &worker.replay {
            Some(replay) => replay_layout(replay, &files, facets.keeps_data()).map_err(invalid)?,
            None => {
                let paths: Vec<&Path> = files.iter().map(|(path, _)| path.as_path()).collect();
                let options = zones::in_bytes(options, &paths, self.machine).map_err(invalid)?;
                let mut layout =
                    layout(&options, context, &files).map_err(|error| invalid(error.to_string()))?;
                zones::fit(&options, &job.engine, &mut layout, self.machine).map_err(invalid)?;
                layout
            }
        };
        check_blocks(job, &layout).map_err(invalid)?;
        match namespace {
            Some(namespace) => {
                let makes = options.makes_files();
                if facets.can(Capability::OnlyWritersMake) && (!makes || options.relies_on_earlier_run()) {
                    // (An interrupted run may have left a shorter file. Its state has the actual size.)
                    let may_be_short = options.loads_state();
                    layout
                        .files
                        .iter()
                        .try_for_each(|file| is_there(file, may_be_short))
                        .map_err(not_there)?;
                }
                // (Where nothing may be made, a missing file is refused as such.)
                let may_make = options.files.allow_file_create && !self.plan.readonly;
                if namespace == Namespace::LOCAL && may_make && !options.relies_on_earlier_run() {
                    let missing = layout.files.iter().filter(|file| !file.exists);
                    let missing = missing.map(|file| Cow::Borrowed(file.path.as_path()));
                    self.check_directories(options, makes, missing)?;
                }
                if options.keeps_lengths() && !options.relies_on_earlier_run() {
                    check_lengths(options, &layout, &files).map_err(too_long)?;
                }
                self.checked(job, layout, namespace)
            }
            None => Ok(layout),
        }
    }

    /// The facts about a name, at present or after earlier workers.
    fn find(&mut self, job: &JobPlan, namespace: Namespace, path: &Path) -> Result<FileFacts, Refusal> {
        let key = (namespace, path.to_owned());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if namespace == Namespace::LOCAL {
            let named =
                |why: Refusal| Refusal { words: format!("{}: {why}", path.display()), errno: why.errno };
            return facts_for(&job.options, path, self.machine).map_err(named);
        }
        self.ask(job, namespace).map_err(invalid)?;
        let untold = || invalid(format!("{}: the storage does not report its size", path.display()));
        self.known.get(&key).copied().ok_or_else(untold)
    }

    /// Asks a storage about all names of a job's workers at once, because asking requires a connection.
    fn ask(&mut self, job: &JobPlan, namespace: Namespace) -> Result<(), String> {
        let names = self.plan.workers[self.plan.clones(job)].iter().flat_map(|worker| worker.files.iter());
        let mut names: Vec<PathBuf> = names
            .map(Cow::into_owned)
            .filter(|name| !self.known.contains_key(&(namespace, name.clone())))
            .collect();
        names.sort();
        names.dedup();
        let found = storages::facts(job, &names, self.storages)?;
        self.known.extend(names.into_iter().map(|name| (namespace, name)).zip(found));
        Ok(())
    }

    /// Checks that a job that only reads finds the directories of its files: a path with a typing error would be
    /// measured on another disk.
    fn check_directories<'a>(
        &mut self,
        options: &JobOptions,
        makes: bool,
        missing: impl Iterator<Item = Cow<'a, Path>>,
    ) -> Result<(), Refusal> {
        let allowed = makes || options.as_fio;
        let mut checked = PathBuf::new();
        for path in missing {
            let Some(directory) = path.parent() else { continue };
            // Successive names are mostly in the same directory.
            if directory == checked {
                continue;
            }
            directory.clone_into(&mut checked);
            for absent in self.machine.missing_directories(&path) {
                if !self.made.contains(&absent) && !allowed {
                    let (path, absent) = (path.display(), absent.display());
                    return Err(not_there(format!(
                        "{path}: there is no directory {absent}, and a job that only reads makes none; correct the name, \
                         or make it (mkdir -p {absent})"
                    )));
                }
                self.made.insert(absent);
            }
        }
        Ok(())
    }

    /// The layout, if its files may be created. Later workers find the files in that state.
    fn checked(&mut self, job: &JobPlan, layout: Layout, namespace: Namespace) -> Result<Layout, Refusal> {
        let options = &*job.options;
        for file in &layout.files {
            let found = self.known.get(&(namespace, file.path.clone())).and_then(|found| found.size);
            fits(job, file, found).map_err(invalid)?;
            if !file.exists && !options.files.allow_file_create {
                let words = format!("{} does not exist, and allow_file_create=0", file.path.display());
                return Err(Refusal { errno: Some(libc::ENOENT), words });
            }
            // Files of an earlier run are not laid out.
            if self.plan.readonly && !options.relies_on_earlier_run() {
                readonly::check(file).map_err(|words| Refusal { errno: Some(libc::EPERM), words })?;
            }
            // (The size of a file that fills the file system is known only afterwards.)
            if let (FileKind::Regular, Some(size), false) = (file.kind, file.extend_to, is_endless(options)) {
                let made = FileFacts { kind: FileKind::Regular, size: Some(size) };
                self.known.insert((namespace, file.path.clone()), made);
            }
        }
        Ok(layout)
    }
}

/// Checks that no file would become longer.
fn check_lengths(
    options: &JobOptions,
    layout: &Layout,
    found: &[(PathBuf, FileFacts)],
) -> Result<(), String> {
    // The layout has the files in the same order, and may leave some out.
    let mut found = found.iter();
    for file in layout.files.iter().filter(|file| file.kind == FileKind::Regular && file.exists) {
        let size = found.find(|(path, _)| *path == file.path).and_then(|(_, facts)| facts.size).unwrap_or(0);
        let (path, end) = (file.path.display(), file.offset.saturating_add(file.length));
        if end > size && is_endless(options) {
            return Err(format!(
                "{path} would be filled until the file system is full, and allow_file_create=0"
            ));
        }
        if end > size {
            return Err(format!(
                "{path} has {size} bytes, and the job needs {end}, but allow_file_create=0 keeps files as long as they \
                 are; use a smaller offset= or size="
            ));
        }
    }
    let (files, schedule) = (&options.files, &options.schedule);
    if files.unlink_each_loop && (schedule.loops > 1 || schedule.time_based) {
        return Err(
            "unlink_each_loop=1 has files made again for each pass, and allow_file_create=0".to_owned()
        );
    }
    Ok(())
}

/// Files on a server must exist, and be long enough, for a job that only reads.
fn is_there(file: &FileLayout, may_be_short: bool) -> Result<(), String> {
    let path = file.path.display();
    let remedy = "a job that only reads makes nothing on a server: have a section with rw=write make it first, \
                  or create_only=1";
    match file.extend_to {
        None => Ok(()),
        Some(_) if !file.exists => Err(format!("{path} does not exist; {remedy}")),
        Some(_) if may_be_short => Ok(()),
        Some(size) => Err(format!(
            "{path} is shorter than the {size} bytes that are needed; {remedy}, or use a smaller size="
        )),
    }
}

/// A file of a fixed size must be large enough.
fn fits(job: &JobPlan, file: &FileLayout, found: Option<u64>) -> Result<(), String> {
    let (Some(needed), true) = (file.extend_to, job.engine.facets.can(Capability::FixedSize)) else {
        return Ok(());
    };
    let (path, size) = (file.path.display(), found.unwrap_or(0));
    let command = job.options.engine.resized_by(&file.path, needed);
    let command = command.map_or_else(String::new, |command| format!(", or: {command}"));
    Err(format!("{path} has {size} bytes, and the job needs {needed}; use a smaller size={command}"))
}

/// The refusal of a missing file.
fn not_there(words: String) -> Refusal {
    Refusal { errno: Some(libc::ENOENT), words }
}

/// The refusal to make a file longer, or to make it again.
fn too_long(words: String) -> Refusal {
    Refusal { errno: Some(libc::EPERM), words }
}

/// The refusal of a request by this program, not by the system.
fn invalid(words: String) -> Refusal {
    Refusal { errno: Some(libc::EINVAL), words }
}

/// Checks that the file has the type that the job expects (`filetype`).
fn check_kind(options: &JobOptions, path: &Path, found: FileFacts) -> Result<(), String> {
    use iolite_options::FileType;
    let expected = match options.files.filetype {
        FileType::None => return Ok(()),
        FileType::File => FileKind::Regular,
        FileType::Block => FileKind::Block,
        FileType::Char => FileKind::Char,
    };
    if found.kind == expected {
        return Ok(());
    }
    Err(format!("filetype={}: {} is not of that type", options.files.filetype.keyword(), path.display()))
}

/// If blocks are objects, a file is created and removed block by block from its beginning: a region that does not begin
/// at a block would consist of other objects.
fn check_blocks(job: &JobPlan, layout: &Layout) -> Result<(), String> {
    let (files, block) = (&job.options.files, job.storage_config().block);
    let by_blocks = files.removal().is_some() || job.engine.facets.needs_files();
    if !job.options.engine.blocks_are_objects() || !by_blocks || block == 0 {
        return Ok(());
    }
    match layout.files.iter().find(|file| !file.offset.is_multiple_of(block)) {
        Some(file) => Err(format!(
            "offset={}: each block is an object, and those that are made before a job or removed after it (http_create, \
             unlink) begin at multiples of bs={block}; use such an offset",
            file.offset
        )),
        None => Ok(()),
    }
}

/// The facts about a name, or the reason why it cannot be used.
fn facts(path: &Path, machine: &dyn Machine) -> Result<FileFacts, Refusal> {
    let (kind, size) = machine.usable_file(path).map_err(|refusal| match refusal.errno {
        Some(libc::EISDIR) => {
            Refusal { words: format!("{refusal}; name a file in it, or give it as directory="), ..refusal }
        }
        _ => refusal,
    })?;
    Ok(FileFacts { kind, size })
}

/// The same for this job, whose commands may transfer metadata with each block.
fn facts_for(options: &JobOptions, path: &Path, machine: &dyn Machine) -> Result<FileFacts, Refusal> {
    let found = facts(path, machine)?;
    let Some(own) = options.engine.of::<IoUringCmdOptions>() else { return Ok(found) };
    let Some(namespace) = machine.namespace(path)? else { return Ok(found) };
    if options.pattern.rw.changes() {
        machine.access(path, Access::Write).map_err(Refusal::of_commands)?;
    }
    let block = u64::from(namespace.format.in_buffer(own.pi_act));
    Ok(FileFacts { size: Some(namespace.blocks.saturating_mul(block)), ..found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::{Format, MadeUp};
    use iolite_options::{FileOptions, FileType, ReadWrite, RunOptions, SizeValue};

    fn job(file: &str, change: impl FnOnce(&mut JobOptions)) -> JobOptions {
        let mut options = JobOptions {
            name: "j".into(),
            files: FileOptions { filename: vec![file.into()], ..FileOptions::default() },
            ..JobOptions::default()
        };
        change(&mut options);
        options
    }

    fn layouts(jobs: Vec<JobOptions>, machine: &MadeUp) -> Result<Vec<Layout>, Vec<String>> {
        let plan = Plan::build(jobs, &RunOptions::default(), machine).unwrap();
        let layouts = plan.layouts(machine, &storages::NoStorages);
        layouts.map_err(|problems| problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn a_later_job_knows_the_files_of_an_earlier_one() {
        let writes = job("/data/new", |o| {
            (o.pattern.rw, o.extent.size) = (ReadWrite::Write, Some(SizeValue::Bytes(1 << 20)))
        });
        let half = job("/data/new", |o| o.extent.size = Some(SizeValue::Percent(50)));
        let found = layouts(vec![writes, half.clone()], &MadeUp::new()).unwrap();
        assert_eq!((found[0].files[0].extend_to, found[1].files[0].extend_to), (Some(1 << 20), None));
        assert_eq!((found[0].files[0].length, found[1].files[0].length), (1 << 20, 1 << 19));
        let alone = layouts(vec![half], &MadeUp::new()).unwrap_err();
        assert!(alone[0].starts_with("size=50% is a share of the size of /data/new"), "{alone:?}");
    }

    #[test]
    fn a_device_has_the_size_that_it_has() {
        let machine = MadeUp::new().with_block_device("/dev/big", 100 << 40);
        let found = layouts(vec![job("/dev/big", |o| o.extent.offset = SizeValue::Bytes(1 << 40))], &machine)
            .unwrap();
        let file = &found[0].files[0];
        assert_eq!((file.kind, file.offset, file.length), (FileKind::Block, 1 << 40, 99 << 40));
        assert!(file.exists && file.extend_to.is_none());
    }

    /// Its node may be read, so its size is known; only the job's writes would fail.
    #[test]
    fn forbidden_commands_are_reported_with_the_remedy() {
        let format = Format { data: 4096, metadata: 0, extended: false, protection: None };
        let namespace =
            iolite_host::Namespace { number: 1, blocks: 1 << 20, format, optional: 0, zones: None };
        let machine = MadeUp::new().with_namespace("/dev/ng0n1", namespace).read_only("/dev/ng0n1");
        let of = |rw: ReadWrite| {
            let mut job = job("/dev/ng0n1", |options| options.pattern.rw = rw);
            job.choose_engine(iolite_options::engines::engine("io_uring_cmd").unwrap());
            layouts(vec![job], &machine)
        };
        for rw in [ReadWrite::Write, ReadWrite::RandRw, ReadWrite::Trim] {
            let told = of(rw).unwrap_err();
            assert!(told[0].starts_with("/dev/ng0n1: Permission denied: the kernel passes"), "{told:?}");
            assert!(
                told[0].ends_with(
                    "since Linux 6.2 also for whoever may read and, to change data, write its node"
                )
            );
        }
        assert_eq!(of(ReadWrite::Read).unwrap()[0].files[0].length, 4096 << 20);
    }

    #[test]
    fn unusable_files_are_reported_with_their_names() {
        let machine =
            MadeUp::new().with_directory("/data").refused("/secret", libc::EACCES).with_file("/f", 0);
        let refused = |file, change: &dyn Fn(&mut JobOptions)| {
            layouts(vec![job(file, |o| change(o))], &machine).unwrap_err()
        };
        let remedy = "/data: Is a directory; name a file in it, or give it as directory=";
        assert_eq!(refused("/data", &|_| ()), [remedy]);
        assert_eq!(refused("/secret", &|_| ()), ["/secret: Permission denied"]);
        let small = |o: &mut JobOptions| o.extent.size = Some(SizeValue::Bytes(4096));
        let no_files = |o: &mut JobOptions| {
            small(o);
            o.files.allow_file_create = false;
        };
        assert_eq!(refused("/new", &no_files), ["/new does not exist, and allow_file_create=0"]);
        let device = |o: &mut JobOptions| {
            small(o);
            o.files.filetype = FileType::Block;
        };
        assert_eq!(refused("/f", &device), ["filetype=block: /f is not of that type"]);
    }

    #[test]
    fn under_readonly_files_are_used_as_they_are() {
        let machine = MadeUp::new().with_file("/f", 9).with_file("/large", 1 << 20);
        let found = |file, change: &dyn Fn(&mut JobOptions)| {
            let job = job(file, |o| {
                o.extent.size = Some(SizeValue::Bytes(1 << 20));
                change(o);
            });
            let run = RunOptions { readonly: true, ..RunOptions::default() };
            let plan = Plan::build(vec![job], &run, &machine).unwrap();
            let layouts = plan.layouts(&machine, &storages::NoStorages);
            layouts.err().map(|problems| problems[0].message.clone())
        };
        assert_eq!(found("/large", &|_| ()), None);
        let extended = "/f would be extended to 1048576 bytes, and --readonly forbids that; a smaller size= leaves it as \
                        it is";
        assert_eq!(found("/f", &|_| ()).unwrap(), extended);
        let missing = "/new does not exist, and --readonly forbids that it is made";
        assert_eq!(found("/new", &|_| ()).unwrap(), missing);
        assert_eq!(found("/new", &|o| o.files.create_on_open = true).unwrap(), missing);
        assert_eq!(found("/new", &|o| o.ioengine = "null".into()), None);
    }

    #[test]
    fn clones_with_the_same_problem_report_it_once() {
        let clones = job("/secret", |o| o.schedule.numjobs = 100);
        let found = layouts(vec![clones], &MadeUp::new().refused("/secret", libc::EIO)).unwrap_err();
        assert_eq!(found, ["/secret: Input/output error"]);
    }
}
