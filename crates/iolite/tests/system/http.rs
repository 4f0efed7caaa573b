//! `http`: objects on a server. The server of these tests misbehaves on request; `object_stores.rs` has real servers.

pub(crate) mod bind;
pub(crate) mod copies;
pub(crate) mod headers;
pub(crate) mod hosts;
pub(crate) mod identity;
pub(crate) mod versions;
pub(crate) mod visible;

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, at_once, scratch, words};
use iolite_testing::{ClosedPort, ObjectServer, Reply, Seen, certificate};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

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

/// A refusal in the format of S3.
fn error(code: &'static str, status: u16) -> Reply {
    let text = format!("<Error><Code>{code}</Code><Message>said the server</Message></Error>").leak();
    Reply::Refused(status, "x-amz-request-id: 4711\r\n", text)
}

#[test]
pub fn refusals_are_reported_with_the_remedy() {
    for (code, status, remedy) in [
        ("SignatureDoesNotMatch", 403, "http_s3_key"),
        ("InvalidAccessKeyId", 403, "http_s3_keyid"),
        ("RequestTimeTooSkewed", 403, "clock"),
        ("AccessDenied", 403, "has no permission for that"),
        ("NoSuchBucket", 404, "aws s3 mb s3://BUCKET"),
        ("SlowDown", 503, "http_retries="),
        ("TooManyRequests", 429, "http_retries="),
    ] {
        let server = ObjectServer::behaving(move |_| error(code, status));
        let refused = run(&server, "--filename=/bkt/a --rw=write --size=16k");
        assert_eq!(refused.code(), 1, "{code}");
        let told = refused.output();
        for words in
            ["PUT /bkt/a_0_4096: ", code, "said the server", "(request 4711)", remedy, "Input/output error"]
        {
            assert!(told.contains(words), "{code}: {words}: {told}");
        }
    }
    // Redirections are not followed. The message shows the target without its query, which may contain a signature.
    for status in [301, 302, 307, 308] {
        let place = "Location: http://elsewhere.example:81/bkt/a?X-Amz-Signature=sesame\r\n";
        let server = ObjectServer::behaving(move |_| Reply::Refused(status, place, ""));
        let refused = run(&server, "--filename=/bkt/a --rw=write --size=16k");
        assert_eq!(refused.code(), 1, "{status}");
        let told = refused.output();
        for words in
            ["http://elsewhere.example:81/bkt/a: ", "http_s3_region", "http_host=elsewhere.example:81"]
        {
            assert!(told.contains(words) && !told.contains("sesame"), "{status}: {words}: {told}");
        }
    }
}

/// All units in flight of all workers fail, for the same reason.
#[test]
pub fn the_same_failure_is_reported_once_with_a_count() {
    let server = ObjectServer::behaving(|_| error("NoSuchBucket", 404));
    let line = "--filename=/bkt/a --rw=write --size=128k --iodepth=8 --numjobs=3";
    let refused = run(&server, line);
    assert_eq!(refused.code(), 1);
    let reports: Vec<&str> = refused.stderr.lines().filter(|line| line.contains("NoSuchBucket")).collect();
    let [first, rest] = reports[..] else { panic!("{refused}") };
    let failure = first.strip_prefix("iolite: ").unwrap();
    let count = rest.strip_prefix("iolite: ").unwrap().strip_suffix(&format!(" more like this: {failure}"));
    let count: usize = count.unwrap_or_else(|| panic!("{refused}")).parse().unwrap();
    assert_eq!(count + 1, server.count("PUT"), "{refused}");
    let dir = scratch();
    let strict = called_fio(&server, dir.path(), line);
    assert!(strict.stderr.matches("NoSuchBucket").count() > 2, "{strict}");
}

