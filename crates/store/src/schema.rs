//! The format of the file, and how older ones become the newest.
//!
//! Each step brings a store from one version to the next; the version is the number of steps. To change the format, add a
//! step: those that are there never change, because stores have been made with them.

use crate::error::{Result, StoreError};
use rusqlite::{Connection, TransactionBehavior};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Says in an SQLite file that it is a store of runs: `Iolt`.
const APPLICATION: i64 = 0x496f_6c74;

/// The steps.
const STEPS: &[&str] = &["
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        label TEXT NOT NULL DEFAULT '',
        kept_ms INTEGER NOT NULL,
        began_ms INTEGER NOT NULL,
        host TEXT NOT NULL,
        program TEXT NOT NULL,
        jobs TEXT NOT NULL,
        iops REAL NOT NULL,
        bandwidth REAL NOT NULL,
        report BLOB NOT NULL
    );
    CREATE TABLE limits (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"];

/// Makes what opens the store's tables, or brings them to the newest version, with a copy of the file as it was.
///
/// # Errors
/// The file is something else, or newer; nothing was changed.
pub fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<()> {
    bring_to(connection, path, STEPS)
}

fn number(connection: &Connection, pragma: &str) -> Result<i64> {
    Ok(connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))?)
}

/// The version of the store; 0 = the file is empty.
fn version(connection: &Connection, known: i64) -> Result<i64> {
    let (application, version) = (number(connection, "application_id")?, number(connection, "user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version) {
        (APPLICATION, version) if version > known => Err(StoreError::Newer { found: version, known }),
        (APPLICATION, version) if version > 0 => Ok(version),
        (0, 0) if tables == 0 => Ok(0),
        _ => Err(StoreError::Foreign("it is an SQLite file of another program")),
    }
}

fn bring_to(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<()> {
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let found = version(connection, known)?;
    if found == known {
        return Ok(());
    }
    if found == 0 {
        // It holds for files that have no table yet, and gives room back when runs are removed.
        connection.execute_batch("PRAGMA auto_vacuum = FULL")?;
    } else {
        copy(connection, path, found)?;
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another program may have been faster.
    let found = version(&transaction, known)?;
    for step in steps.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction
        .execute_batch(&format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {known};"))?;
    Ok(transaction.commit()?)
}

/// Keeps a copy of a store as it is, beside it: `runs.db.1` of version 1. One that is there is older, and stays.
fn copy(connection: &Connection, path: &Path, version: i64) -> Result<()> {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{version}{ending}"));
        std::path::PathBuf::from(name)
    };
    let (copy, growing) = (beside(""), beside(&format!(".unfinished.{}", std::process::id())));
    if copy.exists() {
        return Ok(());
    }
    // SQLite takes an empty file, which nobody else may read.
    let options =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&growing);
    let copied = options.map_err(StoreError::from).and_then(|_| {
        connection.execute("VACUUM INTO ?1", [growing.to_string_lossy().as_ref()])?;
        std::fs::File::open(&growing)?.sync_all()?;
        Ok(std::fs::rename(&growing, &copy)?)
    });
    if copied.is_err() {
        let _ = std::fs::remove_file(&growing);
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::tests::{REPORT, mode};

    /// The next version, as it may be one day.
    #[test]
    fn an_older_store_is_brought_up_to_date_with_a_copy_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let number = Store::open(&path).unwrap().keep(REPORT, "old", 5).unwrap().number;
        let next: Vec<&str> =
            STEPS.iter().copied().chain(["ALTER TABLE runs ADD note TEXT NOT NULL DEFAULT ''"]).collect();
        let mut connection = Connection::open(&path).unwrap();
        bring_to(&mut connection, &path, &next).unwrap();
        let notes: i64 =
            connection.query_row("SELECT count(*) FROM runs WHERE note = ''", [], |row| row.get(0)).unwrap();
        assert_eq!((notes, super::number(&connection, "user_version").unwrap()), (1, STEPS.len() as i64 + 1));
        drop(connection);
        // This version knows only the copy.
        let copy = directory.path().join(format!("runs.db.{}", STEPS.len()));
        assert_eq!(mode(&copy), 0o600);
        let kept = Store::open(&copy).unwrap();
        assert_eq!(kept.report(number).unwrap().as_deref(), Some(REPORT));
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("this version knows formats up to 1"), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing unfinished is left");
    }

    /// A step that fails leaves the store as it was.
    #[test]
    fn a_step_that_fails_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        drop(Store::open(&path).unwrap());
        let next: Vec<&str> =
            STEPS.iter().copied().chain(["CREATE TABLE more (a); CREATE TABLE runs (a)"]).collect();
        let mut connection = Connection::open(&path).unwrap();
        assert!(bring_to(&mut connection, &path, &next).is_err());
        assert_eq!(version(&connection, 9).unwrap(), STEPS.len() as i64);
        assert_eq!(Store::open(&path).unwrap().runs().unwrap(), []);
    }
}
