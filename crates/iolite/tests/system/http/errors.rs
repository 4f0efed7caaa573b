//! Errors of servers and of connections, with their remedies; what is tried again.

use super::{KEYS, called_fio, job, report, run};
use crate::common::{Json, Program, at_once, scratch};
use iolite_testing::{ClosedPort, ObjectServer, Reply, Seen};

/// A refusal in the format of S3.
pub(super) fn error(code: &'static str, status: u16) -> Reply {
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
