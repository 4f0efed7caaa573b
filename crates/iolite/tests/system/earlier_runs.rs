//! Checks of an earlier run, from its options alone (`verify_only`) or with its state.

use crate::common::devices::{Loop, Mounted, image};
use crate::common::program::Finished;
use crate::common::{Json, Program, at_once, peers, scratch};
use iolite_testing::or_skip;
use std::fs;
use std::path::Path;

const STATE: &str = "local-v-0-verify.state";

fn run(dir: &Path, args: &str) -> Finished {
    let line = format!("--name=v --size=1m --bs=4k --verify=crc32c --fallocate=none {args}");
    Program::under_test().line(dir, &line)
}

fn reads(run: Finished) -> u64 {
    Json::parse(&run.ok().stdout).job().ios()[0]
}

/// If the options of a run do not determine its writes, only its state can be used to check them.
#[test]
fn unpredictable_writes_need_a_state() {
    for (job, words) in [
        ("--rw=randrw --rate=40m,20m", "which I/Os of a mix with rates were writes"),
        ("--rw=rw --rate_iops=8000,2000 --rwmixread=90", "which I/Os of a mix with rates were writes"),
        ("--rw=write --file_append=1", "where data ended before"),
        ("--rw=randwrite --ignore_error=,ENOSPC", "which writes have failed in a job with ignore_error"),
        ("--rw=write --continue_on_error=write", "which writes have failed in a job with continue_on_error"),
        ("--rw=write --fill_device=1", "for how much of data there was room"),
        ("--rw=write --latency_target=1s", "how many I/Os the search for latency_target took"),
        ("--rw=randwrite --randrepeat=0", "what was written where with randrepeat=0"),
        // Sequential places depend on the seed as well.
        ("--rw=rw --randrepeat=0", "what was written where with randrepeat=0"),
        ("--rw=rw --loops=2 --randrepeat=0", "what was written where with randrepeat=0"),
        ("--rw=write:8k --bsrange=4k-12k --randrepeat=0", "what was written where with randrepeat=0"),
        ("--rw=write --number_ios=9 --bssplit=4k/50:12k/50 --randrepeat=0", "what was written where with"),
    ] {
        let dir = scratch();
        let run = |more: &str| run(dir.path(), &format!("--filename=data {job} {more}"));
        run("--do_verify=0").ok();
        let refused = run("--verify_only").refused();
        assert!(refused.stderr.contains(&format!("verify_only cannot know {words}")), "{job}: {refused}");
        assert!(
            refused.stderr.contains("verify_state_load=1") && refused.stdout.is_empty(),
            "{job}: {refused}"
        );
        assert!(reads(run("--verify_only --verify_state_load=1 --output-format=json")) > 0, "{job}");
    }
    // These jobs determine their writes.
    let dir = scratch();
    for job in [
        "--rw=randwrite --rate=40m",
        "--rw=randrw",
        "--rw=write --continue_on_error=all",
        "--rw=write --latency_target=1s --latency_run=1",
        "--rw=write --randrepeat=0",
        "--rw=write --randrepeat=0 --loops=2",
        "--rw=rw --randrepeat=0 --rwmixwrite=100",
        "--rw=read --randrepeat=0",
    ] {
        run(dir.path(), &format!("--filename=data {job} --do_verify=0")).ok();
        run(dir.path(), &format!("--filename=data {job} --verify_only")).ok();
    }
}

/// A device has a fixed size, so a run that fills it can be checked without a state.
#[test]
fn devices_are_filled_and_checked() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "image", 1 << 20)));
    let job =
        format!("--filename={} --rw=write --fill_device=1 --file_append=1 --output-format=json", device.path);
    run(dir.path(), &format!("{job} --do_verify=0")).ok();
    assert_eq!(reads(run(dir.path(), &format!("{job} --verify_only"))), 256);
}

#[test]
fn a_file_system_that_was_filled_is_checked_by_the_state() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 4 << 20));
    let run = |more: &str| run(dir.path(), &format!("--filename=mounted/data --rw=write --size=8m {more}"));
    run("--ignore_error=,ENOSPC --do_verify=0").ok();
    let state = fs::read(dir.path().join(STATE)).unwrap();
    let refused = run("--verify_only").refused();
    refused
        .says("write ")
        .says("is there, and none of those behind it, so the run that wrote may have ended there");
    assert_eq!(fs::read(dir.path().join(STATE)).unwrap(), state, "a check leaves it alone");
    assert!(reads(run("--verify_only --verify_state_load=1 --output-format=json")) > 100);
    drop(mounted);
}

