//! Processes: forking, how children end, limits.

use std::io;

use crate::error::check;

/// Forks. The child runs `body` and exits with its result (101 after a panic). It neither returns to the caller's code
/// nor runs the parent's exit handlers.
///
/// The caller must be single-threaded: the child has only the calling thread, so locks held by other threads would stay
/// locked for ever.
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

/// Makes the kernel kill this process when its parent ends. Exits at once if the parent is no longer `parent`, because
/// then it has ended already.
pub fn die_with_parent(parent: libc::pid_t) {
    // SAFETY: no pointers are involved.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
}

/// The id of this process.
pub fn process_id() -> libc::pid_t {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }
}

/// The id of this thread.
pub fn thread_id() -> libc::pid_t {
    // SAFETY: always succeeds.
    unsafe { libc::gettid() }
}

/// Raises the limit on open files as far as allowed, for this process and its children. Jobs with many files need that,
/// and nothing here depends on small descriptor numbers.
pub fn allow_many_files() {
    // SAFETY: the structure is plain data, valid as zeros. If the call fails, the old limit stays.
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
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

/// Reaps a child that has ended, if there is one. Does not wait.
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

/// Waits until this child has ended.
pub fn wait_for_child(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}
