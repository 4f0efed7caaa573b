//! Queues have a limit, waits have an end, and nothing is left in flight when an engine is dropped.

use crate::common::*;
use iolite_engine::{Engine, EngineConfig, FileKind, FileSpec, OpenMode, Queued};
use iolite_engines::Visitor;
use iolite_types::Operation;
use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The engines that queue all units.
const QUEUEING: &[&str] = &["null", "libaio", "io_uring", "posixaio"];

/// A named pipe: reading it blocks until there is a writer.
fn named_pipe(directory: &Path) -> PathBuf {
    let path = directory.join("pipe");
    let name = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a terminated string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    path
}

fn pipe_spec(path: &Path) -> FileSpec {
    FileSpec { path: path.to_path_buf(), kind: FileKind::Pipe, size: 0 }
}

#[test]
fn more_than_the_depth_is_busy() {
    struct Fill<'a>(&'a Path, &'a str);
    impl Visitor for Fill<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let buffers = Buffers::new(BLOCK, 5);
            engine.open(0, &spec(self.0, 5 * 4096), READ).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            let read = |index: u32| buffers.unit(index, Operation::Read, u64::from(index) * 4096, 4096);
            for index in 0..4 {
                // SAFETY: the buffers outlive the engine.
                assert_eq!(unsafe { engine.queue(&read(index)) }, Queued::Queued, "{} {index}", self.1);
            }
            // SAFETY: as above.
            assert_eq!(unsafe { engine.queue(&read(4)) }, Queued::Busy, "{}", self.1);
            let gone = engine.commit().unwrap();
            assert_eq!(gone, if self.1 == "posixaio" { 0 } else { 4 });
            let mut done = Vec::new();
            // At most `max`, even if more are ready.
            engine.reap(4, 3, None, &mut done).unwrap();
            assert_eq!(done.len(), 3, "{}", self.1);
            // SAFETY: as above; the unit is not in flight.
            assert_eq!(unsafe { engine.queue(&read(4)) }, Queued::Queued, "{}", self.1);
            engine.commit().unwrap();
            // Waiting for more completions than units in flight returns the completions of all units.
            engine.reap(10, 10, None, &mut done).unwrap();
            let mut units: Vec<u32> = done.iter().map(|completion| completion.unit).collect();
            units.sort_unstable();
            assert_eq!(units, [0, 1, 2, 3, 4], "{}", self.1);
            done.clear();
            engine.reap(1, 10, None, &mut done).unwrap();
            assert!(done.is_empty());
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    std::fs::write(&path, vec![1; 5 * 4096]).unwrap();
    for name in QUEUEING.iter().chain(&["vsync"]) {
        with_engine(name, &config(name, 4), Fill(&path, name));
    }
}

#[test]
fn vsync_gathers_only_contiguous_units() {
    struct Gather<'a>(&'a Path);
    impl Visitor for Gather<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let mut buffers = Buffers::new(BLOCK, 8);
            engine.open(0, &spec(self.0, 8 * 4096), BOTH).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            let mut queue = |index: u32, operation: Operation, offset: u64| {
                // SAFETY: the buffers outlive the engine.
                unsafe { engine.queue(&buffers.unit(index, operation, offset, 4096)) }
            };
            assert_eq!(queue(0, Operation::Read, 4096), Queued::Queued);
            assert_eq!(queue(1, Operation::Read, 8192), Queued::Queued);
            assert_eq!(queue(2, Operation::Read, 16384), Queued::Busy, "a gap");
            assert_eq!(queue(2, Operation::Read, 8192), Queued::Busy, "backwards");
            assert_eq!(queue(2, Operation::Write, 12288), Queued::Busy, "the other direction");
            assert_eq!(queue(2, Operation::Sync, 0), Queued::Busy, "a sync");
            let mut done = Vec::new();
            engine.reap(1, 8, None, &mut done).unwrap();
            assert!(done.is_empty(), "nothing was committed");
            assert_eq!(engine.commit(), Ok(2));
            engine.reap(1, 8, None, &mut done).unwrap();
            assert_eq!(done.len(), 2);
            for (index, offset) in [(0, 4096), (1, 8192)] {
                assert_eq!(done[index as usize].outcome, Ok(4096));
                assert_eq!(buffers.of(index), content(offset, 4096));
            }
            assert_eq!(perform(&mut engine, &buffers.unit(3, Operation::Sync, 0, 0)), Ok(0));
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let bytes: Vec<u8> = (0..8).flat_map(|block| content(block * 4096, 4096)).collect();
    std::fs::write(&path, bytes).unwrap();
    with_engine("vsync", &config("vsync", 8), Gather(&path));
}

