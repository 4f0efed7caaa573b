//! `nfs`: files on a server of NFS version 3 or 4.1.
//!
//! A read is READ, a write WRITE and a sync COMMIT. What differs between the versions is in `iolite_nfs`. The job's depth limits how many requests are in flight, all on
//! one connection. There are no threads: the worker drives the connection when it queues and when it reaps.
//!
//! As for any client, the server answers a write when it has the data in its memory, unless the job sets `sync=`. If
//! a job syncs or verifies its data, the engine keeps a copy until the server has the data on stable storage, and
//! sends it again if the server restarts before that (`iolite_nfs` describes how).

mod storage;

use crate::driven_by_worker::DrivenByWorker;
use crate::source::source_of;
use iolite_engine::by_index::{ByIndex, Reasons};
use iolite_engine::completed_later::{MonotonicClock, answered_at};
use iolite_engine::is_asked_to_stop;
use iolite_engine::{
    Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued, StageEnds,
    Storage, Unit,
};
use iolite_engine::{LAST_WAIT, UNLIMITED};
use iolite_nfs::{Address, Done, Handle, Limits, NfsError, Session, Stability};
use iolite_options::engines::NfsOptions;
use iolite_os::explained;
use iolite_types::Operation;
use std::io;
use std::path::{Component, Path};
use std::time::Duration;

/// The engine.
pub struct NfsEngine {
    session: Session,
    files: ByIndex<File>,
    clock: MonotonicClock,
    /// When the answers to the units arrived.
    answered: ByIndex<u64>,
    /// Why units have failed, indexed by unit.
    reasons: Reasons,
    idle: Vec<String>,
}

/// An open file.
struct File {
    handle: Handle,
    stability: Stability,
}

impl NfsEngine {
    /// Makes an engine and connects to the server.
    ///
    /// # Errors
    /// The URL is wrong, or the server cannot be reached or refuses access.
    pub fn new(config: &EngineConfig, options: &NfsOptions) -> Result<Self, EngineError> {
        let url = options.nfs_url.reveal();
        let refused = |errno, why: String| EngineError::Remote { engine: "nfs", errno, why };
        if url.is_empty() {
            let why = "nfs_url= is missing, the server and its export, as in nfs_url=nfs://SERVER/EXPORT";
            return Err(refused(libc::EINVAL, why.to_owned()));
        }
        let mut address = Address::parse(url).map_err(|error| {
            refused(libc::EINVAL, format!("nfs_url={}: {error}", options.nfs_url.shown()))
        })?;
        address.source =
            source_of(&options.bind, config.worker).map_err(|why| refused(libc::EADDRNOTAVAIL, why))?;
        let patience = match options.nfs_timeout {
            0 => UNLIMITED,
            limit => Duration::from_micros(limit),
        };
        let keep = config.keeps_writes.then_some(options.nfs_uncommitted);
        let limits = Limits { patience, keep, depth: u32::try_from(config.depth).unwrap_or(u32::MAX) };
        let idle = address.idle.clone();
        let session = Session::connect(address, limits, Some((is_asked_to_stop, LAST_WAIT)))
            .map_err(|error| refused(error.errno(), error.to_string()))?;
        let files = ByIndex::with_room(config.files);
        Ok(NfsEngine {
            session,
            files,
            clock: MonotonicClock::now(),
            answered: ByIndex::with_room(config.depth),
            reasons: Reasons::with_room(config.depth),
            idle,
        })
    }

    fn outcome(&mut self, Done { unit, answered, result }: Done) -> Completion {
        self.answered.set(unit, self.clock.ns(answered));
        let outcome = match result {
            Ok(bytes) => Ok(bytes),
            Err(error) => {
                self.reasons.note(unit, &error.to_string());
                Err(Errno(error.errno()))
            }
        };
        Completion { unit, outcome }
    }

    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn begin(&mut self, unit: &Unit) -> Result<bool, Outcome> {
        let file = self.files.of_open(unit.file).map_err(Err)?;
        let (handle, length) = (file.handle, unit.length as usize);
        Ok(match unit.operation {
            // SAFETY: the caller promises that the buffer is valid until the unit is complete or the engine is
            // dropped.
            Operation::Read => unsafe {
                self.session.read(unit.index, handle, unit.offset, unit.buffer, length)
            },
            // No write is accepted while the copies of uncommitted data have reached their limit.
            Operation::Write if self.session.is_full() => false,
            Operation::Write => {
                let stability = file.stability;
                // SAFETY: as above.
                unsafe { self.session.write(unit.index, handle, unit.offset, unit.buffer, length, stability) }
            }
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange => {
                self.session.commit(unit.index, handle)
            }
            Operation::Trim => return Err(Err(Errno(libc::EOPNOTSUPP))),
            Operation::Work => return Err(Err(Errno(libc::ENOSYS))),
        })
    }
}

