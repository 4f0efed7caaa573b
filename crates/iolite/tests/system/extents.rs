//! Engines that work on extents (`falloc`, `ftruncate`, `e4defrag`), through pipes (`splice`), or on memory only
//! (`page_fault`): their effect on the file system, compared with fio's.

use crate::common::devices::Mounted;
use crate::common::skeleton::{assert_same, skeleton};
use crate::common::trace::system_calls;
use crate::common::{Json, Program, peers, scratch, words};
use iolite_testing::{or_skip, skip};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Runs a job and returns its report.
#[track_caller]
fn report(dir: &Path, line: &str) -> Json {
    let line = format!("--name=j --output-format=json {line}");
    let json = Json::parse(&Program::under_test().line(dir, &line).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

/// The size of a file, and its allocated bytes, rounded down because a list of extents may take another block.
fn extent(file: &Path) -> (u64, u64) {
    let metadata = fs::metadata(file).unwrap();
    (metadata.len(), metadata.blocks() * 512 / (64 << 10) * (64 << 10))
}

/// The arguments of all calls with this name that a program makes, without the descriptor and the result.
fn calls(program: &Program, dir: &Path, name: &str, line: &str) -> Option<Vec<String>> {
    let (finished, log) = system_calls(program, dir, name, &words(line))?;
    finished.ok();
    let call = |line: &str| {
        let arguments = line.split_once(&format!("{name}("))?.1;
        let (_, rest) = arguments.split_once(", ")?;
        Some(rest.split(')').next()?.to_string())
    };
    Some(log.lines().filter_map(call).collect())
}

#[test]
fn space_is_reserved_and_released() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 32 << 20));
    let (dir, file) = (&mounted.directory, mounted.directory.join("f"));
    let base = "--ioengine=falloc --filename=f --bs=64k --size=1m --fallocate=none";
    let json = report(dir, &format!("{base} --rw=randwrite"));
    assert_eq!((json.job().ios(), json.job().bytes()), ([0, 16, 0], [0, 1 << 20, 0]));
    assert_eq!(extent(&file), (1 << 20, 1 << 20));
    let json = report(dir, &format!("{base} --rw=trim --io_size=512k"));
    assert_eq!(json.job().ios(), [0, 0, 8]);
    assert_eq!(extent(&file), (1 << 20, 512 << 10), "the first half is a hole");
    let json = report(dir, &format!("{base} --rw=read"));
    assert_eq!(json.job().ios(), [16, 0, 0]);
    assert_eq!(extent(&file), (1 << 20, 1 << 20), "and has its space again");
    let json = report(dir, "--ioengine=falloc --filename=f --bs=64k --size=1m --rw=randtrimwrite");
    assert_eq!((json.job().ios(), extent(&file)), ([0, 16, 16], (1 << 20, 1 << 20)));
    // The file system is smaller than this.
    let full = "--name=j --ioengine=falloc --filename=g --bs=8m --size=64m --rw=write --fallocate=none";
    Program::under_test().line(dir, full).refused().says("No space left on device");
}

#[test]
fn reserving_calls_are_those_of_the_peer() {
    let mut compared = false;
    for peer in Program::peers() {
        for rw in ["read", "write", "trim"] {
            let line =
                format!("--name=j --ioengine=falloc --filename=f --bs=64k --size=256k --rw={rw} --thread");
            let (ours, theirs) = (scratch(), scratch());
            for dir in [&ours, &theirs] {
                fs::write(dir.path().join("f"), vec![1; 256 << 10]).unwrap();
            }
            let Some(ours) = calls(&Program::under_test(), ours.path(), "fallocate", &line) else {
                skip!("strace is missing, or may not trace");
            };
            let theirs = calls(&peer, theirs.path(), "fallocate", &line);
            assert_eq!(Some(ours), theirs, "{}: {line}", peer.version());
            compared = true;
        }
    }
    if !compared {
        skip!("there is no fio to compare with");
    }
}

