//! CPU time and rates of a program that cannot run here, measured elsewhere and scaled to this machine.
//!
//! fio 3.42 with its `http` engine is in no package. Its CPU time and rates were measured on one machine with two CPUs, which
//! it shared with the server, together with that of
//! sha256sum(1) for a MiB, which uses no SHA instructions. The time of sha256sum here shows how much slower or faster
//! this machine is.

use crate::measure::Measure;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The user time of sha256sum for a MiB on that machine, in seconds.
const THERE: f64 = 3.65e-3;

/// How much data it is given here, in MiB.
const AMOUNT: usize = 128;

/// A number that was measured there, as it would be here.
pub fn carried_over(number: f64, measure: Measure, directory: &Path) -> Result<f64, String> {
    let failed = |error: std::io::Error| format!("sha256sum: {error}");
    let path = directory.join("calibration");
    let mut file = File::create(&path).map_err(failed)?;
    for piece in 0..AMOUNT {
        file.write_all(&vec![piece as u8; 1 << 20]).map_err(failed)?;
    }
    let before = times_of_children().0;
    let status = Command::new("sha256sum").arg(&path).stdout(Stdio::null()).status().map_err(failed)?;
    if !status.success() {
        return Err(format!("sha256sum: {status}"));
    }
    let here = (times_of_children().0 - before) / AMOUNT as f64;
    let slower = here / THERE;
    Ok(if measure.is_more_better() { number / slower } else { number * slower })
}

/// Seconds of user and of system time of all children that have ended.
pub fn times_of_children() -> (f64, f64) {
    // SAFETY: the structure is plain data, and the pointer is valid through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled() {
        let directory = tempfile::tempdir().unwrap();
        for measure in [Measure::CpuPerIo, Measure::Requests] {
            let number = carried_over(1000.0, measure, directory.path()).unwrap();
            assert!(number.is_finite() && number > 0.0, "{number}");
        }
    }
}
