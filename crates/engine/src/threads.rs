//! Finds the threads that a library has started.
//!
//! The CPU time of a library's threads belongs to the job. If the worker is a separate process, everything in the
//! process counts. If workers are threads of one process, we have to find out which library started which thread, and
//! libraries do not report that. But a new thread inherits its creator's mask of blocked signals. So while a library
//! starts, its caller blocks a signal that is not used otherwise; new threads that block it are the library's.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The last of the real-time signals.
fn mark() -> libc::c_int {
    libc::SIGRTMAX()
}

/// One library starts at a time, as all are marked with the same signal.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Calls a function that makes a library start threads. Returns its result and the thread IDs of the new threads that
/// still run.
pub fn threads_started_by<T>(start: impl FnOnce() -> T) -> (T, Vec<i32>) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = marked();
    let marking = Marking::begin();
    let result = start();
    drop(marking);
    let started = marked().difference(&before).copied().collect();
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

/// The threads of this process that block the signal, except this one.
fn marked() -> BTreeSet<i32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return BTreeSet::new() };
    let ids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    // SAFETY: takes nothing.
    let own = unsafe { libc::gettid() };
    ids.filter(|&id| id != own && blocks(id).is_some_and(|signals| signals & (1 << (mark() - 1)) != 0))
        .collect()
}

/// The signals that a thread blocks, as a mask; `None` when it is gone.
fn blocks(id: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{id}/status")).ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn only_threads_of_the_library_are_named() {
        let (tell, told) = channel();
        let spawn = |ended: std::sync::mpsc::Receiver<()>| {
            let tell = tell.clone();
            std::thread::spawn(move || {
                // SAFETY: takes nothing.
                tell.send(unsafe { libc::gettid() }).unwrap();
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
        // The mark is taken from the caller again, and a library of another worker is another one.
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
}
