//! Processes: forking, how children end, limits.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::by_number;
use crate::error::check;
use crate::signals;
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

/// Forks into a new session without a controlling terminal. Returns false in the new process, and true in the old one.
///
/// The caller must be single-threaded.
///
/// # Errors
/// There are too many processes, or there is not enough memory.
pub fn detach() -> io::Result<bool> {
    // SAFETY: the process is single-threaded (see above), so the child's memory is consistent.
    let pid = check(unsafe { libc::fork() })?;
    if pid != 0 {
        return Ok(true);
    }
    // SAFETY: no pointers are involved. A new process leads no group, so it cannot fail.
    unsafe { libc::setsid() };
    Ok(false)
}

/// Makes a descriptor refer to another open file. Its owner keeps the same number.
///
/// # Errors
/// One of them is not open.
pub fn replace(place: &impl AsRawFd, with: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: no pointers are involved.
    check(unsafe { libc::dup2(with.as_raw_fd(), place.as_raw_fd()) }).map(drop)
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

/// Undoes [`die_with_parent`]: this process survives the end of its parent.
pub fn outlive_parent() {
    // SAFETY: no pointers are involved.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
}

/// Unpredictable bytes, for secrets.
///
/// # Errors
/// The kernel has no random bytes yet, or is too old (before 3.17).
pub fn secret<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    match usize::try_from(by_number::getrandom(&mut bytes)) {
        Ok(got) if got == N => Ok(bytes),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// From now on, processes whose parents have ended become children of this one, if they descend from it.
pub fn adopt_orphans() {
    // SAFETY: no pointers are involved. A kernel without it returns an error, and orphans go to the usual process.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Disables core dumps of this process, and tracing by anyone but root. Programs that it starts are not affected.
pub fn keep_memory_private() {
    // SAFETY: a plain system call, which concerns this process only. It cannot fail with this argument.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

/// Makes the kernel kill a program that is about to be started when the thread that starts it ends, however it ends.
pub fn tie_to_this_thread(command: &mut Command) {
    let parent = process_id();
    // SAFETY: between fork and exec, the closure makes a few system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            die_with_parent(parent);
            // The run has blocked signals for itself; the program must receive them.
            unblock_all();
            Ok(())
        })
    };
}

/// Starts a program in its own process group. `group` has the group's number before the program begins, so that other
/// processes that share this memory can end the whole group, even if this process is killed at that moment.
///
/// # Errors
/// The program cannot be started.
pub fn start_in_group(mut command: Command, group: &AtomicI32) -> io::Result<Child> {
    let place = std::ptr::from_ref(group).expose_provenance();
    command.process_group(0);
    // SAFETY: the closure runs in the call of `spawn` below, while the place is borrowed. Between fork and exec, it makes a
    // system call and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            let group: *const AtomicI32 = std::ptr::with_exposed_provenance(place);
            (*group).store(libc::getpid(), Ordering::Relaxed);
            Ok(())
        })
    };
    let started = command.spawn();
    group.store(started.as_ref().map_or(0, |child| child.id() as i32), Ordering::Relaxed);
    started
}

/// Makes a program that is about to be started begin without blocked signals, even if this process has blocked some.
pub fn start_with_none_blocked(command: &mut Command) {
    // SAFETY: between fork and exec, the closure makes a few system calls and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            unblock_all();
            Ok(())
        })
    };
}

/// Makes a program inherit only standard input, output and error, and no other descriptors that this process has
/// inherited.
pub fn start_with_standard_streams_only(command: &mut Command) {
    // SAFETY: between fork and exec, the closure makes a few system calls and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            close_others_on_exec();
            Ok(())
        })
    };
}

/// Marks all files but the standard streams to be closed when another program takes over this process.
fn close_others_on_exec() {
    const FIRST: libc::c_int = libc::STDERR_FILENO + 1;
    // SAFETY: no pointers are involved.
    unsafe {
        // A raw system call: not every C library has a function for it.
        if libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 {
            return;
        }
        // Kernels before 5.11 take one descriptor at a time.
        let end = libc::c_int::try_from(libc::sysconf(libc::_SC_OPEN_MAX)).unwrap_or(libc::c_int::MAX);
        for descriptor in FIRST..end {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

fn unblock_all() {
    // SAFETY: the set is initialised by sigemptyset before it is used.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Makes a program that is about to be started begin with these signals blocked. They stay pending until it accepts
/// them.
pub fn start_with_blocked(command: &mut Command, signals: &'static [libc::c_int]) {
    // SAFETY: between fork and exec, the closure makes a few system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut blocked);
            for &signal in signals {
                libc::sigaddset(&raw mut blocked, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &raw const blocked, std::ptr::null_mut());
            Ok(())
        })
    };
}

/// A reference to a process that stays correct if another process gets its number later.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// The process of this number; `None` = it does not exist, or the kernel has no such references (before 5.3).
    pub fn of(id: libc::pid_t) -> Option<Process> {
        // SAFETY: no pointers are involved. The descriptor is new, and nothing else owns it.
        unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, id, 0);
            (descriptor >= 0).then(|| Process(OwnedFd::from_raw_fd(descriptor as libc::c_int)))
        }
    }

    /// Sends it a signal. Does nothing if it has ended.
    pub fn signal(&self, signal: libc::c_int) {
        let nothing: *const libc::siginfo_t = std::ptr::null();
        // SAFETY: with a null pointer, the kernel fills in the signal information.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, nothing, 0) };
    }

    /// Whether it has ended, even if it has not been reaped.
    pub fn has_ended(&self) -> bool {
        let mut state = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: there is one structure.
        unsafe { libc::poll(&raw mut state, 1, 0) == 1 }
    }
}

