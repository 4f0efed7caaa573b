//! Verified jobs that are killed, and checked by a later run.
//!
//! `IOLITE_TEST_KILLS=200 cargo test -p iolite --test system crashes::` kills each job that often.

use crate::common::program::{Finished, Running};
use crate::common::{Json, Program, scratch};
use iolite_testing::{Luck, skip};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const STATE: &str = "local-v-0-verify.state";

fn kills() -> u64 {
    std::env::var("IOLITE_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// The maximum number of additional kills until there is something to check.
const MORE_KILLS: u64 = 50;

/// Kills a job after some time. Returns whether it had begun to write by then.
fn kill(dir: &Path, job: &str, after: Duration) -> bool {
    let line = format!("--name=v --filename=data {job} --verify=crc32c --eta=never");
    let mut running = Program::under_test().start(dir, line.split_whitespace());
    running.wait_until("its state", |_| dir.join(STATE).exists());
    std::thread::sleep(after);
    running.signal(libc::SIGKILL);
    running.wait();
    dir.join("data").exists()
}

/// Checks the data against the state.
fn check(dir: &Path, more: &str) -> Finished {
    let line = "--name=v --filename=data --size=8m --rw=read --verify=crc32c --verify_state_load=1 --output-format=json";
    Program::under_test().line(dir, &format!("{line} {more}"))
}

fn reads(run: Finished) -> u64 {
    Json::parse(&run.ok().stdout).job().ios()[0]
}

#[test]
fn killed_at_random_moments() {
    let mut luck = Luck::new();
    for (job, blocks) in [
        ("--size=8m --bs=4k --rw=write --loops=100", "--bs=4k"),
        ("--size=8m --bs=4k --rw=randwrite --norandommap --time_based --runtime=60", "--bs=4k"),
        (
            "--size=8m --bs=4k --rw=randwrite --loops=100 --ioengine=libaio --iodepth=16 --do_verify=0",
            "--bs=4k",
        ),
        (
            "--size=8m --bs=64k --rw=randwrite --norandommap --loops=1000 --ioengine=io_uring --iodepth=8 --thread",
            "--bs=64k",
        ),
        (
            "--size=8m --bssplit=4k/50:12k/50 --rw=randwrite --norandommap --time_based --runtime=60 --fsync=32",
            "--bssplit=4k/50:12k/50",
        ),
        ("--size=8m --bs=4k --rw=randwrite --time_based --runtime=60 --ioengine=mmap", "--bs=4k"),
        (
            "--size=8m --bs=4k --rw=randwrite --time_based --runtime=60 --verify_backlog=64 --ioengine=libaio --iodepth=8",
            "--bs=4k",
        ),
    ] {
        let (mut checked, mut begun) = (0, 0);
        // On a busy machine, each job may be killed before its first write.
        for round in 0.. {
            if round >= kills() && checked > 0 {
                break;
            }
            assert!(round < kills() + MORE_KILLS, "{job}: {begun} kills, {checked} blocks");
            let dir = scratch();
            begun += u64::from(kill(dir.path(), job, Duration::from_millis(luck.below(500))));
            checked += reads(check(dir.path(), blocks));
            checked += reads(check(dir.path(), &format!("{blocks} --verify_policy=fsynced")));
        }
    }
}

/// Required writes are really checked.
#[test]
fn a_lost_write_is_found_after_a_kill() {
    let dir = scratch();
    let path = dir.path().join("data");
    kill(dir.path(), "--size=8m --bs=4k --rw=write --loops=1000", Duration::from_millis(700));
    let right = fs::read(&path).unwrap();
    assert_eq!(reads(check(dir.path(), "")), 2048);
    let mut wrong = right.clone();
    wrong[40960..45056].fill(0);
    fs::write(&path, &wrong).unwrap();
    check(dir.path(), "").refused().says("offset 40960, length 4096").says("zeros");
    wrong = right;
    let (one, other) = wrong.split_at_mut(45056);
    one[40960..].copy_from_slice(&other[..4096]);
    fs::write(&path, &wrong).unwrap();
    check(dir.path(), "").refused().says("a misdirected block: it belongs to offset 45056");
}

/// An incomplete write of one clone may overlap writes of another. (Blocks are large, so that writes take time.)
#[test]
fn clones_that_are_killed_in_one_file() {
    let mut luck = Luck::new();
    let base =
        "--name=v --filename=data --size=2m --verify=crc32c --numjobs=2 --eta=never --output-format=json";
    for job in [
        "--rw=randwrite --bs=256k --norandommap",
        "--rw=write --bs=64k --thread",
        "--rw=randwrite --bsrange=16k-256k --norandommap --verify_interval=4k --ioengine=io_uring --iodepth=4",
        "--rw=write --bs=128k --ioengine=mmap",
    ] {
        let mut checked = [0, 0];
        for round in 0.. {
            if round >= kills() && !checked.contains(&0) {
                break;
            }
            assert!(round < kills() + MORE_KILLS, "{job}: {checked:?} blocks");
            let dir = scratch();
            let line = format!("{base} {job} --time_based --runtime=60 --do_verify=0");
            let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
            let states = [0, 1].map(|clone| dir.path().join(format!("local-v-{clone}-verify.state")));
            running.wait_until("its states", |_| states.iter().all(|state| state.exists()));
            std::thread::sleep(Duration::from_millis(100 + luck.below(500)));
            running.signal(libc::SIGKILL);
            running.wait();
            // Waits until the workers and their I/O in the kernel have ended as well.
            std::thread::sleep(Duration::from_millis(500));
            let line = format!("{base} {job} --verify_only --verify_state_load=1");
            let run = Program::under_test().line(dir.path(), &line).ok();
            for (count, job) in checked.iter_mut().zip(Json::parse(&run.stdout).jobs()) {
                *count += job.ios()[0];
            }
        }
    }
}

/// A block may contain any of several writes, or a mixture of them, but a damaged byte is found.
#[test]
fn a_damaged_byte_is_found_after_a_kill() {
    for (how, byte) in [
        // A byte of the checksum; of the data that is moved for verify_offset; of the time in the header.
        ("--verify=crc32c", 48),
        ("--verify=crc32c --verify_offset=64", 5),
        ("--verify=md5 --verify_interval=1k", 2048 + 27),
        ("--verify=meta", 30),
        ("--verify=xxhash --verify_header_format=3.33", 43),
        ("--verify=pattern_hdr --verify_pattern=0x616263", 46),
    ] {
        let dir = scratch();
        let job = "--size=256k --bs=4k --rw=randwrite --norandommap --rate_iops=2000 --fsync=150";
        let job = format!("{job} --time_based --runtime=60 --ioengine=libaio --iodepth=4");
        let base = format!("--name=v --filename=data --eta=never --output-format=json {how} {job}");
        let check = |policy: &str| {
            let line = format!("{base} --verify_only --verify_state_load=1 --verify_policy={policy}");
            Program::under_test().line(dir.path(), &line)
        };
        let mut running = Program::under_test().start(dir.path(), base.split_whitespace());
        running.wait_until("its state", |_| dir.path().join(STATE).exists());
        // By then, a quarter of the blocks has been written twice, and most have been flushed.
        running.wait_until("all of its blocks", |_| {
            fs::read(dir.path().join("data")).is_ok_and(|data| {
                data.len() == 256 << 10 && data.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0))
            })
        });
        running.signal(libc::SIGKILL);
        running.wait();
        let demanded = ["completed", "fsynced"].map(|policy| (policy, reads(check(policy))));
        let path = dir.path().join("data");
        let mut bytes = fs::read(&path).unwrap();
        bytes.iter_mut().skip(byte).step_by(4096).for_each(|byte| *byte ^= 0xff);
        fs::write(&path, bytes).unwrap();
        for (policy, blocks) in demanded {
            let run = check(policy).refused();
            let told = run.output().lines().filter(|line| line.contains("(requested block: offset=")).count();
            assert!(blocks > 32 && told as u64 == blocks, "{how}, {policy}: {told} of {blocks}\n{run}");
        }
    }
}

