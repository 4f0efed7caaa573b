//! Units that threads of a library complete: each has a ticket, whose address the library passes back with the
//! completion.

use crate::completed_later::{Completer, Completions, answered_at};
use crate::{BufferLayout, Completion, Errno, LAST_WAIT, Outcome, Queued, StageEnds, Unit};
use iolite_os::time::monotonic_ns;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The kind of a unit, as far as its completion depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It reads all of its bytes.
    Read,
    /// It reads, and missing data reads as zeros.
    ReadOrZeros,
    /// It moves bytes, perhaps not all.
    Partly,
    /// It returns no byte count.
    Other,
}

/// A unit in flight, and its outcome.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Its kind.
    pub act: Act,
    /// Its memory.
    pub buffer: *mut u8,
    /// Its bytes.
    pub length: u64,
    /// The index of its file.
    pub file: u32,
    /// The library's result.
    pub result: i64,
    /// The error number; 0 = success.
    pub errno: i32,
    /// `CLOCK_MONOTONIC` when the library completed it; 0 = it has not.
    answered: u64,
}

/// The ticket of a unit.
pub struct Ticket {
    completer: Completer,
    unit: u32,
    flight: UnsafeCell<Flight>,
}

// SAFETY: the flight belongs to the worker until the library has the ticket, then to the thread that completes the unit, and
// to the worker again when the unit is reaped; both ways go through atomics or locks.
unsafe impl Sync for Ticket {}
// SAFETY: as above; the buffer is the unit's, and moves with it.
unsafe impl Send for Ticket {}

/// The part of [`Engine`](crate::Engine) for engines whose units have tickets, in `self.tickets`.
#[macro_export]
macro_rules! has_tickets {
    () => {
        fn prepare(&mut self, layout: &$crate::BufferLayout) -> Result<(), $crate::EngineError> {
            self.tickets.prepare(layout);
            Ok(())
        }

        fn reap(
            &mut self,
            min: usize,
            max: usize,
            timeout: Option<std::time::Duration>,
            done: &mut Vec<$crate::Completion>,
        ) -> Result<(), $crate::Errno> {
            self.tickets.reap(min, max, timeout, done)
        }

        fn stop_repeating(&mut self) {
            self.tickets.stop();
        }

        fn stage_ends(&self, unit: u32) -> Option<$crate::StageEnds> {
            self.tickets.stage_ends(unit)
        }
    };
}
pub use crate::has_tickets;

/// The tickets of all units of a worker.
pub struct Tickets {
    completions: Option<Completions>,
    all: Box<[Ticket]>,
    /// The worker polls for completions without sleeping.
    busy_poll: bool,
    /// When the job was asked to end.
    stops: Option<Instant>,
    /// The library still has units that the worker has abandoned.
    is_given_up: bool,
}

/// A library may use memory of units for ever.
static LENT: AtomicBool = AtomicBool::new(false);

/// Whether an abandoned library may still use buffers of this process: then they must not be freed.
pub fn has_lent_memory() -> bool {
    LENT.load(Relaxed)
}

/// A library was abandoned with units in flight.
pub fn lend_memory() {
    LENT.store(true, Relaxed);
}

/// A worker that polls without sleeping does other work after this time without a completion.
const SPELL: Duration = Duration::from_millis(10);

impl Tickets {
    /// Without tickets: `prepare` creates them when their number is known.
    pub fn new(busy_poll: bool) -> Tickets {
        Tickets { completions: None, all: Box::default(), busy_poll, stops: None, is_given_up: false }
    }

    /// Creates a ticket for each unit that has a buffer.
    pub fn prepare(&mut self, layout: &BufferLayout) {
        let completions = Completions::new(layout.count.max(layout.depth));
        let blank = Flight {
            act: Act::Other,
            buffer: std::ptr::null_mut(),
            length: 0,
            file: 0,
            result: 0,
            errno: 0,
            answered: 0,
        };
        let ticket =
            |unit| Ticket { completer: completions.completer(), unit, flight: UnsafeCell::new(blank) };
        self.all = (0..layout.count.max(layout.depth) as u32).map(ticket).collect();
        self.completions = Some(completions);
    }

