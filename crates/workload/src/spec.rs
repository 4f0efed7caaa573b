//! The description of a workload: everything that matters for choosing the next I/O.

use crate::Wholes;
use iolite_types::{BlockSize, Direction, PerDirection};
use serde::{Deserialize, Serialize};

/// All parameters that determine which I/Os a worker issues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The region of each file that the worker may touch, in the order of the files.
    pub files: Vec<Region>,
    /// Files that are each processed by one I/O; then there are no other files.
    pub wholes: Option<Wholes>,
    /// How the next file is chosen.
    pub file_order: FileOrder,
    /// I/Os on one file before the next is chosen, at least 1.
    pub ios_per_file: u64,
    /// The most files that are open at once; `files.len()` when there is no limit.
    pub open_files: usize,
    /// The directions, and how they are mixed.
    pub mix: Mix,
    /// Per direction: percent of I/Os whose offset is random (100 for random workloads unless
    /// `percentage_random` says otherwise, 0 for sequential ones).
    pub random_percent: PerDirection<u32>,
    /// Block sizes per direction.
    pub block_size: PerDirection<BlockSize>,
    /// Alignment of random offsets, per direction, in bytes (at least 1). Without `blockalign` it is the smallest
    /// block size of the direction; any other alignment turns coverage off.
    pub align: PerDirection<u64>,
    /// The sizes of a range need not be multiples of the smallest one.
    pub unaligned: bool,
    /// `bs_is_seq_rand` in a workload with sequential and random I/Os: sequential ones of any direction have the block
    /// size of reads, and random ones that of writes.
    pub size_by_randomness: bool,
    /// Random offsets cover each block once before any block comes again (false with `norandommap`).
    /// [`coverage`](crate::coverage) says what each kind of workload gets.
    pub cover: bool,
    /// Continue without coverage if there is no memory for the map that it needs (`softrandommap`).
    pub cover_softly: bool,
    /// Take random offsets from a linear feedback shift register (`random_generator=lfsr`). It covers each block once,
    /// whatever `cover` says.
    pub lfsr: bool,
    /// How random offsets are distributed. Only the even distribution has coverage; the others ignore `cover` and
    /// `lfsr`.
    pub distribution: Distribution,
    /// Do the I/O of each file zone by zone (`zonemode=strided`).
    pub zones: Option<StridedZones>,
    /// The bytes of each region that count as its size, where strided zones go on behind them; empty = all of them.
    pub amounts: Vec<u64>,
    /// The I/O goes to zones of a device, which have this many bytes (`zonemode=zbd`): each is written in sequence, so
    /// the offset of a write is known only when the I/O is made. Only [`ZonedGenerator`](crate::ZonedGenerator)
    /// understands it.
    pub device_zones: Option<u64>,
    /// Random writes that bring a flash device near its steady state in one pass (`sprandom`). Only for a single
    /// direction with one block size, all random.
    pub precondition: Option<Precondition>,
    /// Sequential workloads: bytes added to the offset after each I/O (`rw=write:4k`; may be negative).
    pub sequential_skip: i64,
    /// A skip past the end of a region continues at its beginning, unless the I/O before it reached the end. This is
    /// true when the regions are whole files; a region that is a part of a file is finished there instead.
    pub skip_wraps: bool,
    /// In a pass of several laps, announce the end of each lap ([`Next::Lap`](crate::Next::Lap)).
    pub announce_laps: bool,
    /// Random workloads: the length of the sequential run that starts at each random offset, in I/Os (`rw=randread:8`),
    /// at least 1.
    pub ios_per_random: u64,
    /// The `:N` modifier repeats the same offset instead of advancing (`rw_sequencer=identical`).
    pub identical: bool,
    /// Bytes to issue in one pass (`io_size`); `None` = the size of all regions. If it is larger than that, the pass
    /// starts over on the regions. In a trimwrite workload, only the writes count.
    pub pass_bytes: Option<u64>,
    /// I/Os to issue in a pass (`number_ios`); `None` = no limit. Endless workloads ignore it, as in fio. A trim and
    /// its write count as one.
    pub total_ios: Option<u64>,
    /// The pass never ends by itself (time based): coverage starts over, sequential offsets wrap. It is
    /// [`Done`](crate::Next::Done) only when no file has room for a single I/O.
    pub endless: bool,
    /// Seed of all random choices of this worker.
    pub seed: u64,
}

