//! Requests that share a callback.
//!
//! The libraries of Ceph call back on a thread of their own, and not on the one that has received the answer. So a callback
//! costs a switch between threads, before the one to the worker. At high rates, that is a large part of all work. So only
//! some requests have a callback, and when one wakes the worker, it looks which of the others are complete, as a device
//! coalesces interrupts.
//!
//! An eighth of the requests in flight share a callback, if their completions are expected within [`HOLD`]. If they complete
//! in another order, or others do not follow, the worker looks for them after [`PATIENCE`], and again and again.

use crate::Errno;
use crate::completions::{Completions, Source};
use crate::library::Handle;
use crate::tickets::Ticket;
use std::time::{Duration, Instant};

/// Completions within this time may share a callback.
const HOLD: Duration = Duration::from_micros(250);

/// The worker looks at all requests without a callback, which is not worth it if there are more.
const MOST_DEPTH: usize = 128;

/// A longer time between completions counts as this, so that a pause is forgotten soon.
const LONGEST_GAP: Duration = Duration::from_millis(1);

/// After this time without a completion, the worker looks for requests without a callback.
const PATIENCE: Duration = Duration::from_micros(400);

/// The longest such time. It grows by an eighth with each look in vain.
const MOST_PATIENCE: Duration = Duration::from_millis(10);

/// A library whose requests can be asked whether they are complete.
pub(crate) trait Pollable {
    /// Whether the request of this completion is done.
    ///
    /// # Safety
    /// The completion is one of the library's, and was not released.
    unsafe fn is_complete(&self, completion: Handle) -> bool;

    /// The result of a request that is done. The completion is released.
    ///
    /// # Safety
    /// As above, and the request is done.
    unsafe fn take_result(&self, completion: Handle) -> i64;
}

/// The requests of a worker that have no callback, and which ones get one.
pub(crate) struct Coalescing<L: 'static> {
    library: &'static L,
    /// Requests in flight without a callback, oldest first.
    silent: Vec<(Handle, *const Ticket)>,
    /// How often the worker polled without looking for them.
    polls: u32,
    patience: Duration,
    sharing: Sharing,
}

/// How many requests share a callback.
struct Sharing {
    /// The worker does not sleep, so no request needs a callback.
    busy_poll: bool,
    /// The limit that the depth sets.
    most: u32,
    /// The number that the rate suggests.
    now: u32,
    /// How many requests have begun since the last one that has a callback.
    since: u32,
    /// The mean time between completions.
    gap: Duration,
    /// The time of the last one.
    last: Option<Instant>,
}

// SAFETY: the library may be called from any thread, and the tickets are those of the worker that has this.
unsafe impl<L: Sync> Send for Coalescing<L> {}

impl<L: Pollable> Coalescing<L> {
    /// For a worker with so many units.
    pub(crate) fn new(library: &'static L, depth: usize, busy_poll: bool) -> Coalescing<L> {
        Coalescing {
            library,
            silent: Vec::with_capacity(depth),
            polls: 0,
            patience: PATIENCE,
            sharing: Sharing::new(depth, busy_poll),
        }
    }

    /// Whether the next request has a callback, which is one of so many in flight.
    pub(crate) fn calls_back(&self, in_flight: usize) -> bool {
        self.sharing.calls_back(in_flight)
    }

    /// A request is in flight, with or without a callback.
    ///
    /// # Safety
    /// The completion is that of the request; if it has no callback, it has not been released, and the ticket lives until the
    /// request is complete.
    pub(crate) unsafe fn begun(&mut self, calls_back: bool, completion: Handle, ticket: *const Ticket) {
        if calls_back {
            self.sharing.since = 0;
        } else {
            self.sharing.since += 1;
            self.patience = PATIENCE;
            self.silent.push((completion, ticket));
        }
    }

    /// Completes the requests without a callback that are done. True if there was any.
    fn find(&mut self) -> bool {
        self.polls = 0;
        let (library, before) = (self.library, self.silent.len());
        self.silent.retain(|&(completion, ticket)| {
            // SAFETY: the request is in flight, and its ticket is there.
            unsafe {
                let done = library.is_complete(completion);
                if done {
                    (*ticket).complete(library.take_result(completion));
                }
                !done
            }
        });
        let found = self.silent.len() < before;
        if found {
            self.patience = PATIENCE;
        }
        found
    }
}

impl<L: Pollable> Source for Coalescing<L> {
    fn poll(&mut self) {
        // A worker that polls for each of its I/Os looks no more often than there are callbacks.
        self.polls += 1;
        if self.sharing.busy_poll || self.polls >= self.sharing.now {
            self.find();
        }
    }

