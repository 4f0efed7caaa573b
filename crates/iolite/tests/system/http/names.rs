//! Lists of names, and files that are found by them.

use super::errors::error;
use super::{report, run};
use iolite_testing::{ObjectServer, Reply};

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

/// If a server finds every name, the size of a file cannot be found out.
#[test]
pub fn sizes_are_not_looked_for_without_end() {
    let everything = ObjectServer::behaving(|_| Reply::Refused(200, "", ""));
    let endless = run(&everything, "--filename=/bkt/a --rw=read --size=16k");
    assert_eq!(endless.code(), 1);
    assert!(endless.output().contains("has 0 bytes, not 4096"), "{}", endless.output());
}
