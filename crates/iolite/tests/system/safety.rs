//! Protection of existing data: `--readonly` with all options, existing files, full disks.

use crate::common::devices::{Loop, Mounted};
use crate::common::program::{Finished, Running};
use crate::common::{Json, Program, scratch};
use iolite_testing::{example_engine, or_skip, skip};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

/// The engines for local files.
const ENGINES: [&str; 9] =
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "mmap", "posixaio"];

/// The types, sizes, contents and times of all files and directories below a directory. (Except access times, because
/// reads change them.)
pub fn tree(dir: &Path) -> Vec<String> {
    fn collect(path: &Path, found: &mut Vec<String>) {
        let facts = fs::symlink_metadata(path).expect("it was listed");
        let times = [facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()];
        let content = if facts.is_file() { fs::read(path).expect("it can be read") } else { Vec::new() };
        let sum = content.iter().fold(7u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        found.push(format!(
            "{} {:o} {} {} {times:?} {sum}",
            path.display(),
            facts.mode(),
            facts.size(),
            facts.blocks()
        ));
        if facts.is_dir() {
            let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
            names.sort();
            names.iter().for_each(|name| collect(name, found));
        }
    }
    let mut found = Vec::new();
    collect(dir, &mut found);
    found
}

/// Creates user data below `tree`, and traces beside it.
fn prepare(dir: &Path) {
    let content = |length: usize| -> Vec<u8> { (0..length).map(|at| (at / 7) as u8 | 1).collect() };
    fs::create_dir_all(dir.join("tree/d/e")).unwrap();
    for (name, length) in [
        ("p", 9),
        ("full", 256 << 10),
        ("other", 256 << 10),
        ("empty", 0),
        ("d/small", 100),
        ("d/empty", 0),
        ("d/a", 20_000),
        ("d/e/b", 64 << 10),
    ] {
        fs::write(dir.join("tree").join(name), content(length)).unwrap();
    }
    for (name, actions) in [
        ("reads", "0 tree/full add\n0 tree/full open\n0 tree/full read 0 4096\n0 tree/full close\n"),
        ("writes", "0 tree/full add\n0 tree/full open\n0 tree/full write 0 4096\n0 tree/full close\n"),
        ("beyond", "0 tree/p add\n0 tree/p open\n0 tree/p read 0 4096\n0 tree/p close\n"),
        ("missing", "0 tree/new add\n0 tree/new open\n0 tree/new read 0 4096\n0 tree/new close\n"),
        (
            "opens",
            "0 tree/new add\n0 tree/new open\n0 tree/new close\n0 tree/full add\n0 tree/full open\n0 tree/full read 0 4096\n",
        ),
    ] {
        fs::write(dir.join(name), format!("fio version 3 iolog\n{actions}")).unwrap();
    }
}

/// Runs with `--readonly`, and checks that the tree has not changed.
#[track_caller]
fn readonly(dir: &Path, line: &str) -> Finished {
    let before = tree(&dir.join("tree"));
    let run = Program::under_test().line(dir, &format!("--readonly --name=j {line}"));
    assert_eq!(tree(&dir.join("tree")), before, "something has changed: {run}");
    run
}

/// Jobs that would change something, and a part of the refusal.
const FORBIDDEN: &[(&str, &str)] = &[
    // Sizes.
    ("--filename=tree/p --size=64k", "tree/p would be extended to 65536 bytes"),
    ("--filename=tree/empty --size=64k", "tree/empty would be extended"),
    ("--filename=tree/new --size=64k", "tree/new does not exist"),
    ("--filename=tree/new/new --size=64k", "tree/new/new does not exist"),
    ("--filename=tree/full:tree/p --size=64k", "tree/p would be extended"),
    ("--filename=tree/full --filesize=1m", "tree/full would be extended"),
    ("--filename=tree/full --filesize=512k-1m", "tree/full would be extended"),
    ("--filename=tree/full --offset=256k --size=64k", "tree/full would be extended"),
    ("--filename=tree/full --size=64k --numjobs=5 --offset_increment=64k", "tree/full would be extended"),
    ("--filename=tree/full --size=64k --file_append=1", "tree/full would be extended"),
    ("--filename=tree/p --fill_device=1", "tree/p would be extended"),
    ("--directory=tree --size=64k", "tree/j.0.0 does not exist"),
    ("--directory=tree --nrfiles=4 --size=64k", "tree/j.0.0 does not exist"),
    ("--directory=tree --filename_format=x.$filenum --size=64k", "tree/x.0 does not exist"),
    // Creation of files.
    ("--filename=tree/new --size=64k --create_only=1", "tree/new does not exist"),
    ("--filename=tree/new --size=64k --create_on_open=1", "tree/new does not exist"),
    ("--filename=tree/new --size=64k --create_serialize=0", "tree/new does not exist"),
    ("--filename=tree/p --size=64k --create_serialize=0", "tree/p would be extended"),
    ("--filename=tree/p --size=64k --overwrite=1", "tree/p would be extended"),
    ("--filename=tree/p --size=64k --pre_read=1", "tree/p would be extended"),
    ("--filename=tree/p --size=64k --fallocate=none", "tree/p would be extended"),
    ("--filename=tree/p --size=64k --fallocate=posix", "tree/p would be extended"),
    ("--filename=tree/p --size=64k --fallocate=keep", "tree/p would be extended"),
    ("--filename=tree/p --size=64k --fallocate=truncate", "tree/p would be extended"),
    ("--filename=tree/p --size=64k --thread=1", "tree/p would be extended"),
    // Writes and trims.
    ("--filename=tree/full --rw=write", "rw=write would change data"),
    ("--filename=tree/full --rw=randwrite", "rw=randwrite would change data"),
    ("--filename=tree/full --rw=rw", "rw=rw would change data"),
    ("--filename=tree/full --rw=randrw --rwmixread=100", "rw=randrw would change data"),
    ("--filename=tree/full --rw=trim", "rw=trim would change data"),
    ("--filename=tree/full --rw=randtrim", "rw=randtrim would change data"),
    ("--filename=tree/full --rw=trimwrite", "rw=trimwrite would change data"),
    ("--filename=tree/full --rw=randtrimwrite", "rw=randtrimwrite would change data"),
    ("--filename=tree/full --rw=write --verify=crc32c --trim_percentage=10", "rw=write would change data"),
    ("--filename=tree/full --rw=write --create_only=1", "rw=write would change data"),
    ("--opendir=tree --rw=write", "rw=write would change data"),
    ("--filename=tree/full --name=k --filename=tree/other --rw=write", "rw=write would change data"),
    // Removal.
    ("--filename=tree/full --unlink=1", "unlink=1 would remove files"),
    ("--filename=tree/full --unlink_each_loop=1 --loops=2", "unlink_each_loop=1 would remove files"),
    ("--opendir=tree/d --unlink=1", "unlink=1 would remove files"),
    // Buffers.
    ("--filename=tree/full --mem=mmap:tree/new", "mem=mmap:tree/new would make this file"),
    ("--filename=tree/full --mem=mmap:tree/empty", "mem=mmap:tree/empty would make this file"),
    ("--filename=tree/full --mem=mmapshared:tree/empty", "mem=mmapshared:tree/empty would make this file"),
    ("--filename=tree/full --mem=mmapshared:tree/other", "buffers would overwrite it"),
    // Traces.
    ("--read_iolog=writes", "the trace would change data"),
    ("--read_iolog=writes --read_iolog_chunked=1", "--readonly forbids that"),
    ("--read_iolog=beyond", "tree/p would be extended"),
    ("--read_iolog=beyond --read_iolog_chunked=1", ""),
    ("--read_iolog=missing", "tree/new does not exist"),
    ("--read_iolog=missing --read_iolog_chunked=1", "No such file or directory"),
    ("--read_iolog=opens", "tree/new does not exist"),
    // Traces, logs and reports.
    ("--filename=tree/full --write_iolog=tree/other", "holds something other than a trace"),
    ("--filename=tree/full --write_iolog=tree/full", "holds something other than a trace"),
    ("--filename=tree/full --output=tree/full", "the report would go into the data of job j"),
];

/// Jobs that change nothing and must run.
const ALLOWED: &[&str] = &[
    "--filename=tree/full",
    "--filename=tree/full --rw=randread --size=64k --io_size=1m",
    "--filename=tree/full --size=50% --offset=25%",
    "--filename=tree/full --filesize=64k",
    "--filename=tree/full --create_only=1 --size=64k",
    "--filename=tree/full --create_on_open=1 --allow_file_create=0",
    "--filename=tree/full --create_serialize=0 --overwrite=1 --fallocate=posix",
    "--filename=tree/full --pre_read=1 --invalidate=0 --fadvise_hint=random",
    "--filename=tree/full --fsync=1 --fdatasync=1 --end_fsync=1 --fsync_on_close=1 --end_syncfs=1",
    "--filename=tree/full:tree/other --openfiles=1 --lockfile=exclusive --numjobs=2",
    "--filename=tree/full --loops=2 --unlink=0",
    "--filename=tree/full --time_based=1 --runtime=1 --rate_iops=20",
    "--filename=tree/full --thread=1 --numjobs=3",
    "--filename=tree/full --mem=mmap:tree/other",
    "--filename=tree/full --verify_only=1",
    "--filename=tree/full --write_iolog=trace --write_bw_log=log --write_lat_log=log --log_avg_msec=10",
    "--filename=tree/full --output=report --bandwidth-log --exec_prerun=true",
    "--opendir=tree",
    "--opendir=tree --size=4m --rw=randread",
    "--opendir=tree/d --filesize=1m",
    "--opendir=tree/d --size=64m --nrfiles=2 --fill_device=1",
    "--read_iolog=reads",
    "--read_iolog=reads --read_iolog_chunked=1 --replay_no_stall=1",
    "--filename=tree/missing --ioengine=null --size=4k",
    "--ioengine=null --size=4k --unlink=1",
];

#[test]
fn readonly_changes_nothing() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio makes and extends files");
    }
    let dir = scratch();
    prepare(dir.path());
    for (line, words) in FORBIDDEN {
        readonly(dir.path(), line).refused().says(words);
    }
    for line in ALLOWED {
        readonly(dir.path(), line).ok();
    }
}