/// If the end of the data is missing, the check reports that the run may have ended there.
#[test]
fn a_possible_early_end_of_the_run_is_reported() {
    for job in ["--rw=write", "--rw=randwrite --verify_async=2", "--rw=randwrite --norandommap --randseed=7"]
    {
        let dir = scratch();
        let run = |more: &str| run(dir.path(), &format!("--filename=data {job} {more}"));
        run("--io_size=400k --do_verify=0").ok();
        run("--verify_only")
            .refused()
            .says("v: write 99 is there, and none of those behind it, so the run that wrote may")
            .says("verify_state_load=1 demands what it has written, and no more");
        run("--verify_only --io_size=400k").ok();
        run("--verify_only --verify_state_load=1").ok();
        // A lost block with later writes behind it is not the end of the run.
        let path = dir.path().join("data");
        let mut bytes = fs::read(&path).unwrap();
        let first = bytes.chunks(4096).position(|block| block.iter().any(|&byte| byte != 0)).unwrap();
        bytes[first * 4096..][..4096].fill(0);
        fs::write(&path, bytes).unwrap();
        assert!(!run("--verify_only").refused().output().contains("may have ended"), "{job}");
        let may_fail = run("--verify_only --continue_on_error=all");
        assert!(
            may_fail.output().contains("v: writes that failed in the run that wrote are demanded"),
            "{job}: {may_fail}"
        );
        assert!(
            !run("--verify_only --verify_fatal=1").refused().output().contains("may have ended"),
            "{job}"
        );
    }
}

/// The ways to write a workload of 16 blocks, and to check it: `loops` is how often it is read.
const WAYS: &[(&str, &[&str])] = &[
    ("--loops=2", &["", "--loops=2", "--loops=4"]),
    ("", &["--loops=4", "--io_size=128k"]),
    ("--io_size=128k", &["", "--io_size=128k", "--loops=2"]),
    ("--io_size=96k", &["", "--io_size=128k", "--io_size=96k"]),
    ("--loops=3", &["", "--loops=3"]),
    ("--time_based --runtime=1 --rate_iops=40", &["", "--time_based --runtime=1"]),
];

/// A block is right in whichever pass it was written: Iolite and fio agree on that and on what is read, whoever wrote.
#[test]
fn any_number_of_passes_is_right_as_with_fio() {
    let peers = peers!();
    let ways = WAYS.iter().flat_map(|way| ["write", "randwrite"].map(|rw| (rw, way)));
    let all = ways.flat_map(|(rw, way)| peers.iter().map(move |peer| (peer, rw, way)));
    at_once(3, all, |(peer, rw, (write, checks))| {
        let base = "--name=p --filename=f --bs=4k --size=64k --verify=crc32c --verify_state_save=0";
        let (ours, format) =
            (Program::under_test(), format!("--verify_header_format={}", peer.release.header));
        let programs = [(&ours, format.as_str()), (peer, "")];
        for (writer, format) in &programs {
            let dir = scratch();
            writer.line(dir.path(), &format!("{base} {format} --rw={rw} --do_verify=0 {write}")).ok();
            for check in *checks {
                // The part of a number in old headers does not tell a lap before the expected one.
                if *check == "--io_size=128k" && peer.release.minor < 41 {
                    continue;
                }
                let [ours, peers] = [0, 1].map(|reader| {
                    let (reader, _) = &programs[reader];
                    let check = format!("{base} --rw={rw} --verify_only=1 --output-format=json {check}");
                    reads(reader.line(dir.path(), &check))
                });
                assert_eq!(ours, peers, "--rw={rw} {write}, then {check}");
            }
        }
    });
}

/// Writes the blocks of this run with `old`, then with `new`; the blocks of `kept` stay as they were. Returns the check.
fn lost(old: &str, new: &str, kept: impl Fn(usize, &[u8]) -> bool, check: &str) -> Finished {
    let dir = scratch();
    let job = |more: &str| {
        let line = format!("--name=p --filename=f --bs=4k --size=64k --verify=crc32c {more}");
        Program::under_test().line(dir.path(), &line)
    };
    let path = dir.path().join("f");
    job(&format!("--do_verify=0 {old}")).ok();
    let before = fs::read(&path).unwrap();
    job(&format!("--do_verify=0 {new}")).ok();
    let mut after = fs::read(&path).unwrap();
    for (index, (old, new)) in before.chunks(4096).zip(after.chunks_mut(4096)).enumerate() {
        if kept(index, new) {
            new.copy_from_slice(old);
        }
    }
    fs::write(&path, after).unwrap();
    job(check)
}

