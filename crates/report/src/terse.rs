//! The compact report for programs: one line per job, fields separated by `;`, times in µs.
//!
//! The order of fields in each version never changes, because scripts count semicolons. Versions have different fields:
//! 2 has no program name and no disks, 3 has no trims, 5 adds samples of bandwidth and IOPS.

use crate::rates::Block;
use crate::{Exporter, Program, rates};
use iolite_stats::{Cluster, DirectionReport, DiskReport, JobReport, Latency, Report};
use iolite_types::Direction;
use std::io::{self, Write};

/// The number of percentiles in a line.
const PERCENTILES: usize = 20;
/// The smallest share of a depth that occurred, in percent.
const LEAST_DEPTH: f64 = 0.1;
/// The smallest share of a latency class that occurred, in percent.
const LEAST_CLASS: f64 = 0.01;

/// A version of the terse format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerseVersion {
    /// Version 2.
    V2 = 2,
    /// Version 3, the default.
    #[default]
    V3 = 3,
    /// Version 4.
    V4 = 4,
    /// Version 5.
    V5 = 5,
}

impl TerseVersion {
    /// The version with this number, if any.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::V2, Self::V3, Self::V4, Self::V5].into_iter().find(|&version| version as u32 == number)
    }
}

/// The terse format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terse {
    /// The version of the format.
    pub version: TerseVersion,
}

impl Exporter for Terse {
    fn write(&self, report: &Report, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        report.jobs.iter().try_for_each(|job| self.job(report, job, program, out))
    }

    fn write_cluster(&self, cluster: &Cluster, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        for host in &cluster.hosts {
            self.write(&host.marked(), program, out)?;
        }
        cluster.all().map_or(Ok(()), |all| self.write(&all, program, out))
    }
}

impl Terse {
    fn job(self, report: &Report, job: &JobReport, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        let error = job.error.as_ref().map_or(0, |error| error.value.errno);
        match self.version {
            TerseVersion::V2 => write!(out, "2;{};{};{error}", job.name, job.group)?,
            version => {
                write!(out, "{};{};{};{};{error}", version as u32, program.version, job.name, job.group)?;
            }
        }
        for block in rates::blocks(report, job) {
            if block.direction != Some(Direction::Trim) || self.version != TerseVersion::V3 {
                self.block(job, &block, out)?;
            }
        }
        usage(job, out)?;
        distributions(job, out)?;
        if self.version != TerseVersion::V2 {
            report.disks.iter().try_for_each(|disk| disk_util(disk, out))?;
        }
        if let Some(errors) = &job.continued_errors {
            write!(out, ";{};{}", errors.count, errors.first_errno())?;
        }
        if let Some(description) = &job.description {
            // Version 2 has already ended its line.
            let end_of_line = if self.version == TerseVersion::V2 { "\n" } else { "" };
            write!(out, "{end_of_line};{description}")?;
        }
        writeln!(out)
    }

    fn block(self, job: &JobReport, block: &Block<'_>, out: &mut dyn Write) -> io::Result<()> {
        let measured = block.measured;
        let display = &job.display;
        write!(
            out,
            ";{};{};{};{}",
            measured.bytes / 1024,
            rates::bandwidth(measured) / 1024,
            rates::iops(measured),
            measured.runtime_ms
        )?;
        let unmeasured = Latency::default();
        moments(if display.synchronous { &unmeasured } else { &measured.slat }, out)?;
        moments(&measured.clat, out)?;
        // There is room for one kind of percentiles: those of total latency if the job requests them.
        let (percentiles, histogram) = if display.lat_percentiles {
            (&display.percentiles[..], &measured.lat.histogram)
        } else if display.clat_percentiles {
            (&display.percentiles[..], &measured.clat.histogram)
        } else {
            (&[][..], &unmeasured.histogram)
        };
        let values = histogram.percentiles(percentiles);
        let shown = percentiles.iter().zip(values).take(PERCENTILES);
        let missing = PERCENTILES - shown.len();
        for (percentile, value) in shown {
            write!(out, ";{percentile:.6}%={}", value / 1000)?;
        }
        (0..missing).try_for_each(|_| write!(out, ";0%=0"))?;
        moments(&measured.lat, out)?;
        self.samples(measured, rates::share_of_group_in_kib(block), out)
    }

    fn samples(self, measured: &DirectionReport, share: f64, out: &mut dyn Write) -> io::Result<()> {
        let (bw, iops) = (&measured.bw, &measured.iops);
        write!(out, ";{};{};{share:.6}%;{:.6};{:.6}", bw.min, bw.max, bw.mean(), bw.deviation())?;
        if self.version < TerseVersion::V5 {
            return Ok(());
        }
        write!(
            out,
            ";{};{};{};{:.6};{:.6};{}",
            bw.count,
            iops.min,
            iops.max,
            iops.mean(),
            iops.deviation(),
            iops.count
        )
    }
}

