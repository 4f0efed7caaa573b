//! A job file that imitates a trace on average: its mix, sizes, order, hot tenths, pace and depth.

use super::percent;
use iolite_trace::summary::{DirectionSummary, Summary};
use iolite_types::Direction;
use std::fmt::Write;

/// The most sizes in a `bssplit`.
const MOST_SIZES: usize = 16;

/// At most this many files are distinguished.
const MOST_FILES: u64 = 1024;

/// The job file; it means the same to Iolite and to fio.
pub fn job_file(name: &str, summary: &Summary) -> Result<String, String> {
    let reads = &summary.directions[Direction::Read];
    let writes = &summary.directions[Direction::Write];
    let trims = &summary.directions[Direction::Trim];
    if reads.ios + writes.ios == 0 {
        return Err(format!("{name}: there are no reads and writes in it to imitate"));
    }
    let mut text = String::new();
    line!(text, "# Imitates {name}: {} I/Os, {} bytes.", summary.ios(), summary.bytes());
    line!(
        text,
        "# What was random there is random here in another order. Set filename= to where it is to run."
    );
    text.push_str("\n[imitation]\n");
    layout(&mut text, summary);
    pattern(&mut text, reads, writes);
    if let Some(zones) = tenths(summary) {
        line!(text, "random_distribution=zoned:{zones}");
    }
    if summary.syncs > 0 && writes.ios > 0 {
        line!(text, "fsync={}", (writes.ios / summary.syncs).max(1));
    }
    pace(&mut text, summary, reads, writes);
    depth(&mut text, summary);
    if trims.ios > 0 {
        let sizes = trims.sizes.by_count();
        line!(text, "\n# There were {} trims, too. They need a block device:", trims.ios);
        line!(text, "# [trims]\n# filename=/dev/...\n# rw=randtrim");
        line!(text, "# bs={}\n# io_size={}", sizes.first().map_or(4096, |&(size, _)| size), trims.bytes);
    }
    Ok(text)
}

/// The files, their sizes, and the amount of data moved.
fn layout(text: &mut String, summary: &Summary) {
    let used = || summary.files.iter().filter(|file| file.ios > 0);
    let count = (used().count() as u64).clamp(1, MOST_FILES);
    let largest = Direction::ALL.map(|direction| summary.directions[direction].sizes.largest());
    let largest = largest.into_iter().max().unwrap_or(1).max(1);
    let end = used().fold(0, |sum: u64, file| sum.saturating_add(file.end));
    // Each file has its share, and room for the largest I/O.
    let share = end.div_ceil(count).max(largest).next_multiple_of(4096);
    if count > 1 {
        line!(text, "nrfiles={count}\nfile_service_type=random");
    }
    line!(text, "size={}", share.saturating_mul(count));
    let moved = summary.directions[Direction::Read].bytes + summary.directions[Direction::Write].bytes;
    line!(text, "io_size={moved}");
}

/// Directions, order and sizes.
fn pattern(text: &mut String, reads: &DirectionSummary, writes: &DirectionSummary) {
    let sequential = percent(reads.sequential + writes.sequential, reads.ios + writes.ios);
    let is_random = sequential < 99.0;
    let rw = match (reads.ios > 0, writes.ios > 0) {
        (true, true) => "rw",
        (true, false) => "read",
        (false, _) => "write",
    };
    line!(text, "rw={}{rw}", if is_random { "rand" } else { "" });
    if reads.ios > 0 && writes.ios > 0 {
        let share = percent(reads.ios, reads.ios + writes.ios).round().clamp(1.0, 99.0);
        line!(text, "rwmixread={share}");
    }
    if is_random {
        let random = |direction: &DirectionSummary| {
            100 - (percent(direction.sequential, direction.ios).round() as u64).min(99)
        };
        let shares = (random(reads), random(writes));
        if shares != (100, 100) {
            line!(text, "percentage_random={},{}", shares.0, shares.1);
        }
        // The trace does not visit each block exactly once.
        line!(text, "norandommap=1");
    }
    let splits = (split(reads), split(writes));
    match (single_size(reads), single_size(writes)) {
        (Some(read), Some(write)) => line!(text, "bs={read},{write}"),
        _ => line!(text, "bssplit={},{}", splits.0, splits.1),
    }
}

/// The only size; without I/O, any size will do.
fn single_size(direction: &DirectionSummary) -> Option<u64> {
    match &direction.sizes.by_count()[..] {
        [] => Some(4096),
        &[(size, _)] => Some(size),
        _ => None,
    }
}

