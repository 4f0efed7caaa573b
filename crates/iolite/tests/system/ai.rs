//! `iolite ai`, and the accelerator of a job (`batch_size`).
//!
//! Storage is slow or fast as the machine is, so utilisation is compared only where the job's own clock bounds it.

use crate::common::devices::Loop;
use crate::common::program::{GRACE, Running, send, wait_until_gone};
use crate::common::s3::S3;
use crate::common::tmux::Tmux;
use crate::common::{Finished, Json, Program, scratch};
use crate::remote::Agent;
use crate::signals::descendants;
use iolite_testing::{Ganesha, or_skip};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Instant;

fn run(dir: &Path, line: &str) -> Finished {
    Running::of_ours(dir, &[], line).wait()
}

/// The figures of a test.
fn figures(run: Finished) -> Value {
    let run = run.ok();
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// The names in a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What the accelerator of a job with the null engine did.
fn accelerator(line: &str) -> (Json, Value) {
    let dir = scratch();
    let line = format!("--name=a --ioengine=null --bs=4k --output-format=json {line}");
    let report = Json::parse(&Program::under_test().line(dir.path(), &line).ok().stdout);
    let found = report.0["jobs"][0]["accelerator"].clone();
    assert!(found.is_object(), "{report:?}");
    (report, found)
}

#[test]
fn readers_are_as_far_ahead_as_the_prefetch() {
    for (prefetch, batches_waited_for) in [(0, 29), (2, 27), (40, 0)] {
        let line = format!("--size=480k --batch_size=4 --batch_compute=20ms --batch_prefetch={prefetch}");
        let (report, found) = accelerator(&line);
        assert_eq!((&found["batches"], &found["samples"]), (&30.into(), &120.into()));
        // The first batch does not count.
        assert_eq!(found["compute_ns"], 29 * 20_000_000);
        // The last batch is begun when those before it have been computed, except for the prefetch.
        let least = 20 * batches_waited_for;
        let runtime = report.job().int("job_runtime");
        assert!(runtime + 1 >= least, "prefetch {prefetch}: {runtime} ms");
        // Without a prefetch, all reading is waiting.
        let wait = found["wait_ns"].as_u64().unwrap();
        assert!(prefetch > 0 || wait > 0);
        let share = 100.0 * 580e6 / (580e6 + wait as f64);
        assert!((found["utilization"].as_f64().unwrap() - share).abs() < 1e-3, "{found}");
    }
}

/// At 200 reads a second, a batch of ten takes 50 ms, and computing 10 ms: 20% at most, unless the job was held up and caught up.
#[test]
fn slow_reads_are_waited_for() {
    // (A machine that stands still three times at the very beginning tells nothing.)
    let shares = [(); 3].map(|()| {
        let (report, found) = accelerator("--size=400k --rate_iops=200 --batch_size=10 --batch_compute=10ms");
        assert_eq!(found["batches"], 10);
        assert!(report.job().int("job_runtime") >= 494);
        found["utilization"].as_f64().unwrap()
    });
    assert!(shares.iter().any(|share| *share <= 25.0), "{shares:?}");
}

#[test]
fn workers_of_a_job_share_an_accelerator() {
    let line = "--size=100k --numjobs=4 --group_reporting --batch_size=10 --batch_compute=1ms";
    let (_, together) = accelerator(line);
    assert_eq!((&together["accelerators"], &together["samples"]), (&1.into(), &100.into()));
    // Not all of them need to be there to the end.
    let dir = scratch();
    fs::write(dir.path().join("f"), vec![1; 64 << 10]).unwrap();
    let line = "--name=a --rw=read --bs=4k --filename=f --numjobs=3 --offset_increment=8k --size=40k --batch_size=1 \
                --batch_compute=1ms --batch_prefetch=0 --continue_on_error=read --output-format=json --group_reporting \
                --allow_file_create=0";
    let report = Json::parse(&Program::under_test().line(dir.path(), line).ok().stdout);
    assert_eq!(report.0["jobs"][0]["accelerator"]["batches"], 30);
}

#[test]
pub fn a_sample_is_a_read_a_file_or_bytes() {
    let samples = |sample: &str| {
        let dir = scratch();
        let line = format!(
            "--name=a --ioengine=null --bs=4k --filename_format=f.$filenum --nrfiles=6 --filesize=16k --batch_size=2 \
             --batch_sample={sample} --batch_compute=1us --output-format=json"
        );
        let report = Json::parse(&Program::under_test().line(dir.path(), &line).ok().stdout);
        report.0["jobs"][0]["accelerator"]["samples"].as_u64().unwrap()
    };
    assert_eq!([samples("io"), samples("file"), samples("12k")], [24, 6, 8]);
}

#[test]
fn an_accelerator_needs_reads_and_a_time() {
    for (line, why) in [
        ("--batch_size=4", "batch_compute=323ms"),
        ("--batch_size=4 --batch_compute=1ms --rw=write", "samples are read, and this job only writes"),
        ("--batch_size=4 --batch_compute=1ms --batch_sample=files", "not io, file or a number of bytes"),
        ("--batch_size=-1", "batch_size"),
    ] {
        let dir = scratch();
        let line = format!("--name=a --ioengine=null --size=64k {line}");
        Program::under_test().line(dir.path(), &line).refused().says(why);
    }
}

#[test]
fn a_dataset_is_read_sample_by_sample() {
    let dir = scratch();
    let made = run(dir.path(), "ai dataset ds --sample-size=64k --deviation=0 --samples=24 --writers=4").ok();
    assert!(made.stdout.contains("24 samples in 24 files, 1.5 MiB"), "{made}");
    assert!(made.stdout.contains("smaller than 5 times the memory"), "{made}");
    let files = names(&dir.path().join("ds"));
    assert_eq!(files.len(), 25, "{files:?}");
    let sizes =
        (0..24).map(|number| fs::metadata(dir.path().join(format!("ds/sample.{number}"))).unwrap().len());
    assert_eq!(sizes.sum::<u64>(), 24 << 16);
    // The same again is there already, and another one is not written over it.
    let again = run(dir.path(), "ai dataset ds --sample-size=64k --samples=24").ok();
    assert!(again.stdout.contains("there already"), "{again}");
    run(dir.path(), "ai dataset ds --sample-size=64k --samples=25").refused().says("another dataset");

    let read =
        run(dir.path(), "ai reader ds --batch=4 --compute=1ms --readers=3 --epochs=2 --output-format=json");
    let read = figures(read);
    let result = &read["result"];
    assert_eq!((&result["samples"], &result["steps"]), (&48.into(), &12.into()));
    assert_eq!(result["read_bytes"], (2 * 24) << 16);
    assert_eq!(files, names(&dir.path().join("ds")), "reading leaves nothing");

    // Each file once in an epoch: the job that is shown, with a log.
    let shown = run(dir.path(), "ai reader --show-job ds --batch=4 --compute=1ms --readers=1").ok();
    fs::write(dir.path().join("shown.fio"), shown.stdout + "write_iolog=log\n").unwrap();
    run(dir.path(), "shown.fio").ok();
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    let mut reads: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(" read "))
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(reads.len(), 24);
    assert!(!reads.is_sorted(), "files are shuffled");
    reads.sort_unstable();
    reads.dedup();
    assert_eq!(reads.len(), 24);
}

