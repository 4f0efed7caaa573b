//! Data that can be checked: what is written with `verify`, and whether it came back.
//!
//! A [`Stamper`] fills a block that is about to be written. It is cut into intervals (`verify_interval`, otherwise
//! the block is one), and each gets a header that says where it belongs and whose write it is, and a checksum of
//! the rest (`verify/header.rs` has the layout, `verify/digest.rs` the checksums). The rest is random and depends
//! on nothing but the seed in the header and the place in the file. So whoever has the header can make the data
//! again, and tell not only that a block is wrong but in what way. A pattern needs no seed.
//!
//! ```text
//! block    ┌ interval ───────────────────────┬ interval ───────────────────────┬ …
//!          │ header │ checksum │ data …      │ header │ checksum │ data …      │
//! ```
//!
//! With `verify_offset` header and checksum change places with what is there, after the checksum was made: it
//! covers the data in the order of an interval that has its header in front.
//!
//! A [`Verifier`] checks blocks. It knows from [`Expected`] where a block was read, and which writes are good
//! answers: the last one to that place; several, after a crash; or, where nothing is known, any. Checking costs no more
//! than the checksum; only when something is wrong the content is made again and compared, and a [`Diagnosis`]
//! says what it looks like.

mod check;
mod diagnosis;
mod digest;
mod foreign;
mod header;
mod inquiry;
mod kind;
mod mismatch;
mod mixture;
mod stamp;

pub use check::{Expected, Verifier, Write};
pub use diagnosis::Diagnosis;
pub use digest::checksum;
pub use header::{Header, HeaderFormat};
pub use kind::Kind;
pub use mismatch::{Differences, Field, Mismatch};
pub use mixture::{Mixture, Named, Part};
pub use stamp::{Identity, Stamper};

use iolite_content::{Compress, Fill};

/// How blocks are written and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The method.
    pub kind: Kind,
    /// A header for each this many bytes (`verify_interval`); 0: one per block. A block that this does not divide
    /// is one interval.
    pub interval: usize,
    /// Where in each interval the header is (`verify_offset`).
    pub offset: usize,
    /// What the data is: random, zeros, or the pattern of `verify_pattern`.
    pub fill: Fill,
    /// The pattern starts anew after this many bytes, and `%o` is the offset of that place
    /// (`verify_pattern_interval`); 0: it is laid over the block, and `%o` is the block's offset.
    pub pattern_interval: usize,
    /// Mix random data into zeros or the pattern (`buffer_compress_percentage`). A pattern that is checked itself
    /// stays what it is.
    pub compress: Option<Compress>,
    /// The layout of headers that are written. Both are read.
    pub format: HeaderFormat,
    /// Insist on the seed of the expected write (`verify_header_seed`).
    pub check_seed: bool,
    /// Insist on the number of the expected write (`verify_write_sequence`).
    pub check_sequence: bool,
}

/// Why blocks cannot be written like that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// An interval has no room for its header and a byte of data.
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
    /// The header does not fit at its place.
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
    /// A pattern is to be checked, and there is none.
    #[error("verify={0} needs a verify_pattern")]
    NoPattern(&'static str),
}

impl Spec {
    /// Random data in blocks of one interval, written with headers of 3.42, and everything is insisted upon.
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

    /// Whether blocks of these sizes and more can be written and checked.
    ///
    /// # Errors
    ///
    /// Intervals that are too small, a header that does not fit at its place, a pattern that is missing.
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
    fn overhead(&self, format: HeaderFormat) -> usize {
        if self.kind.has_header() { format.size() + self.kind.digest_size() } else { 0 }
    }

    /// The size of the intervals of a block.
    fn interval_of(&self, block: usize) -> usize {
        if self.interval == 0 || !block.is_multiple_of(self.interval) { block } else { self.interval }
    }
}

#[cfg(test)]
mod tests;
