//! `iolite sweep`: points, the state after an interrupt, presets, and the page.

use crate::common::browser::Browser;
use crate::common::devices::Loop;
use crate::common::{Json, Program, program::Finished, scratch};
use iolite_testing::{NbdServer, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

fn ours() -> Program {
    Program::own()
}

fn json(text: &str) -> Value {
    Json::parse(text).0
}

/// Writes a job file with quick I/O.
fn job(dir: &Path, options: &str) {
    fs::write(
        dir.join("job.fio"),
        format!("[global]\nioengine=null\nsize=1m\n[j]\nrw=randread\nbs=4k\n{options}\n"),
    )
    .unwrap();
}

/// The existing reports by name. A running sweep may rename one between listing and reading.
fn reports(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
    named
        .filter(|(name, _)| name.starts_with("point-"))
        .filter_map(|(name, path)| match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some((name, read.unwrap())),
        })
        .collect()
}

fn options_of(report: &str) -> Value {
    json(report)["jobs"][0]["job options"].clone()
}

#[test]
fn all_points_are_run() {
    let dir = scratch();
    job(dir.path(), "iodepth=64");
    let run = ours()
        .line(dir.path(), "sweep job.fio --iodepth=1..4x2 --blocksize=4k,64k --output-format=json")
        .ok();
    let result = json(&run.stdout);
    let points = result["points"].as_array().unwrap();
    let values: Vec<String> = points
        .iter()
        .map(|point| format!("{}/{}", point["values"]["iodepth"], point["values"]["bs"]))
        .collect();
    let expected = ["1/4k", "1/64k", "2/4k", "2/64k", "4/4k", "4/64k"].map(|pair| {
        let (depth, size) = pair.split_once('/').unwrap();
        format!("\"{depth}\"/\"{size}\"")
    });
    assert_eq!(values, expected);
    let reports = reports(&dir.path().join("job.sweep"));
    assert_eq!(reports.len(), 6);
    for (point, report) in points.iter().zip(reports.values()) {
        let options = options_of(report);
        assert_eq!(
            (&options["iodepth"], &options["bs"]),
            (&point["values"]["iodepth"], &point["values"]["bs"])
        );
        let there = json(report);
        let figures = &point["figures"];
        assert_eq!(figures["iops"], there["jobs"][0]["read"]["iops"]);
        // The latency is measured from submission to completion.
        let latency = &there["jobs"][0]["read"]["lat_ns"];
        assert!(latency["bins"].is_object());
        assert_eq!(
            (&figures["mean_ns"], figures["p99_ns"].as_f64()),
            (&latency["mean"], latency["percentile"]["99.000000"].as_f64())
        );
    }
    // There is a curve per block size; three points are too few for a knee.
    let curves = result["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 2);
    assert!(curves.iter().all(|curve| curve["knee"].is_null()));
    assert!(curves[0]["words"].as_str().unwrap().contains("3 points; a knee is named from 4 on"), "{run}");
    let kept = |name: &str| fs::read_to_string(dir.path().join("job.sweep").join(name)).unwrap();
    assert_eq!(json(&kept("result.json")), result);
    let table = kept("result.csv");
    assert!(
        table.starts_with("point,iodepth,bs,depth,iops,bw_bytes,") && table.lines().count() == 7,
        "{table}"
    );
    assert!(kept("result.html").contains("Sweep: job.fio"));
    // For a single point, its values are printed above the figures.
    let single = ours().line(dir.path(), "sweep job.fio --bs=8k --output=single").ok();
    assert!(single.stdout.contains("\n\nAll points: bs=8k\n\n"), "{single}");
}

/// A repetition of the command measures again, into a new directory, and so does one with other settings. A directory
/// that was named is not overwritten.
#[test]
fn a_finished_sweep_is_measured_again() {
    let dir = scratch();
    job(dir.path(), "iodepth=64");
    let words = "sweep job.fio --iodepth=1,2";
    let mut times = Vec::new();
    for (options, place) in [("", "job"), ("", "job-2"), (" --bs=8k", "job-3"), ("", "job-4")] {
        let run = ours().line(dir.path(), &format!("{words}{options}")).ok();
        let place = format!("{place}.sweep");
        assert!(run.stderr.contains(&format!("2 points; results go to {place}\n")), "{run}");
        let reports = reports(&dir.path().join(&place));
        times.extend(reports.values().map(|report| json(report)["timestamp_ms"].as_u64().unwrap()));
    }
    assert!(times.len() == 8 && times.is_sorted_by(|one, other| one < other), "{times:?}");
    let before = reports(&dir.path().join("job.sweep"));
    let refused = ours().line(dir.path(), &format!("{words} --output=job.sweep")).refused();
    assert!(
        refused.stderr.contains("this sweep was finished at 2")
            && refused.stderr.contains("give another directory"),
        "{refused}"
    );
    for other in ["--iodepth=1,4", "--iodepth=1,2 --bs=2k"] {
        let line = format!("sweep job.fio {other} --output=job.sweep");
        ours().line(dir.path(), &line).refused().says("there is another sweep");
    }
    job(dir.path(), "iodepth=64\nrandrepeat=0");
    ours().line(dir.path(), &format!("{words} --output=job.sweep")).refused().says("there is another sweep");
    assert_eq!(reports(&dir.path().join("job.sweep")), before);
}

/// Each form of the result says when, where and with what it was measured.
#[test]
fn results_name_their_circumstances() {
    let dir = scratch();
    job(dir.path(), "");
    let run = ours().line(dir.path(), "sweep job.fio --bs=4k,8k --rw=read,randread").ok();
    let out = dir.path().join("job.sweep");
    let report = json(&fs::read_to_string(out.join("point-0001.json")).unwrap());
    let host = report["iolite"]["host"]["name"].as_str().unwrap();
    let with = format!(", host {host}, ioengine=null, rw=read|randread, bs=4k|8k");
    let (date, rest) = run.stdout.strip_prefix("job.fio: ").unwrap().split_at("2026-11-27 23:40".len());
    assert!(date.starts_with('2') && rest.starts_with(&format!("{with}\n\n")), "{run}");
    assert!(fs::read_to_string(out.join("result.html")).unwrap().contains(&format!("{date}{with}")));
    let table = fs::read_to_string(out.join("result.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    // The axes have columns already.
    assert!(lines[0].ends_with(",error,time,host,files,device,ioengine"), "{table}");
    assert!(lines[4].ends_with(&format!(",{host},,,null")), "{table}");
    let result = json(&fs::read_to_string(out.join("result.json")).unwrap());
    assert_eq!(
        (&result["points"][3]["measured"]["rw"], &result["points"][3]["measured"]["host"]),
        (&"randread".into(), &host.into())
    );
    // A file is on a device, or at least on a file system.
    let run = ours().line(dir.path(), "sweep --bs=4k,8k --name=f --size=64k --rw=write").ok();
    assert!(
        run.stdout.contains(", files f.0.0, device ") && run.stdout.contains(", rw=write, bs=4k|8k\n"),
        "{run}"
    );
}

/// Mistakes that can be known are refused before anything is created, and do not block the corrected command.
#[test]
fn mistakes_leave_nothing() {
    let dir = scratch();
    let run = small(dir.path(), "--preset=storage --direct=0 --directory=nosuch").refused();
    assert!(
        run.stderr.contains("directory=nosuch: No such file or directory; mkdir -p nosuch creates it"),
        "{run}"
    );
    assert!(!run.stderr.contains("points") && run.stdout.is_empty(), "{run}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let run = small(dir.path(), "--preset=storage --direct=0 --directory=.,nosuch").refused();
    assert_eq!(run.stderr.matches("directory=nosuch: No such file").count(), 1, "{run}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    // What only a run can find leaves nothing either, if no point has a result.
    job(dir.path(), "exec_prerun=false");
    let run = ours().line(dir.path(), "sweep job.fio --bs=4k,8k --output=out");
    assert_eq!(run.code(), 1, "{run}");
    assert!(run.stderr.contains("no point has a result, so nothing is kept"), "{run}");
    job(dir.path(), "exec_prerun=true");
    ours().line(dir.path(), "sweep job.fio --bs=4k,8k --output=out").ok();
}

/// Before the first point, a message names the files and devices whose data will be lost.
#[test]
fn data_that_will_be_lost_is_named() {
    let dir = scratch();
    fs::write(dir.path().join("f"), vec![1; 65536]).unwrap();
    let words = "--filename=f --size=64k --name=a";
    let told = "f: this regular file is written to, and what is there is lost\n";
    let run = ours().line(dir.path(), &format!("sweep --bs=4k,8k --rw=read {words}")).ok();
    assert!(!run.stderr.contains(told), "{run}");
    let run = ours().line(dir.path(), &format!("sweep --bs=4k --rw=read,write {words}")).ok();
    assert!(run.stderr.find(told).unwrap() < run.stderr.find("[1/2]").unwrap(), "{run}");
    // So are the directories that are made, once, with their file system.
    let words = "--filename=no/such/f --size=64k --name=a";
    let run = ours().line(dir.path(), &format!("sweep --bs=4k,8k --rw=write {words}")).ok();
    let told = "making the directory no/such on /";
    assert_eq!(run.stderr.matches(told).count(), 1, "{run}");
    assert!(run.stderr.find(told).unwrap() < run.stderr.find("[1/2]").unwrap(), "{run}");
    let device = or_skip!(Loop::new(dir.path(), 1 << 20));
    let run = ours().line(
        dir.path(),
        &format!("sweep --bs=4k,8k --rw=randwrite --filename={} --size=64k --name=a", device.path),
    );
    let told = format!("{}: this block device is written to, and what is there is lost\n", device.path);
    assert!(run.ok().stderr.contains(&told));
}

#[test]
fn jobs_of_the_command_line_are_swept() {
    let dir = scratch();
    let words =
        "sweep --iodepth=1,4 --name=a --ioengine=null --size=1m --time_based --runtime 50ms --rw=randread";
    let run = ours().line(dir.path(), words).ok();
    assert!(run.stderr.contains("2 points; results go to a.sweep"), "{run}");
    let options = options_of(&reports(&dir.path().join("a.sweep"))["point-0002.json"]);
    for (name, value) in [("iodepth", "4"), ("time_based", "1"), ("runtime", "50ms"), ("size", "1m")] {
        assert_eq!(options[name], value, "{options}");
    }
    // Options before the first job are those of all jobs.
    let words =
        "sweep --bs=4k,8k --ioengine=null --name=a --size=64k --name=b --size=128k --rw=write --output=two";
    ours().line(dir.path(), words).ok();
    let report = json(&reports(&dir.path().join("two"))["point-0002.json"]);
    let of = |job: usize, name: &str| report["jobs"][job]["job options"][name].clone();
    assert_eq!([of(0, "size"), of(1, "size"), of(1, "rw")], ["64k", "128k", "write"]);
    assert_eq!([of(0, "bs"), of(1, "bs")], ["8k", "8k"]);
    // Options without a value, with a job file.
    job(dir.path(), "runtime=50ms");
    ours().line(dir.path(), "sweep job.fio --time_based --bs=4k,8k --output=file").ok();
    assert_eq!(options_of(&reports(&dir.path().join("file"))["point-0001.json"])["time_based"], "1");
}

#[test]
fn presets_are_listed() {
    let dir = scratch();
    let list = ours().line(dir.path(), "sweep --preset=list").ok().stdout;
    ours().line(dir.path(), "sweep --preset=list job.fio").refused().says("give it alone");
    for preset in ["oltp", "log", "vm-boot", "streaming", "backup", "storage"] {
        assert!(list.lines().any(|line| line.trim_start().starts_with(&format!("{preset} "))), "{list}");
    }
    let wrong = ours().line(dir.path(), "sweep --preset=storag").refused();
    assert!(
        wrong.stderr.contains(list.trim_end()) && wrong.stderr.contains("did you mean \"storage\"?"),
        "{wrong}"
    );
}

#[test]
fn options_are_varied_alone() {
    let dir = scratch();
    job(dir.path(), "");
    let words = "sweep job.fio --one-at-a-time --numjobs=1,2 --bs=4k,8k,16k --output=out";
    let run = ours().line(dir.path(), words).ok();
    let rows: Vec<Vec<&str>> =
        run.stdout.lines().skip(3).take(4).map(|row| row.split_whitespace().take(2).collect()).collect();
    assert_eq!(rows, [["1", "4k"], ["2", "4k"], ["1", "8k"], ["1", "16k"]]);
    assert_eq!(reports(&dir.path().join("out")).len(), 4);
}

/// After a signal or SIGKILL, complete points are kept, and the next run does the rest.
#[test]
fn an_interrupted_sweep_goes_on() {
    let dir = scratch();
    job(dir.path(), "rate_iops=1000\ntime_based\nruntime=400ms");
    let words = "sweep job.fio --bs=4k,8k,16k,32k,64k,128k,256k --output=out";
    let out = dir.path().join("out");
    let count = || reports(&out).keys().filter(|name| name.ends_with(".json")).count();
    for (signal, done) in [(libc::SIGINT, 1), (libc::SIGKILL, 2)] {
        let mut running = ours().start(dir.path(), words.split(' '));
        running.wait_until("points are there", |_| out.exists() && count() >= done);
        let before = reports(&out);
        if signal == libc::SIGINT {
            // Two sweeps at once would write the same reports.
            ours().line(dir.path(), words).refused().says("another program is at work in this directory");
        }
        running.signal(signal);
        let ended = running.wait();
        if signal == libc::SIGINT {
            assert_eq!(ended.code(), 128, "{ended}");
            assert!(ended.stderr.contains("the same command continues in out"), "{ended}");
            assert!(reports(&out).keys().all(|name| name.ends_with(".json")), "nothing unfinished is left");
        }
        let after = reports(&out);
        for (name, text) in before.iter().filter(|(name, _)| name.ends_with(".json")) {
            assert_eq!(after.get(name), Some(text));
        }
        assert!(count() < 7, "{ended}");
    }
    let kept = reports(&out);
    let last = ours().line(dir.path(), words).ok();
    assert!(last.stderr.contains("of them exist"), "{last}");
    let all = reports(&out);
    assert_eq!(all.len(), 7, "{:?}", all.keys());
    for (name, text) in kept.iter().filter(|(name, _)| name.ends_with(".json")) {
        assert_eq!(all.get(name), Some(text));
    }
}

/// A warning appears if the concurrency computed from IOPS and latency is not the depth.
#[test]
fn failures_and_doubtful_results_are_reported() {
    let dir = scratch();
    job(dir.path(), "rate_iops=200\ntime_based\nruntime=300ms\nthread");
    let run = ours().line(dir.path(), "sweep job.fio --bs=4k,8k --output=slow").ok();
    assert!(run.stdout.contains("less than the depth of 1 that the jobs ask for"), "{run}");
    // One of two points fails; the other one has a result.
    fs::write(dir.path().join("f"), vec![1; 4096]).unwrap();
    fs::write(dir.path().join("io.fio"), "[j]\nrw=read\nbs=4k\nsize=4k\n").unwrap();
    let run = ours().line(dir.path(), "sweep io.fio --filename=f,none/f --readonly=0").refused();
    assert!(run.stderr.contains("unknown option --readonly"), "{run}");
    let words = "sweep io.fio --filename=f --direct=0 --exec_prerun=true,./ready";
    let run = ours().line(dir.path(), words);
    assert_eq!(run.code(), 1, "{run}");
    assert!(
        run.stderr.contains("exec_prerun=./ready: failed: ")
            && run.stdout.contains("exec_prerun=./ready: the run failed: "),
        "{run}"
    );
    assert!(run.stdout.contains("\n\nAll points: filename=f direct=0\n\n"), "{run}");
    assert!(run.stdout.lines().any(|line| line.contains("./ready") && line.ends_with("failed")), "{run}");
    // The next run repeats a failed point, and says since when the others are there.
    iolite_testing::write_program(&dir.path().join("ready"), "#!/bin/sh\n").unwrap();
    let run = ours().line(dir.path(), words).ok();
    assert!(run.stderr.contains("1 of them exists already, since 2"), "{run}");
    assert!(run.stdout.lines().next().unwrap().contains(" (continued at 2"), "{run}");
}

/// Each warning is printed once, with the names of its points and its line in the job file, or once for all points.
#[test]
fn warnings_of_points_are_reported_once() {
    let dir = scratch();
    fs::write(
        dir.path().join("job.fio"),
        "[a]\nioengine=null\nsize=1m\nfilename=f\nthread\n[b]\nioengine=null\nsize=1m\nthread\nbs=4k\nrwmixread=30\n",
    )
    .unwrap();
    let alone = ours().line(dir.path(), "job.fio").ok();
    let warnings: Vec<&str> = alone.stderr.lines().filter(|line| line.contains("warning")).collect();
    assert!(!warnings.is_empty() && warnings.iter().any(|line| line.contains("job.fio:11:")), "{alone}");
    let run = ours()
        .line(dir.path(), "sweep job.fio --iodepth=1,2,4 --bs=4k --filename=g --rw=read,rw --output=out")
        .ok();
    assert!(run.stdout.contains("\n\nAll points: bs=4k filename=g\n\niodepth  rw "), "{run}");
    let told: Vec<&str> = run.stdout.lines().filter(|line| line.contains("job.fio:11:")).collect();
    assert_eq!(told.len(), 1, "{run}");
    assert!(
        told[0].trim().starts_with("iodepth=1 rw=read, iodepth=2 rw=read, iodepth=4 rw=read: job.fio:11:"),
        "{run}"
    );
    let result = json(&fs::read_to_string(dir.path().join("out/result.json")).unwrap());
    let warnings = result["warnings"].as_array().unwrap();
    let warning =
        warnings.iter().find(|warning| warning["words"].as_str().unwrap().contains("job.fio:11:")).unwrap();
    assert_eq!(warning["points"], serde_json::json!([1, 3, 5]));
    assert_eq!(result["points"][0]["values"]["bs"], "4k");
    let page = fs::read_to_string(dir.path().join("out/result.html")).unwrap();
    assert!(page.contains("iodepth=4 rw=read: job.fio:11:"), "{page}");
}

fn small(dir: &Path, words: &str) -> Finished {
    ours().line(dir, &format!("sweep {words} --size=4m --ramp_time=0 --runtime=60ms"))
}

#[test]
fn presets_leave_nothing_behind() {
    let dir = scratch();
    for preset in ["oltp", "log", "vm-boot", "streaming", "backup"] {
        let run = small(dir.path(), &format!("--preset={preset} --direct=0 --output={preset}")).ok();
        let file = format!("iolite-sweep-{preset}.data");
        assert!(
            run.stderr.contains(&format!("{file}: a file of 4 MiB is written, and removed in the end")),
            "{run}"
        );
        assert!(!dir.path().join(&file).exists());
        assert!(reports(&dir.path().join(preset)).len() >= 2);
    }
    let file = dir.path().join("iolite-sweep-oltp.data");
    fs::write(&file, "somebody's").unwrap();
    // With a user's file, the preset's own file is neither created nor touched.
    small(dir.path(), "--preset=oltp --direct=0 --filename=mine --output=mine.out").ok();
    assert_eq!(fs::metadata(dir.path().join("mine")).unwrap().len(), 4 << 20);
    assert_eq!(fs::read_to_string(&file).unwrap(), "somebody's");
    small(dir.path(), "--preset=oltp --output=again")
        .refused()
        .says("this file exists, and would be overwritten");
    assert_eq!(fs::read_to_string(&file).unwrap(), "somebody's");
    assert!(!dir.path().join("again").exists());
}

/// A write of a log is complete when it is durable, so its latency includes its sync.
#[test]
fn writes_of_a_log_include_their_syncs() {
    let dir = scratch();
    let run = small(dir.path(), "--preset=log -F json").ok();
    for point in json(&run.stdout)["points"].as_array().unwrap() {
        let report = fs::read_to_string(
            dir.path().join(format!("log.sweep/point-{:04}.json", point["number"].as_u64().unwrap())),
        );
        let report = json(&report.unwrap());
        assert_eq!(
            (&report["jobs"][0]["job options"]["sync"], &report["jobs"][0]["sync"]["total_ios"]),
            (&"dsync".into(), &0.into())
        );
    }
}

/// The file of a failed preset is kept for another attempt, and a message says so.
#[test]
fn the_file_of_a_failed_preset_is_reported() {
    let dir = scratch();
    let run = small(dir.path(), "--preset=oltp --direct=0 --exec_prerun=true,false");
    let file = dir.path().join("iolite-sweep-oltp.data");
    assert_eq!(run.code(), 1, "{run}");
    assert!(file.exists(), "{run}");
    let told = format!("{}: this file stays, for the same command to continue with it", file.display());
    assert!(run.stderr.contains(&told), "{run}");
    // A message does not contain a place in the preset's internal text.
    let run = small(dir.path(), "--preset=log --bssplit=4k/100,5000000/100").refused();
    assert!(run.stderr.contains(": log: size=4194304 is smaller") && !run.stderr.contains("-:"), "{run}");
}

#[test]
fn targets_are_beside_each_other() {
    let dir = scratch();
    fs::create_dir(dir.path().join("a")).unwrap();
    fs::create_dir(dir.path().join("b")).unwrap();
    let run = small(dir.path(), "--preset=storage --directory=a,b --direct=0 -F json").ok();
    let relative = &json(&run.stdout)["relative"];
    assert_eq!(relative["columns"], serde_json::json!(["a", "b"]));
    let names: Vec<&str> =
        relative["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 15);
    assert_eq!(names[..4], ["read, MB/s", "read, IOPS", "read, CPU %", "write, MB/s"]);
    let row = &relative["rows"][0];
    let [one, other] = [0, 1].map(|column| row["values"][column].as_f64().unwrap());
    assert!(row["words"][1].as_str().unwrap().ends_with(&format!("({:.0}%)", 100.0 * other / one)), "{row}");
    assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 0);
    // A user's file is not overwritten here either.
    fs::write(dir.path().join("b/iolite-sweep-storage.data"), "somebody's").unwrap();
    small(dir.path(), "--preset=storage --directory=a,b --output=other")
        .refused()
        .says("would be overwritten");
    fs::remove_file(dir.path().join("b/iolite-sweep-storage.data")).unwrap();
    let again = small(dir.path(), "--preset=storage --directory=a,b --direct=0").ok();
    assert!(
        again.stdout.contains("randrw, IOPS") && again.stdout.contains("In brackets: relative"),
        "{again}"
    );
    // Targets that differ in several options: a directory, and a server with another engine.
    let server = or_skip!(NbdServer::nbdkit(dir.path(), "memory 8M"));
    let uri = format!("--target=nbd: ioengine=nbd uri={}", server.uri());
    let words = [
        "sweep",
        "--preset=storage",
        "--size=4m",
        "--ramp_time=0",
        "--runtime=60ms",
        "--output=engines",
        "-F",
        "json",
    ];
    let run =
        ours().run(dir.path(), words.into_iter().chain(["--target=disk: directory=a direct=0", &uri])).ok();
    let relative = &json(&run.stdout)["relative"];
    assert_eq!(
        (&relative["option"], &relative["columns"]),
        (&"target".into(), &serde_json::json!(["disk", "nbd"]))
    );
    let measured = |row: &Value| row["values"].as_array().unwrap().iter().all(Value::is_f64);
    assert!(relative["rows"].as_array().unwrap().iter().all(measured), "{relative}");
    assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 0, "its own file is removed");
}

#[test]
fn mistakes_are_reported_before_the_first_run() {
    let dir = scratch();
    job(dir.path(), "");
    fs::write(
        dir.path().join("two.fio"),
        "[a]\nioengine=null\nsize=4k\n[b]\nstonewall\nioengine=null\nsize=4k\n",
    )
    .unwrap();
    fs::write(dir.path().join("split.fio"), "[a]\nioengine=null\nsize=4k\nbssplit=4k/50:8k/50\n").unwrap();
    fs::create_dir(dir.path().join("used")).unwrap();
    fs::write(dir.path().join("used/notes"), "").unwrap();
    for (words, why) in [
        ("", "needs one job file, a job in options (--name=a ...), or --preset=NAME"),
        ("job.fio two.fio", "needs one job file"),
        ("nosuch.fio --bs=4k", "nosuch.fio: No such file"),
        ("job.fio --iodpeth=1", "unknown option --iodpeth; did you mean \"--iodepth\"?"),
        ("job.fio --iodepth", "--iodepth needs a value"),
        ("job.fio --iodepth=", "an empty value"),
        ("job.fio --iodepth=1..8", "a range is FIRST..LASTxFACTOR"),
        ("job.fio --iodepth=1,x", "iodepth=x: "),
        ("job.fio --iodepth=1,1", "1 is given twice"),
        ("job.fio --bs=4k --blocksize=8k", "--blocksize is given twice"),
        ("job.fio --name=x", "give either a job file, or jobs in options"),
        ("job.fio --group_reporting", "no values to sweep over"),
        ("job.fio --filename=a#b", "no ; or #"),
        ("job.fio --iodepth=1..999+1 --bs=4k..400k+4k", "more than 10000 points"),
        ("two.fio --bs=4k", "job b waits for others"),
        ("split.fio --bs=4k", "bssplit, beside which bs has no effect"),
        ("job.fio --bs=4k --output=used", "files of others"),
        ("job.fio --bs=4k --output=job.fio", "--output=job.fio"),
        ("job.fio --bs=4k -F xml", "not one of table, json, csv"),
        ("--preset=nosuch", "  vm-boot    four readers of mixed sizes"),
        ("--preset=oltp --rw=read", "the cases of this preset"),
        ("--preset=oltp job.fio", "a preset brings its own jobs"),
        ("--preset=oltp --target=a", "--target=…: needs a name, a colon, and options"),
        ("--preset=oltp --target=a:bs=4k --target=a:bs=8k", "--target=a: …: this name is given twice"),
        ("--preset=oltp --target=a:bs=4k --bs=8k", "--bs: target a sets it as well"),
        ("--preset=log --target=a:bs=4k", "--bs: the cases of this preset have their own values"),
    ] {
        let run = ours().line(dir.path(), &format!("sweep {words}")).refused();
        assert!(run.stderr.contains(why), "{why}: {run}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
}

/// The pictures are drawn at both widths, without errors in the console.
#[test]
fn the_page_of_a_sweep_in_a_browser() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    job(dir.path(), "thread");
    ours().line(dir.path(), "sweep job.fio --iodepth=1..8x2 --bs=4k,8k --output=out").ok();
    let result = json(&fs::read_to_string(dir.path().join("out/result.json")).unwrap());
    for (width, height, is_dark) in [(1280, 900, false), (390, 844, true)] {
        browser.show_as(width, height, is_dark);
        browser.open(&dir.path().join("out/result.html"));
        browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
        let shown = browser.run("return [...document.querySelectorAll('tr[data-point] td[data-iops]')].map((cell) => +cell.dataset.iops)");
        let points = result["points"].as_array().unwrap();
        let measured: Vec<f64> =
            points.iter().map(|point| point["figures"]["iops"].as_f64().unwrap()).collect();
        let shown: Vec<f64> = shown.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        assert_eq!(shown, measured);
        browser.wait_until("return document.querySelectorAll('svg.chart').length >= 4");
        let maps = browser.run("return document.querySelectorAll('table.map td').length");
        assert_eq!(maps, 24, "three maps of eight points");
        // Each measured point is marked on its curve, and what the law says is not.
        let marked = browser.run(
            "const curve = document.querySelector('details.job .pictures figure'); \
             return [...curve.querySelectorAll('path.points')].map((one) => one.getAttribute('d').match(/h0/g).length)",
        );
        assert_eq!(marked, serde_json::json!([4]));
        browser.check(&format!("sweep-{width}"));
    }
    browser.check_tables("sweep");
}
