//! Jobs on machines on which ssh starts the agent, with a real ssh server on this machine and keys of the test.

use crate::common::program::{Running, send, wait_until_gone};
use crate::common::{Finished, Json, Program, scratch};
use iolite_testing::{Sshd, copy_program, or_skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An ssh server, and a client that runs jobs over it.
struct Lab {
    dir: tempfile::TempDir,
    sshd: Sshd,
}

impl Lab {
    fn new() -> Result<Lab, String> {
        let dir = scratch();
        let sshd = Sshd::start(dir.path())?;
        // An agent runs in its user's home directory.
        fs::create_dir(dir.path().join("data")).unwrap();
        Ok(Lab { dir, sshd })
    }

    fn job(&self, text: &str) {
        let directory = self.dir.path().join("data");
        fs::write(
            self.dir.path().join("job.fio"),
            format!("[global]\ndirectory={}\n{text}", directory.display()),
        )
        .unwrap();
    }

    fn client(&self) -> String {
        format!("--client=ssh:127.0.0.1,{}", self.sshd.port)
    }

    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.args(words).env("PATH", format!("{}:{path}", self.sshd.bin.display()));
        command.current_dir(self.dir.path());
        command
    }

    fn start(&self, words: &[&str]) -> Running {
        Running::start(&mut self.command(&Program::own().path, words))
    }

    fn run(&self, words: &[&str]) -> Finished {
        self.start(words).wait()
    }

    /// Waits until all sessions and their processes have ended.
    fn wait_until_idle(&self, family: &[i32]) {
        wait_until_gone(family);
    }

    /// All descendants of sshd.
    fn family(&self) -> Vec<i32> {
        iolite_os::process::descendants_of(self.sshd.pid())
    }

    /// Waits for the workers of a run, and returns all processes that sshd has started.
    fn wait_for_workers(&self, client: &mut Running, file: &str) -> Vec<i32> {
        let file = self.dir.path().join("data").join(file);
        client.wait_until("its jobs", |_| fs::metadata(&file).is_ok_and(|found| found.len() > 0));
        self.family()
    }

    fn has_left_nothing(&self) {
        assert_eq!(fs::read_dir(&self.sshd.temporary).unwrap().count(), 0, "something is left behind");
    }
}

/// The program without debug information, because it is sent through a connection.
pub fn small_program(directory: &Path) -> PathBuf {
    let program = directory.join("small");
    let stripped = Command::new("strip").arg("-o").arg(&program).arg(&Program::own().path).status();
    if !stripped.is_ok_and(|status| status.success()) {
        copy_program(&Program::own().path, &program).unwrap();
    }
    program
}

const JOB: &str = "[a]\nrw=write\nsize=64k\nbs=4k\n";
/// A job that would take minutes.
const ENDLESS: &str =
    "[long]\nfilename=f\nrw=write\nbs=4k\nsize=64k\nthinktime=1ms\ntime_based\nruntime=5m\nnumjobs=2\n";

#[test]
pub fn ssh_starts_the_agent() {
    let lab = or_skip!(Lab::new());
    lab.job(JOB);
    let normal = lab.run(&[&lab.client(), "job.fio"]).ok();
    assert!(normal.stdout.contains("All clients: (groupid=0, jobs=1): err= 0"), "{normal}");
    assert_eq!(normal.stderr, "");
    // Two hosts at once, one with a user name.
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let list = format!(
        "ssh:{}@127.0.0.1,{port}\nssh:127.0.0.1,{port}\n",
        String::from_utf8_lossy(&user).trim(),
        port = lab.sshd.port
    );
    fs::write(lab.dir.path().join("hosts"), list).unwrap();
    lab.job("[a]\nioengine=null\nrw=write\nsize=64k\nbs=4k\n");
    let json = lab.run(&["--output-format=json", "--client=hosts", "job.fio"]).ok();
    assert_eq!(json.stderr, "");
    let json = Json::parse(&json.stdout);
    let stats = json.0["client_stats"].as_array().unwrap();
    assert_eq!(stats.len(), 3);
    assert_eq!(stats[0]["hostname"], "127.0.0.1");
    assert_eq!(stats[0]["port"], lab.sshd.port);
    assert_eq!(stats[2]["write"]["total_ios"], 32);
    assert!(json.0["start"]["spread_ns"].is_u64(), "{}", json.0);
    // Mistakes are reported from the host, and programs run only if that is requested.
    let ran = lab.dir.path().join("ran");
    lab.job(&format!("[a]\nioengine=null\nsize=64k\nexec_prerun=touch {}\n", ran.display()));
    let refused = lab.run(&[&lab.client(), "job.fio"]).refused();
    assert!(refused.stderr.contains("job.fio:6:") && refused.stderr.contains("(--serve-exec)"), "{refused}");
    assert!(!ran.exists());
    lab.run(&["--serve-exec", &lab.client(), "job.fio"]).ok();
    assert!(ran.exists());
}

