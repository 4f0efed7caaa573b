//! A connection to a volume.
//!
//! The connection is not closed before the process ends: glfs_fini(3) would wait ten seconds for objects that the
//! library itself keeps open, and after all files have been closed, no data can be lost.

use super::library::Gfapi;
use iolite_engine::EngineError;
use iolite_engine::library::Handle;
use iolite_options::engines::GfapiOptions;
use iolite_os::explained;
use iolite_types::describe_error;
use libc::{c_int, stat64};
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

/// The time limit for connecting: a live server answers in milliseconds.
const TO_CONNECT: Duration = Duration::from_secs(30);

/// The modes of new files and directories.
const FILE_MODE: libc::mode_t = 0o644;
const DIRECTORY_MODE: libc::mode_t = 0o755;

/// A connection.
#[derive(Clone, Copy)]
pub(super) struct Volume {
    pub(super) lib: &'static Gfapi,
    handle: Handle,
}

// SAFETY: the library may be called from any thread.
unsafe impl Send for Volume {}

/// The connections that all workers of this process share, with their options.
static SHARED: Mutex<Vec<(GfapiOptions, Volume)>> = Mutex::new(Vec::new());

impl Volume {
    /// Connects. With `single_instance`, workers of this process with the same options share a connection.
    ///
    /// # Errors
    /// The library is missing, or the server or the volume is not there.
    pub(super) fn open(engine: &'static str, options: &GfapiOptions) -> Result<Volume, EngineError> {
        if !options.single_instance {
            return Volume::connect(engine, options);
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, volume)) = shared.iter().find(|(with, _)| with == options) {
            return Ok(*volume);
        }
        let volume = Volume::connect(engine, options)?;
        shared.push((options.clone(), volume));
        Ok(volume)
    }

    fn connect(engine: &'static str, options: &GfapiOptions) -> Result<Volume, EngineError> {
        let refused = |errno, why: String| EngineError::Remote { engine, errno, why };
        for (name, value, what) in [
            ("volume", &options.volume, "the volume with the files"),
            ("brick", &options.brick, "a server of the volume"),
        ] {
            if value.is_empty() {
                return Err(refused(libc::EINVAL, format!("{name}= is missing, {what}")));
            }
        }
        let text = |name: &str, value: &str| {
            CString::new(value).map_err(|_| refused(libc::EINVAL, format!("{name}: a zero byte is in it")))
        };
        let (volume, brick) = (text("volume", &options.volume)?, text("brick", &options.brick)?);
        let limit = text("gluster_timeout", &options.limit_in_seconds().to_string())?;
        let lib = Gfapi::load(engine)?;
        // SAFETY: texts end with a zero byte, and the library copies them.
        let handle = unsafe { (lib.create)(volume.as_ptr()) };
        if handle.is_null() {
            return Err(refused(libc::ENOMEM, format!("volume={}: {}", options.volume, last_words())));
        }
        // SAFETY: as above; the handle is new.
        unsafe {
            (lib.set_server)(handle, c"tcp".as_ptr(), brick.as_ptr(), 0);
            (lib.set_logging)(handle, c"/dev/null".as_ptr(), 0);
            // Without flush-behind, closing a file sends its cached writes, so that other clients see them.
            (lib.set_option)(handle, c"*-write-behind".as_ptr(), c"flush-behind".as_ptr(), c"off".as_ptr());
            if options.gluster_timeout > 0 {
                // Clients send pings to bricks, to notice when one is gone.
                for name in [c"ping-timeout", c"frame-timeout"] {
                    (lib.set_option)(handle, c"*-client-*".as_ptr(), name.as_ptr(), limit.as_ptr());
                }
            }
        }
        let volume = Volume { lib, handle };
        match volume.start(options) {
            Ok(()) => Ok(volume),
            Err(errno) => Err(refused(errno, why_not_connected(errno, options))),
        }
    }

    /// Connects in a separate thread, because the call cannot be interrupted.
    fn start(self, options: &GfapiOptions) -> Result<(), i32> {
        let (tell, told) = mpsc::channel();
        let volume = self;
        let thread = std::thread::Builder::new().name("gfapi".to_owned()).spawn(move || {
            let Volume { lib, handle } = { volume };
            // SAFETY: the handle has been set up, and nothing else uses it in the meantime.
            let result = unsafe { (lib.init)(handle) };
            // (The caller may have given up.)
            let _ = tell.send(if result == 0 { Ok(()) } else { Err(last_errno()) });
        });
        thread.map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))?;
        let limit = match options.gluster_timeout {
            0 => TO_CONNECT,
            limit => Duration::from_micros(limit).min(TO_CONNECT),
        };
        told.recv_timeout(limit).unwrap_or(Err(libc::ETIMEDOUT))
    }

    /// Opens a file.
    pub(super) fn open_file(self, name: &CStr, flags: c_int) -> io::Result<Handle> {
        // SAFETY: the volume is connected, and the name ends with a zero byte.
        self.opened(unsafe { (self.lib.open)(self.handle, name.as_ptr(), flags) })
    }

    /// Opens a file. If it does not exist, creates it and the directories above it.
    pub(super) fn make_file(self, name: &CStr, flags: c_int) -> io::Result<Handle> {
        let make = || {
            // SAFETY: as above.
            self.opened(unsafe { (self.lib.make)(self.handle, name.as_ptr(), flags, FILE_MODE) })
        };
        match make() {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                self.make_directories(name)?;
                make()
            }
            result => result,
        }
    }

    fn opened(self, file: Handle) -> io::Result<Handle> {
        if file.is_null() { Err(io::Error::last_os_error()) } else { Ok(file) }
    }

    fn make_directories(self, name: &CStr) -> io::Result<()> {
        let name = name.to_bytes();
        let slashes = (1..name.len()).filter(|&place| name[place] == b'/');
        for place in slashes {
            let directory = CString::new(&name[..place])?;
            // SAFETY: the volume is connected, and the name ends with a zero.
            let made = unsafe { (self.lib.mkdir)(self.handle, directory.as_ptr(), DIRECTORY_MODE) };
            match made {
                0 => {}
                _ if last_errno() == libc::EEXIST => {}
                _ => return Err(io::Error::last_os_error()),
            }
        }
        Ok(())
    }

    /// The attributes of a file; `None` = it does not exist.
    pub(super) fn status(self, name: &CStr) -> io::Result<Option<stat64>> {
        let mut status = MaybeUninit::<stat64>::uninit();
        // SAFETY: the volume is connected, the name ends with a zero, and there is room for the answer.
        match unsafe { (self.lib.stat)(self.handle, name.as_ptr(), status.as_mut_ptr()) } {
            // SAFETY: it has been filled.
            0 => Ok(Some(unsafe { status.assume_init() })),
            _ if last_errno() == libc::ENOENT => Ok(None),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The bytes that are free for users.
    pub(super) fn free(self) -> io::Result<u64> {
        let mut status = MaybeUninit::<libc::statvfs64>::uninit();
        // SAFETY: as above.
        checked(unsafe { (self.lib.statvfs)(self.handle, c"/".as_ptr(), status.as_mut_ptr()) })?;
        // SAFETY: it has been filled.
        let status = unsafe { status.assume_init() };
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }

    /// Removes a file.
    pub(super) fn unlink(self, name: &CStr) -> io::Result<()> {
        // SAFETY: the volume is connected, and the name ends with a zero.
        checked(unsafe { (self.lib.unlink)(self.handle, name.as_ptr()) })
    }

    /// The names of the regular files in a directory, in no order.
    pub(super) fn list(self, name: &CStr) -> io::Result<Vec<String>> {
        // SAFETY: as above.
        let directory = self.opened(unsafe { (self.lib.open_directory)(self.handle, name.as_ptr()) })?;
        let mut names = Vec::new();
        let ended = loop {
            let mut status = MaybeUninit::<stat64>::zeroed();
            let mut entry = MaybeUninit::<libc::dirent64>::zeroed();
            let mut found = std::ptr::null_mut();
            // SAFETY: the directory is open, and there is room for the results.
            let result = unsafe {
                (self.lib.read_directory)(directory, status.as_mut_ptr(), entry.as_mut_ptr(), &raw mut found)
            };
            if result != 0 {
                break Err(io::Error::last_os_error());
            }
            if found.is_null() {
                break Ok(());
            }
            // SAFETY: both are plain data and have been filled in, and the name ends with a zero byte.
            let (status, name) =
                unsafe { (status.assume_init(), CStr::from_ptr((*found).d_name.as_ptr()).to_string_lossy()) };
            if status.st_mode & libc::S_IFMT == libc::S_IFREG {
                names.push(name.into_owned());
            }
        };
        // SAFETY: the directory is open, and is not used after this.
        unsafe { (self.lib.close_directory)(directory) };
        ended.map(|()| names)
    }
}

/// Turns the result of a call into an error.
pub(super) fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The error number of the last failed call of this thread.
pub(super) fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().filter(|&errno| errno != 0).unwrap_or(libc::EIO)
}

