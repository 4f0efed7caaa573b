//! Compares reports with those of the peers: a fio runs with three formats at once, its JSON is parsed into a
//! [`Report`], and the reports made from that must be the text that fio printed, in all formats. The [`Release`]s list
//! the differences from the release whose layout is used here. Without fio, the tests are skipped.

use iolite_report::{Exporter, Json, Normal, Program, Terse, TerseVersion};
use iolite_stats::*;
use iolite_testing::{Peer, Release, peers, skip};
use iolite_types::{Direction, PerDirection};
use serde_json::Value;
use std::process::Command;

/// The output of a run of the peer, separated by format.
struct Told {
    terse: String,
    json: String,
    normal: String,
}

/// Skips a test if there is no fio.
macro_rules! need_fio {
    () => {
        if peers().is_empty() {
            skip!("fio is not installed");
        }
    };
}

fn run(peer: &Peer, arguments: &str) -> Told {
    let output = Command::new(&peer.path)
        .args(["--eta=never", "--output-format=terse,json+,normal"])
        .args(arguments.split_whitespace())
        .output()
        .expect("fio can be run");
    let text = String::from_utf8(output.stdout).expect("text");
    let json = text.find("\n{\n").expect("JSON starts") + 1;
    let normal = json + text[json..].find("\n}\n").expect("JSON ends") + 3;
    let terse = text[..json].lines().filter(|line| line.starts_with("3;fio-")).collect::<Vec<_>>().join("\n");
    Told { terse: terse + "\n", json: text[json..normal].into(), normal: text[normal..].into() }
}

/// The lines in the words of the newest release, without the local time and the sectors of disks (which not every release
/// shows).
fn comparable(normal: &str, release: &Release) -> Vec<String> {
    let without = |line: &str, from: &str, to: &str| match line.split_once(from) {
        Some((before, after)) => before.to_string() + after.split_once(to).map_or("", |(_, rest)| rest),
        None => line.to_string(),
    };
    let lines =
        normal.lines().map(|line| release.in_words_of_3_42(line)).map(|line| match line.contains(": pid=") {
            true => line.rsplit_once(": pid=").map_or(&*line, |(heading, _)| heading).to_string(),
            false => without(&line, "sectors=", ", "),
        });
    lines.collect()
}

fn integer(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}

