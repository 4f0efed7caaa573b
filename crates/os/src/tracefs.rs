//! The directory of the kernel's tracepoints.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Where systems mount tracefs.
const PLACES: [&CStr; 2] = [c"/sys/kernel/tracing", c"/sys/kernel/debug/tracing"];

/// `FSCONFIG_CMD_CREATE`
const CREATE: libc::c_uint = 6;

/// The kernel's tracefs.
#[derive(Debug)]
pub struct TraceFs {
    root: OwnedFd,
}

impl TraceFs {
    /// Opens it where it is mounted; else, with the rights of root, as a mount of its own that no path shows and that
    /// ends with this value.
    ///
    /// # Errors
    /// `EACCES` = this process may not look into it; `ENOENT` or `EPERM` = it is not mounted.
    pub fn open() -> io::Result<TraceFs> {
        let mut refused = io::Error::from_raw_os_error(libc::ENOENT);
        for place in PLACES {
            let opened = open_at(libc::AT_FDCWD, place, libc::O_PATH | libc::O_DIRECTORY);
            let tracing = opened.map(|root| TraceFs { root });
            match tracing.and_then(|it| it.read("events/header_event").map(|_| it)) {
                Ok(it) => return Ok(it),
                Err(error) if error.raw_os_error() == Some(libc::EACCES) => refused = error,
                Err(_) => {}
            }
        }
        mounted_apart().map(|root| TraceFs { root }).map_err(|error| match refused.raw_os_error() {
            Some(libc::EACCES) => refused,
            _ => error,
        })
    }

    /// The text of one of its files, such as `events/block/block_rq_issue/format`.
    ///
    /// # Errors
    /// `NotFound` = this kernel has no such file.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let path = std::ffi::CString::new(path)?;
        let descriptor = open_at(self.root.as_raw_fd(), &path, libc::O_RDONLY)?;
        let mut text = String::new();
        File::from(descriptor).read_to_string(&mut text)?;
        Ok(text)
    }
}

fn open_at(directory: libc::c_int, path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the path is a valid string.
    owned(unsafe { libc::openat(directory, path.as_ptr(), flags | libc::O_CLOEXEC) }.into())
}

/// A mount that is attached nowhere.
fn mounted_apart() -> io::Result<OwnedFd> {
    const CLOEXEC: libc::c_uint = 1;
    // SAFETY: the name is a valid string.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), CLOEXEC) })?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: the descriptor is that of a context, and this command takes no other value.
    if unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is that of a created context.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0) })
}

fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
}