#[test]
fn sizes_of_samples_vary_as_asked() {
    let dir = scratch();
    run(dir.path(), "ai dataset ds --sample-size=3m --deviation=600k --samples=12").ok();
    let sizes =
        (0..12).map(|number| fs::metadata(dir.path().join(format!("ds/sample.{number}"))).unwrap().len());
    let sizes: Vec<u64> = sizes.collect();
    assert!(sizes.iter().all(|size| size % (1 << 20) == 0 && (2..=4).contains(&(size >> 20))), "{sizes:?}");
    assert!(sizes.iter().any(|size| *size != sizes[0]), "{sizes:?}");
    // A file that was cut off is no sample.
    fs::write(dir.path().join("ds/sample.3"), "x").unwrap();
    run(dir.path(), "ai reader ds --batch=2 --compute=1ms")
        .refused()
        .says("sample.3: 1 bytes are no size of a sample");
}

#[test]
fn records_of_large_files_are_samples() {
    let dir = scratch();
    run(dir.path(), "ai dataset ds --sample-size=1000 --per-file=50 --samples=200").ok();
    for shuffle in ["files", "records"] {
        let line = format!(
            "ai reader ds --batch=10 --compute=1ms --readers=2 --shuffle={shuffle} --output-format=json"
        );
        let read = figures(run(dir.path(), &line));
        assert_eq!(
            (&read["result"]["samples"], &read["result"]["read_bytes"]),
            (&200.into(), &200_000.into())
        );
    }
}

#[test]
fn the_largest_number_of_accelerators_is_searched() {
    let dir = scratch();
    run(dir.path(), "ai dataset ds --sample-size=16k --samples=64").ok();
    let line = "ai reader ds --batch=2 --compute=40ms --readers=1 --accelerators=max --least=50 --output=r.html --output-format=json";
    let found = figures(run(dir.path(), line));
    let tried = found["tried"].as_array().unwrap();
    let is_held = |number: u64| {
        let result = tried.iter().find(|result| result["accelerators"] == number).unwrap();
        result["utilization"].as_f64().unwrap() >= 50.0
    };
    match found["most_accelerators"].as_u64() {
        Some(most) => assert!(is_held(most) && most <= 16, "{found}"),
        None => assert!(!is_held(1), "{found}"),
    }
    let page = fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(page.contains("accelerator utilization: ") && page.contains("not a submission"));
    // None can be kept busy for all of the time without reading ahead.
    let line = "ai reader ds --batch=2 --compute=10us --prefetch=0 --accelerators=max --least=100 --output-format=json";
    assert_eq!(figures(run(dir.path(), line))["most_accelerators"], Value::Null);
}

