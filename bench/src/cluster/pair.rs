//! Two agents on this machine beside one local run with the same workers.

use crate::arguments::Arguments;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The share of a local run's I/Os per second that two agents have to reach.
const SHARE: f64 = 0.95;
/// The least number of rounds of each.
const ROUNDS: usize = 9;
/// The job of one worker.
const JOB: &str = "[job]\nioengine=null\nthread\nsize=1t\nnorandommap\nrw=randread\niodepth=32\ntime_based\n";

/// An agent, which ends with this.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures in turns and prints the table; whether enough is reached.
pub fn run(arguments: &Arguments, program: &Path) -> Result<bool, String> {
    let rounds = arguments.rounds.max(ROUNDS);
    let dir = tempfile::tempdir_in(&arguments.directory).map_err(|error| error.to_string())?;
    let agents = ["a", "b"].map(|name| start(program, &dir.path().join(name)));
    let [_first, _second] = agents;
    let (_first, _second) = (_first?, _second?);
    let seconds = arguments.seconds.min(2);
    let write = |name: &str, text: String| {
        std::fs::write(dir.path().join(name), text).map_err(|error| format!("{name}: {error}"))
    };
    write("one.fio", format!("{JOB}runtime={seconds}\n"))?;
    write("two.fio", format!("{JOB}runtime={seconds}\nnumjobs=2\n"))?;
    let of_agents = ["--client=sock:a", "--client=sock:b", "one.fio"];
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for turn in 0..2 {
            let side = (round + turn) % 2;
            let words: &[&str] = if side == 0 { &of_agents } else { &["two.fio"] };
            rates[side].push(rate(program, dir.path(), words)?);
        }
    }
    let [agents, local] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    let share = agents / local;
    let verdict = if share >= SHARE { "reached" } else { "short" };
    println!("| median of {rounds} | unit | two agents | one local run | share | to reach | |");
    println!("|---|---|---:|---:|---:|---:|---|");
    println!(
        "| null-randread-qd32, two workers | MIOPS | {:.2} | {:.2} | {share:.2} | {SHARE} | {verdict} |",
        agents / 1e6,
        local / 1e6
    );
    Ok(share >= SHARE)
}

fn start(program: &Path, socket: &Path) -> Result<Agent, String> {
    let mut agent = Command::new(program)
        .arg(format!("--server=sock:{}", socket.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said = agent.stdout.take();
    let agent = Agent(agent);
    let mut line = String::new();
    // It says where it listens when it does.
    said.map(|said| BufReader::new(said).read_line(&mut line));
    if line.contains("listening on") { Ok(agent) } else { Err(format!("an agent has not begun: {line}")) }
}

/// The I/Os per second of all workers.
fn rate(program: &Path, dir: &Path, words: &[&str]) -> Result<f64, String> {
    let failed = |why: String| format!("{}: {why}", program.display());
    let run = Command::new(program)
        .args(["--output-format=json", "--eta=never"])
        .args(words)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !run.status.success() {
        return Err(failed(format!("{}\n{}", run.status, String::from_utf8_lossy(&run.stderr))));
    }
    let json: Value = serde_json::from_slice(&run.stdout).map_err(|error| failed(error.to_string()))?;
    let jobs = json["client_stats"].as_array().or_else(|| json["jobs"].as_array());
    let own = |job: &&Value| job["jobname"] != "All clients";
    let rates = jobs.into_iter().flatten().filter(own).map(|job| job["read"]["iops"].as_f64());
    rates.sum::<Option<f64>>().ok_or_else(|| failed("a job has no IOPS".to_owned()))
}
