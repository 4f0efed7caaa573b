//! Jobs that end when their results have become steady.
//!
//! A test machine may be busy, so the limits here are always met, or never.

use crate::common::skeleton::mask;
use crate::common::{Json, Program, peers, scratch};
use iolite_testing::skip;

/// A job that would run for an hour.
const LONG: &str = "--ioengine=null --size=1G --rate_iops=200 --time_based --runtime=1h --ss_dur=1";
/// Options for more frequent checks. fio 3.33 always checks once per second.
const CLOSE: &str = "--ss_interval=250ms";

fn run(line: &str) -> Json {
    let dir = scratch();
    Json::parse(&Program::under_test().line(dir.path(), &format!("{line} --output-format=json")).ok().stdout)
}

#[test]
pub fn a_steady_state_ends_the_job() {
    let criteria = ["iops:900%", "iops:1000", "iops_slope:900%", "bw:10m", "bw_slope:900%"];
    let (own, more) = if Program::under_test().is_peer {
        (&[][..], "")
    } else {
        (&["lat:10s", "lat_slope:90000%"][..], CLOSE)
    };
    for criterion in criteria.iter().chain(own) {
        let report = run(&format!("--name=j {LONG} {more} --ss={criterion}"));
        let job = report.job();
        let (name, _) = criterion.split_once(':').expect("a criterion has a limit");
        let state = &job.0["steadystate"];
        assert_eq!(state["attained"], 1, "{criterion}: {state}");
        assert_eq!(state["duration"], 1);
        assert!(state["ss"].as_str().expect("text").starts_with(&format!("{name}:")), "{state}");
        let count = state["data"]["iops"].as_array().expect("measurements").len();
        assert_eq!(count, if more.is_empty() { 1 } else { 4 }, "{state}");
        assert!(job.int("read.runtime") < 3_600_000, "{criterion}");
    }
}

#[test]
fn an_unsteady_job_runs_to_its_end() {
    // Each measurement would have to equal the mean exactly, but a tenth of a second never has a whole number of I/Os.
    let line = "--name=j --ioengine=null --size=1G --rate_iops=217 --time_based --runtime=2 --ss_dur=1";
    let more = if Program::under_test().is_peer { "" } else { "--ss_interval=100ms" };
    let report = run(&format!("{line} {more} --ss=bw:0.0000001"));
    let job = report.job();
    assert_eq!(job.0["steadystate"]["attained"], 0);
    assert!(job.int("read.runtime") >= 1990, "{}", job.int("read.runtime"));
}

#[test]
pub fn the_ramp_comes_first() {
    let report = run(&format!("--name=j {LONG} --ss=iops:900% --ss_ramp=1"));
    assert!(report.job().int("read.runtime") >= 1800);
    let report =
        run("--name=j --ioengine=null --size=1G --rate_iops=200 --time_based --runtime=1 --ss_dur=1 \
                      --ss_ramp=30 --ss=iops:900%");
    assert_eq!(report.job().0["steadystate"]["attained"], 0);
}

#[test]
fn a_group_is_steady_together() {
    let report = run(&format!("--numjobs=20 --group_reporting {LONG} --ss=iops:900% --name=j"));
    let state = &report.job().0["steadystate"];
    assert_eq!(state["attained"], 1);
    // Twenty workers with 200 IOPS each exceed the rate of one worker, even on a busy machine.
    let mean = state["data"]["iops_mean"].as_u64().expect("a mean");
    assert!(mean > 200, "{state}");
    let report = run(&format!("--numjobs=2 {LONG} --ss=iops:900% --name=j"));
    assert_eq!(report.jobs().len(), 2);
    assert!(report.jobs().iter().all(|job| job.0["steadystate"]["attained"] == 1));
}

#[test]
fn members_of_a_group_have_to_agree() {
    let dir = scratch();
    let line = format!("--group_reporting {LONG} --name=a --ss=iops:5% --name=b --ss=bw:5%");
    Program::under_test().line(dir.path(), &line).refused().says("steadystate");
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio refuses this too, without need");
    }
    let line = line.replace("--name=b", "--name=b --new_group").replace("5%", "900%");
    program.line(dir.path(), &line).ok();
}

