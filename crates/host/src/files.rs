//! Facts about files by name.

use crate::device_class::DeviceClass;
use crate::device_number::DeviceNumber;
use crate::refusal::Refusal;
use iolite_types::{FileKind, is_standard_stream};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The kind of a directory's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A block device.
    Block,
    /// A character device.
    Char,
    /// A pipe or a socket.
    Pipe,
}

impl EntryKind {
    fn of(metadata: &Metadata) -> EntryKind {
        let kind = metadata.file_type();
        if kind.is_dir() {
            EntryKind::Directory
        } else if kind.is_block_device() {
            EntryKind::Block
        } else if kind.is_char_device() {
            EntryKind::Char
        } else if kind.is_fifo() || kind.is_socket() {
            EntryKind::Pipe
        } else {
            EntryKind::Regular
        }
    }

    /// The kind of file that a job can use; `None` for a directory.
    pub fn file_kind(self) -> Option<FileKind> {
        match self {
            EntryKind::Regular => Some(FileKind::Regular),
            EntryKind::Block => Some(FileKind::Block),
            EntryKind::Char => Some(FileKind::Char),
            EntryKind::Pipe => Some(FileKind::Pipe),
            EntryKind::Directory => None,
        }
    }
}

/// The identity of a file: equal for all of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The number of the file system's device.
    pub device: u64,
    /// The number of the file in it.
    pub inode: u64,
}

/// The facts about a directory's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// The kind of file.
    pub kind: EntryKind,
    /// The size of a regular file in bytes; 0 for other files. ([`Machine::size`](crate::Machine::size) also knows the
    /// sizes of devices.)
    pub bytes: u64,
    /// The same for all names of the file. Standard input and output have zeros.
    pub identity: Identity,
    /// The number of a device.
    pub device: Option<DeviceNumber>,
    /// The class of a character device that holds data.
    pub class: Option<DeviceClass>,
    /// The block device that is the same storage as a character device.
    pub same_as: Option<DeviceNumber>,
}

impl FileFacts {
    /// The key that identifies the file. All nodes of a device have one key, also those for commands to it.
    pub fn key(&self) -> FileKey {
        match self.block_device().or(self.same_as) {
            Some(number) => FileKey::Device(number),
            None => FileKey::File(self.identity),
        }
    }

    /// Whether this is a block device.
    pub fn is_block_device(&self) -> bool {
        self.kind == EntryKind::Block
    }

    /// Whether this is a device that holds data.
    pub fn is_storage_device(&self) -> bool {
        self.is_block_device() || self.class.is_some()
    }

    /// Its number, if it is a block device.
    pub fn block_device(&self) -> Option<DeviceNumber> {
        self.device.filter(|_| self.is_block_device())
    }

    fn of(metadata: &Metadata) -> FileFacts {
        let kind = EntryKind::of(metadata);
        let is_device = matches!(kind, EntryKind::Block | EntryKind::Char);
        let device = is_device.then(|| DeviceNumber::of(metadata.rdev()));
        let class = device.filter(|_| kind == EntryKind::Char).and_then(DeviceClass::of);
        FileFacts {
            kind,
            bytes: if kind == EntryKind::Regular { metadata.len() } else { 0 },
            identity: Identity { device: metadata.dev(), inode: metadata.ino() },
            device,
            class,
            same_as: class.zip(device).and_then(|(class, number)| class.block_device(number)),
        }
    }

    /// Standard input or output.
    pub(crate) fn standard_stream() -> FileFacts {
        FileFacts {
            kind: EntryKind::Pipe,
            bytes: 0,
            identity: Identity { device: 0, inode: 0 },
            device: None,
            class: None,
            same_as: None,
        }
    }
}

/// A key that identifies a file, whichever of its names is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FileKey {
    /// A block device, or a character device that is the same storage.
    Device(DeviceNumber),
    /// Another file that exists.
    File(Identity),
    /// A file that does not exist: the path where it would be created.
    Missing(PathBuf),
}

impl FileKey {
    /// The key of the file that this name currently refers to.
    pub fn of(path: &Path) -> FileKey {
        match fs::metadata(path) {
            Ok(metadata) => FileFacts::of(&metadata).key(),
            Err(_) => FileKey::missing(path),
        }
    }

    /// The key that a file with this name has as long as it does not exist.
    pub fn missing(path: &Path) -> FileKey {
        FileKey::Missing(place_of(path))
    }
}

/// A kind of access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Write to it.
    Write,
    /// Create files in it: it is a directory.
    MakeFiles,
}

