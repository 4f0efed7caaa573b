//! The joint state of the machines: who waits at which barrier, and whether they are steady together.
//!
//! This module does no communication, so it does not matter how many machines there are, or whether they are real.

use iolite_stats::{InStep, Interval, Measured, Measurement, SteadyReport};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The clock of another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// Its time in nanoseconds when this machine's clock shows 0.
    pub offset_ns: i128,
    /// The round trip of that measurement.
    pub round_trip_ns: u64,
}

impl Clock {
    /// Its time at this moment of this machine's clock.
    pub fn at(self, ns: u64) -> u64 {
        u64::try_from(i128::from(ns) + self.offset_ns).unwrap_or(0)
    }
}

/// How a machine's run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// It ended by itself.
    Done,
    /// It is lost: its measurements no longer count.
    Lost,
}

/// The state of all machines.
#[derive(Debug, Default)]
pub(super) struct Steps {
    machines: Vec<Machine>,
    /// The barriers that are open.
    begun: BTreeSet<u32>,
    states: Vec<Shared>,
    /// An event concerns barriers. Most events do not, and checking all machines is slow.
    is_new: bool,
}

#[derive(Clone, Debug, Default)]
struct Machine {
    /// `None` = it is still setting up, and may have any barrier.
    together: Option<InStep>,
    /// The barriers at which it waits, with its clock; `None` = none of its jobs waits there any more.
    waits: BTreeMap<u32, Option<Clock>>,
    is_over: bool,
}

impl Machine {
    fn has(&self, barrier: u32) -> bool {
        self.together.as_ref().is_none_or(|together| barrier < together.barriers)
    }
}

/// A barrier that opens now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    /// The barrier.
    pub barrier: u32,
    /// The machines that wait there.
    pub machines: Vec<(usize, Clock)>,
}

/// A steady state that several machines share.
#[derive(Debug)]
struct Shared {
    /// Its index on each machine.
    place: u32,
    rules: SteadyReport,
    report: SteadyReport,
    /// Intervals of each machine that some other machine has not reported yet.
    told: BTreeMap<usize, VecDeque<Interval>>,
    /// It is attained, or never will be.
    is_decided: bool,
}

impl Steps {
    pub fn of(machines: usize) -> Steps {
        Steps { machines: vec![Machine::default(); machines], ..Steps::default() }
    }

    /// A machine has announced its joint barriers and steady states.
    pub fn announced(&mut self, machine: usize, together: InStep) {
        for (place, rules) in (0..).zip(&together.steady) {
            let known = self.states.iter_mut().find(|state| state.place == place && state.rules == *rules);
            let state = match known {
                Some(state) => state,
                None => {
                    let (rules, report) = (rules.clone(), rules.clone());
                    let told = BTreeMap::new();
                    self.states.push(Shared { place, rules, report, told, is_decided: false });
                    let last = self.states.len() - 1;
                    &mut self.states[last]
                }
            };
            state.told.insert(machine, VecDeque::new());
        }
        self.machines[machine].together = Some(together);
        self.is_new = true;
    }

    /// A machine waits at a barrier; without a clock, none of its jobs waits there any more.
    pub fn waits(&mut self, machine: usize, barrier: u32, clock: Option<Clock>) {
        self.machines[machine].waits.insert(barrier, clock);
        self.is_new = true;
    }

    /// The barriers that open now, because all machines that have them wait there.
    pub fn begin(&mut self) -> Vec<Begin> {
        if !std::mem::take(&mut self.is_new) {
            return Vec::new();
        }
        let asked: BTreeSet<u32> = self
            .machines
            .iter()
            .filter(|one| !one.is_over)
            .flat_map(|one| one.waits.keys().copied())
            .collect();
        let mut begins = Vec::new();
        for &barrier in asked.difference(&self.begun) {
            let present = || self.machines.iter().enumerate().filter(|(_, one)| !one.is_over);
            if present().any(|(_, one)| one.has(barrier) && !one.waits.contains_key(&barrier)) {
                continue;
            }
            let waiting = present().filter_map(|(index, one)| Some((index, (*one.waits.get(&barrier)?)?)));
            begins.push(Begin { barrier, machines: waiting.collect() });
        }
        self.begun.extend(begins.iter().map(|begin| begin.barrier));
        begins
    }

