//! The destination of a log: a file, or a pipe that may or may not have a reader.
//!
//! Nothing here blocks in the kernel waiting for the reader of a pipe. So a job that is asked to stop does stop, and
//! unread data is dropped then.

use crate::Job;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How often a waiting thread checks whether the pipe is ready, and whether the job is asked to stop.
const LOOK: Duration = Duration::from_millis(20);

/// If the job is asked to stop, a pipe that accepts no data for this long is abandoned.
const PATIENCE: Duration = Duration::from_secs(1);

/// An open log.
#[derive(Debug)]
pub struct Outlet {
    file: File,
    job: Job,
}

impl Outlet {
    /// The job of the log.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Opens a log, and keeps its content if `keep` is true. A pipe is opened only when it has a reader; this waits for
    /// one.
    ///
    /// # Errors
    ///
    /// The error of opening the file; `EINTR` if the job was asked to stop before the pipe had a reader.
    pub fn open(path: &Path, keep: bool, job: &Job) -> io::Result<Outlet> {
        let mut options = OpenOptions::new();
        options.create(true).custom_flags(libc::O_NONBLOCK);
        if keep {
            options.append(true);
        } else {
            options.write(true).truncate(true);
        }
        loop {
            match options.open(path) {
                Ok(file) => return Ok(Outlet { file, job: job.clone() }),
                Err(error) if has_no_reader(path, &error) => {}
                Err(error) => return Err(error),
            }
            if job.is_stopping() {
                return Err(io::Error::from_raw_os_error(libc::EINTR));
            }
            thread::sleep(LOOK);
        }
    }

    /// Writes whole lines or whole streams, in one system call if possible: several workers may append to one file, and
    /// each line must stay in one piece.
    ///
    /// # Errors
    ///
    /// The error of writing; or that the pipe accepts no data although the job is asked to stop.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut moved = Instant::now();
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    moved = Instant::now();
                    self.job.wrote();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if moved.elapsed() > PATIENCE && self.job.is_stopping() {
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

/// Waits until the file takes data, but not longer than [`LOOK`].
fn wait_writable(file: &File) -> io::Result<()> {
    let mut polled = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: there is one structure, which is valid during the call.
    let result = unsafe { libc::poll(&raw mut polled, 1, LOOK.as_millis() as libc::c_int) };
    match io::Error::last_os_error() {
        error if result < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
