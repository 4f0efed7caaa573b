//! Example reports for the tests of the formats.

use crate::{Exporter, Program};
use iolite_stats::{
    ContinuedErrors, Depths, DirectionReport, DiskCounters, DiskReport, Display, First, GroupDirection,
    GroupReport, Histogram, JobReport, Latency, LatencyClasses, Moments, Report, Samples, Usage,
};
use iolite_types::{Direction, PerDirection};

/// The text of a report in a format.
pub fn text(exporter: &dyn Exporter, report: &Report) -> String {
    let mut out = Vec::new();
    let program = Program { version: "fio-3.42".into(), own_version: "iolite-0.1.0".into() };
    exporter.write(report, &program, &mut out).expect("memory takes everything");
    String::from_utf8(out).expect("text")
}

/// A latency with these values, each this many times.
pub fn latency(values: &[(u64, usize)]) -> Latency {
    let mut latency = Latency::default();
    for &(value, count) in values {
        for _ in 0..count {
            latency.moments.record(value);
            latency.histogram.record(value);
        }
    }
    latency
}

/// A latency with these moments and no histogram.
pub fn moments(count: u64, min: u64, max: u64, mean: f64, deviation: f64) -> Latency {
    let n = count as f64;
    let sum_squares = deviation * deviation * (n - 1.0) + n * mean * mean;
    let moments = Moments { count, min, max, sum: (mean * n) as u128, sum_squares: sum_squares as u128 };
    Latency { moments, histogram: Histogram::default() }
}

/// Samples with these moments.
pub fn samples(count: u64, min: u64, max: u64, mean: f64, deviation: f64) -> Samples {
    Samples::new(count, min, max, mean, deviation * deviation * (count as f64 - 1.0))
}

/// Errors that a job tolerated; the first one had this errno.
pub fn errors(count: u64, errno: i32) -> ContinuedErrors {
    ContinuedErrors { count, first: Some(First { worker: 0, value: errno }) }
}

/// A group in which one worker moved these bytes.
pub fn group(id: u32, directions: &[(Direction, u64, u64)]) -> GroupReport {
    let mut group = GroupReport { id, kb_base: 1024, significant_figures: 4, ..GroupReport::default() };
    for &(direction, bytes, runtime_ms) in directions {
        let bandwidth = (u128::from(bytes) * 1000 / u128::from(runtime_ms)) as u64;
        group.directions[direction] = GroupDirection {
            bytes,
            bandwidth,
            min_bandwidth: bandwidth,
            max_bandwidth: bandwidth,
            min_runtime_ms: runtime_ms,
            max_runtime_ms: runtime_ms,
        };
    }
    group
}

/// An asynchronous job that reads and writes for three seconds, with the figures of such a run.
pub fn mixed() -> Report {
    let read = DirectionReport {
        bytes: 164_220 * 4096,
        ios: 164_220,
        issued: 164_220,
        runtime_ms: 3001,
        slat: moments(164_220, 3_000, 490_000, 4_280.0, 4_460.0),
        clat: latency(&[(20_000, 98), (200_000, 2)]),
        lat: moments(164_220, 41_000, 8_066_000, 181_650.0, 180_180.0),
        bw: samples(6, 177_720, 247_216, 218_960.0, 32_240.83),
        iops: samples(6, 44_430, 61_804, 54_740.0, 8_060.21),
        ..DirectionReport::default()
    };
    let write = DirectionReport {
        bytes: 70_346 * 4096,
        ios: 70_346,
        issued: 70_346,
        runtime_ms: 3001,
        slat: moments(70_346, 3_000, 1_877_000, 4_490.0, 8_300.0),
        clat: moments(70_346, 61_000, 8_130_000, 253_160.0, 391_690.0),
        lat: moments(70_346, 65_000, 8_148_000, 257_650.0, 392_020.0),
        bw: samples(6, 74_880, 105_736, 93_794.67, 14_394.57),
        iops: samples(6, 18_720, 26_434, 23_448.67, 3_598.64),
        ..DirectionReport::default()
    };
    let mut classes = LatencyClasses::default();
    classes.ns[8] = 1;
    classes.us = [0, 0, 0, 0, 235, 1220, 226_497, 3989, 188, 94];
    classes.ms[0] = 2342;
    let job = JobReport {
        name: "mix".into(),
        members: 1,
        pid: 17_911,
        elapsed_s: 4,
        options: vec![("name".into(), "mix".into()), ("group_reporting".into(), String::new())],
        directions: PerDirection::new(read, write, DirectionReport::default()),
        job_runtime_ms: 3000,
        usage: Usage {
            user_ms: 122,
            system_ms: 1139,
            context_switches: 17_406,
            major_faults: 0,
            minor_faults: 11,
        },
        depths: Depths {
            level: [1, 1, 2, 4, 234_558, 0, 0],
            submit: [0, 234_566, 0, 0, 0, 0, 0],
            complete: [0, 234_500, 0, 7, 0, 0, 0],
        },
        latency_classes: classes,
        depth: 16,
        latency_percentile: 100.0,
        display: Display { synchronous: false, percentiles: vec![1.0, 50.0, 99.0], ..Display::default() },
        ..JobReport::default()
    };
    let disk = DiskReport {
        name: "vda".into(),
        counters: DiskCounters {
            read_ios: 151_146,
            write_ios: 64_613,
            read_sectors: 1_209_168,
            write_sectors: 516_904,
            read_ticks: 20_189,
            write_ticks: 8_339,
            in_queue: 28_528,
            ..DiskCounters::default()
        },
        utilisation: 80.28,
        slaves: Vec::new(),
    };
    Report {
        timestamp_ms: 1_795_178_000_500,
        jobs: vec![job],
        groups: vec![group(
            0,
            &[(Direction::Read, 164_220 * 4096, 3001), (Direction::Write, 70_346 * 4096, 3001)],
        )],
        disks: vec![disk],
        ..Report::default()
    }
}
