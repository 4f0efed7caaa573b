//! Files that a run leaves for its client, logs and verify states: how they are returned, and where they are kept.
//!
//! They come in parts, which are written as they arrive. A file gets its final name when it is complete. The sender
//! chooses only a part of the name: the directory is this one, and the machine's name is part of it.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How many bytes of a file a message contains.
pub(crate) const PART: usize = 64 << 10;
/// The most files that a machine may send.
const MOST: usize = 100_000;
/// The longest name in bytes that leaves room for the machine's name.
pub const LONGEST: usize = 160;
/// The suffix of an incomplete file.
const INCOMPLETE: &str = ".part";

/// A part of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilePart {
    /// The last part of its name. All parts of a file come one after the other.
    pub name: String,
    /// The content.
    pub bytes: Bytes,
    /// This is the last part.
    pub is_last: bool,
}

/// Bytes that are encoded as bytes, not as a list of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
        }
        from.deserialize_byte_buf(Visitor)
    }
}

/// Reads a file in parts, as long as `take` accepts them. Returns whether all were accepted.
///
/// # Errors
/// It cannot be read.
pub fn parts(path: &Path, mut take: impl FnMut(FilePart) -> bool) -> io::Result<bool> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut file = File::open(path)?;
    loop {
        let mut bytes = Vec::with_capacity(PART);
        (&mut file).take(PART as u64).read_to_end(&mut bytes)?;
        let is_last = bytes.len() < PART;
        let is_taken = take(FilePart { name: name.clone(), bytes: Bytes(bytes), is_last });
        if is_last || !is_taken {
            return Ok(is_taken);
        }
    }
}

/// Stores the files that come from a machine.
#[derive(Debug)]
pub(crate) struct Keeper {
    directory: PathBuf,
    /// The machine's name in file names.
    tag: String,
    current: Option<Incoming>,
    count: usize,
}

/// A file that is arriving.
#[derive(Debug)]
struct Incoming {
    /// Its name on the other machine.
    theirs: String,
    path: PathBuf,
    /// `None` = it cannot be kept, which has been reported.
    file: Option<File>,
}

impl Keeper {
    /// Keeps files in this directory. `tag`: the machine's name in their names.
    pub fn new(directory: &Path, tag: &str) -> Keeper {
        Keeper { directory: directory.to_owned(), tag: tag.to_owned(), current: None, count: 0 }
    }

