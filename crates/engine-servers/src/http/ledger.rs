//! Keeps a file that lists the uploads under way. If a job is killed, the next job learns from this file which uploads
//! it left on the server, and aborts them.
//!
//! Each engine has its own file in the auxiliary directory, `iolite-uploads.PID-N.state`, from its first upload on.
//! The file is locked while the engine lives, and removed at its end if no upload is under way. So a file that is not
//! locked was left by a killed process. An upload is recorded on stable storage before the server is asked to begin
//! it, and again when its id is known, because the job may be killed in between:
//!
//! ```text
//! iolite: uploads under way
//! begin 1 1764000000 http://127.0.0.1:9000 /bucket/name
//! id 1 VXBsb2Fk
//! end 1
//! ```
//!
//! `repeated 1` means that the server was asked more than once to begin this upload, so there may be another upload
//! with an unknown id.

use iolite_http::{percent_decoded, percent_encoded};
use iolite_os::files::try_lock;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first line of the file.
const MARK: &str = "iolite: uploads under way\n";
/// The beginning and the end of the file names.
const NAME: (&str, &str) = ("iolite-uploads.", ".state");
/// A file of this length is cleared when no upload is under way.
const LONG: u64 = 64 << 10;
/// A longer file is not a ledger.
const LONGEST: u64 = 64 << 20;
/// How often and at what interval to try to lock a new file: readers hold the lock only briefly.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(10);
/// How many names to try for a new file.
const NAMES: u32 = 10_000;

/// An upload that is under way, or may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// When the server was asked to begin it, in seconds since 1970.
    pub(super) since: u64,
    /// The server: `http://127.0.0.1:9000`.
    pub(super) server: String,
    /// The object's name, as in requests.
    pub(super) name: String,
    /// The upload's id; `None` = it is not known whether the upload was begun.
    pub(super) id: Option<String>,
    /// The server was asked more than once to begin the upload, so there may be another one with an unknown id.
    pub(super) is_repeated: bool,
    /// The time, in seconds since 1970, by which the upload had begun if it began at all.
    pub(super) until: u64,
}

impl Entry {
    /// How many uploads with unknown ids there may be for this entry.
    pub(super) fn unknown(&self) -> usize {
        usize::from(self.id.is_none()) + usize::from(self.is_repeated)
    }
}

/// The file of one engine.
pub(super) struct Ledger {
    directory: PathBuf,
    file: Option<(PathBuf, File)>,
    length: u64,
    entries: BTreeMap<u64, Entry>,
    next: u64,
}

impl Ledger {
    /// Makes a ledger in this directory (empty = the current one). The file is created with the first upload.
    pub(super) fn new(directory: &Path) -> Ledger {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        Ledger { directory: directory.to_owned(), file: None, length: 0, entries: BTreeMap::new(), next: 0 }
    }

    /// Records that the server is about to be asked to begin an upload. Returns the number of the entry.
    pub(super) fn begin(&mut self, server: &str, name: &str) -> io::Result<u64> {
        let since = seconds(SystemTime::now());
        self.next += 1;
        let entry = Entry {
            since,
            server: server.to_owned(),
            name: name.to_owned(),
            until: u64::MAX,
            ..Entry::default()
        };
        self.note(&begin_line(self.next, &entry), true)?;
        self.entries.insert(self.next, entry);
        Ok(self.next)
    }

