//! Requests in flight, in batches of libcufile.
//!
//! The units of one commit are a batch. A batch of the library is used again when all of its requests have ended, because
//! that is what the library's documentation promises to work.

use super::library::{Batching, Event, Request, Vendor, status};
use crate::server_timeout::ServerTimeout;
use iolite_engine::by_index::Reasons;
use iolite_engine::completed_later::lend_memory;
use iolite_engine::library::Handle;
use iolite_engine::{Completion, Errno, is_asked_to_stop};
use libc::c_uint;
use std::ptr;
use std::time::{Duration, Instant};

/// The most requests of a batch (`max_batch_io_size` in cufile.json).
const MOST: usize = 128;

/// The longest wait until the next look for signals.
const SLICE: Duration = Duration::from_millis(100);

/// A batch of the library.
struct Batch {
    handle: Handle,
    /// Requests that have not ended.
    in_flight: usize,
    requests: Vec<Request>,
    /// The units of these requests that have not ended.
    units: Vec<u32>,
}

/// All batches of a worker.
pub(super) struct Batches {
    vendor: &'static Vendor,
    calls: &'static Batching,
    size: usize,
    all: Vec<Batch>,
    /// Requests that were not submitted yet.
    queued: Vec<Request>,
    /// Units whose batch was refused, and are still to be reaped.
    refused: Vec<Completion>,
    events: Vec<Event>,
    /// How long the library may complete nothing.
    silence: ServerTimeout,
    /// Why nobody waits any more for requests that the library still has.
    abandoned: Option<String>,
}

impl Batches {
    pub(super) fn new(
        vendor: &'static Vendor,
        calls: &'static Batching,
        depth: usize,
        silence: ServerTimeout,
    ) -> Batches {
        let size = depth.min(MOST);
        Batches {
            vendor,
            calls,
            size,
            all: Vec::with_capacity(depth),
            queued: Vec::with_capacity(depth),
            refused: Vec::new(),
            events: vec![Event::NONE; size],
            silence,
            abandoned: None,
        }
    }

