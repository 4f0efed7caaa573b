//! `net` and `netsplice`: two jobs of one run, two runs, and fio at either end; and ends that disappear, refuse
//! connections, or send something else.

use crate::common::program::Running;
use crate::common::trace::{slowed_when, system_calls};
use crate::common::{Finished, Json, Program, scratch, words};
use iolite_testing::{partly_skipped, skip, this_test};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// An unused port.
fn free_port() -> u16 {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    taken.local_addr().expect("it is bound").port()
}

/// Waits until a process listens at this port.
fn await_port(running: &mut Running, port: u16) {
    let place = format!(":{port:04X} ");
    running.wait_until("its port is open", |_| {
        let waits = |table: &str, state: &str| {
            let table = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
            table
                .lines()
                .filter(|line| line.split_whitespace().nth(3) == Some(state))
                .any(|line| line.contains(&place))
        };
        waits("tcp", "0A") || waits("tcp6", "0A") || waits("udp", "07") || waits("udp6", "07")
    });
}

/// A receiver and a sender: the options of both, and those of each.
struct Pair {
    what: &'static str,
    both: &'static str,
    receiver: &'static str,
    sender: &'static str,
}

const fn pair(what: &'static str, both: &'static str, receiver: &'static str, sender: &'static str) -> Pair {
    Pair { what, both, receiver, sender }
}

/// `PORT` stands for an unused port.
const PAIRS: &[Pair] = &[
    pair("tcp", "--ioengine=net --port=PORT", "--listen", "--hostname=127.0.0.1"),
    pair("tcp at a depth", "--ioengine=net --port=PORT --iodepth=16", "--listen", "--hostname=127.0.0.1"),
    pair("tcp without delay", "--ioengine=net --port=PORT --nodelay=1", "--listen", "--hostname=localhost"),
    pair("tcp, threads", "--ioengine=net --port=PORT --thread", "--listen", "--filename=127.0.0.1"),
    pair("tcpv6", "--ioengine=net --protocol=tcpv6 --port=PORT", "--listen", "--hostname=::1"),
    pair("udp", "--ioengine=net --protocol=udp --port=PORT", "", "--hostname=127.0.0.1"),
    pair("udpv6", "--ioengine=net --protocol=udpv6 --port=PORT", "", "--hostname=::1"),
    pair("unix", "--ioengine=net --protocol=unix --filename=sock", "", ""),
    pair("pingpong", "--ioengine=net --port=PORT --pingpong", "--listen", "--hostname=127.0.0.1"),
    pair("udp pingpong", "--ioengine=net --protocol=udp --port=PORT --pingpong", "", "--hostname=127.0.0.1"),
    pair("unix pingpong", "--ioengine=net --protocol=unix --filename=sock --pingpong", "", ""),
    pair("verified", "--ioengine=net --port=PORT --verify=crc32c", "--listen", "--hostname=127.0.0.1"),
    pair("verified, unix", "--ioengine=net --protocol=unix --filename=sock --verify=md5", "", ""),
    pair("spliced", "--ioengine=netsplice --port=PORT", "--listen", "--hostname=127.0.0.1"),
    pair(
        "spliced pingpong",
        "--ioengine=netsplice --port=PORT --pingpong",
        "--listen",
        "--hostname=127.0.0.1",
    ),
    pair("spliced unix", "--ioengine=netsplice --protocol=unix --filename=sock", "", ""),
];

impl Pair {
    /// Whether the system meets its requirements.
    fn is_possible(&self) -> bool {
        !self.both.contains("v6") || TcpListener::bind("[::1]:0").is_ok()
    }

    /// The command lines of both ends, for blocks of 4 KiB.
    fn lines(&self, port: u16, bytes: u64) -> [String; 2] {
        let Pair { both, receiver, sender, .. } = self;
        let port = port.to_string();
        let line = |name, own, rw| {
            format!("--name={name} {both} {own} --rw={rw} --bs=4k --size={bytes}").replace("PORT", &port)
        };
        [line("receiver", receiver, "read"), line("sender", sender, "write")]
    }
}

/// This little data fits into socket buffers, so that no datagram is lost.
const SOME: u64 = 64 << 10;

