//! The state of a verified job, while it is written and when it is loaded.

use super::check::Saved as SavedExpectation;
use super::setup;
use iolite_options::engines::{Capability, engine};
use iolite_options::{JobOptions, PatternPiece, SyncMode, VerifyPolicy};
use iolite_plan::{Layout, Plan, WorkerPlan};
use iolite_types::Direction;
use iolite_verify::state::{
    Covered, Policy, Recorder, Saved, SavedFile, Setup, StateError, StateFile, StateImprint,
};
use iolite_workload::Io;
use iolite_workload::history::{Need, Written, is_uniform};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no state of some workloads.
pub const NO_TABLE: &str = "writes of any size at any place, or to a file without an end, cannot be kept track of; use block \
                            sizes with a common factor, and give a size";

/// The name of a worker's state file.
pub fn path(directory: &Path, job: &str, place: u64) -> PathBuf {
    directory.join(format!("local-{}-{place}-verify.state", job.replace('/', ".")))
}

/// What a job does with a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateUse {
    /// It keeps one.
    Kept,
    /// It checks what one demands.
    Loaded,
}

/// The state file of a worker, if it has one.
pub fn of_worker(plan: &Plan, worker: &WorkerPlan) -> Option<(PathBuf, StateUse)> {
    let job = plan.job_of(worker);
    let options = &job.options;
    let used =
        match (setup::loads_state(options), setup::keeps_state(options, job.engine.facets.keeps_data())) {
            _ if options.create_only => return None,
            (true, _) => StateUse::Loaded,
            (false, true) => StateUse::Kept,
            (false, false) => return None,
        };
    Some((path(&job.auxiliary, &options.name, worker.place), used))
}

/// Puts the states of all workers on stable storage; what went wrong.
pub fn sync_all(plan: &Plan) -> Vec<String> {
    let saving = plan.workers.iter().filter(|worker| {
        let options = &plan.job_of(worker).options;
        options.verification.is_on() && options.verification.verify_state_save && options.rw.writes()
    });
    let sync = |worker: &WorkerPlan| {
        let job = plan.job_of(worker);
        let path = path(&job.auxiliary, &job.options.name, worker.place);
        match File::open(&path).and_then(|file| file.sync_all()) {
            // One that has not begun, or was verified, has none.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Some(format!("{}: {error}", path.display()))
            }
            _ => None,
        }
    };
    saving.filter_map(sync).collect()
}

/// The state that is kept while a job writes.
#[derive(Debug)]
pub struct State {
    recorder: Recorder,
    /// What the flushes in flight will cover, by unit.
    flushes: Vec<Option<(u32, Covered)>>,
}

impl State {
    /// Begins a state file. `flushes`: the workload has some of its own. `None`: sizes and offsets have so little in common that there is no table of blocks.
    pub fn begin(
        path: &Path,
        options: &JobOptions,
        workload: &iolite_workload::Spec,
        (layout, flushes): (&Layout, bool),
        (seed, number): (u64, u16),
    ) -> io::Result<Option<State>> {
        let Some(block) = State::block(workload) else { return Ok(None) };
        let files = layout.files.iter().map(|file| StateFile {
            name: file.path.display().to_string(),
            offset: file.offset,
            length: file.length,
        });
        let depth = options.iodepth.max(1);
        let setup = Setup {
            program: concat!("iolite-", env!("CARGO_PKG_VERSION")).to_owned(),
            job: options.name.clone(),
            number,
            kind: options.verification.verify.keyword().to_owned(),
            began: std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs(),
            seed,
            block,
            depth,
            is_uniform: is_uniform(workload),
            is_durable: options.sync != SyncMode::None,
            is_copied: engine(&options.ioengine)
                .is_none_or(|engine| engine.facets.can(Capability::CopyIntoFile)),
            has_flushes: flushes || options.fsync > 0 || options.fdatasync > 0 || options.end_fsync,
            imprint: imprint(options, workload),
            files: files.collect(),
        };
        let recorder = Recorder::create(path, &setup)?;
        Ok(Some(State { recorder, flushes: vec![None; depth as usize] }))
    }

    /// Whether the writes of a workload can be kept in a table of blocks.
    pub fn has_table(workload: &iolite_workload::Spec) -> bool {
        State::block(workload).is_some()
    }

    /// Bytes of a block of the table.
    fn block(workload: &iolite_workload::Spec) -> Option<u64> {
        match Need::of(workload, false) {
            Need::Map(block) => Some(block),
            Need::Replay | Need::Extents => None,
        }
    }

    /// A write is about to be issued with this unit.
    pub fn issue(&self, unit: u32, written: &Written) {
        let Io { file, offset, length, .. } = written.io;
        self.recorder.issue(unit, written.number, file, offset, length);
    }

    /// It has been done.
    pub fn acknowledge(&self, unit: u32) {
        self.recorder.acknowledge(unit);
    }