/// The number of the write in this block.
fn number(block: &[u8]) -> u64 {
    u64::from_le_bytes(block[32..40].try_into().unwrap())
}

#[test]
fn writes_lost_in_the_last_pass_are_found() {
    let is_fifth = |index: usize, _: &[u8]| index == 5;
    let words = "an older generation: write 5 is there, write 21 was lost (pass 1, where the blocks around it are of pass 2)";
    for (new, check) in [
        ("--loops=2", "--verify_only"),
        ("--loops=2", "--verify_only --loops=3"),
        ("--loops=2", "--verify_only --verify_async=2 --ioengine=libaio --iodepth=4"),
        ("--io_size=128k", "--verify_only"),
        ("--loops=2", "--verify_only --verify_fatal=1"),
        // The last pass was stopped behind the block.
        ("--io_size=96k", "--verify_only"),
    ] {
        let job = "--rw=write --verify_state_save=0";
        let found = lost(job, &format!("{job} {new}"), is_fifth, &format!("{job} {check}")).refused();
        let found = found.says(words).says("bad header numberio 5, wanted 21 at file f offset 20480");
        // (Write 23 is the last one.)
        let may_have_been = "in flight, if the run was killed and its iodepth was above 2";
        assert_eq!(found.output().contains(may_have_been), new == "--io_size=96k", "{new}: {found}");
    }
    // A state knows each write, the last one too.
    for (block, told) in
        [(5, "write 5 is there, write 21 was lost"), (15, "write 15 is there, write 31 was lost")]
    {
        for passes in ["--loops=2", "--io_size=128k"] {
            let found = lost(
                "--rw=write",
                &format!("--rw=write {passes}"),
                |index, _| index == block,
                "--rw=read --verify_state_load=1",
            );
            let passes = " (pass 1, where the blocks around it are of pass 2)";
            found.refused().says(&format!("{told}{passes}"));
        }
    }
    // In laps with new random choices, the order of the writes is computed.
    for check in ["", "--io_size=128k", "--io_size=4m", "--time_based --runtime=1"] {
        let job = "--rw=randwrite --verify_state_save=0";
        let is_first = |_: usize, block: &[u8]| number(block) == 16;
        let found =
            lost(job, &format!("{job} --io_size=128k"), is_first, &format!("{job} --verify_only {check}"));
        found.refused().says("an older generation: write ").says("write 16 was lost");
    }
}

/// Without anything behind the place where a pass ends, the run may have ended there.
#[test]
fn a_pass_that_was_stopped_is_right_and_said_to_be_stopped() {
    let job = "--rw=write --verify_state_save=0";
    let check = |kept: &dyn Fn(usize, &[u8]) -> bool| {
        lost(job, &format!("{job} --loops=2"), kept, &format!("{job} --verify_only"))
    };
    check(&|index, _| index >= 9)
        .ok()
        .says("pass 2 was written up to write 9 of 16, so the run that wrote may have ended");
    check(&|index, _| index >= 9 || index == 3)
        .refused()
        .says("write 3 is there, write 19 was lost (pass 1,");
    assert!(!check(&|_, _| false).ok().output().contains("pass 2"));
    // A run of two passes, then another one of the same job that was stopped.
    let later =
        lost(&format!("{job} --loops=2"), job, |index, _| index >= 9, &format!("{job} --verify_only"));
    later.ok();
}

