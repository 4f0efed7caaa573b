//! What was measured: moments, histograms, samples, depths, and the report they add up to.
//!
//! Everything here merges exactly: merging workers and then asking for a mean or a percentile gives the same as
//! asking over all their I/Os. [`live`] is the form in which a worker publishes its numbers to readers in other
//! processes; the rest are plain values.

#[cfg(test)]
mod arbitrary;
mod distribution;
mod histogram;
mod idle;
mod latency;
pub mod live;
mod merge;
mod moments;
mod rate;
mod report;
mod samples;
mod serial;
mod snapshot;
mod steady;

pub use distribution::*;
pub use histogram::*;
pub use idle::*;
pub use latency::*;
pub use moments::*;
pub use rate::*;
pub use report::*;
pub use samples::*;
pub use snapshot::*;
pub use steady::*;