/// A count that some releases do not report.
fn newer(value: &Value) -> u64 {
    if value.is_null() { 0 } else { integer(value) }
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn latency(value: &Value) -> Latency {
    let (count, mean, deviation) = (integer(&value["N"]), float(&value["mean"]), float(&value["stddev"]));
    if count == 0 {
        return Latency::default();
    }
    let sum = (mean * count as f64).round();
    let sum_squares = deviation * deviation * (count - 1) as f64 + sum * sum / count as f64;
    let mut counts = vec![0; BUCKETS];
    for (midpoint, count) in value["bins"].as_object().into_iter().flatten() {
        counts[bucket_of(midpoint.parse().expect("bins are numbers"))] = integer(count);
    }
    Latency {
        moments: Moments {
            count,
            min: integer(&value["min"]),
            max: integer(&value["max"]),
            sum: sum as u128,
            sum_squares: sum_squares.round() as u128,
        },
        histogram: Histogram::from_counts(counts),
    }
}

fn samples(value: &Value, of: &str, deviation: &str) -> Samples {
    let get = |what: &str| &value[format!("{of}_{what}")];
    let count = integer(get("samples"));
    let deviation = float(get(deviation));
    let spread = deviation * deviation * count.saturating_sub(1) as f64;
    Samples::new(count, integer(get("min")), integer(get("max")), float(get("mean")), spread)
}

fn direction(value: &Value) -> DirectionReport {
    let ios = integer(&value["total_ios"]);
    DirectionReport {
        bytes: integer(&value["io_bytes"]),
        ios,
        issued: ios,
        short: integer(&value["short_ios"]),
        dropped: integer(&value["drop_ios"]),
        runtime_ms: integer(&value["runtime"]),
        slat: latency(&value["slat_ns"]),
        clat: latency(&value["clat_ns"]),
        intended: Latency::default(),
        first_byte: Latency::default(),
        visible: Latency::default(),
        priorities: Vec::new(),
        stages: None,
        lat: latency(&value["lat_ns"]),
        bw: samples(value, "bw", "dev"),
        iops: samples(value, "iops", "stddev"),
    }
}

/// Converts shares of a total back into counts. The smallest share that is shown stands for anything below it.
fn counts<const N: usize>(value: &Value, total: u64) -> [u64; N] {
    let count = |share: f64| {
        let exact = share * total as f64 / 100.0;
        if share == 0.01 || share == 0.1 { (exact.floor() as u64).max(1) } else { exact.round() as u64 }
    };
    let counts: Vec<u64> =
        value.as_object().expect("a distribution").values().map(float).map(count).collect();
    counts.try_into().expect("as many classes as ever")
}

/// Converts shares of calls back into counts, although the number of calls is unknown. The smallest shares divide the
/// rest.
fn calls<const N: usize>(value: &Value) -> [u64; N] {
    const ALL: u64 = 1_000_000_000;
    let is_least = |share: f64| share == 0.1;
    let shares: Vec<f64> = value.as_object().expect("a distribution").values().map(float).collect();
    let known: f64 = shares.iter().filter(|&&share| !is_least(share)).sum();
    let least = shares.iter().filter(|&&share| is_least(share)).count().max(1);
    let left = ((100.0 - known) * ALL as f64 / 100.0 / least as f64).max(1.0) as u64;
    let count = |share: f64| if is_least(share) { left } else { (share * ALL as f64 / 100.0).round() as u64 };
    let counts: Vec<u64> = shares.into_iter().map(count).collect();
    counts.try_into().expect("as many classes as ever")
}

fn options(value: &Value) -> Vec<(String, String)> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(name, text)| (name.clone(), text.as_str().unwrap_or("").to_string())).collect()
}

fn job(value: &Value, display: &Display) -> JobReport {
    let directions = PerDirection { values: Direction::ALL.map(|of| direction(&value[of.name()])) };
    let ios: u64 = directions.values.iter().map(|direction| direction.ios).sum();
    let runtime = integer(&value["job_runtime"]);
    let milliseconds = |share: &Value| (float(share) * runtime as f64 / 100.0).round() as u64;
    let lat = latency(&value["sync"]["lat_ns"]);
    JobReport {
        name: value["jobname"].as_str().expect("a name").into(),
        description: value["desc"].as_str().map(String::from),
        group: integer(&value["groupid"]) as u32,
        members: 1,
        elapsed_s: integer(&value["elapsed"]),
        start_ms: newer(&value["job_start"]),
        options: options(&value["job options"]),
        sync: SyncReport { ios: integer(&value["sync"]["total_ios"]), lat },
        lateness: Latency::default(),
        job_runtime_ms: runtime,
        usage: Usage {
            user_ms: milliseconds(&value["usr_cpu"]),
            system_ms: milliseconds(&value["sys_cpu"]),
            context_switches: integer(&value["ctx"]),
            major_faults: integer(&value["majf"]),
            minor_faults: integer(&value["minf"]),
        },
        depths: Depths {
            level: counts(&value["iodepth_level"], ios),
            submit: calls(&value["iodepth_submit"]),
            complete: calls(&value["iodepth_complete"]),
        },
        latency_classes: LatencyClasses {
            ns: counts(&value["latency_ns"], ios),
            us: counts(&value["latency_us"], ios),
            ms: counts(&value["latency_ms"], ios),
        },
        depth: integer(&value["latency_depth"]) as u32,
        latency_percentile: float(&value["latency_percentile"]),
        display: display.clone(),
        directions,
        ..JobReport::default()
    }
}

