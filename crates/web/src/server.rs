//! Connections: a thread for each, with limits of their number and time.

use crate::answer::Answer;
use crate::request::{Refusal, Request};
use crate::transport::Wire;
use rustls::ServerConfig;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The maximum number of connections. Some more get an error, and the rest are closed.
const MOST: usize = 128;
/// How many more connections get the answer 503.
const MOST_REJECTED: usize = 16;
/// Reports may be nested 128 levels deep, which needs as much stack as the main thread has. Unused stack takes no
/// memory.
const STACK: usize = 8 << 20;
/// The delay before a retry if a connection cannot be accepted (because of too many open files, say).
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests.
pub trait Site: Send + Sync + 'static {
    /// The most bytes of a body that it reads.
    const MOST_BODY: usize = 0;

    /// Answers a request. Errors only concern the reader.
    fn answer(&self, request: &Request, to: &mut Wire);
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
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        let (counted, before) = Counted::new(open);
        if before >= MOST + MOST_REJECTED {
            continue;
        }
        let Ok(mut wire) = Wire::new(stream, security) else { continue };
        let site = site.clone();
        // If the thread cannot be started, the connection is closed.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || {
            let _counted = counted;
            match Request::read(&mut wire, S::MOST_BODY) {
                // Answered here rather than in the accept loop, so that a slow reader does not delay other connections.
                Ok(_) if before >= MOST => {
                    drop(Answer::text(503, "Too many pages are open.").send(&mut wire))
                }
                Ok(request) => site.answer(&request, &mut wire),
                Err(Refusal::Bad(status, words)) => {
                    drop(Answer::text(status, words).send(&mut wire));
                    wire.discard_rest();
                }
                Err(Refusal::Gone) => {}
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};
    use std::sync::{Condvar, Mutex};

    /// A site whose readers wait until the gate is open.
    #[derive(Default)]
    struct Gate {
        is_open: Mutex<bool>,
        changed: Condvar,
    }

    impl Site for Gate {
        fn answer(&self, _request: &Request, to: &mut Wire) {
            let is_open = self.is_open.lock().unwrap();
            drop(self.changed.wait_while(is_open, |is_open| !*is_open).unwrap());
            Answer::text(200, "Come in.").send(to).unwrap();
        }
    }

    fn told(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_silent_connection_beyond_the_limit_delays_nobody() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (site, open) = (Arc::new(Gate::default()), Open::default());
        let (its_site, its_open) = (site.clone(), open.clone());
        // The thread ends with this process.
        thread::spawn(move || serve(&listener, None, &its_site, &its_open));
        let connect = || TcpStream::connect(address).unwrap();
        let ask = || {
            let mut stream = connect();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            stream
        };
        let inside: Vec<TcpStream> = (0..MOST).map(|_| ask()).collect();
        let silent = connect();
        assert!(told(ask()).starts_with("HTTP/1.1 503 "));
        // Connections are accepted in order, so this one was accepted before, and not answered.
        silent.set_nonblocking(true).unwrap();
        assert!(!matches!(silent.peek(&mut [0]), Ok(1)), "it is answered when it has asked");
        *site.is_open.lock().unwrap() = true;
        site.changed.notify_all();
        assert!(inside.into_iter().all(|stream| told(stream).starts_with("HTTP/1.1 200 ")));
    }
}
