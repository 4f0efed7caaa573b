//! The figures of a case, from its report in JSON.

use crate::series::{of_job, pieces, rates, sample_seconds};
use crate::{Point, Steadiness};
use iolite_stored::{DIRECTIONS, NoReport, bandwidth, has_moved, number, percentile};
use iolite_sweep::Figures;
use serde_json::Value;

/// The figures of a case.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Its directions.
    pub flows: Vec<Flow>,
    /// Syncs: how many, and how long they took.
    pub sync: Option<(f64, Percentiles)>,
    /// What its disk counted.
    pub counted: Option<Counted>,
    /// All directions together.
    pub figures: Figures,
    /// Seconds that it ran.
    pub seconds: f64,
}

/// The figures of a direction.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Its name.
    pub direction: &'static str,
    /// Bytes.
    pub bytes: f64,
    /// I/Os.
    pub ios: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Latencies; from the beginning of the submission, if that was measured.
    pub latency: Percentiles,
    /// When half of the answers of a server had begun, in nanoseconds; `None` = no server answers.
    pub first_byte: Option<f64>,
    /// Its windows, in pieces between which no I/O was expected.
    pub pieces: Vec<Vec<Point>>,
    /// Seconds from one sample to the next.
    pub sample_seconds: f64,
}

/// Latencies in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// What a disk counted during a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Its name.
    pub disk: String,
    /// Bytes read, and in how many requests.
    pub read: (f64, f64),
    /// Bytes written, and in how many requests.
    pub written: (f64, f64),
}

impl Measured {
    /// The figures of a report whose jobs are one case. Latencies and windows are those of its first job; a case of several
    /// workers is reported as one job.
    ///
    /// # Errors
    /// It is not a report.
    pub fn of(report: &Value) -> Result<Measured, NoReport> {
        let figures = Figures::of(report)?;
        let jobs = iolite_stored::jobs(report)?;
        let mut measured = Measured { figures, ..Measured::default() };
        let Some(job) = jobs.first() else { return Ok(measured) };
        let series = &report["iolite"]["series"];
        let over_time = of_job(series, 0);
        measured.flows = DIRECTIONS
            .into_iter()
            .filter(|direction| has_moved(&job[direction]))
            .map(|direction| Flow::of(direction, &job[direction], &over_time[direction], series))
            .collect();
        let runtimes = DIRECTIONS.into_iter().map(|direction| number(&job[direction], "runtime"));
        measured.seconds = runtimes.fold(0.0, f64::max) / 1000.0;
        let sync = &job["sync"]["lat_ns"];
        let syncs = number(sync, "N");
        measured.sync = (syncs > 0.0).then(|| (syncs, Percentiles::of(sync)));
        measured.counted =
            report["disk_util"].as_array().and_then(|disks| disks.first()).map(|disk| Counted {
                disk: disk["name"].as_str().unwrap_or_default().to_owned(),
                // Sectors have 512 bytes.
                read: (512.0 * number(disk, "read_sectors"), number(disk, "read_ios")),
                written: (512.0 * number(disk, "write_sectors"), number(disk, "write_ios")),
            });
        Ok(measured)
    }

    /// A direction.
    pub fn flow(&self, direction: &str) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.direction == direction)
    }

    /// The direction with the most I/Os.
    pub fn main(&self) -> Option<&Flow> {
        self.flows.iter().max_by(|one, other| one.ios.total_cmp(&other.ios))
    }
}

impl Flow {
    fn of(direction: &'static str, measured: &Value, over_time: &Value, series: &Value) -> Flow {
        let whole = &measured["lat_ns"];
        let latency = if whole["percentile"].is_object() { whole } else { &measured["clat_ns"] };
        Flow {
            direction,
            bytes: number(measured, "io_bytes"),
            ios: number(measured, "total_ios"),
            iops: number(measured, "iops"),
            bandwidth: bandwidth(measured),
            latency: Percentiles::of(latency),
            first_byte: percentile(&measured["ttfb_ns"], 50.0).filter(|ns| *ns > 0.0),
            pieces: pieces(over_time, series).unwrap_or_default(),
            sample_seconds: sample_seconds(series),
        }
    }

    /// How steady it was; `None` = too short to tell.
    pub fn steadiness(&self) -> Option<Steadiness> {
        Steadiness::of_series(&self.pieces, self.sample_seconds)
    }

    /// Its IOPS over time.
    pub fn rates(&self) -> Vec<f64> {
        rates(&self.pieces)
    }
}

impl Percentiles {
    fn of(latency: &Value) -> Percentiles {
        let max = number(latency, "max");
        // A percentile is the upper edge of a bin of the histogram, which may be above the largest value.
        let at = |asked| percentile(latency, asked).unwrap_or(0.0).min(max);
        Percentiles { mean: number(latency, "mean"), p50: at(50.0), p99: at(99.0), p999: at(99.9), max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_by_hand() {
        let latency = |p50: f64| json!({"N": 100, "mean": p50, "max": 9.0 * p50, "percentile": {"50.000000": p50, "99.000000": 2.0 * p50, "99.900000": 3.0 * p50}});
        let report = json!({
            "jobs": [{"read": {"total_ios": 100, "io_bytes": 409_600, "iops": 50.0, "bw_bytes": 204_800, "runtime": 2000, "lat_ns": latency(7.0)},
                "write": {"total_ios": 0}, "sync": {"lat_ns": latency(11.0)}}],
            "disk_util": [{"name": "sda", "read_sectors": 8, "read_ios": 2, "write_sectors": 0, "write_ios": 0}],
            "iolite": {"series": {"sample_us": 100_000, "begin_us": 0, "end_us": [500_000, 1_000_000],
                "jobs": [{"job": 0, "read": {"first_window": 0, "ramp_windows": 0, "ios": [10, 20], "iops_min": [1, 2]}}]}}});
        let measured = Measured::of(&report).unwrap();
        let read = measured.flow("read").unwrap();
        assert_eq!(
            (read.latency.p50, read.latency.p99, read.latency.p999, read.latency.max),
            (7.0, 14.0, 21.0, 63.0)
        );
        assert_eq!((read.rates(), measured.seconds, measured.flows.len()), (vec![20.0, 40.0], 2.0, 1));
        assert_eq!(measured.sync.unwrap().1.p50, 11.0);
        assert_eq!(measured.counted.unwrap().read, (4096.0, 2.0));
        assert!(Measured::of(&json!({"x": 1})).is_err());
    }
}