fn groups(jobs: &[JobReport], display: &Display) -> Vec<GroupReport> {
    let ids = jobs.iter().map(|job| job.group).max().map_or(0, |last| last + 1);
    let group = |id| {
        let mut group = GroupReport {
            id,
            kb_base: display.kb_base,
            unit_base: display.unit_base,
            significant_figures: display.significant_figures,
            ..GroupReport::default()
        };
        for of in Direction::ALL {
            let ran = jobs.iter().filter(|job| job.group == id).map(|job| &job.directions[of]);
            let ran: Vec<_> = ran.filter(|direction| direction.runtime_ms > 0).collect();
            let rates = || ran.iter().map(|direction| direction.bytes * 1000 / direction.runtime_ms);
            let runtimes = || ran.iter().map(|direction| direction.runtime_ms);
            let bytes = ran.iter().map(|direction| direction.bytes).sum();
            let longest = runtimes().max().unwrap_or(0);
            group.directions[of] = GroupDirection {
                bytes,
                bandwidth: (bytes * 1000).checked_div(longest).unwrap_or(0),
                min_bandwidth: rates().min().unwrap_or(0),
                max_bandwidth: rates().max().unwrap_or(0),
                min_runtime_ms: runtimes().min().unwrap_or(0),
                max_runtime_ms: longest,
            };
        }
        group
    };
    (0..ids).map(group).collect()
}

fn disk(value: &Value) -> DiskReport {
    let get = |name: &str| integer(&value[name]);
    DiskReport {
        name: value["name"].as_str().expect("a name").into(),
        counters: DiskCounters {
            read_ios: get("read_ios"),
            write_ios: get("write_ios"),
            read_merges: get("read_merges"),
            write_merges: get("write_merges"),
            read_sectors: newer(&value["read_sectors"]),
            write_sectors: newer(&value["write_sectors"]),
            read_ticks: get("read_ticks"),
            write_ticks: get("write_ticks"),
            in_queue: get("in_queue"),
        },
        utilisation: float(&value["util"]),
        slaves: Vec::new(),
    }
}

fn report(json: &Value, display: &Display) -> Report {
    let jobs: Vec<_> = json["jobs"].as_array().expect("jobs").iter().map(|of| job(of, display)).collect();
    Report {
        timestamp_ms: integer(&json["timestamp_ms"]),
        global_options: options(&json["global options"]),
        groups: groups(&jobs, display),
        jobs,
        disks: json["disk_util"].as_array().into_iter().flatten().map(disk).collect(),
        ..Report::default()
    }
}

/// Whether the texts are equal except for the last digit of fractions: these were converted to six decimals and back,
/// and the peer's running means may round differently at a tie.
fn same(ours: &str, theirs: &str, tolerance: f64) -> bool {
    let number = |text: &str| text.trim_end_matches('%').parse::<f64>().ok().filter(|_| text.contains('.'));
    match (number(ours), number(theirs)) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance * 1.01 + 2e-6 * a.abs().max(b.abs()),
        _ => ours == theirs,
    }
}

fn assert_normal(ours: &str, theirs: &str, release: &Release, arguments: &str) {
    let (ours, theirs) = (comparable(ours, Release::ours()), comparable(theirs, release));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let words = |line: &str| line.split([' ', '=', ',']).map(String::from).collect::<Vec<_>>();
        let (words, their_words) = (words(ours), words(theirs));
        let equal = words.len() == their_words.len()
            && words.iter().zip(&their_words).all(|(ours, theirs)| same(ours, theirs, 0.01));
        assert!(equal, "{arguments}\n ours: {ours}\n fio: {theirs}");
    }
    assert_eq!(ours.len(), theirs.len(), "{arguments}");
}

fn assert_json(ours: &str, theirs: &str, release: &Release, arguments: &str) {
    let is_newer = |line: &&str| {
        release.lacking_keys().chain(["iolite version"]).any(|key| line.contains(&format!("\"{key}\" :")))
    };
    let clean = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !is_newer(line));
        lines.map(|line| line.trim_end_matches(',').to_string()).collect()
    };
    let (ours, theirs) = (clean(ours), clean(theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let equal = match (ours.split_once(" : "), theirs.split_once(" : ")) {
            (Some((key, value)), Some((their_key, their_value))) => {
                key == their_key && same(value, their_value, 2e-6)
            }
            _ => ours == theirs,
        };
        assert!(equal, "{arguments}\n ours: {ours}\n fio: {theirs}");
    }
    assert_eq!(ours.len(), theirs.len(), "{arguments}");
}