#[test]
fn states_that_cannot_be_saved_are_reported() {
    let dir = scratch();
    // No file can be created in /proc.
    let job = "--aux-path=/proc --name=v --filename=data --rw=write --size=64k --verify=crc32c";
    let run = Program::under_test().line(dir.path(), job).ok();
    let run =
        run.says("v: there is no verify state /proc/local-v-0-verify.state: ").says("verify_state_save=0");
    assert!(run.stdout.contains("err= 0"), "{run}");
    let silent = Program::under_test().line(dir.path(), &format!("{job} --verify_state_save=0")).ok();
    assert!(!silent.output().contains("verify state"), "{silent}");
    Program::under_test().line(dir.path(), &format!("{job} --verify_state_save=1")).refused();
}

#[test]
pub fn a_state_is_there_until_everything_was_read_back() {
    let dir = scratch();
    let state = dir.path().join(STATE);
    let run = |args: &str| {
        Program::under_test()
            .line(dir.path(), &format!("--name=v --filename=data --size=1m --verify=md5 {args}"))
    };
    run("--rw=randwrite").ok();
    assert!(!state.exists(), "all data was read back");
    run("--rw=randwrite --verify_state_save=0 --do_verify=0").ok();
    assert!(!state.exists(), "the job was not to save one");
    run("--rw=randwrite --do_verify=0").ok();
    assert!(state.exists(), "nothing was read back");
    run("--rw=randread --verify_state_load=1").ok();
    for (job, words) in [
        ("--rw=read --verify_state_load=1 --verify=crc32c", "is the state of verify=md5"),
        ("--rw=read --verify_state_load=1 --filename=data:other", "is the state of filename=data"),
        ("--rw=read --verify_state_load=1 --bs=512", "has writes of 4096 bytes"),
        ("--rw=write --verify_state_load=1", "needs rw=read"),
        ("--rw=read --verify_state_load=1 --aux-path=nowhere", "--aux-path=nowhere: there is no directory"),
        ("--rw=read --verify_state_load=1 --aux-path=/", "/local-v-0-verify.state"),
    ] {
        run(job).refused().says(words);
    }
    fs::write(&state, "something else").unwrap();
    run("--rw=read --verify_state_load=1").refused().says("not a verify state");
    // A run that a trigger ends leaves the state, too.
    let line = "--rw=write --verify=crc32c --time_based --runtime=60 --trigger-timeout=2";
    let run =
        Program::under_test().line(dir.path(), &format!("--name=v --filename=data --size=8m {line}")).ok();
    assert!(state.exists(), "{run}");
    assert!(reads(check(dir.path(), "")) > 0);
}

