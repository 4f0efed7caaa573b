//! Prints the cost of logging an I/O, until the files are complete, for the usual settings.
//!
//!     cargo run --release -p iolite-logs --example log_speed [DIRECTORY]

use iolite_logs::{Columns, Form, Io, Job, LogKind, Recorder, Settings, WindowValue};
use iolite_types::Direction;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const COUNT: u64 = 10_000_000;

fn settings(dir: &Path, kinds: &[LogKind], columns: Columns, form: Form) -> Settings {
    let path = |kind: &LogKind| dir.join(kind.file_name("log_speed", Some(0), false));
    Settings {
        files: kinds.iter().map(|kind| (*kind, path(kind))).collect(),
        shared: false,
        columns,
        average_ns: 0,
        shown: WindowValue::Mean,
        histogram_ns: 0,
        coarseness: 0,
        form,
        room: 1 << 16,
        zero: None,
    }
}

fn measure(what: &str, settings: &Settings) {
    let began = Instant::now();
    let mut recorder =
        Recorder::start(settings, &Job::stopping_when(|| false), || Ok(())).expect("logs can be opened");
    recorder.begin(0);
    for number in 0..COUNT {
        let start = number * 100;
        recorder.record(&Io {
            direction: Direction::Read,
            length: 4096,
            offset: (number.wrapping_mul(0x9e37_79b9) & 0xffff) * 4096,
            start,
            issue: start + 20 + number % 16,
            complete: start + 90 + number % 64,
            queued: true,
            priority: 0,
            first_byte: None,
        });
    }
    let made = began.elapsed();
    let waited = recorder.finish(COUNT * 100).expect("logs can be written");
    let all = began.elapsed();
    let each = |time: Duration| time.as_nanos() as f64 / COUNT as f64;
    let own = each(made.saturating_sub(waited));
    println!("{what:<32} {:6.1} ns per I/O, of which {own:.1} are the job's own", each(all));
    for (_, path) in &settings.files {
        // The file was made above.
        let _ = std::fs::remove_file(path);
    }
}

fn main() {
    let dir = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let latencies = [LogKind::Submission, LogKind::Completion, LogKind::Total];
    let plain = Columns::default();
    let offsets = Columns { offset: true, ..plain };
    let packed = Form::Compressed { stream: 64 << 10 };
    measure("three latencies", &settings(&dir, &latencies, plain, Form::Text));
    measure("completion and total", &settings(&dir, &latencies[1..], plain, Form::Text));
    measure("the same with offsets", &settings(&dir, &latencies[1..], offsets, Form::Text));
    measure("total latency, compressed", &settings(&dir, &latencies[2..], plain, packed));
    let mut averaged = settings(&dir, &LogKind::VALUES, plain, Form::Text);
    averaged.average_ns = 100_000_000;
    measure("averages of everything", &averaged);
    let mut histogram = settings(&dir, &[LogKind::Histogram], plain, Form::Text);
    histogram.histogram_ns = 100_000_000;
    measure("histograms", &histogram);
}
