//! `iolite test` of storage that a URL names: against real servers, whose side shows what was done and what is left.

use crate::common::program::{Running, send};
use crate::common::s3::{self, S3};
use crate::common::{Finished, scratch};
use iolite_testing::{Ceph, ClosedPort, Ganesha, NbdServer, Nginx, ObjectServer, Reply, Tgt, or_skip};
use std::fs;
use std::path::Path;

fn run(dir: &Path, environment: &[(&str, &str)], line: &str) -> Finished {
    Running::of_ours(dir, environment, line).wait()
}

fn has_cases(run: &Finished, names: &[&str]) {
    for name in names {
        assert!(run.stdout.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}: {run}");
    }
}

/// The jobs of a URL are a job file that has no mistakes.
fn shows_jobs(dir: &Path, environment: &[(&str, &str)], url: &str) {
    let shown = run(dir, environment, &format!("test --show-job {url}")).ok();
    fs::write(dir.join("shown.fio"), &shown.stdout).unwrap();
    run(dir, environment, "--parse-only shown.fio").ok();
}

#[test]
fn a_disk_of_a_server_is_only_read() {
    let dir = scratch();
    let image = dir.path().join("image");
    fs::write(&image, vec![7; 64 << 20]).unwrap();
    let server = or_skip!(NbdServer::nbdkit(dir.path(), &format!("file {}", image.display())));
    let url = server.uri();
    let quick = run(dir.path(), &[], &format!("test --quick {url} --expect=randread.p99<60s")).ok();
    has_cases(&quick, &["read", "randread"]);
    assert!(quick.stderr.contains("this disk is only read"), "{quick}");
    assert!(quick.stdout.contains("NBD export of 64 MiB, 64 MiB of data"), "{quick}");
    assert!(fs::read(&image).unwrap().iter().all(|byte| *byte == 7), "it was only read");
    shows_jobs(dir.path(), &[], url);
    let destroyed = run(dir.path(), &[], &format!("test --quick --destroy={url} {url}")).ok();
    has_cases(&destroyed, &["fill", "write", "randwrite", "durable-1", "mix-read"]);
    assert!(fs::read(&image).unwrap().iter().any(|byte| *byte != 7), "it was written");
}

#[test]
fn objects_of_s3_are_removed() {
    let dir = scratch();
    let store = S3::start(dir.path());
    let environment = store.environment();
    let count = || store.count();
    let quick = run(dir.path(), &environment, "test --quick s3://bkt/some/where --output=r.json").ok();
    has_cases(&quick, &["put-4k", "get-4k", "put-4k-16", "get-4k-16", "put-1m", "get-1m", "put-64m", "list"]);
    assert!(quick.stdout.contains("One object of 4 KiB at a time: to PUT it takes "), "{quick}");
    assert!(quick.stdout.contains("the first byte of one comes after "), "{quick}");
    assert_eq!((count(), store.uploads()), (0, 0), "nothing is left");
    shows_jobs(dir.path(), &environment, "s3://bkt/some/where");
    // What a killed test has left is removed on demand, and the next test says that it is there.
    let mut running = Running::of_ours(dir.path(), &environment, "test --quick s3://bkt/some/where");
    running.wait_until("objects are there", |_| count() > 0);
    send(running.pid(), libc::SIGKILL);
    running.wait();
    assert!(count() > 0);
    let cleaned = run(dir.path(), &environment, "test --clean s3://bkt/some/where").ok();
    assert!(cleaned.stdout.contains("removed what a test has left"), "{cleaned}");
    assert_eq!(count(), 0);
    // An interrupted one leaves nothing.
    let mut running = Running::of_ours(dir.path(), &environment, "test --quick s3://bkt");
    running.wait_until("objects are there", |_| count() > 0);
    send(running.pid(), libc::SIGINT);
    let interrupted = running.wait();
    assert_eq!((interrupted.code(), count()), (128, 0), "{interrupted}");
}

