//! Completions that come from threads of a library.
//!
//! A library (librados, libgfapi, …) reports finished requests by callbacks on its own threads. The engine gives the
//! callback a [`Completer`], which may be used from any thread, and answers [`Engine::reap`](crate::Engine::reap) from
//! the [`Completions`] that it keeps.
//!
//! Each unit has one place for its outcome, and those that are done form a list through these places: a thread that
//! completes a unit changes two words, without allocating or blocking. It writes to an eventfd only if the worker
//! sleeps. Engines that also wait for sockets poll that descriptor among theirs ([`Completions::reap_with`]).

use crate::{Completion, Errno, Outcome};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// No unit: the end of the list.
const NONE: u32 = u32::MAX;

/// States of a unit that are no outcome.
const IDLE: i64 = i64::MIN;
const IN_FLIGHT: i64 = i64::MIN + 1;

/// A unit's place.
#[derive(Debug)]
struct Slot {
    /// Bytes, a negated errno, or one of the states above.
    state: AtomicI64,
    /// The unit that was completed before this one.
    next: AtomicU32,
}

#[derive(Debug)]
struct Shared {
    slots: Box<[Slot]>,
    /// The unit that was completed last.
    last: AtomicU32,
    /// The worker sleeps, or is about to.
    sleeps: AtomicBool,
    event: OwnedFd,
}

/// The worker's side: the units in flight, and those that are done.
#[derive(Debug)]
pub struct Completions {
    shared: Arc<Shared>,
    in_flight: usize,
    /// Done and taken from the list, oldest first.
    ready: VecDeque<Completion>,
}

/// The handle for completing units, from any thread.
#[derive(Clone, Debug)]
pub struct Completer(Arc<Shared>);

impl Completions {
    /// Room for units with an index below `units`.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new(units: usize) -> io::Result<Self> {
        // SAFETY: takes nothing but integers.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let event = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let slot = || Slot { state: AtomicI64::new(IDLE), next: AtomicU32::new(NONE) };
        Ok(Completions {
            shared: Arc::new(Shared {
                slots: (0..units).map(|_| slot()).collect(),
                last: AtomicU32::new(NONE),
                sleeps: AtomicBool::new(false),
                event,
            }),
            in_flight: 0,
            ready: VecDeque::with_capacity(units),
        })
    }

    /// The handle by which callbacks complete units.
    pub fn completer(&self) -> Completer {
        Completer(self.shared.clone())
    }

    /// A unit is about to be handed to the library: it may be completed from now on, and the worker waits for it.
    ///
    /// # Panics
    /// If the unit is in flight already, or the index is out of range.
    pub fn begin(&mut self, unit: u32) {
        let before = self.shared.slots[unit as usize].state.swap(IN_FLIGHT, Ordering::Relaxed);
        assert_eq!(before, IDLE, "unit {unit} is in flight already");
        self.in_flight += 1;
    }

    /// The library has not taken a unit that had been begun, and will not complete it. False when it has completed it: then
    /// it will be reaped.
    pub fn take_back(&mut self, unit: u32) -> bool {
        let state = &self.shared.slots[unit as usize].state;
        let is_back = state.compare_exchange(IN_FLIGHT, IDLE, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.in_flight -= usize::from(is_back);
        is_back
    }

    /// How many units have been begun and not been reaped.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// As [`Engine::reap`](crate::Engine::reap).
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.reap_with(min, max, timeout, done, poll)
    }

    /// The same for engines that also wait for other descriptors: `wait` sleeps until the given descriptor is readable
    /// or another event has happened (true), or the time is up (false).
    ///
    /// # Errors
    /// Those of `wait`. An interruption by a signal ends the wait, and is no error.
    pub fn reap_with(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
        mut wait: impl FnMut(RawFd, Option<Duration>) -> Result<bool, Errno>,
    ) -> Result<(), Errno> {
        self.collect();
        let wanted = min.min(max).min(self.in_flight);
        let end = if self.ready.len() < wanted { timeout.and_then(in_time) } else { None };
        while self.ready.len() < wanted {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let woken = self.sleep(|event| wait(event, left));
            self.collect();
            match woken {
                Ok(true) => {}
                Ok(false) | Err(Errno(libc::EINTR)) => break,
                Err(errno) => return Err(errno),
            }
        }
        let count = self.ready.len().min(max);
        self.in_flight -= count;
        done.extend(self.ready.drain(..count));
        Ok(())
    }

    /// Lets `wait` sleep on the descriptor, unless a unit has been completed meanwhile; then `Ok(true)`, like after a
    /// wake-up.
    fn sleep(&self, wait: impl FnOnce(RawFd) -> Result<bool, Errno>) -> Result<bool, Errno> {
        let shared = &*self.shared;
        // A thread that completes a unit reads this flag after adding the unit to the list, and we read the list after
        // setting the flag, so at least one of the two sees the other.
        shared.sleeps.store(true, Ordering::SeqCst);
        let is_done = shared.last.load(Ordering::SeqCst) != NONE;
        let woken = if is_done { Ok(true) } else { wait(shared.event.as_raw_fd()) };
        if !shared.sleeps.swap(false, Ordering::SeqCst) {
            // A thread has seen the flag, and has written or is about to write: that must not end the next sleep.
            drain(shared.event.as_raw_fd());
        }
        woken
    }

    /// Takes the units in the list, in the order of their completion.
    fn collect(&mut self) {
        let shared = &*self.shared;
        let mut unit = shared.last.swap(NONE, Ordering::SeqCst);
        let before = self.ready.len();
        while unit != NONE {
            let slot = &shared.slots[unit as usize];
            let next = slot.next.load(Ordering::Relaxed);
            let state = slot.state.swap(IDLE, Ordering::Relaxed);
            let outcome = if state < 0 { Err(Errno(-state as i32)) } else { Ok(state as u64) };
            self.ready.push_back(Completion { unit, outcome });
            unit = next;
        }
        // The list has the last one first.
        self.ready.make_contiguous()[before..].reverse();
    }
}

