//! The cells of each test, and their jobs.

use super::settings::{Pattern, Settings, Test};
use crate::Case;
use std::fmt::Write;

/// The block sizes of the IOPS test, in bytes.
pub const SIZES: [u64; 8] = [1 << 20, 128 << 10, 64 << 10, 32 << 10, 16 << 10, 8 << 10, 4 << 10, 512];
/// Its mixes: reads in percent.
pub const MIXES: [u32; 7] = [100, 95, 65, 50, 35, 5, 0];
/// The block sizes and mixes of the latency test.
pub const LATENCY_SIZES: [u64; 3] = [8 << 10, 4 << 10, 512];
/// The mixes of the latency test.
pub const LATENCY_MIXES: [u32; 3] = [100, 65, 0];
/// Threads, and I/Os in flight of each, of demand variation.
pub const DEMANDS: [u32; 7] = [32, 16, 8, 6, 4, 2, 1];

/// Block sizes of the composite workload with their shares in percent. The same shares are those of JESD219's enterprise
/// workload.
const COMPOSITE_SIZES: &str = "512/4:1k/1:1536/1:2k/1:2560/1:3k/1:3584/1:4k/67:8k/10:16k/7:32k/3:64k/3";
/// Half of the accesses go to the first 5% of the range, 30% to the next 15%, 20% to the rest.
const COMPOSITE_PLACES: &str = "zoned:50/5:30/15:20/80";

/// The block sizes of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// All blocks have this many bytes.
    Of(u64),
    /// The composite of the composite workload.
    Composite,
}

/// What is measured for one cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Reads in percent.
    pub read: u32,
    /// Its block sizes.
    pub block: Block,
    /// Offsets are random.
    pub is_random: bool,
    /// Workers.
    pub threads: u32,
    /// I/Os in flight of each worker.
    pub depth: u32,
    /// Seconds that it takes.
    pub seconds: f64,
    /// Seconds of idleness before it.
    pub wait: f64,
    /// It only brings the device into a state; its figures are in no table.
    pub is_preparation: bool,
}

impl Cell {
    /// Random I/O of a mix and a block size.
    pub fn random(settings: &Settings, read: u32, block: u64) -> Cell {
        Cell {
            read,
            block: Block::Of(block),
            is_random: true,
            threads: settings.threads.unwrap_or(2),
            depth: settings.depth.unwrap_or(16),
            seconds: settings.cell,
            wait: 0.0,
            is_preparation: false,
        }
    }

    /// Sequential I/O in one direction.
    pub fn sequential(settings: &Settings, read: u32, block: u64) -> Cell {
        Cell {
            is_random: false,
            threads: settings.threads.unwrap_or(1),
            depth: settings.depth.unwrap_or(32),
            ..Cell::random(settings, read, block)
        }
    }

    /// With this many workers and I/Os in flight of each.
    pub fn with(self, threads: u32, depth: u32) -> Cell {
        Cell { threads, depth, ..self }
    }

    /// That takes so long.
    pub fn lasting(self, seconds: f64) -> Cell {
        Cell { seconds, ..self }
    }

    /// The word for it in a name.
    pub fn id(&self) -> String {
        format!("{}r-{}", self.read, self.block.word())
    }

    /// The same where demands vary.
    pub fn demand_id(&self) -> String {
        let begin = if self.is_preparation { "w" } else { "" };
        format!("{begin}t{}-q{}", self.threads, self.depth)
    }

    /// What it does, in a few words.
    pub fn words(&self) -> String {
        let order = if self.is_random { "random" } else { "sequential" };
        let wait = if self.wait > 0.0 {
            format!(" after {} s of idleness", short(self.wait))
        } else {
            String::new()
        };
        format!(
            "{order} {}/{} {}, {}×{}{wait}",
            self.read,
            100 - self.read,
            self.block.words(),
            self.threads,
            self.depth
        )
    }

    /// The bytes in which a worker moves in order: each of several has a part of the range, in whole MiB.
    pub fn part(&self, settings: &Settings) -> u64 {
        match self.threads {
            threads if self.is_random || threads <= 1 => settings.range,
            threads => match (settings.range / u64::from(threads)) >> 20 << 20 {
                0 => settings.range,
                part => part,
            },
        }
    }

    /// Its case. `skipped`: bytes from the beginning of a worker's part at which sequential I/O goes on.
    pub fn case(&self, settings: &Settings, name: String, skipped: u64) -> Case {
        let mut job = Job::new(settings, &name, self.threads, self.depth);
        match (self.is_random, self.read) {
            (true, 100) => job.set("rw", "randread"),
            (true, 0) => job.set("rw", "randwrite"),
            (true, read) => {
                job.set("rw", "randrw");
                job.set("rwmixread", read);
            }
            (false, 0) => job.set("rw", "write"),
            (false, _) => job.set("rw", "read"),
        }
        match self.block {
            Block::Of(bytes) => job.set("bs", bytes),
            Block::Composite => {
                job.set("bssplit", COMPOSITE_SIZES);
                job.set("random_distribution", COMPOSITE_PLACES);
            }
        }
        if self.is_random {
            job.set("norandommap", 1);
        }
        let part = self.part(settings);
        job.set("offset", skipped);
        job.set("size", part.saturating_sub(skipped));
        if part < settings.range {
            job.set("offset_increment", part);
        }
        if self.wait > 0.0 {
            job.set("startdelay", format!("{:.0}ms", self.wait * 1000.0));
        }
        job.set("time_based", 1);
        job.set("runtime", format!("{:.0}ms", (self.seconds * 1000.0).max(1.0)));
        let seconds = self.seconds + self.wait;
        Case { name, what: self.words(), job: job.text, seconds }
    }
}

