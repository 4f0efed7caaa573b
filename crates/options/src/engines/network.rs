//! Options of engines that talk to another machine.

mod obstacles;

use super::own::{Idle, Obstacle, OwnOptions, own, own_options, place};
use super::shared::BIND;
use crate::JobOptions;
use crate::definition::{Definition, FarEnd, Kind, Places, found};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

/// The protocol of sockets (`protocol`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP over IPv4.
    #[default]
    Tcp,
    /// TCP over IPv6.
    TcpV6,
    /// UDP over IPv4.
    Udp,
    /// UDP over IPv6.
    UdpV6,
    /// Local sockets that carry a stream.
    Unix,
    /// Streams between a virtual machine and its host.
    Vsock,
}

impl Protocol {
    /// Its keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::TcpV6 => "tcpv6",
            Protocol::Udp => "udp",
            Protocol::UdpV6 => "udpv6",
            Protocol::Unix => "unix",
            Protocol::Vsock => "vsock",
        }
    }

    /// Whether it is TCP, over IPv4 or IPv6.
    pub fn is_tcp(self) -> bool {
        matches!(self, Protocol::Tcp | Protocol::TcpV6)
    }

    /// Whether it carries datagrams instead of a stream.
    pub fn is_udp(self) -> bool {
        matches!(self, Protocol::Udp | Protocol::UdpV6)
    }
}

own_options! {
    /// The options of `net` and `netsplice`.
    pub struct NetOptions declared by NET with places {
        /// The other side's name or address, the multicast group, or the number of a virtual machine; empty = not given.
        pub hostname: String,
        /// The port; 0 = not given. A clone adds its number.
        pub port: u32,
        /// The protocol of the sockets.
        pub protocol: Protocol,
        /// Small packets are sent at once.
        pub nodelay: bool,
        /// Wait for the connection that the other side makes.
        pub listen: bool,
        /// Each message is answered before the next one.
        pub pingpong: bool,
        /// Addresses or interfaces of this machine to connect from, a list; empty = the system chooses.
        pub bind: String,
        /// Address (IPv4) or name (IPv6) of the network interface for multicast; empty = the system chooses.
        pub interface: String,
        /// The most hops of multicast packets.
        pub ttl: u32,
        /// Bytes of the socket's buffer; 0 = the system chooses.
        pub window_size: u32,
        /// Bytes of the largest TCP segment; 0 = the system chooses.
        pub mss: u32,
    }
}

impl Places for NetOptions {
    fn bind(&mut self) -> Option<&mut String> {
        Some(&mut self.bind)
    }

    fn far_end(&mut self) -> Option<FarEnd<'_>> {
        Some(FarEnd { hostname: &mut self.hostname, port: &mut self.port })
    }
}

impl OwnOptions for NetOptions {
    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        obstacles::of_sockets(job, self)
    }

    fn without_effect(&self) -> Vec<Idle> {
        let mut all: Vec<Idle> = Vec::new();
        let mut idle = |names: &[&'static str], why| all.extend(names.iter().map(|&name| (name, why)));
        if !self.protocol.is_tcp() {
            idle(&["nodelay", "mss"], "it is about TCP (protocol=tcp or tcpv6)");
        }
        if self.listen || matches!(self.protocol, Protocol::Unix | Protocol::Vsock) {
            idle(&["bind"], "it is about the side that connects, over IP");
        }
        if self.group().is_none() {
            idle(&["interface", "ttl"], "it is about multicast (protocol=udp and a group as hostname)");
        }
        all
    }
}

impl NetOptions {
    /// Whether this side waits for the other one: for TCP and vsock an option decides, otherwise the receiver waits.
    pub fn waits(&self, receives: bool) -> bool {
        match self.protocol {
            Protocol::Tcp | Protocol::TcpV6 | Protocol::Vsock => self.listen,
            Protocol::Udp | Protocol::UdpV6 | Protocol::Unix => receives,
        }
    }

    /// The multicast group in `hostname`, if it is one.
    pub fn group(&self) -> Option<IpAddr> {
        let address: IpAddr = self.hostname.parse().ok()?;
        (self.protocol.is_udp() && address.is_multicast()).then_some(address)
    }

    /// The peer that this job connects to, if any: `filename` may replace `hostname`.
    pub fn connects_to<'a>(&'a self, options: &'a JobOptions) -> Option<&'a str> {
        if options.waits_for_peer() || self.protocol == Protocol::Unix {
            return None;
        }
        match (self.hostname.as_str(), options.files.filename.first()) {
            ("", name) => name.map(String::as_str),
            (hostname, _) => Some(hostname),
        }
    }
}

/// The port of a clone. Each has its own; 0 = the job has none.
pub fn port_of_clone(port: u32, clone: u32) -> u32 {
    if port > 0 { port + clone } else { 0 }
}

static HOSTNAME: Definition = option("hostname", Kind::Str, "The other side's name or address")
    .names_files(|job| {
        let own = job.engine.of::<NetOptions>().filter(|own| own.protocol == Protocol::Unix);
        own.map(|own| own.hostname.clone()).into_iter().collect()
    })
    .lands_in_engine(|own, given| {
        *found(own.far_end())?.hostname = given.string()?;
        Ok(())
    });
