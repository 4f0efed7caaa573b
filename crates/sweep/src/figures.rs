//! The measurements of one point.

use crate::StageMeans;
use iolite_stored::{DIRECTIONS, NoReport, bandwidth, bins, has_moved, number, percentile_of_bins};
use serde_json::Value;
use std::collections::BTreeMap;

/// The number of I/Os in flight may deviate from the depth by this share before that is reported.
const TOLERANCE: f64 = 0.1;

/// All jobs and directions of a run together.
///
/// There is one latency: from the beginning of the submission to the completion, as Little's law and the knee require.
/// A submission that blocks (buffered I/O with libaio) would be missing from completion latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Mean latency.
    pub latency_ns: Option<f64>,
    /// Percentiles of latency; of completion latency, if the total one has no histogram.
    pub p50_ns: Option<f64>,
    /// The 99th percentile.
    pub p99_ns: Option<f64>,
    /// CPU time of all jobs, in percent of one processor.
    pub cpu_percent: f64,
    /// I/Os and syncs in flight on average: their rates by their latencies (Little's law). `None` = the jobs measure no latency
    /// that includes submission.
    pub in_flight: Option<f64>,
    /// The errno of the first job that failed; 0 = none.
    pub error: i64,
    /// Where the time went, if that was measured.
    pub stages: Option<StageMeans>,
}

impl Figures {
    /// Reads a report.
    ///
    /// # Errors
    /// It is not a report.
    pub fn of(report: &Value) -> Result<Figures, NoReport> {
        let jobs = iolite_stored::jobs(report)?;
        let mut figures = Figures { stages: StageMeans::of(report), ..Figures::default() };
        let (mut ios, mut sum_ns) = (0.0, 0.0);
        let (mut busy_ns, mut longest_ms) = (0.0, 0.0_f64);
        let mut in_flight = Some(0.0);
        let mut syncs_ns = 0.0;
        let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
        for job in jobs {
            busy_ns += iolite_stored::cpu_ns(job);
            longest_ms = longest_ms.max(milliseconds(job));
            syncs_ns += mean(&job["sync"]["lat_ns"]).unwrap_or(0.0) * number(&job["sync"]["lat_ns"], "N");
            if figures.error == 0 {
                figures.error = job["error"].as_i64().unwrap_or(0);
            }
            for measured in directions(job) {
                let iops = number(measured, "iops");
                figures.iops += iops;
                figures.bandwidth += bandwidth(measured);
                let completion = &measured["clat_ns"];
                let whole = whole(measured);
                if let Some(mean) = whole.or_else(|| mean(completion)) {
                    let count = number(&measured["lat_ns"], "N").max(number(completion, "N"));
                    ios += count;
                    sum_ns += count * mean;
                }
                in_flight = in_flight.zip(whole).map(|(sum, latency)| sum + iops * latency / 1e9);
                let latencies = bins(&measured["lat_ns"]).filter(|bins| !bins.is_empty());
                for (latency, count) in latencies.or_else(|| bins(completion)).unwrap_or_default() {
                    let entry = histogram.entry(latency).or_default();
                    *entry = entry.saturating_add(count);
                }
            }
        }
        if longest_ms > 0.0 {
            figures.cpu_percent = 100.0 * busy_ns / (longest_ms * 1e6);
            in_flight = in_flight.map(|sum| sum + syncs_ns / (longest_ms * 1e6));
        }
        figures.latency_ns = (ios > 0.0).then(|| sum_ns / ios);
        figures.p50_ns = percentile_of_bins(&histogram, 50.0);
        figures.p99_ns = percentile_of_bins(&histogram, 99.0);
        figures.in_flight = in_flight.filter(|depth| *depth > 0.0);
        Ok(figures)
    }
}

