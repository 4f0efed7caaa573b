//! Reading back writes: how many, in which order, when, and the handling of wrong data.

use crate::common::program::Finished;
use crate::common::trace::{io_calls, system_calls};
use crate::common::{Json, Program, peers, scratch, words};
use iolite_testing::skip;
use std::fs;
use std::path::Path;

const BASE: &str = "--name=v --filename=data --size=256k --bs=4k --output-format=json";

/// Every verification type, with the options that it needs.
pub const TYPES: &[&str] = &[
    "md5",
    "crc64",
    "crc32",
    "crc32c",
    "crc32c-intel",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern --verify_pattern=0xdeadbeef%o\"abc\"-12",
    "pattern_hdr --verify_pattern=12345",
    "null",
];

const ENGINES: &[&str] =
    &["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring", "posixaio", "null"];

/// The error and the I/Os and bytes per direction of each job.
fn counts(run: &Finished) -> Vec<(u64, [u64; 3], [u64; 3])> {
    let json = Json::parse(&run.stdout);
    json.jobs().iter().map(|job| (job.int("error"), job.ios(), job.bytes())).collect()
}

/// Runs a job in an existing directory.
fn run(dir: &Path, args: &str) -> Finished {
    Program::under_test().line(dir, &format!("{BASE} {args}"))
}

/// The I/Os of the only job.
#[track_caller]
fn ios(run: Finished) -> [u64; 3] {
    counts(&run.ok())[0].1
}

