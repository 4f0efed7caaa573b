//! The description of a worker, which is written before its first write.

use crate::block::Spec;
use iolite_content::{Fill, PatternPiece};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The description of a worker at the beginning of a state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The program that writes, with its version.
    pub program: String,
    /// The name of the job.
    pub job: String,
    /// The job's number in headers.
    pub number: u16,
    /// `verify`.
    pub kind: String,
    /// When the job began: seconds since 1970.
    pub began: u64,
    /// The seed from which the seeds of its blocks are derived.
    pub seed: u64,
    /// Bytes of a block: all offsets (within their region) and lengths of writes are multiples of it.
    pub block: u64,
    /// How many writes can be in flight.
    pub depth: u32,
    /// All writes have the same length, and their offsets (within their region) are multiples of it.
    pub is_uniform: bool,
    /// Completed writes are durable without a flush (`sync=1` and the like).
    pub is_durable: bool,
    /// The engine itself copies the data to its place, so a write in flight may end at any byte. (States of earlier
    /// versions do not say so.)
    #[serde(default = "may_be")]
    pub is_copied: bool,
    /// How many writes a pass over the workload has; 0 = that is not known. (States of earlier versions do not say so.)
    #[serde(default)]
    pub per_pass: u64,
    /// The job flushes, so that the last flushed write of each block is kept as well.
    pub has_flushes: bool,
    /// How its blocks are written. (States of earlier versions do not say so.)
    #[serde(default)]
    pub imprint: Option<StateImprint>,
    /// The files that it writes to.
    pub files: Vec<StateFile>,
}

fn may_be() -> bool {
    true
}

/// The facts, apart from their type, that are needed to check blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateImprint {
    /// Bytes of an interval. 0: a block is one interval, as is a block that is not a multiple of this.
    pub interval: u64,
    /// `verify_offset`.
    pub offset: u64,
    /// `verify_pattern` as text; empty without one.
    pub pattern: String,
    /// `verify_pattern_interval`.
    pub pattern_interval: u64,
}

impl StateImprint {
    /// How blocks are written.
    pub fn of(spec: &Spec) -> StateImprint {
        let has_header = spec.kind.has_header();
        StateImprint {
            interval: if has_header { spec.interval as u64 } else { 0 },
            offset: if has_header { spec.offset as u64 } else { 0 },
            pattern: match &spec.fill {
                Fill::Pattern(pieces) => pattern_words(pieces),
                Fill::Zeros | Fill::Random => String::new(),
            },
            pattern_interval: spec.pattern_interval as u64,
        }
    }
}

/// A pattern in hexadecimal, or the digest of a long one.
fn pattern_words(pieces: &[PatternPiece]) -> String {
    /// Longer patterns are represented by their digest.
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

/// A file that is written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFile {
    /// Its name.
    pub name: String,
    /// The offset of the region that is written to, in bytes.
    pub offset: u64,
    /// Bytes of the region.
    pub length: u64,
    /// Its identity when the job began; `None` = it did not exist then, or is an object in a storage. (States of earlier
    /// versions do not have it.)
    #[serde(default)]
    pub identity: Option<FileIdentity>,
    /// Its path when the job began, from the root and without links: of a file that is made during the job, all that is
    /// known of it. `None` = it is an object in a storage. (States of earlier versions do not have it.)
    #[serde(default)]
    pub place: Option<String>,
}

impl StateFile {
    /// Whether the file that has this name at present is the one that was written to. The name or the place decides if
    /// an identity is unknown. A file of the same name may have moved to another device: the numbers of devices can
    /// change whenever the machine starts.
    pub fn is(&self, name: &str, is_local: bool) -> bool {
        let has_name = self.name == name;
        match (self.identity, FileIdentity::of(name).filter(|_| is_local)) {
            (Some(then), Some(now)) => then == now || (has_name && then.inode == now.inode),
            _ => has_name || (is_local && self.place.is_some() && self.place == place_of(name)),
        }
    }
}

/// The path of this name, from the root and without links; the file itself need not exist.
pub(crate) fn place_of(name: &str) -> Option<String> {
    let name = Path::new(name);
    let found = name.canonicalize().or_else(|error| {
        let (Some(parent), Some(last)) = (name.parent(), name.file_name()) else { return Err(error) };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        parent.canonicalize().map(|parent| parent.join(last))
    });
    Some(found.ok()?.display().to_string())
}

/// The identity of a file of this machine: equal for all of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The number of the file system's device; of a device, its own.
    pub device: u64,
    /// The number of the file in it; of a device, 0.
    pub inode: u64,
}

impl FileIdentity {
    /// The identity of the file that has this name at present, if there is one.
    pub fn of(name: &str) -> Option<FileIdentity> {
        let found = std::fs::metadata(name).ok()?;
        let kind = found.file_type();
        Some(match kind.is_block_device() || kind.is_char_device() {
            true => FileIdentity { device: found.rdev(), inode: 0 },
            false => FileIdentity { device: found.dev(), inode: found.ino() },
        })
    }
}
