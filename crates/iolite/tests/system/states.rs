//! States of verified jobs for a later job: which are kept, and which are missing.

use crate::common::program::send;
use crate::common::{Json, Program, files_in, scratch};
use crate::signals::workers_on;
use std::fs;
use std::path::Path;

/// The states in a directory, by name.
fn states(dir: &Path) -> Vec<String> {
    let names = files_in(dir).into_iter().map(|(name, _)| name);
    names.filter(|name| name.ends_with("-verify.state")).collect()
}

/// Flips a bit in each block of a file.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes.iter_mut().skip(300).step_by(4096).for_each(|byte| *byte ^= 1);
    fs::write(file, bytes).unwrap();
}

/// Three clones write to separate files, and one is killed. The same command line with two additional options checks
/// it.
#[test]
fn one_killed_clone_is_checked_with_its_own_job_line() {
    let dir = scratch();
    let job = "--numjobs=3 --name=v --verify=crc32c --io_size=2m --size=1m --rw=randwrite --bs=4k --fsync=4 --rate_iops=64 \
               --eta=never --output-format=json";
    let mut running = Program::under_test().start(dir.path(), job.split_whitespace());
    let file = dir.path().canonicalize().unwrap().join("v.1.0");
    running.wait_until("its state", |_| dir.path().join("local-v-1-verify.state").exists());
    running.wait_until("the first blocks", |_| {
        fs::read(&file)
            .is_ok_and(|data| data.chunks(4096).filter(|block| block.iter().any(|&b| b > 0)).count() > 9)
    });
    for worker in workers_on(&running, &file) {
        send(worker, libc::SIGKILL);
    }
    assert_ne!(running.wait().code(), 0);
    assert_eq!(states(dir.path()), ["local-v-1-verify.state"], "the other clones have read everything back");
    let check = |more: &str| {
        Program::under_test().line(dir.path(), &format!("{job} --verify_only=1 --verify_state_load=1 {more}"))
    };
    for more in ["", "--verify_policy=fsynced", "--thread --verify_async=2"] {
        let run = check(more).ok();
        let reads: Vec<u64> = Json::parse(&run.stdout).jobs().iter().map(|job| job.ios()[0]).collect();
        assert!(reads[1] > 5 && (reads[0], reads[2]) == (0, 0), "{more}: {run}");
        for clone in ["0", "2"] {
            let words =
                format!("v: there is no local-v-{clone}-verify.state, so nothing is left to check here: ");
            assert_eq!(run.stderr.matches(&words).count(), 1, "{run}");
        }
    }
    damage(&file);
    check("").refused().says("a bit flip");
    // No clone has left a state.
    fs::remove_file(dir.path().join("local-v-1-verify.state")).unwrap();
    let refused = check("").refused().says("local-v-0-verify.state: there is no such state");
    assert!(Json::parse(&refused.stdout).jobs().iter().all(|job| job.int("error") != 0), "{refused}");
}

/// The same for two jobs of a job file. One of them had finished when the other one was killed.
#[test]
fn one_killed_job_is_checked_with_its_own_job_file() {
    let dir = scratch();
    let jobs =
        "[global]\nverify=crc32c\nsize=256k\nrw=randwrite\n[done]\n[killed]\nstonewall\nrate_iops=20\n";
    fs::write(dir.path().join("jobs.fio"), jobs).unwrap();
    let mut running = Program::under_test().start(dir.path(), ["--eta=never", "jobs.fio"]);
    let state = dir.path().join("local-killed-1-verify.state");
    running.wait_until("its state", |_| state.exists());
    running.signal(libc::SIGKILL);
    running.wait();
    assert_eq!(states(dir.path()), ["local-killed-1-verify.state"]);
    fs::write(
        dir.path().join("check.fio"),
        jobs.replace("[done]", "verify_only\nverify_state_load=1\n[done]"),
    )
    .unwrap();
    let run = Program::under_test().line(dir.path(), "check.fio").ok();
    run.says("done: there is no local-done-0-verify.state, so nothing is left to check here");
}

/// With verify_state_save=1, the state is kept although everything has been read back, and a later job uses it.
#[test]
fn a_state_that_was_asked_for_stays_and_is_used() {
    let job = "--name=v --nrfiles=3 --size=1m --bs=4k --verify=crc32c --ioengine=libaio --iodepth=32 --loops=4 \
               --output-format=json";
    for program in [vec![Program::under_test()], Program::peers()].concat() {
        let dir = scratch();
        let run = |more: &str| program.line(dir.path(), &format!("{job} {more}"));
        let told = program.version();
        run("--rw=randwrite --verify_state_save=1").ok();
        assert_eq!(states(dir.path()), ["local-v-0-verify.state"], "{told}");
        let state = fs::read(dir.path().join("local-v-0-verify.state")).unwrap();
        let checks = [
            "--rw=read --verify_state_load=1",
            "--rw=randread --verify_state_load=1",
            "--rw=randwrite --verify_only --verify_state_load=1",
            "--rw=randwrite --verify_only",
        ];
        for check in checks {
            let run = run(check).ok();
            assert!(Json::parse(&run.stdout).job().ios()[0] >= 255, "{told} {check}: {run}");
        }
        damage(&dir.path().join("v.0.2"));
        for check in checks {
            assert_eq!(run(check).code(), 1, "{told} {check}");
        }
        if !program.is_peer {
            assert_eq!(fs::read(dir.path().join("local-v-0-verify.state")).unwrap(), state);
        }
    }
}

/// By default, the state is removed as soon as nothing is left to check.
#[test]
fn a_state_that_nobody_asked_for_goes() {
    let dir = scratch();
    let run = |more: &str| {
        Program::under_test()
            .line(dir.path(), &format!("--name=v --size=64k --verify=md5 --rw=write {more}"))
            .ok()
    };
    run("--verify_state_save=1 --numjobs=2");
    assert_eq!(states(dir.path()).len(), 2);
    // A job removes only its own state.
    run("");
    assert_eq!(states(dir.path()), ["local-v-1-verify.state"]);
}
