//! A worker's files: which are open, advice to the kernel, locks.

mod replayed;
mod syncing;

use crate::record::TraceRecorder;
use iolite_engine::{Engine, FileKind, FileSpec, OpenMode};
use iolite_os::explained;
use iolite_plan::Layout;
use iolite_plan::resolve::FileRules;
use iolite_plan::resolve::{FadviseHint, LockFile};
use iolite_types::Direction;
use replayed::{LiveRules, Names};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use tracing::debug;

/// The files of a worker.
pub struct FileTable {
    specs: Vec<FileSpec>,
    open: Vec<bool>,
    /// Which were open for writing and are closed.
    written: Vec<bool>,
    /// How each is opened.
    modes: Vec<OpenMode>,
    /// How files are opened of which nothing else is known.
    usual: OpenMode,
    /// Why a file must not be changed; empty where none has a reason.
    protected: Vec<Option<String>>,
    live: Option<LiveRules>,
    /// What the names of a live trace mean, where none may have two.
    names: Option<Names>,
    recorder: Option<TraceRecorder>,
    random: bool,
    fadvise: FadviseHint,
    invalidate: bool,
    fsync_on_close: bool,
    /// How long what is written will live, as fcntl(2) says it; 0 = nothing is said.
    write_hint: u64,
    locks: Option<Locks>,
}

impl FileTable {
    /// The files of this layout, none of them open.
    pub fn new(rules: &FileRules, layout: &Layout) -> Self {
        let specs: Vec<FileSpec> = layout
            .files
            .iter()
            .map(|file| FileSpec {
                path: file.path.clone(),
                kind: file.kind,
                size: file.offset.saturating_add(file.length),
            })
            .collect();
        let locks = (rules.lock != LockFile::None).then(|| Locks::new(rules.lock, specs.len()));
        FileTable {
            open: vec![false; specs.len()],
            written: vec![false; specs.len()],
            modes: if rules.modes.is_empty() { vec![rules.mode; specs.len()] } else { rules.modes.clone() },
            usual: rules.mode,
            protected: Vec::new(),
            names: rules.unique_names.then(Names::default),
            live: rules.live.as_ref().map(|live| LiveRules::new(live, rules.has_local_files)),
            recorder: None,
            specs,
            random: rules.is_random,
            fadvise: rules.advice,
            invalidate: rules.invalidate,
            fsync_on_close: rules.sync_on_close,
            write_hint: rules.write_hint,
            locks,
        }
    }

    /// Whether files are locked for each I/O, or I/Os are recorded: only the full loop does that.
    pub fn needs_full_loop(&self) -> bool {
        self.locks.is_some() || self.recorder.is_some()
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.specs.len()
    }

    /// The name of a file.
    pub fn name(&self, file: u32) -> String {
        self.specs.get(file as usize).map_or_else(|| "?".into(), |spec| spec.path.display().to_string())
    }

    /// Where a file is.
    pub fn path(&self, file: u32) -> Option<&Path> {
        self.specs.get(file as usize).map(|spec| spec.path.as_path())
    }

    /// Whether a file is open.
    #[inline(always)]
    pub fn is_open(&self, file: u32) -> bool {
        self.open[file as usize]
    }

    /// How many are open.
    pub fn open_count(&self) -> u32 {
        self.open.iter().filter(|&&open| open).count() as u32
    }

    /// Opens a file, drops what the page cache holds of it, and gives the kernel its hints.
    pub fn open<E: Engine>(&mut self, engine: &mut E, file: u32) -> io::Result<()> {
        let slot = file as usize;
        if let Err(error) = engine.open(file, &self.specs[slot], self.modes[slot]) {
            if !self.settle_for_reading(file, &error) {
                return Err(error);
            }
            engine.open(file, &self.specs[slot], self.modes[slot])?;
        }
        let spec = &self.specs[slot];
        debug!(target: "file", "{}: opened for {}", spec.path.display(), self.modes[slot].in_words());
        if let Some(locks) = &mut self.locks {
            locks.open_one(slot, spec)?;
        }
        self.open[slot] = true;
        self.written[slot] = false;
        if let Some(descriptor) = engine.descriptor(file) {
            if self.invalidate {
                invalidate(descriptor, spec);
            }
            advise(descriptor, self.fadvise, self.random);
            if self.write_hint > 0 {
                hint(descriptor, self.write_hint).inspect_err(|_| {
                    // The error that matters is the one before.
                    let _ = engine.close(file);
                    self.open[file as usize] = false;
                })?;
            }
        }
        self.record_open(file);
        Ok(())
    }

    /// Drops once more what the page cache holds of the open files, before they are gone through again.
    pub fn refresh<E: Engine>(&self, engine: &E) {
        if !self.invalidate {
            return;
        }
        for (file, spec) in (0u32..).zip(&self.specs) {
            if self.open[file as usize]
                && let Some(descriptor) = engine.descriptor(file)
            {
                invalidate(descriptor, spec);
            }
        }
    }

    /// Opens a file that was closed, so that what is read now comes from the medium as far as that is possible.
    pub fn reopen<E: Engine>(&mut self, engine: &mut E, file: u32) -> io::Result<()> {
        self.open(engine, file)?;
        self.sync(engine, file)?;
        if self.invalidate
            && let Some(descriptor) = engine.descriptor(file)
        {
            invalidate(descriptor, &self.specs[file as usize]);
        }
        Ok(())
    }