#[test]
fn an_interrupted_dataset_is_removed_and_a_killed_one_is_written_again() {
    let dir = scratch();
    let make = "ai dataset ds --sample-size=1m --samples=4000 --writers=1";
    let has_begun = |_: &Running| dir.path().join("ds/sample.3").exists();
    let mut running = Running::of_ours(dir.path(), &[], make);
    running.wait_until("some samples", has_begun);
    send(running.pid(), libc::SIGINT);
    assert_ne!(running.wait().code(), 0);
    assert!(names(&dir.path().join("ds")).is_empty());

    let mut running = Running::of_ours(dir.path(), &[], make);
    running.wait_until("some samples", has_begun);
    let family = descendants(running.pid());
    send(running.pid(), libc::SIGKILL);
    running.wait();
    // Its workers end with it, but perhaps a moment later, and write until then.
    wait_until_gone(&family);
    run(dir.path(), "ai reader ds --batch=2 --compute=1ms").refused().says("its writer was interrupted");
    run(dir.path(), "ai dataset ds --sample-size=4k --samples=6").ok();
    assert_eq!(names(&dir.path().join("ds")).len(), 7);
    run(dir.path(), "ai reader ds --batch=2 --compute=1ms").ok();
}

#[test]
fn an_interrupted_dataset_goes_on_where_it_was() {
    let dir = scratch();
    let ds = dir.path().join("ds");
    let make = |samples: u32, more: &str| {
        format!("ai dataset ds --sample-size=1m --samples={samples} --writers=2 {more}")
    };
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let mut running = Running::of_ours(dir.path(), &[], &make(4000, "--resume"));
        // The second writer's files begin in the middle.
        running.wait_until("some samples", |_| {
            ["sample.3", "sample.2003"].iter().all(|name| ds.join(name).exists())
        });
        send(running.pid(), signal);
        let ended = running.wait();
        assert!(signal == libc::SIGKILL || ended.stderr.contains("the same command goes on"), "{ended}");
        run(dir.path(), "ai reader ds --batch=2 --compute=1ms").refused().says("with --resume goes on");
        if signal == libc::SIGINT {
            run(dir.path(), &make(4001, "--resume")).refused().says("another dataset was interrupted there");
            run(dir.path(), &make(4000, "--writers=3 --resume")).refused().says("it was begun by 2");
            let shown = run(dir.path(), &make(4000, "--resume --show-job")).ok();
            assert!(shown.stdout.contains("filenum_first=") && !shown.stdout.contains("numjobs"), "{shown}");
        }
    }
    // The rest of a dataset that is small enough to be completed.
    fs::remove_dir_all(&ds).unwrap();
    run(dir.path(), &make(20, "--resume")).ok();
    let told = run(dir.path(), &make(20, "--resume")).ok();
    assert!(told.stdout.contains("there already"), "{told}");
    let text = fs::read_to_string(ds.join("iolite-dataset.json")).unwrap();
    fs::write(ds.join("iolite-dataset.json"), text.replace("\"complete\": true", "\"complete\": false"))
        .unwrap();
    for gone in [6, 7, 8, 9] {
        fs::remove_file(ds.join(format!("sample.{gone}"))).unwrap();
    }
    // A crash of the machine may leave a file without its data.
    fs::File::create(ds.join("sample.14")).unwrap().set_len(1 << 20).unwrap();
    fs::write(ds.join("sample.15"), "cut").unwrap();
    let number = |name: u32| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(ds.join(format!("sample.{name}"))).unwrap().ctime_nsec()
    };
    let before: Vec<i64> = [0, 1, 2, 3, 4, 10, 11, 12].map(number).to_vec();
    let ended = run(dir.path(), &make(20, "--resume")).ok();
    assert!(ended.stderr.contains("8 files are there already, and 12 are left"), "{ended}");
    assert_eq!(
        [0, 1, 2, 3, 4, 10, 11, 12].map(number).to_vec(),
        before,
        "what was complete is not written again"
    );
    assert_eq!(names(&ds).len(), 21);
    let read =
        figures(run(dir.path(), "ai reader ds --batch=2 --compute=1ms --readers=1 --output-format=json"));
    assert_eq!(read["result"]["read_bytes"], 20 << 20);
}

