//! `io_timeout` for workers that hang in a call, so that they cannot keep it themselves.
//!
//! Such a worker is asked to end, which interrupts its calls. If that does not help, its process is killed, and the run
//! goes on without it even if the kernel cannot end it yet. A thread cannot be killed alone: it is left behind, and ends
//! with the run.

use super::in_flight::Found;
use super::{Controller, End, Events};
use crate::shared::Phase;
use crate::spawner::{Order, Victim};
use iolite_os::process::ChildEnd;
use iolite_stats::{EventKind, JobError};
use std::io;

/// A worker that is not in a call notices an overdue I/O within this time.
const OWN_NS: u64 = 500_000_000;

impl Controller<'_> {
    /// Whether any job limits the time of an I/O.
    pub(super) fn limits_time(&self) -> bool {
        self.plan.jobs.iter().any(|job| job.io_timeout_ns().is_some())
    }

    /// Ends workers that hang because of an I/O that takes too long.
    pub(super) fn end_overdue(&mut self, now: u64, events: &mut Events<'_>) -> io::Result<()> {
        for index in 0..self.members.len() {
            let job = self.plan.job_of(&self.plan.workers[index]);
            let Some(limit) = job.io_timeout_ns().filter(|_| self.members[index].end.is_none()) else {
                continue;
            };
            if !self.members[index].is_overdue {
                self.find_overdue(index, limit, now, events);
            } else if self.hangs(index, now) {
                self.leave(index, now, events)?;
            }
            if self.members[index].is_overdue {
                self.look_for_life(index, now);
            }
        }
        self.leave_undying(now, events);
        Ok(())
    }

    fn find_overdue(&mut self, index: usize, limit: u64, now: u64, events: &mut Events<'_>) {
        let phase = self.arena.slot(index).control.phase();
        let mut flight = self.flight_of(index, now).collect::<Vec<_>>().into_iter();
        if phase.is_running() {
            let most = limit.saturating_add(OWN_NS);
            let is_overdue =
                |found: &Found| !found.unit.given_up && found.age_ns.is_some_and(|age| age > most);
            let Some(Found { unit, age_ns: Some(age_ns), .. }) = flight.find(is_overdue) else { return };
            let file = self.file_name(index, unit.file);
            let error = JobError { errno: libc::ETIMEDOUT, what: unit.failed(&file) };
            self.tell(Some(index as u32), EventKind::Fatal(unit.too_long(&file, age_ns)), events);
            self.members[index].cut_short.get_or_insert(error);
            self.members[index].is_overdue = true;
            self.terminate(index);
        } else if phase >= Phase::Finishing && flight.any(|found| found.unit.given_up) {
            // What it has given up may keep it from ending.
            self.members[index].is_overdue = true;
        }
    }

    /// Does not wait any longer for a worker that hangs.
    fn leave(&mut self, index: usize, now: u64, events: &mut Events<'_>) -> io::Result<()> {
        if self.arena.slot(index).control.phase() == Phase::Exited {
            // Its process waits for what it has given up.
            self.ended(index, ChildEnd::Exited(0), events);
            return Ok(());
        }
        if self.members[index].cut_short.is_none() {
            let given_up = self.flight_of(index, now).find(|found| found.unit.given_up);
            let what = given_up.map(|found| found.unit.failed(&self.file_name(index, found.unit.file)));
            let what = what.unwrap_or_else(|| "func=io_timeout".to_owned());
            self.members[index].cut_short = Some(JobError { errno: libc::ETIMEDOUT, what });
        }
        if self.is_thread(index) {
            let error = self.members[index].why_killed();
            self.end_worker(index, End::Killed, error, events);
        } else {
            self.members[index].signs.killed = now;
            self.order(Order::Kill(Victim::Process(index as u32)))?;
        }
        Ok(())
    }
}
