//! Demands of a job that its engine cannot fulfil.

mod commands;

use iolite_options::engines::{self, Capability, Data, EngineInfo, UnitKind};
use iolite_options::engines::{
    CephPool, CpuioOptions, E4defragOptions, ExecOptions, ExtentAct, ExternalOptions, RadosOptions,
    RbdOptions, SgOptions,
};
use iolite_options::engines::{HdfsOptions, HttpOptions, NetOptions, Protocol, RdmaOptions, Verb};
use iolite_options::{FileType, JobOptions, LockFile, RunOptions, SubmitMode};
use iolite_types::Direction;

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(
    options: &JobOptions,
    engine: &EngineInfo,
    run: &RunOptions,
) -> Vec<(&'static str, String)> {
    let name = engine.name;
    let mut found = Vec::new();
    if let Some(own) = options.engine.of::<ExternalOptions>()
        && own.described.is_none()
        && !run.parse_only
    {
        let library = own.library.display();
        let message = format!(
            "ioengine=external:{library}: an engine in a file is taken from the command line and from job files of \
             this machine only"
        );
        return vec![("ioengine", message)];
    }
    if options.durability.atomic
        && options.pattern.rw.writes()
        && !engine.facets.can(Capability::AtomicWrites)
    {
        let can = engines::capable(Capability::AtomicWrites);
        found.push(("atomic", format!("atomic=1: ioengine={name} cannot ask for atomic writes; {can} can")));
    }
    if options.pattern.rw.trims() && !engine.facets.can(Capability::Trim) {
        found.push(("rw", format!("rw={}: ioengine={name} cannot trim", options.pattern.rw.name())));
    }
    found.extend(commands::of_ranges(options, engine));
    found.extend(commands::of_placement(options, engine));
    if let Some(option) = options.sync_asked_for()
        && !engine.facets.can(Capability::Sync)
    {
        let message = format!("{option}: ioengine={name} cannot put its writes on stable storage");
        found.push((option, message));
    }
    if options.verifies_writes()
        && options.engine.of::<SgOptions>().is_some_and(|own| !own.sg_write_mode.stores_data())
    {
        let message = "verify: with this sg_write_mode the disk does not keep the data of writes";
        found.push(("verify", message.to_owned()));
    }
    found.extend(of_removal(options, engine));
    found.extend(commands::of_metadata(options));
    found.extend(commands::of_commands(options));
    found.extend(of_unit(options, engine));
    if !run.parse_only {
        found.extend(of_own_options(options).map(|message| ("ioengine", message)));
    }
    if options.engine.of::<HttpOptions>().is_some_and(HttpOptions::gathers_writes)
        && options.depth.io_submit_mode == SubmitMode::Offload
    {
        let message =
            "io_submit_mode=offload: the parts of an object (http_s3_multipart_size) are sent by one client";
        found.push(("io_submit_mode", message.to_owned()));
    }
    if options.engine.of::<HttpOptions>().is_some_and(HttpOptions::gathers_writes)
        && options.verification.verify_backlog > 0
        && options.pattern.rw.writes()
    {
        let message = "verify_backlog: an object that is written in parts (http_s3_multipart_size) is there when all of it has \
                       been written, not earlier; leave verify_backlog out";
        found.push(("verify_backlog", message.to_owned()));
    }
    match engine.facets.data {
        Data::OwnStorage => found.extend(without_files(options, engine, "in its own storage")),
        Data::OtherEnd => {
            found.extend(without_files(options, engine, "at the other end of a connection"));
            found.extend(of_connections(options, engine));
        }
        Data::LocalFiles | Data::Nowhere => {}
    }
    found
}

/// Why the job cannot remove its files. (A program that is called `fio` leaves them, as fio does.)
fn of_removal(options: &JobOptions, engine: &EngineInfo) -> Option<(&'static str, String)> {
    let option = options.files.removal().filter(|_| engine.facets.can(Capability::FixedSize))?;
    let name = engine.name;
    let message = format!(
        "{option}=1: with ioengine={name} an image or disk cannot be removed by a job; leave {option} out"
    );
    Some((option, message))
}