/// Every clone has its own state.
#[test]
fn clones_have_states_of_their_own() {
    let dir = scratch();
    let base = "--name=v --size=1m --numjobs=3 --verify=sha1 --aux-path=.";
    Program::under_test()
        .line(dir.path(), &format!("{base} --rw=randwrite --norandommap --do_verify=0"))
        .ok();
    for clone in 0..3 {
        assert!(dir.path().join(format!("local-v-{clone}-verify.state")).exists());
    }
    Program::under_test().line(dir.path(), &format!("{base} --rw=read --verify_state_load=1")).ok();
}

/// Another job's writes to the same place are explained by its state, even if that job is not checked. The state is
/// read before the run.
#[test]
fn a_damaged_state_of_another_job_is_reported_before_the_run() {
    let dir = scratch();
    let run = |one: &str, other: &str| {
        let line = format!(
            "--filename=data --size=64k --verify=crc32c --name=one {one} --name=other --filename=data --size=64k \
             --verify=crc32c {other}"
        );
        Program::under_test().line(dir.path(), &line)
    };
    run("--rw=randwrite --do_verify=0", "--rw=randwrite --do_verify=0").ok();
    let check = || run("--rw=read --verify_state_load=1", "--rw=randwrite --verify_only");
    assert!(check().ok().stdout.contains("one: "), "nothing was said of the states");
    let path = dir.path().join("local-other-1-verify.state");
    let mut state = fs::read(&path).unwrap();
    let entry = state.len() - 4096;
    state[entry + 2] = 1;
    fs::write(&path, state).unwrap();
    let refused =
        check().refused().says("verify_state_load: ").says("local-other-1-verify.state: corrupt: byte ");
    assert!(refused.stdout.is_empty(), "{refused}");
}

