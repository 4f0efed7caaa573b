//! Options that change reports, such as merged directions and latency from the intended start.

use crate::common::skeleton::mask;
use crate::common::{Json, Program, peers, scratch, words};
use iolite_testing::skip;

const MIX: &str = "--name=j --ioengine=null --size=4M --rw=rw --bs=4k";

fn json(line: &str) -> Json {
    let dir = scratch();
    let line = format!("{line} --output-format=json");
    Json::parse(&Program::under_test().line(dir.path(), &line).ok().stdout)
}

fn text(line: &str) -> String {
    let dir = scratch();
    Program::under_test().line(dir.path(), line).ok().stdout
}

#[test]
fn directions_as_one_in_json() {
    for (value, apart, mixed) in [
        ("none", true, false),
        ("0", true, false),
        ("mixed", false, true),
        ("1", false, true),
        ("both", true, true),
        ("2", true, true),
    ] {
        let report = json(&format!("{MIX} --unified_rw_reporting={value}"));
        let job = report.job();
        for key in ["read", "write", "trim", "sync"] {
            assert_eq!(job.0.get(key).is_some(), apart, "{value}: {key}");
        }
        assert_eq!(job.0.get("mixed").is_some(), mixed, "{value}");
        if mixed {
            assert_eq!((job.int("mixed.total_ios"), job.int("mixed.io_bytes")), (1024, 4 << 20));
            assert_eq!(job.int("mixed.clat_ns.N"), 1024);
            assert!(job.0["mixed"]["clat_ns"].get("percentile").is_some());
        }
        if mixed && apart {
            assert_eq!(job.int("read.total_ios") + job.int("write.total_ios"), 1024);
            for (key, of_both) in [("min", u64::min as fn(u64, u64) -> u64), ("max", u64::max)] {
                let [read, write, mixed] =
                    ["read", "write", "mixed"].map(|of| job.int(&format!("{of}.clat_ns.{key}")));
                assert_eq!(mixed, of_both(read, write), "{key}");
            }
        }
    }
}

/// Every object has each key once, as [`Json::parse`] demands.
#[test]
fn keys_are_unique() {
    let null = "--ioengine=null --size=64k --output-format=json";
    let json = |line: &str| Json::parse(&Program::own().line(scratch().path(), line).ok().stdout);
    let of = |options: &str| json(&format!("--name=j {null} {options}"));
    let percentiles = |options: &str| {
        let percentiles = of(options).job().0["read"]["clat_ns"]["percentile"].clone();
        percentiles.as_object().unwrap().keys().cloned().collect::<Vec<String>>()
    };
    assert_eq!(percentiles("--percentile_list=99:50:50.0"), ["50.000000", "99.000000"]);
    assert_eq!(
        percentiles("--percentile_list=99.99999999:99.999999999:100:33.3333333"),
        ["33.333333", "99.99999999", "99.999999999", "100.000000"]
    );
    let many = (1..=99).map(|one| one.to_string()).collect::<Vec<_>>().join(":");
    assert_eq!(percentiles(&format!("--percentile_list={many}")).len(), 99);
    let twice = of("--bs=4k --bs=8k");
    assert_eq!((&twice.job().0["job options"]["bs"], twice.job().ios()), (&"8k".into(), [8, 0, 0]));
    let global = json(&format!("{null} --bs=4k --bs=8k --name=j --name=k"));
    assert_eq!(global.0["global options"]["bs"], "8k");
}

#[test]
fn directions_as_one_in_text() {
    let mixed = text(&format!("{MIX} --unified_rw_reporting=mixed"));
    assert!(mixed.contains("\n  mixed: IOPS=") && mixed.contains("\n  MIXED: bw="), "{mixed}");
    assert!(!mixed.contains("  read: ") && !mixed.contains("WRITE: "), "{mixed}");
    assert!(mixed.contains("issued rwts: total=1024,0,0,0"), "{mixed}");
    let both = text(&format!("{MIX} --unified_rw_reporting=both"));
    let places = ["\n  read: ", "\n  write: ", "\n  mixed: ", "\n   READ: ", "\n  WRITE: ", "\n  MIXED: "]
        .map(|line| both.find(line).unwrap_or_else(|| panic!("no {line:?} in {both}")));
    assert!(places.is_sorted(), "{both}");
    assert!(!both.contains("total=1024,0,0,0"), "{both}");
}

#[test]
fn directions_as_one_in_terse() {
    for (version, apart) in [(2, 3), (3, 2), (4, 3), (5, 3)] {
        let fields = |value: &str| {
            let line = format!(
                "{MIX} --unified_rw_reporting={value} --output-format=terse --terse-version={version}"
            );
            text(&line).trim_end().split(';').count()
        };
        let block = (fields("none") - fields("mixed")) / (apart - 1);
        assert_eq!(block, if version == 5 { 47 } else { 41 });
        assert_eq!(fields("both"), fields("none") + block);
    }
}

