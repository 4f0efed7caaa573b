//! `nfs` on a real server, which is stopped, killed and restarted.

use crate::common::{Json, Program, report, scratch, start};
use iolite_testing::{Ganesha, Minio, ObjectServer, or_skip, partly_skipped, this_test};
use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Runs tests with both versions of the protocol.
macro_rules! with_both_versions {
    ($($name:ident)*) => {
        pub mod version_3 {
            $(#[test] pub fn $name() { super::$name(3); })*
        }
        pub mod version_4 {
            $(#[test] pub fn $name() { super::$name(4); })*
        }
    };
}

with_both_versions! {
    files_are_made_written_read_synced_listed_and_removed
    a_job_that_only_reads_makes_nothing
    errors_are_explained_without_secrets
    uncommitted_writes_are_sent_again_after_a_restart
    little_waits_to_be_committed_if_little_may
    a_server_that_goes_away_and_comes_back_is_waited_for
    the_state_of_an_interrupted_job_checks_its_writes
    a_server_that_does_not_come_back_is_an_error
    a_full_server_is_an_error_and_not_a_loss
    files_that_may_only_be_read_are_read
    connections_come_from_the_address_of_bind
}

fn nfs(server: &Ganesha, line: &str) -> String {
    format!("--name=job --ioengine=nfs --nfs_url={} --bs=4k {line}", server.url())
}

fn files_are_made_written_read_synced_listed_and_removed(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::of_version(version, dir.path()));
    let run = |line: &str| report(dir.path(), &nfs(&server, line));
    let size = |name: &str| fs::metadata(server.export().join(name)).map(|metadata| metadata.len()).ok();
    let json =
        run("--filename=a --rw=randwrite --size=2m --iodepth=32 --verify=crc32c --fsync=64 --end_fsync=1");
    assert_eq!((json.job().ios()[1], size("a")), (512, Some(2 << 20)));
    assert!(json.job().int("sync.total_ios") >= 7);
    // Blocks that are larger than the server's maximum and not a multiple of it.
    run("--filename=b --rw=write --bs=3m --size=12m --iodepth=4 --verify=sha256");
    run("--filename=b --rw=randread --bs=96k --size=12m --iodepth=16");
    // Directories are created as on a local disk; files are extended, and keep their content.
    run("--directory=deep/er --filename=c --rw=rw --size=256k --numjobs=2");
    let before = fs::read(server.export().join("a")).unwrap();
    run("--filename=a --rw=write --size=3m --offset=2m --fallocate=truncate --iodepth=8 --verify=md5");
    let after = fs::read(server.export().join("a")).unwrap();
    assert_eq!((after.len(), &after[..2 << 20] == before.as_slice()), (5 << 20, true));
    // Whoever comes last finds nothing to remove. (With version 3, a file that is removed is gone for those who still read it.)
    if version == 4 {
        fs::write(server.export().join("all"), vec![7; 64 << 10]).unwrap();
        run("--filename=all --rw=read --numjobs=4 --unlink=1");
        assert_eq!(size("all"), None);
    }
    let listed = run("--opendir=deep/er --rw=read --iodepth=4");
    assert_eq!(listed.job().bytes()[0], 256 << 10);
    for how in ["--sync=1", "--sync=dsync", "--fdatasync=4"] {
        run(&format!("--filename=d --rw=write --size=128k --iodepth=4 {how} --unlink=1"));
        assert_eq!(size("d"), None);
    }
    run("--filename=e --rw=write --size=64k --create_only=1");
    assert_eq!(size("e"), Some(64 << 10), "a reader finds the whole file");
    for refused in ["--rw=trim --size=64k --filename=a", "--rw=write --size=64k --filename=a --readonly"] {
        assert_eq!(start(dir.path(), &nfs(&server, refused)).code(), 1, "{refused}");
    }
}

/// A local disk, NFS and S3 in one run.
#[test]
fn three_storages_are_put_side_by_side() {
    let dir = scratch();
    let server = or_skip!(Ganesha::start(dir.path()));
    // (A server that has just started may not be ready yet.)
    let minio = Minio::start(&dir.path().join("minio"), false).map_err(|why| {
        partly_skipped(&this_test!(), &format!("the objects are in the test's own server: {why}"));
    });
    let own = ObjectServer::start();
    let host = minio.as_ref().map_or_else(|()| own.host(), Minio::host);
    let job = format!(
        "[global]\nrw=write\nbs=64k\nsize=1m\n[local]\nioengine=psync\nfilename=local\n\
         [nfs]\nioengine=nfs\nnfs_url={}\nfilename=remote\niodepth=4\nstonewall\n\
         [objects]\nioengine=http\nhttp_mode=s3\nhttp_host={host}\nhttp_s3_keyid={}\nhttp_s3_key={}\nhttp_retries=8\n\
         http_s3_region=eu-test-1\nfilename=/bkt/object\niodepth=4\nstonewall\n",
        server.url(),
        Minio::ID,
        Minio::SECRET
    );
    fs::write(dir.path().join("three.fio"), job).unwrap();
    let told = start(dir.path(), "three.fio").ok().stdout;
    let (_, table) = told.split_once("Side by side:\n").expect("there is a table");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).take(4).collect();
    assert!(rows[0].ends_with(&["CPU/MiB"]), "{table}");
    let named: Vec<&[&str]> = rows[1..].iter().map(|row| &row[..3]).collect();
    assert_eq!(named, [["local", "psync", "write"], ["nfs", "nfs", "write"], ["objects", "http", "write"]]);
    if let Ok(minio) = &minio {
        assert_eq!(minio.count(), 16, "each block is an object of the real server");
    }
    let json = start(dir.path(), "three.fio --output-format=json").ok().stdout;
    assert_eq!(json.matches("\"cpu_us_per_mib\"").count(), 3);
    // Under the name fio, the output is that of fio.
    let as_fio =
        Program::called_fio(dir.path()).line(dir.path(), "three.fio --output-format=normal,json").ok().stdout;
    assert!(!as_fio.contains("Side by side") && !as_fio.contains("cpu_us_per_mib"), "{as_fio}");
    let alike =
        start(dir.path(), "--name=a --rw=write --size=64k --name=b --rw=write --size=64k").ok().stdout;
    assert!(!alike.contains("Side by side"), "{alike}");
}

