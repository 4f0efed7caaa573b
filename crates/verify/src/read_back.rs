//! Decides which blocks are read back, and when: at the end of each pass, or after a number of writes.
//!
//! At the end of a pass the writes come from their [history](iolite_workload::history). If no byte is written twice,
//! that is the generator run again, in the order of the writes; otherwise the writes that are not overwritten, in the
//! order of their offsets. A backlog remembers only the writes since the last check.

use crate::backlog::{Backlog, Waiting};
use crate::demands::Demands;
use crate::question::Expect;
use crate::rules::ReadBackRules;
use iolite_types::Direction;
use iolite_workload::history::{Replay, Standing, Written};
use iolite_workload::{Error, Io};

/// The blocks to read back.
#[derive(Debug)]
pub struct ReadBack {
    kind: Kind,
    /// The number of the next write.
    issued: u64,
    /// The number of the first write of this pass.
    first: u64,
    /// The reads of this pass have begun.
    cursor: Option<Cursor>,
    /// The last block returned, if it was not read because the job stopped.
    held: Option<(Io, Expect)>,
}

#[derive(Debug)]
enum Kind {
    /// All reads of the job are checked: it reads the data of an earlier run.
    AllReads,
    /// Nothing is read back.
    Nothing,
    Replay(Box<Replay>),
    Standing(Standing),
    Backlog(Backlog),
    Demands(Demands),
}

/// The position of the reads of a pass.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    file: u32,
    offset: u64,
}

impl ReadBack {
    fn new(kind: Kind) -> ReadBack {
        ReadBack { kind, issued: 0, first: 0, cursor: None, held: None }
    }

    /// The read-back that these rules ask for, with this workload.
    ///
    /// # Errors
    ///
    /// There is no memory for the history of writes, or the workload is impossible.
    pub(crate) fn of(rules: &ReadBackRules, workload: &iolite_workload::Spec) -> Result<ReadBack, Error> {
        Ok(ReadBack::new(match *rules {
            ReadBackRules::AllReads => Kind::AllReads,
            ReadBackRules::Nothing => Kind::Nothing,
            ReadBackRules::Backlog { every, batch, repeats } => {
                Kind::Backlog(Backlog::new(every, batch, repeats))
            }
            ReadBackRules::AtEnd(need) => match Standing::new(workload, need)? {
                Some(standing) => Kind::Standing(standing),
                None => Kind::Replay(Box::new(Replay::new(workload)?)),
            },
        }))
    }

    /// Reads back the requirements of a saved state; `None` = no requirements.
    pub(crate) fn demands(demands: Option<Demands>) -> ReadBack {
        ReadBack::new(demands.map_or(Kind::Nothing, Kind::Demands))
    }

    /// The seed and the number of the job that wrote the data, if a state names it.
    pub(crate) fn writer(&self) -> Option<(u64, u16)> {
        match &self.kind {
            Kind::Demands(demands) => Some((demands.seed, demands.number)),
            _ => None,
        }
    }