/// Changes one byte of the file.
fn damage(dir: &Path, offset: usize) {
    let path = dir.join("data");
    let mut bytes = fs::read(&path).unwrap();
    bytes[offset] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn every_type_in_one_run_and_in_a_later_one() {
    for kind in TYPES {
        let dir = scratch();
        for shape in ["", "--verify_interval=1k", "--verify_offset=512", "--verify_header_format=3.33"] {
            let job = format!("--verify={kind} {shape}");
            assert_eq!(ios(run(dir.path(), &format!("--rw=randwrite {job}"))), [64, 64, 0], "{job}");
            for later in ["--rw=read", "--rw=randread", "--rw=randwrite --verify_only"] {
                assert_eq!(ios(run(dir.path(), &format!("{later} {job}"))), [64, 0, 0], "{later} {job}");
            }
        }
    }
}

#[test]
pub fn every_engine_at_every_depth() {
    for engine in ENGINES {
        for depth in ["--iodepth=1", "--iodepth=16", "--iodepth=7 --verify_async=2"] {
            for rw in ["--rw=write", "--rw=randwrite --norandommap", "--rw=randwrite --verify_backlog=10"] {
                let dir = scratch();
                let job = format!("--verify=crc32c --ioengine={engine} {depth} {rw}");
                let [reads, writes, _] = ios(run(dir.path(), &job));
                assert_eq!(writes, 64, "{job}");
                assert!(
                    reads == 64 || (rw.contains("norandommap") && (20..64).contains(&reads)),
                    "{job}: {reads}"
                );
                if *engine != "null" && !rw.contains("norandommap") {
                    assert_eq!(ios(run(dir.path(), "--rw=read --verify=crc32c")), [64, 0, 0], "{job}");
                }
            }
        }
    }
}

/// I/Os and bytes of both directions are the same as with fio.
#[test]
pub fn counts_are_those_of_fio() {
    for peer in peers!() {
        for line in [
            "--rw=write --verify=crc32c",
            "--rw=randwrite --verify=md5",
            "--rw=randwrite --verify=crc32c --do_verify=0",
            "--rw=write --verify=crc32c --loops=2",
            "--rw=randwrite --verify=crc32c --loops=3",
            "--rw=write --verify=crc32c --verify_backlog=5",
            "--rw=randwrite --verify=crc32c --verify_backlog=4 --verify_backlog_batch=2",
            "--rw=randwrite --verify=crc32c --verify_backlog=4 --verify_backlog_batch=8",
            "--rw=randwrite --verify=crc32c --experimental_verify=1",
            "--rw=randwrite --verify=crc32c --io_size=32k",
            "--rw=write --verify=crc32c --number_ios=5",
            "--rw=randwrite --verify=crc32c --verify_async=2",
            "--rw=randwrite --verify=crc32c --verify_async=2 --iodepth=8 --ioengine=libaio",
            "--rw=write --verify=crc32c --verify_interval=1k",
            "--rw=write --verify=crc32c --verify_interval=3000",
            "--rw=write --verify=crc32c --verify_offset=1000",
            "--rw=write --verify=crc32c --bs=4k,8k",
            "--rw=randwrite --verify=crc32c --random_generator=lfsr",
            "--rw=write:4k --verify=crc32c",
            "--rw=write --verify=crc32c --end_fsync=1 --fsync=4",
            "--rw=randwrite --verify=pattern --verify_pattern=0xaa%o",
            "--rw=write --verify_pattern=0xab",
            "--rw=write --verify=crc32c --ioengine=mmap",
            "--rw=write --verify=crc32c --ioengine=null",
            "--rw=randwrite --verify=null",
            "--rw=randwrite --verify=meta",
            "--rw=randwrite --verify=sha3-256 --ioengine=io_uring --iodepth=16",
            "--rw=randwrite --verify=xxhash --ioengine=posixaio --iodepth=16",
            "--rw=randwrite --verify=crc64 --ioengine=pvsync2 --direct=1",
            "--rw=write --verify=crc32c --numjobs=2 --stonewall",
            "--rw=write --verify=crc32c --runtime=1 --rate_iops=10",
            "--rw=randwrite --verify=crc32c --time_based --runtime=1 --rate_iops=64 --verify_backlog=4",
            "--rw=write --verify=crc32c --nrfiles=4 --openfiles=2 --filename_format=f.$filenum --filename=",
        ] {
            if line.contains("--numjobs=2") && peer.release.misjudges_later_clones {
                continue;
            }
            // (An empty filename is not a filename; the last case is about several files.)
            let line = line.trim_end_matches(" --filename=");
            let base =
                if line.contains("nrfiles") { BASE.replace("--filename=data ", "") } else { BASE.into() };
            let (ours, theirs) = (scratch(), scratch());
            let args = format!("{base} {line}");
            let ours = counts(&Program::under_test().line(ours.path(), &args).ok());
            let theirs = counts(&peer.line(theirs.path(), &args).ok());
            if line.contains("rate_iops") {
                // How much is written depends on the machine, up to the limit of the rate. Either all of it is read
                // back or nothing.
                let most = if line.contains("rate_iops=64") { 65 } else { 11 };
                for counts in [&ours, &theirs] {
                    assert!((1..=most).contains(&counts[0].1[1]), "{line}: {counts:?}");
                }
                let [[our_reads, our_writes, _], [their_reads, ..]] =
                    [&ours, &theirs].map(|counts| counts[0].1);
                assert_eq!(our_reads == 0, their_reads == 0, "{line}: {ours:?} {theirs:?}");
                assert!([0, our_writes].contains(&our_reads), "{line}: {ours:?}");
            } else {
                assert_eq!(ours, theirs, "{line}");
            }
        }
    }
}

/// Files that were closed during the job are flushed as well.
#[test]
fn every_file_is_flushed_before_it_is_read_back() {
    let dir = scratch();
    let line = words(
        "--name=v --size=64k --rw=write --nrfiles=4 --openfiles=2 --verify=crc32c --create_serialize=1",
    );
    Program::under_test().run(dir.path(), line.iter().map(String::as_str).chain(["--create_only=1"])).ok();
    let Some((run, log)) = system_calls(&Program::under_test(), dir.path(), "fsync,pread64", &line) else {
        skip!("strace may not trace here")
    };
    run.ok();
    for file in 0..4 {
        let calls: Vec<&str> = log.lines().filter(|call| call.contains(&format!("v.0.{file}>"))).collect();
        let flushed = calls.iter().position(|call| call.contains("fsync("));
        let read = calls.iter().position(|call| call.contains("pread64(")).expect("it is read back");
        assert!(flushed.is_some_and(|flushed| flushed < read), "{file}: {log}");
    }
}

/// As in fio, blocks are read back in the order of the writes, or sorted by offset if blocks may be rewritten.
#[test]
fn blocks_are_read_back_in_write_order_or_sorted() {
    let dir = scratch();
    for (args, sorted) in [
        ("--rw=write --verify=crc32c", false),
        ("--rw=randwrite --verify=crc32c", false),
        ("--rw=randwrite --verify=crc32c --bsrange=4k-16k", false),
        ("--rw=randwrite --verify=crc32c --norandommap", true),
        ("--rw=randwrite --verify=crc32c --random_distribution=zipf:1.2", true),
        ("--rw=randwrite --verify=crc32c --percentage_random=50", true),
    ] {
        let Some((finished, calls)) =
            io_calls(&Program::under_test(), dir.path(), &words(&format!("{BASE} {args}")))
        else {
            skip!("no strace");
        };
        finished.ok();
        let of = |name: &str| -> Vec<(u64, u64)> {
            calls.iter().filter(|call| call.name == name).map(|call| (call.offset, call.length)).collect()
        };
        let (mut writes, reads) = (of("pwrite64"), of("pread64"));
        if sorted {
            writes.sort_unstable();
            writes.dedup();
        }
        assert_eq!(reads, writes, "{args}");
    }
}

/// With any workload, the last write to a block counts.
#[test]
fn rewritten_blocks_are_those_of_the_last_write() {
    for args in [
        "--rw=randwrite --norandommap --io_size=2m",
        "--rw=randwrite --norandommap --bsrange=1k-16k --io_size=2m",
        "--rw=randwrite --norandommap --bssplit=512/30:4k/40:12k/30 --io_size=2m",
        "--rw=randwrite --norandommap --bsrange=1000-9000 --bs_unaligned --io_size=1m",
        "--rw=randwrite --io_size=1m",
        "--rw=write --io_size=1m",
        "--rw=randwrite --random_distribution=zipf:1.1 --io_size=1m",
        "--rw=randwrite:4 --io_size=1m",
        "--rw=write:2k --io_size=1m",
        "--rw=write:-8k --io_size=1m",
        "--rw=randwrite --loops=3 --norandommap",
        "--rw=randwrite --loops=3 --randrepeat=0",
        "--rw=randwrite --percentage_random=40 --io_size=1m",
        "--rw=randwrite --random_generator=lfsr --bsrange=4k-12k",
        "--rw=randwrite --time_based --runtime=1 --rate_iops=500",
        "--rw=randwrite --time_based --runtime=1 --rate_iops=500 --verify_backlog=50",
        "--rw=randrw --norandommap --io_size=2m",
        "--rw=randrw --rwmixread=30 --rate_iops=400,400 --io_size=1m",
        "--rw=randrw --verify_backlog=8 --norandommap --io_size=1m",
        "--rw=write --zonemode=strided --zonesize=32k --zoneskip=32k --io_size=512k",
        "--rw=randwrite --nrfiles=5 --norandommap --io_size=1m --filename_format=f.$filenum",
        "--rw=write --ramp_time=300ms --rate_iops=100",
    ] {
        for how in ["", "--ioengine=libaio --iodepth=16", "--ioengine=io_uring --iodepth=8 --verify_async=2"]
        {
            let dir = scratch();
            let base =
                if args.contains("nrfiles") { BASE.replace("--filename=data ", "") } else { BASE.into() };
            let line = format!("{base} --verify=crc32c {args} {how}");
            let run = Program::under_test().line(dir.path(), &line).ok();
            let [reads, writes, _] = counts(&run)[0].1;
            assert!(reads > 0 && writes > 0, "{line}: {reads} {writes}");
        }
    }
}

#[test]
fn a_later_run_knows_what_was_written() {
    for args in [
        "--rw=randwrite --norandommap",
        "--rw=randwrite --norandommap --bsrange=1k-16k",
        "--rw=randwrite --loops=3",
        "--rw=randrw --norandommap",
        "--rw=randwrite --random_distribution=zipf:1.2",
        "--rw=randwrite --number_ios=20",
    ] {
        let dir = scratch();
        let [_, writes, _] = ios(run(dir.path(), &format!("--verify=sha256 {args} --do_verify=0")));
        let before = fs::read(dir.path().join("data")).unwrap();
        let [reads, none, _] = ios(run(dir.path(), &format!("--verify=sha256 {args} --verify_only")));
        assert_eq!(none, 0, "{args}");
        assert!(reads > 0 && reads <= writes, "{args}: {reads} of {writes}");
        assert!(before == fs::read(dir.path().join("data")).unwrap(), "{args}: nothing is written");
        // The sequence of writes is known, so an older write is not accepted in place of the last one.
        let path = dir.path().join("data");
        assert_eq!(ios(run(dir.path(), &format!("--verify=sha256 {args} --do_verify=0")))[1], writes);
        fs::copy(&path, dir.path().join("copy")).unwrap();
    }
    let dir = scratch();
    let missing = run(dir.path(), "--rw=write --verify=md5 --verify_only").refused();
    assert!(!dir.path().join("data").exists(), "{missing}: nothing is made");
}

/// The verifying job may have another number than the writing job: a single section, a job behind the writer, a clone's
/// file. Data of an earlier pass is still found if the seeds are those of this job.
#[test]
fn the_number_of_the_job_that_wrote_does_not_matter() {
    for rw in ["write", "randwrite"] {
        let dir = scratch();
        let run = |line: &str| Program::under_test().line(dir.path(), line);
        let job = format!("--size=256k --bs=4k --rw={rw} --verify=crc32c");
        run(&format!(
            "--name=a --filename=fa {job} --do_verify=0 --name=b --filename=fb {job} --do_verify=0"
        ))
        .ok();
        let text = format!("[global]\nverify_only\n{}\n", job.replace("--", "").replace(' ', "\n"));
        fs::write(dir.path().join("j.fio"), format!("{text}[a]\nfilename=fa\n[b]\nfilename=fb\n")).unwrap();
        run("j.fio").ok();
        run("j.fio --section=b").ok();
        run(&format!(
            "--name=w --filename=f {job} --do_verify=0 --name=v --stonewall --filename=f {job} --verify_only"
        ))
        .ok();
        run(&format!("--name=j {job} --numjobs=2 --do_verify=0")).ok();
        run(&format!("--name=v --filename=j.1.0 {job} --verify_only")).ok();
        let insists = "--verify_only --verify_header_seed=1";
        run(&format!("--name=v --filename=j.1.0 {job} {insists}")).refused().says("verify: bad header");
        // Wrong data is found, whichever job wrote it.
        let path = dir.path().join("j.1.0");
        let mut bytes = fs::read(&path).unwrap();
        bytes[9000] ^= 4;
        fs::write(&path, bytes).unwrap();
        let wrong = run(&format!("--name=v --filename=j.1.0 {job} --verify_only")).refused();
        wrong.says("a bit flip: bit 2 of the byte at offset 9000");
        let first = fs::read(dir.path().join("fa")).unwrap();
        run(&format!("--name=a --filename=fa {job} --do_verify=0 --loops=2")).ok();
        let mut second = fs::read(dir.path().join("fa")).unwrap();
        second[4096..8192].copy_from_slice(&first[4096..8192]);
        fs::write(dir.path().join("fa"), second).unwrap();
        let lost = run(&format!("--name=a --filename=fa {job} --loops=2 --verify_only")).refused();
        lost.says("an older generation: write ");
    }
}

/// A section alone has the same I/Os as in the whole job file, even if the places of its writes depend on its seed.
#[test]
fn a_section_alone_knows_what_it_wrote_among_others() {
    let dir = scratch();
    let run = |line: &str| Program::under_test().line(dir.path(), line);
    let jobs = "[global]\nsize=256k\nbs=4k\nrw=randwrite\nio_size=64k\nverify=crc32c\n\
                [a]\nfilename=fa\nnumjobs=3\n[b]\nfilename=fb\n";
    fs::write(dir.path().join("j.fio"), jobs).unwrap();
    run("--do_verify=0 j.fio").ok();
    run("--verify_only j.fio --section=b").ok();
    run("--verify_only --verify_header_seed=1 j.fio --section=b").ok();
    run("--verify_only --verify_state_load=1 j.fio --section=b").ok();
    // If the job has another number, it checks other places, and the message explains this.
    fs::write(dir.path().join("k.fio"), jobs.replace("numjobs=3", "numjobs=1")).unwrap();
    run("--verify_only k.fio --section=b").refused().says("zeros").says(
        "b: no block has a seed of this job (number 2), and some are of job 4: the places of this workload's writes depend on its seed",
    );
}

/// Until a block with a seed of the job is found, blocks with other seeds are accepted, because the job's number may
/// have changed. After that, the accepted blocks are checked again.
#[test]
fn blocks_accepted_before_the_first_own_block_are_rechecked() {
    for rw in ["--rw=write", "--rw=randwrite", "--rw=randwrite --norandommap --io_size=4m"] {
        let dir = scratch();
        let path = dir.path().join("data");
        let write = |more: &str| {
            run(dir.path(), &format!("{rw} --verify=crc32c --do_verify=0 {more}")).ok();
            fs::read(&path).unwrap()
        };
        let (older, newer) = (write("--randseed=5"), write(""));
        for how in ["", "--verify_header_format=3.33", "--ioengine=libaio --iodepth=8 --verify_async=2"] {
            let check = |bytes: &[u8]| {
                fs::write(&path, bytes).unwrap();
                run(dir.path(), &format!("{rw} --verify=crc32c --verify_only {how}"))
            };
            check(&newer).ok();
            check(&older).ok();
            // One block is the job's own, and another one belongs to no job.
            for own in [0, 17, 63] {
                let mut mixed = older.clone();
                mixed[own * 4096..][..4096].copy_from_slice(&newer[own * 4096..][..4096]);
                mixed[40 * 4096..][..4096].fill(0);
                let run = check(&mixed).refused();
                assert_eq!(run.stderr.matches("\nverify: bad ").count() + 1, 63, "{rw} {how} {own}: {run}");
                assert_eq!(run.stderr.matches("looks like: zeros").count(), 1, "{rw} {how} {own}: {run}");
            }
        }
    }
}

/// With an offset modifier, the places of writes must not depend on the size of the file, because it grows.
#[test]
fn skipped_places_do_not_depend_on_the_file_length() {
    for args in [
        "--rw=write:8k --size=60k --numjobs=2 --offset_increment=60k",
        "--rw=write:8k --size=60k",
        "--rw=rw:8k --size=60k",
        "--rw=write:-12k --size=60k --numjobs=3 --offset_increment=60k",
        "--rw=write:8k --size=60k --offset=4k",
        "--rw=randwrite:4 --size=60k --numjobs=2 --offset_increment=60k",
        "--rw=randwrite:4 --rw_sequencer=identical --size=60k --numjobs=2 --offset_increment=60k",
        "--rw=write --zonemode=strided --zonesize=8k --zoneskip=8k --size=60k --numjobs=2 --offset_increment=60k",
    ] {
        let dir = scratch();
        let job = format!("{args} --verify=crc32c --verify_header_seed=1");
        run(dir.path(), &format!("{job} --do_verify=0")).ok();
        run(dir.path(), &format!("{job} --verify_only")).ok();
        fs::File::options().write(true).open(dir.path().join("data")).unwrap().set_len(1 << 20).unwrap();
        run(dir.path(), &format!("{job} --verify_only")).ok();
    }
}

/// Each interval has a separate message, in the format that other tools parse.
#[test]
fn every_wrong_interval_is_reported() {
    let dir = scratch();
    let job = "--bs=64k --verify_interval=4k --verify=crc32c";
    run(dir.path(), &format!("--rw=write {job}")).ok();
    let wrong = [3, 7, 9, 16, 17, 60];
    wrong.iter().for_each(|interval| damage(dir.path(), interval * 4096 + 2000));
    for how in ["--rw=read", "--rw=write --verify_only", "--rw=read --verify_async=2"] {
        let run = run(dir.path(), &format!("{how} {job} --verify_dump=1")).refused();
        let mut text = run.stderr.as_str();
        for interval in wrong {
            let (at, block) = (interval * 4096, interval / 16 * 65536);
            let headline = format!(
                "\ncrc32c: verify failed at file data offset {at}, length 4096 \
                 (requested block: offset={block}, length=65536, flags=8)\n       Expected CRC: "
            );
            let lines = format!("\n{text}");
            let start = lines.find(&headline).unwrap_or_else(|| panic!("{headline} in {run}"));
            assert!(lines[start + headline.len()..].contains("\n       Received CRC: "), "{run}");
            assert!(dir.path().join(format!("data.{at}.received")).exists());
            text = &text[start.max(1) - 1..];
        }
        assert_eq!(run.stderr.matches("verify failed").count(), wrong.len(), "{run}");
        let json = Json::parse(&run.stdout);
        assert_eq!(json.job().int("error"), libc::EILSEQ as u64);
    }
    let run = run(dir.path(), &format!("--rw=read {job} --verify_fatal=1")).refused();
    assert_eq!(run.stderr.matches("verify failed").count(), 1, "{run}");
}

/// Data behind the end of a truncated file is lost, and the rest is checked.
#[test]
fn the_end_of_a_file_is_found_missing() {
    for rw in ["write", "randwrite"] {
        let dir = scratch();
        run(dir.path(), &format!("--rw={rw} --verify=md5")).ok();
        let file = fs::OpenOptions::new().write(true).open(dir.path().join("data")).unwrap();
        file.set_len(240 << 10).unwrap();
        damage(dir.path(), 9000);
        for how in ["", "--ioengine=libaio --iodepth=8", "--ioengine=io_uring --verify_async=1"] {
            let run = run(dir.path(), &format!("--rw={rw} --verify=md5 --verify_only {how}")).refused();
            let run = run.says("a bit flip: bit 4 of the byte at offset 9000");
            let run =
                run.says("verify: bad end of file 245760, wanted 249856 or more at file data offset 245760");
            assert_eq!(run.stderr.matches("lost data: the file ends at offset ").count(), 4, "{run}");
            assert_eq!(counts(&run)[0].0, libc::EILSEQ as u64);
        }
        let all =
            run(dir.path(), &format!("--rw={rw} --verify=md5 --verify_only --continue_on_error=verify")).ok();
        assert_eq!(Json::parse(&all.stdout).job().int("total_err"), 5, "{all}");
    }
}

#[test]
fn wrong_data_ends_the_job() {
    let dir = scratch();
    run(dir.path(), "--rw=write --verify=crc32c").ok();
    damage(dir.path(), 9000);
    damage(dir.path(), 19000);
    damage(dir.path(), 0x7000);
    for (args, reads) in [("", 64), ("--verify_fatal=1", 3), ("--verify_async=2 --iodepth=4", 64)] {
        let run = run(dir.path(), &format!("--rw=read --verify=crc32c {args}")).refused();
        let (error, ios, _) = counts(&run)[0];
        assert_eq!(error, libc::EILSEQ as u64, "{run}");
        assert_eq!(ios[0], reads, "{run}");
        let run = run.says("crc32c: verify failed at file data offset 8192, length 4096");
        let run = run.says("a bit flip: bit 4 of the byte at offset 9000");
        if args != "--verify_fatal=1" {
            run.says("offset 16384, length 4096").says("verify: bad magic header");
        }
    }
    let normal = Program::under_test()
        .line(dir.path(), "--name=v --filename=data --size=256k --rw=read --verify=crc32c")
        .refused();
    normal.says("err=84 (file=data, func=verify, error=");
}

/// The system's text for the errno is about characters: only fio's name has it. All workers together are counted.
#[test]
fn a_failed_verification_says_how_many_blocks_are_wrong() {
    let dir = scratch();
    let write = "--name=v --filename=data --size=256k --rw=write --verify=crc32c --do_verify=0";
    Program::own().line(dir.path(), write).ok();
    [9000, 19000, 0x7000].into_iter().for_each(|offset| damage(dir.path(), offset));
    let read = write.replace("rw=write", "rw=read");
    for (more, words) in [
        ("", "3 of 64 blocks"),
        ("--iodepth=8 --ioengine=libaio --verify_async=2", "3 of 64 blocks"),
        ("--continue_on_error=verify", "3 of 64 blocks"),
        ("--numjobs=2 --group_reporting", "6 of 128 blocks"),
        ("--verify_fatal=1", "1 of 3 blocks"),
    ] {
        let run = Program::own().line(dir.path(), &format!("{read} {more}"));
        let wanted = format!(
            "v: (groupid=0, jobs={}): err=84 (file=data, func=verify, error=verification failed: {words})",
            if more.contains("numjobs") { 2 } else { 1 }
        );
        assert!(run.stdout.contains(&wanted), "{wanted}: {run}");
        assert!(!run.output().contains("multibyte"), "{run}");
    }
    let holds = Program::own().line(dir.path(), &read).refused();
    let made =
        holds.stderr.split("holds: write ").nth(1).and_then(|text| text.lines().next()).unwrap_or_default();
    assert!(made.contains(", made 20") && made.ends_with(" UTC"), "{holds}");
    let strict = Program::called_fio(dir.path()).line(dir.path(), &read).refused();
    assert!(strict.stdout.contains("error=Invalid or incomplete multibyte or wide character"), "{strict}");
}

#[test]
fn a_job_can_go_on_after_wrong_data() {
    let dir = scratch();
    run(dir.path(), "--rw=write --verify=crc32c").ok();
    [9000, 19000, 0x7000].into_iter().for_each(|offset| damage(dir.path(), offset));
    for (args, reads, total) in [("", 64, 3), ("--verify_fatal=1", 3, 1)] {
        let run =
            run(dir.path(), &format!("--rw=read --verify=crc32c --continue_on_error=verify {args}")).ok();
        let json = Json::parse(&run.stdout);
        let job = json.job();
        assert_eq!(
            [job.int("error"), job.int("total_err"), job.int("first_error")],
            [84, total, 84],
            "{run}"
        );
        assert_eq!(job.ios()[0], reads, "{run}");
    }
}

#[test]
fn blocks_are_saved_beside_each_other() {
    let dir = scratch();
    run(dir.path(), "--rw=write --verify=md5").ok();
    let right = fs::read(dir.path().join("data")).unwrap();
    damage(dir.path(), 9000);
    damage(dir.path(), 0x7000);
    let wrong = fs::read(dir.path().join("data")).unwrap();
    run(dir.path(), "--rw=read --verify=md5 --verify_dump=1").refused();
    let saved =
        |name: &str| fs::read(dir.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(saved("data.8192.received") == wrong[8192..12288]);
    assert!(saved("data.8192.expected") == right[8192..12288]);
    assert!(saved("data.28672.hdr_fail") == wrong[28672..32768]);
    let aside = scratch();
    let aux = format!("--aux-path={}", aside.path().display());
    run(dir.path(), &format!("{aux} --rw=read --verify=md5 --verify_dump=1")).refused();
    assert!(aside.path().join("data.8192.received").exists());
}

#[test]
fn jobs_that_share_a_file_accept_each_other_s_writes() {
    for args in ["--rw=write", "--rw=randwrite", "--rw=randwrite --norandommap --loops=3 --thread"] {
        let dir = scratch();
        let run = run(dir.path(), &format!("--verify=crc32c --numjobs=4 {args}")).ok();
        for (error, [reads, writes, _], _) in counts(&run) {
            assert!(error == 0 && reads > 0 && writes >= 64, "{run}");
        }
    }
    // Jobs with separate files do not.
    let dir = scratch();
    run(dir.path(), "--verify=crc32c --numjobs=2 --offset_increment=128k --size=128k --rw=randwrite").ok();
}

/// The time may end between any two reads of a backlog.
#[test]
fn a_backlog_is_read_to_its_end_when_the_time_is_over() {
    const BIG: &str =
        "--name=v --filename=data --size=1g --bs=4k --rw=write --verify=crc32c --fallocate=none";
    let dir = scratch();
    let run = |args: &str| Program::under_test().line(dir.path(), &format!("{BIG} {args}")).ok();
    for args in ["", "--ioengine=libaio --iodepth=4"] {
        for _ in 0..8 {
            let run =
                run(&format!("--time_based --runtime=40ms --verify_backlog=8 {args} --output-format=json"));
            let [reads, writes, _] = ios(run);
            assert_eq!(reads, writes, "{args}");
        }
    }
    // If the time limit ends the reading as well, the unread rest is reported, and its state stays.
    let state = dir.path().join("local-v-0-verify.state");
    for _ in 0..8 {
        let run = run("--runtime=20ms --verify_backlog=1");
        let issued = run.stdout.split("issued rwts: total=").nth(1).expect("the counts of the job");
        let counts: Vec<u64> = issued.split(',').take(2).map(|count| count.parse().unwrap()).collect();
        let says = run.output().contains("v: stopped before 1 write was read back");
        assert_eq!((counts[1] - counts[0], state.exists()), (says.into(), says), "{run}");
    }
}

#[test]
fn invalid_verification_options_are_refused() {
    let dir = scratch();
    for (args, words) in [
        ("--verify=pattern", "needs a verify_pattern"),
        ("--verify=sha512 --bs=128", "too small for verify=sha512"),
        ("--verify=md5 --verify_interval=128 --verify_offset=100", "verify_offset=100 does not fit"),
        // The interval divides only the larger blocks.
        (
            "--verify=sha512 --verify_interval=96 --bssplit=4k/50:12k/50",
            "intervals of 96 bytes are too small for verify=sha512",
        ),
        (
            "--verify=sha256 --verify_interval=96 --bsrange=1000-3500 --bs_unaligned",
            "intervals of 96 bytes are too small for verify=sha256",
        ),
        (
            "--verify=crc32c --verify_interval=768 --verify_offset=1024 --bssplit=4k/50:12k/50",
            "verify_offset=1024 does not fit",
        ),
        ("--verify=md5 --verify_async=1 --verify_async_cpus=1023", "CPU 1023 does not exist"),
        (
            "--verify=md5 --verify_only --time_based --runtime=1 --trim_percentage=9",
            "verify_only cannot know which blocks a time_based job with trim_percentage has trimmed",
        ),
        ("--verify=md5 --verify_only --randrepeat=0 --rw=randwrite", "verify_only cannot know"),
        ("--verify=md5 --verify_only --file_append=1", "verify_only cannot know where"),
    ] {
        let run = run(dir.path(), &format!("--rw=write {args}")).refused().says(words);
        assert!(!dir.path().join("data").exists(), "{run}");
    }
    // An interval that divides no block has no effect.
    for blocks in
        ["--bs=4k", "--bsrange=4k-8k", "--bssplit=4k/50:16k/50", "--bsrange=1000-1050 --bs_unaligned"]
    {
        run(dir.path(), &format!("--rw=write --verify=sha512 --verify_interval=96 {blocks}")).ok();
    }
}

/// Nothing is checked, so the data is that of a job without verification.
#[test]
pub fn null_leaves_the_data_of_a_job() {
    for program in Program::all() {
        for (options, byte) in [
            ("--zero_buffers", 0),
            ("--buffer_pattern=0xaa", 0xaa),
            ("--verify_pattern=0xbb --zero_buffers", 0xbb),
        ] {
            let dir = scratch();
            let line = format!("--name=j --filename=f --size=64k --rw=write --verify=null {options}");
            program.line(dir.path(), &line).ok();
            let data = fs::read(dir.path().join("f")).unwrap();
            assert!(data == vec![byte; 65_536], "{}: {options}", program.path.display());
        }
    }
}