fn a_job_that_only_reads_makes_nothing(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::of_version(version, dir.path()));
    fs::write(server.export().join("short"), [1; 8192]).unwrap();
    fs::create_dir(server.export().join("directory")).unwrap();
    for (line, said) in [
        ("--filename=missing", "missing does not exist; a job that only reads makes nothing on a server"),
        ("--filename=short", "short is shorter than the 65536 bytes"),
        ("--filename=directory", "it is a directory"),
    ] {
        let refused = start(dir.path(), &nfs(&server, &format!("--rw=read --size=64k {line}")));
        assert_eq!(refused.code(), 1, "{line}");
        assert!(refused.output().contains(said), "{line}: {}", refused.output());
    }
    assert_eq!(fs::read_dir(server.export()).unwrap().count(), 2);
    assert_eq!(fs::metadata(server.export().join("short")).unwrap().len(), 8192);
    assert_eq!(report(dir.path(), &nfs(&server, "--rw=read --filename=short")).job().bytes()[0], 8192);
}

fn errors_are_explained_without_secrets(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::of_version(version, dir.path()));
    let url = server.url();
    let of = |url: &str| {
        start(dir.path(), &format!("--name=j --ioengine=nfs --nfs_url={url} --rw=write --size=4k"))
    };
    for (url, said) in [
        (url.replace("/export", "/elsewhere"), "cannot mount"),
        (
            url.replace("?", "?version=2&"),
            "version=2: this engine speaks version 3 and, as version=4, version 4.1",
        ),
        (url.replace("127.0.0.1", "me:sesame@127.0.0.1"), "knows no names and passwords"),
        (url.replace("?", "?colour=red&"), "colour= is unknown"),
    ] {
        let refused = of(&url);
        assert_eq!(refused.code(), 1, "{url}");
        assert!(refused.output().contains(said), "{url}: {}", refused.output());
        assert!(!refused.output().contains("sesame"), "{}", refused.output());
    }
    start(dir.path(), &nfs(&server, "--filename=d/../../a --rw=write --size=4k"))
        .refused()
        .says("names on servers do not lead upwards");
    let refused = start(dir.path(), "--name=j --ioengine=nfs --rw=write --size=4k");
    assert!(refused.output().contains("nfs_url= is missing"), "{}", refused.output());
    let job = "[j]\nioengine=nfs\nnfs_url=nfs://me:sesame@h/x\nrw=read\nsize=4k\n";
    fs::write(dir.path().join("j.fio"), job).unwrap();
    let shown = start(dir.path(), "j.fio --showcmd");
    assert!(shown.output().contains("me:***@h") && !shown.output().contains("sesame"), "{}", shown.output());
    // Requests have the user of the URL.
    let other = url.replace('?', "?uid=12345&gid=12345&");
    let refused = of(&other);
    assert!(refused.output().contains(&format!("NFS{version}ERR_ACCES")), "{}", refused.output());
}

