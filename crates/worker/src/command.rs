//! `exec_prerun` and `exec_postrun`: shell commands before and after a job.

use iolite_os::process::{start_in_group, tie_to_this_thread};
use iolite_os::{explained, signals};
pub use iolite_plan::commands::When;
use iolite_plan::commands::output_file;
use iolite_types::describe_error;
use std::fs::File;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How often to check whether a command has ended.
const LOOK: Duration = Duration::from_millis(1);

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// The note that says where a command's output goes.
pub fn note(job: &str, when: When) -> String {
    format!("{job} : Saving output of {} in {}", when.word(), output_file(job, when))
}

/// Runs a command in a shell and waits for it. Its standard output and standard error go to a file. Once `stops` is
/// true, the command is asked to end, and killed if it does not.
///
/// The command and its children form a separate process group, which `group` names while it runs: if the worker is
/// killed, others can end it, and the shell dies with the worker. Processes that continue in the background after the
/// shell has ended are left alone.
///
/// # Errors
/// The command cannot be started, its output file cannot be created, or it exits with a failure.
pub fn run(
    job: &str,
    when: When,
    command: &str,
    group: &AtomicI32,
    stops: impl Fn() -> bool,
) -> io::Result<()> {
    let path = output_file(job, when);
    let output = File::create(&path).map_err(|error| {
        explained(
            &error,
            format!("the output of \"{command}\" cannot be kept in {path}: {}", describe_error(&error)),
        )
    })?;
    let errors = output.try_clone()?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(output).stderr(errors);
    // The shell dies with this thread, and receives the signals that the run has blocked for itself.
    tie_to_this_thread(&mut shell);
    let mut child = start_in_group(shell, group)?;
    let status = wait(&mut child, &stops);
    group.store(0, Relaxed);
    let status = status?;
    // A command that was stopped has not failed.
    if status.success() || stops() {
        Ok(())
    } else {
        Err(io::Error::other(format!("\"{command}\" ended with {status}")))
    }
}

/// Waits for the command to end; asks it to end once `stops` is true.
fn wait(child: &mut Child, stops: &impl Fn() -> bool) -> io::Result<ExitStatus> {
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let group = child.id() as i32;
        match asked {
            None if stops() => {
                signals::kill_group(group, libc::SIGTERM);
                asked = Some(Instant::now());
            }
            Some(asked) if asked.elapsed() > GRACE => signals::kill_group(group, libc::SIGKILL),
            _ => {}
        }
        std::thread::sleep(LOOK);
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