#[test]
fn jobs_of_one_run_send_and_receive() {
    let mut without = Vec::new();
    for pair in PAIRS {
        if !pair.is_possible() {
            without.push(pair.what);
            continue;
        }
        let dir = scratch();
        let [receiver, sender] = pair.lines(free_port(), SOME);
        let line = format!("--output-format=json {receiver} {sender}");
        let json = Json::parse(&Program::under_test().line(dir.path(), &line).ok().stdout);
        let jobs = json.jobs();
        jobs.iter().for_each(|job| job.check_consistency());
        assert_eq!((jobs[0].bytes(), jobs[1].bytes()), ([SOME, 0, 0], [0, SOME, 0]), "{}", pair.what);
        assert_eq!(
            (jobs[0].ios(), jobs[1].ios()),
            ([SOME / 4096, 0, 0], [0, SOME / 4096, 0]),
            "{}",
            pair.what
        );
        // Both ends report the same counts.
        for (near, far, direction) in [(jobs[0], jobs[1], "write"), (jobs[1], jobs[0], "read")] {
            let seen = &near.0["far_end"][0];
            assert_eq!(seen["jobname"], far.0["jobname"], "{}", pair.what);
            for key in ["io_bytes", "total_ios", "bw_bytes", "iops", "runtime"] {
                assert_eq!(seen[direction][key], far.0[direction][key], "{}: {key}", pair.what);
            }
            assert_eq!(seen["lost_bytes"], 0, "{}", pair.what);
        }
        assert!(!dir.path().join("sock").exists(), "{}: the socket is removed", pair.what);
    }
    if !without.is_empty() {
        partly_skipped(&this_test!(), &format!("no IPv6: {without:?}"));
    }
}

/// Runs a receiver and a sender of two programs. (fio as the receiver sometimes waits for ever on a busy machine.)
fn two_runs(receives: &Program, sends: &Program, lines: &[String; 2], port: u16) -> [Finished; 2] {
    let json = |line: &String| words(&format!("--output-format=json {line}"));
    receives.patiently(|| {
        let dir = scratch();
        let mut receiver = receives.start(dir.path(), json(&lines[0]));
        if lines[0].contains("--protocol=unix") {
            receiver.wait_until("its socket is there", |_| dir.path().join("sock").exists());
        } else {
            await_port(&mut receiver, port);
        }
        let sender = sends.run(dir.path(), json(&lines[1]));
        Some([receives.wait(receiver)?, sender])
    })
}

/// The report in a run's output: the peer prints notes before it.
fn report(finished: &Finished) -> Json {
    let begin = finished.stdout.find('{').unwrap_or_else(|| panic!("no report: {finished}"));
    Json::parse(&finished.stdout[begin..])
}

#[test]
fn runs_send_to_each_other_and_to_the_peer() {
    let mut programs = vec![(Program::under_test(), Program::under_test())];
    for peer in 0..Program::peers().len() {
        let peer = || Program::peers().swap_remove(peer);
        programs.push((Program::under_test(), peer()));
        programs.push((peer(), Program::under_test()));
    }
    for (receives, sends) in &programs {
        // fio's headers depend on its release. And with Unix sockets, its closing message fails after a successful
        // transfer.
        let mixed = receives.version() != sends.version();
        for pair in
            PAIRS.iter().filter(|pair| pair.is_possible() && !(mixed && pair.what.contains("verified")))
        {
            let port = free_port();
            let ends = two_runs(receives, sends, &pair.lines(port, SOME), port);
            let what = format!("{}: {} to {}", pair.what, sends.version(), receives.version());
            for (end, program) in ends.iter().zip([receives, sends]) {
                let is_unix_of_peer =
                    pair.both.contains("unix") && program.version() != Program::under_test().version();
                assert!(end.code() == 0 || is_unix_of_peer, "{what}: {end}");
            }
            let [received, sent] = ends.each_ref().map(|end| report(end).job().bytes());
            assert_eq!(sent, [0, SOME, 0], "{what}");
            // fio does not count a block that arrives in two parts.
            let is_counted = receives.version() == Program::under_test().version();
            assert!(received == [SOME, 0, 0] || !is_counted, "{what}: {received:?}");
        }
    }
    if programs.len() == 1 {
        skip!("there is no fio to compare with");
    }
}

