//! Connections: a thread for each, as many as there may be, and none for longer than it is of use.

use crate::answer::Answer;
use crate::request::{Refusal, Request};
use crate::wire::Wire;
use rustls::ServerConfig;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The maximum number of connections. Further ones get an error.
const MOST: usize = 128;
/// Reports may be nested 128 levels deep, which needs as much stack as the main thread has. Unused stack takes no
/// memory.
const STACK: usize = 8 << 20;
/// When connections cannot be taken (there are too many open files, say), it is tried again after this time.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests.
pub trait Site: Send + Sync + 'static {
    /// How many bytes of a body it reads.
    const MOST_BODY: usize = 0;

    /// Answers a request. Errors only concern the reader.
    fn answer(&self, request: &Request, to: &mut Wire);
}

/// Counts connections.
#[derive(Clone, Debug, Default)]
pub struct Open(Arc<AtomicUsize>);

impl Open {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// One of them, as long as this value lives.
struct Counted(Open);

impl Counted {
    fn new(open: &Open) -> Option<Counted> {
        let before = open.0.fetch_add(1, SeqCst);
        let counted = Counted(open.clone());
        (before < MOST).then_some(counted)
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
        let counted = Counted::new(open);
        if counted.is_none() {
            let _ = stream.set_write_timeout(Some(PAUSE));
        }
        let Ok(mut wire) = Wire::new(stream, security) else { continue };
        let Some(counted) = counted else {
            // Encrypted, it would take a thread to say so.
            if security.is_none() {
                let _ = Answer::text(503, "Too many pages are open.").send(&mut wire);
            }
            continue;
        };
        let site = site.clone();
        // If there can be no thread, the connection is closed.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || {
            let _counted = counted;
            match Request::read(&mut wire, S::MOST_BODY) {
                Ok(request) => site.answer(&request, &mut wire),
                Err(Refusal::Bad(status, words)) => drop(Answer::text(status, words).send(&mut wire)),
                Err(Refusal::Gone) => {}
            }
        });
    }
}