fn uncommitted_writes_are_sent_again_after_a_restart(version: u32) {
    let dir = scratch();
    let mut server = or_skip!(Ganesha::of_version(version, dir.path()));
    let line = nfs(
        &server,
        "--filename=a --rw=randwrite --size=4m --iodepth=8 --rate_iops=500 --verify=crc32c --end_fsync=1",
    );
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    let before = server.bytes_sent();
    running.wait_until("something is written", |_| server.bytes_sent() > before + (200 << 10));
    // Simulates the loss of data in the server's memory by overwriting the file.
    server.kill();
    let file = server.export().join("a");
    let size = fs::metadata(&file).unwrap().len();
    fs::write(&file, vec![0; size as usize]).unwrap();
    server.restart().unwrap();
    let done = running.wait().ok();
    assert!(done.stdout.contains("the server has started anew"), "{}", done.stdout);
    assert!(done.stdout.contains("sent again"), "{}", done.stdout);
    assert!(done.stdout.contains("the connection was lost and made again"), "{}", done.stdout);
    let check = nfs(&server, "--filename=a --rw=randwrite --size=4m --verify=crc32c --verify_only=1");
    assert_eq!(report(dir.path(), &check).job().ios()[0], 1024, "all of it is checked");
}

fn little_waits_to_be_committed_if_little_may(version: u32) {
    let dir = scratch();
    let mut server = or_skip!(Ganesha::of_version(version, dir.path()));
    // A job that neither syncs nor verifies keeps no copies, and reports that data may be lost.
    let line = nfs(&server, "--filename=p --rw=write --size=4m --iodepth=8 --rate_iops=500");
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    let before = server.bytes_sent();
    running.wait_until("something is written", |_| server.bytes_sent() > before + (200 << 10));
    server.restart().unwrap();
    let told = running.wait();
    assert!(told.output().contains("bytes may be lost"), "{}", told.output());
    assert_eq!(told.code(), 1);
    // Writes are committed when there are too many copies.
    let resent = |words: &str| {
        let line =
            format!("--filename=q --rw=write --size=8m --iodepth=8 --verify=crc32c --do_verify=0 {words}");
        let before = server.bytes_sent();
        report(dir.path(), &nfs(&server, &line));
        server.bytes_sent() - before
    };
    assert!(resent("--nfs_uncommitted=64k") > resent("--nfs_uncommitted=64m"), "commits are requests");
}

fn a_server_that_goes_away_and_comes_back_is_waited_for(version: u32) {
    let dir = scratch();
    let mut server = or_skip!(Ganesha::of_version(version, dir.path()));
    report(dir.path(), &nfs(&server, "--filename=a --rw=write --size=4m"));
    // The server hangs for ten seconds, or is killed and restarted after ten seconds.
    for (rw, is_killed) in [
        ("--rw=randrw --verify=crc32c", true),
        ("--rw=randread", false),
        ("--rw=randrw --verify=crc32c", false),
    ] {
        let line = nfs(
            &server,
            &format!("--filename=a {rw} --size=4m --iodepth=8 --rate_iops=300 --output-format=json"),
        );
        let mut running = Program::own().start(dir.path(), line.split_whitespace());
        let before = server.bytes_sent();
        running.wait_until("something is asked for", |_| server.bytes_sent() > before + (32 << 10));
        match is_killed {
            true => server.kill(),
            false => server.signal(libc::SIGSTOP),
        }
        std::thread::sleep(Duration::from_secs(10));
        match is_killed {
            true => server.restart().unwrap(),
            false => server.signal(libc::SIGCONT),
        }
        let json = Json::parse(&running.wait().ok().stdout);
        let ios = json.job().ios();
        assert!(ios[0] + ios[1] >= 1024, "{rw}: {ios:?}");
        let slowest = ["read", "write"].map(|side| json.job().int(&format!("{side}.lat_ns.max")));
        assert!(
            slowest.iter().any(|&slowest| slowest > 5_000_000_000),
            "{rw} was over before the stop: {slowest:?}"
        );
    }
    // A lost connection is re-established, and requests in flight are sent again.
    let line = nfs(&server, "--filename=a --rw=randrw --size=2m --iodepth=8 --rate_iops=400 --verify=crc32c");
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    let before = server.bytes_sent();
    running.wait_until("something is written", |_| server.bytes_sent() > before + (200 << 10));
    server.cut();
    let done = running.wait().ok();
    assert!(done.stdout.contains("made again: 1"), "{}", done.stdout);
}

