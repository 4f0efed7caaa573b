//! Requests that share a callback.
//!
//! The libraries of Ceph call back on a thread of their own, and not on the one that has received the answer. So a callback
//! costs a switch between threads, before the one to the worker. At high rates, that is a large part of all work. So only
//! some requests have a callback, and when one wakes the worker, it looks which of the others are complete, as a device
//! coalesces interrupts. A request shares a callback only with those whose completions are expected within [`HOLD`], and
//! with no more than an eighth of the depth, so that its latency grows by a few percent at most.

use crate::Errno;
use crate::completions::{Completions, Source};
use crate::library::Handle;
use crate::tickets::Ticket;
use std::time::{Duration, Instant};

/// Completions within this time may share a callback.
const HOLD: Duration = Duration::from_micros(250);

/// A longer time between completions counts as this, so that a pause is forgotten soon.
const LONGEST_GAP: Duration = Duration::from_millis(1);

/// After this time without a completion, the worker looks for requests without a callback.
const PATIENCE: Duration = Duration::from_micros(400);

/// The longest such time. It grows with each look in vain.
const MOST_PATIENCE: Duration = Duration::from_millis(10);

/// Requests of a library, as far as their completion is concerned.
pub(crate) trait Requests {
    /// Whether the request of this completion is done.
    ///
    /// # Safety
    /// The completion is one of the library's, and was not released.
    unsafe fn is_complete(&self, completion: Handle) -> bool;

    /// The result of a request that is done. The completion is released.
    ///
    /// # Safety
    /// As above, and the request is done.
    unsafe fn end(&self, completion: Handle) -> i64;
}

/// The requests of a worker that have no callback, and which ones get one.
pub(crate) struct Coalescing<R: 'static> {
    library: &'static R,
    /// Requests in flight without a callback, oldest first.
    silent: Vec<(Handle, *const Ticket)>,
    /// Looked for them after the last sleep.
    has_looked: bool,
    patience: Duration,
    sharing: Sharing,
}

/// How many requests share a callback.
struct Sharing {
    /// The worker does not sleep, so no request needs a callback.
    busy_poll: bool,
    /// The limit that the depth sets.
    most: u32,
    /// The number for now, and how many requests began since the last that has a callback.
    now: u32,
    begun: u32,
    /// The mean time between completions, and the time of the last one.
    gap: Duration,
    last: Option<Instant>,
}

// SAFETY: the library may be called from any thread, and the tickets are those of the worker that has this.
unsafe impl<R: Sync> Send for Coalescing<R> {}

impl<R: Requests> Coalescing<R> {
    /// For a worker with so many units.
    pub(crate) fn new(library: &'static R, depth: usize, busy_poll: bool) -> Coalescing<R> {
        Coalescing {
            library,
            silent: Vec::with_capacity(depth),
            has_looked: false,
            patience: PATIENCE,
            sharing: Sharing::new(depth, busy_poll),
        }
    }

    /// Whether the next request has a callback. If not, it is to be [added](Coalescing::add) when it is in flight.
    pub(crate) fn calls_back(&mut self) -> bool {
        self.sharing.calls_back()
    }

    /// A request without a callback is in flight.
    ///
    /// # Safety
    /// The completion is that of the request, which has not been released, and the ticket lives until it is complete.
    pub(crate) unsafe fn add(&mut self, completion: Handle, ticket: *const Ticket) {
        self.silent.push((completion, ticket));
    }

    /// Completes the requests without a callback that are done. True if there was any.
    fn look(&mut self) -> bool {
        let (library, before) = (self.library, self.silent.len());
        self.silent.retain(|&(completion, ticket)| {
            // SAFETY: the request is in flight, and its ticket is there.
            unsafe {
                let done = library.is_complete(completion);
                if done {
                    (*ticket).complete(library.end(completion));
                }
                !done
            }
        });
        self.silent.len() < before
    }
}

impl<R: Requests> Source for Coalescing<R> {
    fn fetch(&mut self) {
        if !std::mem::take(&mut self.has_looked) {
            self.look();
        }
    }

    fn sleep(&mut self, completions: &Completions, limit: Option<Duration>) -> Result<bool, Errno> {
        if self.silent.is_empty() {
            return completions.sleep(limit);
        }
        let time = limit.map_or(self.patience, |limit| limit.min(self.patience));
        let is_over = limit.is_some_and(|limit| limit <= self.patience);
        let woken = completions.sleep(Some(time))?;
        self.has_looked = true;
        if self.look() || woken {
            self.patience = PATIENCE;
            return Ok(true);
        }
        self.patience = (self.patience + self.patience / 8).min(MOST_PATIENCE);
        Ok(!is_over)
    }

    fn reaped(&mut self, count: usize) {
        if !self.sharing.is_fixed() {
            self.sharing.completed(count, Instant::now());
        }
    }
}

impl Sharing {
    fn new(depth: usize, busy_poll: bool) -> Sharing {
        let most = u32::try_from(depth / 8).unwrap_or(u32::MAX).max(1);
        Sharing { busy_poll, most, now: 1, begun: 0, gap: LONGEST_GAP, last: None }
    }

    /// The number does not depend on the rate.
    fn is_fixed(&self) -> bool {
        self.busy_poll || self.most == 1
    }

    fn calls_back(&mut self) -> bool {
        if self.busy_poll {
            return false;
        }
        self.begun += 1;
        let calls = self.begun >= self.now;
        if calls {
            self.begun = 0;
        }
        calls
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

    impl Requests for Library {
        unsafe fn is_complete(&self, completion: Handle) -> bool {
            self.0[completion as usize - 1].load(Ordering::Acquire)
        }

        unsafe fn end(&self, completion: Handle) -> i64 {
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
            unsafe { tickets.source().add(ptr::without_provenance_mut(unit + 1), ticket) };
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
        // SAFETY: the ticket is there.
        let with_callback = unsafe { &*begin(&mut tickets, 2) };
        library.complete(0);
        std::thread::scope(|scope| {
            scope.spawn(|| with_callback.complete(0));
        });
        let mut found = reaped(&mut tickets, 2, None);
        found.sort_unstable();
        assert_eq!(found, [0, 2]);
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
        let (mut first, mut second) = (1, 1);
        while !sharing.calls_back() {
            first += 1;
        }
        while !sharing.calls_back() {
            second += 1;
        }
        assert_eq!((first, second), (sharing.now, sharing.now));
        first
    }

    #[test]
    fn few_share_a_callback_and_only_at_high_rates() {
        assert_eq!(sharing(32, []), 1);
        assert_eq!(sharing(32, [(1, 20); 3]), 1, "the rate is not known yet");
        assert_eq!(sharing(32, [(1, 20); 300]), 4, "an eighth of the depth");
        assert_eq!(sharing(256, [(1, 20); 300]), 12, "250 µs");
        assert_eq!(sharing(32, [(2, 200); 300]), 2, "two at a time");
        assert_eq!(sharing(32, [(1, 251); 300]), 1);
        assert_eq!(sharing(15, [(1, 1); 300]), 1);
        let paused = [(1, 20); 300].into_iter().chain([(1, 60_000_000); 2]);
        assert_eq!(sharing(32, paused.clone()), 1);
        assert_eq!(sharing(32, paused.chain([(1, 20); 100])), 4);
    }

    #[test]
    fn who_does_not_sleep_needs_no_callback() {
        let mut sharing = Sharing::new(32, true);
        assert!((0..100).all(|_| !sharing.calls_back()) && sharing.is_fixed());
    }
}
