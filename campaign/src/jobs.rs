//! Jobs at random: of many shapes, each of them small.

use crate::trial::Trial;

/// How blocks are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The options.
    pub options: &'static str,
    /// Bytes of header and checksum in front of the data; 0 = there is no header.
    pub header: u64,
    /// Everything behind the header is checked too.
    pub covers_data: bool,
    /// Any damage is found, not only that of a few bits.
    pub is_strong: bool,
}

const fn method(options: &'static str, digest: u64) -> Method {
    Method { options, header: 48 + digest, covers_data: true, is_strong: true }
}

/// All methods that check anything.
const METHODS: &[Method] = &[
    method("--verify=crc32c", 4),
    method("--verify=md5", 16),
    method("--verify=crc64", 8),
    method("--verify=crc32", 4),
    method("--verify=sha1", 20),
    method("--verify=sha256", 64),
    method("--verify=sha512", 128),
    method("--verify=sha3-256", 32),
    method("--verify=xxhash", 4),
    Method { is_strong: false, ..method("--verify=crc16", 2) },
    Method { is_strong: false, ..method("--verify=crc7", 1) },
    Method { covers_data: false, ..method("--verify=meta", 0) },
    method("--verify=pattern_hdr --verify_pattern=0xdeadbeef", 0),
    Method { header: 0, ..method("--verify=pattern --verify_pattern=%o", 0) },
];

/// Engines that complete I/Os in the call that issues them, and others.
const ENGINES: [&[&str]; 2] =
    [&["psync", "sync", "pvsync", "pvsync2", "mmap"], &["libaio", "io_uring", "posixaio", "vsync"]];

/// A method.
pub fn any_method(trial: &mut Trial) -> Method {
    trial.one_of(METHODS)
}

/// An engine, with a depth that it makes use of.
pub fn any_engine(trial: &mut Trial) -> String {
    let queues = trial.once_in(2);
    let engine = trial.one_of(ENGINES[usize::from(queues)]);
    match queues {
        true => format!("--ioengine={engine} --iodepth={}", trial.one_of(&[1, 2, 4, 16, 32])),
        false => format!("--ioengine={engine}"),
    }
}

/// One of these, in one of so many cases.
pub fn sometimes(trial: &mut Trial, times: u64, choices: &[&str]) -> String {
    if trial.once_in(times) { format!(" {}", trial.one_of(choices)) } else { String::new() }
}

/// The writes of a verified job, in blocks of one size.
pub struct Written {
    /// The options of the job but its engine.
    pub options: String,
    /// How blocks are verified.
    pub method: Method,
    /// Bytes of a block.
    pub block: u64,
    /// Bytes that have a header and a checksum of their own.
    pub interval: u64,
    /// Blocks of the file.
    pub blocks: u64,
}

/// A verified job that writes every block of one file, `data`, once or more.
pub fn written(trial: &mut Trial) -> Written {
    let method = any_method(trial);
    let block = trial.one_of(&[4096, 8192, 16384, 65536]);
    let interval =
        if method.header > 0 && trial.once_in(3) { trial.one_of(&[1024, 2048, 4096]) } else { block };
    let blocks = trial.between(8, 200);
    let size = block * blocks;
    let rw = trial.one_of(&["write", "randwrite", "randwrite", "write"]);
    let mut options = format!(
        "--name=v --filename=data --size={size} --bs={block} --rw={rw} {} --verify_interval={interval}",
        method.options
    );
    options += &sometimes(trial, 4, &["--loops=2", "--loops=3"]);
    options += &sometimes(trial, 4, &["--fsync=8", "--fdatasync=20", "--sync=1"]);
    options += &sometimes(trial, 6, &["--random_generator=lfsr", "--randseed=77", "--allrandrepeat=1"]);
    if method.header > 0 && method.covers_data && interval >= 1024 {
        options += &sometimes(trial, 5, &["--verify_offset=256", "--verify_offset=512"]);
    }
    Written { options, method, block, interval, blocks }
}
