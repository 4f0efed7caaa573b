//! Running a case and reading the number out of the report.

use crate::arguments::Arguments;
use crate::cases::Case;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A number in a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// I/Os per second, all directions together: more is better.
    Iops,
    /// Nanoseconds of user CPU per I/O: less is better.
    UserCpuPerIo,
}

impl Measure {
    /// What the number is called in the table.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Iops => "MIOPS",
            Measure::UserCpuPerIo => "user ns/IO",
        }
    }

    /// How many times better `ours` is than `theirs`.
    pub fn advantage(self, ours: f64, theirs: f64) -> f64 {
        match self {
            Measure::Iops => ours / theirs,
            Measure::UserCpuPerIo => theirs / ours,
        }
    }

    /// The number in the report of a run with one job.
    fn read(self, report: &Value) -> Result<f64, String> {
        let job = &report["jobs"][0];
        let number = |value: &Value, what: &str| value.as_f64().ok_or(format!("no {what} in the report"));
        let mut ios = 0.0;
        let mut iops = 0.0;
        for direction in ["read", "write", "trim"] {
            ios += number(&job[direction]["total_ios"], "total_ios")?;
            iops += number(&job[direction]["iops"], "iops")?;
        }
        if ios == 0.0 {
            return Err("the job did nothing".into());
        }
        match self {
            Measure::Iops => Ok(iops / 1e6),
            Measure::UserCpuPerIo => {
                // Per cent of the job's run time, which is in milliseconds.
                let share = number(&job["usr_cpu"], "usr_cpu")? / 100.0;
                let milliseconds = number(&job["job_runtime"], "job_runtime")?;
                Ok(share * milliseconds * 1e6 / ios)
            }
        }
    }
}

/// A program where it can be run from any directory. A bare name is left to `PATH`.
pub fn find(program: &Path) -> Result<PathBuf, String> {
    if program.components().count() == 1 {
        return Ok(program.into());
    }
    program.canonicalize().map_err(|error| {
        format!("{}: {error} (cargo build --release makes target/release/iolite)", program.display())
    })
}

/// What a program calls itself.
pub fn identify(program: &Path) -> Result<String, String> {
    let output = Command::new(program).arg("--version").output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
        }
        Ok(output) => Err(format!("{} --version: {}", program.display(), output.status)),
        Err(error) => Err(format!("{}: {error}", program.display())),
    }
}

/// The numbers of each program, in the order of the rounds.
pub type Samples = [Vec<f64>; 2];

/// Run a case under both programs in turns, the one that begins changing with each round.
pub fn alternate(case: &Case, programs: &[PathBuf; 2], arguments: &Arguments) -> Result<Samples, String> {
    let mut samples: Samples = [Vec::new(), Vec::new()];
    for round in 0..arguments.rounds {
        for turn in 0..2 {
            let which = (round + turn) % 2;
            let number = run(case, &programs[which], arguments)
                .map_err(|error| format!("{}: {}: {error}", case.name, programs[which].display()))?;
            samples[which].push(number);
        }
    }
    Ok(samples)
}

fn run(case: &Case, program: &Path, arguments: &Arguments) -> Result<f64, String> {
    let directory = tempfile::Builder::new()
        .prefix("iolite-bench-")
        .tempdir_in(&arguments.directory)
        .map_err(|error| format!("{}: {error}", arguments.directory.display()))?;
    let job = case.job.replace("{directory}", &directory.path().to_string_lossy());
    let output = Command::new(program)
        .args(["--output-format=json", "--eta=never", "--name=bench", "--time_based"])
        .arg(format!("--runtime={}", arguments.seconds))
        .args(job.split_whitespace())
        .current_dir(directory.path())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let report = serde_json::from_slice(&output.stdout).map_err(|error| format!("not JSON: {error}"))?;
    case.measure.read(&report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Value {
        let direction = |ios: u64, iops: f64| json!({"total_ios": ios, "iops": iops});
        json!({"jobs": [{
            "read": direction(3_000_000, 1_500_000.0), "write": direction(1_000_000, 500_000.0), "trim": direction(0, 0.0),
            "usr_cpu": 50.0, "job_runtime": 2000,
        }]})
    }

    #[test]
    fn numbers_are_read_from_a_report() {
        assert_eq!(Measure::Iops.read(&report()), Ok(2.0));
        // Half of two seconds over four million I/Os.
        assert_eq!(Measure::UserCpuPerIo.read(&report()), Ok(250.0));
    }

    #[test]
    fn a_report_without_ios_is_an_error() {
        let mut nothing = report();
        for direction in ["read", "write"] {
            nothing["jobs"][0][direction]["total_ios"] = json!(0);
        }
        assert!(Measure::Iops.read(&nothing).is_err());
        assert!(Measure::Iops.read(&json!({})).is_err());
    }

    #[test]
    fn more_is_better_or_less_is() {
        assert_eq!(Measure::Iops.advantage(4.0, 2.0), 2.0);
        assert_eq!(Measure::UserCpuPerIo.advantage(100.0, 150.0), 1.5);
    }
}
