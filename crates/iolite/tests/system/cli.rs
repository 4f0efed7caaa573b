//! The externally visible effects of the command line and the job file language.

use crate::common::{Json, Program, files_in, program::Running, scratch, sizes};
use iolite_testing::{partly_skipped, skip, this_test};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A file system in memory has no device: who asks for direct I/O there is told so, once per job.
#[test]
fn direct_io_in_memory_is_remarked_on() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { skip!("there is no /dev/shm") };
    let line = "--name=a --size=64k --rw=write --direct=1 --numjobs=2";
    let run = Program::own().line(memory.path(), line).ok();
    let remark =
        "iolite: warning: a: direct=1: a.0.0 is on a file system in memory (tmpfs), so no device is measured";
    assert_eq!(run.stderr.matches(remark).count(), 1, "{run}");
    for quiet in
        ["--name=a --size=64k --rw=write", "--name=a --size=64k --ioengine=null --direct=1 --rw=read"]
    {
        assert_eq!(Program::own().line(memory.path(), quiet).ok().stderr, "");
    }
    assert_eq!(Program::called_fio(memory.path()).line(memory.path(), line).ok().stderr, "");
}

fn job_file(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).expect("a job file can be written");
}

/// Names and I/Os (reads, writes) of the jobs that a command line makes.
#[track_caller]
fn jobs(dir: &Path, line: &str) -> Vec<(String, u64, u64)> {
    let run = Program::under_test().line(dir, &format!("--output-format=json {line}")).ok();
    let json = Json::parse(&run.stdout);
    let summary = |job: crate::common::json::Job<'_>| (job.name().to_string(), job.ios()[0], job.ios()[1]);
    json.jobs().into_iter().map(summary).collect()
}

fn job(name: &str, reads: u64, writes: u64) -> (String, u64, u64) {
    (name.to_string(), reads, writes)
}

#[test]
fn four_spellings_of_an_option() {
    let dir = scratch();
    for line in [
        "--ioengine=null --name=a --rw=write --size=64k --bs=8k",
        "--ioengine null --name a --rw write --size 64k --bs 8k",
        "-ioengine=null -name=a -rw=write -size=64k -bs=8k",
        "-ioengine null -name a -rw write -size 64k -bs 8k",
        "--name=a --ioengine=null --readwrite=write --size=65536 --blocksize=0x2000",
    ] {
        assert_eq!(jobs(dir.path(), line), [job("a", 0, 8)], "{line}");
    }
}

#[test]
fn names_open_jobs_and_global_ones_give_defaults() {
    let dir = scratch();
    let line =
        "--name=global --ioengine=null --bs=4k --size=64k --name=a --rw=read --name=b --rw=write --bs=16k";
    assert_eq!(jobs(dir.path(), line), [job("a", 16, 0), job("b", 0, 4)]);
}

#[test]
fn flags_need_no_value() {
    let dir = scratch();
    let line = "--ioengine=null --name=a --size=64k --numjobs=3 --thread --group_reporting";
    assert_eq!(jobs(dir.path(), line), [job("a", 48, 0)]);
}

#[test]
fn job_files() {
    let dir = scratch();
    job_file(
        dir.path(),
        "job.fio",
        "; a comment\n# another\n[global]\nioengine=null\nsize=64k\n\n[one]\n  rw=read\n\n[global]\nbs=8k\n[two]\nrw=write\n",
    );
    assert_eq!(jobs(dir.path(), "job.fio"), [job("one", 16, 0), job("two", 0, 8)]);
}

#[test]
fn sections() {
    let dir = scratch();
    job_file(dir.path(), "job.fio", "[global]\nioengine=null\nsize=64k\n[one]\n[two]\n[three]\n");
    assert_eq!(jobs(dir.path(), "--section=two job.fio"), [job("two", 16, 0)]);
    let both = jobs(dir.path(), "--section=three --section=one job.fio");
    assert_eq!(both, [job("one", 16, 0), job("three", 16, 0)]);
}

#[test]
fn includes() {
    let dir = scratch();
    job_file(dir.path(), "outer.fio", "[global]\ninclude inner.fio\n[one]\nrw=read\n");
    job_file(dir.path(), "inner.fio", "ioengine=null\nsize=64k\n");
    assert_eq!(jobs(dir.path(), "outer.fio"), [job("one", 16, 0)]);
}

