//! Engines that work on names: the resulting files, the counts, and refusals.

use crate::common::skeleton::{assert_same, skeleton};
use crate::common::{Json, Program, files_in, scratch, words};
use iolite_testing::skip;
use std::fs;
use std::path::Path;

/// Runs a line, and returns the counted reads and bytes.
#[track_caller]
fn counted(dir: &Path, line: &str) -> (u64, u64) {
    let run = Program::under_test().line(dir, &format!("--output-format=json {line}")).ok();
    let json = Json::parse(&run.stdout);
    json.jobs().iter().fold((0, 0), |(ios, bytes), job| (ios + job.ios()[0], bytes + job.bytes()[0]))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory can be read").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn files_are_made_looked_up_and_removed() {
    let dir = scratch();
    for mode in ["--thread=0", "--thread=1"] {
        let job =
            |engine| format!("--name=j {mode} --ioengine={engine} --nrfiles=5 --filesize=4k --numjobs=2");
        assert_eq!(counted(dir.path(), &job("filecreate")), (10, 40_960));
        let made = files_in(dir.path());
        assert_eq!((made.len(), &made[9]), (10, &("j.1.4".to_owned(), 0)));
        assert_eq!(counted(dir.path(), &job("filestat")), (10, 40_960));
        assert!(
            files_in(dir.path()).iter().all(|(_, size)| *size == 4096),
            "files are as large as they should"
        );
        assert_eq!(counted(dir.path(), &job("filedelete")), (10, 40_960));
        assert_eq!(files_in(dir.path()), []);
        assert_eq!(counted(dir.path(), &job("filedelete")), (10, 40_960), "they are laid out before");
        assert_eq!(files_in(dir.path()), []);
    }
}

/// There is nothing yet that could be locked when names are made, and no data that another job could disturb.
#[test]
fn names_need_no_lock() {
    for engine in ["filecreate", "dircreate", "filestat", "dirdelete"] {
        let dir = scratch();
        let job = format!("--name=j --ioengine={engine} --nrfiles=3 --filesize=4k --numjobs=2");
        assert_eq!(counted(dir.path(), &format!("{job} --lockfile=exclusive")), (6, 24_576), "{engine}");
        assert_eq!(names(dir.path()).len(), if engine == "dirdelete" { 0 } else { 6 }, "{engine}");
    }
}

#[test]
fn directories_are_made_looked_up_and_removed() {
    let dir = scratch();
    let job = |engine: &str| format!("--name=j --ioengine={engine} --nrfiles=3 --filesize=4k");
    for expected in [vec!["j.0.0", "j.0.1", "j.0.2"], vec![]] {
        let engines: &[&str] = if expected.is_empty() { &["dirdelete"] } else { &["dircreate", "dirstat"] };
        for engine in engines {
            assert_eq!(counted(dir.path(), &job(engine)), (3, 12_288), "{engine}");
        }
        assert_eq!(names(dir.path()), expected);
    }
    assert_eq!(counted(dir.path(), &job("dirdelete")), (3, 12_288), "they are made before");
    assert_eq!(names(dir.path()), [""; 0]);
    assert_eq!(counted(dir.path(), &format!("{} --unlink=1", job("dircreate"))), (3, 12_288));
    assert_eq!(names(dir.path()), [""; 0], "unlink removes directories, too");
}

#[test]
fn a_file_counts_as_one_io_of_its_size() {
    let dir = scratch();
    assert_eq!(counted(dir.path(), "--name=j --ioengine=filestat --nrfiles=3 --filesize=16k"), (3, 49_152));
    // Each file has 17066 bytes; its four whole blocks count.
    assert_eq!(counted(dir.path(), "--name=k --ioengine=filestat --nrfiles=3 --size=50k"), (3, 49_152));
    assert_eq!(counted(dir.path(), "--name=j --ioengine=filestat --nrfiles=3"), (3, 12_288));
    assert_eq!(
        counted(dir.path(), "--name=j --ioengine=filestat --nrfiles=3 --filesize=16k --number_ios=2"),
        (2, 32_768)
    );
    assert_eq!(
        counted(dir.path(), "--name=j --ioengine=filestat --nrfiles=3 --filesize=16k --io_size=64k"),
        (4, 65_536)
    );
}