#[test]
fn an_interrupted_search_goes_on() {
    let dir = scratch();
    run(dir.path(), "ai dataset ds --sample-size=16k --samples=64").ok();
    let line =
        "ai reader ds --batch=2 --compute=20ms --readers=1 --accelerators=max --least=1 --output=r.json";
    let whole = run(dir.path(), line).ok();
    let tried = |run: &Finished| run.stderr.lines().filter(|line| line.contains("AU ")).count();
    assert!(tried(&whole) > 2, "{whole}");
    run(dir.path(), &format!("{line} --resume")).refused().says("there is no interrupted search");
    // As it was after two of them.
    let (path, part) = (dir.path().join("r.json"), dir.path().join("r.json.part"));
    assert!(!part.exists());
    let complete = fs::read_to_string(&path).unwrap();
    let mut report: Value = serde_json::from_str(&complete).unwrap();
    let ai = &mut report["iolite"]["ai"];
    ai["complete"] = false.into();
    ai["tried"].as_array_mut().unwrap().truncate(2);
    ai["result"] = ai["tried"][1].clone();
    fs::write(&part, report.to_string()).unwrap();
    run(dir.path(), &line.replace("batch=2", "batch=1").replace(" --output", " --resume --output"))
        .refused()
        .says("that search was another one: its batch is 2, and not 1");
    run(dir.path(), line).refused().says("r.json.part: a search that was interrupted has left this file");
    assert_eq!(fs::read_to_string(&path).unwrap(), complete, "a refusal loses no result");
    let rest = run(dir.path(), &format!("{line} --resume")).ok();
    assert!(!part.exists());
    let found: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let found = &found["iolite"]["ai"];
    assert_eq!((&found["complete"], &found["tried"][0]), (&true.into(), &report["iolite"]["ai"]["tried"][0]));
    assert!(found["most_accelerators"].as_u64().is_some_and(|most| most >= 2), "{found}");
    assert_eq!(found["tried"].as_array().unwrap().len(), tried(&rest) + 2, "{rest}");
    // What a search that is interrupted leaves in its file.
    let line = line.replace("--least=1", "--least=1 --seconds=1").replace("r.json", "s.json");
    let mut running = Running::of_ours(dir.path(), &[], &line);
    let kept = dir.path().join("s.json.part");
    running.wait_until("the first figures", |_| fs::metadata(&kept).is_ok_and(|found| found.len() > 0));
    send(running.pid(), libc::SIGINT);
    let ended = running.wait();
    assert_eq!(ended.code(), 128);
    ended.says(
        "iolite: ai: interrupted: nothing is reported; --resume goes on with the search in s.json.part",
    );
    let found: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    assert_eq!(found["iolite"]["ai"]["complete"], false);
}

#[test]
fn ranks_search_together() {
    let dir = scratch();
    let line = "--sample-size=16k --samples=64";
    let rank = |number: u32, line: &str| {
        let number = number.to_string();
        Running::of_ours(dir.path(), &[("IOLITE_RANK", &number), ("IOLITE_RANKS", "3")], line)
    };
    let all = |line: &str| {
        let mut started: Vec<Running> = (0..3).rev().map(|number| rank(number, line)).collect();
        let first = started.pop().unwrap().wait();
        (first, started.into_iter().map(Running::wait).collect::<Vec<_>>())
    };
    all(&format!("ai dataset . {line} --mpi=dir:meet")).0.ok();
    assert_eq!(names(dir.path()).len(), 3 * 64);
    let search =
        format!("ai reader . {line} --batch=2 --compute=10ms --readers=1 --accelerators=max --least=1");
    let (first, others) = all(&format!("{search} --mpi=dir:meet --output=r.json"));
    let found: Value = serde_json::from_str(&fs::read_to_string(dir.path().join("r.json")).unwrap())
        .unwrap_or_else(|error| panic!("{error}: {first}"));
    let found = &found["iolite"]["ai"];
    // Accelerators of all three, and of each.
    let tried = found["tried"].as_array().unwrap();
    assert!(tried.len() > 1 && tried[0]["accelerators"] == 3 && tried[1]["accelerators"] == 6, "{found}");
    assert_eq!(found["most_accelerators"], 5, "{found}");
    for other in others {
        assert!(other.code() == 0 && other.output().is_empty(), "{other}");
    }
    assert!(!dir.path().join("meet").exists());
    rank(0, &format!("{search} --mpi=pmix")).wait().refused().says("--mpi=dir:PATH");
    // What is no rank has a mistake of its own.
    run(dir.path(), &format!("{search} --mpi=dir:meet")).refused();
    assert!(!dir.path().join("meet").exists());
}

#[test]
fn checkpoints_leave_nothing() {
    let dir = scratch();
    for (more, files) in [("", 1), (" --files=3", 3), (" --layout=shared", 1)] {
        let line =
            format!("ai checkpoint . --ranks=3 --size=600k --output-format=json --output=r.json{more}");
        let found = figures(run(dir.path(), &line));
        for phase in ["write", "read"] {
            assert_eq!(
                (&found[phase]["ranks"], &found[phase]["bytes"]),
                (&3.into(), &((3 * 600) << 10).into()),
                "{found}"
            );
            let time = |key: &str| found[phase][key].as_f64().unwrap();
            assert!(
                time("slowest_s") >= time("fastest_s") && time("slowest_rank_bw_bytes") <= time("bw_bytes")
            );
        }
        assert_eq!(names(dir.path()), ["r.json"], "{files} files");
        let report = Json::parse(&fs::read_to_string(dir.path().join("r.json")).unwrap());
        assert_eq!(report.0["iolite"]["ai"]["test"], "checkpoint");
        // Each rank has synced what it wrote.
        assert!(report.0["global options"].is_object());
    }
    let found =
        figures(run(dir.path(), "ai checkpoint . --preset=llama3-8b --scale=0.00001 --output-format=json"));
    assert_eq!((&found["ranks"], &found["rank_bytes"]), (&8.into(), &131_250.into()));
}

