//! Bytes in both directions: over a socket, or over two pipes (of a child process, or of a process that sshd has
//! started).
//!
//! System calls that move bytes never block here: descriptors are non-blocking, and poll(2) waits, with two limits. One
//! is how long the other end may let a single read or write wait (its *patience*); the other is a moment by which
//! something must be done, however the other end spreads its bytes (the *deadline*).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest single wait for a pipe: a pipe cannot be shut down, so its end is noticed only after this time.
const SLICE: Duration = Duration::from_millis(100);

/// How long the other end may take to read the last message.
pub(crate) const PARTING: Duration = Duration::from_secs(1);

/// Bytes in both directions.
#[derive(Debug)]
pub struct Stream {
    input: OwnedFd,
    /// `None` = the same as the input, which is a socket.
    output: Option<OwnedFd>,
    patience_ms: AtomicU64,
    /// The deadline, and the time that it allowed.
    deadline: Mutex<Option<(Instant, Duration)>>,
    /// The limit of reading; `None` = no limit.
    intake: Mutex<Option<Intake>>,
    has_ended: AtomicBool,
}

/// Limits how much is read from the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntakeLimit {
    /// The total.
    pub bytes: u64,
    /// The amount per second.
    pub per_second: u64,
}

/// How much has been read.
#[derive(Debug)]
struct Intake {
    limit: IntakeLimit,
    bytes: u64,
    /// The beginning of the current second, and how much was read in it.
    second: (Instant, u64),
}

impl Intake {
    /// How many bytes may be read now.
    ///
    /// # Errors
    /// The total limit has been reached.
    fn room(&mut self) -> io::Result<u64> {
        const SECOND: Duration = Duration::from_secs(1);
        let left = self.limit.bytes.saturating_sub(self.bytes);
        if left == 0 {
            let words = format!("the other end has sent too much (more than {} bytes)", self.limit.bytes);
            return Err(io::Error::other(words));
        }
        if self.second.1 >= self.limit.per_second {
            std::thread::sleep(SECOND.saturating_sub(self.second.0.elapsed()));
        }
        if self.second.0.elapsed() >= SECOND {
            self.second = (Instant::now(), 0);
        }
        Ok(left.min(self.limit.per_second - self.second.1))
    }

    fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.second.1 += bytes as u64;
    }
}

impl Stream {
    /// A stream over a socket.
    ///
    /// # Errors
    /// It cannot be made non-blocking.
    pub fn over_socket(socket: impl Into<OwnedFd>) -> io::Result<Stream> {
        Stream::new(socket.into(), None)
    }

    /// A stream that reads from one descriptor and writes to another: pipes, or standard input and output.
    ///
    /// # Errors
    /// They cannot be made non-blocking.
    pub fn over_pipes(input: impl Into<OwnedFd>, output: impl Into<OwnedFd>) -> io::Result<Stream> {
        Stream::new(input.into(), Some(output.into()))
    }

    fn new(input: OwnedFd, output: Option<OwnedFd>) -> io::Result<Stream> {
        for descriptor in [Some(&input), output.as_ref()].into_iter().flatten() {
            rustix::io::ioctl_fionbio(descriptor, true)?;
        }
        Ok(Stream {
            input,
            output,
            patience_ms: AtomicU64::new(u64::MAX),
            deadline: Mutex::new(None),
            intake: Mutex::new(None),
            has_ended: AtomicBool::new(false),
        })
    }

    /// How long one read or write may wait.
    pub fn set_patience(&self, patience: Duration) {
        self.patience_ms.store(patience.as_millis() as u64, SeqCst);
    }

