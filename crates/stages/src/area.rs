//! The memory that workers and the collector share. It is made before any of them is forked.

use iolite_os::memory;
use iolite_os::shared_ring::SharedRing;
use iolite_stats::Stage;
use std::io;
use std::sync::atomic::{
    AtomicI32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};

/// The most stages that an engine itself can tell.
pub(crate) const MOST_GIVEN: usize = 4;

/// The stamps of one I/O. Times are `CLOCK_MONOTONIC` in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct IoStamps {
    /// When its first stage began.
    pub began: u64,
    /// When the call that submitted it had returned; 0 = the call waited for completion.
    pub submitted: u64,
    /// When it was reaped.
    pub completed: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
    /// The number of the file in the worker's list.
    pub file: u32,
    /// The number of the unit.
    pub unit: u32,
    /// Sectors that the same call submitted before this I/O.
    pub before: u32,
    /// All sectors that the call submitted; 0 = only this I/O.
    pub together: u32,
    /// The number of its direction.
    pub direction: u32,
    /// How many of `given` are used; 0 = the kernel's records tell the stages, [`IoStamps::UNTOLD`] = nobody does.
    pub stamps_given: u32,
    /// When each stage but the last ended, as the engine says.
    pub given: [u64; MOST_GIVEN],
}

impl IoStamps {
    /// The engine does not know the stages of this I/O.
    pub const UNTOLD: u32 = u32::MAX;
}

/// Words of one worker. Zeros are valid.
#[repr(C, align(128))]
struct Words {
    /// The thread that issues its I/Os; 0 = none yet. Written by the worker.
    thread: AtomicI32,
    /// I/Os whose stamps did not fit into the ring, per direction. Written by the worker.
    lost: [AtomicU64; 3],
    published: Published,
}

/// What the collector says about a worker while the run goes on. Zeros are valid.
#[repr(C, align(128))]
struct Published {
    /// Odd while the collector writes.
    turn: AtomicU64,
    directions: [Sums; 3],
    /// When the block layer got the oldest request that is in flight for long; 0 = there is none.
    oldest: AtomicU64,
    /// The driver has it.
    is_issued: AtomicU64,
}

/// Sums of a direction.
#[repr(C)]
struct Sums {
    ios: AtomicU64,
    stages: [AtomicU64; Stage::MOST],
}

/// The oldest request of a worker that has been in flight for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldRequest {
    /// When the block layer got it (`CLOCK_MONOTONIC`).
    pub queued: u64,
    /// The driver has got all of it.
    pub is_issued: bool,
}

/// Words of the run. Zeros are valid.
#[repr(C, align(128))]
struct RunWords {
    /// 0 = the collector has not begun, `RECORDS` = it records, another number = why it cannot. Written by it.
    ready: AtomicI32,
    /// 1 = the workers have ended. Written by the controller.
    over: AtomicI32,
    /// How often the controller has asked for results so far, and the last time that the collector answered.
    asked: AtomicU64,
    answered: AtomicU64,
}

/// The shared memory of a run.
pub struct StageArea {
    words: *mut RunWords,
    workers: usize,
    /// One for each worker that is observed.
    rings: Vec<Option<SharedRing<IoStamps>>>,
}

// SAFETY: the area hands out only shared references to values made of atomics.
unsafe impl Send for StageArea {}
// SAFETY: as above.
unsafe impl Sync for StageArea {}

/// I/Os whose stamps a ring can hold: a tenth of a second of a million per second, if memory is not short.
const ROOM: usize = 1 << 16;
/// All rings together have at most this room: 50 MB.
const ROOM_OF_ALL: usize = 1 << 19;
/// What each ring has at least.
const LEAST_ROOM: usize = 1 << 10;

