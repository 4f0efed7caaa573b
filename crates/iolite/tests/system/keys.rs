//! Keys of machines: `iolite keys`, and the connections that each key allows.

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, scratch};
use crate::remote::{Agent, ENDLESS, TWO, job, run};
use iolite_remote::keys::{Keys, Role, home};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A set of keys in a separate directory.
struct Set {
    home: PathBuf,
}

impl Set {
    fn new(dir: &Path, name: &str) -> Set {
        let home = dir.join(name);
        run(dir, &["keys", "new", &home.display().to_string()]).ok();
        Set { home }
    }

    fn file(&self, role: Role) -> PathBuf {
        self.home.join(role.file_name())
    }

    /// The option that names the file of this role.
    fn option(&self, role: Role) -> String {
        format!("--keys={}", self.file(role).display())
    }

    fn agent(&self, dir: &Path, name: &str) -> Agent {
        let home = dir.join(name);
        fs::create_dir(&home).unwrap();
        Agent::start(&home, &["--server=ip:127.0.0.1,0", &self.option(Role::Agent)])
    }
}

/// Runs the job on this agent, with these additional arguments.
fn ask(dir: &Path, agent: &Agent, words: &[&str]) -> Finished {
    run(dir, &[words, &[&agent.client(), "job.fio"]].concat())
}

#[test]
pub fn machines_with_keys_of_one_set_work_together() {
    let dir = scratch();
    let set = Set::new(dir.path(), "keys");
    job(dir.path(), TWO);
    let agents = ["a", "b"].map(|name| set.agent(dir.path(), name));
    let said = agents[0].running.stdout();
    assert!(
        said.contains(&format!("protected by {} (valid until ", set.file(Role::Agent).display())),
        "{said}"
    );
    let coordinator = set.option(Role::Coordinator);
    let [first, second] = agents.each_ref().map(Agent::client);
    let words = ["--output-format=json", &coordinator, &first, "job.fio", &second, "job.fio"];
    let json = Json::parse(&run(dir.path(), &words).ok().stdout);
    let all = json.0["client_stats"].as_array().unwrap().last().unwrap();
    assert_eq!((&all["read"]["total_ios"], &all["write"]["total_ios"]), (&32.into(), &32.into()));
    assert_eq!(fs::metadata(dir.path().join("a/f")).unwrap().len(), 65_536);
    // Keys from the usual place, and from the environment.
    let config = dir.path().join("config");
    fs::create_dir(&config).unwrap();
    std::os::unix::fs::symlink(&set.home, config.join("iolite")).unwrap();
    let with = |variable: &str, value: &Path| {
        let mut command = Command::new(&Program::called_fio(dir.path()).path);
        command
            .args([&first, "job.fio"])
            .env("XDG_CONFIG_HOME", dir.path().join("nowhere"))
            .env_remove("IOLITE_KEYS")
            .env_remove("IOLITE_INSECURE")
            .env(variable, value);
        Running::start(command.current_dir(dir.path())).wait()
    };
    with("XDG_CONFIG_HOME", &config).ok();
    with("IOLITE_KEYS", &set.file(Role::Coordinator)).ok();
    with("NOTHING", &config).refused().says("iolite keys new");
    // Interrupts work over encrypted connections as well.
    job(dir.path(), ENDLESS);
    let mut client = Program::own().start(dir.path(), [&coordinator, &first, &second, "job.fio"]);
    client.wait_until("its jobs", |_| agents.iter().all(|agent| agent.family().len() >= 4));
    client.signal(libc::SIGUSR1);
    client.wait_until("a report", |client| client.stdout().contains("All clients: (groupid=0, jobs=4)"));
    client.signal(libc::SIGINT);
    let finished = client.wait();
    assert_eq!(finished.code(), 128, "{finished}");
    let [mut first, mut second] = agents;
    for who in ["client", "agent"] {
        let words =
            ["--output-format=json", &coordinator, &first.client(), "job.fio", &second.client(), "job.fio"];
        let mut client = Program::own().start(dir.path(), words);
        client.wait_until("its jobs", |_| first.family().len() >= 4 && second.family().len() >= 4);
        if who == "client" {
            client.signal(libc::SIGKILL);
            client.wait();
            first.wait_until_idle();
        } else {
            first.running.signal(libc::SIGKILL);
            client.wait_until("the loss", |client| client.output().contains("the host is lost"));
            client.signal(libc::SIGINT);
            let finished = client.wait();
            let json = Json::parse(&finished.stdout);
            assert!(json.0["hosts"][0]["lost"].is_string(), "{finished}");
            assert!(json.0["hosts"][1].get("lost").is_none(), "{finished}");
        }
        second.wait_until_idle();
    }
    first.running.wait();
    second.end();
}

