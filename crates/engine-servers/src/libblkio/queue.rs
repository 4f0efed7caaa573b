//! A queue of the device, as its only user sees it: requests go in, and completions come out.

use super::instance::{Instance, Refusal};
use super::library::{FUA, Library, RawCompletion, RawQueue, text};
use crate::server_timeout::ServerTimeout;
use iolite_engine::by_index::Reasons;
use iolite_engine::completed_later::lend_memory;
use iolite_engine::{Completion, Errno, Unit, is_asked_to_stop};
use iolite_options::engines::{BlkioWait, LibblkioOptions};
use iolite_os::explained;
use iolite_types::Operation;
use libc::{c_int, c_void};
use std::io;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest wait until the next look for signals, a silent device, and the end of the job.
const SLICE: Duration = Duration::from_millis(100);

const CANNOT_DISCARD: &str = "the driver cannot discard blocks here; libblkio_write_zeroes_on_trim writes zeros instead, \
                              which may give space back as well";

/// How a queue is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    wait: BlkioWait,
    is_vectored: bool,
    trims_by_zeros: bool,
    announces: bool,
}

impl Use {
    pub(super) fn of(options: &LibblkioOptions) -> Use {
        let wait = options.libblkio_wait_mode;
        Use {
            wait,
            is_vectored: options.libblkio_vectored,
            trims_by_zeros: options.libblkio_write_zeroes_on_trim,
            announces: wait == BlkioWait::Eventfd || options.libblkio_force_enable_completion_eventfd,
        }
    }
}

/// A queue.
pub(super) struct Queue {
    library: &'static Library,
    instance: Arc<Instance>,
    raw: *mut RawQueue,
    how: Use,
    /// Room for completions.
    completions: Box<[RawCompletion]>,
    /// The length of each unit in flight, and its data, which a vectored request refers to until it is complete.
    flights: Box<[Flight]>,
    in_flight: usize,
    /// The mark of the unit 0: a request has the mark of its unit, by which its completion is known.
    first_mark: usize,
    /// Nothing has been completed since `silence` heard the device last.
    is_quiet: bool,
    pub(super) silence: ServerTimeout,
    /// Why the device can no longer be used.
    failure: Option<(i32, String)>,
    /// Why units have failed.
    pub(super) reasons: Reasons,
}

#[derive(Clone, Copy)]
struct Flight {
    is_open: bool,
    is_discard: bool,
    length: u64,
    vector: libc::iovec,
}

impl Queue {
    /// The queue, for units with an index below `units`.
    pub(super) fn new(
        instance: Arc<Instance>,
        library: &'static Library,
        raw: *mut RawQueue,
        how: Use,
        units: usize,
        silence: ServerTimeout,
    ) -> Queue {
        if how.announces {
            // SAFETY: the queue exists.
            unsafe { (library.announce)(raw, true) };
        }
        let mut queue = Queue {
            library,
            instance,
            raw,
            how,
            completions: Box::default(),
            flights: Box::default(),
            in_flight: 0,
            first_mark: 0,
            is_quiet: false,
            silence,
            failure: None,
            reasons: Reasons::with_room(units),
        };
        queue.grow(units);
        queue
    }

    /// Makes room for more units. Nothing is in flight.
    pub(super) fn grow(&mut self, units: usize) {
        let vector = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        self.completions = vec![RawCompletion::NONE; units].into();
        let flight = Flight { is_open: false, is_discard: false, length: 0, vector };
        self.flights = vec![flight; units].into();
    }

    /// From now on, requests have marks from this number on. Nothing is in flight.
    pub(super) fn mark_from(&mut self, first: usize) {
        self.first_mark = first;
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Why the device can no longer be used.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_ref().map(|(_, words)| words.as_str())
    }

    /// From now on, a device without a time limit has limited time.
    pub(super) fn hurry(&mut self) {
        self.silence.hurry();
    }