#[test]
fn readonly_holds_for_every_engine() {
    if Program::under_test().is_peer {
        skip!("fio makes and extends files");
    }
    let dir = scratch();
    prepare(dir.path());
    for engine in ENGINES {
        for more in ["", "--thread=1", "--io_submit_mode=offload", "--direct=1 --bs=4k"] {
            let with =
                |line: &str| readonly(dir.path(), &format!("--ioengine={engine} --iodepth=4 {more} {line}"));
            with("--filename=tree/full --rw=randread").ok();
            with("--opendir=tree --size=1m").ok();
            with("--filename=tree/p --size=64k").refused().says("would be extended");
            with("--filename=tree/new --size=64k").refused().says("does not exist");
            with("--filename=tree/full --rw=write").refused().says("--readonly forbids that");
            with("--filename=tree/full --unlink=1").refused().says("--readonly forbids that");
        }
    }
}

#[test]
fn readonly_holds_for_storages_of_engines() {
    let dir = scratch();
    or_skip!(example_engine("drawers", dir.path()));
    prepare(dir.path());
    let engine = "--ioengine=./drawers.so --arguments=tree/cabinet";
    let made = format!("--name=j {engine} --filename=a:b --size=256k --rw=write");
    Program::under_test().line(dir.path(), &made).ok();
    // (The engine locks its cabinet, which changes the file's times.)
    let with = |line: &str| {
        let before = contents(&dir.path().join("tree"));
        let run = Program::under_test().line(dir.path(), &format!("--readonly --name=j {engine} {line}"));
        assert!(contents(&dir.path().join("tree")) == before, "something has changed: {run}");
        run
    };
    with("--filename=a:b --rw=randread").ok();
    with("--filename=a --size=64k --rw=read --create_fsync=1 --end_fsync=1").ok();
    with("--filename=a --size=1m").refused().says("a would be extended to 1048576 bytes");
    with("--filename=c --size=64k").refused().says("c does not exist");
    with("--filename=c --size=64k --create_only=1").refused().says("c does not exist");
    with("--filename=a --unlink=1").refused().says("unlink=1 would remove files");
    with("--filename=a --rw=randrw").refused().says("rw=randrw would change data");
}

