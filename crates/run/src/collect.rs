//! The report, from what the workers published.

use crate::shared::{Control, Slot};
use iolite_options::{ErrorKinds, IgnoredErrors, JobOptions, UnifiedReporting};
use iolite_plan::Plan;
use iolite_stats::live::LiveStats;
use iolite_stats::{
    Depths, DirectionReport, DiskReport, Display, GroupDirection, GroupReport, JobError, JobReport, Latency,
    LatencyClasses, Report, Samples, SteadyReport, SyncReport, Unified, Usage,
};
use iolite_types::{Direction, PerDirection};
use std::sync::atomic::Ordering::Relaxed;

/// What the controller knows of a worker beyond its slot.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The error that ended it.
    pub error: Option<JobError>,
    /// The first error that it went on after.
    pub went_on: Option<JobError>,
    /// Samples of bandwidth and IOPS.
    pub bw: PerDirection<Samples>,
    /// Samples of IOPS.
    pub iops: PerDirection<Samples>,
    /// What was found of the steady state of its group.
    pub steady_state: Option<SteadyReport>,
}

/// The circumstances of a report.
pub struct Circumstances<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Milliseconds since the epoch, now.
    pub timestamp_ms: u64,
    /// Nanoseconds of the run's clock, now.
    pub now_ns: u64,
    /// When the first wave began, in nanoseconds of the run's clock.
    pub begun_ns: u64,
    /// Milliseconds since the epoch at the clock's zero.
    pub origin_ms: u64,
    /// Seconds left of the run; `None` = it cannot be told (yet).
    pub eta_s: Option<u64>,
    /// The disks.
    pub disks: Vec<DiskReport>,
}

/// Makes the report. `slot` and `known` give what there is of each worker.
pub fn report<'a>(
    at: Circumstances<'_>,
    slot: impl Fn(usize) -> &'a Slot,
    known: impl Fn(usize) -> &'a Known,
) -> Report {
    let plan = at.plan;
    let mut report = Report { timestamp_ms: at.timestamp_ms, disks: Vec::new(), ..Report::default() };
    for block in plan.reporting_blocks() {
        let mut members =
            block.into_iter().filter(|&index| plan.job_of(&plan.workers[index]).options.stats).map(|index| {
                let job = plan.job_of(&plan.workers[index]);
                one(&at, &job.options, job.group, slot(index), known(index))
            });
        let Some(mut first) = members.next() else { continue };
        members.for_each(|member| merge(&mut first, &member));
        report.jobs.push(first);
    }
    for job in &mut report.jobs {
        let mut all = Latency::default();
        job.directions.values.iter().for_each(|direction| all += &direction.clat);
        job.latency_classes = LatencyClasses::of(&all);
        job.mixed = (job.display.unified != Unified::Apart).then(|| {
            let mut mixed = DirectionReport::default();
            job.directions.values.iter().for_each(|direction| mixed += direction);
            mixed
        });
        // Units that complete when they are queued have no submission latency.
        job.display.synchronous =
            job.directions.values.iter().all(|direction| direction.slat.moments.count == 0);
    }
    report.global_options = plan.jobs.last().map_or_else(Vec::new, |job| job.options.given_global.clone());
    report.groups = groups(plan, &report.jobs);
    report.disks = at.disks;
    report
}

