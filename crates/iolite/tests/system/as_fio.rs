//! Under the name `fio`: the output that scripts depend on equals that of each available fio.
//!
//! Scripts parse the version (see `cli`), treat any line on standard error as a failure, and use the exit status as the
//! number of failed jobs.

use crate::common::{Json, Program, at_once, scratch};
use iolite_testing::{partly_skipped, skip, this_test};
use std::fs;
use std::sync::Mutex;

/// Jobs that fio accepts silently and Iolite with a warning. Each runs in a separate directory.
const ACCEPTED: &[&str] = &[
    "--name=j --ioengine=null --size=64k --rwmixread=70",
    "--name=j --ioengine=psync --size=64k --iodepth=16",
    "--name=j --ioengine=null --size=1048576.0",
    "--name=j --ioengine=null --size=64k --log_avg_msec=100",
    "--name=j --ioengine=null --size=64k --threads=1 --block=4k --numruns=1 --dir=x --load=1",
    "--name=j --ioengine=null --size=64k --device-names=x --test-duration=1 --prep --threads-per-queue=2",
    "--name=j --ioengine=null --size=64k --verifysort=1 --verifysort_nr=7 --flow_watermark=3",
    "--name=j --ioengine=null --size=64k --flow=-1 --name=k --ioengine=null --size=64k --flow=-2",
    "--name=j --ioengine=null --size=64k --steadystate=iops:10%% --steadystate_duration=2",
    "--name=j --ioengine=null --size=64k --steadystate=iops_slope:0.3%x --steadystate_duration=2",
    "--name=j --ioengine=null --size=64k --gtod_reduce=1 --gtod_reduce=0",
    "--name=j --ioengine=null --size=64k --disable_lat=1 --gtod_reduce=0",
    "--max-jobs=1 --name=j --ioengine=null --size=64k --numjobs=5",
    "--eta=sometimes --name=j --ioengine=null --size=64k",
    "--append-terse=3 --name=j --ioengine=null --size=64k",
    "--name=j --rw=write --filesize=256k,512k --nrfiles=2",
    "--name=j --rw=write --size=64k --verify=crc32c --verify_interval=1000",
    "--name=j --rw=randwrite --size=64k --verify=crc32c --experimental_verify=1",
    "--name=j --ioengine=null --size=64k --exec_postrun=false",
    "--name=j --ioengine=null --size=64k --ramp_time=10",
    "--name=j --filename=f --size=64k --ioscheduler=none",
    // Values that scripts pass on unchecked.
    "--eta= --name=j --ioengine=null --size=64k",
    "--max-jobs= --alloc-size= --name=j --ioengine=null --size=64k",
    "--aux-path= --trigger= --trigger-file= --name=j --ioengine=null --size=64k",
    "--append-terse= --name=j --ioengine=null --size=64k",
    "--trigger-timeout=-1 --name=j --ioengine=null --size=64k",
    "--name=j --ioengine=null --size=64k --steadystate=iops:-5% --steadystate_duration=2",
    "--name=j --ioengine=null --size=64k --steadystate=bw_slope:-1k --steadystate_duration=2",
    "--name=j --ioengine=null --filesize=256k-",
    "--name=j --ioengine=null --size=64k --startdelay=0:",
    "--name=j --ioengine=null --size=64k --thinktime=+1 --max_latency=+10s",
    "--name=j --ioengine=filecreate --rw=write --filesize=4k --nrfiles=3 --fsync=1 --end_fsync=1",
    "--name=j --ioengine=filestat --rw=write --filesize=4k --nrfiles=3 --fdatasync=1",
    "--name=j --ioengine=filedelete --rw=write --filesize=4k --nrfiles=3 --sync_file_range=write:1",
];

/// Input that fio accepts, and complains about on standard error, whatever the format of its output is.
const COMPLAINED_ABOUT: &[(&str, &str)] = &[
    ("--percentile_list=1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:99:99.9", "left out: 99, 99.9"),
    ("--latency_percentile=50:60", "the list exceeding max length 1"),
    ("--percentile_list=50:x:99", "\"x\" is not a number"),
    ("--time_based", "needs a runtime"),
    ("--debug=foo", "unknown category \"foo\""),
];

