//! Errors of NFS.

use crate::protocol::Version;
use iolite_types::describe_error;
use std::io;
use std::time::Duration;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NfsError {
    /// The server refuses the operation.
    #[error("{what}: {}", version.words(*.code))]
    Refused {
        /// The operation.
        what: String,
        /// The status in the protocol.
        code: u32,
        /// The version of the protocol.
        version: Version,
    },
    /// The server no longer knows the session of NFS 4.
    #[error("the server ended the session: {}", Version::Four.words(*.0))]
    SessionLost(u32),
    /// The server does not let this client mount the export.
    #[error("cannot mount {export}: {why}")]
    Mount {
        /// The export.
        export: String,
        /// The reason.
        why: String,
        /// The system's error number that fits best.
        errno: i32,
    },
    /// The server cannot be reached.
    #[error("{server}: {why}")]
    Unreachable {
        /// The server, with its port.
        server: String,
        /// The system's error message.
        why: String,
        /// The system's error number.
        errno: i32,
    },
    /// The connection was lost, and the client could not connect again.
    #[error("{server}: the connection was lost ({why}) and could not be restored {within}")]
    Lost {
        /// The server, with its port.
        server: String,
        /// The system's last error message.
        why: String,
        /// For how long the client tried to connect, as text.
        within: String,
        /// The system's error number.
        errno: i32,
    },
    /// The server does not answer.
    #[error("{server}: no answer {within}")]
    Silent {
        /// The server, with its port.
        server: String,
        /// For how long it was silent, as text.
        within: String,
    },
    /// The server does not know the procedure, or does not accept the client's credentials.
    #[error("the server refuses the call: {0}")]
    Call(String),
    /// The server restarted before this data was on stable storage.
    #[error(
        "{name}: {bytes} bytes may be lost: the server had accepted them, but restarted or went away before they were \
         on stable storage (a job that syncs or verifies keeps a copy to send again)"
    )]
    MayBeLost {
        /// The file.
        name: String,
        /// How many bytes may be lost.
        bytes: u64,
    },
    /// The server restarts again and again.
    #[error("the server restarts again and again: {0} cannot be put on stable storage")]
    Restless(String),
    /// The server's answer is invalid.
    #[error("the server sends an invalid NFS answer")]
    Malformed,
    /// A signal interrupted a wait.
    #[error("interrupted")]
    Interrupted,
}

impl NfsError {
    /// The text for a wait of as long as the user allows.
    pub(crate) fn within(patience: Duration) -> String {
        format!("within {} s (nfs_timeout)", patience.as_secs_f64())
    }

    /// The text for the wait of a job that was asked to end.
    pub(crate) fn after_the_end(longest: Duration) -> String {
        format!("in {} s after the job was asked to end", longest.as_secs_f64())
    }

    /// The system's error number that fits best.
    pub fn errno(&self) -> i32 {
        match self {
            NfsError::Refused { code, version, .. } => version.status(*code).0,
            NfsError::SessionLost(code) => Version::Four.status(*code).0,
            NfsError::Mount { errno, .. }
            | NfsError::Unreachable { errno, .. }
            | NfsError::Lost { errno, .. } => *errno,
            NfsError::Silent { .. } => libc::ETIMEDOUT,
            NfsError::Call(_) | NfsError::Malformed => libc::EPROTO,
            NfsError::MayBeLost { .. } | NfsError::Restless(_) => libc::EIO,
            NfsError::Interrupted => libc::EINTR,
        }
    }

    /// Makes the error for a server that cannot be reached, with the system's error message.
    pub(crate) fn unreachable(server: &str, error: &io::Error) -> NfsError {
        let errno = error.raw_os_error().unwrap_or(match error.kind() {
            io::ErrorKind::TimedOut => libc::ETIMEDOUT,
            _ => libc::EHOSTUNREACH,
        });
        NfsError::Unreachable { server: server.to_owned(), why: describe_error(error), errno }
    }
}
