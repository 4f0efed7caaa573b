//! A copy, in an unnamed file, of a trace that can be read only once.

use iolite_trace::{TraceError, TraceReader};
use iolite_types::is_standard_stream;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The copy. All processes of the run inherit its descriptor and can read it from its beginning.
#[derive(Debug)]
pub struct Spool {
    file: File,
}

impl Spool {
    /// Copies the stream to its end, in bounded memory, to a file in this directory (or the usual one).
    pub fn of(stream: &Path, directory: Option<&Path>) -> io::Result<Spool> {
        let usual = std::env::temp_dir();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .mode(0o600)
            .open(directory.unwrap_or(&usual))?;
        io::copy(&mut iolite_trace::open(stream)?, &mut file)?;
        Ok(Spool { file })
    }

    /// A reader from the start, with its own position.
    pub fn reader(&self, name: &Path) -> Result<TraceReader<File>, TraceError> {
        let name =
            if is_standard_stream(name) { "standard input".into() } else { name.display().to_string() };
        let again = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
            .map_err(|error| TraceError::io(&name, iolite_trace::Place::Whole, error))?;
        TraceReader::new(again, &name)
    }
}