fn compare(arguments: &str, adapt: impl Fn(&mut Display)) {
    for peer in peers() {
        compare_with(peer, arguments, &adapt);
    }
}

fn compare_with(peer: &Peer, arguments: &str, adapt: impl Fn(&mut Display)) {
    let (told, release) = (run(peer, arguments), peer.release);
    let json: Value = serde_json::from_str(&told.json).expect("fio's JSON is JSON");
    let mut display = Display { synchronous: false, ..Display::default() };
    adapt(&mut display);
    let report = report(&json, &display);
    let program = Program {
        version: json["fio version"].as_str().expect("a version").into(),
        own_version: String::new(),
    };
    let ours = |exporter: &dyn Exporter| {
        let mut out = Vec::new();
        exporter.write(&report, &program, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("text")
    };
    assert_normal(&ours(&Normal), &told.normal, release, arguments);
    assert_json(&ours(&Json { bins: true }), &told.json, release, arguments);
    let terse = ours(&Terse { version: TerseVersion::V3 });
    for (ours, theirs) in terse.split(';').zip(told.terse.split(';')) {
        // Shares come from JSON, where the smallest are raised to a value that can be shown.
        let tolerance = if theirs.ends_with('%') { 0.1 } else { 2e-6 };
        assert!(same(ours, theirs, tolerance), "{arguments}\n ours: {ours}\n fio: {theirs}");
    }
    assert_eq!(terse.split(';').count(), told.terse.split(';').count(), "{arguments}");
}

#[test]
fn jobs_without_a_device() {
    need_fio!();
    let null = "--ioengine=null --bs=4k";
    compare(&format!("{null} --name=a --size=40m --rw=randrw"), |_| ());
    compare(&format!("{null} --name=a --size=4k --description=few"), |_| ());
    compare(
        &format!("{null} --name=a --size=1m --rw=randtrim --name=b --stonewall --rw=write --size=8m"),
        |_| (),
    );
    compare(&format!("{null} --name=a --size=4m --name=b --size=1m --name=c --size=2m --rw=rw"), |_| ());
    compare(&format!("{null} --name=a --size=100g --runtime=1200ms --time_based"), |_| ());
    compare(&format!("{null} --name=a --size=1g --rate_iops=77 --runtime=1100ms --time_based"), |_| ());
    compare(&format!("{null} --name=a --size=40m --iodepth=16"), |_| ());
    compare(&format!("{null} --name=a --size=4m --gtod_reduce=1"), |display| {
        display.clat_percentiles = false
    });
    compare(&format!("{null} --name=a --size=4m --disable_clat=1"), |display| {
        display.clat_percentiles = false
    });
}

#[test]
fn other_ways_to_show_the_same() {
    need_fio!();
    let null = "--ioengine=null --name=a --bs=4k --size=20m";
    compare(&format!("{null} --kb_base=1000"), |display| display.kb_base = 1000);
    compare(&format!("{null} --unit_base=1"), |display| display.unit_base = 1);
    for figures in [1, 3, 7, 10] {
        let arguments = format!("{null} --significant_figures={figures}");
        compare(&arguments, |display| display.significant_figures = figures);
    }
    compare(&format!("{null} --percentile_list=1:50:99.999"), |display| {
        display.percentiles = vec![1.0, 50.0, 99.999];
    });
    compare(&format!("{null} --clat_percentiles=0"), |display| display.clat_percentiles = false);
    compare(&format!("{null} --lat_percentiles=1"), |display| display.lat_percentiles = true);
}

#[test]
fn jobs_on_files() {
    need_fio!();
    let directory = tempfile::tempdir().expect("a directory for files");
    let files = format!("--directory={} --bs=4k --name=a --size=2m", directory.path().display());
    compare(&format!("{files} --rw=randwrite --fsync=8"), |_| ());
    compare(&format!("{files} --rw=randrw --ioengine=libaio --iodepth=8 --slat_percentiles=1"), |display| {
        display.slat_percentiles = true;
    });
}