fn last_words() -> String {
    describe_error(&io::Error::last_os_error())
}

fn why_not_connected(errno: i32, options: &GfapiOptions) -> String {
    let GfapiOptions { volume, brick, .. } = options;
    match errno {
        libc::ENOENT => format!("volume={volume}: {brick} has no such volume (see gluster volume list)"),
        libc::ENOTCONN | libc::ECONNREFUSED | libc::EHOSTUNREACH => format!(
            "brick={brick}: no server of GlusterFS answers there (glusterd, port 24007), or volume {volume} is not started \
             (see gluster volume status)"
        ),
        // (The library's error for a stopped volume.)
        libc::EIO => format!(
            "volume={volume} at brick={brick} cannot be used; perhaps it is not started (see gluster volume status)"
        ),
        libc::ETIMEDOUT => format!("brick={brick}: the server does not answer in time"),
        errno => {
            format!(
                "volume={volume} at brick={brick}: {}",
                describe_error(&io::Error::from_raw_os_error(errno))
            )
        }
    }
}

/// A file's name on the volume.
pub(super) fn volume_name(path: &Path) -> io::Result<CString> {
    let invalid =
        |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {why}", path.display()));
    let name = path.to_str().ok_or_else(|| invalid("names on volumes are UTF-8"))?;
    CString::new(name).map_err(|_| invalid("a zero byte is in it"))
}