#[test]
fn results_are_kept_and_compared() {
    let dir = scratch();
    for name in ["a.json", "b.json"] {
        let line = format!("ai checkpoint . --ranks=2 --size=64k --output={name} --save --store=runs.db");
        run(dir.path(), &line).ok().says("the run is kept as run");
    }
    run(dir.path(), "runs --store=runs.db").ok().says("ai");
    run(dir.path(), "compare a.json b.json").ok().says("write, slowest rank").says("no verdict");
    let compared = run(dir.path(), "compare a.json b.json --output-format=json");
    assert_eq!(figures(compared)["cells"].as_array().unwrap().len(), 4);
    // The jobs have verdicts, as those of any report.
    run(dir.path(), "compare a.json b.json --allow=bs").ok().says("BASE");
    run(dir.path(), "ai kv . --store=runs.db").refused().says("--store belongs to --save");
}

#[test]
fn what_a_killed_test_left_is_cleaned() {
    let dir = scratch();
    for line in ["ai checkpoint . --ranks=2 --size=2g", "ai kv . --size=1g --rates=5 --seconds=60"] {
        for signal in [libc::SIGINT, libc::SIGKILL] {
            let mut running = Running::of_ours(dir.path(), &[], line);
            let has_data = || {
                let own = names(dir.path()).into_iter().find(|name| name.starts_with("iolite-ai."));
                own.is_some_and(|own| names(&dir.path().join(own)).len() > 1)
            };
            running.wait_until("its files", |_| has_data());
            send(running.pid(), signal);
            let ended = running.wait();
            if signal == libc::SIGKILL {
                assert!(has_data());
                run(dir.path(), "ai checkpoint --clean .").ok().says("a test that was killed had left it");
            }
            assert!(signal == libc::SIGKILL || ended.code() == 128, "{ended}");
            assert!(names(dir.path()).is_empty(), "{line}, signal {signal}: {:?}", names(dir.path()));
        }
    }
}

#[test]
fn a_cache_reads_hits_and_evicts_as_much_as_it_writes() {
    let dir = scratch();
    for evict in ["unlink", "overwrite"] {
        let line = format!(
            "ai kv . --block=64k --size=640k --rates=20,50 --blocks=4 --hits=50 --seconds=2 --evict={evict} --output-format=json"
        );
        let found = figures(run(dir.path(), &line));
        let tenants = found["tenants"].as_array().unwrap();
        assert_eq!(tenants.len(), 2);
        for tenant in tenants {
            let count = |key: &str| tenant[key].as_u64().unwrap();
            let (read, written, evicted) =
                (count("blocks_read"), count("blocks_written"), count("blocks_evicted"));
            assert!(read > 0 && written > 0 && evicted <= written, "{tenant}");
            // The cache is never larger than ten blocks. One that is overwritten is full from the beginning.
            assert!(written - evicted <= if evict == "unlink" { 10 } else { 0 }, "{evict}: {tenant}");
            let time = |key: &str| tenant[key].as_f64().unwrap();
            assert!(time("first_block_p50_ns") <= time("first_block_p99_ns"));
        }
        assert!(found["first_block_p99_ns"].is_number() && found["read_p99_ns"].is_number());
        assert!(names(dir.path()).is_empty());
    }
    let found = figures(run(
        dir.path(),
        "ai kv . --block=64k --size=640k --rates=20 --hits=100 --seconds=1 --output-format=json",
    ));
    assert_eq!(found["hit_percent"], 100.0);
}

#[test]
fn a_cache_on_a_device_is_trimmed() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 32 << 20));
    let path = &device.path;
    let line = format!("ai kv {path} --block=64k --size=640k --rates=20,50 --blocks=4 --hits=50 --seconds=2");
    run(dir.path(), &line).refused().says(&format!("--destroy={path}"));
    let found = figures(run(dir.path(), &format!("{line} --destroy={path} --output-format=json")));
    for tenant in found["tenants"].as_array().unwrap() {
        let count = |key: &str| tenant[key].as_u64().unwrap();
        let (written, evicted) = (count("blocks_written"), count("blocks_evicted"));
        assert!(count("blocks_read") > 0 && written > 0, "{tenant}");
        assert!(evicted.abs_diff(written) <= 1, "{tenant}");
    }
    run(dir.path(), &format!("{line} --size=64m --destroy={path}")).refused().says("are needed, and it has");
    run(dir.path(), &format!("{line} --evict=unlink --destroy={path}")).refused().says("that is for files");
    run(dir.path(), &format!("ai kv . --destroy={path}")).refused().says("that is for block devices");
}