/// Each series covers exactly one window: the last one, padded with zeros if the run was shorter.
#[test]
fn the_data_is_a_full_window() {
    let program = Program::under_test();
    let short = "--name=j --ioengine=null --size=1G --rate_iops=200 --time_based --ss_dur=6 --runtime=2";
    let mut cases = vec![
        ("--ss=iops:0.0000001", 6, &["bw", "iops"][..]),
        ("--ss=bw:0.0000001 --ss_ramp=30", 6, &["bw", "iops"]),
        ("--ss=iops_slope:0.0000001 --ss_dur=1", 1, &["bw", "iops"]),
    ];
    if !program.is_peer {
        cases.push(("--ss=lat:0.0000001", 6, &["bw", "iops", "lat_ns"]));
        cases.push((
            "--ss=lat_slope:0.0000001 --ss_interval=100ms --ss_dur=1",
            10,
            &["bw", "iops", "lat_ns"],
        ));
        cases.push(("--ss=bw:0.0000001 --ss_interval=100ms --ss_dur=1", 10, &["bw", "iops"]));
    }
    for (more, size, series) in cases {
        let report = run(&format!("{short} {more}"));
        let data = report.job().0["steadystate"]["data"].as_object().expect("data").clone();
        let means = series.iter().map(|name| format!("{}_mean", name.trim_end_matches("_ns")));
        let mut expected: Vec<String> = series.iter().map(|name| (*name).to_owned()).chain(means).collect();
        expected.sort();
        let mut keys: Vec<&String> = data.keys().collect();
        keys.sort();
        assert_eq!(keys, expected.iter().collect::<Vec<_>>(), "{more}");
        for name in series {
            let values = data[*name].as_array().expect("values");
            assert_eq!(values.len(), size, "{more}: {name}");
            if size == 6 {
                // In two seconds, there are two measurements, or three on a busy machine.
                assert!(values[3..].iter().all(|value| *value == 0), "{more}: {values:?}");
            }
        }
        let is_measured = data["bw"].as_array().expect("values").iter().any(|value| *value != 0);
        assert_eq!(is_measured, !more.contains("ss_ramp"), "{more}: {data:?}");
    }
}

#[test]
fn bad_values() {
    let dir = scratch();
    let program = Program::under_test();
    for value in ["iops", "iops:", "sideways:5%"] {
        program.line(dir.path(), &format!("--name=a {LONG} --ss={value}")).refused();
    }
    if program.is_peer {
        skip!("fio takes the rest");
    }
    program.line(dir.path(), &format!("--name=a {LONG} --ss=lat:-5")).refused().says("negative");
    program
        .line(dir.path(), &format!("--name=a {LONG} --ss=lat:5us --gtod_reduce=1"))
        .refused()
        .says("latencies");
    let line = "--name=a --ioengine=null --size=4k --ss=iops:5%";
    program.line(dir.path(), line).ok().says("needs steadystate_duration");
    let line = "--name=a --ioengine=null --size=4k --ss=iops:5% --ss_dur=500ms";
    program.line(dir.path(), line).ok().says("shorter than steadystate_check_interval");
}

#[test]
fn steady_states_are_reported_as_by_the_peer() {
    for peer in peers!() {
        let dir = scratch();
        for (criterion, time) in [("iops:900%", 60), ("bw_slope:1k", 3), ("bw:1", 3)] {
            // For a single measurement, Iolite has no slope and fio prints an invalid number.
            let line = format!(
                "--name=j {LONG} --ss_dur=2 --runtime={time} --ss={criterion} --output-format=normal,json"
            );
            let told = [&Program::under_test(), &peer].map(|program| {
                let run = program.line(dir.path(), &line).ok();
                let text = run.stdout.lines().find(|line| line.starts_with("  steadystate  : "));
                let text = mask(text.unwrap_or_else(|| panic!("no steady state in {run}")));
                let json = Json::parse(&run.stdout);
                let tree: Vec<_> =
                    json.tree().into_iter().filter(|key| key.contains("].steadystate.")).collect();
                let limit = json.job().0["steadystate"]["ss"].clone();
                // Whether a slope is met is random.
                (text.replace("attained=yes", "attained=no").replace("=-", "="), tree, limit)
            });
            assert_eq!(told[0], told[1], "{criterion}");
            assert!(!told[0].1.is_empty());
        }
    }
}
