//! `iolite test`: cases, safety, what is left behind, and answers to mistakes.

use crate::common::browser::Browser;
use crate::common::devices::{Loop, Mounted, Ramfs};
use crate::common::{Json, Program, files_in, scratch};
use iolite_testing::or_skip;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn ours() -> Program {
    Program::own()
}

fn value(path: &Path) -> Value {
    Json::parse(&fs::read_to_string(path).unwrap()).0
}

/// The directories of tests in a target.
fn own_directories(target: &Path) -> Vec<String> {
    let names = fs::read_dir(target).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("iolite-test.")).collect()
}

#[test]
fn a_directory_on_ext4() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 400 << 20));
    let target = mounted.directory.display().to_string();
    let results = ["r.json", "r.md", "r.html"].map(|name| dir.path().join(name));
    let store = dir.path().join("runs.db").display().to_string();
    let line = format!(
        "test --quick {target} --output=r.json --save --label=first --store={store} --expect=randread.p99<10s,write.bw>1MB/s"
    );
    let run = ours().line(dir.path(), &line).ok();
    for case in [
        "fill",
        "read",
        "write",
        "randread",
        "mix-read",
        "mix-write",
        "durable-1",
        "durable-8",
        "create",
        "stat",
        "remove",
    ] {
        assert!(run.stdout.lines().any(|line| line.starts_with(&format!("{case} "))), "{case}: {run}");
    }
    assert!(
        run.stdout.contains("What this means") && run.stdout.contains("random reads of 4k, depth"),
        "{run}"
    );
    assert!(run.stdout.contains("as expected: randread.p99<10s"), "{run}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 100 || line.contains('/')), "{run}");
    assert!(
        run.stderr.contains("removes that at the end") && run.stderr.contains("randread (4k, depth 1): "),
        "{run}"
    );
    assert_eq!(own_directories(&mounted.directory), [""; 0]);
    // The JSON is a report, which other commands take.
    let result = value(&results[0]);
    let told = &result["iolite"]["test"]["targets"][0];
    assert_eq!(told["name"], target.as_str());
    assert!(told["findings"].as_array().unwrap().iter().any(|finding| finding["kind"] == "cached"), "{told}");
    assert_eq!(result["jobs"][0]["jobname"], "fill");
    ours().line(dir.path(), "report r.json --output=page.html").ok();
    ours().line(dir.path(), "compare r.json r.json").ok();
    let kept = ours().line(dir.path(), &format!("runs list --store={store}")).ok();
    assert!(kept.stdout.contains("first"), "{kept}");
    let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(
        page.contains("<h2>What this means</h2>") && page.contains("<title>Test of "),
        "the page says it"
    );
    let browser = or_skip!(Browser::start());
    browser.open(&dir.path().join("page.html"));
    browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
    browser.check("test");
    browser.check_tables("test");
}

/// A file system without direct I/O, and the other formats.
#[test]
fn a_directory_in_memory() {
    let dir = scratch();
    let target = or_skip!(Ramfs::tmpfs(dir.path(), 400 << 20));
    let place = target.directory.display().to_string();
    let run =
        ours().line(dir.path(), &format!("test --quick {place} --output=r.md --expect=randread.iops<10"));
    assert_eq!(run.code(), 1, "{run}");
    assert!(run.stdout.contains("NOT as expected: randread.iops<10: "), "{run}");
    assert!(run.stdout.contains("figures of this machine's memory"), "{run}");
    assert!(run.stdout.contains("no direct I/O here"), "{run}");
    let markdown = fs::read_to_string(dir.path().join("r.md")).unwrap();
    assert!(
        markdown.contains("| randread | 4k, depth 1 |") && markdown.contains("**What this means**"),
        "{markdown}"
    );
    assert!(files_in(&target.directory).is_empty());
}

