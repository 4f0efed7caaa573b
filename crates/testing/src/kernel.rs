//! What an emulator of programs (qemu-user) does not hand to the kernel, or get from it. Each function is a probe: `Err` is the
//! reason to skip a test that needs it.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Whether commands of devices reach the kernel.
///
/// # Errors
/// They do not.
pub fn takes_ioctls() -> Result<(), String> {
    /// `SG_IO`, which no character device but SCSI's knows.
    const SG_IO: libc::c_ulong = 0x2285;
    let null = File::open("/dev/null").map_err(|error| format!("/dev/null: {error}"))?;
    // SAFETY: the kernel refuses the command before it reads anything.
    unsafe { libc::ioctl(null.as_raw_fd(), SG_IO as _, std::ptr::null_mut::<libc::c_void>()) };
    present("commands of devices do not reach the kernel")
}

/// Whether there is io_setup(2).
///
/// # Errors
/// There is not.
pub fn has_libaio() -> Result<(), String> {
    // SAFETY: without a place for the context, it only fails.
    unsafe { libc::syscall(libc::SYS_io_setup, 1, std::ptr::null_mut::<libc::c_ulong>()) };
    present("there is no io_setup(2)")
}

/// Whether there is io_uring_setup(2).
///
/// # Errors
/// There is not.
pub fn has_io_uring() -> Result<(), String> {
    // SAFETY: without parameters, it only fails.
    unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null_mut::<libc::c_void>()) };
    present("there is no io_uring_setup(2)")
}

/// Whether the kernel releases the robust locks of a thread that ends.
///
/// # Errors
/// It does not.
pub fn has_robust_locks() -> Result<(), String> {
    let (mut head, mut length) = (std::ptr::null_mut::<libc::c_void>(), 0_usize);
    // SAFETY: both places are valid.
    unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut length) };
    present("the kernel is not told of robust locks")
}

/// Whether `/proc` shows the signals that a thread of this process blocks.
///
/// # Errors
/// It does not.
pub fn shows_signal_masks() -> Result<(), String> {
    let shown = std::thread::spawn(|| {
        // SAFETY: the set is filled before it is used; the thread ends right away.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGUSR2);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        }
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()) == Some(1 << (libc::SIGUSR2 - 1))
    });
    match shown.join() {
        Ok(true) => Ok(()),
        _ => Err("/proc does not show the signals that threads of this process block".to_owned()),
    }
}

/// The reason, if the last system call is unknown.
fn present(reason: &str) -> Result<(), String> {
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOSYS) { Err(reason.to_owned()) } else { Ok(()) }
}
