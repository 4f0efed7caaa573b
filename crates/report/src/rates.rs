//! Rates and shares that all formats derive from the counts in the same way.

use iolite_stats::{
    DirectionReport, DiskCounters, DiskReport, JobReport, PriorityLatency, Report, Samples, Unified,
};
use iolite_types::{Direction, PerDirection};

/// Bytes per second, rounded down; 0 if the direction did not run.
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

/// `part` in percent of `whole`; 0 if `whole` is 0.
pub fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part * 100.0 / whole } else { 0.0 }
}

/// Shares of a total in percent. A share that is not 0 is at least `least`, so that it is not shown as 0.
pub fn shares<const N: usize>(counts: &[u64; N], total: u64, least: f64) -> [f64; N] {
    counts.map(|count| match count {
        0 => 0.0,
        _ => percent(count as f64, total as f64).max(least),
    })
}

/// The same, with the sum of all counts as the total: the number of calls that carried units, not the number of units.
pub fn shares_of_all<const N: usize>(counts: &[u64; N], least: f64) -> [f64; N] {
    shares(counts, counts.iter().fold(0, |sum: u64, &count| sum.saturating_add(count)), least)
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

/// One block of a job's numbers: for a direction, or for all directions together.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The direction; `None` = all directions.
    pub direction: Option<Direction>,
    /// The measurements.
    pub measured: &'a DirectionReport,
    /// Bytes per second that the job's group moved in the same direction.
    group_bandwidth: u64,
}

impl Block<'_> {
    /// The name of the block in reports.
    pub fn name(&self) -> &'static str {
        self.direction.map_or("mixed", Direction::name)
    }
}

/// The blocks of a job, in order.
pub fn blocks<'a>(report: &Report, job: &'a JobReport) -> Vec<Block<'a>> {
    let group = report.groups.iter().find(|group| group.id == job.group);
    let apart = job.directions.iter().map(|(direction, measured)| Block {
        direction: Some(direction),
        measured,
        group_bandwidth: group.map_or(0, |group| group.directions[direction].bandwidth),
    });
    let mixed = job.mixed.as_ref().map(|measured| Block {
        direction: None,
        measured,
        group_bandwidth: group.map_or(0, |group| group.mixed.bandwidth),
    });
    apart.filter(|_| job.display.unified != Unified::Mixed).chain(mixed).collect()
}

/// The mean of a job's bandwidth samples, in integer KiB/s, as a share of the bandwidth of its group in the same
/// direction: at most 100%, and 100% if the group moved less than 1 KiB/s.
pub fn share_of_group(block: &Block<'_>) -> f64 {
    share(&block.measured.bw, f64::trunc, block.group_bandwidth as f64 / 1024.0)
}

/// The same for the terse format: there the group's KiB/s are rounded down, and the mean is not.
pub fn share_of_group_in_kib(block: &Block<'_>) -> f64 {
    share(&block.measured.bw, |mean| mean, (block.group_bandwidth / 1024) as f64)
}

fn share(samples: &Samples, mean: fn(f64) -> f64, moved: f64) -> f64 {
    match samples.count {
        0 => 0.0,
        _ if moved < 1.0 => 100.0,
        _ => percent(mean(samples.mean()), moved).min(100.0),
    }
}

/// The priorities of a direction, if there are several.
pub fn told_apart(direction: &DirectionReport) -> &[PriorityLatency] {
    if direction.priorities.len() > 1 { &direction.priorities } else { &[] }
}

/// Class, level and hint of a priority: `2/4/0`.
pub fn priority_name(priority: u16) -> String {
    let [class, level, hint] = priority_parts(priority);
    format!("{class}/{level}/{hint}")
}

/// Class, level and hint.
pub fn priority_parts(priority: u16) -> [u16; 3] {
    [priority >> 13, priority & 7, priority >> 3 & 1023]
}

/// The average counters of the component disks of an md or dm device, and the utilisation of the busiest one. `None`
/// for a disk without components.
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
        assert_eq!(shares_of_all(&[0, 1, 3], 0.1), [0.0, 25.0, 75.0]);
        assert_eq!(shares_of_all(&[0, 0], 0.1), [0.0, 0.0]);
    }

    /// Means and group rates of jobs at a fixed rate, with the shares that fio 3.33 showed in JSON and in terse.
    #[test]
    fn shares_of_a_group() {
        let vectors = [
            (4.5, 5_086, "80.53", "100.00"),
            (41.0, 44_028, "95.36", "97.62"),
            (86.0, 90_408, "97.41", "97.73"),
            (228.0, 236_696, "98.64", "98.70"),
            (307.5, 315_800, "99.55", "99.84"),
            (150.5, 153_294, "100.00", "100.00"),
            (0.0, 399, "100.00", "100.00"),
        ];
        for (mean, bandwidth, exact, whole) in vectors {
            let mut report = crate::example::mixed();
            report.groups[0].directions[Direction::Read].bandwidth = bandwidth;
            report.jobs[0].directions[Direction::Read].bw = Samples::new(6, 0, 0, mean, 0.0);
            let shares = [share_of_group, share_of_group_in_kib]
                .map(|share| format!("{:.2}", share(&blocks(&report, &report.jobs[0])[0])));
            assert_eq!(shares, [exact, whole], "{mean} of {bandwidth}");
        }
    }
}
