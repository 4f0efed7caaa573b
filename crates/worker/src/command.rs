//! `exec_prerun` and `exec_postrun`: shell commands before and after a job.

use iolite_os::explained;
pub use iolite_plan::commands::When;
use iolite_plan::commands::output_file;
use iolite_types::describe_error;
use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

/// The note that says where a command's output goes.
pub fn note(job: &str, when: When) -> String {
    format!("{job} : Saving output of {} in {}", when.word(), output_file(job, when))
}

/// Runs a command in a shell and waits for it. Its standard output and standard error go to a file.
///
/// # Errors
/// The command cannot be started, its output file cannot be created, or it exits with a failure.
pub fn run(job: &str, when: When, command: &str) -> io::Result<()> {
    let path = output_file(job, when);
    let output = File::create(&path).map_err(|error| {
        explained(
            &error,
            format!("the output of \"{command}\" cannot be kept in {path}: {}", describe_error(&error)),
        )
    })?;
    let errors = output.try_clone()?;
    // The standard library unblocks the signals that the run has blocked for itself.
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
        assert_eq!(note("j", When::After), "j : Saving output of postrun in j.postrun.txt");
    }
}
