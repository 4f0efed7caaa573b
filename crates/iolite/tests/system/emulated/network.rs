//! `net` over vsock, which takes a hypervisor or a module that most machines lack.

use super::{newest, report, run, told};
use iolite_testing::{or_skip, partly_skipped, this_test};

#[test]
fn virtual_sockets_carry_data() {
    // Releases before 3.36 have no vsock.
    let peer = newest().filter(|peer| peer.release.minor >= 36);
    let with_peer = if peer.is_some() { "pair ours theirs from; pair theirs ours to" } else { "" };
    let script = r#"
modprobe vsock_loopback || exit
job="--ioengine=net --protocol=vsock --bs=4k --size=256k --output-format=normal,json"
checked="$job --verify=crc32c"
ours one $checked --port=9000 --listen --rw=read --name=sender $checked --port=9000 --hostname=1 --rw=write
# A receiver and a sender in two runs, each ours or fio.
pair() {
    local receives=$1 sends=$2 name=$3
    $receives $name.receiver $job --port=9001 --listen --rw=read &
    for _ in $(seq 300); do grep -qs 'waiting for connection' $name.receiver.* && break; sleep 0.1; done
    $sends $name.sender $job --port=9001 --hostname=1 --rw=write
    wait $!
}
pair ours ours two
WITH_PEER
ours nobody $job --port=9002 --hostname=1 --rw=write
ours far $job --port=9002 --hostname=elsewhere --rw=write
"#;
    let ran = or_skip!(run("vsock", &script.replace("WITH_PEER", with_peer)));
    let whole = 256 << 10;
    let json = report(&ran, "one").json.unwrap();
    let jobs = json.jobs();
    assert_eq!((jobs[0].bytes(), jobs[1].bytes()), ([whole, 0, 0], [0, whole, 0]));
    let moved = |name| report(&ran, name).json.unwrap().job().bytes();
    assert_eq!((moved("two.receiver"), moved("two.sender")), ([whole, 0, 0], [0, whole, 0]));
    for (name, text) in
        [("nobody", "sending to vsock 1 port 9002"), ("far", "vsock takes the number of a machine")]
    {
        let (told, status) = told(&ran, name, "ours");
        assert!(status == 1 && told.contains(text), "{name}: {status}: {told}");
    }
    if peer.is_none() {
        partly_skipped(&this_test!(), "no fio that has vsock (3.36 or newer)");
    } else {
        assert_eq!((moved("from.receiver"), moved("to.sender")), ([whole, 0, 0], [0, whole, 0]));
    }
}