#[test]
fn readonly_verifies_existing_data() {
    let dir = scratch();
    prepare(dir.path());
    let job = "--filename=tree/checked --size=64k --bs=4k --verify=crc32c";
    let write = format!("--name=j {job} --rw=write --do_verify=0");
    Program::under_test().line(dir.path(), &write).ok();
    readonly(dir.path(), &format!("{job} --rw=read")).ok();
    File::options()
        .write(true)
        .open(dir.path().join("tree/checked"))
        .and_then(|file| file.write_all_at(b"wrong", 5000))
        .unwrap();
    let run = readonly(dir.path(), &format!("{job} --rw=read --verify_fatal=0"));
    assert_eq!(run.code(), 1, "{run}");
}

#[test]
fn devices_are_not_changed_under_readonly() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 1 << 20));
    let image = dir.path().join("loop.img");
    let run = |line: &str| {
        let before = fs::read(&image).unwrap();
        let line = format!("--readonly --name=j --size=64k {line}");
        let run = Program::under_test().line(dir.path(), &line);
        assert_eq!(fs::read(&image).unwrap(), before, "{run}");
        run
    };
    let path = &device.path;
    run(&format!("--filename={path} --rw=randread")).ok();
    for rw in ["write", "trim", "randrw"] {
        run(&format!("--filename={path} --rw={rw}")).refused();
    }
    if !Program::under_test().is_peer {
        fs::write(dir.path().join("f"), vec![1; 65536]).unwrap();
        for option in ["--write_iolog", "--output"] {
            run(&format!("--filename=f {option}={path}")).refused().says("a block device");
        }
        run(&format!("--filename=f --mem=mmapshared:{path}")).refused().says("is a block device");
    }
}