#[test]
fn reports_are_those_of_the_peer() {
    let mut compared = false;
    let skeleton = |program: &Program, line: &str| {
        let dir = scratch();
        let finished = program.line(dir.path(), line).ok();
        let digits = |line: &str| -> String {
            let masked = line.chars().map(|c| if c.is_ascii_digit() { '9' } else { c });
            masked.collect()
        };
        let told = |line: &&str| {
            line.contains("groupid=") || line.contains("issued rwts") || line.contains("waiting for")
        };
        finished
            .stdout
            .lines()
            .filter(told)
            .map(|line| digits(line.split(": pid=").next().unwrap_or(line)))
            .collect::<Vec<_>>()
    };
    for peer in Program::peers() {
        for pair in PAIRS.iter().filter(|pair| ["tcp", "udp", "pingpong", "spliced"].contains(&pair.what)) {
            let dir = scratch();
            let ours = Program::called_fio(dir.path());
            let [ours, theirs] = [&ours, &peer].map(|program| {
                let [receiver, sender] = pair.lines(free_port(), 16 << 10);
                skeleton(program, &format!("{receiver} {sender} --startdelay=300ms"))
            });
            assert_eq!(ours, theirs, "{}: {}", peer.version(), pair.what);
            compared = true;
        }
    }
    if !compared {
        skip!("there is no fio to compare with");
    }
}

/// Runs a pair of jobs with additional options for each.
fn run_pair(receiver: &str, sender: &str) -> Finished {
    let dir = scratch();
    let port = free_port();
    let line = format!(
        "--output-format=json --name=receiver --ioengine=net --rw=read --port={port} {receiver} \
         --name=sender --ioengine=net --rw=write --port={port} --hostname=127.0.0.1 {sender}"
    );
    Program::under_test().line(dir.path(), &line)
}

#[test]
fn an_end_that_is_done_announces_it_and_the_other_end_ends() {
    // A receiver ends when it has received everything.
    for protocol in ["--protocol=tcp", "--protocol=udp"] {
        let listen = if protocol.ends_with("tcp") { "--listen" } else { "" };
        let json = report(
            &run_pair(
                &format!("{protocol} {listen} --bs=4k --size=1m"),
                &format!("{protocol} --bs=4k --size=32k"),
            )
            .ok(),
        );
        let jobs = json.jobs();
        assert_eq!((jobs[0].bytes(), jobs[1].bytes()), ([32 << 10, 0, 0], [0, 32 << 10, 0]), "{protocol}");
    }
    // If the receiver's blocks are larger, the last one is short.
    let json = report(&run_pair("--listen --bs=16k --size=1m", "--bs=3k --size=18k").ok());
    let receiver = &json.jobs()[0];
    assert_eq!((receiver.bytes(), receiver.int("read.short_ios")), ([18 << 10, 0, 0], 1));
    // If the receiver ends first, the sender ends, too, and reports that it has not sent everything.
    let finished = run_pair("--listen --bs=4k --size=16k", "--bs=4k --size=16g").ok();
    let finished = finished.says("the other end has finished; the job ends before it has sent all its data");
    let json = report(&finished);
    assert_eq!(json.jobs()[0].bytes(), [16 << 10, 0, 0]);
    // The time limit of either end ends both.
    for (receives, sends) in [(200, 5000), (5000, 200)] {
        let timed = |time: u32| format!("--bs=4k --size=64k --time_based --runtime={time}ms");
        for (protocol, listen) in [("tcp", "--listen"), ("udp", "")] {
            let receiver = format!("--protocol={protocol} {listen} {}", timed(receives));
            run_pair(&receiver, &format!("--protocol={protocol} {}", timed(sends))).ok();
        }
    }
}

#[test]
fn options_without_effect_on_the_protocol_are_reported() {
    let warned = |line: &str| {
        let line = format!("--parse-only --name=j --ioengine=net --rw=write --size=64k --port=9 {line}");
        Program::own().line(scratch().path(), &line).ok().stderr
    };
    for (line, why) in [
        ("--hostname=::1 --protocol=udpv6 --nodelay=1", "nodelay: has no effect: it is about TCP"),
        ("--hostname=h --protocol=udp --mss=1000", "mss: has no effect: it is about TCP"),
        ("--hostname=h --ttl=4", "ttl: has no effect: it is about multicast"),
        ("--hostname=127.0.0.1 --protocol=udp --interface=eth0", "interface: has no effect: it is about"),
    ] {
        assert!(warned(line).contains(why), "{line}: {}", warned(line));
    }
    for fine in ["--hostname=h --nodelay=1 --mss=1000", "--hostname=224.0.0.9 --protocol=udp --ttl=4"] {
        assert_eq!(warned(fine), "", "{fine}");
    }
}

