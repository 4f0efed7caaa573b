//! Sees to it that a target that hangs is noticed, and its input kept.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What is being fed, since when.
type Fed = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// A thread that looks at the clock.
pub struct Watch {
    fed: Fed,
    /// Dropped, it ends the thread.
    _stop: Sender<()>,
}

impl Watch {
    /// Ends the process when an input of this target takes too long.
    pub fn new(name: &str, limit: Duration) -> Watch {
        let fed = Fed::default();
        let (stop, stopped) = channel::<()>();
        let (watched, name) = (Arc::clone(&fed), name.to_owned());
        thread::spawn(move || {
            while stopped.recv_timeout(limit / 4) == Err(RecvTimeoutError::Timeout) {
                let fed = watched.lock().expect("nobody panics with it");
                if let Some((since, input)) = &*fed
                    && since.elapsed() > limit
                {
                    eprintln!("{name} hangs; the input is {}", super::save(&name, input).display());
                    std::process::abort();
                }
            }
        });
        Watch { fed, _stop: stop }
    }

    /// This is fed now.
    pub fn begins(&self, input: &[u8]) {
        let mut fed = self.fed.lock().expect("nobody panics with it");
        let mut kept = fed.take().map_or_else(Vec::new, |(_, kept)| kept);
        kept.clear();
        kept.extend_from_slice(input);
        *fed = Some((Instant::now(), kept));
    }

    /// It has come to an end.
    pub fn ends(&self) {
        if let Some((since, _)) = &mut *self.fed.lock().expect("nobody panics with it") {
            // Far enough ahead until the next one begins.
            *since = Instant::now() + Duration::from_secs(3600);
        }
    }
}
