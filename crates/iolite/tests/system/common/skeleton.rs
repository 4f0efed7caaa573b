//! The skeleton of a report in the `normal` format, without its measurements.
//!
//! Two runs of the same job print the same lines with different numbers. The skeleton keeps all text, the order of the
//! lines, and the numbers that the job determines (job headers, issued I/Os), and masks measurements. The layout of
//! three parts depends on measurements, so these are only checked for their form and then shortened: the percentile
//! table (the number of columns depends on the widths), the latency distribution (only ranges that occurred are
//! printed), and the bandwidth and IOPS samples (a run shorter than half a second has none).

use crate::common::{Finished, Program};
use iolite_testing::Release;

/// The skeleton of a run's output, translated to fio 3.42.
#[track_caller]
pub fn skeleton(program: &Program, run: &Finished) -> Vec<String> {
    skeleton_of(&run.stdout, program.release)
}

/// The skeleton of a report that a release printed.
#[track_caller]
pub fn skeleton_of(text: &str, release: &Release) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut percentiles = String::new();
    let mut in_disk_stats = false;
    for line in text.lines() {
        let line = &*release.in_words_of_3_42(line);
        if let Some(row) = line.strip_prefix("     | ") {
            percentiles += &percentile_labels(row);
            continue;
        }
        if !percentiles.is_empty() {
            lines.push(format!("     |{percentiles}"));
            percentiles.clear();
        }
        if line.starts_with("   bw (") {
            check_labels(line, &["min=", "max=", "per=", "avg=", "stdev=", "samples="]);
            continue;
        }
        if line.starts_with("   iops  ") {
            check_labels(line, &["min=", "max=", "avg=", "stdev=", "samples="]);
            continue;
        }
        in_disk_stats |= line.starts_with("Disk stats");
        let masked = match line {
            _ if is_banner(line) => "PROGRAM-VERSION".to_string(),
            _ if line.starts_with("  lat (") => distribution(line),
            _ if is_kept(line) => line.to_string(),
            _ if line.contains(": (groupid=") => job_line(line),
            _ if in_disk_stats => disk_line(line),
            _ => mask(line),
        };
        // The distribution may have one or several rows.
        if masked == DISTRIBUTION && lines.last().is_some_and(|last| last == DISTRIBUTION) {
            continue;
        }
        lines.push(masked);
    }
    lines
}

const DISTRIBUTION: &str = "  lat (TIME)   : N=N%";

