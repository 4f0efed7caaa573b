//! Runs both sides of a case in turns.

use crate::arguments::Arguments;
use crate::cases::{Against, Case};
use crate::measure::{Measure, total_ios};
use crate::place::Place;
use crate::reader::Reader;
use crate::samples::Samples;
use crate::{bare, curl, memory, recorded, threads};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The path of a program that works from any directory. A bare name is searched in `PATH`.
pub fn find(program: &Path) -> Result<PathBuf, String> {
    if program.components().count() == 1 {
        return Ok(program.into());
    }
    program.canonicalize().map_err(|error| {
        format!("{}: {error} (cargo build --release makes target/release/iolite)", program.display())
    })
}

/// The version that a program reports.
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

/// Runs both sides of a case in turns. The side that begins changes with each round.
pub fn alternate(case: &Case, programs: &[PathBuf; 2], arguments: &Arguments) -> Result<Samples, String> {
    let place = Place::new(case.place, arguments).map_err(|error| format!("{}: {error}", case.name))?;
    let mut samples: Samples = [Vec::new(), Vec::new()];
    for round in 0..arguments.rounds {
        for turn in 0..2 {
            let side = (round + turn) % 2;
            let number = match (side, case.against) {
                (0, _) => run(case, "", &programs[0], &place, arguments),
                (_, Against::Nothing) => continue,
                (_, Against::Peer) => run(case, "", &programs[1], &place, arguments),
                (_, Against::Itself(options)) => run(case, options, &programs[0], &place, arguments),
                (_, Against::Curl(requests)) => curl::run(requests, case.measure, &place),
                (_, Against::Recorded(number)) => {
                    recorded::carried_over(number, case.measure, place.directory())
                }
                (_, Against::BareRing(pattern)) => {
                    let device = place.device().ok_or("a bare ring needs a device")?;
                    let limit = Duration::from_secs(arguments.seconds.into());
                    bare::run(device, pattern, limit)
                        .map(|rate| rate / 1e6)
                        .map_err(|error| error.to_string())
                }
            };
            samples[side].push(number.map_err(|error| format!("{}: {error}", case.name))?);
            if !case.shares_files {
                place.tidy()?;
            }
        }
    }
    Ok(samples)
}

/// How a case is run.
pub struct Side<'a> {
    /// The program.
    pub program: &'a Path,
    /// Options added to those of the case.
    pub options: &'a str,
    /// Whether a reader follows its page.
    pub with_page: bool,
}

/// The measurements of a run.
pub struct Outcome {
    reports: Vec<Value>,
    wall: f64,
    peak: u64,
    worked: threads::Worked,
}

impl Outcome {
    /// The number that is compared.
    pub fn read(&self, measure: Measure) -> Result<f64, String> {
        let worked = match measure {
            Measure::WallSeconds => return Ok(self.wall),
            Measure::PeakMemory => return Ok(self.peak as f64 / (1 << 20) as f64),
            Measure::RoomForFiles(files) => return Ok(f64::from(files) * 128.0 / self.peak as f64),
            Measure::ThreadCpuPerIo => self.worked.own,
            Measure::AllCpuPerIo => self.worked.all,
            _ => return measure.read(&self.reports),
        };
        Ok(worked as f64 / total_ios(&self.reports)?)
    }
}

fn run(
    case: &Case,
    options: &str,
    program: &Path,
    place: &Place,
    arguments: &Arguments,
) -> Result<f64, String> {
    let outcome = perform(case, &Side { program, options, with_page: false }, place, arguments)?;
    outcome.read(case.measure).map_err(|error| format!("{}: {error}", program.display()))
}

/// Runs the job of a case, and looks at it as its number needs it.
pub fn perform(case: &Case, side: &Side, place: &Place, arguments: &Arguments) -> Result<Outcome, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", side.program.display());
    let report = place.directory().join("report.json");
    let mut command = Command::new(side.program);
    command
        .args(side.with_page.then_some("--web"))
        .args(["--output-format=json", "--eta=never", "--name=bench"])
        .arg(format!("--output={}", report.display()))
        .args(place.fill_in(case.job).split_whitespace())
        .args(side.options.split_whitespace())
        .current_dir(place.directory())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if let Some(conf) = place.conf() {
        command.env("CEPH_CONF", conf);
    }
    if case.job.contains("--time_based") {
        command.arg(format!("--runtime={}", arguments.seconds));
    }
    let began = Instant::now();
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let reader = child.stderr.take_if(|_| side.with_page).map(Reader::of);
    let peak = match case.measure {
        Measure::PeakMemory | Measure::RoomForFiles(_) => memory::peak(&mut child),
        _ => Ok(0),
    };
    let worked = match case.measure {
        Measure::ThreadCpuPerIo | Measure::AllCpuPerIo => threads::worked(&mut child),
        _ => Ok(threads::Worked::default()),
    };
    let output = child.wait_with_output().map_err(|error| failed(&error))?;
    let wall = began.elapsed().as_secs_f64();
    let of_reader = reader.map(Reader::end).transpose();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(&format!(
            "{}\n{said}{}",
            output.status,
            of_reader.ok().flatten().unwrap_or_default()
        )));
    }
    of_reader.map_err(|error| failed(&error))?;
    let (peak, worked) = (peak.map_err(|error| failed(&error))?, worked.map_err(|error| failed(&error))?);
    let text = fs::read_to_string(&report).map_err(|error| failed(&error))?;
    let reports: Vec<Value> = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&format!("not JSON: {error}")))?;
    if case.measure == Measure::LoggedIops {
        all_logged(&reports, place.directory()).map_err(|error| failed(&error))?;
    }
    Ok(Outcome { reports, wall, peak, worked })
}

/// Checks that the log of total latencies has a line for each I/O.
fn all_logged(reports: &[Value], directory: &Path) -> Result<(), String> {
    let ios = total_ios(reports)?;
    let log = directory.join("log_lat.1.log");
    let file = fs::File::open(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut lines = 0u64;
    let mut file = BufReader::with_capacity(1 << 20, file);
    loop {
        let bytes = file.fill_buf().map_err(|error| error.to_string())?;
        if bytes.is_empty() {
            break;
        }
        lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let length = bytes.len();
        file.consume(length);
    }
    if lines as f64 == ios {
        return Ok(());
    }
    Err(format!("{lines} lines in the log of {ios} I/Os"))
}