    /// Records the outcome of that request: the id, if the server gave one, and whether the request was repeated.
    pub(super) fn begun(&mut self, number: u64, id: Option<&str>, is_repeated: bool) -> io::Result<()> {
        // The id is kept here even if it cannot be written to the file, so that this engine can abort the upload.
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.id = id.map(str::to_owned);
            (entry.is_repeated, entry.until) = (is_repeated, seconds(SystemTime::now()));
        }
        let mut lines = if is_repeated { format!("repeated {number}\n") } else { String::new() };
        if let Some(id) = id {
            lines.push_str(&id_line(number, id));
        }
        if lines.is_empty() { Ok(()) } else { self.note(&lines, true) }
    }

    /// Records that an upload has ended. (If this line is lost, a later job tries to abort an upload that no longer
    /// exists, which is harmless.)
    pub(super) fn over(&mut self, number: u64) {
        if self.entries.remove(&number).is_none() {
            return;
        }
        if self.entries.is_empty()
            && self.length > LONG
            && let Some((_, file)) = &self.file
            && file.set_len(MARK.len() as u64).is_ok()
        {
            self.length = MARK.len() as u64;
            return;
        }
        let _ = self.note(&format!("end {number}\n"), false);
    }

    /// The uploads that are or may be under way.
    pub(super) fn entries(&self) -> Vec<(u64, Entry)> {
        self.entries.iter().map(|(&number, entry)| (number, entry.clone())).collect()
    }

    /// The path of the file, if there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// Removes the file, unless uploads are under way.
    pub(super) fn close(&mut self) {
        if self.entries.is_empty()
            && let Some((path, _)) = self.file.take()
        {
            // If the file cannot be removed, this does no harm: it lists no uploads.
            let _ = fs::remove_file(path);
        }
    }

    fn note(&mut self, line: &str, is_durable: bool) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.made()?);
            self.length = MARK.len() as u64;
        }
        let Some((path, file)) = &self.file else { unreachable!("it has just been made") };
        // After a partial write (the device is full), the next line overwrites the fragment. Otherwise the file could
        // not be read.
        let written = file.write_all_at(line.as_bytes(), self.length).inspect_err(|_| {
            let _ = file.set_len(self.length);
        });
        if written.is_ok() {
            self.length += line.len() as u64;
        }
        let stored = written.and_then(|()| if is_durable { file.sync_data() } else { Ok(()) });
        stored.map_err(|error| of_file(path, &error))
    }

    /// Creates a new file and locks it.
    fn made(&self) -> io::Result<(PathBuf, File)> {
        let process = std::process::id();
        for number in 0..NAMES {
            let path = self.directory.join(format!("{}{process}-{number}{}", NAME.0, NAME.1));
            let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(not_made(&path, &error)),
            };
            // A process that looks for leftover files may hold the lock for a moment.
            let made = locked(&file).and_then(|()| {
                file.write_all_at(MARK.as_bytes(), 0)?;
                file.sync_all()?;
                if !is_at(&file, &path) {
                    return Err(io::Error::other("it was removed meanwhile"));
                }
                File::open(&self.directory)?.sync_all()
            });
            made.map_err(|error| not_made(&path, &error))?;
            return Ok((path, file));
        }
        let words = format!("{}: too many files {}{process}-*{}", self.directory.display(), NAME.0, NAME.1);
        Err(io::Error::new(io::ErrorKind::AlreadyExists, words))
    }
}

/// Locks a new file.
fn locked(file: &File) -> io::Result<()> {
    for _ in 0..LOOKS {
        match try_lock(file) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            result => return result,
        }
    }
    try_lock(file)
}

/// A file that a killed process left behind, and its uploads.
pub(super) struct Left {
    pub(super) path: PathBuf,
    /// The uploads; `None` = the file begins like a ledger, but cannot be parsed.
    pub(super) entries: Option<Vec<Entry>>,
    /// The file, which stays locked as long as this exists, so that no other process uses it.
    file: File,
}

impl Left {
    /// Keeps only these entries, for other processes.
    pub(super) fn keep(&self, entries: &[Entry]) -> io::Result<()> {
        if !is_at(&self.file, &self.path) {
            return Ok(());
        }
        if entries.is_empty() {
            return fs::remove_file(&self.path);
        }
        let mut text = MARK.to_owned();
        for (number, entry) in (1..).zip(entries) {
            text.push_str(&begin_line(number, entry));
            if entry.is_repeated {
                text.push_str(&format!("repeated {number}\n"));
            }
            if let Some(id) = &entry.id {
                text.push_str(&id_line(number, id));
            }
        }
        // The file is written under another name first, so that other processes do not find an incomplete file.
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let file = File::create(&new)?;
        file.write_all_at(text.as_bytes(), 0)?;
        // The file's modification time tells until when its owner lived, so it must stay the same.
        file.set_modified(self.file.metadata()?.modified()?)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

/// All files of ledgers in the directory of this ledger.
fn files(ledger: &Ledger) -> Vec<PathBuf> {
    let Ok(directory) = fs::read_dir(&ledger.directory) else { return Vec::new() };
    let is_one = |name: &str| name.starts_with(NAME.0) && name.ends_with(NAME.1);
    let names = directory.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_one));
    names.map(|entry| entry.path()).collect()
}

