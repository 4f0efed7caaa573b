//! `nbd`: a network block device, with libnbd.
//!
//! A unit is one command of the protocol: read, write, trim or flush. The job's depth limits how many are in flight,
//! on one connection per worker. The library has no threads: the worker drives it when it reaps.

mod connection;
mod library;
mod storage;

use self::connection::{Command, Connection};
use crate::driven_by_worker::DrivenByWorker;
use crate::server_timeout::ServerTimeout;
use crate::source::source_of;
use iolite_engine::by_index::Reasons;
use iolite_engine::completed_later::answered_at;
use iolite_engine::{
    Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, StageEnds, Storage,
    Unit,
};
use iolite_http::percent_decoded;
use iolite_options::engines::NbdOptions;
use iolite_types::Operation;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The engine.
pub struct NbdEngine {
    connection: Connection,
    /// The size of every I/O in bytes; 0 = sizes differ.
    block: u64,
    /// Writes are on stable storage when the server answers them.
    is_stable: bool,
    /// The lengths of the units in flight, indexed by unit.
    lengths: Vec<u64>,
    /// Why units were refused, indexed by unit.
    reasons: Reasons,
}

impl NbdEngine {
    /// Makes an engine and connects to the server.
    ///
    /// # Errors
    /// libnbd is missing, the URI is wrong, or the server cannot be reached.
    pub fn new(config: &EngineConfig, options: &NbdOptions) -> Result<Self, EngineError> {
        let uri = options.uri.reveal();
        if uri.is_empty() {
            let why = "uri= is missing, the server and its export, as in uri=nbd://SERVER/EXPORT or \
                       uri=nbd+unix:///?socket=FILE";
            return Err(EngineError::Remote { engine: "nbd", errno: libc::EINVAL, why: why.to_owned() });
        }
        if let Some(why) = nobody_is_known(uri, &default_directories()) {
            let why = format!("uri={}: {why}", options.uri.shown());
            return Err(EngineError::Remote { engine: "nbd", errno: libc::ENOENT, why });
        }
        let source = source_of(&options.bind, config.worker).map_err(|why| EngineError::Remote {
            engine: "nbd",
            errno: libc::EADDRNOTAVAIL,
            why,
        })?;
        let connection = Connection::new(
            uri,
            &options.uri.shown(),
            source.as_ref(),
            ServerTimeout::new("nbd_timeout", options.nbd_timeout),
        )?;
        Ok(NbdEngine {
            connection,
            block: config.block,
            is_stable: false,
            lengths: vec![0; config.depth],
            reasons: Reasons::with_room(config.depth),
        })
    }

    /// Why a job cannot use the device in this way.
    fn obstacle(&self, mode: OpenMode) -> Option<(i32, String)> {
        let Connection { smallest, is_read_only, can_fua, .. } = self.connection;
        if mode.write && is_read_only {
            return Some((libc::EROFS, "the server permits no writes to it".to_owned()));
        }
        if mode.write && (mode.sync || mode.dsync) && !can_fua {
            let words = "sync=: the server offers no writes to stable storage (FUA); use fsync=1";
            return Some((libc::EOPNOTSUPP, words.to_owned()));
        }
        if !self.block.is_multiple_of(smallest) {
            let words = format!("bs={}: the server wants multiples of {smallest} bytes", self.block);
            return Some((libc::EINVAL, words));
        }
        None
    }
}

/// Why the server's identity cannot be checked: without the certificate of an authority, the library trusts any server.
/// It looks in `defaults` unless the URI names a directory, and does not check the ends of local sockets.
fn nobody_is_known(uri: &str, defaults: &[PathBuf]) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if !scheme.starts_with("nbds") {
        return None;
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query.split('#').next().unwrap_or_default());
    let value_of = |wanted: &str| {
        let mut settings = query.split(['&', ';']).filter_map(|word| word.split_once('='));
        settings
            .find(|(key, _)| percent_decoded(key).is_some_and(|key| key == wanted))
            .map(|(_, value)| value)
    };
    let has_authority = |directory: &Path| directory.join("ca-cert.pem").exists();
    if let Some(directory) = value_of("tls-certificates") {
        let Some(directory) = percent_decoded(directory) else {
            return Some("tls-certificates=: behind a percent sign stand two hexadecimal digits".to_owned());
        };
        return (!has_authority(Path::new(&directory)))
            .then(|| format!("there is no ca-cert.pem in {directory}, the certificate of whom to trust"));
    }
    let is_local = scheme.ends_with("+unix") || scheme.ends_with("+vsock");
    let trusts_any =
        value_of("tls-verify-peer").is_some_and(|value| matches!(value, "false" | "0" | "no" | "off"));
    let has_password = value_of("tls-psk-file").is_some();
    if is_local || trusts_any || has_password || defaults.iter().any(|directory| has_authority(directory)) {
        return None;
    }
    Some(
        "nothing says whom to trust: append ?tls-certificates=DIRECTORY, which has the authority's ca-cert.pem, or \
         ?tls-verify-peer=false to trust any server"
            .to_owned(),
    )
}

