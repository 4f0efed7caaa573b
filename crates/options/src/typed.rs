//! The types of the values of options: keywords, ranges, lists, distributions.

use iolite_types::PerDirection;
use serde::{Deserialize, Serialize};

/// A size in bytes, or in percent or zones of a file that is known only where the job runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum SizeValue {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage (1..=100) of the file or device.
    Percent(u32),
    /// A number of zones (at least 1) of the device, or of `zonesize` bytes.
    Zones(u32),
}

impl Default for SizeValue {
    fn default() -> Self {
        SizeValue::Bytes(0)
    }
}

/// An inclusive range; both ends are equal if a single value was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The smallest value.
    pub low: u64,
    /// The largest value.
    pub high: u64,
}

/// The block sizes of a direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum BlockSizes {
    /// `bs`: one size.
    #[default]
    One,
    /// `bsrange`; an end of 0 is the size that `bs` gives.
    Range(Range),
    /// `bssplit`: several sizes with their shares.
    Split(Vec<SplitEntry>),
}

/// One entry of `bssplit`: a block size and its share in percent. Shares of a direction sum to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitEntry {
    /// The block size in bytes.
    pub size: u64,
    /// Its share of the I/Os in percent.
    pub percent: u32,
}

/// `rate_schedule`: rates that change over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateSchedule {
    /// Rates are bytes per second, not I/Os.
    pub is_bytes: bool,
    /// In the order of time. Before the first one the rate is 0.
    pub steps: Vec<RateStep>,
    /// When it begins anew; `None` = the last rate stays.
    pub repeat_us: Option<u64>,
}

/// A part of a schedule. Behind it its last rate stays until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateStep {
    /// When it begins, in microseconds.
    pub at_us: u64,
    /// When a ramp ends; `None` = the rate is the same at once.
    pub until_us: Option<u64>,
    /// The rate at the begin.
    pub from: u64,
    /// The rate at the end.
    pub to: u64,
}

/// `batch_sample`: what a sample of a batch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sample {
    /// Each read.
    #[default]
    Io,
    /// A whole file.
    File,
    /// This many bytes.
    Bytes(u64),
}

/// `rw`: which directions, and whether offsets are random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the option's own keywords")]
pub enum ReadWrite {
    #[default]
    Read,
    Write,
    Trim,
    RandRead,
    RandWrite,
    RandTrim,
    Rw,
    RandRw,
    TrimWrite,
    RandTrimWrite,
    /// `rw` with `rwtmix`.
    RwTrim,
    /// `randrw` with `rwtmix`.
    RandRwTrim,
}

impl ReadWrite {
    /// Whether offsets are random.
    pub fn is_random(self) -> bool {
        use ReadWrite::*;
        matches!(self, RandRead | RandWrite | RandTrim | RandRw | RandTrimWrite | RandRwTrim)
    }
    /// Whether the job reads.
    pub fn reads(self) -> bool {
        use ReadWrite::*;
        matches!(self, Read | RandRead | Rw | RandRw | RwTrim | RandRwTrim)
    }
    /// Whether the job writes.
    pub fn writes(self) -> bool {
        use ReadWrite::*;
        !matches!(self, Read | RandRead | Trim | RandTrim)
    }
    /// Whether the job trims.
    pub fn trims(self) -> bool {
        use ReadWrite::*;
        matches!(self, Trim | RandTrim | RwTrim | RandRwTrim) || self.writes_what_it_trims()
    }
    /// Whether each trim is followed by a write to the same place.
    pub fn writes_what_it_trims(self) -> bool {
        matches!(self, ReadWrite::TrimWrite | ReadWrite::RandTrimWrite)
    }
    /// The keyword that reports print (`rw` for the sequential mix, whichever spelling was given).
    pub fn name(self) -> &'static str {
        use ReadWrite::*;
        match self {
            Read => "read",
            Write => "write",
            Trim => "trim",
            RandRead => "randread",
            RandWrite => "randwrite",
            RandTrim => "randtrim",
            Rw | RwTrim => "rw",
            RandRw | RandRwTrim => "randrw",
            TrimWrite => "trimwrite",
            RandTrimWrite => "randtrimwrite",
        }
    }
}

/// The number after `rw=…:`. For sequential workloads, bytes to add to each offset (may be negative); for random
/// ones, how many I/Os come between two random offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadWriteModifier(pub i64);

