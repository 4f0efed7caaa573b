//! Runs the program under test, or its peer, with a time limit.
//!
//! A program that hangs must fail its test, not block it. So each run is a separate process group, and the whole group
//! is killed at the time limit, when the test panics, and when processes are left over.

use iolite_testing::peers::release_of;
use iolite_testing::{Peer, Release, partly_skipped, this_test};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, Once};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time limit of a run. It is generous, because test machines are slow and several tests run at a time.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a run of fio may take before it is started again. On a busy machine, fio 3.33 sometimes deadlocks, for
/// example while it compresses logs. That is not a failure of the program under test.
const PEER_PATIENCE: Duration = Duration::from_secs(120);

/// How often a run of fio is started before the test fails.
const PEER_CHANCES: u32 = 3;

/// How long processes of a run may exist after its end. A busy machine may hardly schedule them.
pub const GRACE: Duration = Duration::from_secs(60);

/// A program with fio's command line.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is a real fio.
    pub is_peer: bool,
    /// The differences of its output and behaviour from the release that we follow.
    pub release: &'static Release,
}

impl Program {
    /// The program under test: Iolite, unless `IOLITE_TEST_PROGRAM` names another one.
    pub fn under_test() -> Program {
        let Some(path) = std::env::var_os("IOLITE_TEST_PROGRAM") else { return Program::own() };
        match release_of(Path::new(&path)) {
            Some(release) => Program { path: path.into(), is_peer: true, release },
            None => Program::ours_at(path.into()),
        }
    }

    /// Iolite.
    pub fn own() -> Program {
        Program::ours_at(env!("CARGO_BIN_EXE_iolite").into())
    }

    /// Iolite, called by this path.
    pub fn ours_at(path: PathBuf) -> Program {
        Program { path, is_peer: false, release: Release::ours() }
    }

    /// The program under test, called through a link `fio` in `dir`, as by scripts for fio.
    pub fn called_fio(dir: &Path) -> Program {
        let program = Program::under_test();
        if program.is_peer {
            return program;
        }
        let path = dir.join("fio");
        if !path.exists() {
            std::os::unix::fs::symlink(&program.path, &path).expect("a link can be made");
        }
        Program::ours_at(path)
    }

    /// All releases of fio to compare with: see [`iolite_testing::peers()`]. [`peers!`](crate::common::peers!) skips a
    /// test that needs one.
    pub fn peers() -> Vec<Program> {
        let of = |peer: &Peer| Program { path: peer.path.clone(), is_peer: true, release: peer.release };
        iolite_testing::peers().iter().map(of).collect()
    }

    /// The program under test and all releases of fio. If there are none, this is recorded as a skip.
    pub fn all() -> Vec<Program> {
        let peers = Program::peers();
        if peers.is_empty() {
            partly_skipped(&this_test!(), "fio is not installed");
        }
        std::iter::once(Program::under_test()).chain(peers).collect()
    }

    /// Its output for `--version`.
    pub fn version(&self) -> String {
        let output = Command::new(&self.path).arg("--version").stdin(Stdio::null()).output();
        String::from_utf8_lossy(&output.expect("it can be run").stdout).trim().to_owned()
    }

    /// Runs to the end in `dir`. A real fio that hangs is killed and started again.
    pub fn run<S: AsRef<str>>(&self, dir: &Path, args: impl IntoIterator<Item = S>) -> Finished {
        let args: Vec<S> = args.into_iter().collect();
        self.patiently(|| self.wait(self.start(dir, args.iter().map(AsRef::as_ref))))
    }

    /// The result of `attempt`. `None` means that a real fio hung ([`wait`](Self::wait)), and the attempt is repeated.
    pub fn patiently<T>(&self, attempt: impl Fn() -> Option<T>) -> T {
        (0..PEER_CHANCES)
            .find_map(|_| attempt())
            .unwrap_or_else(|| panic!("{} hung {PEER_CHANCES} times", self.path.display()))
    }

    /// Waits for the end of a run of this program; `None` = a real fio hung and was killed.
    pub fn wait(&self, mut running: Running) -> Option<Finished> {
        if self.is_peer && running.hangs() {
            eprintln!("{} hangs, and is started again", running.command);
            return None;
        }
        Some(running.wait())
    }