/// The names and the content of files below a directory.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let files = crate::common::files_in(dir);
    files.into_iter().map(|(name, _)| (name.clone(), fs::read(dir.join(name)).unwrap())).collect()
}

#[test]
fn found_files_are_taken_as_they_are() {
    if Program::under_test().is_peer {
        skip!("fio makes all of them as large as its job wants them");
    }
    let dir = scratch();
    prepare(dir.path());
    let found = dir.path().join("tree/d");
    let before = contents(&found);
    let run = |line: &str| {
        let line = format!("--name=j --opendir=tree/d {line}");
        Program::under_test().line(dir.path(), &line)
    };
    let left_out = "j: 2 files are left out: 1 empty, 1 with less than one block (4096 bytes)\n";
    // Only whole blocks of 20000 and of 65536 bytes are read.
    for (line, bytes) in [
        ("--rw=randread --size=4m", (4 + 16) * 4096),
        ("--rw=read --size=4m", 20_000 + 65_536),
        ("--rw=read --size=16k", 2 * 8192),
        ("--rw=read --filesize=8k", 2 * 8192),
        ("--rw=randread --filesize=1m", (4 + 16) * 4096),
        ("--rw=randread --ioengine=mmap --size=4m", (4 + 16) * 4096),
        ("--rw=randread --ioengine=io_uring --iodepth=8 --direct=1 --size=4m", (4 + 16) * 4096),
        ("--rw=randread --numjobs=2 --group_reporting --size=4m", 2 * (4 + 16) * 4096),
    ] {
        let run = run(&format!("{line} --output-format=normal,json")).ok();
        assert_eq!(contents(&found), before, "{run}");
        assert_eq!(run.stdout.matches(left_out).count(), 1, "{run}");
        assert!(!run.stdout.contains("Laying out"), "{run}");
        let json = &run.stdout[run.stdout.find("\n{").expect("a report")..];
        let moved = Json::parse(&json[..json.rfind('}').unwrap() + 1]).job().bytes()[0];
        assert!(
            moved == bytes || (bytes % 4096 != 0 && moved == bytes / 4096 * 4096),
            "{moved} of {bytes}: {run}"
        );
    }
    // Writers keep the sizes as well, unless the job says otherwise.
    for line in ["--rw=write --size=4m", "--rw=randrw --size=4m", "--rw=write --fill_device=1"] {
        run(line).ok().says(left_out.trim());
        let sizes = |files: &[(String, Vec<u8>)]| files.iter().map(|file| file.1.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&contents(&found)), sizes(&before), "{line}");
    }
    run("--rw=read --file_append=1 --size=1m").refused().says("opendir=tree/d: there is nothing to work on");
    run("--rw=read --bs=1m").refused().says("3 with less than one block (1048576 bytes)");
    run("--rw=write --filesize=80k").ok();
    assert!(contents(&found).iter().all(|(_, content)| content.len() == 80 << 10));
    run("--rw=write --file_append=1 --size=64k").ok();
    assert!(contents(&found).iter().all(|(_, content)| content.len() == 96 << 10));
}