/// The system's error for an error of NFS, with its message.
fn system(error: NfsError) -> io::Error {
    explained(&io::Error::from_raw_os_error(error.errno()), error.to_string())
}

/// The name of a file on the server.
fn server_name(path: &Path) -> io::Result<&str> {
    let refused = |why: &str| {
        let words = format!("{}: {why}", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, words)
    };
    // Some servers would leave the export.
    if path.components().any(|step| step == Component::ParentDir) {
        return Err(refused("names on servers do not lead upwards (..)"));
    }
    path.to_str().ok_or_else(|| refused("names on servers are UTF-8"))
}

impl DrivenByWorker for Session {
    fn outstanding(&self) -> usize {
        self.in_flight() + Session::count_done(self)
    }

    fn count_done(&mut self) -> usize {
        Session::count_done(self)
    }

    fn drive(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        Session::drive(self, timeout)
    }
}

impl Engine for NfsEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let name = server_name(&spec.path)?;
        let opened =
            if mode.create { self.session.create(name) } else { self.session.open(name, mode.write) };
        let (handle, _) = opened.map_err(system)?;
        let stability = match (mode.sync, mode.dsync) {
            (true, _) => Stability::File,
            (false, true) => Stability::Data,
            _ => Stability::Unstable,
        };
        self.files.set(index, File { handle, stability });
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        match self.files.take(index) {
            Some(file) => self.session.close(file.handle).map_err(system),
            None => Ok(()),
        }
    }

    fn announcements(&self) -> Vec<String> {
        let line = |word| format!("nfs: nfs_url: {word}= has no effect");
        self.idle.iter().map(line).collect()
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        loop {
            // SAFETY: the caller upholds the same contract.
            match unsafe { self.begin(unit) } {
                Ok(true) => return Queued::Queued,
                Ok(false) if self.session.in_flight() > 0 || self.session.count_done() > 0 => {
                    return Queued::Busy;
                }
                // No unit of the job is in flight, but the session waits for a commit or for a connection. Drive it
                // meanwhile.
                Ok(false) => {
                    if self.session.drive(None).is_err() {
                        return Queued::Busy;
                    }
                }
                Err(outcome) => return Queued::Completed(outcome),
            }
        }
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        self.session.submit();
        Ok(0)
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.session.drive_until(min, max, timeout);
        for _ in 0..max {
            let Some(over) = self.session.next_done() else { break };
            let completion = self.outcome(over);
            done.push(completion);
        }
        Ok(())
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.reasons.explain(unit)
    }

    fn remarks(&mut self) -> Vec<String> {
        let counts = self.session.counts();
        let mut lines = Vec::new();
        if counts.reconnected > 0 {
            lines.push(format!("nfs: the connection was lost and made again: {}", counts.reconnected));
        }
        if counts.rewritten > 0 {
            lines.push(format!(
                "nfs: the server has started anew: {} writes ({} bytes) that it did not have on stable storage were sent \
                 again",
                counts.rewritten, counts.rewritten_bytes
            ));
        }
        if counts.sessions > 0 {
            lines.push(format!(
                "nfs: the server had ended the session, and another one was made: {}",
                counts.sessions
            ));
        }
        if counts.reopened > 0 {
            lines.push(format!(
                "nfs: files that the server had forgotten were opened again: {}",
                counts.reopened
            ));
        }
        if counts.busy > 0 {
            lines.push(format!("nfs: requests that the server was too busy for at first: {}", counts.busy));
        }
        lines
    }

    fn stage_ends(&self, unit: u32) -> Option<StageEnds> {
        answered_at(*self.answered.get(unit)?)
    }

    fn keep_alive(&mut self) -> bool {
        self.session.keep_alive()
    }

    fn stop_repeating(&mut self) {
        self.session.hurry(LAST_WAIT);
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}