/// What only later laps wrote is read too, as far as other blocks tell what they wrote.
#[test]
fn blocks_that_only_later_laps_wrote_are_read() {
    let header = |block: &[u8]| block[..2] == 0xacca_u16.to_le_bytes();
    for rw in
        ["randrw", "rw", "randwrite --norandommap", "randwrite --norandommap --random_distribution=zipf:1.1"]
    {
        let dir = scratch();
        let path = dir.path().join("f");
        let base = format!(
            "--name=p --filename=f --rw={rw} --bs=4k --size=256k --verify=crc32c --verify_state_save=0"
        );
        let job = |more: &str| Program::under_test().line(dir.path(), &format!("{base} {more}"));
        job("--do_verify=0").ok();
        let first = fs::read(&path).unwrap();
        job("--io_size=1m --do_verify=0").ok();
        let mut last = fs::read(&path).unwrap();
        let all = reads(job("--verify_only --output-format=json"));
        let written = last.chunks(4096).filter(|block| header(block)).count() as u64;
        assert!(all <= written && all + 3 >= written, "{rw}: {all} of {written} were read");
        // The writes behind the last one to a block of the first lap are not known.
        let is_later = |index: &usize| {
            let old = first.get(index * 4096..).is_some_and(|rest| rest.len() >= 4096 && header(rest));
            !old && header(&last[index * 4096..]) && number(&last[index * 4096..]) < 100
        };
        let later: Vec<usize> = (0..last.len() / 4096).filter(is_later).collect();
        last[later[later.len() / 2] * 4096 + 100] ^= 1;
        fs::write(&path, last).unwrap();
        for check in ["", "--time_based --runtime=1", "--loops=2"] {
            let found = job(&format!("--verify_only {check}")).refused();
            found.says(&format!("at file f offset {}", later[later.len() / 2] * 4096));
        }
    }
}

/// Headers of patterns have seeds too, so a block that an earlier run has left is found by any method with a header.
#[test]
fn a_block_of_an_earlier_run_is_found_in_a_pattern() {
    for method in ["pattern_hdr", "crc32c", "meta"] {
        for rw in ["write", "randwrite"] {
            let job = format!("--rw={rw} --verify={method} --verify_pattern=0xabcd --verify_state_save=0");
            let found = lost(
                &format!("{job} --randseed=5"),
                &job,
                |index, _| index == 7,
                &format!("{job} --verify_only"),
            );
            found.refused().says("at file f offset 28672");
        }
    }
}

/// `unlink_each_loop` belongs to the run that wrote.
#[test]
fn a_check_in_several_loops_keeps_the_file() {
    let dir = scratch();
    let job =
        |more: &str| run(dir.path(), &format!("--filename=data --rw=write --unlink_each_loop=1 {more}"));
    job("--do_verify=0").ok();
    assert_eq!(reads(job("--verify_only --loops=3 --output-format=json")), 3 * 256);
}

/// The options determine whether a state can be saved and loaded.
#[test]
fn impossible_states_are_reported_before_the_run() {
    let dir = scratch();
    let unaligned = "--filename=data --rw=randwrite --bsrange=512-4k --bs_unaligned=1";
    let refused = run(dir.path(), &format!("{unaligned} --verify_state_save=1")).refused();
    assert!(refused.stderr.contains("verify_state_save=1: writes of any size at any place"), "{refused}");
    assert!(refused.stdout.is_empty() && !dir.path().join("data").exists(), "{refused}");
    run(dir.path(), unaligned).ok().says("v: there is no verify state: writes of any size at any place");
    let silent = run(dir.path(), &format!("{unaligned} --verify_state_save=0")).ok();
    assert!(!silent.output().contains("verify state"), "{silent}");

    run(dir.path(), "--filename=data --rw=write --numjobs=2 --do_verify=0").ok();
    let check = |more: &str| {
        run(dir.path(), &format!("--filename=data --rw=read --numjobs=2 --verify_state_load=1 {more}"))
    };
    check("").ok();
    let second = dir.path().join("local-v-1-verify.state");
    let mut state = fs::read(&second).unwrap();
    state[100] ^= 1;
    fs::write(&second, &state).unwrap();
    let is_told = |refused: Finished, words: &str| {
        assert!(refused.stderr.contains(words) && refused.stdout.is_empty(), "{words}: {refused}");
    };
    is_told(check("").refused(), "local-v-1-verify.state: corrupt: the description");
    fs::remove_file(&second).unwrap();
    check("").ok().says("v: there is no local-v-1-verify.state, so nothing is left to check here");
    is_told(check("--aux-path=/").refused(), "/local-v-0-verify.state: there is no such state");
    is_told(
        check("--numjobs=1 --verify=md5").refused(),
        "is the state of verify=crc32c, and the job has md5",
    );
    // exec_prerun of a clone may create the state while another clone already reads it.
    state[100] ^= 1;
    fs::write(dir.path().join("kept"), &state).unwrap();
    fs::write(dir.path().join("bring.fio"), format!(
        "[v]\nfilename=data\nsize=1m\nrw=read\nverify=crc32c\nnumjobs=2\nverify_state_load=1\nexec_prerun=cp kept $$.kept && mv $$.kept {}\n",
        second.display()
    ))
    .unwrap();
    Program::under_test().line(dir.path(), "bring.fio").ok();
}

