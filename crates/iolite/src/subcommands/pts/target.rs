//! The device: whether it may be destroyed, and the facts about it.

use crate::subcommands::device::can_be_named;
use iolite_host::{
    Access, Device, DirectIo, Disk, Machine, ThisMachine, Value as FactValue, about, file_in_use,
};
use iolite_page::text::bytes;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for the lock of a device: udev takes it for a moment after each writer.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// A device, or a file in its place.
#[derive(Clone, Debug)]
pub struct Target {
    /// As the user has named it.
    pub name: String,
    /// Its path without links.
    pub path: PathBuf,
    pub is_file: bool,
    pub is_direct: bool,
    pub capacity: u64,
    /// The smallest block that can be addressed, in bytes.
    pub block: u64,
    pub serial: Option<String>,
    /// What no other disk has: its worldwide name (with its namespace), or the serial number of a virtual disk.
    pub unique: Option<String>,
    /// The disk, of a device.
    pub disk: Option<Disk>,
    /// What is known of it.
    device: Option<Device>,
    /// What is the same only as long as it is the same device.
    identity: Identity,
}

/// What is the same only as long as a path leads to the same device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    serial: Option<String>,
    /// The kernel's number of the disk, which it never gives again.
    sequence: Option<String>,
    /// The file system and the number of a file; the number of a device.
    file: (u64, u64, u64),
}

