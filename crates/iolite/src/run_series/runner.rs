//! Starts runs of this program, each in a separate process.
//!
//! A signal that ends a run ends that run, and with it the whole series. If this process is killed, the kernel kills
//! the run.

use iolite_os::process::tie_to_this_thread;
use iolite_os::signals::{self, SignalQueue};
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often to check whether the run has ended.
const LOOK: Duration = Duration::from_millis(20);
/// The most bytes of a failed run's messages that are kept.
const MOST_WORDS: u64 = 64 << 10;

/// How a run is started.
pub struct Start {
    /// Its options.
    pub options: Vec<OsString>,
    /// Its job file; `-` is standard input.
    pub file: Option<OsString>,
    /// More variables of its environment.
    pub environment: Vec<(&'static str, String)>,
    /// Its standard input.
    pub input: Vec<u8>,
    /// Whether it obeys `IOLITE_SAVE` in the environment.
    pub may_be_kept: bool,
    /// Whether it shows its progress, if standard output is a terminal.
    pub shows_progress: bool,
}

/// How a run ended.
pub enum End {
    /// Its report is complete.
    Done,
    /// It has a report, but also an error, described here.
    Doubtful(String),
    /// It has no report, for this reason: its jobs were refused, or machines were not reached.
    Failed(String),
    /// It ended in another way, by a signal for example, and its jobs may have begun.
    Killed(String),
    /// The series must end.
    Interrupted,
}

/// Performs one run after the other.
pub struct Runner {
    queue: SignalQueue,
}

impl Runner {
    /// From now on, signals end the series in order.
    pub fn new() -> std::io::Result<Runner> {
        Ok(Runner { queue: SignalQueue::new(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])? })
    }

    /// Whether a signal has asked for the end of the series.
    pub fn is_asked_to_end(&mut self) -> bool {
        self.queue.next().is_some()
    }

    /// Performs a run; its report goes to this file.
    pub fn perform(&mut self, start: &Start, report: &Path) -> Result<End, String> {
        if self.queue.next().is_some() {
            return Ok(End::Interrupted);
        }
        let told = |error: std::io::Error| format!("a run cannot be started: {error}");
        let mut output = std::ffi::OsString::from("--output=");
        output.push(report);
        let mut command = Command::new("/proc/self/exe");
        command.arg0("iolite").args(&start.options).arg("--output-format=json+").arg(output);
        let shows_progress = start.shows_progress && std::io::stdout().is_terminal();
        command
            .args([if shows_progress { "--eta=auto" } else { "--eta=never" }, "--"])
            .args(&start.file)
            .envs(start.environment.iter().cloned());
        if !start.may_be_kept {
            command.env_remove(crate::saving::VARIABLE);
        }
        let output = if shows_progress { Stdio::inherit() } else { Stdio::null() };
        command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped());
        // A terminal's ^C is for this process, which passes it on.
        command.process_group(0);
        tie_to_this_thread(&mut command);
        let mut child = command.spawn().map_err(told)?;
        let words = child.stderr.take().map(|stderr| {
            std::thread::spawn(move || {
                let mut words = Vec::new();
                let mut stderr = stderr;
                let _ = stderr.by_ref().take(MOST_WORDS).read_to_end(&mut words);
                // The rest is read and dropped, so that the child is never blocked.
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                String::from_utf8_lossy(&words).into_owned()
            })
        });
        if let Some(mut stdin) = child.stdin.take() {
            // If the run has ended already, it reports why.
            let _ = stdin.write_all(&start.input);
        }
        let (status, is_interrupted) = self.wait(&mut child).map_err(told)?;
        let words = words.and_then(|thread| thread.join().ok()).unwrap_or_default();
        if is_interrupted {
            return Ok(End::Interrupted);
        }
        let has_report = std::fs::metadata(report).is_ok_and(|found| found.len() > 0);
        Ok(match status.code() {
            Some(0) => End::Done,
            // Jobs had errors, which are in the report.
            Some(1) if has_report => End::Doubtful(words),
            None => End::Killed(format!("{}\nthe run ended with {status}", words.trim())),
            Some(1) if !words.trim().is_empty() => End::Failed(words),
            _ if words.trim().is_empty() => End::Killed(format!("the run ended with {status}")),
            _ => End::Killed(words),
        })
    }

    fn wait(&mut self, child: &mut Child) -> std::io::Result<(std::process::ExitStatus, bool)> {
        let mut is_interrupted = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((status, is_interrupted || self.queue.next().is_some()));
            }
            iolite_os::poll::wait_readable(&[self.queue.as_raw_fd()], Some(LOOK))?;
            while self.queue.next().is_some() {
                is_interrupted = true;
                signals::kill(child.id().cast_signed(), libc::SIGINT);
            }
        }
    }
}

/// A file in memory with this text, and a path by which processes of this user find it while it is open. Nothing of it is
/// left, however this program ends.
///
/// # Errors
/// There is no memory, or no free descriptor.
pub fn in_memory(text: &str) -> std::io::Result<(File, PathBuf)> {
    let mut file = iolite_os::memory::file(c"iolite")?;
    file.write_all(text.as_bytes())?;
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    Ok((file, path))
}
