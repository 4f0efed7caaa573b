//! Failures of machines in separate networks: slow, stalled, cut and tampered connections, pulled cables, killed
//! processes. Whatever the fault is and whenever it comes: nothing hangs, no process is left, the measurements of the
//! other machines are kept, and the exit status shows the loss.

use crate::common::program::{Running, send};
use crate::common::wires::{Fault, Network, Plan, Proxy};
use crate::common::{Json, Program, scratch};
use crate::remote::{Agent, TWO, run};
use iolite_os::process::children_of;
use iolite_remote::keys::Role;
use iolite_testing::{Luck, seed, skip};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// 32 writes that take a second, so that each fault can come between them.
const SLOW: &str = "[slow]\nrw=write\nbs=4k\nsize=64k\nnumjobs=2\nthinktime=50ms\n";

/// Creates keys for both ends in this directory, and returns the options that name them.
fn keys(dir: &Path) -> [String; 2] {
    run(dir, &["keys", "new", &dir.join("keys").display().to_string()]).ok();
    [Role::Agent, Role::Coordinator]
        .map(|role| format!("--keys={}", dir.join("keys").join(role.file_name()).display()))
}

/// Creates the home directory of an agent, with a directory for its files during a run.
fn home(dir: &Path, name: &str) -> PathBuf {
    let home = dir.join(name);
    fs::create_dir_all(home.join("tmp")).unwrap();
    home
}

fn server(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(&Program::own().path);
    command.args(words).current_dir(home).env("TMPDIR", home.join("tmp"));
    command
}

/// Checks that nothing of a run is left.
fn check_leaves_nothing(agent: &mut Agent, home: &Path) {
    agent.wait_until_idle();
    let tmp = home.join("tmp");
    agent
        .running
        .wait_until("the end of what was kept for its run", |_| fs::read_dir(&tmp).unwrap().next().is_none());
}

/// The reports that have been printed completely.
fn reports(text: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok).collect()
}

fn written(job: &Value) -> u64 {
    job["write"]["total_ios"].as_u64().unwrap_or_default()
}

/// The transport of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Carried {
    WithKeys,
    OnSockets,
}