/// A state is found by the name and the directory of its job. If it is missing, the message lists the states that
/// exist.
#[test]
fn missing_states_are_reported_with_the_existing_ones() {
    let dir = scratch();
    let run = |line: &str| Program::under_test().line(dir.path(), &format!("{line} --size=64k --verify=md5"));
    run("--name=one --filename=f --rw=write --do_verify=0").ok();
    let check = "--filename=f --rw=read --verify_state_load=1";
    run(&format!("--name=other {check}"))
        .refused()
        .says("local-other-0-verify.state: there is no such state; there are those of other jobs: local-one-0-verify.state");
    run(&format!("--name=one {check} --aux-path=/")).refused().says("--aux-path names the directory");
    run(&format!("--name=one {check}")).ok();
}

/// Tables stay in the file, so a state that is larger than memory can be shown.
#[test]
fn large_states_are_printed_in_little_memory() {
    let dir = scratch();
    // 16 Mi blocks: a table of 64 MiB.
    let job = "--name=v --filename=f --size=8g --bs=512 --rw=randwrite --verify=md5 --number_ios=1000 --do_verify=0";
    fs::File::create(dir.path().join("f")).and_then(|file| file.set_len(8 << 30)).unwrap();
    Program::under_test().line(dir.path(), job).ok();
    let program = Program::under_test().path;
    let limited = format!("ulimit -d 32768; exec {} verify-state --list --json {STATE}", program.display());
    let run = Running::start(Command::new("bash").args(["-c", &limited]).current_dir(dir.path())).wait().ok();
    assert_eq!(run.stdout.matches("\"oldest\"").count(), 1000);
}

/// Clones that wrote to one file accept each other's writes, in a later run too.
#[test]
fn clones_that_shared_a_file() {
    let dir = scratch();
    let base = "--name=v --filename=data --size=1m --bsrange=512-16k --rw=randwrite --norandommap --numjobs=2 \
                --verify=crc32c";
    let run = |args: &str| Program::under_test().line(dir.path(), &format!("{base} {args}"));
    run("--do_verify=0 --io_size=2m").ok();
    run("--verify_only --io_size=2m").ok();
    run("--verify_only --verify_state_load=1").ok();
    run("--rw=read --verify_state_load=1").ok();
    // But they do not accept damaged data.
    let path = dir.path().join("data");
    let mut bytes = fs::read(&path).unwrap();
    bytes.iter_mut().skip(300).step_by(512).for_each(|byte| *byte ^= 1);
    fs::write(&path, bytes).unwrap();
    run("--verify_only --io_size=2m").refused().says("a bit flip");
    run("--verify_only --verify_state_load=1").refused().says("a bit flip");
}