impl Block {
    /// As in a name: `4k`.
    pub fn word(self) -> String {
        match self {
            Block::Of(bytes) if bytes < 1024 => bytes.to_string(),
            Block::Of(bytes) => format!("{}k", bytes >> 10),
            Block::Composite => "mix".to_owned(),
        }
    }

    /// As in the specification: `0.5 KiB`.
    pub fn words(self) -> String {
        match self {
            Block::Of(bytes) => format!("{} KiB", bytes as f64 / 1024.0),
            Block::Composite => "composite".to_owned(),
        }
    }
}

/// A number of seconds without digits that say nothing.
fn short(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Workload-independent preconditioning: the range is written in order, until twice the capacity has been written.
pub fn preconditioning(settings: &Settings, name: String) -> Case {
    let mut job = Job::new(settings, &name, 1, 32);
    job.set("rw", "write");
    job.set("bs", "128k");
    job.set("size", settings.range);
    job.set("io_size", preconditioned(settings));
    let what = "writes twice the capacity in order, 128 KiB".to_owned();
    Case { name, what, job: job.text, seconds: 0.0 }
}

/// Bytes that preconditioning writes.
pub fn preconditioned(settings: &Settings) -> u64 {
    settings.user_capacity().saturating_mul(2) >> 17 << 17
}

/// Purging by discards: the device is told that all of it is unused; a file loses its blocks.
pub fn discard(settings: &Settings, name: String) -> Case {
    const LARGE: u64 = 64 << 20;
    let engine = if settings.is_file { "falloc" } else { "psync" };
    let rest = settings.capacity % LARGE;
    let mut text = String::new();
    for (offset, size, block) in
        [(0, settings.capacity - rest, LARGE), (settings.capacity - rest, rest, rest)]
    {
        if size == 0 {
            continue;
        }
        let mut job = Job { text: format!("[{name}]\n") };
        job.set("filename", settings.file.replace(':', "\\:"));
        job.set("ioengine", engine);
        job.set("rw", "trim");
        job.set("offset", offset);
        job.set("size", size);
        job.set("bs", block);
        text += &job.text;
    }
    Case { name, what: "discards all blocks".to_owned(), job: text, seconds: 0.0 }
}

/// A job file of one job.
struct Job {
    text: String,
}

impl Job {
    fn new(settings: &Settings, name: &str, threads: u32, depth: u32) -> Job {
        let mut job = Job { text: format!("[{name}]\n") };
        // A colon would begin another name.
        job.set("filename", settings.file.replace(':', "\\:"));
        job.set("direct", u8::from(settings.is_direct));
        if depth == 1 {
            job.set("ioengine", "psync");
        } else {
            // Buffered I/O is asynchronous only with io_uring.
            job.set("ioengine", if settings.is_direct { "libaio" } else { "io_uring" });
            job.set("iodepth", depth);
        }
        if threads > 1 {
            job.set("numjobs", threads);
            job.set("thread", 1);
        }
        job.set("group_reporting", 1);
        job.set("lat_percentiles", 1);
        job.set("allow_file_create", 0);
        match settings.pattern {
            Pattern::Random => job.set("refill_buffers", 1),
            Pattern::Zeroes => job.set("zero_buffers", 1),
            Pattern::Compressible(percent) => {
                job.set("refill_buffers", 1);
                job.set("buffer_compress_percentage", percent);
            }
        }
        // Each cell has places and data of its own, and the same ones if it is run by hand.
        job.set("randseed", seed(name));
        job
    }

    fn set(&mut self, option: &str, value: impl std::fmt::Display) {
        writeln!(self.text, "{option}={value}").expect("strings take everything");
    }
}

/// A number that follows from a name (FNV-1a), below 2^31.
fn seed(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 33
}

/// The cells of a round of a test that runs in rounds.
pub fn round(settings: &Settings, test: Test, block: Option<u64>) -> Vec<Cell> {
    let fits = |size: &u64| *size >= settings.block;
    match test {
        Test::Iops => {
            let of_mix = |read: u32| {
                SIZES.into_iter().filter(fits).map(move |size| Cell::random(settings, read, size))
            };
            MIXES.into_iter().flat_map(of_mix).collect()
        }
        Test::Throughput => {
            [100, 0].map(|read| Cell::sequential(settings, read, block.unwrap_or(1 << 20))).into()
        }
        Test::Latency => {
            let of_mix = |read: u32| {
                let cell = move |size| Cell::random(settings, read, size).with(1, 1);
                LATENCY_SIZES.into_iter().filter(fits).map(cell)
            };
            LATENCY_MIXES.into_iter().flat_map(of_mix).collect()
        }
        Test::DemandIntensity => demands(&Cell::random(settings, 65, 8 << 10)),
        Test::Composite => demands(&Cell { block: Block::Composite, ..Cell::random(settings, 40, 4096) }),
        Test::WriteSaturation | Test::HostIdleRecovery => vec![Cell::random(settings, 0, 4096)],
        Test::CrossStimulusRecovery => Vec::new(),
    }
}

/// All combinations of threads and depths. Writes come before each number of threads, so that all begin in the same state.
fn demands(cell: &Cell) -> Vec<Cell> {
    let mut cells = Vec::new();
    for threads in DEMANDS {
        cells.push(Cell { read: 0, is_preparation: true, ..cell.clone() }.with(threads, DEMANDS[0]));
        cells.extend(DEMANDS.map(|depth| cell.clone().with(threads, depth)));
    }
    cells
}