#[test]
fn the_environment_and_keywords() {
    let dir = scratch();
    job_file(
        dir.path(),
        "job.fio",
        "[job]\nioengine=null\nrw=${IOLITE_TEST_RW}\nsize=${IOLITE_TEST_SIZE}\nbs=$pagesize\nnumjobs=$ncpus-$ncpus+2\n",
    );
    let output = Command::new(&Program::under_test().path)
        .args(["--output-format=json", "job.fio"])
        .envs([("IOLITE_TEST_RW", "write"), ("IOLITE_TEST_SIZE", "128k")])
        .current_dir(dir.path())
        .output()
        .expect("the program starts");
    // fio runs bc(1) for the arithmetic of keywords, and bc may not be installed.
    if Program::under_test().is_peer && !output.status.success() {
        skip!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let json = Json::parse(&String::from_utf8_lossy(&output.stdout));
    let ios: Vec<u64> = json.jobs().iter().map(|job| job.ios()[1]).collect();
    assert_eq!(ios, [128 * 1024 / 4096; 2]);
}

#[test]
fn arithmetic() {
    if Program::under_test().is_peer {
        skip!("Debian builds fio without it");
    }
    let dir = scratch();
    job_file(
        dir.path(),
        "job.fio",
        "[a]\nioengine=null\nbs=4k\nsize=(4*16)k\n[b]\nioengine=null\nbs=4k\nsize=(2^20/4)\n",
    );
    assert_eq!(jobs(dir.path(), "job.fio"), [job("a", 16, 0), job("b", 64, 0)]);
}

#[test]
fn units() {
    let dir = scratch();
    for (size, ios) in [("64k", 16), ("64Ki", 16), ("64kb", 16), ("1m", 256), ("0x10000", 16), ("65536", 16)]
    {
        let line = format!("--name=a --ioengine=null --bs=4k --size={size}");
        assert_eq!(jobs(dir.path(), &line), [job("a", ios, 0)], "{size}");
    }
    // With kb_base=1000, k is 1000 and Ki is 1024.
    let line = "--name=a --ioengine=null --kb_base=1000 --bs=4k --size=64k --name=b --kb_base=1000 --ioengine=null --bs=4Ki --size=64Ki";
    assert_eq!(jobs(dir.path(), line), [job("a", 16, 0), job("b", 16, 0)]);
}

#[test]
fn several_job_files_run_one_after_the_other() {
    let dir = scratch();
    job_file(dir.path(), "first.fio", "[first]\nfilename=f\nrw=write\nsize=64k\n");
    job_file(dir.path(), "second.fio", "[second]\nfilename=f\nrw=read\nsize=64k\nallow_file_create=0\n");
    let run = Program::under_test().line(dir.path(), "first.fio second.fio").ok();
    let first = run.stdout.find("first: (groupid=0, jobs=1): err= 0:");
    // The second job finds the file of the first. It is a separate group in one report.
    let second = run.stdout.find("second: (groupid=1, jobs=1): err= 0:");
    assert!(first.is_some() && first < second, "{run}");
}

#[test]
fn a_job_file_on_standard_input() {
    let dir = scratch();
    job_file(dir.path(), "job.fio", "[piped]\nioengine=null\nsize=64k\n");
    let output = Command::new(&Program::under_test().path)
        .args(["--output-format=json", "-"])
        .stdin(fs::File::open(dir.path().join("job.fio")).unwrap())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Json::parse(&String::from_utf8_lossy(&output.stdout)).job().name(), "piped");
}

#[test]
fn versions_and_names() {
    let dir = scratch();
    let program = Program::under_test();
    let own = if program.is_peer { "fio-3." } else { concat!("iolite-", env!("CARGO_PKG_VERSION"), "\n") };
    for flag in ["--version", "-v"] {
        let run = program.line(dir.path(), flag).ok();
        assert!(run.stdout.starts_with(own), "{run}");
    }
    if program.is_peer {
        partly_skipped(&this_test!(), "it is fio that is under test, under no other name");
        return;
    }
    // Programs parse the text after the dash, so under the name `fio` it is only the version of the language.
    // Iolite's own version is printed elsewhere.
    let fio = Program::called_fio(dir.path());
    assert_eq!(fio.line(dir.path(), "--version").ok().stdout, "fio-3.42\n");
    let own = own.trim_end();
    assert!(fio.line(dir.path(), "--help").ok().stdout.contains(&format!("This is {own}, ")));
    let line = "--output-format=normal,json,terse --name=a --ioengine=null --size=4k";
    for (program, version) in [(&fio, "fio-3.42"), (&program, own)] {
        let run = program.line(dir.path(), line).ok();
        assert!(run.stdout.contains(&format!("\n{version}\n")), "{run}");
        assert!(run.stdout.contains(&format!("\n3;{version};a;0;0;")), "{run}");
        let json = Json::parse(&run.stdout).0;
        assert_eq!([&json["fio version"], &json["iolite version"]], [version, own]);
        let keys: Vec<&String> = json.as_object().expect("an object").keys().take(3).collect();
        assert_eq!(keys, ["fio version", "iolite version", "timestamp"]);
    }
}

