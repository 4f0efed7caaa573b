//! Jobs on other machines: agents and their clients, over sockets and TCP.

pub mod ends;
pub mod limits;

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, files_in, scratch};
use iolite_testing::skip;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Two jobs, one after the other.
pub const TWO: &str =
    "[global]\nioengine=psync\nsize=64k\nbs=4k\nfilename=f\n[one]\nrw=write\n[two]\nstonewall\nrw=randread\n";
/// A job that would take minutes.
pub const ENDLESS: &str =
    "[long]\nrw=write\nbs=4k\nsize=64k\nthinktime=1ms\ntime_based\nruntime=5m\nnumjobs=2\n";

/// An agent.
pub struct Agent {
    pub running: Running,
    pub address: String,
}

impl Agent {
    pub fn start(dir: &Path, words: &[&str]) -> Agent {
        let mut command = Command::new(&Program::own().path);
        command.args(words).current_dir(dir);
        Agent::of(Running::start(&mut command))
    }

    /// The agent of this process.
    pub fn of(mut running: Running) -> Agent {
        running.wait_until("its socket", |running| running.stdout().contains("listening on"));
        let said = running.stdout();
        let address = said.trim().rsplit(' ').next().unwrap().to_owned();
        Agent { running, address }
    }

    /// Starts an agent on a socket in a new directory.
    pub fn on_socket(dir: &Path, name: &str) -> Agent {
        let home = dir.join(name);
        fs::create_dir(&home).unwrap();
        Agent::start(&home, &[&format!("--server=sock:{}", home.join("s").display())])
    }

    pub fn on_port(dir: &Path) -> Agent {
        Agent::start(dir, &["--server=ip:127.0.0.1,0", "--insecure"])
    }

    pub fn client(&self) -> String {
        format!("--client={}", self.address)
    }

    /// Ends the agent, and checks that none of its processes is left.
    pub fn end(self) -> Finished {
        self.running.signal(libc::SIGTERM);
        self.running.wait()
    }

    /// All its descendants.
    pub fn family(&self) -> Vec<i32> {
        iolite_os::process::descendants_of(self.running.pid())
    }

    /// Waits until the agent has no run.
    pub fn wait_until_idle(&mut self) {
        let agent = self.running.pid();
        self.running
            .wait_until("the end of its run", |_| iolite_os::process::descendants_of(agent).is_empty());
    }
}

pub fn job(dir: &Path, text: &str) {
    fs::write(dir.join("job.fio"), text).unwrap();
}

pub fn run(dir: &Path, words: &[&str]) -> Finished {
    Program::own().run(dir, words)
}

