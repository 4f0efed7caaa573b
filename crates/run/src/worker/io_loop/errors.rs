//! What a failed I/O means to its job: the end, or one error more.
//!
//! A job goes on after an error when `continue_on_error` or `ignore_error` names the kind of I/O, and the error is one
//! of those to be gone on after: what `ignore_error` lists for that kind, else `EIO` and `EILSEQ`, with which a medium
//! says that it lost data. Anything else would come again and again.

use super::{Attempt, Failure, IoLoop};
use crate::message::Message;
use crate::sys::Socket;
use crate::worker::alignment::Alignment;
use crate::worker::telling::{failed_operation, io_error_line};
use iolite_engine::{Engine, Errno};
use iolite_options::JobOptions;
use iolite_types::Operation;
use iolite_workload::Generator;

/// The errors to be gone on after when nothing else is said.
const LOST_DATA: [i32; 2] = [libc::EIO, libc::EILSEQ];

/// Nothing was moved although no error was told. What is made of it is `EIO`.
pub(super) const NOTHING_MOVED: Errno = Errno(0);

/// What a job does about errors, and whom it tells.
#[derive(Clone, Debug)]
pub struct ErrorPolicy<'a> {
    read: Tolerance,
    write: Tolerance,
    verify: Tolerance,
    /// Describe errors that do not end the job, too.
    dump: bool,
    /// I/O bypasses the page cache.
    direct: bool,
    messages: &'a Socket,
    worker: u32,
}

/// What is done about the errors of one kind of I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tolerance {
    /// They are counted.
    counts: bool,
    /// The job goes on after these.
    errnos: Vec<i32>,
}

impl Tolerance {
    fn new(goes_on: bool, ignored: &[i32]) -> Tolerance {
        match (goes_on, ignored) {
            (false, []) => Tolerance::default(),
            (true, []) => Tolerance { counts: true, errnos: LOST_DATA.to_vec() },
            (_, ignored) => Tolerance { counts: true, errnos: ignored.to_vec() },
        }
    }
}

impl<'a> ErrorPolicy<'a> {
    /// What the options say. The worker's number is for its messages.
    pub fn new(options: &JobOptions, messages: &'a Socket, worker: u32) -> Self {
        let (goes_on, ignored) = (options.continue_on_error, &options.ignore_error);
        ErrorPolicy {
            read: Tolerance::new(goes_on.read, &ignored.read),
            write: Tolerance::new(goes_on.write, &ignored.write),
            verify: Tolerance::new(goes_on.verify, &ignored.verify),
            dump: options.error_dump,
            direct: options.direct,
            messages,
            worker,
        }
    }

    /// Whether the job goes on after wrong data, for which this errno stands.
    pub(super) fn tolerates_wrong_data(&self, errno: Errno) -> bool {
        self.verify.errnos.contains(&errno.0)
    }

    /// Whether wrong data is counted.
    pub(super) fn counts_wrong_data(&self) -> bool {
        self.verify.counts
    }

    /// The worker's number, for messages.
    pub(super) fn worker(&self) -> u32 {
        self.worker
    }

