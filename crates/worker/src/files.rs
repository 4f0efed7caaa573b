//! A worker's files: which ones are open, advice to the kernel, locks.

mod replayed;
mod specs;
mod syncing;

use crate::record::TraceRecorder;
use iolite_engine::{DynEngine, FileKind, FileSpec, LocalStorage, OpenMode, Storage, open_as_allowed};
use iolite_host::{Machine, ThisMachine};
use iolite_os::{errno_of, explained};
use iolite_plan::Layout;
use iolite_plan::resolve::{Data, FadviseHint, FileRules, LockFile, NameKind};
use iolite_types::{Direction, describe_error};
use replayed::{LiveRules, Names};
use specs::Specs;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use tracing::debug;

/// The files of a worker.
pub struct FileTable {
    specs: Specs,
    open: Vec<bool>,
    /// Files that were written and then closed.
    written: Vec<bool>,
    /// How each file is opened; empty = all as usual.
    modes: Vec<OpenMode>,
    /// How files are opened by default.
    usual: OpenMode,
    /// Why a file must not be written to. Empty if the job may write to all files.
    protected: Vec<Option<String>>,
    /// Where a file ends that must not become longer. Empty if all may.
    ends: Vec<Option<u64>>,
    live: Option<LiveRules>,
    /// The names in a live trace, for a job in which no file may have two names.
    names: Option<Names>,
    recorder: Option<TraceRecorder>,
    /// Where the data of the engine lives.
    data: Data,
    /// The engine acts on names.
    are_names: bool,
    /// The names belong to directories.
    are_directories: bool,
    random: bool,
    fadvise: FadviseHint,
    invalidate: bool,
    fsync_on_close: bool,
    /// Expected lifetime of written data, as fcntl(2) encodes it; 0 = not set.
    write_hint: u64,
    locks: Option<Locks>,
}

impl FileTable {
    /// The files of this layout. All are closed.
    pub fn new(rules: &FileRules, layout: &Layout) -> Self {
        let specs = Specs::new(layout);
        let locks = (rules.lock != LockFile::None).then(|| Locks::new(rules.lock, specs.len()));
        FileTable {
            open: vec![false; specs.len()],
            written: vec![false; specs.len()],
            modes: rules.modes.clone(),
            usual: rules.mode,
            protected: Vec::new(),
            ends: Vec::new(),
            names: rules.unique_names.then(Names::default),
            live: rules.live.as_ref().map(|live| LiveRules::new(live, rules.data == Data::LocalFiles)),
            recorder: None,
            specs,
            data: rules.data,
            are_names: layout.named.is_some(),
            are_directories: matches!(&layout.named, Some(named) if named.name_use.of == NameKind::Directory),
            random: rules.is_random,
            fadvise: rules.advice,
            invalidate: rules.invalidate,
            fsync_on_close: rules.sync_on_close,
            write_hint: rules.write_hint,
            locks,
        }
    }

    /// Whether a file may be closed only when nothing is in flight. An engine that acts on names has no open files.
    pub fn must_drain_to_close(&self) -> bool {
        !self.are_names
    }

    /// Whether the files need the full loop, for a lock or a record of each I/O.
    pub fn needs_full_loop(&self) -> bool {
        self.locks.is_some() || self.recorder.is_some()
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.specs.len()
    }

    /// The name of a file.
    pub fn name(&self, file: u32) -> String {
        self.specs.get(file).map_or_else(|| "?".into(), |spec| spec.path.display().to_string())
    }

    /// The path of a file.
    pub fn path(&self, file: u32) -> Option<PathBuf> {
        self.specs.get(file).map(|spec| spec.path.clone())
    }

    /// How a file is opened.
    fn mode(&self, file: u32) -> OpenMode {
        self.modes.get(file as usize).copied().unwrap_or(self.usual)
    }

    /// Whether a file is open.
    #[inline(always)]
    pub fn is_open(&self, file: u32) -> bool {
        self.open[file as usize]
    }

