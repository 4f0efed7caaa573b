//! `--profile`: the jobs of a profile are those of fio, and its options change them.

use crate::common::{Json, Program, files_in, peers, scratch};
use std::collections::BTreeMap;
use std::path::Path;

/// The name of a job and its settings.
type Job = (String, BTreeMap<String, String>);

/// Converts settings, in order, to jobs. Settings before the first name are defaults.
fn jobs(settings: impl Iterator<Item = (String, String)>) -> Vec<Job> {
    let mut defaults = BTreeMap::new();
    let mut jobs: Vec<Job> = Vec::new();
    for (key, value) in settings {
        match (key.as_str(), jobs.last_mut()) {
            ("name", _) => jobs.push((value, defaults.clone())),
            (_, Some((_, job))) => _ = job.insert(key, value),
            (_, None) => _ = defaults.insert(key, value),
        }
    }
    jobs
}

/// The jobs of Iolite's profile, from the output of `--debug=profile`.
#[track_caller]
fn ours(dir: &Path, arguments: &str) -> Vec<Job> {
    let run = Program::under_test().line(dir, &format!("--debug=profile --parse-only {arguments}")).ok();
    let mut settings = Vec::new();
    for line in run.stdout.lines() {
        let (_, rest) = line.split_once(": [").unwrap_or_else(|| panic!("{run}"));
        let (name, rest) = rest.split_once("] ").unwrap_or_else(|| panic!("{run}"));
        if !name.is_empty() {
            settings.push(("name".to_string(), name.to_string()));
        }
        for setting in rest.split_whitespace() {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            settings.push((key.to_string(), value.to_string()));
        }
    }
    jobs(settings.into_iter())
}

/// The jobs of fio's profile, from the output of `--debug=parse` after the message that the profile is loaded.
fn theirs(peer: &Program, dir: &Path, arguments: &str) -> Vec<Job> {
    let run = peer.line(dir, &format!("--debug=parse,profile {arguments}"));
    let (_, loaded) = run.stdout.split_once("loading profile").unwrap_or_else(|| panic!("{run}"));
    let settings = loaded.lines().filter_map(|line| {
        let (_, setting) = line.split_once(" handle_option=")?;
        let (key, value) = setting.split_once(", ptr=")?;
        Some((key.to_string(), value.replace("(null)", "")))
    });
    jobs(settings)
}

#[test]
fn the_jobs_are_those_of_fio() {
    for peer in peers!() {
        let dir = scratch();
        let tiobench = "--profile=tiobench";
        assert_eq!(
            ours(dir.path(), tiobench),
            theirs(&peer, dir.path(), &format!("{tiobench} --parse-only"))
        );
        for device in ["d1", "d2"] {
            std::fs::write(dir.path().join(device), vec![7; 4 << 20]).expect("a file can be written");
        }
        // fio crashes on other arguments.
        for arguments in [
            "--device-names=d1",
            "--device-names=d1,d2 --load=3",
            "--device-names=d1 --threads-per-queue=3 --read-req-num-512-blocks=5 --load=2",
            "--device-names=d1,d2 --prep",
        ] {
            let arguments = format!("--profile=act --test-duration=1 {arguments}");
            let expected = theirs(&peer, dir.path(), &arguments);
            let mut found = ours(dir.path(), &arguments);
            if arguments.contains("prep") {
                found.iter_mut().for_each(|(_, job)| assert!(!job.contains_key("runtime")));
            }
            assert_eq!(found, expected, "{arguments}");
        }
    }
}

#[test]
pub fn options_of_tiobench() {
    let dir = scratch();
    std::fs::create_dir(dir.path().join("there")).expect("a directory can be made");
    let line =
        "--output-format=json --profile=tiobench --size=2 --block=16384 --numruns=2 --dir=there --threads=2";
    let run = Program::under_test().line(dir.path(), line).ok();
    let json = Json::parse(&run.stdout);
    let names: Vec<String> = json.jobs().iter().map(|job| job.name().to_string()).collect();
    assert_eq!(names, ["seqwrite", "randwrite", "seqread", "randread"]);
    for job in json.jobs() {
        // Two threads transfer 2 MiB in blocks of 16 KiB twice.
        assert_eq!(job.ios().iter().sum::<u64>(), 2 * 2 * 128, "{}", job.name());
    }
    let expected: Vec<_> = (1..=4).map(|number| (format!("there/.fio.tio.{number}"), 512 << 10)).collect();
    assert_eq!(files_in(dir.path()), expected);
    // With a unit, the value is taken literally.
    let sized = ours(dir.path(), "--profile=tiobench --size=64k");
    assert_eq!(sized[0].1["size"], "65536");
}

#[test]
fn options_of_act_and_its_table() {
    let dir = scratch();
    std::fs::write(dir.path().join("d"), vec![7; 4 << 20]).expect("a file can be written");
    let line =
        "--profile=act --device-names=d --test-duration=1s --threads-per-queue=2 --large-block-op-kbytes=64";
    let made = ours(dir.path(), line);
    assert_eq!(made[1].1["bs"], "65536");
    assert_eq!(made[1].1["rate_iops"], "24", "1500 KB/s of records in 64 KiB, rounded up");
    let run = Program::under_test().line(dir.path(), line).ok();
    assert!(run.stdout.contains(" slice\t  1\t  8\t 64\t  1\t  8\t 64\n"), "{run}");
    assert!(run.stdout.contains("\nact: test complete, device(s): "), "{run}");
    let run = Program::under_test().line(dir.path(), &format!("--output-format=json {line}")).ok();
    assert!(run.stdout.starts_with('{') && run.stderr.contains("act: test complete"), "{run}");
}

#[test]
fn invalid_profile_options_are_refused() {
    let dir = scratch();
    let program = Program::under_test();
    program.line(dir.path(), "--profile=nope").refused().says("tiobench, act");
    program.line(dir.path(), "--profile=act").refused().says("--device-names");
    program.line(dir.path(), "--profile=tiobench --block=x").refused().says("--block=x");
    program.line(dir.path(), "--profile=tiobench --size=0").refused().says("size=0");
    program.line(dir.path(), "--profile=tiobench --name=a").refused().says("--name=a");
    program.line(dir.path(), "--profile=act --cmdhelp").ok().says("large-block-op-kbytes   : ");
    program.line(dir.path(), "--profile=act --cmdhelp=load").ok().says("default: 1");
    assert!(files_in(dir.path()).is_empty());
}

/// fio ignores the option in a job file, whatever its value is.
#[test]
fn a_profile_in_a_job_file_is_warned_of() {
    let dir = scratch();
    let job = |profile: &str| {
        let text = format!("[global]\nprofile={profile}\nioengine=null\n[j]\nsize=8k\n");
        std::fs::write(dir.path().join("job.fio"), text).unwrap();
    };
    job("tiobench");
    let run = Program::under_test().line(dir.path(), "--output-format=json job.fio").ok();
    assert_eq!(Json::parse(&run.stdout).job().ios(), [2, 0, 0]);
    assert!(run.stderr.contains("job.fio:2:9: warning: profile=tiobench: "), "{run}");
    assert!(run.stderr.contains("run --profile=tiobench for them"), "{run}");
    Program::under_test().line(dir.path(), "--warnings-fatal job.fio").refused();
    job("nonsense");
    Program::under_test().line(dir.path(), "job.fio").refused().says("job.fio:2:9: profile=nonsense");
    for peer in Program::peers() {
        peer.line(dir.path(), "job.fio").ok();
    }
}
