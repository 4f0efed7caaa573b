//! The destinations of output: the report goes to standard output or a file, the status line to the terminal. If
//! standard output carries the data of a job, both go to standard error.
//!
//! Names of jobs and files may contain control characters, which could control the terminal. They are shown as `\x1b`;
//! JSON has its own escapes.

use crate::output_file::Destination;
use crate::terminal;
use iolite_options::RunOptions;
use iolite_report::live::Width;
use iolite_types::is_bidi_control;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Writes text to standard output. A reader that closes the pipe is not an error.
pub fn print(text: &str) -> io::Result<()> {
    unless_closed(Stream::Output.write(text.as_bytes()))
}

/// Ignores the error of a closed pipe: the reader has finished.
pub fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// Writes text to standard error. If that fails, there is no other place for the message.
pub fn print_error(text: &str) {
    let _ = io::stderr().lock().write_all(&harmless(text.as_bytes()));
}

/// The text with its control characters made visible, including those of bidirectional text, but not line breaks and
/// tabs.
pub fn harmless(text: &[u8]) -> Cow<'_, [u8]> {
    let acts = |character: char| {
        character.is_control() && !matches!(character, '\n' | '\t') || is_bidi_control(character)
    };
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

/// Output that may reach a terminal.
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
    /// The destination of the page that is made in addition to the report.
    page: Option<Destination>,
    stream: Stream,
    error: Option<io::Error>,
}

/// Parts of the report written so far. (There is one report per process.)
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Reports are written in parts of this size, so that progress is visible.
const PART: usize = 64 << 10;

/// Parts of the report written so far; only growth matters.
pub fn taken() -> u64 {
    TAKEN.load(Relaxed)
}

fn write_in_parts(to: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for part in bytes.chunks(PART) {
        to.write_all(part)?;
        TAKEN.fetch_add(1, Relaxed);
    }
    to.flush()
}

/// The stream for output that does not go to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

impl Stream {
    fn write(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Output => write_in_parts(&mut io::stdout().lock(), bytes),
            Stream::Error => write_in_parts(&mut io::stderr().lock(), bytes),
        }
    }
}

/// The output file cannot be used.
#[derive(Debug)]
pub struct OpenError(String);

impl OpenError {
    /// The file of this option would overwrite `what`.
    pub fn taken(option: &str, what: &str) -> OpenError {
        OpenError(format!("{option}: {what}"))
    }
}

