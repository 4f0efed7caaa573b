//! Servers that do not answer: no request waits longer than its limit.

use super::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn client(addresses: Vec<SocketAddr>, encrypted: bool, timeout: Duration) -> Client {
    let endpoint = Endpoint::parse("127.0.0.1:1", encrypted).unwrap();
    let trust = Trust { anybody: true, ..Trust::default() };
    let limits = Limits { timeout: Some(timeout), retries: 0, verbose: 0 };
    let mut client = Client::new(vec![endpoint], &Protocol::WebDav(None), &trust, limits).unwrap();
    client.hosts[0].addresses = addresses;
    client
}

/// A request without a body, for an answer without memory.
fn get(client: &mut Client, patient: bool) -> Request {
    let head = client.head(Method::Get, &Object::whole("/a"), &[]);
    let body = (std::ptr::null(), 0);
    Request { head, body, sink: Sink::Text, head_only: false, fields: false, patient }
}

/// The outcome of a request, within a time limit.
fn outcome(client: &mut Client, patient: bool) -> Result<Answer, String> {
    let request = get(client, patient);
    // SAFETY: there is no body, and no memory.
    let done = unsafe { client.perform(Some(Instant::now() + Duration::from_secs(300)), request) };
    done.result.map_err(|failure| failure.words)
}

/// An address of this machine that does not answer connection attempts, because its queue is full, and the sockets that
/// keep it full.
fn black_hole() -> (SocketAddr, OwnedFd, Vec<OwnedFd>) {
    let socket =
        |flags| rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    let listener = socket(SocketFlags::CLOEXEC);
    rustix::net::bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = SocketAddr::try_from(rustix::net::getsockname(&listener).unwrap()).unwrap();
    let waiting = (0..4).map(|_| {
        let client = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        // Connections beyond the queue's capacity are not established.
        let _ = rustix::net::connect(&client, &address);
        client
    });
    (address, listener, waiting.collect())
}

/// A server that sends `says` to each client, and then `again` repeatedly until the client disconnects.
fn server(says: &'static [u8], again: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let _ = stream.read(&mut [0; 4096]);
        let mut left = stream.write_all(says);
        while left.is_ok() {
            std::thread::sleep(Duration::from_millis(20));
            left = if again.is_empty() { is_there(&mut stream) } else { stream.write_all(again) };
        }
    });
    address
}

/// Fails if the other end has disconnected.
fn is_there(stream: &mut TcpStream) -> io::Result<()> {
    match stream.read(&mut [0; 64])? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

#[test]
fn the_next_address_is_tried() {
    let (hole, _listener, _waiting) = black_hole();
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let answering = server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"");
    assert_eq!(outcome(&mut client(vec![hole, answering], false, minute), false).unwrap().status, 200);
    // The same for an encrypted connection: the error is that of the second address.
    let open = server(b"HTTP/1.1 400 Bad Request\r\n\r\n", b"");
    let words = outcome(&mut client(vec![hole, open], true, minute), false).unwrap_err();
    assert!(words.contains("the port may be one for connections without encryption"), "{words}");
    // If the second address is silent, the request ends as well.
    let silent = server(b"", b"");
    let words = outcome(&mut client(vec![hole, silent], false, second), false).unwrap_err();
    assert!(words.contains("the server was silent for 1 s (http_timeout)"), "{words}");
    let words = outcome(&mut client(vec![hole, hole], true, second), false).unwrap_err();
    assert!(
        words.contains(&format!("cannot connect to {hole}: no answer within 1 s (http_timeout)")),
        "{words}"
    );
}

/// The server keeps sending, but its answer never ends.
#[test]
fn a_patient_request_has_an_end() {
    let dripping = server(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" ");
    let (begun, timeout) = (Instant::now(), Duration::from_millis(200));
    let words = outcome(&mut client(vec![dripping], false, timeout), true).unwrap_err();
    assert!(words.contains("or too slow"), "{words}");
    assert!(begun.elapsed() >= timeout * PATIENCE, "it may take longer than others");
}

#[test]
fn a_job_that_is_to_end_waits_for_10_s_at_most() {
    let silent = server(b"", b"");
    for patient in [false, true] {
        let mut client = client(vec![silent], false, Duration::from_secs(3600));
        let request = get(&mut client, patient);
        // SAFETY: there is no body, and no memory.
        unsafe { client.begin(0, request) };
        client.stop_repeating();
        let end = Instant::now() + LAST;
        let flight = client.links[0].as_ref().unwrap().flight.as_ref().unwrap();
        assert!(flight.deadline.unwrap() <= end);
        assert!(!patient || flight.latest.unwrap() <= end + LAST * PATIENCE);
        assert!(client.next_deadline.unwrap() <= end);
        assert_eq!(client.limits.timeout, Some(LAST));
    }
}

/// Several requests look for a working address at the same time.
#[test]
fn parallel_requests_do_not_settle_on_a_wrong_address() {
    let (hole, _listener, _waiting) = black_hole();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            // The first request is answered before the others begin.
            std::thread::sleep(Duration::from_millis(50));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    // Even without a timeout, a request gives up an address after 5 s. This limit does not apply afterwards.
    for timeout in [None, Some(Duration::from_secs(60))] {
        let mut client = client(vec![hole, address], false, Duration::ZERO);
        client.limits.timeout = timeout;
        for token in 0..3 {
            let request = get(&mut client, false);
            // SAFETY: there is no body, and no memory.
            unsafe { client.begin(token, request) };
        }
        while client.in_flight() > 0 {
            match client.next_done() {
                Some(done) => assert_eq!(done.result.unwrap().status, 200),
                None => client.drive(None).unwrap(),
            }
        }
        assert_eq!(client.hosts[0].reachable, 1);
        assert_eq!(client.next_deadline.filter(|_| timeout.is_none()), None);
    }
}
