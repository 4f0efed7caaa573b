//! `exec`: runs another program at the same time as the jobs, and ends it with its job.

use iolite_engine::{
    BufferLayout, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Unit,
};
use iolite_options::engines::ExecOptions;
use iolite_os::process::{self, Process};
use iolite_os::{errno_of, explained, signals};
use iolite_types::describe_error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a unit waits for the program.
const LOOK: Duration = Duration::from_millis(100);

/// How long a wait continues before the loop checks whether the job must end.
const SLICE: Duration = Duration::from_millis(10);

/// A program that is started with the first unit and waited for by all of them.
#[derive(Debug)]
pub struct ExecEngine {
    options: ExecOptions,
    job: String,
    /// The arguments, with variables replaced.
    arguments: String,
    /// The files for its standard output and standard error; `None` = those of this program.
    outputs: Option<[PathBuf; 2]>,
    /// The job runs until its time is over, even if the program has ended.
    has_time: bool,
    state: State,
    /// Why the program could not be started.
    trouble: Option<String>,
    /// When the present wait ends.
    look_until: Option<Instant>,
}

#[derive(Debug)]
enum State {
    /// The first unit will start it.
    NotStarted,
    Running(Child),
    Ended,
}

impl ExecEngine {
    /// An engine whose program has not been started.
    ///
    /// # Errors
    /// Never: errors of the program are found when it is started.
    pub fn new(config: &EngineConfig, options: &ExecOptions) -> Result<Self, EngineError> {
        let job = &config.job;
        let seconds = config.runtime_us / 1_000_000;
        Ok(ExecEngine {
            arguments: options.arguments.replace("%r", &seconds.to_string()).replace("%n", job),
            outputs: options.outputs(&config.auxiliary, job),
            has_time: config.runtime_us > 0,
            job: job.clone(),
            options: options.clone(),
            state: State::NotStarted,
            trouble: None,
            look_until: None,
        })
    }

    /// Starts the program. It dies with this thread.
    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.options.program);
        command.args(self.arguments.split_whitespace());
        if let Some([stdout, stderr]) = &self.outputs {
            command.stdout(output(stdout)?).stderr(output(stderr)?);
        }
        process::tie_to_this_thread(&mut command);
        command.spawn().map_err(|error| with_interpreter(&self.options.program, error))
    }

    /// Waits a while for the program. Returns whether it still runs.
    fn look(&mut self) -> io::Result<bool> {
        if let State::NotStarted = self.state {
            let started = self.start().map_err(|source| {
                let errno = errno_of(&source);
                let program = self.options.program.clone();
                self.trouble = Some(EngineError::Program { program, source }.to_string());
                io::Error::from_raw_os_error(errno)
            });
            self.state = State::Running(started?);
        }
        std::thread::sleep(SLICE);
        if let State::Running(child) = &mut self.state
            && child.try_wait()?.is_some()
        {
            self.state = State::Ended;
        }
        Ok(matches!(self.state, State::Running(_)))
    }
}

/// Whether the program has ended.
fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// Ends a program and its descendants: SIGTERM first, then SIGKILL for those that are left after this time.
fn end(child: &mut Child, grace: Duration) {
    let Ok(id) = libc::pid_t::try_from(child.id()) else { return };
    if has_ended(child) {
        return;
    }
    // Look up the descendants first: they can no longer be found when the program is gone.
    let family = || process::descendants_of(id).into_iter().filter_map(Process::of);
    let mut started: Vec<Process> = family().collect();
    started.iter().for_each(|process| process.signal(libc::SIGTERM));
    signals::kill(id, libc::SIGTERM);
    let until = Instant::now() + grace;
    while Instant::now() < until && !(has_ended(child) && started.iter().all(Process::has_ended)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    if !has_ended(child) {
        started.extend(family());
    }
    started.iter().for_each(|process| process.signal(libc::SIGKILL));
    // If that fails, it has ended.
    let _ = child.kill();
    let _ = child.wait();
}

/// A file for output of the program.
fn output(path: &Path) -> io::Result<File> {
    File::create(path).map_err(|error| {
        explained(
            &error,
            format!("its output cannot be kept in {}: {}", path.display(), describe_error(&error)),
        )
    })
}

/// The error of a start, with the name of the interpreter if that is missing.
fn with_interpreter(program: &str, error: io::Error) -> io::Error {
    match find(program) {
        Ok(path) if error.kind() == io::ErrorKind::NotFound => {
            let name = interpreter(&path).map(|name| format!(" {}", name.escape_debug())).unwrap_or_default();
            explained(&error, format!("its interpreter{name} is missing"))
        }
        _ => error,
    }
}

/// The interpreter that the first line of a script names.
fn interpreter(script: &Path) -> Option<String> {
    // The kernel does not read more, either.
    let mut line = Vec::new();
    BufReader::new(File::open(script).ok()?.take(256)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8_lossy(line.strip_prefix(b"#!")?).into_owned();
    // (A carriage return is not a blank: it belongs to the name, although it is invisible.)
    let mut words = line.trim_end_matches('\n').split([' ', '\t']).filter(|word| !word.is_empty());
    words.next().map(str::to_owned)
}

/// Finds the program in the directories of `PATH`, if its name has no slash; an error if it cannot be run.
fn find(program: &str) -> io::Result<PathBuf> {
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![program.into()]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|directory| directory.join(program)).collect()
    };
    let mut worst = io::Error::from_raw_os_error(libc::ENOENT);
    for candidate in candidates {
        match may_run(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => worst = error,
            Err(_) => {}
        }
    }
    Err(worst)
}

/// Checks that this is an executable file.
fn may_run(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the name ends with a zero.
    match unsafe { libc::access(name.as_ptr(), libc::X_OK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Engine for ExecEngine {
    const SYNCHRONOUS: bool = true;

    fn open(&mut self, _: u32, _: &FileSpec, _: OpenMode) -> std::io::Result<()> {
        Ok(())
    }

    fn prepare(&mut self, _layout: &BufferLayout) -> Result<(), EngineError> {
        let program = &self.options.program;
        let found = find(program).map(drop);
        found.map_err(|source| EngineError::Program { program: program.clone(), source })
    }

    fn announcements(&self) -> Vec<String> {
        let ExecOptions { program, arguments, without_arguments, .. } = &self.options;
        let [arguments, filled_in] = [arguments, &self.arguments]
            .map(|arguments| if arguments.is_empty() { without_arguments } else { arguments });
        let job = &self.job;
        let what = match &self.outputs {
            None => format!("Running {program} {filled_in}"),
            Some([stdout, stderr]) => format!(
                "Saving output of {program} {filled_in} : stdout={} stderr={}",
                stdout.display(),
                stderr.display()
            ),
        };
        vec![format!("{job} : program={program}, arguments={arguments}"), format!("{job} : {what}")]
    }

    unsafe fn queue(&mut self, _unit: &Unit) -> Queued {
        let now = Instant::now();
        let until = *self.look_until.get_or_insert(now + LOOK);
        match self.look() {
            Ok(runs) if !runs && !self.has_time => return Queued::Completed(Ok(0)),
            Ok(_) if Instant::now() < until => return Queued::Busy,
            Ok(_) => {}
            Err(error) => return Queued::Completed(Err(Errno::from(error))),
        }
        self.look_until = None;
        Queued::Completed(Ok(1))
    }

    fn explain(&self, _unit: u32) -> Option<String> {
        self.trouble.clone()
    }
}

impl Drop for ExecEngine {
    fn drop(&mut self) {
        if let State::Running(child) = &mut self.state {
            end(child, Duration::from_secs(self.options.grace_time.into()));
        }
    }
}
