//! What is known of a target and of the cases that were measured on it.

use crate::{Flow, Measured};

/// No rotating disk answers random reads sooner: the head moves, and half a turn at 15000 per minute takes 2 ms. A cache
/// answers some of them, but not half.
const SEEK_NS: f64 = 1e6;

/// A target, and what was measured.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The file system whose files are in memory, if the target is on one: `tmpfs`.
    pub memory: Option<String>,
    /// The disk that holds it; `None` = no disk of this machine.
    pub disk: Option<Disk>,
    /// The places of the data that were looked at before the cases, if the test did not write them.
    pub sampled: Option<Sampled>,
    /// The bytes of an existing file, and how many of them have space on the disk.
    pub allocated: Option<(u64, u64)>,
    /// The cases, in their order.
    pub cases: Vec<Case>,
}

/// Facts about a disk; `None` = unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name for it.
    pub name: String,
    /// The kernel takes it for one with rotating media.
    pub rotational: Option<bool>,
    /// Its I/O scheduler.
    pub scheduler: Option<String>,
    /// The kernel flushes its cache where durability is asked for (`write back`).
    pub is_flushed: Option<bool>,
    /// How many requests it takes at a time.
    pub queue: Option<u32>,
    /// The unit that it can write without reading it first, in bytes.
    pub physical_block: Option<u64>,
    /// The offset of the target's partition, in bytes; `None` = no partition.
    pub partition_start: Option<u64>,
    /// The file behind a loop device.
    pub backing: Option<Backing>,
}

/// The file behind a loop device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backing {
    /// Its name.
    pub file: String,
    /// The loop device goes around the page cache.
    pub is_direct: bool,
}

/// Blocks of a target that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// How many.
    pub blocks: u64,
    /// How many had nothing but zeros.
    pub zero: u64,
    /// The share of their size to which they compress.
    pub compressed: f64,
}

/// What a case measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Writes the test's file for the first time.
    Fill,
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads one at a time.
    RandomRead,
    /// Random writes one at a time.
    RandomWrite,
    /// Random reads one at a time, with the stages of each.
    Stages,
    /// Random reads at a depth of the curve.
    Step,
    /// A mix of random reads and writes.
    Mix,
    /// Writes, each followed by fdatasync.
    Durable,
    /// Files are made, looked up, or removed.
    Names,
    /// Objects are written or read as a whole, or listed.
    Objects,
}

/// A case that was measured.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What it measures.
    pub role: Role,
    /// How many I/Os are in flight, of all workers together.
    pub depth: u32,
    /// How many workers there are.
    pub workers: u32,
    /// It goes around the page cache.
    pub is_direct: bool,
    /// The flushes that its disk counted meanwhile, if it counts them.
    pub flushes: Option<u64>,
    /// The figures.
    pub measured: Measured,
}

impl Case {
    /// What it read, if it only reads.
    pub fn only_reads(&self) -> Option<&Flow> {
        match self.role {
            Role::Read | Role::RandomRead | Role::Step => self.measured.flow("read"),
            _ => None,
        }
    }

    /// Its cost for durable writes is that of the sync; for others, that of the I/O.
    pub fn is_durable(&self) -> bool {
        self.role == Role::Durable
    }
}

impl Subject {
    /// The cases that have this role.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.role == role)
    }

    /// The median of random reads one at a time.
    pub(crate) fn random_read_ns(&self) -> Option<f64> {
        let medians = self.of(Role::RandomRead).filter_map(|case| Some(case.only_reads()?.latency.p50));
        medians.into_iter().find(|p50| *p50 > 0.0)
    }

    /// Whether its disk rotates: the kernel says so, and reads are as slow as that.
    pub(crate) fn rotates(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.rotational == Some(true))
            && self.random_read_ns().is_none_or(|p50| p50 >= SEEK_NS)
    }

    /// The disk's name in sentences.
    pub fn device(&self) -> &str {
        self.disk.as_ref().map_or("the device", |disk| &disk.name)
    }

    /// The curve of random reads over the depth, by rising depth.
    pub fn curve(&self) -> Vec<&Case> {
        let mut curve: Vec<&Case> = self.of(Role::Step).filter(|case| case.only_reads().is_some()).collect();
        curve.sort_by_key(|case| case.depth);
        curve
    }
}