fn the_state_of_an_interrupted_job_checks_its_writes(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::of_version(version, dir.path()));
    let job = "--filename=s --rw=write --size=8m --iodepth=4 --verify=crc32c --verify_state_save=1";
    let line = nfs(&server, &format!("{job} --rate_iops=300 --do_verify=0 --output-format=json"));
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    let before = server.bytes_sent();
    running.wait_until("something is written", |_| server.bytes_sent() > before + (100 << 10));
    running.signal(libc::SIGINT);
    let written = Json::parse(&running.wait().stdout).job().ios()[1];
    let size = fs::metadata(server.export().join("s")).unwrap().len();
    assert!(written > 0 && size < 8 << 20, "{written} blocks, {size} bytes");
    let check = nfs(&server, &format!("{job} --verify_only=1 --verify_state_load=1"));
    assert_eq!(
        report(dir.path(), &check).job().ios()[0],
        written,
        "each write that the report counts is checked"
    );
}

fn a_server_that_does_not_come_back_is_an_error(version: u32) {
    let dir = scratch();
    let mut server = or_skip!(Ganesha::of_version(version, dir.path()));
    let job = "--filename=a --size=4m --iodepth=8 --rate_iops=300 --nfs_timeout=2s";
    report(dir.path(), &nfs(&server, "--filename=a --rw=write --size=4m"));
    for (rw, kill) in [
        ("randwrite", false),
        ("randread", false),
        ("randread", true),
        ("randwrite", true),
        ("randwrite --verify=crc32c", true),
    ] {
        let line = nfs(&server, &format!("{job} --rw={rw}"));
        let mut running = Program::own().start(dir.path(), line.split_whitespace());
        let before = server.bytes_sent();
        running.wait_until("something is written", |_| server.bytes_sent() > before + (100 << 10));
        if kill {
            server.kill()
        } else {
            server.signal(libc::SIGSTOP)
        }
        let done = running.wait();
        let said = if kill { "the connection was lost" } else { "no answer within 2 s (nfs_timeout)" };
        assert_eq!(done.code(), 1);
        assert!(done.output().contains(said), "{}", done.output());
        // The failed requests are the job's error. Another message says that earlier writes were not committed.
        let is_at_risk = kill && rw.starts_with("randwrite");
        assert!(!is_at_risk || done.output().contains("bytes may be lost"), "{}", done.output());
        match kill {
            true => server.restart().unwrap(),
            false => server.signal(libc::SIGCONT),
        }
    }
}

fn a_full_server_is_an_error_and_not_a_loss(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::with_room(version, dir.path(), Some(4 << 20)));
    // Whether the file grows with the writes, or has its size before.
    for how in ["--rw=write --fallocate=none", "--rw=randwrite --fallocate=truncate --fsync=256"] {
        let full = start(dir.path(), &nfs(&server, &format!("--filename=big --size=16m --iodepth=8 {how}")));
        assert_eq!(full.code(), 1, "{}", full.output());
        let said = format!("NFS{version}ERR_NOSPC (no space left on the server)");
        assert!(full.output().contains(&said), "{}", full.output());
    }
    // (The server keeps a file open whose removal is not its own.)
    report(dir.path(), &nfs(&server, "--filename=big --rw=read --size=4k --unlink=1"));
    report(dir.path(), &nfs(&server, "--filename=little --rw=write --size=1m --iodepth=8 --verify=crc32c"));
}

fn files_that_may_only_be_read_are_read(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::of_version(version, dir.path()));
    fs::write(server.export().join("theirs"), vec![7; 64 << 10]).unwrap();
    let url = server.url().replace('?', "?uid=12345&gid=12345&");
    let run = |line: &str| {
        start(
            dir.path(),
            &format!("--name=j --ioengine=nfs --nfs_url={url} --filename=theirs --size=64k {line}"),
        )
    };
    assert!(run("--rw=randread --iodepth=4").ok().stdout.contains("issued rwts: total=16,"));
    let refused = run("--rw=randwrite --iodepth=4");
    assert_eq!(refused.code(), 1);
    let said = if version == 3 { "NFS3ERR_ACCES" } else { "NFS4ERR_" };
    assert!(refused.output().contains(said), "{}", refused.output());
    assert_eq!(fs::read(server.export().join("theirs")).unwrap(), vec![7; 64 << 10]);
}