/// A run on two machines. The connection to the first one fails in a random way at a random moment. The final report
/// has to agree with that.
fn round(number: u64, carried: Carried, luck: &mut Luck) {
    let faults: &[Fault] = match carried {
        Carried::WithKeys => &Fault::OF_PROTECTED,
        Carried::OnSockets => &Fault::OF_ANY,
    };
    let plan = Plan::draw(luck, faults);
    let aborts = luck.below(2) == 0;
    let what = format!("round {number}, {carried:?}, {plan:?}, aborts={aborts}");
    println!("{what}");
    let dir = scratch();
    let [of_agents, of_client] = match carried {
        Carried::WithKeys => keys(dir.path()),
        Carried::OnSockets => ["--insecure".into(), "--insecure".into()],
    };
    let homes = ["a", "b"].map(|name| home(dir.path(), name));
    let mut agents = homes.each_ref().map(|home| {
        let address = match carried {
            Carried::WithKeys => "--server=ip:127.0.0.1,0".to_owned(),
            Carried::OnSockets => format!("--server=sock:{}", home.join("s").display()),
        };
        let words = [address.as_str(), &of_agents, "--client-timeout=6s"];
        Agent::of(Running::start(&mut server(home, &words)))
    });
    let proxy = match carried {
        Carried::WithKeys => Proxy::on_port(&agents[0].address),
        Carried::OnSockets => Proxy::on_socket(&dir.path().join("proxy"), homes[0].join("s")),
    };
    proxy.plan(plan);
    fs::write(dir.path().join("job.fio"), SLOW).unwrap();
    let policy = format!("--client-lost={}", if aborts { "abort" } else { "continue" });
    let through = format!("--client={}", proxy.address);
    let words = [&of_client, "--client-timeout=6s", &policy, "--output-format=json", &through];
    let finished = run(dir.path(), &[&words[..], &[&agents[1].client(), "job.fio"]].concat());
    let told = format!("{what}: {finished}");

    let (code, has_come) = (finished.code(), proxy.has_come());
    assert!(code == 0 || (code == 1 && has_come), "{told}");
    if finished.stdout.is_empty() {
        assert!(code == 1 && finished.stderr.contains(&format!("{through}: ")), "it was not reached: {told}");
    } else {
        let json = Json::parse(&finished.stdout);
        let hosts = json.0["hosts"].as_array().unwrap();
        // If the machine has sent its report, only the files of its run can be lost.
        let without_files = finished.stderr.contains("what its run has left does not come back");
        let is_lost = hosts[0]["lost"].is_string();
        assert!(code == i32::from(is_lost || without_files), "{told}");
        assert!(hosts[1].get("lost").is_none(), "{told}");
        let of = |host: &str| {
            let stats = json.0["client_stats"].as_array().unwrap();
            stats.iter().filter(|job| job["hostname"] == host).map(written).sum::<u64>()
        };
        let address = |text: &str| text.trim_start_matches("sock:").split(',').next().unwrap().to_owned();
        if carried == Carried::OnSockets {
            // (Over TCP, both machines have the same address.)
            let other = of(&address(&agents[1].address));
            assert!(other == 32 || (code == 1 && aborts && other < 32), "{told}");
        }
        let all = written(json.0["client_stats"].as_array().unwrap().last().unwrap_or(&Value::Null));
        match (code, aborts) {
            (0, _) => assert_eq!(all, 64, "{told}"),
            (_, false) => assert!((32..=64).contains(&all), "{told}"),
            (_, true) => assert!(all <= 64, "{told}"),
        }
    }
    drop(proxy);
    for (agent, home) in agents.iter_mut().zip(&homes) {
        check_leaves_nothing(agent, home);
    }
    // Both machines can be used again.
    let [first, second] = agents.each_ref().map(Agent::client);
    run(dir.path(), &[&of_client, &first, &second, "job.fio"]).ok();
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

#[test]
pub fn connections_fail_somehow_at_some_moment() {
    let seed = seed();
    thread::scope(|scope| {
        for number in 0..6 {
            let carried = if number % 3 == 2 { Carried::OnSockets } else { Carried::WithKeys };
            scope.spawn(move || round(number, carried, &mut Luck::of(seed.wrapping_add(number))));
        }
    });
}

/// Replaying a recorded connection of a client starts nothing.
#[test]
pub fn a_replayed_connection_starts_no_run() {
    let dir = scratch();
    let [of_agents, of_client] = keys(dir.path());
    let home = home(dir.path(), "a");
    let words = ["--server=ip:127.0.0.1,0", &of_agents];
    let mut agent = Agent::of(Running::start(&mut server(&home, &words)));
    let proxy = Proxy::on_port(&agent.address);
    fs::write(dir.path().join("job.fio"), TWO).unwrap();
    run(dir.path(), &[&of_client, &format!("--client={}", proxy.address), "job.fio"]).ok();
    fs::remove_file(home.join("f")).unwrap();
    let heard = proxy.heard();
    assert!(heard.len() > 1000, "{} bytes", heard.len());
    // The recording is sent at once, and then as a client would send it: the messages after the handshake wait for its
    // answer.
    for waits in [false, true] {
        let mut stream = TcpStream::connect(agent.address.replace(',', ":")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let first = if waits { 5 + usize::from(u16::from_be_bytes([heard[3], heard[4]])) } else { 0 };
        stream.write_all(&heard[..first]).unwrap();
        if waits {
            stream.read_exact(&mut [0]).unwrap();
        }
        // (The agent may have closed the connection.)
        let _ = stream.write_all(&heard[first..]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    agent.running.wait_until("its messages about both", |running| {
        running.output().lines().filter(|line| line.contains("server: 127.0.0.1: ")).count() == 2
    });
    let said = agent.end();
    assert_eq!(said.stderr.matches("runs jobs for").count(), 1, "{said}");
    assert!(!home.join("f").exists());
}

/// Frames that are longer than their content, or unexpected, end the connection with a message.
#[test]
pub fn overlong_and_unexpected_frames_end_the_connection() {
    let dir = scratch();
    let mut agent = Agent::on_port(dir.path());
    let mut greeting = b"iolite remote 1\n".to_vec();
    greeting.resize(64, 0);
    let hello = |program: &str| {
        use iolite_remote::message::{Hello, ToAgent};
        let hello = Hello { program: program.to_owned(), machine: "m".into(), pid: 1 };
        iolite_remote::frame::encode(&ToAgent::Hello(hello)).unwrap()
    };
    let version = run(dir.path(), &["--version"]).ok().stdout.trim().to_owned();
    let mut long = vec![1];
    long.extend((64 << 20 | 1_u32).to_be_bytes());
    let cases = [
        (long.clone(), "a frame of kind 1 with 67108865 bytes; at most 67108864 are allowed"),
        (vec![2, 255, 255, 255, 255], "a frame of kind 2 with 4294967295 bytes; at most 256"),
        (vec![99, 0, 0, 0, 0], "a frame of kind 99, which is none of this protocol"),
        (vec![2, 0, 0, 0, 1, 0xff], "a frame of kind 2 that is damaged"),
        (vec![1, 0, 0, 0, 1, 0xff], "the request for a run is damaged"),
    ];
    for (bytes, why) in cases {
        let mut stream = TcpStream::connect(agent.address.replace(',', ":")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&[&greeting[..], &hello(&version), &bytes].concat()).unwrap();
        let mut answer = Vec::new();
        // Reads until the agent closes the connection.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.starts_with(b"iolite remote 1\n"), "{why}");
        agent.running.wait_until(why, |running| running.output().contains(why));
    }
    // The first message must be a short greeting: no memory is allocated for anything else.
    let mut stream = TcpStream::connect(agent.address.replace(',', ":")).unwrap();
    stream.write_all(&[&greeting[..], &long].concat()).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    let said = agent.end();
    assert!(!said.stderr.contains("runs jobs for"), "{said}");
}

/// Sixteen machines, each in a separate network.
struct Machines {
    network: Network,
    agents: Vec<Agent>,
    homes: Vec<PathBuf>,
    of_client: String,
}

const MANY: usize = 16;

impl Machines {
    fn start(dir: &Path) -> std::io::Result<Machines> {
        let network = Network::new(MANY)?;
        let [of_agents, of_client] = keys(dir);
        let homes: Vec<PathBuf> = (0..MANY).map(|number| home(dir, &format!("m{number}"))).collect();
        // All start at the same time.
        let starting: Vec<Running> = (0..MANY)
            .map(|number| {
                let address = format!("--server=ip:{},0", network.address(number));
                let mut command = server(&homes[number], &[&address, &of_agents, "--client-timeout=6s"]);
                network.machines[number].enter(&mut command);
                Running::start(&mut command)
            })
            .collect();
        let agents = starting.into_iter().map(Agent::of).collect();
        Ok(Machines { network, agents, homes, of_client })
    }

    /// Starts a client at the switch, with this limit on open files.
    fn client(&self, dir: &Path, files: u32, words: &[&str]) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -S -n {files}; exec \"$@\""), "sh"]);
        command.arg(&Program::own().path).arg(&self.of_client).args(words).current_dir(dir);
        self.network.switch.enter(&mut command);
        Running::start(&mut command)
    }
}

