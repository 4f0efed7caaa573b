//! `http` on real servers: MinIO, nginx and the gateway of Ceph. `http.rs` tests behaviour that does not depend on the
//! server.

use crate::common::{Json, Program, report, scratch, start};
use iolite_testing::{Ceph, Gateway, Minio, Nginx, certificate, or_skip};

fn s3(server: &Minio, line: &str) -> String {
    let (host, id, secret) = (server.host(), Minio::ID, Minio::SECRET);
    // (A server that has just been started may say that it is not ready yet.)
    format!(
        "--name=job --ioengine=http --http_mode=s3 --http_host={host} --http_s3_keyid={id} --http_s3_key={secret} --http_s3_region=eu-test-1 \
         --http_retries=8 --bs=64k {line}"
    )
}

#[test]
fn minio_takes_gives_and_removes_objects() {
    let dir = scratch();
    let server = or_skip!(Minio::start(dir.path(), false));
    let run = |line: &str| report(dir.path(), &s3(&server, line));
    run("--filename=/bkt/a --rw=randwrite --size=2m --iodepth=8 --verify=sha256");
    assert_eq!(server.count(), 32);
    assert_eq!(run("--filename=/bkt/a --rw=randread --iodepth=16").job().bytes(), [2 << 20, 0, 0]);
    run("--filename=/bkt/a --rw=trim --size=2m --iodepth=4");
    assert_eq!(server.count(), 0);
    run("--filename=/bkt/r --rw=write --bs=5m --size=5m --http_object_mode=range");
    run("--filename=/bkt/r --rw=randread --http_object_mode=range --iodepth=4 --verify=0");
    assert_eq!(server.count(), 1);
    // Names that have to be encoded are signed as they are sent.
    run("--filename=/bkt/x(1)+$=@,'!* --rw=write --size=128k --verify=crc32c --unlink=1");
    assert_eq!(server.count(), 1);
    // Requests are signed for the host that they go to.
    let hosts = format!("{0},{1}", server.host(), server.host().replace("127.0.0.1", "localhost"));
    run(&format!(
        "--filename=/bkt/h --rw=write --size=1m --iodepth=4 --verify=crc32c --unlink=1 --http_host={hosts}"
    ));
    assert_eq!(server.count(), 1);
    run("--filename=/bkt/s(1)+ --rw=randwrite --size=1m --verify=crc32c");
    let copy = "--http_write=copy --http_copy_source=/bkt/s(1)+ --iodepth=4";
    run(&format!("--filename=/bkt/copy --rw=write --size=1m {copy}"));
    assert_eq!(server.count(), 33);
    run("--filename=/bkt/copy --rw=randwrite --size=1m --verify=crc32c --verify_only=1 --unlink=1");
    run("--filename=/bkt/s(1)+ --rw=trim --size=1m");
    // The server refuses objects with a wrong checksum; it accepts these.
    for checksum in ["crc32c", "sha256"] {
        run(&format!("--filename=/bkt/c --rw=write --size=256k --http_s3_checksum={checksum} --unlink=1"));
    }
}