#[test]
pub fn a_job_runs_where_the_server_is() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "there");
    job(dir.path(), TWO);
    let normal = run(dir.path(), &[&agent.client(), "job.fio"]).ok();
    let host = iolite_remote::message::machine_name();
    for expected in [
        format!("<{host}> one: (g=0): rw=write"),
        format!("<{host}> Starting 2 processes"),
        format!("<{host}> \none: (groupid=0, jobs=1): err= 0"),
        "two: (groupid=1, jobs=1): err= 0".to_owned(),
        "Run status group 1 (all jobs):".to_owned(),
        "All clients: (groupid=1, jobs=2): err= 0: pid=0".to_owned(),
        "issued rwts: total=16,16,0,0".to_owned(),
    ] {
        assert!(normal.stdout.contains(&expected), "{expected}\n{normal}");
    }
    // With a single machine, there is no spread of start times.
    assert!(!normal.stdout.contains("started within "), "{normal}");
    assert_eq!(normal.stderr, "");
    assert_eq!(fs::metadata(dir.path().join("there/f")).unwrap().len(), 65_536);

    let json = run(dir.path(), &["--output-format=json", &agent.client(), "job.fio"]).ok();
    let json = Json::parse(&json.stdout);
    let stats = json.0["client_stats"].as_array().unwrap();
    let names: Vec<_> = stats.iter().map(|job| job["jobname"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two", "All clients"]);
    assert_eq!(stats[0]["hostname"], dir.path().join("there/s").display().to_string());
    assert_eq!(stats[0]["port"], 8765);
    assert_eq!(stats[2]["read"]["total_ios"], 16);
    assert_eq!(stats[2]["write"]["io_bytes"], 65_536);
    assert_eq!(json.0["global options"]["size"], "64k");
    assert!(json.0.get("start").is_none(), "{}", json.0);
    // If time plays no role, a local run has the same counts.
    let alone = Json::parse(&run(dir.path(), &["--output-format=json", "job.fio"]).ok().stdout);
    for (job, here) in stats.iter().zip(alone.jobs()) {
        for path in ["read", "write"] {
            assert_eq!(job[path]["total_ios"], here.0[path]["total_ios"], "{path}");
            assert_eq!(job[path]["io_bytes"], here.0[path]["io_bytes"], "{path}");
        }
    }
    agent.end();
}

#[test]
pub fn several_machines_have_one_result() {
    let dir = scratch();
    let agents = ["a", "b", "c"].map(|name| Agent::on_socket(dir.path(), name));
    job(dir.path(), TWO);
    let own = "[own]\nrw=write\nsize=128k\nbs=4k\n";
    fs::write(dir.path().join("own.fio"), own).unwrap();
    let told = |words: &[&str]| {
        let words = [&["--output-format=json"], words].concat();
        let run = run(dir.path(), &words).ok();
        let json = Json::parse(&run.stdout);
        let stats = json.0["client_stats"].as_array().unwrap().clone();
        let names: Vec<String> =
            stats.iter().map(|job| job["jobname"].as_str().unwrap().to_owned()).collect();
        let last = stats.last().unwrap();
        assert!(json.0["hosts"].as_array().unwrap().len() >= 2, "{}", json.0);
        assert!(json.0["start"]["spread_ns"].is_u64(), "{}", json.0);
        (names.join(" "), last["write"]["total_ios"].as_u64().unwrap())
    };
    let [a, b, c] = agents.each_ref().map(Agent::client);
    assert_eq!(
        told(&[&a, "job.fio", &b, "own.fio", &c, "job.fio"]),
        ("one two own one two All clients".to_owned(), 16 + 32 + 16)
    );
    // Machines without their own job files use those of the next machine, or those given first.
    assert_eq!(told(&[&a, &b, "own.fio"]), ("own own All clients".to_owned(), 64));
    assert_eq!(told(&["own.fio", &a, &b]), ("own own All clients".to_owned(), 64));
    let list: String = agents.iter().map(|agent| format!("{}\n", agent.address)).collect();
    fs::write(dir.path().join("hosts"), format!("# all\n{list}")).unwrap();
    assert_eq!(told(&["--client=hosts", "own.fio"]), ("own own own All clients".to_owned(), 96));
    // Job files on the machines themselves.
    for name in ["a", "b"] {
        fs::write(dir.path().join(name).join("far.fio"), own.replace("own", "far")).unwrap();
    }
    assert_eq!(told(&["--remote-config=far.fio", &a, &b]), ("far far All clients".to_owned(), 64));
    // Each machine has a separate line, with its name.
    let normal = run(dir.path(), &["--client=hosts", "own.fio"]).ok();
    let lines =
        normal.stdout.lines().skip_while(|line| *line != "Hosts:").filter(|line| line.contains("sock:"));
    assert!(lines.count() >= 3, "{normal}");
    let terse = run(dir.path(), &["--minimal", "--client=hosts", "own.fio"]).ok();
    assert!(terse.stdout.contains(";All clients;0;0;"), "{terse}");
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

/// On another machine, the job files of one `--client` run together; here, they run one after the other.
#[test]
pub fn several_files_run_together_as_with_fio() {
    let dir = scratch();
    let files = [
        ("a.fio", "[global]\nioengine=null\nsize=8k\nbs=2k\n[a1]\nrw=write\n[a2]\nstonewall\nrw=read\n"),
        (
            "b.fio",
            "[b1]\nioengine=null\nrw=write\nsize=8k\n[b2]\nioengine=null\nrw=randread\nbs=1k\nsize=8k\n",
        ),
        ("c.fio", "[c1]\nstonewall\nioengine=null\nrw=read\nsize=8k\n"),
    ];
    files.iter().for_each(|(name, text)| fs::write(dir.path().join(name), text).unwrap());
    let names = files.map(|(name, _)| name);
    // The jobs, with their groups and block sizes.
    let jobs = |finished: &Finished| -> Vec<String> {
        let lines = finished.stdout.lines().filter(|line| line.contains(": (g="));
        let jobs = lines.map(|line| line.split_once("> ").map_or(line, |(_, line)| line));
        jobs.map(|line| line.split(", (W)").next().unwrap().to_owned()).collect()
    };
    let agent = Agent::on_socket(dir.path(), "there");
    let there = run(dir.path(), &[&[agent.client().as_str()], &names[..]].concat()).ok();
    let here = run(dir.path(), &names).ok();
    let groups = |jobs: &[String]| -> Vec<String> {
        jobs.iter().map(|job| job.split(": rw").next().unwrap().to_owned()).collect()
    };
    assert_eq!(groups(&jobs(&there)), ["a1: (g=0)", "a2: (g=1)", "b1: (g=1)", "b2: (g=1)", "c1: (g=2)"]);
    assert_eq!(groups(&jobs(&here)), ["a1: (g=0)", "a2: (g=1)", "b1: (g=2)", "b2: (g=2)", "c1: (g=3)"]);
    for name in names {
        fs::copy(dir.path().join(name), dir.path().join("there").join(name)).unwrap();
    }
    let remote = names.map(|name| format!("--remote-config={name}"));
    let remote: Vec<&str> = remote.iter().map(String::as_str).collect();
    let far = run(dir.path(), &[&[agent.client().as_str()], &remote[..]].concat()).ok();
    assert_eq!(jobs(&far), jobs(&there));
    agent.end();
    for peer in Program::peers() {
        let socket = dir.path().join("peer");
        let mut command = Command::new(&peer.path);
        command.arg(format!("--server=sock:{}", socket.display())).current_dir(dir.path());
        let mut server = Running::start(&mut command);
        server.wait_until("its socket", |_| socket.exists());
        let client = format!("--client=sock:{}", socket.display());
        let theirs = peer.run(dir.path(), [&[client.as_str()], &names[..]].concat()).ok();
        assert_eq!(jobs(&theirs), jobs(&there), "{}: {theirs}", peer.path.display());
        let theirs = peer.run(dir.path(), names).ok();
        assert_eq!(jobs(&theirs), jobs(&here), "{}: {theirs}", peer.path.display());
        server.signal(libc::SIGKILL);
        server.wait();
        let _ = fs::remove_file(&socket);
    }
}

/// If time plays no role, several machines do exactly the same as one process with the same seeds.
#[test]
pub fn machines_do_what_one_process_does() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| Agent::on_socket(dir.path(), name));
    let jobs = [
        "[one]\nfilename=f1\nrandseed=7\nrw=randrw\nbssplit=4k/60:16k\nsize=2m\nwrite_iolog=one.trace\n",
        "[two]\nfilename=f2\nrandseed=8\nrw=randwrite\nbsrange=512-8k\nsize=1m\nrandom_distribution=zipf:1.2\n\
         number_ios=300\nwrite_iolog=two.trace\n",
    ];
    // A worker's number is a part of its seed, so the second worker is the second one on its machine, too.
    let other = "[other]\nioengine=null\nrw=trim\nsize=4k\n";
    fs::write(dir.path().join("one.fio"), jobs[0]).unwrap();
    fs::write(dir.path().join("two.fio"), [other, jobs[1]].concat()).unwrap();
    job(dir.path(), &["[global]\ngroup_reporting\n", jobs[0], jobs[1], other].concat());
    let [first, second] = agents.each_ref().map(Agent::client);
    let words = ["--output-format=json", &first, "one.fio", &second, "two.fio"];
    let together = Json::parse(&run(dir.path(), &words).ok().stdout);
    let all = together.0["client_stats"].as_array().unwrap().last().unwrap().clone();
    let alone = Json::parse(&run(dir.path(), &["--output-format=json", "job.fio"]).ok().stdout);
    let alone = &alone.jobs()[0].0;
    assert!(alone["read"]["total_ios"].as_u64() > Some(10), "{alone}");
    for path in ["read", "write"] {
        for count in ["total_ios", "io_bytes", "short_ios", "drop_ios"] {
            assert_eq!(all[path][count], alone[path][count], "{path} {count}");
        }
        assert_eq!(all[path]["clat_ns"]["N"], alone[path]["clat_ns"]["N"], "{path}");
    }
    assert_eq!(all["iodepth_level"], alone["iodepth_level"]);
    // The first word of a line is the time.
    let ios = |path: &Path| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    };
    for (machine, name) in [("a", "one.trace"), ("b", "two.trace")] {
        let there = ios(&dir.path().join(machine).join(name));
        assert!(there.len() > 100, "{there:?}");
        assert_eq!(there, ios(&dir.path().join(name)), "{name}");
    }
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