impl From<String> for OpenError {
    fn from(why: String) -> OpenError {
        OpenError(why)
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Console {
    /// Opens the file of `--output`. `output_is_data`: a job writes its data to standard output.
    pub fn open(run: &RunOptions, output_is_data: bool) -> Result<Console, OpenError> {
        let open = |what: &str, path: &Path| {
            Destination::open(path).map_err(|error| OpenError(format!("{what}{}: {error}", path.display())))
        };
        let file = run.output.as_deref().map(|path| open("--output=", path)).transpose()?;
        let page = match (&run.output, run.page_file()) {
            (Some(output), Some(path)) => {
                check_page(output, &path)?;
                Some(open("--output-format=html: ", &path)?)
            }
            _ => None,
        };
        let stream = if output_is_data { Stream::Error } else { Stream::Output };
        Ok(Console { file, page, stream, error: None })
    }

    /// Writes a part of the report. The first error is kept and reported at the end.
    pub fn write(&mut self, bytes: &[u8]) {
        self.write_made(&harmless(bytes));
    }

    /// The same for bytes in which only the program's own control characters remain.
    pub fn write_made(&mut self, bytes: &[u8]) {
        let result = match &mut self.file {
            None => self.stream.write(bytes),
            Some(destination) => destination.write(bytes, write_in_parts),
        };
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// The file of the report, after these lines were written to it, for more of them. Who writes to it continues at
    /// the place where the others stopped. `None` = there is no file, or the report grows in memory.
    pub fn share_file(&mut self, lines: &[u8]) -> Option<File> {
        let shared = self.file.as_ref()?.share()?;
        self.write(lines);
        Some(shared)
    }

    /// Writes the last part of the report, which is then complete. Only the program's own control characters remain in it.
    ///
    /// # Errors
    /// The first error of all parts. If the report cannot go to its file, this part goes to standard output: it is not
    /// lost.
    pub fn write_last(&mut self, bytes: &[u8]) -> Result<(), LastError> {
        self.write_made(bytes);
        let written = self.error.take().map_or(Ok(()), Err);
        let completed = written.and_then(|()| self.file.as_mut().map_or(Ok(()), Destination::complete));
        // A reader that has closed the pipe has finished.
        unless_closed(completed).map_err(|error| {
            let Some(file) = &self.file else { return LastError { error, what_then: "" } };
            let _ = self.stream.write(bytes);
            let what_then = match file.keeps_old() {
                true => "; it is on standard output, and the old one is kept",
                false => "; it is on standard output",
            };
            LastError { error, what_then }
        })
    }

    /// Writes the page that is made in addition to the report, if any.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_page(&mut self, bytes: &[u8]) -> Result<(), LastError> {
        let Some(page) = &mut self.page else { return Ok(()) };
        let written = page.write(bytes, write_in_parts).and_then(|()| page.complete());
        written.map_err(|error| LastError { error, what_then: "; the one that lacks is the page" })
    }

    /// Writes to the terminal, separately from the report. Failure is not an error.
    pub fn show(&self, text: &str) {
        let _ = self.stream.write(text.as_bytes());
    }

    /// Whether the output is a terminal.
    pub fn is_watched(&self) -> bool {
        match self.stream {
            Stream::Output => io::stdout().is_terminal(),
            Stream::Error => io::stderr().is_terminal(),
        }
    }

    /// Whether the report goes to a terminal.
    pub fn is_on_terminal(&self) -> bool {
        !self.is_file() && self.is_watched()
    }

    /// How wide the terminal is, if the output is one.
    pub fn width(&self) -> Option<Width> {
        if self.stream == Stream::Output { terminal::width() } else { None }
    }

    /// Whether the report goes to a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }
}

/// Checks whether a page may be written next to the report, which has been opened. (The user has not named the page's
/// file.)
fn check_page(output: &Path, page: &Path) -> Result<(), OpenError> {
    let refused = |why: String| OpenError(format!("--output-format=html: {why}; give --output another name"));
    // A page next to a name like /dev/stdout would be a file in /dev.
    if output.starts_with("/dev") || output.starts_with("/proc") || !output.is_file() {
        return Err(refused(format!(
            "--output={} is not a file that a page can be beside",
            output.display()
        )));
    }
    let Ok(found) = page.metadata() else { return Ok(()) };
    let report = output.metadata().map_err(|error| refused(format!("{}: {error}", output.display())))?;
    if (found.dev(), found.ino()) == (report.dev(), report.ino()) {
        return Err(refused(format!("the page would go into {}, which is the report", page.display())));
    }
    if !found.is_file() || (found.len() > 0 && !is_page(page)) {
        return Err(refused(format!(
            "the page would go into {}, which exists and is not a page of a report",
            page.display()
        )));
    }
    Ok(())
}

/// Whether the file is a page of a report.
fn is_page(path: &Path) -> bool {
    let mut start = vec![0; iolite_page::BEGINNING.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == iolite_page::BEGINNING.as_bytes()
}

/// The report cannot be written.
#[derive(Debug)]
pub struct LastError {
    /// The reason.
    pub error: io::Error,
    /// The other destination of the output, or the consequence.
    pub what_then: &'static str,
}

impl std::fmt::Display for LastError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the report cannot be written: {}{}", self.error, self.what_then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        let shown = |text: &[u8]| String::from_utf8_lossy(&harmless(text)).into_owned();
        assert_eq!(shown("a: b\tc µ\n".as_bytes()), "a: b\tc µ\n");
        assert_eq!(shown(b"red \x1b[31m\rover\x7f"), r"red \x1b[31m\x0dover\x7f");
        // An escape of one character, as UTF-8 has it.
        assert_eq!(shown("\u{9b}31m".as_bytes()), r"\x9b31m");
        assert_eq!(shown("abc\u{202e}cba".as_bytes()), r"abc\x202ecba");
        assert_eq!(&harmless(b"\xff\x1b")[..], b"\xff\\x1b");
    }

    #[test]
    fn a_page_replaces_nothing_but_pages() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let open = |output: &Path| {
            let output_format = vec![iolite_options::OutputFormat::Json, iolite_options::OutputFormat::Html];
            let run = RunOptions { output: Some(output.to_owned()), output_format, ..RunOptions::default() };
            Console::open(&run, false).map(drop).map_err(|error| error.to_string())
        };
        std::fs::write(path("index.html"), "<html>somebody's</html>").unwrap();
        assert!(open(&path("index.json")).unwrap_err().contains("not a page of a report"));
        std::fs::write(path("r.json"), "{}").unwrap();
        std::os::unix::fs::symlink("r.json", path("r.html")).unwrap();
        assert!(open(&path("r.json")).unwrap_err().contains("which is the report"));
        assert_eq!(std::fs::read_to_string(path("r.json")).unwrap(), "{}");
        for output in ["/dev/null", "/dev/stdout"] {
            assert!(open(Path::new(output)).unwrap_err().contains("not a file that a page can be beside"));
        }
        std::fs::write(path("old.html"), format!("{}…", iolite_page::BEGINNING)).unwrap();
        std::fs::write(path("empty.html"), "").unwrap();
        for name in ["old.json", "empty.json", "new.json"] {
            assert_eq!(open(&path(name)), Ok(()));
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let run = RunOptions { output: Some("no/such/place".into()), ..RunOptions::default() };
        let error = Console::open(&run, false).err().unwrap().to_string();
        assert!(error.contains("--output=no/such/place"), "{error}");
    }
}
