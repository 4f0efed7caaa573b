//! Injects random faults again and again, and checks the program's reports: it has to find every fault, raise no false
//! alarm, and leave nothing behind.
//!
//!     scripts/campaign [OPTIONS]
//!
//! A campaign consists of trials. Each belongs to a part ([`parts::Part`]), and makes all its choices from its own
//! seed, which follows from the campaign's seed and its number. So a trial with a finding can be repeated alone
//! (`--seed N --trial PART:NUMBER`): with the same job and the same fault, although the machine's timing differs.

mod arguments;
mod damage;
mod devices;
mod disks;
mod honest;
mod jobs;
mod kills;
mod parts;
mod processes;
mod reading;
mod running;
mod signals;
mod stop;
mod tally;
mod trial;
mod zones;

use arguments::Arguments;
use parts::Part;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tally::Tally;
use trial::{Outcome, Setting};

fn main() -> ExitCode {
    let result = match Arguments::parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => run(&arguments),
        Ok(None) => {
            print!("{}", arguments::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(message) => Err(message),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("iolite-campaign: {message}");
            ExitCode::from(2)
        }
    }
}

/// The campaign is to end with the trials that are under way, so that they clean up.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn interrupt(_signal: libc::c_int) {
    INTERRUPTED.store(true, Relaxed);
}

/// Runs the campaign. Returns whether all was well.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let program = arguments.program()?;
    let seed = arguments.seed.unwrap_or_else(|| iolite_testing::Luck::new().below(1 << 32));
    if let Some((part, number)) = arguments.trial {
        let mut tally = Tally::of_one();
        tally.add(part, number, perform(part, number, seed, &program, arguments));
        return Ok(tally.told(&program, seed, Duration::ZERO));
    }
    let mut tally = Tally::default();
    let parts = able(&arguments.parts, &mut tally);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, interrupt as *const () as libc::sighandler_t) };
    }
    let began = Instant::now();
    let end = began + Duration::from_secs(60 * arguments.minutes);
    println!("seed {seed}, {} minutes, {}", arguments.minutes, program.display());
    let next = AtomicU64::new(0);
    let tally = Mutex::new(tally);
    std::thread::scope(|scope| {
        for _ in 0..arguments.parallel {
            scope.spawn(|| {
                while Instant::now() < end && !parts.is_empty() && !INTERRUPTED.load(Relaxed) {
                    let turn = next.fetch_add(1, Relaxed);
                    let part = parts[(turn % parts.len() as u64) as usize];
                    let number = turn / parts.len() as u64;
                    if part.count().is_some_and(|count| number >= count) {
                        let is_over = |part: &Part| part.count().is_some_and(|count| number >= count);
                        if parts.iter().all(is_over) { break } else { continue }
                    }
                    let outcome = perform(part, number, seed, &program, arguments);
                    tally.lock().expect("no trial panics with it").add(part, number, outcome);
                }
            });
        }
    });
    let tally = tally.into_inner().expect("no trial panics with it");
    Ok(tally.told(&program, seed, began.elapsed()))
}

/// Performs the trial of this number of a part.
fn perform(part: Part, number: u64, seed: u64, program: &Path, arguments: &Arguments) -> Outcome {
    let seed = seed ^ (part as u64 + 1) << 56 ^ number << 24;
    let setting = Setting { seed, program, directory: &arguments.directory, keep: arguments.keep };
    trial::perform(setting, |trial| part.perform(trial, number))
}

/// The parts that can be tried here. Why others cannot is noted.
fn able(parts: &[Part], tally: &mut Tally) -> Vec<Part> {
    let mut able = Vec::new();
    for &part in parts {
        match part.obstacle() {
            None => able.push(part),
            Some(reason) => tally.skip(part, &reason),
        }
    }
    able
}