/// How long a job ran, in milliseconds. (`job_runtime` is a sum over the workers of a group, so it is the last resort.)
fn milliseconds(job: &Value) -> f64 {
    let longest = directions(job).into_iter().map(|measured| number(measured, "runtime")).fold(0.0, f64::max);
    if longest > 0.0 { longest } else { number(job, "job_runtime") }
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

/// The latency from the beginning of the submission to the completion.
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

    /// A direction of a job that ran for 2 s, with this completion latency in nanoseconds, and a submission latency of
    /// 500.
    fn part(iops: f64, completion: f64) -> Value {
        let count = (iops * 2.0) as u64;
        json!({"iops": iops, "bw_bytes": iops * 4096.0, "total_ios": count, "runtime": 2000,
            "clat_ns": {"N": count, "mean": completion, "bins": {"1000": count}},
            "lat_ns": {"N": count, "mean": completion + 500.0, "bins": {"1500": count - 30, "90000": 30}}})
    }

    #[test]
    fn jobs_and_directions_are_added() {
        let report = json!({"jobs": [
            {"read": part(1000.0, 1500.0), "write": part(500.0, 3000.0), "usr_cpu": 10.0, "sys_cpu": 5.0, "job_runtime": 2000,
                "mixed": part(1500.0, 2000.0)},
            {"read": part(1000.0, 1500.0), "usr_cpu": 1.0, "sys_cpu": 2.0, "job_runtime": 2000, "error": 5}]});
        let found = Figures::of(&report).unwrap();
        assert_eq!(
            (found.iops, found.bandwidth, found.cpu_percent, found.error),
            (2500.0, 2500.0 * 4096.0, 18.0, 5)
        );
        assert_eq!(found.latency_ns, Some((4000.0 * 2000.0 + 1000.0 * 3500.0) / 5000.0));
        assert_eq!((found.p50_ns, found.p99_ns), (Some(1500.0), Some(90_000.0)));
        let expected = 2500.0 * found.latency_ns.unwrap() / 1e9;
        assert!((found.in_flight.unwrap() - expected).abs() < 1e-12, "{found:?}");
        assert!(Figures::of(&json!({"x": 1})).is_err());
        let nothing = Figures::of(&json!({"jobs": [{"read": {}}]})).unwrap();
        assert_eq!(nothing, Figures::default());
    }

    /// The same four workers, half of their time on a processor, each with a report and as a group.
    #[test]
    fn processor_time_does_not_depend_on_group_reporting() {
        let job = |iops: f64, milliseconds: u64| json!({"read": part(iops, 1500.0), "usr_cpu": 40.0, "sys_cpu": 10.0, "job_runtime": milliseconds});
        let each = Figures::of(
            &json!({"jobs": [job(100.0, 2000), job(100.0, 2000), job(100.0, 2000), job(100.0, 2000)]}),
        );
        let group = Figures::of(&json!({"jobs": [job(400.0, 8000)]}));
        assert_eq!((each.unwrap().cpu_percent, group.unwrap().cpu_percent), (200.0, 200.0));
        // Work without I/O has only the time of the job.
        let busy = Figures::of(&json!({"jobs": [{"usr_cpu": 90.0, "sys_cpu": 0.0, "job_runtime": 1000}]}));
        assert_eq!(busy.unwrap().cpu_percent, 90.0);
    }

    #[test]
    fn the_latency_includes_the_submission_as_far_as_it_is_measured() {
        let of = |measured: Value| Figures::of(&json!({"jobs": [{"read": measured}]})).unwrap();
        let mut without_total = part(1000.0, 1500.0);
        without_total["lat_ns"] = json!({"N": 0, "mean": 0.0});
        let found = of(without_total.clone());
        assert_eq!((found.latency_ns, found.p99_ns, found.in_flight), (Some(1500.0), Some(1000.0), None));
        without_total["slat_ns"] = json!({"N": 2000, "mean": 700.0});
        let found = of(without_total);
        assert_eq!((found.latency_ns, found.in_flight), (Some(2200.0), Some(0.0022)));
    }

    /// A synchronous job that writes for a tenth of its time, and syncs for the rest, has one I/O in flight.
    #[test]
    fn syncs_are_in_flight_too() {
        let mut write = part(1000.0, 99_500.0);
        write["runtime"] = json!(2000);
        let syncs = json!({"total_ios": 2000, "lat_ns": {"N": 2000, "mean": 900_000.0}});
        let found = Figures::of(&json!({"jobs": [{"write": write, "sync": syncs}]})).unwrap();
        assert_eq!(
            (found.latency_ns, found.in_flight.map(|depth| (depth * 1e6).round() / 1e6)),
            (Some(100_000.0), Some(1.0))
        );
    }

    #[test]
    fn littles_law_mismatch_is_reported() {
        assert_eq!(little(30.0, 32.0), None);
        assert_eq!(little(35.0, 32.0), None);
        assert!(little(16.0, 32.0).unwrap().contains("50% less than the depth of 32"));
        assert!(little(40.0, 32.0).unwrap().contains("25% more"));
        assert_eq!(little(1.0, 0.0), None);
    }
}
