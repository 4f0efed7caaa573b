//! What the processes of a run share: one anonymous mapping, laid out before the first fork.
//!
//! Zeroed memory is the valid initial state of everything in it. Each word has one writer, named in its
//! documentation, except where it says otherwise.

use crate::futex;
use crate::memory;
use iolite_stats::live::LiveStats;
use std::io;
use std::sync::atomic::{
    AtomicI32, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// How far a worker has come. Only the worker writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// Not begun.
    Planned = 0,
    /// The process or thread exists.
    Created = 1,
    /// It is setting up.
    SettingUp = 2,
    /// It reads its files into the page cache.
    PreReading = 3,
    /// Set up; it waits for the others of its wave.
    Ready = 4,
    /// It issues I/O, not counted yet.
    Ramping = 5,
    /// It issues I/O.
    Running = 6,
    /// It reads back what it has written.
    Verifying = 7,
    /// It waits for a sync at the end.
    Syncing = 8,
    /// It is done with I/O and puts its things in order.
    Finishing = 9,
    /// It is done.
    Exited = 10,
}

impl Phase {
    fn from_word(word: u32) -> Phase {
        use Phase::*;
        const ALL: [Phase; 11] = [
            Planned, Created, SettingUp, PreReading, Ready, Ramping, Running, Verifying, Syncing, Finishing,
            Exited,
        ];
        ALL[(word as usize).min(ALL.len() - 1)]
    }

    /// What a worker does in it, for a line of `--debug`.
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

    /// The worker issues I/O.
    pub fn is_running(self) -> bool {
        (Phase::Ramping..=Phase::Syncing).contains(&self)
    }
}

/// What the controller may ask of a worker, as bits of [`Control::attention`].
pub mod attention {
    /// Stop issuing I/O and finish.
    pub const TERMINATE: u32 = 1;
    /// Publish the resources used so far.
    pub const USAGE: u32 = 2;
}

/// The words between the controller and one worker.
#[repr(C, align(64))]
pub struct Control {
    /// Bits of [`attention`]. Written by the controller (set) and the worker (cleared).
    attention: AtomicU32,
    /// 0 closed, 1 open. The worker waits on it when ready. Written by the controller.
    gate: AtomicU32,
    phase: AtomicU32,
    /// Process or thread id. Written by the worker.
    pub id: AtomicI32,
    /// The errno that ended the job, 0 for none. Written by the worker.
    pub errno: AtomicI32,
    /// Files that are open. Written by the worker.
    pub open_files: AtomicU32,
    /// The depth that a latency target has found so far; 0 = the job's own. Written by the worker.
    pub found_depth: AtomicU32,
    /// When its I/O began, in nanoseconds of the run's clock. Written by the worker.
    pub started_ns: AtomicU64,
    /// When its I/O began, in milliseconds of the clock that the job names (`job_start_clock_id`), unless that is the
    /// wall clock. Written by the worker.
    pub own_start_ms: AtomicU64,
    /// When counting began: the start, or the end of the ramp. Written by the worker.
    pub counting_ns: AtomicU64,
    /// When its I/O ended; 0 = not yet. Written by the worker.
    pub ended_ns: AtomicU64,
    /// I/Os issued as the flow counts them (see `worker::flow`). Written by the worker.
    pub flow_ios: AtomicU64,
    /// While it reads back: how many reads it will have done then, of all since it began. Written by the worker.
    pub read_until: AtomicU64,
    /// Bytes moved before counting began, while a ramp is measured in bytes. Written by the worker.
    pub ramp_bytes: AtomicU64,
    /// For how long its I/O waited for its logs to be written. Written by the worker.
    pub log_wait_ns: AtomicU64,
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

impl Control {
    /// What the controller asks; 0 = nothing.
    #[inline(always)]
    pub fn attention(&self) -> u32 {
        self.attention.load(Relaxed)
    }

    /// Asks for something.
    pub fn ask(&self, bits: u32) {
        self.attention.fetch_or(bits, Release);
    }

    /// It has been done.
    pub fn answered(&self, bits: u32) {
        self.attention.fetch_and(!bits, Release);
    }

    /// Whether the worker should finish.
    pub fn terminating(&self) -> bool {
        self.attention.load(Acquire) & attention::TERMINATE != 0
    }

    /// How far the worker has come.
    pub fn phase(&self) -> Phase {
        Phase::from_word(self.phase.load(Acquire))
    }

    /// The worker has come so far.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, Release);
    }

    /// Lets the worker go.
    pub fn open_gate(&self) {
        self.gate.store(1, Release);
        futex::wake(&self.gate);
    }

    /// Waits until the controller lets the worker go.
    pub fn wait_at_gate(&self) {
        while self.gate.load(Acquire) == 0 {
            futex::wait(&self.gate, 0);
        }
    }
}

/// One worker's part of the arena.
#[repr(C, align(4096))]
pub struct Slot {
    /// Between controller and worker.
    pub control: Control,
    /// What it measures.
    pub stats: LiveStats,
}

/// The mapping: one slot per worker.
pub struct Arena {
    slots: *mut Slot,
    count: usize,
}

// SAFETY: the arena hands out shared references only, to values made of atomics.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps slots for so many workers. Pages cost nothing until they are written to.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn new(count: usize) -> io::Result<Arena> {
        let bytes = count.max(1) * size_of::<Slot>();
        let slots = memory::map_shared(bytes)?.cast();
        Ok(Arena { slots, count })
    }

    /// The slot of a worker.
    pub fn slot(&self, worker: usize) -> &Slot {
        assert!(worker < self.count);
        // SAFETY: in bounds, aligned (page-aligned mapping, size a multiple of the alignment), zero bytes are a
        // valid Slot, and nobody ever has a unique reference.
        unsafe { &*self.slots.add(worker) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and references into it borrow from the value.
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
        arena.slot(0).control.wait_at_gate();
    }
}
