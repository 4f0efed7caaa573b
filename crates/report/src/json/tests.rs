//! Tests of the layout of the JSON formats: order of keys, types and white space.

use super::*;
use crate::example;
use iolite_stats::DiskCounters;

fn masked(json: Json, report: &Report) -> String {
    example::text(&json, report).replace(&clock::local(report.timestamp_ms), "(local time)")
}

/// The keys at one level of indentation, in order.
fn keys(text: &str, indent: usize) -> Vec<&str> {
    let start = format!("{:indent$}\"", "");
    text.lines().filter_map(|line| line.strip_prefix(&start)?.split_once('"')).map(|(key, _)| key).collect()
}

#[test]
fn the_frame() {
    let mut report = Report { timestamp_ms: 1_795_178_022_069, ..Report::default() };
    report.global_options = vec![("bs".into(), "4k".into()), ("thread".into(), String::new())];
    let expected = r#"{
  "fio version" : "fio-3.42",
  "iolite version" : "iolite-0.1.0",
  "timestamp" : 1795178022,
  "timestamp_ms" : 1795178022069,
  "time" : "(local time)",
  "global options" : {
    "bs" : "4k",
    "thread" : ""
  },
  "jobs" : [
  ]
}
"#;
    assert_eq!(masked(Json { bins: false }, &report), expected);
}

#[test]
fn keys_of_a_job_in_order() {
    let mut report = example::mixed();
    report.jobs[0].continued_errors = Some(example::errors(2, 5));
    report.jobs[0].description = Some("what for".into());
    let text = masked(Json { bins: false }, &report);
    let expected = [
        "jobname",
        "groupid",
        "job_start",
        "error",
        "eta",
        "elapsed",
        "job options",
        "read",
        "write",
        "trim",
        "sync",
        "job_runtime",
        "usr_cpu",
        "sys_cpu",
        "ctx",
        "majf",
        "minf",
        "iodepth_level",
        "iodepth_submit",
        "iodepth_complete",
        "latency_ns",
        "latency_us",
        "latency_ms",
        "total_err",
        "first_error",
        "latency_depth",
        "latency_target",
        "latency_target_ns",
        "latency_percentile",
        "latency_window",
        "latency_window_us",
        "desc",
    ];
    let keys = keys(&text, 6);
    assert_eq!(keys[..expected.len()], expected);
    assert_eq!(keys[expected.len()..][..3], ["name", "read_ios", "write_ios"]);
    assert!(text.contains("      \"eta\" : 2147483647,\n      \"elapsed\" : 4,\n"), "{text}");
}

#[test]
fn a_direction_with_bins() {
    let text = masked(Json { bins: true }, &example::mixed());
    let expected = r#"
      "read" : {
        "io_bytes" : 672645120,
        "io_kbytes" : 656880,
        "bw_bytes" : 224140326,
        "bw" : 218887,
        "iops" : 54721.759414,
        "runtime" : 3001,
        "total_ios" : 164220,
        "short_ios" : 0,
        "drop_ios" : 0,
        "slat_ns" : {
          "min" : 3000,
          "max" : 490000,
          "mean" : 4280.000000,
          "stddev" : 4460.000000,
          "N" : 164220
        },
        "clat_ns" : {
          "min" : 20000,
          "max" : 200000,
          "mean" : 23600.000000,
          "stddev" : 25326.952945,
          "N" : 100,
          "percentile" : {
            "1.000000" : 20096,
            "50.000000" : 20096,
            "99.000000" : 199680
          },
          "bins" : {
            "20096" : 98,
            "199680" : 2
          }
        },
        "lat_ns" : {
"#;
    assert!(text.contains(expected), "{text}");
    let samples = r#"
        "bw_min" : 177720,
        "bw_max" : 247216,
        "bw_agg" : 100.000000,
        "bw_mean" : 218960.000000,
        "bw_dev" : 32240.830000,
        "bw_samples" : 6,
        "iops_min" : 44430,
        "iops_max" : 61804,
        "iops_mean" : 54740.000000,
        "iops_stddev" : 8060.210000,
        "iops_samples" : 6
      },
      "write" : {
"#;
    assert!(text.contains(samples), "{text}");
    assert!(!masked(Json { bins: false }, &example::mixed()).contains("\"bins\""));
}

#[test]
fn synchronous_engines_have_no_submission_latency() {
    let mut report = example::mixed();
    report.jobs[0].display.synchronous = true;
    let text = masked(Json::default(), &report);
    assert!(text.contains("\"slat_ns\" : {\n          \"min\" : 0,\n          \"max\" : 0,\n"), "{text}");
}

#[test]
fn disks_are_reported_with_their_members() {
    let slave = |name: &str, write_merges| DiskReport {
        name: name.into(),
        counters: DiskCounters { write_merges, write_sectors: 16, ..DiskCounters::default() },
        utilisation: 50.0,
        slaves: Vec::new(),
    };
    let disk = DiskReport { slaves: vec![slave("sda", 5), slave("sdb", 4)], ..slave("md0", 1) };
    let text = masked(Json::default(), &Report { disks: vec![disk], ..Report::default() });
    let expected = r#"
      "util" : 50.000000,
      "aggr_read_ios" : 0,
      "aggr_write_ios" : 0,
      "aggr_read_sectors" : 0,
      "aggr_write_sectors" : 16,
      "aggr_read_merges" : 0,
      "aggr_write_merge" : 4,
      "aggr_read_ticks" : 0,
      "aggr_write_ticks" : 0,
      "aggr_in_queue" : 0,
      "aggr_util" : 50.000000
    },
    {
      "name" : "sda",
"#;
    assert!(text.contains(expected), "{text}");
    assert!(text.ends_with("      \"util\" : 50.000000\n    }\n  ]\n}\n"), "{text}");
}
