//! Clients that talk rubbish, too slowly, or too much.

use super::{Agent, TWO, job, run};
use crate::common::scratch;
use iolite_testing::Luck;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

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
            // Behind a greeting, so that frames are read: oversized ones, unknown ones, damaged ones.
            bytes = [greeting.clone(), vec![luck.below(8) as u8, 255 * (round % 4 == 0) as u8, 0, 0], bytes]
                .concat();
        }
        // The other end may have had enough.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"iolite remote 1\n"), "{answer:?}");
    }
    // A silent connection keeps nobody from running jobs.
    let silent = TcpStream::connect(&place).unwrap();
    run(dir.path(), &["--insecure", &agent.client(), "job.fio"]).ok();
    drop(silent);
    let said = agent.end();
    assert!(said.stderr.contains("no Iolite"), "{said}");
}

/// A byte now and then holds no place for longer than saying nothing does.
#[test]
pub fn who_dawdles_is_sent_away() {
    let dir = scratch();
    let mut agent = Agent::start(
        dir.path(),
        &[&format!("--server=sock:{}", dir.path().join("s").display()), "--client-timeout=1s"],
    );
    let mut stream = std::os::unix::net::UnixStream::connect(dir.path().join("s")).unwrap();
    let greeting = b"iolite remote 1\n".iter().copied().chain(std::iter::repeat(0));
    for byte in greeting.take(60) {
        // It has had enough.
        if stream.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    agent.running.wait_until("its reason", |running| running.output().contains("has taken too long"));
    agent.end();
}

/// Requests that no client of this program sends are refused as well.
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
    let request = Request {
        jobs,
        as_fio: false,
        host: 0,
        hosts: 1,
        snapshot_ms: 0,
        status_ms: 0,
        sample_ms: 0,
        series: false,
    };
    frame::write(&mut stream, &ToAgent::Run(Box::new(request))).unwrap();
    let Ok(FromAgent::Refused(refusal)) = frame::read(&mut stream) else { panic!("not refused") };
    for option in ["--merge-blktrace-only: ", "--trigger: "] {
        assert!(refusal.problems.iter().any(|problem| problem.starts_with(option)), "{refusal:?}");
    }
    drop(stream);
    agent.end();
}