/// Errors after which the job continues have the same cause and remedy, and their count.
#[test]
pub fn tolerated_failures_are_reported_once_with_a_count() {
    let code = |seen: &Seen| if seen.number < 2 { "NoSuchBucket" } else { "AccessDenied" };
    let line = "--filename=/bkt/a --rw=write --size=32k --continue_on_error=all";
    for how in ["", "--io_submit_mode=offload"] {
        let server =
            ObjectServer::behaving(move |seen| error(code(seen), if seen.number < 2 { 404 } else { 403 }));
        let told = run(&server, &format!("{line} {how}")).ok();
        let [first, second, more, most] = told.stderr.lines().collect::<Vec<_>>()[..] else {
            panic!("{told}")
        };
        let first = first.strip_prefix("iolite: ").unwrap();
        let second = second.strip_prefix("iolite: ").unwrap();
        for words in
            ["/bkt/a: Input/output error (PUT", "NoSuchBucket", "aws s3 mb", "write offset=0, buflen=4096"]
        {
            assert!(first.contains(words), "{words}: {told}");
        }
        assert!(second.contains("AccessDenied") && second.contains("has no permission for that"), "{told}");
        assert_eq!(more, format!("iolite: 1 more like this: {first}"));
        assert_eq!(most, format!("iolite: 5 more like this: {second}"));
        let json = run(&server, &format!("{line} {how} --output-format=json")).ok();
        assert_eq!(json.stderr.lines().count(), 2, "{json}");
        assert!(json.stdout.contains("\"7 more like this: io_u error"), "{json}");
    }
    // `error_dump` describes each error.
    let server = ObjectServer::behaving(|_| error("AccessDenied", 403));
    let each = run(&server, &format!("{line} --error_dump=1")).ok();
    assert_eq!(each.stderr.matches("AccessDenied").count(), 8, "{each}");
    // Under the name `fio`, they are lines of the report.
    let dir = scratch();
    let strict = called_fio(&server, dir.path(), line).ok();
    assert_eq!((strict.stderr.as_str(), strict.stdout.matches("AccessDenied").count()), ("", 2), "{strict}");
    assert!(strict.stdout.contains("7 more like this: io_u error"), "{strict}");
    let json = called_fio(&server, dir.path(), &format!("{line} --output-format=json")).ok();
    assert_eq!(json.stderr, "", "{json}");
    Json::parse(&json.stdout);
}

#[test]
pub fn temporary_errors_are_retried_only_with_http_retries() {
    let busy = |seen: &Seen| if seen.number < 3 { error("SlowDown", 503) } else { Reply::Granted };
    let line = "--filename=/bkt/a --rw=write --size=16k";
    assert_eq!(run(&ObjectServer::behaving(busy), line).code(), 1);
    let server = ObjectServer::behaving(busy);
    let done = run(&server, &format!("{line} --http_retries=3")).ok();
    assert!(
        done.stdout.contains("requests repeated: 3, answers that ask for fewer requests (429 or 503): 3"),
        "{}",
        done.stdout
    );
    assert_eq!((server.count("PUT"), server.names().len()), (7, 4));
    // Errors that would recur each time are not retried.
    let server = ObjectServer::behaving(|_| error("AccessDenied", 403));
    assert_eq!(run(&server, &format!("{line} --http_retries=3")).code(), 1);
    assert_eq!(server.count("PUT"), 1);
}

#[test]
pub fn repetitions_are_counted_and_end_when_the_run_does() {
    let busy = |seen: &Seen| if seen.number < 3 { error("SlowDown", 503) } else { Reply::Granted };
    let json = report(
        &ObjectServer::behaving(busy),
        "--filename=/bkt/a --rw=write --size=16k --http_retries=3 --io_submit_mode=offload",
    );
    assert_eq!((json.job().int("requests.repeated"), json.job().int("requests.throttled")), (3, 3));
    // Group reporting adds the counts of all jobs.
    let busy_once =
        |seen: &Seen| if seen.number.is_multiple_of(2) { error("SlowDown", 503) } else { Reply::Granted };
    let server = ObjectServer::behaving(busy_once);
    let line = "--filename_format=/bkt/$jobnum --rw=write --size=16k --http_retries=9 --numjobs=2 --group_reporting=1";
    let json = report(&server, line);
    let refused = server.count("PUT") as u64 - 8;
    assert!(refused > 1);
    assert_eq!(
        (json.job().int("requests.repeated"), json.job().int("requests.throttled")),
        (refused, refused)
    );
    // Repetitions within the ramp are not counted.
    let server =
        ObjectServer::behaving(|seen| if seen.number == 0 { error("SlowDown", 503) } else { Reply::Granted });
    let line = "--filename=/bkt/a --rw=write --size=16k --http_retries=3 --time_based --ramp_time=1s --runtime=100ms --thinktime=10ms";
    let json = report(&server, line);
    assert_eq!((json.job().int("requests.repeated"), json.job().int("requests.throttled")), (0, 0));
    // An interrupt ends a job that would retry for hours.
    let dir = scratch();
    for how in ["--iodepth=4", "--iodepth=4 --thread=1", "--iodepth=4 --io_submit_mode=offload"] {
        let server = ObjectServer::behaving(|_| Reply::Refused(503, "Retry-After: 10\r\n", ""));
        let line =
            job(&server, &format!("--filename=/bkt/a --rw=write --size=64k --http_retries=1000 {how}"));
        let mut running = Program::own().start(dir.path(), line.split_whitespace());
        running.wait_until("it has asked", |_| server.count("PUT") >= 4);
        running.signal(libc::SIGINT);
        running.wait();
    }
}