/// Sizes and `rw` do not influence the operations on names.
#[test]
fn names_of_small_files_count_and_names_can_count_as_trims() {
    let programs = || [Program::under_test()].into_iter().chain(Program::peers());
    let lines = [
        ("--ioengine=filecreate --nrfiles=10 --filesize=1k-8k", [10, 0, 0], 10),
        ("--ioengine=filecreate --nrfiles=3 --size=9k", [3, 0, 0], 3),
        ("--ioengine=filecreate --nrfiles=10 --filesize=4k --rw=trim", [0, 0, 10], 10),
        ("--ioengine=filestat --nrfiles=10 --filesize=4k --rw=randtrim", [0, 0, 10], 10),
        ("--ioengine=filedelete --nrfiles=10 --filesize=4k --rw=trim", [0, 0, 10], 0),
    ];
    for (line, ios, left) in lines {
        let engine = line.split([' ', '=']).nth(1).unwrap();
        for program in programs() {
            // (Older releases do not have all of these engines.)
            if program.line(Path::new("/"), &format!("--enghelp={engine}")).code() != 0 {
                continue;
            }
            let dir = scratch();
            let run = program.line(dir.path(), &format!("--name=j --output-format=json {line}"));
            let what = format!("{}: {line}", program.version());
            assert_eq!(Json::parse(&run.ok().stdout).job().ios(), ios, "{what}");
            assert_eq!(files_in(dir.path()).len(), left, "{what}");
        }
    }
    // Files that are smaller than a block; fio does nothing or fails.
    let dir = scratch();
    for engine in ["filecreate", "filestat", "filedelete"] {
        assert_eq!(
            counted(dir.path(), &format!("--name=k --ioengine={engine} --nrfiles=3 --filesize=1k")),
            (3, 3 * 4096)
        );
    }
}

#[test]
fn every_order_visits_every_name() {
    let dir = scratch();
    for order in ["roundrobin", "sequential", "random", "zipf:1.2"] {
        for open in ["1", "3", "40"] {
            let line = format!(
                "--name=j --ioengine=filedelete --nrfiles=40 --filesize=4k --file_service_type={order} --openfiles={open}"
            );
            assert_eq!(counted(dir.path(), &line), (40, 163_840), "{line}");
            assert_eq!(files_in(dir.path()), [], "{line}");
        }
    }
}

/// Repeatable operations are repeated on popular names, as with fio; others are done once per name.
#[test]
fn popular_names_come_again_where_that_can_be() {
    let line = |engine: &str, order: &str, open: u32| {
        format!(
            "--name=j --ioengine={engine} --nrfiles=40 --filesize=4k --file_service_type={order} --openfiles={open}"
        )
    };
    let is_known = |program: &Program| program.line(Path::new("/"), "--enghelp=filestat").code() == 0;
    for program in [Program::under_test()].iter().chain(Program::peers().iter().filter(|peer| is_known(peer)))
    {
        for (order, open) in [("zipf:1.2", 40), ("zipf:1.2", 1), ("pareto:0.3", 40), ("normal:20", 4)] {
            let dir = scratch();
            let line = line("filecreate", order, open);
            let run = program.line(dir.path(), &format!("--output-format=json {line}")).ok();
            let job = Json::parse(&run.stdout);
            let what = format!("{}: {line}", program.version());
            assert_eq!(job.job().ios(), [40, 0, 0], "{what}");
            let made = names(dir.path()).len();
            assert!((2..36).contains(&made), "{what}: {made} files were made");
        }
    }
    for engine in ["dircreate", "filedelete", "dirdelete"] {
        let dir = scratch();
        assert_eq!(counted(dir.path(), &line(engine, "zipf:1.2", 4)), (40, 163_840), "{engine}");
        assert_eq!(names(dir.path()).len(), if engine == "dircreate" { 40 } else { 0 }, "{engine}");
    }
    let dir = scratch();
    let json = "--output-format=json --size=160k --bs=4k";
    for engine in ["filestat", "dirstat"] {
        let line =
            format!("{json} --name={engine} --ioengine={engine} --nrfiles=40 --file_service_type=zipf:1.2");
        let Some((run, calls)) = crate::common::trace::system_calls(
            &Program::under_test(),
            dir.path(),
            "stat,newfstatat",
            &words(&format!("{line} --number_ios=400 --io_size=10m --thread")),
        ) else {
            skip!("strace is not there");
        };
        assert_eq!(Json::parse(&run.ok().stdout).job().ios(), [400, 0, 0], "{engine}");
        let of = |index: u32| calls.matches(&format!("\"{engine}.0.{index}\"")).count();
        let most = (0..40).map(of).max().unwrap_or_default();
        assert!(most > 100, "{engine}: one name is by far the most popular: {most}");
    }
}

