//! The memory that the processes of a run share: one anonymous mapping, created before the first fork.
//!
//! Zeroed memory is the valid initial state of everything in it. Each word has one writer, named in its documentation,
//! unless that says otherwise.

use crate::futex;
use crate::memory;
use iolite_stats::live::LiveStats;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicI32, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::time::Duration;

/// The progress of a worker. Only the worker writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// It has not started.
    Planned = 0,
    /// The process or thread exists.
    Created = 1,
    /// The worker is being set up.
    SettingUp = 2,
    /// The worker reads its files into the page cache.
    PreReading = 3,
    /// The worker is set up and waits for its wave to start.
    Ready = 4,
    /// The worker issues I/O that is not counted yet.
    Ramping = 5,
    /// The worker issues I/O.
    Running = 6,
    /// The worker reads back its writes.
    Verifying = 7,
    /// The worker syncs its files after a pass.
    Syncing = 8,
    /// The worker has finished its I/O and closes its files and logs.
    Finishing = 9,
    /// The worker has finished.
    Exited = 10,
}

impl Phase {
    #[inline]
    fn from_word(word: u32) -> Phase {
        use Phase::*;
        const ALL: [Phase; 11] = [
            Planned, Created, SettingUp, PreReading, Ready, Ramping, Running, Verifying, Syncing, Finishing,
            Exited,
        ];
        ALL[(word as usize).min(ALL.len() - 1)]
    }

    /// The phase as text, for `--debug`.
    pub fn in_words(self) -> &'static str {
        match self {
            Phase::Planned => "planned",
            Phase::Created => "created",
            Phase::SettingUp => "setting up",
            Phase::PreReading => "reading ahead",
            Phase::Ready => "ready",
            Phase::Ramping => "ramping up",
            Phase::Running => "running",
            Phase::Verifying => "reading back",
            Phase::Syncing => "syncing",
            Phase::Finishing => "finishing",
            Phase::Exited => "exited",
        }
    }

    /// Whether the worker issues I/O in this phase.
    pub fn is_running(self) -> bool {
        (Phase::Ramping..=Phase::Syncing).contains(&self)
    }
}

/// Requests of the controller to a worker, as bits of [`Control::attention`].
pub mod attention {
    /// Stop issuing I/O and finish.
    pub const TERMINATE: u32 = 1;
    /// Publish the resources used so far.
    pub const USAGE: u32 = 2;
    /// Flush logs to disk: the worker may be killed soon. (For the threads that write its logs; the worker itself may
    /// hang.)
    pub const SAVE: u32 = 4;
    /// Check again whether the ramp is over (see [`Control::hold_ramp`](super::Control::hold_ramp)).
    pub const RAMP: u32 = 8;
}

/// The words shared by the controller and one worker.
#[repr(C, align(64))]
pub struct Control {
    /// Bits of [`attention`]. The controller sets them, the worker clears them.
    attention: AtomicU32,
    /// 0 = closed, 1 = open. A worker that is ready waits for it to open. Written by the controller.
    gate: AtomicU32,
    phase: AtomicU32,
    /// The id of the process or thread. Written by the worker.
    pub id: AtomicI32,
    /// The process group of a command that runs before or after the job; 0 = none runs. Written by the worker.
    pub command_group: AtomicI32,
    /// The errno that ended the job, 0 for none. Written by the worker.
    pub errno: AtomicI32,
    /// 1 = the worker's thread has ended, or could not be started. (The spawner waits for processes.) Written by the process
    /// of the threads.
    thread_over: AtomicU32,
    /// The number of open files. Written by the worker.
    pub open_files: AtomicU32,
    /// The depth that the search for a latency target has reached; 0 = the job's own. Written by the worker.
    pub found_depth: AtomicU32,
    /// When the worker's I/O began, in nanoseconds of the run's clock. Written by the worker.
    pub started_ns: AtomicU64,
    /// When the worker's I/O began, in milliseconds of the clock that the job names (`job_start_clock_id`); not set if
    /// that is the wall clock. Written by the worker.
    pub own_start_ms: AtomicU64,
    /// When counting began (at the start or after the ramp), in nanoseconds of the run's clock. Written by the worker.
    pub counting_ns: AtomicU64,
    /// When the worker's I/O ended, in nanoseconds of the run's clock; 0 = not yet. Written by the worker.
    pub ended_ns: AtomicU64,
    /// The number of I/Os issued, adjusted as the flow needs it (see `worker::flow`). Written by the worker.
    pub flow_ios: AtomicU64,
    /// While the worker reads back: the total number of reads at the end. Written by the worker.
    pub read_until: AtomicU64,
    /// The worker's use of shared zones; 0 = none. Written by the worker, and by the controller after the worker has
    /// ended.
    pub zones: AtomicU32,
    /// Bytes moved in a ramp that is measured in bytes. Written by the worker.
    pub ramp_bytes: AtomicU64,
    /// The parts of samples that this worker has begun and not finished. Written by the worker.
    pub batch_open: AtomicU64,
    /// The words of an accelerator, in the slot of the first worker of its job.
    pub accelerator: Accelerator,
    /// 1 = the ramp continues, however much data has been moved. Written by the controller.
    ramp_held: AtomicU32,
    /// 1 = enough data has been moved in a ramp that is held. Written by the worker.
    ramp_moved: AtomicU32,
    /// How long the worker's I/O waited for its logs, in nanoseconds. Written by the worker.
    pub log_wait_ns: AtomicU64,
    /// How many of the threads that write its logs have data in memory that is not in their files. A thread counts from
    /// its start until it has ended or has answered [`attention::SAVE`].
    pub unsaved: AtomicU32,
    /// Counts the writes of these threads, so that the controller sees whether they make progress.
    pub log_writes: AtomicU64,
    /// User CPU time, µs. Written by the worker.
    pub user_us: AtomicU64,
    /// System CPU time, µs. Written by the worker.
    pub system_us: AtomicU64,
    /// Context switches. Written by the worker.
    pub context_switches: AtomicU64,
    /// Major faults. Written by the worker.
    pub major_faults: AtomicU64,
    /// Minor faults. Written by the worker.
    pub minor_faults: AtomicU64,
}

