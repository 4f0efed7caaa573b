//! Requests of a script besides I/O: waiting, syncs, adding, opening and closing files.

use super::IoLoop;
use super::failure::{Attempt, Failure, Missed};
use crate::syncs::Due;
use iolite_engine::{Engine, Errno};
use iolite_types::{Direction, Operation};
use iolite_workload::{Generator, Io, Step};
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// How long the loop only reaps when the script has no I/O for it.
const IDLE_NS: u64 = 1_000_000;

/// How long the loop waits for other workers before it checks again.
const LOOK_NS: u64 = 20_000;

/// The state of a script between two I/Os.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// When the script started, in nanoseconds of the clock.
    began: u64,
    /// When the next I/O should be issued.
    planned: Option<u64>,
}

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// A pass over the script starts.
    pub(super) fn begin_script(&mut self) {
        self.common.script = Script { began: self.common.clock.now(), planned: None };
    }

    /// Does a step of the script.
    pub(super) fn follow(&mut self, step: Step) {
        match step {
            Step::Begin => self.begin_script(),
            Step::At(after_ns) => {
                let moment = self.common.script.began.saturating_add(after_ns);
                self.wait_until(moment, false);
                self.common.script.planned = Some(moment);
            }
            Step::Idle => {
                let now = self.common.clock.now();
                self.wait_until(now.saturating_add(IDLE_NS), false);
            }
            Step::Wait if self.common.flight.count > 0 => {
                self.commit();
                self.reap(1);
                self.is_called_off(false);
            }
            Step::Wait => {
                let now = self.common.clock.now();
                self.wait_until(now.saturating_add(LOOK_NS), false);
            }
            Step::Sync { operation, file, offset, length } => {
                self.note_punctuality(None);
                self.submit_sync(Due { operation, file, offset, length });
            }
            Step::Added(file) => self.add_file(file),
            Step::Open(file) => self.open_file(file),
            Step::Failed => {
                let trouble = self.generator.take_trouble().unwrap_or_default();
                self.give_up(libc::EINVAL, trouble);
            }
        }
    }

    /// Does a step of the script in a pass without I/O.
    pub(super) fn follow_dryly(&mut self, step: Step) {
        match step {
            Step::Idle | Step::Wait | Step::Added(_) | Step::Failed => self.follow(step),
            Step::Begin | Step::At(_) | Step::Sync { .. } | Step::Open(_) => {}
        }
    }

    /// Ends the job. `why` is text for the user.
    pub(super) fn give_up(&mut self, errno: i32, why: String) {
        self.common.end.trouble.get_or_insert(why);
        self.common.fail(Failure { errno: Errno(errno), attempt: None, missed: Some(Missed::Script) });
    }

    /// Records how late an I/O is that is issued now.
    pub(super) fn note_punctuality(&mut self, unit: Option<u32>) {
        let Some(planned) = self.common.script.planned.take() else { return };
        let late = self.common.clock.now().saturating_sub(planned);
        self.common.stats.lateness.record(late);
        self.common.stats.lateness.record_bucket(late);
        if let (Some(intended), Some(unit)) = (&mut self.common.extras.intended, unit) {
            intended.set(unit, Some(planned));
        }
    }

    /// Whether this I/O is possible: it fits into a buffer, the file may be written to, and verification can follow it.
    /// Ends the job if not.
    pub(super) fn is_possible(&mut self, io: &Io) -> bool {
        let has_room =
            io.direction == Direction::Trim || io.length <= self.common.flight.buffers.stride as u64;
        if !has_room {
            let why = format!(
                "an I/O of {} bytes at offset {} of {} is larger than the buffers of {} bytes; bs={0} makes room",
                io.length,
                io.offset,
                self.common.files.name(io.file),
                self.common.flight.buffers.stride
            );
            self.give_up(libc::EINVAL, why);
            return false;
        }
        if io.direction != Direction::Read
            && let Some(why) = self.common.files.protected(io.file)
        {
            let why = format!(
                "a {} at offset {} would change data on {}, but {why}",
                io.direction.name(),
                io.offset,
                self.common.files.name(io.file)
            );
            self.give_up(libc::EPERM, why);
            return false;
        }
        if io.direction == Direction::Write
            && let Some(end) = self.common.files.end(io.file)
            && io.offset + io.length > end
        {
            let why = format!(
                "a write of {} bytes at offset {} would make {} longer than its {end} bytes, and allow_file_create=0",
                io.length,
                io.offset,
                self.common.files.name(io.file)
            );
            self.give_up(libc::EFBIG, why);
            return false;
        }
        if let Some(verification) = &self.common.extras.verification
            && let Some(error) = verification.obstacle(io)
        {
            self.give_up_on(io, &error);
            return false;
        }
        true
    }

    fn add_file(&mut self, file: u32) {
        let Some(path) = self.generator.path(file).map(ToOwned::to_owned) else { return };
        if let Err(why) = self.common.files.add(file, path) {
            self.give_up(libc::EINVAL, why);
        }
    }

    fn open_file(&mut self, file: u32) {
        if self.common.extras.syncs.is_closing(file) {
            self.sync_what_is_due();
        }
        if self.common.files.is_open(file) {
            return;
        }
        if let Err(error) = self.common.files.open(&mut self.engine, file) {
            self.fail_file(file, error);
        }
        self.common.control.open_files.store(self.common.files.open_count(), Relaxed);
    }

    fn fail_file(&mut self, file: u32, error: io::Error) {
        let attempt = Attempt { operation: Operation::Sync, file, offset: 0, length: 0 };
        let why = format!("{}: {}", self.common.files.name(file), iolite_types::describe_error(&error));
        self.common.end.trouble.get_or_insert(why);
        let missed = Some(Missed::Script);
        self.common.fail(Failure { errno: error.into(), attempt: Some(attempt), missed });
    }

    /// Records an I/O in the job's own recording.
    pub(super) fn record(&mut self, operation: Operation, file: u32, offset: u64, length: u64) {
        if !self.common.files.record(operation, file, offset, length) {
            // The error is reported when the recording is finished.
            self.common.end.stopping = true;
        }
    }
}
