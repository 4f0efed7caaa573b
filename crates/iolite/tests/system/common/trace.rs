//! The system calls of a program, observed with strace.

use crate::common::program::{Finished, Running};
use crate::common::{Program, scratch};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// One pread or pwrite.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The file, relative to the program's current directory.
    pub file: String,
    /// `pread64` or `pwrite64`.
    pub name: String,
    /// The offset.
    pub offset: u64,
    /// The requested length.
    pub length: u64,
}

/// Runs `program` in `dir` under strace. Returns strace's log of these system calls (`io_submit,openat`) in all
/// processes and threads; `None` = there is no strace, or it may not trace.
pub fn system_calls(
    program: &Program,
    dir: &Path,
    calls: &str,
    args: &[String],
) -> Option<(Finished, String)> {
    under_strace(program, dir, &[&format!("trace={calls}")], args)
}

/// Runs `program` in `dir` and delays each of these system calls by `by_ms`. `None` as above.
pub fn slowed(program: &Program, dir: &Path, call: &str, by_ms: u64, args: &[String]) -> Option<Finished> {
    slowed_when(program, dir, call, by_ms, "1+", args)
}

/// [`slowed`] for the calls that strace's `when` selects: `2+2` is every second one of a process.
pub fn slowed_when(
    program: &Program,
    dir: &Path,
    call: &str,
    by_ms: u64,
    when: &str,
    args: &[String],
) -> Option<Finished> {
    let delay = format!("inject={call}:delay_enter={}:when={when}", by_ms * 1000);
    under_strace(program, dir, &[&format!("trace={call}"), &delay], args).map(|(finished, _)| finished)
}

/// All sleeps that the workers of a run requested. Other work on the machine can only shorten them, because a late worker
/// sleeps less until its next I/O is due. But a long sleep counts in full even if a request of the controller ends it (an
/// interim report, say). Processes that start others are left out, because they sleep while they wait for these, and
/// while they measure the clock. `None` as above.
pub fn asked_sleeps(program: &Program, dir: &Path, args: &[String]) -> Option<(Finished, Vec<Duration>)> {
    let traced = "clock_nanosleep,nanosleep,futex,fork,vfork,clone,clone3";
    let (finished, log) = system_calls(program, dir, traced, args)?;
    let caller = |call: &str| call.split_whitespace().next().map(str::to_owned);
    // A long sleep waits for a request of the controller. (Waits within one process are private.)
    let sleeps = |call: &&str| call.contains("sleep") || call.contains("FUTEX_WAIT, ");
    let forks =
        |call: &&str| call.contains("fork(") || (call.contains("clone") && !call.contains("CLONE_THREAD"));
    let starters: HashSet<_> = log.lines().filter(|call| !sleeps(call)).filter(forks).map(caller).collect();
    let field = |call: &str, name: &str| -> Option<u64> {
        let number = call.split_once(name)?.1;
        number.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
    };
    let of_workers = log.lines().filter(|call| sleeps(call) && !starters.contains(&caller(call)));
    let asked = of_workers.filter_map(|call| {
        Some(Duration::new(field(call, "tv_sec=")?, u32::try_from(field(call, "tv_nsec=")?).ok()?))
    });
    let asked = asked.collect();
    Some((finished, asked))
}

/// The same with these arguments of strace's `-e`.
fn under_strace(
    program: &Program,
    dir: &Path,
    expressions: &[&str],
    args: &[String],
) -> Option<(Finished, String)> {
    if !Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success())
    {
        return None;
    }
    let logs = scratch();
    let log = logs.path().join("log");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "--seccomp-bpf"]);
    command.args(expressions.iter().flat_map(|expression| ["-e", expression])).arg("-o").arg(&log);
    command.arg("--").arg(&program.path).args(args).current_dir(dir);
    let finished = Running::start(&mut command).wait();
    let log = std::fs::read(&log).expect("strace has written its log");
    Some((finished, String::from_utf8_lossy(&log).into_owned()))
}

/// Runs `program` in `dir` under strace. Returns every pread and pwrite on files in `dir`, in order; `None` = there is
/// no strace, or it may not trace.
pub fn io_calls(program: &Program, dir: &Path, args: &[String]) -> Option<(Finished, Vec<Call>)> {
    let (finished, log) = system_calls(program, dir, "pread64,pwrite64", args)?;
    let dir = dir.canonicalize().expect("the directory exists");
    let prefix = format!("<{}/", dir.display());
    Some((finished, parse(&log, &prefix)))
}

/// The calls in a log of strace, without process IDs. strace prints a call in two halves if another process makes a
/// call meanwhile; these are joined.
pub fn whole_calls(log: &str) -> Vec<String> {
    let mut halves: HashMap<&str, &str> = HashMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let (pid, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim_start();
        if let Some(half) = rest.strip_suffix(" <unfinished ...>") {
            halves.insert(pid, half);
        } else if let Some((_, second)) =
            rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"))
        {
            calls.push(format!("{}{second}", halves.remove(pid).unwrap_or("")));
        } else {
            calls.push(rest.to_owned());
        }
    }
    calls
}

/// The calls on files whose path begins with `prefix` in a log of strace.
fn parse(log: &str, prefix: &str) -> Vec<Call> {
    whole_calls(log).iter().filter_map(|line| call(line, prefix)).collect()
}

/// `pread64(5</tmp/x/file>, "..."..., 4096, 8192) = 4096`
fn call(line: &str, prefix: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (_, rest) = rest.split_once(prefix)?;
    let (file, rest) = rest.split_once('>')?;
    // The data may contain anything, so the line is parsed from its end.
    let (arguments, _) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    let mut numbers = arguments.rsplit(", ");
    let offset = numbers.next()?.trim().parse().ok()?;
    let length = numbers.next()?.trim().parse().ok()?;
    Some(Call { file: file.to_string(), name: name.to_string(), offset, length })
}

#[test]
fn whole_and_interrupted_calls_are_read() {
    let log = r#"
12 pread64(3</lib/libc.so.6>, "\177ELF"..., 784, 64) = 784
12 pread64(5</d/f>, "a, b) = 1"..., 4096, 8192) = 4096
13 pwrite64(5</d/x/g>, "..."..., 512, 0 <unfinished ...>
12 pread64(5</d/f>,  <unfinished ...>
13 <... pwrite64 resumed>)           = 512
12 <... pread64 resumed>"..."..., 4096, 4096) = 100
"#;
    let call = |file: &str, name: &str, offset, length| Call {
        file: file.into(),
        name: name.into(),
        offset,
        length,
    };
    let expected =
        [call("f", "pread64", 8192, 4096), call("x/g", "pwrite64", 0, 512), call("f", "pread64", 4096, 4096)];
    assert_eq!(parse(log, "</d/"), expected);
}
