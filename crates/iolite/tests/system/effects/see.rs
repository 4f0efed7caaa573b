//! The ways to observe a run from outside.

use super::run;
use crate::common::program::Running;
use crate::common::trace::asked_sleeps;
use crate::common::{Finished, Json, Program, files_in, scratch, words};
use iolite_testing::write_program;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// An observation of a run, as text for comparison.
pub enum See {
    /// These system calls of the workers with their arguments, in order (sorted if there are several workers), without
    /// random parts: addresses, data, the directory.
    Calls(&'static str),
    /// The calls among these that contain the second text.
    CallsWith(&'static str, &'static str),
    /// The same for runs that the system may refuse. The attempt is the effect.
    Attempts(&'static str, &'static str),
    /// These calls of the workers on internet sockets, in order.
    Sockets(&'static str),
    /// Whether all buffers begin at multiples of this many bytes.
    BuffersAligned(u64),
    /// The names and sizes of all files.
    Files,
    /// The names of all files.
    Names,
    /// The number of lines of a log, and the number of fields per line.
    Shape(&'static str),
    /// The values of one column of a log.
    Column(&'static str, usize),
    /// The content of the files that the job wrote.
    Content,
    /// These bytes of the file `f`.
    Bytes(usize, usize),
    /// The content of this file.
    File(&'static str),
    /// The value at this path of the JSON report (`jobs.0.read.total_ios`); `null` if there is none.
    Json(&'static str),
    /// The keys at this path.
    Keys(&'static str),
    /// Whether the number at this path is at least this.
    AtLeast(&'static str, f64),
    /// Whether the numbers at all these paths are multiples of this.
    Multiples(&'static [&'static str], u64),
    /// The exit status.
    Status,
    /// The exit status, and whether the output contains this text: for refusals.
    Refused(&'static str),
    /// This observation, of runs that must fail.
    OfFailing(&'static See),
    /// The exit status after a successful run of this line.
    StatusAfter(&'static str),
    /// Whether the output contains this text.
    Says(&'static str),
    /// The first word of the output that begins with this.
    Word(&'static str),
    /// Whether the output contains this text this often. As soon as it does, the run is killed.
    Shows(&'static str, usize),
    /// Whether the workers request at least this many milliseconds of sleep in total.
    Sleeps(u64),
    /// Whether the job uses at least this many milliseconds of CPU time.
    Works(u64),
    /// Whether the page cache contains a part of the file `f` afterwards.
    Cached,
}

/// Files that exist before each run: scripts that describe the process that calls them, and files to read.
pub struct Stage;

impl Stage {
    /// Creates them in a directory.
    pub fn set(dir: &Path) {
        const SCRIPTS: [(&str, &str); 6] = [
            ("see-files", "ls"),
            ("see-nice", "ps -o ni= -p $PPID"),
            ("see-cpus", "grep Cpus_allowed_list /proc/$PPID/status"),
            ("see-prio", "ionice -p $PPID"),
            ("see-comm", "cat /proc/$PPID/comm"),
            ("see-ids", "id -u; id -g"),
        ];
        // One program with six names: each of thousands of runs has them, and writing one takes a process.
        let cases = SCRIPTS.map(|(name, command)| format!("{name}) {command} ;;\n")).concat();
        let all = dir.join("see-all");
        write_program(&all, &format!("#!/bin/sh\ncase ${{0##*/}} in\n{cases}esac\n"))
            .expect("a script can be written");
        for (name, _) in SCRIPTS {
            fs::hard_link(&all, dir.join(name)).expect("a link can be made");
        }
        for (name, size) in [("in/x", 64), ("in2/y", 32)] {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().expect("in a directory")).expect("a directory can be made");
            fs::write(path, vec![b'x'; size << 10]).expect("a file can be written");
        }
        let jobs = "[global]\nioengine=null\nsize=4k\n[first]\nrw=read\n[second]\nrw=read\n";
        fs::write(dir.join("job.fio"), jobs).expect("a job file can be written");
        let trace = "fio version 3 iolog\n0 t add\n0 t open\n0 t write 0 4096\n0 t read 0 4096\n0 t write 9216 1024\n\
                     600000 t write 12288 512\n600000 t close\n";
        fs::write(dir.join("trace"), trace).expect("a trace can be written");
        // Commands may run as another user, who needs access.
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).expect("the directory is ours");
    }

    /// Whether this file belongs to the stage. All other files are from the run.
    fn is_its(name: &str) -> bool {
        name.starts_with("see-") || name.starts_with("in2/") || name == "job.fio" || name == "trace"
    }
}

impl See {
    /// Runs a line and observes it; `None` = this is impossible here. Every run has to succeed, unless its exit status
    /// is the observation.
    pub fn look(&self, dir: &Path, line: &str) -> Option<String> {
        self.look_at(dir, line, Finished::ok)
    }

    /// [`See::look`]; `expect` checks the run.
    fn look_at(&self, dir: &Path, line: &str, expect: fn(Finished) -> Finished) -> Option<String> {
        Some(match self {
            See::Calls(names) => calls(dir, line, names, "", expect)?,
            See::Sockets(names) => {
                let log = trace(dir, line, names, &[], expect)?;
                let is_of_run =
                    |call: &String| ["AF_UNIX", "AF_NETLINK"].iter().any(|family| call.contains(family));
                let calls = joined(&log).into_iter().filter(|call| !is_of_run(call));
                calls.map(|call| plain(&call)).collect::<Vec<_>>().join("\n")
            }
            See::CallsWith(names, part) => calls(dir, line, names, part, expect)?,
            See::Attempts(names, part) => {
                let seen = calls(dir, line, names, part, |run| run)?;
                assert!(!seen.is_empty(), "it was not tried\n{line}");
                seen
            }
            See::BuffersAligned(bytes) => aligned(dir, line, *bytes, expect)?.to_string(),
            See::Files
            | See::Names
            | See::Shape(_)
            | See::Column(..)
            | See::Content
            | See::Bytes(..)
            | See::File(_) => {
                expect(run(dir, line));
                self.left_behind(dir)
            }
            See::Json(path) => value(&json(dir, line, expect).0, path).to_string(),
            See::Keys(path) => keys(value(&json(dir, line, expect).0, path)),
            See::AtLeast(path, least) => {
                let report = json(dir, line, expect);
                let number = value(&report.0, path);
                let number =
                    number.as_f64().unwrap_or_else(|| panic!("{path} is not a number: {number}\n{line}"));
                (number >= *least).to_string()
            }
            See::Multiples(paths, of) => {
                let report = json(dir, line, expect);
                let is_multiple =
                    |path: &&str| value(&report.0, path).as_u64().is_some_and(|number| number % of == 0);
                paths.iter().all(is_multiple).to_string()
            }
            See::Status => run(dir, line).code().to_string(),
            See::Refused(why) => {
                let run = run(dir, line);
                format!("{} {}", run.code(), run.output().contains(why))
            }
            See::OfFailing(see) => see.look_at(dir, line, Finished::refused)?,
            See::StatusAfter(before) => {
                run(dir, before).ok();
                run(dir, line).code().to_string()
            }
            See::Says(text) => expect(run(dir, line)).output().contains(text).to_string(),
            See::Word(prefix) => word(&expect(run(dir, line)), prefix),
            See::Shows(text, times) => {
                let mut running = Program::under_test().start(dir, line.split_whitespace());
                let shown =
                    running.comes_to("its end", |running| running.output().matches(text).count() >= *times);
                if !shown {
                    expect(running.wait());
                }
                shown.to_string()
            }
            See::Sleeps(milliseconds) => {
                let (run, asked) = asked_sleeps(&Program::under_test(), dir, &words(line))?;
                expect(run);
                (asked.iter().sum::<Duration>() >= Duration::from_millis(*milliseconds)).to_string()
            }
            See::Works(milliseconds) => {
                let report = json(dir, line, expect);
                let job = report.job();
                // CPU usage is in percent of the job's run time.
                let share = (job.float("usr_cpu") + job.float("sys_cpu")) / 100.0;
                (share * job.int("job_runtime") as f64 >= *milliseconds as f64).to_string()
            }
            See::Cached => {
                expect(run(dir, line));
                is_cached(&dir.join("f"))?.to_string()
            }
        })
    }

    /// The observation of the files that a run left in its directory.
    fn left_behind(&self, dir: &Path) -> String {
        let read = |name: &str| fs::read_to_string(dir.join(name));
        match self {
            See::Files => format!("{:?}", files_in(dir)),
            See::Names => files_in(dir).into_iter().map(|(name, _)| name + "\n").collect(),
            See::Shape(name) => {
                let log = read(name).unwrap_or_default();
                let fields = log.lines().next().map_or(0, |line| line.split(',').count());
                format!("{} lines of {fields}", log.lines().count())
            }
            See::Column(name, column) => {
                let log = read(name).unwrap_or_default();
                log.lines().map(|line| line.split(',').nth(*column).unwrap_or("none").to_string()).collect()
            }
            See::Content => content(dir),
            See::Bytes(from, to) => {
                format!("{:?}", fs::read(dir.join("f")).expect("the job wrote it").get(*from..*to))
            }
            See::File(name) => read(name).unwrap_or_else(|error| error.to_string()),
            _ => unreachable!("nothing of this is in the directory"),
        }
    }
}

/// Whether any page of a file is in the page cache, according to fincore(1).
fn is_cached(file: &Path) -> Option<bool> {
    let output = Command::new("fincore")
        .args(["--noheadings", "--raw", "--bytes", "--output", "RES"])
        .arg(file)
        .output();
    let text = String::from_utf8(output.ok()?.stdout).expect("a number is text");
    let bytes: u64 = text.trim().parse().unwrap_or_else(|_| panic!("fincore says {text:?}"));
    Some(bytes > 0)
}

fn word(run: &Finished, prefix: &str) -> String {
    let found = run.stdout.split([' ', '\n', ',', '(']).find(|word| word.starts_with(prefix));
    found.unwrap_or_default().to_string()
}

fn json(dir: &Path, line: &str, expect: fn(Finished) -> Finished) -> Json {
    let finished = expect(run(dir, &format!("--output-format=json {line}")));
    Json::parse(&finished.stdout)
}

fn value<'a>(report: &'a serde_json::Value, path: &str) -> &'a serde_json::Value {
    path.split('.').fold(report, |value, key| match key.parse::<usize>() {
        Ok(index) if value.is_array() => &value[index],
        _ => &value[key],
    })
}

fn keys(value: &serde_json::Value) -> String {
    match value.as_object() {
        Some(map) => map.keys().cloned().collect::<Vec<_>>().join(" "),
        None => "none".to_string(),
    }
}

fn content(dir: &Path) -> String {
    run_files(dir)
        .into_iter()
        .map(|name| {
            let mut hasher = DefaultHasher::new();
            fs::read(dir.join(&name)).expect("a file can be read").hash(&mut hasher);
            format!("{name} {:x}\n", hasher.finish())
        })
        .collect()
}

fn run_files(dir: &Path) -> Vec<String> {
    files_in(dir).into_iter().map(|(name, _)| name).filter(|name| !Stage::is_its(name)).collect()
}

/// The log of strace for these calls, with these additional arguments of strace. `expect` checks the run.
fn trace(
    dir: &Path,
    line: &str,
    names: &str,
    arguments: &[&str],
    expect: fn(Finished) -> Finished,
) -> Option<String> {
    let logs = scratch();
    let log = logs.path().join("log");
    let mut command = Command::new("strace");
    // strace limits the array of io_submit's requests like data.
    let shown = if names == "io_submit" { "64" } else { "0" };
    command.args(["-f", "-qq", "-s", shown, "--seccomp-bpf", "-e", &format!("trace={names}")]);
    command.args(arguments).arg("-o").arg(&log).arg("--").arg(&Program::under_test().path);
    command.args(line.split_whitespace()).current_dir(dir);
    if Command::new("strace").arg("-V").output().is_err() {
        return None;
    }
    // (The exit status of strace is that of the program.)
    expect(Running::start(&mut command).wait());
    Some(fs::read_to_string(log).expect("strace wrote its log"))
}

fn calls(
    dir: &Path,
    line: &str,
    names: &str,
    part: &str,
    expect: fn(Finished) -> Finished,
) -> Option<String> {
    let log = trace(dir, line, names, &["-y"], expect)?;
    let here = format!("{}/", dir.canonicalize().expect("the directory is there").display());
    let wanted = |text: &&str| {
        let about_a_file = text.contains('<') || text.contains("openat");
        text.contains(part) && (!about_a_file || text.contains(&here) || !text.contains("</"))
    };
    let whole: Vec<String> = joined(&log);
    let mut told: Vec<String> = whole
        .iter()
        .map(String::as_str)
        .filter(|text| !FOREIGN.iter().any(|part| text.contains(part)))
        .filter(wanted)
        .map(|text| plain(&text.replace(&here, "").replace(here.trim_end_matches('/'), ".")))
        .collect();
    if line.contains("numjobs") || line.matches("--name").count() > 1 {
        told.sort();
    }
    Some(told.join("\n"))
}

/// Texts that mark calls which do not concern the job's files or memory.
const FOREIGN: [&str; 7] = ["/proc/", "/sys/", ".so", "socket:[", "pipe:[", "[signalfd]", "fio-dump-status"];

/// The calls of a log, with the halves of interrupted calls joined.
fn joined(log: &str) -> Vec<String> {
    let mut halves: Vec<(&str, &str)> = Vec::new();
    let mut whole = Vec::new();
    // Lines about detached processes, and about calls whose entry strace has not seen (`???`), name no call.
    let told = |line: &&str| !line.contains("<detached ...>") && !line.contains("???(");
    for line in log.lines().filter(told) {
        let (pid, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim_start();
        if let Some(half) = rest.strip_suffix(" <unfinished ...>") {
            halves.push((pid, half));
        } else if let Some((_, second)) =
            rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"))
        {
            let first = halves.iter().position(|(owner, _)| *owner == pid).map(|at| halves.remove(at).1);
            whole.push(format!("{}{second}", first.unwrap_or_default()));
        } else if !rest.starts_with("+++") && !rest.starts_with("---") {
            whole.push(rest.to_string());
        }
    }
    whole
}

/// A call without its result, addresses and descriptor numbers.
fn plain(call: &str) -> String {
    let call = call.rsplit_once(" = ").map_or(call, |(call, _)| call);
    let mut plain = String::new();
    let mut rest = call;
    while let Some(at) = rest.find("0x") {
        plain += &rest[..at + 2];
        rest = rest[at + 2..].trim_start_matches(|byte: char| byte.is_ascii_hexdigit());
    }
    plain += rest;
    // The number of a descriptor depends on the other open files.
    let mut parts = plain.split('<');
    let mut without =
        parts.next().unwrap_or_default().trim_end_matches(|byte: char| byte.is_ascii_digit()).to_string();
    for part in parts {
        without += "<";
        without += part;
    }
    without
}

/// Whether the buffers of all reads and writes of 4 KiB begin at multiples of this many bytes.
fn aligned(dir: &Path, line: &str, bytes: u64, expect: fn(Finished) -> Finished) -> Option<bool> {
    let log = trace(dir, line, "pread64,pwrite64", &["-e", "raw=pread64,pwrite64"], expect)?;
    let addresses: Vec<u64> = joined(&log)
        .iter()
        .filter_map(|call| {
            let mut arguments = call.split('(').nth(1)?.split(", ");
            let address = u64::from_str_radix(arguments.nth(1)?.strip_prefix("0x")?, 16).ok()?;
            // Shorter reads are those of libraries.
            let length = u64::from_str_radix(arguments.next()?.strip_prefix("0x")?, 16).ok()?;
            (length == 4096).then_some(address)
        })
        .collect();
    assert!(!addresses.is_empty(), "{log}");
    Some(addresses.iter().all(|address| address % bytes == 0))
}
