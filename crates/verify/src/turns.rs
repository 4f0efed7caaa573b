//! Workers that write to the same place take turns there.
//!
//! Two overlapping writes in flight may leave a mixture of both blocks, because engines and devices split writes. So a
//! worker with rivals locks a place: exclusively to write to it, shared to read it back. It holds the lock until the
//! unit is free again. The locks are those of open file descriptions (fcntl(2), `F_OFD_SETLK`), and each worker has
//! separate ones: they work between threads and processes alike, and the kernel releases the locks of a dead worker. A
//! worker that waits for a lock holds none, so there are no deadlocks.

use crate::owners::{Owner, Owners};
use crate::rivals::SharedFile;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::Arc;

/// The intention of an I/O for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Read and check it.
    Check,
    /// Write to it, or trim it.
    Change,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The index of the file.
    pub file: u32,
    /// The offset of its first byte.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
}

impl Part {
    fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.length
    }

    fn overlaps(&self, other: &Part) -> bool {
        self.file == other.file
            && self.offset < other.offset + other.length
            && other.offset < self.offset + self.length
    }
}

/// A lock.
#[derive(Clone, Copy, Debug)]
struct Turn {
    descriptor: RawFd,
    part: Part,
    aim: Aim,
}

/// The turns of one worker.
#[derive(Debug)]
pub struct Turns {
    /// How each file is shared; `None` = no other worker writes to it.
    files: Vec<Option<SharedFile>>,
    /// The lock of each unit.
    held: Vec<Option<Turn>>,
    /// The lock of the I/O that is being made.
    next: Option<Turn>,
    owners: Arc<Owners>,
    worker: u16,
}

impl Turns {
    /// The turns of the worker with this number (from 1) and this many units.
    pub fn new(files: Vec<Option<SharedFile>>, units: usize, owners: Arc<Owners>, worker: u16) -> Turns {
        Turns { files, held: vec![None; units], next: None, owners, worker }
    }