#[test]
fn invalid_connections_are_refused() {
    let refused = |line: &str, why: &str| {
        Program::under_test()
            .line(scratch().path(), &format!("--name=j --size=64k {line}"))
            .refused()
            .says(why);
    };
    for (line, why) in [
        ("--ioengine=net --rw=write --hostname=127.0.0.1", "port= is missing"),
        ("--ioengine=net --rw=write --port=1", "hostname= is missing"),
        ("--ioengine=net --rw=read --port=1 --listen --hostname=127.0.0.1", "leave hostname out"),
        ("--ioengine=net --rw=read --port=1 --listen --protocol=udp", "it is always the receiver"),
        (
            "--ioengine=net --rw=write --port=1 --listen --protocol=unix --filename=s",
            "it is always the receiver",
        ),
        ("--ioengine=net --rw=randwrite --port=1 --hostname=127.0.0.1", "a connection has no places"),
        ("--ioengine=net --rw=rw --port=1 --hostname=127.0.0.1", "a job either sends or receives"),
        ("--ioengine=net --rw=trim --port=1 --hostname=127.0.0.1", "cannot trim"),
        ("--ioengine=net --rw=write --protocol=unix", "filename= is missing"),
        ("--ioengine=net --rw=write --protocol=unix --filename=s --numjobs=2", "to one pair of jobs"),
        ("--ioengine=net --rw=write --port=1 --hostname=127.0.0.1 --nrfiles=2", "a job has one connection"),
        ("--ioengine=net --rw=write --port=65535 --numjobs=2 --hostname=127.0.0.1", "ports end at 65535"),
        ("--ioengine=net --rw=write --port=1 --protocol=udp --hostname=127.0.0.1 --bs=64k", "at most 65507"),
        ("--ioengine=net --rw=write --port=70000 --hostname=127.0.0.1", "port=70000"),
        (
            "--ioengine=net --rw=write --port=1 --hostname=127.0.0.1 --io_submit_mode=offload",
            "belongs to its job",
        ),
        ("--ioengine=net --rw=write --port=1 --hostname=127.0.0.1 --end_fsync=1", "stable storage"),
        (
            "--ioengine=netsplice --rw=write --port=1 --hostname=127.0.0.1 --verify=md5",
            "may change before it is sent",
        ),
        ("--ioengine=net --rw=write --port=1 --hostname=127.0.0.1", "Connection refused"),
        ("--ioengine=net --rw=write --port=1 --hostname=127.0.0.1 --protocol=udp", "Connection refused"),
        ("--ioengine=net --rw=write --protocol=unix --filename=nobody", "No such file or directory"),
        (
            "--ioengine=net --rw=write --port=1 --hostname=no.such.host.invalid",
            "hostname=no.such.host.invalid",
        ),
        (
            "--ioengine=net --rw=write --port=1 --hostname=me --protocol=vsock",
            "takes the number of a machine",
        ),
        (
            "--ioengine=net --rw=read --port=1 --protocol=udp --hostname=224.0.0.77 --interface=x",
            "interface=x",
        ),
    ] {
        refused(line, why);
    }
    // An existing file that is not a socket is kept.
    let dir = scratch();
    fs::write(dir.path().join("s"), "data").unwrap();
    let line = "--name=j --ioengine=net --rw=read --protocol=unix --filename=s --size=64k";
    Program::under_test().line(dir.path(), line).refused().says("is not a socket");
    assert_eq!(fs::read(dir.path().join("s")).unwrap(), b"data");
    // A port in use.
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    refused(&format!("--ioengine=net --rw=read --listen --port={port}"), "Address already in use");
    // If one job of a run fails, the other one does not wait for it.
    run_pair("--listen --size=64k", "--size=64k --mss=1 --window_size=4k")
        .refused()
        .says("has ended before it came");
}

/// A receiver that waits at the port.
fn receiver(dir: &Path, port: u16, own: &str) -> Running {
    let line = format!("--name=j --ioengine=net --rw=read --port={port} --bs=4k {own}");
    let mut running = Program::under_test().start(dir, words(&line));
    await_port(&mut running, port);
    running
}

#[test]
fn a_sender_that_goes_away_is_an_error() {
    let dir = scratch();
    let port = free_port();
    let running = receiver(dir.path(), port, "--listen --size=1m");
    let mut sender = TcpStream::connect(("127.0.0.1", port)).unwrap();
    sender.write_all(&[1; 5000]).unwrap();
    drop(sender);
    running.wait().refused().says("the other end closed the connection before it was done");
    // A receiver of datagrams checks whether a silent sender still exists.
    let port = free_port();
    let running = receiver(dir.path(), port, "--protocol=udp --size=1m");
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"link\0\0\0\x98", ("127.0.0.1", port)).unwrap();
    sender.send_to(&[1; 4096], ("127.0.0.1", port)).unwrap();
    drop(sender);
    running.wait().refused().says("the other end closed the connection before it was done");
}