#[test]
fn help() {
    let dir = scratch();
    let program = Program::under_test();
    let first = program.line(dir.path(), "--help").ok();
    assert_eq!(first.stdout, program.line(dir.path(), "-h").ok().stdout);
    assert!(first.stdout.lines().count() <= 24, "{first}");
    // Each command on the first screen is one of this program's.
    for command in ["iolite test /mnt/data", "iolite sweep --preset=storage", "iolite compare ", "--help=all"]
    {
        assert!(first.stdout.contains(command), "{command}: {first}");
    }
    let calls = [(&program, "--help=all"), (&Program::called_fio(dir.path()), "--help")];
    for (program, flag) in calls {
        let run = program.line(dir.path(), flag).ok();
        for option in
            ["--output-format", "--eta", "--readonly", "--section", "--cmdhelp", "--enghelp", "--max-jobs"]
        {
            assert!(run.stdout.contains(option), "{flag} mentions {option}: {run}");
        }
    }
    let run = program.line(dir.path(), "--cmdhelp=iodepth").ok();
    assert!(run.stdout.trim_start().starts_with("iodepth: "), "{run}");
    assert!(run.stdout.contains("default: 1\n"), "{run}");
    // Under the name `fio`, a line is the name of an engine, as scripts expect; under its own name it describes it.
    let strict = Program::called_fio(dir.path());
    for peer in Program::peers() {
        let (list, theirs) =
            (strict.line(dir.path(), "--enghelp").ok(), peer.line(dir.path(), "--enghelp").ok());
        // (fio 3.33 has an engine that later releases have not.)
        for line in theirs.stdout.lines().filter(|line| line.trim() != "pmemblk") {
            assert!(list.stdout.lines().any(|ours| ours == line), "{line}: {list}");
        }
        let range = |program: &Program| {
            let help = program.line(dir.path(), "--cmdhelp=bs").ok();
            help.stdout.lines().find(|line| line.contains("range")).map(str::to_owned)
        };
        assert_eq!(range(&strict), range(&peer));
    }
    let run = program.line(dir.path(), "--enghelp").ok();
    for engine in
        ["null", "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring", "posixaio"]
    {
        let describes = |line: &str| line.split_once(": ").is_some_and(|(name, _)| name.trim() == engine);
        assert!(run.stdout.lines().any(describes), "{engine} is described: {run}");
    }
    let run = program.line(dir.path(), "--enghelp=libaio").ok();
    assert!(run.stdout.contains("userspace_reap"), "{run}");
    let run = program.line(dir.path(), "--enghelp=libaio,userspace_reap").ok();
    assert!(run.stdout.contains("userspace_reap"), "{run}");
}

/// Usage help goes to standard output, errors to standard error.
#[test]
fn nothing_to_do() {
    let dir = scratch();
    let run = Program::under_test().line(dir.path(), "--rw=read --filename=f");
    let why = "iolite: No job(s) defined; iolite test DIRECTORY measures storage without any\n";
    assert_eq!((run.code(), run.stderr.as_str()), (1, why));
    assert!(run.stdout.contains("iolite test "), "{run}");
    assert!(files_in(dir.path()).is_empty());
}

#[test]
fn showcmd() {
    let dir = scratch();
    job_file(
        dir.path(),
        "sample.fio",
        "[global]\nsize=16m\nbs=4k\n[one]\nrw=randread\n[two]\nstonewall\nrw=write\nnumjobs=2\n",
    );
    let run = Program::under_test().line(dir.path(), "--showcmd sample.fio").ok();
    let line = run.stdout.lines().find(|line| line.contains("--name=one")).unwrap_or_else(|| panic!("{run}"));
    let (_, options) = line.split_once(' ').expect("a program and its options");
    assert_eq!(
        options.trim_end(),
        "--size=16m --bs=4k --name=one --rw=randread --name=two --stonewall --rw=write --numjobs=2"
    );
    assert_eq!(files_in(dir.path()).len(), 1, "nothing was run");
}