/// No rights are needed: the engine itself knows the stages of requests.
#[test]
fn stages_of_requests_add_up() {
    const STAGES: [&str; 5] = ["connect", "tls", "send", "first_byte", "last_byte"];
    let delay = Duration::from_millis(20);
    let plain = ObjectServer::behaving(move |_| {
        std::thread::sleep(delay);
        Reply::Granted
    });
    let trusting = format!("--https=on --http_ca_file={}", certificate("authority.crt").display());
    let encrypted = ObjectServer::encrypted("server", false);
    for (server, how, is_encrypted) in [
        (&plain, "", false),
        (&plain, "--thread=1 --iodepth=4", false),
        (&encrypted, trusting.as_str(), true),
        (&encrypted, &format!("{trusting} --iodepth=4"), true),
    ] {
        let line = format!("--filename=/bkt/a --rw=randrw --size=64k --http_create=1 --stages {how}");
        let json = report(server, &line);
        for direction in ["read", "write"] {
            let stages = &json.0["iolite"]["stages"][0][direction];
            let of =
                |stage: &str, figure: &str| stages[format!("{stage}_ns")][figure].as_f64().expect("a figure");
            let ios = Some(json.job().int(&format!("{direction}.total_ios")));
            assert_eq!(stages["ios"].as_u64(), ios, "{how}");
            let sum: f64 = STAGES.iter().map(|stage| of(stage, "mean")).sum();
            let clat = json.job().float(&format!("{direction}.clat_ns.mean"));
            assert!((sum - clat).abs() < 1000.0, "{how}: {sum} {clat}");
            // The delay is in the time to the first byte. (The server may begin to wait before we see that all is sent.)
            assert!(
                is_encrypted || of("first_byte", "mean") > delay.as_nanos() as f64 / 2.0,
                "{how}: {stages}"
            );
        }
        let longest = |stage: &str| {
            let told = &json.0["iolite"]["stages"][0];
            let max = |direction: &str| told[direction][format!("{stage}_ns")]["max"].as_u64().unwrap_or(0);
            max("read").max(max("write"))
        };
        // Somebody has connected. A kept connection takes no time.
        assert!(longest("connect") > 0 && longest("send") > 0, "{how}");
        assert_eq!(longest("tls") > 0, is_encrypted, "{how}");
    }
    // Sending is no part of the handshake.
    let line = format!("--filename=/bkt/b --rw=write --bs=4m --size=4m {trusting} --stages");
    let told = report(&encrypted, &line).0["iolite"]["stages"][0]["write"].clone();
    assert!(told["send_ns"]["min"].as_u64() > Some(0) && told["tls_ns"]["min"].as_u64() > Some(0), "{told}");
    // A request that is sent again has the stages of several.
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let busy =
        ObjectServer::behaving(move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Reply::Refused(503, "Retry-After: 1\r\n", ""),
            _ => Reply::Granted,
        });
    let line = "--filename=/bkt/a --rw=write --size=16k --http_retries=3 --stages";
    let told = report(&busy, line).0["iolite"]["stages"][0]["write"].clone();
    assert_eq!((&told["ios"], &told["unmatched"]["untold"]), (&3.into(), &1.into()), "{told}");
}