    /// Runs to the end in `dir`, with the words of `line` as arguments.
    pub fn line(&self, dir: &Path, line: &str) -> Finished {
        self.run(dir, line.split_whitespace())
    }

    /// Starts a run in `dir` and leaves it running.
    pub fn start<S: AsRef<str>>(&self, dir: &Path, args: impl IntoIterator<Item = S>) -> Running {
        let mut command = Command::new(&self.path);
        for arg in args {
            command.arg(arg.as_ref());
        }
        Running::start(command.current_dir(dir))
    }
}

/// A running program.
pub struct Running {
    child: Child,
    command: String,
    started: Instant,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    /// Starts our program with these words, and these variables in its environment.
    pub fn of_ours(dir: &Path, environment: &[(&str, &str)], line: &str) -> Running {
        let mut command = Command::new(Program::own().path);
        command.args(line.split_whitespace()).current_dir(dir).envs(environment.iter().copied());
        Running::start(&mut command)
    }

    /// Starts a prepared command as a separate process group, and collects its output. Signals have their default
    /// actions, even if the caller of the tests ignores some (`nohup`, a shell's `&`).
    pub fn start(command: &mut Command) -> Running {
        let shown = format!("{command:?}");
        handle_ignored_signals();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        let stdout = Stream::collect(child.stdout.take().expect("stdout is piped"));
        let stderr = Stream::collect(child.stderr.take().expect("stderr is piped"));
        Running { child, command: shown, started: Instant::now(), stdout, stderr }
    }

    /// The ID of its first process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Its output so far.
    pub fn output(&self) -> String {
        self.stdout.text() + &self.stderr.text()
    }

    /// Sends a signal to the first process only.
    pub fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// Whether the first process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.check_patience("its end");
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Waits until `condition` holds. The test fails if the program ends before, or the time limit is reached.
    pub fn wait_until(&mut self, what: &str, condition: impl Fn(&Running) -> bool) {
        if !self.comes_to(what, condition) {
            let status = self.child.wait().expect("a child can be waited for");
            panic!("{} ended ({status}) before {what}:\n{}", self.command, self.output());
        }
    }