    /// Makes a request of a unit. `is_stable`: a write is on stable storage when it is complete.
    ///
    /// # Errors
    /// The device can no longer be used, or there is no such unit.
    ///
    /// # Safety
    /// As [`Engine::queue`](iolite_engine::Engine::queue).
    pub(super) unsafe fn request(&mut self, unit: &Unit, is_stable: bool) -> Result<(), Errno> {
        if let Some((errno, _)) = &self.failure {
            return Err(Errno(*errno));
        }
        let (lib, queue, &Unit { offset, length, .. }) = (self.library, self.raw, unit);
        let flight = self.flights.get_mut(unit.index as usize).ok_or(Errno(libc::EINVAL))?;
        let count = length as usize;
        let is_discard = unit.operation == Operation::Trim && !self.how.trims_by_zeros;
        let vector = libc::iovec { iov_base: unit.buffer.cast(), iov_len: count };
        *flight = Flight { is_open: true, is_discard, length, vector };
        let (vector, data) = (&raw const flight.vector, unit.buffer.cast::<c_void>());
        let mark = ptr::without_provenance_mut::<c_void>(self.first_mark.wrapping_add(unit.index as usize));
        let flags = if is_stable { FUA } else { 0 };
        // SAFETY: the queue has no other user. The caller keeps the buffer valid until the unit is complete, and the vector
        // stays where it is.
        unsafe {
            match unit.operation {
                Operation::Read if self.how.is_vectored => (lib.readv)(queue, offset, vector, 1, mark, 0),
                Operation::Read => (lib.read)(queue, offset, data, count, mark, 0),
                Operation::Write if self.how.is_vectored => {
                    (lib.writev)(queue, offset, vector, 1, mark, flags)
                }
                Operation::Write => (lib.write)(queue, offset, data, count, mark, flags),
                Operation::Trim if self.how.trims_by_zeros => {
                    (lib.write_zeroes)(queue, offset, length, mark, 0)
                }
                Operation::Trim => (lib.discard)(queue, offset, length, mark, 0),
                _ => {
                    flight.length = 0;
                    (lib.flush)(queue, mark, 0);
                }
            }
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Hands the requests so far to the device.
    ///
    /// # Errors
    /// The library cannot do that.
    pub(super) fn submit(&mut self) -> Result<(), Errno> {
        if self.failure.is_some() {
            return Ok(());
        }
        // SAFETY: there is no room for completions, and none is asked for.
        match unsafe { (self.library.do_io)(self.raw, ptr::null_mut(), 0, 0, ptr::null_mut()) } {
            0.. => Ok(()),
            result => Err(Errno(-result)),
        }
    }

    /// As [`Engine::reap`](iolite_engine::Engine::reap). May return with fewer than `min` after a while without completions.
    ///
    /// # Errors
    /// The library cannot go on.
    pub(super) fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let before = done.len();
        let wanted = min.min(max).min(self.in_flight);
        let end = match timeout {
            Some(timeout) if wanted > 0 && !timeout.is_zero() => Instant::now().checked_add(timeout),
            Some(_) => None,
            None => None,
        };
        loop {
            let (room, missing) = (max - (done.len() - before), wanted.saturating_sub(done.len() - before));
            let left = match end {
                _ if missing == 0 || timeout == Some(Duration::ZERO) => Duration::ZERO,
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => SLICE,
            };
            let found = if self.failure.is_none() { self.look(room, left.min(SLICE), done)? } else { 0 };
            if found == 0 && self.in_flight > 0 {
                self.check();
                self.fail_all(room, done);
                return Ok(());
            }
            self.is_quiet = false;
            if done.len() - before >= wanted {
                return Ok(());
            }
        }
    }

    /// Submits, waits up to this time for a completion, and takes what is there.
    fn look(&mut self, room: usize, wait: Duration, done: &mut Vec<Completion>) -> Result<usize, Errno> {
        if wait.is_zero() {
            return self.take(room, None, done);
        }
        match self.how.wait {
            BlkioWait::Block => self.take(room, Some(wait), done),
            BlkioWait::Eventfd => {
                let found = self.take(room, None, done)?;
                if found > 0 {
                    return Ok(found);
                }
                self.wait_for_event(wait);
                self.take(room, None, done)
            }
            BlkioWait::Loop => {
                let begun = Instant::now();
                loop {
                    for _ in 0..64 {
                        let found = self.take(room, None, done)?;
                        if found > 0 {
                            return Ok(found);
                        }
                        std::hint::spin_loop();
                    }
                    if begun.elapsed() >= wait {
                        return Ok(0);
                    }
                }
            }
        }
    }

    /// Takes completions from the library, which waits up to this time for the first one.
    fn take(
        &mut self,
        room: usize,
        wait: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, Errno> {
        let most = room.min(self.completions.len()) as c_int;
        let mut time = wait.map(|wait| libc::timespec {
            tv_sec: wait.as_secs() as libc::time_t,
            tv_nsec: wait.subsec_nanos().into(),
        });
        let limit = time.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        let least = c_int::from(wait.is_some() && most > 0);
        // SAFETY: there is room for as many completions, and the time is valid through the call.
        let found =
            unsafe { (self.library.do_io)(self.raw, self.completions.as_mut_ptr(), least, most, limit) };
        match -found {
            ..=0 => {}
            libc::ETIME | libc::EINTR => return Ok(0),
            errno => return Err(Errno(errno)),
        }
        for index in 0..found as usize {
            let RawCompletion { data, words, result, .. } = self.completions[index];
            let index = data.addr().wrapping_sub(self.first_mark);
            let Some(flight) = self.flights.get_mut(index).filter(|flight| flight.is_open) else {
                continue;
            };
            let unit = index as u32;
            flight.is_open = false;
            self.in_flight -= 1;
            let outcome = if result < 0 { Err(Errno(-result)) } else { Ok(flight.length) };
            if result < 0 {
                // SAFETY: the library's text is valid until its next call about this queue.
                let words = unsafe { text(words) };
                let cannot = flight.is_discard && result == -libc::EOPNOTSUPP;
                let words = if cannot { Some(CANNOT_DISCARD.to_owned()) } else { words };
                self.reasons.take(unit);
                words.into_iter().for_each(|words| self.reasons.note(unit, &words));
            }
            done.push(Completion { unit, outcome });
        }
        Ok(found as usize)
    }

    /// Waits until the library announces completions.
    fn wait_for_event(&self, wait: Duration) {
        // SAFETY: the queue exists.
        let fd = unsafe { (self.library.descriptor)(self.raw) };
        let mut watched = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // (Rounded up: a poll of 0 ms would not wait.)
        let ms = wait.as_nanos().div_ceil(1_000_000) as c_int;
        let mut event = 0_u64;
        // SAFETY: there is one descriptor, which does not block, and there is room for the event.
        unsafe {
            if libc::poll(&raw mut watched, 1, ms) > 0 {
                libc::read(fd, (&raw mut event).cast(), size_of_val(&event));
            }
        }
    }

    /// Nothing was completed: has the device been silent for too long, or is it gone?
    fn check(&mut self) {
        if self.failure.is_some() {
            return;
        }
        if !self.is_quiet {
            self.is_quiet = true;
            self.silence.hears();
        }
        let name = &self.instance.name;
        if self.instance.is_gone() {
            let words =
                format!("{name}: the connection was lost: the process that serves the device is gone");
            self.failure = Some((libc::ENOTCONN, words));
        } else if self.silence.is_too_long() {
            self.failure = Some((libc::ETIMEDOUT, format!("{name}: {}", self.silence.words())));
        }
    }

    /// If the device can no longer be used, fails up to `most` units in flight. (The device may still use their memory.)
    fn fail_all(&mut self, most: usize, done: &mut Vec<Completion>) {
        let Some((errno, _)) = self.failure else { return };
        let open = self.flights.iter_mut().enumerate().filter(|(_, flight)| flight.is_open);
        for (unit, flight) in open.take(most) {
            flight.is_open = false;
            self.in_flight -= 1;
            self.reasons.take(unit as u32);
            done.push(Completion { unit: unit as u32, outcome: Err(Errno(errno)) });
        }
        self.instance.abandon();
        lend_memory();
    }

    /// Performs one request, and waits for it. Nothing else is in flight.
    ///
    /// # Errors
    /// The device refuses it, is silent for too long, or is gone.
    ///
    /// # Safety
    /// The buffer of the unit is valid for its length, also if the device is silent.
    pub(super) unsafe fn perform(&mut self, unit: &Unit, is_stable: bool) -> Result<(), Refusal> {
        let mut done = Vec::with_capacity(1);
        // SAFETY: the caller promises that.
        let requested = unsafe { self.request(unit, is_stable) };
        requested.map_err(|Errno(errno)| (errno, self.words(unit.index).unwrap_or_default()))?;
        while done.is_empty() {
            if is_asked_to_stop() {
                self.hurry();
            }
            self.reap(1, 1, None, &mut done)
                .map_err(|Errno(errno)| (errno, "the library failed".to_owned()))?;
        }
        match done[0].outcome {
            Ok(_) => Ok(()),
            Err(Errno(errno)) => Err((errno, self.words(unit.index).unwrap_or_default())),
        }
    }

    /// Why a unit has failed.
    pub(super) fn words(&self, unit: u32) -> Option<String> {
        self.failure().map(str::to_owned).or_else(|| self.reasons.explain(unit))
    }

    /// Waits for what is in flight, but not for ever.
    pub(super) fn drain(&mut self) {
        let mut done = Vec::new();
        self.hurry();
        while self.in_flight > 0 && self.reap(1, usize::MAX, None, &mut done).is_ok() {
            done.clear();
        }
        if self.in_flight > 0 {
            self.instance.abandon();
            lend_memory();
        }
    }
}

/// A refusal as an error of the system, with its words.
pub(super) fn error_of((errno, words): Refusal) -> io::Error {
    let error = io::Error::from_raw_os_error(errno);
    if words.is_empty() { error } else { explained(&error, words) }
}