/// Files and devices are only read, unless their name is repeated.
#[test]
fn nothing_is_written_without_confirmation() {
    let dir = scratch();
    let file = dir.path().join("file");
    let content: Vec<u8> = (0..20_u32 << 18).flat_map(u32::to_le_bytes).collect();
    fs::write(&file, &content).unwrap();
    let run = ours().line(dir.path(), "test --quick file --output=r.html").ok();
    assert!(run.stderr.contains("file: this file is only read"), "{run}");
    assert!(!run.stdout.contains("write") && !run.stdout.contains("durable"), "{run}");
    assert!(fs::read(&file).unwrap() == content, "it was written to");
    assert!(fs::read_to_string(dir.path().join("r.html")).unwrap().contains("What this means"));
    // A file that was cut off meanwhile is not made longer by reading it.
    let jobs = ours().line(dir.path(), "test --quick --show-job file").ok().stdout;
    fs::write(dir.path().join("jobs.fio"), jobs).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_len(4096).unwrap();
    ours().line(dir.path(), "jobs.fio").refused().says("allow_file_create=0");
    assert_eq!(fs::metadata(&file).unwrap().len(), 4096);

    let device = or_skip!(Loop::new(dir.path(), 64 << 20));
    let path = &device.path;
    let run = ours().line(dir.path(), &format!("test --quick {path}")).ok();
    assert!(run.stderr.contains("this device is only read"), "{run}");
    assert!(run.stdout.contains("nothing but zeros"), "{run}");
    let zeros = fs::read(dir.path().join("loop.img")).unwrap().iter().all(|byte| *byte == 0);
    assert!(zeros, "it was written to");
    let run = ours().line(dir.path(), &format!("test --quick {path} --destroy={path}")).ok();
    assert!(run.stderr.contains("are overwritten; what is there is lost"), "{run}");
    assert!(run.stdout.contains("durable-8") && !run.stdout.contains("create"), "{run}");
}

#[test]
fn a_device_in_use_is_not_written_to() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 64 << 20));
    let path = &mounted.device.path;
    let run = ours().line(dir.path(), &format!("test --quick {path} --destroy={path}"));
    assert_eq!(run.code(), 1);
    assert!(run.stderr.contains("it is mounted on") && run.stderr.contains("never written to"), "{run}");
}

#[test]
fn an_interrupted_test_leaves_nothing() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut running = ours().start(dir.path(), ["test", "--quick", "t"]);
        running.wait_until("it measures", |running| running.output().contains("] fill"));
        running.signal(signal);
        let run = running.wait();
        assert_eq!(run.code(), 128, "{run}");
        assert!(run.stderr.contains("interrupted; the files of the test are removed"), "{run}");
        assert_eq!(own_directories(&target), [""; 0]);
    }
}

/// What a killed test has left is removed by the next one, or by `--clean`, and nothing else is.
#[test]
fn a_killed_test_is_cleaned_up() {
    let dir = scratch();
    let target = dir.path().join("t");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("iolite-test.mine"), "x").unwrap();
    let kill = || {
        let mut running = ours().start(dir.path(), ["test", "--quick", "t"]);
        running.wait_until("it measures", |running| running.output().contains("] fill"));
        running.signal(libc::SIGKILL);
        running.wait();
        assert_eq!(own_directories(&target).len(), 2, "a killed test removes nothing");
    };
    kill();
    // Its workers may take a moment to end; they hold the lock as well.
    let cleaned = ours().patiently(|| {
        let run = ours().line(dir.path(), "test --clean t").ok();
        run.stdout.contains("a test that was killed had left it").then_some(run)
    });
    assert!(cleaned.stdout.contains("t/iolite-test."), "{cleaned}");
    assert_eq!(own_directories(&target), ["iolite-test.mine"]);
    let run = ours().line(dir.path(), "test --clean t").ok();
    assert!(run.stdout.contains("no test has left anything here"), "{run}");
    kill();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let run = ours().line(dir.path(), "test --quick t").ok();
    assert!(run.stderr.contains("a test that was killed had left it"), "{run}");
    assert_eq!(own_directories(&target), ["iolite-test.mine"]);
}