/// The files that killed processes left in the directory of this ledger.
pub(super) fn left(ledger: &Ledger) -> Vec<Left> {
    files(ledger).into_iter().filter_map(read).collect()
}

/// The ids of all uploads in the ledgers of this directory, whether their owners live or not.
pub(super) fn known_ids(ledger: &Ledger) -> BTreeSet<String> {
    let texts = files(ledger).into_iter().filter_map(|path| text_of(&open(&path)?));
    let entries = texts.filter_map(|text| parse(&text)).flatten().chain(ledger.entries.values().cloned());
    entries.filter_map(|entry| entry.id).collect()
}

/// Reads a leftover file; `None` = the file is not a ledger, or its owner lives.
fn read(path: PathBuf) -> Option<Left> {
    let file = open(&path)?;
    try_lock(&file).ok()?;
    // Between opening and locking, another file may have replaced this one under the same name.
    if !is_at(&file, &path) {
        return None;
    }
    let text = text_of(&file)?;
    text.starts_with(MARK).then_some(())?;
    let until = file.metadata().ok()?.modified().map_or(u64::MAX, seconds);
    let mut entries = parse(&text);
    entries.iter_mut().flatten().for_each(|entry| entry.until = until);
    Some(Left { path, entries, file })
}

/// Opens a file for reading; `None` = it cannot be a ledger.
fn open(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    (metadata.is_file() && metadata.len() <= LONGEST).then_some(file)
}

fn text_of(mut file: &File) -> Option<String> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Whether the path still names this file.
fn is_at(file: &File, path: &Path) -> bool {
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(own), Ok(named)) => place(own) == place(named),
        _ => false,
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The line that records that the server is about to be asked to begin an upload.
fn begin_line(number: u64, entry: &Entry) -> String {
    let Entry { since, server, name, .. } = entry;
    let mut encoded = String::new();
    percent_encoded(name.as_bytes(), &mut encoded);
    format!("begin {number} {since} {server} {encoded}\n")
}

/// The line that records the id of an upload.
fn id_line(number: u64, id: &str) -> String {
    let mut encoded = String::new();
    percent_encoded(id.as_bytes(), &mut encoded);
    format!("id {number} {encoded}\n")
}

/// Parses the text of a file and returns its uploads; `None` = it is not a ledger. A last line without a line break
/// is ignored, because the job was killed while it wrote that line.
fn parse(text: &str) -> Option<Vec<Entry>> {
    let rest = text.strip_prefix(MARK)?;
    let mut entries = BTreeMap::new();
    for line in rest.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let mut words = line.split(' ');
        let (what, number) = (words.next()?, words.next()?.parse::<u64>().ok()?);
        match what {
            "begin" => {
                let since = words.next()?.parse().ok()?;
                let (server, name) = (words.next()?.to_owned(), percent_decoded(words.next()?)?);
                entries.insert(number, Entry { since, server, name, until: u64::MAX, ..Entry::default() });
            }
            "id" => entries.get_mut(&number)?.id = Some(percent_decoded(words.next()?)?),
            "repeated" => entries.get_mut(&number)?.is_repeated = true,
            "end" => drop(entries.remove(&number)),
            _ => return None,
        }
    }
    Some(entries.into_values().collect())
}

fn of_file(path: &Path, error: &io::Error) -> io::Error {
    let words = format!("{}: {}", path.display(), iolite_types::describe_error(error));
    io::Error::new(error.kind(), words)
}

