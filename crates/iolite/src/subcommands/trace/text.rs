//! A summary as text.

use super::{HOT_RANGES, PERCENTILES, percent};
use iolite_trace::summary::{Step, Steps, Summary, Times};
use iolite_types::units::{self, Units};
use std::fmt::Write;

/// The most files and sizes that are listed.
const LISTED: usize = 8;

/// The summary, a few lines for each question.
pub fn summary(name: &str, summary: &Summary) -> String {
    let mut text = String::new();
    let ios = summary.ios();
    line!(
        text,
        "{name}: {}, {} events, {} I/Os, {}, {}",
        super::format_name(summary),
        summary.events,
        ios,
        bytes(summary.bytes()),
        units::duration(summary.duration_ns)
    );
    if summary.duration_ns > 0 {
        line!(
            text,
            "  rate       : {} IOPS, {}/s; busiest second {} I/Os",
            units::count(summary.per_second(ios) as u64, 4),
            bytes(summary.per_second(summary.bytes()) as u64),
            summary.peak_iops
        );
    }
    for (direction, measured) in summary.directions.iter().filter(|(_, measured)| measured.ios > 0) {
        line!(
            text,
            "  {:<11}: {} I/Os ({:.1}%), {}, {:.1}% sequential",
            direction.name(),
            measured.ios,
            percent(measured.ios, ios),
            bytes(measured.bytes),
            percent(measured.sequential, measured.ios)
        );
        let sizes = measured.sizes.by_count();
        let mut shown: Vec<String> = sizes
            .iter()
            .take(LISTED)
            .map(|&(size, count)| format!("{} {:.1}%", bytes(size), percent(count, measured.ios)))
            .collect();
        if sizes.len() > LISTED {
            shown.push(format!("and {} more", sizes.len() - LISTED));
        }
        let rounded = if measured.sizes.rounded { " (rounded down to powers of two)" } else { "" };
        line!(text, "    sizes{rounded}: {}", shown.join(", "));
    }
    if summary.syncs > 0 {
        line!(text, "  syncs      : {}", summary.syncs);
    }
    if summary.gaps.count > 0 {
        let percentiles = summary.gap_histogram.percentiles(&[50.0, 99.0]);
        line!(
            text,
            "  gaps       : mean {}, 50% {}, 99% {}, largest {}",
            units::duration(summary.gaps.mean() as u64),
            units::duration(percentiles[0]),
            units::duration(percentiles[1]),
            units::duration(summary.gaps.max)
        );
    }
    match &summary.depth {
        Some(depth) => line!(
            text,
            "  depth      : at most {}, mean {:.1}, {:.1} while busy ({:.1}% of the time)",
            depth.most,
            depth.mean(),
            depth.mean_when_busy(),
            depth.busy_percent()
        ),
        None => line!(text, "  depth      : not in this trace (it has no completions)"),
    }
    if let Some(steps) = &summary.steps {
        times(&mut text, steps);
    }
    files(&mut text, summary);
    hot_ranges(&mut text, summary);
    text
}

/// The time between the steps of I/Os, with all digits of the trace, so that figures are those of btt.
fn times(text: &mut String, steps: &Steps) {
    line!(
        text,
        "  block layer, s:    smallest        mean     largest       count         50%         99%       99.9%"
    );
    for step in Step::ALL {
        let Times { moments, histogram } = steps.of(step);
        if moments.count == 0 {
            continue;
        }
        let meaning = match step {
            Step::Q2D => "queue",
            Step::D2C => "device",
            Step::Q2C => "total",
            _ => "",
        };
        let percentiles = histogram.percentiles(&PERCENTILES);
        let percentiles: Vec<String> = percentiles
            .into_iter()
            .map(|time| format!(" {:>11}", seconds(time.min(moments.max) as f64)))
            .collect();
        line!(
            text,
            "    {} {meaning:<9} {:>11} {:>11} {:>11} {:>11}{}",
            step.name(),
            seconds(moments.min as f64),
            format_args!("{:.9}", moments.sum as f64 / 1e9 / moments.count as f64),
            seconds(moments.max as f64),
            moments.count,
            percentiles.concat()
        );
    }
    if steps.left_out > 0 {
        line!(text, "    {} I/Os were left out: too many others had no completion", steps.left_out);
    }
}

fn seconds(ns: f64) -> String {
    format!("{:.9}", ns / 1e9)
}

fn files(text: &mut String, summary: &Summary) {
    let mut files: Vec<_> = summary.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.ios));
    line!(text, "  files      : {}", files.len());
    for file in files.iter().take(LISTED) {
        line!(text, "    {}: {} I/Os, {}, up to byte {}", file.name, file.ios, bytes(file.bytes), file.end);
    }
    if files.len() > LISTED {
        line!(text, "    and {} more", files.len() - LISTED);
    }
}

fn hot_ranges(text: &mut String, summary: &Summary) {
    let ranges = summary.ranges.by_ios();
    let complete =
        if summary.ranges.complete { "" } else { " at least (there are too many files to count all)" };
    line!(
        text,
        "  hot ranges : I/O began in {} ranges of {}{complete}; most of it in",
        ranges.len(),
        bytes(summary.ranges.size)
    );
    for range in ranges.iter().take(HOT_RANGES) {
        line!(
            text,
            "    {} from {}: {} I/Os ({:.1}%), {}",
            summary.files[range.file as usize].name,
            bytes(range.offset),
            range.ios,
            percent(range.ios, summary.ios()),
            bytes(range.bytes)
        );
    }
}

fn bytes(bytes: u64) -> String {
    Units { kb_base: 1024, unit_base: 8, figures: 4 }.bytes(bytes)
}