    /// Whether nothing is ever read back.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.kind, Kind::Nothing)
    }

    /// Whether the job's own reads are checked.
    pub fn checks_all_reads(&self) -> bool {
        matches!(self.kind, Kind::AllReads)
    }

    /// The number of a write that is about to be issued.
    pub(crate) fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.issued - 1
    }

    /// A write has been acknowledged.
    pub fn wrote(&mut self, written: Written) {
        match &mut self.kind {
            Kind::Standing(standing) => standing.wrote(written),
            Kind::Backlog(backlog) => backlog.wrote(written),
            Kind::Replay(_) | Kind::Nothing | Kind::AllReads | Kind::Demands(_) => {}
        }
    }

    /// The content of this place is no longer known: a write has failed, or it was trimmed.
    pub fn forget(&mut self, io: &Io) {
        match &mut self.kind {
            Kind::Standing(standing) => standing.forget(io),
            Kind::Backlog(backlog) => backlog.forget(io),
            Kind::Replay(_) | Kind::Nothing | Kind::AllReads | Kind::Demands(_) => {}
        }
    }

    /// Whether it is time to read back, before the next I/O of the workload.
    #[inline]
    pub fn is_due(&self) -> bool {
        matches!(&self.kind, Kind::Backlog(backlog) if backlog.is_due())
    }

    /// The block to read now, between two writes; `None` = continue writing.
    pub fn next_due(&mut self) -> Option<(Io, Expect)> {
        let Kind::Backlog(backlog) = &mut self.kind else { return None };
        backlog.take().map(expected)
    }

    /// The last block could not be read. There are no writes until it is requested again, if ever.
    pub(crate) fn put_back(&mut self, io: Io, expect: Expect) {
        self.held = Some((io, expect));
    }

    /// The block to read at the end of the pass; `None` = no more blocks.
    pub(crate) fn next_at_end(&mut self) -> Option<(Io, Expect)> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let written = match &mut self.kind {
            Kind::AllReads | Kind::Nothing => None,
            Kind::Demands(demands) => {
                return demands.next().map(|(io, saved)| (io, Expect::Saved(saved)));
            }
            Kind::Backlog(backlog) => backlog.waiting.pop(),
            Kind::Replay(replay) if replay.number() < self.issued => replay.next_write(),
            Kind::Replay(_) => None,
            Kind::Standing(standing) => loop {
                let Cursor { file, offset } = self.cursor.unwrap_or_default();
                let Some(written) = standing.next(file, offset, self.issued) else { break None };
                let io = written.io;
                self.cursor = Some(Cursor { file: io.file, offset: io.offset + io.length });
                // Writes of earlier passes were read at the end of those.
                if written.number >= self.first {
                    break Some(written);
                }
            },
        };
        written.map(expected)
    }

    /// The first write within this place that was not overwritten; `None` = no such write, or writes are not
    /// remembered.
    pub fn first_within(&self, place: &Io) -> Option<Written> {
        match &self.kind {
            Kind::Standing(standing) => standing.first_within(place, self.issued),
            Kind::Backlog(Backlog { waiting: Waiting::Sorted(extents), .. }) => extents.first_within(place),
            Kind::Backlog(_) | Kind::Replay(_) | Kind::Nothing | Kind::AllReads | Kind::Demands(_) => None,
        }
    }

    /// Returns to the first read of a pass of an earlier run, all of whose passes make the same choices.
    pub(crate) fn go_back(&mut self) {
        (self.cursor, self.held) = (None, None);
        if let Kind::Replay(replay) = &mut self.kind {
            replay.start_over(self.first);
        }
    }

    /// Calls `act` with each write of an earlier run that is read back in a pass.
    pub(crate) fn each_assumed(&self, mut act: impl FnMut(Written)) {
        match &self.kind {
            Kind::Replay(replay) => {
                let mut replay = replay.clone();
                replay.start_over(self.first);
                while replay.number() < self.issued
                    && let Some(written) = replay.next_write()
                {
                    act(written);
                }
            }
            Kind::Standing(standing) => standing.each(self.issued, act),
            Kind::Nothing | Kind::AllReads | Kind::Demands(_) | Kind::Backlog(_) => {}
        }
    }

    /// The number of writes in a pass of an earlier run.
    pub(crate) fn issued(&self) -> u64 {
        self.issued
    }

    /// An earlier run has written this.
    pub(crate) fn assume(&mut self, io: Io) {
        let number = self.issue();
        self.wrote(Written { io, number });
    }

    /// The pass is over, and the next one begins: with the `same` random choices as the first, or with new ones. `stop`
    /// returns whether to stop early.
    pub(crate) fn next_pass(&mut self, same: bool, stop: impl Fn() -> bool) {
        self.first = self.issued;
        self.cursor = None;
        if let Kind::Replay(replay) = &mut self.kind {
            replay.finish_pass(stop);
            if same {
                replay.rewind();
            } else {
                replay.restart();
            }
        }
    }

    /// How many writes wait to be read back, at most.
    pub fn unread(&self) -> u64 {
        let held = u64::from(self.held.is_some());
        match &self.kind {
            Kind::AllReads | Kind::Nothing => 0,
            Kind::Demands(demands) => demands.left() + held,
            Kind::Replay(replay) => self.issued - replay.number() + held,
            // The number of blocks that have been read is not counted.
            Kind::Standing(_) => self.issued - self.first,
            Kind::Backlog(backlog) => backlog.waiting.len() as u64 + held,
        }
    }

    /// Whether each write is remembered until the end of the pass.
    pub fn keeps_writes(&self) -> bool {
        matches!(self.kind, Kind::Standing(_))
    }

    /// The most bytes of memory that the history takes.
    pub fn history_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Standing(standing) => standing.bytes(),
            Kind::Backlog(backlog) => backlog.bytes(),
            Kind::Replay(_) | Kind::Nothing | Kind::AllReads | Kind::Demands(_) => 0,
        }
    }
}