#[test]
fn found_objects_are_taken_as_they_are() {
    let dir = scratch();
    or_skip!(example_engine("drawers", dir.path()));
    let engine = "--name=j --ioengine=./drawers.so --arguments=cabinet --output-format=json";
    let run = |line: &str| Program::under_test().line(dir.path(), &format!("{engine} {line}")).ok();
    run("--filename=box/a --size=64k --rw=write");
    run("--filename=box/b --size=8k --rw=write");
    let read = run("--opendir=box/ --rw=randread --size=4m");
    assert_eq!(Json::parse(&read.stdout).job().bytes()[0], 72 << 10);
    let read = run("--opendir=box/ --rw=read");
    assert_eq!(Json::parse(&read.stdout).job().bytes()[0], 72 << 10);
}

#[test]
fn extended_files_are_reported() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio says nothing");
    }
    let dir = scratch();
    prepare(dir.path());
    let line = "--name=a --filename=tree/p --rw=read --size=1m";
    let told = "a: extending tree/p from 9B to 1024KiB\n";
    let run = program.line(dir.path(), line).ok();
    assert!(run.stdout.contains(told), "{run}");
    let content = fs::read(dir.path().join("tree/p")).unwrap();
    assert_eq!((content.len(), &content[..9]), (1 << 20, &[1; 9][..]));
    assert!(!program.line(dir.path(), line).ok().stdout.contains("extending"), "it is long enough now");
    let empty = program.line(dir.path(), "--name=a --filename=tree/empty --rw=read --size=64k").ok();
    assert!(!empty.stdout.contains("extending"), "{empty}");
    // A JSON report contains nothing else.
    fs::write(dir.path().join("tree/p"), "precious").unwrap();
    let run = program.line(dir.path(), &format!("{line} --output-format=json")).ok();
    assert!(run.stdout.starts_with('{') && run.stderr.is_empty(), "{run}");
}

#[test]
fn a_full_file_system_is_reported_for_mapped_files() {
    if Program::under_test().is_peer {
        skip!("fio is killed");
    }
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 24 << 20));
    let file = mounted.directory.join("f");
    for more in ["", "--thread=1", "--direct=1", "--bs=1m", "--rw=randwrite"] {
        let line = format!(
            "--name=e --filename={} --ioengine=mmap --fallocate=none --size=64m --rw=write --bs=64k --runtime=1h {more}",
            file.display()
        );
        // (A job that may end before its time is not refused beforehand.)
        let run = Program::under_test().line(dir.path(), &line).refused();
        let run = run
            .says("err=28")
            .says(&format!("error on file {}: No space left on device: write", file.display()));
        assert!(!run.output().contains("killed") && !run.output().contains("Interrupted"), "{run}");
        fs::remove_file(&file).unwrap();
    }
    // The job has an error like any other.
    let line = format!(
        "--name=e --filename={} --ioengine=mmap --fallocate=none --size=64m --rw=write --bs=64k",
        file.display()
    );
    Program::under_test()
        .line(dir.path(), &format!("{line} --fill_device=1"))
        .ok()
        .says("No space left on device");
    fs::remove_file(&file).unwrap();
    let line = format!("{line} --ignore_error=,ENOSPC --output-format=json");
    let run = Program::under_test().line(dir.path(), &line).ok();
    let json = Json::parse(&run.stdout);
    assert_eq!((json.job().int("error"), json.job().int("write.total_ios")), (28, 1024), "{run}");
}

