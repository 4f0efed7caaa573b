//! Where the time went, as a report in JSON tells it.

use crate::{harmless, one_line};
use iolite_findings::numbers::{latency, percent};
use iolite_stored::number;
use serde_json::Value;

/// The stages of a direction of a job. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// Their names, in the order of time.
    pub names: Vec<String>,
    /// The latency that they add up to: `clat` or `lat`.
    pub whole: String,
    /// The figures of each.
    pub each: Vec<StageFigures>,
    /// Those of the whole.
    pub all: StageFigures,
    /// The share of each in the time of the slowest part; empty = there were no I/Os.
    pub shares: Vec<f64>,
    /// What percentiles of the whole are made of: the percentile, and the mean time of each stage.
    pub made_of: Vec<(String, Vec<f64>)>,
    /// The length of a window in seconds.
    pub window_seconds: f64,
    /// Windows from the first I/O on: the mean time of each stage; empty = no I/O was completed in it.
    pub windows: Vec<Vec<f64>>,
    /// The slowest I/Os.
    pub slowest: Vec<SlowStages>,
    /// I/Os whose stages are known.
    pub ios: f64,
    /// I/Os that no device took part in.
    pub no_device: f64,
    /// I/Os whose stages are not known, with the reasons.
    pub unmatched: Vec<(String, f64)>,
}

/// The figures of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageFigures {
    /// The mean.
    pub mean: f64,
    /// The percentiles 50, 99 and 99.9.
    pub percentiles: [f64; 3],
}

/// One of the slowest I/Os.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowStages {
    /// Its latency.
    pub whole: f64,
    /// The time of each stage.
    pub stages: Vec<f64>,
    /// Seconds since the first I/O.
    pub at: f64,
    /// Its offset in the file.
    pub offset: f64,
    /// Its bytes.
    pub length: f64,
    /// The file.
    pub file: String,
}

impl StageFigures {
    fn of(latency: &Value) -> StageFigures {
        let at = |percentile: &str| number(&latency["percentile"], percentile);
        StageFigures {
            mean: number(latency, "mean"),
            percentiles: ["50.000000", "99.000000", "99.900000"].map(at),
        }
    }
}

fn list(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().map(|number| number.as_f64().unwrap_or(0.0)).collect()
}

impl Stages {
    /// The most stages of any engine.
    const MOST: usize = 10;
    /// The most windows, and the most of the slowest I/Os, that a report has.
    const MOST_LISTED: usize = 1000;

    /// Those of a job, by its position in the report, and of a direction; `None` = they were not measured.
    pub fn of(report: &Value, position: usize, direction: &str) -> Option<Stages> {
        let jobs = report["iolite"]["stages"].as_array()?;
        let job = jobs.iter().find(|job| job["job"].as_u64() == Some(position as u64))?;
        Stages::read(&job[direction])
    }

    fn read(told: &Value) -> Option<Stages> {
        let names = told["stages"].as_array()?.iter().take(Stages::MOST);
        let names: Vec<String> = names.filter_map(|name| Some(one_line(name.as_str()?, 40))).collect();
        let key = |name: &String, suffix: &str| name.replace(' ', "_") + suffix;
        let slowest_part = &told["slowest_part"];
        let shares: Vec<f64> = match slowest_part.is_object() {
            true => names.iter().map(|name| number(slowest_part, &key(name, "_share"))).collect(),
            false => Vec::new(),
        };
        let windows = &told["windows"];
        let counts = list(&windows["ios"]);
        let sums: Vec<Vec<f64>> = names.iter().map(|name| list(&windows[key(name, "_sum_ns")])).collect();
        let means = counts.iter().take(Stages::MOST_LISTED).enumerate().map(|(number, &count)| {
            let mean = |sums: &Vec<f64>| sums.get(number).copied().unwrap_or(0.0) / count;
            if count > 0.0 { sums.iter().map(mean).collect() } else { Vec::new() }
        });
        let parts = |value: &Value| {
            let mut parts = list(value);
            parts.resize(names.len(), 0.0);
            parts
        };
        let slow = |io: &Value| SlowStages {
            whole: number(io, "whole_ns"),
            stages: parts(&io["stages_ns"]),
            at: number(io, "at_us") / 1e6,
            offset: number(io, "offset"),
            length: number(io, "length"),
            file: io["file"].as_str().unwrap_or_default().to_owned(),
        };
        let made_of = told["made_of_ns"].as_object().into_iter().flatten();
        let reasons = told["unmatched"].as_object().into_iter().flatten();
        Some(Stages {
            whole: told["whole"].as_str().unwrap_or("latency").to_owned(),
            each: names.iter().map(|name| StageFigures::of(&told[key(name, "_ns")])).collect(),
            all: StageFigures::of(&told["whole_ns"]),
            shares,
            made_of: made_of.take(100).map(|(percentile, told)| (percentile.clone(), parts(told))).collect(),
            window_seconds: number(windows, "length_us") / 1e6,
            windows: means.collect(),
            slowest: told["slowest"]
                .as_array()
                .into_iter()
                .flatten()
                .take(Stages::MOST_LISTED)
                .map(slow)
                .collect(),
            ios: number(told, "ios"),
            no_device: number(told, "no_device"),
            unmatched: reasons
                .take(100)
                .map(|(why, count)| (why.clone(), count.as_f64().unwrap_or(0.0)))
                .collect(),
            names,
        })
    }