fn moments(latency: &Latency, out: &mut dyn Write) -> io::Result<()> {
    let moments = &latency.moments;
    write!(
        out,
        ";{};{};{:.6};{:.6}",
        moments.minimum() / 1000,
        moments.max / 1000,
        moments.mean() / 1000.0,
        moments.deviation() / 1000.0
    )
}

fn usage(job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    let usage = &job.usage;
    let of_runtime = |milliseconds: u64| rates::percent(milliseconds as f64, job.job_runtime_ms as f64);
    write!(
        out,
        ";{:.6}%;{:.6}%;{};{};{}",
        of_runtime(usage.user_ms),
        of_runtime(usage.system_ms),
        usage.context_switches,
        usage.major_faults,
        usage.minor_faults
    )
}

fn distributions(job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    for share in rates::shares(&job.depths.level, rates::issued(job), LEAST_DEPTH) {
        write!(out, ";{share:3.1}%")?;
    }
    let classes = &job.latency_classes;
    // The format is older than the classes below a microsecond, so they count in the first class.
    let mut microseconds = classes.us;
    microseconds[0] = classes.ns.iter().fold(microseconds[0], |sum, &count| sum.saturating_add(count));
    let completed = rates::completed(job);
    for share in rates::shares(&microseconds, completed, LEAST_CLASS) {
        write!(out, ";{share:3.2}%")?;
    }
    for share in rates::shares(&classes.ms, completed, LEAST_CLASS) {
        write!(out, ";{share:3.2}%")?;
    }
    Ok(())
}

/// A disk, followed by its component disks.
fn disk_util(disk: &DiskReport, out: &mut dyn Write) -> io::Result<()> {
    let counters = &disk.counters;
    write!(
        out,
        ";{};{};{};{};{};{};{};{};{:.2}%",
        disk.name,
        counters.read_ios,
        counters.write_ios,
        counters.read_merges,
        counters.write_merges,
        counters.read_ticks,
        counters.write_ticks,
        counters.in_queue,
        disk.utilisation
    )?;
    disk.slaves.iter().try_for_each(|slave| disk_util(slave, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn lines(version: TerseVersion, report: &Report) -> Vec<Vec<String>> {
        let text = example::text(&Terse { version }, report);
        text.lines().map(|line| line.split(';').map(String::from).collect()).collect()
    }

    /// The number of fields in the samples of each version, without disks (9 fields each).
    #[test]
    fn fields_of_each_version() {
        let report = example::mixed();
        for (version, without_disks, disks) in [
            (TerseVersion::V2, 4 + 3 * 41 + 5 + 7 + 22, 0),
            (TerseVersion::V3, 5 + 2 * 41 + 5 + 7 + 22, 1),
            (TerseVersion::V4, 5 + 3 * 41 + 5 + 7 + 22, 1),
            (TerseVersion::V5, 5 + 3 * 47 + 5 + 7 + 22, 1),
        ] {
            let lines = lines(version, &report);
            assert_eq!(lines.len(), 1);
            assert_eq!(lines[0].len(), without_disks + disks * 9, "{version:?}");
        }
    }

    #[test]
    fn fields_in_order() {
        let line = lines(TerseVersion::V3, &example::mixed()).remove(0);
        let start = ["3", "fio-3.42", "mix", "0", "0", "656880", "218887", "54721", "3001"];
        assert_eq!(line[..9], start);
        assert_eq!(line[17..19], ["1.000000%=20", "50.000000%=20"]);
        assert_eq!(line[19..22], ["99.000000%=199", "0%=0", "0%=0"]);
        assert_eq!(line.last().map(String::as_str), Some("80.28%"));
    }

    #[test]
    fn errors_and_description_come_last() {
        let mut report = example::mixed();
        report.jobs[0].continued_errors = Some(example::errors(3, 5));
        report.jobs[0].description = Some("what for".into());
        let line = lines(TerseVersion::V3, &report).remove(0);
        assert_eq!(line[line.len() - 3..], ["3", "5", "what for"]);
        let two = lines(TerseVersion::V2, &report);
        assert_eq!(two[0][two[0].len() - 2..], ["3", "5"]);
        assert_eq!(two[1], ["", "what for"]);
        report.jobs[0].description = None;
        assert_eq!(lines(TerseVersion::V2, &report).len(), 1);
    }

    #[test]
    fn numbers_of_versions() {
        assert_eq!(TerseVersion::from_number(5), Some(TerseVersion::V5));
        assert_eq!(TerseVersion::from_number(1), None);
    }
}