/// A state is checked once and as a whole, whatever the runtime, loops and seed of the interrupted run were.
#[test]
fn a_state_is_checked_once_and_as_a_whole() {
    let dir = scratch();
    let run = |args: &str| {
        let base = "--name=v --filename=data --size=4m --bs=4k --verify=md5 --output-format=json";
        Program::under_test().line(dir.path(), &format!("{base} {args}"))
    };
    run("--rw=randwrite --randrepeat=0 --do_verify=0").ok();
    for args in [
        "--rw=randwrite --verify_only --randrepeat=0",
        "--rw=randwrite --verify_only --time_based --runtime=1",
        "--rw=randwrite --verify_only --loops=3",
        "--rw=randread --time_based --runtime=1",
        "--rw=read --loops=3",
        "--rw=read --runtime=1ms",
    ] {
        assert_eq!(reads(run(&format!("{args} --verify_state_load=1"))), 1024, "{args}");
    }
}

/// A disk that loses all unflushed data when its power fails: nbdkit's cache filter writes to its file only on a flush,
/// nbdfuse presents it as a file, and nbdkit is killed. This tests `verify_policy` for a volatile write cache that
/// keeps everything until it is flushed; a real cache may have written any part of the data before.
struct Volatile<'a> {
    dir: &'a Path,
    server: Running,
    mount: Option<Running>,
}

impl<'a> Volatile<'a> {
    fn new(dir: &'a Path) -> Option<Volatile<'a>> {
        let is_there = |program: &str| {
            Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
        };
        let all = ["nbdkit", "nbdfuse", "fusermount3"].into_iter().all(is_there);
        if !all || fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
            return None;
        }
        fs::File::create(dir.join("image")).and_then(|file| file.set_len(8 << 20)).unwrap();
        fs::create_dir(dir.join("mount")).unwrap();
        let socket = dir.join("socket");
        let mut server = Command::new("nbdkit");
        server.args(["-f", "--filter=cache", "file", "image", "cache=writeback", "-U"]).arg(&socket);
        let mut server = Running::start(server.current_dir(dir));
        server.wait_until("its socket", |_| socket.exists());
        let mut mount = Command::new("nbdfuse");
        let mut mount = Running::start(mount.current_dir(dir).args(["mount", "--unix"]).arg(&socket));
        mount.wait_until("its file", |_| dir.join("mount/nbd").exists());
        std::os::unix::fs::symlink("mount/nbd", dir.join("data")).unwrap();
        Some(Volatile { dir, server, mount: Some(mount) })
    }

    /// Simulates a power failure, which leaves only the image.
    fn fail(&mut self) {
        self.server.signal(libc::SIGKILL);
        self.unmount();
        fs::remove_file(self.dir.join("data")).unwrap();
        std::os::unix::fs::symlink("image", self.dir.join("data")).unwrap();
    }

    fn unmount(&mut self) {
        if let Some(mount) = self.mount.take() {
            let _ = Command::new("fusermount3").args(["-uz", "mount"]).current_dir(self.dir).status();
            drop(mount);
        }
    }
}

impl Drop for Volatile<'_> {
    fn drop(&mut self) {
        self.unmount();
    }
}

#[test]
pub fn flushed_data_survives_a_power_cut() {
    for (flush, engine) in [("--fsync=50", "psync"), ("--fdatasync=70 --iodepth=8", "io_uring")] {
        let dir = scratch();
        let Some(mut disk) = Volatile::new(dir.path()) else { skip!("no nbdkit, nbdfuse or /dev/fuse") };
        let job = format!(
            "--name=v --filename=data --size=4m --bs=4k --rw=randwrite --norandommap --verify=crc32c --do_verify=0 \
             --number_ios=1010 --ioengine={engine} {flush}"
        );
        Program::under_test().line(dir.path(), &job).ok();
        disk.fail();
        let flushed = reads(check(dir.path(), "--verify_policy=fsynced"));
        assert!(flushed > 200, "{flush}: {flushed}");
        // The last writes were acknowledged and are lost, unless they ran in parallel with a long flush, which may have
        // included them.
        let acknowledged = check(dir.path(), "--verify_policy=completed");
        if engine == "psync" || acknowledged.code() != 0 {
            acknowledged.refused().says("was lost");
        }
    }
}