    /// A machine's run has ended. Returns the indexes of the steady states that are attained now, with their machines.
    pub fn over(&mut self, machine: usize, how: Gone) -> Vec<(u32, Vec<usize>)> {
        self.machines[machine].is_over = true;
        self.is_new = true;
        let mut attained = Vec::new();
        for state in self.states.iter_mut().filter(|state| !state.is_decided) {
            if state.told.remove(&machine).is_none() {
                continue;
            }
            match how {
                Gone::Done => state.is_decided = true,
                Gone::Lost => {
                    // Without this machine the sum is different.
                    state.report.window.clear();
                    attained.extend(state.judge());
                }
            }
        }
        attained
    }

    /// A machine has measured. Returns the steady state that is now attained, with its machines.
    pub fn measured(&mut self, machine: usize, measured: Measured) -> Option<(u32, Vec<usize>)> {
        let is_its = |state: &&mut Shared| state.place == measured.state && state.told.contains_key(&machine);
        let state = self.states.iter_mut().find(is_its).filter(|state| !state.is_decided)?;
        if measured.found == Interval::Over {
            state.is_decided = true;
            return None;
        }
        state.told.entry(machine).or_default().push_back(measured.found);
        state.judge()
    }

    /// The steady states that were judged.
    pub fn judged(&self) -> Vec<SteadyReport> {
        let reports = self.states.iter().map(|state| &state.report);
        reports.filter(|report| !report.window.is_empty()).cloned().collect()
    }
}

impl Shared {
    /// Adds up the intervals that all machines have reported. Returns the index and the machines if the state is
    /// attained.
    fn judge(&mut self) -> Option<(u32, Vec<usize>)> {
        while !self.told.is_empty() && self.told.values().all(|told| !told.is_empty()) {
            let found: Vec<Interval> = self.told.values_mut().filter_map(VecDeque::pop_front).collect();
            let Some(sum) = sum(&found) else { continue };
            if self.report.push(sum) {
                self.is_decided = true;
                return Some((self.place, self.told.keys().copied().collect()));
            }
        }
        None
    }
}

