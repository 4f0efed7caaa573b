//! `http`: objects on a server. The server of these tests misbehaves on request; `object_stores.rs` has real servers.

pub(crate) mod bind;
pub(crate) mod copies;
pub(crate) mod errors;
pub(crate) mod headers;
pub(crate) mod hosts;
pub(crate) mod identity;
pub(crate) mod names;
mod times;
pub(crate) mod versions;
pub(crate) mod visible;

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, scratch, words};
use iolite_testing::{ObjectServer, Reply};
use std::path::Path;
use std::process::Command;

const KEYS: &str = "--http_s3_keyid=AKID --http_s3_key=the-secret-key";

/// A job on this server, with S3.
pub(crate) fn job(server: &ObjectServer, line: &str) -> String {
    let host = server.host();
    format!("--name=job --ioengine=http --http_mode=s3 --http_host={host} {KEYS} --bs=4k {line}")
}

pub(crate) fn run(server: &ObjectServer, line: &str) -> Finished {
    let dir = scratch();
    Program::own().line(dir.path(), &job(server, line))
}

/// The report of a job that succeeds.
#[track_caller]
pub(crate) fn report(server: &ObjectServer, line: &str) -> Json {
    let json = Json::parse(&run(server, &format!("--output-format=json {line}")).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

/// Runs a job with these environment variables and without any others about keys.
fn with_environment(dir: &Path, line: &str, environment: &[(&str, &str)]) -> Finished {
    let mut command = Command::new(&Program::own().path);
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"] {
        command.env_remove(name);
    }
    command.env_remove("AWS_SHARED_CREDENTIALS_FILE").env_remove("AWS_CONFIG_FILE").env("HOME", dir);
    Running::start(command.args(words(line)).envs(environment.iter().copied()).current_dir(dir)).wait()
}

fn called_fio(server: &ObjectServer, dir: &Path, line: &str) -> Finished {
    Program::called_fio(dir).line(dir, &job(server, line))
}

#[test]
pub fn objects_are_named_as_by_fio() {
    let server = ObjectServer::start();
    report(&server, "--filename=/bkt/a:bkt/b --rw=write --size=32k --buffer_pattern=0x41");
    let names = ["/bkt/a_0_4096", "/bkt/a_12288_4096", "/bkt/a_4096_4096", "/bkt/a_8192_4096"];
    let names: Vec<String> =
        names.iter().flat_map(|name| [(*name).to_owned(), name.replace("/a_", "/b_")]).collect();
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(server.names(), sorted);
    assert_eq!(server.object("/bkt/a_4096_4096").unwrap(), [0x41; 4096]);
    let json = report(&server, "--filename=/bkt/a --rw=randread --size=16k --iodepth=4");
    assert_eq!(json.job().ios(), [4, 0, 0]);
    // Characters that are invalid in URLs are encoded.
    report(&server, "--filename=/bkt/d(1)+ --rw=write --size=4k");
    assert!(server.object("/bkt/d%281%29%2B_0_4096").is_some(), "{:?}", server.names());
}

#[test]
pub fn trims_remove_objects() {
    let server = ObjectServer::start();
    report(&server, "--filename=/bkt/a --rw=write --size=16k");
    let json = report(&server, "--filename=/bkt/a --rw=trim --size=8k --offset=4k");
    assert_eq!(json.job().ios(), [0, 0, 2]);
    assert_eq!(server.names(), ["/bkt/a_0_4096", "/bkt/a_12288_4096"]);
}

#[test]
pub fn a_range_is_a_part_of_one_object() {
    let server = ObjectServer::start();
    let range = "--filename=/bkt/a --http_object_mode=range";
    report(&server, &format!("{range} --rw=write --bs=64k --size=64k"));
    assert_eq!(server.names(), ["/bkt/a"]);
    assert_eq!(server.object("/bkt/a").unwrap().len(), 65536);
    // The job need not give its size.
    let json = report(&server, &format!("{range} --rw=randread --iodepth=4"));
    assert_eq!(json.job().bytes(), [65536, 0, 0]);
    let asked = server.requests();
    let get = asked.iter().find(|seen| seen.method == "GET" && seen.fields["range"] == "bytes=4096-8191");
    assert!(get.is_some(), "{asked:?}");
    let short = run(&server, &format!("{range} --rw=read --offset=60k --size=8k --io_size=8k"));
    assert_eq!(short.code(), 1);
    assert!(short.output().contains("416 Range Not Satisfiable"), "{}", short.output());
    // A write would replace the whole object by a single block.
    let part = run(&server, &format!("{range} --rw=write --size=64k"));
    assert_eq!(part.code(), 1);
    assert!(part.output().contains("bs= has to be the size of the file, 65536 bytes"), "{}", part.output());
    assert_eq!(server.object("/bkt/a").unwrap().len(), 65536);
    // Under the name fio, this is allowed.
    let dir = scratch();
    called_fio(&server, dir.path(), &format!("{range} --rw=write --size=64k")).ok();
    assert_eq!(server.object("/bkt/a").unwrap().len(), 4096);
}

#[test]
pub fn the_depth_is_the_number_of_requests_in_flight() {
    let server = ObjectServer::behaving(|_| Reply::Gathered(16));
    let json = report(&server, "--filename=/bkt/a --rw=write --size=256k --iodepth=16");
    assert_eq!(json.job().ios(), [0, 64, 0]);
    assert_eq!((server.most_gathered(), server.connections()), (16, 16), "connections are kept");
    let dir = scratch();
    let server = ObjectServer::behaving(|_| Reply::Gathered(8));
    called_fio(&server, dir.path(), "--filename=/bkt/a --rw=write --size=64k --iodepth=8").ok();
    assert_eq!(server.most_gathered(), 8);
}

#[test]
pub fn connections_that_the_server_ends_are_made_anew() {
    let server = ObjectServer::behaving(|_| Reply::GrantedAndEnded);
    let json = report(&server, "--filename=/bkt/a --rw=randwrite --size=256k --iodepth=4 --verify=crc32c");
    assert_eq!(json.job().ios(), [64, 64, 0]);
    assert_eq!(server.connections(), 128);
}

#[test]
pub fn writes_are_verified_in_every_mode() {
    for how in [
        "--thread=1",
        "--io_submit_mode=offload",
        "--loops=2 --unlink_each_loop=1",
        "--numjobs=2 --offset_increment=1m --group_reporting=1",
        "--rate_iops=2000 --fsync=16 --end_fsync=1",
        "--http_object_mode=range --bs=1m --iodepth=1",
    ] {
        let server = ObjectServer::start();
        let json = report(
            &server,
            &format!("--filename=/bkt/a --size=1m --rw=randwrite --iodepth=8 --verify=crc32c {how}"),
        );
        let [reads, writes, _] = json.job().bytes();
        let passes = if how.contains("loops") || how.contains("numjobs") { 2 } else { 1 };
        assert_eq!([reads, writes], [passes << 20; 2], "{how}");
    }
}

#[test]
pub fn data_is_verified_in_a_later_run_and_damage_is_found() {
    let server = ObjectServer::start();
    let job =
        "--filename=/bkt/a --size=256k --rw=randwrite --iodepth=4 --verify=crc32c --verify_state_save=0";
    report(&server, &format!("{job} --do_verify=0"));
    assert_eq!(report(&server, &format!("{job} --verify_only=1")).job().ios(), [64, 0, 0]);
    let mut bytes = server.object("/bkt/a_8192_4096").unwrap();
    bytes[1000] ^= 1;
    server.put("/bkt/a_8192_4096", &bytes);
    let damaged = run(&server, &format!("{job} --verify_only=1"));
    assert_eq!(damaged.code(), 1);
    assert!(damaged.output().contains("offset 8192"), "{}", damaged.output());
}

#[test]
pub fn reading_never_writes_and_names_the_option_that_does() {
    let server = ObjectServer::start();
    for line in [
        "--rw=read --size=16k",
        "--rw=randread --size=16k --iodepth=4",
        "--rw=read --size=16k --create_only=1",
    ] {
        let read = run(&server, &format!("--filename=/bkt/a {line}"));
        if line.contains("create_only") {
            read.ok();
        } else {
            assert_eq!(read.code(), 1, "{line}");
            let told = read.output();
            assert!(told.contains("GET /bkt/a_") && told.contains("404 Not Found, NoSuchKey"), "{told}");
            assert!(told.contains("http_create=1"), "{told}");
        }
    }
    run(&server, "--filename=/bkt/a --rw=read").refused().says("need to specify size=");
    assert_eq!((server.count("PUT"), server.names().len()), (0, 0));
    let trim = run(&server, "--filename=/bkt/a --rw=trim --size=4k");
    assert_eq!(trim.code(), 1);
}

#[test]
pub fn under_the_name_fio_missing_objects_are_zeros() {
    let server = ObjectServer::start();
    let dir = scratch();
    for rw in ["read", "trim"] {
        let done = called_fio(&server, dir.path(), &format!("--filename=/bkt/a --rw={rw} --size=16k")).ok();
        assert_eq!(done.stderr, "", "{rw}");
        assert!(done.stdout.contains("4 requests for objects that are not there"), "{}", done.stdout);
    }
    assert_eq!(server.count("PUT"), 0);
    let verified =
        "--filename=/bkt/a --rw=write --size=16k --verify=crc32c --verify_only=1 --verify_state_load=0";
    assert_eq!(called_fio(&server, dir.path(), verified).code(), 1, "zeros are not what was written");
}

#[test]
pub fn http_create_creates_objects_to_read() {
    let server = ObjectServer::start();
    let job = "--filename=/bkt/a --rw=randread --size=16k --http_create=1";
    run(&server, &format!("{job} --readonly")).refused();
    assert_eq!(server.count("PUT"), 0);
    report(&server, &format!("{job} --create_only=1"));
    assert_eq!((server.names().len(), server.count("GET")), (4, 0));
    assert!(server.object("/bkt/a_0_4096").unwrap().iter().any(|&byte| byte != 0));
    let json = report(&server, job);
    assert_eq!((json.job().ios(), server.count("PUT")), ([4, 0, 0], 4));
    // The job is larger than the existing object: the rest is added.
    report(&server, &job.replace("16k", "24k"));
    assert_eq!((server.names().len(), server.count("PUT")), (6, 6));
    // Now the job need not give its size.
    assert_eq!(report(&server, "--filename=/bkt/a --rw=read").job().bytes(), [24576, 0, 0]);
    report(
        &server,
        "--filename=/bkt/r --rw=randread --size=3m --http_object_mode=range --http_create=1 --io_size=64k",
    );
    assert_eq!(server.object("/bkt/r").unwrap().len(), 3 << 20);
}

#[test]
pub fn unlink_removes_written_objects() {
    let server = ObjectServer::start();
    server.put("/bkt/other_0_4096", b"precious");
    report(&server, "--filename=/bkt/a --rw=randwrite --size=64k --io_size=32k --unlink=1");
    assert_eq!(server.names(), ["/bkt/other_0_4096"]);
}

#[test]
fn offload_reports_the_servers_message() {
    let server = ObjectServer::start();
    let told = run(&server, "--filename=/bkt/a --rw=read --size=16k --io_submit_mode=offload --iodepth=2");
    assert_eq!(told.code(), 1);
    assert!(told.output().contains("404 Not Found, NoSuchKey"), "{}", told.output());
}

#[test]
pub fn reads_may_only_look_objects_up() {
    let server = ObjectServer::start();
    report(&server, "--filename=/bkt/a --rw=write --size=16k");
    let json = report(&server, "--filename=/bkt/a --rw=randread --size=16k --http_read=head --iodepth=2");
    assert_eq!((json.job().ios(), json.job().int("read.ttfb_ns.N")), ([4, 0, 0], 4));
    let methods = |of: &str| server.requests().into_iter().filter(|seen| seen.method == of).count();
    assert_eq!((methods("HEAD"), methods("GET")), (4, 0));
    // One object may be looked up as often as it has blocks.
    report(&server, "--filename=/bkt/b --rw=write --bs=16k --size=16k --http_object_mode=range");
    report(&server, "--filename=/bkt/b --rw=read --size=16k --http_object_mode=range --http_read=head");
    assert_eq!((methods("HEAD"), methods("GET")), (8, 0));
    let missing = run(&server, "--filename=/bkt/none --rw=read --size=4k --http_read=head");
    assert!(missing.code() == 1 && missing.output().contains("HEAD /bkt/none_0_4096: 404"), "{missing}");
    let verified = run(&server, "--filename=/bkt/a --rw=read --size=16k --http_read=head --verify=crc32c");
    assert!(verified.code() == 1 && verified.output().contains("no data comes back"), "{verified}");
    let both = run(&server, "--filename=/bkt/a --rw=read --size=16k --http_read=head --http_s3_list=5");
    assert!(both.code() == 1 && both.output().contains("give one of them"), "{both}");
}

#[test]
pub fn a_shorter_object_is_not_replaced() {
    let server = ObjectServer::start();
    server.put("/bkt/a", &[1; 5000]);
    let line = "--filename=/bkt/a --http_object_mode=range --rw=read --size=16k --http_create=1";
    let refused = run(&server, line);
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("5000 bytes"), "{}", refused.output());
    assert_eq!(server.object("/bkt/a"), Some(vec![1; 5000]));
}