#[test]
fn unexpected_data_is_detected() {
    let dir = scratch();
    // The first datagram announces the sender.
    let port = free_port();
    let running = receiver(dir.path(), port, "--protocol=udp --size=1m");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(b"what is this?", ("127.0.0.1", port)).unwrap();
    running.wait().refused().says("announces no sender");
    // Later datagrams from another sender are ignored, and so are oversized ones.
    let port = free_port();
    let running = receiver(dir.path(), port, "--protocol=udp --size=8k --output-format=json");
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"link\0\0\0\x98", ("127.0.0.1", port)).unwrap();
    stranger.send_to(&[2; 4096], ("127.0.0.1", port)).unwrap();
    sender.send_to(&[1; 4096], ("127.0.0.1", port)).unwrap();
    sender.send_to(b"knil\x89\0\0\0", ("127.0.0.1", port)).unwrap();
    assert_eq!(report(&running.wait().ok()).job().bytes(), [4096, 0, 0]);
    let port = free_port();
    let running = receiver(dir.path(), port, "--protocol=udp --size=8k");
    sender.send_to(b"link\0\0\0\x98", ("127.0.0.1", port)).unwrap();
    sender.send_to(&[1; 5000], ("127.0.0.1", port)).unwrap();
    running.wait().refused().says("a datagram of 5000 bytes came where 4096 are left of the block");
    // A job that verifies detects data from a sender that does not.
    let port = free_port();
    let running = receiver(dir.path(), port, "--listen --size=8k --verify=crc32c");
    let mut sender = TcpStream::connect(("127.0.0.1", port)).unwrap();
    sender.write_all(&[1; 8192]).unwrap();
    running.wait().refused().says("verify: bad magic header 101, wanted acca");
    // Two senders; then a receiver that sends blocks back to a sender that does not expect them.
    let receiver = "--name=j --ioengine=net --listen --size=64m --bs=64k";
    for other in ["--rw=write", "--rw=read --pingpong"] {
        let port = free_port();
        let mut running =
            Program::under_test().start(dir.path(), words(&format!("{receiver} {other} --port={port}")));
        await_port(&mut running, port);
        let line = format!(
            "--name=j --ioengine=net --rw=write --hostname=127.0.0.1 --port={port} --size=64m --bs=64k"
        );
        let sender = Program::under_test().line(dir.path(), &line).refused();
        let receiver = running.wait().refused();
        let told = [&sender, &receiver].map(|end| end.output().contains("the other end sends as well"));
        assert!(told.contains(&true), "{sender} {receiver}");
    }
}

/// Starts a sender that connects to the test. Returns the sender and the connection.
fn sender(dir: &Path, own: &str) -> (Running, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!(
        "--name=j --ioengine=net --rw=write --port={port} --hostname=127.0.0.1 --bs=4k --output-format=json {own}"
    );
    let running = Program::under_test().start(dir, words(&line));
    (running, listener.accept().unwrap().0)
}

#[test]
fn a_receiver_that_goes_away_is_an_error() {
    let dir = scratch();
    let (running, mut receiver) = sender(dir.path(), "--size=64m");
    receiver.read_exact(&mut [0; 4096]).unwrap();
    drop(receiver);
    running.wait().refused().says("the other end closed the connection before everything was sent");
    // A receiver that sends the closing message before it disconnects is no error.
    let (running, mut receiver) = sender(dir.path(), "--size=64m");
    receiver.read_exact(&mut [0; 4096]).unwrap();
    receiver.write_all(b"knil\x89\0\0\0").unwrap();
    drop(receiver);
    running.wait().ok();
}

