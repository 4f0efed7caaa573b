//! Finds the threads that a library has started.
//!
//! The CPU time of a library's threads belongs to the job. If the worker is a separate process, everything in the
//! process counts. If workers are threads of one process, we have to find out which library started which thread, and
//! libraries do not report that. But a new thread inherits its creator's mask of blocked signals. So while a library
//! starts, its caller blocks a signal that is not used otherwise; new threads that block it are the library's.
//!
//! Two kinds of threads block the signal without being the library's, because they block every signal. A thread does so
//! for a moment while the C library starts another thread or a process for it. The workers of io_uring always do, and
//! `/proc` lists them with the threads of the process. Both also block the signals that the C library keeps for itself, which
//! its functions leave out of every mask.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The last of the real-time signals.
fn mark() -> libc::c_int {
    libc::SIGRTMAX()
}

/// Only one library starts at a time, because the same signal marks all threads.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Calls a function that makes a library start threads. Returns its result and the thread IDs of the new threads that
/// still run.
pub fn threads_started_by<T>(start: impl FnOnce() -> T) -> (T, Vec<i32>) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = others();
    let marking = Marking::begin();
    let result = start();
    drop(marking);
    let mut started = others();
    let deadline = Instant::now() + PATIENCE;
    started.retain(|id| !before.contains(id) && is_marked(*id, deadline));
    (result, started)
}

/// This thread blocks the signal.
struct Marking(libc::sigset_t);

impl Marking {
    fn begin() -> Marking {
        // SAFETY: sets are plain data, valid as zeros, and the pointers are valid through the calls.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, mark());
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            Marking(before)
        }
    }
}

impl Drop for Marking {
    fn drop(&mut self) {
        // SAFETY: the set is the previous mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// The threads of this process except this one.
fn others() -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let own = iolite_os::process::thread_id();
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).filter(|&id| id != own).collect()
}

/// How long to wait for threads that block every signal. A starting thread does so until it first runs. A thread that
/// does so for longer is not the library's: threads of libraries block signals by the C library.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a thread blocks this signal, but not every other signal.
fn is_marked(id: i32, deadline: Instant) -> bool {
    loop {
        match mask_of(id) {
            Some(Mask::Everything) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_micros(200));
            }
            mask => return mask == Some(Mask::Marked),
        }
    }
}

/// The signals that a thread blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mask {
    /// The signal is not blocked, or the thread is a worker of the kernel.
    Other,
    /// The signal is blocked, but not the C library's own.
    Marked,
    /// Every signal is blocked.
    Everything,
}

/// The mask of a thread; `None` = it has ended.
fn mask_of(id: i32) -> Option<Mask> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{id}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
    let blocked = u64::from_str_radix(field("SigBlk:")?, 16).ok()?;
    let blocks = |signal: libc::c_int| blocked & (1 << (signal - 1)) != 0;
    Some(match (blocks(mark()), blocks(FIRST_OF_C_LIBRARY)) {
        (false, _) => Mask::Other,
        (true, false) => Mask::Marked,
        // Workers of io_uring ("iou-wrk", "iou-sqp") keep their mask, so waiting for them is useless.
        (true, true) if field("Name:")?.starts_with("iou-") => Mask::Other,
        (true, true) => Mask::Everything,
    })
}

/// The first real-time signal of the kernel. The C library uses it itself, and `SIGRTMIN` is above it (signal(7), nptl(7)).
const FIRST_OF_C_LIBRARY: libc::c_int = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    #[test]
    fn only_threads_of_the_library_are_named() {
        iolite_testing::or_skip!(iolite_testing::kernel::shows_signal_masks());
        let (tell, told) = channel();
        let spawn = |ended: std::sync::mpsc::Receiver<()>| {
            let tell = tell.clone();
            std::thread::spawn(move || {
                tell.send(iolite_os::process::thread_id()).unwrap();
                ended.recv().ok();
            })
        };
        let (end, ended) = channel();
        let others: Vec<_> = (0..2).map(|_| channel()).collect();
        let (ends, mut endeds): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        let other = spawn(endeds.pop().unwrap());
        let other_id = told.recv().unwrap();
        let (library, named) = threads_started_by(|| {
            let library = spawn(ended);
            (library, told.recv().unwrap())
        });
        assert_eq!(named, [library.1]);
        assert!(!named.contains(&other_id));
        // The caller no longer has the mark, and the threads of another worker's library are not confused with these.
        let (second, named) = threads_started_by(|| {
            let second = spawn(endeds.pop().unwrap());
            (second, told.recv().unwrap())
        });
        assert_eq!(named, [second.1]);
        let unmarked = threads_started_by(|| ()).1;
        assert!(unmarked.is_empty(), "{unmarked:?}");
        drop((end, ends));
        [other, library.0, second.0].into_iter().for_each(|thread| thread.join().unwrap());
    }

    /// The C library blocks all signals of a thread while it starts another thread or a process for it.
    #[test]
    fn threads_that_block_everything_for_a_moment_are_not_named() {
        iolite_testing::or_skip!(iolite_testing::kernel::shows_signal_masks());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for kind in 0..4 {
                let done = &done;
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        match kind % 2 {
                            0 => drop(std::process::Command::new("true").status()),
                            _ => std::thread::spawn(|| ()).join().unwrap(),
                        }
                    }
                });
            }
            let named: Vec<_> = (0..100).flat_map(|_| threads_started_by(|| ()).1).collect();
            done.store(true, Ordering::Relaxed);
            assert_eq!(named, [0; 0]);
        });
    }
}
