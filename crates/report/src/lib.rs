//! Reports and status lines: turns measurements into bytes.
//!
//! Each output format is an [`Exporter`] in its own file: [`Normal`] for people, [`Json`] and [`Terse`] for programs.
//! (`percentiles.rs` has their table of percentiles, `json.rs` those in JSON.) [`header`] and [`live`] have the lines that
//! are printed before and during a run. The layouts are those of fio 3.42, character for character, because tools and
//! people are used to them. This crate does not know how the values were measured.

mod cluster;
mod comparison;
mod far_end;
pub mod header;
mod in_flight;
pub mod live;

pub mod clock;
mod idleness;
mod json;
mod latency;
mod normal;
mod percentiles;
mod rates;
mod terse;

#[cfg(test)]
mod example;

pub use idleness::calibration as idle_calibration;
pub use in_flight::in_flight;
pub use json::{Json, series_since};
pub use normal::{Normal, write_hosts};
pub use terse::{Terse, TerseVersion};

use iolite_stats::{Cluster, Report};
use iolite_types::units;
use std::io;

/// The program that reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name and version in one word, where programs look for them: `iolite-1.0.0`, or `fio-3.42`.
    pub version: String,
    /// The real program, whatever its name: `iolite-1.0.0`.
    pub own_version: String,
}

impl Program {
    /// Whether it was called by its own name. Under fio's name, the output contains only lines that fio has.
    fn is_itself(&self) -> bool {
        self.version == self.own_version
    }
}

/// An output format.
///
/// If several formats are requested, users expect them in the order terse, JSON, normal.
pub trait Exporter {
    /// Writes the whole report.
    ///
    /// # Errors
    ///
    /// The error of writing to `out`.
    fn write(&self, report: &Report, program: &Program, out: &mut dyn io::Write) -> io::Result<()>;

    /// Writes the results of several machines, one after the other, and then all of them as one.
    ///
    /// # Errors
    ///
    /// The error of writing to `out`.
    fn write_cluster(&self, cluster: &Cluster, program: &Program, out: &mut dyn io::Write) -> io::Result<()>;
}