/// The separate test of the option `stat_type` of both engines.
#[test]
pub fn the_kind_of_call_decides_about_links() {
    for (stat, makes) in [("filestat", false), ("dirstat", true)] {
        let dir = scratch();
        let there = dir.path().join("there");
        if makes { fs::create_dir(&there) } else { fs::write(&there, [0; 4096]) }.unwrap();
        std::os::unix::fs::symlink("there", dir.path().join("link")).unwrap();
        let line =
            |call: &str| format!("--name=j --ioengine={stat} --filename=link --size=4k --stat_type={call}");
        for call in ["stat", "lstat", "statx"] {
            assert_eq!(counted(dir.path(), &line(call)).0, 1, "{stat} {call}");
        }
        let looked = |call: &str| {
            let (run, calls) = crate::common::trace::system_calls(
                &Program::under_test(),
                dir.path(),
                "stat,lstat,newfstatat,statx",
                &words(&line(call)),
            )?;
            run.ok();
            Some(calls.lines().rfind(|line| line.contains("\"link\"")).unwrap_or_default().to_owned())
        };
        let (Some(plain), Some(itself), Some(extended)) = (looked("stat"), looked("lstat"), looked("statx"))
        else {
            skip!("strace is not there");
        };
        assert!(itself.contains("lstat(") || itself.contains("AT_SYMLINK_NOFOLLOW"), "{itself}");
        assert!(!plain.contains("lstat(") && !plain.contains("NOFOLLOW"), "{plain}");
        assert!(extended.contains("statx("), "{extended}");
    }
}

/// The separate test of the option `uring` of all these engines: many operations are in flight at a time.
#[test]
pub fn names_are_acted_on_through_a_ring() {
    let probe = Program::under_test()
        .line(scratch().path(), "--name=j --ioengine=io_uring --size=4k --rw=write --number_ios=1");
    if !probe.status.success() {
        skip!("io_uring cannot be used here");
    }
    let dir = scratch();
    for mode in ["--thread=0", "--thread=1"] {
        for (engine, left) in [
            ("filecreate", 60),
            ("filestat", 60),
            ("filedelete", 0),
            ("dircreate", 60),
            ("dirstat", 60),
            ("dirdelete", 0),
        ] {
            let line = format!(
                "--name=j {mode} --ioengine={engine} --nrfiles=30 --filesize=8k --numjobs=2 --uring=1 --iodepth=16 \
                 --openfiles=5"
            );
            let run = Program::under_test().line(dir.path(), &format!("--output-format=json {line}")).ok();
            for job in Json::parse(&run.stdout).jobs() {
                assert_eq!((job.ios()[0], job.bytes()[0]), (30, 245_760), "{line}");
                // Unlike synchronous calls, ring commands have a submission latency and use the depth.
                assert_eq!(job.int("read.slat_ns.N") + job.int("read.clat_ns.N"), 60, "{line}");
                assert!(job.float("iodepth_level.1") < 100.0, "{line}");
            }
            assert_eq!(names(dir.path()).len(), left, "{line}");
        }
    }
}

