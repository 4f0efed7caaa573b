//! Steady state: jobs that end when their results no longer change.
//!
//! Jobs that are reported as one (`group_reporting`) are watched as one and end together. The counters are read once
//! per interval, which costs the workers nothing.

use super::{Controller, Events, Member};
use crate::shared::{Arena, Phase};
use iolite_plan::{Plan, SteadyRules};
use iolite_stats::{EventKind, InStep, Interval, Measured, Measurement, SteadyReport, per_second};
use std::sync::atomic::Ordering::Relaxed;
use tracing::debug;

/// Jobs that are watched as one.
#[derive(Clone, Debug)]
pub(super) struct SteadyGroup {
    /// Indices of the workers.
    members: Vec<usize>,
    ramp_ns: u64,
    interval_ns: u64,
    state: SteadyReport,
    /// Its index among the steady states that the coordinator judges over all machines, if it is one of them.
    place: Option<u32>,
    /// How many intervals there were.
    intervals: u64,
    /// The coordinator has been told that it is over.
    told_over: bool,
    /// The time and the counters at the end of the latest interval; `None` = the first interval has not begun.
    last: Option<(u64, Counters)>,
}

/// The counters that are read at the end of each interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    /// How often the counters were reset. A difference across a reset means nothing.
    resets: u64,
    ios: u64,
    bytes: u64,
    /// Sum of completion latencies in nanoseconds, and their number.
    latency: u64,
    latencies: u64,
}

impl SteadyGroup {
    /// The groups to watch. `has_others`: other machines take part in some of them.
    pub(super) fn all(plan: &Plan, has_others: bool) -> Vec<SteadyGroup> {
        let mut places = 0..;
        let blocks = plan.reporting_blocks().into_iter();
        blocks
            .filter_map(|members| {
                let job = plan.job_of(&plan.workers[members[0]]);
                let rules = job.steady?;
                let place = if has_others && job.keeps_step { places.next() } else { None };
                Some(SteadyGroup { place, ..SteadyGroup::new(&rules, members) })
            })
            .collect()
    }

    fn new(rules: &SteadyRules, members: Vec<usize>) -> SteadyGroup {
        SteadyGroup {
            members,
            ramp_ns: rules.ramp_ns,
            interval_ns: rules.interval_ns,
            state: SteadyReport {
                quantity: rules.quantity,
                slope: rules.slope,
                limit: rules.limit,
                percent: rules.percent,
                duration_s: rules.duration_us / 1_000_000,
                size: rules.size,
                ..SteadyReport::default()
            },
            place: None,
            intervals: 0,
            told_over: false,
            last: None,
        }
    }

    /// When to measure next; `None` = not before another event.
    fn due(&self, arena: &Arena) -> Option<u64> {
        if self.state.attained {
            return None;
        }
        match self.last {
            Some((at, _)) => Some(at.saturating_add(self.interval_ns)),
            None => self.begin(arena),
        }
    }

    /// When the first interval begins: all members run, and the ramp has ended. `None` = a member does not run yet.
    fn begin(&self, arena: &Arena) -> Option<u64> {
        let mut latest = 0;
        for &index in &self.members {
            let control = &arena.slot(index).control;
            let counting = control.counting_ns.load(Relaxed);
            if counting == 0 || control.phase() < Phase::Running {
                return None;
            }
            latest = latest.max(counting);
        }
        Some(latest.saturating_add(self.ramp_ns))
    }

    fn counters(&self, arena: &Arena) -> Counters {
        let mut sum = Counters::default();
        for &index in &self.members {
            let stats = &arena.slot(index).stats;
            sum.resets += stats.resets.get();
            for direction in &stats.directions {
                sum.ios += direction.ios.get();
                sum.bytes += direction.bytes.get();
                sum.latency = sum.latency.wrapping_add(direction.clat.sum());
                sum.latencies += direction.clat.count();
            }
        }
        sum
    }