#[test]
pub fn set_ups_that_cannot_work_are_refused_with_the_remedy() {
    let server = ObjectServer::start();
    for (line, said) in [
        ("--filename=nobucket", "give filename=/BUCKET/NAME"),
        ("--filename=/b/a --http_host=http://h", "https= selects the protocol"),
        ("--filename=/b/a --http_host=h:0", "the port is not 1 to 65535"),
        (
            "--filename=/b/a --http_host=there.is.none.invalid",
            "http_host=there.is.none.invalid: no address is known for this name",
        ),
        ("--filename=/b/a --http_s3_unsigned_payload=1", "needs https=on"),
        ("--filename=/b/a --http_s3_sse_customer_key=short", "the key must have 32 bytes"),
        ("--filename=/b/a --http_ca_file=none.crt", "are for https=on"),
        ("--filename=/b/a --https=on --http_ca_file=none.crt", "http_ca_file=none.crt: "),
        ("--filename=/b/a --https=on --http_cert_file=c", "http_cert_file and http_key_file go together"),
        ("--filename=/b/a --http_mode=ftp", "webdav"),
        ("--filename=/b/a --http_object_mode=x", "range"),
        ("--filename=/b/a --https=maybe", "insecure"),
        ("--filename=/b/a --http_retries=-1", "http_retries"),
        ("--opendir=/b/a --http_mode=webdav", "only http_mode=s3 lists names"),
        ("--filename=/b/a --http_s3_list=1001", "http_s3_list"),
        ("--filename=/b/a --http_s3_list=10", "can be neither written, trimmed nor verified"),
        ("--filename=/b/a --http_s3_list=10 --rw=read --http_create=1", "leave http_create out"),
    ] {
        let refused = run(&server, &format!("--rw=write --size=4k {line}"));
        assert_ne!(refused.code(), 0, "{line}");
        assert!(refused.output().contains(said), "{line}: {}", refused.output());
    }
    assert_eq!(server.requests(), []);
}

