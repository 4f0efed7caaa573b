//! What a workload is made of, as far as choosing the next I/O is concerned.

use iolite_types::{BlockSize, Direction, PerDirection};
use serde::{Deserialize, Serialize};

/// Everything that decides which I/Os a worker issues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The files, in order, with the region of each that the worker may touch.
    pub files: Vec<Region>,
    /// How the next file is chosen.
    pub file_order: FileOrder,
    /// I/Os on one file before the next is chosen, at least 1.
    pub ios_per_file: u64,
    /// Most files open at once; equal to `files.len()` when there is no limit.
    pub open_files: usize,
    /// Which directions there are and how they are mixed.
    pub mix: Mix,
    /// Per direction: percent of I/Os whose offset is random (100 for random workloads unless
    /// `percentage_random` says otherwise, 0 for sequential ones).
    pub random_percent: PerDirection<u32>,
    /// Block sizes per direction.
    pub block_size: PerDirection<BlockSize>,
    /// Alignment of random offsets, per direction, in bytes (at least 1). Without `blockalign` it is the smallest
    /// block size of the direction; any other alignment turns coverage off.
    pub align: PerDirection<u64>,
    /// Sizes need not be multiples of the smallest one.
    pub unaligned: bool,
    /// `bs_is_seq_rand`: the read size is for sequential I/Os, the write size for random ones, of any direction.
    pub size_by_randomness: bool,
    /// Random offsets cover each block once before any comes again (false: `norandommap`); see
    /// [`coverage`](crate::coverage) for what each kind of workload gets.
    pub cover: bool,
    /// Where coverage would need memory that cannot be had, go on without it (`softrandommap`).
    pub cover_softly: bool,
    /// Use a linear feedback shift register (`random_generator=lfsr`). It covers each block once, whatever
    /// `cover` says.
    pub lfsr: bool,
    /// How random offsets are distributed. Any distribution but the even one does without coverage, whatever `cover`
    /// and `lfsr` say.
    pub distribution: Distribution,
    /// Each file is worked on zone by zone (`zonemode=strided`).
    pub zones: Option<StridedZones>,
    /// Random writes that bring a flash device near its steady state in one pass (`sprandom`). Only for a single
    /// direction with one block size, all random.
    pub precondition: Option<Precondition>,
    /// Sequential workloads: bytes added to the offset after each I/O (`rw=write:4k`; may be negative).
    pub sequential_skip: i64,
    /// A skip past the end of a region goes on at its beginning, unless the I/O before it reached the end. So it
    /// is where regions are whole files; a part of a file is finished there.
    pub skip_wraps: bool,
    /// A pass of several laps says when one is over ([`Next::Lap`](crate::Next::Lap)).
    pub announce_laps: bool,
    /// Random workloads: I/Os that follow each other sequentially after each random offset (`rw=randread:8`), at
    /// least 1.
    pub ios_per_random: u64,
    /// The `:N` modifier repeats the same offset instead of advancing (`rw_sequencer=identical`).
    pub identical: bool,
    /// Bytes to issue in one pass (`io_size`); `None` = as the regions give. With more than the regions have, the
    /// pass starts over on them. Of trimwrite, the writes count.
    pub pass_bytes: Option<u64>,
    /// I/Os to issue in a pass (`number_ios`); `None` = no limit. Ignored when endless, as fio does. A trim and its
    /// write are one.
    pub total_ios: Option<u64>,
    /// The pass has no end of its own (time based): coverage starts over, sequential offsets wrap. It is only
    /// [`Done`](crate::Next::Done) when no file has room for a single I/O.
    pub endless: bool,
    /// Seed of all random choices of this worker.
    pub seed: u64,
}

impl Spec {
    /// The plainest workload, from which others are made: one file of `length` bytes is read from its beginning to its
    /// end, `block` bytes at a time.
    pub fn plain(length: u64, block: u64) -> Spec {
        Spec {
            files: vec![Region { offset: 0, length }],
            file_order: FileOrder::RoundRobin,
            ios_per_file: 1,
            open_files: 1,
            mix: Mix::Single(Direction::Read),
            random_percent: PerDirection::all(0),
            block_size: PerDirection::all(BlockSize::Fixed(block)),
            align: PerDirection::all(block),
            unaligned: false,
            size_by_randomness: false,
            cover: true,
            cover_softly: false,
            lfsr: false,
            distribution: Distribution::Even,
            zones: None,
            precondition: None,
            sequential_skip: 0,
            skip_wraps: true,
            announce_laps: false,
            ios_per_random: 1,
            identical: false,
            pass_bytes: None,
            total_ios: None,
            endless: false,
            seed: 1,
        }
    }
}

/// The part of a file that may be touched, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// First byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// How the next file is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum FileOrder {
    /// At random among the open ones.
    Random,
    /// At random, by a law under which some files come more often than others; drawn anew for each I/O.
    Skewed(Skew),
    /// One after the other, over and over.
    RoundRobin,
    /// The first until it is done, then the second, and so on.
    Sequential,
}

/// Which directions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mix {
    /// One direction only.
    Single(Direction),
    /// Reads and writes; the number is the percentage of reads.
    ReadWrite(u32),
    /// Each block is trimmed, then written.
    TrimWrite,
}

/// How random offsets are distributed over a region; see [`offset`](crate::offset).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Distribution {
    /// All alike.
    Even,
    /// Some more often than others, by a law.
    Skewed(Skew),
    /// Zones with shares, per direction; no zones: all alike.
    Zones(PerDirection<Vec<Zone>>),
    /// These blocks, in this order, over and over.
    Sequence {
        /// In units of the alignment, from the start of the region.
        blocks: Vec<u64>,
        /// Each repetition lies behind the last one.
        stride: bool,
    },
}

/// A law of popularity, and where the most popular place is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skew {
    /// The law.
    pub law: Law,
    /// From 0, the start of the range, to 1, its end; `None` = in the middle for `normal`, elsewhere at random.
    pub centre: Option<f64>,
}

/// How much more popular some places are than others; see [`offset`](crate::offset).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Law {
    /// With this exponent.
    Zipf(f64),
    /// With this power, between 0 and 1, both exclusive.
    Pareto(f64),
    /// With this deviation in percent.
    Normal(f64),
}

/// A part of a region with its share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// The share, in proportion to those of the other zones.
    pub share: u32,
    /// How large it is.
    pub size: ZoneSize,
}

/// The size of a [`Zone`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ZoneSize {
    /// In percent of the region.
    Percent(f64),
    /// In bytes.
    Bytes(u64),
}

/// Work zone by zone: `size` bytes of I/O within `range` bytes of the file, then `skip` bytes are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StridedZones {
    /// Bytes of I/O before the next zone's turn, at least 1.
    pub size: u64,
    /// Bytes of the file that a zone covers, at least 1.
    pub range: u64,
    /// Bytes between two zones.
    pub skip: u64,
}

/// What is assumed of the device; see [`precondition`](crate::precondition).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precondition {
    /// Flash beyond what can be addressed, as a fraction of that: more than 0.
    pub over_provisioning: f64,
    /// Bytes of the write cache.
    pub cache: u64,
    /// Into how many parts the flash is divided, at least 1.
    pub regions: u64,
}