/// Where the library looks for certificates if the URI names no directory.
fn default_directories() -> Vec<PathBuf> {
    // SAFETY: it only returns a number.
    if unsafe { libc::geteuid() } == 0 {
        return vec!["/etc/pki/libnbd".into()];
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.map_or_else(Vec::new, |home| vec![home.join(".pki/libnbd"), home.join(".config/pki/libnbd")])
}

impl Engine for NbdEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let named = |(errno, words): (i32, String)| {
            let words = format!("{}: {words}", spec.path.display());
            iolite_os::explained(&io::Error::from_raw_os_error(errno), words)
        };
        if index > 0 {
            return Err(named((
                libc::EINVAL,
                "uri= names one device, and jobs of this engine have one file".to_owned(),
            )));
        }
        self.is_stable = mode.sync || mode.dsync;
        self.obstacle(mode).map_or(Ok(()), |obstacle| Err(named(obstacle)))
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let refused = |words: &str| Err((Errno(libc::EOPNOTSUPP), words.to_owned()));
        let command = match unit.operation {
            Operation::Read => Ok(Command::Read(unit.buffer)),
            Operation::Write => Ok(Command::Write(unit.buffer, self.is_stable)),
            Operation::Trim if !self.connection.can_trim => refused("the server offers no trims"),
            Operation::Trim => Ok(Command::Trim),
            // If a server does not support flush, everything that it has answered is on stable storage.
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange
                if !self.connection.can_flush =>
            {
                return Queued::Completed(Ok(0));
            }
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange => Ok(Command::Flush),
            Operation::Work => return Queued::Completed(Err(Errno(libc::ENOSYS))),
        };
        let (offset, length) = match unit.operation {
            Operation::Read | Operation::Write | Operation::Trim => (unit.offset, unit.length),
            _ => (0, 0),
        };
        let index = unit.index as usize;
        if self.lengths.len() <= index {
            self.lengths.resize(index + 1, 0);
        }
        self.lengths[index] = length;
        // SAFETY: the caller promises that the buffer is valid until the unit is complete or the engine is dropped.
        let begun =
            command.and_then(|command| unsafe { self.connection.begin(unit.index, command, offset, length) });
        match begun {
            Ok(()) => Queued::Queued,
            Err((errno, words)) => {
                self.reasons.note(unit.index, &words);
                Queued::Completed(Err(errno))
            }
        }
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.connection.drive_until(min, max, timeout);
        for (unit, errno) in self.connection.take(max) {
            let length = self.lengths[unit as usize];
            if errno != 0 {
                self.reasons.take(unit);
            }
            let outcome = if errno == 0 { Ok(length) } else { Err(Errno(errno)) };
            done.push(Completion { unit, outcome });
        }
        Ok(())
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.reasons.explain(unit).or_else(|| self.connection.failure().map(str::to_owned))
    }

    fn stage_ends(&self, unit: u32) -> Option<StageEnds> {
        answered_at(self.connection.answered(unit))
    }

    fn stop_repeating(&mut self) {
        self.connection.hurry();
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_certificate_authority_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("my keys");
        std::fs::create_dir(&keys).unwrap();
        let encoded = keys.display().to_string().replace(' ', "%20");
        let words = |query: &str| nobody_is_known(&format!("nbds://h/x?{query}{encoded}"), &[]);
        for query in ["tls-certificates=", "tls%2Dcertificates=", "a=b;tls-certificates="] {
            assert!(words(query).is_some_and(|words| words.contains("my keys")), "{query}");
        }
        assert!(nobody_is_known("nbds+unix:///?tls-certificates=/%zz", &[]).is_some());
        assert!(nobody_is_known("nbds+unix:///tls-certificates=/none", &[]).is_none());
        assert!(nobody_is_known("nbd://h/x?tls-certificates=/none", &[]).is_none());
        std::fs::write(keys.join("ca-cert.pem"), "").unwrap();
        assert_eq!(words("tls-certificates="), None);
    }

    #[test]
    fn an_encrypted_server_is_trusted_for_a_reason() {
        let (empty, full) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(full.path().join("ca-cert.pem"), "").unwrap();
        let why = |uri: &str, default: &Path| nobody_is_known(uri, &[default.to_owned()]);
        for uri in ["nbds://host/x", "NBDS://host/x?tls-verify-peer=true", "nbds://host"] {
            assert!(why(uri, empty.path()).unwrap().contains("tls-verify-peer=false"), "{uri}");
            assert_eq!(why(uri, full.path()), None, "{uri}");
        }
        for uri in [
            "nbd://host/x",
            "nbds+unix:///x?socket=s",
            "nbds://host/x?tls-verify-peer=false",
            "nbds://me@host/x?a=b&tls-psk-file=keys",
        ] {
            assert_eq!(why(uri, empty.path()), None, "{uri}");
        }
        let named = |at: &Path| format!("nbds://host/x?tls-certificates={}", at.display());
        assert!(why(&named(empty.path()), full.path()).unwrap().contains("there is no ca-cert.pem"));
        assert_eq!(why(&named(full.path()), empty.path()), None);
    }
}