    /// The unit is about to be handed to the library, which passes this ticket back on completion.
    ///
    /// # Errors
    /// There is no such unit, or the library was abandoned.
    pub fn begin(&mut self, unit: &Unit, act: Act) -> Result<*const Ticket, Errno> {
        if self.is_given_up {
            return Err(Errno(libc::ETIMEDOUT));
        }
        let ticket = self.all.get(unit.index as usize).ok_or(Errno(libc::EINVAL))?;
        let flight = Flight {
            act,
            buffer: unit.buffer,
            length: unit.length,
            file: unit.file,
            result: 0,
            errno: 0,
            answered: 0,
        };
        // SAFETY: the unit is not in flight, so nothing else accesses it.
        unsafe { *ticket.flight.get() = flight };
        self.completions.as_mut().ok_or(Errno(libc::EINVAL))?.begin(unit.index);
        Ok(ticket)
    }

    /// The library has refused the unit (a negated error number). `None` = it has called back nevertheless, so the unit
    /// will be reaped.
    fn refused(&mut self, unit: u32, result: i32) -> Option<Errno> {
        let (Some(ticket), Some(completions)) = (self.all.get(unit as usize), &mut self.completions) else {
            return Some(Errno(libc::EINVAL));
        };
        if !completions.take_back(unit) {
            return None;
        }
        let errno = -result;
        // SAFETY: it was taken back, so nothing else accesses it.
        unsafe { (*ticket.flight.get()).errno = errno };
        Some(Errno(errno))
    }

    /// The answer to [`Engine::queue`](crate::Engine::queue) for a unit that was passed to the library. If the
    /// library has refused it, with this negative result, `release` frees what the callback would have freed.
    pub fn answer<T>(
        &mut self,
        unit: u32,
        submitted: Result<(), (i32, T)>,
        release: impl FnOnce(T),
    ) -> Queued {
        match submitted {
            Ok(()) => Queued::Queued,
            Err((result, rest)) => match self.refused(unit, result) {
                Some(errno) => {
                    release(rest);
                    Queued::Completed(Err(errno))
                }
                None => Queued::Queued,
            },
        }
    }

