//! Where a log goes: a file, or a pipe on whose other end somebody reads, or nobody.
//!
//! Nothing here waits in the kernel for the other end of a pipe, so that a job that is asked to stop stops: what nobody
//! takes is given up then.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How often somebody looks whether a pipe has a reader, or the job is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// A pipe that takes nothing for so long, while its job is asked to stop, never will.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the job is asked to stop.
#[derive(Clone)]
pub struct CalledOff(Arc<dyn Fn() -> bool + Send + Sync>);

impl CalledOff {
    /// Asks this.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> CalledOff {
        CalledOff(Arc::new(asked))
    }
}

impl fmt::Debug for CalledOff {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "CalledOff({})", (self.0)())
    }
}

/// An open log.
#[derive(Debug)]
pub struct Outlet {
    file: File,
    called_off: CalledOff,
}

impl Outlet {
    /// Opens a log, of which what is there is kept or not. For a pipe this waits until somebody reads from it.
    ///
    /// # Errors
    /// What the system says; `EINTR` when it was called off.
    pub fn open(path: &Path, keep: bool, called_off: &CalledOff) -> io::Result<Outlet> {
        let mut options = OpenOptions::new();
        options.create(true).custom_flags(libc::O_NONBLOCK);
        if keep {
            options.append(true);
        } else {
            options.write(true).truncate(true);
        }
        loop {
            match options.open(path) {
                Ok(file) => return Ok(Outlet { file, called_off: called_off.clone() }),
                Err(error) if has_no_reader(path, &error) => {}
                Err(error) => return Err(error),
            }
            if (called_off.0)() {
                return Err(io::Error::from_raw_os_error(libc::EINTR));
            }
            thread::sleep(LOOK);
        }
    }

    /// Writes whole lines, or whole streams, in one call where that is possible: several workers may add to one file,
    /// and then these stay together.
    ///
    /// # Errors
    /// What the system says; and that nobody takes anything, when the job is asked to stop.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut moved = Instant::now();
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    moved = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if moved.elapsed() > PATIENCE && (self.called_off.0)() {
                        return Err(given_up(bytes.len()));
                    }
                    wait_writable(&self.file)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn has_no_reader(path: &Path, error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENXIO)
        && fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo())
}

fn given_up(bytes: usize) -> io::Error {
    let text = format!(
        "nobody reads from it, and the job was asked to stop: {bytes} bytes, and all entries that came after them, \
         are lost"
    );
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// Waits until there is room, a moment at most.
fn wait_writable(file: &File) -> io::Result<()> {
    let mut polled = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: there is one structure, which lives through the call.
    let result = unsafe { libc::poll(&raw mut polled, 1, LOOK.as_millis() as libc::c_int) };
    match io::Error::last_os_error() {
        error if result < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