    /// To the controller.
    pub(super) fn messages(&self) -> &'a Socket {
        self.messages
    }

    fn of(&self, operation: Operation) -> &Tolerance {
        if operation == Operation::Read { &self.read } else { &self.write }
    }
}

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// The I/O of this unit failed. It counts as one that was done, without latency and bytes.
    #[cold]
    pub(super) fn io_failed(&mut self, index: u32, errno: Errno) {
        let attempt = Attempt::of(&self.units[index as usize]);
        let (errno, why) = match errno {
            NOTHING_MOVED => (Errno(libc::EIO), " (the file ends before)"),
            errno => (errno, ""),
        };
        if let Some(direction) = attempt.operation.direction() {
            self.stats.directions[direction.index()].ios.add(1);
        }
        if FULL {
            self.count_for_pace(index, 0);
            self.forget_role(index);
        }
        if FULL && let Some(blocks) = &mut self.extras.blocks {
            blocks.done(&attempt, true);
        }
        if self.rules.fill_device && errno.0 == libc::ENOSPC {
            self.tell(attempt, errno, why);
            self.device_full = true;
            self.stopping = true;
            return;
        }
        self.count_error(attempt.operation, errno);
        if !self.errors.of(attempt.operation).errnos.contains(&errno.0) {
            let is_first = self.failure.is_none();
            self.end_with(attempt, errno, why);
            if is_first && errno.0 == libc::EINVAL && self.errors.direct {
                self.advise(attempt, self.units[index as usize].buffer.addr() as u64);
            }
            return;
        }
        if self.errors.dump {
            self.tell(attempt, errno, why);
        }
        if self.stats.errors.get() == 1 {
            let what = failed_operation(&self.files.name(attempt.file), attempt.operation);
            Message::WentOn(self.errors.worker, errno.0, what).send(self.errors.messages);
        }
    }

    /// Something could not be done, and that ends the job.
    #[cold]
    pub(super) fn refused(&mut self, attempt: Attempt, errno: Errno) {
        self.end_with(attempt, errno, "");
    }

    fn end_with(&mut self, attempt: Attempt, errno: Errno, why: &str) {
        // A wait that was ended because the job is to stop is no failure.
        if errno.0 != libc::EINTR || !self.control.terminating() {
            self.tell(attempt, errno, why);
        }
        self.fail(Failure { errno, attempt: Some(attempt), missed: None });
    }

    /// Counts an error where errors of that kind are counted.
    pub(super) fn count_error(&self, operation: Operation, errno: Errno) {
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

    /// What to change so that the kernel takes a direct read or write like this one.
    fn advise(&self, attempt: Attempt, memory: u64) {
        let Attempt { operation, file, offset, length } = attempt;
        if !matches!(operation, Operation::Read | Operation::Write) {
            return;
        }
        let alignment = self.files.path(file).and_then(Alignment::of);
        let advice = Alignment::advice(alignment, offset, length, memory);
        let line = format!("direct I/O on file {}: {advice}", self.files.name(file));
        Message::Warning(self.errors.worker, line).send(self.errors.messages);
    }

    fn tell(&self, attempt: Attempt, errno: Errno, why: &str) {
        let line = io_error_line(&self.files.name(attempt.file), &attempt, errno, why);
        Message::Warning(self.errors.worker, line).send(self.errors.messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{ErrorKinds, IgnoredErrors};

    fn tolerances(kinds: ErrorKinds, read: &[i32], write: &[i32]) -> [Tolerance; 2] {
        let (_, socket) = Socket::pair().unwrap();
        let options = JobOptions {
            continue_on_error: kinds,
            ignore_error: IgnoredErrors { read: read.to_vec(), write: write.to_vec(), verify: vec![] },
            ..JobOptions::default()
        };
        let policy = ErrorPolicy::new(&options, &socket, 0);
        [policy.of(Operation::Read).clone(), policy.of(Operation::Sync).clone()]
    }

    #[test]
    fn errors_that_a_job_goes_on_after() {
        let none = Tolerance::default();
        let lost = Tolerance { counts: true, errnos: vec![libc::EIO, libc::EILSEQ] };
        let full = Tolerance { counts: true, errnos: vec![libc::ENOSPC] };
        assert_eq!(tolerances(ErrorKinds::NONE, &[], &[]), [none.clone(), none.clone()]);
        assert_eq!(tolerances(ErrorKinds::ALL, &[], &[]), [lost.clone(), lost.clone()]);
        // A list stands for itself, and for its kind only.
        assert_eq!(tolerances(ErrorKinds::NONE, &[], &[libc::ENOSPC]), [none, full.clone()]);
        assert_eq!(tolerances(ErrorKinds::ALL, &[], &[libc::ENOSPC]), [lost, full]);
    }
}