    /// Measures the group. Returns whether the state is steady, as far as this machine decides it. Measurements for the
    /// coordinator go to `told`.
    fn look(&mut self, arena: &Arena, now: u64, told: &mut Option<Measured>) -> bool {
        let counters = self.counters(arena);
        let first = self.members[0] + 1;
        let Some((at, before)) = self.last.replace((now, counters)) else {
            debug!(target: "steadystate", "worker {first}: the first interval begins; {} are looked at", self.state.size);
            return false;
        };
        let interval = self.intervals;
        self.intervals += 1;
        if before.resets != counters.resets {
            debug!(target: "steadystate", "worker {first}: counters were reset; this interval is left out");
            *told = self.place.map(|state| Measured { state, interval, found: Interval::LeftOut });
            return false;
        }
        let span = now - at;
        let latencies = counters.latencies - before.latencies;
        let measured = Measurement {
            iops: per_second(counters.ios - before.ios, span),
            bandwidth: per_second(counters.bytes - before.bytes, span),
            latency: counters.latency.wrapping_sub(before.latency).checked_div(latencies).unwrap_or(0),
        };
        let mut attained = self.state.push(measured);
        *told = self.place.map(|state| Measured {
            state,
            interval,
            found: Interval::Rates { measured, latencies },
        });
        if self.place.is_some() {
            // The coordinator decides whether it is attained.
            (attained, self.state.attained) = (false, false);
        }
        let SteadyReport { quantity, slope, limit, window, size, .. } = &self.state;
        debug!(
            target: "steadystate",
            "worker {first}: {} {}, interval {} of {size}: {} {:.3}, limit {limit}: {}",
            quantity.name(),
            measured.of(*quantity),
            window.len(),
            if *slope { "slope" } else { "deviation" },
            self.state.criterion(),
            if attained { "steady" } else { "not steady" },
        );
        attained
    }

    /// Whether a member has ended, or was skipped.
    fn is_over(&self, members: &[Member]) -> bool {
        self.members.iter().any(|&index| members[index].end.is_some())
    }
}

impl Controller<'_> {
    /// When to measure the next group.
    pub(super) fn next_look(&self) -> Option<u64> {
        let open = self.steady_groups.iter().filter(|group| !group.is_over(&self.members));
        open.filter_map(|group| group.due(&self.arena)).min()
    }

    /// Measures the groups that are due, and ends those that are steady.
    pub(super) fn watch_steadiness(&mut self, events: &mut Events<'_>) {
        let now = self.now();
        let attained_by_all = self.gate.take_steady();
        for position in 0..self.steady_groups.len() {
            let group = &mut self.steady_groups[position];
            let mut measured = None;
            let mut attained = false;
            if group.is_over(&self.members) {
                if let (Some(state), false) = (group.place, std::mem::replace(&mut group.told_over, true)) {
                    measured = Some(Measured { state, interval: group.intervals, found: Interval::Over });
                }
            } else if group.place.is_some_and(|place| attained_by_all.contains(&place)) {
                (group.state.attained, attained) = (true, true);
            } else if group.due(&self.arena).is_some_and(|due| due <= now) {
                attained = group.look(&self.arena, now, &mut measured);
            }
            let members = group.members.clone();
            if attained {
                members.into_iter().for_each(|index| self.terminate(index));
            }
            if let Some(measured) = measured {
                self.tell(None, EventKind::Measured(measured), events);
            }
        }
    }

    /// The joint barriers and steady states of this run and those on other machines.
    pub(super) fn in_step(&self) -> InStep {
        let judged_by_all = self.steady_groups.iter().filter(|group| group.place.is_some());
        InStep {
            barriers: self.plan.barriers().len() as u32,
            steady: judged_by_all.map(|group| group.state.clone()).collect(),
        }
    }

    /// The steady state of a worker's group; `None` = the worker has no `steadystate`.
    pub(super) fn steady_state(&self, index: usize) -> Option<&SteadyReport> {
        self.steady_groups.iter().find(|group| group.members.contains(&index)).map(|group| &group.state)
    }
}