fn not_made(path: &Path, error: &io::Error) -> io::Error {
    let words = format!(
        "{}: {}; uploads in parts need this file, so that a later job can abort what a killed one leaves; --aux-path= puts it \
         into another directory",
        path.display(),
        iolite_types::describe_error(error)
    );
    io::Error::new(error.kind(), words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_are_found_when_their_owner_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(directory.path());
        let first = ledger.begin("http://h", "/b/a name\n%").unwrap();
        ledger.begun(first, Some("id/1 +"), true).unwrap();
        let second = ledger.begin("http://h", "/b/2").unwrap();
        let third = ledger.begin("http://h", "/b/3").unwrap();
        ledger.over(third);
        assert_eq!(ledger.entries().len(), 2);
        assert!(left(&ledger).is_empty(), "its owner lives");
        ledger.close();
        let path = ledger.path().unwrap().to_owned();
        drop(ledger);
        let other = Ledger::new(directory.path());
        let found = left(&other);
        assert_eq!((found.len(), &found[0].path), (1, &path));
        let names: Vec<_> =
            found[0].entries.iter().flatten().map(|entry| (&*entry.name, entry.id.as_deref())).collect();
        assert_eq!(names, [("/b/a name\n%", Some("id/1 +")), ("/b/2", None)]);
        assert!(left(&other).is_empty(), "somebody looks at it already");
        assert_eq!((first, second), (1, 2));
        // Uploads to other servers stay in the file, and keep their times.
        let entries = found[0].entries.clone().unwrap();
        assert_eq!((entries[0].unknown(), entries[1].unknown()), (1, 1));
        found[0].keep(&entries[..1]).unwrap();
        drop(found);
        let again = left(&other);
        assert_eq!(again[0].entries.as_deref(), Some(&entries[..1]));
        assert!(known_ids(&other).contains("id/1 +"));
        again[0].keep(&[]).unwrap();
        again[0].keep(&[]).unwrap();
        drop(again);
        assert!(left(&other).is_empty());
    }

    /// A file of the same name that another process has created since then is left alone.
    #[test]
    fn another_file_of_the_same_name_is_not_taken_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("iolite-uploads.1-0.state");
        fs::write(&path, MARK).unwrap();
        let ledger = Ledger::new(directory.path());
        let found = left(&ledger);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another").unwrap();
        found[0].keep(&[]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "another");
    }

    #[test]
    fn a_partial_line_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(directory.path());
        let first = ledger.begin("http://h", "/b/a").unwrap();
        // As if the device were full: there is a part of a line, which does not count towards the length.
        let (path, file) = ledger.file.as_ref().unwrap();
        file.write_all_at(b"id 1 ab", ledger.length).unwrap();
        let path = path.clone();
        ledger.begun(first, Some("abc"), false).unwrap();
        let entries = parse(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(entries[0].id.as_deref(), Some("abc"));
    }

    #[test]
    fn an_unwritable_directory_is_reported_with_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(&directory.path().join("none"));
        let why = ledger.begin("http://h", "/b/a").unwrap_err().to_string();
        assert!(why.contains("iolite-uploads.") && why.contains("--aux-path="), "{why}");
    }

    #[test]
    fn unreadable_files_of_ours_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("iolite-uploads.1-0.state"), format!("{MARK}nonsense\n")).unwrap();
        fs::write(directory.path().join("iolite-uploads.2-0.state"), "nonsense").unwrap();
        let found = left(&Ledger::new(directory.path()));
        assert_eq!((found.len(), found[0].entries.is_none()), (1, true));
    }

    #[test]
    fn unused_files_are_removed_and_foreign_files_kept() {
        let directory = tempfile::tempdir().unwrap();
        let foreign = directory.path().join(format!("iolite-uploads.{}-0.state", std::process::id()));
        fs::write(&foreign, "precious").unwrap();
        let mut ledger = Ledger::new(directory.path());
        assert!(left(&ledger).is_empty());
        for _ in 0..3000 {
            let number = ledger.begin("http://h", "/b/a").unwrap();
            ledger.over(number);
        }
        assert!(ledger.length <= LONG + 100, "it does not grow for ever");
        assert!(ledger.path().is_some_and(|path| path != foreign));
        ledger.close();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(foreign).unwrap(), "precious");
    }

    #[test]
    fn damaged_files_are_not_taken_as_ours() {
        for text in ["", "iolite", "something\n", "iolite: uploads under way\nnonsense\n"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let cut = "iolite: uploads under way\nbegin 1 7 http://h /b\nid 1 ab";
        let begun = Entry {
            since: 7,
            server: "http://h".into(),
            name: "/b".into(),
            until: u64::MAX,
            ..Entry::default()
        };
        assert_eq!(parse(cut), Some(vec![begun]));
    }
}
