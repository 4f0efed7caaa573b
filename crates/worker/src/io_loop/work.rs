//! Engines that work without I/O. The loop only watches the time and the controller's requests.

use super::IoLoop;
use super::ending::PassEnd;
use super::failure::{Attempt, Failure};
use iolite_engine::{Engine, Errno, Queued, Unit};
use iolite_os::message::Message;
use iolite_types::{Direction, Operation};
use iolite_workload::Generator;

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Lets the engine work until this pass is done or something ends the job. A piece of work that the end cuts off
    /// counts as well, since the peer always finishes its own piece.
    #[inline(never)]
    pub(super) fn work_all(&mut self) -> PassEnd {
        // When the present piece began; `None` = the next one has not begun.
        let mut begun = None;
        loop {
            if self.common.control.attention() != 0 {
                self.attend();
            }
            if self.common.end.stopping {
                if let Some(start) = begun
                    && self.common.end.failure.is_none()
                {
                    self.count_work(start);
                }
                return PassEnd::Stopped;
            }
            let start = *begun.get_or_insert_with(|| self.common.clock.now());
            match self.work() {
                Work::GoesOn => {}
                Work::Rests => begun = None,
                Work::Done { is_last } => {
                    begun = None;
                    self.count_work(start);
                    if is_last {
                        return PassEnd::Finished;
                    }
                }
            }
            let now = self.common.clock.now();
            if now >= self.common.time.next_event {
                let was_ramping = self.common.time.ramping;
                self.event(now, false);
                if was_ramping && begun.is_some() {
                    // The part of the piece that was done before counting began does not count.
                    begun = Some(now);
                }
            }
        }
    }

    /// Lets the engine work for a moment.
    fn work(&mut self) -> Work {
        let unit = Unit {
            buffer: std::ptr::null_mut(),
            length: 0,
            offset: 0,
            index: 0,
            file: 0,
            operation: Operation::Work,
            priority: 0,
        };
        // SAFETY: the unit has no bytes and no file.
        match unsafe { self.engine.queue(&unit) } {
            Queued::Completed(Ok(left)) => Work::Done { is_last: left == 0 },
            Queued::Busy => Work::GoesOn,
            // Also if a signal interrupted the work. The caller checks the controller's requests and the time.
            Queued::Completed(Err(Errno(libc::EINTR))) => Work::Rests,
            Queued::Completed(Err(errno)) => {
                if let Some(why) = self.engine.explain(unit.index) {
                    Message::Trouble(self.common.errors.worker(), why).send(self.common.errors.messages());
                }
                let attempt = Attempt { operation: Operation::Work, file: 0, offset: 0, length: 0 };
                self.common.fail(Failure { errno, attempt: Some(attempt), missed: None });
                Work::GoesOn
            }
            Queued::Queued | Queued::Over => unreachable!("an engine that works is synchronous, and alone"),
        }
    }

    /// Counts a piece of work that began at `start`: a read of no bytes.
    fn count_work(&mut self, start: u64) {
        let latency = self.common.clock.now().saturating_sub(start);
        let counters = &self.common.stats.directions[Direction::Read.index()];
        self.common.stats.begin();
        counters.issued.add(1);
        counters.ios.add(1);
        self.common.stats.level[0].add(1);
        self.common.stats.submit[1].add(1);
        self.common.stats.complete[1].add(1);
        if self.common.rules.clat {
            counters.clat.record(latency);
            counters.clat.record_bucket(latency);
        }
        if self.common.rules.lat {
            counters.lat.record(latency);
            if self.common.rules.lat_buckets {
                counters.lat.record_bucket(latency);
            }
        }
        self.common.stats.end();
    }
}

/// The result of one call of the engine.
enum Work {
    /// The piece continues, unless the job has failed.
    GoesOn,
    /// No piece is under way, and there is more to do.
    Rests,
    /// The piece is done; `is_last` = there is nothing more to do.
    Done { is_last: bool },
}
