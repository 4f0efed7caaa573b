//! `libiscsi` on a real target (tgt).

use crate::common::program::Running;
use crate::common::{Program, report, scratch, start};
use iolite_testing::{Tgt, or_skip};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

fn iscsi(name: &str, line: &str) -> String {
    format!("--name=job --ioengine=libiscsi --filename={name} --bs=4k {line}")
}

#[test]
fn disks_are_read_written_trimmed_and_synced() {
    let dir = scratch();
    let target = or_skip!(Tgt::start(dir.path(), 8 << 20, 512, false));
    let run = |line: &str| report(dir.path(), &iscsi(&target.name(""), line));
    let json = run("--rw=randwrite --iodepth=32 --verify=crc32c --fsync=64 --end_fsync=1");
    assert_eq!(json.job().bytes(), [8 << 20, 8 << 20, 0]);
    run("--rw=randrw --iodepth=16 --numjobs=2 --size=4m --offset_increment=4m --verify=md5");
    assert_eq!(run("--rw=read --bs=512k --iodepth=4 --thread").job().bytes()[0], 8 << 20);
    run("--rw=write --bs=512 --size=64k --sync=1");
    assert!(fs::read(target.image()).unwrap()[..4096].iter().any(|&byte| byte != 0));
    let before = fs::metadata(target.image()).unwrap().blocks();
    assert_eq!(run("--rw=trim --bs=1m --size=8m --iodepth=2").job().ios()[2], 8);
    assert!(fs::metadata(target.image()).unwrap().blocks() < before, "trims give space back");
    // A URL without the backslashes works as well.
    report(dir.path(), &iscsi(&target.name("").replace('\\', ""), "--rw=randread --iodepth=8 --size=1m"));
    for (line, said) in [
        (
            "--rw=write --size=4k --unlink=1",
            "unlink=1: with ioengine=libiscsi an image or disk cannot be removed by a job",
        ),
        ("--rw=read --bs=768 --size=768k", "the disk has blocks of 512 bytes"),
        ("--rw=write --size=4k --readonly", "--readonly"),
    ] {
        let refused = start(dir.path(), &iscsi(&target.name(""), line));
        assert_eq!(refused.code(), 1, "{line}: {}", refused.output());
        assert!(refused.output().contains(said), "{line}: {}", refused.output());
    }
    target.protect();
    let refused = start(dir.path(), &iscsi(&target.name(""), "--rw=write --size=64k"));
    assert!(refused.output().contains("write-protected"), "{}", refused.output());
    run("--rw=read --size=64k");
}

#[test]
fn large_blocks_are_the_disks_own() {
    let dir = scratch();
    let target = or_skip!(Tgt::start(dir.path(), 8 << 20, 4096, false));
    report(dir.path(), &iscsi(&target.name(""), "--rw=randwrite --iodepth=8 --verify=crc32c"));
    let refused = start(dir.path(), &iscsi(&target.name(""), "--rw=read --bs=512 --size=64k"));
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("bs=512: the disk has blocks of 4096 bytes"), "{}", refused.output());
    for rw in ["read", "write", "trim"] {
        let line = format!("--rw={rw} --size=64k --offset=512");
        let refused = start(dir.path(), &iscsi(&target.name(""), &line));
        assert_eq!(refused.code(), 1, "{line}: {}", refused.output());
        assert!(
            refused.output().contains("the disk has blocks of 4096 bytes"),
            "{line}: {}",
            refused.output()
        );
    }
}

