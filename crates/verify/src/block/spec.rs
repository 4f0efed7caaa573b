//! How blocks are written and checked.

use super::header::HeaderFormat;
use super::kind::Kind;
use iolite_content::{Compress, Fill};
use serde::{Deserialize, Serialize};

/// How blocks are written and checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The method.
    pub kind: Kind,
    /// Bytes of an interval, each of which has a header (`verify_interval`); 0: one interval per block. A block that is
    /// not a multiple of this is one interval.
    pub interval: usize,
    /// The place of the header in each interval, in bytes (`verify_offset`).
    pub offset: usize,
    /// The kind of data: random, zeros, or the pattern of `verify_pattern`.
    pub fill: Fill,
    /// The pattern restarts after this many bytes, and `%o` is the offset of that place (`verify_pattern_interval`); 0:
    /// it starts with the block, and `%o` is the block's offset.
    pub pattern_interval: usize,
    /// Mix random data into zeros or the pattern (`buffer_compress_percentage`). A pattern that is itself checked
    /// remains unchanged.
    pub compress: Option<Compress>,
    /// The layout of headers that are written. Both layouts are read.
    pub format: HeaderFormat,
    /// Require the seed of the expected write (`verify_header_seed`).
    pub check_seed: bool,
    /// Require the number of the expected write (`verify_write_sequence`).
    pub check_sequence: bool,
}

/// Why blocks cannot be written as a [`Spec`] says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// An interval is too small for its header and a byte of data.
    #[error(
        "intervals of {interval} bytes are too small for verify={kind}: header and checksum take {overhead}"
    )]
    Interval {
        /// The kind's name.
        kind: &'static str,
        /// Bytes of the smallest interval.
        interval: usize,
        /// Bytes of header and checksum.
        overhead: usize,
    },
    /// The header does not fit at `verify_offset`.
    #[error(
        "verify_offset={offset} does not fit: header and checksum of verify={kind} take {overhead} bytes, so in \
         intervals of {interval} it is 0, or {overhead} to {}", interval.saturating_sub(*overhead)
    )]
    Offset {
        /// The kind's name.
        kind: &'static str,
        /// The offset.
        offset: usize,
        /// Bytes of the smallest interval.
        interval: usize,
        /// Bytes of header and checksum.
        overhead: usize,
    },
    /// The method compares a pattern, but `verify_pattern` is missing.
    #[error("verify={0} needs a verify_pattern")]
    NoPattern(&'static str),
}

impl Spec {
    /// Whether blocks have the data that they would have without verification: nothing is checked (`verify=null`), and no
    /// `verify_pattern` was given.
    pub fn leaves_data(&self) -> bool {
        self.kind == Kind::Null && self.fill == Fill::Random
    }

    /// Random data in blocks of one interval, with headers of 3.42; seed and number are required.
    pub fn new(kind: Kind) -> Spec {
        Spec {
            kind,
            interval: 0,
            offset: 0,
            fill: Fill::Random,
            pattern_interval: 0,
            compress: None,
            format: HeaderFormat::default(),
            check_seed: true,
            check_sequence: true,
        }
    }

    /// Checks that blocks of at least this many bytes can be written and checked.
    ///
    /// # Errors
    ///
    /// An interval is too small, the header does not fit at its place, or a pattern is missing.
    pub fn validate(&self, smallest_block: usize) -> Result<(), SpecError> {
        let kind = self.kind.name();
        if self.kind.compares_pattern() && !matches!(self.fill, Fill::Pattern(_)) {
            return Err(SpecError::NoPattern(kind));
        }
        if !self.kind.has_header() {
            return Ok(());
        }
        let (interval, overhead, offset) =
            (self.interval_of(smallest_block), self.overhead(self.format), self.offset);
        if interval <= overhead {
            return Err(SpecError::Interval { kind, interval, overhead });
        }
        if offset != 0 && (offset < overhead || offset + overhead > interval) {
            return Err(SpecError::Offset { kind, offset, interval, overhead });
        }
        Ok(())
    }

    /// Bytes of header and checksum in this format.
    pub(super) fn overhead(&self, format: HeaderFormat) -> usize {
        if self.kind.has_header() { format.size() + self.kind.digest_size() } else { 0 }
    }

    /// Bytes of the intervals of a block of this many bytes.
    pub(super) fn interval_of(&self, block: usize) -> usize {
        if self.interval == 0 || !block.is_multiple_of(self.interval) { block } else { self.interval }
    }
}