#[test]
pub fn without_protection_only_when_asked_for() {
    let dir = scratch();
    job(dir.path(), TWO);
    let fio = Program::called_fio(dir.path());
    for line in ["--server", "--server=,0", "--server=ip:127.0.0.1,0", "--client=127.0.0.1,1 job.fio"] {
        for program in [&Program::own(), &fio] {
            let mut command = Command::new(&program.path);
            command.args(line.split(' ')).env("XDG_CONFIG_HOME", dir.path()).env_remove("IOLITE_KEYS");
            let refused = Running::start(command.current_dir(dir.path())).wait().refused();
            for remedy in ["iolite keys new", "--keys=FILE", "--insecure (or IOLITE_INSECURE=1)", "sock:PATH"]
            {
                assert!(refused.stderr.contains(remedy), "{remedy}: {refused}");
            }
        }
    }
    let agent = Agent::on_port(dir.path());
    run(dir.path(), &["--insecure", &agent.client(), "job.fio"]).ok();
    // A command line of fio works if only the environment is changed.
    let mut command = Command::new(&fio.path);
    command.args([&agent.client(), "job.fio"]).env("IOLITE_INSECURE", "1").current_dir(dir.path());
    let finished = Running::start(&mut command).wait().ok();
    assert_eq!(finished.stderr, "");
    assert!(finished.stdout.contains("\nAll clients: "), "{finished}");
    agent.end();
}