/// In the time of a case, a slow store has got few of the objects that the next one reads.
#[test]
fn a_slow_store_is_tested_as_well() {
    let dir = scratch();
    let slow = ObjectServer::behaving(|seen| {
        if seen.method == "PUT" {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Reply::Granted
    });
    let url = format!("http://{}", slow.host());
    let environment = s3::environment(&url);
    let quick = run(dir.path(), &environment, "test --quick s3://bkt").ok();
    has_cases(&quick, &["put-4k", "get-4k", "get-4k-16", "get-1m"]);
    assert_eq!((slow.names().len(), slow.uploads()), (0, 0), "nothing is left");
}

/// Versions that cannot be listed are not there, or not to be seen; but a list that ends in the middle is not a whole one.
#[test]
fn a_list_of_versions_that_breaks_off_is_an_error() {
    const FIRST: &str = "<ListVersionsResult><IsTruncated>true</IsTruncated><Version><Key>a</Key>\
                         <VersionId>1</VersionId></Version></ListVersionsResult>";
    const REFUSAL: &str = "<Error><Code>AccessDenied</Code></Error>";
    let dir = scratch();
    let clean = |first: Reply| {
        let server = ObjectServer::behaving(move |seen| match seen.path.contains("versions=") {
            true if seen.path.contains("key-marker=") => Reply::Refused(403, "", REFUSAL),
            true => first.clone(),
            false => Reply::Granted,
        });
        run(dir.path(), &s3::environment(&format!("http://{}", server.host())), "test --clean s3://bkt")
    };
    clean(Reply::Refused(403, "", REFUSAL)).ok();
    clean(Reply::Refused(200, "", FIRST)).refused().says("AccessDenied");
}

#[test]
fn objects_of_webdav_are_removed() {
    let dir = scratch();
    let server = or_skip!(Nginx::start(&dir.path().join("nginx")));
    let url = format!("http://user@{}/", server.host());
    let environment = [("IOLITE_HTTP_PASS", "password")];
    let quick = run(dir.path(), &environment, &format!("test --quick {url}")).ok();
    has_cases(&quick, &["put-4k", "get-4k", "put-4k-16", "get-4k-16", "put-1m", "get-1m"]);
    let left = crate::common::files_in(&dir.path().join("nginx/files"));
    assert_eq!(left, [], "only directories may be left");
    let clean = run(dir.path(), &environment, &format!("test --clean {url}")).refused();
    assert!(clean.stderr.contains("no lists of names"), "{clean}");
    let refused = run(dir.path(), &[("IOLITE_HTTP_PASS", "wrong")], &format!("test --quick {url}"));
    assert!(refused.code() == 1 && refused.stderr.contains("401"), "{refused}");
}

#[test]
fn files_of_nfs_are_removed_with_version_3() {
    files_of_nfs_are_removed(3);
}

#[test]
fn files_of_nfs_are_removed_with_version_4() {
    files_of_nfs_are_removed(4);
}

fn files_of_nfs_are_removed(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::of_version(version, dir.path()));
    let url = server.url();
    fs::write(server.export().join("thesis"), "x").unwrap();
    let names = || {
        let entries = fs::read_dir(server.export()).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let quick = run(dir.path(), &[], &format!("test --quick {url}")).ok();
    has_cases(&quick, &["fill", "read", "write", "randread", "randwrite", "mix-read", "durable-1"]);
    assert_eq!(names(), ["thesis"]);
    let mut running = Running::of_ours(dir.path(), &[], &format!("test --quick {url}"));
    running.wait_until("its file is there", |_| names().len() == 2);
    send(running.pid(), libc::SIGKILL);
    running.wait();
    assert_eq!(names().len(), 2);
    run(dir.path(), &[], &format!("test --clean {url}")).ok();
    assert_eq!(names(), ["thesis"]);
}

#[test]
fn a_disk_of_iscsi_is_only_read() {
    let dir = scratch();
    let target = or_skip!(Tgt::start(dir.path(), 64 << 20, 512, true));
    fs::write(target.image(), vec![7; 64 << 20]).unwrap();
    let url = target.name(&format!("{}%{}@", Tgt::USER, Tgt::PASSWORD)).replace('\\', "");
    let quick = run(dir.path(), &[], &format!("test --quick {url} --output=r.json")).ok();
    has_cases(&quick, &["read", "randread"]);
    assert!(
        quick.stdout.contains("iSCSI disk of 64 MiB") && quick.stderr.contains("this disk is only read"),
        "{quick}"
    );
    let kept = fs::read_to_string(dir.path().join("r.json")).unwrap();
    assert!(!quick.output().contains(Tgt::PASSWORD) && !kept.contains(Tgt::PASSWORD), "{quick}");
    assert!(fs::read(target.image()).unwrap().iter().all(|byte| *byte == 7), "it was only read");
    shows_jobs(dir.path(), &[], &url);
    let destroyed = run(dir.path(), &[], &format!("test --quick --destroy={url} {url}")).ok();
    has_cases(&destroyed, &["fill", "write", "randwrite", "durable-1", "mix-read"]);
    assert!(fs::read(target.image()).unwrap().iter().any(|byte| *byte != 7), "it was written");
    let wrong =
        run(dir.path(), &[], &format!("test --quick {}", url.replace(Tgt::PASSWORD, "sesame-wrong-123")));
    assert!(wrong.code() == 1 && !wrong.output().contains("sesame-wrong"), "{wrong}");
}

#[test]
fn pools_and_images_of_ceph() {
    let dir = scratch();
    let cluster = or_skip!(Ceph::shared());
    let conf = cluster.conf().display().to_string();
    let environment = [("CEPH_CONF", conf.as_str())];
    let names = || cluster.tool("rados", &format!("-p {} ls", Ceph::POOL));
    let own = || names().lines().filter(|name| name.starts_with("iolite-test.")).count();
    let pool = format!("rados:{}", Ceph::POOL);
    let quick = run(dir.path(), &environment, &format!("test --quick {pool}")).ok();
    has_cases(&quick, &["fill", "read", "write", "randread", "randwrite", "mix-read"]);
    assert!(!quick.output().contains("durable"), "each write is: {quick}");
    assert_eq!(own(), 0, "{}", names());
    let mut running = Running::of_ours(dir.path(), &environment, &format!("test --quick {pool}"));
    running.wait_until("its objects are there", |_| own() > 1);
    send(running.pid(), libc::SIGKILL);
    running.wait();
    assert!(own() > 1);
    run(dir.path(), &environment, &format!("test --clean {pool}")).ok();
    assert_eq!(own(), 0);
    cluster.tool("rbd", &format!("create --size 64 {}/tested", Ceph::POOL));
    let image = format!("rbd:{}/tested", Ceph::POOL);
    let quick = run(dir.path(), &environment, &format!("test --quick {image}")).ok();
    has_cases(&quick, &["read", "randread"]);
    assert!(
        quick.stdout.contains("RBD image of 64 MiB") && quick.stderr.contains("this disk is only read"),
        "{quick}"
    );
    let used = || cluster.tool("rbd", &format!("diff {}/tested", Ceph::POOL)).lines().count();
    assert_eq!(used(), 0, "it was only read");
    shows_jobs(dir.path(), &environment, &image);
    let destroyed = run(dir.path(), &environment, &format!("test --quick --destroy={image} {image}")).ok();
    has_cases(&destroyed, &["fill", "write", "randwrite", "durable-1", "mix-read"]);
    assert!(used() > 0, "it was written");
}

#[test]
fn mistakes_in_urls_are_reported() {
    let dir = scratch();
    let closed = ClosedPort::new();
    let nowhere = format!("nbd://127.0.0.1:{}/x", closed.number);
    for (line, why) in [
        ("s3://", "the bucket is missing"),
        ("rbd:pool", "rbd:POOL/IMAGE"),
        ("https://user:secret@host/", "IOLITE_HTTP_PASS"),
        ("nfs:server", "nfs://HOST/EXPORT"),
        ("--destroy=s3://b s3://b", "--destroy is for disks"),
        ("--clean nbd://h/x", "this is a disk"),
        (nowhere.as_str(), "refused"),
    ] {
        let told = run(dir.path(), &[], &format!("test --quick {line}"));
        assert!(told.code() == 1 && told.stderr.contains(why), "{line}: {told}");
        assert!(!told.stderr.contains("secret"), "{told}");
    }
}