#[test]
fn the_time_to_the_first_byte_is_reported() {
    let server = ObjectServer::start();
    let dir = scratch();
    for how in ["", "--io_submit_mode=offload --iodepth=2", "--thread=1 --iodepth=4"] {
        let line = format!("--filename=/bkt/a --rw=randrw --size=64k --http_create=1 {how}");
        let json = report(&server, &line);
        for direction in ["read", "write"] {
            let of = |key: &str| json.job().int(&format!("{direction}.{key}"));
            assert_eq!(of("ttfb_ns.N"), of("total_ios"), "{how}");
            assert!(of("ttfb_ns.min") > 0 && of("ttfb_ns.max") <= of("lat_ns.max"), "{how}");
        }
        let normal = run(&server, &line).ok().stdout;
        assert!(normal.contains("    ttfb (") && normal.contains("    ttfb percentiles ("), "{normal}");
        let fio = called_fio(&server, dir.path(), &format!("{line} --output-format=json,normal")).ok().stdout;
        assert!(!fio.contains("ttfb") && !fio.contains("\"requests\""), "{fio}");
        // Logs have it as well, for each request and for windows.
        let log = |name: &str, more: &str| {
            let line = job(&server, &format!("{line} --write_lat_log={name} {more}"));
            Program::own().line(dir.path(), &line).ok();
            let read =
                |kind: &str| fs::read_to_string(dir.path().join(format!("{name}_{kind}.1.log"))).unwrap();
            let values = |text: &str| -> Vec<u64> {
                text.lines().map(|line| line.split(", ").nth(1).unwrap().parse().unwrap()).collect()
            };
            (values(&read("ttfb")), values(&read("lat")))
        };
        let (times, latencies) = log("each", "");
        assert_eq!(times.len(), latencies.len(), "{how}");
        assert!(times.iter().zip(&latencies).all(|(time, latency)| (1..=*latency).contains(time)), "{how}");
        let (times, latencies) = log("mean", "--log_avg_msec=10000");
        assert!(
            times.len() == 2 && times.iter().zip(&latencies).all(|(time, latency)| time <= latency),
            "{how}"
        );
    }
    // A report without requests to a server has no such line.
    let local = Program::own().line(dir.path(), "--name=l --rw=write --size=64k --output-format=json,normal");
    assert!(!local.ok().stdout.contains("ttfb"));
}

/// Sending is a part of the completion latency, as in fio, whose engine sends and waits in one call.
#[test]
fn completion_latency_is_that_of_the_whole_request() {
    let server = ObjectServer::start();
    let dir = scratch();
    let line = "--filename=/bkt/a --rw=randrw --size=64k --http_create=1 --write_lat_log=l --iodepth=2";
    let line = job(&server, &format!("{line} --output-format=json,normal"));
    for program in [Program::own(), Program::called_fio(dir.path())] {
        let told = program.line(dir.path(), &line).ok().stdout;
        assert!(told.contains("    clat (") && !told.contains("    slat ("), "{told}");
        let json = Json::parse(&told);
        for direction in ["read", "write"] {
            let of = |key: &str| json.job().int(&format!("{direction}.{key}"));
            assert_eq!((of("slat_ns.N"), of("clat_ns.N")), (0, of("total_ios")));
            if told.contains("ttfb") {
                assert!(of("ttfb_ns.min") <= of("clat_ns.min") && of("ttfb_ns.max") <= of("clat_ns.max"));
            }
        }
        assert_eq!(fs::read_to_string(dir.path().join("l_slat.1.log")).unwrap(), "");
        let log = fs::read_to_string(dir.path().join("l_clat.1.log")).unwrap();
        assert_eq!(log.lines().count(), 16);
    }
    // With offload, there is a submission latency: the time until a submitter takes the I/O.
    let json = report(&server, "--filename=/bkt/a --rw=write --size=64k --io_submit_mode=offload");
    assert_eq!(json.job().int("write.slat_ns.N"), 16);
    assert!(json.job().int("write.ttfb_ns.max") <= json.job().int("write.clat_ns.max"));
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
pub fn names_are_listed_in_parts() {
    let server = ObjectServer::start();
    report(&server, "--filename=/bkt/dir/a:/bkt/dir/b --rw=write --size=80k");
    report(&server, "--filename=/bkt/other --rw=write --size=80k");
    // Three requests list all twenty names, seven at a time. Each unit in flight goes through the list on its own, so
    // the total may vary.
    for (how, names) in
        [("--iodepth=1", &[40][..]), ("--iodepth=2", &[40, 41]), ("--io_submit_mode=offload", &[40])]
    {
        let line = format!("--filename=/bkt/dir/ --rw=read --http_s3_list=7 --size=24k {how}");
        let json = report(&server, &line);
        assert_eq!((json.job().ios(), json.job().int("read.ttfb_ns.N")), ([6, 0, 0], 6), "{how}");
        let told = run(&server, &line).ok().stdout;
        let is_told = |count| told.contains(&format!("http: names listed: {count}"));
        assert!(names.iter().any(is_told), "{how}: {told}");
    }
    let asked: Vec<String> = server.requests().into_iter().map(|seen| seen.path).collect();
    let first = "/bkt?encoding-type=url&list-type=2&max-keys=7&prefix=dir%2F";
    assert!(asked.iter().any(|path| path == first), "{asked:?}");
    assert!(
        asked.iter().any(|path| path.starts_with("/bkt?continuation-token=%2Fbkt%2Fdir%2F")),
        "{asked:?}"
    );
    // The names of a whole bucket, and an empty list.
    for (name, count) in [("/bkt", 40), ("/bkt/", 40), ("/bkt/none", 0)] {
        let told =
            run(&server, &format!("--filename={name} --rw=read --http_s3_list=1000 --size=8k --io_size=4k"));
        let told = told.ok().stdout;
        assert_eq!(told.contains(&format!("http: names listed: {count}")), count > 0, "{name}: {told}");
    }
    let refused = run(
        &ObjectServer::behaving(|_| error("AccessDenied", 403)),
        "--filename=/bkt/ --rw=read --http_s3_list=9 --size=4k",
    );
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("GET list of /bkt/: 403 Forbidden"), "{}", refused.output());
}