#[test]
pub fn a_socket_is_for_its_user() {
    let dir = scratch();
    job(dir.path(), TWO);
    let agent = Agent::on_socket(dir.path(), "a");
    let socket = dir.path().join("a/s");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let second = run(dir.path(), &[&format!("--server={}", agent.address)]).refused();
    assert!(second.stderr.contains("a server listens there"), "{second}");
    agent.running.signal(libc::SIGKILL);
    agent.running.wait();
    // The socket of a killed agent is replaced; a user's file is not.
    let client = format!("--client=sock:{}", socket.display());
    let gone = run(dir.path(), &[&client, "job.fio"]).refused();
    assert!(gone.stderr.contains("Connection refused"), "{gone}");
    let server = format!("--server=sock:{}", socket.display());
    Agent::start(dir.path(), &[&server]).end();
    let file = run(dir.path(), &["--server=sock:job.fio"]).refused();
    assert!(file.stderr.contains("not a socket"), "{file}");
    assert_eq!(fs::read_to_string(dir.path().join("job.fio")).unwrap(), TWO);
}

#[test]
pub fn mistakes_come_back_with_host_line_and_column() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "a");
    let host = iolite_remote::message::machine_name();
    fs::write(dir.path().join("inc"), "iodpeth=4\n").unwrap();
    job(dir.path(), "[a]\nrw=write\nsize=64k\nbs=4kk\ninclude inc\n");
    let refused = run(dir.path(), &[&agent.client(), "job.fio"]).refused();
    assert!(refused.stderr.contains(&format!("<{host}> job.fio:4:4: bs=4kk")), "{refused}");
    assert!(refused.stderr.contains(&format!("<{host}> inc:1:1: unknown option \"iodpeth\"")), "{refused}");
    // Errors that only the other machine can detect.
    job(dir.path(), "[a]\nrw=read\nsize=64k\nfilename=missing\nallow_file_create=0\n");
    let refused = run(dir.path(), &["--output-format=json", &agent.client(), "job.fio"]).refused();
    assert!(refused.stderr.contains(&format!("<{host}> ")), "{refused}");
    let json = Json::parse(&refused.stdout);
    assert_ne!(json.0["client_stats"][0]["error"], 0, "{}", json.0);
    // Options that are not supported across machines are refused, not ignored.
    for (line, why) in [
        ("--bandwidth-log job.fio", "--bandwidth-log: not supported yet"),
        ("--name=x --rw=read job.fio", "put them into a job file"),
        ("", "there is no job file for it"),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let refused = run(dir.path(), &[&[agent.client().as_str()], &words[..]].concat()).refused();
        assert!(refused.stderr.contains(why), "{why}: {refused}");
    }
    let names: Vec<String> = files_in(&dir.path().join("a")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["s"], "nothing was begun");
    agent.end();
}

/// Invalid hosts are reported with their place.
#[test]
pub fn invalid_hosts_are_reported_with_their_place() {
    let dir = scratch();
    job(dir.path(), TWO);
    for (list, text) in [
        ("list", "sock:nowhere # one\n\n[global]\nhost:8765\n"),
        ("gone", "\n#\nsock:away\n"),
        ("none", "# nobody\n\n"),
    ] {
        fs::write(dir.path().join(list), text).unwrap();
    }
    for (client, words) in [
        (
            "--client=127.0.0.1:8765",
            "--client: \"127.0.0.1:8765\": the port comes behind a comma: 127.0.0.1,8765",
        ),
        (
            "--client=./hosts",
            "--client: \"./hosts\" is not a host, and there is no such file with a list of hosts",
        ),
        ("--client=list", "list:3: \"[global]\" is not a host"),
        ("--client=list", "list:4: \"host:8765\": the port comes behind a comma: host,8765"),
        ("--client=gone", "gone:3: sock:away: No such file or directory"),
        ("--client=none", "--client=none: the list has no hosts in it"),
    ] {
        let refused = run(dir.path(), &[client, "job.fio"]).refused();
        assert!(refused.stderr.contains(&format!("iolite: {words}")), "{words}: {refused}");
    }
    let refused = run(dir.path(), &["--insecure", "--client=hosts.invalid", "job.fio"]).refused();
    assert!(
        refused.stderr.contains("iolite: --client=hosts.invalid,8765: the name cannot be resolved ("),
        "{refused}"
    );
    assert!(refused.stderr.contains("), and it is not a file with a list of hosts"), "{refused}");
}

/// If one machine cannot run its jobs, no machine does.
#[test]
pub fn nothing_starts_before_all_are_ready() {
    let dir = scratch();
    let [good, bad] = ["good", "bad"].map(|name| Agent::on_socket(dir.path(), name));
    job(dir.path(), "[a]\nrw=write\nsize=64k\nbs=4k\n");
    fs::write(dir.path().join("bad.fio"), "[b]\nrw=read\nsize=64k\nfilename=missing\nallow_file_create=0\n")
        .unwrap();
    let refused =
        run(dir.path(), &["--output-format=json", &good.client(), "job.fio", &bad.client(), "bad.fio"])
            .refused();
    assert!(!refused.stderr.contains("lost"), "{refused}");
    let json = Json::parse(&refused.stdout);
    for job in json.0["client_stats"].as_array().unwrap() {
        assert_eq!(job["write"]["total_ios"], 0, "{}", json.0);
    }
    good.end();
    bad.end();
}

