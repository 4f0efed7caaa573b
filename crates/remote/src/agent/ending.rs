//! The end of an agent: a signal ends its run in order, and then the agent.

use super::limits::Counted;
use super::{SHORT, Shared};
use crate::stream::PARTING;
use crate::user;
use iolite_os::signals::{self, SignalQueue};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// The state of an agent's end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The signal that ends the agent; 0 = no signal yet.
    signal: AtomicI32,
    /// How many runs must end first.
    runs: AtomicUsize,
}

impl Ending {
    /// The signal that ends the agent, if any.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(SeqCst)).filter(|signal| *signal != 0)
    }

    /// Makes the agent wait for a run, as long as the value lives.
    ///
    /// # Errors
    /// The agent is being ended, and begins no run.
    pub fn hold(&self) -> Result<Counted<'_>, String> {
        // Count first: the agent checks for runs after it has set the signal.
        let counted = Counted::one_of(&self.runs, usize::MAX);
        match (counted, self.signal()) {
            (Some(counted), None) => Ok(counted),
            (_, signal) => Err(by_signal(signal.unwrap_or_default())),
        }
    }

    /// How long a client has to read its last message, if it usually has this much time.
    pub fn patience(&self, usual: Duration) -> Duration {
        if self.signal().is_some() { usual.min(PARTING) } else { usual }
    }
}

/// Why runs end with the agent.
pub(super) fn by_signal(signal: i32) -> String {
    format!("this server is ended by signal {signal}")
}

/// A file of the agent, which it removes at its end, unless another file has replaced it.
#[derive(Debug)]
pub(super) struct OwnFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl OwnFile {
    /// `None` = no such file.
    pub fn at(path: &Path) -> Option<OwnFile> {
        Some(OwnFile { path: path.to_owned(), identity: identity(path)? })
    }

    fn remove(&self) {
        if identity(&self.path) == Some(self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Takes the agent's signals in another thread, which ends the process: first the run, which reports to its client, and
/// then the process itself, by the signal. A second signal does not wait for the run.
pub(super) fn by_signals(shared: &Arc<Shared>, signals: SignalQueue, files: Vec<OwnFile>) {
    let theirs = shared.clone();
    let body = move || {
        let signal = next(&signals);
        theirs.ending.signal.store(signal, SeqCst);
        // From here on, no client can connect, and another agent may take the address.
        files.iter().for_each(OwnFile::remove);
        let mut free_since = None;
        while theirs.ending.runs.load(SeqCst) > 0 && signals.next().is_none() {
            // Do not wait longer for a client that does not read its last message.
            if theirs.turns.is_free() {
                let since: &mut Instant = free_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= PARTING {
                    break;
                }
            }
            thread::sleep(SHORT);
        }
        // Unblock the signal.
        drop(signals);
        signals::kill(std::process::id() as i32, signal);
        // The signal may be ignored, because some programs start their children like that.
        std::process::exit(128 + signal);
    };
    // If the thread cannot be started, the signals are unchanged: they end the process at once.
    let _ = thread::Builder::new().name("iolite-signals".into()).spawn(body);
}

/// Waits for a signal.
fn next(signals: &SignalQueue) -> i32 {
    loop {
        if let Some(signal) = signals.next() {
            return signal;
        }
        user::is_readable_within(signals.as_fd(), Duration::from_secs(3600));
    }
}
