//! `http_s3_multipart_size`: objects that are uploaded in parts, with the tests' own server; `object_stores.rs` has a
//! real one.

use crate::common::{Finished, Program, scratch};
use crate::http::{job, report, run};
use iolite_testing::{ObjectServer, Reply, Seen};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// Whether the request uploads a part.
fn is_part(seen: &Seen) -> bool {
    seen.method == "PUT" && seen.path.contains("?partNumber=")
}

fn count_parts(server: &ObjectServer) -> usize {
    server.requests().iter().filter(|seen| is_part(seen)).count()
}

/// The files in a directory that list uploads in progress.
fn state_files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("iolite-uploads.")).collect()
}

fn run_in(dir: &Path, server: &ObjectServer, line: &str) -> Finished {
    Program::own().line(dir, &job(server, line))
}

const RANGE: &str = "--filename=/bkt/a --http_object_mode=range --http_s3_multipart_size=16k";

#[test]
pub fn blocks_larger_than_a_part_are_uploaded_in_parts() {
    let server = ObjectServer::start();
    let line = "--filename=/bkt/a --bs=72k --size=288k --http_s3_multipart_size=16k --verify=crc32c";
    for how in
        ["--iodepth=1", "--iodepth=4", "--iodepth=4 --thread=1", "--iodepth=2 --io_submit_mode=offload"]
    {
        let before = count_parts(&server);
        let json = report(&server, &format!("{line} --rw=randwrite {how}"));
        assert_eq!(json.job().ios(), [4, 4, 0], "{how}");
        assert_eq!(count_parts(&server) - before, 4 * 5, "{how}");
    }
    assert_eq!(server.object("/bkt/a_73728_73728").unwrap().len(), 72 << 10);
    // An object that fits into one part is sent in one request.
    report(&server, "--filename=/bkt/b --rw=write --bs=16k --size=32k --http_s3_multipart_size=16k");
    assert_eq!((count_parts(&server), server.uploads()), (80, 0));
}

#[test]
pub fn a_file_that_is_one_object_is_written_in_parts_at_once() {
    let server =
        ObjectServer::behaving(|seen| if is_part(seen) { Reply::Gathered(4) } else { Reply::Granted });
    let line = format!("{RANGE} --size=256k --bs=16k --iodepth=4 --verify=crc32c --verify_interval=4k");
    for rw in ["write", "randwrite"] {
        let json = report(&server, &format!("{line} --rw={rw} --loops=2"));
        assert_eq!(json.job().bytes()[1], 512 << 10, "{rw}");
        assert_eq!(server.object("/bkt/a").unwrap().len(), 256 << 10);
    }
    assert_eq!((server.most_gathered(), server.uploads()), (4, 0));
    // A block may have several parts, of which the last may be short.
    let before = count_parts(&server);
    report(&server, &line.replace("--bs=16k", "--bs=64k --rw=write"));
    report(&server, &line.replace("--bs=16k", "--bs=264k --rw=write").replace("256k", "264k"));
    assert_eq!(count_parts(&server) - before, 16 + 17);
}

