//! The end of an agent. The first signal lets it begin no more runs. SIGTERM, by which service managers stop and restart
//! programs, leaves a run time to end by itself; SIGINT ends it in order. Then the agent ends.

use super::intake::Counted;
use super::{SHORT, Shared};
use crate::stream::PARTING;
use crate::user;
use iolite_os::service;
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
    /// The first signal, after which no run begins; 0 = no signal yet.
    first: AtomicI32,
    /// The signal that ends runs; 0 = no such signal yet.
    signal: AtomicI32,
    /// How many runs must end first.
    runs: AtomicUsize,
}

impl Ending {
    /// The signal that ends runs, if any.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(SeqCst)).filter(|signal| *signal != 0)
    }

    /// Why no run begins; `None` = runs begin.
    pub fn refusal(&self) -> Option<String> {
        match self.first.load(SeqCst) {
            0 => None,
            signal if self.runs.load(SeqCst) > 0 => Some(format!(
                "this server was asked to end (signal {signal}), and begins no more runs: it waits for the last one; try again \
                 when it has been started again"
            )),
            signal => Some(by_signal(signal)),
        }
    }

    /// Makes the agent wait for a run, as long as the value lives.
    ///
    /// # Errors
    /// The agent is being ended, and begins no run.
    pub fn hold(&self) -> Result<Counted<'_>, String> {
        // Count first: the agent checks for runs after it has noted the signal.
        let counted = Counted::one_of(&self.runs, usize::MAX);
        match (counted, self.first.load(SeqCst)) {
            (Some(counted), 0) => Ok(counted),
            (_, signal) => Err(by_signal(signal)),
        }
    }

    /// How long a client has to read its last message, if it usually has this much time.
    pub fn patience(&self, usual: Duration) -> Duration {
        if self.first.load(SeqCst) != 0 { usual.min(PARTING) } else { usual }
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

/// What SIGTERM does to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnTerm {
    /// It goes on to its end, for which the agent waits.
    Finish,
    /// It ends in order, as with SIGINT.
    End,
}

/// Takes the agent's signals in another thread, which ends the process: first the run, and then the process itself, by
/// the first signal. A second signal does not wait for the run, except for a SIGINT after a SIGTERM that has let it go on:
/// it ends the run in order.
pub(super) fn by_signals(shared: &Arc<Shared>, signals: SignalQueue, files: Vec<OwnFile>, on_term: OnTerm) {
    let theirs = shared.clone();
    let body = move || {
        let ending = &theirs.ending;
        let signal = next(&signals);
        let mut waits = signal == libc::SIGTERM && on_term == OnTerm::Finish;
        if !waits {
            ending.signal.store(signal, SeqCst);
        }
        ending.first.store(signal, SeqCst);
        let runs = || ending.runs.load(SeqCst) > 0;
        if waits && !theirs.turns.is_free() {
            (theirs.settings.log)(
                "was asked to end: waits for its run, and begins no other one (SIGINT ends the run in order, a second SIGTERM \
                 does not wait)",
            );
            if let Err(error) = service::is_stopping("waits for its run; SIGINT ends that in order") {
                (theirs.settings.log)(&format!("cannot tell the service manager that it waits: {error}"));
            }
        }
        // Until its run has ended by itself, clients connect and are told why they are refused.
        while waits && !theirs.turns.is_free() {
            match signals.next() {
                Some(libc::SIGINT) => {
                    ending.signal.store(libc::SIGINT, SeqCst);
                    waits = false;
                }
                Some(_) => end_process(signals, signal, &files),
                None => thread::sleep(SHORT),
            }
        }
        // From here on, no client can connect, and another agent may take the address.
        files.iter().for_each(OwnFile::remove);
        let mut free_since = None;
        while runs() && signals.next().is_none() {
            // Do not wait longer for a client that does not read its last message.
            if theirs.turns.is_free() {
                let since: &mut Instant = free_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= PARTING {
                    break;
                }
            }
            thread::sleep(SHORT);
        }
        end_process(signals, signal, &[]);
    };
    // If the thread cannot be started, the signals are unchanged: they end the process at once.
    let _ = thread::Builder::new().name("iolite-signals".into()).spawn(body);
}

/// Ends this process by this signal.
fn end_process(signals: SignalQueue, signal: i32, files: &[OwnFile]) -> ! {
    files.iter().for_each(OwnFile::remove);
    // Unblock the signal.
    drop(signals);
    signals::kill(std::process::id() as i32, signal);
    // The signal may be ignored, because some programs start their children like that.
    std::process::exit(128 + signal);
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