fn is_banner(line: &str) -> bool {
    let Some((name, version)) = line.split_once('-') else { return false };
    matches!(name, "fio" | "iolite") && version.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether the line describes the job rather than its speed, so that it is compared verbatim.
fn is_kept(line: &str) -> bool {
    line.contains(": (g=")
        || line.contains(": Laying out IO file")
        || line.starts_with("Starting ")
        || line.starts_with("Run status group ")
        || line.starts_with("     issued rwts: ")
}

/// `1.00th=[  302],  5.00th=[  326],` → ` 1.00th 5.00th`
#[track_caller]
fn percentile_labels(row: &str) -> String {
    let mut labels = String::new();
    for cell in row.split_terminator(',') {
        let (label, value) = cell.split_once("=[").unwrap_or_else(|| panic!("no percentile in {row:?}"));
        let value = value.strip_suffix(']').unwrap_or_else(|| panic!("no percentile in {row:?}"));
        assert!(value.trim_start().parse::<u64>().is_ok(), "no value in {row:?}");
        labels.push(' ');
        labels += label.trim_start();
    }
    labels
}

/// `  lat (usec)   : 250=0.04%, 500=64.11%` → the same without the ranges.
#[track_caller]
fn distribution(line: &str) -> String {
    let (unit, cells) = line.split_once(" : ").unwrap_or_else(|| panic!("no distribution in {line:?}"));
    assert!(
        ["  lat (nsec)  ", "  lat (usec)  ", "  lat (msec)  "].contains(&unit),
        "unknown unit in {line:?}"
    );
    for cell in cells.split(", ") {
        let (range, share) = cell.split_once('=').unwrap_or_else(|| panic!("no share in {line:?}"));
        // The last range is `>=2000`, whose own equals sign was split above.
        let share = if range == ">" { share.split_once('=').expect("a share").1 } else { share };
        assert!(share.ends_with('%') && share.trim_end_matches('%').parse::<f64>().is_ok(), "{line:?}");
    }
    DISTRIBUTION.to_string()
}

/// `name: (groupid=0, jobs=1): err= 0: pid=1: Fri Nov 20 13:49:37 2026`, with the error kept.
fn job_line(line: &str) -> String {
    match line.split_once(": pid=") {
        Some((job, _)) => format!("{job}: pid=N: DATE"),
        None => line.to_string(),
    }
}

/// Masks the number in a device's name, because that of a loop device depends on other users.
fn disk_line(line: &str) -> String {
    match line.split_once(": ios=") {
        Some((name, rest)) => {
            let name = if name.contains("loop") {
                name.trim_end_matches(|c: char| c.is_ascii_digit())
            } else {
                name
            };
            format!("{name}: {}", mask(&format!("ios={rest}")))
        }
        None => line.to_string(),
    }
}

/// Masks numbers with their padding and scaled units. A number before an equals sign is a label and is kept.
pub fn mask(line: &str) -> String {
    let line = line.replace("(nsec)", "(TIME)").replace("(usec)", "(TIME)").replace("(msec)", "(TIME)");
    let mut masked = String::new();
    let mut rest = line.as_str();
    while let Some(first) = rest.chars().next() {
        let in_word = masked.ends_with(|c: char| c.is_ascii_alphabetic());
        if !first.is_ascii_digit() || in_word {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(length);
        if after.starts_with('=') {
            masked += number;
            rest = after;
            continue;
        }
        if masked.ends_with(' ') && masked.trim_end().ends_with('=') {
            masked.truncate(masked.trim_end().len());
        }
        let unit = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        masked.push('N');
        masked += match unit {
            "B" | "KiB" | "MiB" | "GiB" | "TiB" | "kB" | "MB" | "GB" | "TB" => "B",
            "k" | "M" | "G" | "T" | "Ki" | "Mi" | "Gi" | "Ti" => "",
            "ns" | "us" | "ms" | "s" => "s",
            other => other,
        };
        rest = after;
    }
    masked
}

#[track_caller]
fn check_labels(line: &str, labels: &[&str]) {
    let mut rest = line;
    for label in labels {
        let at = rest.find(label).unwrap_or_else(|| panic!("no {label:?} (in this order) in {line:?}"));
        rest = &rest[at + label.len()..];
        let number = rest.trim_start().split([',', '%']).next().unwrap_or("");
        assert!(number.parse::<f64>().is_ok(), "no number after {label:?} in {line:?}");
    }
    assert!(!rest.contains('='), "more than {labels:?} in {line:?}");
}

/// Asserts that two skeletons are equal, and shows the difference.
#[track_caller]
pub fn assert_same(what: &str, ours: &[String], theirs: &[String]) {
    if ours == theirs {
        return;
    }
    let at = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    panic!(
        "{what}: line {} differs\n  ours:   {:?}\n  theirs: {:?}\n--- ours\n{}\n--- theirs\n{}",
        at + 1,
        ours.get(at),
        theirs.get(at),
        ours.join("\n"),
        theirs.join("\n")
    );
}

#[test]
fn numbers_are_masked_and_labels_stay() {
    assert_eq!(
        mask("  write: IOPS=42.7k, BW=2667MiB/s (2796MB/s)(16.0MiB/6msec)"),
        "  write: IOPS=N, BW=NB/s (NB/s)(NB/Nmsec)"
    );
    assert_eq!(
        mask("    clat (nsec): min=1021, max=66079k, avg=370367.39, stdev= 5.30"),
        "    clat (TIME): min=N, max=N, avg=N, stdev=N"
    );
    assert_eq!(
        mask("     submit    : 0=0.0%, 4=100.0%, 64=0.0%, >=64=0.0%"),
        "     submit    : 0=N%, 4=N%, 64=N%, >=64=N%"
    );
    assert_eq!(mask("     latency   : target=500.00us"), "     latency   : target=Ns");
}

#[test]
fn a_report_becomes_its_skeleton() {
    let text = "\
j: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1
fio-3.33
Starting 1 process

j: (groupid=0, jobs=1): err= 0: pid=11598: Fri Nov 20 13:49:37 2026
    clat percentiles (usec):
     |  1.00th=[   42],  5.00th=[   44],
     | 99.99th=[11338]
   bw (  KiB/s): min= 2000, max=68272, per=99.98%, avg=10370.55, stdev=8123.28, samples=1199
   iops        : min=  500, max=17068, avg=2592.62, stdev=2030.82, samples=1199
  lat (usec)   : 2=0.01%, 1000=12.65%
  lat (msec)   : 2=0.67%, >=2000=0.01%
     issued rwts: total=256,0,0,0 short=0,0,0,0 dropped=0,0,0,0
";
    let expected = [
        "j: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1",
        "PROGRAM-VERSION",
        "Starting 1 process",
        "",
        "j: (groupid=0, jobs=1): err= 0: pid=N: DATE",
        "    clat percentiles (TIME):",
        "     | 1.00th 5.00th 99.99th",
        DISTRIBUTION,
        "     issued rwts: total=256,0,0,0 short=0,0,0,0 dropped=0,0,0,0",
    ];
    assert_eq!(skeleton_of(text, Release::ours()), expected);
}