    /// Writes a part. An error is returned once for each file.
    pub fn take(&mut self, part: &FilePart) -> Result<(), String> {
        let mut incoming = match self.current.take() {
            Some(incoming) if incoming.theirs == part.name => incoming,
            _ => self.begin(&part.name)?,
        };
        let Some(file) = &mut incoming.file else {
            self.current = Some(incoming).filter(|_| !part.is_last);
            return Ok(());
        };
        let path = incoming.path.clone();
        let written = file.write_all(&part.bytes.0);
        if part.is_last {
            if written.is_ok()
                && let Err(error) = fs::rename(incomplete(&path), &path)
            {
                let whole = incomplete(&path);
                return Err(format!("{}: {error}; all of it is in {}", path.display(), whole.display()));
            }
        } else {
            if written.is_err() {
                incoming.file = None;
            }
            self.current = Some(incoming);
        }
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Begins a file with this name on the other machine.
    fn begin(&mut self, theirs: &str) -> Result<Incoming, String> {
        let refused = |why: &str| {
            let shown: String = theirs.chars().take(LONGEST).collect();
            format!("it sends a file that is not kept: {shown:?} {why}")
        };
        self.count += 1;
        let result = match own_name(theirs, &self.tag) {
            _ if self.count > MOST => Err(refused("is one too many")),
            _ if theirs.len() > LONGEST => Err(refused("is too long a name")),
            None => Err(refused("is not a name of a log or a verify state")),
            Some(name) => {
                let path = self.directory.join(name);
                // Do not write through a link or into an existing file. The file gets its final name when it is
                // complete.
                let _ = fs::remove_file(incomplete(&path));
                let opened = File::create_new(incomplete(&path));
                opened
                    .map(|file| Incoming { theirs: theirs.to_owned(), path: path.clone(), file: Some(file) })
                    .map_err(|error| format!("{}: {error}", path.display()))
            }
        };
        if result.is_err() {
            self.current = Some(Incoming { theirs: theirs.to_owned(), path: PathBuf::new(), file: None });
        }
        result
    }
}

fn incomplete(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(INCOMPLETE);
    name.into()
}

/// The local name for a file of another machine: logs have the machine's name appended, states have it in place of
/// `local`, as in fio. `None` = it is neither a log nor a state.
fn own_name(theirs: &str, tag: &str) -> Option<String> {
    if theirs.contains(|c: char| c == '/' || c.is_control()) {
        return None;
    }
    if [".log", ".log.fz"].iter().any(|end| theirs.ends_with(end)) {
        // Avoid names that look like an option, or are hidden.
        let front = if theirs.starts_with(['-', '.']) { "_" } else { "" };
        return Some(format!("{front}{theirs}.{tag}"));
    }
    let state = theirs.strip_prefix("local-").filter(|name| name.ends_with("-verify.state"))?;
    Some(format!("{tag}-{state}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(name: &str, bytes: &[u8], is_last: bool) -> FilePart {
        FilePart { name: name.to_owned(), bytes: Bytes(bytes.to_vec()), is_last }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_arrive_as_they_were() {
        let [there, here] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut keeper = Keeper::new(here.path(), "one");
        for (name, own, size) in [
            ("a_bw.1.log", "a_bw.1.log.one", 0),
            ("b_lat.1.log.fz", "b_lat.1.log.fz.one", PART),
            ("local-j-0-verify.state", "one-j-0-verify.state", 2 * PART + 1),
        ] {
            let bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
            fs::write(there.path().join(name), &bytes).unwrap();
            let mut count = 0;
            let all = parts(&there.path().join(name), |part| {
                assert!(part.bytes.0.len() <= PART);
                count += 1;
                keeper.take(&part).unwrap();
                true
            });
            assert!(all.unwrap());
            assert_eq!(count, size / PART + 1);
            assert_eq!(fs::read(here.path().join(own)).unwrap(), bytes);
        }
        assert_eq!(names(here.path()).len(), 3);
    }

    #[test]
    fn nothing_is_written_elsewhere() {
        let here = tempfile::tempdir().unwrap();
        let directory = here.path().join("d");
        fs::create_dir(&directory).unwrap();
        let mut keeper = Keeper::new(&directory, "one");
        for name in [
            "../x.log",
            "/etc/x.log",
            "x",
            ".log/../../y",
            "local-..-verify.state/x",
            "a\nb.log",
            "x.log.one",
            "",
        ] {
            assert!(keeper.take(&part(name, b"x", false)).unwrap_err().contains("not kept"), "{name}");
            // Reported only once.
            keeper.take(&part(name, b"x", true)).unwrap();
        }
        let long = keeper.take(&part(&("x".repeat(LONGEST) + ".log"), b"", true)).unwrap_err();
        assert!(long.contains("is too long a name"), "{long}");
        assert!(names(&directory).is_empty());
        keeper.take(&part("--x.log", b"", true)).unwrap();
        assert_eq!(names(&directory), ["_--x.log.one"]);
        fs::remove_file(directory.join("_--x.log.one")).unwrap();
        assert_eq!(names(here.path()), ["d"]);
        // A symbolic link with that name is replaced, not followed.
        let victim = here.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        for name in ["x.log.one", "x.log.one.part"] {
            std::os::unix::fs::symlink(&victim, directory.join(name)).unwrap();
        }
        keeper.take(&part("x.log", b"new", true)).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(fs::read_to_string(directory.join("x.log.one")).unwrap(), "new");
    }

    #[test]
    fn incomplete_files_keep_the_part_suffix() {
        let here = tempfile::tempdir().unwrap();
        let mut keeper = Keeper::new(here.path(), "one");
        keeper.take(&part("x.log", b"begun", false)).unwrap();
        assert_eq!(names(here.path()), ["x.log.one.part"]);
        // Another file begins, but a directory has its name.
        fs::create_dir_all(here.path().join("y.log.one/full")).unwrap();
        let in_the_way = keeper.take(&part("y.log", b"", true)).unwrap_err();
        assert!(in_the_way.contains("y.log.one: ") && in_the_way.ends_with("y.log.one.part"), "{in_the_way}");
        keeper.take(&part("z.log", b"", true)).unwrap();
        assert!(here.path().join("z.log.one").exists());
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn names_stay_names(name in "[a-z./\\PC]{0,12}(.log|-verify.state|)") {
            if let Some(own) = own_name(&name, "one") {
                prop_assert_eq!(Path::new(&own).file_name().unwrap().to_str(), Some(own.as_str()));
                prop_assert!(own.ends_with(".one") || own.starts_with("one-"));
                prop_assert!(!own.starts_with(['-', '.']));
            }
        }
    }
}
