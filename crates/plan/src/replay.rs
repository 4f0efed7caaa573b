//! The facts about a trace that a replay needs before its first I/O: the files, the ranges in them, and the operations.
//!
//! A trace is scanned once, before any file is touched, to find its errors and all files and devices that it uses. A
//! source that can be read only once (standard input, a pipe, a socket) is first copied into an unnamed file. With
//! `read_iolog_chunked` neither happens: the replay is *live*, and files are checked when the trace first names them.

mod layout;
mod spool;
mod target;

pub use layout::replay_layout;
pub use target::Target;

use crate::Problem;
use iolite_host::{EntryKind, Machine};
use iolite_options::engines::{Capability, EngineInfo};
use iolite_options::{JobOptions, ReadWrite, RunOptions};
use iolite_trace::{Blocks, Format, Kinds, Mapping, Place, Scan, TraceReader};
use iolite_types::{Direction, PerDirection, describe_error, is_standard_stream, without_error_numbers};
use spool::Spool;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::debug;

/// The largest I/O of a live replay, unless the job's block sizes are larger.
const LIVE_LARGEST: u64 = 1 << 20;

/// The largest I/O that is accepted from a trace, unless the job's block sizes are larger. Systems split larger I/Os
/// before they are traced, and each I/O in flight needs a buffer of that size.
const LARGEST: u64 = 1 << 30;

/// The replay of one worker.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The trace's name.
    pub name: PathBuf,
    spool: Option<Arc<Spool>>,
    /// The trace is not scanned before it is replayed.
    pub is_live: bool,
    /// How each I/O of the trace is changed.
    pub mapping: Mapping,
    /// Where the I/O goes.
    pub target: Target,
    /// For each file of the trace, the index of the worker's file.
    pub places: Vec<u32>,
    /// How the trace uses each of the worker's files.
    pub needs: Vec<FileNeeds>,
    /// Bytes of all I/Os, if known.
    pub bytes: Option<u64>,
    /// I/Os of each direction, if known.
    pub ios: PerDirection<u64>,
    /// Sizes and offsets of the I/Os of each direction, if known.
    pub blocks: PerDirection<Blocks>,
    /// The trace has flushes.
    pub flushes: bool,
    /// The largest read or write that fits into a buffer.
    pub largest: u64,
    /// The directions that the trace uses. Mixes with trims are mixes of reads and writes.
    pub rw: ReadWrite,
    /// No file may be changed (`--readonly`).
    pub readonly: bool,
}

/// The demands of a trace on one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileNeeds {
    /// The end of the farthest I/O, in bytes.
    pub end: PerDirection<u64>,
    /// Its place in the trace.
    pub farthest: PerDirection<Option<Place>>,
    /// The place in the trace of the first I/O of each direction.
    pub first: PerDirection<Option<Place>>,
}

impl FileNeeds {
    /// Whether the trace changes it.
    pub fn changes(&self) -> bool {
        self.first[Direction::Write].is_some() || self.first[Direction::Trim].is_some()
    }
}

impl ReplayPlan {
    /// Opens the trace, from its beginning.
    ///
    /// # Errors
    /// It cannot be opened, or is not a trace.
    pub fn open(&self) -> Result<TraceReader<File>, iolite_trace::TraceError> {
        match &self.spool {
            Some(spool) => spool.reader(&self.name),
            None => TraceReader::open(&self.name),
        }
    }

    /// Whether this I/O agrees with the scan of the trace. (The trace may have changed since.)
    pub fn foresaw(&self, file: u32, direction: Direction, offset: u64, length: u64) -> bool {
        let reaches = |needs: &FileNeeds| offset.saturating_add(length) <= needs.end[direction];
        self.is_live
            || (self.needs.get(file as usize).is_some_and(reaches)
                && self.blocks[direction].may_hold(offset, length))
    }

    /// Whether the trace changes the file of this name among the worker's files.
    pub(crate) fn changes(&self, files: &[PathBuf], name: &Path) -> bool {
        files.iter().zip(&self.needs).any(|(path, needs)| path == name && needs.changes())
    }

