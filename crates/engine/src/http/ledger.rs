//! Which uploads are under way, in a file: what a killed job leaves on the server, the next one finds there and aborts.
//!
//! Each engine has a file of its own in the auxiliary directory, `iolite-uploads.PID-N.state`, from its first upload on; it
//! is locked while the engine lives and removed when nothing is under way at its end. So a file that is not locked was left
//! by somebody who was killed. An upload is noted before the server is asked to begin it and again when its id is known,
//! each time on stable storage, because the job may be killed in between:
//!
//!     iolite: uploads under way
//!     begin 1 1764000000 http://127.0.0.1:9000 /bucket/name
//!     id 1 VXBsb2Fk
//!     end 1

use iolite_http::{percent_decoded, percent_encoded};
use iolite_os::files::try_lock;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first line of such a file.
const MARK: &str = "iolite: uploads under way\n";
/// What the names of such files begin and end with.
const NAME: (&str, &str) = ("iolite-uploads.", ".state");
/// A file that has become this long is begun anew when nothing is under way.
const LONG: u64 = 64 << 10;
/// A file of this length is none of ours.
const LONGEST: u64 = 64 << 20;
/// How often, and how long apart, a lock is asked for that somebody holds who only looks.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(10);
/// How many names are tried for a new file.
const NAMES: u32 = 10_000;

/// An upload that is under way, or may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// When the server was asked to begin it, in seconds since 1970.
    pub(super) since: u64,
    /// The server: `http://127.0.0.1:9000`.
    pub(super) server: String,
    /// The object, as requests name it.
    pub(super) name: String,
    /// The upload's id; `None` = nobody knows whether it was begun.
    pub(super) id: Option<String>,
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
    /// One in this directory (empty = the current one). There is no file before the first upload.
    pub(super) fn new(directory: &Path) -> Ledger {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        Ledger { directory: directory.to_owned(), file: None, length: 0, entries: BTreeMap::new(), next: 0 }
    }

    /// The server is going to be asked to begin an upload; by what number it is known here.
    pub(super) fn begin(&mut self, server: &str, name: &str) -> io::Result<u64> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.next += 1;
        let entry = Entry { since, server: server.to_owned(), name: name.to_owned(), id: None };
        let mut encoded = String::new();
        percent_encoded(name.as_bytes(), &mut encoded);
        self.note(&format!("begin {} {since} {server} {encoded}\n", self.next), true)?;
        self.entries.insert(self.next, entry);
        Ok(self.next)
    }

    /// It has this id.
    pub(super) fn begun(&mut self, number: u64, id: &str) -> io::Result<()> {
        let mut encoded = String::new();
        percent_encoded(id.as_bytes(), &mut encoded);
        self.note(&format!("id {number} {encoded}\n"), true)?;
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.id = Some(id.to_owned());
        }
        Ok(())
    }

    /// It is no more. (If this is lost, somebody will try to abort what is not there.)
    pub(super) fn over(&mut self, number: u64) {
        if self.entries.remove(&number).is_none() {
            return;
        }
        if self.entries.is_empty() && self.length > LONG {
            let anew = |file: &mut File| {
                file.set_len(MARK.len() as u64)?;
                file.seek(SeekFrom::End(0))
            };
            if let Some((_, file)) = &mut self.file
                && anew(file).is_ok()
            {
                self.length = MARK.len() as u64;
                return;
            }
        }
        let _ = self.note(&format!("end {number}\n"), false);
    }

    /// What is under way, or may be.
    pub(super) fn entries(&self) -> Vec<(u64, Entry)> {
        self.entries.iter().map(|(&number, entry)| (number, entry.clone())).collect()
    }

    /// The file's name, if there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// Removes the file, unless something is under way.
    pub(super) fn close(&mut self) {
        if self.entries.is_empty()
            && let Some((path, _)) = self.file.take()
        {
            // A file that cannot be removed has nothing in it that anybody would do anything about.
            let _ = fs::remove_file(path);
        }
    }

    fn note(&mut self, line: &str, is_durable: bool) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.made()?);
            self.length = MARK.len() as u64;
        }
        let Some((path, file)) = &mut self.file else { unreachable!("it has just been made") };
        let written = file.write_all(line.as_bytes()).and_then(|()| match is_durable {
            true => file.sync_data(),
            false => Ok(()),
        });
        self.length += line.len() as u64;
        written.map_err(|error| of_file(path, &error))
    }

    /// Makes a file that nobody has, and locks it.
    fn made(&self) -> io::Result<(PathBuf, File)> {
        let process = std::process::id();
        for number in 0..NAMES {
            let path = self.directory.join(format!("{}{process}-{number}{}", NAME.0, NAME.1));
            let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(of_file(&path, &error)),
            };
            // Whoever looks for files that were left holds a lock for a moment.
            let made = locked(&file).and_then(|()| {
                file.write_all(MARK.as_bytes())?;
                file.sync_all()?;
                File::open(&self.directory)?.sync_all()
            });
            made.map_err(|error| of_file(&path, &error))?;
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

/// A file that somebody left who was killed, and what was under way then.
pub(super) struct Left {
    pub(super) path: PathBuf,
    pub(super) entries: Vec<Entry>,
    /// (Locked while this is there: nobody else looks at it.)
    _file: File,
}

/// The files that were left in the directory of a ledger.
pub(super) fn left(ledger: &Ledger) -> Vec<Left> {
    let Ok(directory) = fs::read_dir(&ledger.directory) else { return Vec::new() };
    let is_one = |name: &str| name.starts_with(NAME.0) && name.ends_with(NAME.1);
    let names = directory.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_one));
    names.filter_map(|entry| read(entry.path())).collect()
}

/// Reads such a file; `None` = it is none, or its owner lives.
fn read(path: PathBuf) -> Option<Left> {
    let mut file = OpenOptions::new().read(true).open(&path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return None;
    }
    try_lock(&file).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let entries = parse(&text)?;
    Some(Left { path, entries, _file: file })
}

/// What is under way according to this text; `None` = it is none of ours. A last line without an end was being written
/// when the job was killed.
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
                entries.insert(number, Entry { since, server, name, id: None });
            }
            "id" => entries.get_mut(&number)?.id = Some(percent_decoded(words.next()?)?),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_under_way_is_found_when_its_owner_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(directory.path());
        let first = ledger.begin("http://h", "/b/a name\n%").unwrap();
        ledger.begun(first, "id/1 +").unwrap();
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
            found[0].entries.iter().map(|entry| (&*entry.name, entry.id.as_deref())).collect();
        assert_eq!(names, [("/b/a name\n%", Some("id/1 +")), ("/b/2", None)]);
        assert!(left(&other).is_empty(), "somebody looks at it already");
        assert_eq!((first, second), (1, 2));
    }

    #[test]
    fn a_file_goes_when_nothing_is_under_way_and_no_other_is_touched() {
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
    fn damaged_files_are_none_of_ours() {
        for text in ["", "iolite", "something\n", "iolite: uploads under way\nnonsense\n"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let cut = "iolite: uploads under way\nbegin 1 7 http://h /b\nid 1 ab";
        let begun = Entry { since: 7, server: "http://h".into(), name: "/b".into(), id: None };
        assert_eq!(parse(cut), Some(vec![begun]));
    }
}
