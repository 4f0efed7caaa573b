//! The store itself.

mod limits;
mod schema;
mod summary;

use crate::error::{Result, StoreError};
use crate::{Kept, Limits, PATIENCE, Run, check_label, header};
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use iolite_types::RunStatus;
use limits::Going;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The largest report in bytes.
const LARGEST_REPORT: u64 = 1 << 30;

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
}

impl Store {
    /// Opens a store; creates it if it does not exist.
    ///
    /// # Errors
    /// It cannot be used; nothing was changed.
    pub fn open(path: &Path) -> Result<Store> {
        Store::open_within(path, PATIENCE)
    }

    /// Opens a store, or creates it if it does not exist. Waits up to `patience` for the locks of other programs.
    ///
    /// # Errors
    /// The store cannot be used; nothing was changed.
    pub fn open_within(path: &Path, patience: Duration) -> Result<Store> {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        // SQLite would make it readable for other users; its journal has the mode of the file.
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Store::connect(path, patience),
        }
    }

    /// Opens a store; `None` = it does not exist.
    ///
    /// # Errors
    /// It cannot be used; nothing was changed.
    pub fn open_existing(path: &Path) -> Result<Option<Store>> {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
            Ok(_) => Store::connect(path, PATIENCE).map(Some),
        }
    }

    fn connect(path: &Path, patience: Duration) -> Result<Store> {
        // Opening a pipe would wait for its other end.
        if !std::fs::metadata(path)?.is_file() {
            return Err(StoreError::Foreign("it is not a regular file"));
        }
        check_file(path)?;
        // An absolute name cannot be mistaken for a URI.
        let path = std::fs::canonicalize(path)?;
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE);
        let mut connection = opened?;
        connection.busy_timeout(patience)?;
        // The content of the file is not trusted: no code in it is run.
        connection.execute_batch(
            "PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;",
        )?;
        schema::bring_up_to_date(&mut connection, &path)?;
        Ok(Store { connection })
    }

    /// Stores a report in JSON, and drops others if there is no room.
    ///
    /// # Errors
    /// It is not a report, or cannot be stored; the store is unchanged.
    pub fn keep(&mut self, report: &str, label: &str, now_ms: u64) -> Result<Kept> {
        self.insert(report, label, now_ms, Going::All)
    }

    /// Stores a report in JSON from another source. No run with a label is dropped for it.
    ///
    /// # Errors
    /// It is not a report, or cannot be stored; the store is unchanged.
    pub fn import(&mut self, report: &str, label: &str, now_ms: u64) -> Result<Kept> {
        self.insert(report, label, now_ms, Going::WithoutLabel)
    }

    fn insert(&mut self, report: &str, label: &str, now_ms: u64, going: Going) -> Result<Kept> {
        check_label(label).map_err(StoreError::Label)?;
        let summary = summary::Summary::of(report, now_ms)?;
        fits(report.len() as u64)?;
        let packed = packed(report)?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let limits = limits::read(&transaction)?;
        if packed.len() as u64 > limits.bytes {
            return Err(StoreError::TooLarge { bytes: packed.len() as u64, most: limits.bytes });
        }
        transaction.execute(
            "INSERT INTO runs (label, kept_ms, began_ms, host, program, jobs, iops, bandwidth, report, status) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                label,
                whole(now_ms),
                whole(summary.began_ms),
                summary.host,
                summary.program,
                serde_json::to_string(&summary.jobs).unwrap_or_default(),
                summary.iops,
                summary.bandwidth,
                packed,
                summary.status.map_or("", RunStatus::name)
            ],
        )?;
        let number = transaction.last_insert_rowid();
        let dropped = limits::apply(&transaction, limits, now_ms, number, going)?;
        transaction.commit()?;
        Ok(Kept { number, dropped })
    }

    /// All runs, the oldest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn runs(&self) -> Result<Vec<Run>> {
        runs_where(&self.connection, "1 ORDER BY number", &[])
    }

    /// The report of a run; `None` = no run has this number.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn report(&self, number: i64) -> Result<Option<String>> {
        let packed: Option<Vec<u8>> = self
            .connection
            .query_row("SELECT report FROM runs WHERE number = ?1", [number], |row| row.get(0))
            .optional()?;
        packed.map(|packed| unpacked(&packed)).transpose()
    }

    /// Sets the label of runs; an empty one removes it.
    ///
    /// # Errors
    /// The label is invalid, or the store cannot be written; nothing was changed.
    pub fn label(&mut self, numbers: &[i64], label: &str) -> Result<()> {
        check_label(label).map_err(StoreError::Label)?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for number in numbers {
            transaction.execute("UPDATE runs SET label = ?1 WHERE number = ?2", params![label, number])?;
        }
        Ok(transaction.commit()?)
    }

    /// Removes runs.
    ///
    /// # Errors
    /// The store cannot be written; nothing was changed.
    pub fn remove(&mut self, numbers: &[i64]) -> Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for number in numbers {
            transaction.execute("DELETE FROM runs WHERE number = ?1", [number])?;
        }
        Ok(transaction.commit()?)
    }

    /// The limits of the store.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn limits(&self) -> Result<Limits> {
        limits::read(&self.connection)
    }

    /// Sets the limits, and drops runs beyond them. Returns the dropped runs.
    ///
    /// # Errors
    /// The store cannot be written; nothing was changed.
    pub fn set_limits(&mut self, limits: Limits, now_ms: u64) -> Result<Vec<Run>> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        limits::write(&transaction, limits)?;
        let dropped = limits::apply(&transaction, limits, now_ms, 0, Going::All)?;
        transaction.commit()?;
        Ok(dropped)
    }

    /// The runs that these limits would drop.
    ///
    /// # Errors
    /// The store cannot be read; nothing was changed.
    pub fn beyond(&mut self, limits: Limits, now_ms: u64) -> Result<Vec<Run>> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let gone = limits::apply(&transaction, limits, now_ms, 0, Going::All)?;
        transaction.rollback()?;
        Ok(gone)
    }

    /// Checks every page of the file. Returns the errors, in SQLite's words.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn check(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare("PRAGMA integrity_check(20)")?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
        let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }
}

