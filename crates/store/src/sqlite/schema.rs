//! The format of the file, and upgrades from older formats.
//!
//! Each step brings a store from one version to the next; the version is the number of steps. To change the format, add
//! a step: existing steps never change, because stores have been created with them.

use crate::error::{Result, StoreError};
use crate::header::{ANOTHER, APPLICATION};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The steps.
const STEPS: &[&str] = &[
    "
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
",
    "
    ALTER TABLE runs ADD status TEXT NOT NULL DEFAULT '';
",
];

/// Creates the store's tables, or brings them to the newest version, after copying the file.
///
/// # Errors
/// The file is not a store, or newer; nothing was changed.
pub fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<()> {
    bring_to(connection, path, STEPS)
}

fn number(connection: &Connection, pragma: &str) -> Result<i64> {
    Ok(connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))?)
}

/// The version of the store; 0 = the file is empty. The caller must hold a lock (be in a transaction): another program
/// may be creating the store, and an incomplete store looks like a foreign file.
fn version(transaction: &Transaction<'_>, known: i64) -> Result<i64> {
    let (application, version) =
        (number(transaction, "application_id")?, number(transaction, "user_version")?);
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version) {
        (APPLICATION, version) if version > known => Err(StoreError::Newer { found: version, known }),
        (APPLICATION, version) if version > 0 => Ok(version),
        (0, 0) if tables == 0 => Ok(0),
        _ => Err(StoreError::Foreign(ANOTHER)),
    }
}

fn look(connection: &mut Connection, known: i64) -> Result<i64> {
    version(&connection.transaction()?, known)
}

fn bring_to(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<()> {
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let found = look(connection, known)?;
    if found == known {
        return Ok(());
    }
    if found == 0 {
        // It must be set before the first table, and frees space when runs are removed.
        connection.execute_batch("PRAGMA auto_vacuum = FULL")?;
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another program may have done the upgrade first.
    let found = version(&transaction, known)?;
    if found == known {
        return Ok(());
    }
    if found > 0 {
        copy(path, found)?;
    }
    for step in steps.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction
        .execute_batch(&format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {known};"))?;
    Ok(transaction.commit()?)
}

/// Copies a store before an upgrade, to the same directory: `runs.db.1` for version 1, or `runs.db.1.2` if that exists.
/// The caller holds the lock for writing, so no run can be added between the copy and the change; another connection
/// may read.
fn copy(path: &Path, version: i64) -> Result<()> {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{version}{ending}"));
        PathBuf::from(name)
    };
    let growing = beside(&format!(".unfinished.{}", std::process::id()));
    let name = growing.to_str().ok_or_else(|| {
        std::io::Error::other("an older store whose name is not UTF-8 is not brought up to date; rename it")
    })?;
    let is_free = |copy: &PathBuf| copy.symlink_metadata().is_err();
    let numbered = (2..).map(|number: u32| beside(&format!(".{number}")));
    let copy = std::iter::once(beside("")).chain(numbered).find(is_free).unwrap_or_else(|| beside(""));
    let copied = copy_to(path, name).and_then(|()| Ok(std::fs::rename(&growing, &copy)?));
    if copied.is_err() {
        let _ = std::fs::remove_file(&growing);
    }
    copied
}

fn copy_to(path: &Path, name: &str) -> Result<()> {
    // SQLite accepts an empty file, which is readable only for this user.
    std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(name)?;
    let reading = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(path, reading)?;
    connection.execute("VACUUM INTO ?1", [name])?;
    Ok(std::fs::File::open(name)?.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::header;
    use crate::sqlite::tests::{REPORT, mode};

    /// The first page that another program writes while it creates a store, and foreign first pages.
    #[test]
    fn a_first_page_may_become_a_store() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA auto_vacuum = FULL").unwrap();
        let look = || header::check(std::fs::File::open(&path).unwrap()).is_ok_and(|may| may);
        assert!(std::fs::metadata(&path).unwrap().len() > 0 && look());
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        assert!(!look());
    }

    /// A possible next version.
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
        // This version can read only the copy.
        let copy = directory.path().join(format!("runs.db.{}", STEPS.len()));
        assert_eq!(mode(&copy), 0o600);
        let kept = Store::open(&copy).unwrap();
        assert_eq!(kept.report(number).unwrap().as_deref(), Some(REPORT));
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("this version knows formats up to {}", STEPS.len())), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing unfinished is left");
    }

    /// Version 1 did not know how runs ended.
    #[test]
    fn runs_of_the_first_version_have_no_status() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let mut connection = Connection::open(&path).unwrap();
        bring_to(&mut connection, &path, &STEPS[..1]).unwrap();
        let row = "INSERT INTO runs (kept_ms, began_ms, host, program, jobs, iops, bandwidth, report) \
                   VALUES (1, 1, 'box', 'iolite-1', '[\"a\"]', 1, 1, x'00')";
        connection.execute(row, []).unwrap();
        drop(connection);
        let mut store = Store::open(&path).unwrap();
        store.keep(&REPORT.replace("\"host\"", "\"status\": \"failed\", \"host\""), "", 5).unwrap();
        let found: Vec<_> = store.runs().unwrap().iter().map(|run| run.status).collect();
        assert_eq!(found, [None, Some(iolite_types::RunStatus::Failed)]);
        assert!(directory.path().join("runs.db.1").is_file());
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
        assert_eq!(version(&connection.transaction().unwrap(), 9).unwrap(), STEPS.len() as i64);
        assert_eq!(Store::open(&path).unwrap().runs().unwrap(), []);
    }

    /// A reader sees either all of a store that another program is creating, or none of it.
    #[test]
    fn a_store_that_is_being_made_is_not_taken_for_somebody_elses() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let open = || {
            let connection = Connection::open(&path).unwrap();
            connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
            connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY").unwrap();
            connection
        };
        open().execute_batch("VACUUM").unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let ordering = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let made = format!(
                    "CREATE TABLE t (a); PRAGMA application_id = {APPLICATION}; PRAGMA user_version = 1;"
                );
                let gone = "DROP TABLE t; PRAGMA application_id = 0; PRAGMA user_version = 0;";
                let connection = open();
                while !is_over.load(ordering) {
                    for change in [made.as_str(), gone] {
                        connection.execute_batch(&format!("BEGIN IMMEDIATE; {change} COMMIT;")).unwrap();
                    }
                }
            });
            let mut connection = open();
            let mut looked = (0..3000).map(|_| look(&mut connection, 1));
            let strange = looked.find(|found| !matches!(found, Ok(0 | 1)));
            is_over.store(true, ordering);
            assert!(strange.is_none(), "{strange:?}");
        });
    }

    /// A store has new runs since a failed upgrade left a copy: the next copy contains them, too.
    #[test]
    fn each_upgrade_has_a_copy_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        Store::open(&path).unwrap().keep(REPORT, "old", 5).unwrap();
        let version = STEPS.len();
        let old = directory.path().join(format!("runs.db.{version}"));
        std::fs::write(&old, "an older copy").unwrap();
        let next: Vec<&str> = STEPS.iter().copied().chain(["CREATE TABLE more (a)"]).collect();
        bring_to(&mut Connection::open(&path).unwrap(), &path, &next).unwrap();
        assert_eq!(std::fs::read_to_string(old).unwrap(), "an older copy");
        let copy = directory.path().join(format!("runs.db.{version}.2"));
        assert_eq!(Store::open(&copy).unwrap().runs().unwrap().len(), 1);
    }
}