#[test]
fn a_sender_detects_data_that_was_not_received() {
    let dir = scratch();
    let goes_away = "the other end closed the connection before it received everything";
    // Each peer sends some bytes, reads this much, and closes; unread data turns that into a reset.
    let rubbish = b"HTTP/1.0 400 Bad Request\r\n";
    let cases: [(&[u8], usize, &str); 3] =
        [(rubbish, 0, "the other end sends as well"), (b"", 1, goes_away), (b"", 100, goes_away)];
    for (says, reads, why) in cases {
        let (running, mut receiver) = sender(dir.path(), "--size=64k");
        receiver.write_all(says).unwrap();
        receiver.read_exact(&mut vec![0; reads]).unwrap();
        drop(receiver);
        let finished = running.wait().refused();
        // (A reset may arrive during a send.)
        assert!(
            finished.output().contains(why) || finished.output().contains("closed the connection before"),
            "{finished}"
        );
    }
    // Unexpected data is distinguished from the closing message even if the connection stays open.
    let (running, mut receiver) = sender(dir.path(), "--size=64k --rate_iops=100");
    receiver.write_all(rubbish).unwrap();
    running.wait().refused().says("the other end sends as well");
    drop(receiver);
    // A receiver that reads to the end need not send the closing message.
    let (running, mut receiver) = sender(dir.path(), "--size=64k");
    let mut data = Vec::new();
    receiver.read_to_end(&mut data).unwrap();
    drop(receiver);
    running.wait().ok();
    assert_eq!(data.len(), (64 << 10) + 8);
    // With Unix sockets, the kernel knows how much was received.
    let path = dir.path().join("sock");
    for reads in [100, (64 << 10) + 8] {
        let listener = UnixListener::bind(&path).unwrap();
        let line = "--name=j --ioengine=net --rw=write --protocol=unix --filename=sock --bs=4k --size=64k";
        let running = Program::under_test().start(dir.path(), words(line));
        let mut receiver = listener.accept().unwrap().0;
        receiver.read_exact(&mut vec![0; reads]).unwrap();
        drop(receiver);
        match running.wait() {
            finished if reads == 100 => finished.refused().says("the other end closed the connection before"),
            finished => finished.ok(),
        };
        fs::remove_file(&path).unwrap();
    }
}

/// A reset that arrives just before the goodbye is told by the goodbye alone.
#[test]
fn a_sender_detects_a_reset_before_its_goodbye() {
    let dir = scratch();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line =
        format!("--name=j --ioengine=net --rw=write --port={port} --hostname=127.0.0.1 --bs=4k --size=64k");
    let receiver = thread::spawn(move || {
        let mut first = listener.accept().unwrap().0;
        first.read_to_end(&mut Vec::new()).unwrap();
        let mut second = listener.accept().unwrap().0;
        second.read_exact(&mut [0; 1]).unwrap();
        // All other sends have this time. On a slow machine one of them fails instead.
        thread::sleep(Duration::from_millis(200));
    });
    // The number of the goodbye among the sends of its process.
    let program = Program::under_test();
    let Some((finished, log)) = system_calls(&program, dir.path(), "sendto", &words(&line)) else {
        skip!("strace does not work here")
    };
    finished.ok();
    let goodbye = log.lines().find(|call| call.contains("knil")).expect("it says goodbye");
    let process = goodbye.split_whitespace().next();
    let calls =
        log.lines().filter(|call| call.split_whitespace().next() == process && call.contains("sendto("));
    let number = 1 + calls.take_while(|&call| call != goodbye).count();
    let finished = slowed_when(&program, dir.path(), "sendto", 1000, &number.to_string(), &words(&line));
    finished.unwrap().refused().says("the other end closed the connection before");
    receiver.join().unwrap();
}

#[test]
pub fn each_block_is_answered() {
    let dir = scratch();
    let (running, mut receiver) = sender(dir.path(), "--size=8k --pingpong");
    let (mut block, mut more) = ([0; 4096], [0; 1]);
    receiver.set_nonblocking(false).unwrap();
    for _ in 0..2 {
        receiver.read_exact(&mut block).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(receiver.read(&mut more).is_err(), "nothing comes before the answer");
        receiver.set_read_timeout(None).unwrap();
        receiver.write_all(&block).unwrap();
    }
    let mut goodbye = Vec::new();
    receiver.read_to_end(&mut goodbye).unwrap();
    assert_eq!(goodbye, b"knil\x89\0\0\0");
    assert_eq!(report(&running.wait().ok()).job().ios(), [0, 2, 0]);
}

