//! Units that threads of a library complete: each has a ticket, whose address the library gives back with the completion.

use crate::{BufferLayout, Completer, Completion, Completions, EngineError, Errno, Outcome, Unit};
use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

/// What a unit is about to do, as far as its completion has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// It reads all of its bytes.
    Read,
    /// It reads, and what is not there is zeros.
    ReadOrZeros,
    /// It answers no bytes.
    Other,
}

/// A unit in flight, and what became of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) act: Act,
    pub(crate) buffer: *mut u8,
    pub(crate) length: u64,
    pub(crate) file: u32,
    /// What the library said.
    pub(crate) result: i64,
    /// The error number; 0 = it went well.
    pub(crate) errno: i32,
}

/// The ticket of a unit.
pub(crate) struct Ticket {
    completer: Completer,
    unit: u32,
    flight: UnsafeCell<Flight>,
}

// SAFETY: the flight belongs to the worker until the library has the ticket, then to the thread that completes the unit, and
// to the worker again when the unit is reaped; both ways go through atomics or locks.
unsafe impl Sync for Ticket {}
// SAFETY: as above; the buffer is the unit's, and moves with it.
unsafe impl Send for Ticket {}

/// The tickets of all units of a worker.
pub(crate) struct Tickets {
    completions: Option<Completions>,
    all: Box<[Ticket]>,
    /// Completions are looked for without sleeping.
    busy_poll: bool,
}

/// After this time without a completion a worker that does not sleep looks for something else to do.
const SPELL: Duration = Duration::from_millis(10);

impl Tickets {
    /// None yet: what there is room for is known when they are prepared.
    pub(crate) fn new(busy_poll: bool) -> Tickets {
        Tickets { completions: None, all: Box::default(), busy_poll }
    }

    /// One for each unit that has a buffer.
    pub(crate) fn prepare(&mut self, engine: &'static str, layout: &BufferLayout) -> Result<(), EngineError> {
        let refused = |source| EngineError::System { engine, call: "eventfd", source };
        let completions = Completions::new(layout.count.max(layout.depth)).map_err(refused)?;
        let blank =
            Flight { act: Act::Other, buffer: std::ptr::null_mut(), length: 0, file: 0, result: 0, errno: 0 };
        let ticket =
            |unit| Ticket { completer: completions.completer(), unit, flight: UnsafeCell::new(blank) };
        self.all = (0..layout.count.max(layout.depth) as u32).map(ticket).collect();
        self.completions = Some(completions);
        Ok(())
    }

    /// The unit is about to be handed to the library, which gives this back when it is done.
    ///
    /// # Errors
    /// There is no such unit.
    pub(crate) fn begin(&mut self, unit: &Unit, act: Act) -> Result<*const Ticket, Errno> {
        let ticket = self.all.get(unit.index as usize).ok_or(Errno(libc::EINVAL))?;
        let flight =
            Flight { act, buffer: unit.buffer, length: unit.length, file: unit.file, result: 0, errno: 0 };
        // SAFETY: the unit is not in flight, so nobody else looks at it.
        unsafe { *ticket.flight.get() = flight };
        self.completions.as_mut().ok_or(Errno(libc::EINVAL))?.begin(unit.index);
        Ok(ticket)
    }

    /// The library has not taken it (a negated error number).
    pub(crate) fn refused(&mut self, unit: u32, result: i32) -> Errno {
        let (Some(ticket), Some(completions)) = (self.all.get(unit as usize), &mut self.completions) else {
            return Errno(libc::EINVAL);
        };
        completions.take_back(unit);
        let errno = -result;
        // SAFETY: it was taken back, so nobody else looks at it.
        unsafe { (*ticket.flight.get()).errno = errno };
        Errno(errno)
    }

    /// As [`Engine::reap`](crate::Engine::reap).
    pub(crate) fn reap(
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

    /// Waits until the library has done everything that it was asked.
    pub(crate) fn drain(&mut self) {
        let Some(completions) = &mut self.completions else { return };
        let mut done = Vec::new();
        while completions.in_flight() > 0 {
            if completions.reap(1, usize::MAX, None, &mut done).is_err() {
                return;
            }
            done.clear();
        }
    }

    /// What became of a unit that is not in flight.
    pub(crate) fn flight(&self, unit: u32) -> Option<Flight> {
        // SAFETY: whoever asks has reaped the unit.
        self.all.get(unit as usize).map(|ticket| unsafe { *ticket.flight.get() })
    }
}

impl Ticket {
    /// The library is done with the unit: bytes, or a negated error number. Called once for each unit that it has taken, by a
    /// thread of the library.
    pub(crate) fn complete(&self, result: i64) {
        // SAFETY: until the unit is complete, its flight belongs to this thread.
        let flight = unsafe { &mut *self.flight.get() };
        flight.result = result;
        // SAFETY: the unit's buffer is valid until it is complete.
        let outcome = unsafe { flight.outcome() };
        flight.errno = outcome.map_or_else(|Errno(number)| number, |_| 0);
        // From here on the flight is the worker's again. The ticket is there until the library has no more threads.
        self.completer.complete(self.unit, outcome);
    }
}

impl Flight {
    /// What became of the unit. Zeros are put where nothing was read.
    ///
    /// # Safety
    /// The buffer is valid for the unit's length.
    unsafe fn outcome(&self) -> Outcome {
        let errno = |result: i64| Errno(i32::try_from(-result).unwrap_or(libc::EIO));
        let read = match (self.act, self.result) {
            (Act::Other, 0..) => return Ok(self.length),
            (Act::ReadOrZeros, result) if result == -i64::from(libc::ENOENT) => 0,
            (_, result) if result < 0 => return Err(errno(result)),
            (_, result) => (result as u64).min(self.length),
        };
        match self.act {
            _ if read == self.length => {}
            Act::ReadOrZeros => {
                // SAFETY: the caller promises that the buffer is valid for this.
                unsafe { self.buffer.add(read as usize).write_bytes(0, (self.length - read) as usize) };
            }
            Act::Read | Act::Other => return Err(Errno(libc::ENODATA)),
        }
        Ok(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(act: Act, result: i64) -> (Outcome, [u8; 4]) {
        let mut buffer = [7; 4];
        let flight = Flight { act, buffer: buffer.as_mut_ptr(), length: 4, file: 0, result, errno: 0 };
        // SAFETY: the buffer is as long as the flight says.
        (unsafe { flight.outcome() }, buffer)
    }

    #[test]
    fn what_is_not_there_is_an_error_or_zeros() {
        let missing = -i64::from(libc::ENOENT);
        assert_eq!(outcome(Act::Read, 4), (Ok(4), [7; 4]));
        assert_eq!(outcome(Act::Read, 1), (Err(Errno(libc::ENODATA)), [7; 4]));
        assert_eq!(outcome(Act::Read, missing), (Err(Errno(libc::ENOENT)), [7; 4]));
        assert_eq!(outcome(Act::ReadOrZeros, 1), (Ok(4), [7, 0, 0, 0]));
        assert_eq!(outcome(Act::ReadOrZeros, missing), (Ok(4), [0; 4]));
        assert_eq!(outcome(Act::ReadOrZeros, -5), (Err(Errno(5)), [7; 4]));
        assert_eq!(outcome(Act::Other, 0), (Ok(4), [7; 4]));
        assert_eq!(outcome(Act::Other, -28), (Err(Errno(libc::ENOSPC)), [7; 4]));
    }
}