#[test]
pub fn keys_that_are_not_good_are_refused_where_they_are_read() {
    let dir = scratch();
    let set = Set::new(dir.path(), "keys");
    job(dir.path(), TWO);
    let past = SystemTime::now() - Duration::from_secs(86_400 * 40);
    let old = dir.path().join("old");
    home::make(&old, 30, past).unwrap();
    let open = dir.path().join("open.keys");
    let copy = |role: Role| {
        fs::write(&open, fs::read(set.file(role)).unwrap()).unwrap();
        fs::set_permissions(&open, PermissionsExt::from_mode(0o644)).unwrap();
        open.display().to_string()
    };
    for (role, other, line) in [
        (Role::Agent, Role::Coordinator, "--server=ip:127.0.0.1,0"),
        (Role::Coordinator, Role::Agent, "--client=127.0.0.1,1 job.fio"),
    ] {
        let refused = |file: &str, why: &str| {
            let keys = format!("--keys={file}");
            let words: Vec<&str> = std::iter::once(&*keys).chain(line.split(' ')).collect();
            let refused = run(dir.path(), &words).refused();
            assert!(refused.stderr.contains(why) && refused.stderr.contains(file), "{why}: {refused}");
        };
        refused(&copy(role), "mode 0644");
        refused(&set.file(other).display().to_string(), "here the keys");
        refused(&old.join(role.file_name()).display().to_string(), "the keys have expired");
        refused("job.fio", "job.fio: others may be able to read");
        refused("nowhere/x", "nowhere/x: No such file");
        let both = format!("{line} --insecure");
        let words: Vec<&str> = both.split(' ').collect();
        run(dir.path(), &[&[set.option(role).as_str()], &words[..]].concat())
            .refused()
            .says("exclude each other");
    }
    let idle = run(dir.path(), &["--keys=x", "--name=j", "--ioengine=null", "--size=4k"]).ok();
    assert!(idle.stderr.contains("--keys: has no effect without"), "{idle}");
}

#[test]
pub fn strangers_are_refused_at_both_ends() {
    let dir = scratch();
    let [set, foreign] = ["keys", "foreign"].map(|name| Set::new(dir.path(), name));
    let mut agent = set.agent(dir.path(), "a");
    job(dir.path(), TWO);
    let hears = |agent: &mut Agent, why: &str| {
        agent.running.wait_until(why, |running| running.output().contains(why));
    };
    ask(dir.path(), &agent, &[&foreign.option(Role::Coordinator)])
        .refused()
        .says("the key of the server is refused: it is from another set of keys");
    hears(&mut agent, "the client refuses this end's key: it is from another set of keys");
    ask(dir.path(), &agent, &["--insecure"]).refused().says("the server talks to nobody without keys");
    hears(&mut agent, "the client talks without protection, and this server has keys");
    // An agent's key that claims to be a coordinator's.
    let text = fs::read_to_string(set.file(Role::Agent)).unwrap();
    let pretender = dir.path().join("pretender");
    fs::write(&pretender, text.replace("keys 1 agent", "keys 1 coordinator")).unwrap();
    fs::set_permissions(&pretender, PermissionsExt::from_mode(0o600)).unwrap();
    ask(dir.path(), &agent, &[&format!("--keys={}", pretender.display())])
        .refused()
        .says("the server refuses this end's key: it is not the key of a coordinator");
    hears(&mut agent, "the key of the client is refused: it is not the key of a coordinator");
    if let Some(peer) = Program::peers().pop() {
        let mut client =
            peer.start(dir.path(), [&agent.client().replace("127.0.0.1", "ip:127.0.0.1"), "job.fio"]);
        agent.running.wait_until("the fio", |running| running.output().contains("a fio is at the other end"));
        client.signal(libc::SIGKILL);
        let _ = client.has_ended();
    }
    // Random bytes, and bytes that begin like TLS.
    let place = agent.address.replace(',', ":");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\x00\x05aaaaa", b"\x16\x03\x01\xff\xff", b""]
    {
        let mut stream = TcpStream::connect(&place).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // (The agent may have closed the connection.)
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() < 100, "{answer:?}");
    }
    hears(&mut agent, "whatever is at the other end is not an Iolite");
    hears(&mut agent, "TLS: ");
    // A client with keys reports a server without protection.
    let mut plain = Agent::on_port(dir.path());
    ask(dir.path(), &plain, &[&set.option(Role::Coordinator)])
        .refused()
        .says("the server talks without protection (--insecure), and this end has keys");
    hears(&mut plain, "the client talks TLS, and this server was told --insecure");
    assert!(!dir.path().join("a/f").exists() && !dir.path().join("f").exists(), "nothing was started");
    ask(dir.path(), &agent, &[&set.option(Role::Coordinator)]).ok();
    plain.end();
    agent.end();
}

