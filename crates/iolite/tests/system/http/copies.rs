//! Writes that copy objects on the server.

use super::{job, report, run};
use crate::common::{Program, scratch};
use iolite_testing::{ObjectServer, Reply};

#[test]
pub fn writes_may_copy_objects_of_another_file() {
    let server = ObjectServer::start();
    report(&server, "--filename=/b/s(1) --rw=write --size=16k --buffer_pattern=0x41");
    let json = report(
        &server,
        "--filename=/b/a --rw=write --size=16k --iodepth=2 --http_write=copy --http_copy_source=/b/s(1)",
    );
    assert_eq!((json.job().ios(), json.job().bytes()), ([0, 4, 0], [0, 16384, 0]));
    assert_eq!(server.object("/b/a_4096_4096").unwrap(), [0x41; 4096]);
    let put = server.requests().into_iter().rfind(|seen| seen.path.starts_with("/b/a_")).unwrap();
    assert_eq!((put.method.as_str(), put.length), ("PUT", 0));
    assert!(put.fields["x-amz-copy-source"].starts_with("/b/s%281%29_"), "{put:?}");
    assert!(put.fields["authorization"].contains(";x-amz-copy-source;"), "{put:?}");
    // One object.
    report(&server, "--filename=/b/s --rw=write --bs=64k --size=64k --http_object_mode=range");
    report(
        &server,
        "--filename=/b/r --rw=write --bs=64k --size=64k --http_object_mode=range --http_write=copy --http_copy_source=/b/s",
    );
    assert_eq!(server.object("/b/r"), server.object("/b/s"));
    // WebDAV names the other side in a field.
    let dir = scratch();
    let line =
        "--http_mode=webdav --filename=/d --rw=write --size=8k --http_write=copy --http_copy_source=/b/s(1)";
    Program::own().line(dir.path(), &job(&server, line)).ok();
    assert_eq!((server.count("COPY"), server.object("/d_4096_4096").unwrap()), (2, vec![0x41; 4096]));
}

#[test]
pub fn copies_that_cannot_be_made_are_errors() {
    let server = ObjectServer::start();
    let copy = "--filename=/b/a --rw=write --size=4k --http_write=copy";
    let missing = run(&server, &format!("{copy} --http_copy_source=/b/none"));
    assert_eq!(missing.code(), 1);
    missing
        .says("COPY /b/a_0_4096: 404 Not Found")
        .says("write the source first, with the same bs: filename=/b/none");
    for (line, said) in [
        ("", "http_copy_source=/BUCKET/NAME"),
        ("--http_copy_source=/b/s --verify=crc32c", "cannot be verified"),
        ("--http_copy_source=/b/s --http_s3_multipart_size=5m", "leave http_s3_multipart_size out"),
        ("--http_copy_source=/b/s --http_mode=swift", "not of http_mode=swift"),
    ] {
        run(&server, &format!("{copy} {line}")).refused().says(said);
    }
    run(&server, "--filename=/b/a --rw=write --size=4k --http_copy_source=/b/s")
        .says("http_copy_source: has no effect");
    // The status may come before the outcome.
    let late =
        ObjectServer::behaving(|_| Reply::Refused(200, "", "<Error><Code>InternalError</Code></Error>"));
    let failed = run(&late, &format!("{copy} --http_copy_source=/b/s"));
    assert_eq!(failed.code(), 1);
    failed.says("InternalError");
}
