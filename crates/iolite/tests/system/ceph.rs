//! `rados` and `rbd` on a Ceph cluster on one machine, which the tests here share. Each test uses its own objects and
//! images.

use crate::common::trace::system_calls;
use crate::common::{Finished, Json, Program, peers, scratch, words};
use iolite_testing::{Ceph, ceph, or_skip, partly_skipped, this_test};
use std::path::Path;

const POOL: &str = Ceph::POOL;

/// A job on objects of this cluster, as the administrator.
fn rados(cluster: &Ceph, line: &str) -> String {
    let conf = cluster.conf();
    format!(
        "--name=job --ioengine=rados --conf={} --pool={POOL} --clientname=admin --bs=4k {line}",
        conf.display()
    )
}

/// A job on an image.
fn rbd(line: &str) -> String {
    format!("--name=job --ioengine=rbd --pool={POOL} --clientname=admin --bs=4k {line}")
}

fn start(program: &Program, dir: &Path, conf: &Path, line: &str) -> Finished {
    let mut command = std::process::Command::new(&program.path);
    command.args(words(line)).current_dir(dir).env("CEPH_CONF", conf);
    crate::common::program::Running::start(&mut command).wait()
}

fn run(cluster: &Ceph, line: &str) -> Finished {
    let dir = scratch();
    start(&Program::own(), dir.path(), &cluster.conf(), line)
}