#[test]
fn minio_puts_parts_together_and_is_left_with_none() {
    let dir = scratch();
    let server = or_skip!(Minio::start(dir.path(), false));
    let run = |line: &str| report(dir.path(), &s3(&server, line));
    let parts = "--http_object_mode=range --http_s3_multipart_size=5m --bs=5m --iodepth=3 --rw=write";
    for (name, checksum) in [("a", "none"), ("b", "crc32c"), ("c", "sha256")] {
        run(&format!(
            "--filename=/bkt/{name} {parts} --size=20m --verify=crc32c --verify_interval=64k --http_s3_checksum={checksum}"
        ));
    }
    // The last part may be short, and layout uses parts as well.
    run(
        "--filename=/bkt/d --http_s3_multipart_size=5m --bs=13m --size=26m --rw=write --verify=crc32c --iodepth=2",
    );
    run("--filename=/bkt/e --http_object_mode=range --size=33m --http_create=1 --rw=randread --io_size=1m");
    assert_eq!((server.uploads(), server.count()), (0, 6));
    // The job ends early: by io_size, by an interrupt, by a kill.
    let early =
        start(dir.path(), &s3(&server, &format!("--filename=/bkt/x {parts} --size=20m --io_size=10m"))).ok();
    assert!(early.stdout.contains("of which there were 2 of 4 parts"), "{}", early.stdout);
    assert_eq!(server.uploads(), 0);
    let slow = s3(&server, &format!("--filename=/bkt/x {parts} --size=100m --rate_iops=4 --iodepth=1"));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
        let mut running = Program::own().start(dir.path(), slow.split_whitespace());
        running.wait_until("an upload is under way", |_| server.uploads() == 1);
        running.signal(signal);
        running.wait();
        assert_eq!(server.uploads(), usize::from(signal == libc::SIGKILL), "{signal}");
    }
    let next = start(dir.path(), &s3(&server, &format!("--filename=/bkt/y {parts} --size=10m"))).ok();
    assert!(next.stdout.contains("aborted 1 upload in parts that a killed job had left"), "{}", next.stdout);
    assert_eq!((server.uploads(), server.count()), (0, 7));
    let small = start(
        dir.path(),
        &s3(&server, "--filename=/bkt/z --http_s3_multipart_size=64k --bs=1m --size=1m --rw=write"),
    );
    assert!(small.output().contains("at least 5 MiB"), "{}", small.output());
    assert_eq!(server.uploads(), 0);
}

#[test]
fn errors_of_minio_are_reported() {
    let dir = scratch();
    let server = or_skip!(Minio::start(dir.path(), false));
    report(dir.path(), &s3(&server, "--filename=/bkt/ready --rw=write --size=64k"));
    for (line, said) in [
        ("--filename=/bkt/a --http_s3_key=wrong", "SignatureDoesNotMatch"),
        ("--filename=/bkt/a --http_s3_keyid=wrong", "InvalidAccessKeyId"),
        ("--filename=/bkt/a --http_s3_region=elsewhere", "http_s3_region=elsewhere"),
        ("--filename=/bkt/a --http_s3_anonymous=1", "anonymous access is not allowed"),
        ("--filename=/none/a", "NoSuchBucket"),
        ("--filename=/bkt/a --rw=read", "NoSuchKey"),
    ] {
        let refused = start(dir.path(), &s3(&server, &format!("--rw=write --size=128k {line}")));
        assert_eq!(refused.code(), 1, "{line}");
        assert!(refused.output().contains(said), "{line}: {}", refused.output());
    }
    assert_eq!(server.count(), 1, "a refused job has written");
}

#[test]
fn jobs_of_one_run_have_their_own_users() {
    let dir = scratch();
    let server = or_skip!(Minio::start(dir.path(), false));
    let [id, secret, token] = or_skip!(server.user_who_may("s3:GetObject"));
    report(dir.path(), &s3(&server, "--filename=/bkt/a --rw=write --size=1m"));
    let other = format!("http_s3_keyid={id}\nhttp_s3_key={secret}\nhttp_s3_security_token={token}\n");
    let run = |rw: &str| {
        let jobs = format!(
            "[global]\nioengine=http\nhttp_mode=s3\nhttp_host={}\nhttp_s3_region=eu-test-1\nbs=64k\nsize=1m\n\
             [writer]\nfilename=/bkt/b\nrw=write\nhttp_s3_keyid={}\nhttp_s3_key={}\n\
             [reader]\nfilename=/bkt/a\nrw={rw}\n{other}",
            server.host(),
            Minio::ID,
            Minio::SECRET
        );
        std::fs::write(dir.path().join("jobs.fio"), jobs).unwrap();
        Program::own().line(dir.path(), "jobs.fio --output-format=json")
    };
    let both = run("read").ok();
    let json = Json::parse(&both.stdout);
    assert_eq!(
        json.jobs().iter().map(|job| job.bytes()).collect::<Vec<_>>(),
        [[0, 1 << 20, 0], [1 << 20, 0, 0]]
    );
    assert!(!both.output().contains(&token) && !both.output().contains(&secret));
    // Each has the rights of its user.
    let refused = run("randwrite");
    assert_eq!(refused.code(), 1);
    let output = refused.output();
    assert!(output.contains("PUT /bkt/a_") && output.contains("no permission"), "{output}");
    assert!(!output.contains("PUT /bkt/b_"), "{output}");
}