    /// Takes the turn for an I/O that is about to be made through this descriptor. False: [wait](Self::wait) for it,
    /// with nothing in flight.
    ///
    /// # Errors
    ///
    /// The system refuses the lock, unless another worker holds it.
    pub fn take(&mut self, descriptor: RawFd, part: Part, aim: Aim) -> io::Result<bool> {
        if self.held.iter().flatten().any(|held| held.part.overlaps(&part)) {
            // Releasing one of two overlapping locks would also release a part of the other.
            return Ok(false);
        }
        match self.lock(Turn { descriptor, part, aim }, libc::F_OFD_SETLK) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Waits for the turn. Nothing may be in flight. A signal ends the wait.
    ///
    /// # Errors
    ///
    /// [`Interrupted`](io::ErrorKind::Interrupted) by a signal, or another error of the lock.
    pub fn wait(&mut self, descriptor: RawFd, part: Part, aim: Aim) -> io::Result<()> {
        debug_assert!(self.held.iter().all(Option::is_none));
        self.lock(Turn { descriptor, part, aim }, libc::F_OFD_SETLKW)
    }

    /// The I/O has been made with this unit.
    pub fn made(&mut self, index: u32) {
        self.held[index as usize] = self.next.take();
    }

    /// The unit is free again.
    pub fn left(&mut self, index: u32) {
        if let Some(turn) = self.held[index as usize].take() {
            // Releasing a lock fails only if there is not enough memory to keep the others. Then it is held until the
            // file is closed, which is safe.
            let _ = set_lock(turn, libc::F_OFD_SETLK, libc::F_UNLCK);
        }
    }

    /// The I/O of this unit has failed.
    pub fn failed(&self, index: u32) {
        if let Some(Turn { part, aim: Aim::Change, .. }) = self.held[index as usize]
            && let Some(place) = self.place(part.file)
        {
            self.owners.lose(place, part.bytes());
        }
    }

    /// The owner of a place. This worker must have the turn there.
    pub fn owner(&self, part: Part) -> Owner {
        let whose = |place| self.owners.owner(place, part.bytes(), self.worker);
        self.place(part.file).map_or(Owner::Nobody, whose)
    }

    fn shared(&self, file: u32) -> Option<SharedFile> {
        self.files.get(file as usize).copied().flatten()
    }

    fn place(&self, file: u32) -> Option<usize> {
        self.shared(file).flatten()
    }

    fn lock(&mut self, turn: Turn, how: libc::c_int) -> io::Result<()> {
        let Turn { part, aim, .. } = turn;
        let Some(place) = self.shared(part.file) else { return Ok(()) };
        set_lock(turn, how, if aim == Aim::Change { libc::F_WRLCK } else { libc::F_RDLCK })?;
        if let (Aim::Change, Some(place)) = (aim, place) {
            self.owners.take(place, part.bytes(), self.worker);
        }
        self.next = Some(turn);
        Ok(())
    }
}

fn set_lock(turn: Turn, how: libc::c_int, kind: libc::c_int) -> io::Result<()> {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: turn.part.offset as libc::off_t,
        l_len: turn.part.length as libc::off_t,
        l_pid: 0,
    };
    // SAFETY: the lock is valid, and is only read. A file stays open while any I/O on it is in flight.
    match unsafe { libc::fcntl(turn.descriptor, how, &raw const lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owners::Extent;
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    /// A worker with two files, one of them shared, and the descriptor of the shared one.
    struct Party(Turns, File);

    impl Party {
        fn take(&mut self, part: Part, aim: Aim) -> bool {
            self.0.take(self.1.as_raw_fd(), part, aim).unwrap()
        }

        fn owner(&self, offset: u64, length: u64) -> Owner {
            self.0.owner(part(offset, length))
        }
    }

    fn pair(path: &Path) -> [Party; 2] {
        let owners = Arc::new(Owners::of(vec![Extent { start: 0, end: 1 << 16, granule: 512 }]).unwrap());
        [1, 2].map(|worker| {
            let file = File::options().read(true).write(true).open(path).unwrap();
            Party(Turns::new(vec![None, Some(Some(0))], 4, owners.clone(), worker), file)
        })
    }

    fn part(offset: u64, length: u64) -> Part {
        Part { file: 1, offset, length }
    }

    #[test]
    fn a_place_is_for_one_writer_or_several_readers() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [mut one, mut other] = pair(file.path());
        assert!(one.take(part(0, 4096), Aim::Change));
        one.0.made(0);
        assert_eq!(one.owner(0, 4096), Owner::Me);
        assert_eq!(other.owner(0, 4096), Owner::Others);
        assert!(!other.take(part(4095, 1), Aim::Check));
        assert!(!other.take(part(4095, 512), Aim::Change));
        assert!(other.take(part(4096, 512), Aim::Change));
        other.0.made(3);
        one.0.left(0);
        assert!(other.take(part(0, 512), Aim::Check));
        other.0.made(0);
        assert!(one.take(part(0, 512), Aim::Check));
        one.0.made(1);
        assert!(!one.take(part(512, 4096), Aim::Change));
        assert_eq!(one.owner(0, 4096), Owner::Me);
        assert_eq!(one.owner(0, 4608), Owner::Others);
    }

    #[test]
    fn a_worker_never_conflicts_with_itself_or_a_finished_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [mut one, mut other] = pair(file.path());
        assert!(one.take(part(0, 4096), Aim::Check));
        one.0.made(0);
        assert!(!one.take(part(512, 512), Aim::Check));
        assert!(one.take(Part { file: 0, offset: 0, length: 4096 }, Aim::Change));
        one.0.left(0);
        one.0.wait(one.1.as_raw_fd(), part(512, 512), Aim::Change).unwrap();
        one.0.made(0);
        assert!(!other.take(part(0, 4096), Aim::Change));
        drop(one);
        assert!(other.take(part(0, 512), Aim::Change));
        other.0.made(2);
        other.0.failed(2);
        assert_eq!(other.owner(0, 4096), Owner::Unknown);
    }
}