#[test]
fn a_wait_for_a_silent_peer_ends() {
    let dir = scratch();
    // The time limit ends a receiver that receives nothing.
    let port = free_port();
    let running = receiver(dir.path(), port, "--listen --size=1m --runtime=200ms");
    let silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    running.wait().ok();
    drop(silent);
    // A sender reports data that the other end has not read, or that has not arrived.
    let (running, silent) = sender(dir.path(), "--size=64m --runtime=200ms");
    running.wait().ok().says("bytes of what counts as sent had not arrived");
    drop(silent);
    let (running, silent) = sender(dir.path(), "--size=64k");
    running.wait().ok().says("the other end did not read to the end within a second");
    drop(silent);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    let line = format!("--name=j --ioengine=net --rw=write --port={port} --hostname=127.0.0.1 --size=64k");
    let finished = Program::under_test().line(dir.path(), &line);
    finished.ok().says("the other end did not read to the end within a second");
    // An interrupt ends a receiver that waits for a connection, or for data.
    for connects in [false, true] {
        let port = free_port();
        let running = receiver(dir.path(), port, "--listen --size=1m");
        let silent = connects.then(|| TcpStream::connect(("127.0.0.1", port)).unwrap());
        running.signal(libc::SIGINT);
        let finished = running.wait();
        assert!(!finished.output().contains("err=104"), "{finished}");
        drop(silent);
    }
}

/// At its time limit, a sender completes its block, because the receiver would count a partial block as short.
#[test]
fn both_ends_count_the_same_blocks() {
    const BLOCK: u64 = 8 << 20;
    let dir = scratch();
    let (running, mut receiver) = sender(dir.path(), "--bs=8m --size=1g --time_based --runtime=300ms");
    let mut room = vec![0; 1 << 20];
    let mut received = 0;
    // A block is larger than the socket buffers, so the sender is within a block at its time limit.
    thread::sleep(Duration::from_millis(600));
    loop {
        match receiver.read(&mut room).unwrap() {
            0 => break,
            bytes => received += bytes as u64,
        }
    }
    drop(receiver);
    let json = report(&running.wait().ok());
    let job = json.job();
    received -= 8;
    assert_eq!((received, received % BLOCK), (job.bytes()[1], 0));
    assert_eq!(job.ios(), [0, received / BLOCK, 0]);
    // A receiver counts an incomplete last block as short, not as dropped.
    let json = report(&run_pair("--listen --bs=16k --size=1m", "--bs=3k --size=18k").ok());
    let receiver = json.jobs()[0];
    let counts = ["total_ios", "short_ios", "drop_ios"].map(|key| receiver.int(&format!("read.{key}")));
    assert_eq!(counts, [1, 1, 0]);
}

#[test]
fn a_group_receives_what_is_sent_to_it() {
    let dir = scratch();
    let port = free_port();
    let group = format!(
        "--ioengine=net --protocol=udp --hostname=224.0.0.77 --interface=127.0.0.1 --port={port} --bs=4k --size=16k"
    );
    let line = format!(
        "--output-format=json --name=one {group} --name=two {group} --name=s {group} --rw=write --startdelay=300ms"
    );
    let json = Json::parse(&Program::under_test().line(dir.path(), &line).ok().stdout);
    let bytes: Vec<_> = json.jobs().iter().map(|job| job.bytes()).collect();
    assert_eq!(bytes, [[16 << 10, 0, 0], [16 << 10, 0, 0], [0, 16 << 10, 0]]);
}

#[test]
fn a_block_is_one_call_at_most() {
    const BLOCKS: usize = 1024;
    let dir = scratch();
    let calls_of = |pair: &Pair| {
        let [receiver, sender] = pair.lines(free_port(), BLOCKS as u64 * 4096);
        let line = format!("{receiver} {sender}");
        let calls = "sendto,recvfrom,recvmsg,poll,ppoll,select";
        let (finished, log) = system_calls(&Program::under_test(), dir.path(), calls, &words(&line))?;
        finished.ok();
        let has_moved = |line: &&str| !line.contains("= -1") && !line.contains("PEEK");
        // (strace prints the result of an interrupted call where it resumes.)
        let ended = |line: &&str| has_moved(line) && !line.contains("unfinished");
        let lines = |are: &dyn Fn(&&str) -> bool| log.lines().filter(are).count();
        let sent = lines(&|line| has_moved(line) && line.contains("sendto(") && line.contains(" 4096, "));
        let waits = lines(&|line| line.contains("poll(") || line.contains("select"));
        assert!(sent >= BLOCKS && waits < BLOCKS / 4, "{log}");
        let received = lines(&|line| ended(line) && line.contains(" 4096, MSG_WAITALL"));
        Some((received, lines(&|line| ended(line) && line.contains("recvmsg")), log.clone()))
    };
    let pair = |protocol: &str| PAIRS.iter().find(|pair| pair.both.contains(protocol)).expect("a pair");
    // A TCP receiver reads ahead.
    let Some((received, ahead, log)) = calls_of(&PAIRS[0]) else {
        skip!("strace is missing, or may not trace");
    };
    assert!(received == 0 && (1..BLOCKS / 4).contains(&ahead), "{ahead}: {log}");
    // With Unix sockets, a receiver reads block by block, because the kernel tells the sender what was received.
    let (received, ahead, log) = calls_of(pair("unix")).expect("strace has just worked");
    assert!(received >= BLOCKS && ahead == 0, "{log}");
}

