//! Collects the report: fills in the values of each worker, which [`Report::merge`] then makes into one report.

use crate::shared::{Accelerator, Control, Slot};
use crate::stages::StageResults;
use iolite_plan::{JobPlan, Plan};
use iolite_stats::live::LiveStats;
use iolite_stats::{
    AcceleratorReport, ContinuedErrors, Depths, DirectionReport, DiskReport, First, GroupReport, Identity,
    IdleReport, JobError, JobReport, Latency, Moments, Report, RequestReport, Samples, SteadyReport,
    SyncReport, Usage,
};
use iolite_types::{Direction, PerDirection, RunEnd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Facts about a worker that only the controller has, and that are not in the worker's slot.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The error that ended it.
    pub error: Option<JobError>,
    /// The first error despite which it continued.
    pub went_on: Option<JobError>,
    /// Bandwidth samples, in KiB/s.
    pub bw: PerDirection<Moments>,
    /// IOPS samples.
    pub iops: PerDirection<Moments>,
    /// The steady state of its group, if the job has `steadystate`.
    pub steady_state: Option<SteadyReport>,
}

/// The values that concern the whole run.
pub struct Circumstances<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Milliseconds since the epoch, now.
    pub timestamp_ms: u64,
    /// Nanoseconds of the run's clock, now.
    pub now_ns: u64,
    /// When the first wave began, in nanoseconds of the run's clock.
    pub begun_ns: u64,
    /// Milliseconds since the epoch when the run's clock was zero.
    pub origin_ms: u64,
    /// Seconds left of the run; `None` if unknown.
    pub eta_s: Option<u64>,
    /// The disks.
    pub disks: Vec<DiskReport>,
    /// The idleness of the CPUs, if it is measured.
    pub idleness: Option<IdleReport>,
    /// The stages of each worker's I/Os, if they are known.
    pub stages: Option<&'a StageResults>,
}

/// Makes the report. `slot` and `known` return the data about each worker.
pub fn report<'a>(
    at: Circumstances<'_>,
    slot: impl Fn(usize) -> &'a Slot,
    known: impl Fn(usize) -> &'a Known,
) -> Report {
    let jobs = reported(at.plan, |report, planned, index| {
        measure(report, &at, planned, slot(index), known(index));
    });
    let whole =
        Report { timestamp_ms: at.timestamp_ms, disks: at.disks, idleness: at.idleness, ..whole(at.plan) };
    Report::merge([Report { jobs, ..whole }])
}

/// The report of a run that was refused: its jobs without measurements, each with the error that prevents it.
pub fn refused(plan: &Plan, timestamp_ms: u64, error_of: impl Fn(&JobPlan) -> Option<JobError>) -> Report {
    let jobs = reported(plan, |report, planned, _| {
        let worker = report.identity.worker;
        report.error = error_of(planned).map(|value| First { worker, value });
    });
    let end = Some(RunEnd::failed("it could not begin"));
    Report::merge([Report { timestamp_ms, jobs, end, ..whole(plan) }])
}

/// The reports of the workers with a report, completed by `fill`.
fn reported(plan: &Plan, fill: impl Fn(&mut JobReport, &JobPlan, usize)) -> Vec<JobReport> {
    let blocks = plan.reporting_blocks();
    let mut block_of = vec![0; plan.workers.len()];
    for (block, members) in (0..).zip(&blocks) {
        members.iter().for_each(|&index| block_of[index] = block);
    }
    let mut jobs = Vec::new();
    for (block, members) in (0..).zip(blocks) {
        for index in members.into_iter().filter(|&index| job(plan, index).report.is_reported) {
            let planned = job(plan, index);
            let mut report = unmeasured(planned, Identity::of(block, index as u32));
            report.connected =
                plan.other_ends(&plan.workers[index]).into_iter().map(|other| block_of[other]).collect();
            fill(&mut report, planned, index);
            jobs.push(report);
        }
    }
    jobs
}

/// The part of a report that concerns the whole plan.
fn whole(plan: &Plan) -> Report {
    Report {
        global_options: plan.jobs.last().map_or_else(Vec::new, |job| job.report.given_global.clone()),
        groups: groups(plan),
        ..Report::default()
    }
}

fn job(plan: &Plan, worker: usize) -> &JobPlan {
    plan.job_of(&plan.workers[worker])
}