fn one(at: &Circumstances<'_>, options: &JobOptions, group: u32, slot: &Slot, known: &Known) -> JobReport {
    let control = &slot.control;
    let end_ns = end_ns(control, at.now_ns);
    let measured = slot.stats.consistent(|stats| Measured::of(stats, end_ns, known));
    JobReport {
        name: options.name.clone(),
        description: options.description.clone(),
        group,
        members: 1,
        pid: control.id.load(Relaxed),
        error: known.error.as_ref().or(known.went_on.as_ref()).cloned(),
        start_ms: match options.job_start_clock_id {
            // As with any other clock: 0 = it never began.
            0 => match control.started_ns.load(Relaxed) {
                0 => 0,
                started_ns => at.origin_ms + started_ns / 1_000_000,
            },
            _ => control.own_start_ms.load(Relaxed),
        },
        elapsed_s: at.now_ns.saturating_sub(at.begun_ns).div_ceil(1_000_000_000).max(1),
        eta_s: at.eta_s,
        options: options.given.clone(),
        directions: measured.directions,
        mixed: None,
        sync: measured.sync,
        lateness: measured.lateness,
        job_runtime_ms: job_runtime_ms(control, end_ns),
        log_wait_ms: control.log_wait_ns.load(Relaxed) / 1_000_000,
        usage: Usage {
            user_ms: control.user_us.load(Relaxed) / 1000,
            system_ms: control.system_us.load(Relaxed) / 1000,
            context_switches: control.context_switches.load(Relaxed),
            major_faults: control.major_faults.load(Relaxed),
            minor_faults: control.minor_faults.load(Relaxed),
        },
        depths: measured.depths,
        latency_classes: LatencyClasses::default(),
        continued_errors: goes_on(options).then_some(measured.errors),
        // A worker that never began has met no depth.
        depth: match (control.started_ns.load(Relaxed), control.found_depth.load(Relaxed)) {
            (0, _) => 0,
            (_, 0) => options.iodepth,
            (_, found) => found,
        },
        latency_target_ns: options.latency_target.saturating_mul(1000),
        latency_window_ns: options.latency_window.saturating_mul(1000),
        latency_percentile: options.latency_percentile,
        blocks: options.block_error_percentiles.then(|| slot.stats.blocks.read()),
        steady_state: known.steady_state.clone(),
        display: display(options),
    }
}

/// What a worker counted, all of it at one moment.
struct Measured {
    directions: PerDirection<DirectionReport>,
    sync: SyncReport,
    lateness: Latency,
    depths: Depths,
    /// How many, and the first.
    errors: (u64, i32),
}

impl Measured {
    fn of(stats: &LiveStats, end_ns: u64, known: &Known) -> Measured {
        let direction = |direction| direction_of(stats, direction, end_ns, known);
        Measured {
            depths: stats.depths(),
            directions: PerDirection::new(
                direction(Direction::Read),
                direction(Direction::Write),
                direction(Direction::Trim),
            ),
            sync: SyncReport { ios: stats.syncs.get(), lat: stats.sync_latency() },
            lateness: stats.lateness(),
            errors: (stats.errors.get(), i32::try_from(stats.first_error.get()).unwrap_or(0)),
        }
    }
}

fn direction_of(stats: &LiveStats, direction: Direction, end_ns: u64, known: &Known) -> DirectionReport {
    let live = &stats.directions[direction.index()];
    let issued = live.issued.get();
    if issued == 0 {
        return DirectionReport::default();
    }
    let [slat, clat, lat] = stats.latencies(direction.index());
    DirectionReport {
        bytes: live.bytes.get(),
        ios: live.ios.get(),
        issued,
        short: live.short.get(),
        dropped: live.dropped.get(),
        // A direction that never moved anything has no rates to show.
        runtime_ms: if live.bytes.get() == 0 { 0 } else { milliseconds(live.clock.elapsed(end_ns)) },
        slat,
        clat,
        lat,
        intended: stats.intended_latency(direction.index()),
        priorities: live.priorities.read(),
        bw: known.bw[direction],
        iops: known.iops[direction],
    }
}

/// Whether the job goes on after some kind of error.
fn goes_on(options: &JobOptions) -> bool {
    options.continue_on_error != ErrorKinds::NONE || options.ignore_error != IgnoredErrors::default()
}

/// Up to when the worker's I/O is counted.
fn end_ns(control: &Control, now_ns: u64) -> u64 {
    match control.ended_ns.load(Relaxed) {
        0 => now_ns,
        ended => ended,
    }
}