/// A time limit of the interrupted run does not apply to the check of its writes.
#[test]
fn no_time_limit_cuts_the_check_of_a_state_short() {
    let dir = scratch();
    let job = "--name=j --filename=s --size=16m --bs=4k --verify=md5";
    let run = |args: &str| Program::under_test().line(dir.path(), &format!("{job} {args}"));
    run("--rw=randwrite --do_verify=0").ok();
    let path = dir.path().join("s");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
    for time in [
        "--runtime=1ms",
        "--time_based --runtime=1ms",
        "--ramp_time=1ms --runtime=1ms",
        "--ramp_time=1ms --time_based --runtime=1ms",
        "--ramp_size=4k --runtime=1ms",
    ] {
        // The last block is checked last.
        run(&format!("--rw=read --verify_state_load=1 {time}"))
            .refused()
            .says("md5: verify failed at file s offset 16773120, length 4096");
    }
}

/// A state belongs to a file, not to one of its names. Whether another file is right is for its content to say.
#[test]
fn a_state_is_that_of_a_file_by_any_name() {
    let dir = scratch();
    let run = |line: &str| {
        let job = "--name=v --size=256k --verify=md5";
        Program::under_test().line(dir.path(), &format!("{job} {line}"))
    };
    run("--filename=data --rw=randwrite --do_verify=0").ok();
    let load =
        |name: &str| run(&format!("--filename={name} --rw=read --verify_state_load=1 --output-format=json"));
    fs::create_dir(dir.path().join("d")).unwrap();
    std::os::unix::fs::symlink("../data", dir.path().join("d/link")).unwrap();
    fs::hard_link(dir.path().join("data"), dir.path().join("hard")).unwrap();
    let absolute = dir.path().join("data").display().to_string();
    for name in ["data", "./data", "d/../data", "d/link", "hard", &absolute] {
        let run = load(name);
        assert!(!run.output().contains("another"), "{name}: {run}");
        assert_eq!(reads(run), 64, "{name}");
    }
    fs::copy(dir.path().join("data"), dir.path().join("copy")).unwrap();
    let run = load("copy").says("is the state of data, and copy is another file");
    assert_eq!(reads(run), 64);
    let mut bytes = fs::read(dir.path().join("copy")).unwrap();
    bytes[70_000] ^= 1;
    fs::write(dir.path().join("copy"), &bytes).unwrap();
    load("copy").refused().says("is the state of data, and copy is another file");
    // The same name, but not the same file.
    fs::rename(dir.path().join("copy"), dir.path().join("data")).unwrap();
    load("data").refused().says("another one of this name");
}

/// Of files that are made during the job, a state knows the place.
#[test]
fn a_state_of_files_made_during_the_job_goes_by_their_place() {
    for makes in ["--create_on_open=1", "--unlink_each_loop=1 --loops=2"] {
        let dir = scratch();
        let run = |line: &str| {
            let job = "--name=v --size=256k --verify=md5";
            Program::under_test().line(dir.path(), &format!("{job} {line}"))
        };
        run(&format!("--filename=data --rw=write --do_verify=0 {makes}")).ok();
        fs::create_dir(dir.path().join("d")).unwrap();
        std::os::unix::fs::symlink("../data", dir.path().join("d/link")).unwrap();
        fs::copy(dir.path().join("data"), dir.path().join("copy")).unwrap();
        let load = |name: &str| {
            run(&format!("--filename={name} --rw=read --verify_state_load=1 --output-format=json"))
        };
        let absolute = dir.path().join("data").display().to_string();
        for name in ["data", "./data", "d/../data", "d/link", &absolute] {
            let run = load(name);
            assert!(!run.output().contains("another"), "{makes} {name}: {run}");
            assert_eq!(reads(run), 64, "{name}");
        }
        let run = load("copy").says("is the state of data, and copy may be another file");
        assert_eq!(reads(run), 64);
    }
}
