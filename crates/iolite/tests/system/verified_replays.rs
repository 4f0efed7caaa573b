//! Replays that verify their writes: which blocks are read back, which damage is found, and which differences are no
//! damage.

use crate::common::devices::{Loop, image};
use crate::common::program::Finished;
use crate::common::trace::{Call, io_calls};
use crate::common::{Json, Program, peers, scratch, words};
use crate::traces::{READ, WRITE, binary, shell};
use crate::verify::TYPES;
use iolite_testing::{Luck, or_skip, skip};
use iolite_trace::blk::{BlkRecord, ByteOrder};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const JOB: &str = "--name=v --read_iolog=log --replay_no_stall=1";

fn log(dir: &Path, lines: &str) {
    fs::write(dir.join("log"), format!("fio version 3 iolog\n{lines}")).unwrap();
}

/// Writes a log with I/O on one file.
fn log_of(dir: &Path, ios: &[&str]) {
    let ios: String = ios.iter().map(|io| format!("1 f {io}\n")).collect();
    log(dir, &format!("0 f add\n0 f open\n{ios}2 f close\n"));
}

fn run(dir: &Path, more: &str) -> Finished {
    Program::under_test().line(dir, &format!("{JOB} --verify=crc32c {more}"))
}

/// The reads and writes of a successful run.
#[track_caller]
fn ios(dir: &Path, more: &str) -> [u64; 2] {
    let report = run(dir, &format!("--output-format=json {more}")).ok();
    let [reads, writes, _] = Json::parse(&report.stdout).job().ios();
    [reads, writes]
}

/// Overwrites a part of the file.
fn damage(dir: &Path, offset: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(dir.join("f")).unwrap().write_all_at(bytes, offset).unwrap();
}

/// Overlapping blocks of several sizes, which need not be multiples of each other.
const OVERLAPPING: &[&str] = &[
    "write 0 8192",
    "write 4096 4096",
    "write 16384 4096",
    "write 16384 8192",
    "read 0 4096",
    "write 0 4096",
    "write 40960 8192",
    "write 45056 8192",
    "read 16384 8192",
    "write 65536 65536",
    "write 98304 512",
    "write 200704 1536",
    "write 202240 512",
];

/// The calls of a program on the files of the log, which exist before; `None` = tracing is not possible.
fn calls(program: &Program, dir: &Path, line: &str) -> Option<Vec<Call>> {
    let (finished, calls) = io_calls(program, dir, &words(line))?;
    finished.ok();
    Some(calls.into_iter().filter(|call| ["f", "g"].contains(&&*call.file)).collect())
}

#[test]
fn the_same_is_written_and_read_back_as_by_fio() {
    for peer in peers!().into_iter().filter(|peer| !peer.release.misjudges_overlapping_replays) {
        let of_two = "0 f add\n0 g add\n0 f open\n0 g open\n1 g write 0 4096\n1 f write 4096 4096\n1 g write 4096 4096\n\
                  1 g read 0 8192\n1 f write 0 4096\n2 f close\n2 g close\n";
        let overlapping: String = OVERLAPPING.iter().map(|io| format!("1 f {io}\n")).collect();
        let overlapping = format!("0 f add\n0 f open\n{overlapping}2 f close\n");
        for (lines, more) in [
            (&*overlapping, "--verify=pattern --verify_pattern=0xab%o"),
            (&overlapping, "--verify=crc32c"),
            (&overlapping, "--verify=md5 --do_verify=0"),
            (&overlapping, "--verify=xxhash --verify_interval=512 --verify_backlog=2"),
            (of_two, "--verify=pattern --verify_pattern=0xab --verify_backlog=3 --verify_backlog_batch=2"),
            (of_two, "--verify=crc32c --verify_only=1"),
            (of_two, "--verify=meta"),
        ] {
            // If the trace has reads, fio 3.33 rejects its own seeds.
            let has_header = !more.contains("pattern");
            let kept = |line: &&str| !(has_header && line.contains(" read "));
            let lines: String = lines.lines().filter(kept).map(|line| format!("{line}\n")).collect();
            let seen = [&Program::under_test(), &peer].map(|program| {
                let dir = scratch();
                log(dir.path(), &lines);
                for name in ["f", "g"] {
                    File::create(dir.path().join(name)).unwrap().set_len(1 << 20).unwrap();
                }
                if more.contains("verify_only") {
                    program.line(dir.path(), &format!("{JOB} {more} --verify_only=0")).ok();
                }
                calls(program, dir.path(), &format!("{JOB} {more}"))
            });
            let [Some(ours), Some(theirs)] = seen else { skip!("strace may not trace here") };
            assert!(!ours.is_empty(), "{more}");
            assert_eq!(ours, theirs, "{more}");
        }
    }
}

