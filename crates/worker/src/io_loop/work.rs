//! Engines that work without I/O. The loop only watches the time and the controller's requests.

use super::IoLoop;
use super::ending::PassEnd;
use super::failure::{Attempt, Failure};
use iolite_engine::{Engine, Errno, Queued, Unit};
use iolite_types::Operation;
use iolite_workload::Generator;

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Lets the engine work until it has nothing left to do in this pass, or something ends the job.
    #[inline(never)]
    pub(super) fn work_all(&mut self) -> PassEnd {
        loop {
            if self.control.attention() != 0 {
                self.attend();
            }
            if self.end.stopping {
                return PassEnd::Stopped;
            }
            if !self.work() {
                return PassEnd::Finished;
            }
            let now = self.clock.now();
            if now >= self.time.next_event {
                self.event(now, false);
            }
        }
    }

    /// Does one piece of work. Returns whether there is more to do.
    fn work(&mut self) -> bool {
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
        let queued = unsafe { self.engine.queue(&unit) };
        let Queued::Completed(outcome) = queued else {
            unreachable!("an engine that works is synchronous");
        };
        match outcome {
            Ok(left) => left > 0,
            // A signal interrupted the work. The caller checks the controller's requests and the time.
            Err(Errno(libc::EINTR)) => true,
            Err(errno) => {
                let attempt = Attempt { operation: Operation::Work, file: 0, offset: 0, length: 0 };
                self.fail(Failure { errno, attempt: Some(attempt), missed: None });
                true
            }
        }
    }
}