    /// The number of open files.
    pub fn open_count(&self) -> u32 {
        self.open.iter().filter(|&&open| open).count() as u32
    }

    /// Opens a file, drops its pages from the page cache (with `invalidate`), and gives the kernel its hints.
    ///
    /// # Errors
    /// The engine cannot open the file, it cannot be opened for its lock, or the kernel refuses `write_hint`.
    pub fn open(&mut self, engine: &mut dyn DynEngine, file: u32) -> io::Result<()> {
        self.try_to_open(engine, file).map_err(|error| match errno_of(&error) {
            libc::EMFILE => self.too_many(&error),
            _ => error,
        })
    }

    /// The error with its remedy, for a process that has as many files open as it may.
    fn too_many(&self, error: &io::Error) -> io::Error {
        let limit = ThisMachine::new().limits().open_files.soft.unwrap_or(u64::MAX);
        let (what, files) = (describe_error(error), self.specs.len());
        let locked = if self.locks.is_some() { ", each of which is open twice with lockfile" } else { "" };
        let text = format!(
            "{what}: a process may have {limit} (ulimit -n), and the job has {files}{locked}; raise that limit, or have fewer open at \
             a time with openfiles="
        );
        explained(error, text)
    }

    fn try_to_open(&mut self, engine: &mut dyn DynEngine, file: u32) -> io::Result<()> {
        let slot = file as usize;
        let spec = self.specs.get(file).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        if let Err(error) = engine.open(file, &spec, self.mode(file)) {
            let spec = spec.into_owned();
            if !self.settle_for_reading(file, &error) {
                return Err(error);
            }
            engine.open(file, &spec, self.mode(file))?;
        }
        let spec = self.specs.get(file).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        debug!(target: "file", "{}: opened for {}", spec.path.display(), self.mode(file).in_words());
        if let Some(locks) = &mut self.locks {
            locks.open_one(slot, &spec, engine.descriptor(file)).inspect_err(|_| {
                // The caller reports the earlier error.
                let _ = engine.close(file);
            })?;
        }
        self.open[slot] = true;
        self.written[slot] = false;
        if let Some(descriptor) = engine.descriptor(file) {
            if self.invalidate {
                invalidate(descriptor, &spec);
            }
            advise(descriptor, self.fadvise, self.random);
            if self.write_hint > 0 {
                hint(descriptor, self.write_hint).inspect_err(|_| {
                    // The caller reports the earlier error.
                    let _ = engine.close(file);
                    self.open[file as usize] = false;
                    if let Some(locks) = &mut self.locks {
                        locks.close_one(file);
                    }
                })?;
            }
        }
        self.record_open(file);
        Ok(())
    }

    /// With `invalidate`, drops the open files' pages from the page cache before the next lap or pass over them.
    pub fn refresh(&self, engine: &dyn DynEngine) {
        if !self.invalidate {
            return;
        }
        for (file, spec) in self.specs.iter() {
            if self.open[file as usize]
                && let Some(descriptor) = engine.descriptor(file)
            {
                invalidate(descriptor, &spec);
            }
        }
    }

    /// Reopens a closed file and syncs it. With `invalidate`, then drops its pages from the page cache, so that reads come
    /// from the medium if possible.
    ///
    /// # Errors
    /// As for [`FileTable::open`], or the file cannot be synced.
    pub fn reopen(&mut self, engine: &mut dyn DynEngine, file: u32) -> io::Result<()> {
        self.open(engine, file)?;
        self.sync(engine, file)?;
        if self.invalidate
            && let (Some(descriptor), Some(spec)) = (engine.descriptor(file), self.specs.get(file))
        {
            invalidate(descriptor, &spec);
        }
        Ok(())
    }