    /// As [`Engine::reap`](crate::Engine::reap).
    ///
    /// # Errors
    /// Waiting failed, or was interrupted (`EINTR`).
    pub fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let Some(stops) = self.stops else { return self.reap_within(min, max, timeout, done) };
        let (before, left) = (done.len(), LAST_WAIT.saturating_sub(stops.elapsed()));
        let limit = timeout.map_or(left, |timeout| timeout.min(left));
        self.reap_within(min, max, Some(limit), done)?;
        if done.len() == before && stops.elapsed() >= LAST_WAIT {
            self.give_up(done);
        }
        Ok(())
    }

    fn reap_within(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let Some(completions) = &mut self.completions else { return Ok(()) };
        if !self.busy_poll || min == 0 {
            return completions.reap(min, max, timeout, done);
        }
        let (before, wanted) = (done.len(), min.min(max).min(completions.in_flight()));
        let end = Instant::now() + timeout.map_or(SPELL, |timeout| timeout.min(SPELL));
        loop {
            let missing = max - (done.len() - before);
            completions.reap(0, missing, None, done)?;
            if done.len() - before >= wanted || Instant::now() >= end {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    /// The job has been asked to end: from now on, units in flight have limited time.
    pub fn stop(&mut self) {
        self.stops.get_or_insert_with(Instant::now);
    }

    /// Abandons units that the library does not complete. The library may continue with them at any time: tickets and
    /// buffers stay in place until the process ends.
    fn give_up(&mut self, done: &mut Vec<Completion>) {
        let Some(completions) = &mut self.completions else { return };
        for unit in 0..self.all.len() as u32 {
            if completions.take_back(unit) {
                self.is_given_up = true;
                lend_memory();
                done.push(Completion { unit, outcome: Err(Errno(libc::ETIMEDOUT)) });
            }
        }
    }

    /// Why units were abandoned; `None` = none were.
    pub fn why_given_up(&self) -> Option<String> {
        self.is_given_up
            .then(|| format!("no answer in {} s after the job was asked to end", LAST_WAIT.as_secs()))
    }

    /// Waits, but not for ever, until the library has completed all units. False = it has not: then nothing that it
    /// uses may be freed.
    pub fn drain(&mut self) -> bool {
        self.stop();
        let mut done = Vec::new();
        while self.completions.as_ref().is_some_and(|completions| completions.in_flight() > 0) {
            if self.reap(1, usize::MAX, None, &mut done).is_err() {
                self.give_up(&mut done);
            }
            done.clear();
        }
        !self.is_given_up
    }

    /// Leaves tickets in place for the library, which may use them until the process ends.
    pub fn leave(&mut self) {
        std::mem::forget(std::mem::replace(self, Tickets::new(false)));
    }

    /// As [`Engine::stage_ends`](crate::Engine::stage_ends).
    pub fn stage_ends(&self, unit: u32) -> Option<StageEnds> {
        answered_at(self.flight(unit)?.answered)
    }

    /// The outcome of a unit that is not in flight; `None` = unknown.
    pub fn flight(&self, unit: u32) -> Option<Flight> {
        if self.is_given_up {
            return None;
        }
        // SAFETY: the caller has reaped the unit.
        self.all.get(unit as usize).map(|ticket| unsafe { *ticket.flight.get() })
    }
}

impl Ticket {
    /// The library has completed the unit: bytes, or a negated error number. Called once for each accepted unit, by a
    /// thread of the library.
    pub fn complete(&self, result: i64) {
        // SAFETY: until the unit is complete, its flight belongs to this thread.
        let flight = unsafe { &mut *self.flight.get() };
        flight.result = result;
        flight.answered = monotonic_ns();
        // SAFETY: the unit's buffer is valid until it is complete.
        let outcome = unsafe { flight.outcome() };
        flight.errno = outcome.map_or_else(|Errno(number)| number, |_| 0);
        // From here on the flight belongs to the worker again. The ticket exists until the library has no more threads.
        self.completer.complete(self.unit, outcome);
    }
}

impl Flight {
    /// The outcome of the unit. Fills the unread part of the buffer with zeros.
    ///
    /// # Safety
    /// The buffer is valid for the unit's length.
    unsafe fn outcome(&self) -> Outcome {
        let errno = |result: i64| Errno(i32::try_from(-result).unwrap_or(libc::EIO));
        let read = match (self.act, self.result) {
            (Act::Other, 0..) => return Ok(self.length),
            (Act::ReadOrZeros, result) if result == -i64::from(libc::ENOENT) => 0,
            (_, result) if result < 0 => return Err(errno(result)),
            (Act::Partly, result) => return Ok((result as u64).min(self.length)),
            (_, result) => (result as u64).min(self.length),
        };
        match self.act {
            _ if read == self.length => {}
            Act::ReadOrZeros => {
                // SAFETY: the caller promises that the buffer is valid for this.
                unsafe { self.buffer.add(read as usize).write_bytes(0, (self.length - read) as usize) };
            }
            Act::Read | Act::Partly | Act::Other => return Err(Errno(libc::ENODATA)),
        }
        Ok(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(act: Act, result: i64) -> (Outcome, [u8; 4]) {
        let mut buffer = [7; 4];
        let flight =
            Flight { act, buffer: buffer.as_mut_ptr(), length: 4, file: 0, result, errno: 0, answered: 0 };
        // SAFETY: the buffer is as long as the flight says.
        (unsafe { flight.outcome() }, buffer)
    }

    #[test]
    fn a_unit_that_is_refused_and_completed_ends_once() {
        let mut tickets = Tickets::new(false);
        let layout = BufferLayout { start: 8 as *mut u8, stride: 0, count: 2, depth: 2, files: 1 };
        tickets.prepare(&layout);
        let unit = Unit {
            buffer: std::ptr::null_mut(),
            length: 4,
            offset: 0,
            index: 0,
            file: 0,
            operation: iolite_types::Operation::Write,
            priority: 0,
        };
        assert!(tickets.begin(&unit, Act::Other).is_ok());
        assert_eq!(tickets.refused(0, -libc::EIO), Some(Errno(libc::EIO)));
        let ticket = tickets.begin(&unit, Act::Other).unwrap();
        // SAFETY: the ticket is there.
        unsafe { (*ticket).complete(0) };
        assert_eq!(tickets.refused(0, -libc::EIO), None);
        let mut done = Vec::new();
        tickets.reap(0, 2, None, &mut done).unwrap();
        assert_eq!((done.len(), done[0].outcome), (1, Ok(4)));
        tickets.reap(0, 2, None, &mut done).unwrap();
        assert_eq!(done.len(), 1);
    }

    #[test]
    fn a_library_that_never_answers_hangs_nobody() {
        let mut tickets = Tickets::new(false);
        let layout = BufferLayout { start: 8 as *mut u8, stride: 0, count: 2, depth: 2, files: 1 };
        tickets.prepare(&layout);
        let unit = |index| Unit {
            buffer: std::ptr::null_mut(),
            length: 4,
            offset: 0,
            index,
            file: 0,
            operation: iolite_types::Operation::Write,
            priority: 0,
        };
        let first = tickets.begin(&unit(0), Act::Other).unwrap();
        let second = tickets.begin(&unit(1), Act::Other).unwrap();
        // SAFETY: the ticket is there.
        unsafe { (*first).complete(0) };
        // It was asked to end long ago.
        tickets.stops = Instant::now().checked_sub(LAST_WAIT);
        let mut done = Vec::new();
        tickets.reap(1, 2, None, &mut done).unwrap();
        assert_eq!((done.len(), tickets.why_given_up()), (1, None), "what is complete is told first");
        tickets.reap(1, 2, None, &mut done).unwrap();
        assert_eq!((done.len(), done[1].outcome), (2, Err(Errno(libc::ETIMEDOUT))));
        assert!(tickets.why_given_up().unwrap().starts_with("no answer in 10 s"));
        assert!(tickets.begin(&unit(0), Act::Other).is_err() && !tickets.drain() && has_lent_memory());
        // SAFETY: the ticket is there. It comes too late.
        unsafe { (*second).complete(0) };
        tickets.reap(0, 2, Some(Duration::ZERO), &mut done).unwrap();
        assert_eq!(done.len(), 2);
        tickets.leave();
    }

    #[test]
    fn missing_data_is_an_error_or_read_as_zeros() {
        let missing = -i64::from(libc::ENOENT);
        assert_eq!(outcome(Act::Read, 4), (Ok(4), [7; 4]));
        assert_eq!(outcome(Act::Read, 1), (Err(Errno(libc::ENODATA)), [7; 4]));
        assert_eq!(outcome(Act::Read, missing), (Err(Errno(libc::ENOENT)), [7; 4]));
        assert_eq!(outcome(Act::ReadOrZeros, 1), (Ok(4), [7, 0, 0, 0]));
        assert_eq!(outcome(Act::ReadOrZeros, missing), (Ok(4), [0; 4]));
        assert_eq!(outcome(Act::ReadOrZeros, -5), (Err(Errno(5)), [7; 4]));
        assert_eq!(outcome(Act::Partly, 3), (Ok(3), [7; 4]));
        assert_eq!(outcome(Act::Partly, missing), (Err(Errno(libc::ENOENT)), [7; 4]));
        assert_eq!(outcome(Act::Other, 0), (Ok(4), [7; 4]));
        assert_eq!(outcome(Act::Other, -28), (Err(Errno(libc::ENOSPC)), [7; 4]));
    }
}