#[test]
pub fn targets_ask_for_passwords_which_are_shown_nowhere() {
    let dir = scratch();
    let target = or_skip!(Tgt::start(dir.path(), 4 << 20, 512, true));
    let (user, password) = (Tgt::USER, Tgt::PASSWORD);
    let in_url = target.name(&format!("{user}%{password}@"));
    let named = target.name(&format!("{user}@"));
    fs::write(dir.path().join("password"), password).unwrap();
    let job =
        format!("[j]\nioengine=libiscsi\nfilename={in_url}\nrw=randrw\nsize=1m\nbs=4k\nverify=crc32c\n");
    fs::write(dir.path().join("j.fio"), job).unwrap();
    let run = |line: &str| {
        let mut command = Command::new(Program::own().path);
        command.args(line.split_whitespace()).current_dir(dir.path());
        command.env("IOLITE_TEST_ISCSI_PASSWORD", password).env("IOLITE_TEST_ISCSI_PROOF", Tgt::PROOF);
        Running::start(&mut command).wait()
    };
    let (proof, secret) = (target.proof(), Tgt::PROOF);
    fs::write(dir.path().join("proof-of-target"), secret).unwrap();
    let disk = format!("{in_url}?target_user=disk");
    for line in [
        iscsi(&in_url, "--rw=randwrite --iodepth=8 --size=1m --output-format=json --debug=all"),
        iscsi(&in_url, "--rw=randwrite --size=64k --write_iolog=trace --write_lat_log=log"),
        iscsi(
            &named,
            "--rw=read --size=64k --iscsi_password_file=password --output-format=normal,json,terse",
        ),
        iscsi(&named, "--rw=read --size=64k --iscsi_password_env=IOLITE_TEST_ISCSI_PASSWORD"),
        iscsi(&named, &format!("--rw=read --size=64k --iscsi_password={password} --output-format=json")),
        // The target authenticates itself as well.
        iscsi(&format!("{in_url}{proof}"), "--rw=randwrite --size=64k --output-format=json --debug=all"),
        iscsi(&format!("{in_url}{proof}"), "--rw=randwrite --size=64k --write_iolog=proof"),
        iscsi(
            &disk,
            "--rw=read --size=64k --iscsi_target_password_file=proof-of-target --output-format=normal,json,terse",
        ),
        iscsi(&disk, "--rw=read --size=64k --iscsi_target_password_env=IOLITE_TEST_ISCSI_PROOF --debug=all"),
        iscsi(&disk, &format!("--rw=read --size=64k --iscsi_target_password={secret} --output-format=json")),
        iscsi(&disk, &format!("--rw=read --size=64k --iscsi_target_password={secret} --showcmd")),
        "j.fio".to_owned(),
        "j.fio --showcmd".to_owned(),
    ] {
        let done = run(&line).ok();
        assert!(!done.output().contains(password), "{line}: {}", done.output());
        assert!(!done.output().contains(secret), "{line}: {}", done.output());
    }
    assert!(!fs::read_to_string(dir.path().join("proof")).unwrap().contains(secret));
    assert!(!fs::read_to_string(dir.path().join("trace")).unwrap().contains(password));
    let wrong = target.name(&format!("{user}%wrong-password-1@"));
    for (line, said) in [
        (iscsi(&wrong, "--rw=read"), "the login is refused"),
        (iscsi(&target.name(""), "--rw=read"), "the login is refused"),
        (iscsi(&named, "--rw=read"), "the password is missing"),
        (
            iscsi(&format!("{in_url}?target_user=disk&target_password=wrong-password-1"), "--rw=read"),
            "the target has another password",
        ),
        (iscsi(&disk, "--rw=read"), "the password is missing (iscsi_target_password_file"),
        (
            iscsi(&disk, "--rw=read --iscsi_target_password=wrong-password-1"),
            "the target has another password",
        ),
        (
            iscsi(&disk, "--rw=read --iscsi_target_password_file=none"),
            "iscsi_target_password_file: none: No such",
        ),
        (iscsi(&named, "--rw=read --iscsi_password_file=none"), "iscsi_password_file: none: No such"),
        (iscsi(&format!("{in_url}?target_password=wrong-password-1"), "--rw=read"), "needs target_user="),
        (iscsi(&format!("{}{proof}", target.name("")), "--rw=read"), "only to a user who does"),
        (iscsi(&format!("{in_url}?auth=wrong-password-1"), "--rw=read"), "?auth is unknown"),
    ] {
        let refused = start(dir.path(), &line);
        assert_eq!(refused.code(), 1, "{line}");
        assert!(!refused.output().contains("wrong-password-1"), "{}", refused.output());
        assert!(!refused.output().contains(password), "{}", refused.output());
        assert!(refused.output().contains(said), "{line}: {}", refused.output());
    }
    for option in ["iscsi_password", "iscsi_target_password"] {
        let idle = run(&iscsi(&in_url, &format!("--rw=read --size=64k --{option}=wrong-password-1"))).ok();
        assert!(idle.stderr.contains(&format!("{option}: has no effect: no URL")), "{}", idle.stderr);
    }
}

#[test]
pub fn a_target_that_goes_away_is_an_error() {
    let dir = scratch();
    for kill in [true, false] {
        let mut target = or_skip!(Tgt::start(&dir.path().join(kill.to_string()), 16 << 20, 512, false));
        // (On a busy machine, an answer may take a second anyway.)
        let limit = if kill { "60s" } else { "1s" };
        let job = format!(
            "--rw=randwrite --iodepth=8 --time_based --runtime=60 --rate_iops=500 --iscsi_timeout={limit} --status-interval=100ms"
        );
        let line = iscsi(&target.name(""), &job);
        let mut running = Program::own().start(dir.path(), line.split_whitespace());
        running.wait_until("it runs", |running| running.stdout().contains("IOPS="));
        if kill {
            target.kill()
        } else {
            target.signal(libc::SIGSTOP)
        }
        let ended = running.wait();
        let said = if kill { "the connection was lost" } else { "no answer within 1 s (iscsi_timeout)" };
        assert_eq!(ended.code(), 1);
        assert!(ended.output().contains(said), "{}", ended.output());
    }
}

#[test]
pub fn wrong_addresses_are_explained() {
    let dir = scratch();
    let target = or_skip!(Tgt::start(dir.path(), 4 << 20, 512, false));
    let good = target.name("");
    for (name, said) in [
        ("disk".to_owned(), "a disk is named as in filename=iscsi://"),
        (good.replace("disk/1", "disk/x"), "the number of the disk"),
        (good.replace("disk/1", "other/1"), "there is no connection: Failed to log in"),
        (good.replace("disk/1", "disk/9"), "disk/9: the target has no disk of this number"),
        (r"iscsi\://127.0.0.1\:1/iqn.x/1".to_owned(), "iqn.x/1: there is no connection: "),
    ] {
        let refused = start(dir.path(), &iscsi(&name, "--rw=read --iscsi_timeout=5s"));
        assert_eq!(refused.code(), 1, "{name}");
        assert!(refused.output().contains(said), "{name}: {}", refused.output());
    }
    let other = iscsi(&good, "--rw=read --size=64k --iscsi_initiator=iqn.2026-01.org.example:me");
    report(dir.path(), &other);
}

#[test]
pub fn sessions_come_from_the_interface_of_bind() {
    let dir = scratch();
    let target = or_skip!(Tgt::start(dir.path(), 8 << 20, 512, false));
    report(dir.path(), &iscsi(&target.name(""), "--rw=write --size=64k --bind=lo"));
    for (bind, said) in [
        ("none9", "bind=none9: this machine has neither"),
        ("127.0.0.1", "bind=127.0.0.1: libiscsi connects from interfaces"),
    ] {
        let line = format!("--rw=write --size=64k --bind={bind}");
        start(dir.path(), &iscsi(&target.name(""), &line)).refused().says(said);
    }
}
