//! Compares clients and servers with those of fio, over Unix sockets: both programs run the same command lines, and
//! parts of their output must be equal. The intended differences are in docs/compatibility.md.

use crate::common::comparison::{Counts, comparable, compare_json, compare_lines};
use crate::common::program::Running;
use crate::common::{Finished, Json, Program, at_once, files_in, peers, scratch};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The job files. Clients send all but the last one.
const FILES: [(&str, &str); 5] = [
    (
        "two.fio",
        "[global]\nioengine=psync\nsize=64k\nbs=4k\nfilename=f\n[one]\nrw=write\n[two]\nstonewall\nrw=randread\n",
    ),
    ("plain.fio", "[plain]\nioengine=psync\nrw=write\nbs=8k\nsize=64k\nnumber_ios=5\n"),
    (
        "grouped.fio",
        "[global]\nioengine=psync\nrw=write\nbs=4k\nsize=64k\ngroup_reporting\n[x]\nnumjobs=2\n[y]\nfsync=4\n",
    ),
    ("full.fio", "[full]\nioengine=psync\nfilename=/dev/full\nrw=write\nbs=4k\nsize=64k\n"),
    ("there.fio", "[there]\nioengine=psync\nrw=write\nbs=16k\nsize=128k\n"),
];

/// The parts of a run to compare.
#[derive(Clone, Copy, PartialEq)]
enum Compared {
    /// The reports, and the files that the run leaves.
    All,
    /// The errors of the jobs: the messages of fio are different.
    Errors,
    /// Only the exit status, because no job runs.
    Status,
}

use Compared::{All, Errors, Status};

/// Command lines; `A` and `B` are two servers.
const CASES: [(Compared, &str); 9] = [
    (All, "--client=A two.fio"),
    (All, "--client=A plain.fio"),
    (All, "--client=A grouped.fio"),
    (All, "--client=A two.fio --client=B two.fio"),
    (All, "--client=A plain.fio --client=B two.fio"),
    (All, "--client=hosts grouped.fio"),
    (All, "--client=A --remote-config=there.fio"),
    (Errors, "--client=A full.fio"),
    (Status, "--client=A missing.fio"),
];

/// A program with two servers. Each server has its own directory, so that they share no files.
struct Pair {
    program: Program,
    servers: Vec<Running>,
    dir: tempfile::TempDir,
}

