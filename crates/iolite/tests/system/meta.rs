//! `iolite meta`: phases and their counts, machines, what is left behind, answers to mistakes.

use crate::common::browser::Browser;
use crate::common::devices::{Mounted, Ramfs};
use crate::common::program::{GRACE, Running, try_send};
use crate::common::s3::{self, S3};
use crate::common::{Finished, Program, scratch, words};
use crate::remote::Agent;
use iolite_testing::{ObjectServer, Reply, or_skip, partly_skipped, skip, this_test};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn ours() -> Program {
    Program::own()
}

/// The result that a run has written to `r.json`.
fn result(dir: &Path) -> Value {
    let text = fs::read_to_string(dir.join("r.json")).expect("there is a result");
    serde_json::from_str::<Value>(&text).expect("it is JSON")["meta"].clone()
}

/// The names of phases, with what each worker has done.
fn counts(result: &Value) -> Vec<(String, Vec<u64>)> {
    let phases = result["phases"].as_array().expect("there are phases").iter();
    let of = |phase: &Value| {
        let workers = phase["workers"].as_array().unwrap().iter();
        (
            phase["name"].as_str().unwrap().to_owned(),
            workers.map(|worker| worker["ops"].as_u64().unwrap()).collect(),
        )
    };
    phases.map(of).collect()
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).expect("a directory can be read").next().is_none()
}

/// Waits until a phase is at work.
fn wait_until_at_work(running: &mut Running, target: &Path) {
    running.wait_until("files are made", |_| {
        let own = fs::read_dir(target).unwrap().flatten().next();
        own.is_some_and(|own| own.path().join("w0.0/f9").exists())
    });
}

#[test]
fn phases_leave_the_tree_that_they_should() {
    let dir = scratch();
    let there = |name: &str| {
        let path = dir.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let plain = there("pl:ain");
    let places = there("places");
    let mounted = Mounted::new(&places, 100 << 20);
    let tmpfs = Ramfs::tmpfs(&places, 100 << 20);
    let mut targets = vec![plain];
    for (what, directory) in [
        ("ext4 on a loop device", mounted.as_ref().map(|mounted| &mounted.directory)),
        ("tmpfs", tmpfs.as_ref().map(|tmpfs| &tmpfs.directory)),
    ] {
        match directory {
            Ok(directory) => {
                let target = directory.join("target");
                fs::create_dir(&target).unwrap();
                targets.push(target);
            }
            Err(why) => partly_skipped(&this_test!(), &format!("{what}: {why}")),
        }
    }
    for target in &targets {
        for (options, directories) in [
            ("--shift=1", 1),
            ("--depth=2 --breadth=3", 13),
            ("--shared", 1),
            ("--shared --depth=1 --shift=2", 3),
        ] {
            let line = format!(
                "meta {} --tasks=3 --files=40 --size=1k --verify --output=r.json {options}",
                target.display()
            );
            let run = ours().line(dir.path(), &line);
            if run.stdout.contains("Operation not supported") {
                partly_skipped(&this_test!(), &format!("{}: no extended attributes", target.display()));
                continue;
            }
            run.ok();
            assert!(is_empty(target), "{line}");
            let result = result(dir.path());
            let counts = counts(&result);
            assert_eq!(counts.len(), 12, "{line}");
            for (phase, ops) in counts {
                let each = if phase == "readdir" { directories } else { 40 };
                assert_eq!(ops, [each; 3], "{line}: {phase}");
            }
            let read = &result["phases"][4];
            assert_eq!((read["name"].as_str(), read["bytes"].as_u64()), (Some("read"), Some(3 * 40 * 1024)));
            assert!(read["latency_ns"]["max"].as_f64() >= read["latency_ns"]["p50"].as_f64(), "{read}");
            let stonewall = &read["stonewall"];
            assert!(
                stonewall["ops"].as_f64() <= Some(120.0) && stonewall["ops"].as_f64() >= Some(40.0),
                "{read}"
            );
        }
    }
}

#[test]
fn slower_workers_catch_up_after_the_limit_of_time() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    let line = "meta t --tasks=3 --time=80ms --size=0 --verify --depth=1 --output=r.json \
                --phases=mkdir,create,stat,unlink,rmdir";
    let run = ours().line(dir.path(), line).ok();
    assert!(is_empty(&target), "{run}");
    for (phase, ops) in counts(&result(dir.path())) {
        assert!(ops[0] > 0 && ops.iter().all(|each| *each == ops[0]), "{phase}: {ops:?}");
    }
}