#[test]
pub fn the_program_is_sent_along() {
    let lab = or_skip!(Lab::new());
    lab.job(JOB);
    let program = small_program(lab.dir.path());
    let run = |words: &[&str]| Running::start(&mut lab.command(&program, words));
    let finished = run(&["--push", &lab.client(), "job.fio"]).wait().ok();
    assert!(finished.stdout.contains("All clients: (groupid=0, jobs=1): err= 0"), "{finished}");
    assert_eq!(finished.stderr, "");
    lab.has_left_nothing();
    // The copy runs, so the original file is not needed any more.
    lab.job(ENDLESS);
    let mut client = run(&["--push", &lab.client(), "job.fio"]);
    let family = lab.wait_for_workers(&mut client, "f");
    let sent: Vec<PathBuf> =
        family.iter().filter_map(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok()).collect();
    let is_there = |path: &&PathBuf| path.starts_with(&lab.sshd.temporary);
    assert!(sent.iter().filter(is_there).count() >= 3, "{sent:?}");
    // A cut connection leaves nothing behind either.
    let session = iolite_os::process::children_of(lab.sshd.pid())[0];
    send(session, libc::SIGKILL);
    let finished = client.wait();
    assert_eq!(finished.code(), 1, "{finished}");
    lab.wait_until_idle(&family);
    lab.has_left_nothing();
    // If it cannot be stored, a message says so.
    fs::remove_dir(&lab.sshd.temporary).unwrap();
    let refused = run(&["--push", &lab.client(), "job.fio"]).wait().refused();
    assert!(refused.stderr.contains("the agent cannot be started there (ssh: mktemp: "), "{refused}");
}

/// If either side is cut off or killed, nothing keeps running at the other end.
#[test]
pub fn a_connection_that_is_cut() {
    let lab = or_skip!(Lab::new());
    lab.job(ENDLESS);
    for who in ["session", "client", "ssh", "asked"] {
        let mut client = lab.start(&[&lab.client(), "job.fio"]);
        let family = lab.wait_for_workers(&mut client, "f");
        match who {
            "session" => send(iolite_os::process::children_of(lab.sshd.pid())[0], libc::SIGKILL),
            "client" => client.signal(libc::SIGKILL),
            "ssh" => send(iolite_os::process::children_of(client.pid())[0], libc::SIGKILL),
            // Like a terminal, signals the whole process group of the client.
            // SAFETY: a plain system call; the group is that of this test's client.
            _ => assert_eq!(unsafe { libc::kill(-client.pid(), libc::SIGINT) }, 0),
        }
        let finished = client.wait();
        lab.wait_until_idle(&family);
        match who {
            "client" => {}
            "asked" => {
                assert_eq!(finished.code(), 128, "{finished}");
                assert!(finished.stdout.contains("\nAll clients: (groupid=0, jobs=2)"), "{finished}");
                assert!(!finished.stderr.contains("lost"), "{finished}");
            }
            _ => {
                assert_eq!(finished.code(), 1, "{finished}");
                assert!(finished.stderr.contains("the host is lost: "), "{finished}");
            }
        }
        fs::remove_file(lab.dir.path().join("data/f")).unwrap();
    }
}