    pub(super) fn queue(&mut self, request: Request) {
        self.queued.push(request);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    fn in_flight(&self) -> usize {
        self.all.iter().map(|batch| batch.in_flight).sum()
    }

    /// Submits what is queued, and notes why requests are refused. Returns the number.
    pub(super) fn submit(&mut self, reasons: &mut Reasons) -> usize {
        let count = self.queued.len();
        if self.in_flight() == 0 {
            // The library had nothing to complete until now.
            self.silence.hears();
        }
        let mut queued = std::mem::take(&mut self.queued);
        for requests in queued.chunks(self.size) {
            if let Err(words) = self.submit_batch(requests) {
                for request in requests {
                    let unit = request.cookie.addr() as u32;
                    reasons.note(unit, &words);
                    self.refused.push(Completion { unit, outcome: Err(Errno(libc::EIO)) });
                }
            }
        }
        queued.clear();
        self.queued = queued;
        count
    }

    fn submit_batch(&mut self, requests: &[Request]) -> Result<(), String> {
        if let Some(words) = &self.abandoned {
            // What looks free may be in use.
            return Err(words.clone());
        }
        let free = self.all.iter().position(|batch| batch.in_flight == 0);
        let index = match free {
            Some(index) => index,
            None => {
                let mut handle = ptr::null_mut();
                // SAFETY: there is room for the handle.
                let made = unsafe { (self.calls.set_up_batch)(&raw mut handle, self.size as c_uint) };
                self.vendor.check_files("BatchIOSetUp", made)?;
                self.all.push(Batch {
                    handle,
                    in_flight: 0,
                    requests: Vec::with_capacity(self.size),
                    units: Vec::with_capacity(self.size),
                });
                self.all.len() - 1
            }
        };
        let batch = &mut self.all[index];
        batch.requests.clear();
        batch.requests.extend_from_slice(requests);
        batch.units.clear();
        batch.units.extend(requests.iter().map(|request| request.cookie.addr() as u32));
        // SAFETY: the requests stay where they are until they have ended, and their memory is the GPU's.
        let submitted = unsafe {
            (self.calls.submit)(batch.handle, requests.len() as c_uint, batch.requests.as_mut_ptr(), 0)
        };
        self.vendor.check_files("BatchIOSubmit", submitted)?;
        batch.in_flight = requests.len();
        Ok(())
    }

    /// As [`Engine::reap`](iolite_engine::Engine::reap), but never fails: notes why requests have failed. May return with
    /// fewer than `min` after a while.
    pub(super) fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
        reasons: &mut Reasons,
    ) {
        let before = done.len();
        let count = self.refused.len().min(max);
        done.extend(self.refused.drain(..count));
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let begun = Instant::now();
        loop {
            for index in 0..self.all.len() {
                let room = max - (done.len() - before);
                if self.all[index].in_flight > 0 && room > 0 {
                    self.look(index, 0, room, Duration::ZERO, done, reasons);
                }
            }
            let Some(oldest) = self.all.iter().position(|batch| batch.in_flight > 0) else { return };
            let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()).min(SLICE));
            if done.len() - before >= min || left.is_zero() || begun.elapsed() > SLICE {
                if is_asked_to_stop() {
                    self.silence.hurry();
                }
                if done.len() == before && self.silence.is_too_long() {
                    let words = self.silence.words();
                    self.give_up(Errno(libc::ETIMEDOUT), words, max, done, reasons);
                }
                return;
            }
            // (Only one batch can be waited for; others are looked at every millisecond.)
            let several = self.all.iter().filter(|batch| batch.in_flight > 0).count() > 1;
            let wait = if several { left.min(Duration::from_millis(1)) } else { left };
            let room = max - (done.len() - before);
            self.look(oldest, 1, room, wait, done, reasons);
        }
    }

    /// From now on, the library has limited time.
    pub(super) fn hurry(&mut self) {
        self.silence.hurry();
    }

    /// Whether the library has requests that nobody waits for any more: then nothing that it uses may be freed.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.is_some()
    }

    /// Waits until the library has ended all requests, or has been silent for too long: then they are abandoned.
    pub(super) fn drain(&mut self) {
        // (Nobody asks for reasons any more.)
        let (mut done, mut reasons) = (Vec::new(), Reasons::default());
        self.silence.hurry();
        while self.in_flight() > 0 {
            self.reap(1, usize::MAX, None, &mut done, &mut reasons);
            done.clear();
        }
    }

    /// Fails up to `most` requests in flight. The library may still use their memory, whenever it likes.
    fn give_up(
        &mut self,
        errno: Errno,
        words: String,
        most: usize,
        done: &mut Vec<Completion>,
        reasons: &mut Reasons,
    ) {
        lend_memory();
        let mut room = most;
        for batch in &mut self.all {
            while batch.in_flight > 0 && room > 0 {
                let Some(unit) = batch.units.pop() else { break };
                (batch.in_flight, room) = (batch.in_flight - 1, room - 1);
                reasons.note(unit, &words);
                done.push(Completion { unit, outcome: Err(errno) });
            }
        }
        self.abandoned.get_or_insert(words);
    }

    /// Takes up to `room` ended requests of a batch, waiting up to this time for `least`. If the library cannot tell which have
    /// ended, all are given up.
    fn look(
        &mut self,
        index: usize,
        least: u32,
        room: usize,
        wait: Duration,
        done: &mut Vec<Completion>,
        reasons: &mut Reasons,
    ) {
        let batch = &mut self.all[index];
        let mut count = batch.in_flight.min(room).min(self.events.len()) as c_uint;
        let mut time =
            libc::timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        // SAFETY: there is room for as many events, and the time is valid through the call.
        let told = unsafe {
            let events = self.events.as_mut_ptr();
            (self.calls.ended)(batch.handle, least, &raw mut count, events, &raw mut time)
        };
        if let Err(words) = self.vendor.check_files("BatchIOGetStatus", told) {
            return self.give_up(Errno(libc::EIO), words, room, done, reasons);
        }
        let mut ended = 0;
        for event in &self.events[..(count as usize).min(self.events.len())] {
            let unit = event.cookie.addr() as u32;
            // (Some versions also tell of requests that have not ended, and of some twice.)
            let place = batch.units.iter().position(|&other| other == unit);
            let (Some(place), false) = (place, matches!(event.status, status::WAITING | status::PENDING))
            else {
                continue;
            };
            batch.units.swap_remove(place);
            batch.in_flight -= 1;
            ended += 1;
            let outcome = match event.status {
                status::COMPLETE if event.result >= 0 => Ok(event.result as u64),
                status::TIMEOUT => Err(Errno(libc::ETIMEDOUT)),
                status::CANCELED => Err(Errno(libc::ECANCELED)),
                _ => {
                    let (errno, words) = self.vendor.failure(event.result);
                    words.iter().for_each(|words| reasons.note(unit, words));
                    Err(errno)
                }
            };
            done.push(Completion { unit, outcome });
        }
        if ended > 0 {
            self.silence.hears();
        }
    }
}

impl Drop for Batches {
    /// Nothing is in flight.
    fn drop(&mut self) {
        for batch in &self.all {
            // SAFETY: the batch exists, and is not used after this.
            unsafe { (self.calls.destroy_batch)(batch.handle) };
        }
    }
}