/// If the offset is a percentage of the file, it changes when the file grows.
#[test]
fn a_share_of_a_file_that_may_have_grown_takes_a_state() {
    for job in ["--offset=50%", "--offset_increment=20% --numjobs=2", "--offset=25% --filesize=512k"] {
        let dir = scratch();
        let run =
            |more: &str| run(dir.path(), &format!("--filename=data --rw=write --size=256k {job} {more}"));
        run("--do_verify=0").ok();
        let refused = run("--verify_only")
            .refused()
            .says("verify_only cannot know how long data was when the run that wrote took offset")
            .says("in bytes, or load");
        assert!(refused.stdout.is_empty(), "{job}: {refused}");
        run("--verify_only --verify_state_load=1").ok();
    }
    // In these jobs, the file does not grow.
    for job in ["--offset=50% --size=256k", "--offset=50% --size=50%", "--offset=25% --numjobs=2 --size=1%"] {
        let dir = scratch();
        fs::write(dir.path().join("data"), vec![0; 1 << 20]).unwrap();
        let run = |more: &str| run(dir.path(), &format!("--filename=data --rw=write {job} {more}"));
        run("--do_verify=0").ok();
        run("--verify_only").ok();
    }
}

/// Even the places of a sequential workload may depend on the seed.
#[test]
fn sequential_runs_with_another_seed_are_checked_as_far_as_they_are_alike() {
    let check = |job: &str| {
        let dir = scratch();
        let run = |more: &str| run(dir.path(), &format!("--size=96k {job} {more}"));
        run("--do_verify=0 --randseed=99").ok();
        run("--verify_only --randseed=99").ok();
        run("--verify_only")
    };
    for job in [
        "--rw=write",
        // The compressible part depends on the seed.
        "--rw=write --verify_pattern=0xdead --buffer_compress_percentage=25",
        "--rw=write --verify_pattern=0xdead --buffer_compress_percentage=100",
        "--rw=write --buffer_compress_percentage=100",
        "--rw=rw",
        "--rw=write --nrfiles=3",
        "--rw=write --bssplit=4k/50:8k/50",
        "--rw=write --bsrange=1k-4k",
        "--rw=write --nrfiles=3 --file_service_type=random",
        "--rw=rw --nrfiles=3",
        "--rw=rw --loops=2",
    ] {
        check(job).ok();
    }
    for job in ["--rw=write --bsrange=1000-4000 --bs_unaligned=1", "--rw=write --nrfiles=3 --filesize=8k-32k"]
    {
        check(job)
            .refused()
            .says("the places of this workload's writes depend on its seed; check from the same place");
    }
}

/// The number of reported wrong intervals in the file `data`.
fn reports(run: &Finished) -> usize {
    run.output().matches(" at file data offset ").count()
}

/// In a mix, the seed determines only how many of its I/Os are writes.
#[test]
fn a_mix_with_another_seed_is_checked_up_to_its_last_write() {
    let dir = scratch();
    let path = dir.path().join("data");
    let job = |more: &str| run(dir.path(), &format!("--filename=data --rw=rw {more}"));
    let damaged = |places: &[usize], damage: fn(&mut [u8])| {
        let mut bytes = fs::read(&path).unwrap();
        places.iter().for_each(|place| damage(&mut bytes[place * 4096..][..4096]));
        fs::write(&path, &bytes).unwrap();
    };
    let words = "how many of its I/Os are writes depends on its seed";
    let kinds =
        ["", "--verify_interval=512", "--ioengine=libaio --iodepth=8 --verify_async=2", "--verify_fatal=1"];
    for (more, seed) in kinds.into_iter().zip(2..).chain((6..14).map(|seed| ("", seed))) {
        job(&format!("{more} --randseed={seed} --do_verify=0")).ok();
        job(&format!("{more} --verify_only --randseed={seed}")).ok();
        job(&format!("{more} --verify_only"))
            .ok()
            .says(words)
            .says("behind write 1")
            .says("verify_state_load=1");
        let written = fs::read(&path).unwrap();
        let intervals = if more.contains("interval") { 8 } else { 1 };
        // A missing block with correct ones behind it is lost.
        for (places, told) in [(&[70][..], 1), (&[0, 1, 70], 3)] {
            damaged(places, |block| block.fill(0));
            let found = job(&format!("{more} --verify_only")).refused();
            let told = if more.contains("fatal") { 1 } else { told * intervals };
            assert_eq!(reports(&found), told, "{more}: {found}");
            assert!(found.output().contains(words) || more.contains("fatal"), "{more}: {found}");
            fs::write(&path, &written).unwrap();
        }
        // A damaged interval counts as written.
        damaged(&[80], |block| block[2000] ^= 1);
        assert_eq!(reports(&job(&format!("{more} --verify_only")).refused().says("a bit flip")), 1, "{more}");
    }
    // Without any data, it is not known whether the seed was different.
    fs::write(&path, vec![0; 1 << 20]).unwrap();
    let found = job("--verify_only").refused();
    assert!(reports(&found) > 90 && !found.output().contains(words), "{found}");
    fs::File::create(&path).unwrap();
    assert!(reports(&job("--verify_only").refused()) > 90);
}