#[test]
fn a_ring_is_used_and_its_errors_are_reported() {
    let dir = scratch();
    let line = "--name=j --ioengine=filestat --nrfiles=9 --filesize=4k --uring=1 --iodepth=4";
    let calls = |line: &str| {
        let calls = "io_uring_enter,stat,lstat,newfstatat";
        crate::common::trace::system_calls(&Program::under_test(), dir.path(), calls, &words(line))
    };
    let Some((run, log)) = calls(line) else { skip!("strace is not there") };
    if run.stderr.contains("io_uring") {
        skip!("io_uring cannot be used here");
    }
    run.ok();
    assert!(log.contains("io_uring_enter("), "{log}");
    let refused = |line: &str, why: &str| Program::under_test().line(dir.path(), line).refused().says(why);
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/inner"), b"").unwrap();
    refused("--name=j --ioengine=dirdelete --filename=d --size=4k --uring=1", "Directory not empty");
    refused("--name=j --ioengine=dircreate --filename=d --size=4k --uring=1", "File exists");
    refused("--name=j --ioengine=filecreate --filename=d --size=4k --uring=1", "Is a directory");
    refused("--name=j --ioengine=filecreate --filename=f --size=4k --uring=2", "uring");
}

#[test]
fn small_files_are_written_and_read_in_one_unit() {
    let dir = scratch();
    let job = |engine: &str, rest: &str| format!("--name=j --ioengine={engine} --nrfiles=5 --bs=3901 {rest}");
    for mode in ["--thread=0", "--thread=1"] {
        assert_eq!(counted(dir.path(), &job("filewrite", &format!("{mode} --filesize=3901"))), (5, 19_505));
        assert!(files_in(dir.path()).iter().all(|(_, size)| *size == 3901));
        assert_eq!(
            counted(dir.path(), &job("fileread", mode)),
            (5, 19_505),
            "they exist, so no size is needed"
        );
    }
    // Several blocks of a file are one unit.
    assert_eq!(
        counted(dir.path(), "--name=k --ioengine=filewrite --nrfiles=3 --bs=4k --filesize=16k"),
        (3, 49_152)
    );
    // A file without so much data is an error; with its size, it would be laid out.
    let short = "--name=j --ioengine=fileread --nrfiles=5 --bs=4k --create_on_open=1";
    Program::under_test().line(dir.path(), short).refused().says("No data available");
    assert_eq!(counted(dir.path(), &format!("{short} --create_on_open=0 --filesize=4k")), (5, 20_480));
    let synced = Program::own()
        .line(dir.path(), "--name=j --ioengine=filewrite --nrfiles=2 --filesize=4k --rw=write --fsync=1")
        .ok();
    assert!(synced.stderr.contains("file_sync=1 syncs it before"), "{synced}");
}

#[test]
fn files_get_other_names_and_second_ones() {
    use std::os::unix::fs::MetadataExt;
    let dir = scratch();
    let job = |engine: &str| format!("--name=j --ioengine={engine} --nrfiles=2 --filesize=4k");
    assert_eq!(counted(dir.path(), &job("filelink")), (2, 8192));
    assert_eq!(names(dir.path()), ["j.0.0", "j.0.0.new", "j.0.1", "j.0.1.new"]);
    let links = |name: &str| fs::metadata(dir.path().join(name)).unwrap().nlink();
    assert_eq!((links("j.0.0"), links("j.0.1.new")), (2, 2));
    Program::under_test().line(dir.path(), &job("filelink")).refused().says("File exists");
    assert_eq!(counted(dir.path(), &format!("{} --new_suffix=.b", job("filerename"))), (2, 8192));
    assert_eq!(names(dir.path()), ["j.0.0.b", "j.0.0.new", "j.0.1.b", "j.0.1.new"]);
    fs::create_dir(dir.path().join("d")).unwrap();
    assert_eq!(counted(dir.path(), &format!("{} --new_directory=d", job("filerename"))), (2, 8192));
    assert_eq!(names(&dir.path().join("d")), ["j.0.0", "j.0.1"]);
    let refused = |line: &str, why: &str| Program::under_test().line(dir.path(), line).refused().says(why);
    for engine in ["filerename", "filelink"] {
        refused(&format!("{} --new_suffix=", job(engine)), "requires a value");
        refused(&format!("{} --new_suffix=/x", job(engine)), "a suffix has no slash");
        refused(&format!("{} --new_directory=none", job(engine)), "No such file or directory");
        refused(&format!("{} --readonly", job(engine)), "--readonly forbids that");
        refused(&format!("--name=j --ioengine={engine} --filename=d --size=4k"), "is not a regular file");
    }
}

