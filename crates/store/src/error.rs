//! Why a store cannot be used.

use iolite_types::{built_without, describe_error};
#[cfg(feature = "sqlite")]
use rusqlite::ErrorCode;

/// Why a store cannot be used. (The caller adds the store's name.)
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is not a store.
    #[error("{0}, so it is not a store of runs; nothing was changed (--store names another file)")]
    Foreign(&'static str),
    /// A later version of this program has created it.
    #[error(
        "the store has format {found}, and this version knows formats up to {known}; use the newer version, or another store \
         (--store=FILE)"
    )]
    Newer {
        /// The format of the file.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// The store is damaged.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Another program holds the lock.
    #[error("another program is using the store, and has not let go of it; end it, or try again later")]
    Busy,
    /// A run is larger than the limit for all runs.
    #[error(
        "the run takes {bytes} bytes, and all runs together may take {most} (iolite runs limits --quota)"
    )]
    TooLarge {
        /// The bytes that the run takes.
        bytes: u64,
        /// The bytes that may be kept.
        most: u64,
    },
    /// A report exceeds the size that can be read again.
    #[error(
        "the report has {bytes} bytes, and none of more than {most} bytes can be kept (group_reporting makes the report of many jobs \
         smaller)"
    )]
    LargeReport {
        /// The bytes of the report.
        bytes: u64,
        /// The size limit of a report.
        most: u64,
    },
    /// The runs in the store have labels, and are not removed to make room for imports.
    #[error(
        "the store is full of runs with labels, which do not go for what is imported; remove some (iolite runs remove), or let it \
         keep more (iolite runs limits)"
    )]
    Full,
    /// A text cannot be a label.
    #[error("{0}")]
    Label(String),
    /// The text to keep is not a report.
    #[error("{0}")]
    NoReport(String),
    /// An error of the system.
    #[error("{}", describe_error(.0))]
    System(#[from] std::io::Error),
    /// An error of SQLite.
    #[cfg(feature = "sqlite")]
    #[error("{0}")]
    Sql(rusqlite::Error),
    /// The program was built without SQLite.
    #[error("the store of runs: {}", built_without("history"))]
    LeftOut,
}

/// The result of an operation on a store.
pub type Result<T> = std::result::Result<T, StoreError>;

#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => StoreError::Foreign("it is not an SQLite file"),
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged(error.to_string()),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
            _ => StoreError::Sql(error),
        }
    }
}
