//! `exec_prerun` and `exec_postrun`: commands of the user around a job.

use iolite_os::explained;
use iolite_types::describe_error;
use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

/// When a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the job.
    Before,
    /// After it.
    After,
}

impl When {
    /// The word in file names and messages.
    fn word(self) -> &'static str {
        match self {
            When::Before => "prerun",
            When::After => "postrun",
        }
    }
}

/// The note that says where a command's output goes.
pub fn note(job: &str, when: When) -> String {
    format!("{job}: Saving output of {} in {}", when.word(), output_file(job, when))
}

/// `JOB.prerun.txt`; a job's name may look like a path, the file is in the current directory all the same.
fn output_file(job: &str, when: When) -> String {
    format!("{}.{}.txt", job.replace('/', "_"), when.word())
}

/// Runs a command in a shell and waits for it. What it prints, to whichever output, goes to a file.
///
/// # Errors
/// When it cannot be started, its output cannot be kept, or it does not end well.
pub fn run(job: &str, when: When, command: &str) -> io::Result<()> {
    let path = output_file(job, when);
    let output = File::create(&path).map_err(|error| {
        explained(
            &error,
            format!("the output of \"{command}\" cannot be kept in {path}: {}", describe_error(&error)),
        )
    })?;
    let errors = output.try_clone()?;
    // The signals that the run keeps to itself are not blocked for the command: the standard library sees to that.
    let status = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("\"{command}\" ended with {status}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_the_job() {
        assert_eq!(output_file("a/b", When::Before), "a_b.prerun.txt");
        assert_eq!(note("j", When::After), "j: Saving output of postrun in j.postrun.txt");
    }
}