    /// Closes a file. Syncs it first if the job asks for that.
    ///
    /// # Errors
    /// The sync fails, or the engine cannot close the file.
    pub fn close(&mut self, engine: &mut dyn DynEngine, file: u32) -> io::Result<()> {
        if !std::mem::take(&mut self.open[file as usize]) {
            return Ok(());
        }
        debug!(target: "file", "{}: closed", self.name(file));
        let synced = if self.fsync_on_close { self.sync(engine, file) } else { Ok(()) };
        self.written[file as usize] =
            self.mode(file).write && !matches!(self.data, Data::OtherEnd | Data::Nowhere);
        self.record_close(file);
        if let Some(locks) = &mut self.locks {
            locks.close_one(file);
        }
        engine.close(file)?;
        synced
    }

    /// Closes all open files. Returns the first error.
    ///
    /// # Errors
    /// The first error of [`FileTable::close`]. The other files are closed even so.
    pub fn close_all(&mut self, engine: &mut dyn DynEngine) -> io::Result<()> {
        (0..self.specs.len() as u32).map(|file| self.close(engine, file)).fold(Ok(()), io::Result::and)
    }

    /// Reads all files into the page cache.
    ///
    /// # Errors
    /// A file cannot be opened or read.
    pub fn pre_read(&self, stop: &dyn Fn() -> bool) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        let specs = self.specs.iter().map(|(_, spec)| spec);
        for spec in specs.filter(|spec| matches!(spec.kind, FileKind::Regular | FileKind::Block)) {
            let mut file = match File::open(&spec.path) {
                Ok(file) => file.take(spec.size),
                // This job is going to create the file, so there is nothing to read yet.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            while !stop() && file.read(&mut buffer)? > 0 {}
        }
        Ok(())
    }

    /// Removes the regular files, or the directories of an engine that acts on directories. A missing file is not an error:
    /// clones share files. `storage`: the engine's own storage, if its data is there.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn unlink(&self, mut storage: Option<&mut dyn Storage>) -> io::Result<()> {
        for (_, spec) in self.specs.iter().filter(|(_, spec)| spec.kind == FileKind::Regular) {
            let removed = match self.data {
                Data::LocalFiles if self.are_directories => std::fs::remove_dir(&spec.path),
                Data::LocalFiles => LocalStorage.unlink(&spec.path),
                // (The engine's facets promise its storage.)
                Data::OwnStorage => match &mut storage {
                    Some(storage) => storage.unlink(&spec.path),
                    None => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
                },
                Data::OtherEnd | Data::Nowhere => Ok(()),
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether an I/O of this direction has to wait until nothing is in flight. It has to if the worker holds the wrong
    /// kind of lock on the file. It also has to if it needs a new lock while the worker holds others: workers that wait
    /// for locks while they hold some can deadlock.
    pub fn must_drain_for(&self, file: u32, direction: Direction) -> bool {
        self.locks.as_ref().is_some_and(|locks| locks.conflicts(file, direction))
    }

    /// Takes the file's lock for an I/O that is about to be issued.
    ///
    /// # Errors
    /// The lock cannot be taken.
    pub fn enter(&mut self, file: u32, direction: Direction) -> io::Result<()> {
        match &mut self.locks {
            Some(locks) => {
                debug!(target: "mutex", "file {file}: lock for a {}", direction.name());
                locks.enter(file, direction)
            }
            None => Ok(()),
        }
    }

    /// Releases the file's lock if the completed I/O was the last one in flight on it.
    pub fn left(&mut self, file: u32) {
        if let Some(locks) = &mut self.locks {
            debug!(target: "mutex", "file {file}: one user less of its lock");
            locks.left(file);
        }
    }
}

/// The engine's own storage, which its facets promise.
fn own_storage(engine: &mut dyn DynEngine) -> io::Result<&mut dyn Storage> {
    engine.storage().ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSYS))
}