#[test]
fn objects_are_samples_checkpoints_and_blocks() {
    let dir = scratch();
    let store = S3::start(dir.path());
    let environment = store.environment();
    let count = || store.count();
    let run = |line: &str| Running::of_ours(dir.path(), &environment, line).wait();
    let made = run("ai dataset s3://bkt --sample-size=100k --samples=12").ok();
    assert!(made.stdout.contains("--sample-size=100k --samples=12"), "{made}");
    assert_eq!(count(), 12);
    let line =
        "ai reader s3://bkt --sample-size=100k --samples=12 --batch=3 --compute=1ms --output-format=json";
    let read = figures(run(line));
    assert_eq!(
        (&read["result"]["samples"], &read["result"]["read_bytes"]),
        (&12.into(), &((12 * 100) << 10).into())
    );
    run("ai reader s3://bkt --batch=3 --compute=1ms").refused().says("repeat --samples");
    let found = figures(run("ai checkpoint s3://bkt --ranks=2 --size=9m --output-format=json"));
    assert_eq!((&found["read"]["ranks"], &found["read"]["bytes"]), (&2.into(), &(2 * (16 << 20)).into()));
    assert_eq!(count(), 12, "what is not a dataset is removed");
    // Records of large objects, which are written in parts.
    let options = "s3://bkt --sample-size=1m --per-file=24 --samples=48";
    run(&format!("ai dataset {options}")).ok();
    let line = format!("ai reader {options} --batch=3 --compute=1ms --shuffle=records --output-format=json");
    assert_eq!(figures(run(&line))["result"]["read_bytes"], 48 << 20);
    // A sample that is no whole number of parts of the usual size.
    run("ai dataset s3://bkt/large --sample-size=33m --samples=1").ok();
    let count = || count() - 3;
    let found = figures(run(
        "ai kv s3://bkt --block=64k --size=640k --rates=10 --blocks=2 --hits=50 --seconds=2 --output-format=json",
    ));
    assert!(found["tenants"][0]["blocks_evicted"].as_u64().unwrap() > 0, "{found}");
    assert_eq!(count(), 12);
    // What a killed one has left is removed on demand.
    let mut running =
        Running::of_ours(dir.path(), &environment, "ai kv s3://bkt --size=64m --rates=10 --seconds=60");
    running.wait_until("objects are there", |_| count() > 12);
    send(running.pid(), libc::SIGKILL);
    running.wait();
    // (Blocks that were on their way to the server are stored later.)
    let begun = Instant::now();
    while count() > 12 {
        assert!(begun.elapsed() < GRACE, "{} objects are left", count());
        run("ai kv --clean s3://bkt").ok();
    }
}

#[test]
fn versions_of_a_bucket_are_removed_as_well() {
    let dir = scratch();
    let store = S3::start(dir.path());
    or_skip!(store.keep_versions());
    let environment = store.environment();
    let start = |line: &str| Running::of_ours(dir.path(), &environment, line);
    let dataset = "ai dataset s3://bkt --sample-size=100k --samples=12";
    start(dataset).wait().ok();
    assert_eq!(store.versions(), 12);
    start("ai kv s3://bkt --block=64k --size=640k --rates=10 --blocks=2 --hits=50 --seconds=1").wait().ok();
    start("ai checkpoint s3://bkt --ranks=2 --size=9m").wait().ok();
    start("test --quick s3://bkt").wait().ok();
    assert_eq!(store.versions(), 12);
    for line in ["ai kv s3://bkt --block=64k --size=640k --rates=20 --seconds=60", "test --quick s3://bkt"] {
        for signal in [libc::SIGINT, libc::SIGKILL] {
            let mut running = start(line);
            running.wait_until("versions are there", |_| store.versions() > 30);
            send(running.pid(), signal);
            running.wait();
            assert!(signal == libc::SIGKILL || store.versions() == 12, "{line}: {}", store.versions());
        }
        let clean = if line.starts_with("ai") { "ai kv --clean s3://bkt" } else { "test --clean s3://bkt" };
        // (Objects that were on their way to the server are stored later.)
        let begun = Instant::now();
        while store.versions() > 12 {
            assert!(begun.elapsed() < GRACE, "{} versions are left", store.versions());
            start(clean).wait().ok();
        }
    }
    // An interrupted dataset leaves nothing, but what somebody has removed himself keeps its versions.
    let interrupted = |prefix: &str, there: usize| {
        let slow = "--sample-size=64m --samples=200";
        let mut running = start(&format!("ai dataset s3://bkt/{prefix} {slow}"));
        running.wait_until("a sample is there", |_| store.versions() > there + 1);
        send(running.pid(), libc::SIGINT);
        running.wait();
    };
    interrupted("other", 12);
    assert_eq!(store.versions(), 12);
    let name = "/bkt/old/sample.0";
    let options = environment_options(&store);
    let object = format!(
        "--name=x --ioengine=http --http_mode=s3 {options} --filename={name} --http_object_mode=range"
    );
    start(&format!("{object} --bs=4k --size=4k --rw=write --unlink=1")).wait().ok();
    assert_eq!(store.versions(), 12 + 2, "a version and the mark of its removal");
    interrupted("old", 12 + 2);
    assert!(store.versions() > 12 + 2);
    assert_eq!(start(dataset).wait().code(), 1);
}

