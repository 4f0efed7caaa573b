//! Measures runs on many machines: `iolite-bench --cluster 1000`.
//!
//! The simulated agents are threads of this process, which speak the protocol, with keys, and run nothing. The program
//! is their client. Its needs for each agent are measured: memory, CPU time at one snapshot per second, the spread of
//! start times, and the time that the report takes after the last agent is done. Then two real agents on this machine
//! run the same job as one local run, in turns.

mod pair;
mod simulated;

use crate::arguments::Arguments;
use serde_json::Value;
use simulated::Simulated;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The most memory for an agent at its client, in MiB.
const MEMORY: f64 = 1.0;
/// The most CPU time of the client in a second of the run, in seconds.
const CPU: f64 = 1.0;
/// The longest time from the last job's end to the report, in seconds.
const REPORT: f64 = 2.0;
/// How far apart agents may begin, in milliseconds.
const SPREAD: f64 = 5.0;

/// The measurements of a run.
struct Seen {
    /// The largest resident size of the client in MiB.
    memory: f64,
    /// Its CPU seconds in a second, while the agents run.
    cpu: f64,
    /// From the end of the last job to the end of the client, in seconds.
    report: f64,
    /// From the first to the last moment that was given to an agent, in milliseconds. All agents have one clock, so this is the error
    /// of the client's comparison of clocks.
    spread: f64,
    /// How long before its moment the last agent heard of it, in milliseconds.
    ahead: f64,
    /// As the client has reported it, in milliseconds.
    reported: f64,
}

/// Measures and prints the tables.
pub fn run(arguments: &Arguments, program: &Path) -> Result<(), String> {
    let count = arguments.cluster.unwrap_or_default();
    let few = 1 + count / 100;
    eprintln!("{few} simulated agents, and then {count}");
    let small = measure(arguments, program, few)?;
    let seen = measure(arguments, program, count)?;
    let memory = (seen.memory - small.memory) / (count - few).max(1) as f64;
    println!("| {count} simulated agents | unit | | to reach | |\n|---|---|---:|---:|---|");
    let mut is_short = false;
    for (what, unit, value, most) in [
        ("memory for each, at the client", "MiB", memory, MEMORY),
        ("CPU of the client, a snapshot per second of each", "cores", seen.cpu, CPU),
        ("from the last job's end to the report", "s", seen.report, REPORT),
        ("moments given to begin, from first to last", "ms", seen.spread, SPREAD),
    ] {
        is_short |= value > most;
        let verdict = if value > most { "short" } else { "reached" };
        println!("| {what} | {unit} | {value:.3} | {most} | {verdict} |");
    }
    println!("| the last one hears its moment before it comes | ms | {:.1} | 0 | {} |", seen.ahead, {
        is_short |= seen.ahead < 0.0;
        if seen.ahead < 0.0 { "short" } else { "reached" }
    });
    println!(
        "| start spread in the report (it has the time in which these CPUs wake {count} threads) | ms | {:.1} | | |",
        seen.reported
    );
    println!("| memory of the client, all in all | MiB | {:.1} | | |", seen.memory);
    println!();
    is_short |= !pair::run(arguments, program)?;
    if is_short { Err("not everything is reached".to_owned()) } else { Ok(()) }
}

fn measure(arguments: &Arguments, program: &Path, count: usize) -> Result<Seen, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let dir = tempfile::tempdir_in(&arguments.directory).map_err(|error| error.to_string())?;
    let keys = dir.path().join("keys");
    let made = Command::new(program).args(["keys", "new"]).arg(&keys).stdout(Stdio::null()).status();
    if !made.map_err(failed)?.success() {
        return Err(format!("{}: keys cannot be made", program.display()));
    }
    let length = Duration::from_secs(u64::from(arguments.seconds.max(4)));
    let simulated = Simulated::start(&keys.join("agents.keys"), count, length)?;
    let write = |name: &str, text: String| {
        std::fs::write(dir.path().join(name), text).map_err(|error| format!("{name}: {error}"))
    };
    write("hosts", format!("{}\n", simulated.place()).repeat(count))?;
    write("job.fio", "[job]\nioengine=null\nsize=1m\n".to_owned())?;
    let mut client = Command::new(program)
        .arg(format!("--keys={}", keys.join("coordinator.keys").display()))
        .args(["--client=hosts", "--eta=always", "--output-format=json", "--output=report.json", "job.fio"])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let begun = simulated.wait_for_begin(&mut client);
    // From the first second to the last one, without set-up and report.
    let cpu = begun.and_then(|()| {
        std::thread::sleep(Duration::from_secs(1));
        let (began, before) = (Instant::now(), cpu_seconds(&client)?);
        std::thread::sleep(length - Duration::from_secs(2));
        Ok((cpu_seconds(&client)? - before) / began.elapsed().as_secs_f64())
    });
    let (ended, memory, status) = wait(&client).map_err(failed)?;
    if status != 0 || cpu.is_err() {
        let mut said = String::new();
        if let Some(mut stderr) = client.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
        }
        let said: Vec<&str> = said.lines().take(10).collect();
        let why = cpu.err().unwrap_or_else(|| format!("wait status {status}"));
        return Err(format!("{}: {why}\n{}", program.display(), said.join("\n")));
    }
    let report =
        std::fs::read_to_string(dir.path().join("report.json")).map_err(|error| error.to_string())?;
    let json: Value = serde_json::from_str(&report).map_err(|error| format!("report.json: {error}"))?;
    let stats = json["client_stats"].as_array().ok_or("report.json has no client_stats")?;
    let ios = stats.last().and_then(|all| all["read"]["total_ios"].as_u64());
    if stats.len() != count + 1 || ios != Some(simulated::IOS * count as u64) {
        return Err(format!("report.json has {} jobs, and {ios:?} I/Os in all", stats.len()));
    }
    let moments = simulated.moments();
    Ok(Seen {
        memory,
        cpu: cpu?,
        report: ended.saturating_duration_since(moments.ended).as_secs_f64(),
        spread: moments.spread_ns as f64 / 1e6,
        ahead: moments.ahead_ns as f64 / 1e6,
        reported: json["start"]["spread_ns"].as_f64().unwrap_or(f64::NAN) / 1e6,
    })
}

/// The CPU seconds that a process has used.
fn cpu_seconds(child: &Child) -> Result<f64, String> {
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", child.id())).map_err(|error| error.to_string())?;
    // The name is in parentheses and may contain anything; these are the 14th and the 15th field.
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    let ticks = [11, 12].map(|index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()));
    let [Some(user), Some(system)] = ticks else { return Err(format!("/proc/{}/stat: {stat}", child.id())) };
    // SAFETY: a plain call that cannot fail for this name.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Ok((user + system) / per_second as f64)
}

/// Waits for the end of a process: when that was, its largest resident size in MiB, and its wait status.
fn wait(child: &Child) -> std::io::Result<(Instant, f64, i32)> {
    let mut status = 0;
    // SAFETY: the structure is plain data, valid as zeros, and filled in by a call that succeeds.
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage), usage)
    };
    match waited {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok((Instant::now(), usage.ru_maxrss as f64 / 1024.0, status)),
    }
}
