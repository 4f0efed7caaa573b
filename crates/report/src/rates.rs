//! Rates and shares that every format derives from the counts in the same way.

use iolite_stats::{DirectionReport, DiskCounters, DiskReport, JobReport, Report};
use iolite_types::{Direction, PerDirection};

/// Bytes per second, rounded down; 0 when the direction did not run.
pub fn bandwidth(direction: &DirectionReport) -> u64 {
    per_second(direction.bytes, direction.runtime_ms)
}

/// I/Os per second, rounded down.
pub fn iops(direction: &DirectionReport) -> u64 {
    per_second(direction.ios, direction.runtime_ms)
}

fn per_second(amount: u64, runtime_ms: u64) -> u64 {
    let rate = (u128::from(amount) * 1000).checked_div(u128::from(runtime_ms)).unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// I/Os per second with their fraction.
pub fn iops_exact(direction: &DirectionReport) -> f64 {
    if direction.runtime_ms == 0 { 0.0 } else { direction.ios as f64 * 1000.0 / direction.runtime_ms as f64 }
}

/// `part` of `whole` in percent; 0 of nothing.
pub fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part * 100.0 / whole } else { 0.0 }
}

/// Shares of a total in percent, where what is there is never shown as nothing: at least `least`.
pub fn shares<const N: usize>(counts: &[u64; N], total: u64, least: f64) -> [f64; N] {
    counts.map(|count| match count {
        0 => 0.0,
        _ => percent(count as f64, total as f64).max(least),
    })
}

/// I/Os issued in all directions.
pub fn issued(job: &JobReport) -> u64 {
    sum(&job.directions, |direction| direction.issued)
}

/// I/Os completed in all directions.
pub fn completed(job: &JobReport) -> u64 {
    sum(&job.directions, |direction| direction.ios)
}

fn sum(directions: &PerDirection<DirectionReport>, of: impl Fn(&DirectionReport) -> u64) -> u64 {
    directions.iter().fold(0, |sum, (_, direction)| sum.saturating_add(of(direction)))
}

/// The mean of a job's bandwidth samples as a share of what its group moved in that direction, at most 100%.
pub fn share_of_group(report: &Report, job: &JobReport, direction: Direction) -> f64 {
    let moved = group_bandwidth(report, job, direction) as f64 / 1024.0;
    percent(job.directions[direction].bw.mean, moved).min(100.0)
}

/// The same as programs are told it: of the group's whole KiB/s, and all of it where there is not one.
pub fn share_of_group_in_kib(report: &Report, job: &JobReport, direction: Direction) -> f64 {
    let samples = &job.directions[direction].bw;
    match group_bandwidth(report, job, direction) / 1024 {
        _ if samples.count == 0 => 0.0,
        0 => 100.0,
        whole => percent(samples.mean, whole as f64).min(100.0),
    }
}

fn group_bandwidth(report: &Report, job: &JobReport, direction: Direction) -> u64 {
    let group = report.groups.iter().find(|group| group.id == job.group);
    group.map_or(0, |group| group.directions[direction].bandwidth)
}

/// What the disks that an md or dm device is made of did on average, and the utilisation of the busiest. `None`
/// for a disk that is made of nothing else.
pub fn slave_averages(disk: &DiskReport) -> Option<(DiskCounters, f64)> {
    let count = u64::try_from(disk.slaves.len()).ok().filter(|&count| count > 0)?;
    let average = |counter: fn(&DiskCounters) -> u64| {
        disk.slaves.iter().fold(0, |sum: u64, slave| sum.saturating_add(counter(&slave.counters))) / count
    };
    let counters = DiskCounters {
        read_ios: average(|of| of.read_ios),
        write_ios: average(|of| of.write_ios),
        read_sectors: average(|of| of.read_sectors),
        write_sectors: average(|of| of.write_sectors),
        read_merges: average(|of| of.read_merges),
        write_merges: average(|of| of.write_merges),
        read_ticks: average(|of| of.read_ticks),
        write_ticks: average(|of| of.write_ticks),
        in_queue: average(|of| of.in_queue),
    };
    Some((counters, disk.slaves.iter().map(|slave| slave.utilisation).fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_round_down() {
        let direction =
            DirectionReport { bytes: 8_159_232, ios: 1992, runtime_ms: 117, ..DirectionReport::default() };
        assert_eq!((bandwidth(&direction), iops(&direction)), (69_737_025, 17_025));
        assert!((iops_exact(&direction) - 17_025.641_026).abs() < 1e-6);
        assert_eq!(bandwidth(&DirectionReport { runtime_ms: 0, ..direction }), 0);
    }

    #[test]
    fn a_little_is_not_nothing() {
        assert_eq!(shares(&[0, 1, 99_999], 100_000, 0.1), [0.0, 0.1, 99.999]);
        assert_eq!(shares(&[0, 5], 0, 0.1), [0.0, 0.1]);
    }

    /// 78.1 samples of 4 KiB per second in a group that moved 312.44 KiB/s, as fio 3.33 tells it in each format.
    #[test]
    fn people_and_programs_are_told_different_shares() {
        let mut report = crate::example::mixed();
        report.groups[0].directions[Direction::Read].bandwidth = 319_940;
        report.jobs[0].directions[Direction::Read].bw.mean = 312.0;
        let share = share_of_group(&report, &report.jobs[0], Direction::Read);
        assert_eq!(format!("{share:.2}"), "99.86");
        assert_eq!(share_of_group_in_kib(&report, &report.jobs[0], Direction::Read), 100.0);
    }
}