/// Explains an error of the volume for a file.
pub(super) fn about(path: &str, options: &GfapiOptions, error: &io::Error) -> io::Error {
    let words = in_words(path, options, error.raw_os_error().unwrap_or(libc::EIO));
    explained(error, words)
}

/// The explanation of an error of a file, with the remedy.
pub(super) fn in_words(path: &str, options: &GfapiOptions, errno: i32) -> String {
    let why = match errno {
        libc::ENOTCONN => format!(
            "the brick is gone, or was silent for longer than {} (see gluster volume status)",
            options.limit_in_words()
        ),
        libc::ENODATA => "there is less in the file".to_owned(),
        errno => describe_error(&io::Error::from_raw_os_error(errno)),
    };
    format!("{path} on volume {}: {why}", options.volume)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_a_remedy() {
        let options = GfapiOptions {
            volume: "v".into(),
            brick: "b".into(),
            gluster_timeout: 2_500_000,
            ..GfapiOptions::default()
        };
        assert!(why_not_connected(libc::ENOENT, &options).contains("volume=v: b has no such volume"));
        assert!(why_not_connected(libc::ENOTCONN, &options).contains("brick=b: no server"));
        assert!(why_not_connected(libc::EACCES, &options).contains("Permission denied"));
        assert!(in_words("f", &options, libc::ENOTCONN).contains("3 s (gluster_timeout)"));
        let usual = GfapiOptions::default();
        assert!(in_words("f", &usual, libc::ENOTCONN).contains("network.ping-timeout"));
        assert!(in_words("f", &usual, libc::ENOSPC).starts_with("f on volume"));
    }
}
