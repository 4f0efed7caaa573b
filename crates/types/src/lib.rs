//! The few types that every crate of Iolite shares.
//!
//! Only types needed on both sides of a crate boundary live here: directions, operations of an engine, block sizes,
//! kinds of files, a value per direction, the formatting of numbers, and the counting of repeated messages.

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!(
    "Iolite runs on 64-bit little-endian processors only: offsets and counts have 64 bits, also in shared memory, and much of \
     what it stores and sends is as it is in memory"
);

mod bidi;
mod block_size;
mod date;
mod loopback;
mod repeated;
mod run_end;
mod system_error;
pub mod units;

pub use bidi::is_bidi_control;
pub use block_size::BlockSize;
pub use date::{civil, utc, utc_to_the_nanosecond};
pub use loopback::is_loopback;
pub use repeated::Repeated;
pub use run_end::{RunEnd, RunStatus};
pub use system_error::{
    WRONG_DATA, describe_errno, describe_error, describe_job_error, without_error_numbers,
};

use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::ops::{Index, IndexMut};
use std::path::{Path, PathBuf};

/// Why the program cannot do what the text before this names: it was built without this feature of cargo.
pub fn built_without(feature: impl Display) -> String {
    format!(
        "this program was built without it; build it with the feature \"{feature}\", which is on by default: \
         cargo build --release --features {feature}"
    )
}

/// The direction of an I/O. Statistics, block sizes, mixes and rates exist once per direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Direction {
    /// Data flows from the storage into a buffer.
    Read = 0,
    /// Data flows from a buffer to the storage.
    Write = 1,
    /// A range is discarded; no data flows.
    Trim = 2,
}

impl Direction {
    /// All directions, in the order in which every format lists them.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// The position of this direction in [`Direction::ALL`] and in every per-direction array.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name used in reports: `read`, `write`, `trim`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
        }
    }
}

/// The largest number that divides both. If one of them is 0, it is the other.
pub const fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The smallest common multiple of `a` and `b` from `least` to `most`; `None` if there is no such multiple, or one of
/// them is 0.
pub fn common_multiple(a: u64, b: u64, least: u64, most: u64) -> Option<u64> {
    let multiple = a.checked_div(greatest_common_divisor(a, b))?.checked_mul(b).filter(|&it| it > 0)?;
    least.max(1).checked_next_multiple_of(multiple).filter(|&found| found <= most)
}

/// Whether this is the name of standard input or output, `-`, rather than of a file.
pub fn is_standard_stream(name: &Path) -> bool {
    name == Path::new("-")
}

/// `directory/name`. The directory is a prefix of absolute names as well.
pub fn prefixed(directory: &Path, name: &Path) -> PathBuf {
    if directory.as_os_str().is_empty() {
        return name.to_owned();
    }
    directory.join(name.strip_prefix("/").unwrap_or(name))
}

/// The operation that an engine performs with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Operation {
    /// Read `length` bytes at `offset` into the buffer.
    Read = 0,
    /// Write `length` bytes of the buffer at `offset`.
    Write = 1,
    /// Discard `length` bytes at `offset`.
    Trim = 2,
    /// Flush data and metadata of the file (`fsync`).
    Sync = 3,
    /// Flush the data of the file (`fdatasync`).
    DataSync = 4,
    /// Start or wait for write-back of a range (`sync_file_range`).
    SyncFileRange = 5,
    /// Do a piece of work that is not an I/O. Only engines with such units understand it.
    Work = 6,
}

impl Operation {
    /// The direction of this operation, if it is an I/O; `None` for syncs, which are counted separately, and for work.
    #[inline(always)]
    pub const fn direction(self) -> Option<Direction> {
        match self {
            Operation::Read => Some(Direction::Read),
            Operation::Write => Some(Direction::Write),
            Operation::Trim => Some(Direction::Trim),
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange | Operation::Work => None,
        }
    }

    /// The name used in error messages and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Trim => "trim",
            Operation::Sync => "sync",
            Operation::DataSync => "datasync",
            Operation::SyncFileRange => "sync_file_range",
            Operation::Work => "work",
        }
    }
}

/// The kind of file that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// A regular file, or no file yet.
    Regular,
    /// A block device.
    Block,
    /// A character device.
    Char,
    /// A pipe, a socket, standard input or output (`-`).
    Pipe,
}

impl FileKind {
    /// The name used in messages: `regular file`, `block device`, and so on.
    pub const fn name(self) -> &'static str {
        match self {
            FileKind::Regular => "regular file",
            FileKind::Block => "block device",
            FileKind::Char => "character device",
            FileKind::Pipe => "stream",
        }
    }
}

/// An I/O priority in the kernel's encoding (linux/ioprio.h): class (1 real time, 2 best effort, 3 idle), level within
/// the class (0 is the highest), and a hint for the device.
pub const fn io_priority(class: u32, level: u32, hint: u32) -> u16 {
    ((class & 7) << 13 | (hint & 1023) << 3 | level & 7) as u16
}

impl From<Direction> for Operation {
    #[inline(always)]
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Operation::Read,
            Direction::Write => Operation::Write,
            Direction::Trim => Operation::Trim,
        }
    }
}

/// One value for each direction, indexed by [`Direction`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PerDirection<T> {
    /// The values in the order of [`Direction::ALL`].
    pub values: [T; 3],
}

impl<T> PerDirection<T> {
    /// A value for each of read, write and trim.
    pub const fn new(read: T, write: T, trim: T) -> Self {
        PerDirection { values: [read, write, trim] }
    }

    /// The values with their directions.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        Direction::ALL.into_iter().zip(self.values.iter())
    }

    /// Applies `f` to each value.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> PerDirection<U> {
        PerDirection { values: self.values.map(f) }
    }
}

impl<T: Clone> PerDirection<T> {
    /// The same value for all directions.
    pub fn all(value: T) -> Self {
        PerDirection { values: [value.clone(), value.clone(), value] }
    }
}

impl<T> Index<Direction> for PerDirection<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, direction: Direction) -> &T {
        &self.values[direction.index()]
    }
}

impl<T> IndexMut<Direction> for PerDirection<T> {
    #[inline(always)]
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        &mut self.values[direction.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_index_their_own_place() {
        let values = PerDirection::new('r', 'w', 't');
        assert_eq!(values[Direction::Read], 'r');
        assert_eq!(values[Direction::Write], 'w');
        assert_eq!(values[Direction::Trim], 't');
        for (position, direction) in Direction::ALL.into_iter().enumerate() {
            assert_eq!(direction.index(), position);
            assert_eq!(Operation::from(direction).direction(), Some(direction));
        }
        assert_eq!(Operation::Sync.direction(), None);
    }

    #[test]
    fn priorities_have_the_kernels_layout() {
        assert_eq!(io_priority(0, 0, 0), 0);
        assert_eq!(io_priority(1, 0, 0), 1 << 13);
        assert_eq!(io_priority(2, 7, 0), 2 << 13 | 7);
        assert_eq!(io_priority(3, 1, 1023), 0x7ff9);
    }
}
