//! `--debug`: every category prints something, and JSON output stays free of it.

use crate::common::{Json, Program, scratch};
use iolite_testing::{partly_skipped, this_test};

/// The lines of a category.
fn lines<'a>(output: &'a str, category: &str) -> Vec<&'a str> {
    output.lines().filter(|line| line.split_whitespace().next() == Some(category)).collect()
}

#[test]
fn every_debug_category_prints_something() {
    let dir = scratch();
    let help = Program::under_test().line(dir.path(), "--debug=help").ok();
    let (_, named) = help.stdout.trim().split_once("debug categories: ").expect("a list");
    // Messages of profiles have their own tests.
    let categories: Vec<&str> =
        named.split(", ").filter(|category| !["all", "profile"].contains(category)).collect();
    assert!(categories.len() >= 18, "{categories:?}");
    let job = "--name=j --filename=f --rw=randread --size=64k --bs=4k --lockfile=exclusive --ioengine=libaio";
    for category in &categories {
        let run = Program::under_test().line(dir.path(), &format!("--debug={category} {job}")).ok();
        // Disk statistics exist only if the directory is on a disk.
        assert!(*category == "diskutil" || !lines(&run.stdout, category).is_empty(), "{category}: {run}");
        let others = categories.iter().filter(|other| *other != category);
        for other in others {
            assert_eq!(lines(&run.stdout, other), [""; 0], "only {category} was asked for: {run}");
        }
    }
    let all = Program::under_test().line(dir.path(), &format!("--debug=all {job}")).ok();
    for category in categories.iter().filter(|category| **category != "diskutil") {
        assert!(!lines(&all.stdout, category).is_empty(), "{category}: {all}");
    }
}

#[test]
fn each_io_is_traced_and_json_stays_valid() {
    let dir = scratch();
    let job = "--output-format=json --name=j --filename=f --rw=randrw --size=64k --bs=4k --iodepth=4 --ioengine=libaio";
    let run = Program::under_test().line(dir.path(), &format!("--debug=io {job}")).ok();
    assert_eq!(Json::parse(&run.stdout).job().ios().iter().sum::<u64>(), 16);
    assert!(run.stdout.starts_with('{'), "{run}");
    for step in ["fill:", "queue:", "complete:"] {
        assert_eq!(run.stderr.lines().filter(|line| line.contains(step)).count(), 16, "{step} {run}");
    }
    let plain = Program::under_test().line(dir.path(), job).ok();
    assert_eq!(plain.stderr, "", "{plain}");
}

#[test]
fn one_job_of_several() {
    let dir = scratch();
    for thread in ["", "--thread"] {
        let line = format!(
            "--debug=io,job:2 --name=a --filename=f --size=8k {thread} --name=b --filename=g --size=8k"
        );
        let run = Program::under_test().line(dir.path(), &line).ok();
        let told = lines(&run.stdout, "io");
        assert!(told.iter().any(|line| line.contains("file=g")), "{run}");
        assert!(!told.iter().any(|line| line.contains("file=f")), "{run}");
    }
}

/// The interpretation of `steadystate` is printed in fio's words.
#[test]
fn the_interpreted_steady_state_is_printed() {
    let told = |program: &Program, wish: &str| {
        let dir = scratch();
        let line = format!("--debug=parse --name=j --ioengine=null --size=4k --steadystate={wish}");
        let run = program.line(dir.path(), &line).ok();
        let told = lines(&run.stdout, "parse").into_iter().filter_map(|line| {
            let at = line.find("set steady state ")?;
            Some(line[at..].to_owned())
        });
        told.collect::<Vec<_>>()
    };
    let ours = Program::under_test();
    for (wish, words) in [
        ("iops:10", "set steady state IOPS threshold to 10.000000"),
        ("iops_slope:1.5", "set steady state IOPS threshold to 1.500000"),
        ("iops:0.1%", "set steady state threshold to 0.100000%"),
        ("bw_slope:5%", "set steady state threshold to 5.000000%"),
        ("bw:12", "set steady state BW threshold to 12"),
        ("bw_slope:10k", "set steady state BW threshold to 10240"),
    ] {
        assert_eq!(told(&ours, wish), [words], "{wish}");
        for peer in Program::peers() {
            assert_eq!(told(&peer, wish), [words], "{} {wish}", peer.version());
        }
    }
    assert_eq!(told(&ours, "lat:500us"), ["set steady state latency threshold to 500000 ns"]);
}