#[test]
fn files_are_cut_where_the_last_block_begins() {
    let dir = scratch();
    let base = "--ioengine=ftruncate --filename=f --bs=64k --size=1m";
    let json = report(dir.path(), &format!("{base} --rw=write"));
    assert_eq!((json.job().ios(), json.job().bytes()), ([0, 16, 0], [0, 1 << 20, 0]));
    assert_eq!(fs::metadata(dir.path().join("f")).unwrap().len(), (1 << 20) - (64 << 10));
    for (rw, why) in [("read", "ioengine=ftruncate can only write"), ("randtrim", "cannot trim")] {
        let line = format!("--name=j {base} --rw={rw}");
        Program::under_test().line(dir.path(), &line).refused().says(why);
    }
    assert_eq!(fs::metadata(dir.path().join("f")).unwrap().len(), (1 << 20) - (64 << 10), "nothing was done");
}

#[test]
pub fn blocks_are_swapped_with_those_of_the_donor() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 32 << 20));
    let dir = &mounted.directory;
    let data: Vec<u8> = (0..1u32 << 20).map(|place| (place / 4096) as u8).collect();
    let base = "--ioengine=e4defrag --filename=f --bs=64k --size=1m --rw=randwrite";
    for (in_place, left) in [(0, 1 << 20), (1, 0)] {
        fs::write(dir.join("f"), &data).unwrap();
        // Blocks without a place on the disk (delayed allocation) cannot be swapped.
        fs::File::open(dir.join("f")).unwrap().sync_all().unwrap();
        let before = fs::read(dir.join("f")).unwrap();
        let json = report(dir, &format!("{base} --donorname={}/donor --inplace={in_place}", dir.display()));
        assert_eq!(json.job().ios(), [0, 16, 0]);
        assert!(fs::read(dir.join("f")).unwrap() == before, "the data has changed");
        assert_eq!(extent(&dir.join("donor")).1, left, "inplace={in_place}");
        fs::remove_file(dir.join("donor")).unwrap();
    }
    let refused = |line: &str, why: &str| {
        Program::under_test().line(dir, &format!("--name=j {line}")).refused().says(why);
    };
    refused(base, "donorname= is missing, a file on the same file system to swap blocks with");
    refused(&format!("{base} --donorname=no/such"), "donorname=no/such: No such file or directory, error=");
    for donor in ["/dev/null", "/"] {
        let why = format!(
            "donorname={donor}: it has to be a file on the ext4 file system of the job's files, error="
        );
        refused(&format!("{base} --donorname={donor}"), &why);
    }
    refused(
        "--ioengine=e4defrag --filename=f --size=1m --rw=read --donorname=donor",
        "ioengine=e4defrag can only write",
    );
    refused(&format!("{base} --donorname=donor --directory=a:b"), "which has to be one directory");
    assert!(!dir.join("donor").exists(), "a refused job has left a file");
}

#[test]
fn blocks_without_a_place_on_the_disk_are_not_swapped() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::without_journal(dir.path(), 32 << 20));
    let (dir, file) = (&mounted.directory, mounted.directory.join("f"));
    let base = "--name=j --ioengine=e4defrag --filename=f --donorname=donor --rw=write --bs=64k --size=1m";
    let run = |more: &str| Program::under_test().line(dir, &format!("{base} {more}"));
    let refused = |more: &str, error: &str, why: &str| {
        run(more).refused().says(&format!("{error} ({why}): write offset="));
    };
    let no_place = "only blocks that have their places on the disk can be swapped; write the file first";
    let make = |content: &[u8], at: u64| {
        let made = fs::File::create(&file).unwrap();
        made.set_len(1 << 20).unwrap();
        made.write_all_at(content, at).unwrap();
        made.sync_all().unwrap();
    };
    make(&[], 0);
    refused("", "No data available", no_place);
    // For a hole before data, the kernel reports success and 0 blocks.
    make(&[1; 64 << 10], 512 << 10);
    refused("", "No data available", no_place);
    fs::remove_file(&file).unwrap();
    refused("--fallocate=none", "Invalid argument", no_place);
    // A swapped block has to be written back before it can be swapped again. (With a journal, the kernel commits it.)
    make(&[1; 1 << 20], 0);
    let again = "--rw=randwrite --norandommap --io_size=16m";
    let on_its_way = "the data of these blocks is still on its way to the disk; sync the file first, and with fsync=1 after each swap";
    refused(again, "Device or resource busy", on_its_way);
    run(&format!("{again} --fsync=1")).ok();
}