/// Drops a file's data from the cache. A file that has no cache is not an error.
fn invalidate(descriptor: RawFd, spec: &FileSpec) {
    /// Flushes and drops the buffers of a block device (linux/fs.h).
    const BLKFLSBUF: libc::Ioctl = 0x1261;
    // SAFETY: the descriptor is open; no pointers are involved.
    unsafe {
        match spec.kind {
            FileKind::Regular => {
                libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
            }
            // The ioctl needs privileges that a reader may not have. Advice needs none.
            FileKind::Block if libc::ioctl(descriptor, BLKFLSBUF) != 0 => {
                libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
            }
            FileKind::Block | FileKind::Char | FileKind::Pipe => {}
        }
    }
}

/// Tells the kernel the expected lifetime of data written to this file.
fn hint(descriptor: RawFd, life_time: u64) -> io::Result<()> {
    // linux/fcntl.h
    const F_SET_RW_HINT: libc::c_int = 1024 + 12;
    // SAFETY: the descriptor is open, and the number lives through the call.
    match unsafe { libc::fcntl(descriptor, F_SET_RW_HINT, &raw const life_time) } {
        -1 => {
            let error = io::Error::last_os_error();
            Err(explained(&error, format!("write_hint: {error}")))
        }
        _ => Ok(()),
    }
}

/// Tells the kernel how the file will be accessed. This is advice, so failure is not an error.
fn advise(descriptor: RawFd, hint: FadviseHint, random: bool) {
    let advice = match hint {
        FadviseHint::None => return,
        FadviseHint::Pattern if random => libc::POSIX_FADV_RANDOM,
        FadviseHint::Pattern | FadviseHint::Sequential => libc::POSIX_FADV_SEQUENTIAL,
        FadviseHint::Random => libc::POSIX_FADV_RANDOM,
        FadviseHint::NoReuse => libc::POSIX_FADV_NOREUSE,
    };
    // SAFETY: the descriptor is open; no pointers are involved.
    unsafe { libc::posix_fadvise(descriptor, 0, 0, advice) };
}

/// `lockfile`: one lock per open file, held while this worker has I/O in flight on it.
///
/// The lock is a flock(2) on a descriptor that only this worker uses, so it works between threads as well as processes,
/// and the kernel releases it when a worker dies.
struct Locks {
    kind: LockFile,
    files: Vec<Option<File>>,
    in_flight: Vec<u32>,
    exclusive: Vec<bool>,
    /// The number of locks held.
    held: u32,
}

impl Locks {
    fn new(kind: LockFile, count: usize) -> Self {
        Locks {
            kind,
            files: (0..count).map(|_| None).collect(),
            in_flight: vec![0; count],
            exclusive: vec![false; count],
            held: 0,
        }
    }