/// As soon as a block with the seed of the job is found, all blocks are required.
#[test]
fn a_mix_with_its_own_seed_is_checked_completely() {
    let dir = scratch();
    let path = dir.path().join("data");
    let job = |more: &str| run(dir.path(), &format!("--filename=data --rw=rw {more}"));
    job("--do_verify=0 --randseed=9").ok();
    let other = fs::read(&path).unwrap();
    job("--do_verify=0").ok();
    let own = fs::read(&path).unwrap();
    for more in ["", "--ioengine=libaio --iodepth=8 --verify_async=2"] {
        // Before the first correct block: a stale one and two lost ones. Behind it: a lost one.
        let mut bytes = own.clone();
        bytes[..4096].copy_from_slice(&other[..4096]);
        bytes[4096..3 * 4096].fill(0);
        bytes[90 * 4096..][..4096].fill(0);
        fs::write(&path, &bytes).unwrap();
        let found = job(&format!("{more} --verify_only")).refused();
        assert_eq!(reports(&found), 4, "{more}: {found}");
        assert!(!found.output().contains("on its seed"), "{more}: {found}");
    }
}

/// If the seed is unknown, the write numbers in headers are checked.
#[test]
fn stale_blocks_of_a_sequential_run_are_found_without_its_seed() {
    let dir = scratch();
    let path = dir.path().join("data");
    let job = |more: &str| run(dir.path(), &format!("--filename=data --rw=write --randrepeat=0 {more}"));
    job("--do_verify=0").ok();
    let stale = fs::read(&path).unwrap();
    job("--do_verify=0 --loops=2").ok();
    job("--verify_only --loops=2").ok();
    let mut bytes = fs::read(&path).unwrap();
    bytes[8192..][..4096].copy_from_slice(&stale[8192..][..4096]);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(reports(&job("--verify_only --loops=2").refused()), 1);
}

/// If the places of writes depend on the seed, correct data at the places read does not prove that everything is
/// correct.
#[test]
fn a_seed_mismatch_is_warned_of_even_if_all_data_is_right() {
    let dir = scratch();
    let job = |more: &str| run(dir.path(), &format!("--filename=data {more}"));
    let words = "so writes to other places have not been checked";
    job("--rw=write --do_verify=0 --randseed=9").ok();
    job("--rw=randwrite --io_size=100k --verify_only").ok().says(words);
    for all in ["--rw=randwrite", "--rw=write", "--rw=write --bssplit=4k/50:8k/50"] {
        job(&format!("{all} --randseed=9 --do_verify=0")).ok();
        let checked = job(&format!("{all} --verify_only")).ok();
        assert!(!checked.output().contains("seed"), "{all}: {checked}");
    }
}

/// Reports and logs are never written to files with data, not even to those that a job only reads.
#[test]
fn no_report_and_no_log_goes_into_data() {
    let dir = scratch();
    let path = dir.path().join("data_lat.1.log");
    let data = vec![7; 65536];
    fs::write(&path, &data).unwrap();
    fs::hard_link(&path, dir.path().join("alias")).unwrap();
    let run = |more: &str| {
        let line = format!("--name=v --filename=data_lat.1.log --size=64k --rw=read {more}");
        Program::under_test().line(dir.path(), &line)
    };
    for (more, words) in [
        (
            "--output=data_lat.1.log",
            "--output=data_lat.1.log: the report would go into the data of job v; give",
        ),
        ("--output=alias", "--output=alias: the report would go into the data of job v; give"),
        (
            "--write_lat_log=./data",
            "write_lat_log=./data_lat.1.log: the log would go into the data of job v; give",
        ),
    ] {
        let refused = run(more).refused().says(words);
        assert!(refused.stdout.is_empty() && fs::read(&path).unwrap() == data, "{refused}");
    }
    run("--output=report --write_lat_log=log").ok();
    run("--output=alias --ioengine=null").ok();
}