#[test]
fn the_jobs_can_be_run() {
    let dir = scratch();
    fs::create_dir(dir.path().join("t")).unwrap();
    let shown = ours().line(dir.path(), "test --quick t --show-job").ok();
    assert!(files_in(&dir.path().join("t")).is_empty(), "nothing is made");
    // As short as a test needs.
    let shorter: String = shown
        .stdout
        .lines()
        .map(|line| match line.split_once('=') {
            Some(("runtime", _)) => "runtime=50ms\n".to_owned(),
            Some(("size", _)) => "size=1m\n".to_owned(),
            Some(("nrfiles", _)) => "nrfiles=10\n".to_owned(),
            Some(("offset_increment", _)) => String::new(),
            _ => format!("{line}\n"),
        })
        .collect();
    fs::write(dir.path().join("all.fio"), shorter).unwrap();
    let run = ours().line(dir.path(), "all.fio").ok();
    assert!(run.stdout.contains("fill: ") && run.stdout.contains("durable-8: "), "{run}");
}

/// Two targets are measured in turns, with ratios and verdicts.
#[test]
fn targets_side_by_side() {
    let dir = scratch();
    for name in ["a", "b"] {
        let content: Vec<u8> = (0..4_u32 << 20).flat_map(u32::to_le_bytes).collect();
        fs::write(dir.path().join(name), content).unwrap();
    }
    let run = ours().line(dir.path(), "test --quick a b --output=r.json").ok();
    assert!(run.stdout.contains("b beside a (ratios: b / a)"), "{run}");
    assert!(run.stdout.contains("in the mean of 5 rounds"), "{run}");
    let names: Vec<String> = value(&dir.path().join("r.json"))["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["jobname"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        names.contains(&"randread on a".to_owned()) && names.contains(&"randread on b".to_owned()),
        "{names:?}"
    );
}

#[test]
fn mistakes_are_found_before_any_io() {
    let dir = scratch();
    fs::create_dir(dir.path().join("t")).unwrap();
    fs::write(dir.path().join("small"), "x").unwrap();
    for (line, why) in [
        ("test", "needs a target: a directory, a file, a block device or the URL"),
        ("test none", "none: No such file or directory; name an existing directory, file or block device"),
        ("test t --quick --thorough", "--quick and --thorough: only one of them"),
        ("test t --qick", "unknown option --qick; did you mean \"--quick\"?"),
        ("test t t", "t: this target is named twice"),
        ("test /dev/null", "neither a directory, nor a file, nor a block device"),
        ("test small", "small: it has 1 B, and a test needs 16 MiB at least"),
        ("test t --destroy=t", "in a directory nothing is overwritten"),
        ("test t --destroy=/dev/other", "--destroy=/dev/other: this is no target"),
        ("test t --output=r.txt", "--output=r.txt: the end of the name chooses the format"),
        ("test t --label=x", "--label belongs to --save"),
        ("test t --expect=randread.p98<2ms", "at character 10: \"p98\" is none of"),
        ("test t --expect=randraed.p99<2ms", "there is no case \"randraed\"; did you mean \"randread\"?"),
        ("test t --expect=x:randread.p99<2ms", "x is no target (t)"),
        ("test --clean small", "--clean: small: this is no directory"),
        ("test ftp://server", "ftp://server: No such file or directory"),
        ("test none small", "none: No such file or directory"),
    ] {
        let run = ours().line(dir.path(), line);
        assert_eq!(run.code(), 1, "{line}: {run}");
        assert!(run.stderr.contains(why), "{line}: {run}");
    }
    assert!(files_in(&dir.path().join("t")).is_empty());
}

/// What people type first.
#[test]
fn first_words_are_answered_by_what_to_type() {
    let dir = scratch();
    fs::create_dir(dir.path().join("t")).unwrap();
    for (line, why) in [
        ("t", "t: this is a directory, not a job file; iolite test t measures it"),
        ("randread", "randread: this is a kind of workload, not a job file"),
    ] {
        let run = ours().line(dir.path(), line);
        assert_eq!(run.code(), 1, "{run}");
        assert!(run.stderr.contains(why), "{run}");
    }
    let fio = Program::called_fio(dir.path());
    let run = fio.line(dir.path(), "t");
    assert!(!run.stderr.contains("iolite test"), "{run}");
}
