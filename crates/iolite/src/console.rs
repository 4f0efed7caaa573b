//! Where output goes: the report to standard output or a file, the status line to the terminal. Where standard output
//! is for the data of a job, both stay out of it, on standard error.
//!
//! Names of jobs and files may hold anything. Control characters among it, which could make a terminal do what nobody
//! asked for, are shown as `\x1b`; JSON has its own way of writing them.

use iolite_options::RunOptions;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Writes text to standard output. A reader that has had enough (a closed pipe) is no error.
pub fn print(text: &str) -> io::Result<()> {
    unless_closed(Stream::Output.write(text.as_bytes()))
}

/// The error, unless it is that the reader closed the pipe: then it has what it wanted.
pub fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// Writes text to standard error. When even that cannot be written, there is nobody left to tell.
pub fn print_error(text: &str) {
    let _ = io::stderr().lock().write_all(&harmless(text.as_bytes()));
}

/// The text with its control characters made visible, other than those that make lines and columns.
pub fn harmless(text: &[u8]) -> Cow<'_, [u8]> {
    let acts = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if !text.utf8_chunks().any(|chunk| chunk.valid().contains(acts)) {
        return Cow::Borrowed(text);
    }
    let mut shown = Vec::with_capacity(text.len() + 16);
    for chunk in text.utf8_chunks() {
        for part in chunk.valid().split_inclusive(acts) {
            match part.char_indices().next_back().filter(|&(_, last)| acts(last)) {
                Some((end, last)) => {
                    shown.extend_from_slice(&part.as_bytes()[..end]);
                    shown.extend(format!("\\x{:02x}", u32::from(last)).into_bytes());
                }
                None => shown.extend_from_slice(part.as_bytes()),
            }
        }
        shown.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(shown)
}

/// Text on its way to where somebody may look at it.
pub struct Shown<'a>(pub &'a mut dyn Write);

impl Write for Shown<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.write_all(&harmless(text))?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The report's destination.
pub struct Console {
    file: Option<Destination>,
    stream: Stream,
    error: Option<io::Error>,
}

/// The stream for what is not written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

impl Stream {
    fn write(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Output => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Stream::Error => io::stderr().lock().write_all(bytes),
        }
    }
}

struct Destination {
    file: File,
    /// What the file held before is kept until there is something to replace it.
    fresh: bool,
}

/// The output file cannot be used.
#[derive(Debug)]
pub struct OpenError(String);

impl OpenError {
    /// The report would overwrite something that the run needs.
    pub fn taken(path: &Path, what: &str) -> OpenError {
        let path = path.display();
        OpenError(format!("--output={path}: the report would go into {what}; give another name"))
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Console {
    /// Opens what `--output` names. `output_is_data`: a job writes its data to standard output.
    pub fn open(run: &RunOptions, output_is_data: bool) -> Result<Console, OpenError> {
        let open = |path: &Path| {
            let file = File::options().write(true).create(true).truncate(false).open(path);
            let file = file.map_err(|error| OpenError(format!("--output={}: {error}", path.display())))?;
            Ok(Destination { file, fresh: true })
        };
        let file = run.output.as_deref().map(open).transpose()?;
        let stream = if output_is_data { Stream::Error } else { Stream::Output };
        Ok(Console { file, stream, error: None })
    }

    /// Writes a part of the report. The first error is kept and told at the end.
    pub fn write(&mut self, bytes: &[u8]) {
        let bytes = harmless(bytes);
        let result = match &mut self.file {
            None => self.stream.write(&bytes),
            Some(destination) => destination.write(&bytes),
        };
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Writes to the terminal, past the report. That nobody can see it is no error.
    pub fn show(&self, text: &str) {
        let _ = self.stream.write(text.as_bytes());
    }

    /// Whether somebody watches.
    pub fn is_watched(&self) -> bool {
        match self.stream {
            Stream::Output => io::stdout().is_terminal(),
            Stream::Error => io::stderr().is_terminal(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_report_is_kept_until_there_is_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        std::fs::write(&path, "a long old report").unwrap();
        let run = RunOptions { output: Some(path.clone()), ..RunOptions::default() };
        let mut console = Console::open(&run, false).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a long old report");
        console.write(b"new");
        console.write(b"er");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "newer");
        assert!(console.take_error().is_none());
    }

    #[test]
    fn control_characters_are_shown() {
        let shown = |text: &[u8]| String::from_utf8_lossy(&harmless(text)).into_owned();
        assert_eq!(shown("a: b\tc µ\n".as_bytes()), "a: b\tc µ\n");
        assert_eq!(shown(b"red \x1b[31m\rover\x7f"), r"red \x1b[31m\x0dover\x7f");
        // An escape of one character, as UTF-8 has it.
        assert_eq!(shown("\u{9b}31m".as_bytes()), r"\x9b31m");
        assert_eq!(&harmless(b"\xff\x1b")[..], b"\xff\\x1b");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let run = RunOptions { output: Some("no/such/place".into()), ..RunOptions::default() };
        let error = Console::open(&run, false).err().unwrap().to_string();
        assert!(error.contains("--output=no/such/place"), "{error}");
    }
}
