//! Options of engines that talk to another machine.

use crate::definition::{Definition, Kind};

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static HOSTNAME: Definition = option("hostname", Kind::Str, "The other side's name or address");
static PORT: Definition = option("port", Kind::Int, "Port to listen on or to connect to").range(1, 65535);
static PROTOCOL: Definition =
    option("protocol", Kind::Str, "Protocol of the sockets").aliases(&["proto"]).default("tcp").keywords(&[
        ("tcp", "TCP over IPv4"),
        ("tcpv6", "TCP over IPv6"),
        ("udp", "UDP over IPv4"),
        ("udpv6", "UDP over IPv6"),
        ("unix", "Local sockets"),
        ("vsock", "Sockets between a virtual machine and its host"),
    ]);
static NODELAY: Definition = option("nodelay", Kind::Bool, "Send small packets at once (TCP_NODELAY)");
static LISTEN: Definition = option("listen", Kind::Flag, "Wait for connections rather than make one");
static PINGPONG: Definition = option("pingpong", Kind::Flag, "Answer each message before the next");
static INTERFACE: Definition = option("interface", Kind::Str, "Network interface for multicast");
static TTL: Definition = option("ttl", Kind::Int, "How many hops multicast packets live").default("1");
static WINDOW_SIZE: Definition = option("window_size", Kind::Int, "Size of the sockets' buffers");
static MSS: Definition = option("mss", Kind::Int, "Largest TCP segment");

/// `net` and `netsplice`
pub static NET: &[&Definition] =
    &[&HOSTNAME, &PORT, &PROTOCOL, &NODELAY, &LISTEN, &PINGPONG, &INTERFACE, &TTL, &WINDOW_SIZE, &MSS];

static BINDNAME: Definition = option("bindname", Kind::Str, "Address of the local interface to use");
static VERB: Definition =
    option("verb", Kind::Str, "RDMA operation").aliases(&["proto"]).default("write").keywords(&[
        ("write", "Write to the other side's memory"),
        ("read", "Read from the other side's memory"),
        ("send", "Send messages"),
        ("recv", "Receive messages"),
    ]);

/// `rdma`
pub static RDMA: &[&Definition] = &[&HOSTNAME, &BINDNAME, &PORT, &VERB];

static NFS_URL: Definition =
    option("nfs_url", Kind::Str, "Server and export, as in nfs://server/export?version=4");

/// `nfs`
pub static NFS: &[&Definition] = &[&NFS_URL];