#[test]
fn either_program_reads_what_the_other_s_replay_has_written() {
    for peer in peers!() {
        let ours = Program::under_test();
        let writes = ["write 0 65536", "write 131072 4096", "write 65536 65536", "write 135168 8192"];
        let formats = format!("--verify_header_format={}", peer.release.header);
        for kind in ["crc32c", "md5", "meta", "xxhash", "pattern --verify_pattern=0xab"] {
            for (writer, reader) in [(&ours, &peer), (&peer, &ours)] {
                let dir = scratch();
                log_of(dir.path(), &writes);
                let more = if std::ptr::eq(writer, &ours) { &*formats } else { "" };
                writer.line(dir.path(), &format!("{JOB} --verify={kind} {more}")).ok();
                let job = format!("--name=r --filename=f --verify={kind}");
                reader.line(dir.path(), &format!("{job} --rw=read --bs=4k --size=140k")).ok();
                // A trace that only reads checks all blocks that it reads, whatever their size.
                log_of(dir.path(), &["read 4096 8192", "read 65536 12288", "read 131072 4096"]);
                reader.line(dir.path(), &format!("{JOB} --verify={kind}")).ok();
                if kind == "crc32c" {
                    damage(dir.path(), 66_000, b"x");
                    // fio reports the damage, but its exit status is 0.
                    let damaged = reader.line(dir.path(), &format!("{JOB} --verify={kind}"));
                    damaged.says("verify failed at file f offset 65536, length 4096");
                }
            }
        }
    }
}

#[test]
fn every_type_and_engine_reads_back_the_final_data() {
    for kind in TYPES {
        for more in ["", "--verify_interval=512", "--verify_offset=256", "--verify_header_format=3.33"] {
            let dir = scratch();
            log_of(dir.path(), OVERLAPPING);
            let verify = format!("--verify={kind} {more}");
            assert_eq!(ios(dir.path(), &verify), [9, 11], "{verify}");
            assert_eq!(ios(dir.path(), &format!("{verify} --verify_only")), [7, 0], "{verify}");
        }
    }
    for engine in ["sync", "pvsync2", "mmap", "libaio", "io_uring", "posixaio", "null"] {
        for more in ["", "--iodepth=8", "--iodepth=4 --verify_async=2", "--loops=3", "--thread"] {
            let dir = scratch();
            log_of(dir.path(), OVERLAPPING);
            // Some engines cannot extend files.
            File::create(dir.path().join("f")).unwrap().set_len(1 << 20).unwrap();
            let times = if more.contains("loops") { 3 } else { 1 };
            assert_eq!(
                ios(dir.path(), &format!("--ioengine={engine} {more}")),
                [9 * times, 11 * times],
                "{engine} {more}"
            );
        }
    }
}

#[test]
fn damage_during_a_replay_is_found() {
    // The trace itself reads the damaged block alone, in a larger read, or in two blocks; or it is read back at the
    // end.
    let late =
        |io: &str| format!("0 f add\n0 f open\n1 f write 0 4096\n2 f write 4096 4096\n3000000 f {io}\n");
    for (io, more, times) in [
        ("read 0 4096", "", [2, 1]),
        ("read 0 16384", "", [2, 2]),
        ("read 0 8192", "--ioengine=io_uring --iodepth=4", [2, 2]),
        ("read 4096 4096", "--verify_async=2 --verify_fatal=1", [0, 1]),
        ("read 4096 8192", "--read_iolog_chunked=1 --verify_dump=1", [1, 2]),
        ("read 1024 8192", "", [1, 2]),
        ("sync 0 0", "", [1, 1]),
        ("read 0 4096", "--verify_backlog=8", [2, 1]),
    ] {
        let dir = scratch();
        log(dir.path(), &late(io));
        fs::write(dir.path().join("f"), vec![0; 1 << 16]).unwrap();
        let line = format!("--name=v --read_iolog=log --verify=crc32c --eta=never {more}");
        let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
        let stamped = |path: &Path| fs::read(path).unwrap()[4096] != 0;
        running.wait_until("its writes", |_| stamped(&dir.path().join("f")));
        damage(dir.path(), 100, b"damage");
        damage(dir.path(), 6000, b"damage");
        let run = running.wait().refused();
        let told = ["0", "4096"].map(|offset| {
            let line = format!("crc32c: verify failed at file f offset {offset}, length 4096");
            run.stderr.matches(&line).count()
        });
        assert_eq!(told, times, "{io} {more}: {run}");
        let dumped = fs::read(dir.path().join("f.4096.received"));
        assert!(!more.contains("dump") || dumped.is_ok_and(|bytes| &bytes[1904..1910] == b"damage"));
    }
}