    /// `descriptor`: that of the engine, if it has one.
    fn open_one(&mut self, slot: usize, spec: &FileSpec, descriptor: Option<RawFd>) -> io::Result<()> {
        // Opening a pipe would wait for its other end. A pipe needs no lock: a byte read from it goes to one reader
        // only.
        if spec.kind != FileKind::Pipe {
            // Another job may have removed the name meanwhile, or made another file of that name. The descriptor is of the
            // file that is read and written (where /proc is mounted).
            let opened = descriptor.map(|descriptor| PathBuf::from(format!("/proc/self/fd/{descriptor}")));
            let opened = opened.and_then(|path| open_as_allowed(&path).ok());
            self.files[slot] = match opened.map_or_else(|| open_as_allowed(&spec.path), Ok) {
                Ok(file) => Some(file),
                // Nobody can open it any more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    /// The next file of this name may be another one, which has another lock.
    fn close_one(&mut self, file: u32) {
        self.files[file as usize] = None;
    }

    fn wants_exclusive(&self, direction: Direction) -> bool {
        self.kind == LockFile::Exclusive || direction != Direction::Read
    }

    fn conflicts(&self, file: u32, direction: Direction) -> bool {
        let file = file as usize;
        if self.in_flight[file] > 0 {
            return self.exclusive[file] != self.wants_exclusive(direction);
        }
        self.held > 0
    }

    fn enter(&mut self, file: u32, direction: Direction) -> io::Result<()> {
        let exclusive = self.wants_exclusive(direction);
        let slot = file as usize;
        if self.in_flight[slot] == 0 {
            lock(&self.files[slot], if exclusive { libc::LOCK_EX } else { libc::LOCK_SH })?;
            self.exclusive[slot] = exclusive;
            self.held += 1;
        }
        self.in_flight[slot] += 1;
        Ok(())
    }

    fn left(&mut self, file: u32) {
        let slot = file as usize;
        if self.in_flight[slot] == 0 {
            return;
        }
        self.in_flight[slot] -= 1;
        if self.in_flight[slot] == 0 {
            self.held -= 1;
            // Unlocking an open descriptor does not fail.
            let _ = lock(&self.files[slot], libc::LOCK_UN);
        }
    }
}

fn lock(file: &Option<File>, operation: libc::c_int) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    loop {
        // SAFETY: the descriptor is open.
        if unsafe { libc::flock(file.as_raw_fd(), operation) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn locks(kind: LockFile, path: &Path) -> Locks {
        let mut locks = Locks::new(kind, 1);
        let spec = FileSpec { path: path.to_owned(), kind: FileKind::Regular, size: 0 };
        locks.open_one(0, &spec, None).unwrap();
        locks
    }

    fn free_for(path: &Path, operation: libc::c_int) -> bool {
        let other = Some(File::open(path).unwrap());
        lock(&other, operation | libc::LOCK_NB).is_ok()
    }

    #[test]
    fn a_lock_is_held_while_something_is_in_flight() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut locks = locks(LockFile::Exclusive, file.path());
        locks.enter(0, Direction::Read).unwrap();
        locks.enter(0, Direction::Write).unwrap();
        locks.left(0);
        assert!(!free_for(file.path(), libc::LOCK_SH));
        locks.left(0);
        assert!(free_for(file.path(), libc::LOCK_EX));
    }

    #[test]
    fn no_lock_is_waited_for_while_another_is_held() {
        let files = [tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap()];
        let mut locks = Locks::new(LockFile::Exclusive, 2);
        let spec = |path: &Path| FileSpec { path: path.to_owned(), kind: FileKind::Regular, size: 0 };
        (0..2).for_each(|slot| locks.open_one(slot, &spec(files[slot].path()), None).unwrap());
        assert!(!locks.conflicts(1, Direction::Write));
        locks.enter(0, Direction::Write).unwrap();
        assert!(locks.conflicts(1, Direction::Write));
        assert!(!locks.conflicts(0, Direction::Write));
        locks.left(0);
        assert!(!locks.conflicts(1, Direction::Write));
        assert!(free_for(files[0].path(), libc::LOCK_EX));
    }

    #[test]
    fn pipes_are_not_opened_for_locks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the string is null-terminated.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let mut locks = Locks::new(LockFile::Exclusive, 2);
        let spec = |path: &Path| FileSpec { path: path.to_owned(), kind: FileKind::Pipe, size: 0 };
        locks.open_one(0, &spec(&path), None).unwrap();
        locks.open_one(1, &spec(Path::new("-")), None).unwrap();
        locks.enter(0, Direction::Read).unwrap();
        locks.left(0);
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut locks = locks(LockFile::ReadWrite, file.path());
        locks.enter(0, Direction::Read).unwrap();
        assert!(free_for(file.path(), libc::LOCK_SH));
        assert!(!free_for(file.path(), libc::LOCK_EX));
        assert!(locks.conflicts(0, Direction::Write));
        assert!(!locks.conflicts(0, Direction::Read));
        locks.left(0);
        locks.enter(0, Direction::Write).unwrap();
        assert!(!free_for(file.path(), libc::LOCK_SH));
    }
}
