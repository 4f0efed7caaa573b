//! How a worker's files are created, opened, advised and locked.

use crate::{FileLayout, JobPlan, Layout, Plan, ReplayPlan, WorkerPlan, content};
use iolite_engine::{EngineConfig, OpenMode};
use iolite_options::engines::{Capability, Data};
use iolite_options::{
    FadviseHint, Fallocate, JobOptions, LockFile, RandomDistribution, ReadWrite, SyncMode, WriteHint,
    ZoneMode,
};
use iolite_types::{Direction, FileKind};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// When the files of a worker are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreationTime {
    /// Before any worker starts, one worker after the other.
    BeforeAll,
    /// When the worker starts, at the same time as others.
    ByWorker,
    /// Never: files that are only checked must exist, and `--readonly` forbids creating them.
    Never,
}

/// How missing files are created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Creation {
    /// When it happens.
    pub time: CreationTime,
    /// Where the data of the engine lives.
    pub data: Data,
    /// The engine and its configuration, for creating files in its own storage.
    pub engine: (String, EngineConfig),
    /// The engine cannot extend files by writing to them: they must have their final size before the job begins.
    pub must_extend: bool,
    /// Files are created when they are opened, so only their directories are created beforehand.
    pub on_open: bool,
    /// Files that are removed between two passes (`unlink_each_loop`) are created when they are opened again, as large as the
    /// writes make them.
    pub again_on_open: bool,
    /// Directories that are created above files are reported.
    pub tells_directories: bool,
    /// How room is reserved.
    pub fallocate: Fallocate,
    /// They are filled with data, because the job may read them.
    pub is_filled: bool,
    /// Bytes of each file that the job surely writes, if nothing fails (of a file with fewer bytes, all of them): more than
    /// the file system has free is refused. `None` = unknown.
    pub surely_written: Option<u64>,
    /// A full file system ends the job normally (`fill_device`).
    pub may_be_short: bool,
    /// Files are filled until the file system is full, so that their size is known only then.
    pub fills: bool,
    /// They are synced when they are created.
    pub sync: bool,
    /// The content to write into them.
    pub content: iolite_content::Spec,
    /// Bytes of a block of that content.
    pub block: usize,
    /// The smallest I/O of the job, in bytes: a smaller file is useless.
    pub least: u64,
}

pub(super) fn creation(plan: &Plan, worker: &WorkerPlan, layout: &Layout) -> Creation {
    let job = plan.job_of(worker);
    let options = &*job.options;
    let fills = fills(job);
    let can = |capability| job.engine.facets.can(capability);
    let makes_for_readers = can(Capability::OnlyWritersMake) && !can(Capability::MadeByWriting);
    // (On a server, a created file must have data for its readers.)
    let is_filled = options.pattern.rw.reads()
        || options.files.overwrite
        || options.files.pre_read
        || (options.files.create_only && makes_for_readers);
    Creation {
        time: if options.relies_on_earlier_run() || plan.readonly {
            CreationTime::Never
        } else if options.files.create_serialize || fills {
            // If several workers filled a file system at once, sizes would depend on chance.
            CreationTime::BeforeAll
        } else {
            CreationTime::ByWorker
        },
        data: job.engine.facets.data,
        engine: (job.engine.name.to_owned(), job.storage_config()),
        must_extend: job.engine.facets.data == Data::OwnStorage && !can(Capability::Extend),
        on_open: options.files.create_on_open,
        // (What acts on names or extents, or by zones, needs files that have their sizes.)
        again_on_open: job.engine.facets.has_local_files()
            && job.engine.facets.moves_data()
            && options.zones.zonemode != ZoneMode::Zbd
            && !is_filled,
        tells_directories: !options.as_fio,
        fallocate: options.files.fallocate,
        is_filled,
        surely_written: surely_written(plan, job, layout),
        may_be_short: options.extent.fill_device,
        fills,
        sync: options.files.create_fsync,
        content: content::layout_spec(options, layout, worker),
        block: content::block(options),
        least: options.smallest_block(),
    }
}