impl Completer {
    /// A unit is done. False when it is not in flight: there is no such unit, or it is done already.
    pub fn complete(&self, unit: u32, outcome: Outcome) -> bool {
        let shared = &*self.0;
        let Some(slot) = shared.slots.get(unit as usize) else { return false };
        let value = match outcome {
            Ok(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
            Err(Errno(number)) => -i64::from(number.max(1)),
        };
        if slot.state.compare_exchange(IN_FLIGHT, value, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        let mut last = shared.last.load(Ordering::Relaxed);
        loop {
            slot.next.store(last, Ordering::Relaxed);
            // Release: a thread that sees the unit in the list also sees its outcome.
            match shared.last.compare_exchange_weak(last, unit, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => last = other,
            }
        }
        if shared.sleeps.swap(false, Ordering::SeqCst) {
            wake(shared.event.as_raw_fd());
        }
        true
    }
}

/// The moment after this time; `None` where that is beyond all clocks.
fn in_time(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Waits until a descriptor is readable; false when the time is up.
fn poll(descriptor: RawFd, timeout: Option<Duration>) -> Result<bool, Errno> {
    let mut watched = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: one descriptor and at most one time, both valid through the call.
    match unsafe { libc::ppoll(&mut watched, 1, limit, std::ptr::null()) } {
        -1 => Err(Errno::last()),
        count => Ok(count > 0),
    }
}

fn wake(event: RawFd) {
    let one = 1u64;
    // The counter cannot overflow, as every sleep writes it at most once: there is nothing that could fail.
    // SAFETY: the value is valid for its eight bytes.
    unsafe { libc::write(event, (&raw const one).cast(), 8) };
}

/// Consumes the wake-up that a completer has written or is about to write, so that it cannot end the next sleep.
fn drain(event: RawFd) {
    let mut value = 0u64;
    loop {
        // SAFETY: the value is valid for its eight bytes.
        let read = unsafe { libc::read(event, (&raw mut value).cast(), 8) };
        if read == 8 {
            return;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn begun(units: u32) -> (Completions, Completer) {
        let mut completions = Completions::new(units as usize).unwrap();
        (0..units).for_each(|unit| completions.begin(unit));
        let completer = completions.completer();
        (completions, completer)
    }

    fn reaped(
        completions: &mut Completions,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
    ) -> Vec<(u32, Outcome)> {
        let mut done = Vec::new();
        completions.reap(min, max, timeout, &mut done).unwrap();
        done.into_iter().map(|completion| (completion.unit, completion.outcome)).collect()
    }

    #[test]
    fn completions_come_in_order_and_no_more_than_asked_for() {
        let (mut completions, completer) = begun(4);
        for unit in [2, 0, 3] {
            assert!(completer.complete(unit, Ok(u64::from(unit) * 512)));
        }
        assert_eq!(reaped(&mut completions, 0, 2, None), [(2, Ok(1024)), (0, Ok(0))]);
        assert_eq!(reaped(&mut completions, 1, 2, None), [(3, Ok(1536))]);
        assert_eq!(reaped(&mut completions, 0, 2, None), []);
        assert!(completer.complete(1, Err(Errno(libc::EIO))));
        assert_eq!(reaped(&mut completions, 1, 1, None), [(1, Err(Errno(libc::EIO)))]);
        // With nothing in flight there is nothing to wait for.
        assert_eq!(reaped(&mut completions, 1, 1, None), []);
    }

    #[test]
    fn only_what_is_in_flight_is_completed() {
        let (mut completions, completer) = begun(2);
        assert!(!completer.complete(2, Ok(0)), "there is no such unit");
        assert!(completer.complete(0, Ok(1)));
        assert!(!completer.complete(0, Ok(2)), "it is done");
        assert_eq!(reaped(&mut completions, 1, 2, None), [(0, Ok(1))]);
        assert!(!completer.complete(0, Ok(3)), "it has not begun again");
        assert!(completions.take_back(1));
        assert!(!completer.complete(1, Ok(0)), "it was taken back");
        assert_eq!(completions.in_flight(), 0);
    }

    #[test]
    fn the_wait_ends_when_the_time_is_up() {
        let (mut completions, completer) = begun(2);
        assert_eq!(reaped(&mut completions, 1, 2, Some(Duration::from_millis(1))), []);
        assert_eq!(reaped(&mut completions, 1, 2, Some(Duration::ZERO)), []);
        // A completed unit is returned even if more were waited for.
        assert!(completer.complete(1, Ok(7)));
        assert_eq!(reaped(&mut completions, 2, 2, Some(Duration::from_millis(1))), [(1, Ok(7))]);
    }

    /// Threads complete units while the worker begins new ones; each is reaped as often as it was begun.
    #[test]
    fn nothing_is_lost_between_threads() {
        const UNITS: u32 = 8;
        const ROUNDS: u64 = 20_000;
        let mut completions = Completions::new(UNITS as usize).unwrap();
        let (orders, threads): (Vec<_>, Vec<_>) = (0..3)
            .map(|_| {
                let (order, orders) = mpsc::channel::<(u32, u64)>();
                let completer = completions.completer();
                let thread = std::thread::spawn(move || {
                    for (unit, bytes) in orders {
                        assert!(completer.complete(unit, Ok(bytes)));
                    }
                });
                (order, thread)
            })
            .unzip();
        let mut expected = [0; UNITS as usize];
        let (mut begun, mut seen) = (0, 0);
        let mut free: Vec<u32> = (0..UNITS).collect();
        let mut done = Vec::new();
        while seen < ROUNDS {
            while let Some(unit) = free.pop().filter(|_| begun < ROUNDS) {
                expected[unit as usize] = begun;
                completions.begin(unit);
                orders[begun as usize % orders.len()].send((unit, begun)).unwrap();
                begun += 1;
            }
            // Now and then, wait for all units in flight: the worker has to sleep for the last one.
            let min = if seen % 5 == 0 { completions.in_flight() } else { 1 };
            completions.reap(min, UNITS as usize, None, &mut done).unwrap();
            assert!(done.len() >= min.min(1));
            for completion in done.drain(..) {
                assert_eq!(completion.outcome, Ok(expected[completion.unit as usize]));
                free.push(completion.unit);
                seen += 1;
            }
        }
        drop(orders);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((begun, completions.in_flight()), (ROUNDS, 0));
    }

    #[test]
    fn a_signal_ends_the_wait() {
        extern "C" fn nothing(_: libc::c_int) {}
        // SAFETY: the structure is plain data; the handler does nothing. Without SA_RESTART calls are interrupted.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
        }
        // SAFETY: takes nothing.
        let worker = unsafe { libc::pthread_self() };
        let (over, is_over) = mpsc::channel::<()>();
        let signals = std::thread::spawn(move || {
            // The signal may come before the wait: it is sent until the wait is over.
            while is_over.recv_timeout(Duration::from_millis(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
                // SAFETY: the thread waits for this one before it ends.
                unsafe { libc::pthread_kill(worker, libc::SIGUSR2) };
            }
        });
        let (mut completions, _completer) = begun(1);
        assert_eq!(reaped(&mut completions, 1, 1, None), []);
        drop(over);
        signals.join().unwrap();
    }

    #[test]
    fn engines_may_wait_for_more_than_completions() {
        let (mut completions, completer) = begun(1);
        let mut done = Vec::new();
        let mut waits = 0;
        let wait = |event, timeout| {
            assert_eq!(timeout, None);
            waits += 1;
            // The first two wake-ups are other events.
            if waits == 3 {
                assert!(completer.complete(0, Ok(5)));
                assert_eq!(poll(event, timeout), Ok(true));
            }
            Ok(true)
        };
        completions.reap_with(1, 1, None, &mut done, wait).unwrap();
        assert_eq!((waits, done.len()), (3, 1));
        // No signal is left over that would end the next sleep.
        completions.begin(0);
        assert_eq!(reaped(&mut completions, 1, 1, Some(Duration::from_millis(1))), []);
    }
}