impl Target {
    /// The device that a word names. `may_be_file`: the user has allowed a file.
    pub fn of(word: &OsString, may_be_file: bool) -> Result<Target, String> {
        let name = word.to_string_lossy().into_owned();
        let told = |why: &str| Err(format!("{name}: {why}"));
        let found = fs::metadata(word).map_err(|error| {
            format!(
                "{name}: {}; name a block device, such as /dev/nvme0n1",
                iolite_types::describe_error(&error)
            )
        })?;
        let is_file = match found.file_type() {
            kind if kind.is_block_device() => false,
            kind if kind.is_file() && may_be_file => true,
            kind if kind.is_file() => {
                return told(
                    "this is a file, and the procedure is for devices; --allow-file tries it out on one, and marks the result",
                );
            }
            _ => return told("this is no block device"),
        };
        let path = fs::canonicalize(word).map_err(|error| format!("{name}: {error}"))?;
        if !can_be_named(&path) {
            return told("a job file would take this name for something else; give it a plain name (a link)");
        }
        let machine = ThisMachine::new();
        let capacity = machine.size(&path).map_err(|why| format!("{name}: {}", why.words))?.unwrap_or(0);
        let is_direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).is_ok();
        let disk = if is_file { None } else { machine.disk(&path) };
        if !is_file && Disk::partition_start(&path).is_some() {
            return told("this is a partition; the procedure needs the whole device");
        }
        if disk.as_ref().is_some_and(|disk| disk.queue.zones.is_some()) {
            return told("this device has zones, in which random writes are impossible");
        }
        let alignment = match machine.direct_io(&path) {
            Some(DirectIo::Aligned { offset, .. }) if is_direct => offset,
            _ => 1,
        };
        let block = disk.as_ref().and_then(|disk| disk.queue.logical_block).unwrap_or(1).max(alignment);
        let device = disk.as_ref().map(|disk| Device::of(disk, Some(&path)));
        let identity =
            identity(&path, disk.as_ref(), device.as_ref()).map_err(|why| format!("{name}: {why}"))?;
        let serial = identity.serial.clone();
        let unique = disk.as_ref().and_then(|disk| unique(&disk.directory));
        Ok(Target { name, path, is_file, is_direct, capacity, block, serial, unique, disk, device, identity })
    }

    /// Whether its path still leads to the same device: others may have taken its place in a procedure of days.
    pub fn check_identity(&self) -> Result<(), String> {
        let told = |why: &str| {
            format!(
                "{}: {why}: nothing more is written; --resume continues with the device of before",
                self.name
            )
        };
        let disk = if self.is_file { None } else { ThisMachine::new().disk(&self.path) };
        let device = disk.as_ref().map(|disk| Device::of(disk, Some(&self.path)));
        let now = identity(&self.path, disk.as_ref(), device.as_ref()).map_err(|why| told(&why))?;
        let words = |serial: &Option<String>| serial.clone().unwrap_or_else(|| "unknown".to_owned());
        if now.serial != self.identity.serial {
            return Err(told(&format!(
                "its serial number was {} and is {} now",
                words(&self.identity.serial),
                words(&now.serial)
            )));
        }
        if now != self.identity {
            return Err(told("it is another device or file than at the beginning"));
        }
        Ok(())
    }

    /// Whether it may still be written to: it is the same, and nothing has begun to use it.
    pub fn check_still(&self) -> Result<(), String> {
        self.check_identity()?;
        self.check_unused()
    }

    fn check_unused(&self) -> Result<(), String> {
        let found =
            if self.is_file { file_in_use(&self.path) } else { ThisMachine::new().in_use(&self.path) };
        match found {
            Some(found) if self.is_file => {
                Err(format!("{}: {found}; a file in use is never written to", self.name))
            }
            Some(found) => Err(format!("{}: {found}; a device in use is never written to", self.name)),
            None => Ok(()),
        }
    }

    /// What the user repeats so that it may be destroyed: its serial number, or its name if it has none.
    fn confirmation(&self) -> &str {
        self.serial.as_deref().unwrap_or(&self.name)
    }

    /// Whether the user has confirmed that all its data is lost, and nothing uses it.
    pub fn check_destruction(&self, confirmed: Option<&str>) -> Result<(), String> {
        let wanted = self.confirmation();
        let what = match self.serial {
            Some(_) => "its serial number",
            None => "its name (there is no serial number)",
        };
        let asks = format!("repeat {what}: --destroy={wanted}");
        match confirmed {
            None => {
                let words = self.words();
                return Err(format!(
                    "{}: {words}: all data on it would be lost; if it is the right one, {asks}",
                    self.name
                ));
            }
            Some(given) if given.trim() != wanted => {
                return Err(format!(
                    "--destroy={given}: {} is another one: {}; nothing was written; if it is the right one, {asks}",
                    self.name,
                    self.words()
                ));
            }
            Some(_) => {}
        }
        self.check_unused()?;
        ThisMachine::new()
            .access(&self.path, Access::Write)
            .map_err(|why| format!("{}: {}; root may", self.name, why.words))
    }

    /// Keeps other procedures away from it as long as the file is open, by the lock of the device's node that udev and partitioning
    /// tools heed as well. (Opening it exclusively would keep out the jobs of the procedure, too.)
    pub fn hold(&self) -> Result<File, String> {
        let told = |error: std::io::Error| format!("{}: {}", self.name, iolite_types::describe_error(&error));
        // On NFS, a lock needs a file that is open for writing. Of a device, that would make udev look at it.
        let file = OpenOptions::new().read(true).write(self.is_file).open(&self.path).map_err(told)?;
        let until = Instant::now() + LOCK_PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOCK_PATIENCE / 50),
                Err(TryLockError::WouldBlock) => {
                    return Err(format!(
                        "{}: another process has locked it: another procedure, a partitioning tool, or udev (lslocks names it); \
                         nothing was written",
                        self.name
                    ));
                }
                // Not every file system has locks.
                Err(TryLockError::Error(error))
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::EOPNOTSUPP | libc::ENOLCK | libc::ENOSYS)
                    ) =>
                {
                    return Ok(file);
                }
                Err(TryLockError::Error(error)) => return Err(told(error)),
            }
        }
    }

    /// What it is, in a line.
    pub fn words(&self) -> String {
        let of = |name: &str| {
            let fact = self.device.as_ref()?.fact("identity", name)?;
            Some(fact.text())
        };
        let kind = self.device.as_ref().map_or("file", |device| device.kind);
        let model = of("model").map(|model| format!("{model}, ")).unwrap_or_default();
        let serial =
            self.serial.as_ref().map(|serial| format!(", serial number {serial}")).unwrap_or_default();
        format!("{model}{kind} of {}{serial}", bytes(self.capacity as f64))
    }

    /// The kind of the device, as `iolite device` names it.
    pub fn kind(&self) -> &'static str {
        self.device.as_ref().map_or("file", |device| device.kind)
    }

    /// The directory of results, unless another one is named.
    pub fn usual_place(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = match &self.serial {
            Some(serial) => format!("{name}-{serial}"),
            None => name,
        };
        format!("{}.pts", plain(&name)).into()
    }

    /// The directory of results of an interrupted procedure, in which the device may have had another name.
    pub fn place_of_before(&self, within: &Path) -> Result<PathBuf, String> {
        let usual = self.usual_place();
        let (Some(serial), Some(_), false) = (&self.serial, &self.unique, within.join(&usual).exists())
        else {
            return Ok(usual);
        };
        let end = format!("-{}.pts", plain(serial));
        let entries = fs::read_dir(within).into_iter().flatten().flatten();
        let mut found: Vec<OsString> = entries
            .map(|entry| entry.file_name())
            .filter(|name| name.to_str().is_some_and(|name| name.ends_with(&end)))
            .collect();
        found.sort();
        match &found[..] {
            [] => Ok(usual),
            [one] => Ok(one.into()),
            [one, other, ..] => Err(format!(
                "--resume: {} and {} are both of the device with the serial number {serial}; name one by --output=DIRECTORY",
                one.display(),
                other.display()
            )),
        }
    }

    /// The facts of the header.
    pub fn facts(&self) -> Value {
        let mut facts = Map::new();
        facts.insert("name".to_owned(), self.path.display().to_string().into());
        facts.insert("size_bytes".to_owned(), self.capacity.into());
        if self.is_file {
            facts.insert("kind".to_owned(), "file".into());
        }
        let found = self.disk.as_ref().map(|disk| about::device(&self.path, Some(disk))).unwrap_or_default();
        for (name, value) in found {
            facts.entry(name).or_insert_with(|| value.into());
        }
        let interface =
            self.device.as_ref().and_then(|device| device.fact("identity", "transport")).map(FactValue::text);
        if let Some(interface) = interface {
            facts.insert("interface".to_owned(), interface.into());
        }
        for name in ["speed", "width"] {
            if let Some(link) = self.link(name) {
                facts.insert(format!("link_{name}"), link.into());
            }
        }
        Value::Object(facts)
    }

    /// The current speed or width of its PCI Express link.
    fn link(&self, name: &str) -> Option<String> {
        let directory = self.disk.as_ref()?.directory.join("device/device");
        let text = fs::read_to_string(directory.join(format!("current_link_{name}"))).ok()?;
        Some(text.trim().to_owned())
    }
}

