//! Processes: forking, how children end, limits.

use std::io;

use crate::error::check;

/// Forks. The child runs `body` and exits with its result, without returning to the caller's code and without
/// running exit handlers that belong to the parent.
///
/// The caller must be single-threaded: the child has only the calling thread, and locks that other threads held
/// would stay locked in it.
///
/// # Errors
/// There are too many processes, or there is not enough memory.
pub fn fork(body: impl FnOnce() -> i32) -> io::Result<libc::pid_t> {
    // SAFETY: the process is single-threaded (see above), so the child's memory is consistent.
    let pid = check(unsafe { libc::fork() })?;
    if pid != 0 {
        return Ok(pid);
    }
    let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Kills this process when its parent ends, whatever ends it. `parent` is checked, in case it was too late already.
pub fn die_with_parent(parent: libc::pid_t) {
    // SAFETY: no pointers are involved.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
}

/// This process.
pub fn process_id() -> libc::pid_t {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }
}

/// This thread.
pub fn thread_id() -> libc::pid_t {
    // SAFETY: always succeeds.
    unsafe { libc::gettid() }
}

/// Raises the number of files that this process, and what it forks, may have open, to the most that it may ask for.
/// Jobs with many files need it, and nothing here depends on descriptors being small numbers.
pub fn allow_many_files() {
    // SAFETY: the structure is plain data, valid as zeros. Where it is refused, the old limit stays.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// A child that has ended, if one has.
pub fn reap_child() -> Option<(libc::pid_t, ChildEnd)> {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    if pid <= 0 {
        return None;
    }
    let end = if libc::WIFSIGNALED(status) {
        ChildEnd::Killed(libc::WTERMSIG(status))
    } else {
        ChildEnd::Exited(libc::WEXITSTATUS(status))
    };
    Some((pid, end))
}

/// Waits for one child.
pub fn wait_for_child(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}