/// Makes the enum of an option's keywords. The first of them is the default.
macro_rules! keyword_enum {
    ($(#[$meta:meta])* $name:ident { $first:ident = $first_keyword:literal $(, $variant:ident = $keyword:literal)* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the variants are the option's own keywords")]
        pub enum $name { #[default] $first, $($variant),* }
        impl $name {
            /// The keyword of the default.
            pub const DEFAULT: &'static str = $first_keyword;

            /// The keyword as it is written in a job file.
            pub fn keyword(self) -> &'static str { match self { $name::$first => $first_keyword, $($name::$variant => $keyword),* } }
            /// The value that this keyword stands for.
            pub fn from_keyword(keyword: &str) -> Option<Self> {
                match keyword { $first_keyword => Some($name::$first), $($keyword => Some($name::$variant),)* _ => None }
            }
        }
    };
}

pub(crate) use keyword_enum;

keyword_enum!(/// `rw_sequencer`
    Sequencer { Sequential = "sequential", Identical = "identical" });
keyword_enum!(/// `lockfile`
    LockFile { None = "none", Exclusive = "exclusive", ReadWrite = "readwrite" });
keyword_enum!(/// `filetype`
    FileType { None = "none", File = "file", Block = "block", Char = "char" });
keyword_enum!(/// `random_generator`
    RandomGenerator { Tausworthe = "tausworthe", Lfsr = "lfsr", Tausworthe64 = "tausworthe64" });
keyword_enum!(/// `fallocate`
    Fallocate { Native = "native", None = "none", Posix = "posix", Keep = "keep", Truncate = "truncate" });
keyword_enum!(/// `fadvise_hint`
    FadviseHint { Pattern = "1", None = "0", Random = "random", Sequential = "sequential", NoReuse = "noreuse" });
keyword_enum!(/// `sync`
    SyncMode { None = "none", Sync = "sync", DSync = "dsync" });
keyword_enum!(/// `mem`
    MemoryKind { Malloc = "malloc", Shm = "shm", ShmHuge = "shmhuge", Mmap = "mmap", MmapShared = "mmapshared",
        MmapHuge = "mmaphuge" });
keyword_enum!(/// `dedupe_mode`
    DedupeMode { Repeat = "repeat", WorkingSet = "working_set" });
keyword_enum!(/// `exit_what`
    ExitWhat { Group = "group", Stonewall = "stonewall", All = "all" });
keyword_enum!(/// `clocksource`
    ClockSource { GetTimeOfDay = "gettimeofday", ClockGetTime = "clock_gettime", Cpu = "cpu" });
keyword_enum!(/// `cpus_allowed_policy`
    CpusPolicy { Shared = "shared", Split = "split" });
keyword_enum!(/// `write_hint`
    WriteHint { None = "none", Short = "short", Medium = "medium", Long = "long", Extreme = "extreme" });
keyword_enum!(/// `io_submit_mode`
    SubmitMode { Inline = "inline", Offload = "offload" });
keyword_enum!(/// `thinktime_blocks_type`
    ThinktimeBlocks { Complete = "complete", Issue = "issue" });
keyword_enum!(/// `rate_process`
    RateProcess { Linear = "linear", Poisson = "poisson" });
keyword_enum!(/// `rate_scope`
    RateScope { Host = "host", All = "all" });
keyword_enum!(/// `zonemode`
    ZoneMode { None = "none", Strided = "strided", Zbd = "zbd" });
keyword_enum!(/// `dataplacement`
    DataPlacement { None = "none", Fdp = "fdp", Streams = "streams" });
keyword_enum!(/// `plid_select`
    PlacementChoice { Random = "random", RoundRobin = "roundrobin", Scheme = "scheme" });
keyword_enum!(/// The quantity that `steadystate` watches
    SteadyStateCriterion { Iops = "iops", IopsSlope = "iops_slope", Bw = "bw", BwSlope = "bw_slope", Lat = "lat",
        LatSlope = "lat_slope" });
keyword_enum!(/// `unified_rw_reporting`
    UnifiedReporting { None = "none", Mixed = "mixed", Both = "both" });
keyword_enum!(/// The mode of `numa_mem_policy`
    NumaPolicyMode { Default = "default", Prefer = "prefer", Bind = "bind", Interleave = "interleave", Local = "local" });

/// A distribution that prefers some items to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the options' own keywords")]
pub enum SkewLaw {
    Zipf,
    Pareto,
    Normal,
}

impl SkewLaw {
    /// The parameter if none is given.
    pub fn default_value(self) -> f64 {
        match self {
            SkewLaw::Zipf => 1.1,
            SkewLaw::Pareto => 0.2,
            SkewLaw::Normal => 0.0,
        }
    }
}

/// A distribution with its parameters: `zipf:1.2:0.25`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skew {
    /// The distribution.
    pub law: SkewLaw,
    /// The exponent of zipf, the power of pareto, the deviation of normal in percent.
    pub value: f64,
    /// The most popular place, from 0 to 1.
    pub centre: Option<f64>,
}

/// One zone of `random_distribution=zoned` or `zoned_abs`: the share of the accesses in percent, and the size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ZoneShare {
    /// In percent; all shares of a direction sum to 100.
    pub share: u32,
    /// How much of the file it covers.
    pub size: SizeValue,
}

