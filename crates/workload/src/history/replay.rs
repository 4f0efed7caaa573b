//! Repeats the writes of a workload with a second generator.

use super::Written;
use crate::{General, Generator, Next, Spec};
use iolite_types::Direction;

/// Follows the workload and repeats its writes, pass by pass.
#[derive(Clone, Debug)]
pub struct Replay {
    generator: General,
    number: u64,
    done: bool,
}

impl Replay {
    /// The writes of `spec`, numbered from 0.
    ///
    /// # Errors
    ///
    /// The errors of [`General::new`].
    pub fn new(spec: &Spec) -> Result<Replay, crate::Error> {
        Ok(Replay { generator: General::new(spec)?, number: 0, done: false })
    }

    /// The number of the next write.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next write of the pass, whether the workload has issued it yet or not.
    pub fn next_write(&mut self) -> Option<Written> {
        while !self.done {
            match self.generator.next() {
                Next::Io(io) if io.direction == Direction::Write => {
                    let number = self.number;
                    self.number += 1;
                    return Some(Written { io, number });
                }
                Next::Io(_) | Next::Close(_) | Next::Lap | Next::Script(_) => {}
                Next::Done => self.done = true,
            }
        }
        None
    }

    /// Goes to the end of the pass, so that the next pass is the workload's next pass. Not for endless workloads. This
    /// may take long, so it calls `stop` now and then and returns early if that is true.
    pub fn finish_pass(&mut self, stop: impl Fn() -> bool) {
        const STRETCH: u64 = 1 << 16;
        while self.next_write().is_some() {
            if self.number.is_multiple_of(STRETCH) && stop() {
                break;
            }
        }
    }

    /// Starts the next pass as [`Generator::restart`] does.
    pub fn restart(&mut self) {
        self.generator.restart();
        self.done = false;
    }

    /// Returns to the beginning of a pass that makes the choices of the first one; `number` = that of its first write.
    pub fn start_over(&mut self, number: u64) {
        self.rewind();
        self.number = number;
    }

    /// Starts the next pass as [`Generator::rewind`] does.
    pub fn rewind(&mut self) {
        self.generator.rewind();
        self.done = false;
    }
}
