//! Clients that send invalid data, too slowly, or too much.

use super::{Agent, TWO, job, run};
use crate::common::scratch;
use iolite_testing::Luck;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[test]
pub fn rubbish_on_the_port_starts_nothing() {
    let dir = scratch();
    let agent = Agent::on_port(dir.path());
    job(dir.path(), TWO);
    let place = agent.address.replace(',', ":");
    let mut luck = Luck::new();
    let mut greeting = b"iolite remote 1\n".to_vec();
    greeting.resize(64, 0);
    for round in 0..24 {
        let mut stream = TcpStream::connect(&place).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut bytes: Vec<u8> = (0..luck.below(200)).map(|_| luck.below(256) as u8).collect();
        if round % 2 == 0 {
            // After a greeting, the agent reads frames: oversized, unknown and damaged ones.
            bytes = [greeting.clone(), vec![luck.below(8) as u8, 255 * (round % 4 == 0) as u8, 0, 0], bytes]
                .concat();
        }
        // (The agent may have closed the connection.)
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"iolite remote 1\n"), "{answer:?}");
    }
    // A silent connection does not block other clients.
    let silent = TcpStream::connect(&place).unwrap();
    run(dir.path(), &["--insecure", &agent.client(), "job.fio"]).ok();
    drop(silent);
    let said = agent.end();
    assert!(said.stderr.contains("not an Iolite"), "{said}");
}

/// A client that sends single bytes slowly is disconnected as early as a silent one.
#[test]
pub fn a_slow_stranger_is_disconnected() {
    let dir = scratch();
    let mut agent = Agent::start(
        dir.path(),
        &[&format!("--server=sock:{}", dir.path().join("s").display()), "--client-timeout=1s"],
    );
    let mut stream = std::os::unix::net::UnixStream::connect(dir.path().join("s")).unwrap();
    let greeting = b"iolite remote 1\n".iter().copied().chain(std::iter::repeat(0));
    for byte in greeting.take(60) {
        // The agent has closed the connection.
        if stream.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    agent.running.wait_until("its reason", |running| running.output().contains("has taken too long"));
    agent.end();
}

/// Requests that no real client sends are refused as well.
#[test]
pub fn other_versions_and_strange_requests_are_refused() {
    use iolite_options::{RunOptions, SentJobs};
    use iolite_remote::frame;
    use iolite_remote::message::{FromAgent, Hello, Request, ToAgent};
    use std::os::unix::net::UnixStream;
    let dir = scratch();
    let mut agent = Agent::on_socket(dir.path(), "a");
    let greet = |program: &str| {
        let mut stream = UnixStream::connect(dir.path().join("a/s")).unwrap();
        let mut greeting = b"iolite remote 1\n".to_vec();
        greeting.resize(64, 0);
        stream.write_all(&greeting).unwrap();
        stream.read_exact(&mut greeting).unwrap();
        let hello = Hello { program: program.to_owned(), machine: "m".into(), pid: 1 };
        frame::write(&mut stream, &ToAgent::Hello(hello)).unwrap();
        let Ok(FromAgent::Hello(hello)) = frame::read(&mut stream) else { panic!("no answer") };
        (stream, hello.program)
    };
    let (mut stream, own) = greet("iolite-0.0.0");
    assert!(frame::read::<FromAgent>(&mut stream).is_err());
    agent.running.wait_until("the versions", |running| {
        let said = running.output();
        said.contains("iolite-0.0.0 is at the other end") && said.contains(&own)
    });
    let (mut stream, _) = greet(&own);
    let run =
        RunOptions { merge_blktrace_only: true, trigger: Some("touch ran".into()), ..RunOptions::default() };
    let jobs = SentJobs { run, ..SentJobs::default() };
    let request = Request { jobs, hosts: 1, ..Request::default() };
    frame::write(&mut stream, &ToAgent::Run(Box::new(request))).unwrap();
    let Ok(FromAgent::Refused(refusal)) = frame::read(&mut stream) else { panic!("not refused") };
    for option in ["--merge-blktrace-only: ", "--trigger: "] {
        assert!(refusal.problems.iter().any(|problem| problem.starts_with(option)), "{refusal:?}");
    }
    drop(stream);
    agent.end();
}

/// Connects from this local address.
fn connect_from(address: [u8; 4], place: &str) -> std::io::Result<TcpStream> {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    let (_, port) = place.rsplit_once(',').unwrap();
    let socket_address = |address: [u8; 4], port: u16| {
        // SAFETY: the structure is plain data, valid as zeros.
        let mut full: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        full.sin_family = libc::AF_INET as libc::sa_family_t;
        full.sin_port = port.to_be();
        full.sin_addr.s_addr = u32::from_ne_bytes(address);
        full
    };
    let check = |result: i32| if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) };
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    let (own, there) = (socket_address(address, 0), socket_address([127, 0, 0, 1], port.parse().unwrap()));
    // SAFETY: the addresses are valid during the calls, and the socket is owned as soon as it exists.
    unsafe {
        let socket = OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0))?);
        check(libc::bind(socket.as_raw_fd(), (&raw const own).cast(), size))?;
        check(libc::connect(socket.as_raw_fd(), (&raw const there).cast(), size))?;
        Ok(TcpStream::from(socket))
    }
}