#[test]
fn the_phases_and_the_score_of_io500() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    let run = ours()
        .line(
            dir.path(),
            "meta t --preset=io500 --tasks=2 --time=100ms --data=8m --files=300 --verify --output=r.json",
        )
        .ok();
    assert!(is_empty(&target), "{run}");
    let told = result(dir.path());
    let names: Vec<String> = counts(&told).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "ior-easy-write",
            "mdtest-easy-write",
            "ior-hard-write",
            "mdtest-hard-write",
            "find",
            "ior-easy-read",
            "mdtest-easy-stat",
            "ior-hard-read",
            "mdtest-hard-stat",
            "mdtest-easy-delete",
            "mdtest-hard-read",
            "mdtest-hard-delete"
        ]
    );
    let phase =
        |name: &str| &told["phases"].as_array().unwrap()[names.iter().position(|it| it == name).unwrap()];
    for (writes, reads, unit) in
        [("ior-easy-write", "ior-easy-read", 2 << 20), ("ior-hard-write", "ior-hard-read", 47_008)]
    {
        assert_eq!(phase(writes)["ops"], phase(reads)["ops"]);
        assert_eq!(phase(reads)["bytes"].as_u64(), phase(reads)["ops"].as_u64().map(|ops| ops * unit));
    }
    let hard = phase("mdtest-hard-write")["ops"].as_u64().unwrap();
    assert_eq!(phase("mdtest-hard-read")["bytes"], hard * 3901);
    assert_eq!(phase("find")["entries"], hard + phase("mdtest-easy-write")["ops"].as_u64().unwrap());
    // The formula, from the figures.
    let mean = |is_bandwidth: bool| {
        let of = |phase: &Value| match is_bandwidth {
            true => phase["bw_bytes"].as_f64().unwrap() / (1u64 << 30) as f64,
            false => phase["rate_per_second"].as_f64().unwrap() / 1000.0,
        };
        let all: Vec<f64> = told["phases"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|phase| phase["name"].as_str().unwrap().starts_with("ior") == is_bandwidth)
            .map(of)
            .collect();
        all.iter().product::<f64>().powf(1.0 / all.len() as f64)
    };
    let score = (mean(true) * mean(false)).sqrt();
    let found = told["score"]["total"].as_f64().unwrap();
    assert!((found / score - 1.0).abs() < 1e-6, "{found} {score}");
    assert!(
        run.stdout.contains("not a submission")
            && told["score"]["note"].as_str().unwrap().contains("not a submission")
    );
}

#[test]
fn agents_share_the_work() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    let agents = ["one", "two"].map(|name| Agent::on_socket(dir.path(), name));
    let clients = agents.iter().map(Agent::client).collect::<Vec<_>>().join(" ");
    for options in [
        "--files=30",
        "--time=60ms --phases=create,stat,unlink",
        "--preset=io500 --time=60ms --data=4m --files=50",
    ] {
        let line = format!(
            "meta {} {clients} --tasks=2 --shift=1 --verify --output=r.json {options}",
            target.display()
        );
        ours().line(dir.path(), &line).ok();
        assert!(is_empty(&target), "{line}");
        let told = result(dir.path());
        assert_eq!(told["machines"], 2);
        for (phase, ops) in counts(&told).into_iter().filter(|(phase, _)| phase != "find") {
            assert_eq!(ops.len(), 4, "{phase}");
            assert!(ops.iter().all(|each| *each == ops[0] && *each > 0), "{phase}: {ops:?}");
        }
    }
    // An agent that is not there.
    let gone = format!("meta {} --client=sock:{}/none --files=3", target.display(), dir.path().display());
    let run = ours().line(dir.path(), &gone);
    assert!(run.code() == 1 && run.stdout.contains("failed: mkdir"), "{run}");
    assert!(is_empty(&target));
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

