//! Running the program under test, or its peer, with a limit on the time it may take.
//!
//! A program that hangs must fail its test, not block it: each run is a separate process group, and the whole group is
//! killed when the time is up, when the test panics, and when processes are left over.

use iolite_testing::peers::release_of;
use iolite_testing::{Peer, Release, partly_skipped, this_test};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// No run takes anywhere near this long; one that does is stuck. Generous, because test machines are slow
/// and several tests run at a time.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a run of fio may take before it is started again. On a loaded machine, fio 3.33 sometimes waits for itself
/// without end, for example while it packs its logs. That is not a finding about the program under test.
const PEER_PATIENCE: Duration = Duration::from_secs(120);

/// How often a run of fio is started before it counts as stuck.
const PEER_CHANCES: u32 = 3;

/// How long processes of a run may still be there after its end, on a machine that hardly lets them run.
const GRACE: Duration = Duration::from_secs(60);

/// A program that speaks the language.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is a real fio.
    pub is_peer: bool,
    /// The differences of its output and behaviour from the language that we speak.
    pub release: &'static Release,
}

impl Program {
    /// The program under test: ours, unless `IOLITE_TEST_PROGRAM` names another.
    pub fn under_test() -> Program {
        let Some(path) = std::env::var_os("IOLITE_TEST_PROGRAM") else { return Program::own() };
        match release_of(Path::new(&path)) {
            Some(release) => Program { path: path.into(), is_peer: true, release },
            None => Program::ours_at(path.into()),
        }
    }

    /// Ours.
    pub fn own() -> Program {
        Program::ours_at(env!("CARGO_BIN_EXE_iolite").into())
    }

    /// Ours, as it is called by this path.
    pub fn ours_at(path: PathBuf) -> Program {
        Program { path, is_peer: false, release: Release::ours() }
    }

    /// The program under test as scripts made for fio find it: through a link in `dir` that is called `fio`.
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

    /// All releases of fio to compare with: see [`iolite_testing::peers()`]. [`peers!`](crate::common::peers!) leaves a test
    /// that has nothing to do without one.
    pub fn peers() -> Vec<Program> {
        let of = |peer: Peer| Program { path: peer.path, is_peer: true, release: peer.release };
        iolite_testing::peers().into_iter().map(of).collect()
    }

    /// The program under test and all releases of fio. That there are none of these is recorded.
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

    /// Run to the end in `dir`. A real fio that hangs is killed and started again.
    pub fn run<S: AsRef<str>>(&self, dir: &Path, args: impl IntoIterator<Item = S>) -> Finished {
        let args: Vec<S> = args.into_iter().collect();
        self.patiently(|| self.wait(self.start(dir, args.iter().map(AsRef::as_ref))))
    }

    /// The result of `attempt`, which gives none when a real fio hung ([`wait`](Self::wait)) and is repeated then.
    pub fn patiently<T>(&self, attempt: impl Fn() -> Option<T>) -> T {
        (0..PEER_CHANCES)
            .find_map(|_| attempt())
            .unwrap_or_else(|| panic!("{} hung {PEER_CHANCES} times", self.path.display()))
    }

    /// Wait for the end of a run of this program. A real fio that hangs is killed, and there is no result.
    pub fn wait(&self, mut running: Running) -> Option<Finished> {
        if self.is_peer && !running.ends_within(PEER_PATIENCE) {
            eprintln!("{} hangs, and is started again", running.command);
            return None;
        }
        Some(running.wait())
    }

    /// Run to the end in `dir`, with the words of `line` as arguments.
    pub fn line(&self, dir: &Path, line: &str) -> Finished {
        self.run(dir, line.split_whitespace())
    }

    /// Start in `dir` and leave it running.
    pub fn start<S: AsRef<str>>(&self, dir: &Path, args: impl IntoIterator<Item = S>) -> Running {
        let mut command = Command::new(&self.path);
        for arg in args {
            command.arg(arg.as_ref());
        }
        Running::start(command.current_dir(dir))
    }
}