    /// It has failed.
    pub fn failed(&self, unit: u32) {
        self.recorder.failed(unit);
    }

    /// What is here is about to be trimmed.
    pub fn forget(&self, io: &Io) {
        self.recorder.forget(io.file, io.offset, io.length);
    }

    /// A flush of this file is about to be issued with this unit.
    pub fn flush(&mut self, unit: u32, file: u32) {
        self.flushes[unit as usize] = Some((file, self.recorder.flush(file)));
    }

    /// The flush of this unit is over.
    pub fn flushed(&mut self, unit: u32, done: bool) {
        if let Some((file, covered)) = self.flushes[unit as usize].take()
            && done
        {
            self.recorder.flushed(file, covered);
        }
    }

    /// A file has been flushed, with nothing in flight.
    pub fn flushed_file(&mut self, file: u32) {
        let covered = self.recorder.flush(file);
        self.recorder.flushed(file, covered);
    }

    /// Everything has been checked.
    pub fn remove(self) -> io::Result<()> {
        self.recorder.remove()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.recorder.bytes()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.recorder.path()
    }
}

/// Why a state cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("{0}: {1}")]
    State(PathBuf, #[source] StateError),
    /// There is none.
    #[error("{path}: there is no such state; {hint}")]
    Missing {
        /// Where it should be.
        path: PathBuf,
        /// What is there in its place, and what helps.
        hint: String,
    },
    /// It is that of another job.
    #[error("{path}: is the state of {option}={found}, and the job has {wanted}")]
    Other {
        /// The file.
        path: PathBuf,
        /// What is different.
        option: &'static str,
        /// In the state.
        found: String,
        /// In the job.
        wanted: String,
    },
    /// The job has no buffers for what was written.
    #[error("{path}: has writes of {length} bytes, and the job has blocks of {largest}; give it the same bs")]
    Length {
        /// The file.
        path: PathBuf,
        /// The largest write.
        length: u64,
        /// The job's largest block.
        largest: u64,
    },
}

/// What to do about a state that is not there.
fn hint(path: &Path) -> String {
    /// So many names are told.
    const MOST: usize = 8;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut others: Vec<String> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("local-") && name.ends_with("-verify.state"))
        .collect();
    if others.is_empty() {
        return format!(
            "nor is that of another job in {}. --aux-path names the directory that the interrupted run kept it in; a job \
             that has read everything back leaves none",
            directory.display()
        );
    }
    others.sort();
    let more = if others.len() > MOST { ", …" } else { "" };
    others.truncate(MOST);
    format!(
        "there are those of other jobs: {}{more}. A state is called local-NAME-NUMBER-verify.state: give this job the name \
         of the one that wrote, and as many jobs and clones before it (those that --section leaves out count); `iolite \
         verify-state FILE` tells whose one is",
        others.join(", ")
    )
}

/// What the blocks of a job are like; `None` = it does not verify.
fn imprint(options: &JobOptions, workload: &iolite_workload::Spec) -> Option<StateImprint> {
    let spec = setup::spec_of(options, workload)?;
    Some(StateImprint {
        interval: if spec.kind.has_header() { spec.interval as u64 } else { 0 },
        offset: if spec.kind.has_header() { spec.offset as u64 } else { 0 },
        pattern: pattern_words(&options.verification.verify_pattern),
        pattern_interval: spec.pattern_interval as u64,
    })
}

/// A pattern as it can be told: in hexadecimal, of a long one the digest.
fn pattern_words(pieces: &[PatternPiece]) -> String {
    /// Longer ones are known by their digest.
    const LONGEST: usize = 128;
    let mut words = String::new();
    for piece in pieces {
        match piece {
            PatternPiece::Offset => words.push_str("%o"),
            PatternPiece::Bytes(bytes) => {
                bytes.iter().for_each(|byte| words.push_str(&format!("{byte:02x}")))
            }
        }
    }
    match words.len() {
        0 => words,
        length if length > LONGEST => format!("XXH3:{:016x}", xxhash_rust::xxh3::xxh3_64(words.as_bytes())),
        _ => format!("0x{words}"),
    }
}

/// What of the blocks of a state is not like those of a job: the option, its value in the state, and in the job. (An
/// interval matters where a block of one of these lengths is cut otherwise.)
fn difference(
    of_state: &StateImprint,
    of_job: &StateImprint,
    mut lengths: impl Iterator<Item = u64>,
) -> Option<(&'static str, String, String)> {
    let cut = |interval: u64, length: u64| match interval {
        interval if interval > 0 && length.is_multiple_of(interval) => interval,
        _ => length,
    };
    let told = |pattern: &str| if pattern.is_empty() { "(none)".to_owned() } else { pattern.to_owned() };
    let numbers = |option, one: u64, other: u64| Some((option, one.to_string(), other.to_string()));
    let (one, other) = (of_state, of_job);
    if let Some(length) = lengths.find(|&length| cut(one.interval, length) != cut(other.interval, length)) {
        return numbers("verify_interval", cut(one.interval, length), cut(other.interval, length));
    }
    if one.offset != other.offset {
        return numbers("verify_offset", one.offset, other.offset);
    }
    if one.pattern != other.pattern {
        return Some(("verify_pattern", told(&one.pattern), told(&other.pattern)));
    }
    let interval =
        |imprint: &StateImprint| if imprint.pattern.is_empty() { 0 } else { imprint.pattern_interval };
    if interval(one) != interval(other) {
        return numbers("verify_pattern_interval", interval(one), interval(other));
    }
    None
}

