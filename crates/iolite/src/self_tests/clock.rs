//! `--cpuclock-test`: whether time stamps taken on different processors can be compared.
//!
//! One thread is tied to each processor. All of them draw numbers from one shared sequence and read the clock between
//! two draws, so the sequence says in which order the readings happened. If a later place in the sequence has an
//! earlier time, the clock went back.

use super::Write;
use iolite_os::counter::in_order;
use iolite_run::{Clock, processors, run_on};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

/// Readings that each processor takes.
const READINGS: usize = 100_000;

/// A place in the shared sequence, and the time that was read there.
#[derive(Clone, Copy, Debug)]
struct Reading {
    place: u64,
    time_ns: u64,
}

/// The result as text; an error if the clock is unreliable.
pub fn check() -> Result<String, String> {
    let clock = Clock::calibrate();
    let mut text = format!("clock: {}\n", clock.description());
    let processors = processors().map_err(|error| format!("--cpuclock-test: {error}"))?;
    // Writing to a String does not fail.
    let _ = writeln!(text, "testing {} processors", processors.len());
    let mut readings = take(clock, &processors)?;
    readings.sort_by_key(|reading| reading.place);
    let (backward, worst) = steps_back(&readings);
    if backward > 0 {
        return Err(format!(
            "{text}the clocks of the processors disagree: {backward} of {} readings went back, by up to {worst} ns; \
             clocksource=clock_gettime is safe",
            readings.len()
        ));
    }
    let _ = writeln!(text, "{} readings, none went back: pass", readings.len());
    Ok(text)
}

fn take(clock: Clock, processors: &[u32]) -> Result<Vec<Reading>, String> {
    let sequence = Arc::new(AtomicU64::new(0));
    let barrier = Arc::new(Barrier::new(processors.len()));
    let threads: Vec<_> = processors
        .iter()
        .map(|&processor| {
            let (sequence, barrier) = (sequence.clone(), barrier.clone());
            std::thread::spawn(move || {
                let tied = run_on(&[processor]);
                barrier.wait();
                tied.map_err(|error| format!("processor {processor}: {error}"))?;
                Ok(read(clock, &sequence))
            })
        })
        .collect();
    let mut readings = Vec::new();
    for thread in threads {
        let taken: Result<Vec<Reading>, String> =
            thread.join().map_err(|_| "a thread of --cpuclock-test failed".to_owned())?;
        readings.extend(taken?);
    }
    Ok(readings)
}

/// Takes readings. A reading counts only if no other thread drew between its own two draws: then it belongs to that
/// place.
fn read(clock: Clock, sequence: &AtomicU64) -> Vec<Reading> {
    let mut readings = Vec::with_capacity(READINGS);
    for _ in 0..READINGS {
        let before = sequence.fetch_add(1, Ordering::SeqCst);
        let time_ns = in_order(|| clock.now());
        let after = sequence.fetch_add(1, Ordering::SeqCst);
        if after == before + 1 {
            readings.push(Reading { place: before, time_ns });
        }
    }
    readings
}

/// How often the time was earlier than at a previous place, and by how much at worst.
fn steps_back(readings: &[Reading]) -> (usize, u64) {
    let (mut count, mut worst, mut latest) = (0, 0, 0);
    for reading in readings {
        if reading.time_ns < latest {
            count += 1;
            worst = worst.max(latest - reading.time_ns);
        }
        latest = latest.max(reading.time_ns);
    }
    (count, worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(times: &[u64]) -> Vec<Reading> {
        let reading = |(place, &time_ns): (usize, &u64)| Reading { place: place as u64, time_ns };
        times.iter().enumerate().map(reading).collect()
    }

    #[test]
    fn steps_back_are_counted() {
        assert_eq!(steps_back(&readings(&[1, 2, 2, 9])), (0, 0));
        assert_eq!(steps_back(&readings(&[1, 5, 3, 4, 6])), (2, 2));
        assert_eq!(steps_back(&[]), (0, 0));
    }
}
