//! Programs that a test makes and then runs.
//!
//! A separate process writes each file. If the test itself wrote it, a process that another test starts at that moment
//! would inherit the open file, and until that process calls exec, the kernel refuses to run the new program ("Text
//! file busy").

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a script, including its `#!` line, and makes it executable.
///
/// # Errors
/// The file cannot be written.
pub fn write_program(path: &Path, text: &str) -> io::Result<()> {
    let mut installing = install(Path::new("/dev/stdin"), path).stdin(Stdio::piped()).spawn()?;
    let written = installing.stdin.take().expect("it is piped").write_all(text.as_bytes());
    succeeded(installing.wait()?).and(written)
}

/// Copies a program.
///
/// # Errors
/// The file cannot be read, or the copy cannot be written.
pub fn copy_program(from: &Path, to: &Path) -> io::Result<()> {
    succeeded(install(from, to).status()?)
}

fn install(from: &Path, to: &Path) -> Command {
    let mut command = Command::new("install");
    command.args(["-m", "755"]).arg(from).arg(to);
    command
}

fn succeeded(status: std::process::ExitStatus) -> io::Result<()> {
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("install: {status}"))) }
}