    /// Waits until `condition` holds or the program has ended. Returns whether the condition holds.
    pub fn comes_to(&mut self, what: &str, condition: impl Fn(&Running) -> bool) -> bool {
        loop {
            // In this order, so that the final state and the last output are seen.
            let ended = self.child.try_wait().expect("a child can be waited for").is_some();
            let all_is_read = self.stdout.at_end() && self.stderr.at_end();
            if condition(self) {
                return true;
            }
            if ended && all_is_read {
                return false;
            }
            self.check_patience(what);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether this run of fio hangs, or gave up because its jobs were slow to start. On a busy machine, fio 3.33 then
    /// says this after ten seconds, and leaves processes behind.
    fn hangs(&mut self) -> bool {
        let ends = self.ends_within(PEER_PATIENCE) && self.leaves_nothing_within(GRACE);
        !ends || self.output().contains("fio: job startup hung?")
    }

    /// Waits for the end of the first process, but no longer than this. Returns whether it has ended.
    fn ends_within(&mut self, patience: Duration) -> bool {
        while self.started.elapsed() < patience {
            if self.child.try_wait().expect("a child can be waited for").is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Waits for the end. No process of its group may be left.
    pub fn wait(mut self) -> Finished {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            self.check_patience("its end");
            thread::sleep(Duration::from_millis(2));
        };
        if !self.leaves_nothing_within(GRACE) {
            panic!("{} ended ({status}) and left processes behind:\n{}", self.command, self.output());
        }
        Finished {
            status,
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            command: std::mem::take(&mut self.command),
        }
    }

    /// Waits for the end of all processes of a run whose first process has ended, but no longer than this. Workers may
    /// take a moment longer than the first process. The pipes close with the last of them.
    fn leaves_nothing_within(&self, grace: Duration) -> bool {
        let until = Instant::now() + grace;
        while !(self.stdout.at_end() && self.stderr.at_end() && !group_exists(self.pid())) {
            if Instant::now() > until {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn check_patience(&self, what: &str) {
        if self.started.elapsed() > PATIENCE {
            let processes = Command::new("ps").args(["-eo", "pid,ppid,pgid,stat,wchan:20,args"]).output();
            let processes =
                processes.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
            let group = self.pid().to_string();
            let ours: Vec<&str> =
                processes.lines().filter(|line| line.split_whitespace().nth(2) == Some(&group)).collect();
            panic!(
                "{} hangs: no sign of {what} after {PATIENCE:?}\n{}\n{}",
                self.command,
                ours.join("\n"),
                self.output()
            );
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group outlives its leader if workers are left.
        if group_exists(self.pid()) {
            // SAFETY: a plain system call; the group is the one made for this child.
            unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
        }
        // The process is reaped last, so that its ID cannot be reused before. It has ended, so this does not block.
        let _ = self.child.wait();
    }
}

/// Gives started programs the default actions of signals that this process ignores: exec(3) resets signals that are handled.
/// A closure between fork and exec could do that as well, but then the standard library forks, which copies the page tables
/// of this large process: a fifth of the processor time of all tests.
fn handle_ignored_signals() {
    extern "C" fn nothing(_: libc::c_int) {}
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: plain system calls on values that live here; the handler does nothing.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut action);
                if action.sa_sigaction == libc::SIG_IGN {
                    action.sa_sigaction = nothing as *const () as usize;
                    action.sa_flags = libc::SA_RESTART;
                    libc::sigaction(signal, &action, std::ptr::null_mut());
                }
            }
        }
    });
}

/// Sends `signal` to the process `pid`, which has to exist.
pub fn send(pid: i32, signal: i32) {
    assert!(try_send(pid, signal), "no process {pid} to send signal {signal} to");
}

/// The same for a process that may have ended. Returns whether it existed.
pub fn try_send(pid: i32, signal: i32) -> bool {
    // SAFETY: a plain system call; the process is one that this test started.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Whether a pipe has no room for another atomic write.
pub fn is_full(pipe: &File) -> bool {
    // SAFETY: a plain system call on an open descriptor.
    let size = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) };
    size > 0 && waiting(pipe) + libc::PIPE_BUF >= size as usize
}

/// The number of bytes in a pipe.
pub fn waiting(pipe: &File) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes as usize
}

/// Waits until all these processes have ended or are zombies.
pub fn wait_until_gone(pids: &[i32]) {
    let begun = Instant::now();
    let is_there = |pid: &&i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while let Some(pid) = pids.iter().find(is_there) {
        assert!(begun.elapsed() < GRACE * 2, "process {pid} is left");
        thread::sleep(Duration::from_millis(5));
    }
}

fn group_exists(group: i32) -> bool {
    // SAFETY: signal 0 only checks for existence.
    unsafe { libc::kill(-group, 0) == 0 }
}

/// Output that is collected while the program runs.
struct Stream {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn collect(mut source: impl Read + Send + 'static) -> Stream {
        let text = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut chunk) {
                sink.lock().expect("no reader panics").extend_from_slice(&chunk[..count]);
            }
        });
        Stream { text, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("no reader panics")).into_owned()
    }

    fn at_end(&self) -> bool {
        self.reader.is_finished()
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// The command line, for messages.
    pub command: String,
}

impl Finished {
    /// The exit status; a program killed by a signal fails the test.
    pub fn code(&self) -> i32 {
        match self.status.code() {
            Some(code) => code,
            None => panic!("killed by signal {:?}: {self}", self.status.signal()),
        }
    }

    /// Asserts success.
    #[track_caller]
    pub fn ok(self) -> Finished {
        assert_eq!(self.code(), 0, "{self}");
        self
    }

    /// Asserts failure with status 1.
    #[track_caller]
    pub fn refused(self) -> Finished {
        assert_eq!(self.code(), 1, "{self}");
        self
    }

    /// Standard output and standard error, for messages that may appear on either.
    pub fn output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Asserts that `text` was printed, on either output.
    #[track_caller]
    pub fn says(self, text: &str) -> Finished {
        assert!(self.output().contains(text), "expected {text:?} in {self}");
        self
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Finished { status, stdout, stderr, command } = self;
        write!(f, "{command}\n{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}
