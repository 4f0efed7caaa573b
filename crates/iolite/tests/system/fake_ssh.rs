//! Failures before an agent behind ssh is running: the test's own `ssh` runs the command here, or simulates a bad
//! connection.

use crate::common::program::{Running, wait_until_gone};
use crate::common::{Program, scratch};
use crate::over_ssh::small_program;
use iolite_testing::write_program;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const JOB: &str = "[a]\nioengine=null\nrw=write\nsize=64k\nbs=4k\n";

/// A directory with an `ssh` whose last argument is the command to run.
struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    /// `there` is the script of this `ssh`: `$run` is the command, `$*` has all arguments.
    fn new(there: &str) -> Lab {
        let lab = Lab { dir: scratch() };
        fs::create_dir_all(lab.path("bin/there")).unwrap();
        fs::create_dir(lab.path("tmp")).unwrap();
        lab.program("bin/ssh", &format!("for run; do :; done\n{there}\n"));
        // An iolite in PATH must not be used, because it could be an older one.
        lab.program("bin/iolite", "exit 9\n");
        fs::write(lab.path("job.fio"), JOB).unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        write_program(&self.path(name), &format!("#!/bin/sh\n{script}")).unwrap();
    }

    fn start(&self, program: &Path, words: &[&str]) -> Running {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.args(words).current_dir(self.dir.path()).env("TMPDIR", self.path("tmp"));
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        Running::start(&mut command)
    }
}

/// One login takes longer than the agent on the other machine waits for a silent client.
#[test]
pub fn hosts_that_are_ready_wait_for_the_others() {
    let lab = Lab::new("case \"$*\" in *slow*) sleep 4;; esac\nexec sh -c \"$run\"");
    let words = ["--client-timeout=3s", "--client=ssh:one", "--client=ssh:slow", "job.fio"];
    let finished = lab.start(&Program::own().path, &words).wait().ok();
    assert_eq!(finished.stderr, "");
    assert!(finished.stdout.contains("All clients: (groupid=0, jobs=2): err= 0"), "{finished}");
}

/// If there are too many connections at once, an ssh server drops some before authentication. The client retries.
#[test]
pub fn crowded_servers_are_tried_again() {
    let lab = Lab::new(
        "mkdir \"$PWD/came.$$\"\nif mkdir \"$PWD/one\" 2>/dev/null; then\n\
         echo kex_exchange_identification: Connection closed by remote host >&2; exit 255\nfi\nexec sh -c \"$run\"",
    );
    let words = ["--client=ssh:one", "--client=ssh:two", "job.fio"];
    let finished = lab.start(&Program::own().path, &words).wait().ok();
    assert!(finished.stdout.contains("All clients: (groupid=0, jobs=2): err= 0"), "{finished}");
    let came = fs::read_dir(lab.dir.path()).unwrap().flatten();
    assert_eq!(came.filter(|entry| entry.file_name().to_string_lossy().starts_with("came.")).count(), 3);
    // A server that drops all connections is named, with a remedy.
    let lab = Lab::new("echo kex_exchange_identification: Connection closed by remote host >&2; exit 255");
    let refused = lab
        .start(&Program::own().path, &["--client-timeout=1s", "--client=ssh:one", "job.fio"])
        .wait()
        .refused();
    assert!(refused.stderr.contains("lets in few at a time (MaxStartups of sshd)"), "{refused}");
}

/// The program is copied to a directory where programs may run; if there is none, the message names a remedy.
#[test]
pub fn temporary_directories_that_take_no_program() {
    let lab = Lab::new("TMPDIR=/dev/null/none exec sh -c \"$run\"");
    let program = small_program(lab.dir.path());
    let refused = lab.start(&program, &["--push", "--client=ssh:one", "job.fio"]).wait().refused();
    assert!(refused.stderr.contains("set TMPDIR for logins"), "{refused}");
}

/// A run can be interrupted while a machine does not answer. Neither ssh nor its children are left.
#[test]
pub fn an_end_while_machines_are_reached() {
    let lab = Lab::new("sleep 1000 &\necho $$ $! >pids.new\nmv pids.new pids\nwait");
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut client =
            lab.start(&Program::own().path, &["--client-timeout=5m", "--client=ssh:one", "job.fio"]);
        client.wait_until("ssh", |_| lab.path("pids").exists());
        let pids = fs::read_to_string(lab.path("pids")).unwrap();
        let pids: Vec<i32> = pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        // A shell blocks all signals for short times, and SIGCHLD while it waits.
        client.wait_until("an ssh in which no signals are blocked", |_| {
            let status = fs::read_to_string(format!("/proc/{}/status", pids[0])).unwrap();
            let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
            u64::from_str_radix(blocked.trim(), 16).unwrap() & !(1 << (libc::SIGCHLD - 1)) == 0
        });
        client.signal(signal);
        let finished = client.wait();
        assert_eq!(finished.code(), 128, "{finished}");
        assert!(
            finished.stderr.contains("interrupted before all hosts were reached; nothing was begun"),
            "{finished}"
        );
        // They have been killed, and end as soon as they are scheduled.
        wait_until_gone(&pids);
        fs::remove_file(lab.path("pids")).unwrap();
    }
    // Without an interrupt, the attempt ends as well.
    let finished =
        lab.start(&Program::own().path, &["--client-timeout=1s", "--client=ssh:one", "job.fio"]).wait();
    assert!(finished.refused().stderr.contains("--client=ssh:one: the other end has taken too long"));
}