/// How a job reaches the store.
fn environment_options(store: &S3) -> String {
    let url = store.environment()[0].1;
    format!("--http_host={}", url.trim_start_matches("http://"))
}

#[test]
fn an_export_has_datasets_checkpoints_and_caches() {
    let dir = scratch();
    let server = or_skip!(Ganesha::start(dir.path()));
    let url = server.url();
    let run = |line: &str| run(dir.path(), &line.replace("URL", &url));
    run("ai dataset URL --sample-size=64k --samples=6 --writers=1").ok();
    assert_eq!(names(&server.export()).len(), 6);
    run("ai dataset URL --sample-size=64k --samples=6 --resume")
        .refused()
        .says("a server keeps no description");
    let read = figures(run(
        "ai reader URL --sample-size=64k --samples=6 --readers=2 --batch=2 --compute=1ms --output-format=json",
    ));
    assert_eq!(read["result"]["read_bytes"], 6 << 16);
    let found = figures(run("ai checkpoint URL --ranks=2 --size=300k --output-format=json"));
    assert_eq!(
        (&found["write"]["bytes"], &found["read"]["bytes"]),
        (&(600 << 10).into(), &(600 << 10).into())
    );
    run("ai kv URL --block=64k --size=640k --rates=10 --seconds=1").ok();
    assert_eq!(names(&server.export()).len(), 6, "{:?}", names(&server.export()));
}

#[test]
fn machines_have_ranks_and_samples_of_their_own() {
    let dir = scratch();
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let agents = ["a", "b"].map(|name| Agent::on_socket(dir.path(), name));
    let [a, b] = agents.each_ref().map(Agent::client);
    let run = |line: &str| run(dir.path(), &format!("{line} {a} {b} --output-format=json"));
    let path = shared.display();
    let found = figures(run(&format!("ai checkpoint {path} --ranks=2 --size=300k")));
    assert_eq!((&found["ranks"], &found["write"]["bytes"]), (&4.into(), &(1200 << 10).into()));
    assert!(names(&shared).is_empty());
    figures(run(&format!("ai dataset {path} --sample-size=64k --samples=6")));
    assert_eq!(names(&shared).len(), 12);
    let read = figures(run(&format!(
        "ai reader {path} --sample-size=64k --samples=6 --readers=3 --batch=2 --compute=1ms"
    )));
    assert_eq!((&read["result"]["accelerators"], &read["result"]["samples"]), (&2.into(), &12.into()));
}

#[test]
fn an_interrupted_test_leaves_nothing_on_other_machines() {
    let dir = scratch();
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let agents = ["a", "b"].map(|name| Agent::on_socket(dir.path(), name));
    let [a, b] = agents.each_ref().map(Agent::client);
    let path = shared.display();
    for line in [
        format!("ai kv {path} --block=64k --size=1m --rates=5,5 --seconds=60"),
        format!("ai kv {path} --block=64k --size=1m --rates=5 --seconds=60 --evict=overwrite"),
        format!("ai checkpoint {path} --ranks=2 --size=2g --layout=shared"),
    ] {
        let mut running = Running::of_ours(dir.path(), &[], &format!("{line} {a} {b}"));
        running.wait_until("both machines have files", |_| {
            let names = names(&shared);
            ["m0", "m1"].iter().all(|mark| names.iter().any(|name| name.contains(&format!(".{mark}."))))
        });
        send(running.pid(), libc::SIGINT);
        let ended = running.wait();
        assert_eq!((ended.code(), names(&shared)), (128, Vec::<String>::new()), "{line}: {ended}");
    }
}

#[test]
fn what_killed_tests_left_for_machines_is_cleaned() {
    let dir = scratch();
    let others = ["iolite-ai.7", "iolite-ai.notes", "iolite-ai.report.v1.json", "m0.sample.0", "thesis"];
    let left = ["iolite-ai.7.m0.rank.0.0", "iolite-ai.7.m1.new.2.0", "iolite-ai.8.rank-3.checkpoint"];
    for name in left.iter().chain(&others) {
        fs::write(dir.path().join(name), if name.ends_with('0') { "" } else { "data" }).unwrap();
    }
    let cleaned = run(dir.path(), "ai kv --clean .").ok();
    assert!(cleaned.stdout.contains("3 files removed"), "{cleaned}");
    assert_eq!(names(dir.path()), others);
    run(dir.path(), "ai kv --clean .").ok().says("no test has left anything here");
    for option in ["--client=a", "--mpi=auto"] {
        run(dir.path(), &format!("ai kv --clean . {option}"))
            .refused()
            .says("call iolite ai kv --clean . on each");
    }
}