/// How many bytes of each file a job surely writes: its first pass covers each block once, and nothing may end it early,
/// make room on the file system meanwhile, or store the data in fewer bytes.
fn surely_written(plan: &Plan, job: &JobPlan, layout: &Layout) -> Option<u64> {
    let options = &*job.options;
    let (pattern, buffers, facets) = (&options.pattern, &options.buffers, &job.engine.facets);
    let covers = match pattern.rw {
        ReadWrite::Write => true,
        ReadWrite::RandWrite => {
            !pattern.norandommap
                && !pattern.sprandom
                && pattern.percentage_random[Direction::Write] == 100
                && pattern.random_distribution == RandomDistribution::Random
        }
        _ => false,
    };
    let writes_all = covers
        && pattern.rw_modifier.0 == 0
        && options.zones.zonemode == ZoneMode::None
        && options.changes_data()
        && !options.files.create_only
        && !options.is_replay()
        && facets.has_local_files()
        && facets.extent_act().is_none();
    let may_end_early = options.schedule.runtime > 0
        || options.extent.number_ios > 0
        || options.errors.any()
        || options.is_set("steadystate_duration")
        || plan.jobs.iter().any(|job| job.options.schedule.exitall);
    let is_as_large_as_it_looks = !buffers.zero_buffers
        && buffers.buffer_pattern.is_empty()
        && buffers.buffer_compress_percentage == 0
        && buffers.dedupe_percentage == 0;
    let is_alone = plan.workers.len() == 1;
    let makes_room =
        options.verification.trim_percentage > 0 || (!is_alone && plan.jobs.iter().any(may_make_room));
    // (fio fills the file system, and then fails.)
    if options.as_fio || !writes_all || may_end_early || !is_as_large_as_it_looks || makes_room {
        return None;
    }
    let (bytes, total) = (layout.bytes_per_pass(), layout.total_length());
    match bytes < total {
        // In which of several files the bytes will be is not known.
        true => (layout.files.len() == 1).then_some(bytes),
        false => Some(u64::MAX),
    }
}

/// Whether a job may free room on a file system.
fn may_make_room(job: &JobPlan) -> bool {
    let JobOptions { files, schedule, pattern, .. } = &*job.options;
    files.unlink
        || files.unlink_each_loop
        || pattern.rw.trims()
        || job.options.verification.trim_percentage > 0
        || job.engine.facets.removes()
        || job.engine.facets.extent_act().is_some()
        || job.engine.facets.data == Data::Nowhere
        || schedule.exec_prerun.is_some()
        || schedule.exec_postrun.is_some()
}

/// Whether files are filled until the file system is full.
fn fills(job: &JobPlan) -> bool {
    let options = &job.options;
    options.extent.fill_device
        && !options.is_replay()
        && options.pattern.rw.reads()
        && job.engine.facets.has_local_files()
        && !options.files.create_on_open
}

/// How files are opened, advised and locked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRules {
    /// Where the data of the engine lives.
    pub data: Data,
    /// How files are opened by default.
    pub mode: OpenMode,
    /// How each file of a replay is opened; empty = all in the same mode.
    pub modes: Vec<OpenMode>,
    /// The workload is random; matters if `advice` depends on the workload.
    pub is_random: bool,
    /// The advice to the kernel.
    pub advice: FadviseHint,
    /// The page cache of a file is dropped when it is opened.
    pub invalidate: bool,
    /// Files are synced when they are closed.
    pub sync_on_close: bool,
    /// The expected lifetime of written data, as a constant of fcntl(2); 0 = no hint.
    pub write_hint: u64,
    /// How files are locked.
    pub lock: LockFile,
    /// No file may have two names, because its data is verified.
    pub unique_names: bool,
    /// The files of a trace become known only when the trace names them.
    pub live: Option<LiveFileRules>,
}