#[test]
fn files_are_found_by_the_beginning_of_their_names() {
    let server = ObjectServer::start();
    report(&server, "--filename=/bkt/dir/a:/bkt/dir/b --rw=write --size=32k");
    server.put("/bkt/dir/whole", &[1; 8192]);
    server.put("/bkt/other_0_4096", &[1; 4096]);
    assert_eq!(report(&server, "--opendir=/bkt/dir/ --rw=read").job().bytes(), [32 << 10, 0, 0]);
    let range =
        |line: &str| report(&server, &format!("{line} --http_object_mode=range --bs=8k")).job().bytes();
    server.put("/bkt/whole/a", &[1; 8192]);
    assert_eq!(range("--opendir=/bkt/whole --rw=read"), [8192, 0, 0]);
    // A longer name that begins with the directory's name is not in the directory.
    for path in ["/bkt/whole-not/a", "/bkt/wholesale"] {
        server.put(path, &[2; 8192]);
    }
    assert_eq!(range("--opendir=/bkt/whole --rw=trim"), [0, 0, 8192]);
    assert!(server.object("/bkt/whole/a").is_none());
    assert_eq!(server.object("/bkt/whole-not/a").unwrap(), [2; 8192]);
    assert_eq!(server.object("/bkt/wholesale").unwrap(), [2; 8192]);
    // Objects whose names only look like those of blocks do not count.
    server.put("/bkt/logs/app_2024_06", &[3; 4096]);
    assert_eq!(run(&server, "--opendir=/bkt/logs --rw=trim").code(), 1);
    // The existing objects have another block size.
    server.put("/bkt/logs/whole_0_16384", &[3; 16384]);
    let other = run(&server, "--opendir=/bkt/logs --rw=read");
    assert_eq!(other.code(), 1);
    assert!(other.output().contains("blocks of 16384 bytes; use bs=16384"), "{}", other.output());
    // A truncated list is an error.
    for (text, why) in [
        (
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "gives no NextContinuationToken",
        ),
        ("<html>Welcome</html>", "no complete <ListBucketResult>"),
        (
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>\
             </ListBucketResult>",
            "again and again",
        ),
    ] {
        let server = ObjectServer::behaving(move |_| Reply::Refused(200, "", text));
        let refused = run(&server, "--opendir=/bkt/dir --rw=read");
        assert_eq!(refused.code(), 1);
        assert!(refused.output().contains(why), "{why}: {}", refused.output());
    }
    let none = run(&server, "--opendir=/bkt/none --rw=read");
    assert_eq!(none.code(), 1);
    assert!(none.output().contains("no name begins with this"), "{}", none.output());
}