#[test]
pub fn incomplete_uploads_are_aborted() {
    let server = ObjectServer::start();
    let dir = scratch();
    let ended =
        run_in(dir.path(), &server, &format!("{RANGE} --rw=write --bs=16k --size=256k --io_size=64k")).ok();
    let told = "aborted the upload of /bkt/a, of which there were 4 of 16 parts";
    assert!(ended.stdout.contains(told), "{}", ended.stdout);
    assert_eq!((server.uploads(), server.names().len(), state_files(dir.path()).len()), (0, 0, 0));
    // A refused part is an error of its I/O and of the job.
    for line in [RANGE.to_owned(), "--filename=/bkt/b --bs=64k --http_s3_multipart_size=16k".to_owned()] {
        let server = ObjectServer::behaving(|seen| match seen.path.contains("partNumber=3&") {
            true => Reply::Refused(500, "", "<Error><Code>InternalError</Code></Error>"),
            false => Reply::Granted,
        });
        let bs = if line.contains("--bs") { "" } else { "--bs=16k" };
        let failed = run_in(dir.path(), &server, &format!("{line} {bs} --rw=write --size=256k --iodepth=4"));
        assert_eq!(failed.code(), 1);
        let said = "in parts, part 3: 500 Internal Server Error, InternalError";
        assert!(failed.output().contains(said), "{}", failed.output());
        assert_eq!((server.uploads(), state_files(dir.path()).len()), (0, 0), "{line}");
    }
    // The server refuses to end the upload, by its status or only in the body.
    for status in [200, 403] {
        let server = ObjectServer::behaving(move |seen| {
            match seen.method == "POST" && seen.path.contains("?uploadId=") {
                true => Reply::Refused(status, "", "<Error><Code>EntityTooSmall</Code></Error>"),
                false => Reply::Granted,
            }
        });
        let failed = run_in(dir.path(), &server, &format!("{RANGE} --rw=write --bs=16k --size=64k"));
        assert_eq!(failed.code(), 1);
        assert!(failed.output().contains("its end: "), "{}", failed.output());
        assert!(failed.output().contains("EntityTooSmall; real servers"), "{}", failed.output());
        assert_eq!((server.uploads(), server.names().len()), (0, 0), "{status}");
    }
}

/// If the answer with the ID of a new upload is lost, the job finds the upload and aborts it.
#[test]
pub fn uploads_with_a_lost_first_answer_are_aborted() {
    let server =
        ObjectServer::behaving(|seen| match seen.path.ends_with("?uploads=") && seen.method == "POST" {
            true => Reply::Cut(0),
            false => Reply::Granted,
        });
    let dir = scratch();
    let failed = run_in(dir.path(), &server, &format!("{RANGE} --rw=write --bs=16k --size=64k"));
    assert_eq!(failed.code(), 1);
    assert!(failed.output().contains("its beginning: the connection was cut"), "{}", failed.output());
    assert_eq!((server.uploads(), state_files(dir.path()).len()), (0, 0));
}

/// A part that is rewritten before the object is complete replaces the earlier one, and no I/O waits for ever.
#[test]
pub fn parts_may_be_written_again() {
    let line = format!("{RANGE} --bs=16k --size=64k");
    for how in [
        "--rw=randwrite --norandommap=1 --io_size=1m",
        "--rw=randwrite --norandommap=1 --io_size=1m --iodepth=4",
    ] {
        let server = ObjectServer::start();
        let json = report(&server, &format!("{line} {how} --randseed=7"));
        assert_eq!(json.job().bytes()[1], 1 << 20, "{how}");
        assert_eq!(server.uploads(), 0, "{how}");
    }
    // A part that was refused is written in the next loop.
    let server = ObjectServer::behaving(|seen| match is_part(seen) && seen.number == 2 {
        true => Reply::Refused(500, "", ""),
        false => Reply::Granted,
    });
    let ended = run(&server, &format!("{line} --rw=write --loops=2 --continue_on_error=all"));
    assert_eq!(ended.code(), 0);
    assert!(ended.output().contains("errors    : total=1"), "{}", ended.output());
    assert_eq!((server.uploads(), server.object("/bkt/a").map(|object| object.len())), (0, Some(64 << 10)));
    // An interrupt ends the job while I/Os wait for others.
    let dir = scratch();
    let server = ObjectServer::start();
    let how = "--rw=randwrite --norandommap=1 --time_based=1 --runtime=1h --iodepth=4";
    let line = job(&server, &format!("{line} {how}"));
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("it sends parts", |_| count_parts(&server) > 20);
    running.signal(libc::SIGINT);
    running.wait();
    assert_eq!((server.uploads(), state_files(dir.path()).len()), (0, 0));
}

fn begins(seen: &Seen) -> bool {
    seen.method == "POST" && seen.path.ends_with("?uploads=")
}

fn ends(seen: &Seen) -> bool {
    seen.method == "POST" && seen.path.contains("?uploadId=")
}

