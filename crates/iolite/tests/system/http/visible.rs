//! How long it takes until what was written is seen (`http_visible`).

use super::{job, report, run};
use crate::common::{Program, scratch};
use iolite_testing::{ObjectServer, Reply, Seen};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A server that shows each object only to the fourth look.
fn late(hidden: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> ObjectServer {
    let looks = Mutex::new(BTreeMap::new());
    ObjectServer::behaving(move |seen| {
        if seen.method == "PUT" {
            return Reply::Granted;
        }
        let mut looks = looks.lock().unwrap();
        let count: &mut u32 = looks.entry(seen.path.clone()).or_default();
        *count += 1;
        if *count > 3 { Reply::Granted } else { hidden(seen) }
    })
}

#[test]
pub fn the_time_until_writes_are_seen_is_reported() {
    let empty = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
    for (how, method, reply) in [
        ("get", "GET", Reply::Refused(404, "", "<Error><Code>NoSuchKey</Code></Error>")),
        // Another version of the object.
        ("get", "GET", Reply::Refused(200, "ETag: \"old\"\r\n", "old")),
        ("head", "HEAD", Reply::Refused(404, "", "")),
        ("list", "GET", Reply::Refused(200, "", empty)),
    ] {
        let server = late(move |_| reply.clone());
        let line = format!("--filename=/b/a --rw=write --size=32k --iodepth=4 --http_visible={how}");
        let json = report(&server, &line);
        assert_eq!((server.count("PUT"), server.count(method)), (8, 32), "{how}");
        let (job, put) = (json.job(), server.names().len());
        assert_eq!((job.ios(), put), ([0, 8, 0], 8));
        let seen = &json.job().0["write"]["visible_ns"];
        // The fourth look begins after three pauses of at least a millisecond.
        assert_eq!(seen["N"].as_u64(), Some(8), "{seen}");
        assert!(seen["min"].as_u64() >= Some(3_000_000), "{seen}");
        assert!(seen["percentile"]["50.000000"].as_u64() >= Some(3_000_000), "{seen}");
        // The write is complete when it is seen.
        let write = &json.job().0["write"];
        assert!(write["clat_ns"]["min"].as_u64() > seen["min"].as_u64(), "{write}");
        assert!(write["ttfb_ns"]["N"].as_u64() == Some(8), "{write}");
    }
    let server = ObjectServer::start();
    let text = run(&server, "--filename=/b/a --rw=randwrite --size=32k --http_visible=list").ok().stdout;
    assert!(text.contains("visible (") && text.contains("visible percentiles ("), "{text}");
    let json = report(&server, "--filename=/b/a --rw=randrw --size=32k");
    assert!(json.job().0["write"]["visible_ns"].is_null());
    let dir = scratch();
    let dav = job(&server, "--http_mode=webdav --filename=/w --rw=write --size=8k --http_visible=get");
    Program::own().line(dir.path(), &dav).ok().says("visible (");
}

#[test]
pub fn what_is_never_seen_is_an_error() {
    let never = || {
        ObjectServer::behaving(|seen| match seen.method.as_str() {
            "PUT" => Reply::Granted,
            _ => Reply::Refused(404, "", ""),
        })
    };
    let failed =
        run(&never(), "--filename=/b/a --rw=write --size=4k --http_visible=head --http_timeout=300ms");
    assert_eq!(failed.code(), 1);
    failed.says("PUT /b/a_0_4096: http_visible: it is not seen within 0.3 s (http_timeout)");
    // An interrupt ends a job that would look for hours. What was written counts as such.
    let (server, dir) = (never(), scratch());
    let line = job(&server, "--filename=/b/a --rw=write --size=4k --http_visible=head --http_timeout=0");
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("it has looked", |_| server.count("HEAD") >= 4);
    running.signal(libc::SIGINT);
    let output = running.wait().output();
    assert!(output.contains("issued rwts: total=0,1,0,0") && !output.contains("visible ("), "{output}");
    let forbidden = ObjectServer::behaving(|seen| match seen.method.as_str() {
        "PUT" => Reply::Granted,
        _ => Reply::Refused(403, "", "<Error><Code>AccessDenied</Code></Error>"),
    });
    run(&forbidden, "--filename=/b/a --rw=write --size=4k --http_visible=get")
        .refused()
        .says("no permission");
    let server = ObjectServer::start();
    for (line, said) in [
        ("--http_visible=list --http_mode=webdav", "only http_mode=s3 lists names"),
        ("--http_visible=get --http_s3_multipart_size=5m", "leave http_s3_multipart_size out"),
    ] {
        run(&server, &format!("--filename=/b/a --rw=write --size=4k {line}")).refused().says(said);
    }
}