impl std::fmt::Display for ReadBack {
    /// The kind of history, for messages.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::AllReads => to.write_str("all reads are checked, without a history"),
            Kind::Demands(_) => to.write_str("history of writes: a saved state"),
            Kind::Nothing => to.write_str("nothing is read back, so there is no history"),
            Kind::Replay(_) => to.write_str("history of writes: the generator once more"),
            Kind::Standing(Standing::Map(_)) => to.write_str("history of writes: 4 bytes per block"),
            Kind::Standing(Standing::Extents(_)) => {
                to.write_str("history of writes: about 60 bytes per write that stands (none yet)")
            }
            Kind::Backlog(backlog) => write!(to, "history of writes: the last {}", backlog.every),
        }
    }
}

pub(crate) fn expected(written: Written) -> (Io, Expect) {
    let read = Io { direction: Direction::Read, ..written.io };
    (read, Expect::Write(written.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(every: u64, batch: u64, repeats: bool) -> ReadBack {
        ReadBack::new(Kind::Backlog(Backlog::new(every, batch, repeats)))
    }

    /// The blocks read after each of 16 writes of one block, and at the end: observed with fio 3.33.
    fn trace(every: u64, batch: u64) -> Vec<Vec<u64>> {
        let mut read_back = backlog(every, batch, false);
        let mut trace: Vec<Vec<u64>> = Vec::new();
        for block in 0..16 {
            let io = Io { offset: block, length: 1, file: 0, direction: Direction::Write };
            let number = read_back.issue();
            read_back.wrote(Written { io, number });
            let reads = std::iter::from_fn(|| read_back.next_due());
            trace.push(reads.map(|(io, _)| io.offset).collect());
        }
        let rest = std::iter::from_fn(|| read_back.next_at_end());
        trace.push(rest.map(|(io, _)| io.offset).collect());
        trace
    }

    fn at(trace: &[Vec<u64>], writes: usize) -> &[u64] {
        &trace[writes - 1]
    }

    #[test]
    fn batches_come_as_fio_s_do() {
        let whole = trace(4, 0);
        assert_eq!(at(&whole, 4), [0, 1, 2, 3]);
        assert_eq!(at(&whole, 16), [12, 13, 14, 15]);
        let odd = trace(5, 0);
        assert_eq!(
            (at(&odd, 5), at(&odd, 15), at(&odd, 17)),
            (&[0, 1, 2, 3, 4][..], &[10, 11, 12, 13, 14][..], &[15][..])
        );
        let small = trace(4, 2);
        assert_eq!((at(&small, 4), at(&small, 6), at(&small, 17)), (&[0, 1][..], &[2, 3][..], &[14, 15][..]));
        let large = trace(4, 8);
        assert_eq!((at(&large, 4), at(&large, 5), at(&large, 8)), (&[0, 1, 2, 3][..], &[4][..], &[7][..]));
        assert_eq!((at(&large, 9), at(&large, 12)), (&[][..], &[8, 9, 10, 11][..]));
    }

    #[test]
    fn blocks_overwritten_while_waiting_are_read_once() {
        let mut read_back = backlog(3, 0, true);
        for block in [5, 5, 1, 5, 3] {
            let io = Io { offset: block, length: 1, file: 0, direction: Direction::Write };
            let number = read_back.issue();
            read_back.wrote(Written { io, number });
        }
        let reads: Vec<_> =
            std::iter::from_fn(|| read_back.next_due()).map(|(io, e)| (io.offset, e)).collect();
        assert_eq!(reads, [(1, Expect::Write(2)), (3, Expect::Write(4)), (5, Expect::Write(3))]);
    }

    fn written(read_back: &mut ReadBack, block: u64) -> Io {
        let io = Io { offset: block, length: 1, file: 0, direction: Direction::Write };
        let number = read_back.issue();
        read_back.wrote(Written { io, number });
        io
    }

    #[test]
    fn blocks_that_could_not_be_read_are_read_later() {
        for repeats in [false, true] {
            let mut read_back = backlog(2, 0, repeats);
            (0..2).for_each(|block| _ = written(&mut read_back, block));
            let first = read_back.next_due().unwrap();
            let last = read_back.next_due().unwrap();
            assert_eq!(read_back.unread(), 0);
            read_back.put_back(last.0, last.1);
            assert_eq!(read_back.unread(), 1);
            assert_ne!(first, last);
            assert_eq!((read_back.next_at_end(), read_back.next_at_end()), (Some(last), None));
            assert_eq!(read_back.unread(), 0);
        }
    }

    #[test]
    fn trimmed_blocks_are_not_read() {
        let mut read_back = backlog(2, 0, true);
        let [first, second] = [4, 5].map(|block| written(&mut read_back, block));
        read_back.forget(&Io { direction: Direction::Trim, ..second });
        assert_eq!(read_back.next_at_end().map(|(io, _)| io.offset), Some(first.offset));
        assert_eq!(read_back.next_at_end(), None);
    }
}