/// The values of a worker that do not depend on measurements.
fn unmeasured(job: &JobPlan, identity: Identity) -> JobReport {
    let rules = &job.report;
    JobReport {
        identity,
        name: job.name.clone(),
        engine: job.engine.name.to_owned(),
        description: rules.description.clone(),
        group: job.group,
        members: 1,
        options: rules.given.clone(),
        continued_errors: rules.continues_on_errors.then(ContinuedErrors::default),
        most_in_flight: job.most_in_flight.into(),
        latency_target_ns: rules.latency_target_ns,
        latency_window_ns: rules.latency_window_ns,
        latency_percentile: rules.latency_percentile,
        display: rules.display.clone(),
        ..JobReport::default()
    }
}

/// Fills in the measurements that the worker published and the controller's own knowledge about it.
fn measure(job: &mut JobReport, at: &Circumstances<'_>, planned: &JobPlan, slot: &Slot, known: &Known) {
    let control = &slot.control;
    let worker = job.identity.worker;
    let end_ns = end_ns(control, at.now_ns);
    let measured = slot.stats.consistent(|stats| Measured::of(stats, worker, end_ns, known));
    job.pid = control.id.load(Relaxed);
    job.error = known.error.as_ref().or(known.went_on.as_ref()).cloned().map(|value| First { worker, value });
    job.start_ms = match planned.report.start_clock {
        // Without a start, 0, as with any other clock.
        None => match control.started_ns.load(Relaxed) {
            0 => 0,
            started_ns => at.origin_ms + started_ns / 1_000_000,
        },
        Some(_) => control.own_start_ms.load(Relaxed),
    };
    job.elapsed_s = at.now_ns.saturating_sub(at.begun_ns).div_ceil(1_000_000_000).max(1);
    job.eta_s = at.eta_s;
    job.directions = measured.directions;
    if let Some(stages) = at.stages.and_then(|stages| stages.workers.get(&(worker as usize))) {
        for (direction, stages) in job.directions.values.iter_mut().zip(stages) {
            direction.stages.clone_from(stages);
        }
    }
    job.sync = measured.sync;
    job.lateness = measured.lateness;
    job.requests =
        RequestReport { repeated: slot.stats.repeated.get(), throttled: slot.stats.throttled.get() };
    job.job_runtime_ns = counted(control, end_ns);
    job.job_runtime_ms = if job.job_runtime_ns == 0 { 0 } else { milliseconds(job.job_runtime_ns) };
    job.log_wait_ms = control.log_wait_ns.load(Relaxed) / 1_000_000;
    job.usage = Usage {
        user_ms: control.user_us.load(Relaxed) / 1000,
        system_ms: control.system_us.load(Relaxed) / 1000,
        context_switches: control.context_switches.load(Relaxed),
        major_faults: control.major_faults.load(Relaxed),
        minor_faults: control.minor_faults.load(Relaxed),
    };
    job.depths = measured.depths;
    if let Some(errors) = &mut job.continued_errors {
        *errors = measured.errors;
    }
    job.blocks_checked = slot.stats.blocks_checked();
    // A worker that never began reached no depth.
    job.depth = match (control.started_ns.load(Relaxed), control.found_depth.load(Relaxed)) {
        (0, _) => 0,
        (_, 0) => planned.depth,
        (_, found) => found,
    };
    job.blocks = planned.report.block_lives.then(|| slot.stats.blocks.read());
    job.zone_resets = planned.report.uses_zones.then(|| slot.stats.zone_resets.get());
    job.accelerator = planned
        .report
        .accelerator
        .filter(|_| planned.first_worker == worker as usize)
        .map(|(size, compute_ns)| accelerator_of(&control.accelerator, size, compute_ns));
    job.steady_state = known.steady_state.clone();
}

/// A worker's measurements, as of one moment.
struct Measured {
    directions: PerDirection<DirectionReport>,
    sync: SyncReport,
    lateness: Latency,
    depths: Depths,
    errors: ContinuedErrors,
}