/// A program that was started.
pub struct Running {
    child: Child,
    command: String,
    started: Instant,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    /// Starts a prepared command as a separate process group, and collects its output. Signals have their default
    /// actions, even if the caller of the tests ignores some (`nohup`, a shell's `&`).
    pub fn start(command: &mut Command) -> Running {
        let shown = format!("{command:?}");
        // SAFETY: signal(2) may be called between fork and exec, and SIG_DFL is not a function.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
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

    /// The process that was started.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Everything it has printed until now.
    pub fn output(&self) -> String {
        self.stdout.text() + &self.stderr.text()
    }

    /// Send a signal to the process that was started, and to no other.
    pub fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// Whether the process that was started has ended.
    pub fn has_ended(&mut self) -> bool {
        self.check_patience("its end");
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Wait until `condition` holds; a program that ends first, or never gets there, fails the test.
    pub fn wait_until(&mut self, what: &str, condition: impl Fn(&Running) -> bool) {
        if !self.comes_to(what, condition) {
            let status = self.child.wait().expect("a child can be waited for");
            panic!("{} ended ({status}) before {what}:\n{}", self.command, self.output());
        }
    }

    /// Wait until `condition` holds or the program has ended: whether it came to hold.
    pub fn comes_to(&mut self, what: &str, condition: impl Fn(&Running) -> bool) -> bool {
        loop {
            // Check in this order, so that the final state and the last output are seen.
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

    /// Wait for the end of its first process, but no longer than this: whether it has ended.
    fn ends_within(&mut self, patience: Duration) -> bool {
        while self.started.elapsed() < patience {
            if self.child.try_wait().expect("a child can be waited for").is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Wait for the end. Nothing of its process group may be left after it.
    pub fn wait(mut self) -> Finished {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            self.check_patience("its end");
            thread::sleep(Duration::from_millis(2));
        };
        // Workers may still be on their way out when the first process is gone, but not for long; the
        // pipes close with the last of them.
        let grace = Instant::now() + GRACE;
        while !(self.stdout.at_end() && self.stderr.at_end() && !group_exists(self.pid())) {
            if Instant::now() > grace {
                panic!("{} ended ({status}) and left processes behind:\n{}", self.command, self.output());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Finished {
            status,
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            command: std::mem::take(&mut self.command),
        }
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
        // The group outlives its leader when workers are left; an empty one is nobody's.
        if group_exists(self.pid()) {
            // SAFETY: a plain system call; the group is the one made for this child.
            unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
        }
        // Reaped, so that its number is free only now. It was killed or has ended: this does not block.
        let _ = self.child.wait();
    }
}

/// Send `signal` to the process `pid`, which has to be there.
pub fn send(pid: i32, signal: i32) {
    assert!(try_send(pid, signal), "no process {pid} to send signal {signal} to");
}

/// The same for a process that may have ended. Whether it was there.
pub fn try_send(pid: i32, signal: i32) -> bool {
    // SAFETY: a plain system call; the process is one that this test started.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Whether a pipe is full, except for a rest smaller than an atomic write.
pub fn is_full(pipe: &File) -> bool {
    // SAFETY: a plain system call on a descriptor that is open.
    let size = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) };
    size > 0 && waiting(pipe) + libc::PIPE_BUF >= size as usize
}

/// How many bytes there are to read in a pipe.
pub fn waiting(pipe: &File) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes as usize
}

/// Waits until none of these processes is left, or only as a zombie.
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
    // SAFETY: signal 0 only asks.
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
    /// How.
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

    /// Insist on success, and pass through.
    #[track_caller]
    pub fn ok(self) -> Finished {
        assert_eq!(self.code(), 0, "{self}");
        self
    }

    /// Insist on failure with status 1, and pass through.
    #[track_caller]
    pub fn refused(self) -> Finished {
        assert_eq!(self.code(), 1, "{self}");
        self
    }

    /// Both outputs, for messages that may appear on either.
    pub fn output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Insist that `text` was printed, on either output.
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
