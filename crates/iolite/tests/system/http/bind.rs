//! Own addresses that connections come from (`bind`). `network.rs` has those of `net`.

use super::run;
use crate::common::Program;
use crate::common::scratch;
use iolite_testing::ObjectServer;
use std::collections::BTreeMap;

/// How many connections came from which address.
fn sources(server: &ObjectServer) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for address in server.clients() {
        *found.entry(address.ip().to_string()).or_default() += 1;
    }
    found
}

#[test]
pub fn connections_come_from_the_address_of_their_worker() {
    let server = ObjectServer::start();
    let write = |line: &str| {
        run(&server, &format!("--filename=/b/a --rw=write --size=16k --iodepth=1 {line}")).ok();
    };
    write("--bind=127.0.0.[11-12],127.0.0.20 --numjobs=4");
    let counts = [("127.0.0.11", 2), ("127.0.0.12", 1), ("127.0.0.20", 1)];
    assert_eq!(sources(&server), counts.map(|(address, count)| (address.to_owned(), count)).into());
    write("--bind=lo");
    assert_eq!(sources(&server)["127.0.0.1"], 1);
}

#[test]
pub fn addresses_that_the_machine_lacks_are_named() {
    let server = ObjectServer::start();
    for (bind, said) in [
        ("192.0.2.[77-78]", "bind=192.0.2.77: this machine has no such address"),
        ("none9", "bind=none9: this machine has neither such an address nor such an interface"),
        ("::1", "none of the version of IP that bind=::1 has"),
        ("127.0.0.1,,127.0.0.2", "a name is empty"),
    ] {
        run(&server, &format!("--filename=/b/a --rw=write --size=4k --bind={bind}")).refused().says(said);
    }
    assert_eq!(server.connections(), 0);
    let dir = scratch();
    let line =
        "--name=job --ioengine=net --hostname=127.0.0.1 --port=9 --rw=write --size=4k --bind=192.0.2.77";
    Program::own().line(dir.path(), line).refused().says("bind=192.0.2.77: this machine has no such address");
}