/// The verify state must not be written to a file with data.
#[test]
fn no_state_is_written_over() {
    let dir = scratch();
    let run = |more: &str| Program::under_test().line(dir.path(), &format!("--size=64k {more}"));
    let is_refused = |line: &str, words: &str| {
        let refused = run(line).refused().says(words);
        assert!(refused.stdout.is_empty(), "{line}: {refused}");
    };
    let file = |name: &str| dir.path().join(name);
    std::os::unix::fs::symlink(STATE, file("link")).unwrap();
    for line in [
        "--name=v --filename=local-v-0-verify.state --rw=write --verify=crc32c",
        "--name=v --filename=link --rw=write --verify=crc32c",
        "--name=v --filename=data --rw=write --verify=crc32c --name=w --rw=write --filename=./local-v-0-verify.state",
        "--name=v --filename=data --rw=write --verify=crc32c --name=w --rw=read --filename=local-v-0-verify.state",
    ] {
        is_refused(line, ": the run writes the verify state of job v (local-v-0-verify.state) there; give");
        assert!(!file(STATE).exists() && !file("data").exists(), "{line}");
    }
    let job = "--name=v --filename=data --rw=write --verify=crc32c";
    is_refused(
        &format!("{job} --write_iolog={STATE}"),
        "the log would go into the verify state of job v (local-v-0-verify.state)",
    );
    is_refused(&format!("{job} --write_iolog=./data"), "the log would go into the data of job v");
    assert!(!file(STATE).exists() && !file("data").exists());
    // A job without a state may use that name. With an engine without files, a log may have the name of the file.
    run(&format!("--name=v --filename={STATE} --rw=write --verify=crc32c --verify_state_save=0")).ok();
    run(&format!("--name=v --filename={STATE} --rw=write")).ok();
    fs::remove_file(file(STATE)).unwrap();
    run(&format!("{job} --do_verify=0")).ok();
    let state = fs::read(file(STATE)).unwrap();
    is_refused(
        &format!("{job} --rw=read --verify_state_load=1 --name=w --rw=write --filename={STATE}"),
        "would be changed, and it is the verify state of job v",
    );
    assert_eq!(fs::read(file(STATE)).unwrap(), state);
    run("--name=v --filename=log --rw=write --ioengine=null --write_iolog=log").ok();
    run("--name=v --filename=/dev/null --rw=write --write_iolog=/dev/null").ok();
}

/// A state can only be used for blocks with the same format.
#[test]
fn a_state_of_other_blocks_is_refused() {
    let dir = scratch();
    let write = |more: &str| {
        run(dir.path(), &format!("--filename=data --rw=write --do_verify=0 --bs=16k {more}")).ok()
    };
    let check = |more: &str| {
        run(dir.path(), &format!("--filename=data --rw=read --verify_state_load=1 --bs=16k {more}"))
    };
    let is_told = |more: &str, words: &str| {
        let refused = check(more).refused();
        assert!(refused.stderr.contains(words) && refused.stdout.is_empty(), "{more}: {refused}");
    };
    write("--verify_interval=4k");
    check("--verify_interval=4k").ok();
    is_told("", "is the state of verify_interval=4096, and the job has 16384");
    is_told("--verify_interval=4k --verify_offset=64", "is the state of verify_offset=0, and the job has 64");
    is_told(
        "--verify_interval=4k --verify_pattern=0xab",
        "is the state of verify_pattern=(none), and the job has 0xab",
    );
    write("");
    check("--verify_interval=16k").ok();
    check("--bs=32k").ok();
    let pattern = "--verify=pattern --verify_pattern=0xdeadface%o";
    write(pattern);
    check(pattern).ok();
    is_told(
        "--verify=pattern --verify_pattern=0xdeadface",
        "is the state of verify_pattern=0xdeadface%o, and the job has 0xdeadface",
    );
    is_told(&format!("{pattern} --verify_pattern_interval=512"), "is the state of verify_pattern_interval=0");
}