#[test]
fn the_donor_is_looked_for_where_the_files_are() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 32 << 20));
    fs::create_dir(mounted.directory.join("in")).unwrap();
    let names = |dir: &Path| {
        let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        found
    };
    let base = "--name=j --ioengine=e4defrag --rw=write --bs=64k --size=256k --inplace=1 --directory=in";
    for program in [Program::under_test()].into_iter().chain(Program::peers()) {
        for donor in ["donor", "/donor"] {
            let line = format!("{base} --donorname={donor}");
            program.line(&mounted.directory, &line).ok();
            let what = format!("{}: {line}", program.version());
            assert_eq!(names(&mounted.directory.join("in")), ["donor", "j.0.0"], "{what}");
            assert!(!mounted.directory.join("donor").exists(), "{what}");
            fs::remove_file(mounted.directory.join("in/donor")).unwrap();
        }
        fs::remove_file(mounted.directory.join("in/j.0.0")).unwrap();
    }
}

#[test]
fn swaps_are_counted_as_by_the_peer() {
    let peers = peers!();
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 32 << 20));
    let dir = &mounted.directory;
    let data: Vec<u8> = (0..1u32 << 20).map(|place| (place / 4096) as u8).collect();
    // (With inplace=0, fio 3.41 fails, because it allocates space before it knows the size.)
    for options in ["--rw=write --bs=64k", "--rw=randwrite --bs=16k", "--rw=write --bs=1m"] {
        let line = format!(
            "--output-format=json --name=j --ioengine=e4defrag --filename=f --size=1m --inplace=1 --donorname={}/donor \
             {options}",
            dir.display()
        );
        let run = |program: &Program| {
            fs::write(dir.join("f"), &data).unwrap();
            fs::File::open(dir.join("f")).unwrap().sync_all().unwrap();
            let json = Json::parse(&program.line(dir, &line).ok().stdout);
            let job = json.job();
            let left = extent(&dir.join("donor"));
            fs::remove_file(dir.join("donor")).unwrap();
            assert!(fs::read(dir.join("f")).unwrap() == data, "{}: {options}", program.version());
            (job.ios(), job.bytes(), left, job.int("write.short_ios"))
        };
        let ours = run(&Program::under_test());
        for peer in &peers {
            assert_eq!(ours, run(peer), "{}: {options}", peer.version());
        }
    }
}

#[test]
fn data_goes_through_a_pipe() {
    let dir = scratch();
    for bs in ["4k", "128k", "1m", "3000"] {
        let line =
            format!("--ioengine=splice --filename=f{bs} --bs={bs} --size=3m --rw=randwrite --verify=crc32c");
        let json = report(dir.path(), &line);
        let [read, written, _] = json.job().bytes();
        assert!(read == written && written > 0, "{line}");
        // psync writes, too: each engine verifies the other's data.
        let other = line.replace("splice", "psync");
        report(dir.path(), &format!("{other} --verify_only"));
        report(dir.path(), &other);
        report(dir.path(), &format!("{line} --verify_only"));
    }
    // An I/O is one splice and one vmsplice if the pipe may be that large.
    let line = "--name=j --ioengine=splice --filename=f1m --bs=128k --size=1m --rw=read --thread";
    let Some((finished, log)) =
        system_calls(&Program::under_test(), dir.path(), "splice,vmsplice", &words(line))
    else {
        skip!("strace is missing, or may not trace");
    };
    finished.ok();
    assert_eq!(log.lines().filter(|call| call.contains("vmsplice(")).count(), 8, "{log}");
}

#[test]
fn unspliceable_files_are_reported() {
    let dir = scratch();
    for line in ["--filename=/dev/full --rw=write", "--filename=/dev/null --rw=read"] {
        let line = format!("--name=j --ioengine=splice --bs=4k --size=64k {line}");
        let why = "Invalid argument (this file cannot be spliced; use another engine, such as psync)";
        Program::under_test().line(dir.path(), &line).refused().says(why);
    }
}

#[test]
fn a_write_that_fails_leaves_nothing_for_the_next_one() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 8 << 20));
    let line = "--name=j --ioengine=splice --filename=f --bs=64k --size=32m --rw=write --fallocate=none \
                --continue_on_error=write --verify=crc32c --do_verify=0";
    let full = Program::under_test().line(&mounted.directory, line);
    assert!(full.output().contains("No space left on device"), "{}", full.output());
    let size = fs::metadata(mounted.directory.join("f")).unwrap().len();
    assert!(size > 0);
    let whole = size / (64 << 10) * (64 << 10);
    let check = format!(
        "--ioengine=psync --filename=f --bs=64k --size={whole} --rw=write --verify=crc32c --verify_only"
    );
    report(&mounted.directory, &check);
}

