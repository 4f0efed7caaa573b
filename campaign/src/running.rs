//! A run of the program in a trial. None may take forever.

use crate::processes;
use crate::stop::Stop;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a run may take, on a machine that does other work. All jobs are made to take a few seconds.
const PATIENCE: Duration = Duration::from_secs(180);

/// A run.
#[derive(Debug)]
pub struct Running {
    child: Child,
    began: Instant,
    /// The files for its standard output and standard error.
    said: [PathBuf; 2],
    /// The words that it was started with.
    pub line: String,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// The words that it was started with.
    pub line: String,
}

impl Running {
    /// Starts the program as a separate process group, in this directory.
    pub fn start(program: &Path, line: &str, dir: &Path, said: &Path, mark: &str) -> Result<Running, Stop> {
        let said = ["out", "err"].map(|name| said.join(name));
        let file = |path: &Path| File::create(path).map_err(Stop::of("a file for its output"));
        let child = Command::new(program)
            .args(line.split_whitespace())
            .current_dir(dir)
            .env(processes::MARK, mark)
            .stdin(Stdio::null())
            .stdout(file(&said[0])?)
            .stderr(file(&said[1])?)
            .process_group(0)
            .spawn()
            .map_err(Stop::of("the program"))?;
        Ok(Running { child, began: Instant::now(), said, line: line.into() })
    }

    /// The controller.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits so long, or until it ends.
    pub fn go_on(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.has_ended() {
            std::thread::sleep(Duration::from_micros(500).min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It does not end. It is killed then.
    pub fn wait(mut self) -> Result<Finished, Stop> {
        let status = loop {
            match self.child.try_wait().map_err(Stop::of("waiting"))? {
                Some(status) => break status,
                None if self.began.elapsed() > PATIENCE => return Err(self.give_up()),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let [stdout, stderr] = self
            .said
            .each_ref()
            .map(|path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned());
        Ok(Finished { status, stdout, stderr, line: std::mem::take(&mut self.line) })
    }

    fn give_up(&mut self) -> Stop {
        let waits = |(pid, role): (i32, processes::Role)| {
            let waits = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
            format!("{role:?} {pid} in {waits}")
        };
        let family: Vec<String> = processes::family(self.pid()).into_iter().map(waits).collect();
        processes::signal_group(self.pid(), libc::SIGKILL);
        let _ = self.child.wait();
        Stop(format!("no end after {PATIENCE:?}: {} ({})", self.line, family.join(", ")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            processes::signal_group(self.pid(), libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

impl Finished {
    /// The exit status; `None` = a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Describes how it ended.
    pub fn end(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no end".into(),
        }
    }

    /// All of its output.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |text: &str| -> String {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let mut shown: String = lines.iter().take(12).map(|line| format!("      {line}\n")).collect();
            if lines.len() > 12 {
                shown += "      …\n";
            }
            shown
        };
        let Finished { line, stdout, stderr, .. } = self;
        // A report in JSON says little in its first lines.
        let stdout = if stdout.trim_start().starts_with('{') { String::new() } else { shown(stdout) };
        write!(f, "{}: {line}\n{stdout}{}", self.end(), shown(stderr))
    }
}