/// The current children of a process.
pub fn children_of(parent: libc::pid_t) -> Vec<libc::pid_t> {
    family(&[parent], false)
}

/// The current descendants of a process: its children, their children, and so on.
pub fn descendants_of(ancestor: libc::pid_t) -> Vec<libc::pid_t> {
    family(&[ancestor], true)
}

/// The children of these processes; `deeply`: all descendants.
fn family(roots: &[libc::pid_t], deeply: bool) -> Vec<libc::pid_t> {
    let alive = parents().filter(|(_, parent)| !parent.of_zombie);
    let parents: Vec<(libc::pid_t, libc::pid_t)> = alive.map(|(id, parent)| (id, parent.id)).collect();
    let mut found: Vec<libc::pid_t> = Vec::new();
    let mut generation = roots.to_vec();
    while !generation.is_empty() {
        let next = parents.iter().filter(|(_, parent)| generation.contains(parent)).map(|(id, _)| *id);
        generation = next.filter(|id| !found.contains(id)).collect();
        found.extend(&generation);
        if !deeply {
            break;
        }
    }
    found
}

/// The parent of a process.
struct Parent {
    id: libc::pid_t,
    /// The process itself is a zombie: dead and not yet reaped.
    of_zombie: bool,
}

/// All processes of the system with their parents, without those that end in the meantime.
fn parents() -> impl Iterator<Item = (libc::pid_t, Parent)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, parent_of(id)?)))
}

/// The parent of a process; `None` = the process is gone.
fn parent_of(id: libc::pid_t) -> Option<Parent> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses and may contain any character.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let of_zombie = fields.next()? == "Z";
    Some(Parent { id: fields.next()?.parse().ok()?, of_zombie })
}

/// Kills all children of this process except these, including those that become its children in the meantime
/// ([`adopt_orphans`]). Waits for them, but no longer than `patience`. Does not reap them.
pub fn end_children(except: &[libc::pid_t], patience: Duration) {
    let until = Instant::now() + patience;
    let mut dead = None;
    while has_children() && Instant::now() < until {
        let own = process_id();
        let is_ours = |process: libc::pid_t, parent: &Parent| parent.id == own && !except.contains(&process);
        let children: Vec<_> =
            parents().filter(|(id, parent)| is_ours(*id, parent)).map(|(id, _)| id).collect();
        let left: Vec<_> = children.iter().copied().filter(|&child| !is_over(child)).collect();
        // A process passes its children on before it is over. So if all are over, and the next look finds no others, no
        // more children will come.
        if left.is_empty() && dead.replace(children.clone()) == Some(children) {
            return;
        }
        left.into_iter().for_each(|child| signals::kill(child, libc::SIGKILL));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a child has ended with all its threads. (A process whose first thread has ended is a zombie, although other
/// threads may still run and have children.)
fn is_over(child: libc::pid_t) -> bool {
    let Ok(id) = libc::id_t::try_from(child) else { return true };
    // SAFETY: the structure is plain data, valid as zeros, and the pointer is valid.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, id, &raw mut info, how) != 0 || info.si_pid() == child
    }
}

/// Whether this process has children, dead or alive.
fn has_children() -> bool {
    // SAFETY: the structure is plain data, valid as zeros, and the pointer is valid.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// The id of this process.
pub fn process_id() -> libc::pid_t {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }
}

/// The id of this thread.
pub fn thread_id() -> libc::pid_t {
    by_number::gettid()
}

/// Raises the limit on open files as far as allowed, for this process and its children. Jobs with many files need that,
/// and nothing here depends on small descriptor numbers. Returns the new limit.
pub fn allow_many_files() -> u64 {
    // SAFETY: the structure is plain data, valid as zeros. If a call fails, the old limit stays.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return u64::MAX;
        }
        let before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if before == limit.rlim_max || libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 {
            limit.rlim_max
        } else {
            before
        }
    }
}

/// The largest size in bytes that this process can give a file (`ulimit -f`); `None` = unlimited.
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
    /// Decodes the status that wait(2) returns.
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

/// Reaps a child that has ended, if there is one, and returns its resource usage. Does not block.
pub fn reap_child() -> Option<(libc::pid_t, ChildEnd, Usage)> {
    let mut status = 0;
    // SAFETY: the structure is plain data, valid as zeros, and the pointers are valid.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
    };
    (pid > 0).then(|| (pid, ChildEnd::of(status), Usage::from(&usage)))
}

/// How this child ended; `None` = it has not ended, or it was reaped elsewhere. Does not block.
pub fn reap(pid: libc::pid_t) -> Option<ChildEnd> {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    let found = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
    (found == pid).then(|| ChildEnd::of(status))
}

/// Waits until this child has ended. Returns how, unless it was reaped elsewhere.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, pipe};

    fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < until, "waited for {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A process whose first thread has ended is a zombie, but its other threads may still start children.
    #[test]
    fn a_process_without_its_first_thread_is_not_over() {
        let (mut end, ends) = pipe().unwrap();
        let writing = ends.as_raw_fd();
        // SAFETY: the child uses what the C library makes safe after a fork of a process with threads: memory and threads.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", io::Error::last_os_error());
        if child == 0 {
            // SAFETY: the child has a copy of the descriptor, which only this code uses. The calls end a thread and a
            // process.
            unsafe {
                libc::close(writing);
                std::thread::spawn(move || {
                    let _ = end.read(&mut [0]);
                    libc::_exit(0);
                });
                libc::syscall(libc::SYS_exit, 0);
            }
        }
        wait_until("the first thread's end", || parent_of(child).is_some_and(|of| of.of_zombie));
        assert!(!is_over(child));
        drop(ends);
        wait_until("the process's end", || is_over(child));
        // SAFETY: the pointer may be null. The child belongs to this test.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    }
}