#[test]
fn data_not_written_by_the_replay_is_not_checked() {
    let dir = scratch();
    fs::write(dir.path().join("f"), vec![7; 1 << 18]).unwrap();
    // Reads of earlier content, of parts of blocks, of more than a block, and of partly overwritten blocks.
    let ios = [
        "read 0 4096",
        "write 0 16384",
        "read 4096 4096",
        "write 8192 4096",
        "read 0 16384",
        "read 0 65536",
        "write 10240 8192",
        "read 8192 4096",
        "write 131072 512",
        "read 130560 2048",
    ];
    log_of(dir.path(), &ios);
    for more in
        ["", "--iodepth=16 --ioengine=io_uring", "--read_iolog_chunked=1", "--verify_backlog=1", "--loops=2"]
    {
        run(dir.path(), more).ok();
    }
}

#[test]
fn blocks_trimmed_by_the_trace_are_not_checked() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "image", 1 << 20)));
    let ios = [
        "write 0 8192",
        "write 8192 8192",
        "trim 4096 4096",
        "read 0 8192",
        "write 65536 4096",
        "trim 65536 4096",
        "write 65536 4096",
    ];
    log_of(dir.path(), &ios);
    let redirected = format!("--replay_redirect={}", device.path);
    for more in ["", "--iodepth=8 --ioengine=libaio", "--verify_backlog=1", "--read_iolog_chunked=1"] {
        let reads = if more.contains("backlog") { 5 } else { 3 };
        assert_eq!(ios_of_three(dir.path(), &format!("{redirected} {more}")), [reads, 4, 2], "{more}");
    }
    run(dir.path(), &format!("{redirected} --verify_only")).ok();
    run(dir.path(), &format!("{redirected} --trim_percentage=50")).refused().says("trim_percentage");
}

/// The reads, writes and trims of a successful run.
#[track_caller]
fn ios_of_three(dir: &Path, more: &str) -> [u64; 3] {
    Json::parse(&run(dir, &format!("--output-format=json {more}")).ok().stdout).job().ios()
}

#[test]
fn a_trace_that_can_be_read_only_once_is_verified_as_well() {
    let dir = scratch();
    log_of(dir.path(), OVERLAPPING);
    for chunked in ["", "--read_iolog_chunked=1"] {
        let line = format!("--name=v --verify=md5 --output-format=json --read_iolog=- {chunked}");
        let finished = shell(dir.path(), "(head -c 90 log; sleep 0.1; tail -c +91 log)", &line).ok();
        assert_eq!(Json::parse(&finished.stdout).job().ios(), [9, 11, 0], "{chunked}");
        let again = shell(dir.path(), "cat log", &format!("{line} --verify_only")).ok();
        assert_eq!(Json::parse(&again.stdout).job().ios(), [7, 0, 0], "{chunked}");
    }
    damage(dir.path(), 200_800, b"damage");
    shell(dir.path(), "cat log", "--name=v --verify=md5 --read_iolog=- --verify_only")
        .refused()
        .says("md5: verify failed");
}

#[test]
fn block_traces_are_verified() {
    let dir = scratch();
    let events = [
        (0, 8, 8192, WRITE),
        (1000, 16, 4096, READ),
        (2000, 16, 4096, WRITE),
        (3000, 0, 4096, READ),
        (4000, 100, 512, WRITE),
    ];
    binary(&dir.path().join("log"), ByteOrder::Big, BlkRecord::device_number(4000, 1), &events);
    File::create(dir.path().join("f")).unwrap().set_len(1 << 20).unwrap();
    assert_eq!(ios(dir.path(), "--replay_redirect=f"), [4, 3]);
    damage(dir.path(), 9000, b"damage");
    run(dir.path(), "--replay_redirect=f --verify_only")
        .refused()
        .says("offset 8192, length 4096 (requested block: offset=8192, length=4096");
    // Headers contain the offsets of the replay, not of the trace.
    assert_eq!(ios(dir.path(), "--replay_redirect=f --replay_scale=3 --replay_align=512"), [4, 3]);
}