#[test]
fn a_wait_ends_with_its_timeout() {
    struct Wait<'a>(&'a Path, &'a str);
    impl Visitor for Wait<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let mut buffers = Buffers::new(BLOCK, 2);
            let mode = OpenMode { create: false, ..BOTH };
            engine.open(0, &pipe_spec(self.0), mode).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            // SAFETY: the buffers outlive the engine.
            let answer = unsafe { engine.queue(&buffers.unit(0, Operation::Read, 0, 3)) };
            assert_eq!(answer, Queued::Queued, "{}", self.1);
            engine.commit().unwrap();
            let mut done = Vec::new();
            engine.reap(0, 2, None, &mut done).unwrap();
            assert!(done.is_empty(), "{}: a poll", self.1);
            engine.reap(1, 2, Some(Duration::from_millis(20)), &mut done).unwrap();
            assert!(done.is_empty(), "{}: nothing was written yet", self.1);
            OpenOptions::new().write(true).open(self.0).unwrap().write_all(b"abc").unwrap();
            engine.reap(1, 2, Some(Duration::from_secs(60)), &mut done).unwrap();
            assert_eq!(done.len(), 1, "{}", self.1);
            assert_eq!(done[0].outcome, Ok(3));
            assert_eq!(&buffers.of(0)[..3], b"abc");
        }
    }
    // Linux AIO would block in io_submit on a pipe; the other engines wait in reap.
    for name in ["io_uring", "posixaio"] {
        let directory = tempfile::tempdir().unwrap();
        let path = named_pipe(directory.path());
        with_engine(name, &config(name, 2), Wait(&path, name));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = named_pipe(directory.path());
    let vectored = options("io_uring", "nonvectored=0 sqthread_poll");
    with_engine("io_uring", &EngineConfig::new(vectored, 2), Wait(&path, "io_uring sqthread_poll"));
}

#[test]
fn dropping_an_engine_cancels_endless_units() {
    struct Abandon<'a>(&'a Path);
    impl Visitor for Abandon<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let mut buffers = Buffers::new(BLOCK, 4);
            engine.open(0, &pipe_spec(self.0), OpenMode { create: false, ..BOTH }).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            for index in 0..4 {
                // SAFETY: the buffers outlive the engine.
                let answer = unsafe { engine.queue(&buffers.unit(index, Operation::Read, 0, 4096)) };
                assert_eq!(answer, Queued::Queued);
                if index < 3 {
                    engine.commit().unwrap();
                }
            }
            // A pipe that stays open lets late writes through, if there is still a reader.
            let keep = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(self.0)
                .unwrap();
            drop(engine);
            (&keep).write_all(&[0xee; 4096]).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            for index in 0..4 {
                assert!(buffers.of(index).iter().all(|&byte| byte == 0), "buffer {index} was written to");
            }
        }
    }
    for words in ["", "sqthread_poll", "fixedbufs", "force_async=1"] {
        let directory = tempfile::tempdir().unwrap();
        let path = named_pipe(directory.path());
        with_engine("io_uring", &EngineConfig::new(options("io_uring", words), 4), Abandon(&path));
    }
}

#[test]
fn dropping_an_engine_waits_for_uncancellable_units() {
    /// Writes blocks and drops the engine without reaping; all committed blocks are in the file after that.
    struct Leave<'a>(&'a Path, &'a str);
    impl Visitor for Leave<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let mut buffers = Buffers::new(BLOCK, 16);
            engine.open(0, &spec(self.0, 16 * 4096), BOTH).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            for index in 0..16 {
                let offset = u64::from(index) * 4096;
                buffers.of(index).copy_from_slice(&content(offset, 4096));
                let unit = buffers.unit(index, Operation::Write, offset, 4096);
                // SAFETY: the buffers outlive the engine.
                assert_eq!(unsafe { engine.queue(&unit) }, Queued::Queued, "{}", self.1);
            }
            engine.commit().unwrap();
            drop(engine);
            for index in 0..16 {
                buffers.of(index).fill(0xff);
            }
            let written = std::fs::read(self.0).unwrap();
            // Cancelled blocks are missing or zero, and contain no other data.
            for (index, block) in written.chunks(4096).enumerate() {
                let whole = block == content(index as u64 * 4096, 4096);
                assert!(whole || block.iter().all(|&byte| byte == 0), "{} block {index}", self.1);
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    for name in ["libaio", "io_uring", "posixaio"] {
        let path = directory.path().join(name);
        with_engine(name, &config(name, 16), Leave(&path, name));
    }
}