/// The report of a job that succeeds.
#[track_caller]
fn report(cluster: &Ceph, line: &str) -> Json {
    let json = Json::parse(&run(cluster, &format!("--output-format=json {line}")).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

fn called_fio(cluster: &Ceph, line: &str) -> Finished {
    let dir = scratch();
    start(&Program::called_fio(dir.path()), dir.path(), &cluster.conf(), line)
}

/// A verifying job with the options that this program needs so that `peer` can read its writes.
fn verified(program: &Program, peer: &Program, line: String) -> String {
    if program.is_peer { line } else { format!("{line} --verify_header_format={}", peer.release.header) }
}

/// The objects of the pool whose names begin with `prefix`, with their sizes.
fn objects(cluster: &Ceph, prefix: &str) -> Vec<(String, u64)> {
    let names = cluster.tool("rados", &format!("-p {POOL} ls"));
    let mut names: Vec<&str> = names.lines().filter(|name| name.starts_with(prefix)).collect();
    names.sort_unstable();
    let size = |name: &str| {
        let told = cluster.tool("rados", &format!("-p {POOL} stat {name}"));
        told.trim().rsplit(' ').next().and_then(|size| size.parse().ok()).expect("stat tells a size")
    };
    names.into_iter().map(|name| (name.to_owned(), size(name))).collect()
}

fn sizes(all: &[(&str, u64)]) -> Vec<(String, u64)> {
    all.iter().map(|&(name, size)| (name.to_owned(), size)).collect()
}

/// An image of this many MiB.
fn image(cluster: &Ceph, name: &str, size: u64) {
    cluster.tool("rbd", &format!("create --size {size} {POOL}/{name}"));
}

#[test]
fn objects_are_named_and_sized_as_by_fio() {
    let cluster = or_skip!(Ceph::shared());
    let dir = scratch();
    for peer in peers!() {
        let shapes = [
            "--nrfiles=2 --rw=write --size=32k",
            "--filename=PREFIX/x:PREFIX-y --rw=write --size=64k --io_size=24k",
        ];
        for (number, shape) in shapes.iter().enumerate() {
            let of = |who: &str, program: &Program| {
                let prefix = format!("{who}{number}-{}", peer.release.minor);
                let line = rados(cluster, &format!("--name={prefix} {}", shape.replace("PREFIX", &prefix)));
                start(program, dir.path(), &cluster.conf(), &line.replacen("--name=job ", "", 1)).ok();
                let made = objects(cluster, &prefix);
                made.into_iter().map(|(name, size)| (name.replace(&prefix, ""), size)).collect::<Vec<_>>()
            };
            assert_eq!(of("ours", &Program::called_fio(dir.path())), of("theirs", &peer), "{shape}");
        }
        let writes = "--rw=randwrite --size=256k --iodepth=8 --verify=crc32c --do_verify=0";
        let reads = "--rw=read --size=256k --iodepth=8 --verify=crc32c";
        for (name, writer, reader) in [("wo", &Program::own(), &peer), ("wt", &peer, &Program::own())] {
            let name = format!("--filename={name}-{}", peer.release.minor);
            start(
                writer,
                dir.path(),
                &cluster.conf(),
                &verified(writer, &peer, rados(cluster, &format!("{name} {writes}"))),
            )
            .ok();
            start(
                reader,
                dir.path(),
                &cluster.conf(),
                &verified(reader, &peer, rados(cluster, &format!("{name} {reads}"))),
            )
            .ok();
        }
    }
}

#[test]
fn only_writing_jobs_create_missing_objects() {
    let cluster = or_skip!(Ceph::shared());
    let refused = |line: &str| run(cluster, &rados(cluster, line)).refused();
    refused("--filename=mis-a --rw=read --size=64k")
        .says("mis-a does not exist; a job that only reads makes nothing")
        .says("create_only=1");
    report(cluster, &rados(cluster, "--filename=mis-b --rw=write --size=16k"));
    refused("--filename=mis-b --rw=randread --size=64k")
        .says("mis-b is shorter than the 65536 bytes that are needed");
    assert_eq!(objects(cluster, "mis-"), sizes(&[("mis-b", 16384)]));
    let json = report(cluster, &rados(cluster, "--filename=mis-b --rw=randread --iodepth=4"));
    assert_eq!(json.job().bytes(), [16384, 0, 0], "the default size is that of the object");
    report(cluster, &rados(cluster, "--filename=mis-a --rw=read --size=64k --create_only=1"));
    report(cluster, &rados(cluster, "--readonly --filename=mis-a --rw=read"));
    report(cluster, &rados(cluster, "--filename=mis-w --rw=write --size=64k --create_only=1"));
    report(cluster, &rados(cluster, "--filename=mis-w --rw=read --size=64k"));
    // Before a job that reads and writes begins, the whole object exists.
    let json = report(cluster, &rados(cluster, "--filename=mis-c --rw=randrw --size=128k --iodepth=8"));
    assert_eq!(json.job().bytes().iter().sum::<u64>(), 128 << 10);
    assert_eq!(objects(cluster, "mis-c"), sizes(&[("mis-c", 128 << 10)]));
    // fio reads missing objects as zeros.
    let zeros = "--rw=read --size=64k --verify=pattern --verify_pattern=0";
    called_fio(cluster, &rados(cluster, &format!("--filename=mis-d {zeros}"))).ok();
    called_fio(cluster, &rados(cluster, &format!("--readonly --filename=mis-e {zeros}"))).ok();
    called_fio(cluster, &rados(cluster, &format!("--touch_objects=0 --filename=mis-f {zeros}"))).ok();
    assert_eq!(objects(cluster, "mis-d"), sizes(&[("mis-d", 0)]));
    assert_eq!(objects(cluster, "mis-e"), []);
    assert_eq!(objects(cluster, "mis-f"), []);
    // Data of earlier runs has to exist.
    let check = "--filename=mis-g --rw=write --size=16k --verify=crc32c --verify_only=1";
    refused(check).says("mis-g does not exist");
}

#[test]
pub fn objects_are_touched_before_they_are_written() {
    let cluster = or_skip!(Ceph::shared());
    // The second file is never written to.
    for (touch, made) in
        [(1, sizes(&[("touch1-a", 4096), ("touch1-b", 0)])), (0, sizes(&[("touch0-a", 4096)]))]
    {
        let names = format!("--filename=touch{touch}-a:touch{touch}-b --touch_objects={touch}");
        let line = format!("{names} --rw=write --size=32k --file_service_type=sequential --number_ios=1");
        report(cluster, &rados(cluster, &line));
        assert_eq!(objects(cluster, &format!("touch{touch}")), made);
    }
}

#[test]
fn objects_are_trimmed_verified_and_removed() {
    let cluster = or_skip!(Ceph::shared());
    report(cluster, &rados(cluster, "--filename=tr --rw=write --size=64k"));
    let json = report(cluster, &rados(cluster, "--filename=tr --rw=randtrim --iodepth=4 --size=32k"));
    assert_eq!(json.job().ios(), [0, 0, 8]);
    let zeros = "--filename=tr --size=32k --verify=pattern --verify_pattern=0 --rw=read";
    report(cluster, &rados(cluster, zeros));
    for line in [
        "--rw=randwrite --bsrange=1k-16k --fsync=4",
        "--rw=write --numjobs=2 --offset_increment=256k --thread --end_fsync=1 --nrfiles=3",
        "--rw=randrw --trim_percentage=50 --trim_verify_zero=1 --trim_backlog=4",
        "--rw=write --io_submit_mode=offload",
        "--rw=randwrite --unlink_each_loop=1 --loops=2",
    ] {
        let line = format!("--size=256k --iodepth=8 --verify=sha256 --unlink=1 {line}");
        report(cluster, &rados(cluster, &line).replace("--name=job", "--name=ver"));
    }
    assert_eq!(objects(cluster, "ver."), []);
    // Damage is found.
    report(cluster, &rados(cluster, "--filename=dam --rw=write --size=64k --verify=crc32c"));
    report(cluster, &rados(cluster, "--filename=dam --rw=write --size=4k --offset=32k"));
    let bad = run(cluster, &rados(cluster, "--filename=dam --rw=read --size=64k --verify=crc32c")).refused();
    assert!(bad.output().contains("verify"), "{}", bad.output());
    report(cluster, &rados(cluster, "--filename=dir/a:dir/b:dirt --rw=write --size=48k"));
    let json = report(cluster, &rados(cluster, "--opendir=dir --rw=read"));
    assert_eq!(json.job().bytes(), [32 << 10, 0, 0]);
}

#[test]
fn objects_end_where_the_cluster_says() {
    let cluster = or_skip!(Ceph::shared());
    let line = "--filename=big --rw=write --bs=64k --size=128k --offset=134152192";
    let full = run(cluster, &rados(cluster, &format!("{line} --unlink=1"))).refused();
    full.says("File too large").says("osd_max_object_size");
}

#[test]
pub fn errors_name_the_user_and_the_cluster() {
    let cluster = or_skip!(Ceph::shared());
    cluster.tool("ceph", "osd pool create other 8");
    let keys = cluster.conf().with_file_name("ours.keyring");
    let caps = ["auth", "get-or-create", "client.some", "mon", "allow r", "osd", "allow rwx pool=other"];
    cluster.tool_with("ceph", &[&caps[..], &["-o", &keys.display().to_string()]].concat());
    // The key is found only if the cluster is called `ours`.
    let keyring = keys.with_file_name("$cluster.keyring").display().to_string();
    let conf = cluster.conf_with("named.conf", &format!("keyring = {keyring}"));
    let job = |line: &str| {
        let line = format!(
            "--name=job --ioengine=rados --conf={} --rw=write --size=8k --bs=4k {line}",
            conf.display()
        );
        run(cluster, &line)
    };
    job("--filename=who --pool=other --clustername=ours --clientname=some").ok();
    job("--filename=who --pool=other --clustername=ours --clientname=client.some").ok();
    job("--filename=who --pool=other --clientname=some").refused().says("client.some").says("named.keyring");
    let forbidden =
        job(&format!("--filename=who --pool={POOL} --clustername=ours --clientname=some")).refused();
    forbidden.says("the user has no permission for that");
    for (line, said) in [
        ("--pool=none", "pool=none: there is no such pool; ceph osd pool create none makes one"),
        (
            "--conf=nowhere/ceph.conf",
            "conf=nowhere/ceph.conf: the configuration of the cluster cannot be read",
        ),
        ("--clientname=nobody", "refuses client.nobody"),
        ("--clientname=client.admin", "client.client.admin"),
        ("--pool=", "option \"pool\" requires a value"),
    ] {
        let refused =
            run(cluster, &rados(cluster, &format!("--filename=who --rw=write --size=8k {line}"))).refused();
        assert_eq!(refused.output().matches(said).count().min(1), 1, "{line}: {}", refused.output());
        assert!(refused.output().trim().lines().count() <= 2, "{line}: {}", refused.output());
    }
    let pool_less = run(cluster, "--name=job --ioengine=rados --rw=write --size=4k").refused();
    pool_less.says("pool= is missing");
}

#[test]
pub fn a_silent_cluster_is_an_error_after_a_timeout() {
    let cluster = or_skip!(Ceph::shared());
    let nobody = cluster.conf_with("nobody.conf", "mon host = [v2:127.0.0.1:1,v1:127.0.0.1:2]");
    for (program, more) in [(false, "--ceph_timeout=1s"), (true, "--ceph_timeout=1s")] {
        let line =
            rados(cluster, &format!("--conf={} --filename=x --rw=write --size=4k {more}", nobody.display()));
        let silent = if program { called_fio(cluster, &line) } else { run(cluster, &line) }.refused();
        silent.says("no monitor of the cluster has answered in 1 s").says("127.0.0.1:1").says("nobody.conf");
    }
    // The configuration takes precedence.
    let hasty = "mon host = [v2:127.0.0.1:1,v1:127.0.0.1:2]\nclient mount timeout = 2";
    let hasty = cluster.conf_with("hasty.conf", hasty);
    let dir = scratch();
    let silent = start(&Program::own(), dir.path(), &hasty, &rbd("--rbdname=x --rw=read"));
    silent.refused().says("has answered in 2 s").says("CEPH_CONF=");
}

#[test]
pub fn completions_are_looked_for_without_sleeping() {
    let cluster = or_skip!(Ceph::shared());
    image(cluster, "busy", 8);
    let dir = scratch();
    // The worker waits for a futex with a distinctive value, which the locks of its library do not have.
    let sleeps = |line: &str| {
        let mut args = words(line);
        args.push("--rw=randwrite".into());
        system_calls(&Program::own(), dir.path(), "futex", &args).map(|(done, log)| {
            (done.ok(), log.lines().filter(|line| line.contains("FUTEX_WAIT_PRIVATE, 335593")).count()).1
        })
    };
    let job = rados(cluster, "--filename=busy --size=64k --iodepth=2");
    let Some(sleeping) = sleeps(&job) else {
        partly_skipped(&this_test!(), "strace is not installed, or may not trace");
        return;
    };
    assert!(sleeping > 0);
    assert_eq!(sleeps(&format!("{job} --busy_poll=1")), Some(0));
    report(cluster, &rbd("--rbdname=busy --rw=randrw --size=256k --iodepth=4 --busy_poll=1 --thread"));
}

#[test]
fn many_requests_at_once_are_verified() {
    let cluster = or_skip!(Ceph::shared());
    image(cluster, "deep", 8);
    for engine in [rados(cluster, "--filename=deep"), rbd("--rbdname=deep")] {
        for line in [
            "--rw=randwrite --iodepth=32",
            "--rw=randwrite --iodepth=64 --iodepth_batch_complete_min=8 --iodepth_batch=8",
            "--rw=randrw --iodepth=32 --iodepth_batch_complete_min=0",
            "--rw=randwrite --iodepth=100 --busy_poll=1",
            "--rw=randwrite --iodepth=48 --thinktime=1ms --thinktime_blocks=100 --iodepth_low=3",
            "--rw=randwrite --iodepth=32 --fsync=20 --bsrange=1k-8k --thread",
            "--rw=randwrite --iodepth=200",
        ] {
            report(cluster, &format!("{engine} --size=8m --verify=crc32c {line}"));
        }
        let reads = "--rw=randread --iodepth=32 --size=8m --time_based --runtime=500ms";
        let json = report(cluster, &format!("{engine} {reads} --verify=crc32c"));
        assert!(json.job().ios()[0] > 0);
    }
}

#[test]
fn images_are_compatible_with_fio() {
    let cluster = or_skip!(Ceph::shared());
    let dir = scratch();
    image(cluster, "both", 8);
    let on = "--rbdname=both --iodepth=8 --verify=crc32c";
    for peer in peers!() {
        for (writer, reader) in [(&Program::own(), &peer), (&peer, &Program::own())] {
            let line = |rw: &str| rbd(&format!("{on} {rw}"));
            let run = |program: &Program, line: &str| {
                start(program, dir.path(), &cluster.conf(), &verified(program, &peer, line.to_owned())).ok()
            };
            run(writer, &line("--rw=randwrite --do_verify=0 --fsync=64"));
            run(reader, &line("--rw=read"));
        }
    }
    let json = report(cluster, &rbd("--rbdname=both --rw=read --bs=1m --iodepth=4"));
    assert_eq!(json.job().bytes(), [8 << 20, 0, 0], "an image says how large it is");
    let half = report(cluster, &rbd("--rbdname=both --rw=read --bs=1m --size=50%"));
    assert_eq!(half.job().bytes(), [4 << 20, 0, 0]);
    report(cluster, &rbd("--rbdname=both --rw=randtrim --bs=64k --iodepth=4"));
    report(cluster, &rbd("--rbdname=both --rw=read --bs=64k --verify=pattern --verify_pattern=0"));
}

#[test]
pub fn images_are_as_large_as_they_are() {
    let cluster = or_skip!(Ceph::shared());
    image(cluster, "fixed", 8);
    let refused = |line: &str| run(cluster, &rbd(line)).refused();
    let resize = format!("rbd resize --size 16 {POOL}/fixed");
    for rw in ["read", "write", "randtrim"] {
        refused(&format!("--rbdname=fixed --rw={rw} --size=16m"))
            .says("fixed has 8388608 bytes, and the job needs 16777216")
            .says(&resize);
    }
    refused("--rbdname=fixed --rw=write --offset=7m --size=2m").says("rbd resize --size 9");
    refused("--rbdname=none --rw=write --size=1m")
        .says(&format!("rbd create --size 1G {POOL}/none makes one"));
    refused("--rbdname=fixed --rw=write --size=1m --unlink=1").says("cannot be removed by a job");
    refused("--rw=write --size=1m").says("rbdname= is missing");
    // fio ignores unlink silently.
    called_fio(cluster, &rbd("--rbdname=fixed --rw=write --size=64k --unlink=1 --filename=any")).ok();
    assert!(cluster.tool("rbd", &format!("ls {POOL}")).lines().any(|name| name == "fixed"));
}

#[test]
pub fn pool_cluster_and_client_select_an_image() {
    let cluster = or_skip!(Ceph::shared());
    cluster.tool("ceph", "osd pool create elsewhere 8");
    cluster.tool("rbd", "create --size 8 elsewhere/named");
    let keys = cluster.conf().with_file_name("its.keyring");
    let caps =
        ["auth", "get-or-create", "client.images", "mon", "profile rbd", "osd", "profile rbd pool=elsewhere"];
    cluster.tool_with("ceph", &[&caps[..], &["-o", &keys.display().to_string()]].concat());
    let keyring = keys.with_file_name("$cluster.keyring").display().to_string();
    let conf = cluster.conf_with("images.conf", &format!("keyring = {keyring}"));
    let dir = scratch();
    let job = |line: &str| {
        let line = format!("--name=job --ioengine=rbd --rw=write --bs=4k --size=64k --rbdname=named {line}");
        start(&Program::own(), dir.path(), &conf, &line)
    };
    job("--pool=elsewhere --clustername=its --clientname=images").ok();
    job("--pool=elsewhere --clientname=images").refused().says("no key of client.images");
    job("--pool=elsewhere --clustername=its").refused().says("client.admin");
    job("--pool=none --clustername=its --clientname=images")
        .refused()
        .says("pool=none: there is no such pool");
    job("--clustername=its --clientname=images").refused().says("pool= is missing");
}

#[test]
fn clones_share_an_image() {
    let cluster = or_skip!(Ceph::shared());
    image(cluster, "many", 8);
    for line in [
        "--numjobs=3 --offset_increment=1m --size=64k --verify=crc32c",
        "--numjobs=3 --thread --offset_increment=1m --size=64k --verify=crc32c",
        "--numjobs=2 --size=64k",
    ] {
        let json = report(cluster, &rbd(&format!("--rbdname=many --rw=randwrite --iodepth=4 {line}")));
        assert!(json.jobs().iter().all(|job| job.bytes()[1] == 64 << 10));
    }
    let both =
        run(cluster, &rbd("--rbdname=many --rw=randwrite --size=64k --numjobs=2 --verify=crc32c")).refused();
    both.says("several workers write to many");
}

#[test]
fn snapshots_can_be_read() {
    let cluster = or_skip!(Ceph::shared());
    image(cluster, "snap", 8);
    let on = "--size=1m --bs=64k --iodepth=4 --verify=crc32c";
    report(cluster, &rbd(&format!("--rbdname=snap --rw=write {on} --verify_pattern=0x11")));
    cluster.tool("rbd", &format!("snap create {POOL}/snap@then"));
    report(cluster, &rbd("--rbdname=snap --rw=write --size=1m --bs=64k"));
    report(cluster, &rbd(&format!("--rbdname=snap@then --rw=read {on} --verify_pattern=0x11")));
    run(cluster, &rbd("--rbdname=snap@then --rw=randrw --size=1m"))
        .refused()
        .says("a snapshot can only be read");
    run(cluster, &rbd("--rbdname=snap@none --rw=read")).refused().says("it has no snapshot none");
    run(cluster, &rbd("--rbdname=snap@ --rw=read")).refused().says("rbdname= is missing");
    // Read permission suffices for reading: nothing about the image is changed.
    let keys = cluster.conf().with_file_name("reader.keyring");
    let caps =
        ["auth", "get-or-create", "client.reader", "mon", "profile rbd", "osd", "profile rbd-read-only"];
    cluster.tool_with("ceph", &[&caps[..], &["-o", &keys.display().to_string()]].concat());
    let conf = cluster.conf_with("reader.conf", &format!("keyring = {}", keys.display()));
    let dir = scratch();
    let as_reader = |rw: &str| {
        let line = rbd(&format!("--rbdname=snap --size=64k --rw={rw}"));
        start(&Program::own(), dir.path(), &conf, &line.replace("clientname=admin", "clientname=reader"))
    };
    as_reader("read").ok();
    as_reader("write").refused().says("the user has no permission");
}

#[test]
pub fn encrypted_images_need_their_passphrase() {
    let cluster = or_skip!(Ceph::shared());
    let dir = scratch();
    let file = dir.path().join("passphrase");
    std::fs::write(&file, "open-sesame").unwrap();
    for format in ["luks1", "luks2"] {
        let name = format!("enc-{format}");
        image(cluster, &name, 64);
        let formatted = format!("encryption format {POOL}/{name} {format} {}", file.display());
        if let Err(why) = cluster.try_tool("rbd", &formatted) {
            partly_skipped(&this_test!(), &format!("images cannot be encrypted here: {why}"));
            return;
        }
        let job = |line: &str| {
            rbd(&format!("--rbdname={name} --size=256k --iodepth=4 --rbd_encryption_format={format} {line}"))
        };
        let given = "--rbd_encryption_passphrase=open-sesame";
        report(cluster, &job(&format!("--rw=randwrite --verify=crc32c {given}")));
        let line = job(&format!("--rw=read --rbd_encryption_passphrase_file={}", file.display()));
        report(cluster, &format!("{line} --verify=crc32c"));
        if format == "luks1" {
            continue;
        }
        // Reading without decryption finds other data.
        run(cluster, &rbd(&format!("--rbdname={name} --rw=read --size=256k --verify=crc32c"))).refused();
        run(cluster, &job("--rw=read --rbd_encryption_passphrase=wrong"))
            .refused()
            .says("rbd_encryption_passphrase is wrong");
        run(cluster, &job("--rw=read --rbd_encryption_passphrase_env=NOT_SET")).refused().says("NOT_SET");
        run(cluster, &job("--rw=read")).refused().says("go together");
        run(cluster, &job("--rw=read --rbd_encryption_format=aes")).refused().says("not one of luks1, luks2");
        for line in [
            format!("--debug=all --parse-only {}", job(&format!("--rw=read {given}"))),
            format!("--output-format=json,normal {}", job(&format!("--rw=read {given}"))),
        ] {
            let told = run(cluster, &line).ok().output();
            assert!(!told.contains("open-sesame") && told.contains("***"), "{line}: {told}");
        }
    }
    image(cluster, "enc-not", 8);
    let line = "--rbdname=enc-not --rw=read --rbd_encryption_format=luks2 --rbd_encryption_passphrase=x";
    run(cluster, &rbd(line)).refused().says("it is not encrypted with rbd_encryption_format=luks2");
}

#[test]
fn acknowledged_writes_survive_a_killed_store() {
    let dir = scratch();
    let cluster = or_skip!(Ceph::start(&dir.path().join("cluster"), ceph::Store::File));
    image(&cluster, "img", 64);
    // Data that only the library's cache has acknowledged is not in the cluster yet.
    let conf = cluster.conf_with("uncached.conf", "rbd cache = false");
    let limited = cluster.conf_with("limited.conf", "rbd cache = false\nrados osd op timeout = 2");
    // The job takes long enough that the store dies before it is over, even on a slow machine.
    let paced = "--rw=write --bs=16k --iodepth=4 --rate_iops=200 --verify=crc32c --verify_state_save=1";
    // (The object that only the interrupted job writes is shorter than the job's size.)
    let rados_twice = (rados(&cluster, "--filename=obj"), rados(&cluster, "--filename=short"));
    for (engine, interrupted) in [rados_twice, (rbd("--rbdname=img"), rbd("--rbdname=img"))] {
        let begin_with = |conf: &Path, line: &str| {
            let mut command = std::process::Command::new(Program::own().path);
            command.args(words(line)).args(["--status-interval=100ms", "--eta=never"]);
            command.current_dir(dir.path()).env("CEPH_CONF", conf);
            crate::common::program::Running::start(&mut command)
        };
        let begin = |line: &str| begin_with(&conf, line);
        let has_written =
            |running: &crate::common::program::Running| running.stdout().matches("WRITE:").count() > 3;
        // The store is down for a while: requests wait until it is back.
        let mut running = begin(&format!("{engine} {paced} --size=32m"));
        running.wait_until("it has written", has_written);
        cluster.kill_store();
        std::thread::sleep(std::time::Duration::from_millis(500));
        cluster.start_store().unwrap();
        running.wait().ok();
        // The store stays down for longer than a request may take.
        let engine = interrupted;
        let line = format!("{engine} {paced} --size=32m --do_verify=0 --ceph_timeout=3s");
        let mut running = begin(&format!("{line} --output-format=normal,json"));
        running.wait_until("it has written", has_written);
        cluster.kill_store();
        let interrupted = running.wait().refused();
        assert!(interrupted.output().contains("no answer in 3 s (ceph_timeout)"), "{}", interrupted.output());
        // (Computed from bytes, because failed writes count as I/Os, too.)
        let acknowledged = Json::last_in(&interrupted.stdout).job().bytes()[1] / (16 << 10);
        assert!((1..2048).contains(&acknowledged), "{acknowledged} writes were acknowledged");
        cluster.start_store().unwrap();
        let check =
            format!("{engine} {paced} --size=32m --verify_only=1 --verify_state_load=1 --output-format=json");
        let check = start(&Program::own(), dir.path(), &conf, &check.replace("--rate_iops=200 ", ""));
        let checked = Json::parse(&check.ok().stdout).job().ios()[0];
        assert_eq!(checked, acknowledged, "each acknowledged write is checked");
        // If the limit comes from the cluster's configuration, the message names that option.
        let usual = cluster.conf().display().to_string();
        let line = format!("{engine} {paced} --size=32m").replace(&usual, &limited.display().to_string());
        let mut running = begin_with(&limited, &line);
        running.wait_until("it has written", has_written);
        cluster.kill_store();
        running.wait().refused().says("no answer in 2 s (rados_osd_op_timeout)");
        cluster.start_store().unwrap();
        // An interrupted job waits only a limited time for a store that is down, even with many requests in flight.
        let fast = "--rw=randwrite --iodepth=64 --time_based --runtime=1h";
        let mut running = begin(&format!("{engine} {fast} --size=32m"));
        running.wait_until("it has written", has_written);
        cluster.kill_store();
        running.signal(libc::SIGINT);
        let interrupted = running.wait();
        interrupted.says("no answer in 10 s after the job was asked to end: the cluster, or the part");
        cluster.start_store().unwrap();
    }
}

#[test]
fn without_the_library_its_package_is_named() {
    let cluster_less = scratch();
    let mut command = std::process::Command::new(Program::own().path);
    // A file with the library's name that is not a library.
    std::fs::write(cluster_less.path().join("librados.so.2"), "no library").unwrap();
    command
        .args(words("--name=job --ioengine=rados --pool=p --rw=read --size=4k"))
        .current_dir(cluster_less.path());
    command.env("LD_LIBRARY_PATH", cluster_less.path());
    let refused = crate::common::program::Running::start(&mut command).wait().refused();
    refused.says("librados.so.2 cannot be used").says("package librados2 of Debian").says("RHEL");
}

#[test]
fn the_examples_run() {
    let cluster = or_skip!(Ceph::shared());
    let dir = scratch();
    image(cluster, "iolite-test", 64);
    for name in ["rados.fio", "rbd.fio"] {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/servers").join(name);
        let text = std::fs::read_to_string(example).unwrap();
        std::fs::write(dir.path().join(name), text.replace("=64M", "=4M").replace("=16M", "=1M")).unwrap();
        let mut command = std::process::Command::new(Program::own().path);
        command.args(words("--output-format=json")).arg(name).current_dir(dir.path());
        command.env("CEPH_CONF", cluster.conf()).env("CEPH_POOL", POOL);
        let json = Json::parse(&crate::common::program::Running::start(&mut command).wait().ok().stdout);
        assert_eq!(json.jobs().len(), 2);
    }
    assert_eq!(objects(cluster, "iolite-test-"), []);
}