#[test]
fn clones_that_replay_to_the_same_file_take_turns() {
    let dir = scratch();
    log_of(dir.path(), OVERLAPPING);
    fs::copy(dir.path().join("log"), dir.path().join("a")).unwrap();
    log_of(dir.path(), &["write 2048 8192", "read 0 16384", "write 16384 2048", "write 98304 65536"]);
    for more in [
        "--iodepth=4 --ioengine=io_uring",
        "--thread --loops=20",
        "--verify_backlog=3",
        "--time_based --runtime=1",
    ] {
        let line =
            format!("--name=v --read_iolog=a:log --numjobs=4 --replay_no_stall=1 --verify=crc32c {more}");
        Program::under_test().line(dir.path(), &line).ok();
    }
    // Before the run, it is unknown which clone wrote last.
    let line = "--name=v --read_iolog=a:log --numjobs=2 --verify=crc32c --verify_only";
    Program::under_test().line(dir.path(), line).refused().says("verify_only: another clone wrote to f");
    let line = "--name=v --read_iolog=a:log --numjobs=2 --verify=crc32c --read_iolog_chunked=1";
    Program::under_test().line(dir.path(), line).refused().says("leave read_iolog_chunked out");
}

#[test]
fn replays_that_cannot_be_verified_are_refused() {
    let dir = scratch();
    log_of(dir.path(), &["write 0 4096", "write 8192 32", "write 8192 64"]);
    run(dir.path(), "").refused().says("log:5: intervals of 32 bytes are too small for verify=crc32c");
    run(dir.path(), "--read_iolog_chunked=1")
        .refused()
        .says("a write of 32 bytes at offset 8192 of f: intervals");
    let small_intervals = "--verify=sha512 --verify_interval=96";
    log_of(dir.path(), &["write 0 4096", "write 8192 12288"]);
    run(dir.path(), small_intervals)
        .refused()
        .says("log: intervals of 96 bytes are too small for verify=sha512");
    run(dir.path(), &format!("{small_intervals} --read_iolog_chunked=1"))
        .refused()
        .says("a write of 12288 bytes at offset 8192 of f: intervals of 96 bytes");
    log_of(dir.path(), &["write 0 4096", "write 8192 8192"]);
    run(dir.path(), small_intervals).ok();
    log_of(dir.path(), &["write 0 4096", "read 0 4096"]);
    run(dir.path(), "--verify=pattern").refused().says("needs a verify_pattern");
    let chunked = "--read_iolog_chunked=1";
    run(dir.path(), &format!("{chunked} --verify_state_load=1 --verify_only"))
        .refused()
        .says("leave read_iolog_chunked out");
    run(dir.path(), &format!("{chunked} --verify_state_save=1"))
        .refused()
        .says("leave read_iolog_chunked out");
    std::os::unix::fs::symlink("f", dir.path().join("g")).unwrap();
    for alias in ["./f", "g"] {
        log(
            dir.path(),
            &format!(
                "0 f add\n0 {alias} add\n0 f open\n0 {alias} open\n1 f write 0 4096\n1 {alias} write 0 512\n"
            ),
        );
        for more in ["", chunked] {
            run(dir.path(), more)
                .refused()
                .says(&format!("f and {alias} are the same file, and verify takes it for two"));
        }
    }
    // A prepared trace becomes invalid when the trace changes.
    log(dir.path(), "0 f add\n0 f open\n1 f write 0 4096\n");
    fs::write(dir.path().join("more"), "1 f write 1048576 512\n").unwrap();
    let became = ["--exec_prerun=cat more >> log", "--name=v", "--read_iolog=log", "--verify=crc32c"];
    let changed = Program::under_test().run(dir.path(), became).refused();
    changed.says(
        "log: it has changed since it was looked through: there was no write of 512 bytes at offset 1048576",
    );
}