#[test]
fn max_jobs_does_not_limit_the_number_of_jobs() {
    let dir = scratch();
    let clones = "--name=a --ioengine=null --size=4k --bs=4k --numjobs=5 --group_reporting";
    assert_eq!(jobs(dir.path(), &format!("--max-jobs=1 {clones}")), [job("a", 5, 0)]);
}

#[test]
fn names_made_by_a_format() {
    let dir = scratch();
    let line = "--name=j --directory=. --filename_format=x.$jobname-$jobnum.$filenum --numjobs=2 --nrfiles=2 --size=8k --rw=write";
    Program::under_test().line(dir.path(), line).ok();
    let expected = sizes(&[("x.j-0.0", 4096), ("x.j-0.1", 4096), ("x.j-1.0", 4096), ("x.j-1.1", 4096)]);
    assert_eq!(files_in(dir.path()), expected);
}

#[test]
fn a_colon_in_a_name() {
    let dir = scratch();
    Program::under_test().run(dir.path(), ["--name=j", r"--filename=a\:b:c", "--size=8k", "--rw=write"]).ok();
    assert_eq!(files_in(dir.path()), sizes(&[("a:b", 4096), ("c", 4096)]));
}

/// fio mixes its report into the data.
#[test]
fn data_on_standard_output_is_alone_there() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio writes its report between the data");
    }
    let dir = scratch();
    let line =
        "--name=a --filename=- --ioengine=sync --rw=write --size=64k --buffer_pattern=0x61 --eta=always";
    let run = program.line(dir.path(), line).ok();
    assert!(run.stdout == "a".repeat(64 << 10), "{run}");
    assert!(run.stderr.contains("issued rwts: total=0,16,0,0"), "{run}");
    let run = program.line(dir.path(), &format!("{line} --output=report")).ok();
    assert!(run.stdout == "a".repeat(64 << 10), "{run}");
    let report = fs::read_to_string(dir.path().join("report")).unwrap();
    assert!(report.contains("issued rwts: total=0,16,0,0"), "{report}");
}

/// Command lines whose only purpose is their output.
fn questions() -> Vec<String> {
    let own =
        ["--help", "--version", "--cmdhelp", "--cmdhelp=bs", "--enghelp", "--enghelp=libaio", "--debug=?"];
    let measured = ["--crctest=crc16", "--cpuclock-test", "--memcpytest=simple", "--showcmd job.fio"];
    let subcommands = iolite_options::commands::ALL.iter().flat_map(|subcommand| match subcommand.name {
        "compare" => ["table", "json", "csv"]
            .map(|format| format!("compare -F {format} report.json report.json"))
            .to_vec(),
        "completion" => ["bash", "zsh", "fish"].map(|shell| format!("completion {shell}")).to_vec(),
        "device" => vec!["device --help".to_owned()],
        "dedupe" => vec!["dedupe -p 0 data".to_owned()],
        "keys" => vec!["keys --help".to_owned()],
        "log2csv" => vec!["log2csv report.json".to_owned()],
        "meta" => ["--help", "--clean .", "--show-job ."].map(|more| format!("meta {more}")).to_vec(),
        "report" => vec!["report report.json".to_owned()],
        "runs" => vec!["runs --help".to_owned(), "runs import --store=runs.db report.json".to_owned()],
        "sweep" => vec!["sweep --help".to_owned()],
        "test" => ["--help", "--clean .", "--show-job ."].map(|more| format!("test {more}")).to_vec(),
        "trace" => {
            ["", "--to-job", "--json", "--to-log=3"].map(|more| format!("trace {more} app.log")).to_vec()
        }
        "verify-state" => vec!["verify-state --help".to_owned()],
        "version" => ["", "--json"].map(|more| format!("version {more}")).to_vec(),
        "web" => vec!["web --help".to_owned()],
        "zipf" => vec!["zipf -g 1 -b 1m".to_owned()],
        other => panic!("a new subcommand: {other}"),
    });
    own.into_iter().chain(measured).map(str::to_owned).chain(subcommands).collect()
}