    fn sleep(&mut self, completions: &Completions, limit: Option<Duration>) -> Result<bool, Errno> {
        if self.silent.is_empty() {
            return completions.sleep(limit);
        }
        let time = limit.map_or(self.patience, |limit| limit.min(self.patience));
        let is_over = limit.is_some_and(|limit| limit <= self.patience);
        let woken = completions.sleep(Some(time))?;
        if self.find() || woken {
            return Ok(true);
        }
        self.patience = (self.patience + self.patience / 8).min(MOST_PATIENCE);
        Ok(!is_over)
    }

    fn finish(&mut self) {
        self.find();
    }

    fn reaped(&mut self, count: usize) {
        if self.sharing.varies() {
            self.sharing.completed(count, Instant::now());
        }
    }
}

impl Sharing {
    fn new(depth: usize, busy_poll: bool) -> Sharing {
        let most = if depth > MOST_DEPTH { 1 } else { eighth(depth) };
        Sharing { busy_poll, most, now: 1, since: 0, gap: LONGEST_GAP, last: None }
    }

    /// Whether the number depends on the rate.
    fn varies(&self) -> bool {
        !self.busy_poll && self.most > 1
    }

    fn calls_back(&self, in_flight: usize) -> bool {
        !self.busy_poll && self.since + 1 >= self.now.min(eighth(in_flight))
    }

    /// So many requests were found complete.
    fn completed(&mut self, count: usize, time: Instant) {
        let last = self.last.replace(time);
        if let (Some(last), Ok(count @ 1..)) = (last, u32::try_from(count)) {
            let gap = (time.saturating_duration_since(last) / count).min(LONGEST_GAP);
            self.gap = self.gap * 15 / 16 + gap / 16;
            let sharing = HOLD.as_nanos() / self.gap.as_nanos().max(1);
            self.now = u32::try_from(sharing).unwrap_or(u32::MAX).clamp(1, self.most);
        }
    }
}