#[test]
fn clones_are_merged_before_their_directions() {
    let report = json(&format!("{MIX} --numjobs=3 --group_reporting --unified_rw_reporting=both"));
    assert_eq!(report.job().int("mixed.total_ios"), 3 * 1024);
}

/// If jobs of a group have different settings, each job uses its own, and the group shows both kinds.
#[test]
fn jobs_of_a_group_may_differ() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio adds what is not shown to what is");
    }
    let line = "--ioengine=null --size=64k --rw=rw --name=a --unified_rw_reporting=1 --name=b";
    let report = program.line(scratch().path(), line).ok().stdout;
    for line in ["  mixed: ", "  read: ", "  write: ", "   READ: ", "  WRITE: ", "  MIXED: "] {
        assert_eq!(report.matches(&format!("\n{line}")).count(), 1, "{line:?} in {report}");
    }
    let mixed = report.lines().find(|line| line.starts_with("  MIXED: ")).expect("seen above");
    assert!(mixed.contains("io=64.0KiB"), "{mixed}");
}

/// An I/O is due every millisecond, and each hundred is followed by a pause of 100 ms, so the next hundred begin late.
const PAUSES: &str = "--name=j --ioengine=null --size=4M --rate_iops=1000 --thinktime=100ms --thinktime_blocks=100 \
                      --number_ios=300";

#[test]
pub fn latency_from_the_intended_start_includes_the_delay() {
    if Program::under_test().is_peer {
        skip!("an option of ours");
    }
    for process in ["linear", "poisson"] {
        let report = json(&format!("{PAUSES} --lat_from_intended_start=1 --rate_process={process}"));
        let job = report.job();
        let key = |key: &str| job.int(&format!("read.lat_from_intended_start_ns.{key}"));
        assert_eq!(key("N"), 300);
        assert!(key("max") >= 90_000_000, "{process}: {}", key("max"));
        // Two of three I/Os are late, some of them by the whole pause.
        let means =
            ["lat_from_intended_start_ns", "lat_ns"].map(|key| job.float(&format!("read.{key}.mean")));
        assert!(means[0] > means[1] + 10_000_000.0, "{process}: {means:?}");
        assert!(job.0["read"]["lat_from_intended_start_ns"].get("percentile").is_some());
    }
    let report = text(&format!("{PAUSES} --lat_from_intended_start=1"));
    assert!(report.contains("\n    ilat (") && report.contains("\n    ilat percentiles ("), "{report}");
}

#[test]
fn pauses_that_do_not_count_are_not_waited_for() {
    if Program::under_test().is_peer {
        skip!("an option of ours");
    }
    // There is a pause after ten I/Os in ten milliseconds, so all but the first ten begin at least 90 ms late.
    let line = "--name=j --ioengine=null --size=4M --rate_iops=1000 --thinktime=100ms --thinktime_blocks=10 \
                --number_ios=60 --lat_from_intended_start=1 --percentile_list=20";
    let fifth = |more: &str| {
        let report = json(&format!("{line} {more}"));
        report.job().0["read"]["lat_from_intended_start_ns"]["percentile"]["20.000000"]
            .as_u64()
            .expect("the percentile is reported")
    };
    let (counted, ignored) = (fifth(""), fifth("--rate_ignore_thinktime=1"));
    // If the schedule shifts with the pauses, only delays by the machine itself are left, which are shorter than the
    // pauses.
    assert!(counted >= 85_000_000 && ignored < counted, "{ignored} {counted}");
}

#[test]
fn latency_from_the_intended_start_is_off_by_default_and_needs_a_rate() {
    let report = json(PAUSES);
    assert!(report.job().0["read"].get("lat_from_intended_start_ns").is_none());
    let program = Program::under_test();
    if program.is_peer {
        skip!("an option of ours");
    }
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=4k --lat_from_intended_start=1";
    program.line(dir.path(), line).ok().says("needs a rate");
    program.run(dir.path(), [&words(line)[..], &["--warnings-fatal".into()]].concat()).refused();
}

/// Some of the reads have another priority. The best-effort class needs no privileges.
const PRIORITIES: &str = "--name=j --filename=f --size=1M --rw=read --bs=4k --ioengine=libaio --iodepth=4 \
                          --cmdprio_percentage=40 --cmdprio_class=2 --cmdprio=3";