impl Measured {
    fn of(stats: &LiveStats, worker: u32, end_ns: u64, known: &Known) -> Measured {
        let direction = |direction| direction_of(stats, direction, worker, end_ns, known);
        let first_error = i32::try_from(stats.first_error.get()).ok().filter(|&errno| errno != 0);
        Measured {
            depths: stats.depths(),
            directions: PerDirection::new(
                direction(Direction::Read),
                direction(Direction::Write),
                direction(Direction::Trim),
            ),
            sync: SyncReport { ios: stats.syncs.get(), lat: stats.sync_latency() },
            lateness: stats.lateness(),
            errors: ContinuedErrors {
                count: stats.errors.get(),
                first: first_error.map(|value| First { worker, value }),
            },
        }
    }
}

fn direction_of(
    stats: &LiveStats,
    direction: Direction,
    worker: u32,
    end_ns: u64,
    known: &Known,
) -> DirectionReport {
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
        // A direction that transferred nothing has no rates to show.
        runtime_ms: if live.bytes.get() == 0 { 0 } else { milliseconds(live.clock.elapsed(end_ns)) },
        slat,
        clat,
        lat,
        intended: stats.intended_latency(direction.index()),
        stages: None,
        first_byte: stats.first_byte_latency(direction.index()),
        visible: stats.visible_latency(direction.index()),
        priorities: live.priorities.read(direction, worker),
        bw: Samples::of(&known.bw[direction]),
        iops: Samples::of(&known.iops[direction]),
    }
}

/// What an accelerator did, as of the batches that it has got.
fn accelerator_of(words: &Accelerator, size: u64, compute_ns: u64) -> AcceleratorReport {
    let batches = words.timed.load(Relaxed);
    let end_ns = words.end_ns.load(Relaxed);
    let since = |begun: &AtomicU64| end_ns.saturating_sub(begun.load(Relaxed));
    let counted = batches.saturating_sub(words.uncounted.load(Relaxed));
    let counted_compute_ns = counted.saturating_mul(compute_ns);
    AcceleratorReport {
        count: 1,
        batches,
        samples: batches.saturating_mul(size),
        elapsed_ns: if batches > 0 { since(&words.begun_ns) } else { 0 },
        compute_ns: counted_compute_ns,
        wait_ns: if counted > 0 { since(&words.counted_ns).saturating_sub(counted_compute_ns) } else { 0 },
    }
}

/// The time until which the worker's I/O counts.
fn end_ns(control: &Control, now_ns: u64) -> u64 {
    match control.ended_ns.load(Relaxed) {
        0 => now_ns,
        ended => ended,
    }
}

/// How long the worker's I/O has lasted, in nanoseconds, with its ramp.
pub fn lasted(control: &Control, now_ns: u64) -> u64 {
    match control.started_ns.load(Relaxed) {
        0 => 0,
        started => end_ns(control, now_ns).saturating_sub(started),
    }
}

/// Nanoseconds since counting began, including times without I/O; 0 = it has not begun.
fn counted(control: &Control, end_ns: u64) -> u64 {
    match control.counting_ns.load(Relaxed) {
        0 => 0,
        begun => end_ns.saturating_sub(begun).max(1),
    }
}

/// At least 1: whatever happened took some time.
fn milliseconds(ns: u64) -> u64 {
    ((ns + 500_000) / 1_000_000).max(1)
}

/// The groups and their units; the amounts follow from their jobs.
fn groups(plan: &Plan) -> Vec<GroupReport> {
    let mut groups: Vec<GroupReport> = Vec::new();
    for job in &plan.jobs {
        if groups.iter().all(|group| group.id != job.group) {
            groups.push(GroupReport {
                id: job.group,
                kb_base: job.report.display.kb_base,
                unit_base: job.report.display.unit_base,
                significant_figures: job.report.display.significant_figures,
                ..GroupReport::default()
            });
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Arena;
    use iolite_options::{
        ExtentOptions, JobOptions, MeasurementOptions, RunOptions, ScheduleOptions, SizeValue,
    };
    use iolite_stats::GroupDirection;

    fn plan(groupings: &[(&str, u32, bool)]) -> Plan {
        let jobs = groupings
            .iter()
            .map(|&(name, numjobs, group_reporting)| JobOptions {
                name: name.into(),
                ioengine: "null".into(),
                schedule: ScheduleOptions { numjobs, ..ScheduleOptions::default() },
                measurement: MeasurementOptions { group_reporting, ..MeasurementOptions::default() },
                extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
                ..JobOptions::default()
            })
            .collect();
        Plan::build(jobs, &RunOptions::default(), &iolite_host::ThisMachine::new()).unwrap()
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
            idleness: None,
            stages: None,
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
