//! Connections: a thread for each, with limits of their number and time. A connection whose request has not been read,
//! or has no valid token or cookie, may have to make room for a newer one, so that nobody can shut readers out.

use crate::access::{Admission, Rights};
use crate::answer::Answer;
use crate::request::{Refusal, Request};
use crate::transport::Wire;
use iolite_remote::unidentified::Strangers;
use rustls::ServerConfig;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The maximum number of readers' connections. More get an error.
const MOST: usize = 128;
/// How many connections may wait to be accepted. With the 128 of the standard library, a burst of them would make a reader
/// wait a second until the system tries again.
const MOST_WAITING: i32 = 1024;
/// Reports may be nested 128 levels deep, which needs as much stack as the main thread has. Unused stack takes no
/// memory.
const STACK: usize = 8 << 20;
/// The delay before a retry if a connection cannot be accepted (because of too many open files, say).
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests.
pub trait Site: Send + Sync + 'static {
    /// The most bytes of a body that it reads.
    const MOST_BODY: usize = 0;

    /// Decides about a request.
    fn admit(&self, request: &Request) -> Admission;

    /// Answers the request of a reader with these rights for this path; `None` = already answered.
    fn answer(&self, rights: Rights, request: &Request, path: &str, to: &mut Wire) -> Option<Answer>;
}

/// Counts connections.
#[derive(Clone, Debug, Default)]
pub struct Open(Arc<AtomicUsize>);

impl Open {
    /// The number of connections.
    pub fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// An open connection, as long as this value lives.
struct Counted(Open);

impl Counted {
    /// The connection, and the number of connections before it.
    fn new(open: &Open) -> (Counted, usize) {
        let before = open.0.fetch_add(1, SeqCst);
        (Counted(open.clone()), before)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}

/// Accepts connections, for ever. `security`: their encryption.
pub fn serve<S: Site>(
    listener: &TcpListener,
    security: Option<&Arc<ServerConfig>>,
    site: &Arc<S>,
    open: &Open,
) {
    // If this fails, fewer wait.
    let _ = rustix::net::listen(listener, MOST_WAITING);
    let (strangers, readers) = (Strangers::default(), Open::default());
    loop {
        let Ok((stream, from)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        let (counted, _) = Counted::new(open);
        let stream = Arc::new(stream);
        let (place, displaced) = strangers.admit(stream.clone(), Some(from.ip().to_canonical()));
        // Its thread notices. (This fails only if it is closed already.)
        let _ = displaced.map(|stream| stream.shutdown(Shutdown::Both));
        let Ok(mut wire) = Wire::new(stream, security) else { continue };
        let (site, readers) = (site.clone(), readers.clone());
        // If the thread cannot be started, the connection is closed.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || {
            let (_counted, place) = (counted, place);
            let request = match Request::read(&mut wire, S::MOST_BODY) {
                Ok(request) => request,
                Err(Refusal::Bad(status, words)) => {
                    drop(Answer::text(status, words).send(&mut wire));
                    return wire.discard_rest();
                }
                Err(Refusal::Gone) => return,
            };
            match site.admit(&request) {
                // It does not matter if a reader does not accept its answer.
                Admission::Answered(answer) => drop(answer.send(&mut wire)),
                Admission::Admitted(rights, path) => {
                    place.leave();
                    let (_reader, before) = Counted::new(&readers);
                    let answer = match before < MOST {
                        true => site.answer(rights, &request, &path, &mut wire),
                        false => Some(Answer::text(503, "Too many pages are open.")),
                    };
                    let _ = answer.map(|answer| answer.send(&mut wire));
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_remote::unidentified::MOST as MOST_STRANGERS;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};
    use std::sync::{Condvar, Mutex};

    /// A site that everybody may read, whose readers wait until the gate is open.
    #[derive(Default)]
    struct Gate {
        /// Whether the gate is open, and the number of readers that wait.
        state: Mutex<(bool, usize)>,
        changed: Condvar,
    }

    impl Site for Gate {
        fn admit(&self, _request: &Request) -> Admission {
            Admission::Admitted(Rights::Look, String::new())
        }

        fn answer(&self, _: Rights, _: &Request, _: &str, _: &mut Wire) -> Option<Answer> {
            let mut state = self.state.lock().unwrap();
            state.1 += 1;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |(is_open, _)| !*is_open).unwrap());
            Some(Answer::text(200, "Come in."))
        }
    }

    impl Gate {
        fn wait_for(&self, readers: usize) {
            let state = self.state.lock().unwrap();
            drop(self.changed.wait_while(state, |(_, waiting)| *waiting < readers).unwrap());
        }

        fn open(&self) {
            self.state.lock().unwrap().0 = true;
            self.changed.notify_all();
        }
    }

    /// A served site, and its address.
    fn served() -> (Arc<Gate>, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let site = Arc::new(Gate::default());
        let its_site = site.clone();
        // The thread ends with this process.
        thread::spawn(move || serve(&listener, None, &its_site, &Open::default()));
        (site, address)
    }

    fn ask(address: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        stream
    }

    fn told(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_silent_connection_beyond_the_limit_delays_nobody() {
        let (site, address) = served();
        let ask_and_wait = |number: usize| {
            let stream = ask(address);
            site.wait_for(number + 1);
            stream
        };
        let inside: Vec<TcpStream> = (0..MOST).map(ask_and_wait).collect();
        let silent = TcpStream::connect(address).unwrap();
        assert!(told(ask(address)).starts_with("HTTP/1.1 503 "));
        // Connections are accepted in order, so this one was accepted before, and not answered.
        silent.set_nonblocking(true).unwrap();
        assert!(!matches!(silent.peek(&mut [0]), Ok(1)), "it is answered when it has asked");
        site.open();
        assert!(inside.into_iter().all(|stream| told(stream).starts_with("HTTP/1.1 200 ")));
    }

    /// Connections that have not asked make room for newer ones; readers do not.
    #[test]
    fn connections_that_do_not_ask_keep_nobody_out() {
        let (site, address) = served();
        let early = ask(address);
        site.wait_for(1);
        let silent: Vec<TcpStream> = (0..3 * MOST_STRANGERS)
            .map(|number| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(&b"GET / HTTP/1.1\r\n"[..number % 17]).unwrap();
                stream
            })
            .collect();
        let late = ask(address);
        site.wait_for(2);
        site.open();
        for stream in [early, late] {
            assert!(told(stream).starts_with("HTTP/1.1 200 "));
        }
        // The oldest one was closed, without an answer, and the newest one was not.
        assert!(!matches!((&silent[0]).read(&mut [0]), Ok(1)));
        let newest = &silent[silent.len() - 1];
        newest.set_nonblocking(true).unwrap();
        assert_eq!(newest.peek(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