/// Runs the command on ranks that find each other by the environment. The result begins with rank 0.
fn ranks(dir: &Path, size: u32, line: &str) -> Vec<Finished> {
    let start = |number: u32| {
        let mut command = Command::new(&Program::own().path);
        command.args(words(line)).current_dir(dir);
        command.env("IOLITE_RANK", number.to_string()).env("IOLITE_RANKS", size.to_string());
        Running::start(&mut command)
    };
    let started: Vec<_> = (0..size).rev().map(start).collect();
    let mut finished: Vec<_> = started.into_iter().map(Running::wait).collect();
    finished.reverse();
    finished
}

#[test]
fn ranks_share_the_work() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    for options in [
        "--files=20 --shift=1",
        "--time=60ms --phases=mkdir,create,stat,unlink,rmdir",
        "--preset=io500 --time=60ms --data=4m --files=50",
    ] {
        let finished =
            ranks(dir.path(), 4, &format!("meta t --mpi --tasks=2 --verify --output=r.json {options}"));
        for (number, rank) in finished.iter().enumerate() {
            assert_eq!(rank.code(), 0, "rank {number}: {rank}{}", finished[0]);
            assert!(number == 0 || rank.output().is_empty(), "only rank 0 says anything: {rank}");
        }
        assert!(is_empty(&target), "{options}");
        let told = result(dir.path());
        assert_eq!(told["machines"], 4);
        for (phase, ops) in counts(&told) {
            assert_eq!(ops.len(), 8, "{phase}");
        }
    }
    // A mistake ends all ranks.
    for rank in ranks(dir.path(), 2, "meta t --mpi --phases=stat") {
        assert!(rank.code() == 1 && rank.stderr.contains("stat needs create"), "{rank}");
    }
}

#[test]
fn under_open_mpi() {
    if Command::new("mpirun").arg("--version").output().is_err() {
        skip!("mpirun is missing (scripts/test --everything installs Open MPI)");
    }
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none", "-np", "4"]).arg(&Program::own().path);
    command.args(words("meta t --mpi --tasks=1 --files=50 --shift=1 --verify --output=r.json"));
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    Running::start(command.current_dir(dir.path())).wait().ok();
    assert!(is_empty(&target));
    for (phase, ops) in counts(&result(dir.path())) {
        let each = if phase == "readdir" { 1 } else { 50 };
        assert_eq!(ops, [each; 4], "{phase}");
    }
}

/// `^C` removes everything; what a killed test has left is removed by `--clean` or the next one, and nothing else is.
#[test]
fn interrupted_and_killed_tests_are_cleaned_up() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    let long = ["meta", "t", "--tasks=2", "--files=1000000", "--size=0", "--phases=create"];
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut running = ours().start(dir.path(), long);
        wait_until_at_work(&mut running, &target);
        running.signal(signal);
        // Another signal does not end the removal.
        running.wait_until("the removal", |running| {
            running.output().contains("removing what the test has made")
        });
        if !running.has_ended() {
            try_send(running.pid(), signal);
        }
        let ended = running.wait();
        assert_eq!(ended.code(), 128);
        ended.says("iolite: meta: interrupted: nothing is reported");
        assert!(is_empty(&target));
    }
    let mut killed = ours().start(dir.path(), long);
    wait_until_at_work(&mut killed, &target);
    killed.signal(libc::SIGKILL);
    killed.wait();
    fs::write(target.join("thesis"), "x").unwrap();
    fs::create_dir(target.join("iolite-meta.7")).unwrap();
    fs::write(target.join("iolite-meta.7/f"), "x").unwrap();
    // Its workers end with it, but perhaps a moment later.
    let removed = ours().patiently(|| {
        let run = ours().line(dir.path(), "meta --clean t");
        (run.code() == 0 && run.stdout.contains("a test that was killed had left it")).then_some(run)
    });
    let said = ours().patiently(|| {
        let run = ours().line(dir.path(), "meta --clean t");
        run.stdout.contains("no test has left anything here").then_some(run)
    });
    let mut left: Vec<_> = fs::read_dir(&target).unwrap().flatten().map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["iolite-meta.7", "thesis"], "that is somebody else's: {removed}{said}");
    assert!(target.join("iolite-meta.7/f").exists());
}