impl StageArea {
    /// Room for the workers that are `observed`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(observed: &[bool]) -> io::Result<StageArea> {
        let count = observed.iter().filter(|&&it| it).count().max(1);
        let room = (ROOM_OF_ALL / count).clamp(LEAST_ROOM, ROOM);
        let ring = |&observed: &bool| observed.then(|| SharedRing::new(room)).transpose();
        Ok(StageArea {
            words: memory::map_shared(StageArea::bytes(observed.len()))?.cast(),
            workers: observed.len(),
            rings: observed.iter().map(ring).collect::<io::Result<_>>()?,
        })
    }

    fn bytes(workers: usize) -> usize {
        size_of::<RunWords>() + workers * size_of::<Words>()
    }

    fn run(&self) -> &RunWords {
        // SAFETY: mapped as long as the area exists, aligned to a page, and zero bytes are valid.
        unsafe { &*self.words }
    }

    fn words(&self, worker: usize) -> &Words {
        assert!(worker < self.workers);
        // SAFETY: as above; the words of the workers follow those of the run, which have the same alignment.
        unsafe { &*self.words.add(1).cast::<Words>().add(worker) }
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Whether a worker is observed.
    pub fn observes(&self, worker: usize) -> bool {
        self.rings[worker].is_some()
    }

    /// Notes the thread that will issue a worker's I/Os. Called by that thread.
    pub fn begin(&self, worker: usize, thread: i32) {
        self.words(worker).thread.store(thread, Release);
    }

    /// The thread that issues a worker's I/Os; `None` = not yet.
    pub(crate) fn thread(&self, worker: usize) -> Option<i32> {
        let thread = self.words(worker).thread.load(Acquire);
        (thread != 0).then_some(thread)
    }

    /// Adds the stamps of an I/O. Called by the worker's thread only. It never waits: if the ring is full, the I/O is
    /// counted as lost.
    #[inline]
    pub fn push(&self, worker: usize, stamps: IoStamps) {
        let Some(ring) = &self.rings[worker] else { return };
        if !ring.push(stamps) {
            let lost = &self.words(worker).lost[stamps.direction as usize];
            lost.store(lost.load(Relaxed) + 1, Relaxed);
        }
    }

    /// Takes the stamps of the next I/O. Called by the collector only.
    pub(crate) fn pop(&self, worker: usize) -> Option<IoStamps> {
        self.rings[worker].as_ref()?.pop()
    }

    /// I/Os whose stamps were lost.
    pub(crate) fn lost(&self, worker: usize) -> [u64; 3] {
        self.words(worker).lost.each_ref().map(|lost| lost.load(Relaxed))
    }

    /// Publishes the sums of a worker. Called by the collector only.
    pub(crate) fn publish(
        &self,
        worker: usize,
        sums: [(u64, [u64; Stage::MOST]); 3],
        old: Option<OldRequest>,
    ) {
        let published = &self.words(worker).published;
        let turn = published.turn.load(Relaxed);
        published.turn.store(turn + 1, Relaxed);
        fence(Release);
        for (to, (ios, stages)) in published.directions.iter().zip(sums) {
            to.ios.store(ios, Relaxed);
            to.stages.iter().zip(stages).for_each(|(to, sum)| to.store(sum, Relaxed));
        }
        published.oldest.store(old.map_or(0, |old| old.queued), Relaxed);
        published.is_issued.store(old.is_some_and(|old| old.is_issued).into(), Relaxed);
        published.turn.store(turn + 2, Release);
    }

    /// The sums of a worker, per direction: I/Os, and the time of each stage in nanoseconds.
    pub(crate) fn sums(&self, worker: usize) -> [(u64, [u64; Stage::MOST]); 3] {
        self.consistent(worker, |published| {
            published
                .directions
                .each_ref()
                .map(|sums| (sums.ios.load(Relaxed), sums.stages.each_ref().map(|sum| sum.load(Relaxed))))
        })
        .unwrap_or_default()
    }

    /// The worker's oldest request, if it has been in flight for long.
    pub fn old_request(&self, worker: usize) -> Option<OldRequest> {
        let old = self.consistent(worker, |published| {
            (published.oldest.load(Relaxed), published.is_issued.load(Relaxed) != 0)
        });
        old.filter(|(queued, _)| *queued != 0).map(|(queued, is_issued)| OldRequest { queued, is_issued })
    }

    /// Reads what the collector does not change meanwhile; `None` = it changed it each time.
    fn consistent<T>(&self, worker: usize, read: impl Fn(&Published) -> T) -> Option<T> {
        const MOST_TRIES: usize = 1000;
        let published = &self.words(worker).published;
        (0..MOST_TRIES).find_map(|_| {
            let turn = published.turn.load(Acquire);
            let seen = read(published);
            fence(Acquire);
            (turn.is_multiple_of(2) && published.turn.load(Relaxed) == turn).then_some(seen)
        })
    }

    /// Asks the collector for its results so far, unless it still has a question. Called by the controller. Returns the
    /// number of the question.
    pub fn ask(&self) -> u64 {
        let asked = self.run().asked.load(Relaxed);
        if self.answered() < asked {
            return asked;
        }
        self.run().asked.store(asked + 1, Release);
        asked + 1
    }

    /// The number of the last question that the collector has answered.
    pub fn answered(&self) -> u64 {
        self.run().answered.load(Acquire)
    }

    /// The number of a question that the collector has not answered yet.
    pub(crate) fn question(&self) -> Option<u64> {
        let asked = self.run().asked.load(Acquire);
        (asked > self.run().answered.load(Relaxed)).then_some(asked)
    }

    pub(crate) fn answer(&self, question: u64) {
        self.run().answered.store(question, Release);
    }

    /// Tells the collector that all workers have ended. Called by the controller.
    pub fn end(&self) {
        self.run().over.store(1, Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.run().over.load(Acquire) != 0
    }

    pub(crate) fn set_ready(&self, state: i32) {
        self.run().ready.store(state, Release);
    }

    /// What the collector has said: `None` = nothing yet, `Some(0)` = it records, another number = the errno that
    /// prevents it.
    pub fn readiness(&self) -> Option<i32> {
        match self.run().ready.load(Acquire) {
            0 => None,
            RECORDS => Some(0),
            errno => Some(errno),
        }
    }
}

/// The collector records.
pub(crate) const RECORDS: i32 = -1;

impl Drop for StageArea {
    fn drop(&mut self) {
        // SAFETY: the area owns the mapping, and references into it borrow from the area.
        unsafe { memory::unmap(self.words.cast(), StageArea::bytes(self.workers)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_reach_the_collector_and_full_rings_are_counted() {
        let area = StageArea::new(&[true, false]).unwrap();
        assert_eq!((area.thread(0), area.observes(0), area.observes(1)), (None, true, false));
        area.begin(0, 4);
        assert_eq!(area.thread(0), Some(4));
        let stamps = IoStamps { began: 5, direction: 1, ..IoStamps::default() };
        area.push(0, stamps);
        area.push(1, stamps);
        assert_eq!((area.pop(0), area.pop(0), area.pop(1)), (Some(stamps), None, None));
        (0..=ROOM).for_each(|_| area.push(0, stamps));
        assert_eq!((area.lost(0), area.lost(1)), ([0, 1, 0], [0; 3]));
    }

    #[test]
    fn what_the_collector_publishes_is_read_as_a_whole() {
        let area = StageArea::new(&[true]).unwrap();
        assert_eq!((area.sums(0)[1].0, area.old_request(0)), (0, None));
        let old = OldRequest { queued: 7, is_issued: true };
        area.publish(0, [(1, [1; 5]), (2, [3, 4, 5, 6, 7]), (0, [0; 5])], Some(old));
        assert_eq!((area.sums(0)[1], area.old_request(0)), ((2, [3, 4, 5, 6, 7]), Some(old)));
        area.publish(0, [(1, [1; 5]); 3], None);
        assert_eq!((area.sums(0)[1].0, area.old_request(0)), (1, None));
        assert_eq!(area.question(), None);
        assert_eq!((area.ask(), area.question(), area.answered()), (1, Some(1), 0));
        area.answer(1);
        assert_eq!((area.question(), area.answered()), (None, 1));
    }

    #[test]
    fn the_collector_says_whether_it_records() {
        let area = StageArea::new(&[true]).unwrap();
        assert_eq!((area.readiness(), area.is_over()), (None, false));
        area.set_ready(RECORDS);
        assert_eq!(area.readiness(), Some(0));
        area.set_ready(13);
        area.end();
        assert_eq!((area.readiness(), area.is_over()), (Some(13), true));
    }
}
