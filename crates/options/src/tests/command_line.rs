//! The grammar of the command line.

use super::*;

#[test]
fn the_spellings_of_an_option() {
    let spellings: [&[&str]; 6] = [
        &["--name=a", "--rw=randread"],
        &["--name", "a", "--rw", "randread"],
        &["-name=a", "-rw=randread"],
        &["-name", "a", "-rw", "randread"],
        &["--name=a", "--readwrite=randread"],
        &["--name=a", "-readwr", "randread"],
    ];
    for words in spellings {
        let [job] = jobs(words).try_into().unwrap();
        assert_eq!((job.name.as_str(), job.pattern.rw), ("a", ReadWrite::RandRead), "{words:?}");
        assert_eq!(pairs(&job.given), [("name", "a"), ("rw", "randread")], "{words:?}");
    }
}

// The command of the fifth seed document: a value as the next word, flags, an abbreviated flag.
#[test]
fn flags_take_no_word() {
    let [job] = jobs(&[
        "-filename=/mnt/s3/perf.txt",
        "-rw=read",
        "-direct=1",
        "-iodepth",
        "32",
        "-thread",
        "-ioengine=libaio",
        "-bs=4k",
        "-size=1G",
        "-numjobs=8",
        "-group_reporting",
        "-runtime=30",
        "-time_base",
        "-name=/root/result.txt",
    ])
    .try_into()
    .unwrap();
    assert_eq!(job.name, "/root/result.txt");
    assert!(
        job.schedule.thread
            && job.measurement.group_reporting
            && job.schedule.time_based
            && job.durability.direct
    );
    assert_eq!((job.depth.iodepth, job.schedule.numjobs, job.schedule.runtime), (32, 8, 30_000_000));
    assert_eq!(job.given_global.last(), Some(&("time_based".to_owned(), String::new())));
    assert_eq!(pairs(&job.given), [("name", "/root/result.txt")]);

    assert!(!jobs(&["--name=a", "--thread=0"])[0].schedule.thread);
    let missing = errors(&["--name=a", "--thread", "1"]);
    assert_eq!(missing.len(), 1, "the word behind a flag is a job file");
    assert!(missing[0].starts_with("1: "), "{missing:?}");
}

#[test]
fn an_option_taken_as_a_value_is_warned_of() {
    let ran = run(&["--name=a", "--write_lat_log", "--rw=write", "--size", "4k"]);
    assert_eq!(ran.batches[0][0].pattern.rw, ReadWrite::Read);
    assert_eq!(ran.warnings.len(), 1, "{:?}", ran.warnings);
    assert!(
        ran.warnings[0].starts_with("command line: --write_lat_log --rw=write: \"--rw=write\" is the value"),
        "{:?}",
        ran.warnings
    );
    assert_eq!(run(&["--name=a", "--description", "--what?"]).warnings, [""; 0], "that is not an option");
    assert_eq!(run(&["--output", "--minimal", "--name=a"]).warnings.len(), 1, "options of the run as well");
}

#[test]
fn abbreviations_must_be_clear() {
    assert_eq!(
        errors(&["--name=a", "--time=3"]),
        ["command line: option \"--time=3\" is ambiguous: --timeout, --time_based"]
    );
    let many = errors(&["-name=a", "-verify_", "x"]);
    assert_eq!(many.len(), 1, "its value is not taken for a job file: {many:?}");
    assert!(many[0].ends_with(", …"), "{many:?}");
    assert_eq!(
        jobs(&["--ioengine=libaio", "--name=a", "--iodepth=3"])[0].depth.iodepth,
        3,
        "a whole name is clear"
    );
    assert!(jobs(&["--name=a", "--bs_is=1"])[0].pattern.bs_is_seq_rand);
    assert!(run(&["--name=a", "--readon"]).run.readonly);
}

