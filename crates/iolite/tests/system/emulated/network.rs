//! Connections that need a hypervisor, a kernel module or a device: `net` over vsock, and `rdma`.

use super::{newest, report, run, told};
use crate::common::Program;
use iolite_testing::{or_skip, partly_skipped, skip, this_test};
use std::path::Path;

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

#[test]
pub fn memory_of_another_job_is_reached_by_rdma() {
    let script = r#"
# The libraries with the driver of soft-RoCE, and the program that makes its device.
if ! { ldconfig -p | grep -q librdmacm.so.1 && ls /etc/libibverbs.d/rxe.driver && command -v rdma; } >/dev/null; then
    touch lacking
    exit
fi
modprobe -a ib_uverbs rdma_ucm rdma_rxe dummy || exit
ours no-device --ioengine=rdma --port=9100 --rw=read --size=4k
busybox ip link add rdma0 type dummy && busybox ip addr add 10.9.9.1/24 dev rdma0 && busybox ip link set rdma0 up || exit
rdma link add rxe0 type rxe netdev rdma0 || exit
ulimit -l unlimited
shape="--ioengine=rdma --bs=4k --size=256k --output-format=normal,json"
job="$shape --iodepth=16"
pair() {
    local name=$1 port=$2 options="$job $3"
    echo "--name=$name-server $options --port=$port --rw=read"
    echo "--name=$name-client $options --port=$port --rw=write --verb=$name --hostname=10.9.9.1"
}
'PROGRAM' $(pair write 9101) $(pair read 9102) $(pair send 9103 --verify=crc32c) $(pair recv 9104) >one.ours 2>&1
echo $? >one.ours.status
begun() { for _ in $(seq 600); do grep -qs "$1" $2 && break; sleep 0.1; done; }
# A server and a client in two runs.
both_ends() {
    local name=$1 options=$2
    shift 2
    ours $name.server $options --port=9105 --rw=read --bindname=10.9.9.1 &
    begun 'waiting for connection' $name.server.ours
    ours $name.client $options --port=9105 --rw=write --hostname=10.9.9.1 "$@"
    wait $!
}
both_ends deep "$job" --verb=write --bindname=10.9.9.1
both_ends single "$shape --iodepth=1" --verb=send
both_ends unequal "$job" --verb=send --bs=8k
both_ends timed "$job --size=1g" --verb=recv --runtime=1
ours example.server $job --port=18515 --rw=read &
begun 'waiting for connection' example.server.ours
sed 's/^size=.*/size=256k/; s/^bs=.*/bs=4k/' 'EXAMPLE' >example.fio
RDMA_SERVER=10.9.9.1 'PROGRAM' --section=read --output-format=normal,json example.fio >example.client.ours 2>&1
echo $? >example.client.ours.status
wait $!
ours nobody $job --port=9106 --rw=write --hostname=10.9.9.1
ours elsewhere $job --port=9106 --rw=read --bindname=192.0.2.1
# An end that is killed.
killed() {
    local name=$1 victim=$2
    'PROGRAM' --name=server --thread $job --size=1g --port=9107 --rw=read >$name.server.ours 2>&1 &
    local server=$!
    begun 'waiting for connection' $name.server.ours
    'PROGRAM' --name=client --thread $job --size=1g --port=9107 --rw=write --verb=send --hostname=10.9.9.1 \
        --status-interval=500ms >$name.client.ours 2>&1 &
    local client=$!
    begun IOPS $name.client.ours
    kill -9 ${!victim}
    wait $server; echo $? >$name.server.ours.status
    wait $client; echo $? >$name.client.ours.status
}
killed orphan server
killed widow client
# A server that may lock 64 KiB in memory.
(
    ulimit -l 64
    setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock 'PROGRAM' --name=j $job --bs=64k --port=9108 --rw=read
    echo $? >locked.server.ours.status
) >locked.server.ours 2>&1 &
begun 'waiting for connection' locked.server.ours
ours locked.client $job --bs=64k --port=9108 --rw=write --verb=send --hostname=10.9.9.1
wait $!
"#;
    let program = Program::under_test().path;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/servers/rdma.fio");
    let script = script.replace("PROGRAM", &program.display().to_string());
    let ran = or_skip!(run("rdma", &script.replace("EXAMPLE", &example.display().to_string())));
    if ran.directory.join("lacking").exists() {
        skip!("librdmacm1, ibverbs-providers or rdma of iproute2 is not installed");
    }
    let whole = 256 << 10;
    let json = report(&ran, "one").json.unwrap();
    let bytes: Vec<_> = json.jobs().iter().map(|job| (job.name().to_owned(), job.bytes())).collect();
    let end = |name: &str, read, written| (name.to_owned(), [read, written, 0]);
    let expected = vec![
        // A server whose memory is read or written by clients transfers nothing itself.
        end("write-server", 0, 0),
        end("write-client", 0, whole),
        end("read-server", 0, 0),
        end("read-client", 0, whole),
        end("send-server", whole, 0),
        end("send-client", 0, whole),
        end("recv-server", whole, 0),
        end("recv-client", 0, whole),
    ];
    assert_eq!(bytes, expected);
    let moved = |name| report(&ran, name).json.unwrap().job().bytes();
    assert_eq!((moved("deep.server"), moved("deep.client")), ([0, 0, 0], [0, whole, 0]));
    assert_eq!((moved("single.server"), moved("single.client")), ([whole, 0, 0], [0, whole, 0]));
    assert_eq!((moved("example.server"), moved("example.client")), ([0, 0, 0], [0, whole, 0]));
    let (server, client) = (moved("timed.server"), moved("timed.client"));
    assert!(client[1] > 0 && client[1] < 1 << 30 && server[0] >= client[1], "{server:?} {client:?}");
    for (name, text) in [
        ("no-device", "this machine has no RDMA device"),
        ("nobody", "connecting to rdma 10.9.9.1 port 9106: nothing listens there"),
        ("elsewhere", "waiting at rdma 192.0.2.1 port 9106"),
        ("unequal.client", "the blocks of the server have 4096 bytes; messages need one bs"),
        ("unequal.server", "the blocks of this end have 4096 bytes, those of the other 8192 bytes"),
        ("widow.server", "rdma port 9107: the other end"),
        ("locked.server", "RLIMIT_MEMLOCK is 65536 bytes: raise it with 'ulimit -l unlimited'"),
        ("locked.client", "the server could not take the connection; see its own message"),
    ] {
        let (told, status) = told(&ran, name, "ours");
        assert!(status == 1 && told.contains(text), "{name}: {status}: {told}");
    }
    // Either the connection ends, or a request fails first.
    let ends = ["the other end", "a request failed: "].map(|end| format!("rdma 10.9.9.1 port 9107: {end}"));
    let (told, status) = told(&ran, "orphan.client", "ours");
    assert!(status == 1 && ends.iter().any(|end| told.contains(end)), "{status}: {told}");
}