#[test]
fn the_sizes_of_many_files_are_asked_for_at_once() {
    let server =
        ObjectServer::behaving(
            |seen| if seen.method == "HEAD" { Reply::Gathered(16) } else { Reply::Granted },
        );
    let names: Vec<String> = (0..64).map(|number| format!("/bkt/{number}")).collect();
    for name in &names {
        server.put(name, &[1; 4096]);
        server.put(&format!("{name}_0_4096"), &[1; 4096]);
    }
    for mode in ["range", "block"] {
        let line = format!("--filename={} --http_object_mode={mode} --rw=read", names.join(":"));
        assert_eq!(report(&server, &line).job().bytes(), [64 * 4096, 0, 0], "{mode}");
    }
    assert_eq!(server.most_gathered(), 16);
    let refusing = ObjectServer::behaving(|_| error("AccessDenied", 403));
    let refused = run(&refusing, &format!("--filename={} --rw=read", names.join(":")));
    assert_eq!(refused.code(), 1);
    assert!(
        refused.output().contains("HEAD /bkt/") && refused.output().contains("403"),
        "{}",
        refused.output()
    );
}

#[test]
pub fn broken_answers_are_errors_of_their_units() {
    let read = "--filename=/bkt/a --rw=read --size=16k";
    for (reply, said) in [
        (Reply::Cut(100), "the connection was cut after 100 of 4096 bytes"),
        (Reply::Garbage, "no valid HTTP/1.1 answer"),
        (Reply::Ended, "did not answer"),
    ] {
        let server = ObjectServer::behaving(move |seen| {
            if seen.path == "/bkt/a_4096_4096" && seen.method == "GET" {
                reply.clone()
            } else {
                Reply::Granted
            }
        });
        report(&server, "--filename=/bkt/a --rw=write --size=16k");
        let broken = run(&server, read);
        assert_eq!(broken.code(), 1);
        assert!(broken.output().contains(said), "{said}: {}", broken.output());
        assert!(broken.output().contains("read offset=4096"), "{}", broken.output());
        // With continue_on_error, the other I/Os continue.
        let dir = scratch();
        let line = job(&server, &format!("{read} --continue_on_error=read --output-format=json"));
        let counted = Json::parse(&Program::own().line(dir.path(), &line).stdout);
        assert_eq!((counted.job().ios(), counted.job().int("total_err")), ([4, 0, 0], 1), "{said}");
    }
    let server = ObjectServer::start();
    for (name, length) in [("/bkt/a_0_4096", 100), ("/bkt/b_0_4096", 5000)] {
        server.put(name, &vec![1; length]);
        let file = name.trim_end_matches("_0_4096");
        let strange = run(&server, &format!("--filename={file} --rw=read --size=4k"));
        assert_eq!(strange.code(), 1);
        let said = format!("the object has {length} bytes, not 4096");
        assert!(strange.output().contains(&said), "{}", strange.output());
    }
}

/// An answer with another range than the requested one is an error, even if its length is right.
#[test]
pub fn another_part_of_an_object_is_an_error() {
    let whole: &'static str = "x".repeat(4096).leak();
    for (status, fields, said) in [
        (200, "", "not the range that was asked for"),
        (
            206,
            "Content-Range: bytes 0-4095/16384\r\n",
            "another range of the object than that which begins at 4096",
        ),
    ] {
        let server = ObjectServer::behaving(move |seen| match seen.fields.get("range") {
            Some(range) if range == "bytes=4096-8191" => Reply::Refused(status, fields, whole),
            _ => Reply::Granted,
        });
        server.put("/bkt/a", &[1; 16384]);
        let wrong = run(&server, "--filename=/bkt/a --http_object_mode=range --rw=read --size=16k");
        assert_eq!(wrong.code(), 1);
        assert!(wrong.output().contains(said), "{said}: {}", wrong.output());
    }
}