pub(crate) fn look(path: &Path) -> Result<Option<FileFacts>, Refusal> {
    if is_standard_stream(path) {
        return Ok(Some(FileFacts::standard_stream()));
    }
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(FileFacts::of(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The path where a file of this name would be created: links followed, its directory without links.
pub(crate) fn place_of(path: &Path) -> PathBuf {
    /// The most links that are followed before they count as a loop, as in the kernel.
    const MOST_LINKS: usize = 40;
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = parent(&path).join(target),
            Err(_) => break,
        }
    }
    let directory = parent(&path);
    let directory = directory.canonicalize().unwrap_or(directory);
    path.file_name().map_or(directory.clone(), |name| directory.join(name))
}

/// The size of the block device at a path.
pub(crate) fn device_size(path: &Path) -> Result<u64, Refusal> {
    Ok(File::open(path)?.seek(SeekFrom::End(0))?)
}

/// All regular files below a directory, sorted.
pub(crate) fn list(directory: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let mut files = Vec::new();
    collect(directory, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

pub(crate) fn access(path: &Path, access: Access) -> Result<(), Refusal> {
    let Ok(text) = CString::new(path.as_os_str().as_bytes()) else {
        return Err(Refusal { errno: Some(libc::EINVAL), words: "its name has a zero byte".to_owned() });
    };
    let wanted = match access {
        Access::Write => libc::W_OK,
        Access::MakeFiles => libc::W_OK | libc::X_OK,
    };
    // SAFETY: the string is terminated and lives through the call.
    match unsafe { libc::faccessat(libc::AT_FDCWD, text.as_ptr(), wanted, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error().into()),
    }
}

pub(crate) fn among_devices(path: &Path) -> bool {
    // Missing directories would be created as well.
    let existing = path.ancestors().skip(1).find_map(|ancestor| {
        let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        fs::canonicalize(ancestor).ok()
    });
    let Some(place) = existing else { return false };
    let number = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    // If /dev is only a directory of the root file system, only the name can decide.
    number(&place).is_some_and(|device| number(Path::new("/dev")) == Some(device))
        && (place.starts_with("/dev") || number(Path::new("/")) != number(&place))
}

/// The node below /dev of a block device.
pub(crate) fn device_node(number: DeviceNumber) -> Option<PathBuf> {
    let event = fs::read_to_string(number.directory().join("uevent")).ok()?;
    let name = event.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    let path = Path::new("/dev").join(name);
    let found = look(&path).ok()??;
    (found.block_device() == Some(number)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(path: &Path) -> Option<EntryKind> {
        look(path).unwrap().map(|found| found.kind)
    }

    #[test]
    fn kinds_of_entries() {
        assert_eq!(kind(Path::new("-")), Some(EntryKind::Pipe));
        assert_eq!(kind(Path::new("/dev/null")), Some(EntryKind::Char));
        assert_eq!(kind(Path::new("/proc/self/exe")), Some(EntryKind::Regular));
        assert_eq!(kind(Path::new("/proc/self")), Some(EntryKind::Directory));
        let null = look(Path::new("/dev/null")).unwrap().unwrap();
        assert_eq!(null.device, Some(DeviceNumber { major: 1, minor: 3 }));
    }

    #[test]
    fn missing_files_are_none_and_impossible_paths_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        assert_eq!(look(&file), Ok(None));
        fs::write(&file, "123").unwrap();
        assert_eq!(look(&file).unwrap().unwrap().bytes, 3);
        assert_eq!(look(&file.join("g")), Err(Refusal::of(libc::ENOTDIR)));
    }

    #[test]
    fn two_names_of_a_file_have_one_identity() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other, third] = ["one", "other", "third"].map(|name| directory.path().join(name));
        fs::write(&one, "").unwrap();
        fs::hard_link(&one, &other).unwrap();
        fs::write(&third, "").unwrap();
        let identity = |path: &Path| look(path).unwrap().unwrap().identity;
        assert_eq!(identity(&one), identity(&other));
        assert_ne!(identity(&one), identity(&third));
    }

    #[test]
    fn all_names_of_a_file_have_one_key_also_before_it_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("file", &link).unwrap();
        let roundabout = directory.path().join(".").join("file");
        let missing = FileKey::of(&file);
        assert!(matches!(missing, FileKey::Missing(_)));
        assert_eq!([FileKey::of(&link), FileKey::of(&roundabout)], [missing.clone(), missing.clone()]);
        fs::write(&file, "").unwrap();
        assert!(matches!(FileKey::of(&file), FileKey::File(_)));
        assert_eq!(FileKey::of(&link), FileKey::of(&file));
        assert_eq!(FileKey::missing(&link), missing);
    }

    #[test]
    fn directories_are_listed_with_what_is_below_them() {
        let directory = tempfile::tempdir().unwrap();
        let [below, other, inside] = ["sub", "b", "sub/a"].map(|name| directory.path().join(name));
        fs::create_dir(&below).unwrap();
        fs::write(&inside, "").unwrap();
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&other, directory.path().join("link")).unwrap();
        assert_eq!(list(directory.path()), Ok(vec![other, inside]));
        assert_eq!(list(&directory.path().join("none")), Err(Refusal::of(libc::ENOENT)));
    }

    #[test]
    fn access_is_checked_by_the_kernel() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(access(directory.path(), Access::MakeFiles), Ok(()));
        assert_eq!(access(&directory.path().join("none"), Access::Write), Err(Refusal::of(libc::ENOENT)));
        let nameless = Path::new(std::ffi::OsStr::from_bytes(b"a\0b"));
        assert_eq!(access(nameless, Access::Write).unwrap_err().to_string(), "its name has a zero byte");
    }

    #[test]
    fn places_among_the_device_nodes() {
        for name in ["/dev/no-such-device", "/dev/../dev/./no-such-device", "/dev/no/such/device"] {
            assert!(among_devices(Path::new(name)), "{name}");
        }
        let directory = tempfile::tempdir().unwrap();
        assert!(!among_devices(&directory.path().join("new")));
        assert!(!among_devices(Path::new("new")));
        // Other file systems may be mounted below.
        let number = |path: &str| fs::metadata(path).map(|metadata| metadata.dev()).ok();
        if number("/dev/shm").is_some_and(|shm| number("/dev") != Some(shm)) {
            assert!(!among_devices(Path::new("/dev/shm/new")));
        }
    }
}
