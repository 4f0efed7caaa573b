//! Samples of bandwidth and IOPS: one per averaging period of a worker.
//!
//! A period counts only the time in which its direction runs (see [`LiveClock`](iolite_stats::live::LiveClock)): while
//! a job reads back its writes, there are no samples of writes.
//!
//! Periods end at multiples of their length, and the last one is sampled after the worker has ended. So a job of two
//! seconds has four samples of half a second. The controller always looks a little late: what happened since its last look
//! is divided at the edge in proportion to the time.

use super::Controller;
use crate::shared::{Phase, Slot};
use iolite_plan::SamplingRules;
use iolite_stats::{Moments, kib_per_second, per_second};
use iolite_types::{Direction, PerDirection};

/// Turns counters into samples per averaging period.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    /// How often the counters had been reset when they were read.
    resets: u64,
    bytes: PerDirection<Sampled>,
    ios: PerDirection<Sampled>,
    /// The worker has been in a phase that is sampled.
    has_run: bool,
    /// When the next period ends; `None` = the worker is not known to be running.
    due: Option<u64>,
}

/// A counter at a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// How long the direction had run, in nanoseconds.
    ran: u64,
    count: u64,
}

/// A counter that is sampled.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    /// At the last look.
    last: Mark,
    /// At the beginning of the current period.
    edge: Mark,
}

impl Sampled {
    /// Looks at the counter, and passes its growth in each period that is over, and the length of that in nanoseconds, to
    /// `record`. A counter that has never grown has no samples.
    fn look(&mut self, now: Mark, period: u64, mut record: impl FnMut(u64, u64)) {
        // The clock of a direction goes back at the end of a span without I/O.
        self.last.ran = self.last.ran.min(now.ran);
        self.edge.ran = self.edge.ran.min(now.ran);
        let (grown, passed) = (now.count.saturating_sub(self.last.count), now.ran - self.last.ran);
        while self.end(period) <= now.ran {
            let end = self.end(period);
            let part = end.saturating_sub(self.last.ran);
            let grown =
                (u128::from(grown) * u128::from(part) + u128::from(passed / 2)).checked_div(passed.into());
            let edge =
                Mark { ran: end, count: grown.map_or(now.count, |grown| self.last.count + grown as u64) };
            let before = std::mem::replace(&mut self.edge, edge);
            if now.count > 0 {
                record(edge.count.saturating_sub(before.count), end - before.ran);
            }
        }
        self.last = now;
    }

    /// The running time of the direction at the end of the current period.
    fn end(&self, period: u64) -> u64 {
        (self.edge.ran / period + 1) * period
    }
}

impl Controller<'_> {
    /// When the worker's next sample is due.
    pub(super) fn next_sample(&self, index: usize) -> Option<u64> {
        let member = &self.members[index];
        // A worker that does not run yet is checked again when it reports that it runs. A worker that has finished has
        // no more samples.
        let is_running = self.arena.slot(index).control.phase().is_running();
        member.sampler.due.filter(|_| member.released && is_running)
    }

    /// Takes the samples that are due. They cost the workers nothing, so `disable_bw` does not prevent them (as with
    /// fio).
    pub(super) fn sample(&mut self) {
        let now = self.now();
        for index in self.present() {
            let member = &mut self.members[index];
            let slot = self.arena.slot(index);
            if !member.released || member.end.is_some() || !slot.control.phase().is_running() {
                continue;
            }
            if member.sampler.due.is_some_and(|due| now < due) {
                continue;
            }
            let rules = &self.plan.job_of(&self.plan.workers[index]).sampling;
            let known = &mut member.known;
            // Ramps and final syncs have no samples.
            let is_sampled = matches!(slot.control.phase(), Phase::Running | Phase::Verifying);
            member.sampler.look(slot, rules, now, is_sampled, &mut known.bw, &mut known.iops);
        }
    }

    /// Takes the last samples of a worker that has ended.
    pub(super) fn sample_last(&mut self, index: usize) {
        let now = self.now();
        let rules = &self.plan.job_of(&self.plan.workers[index]).sampling;
        let slot = self.arena.slot(index);
        let member = &mut self.members[index];
        // At the end of a ramp, counting restarts. A worker that ended in its ramp has no samples.
        let has_run = member.sampler.has_run || slot.stats.resets.get() > 0;
        let known = &mut member.known;
        member.sampler.look(slot, rules, now, has_run, &mut known.bw, &mut known.iops);
    }
}

