//! Made-up measurements for the tests of the rules.

use crate::{Case, Counted, Disk, Flow, Measured, Percentiles, Point, Role, Subject};
use iolite_sweep::Figures;

/// A case with one direction, this many I/Os of this size per second for ten seconds, and this median latency.
pub fn case(name: &str, role: Role, iops: f64, bytes: f64, p50_us: f64) -> Case {
    let direction = match role {
        Role::Fill | Role::Write | Role::RandomWrite | Role::Durable => "write",
        _ => "read",
    };
    let p50 = p50_us * 1000.0;
    let flow = Flow {
        direction,
        bytes: 10.0 * iops * bytes,
        ios: 10.0 * iops,
        iops,
        bandwidth: iops * bytes,
        latency: Percentiles { mean: p50, p50, p99: 2.0 * p50, p999: 4.0 * p50, max: 9.0 * p50 },
        first_byte: None,
        pieces: vec![points(&[iops; 100])],
        sample_seconds: 0.1,
    };
    let figures = Figures {
        iops,
        bandwidth: iops * bytes,
        latency_ns: Some(p50),
        cpu_percent: 20.0,
        ..Figures::default()
    };
    let counted = match direction {
        "read" => Counted { disk: "sda".into(), read: (flow.bytes, flow.ios), written: (0.0, 0.0) },
        _ => Counted { disk: "sda".into(), read: (0.0, 0.0), written: (flow.bytes, flow.ios) },
    };
    let measured = Measured { flows: vec![flow], sync: None, counted: Some(counted), figures, seconds: 10.0 };
    Case { name: name.into(), role, depth: 1, workers: 1, is_direct: true, flushes: None, measured }
}

/// Windows of a tenth of a second with these rates.
pub fn points(rates: &[f64]) -> Vec<Point> {
    rates.iter().map(|&rate| Point { seconds: 0.1, ios: rate / 10.0, lowest: rate }).collect()
}

/// A flash drive of which these cases were measured.
pub fn flash(cases: Vec<Case>) -> Subject {
    let disk = Disk {
        name: "sda".into(),
        rotational: Some(false),
        scheduler: Some("none".into()),
        is_flushed: Some(true),
        physical_block: Some(4096),
        ..Disk::default()
    };
    Subject { disk: Some(disk), cases, ..Subject::default() }
}

/// The curve of a device that serves this many reads of 4 KiB at once, each in this many microseconds, up to a depth of 64.
pub fn curve(places: f64, p50_us: f64) -> Vec<Case> {
    [1_u32, 2, 4, 8, 16, 32, 64]
        .map(|depth| {
            // The Universal Scalability Law, without coherency.
            let sigma = 1.0 / places;
            let iops = f64::from(depth) * 1e6 / p50_us / (1.0 + sigma * (f64::from(depth) - 1.0));
            let latency = f64::from(depth) * 1e6 / iops;
            Case { depth, ..case(&format!("randread-{depth}"), Role::Step, iops, 4096.0, latency) }
        })
        .into()
}