#[test]
pub fn requests_have_the_fields_set_by_options() {
    let server = ObjectServer::start();
    let last = || server.requests().last().unwrap().fields.clone();
    let key = "0123456789abcdef0123456789abcdef";
    let line = format!(
        "--filename=/b/a --rw=write --size=4k --http_s3_storage_class=GLACIER --http_s3_security_token=tok \
         --http_s3_region=eu-west-1 --http_s3_sse_customer_key={key} --http_s3_sse_customer_algorithm=AES256"
    );
    report(&server, &line);
    let fields = last();
    let signed = &fields["authorization"];
    assert!(
        signed.starts_with("AWS4-HMAC-SHA256 Credential=AKID/") && signed.contains("/eu-west-1/s3/"),
        "{signed}"
    );
    assert_eq!(fields["x-amz-storage-class"], "GLACIER");
    assert_eq!(fields["x-amz-security-token"], "tok");
    let customer = "x-amz-server-side-encryption-customer-";
    assert_eq!(fields[&format!("{customer}algorithm")], "AES256");
    assert_eq!(fields[&format!("{customer}key")], "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    assert_eq!(fields[&format!("{customer}key-md5")].len(), 24);
    report(&server, "--filename=/b/a --rw=write --size=4k");
    assert!(!last().contains_key("x-amz-storage-class"), "{:?}", last());
}

#[test]
pub fn the_bucket_may_be_in_the_servers_name() {
    let server = ObjectServer::start();
    report(&server, "--filename=/a --rw=write --size=8k --http_s3_addressing=virtual");
    assert_eq!(server.names(), ["/a_0_4096", "/a_4096_4096"]);
    // Under the name fio, this is accepted.
    let dir = scratch();
    called_fio(&server, dir.path(), "--filename=/b --rw=write --size=4k").ok();
    assert!(server.object("/b_0_4096").is_some());
}

#[test]
pub fn objects_are_sent_with_checksums() {
    let server = ObjectServer::start();
    for (checksum, length) in [("crc32c", 8), ("sha256", 44)] {
        report(&server, &format!("--filename=/b/a --rw=write --size=4k --http_s3_checksum={checksum}"));
        let last = server.requests().last().unwrap().fields.clone();
        let name = format!("x-amz-checksum-{checksum}");
        assert_eq!(last[&name].len(), length);
        assert!(last["authorization"].contains(&format!(";{name};")), "it is signed: {last:?}");
    }
}

/// Each block is an object with its offset and length in its name, so two block sizes are two sets of objects.
#[test]
pub fn objects_of_two_block_sizes_have_nothing_in_common() {
    let server = ObjectServer::start();
    let second = job(&server, "--http_create=1 --rw=read --size=16k --filename=/b/a --bs=8k --stonewall");
    report(&server, &format!("--http_create=1 --rw=read --size=16k --filename=/b/a {second}"));
    let names = server.names();
    assert_eq!(names.len(), 4 + 2, "{names:?}");
    let shifted = run(&server, "--unlink=1 --rw=write --size=16k --offset=2k --filename=/b/c --bs=4k");
    assert_eq!(shifted.code(), 1, "{}", shifted.output());
    assert!(shifted.output().contains("offset=2048: each block is an object"), "{}", shifted.output());
}

#[test]
pub fn the_examples_work() {
    let server = ObjectServer::start();
    let dir = scratch();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/servers");
    for name in ["s3.fio", "s3-cluster.fio", "webdav.fio"] {
        let path = examples.join(name);
        let host = server.host();
        let variables = ["S3_HOST", "DAV_HOST"].map(|name| (name, host.as_str()));
        let keys = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
        let all = [&variables[..], &keys].concat();
        with_environment(dir.path(), path.to_str().unwrap(), &all).ok();
        assert_eq!(server.names(), [""; 0], "they leave nothing behind");
    }
}
