//! Decides whether a failed I/O ends its job or counts as one more error.
//!
//! A job continues after an error if `continue_on_error` or `ignore_error` names the kind of I/O and the errno is
//! tolerated. Tolerated are those that `ignore_error` lists for that kind, or else `EIO` and `EILSEQ`, which report
//! data lost by the medium. Any other error would only repeat.

use super::failure::{Attempt, Failure, failed_operation, io_error_line};
use super::{Common, IoLoop};
use crate::alignment;
use iolite_engine::{Engine, Errno};
use iolite_host::{Machine, ThisMachine};
use iolite_os::message::Message;
use iolite_os::socket::Socket;
use iolite_plan::resolve::{ErrorRules, Tolerance};
use iolite_types::{Direction, Operation, Repeated};
use iolite_workload::{Fate, Generator, Io};

/// Marks an I/O that moved nothing and reported no error. It is reported as `EIO`.
pub(super) const NOTHING_MOVED: Errno = Errno(0);

/// Explanations of the errnos with which a zoned device refuses I/O.
const TOO_MANY_ZONES: &str = " (more zones of the device are open or partly written than it allows: reset or finish those \
                              outside of the job's region)";

/// How a job handles errors, and where it reports them.
#[derive(Clone, Debug)]
pub struct ErrorPolicy<'a> {
    rules: ErrorRules,
    /// The job uses direct I/O.
    direct: bool,
    messages: &'a Socket,
    worker: u32,
    /// Errors with known causes after which the job continued.
    tolerated: Repeated,
}

impl<'a> ErrorPolicy<'a> {
    /// The policy of these rules, for direct I/O or not. `worker` is the worker's number in messages.
    pub fn new(rules: &ErrorRules, direct: bool, messages: &'a Socket, worker: u32) -> Self {
        ErrorPolicy { rules: rules.clone(), direct, messages, worker, tolerated: Repeated::default() }
    }

    /// Whether the job continues after wrong data with this errno.
    pub(super) fn tolerates_wrong_data(&self, errno: Errno) -> bool {
        self.rules.verify.errnos.contains(&errno.0)
    }

    /// Whether wrong data is counted.
    pub(super) fn counts_wrong_data(&self) -> bool {
        self.rules.verify.counts
    }

    /// The worker's number, for messages.
    pub(super) fn worker(&self) -> u32 {
        self.worker
    }

    /// The socket to the controller.
    pub(super) fn messages(&self) -> &'a Socket {
        self.messages
    }

    fn of(&self, operation: Operation) -> &Tolerance {
        if operation == Operation::Read { &self.rules.read } else { &self.rules.write }
    }
}

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Handles a failed I/O. It counts as an I/O, without latency and bytes.
    #[cold]
    pub(super) fn io_failed(&mut self, index: u32, errno: Errno) {
        let attempt = self.common.attempt(index);
        let (errno, why) = match errno {
            NOTHING_MOVED => (Errno(libc::EIO), " (the file ends before)"),
            errno => (errno, ""),
        };
        let why = match errno.0 {
            libc::EOVERFLOW | libc::ETOOMANYREFS if self.generator.learns() => TOO_MANY_ZONES,
            _ => why,
        };
        let told = self.engine.explain(index).or_else(|| self.why_unreadable(&attempt));
        let told = told.map(|told| format!(" ({told})"));
        self.io_failed_because(index, errno, told.as_deref().unwrap_or(why));
    }

    /// Handles a failed I/O. `why` follows the system's text about the error.
    #[cold]
    pub(super) fn io_failed_because(&mut self, index: u32, errno: Errno, why: &str) {
        if FULL {
            self.learn(index, Fate::Failed);
            self.count_for_pace(index, 0);
            self.common.forget_role(index);
        }
        self.common.failed(index, errno, why, self.generator.learns());
    }

    /// Why a read has failed, as far as the workload knows.
    fn why_unreadable(&self, attempt: &Attempt) -> Option<String> {
        let Attempt { operation, file, offset, length } = *attempt;
        let direction = operation.direction().filter(|_| operation == Operation::Read)?;
        self.generator.loss(&Io { offset, length, file, direction })
    }
}