#[test]
fn mistakes_change_nothing() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    fs::write(dir.path().join("f"), "precious").unwrap();
    for (line, why) in [
        ("meta", "needs one directory"),
        ("meta t t", "needs one directory"),
        ("meta f", "this is not a directory"),
        ("meta none", "No such file or directory"),
        ("meta t --phases=stat", "stat needs create before it"),
        ("meta t --phases=create,creat", "\"creat\" is not one of mkdir"),
        ("meta t --phases=create,create", "named twice"),
        ("meta t --files=0", "--files=0"),
        ("meta t --files=5000000000", "must be at most"),
        ("meta t --tasks=0", "--tasks=0"),
        ("meta t --tasks=1000000", "must be at most"),
        ("meta t --tasks=3 --shift=3", "must be below the number of workers, and there are 3"),
        ("meta t --time=0", "at least a millisecond"),
        ("meta t --time=soon", "--time=soon"),
        ("meta t --depth=9 --breadth=9", "directories, and each worker only"),
        ("meta t --breadth=3", "there is no tree without --depth"),
        ("meta t --size=8g --files=1000000", "are free"),
        ("meta t --preset=io500 --size=4k", "fixed"),
        ("meta t --preset=io500 --phases=create", "give either"),
        ("meta t --preset=io501", "--preset=io501"),
        ("meta t --data=4m", "it belongs to --preset=io500"),
        ("meta t --output=r.txt", ".json, .md or .html"),
        ("meta t --output=none/r.json", "No such file or directory"),
        ("meta t --client=a --mpi", "only one of them"),
        ("meta t --client=a --client=a", "named twice"),
        ("meta t --mpi", "--mpi: "),
    ] {
        let run = ours().line(dir.path(), line);
        assert!(run.code() == 1 && run.output().contains(why), "{line}: {run}");
        assert!(is_empty(&target), "{line}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "precious");
}

#[test]
fn jobs_are_shown_and_can_be_read() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    for line in ["meta t --show-job --tasks=2 --depth=2", "meta t --show-job --tasks=2 --preset=io500"] {
        let shown = ours().line(dir.path(), line).ok();
        let jobs: Vec<&str> = shown.stdout.split("# --- ").skip(1).collect();
        assert_eq!(jobs.len(), 12, "{shown}");
        for job in jobs {
            fs::write(dir.path().join("one.fio"), format!("# {job}")).unwrap();
            ours().line(dir.path(), "--parse-only one.fio").ok();
        }
        assert!(is_empty(&target));
    }
}

#[test]
fn results_are_pages_and_tables() {
    let dir = scratch();
    fs::create_dir(dir.path().join("t")).unwrap();
    for name in ["r.md", "r.html"] {
        ours().line(dir.path(), &format!("meta t --tasks=2 --files=20 --output={name}")).ok();
    }
    let table = fs::read_to_string(dir.path().join("r.md")).unwrap();
    assert!(table.contains("| create | 40 |"), "{table}");
    let page = fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(
        page.contains("<td>create</td><td>40</td>") && page.contains("<i style=\"width:100.0%\">"),
        "{page}"
    );
    let browser = or_skip!(Browser::start());
    browser.open(&dir.path().join("r.html"));
    browser.check("meta");
}