/// The words of an accelerator that takes samples in batches (see `worker::accelerator`). All workers of a job write them.
#[repr(C)]
#[derive(Default)]
pub struct Accelerator {
    /// Parts of samples whose reading has begun.
    pub begun: AtomicU64,
    /// Parts of samples that have been read.
    pub read: AtomicU64,
    /// The batches whose computation is a part of `end_ns`.
    pub timed: AtomicU64,
    /// When the last of them is computed, in nanoseconds of the run's clock.
    pub end_ns: AtomicU64,
    /// When the first sample was begun, in nanoseconds of the run's clock; 0 = not yet.
    pub begun_ns: AtomicU64,
    /// The batches that do not count: the first one, and those of a ramp.
    pub uncounted: AtomicU64,
    /// When the last of these was computed, in nanoseconds of the run's clock.
    pub counted_ns: AtomicU64,
}

impl Control {
    /// The pending requests of the controller; 0 = none.
    #[inline(always)]
    pub fn attention(&self) -> u32 {
        self.attention.load(Relaxed)
    }

    /// Sets requests. Called by the controller.
    pub fn ask(&self, bits: u32) {
        // A worker that already has all of these requests does not sleep, or need not end its sleep for them.
        if self.attention.fetch_or(bits, Release) & bits != bits {
            futex::wake(&self.attention);
        }
    }

    /// Sleeps for at most this time, or until there is a request that the worker has to serve. Called by the worker.
    pub fn rest(&self, time: Duration) {
        // SAVE stays set, so it must not end the sleep.
        let may_be_set = self.attention() & attention::SAVE;
        futex::wait_for(&self.attention, may_be_set, time);
    }

    /// Clears requests that have been served. Called by the worker.
    pub fn answered(&self, bits: u32) {
        self.attention.fetch_and(!bits, Release);
    }

    /// Whether the worker has to stop.
    pub fn terminating(&self) -> bool {
        self.attention.load(Acquire) & attention::TERMINATE != 0
    }

    /// Whether the worker may be killed soon, so that buffered logs have to be written now.
    pub fn must_save(&self) -> bool {
        self.attention.load(Acquire) & attention::SAVE != 0
    }

    /// The worker's phase.
    #[inline]
    pub fn phase(&self) -> Phase {
        Phase::from_word(self.phase.load(Acquire))
    }

    /// Sets the phase. Called by the worker.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, Release);
    }

    /// The worker's thread says nothing more: it ends now, or could not be started. Called in the process of the threads.
    pub fn end_thread(&self) {
        self.thread_over.store(1, Release);
    }

    /// Whether the worker's thread has ended, or could not be started.
    pub fn is_thread_over(&self) -> bool {
        self.thread_over.load(Acquire) != 0
    }

    /// Holds the worker's ramp until [`release_ramp`](Self::release_ramp), even if it has moved enough. Called by the
    /// controller, before the worker begins.
    pub fn hold_ramp(&self) {
        self.ramp_held.store(1, Release);
    }

    /// Lets the ramp end. Called by the controller.
    pub fn release_ramp(&self) {
        self.ramp_held.store(0, Release);
        self.ask(attention::RAMP);
    }

    /// Whether the controller holds the ramp.
    pub fn holds_ramp(&self) -> bool {
        self.ramp_held.load(Acquire) != 0
    }

    /// Notes that enough data has been moved. Called by the worker. Returns whether this is the first time.
    pub fn note_ramp_moved(&self) -> bool {
        self.ramp_moved.swap(1, Release) == 0
    }

    /// Whether the worker has moved enough data in a ramp that is held.
    pub fn is_ramp_moved(&self) -> bool {
        self.ramp_moved.load(Acquire) != 0
    }

    /// Opens the gate, so that the worker starts its I/O.
    pub fn open_gate(&self) {
        self.gate.store(1, Release);
        futex::wake(&self.gate);
    }

    /// Waits until the controller opens the gate. Meanwhile calls `keep_alive` once a second, as long as it returns true.
    pub fn wait_at_gate(&self, keep_alive: &mut dyn FnMut() -> bool) {
        while self.gate.load(Acquire) == 0 {
            match keep_alive() {
                true => futex::wait_for(&self.gate, 0, Duration::from_secs(1)),
                false => futex::wait(&self.gate, 0),
            }
        }
    }
}