/// `SIZE/PERCENT:…`, the most frequent sizes with whole percentages that sum to 100.
fn split(direction: &DirectionSummary) -> String {
    let sizes = direction.sizes.by_count();
    if sizes.is_empty() {
        return "4096/100".to_owned();
    }
    let kept = &sizes[..sizes.len().min(MOST_SIZES)];
    let counts: Vec<u64> = kept.iter().map(|&(_, count)| count).collect();
    let shares = whole_percentages(&counts);
    let entries: Vec<String> = kept
        .iter()
        .zip(shares)
        .filter(|&(_, share)| share > 0)
        .map(|(&(size, _), share)| format!("{size}/{share}"))
        .collect();
    entries.join(":")
}

/// Whole percentages in the proportion of these counts, which sum to 100 (the method of the largest remainder).
fn whole_percentages(counts: &[u64]) -> Vec<u64> {
    let total = counts.iter().map(|&count| u128::from(count)).sum::<u128>().max(1);
    let hundredfold = |count: u64| u128::from(count) * 100;
    let mut shares: Vec<u64> = counts.iter().map(|&count| (hundredfold(count) / total) as u64).collect();
    let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
    by_remainder.sort_by_key(|&place| std::cmp::Reverse(hundredfold(counts[place]) % total));
    let missing = 100 - shares.iter().sum::<u64>().min(100);
    by_remainder.into_iter().cycle().take(missing as usize).for_each(|place| shares[place] += 1);
    shares
}

/// The share of the I/O in each tenth of the file, if there is one file and its tenths differ.
fn tenths(summary: &Summary) -> Option<String> {
    let main = summary.files.iter().position(|file| file.ios > 0 && file.ios * 10 >= summary.ios() * 9)?;
    let end = summary.files[main].end;
    // A tenth must span several ranges to be distinguishable from its neighbours.
    if end < summary.ranges.size.saturating_mul(20) {
        return None;
    }
    let mut counts = [0u64; 10];
    for range in summary.ranges.by_ios().into_iter().filter(|range| range.file as usize == main) {
        let tenth = u128::from(range.offset) * 10 / u128::from(end);
        counts[(tenth as usize).min(9)] += range.ios;
    }
    let (least, most) = (counts.iter().min()?, counts.iter().max()?);
    if *most < least.saturating_mul(3) / 2 {
        return None;
    }
    // No tenth may be empty: every zone must have a share.
    let shares = whole_percentages(&counts.map(|count| count.saturating_mul(100)));
    let mut shares: Vec<u64> = shares.into_iter().map(|share| share.max(1)).collect();
    while shares.iter().sum::<u64>() > 100 {
        let largest = (0..10).max_by_key(|&place| shares[place])?;
        shares[largest] -= 1;
    }
    Some(shares.iter().map(|share| format!("{share}/10")).collect::<Vec<_>>().join(":"))
}

/// The mean rate of each direction.
fn pace(text: &mut String, summary: &Summary, reads: &DirectionSummary, writes: &DirectionSummary) {
    if summary.duration_ns < 1_000_000 || summary.ios() < 2 {
        return;
    }
    let rate = |direction: &DirectionSummary| {
        if direction.ios == 0 { 0 } else { (summary.per_second(direction.ios).round() as u64).max(1) }
    };
    line!(text, "rate_iops={},{}", rate(reads), rate(writes));
    // Independent arrivals have gaps with a deviation about equal to their mean.
    let (mean, deviation) = (summary.gaps.mean(), summary.gaps.deviation());
    if (0.7..1.5).contains(&(deviation / mean.max(1.0))) {
        line!(text, "rate_process=poisson");
    }
}

/// The device's average queue depth while it was busy.
fn depth(text: &mut String, summary: &Summary) {
    match &summary.depth {
        Some(depth) if depth.mean_when_busy() >= 1.5 => {
            line!(text, "ioengine=libaio\niodepth={}", depth.mean_when_busy().round().clamp(2.0, 4096.0));
        }
        _ => line!(text, "ioengine=psync"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_whole_and_complete() {
        assert_eq!(whole_percentages(&[1, 1, 1]), [34, 33, 33]);
        assert_eq!(whole_percentages(&[0, 7]), [0, 100]);
        assert_eq!(whole_percentages(&[u64::MAX, u64::MAX]), [50, 50]);
        for counts in [&[3, 5, 7, 11][..], &[1; 16], &[1_000_000, 1]] {
            assert_eq!(whole_percentages(counts).iter().sum::<u64>(), 100);
        }
    }
}
