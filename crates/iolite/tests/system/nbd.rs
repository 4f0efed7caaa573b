//! `nbd` on real servers: nbdkit and qemu-nbd.

use crate::common::{Json, Program, report, scratch, start};
use iolite_testing::{NbdServer, certificate, or_skip, partly_skipped, this_test, write_program};
use std::fs;
use std::os::unix::fs::MetadataExt;

fn nbd(server: &NbdServer, line: &str) -> String {
    format!("--name=job --ioengine=nbd --uri={} --bs=4k {line}", server.uri())
}

#[test]
fn devices_are_read_written_trimmed_and_synced() {
    let dir = scratch();
    let server = or_skip!(NbdServer::nbdkit(dir.path(), "memory 8M"));
    let run = |line: &str| report(dir.path(), &nbd(&server, line));
    // The size is that of the server's device.
    let json = run("--rw=randwrite --iodepth=32 --verify=crc32c --fsync=64");
    assert_eq!(json.job().bytes(), [8 << 20, 8 << 20, 0]);
    run("--rw=randrw --iodepth=16 --numjobs=2 --size=4m --offset_increment=4m --verify=md5");
    assert_eq!(run("--rw=read --bs=1m --iodepth=4 --thread").job().bytes()[0], 8 << 20);
    assert_eq!(run("--rw=randtrim --iodepth=8 --size=1m").job().ios()[2], 256);
    run("--rw=randtrimwrite --iodepth=4 --size=1m --verify=crc32c --trim_verify_zero=1");
    run("--rw=write --size=256k --sync=1 --end_fsync=1");
    for (line, said) in [
        (
            "--rw=write --size=4k --unlink=1",
            "unlink=1: with ioengine=nbd an image or disk cannot be removed by a job",
        ),
        ("--rw=write --size=4k --unlink_each_loop=1", "unlink_each_loop=1: with ioengine=nbd"),
        ("--rw=write --size=8k --filename=a:b", "have one file"),
        ("--rw=read --opendir=x", "there is nothing to list"),
        ("--rw=write --size=4k --readonly", "--readonly"),
    ] {
        let refused = start(dir.path(), &nbd(&server, line));
        assert_eq!(refused.code(), 1, "{line}: {}", refused.output());
        assert!(refused.output().contains(said), "{line}: {}", refused.output());
    }
    // fio leaves the device alone.
    let called = Program::called_fio(dir.path());
    called.line(dir.path(), &nbd(&server, "--rw=write --size=64k --unlink=1")).ok();
    called.line(dir.path(), &nbd(&server, "--rw=write --size=64k --unlink_each_loop=1 --loops=2")).ok();
}

#[test]
fn a_file_behind_qemu_has_what_was_written_and_loses_what_was_trimmed() {
    let dir = scratch();
    let image = dir.path().join("image");
    fs::write(&image, vec![1; 4 << 20]).unwrap();
    let server = or_skip!(NbdServer::qemu(dir.path(), &image));
    report(
        dir.path(),
        &nbd(&server, "--rw=write --size=1m --verify=sha256 --end_fsync=1 --numjobs=2 --offset_increment=1m"),
    );
    let bytes = fs::read(&image).unwrap();
    assert!(bytes[..1 << 20].iter().any(|&byte| byte != 1) && bytes[2 << 20..].iter().all(|&byte| byte == 1));
    let before = fs::metadata(&image).unwrap().blocks();
    report(dir.path(), &nbd(&server, "--rw=trim --bs=1m --size=4m"));
    assert!(fs::metadata(&image).unwrap().blocks() < before, "trims give space back");
}

#[test]
fn encrypted_connections_check_certificates() {
    let dir = scratch();
    let server = or_skip!(NbdServer::encrypted(dir.path(), "memory 4M"));
    report(dir.path(), &nbd(&server, "--rw=randwrite --iodepth=16 --verify=crc32c"));
    let other = scratch();
    let stranger = server.uri().replace(dir.path().to_str().unwrap(), other.path().to_str().unwrap());
    let open = server.uri().split('?').next().unwrap().replace("nbds", "nbd");
    // An authority that did not issue the server's certificate.
    let keys = other.path().join("certificates");
    for said in ["there is no ca-cert.pem in", "certificate"] {
        if said == "certificate" {
            fs::create_dir(&keys).unwrap();
            fs::copy(certificate("elsewhere.crt"), keys.join("ca-cert.pem")).unwrap();
        }
        let refused = start(dir.path(), &format!("--name=job --ioengine=nbd --uri={stranger} --rw=read"));
        assert_eq!(refused.code(), 1, "{}", refused.output());
        assert!(refused.output().replace(&stranger, "").contains(said), "{}", refused.output());
    }
    // A client without encryption is rejected.
    let refused = start(dir.path(), &format!("--name=job --ioengine=nbd --uri={open} --rw=read"));
    assert_eq!(refused.code(), 1, "{}", refused.output());
    assert!(refused.output().contains("TLS"), "{}", refused.output());
}