/// The server may already have carried out a request that is sent again.
#[test]
pub fn repeated_upload_requests_are_idempotent() {
    let first = |which: fn(&Seen) -> bool, reply: Reply| {
        let has_been = AtomicBool::new(false);
        move |seen: &Seen| match which(seen) && !has_been.swap(true, Ordering::SeqCst) {
            true => reply.clone(),
            false => Reply::Granted,
        }
    };
    for line in [
        "--rw=write --bs=16k",
        "--rw=randread --bs=4k --http_create=1",
        "--rw=write --bs=64k --io_size=128k --loops=2",
    ] {
        for which in [begins as fn(&Seen) -> bool, ends] {
            let server = ObjectServer::behaving(first(which, Reply::Cut(0)));
            let hour = Duration::from_secs(3600);
            let of_others = [SystemTime::now() - hour, SystemTime::now() + hour];
            let of_others = of_others.map(|when| server.begin_upload("/bkt/a", when));
            report(&server, &format!("{RANGE} --size=64k --http_retries=1 {line}"));
            assert_eq!(server.object("/bkt/a").unwrap().len(), 64 << 10);
            assert!(of_others.iter().all(|id| server.has_upload(id)), "{line}");
            assert_eq!(server.uploads(), 2, "{line}");
        }
    }
    // If the server does not know the upload, the upload has failed, unless the object exists with the right size.
    for (object, is_done) in [(None, false), (Some(4096), false), (Some(65536), true)] {
        let asked = AtomicUsize::new(0);
        let server = ObjectServer::behaving(move |seen| match ends(seen) {
            true if asked.fetch_add(1, Ordering::SeqCst) == 0 => Reply::Refused(503, "", ""),
            true => Reply::Refused(404, "", "<Error><Code>NoSuchUpload</Code></Error>"),
            false => Reply::Granted,
        });
        if let Some(length) = object {
            server.put("/bkt/a", &vec![0; length]);
        }
        let ended = run(&server, &format!("{RANGE} --size=64k --rw=write --bs=16k --http_retries=1"));
        assert_eq!(ended.code() == 0, is_done, "{object:?}: {}", ended.output());
        assert!(is_done || ended.output().contains("knows nothing of the upload"), "{}", ended.output());
    }
}

/// The end may take longer than the timeout as long as the server sends something.
#[test]
pub fn the_end_of_an_upload_may_take_long() {
    let server = ObjectServer::behaving(|seen| if ends(seen) { Reply::Slow(14) } else { Reply::Granted });
    report(&server, &format!("{RANGE} --size=64k --rw=write --bs=16k --http_timeout=2"));
    assert_eq!(server.names(), ["/bkt/a"]);
}

/// Uploads left by a killed job are distinguished from those of other clients.
#[test]
pub fn uploads_of_others_are_let_be() {
    let server = ObjectServer::start();
    let dir = scratch();
    let path = dir.path().join("iolite-uploads.1-0.state");
    let (now, day) = (SystemTime::now(), Duration::from_secs(86400));
    let since = (now - 30 * day).duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let host = server.host();
    let left = format!(
        "iolite: uploads under way\nbegin 1 {since} http://{host} /bkt/a\nbegin 2 {since} http://elsewhere /bkt/a\n"
    );
    let leave = || {
        std::fs::write(&path, &left).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(now - 30 * day).unwrap();
    };
    let write =
        || run_in(dir.path(), &server, &format!("{RANGE} --rw=write --bs=16k --size=64k")).ok().stdout;
    leave();
    let of_others = server.begin_upload("/bkt/a", now);
    let own = server.begin_upload("/bkt/a", now - 30 * day);
    let told = write();
    assert!(told.contains("aborted 1 upload in parts that a killed job had left"), "{told}");
    assert!(server.has_upload(&of_others) && !server.has_upload(&own));
    // The ledger keeps only the remaining work.
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept, format!("iolite: uploads under way\nbegin 1 {since} http://elsewhere /bkt/a\n"));
    assert!(!write().contains("uploads in parts"), "there is nothing to be done here");
    // Of two matching uploads, it is unknown which one belonged to the killed job.
    leave();
    let two = [1, 2].map(|_| server.begin_upload("/bkt/a", now - 30 * day));
    let told = write();
    assert!(told.contains("there are 2 uploads of /bkt/a"), "{told}");
    assert!(two.iter().all(|id| server.has_upload(id)));
    // An upload whose ID is in another ledger belongs to that one.
    let other = dir.path().join("iolite-uploads.2-0.state");
    let known = format!("iolite: uploads under way\nbegin 1 {since} http://elsewhere /x\nid 1 {}\n", two[0]);
    std::fs::write(&other, known).unwrap();
    let told = write();
    assert!(told.contains("aborted 1 upload in parts"), "{told}");
    assert!(server.has_upload(&two[0]) && !server.has_upload(&two[1]));
    std::fs::write(&path, "iolite: uploads under way\nnonsense\n").unwrap();
    let told = write();
    assert!(told.contains("cannot be read: abort them by other means"), "{told}");
}