/// The run is refused, because the trace is read while files are written.
#[test]
fn no_trace_is_written_to() {
    let dir = scratch();
    let path = dir.path().join("log");
    log_of(dir.path(), &["write 0 4096"]);
    let own = fs::read_to_string(&path).unwrap().replace(" f ", " log ");
    fs::hard_link(&path, dir.path().join("alias")).unwrap();
    let is_refused = |trace: &str, line: &str| {
        fs::write(&path, trace).unwrap();
        let refused = Program::under_test().line(dir.path(), &format!("{JOB} {line}")).refused();
        assert_eq!(fs::read_to_string(&path).unwrap(), trace, "{line}");
        refused
    };
    let other = own.replace(" log ", " f ");
    for more in ["", "--verify=crc32c"] {
        for (trace, line) in [
            (&own, ""),
            (&own.replace("write", "read"), ""),
            (&other, "--replay_redirect=alias"),
            (&other, "--name=w --filename=./log --rw=write --size=4k"),
        ] {
            let refused = is_refused(trace, &format!("{more} {line}"));
            let refused =
                refused.says("would be changed, and it is the trace that is replayed (read_iolog=log)");
            assert!(refused.stdout.is_empty() && !dir.path().join("f").exists(), "{line}: {refused}");
        }
        is_refused(&own, &format!("{more} --read_iolog_chunked=1"))
            .says("would change data on log, but it is the trace that is replayed");
    }
    is_refused(&other, "--write_iolog=./log --ioengine=null")
        .says("write_iolog=./log: the log would go into the trace that is replayed (read_iolog=log)");
    fs::write(&path, &own).unwrap();
    // The replay is accepted with the null engine, or if the trace is only read.
    Program::under_test().line(dir.path(), &format!("{JOB} --ioengine=null")).ok();
    fs::write(&path, own.replace("write 0 4096", "read 0 16")).unwrap();
    for more in ["", "--read_iolog_chunked=1"] {
        Program::under_test().line(dir.path(), &format!("{JOB} {more}")).ok();
    }
}

#[test]
fn little_is_kept_of_a_few_writes_far_apart() {
    let dir = scratch();
    let history = |more: &str| run(dir.path(), &format!("--ioengine=null --debug=verify {more}")).ok();
    log_of(dir.path(), &["write 0 512", "write 1099511627776 512", "read 1099511627776 512"]);
    history("").says("history of writes: about 60 bytes per write that stands");
    // Without verify_state_save, no such state is written either.
    let written = run(dir.path(), "--replay_skip=read").ok();
    written.says("the few writes of the trace are so far apart").says("verify_state_save=1 insists on it");
    log_of(dir.path(), &["write 65536 4096"; 10]);
    history("").says("history of writes: 4 bytes per block, at most 68 bytes");
    history("--read_iolog_chunked=1").says("history of writes: about 60 bytes per write that stands");
}

#[test]
fn a_killed_replay_is_checked_by_its_state() {
    let mut luck = Luck::new();
    let writes: Vec<String> = (0..2000u64)
        .map(|number| {
            let place = number.wrapping_mul(2_654_435_761) % 500;
            let sync = if number % 50 == 49 { "\n1 f datasync 0 0" } else { "" };
            format!("write {} {}{sync}", place * 4096, (1 + number % 3) * 4096)
        })
        .collect();
    for (job, check) in [
        ("", ""),
        ("--ioengine=libaio --iodepth=8", "--iodepth=8"),
        ("--ioengine=io_uring --iodepth=4 --verify_backlog=64", "--verify_policy=fsynced"),
    ] {
        let mut checked = 0;
        // On a busy machine, each run may be killed before its first write.
        for round in 0.. {
            if round >= 3 && checked > 0 {
                break;
            }
            assert!(round < 50, "{job}: nothing was there to check");
            let dir = scratch();
            log_of(dir.path(), &writes.iter().map(String::as_str).collect::<Vec<_>>());
            let line = format!("{JOB} --verify=crc32c --loops=1000 --eta=never {job}");
            let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
            let state = dir.path().join("local-v-0-verify.state");
            running.wait_until("its state", |_| state.exists());
            std::thread::sleep(Duration::from_millis(luck.below(500)));
            running.signal(libc::SIGKILL);
            running.wait();
            let more = format!("--verify_state_load=1 --verify_only --output-format=json {check}");
            checked += Json::parse(&run(dir.path(), &more).ok().stdout).job().ios()[0];
        }
    }
}
