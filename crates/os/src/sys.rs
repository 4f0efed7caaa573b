//! Thin wrappers around the system calls of this crate. Everything unsafe that is not the I/O loop's is here.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// What statx(2) tells of the file at a path; `None` where it fails. Which of the fields in `mask` are there it says itself.
pub fn statx(path: &Path, mask: libc::c_uint) -> Option<libc::statx> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: statx is plain data, valid as zeros, and filled in by the call.
    let (result, found) = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        (libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, mask, &raw mut found), found)
    };
    (result == 0).then_some(found)
}

/// One of the system's clocks in nanoseconds; 0 for one that is not there.
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid. The call fails only for clocks that do not exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Time that this thread has been given by its CPU, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The wall clock in nanoseconds since the epoch.
pub fn wall_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// A clock of the system by its number, in milliseconds.
///
/// # Errors
/// The system has no clock of this number.
pub fn clock_ms(clock: u32) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid; a number that is no clock is an error.
    match unsafe { libc::clock_gettime(clock as libc::clockid_t, &raw mut time) } {
        0 => Ok(time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A shared anonymous mapping of zeros that is not reserved in advance.
///
/// # Errors
/// There is not so much memory.
pub fn map_shared(bytes: usize) -> io::Result<*mut libc::c_void> {
    map(bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
}

/// A readable and writable mapping.
///
/// # Errors
/// There is not so much memory, or the descriptor cannot be mapped.
pub fn map(bytes: usize, flags: libc::c_int, descriptor: RawFd) -> io::Result<*mut libc::c_void> {
    map_for(libc::PROT_READ | libc::PROT_WRITE, bytes, flags, descriptor)
}

/// A readable mapping of a file.
///
/// # Errors
/// The descriptor cannot be mapped.
pub fn map_readable(bytes: usize, descriptor: RawFd) -> io::Result<*mut libc::c_void> {
    map_for(libc::PROT_READ, bytes, libc::MAP_SHARED, descriptor)
}

fn map_for(
    access: libc::c_int,
    bytes: usize,
    flags: libc::c_int,
    descriptor: RawFd,
) -> io::Result<*mut libc::c_void> {
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
    let address = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, descriptor, 0) };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address) }
}

/// Replaces the beginning of a mapping of this process by that of a file.
///
/// # Errors
/// The descriptor cannot be mapped.
///
/// # Safety
/// At least so many bytes of a mapping of the caller's begin there, and nobody has references into them.
pub unsafe fn map_over(
    address: *mut libc::c_void,
    bytes: usize,
    flags: libc::c_int,
    descriptor: RawFd,
) -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: what is replaced is the caller's, and unused.
    let mapped = unsafe { libc::mmap(address, bytes, access, flags | libc::MAP_FIXED, descriptor, 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives a mapping back.
///
/// # Safety
/// The caller owns the mapping, and no reference into it is left.
pub unsafe fn unmap(address: *mut libc::c_void, bytes: usize) {
    // SAFETY: the caller owned the mapping and is done with it.
    unsafe { libc::munmap(address, bytes) };
}

/// Sleeps until the word differs from `value`, or for no reason.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    // SAFETY: the word is valid; a shared futex (no FUTEX_PRIVATE_FLAG) since other processes wake it.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, ptr::null::<libc::timespec>())
    };
}