/// Jobs about which fio complains when it begins to run them, with all of its lines.
const COMPLAINED_ABOUT_AT_THE_START: &[(&str, &[&str])] = &[
    ("--rw=randwrite --norandommap --verify=crc32c --bsrange=4k-8k", &[LIMITED]),
    ("--rw=write --norandommap --verify=null --bs=4k,8k --numjobs=2", &[LIMITED, LIMITED]),
    ("--rw=randwrite --norandommap --verify=crc32c", &[]),
    ("--rw=randwrite --norandommap --bsrange=4k-8k", &[]),
    ("--rw=randread --bs_unaligned --direct=1 --numjobs=2", &[UNALIGNED, UNALIGNED]),
    ("--rw=randread --bs_unaligned", &[]),
    ("--rw=randread --ba=8k --numjobs=2", &[ALIGNED]),
    ("--rw=read --ba=8k", &[]),
    ("--rw=randread --ba=4k", &[]),
    ("--rw=randread --ba=8k --norandommap", &[]),
    ("--rw=randwrite --ba=512 --bsrange=4k-8k --verify=crc32c", &[ALIGNED, LIMITED]),
    ("--rw=randwrite --ba=8k --bsrange=4k-8k --verify=crc32c --bs_unaligned --direct=1 --parse-only", &[]),
];
const ALIGNED: &str = "fio: Any use of blockalign= turns off randommap";
const LIMITED: &str = "fio: norandommap given for variable block sizes, verify limited";
const UNALIGNED: &str = "fio: bs_unaligned may not work with raw io";

#[test]
fn what_fio_says_at_the_start_is_said() {
    let links = scratch();
    let mut programs = vec![Program::called_fio(links.path())];
    programs.extend(Program::peers());
    for program in programs {
        for &(options, lines) in COMPLAINED_ABOUT_AT_THE_START {
            let (status, error, _) =
                told(&program, "json", &format!("--name=j --ioengine=null --size=64k {options}"));
            let said: Vec<&str> = error.lines().collect();
            assert!(status == 0 && said == lines, "{} {options}: {status} {error}", program.version());
        }
    }
}

/// Runs a command line with an output format. Returns the exit status, standard error and standard output.
fn told(program: &Program, format: &str, line: &str) -> (i32, String, String) {
    let dir = scratch();
    let run = program.line(dir.path(), &format!("--output-format={format} {line}"));
    (run.code(), run.stderr.clone(), run.stdout)
}

#[test]
fn where_fio_complains_so_do_we() {
    let links = scratch();
    let ours = Program::called_fio(links.path());
    for format in ["json", "normal", "terse"] {
        for (options, words) in COMPLAINED_ABOUT {
            let line = format!("--name=j --ioengine=null --size=64k {options}");
            let (status, error, text) = told(&ours, format, &line);
            assert!(status == 0 && error.contains(words), "{format} {options}: {status} {error}");
            assert!(!text.contains(words), "{text}");
            for peer in Program::peers() {
                let (status, error, _) = told(&peer, format, &line);
                assert!(status == 0 && !error.is_empty(), "{} {options}: {status}", peer.release.name());
            }
        }
    }
}