#[test]
pub fn errors_of_ssh_are_reported() {
    let lab = or_skip!(Lab::new());
    lab.job(JOB);
    let refused = |words: &[&str], why: &str| {
        let refused = lab.run(words).refused();
        assert!(refused.stderr.contains(why), "{why}: {refused}");
        assert!(refused.stderr.contains("--client"), "{refused}");
        refused
    };
    // Nothing listens on the port; the host does not exist.
    refused(&["--client=ssh:127.0.0.1,1", "job.fio"], "Connection refused");
    refused(&["--client=ssh:no-such-host.invalid", "job.fio"], "no-such-host.invalid");
    // The host is missing.
    refused(&["--client=ssh:", "job.fio"], "\"\" is not a host (ssh:[USER@]HOST[,PORT])");
    refused(&["--client=ssh:-oProxyCommand=touch", "job.fio"], "is not a host");
    refused(&["--client=ssh:127.0.0.1,0", "job.fio"], "\"0\" is not a port (1 to 65535)");
    refused(&["--client=sock:x", "--push", "job.fio"], "--push: there is no --client=ssh:HOST for it");
    refused(
        &["--client=sock:x", "--serve-exec", "job.fio"],
        "--serve-exec: there is no --client=ssh:HOST for it",
    );
    // Unknown keys, at both ends.
    let known = fs::read_to_string(lab.dir.path().join("known")).unwrap();
    let file = |name: &str| lab.dir.path().join(name);
    fs::write(file("known"), known.replace(':', ";")).unwrap();
    refused(&[&lab.client(), "job.fio"], "Host key verification failed");
    fs::write(file("known"), known).unwrap();
    fs::copy(file("foreign_key.pub"), file("authorized")).unwrap();
    let refusal = refused(&[&lab.client(), "job.fio"], "Permission denied (publickey)");
    assert!(!refusal.stderr.contains("closed"), "ssh's own words are enough: {refusal}");
    fs::copy(file("user_key.pub"), file("authorized")).unwrap();
    // The program exists neither in PATH nor at the path of the client.
    copy_program(&Program::own().path, &file("gone")).unwrap();
    let script = format!("exec 3<gone && rm gone && exec /proc/self/fd/3 {} job.fio", lab.client());
    let missing = Running::start(lab.command(Path::new("sh"), &["-c"]).arg(script)).wait().refused();
    assert!(
        missing.stderr.contains("there is no iolite on that machine") && missing.stderr.contains("--push"),
        "{missing}"
    );
    // There is no ssh.
    let mut command = Command::new(&Program::own().path);
    command.args([&lab.client(), "job.fio"]).env("PATH", file("data")).current_dir(lab.dir.path());
    let missing = Running::start(&mut command).wait().refused();
    assert!(
        missing.stderr.contains("ssh cannot be started") && missing.stderr.contains("openssh-client"),
        "{missing}"
    );
}

#[test]
pub fn a_stdio_server_serves_only_its_parent() {
    let dir = scratch();
    let run = |words: &[&str]| Program::own().run(dir.path(), words);
    let refused = run(&["--server=stdio", "--daemonize=pid"]).refused();
    assert!(refused.stderr.contains("--daemonize: a server that talks to its parent process"), "{refused}");
    assert!(!dir.path().join("pid").exists());
    // There is no client.
    let refused = run(&["--server=stdio"]).refused();
    assert!(refused.stderr.contains("--server=stdio: the other end has closed the connection"), "{refused}");
    let refused = run(&["--server=ssh:one"]).refused();
    assert!(refused.stderr.contains("nothing is to be started here"), "{refused}");
    let idle = run(&["--push", "--name=a", "--ioengine=null", "--size=4k"]).ok();
    assert!(idle.stderr.contains("--push: has no effect without --client=ssh:HOST"), "{idle}");
}
