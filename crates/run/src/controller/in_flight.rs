//! What is in flight, read from outside: a worker that hangs cannot tell.

use super::{Controller, Events};
use iolite_stats::{EventKind, InFlight, STUCK_AFTER, Stuck};
use iolite_types::Operation;
use iolite_worker::UnitInFlight;
use std::io;

/// The time between two looks at the workers.
const LOOK_NS: u64 = 1_000_000_000;

/// The same if a job limits the time of an I/O.
const OFTEN_NS: u64 = 100_000_000;

/// The longest table of I/Os in flight.
const MOST_TOLD: usize = 100;

/// The last sign of progress of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// What changes with each I/O that is issued or completed.
    seen: ([u64; 2], u32),
    /// When that was first seen.
    since: u64,
}

/// An I/O in flight of a worker.
pub(super) struct Found {
    worker: usize,
    pub(super) unit: UnitInFlight,
    /// How long ago it was issued, in nanoseconds; `None` = not known.
    pub(super) age_ns: Option<u64>,
}

impl Controller<'_> {
    /// Looks whether workers make progress, and what is stuck, if that is due.
    ///
    /// # Errors
    /// The spawner cannot be reached.
    pub(super) fn look_at_flights(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        let now = self.now();
        if now < self.next_flight_look {
            return Ok(());
        }
        let limits_time = self.limits_time();
        self.next_flight_look = now + if limits_time { OFTEN_NS } else { LOOK_NS };
        for index in 0..self.members.len() {
            if self.issues_io(index) {
                let seen = self.progress_of(index);
                let progress = &mut self.members[index].progress;
                if progress.seen != seen || progress.since == 0 {
                    *progress = Progress { seen, since: now };
                }
            }
        }
        if self.settings.tells_flights {
            self.stuck = self.find_stuck(now);
        }
        if limits_time { self.end_overdue(now, events) } else { Ok(()) }
    }

    fn issues_io(&self, index: usize) -> bool {
        let member = &self.members[index];
        member.released && member.end.is_none() && self.arena.slot(index).control.phase().is_running()
    }

    fn progress_of(&self, index: usize) -> ([u64; 2], u32) {
        (self.arena.slot(index).stats.progress(), self.units.free(index))
    }

    /// The I/Os in flight of a worker.
    pub(super) fn flight_of(&self, worker: usize, now: u64) -> impl Iterator<Item = Found> + use<'_> {
        let progress = self.members[worker].progress;
        let standstill = (progress.since > 0 && progress.seen == self.progress_of(worker))
            .then(|| now.saturating_sub(progress.since));
        // (Work without I/O takes as long as it likes.)
        let units = self.units.in_flight(worker).into_iter().filter(|unit| unit.operation != Operation::Work);
        units.map(move |unit| {
            let stamp = (unit.issue > 0).then(|| now.saturating_sub(unit.issue));
            let age_ns = match (stamp, standstill) {
                // A queueing engine may perform these in the call, and the stamp is that of the unit before.
                (Some(stamp), Some(standstill))
                    if !matches!(unit.operation, Operation::Read | Operation::Write) =>
                {
                    Some(stamp.min(standstill))
                }
                (stamp, standstill) => stamp.or(standstill),
            };
            Found { worker, unit, age_ns }
        })
    }

    fn find_stuck(&self, now: u64) -> Option<Stuck> {
        let limit = STUCK_AFTER.as_nanos() as u64;
        let workers = (0..self.members.len()).filter(|&index| self.issues_io(index));
        let old = workers.flat_map(|index| self.flight_of(index, now)).filter_map(|found| {
            let age_ns = found.age_ns.filter(|&age| age > limit)?;
            Some((age_ns, found))
        });
        let (mut ios, mut oldest) = (0, None::<(u64, Found)>);
        for (age_ns, found) in old {
            ios += 1;
            if oldest.as_ref().is_none_or(|(most, _)| age_ns > *most) {
                oldest = Some((age_ns, found));
            }
        }
        let (age_ns, found) = oldest?;
        let file = self.file_name(found.worker, found.unit.file);
        let at = self.stages.as_ref().and_then(|stages| stages.place_of_old(found.worker, age_ns));
        Some(Stuck { ios, age_ns, file, offset: found.unit.offset, at })
    }

    /// The oldest I/O of a worker in flight: `with a write of f at offset 4096 in flight for 9 s`; `None` = none of known age.
    pub(super) fn oldest_in_words(&self, worker: usize, now: u64) -> Option<String> {
        let oldest = self.flight_of(worker, now).max_by_key(|found| found.age_ns)?;
        let UnitInFlight { operation, file, offset, .. } = oldest.unit;
        let (file, seconds) = (self.file_name(worker, file), oldest.age_ns? / 1_000_000_000);
        Some(format!("with a {} of {file} at offset {offset} in flight for {seconds} s", operation.name()))
    }

    /// Sends a table of all I/Os in flight, the oldest first.
    pub(super) fn tell_flights(&self, events: &mut Events<'_>) {
        let now = self.now();
        let workers = (0..self.members.len()).filter(|&index| self.issues_io(index));
        let mut found: Vec<Found> = workers.flat_map(|index| self.flight_of(index, now)).collect();
        found.sort_by_key(|found| std::cmp::Reverse(found.age_ns));
        let left_out = found.len().saturating_sub(MOST_TOLD) as u64;
        found.truncate(MOST_TOLD);
        let ios = found.into_iter().map(|found| InFlight {
            job: self.plan.job_of(&self.plan.workers[found.worker]).name.clone(),
            worker: found.worker as u32,
            operation: found.unit.operation.name().to_owned(),
            file: self.file_name(found.worker, found.unit.file),
            offset: found.unit.offset,
            length: found.unit.length,
            age_ns: found.age_ns,
        });
        self.tell(None, EventKind::InFlight { ios: ios.collect(), left_out }, events);
    }

    /// The name of a worker's file; a replay may have added files, whose names only the worker knows.
    pub(super) fn file_name(&self, worker: usize, file: u32) -> String {
        let path = self.layouts[worker].path(file as usize);
        path.map_or_else(|| format!("file {file} of the trace"), |path| path.display().to_string())
    }
}