#[test]
fn minio_keeps_versions_until_all_are_removed() {
    let dir = scratch();
    let server = or_skip!(Minio::start(dir.path(), false));
    let run = |line: &str| report(dir.path(), &s3(&server, line));
    or_skip!(server.keep_versions());
    let versions = |bucket: &str| server.versions(bucket);
    run("--filename=/bkt/a --rw=randwrite --size=1m --loops=2 --iodepth=4");
    run("--filename=/bkt/ab --rw=write --size=64k");
    run("--filename=/bkt/a --rw=trim --size=512k");
    assert_eq!(versions("bkt"), 2 * 16 + 1 + 8);
    let all = "--http_s3_delete_versions=1";
    run(&format!("--filename=/bkt/a --rw=trim --size=512k --iodepth=4 {all}"));
    assert_eq!(versions("bkt"), 16 + 1);
    run(&format!("--filename=/bkt/a --rw=write --size=1m --verify=crc32c --unlink=1 {all}"));
    assert_eq!(versions("bkt"), 1);
    // Versions that are retained can be removed only by those who may, and who say so.
    server
        .ask_s3("/locked", &["--request", "PUT", "--header", "x-amz-bucket-object-lock-enabled: true"])
        .unwrap();
    let until =
        std::process::Command::new("date").args(["-u", "-d", "+1 hour", "+%Y-%m-%dT%H:%M:%SZ"]).output();
    let until = String::from_utf8(until.unwrap().stdout).unwrap();
    let fields = format!(
        "--http_write_headers=x-amz-object-lock-mode:GOVERNANCE,x-amz-object-lock-retain-until-date:{},x-amz-tagging:run=7",
        until.trim()
    );
    run(&format!("--filename=/locked/a --rw=write --size=128k --http_s3_checksum=crc32c {fields}"));
    let tags = server.ask_s3("/locked/a_0_65536?tagging=", &[]).unwrap();
    assert!(tags.contains("<Key>run</Key><Value>7</Value>"), "{tags}");
    let trim = format!("--filename=/locked/a --rw=trim --size=128k {all}");
    let refused = start(dir.path(), &s3(&server, &trim));
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("DELETE /locked/a_0_65536"), "{}", refused.output());
    assert_eq!(versions("locked"), 2);
    run(&format!("{trim} --http_trim_headers=x-amz-bypass-governance-retention:true"));
    assert_eq!(versions("locked"), 0);
}

#[test]
fn minio_shows_what_it_has_acknowledged() {
    let dir = scratch();
    let server = or_skip!(Minio::start(dir.path(), false));
    for how in ["get", "head", "list"] {
        let line = format!("--filename=/bkt/a(1) --rw=randwrite --size=1m --iodepth=4 --http_visible={how}");
        let json = report(dir.path(), &s3(&server, &line));
        assert_eq!(json.job().0["write"]["visible_ns"]["N"].as_u64(), Some(16), "{how}");
        let copy = format!(
            "--filename=/bkt/copy --http_write=copy --http_copy_source=/bkt/a(1) --http_visible={how}"
        );
        let json = report(dir.path(), &s3(&server, &format!("{copy} --rw=write --size=1m --unlink=1")));
        assert_eq!(json.job().0["write"]["visible_ns"]["N"].as_u64(), Some(16), "{how}");
    }
}