/// An eighth of a number of requests, and at least one.
fn eighth(requests: usize) -> u32 {
    u32::try_from(requests.div_ceil(8)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tickets::{Act, Tickets};
    use crate::{BufferLayout, Unit};
    use std::ptr;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Requests whose completions are numbers from 1.
    struct Library([AtomicBool; 4]);

    impl Library {
        fn new() -> &'static Library {
            Box::leak(Box::new(Library([const { AtomicBool::new(false) }; 4])))
        }

        fn complete(&self, unit: usize) {
            self.0[unit].store(true, Ordering::Release);
        }
    }

    impl Pollable for Library {
        unsafe fn is_complete(&self, completion: Handle) -> bool {
            self.0[completion as usize - 1].load(Ordering::Acquire)
        }

        unsafe fn take_result(&self, completion: Handle) -> i64 {
            assert!(
                self.0[completion as usize - 1].swap(false, Ordering::Relaxed),
                "it is ended once, when it is complete"
            );
            4
        }
    }

    /// Tickets of four units, of which the first ones are in flight, without a callback.
    fn silent(library: &'static Library, busy_poll: bool, count: usize) -> Tickets<Coalescing<Library>> {
        let mut tickets = Tickets::completed_by(Coalescing::new(library, 4, busy_poll), busy_poll);
        tickets.prepare(&BufferLayout { start: 8 as *mut u8, stride: 0, count: 4, depth: 4, files: 1 });
        for unit in 0..count {
            let ticket = begin(&mut tickets, unit);
            // SAFETY: the ticket lives as long as the tickets.
            unsafe { tickets.source().begun(false, ptr::without_provenance_mut(unit + 1), ticket) };
        }
        tickets
    }

    fn begin(tickets: &mut Tickets<Coalescing<Library>>, unit: usize) -> *const Ticket {
        let unit = Unit {
            buffer: ptr::null_mut(),
            length: 4,
            offset: 0,
            index: unit as u32,
            file: 0,
            operation: iolite_types::Operation::Write,
            priority: 0,
        };
        tickets.begin(&unit, Act::Other).unwrap()
    }

    fn reaped(tickets: &mut Tickets<Coalescing<Library>>, min: usize, limit: Option<Duration>) -> Vec<u32> {
        let mut done = Vec::new();
        tickets.reap(min, 4, limit, &mut done).unwrap();
        done.into_iter().map(|completion| completion.unit).collect()
    }

    #[test]
    fn what_has_no_callback_is_found() {
        for busy_poll in [false, true] {
            let library = Library::new();
            let mut tickets = silent(library, busy_poll, 3);
            library.complete(1);
            assert_eq!(reaped(&mut tickets, 0, None), [1]);
            assert_eq!(reaped(&mut tickets, 1, Some(Duration::from_millis(1))), [0; 0]);
            let later = std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(2));
                library.complete(0);
            });
            // (With busy polling, the worker comes back now and then.)
            let found =
                std::iter::repeat_with(|| reaped(&mut tickets, 1, None)).find(|found| !found.is_empty());
            assert_eq!(found, Some(vec![0]));
            later.join().unwrap();
            library.complete(2);
            assert!(tickets.drain(), "all are complete");
        }
    }

    #[test]
    fn a_callback_tells_of_the_others() {
        let library = Library::new();
        let mut tickets = silent(library, false, 2);
        let with_callback = begin(&mut tickets, 2) as usize;
        // Without the callback, the worker would sleep for ever.
        tickets.source().patience = Duration::from_secs(3600);
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(2));
            library.complete(0);
            // SAFETY: the ticket is there until the unit is reaped.
            unsafe { (*(with_callback as *const Ticket)).complete(0) };
        });
        let mut found = reaped(&mut tickets, 2, None);
        later.join().unwrap();
        found.sort_unstable();
        assert_eq!(found, [0, 2]);
        library.complete(1);
        assert!(tickets.drain());
    }

    #[test]
    fn what_is_complete_in_the_end_is_not_given_up() {
        let library = Library::new();
        let mut tickets = silent(library, false, 2);
        library.complete(1);
        // The job was asked to end long ago, and the worker polled just now.
        tickets.stops = Instant::now().checked_sub(Duration::from_secs(3600));
        (tickets.source().sharing.now, tickets.source().polls) = (4, 0);
        let mut done = Vec::new();
        tickets.reap(1, 4, None, &mut done).unwrap();
        assert_eq!((done.len(), done[0].outcome), (1, Ok(4)));
        tickets.reap(1, 4, None, &mut done).unwrap();
        assert_eq!((done.len(), done[1].outcome), (2, Err(Errno(libc::ETIMEDOUT))));
        // It comes too late, and does no harm.
        library.complete(0);
        tickets.reap(0, 4, None, &mut done).unwrap();
        assert!(done.len() == 2 && !tickets.drain());
        tickets.leave();
    }

    #[test]
    fn the_worker_waits_longer_while_nothing_comes() {
        let library = Library::new();
        let mut tickets = silent(library, false, 2);
        assert_eq!(reaped(&mut tickets, 1, Some(Duration::from_millis(20))), [0; 0]);
        assert!(tickets.source().patience > PATIENCE && tickets.source().patience <= MOST_PATIENCE);
        library.complete(0);
        assert_eq!(reaped(&mut tickets, 1, None), [0]);
        assert_eq!(tickets.source().patience, PATIENCE);
        library.complete(1);
        assert!(tickets.drain());
    }

    /// The number of requests that share a callback after so many completions, a time apart.
    fn sharing(depth: usize, gaps: impl IntoIterator<Item = (usize, u64)>) -> u32 {
        let mut sharing = Sharing::new(depth, false);
        let mut time = Instant::now();
        for (count, microseconds) in gaps {
            time += Duration::from_micros(microseconds);
            sharing.completed(count, time);
        }
        assert!(sharing.calls_back(1), "nothing else is in flight");
        while !sharing.calls_back(depth) {
            sharing.since += 1;
        }
        sharing.since + 1
    }

    #[test]
    fn few_share_a_callback_and_only_at_high_rates() {
        assert_eq!(sharing(32, []), 1);
        assert_eq!(sharing(32, [(1, 20); 3]), 1, "the rate is not known yet");
        assert_eq!(sharing(32, [(1, 20); 300]), 4, "an eighth of the depth");
        assert_eq!(sharing(128, [(1, 20); 300]), 12, "250 µs");
        assert_eq!(sharing(256, [(1, 20); 300]), 1, "there are too many to look at");
        assert_eq!(sharing(32, [(2, 200); 300]), 2, "two at a time");
        assert_eq!(sharing(32, [(1, 251); 300]), 1);
        assert_eq!(sharing(8, [(1, 1); 300]), 1);
        assert_eq!(sharing(32, [(0, 0); 300]), 1, "nothing is complete");
        let paused = [(1, 20); 300].into_iter().chain([(1, 60_000_000); 2]);
        assert_eq!(sharing(32, paused.clone()), 1);
        assert_eq!(sharing(32, paused.chain([(1, 20); 100])), 4);
    }

    #[test]
    fn who_does_not_sleep_needs_no_callback() {
        let sharing = Sharing::new(32, true);
        assert!((1..=32).all(|in_flight| !sharing.calls_back(in_flight)) && !sharing.varies());
    }
}
