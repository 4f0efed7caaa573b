//! A signal ends a wait, so that a worker that was asked to stop notices. Alone in its process.

mod common;

use common::*;
use iolite_engine::{Engine, Errno, FileKind, FileSpec, OpenMode, Queued};
use iolite_engines::Visitor;
use iolite_types::Operation;
use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

extern "C" fn nothing(_signal: libc::c_int) {}

/// Makes signals interrupt system calls, without a restart.
fn install_handler() {
    // SAFETY: the handler does nothing; the struct is plain data.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
}

/// Sends this thread a signal every few milliseconds while `work` runs.
fn interrupted<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: takes nothing.
    let thread = unsafe { libc::pthread_self() };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
                // SAFETY: the thread waits for this one before it ends.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            }
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        result
    })
}

struct WaitForever<'a>(&'a Path);

impl Visitor for WaitForever<'_> {
    type Out = ();
    fn visit<E: Engine>(self, mut engine: E) {
        let buffers = Buffers::new(BLOCK, 1);
        let spec = FileSpec { path: self.0.to_path_buf(), kind: FileKind::Pipe, size: 0 };
        engine.open(0, &spec, OpenMode { create: false, ..BOTH }).unwrap();
        engine.prepare(&buffers.layout).unwrap();
        let unit = buffers.unit(0, Operation::Read, 0, 1);
        interrupted(|| {
            // SAFETY: the buffers outlive the engine.
            match unsafe { engine.queue(&unit) } {
                Queued::Completed(outcome) => assert_eq!(outcome, Err(Errno(libc::EINTR))),
                Queued::Busy | Queued::Over => panic!("busy with nothing in flight"),
                Queued::Queued => {
                    engine.commit().unwrap();
                    let mut done = Vec::new();
                    engine.reap(1, 1, None, &mut done).unwrap();
                    assert!(done.iter().all(|completion| completion.outcome == Err(Errno(libc::EINTR))));
                }
            }
        });
        // Ends any wait that is left.
        std::fs::write(self.0, b"x").unwrap();
    }
}

#[test]
fn a_signal_ends_a_wait() {
    install_handler();
    let directory = tempfile::tempdir().unwrap();
    for name in ["sync", "vsync", "io_uring", "posixaio"] {
        let path = directory.path().join(name);
        let c_path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a terminated string.
        assert_eq!(unsafe { libc::mkfifo(c_path.as_ptr(), 0o600) }, 0);
        eprintln!("{name}");
        with_engine(name, &config(name, 1), WaitForever(&path));
    }
}