#[test]
fn standard_error_is_empty_where_that_of_fio_is() {
    let links = scratch();
    let ours = Program::called_fio(links.path());
    let different = Mutex::new(Vec::new());
    at_once(3, ACCEPTED, |&line| {
        let (status, error, text) = told(&ours, "json", line);
        if (status, error.as_str()) != (0, "") {
            different.lock().unwrap().push(format!("{line}: exit status {status}\n{error}"));
        }
        // JSON output contains nothing else.
        assert!(text.starts_with('{') || ours.is_peer || line.contains("terse"), "{line}: {text}");
        for peer in Program::peers() {
            let (status, error, _) = told(&peer, "json", line);
            assert_eq!(
                (status, error.as_str()),
                (0, ""),
                "{} {line}: not a case for this table",
                peer.release.name()
            );
        }
    });
    let different = different.into_inner().unwrap();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn warnings_are_lines_of_the_normal_report() {
    let links = scratch();
    let (ours, fio) = (Program::under_test(), Program::called_fio(links.path()));
    if ours.is_peer {
        skip!("it is about this program");
    }
    let line = "--name=j --ioengine=null --size=64k --verifysort=1 --rwmixread=70";
    let warnings = ["option verifysort is deprecated", "rwmixread: has no effect without a mix"];
    let (_, error, text) = told(&ours, "normal", line);
    assert!(
        warnings.iter().all(|warning| error.contains(warning) && !text.contains(warning)),
        "{error}{text}"
    );
    let (_, error, text) = told(&fio, "normal", line);
    assert_eq!(error, "");
    let (before, _) = text.split_once("\nfio-3.42\n").expect("a version");
    assert!(
        warnings
            .iter()
            .all(|warning| before.contains("fio: command line: warning: ") && before.contains(warning)),
        "{text}"
    );
    // A warning during the run.
    let (_, error, text) = told(&fio, "normal", "--name=j --ioengine=null --size=64k --ramp_time=10");
    assert!(error.is_empty() && text.contains("\nfio: j: ended within its ramp"), "{error}{text}");
    // If the run is refused, warnings go to standard error, because they may explain why.
    let (status, error, _) =
        told(&fio, "normal", "--rwmixread=70 --name=j --filename=no/x/ --size=4k --allow_file_create=0");
    assert!(status == 1 && error.contains("has no effect without a mix"), "{error}");
    let (status, error, text) = told(&fio, "normal", &format!("--parse-only {line}"));
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(text.contains(warnings[0]), "{text}");
    // With `--warnings-fatal`, warnings are errors.
    let (status, error, _) = told(&fio, "json", &format!("--warnings-fatal {line}"));
    assert!(status == 1 && error.contains(warnings[0]), "{error}");
}

/// Values that fio refuses when it reads them, and its sentence.
const OUT_OF_RANGE: &[(&str, &str)] = &[
    ("rwmixread=101", "rwmixread: max value out of range: 101 (100 max)"),
    ("iodepth=0", "iodepth: min value out of range: 0 (1 min)"),
    ("nice=-21", "nice: min value out of range: -21 (-20 min)"),
    ("max_open_zones=5000", "max_open_zones: max value out of range: 5000 (4096 max)"),
    ("direct=2", "max value out of range: 2 (1 max)"),
    ("read_beyond_wp=2", "max value out of range: 2 (1 max)"),
    ("zone_reset_threshold=1.5", "value out of range: 1.500000 (range max: 1.000000)"),
    ("zone_reset_frequency=-0.5", "value out of range: -0.500000 (range min: 0.000000)"),
    ("percentile_list=101", "value out of range: 101.000000 (range max: 100.000000)"),
    ("zone_reset_threshold=x", "not a floating point value: x"),
];

/// Lists of which fio 3.41 only says that they are too long, and which later ones refuse.
const LISTS: &[&str] = &["zone_reset_threshold=.4:.6", "zone_reset_frequency=.4:.6"];

#[test]
fn values_out_of_range_are_refused_in_the_words_of_fio() {
    let links = scratch();
    let (own, ours) = (Program::under_test(), Program::called_fio(links.path()));
    // (3.33 has other limits for some.)
    let peers: Vec<Program> = Program::peers().into_iter().filter(|peer| peer.release.minor >= 41).collect();
    if peers.is_empty() {
        partly_skipped(&this_test!(), "fio 3.41 is not installed");
    }
    let line = |word: &str| format!("--name=j --ioengine=null --size=64k --{word}");
    let lists = LISTS.iter().map(|&word| (word, "the list exceeding max length 1"));
    for (word, sentence) in OUT_OF_RANGE.iter().copied().chain(lists) {
        let (status, error, _) = told(&ours, "json", &line(word));
        assert!(status == 1 && error.contains(&format!("{word}: {sentence} (")), "{word}: {status} {error}");
        let (status, error, _) = told(&own, "json", &line(word));
        assert!(own.is_peer || (status == 1 && !error.contains(sentence)), "{word}: {status} {error}");
        for peer in &peers {
            let (status, error, _) = told(peer, "json", &line(word));
            assert!(error.contains(sentence), "{word}: {error}");
            assert_eq!(status == 0, LISTS.contains(&word), "{word}: {status}");
        }
    }
}

/// Values of `rw` that fio refuses.
const REFUSED_RW: &[&str] = &[
    "randrw:foo",
    "read:foo",
    "write:-x",
    "trim:(8*2)",
    "randread:0",
    "randtrimwrite:0",
    "randread:-1",
    "randread:",
    "read:",
    "rw:sequential",
];

#[test]
fn what_fio_refuses_behind_rw_is_refused() {
    let links = scratch();
    let programs = [Program::under_test(), Program::called_fio(links.path())];
    let mut peers = Program::peers();
    peers.retain(|peer| !peer.release.ignores_words_behind_rw);
    for program in programs.iter().chain(&peers) {
        let status = |rw: &str| {
            let rw = format!("--rw={rw}");
            program.run(links.path(), ["--name=j", "--ioengine=null", "--size=4k", &rw]).code()
        };
        for rw in REFUSED_RW {
            assert_eq!(status(rw), 1, "{}: rw={rw}", program.path.display());
        }
        for rw in ["read:0", "read:-4k", "write: 8", "randread:8k", "randrw:+2"] {
            assert_eq!(status(rw), 0, "{}: rw={rw}", program.path.display());
        }
    }
}

/// Values with text behind a number or a unit, or with blanks: those that fio takes, and those that it refuses.
#[test]
fn odd_ends_of_values_are_taken_or_refused_as_by_fio() {
    let links = scratch();
    let ours = Program::called_fio(links.path());
    let taken = [
        "rate=1mbps",
        "rate=1mb/s",
        "rate_iops=1kk",
        "offset=1kk",
        "log_avg_msec=10ms",
        "rwmixread=50%",
        "numjobs=1%",
        "bs=4kibx",
        "number_ios=0xg",
        "rw=randread:4k,",
        "ioengine=null:x",
        "random_distribution=zipf:1.2x",
        "runtime=2*1s",
        "runtime=300ms,",
    ];
    let refused = [
        "iodepth=4%",
        "rw=read ",
        "rw= read",
        "mem= malloc",
        "random_distribution=zipf:1.0",
        "random_distribution=zipf:",
        "file_service_type=zipf:1.0",
    ];
    let peers = Program::peers().into_iter().filter(|peer| peer.release.minor >= 41);
    for program in std::iter::once(ours).chain(peers) {
        for (values, expected) in [(&taken[..], 0), (&refused, 1)] {
            for value in values {
                let value = format!("--{value}");
                let line = ["--name=j", "--ioengine=null", "--size=1m", &value, "--parse-only"];
                let run = program.run(links.path(), line);
                assert_eq!(run.code(), expected, "{}: {value}: {run}", program.path.display());
            }
        }
    }
    // Under our own name, none of them is a guess, and one mistake is told once.
    let own = |value: &str| {
        Program::own().run(links.path(), ["--name=j", "--ioengine=null", "--size=1m", "--time_based", value])
    };
    for value in ["--rate=1mb/s", "--offset=10%%", "--rwmixread=50%", "--ioengine=null:x"] {
        own(value).refused();
    }
    let told = own("--runtime=1x").refused();
    assert!(told.stderr.contains("runtime=1x: ") && !told.stderr.contains("needs a runtime"), "{told}");
}

/// Values of which fio ignores a part, so that a job is not what it seems to be: `1min` is a microsecond.
const IGNORED: &[&str] = &[
    "--runtime=1mins",
    "--ramp_time=1.5",
    "--startdelay=0xy",
    "--size=64kx --bs=4q",
    "--size=65536x",
    "--size=65536%x",
    "--offset=0q",
    "--bs=1.5k",
    "--bssplit=4k/50/3:8k/50",
    "--rate_iops=1000000x",
    "--numjobs=1x",
    "--cpus_allowed=0q",
    "--thinktime=1q",
    "--steadystate=iops:10%x --steadystate_duration=1",
    "--percentile_list=50x",
    "--eta=sometimes",
    "--status-interval=9000mins",
    "--max-jobs=x",
    "--rw=read,write",
    "--verify=md5,foo",
    "--fallocate=none:foo",
    "--mem=malloc,foo",
    "--mem=malloc:foo",
    "--bs=4k,8k,16k,32k",
    "--rate=1m,2m,3m,4m",
    "--iodepth_batch=1,2",
    "--size=64k,128k",
    "--random_distribution=random:foo",
];

#[test]
fn what_fio_ignores_in_a_value_is_an_error_under_our_own_name() {
    let (dir, links) = (scratch(), scratch());
    let (ours, fio) = (Program::under_test(), Program::called_fio(links.path()));
    if ours.is_peer {
        skip!("it is about this program");
    }
    let run = |program: &Program, more: &str| {
        program.line(dir.path(), &format!("--name=j --ioengine=null --size=64k --parse-only {more}"))
    };
    for line in IGNORED {
        let refused = run(&ours, line).refused();
        assert!(
            !refused.stderr.contains("ignored") && refused.stderr.contains("command line: "),
            "{refused}"
        );
        let accepted = run(&fio, line);
        let is_a_guess = line.contains("64kx") || line.contains("0xy");
        assert!(is_a_guess || (accepted.code() == 0 && accepted.stderr.is_empty()), "{accepted}");
    }
    // (The job ends by its size.)
    let bytes = |program: &Program| {
        let run = program
            .line(dir.path(), "--name=j --ioengine=null --size=64m --runtime=1min --output-format=json");
        Json::parse(&run.ok().stdout).job().int("read.io_bytes")
    };
    assert_eq!(bytes(&ours), 64 << 20);
    for program in [fio].iter().chain(&Program::peers()) {
        assert!(bytes(program) < 64 << 20, "{}", program.path.display());
    }
}

/// Jobs that fail, with others that do not, and fio's exit status.
const FAILING: &[(i32, &str)] = &[
    (1, "--name=a --filename=/dev/full --rw=write --size=4k"),
    (3, "--filename=/dev/full --rw=write --size=4k --name=a --name=b --name=c"),
    (3, "--name=a --filename=/dev/full --rw=write --size=4k --numjobs=3"),
    (3, "--name=a --filename=/dev/full --rw=write --size=4k --numjobs=3 --group_reporting"),
    (3, "--name=a --filename=/dev/full --rw=write --size=4k --numjobs=3 --thread"),
    (2, "--size=4k --name=a --filename=/dev/full --rw=write --numjobs=2 --name=c --ioengine=null"),
    (1, "--name=a --ioengine=null --size=4m --max_latency=1ns --name=b --ioengine=null --size=4k"),
];

#[test]
fn the_exit_status_counts_failed_jobs() {
    let links = scratch();
    let programs: Vec<Program> =
        [Program::called_fio(links.path())].into_iter().chain(Program::peers()).collect();
    for program in &programs {
        for &(status, line) in FAILING {
            assert_eq!(told(program, "json", line).0, status, "{}: {line}", program.path.display());
        }
    }
    let ours = Program::under_test();
    if ours.is_peer {
        partly_skipped(&this_test!(), "the program under test is fio itself");
        return;
    }
    // Under its own name, Iolite does not count failed jobs.
    assert_eq!(told(&ours, "json", FAILING[1].1).0, 1);
    // fio's exit status would wrap to 0 here.
    let many = "--name=a --filename=/dev/full --rw=write --size=4k --numjobs=256 --thread --group_reporting";
    assert_eq!(told(&programs[0], "json", many).0, 125);
}

/// A later gtod_reduce=0 does not cancel an earlier gtod_reduce=1.
#[test]
fn gtod_reduce_stays() {
    let links = scratch();
    let programs: Vec<Program> =
        [Program::called_fio(links.path())].into_iter().chain(Program::peers()).collect();
    for program in &programs {
        let counts = |options: &str| {
            let line = format!("--name=j --ioengine=null --size=4k {options}");
            let json = Json::parse(&told(program, "json", &line).2);
            ["clat_ns", "lat_ns"].map(|kind| json.job().int(&format!("read.{kind}.N")))
        };
        assert_eq!(counts("--gtod_reduce=1 --gtod_reduce=0"), [0, 0], "{}", program.path.display());
        assert_eq!(counts("--disable_lat=1 --gtod_reduce=0"), [1, 0]);
        assert_eq!(counts("--gtod_reduce=1 --disable_lat=0 --gtod_reduce=0"), [0, 1]);
        assert_eq!(counts("--gtod_reduce=0"), [1, 1]);
    }
}

/// Patterns whose parts have no separators.
const PATTERNS: &[&str] = &[
    "\"abcd\"-120xdeadface",
    "0x120x34",
    "0x1200x34",
    "10x5",
    "12-13",
    "-12-13",
    "12\"a\"",
    "\"a\"\"b\"",
    "12'part'34",
    "0xab'part'0x1",
    "-1\"x\"0x1",
    "\"x\"-1-2'part'0x12-3",
    "65536-10xfface",
    "1+2 3 -4",
];

#[test]
fn parts_of_patterns_need_no_separators() {
    let links = scratch();
    let programs: Vec<Program> =
        [Program::called_fio(links.path())].into_iter().chain(Program::peers()).collect();
    for pattern in PATTERNS {
        for options in ["buffer_pattern=@", "verify=pattern\nverify_pattern=@\ndo_verify=0"] {
            let written = |program: &Program| {
                let dir = scratch();
                let job = format!(
                    "[j]\nfilename=f\nrw=write\nbs=128\nsize=256\n{}\n",
                    options.replace('@', pattern)
                );
                fs::write(dir.path().join("job.fio"), job).expect("a job file can be written");
                fs::write(dir.path().join("part"), b"FILE\x01").expect("a file can be written");
                program.line(dir.path(), "--output-format=json job.fio").ok();
                fs::read(dir.path().join("f")).expect("it was written")
            };
            let ours = written(&programs[0]);
            for peer in &programs[1..] {
                assert_eq!(ours, written(peer), "{}: {pattern} in {options}", peer.release.name());
            }
        }
    }
}

/// Each clone of a job without I/O prints its own announcement.
#[test]
fn jobs_without_io_are_announced_as_by_fio() {
    let links = scratch();
    let line = "--runtime=1 --name=c --ioengine=cpuio --cpuload=1 --cpuchunks=1000 --numjobs=2 --name=q --ioengine=cpuio \
                --cpuload=2 --cpumode=qsort --name=e --ioengine=exec --program=true --numjobs=3 --name=f --ioengine=exec \
                --program=echo --arguments=%n --name=g --ioengine=exec --program=true --std_redirect=0 --numjobs=2";
    let announced = |program: &Program| {
        let dir = scratch();
        let text = program.line(dir.path(), line).ok().stdout;
        let lines = text.split("\n\n").next().unwrap_or_default().lines();
        let mut lines: Vec<String> =
            lines.filter(|line| !line.starts_with("fio-")).map(str::to_owned).collect();
        // The order in which workers begin is random.
        lines.sort();
        lines
    };
    let ours = announced(&Program::called_fio(links.path()));
    assert!(ours.iter().any(|line| line == "e : program=true, arguments=(null)"), "{ours:#?}");
    for peer in Program::peers() {
        assert_eq!(ours, announced(&peer), "{}", peer.release.name());
    }
}