#[test]
pub fn keys_are_renewed_and_revoked() {
    let dir = scratch();
    let set = Set::new(dir.path(), "keys");
    let agent = set.agent(dir.path(), "a");
    job(dir.path(), "[a]\nioengine=null\nsize=4k\n");
    let home = set.home.display().to_string();
    let keys = |line: &str| run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    let stolen = dir.path().join("stolen");
    fs::copy(set.file(Role::Coordinator), &stolen).unwrap();
    let stolen = format!("--keys={}", stolen.display());
    let shown = keys(&format!("keys show {home}")).ok().stdout;
    let id = Keys::read(&set.file(Role::Coordinator), Role::Coordinator).unwrap().id();
    for expected in
        ["the keys of a coordinator", "the keys of agents", "the keys of an authority", &id, "364 days left"]
    {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    // The old and the new keys work together.
    let renewed = keys(&format!("keys renew --days=7 {home}")).ok();
    assert!(renewed.stdout.contains("coordinator.keys: valid until "), "{renewed}");
    let soon = ask(dir.path(), &agent, &[&set.option(Role::Coordinator)]).ok();
    assert!(soon.stderr.contains("coordinator.keys: the keys expire on "), "{soon}");
    assert_eq!(ask(dir.path(), &agent, &[&stolen]).ok().stderr, "");
    // The server reads its file for every connection.
    let revoked = keys(&format!("keys revoke {home} {id}")).ok();
    assert!(revoked.stdout.contains(&format!("revoked: {id}")), "{revoked}");
    ask(dir.path(), &agent, &[&stolen]).refused().says("the server refuses this end's key: it is revoked");
    ask(dir.path(), &agent, &[&set.option(Role::Coordinator)]).ok();
    // Only the client knows that the agent's key is revoked.
    let before = fs::read(set.file(Role::Agent)).unwrap();
    keys(&format!("keys revoke {home} agents")).ok();
    fs::write(set.file(Role::Agent), before).unwrap();
    ask(dir.path(), &agent, &[&set.option(Role::Coordinator)])
        .refused()
        .says("the key of the server is refused: it is revoked");
    fs::remove_file(set.file(Role::Agent)).unwrap();
    ask(dir.path(), &agent, &[&set.option(Role::Coordinator)])
        .refused()
        .says("the server cannot use its own keys");
    for (line, why) in [
        ("keys", "needs to know what to do"),
        ("keys make", "make is not one of new, show, renew, revoke"),
        (&format!("keys new {home}"), "there is one already"),
        ("keys new --days=0 other", "must be at least 1"),
        ("keys new --days=3651 other", "must be at most 3650"),
        ("keys new one two", "two is a second one"),
        ("keys new job.fio", "job.fio: "),
        ("keys show job.fio", "job.fio: "),
        ("keys show .", "there are no keys here"),
        ("keys renew .", "No such file"),
        (&format!("keys revoke {home}"), "needs to know which keys"),
        (&format!("keys revoke {home} bogus"), "\"bogus\" is not a key"),
        ("keys show --days=3", "--days has no effect on show"),
    ] {
        let refused = keys(line).refused();
        assert!(refused.stderr.contains(why), "{line}: {refused}");
    }
    assert!(!dir.path().join("other").exists());
    agent.end();
}