#[test]
fn server_errors_become_unit_errors() {
    let dir = scratch();
    let trigger = dir.path().join("trigger");
    let words = format!(
        "--filter=error memory 4M error-pread=EIO error-pwrite=ENOSPC error-file={}",
        trigger.display()
    );
    let server = or_skip!(NbdServer::nbdkit(dir.path(), &format!("{words} error-rate=100%")));
    report(dir.path(), &nbd(&server, "--rw=rw --iodepth=8"));
    fs::write(&trigger, "").unwrap();
    for (rw, errno, words) in
        [("read", libc::EIO, "Input/output error"), ("write", libc::ENOSPC, "No space left on device")]
    {
        let failed = start(dir.path(), &nbd(&server, &format!("--rw={rw} --iodepth=8 --size=1m")));
        assert_eq!(failed.code(), 1);
        assert!(failed.output().contains(&format!("err={errno:2} ")), "{}", failed.output());
        assert!(failed.output().contains(words), "{}", failed.output());
    }
    let counted = start(dir.path(), &nbd(&server, "--rw=read --iodepth=8 --size=1m --continue_on_error=all"));
    assert!(counted.output().contains("total=256"), "{}", counted.output());
    drop(server);
    let server = or_skip!(NbdServer::nbdkit(dir.path(), "-r memory 4M"));
    let refused = start(dir.path(), &nbd(&server, "--rw=write --size=1m"));
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("permits no writes"), "{}", refused.output());
    report(dir.path(), &nbd(&server, "--rw=read --size=1m"));
}

#[test]
pub fn a_server_that_dies_or_hangs_is_an_error() {
    let dir = scratch();
    for kill in [true, false] {
        let mut server =
            or_skip!(NbdServer::nbdkit(dir.path(), "--filter=stats memory 64M statsfile=/dev/null"));
        // (On a busy machine, an answer may take a second anyway.)
        let limit = if kill { "60s" } else { "1s" };
        let job = format!(
            "--rw=randwrite --iodepth=8 --time_based --runtime=60 --rate_iops=1000 --nbd_timeout={limit} --status-interval=100ms"
        );
        let line = nbd(&server, &job);
        let mut running = Program::own().start(dir.path(), line.split_whitespace());
        running.wait_until("it runs", |running| running.stdout().contains("IOPS="));
        if kill {
            server.kill()
        } else {
            server.signal(libc::SIGSTOP)
        }
        let ended = running.wait();
        let said = if kill { "the connection was lost" } else { "no answer within 1 s (nbd_timeout)" };
        assert_eq!(ended.code(), 1);
        assert!(ended.output().contains(said), "{}", ended.output());
    }
    let server = or_skip!(NbdServer::nbdkit(dir.path(), "memory 4M"));
    server.signal(libc::SIGSTOP);
    let refused = start(dir.path(), &nbd(&server, "--rw=read --nbd_timeout=1s"));
    assert!(refused.output().contains("no answer within 1 s (nbd_timeout)"), "{}", refused.output());
}

/// The server greets the first connections and none after them. Three are made before the job runs: to see whether the
/// engine works, for the size, and for the layout. With submitting threads, the worker has one too.
#[test]
fn an_interrupted_job_does_not_wait_for_a_silent_server_to_greet_it() {
    const SERVER: &str = "case $1 in
        get_size) echo 4M ;;
        open)
            echo >> opened
            test $(wc -l < opened) -le $(cat greeted) && exit
            touch reached
            while test -e reached; do sleep 0.1; done ;;
        *) exit 2 ;;
    esac";
    for (mode, greeted) in [("inline", 3), ("offload", 4)] {
        let dir = scratch();
        let script = dir.path().join("server");
        let text = format!("#!/bin/sh\ncd {}\n{SERVER}\n", dir.path().display());
        write_program(&script, &text).unwrap();
        fs::write(dir.path().join("greeted"), greeted.to_string()).unwrap();
        let server = or_skip!(NbdServer::nbdkit(dir.path(), &format!("sh {}", script.display())));
        let line = nbd(&server, &format!("--rw=read --io_submit_mode={mode} --nbd_timeout=0"));
        let mut running = Program::own().start(dir.path(), line.split_whitespace());
        running.wait_until("it connects", |_| dir.path().join("reached").exists());
        running.signal(libc::SIGINT);
        let ended = running.wait();
        let said = "no answer in 10 s after the job was asked to end";
        assert!(ended.output().contains(said), "{mode}: {}", ended.output());
    }
}