#[test]
pub fn one_run_at_a_time() {
    let dir = scratch();
    let mut agent = Agent::on_socket(dir.path(), "a");
    job(dir.path(), ENDLESS);
    let mut first = Program::own().start(dir.path(), [&agent.client(), "job.fio"]);
    first.wait_until("its jobs", |_| agent.family().len() >= 4);
    let second = run(dir.path(), &[&agent.client(), "job.fio"]).refused();
    assert!(second.stderr.contains("runs the jobs of another client: iolite-"), "{second}");
    assert!(second.stderr.contains(&format!("(process {}) on", first.pid())), "{second}");
    // The first run reports when it is interrupted.
    first.signal(libc::SIGINT);
    let first = first.wait();
    assert_eq!(first.code(), 128, "{first}");
    assert!(first.stdout.contains("\nAll clients: (groupid=0, jobs=2)"), "{first}");
    agent.wait_until_idle();
    // An agent that is given twice is detected, even under two names.
    let linked = dir.path().join("linked");
    std::os::unix::fs::symlink(dir.path().join("a"), &linked).unwrap();
    let linked = format!("--client=sock:{}", linked.join("s").display());
    for again in [&agent.client(), &linked] {
        let twice = run(dir.path(), &[&agent.client(), again, "job.fio"]).refused();
        assert!(twice.stderr.contains("it is given twice, and performs one run at a time"), "{twice}");
    }
    agent.wait_until_idle();
    agent.end();
}

#[test]
pub fn fio_at_the_other_end_is_recognised() {
    let Some(peer) = Program::peers().pop() else { skip!("fio is not installed") };
    let dir = scratch();
    job(dir.path(), TWO);
    let socket = dir.path().join("s");
    let mut command = Command::new(&peer.path);
    command.arg(format!("--server=sock:{}", socket.display())).current_dir(dir.path());
    let mut server = Running::start(&mut command);
    server.wait_until("its socket", |_| socket.exists());
    let refused = run(dir.path(), &[&format!("--client=sock:{}", socket.display()), "job.fio"]).refused();
    assert!(refused.stderr.contains("a fio is at the other end"), "{refused}");
    server.signal(libc::SIGKILL);
    server.wait();
    let mut agent = Agent::on_socket(dir.path(), "a");
    let client = peer.start(dir.path(), [&agent.client(), "job.fio"]);
    agent.running.wait_until("its message", |running| running.output().contains("a fio is at the other end"));
    drop(client);
    agent.end();
}

#[test]
pub fn a_server_in_the_background() {
    let dir = scratch();
    job(dir.path(), TWO);
    let server = format!("--server=sock:{}", dir.path().join("s").display());
    run(dir.path(), &[&server, "--daemonize=pid"]).ok();
    let pid = || fs::read_to_string(dir.path().join("pid")).unwrap_or_default().trim().parse::<i32>();
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while pid().is_err() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = pid().expect("the process id is in its file");
    let finished = run(dir.path(), &[&server.replace("server", "client"), "job.fio"]);
    let other = format!("--server=sock:{}", dir.path().join("other").display());
    let second = run(dir.path(), &[&other, "--daemonize=pid"]);
    crate::common::program::send(pid, libc::SIGTERM);
    finished.ok();
    assert!(second.refused().stderr.contains(&format!("the server with process {pid} is alive")));
}

/// Start delays count from the common start.
#[test]
pub fn jobs_that_start_later() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "a");
    job(
        dir.path(),
        "[global]\nioengine=null\nsize=64k\nbs=4k\n[now]\n[later]\nstartdelay=1\n[after]\nwait_for=later\n",
    );
    let json =
        Json::parse(&run(dir.path(), &["--output-format=json", &agent.client(), "job.fio"]).ok().stdout);
    let start = |index: usize| json.0["client_stats"][index]["job_start"].as_u64().unwrap();
    assert!(start(1) >= start(0) + 900, "{}", json.0);
    assert!(start(2) >= start(1), "{}", json.0);
    agent.end();
}