/// Which writes a job insists upon.
pub fn policy(options: &JobOptions) -> Policy {
    match options.verification.verify_policy {
        VerifyPolicy::Completed => Policy::Completed,
        VerifyPolicy::Fsynced => Policy::Fsynced,
    }
}

/// What a state demands, piece by piece.
#[derive(Debug)]
pub struct Demands {
    /// Whose state it is: the seed of the contents, and the number of the job.
    pub identity: (u64, u16),
    issued: u64,
    is_copied: bool,
    files: Vec<SavedFile>,
    /// There are buffers for so much.
    largest: u64,
    file: usize,
    block: usize,
}

impl Demands {
    /// Loads a state, and sees whether it is one of this job.
    pub fn load(
        path: &Path,
        options: &JobOptions,
        workload: &iolite_workload::Spec,
        layout: &Layout,
    ) -> Result<Demands, LoadError> {
        let failed = |error| match error {
            StateError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                LoadError::Missing { path: path.to_owned(), hint: hint(path) }
            }
            error => LoadError::State(path.to_owned(), error),
        };
        let saved = Saved::open(path).map_err(failed)?;
        let other = |option, found: &str, wanted: &str| LoadError::Other {
            path: path.to_owned(),
            option,
            found: found.to_owned(),
            wanted: wanted.to_owned(),
        };
        let kind = options.verification.verify.keyword();
        let same = |kind: &str| kind.replace("crc32c-intel", "crc32c");
        if same(&saved.setup.kind) != same(kind) {
            return Err(other("verify", &saved.setup.kind, kind));
        }
        let of_state: Vec<&str> = saved.setup.files.iter().map(|file| file.name.as_str()).collect();
        let of_job: Vec<String> = layout.files.iter().map(|file| file.path.display().to_string()).collect();
        if of_state != of_job {
            return Err(other("filename", &of_state.join(":"), &of_job.join(":")));
        }
        let files = (0..of_state.len() as u32).map(|file| saved.file(file, policy(options)).map_err(failed));
        let files: Vec<SavedFile> = files.collect::<Result<_, _>>()?;
        let longest = files.iter().flat_map(SavedFile::demands).map(|demand| demand.length).max();
        let largest = Direction::ALL.iter().map(|&direction| workload.block_size[direction].max()).max();
        let (length, largest) = (longest.unwrap_or(0), largest.unwrap_or(0));
        if length > largest {
            return Err(LoadError::Length { path: path.to_owned(), length, largest });
        }
        let lengths = || files.iter().flat_map(SavedFile::demands).map(|demand| demand.length);
        let differ = |of_state: &StateImprint, of_job: &StateImprint| difference(of_state, of_job, lengths());
        let imprints = saved.setup.imprint.as_ref().zip(imprint(options, workload));
        if let Some((option, found, wanted)) =
            imprints.and_then(|(of_state, of_job)| differ(of_state, &of_job))
        {
            return Err(other(option, &found, &wanted));
        }
        let identity = (saved.setup.seed, saved.setup.number);
        let is_copied = saved.setup.is_copied;
        Ok(Demands { identity, issued: saved.issued, is_copied, files, largest, file: 0, block: 0 })
    }

    /// How many places have not been asked for.
    pub fn left(&self) -> u64 {
        let from = |file: usize| if file == self.file { self.block } else { 0 };
        let files = self.files.iter().enumerate().skip(self.file);
        files.map(|(index, file)| file.demands_from(from(index)).count() as u64).sum()
    }

    /// The next place, and what may be there.
    pub fn next(&mut self) -> Option<(Io, SavedExpectation)> {
        loop {
            let file = self.files.get(self.file)?;
            let Some((demand, block)) = file.next_demand(self.block) else {
                self.file += 1;
                self.block = 0;
                continue;
            };
            self.block = block;
            if demand.length > self.largest {
                // It was not there when the state was loaded: the job of the state is still at work.
                continue;
            }
            let direction = Direction::Read;
            let io = Io { offset: demand.offset, length: demand.length, file: demand.file, direction };
            let (accepted, issued, is_copied) = (demand.accepted, self.issued, self.is_copied);
            return Some((io, SavedExpectation { accepted, issued, is_copied }));
        }
    }
}
