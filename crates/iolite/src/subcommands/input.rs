//! Input of subcommands: files, standard input, pipes and sockets.

use iolite_types::is_standard_stream;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// How long to wait for the other end of a pipe before a message.
const NOTICE: Duration = Duration::from_secs(2);
/// How long to wait for the other end of a pipe before giving up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The largest report.
const LARGEST_REPORT: usize = 1 << 30;

/// Opens an input by name, as [`iolite_trace::open`] does. Opening a pipe blocks until it has a writer; after a while,
/// `program` prints a message about that, and in the end opening fails.
pub fn open(program: &str, path: &Path) -> io::Result<File> {
    let is_pipe = !is_standard_stream(path) && std::fs::metadata(path)?.file_type().is_fifo();
    if !is_pipe {
        return iolite_trace::open(path);
    }
    let (opened, answer) = mpsc::channel();
    let name = path.to_owned();
    // The thread may wait for ever: then it ends with the process.
    std::thread::spawn(move || opened.send(File::open(name)));
    if let Ok(answer) = answer.recv_timeout(NOTICE) {
        return answer;
    }
    let seconds = PATIENCE.as_secs();
    let name = path.display();
    crate::messages::complain(
        program,
        &format_args!("{name}: waiting up to {seconds} s for a writer of this pipe"),
    );
    answer.recv_timeout(PATIENCE - NOTICE).unwrap_or_else(|_| {
        let why = format!("a pipe that no process opened for writing within {seconds} s");
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    })
}

/// Reads a text that is at most as large as the largest report.
pub fn text(from: &mut dyn BufRead) -> io::Result<String> {
    text_up_to(from, LARGEST_REPORT)
}

/// Reads a text of at most this many bytes.
pub fn text_up_to(from: &mut dyn BufRead, largest: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        if from.take(64 << 10).read_to_end(&mut bytes)? == 0 {
            return String::from_utf8(bytes).map_err(|_| no_text());
        }
        if bytes[before..].contains(&0) {
            return Err(no_text());
        }
        if bytes.len() > largest {
            let most = largest >> 20;
            return Err(io::Error::other(format!("larger than {most} MiB, as no report is")));
        }
    }
}

/// The results in a directory (its `*.json`), by name, at most `most` of them.
pub fn results_in(directory: &Path, most: usize) -> Result<Vec<PathBuf>, String> {
    let name = directory.display();
    let told = |error: std::io::Error| format!("{name}: {error}");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
        if files.len() > most {
            return Err(format!("{name}: more than {most} results are not taken at once"));
        }
    }
    if files.is_empty() {
        return Err(format!("{name}: there are no results (*.json) in this directory"));
    }
    files.sort();
    Ok(files)
}

/// The error for bytes that are not text.
fn no_text() -> io::Error {
    io::Error::other("it is not a text")
}