#[test]
pub fn a_server_announces_what_it_permits() {
    let dir = scratch();
    let program = "[a]\nioengine=null\nsize=64k\nexec_prerun=touch ran\n";
    let write = "[a]\nrw=write\nsize=64k\n";
    let serve = |name: &str, words: &[&str]| {
        let home = dir.path().join(name);
        fs::create_dir(&home).unwrap();
        let server = format!("--server=sock:{}", home.join("s").display());
        Agent::start(&home, &[&[server.as_str()], words].concat())
    };
    let [careful, open, readonly] =
        [serve("careful", &[]), serve("open", &["--serve-exec"]), serve("readonly", &["--readonly"])];
    for (agent, expected) in [
        (
            &careful,
            "for its user only (and root), reading and writing whatever its user can, running no programs",
        ),
        (&open, "running programs (--serve-exec)"),
        (&readonly, "only reading (--readonly) whatever its user can"),
        (
            &Agent::on_port(dir.path()),
            "INSECURE: anyone who can reach the port can run jobs as this user (--insecure)",
        ),
    ] {
        let said = agent.running.stdout();
        let line = said.strip_prefix("iolite: server ").expect("a line");
        assert!(line.contains(expected) && line.contains(", listening on "), "{said}");
    }
    job(dir.path(), program);
    let refused = run(dir.path(), &[&careful.client(), "job.fio"]).refused();
    assert!(refused.stderr.contains("job.fio:4:"), "{refused}");
    assert!(refused.stderr.contains("exec_prerun: the server lets no jobs run programs"), "{refused}");
    run(dir.path(), &[&open.client(), "job.fio"]).ok();
    assert!(!dir.path().join("careful/ran").exists() && dir.path().join("open/ran").exists());
    job(dir.path(), "[a]\nioengine=exec\nsize=64k\n");
    run(dir.path(), &[&careful.client(), "job.fio"]).refused().says("(--serve-exec)");
    for engine in ["external:./x.so", "./x.so", "external:/x.so"] {
        job(dir.path(), &format!("[a]\nioengine={engine}\nsize=64k\n"));
        for server in [&careful, &open] {
            let refused = run(dir.path(), &[&server.client(), "job.fio"]).refused();
            refused.says("jobs from other machines cannot name one");
        }
    }
    job(dir.path(), write);
    run(dir.path(), &[&careful.client(), "job.fio"]).ok();
    run(dir.path(), &[&readonly.client(), "job.fio"]).refused().says("--readonly forbids that");
    // Options that write logs and traces to files that the client chooses.
    let makes = [
        "[a]\nioengine=null\nrw=read\nsize=64k\nwrite_iolog=made\n",
        "[a]\nioengine=null\nread_iolog=one:two\nmerge_blktrace_file=made\n",
        "[a]\nioengine=net\nprotocol=unix\nrw=read\nsize=64k\nfilename=made\n",
    ];
    for makes in makes {
        job(dir.path(), makes);
        let refused = run(dir.path(), &[&readonly.client(), "job.fio"]).refused();
        assert!(refused.stderr.contains("the server's --readonly forbids that"), "{makes}: {refused}");
    }
    let names: Vec<String> =
        files_in(&dir.path().join("readonly")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["s"]);
    [careful, open, readonly].into_iter().for_each(|agent| drop(agent.end()));
}

/// Generated file names on a server contain the client's address and the place of the server, unless the job says
/// otherwise or the client is local. So two servers on one machine do not share files.
#[test]
pub fn files_of_clients_are_their_own() {
    let dir = scratch();
    let made = |agent: &Agent, home: &Path, words: &str| {
        let _ = fs::remove_dir_all(home.join("d"));
        fs::create_dir(home.join("d")).unwrap();
        job(dir.path(), &format!("[j]\nrw=write\nbs=4k\nsize=4k\n{words}"));
        run(dir.path(), &["--insecure", &agent.client(), "job.fio"]).ok();
        let names: Vec<String> = files_in(&home.join("d")).into_iter().map(|(name, _)| name).collect();
        names.join(" ")
    };
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    let agent = Agent::on_port(&home);
    let place = format!("127.0.0.1-{}", agent.address.replace(',', "-"));
    assert_eq!(made(&agent, &home, "directory=d\nnumjobs=2\n"), format!("{place}.j.0.0 {place}.j.1.0"));
    assert_eq!(made(&agent, &home, "directory=d\nunique_filename=0\n"), "j.0.0");
    assert_eq!(made(&agent, &home, "directory=d\nfilename=f\n"), format!("{place}.f"));
    assert_eq!(made(&agent, &home, "filename=d/f\n"), "f");
    assert_eq!(
        made(&agent, &home, "directory=d\nunique_filename=0\nfilename_format=$clientuid-$jobname\n"),
        format!("{place}-j")
    );
    // If a file is not found, the message explains its name.
    job(dir.path(), "[j]\nrw=read\nsize=4k\ndirectory=d\nfilename=x\nallow_file_create=0\n");
    let refused = run(dir.path(), &["--insecure", &agent.client(), "job.fio"]).refused();
    let hint =
        format!("relative names of files are those in {} there, and names in a directory", home.display());
    assert!(refused.stderr.contains(&format!("d/{place}.x does not exist")), "{refused}");
    assert!(
        refused.stderr.contains(&hint) && refused.stderr.contains("unless unique_filename=0"),
        "{refused}"
    );
    job(dir.path(), "[j]\nrw=read\nsize=4k\ndirectory=gone\n");
    let refused = run(dir.path(), &["--insecure", &agent.client(), "job.fio"]).refused();
    assert!(refused.stderr.contains(&format!("are those in {} there\n", home.display())), "{refused}");
    agent.end();
    let agent = Agent::on_socket(dir.path(), "a");
    assert_eq!(made(&agent, &dir.path().join("a"), "directory=d\n"), "j.0.0");
    agent.end();
}

