//! Blocks that can be checked: written with `verify`, and compared when they are read.
//!
//! A [`Stamper`] fills a block that is about to be written. The block is divided into intervals of `verify_interval`
//! bytes (one interval by default). Each interval has a header that names its place in the file and the write it
//! belongs to, and a checksum of the rest (`block/header.rs` has the layout, `block/digest.rs` the checksums). The rest
//! is random data that depends only on the seed in the header and on the place in the file. So the header suffices to
//! generate the data again, and to find not only that a block is wrong but also how. A pattern needs no seed.
//!
//! ```text
//! block    ┌ interval ───────────────────────┬ interval ───────────────────────┬ …
//!          │ header │ checksum │ data …      │ header │ checksum │ data …      │
//! ```
//!
//! With `verify_offset`, header and checksum are swapped with the data at that offset after the checksum was made: it
//! covers the data in the order of an interval whose header comes first.
//!
//! A [`Verifier`] checks blocks. [`Expected`] gives the place of a block and the writes that are valid there: the last
//! write to that place; one of several, after a crash; or any, if the write is unknown. A correct block costs one
//! checksum. Only for a wrong block is the content generated again and compared, and a [`Diagnosis`] describes the
//! damage.
//!
//! A [`Mixture`] finds out whether a block consists of parts of several valid writes, as a crash leaves it.
//!
//! The modules depend on each other in one direction: `check` → `inquiry` → `mismatch` → `fault` → `header` → `digest`.

mod check;
mod data;
mod diagnosis;
mod digest;
mod expected;
mod fault;
mod foreign;
mod header;
mod inquiry;
mod interval;
mod kind;
mod mismatch;
mod mixture;
mod moves;
mod parts;
mod spec;
mod stamp;
mod subject;

pub use check::Verifier;
pub use diagnosis::Diagnosis;
pub use digest::{checksum, implementations};
pub use expected::{Expected, Write};
pub use fault::Field;
pub use header::{Header, HeaderFormat};
pub use kind::Kind;
pub use mismatch::{Differences, Mismatch};
pub use mixture::{Mixture, Named, Part};
pub use spec::{Spec, SpecError};
pub use stamp::{Identity, Stamper};

#[cfg(test)]
mod tests;