#[test]
pub fn machines_in_networks_of_their_own() {
    let dir = scratch();
    let mut machines = match Machines::start(dir.path()) {
        Ok(machines) => machines,
        Err(error) => skip!("networks of its own cannot be made: {error}"),
    };
    let list: String = machines.agents.iter().map(|agent| format!("{}\n", agent.address)).collect();
    fs::write(dir.path().join("hosts"), list).unwrap();
    fs::write(dir.path().join("job.fio"), TWO).unwrap();
    // There are more connections than the soft limit on open files allows.
    let words = ["--output-format=json", "--client=hosts", "job.fio"];
    let json = Json::parse(&machines.client(dir.path(), 16, &words).wait().ok().stdout);
    let stats = json.0["client_stats"].as_array().unwrap();
    let (all, rest) = stats.split_last().unwrap();
    assert_eq!((written(all), rest.len()), (16 * MANY as u64, 2 * MANY), "{}", json.0);
    for number in 0..MANY {
        let address = machines.network.address(number);
        assert_eq!(rest.iter().filter(|job| job["hostname"] == *address).map(written).sum::<u64>(), 16);
    }
    assert!(json.0["start"]["spread_ns"].is_u64(), "{}", json.0);

    // One machine loses its cable, one its agent, one its run, one a worker, each at a random moment of the run.
    let mut luck = Luck::new();
    let endless = "[long]\nrw=write\nbs=4k\nsize=64k\nthinktime=5ms\ntime_based\nruntime=8s\n";
    fs::write(dir.path().join("job.fio"), endless).unwrap();
    let words = ["--client-timeout=6s", "--status-interval=500ms", "--output-format=json", "--client=hosts"];
    let mut client = machines.client(dir.path(), 1024, &[&words[..], &["job.fio"]].concat());
    // All machines have reported measurements.
    client.wait_until("an interim report", |client| {
        let all_have = |report: &Value| {
            let stats = report["client_stats"].as_array().unwrap();
            stats.len() == MANY + 1 && stats.iter().all(|job| written(job) > 0)
        };
        reports(&client.stdout()).last().is_some_and(all_have)
    });
    let mut victims: Vec<usize> = (0..MANY).collect();
    let [cut_off, without_agent, without_run, without_worker] =
        [(); 4].map(|()| victims.swap_remove(luck.below(victims.len() as u64) as usize));
    let children = |machine: usize| children_of(machines.agents[machine].running.pid());
    let pause = |luck: &mut Luck| thread::sleep(Duration::from_millis(luck.below(400)));
    machines.network.connect(cut_off, false);
    let pulled = Instant::now();
    pause(&mut luck);
    machines.agents[without_agent].running.signal(libc::SIGKILL);
    pause(&mut luck);
    children(without_run).into_iter().for_each(|run| send(run, libc::SIGKILL));
    pause(&mut luck);
    // A process without children is a worker.
    let family = machines.agents[without_worker].family();
    send(family.into_iter().find(|one| children_of(*one).is_empty()).unwrap(), libc::SIGKILL);
    let address = machines.agents[cut_off].address.clone();
    client.wait_until("its message", |client| {
        let output = client.output();
        output.lines().any(|line| line.contains(&address) && line.contains("it was silent for 6s"))
    });
    println!("named after {:?}", pulled.elapsed());
    let finished = client.wait();
    assert_eq!(finished.code(), 1, "{finished}");
    let json = reports(&finished.stdout).pop().unwrap();
    for number in 0..MANY {
        let host = &json["hosts"][number];
        let is_lost = [cut_off, without_agent, without_run].contains(&number);
        assert_eq!(host["lost"].is_string(), is_lost, "{number}: {finished}");
        let address = machines.network.address(number);
        let stats = json["client_stats"].as_array().unwrap();
        let job = stats.iter().find(|job| job["hostname"] == *address).unwrap();
        assert!(written(job) > 0, "the measurements are lost: {number}: {finished}");
        let has_failed = job["error"] != 0;
        assert_eq!(has_failed, is_lost || number == without_worker, "{number}: {finished}");
        if !is_lost && number != without_worker {
            assert!(job["write"]["runtime"].as_u64() >= Some(7900), "{number}: {finished}");
        }
    }
    // Reconnects the machine that was cut off.
    machines.network.connect(cut_off, true);
    machines.homes.remove(without_agent);
    let killed = machines.agents.remove(without_agent);
    killed.running.wait();
    for (agent, home) in machines.agents.iter_mut().zip(&machines.homes) {
        check_leaves_nothing(agent, home);
    }
    let list: String = machines.agents.iter().map(|agent| format!("{}\n", agent.address)).collect();
    fs::write(dir.path().join("hosts"), list).unwrap();
    fs::write(dir.path().join("job.fio"), TWO).unwrap();
    machines.client(dir.path(), 1024, &["--client=hosts", "job.fio"]).wait().ok();
    machines.agents.into_iter().for_each(|agent| drop(agent.end()));
}

