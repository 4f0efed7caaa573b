//! The formats of `--output-format`, and the order in which a report has them.

use crate::console::harmless;
use crate::terminal;
use iolite_options::{OutputFormat, RunOptions};
use iolite_report::clock;
use iolite_report::{Exporter, Json, Normal, Program, Terse, TerseVersion};
use iolite_stats::{Cluster, Report};
use iolite_summary::screen::{self, Terminal};
use std::io::{self, Write};

/// The requested formats except html, each once, in the order in which users expect them.
pub struct Formats(Vec<Box<dyn Exporter>>);

impl Formats {
    /// The formats of a run, whose report goes to a terminal or not.
    pub fn of(run: &RunOptions, is_terminal: bool) -> Formats {
        let asked = |format| run.output_format.contains(&format);
        let mut exporters: Vec<Box<dyn Exporter>> = Vec::new();
        if asked(OutputFormat::Terse) {
            let version = match run.terse_version {
                2 => TerseVersion::V2,
                4 => TerseVersion::V4,
                5 => TerseVersion::V5,
                _ => TerseVersion::V3,
            };
            exporters.push(Box::new(Harmless(Terse { version })));
        }
        if asked(OutputFormat::JsonPlus) {
            exporters.push(Box::new(Harmless(Json { bins: true })));
        } else if asked(OutputFormat::Json) {
            exporters.push(Box::new(Harmless(Json { bins: false })));
        }
        if asked(OutputFormat::Normal) {
            exporters.push(Box::new(Harmless(Normal)));
        }
        if asked(OutputFormat::Markdown) {
            exporters.push(Box::new(Markdown));
        }
        if asked(OutputFormat::Summary) {
            exporters.push(Box::new(Summary(terminal::of_output(run.color, is_terminal))));
        }
        Formats(exporters)
    }

    /// A report in all of them, with control characters made visible.
    pub fn text(&self, report: &Report, program: &Program) -> Vec<u8> {
        self.written(|exporter, out| exporter.write(report, program, out))
    }

    /// The report of several machines in all of them.
    #[cfg(feature = "agents")]
    pub fn text_of_cluster(&self, cluster: &Cluster, program: &Program) -> Vec<u8> {
        self.written(|exporter, out| exporter.write_cluster(cluster, program, out))
    }

    fn written(&self, write: impl Fn(&dyn Exporter, &mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for exporter in &self.0 {
            // Writing to memory does not fail.
            let _ = write(&**exporter, &mut bytes);
        }
        bytes
    }
}

/// A format that contains names as they are.
struct Harmless<E>(E);

impl<E: Exporter> Harmless<E> {
    fn passed(out: &mut dyn Write, write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        out.write_all(&harmless(&bytes))
    }
}

impl<E: Exporter> Exporter for Harmless<E> {
    fn write(&self, report: &Report, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        Self::passed(out, |bytes| self.0.write(report, program, bytes))
    }

    fn write_cluster(&self, cluster: &Cluster, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        Self::passed(out, |bytes| self.0.write_cluster(cluster, program, bytes))
    }
}

/// The report on one screen. Only its colours control the terminal.
struct Summary(Terminal);

impl Exporter for Summary {
    fn write(&self, report: &Report, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        let value = iolite_page::value_of(report, program)?;
        // The last report is at hand when the run ends; others are read later.
        if report.end.is_none() {
            writeln!(out, "\n{}", clock::local(report.timestamp_ms))?;
        }
        writeln!(out, "\n{}", made(screen::of(&value, self.0))?.trim_end())
    }

    fn write_cluster(&self, cluster: &Cluster, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        self.write(&cluster.together(), program, out)?;
        let mut hosts = Vec::new();
        iolite_report::write_hosts(cluster, &mut hosts)?;
        out.write_all(&harmless(&hosts))
    }
}

/// The report for issue trackers.
struct Markdown;

impl Exporter for Markdown {
    fn write(&self, report: &Report, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        let value = iolite_page::value_of(report, program)?;
        out.write_all(made(iolite_summary::markdown::of(&value))?.as_bytes())
    }

    fn write_cluster(&self, cluster: &Cluster, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        self.write(&cluster.together(), program, out)
    }
}

/// A report that was made here is one.
fn made(text: Result<String, iolite_stored::NoReport>) -> io::Result<String> {
    text.map_err(io::Error::other)
}
