//! Signals: receiving them from a queue, sending them, and interrupting a thread that waits in a system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::error::check;

/// A queue of blocked signals, which are read from a descriptor instead of interrupting.
#[derive(Debug)]
pub struct SignalQueue {
    descriptor: OwnedFd,
    previous: libc::sigset_t,
}

impl SignalQueue {
    /// Blocks these signals in this thread and its future children, and queues them.
    ///
    /// # Errors
    /// The signals cannot be blocked, or there are too many open files.
    pub fn new(signals: &[libc::c_int]) -> io::Result<SignalQueue> {
        // SAFETY: the sets are initialised by the calls before they are used.
        unsafe {
            let mut set = std::mem::zeroed();
            let mut previous = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for &signal in signals {
                libc::sigaddset(&raw mut set, signal);
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut previous))?;
            let descriptor =
                check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            Ok(SignalQueue { descriptor: OwnedFd::from_raw_fd(descriptor), previous })
        }
    }

    /// The same, but signals that this process ignores stay ignored, because its starter wanted that (like `nohup`, or
    /// a shell that starts a background job).
    ///
    /// # Errors
    /// As [`SignalQueue::new`].
    pub fn of_those_not_ignored(signals: &[libc::c_int]) -> io::Result<SignalQueue> {
        let is_ignored = |signal: libc::c_int| {
            // SAFETY: the structure is plain data, valid as zeros, and filled in by the kernel.
            unsafe {
                let mut now: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
            }
        };
        let heeded: Vec<_> = signals.iter().copied().filter(|&signal| !is_ignored(signal)).collect();
        SignalQueue::new(&heeded)
    }

    /// Takes the next signal from the queue, if any. Does not wait.
    pub fn next(&self) -> Option<libc::c_int> {
        // SAFETY: the structure is plain data, valid as zeros, and as large as the kernel's record.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of_val(&info);
            let got = libc::read(self.descriptor.as_raw_fd(), (&raw mut info).cast(), size);
            (got == size as isize).then_some(info.ssi_signo as libc::c_int)
        }
    }
}

impl AsRawFd for SignalQueue {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for SignalQueue {
    fn drop(&mut self) {
        // Discard pending signals: they were meant for work that has ended.
        while self.next().is_some() {}
        // SAFETY: the set was filled in by the kernel.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.previous, ptr::null_mut()) };
    }
}

/// The signal that interrupts a system call, so that a worker notices that it has to stop. It has no other effect.
pub const INTERRUPT: libc::c_int = libc::SIGUSR2;

/// Lets [`INTERRUPT`] interrupt system calls in this process and its future children.
///
/// # Errors
/// The handler cannot be installed, or the signal cannot be unblocked.
pub fn become_interruptible() -> io::Result<()> {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: the structure is plain data, valid as zeros. It has no flags, so system calls are not restarted. The
    // handler does nothing, so it is safe at any moment.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        check(libc::sigaction(INTERRUPT, &raw const action, ptr::null_mut()))?;
        // The program that started this one may have blocked the signal.
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, INTERRUPT);
        check(libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut()))?;
    }
    Ok(())
}

/// Makes writes beyond the limit of file sizes (`ulimit -f`) fail with `EFBIG`, in this process and its future
/// children, instead of killing it with SIGXFSZ. Executed programs get the default action again.
///
/// # Errors
/// The handler cannot be installed.
pub fn survive_size_limit() -> io::Result<()> {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: the structure is plain data, valid as zeros. The handler does nothing, so it is safe at any moment. (An
    // ignored signal would stay ignored in started programs.)
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        check(libc::sigaction(libc::SIGXFSZ, &raw const action, ptr::null_mut()))?;
    }
    Ok(())
}

/// Interrupts the system call of a thread of this process. Does nothing if the thread has ended.
pub fn interrupt_thread(thread: libc::pid_t) {
    // SAFETY: no pointers are involved. The call only reaches threads of this process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, INTERRUPT) };
}

/// Sends a signal to all processes of a group. Does nothing if there are none.
pub fn kill_group(group: libc::pid_t, signal: libc::c_int) {
    assert!(group > 1, "0 and 1 mean other groups");
    kill(-group, signal);
}

/// Sends a signal to a process. Does nothing if the process has ended.
pub fn kill(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: no pointers are involved.
    unsafe { libc::kill(pid, signal) };
}