#[test]
fn an_answer_that_is_lost_is_an_error() {
    if Program::under_test().is_peer {
        skip!("fio does not mind");
    }
    let dir = scratch();
    job_file(dir.path(), "job.fio", "[a]\nioengine=null\nsize=4k\n");
    let make = "--name=a --filename=data --rw=write --size=64k --write_iolog=app.log --output-format=json+ \
                --output=report.json";
    Program::under_test().line(dir.path(), make).ok();
    let program = Program::under_test().path;
    let redirected = |line: &str, to: &str| {
        let script = format!("exec {} {line} > {to}", program.display());
        Running::start(Command::new("sh").args(["-c", &script]).current_dir(dir.path())).wait()
    };
    let jobs = ["job.fio", "--output-format=json job.fio", "--minimal job.fio"].map(str::to_owned);
    for line in questions().into_iter().chain(jobs) {
        redirected(&line, "/dev/null").ok();
        redirected(&line, "/dev/full").refused().says("No space left on device");
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let dir = scratch();
    let mut child = Command::new(Program::under_test().path)
        .arg("--cmdhelp=all")
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("a child can be waited for");
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

/// `--parse-only` does not look at files, devices or CPUs: a job file is often checked on another machine.
#[test]
pub fn parse_only_does_not_look_at_the_machine() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("other words");
    }
    let dir = scratch();
    for facts in [
        "--directory=nowhere --size=4k",
        "--opendir=nowhere",
        "--read_iolog=nowhere",
        "--filename=/dev/iolite-test-none",
        "--filename=f --size=4k --cpus_allowed=60000",
        "--filename=f --size=4k --gtod_cpu=60000",
        "--filename=f --size=4k --numa_cpu_nodes=60000",
        "--filename=f --size=4k --aux-path=nowhere",
    ] {
        let line = format!("--name=a {facts}");
        program.line(dir.path(), &line).refused();
        program.line(dir.path(), &format!("{line} --parse-only")).ok();
    }
    for language in ["--rate=1m --rate_iops=5", "--wait_for=nobody", "--rw=write --readonly", "--rw=sideways"]
    {
        let line = format!("--parse-only --name=a --size=4k {language}");
        program.line(dir.path(), &line).refused();
    }
    assert_eq!(files_in(dir.path()), []);
}

#[test]
fn the_auxiliary_directory_has_to_be_there() {
    let dir = scratch();
    job_file(dir.path(), "file", "");
    for (path, why) in [("nowhere", "there is no directory nowhere"), ("file", "file is not a directory")] {
        let line = format!("--name=a --ioengine=null --size=4k --aux-path={path}");
        let message = format!("a: --aux-path={path}: {why}");
        Program::under_test().line(dir.path(), &line).refused().says(&message);
    }
}

/// The printed command has the same effect as the job file.
#[test]
fn a_log_named_by_its_job_is_shown_with_its_name() {
    let dir = scratch();
    job_file(dir.path(), "job.fio", "[a]\nioengine=null\nsize=64k\nwrite_lat_log\nrw=write\n");
    let shown = Program::under_test().line(dir.path(), "--showcmd job.fio").ok().stdout;
    let line = shown.trim().split_once(' ').expect("a program and its arguments").1;
    assert_eq!(jobs(dir.path(), line), [job("a", 0, 16)]);
    assert!(dir.path().join("a_clat.1.log").exists(), "{:?}", files_in(dir.path()));
}

/// Some editors of Windows save texts like this.
#[test]
fn a_job_file_in_utf_16_is_recognised() {
    let dir = scratch();
    let text = "[j]\nioengine=null\nsize=4k\n";
    let marked: Vec<u16> = std::iter::once(0xfeff).chain(text.encode_utf16()).collect();
    let plain: Vec<u16> = text.encode_utf16().collect();
    for units in [&marked, &plain] {
        for to_bytes in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            let bytes: Vec<u8> = units.iter().flat_map(|&unit| to_bytes(unit)).collect();
            fs::write(dir.path().join("job.fio"), bytes).unwrap();
            let run =
                Program::own().line(dir.path(), "job.fio").refused().says("job.fio: this text is UTF-16");
            assert_eq!(run.stderr.lines().count(), 1, "{run}");
            Program::own()
                .line(dir.path(), "sweep --iodepth=1,2 job.fio")
                .refused()
                .says("this text is UTF-16");
        }
    }
    let wide: Vec<u8> = text.chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect();
    fs::write(dir.path().join("job.fio"), wide).unwrap();
    Program::own().line(dir.path(), "job.fio").refused().says("this text is UTF-32").says("iconv -f UTF-32");
}