#[test]
fn pages_of_memory_are_faulted_in() {
    let dir = scratch();
    let json = report(dir.path(), "--ioengine=page_fault --size=16m --bs=4k --rw=randwrite");
    assert_eq!(json.job().ios(), [0, 4096, 0]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "there are no files");
    let faults = |size: &str| {
        let line = format!("--ioengine=page_fault --size={size} --bs=64k --rw=write --thread=0");
        report(dir.path(), &line).job().int("minf")
    };
    // With transparent huge pages, a fault maps 2 MiB.
    assert!(faults("64m") >= faults("64k") + 30, "memory that is touched first is faulted in");
    let beyond = "--ioengine=page_fault --filesize=1m --size=1m --bs=64k --rw=read --nrfiles=4";
    assert_eq!(report(dir.path(), beyond).job().bytes(), [1 << 20, 0, 0]);
    for (rw, option) in [("write", "verify=md5"), ("randread", "verify=crc32c --verify_only")] {
        let line = format!("--name=j --ioengine=page_fault --size=64k --rw={rw} --{option}");
        Program::under_test().line(dir.path(), &line).refused().says("ioengine=page_fault verifies nothing");
    }
}

/// No available fio has this engine, so the expected output is that of 3.42.
#[test]
fn faults_are_reported_as_by_fio() {
    let dir = scratch();
    let program = Program::called_fio(dir.path());
    let direction = |label: &str| {
        [
            format!("  {label}: IOPS=N, BW=NB/s (NB/s)(NB/Nmsec)"),
            "    clat (TIME): min=N, max=N, avg=N, stdev=N".to_owned(),
            "     lat (TIME): min=N, max=N, avg=N, stdev=N".to_owned(),
            "    clat percentiles (TIME):".to_owned(),
            "     | 1.00th 5.00th 10.00th 20.00th 30.00th 40.00th 50.00th 60.00th 70.00th 80.00th 90.00th 95.00th 99.00th \
             99.50th 99.90th 99.95th 99.99th"
                .to_owned(),
        ]
    };
    let summary =
        |label: &str| format!("  {label}: bw=NB/s (NB/s), NB/s-NB/s (NB/s-NB/s), io=NB (NB), run=N-Nmsec");
    for (rw, label, issued) in [("read", "read", "4096,0,0,0"), ("randwrite", "write", "0,4096,0,0")] {
        let line = format!("--name=p --ioengine=page_fault --size=16m --rw={rw} --bs=4k");
        let run = program.line(dir.path(), &line).ok();
        let mut expected = vec![
            format!(
                "p: (g=0): rw={rw}, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=page_fault, iodepth=1"
            ),
            "PROGRAM-VERSION".to_owned(),
            "Starting 1 process".to_owned(),
            String::new(),
            "p: (groupid=0, jobs=1): err= 0: pid=N: DATE".to_owned(),
        ];
        expected.extend(direction(label));
        expected.extend([
            "  lat (TIME)   : N=N%".to_owned(),
            "  cpu          : usr=N%, sys=N%, ctx=N, majf=N, minf=N".to_owned(),
            "  IO depths    : 1=N%, 2=N%, 4=N%, 8=N%, 16=N%, 32=N%, >=64=N%".to_owned(),
            "     submit    : 0=N%, 4=N%, 8=N%, 16=N%, 32=N%, 64=N%, >=64=N%".to_owned(),
            "     complete  : 0=N%, 4=N%, 8=N%, 16=N%, 32=N%, 64=N%, >=64=N%".to_owned(),
            format!("     issued rwts: total={issued} short=0,0,0,0 dropped=0,0,0,0"),
            "     latency   : target=Ns, window=Ns, percentile=N%, depth=N".to_owned(),
            String::new(),
            "Run status group 0 (all jobs):".to_owned(),
            summary(if label == "read" { " READ" } else { "WRITE" }),
        ]);
        assert_same(&line, &skeleton(&program, &run), &expected);
    }
}