/// Milliseconds from the moment at which counting began, with all that is no I/O.
fn job_runtime_ms(control: &Control, end_ns: u64) -> u64 {
    match control.counting_ns.load(Relaxed) {
        0 => 0,
        begun => milliseconds(end_ns.saturating_sub(begun)),
    }
}

/// At least one: what has happened has taken some time.
fn milliseconds(ns: u64) -> u64 {
    ((ns + 500_000) / 1_000_000).max(1)
}

fn display(options: &JobOptions) -> Display {
    Display {
        kb_base: options.kb_base,
        unit_base: options.unit_base,
        significant_figures: options.significant_figures,
        percentiles: options.percentile_list.clone(),
        slat_percentiles: options.slat_percentiles,
        clat_percentiles: options.clat_percentiles && !options.disable_clat,
        lat_percentiles: options.lat_percentiles,
        unified: match options.unified_rw_reporting {
            UnifiedReporting::None => Unified::Apart,
            UnifiedReporting::Mixed => Unified::Mixed,
            UnifiedReporting::Both => Unified::Both,
        },
        intended: options.lat_from_intended_start,
        ..Display::default()
    }
}

/// Adds a member to a group's block.
fn merge(into: &mut JobReport, other: &JobReport) {
    into.members += 1;
    if into.error.is_none() {
        into.error.clone_from(&other.error);
    }
    for (mine, theirs) in into.directions.values.iter_mut().zip(&other.directions.values) {
        *mine += theirs;
    }
    if let Some((count, first)) = other.continued_errors {
        let (sum, earliest) = into.continued_errors.get_or_insert((0, 0));
        *sum += count;
        *earliest = if *earliest == 0 { first } else { *earliest };
    }
    if let Some(blocks) = &other.blocks {
        *into.blocks.get_or_insert_default() += blocks;
    }
    into.sync.ios += other.sync.ios;
    into.sync.lat += &other.sync.lat;
    into.lateness += &other.lateness;
    into.job_runtime_ms += other.job_runtime_ms;
    into.log_wait_ms += other.log_wait_ms;
    into.usage.user_ms += other.usage.user_ms;
    into.usage.system_ms += other.usage.system_ms;
    into.usage.context_switches += other.usage.context_switches;
    into.usage.major_faults += other.usage.major_faults;
    into.usage.minor_faults += other.usage.minor_faults;
    into.depths += &other.depths;
}

fn groups(plan: &Plan, jobs: &[JobReport]) -> Vec<GroupReport> {
    let count = plan.jobs.iter().map(|job| job.group + 1).max().unwrap_or(0);
    (0..count)
        .map(|id| {
            let members = || jobs.iter().filter(move |job| job.group == id);
            let first = plan.jobs.iter().find(|job| job.group == id);
            let apart = |direction: Direction| {
                let shown = members().filter(|job| job.display.unified != Unified::Mixed);
                group_direction(shown.map(|job| &job.directions[direction]))
            };
            // The slowest and the fastest are single directions where they are shown apart, too.
            let mixed = members().flat_map(|job| match job.display.unified {
                Unified::Apart => &[],
                Unified::Mixed => job.mixed.as_slice(),
                Unified::Both => &job.directions.values[..],
            });
            GroupReport {
                id,
                directions: PerDirection::new(
                    apart(Direction::Read),
                    apart(Direction::Write),
                    apart(Direction::Trim),
                ),
                mixed: group_direction(mixed),
                kb_base: first.map_or(1024, |job| job.options.kb_base),
                unit_base: first.map_or(0, |job| job.options.unit_base),
                significant_figures: first.map_or(4, |job| job.options.significant_figures),
            }
        })
        .collect()
}