#[test]
fn buffers_without_room_are_reported() {
    if Program::under_test().is_peer {
        skip!("fio is killed");
    }
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 8 << 20));
    let line = format!(
        "--name=e --filename=/dev/zero --rw=read --size=64m --bs=16m --mem=mmapshared:{}/mem",
        mounted.directory.display()
    );
    let run = Program::under_test().line(dir.path(), &line).refused();
    run.says("mem: No space left on device").says("err=28");
}

/// Runs with a limit on file sizes, in blocks of 512 bytes.
fn limited(dir: &Path, blocks: u64, line: &str) -> Finished {
    let program = Program::under_test().path;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")]).arg(program);
    command.args(line.split_whitespace()).current_dir(dir);
    Running::start(&mut command).wait()
}

#[test]
fn a_limit_of_file_sizes_is_named() {
    if Program::under_test().is_peer {
        skip!("fio is killed");
    }
    let words = "(files may have at most 1048576 bytes here: ulimit -f, SIGXFSZ)";
    for engine in ENGINES {
        let dir = scratch();
        for more in ["--fallocate=none", "", "--thread=1"] {
            let line =
                format!("--name=e --filename=f --ioengine={engine} --size=2m --rw=write --bs=64k {more}");
            let run = limited(dir.path(), 2048, &line).refused();
            assert!(!run.output().contains("killed"), "{run}");
            let pid = run.stdout.split("e: pid=").nth(1).and_then(|rest| rest.split(',').next());
            assert!(pid.is_some_and(|pid| pid.parse::<i32>().unwrap() > 0), "{run}");
            run.says("err=27").says(words).says("File too large");
            let _ = fs::remove_file(dir.path().join("f"));
        }
    }
    // While files are laid out.
    let dir = scratch();
    for more in ["", "--create_serialize=0", "--fallocate=none"] {
        let line = format!("--name=e --filename=f --size=2m --rw=read {more}");
        let run = limited(dir.path(), 2048, &line).refused();
        assert!(!run.output().contains(" pid=0"), "{run}");
        run.says("func=layout: f: File too large").says(words);
        let _ = fs::remove_file(dir.path().join("f"));
    }
    // The limit applies to logs as well.
    let line = "--name=e --ioengine=null --size=64m --bs=4k --write_lat_log=log";
    limited(dir.path(), 8, line)
        .refused()
        .says("(files may have at most 4096 bytes here: ulimit -f, SIGXFSZ)");
    let line = "--name=e --ioengine=null --size=4k --output=report --output-format=json";
    limited(dir.path(), 1, line).refused().says("report").says("File too large");
    // Programs that a job starts have the default action for SIGXFSZ.
    let line = "--name=e --ioengine=null --size=4k --exec_prerun=yes";
    limited(dir.path(), 8, line).refused();
}

#[test]
fn a_job_that_trims_may_trim_whatever_is_verified() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 1 << 20));
    let image = dir.path().join("loop.img");
    fs::write(&image, vec![1; 1 << 20]).unwrap();
    let line = format!(
        "--name=t --filename={} --rw=trim --bs=64k --size=512k --verify=crc32c --verify_only=1 --output-format=json",
        device.path
    );
    let run = Program::under_test().line(dir.path(), &line).ok();
    assert_eq!(Json::parse(&run.stdout).job().bytes(), [0, 0, 512 << 10], "{run}");
}

/// Jobs that need a file of 64 KiB to be longer, or to be made again.
const GROWING: &[&str] = &[
    "--rw=read --size=1m",
    "--rw=write --size=1m",
    "--rw=randrw --size=256k --offset=40802189312",
    "--rw=write --size=1m --overwrite=1",
    "--rw=write --size=1m --time_based --runtime=1",
    "--rw=read --filesize=1m",
    "--rw=read --size=1m --create_only=1",
    "--rw=write --size=1m --fill_device=1",
    "--rw=write --fill_device=1 --number_ios=2",
    "--rw=write --size=1m --bs=64k --ioengine=falloc",
    "--rw=write --size=1m --bs=64k --ioengine=ftruncate",
    "--rw=write --size=64k --loops=2 --unlink_each_loop=1",
];

