//! The measurements of one point.

use iolite_stored::{DIRECTIONS, NoReport, bandwidth, bins, has_moved, number, percentile_of_bins};
use serde_json::Value;
use std::collections::BTreeMap;

/// The number of I/Os in flight may deviate from the depth by this share before that is reported.
const TOLERANCE: f64 = 0.1;

/// All jobs and directions of a run together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Mean completion latency.
    pub latency_ns: Option<f64>,
    /// Percentiles of completion latency.
    pub p50_ns: Option<f64>,
    /// The 99th.
    pub p99_ns: Option<f64>,
    /// CPU time of all jobs, in percent of one processor.
    pub cpu_percent: f64,
    /// I/Os in flight on average: IOPS by latency, submission included (Little's law).
    pub in_flight: Option<f64>,
    /// The errno of the first job that failed; 0 = none.
    pub error: i64,
}

impl Figures {
    /// Reads a report.
    ///
    /// # Errors
    /// It is none.
    pub fn of(report: &Value) -> Result<Figures, NoReport> {
        let jobs = iolite_stored::jobs(report)?;
        let mut figures = Figures::default();
        let (mut ios, mut sum_ns) = (0.0, 0.0);
        let mut in_flight = Some(0.0);
        let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
        for job in jobs {
            figures.cpu_percent += number(job, "usr_cpu") + number(job, "sys_cpu");
            if figures.error == 0 {
                figures.error = job["error"].as_i64().unwrap_or(0);
            }
            for measured in directions(job) {
                let iops = number(measured, "iops");
                figures.iops += iops;
                figures.bandwidth += bandwidth(measured);
                if let Some(mean) = mean(&measured["clat_ns"]) {
                    let count = number(&measured["clat_ns"], "N");
                    ios += count;
                    sum_ns += count * mean;
                }
                in_flight = in_flight.zip(whole(measured)).map(|(sum, latency)| sum + iops * latency / 1e9);
                for (latency, count) in bins(&measured["clat_ns"]).unwrap_or_default() {
                    let entry = histogram.entry(latency).or_default();
                    *entry = entry.saturating_add(count);
                }
            }
        }
        figures.latency_ns = (ios > 0.0).then(|| sum_ns / ios);
        figures.p50_ns = percentile_of_bins(&histogram, 50.0);
        figures.p99_ns = percentile_of_bins(&histogram, 99.0);
        figures.in_flight = in_flight.filter(|depth| *depth > 0.0);
        Ok(figures)
    }
}

/// The directions that moved data; the mixed one only if there are no separate ones.
fn directions(job: &Value) -> Vec<&Value> {
    let [apart @ .., mixed] = &DIRECTIONS;
    let moved: Vec<&Value> =
        apart.iter().map(|direction| &job[direction]).filter(|part| has_moved(part)).collect();
    if moved.is_empty() {
        Some(&job[mixed]).into_iter().filter(|part| has_moved(part)).collect()
    } else {
        moved
    }
}

fn mean(latency: &Value) -> Option<f64> {
    (number(latency, "N") > 0.0).then(|| number(latency, "mean"))
}

/// From the beginning of the submission to the completion.
fn whole(measured: &Value) -> Option<f64> {
    mean(&measured["lat_ns"]).or_else(|| Some(mean(&measured["slat_ns"])? + mean(&measured["clat_ns"])?))
}

/// Explains a number of I/Os in flight that deviates from the depth of the jobs.
pub fn little(in_flight: f64, depth: f64) -> Option<String> {
    let off = in_flight / depth - 1.0;
    if off.abs() <= TOLERANCE || !off.is_finite() {
        return None;
    }
    let (percent, less) = (100.0 * off.abs(), if off < 0.0 { "less" } else { "more" });
    Some(format!(
        "IOPS × latency says that {in_flight:.2} I/Os were in flight on average, {percent:.0}% {less} than the depth of {depth:.0} that the jobs ask for"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn jobs_and_directions_are_added() {
        let part = |iops: f64, latency: f64, count: u64| {
            json!({"iops": iops, "bw_bytes": iops * 4096.0, "total_ios": count, "clat_ns": {"N": count, "mean": latency, "bins": {"1000": count - 1, "90000": 1}},
                "lat_ns": {"N": count, "mean": latency + 500.0}})
        };
        let report = json!({"jobs": [
            {"read": part(1000.0, 1500.0, 50), "write": part(500.0, 3000.0, 25), "usr_cpu": 10.0, "sys_cpu": 5.0, "mixed": part(1500.0, 2000.0, 75)},
            {"read": part(1000.0, 1500.0, 50), "usr_cpu": 1.0, "sys_cpu": 2.0, "error": 5}]});
        let found = Figures::of(&report).unwrap();
        assert_eq!(
            (found.iops, found.bandwidth, found.cpu_percent, found.error),
            (2500.0, 2500.0 * 4096.0, 18.0, 5)
        );
        assert_eq!(found.latency_ns, Some((100.0 * 1500.0 + 25.0 * 3000.0) / 125.0));
        assert_eq!((found.p50_ns, found.p99_ns), (Some(1000.0), Some(90_000.0)));
        let expected = 1000.0 * 2e-6 + 500.0 * 3.5e-6 + 1000.0 * 2e-6;
        assert!((found.in_flight.unwrap() - expected).abs() < 1e-12, "{found:?}");
        assert!(Figures::of(&json!({"x": 1})).is_err());
        let nothing = Figures::of(&json!({"jobs": [{"read": {}}]})).unwrap();
        assert_eq!(nothing, Figures::default());
    }

    #[test]
    fn little_tells_what_is_off() {
        assert_eq!(little(30.0, 32.0), None);
        assert_eq!(little(35.0, 32.0), None);
        assert!(little(16.0, 32.0).unwrap().contains("50% less than the depth of 32"));
        assert!(little(40.0, 32.0).unwrap().contains("25% more"));
        assert_eq!(little(1.0, 0.0), None);
    }
}