#[test]
pub fn the_next_job_aborts_uploads_of_a_killed_one() {
    let server =
        ObjectServer::behaving(|seen| match is_part(seen) && seen.path.contains("r?partNumber=3&") {
            true => Reply::Silence,
            false => Reply::Granted,
        });
    let dir = scratch();
    std::fs::create_dir(dir.path().join("aux")).unwrap();
    let foreign = dir.path().join("aux/iolite-uploads.1-0.state");
    std::fs::write(&foreign, "precious").unwrap();
    let write = "--http_object_mode=range --http_s3_multipart_size=16k --rw=write --bs=16k --size=256k --aux-path=aux";
    let line = job(&server, &format!("{write} --filename=/bkt/r"));
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("it sends parts", |_| count_parts(&server) == 3);
    running.signal(libc::SIGKILL);
    running.wait();
    assert_eq!((server.uploads(), state_files(&dir.path().join("aux")).len()), (1, 2));
    // The next job with multipart uploads reads the old ledger, even for another object or another server.
    let elsewhere = ObjectServer::start();
    let next = |server| run_in(dir.path(), server, &format!("{write} --filename=/bkt/o")).ok().stdout;
    assert!(!next(&elsewhere).contains("aborted"));
    assert_eq!(server.uploads(), 1);
    let told = next(&server);
    assert!(told.contains("aborted 1 upload in parts that a killed job had left"), "{told}");
    assert_eq!(
        (server.uploads(), state_files(&dir.path().join("aux"))),
        (0, vec!["iolite-uploads.1-0.state".into()])
    );
    assert_eq!(std::fs::read_to_string(foreign).unwrap(), "precious");
    assert_eq!(server.names(), ["/bkt/o"]);
}

#[test]
pub fn large_objects_are_laid_out_in_parts() {
    let server = ObjectServer::start();
    let line =
        format!("{RANGE} --rw=randread --bs=4k --size=1000k --io_size=64k --http_create=1 --iodepth=4");
    report(&server, &line);
    assert_eq!(server.object("/bkt/a").unwrap().len(), 1000 << 10);
    assert_eq!((count_parts(&server), server.uploads()), (63, 0));
    // Without a given part size, a large object has large parts.
    report(&server, &line.replace("16k", "0").replace("/a", "/b").replace("1000k", "33m"));
    assert_eq!(server.object("/bkt/b").unwrap().len(), 33 << 20);
    assert_eq!((count_parts(&server), server.uploads()), (63 + 3, 0));
}

#[test]
pub fn impossible_parts_are_refused() {
    let server = ObjectServer::start();
    for (line, said) in [
        ("--bs=4k", "bs= has to be that, a multiple of it, or the size of the file, 262144 bytes"),
        ("--bs=24k", "bs= has to be that"),
        ("--bs=16k --size=264k", "size= has to be a multiple of bs="),
        ("--bs=16k --size=1g", "more than 10000 parts"),
        ("--bs=16k --io_submit_mode=offload", "are sent by one client"),
        ("--bs=16k --rw=trim", "bs= has to be the size of the file"),
    ] {
        let refused = run(&server, &format!("{RANGE} --rw=write --size=256k {line}"));
        assert_eq!(refused.code(), 1, "{line}");
        assert!(refused.output().contains(said), "{line}: {}", refused.output());
    }
    assert_eq!((server.count("PUT"), server.uploads()), (0, 0));
}