#[test]
fn defaults_and_jobs() {
    let jobs = jobs(&[
        "--bs=8k",
        "--name=a",
        "--rw=write",
        "--name=global",
        "--numjobs=2",
        "--name=b",
        "--blocksize=4k",
        "--bs=16k",
    ]);
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0].pattern.bs[iolite_types::Direction::Read], 8192);
    assert_eq!(pairs(&jobs[0].given_global), [("bs", "8k")]);
    assert_eq!(pairs(&jobs[0].given), [("name", "a"), ("rw", "write")]);
    assert_eq!((jobs[0].schedule.numjobs, jobs[1].schedule.numjobs), (1, 2));
    assert_eq!(
        jobs[1].pattern.rw,
        ReadWrite::Read,
        "a job inherits from the defaults, not from the job before it"
    );
    assert_eq!(pairs(&jobs[1].given_global), [("bs", "8k"), ("name", "global"), ("numjobs", "2")]);
    assert_eq!(pairs(&jobs[1].given), [("name", "b"), ("bs", "4k"), ("bs", "16k")]);
    assert_eq!(jobs[1].pattern.bs[iolite_types::Direction::Write], 16384, "the last one holds");
    assert!(jobs[0].is_set("bs") && !jobs[0].is_set("numjobs"));
}

#[test]
fn reserved_words_work_on_the_command_line() {
    let jobs = jobs(&["--name=a$ncpus", "--numjobs=4*$ncpus"]);
    assert_eq!((jobs[0].name.as_str(), jobs[0].schedule.numjobs), ("a$ncpus", 8));
    assert_eq!(errors(&["--name=a", "--numjobs=$ncpus/0"]), ["command line: numjobs=2/0: division by zero"]);
}

#[test]
fn values_that_are_missing() {
    assert_eq!(errors(&["--name=a", "--bs"]), ["command line: option \"--bs\" requires a value"]);
    assert_eq!(errors(&["--name=a", "--bs="]), ["command line: --bs=: option \"bs\" requires a value"]);
    assert_eq!(errors(&["--name="]), ["command line: --name=: option \"name\" requires a value"]);
    assert_eq!(
        errors(&["--name=a", "--readonly=1"]),
        ["command line: --readonly=1: option \"readonly\" takes no value"]
    );
}

#[test]
fn unknown_options_are_all_reported() {
    assert_eq!(
        errors(&["--name=a", "--nosuchthing", "5", "--iodpeth=4", "-iodpeth=4", "--outptu=x", "--bs=4k"]),
        [
            "command line: unknown option \"--nosuchthing\"",
            "command line: unknown option \"--iodpeth\"; did you mean \"--iodepth\"?",
            "command line: unknown option \"-iodpeth\"; did you mean \"--iodepth\"?",
            "command line: unknown option \"--outptu\"; did you mean \"--output\"?",
        ]
    );
    assert_eq!(errors(&["--=3"]), ["command line: unknown option \"--\""]);
}

#[test]
fn an_engine_has_to_be_chosen_before_its_options() {
    assert!(jobs(&["--name=a", "--ioengine=libaio", "--userspace_reap=0"])[0].is_set("userspace_reap"));
    assert!(jobs(&["--ioengine=libaio", "--name=a", "--userspace_reap"])[0].is_set("userspace_reap"));
    for words in [
        &["--name=a", "--userspace_reap", "--ioengine=libaio"][..],
        &["--name=b", "--ioengine=libaio", "--name=a", "--userspace_reap"],
    ] {
        assert_eq!(
            errors(words),
            [
                "command line: option \"--userspace_reap\" belongs to ioengine=libaio, which has to be chosen before it; \
             here the engine is psync"
            ]
        );
    }
    let job = &jobs(&["--ioengine=libaio", "--userspace_reap=0", "--name=a", "--ioengine=null"])[0];
    assert!(!job.is_set("userspace_reap"), "another engine knows nothing of it");
    assert_eq!(job.engine, JobOptions::default().engine);
}

#[test]
fn words_that_are_not_text() {
    use std::os::unix::ffi::OsStringExt;
    let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let found = invoke_as(
        &[word(b"--name=a\xff"), word(b"--bs"), word(b"\xff"), word(b"/none\xff")],
        "",
        Name::Iolite,
    );
    let found = found.unwrap_err();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|line| line.contains('\u{fffd}')), "{found:?}");
}
