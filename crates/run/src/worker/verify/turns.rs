//! Workers that write to the same place take turns there.
//!
//! What two writes leave behind that are in flight together is nobody's: engines and devices cut them into pieces. So
//! a worker with rivals locks what it writes, alone, and what it reads back, together with others that read; the lock is
//! held until the unit is free again. It is one of an open file description (fcntl(2), `F_OFD_SETLK`), on a descriptor
//! of the worker's own: it holds between threads and processes alike, and the kernel takes it back from a worker that
//! dies. Who waits for one holds none, so nobody waits for ever.

use super::owners::{Owner, Owners};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

/// What an I/O wants to do with its place.
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
    /// Index of the file.
    pub file: u32,
    /// The first byte.
    pub offset: u64,
    /// How many.
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

/// A file that rivals write to as well.
#[derive(Debug)]
struct SharedFile {
    path: PathBuf,
    /// Its number among the places whose owners are known.
    place: Option<usize>,
    /// For the locks; opened when the first is taken.
    descriptor: Option<File>,
}

/// A worker's part in it.
#[derive(Debug)]
pub struct Turns {
    /// By index; `None` = nobody else writes there.
    files: Vec<Option<SharedFile>>,
    /// Of each unit.
    held: Vec<Option<(Part, Aim)>>,
    /// Of the I/O that is being made.
    next: Option<(Part, Aim)>,
    owners: Arc<Owners>,
    worker: u16,
    writes: bool,
}

impl Turns {
    /// For the worker of this number (from 1), with so many units. `files`: the paths of those that rivals write to, each
    /// with its place among the owners.
    pub fn new(
        files: impl Iterator<Item = Option<(PathBuf, Option<usize>)>>,
        units: usize,
        owners: Arc<Owners>,
        (worker, writes): (u16, bool),
    ) -> Turns {
        let shared = |(path, place)| SharedFile { path, place, descriptor: None };
        let files = files.map(|file| file.map(shared)).collect();
        Turns { files, held: vec![None; units], next: None, owners, worker, writes }
    }

    /// Takes the turn for an I/O that is about to be made; false = it has to be waited for, with nothing in flight.
    pub fn take(&mut self, part: Part, aim: Aim) -> io::Result<bool> {
        if self.held.iter().flatten().any(|(held, _)| held.overlaps(&part)) {
            // A lock that is given back would free a part of another one's.
            return Ok(false);
        }
        let taken = self.lock(part, aim, libc::F_OFD_SETLK);
        match taken {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Waits for the turn. Nothing may be in flight. A signal ends the wait.
    pub fn wait(&mut self, part: Part, aim: Aim) -> io::Result<()> {
        debug_assert!(self.held.iter().all(Option::is_none));
        self.lock(part, aim, libc::F_OFD_SETLKW)
    }

    /// The I/O has been made with this unit.
    pub fn made(&mut self, index: u32) {
        self.held[index as usize] = self.next.take();
    }

    /// The unit is free again.
    pub fn left(&mut self, index: u32) {
        let Some((part, _)) = self.held[index as usize].take() else { return };
        if let Some(Some(SharedFile { descriptor: Some(descriptor), .. })) =
            self.files.get(part.file as usize)
        {
            // Giving back a lock on an open descriptor fails only where there is no memory to keep the others; then they
            // are held for longer than they need to be, and that is safe.
            let _ = set_lock(descriptor, libc::F_OFD_SETLK, libc::F_UNLCK, part);
        }
    }

    /// The I/O of this unit has failed.
    pub fn failed(&self, index: u32) {
        if let Some((part, Aim::Change)) = self.held[index as usize]
            && let Some(place) = self.place(part.file)
        {
            self.owners.lose(place, part.bytes());
        }
    }

    /// Whose is what is here now? The place has to be this worker's turn.
    pub fn owner(&self, part: Part) -> Owner {
        let whose = |place| self.owners.owner(place, part.bytes(), self.worker);
        self.place(part.file).map_or(Owner::Nobody, whose)
    }

    fn place(&self, file: u32) -> Option<usize> {
        self.files.get(file as usize)?.as_ref()?.place
    }

    fn lock(&mut self, part: Part, aim: Aim, how: libc::c_int) -> io::Result<()> {
        let Some(Some(file)) = self.files.get_mut(part.file as usize) else { return Ok(()) };
        let descriptor = match &mut file.descriptor {
            Some(descriptor) => descriptor,
            // A lock to write under needs a descriptor to write with.
            none => none.insert(File::options().read(true).write(self.writes).open(&file.path)?),
        };
        let kind = if aim == Aim::Change { libc::F_WRLCK } else { libc::F_RDLCK };
        set_lock(descriptor, how, kind, part)?;
        if let (Aim::Change, Some(place)) = (aim, file.place) {
            self.owners.take(place, part.bytes(), self.worker);
        }
        self.next = Some((part, aim));
        Ok(())
    }
}

fn set_lock(file: &File, how: libc::c_int, kind: libc::c_int, part: Part) -> io::Result<()> {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: part.offset as libc::off_t,
        l_len: part.length as libc::off_t,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the lock is read only.
    match unsafe { libc::fcntl(file.as_raw_fd(), how, &raw const lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::owners::Extent;
    use super::*;

    fn pair(path: &std::path::Path) -> [Turns; 2] {
        let owners = Arc::new(Owners::of(vec![Extent { start: 0, end: 1 << 16, granule: 512 }]).unwrap());
        [1, 2].map(|worker| {
            let files = vec![None, Some((path.to_owned(), Some(0)))];
            Turns::new(files.into_iter(), 4, owners.clone(), (worker, true))
        })
    }

    fn part(offset: u64, length: u64) -> Part {
        Part { file: 1, offset, length }
    }

    #[test]
    fn a_place_is_for_one_writer_or_several_readers() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [mut one, mut other] = pair(file.path());
        assert!(one.take(part(0, 4096), Aim::Change).unwrap());
        one.made(0);
        assert_eq!(one.owner(part(0, 4096)), Owner::Me);
        assert_eq!(other.owner(part(0, 4096)), Owner::Others);
        assert!(!other.take(part(4095, 1), Aim::Check).unwrap());
        assert!(!other.take(part(4095, 512), Aim::Change).unwrap());
        assert!(other.take(part(4096, 512), Aim::Change).unwrap());
        other.made(3);
        one.left(0);
        assert!(other.take(part(0, 512), Aim::Check).unwrap());
        other.made(0);
        assert!(one.take(part(0, 512), Aim::Check).unwrap());
        one.made(1);
        assert!(!one.take(part(512, 4096), Aim::Change).unwrap());
        assert_eq!(one.owner(part(0, 4096)), Owner::Me);
        assert_eq!(one.owner(part(0, 4608)), Owner::Others);
    }

    #[test]
    fn a_worker_does_not_meet_itself_nor_those_that_share_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [mut one, mut other] = pair(file.path());
        assert!(one.take(part(0, 4096), Aim::Check).unwrap());
        one.made(0);
        assert!(!one.take(part(512, 512), Aim::Check).unwrap());
        assert!(one.take(Part { file: 0, offset: 0, length: 4096 }, Aim::Change).unwrap());
        one.left(0);
        one.wait(part(512, 512), Aim::Change).unwrap();
        one.made(0);
        assert!(!other.take(part(0, 4096), Aim::Change).unwrap());
        drop(one);
        assert!(other.take(part(0, 512), Aim::Change).unwrap());
        other.made(2);
        other.failed(2);
        assert_eq!(other.owner(part(0, 4096)), Owner::Unknown);
    }
}