#[test]
pub fn refusals_of_machines_are_reported() {
    let lab = Lab::new("echo This account is currently not available.\nexit 1");
    let refused = lab.start(&Program::own().path, &["--client=ssh:one", "job.fio"]).wait().refused();
    let why = "the agent cannot be started there: This account is currently not available.";
    assert!(refused.stderr.contains(why), "{refused}");
    let lab = Lab::new("export PATH=\"$PWD/bin/there:$PATH\"\nexec sh -c \"$run\"");
    lab.program("bin/there/uname", "echo Linux riscv64\n");
    let refused =
        lab.start(&Program::own().path, &["--push", "--client=ssh:one", "job.fio"]).wait().refused();
    assert!(refused.stderr.contains("--push: that machine is \"Linux riscv64\", and this"), "{refused}");
    assert!(!refused.stderr.contains("(ssh: "), "shells say nothing: {refused}");
    assert_eq!(fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
    let none = ["--push=packages", "--client=ssh:one", "job.fio"];
    let none = lab.start(&Program::own().path, &none).wait().refused();
    assert!(none.stderr.contains("--push=packages: No such file or directory"), "{none}");
}

/// Of a directory of packages, each machine gets the static program of its processor.
#[test]
pub fn machines_with_other_processors_get_their_own_program() {
    let lab = Lab::new("export PATH=\"$PWD/bin/there:$PATH\"\nexec sh -c \"$run\"");
    fs::create_dir(lab.path("packages")).unwrap();
    let file =
        |arch: &str| lab.path(&format!("packages/iolite-push-{}-linux-{arch}", env!("CARGO_PKG_VERSION")));
    let words = ["--push=packages", "--client=ssh:one", "job.fio"];
    let start = || lab.start(&Program::own().path, &words).wait();
    let (arch, other, kind) = match std::env::consts::ARCH {
        "x86_64" => ("amd64", "arm64", "aarch64"),
        _ => ("arm64", "amd64", "x86_64"),
    };
    // The head of a program: it is sent, and cannot be started.
    let program = fs::read(small_program(lab.dir.path())).unwrap();
    fs::write(file(arch), &program[..64]).unwrap();
    let broken = start().refused();
    assert!(broken.stderr.contains("the agent cannot be started there"), "{broken}");
    fs::write(file(arch), &program).unwrap();
    assert!(start().ok().stdout.contains("All clients: (groupid=0, jobs=1): err= 0"));
    lab.program("bin/there/uname", &format!("echo Linux {kind}\n"));
    let missing = start().refused();
    let name = format!("there is no packages/iolite-push-{}-linux-{other}", env!("CARGO_PKG_VERSION"));
    assert!(missing.stderr.contains(&name), "{missing}");
    // One that is for another processor than its name says is not sent.
    fs::write(file(other), &program).unwrap();
    let wrong = start().refused();
    assert!(wrong.stderr.contains(&format!("that machine is \"Linux {kind}\", and packages/")), "{wrong}");
    assert_eq!(fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
}

#[test]
pub fn a_program_that_is_sent_changes_nothing() {
    let lab = Lab::new("exec sh -c \"$run\"");
    let program = small_program(lab.dir.path());
    let mode = |words: &[&str]| {
        fs::write(lab.path("job.fio"), "[a]\nfilename=f\nrw=write\nsize=64k\nbs=4k\n").unwrap();
        lab.start(&program, words).wait().ok();
        let mode = fs::metadata(lab.path("f")).unwrap().permissions().mode();
        fs::remove_file(lab.path("f")).unwrap();
        mode
    };
    let plain = mode(&["--client=ssh:one", "job.fio"]);
    assert_eq!(mode(&["--push", "--client=ssh:one", "job.fio"]), plain);
    assert_eq!(fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
    // The connection is cut while the program is stored.
    lab.program(
        "bin/ssh",
        "for run; do :; done\nsh -c \"$run\" | { read a; echo; read b; echo \"$b\"; exec <&-; }\n",
    );
    lab.start(&program, &["--push", "--client=ssh:one", "job.fio"]).wait().refused();
    assert_eq!(fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
}