#[test]
fn a_terminal_shows_the_progress() {
    let dir = scratch();
    let program = Program::under_test().path;
    let line = format!("{} ai kv . --block=64k --size=1m --rates=5 --seconds=600", program.display());
    let terminal = or_skip!(Tmux::start(dir.path(), (120, 20), &line));
    terminal.wait_until("the status of the jobs", |screen| screen.contains("IOPS"));
    terminal.interrupt();
    assert_eq!(terminal.end().0, 128);
    assert!(names(dir.path()).iter().all(|name| name.starts_with("tmux")), "{:?}", names(dir.path()));
}

#[test]
fn mistakes_are_told() {
    let dir = scratch();
    fs::write(dir.path().join("file"), "x").unwrap();
    for (line, why) in [
        ("ai", "needs to know what to do"),
        ("ai read .", "not one of dataset, reader, checkpoint, kv"),
        ("ai reader", "needs a target"),
        ("ai reader a b", "a second one"),
        ("ai dataset .", "the samples are missing"),
        ("ai dataset . --samples=3", "--sample-size=BYTES"),
        ("ai dataset . --preset=bert --samples=1", "not one of unet3d, resnet50, cosmoflow"),
        ("ai dataset . --preset=unet3d", "--samples=NUMBER"),
        ("ai dataset . --preset=unet3d --samples=100000000", "are needed, and"),
        ("ai dataset new/deep --preset=unet3d --samples=100000000", "are needed, and"),
        ("ai dataset . --sample-size=1 --samples=9999999999", "a dataset has at most"),
        ("ai dataset file --sample-size=1 --samples=9", "file"),
        ("ai dataset . --sample-size=9 --per-file=2 --deviation=3 --samples=4", "have one size"),
        ("ai reader . --batch=1 --compute=1ms", "there is no dataset"),
        ("ai reader . --batch=1 --compute=1ms --per-file=2", "--sample-size=BYTES"),
        ("ai kv . --resume", "--resume belongs to dataset and reader, not to kv"),
        ("ai dataset . --sample-size=1 --samples=9 --client=a --resume", "not seen from here"),
        ("ai reader . --ranks=3", "--ranks belongs to checkpoint, not to reader"),
        ("ai checkpoint .", "the ranks are missing"),
        ("ai checkpoint . --ranks=2", "the bytes of each rank are missing"),
        ("ai checkpoint . --ranks=2 --size=4k --layout=shared --files=2", "ranks share one file"),
        ("ai checkpoint nowhere --ranks=2 --size=4k", "mkdir -p nowhere"),
        ("ai checkpoint file --ranks=2 --size=4k", "this is no directory"),
        ("ai checkpoint . --preset=llama3-8b --scale=nan", "--scale"),
        ("ai checkpoint . --preset=llama3-1t", "are needed, and"),
        ("ai checkpoint . --preset=llama3-8b --ranks=9", "has 8 ranks"),
        ("ai dataset . --sample-size=64k --deviation=1g --samples=4", "37837 at most"),
        ("ai dataset . --sample-size=64k --deviation=16k --samples=4", "all samples would have one size"),
        ("ai kv . --seconds=1k", "--seconds=1k"),
        ("ai kv . --seconds=10ms", "at least a second"),
        ("ai kv . --hits=180%", "between 0 and 100"),
        ("ai kv s3://b/p", "keys"),
        ("ai kv nfs://127.0.0.1:1/x --seconds=1", "nfs://127.0.0.1:1/x"),
        ("ai checkpoint nbd://h/x --ranks=1 --size=1", "has no files"),
        ("ai kv . --block=1k", "must be at least 65536"),
        ("ai kv . --rates=10,x", "is no number of requests per second"),
        ("ai kv . --rates=0", "is no number of requests per second"),
        ("ai kv . --rates=0.001", "no request is expected within 30 s"),
        ("ai dataset a#b --sample-size=1 --samples=1", "a job file would take this name for something else"),
        ("ai checkpoint a;b --ranks=1 --size=1", "a job file would take this name for something else"),
        ("ai kv s3://b/p#q", "a job file would take '#' in it for something else"),
        ("meta s3://b/p:q", "a job file would take ':' in it for something else"),
        (
            "ai checkpoint . --preset=llama3-8b --ranks=8 --client=sock:a --client=sock:b",
            "take fewer on each of 2 machines",
        ),
        ("ai kv . --client=sock:a --client=sock:a", "named twice"),
        ("ai kv . --evict=trim", "that is for objects"),
        ("ai kv . --size=1m --blocks=4", "has 1 blocks"),
        ("ai kv . --output=r.txt", ".json or .html"),
    ] {
        let refused = run(dir.path(), line).refused().says(why);
        assert!(!refused.output().contains("is left there"), "{refused}");
        assert_eq!(names(dir.path()), ["file"], "{line}");
    }
    assert!(!dir.path().join("new").exists(), "a refusal makes no directories");
    let listed = run(dir.path(), "ai reader --preset=list").ok();
    assert!(listed.stdout.contains("unet3d") && listed.stdout.contains("llama3-405b"), "{listed}");
}
