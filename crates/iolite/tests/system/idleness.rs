//! `--idle-prof`: the idleness of CPUs.

use crate::common::{Json, Program, peers, scratch};

const JOB: &str = "--name=j --ioengine=null --size=1G --rate_iops=100 --time_based --runtime=1";

fn run(line: &str) -> String {
    Program::under_test().line(scratch().path(), line).ok().stdout
}

#[test]
fn idleness_is_shown_for_all_cpus_or_for_each() {
    let text = run(&format!("{JOB} --idle-prof=system"));
    let block = text.split("\n\nCPU idleness:\n").nth(1).unwrap_or_else(|| panic!("nothing in {text}"));
    assert!(block.starts_with("  system: ") && !block.contains("percpu"), "{text}");
    assert!(block.contains("  unit work: mean=") && block.contains("us, stddev="), "{text}");
    let text = run(&format!("{JOB} --idle-prof=percpu"));
    let line = text.lines().find(|line| line.starts_with("  percpu: ")).unwrap_or_else(|| panic!("{text}"));
    let cpus = std::thread::available_parallelism().expect("there are CPUs").get();
    assert_eq!(line.matches('%').count(), cpus, "{line}");
    assert!(!run(JOB).contains("CPU idleness"));
}

#[test]
fn in_json() {
    let text = run(&format!("{JOB} --idle-prof=percpu --output-format=json"));
    let json = Json::parse(&text);
    let idleness = json.0["cpu_idleness"].as_object().unwrap_or_else(|| panic!("nothing in {text}"));
    let keys: Vec<_> = idleness.keys().map(String::as_str).collect();
    assert_eq!(
        (keys[0], keys[1], keys[keys.len() - 2], keys[keys.len() - 1]),
        ("system", "cpu-0", "unit_mean", "unit_stddev")
    );
    // The idleness of this machine is unknown, but must be within limits.
    for (key, value) in idleness {
        let value = value.as_f64().expect("a number");
        assert!((0.0..=100.0).contains(&value) || key.starts_with("unit"), "{key}: {value}");
    }
    assert!(json.job().int("read.total_ios") > 0);
}

#[test]
fn idle_threads_leave_the_cpu_to_the_jobs() {
    // A job that keeps its CPU busy leaves less idle time than one that waits. Both run on one CPU, which is reported
    // separately.
    let idle = |job: &str| {
        let line = format!("{job} --cpus_allowed=0 --idle-prof=percpu --output-format=json");
        let text = run(&line);
        Json::parse(&text).0["cpu_idleness"]["cpu-0"].as_f64().expect("a number")
    };
    let busy = idle("--name=j --ioengine=null --size=1G --time_based --runtime=1");
    assert!(busy < 50.0, "{busy}% of a busy CPU");
}

#[test]
fn calibrate_shows_only_the_unit_of_work() {
    let text = run("--idle-prof=calibrate --name=j --ioengine=null --size=1G --time_based --runtime=100");
    assert!(text.starts_with("CPU idleness:\n  unit work: mean=") && text.lines().count() == 2, "{text}");
}

#[test]
fn bad_values() {
    let dir = scratch();
    Program::under_test()
        .line(dir.path(), &format!("{JOB} --idle-prof=sometimes"))
        .refused()
        .says("sometimes");
}

#[test]
fn the_same_keys_as_the_peer() {
    for peer in peers!() {
        let dir = scratch();
        for how in ["system", "percpu"] {
            let line = format!("{JOB} --idle-prof={how} --output-format=json");
            let [ours, theirs] = [&Program::under_test(), &peer].map(|program| {
                let json = Json::parse(&program.line(dir.path(), &line).ok().stdout);
                json.tree().into_iter().filter(|key| key.starts_with("cpu_idleness")).collect::<Vec<_>>()
            });
            assert_eq!(ours, theirs);
        }
    }
}