/// `random_distribution`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum RandomDistribution {
    /// Uniform.
    #[default]
    Random,
    /// `zipf`, `pareto` or `normal`.
    Skewed(Skew),
    /// `zoned` or `zoned_abs`; a direction without zones is uniform.
    Zoned(PerDirection<Vec<ZoneShare>>),
    /// These blocks, in order.
    Sequence(Vec<u64>),
}

/// `zoneskip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ZoneSkip {
    /// A number of bytes.
    Bytes(u64),
    /// A multiple of `zonesize`.
    Zones(u32),
}

impl Default for ZoneSkip {
    fn default() -> Self {
        ZoneSkip::Bytes(0)
    }
}

/// How `file_service_type` chooses files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum FileServiceKind {
    /// At random, uniformly.
    Random,
    /// In turn.
    #[default]
    RoundRobin,
    /// One after the other, each until it is finished.
    Sequential,
    /// At random, some more often than others.
    Skewed(Skew),
}

/// `file_service_type`: how the next file is chosen, and after how many I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileService {
    /// How the next file is chosen.
    pub kind: FileServiceKind,
    /// How many I/Os a file gets before the next is chosen (`:N`).
    pub ios: u64,
}

/// `numa_mem_policy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaPolicy {
    /// The policy.
    pub mode: NumaPolicyMode,
    /// The nodes it applies to; empty for `default` and `local`, and for the others if `all` was given.
    pub nodes: Vec<u32>,
}

/// `replay_skip`: the kinds of I/O that a replay skips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the option's own keywords")]
pub struct ReplaySkip {
    pub read: bool,
    pub write: bool,
    pub trim: bool,
    pub sync: bool,
}

/// `sync_file_range=flags:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFileRange {
    /// `SYNC_FILE_RANGE_*` flags, or-ed.
    pub flags: u32,
    /// Writes between two calls.
    pub interval: u64,
}

/// One piece of a parsed `buffer_pattern`; pieces repeat until the buffer is full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternPiece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// `%o`: the offset of the block in the file, 64 bits, little endian.
    Offset,
}

/// One entry of `cmdprio_bssplit`: the share of the I/Os of a size that get a separate priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityShare {
    /// The block size in bytes.
    pub size: u64,
    /// Percent of the I/Os of this size; the entries of one size sum to at most 100.
    pub percent: u32,
    /// Encoded as in the kernel; `None` = as in `cmdprio_class`, `cmdprio` and `cmdprio_hint`.
    pub priority: Option<u16>,
}

/// `steadystate`: when results count as steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// The quantity that is measured.
    pub criterion: SteadyStateCriterion,
    /// The limit: for deviations, how far any measurement may be from the mean; for slopes, how much the fitted line
    /// may rise per measurement. In percent of the mean, or in I/Os per second, bytes per second, nanoseconds.
    pub limit: f64,
    /// The limit is in percent.
    pub percent: bool,
}

impl SteadyState {
    /// The limit as it was understood, in fio's format; latencies similarly.
    pub fn threshold(&self) -> String {
        use SteadyStateCriterion::{Bw, BwSlope, Iops, IopsSlope, Lat, LatSlope};
        let limit = self.limit;
        match self.criterion {
            _ if self.percent => format!("threshold to {limit:.6}%"),
            Iops | IopsSlope => format!("IOPS threshold to {limit:.6}"),
            Bw | BwSlope => format!("BW threshold to {}", limit as u64),
            Lat | LatSlope => format!("latency threshold to {} ns", limit as u64),
        }
    }
}

/// `continue_on_error`: the kinds of I/O after whose errors a job continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorKinds {
    /// Reads.
    pub read: bool,
    /// Writes, trims and syncs.
    pub write: bool,
    /// Verification.
    pub verify: bool,
}

impl ErrorKinds {
    /// None.
    pub const NONE: ErrorKinds = ErrorKinds { read: false, write: false, verify: false };
    /// All.
    pub const ALL: ErrorKinds = ErrorKinds { read: true, write: true, verify: true };
}

/// `ignore_error`: error numbers after which a job continues. A list that is not empty replaces those implied by
/// `continue_on_error`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredErrors {
    /// Of reads.
    pub read: Vec<i32>,
    /// Of writes, trims and syncs.
    pub write: Vec<i32>,
    /// Of verification.
    pub verify: Vec<i32>,
}