/// Servers on one machine whose jobs use the same file measure a shared file. That is said, unless they only read it.
#[test]
pub fn files_that_servers_share_are_told() {
    let (dir, links) = (scratch(), scratch());
    let told = |agents: &[Agent], program: &Program, text: &str| {
        job(dir.path(), &format!("[a]\nbs=4k\nsize=64k\n{text}"));
        let clients: Vec<String> = agents.iter().map(Agent::client).collect();
        let words: Vec<&str> =
            ["--insecure"].into_iter().chain(clients.iter().map(String::as_str)).chain(["job.fio"]).collect();
        program.run(dir.path(), &words).ok()
    };
    let (own, fio) = (Program::own(), Program::called_fio(links.path()));
    let home = dir.path().canonicalize().unwrap();
    let shares = format!("are on one machine and share {}/a.0.0, so ", home.display());
    let sockets = ["s1", "s2"].map(|name| Agent::start(dir.path(), &[&format!("--server=sock:{name}")]));
    let ports = [(); 2].map(|()| Agent::on_port(dir.path()));
    // (The file is laid out.)
    for (agents, text) in [(&sockets, "rw=read\n"), (&sockets, "rw=write\n"), (&ports, "rw=randrw\n")] {
        let warned = told(agents, &own, text);
        assert_eq!(warned.stderr.matches(&shares).count(), 1, "{text}: {warned}");
        let place = |agent: &Agent| agent.address.trim_start_matches("ip:").to_owned();
        assert!(agents.iter().all(|agent| warned.stderr.contains(&place(agent))), "{warned}");
    }
    assert!(told(&ports, &own, "rw=write\n").stderr.contains("; set directory= "));
    let strict = told(&ports, &fio, "rw=write\ndirectory=.\n");
    assert_eq!(strict.stderr, "", "{strict}");
    assert!(strict.stdout.contains("share ") && strict.stdout.contains("give each --client"), "{strict}");
    // Those that have another file each, or read one that is there, share nothing worth a word.
    for (agents, text) in
        [(&sockets, "rw=read\n"), (&ports, "rw=write\ndirectory=.\n"), (&ports, "ioengine=null\n")]
    {
        let silent = told(agents, &own, text);
        assert!(!silent.stderr.contains("on one machine"), "{text}: {silent}");
    }
    sockets.into_iter().chain(ports).for_each(|agent| drop(agent.end()));
}

#[test]
pub fn a_report_on_request() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| Agent::on_socket(dir.path(), name));
    job(dir.path(), ENDLESS);
    let [first, second] = agents.each_ref().map(Agent::client);
    let mut client = Program::own().start(dir.path(), [&first, &second, "job.fio"]);
    client.wait_until("its jobs", |_| agents.iter().all(|agent| agent.family().len() >= 4));
    client.signal(libc::SIGUSR1);
    client.wait_until("a report", |client| client.stdout().contains("All clients: (groupid=0, jobs=4)"));
    // Two signals close together, as from GNU timeout, are one request to end.
    client.signal(libc::SIGINT);
    client.signal(libc::SIGTERM);
    let finished = client.wait();
    assert_eq!(finished.code(), 128, "{finished}");
    assert!(!finished.stderr.contains("given up"), "{finished}");
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