    /// Closes a file, after a sync where the job wants one.
    pub fn close<E: Engine>(&mut self, engine: &mut E, file: u32) -> io::Result<()> {
        if !std::mem::take(&mut self.open[file as usize]) {
            return Ok(());
        }
        debug!(target: "file", "{}: closed", self.name(file));
        let synced = if self.fsync_on_close { self.sync(engine, file) } else { Ok(()) };
        self.written[file as usize] = self.modes[file as usize].write && engine.descriptor(file).is_some();
        self.record_close(file);
        engine.close(file)?;
        synced
    }

    /// Closes all that are open. The first error is the one that is told.
    pub fn close_all<E: Engine>(&mut self, engine: &mut E) -> io::Result<()> {
        (0..self.specs.len() as u32).map(|file| self.close(engine, file)).fold(Ok(()), io::Result::and)
    }

    /// Reads all files into the page cache.
    pub fn pre_read(&self, stop: &dyn Fn() -> bool) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        for spec in self.specs.iter().filter(|spec| matches!(spec.kind, FileKind::Regular | FileKind::Block))
        {
            let mut file = match File::open(&spec.path) {
                Ok(file) => file.take(spec.size),
                // A file that this job is going to create has nothing to be read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            while !stop() && file.read(&mut buffer)? > 0 {}
        }
        Ok(())
    }

    /// Removes the regular files. One that is gone already is no error: clones share files.
    pub fn unlink(&self) -> io::Result<()> {
        for spec in self.specs.iter().filter(|spec| spec.kind == FileKind::Regular) {
            match std::fs::remove_file(&spec.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens the files that locks are taken through.
    pub fn prepare_locks(&mut self) -> io::Result<()> {
        match &mut self.locks {
            Some(locks) => locks.open(&self.specs),
            None => Ok(()),
        }
    }

    /// Whether an I/O of this direction has to wait until what is in flight is done: because the lock that is held
    /// on the file is not the one that it needs, or because it would wait for a lock while others are held, which
    /// can wait for each other for ever.
    pub fn must_drain_for(&self, file: u32, direction: Direction) -> bool {
        self.locks.as_ref().is_some_and(|locks| locks.conflicts(file, direction))
    }

    /// An I/O on this file is about to be issued.
    pub fn enter(&mut self, file: u32, direction: Direction) -> io::Result<()> {
        match &mut self.locks {
            Some(locks) => {
                debug!(target: "mutex", "file {file}: lock for a {}", direction.name());
                locks.enter(file, direction)
            }
            None => Ok(()),
        }
    }

    /// An I/O on this file is done.
    pub fn left(&mut self, file: u32) {
        if let Some(locks) = &mut self.locks {
            debug!(target: "mutex", "file {file}: one user less of its lock");
            locks.left(file);
        }
    }
}

/// Drops what is cached of a file. That a kind of file has no cache is no error.
fn invalidate(descriptor: RawFd, spec: &FileSpec) {
    /// Flushes and drops the buffers of a block device (linux/fs.h).
    const BLKFLSBUF: libc::Ioctl = 0x1261;
    // SAFETY: the descriptor is open; no pointers are involved.
    unsafe {
        match spec.kind {
            FileKind::Regular => {
                libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
            }
            // Needs privileges that a reader may not have; advice works for everyone.
            FileKind::Block if libc::ioctl(descriptor, BLKFLSBUF) != 0 => {
                libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
            }
            FileKind::Block | FileKind::Char | FileKind::Pipe => {}
        }
    }
}

/// Tells the kernel how long what is written to this file will live.
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

/// Tells the kernel how the file will be accessed. It is advice: that it is not taken is no error.
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

/// `lockfile`: one lock per file, held while this worker has I/O in flight on it.
///
/// The lock is flock(2) on a descriptor of the worker's own, so it works between threads and processes alike, and
/// the kernel takes it back from a worker that dies.
struct Locks {
    kind: LockFile,
    files: Vec<Option<File>>,
    in_flight: Vec<u32>,
    exclusive: Vec<bool>,
    /// How many locks are held.
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

    fn open(&mut self, specs: &[FileSpec]) -> io::Result<()> {
        specs.iter().enumerate().try_for_each(|(slot, spec)| self.open_one(slot, spec))
    }

    fn open_one(&mut self, slot: usize, spec: &FileSpec) -> io::Result<()> {
        // Opening a pipe would wait for its other end; what is read from it is nobody else's anyway.
        if spec.kind != FileKind::Pipe && self.files[slot].is_none() {
            self.files[slot] = Some(open_as_allowed(&spec.path)?);
        }
        Ok(())
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
            // Unlocking a lock that is held on an open descriptor does not fail.
            let _ = lock(&self.files[slot], libc::LOCK_UN);
        }
    }
}

fn open_as_allowed(path: &Path) -> io::Result<File> {
    File::open(path).or_else(|_| File::options().append(true).open(path))
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

    fn locks(kind: LockFile, path: &Path) -> Locks {
        let mut locks = Locks::new(kind, 1);
        let spec = FileSpec { path: path.to_owned(), kind: FileKind::Regular, size: 0 };
        locks.open(&[spec]).unwrap();
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
        locks.open(&[spec(files[0].path()), spec(files[1].path())]).unwrap();
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
        // SAFETY: a terminated string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let mut locks = Locks::new(LockFile::Exclusive, 2);
        let spec = |path: &Path| FileSpec { path: path.to_owned(), kind: FileKind::Pipe, size: 0 };
        locks.open(&[spec(&path), spec(Path::new("-"))]).unwrap();
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
