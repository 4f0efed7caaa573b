//! Measures how exactly a rate is held: `iolite-bench --rates`.
//!
//! For each rate, one job of the null engine runs under Iolite and under the peer for the length of a run (10 s by
//! default). The table shows the deviation from the requested rate, and the fastest tenth of a second, where a program
//! that falls behind and catches up in bursts is visible. Iolite has to be within 1% of each rate.

use crate::arguments::Arguments;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// I/Os per second.
const RATES: [u64; 7] = [10, 100, 1_000, 10_000, 100_000, 250_000, 500_000];

/// The largest allowed deviation of Iolite, as a fraction of the rate.
const TOLERANCE: f64 = 0.01;

/// The measurements at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Held {
    /// I/Os per second over the whole run.
    mean: f64,
    /// I/Os per second in the fastest tenth of a second.
    most: f64,
}

/// Measures all rates under both programs and prints the table.
pub fn run(arguments: &Arguments, programs: &[PathBuf; 2]) -> Result<(), String> {
    println!("| rate | iolite | off by | fastest 0.1 s | peer | off by | fastest 0.1 s |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    let mut missed = Vec::new();
    for rate in RATES {
        let [ours, theirs] = [hold(&programs[0], rate, arguments)?, hold(&programs[1], rate, arguments)?];
        println!("{}", row(rate, ours, theirs));
        if deviation(rate, ours).abs() > TOLERANCE {
            missed.push(rate.to_string());
        }
    }
    match missed.as_slice() {
        [] => Ok(()),
        _ => Err(format!("not within {}% of {} IOPS", TOLERANCE * 100.0, missed.join(", "))),
    }
}

fn row(rate: u64, ours: Held, theirs: Held) -> String {
    let side =
        |held: Held| format!("{:.1} | {:+.3}% | {:.0}", held.mean, deviation(rate, held) * 100.0, held.most);
    format!("| {rate} | {} | {} |", side(ours), side(theirs))
}

fn deviation(rate: u64, held: Held) -> f64 {
    held.mean / rate as f64 - 1.0
}

fn hold(program: &Path, rate: u64, arguments: &Arguments) -> Result<Held, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{} at {rate} IOPS: {error}", program.display());
    let output = Command::new(program)
        .args(["--output-format=json", "--eta=never", "--name=rate", "--ioengine=null", "--thread"])
        .args(["--size=1T", "--rw=randread", "--norandommap", "--time_based", "--iopsavgtime=100"])
        .arg(format!("--runtime={}", arguments.seconds))
        .arg(format!("--rate_iops={rate}"))
        .output()
        .map_err(|error| failed(&error))?;
    if !output.status.success() {
        return Err(failed(&format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr))));
    }
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))?;
    read(&report, arguments.seconds).ok_or_else(|| failed(&"the report lacks numbers"))
}

/// The mean is over the requested time: in a run that took longer, I/Os were late, not slow.
fn read(report: &Value, seconds: u32) -> Option<Held> {
    let read = &report["jobs"][0]["read"];
    let ios = read["total_ios"].as_f64()?;
    Some(Held { mean: ios / f64::from(seconds), most: read["iops_max"].as_f64()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_held_is_within_the_tolerance() {
        let report = serde_json::json!({"jobs": [{"read": {"total_ios": 1003, "iops_max": 110}}]});
        let held = read(&report, 10).unwrap();
        assert_eq!(held, Held { mean: 100.3, most: 110.0 });
        assert!(deviation(100, held).abs() < TOLERANCE && deviation(95, held).abs() > TOLERANCE);
        assert_eq!(row(100, held, held), "| 100 | 100.3 | +0.300% | 110 | 100.3 | +0.300% | 110 |");
    }
}