/// Requirements for files that become known during a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveFileRules {
    /// No file may be changed (`--readonly`).
    pub readonly: bool,
    /// Devices in use may be changed.
    pub allow_mounted_write: bool,
    /// Files may be created.
    pub allow_file_create: bool,
    /// Files stay as long as they are.
    pub keeps_lengths: bool,
    /// The traces that the job reads meanwhile: they must not be overwritten.
    pub traces: Vec<PathBuf>,
}

pub(super) fn rules(job: &JobPlan, worker: &WorkerPlan, layout: &Layout) -> FileRules {
    let options = &*job.options;
    let replay = worker.replay.as_deref();
    let writes = options.changes_data();
    let reads_back = options.reads_back();
    // (A block device that is only divided into zones is trimmed as ever.)
    let has_zones =
        |file: &FileLayout| file.zoned.is_some_and(|zoned| zoned.is_real || file.kind == FileKind::Regular);
    let mode = OpenMode {
        read: options.pattern.rw.reads() || reads_back,
        write: writes,
        direct: options.durability.direct,
        sync: options.durability.sync == SyncMode::Sync,
        dsync: options.durability.sync == SyncMode::DSync,
        create: writes && options.files.allow_file_create,
        trims_reset_zones: layout.files.iter().any(has_zones),
    };
    FileRules {
        data: job.engine.facets.data,
        mode,
        modes: match replay {
            Some(replay) => modes(mode, replay, reads_back),
            // A disk without zones, next to a zoned one, must not be asked to reset zones.
            None if mode.trims_reset_zones && !layout.files.iter().all(has_zones) => {
                let of_file = |file| OpenMode { trims_reset_zones: has_zones(file), ..mode };
                layout.files.iter().map(of_file).collect()
            }
            None => Vec::new(),
        },
        is_random: options.pattern.rw.is_random(),
        advice: options.files.fadvise_hint,
        invalidate: options.files.invalidate,
        sync_on_close: options.durability.fsync_on_close && writes,
        write_hint: if options.pattern.rw.writes() {
            options.durability.write_hint.map_or(0, life_time)
        } else {
            0
        },
        // (What acts on names opens no file, and moves no data that another job could disturb.)
        lock: match job.engine.facets.has_local_files() && layout.named.is_none() {
            true => options.files.lockfile,
            false => LockFile::None,
        },
        unique_names: options.verification.is_on(),
        live: replay.filter(|replay| replay.is_live).map(|replay| live(options, replay)),
    }
}

fn live(options: &JobOptions, replay: &ReplayPlan) -> LiveFileRules {
    LiveFileRules {
        readonly: replay.readonly,
        allow_mounted_write: options.files.allow_mounted_write,
        allow_file_create: options.files.allow_file_create,
        keeps_lengths: options.keeps_lengths(),
        traces: options.replay.read_iolog.iter().map(PathBuf::from).collect(),
    }
}

/// How the files of a replay are opened: for writing only if the trace writes to them, and then for reading as well if
/// the data is read back.
fn modes(usual: OpenMode, replay: &ReplayPlan, reads_back: bool) -> Vec<OpenMode> {
    let mode = |needs: &crate::FileNeeds| {
        // A file that is opened and not used is opened for writing, as in its recording.
        let unused = needs.first.values.iter().all(Option::is_none);
        let write = usual.write && (needs.changes() || unused);
        OpenMode {
            read: needs.first[Direction::Read].is_some() || reads_back || !write,
            write,
            create: usual.create && write,
            ..usual
        }
    };
    replay.needs.iter().map(mode).collect()
}

/// The number of a life time (linux/fcntl.h).
fn life_time(hint: WriteHint) -> u64 {
    match hint {
        WriteHint::None => 1,
        WriteHint::Short => 2,
        WriteHint::Medium => 3,
        WriteHint::Long => 4,
        WriteHint::Extreme => 5,
    }
}
