//! Signals: they end the run, and kill processes that hang.

use super::{Controller, End, Events, STOP_PATIENCE_NS};
use crate::shared::{Phase, attention};
use crate::signals::Request;
use crate::spawner::{Order, Victim};
use iolite_stats::{EventKind, JobError};
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Instant;
use tracing::debug;

/// A worker without a sign of life for this long counts as hanging.
const HANGING_NS: u64 = 1_000_000_000;

/// A worker with unwritten logs gets more time: a slow disk may still accept them.
const HANGING_WITH_LOGS_NS: u64 = 5_000_000_000;

/// How long a killed process may take to end. After that the run no longer waits for it: it waits for a device, and the
/// kernel cannot end it yet.
const DYING_NS: u64 = 1_000_000_000;

/// The signs of life of a worker that was asked to stop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    /// Its phase, and how often its logs were written to.
    life: Option<(Phase, u64)>,
    /// Since when `life` is unchanged.
    since: u64,
    /// When it was killed; 0 = not killed.
    pub(super) killed: u64,
}

impl Controller<'_> {
    pub(super) fn handle_signals(&mut self, events: &mut Events<'_>) {
        while let Some(signal) = self.signals.next() {
            debug!(target: "process", "signal {signal}");
            if signal == libc::SIGUSR1 {
                let report = self.fresh_report();
                self.tell(None, EventKind::Status(Box::new(report)), events);
                if self.settings.tells_flights {
                    self.tell_flights(events);
                }
                continue;
            }
            match self.requests.take(Instant::now()) {
                Request::End => self.end_by(signal, events),
                Request::Again => {}
                Request::GiveUp => self.begin_to_give_up(),
            }
        }
        self.requests.seen_none(Instant::now());
    }

    /// Asks all workers to end, because of this signal.
    pub(super) fn end_by(&mut self, signal: i32, events: &mut Events<'_>) {
        self.tell(None, EventKind::Terminating(signal), events);
        self.signal = Some(signal);
        (0..self.members.len()).for_each(|index| self.terminate(index));
    }

    /// Workers have been asked to stop: schedules the first interrupt.
    pub(super) fn expect_stops(&mut self) {
        self.next_interrupt = self.next_interrupt.min(self.now() + STOP_PATIENCE_NS);
    }

    /// Interrupts workers that were asked to stop a while ago and still run.
    pub(super) fn interrupt(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        if self.now() < self.next_interrupt {
            return Ok(());
        }
        let is_awaited =
            |index: usize| self.members[index].end.is_none() && self.arena.slot(index).control.terminating();
        let laying_out = !self.laid_out;
        if laying_out || (0..self.members.len()).any(is_awaited) {
            self.next_interrupt = self.now() + STOP_PATIENCE_NS;
            self.order(Order::Interrupt)?;
            if self.gives_up {
                self.give_up_what_hangs(events)?;
            }
            return Ok(());
        }
        self.next_interrupt = u64::MAX;
        Ok(())
    }

    /// The run was asked to end for the second time. The measurements in the arena are reported in any case; workers
    /// must now write buffered log entries to the disk.
    fn begin_to_give_up(&mut self) {
        if self.gives_up {
            return;
        }
        debug!(target: "process", "what hangs is given up");
        self.gives_up = true;
        for (index, member) in self.members.iter().enumerate() {
            if member.end.is_none() {
                self.arena.slot(index).control.ask(attention::SAVE);
            }
        }
        self.expect_stops();
    }

    fn give_up_what_hangs(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        let now = self.now();
        if !self.laid_out {
            return self.give_up_layout(now, events);
        }
        for index in 0..self.members.len() {
            self.look_for_life(index, now);
        }
        for index in 0..self.members.len() {
            if !self.is_thread(index) && self.hangs(index, now) {
                self.doom(index, now, events);
                self.order(Order::Kill(Victim::Process(index as u32)))?;
            }
        }
        // Threads end together.
        let threads: Vec<usize> = (0..self.members.len())
            .filter(|&index| self.is_thread(index) && self.members[index].end.is_none())
            .collect();
        if !threads.is_empty() && threads.iter().all(|&index| self.hangs(index, now)) {
            threads.iter().for_each(|&index| self.doom(index, now, events));
            self.order(Order::Kill(Victim::ThreadHost))?;
        }
        self.leave_undying(now, events);
        Ok(())
    }

    /// Kills a layout that hangs. Files that are laid out are kept; no worker has run yet.
    fn give_up_layout(&mut self, now: u64, events: &mut Events<'_>) -> io::Result<()> {
        if self.layout_killed == 0 {
            self.layout_killed = now;
            let text = "laying out files hangs, and is given up".to_owned();
            self.tell(None, EventKind::Trouble(text), events);
            return self.order(Order::Kill(Victim::Layout));
        }
        if now - self.layout_killed > DYING_NS {
            self.laid_out = true;
        }
        Ok(())
    }

    pub(super) fn look_for_life(&mut self, index: usize, now: u64) {
        let control = &self.arena.slot(index).control;
        let life = Some((control.phase(), control.log_writes.load(Relaxed)));
        let signs = &mut self.members[index].signs;
        if signs.life != life {
            (signs.life, signs.since) = (life, now);
        }
    }

    /// Whether a worker hangs and has not been killed yet.
    pub(super) fn hangs(&self, index: usize, now: u64) -> bool {
        let member = &self.members[index];
        let patience = if self.has_unsaved(index) { HANGING_WITH_LOGS_NS } else { HANGING_NS };
        member.end.is_none() && member.signs.killed == 0 && now - member.signs.since >= patience
    }

    fn has_unsaved(&self, index: usize) -> bool {
        self.arena.slot(index).control.unsaved.load(Acquire) > 0
    }

    /// Notes that a worker is about to be killed, and why.
    fn doom(&mut self, index: usize, now: u64, events: &mut Events<'_>) {
        if self.has_unsaved(index) {
            let name = &self.plan.job_of(&self.plan.workers[index]).name;
            let text = format!("{name}: log entries in memory are lost: nothing reads the log");
            self.tell(Some(index as u32), EventKind::Trouble(text), events);
        }
        let phase = self.arena.slot(index).control.phase().in_words();
        let mut what = format!("func=given up: it hung while it was {phase}");
        if let Some(waits) = self.oldest_in_words(index, now) {
            what = format!("{what}, {waits}");
        }
        let member = &mut self.members[index];
        member.signs.killed = now;
        member.doom = Some(JobError { errno: libc::EINTR, what });
    }

    /// Stops waiting for processes that do not end when killed.
    pub(super) fn leave_undying(&mut self, now: u64, events: &mut Events<'_>) {
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            if member.end.is_none() && member.signs.killed > 0 && now - member.signs.killed > DYING_NS {
                let error = member.why_killed();
                self.end_worker(index, End::Killed, error, events);
            }
        }
    }
}