/// Missing options that an engine requires.
fn of_own_options(options: &JobOptions) -> Option<String> {
    let name = &options.ioengine;
    if options.engine.of::<CpuioOptions>().is_some_and(|own| own.cpuload == 0) {
        return Some(format!("ioengine={name}: cpuload= is missing, the percent of a CPU to use (1 to 100)"));
    }
    if options.engine.of::<ExecOptions>().is_some_and(|own| own.program.is_empty()) {
        return Some(format!("ioengine={name}: program= is missing, the program to run"));
    }
    if let Some(missing) = of_ceph(options) {
        return Some(format!("ioengine={name}: {missing}"));
    }
    if let Some(why) = of_chunks(options) {
        return Some(why);
    }
    if options.engine.of::<HttpOptions>().is_some_and(|own| own.http_s3_list > 0) {
        let rw = options.pattern.rw;
        if rw.changes() || options.verification_option().is_some() {
            let what = "what lists names can be neither written, trimmed nor verified; use rw=read";
            return Some(format!("http_s3_list: {what}"));
        }
        if options.engine.of::<HttpOptions>().is_some_and(|own| own.http_create) {
            return Some("http_s3_list: nothing is made for a list; leave http_create out".to_owned());
        }
    }
    if let Some(own) = options.engine.of::<E4defragOptions>() {
        let what = match own.donorname.is_empty() {
            true => "donorname= is missing, a file on the same file system to swap blocks with",
            false if options.files.directory.len() > 1 => {
                "donorname= is a file below directory=, which has to be one directory"
            }
            false => return None,
        };
        return Some(format!("ioengine={name}: {what}"));
    }
    None
}

/// Refuses workloads that write in other ways than appending and replacing.
fn of_chunks(options: &JobOptions) -> Option<String> {
    let (own, rw) = (options.engine.of::<HdfsOptions>()?, options.pattern.rw);
    let skips = options.pattern.rw_modifier.0;
    let is_in_order = !rw.is_random() && !rw.reads() && skips == 0;
    if !rw.writes() || is_in_order || options.is_replay() {
        return None;
    }
    if !rw.is_random() && skips != 0 {
        return Some(format!(
            "rw={}:{skips}: files of HDFS are written from their beginning to their end, without gaps; use rw={0}",
            rw.name()
        ));
    }
    let block = options.block_size(Direction::Write);
    let size = block.not_multiple_of(own.chunk_size, options.pattern.bs_unaligned)?;
    let chunk = own.chunk_size;
    Some(format!(
        "rw={}: files of HDFS are written from their beginning to their end, so that writes which are not in order are \
         of whole chunks, and {size} bytes are not a multiple of chunk_size={chunk}; use bs={chunk}, or rw=write",
        rw.name()
    ))
}

/// Missing or impossible options of the Ceph engines.
fn of_ceph(options: &JobOptions) -> Option<String> {
    let no_pool =
        |at: &CephPool| at.pool.is_empty().then(|| "pool= is missing, the pool with the data".to_owned());
    if let Some(own) = options.engine.of::<RadosOptions>() {
        return no_pool(&own.at);
    }
    let own = options.engine.of::<RbdOptions>()?;
    if own.image().is_empty() || own.snapshot() == Some("") {
        return Some(
            "rbdname= is missing, the name of the image (IMAGE, or IMAGE@SNAPSHOT to read)".to_owned(),
        );
    }
    if own.snapshot().is_some() && options.changes_data() {
        return Some(format!("rbdname={}: a snapshot can only be read", own.rbdname));
    }
    if own.rbd_encryption_format.is_some() != own.rbd_encryption_passphrase.is_given() {
        return Some("rbd_encryption_format and rbd_encryption_passphrase go together".to_owned());
    }
    no_pool(&own.at)
}

/// Options that make no sense with units of this kind.
fn of_unit(options: &JobOptions, engine: &EngineInfo) -> Option<(&'static str, String)> {
    let name = engine.name;
    let asked = options.verification_option();
    if engine.facets.moves_data() {
        let keeps_nothing =
            engine.facets.data == Data::Nowhere && !engine.facets.can(Capability::FeignVerify);
        let option = asked.filter(|_| keeps_nothing)?;
        let message = format!("{option}: ioengine={name} verifies nothing; leave {option} out, or use mmap");
        return Some((option, message));
    }
    if engine.facets.unit == UnitKind::Works && options.depth.io_submit_mode == SubmitMode::Offload {
        let message =
            format!("io_submit_mode=offload: ioengine={name} issues no I/O that could be handed over");
        return Some(("io_submit_mode", message));
    }
    if let Some(option) = asked {
        let message = format!("{option}: ioengine={name} moves no data, and there is nothing to verify");
        return Some((option, message));
    }
    let only_writes = matches!(engine.facets.extent_act(), Some(ExtentAct::CutOff | ExtentAct::Swap));
    if only_writes && options.pattern.rw.reads() {
        let message = format!("rw={}: ioengine={name} can only write", options.pattern.rw.name());
        return Some(("rw", message));
    }
    let is_replayed = options.is_replay();
    let follows_traces = engine.facets.extent_act().is_some();
    (is_replayed && !follows_traces).then(|| {
        ("read_iolog", format!("read_iolog: ioengine={name} does nothing that a trace could ask for"))
    })
}

