//! Connections: a thread for each, as many as there may be, and none for longer than it is of use.

use crate::answer::Answer;
use crate::request::{Refusal, Request};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Connections at a time. Those beyond are told so.
const MOST: usize = 128;
/// How long a reader may take nothing of what it is sent.
const PATIENCE: Duration = Duration::from_secs(10);
/// Reports may be nested 128 times, which takes as much of a stack as the main thread has. What is not used is not there.
const STACK: usize = 8 << 20;
/// When connections cannot be taken (there are too many open files, say), it is tried again after this time.
const PAUSE: Duration = Duration::from_millis(100);

/// What answers requests.
pub trait Site: Send + Sync + 'static {
    /// Answers one. Whatever fails is the reader's business.
    fn answer(&self, request: &Request, to: &mut TcpStream);
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

/// Takes connections, for ever.
pub fn serve(listener: &TcpListener, site: &Arc<impl Site>, open: &Open) {
    loop {
        let Ok((mut stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        let _ = stream.set_nodelay(true);
        if stream.set_write_timeout(Some(PATIENCE)).is_err() {
            continue;
        }
        let Some(counted) = Counted::new(open) else {
            let _ = stream.set_write_timeout(Some(PAUSE));
            let _ = Answer::text(503, "Too many pages are open.").send(&mut stream);
            continue;
        };
        let site = site.clone();
        // If there can be no thread, the connection is closed.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || {
            let _counted = counted;
            match Request::read(&mut stream) {
                Ok(request) => site.answer(&request, &mut stream),
                Err(Refusal::Bad(status, words)) => drop(Answer::text(status, words).send(&mut stream)),
                Err(Refusal::Gone) => {}
            }
        });
    }
}
