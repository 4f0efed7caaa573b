//! Processes: forking, how children end, limits.

use std::io;

use crate::error::check;
use crate::usage::Usage;

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

/// The largest size in bytes that this process can give a file (`ulimit -f`); `None` = there is no limit.
pub fn file_size_limit() -> Option<u64> {
    // SAFETY: the structure is plain data, valid as zeros, and filled in by a call that succeeds.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        let is_known = libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0;
        (is_known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
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

impl ChildEnd {
    /// From the status that wait(2) gives.
    fn of(status: libc::c_int) -> ChildEnd {
        if libc::WIFSIGNALED(status) {
            ChildEnd::Killed(libc::WTERMSIG(status))
        } else {
            ChildEnd::Exited(libc::WEXITSTATUS(status))
        }
    }
}

impl std::fmt::Display for ChildEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChildEnd::Exited(status) => write!(f, "ended with status {status}"),
            ChildEnd::Killed(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Reaps a child that has ended, if there is one, and tells what it has used. Does not wait.
pub fn reap_child() -> Option<(libc::pid_t, ChildEnd, Usage)> {
    let mut status = 0;
    // SAFETY: the structure is plain data, valid as zeros, and the pointers are valid.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
    };
    (pid > 0).then(|| (pid, ChildEnd::of(status), Usage::from(&usage)))
}

/// How this child has ended; `None` = it has not, or somebody else has waited for it. Does not wait.
pub fn reap(pid: libc::pid_t) -> Option<ChildEnd> {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    let found = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
    (found == pid).then(|| ChildEnd::of(status))
}

/// Waits until this child has ended. Returns how, unless somebody else has waited for it.
pub fn wait_for_child(pid: libc::pid_t) -> Option<ChildEnd> {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    Some(ChildEnd::of(status))
}