impl Common<'_> {
    /// `learns`: the workload depends on outcomes ([`Generator::learns`]).
    fn failed(&mut self, index: u32, errno: Errno, why: &str, learns: bool) {
        let attempt = self.attempt(index);
        if let Some(direction) = attempt.operation.direction() {
            self.stats.directions[direction.index()].ios.add(1);
        }
        if self.is_full
            && let Some(blocks) = &mut self.extras.blocks
        {
            blocks.done(&attempt, true);
        }
        if self.rules.fill_device && errno.0 == libc::ENOSPC {
            self.tell(attempt, errno, why);
            self.end.device_full = true;
            self.end.stopping = true;
            return;
        }
        self.count_error(attempt.operation, errno);
        if !self.errors.of(attempt.operation).errnos.contains(&errno.0) {
            let is_first = self.end.failure.is_none();
            self.end_with(attempt, errno, why);
            if is_first && errno.0 == libc::EINVAL && self.errors.direct {
                self.advise(attempt, self.flight.table.units[index as usize].buffer.addr() as u64);
            }
            if is_first && errno.0 == libc::EIO && attempt.operation == Operation::Write && !learns {
                self.advise_zones(attempt.file);
            }
            return;
        }
        if self.errors.rules.dump {
            self.tell(attempt, errno, why);
        } else if !why.is_empty() {
            // (The report says what the system's error alone would.)
            let line = io_error_line(&self.files.name(attempt.file), &attempt, errno, why);
            if self.errors.tolerated.is_first(&line) {
                Message::Tolerated(self.errors.worker, 1, line).send(self.errors.messages);
            }
        }
        if self.stats.errors.get() == 1 {
            let what = failed_operation(&self.files.name(attempt.file), attempt.operation);
            Message::WentOn(self.errors.worker, errno.0, what).send(self.errors.messages);
        }
    }

    fn attempt(&self, index: u32) -> Attempt {
        Attempt::of(&self.flight.table.units[index as usize])
    }

    /// Ends the job, because something cannot be done.
    #[cold]
    pub(super) fn refused(&mut self, attempt: Attempt, errno: Errno) {
        self.end_with(attempt, errno, "");
    }

    fn end_with(&mut self, attempt: Attempt, errno: Errno, why: &str) {
        // Stopping a worker interrupts its system calls. That is not a failure.
        if errno.0 != libc::EINTR || !self.control.terminating() {
            let line = io_error_line(&self.files.name(attempt.file), &attempt, errno, why);
            Message::Fatal(self.errors.worker, line).send(self.errors.messages);
        }
        self.fail(Failure { errno, attempt: Some(attempt), missed: None });
    }

    /// Counts a failure, also as an error if the job counts errors of that kind.
    pub(super) fn count_error(&self, operation: Operation, errno: Errno) {
        // Stopping a worker interrupts its system calls.
        if errno.0 != libc::EINTR || !self.control.terminating() {
            let place = operation.direction().map_or(Direction::ALL.len(), Direction::index);
            self.stats.failures[place].count(errno.0);
        }
        if self.errors.of(operation).counts {
            self.count(errno);
        }
    }

    /// Counts an error.
    pub(super) fn count(&self, errno: Errno) {
        if self.stats.errors.get() == 0 {
            self.stats.first_error.set(errno.0.unsigned_abs().into());
        }
        self.stats.errors.add(1);
    }

    /// Tells the user what to change so that the kernel accepts this direct I/O.
    fn advise(&self, attempt: Attempt, memory: u64) {
        let Attempt { operation, file, offset, length } = attempt;
        if !matches!(operation, Operation::Read | Operation::Write) {
            return;
        }
        let demands = self.files.path(file).and_then(|path| ThisMachine::new().direct_io(&path));
        let advice = alignment::advice(demands, offset, length, memory);
        let line = format!("direct I/O on file {}: {advice}", self.files.name(file));
        Message::Trouble(self.errors.worker, line).send(self.errors.messages);
    }

    /// Tells the user what to change if writes go to a zoned device wherever the workload likes. fio's sentence about the
    /// first I/O does not know the device.
    fn advise_zones(&self, file: u32) {
        let path = self.files.path(file);
        let disk = path.as_ref().and_then(|path| ThisMachine::new().disk(path));
        if disk.is_none_or(|disk| disk.queue.zones.is_none()) {
            return;
        }
        let writes = self.stats.directions[Direction::Write.index()].ios.get();
        let first = if writes == 1 { "first " } else { "" };
        let name = self.files.name(file);
        let line = format!(
            "{first}I/O failed. If {name} is a zoned block device, consider --zonemode=zbd (it is one: its sequential zones \
             are written at their write pointers only)"
        );
        Message::Note(self.errors.worker, line).send(self.errors.messages);
    }

    fn tell(&self, attempt: Attempt, errno: Errno, why: &str) {
        let line = io_error_line(&self.files.name(attempt.file), &attempt, errno, why);
        Message::Trouble(self.errors.worker, line).send(self.errors.messages);
    }

    /// Says how often tolerated errors were repeated.
    pub(super) fn count_tolerated(&mut self) {
        for (text, count) in self.errors.tolerated.counts() {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            Message::Tolerated(self.errors.worker, count, text).send(self.errors.messages);
        }
    }
}