/// A part of a file's name.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}

/// What no other disk has, from its directory in sysfs. (The serial number of an NVMe controller is that of all its namespaces.)
fn unique(directory: &Path) -> Option<String> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let found = ["wwid", "device/wwid", "serial"].into_iter().find_map(read)?;
    Some(found.trim().to_owned()).filter(|found| !found.is_empty())
}

fn identity(path: &Path, disk: Option<&Disk>, device: Option<&Device>) -> Result<Identity, String> {
    let found = fs::metadata(path).map_err(|error| iolite_types::describe_error(&error))?;
    let serial = device.and_then(|device| device.fact("identity", "serial")).map(FactValue::text);
    let sequence = disk.and_then(|disk| fs::read_to_string(disk.directory.join("diskseq")).ok());
    // The node of a device may be made anew; its number says which one it is.
    let file = match found.file_type().is_block_device() {
        true => (0, 0, found.rdev()),
        false => (found.dev(), found.ino(), 0),
    };
    Ok(Identity { serial: serial.filter(|serial| !serial.is_empty()), sequence, file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_with_another_name_finds_its_results() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("nvme1n1");
        fs::write(&file, vec![0; 1 << 20]).unwrap();
        let mut target = Target::of(&file.into(), true).unwrap();
        target.serial = Some("S 1".to_owned());
        target.unique = Some("eui.1".to_owned());
        let found = |target: &Target| target.place_of_before(directory.path()).unwrap();
        assert_eq!(found(&target), Path::new("nvme1n1-S_1.pts"), "there is none");
        for name in ["nvme9n1-S_1.pts", "nvme8n1-S_2.pts"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        assert_eq!(found(&target), Path::new("nvme9n1-S_1.pts"));
        // The serial number of a controller is that of all its namespaces.
        let doubtful = Target { unique: None, ..target.clone() };
        assert_eq!(found(&doubtful), Path::new("nvme1n1-S_1.pts"));
        fs::create_dir(directory.path().join("nvme7n1-S_1.pts")).unwrap();
        let why = target.place_of_before(directory.path()).unwrap_err();
        assert!(why.contains("nvme7n1-S_1.pts and nvme9n1-S_1.pts") && why.contains("--output="), "{why}");
        fs::create_dir(directory.path().join("nvme1n1-S_1.pts")).unwrap();
        assert_eq!(found(&target), Path::new("nvme1n1-S_1.pts"));
    }
}