static PORT: Definition = option("port", Kind::Int, "Port to listen on or to connect to")
    .range(1, 65535)
    .lands_in_engine(|own, given| {
        *found(own.far_end())?.port = given.number()?;
        Ok(())
    });
static PROTOCOL: Definition = option("protocol", Kind::Str, "Protocol of the sockets")
    .aliases(&["proto"])
    .default("tcp")
    .keywords(&[
        ("tcp", "TCP over IPv4"),
        ("tcpv6", "TCP over IPv6"),
        ("udp", "UDP over IPv4"),
        ("udpv6", "UDP over IPv6"),
        ("unix", "Local sockets"),
        ("vsock", "Sockets between a virtual machine and its host"),
    ])
    .lands_in_engine(|own, given| {
        place::<NetOptions>(own)?.protocol = match given.keyword()? {
            "tcpv6" => Protocol::TcpV6,
            "udp" => Protocol::Udp,
            "udpv6" => Protocol::UdpV6,
            "unix" => Protocol::Unix,
            "vsock" => Protocol::Vsock,
            _ => Protocol::Tcp,
        };
        Ok(())
    });
static NODELAY: Definition = option("nodelay", Kind::Bool, "Send small packets at once (TCP_NODELAY)")
    .lands_in_engine(own!(NetOptions.nodelay, boolean()));
static LISTEN: Definition = option("listen", Kind::Flag, "Wait for connections rather than make one")
    .lands_in_engine(own!(NetOptions.listen, boolean()));
static PINGPONG: Definition = option("pingpong", Kind::Flag, "Answer each message before the next")
    .lands_in_engine(own!(NetOptions.pingpong, boolean()));
static INTERFACE: Definition = option("interface", Kind::Str, "Network interface for multicast")
    .lands_in_engine(own!(NetOptions.interface, string()));
static TTL: Definition = option("ttl", Kind::Int, "How many hops multicast packets live")
    .default("1")
    .lands_in_engine(own!(NetOptions.ttl, number()));
static WINDOW_SIZE: Definition = option("window_size", Kind::Int, "Size of the sockets' buffers")
    .lands_in_engine(own!(NetOptions.window_size, number()));
static MSS: Definition =
    option("mss", Kind::Int, "Largest TCP segment").lands_in_engine(own!(NetOptions.mss, number()));

/// `net` and `netsplice`
pub static NET: &[&Definition] =
    &[&HOSTNAME, &PORT, &PROTOCOL, &NODELAY, &LISTEN, &PINGPONG, &BIND, &INTERFACE, &TTL, &WINDOW_SIZE, &MSS];

/// The use of the other end's memory (`verb`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verb {
    /// The client writes to the memory of the server.
    #[default]
    Write,
    /// The client reads from the memory of the server.
    Read,
    /// The client sends, and the server receives.
    Send,
    /// The server sends, and the client receives.
    Receive,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 4] = [Verb::Write, Verb::Read, Verb::Send, Verb::Receive];

    /// Its keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            Verb::Write => "write",
            Verb::Read => "read",
            Verb::Send => "send",
            Verb::Receive => "recv",
        }
    }

    /// Whether the server only provides its memory.
    pub fn is_one_sided(self) -> bool {
        matches!(self, Verb::Write | Verb::Read)
    }
}

own_options! {
    /// The options of `rdma`.
    pub struct RdmaOptions declared by RDMA with places {
        /// The name or address of the server; empty = not given.
        pub hostname: String,
        /// The local name or address, which selects the device; empty = the system chooses.
        pub bindname: String,
        /// The port; 0 = not given. A clone adds its number.
        pub port: u32,
        /// The operation; the client sends it to the server.
        pub verb: Verb,
    }
}

impl Places for RdmaOptions {
    fn far_end(&mut self) -> Option<FarEnd<'_>> {
        Some(FarEnd { hostname: &mut self.hostname, port: &mut self.port })
    }
}

impl OwnOptions for RdmaOptions {
    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        obstacles::of_rdma(job, self)
    }
}

static BINDNAME: Definition =
    option("bindname", Kind::Str, "Address of the own end, which chooses the device")
        .lands_in_engine(own!(RdmaOptions.bindname, string()));
static VERB: Definition = option("verb", Kind::Str, "The operation of the client (rw=write)")
    .aliases(&["proto"])
    .default("write")
    .keywords(&[
        ("write", "Write to the memory of the server"),
        ("read", "Read from the memory of the server"),
        ("send", "Send messages, which the server receives"),
        ("recv", "Receive messages, which the server sends"),
    ])
    .lands_in_engine(|own, given| {
        let keyword = given.keyword()?;
        let verb = Verb::ALL.into_iter().find(|verb| verb.keyword() == keyword);
        place::<RdmaOptions>(own)?.verb = verb.unwrap_or_default();
        Ok(())
    });

/// `rdma`
pub static RDMA: &[&Definition] = &[&HOSTNAME, &BINDNAME, &PORT, &VERB];