/// Each kind of random choice has its own seed. Seeds repeat unless the job asks for others.
#[test]
fn seeds_of_random_choices_are_printed() {
    let seeds = |program: &Program, more: &str| {
        let dir = scratch();
        let line = format!("--debug=random --name=j --ioengine=null --size=16k --rw=randread {more}");
        let run = program.line(dir.path(), &line).ok();
        let seed = |line: &&str| -> Option<String> {
            let (number, seed) = line.split_once("rand_seeds[")?.1.split_once("]=")?;
            (number.parse::<u32>().is_ok() && seed.parse::<u64>().is_ok()).then(|| format!("{number} {seed}"))
        };
        let found: Vec<String> = lines(&run.stdout, "random").iter().filter_map(seed).collect();
        assert!(found.len() > 4, "{run}");
        found
    };
    for program in [vec![Program::under_test()], Program::peers()].concat() {
        if program.version() == "fio-3.33" {
            partly_skipped(&this_test!(), "fio 3.33 does not list its seeds");
            continue;
        }
        let usual = seeds(&program, "");
        assert_eq!(usual, seeds(&program, ""), "{}", program.version());
        let [other, chance, again] =
            ["--randseed=7", "--randrepeat=0", "--randrepeat=0"].map(|it| seeds(&program, it));
        let all = [&usual, &other, &chance, &again];
        let different: std::collections::BTreeSet<_> = all.into_iter().flatten().collect();
        assert_eq!(different.len(), 4 * usual.len(), "{}: {all:?}", program.version());
    }
}

/// Where fio's report goes, its lines go, too, in every format: into the file of `--output`, from all processes, and
/// with an old report in that file.
#[test]
fn under_the_name_fio_lines_go_where_the_report_goes() {
    let dir = scratch();
    for program in [vec![Program::called_fio(dir.path())], Program::peers()].concat() {
        for format in ["normal", "json", "terse,normal"] {
            std::fs::write(dir.path().join("out"), "an old report\n").unwrap();
            let line = format!(
                "--debug=random,process --output=out --output-format={format} --name=j --ioengine=null --size=16k \
                 --rw=randread --numjobs=2"
            );
            let run = program.line(dir.path(), &line).ok();
            let output = std::fs::read_to_string(dir.path().join("out")).unwrap();
            let what = format!("{} {format}: {run}{output}", program.version());
            // fio itself prints there which categories it knows, because it opens the file only afterwards.
            let answers = run.output().lines().filter(|line| !line.contains("set debug option")).count();
            assert_eq!(answers, 0, "{what}");
            assert!(!output.contains("an old report"), "{what}");
            assert!(output.contains("\"fio version\"") || format != "json", "{what}");
            if program.version() != "fio-3.33" {
                assert!(lines(&output, "random").iter().any(|line| line.contains("rand_seeds[")), "{what}");
            }
            let processes: std::collections::BTreeSet<&str> =
                lines(&output, "process").iter().filter_map(|line| line.split_whitespace().nth(1)).collect();
            assert!(processes.len() > 1, "{what}");
        }
    }
    // A report on standard output has them in front of it; standard error is empty, as fio's.
    let line = "--debug=random --output-format=json --name=j --ioengine=null --size=16k --rw=randread";
    for program in [vec![Program::called_fio(dir.path())], Program::peers()].concat() {
        let run = program.line(dir.path(), line).ok();
        assert_eq!(run.stderr, "", "{run}");
        assert!(program.version() == "fio-3.33" || !lines(&run.stdout, "random").is_empty(), "{run}");
        assert!(run.stdout.contains("\n{"), "{run}");
    }
    // Without a report, nothing is lost.
    let run = Program::called_fio(dir.path()).line(
        dir.path(),
        "--debug=parse --output=no/out --name=j --ioengine=null --size=4k --steadystate=iops:2",
    );
    let run = run.refused();
    assert!(!lines(&run.stdout, "parse").is_empty(), "{run}");
}

#[test]
fn invalid_debug_categories_are_refused_and_warned_of_under_the_name_fio() {
    let dir = scratch();
    let program = Program::under_test();
    for (category, what) in [("nope", "unknown category \"nope\""), ("job:x", "jobs are counted from 1")] {
        let line = format!("--debug={category} --name=j --ioengine=null --size=4k");
        program.line(dir.path(), &line).refused().says(what);
        Program::called_fio(dir.path()).line(dir.path(), &line).ok().says(what);
    }
    program.line(dir.path(), "--debug=help").ok().says("helperthread");
}

#[test]
fn log_compression_and_steady_states_print_details() {
    let dir = scratch();
    let job = "--name=j --ioengine=null --size=64m --write_lat_log=l --log_compression=64k";
    let run = Program::under_test().line(dir.path(), &format!("--debug=compress {job}")).ok();
    assert!(
        lines(&run.stdout, "compress").iter().any(|line| line.contains("bytes of entries became")),
        "{run}"
    );
    let job = "--name=j --ioengine=null --size=1t --runtime=20 --time_based --steadystate=iops:100% \
               --steadystate_duration=2";
    let run = Program::under_test().line(dir.path(), &format!("--debug=steadystate {job}")).ok();
    let told = lines(&run.stdout, "steadystate");
    assert!(told.iter().any(|line| line.contains("interval 2 of 2") && line.contains(": steady")), "{run}");
}
