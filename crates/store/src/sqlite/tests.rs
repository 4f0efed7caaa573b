use super::*;
use crate::{is_store, usual_place};
use std::os::unix::fs::PermissionsExt;

/// The shortest possible report of one job.
pub const REPORT: &str = r#"{"iolite version": "iolite-1", "fio version": "iolite-1", "timestamp": 1700000000, "jobs": [{"jobname": "a",
    "read": {"iops": 100.5, "bw_bytes": 4096, "total_ios": 5}, "write": {"iops": 10}}], "iolite": {"host": {"name": "box"}}}"#;

pub fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn store(directory: &tempfile::TempDir) -> Store {
    Store::open(&directory.path().join("deep/er/runs.db")).unwrap()
}

#[test]
fn a_run_is_kept_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory);
    let kept = store.keep(REPORT, "it's; DROP TABLE runs --", 7).unwrap();
    let run = &store.runs().unwrap()[0];
    assert_eq!((kept.number, run.number, run.kept_ms, run.began_ms), (1, 1, 7, 1_700_000_000_000));
    assert_eq!(
        (run.host.as_str(), run.program.as_str(), &run.jobs[..]),
        ("box", "iolite-1", &["a".to_owned()][..])
    );
    assert_eq!((run.iops, run.bandwidth), (110.5, 4096.0));
    assert_eq!(run.label, "it's; DROP TABLE runs --");
    assert_eq!(store.report(1).unwrap().as_deref(), Some(REPORT));
    assert_eq!(store.report(2).unwrap(), None);
    assert_eq!(store.check().unwrap(), [""; 0]);
    let place = directory.path().join("deep/er/runs.db");
    assert_eq!((mode(&place), mode(&directory.path().join("deep"))), (0o600, 0o700));
}

#[test]
fn run_numbers_are_not_reused() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory);
    for _ in 0..3 {
        store.keep(REPORT, "", 1).unwrap();
    }
    store.label(&[1, 3], "x").unwrap();
    store.remove(&[3, 2, 99]).unwrap();
    assert_eq!(store.keep(REPORT, "", 1).unwrap().number, 4);
    let labels: Vec<(i64, String)> =
        store.runs().unwrap().into_iter().map(|run| (run.number, run.label)).collect();
    assert_eq!(labels, [(1, "x".to_owned()), (4, String::new())]);
}

/// Runs with a label are dropped last, and the newest never.
#[test]
fn runs_beyond_the_limits_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory);
    let numbers = |runs: &[Run]| runs.iter().map(|run| run.number).collect::<Vec<_>>();
    assert_eq!(store.limits().unwrap(), Limits::default());
    let few = Limits { runs: 3, ..Limits::default() };
    assert_eq!(store.set_limits(few, 0).unwrap(), []);
    for (label, gone) in [("base", vec![]), ("", vec![]), ("", vec![]), ("", vec![2])] {
        assert_eq!(numbers(&store.keep(REPORT, label, 1).unwrap().dropped), gone);
    }
    assert_eq!(numbers(&store.runs().unwrap()), [1, 3, 4]);
    let size = store.runs().unwrap()[0].size;
    assert_eq!(numbers(&store.set_limits(Limits { bytes: 2 * size, ..few }, 1).unwrap()), [3]);
    let short = Limits { bytes: 2 * size, days: 1, ..few };
    assert_eq!(numbers(&store.set_limits(short, DAY + 2).unwrap()), [4, 1]);
    let tiny = Limits { bytes: 10, ..few };
    store.set_limits(tiny, 1).unwrap();
    assert!(matches!(store.keep(REPORT, "", 1), Err(StoreError::TooLarge { most: 10, .. })));
    assert_eq!(store.runs().unwrap(), []);
}

const DAY: u64 = 24 * 60 * 60 * 1000;

#[test]
fn labels_are_words_for_people() {
    for bad in ["a\nb", "\u{1b}[31m", " a", &"x".repeat(201), "\u{9b}"] {
        assert!(check_label(bad).is_err(), "{bad:?}");
    }
    for good in ["", "a", "Größe 1, \"x\" --'; 日本", &"ß".repeat(200)] {
        assert_eq!(check_label(good), Ok(()), "{good:?}");
    }
}

#[test]
fn invalid_reports_are_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory);
    for bad in ["", "words", "{}", "[1]", "{\"jobs\": 1}", "{\"jobs\": "] {
        assert!(matches!(store.keep(bad, "", 1), Err(StoreError::NoReport(_))), "{bad}");
    }
    assert_eq!(store.runs().unwrap(), []);
}