    /// Learns from the scan how the trace uses the worker's files.
    fn learn(
        &mut self,
        scan: &Scan,
        needs_devices: bool,
        machine: &dyn Machine,
    ) -> Result<Vec<PathBuf>, String> {
        let mut files: Vec<PathBuf> = Vec::new();
        let mut known: HashMap<PathBuf, u32> = HashMap::new();
        for scanned in &scan.files {
            let path = self.target.of(&scanned.name, needs_devices, machine)?;
            let place = *known.entry(path.clone()).or_insert_with(|| {
                files.push(path);
                self.needs.push(FileNeeds::default());
                files.len() as u32 - 1
            });
            self.places.push(place);
            let needs = &mut self.needs[place as usize];
            for direction in Direction::ALL {
                if scanned.end[direction] > needs.end[direction] {
                    needs.end[direction] = scanned.end[direction];
                    needs.farthest[direction] = scanned.farthest[direction];
                }
                needs.first[direction] = needs.first[direction].or(scanned.first[direction]);
            }
        }
        self.bytes = Some(scan.bytes.values.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes)));
        self.ios = scan.ios;
        self.blocks = scan.blocks;
        self.flushes = scan.syncs > 0;
        self.largest = scan.largest.max(1);
        self.rw = directions(scan.ios.map(|ios| ios > 0));
        Ok(files)
    }
}

/// The workload that uses these directions.
fn directions(used: PerDirection<bool>) -> ReadWrite {
    match used.values {
        [_, false, false] => ReadWrite::Read,
        [false, true, false] => ReadWrite::Write,
        [false, false, true] => ReadWrite::Trim,
        [false, true, true] => ReadWrite::TrimWrite,
        [true, ..] => ReadWrite::Rw,
    }
}

/// The workload of all these replays together.
pub fn all_directions(replays: &[Replay]) -> ReadWrite {
    let uses = |of: fn(ReadWrite) -> bool| replays.iter().any(|(replay, _)| of(replay.rw));
    directions(PerDirection::new(uses(ReadWrite::reads), uses(ReadWrite::writes), uses(ReadWrite::trims)))
}

/// A worker's replay, and its files.
pub type Replay = (Arc<ReplayPlan>, Vec<PathBuf>);

/// The replays of a job's clones, in order. Clones take the traces in turn. `recorded` is the trace that an earlier job
/// of the run records, and the name of that job.
///
/// # Errors
/// A trace that cannot be replayed.
pub fn of_job(
    options: &JobOptions,
    engine: &EngineInfo,
    run: &RunOptions,
    recorded: Option<(&str, &str)>,
    machine: &dyn Machine,
) -> Result<Vec<Replay>, Problem> {
    let problem = |option: &str, message: String| Problem::of(options, option, message);
    if let Some((option, message)) = obstacle(options, engine, recorded) {
        return Err(problem(option, message));
    }
    let traces = &options.replay.read_iolog;
    let mut known: HashMap<&Path, Replay> = HashMap::new();
    let mut replays = Vec::new();
    for trace in (0..options.schedule.numjobs as usize).map(|clone| Path::new(&traces[clone % traces.len()]))
    {
        if let Some(replay) = known.get(trace) {
            if replay.0.is_live && iolite_trace::is_stream(trace) {
                return Err(problem(
                    "read_iolog",
                    format!(
                        "read_iolog={}: only one clone can read it as it comes; give each its own, or leave \
                         read_iolog_chunked out",
                        trace.display()
                    ),
                ));
            }
            replays.push(replay.clone());
            continue;
        }
        let is_there = recorded.is_none_or(|(name, _)| Path::new(name) != trace);
        let replay = one(options, engine, run, trace, is_there, machine)
            .map_err(|message| problem("read_iolog", format!("read_iolog: {message}")))?;
        known.insert(trace, replay.clone());
        replays.push(replay);
    }
    Ok(replays)
}

/// An option that contradicts the way in which this job reads its traces.
fn obstacle(
    options: &JobOptions,
    engine: &EngineInfo,
    recorded: Option<(&str, &str)>,
) -> Option<(&'static str, String)> {
    let repeats = options.schedule.loops > 1 || options.schedule.time_based;
    let stream = options.replay.read_iolog.iter().find(|trace| iolite_trace::is_stream(Path::new(trace)));
    let names_stream = |names: &[String]| names.iter().any(|name| is_standard_stream(name.as_ref()));
    if names_stream(&options.files.filename) && names_stream(&options.replay.read_iolog) {
        return Some(("read_iolog", "read_iolog=-: standard input is a file of the job (filename=-)".into()));
    }
    if !options.replay.read_iolog_chunked {
        return None;
    }
    let chunked = |why: &str| match recorded {
        Some((trace, job)) => Some((
            "read_iolog",
            format!("read_iolog={trace}: job {job} makes it in this run; {why}, or replay it in another run"),
        )),
        None => Some(("read_iolog_chunked", format!("read_iolog_chunked=1: {why}"))),
    };
    if repeats && let Some(stream) = stream {
        return chunked(&format!("{stream} can be read only once, and loops or time_based start over"));
    }
    if options.files.lockfile != iolite_options::LockFile::None {
        return chunked("files that are not known beforehand cannot be locked; leave lockfile out");
    }
    if options.engine.registers_files() {
        return chunked("files that are not known beforehand cannot be registered; leave registerfiles out");
    }
    if !engine.facets.can(Capability::Extend) {
        return chunked(&format!("ioengine={} has to know the sizes of files beforehand", engine.name));
    }
    None
}

