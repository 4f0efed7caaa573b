//! Trims of several ranges (`num_range`): as many trims of the workload as one command has ranges are issued as one I/O.

use super::IoLoop;
use iolite_engine::Engine;
use iolite_types::Direction;
use iolite_workload::{Generator, Io, Next};

/// The ranges of the next trim.
#[derive(Debug)]
pub struct Ranges {
    /// Most ranges of a command.
    most: usize,
    /// Offset and length of each.
    list: Vec<(u64, u64)>,
    /// The workload's last step, if it does not fit into the trim that is being collected.
    waiting: Option<Next>,
}

impl Ranges {
    /// The ranges of commands with at most `most` ranges.
    pub fn new(most: u32) -> Ranges {
        Ranges { most: most as usize, list: Vec::with_capacity(most as usize), waiting: None }
    }

    /// The next step of the workload, with successive trims joined into one. It has the offset of the first of them and
    /// the length of all.
    fn next(&mut self, mut ask: impl FnMut() -> Next) -> Next {
        let first = self.waiting.take().unwrap_or_else(&mut ask);
        let Next::Io(mut whole @ Io { direction: Direction::Trim, .. }) = first else { return first };
        self.list.clear();
        self.list.push((whole.offset, whole.length));
        while self.list.len() < self.most {
            match ask() {
                Next::Io(io) if io.direction == Direction::Trim && io.file == whole.file => {
                    self.list.push((io.offset, io.length));
                    whole.length += io.length;
                }
                other => {
                    self.waiting = Some(other);
                    break;
                }
            }
        }
        Next::Io(whole)
    }
}

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// The next step of the workload.
    #[inline(always)]
    pub(super) fn next_step(&mut self) -> Next {
        if FULL && let Some(ranges) = &mut self.common.extras.ranges {
            return ranges.next(|| self.generator.next());
        }
        self.generator.next()
    }

    /// Hands the engine the ranges of the trim that this unit issues next.
    pub(super) fn tell_ranges(&mut self, index: u32, io: &Io) {
        if io.direction == Direction::Trim
            && let Some(ranges) = &self.common.extras.ranges
            && ranges.list.len() > 1
        {
            self.engine.trims(index, &ranges.list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(direction: Direction, file: u32, block: u64) -> Next {
        Next::Io(Io { offset: block * 4096, length: 4096, file, direction })
    }

    #[test]
    fn trims_of_one_file_are_one_until_something_else_comes() {
        let trim = |file, block| io(Direction::Trim, file, block);
        let read = io(Direction::Read, 0, 9);
        let mut steps = [trim(0, 5), trim(0, 1), trim(0, 7), trim(1, 2), read, trim(0, 3)].into_iter();
        let mut ranges = Ranges::new(2);
        let mut next = || {
            let step = ranges.next(|| steps.next().unwrap_or(Next::Done));
            (step, ranges.list.clone())
        };
        let whole = |file, block: u64, count: u64| {
            Next::Io(Io { offset: block * 4096, length: count * 4096, file, direction: Direction::Trim })
        };
        let range = |block: u64| (block * 4096, 4096);
        assert_eq!(next(), (whole(0, 5, 2), vec![range(5), range(1)]));
        assert_eq!(next(), (whole(0, 7, 1), vec![range(7)]), "the next is of another file");
        assert_eq!(next(), (whole(1, 2, 1), vec![range(2)]));
        assert_eq!(next().0, read);
        assert_eq!(next(), (whole(0, 3, 1), vec![range(3)]));
        assert_eq!(next().0, Next::Done);
    }
}