/// If a job connects to another one that must end before it begins, both would wait for ever.
#[test]
fn ends_that_would_never_meet_are_refused() {
    let dir = scratch();
    for (line, option) in [
        ("--size=64k --ioengine=net --port=1 --name=r --rw=read --listen=1 --name=w --stonewall --rw=write --listen=0 --hostname=localhost".to_owned(), "stonewall"),
        ("--size=64k --ioengine=net --port=1 --name=r --rw=read --listen=1 --name=w --wait_for=r --rw=write --listen=0 --hostname=127.0.0.1".to_owned(), "wait_for"),
    ] {
        let refused = Program::under_test().line(dir.path(), &line).refused();
        assert!(refused.stderr.contains(&format!("{option}: this job connects to job r")), "{refused}");
    }
    let base = "--size=64k --ioengine=net --port=1";
    let ends = |both: &str, one: &str, other: &str| {
        let local = if both.contains("udp") { "" } else { "--listen=1" };
        format!("{base} {both} --name=a {local} {one} --name=b --listen=0 --hostname=127.0.0.1 {other}")
    };
    for (line, why) in [
        (ends("", "--rw=read", "--rw=read"), "receives as well, so both would wait for ever"),
        (ends("", "--rw=write", "--rw=write"), "sends as well; one of both has to receive (rw=read)"),
        (
            ends("", "--rw=read", "--rw=write --pingpong=1"),
            "job a, at the other end of the connection, does not",
        ),
        (
            ends("", "--rw=read --pingpong=1", "--rw=write"),
            "job b, at the other end of the connection, does not",
        ),
        (ends("", "--rw=write --pingpong=1", "--rw=read"), "and would never send a block back"),
        (ends("--protocol=udp", "--rw=read", "--rw=write --pingpong=1"), "and would never send a block back"),
        (ends("--pingpong=1", "--rw=read --bs=8k", "--rw=write --bs=4k"), "bs=8192: job b sends 4096 bytes"),
        (ends("--pingpong=1", "--rw=read --bs=3k", "--rw=write --bs=4k"), "give both the same bs"),
        (
            ends("--pingpong=1 --protocol=udp", "--rw=read --bs=4k", "--rw=write --bs=8k"),
            "give both the same bs",
        ),
        (
            "--ioengine=net --size=64k --protocol=unix --filename=s --rw=read --name=a --name=b".to_owned(),
            "job a waits at s as well",
        ),
    ] {
        let refused = Program::under_test().line(dir.path(), &line).refused();
        assert!(refused.stderr.contains(why), "{line}: {refused}");
    }
    // Jobs on another machine, or at another time, are not the two ends of a connection.
    for line in [
        "--ioengine=net --size=64k --port=1 --name=a --rw=read --listen=1 --name=b --rw=read --hostname=192.0.2.1 --listen=0",
        "--ioengine=net --size=64k --protocol=unix --filename=s --rw=read --name=a --name=b --stonewall",
    ] {
        Program::under_test().line(dir.path(), &format!("--parse-only {line}")).ok();
    }
    // With TCP, block sizes may differ, and a sender of datagrams may ignore blocks that are sent back.
    let port = free_port().to_string();
    for line in [
        ends("--pingpong=1", "--rw=read --bs=4k", "--rw=write --bs=8k"),
        ends("--protocol=udp", "--rw=read --pingpong=1", "--rw=write"),
    ] {
        Program::under_test().line(dir.path(), &line.replace("port=1", &format!("port={port}"))).ok();
    }
    // Jobs that run at the same time can connect.
    let line = "--size=64k --ioengine=net --protocol=unix --name=r --rw=read --filename=s --name=w --rw=write --hostname=s";
    Program::under_test().line(dir.path(), line).ok();
}