#[test]
fn results_are_kept_and_compared() {
    let dir = scratch();
    fs::create_dir(dir.path().join("there")).unwrap();
    let run = |line: &str| ours().line(dir.path(), line);
    let store = "--store=runs.db";
    for _ in 0..2 {
        let line = format!("meta there --tasks=2 --files=20 --phases=create,stat,unlink --save {store}");
        run(&line).ok().says("the run is kept as run");
    }
    run(&format!("runs {store}")).ok().says("meta: create, stat, unlink").says("ended");
    run(&format!("runs show 1 {store}")).ok().says("by iolite meta").says("slowest worker");
    run(&format!("runs show 1 {store} --output-format=md")).ok().says("create");
    run(&format!("runs show 1 {store} --output=page.html")).ok();
    assert!(fs::read_to_string(dir.path().join("page.html")).unwrap().contains("What the test found"));
    run(&format!("compare run:1 run:2 {store}")).ok().says("iolite meta").says("unlink").says("no verdict");
    // Of several, each phase has a verdict, as jobs have.
    run(&format!("compare run:1 vs run:2 {store}")).ok().says("BASE");
    run("meta there --label=x").refused().says("--label belongs to --save");
}

#[test]
fn a_bucket_that_is_not_there_is_told_before_the_first_phase() {
    const MISSING: &str = "<Error><Code>NoSuchBucket</Code></Error>";
    let dir = scratch();
    let server = ObjectServer::behaving(|seen| {
        match seen.path.contains("list-type=") || seen.path.contains("versions") {
            true => Reply::Refused(404, "", MISSING),
            false => Reply::Refused(404, "", ""),
        }
    });
    let address = format!("http://{}", server.host());
    let run = |line: &str| Running::of_ours(dir.path(), &s3::environment(&address), line).wait();
    for line in ["meta s3://bkt --files=10", "ai kv s3://bkt --seconds=1", "test s3://bkt"] {
        run(line).refused().says("s3://bkt: there is no such bucket; create it first");
    }
    assert_eq!(server.uploads(), 0);
}

#[test]
fn objects_are_made_looked_up_read_listed_and_removed() {
    let dir = scratch();
    let store = S3::start(dir.path());
    or_skip!(store.keep_versions());
    let environment = store.environment();
    let start = |line: &str| Running::of_ours(dir.path(), &environment, line);
    let run = |line: &str| start(line).wait();
    for more in ["", "--shared --shift=1"] {
        let line = format!("meta s3://bkt/some/where --tasks=2 --files=30 --size=1k --output=r.json {more}");
        run(&line).ok().says("objects of 1 KiB");
        let each = ["create", "stat", "read", "unlink"].map(|name| (name.to_owned(), vec![30, 30]));
        let mut expected = each.to_vec();
        expected.insert(3, ("readdir".to_owned(), vec![1, 1]));
        let result = result(dir.path());
        assert_eq!(counts(&result), expected, "{more}");
        let names = if more.is_empty() { 2 * 30 } else { 2 * 2 * 30 };
        assert_eq!(result["phases"][3]["entries"], names, "{more}");
        assert_eq!((store.count(), store.versions()), (0, 0), "{more}");
    }
    let slow = "meta s3://bkt --tasks=2 --files=100000 --size=1k --phases=create";
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let mut running = start(slow);
        running.wait_until("objects are there", |_| store.versions() > 5);
        running.signal(signal);
        running.wait();
        assert!(signal == libc::SIGKILL || store.versions() == 0);
    }
    let begun = std::time::Instant::now();
    while store.versions() > 0 {
        assert!(begun.elapsed() < GRACE, "{} versions are left", store.versions());
        run("meta --clean s3://bkt").ok().says("objects removed");
    }
    for (line, why) in [
        ("meta s3://bkt --phases=mkdir", "mkdir is not one of those of objects"),
        ("meta s3://bkt --verify", "--verify: that is for directories"),
        ("meta s3://bkt --size=0", "at least 1"),
        ("meta nbd://h/x", "name a directory, or a bucket"),
    ] {
        run(line).refused().says(why);
    }
    let shown = run("meta s3://bkt --show-job --tasks=1 --files=2").ok();
    assert!(shown.stdout.contains("http_read=head") && shown.stdout.contains("http_s3_list=1000"), "{shown}");
}
