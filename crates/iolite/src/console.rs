//! Where output goes: the report to standard output or a file, the status line to the terminal.

use iolite_options::RunOptions;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Writes text to standard output. A reader that has had enough (a closed pipe) is no error.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes text to standard error. When even that cannot be written, there is nobody left to tell.
pub fn print_error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The report's destination.
pub struct Console {
    file: Option<Destination>,
    error: Option<io::Error>,
}

struct Destination {
    file: File,
    /// What the file held before is kept until there is something to replace it.
    fresh: bool,
}

/// The output file cannot be used.
#[derive(Debug)]
pub struct OpenError(String);

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Console {
    /// Opens what `--output` names.
    pub fn open(run: &RunOptions) -> Result<Console, OpenError> {
        let open = |path: &Path| {
            let file = File::options().write(true).create(true).truncate(false).open(path);
            let file = file.map_err(|error| OpenError(format!("--output={}: {error}", path.display())))?;
            Ok(Destination { file, fresh: true })
        };
        let file = run.output.as_deref().map(open).transpose()?;
        Ok(Console { file, error: None })
    }

    /// Writes a part of the report. The first error is kept and told at the end.
    pub fn write(&mut self, bytes: &[u8]) {
        let result = match &mut self.file {
            None => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Some(destination) => destination.write(bytes),
        };
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// The first error of writing, if there was one.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Whether the report goes to a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }
}

impl Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.fresh) && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(bytes)
    }
}

/// Whether somebody watches standard output.
pub fn is_watched() -> bool {
    io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_report_is_kept_until_there_is_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        std::fs::write(&path, "a long old report").unwrap();
        let run = RunOptions { output: Some(path.clone()), ..RunOptions::default() };
        let mut console = Console::open(&run).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a long old report");
        console.write(b"new");
        console.write(b"er");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "newer");
        assert!(console.take_error().is_none());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let run = RunOptions { output: Some("/no/such/place".into()), ..RunOptions::default() };
        let error = Console::open(&run).err().unwrap().to_string();
        assert!(error.contains("--output=/no/such/place"), "{error}");
    }
}