/// The separate test of the options of both engines.
#[test]
pub fn attributes_are_set_and_read() {
    let dir = scratch();
    let job =
        |engine: &str, rest: &str| format!("--name=j --ioengine={engine} --nrfiles=2 --filesize=4k {rest}");
    let set = Program::under_test().line(dir.path(), &job("filesetxattr", "--xattr_size=9"));
    if set.output().contains("not supported") {
        skip!("the file system has no extended attributes of users");
    }
    set.ok();
    let value = |name: &str| {
        iolite_os::files::extended_attribute(&dir.path().join("j.0.1"), name, 100)
            .map(|value| String::from_utf8(value).unwrap())
    };
    assert_eq!(value("user.iolite").unwrap(), "j.0.1j.0.");
    assert_eq!(counted(dir.path(), &job("filegetxattr", "")), (2, 8192));
    assert_eq!(counted(dir.path(), &job("filesetxattr", "--xattr_name=user.b --xattr_size=3")), (2, 8192));
    assert_eq!(value("user.b").unwrap(), "j.0");
    assert_eq!(counted(dir.path(), &job("filegetxattr", "--xattr_name=user.b --xattr_size=3")), (2, 8192));
    let refused = |line: &str, why: &str| Program::under_test().line(dir.path(), line).refused().says(why);
    refused(&job("filegetxattr", "--xattr_name=user.none"), "No data available");
    refused(&job("filegetxattr", "--xattr_size=8"), "Numerical result out of range");
    refused(&job("filesetxattr", "--xattr_name=plain"), "a name begins with its namespace");
    refused(&job("filesetxattr", "--xattr_size=0"), "xattr_size");
    refused(&job("filesetxattr", "--readonly"), "--readonly forbids that");
}

/// The separate test of the options of `dirread`.
#[test]
pub fn directories_are_listed() {
    let dir = scratch();
    for (name, size) in [("d/a01", 3901), ("d/b01", 10), ("d/c", 3901), ("e/a", 1)] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![0; size]).unwrap();
    }
    fs::write(dir.path().join("newest"), "").unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1000);
    fs::File::options().write(true).open(dir.path().join("newest")).unwrap().set_modified(later).unwrap();
    let listed = |rest: &str| {
        let line = format!("--name=j --ioengine=dirread --filename=d:e --size=8k {rest}");
        let run = Program::under_test().line(dir.path(), &line).ok();
        let said = run.stdout.lines().find_map(|line| Some(line.split_once("dirread: ")?.1.to_owned()));
        said.unwrap_or_else(|| panic!("{run}"))
    };
    assert_eq!(listed(""), "4 entries");
    assert_eq!(listed("--entry_stat=1"), "4 entries");
    assert_eq!(listed("--entry_name=01"), "4 entries, 2 of them match");
    assert_eq!(listed("--entry_size=3901"), "4 entries, 2 of them match");
    assert_eq!(listed("--entry_size=3901 --entry_name=01"), "4 entries, 1 of them match");
    assert_eq!(listed("--entry_newer=newest"), "4 entries, 0 of them match");
    let refused = |line: &str, why: &str| Program::under_test().line(dir.path(), line).refused().says(why);
    refused("--name=j --ioengine=dirread --filename=d --size=4k --entry_newer=none", "entry_newer");
    refused("--name=j --ioengine=dirread --filename=newest --size=4k", "Not a directory");
    let calls = "statx,newfstatat,getdents64";
    let line =
        |stat| words(&format!("--name=j --ioengine=dirread --filename=d --size=4k --entry_stat={stat}"));
    let seen =
        |stat| crate::common::trace::system_calls(&Program::under_test(), dir.path(), calls, &line(stat));
    let (Some((_, plain)), Some((_, looked))) = (seen(0), seen(1)) else { skip!("strace is not there") };
    assert!(!plain.contains("\"a01\"") && looked.contains("\"a01\""), "{looked}");
}

