//! What measurements of storage say, in sentences with their evidence: "answered by a cache", "a limit of 3000 IOPS".
//!
//! This crate knows reports in JSON and facts as plain values. It knows neither how anything was measured, nor who shows
//! the sentences. A finding is made only if its evidence holds; thresholds are named constants, with the source of each
//! value.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | what is known of a target and its cases | `subject.rs`; the figures of a case: `measured.rs`, its windows: `series.rs` |
//! | reads that the storage did not answer | `cached.rs`, `unwritten.rs`, `compressible.rs`, `read_ahead.rs` |
//! | how a rate went over time | `steadiness.rs`, `fall.rs` |
//! | what sets the limit | `limit.rs`, `processor.rs`, `queued.rs`, `settings.rs` |
//! | durable writes | `durability.rs` |
//! | what figures without findings say | `meaning.rs` |
//! | numbers for people | `numbers.rs` |

mod cached;
mod compressible;
mod durability;
mod fall;
mod limit;
#[cfg(test)]
mod made_up;
mod meaning;
mod measured;
pub mod numbers;
mod processor;
mod queued;
mod read_ahead;
pub mod series;
mod settings;
mod steadiness;
mod subject;
mod unwritten;

pub use fall::Fall;
pub use meaning::meaning;
pub use measured::{Counted, Flow, Measured, Percentiles};
pub use steadiness::{Levels, Point, Stalls, Steadiness};
pub use subject::{Backing, Case, Disk, Role, Sampled, Subject};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A cache, or memory, has answered.
    Cached,
    /// Data that was never written was read.
    Unwritten,
    /// The data compresses well.
    Compressible,
    /// The device takes no more requests at a time.
    Queue,
    /// The kernel read more than it was asked for.
    ReadAhead,
    /// A higher level ended, and a lower one stayed.
    Fell,
    /// A rate jumped between two levels, rose or fell, or varied.
    Unsteady,
    /// I/O stood still.
    Stalls,
    /// A limit at a round number.
    Limit,
    /// This machine's processors are the limit.
    Processor,
    /// Durable writes are cheaper than they can be.
    NotDurable,
    /// Blocks of the file system straddle blocks of the device.
    Misaligned,
    /// A setting that costs.
    Setting,
}

impl Kind {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cached => "cached",
            Kind::Unwritten => "unwritten",
            Kind::Compressible => "compressible",
            Kind::Queue => "queue",
            Kind::ReadAhead => "read-ahead",
            Kind::Fell => "fell",
            Kind::Unsteady => "unsteady",
            Kind::Stalls => "stalls",
            Kind::Limit => "limit",
            Kind::Processor => "processor",
            Kind::NotDurable => "not-durable",
            Kind::Misaligned => "misaligned",
            Kind::Setting => "setting",
        }
    }
}

/// Something that a reader of the figures must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub kind: Kind,
    /// One or two sentences on what it means.
    pub words: String,
    /// The figures that show it.
    pub evidence: String,
}

/// All findings about a target, those that make other figures doubtful first.
pub fn findings(subject: &Subject) -> Vec<Finding> {
    let rules: [fn(&Subject) -> Vec<Finding>; 11] = [
        cached::findings,
        unwritten::findings,
        compressible::findings,
        durability::findings,
        fall::findings,
        limit::findings,
        steadiness::findings,
        processor::findings,
        queued::findings,
        settings::findings,
        read_ahead::findings,
    ];
    rules.iter().flat_map(|rule| rule(subject)).collect()
}
