//! Measurements: moments, histograms, samples, depths, and the report made from them.
//!
//! All merging is exact: the mean or a percentile of merged workers is that of all their I/Os. Workers publish their
//! measurements to other processes in the form of [`live`]; everything else is plain values.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | what a worker publishes while it runs | `live.rs`; per priority: `live/priorities.rs`; the time of a direction, for its rates: `LiveClock` |
//! | one report from those of all workers; of several machines | `merge.rs`; `hosts.rs` |
//! | the run over time, in windows that are merged as it grows | `series.rs` |
//! | steady states | `steady.rs` |
//! | where the time of I/Os went | `stages.rs` |
//! | what the status line and pages see | `snapshot.rs`, `event.rs`; I/Os in flight: `in_flight.rs` |
//! | numbers that JavaScript would round | `serial.rs`, `histogram.rs` |

mod accelerator;
#[cfg(test)]
mod arbitrary;
mod distribution;
mod event;
mod facts;
mod histogram;
mod hosts;
mod idle;
mod in_flight;
mod latency;
pub mod live;
mod merge;
mod moments;
mod rate;
mod report;
mod samples;
mod serial;
mod series;
mod snapshot;
mod stages;
mod steady;

pub use accelerator::*;
pub use distribution::*;
pub use event::*;
pub use facts::*;
pub use histogram::*;
pub use hosts::*;
pub use idle::*;
pub use in_flight::*;
pub use latency::*;
pub use moments::*;
pub use rate::*;
pub use report::*;
pub use samples::*;
pub use series::*;
pub use snapshot::*;
pub use stages::*;
pub use steady::*;