impl Spec {
    /// The sizes of the I/Os in a direction, in all places.
    pub fn sizes(&self, direction: Direction) -> BlockSize {
        match self.size_by_randomness {
            true => self.block_size[Direction::Read].or(&self.block_size[Direction::Write]),
            false => self.block_size[direction].clone(),
        }
    }

    /// The plainest workload, as a base for others: read one file of `length` bytes from its beginning to its end,
    /// `block` bytes at a time.
    pub fn plain(length: u64, block: u64) -> Spec {
        Spec {
            files: vec![Region { offset: 0, length }],
            wholes: None,
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
            amounts: Vec::new(),
            device_zones: None,
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
    /// The number of bytes.
    pub length: u64,
}

/// How the next file is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum FileOrder {
    /// At random among the open files.
    Random,
    /// At random, by a law that makes some files more popular than others.
    Skewed(Skew),
    /// One after the other, over and over.
    RoundRobin,
    /// The first file until it is finished, then the second, and so on.
    Sequential,
}

/// The directions of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mix {
    /// One direction only.
    Single(Direction),
    /// Reads and writes; the number is the percentage of reads.
    ReadWrite(u32),
    /// Reads, writes and trims; the numbers are the percentages of reads and of writes, and the rest are trims.
    ReadWriteTrim(u32, u32),
    /// Each block is trimmed, then written.
    TrimWrite,
}

impl Mix {
    /// Whether the direction of each I/O is drawn.
    pub fn is_drawn(self) -> bool {
        matches!(self, Mix::ReadWrite(_) | Mix::ReadWriteTrim(..))
    }
}

/// How random offsets are distributed over a region; see [`offset`](crate::offset).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Distribution {
    /// All offsets are equally likely.
    Even,
    /// Some offsets are more likely than others, by a law.
    Skewed(Skew),
    /// Zones have shares of the accesses, per direction. Without zones, all offsets are equally likely.
    Zones(PerDirection<Vec<Zone>>),
    /// These blocks, in this order, over and over.
    Sequence {
        /// In units of the alignment, from the start of the region.
        blocks: Vec<u64>,
        /// Each repetition starts where the last one ended.
        stride: bool,
    },
}

/// A law of popularity, and the most popular place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skew {
    /// The law.
    pub law: Law,
    /// The most popular place, from 0 (the start of the range) to 1 (its end). `None` = the middle for `normal`, a
    /// random place for the other laws.
    pub centre: Option<f64>,
}

/// How much more popular some places are than others; see [`offset`](crate::offset).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Law {
    /// A zipf law with this exponent.
    Zipf(f64),
    /// A pareto law with this power, between 0 and 1, both exclusive.
    Pareto(f64),
    /// A normal law with this deviation in percent.
    Normal(f64),
}

/// A part of a region with its share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// The share, in proportion to those of the other zones.
    pub share: u32,
    /// The size of the zone.
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

/// I/O zone by zone: `size` bytes of I/O within `range` bytes of the file, then the next zone, which begins `skip`
/// bytes after the end of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StridedZones {
    /// Bytes of I/O in a zone, at least 1.
    pub size: u64,
    /// Bytes of the file that a zone covers, at least 1.
    pub range: u64,
    /// Bytes between two zones.
    pub skip: u64,
}

/// The properties of the flash device that is preconditioned; see [`precondition`](crate::precondition).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precondition {
    /// Flash beyond the addressable capacity, as a fraction of that capacity; more than 0.
    pub over_provisioning: f64,
    /// The number of parts that the flash is divided into, at least 1. Each should be larger than the device's write cache.
    pub regions: u64,
}
