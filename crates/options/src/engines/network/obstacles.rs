//! What jobs with connections (`net`, `netsplice`, `rdma`) need, and what they cannot do.

use super::{NetOptions, Protocol, RdmaOptions, Verb, port_of_clone};
use crate::JobOptions;
use crate::engines::{Capability, Obstacle};
use iolite_types::Direction;

/// The most hops that a packet may make (its TTL).
const MOST_HOPS: u32 = 255;

/// The most bytes that a datagram carries.
const MOST_IN_DATAGRAM: u64 = 65507;

/// Requirements and limits of sockets.
pub(super) fn of_sockets(options: &JobOptions, net: &NetOptions) -> Vec<Obstacle> {
    let name = &options.ioengine;
    let protocol = net.protocol.keyword();
    let waits = options.waits_for_peer();
    let clones = options.schedule.numjobs;
    let mut found = Vec::new();
    let mut refuse = |option, why: String| found.push((option, format!("ioengine={name}: {why}")));
    if net.protocol == Protocol::Unix {
        if net.hostname.is_empty() && options.files.filename.is_empty() {
            refuse("ioengine", "filename= is missing, the path of the socket".to_owned());
        }
        if clones > 1 {
            refuse(
                "numjobs",
                format!(
                    "numjobs={clones}: a local socket belongs to one pair of jobs; give each its own filename"
                ),
            );
        }
    } else if net.port == 0 {
        refuse("ioengine", format!("port= is missing (protocol={protocol}, 1 to 65535)"));
    } else if let Some((option, why)) = of_last_port(options, net.port) {
        refuse(option, why);
    }
    let listens = matches!(net.protocol, Protocol::Tcp | Protocol::TcpV6 | Protocol::Vsock);
    if net.listen && !listens {
        refuse(
            "listen",
            format!(
                "listen: with protocol={protocol} it is always the receiver (rw=read) that waits; leave listen out"
            ),
        );
    }
    let sends = options.pattern.rw.directions().eq([Direction::Write]);
    let tells = options.chosen_engine().is_some_and(|engine| engine.facets.can(Capability::TimeAnswers));
    if options.measures_stages() && tells && !(net.pingpong && sends) {
        let why = "stages: only a block that is sent back has an answer whose time can be told; use pingpong with rw=write";
        refuse("stages", why.to_owned());
    }
    if listens || net.protocol.is_udp() {
        if !waits && net.connects_to(options).is_none() {
            refuse(
                "ioengine",
                format!(
                    "hostname= is missing, where to connect to (protocol={protocol}; listen waits for a connection)"
                ),
            );
        }
        if waits && !net.hostname.is_empty() && net.group().is_none() {
            refuse(
                "hostname",
                format!(
                    "hostname={}: a job that waits takes a multicast address for UDP only; leave hostname out",
                    net.hostname
                ),
            );
        }
    }
    if net.group().is_some() && net.ttl > MOST_HOPS {
        refuse("ttl", format!("ttl={}: a packet lives for 0 to {MOST_HOPS} hops", net.ttl));
    }
    let directions = options.pattern.rw.directions();
    let largest = directions.map(|direction| options.block_size(direction).max()).max().unwrap_or(1);
    if net.protocol.is_udp() && largest > MOST_IN_DATAGRAM {
        refuse(
            "bs",
            format!(
                "bs={largest}: a block has to fit into a datagram (protocol={protocol}): at most {MOST_IN_DATAGRAM} bytes"
            ),
        );
    }
    let splices = options.chosen_engine().is_some_and(|engine| engine.facets.can(Capability::LendBuffers));
    if splices && net.protocol.is_tcp() && options.verifies_writes() {
        refuse("verify", "verify: spliced data may change before it is sent, when its buffer is used again; use ioengine=net".to_owned());
    }
    found
}

/// Requirements and limits of RDMA.
pub(super) fn of_rdma(options: &JobOptions, rdma: &RdmaOptions) -> Vec<Obstacle> {
    let RdmaOptions { hostname, port, verb, .. } = rdma;
    let serves = options.waits_for_peer();
    let mut found = Vec::new();
    let mut refuse = |option, why: String| found.push((option, format!("ioengine=rdma: {why}")));
    if *port == 0 {
        refuse("ioengine", "port= is missing (1 to 65535)".to_owned());
    } else if let Some((option, why)) = of_last_port(options, *port) {
        refuse(option, why);
    }
    if serves && !hostname.is_empty() {
        let why = format!(
            "hostname={hostname}: the server (rw=read) waits for a client; leave hostname out, or say with bindname where it \
             waits"
        );
        refuse("hostname", why);
    }
    if !serves && hostname.is_empty() {
        refuse("ioengine", "hostname= is missing, the server to connect to".to_owned());
    }
    if !serves && options.verification.is_on() && *verb != Verb::Send {
        let why = format!(
            "verify: with verb={} no end receives this job's data, so it cannot be verified; use verb=send",
            verb.keyword()
        );
        refuse("verify", why);
    }
    found
}

/// The last clone needs a port as well.
fn of_last_port(options: &JobOptions, port: u32) -> Option<Obstacle> {
    let clones = options.schedule.numjobs;
    let last = port_of_clone(port, clones.saturating_sub(1));
    (last > 65535).then(|| {
        let why =
            format!("port={port}: with numjobs={clones} the last clone has port {last}; ports end at 65535");
        ("port", why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::engine;
    use crate::{ReadWrite, Verify};

    #[test]
    fn rdma_needs_a_port_and_a_server() {
        let entry = engine("rdma").unwrap();
        let of_end = |rw, hostname: &str, port, change: fn(&mut JobOptions)| {
            let mut options = JobOptions::default();
            options.choose_engine(entry);
            options.pattern.rw = rw;
            let own = options.engine.of_mut::<RdmaOptions>().unwrap();
            (own.hostname, own.port) = (hostname.to_owned(), port);
            change(&mut options);
            let found = options.engine.obstacles(&options).into_iter();
            found.map(|(_, message)| message).collect::<Vec<_>>()
        };
        let (read, write) = (ReadWrite::Read, ReadWrite::Write);
        for (rw, hostname, port, change, expected) in [
            (read, "", 0, (|_| ()) as fn(&mut JobOptions), "ioengine=rdma: port= is missing"),
            (write, "", 1, |_| (), "ioengine=rdma: hostname= is missing, the server"),
            (read, "there", 1, |_| (), "ioengine=rdma: hostname=there: the server (rw=read) waits"),
            (read, "", 65535, |o| o.schedule.numjobs = 2, "ioengine=rdma: port=65535: with numjobs=2"),
            (
                write,
                "there",
                1,
                |o| o.verification.verify = Verify::Md5,
                "ioengine=rdma: verify: with verb=write",
            ),
        ] {
            let [message] = &of_end(rw, hostname, port, change)[..] else { panic!("{expected}: one") };
            assert!(message.starts_with(expected), "{message}");
        }
        assert_eq!(of_end(read, "", 1, |_| ()), [""; 0]);
        assert_eq!(of_end(write, "there", 1, |_| ()), [""; 0]);
    }
}