    /// The deadline of all reads and writes; `None` = no deadline.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        let now = Instant::now();
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) =
            deadline.map(|deadline| (deadline, deadline.saturating_duration_since(now)));
    }

    /// Limits how much is read from here on. Data that arrives too fast waits.
    pub(crate) fn limit_intake(&self, limit: IntakeLimit) {
        let intake = Intake { limit, bytes: 0, second: (Instant::now(), 0) };
        *self.intake.lock().unwrap_or_else(PoisonError::into_inner) = Some(intake);
    }

    /// Ends it in both directions, and wakes all threads that wait for it.
    pub fn end(&self) {
        self.has_ended.store(true, SeqCst);
        if self.output.is_none() {
            // If it has ended already, nothing is left to do.
            let _ = rustix::net::shutdown(&self.input, Shutdown::Both);
        }
    }

    /// Ends it when the other end has read the last message and has ended it, too, or has had time for that.
    pub fn part(&self) {
        self.part_within(PARTING);
    }

    /// The same, with this much time.
    pub fn part_within(&self, patience: Duration) {
        if self.output.is_none() {
            let _ = rustix::net::shutdown(&self.input, Shutdown::Write);
            self.set_deadline(Some(Instant::now() + patience));
            let mut unread = [0; 4096];
            while matches!(self.read(&mut unread), Ok(1..)) {}
        }
        self.end();
    }

    /// Reads the available data, after waiting for some; 0 = the other end has closed it.
    ///
    /// # Errors
    /// The connection is lost, or no data has arrived in time.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let limit = self.begin();
        loop {
            if let Some(count) = self.read_now(bytes)? {
                return Ok(count);
            }
            self.wait_for_input(limit)?;
        }
    }

    /// Reads the available data; `None` = no data yet.
    ///
    /// # Errors
    /// The connection is lost, or too much was sent.
    pub fn read_now(&self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        if self.has_ended.load(SeqCst) {
            return Ok(Some(0));
        }
        let mut intake = self.intake.lock().unwrap_or_else(PoisonError::into_inner);
        let room = match &mut *intake {
            Some(intake) => usize::try_from(intake.room()?).unwrap_or(usize::MAX).min(bytes.len()),
            None => bytes.len(),
        };
        match rustix::io::read(&self.input, &mut bytes[..room]) {
            Ok(count) => {
                intake.iter_mut().for_each(|intake| intake.count(count));
                Ok(Some(count))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes as much as there is room for, after waiting for room.
    ///
    /// # Errors
    /// The connection is lost or ended, or the other end has taken no data in time.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let limit = self.begin();
        loop {
            if self.has_ended.load(SeqCst) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let written = match &self.output {
                None => rustix::net::send(&self.input, bytes, SendFlags::NOSIGNAL),
                Some(output) => rustix::io::write(output, bytes),
            };
            match written {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN | Errno::INTR) => self.wait(PollFlags::OUT, limit)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// As [`Stream::write`].
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Waits until data can be read or the stream has ended. Returns whether there is anything to read.
    pub fn is_readable_within(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            if self.has_ended.load(SeqCst) || self.poll(PollFlags::IN, until) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
        }
    }

    /// Whether a write would not wait.
    pub fn is_writable(&self) -> bool {
        self.poll(PollFlags::OUT, Instant::now())
    }

    /// The limit of a wait that begins now, and its reason.
    pub(crate) fn begin(&self) -> Limit {
        let now = Instant::now();
        let patience = Duration::from_millis(self.patience_ms.load(SeqCst));
        // Centuries from now means never.
        let patient = now.checked_add(patience).unwrap_or(now + Duration::from_secs(1 << 32));
        let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        match deadline {
            Some((deadline, given)) if deadline <= patient => {
                Limit { until: deadline, why: Why::Deadline(given) }
            }
            _ => Limit { until: patient, why: Why::Patience(patience) },
        }
    }

    /// Waits until data can be read, or the stream has ended.
    pub(crate) fn wait_for_input(&self, limit: Limit) -> io::Result<()> {
        self.wait(PollFlags::IN, limit)
    }

    fn wait(&self, what: PollFlags, Limit { until, why }: Limit) -> io::Result<()> {
        while !self.has_ended.load(SeqCst) {
            if self.poll(what, until) {
                return Ok(());
            }
            if Instant::now() >= until {
                let words = match why {
                    Why::Deadline(given) => {
                        format!("the other end has taken too long (more than {:.1}s)", given.as_secs_f64())
                    }
                    Why::Patience(patience) => format!("the other end was silent for {patience:?}"),
                };
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
        }
        Ok(())
    }

    /// Waits for these events at most until this moment, and for a pipe no longer than a slice. Returns whether one has
    /// occurred.
    fn poll(&self, what: PollFlags, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let patience = if self.output.is_some() { left.min(SLICE) } else { left };
        let timeout =
            Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        let descriptor = if what == PollFlags::OUT { self.output() } else { self.input.as_fd() };
        let mut polled = [PollFd::from_borrowed_fd(descriptor, what)];
        matches!(poll(&mut polled, Some(&timeout)), Ok(1))
    }

    fn output(&self) -> BorrowedFd<'_> {
        self.output.as_ref().unwrap_or(&self.input).as_fd()
    }
}

/// How long a wait may last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    until: Instant,
    why: Why,
}

/// The limit that ended a wait.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// The deadline, with the time that it allowed.
    Deadline(Duration),
    Patience(Duration),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    fn kinds() -> Vec<(Stream, Stream)> {
        let (one, other) = UnixStream::pair().unwrap();
        let (in_one, out_other) = io::pipe().unwrap();
        let (in_other, out_one) = io::pipe().unwrap();
        vec![
            (Stream::over_socket(one).unwrap(), Stream::over_socket(other).unwrap()),
            (Stream::over_pipes(in_one, out_one).unwrap(), Stream::over_pipes(in_other, out_other).unwrap()),
        ]
    }

    #[test]
    fn bytes_arrive_whatever_carries_them() {
        for (one, other) in kinds() {
            let long: Vec<u8> = (0..1 << 20).map(|index| (index % 251) as u8).collect();
            let mut read = vec![0; long.len()];
            thread::scope(|scope| {
                scope.spawn(|| one.write_all(&long).unwrap());
                let mut taken = 0;
                while taken < read.len() {
                    taken += other.read(&mut read[taken..]).unwrap();
                }
            });
            assert_eq!(read, long);
            assert!(!other.is_readable_within(Duration::ZERO));
            one.write_all(b"x").unwrap();
            assert!(other.is_readable_within(Duration::from_secs(60)));
        }
    }

    #[test]
    fn waits_have_an_end() {
        for (one, _other) in kinds() {
            let silent = |why: &str| {
                let error = one.read(&mut [0]).unwrap_err();
                assert!(
                    error.kind() == io::ErrorKind::TimedOut && error.to_string().contains(why),
                    "{error}"
                );
            };
            one.set_patience(Duration::from_millis(20));
            silent("silent for 20ms");
            one.set_patience(Duration::from_secs(60));
            one.set_deadline(Some(Instant::now()));
            silent("too long");
            // The other end does not read.
            let full = (0..1000).find_map(|_| one.write(&[0; 64 << 10]).err()).unwrap();
            assert_eq!(full.kind(), io::ErrorKind::TimedOut);
        }
    }

    #[test]
    fn read_bytes_and_rates_are_limited() {
        for (one, other) in kinds() {
            other.write_all(&[7; 30_000]).unwrap();
            one.limit_intake(IntakeLimit { bytes: 20_000, per_second: 1 << 20 });
            let mut read = 0;
            let error = loop {
                match one.read(&mut [0; 4096]) {
                    Ok(count) => read += count,
                    Err(error) => break error.to_string(),
                }
            };
            assert_eq!((read, error.contains("more than 20000 bytes")), (20_000, true), "{error}");
            // Data that arrives too fast waits.
            let begun = Instant::now();
            one.limit_intake(IntakeLimit { bytes: u64::MAX, per_second: 4000 });
            let mut read = 0;
            while read < 10_000 {
                read += one.read(&mut [0; 10_000]).unwrap();
                assert!(read as u64 <= 4000 * (1 + begun.elapsed().as_secs()));
            }
        }
    }

    #[test]
    fn a_waiting_reader_notices_the_end() {
        for (one, _other) in kinds() {
            thread::scope(|scope| {
                let waiting = scope.spawn(|| one.read(&mut [0]).unwrap());
                one.end();
                assert_eq!(waiting.join().unwrap(), 0);
            });
            assert_eq!(one.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        }
    }
}