#[test]
fn minio_encrypts_with_customer_keys_over_tls() {
    let dir = scratch();
    let server = or_skip!(Minio::start(dir.path(), true));
    let authority = certificate("authority.crt");
    let run = |line: &str| {
        let tls = format!("--https=on --http_ca_file={} --size=1m {line}", authority.display());
        start(dir.path(), &s3(&server, &tls))
    };
    run("--filename=/bkt/a --rw=randwrite --iodepth=4 --verify=crc32c").ok();
    run("--filename=/bkt/b --rw=write --bs=1m --http_s3_unsigned_payload=1 --verify=crc32c").ok();
    let key = "--http_s3_sse_customer_key=0123456789abcdef0123456789abcdef";
    run(&format!("--filename=/bkt/c --rw=write --verify=crc32c {key}")).ok();
    run(&format!("--filename=/bkt/c --rw=read {key}")).ok();
    let closed = run("--filename=/bkt/c --rw=read");
    assert_eq!(closed.code(), 1);
    assert!(closed.output().contains("400 Bad Request"), "{}", closed.output());
    for size in ["4k", "1m"] {
        let plain = format!("--filename=/bkt/p --rw=write --bs={size} --size={size} --http_retries=0");
        let refused = start(dir.path(), &s3(&server, &plain));
        assert_eq!(refused.code(), 1);
        assert!(refused.output().contains("https=on"), "{}", refused.output());
    }
}

#[test]
fn acknowledged_objects_survive_a_killed_minio() {
    survives_a_kill(false);
}

#[test]
fn acknowledged_objects_survive_a_killed_minio_over_tls() {
    survives_a_kill(true);
}

fn survives_a_kill(is_encrypted: bool) {
    let dir = scratch();
    let mut server = or_skip!(Minio::start(dir.path(), is_encrypted));
    let s3 = |server: &Minio, line: &str| {
        let trust = format!("--https=on --http_ca_file={}", certificate("authority.crt").display());
        s3(server, &format!("{} {line}", if is_encrypted { &trust } else { "--https=off" }))
    };
    let job = "--filename=/bkt/a --rw=write --size=64m --iodepth=4 --verify=crc32c --do_verify=0";
    let line = s3(
        &server,
        &format!("{job} --rate_iops=200 --verify_state_save=1 --http_retries=0 --output-format=json"),
    );
    report(dir.path(), &s3(&server, "--filename=/bkt/ready --rw=write --size=64k"));
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("some objects are there", |_| server.count() > 20);
    server.kill();
    let interrupted = running.wait();
    assert_eq!(interrupted.code(), 1);
    assert!(interrupted.output().contains("io_u error on file /bkt/a"), "{}", interrupted.output());
    // (Computed from bytes, because failed writes count as I/Os, too.)
    let acknowledged = Json::parse(&interrupted.stdout).job().bytes()[1] / (64 << 10);
    assert!((16..1024).contains(&acknowledged), "{acknowledged} writes were acknowledged");
    server.restart().unwrap();
    let check = s3(&server, &format!("{job} --do_verify=1 --verify_only=1 --verify_state_load=1"));
    let checked = report(dir.path(), &check).job().ios()[0];
    assert_eq!(checked, acknowledged, "each acknowledged write is checked");
    // A job with retries survives a restart of the server.
    let patient = "--filename=/bkt/b --rw=write --size=16m --iodepth=4 --rate_iops=100 --verify=crc32c --http_retries=20";
    let before = server.count();
    let line = s3(&server, patient);
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("some objects are there", |_| server.count() > before + 20);
    server.restart().unwrap();
    let done = running.wait().ok();
    assert!(done.stdout.contains("requests repeated: "), "{}", done.stdout);
}

