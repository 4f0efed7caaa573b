//! The figures of a cell, from the report of its run.

use iolite_stored::{DIRECTIONS, bandwidth, bins, has_moved, number, percentile_of_bins};
use serde_json::Value;
use std::collections::BTreeMap;

/// The percentiles of response times that are told: from the median to five nines.
pub const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999];

/// All jobs and directions of a cell together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// The mean response time: from the beginning of the submission to the completion.
    pub mean_ns: f64,
    /// The longest one.
    pub max_ns: f64,
    /// Bytes that were moved.
    pub moved: u64,
    /// Of these, bytes that were written.
    pub written: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Response times in nanoseconds, and how many I/Os had each.
    pub bins: BTreeMap<u64, u64>,
}

impl Figures {
    /// Reads the report of a run.
    ///
    /// # Errors
    /// It is none, or a job failed.
    pub fn of(report: &Value) -> Result<Figures, String> {
        let jobs = iolite_stored::jobs(report).map_err(|error| error.to_string())?;
        let mut figures = Figures::default();
        let (mut ios, mut sum_ns) = (0.0, 0.0);
        for job in jobs {
            let error = job["error"].as_i64().unwrap_or(0);
            if error != 0 {
                return Err(format!("its job had the error {error}"));
            }
            let moved = DIRECTIONS.iter().take(3).map(|direction| (*direction, &job[direction]));
            for (direction, measured) in moved.filter(|(_, measured)| has_moved(measured)) {
                figures.iops += number(measured, "iops");
                figures.bandwidth += bandwidth(measured);
                let bytes = number(measured, "io_bytes") as u64;
                figures.moved = figures.moved.saturating_add(bytes);
                if direction == "write" {
                    figures.written = figures.written.saturating_add(bytes);
                }
                figures.seconds = figures.seconds.max(number(measured, "runtime") / 1000.0);
                let latency = &measured["lat_ns"];
                ios += number(latency, "N");
                sum_ns += number(latency, "N") * number(latency, "mean");
                figures.max_ns = figures.max_ns.max(number(latency, "max"));
                let found = bins(latency).filter(|bins| !bins.is_empty());
                for (nanoseconds, count) in found.or_else(|| bins(&measured["clat_ns"])).unwrap_or_default() {
                    let entry = figures.bins.entry(nanoseconds).or_default();
                    *entry = entry.saturating_add(count);
                }
            }
        }
        figures.mean_ns = if ios > 0.0 { sum_ns / ios } else { 0.0 };
        Ok(figures)
    }

    /// A percentile of the response times.
    pub fn percentile(&self, percentile: f64) -> Option<f64> {
        percentile_of_bins(&self.bins, percentile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn directions_are_added() {
        let part = |iops: u64, mean: u64, max: u64| {
            json!({"iops": iops, "bw_bytes": iops * 4096, "total_ios": iops, "io_bytes": iops * 4096, "runtime": 1000,
                "lat_ns": {"N": iops, "mean": mean, "max": max, "bins": {"100": iops - 1, "7000": 1}}})
        };
        let report =
            json!({"jobs": [{"read": part(300, 100, 900), "write": part(100, 500, 8000), "trim": {}}]});
        let found = Figures::of(&report).unwrap();
        assert_eq!(
            (found.iops, found.bandwidth, found.mean_ns, found.max_ns),
            (400.0, 1_638_400.0, 200.0, 8000.0)
        );
        assert_eq!((found.moved, found.written, found.seconds), (1_638_400, 409_600, 1.0));
        assert_eq!((found.percentile(50.0), found.percentile(99.9)), (Some(100.0), Some(7000.0)));
        assert!(Figures::of(&json!({"jobs": [{"error": 5}]})).unwrap_err().contains("error 5"));
        assert!(Figures::of(&json!({})).is_err());
    }
}