/// Checks that a file is a store of runs, or empty, so that it may become one.
fn check_file(path: &Path) -> Result<()> {
    // Closing a file releases all locks of this process on it, including those of SQLite in other threads. So each
    // store is checked only once, before SQLite opens it, and the checked file stays open: it keeps its inode number,
    // which a file of another program would get otherwise once the store is removed.
    static KNOWN: Mutex<BTreeMap<(u64, u64), File>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = std::fs::metadata(path)?;
    if found.len() == 0 {
        // Its creator may have made it readable for other users; and its journal gets the mode of the file.
        return Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?);
    }
    if known.contains_key(&(found.dev(), found.ino())) {
        return Ok(());
    }
    let file = File::open(path)?;
    if header::check(&file)? {
        // Its creator may have made it readable for other users; and its journal gets the mode of the file.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    } else {
        known.insert((found.dev(), found.ino()), file);
    }
    Ok(())
}

fn runs_where(connection: &Connection, condition: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Run>> {
    let mut statement = connection.prepare(&format!(
        "SELECT number, label, kept_ms, began_ms, host, program, jobs, iops, bandwidth, length(report), status \
         FROM runs WHERE {condition}"
    ))?;
    let runs = statement.query_map(values, run)?;
    Ok(runs.collect::<rusqlite::Result<_>>()?)
}

fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let number = |column: usize| row.get::<_, i64>(column).map(|value| u64::try_from(value).unwrap_or(0));
    Ok(Run {
        number: row.get(0)?,
        label: row.get(1)?,
        kept_ms: number(2)?,
        began_ms: number(3)?,
        host: row.get(4)?,
        program: row.get(5)?,
        jobs: serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default(),
        iops: row.get(7)?,
        bandwidth: row.get(8)?,
        size: number(9)?,
        status: RunStatus::of_name(&row.get::<_, String>(10)?),
    })
}

/// SQLite's numbers have a sign.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Rejects reports above the limit of `unpacked`: they could be stored, but not read.
fn fits(bytes: u64) -> Result<()> {
    if bytes <= LARGEST_REPORT {
        Ok(())
    } else {
        Err(StoreError::LargeReport { bytes, most: LARGEST_REPORT })
    }
}

fn packed(report: &str) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    ZlibEncoder::new(report.as_bytes(), Compression::default()).read_to_end(&mut packed)?;
    Ok(packed)
}

/// A damaged or forged file may decompress without end.
fn unpacked(packed: &[u8]) -> Result<String> {
    let mut text = String::new();
    let read = ZlibDecoder::new(packed).take(LARGEST_REPORT + 1).read_to_string(&mut text);
    if read.is_err() || text.len() as u64 > LARGEST_REPORT {
        return Err(StoreError::Damaged("a report in it cannot be unpacked".to_owned()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