#[test]
pub fn surplus_bytes_are_not_the_next_answer() {
    let server = ObjectServer::behaving(|seen| match seen.method.as_str() {
        "GET" => Reply::Surplus,
        _ => Reply::Granted,
    });
    let verified = "--filename=/bkt/a --size=64k --verify=crc32c";
    report(&server, &format!("{verified} --rw=write --do_verify=0"));
    let counted = report(&server, &format!("{verified} --rw=read"));
    assert_eq!(counted.job().ios(), [16, 0, 0]);
}

#[test]
pub fn a_trim_that_was_done_when_the_connection_ended_is_done() {
    let server = ObjectServer::behaving(|seen| match seen.method.as_str() {
        "DELETE" if seen.number % 2 == 0 => Reply::GrantedAndEnded,
        _ => Reply::Granted,
    });
    report(&server, "--filename=/bkt/a --size=32k --rw=write");
    report(&server, "--filename=/bkt/a --size=32k --rw=trim");
    assert_eq!(server.names(), [""; 0]);
}

/// If a server finds every name, the size of a file cannot be found out.
#[test]
pub fn sizes_are_not_looked_for_without_end() {
    let everything = ObjectServer::behaving(|_| Reply::Refused(200, "", ""));
    let endless = run(&everything, "--filename=/bkt/a --rw=read --size=16k");
    assert_eq!(endless.code(), 1);
    assert!(endless.output().contains("has 0 bytes, not 4096"), "{}", endless.output());
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
pub fn a_silent_server_is_an_error_after_a_timeout() {
    let server = ObjectServer::behaving(|_| Reply::Silence);
    let silent = run(&server, "--filename=/bkt/a --rw=write --size=16k --iodepth=4 --http_timeout=300ms");
    assert_eq!(silent.code(), 1);
    assert!(
        silent.output().contains("the server was silent for 0.3 s (http_timeout)"),
        "{}",
        silent.output()
    );
    let dir = scratch();
    let line = "--filename=/bkt/a --rw=write --size=4k --http_timeout=300ms";
    assert_eq!(called_fio(&server, dir.path(), line).code(), 1);
    // An interrupted job waits only 10 s instead of the timeout: during I/O, while it creates the objects to read, and
    // while it removes its objects.
    let interrupted =
        [("PUT", "--rw=write"), ("PUT", "--rw=read --http_create=1"), ("DELETE", "--rw=write --unlink=1")];
    at_once(3, interrupted, |(silent, line)| {
        let dir = scratch();
        let server = ObjectServer::behaving(move |seen| match seen.method == silent {
            true => Reply::Silence,
            false => Reply::Granted,
        });
        let line = job(&server, &format!("--filename=/bkt/a --size=16k --http_timeout=1h {line}"));
        let mut running = Program::own().start(dir.path(), line.split_whitespace());
        running.wait_until("it has asked", |_| server.count(silent) >= 1);
        running.signal(libc::SIGINT);
        let ended = running.wait();
        let said = "the server was silent for 10 s after the job was asked to end";
        assert!(ended.output().contains(said), "{line}: {}", ended.output());
    });
}

/// Servers that expect TLS say so, or just end the connection.
#[test]
fn a_server_that_expects_encryption_is_recognised() {
    let words = "Client sent an HTTP request to an HTTPS server.";
    for reply in [Reply::Refused(400, "", words), Reply::Ended, Reply::Garbage] {
        let server = ObjectServer::behaving(move |_| reply.clone());
        let refused = run(&server, "--filename=/bkt/a --rw=write --size=4k");
        assert_eq!(refused.code(), 1);
        assert!(refused.output().contains("https=on"), "{}", refused.output());
    }
}

#[test]
pub fn a_missing_server_is_reported() {
    let closed = ClosedPort::new();
    let host = format!("127.0.0.1:{}", closed.number);
    let dir = scratch();
    let line = format!(
        "--name=job --ioengine=http --http_mode=s3 --http_host={host} {KEYS} --filename=/b/a --rw=write --size=4k"
    );
    let refused = Program::own().line(dir.path(), &line);
    assert_eq!(refused.code(), 1);
    let said = format!("http_host={host}: cannot connect to {host}: Connection refused");
    assert!(refused.output().contains(&said), "{}", refused.output());
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