#[test]
fn priorities_are_told_apart() {
    for (more, key) in [("", "clat_ns"), ("--lat_percentiles=1", "lat_ns")] {
        let report = json(&format!("{PRIORITIES} {more}"));
        let job = report.job();
        let told = job.0["read"]["prios"].as_array().expect("priorities");
        let names: Vec<_> =
            told.iter().map(|one| (one["prioclass"].as_u64(), one["prio"].as_u64())).collect();
        assert_eq!(names, [(Some(0), Some(0)), (Some(2), Some(3))], "its own first");
        let counts: Vec<_> = told.iter().map(|one| one[key]["N"].as_u64().expect("a count")).collect();
        assert_eq!(counts.iter().sum::<u64>(), 256, "{counts:?}");
        // 40% of 256, within five standard deviations.
        assert!(counts[1].abs_diff(102) < 40, "{counts:?}");
        assert!(told.iter().all(|one| one[key].get("percentile").is_some()));
        assert!(job.0["write"].get("prios").is_none());
    }
}

#[test]
fn a_single_priority_is_not_reported() {
    for percent in ["--cmdprio_percentage=0", "--cmdprio_percentage=100"] {
        let report = json(&format!("{PRIORITIES} {percent}"));
        assert!(report.job().0["read"].get("prios").is_none(), "{percent}");
    }
}

#[test]
fn priorities_of_a_group_are_merged() {
    let report =
        json(&format!("--group_reporting {PRIORITIES} --name=k {}", PRIORITIES.replace("--name=j ", "")));
    let told = report.job().0["read"]["prios"].as_array().expect("priorities").clone();
    assert_eq!(told.len(), 2);
    assert_eq!(told.iter().map(|one| one["clat_ns"]["N"].as_u64().expect("a count")).sum::<u64>(), 512);
}

#[test]
fn too_many_priorities() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio has no such limit");
    }
    let shares: Vec<String> = (0..16).map(|i| format!("4k/1/{}/{}", 2 + i / 8, i % 8)).collect();
    let line = format!(
        "--name=j --filename=f --size=1M --ioengine=libaio --bssplit=4k/50:8k --cmdprio_bssplit={}",
        shares.join(":")
    );
    program.line(scratch().path(), &line).refused().says("16 different priorities");
}

#[test]
fn priorities_are_reported_as_by_the_peer() {
    for peer in peers!().into_iter().filter(|peer| !peer.release.knows_no_hints) {
        let dir = scratch();
        for more in ["", "--lat_percentiles=1", "--clat_percentiles=0", "--unified_rw_reporting=both"] {
            let line = format!("{PRIORITIES} {more} --output-format=normal,json+");
            let told = [&Program::under_test(), &peer].map(|program| {
                let run = program.line(dir.path(), &line).ok();
                let lines = run.stdout.lines().filter(|line| line.contains(" prio ") && !line.contains('"'));
                let lines: Vec<String> = lines.map(mask).collect();
                let tree: Vec<_> = Json::parse(&run.stdout).tree();
                let tree: Vec<_> = tree.into_iter().filter(|key| key.contains(".prios[")).collect();
                (lines, tree)
            });
            assert_eq!(told[0], told[1], "{more}");
            assert!(!told[0].0.is_empty() && !told[0].1.is_empty(), "{more}");
        }
    }
}

/// A name could otherwise control the terminal.
#[test]
fn control_characters_in_names_are_shown() {
    let dir = scratch();
    let job = |more: &str| {
        let args = ["--name=a\x1b[31mred", "--description=b\x07", "--ioengine=null", "--size=4k", more];
        Program::under_test().run(dir.path(), args)
    };
    let report = job("--output-format=normal").ok().stdout;
    assert!(report.contains(r"a\x1b[31mred: (g=0)") && report.contains(r"b\x07"), "{report}");
    assert!(!report.contains(['\x1b', '\x07']), "{report}");
    // Characters that a terminal may interpret, and that a JSON parser has to get back.
    for name in ["a\x1b[31mred", "a\x7fb", "a\u{85}b\u{9b}1m"] {
        let args = [&format!("--name={name}"), "--ioengine=null", "--size=4k", "--output-format=json"];
        let json = Program::under_test().run(dir.path(), args).ok().stdout;
        assert!(!json.chars().any(|character| character.is_control() && character != '\n'), "{json}");
        assert_eq!(Json::parse(&json).job().name(), name);
    }
    let refused = job("--rw=nonsense\x1b").refused();
    assert!(!refused.output().contains('\x1b'), "{refused}");
}

/// Only the normal report has this line.
#[test]
fn files_that_were_found_are_counted() {
    let dir = scratch();
    std::fs::create_dir_all(dir.path().join("d/e")).unwrap();
    for (files, words) in [(vec!["d/a"], "1 file"), (vec!["d/b", "d/e/c"], "3 files")] {
        files.iter().for_each(|file| std::fs::write(dir.path().join(file), [1; 4096]).unwrap());
        let run = Program::under_test().line(dir.path(), "--name=j --opendir=d").ok();
        let head = format!("iolite: opendir added {words}\nj: (g=0): rw=read");
        assert!(run.stdout.starts_with(&head), "{run}");
    }
    let run = Program::under_test().line(dir.path(), "--name=j --opendir=d --output-format=json").ok();
    Json::parse(&run.stdout);
}

