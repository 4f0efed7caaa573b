//! Servers with several hosts.

use super::{job, report, run};
use crate::common::{Program, scratch};
use iolite_testing::{ClosedPort, ObjectServer, Reply};

#[test]
pub fn requests_go_to_several_hosts_in_turn_or_by_worker() {
    let servers = [ObjectServer::start(), ObjectServer::start()];
    let hosts = format!("{},{}", servers[0].host().replace("127.0.0.1", "127.0.0.[1-1]"), servers[1].host());
    let puts = || [0, 1].map(|number: usize| servers[number].count("PUT"));
    let write = |line: &str| {
        report(&servers[0], &format!("--http_host={hosts} --filename=/b/a --rw=write --size=64k {line}"))
    };
    write("--iodepth=4");
    assert_eq!(puts(), [8, 8]);
    // Each request goes to the host that its head names, and each host has connections of its own.
    for server in &servers {
        assert!(server.requests().iter().all(|seen| seen.fields["host"] == server.host()));
        assert!(server.connections() <= 4, "connections are kept");
    }
    write("--http_host_select=worker --numjobs=3 --offset_increment=64k --group_reporting=1");
    assert_eq!(puts(), [8 + 32, 8 + 16]);
    let idle = run(&servers[0], "--filename=/b/a --rw=write --size=4k --http_host_select=worker");
    assert!(idle.output().contains("http_host_select: has no effect"), "{}", idle.output());
    for (list, said) in [("a,,b", "a name is empty"), ("a[2-1]", "the range [2-1] is empty")] {
        run(&servers[0], &format!("--filename=/b/a --rw=write --size=4k --http_host={list}"))
            .refused()
            .says(said);
    }
}

#[test]
pub fn a_missing_host_of_several_is_named() {
    let (server, closed) = (ObjectServer::start(), ClosedPort::new());
    let missing = format!("127.0.0.1:{}", closed.number);
    let line = format!("--http_host={},{missing} --filename=/b/a --rw=write --size=16k", server.host());
    let failed = run(&server, &line);
    assert_eq!(failed.code(), 1);
    assert!(failed.output().contains(&format!("http_host={missing}: cannot connect")), "{}", failed.output());
}

#[test]
pub fn each_host_has_a_challenge_of_its_own() {
    let one = |nonce: &'static str| {
        ObjectServer::behaving(move |seen| match seen.fields.get("authorization") {
            Some(text) if text.contains(nonce) => Reply::Granted,
            _ => {
                let challenge = format!("WWW-Authenticate: Digest realm=\"r\", qop=\"auth\", {nonce}\r\n");
                Reply::Refused(401, challenge.leak(), "who is it?")
            }
        })
    };
    let servers = [one("nonce=\"first\""), one("nonce=\"second\"")];
    let dir = scratch();
    let hosts = format!("{},{}", servers[0].host(), servers[1].host());
    let line = format!(
        "{} --http_mode=webdav --http_host={hosts} --http_user=u --http_pass=p --http_auth=digest --filename=/a --rw=write --size=64k",
        job(&servers[0], "")
    );
    Program::own().line(dir.path(), &line).ok();
    // One challenge, and eight objects.
    assert_eq!(servers.each_ref().map(|server| server.count("PUT")), [9, 9]);
}
