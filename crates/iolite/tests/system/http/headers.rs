//! Fields that options add to the heads of requests.

use super::{job, report, run};
use crate::common::{Program, scratch};
use iolite_testing::{ObjectServer, Seen};

/// The names of the fields that the signature of a request covers.
fn signed(seen: &Seen) -> Vec<String> {
    let text = seen.fields["authorization"].split("SignedHeaders=").nth(1).unwrap();
    text.split(',').next().unwrap().split(';').map(str::to_owned).collect()
}

#[test]
pub fn requests_of_a_direction_have_its_fields() {
    let server = ObjectServer::start();
    let fields = "--http_read_headers=x-amz-request-payer:requester \
                  --http_write_headers=X-Amz-Tagging:a=1&b=2,x-amz-acl:private,Cache-Control:no-cache\\,private \
                  --http_trim_headers=x-amz-bypass-governance-retention:true";
    report(&server, &format!("--filename=/b/a --rw=write --size=4k --verify=crc32c --unlink=1 {fields}"));
    let of = |method: &str| server.requests().into_iter().rfind(|seen| seen.method == method).unwrap();
    let (get, put, delete) = (of("GET"), of("PUT"), of("DELETE"));
    assert_eq!(get.fields["x-amz-request-payer"], "requester");
    assert_eq!((&*put.fields["x-amz-tagging"], &*put.fields["x-amz-acl"]), ("a=1&b=2", "private"));
    assert_eq!(put.fields["cache-control"], "no-cache,private");
    assert_eq!(delete.fields["x-amz-bypass-governance-retention"], "true");
    for (seen, own, foreign) in [
        (&get, "x-amz-request-payer", "x-amz-tagging"),
        (&put, "x-amz-tagging", "x-amz-request-payer"),
        (&delete, "x-amz-bypass-governance-retention", "x-amz-acl"),
    ] {
        // Signed fields are in order.
        let names = signed(seen);
        assert!(names.contains(&own.to_owned()) && names.is_sorted(), "{names:?}");
        assert!(!seen.fields.contains_key(foreign), "{seen:?}");
    }
    // An upload in parts has them where the object is made, and only there.
    let parts = "--http_object_mode=range --http_s3_multipart_size=8k --bs=8k --size=16k --rw=write";
    report(&server, &format!("--filename=/b/p {parts} {fields}"));
    let all = server.requests();
    let about = |word: &str| all.iter().filter(|seen| seen.path.contains(word)).collect::<Vec<_>>();
    assert!(about("uploads=").iter().all(|seen| seen.fields.contains_key("x-amz-tagging")));
    assert_eq!(about("uploadId=").len(), 3);
    assert!(about("uploadId=").iter().all(|seen| !seen.fields.contains_key("x-amz-tagging")));
    let dir = scratch();
    let webdav =
        job(&server, "--http_mode=webdav --filename=/w --rw=write --size=4k --http_write_headers=x-own:1");
    Program::own().line(dir.path(), &webdav).ok();
    assert_eq!(of("PUT").fields["x-own"], "1");
    let refused =
        run(&server, "--filename=/b/a --rw=write --size=4k --http_write_headers=x-amz-storage-class:GLACIER");
    refused.refused().says("http_write_headers").says("http_s3_storage_class gives it");
}