/// Options of `[global]` are reported once, and a section without options reports none.
#[test]
fn a_section_without_options_reports_none() {
    let dir = scratch();
    let file = "[global]\nioengine=null\nsize=4k\n[plain]\n[writes]\nrw=write\n";
    std::fs::write(dir.path().join("job.fio"), file).expect("a job file");
    let run = Program::under_test().line(dir.path(), "job.fio --output-format=json").ok();
    let report = Json::parse(&run.stdout);
    assert_eq!(report.0["global options"], serde_json::json!({"ioengine": "null", "size": "4k"}));
    let jobs = report.jobs();
    assert_eq!(jobs[0].0.get("job options"), None);
    assert_eq!(jobs[1].0["job options"], serde_json::json!({"rw": "write"}));
}

#[test]
fn options_of_a_group_are_those_of_its_last_job() {
    let job = "--ioengine=null --size=4k --group_reporting";
    let report = json(&format!("--name=a {job} --numjobs=2 --name=b {job} --numjobs=2 --rw=write"));
    let job = report.job();
    assert_eq!((job.name(), &job.0["job options"]["name"]), ("a", &"b".into()));
    assert_eq!(job.0["job options"]["rw"], "write");
}

/// Programs that start a run and parse its report get a report, even if the run cannot begin.
#[test]
fn a_run_that_cannot_begin_has_a_report() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio has a report of some of these, and error 0 in some of those");
    }
    let fine = "--name=fine --ioengine=null --size=4k";
    for (fault, errno) in [
        ("--size=4k --directory=missing", libc::ENOENT),
        ("--size=4k --filename=missing --allow_file_create=0", libc::ENOENT),
        ("--filename=.", libc::EISDIR),
        ("--rw=read", libc::EINVAL),
        ("--size=4k --opendir=missing", libc::ENOENT),
        ("--read_iolog=missing", libc::EINVAL),
        ("--size=4k --ioengine=io_uring --hipri", libc::EINVAL),
        ("--size=4k --nrfiles=2000000000 --numjobs=2000", libc::EINVAL),
    ] {
        let dir = scratch();
        let line = format!("--output-format=json {fine} --name=bad {fault} --description=what");
        let run = program.line(dir.path(), &line).refused();
        assert!(run.stderr.contains("bad: "), "{run}");
        let report = Json::parse(&run.stdout);
        let jobs = report.jobs();
        assert_eq!((jobs[0].name(), jobs[0].int("error")), ("fine", 0), "{fault}");
        assert_eq!((jobs[1].name(), jobs[1].int("error") as i32), ("bad", errno), "{fault}");
        assert_eq!((jobs[1].ios(), jobs[1].int("job_start")), ([0; 3], 0));
        assert_eq!(jobs[1].0["desc"], "what");
        assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 0, "{fault}");
    }
    // The report goes to a file, in each format for programs, with each clone.
    let dir = scratch();
    let line =
        "--name=bad --numjobs=3 --size=4k --directory=missing --output-format=terse,json --output=report";
    let run = program.line(dir.path(), line).refused();
    assert_eq!(run.stdout, "");
    let report = std::fs::read_to_string(dir.path().join("report")).expect("a report");
    assert_eq!(Json::parse(&report).jobs().len(), 3);
    assert_eq!(report.lines().filter(|line| line.contains(";bad;0;2;")).count(), 3, "{report}");
    // There is no report in files with data, in the normal format, or if the options are invalid.
    let data = dir.path().join("data");
    std::fs::write(&data, "precious").expect("a file");
    let line = "--name=bad --filename=data --filetype=block --output-format=json --output=data";
    program.line(dir.path(), line).refused().says("--output=data");
    assert_eq!(std::fs::read_to_string(&data).expect("the file"), "precious");
    for line in ["--name=bad --directory=missing", "--name=bad --bs=sideways --output-format=json"] {
        assert_eq!(program.line(dir.path(), line).refused().stdout, "", "{line}");
    }
}

/// On a busy machine, periods may be merged, but none is sampled twice. (A unit test of the sampling function checks
/// that none is lost.)
#[test]
fn there_are_no_more_samples_than_periods() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("the last sample of fio depends on the release");
    }
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=1g --rate_iops=1000 --time_based --runtime=1 --bwavgtime=250 \
                --iopsavgtime=1000 --output-format=json";
    let report = Json::parse(&program.line(dir.path(), line).ok().stdout);
    let (bw, iops) = (report.job().int("read.bw_samples"), report.job().int("read.iops_samples"));
    assert!((1..=4).contains(&bw) && iops <= 1, "{bw} {iops}");
}
