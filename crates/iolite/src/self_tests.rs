//! Measurements of this machine that need no jobs: `--crctest`, `--cpuclock-test`, `--memcpytest`.

mod checksums;
mod clock;
mod copies;

use crate::messages::complain;
use iolite_options::SelfTest;
use std::fmt::Write;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs a self-test, and prints its result.
pub fn run(program: &'static str, test: &SelfTest) -> ExitCode {
    let outcome = match test {
        SelfTest::Checksums(names) => checksums::measure(names),
        SelfTest::Clock => clock::check(),
        SelfTest::IdleUnit => iolite_run::calibrate_cpus()
            .map(|report| iolite_report::idle_calibration(&report))
            .map_err(|error| format!("--idle-prof: {error}")),
        SelfTest::Copies(names) => copies::measure(names),
    };
    match outcome {
        Ok(text) => crate::messages::answer(program, &text, 0),
        Err(problem) => {
            complain(program, &problem);
            ExitCode::FAILURE
        }
    }
}

/// How long one speed is measured.
const SPAN: Duration = Duration::from_millis(20);

/// The speed of `work` in MiB per second, if a call processes `bytes` bytes. Repeats it for a while.
fn speed(bytes: usize, mut work: impl FnMut()) -> f64 {
    /// The clock is read once per this much data.
    const STEP: usize = 1 << 20;
    let rounds = (STEP / bytes.max(1)).max(1);
    work();
    let began = Instant::now();
    let mut done = 0;
    loop {
        for _ in 0..rounds {
            work();
        }
        done += rounds * bytes;
        let elapsed = began.elapsed();
        if elapsed >= SPAN {
            return done as f64 / (1 << 20) as f64 / elapsed.as_secs_f64();
        }
    }
}

/// The requested entries of a table, in its order; all if none is named.
fn chosen<'a, T>(
    option: &str,
    table: &'a [(&'static str, T)],
    names: &[String],
) -> Result<Vec<&'a (&'static str, T)>, String> {
    if let Some(unknown) = names.iter().find(|name| table.iter().all(|(known, _)| known != name)) {
        let known: Vec<_> = table.iter().map(|(name, _)| *name).collect();
        return Err(format!("{option}: unknown \"{unknown}\" ({})", known.join(", ")));
    }
    Ok(table
        .iter()
        .filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name))
        .collect())
}