/// Options that need files of this machine.
fn without_files(options: &JobOptions, engine: &EngineInfo, place: &str) -> Vec<(&'static str, String)> {
    let name = engine.name;
    let cannot_extend = !engine.facets.can(Capability::Extend);
    let asked = [
        ("pre_read", options.files.pre_read, "nothing is cached"),
        ("lockfile", options.files.lockfile != LockFile::None, "there is no file that could be locked"),
        (
            "filetype",
            !matches!(options.files.filetype, FileType::None | FileType::File),
            "nothing is a device",
        ),
        (
            "fill_device",
            options.extent.fill_device && (options.pattern.rw.reads() || cannot_extend),
            "its content is unknown when it is full",
        ),
        ("ioscheduler", options.placement.ioscheduler.is_some(), "there is no disk of this machine"),
        (
            "read_iolog_chunked",
            options.is_replay() && options.replay.read_iolog_chunked,
            "names are not known beforehand",
        ),
    ];
    let asked = asked.into_iter().filter(|(_, asked, _)| *asked);
    asked
        .map(|(option, _, why)| {
            (option, format!("{option}: the data of ioengine={name} is {place}, where {why}"))
        })
        .collect()
}

/// Limits and requirements of connections.
fn of_connections(options: &JobOptions, engine: &EngineInfo) -> Vec<(&'static str, String)> {
    let name = engine.name;
    let rw = options.pattern.rw;
    let asked = [
        ("rw", rw.is_random(), format!("rw={}: a connection has no places", rw.name())),
        ("rw", rw.reads() && rw.writes(), format!("rw={}: a job either sends or receives", rw.name())),
        ("nrfiles", options.files.nrfiles > 1, "nrfiles: a job has one connection; use numjobs".to_owned()),
        (
            "filename",
            options.files.filename.len() > 1,
            "filename: a job has one connection; use several jobs".to_owned(),
        ),
        (
            "io_submit_mode",
            options.depth.io_submit_mode == SubmitMode::Offload,
            "io_submit_mode=offload: a connection belongs to its job, which has to send itself".to_owned(),
        ),
        ("read_iolog", options.is_replay(), "read_iolog: a connection has no places".to_owned()),
    ];
    let mut found: Vec<(&'static str, String)> = asked
        .into_iter()
        .filter(|(_, asked, _)| *asked)
        .map(|(option, _, why)| {
            let ends = match options.engine.of::<RdmaOptions>() {
                Some(_) => "rw=read is the server and rw=write the client",
                None => "rw=read receives and rw=write sends",
            };
            (option, format!("{why} (ioengine={name}: {ends})"))
        })
        .collect();
    if let Some(net) = options.engine.of::<NetOptions>() {
        found.extend(of_sockets(options, net, engine));
    }
    if let Some(rdma) = options.engine.of::<RdmaOptions>() {
        let told = of_rdma(options, rdma).into_iter();
        found.extend(told.map(|(option, why)| (option, format!("ioengine={name}: {why}"))));
    }
    found
}

/// Requirements and limits of RDMA.
fn of_rdma(options: &JobOptions, rdma: &RdmaOptions) -> Vec<(&'static str, String)> {
    let RdmaOptions { hostname, port, verb, .. } = rdma;
    let serves = options.waits_for_peer();
    let mut found = Vec::new();
    if *port == 0 {
        found.push(("ioengine", "port= is missing (1 to 65535)".to_owned()));
    }
    found.extend(of_last_port(options, *port));
    if serves && !hostname.is_empty() {
        let why = format!(
            "hostname={hostname}: the server (rw=read) waits for a client; leave hostname out, or say with bindname where it \
             waits"
        );
        found.push(("hostname", why));
    }
    if !serves && hostname.is_empty() {
        found.push(("ioengine", "hostname= is missing, the server to connect to".to_owned()));
    }
    if !serves && options.verification.is_on() && *verb != Verb::Send {
        let why = format!(
            "verify: with verb={} no end receives this job's data, so it cannot be verified; use verb=send",
            verb.keyword()
        );
        found.push(("verify", why));
    }
    found
}

/// The port of a clone. Each has its own; 0 = the job has none.
pub(crate) fn port_of_clone(port: u32, clone: u32) -> u32 {
    if port > 0 { port + clone } else { 0 }
}

/// The last clone needs a port as well.
fn of_last_port(options: &JobOptions, port: u32) -> Option<(&'static str, String)> {
    let clones = options.schedule.numjobs;
    let last = port_of_clone(port, clones.saturating_sub(1));
    (last > 65535).then(|| {
        let why =
            format!("port={port}: with numjobs={clones} the last clone has port {last}; ports end at 65535");
        ("port", why)
    })
}

/// Requirements and limits of sockets.
fn of_sockets(options: &JobOptions, net: &NetOptions, engine: &EngineInfo) -> Vec<(&'static str, String)> {
    let name = engine.name;
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
    if listens || net.protocol.is_udp() {
        if !waits && connects_to(options, net).is_none() {
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
    if engine.facets.can(Capability::LendBuffers) && net.protocol.is_tcp() && options.verifies_writes() {
        refuse("verify", "verify: spliced data may change before it is sent, when its buffer is used again; use ioengine=net".to_owned());
    }
    found
}

/// The most hops that a packet may make (its TTL).
const MOST_HOPS: u32 = 255;

/// The most bytes that a datagram carries.
const MOST_IN_DATAGRAM: u64 = 65507;

/// The peer that a job connects to, if any: `filename` may replace `hostname`.
pub(crate) fn connects_to<'a>(options: &'a JobOptions, net: &'a NetOptions) -> Option<&'a str> {
    if options.waits_for_peer() || net.protocol == Protocol::Unix {
        return None;
    }
    match (net.hostname.as_str(), options.files.filename.first()) {
        ("", name) => name.map(String::as_str),
        (hostname, _) => Some(hostname),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::engines::{Capabilities, engine};
    use iolite_options::{ReadWrite, Verify};

    pub(super) fn told(engine: &EngineInfo, change: impl FnOnce(&mut JobOptions)) -> Vec<String> {
        let mut options = JobOptions::default();
        change(&mut options);
        obstacles(&options, engine, &RunOptions::default()).into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn atomic_writes_need_an_engine_that_can_ask_for_them() {
        let psync = engine("psync").unwrap();
        let asks = |o: &mut JobOptions| {
            o.durability.atomic = true;
            o.pattern.rw = ReadWrite::Write;
        };
        let [message] = &told(psync, asks)[..] else { panic!("one") };
        assert!(message.ends_with("pvsync2, io_uring, libaio can"), "{message}");
        assert_eq!(told(engine("libaio").unwrap(), asks), [""; 0]);
    }

    #[test]
    fn what_an_engine_cannot_do_is_refused() {
        let mut weak = *engine("psync").unwrap();
        weak.facets.capabilities = Capabilities::default();
        let trims = |o: &mut JobOptions| o.pattern.rw = ReadWrite::RandTrim;
        assert_eq!(told(&weak, trims), ["rw=randtrim: ioengine=psync cannot trim"]);
        let ranges = |rw| move |o: &mut JobOptions| (o.pattern.rw, o.extent.num_range) = (rw, 4);
        let [message] = &told(engine("psync").unwrap(), ranges(ReadWrite::RandTrim))[..] else {
            panic!("one")
        };
        assert!(message.starts_with("num_range=4: needs an engine that trims several ranges"), "{message}");
        assert!(message.ends_with("io_uring_cmd does"), "{message}");
        assert_eq!(told(engine("psync").unwrap(), ranges(ReadWrite::Read)), [""; 0]);
        let entry = engine("io_uring_cmd").unwrap();
        let several = |change: fn(&mut JobOptions)| {
            told(entry, |o| {
                o.choose_engine(entry);
                ranges(ReadWrite::RandTrim)(o);
                change(o);
            })
        };
        assert_eq!(several(|_| ()), [""; 0]);
        let [message] = &several(|o| o.depth.io_submit_mode = SubmitMode::Offload)[..] else { panic!("one") };
        assert!(message.contains("use io_submit_mode=inline"), "{message}");
        let syncs = |rw| {
            move |o: &mut JobOptions| {
                o.pattern.rw = rw;
                o.durability.end_fsync = true;
            }
        };
        let [message] = &told(&weak, syncs(ReadWrite::Write))[..] else { panic!("one") };
        assert!(message.starts_with("end_fsync: "), "{message}");
        assert_eq!(told(&weak, syncs(ReadWrite::Read)), [""; 0], "there is nothing to sync");
        assert_eq!(told(engine("psync").unwrap(), syncs(ReadWrite::Write)), [""; 0]);
    }

    #[test]
    fn an_engine_in_a_file_is_refused_to_those_who_were_not_told_what_it_is() {
        let facets = engine("psync").unwrap().facets;
        let told = |described, run: &RunOptions| {
            let mut options = JobOptions::default();
            let external = engine("external").unwrap();
            options.choose_engine(external);
            let own = options.engine.of_mut::<ExternalOptions>().unwrap();
            (own.library, own.described) = ("./x.so".into(), described);
            obstacles(&options, external, run).into_iter().map(|(_, message)| message).collect::<Vec<_>>()
        };
        let [message] = &told(None, &RunOptions::default())[..] else { panic!("one") };
        assert!(
            message.starts_with("ioengine=external:./x.so: an engine in a file is taken from"),
            "{message}"
        );
        assert_eq!(told(Some(facets), &RunOptions::default()), [""; 0]);
        let parse_only = RunOptions { parse_only: true, ..RunOptions::default() };
        assert_eq!(told(None, &parse_only), [""; 0], "nothing is loaded");
    }

    #[test]
    fn what_needs_local_files_is_refused_to_storages() {
        let mut own = *engine("psync").unwrap();
        own.facets.data = Data::OwnStorage;
        assert_eq!(told(&own, |o| o.pattern.rw = ReadWrite::RandRw), [""; 0]);
        let [message] = &told(&own, |o| o.files.pre_read = true)[..] else { panic!("one") };
        assert!(
            message.starts_with("pre_read: the data of ioengine=psync is in its own storage"),
            "{message}"
        );
        assert_eq!(told(&own, |o| o.files.lockfile = LockFile::Exclusive).len(), 1);
        assert_eq!(told(&own, |o| o.extent.fill_device = true).len(), 1);
        let fills = |o: &mut JobOptions| (o.extent.fill_device, o.pattern.rw) = (true, ReadWrite::Write);
        assert_eq!(told(&own, fills), [""; 0], "a write says when there is no more room");
        own.facets.capabilities = Capabilities::of(&[Capability::Sync, Capability::Trim]);
        assert_eq!(told(&own, fills).len(), 1, "what cannot grow cannot be filled");
    }

    #[test]
    fn what_an_engine_has_to_be_told_is_asked_for() {
        for (name, missing) in [("cpuio", "cpuload= is missing"), ("exec", "program= is missing")] {
            let entry = engine(name).unwrap();
            let [message] = &told(entry, |o| o.choose_engine(entry))[..] else { panic!("one") };
            assert!(message.contains(missing), "{message}");
        }
    }

    #[test]
    fn ends_of_rdma_are_asked_who_they_are() {
        let entry = engine("rdma").unwrap();
        let of_end = |rw, hostname: &str, port, change: fn(&mut JobOptions)| {
            told(entry, |o| {
                o.choose_engine(entry);
                o.pattern.rw = rw;
                let own = o.engine.of_mut::<RdmaOptions>().unwrap();
                (own.hostname, own.port) = (hostname.to_owned(), port);
                change(o);
            })
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
            (
                write,
                "there",
                1,
                |o| o.pattern.rw = ReadWrite::RandWrite,
                "rw=randwrite: a connection has no places",
            ),
        ] {
            let [message] = &of_end(rw, hostname, port, change)[..] else { panic!("{expected}: one") };
            assert!(message.starts_with(expected), "{message}");
        }
        assert_eq!(of_end(read, "", 1, |_| ()), [""; 0]);
        assert_eq!(of_end(write, "there", 1, |_| ()), [""; 0]);
    }

    #[test]
    fn what_only_works_hands_nothing_over() {
        let mut works = *engine("null").unwrap();
        works.facets.unit = UnitKind::Works;
        let offloads = |o: &mut JobOptions| o.depth.io_submit_mode = SubmitMode::Offload;
        let [message] = &told(&works, offloads)[..] else { panic!("one") };
        assert!(message.starts_with("io_submit_mode=offload: ioengine=null issues no I/O"), "{message}");
        assert_eq!(told(engine("null").unwrap(), offloads), [""; 0]);
    }

    #[test]
    fn what_moves_no_data_is_not_verified() {
        let mut names = *engine("psync").unwrap();
        names.facets.unit = engine("filestat").unwrap().facets.unit;
        let verifies = |o: &mut JobOptions| o.verification.verify = Verify::Crc32c;
        assert_eq!(
            told(&names, verifies),
            ["verify: ioengine=psync moves no data, and there is nothing to verify"]
        );
        let replays = |o: &mut JobOptions| o.replay.read_iolog = vec!["log".into()];
        assert_eq!(told(&names, replays).len(), 1);
        names.facets.unit = UnitKind::ActsOnExtents(ExtentAct::Reserve);
        assert_eq!(told(&names, replays), [""; 0], "a trace may trim");
    }
}