/// The sum of several machines in one interval; `None` = a machine has no valid measurement.
fn sum(found: &[Interval]) -> Option<Measurement> {
    let mut whole = Measurement::default();
    let (mut weighted, mut count) = (0_u128, 0_u128);
    for one in found {
        let Interval::Rates { measured, latencies } = one else { return None };
        whole.iops = whole.iops.saturating_add(measured.iops);
        whole.bandwidth = whole.bandwidth.saturating_add(measured.bandwidth);
        weighted += u128::from(measured.latency) * u128::from(*latencies);
        count += u128::from(*latencies);
    }
    whole.latency = weighted.checked_div(count).unwrap_or(0) as u64;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Option<Clock> = Some(Clock { offset_ns: 0, round_trip_ns: 7 });

    fn together(barriers: u32, sizes: &[usize]) -> InStep {
        let rules = |&size: &usize| SteadyReport { size, limit: 1.0, ..SteadyReport::default() };
        InStep { barriers, steady: sizes.iter().map(rules).collect() }
    }

    fn steps(of: &[InStep]) -> Steps {
        let mut steps = Steps::of(of.len());
        of.iter().cloned().enumerate().for_each(|(machine, one)| steps.announced(machine, one));
        steps
    }

    fn begun(steps: &mut Steps) -> Vec<(u32, Vec<usize>)> {
        let machines = |begin: Begin| begin.machines.into_iter().map(|(index, _)| index).collect();
        steps.begin().into_iter().map(|begin| (begin.barrier, machines(begin))).collect()
    }

    #[test]
    fn a_moment_is_converted_to_the_clock_of_the_other() {
        let clock = |offset_ns| Clock { offset_ns, round_trip_ns: 0 };
        assert_eq!(clock(5).at(10), 15);
        assert_eq!(clock(-5).at(10), 5);
        assert_eq!(clock(-50).at(10), 0);
    }

    #[test]
    fn a_barrier_opens_when_all_that_have_it_are_there() {
        let mut steps = Steps::of(3);
        steps.announced(0, together(2, &[]));
        steps.waits(0, 0, CLOCK);
        assert_eq!(begun(&mut steps), [], "nobody knows yet what the others have");
        steps.announced(1, together(2, &[]));
        steps.announced(2, together(1, &[]));
        steps.waits(1, 0, CLOCK);
        steps.waits(2, 0, CLOCK);
        assert_eq!(begun(&mut steps), [(0, vec![0, 1, 2])]);
        assert_eq!(begun(&mut steps), [], "it opens once");
        steps.waits(1, 1, CLOCK);
        assert_eq!(begun(&mut steps), []);
        steps.waits(0, 1, CLOCK);
        assert_eq!(begun(&mut steps), [(1, vec![0, 1])], "the third has no such stage");
    }

    #[test]
    fn hosts_that_have_ended_or_passed_are_not_waited_for() {
        let mut steps = steps(&[together(3, &[]), together(3, &[]), together(3, &[])]);
        steps.waits(0, 1, CLOCK);
        steps.waits(1, 1, None);
        assert_eq!(begun(&mut steps), []);
        steps.over(2, Gone::Lost);
        assert_eq!(begun(&mut steps), [(1, vec![0])]);
        // All machines have passed the barrier.
        steps.waits(0, 2, None);
        steps.waits(1, 2, None);
        assert_eq!(begun(&mut steps), [(2, Vec::new())]);
    }

    fn rates(state: u32, iops: u64, latency: u64, latencies: u64) -> Measured {
        let measured = Measurement { iops, bandwidth: 10 * iops, latency };
        Measured { state, interval: 0, found: Interval::Rates { measured, latencies } }
    }

    #[test]
    fn steady_state_is_judged_by_the_sum_of_all_machines() {
        let mut steps = steps(&[together(1, &[2]), together(1, &[2])]);
        // Each rate goes up and down, but their sum does not.
        assert_eq!(steps.measured(0, rates(0, 100, 5, 1)), None);
        assert_eq!(steps.measured(0, rates(0, 300, 5, 1)), None);
        assert_eq!(steps.measured(1, rates(0, 300, 9, 3)), None);
        assert_eq!(steps.measured(1, rates(0, 100, 9, 3)), Some((0, vec![0, 1])));
        let judged = steps.judged();
        assert!(judged[0].attained);
        let one = Measurement { iops: 400, bandwidth: 4000, latency: 8 };
        assert_eq!(judged[0].window, [one, one]);
    }

    #[test]
    fn an_interval_without_one_machines_rate_is_left_out() {
        let mut steps = steps(&[together(1, &[1]), together(1, &[1])]);
        let nothing = Measured { found: Interval::LeftOut, ..rates(0, 0, 0, 0) };
        assert_eq!(steps.measured(0, nothing), None);
        assert_eq!(steps.measured(1, rates(0, 5, 0, 0)), None);
        assert_eq!(steps.measured(1, rates(0, 6, 0, 0)), None);
        assert_eq!(steps.measured(0, rates(0, 7, 0, 0)), Some((0, vec![0, 1])));
        assert_eq!(steps.judged()[0].window[0].iops, 13);
    }

    #[test]
    fn a_lost_machine_changes_the_sum_and_one_that_is_done_ends_it() {
        let both = || steps(&[together(1, &[2]), together(1, &[2])]);
        let mut lost = both();
        lost.measured(0, rates(0, 100, 0, 0));
        lost.measured(1, rates(0, 100, 0, 0));
        lost.measured(0, rates(0, 100, 0, 0));
        assert_eq!(lost.over(1, Gone::Lost), [], "the window begins anew");
        assert_eq!(lost.measured(0, rates(0, 100, 0, 0)), Some((0, vec![0])));
        let mut done = both();
        done.over(1, Gone::Done);
        assert_eq!(done.measured(0, rates(0, 100, 0, 0)), None);
        assert!(done.states[0].is_decided);
        // Different rules make a different state.
        let mut apart = steps(&[together(1, &[1]), together(1, &[2])]);
        assert_eq!(apart.measured(0, rates(0, 100, 0, 0)), Some((0, vec![0])));
    }
}
