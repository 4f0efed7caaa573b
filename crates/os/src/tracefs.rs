//! The kernel's tracefs: formats of tracepoints, and instances that record them.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Where systems mount tracefs.
const PLACES: [&CStr; 2] = [c"/sys/kernel/tracing", c"/sys/kernel/debug/tracing"];

/// `FSCONFIG_CMD_CREATE`
const CREATE: libc::c_uint = 6;

/// The kernel's tracefs.
#[derive(Clone, Debug)]
pub struct TraceFs {
    root: Arc<OwnedFd>,
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
            let tracing = opened.map(|root| TraceFs { root: Arc::new(root) });
            match tracing.and_then(|it| it.read("events/header_event").map(|_| it)) {
                Ok(it) => return Ok(it),
                Err(error) if error.raw_os_error() == Some(libc::EACCES) => refused = error,
                Err(_) => {}
            }
        }
        mounted_apart().map(|root| TraceFs { root: Arc::new(root) }).map_err(|error| {
            match refused.raw_os_error() {
                Some(libc::EACCES) => refused,
                _ => error,
            }
        })
    }

    fn file(&self, path: &str, flags: libc::c_int) -> io::Result<File> {
        open_at(self.root.as_raw_fd(), &CString::new(path)?, flags).map(File::from)
    }

    /// The text of one of its files, such as `events/block/block_rq_issue/format`.
    ///
    /// # Errors
    /// `NotFound` = this kernel has no such file.
    pub fn read(&self, path: &str) -> io::Result<String> {
        // Some of its files give their text only to the first read.
        let mut bytes = vec![0; 64 << 10];
        let length = self.file(path, libc::O_RDONLY)?.read(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    /// Whether this process may make instances.
    ///
    /// # Errors
    /// `EACCES` = it may not.
    pub fn may_record(&self) -> io::Result<()> {
        let (root, flags) = (self.root.as_raw_fd(), libc::AT_EACCESS);
        // SAFETY: the path is a valid string.
        let result = unsafe { libc::faccessat(root, c"instances".as_ptr(), libc::W_OK | libc::X_OK, flags) };
        crate::error::check(result).map(drop)
    }

    /// The names of all instances.
    ///
    /// # Errors
    /// This process may not look into them.
    pub fn instances(&self) -> io::Result<Vec<String>> {
        let directory = self.file("instances", libc::O_RDONLY | libc::O_DIRECTORY)?;
        let entries = std::fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// Removes an instance, with what it has recorded.
    ///
    /// # Errors
    /// `EBUSY` = one of its files is open.
    pub fn remove_instance(&self, name: &str) -> io::Result<()> {
        let path = CString::new(format!("instances/{name}"))?;
        // SAFETY: the path is a valid string.
        crate::error::check(unsafe {
            libc::unlinkat(self.root.as_raw_fd(), path.as_ptr(), libc::AT_REMOVEDIR)
        })
        .map(drop)
    }

    /// Makes an instance, which records nothing yet.
    ///
    /// # Errors
    /// `EEXIST` = there is one of this name; `EACCES` = this process may not; `ENOMEM`.
    pub fn make_instance(&self, name: &str) -> io::Result<TraceInstance> {
        let path = CString::new(format!("instances/{name}"))?;
        // SAFETY: the path is a valid string.
        crate::error::check(unsafe { libc::mkdirat(self.root.as_raw_fd(), path.as_ptr(), 0o700) })?;
        Ok(TraceInstance { tracing: self.clone(), name: name.to_owned() })
    }
}

/// Buffers of one's own, one for each CPU, with the tracepoints that go into them. It stays until it is removed.
#[derive(Clone, Debug)]
pub struct TraceInstance {
    tracing: TraceFs,
    name: String,
}

impl TraceInstance {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// This kernel has no such file, or refuses the value.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let path = format!("instances/{}/{path}", self.name);
        self.tracing.file(&path, libc::O_WRONLY)?.write_all(value.as_bytes())
    }

    /// The raw buffer of a CPU. Each read takes the records of at most one page; `WouldBlock` = there are none.
    ///
    /// # Errors
    /// There is no such CPU, or too many files are open.
    pub fn raw(&self, cpu: u32) -> io::Result<File> {
        let path = format!("instances/{}/per_cpu/cpu{cpu}/trace_pipe_raw", self.name);
        self.tracing.file(&path, libc::O_RDONLY | libc::O_NONBLOCK)
    }

    /// Removes it.
    ///
    /// # Errors
    /// `EBUSY` = one of its files is open.
    pub fn remove(&self) -> io::Result<()> {
        self.tracing.remove_instance(&self.name)
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