#[test]
fn files_are_spread_over_a_tree() {
    let dir = scratch();
    let job = |engine: &str, rest: &str| {
        format!(
            "--name=j --ioengine={engine} --filename_format=w$jobnum/f$filenum --filesize=4k --tree_depth=2 --tree_breadth=3 \
             --numjobs=2 {rest}"
        )
    };
    assert_eq!(counted(dir.path(), &job("filewrite", "--nrfiles=20")).0, 40);
    // Thirteen directories; the rest is in the first ones again, also if it is made later.
    assert_eq!(counted(dir.path(), &job("filewrite", "--nrfiles=6 --filenum_first=20")).0, 12);
    let made: Vec<String> = files_in(dir.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(made.len(), 52);
    for name in ["w0/f0", "w0/f13", "w1/t0/f1", "w1/t2/f3", "w0/t0/t0/f4", "w0/t2/t2/f12", "w1/t2/t2/f25"] {
        assert!(made.iter().any(|made| made == name), "{name}: {made:?}");
    }
    assert_eq!(counted(dir.path(), &job("filestat", "--nrfiles=26 --allow_file_create=0")).0, 52);
    assert_eq!(counted(dir.path(), &job("filedelete", "--nrfiles=26 --openfiles=1")).0, 52);
    assert_eq!(files_in(dir.path()), []);
}

#[test]
fn impossible_file_operations_are_refused() {
    let dir = scratch();
    let refused = |line: &str, why: &str| Program::under_test().line(dir.path(), line).refused().says(why);
    refused("--name=j --ioengine=filestat --nrfiles=3", "you need to specify size=");
    refused("--name=j --ioengine=filestat --filesize=4k --allow_file_create=0", "allow_file_create=0");
    refused("--name=j --ioengine=filestat --filesize=4k --readonly", "No such file or directory");
    refused("--name=j --ioengine=filedelete --filesize=4k --readonly", "--readonly forbids that");
    refused("--name=j --ioengine=dirdelete --filesize=4k --readonly", "--readonly forbids that");
    refused(
        "--name=j --ioengine=filecreate --directory=/proc/self --filesize=4k",
        "No such file or directory",
    );
    refused("--name=j --ioengine=filestat --filesize=4k --verify=crc32c --rw=write", "nothing to verify");
    assert_eq!(names(dir.path()), [""; 0], "nothing was made");
    refused("--name=j --ioengine=dircreate --filename=d --loops=2", "File exists");
    refused(
        "--name=j --ioengine=filedelete --filename=d --size=4k",
        "is not a regular file, and is not removed",
    );
    assert_eq!(names(dir.path()), ["d"], "the directory is still there");
    fs::write(dir.path().join("f"), b"precious").unwrap();
    refused("--name=j --ioengine=dirdelete --filename=f --size=4k", "is not a directory, and is not removed");
    refused("--name=j --ioengine=filedelete --filename=/dev/null --size=4k", "is not a regular file");
    fs::write(dir.path().join("d/inner"), b"").unwrap();
    refused("--name=j --ioengine=dirdelete --filename=d --size=4k", "Directory not empty");
    assert_eq!(names(dir.path()), ["d", "f"]);
}

/// Jobs with the same results under all releases of fio that have the engine.
const SAME: &[(&str, &str)] = &[
    ("filecreate", "--nrfiles=20 --filesize=4k --bs=4k --openfiles=1"),
    ("filecreate", "--nrfiles=3"),
    ("filecreate", "--nrfiles=4 --filesize=4k --rw=write --numjobs=2"),
    ("filestat", "--nrfiles=20 --filesize=4k --bs=4k --openfiles=1"),
    ("filestat", "--nrfiles=20 --filesize=4k --stat_type=statx --file_service_type=random"),
    ("filestat", "--nrfiles=4 --filesize=4k --loops=2 --unlink=1"),
    ("filestat", "--nrfiles=4 --filesize=4k --io_size=32k"),
    ("filedelete", "--nrfiles=20 --filesize=4k --bs=4k --openfiles=1"),
    ("filedelete", "--filename=a:b --size=8k"),
    ("dircreate", "--nrfiles=5 --filesize=4k"),
    ("dirstat", "--nrfiles=5 --filesize=4k --openfiles=1"),
    ("dirdelete", "--nrfiles=5 --filesize=4k --numjobs=2"),
    // Opening creates files but no directories, so directories are still created before the run.
    ("filecreate", "--nrfiles=5 --filesize=4k --create_on_open=1"),
    ("dircreate", "--nrfiles=5 --filesize=4k --create_on_open=1"),
    ("dirstat", "--nrfiles=5 --filesize=4k --create_on_open=1"),
    ("dirdelete", "--nrfiles=5 --filesize=4k --create_on_open=1"),
];

#[test]
fn fio_counts_and_leaves_the_same() {
    let (ours, peers) = (Program::under_test(), Program::peers());
    if peers.is_empty() {
        skip!("fio is not installed");
    }
    for peer in peers {
        for (engine, rest) in SAME {
            if peer.line(Path::new("/"), &format!("--enghelp={engine}")).code() != 0 {
                continue;
            }
            let line = format!("--name=j --ioengine={engine} {rest}");
            let seen = [&ours, &peer].map(|program| {
                let dir = scratch();
                let json = program.line(dir.path(), &format!("--output-format=json {line}")).ok();
                let json = Json::parse(&json.stdout);
                let counts: Vec<_> = json.jobs().iter().map(|job| (job.ios(), job.bytes())).collect();
                (counts, names(dir.path()))
            });
            assert_eq!(seen[0], seen[1], "{line} under {}", peer.version());
            let [mine, theirs] = [&ours, &peer].map(|program| {
                let dir = scratch();
                let lines = skeleton(program, &program.line(dir.path(), &line).ok());
                // Whether the disk has statistics for a few files is random. fio omits the latency classes here;
                // Iolite prints them.
                let lines = lines.into_iter().filter(|line| !line.starts_with("  lat ("));
                lines.take_while(|line| !line.starts_with("Disk stats")).collect::<Vec<_>>()
            });
            assert_same(&line, &mine, &theirs);
        }
    }
}

/// Jobs that fio refuses, or that fail under fio.
#[test]
fn fio_fails_where_we_do() {
    let peers = Program::peers();
    if peers.is_empty() {
        skip!("fio is not installed");
    }
    for program in peers.iter().chain([&Program::under_test()]) {
        let dir = scratch();
        for line in [
            "--name=a --ioengine=filestat --nrfiles=3",
            "--name=c --ioengine=filedelete --nrfiles=2 --filesize=4k --loops=2",
            "--name=d --ioengine=filestat --filesize=4k --allow_file_create=0",
            "--name=e --ioengine=filestat --filesize=4k --create_on_open=1",
            "--name=f --ioengine=filedelete --filesize=4k --create_on_open=1",
        ] {
            assert_ne!(program.line(dir.path(), line).code(), 0, "{line} under {}", program.version());
        }
    }
}