/// Sets the flag when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Very many clients that send nothing, invalid data, or too much do not block other clients, and fill neither the
/// memory nor the log.
#[test]
pub fn a_flood_of_connections_does_not_block_clients() {
    let dir = scratch();
    let agent = Agent::on_port(dir.path());
    job(dir.path(), TWO);
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let pid = agent.running.pid();
    let status = |what: &str| -> u64 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let mut greeting = b"iolite remote 1\n".to_vec();
    greeting.resize(64, 0);
    // After the greeting, this announces jobs of 60 MiB.
    let announced = [&greeting[..], &[1, 3, 0xc0, 0, 0], &[b'x'; 1 << 20]].concat();
    let silent: Vec<_> = (0..300).map(|_| connect_from([127, 0, 0, 2], &agent.address).unwrap()).collect();
    let came = AtomicU64::new(0);
    let runs = std::thread::scope(|scope| {
        let crowd = [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &greeting, &announced];
        crowd.into_iter().for_each(|words| {
            let (is_over, came, address) = (&is_over, &came, &agent.address);
            scope.spawn(move || {
                while !is_over.load(SeqCst) {
                    if let Ok(mut stream) = connect_from([127, 0, 0, 3], address) {
                        let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
                        // (The agent may have closed the connection.)
                        let _ = stream.write_all(words);
                        came.fetch_add(1, SeqCst);
                    }
                }
            });
        });
        // Ends the threads of the crowd, even if an assertion fails.
        let _over = Over(&is_over);
        let mut runs = 0;
        while runs < 3 || came.load(SeqCst) < 1000 {
            runs += 1;
            run(dir.path(), &["--insecure", &agent.client(), "job.fio"]).ok();
            // There are threads for 64 unknown clients and as many known ones.
            assert!(status("Threads:") < 140);
        }
        runs
    });
    drop(silent);
    let most_kib = status("VmHWM:");
    let said = agent.end();
    assert!(said.stderr.contains(": opens too many connections"), "{said}");
    assert_eq!(said.stderr.matches("is done with the jobs of").count(), runs, "{said}");
    // Each second has at most ten lines about them, and one summary.
    let lines = said.stderr.lines().count() as u64;
    assert!(lines <= 11 * (begun.elapsed().as_secs() + 2) + 2 * runs as u64, "{lines} lines: {said}");
    assert!(most_kib < 256 << 10, "{most_kib} KiB");
}

/// The agent reads only little data from an unknown client.
#[test]
pub fn jobs_of_strangers_are_not_read() {
    let dir = scratch();
    let mut agent = Agent::on_port(dir.path());
    let mut stream = TcpStream::connect(agent.address.replace(',', ":")).unwrap();
    let mut words = b"iolite remote 1\n".to_vec();
    words.resize(64, 0);
    words.extend([1, 3, 0xc0, 0, 0]);
    words.resize(8 << 20, b'x');
    // (The agent may have closed the connection.)
    let _ = stream.write_all(&words);
    let told = "the other end has sent too much (more than 262144 bytes)";
    agent.running.wait_until("its message", |running| running.output().contains(told));
    agent.end();
}