#[test]
fn nginx_takes_gives_and_removes_files() {
    let dir = scratch();
    let server = or_skip!(Nginx::start(dir.path()));
    let line = |line: &str| {
        let host = server.host();
        format!(
            "--name=job --ioengine=http --http_host={host} --http_user=user --http_pass=password --bs=16k {line}"
        )
    };
    let run = |words: &str| report(dir.path(), &line(words));
    let json = run("--filename=/f --rw=randwrite --size=1m --iodepth=8 --verify=crc32c");
    assert_eq!(json.job().ios(), [64, 64, 0]);
    assert_eq!((server.names().len(), server.names()[0].as_str()), (64, "f_0_16384"));
    assert_eq!(run("--filename=/f --rw=randread --iodepth=8").job().bytes(), [1 << 20, 0, 0]);
    let copy = "--http_write=copy --http_copy_source=/f --iodepth=4";
    run(&format!("--filename=/g --rw=write --size=1m {copy} --unlink=1"));
    run("--filename=/f --rw=trim --size=1m");
    assert_eq!(server.names(), [""; 0]);
    run("--filename=/r --rw=write --bs=1m --size=1m --http_object_mode=range");
    run("--filename=/r --rw=randread --http_object_mode=range --iodepth=4");
    for wrong in ["--http_pass=wrong", "--http_user=nobody"] {
        let refused = start(dir.path(), &line(&format!("--filename=/f --rw=write --size=16k {wrong}")));
        assert_eq!(refused.code(), 1);
        assert!(refused.output().contains("401 Unauthorized"), "{}", refused.output());
        assert!(refused.output().contains("http_user, http_pass"), "{}", refused.output());
    }
    let wrong_kind = start(dir.path(), &line("--filename=/f --rw=write --size=16k --http_auth=digest"));
    let said = "http_auth=digest: the server offers Basic; use http_auth=basic";
    assert!(wrong_kind.output().contains(said), "{}", wrong_kind.output());
    let missing = start(dir.path(), &line("--filename=/f --rw=read --size=16k"));
    assert!(missing.output().contains("404 Not Found"), "{}", missing.output());
    // This port is for clients that present a certificate.
    let host = server.encrypted_host();
    let shown = |name: &str| certificate(name).display().to_string();
    let write = format!("--filename=/f --rw=write --size=16k --http_host={host}");
    let trusting = format!("{write} --https=on --http_ca_file={}", shown("authority.crt"));
    for (options, said) in [
        (&trusting, "No required SSL certificate was sent; the server wants a certificate of yours"),
        (&trusting, "(http_cert_file, http_key_file)"),
        (&write, "sent to HTTPS port; the port is one for encrypted connections (https=on)"),
    ] {
        let refused = start(dir.path(), &line(options));
        assert_eq!(refused.code(), 1);
        assert!(refused.output().contains(said), "{}", refused.output());
    }
    let own = format!("--http_cert_file={} --http_key_file={}", shown("client.crt"), shown("client.key"));
    run(&format!("{trusting} {own} --verify=crc32c"));
}

#[test]
fn minio_lists_names_and_tells_what_it_has() {
    let dir = scratch();
    let server = or_skip!(Minio::start(dir.path(), false));
    let run = |line: &str| report(dir.path(), &s3(&server, line));
    run(
        "--filename=/bkt/dir/a(1)+:/bkt/dir/b --rw=write --size=1m --iodepth=4 --http_s3_storage_class=REDUCED_REDUNDANCY",
    );
    run("--filename=/bkt/whole/x --rw=write --bs=256k --size=256k --http_object_mode=range");
    // Objects are found, read and removed by the listed names.
    assert_eq!(run("--opendir=/bkt/dir/ --rw=randread --iodepth=4").job().bytes(), [1 << 20, 0, 0]);
    assert_eq!(
        run("--opendir=/bkt/whole --rw=read --http_object_mode=range").job().bytes(),
        [256 << 10, 0, 0]
    );
    let listed =
        start(dir.path(), &s3(&server, "--filename=/bkt/dir/ --rw=read --http_s3_list=5 --size=256k")).ok();
    assert!(listed.stdout.contains("http: names listed: 16"), "{}", listed.stdout);
    run("--opendir=/bkt/dir/ --rw=trim --iodepth=4");
    let empty = start(dir.path(), &s3(&server, "--opendir=/bkt/dir/ --rw=read"));
    assert!(empty.output().contains("no name begins with this"), "{}", empty.output());
    let unknown = start(
        dir.path(),
        &s3(&server, "--filename=/bkt/u --rw=write --size=64k --http_s3_storage_class=MARBLE"),
    );
    assert!(unknown.output().contains("InvalidStorageClass"), "{}", unknown.output());
}