/// What these moved side by side.
fn group_direction<'a>(parts: impl Iterator<Item = &'a DirectionReport>) -> GroupDirection {
    let mut sum =
        parts.filter(|part| part.runtime_ms > 0).fold(GroupDirection::default(), |mut sum, part| {
            let bandwidth = bandwidth(part.bytes, part.runtime_ms);
            let is_first = sum.max_runtime_ms == 0;
            let least = |a: u64, b: u64| if is_first { b } else { a.min(b) };
            sum.min_bandwidth = least(sum.min_bandwidth, bandwidth);
            sum.min_runtime_ms = least(sum.min_runtime_ms, part.runtime_ms);
            sum.max_bandwidth = sum.max_bandwidth.max(bandwidth);
            sum.max_runtime_ms = sum.max_runtime_ms.max(part.runtime_ms);
            sum.bytes += part.bytes;
            sum
        });
    sum.bandwidth = bandwidth(sum.bytes, sum.max_runtime_ms);
    sum
}

/// Bytes per second.
fn bandwidth(bytes: u64, runtime_ms: u64) -> u64 {
    if runtime_ms == 0 { 0 } else { (u128::from(bytes) * 1000 / u128::from(runtime_ms)) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Arena;
    use iolite_options::{RunOptions, SizeValue};

    fn plan(groupings: &[(&str, u32, bool)]) -> Plan {
        let jobs = groupings
            .iter()
            .map(|&(name, numjobs, group_reporting)| JobOptions {
                name: name.into(),
                numjobs,
                group_reporting,
                ioengine: "null".into(),
                size: Some(SizeValue::Bytes(1 << 20)),
                ..JobOptions::default()
            })
            .collect();
        Plan::build(jobs, &RunOptions::default()).unwrap()
    }

    fn run(plan: &Plan, arena: &Arena, known: &[Known]) -> Report {
        let at = Circumstances {
            plan,
            timestamp_ms: 5000,
            now_ns: 3_000_000_000,
            begun_ns: 0,
            origin_ms: 1000,
            eta_s: None,
            disks: Vec::new(),
        };
        report(at, |worker| arena.slot(worker), |worker| &known[worker])
    }

    #[test]
    fn only_jobs_that_ask_for_it_are_merged() {
        let plan = plan(&[("a", 2, true), ("b", 2, false), ("c", 2, true), ("d", 1, true)]);
        let arena = Arena::new(7).unwrap();
        let report = run(&plan, &arena, &vec![Known::default(); 7]);
        let blocks: Vec<_> = report.jobs.iter().map(|job| (job.name.as_str(), job.members)).collect();
        assert_eq!(blocks, [("a", 2), ("b", 1), ("b", 1), ("c", 3)]);
    }

    #[test]
    fn members_add_up() {
        let plan = plan(&[("a", 2, true)]);
        let arena = Arena::new(2).unwrap();
        for worker in 0..2 {
            let slot = arena.slot(worker);
            slot.stats.begin_span([true, false, false], 1_000_000_000);
            slot.control.ended_ns.store(2_000_000_000 + worker as u64 * 500_000_000, Relaxed);
            let read = &slot.stats.directions[0];
            for latency in [100, 200, 300] {
                read.issued.add(1);
                read.ios.add(1);
                read.bytes.add(4096);
                read.clat.record(latency);
                read.clat.record_bucket(latency);
            }
        }
        let report = run(&plan, &arena, &vec![Known::default(); 2]);
        let read = &report.jobs[0].directions[Direction::Read];
        assert_eq!((read.ios, read.bytes, read.runtime_ms), (6, 6 * 4096, 1500));
        assert_eq!((read.clat.moments.count, read.clat.histogram.total()), (6, 6));
        assert_eq!(report.jobs[0].latency_classes.ns.iter().sum::<u64>(), 6);
        let group = &report.groups[0].directions[Direction::Read];
        assert_eq!((group.bandwidth, group.min_runtime_ms), (6 * 4096 * 1000 / 1500, 1500));
        assert_eq!(report.groups[0].directions[Direction::Write], GroupDirection::default());
    }
}