fn one(
    options: &JobOptions,
    engine: &EngineInfo,
    run: &RunOptions,
    trace: &Path,
    is_there: bool,
    machine: &dyn Machine,
) -> Result<Replay, String> {
    let largest = Direction::ALL.map(|direction| options.block_size(direction).max());
    let largest = largest.into_iter().max().unwrap_or(0);
    let is_stream = iolite_trace::is_stream(trace);
    let mut replay = ReplayPlan {
        name: trace.to_owned(),
        spool: None,
        // With --parse-only, a source that can be read only once is not read.
        is_live: options.replay.read_iolog_chunked || (run.parse_only && is_stream),
        mapping: mapping(options),
        target: Target::new(options),
        places: Vec::new(),
        needs: Vec::new(),
        bytes: None,
        ios: PerDirection::all(0),
        blocks: PerDirection::all(Blocks::default()),
        flushes: false,
        largest: largest.max(LIVE_LARGEST),
        rw: if run.readonly { ReadWrite::Read } else { ReadWrite::Rw },
        readonly: run.readonly,
    };
    if replay.is_live {
        if is_there && !is_stream {
            replay.open().map_err(|error| words(&error))?;
        }
        return Ok((Arc::new(replay), Vec::new()));
    }
    if is_stream {
        let spool = Spool::of(trace, run.aux_path.as_deref())
            .map_err(|error| format!("{}: {}", trace.display(), describe_error(&error)))?;
        replay.spool = Some(Arc::new(spool));
    }
    let reader = replay.open().map_err(|error| words(&error))?;
    let format = reader.format();
    let scan = iolite_trace::scan(reader, trace, &replay.mapping, largest.max(LARGEST))
        .map_err(|error| words(&error))?;
    let files = replay.learn(&scan, engine.facets.has_local_files(), machine)?;
    tell(&options.name, &replay, format, &scan, &files);
    if engine.facets.has_local_files() {
        layout::check_kinds(&replay, &files, machine)?;
    }
    Ok((Arc::new(replay), files))
}

/// Writes the facts found in a trace to the debug output.
fn tell(job: &str, replay: &ReplayPlan, format: Format, scan: &Scan, files: &[PathBuf]) {
    let kind = match format {
        Format::Text(version) => version.header(),
        Format::Blktrace => "records of blktrace",
    };
    let [reads, writes, trims] = scan.ios.values;
    debug!(
        target: "blktrace",
        "{job}: {} ({kind}): {reads} reads, {writes} writes, {trims} trims and {} syncs in {:.6} s; {} bytes in all, \
         {} at most at once",
        replay.name.display(), scan.syncs, scan.duration_ns as f64 / 1e9, replay.bytes.unwrap_or(0), scan.largest
    );
    for (scanned, &place) in scan.files.iter().zip(&replay.places) {
        let [reads, writes, trims] = scanned.ios.values;
        debug!(
            target: "blktrace",
            "{job}: {} is replayed on {}: {reads} reads, {writes} writes, {trims} trims, up to byte {}",
            scanned.name, files[place as usize].display(), scanned.end.values.iter().max().unwrap_or(&0)
        );
    }
}

fn mapping(options: &JobOptions) -> Mapping {
    let skip = options.replay.replay_skip;
    Mapping {
        divisor: options.replay.replay_scale.max(1),
        align: options.replay.replay_align.max(1),
        skip: Kinds { read: skip.read, write: skip.write, trim: skip.trim, sync: skip.sync },
    }
}

/// Why a recording cannot be appended to this file.
pub fn recording_obstacle(path: &Path, machine: &dyn Machine) -> Option<String> {
    use std::io::Read;
    let header = iolite_trace::TextVersion::V3.header().as_bytes();
    let found = machine.file(path).ok().flatten();
    if found.is_some_and(|found| found.is_block_device()) {
        return Some(format!("{} is a block device; give the name of a file", path.display()));
    }
    found.filter(|found| found.kind == EntryKind::Regular && found.bytes > 0)?;
    let mut start = Vec::new();
    match File::open(path).and_then(|file| file.take(header.len() as u64).read_to_end(&mut start)) {
        Err(error) => Some(format!("{}: {}", path.display(), describe_error(&error))),
        Ok(_) if start == header => None,
        Ok(_) => Some(format!(
            "{} holds something other than a trace of version 3, and nothing is written behind that; remove it, \
             or choose another name",
            path.display()
        )),
    }
}

fn words(error: &iolite_trace::TraceError) -> String {
    without_error_numbers(&error.to_string())
}

#[cfg(test)]
mod tests;
