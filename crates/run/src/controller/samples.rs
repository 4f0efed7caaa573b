//! Samples: what bandwidth and IOPS were in each averaging period of a worker.

use super::Controller;
use crate::shared::Phase;
use iolite_options::JobOptions;
use iolite_types::{Direction, PerDirection};
use std::sync::atomic::Ordering::Relaxed;

/// Turns counters into samples per averaging period.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    /// The reset count at which the counters below were read.
    resets: u64,
    started: bool,
    bw_at: u64,
    iops_at: u64,
    bytes: PerDirection<u64>,
    ios: PerDirection<u64>,
}

impl Controller<'_> {
    /// When the worker's next sample is due.
    pub(super) fn next_sample(&self, index: usize) -> Option<u64> {
        let member = &self.members[index];
        // A worker that is not running yet is looked at again when it says that it is; one that runs no more has
        // nothing left to be sampled.
        let is_running = self.arena.slot(index).control.phase().is_running();
        if !member.released || !member.sampler.started || !is_running {
            return None;
        }
        Some(member.sampler.bw_at.min(member.sampler.iops_at))
    }

    /// Takes the samples that are due. They cost the workers nothing, so `disable_bw` does not stop them (as with
    /// fio).
    pub(super) fn sample(&mut self) {
        let now = self.now();
        for index in self.present() {
            let member = &mut self.members[index];
            if !member.released || member.end.is_some() {
                continue;
            }
            let options = &self.plan.job_of(&self.plan.workers[index]).options;
            let slot = self.arena.slot(index);
            let counting = slot.control.counting_ns.load(Relaxed);
            if counting == 0 || !slot.control.phase().is_running() {
                continue;
            }
            let bw_period = period(options, options.bwavgtime, options.logs.write_bw_log.is_some());
            let iops_period = period(options, options.iopsavgtime, options.logs.write_iops_log.is_some());
            let sampler = &mut member.sampler;
            let resets = slot.stats.resets.get();
            if !sampler.started || sampler.resets != resets {
                *sampler = Sampler {
                    resets,
                    started: true,
                    bw_at: counting + bw_period,
                    iops_at: counting + iops_period,
                    ..Sampler::default()
                };
                member.known.bw = PerDirection::default();
                member.known.iops = PerDirection::default();
            }
            let live = |direction: Direction| &slot.stats.directions[direction.index()];
            if now >= sampler.bw_at && slot.control.phase() == Phase::Running {
                let span = now - (sampler.bw_at - bw_period);
                for direction in Direction::ALL {
                    let bytes = live(direction).bytes.get();
                    let moved = bytes - std::mem::replace(&mut sampler.bytes[direction], bytes);
                    if bytes > 0 {
                        member.known.bw[direction].record(per_second(moved, span) / 1024);
                    }
                }
                sampler.bw_at = now + bw_period;
            }
            if now >= sampler.iops_at && slot.control.phase() == Phase::Running {
                let span = now - (sampler.iops_at - iops_period);
                for direction in Direction::ALL {
                    let ios = live(direction).ios.get();
                    let done = ios - std::mem::replace(&mut sampler.ios[direction], ios);
                    if ios > 0 {
                        member.known.iops[direction].record(per_second(done, span));
                    }
                }
                sampler.iops_at = now + iops_period;
            }
            // In the ramp nothing is sampled, and nothing is due.
            if slot.control.phase() != Phase::Running {
                sampler.bw_at = sampler.bw_at.max(now + bw_period);
                sampler.iops_at = sampler.iops_at.max(now + iops_period);
            }
        }
    }
}

/// Nanoseconds of an averaging period: never longer than a window of the log of the same figure.
fn period(options: &JobOptions, milliseconds: u32, logged: bool) -> u64 {
    let window = options.logs.log_avg_msec;
    let milliseconds = if logged && window > 0 { milliseconds.min(window) } else { milliseconds };
    u64::from(milliseconds.max(1)) * 1_000_000
}

pub(super) fn per_second(amount: u64, span_ns: u64) -> u64 {
    if span_ns == 0 { 0 } else { (u128::from(amount) * 1_000_000_000 / u128::from(span_ns)) as u64 }
}

/// By how much a counter has grown. The end of a ramp sets counters back, and then what they show is new.
pub(super) fn since(before: u64, now: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_were_set_back_begin_anew() {
        assert_eq!(since(10, 25), 15);
        assert_eq!(since(10, 4), 4);
    }
}
