//! Waves of workers: when each worker starts, and which workers begin their I/O together.

use super::Controller;
use crate::shared::Phase;
use crate::spawner::Order;
use iolite_plan::Barrier;
use std::io;
use tracing::debug;

/// How many workers may be ordered without having begun. The limit prevents the sockets between controller and spawner
/// from filling up in both directions at once.
const MOST_ORDERED: usize = 64;

impl<'a> Controller<'a> {
    /// The workers of the current wave.
    pub(super) fn present(&self) -> impl Iterator<Item = usize> + use<'a> {
        let wave = self.wave;
        self.plan.workers.iter().filter(move |worker| worker.wave == wave).map(|worker| worker.index)
    }

    pub(super) fn begin_wave(&mut self) {
        self.wave_begun = self.now();
        debug!(target: "process", "wave {} of {} begins", self.wave + 1, self.plan.waves);
        for index in self.present() {
            self.members[index].not_before =
                self.wave_begun.saturating_add(self.plan.workers[index].start_delay_ns);
        }
        // This wave may have no I/O itself.
        self.end_with_io();
    }

    /// The rest of a worker's delay in nanoseconds (`startdelay`), not counting earlier waves.
    pub(super) fn delay_left(&self, index: usize, now: u64) -> u64 {
        let member = &self.members[index];
        match member.end {
            Some(_) => 0,
            None if self.plan.workers[index].wave > self.wave => self.plan.workers[index].start_delay_ns,
            None => member.not_before.saturating_sub(now),
        }
    }

    /// Whether a worker starts at its own time, not together with its wave.
    pub(super) fn is_late(&self, index: usize) -> bool {
        self.members[index].not_before > self.wave_begun || !self.plan.workers[index].wait_for.is_empty()
    }

    /// Whether the wave has begun, or waits only for its own workers.
    fn wave_is_open(&self) -> bool {
        self.gate.is_open(Barrier::Wave(self.wave))
    }

    fn may_start(&self, index: usize) -> bool {
        let member = &self.members[index];
        let awaited = self.plan.workers[index].wait_for.clone();
        !member.ordered
            && member.end.is_none()
            && member.not_before <= self.looked_at
            && (self.wave_is_open() || !self.is_late(index))
            && self.members[awaited].iter().all(|member| member.end.is_some())
    }

    /// Orders the workers that are due, and opens the gates of those that are ready.
    pub(super) fn start_what_may_start(&mut self) -> io::Result<()> {
        self.looked_at = self.now();
        let begun = |controller: &Self, index: usize| {
            controller.members[index].end.is_some()
                || controller.arena.slot(index).control.phase() >= Phase::SettingUp
        };
        let mut waiting =
            self.present().filter(|&index| self.members[index].ordered && !begun(self, index)).count();
        for index in self.present() {
            if waiting >= MOST_ORDERED {
                break;
            }
            if self.may_start(index) {
                let thread = self.plan.job_of(&self.plan.workers[index]).thread;
                let number = index as u32;
                self.order(if thread { Order::Thread(number) } else { Order::Process(number) })?;
                debug!(target: "process", job = number + 1, "worker {} is ordered, thread={thread}", number + 1);
                self.members[index].ordered = true;
                if thread {
                    self.threads.push(index);
                }
                waiting += 1;
            }
        }
        let ready = |controller: &Self, index: usize| {
            controller.members[index].end.is_some()
                || controller.arena.slot(index).control.phase() >= Phase::Ready
        };
        let together = self.present().filter(|&index| !self.is_late(index)).all(|index| ready(self, index));
        for index in self.present() {
            let control = &self.arena.slot(index).control;
            // A worker that was asked to stop does not wait for others: they may never be ready.
            let may_go = ((together && self.wave_is_open()) || self.is_late(index))
                && self.gate.is_open(Barrier::Job(self.plan.workers[index].job));
            let may_go = may_go || control.terminating();
            if control.phase() == Phase::Ready && !self.members[index].released && may_go {
                self.members[index].released = true;
                debug!(target: "mutex", job = index + 1, "worker {}: gate opened", index + 1);
                self.arena.slot(index).control.open_gate();
            }
        }
        Ok(())
    }

    /// When the next worker of the wave may start; `u64::MAX` = no worker waits for its time.
    pub(super) fn next_start(&self) -> u64 {
        let waiting = self.present().map(|index| &self.members[index]);
        // A worker whose time has come since then has not been started, so it is due at once.
        let waiting = waiting
            .filter(|member| member.end.is_none() && !member.ordered && member.not_before > self.looked_at)
            // Delayed starts are counted from the moment at which the wave begins.
            .filter(|_| self.wave_is_open());
        waiting.map(|member| member.not_before).min().unwrap_or(u64::MAX)
    }

    /// Begins the next wave if this one has ended.
    pub(super) fn advance(&mut self) {
        while !self.is_over() && self.present().all(|index| self.members[index].end.is_some()) {
            self.wave += 1;
            self.begin_wave();
        }
    }
}