impl Sampler {
    /// Takes the samples of the directions whose periods are over.
    fn look(
        &mut self,
        slot: &Slot,
        rules: &SamplingRules,
        now: u64,
        is_sampled: bool,
        bw: &mut PerDirection<Moments>,
        iops: &mut PerDirection<Moments>,
    ) {
        let SamplingRules { bandwidth_ns: bw_period, iops_ns: iops_period } = *rules;
        let mut due = now + bw_period.min(iops_period);
        let resets = slot.stats.resets.get();
        if resets != self.resets {
            *self = Sampler { resets, ..Sampler::default() };
            *bw = PerDirection::default();
            *iops = PerDirection::default();
        }
        self.has_run |= is_sampled;
        for direction in Direction::ALL.into_iter().filter(|_| is_sampled) {
            let (ran, bytes, ios, runs) = slot.stats.consistent(|stats| {
                let live = &stats.directions[direction.index()];
                (live.clock.elapsed(now), live.bytes.get(), live.ios.get(), live.clock.runs())
            });
            self.bytes[direction].look(Mark { ran, count: bytes }, bw_period, |grown, span| {
                bw[direction].record(kib_per_second(grown, span));
            });
            self.ios[direction].look(Mark { ran, count: ios }, iops_period, |grown, span| {
                iops[direction].record(per_second(grown, span));
            });
            if runs {
                let left = |sampled: Sampled, period: u64| now + sampled.end(period).saturating_sub(ran);
                due = due.min(left(self.bytes[direction], bw_period));
                due = due.min(left(self.ios[direction], iops_period));
            }
        }
        self.due = Some(due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Arena;

    const SECOND: u64 = 1_000_000_000;

    /// With `rwmixread=100` and loops, for example, the spans of the writes have a length of 0 after they end.
    #[test]
    fn a_span_without_io_takes_nothing_from_the_next() {
        let arena = Arena::new(1).unwrap();
        let slot = arena.slot(0);
        let write = &slot.stats.directions[Direction::Write.index()];
        let rules = SamplingRules { bandwidth_ns: SECOND / 2, iops_ns: SECOND / 2 };
        let (mut sampler, mut bw, mut iops) =
            (Sampler::default(), PerDirection::default(), PerDirection::default());
        let writes = [false, true, false];
        slot.control.set_phase(Phase::Running);
        slot.stats.begin_span(writes, SECOND);
        sampler.look(slot, &rules, 3 * SECOND, true, &mut bw, &mut iops);
        slot.stats.end_span(writes, 4 * SECOND);
        slot.stats.begin_span(writes, 4 * SECOND);
        write.issued.add(1);
        sampler.look(slot, &rules, 4 * SECOND + SECOND / 4, true, &mut bw, &mut iops);
        assert!(sampler.due > Some(4 * SECOND + SECOND / 4), "{:?}", sampler.due);
        write.bytes.add(1 << 20);
        write.ios.add(10);
        sampler.look(slot, &rules, 5 * SECOND, true, &mut bw, &mut iops);
        assert_eq!((bw[Direction::Write].count, iops[Direction::Write].count), (2, 2));
    }

    #[test]
    fn directions_are_sampled_while_they_run() {
        let arena = Arena::new(1).unwrap();
        let slot = arena.slot(0);
        let [read, write, _] = &slot.stats.directions;
        let rules = SamplingRules { bandwidth_ns: SECOND / 2, iops_ns: SECOND / 2 };
        let (mut sampler, mut bw, mut iops) =
            (Sampler::default(), PerDirection::default(), PerDirection::default());
        let mut look = |now: u64| {
            sampler.look(slot, &rules, now, true, &mut bw, &mut iops);
            [(bw[Direction::Read], iops[Direction::Read]), (bw[Direction::Write], iops[Direction::Write])]
                .map(|(bw, iops): (Moments, Moments)| (bw.count, bw.max, iops.max))
        };
        slot.control.set_phase(Phase::Running);
        slot.stats.begin_span([false, true, false], SECOND);
        write.issued.add(1);
        write.bytes.add(1 << 20);
        write.ios.add(10);
        assert_eq!(look(SECOND * 5 / 4), [(0, 0, 0), (0, 0, 0)]);
        assert_eq!(look(SECOND * 3 / 2), [(0, 0, 0), (1, 2048, 20)]);
        // Neither an incomplete period nor the time in which only reads run gives a sample.
        slot.stats.end_span([false, true, false], SECOND * 8 / 5);
        slot.control.set_phase(Phase::Verifying);
        slot.stats.begin_span([true, false, false], 2 * SECOND);
        read.issued.add(1);
        read.bytes.add(4 << 20);
        read.ios.add(4);
        assert_eq!(look(3 * SECOND), [(2, 4096, 4), (1, 2048, 20)]);
        // After a reset, samples restart.
        slot.stats.reset(3 * SECOND);
        assert_eq!(look(3 * SECOND), [(0, 0, 0), (0, 0, 0)]);
    }

    /// However late each look is, two seconds have four samples of half a second, the last of which is taken when the
    /// worker has ended.
    #[test]
    fn looks_that_come_late_lose_no_sample() {
        let arena = Arena::new(1).unwrap();
        let slot = arena.slot(0);
        let read = &slot.stats.directions[0];
        let rules = SamplingRules { bandwidth_ns: SECOND / 2, iops_ns: SECOND };
        let (mut sampler, mut bw, mut iops) =
            (Sampler::default(), PerDirection::default(), PerDirection::default());
        let late = SECOND / 50;
        slot.stats.begin_span([true, false, false], SECOND);
        let mut now = SECOND;
        for _ in 0..3 {
            read.issued.add(1);
            read.bytes.add(1024);
            read.ios.add(1);
            sampler.look(slot, &rules, now, true, &mut bw, &mut iops);
            now = sampler.due.unwrap() + late;
            sampler.look(slot, &rules, now, true, &mut bw, &mut iops);
        }
        assert_eq!((bw[Direction::Read].count, now), (3, 5 * SECOND / 2 + late));
        slot.stats.end_span([true, false, false], 3 * SECOND);
        sampler.look(slot, &rules, 4 * SECOND, true, &mut bw, &mut iops);
        assert_eq!((bw[Direction::Read].count, iops[Direction::Read].count), (4, 2));
        // A look that comes so late that another period is nearly over.
        slot.stats.begin_span([true, false, false], 4 * SECOND);
        sampler.look(slot, &rules, 4 * SECOND + SECOND * 9 / 10, true, &mut bw, &mut iops);
        sampler.look(slot, &rules, 5 * SECOND, true, &mut bw, &mut iops);
        assert_eq!(bw[Direction::Read].count, 6);
    }

    /// A steady job has equal samples, however late the looks are; their sum is the total.
    #[test]
    fn late_looks_do_not_change_the_rates() {
        let mut sampled = Sampled::default();
        let mut rates = Vec::new();
        let ms = SECOND / 1000;
        for ran in [500, 1003, 1520, 2640, 3001] {
            let now = Mark { ran: ran * ms, count: 4 * ran };
            sampled.look(now, 500 * ms, |grown, span| rates.push((grown, span / ms)));
        }
        assert_eq!(rates, [(2000, 500); 6]);
    }
}