#[test]
fn files_that_are_not_stores_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    std::fs::write(&path, "somebody's text, longer than the hundred bytes that SQLite looks at to know its own files: it is not one").unwrap();
    let told = |path: &Path| Store::open(path).unwrap_err().to_string();
    assert!(told(&path).contains("not an SQLite file"));
    assert!(told(directory.path()).contains("not a regular file"));
    assert!(told(&path.join("below")).contains("exists"));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("somebody's"));
    let other = directory.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE runs (a)").unwrap();
    let before = std::fs::read(&other).unwrap();
    assert!(told(&other).contains("SQLite file of another program"));
    assert_eq!(std::fs::read(&other).unwrap(), before);
    assert!(Store::open_existing(&directory.path().join("none")).unwrap().is_none());
    assert!(!directory.path().join("none").exists());
}

#[test]
fn a_damaged_store_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory);
    let path = directory.path().join("deep/er/runs.db");
    store.keep(REPORT, "", 1).unwrap();
    store.keep(REPORT, "", 1).unwrap();
    store.connection.execute("UPDATE runs SET report = x'789c00' WHERE number = 2", []).unwrap();
    assert!(matches!(store.report(2), Err(StoreError::Damaged(_))));
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    for cut in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[cut..(cut + 60).min(bytes.len())].fill(0xa5);
        std::fs::write(&path, &damaged).unwrap();
        // Damage is either reported, or the report is unchanged.
        let read = Store::open(&path).and_then(|store| Ok((store.runs()?, store.report(1)?, store.check()?)));
        if let Ok((_, Some(report), _)) = read {
            assert_eq!(report, REPORT, "bytes {cut} and on");
        }
    }
}

#[test]
fn the_usual_place_is_in_the_users_data() {
    let place = |data: &str, home: &str| {
        let (data, home) = (data.to_owned(), home.to_owned());
        usual_place(&move |name| {
            let value = if name == "HOME" { &home } else { &data };
            (!value.is_empty()).then(|| value.into())
        })
    };
    assert_eq!(place("/d", "/h").unwrap(), Path::new("/d/iolite/runs.db"));
    assert_eq!(place("", "/h").unwrap(), Path::new("/h/.local/share/iolite/runs.db"));
    assert_eq!(place("relative", "/h").unwrap(), Path::new("/h/.local/share/iolite/runs.db"));
    assert_eq!(place("", ""), None);
}

/// SQLite would recover the unfinished changes of a killed program, in a file of another program.
#[test]
fn another_programs_unfinished_file_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let theirs = Connection::open(path("live.db")).unwrap();
    theirs.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    // The files that a kill leaves.
    for ending in ["", "-wal", "-shm"] {
        std::fs::copy(path(&format!("live.db{ending}")), path(&format!("killed.db{ending}"))).unwrap();
    }
    let all =
        || ["", "-wal", "-shm"].map(|ending| std::fs::read(path(&format!("killed.db{ending}"))).unwrap());
    let before = all();
    let error = Store::open(&path("killed.db")).unwrap_err().to_string();
    assert!(error.contains("SQLite file of another program"), "{error}");
    assert_eq!(all(), before);
}

/// Most file systems give the inode number of a removed store to the next new file.
#[test]
fn a_file_in_place_of_a_removed_store_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("runs.db"), directory.path().join("theirs.db"));
    drop(Store::open(&ours).unwrap());
    drop(Store::open(&ours).unwrap());
    std::fs::remove_file(&ours).unwrap();
    std::fs::write(&theirs, "somebody's text").unwrap();
    assert!(matches!(check_file(&theirs), Err(StoreError::Foreign(_))));
}

#[test]
fn nobody_else_reads_an_empty_file_that_becomes_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&path).unwrap());
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_store_is_known_without_being_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    drop(Store::open(&path("runs.db")).unwrap());
    std::fs::write(path("text"), "text").unwrap();
    std::fs::write(path("empty"), "").unwrap();
    for (name, is_one) in [
        ("runs.db", true),
        ("runs.db-journal", true),
        ("text", false),
        ("empty", false),
        ("none", false),
        (".", false),
    ] {
        assert_eq!(is_store(&path(name)), is_one, "{name}");
    }
}

#[test]
fn reports_above_the_limit_are_refused() {
    assert!(fits(LARGEST_REPORT).is_ok());
    let words = fits(LARGEST_REPORT + 1).unwrap_err().to_string();
    assert!(words.contains("1073741825 bytes") && words.contains("group_reporting"), "{words}");
}

#[test]
fn infinite_rates_are_stored_as_zero() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory);
    let job = "{\"jobname\": \"a\", \"read\": {\"iops\": 1e308, \"bw_bytes\": 1e308}}";
    store.import(&format!("{{\"jobs\": [{job}, {job}]}}"), "", 1).unwrap();
    let run = &store.runs().unwrap()[0];
    assert_eq!((run.iops, run.bandwidth), (0.0, 0.0));
}