/// Many machines that fail in the same way are told once, with those that follow.
#[test]
pub fn equal_failures_of_machines_are_told_once() {
    let (dir, links) = (scratch(), scratch());
    let agents = ["a", "b", "c"].map(|name| Agent::on_socket(dir.path(), name));
    job(dir.path(), "[full]\nfilename=/dev/full\nrw=write\nbs=4k\nsize=64k\n");
    let clients = agents.each_ref().map(Agent::client);
    let words: Vec<&str> = clients.iter().map(String::as_str).chain(["job.fio"]).collect();
    let failed = run(dir.path(), &words).refused();
    let lines = |words: &str| failed.stderr.lines().filter(|line| line.contains(words)).count();
    assert_eq!(lines("> io_u error on file /dev/full"), 1, "{failed}");
    assert_eq!(lines("2 more like this, on "), 2, "the I/Os, and the jobs: {failed}");
    // (fio prints all.)
    let failed = Program::called_fio(links.path()).run(dir.path(), &words);
    assert_eq!(failed.stderr.matches("> io_u error on file /dev/full").count(), 3, "{failed}");
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

/// Warnings about jobs are the same as without `--client`; those that many machines have are told once.
#[test]
pub fn warnings_of_machines_are_told_once() {
    let (dir, links) = (scratch(), scratch());
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let agents = ["a", "b", "c"].map(|name| Agent::on_socket(dir.path(), name));
    let text = "[j]\nrw=randread\nbs=4k\nba=8k\nsize=64k\niodepth=4\nioengine=psync\ndirect=1\nfilename=";
    job(dir.path(), &format!("{text}{}/f\n", memory.path().display()));
    let clients = agents.each_ref().map(Agent::client);
    let words: Vec<&str> = clients.iter().map(String::as_str).chain(["job.fio"]).collect();
    let (alone, together) = (run(dir.path(), &["job.fio"]).ok(), run(dir.path(), &words).ok());
    let warnings: Vec<&str> =
        alone.stderr.lines().map(|line| line.strip_prefix("iolite: ").unwrap()).collect();
    assert!(warnings.len() == 3 && alone.stderr.contains("in memory (tmpfs)"), "{alone}");
    for warning in warnings {
        assert_eq!(together.stderr.matches(&format!("> {warning}\n")).count(), 1, "{warning}: {together}");
        assert_eq!(together.stderr.matches(&format!(": {warning}\n")).count(), 1, "{warning}: {together}");
    }
    assert_eq!(together.stderr.matches("2 more like this, on ").count(), 3, "{together}");
    // As with fio, complaints of servers are lines of the report.
    let strict = Program::called_fio(links.path()).run(dir.path(), &words).ok();
    assert_eq!(strict.stderr, "", "{strict}");
    assert!(strict.stdout.contains("> fio: Any use of blockalign= turns off randommap\n"), "{strict}");
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

#[test]
pub fn runs_follow_each_other() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "a");
    job(dir.path(), "[a]\nioengine=null\nsize=4k\n");
    for _ in 0..10 {
        run(dir.path(), &[&agent.client(), "job.fio"]).ok();
    }
    agent.end();
}

/// The client watches for the trigger. When it has the states of all machines, the trigger's commands run at both ends.
#[test]
pub fn a_trigger_ends_the_run_of_all() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| {
        let home = dir.path().join(name);
        fs::create_dir(&home).unwrap();
        Agent::start(&home, &[&format!("--server=sock:{}", home.join("s").display()), "--serve-exec"])
    });
    let [a, b] = agents.each_ref().map(Agent::client);
    let text = "[long]\nfilename=f\nrw=write\nbs=4k\nsize=1m\nverify=crc32c\ndo_verify=0\nthinktime=1ms\ntime_based\n\
                runtime=5m\n";
    job(dir.path(), text);
    let trigger =
        ["--trigger-file=fire", "--trigger=ls *-verify.state > local; ls a/remote b/remote >> local; exit 3"];
    let remote = "--trigger-remote=ls *-verify.state > remote; sleep 0.1; : >> remote";
    let words = [a.as_str(), b.as_str(), trigger[0], trigger[1], remote, "job.fio"];
    let mut running = Program::own().start(dir.path(), words);
    let file = |who: &str| fs::read(dir.path().join(who).join("f")).unwrap_or_default();
    let runs = |who: &str| file(who).chunks(4096).filter(|block| block.iter().any(|&b| b > 0)).count() > 3;
    running.wait_until("both to run", |_| runs("a") && runs("b"));
    fs::write(dir.path().join("fire"), "").unwrap();
    let finished = running.wait().ok();
    assert!(finished.stdout.contains("trigger: the run ends here"), "{finished}");
    assert!(finished.stdout.contains("All clients: (groupid=0, jobs=2): err= 0"), "{finished}");
    assert!(finished.stderr.contains("exit status: 3"), "{finished}");
    assert!(!dir.path().join("fire").exists());
    let local = fs::read_to_string(dir.path().join("local")).unwrap();
    assert_eq!(local.lines().filter(|line| line.ends_with("-verify.state")).count(), 2, "{local}");
    assert_eq!(local.lines().filter(|line| line.ends_with("/remote")).count(), 2, "{local}");
    assert_eq!(fs::read_to_string(dir.path().join("a/remote")).unwrap(), "local-long-0-verify.state\n");
    // A trigger by time; a failed command is reported with its machine.
    let timed = run(dir.path(), &[&a, "--trigger-timeout=1ms", "--trigger-remote=exit 4", "job.fio"]).ok();
    assert!(timed.stderr.contains("> the trigger \"exit 4\" ended with exit status: 4"), "{timed}");
    agents.into_iter().for_each(|agent| drop(agent.end()));
    // Commands run only on servers that permit programs.
    let strict = Agent::on_socket(dir.path(), "strict");
    let words = [&strict.client(), "--trigger-timeout=1", "--trigger-remote=: > there", "job.fio"];
    let refused = run(dir.path(), &words).refused();
    assert!(refused.stderr.contains("--trigger-remote: the server lets no jobs run programs"), "{refused}");
    assert!(!dir.path().join("strict/there").exists());
    strict.end();
}
