//! Completions that come from threads of a library.
//!
//! A library (librados, libgfapi, …) reports finished requests by callbacks on its own threads. The engine gives the
//! callback a [`Completer`], which may be used from any thread, and answers [`Engine::reap`](crate::Engine::reap) from
//! the [`Completions`] that it keeps.
//!
//! Each unit has one slot for its outcome, and the slots of completed units form a list: a thread that completes a unit
//! changes two words, without allocating or blocking. It wakes the worker only if the worker sleeps. The worker sleeps
//! on a futex, so sleeping and waking are one system call each.

use crate::{Completion, Errno, Outcome};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// No unit: the end of the list.
const NONE: u32 = u32::MAX;

/// States of a unit that are not outcomes.
const IDLE: i64 = i64::MIN;
const IN_FLIGHT: i64 = i64::MIN + 1;

/// States of the worker. (The number of `ASLEEP` distinguishes this futex from the locks of libraries in traces of
/// system calls.)
const AWAKE: u32 = 0;
const ASLEEP: u32 = 0x51ee9;

/// The longest single wait. It always has a limit, because the kernel may restart a wait without one after a signal.
const LONGEST: Duration = Duration::from_secs(3600);

/// A unit's slot.
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
    /// Whether the worker sleeps, or is about to.
    worker: AtomicU32,
}

/// The worker's side: the units in flight, and the completed ones.
#[derive(Debug)]
pub struct Completions {
    shared: Arc<Shared>,
    in_flight: usize,
    /// Completed units that were taken from the list, oldest first.
    ready: VecDeque<Completion>,
}

/// The handle for completing units, from any thread.
#[derive(Clone, Debug)]
pub struct Completer(Arc<Shared>);

impl Completions {
    /// Room for units with an index below `units`.
    pub fn new(units: usize) -> Self {
        let slot = || Slot { state: AtomicI64::new(IDLE), next: AtomicU32::new(NONE) };
        Completions {
            shared: Arc::new(Shared {
                slots: (0..units).map(|_| slot()).collect(),
                last: AtomicU32::new(NONE),
                worker: AtomicU32::new(AWAKE),
            }),
            in_flight: 0,
            ready: VecDeque::with_capacity(units),
        }
    }

    /// The handle with which callbacks complete units.
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

    /// The library has refused a unit that had been begun, and will not complete it. False = it has completed it
    /// nevertheless: then it will be reaped.
    pub fn take_back(&mut self, unit: u32) -> bool {
        let state = &self.shared.slots[unit as usize].state;
        let is_back = state.compare_exchange(IN_FLIGHT, IDLE, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.in_flight -= usize::from(is_back);
        is_back
    }

    /// The number of units that have been begun and not yet reaped.
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
        self.collect();
        let wanted = min.min(max).min(self.in_flight);
        let end = if self.ready.len() < wanted { timeout.and_then(in_time) } else { None };
        while self.ready.len() < wanted {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let woken = self.sleep(left);
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

    /// Sleeps until a unit is completed (true) or the time is up (false), unless one has been completed meanwhile. May
    /// return true earlier.
    fn sleep(&self, limit: Option<Duration>) -> Result<bool, Errno> {
        let shared = &*self.shared;
        // A thread that completes a unit reads this word after adding the unit to the list, and we read the list after
        // setting the word, so at least one of the two sees the other.
        shared.worker.store(ASLEEP, Ordering::SeqCst);
        let is_done = shared.last.load(Ordering::SeqCst) != NONE;
        let woken = if is_done { Ok(true) } else { wait(&shared.worker, limit) };
        shared.worker.store(AWAKE, Ordering::SeqCst);
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
    /// Completes a unit. False = it is not in flight: there is no such unit, or it has been completed already.
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
        if shared.worker.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
            wake(&shared.worker);
        }
        true
    }
}

/// The moment after this time; `None` = beyond the range of the clock.
fn in_time(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Waits while the worker must sleep; false = the time is up.
fn wait(worker: &AtomicU32, limit: Option<Duration>) -> Result<bool, Errno> {
    let time = limit.unwrap_or(LONGEST).min(LONGEST);
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time are valid through the call.
    match unsafe { libc::syscall(libc::SYS_futex, worker.as_ptr(), operation, ASLEEP, &raw const time) } {
        0 => Ok(true),
        _ => match Errno::last() {
            // It was woken before it slept.
            Errno(libc::EAGAIN) => Ok(true),
            Errno(libc::ETIMEDOUT) => Ok(limit.is_none_or(|limit| limit > LONGEST)),
            errno => Err(errno),
        },
    }
}

fn wake(worker: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is valid through the call. (If the worker is awake already, this has no effect.)
    unsafe { libc::syscall(libc::SYS_futex, worker.as_ptr(), operation, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn begun(units: u32) -> (Completions, Completer) {
        let mut completions = Completions::new(units as usize);
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
        // Without units in flight there is nothing to wait for.
        assert_eq!(reaped(&mut completions, 1, 1, None), []);
    }

    #[test]
    fn only_units_in_flight_are_completed() {
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
        let mut completions = Completions::new(UNITS as usize);
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
}