/// On a slow connection, all messages take longer, and the result is the same.
#[test]
pub fn slow_connections_are_not_failures() {
    let dir = scratch();
    let [of_agents, of_client] = keys(dir.path());
    let homes = ["near", "far"].map(|name| home(dir.path(), name));
    let words = ["--server=ip:127.0.0.1,0", &of_agents];
    let agents = homes.each_ref().map(|home| Agent::of(Running::start(&mut server(home, &words))));
    let proxy = Proxy::on_port(&agents[1].address);
    proxy.delay(15);
    fs::write(dir.path().join("job.fio"), TWO).unwrap();
    let words = ["--output-format=json", &of_client, &agents[0].client()];
    let far = format!("--client={}", proxy.address);
    let json = Json::parse(&run(dir.path(), &[&words[..], &[&far, "job.fio"]].concat()).ok().stdout);
    let all = json.0["client_stats"].as_array().unwrap().last().unwrap();
    assert_eq!(written(all), 32, "{}", json.0);
    // The uncertainty is half a round trip.
    assert!(json.0["start"]["uncertainty_ns"].as_u64() >= Some(15_000_000), "{}", json.0);
    // A machine that has become silent is named.
    fs::write(dir.path().join("job.fio"), SLOW.replace("size=64k", "size=4m")).unwrap();
    let words = [&of_client, "--client-timeout=2s", "--client-lost=abort", &far, &agents[0].client()];
    let mut client = Program::own().start(dir.path(), [&words[..], &["job.fio"]].concat());
    client.wait_until("its jobs", |_| agents.iter().all(|agent| agent.family().len() >= 4));
    proxy.stall();
    let finished = client.wait().refused();
    assert!(finished.stderr.contains("the host is lost: it was silent for 2s"), "{finished}");
    drop(proxy);
    for (mut agent, home) in agents.into_iter().zip(&homes) {
        check_leaves_nothing(&mut agent, home);
        agent.end();
    }
}