#[test]
pub fn wrong_uris_are_explained() {
    let dir = scratch();
    let server = or_skip!(NbdServer::nbdkit(dir.path(), "memory 4M"));
    let nowhere = format!("--uri=nbd+unix:///?socket={}", dir.path().join("missing").display());
    let of = |words: &str| start(dir.path(), &format!("--name=job --ioengine=nbd --rw=read {words}"));
    for (words, said) in [
        ("", "uri= is missing"),
        ("--uri=http://h", "scheme"),
        (&nowhere, "No such file or directory"),
        ("--uri=nbd://me:sesame@127.0.0.1:1", "uri=nbd://me:***@127.0.0.1:1: "),
        // The library quotes text that it cannot parse.
        ("--uri=nbds://me:sesame%zz@h/x", "uri=nbds://me:***@h/x: "),
        ("--uri=nbd://me:sesame[@h/x", "uri=nbd://me:***@h/x: "),
        ("--uri=nbd://me:sesa/sesame@h/x", "uri=nbd://me:***@h/x: "),
    ] {
        let refused = of(words);
        assert_eq!(refused.code(), 1, "{words}");
        assert!(refused.output().contains(said), "{words}: {}", refused.output());
        assert!(!refused.output().contains("sesame"), "{}", refused.output());
    }
    of(&format!("--uri={}", server.uri())).ok();
}

#[test]
fn it_does_what_fio_does() {
    let dir = scratch();
    let server = or_skip!(NbdServer::nbdkit(dir.path(), "memory 8M"));
    let mut has_compared = false;
    for peer in Program::peers() {
        let lists = peer.run(dir.path(), ["--enghelp"]).output().lines().any(|line| line.trim() == "nbd");
        if !lists {
            continue;
        }
        has_compared = true;
        // Each program reads the other's writes. The size is the server's.
        for (writer, reader) in [(Program::own(), peer.clone()), (peer.clone(), Program::own())] {
            let job = nbd(&server, "--rw=randwrite --iodepth=8 --verify=crc32c --randseed=7 --size=8m");
            let json = |program: &Program, words: &str| {
                let header = match program.is_peer {
                    true => String::new(),
                    false => format!("--verify_header_format={}", peer.release.header),
                };
                let line = format!("{job} {header} {words} --output-format=json");
                let told = program.line(dir.path(), &line).ok().stdout;
                Json::parse(&told[told.find('{').unwrap_or_default()..])
            };
            let written = json(&writer, "--do_verify=0");
            assert_eq!(written.job().bytes()[1], 8 << 20);
            let read = json(&reader, "--verify_only=1");
            assert_eq!(read.job().bytes()[0], 8 << 20);
        }
    }
    if !has_compared {
        partly_skipped(&this_test!(), "no fio here has nbd");
    }
}

#[test]
pub fn connections_come_from_the_address_of_bind() {
    let dir = scratch();
    let server = or_skip!(NbdServer::on_port(dir.path(), "memory 8M"));
    // As the kernel shows this address.
    let (address, shown) = ("127.0.5.8", "0805007F:");
    let line = format!("--rw=write --size=4m --iodepth=4 --rate_iops=100 --bind={address}");
    let words = nbd(&server, &line);
    let mut running = Program::own().start(dir.path(), words.split_whitespace());
    running.wait_until("it is connected", |_| {
        fs::read_to_string("/proc/net/tcp").is_ok_and(|connections| connections.contains(shown))
    });
    running.signal(libc::SIGINT);
    running.wait();
    report(dir.path(), &nbd(&server, "--rw=randwrite --size=1m --iodepth=8 --verify=crc32c --bind=lo"));
    let said = |uri: &str, bind: &str, said: &str| {
        let line = format!("--name=job --ioengine=nbd --uri={uri} --rw=read --size=4k --bind={bind}");
        start(dir.path(), &line).refused().says(said);
    };
    said(server.uri(), "192.0.2.77", "bind=192.0.2.77: this machine has no such address");
    said("nbd+unix:///?socket=/none", "127.0.0.8", "bind=127.0.0.8: this is for nbd://");
}