/// One worker's part of the arena. It is as large as some of the smallest pages that there are; where pages are larger, the
/// end of a slot and the beginning of the next one share a page.
#[repr(C, align(4096))]
pub struct Slot {
    /// The words shared with the controller.
    pub control: Control,
    /// The worker's measurements.
    pub stats: LiveStats,
}

/// The shared mapping, with one slot per worker.
pub struct Arena {
    slots: *mut Slot,
    count: usize,
}

// SAFETY: the arena hands out only shared references to values made of atomics.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps slots for `count` workers. Pages take no memory until they are written to.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(count: usize) -> io::Result<Arena> {
        let bytes = count.max(1) * size_of::<Slot>();
        let slots = memory::map_shared(bytes)?.cast();
        Ok(Arena { slots, count })
    }

    /// How many workers there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The slot of a worker.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn slot(&self, worker: usize) -> &Slot {
        assert!(worker < self.count);
        // SAFETY: in bounds, aligned (page-aligned mapping, size a multiple of the alignment), zero bytes are a valid
        // Slot, and no unique reference ever exists.
        unsafe { &*self.slots.add(worker) }
    }

    /// A function that tells, on any thread, whether this worker was asked to end.
    pub fn end_check(self: &Arc<Self>, worker: usize) -> impl Fn() -> bool + Clone + Send + 'static {
        let arena = self.clone();
        move || arena.slot(worker).control.terminating()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the arena owns the mapping, and references into it borrow from the arena.
        unsafe { memory::unmap(self.slots.cast(), self.count.max(1) * size_of::<Slot>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_slots_are_planned_and_empty() {
        let arena = Arena::new(3).unwrap();
        for worker in 0..3 {
            let slot = arena.slot(worker);
            assert_eq!(slot.control.phase(), Phase::Planned);
            assert_eq!(slot.control.attention(), 0);
            assert_eq!(slot.stats.directions[0].ios.get(), 0);
        }
    }

    #[test]
    fn questions_are_asked_and_answered() {
        let arena = Arena::new(1).unwrap();
        let control = &arena.slot(0).control;
        control.ask(attention::USAGE);
        control.ask(attention::TERMINATE);
        control.answered(attention::USAGE);
        assert!(control.terminating());
        assert_eq!(control.attention(), attention::TERMINATE);
    }

    #[test]
    fn an_open_gate_does_not_stop_anyone() {
        let arena = Arena::new(1).unwrap();
        arena.slot(0).control.open_gate();
        arena.slot(0).control.wait_at_gate(&mut || unreachable!("nothing is waited for"));
    }

    #[test]
    fn a_wait_at_the_gate_keeps_alive_what_wants_it() {
        let arena = Arena::new(1).unwrap();
        let control = &arena.slot(0).control;
        let mut calls = 0;
        control.wait_at_gate(&mut || {
            calls += 1;
            if calls == 2 {
                control.open_gate();
            }
            true
        });
        assert_eq!(calls, 2);
    }

    #[test]
    fn requests_end_a_rest_and_what_is_kept_does_not() {
        const LONG: Duration = Duration::from_secs(3600);
        for request in [attention::TERMINATE, attention::USAGE, attention::RAMP] {
            let arena = Arena::new(1).unwrap();
            let control = &arena.slot(0).control;
            control.ask(attention::SAVE);
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    while control.attention() & request == 0 {
                        control.rest(LONG);
                    }
                });
                // Before the rest or in it.
                std::thread::sleep(Duration::from_millis(5));
                control.ask(request);
            });
            control.rest(LONG);
            control.answered(request);
            let before = std::time::Instant::now();
            control.rest(Duration::from_millis(20));
            // (A rest may end early, but not at once whenever it is called.)
            control.rest(Duration::from_millis(20));
            assert!(before.elapsed() >= Duration::from_millis(20), "{request}");
        }
    }
}