impl Pair {
    fn start(program: Program) -> Pair {
        let dir = scratch();
        for (name, text) in FILES {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let servers = ["A", "B"].map(|name| {
            let home = dir.path().join(name);
            fs::create_dir(&home).unwrap();
            fs::write(home.join("there.fio"), FILES[4].1).unwrap();
            let mut command = Command::new(&program.path);
            command.arg(format!("--server=sock:{}", home.join("s").display())).current_dir(&home);
            let mut server = Running::start(&mut command);
            server.wait_until("its socket", |_| home.join("s").exists());
            server
        });
        let hosts: String = ["A", "B"].map(|name| address(dir.path(), name) + "\n").concat();
        fs::write(dir.path().join("hosts"), hosts).unwrap();
        Pair { program, servers: servers.into(), dir }
    }

    fn run(&self, line: &str, format: &str) -> Finished {
        let word = |word: &str| match word.strip_prefix("--client=") {
            Some(name @ ("A" | "B")) => format!("--client={}", address(self.dir.path(), name)),
            _ => word.to_owned(),
        };
        let words = line.split_whitespace().map(word);
        self.program.run(self.dir.path(), words.chain([format!("--output-format={format}")]))
    }

    fn files(&self) -> Vec<(String, u64)> {
        let kept = |(name, _): &(String, u64)| name.starts_with(['A', 'B']) && !name.ends_with("/s");
        files_in(self.dir.path()).into_iter().filter(kept).collect()
    }

    fn end(self) {
        for server in self.servers {
            server.signal(libc::SIGKILL);
            server.wait();
        }
    }
}

fn address(dir: &Path, name: &str) -> String {
    format!("sock:{}", dir.join(name).join("s").display())
}

/// Converts a JSON report to that of one machine, for [`compare_json`]. The jobs are sorted by machine (fio sorts by
/// end), and the machines have the names from this test.
fn as_of_one(report: &Json) -> Json {
    let mut all = serde_json::Map::new();
    for (key, mut part) in report.0.as_object().unwrap().clone() {
        if let Some(elements) = part.as_array_mut() {
            for element in elements.iter_mut() {
                let path = element["hostname"].as_str().unwrap().to_owned();
                let is_all = element["jobname"] == "All clients";
                if is_all {
                    // In fio's report, it is the groupid of the machine whose report came last.
                    element["groupid"] = Value::from(0);
                }
                let name = path.trim_end_matches("/s").rsplit('/').next().unwrap();
                element["hostname"] = Value::from(if is_all { "all" } else { name });
            }
            elements.sort_by_key(|element| element["hostname"].as_str().unwrap().to_owned());
        }
        all.insert(if key == "client_stats" { "jobs".to_owned() } else { key }, part);
    }
    Json(Value::Object(all))
}

/// Converts global options to the form of releases before 3.41 for several servers: one object, without the servers.
fn of_all_servers(options: &mut Value) {
    let Some(of_each) = options.as_array() else { return };
    let pairs = of_each.iter().flat_map(|options| options.as_object().unwrap().clone());
    *options =
        pairs.filter(|(key, _)| key != "hostname" && key != "port").collect::<serde_json::Map<_, _>>().into();
}

fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

fn compare_in_json(what: &str, ours: &Json, theirs: &Json, program: &Program) {
    let (mut ours, theirs) = (ours.clone(), theirs.clone());
    // fio's clients do not print these keys, but its other reports have them.
    ours.0.as_object_mut().unwrap().retain(|key, _| key != "timestamp_ms" && key != "iolite version");
    for job in ours.0["client_stats"].as_array_mut().unwrap() {
        job.as_object_mut().unwrap().retain(|key, _| key != "eta" && key != "elapsed");
    }
    assert_eq!(keys(&ours.0), keys(&theirs.0), "{what}");
    if theirs.0["global options"].is_object() {
        of_all_servers(&mut ours.0["global options"]);
    }
    let is_all = |job: &Value| job["jobname"] == "All clients";
    let has_all = theirs.0["client_stats"].as_array().unwrap().iter().any(is_all);
    let all = ours.0["client_stats"].as_array_mut().unwrap();
    assert!(is_all(all.last().unwrap()), "it is always there");
    if !has_all {
        // For a single job, fio has no sum.
        all.pop();
    }
    let release = program.release;
    let (ours, theirs) = (as_of_one(&ours), as_of_one(&theirs));
    let differences = compare_json(&ours, &theirs, release, Counts::Exact);
    assert!(differences.is_empty(), "{what}: {differences:#?}");
    let each = |json: Json| -> Vec<Vec<String>> {
        let jobs = json.told_like(release).0["jobs"].as_array().unwrap().clone();
        jobs.iter().map(keys).collect()
    };
    assert_eq!(each(ours), each(theirs), "{what}");
}

/// The lines that begin with the name of the machine, sorted (those of two machines are mixed), and the reports. Of
/// the block of all clients, only the parts in which fio makes no mistakes are kept.
fn parts(text: &str, program: &Program) -> (Vec<String>, Vec<String>) {
    let host = format!("<{}> ", iolite_remote::message::machine_name());
    // fio prints a line for each connection, and puts text for terminals in front of the next line.
    let lines = || {
        let lines = text.lines().map(|line| line.rsplit('\r').next().unwrap_or(line));
        lines.filter(|line| !line.starts_with("hostname="))
    };
    let (own, report): (Vec<&str>, Vec<&str>) =
        lines().partition(|line| line.strip_prefix(&host).is_some_and(|rest| !rest.is_empty()));
    let mut own: Vec<String> = own.iter().map(|line| program.release.in_words_of_3_42(line)).collect();
    own.sort();
    let mut is_of_all = false;
    let report = report.into_iter().filter(|line| {
        is_of_all |= line.starts_with("All clients: ");
        !is_of_all || line.starts_with("All clients: ") || line.contains("issued rwts")
    });
    // Each machine has its own report. If two machines end at the same time, fio prints both names before both reports.
    let (mut reports, mut hosts, mut is_at_its_end) = (vec![String::new()], 0, false);
    let mut of_all = String::new();
    for line in report {
        if line == host {
            hosts += 1;
            continue;
        }
        // fio's group number is that of the report that came last.
        if !of_all.is_empty() || line.starts_with("All clients: ") {
            let (before, group) = line.split_once("groupid=").unwrap_or((line, ""));
            of_all += &format!("{before}{}\n", group.split_once(',').map_or(group, |(_, rest)| rest));
            continue;
        }
        if is_at_its_end && line.contains(": (groupid=") {
            reports.push(String::new());
            is_at_its_end = false;
        }
        is_at_its_end |= line.starts_with("Run status group");
        *reports.last_mut().unwrap() += &format!("{line}\n");
    }
    own.push(format!("{hosts} hosts"));
    // fio prints the reports in the order in which the machines ended.
    reports.sort();
    reports.push(of_all);
    (own, reports.iter().flat_map(|text| comparable(text, program.release, Counts::Exact)).collect())
}

fn compare(compared: Compared, line: &str, ours: &Pair, theirs: &Pair) {
    let what = format!("{line} beside {}", theirs.program.path.display());
    let run = |pair: &Pair| ["normal", "json"].map(|format| pair.run(line, format));
    let ([our_normal, our_json], [their_normal, their_json]) = (run(ours), run(theirs));
    assert_eq!(our_normal.code(), their_normal.code(), "{what}: {our_normal}");
    if compared == Status {
        return;
    }
    let (our_json, their_json) = (Json::parse(&our_json.stdout), Json::parse(&their_json.stdout));
    if compared == Errors {
        let errors = |json: &Json| {
            let jobs = json.0["client_stats"].as_array().unwrap().iter();
            jobs.filter(|job| job["jobname"] != "All clients")
                .map(|job| job["error"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(errors(&our_json), errors(&their_json), "{what}");
        return;
    }
    compare_in_json(&what, &our_json, &their_json, &theirs.program);
    let (our_lines, mut our_report) = parts(&our_normal.stdout, &ours.program);
    let (their_lines, their_report) = parts(&their_normal.stdout, &theirs.program);
    if !their_report.iter().any(|line| line.starts_with("All clients")) {
        our_report.truncate(our_report.iter().position(|line| line.starts_with("All clients")).unwrap());
    }
    for (ours, theirs) in [(&our_lines, &their_lines), (&our_report, &their_report)] {
        let difference = compare_lines(crate::common::comparison::Aspect::Normal, ours, theirs);
        assert!(difference.is_none(), "{what}: {difference:#?}");
    }
    assert_eq!(ours.files(), theirs.files(), "{what}");
}

#[test]
pub fn clients_report_as_those_of_fio_do() {
    let links = scratch();
    at_once(2, peers!(), |peer| {
        let (ours, theirs) = (Pair::start(Program::called_fio(links.path())), Pair::start(peer));
        for (compared, line) in CASES {
            compare(compared, line, &ours, &theirs);
        }
        ours.end();
        theirs.end();
    });
}

/// Each form of an address that is documented for both ends, with `P` for the port. An empty host is all interfaces for
/// a server, and this machine for a client.
#[test]
fn addresses_have_the_forms_of_fio() {
    const FORMS: [(&str, &str); 6] = [
        (",P", ",P"),
        ("ip4:,P", "ip:,P"),
        ("ip6:,P", "ip6:,P"),
        ("ip6:,P", "ip4:,P"),
        ("localhost,P", "ip:localhost,P"),
        ("ip:,P", "hosts"),
    ];
    let links = scratch();
    at_once(3, [vec![Program::called_fio(links.path())], Program::peers()].concat(), |program| {
        let dir = scratch();
        fs::write(dir.path().join("job.fio"), "[job]\nioengine=null\nsize=64k\n").unwrap();
        for (server, client) in FORMS {
            // It is free again when the listener is dropped.
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
            let command = |word: String| {
                let mut command = Command::new(&program.path);
                command.arg(word).current_dir(dir.path()).env("IOLITE_INSECURE", "1");
                command
            };
            fs::write(dir.path().join("hosts"), format!(",{port}\n")).unwrap();
            let serving = Running::start(&mut command(format!("--server={}", server.replace('P', &port))));
            // Until the server listens, clients are refused.
            let reached = (0..300).find_map(|_| {
                let client = format!("--client={}", client.replace('P', &port));
                let finished = program.wait(Running::start(command(client).arg("job.fio")))?;
                std::thread::sleep(Duration::from_millis(if finished.code() == 0 { 0 } else { 50 }));
                (finished.code() == 0).then_some(finished)
            });
            serving.signal(libc::SIGKILL);
            let served = serving.wait();
            let reached =
                reached.unwrap_or_else(|| panic!("{} {server} {client}: {served}", program.version()));
            assert!(reached.stdout.contains("job: (groupid="), "{server} {client}: {reached}");
        }
    });
}
