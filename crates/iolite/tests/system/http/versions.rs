//! Buckets that keep the versions of objects.

use super::{report, run};
use iolite_testing::{ObjectServer, Reply};

#[test]
pub fn removals_may_remove_all_versions() {
    for (how, depth) in [("--rw=trim", 1), ("--rw=trim", 4), ("--rw=read --unlink=1", 1)] {
        let server = ObjectServer::start();
        server.keep_versions();
        report(&server, "--filename=/b/a --rw=write --size=16k --loops=2");
        let marked = "2 removed objects are still there, as older versions behind marks";
        for line in ["--rw=trim --size=8k", "--rw=write --size=8k --unlink=1"] {
            run(&server, &format!("--filename=/b/a {line}")).ok().says(marked);
        }
        server.put("/b/a_other", b"kept");
        report(&server, "--filename=/b/ab --rw=write --size=4k");
        assert_eq!(server.versions().len(), 8 + 2 + 2 + 2 + 1, "removals leave marks");
        report(&server, "--filename=/b/a --rw=write --size=16k");
        let line = format!("--filename=/b/a {how} --size=16k --iodepth={depth} --http_s3_delete_versions=1");
        let json = report(&server, &line);
        assert_eq!(json.job().ios().iter().sum::<u64>(), 4, "{how}");
        let left: Vec<String> = server.versions().into_iter().map(|(path, _)| path).collect();
        assert_eq!(left, ["/b/ab_0_4096"], "{how}");
        assert_eq!(server.names(), ["/b/a_other", "/b/ab_0_4096"], "{how}");
    }
    // One object, and what cannot be listed.
    let server = ObjectServer::start();
    server.keep_versions();
    let range = "--filename=/b/r --bs=16k --size=16k --http_object_mode=range";
    report(&server, &format!("{range} --rw=write --loops=3 --http_s3_delete_versions=1 --unlink=1"));
    assert_eq!(server.versions(), []);
    let strange = ObjectServer::behaving(|seen| match seen.path.contains("versions=") {
        true => Reply::Refused(501, "", "<Error><Code>NotImplemented</Code></Error>"),
        false => Reply::Granted,
    });
    let refused = run(&strange, "--filename=/b/a --rw=trim --size=4k --http_s3_delete_versions=1");
    assert_eq!(refused.code(), 1);
    refused.says("DELETE /b/a_0_4096: 501").says("NotImplemented");
}

#[test]
pub fn reads_may_ask_for_a_version() {
    let server = ObjectServer::start();
    server.keep_versions();
    let range = "--filename=/b/r --bs=16k --size=16k --http_object_mode=range";
    report(&server, &format!("{range} --rw=write --loops=2"));
    let (_, first) = server.versions().swap_remove(0);
    report(&server, &format!("{range} --rw=read --http_s3_version_id={first}"));
    let get = server.requests().into_iter().rfind(|seen| seen.method == "GET").unwrap();
    assert_eq!(get.path, format!("/b/r?versionId={}", first.replace('/', "%2F")));
    let missing = run(&server, &format!("{range} --rw=read --http_s3_version_id=none"));
    assert_eq!(missing.code(), 1);
    missing.says("NoSuchVersion");
    for line in [format!("{range} --rw=write"), "--filename=/b/a --rw=read --size=4k".to_owned()] {
        run(&server, &format!("{line} --http_s3_version_id=x"))
            .refused()
            .says("reads of one object have its version");
    }
}
