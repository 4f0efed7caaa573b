//! Reports as pages: one HTML file that opens anywhere, without a network.
//!
//! A page is made only from a report in JSON, of Iolite or fio. So the page of a finished run and the page of its
//! stored result are the same. The jobs, the machine, a line of results per job, and words about its steadiness
//! (of the crate `findings`) are markup that needs no script (`html.rs`; `stages.rs`: where the time went). The pictures and all other figures are drawn by the
//! scripts in `assets` from the report itself, which is in the page, compressed (`packed.rs`): `draw.js` draws charts (lines,
//! heat maps, distributions), and the script of each page chooses them (`page.js`, `sweep.js`, `pts.js`, `compare.js`, `live.js`).
//!
//! If there are logs of the run, the pictures are drawn from them instead of from samples (`logs.rs`).
//!
//! The page of a running run (`live.rs`) draws the same pictures, from a growing series.
//!
//! Another page is for writing and starting a job (`editor.rs`).
//!
//! No part of a report can become markup: texts are escaped here, the scripts create only text nodes, and the page's
//! own policy allows only the scripts in `assets`.

/// `write!` into a string, which cannot fail.
macro_rules! put {
    ($text:expr, $($format:tt)*) => { write!($text, $($format)*).expect("strings take everything") };
}

pub mod comparison;
pub mod editor;
mod html;
pub mod live;
pub mod logs;
mod packed;
mod pts;
mod stages;
mod sweep;
pub mod text;

pub use comparison::{Curves, of_comparison};
pub use html::{BEGINNING, policy};
pub use packed::masked;
pub use pts::{groups, of_pts, steady_in_words};
pub use sweep::of_sweep;

use iolite_report::{Exporter, Json, Program};
use iolite_stats::{Cluster, Report};
use iolite_stored::NoReport;
use logs::Drawings;
use serde_json::Value;
use std::io::{self, Write};

/// The report as a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl Exporter for Html {
    fn write(&self, report: &Report, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        let page = of_report(report, program, &Drawings::default())?;
        out.write_all(page.as_bytes())
    }

    /// The jobs of all machines are side by side.
    fn write_cluster(&self, cluster: &Cluster, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        self.write(&cluster.together(), program, out)
    }
}

/// A report in JSON, with everything that its page shows.
///
/// # Errors
/// It cannot be written as JSON.
pub fn value_of(report: &Report, program: &Program) -> io::Result<Value> {
    let mut json = Vec::new();
    Json { bins: true }.write(report, program, &mut json)?;
    serde_json::from_slice(&json).map_err(io::Error::other)
}

/// The page of a report, with the drawings of its logs.
///
/// # Errors
/// It cannot be written as JSON.
pub fn of_report(report: &Report, program: &Program, logs: &Drawings) -> io::Result<String> {
    let mut value = value_of(report, program)?;
    logs.add_to(&mut value);
    of_value(&value).map_err(io::Error::other)
}

/// The page of the last report in a text ([`iolite_stored::last_report`]).
///
/// # Errors
/// The text contains no report.
pub fn of_text(text: &str) -> Result<String, NoReport> {
    of_value(&iolite_stored::last_report(text)?)
}

/// The page of a report in JSON.
///
/// # Errors
/// It is not a report.
pub fn of_value(report: &Value) -> Result<String, NoReport> {
    if report["iolite"]["pts"].is_object() {
        return Ok(of_pts(&report["iolite"]["pts"]));
    }
    let report = &*iolite_summary::with_hosts(report);
    Ok(html::page(&iolite_summary::Outcome::of(report)?, &packed::packed(report)))
}

#[cfg(test)]
mod tests;