/// `allow_file_create=0` guards against typing errors. (fio removes the file before it refuses the job.)
#[test]
fn files_stay_as_long_as_they_are_where_none_may_be_made() {
    let (dir, links) = (scratch(), scratch());
    let file = dir.path().join("f");
    let ours = [Program::under_test(), Program::called_fio(links.path())];
    let peers = Program::peers();
    let run = |program: &Program, more: &str| {
        fs::write(&file, vec![7; 64 << 10]).unwrap();
        program.line(dir.path(), &format!("--name=j --filename=f --allow_file_create=0 {more}"))
    };
    for line in GROWING {
        for program in ours.iter().chain(&peers) {
            let run = run(program, line).refused();
            if !program.is_peer {
                assert_eq!(fs::read(&file).unwrap(), vec![7; 64 << 10], "{run}");
                run.says("allow_file_create=0");
            }
        }
    }
    for program in ours.iter().chain(&peers) {
        run(program, "--rw=write --size=64k --io_size=256k").ok();
        // Appending says that the file becomes longer.
        run(program, "--rw=write --size=64k --file_append=1").ok();
        assert_eq!(file.metadata().unwrap().len(), 128 << 10, "{}", program.path.display());
    }
    // A file that grows while it is written is not laid out, and so fio does not look.
    let on_open = "--rw=write --size=128k --create_on_open=1";
    ours[1..].iter().chain(&peers).for_each(|program| drop(run(program, on_open).ok()));
    if !ours[0].is_peer {
        run(&ours[0], on_open).refused().says("has 65536 bytes, and the job needs 131072");
    }
    fs::write(dir.path().join("trace"), "fio version 2 iolog\nf add\nf open\nf write 65536 4096\nf close\n")
        .unwrap();
    if !ours[0].is_peer {
        run(&ours[0], "--read_iolog=trace").refused().says("and the job needs 69632");
        // A trace that is read while it is replayed is checked write by write.
        for live in ["--read_iolog_chunked=1 --read_iolog=trace", "--read_iolog_chunked=1 --read_iolog=pipe"]
        {
            if live.ends_with("pipe") {
                let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status();
                assert!(made.unwrap().success());
            }
            let feeder = std::thread::spawn({
                let (from, to) = (dir.path().join("trace"), dir.path().join("pipe"));
                let is_piped = live.ends_with("pipe");
                move || is_piped.then(|| fs::write(to, fs::read(from).unwrap()))
            });
            run(&ours[0], live).refused().says("would make f longer than its 65536 bytes");
            assert_eq!(fs::read(&file).unwrap(), vec![7; 64 << 10], "{live}");
            feeder.join().unwrap();
        }
    }
}

/// A misspelt path must not be measured on the disk that it leads to. fio makes its directories.
#[test]
fn a_job_that_only_reads_makes_no_directories() {
    let (dir, links) = (scratch(), scratch());
    let ours = Program::under_test();
    let others = [Program::called_fio(links.path())].into_iter().chain(Program::peers());
    let made = dir.path().join("no");
    let run = |program: &Program, more: &str| {
        let _ = fs::remove_dir_all(&made);
        program.line(dir.path(), &format!("--name=j --size=64k --filename=no/such/f {more}"))
    };
    for program in others {
        run(&program, "--rw=read").ok();
        let silent = run(&program, "--rw=write").ok();
        assert!(made.join("such/f").exists() && !silent.output().contains("making"), "{silent}");
    }
    if ours.is_peer {
        return;
    }
    for line in ["--rw=read", "--rw=randread --create_on_open=1", "--ioengine=filestat"] {
        run(&ours, line)
            .refused()
            .says("there is no directory no/such, and a job that only reads makes none");
        assert!(!made.exists(), "{line}");
    }
    for line in ["--rw=write", "--rw=randrw", "--create_only=1", "--ioengine=filecreate"] {
        run(&ours, line).ok().says("j: making the directory no/such on /");
    }
    // A job may read beside what an earlier one writes; the engine null needs no files.
    run(&ours, "--rw=write --name=k --size=64k --filename=no/g --rw=read").ok();
    run(&ours, "--ioengine=null").ok();
}