#[test]
fn a_gateway_of_ceph_takes_gives_and_removes_objects() {
    let dir = scratch();
    let gateway = or_skip!(or_skip!(Ceph::shared()).gateway());
    let (host, id, secret) = (gateway.host(), Gateway::ID, Gateway::SECRET);
    let bucket = format!("bucket{}", std::process::id());
    gateway.make_container(&bucket);
    let s3 = |line: &str| {
        format!(
            "--name=job --ioengine=http --http_mode=s3 --http_host={host} --http_s3_keyid={id} --http_s3_key={secret} \
             --http_retries=8 --bs=64k {line}"
        )
    };
    let run = |line: &str| report(dir.path(), &s3(line));
    run(&format!("--filename=/{bucket}/a --rw=randwrite --size=1m --iodepth=8 --verify=sha256"));
    assert_eq!(
        run(&format!("--filename=/{bucket}/a --rw=randread --iodepth=4")).job().bytes(),
        [1 << 20, 0, 0]
    );
    assert_eq!(run(&format!("--opendir=/{bucket}/ --rw=read")).job().bytes(), [1 << 20, 0, 0]);
    let list = s3(&format!("--filename=/{bucket} --rw=read --http_s3_list=6 --size=192k"));
    let listed = start(dir.path(), &list).ok();
    assert!(listed.stdout.contains("http: names listed: 16"), "{}", listed.stdout);
    run(&format!("--filename=/{bucket}/a --rw=trim --size=1m --iodepth=4"));
    // Names that have to be encoded are signed as they are sent.
    run(&format!("--filename=/{bucket}/x(1)+$=@,'!* --rw=write --size=128k --verify=crc32c --unlink=1"));
    let parts = "--http_object_mode=range --http_s3_multipart_size=5m --bs=5m --iodepth=3 --rw=write";
    run(&format!(
        "--filename=/{bucket}/p {parts} --size=15m --verify=crc32c --verify_interval=64k --unlink=1"
    ));
    let early =
        start(dir.path(), &s3(&format!("--filename=/{bucket}/q {parts} --size=15m --io_size=5m"))).ok();
    assert!(early.stdout.contains("of which there were 1 of 3 parts"), "{}", early.stdout);
    for (line, said) in [
        (format!("--filename=/{bucket}/a --http_s3_key=wrong"), "SignatureDoesNotMatch"),
        (format!("--filename=/{bucket}/a --http_s3_keyid=wrong"), "InvalidAccessKeyId"),
        ("--filename=/none/a".to_owned(), "NoSuchBucket"),
        (format!("--filename=/{bucket}/a --rw=read"), "NoSuchKey"),
    ] {
        let refused = start(dir.path(), &s3(&format!("--rw=write --size=128k {line}")));
        assert_eq!(refused.code(), 1, "{line}");
        assert!(refused.output().contains(said), "{line}: {}", refused.output());
    }
}

#[test]
fn a_gateway_of_ceph_speaks_swift() {
    let dir = scratch();
    let gateway = or_skip!(or_skip!(Ceph::shared()).gateway());
    let container = format!("container{}", std::process::id());
    gateway.make_container(&container);
    std::fs::write(dir.path().join("token"), gateway.swift_token()).unwrap();
    let line = |line: &str| {
        format!(
            "--name=job --ioengine=http --http_mode=swift --http_host={} --http_swift_auth_token_file=token --bs=64k \
             --filename=/swift/v1/{container}/a --http_retries=8 {line}",
            gateway.host()
        )
    };
    let json = report(dir.path(), &line("--rw=randwrite --size=1m --iodepth=4 --verify=crc32c"));
    assert_eq!(json.job().ios(), [16, 16, 0]);
    assert_eq!(report(dir.path(), &line("--rw=read")).job().bytes(), [1 << 20, 0, 0]);
    report(dir.path(), &line("--rw=trim --size=1m"));
    let missing = start(dir.path(), &line("--rw=read --size=64k"));
    assert!(missing.output().contains("404 Not Found"), "{}", missing.output());
    let refused = start(dir.path(), &line("--rw=write --size=64k --http_swift_auth_token=wrong"));
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("http_swift_auth_token"), "{}", refused.output());
}