/// A server that takes connections and says nothing is asked once for all jobs, and not once for each question of each.
#[test]
fn a_silent_server_is_asked_once() {
    let dir = scratch();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        let mut connections = Vec::new();
        for connection in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::Relaxed);
            connections.push(connection);
        }
    });
    let url = format!("nfs_url=nfs://127.0.0.1/x?version=4&nfsport={port}");
    let jobs = ["a", "b", "c"].map(|name| format!("[{name}]\nfilename={name}\n")).concat();
    let job = format!("[global]\nioengine=nfs\n{url}\nnfs_timeout=1s\nrw=read\nsize=4k\n{jobs}");
    fs::write(dir.path().join("silent.fio"), job).unwrap();
    let mut refused = start(dir.path(), "silent.fio").refused();
    for name in ["a", "b", "c"] {
        refused = refused.says(&format!("{name}: ioengine=nfs: 127.0.0.1:{port}: no answer within 1 s"));
    }
    assert_eq!(count.load(Ordering::Relaxed), 1, "{}", refused.output());
}

/// A client of version 4 that its server has forgotten, because it was silent for longer than its lease, goes on.
#[test]
fn a_job_that_thinks_for_longer_than_the_lease_goes_on() {
    let dir = scratch();
    let mut server = or_skip!(Ganesha::of_version(4, dir.path()));
    server.set_lease(10);
    or_skip!(server.restart());
    let job = "--filename=a --rw=write --size=8k --thinktime=12s --verify=crc32c --end_fsync=1";
    let done = start(dir.path(), &nfs(&server, job)).ok();
    assert!(!done.stdout.contains("ended the session"), "the lease was renewed: {}", done.stdout);
    // Jobs also wait for others that are set up, alone and with submitters that each have a session.
    let job = |name: &str, more: &str| {
        let job = "rw=write\nsize=64k\nverify=crc32c\nend_fsync=1";
        format!("[{name}]\nioengine=nfs\nnfs_url={}\nfilename={name}\n{job}\n{more}\n", server.url())
    };
    let offloaded = job("offloaded", "io_submit_mode=offload\niodepth=3");
    let slow = "[slow]\nioengine=null\nrw=read\nsize=4k\nexec_prerun=sleep 25\n";
    fs::write(dir.path().join("waits.fio"), job("alone", "") + &offloaded + slow).unwrap();
    let done = start(dir.path(), "waits.fio").ok();
    assert!(!done.stdout.contains("ended the session"), "the leases were renewed: {}", done.stdout);
    // With a grace period, files are reclaimed in it.
    server.set_grace(true);
    or_skip!(server.restart());
    let line =
        nfs(&server, "--filename=b --rw=randwrite --size=4m --iodepth=8 --rate_iops=400 --verify=crc32c");
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    let before = server.bytes_sent();
    running.wait_until("something is written", |_| server.bytes_sent() > before + (200 << 10));
    server.restart().unwrap();
    let done = running.wait().ok();
    assert!(done.stdout.contains("another one was made: 1"), "{}", done.stdout);
}

fn connections_come_from_the_address_of_bind(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::of_version(version, dir.path()));
    // As the kernel shows this address.
    let (address, shown) = [("127.0.3.7", "0703007F:"), ("127.0.4.7", "0704007F:")][version as usize - 3];
    let line = "--filename=a --rw=write --size=4m --iodepth=4 --rate_iops=100 --verify=crc32c";
    let words = nfs(&server, &format!("{line} --bind={address}"));
    let mut running = Program::own().start(dir.path(), words.split_whitespace());
    running.wait_until("it is connected", |_| {
        fs::read_to_string("/proc/net/tcp").is_ok_and(|connections| connections.contains(shown))
    });
    running.signal(libc::SIGINT);
    running.wait();
    report(dir.path(), &nfs(&server, "--filename=a --rw=write --size=64k --bind=lo"));
    for (bind, said) in
        [("192.0.2.77", "bind=192.0.2.77: this machine has no such address"), ("::1", "bind=::1")]
    {
        let line = format!("--filename=a --rw=write --size=64k --bind={bind}");
        start(dir.path(), &nfs(&server, &line)).refused().says(said);
    }
}
