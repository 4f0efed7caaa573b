//! `iolite sweep`: points, the state after an interrupt, presets, and the page.

use crate::common::browser::Browser;
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
    // A repetition of the command runs nothing.
    let again = ours().line(dir.path(), "sweep job.fio --iodepth=1..4x2 --blocksize=4k,64k -f csv").ok();
    assert_eq!(again.stdout, table);
    assert!(again.stderr.contains("6 of them exist already"), "{again}");
    // For a single point, its values are printed above the figures.
    let single = ours().line(dir.path(), "sweep job.fio --bs=8k --output=single").ok();
    assert!(single.stdout.starts_with("All points: bs=8k\n\n"), "{single}");
    // A different sweep does not overwrite it.
    ours().line(dir.path(), "sweep job.fio --iodepth=1,2").refused().says("there is another sweep");
    job(dir.path(), "iodepth=64\nrandrepeat=0");
    ours()
        .line(dir.path(), "sweep job.fio --iodepth=1..4x2 --bs=4k,64k")
        .refused()
        .says("there is another sweep");
}

#[test]
fn options_are_varied_alone() {
    let dir = scratch();
    job(dir.path(), "");
    let words = "sweep job.fio --one-at-a-time --numjobs=1,2 --bs=4k,8k,16k --output=out";
    let run = ours().line(dir.path(), words).ok();
    let rows: Vec<Vec<&str>> =
        run.stdout.lines().skip(1).take(4).map(|row| row.split_whitespace().take(2).collect()).collect();
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
    assert!(last.stderr.contains("of them exist already"), "{last}");
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
    let run = ours().line(dir.path(), "sweep io.fio --filename=f,none/f --allow_file_create=0");
    assert_eq!(run.code(), 1, "{run}");
    assert!(
        run.stderr.contains("filename=none/f: failed: ")
            && run.stdout.contains("filename=none/f: the run failed: "),
        "{run}"
    );
    assert!(run.stdout.starts_with("All points: allow_file_create=0\n\n"), "{run}");
    assert!(run.stdout.lines().any(|line| line.contains("none/f") && line.ends_with("failed")), "{run}");
    // The next run repeats a failed point.
    fs::create_dir(dir.path().join("none")).unwrap();
    fs::write(dir.path().join("none/f"), vec![1; 4096]).unwrap();
    let run = ours().line(dir.path(), "sweep io.fio --filename=f,none/f --allow_file_create=0").ok();
    assert!(run.stderr.contains("1 of them exist already"), "{run}");
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
    assert!(run.stdout.starts_with("All points: bs=4k filename=g\n\niodepth  rw "), "{run}");
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
        // A later file with that name is not touched, because the same command has nothing left to do.
        fs::write(dir.path().join(&file), "somebody's").unwrap();
        let again = small(dir.path(), &format!("--preset={preset} --direct=0 --output={preset}")).ok();
        assert!(!again.stderr.contains(&file), "{again}");
        assert_eq!(fs::read_to_string(dir.path().join(&file)).unwrap(), "somebody's");
        fs::remove_file(dir.path().join(&file)).unwrap();
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
    let run = small(dir.path(), "--preset=log -f json").ok();
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
    let words = "--preset=oltp --direct=0 --bssplit=4k/100,5000000/100";
    let run = small(dir.path(), words);
    let file = dir.path().join("iolite-sweep-oltp.data");
    assert_eq!(run.code(), 1, "{run}");
    assert!(file.exists(), "{run}");
    let told = format!("{}: this file stays, for the same command to continue with it", file.display());
    assert!(run.stderr.contains(&told), "{run}");
    // The message does not contain a place in the preset's internal text.
    assert!(run.stdout.contains(": the run failed: oltp: size=4194304 is smaller"), "{run}");
}

#[test]
fn targets_are_beside_each_other() {
    let dir = scratch();
    fs::create_dir(dir.path().join("a")).unwrap();
    fs::create_dir(dir.path().join("b")).unwrap();
    let run = small(dir.path(), "--preset=storage --directory=a,b --direct=0 -f json").ok();
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
        "-f",
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
        ("", "needs one job file, or --preset=NAME"),
        ("job.fio two.fio", "needs one job file"),
        ("nosuch.fio --bs=4k", "nosuch.fio: No such file"),
        ("job.fio --iodpeth=1", "unknown option --iodpeth; did you mean --iodepth?"),
        ("job.fio --iodepth", "--iodepth needs its values behind a ="),
        ("job.fio --iodepth=", "an empty value"),
        ("job.fio --iodepth=1..8", "a range is FIRST..LASTxFACTOR"),
        ("job.fio --iodepth=1,x", "iodepth=x: "),
        ("job.fio --iodepth=1,1", "1 is given twice"),
        ("job.fio --bs=4k --blocksize=8k", "--blocksize is given twice"),
        ("job.fio --name=x", "no values to sweep over"),
        ("job.fio --filename=a#b", "no ; or #"),
        ("job.fio --iodepth=1..999+1 --bs=4k..400k+4k", "more than 10000 points"),
        ("two.fio --bs=4k", "job b waits for others"),
        ("split.fio --bs=4k", "bssplit, beside which bs has no effect"),
        ("job.fio --bs=4k --output=used", "files of others"),
        ("job.fio --bs=4k --output=job.fio", "--output=job.fio"),
        ("job.fio --bs=4k -f xml", "not one of table, json, csv"),
        ("--preset=nosuch", "not one of oltp, log, vm-boot"),
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
        browser.check(&format!("sweep-{width}"));
    }
}