    /// The stage with the largest share of the slowest part, and that share.
    pub fn tail(&self) -> Option<(&str, f64)> {
        let shares = self.names.iter().zip(&self.shares);
        shares.max_by(|a, b| a.1.total_cmp(b.1)).map(|(name, share)| (name.as_str(), *share))
    }

    /// I/Os whose stages are not known.
    pub fn all_unmatched(&self) -> f64 {
        self.unmatched.iter().map(|(_, count)| count).sum()
    }

    /// The means on one line: `submit 1.2 µs, queue 0.8 µs, device 38 µs, reap 4 µs`.
    pub fn in_short(&self) -> String {
        if self.ios == 0.0 {
            return match self.all_unmatched() {
                0.0 => "no device took part (the page cache, or a driver without a queue)".to_owned(),
                count => format!("{count} I/Os could not be matched with the kernel's records"),
            };
        }
        let means = self.names.iter().zip(&self.each);
        let means: Vec<String> =
            means.map(|(name, figures)| format!("{} {}", harmless(name), latency(figures.mean))).collect();
        let unknown = self.all_unmatched() / (self.ios + self.no_device + self.all_unmatched());
        let unknown = match unknown >= 0.01 {
            true => format!(" ({} not matched)", percent((100.0 * unknown).round())),
            false => String::new(),
        };
        means.join(", ") + &unknown
    }

    /// Whose the tail is: `91% device in the slowest 0.1%`.
    pub fn tail_in_short(&self) -> Option<String> {
        let (name, share) = self.tail()?;
        Some(format!("{} {} in the slowest 0.1%", percent((100.0 * share).round()), harmless(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Value {
        let latency =
            |mean: f64| json!({"mean": mean, "percentile": {"50.000000": mean, "99.000000": 2.0 * mean}});
        json!({"iolite": {"stages": [{"job": 3, "read": {
            "whole": "clat", "ios": 100, "no_device": 5, "unmatched": {"same sectors in flight twice": 1},
            "stages": ["submit", "first byte"], "whole_ns": latency(5000.0),
            "submit_ns": latency(1000.0), "first_byte_ns": latency(4000.0),
            "made_of_ns": {"50.000000": [900, 4100]},
            "slowest_part": {"part": 0.001, "submit_share": 0.1, "first_byte_share": 0.9},
            "windows": {"length_us": 100_000, "ios": [2, 0], "submit_sum_ns": [2000, 0], "first_byte_sum_ns": [8000, 0]},
            "slowest": [{"whole_ns": 9, "stages_ns": [4, 5], "at_us": 1, "offset": 4096, "length": 512, "file": "f"}],
        }}]}})
    }

    #[test]
    fn stages_are_read() {
        let stages = Stages::of(&report(), 3, "read").unwrap();
        assert_eq!(stages.in_short(), "submit 1 µs, first byte 4 µs");
        assert_eq!(stages.tail_in_short().as_deref(), Some("90% first byte in the slowest 0.1%"));
        assert_eq!(stages.windows, [vec![1000.0, 4000.0], vec![]]);
        assert_eq!((stages.each[1].percentiles[1], stages.slowest[0].offset), (8000.0, 4096.0));
        assert_eq!((Stages::of(&report(), 3, "write"), Stages::of(&report(), 0, "read")), (None, None));
        assert_eq!(Stages::of(&json!({}), 0, "read"), None);
    }

    #[test]
    fn damaged_stages_do_no_harm() {
        let mut report = report();
        let read = &mut report["iolite"]["stages"][0]["read"];
        for key in ["whole_ns", "windows", "slowest_part", "made_of_ns", "slowest", "unmatched", "submit_ns"]
        {
            read[key] = json!("x");
        }
        let stages = Stages::of(&report, 3, "read").unwrap();
        assert_eq!((stages.tail(), stages.windows.len()), (None, 0));
        assert!(stages.in_short().starts_with("submit "));
    }
}