/// Wakes everyone who waits on the word.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is valid.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// One end of a pair of connected sockets that keep messages whole.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// A connected pair.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn pair() -> io::Result<(Socket, Socket)> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        check(unsafe {
            libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr())
        })?;
        // SAFETY: fresh descriptors that nobody else owns.
        Ok(unsafe { (Socket(OwnedFd::from_raw_fd(ends[0])), Socket(OwnedFd::from_raw_fd(ends[1]))) })
    }

    /// Sends one message, waiting for room. An end that is gone is an error, not a signal.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        loop {
            // SAFETY: the buffer is valid for its length.
            let sent = unsafe {
                libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
            };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn receive_with(&self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
        loop {
            // SAFETY: the buffer is valid for its length.
            let received =
                unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
            if received >= 0 {
                return Ok(received as usize);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// The next message, waiting for it; 0 bytes when the other end is gone.
    ///
    /// # Errors
    /// The socket cannot be read.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive_with(buffer, 0)
    }

    /// The next message if there is one; `UnexpectedEof` when the other end is gone.
    ///
    /// # Errors
    /// `UnexpectedEof` when the other end is gone; otherwise the socket cannot be read.
    pub fn try_receive_or_end(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.receive_with(buffer, libc::MSG_DONTWAIT) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // An end that dies without having read everything says so in this way, once.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Err(error) => Err(error),
        }
    }

    /// The next message if there is one; `None` also when the other end is gone.
    ///
    /// # Errors
    /// The socket cannot be read.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.try_receive_or_end(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            result => result,
        }
    }

    /// Says that nothing more will be sent. What the other end sends is still received.
    pub fn finish_sending(&self) {
        // SAFETY: no pointers are involved. The only failure is that the other end is gone, which is as good.
        unsafe { libc::shutdown(self.0.as_raw_fd(), libc::SHUT_WR) };
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Signals that arrive as readable messages instead of interrupting.
#[derive(Debug)]
pub struct SignalQueue {
    descriptor: OwnedFd,
    previous: libc::sigset_t,
}

impl SignalQueue {
    /// Blocks these signals in this thread (and what it forks) and queues them here.
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

    /// The next signal that arrived, if any.
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

impl Drop for SignalQueue {
    fn drop(&mut self) {
        // What nobody has looked at was meant for what is over now.
        while self.next().is_some() {}
        // SAFETY: the set was filled in by the kernel.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.previous, ptr::null_mut()) };
    }
}

/// Waits until one of the descriptors is readable (or hung up), or the time is over.
///
/// # Errors
/// The descriptors cannot be waited for.
pub fn wait_readable(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<()> {
    let mut polled: Vec<libc::pollfd> =
        descriptors.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the array and the timeout are valid; no signal mask is changed.
    let result =
        unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout, ptr::null()) };
    match check(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

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

/// The signal that ends a wait in a system call, for a worker that is asked to stop. It has no other effect.
pub const INTERRUPT: libc::c_int = libc::SIGUSR2;

/// Makes [`INTERRUPT`] end waits in this process and in what it forks.
///
/// # Errors
/// The handler cannot be installed.
pub fn become_interruptible() -> io::Result<()> {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: the structure is plain data, valid as zeros: no flags, so system calls are not restarted. The handler
    // does nothing, which is safe at any moment.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        check(libc::sigaction(INTERRUPT, &raw const action, ptr::null_mut()))?;
        // Whoever started this program may have blocked it.
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, INTERRUPT);
        check(libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut()))?;
    }
    Ok(())
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

/// Ends the wait of a thread of this process; one that is gone waits for nothing.
pub fn interrupt_thread(thread: libc::pid_t) {
    // SAFETY: no pointers are involved; a thread that is not of this process is not reached.
    unsafe { libc::syscall(libc::SYS_tgkill, process_id(), thread, INTERRUPT) };
}

/// Sends a signal; a process that is gone already needs none.
pub fn kill(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: no pointers are involved.
    unsafe { libc::kill(pid, signal) };
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

/// The bytes that this process can still write to a file's file system; `None` where that has no number for them.
///
/// # Errors
/// The file system does not say.
pub fn free_bytes(file: &std::fs::File) -> io::Result<Option<u64>> {
    let mut facts = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the structure is the kernel's, and valid through the call.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), facts.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: filled in by the call; zeros would have been valid too.
    let facts = unsafe { facts.assume_init() };
    if facts.f_blocks == 0 {
        return Ok(None);
    }
    // SAFETY: no pointers are involved.
    let privileged = unsafe { libc::geteuid() } == 0;
    let blocks = if privileged { facts.f_bfree } else { facts.f_bavail };
    Ok(Some(blocks.saturating_mul(facts.f_frsize)))
}
