//! Describes a device: for `iolite device`, and for the facts about the storage of a run in its report.
//!
//! Every user can read sysfs. Commands to the device itself need permission to open it. Queries that are not permitted
//! are listed in [`Device::untold`]; they are not an error.

mod builds;
mod nvme;
mod scsi;
mod sysfs;

use crate::device_class::DeviceClass;
use crate::device_number::DeviceNumber;
use crate::disks::Disk;
use crate::files::{EntryKind, FileFacts};
use crate::mounts::Mounts;
use crate::refusal::Refusal;
use crate::{disks, files};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The facts about a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// The kernel's name for it: `nvme0n1`.
    pub name: String,
    /// Its kind: `NVMe namespace`.
    pub kind: &'static str,
    /// The facts, by subject.
    pub sections: Vec<Section>,
    /// The devices that it is built on.
    pub below: Vec<Device>,
    /// Queries that failed, and why.
    pub untold: Vec<String>,
}

/// The facts about one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The subject: `queue`.
    pub name: &'static str,
    /// Whether there may be several rows of the same facts, as for formats.
    pub is_list: bool,
    /// Facts; a single row if it is not a list.
    pub rows: Vec<Vec<Fact>>,
}

/// A fact: its name, which ends with the unit, and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// `size_bytes`, `temperature_celsius`, `model`.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// A count, or an amount in the unit that ends the fact's name.
    Number(u64),
    /// The same with a fraction.
    Fraction(f64),
    /// Yes or no.
    Is(bool),
}

/// The device that a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The kind of the path: `block device`, `character device`, `file`.
    pub what: &'static str,
    /// The class of a character device.
    pub class: Option<DeviceClass>,
    /// The file system that a file is on.
    pub file_system: Option<String>,
    /// The partition that a block device is: its name and its bytes.
    pub partition: Option<(String, u64)>,
    /// The device at the path, or the whole disk of the partition, or the device that holds the file.
    pub device: Device,
}

/// Why there is no device at a path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NoDevice {
    #[error("no such file or device; name a block device, a character device that holds data, or a file")]
    Nothing,
    #[error("it is a directory; name a device, or a file in it")]
    Directory,
    #[error("it is a FIFO or a socket, and no device is behind it; name a device or a file")]
    NotStored,
    #[error(
        "it is a character device that holds no data; name one that does (/dev/ng0n1, /dev/sg0), or a block device"
    )]
    NoData,
    #[error("it lies on {0}, which is on no disk of this machine; name a device, or a file on a disk")]
    NoDisk(String),
    #[error("{0}")]
    System(Refusal),
}

impl Value {
    /// As text, without a unit.
    pub fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Fraction(number) => number.to_string(),
            Value::Is(is) => if *is { "yes" } else { "no" }.to_owned(),
        }
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Fraction(number)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Value {
        Value::Is(is)
    }
}

/// Facts in order, without those that are unknown.
#[derive(Debug, Default)]
struct Facts(Vec<Fact>);

impl Facts {
    fn add(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        self.0.extend(value.map(|value| Fact { name, value: value.into() }));
    }

    fn with(mut self, name: &'static str, value: Option<impl Into<Value>>) -> Facts {
        self.add(name, value);
        self
    }
}

impl Device {
    /// The device at a path, or the one that holds the file of this name.
    ///
    /// # Errors
    /// There is no such device.
    pub fn at(path: &Path) -> Result<Found, NoDevice> {
        let found = files::look(path).map_err(NoDevice::System)?.ok_or(NoDevice::Nothing)?;
        match found.kind {
            EntryKind::Directory => return Err(NoDevice::Directory),
            EntryKind::Char => return of_character_device(path, &found),
            EntryKind::Block | EntryKind::Regular => {}
            EntryKind::Pipe => return Err(NoDevice::NotStored),
        }
        let is_block = found.is_block_device();
        let file_system = if is_block { None } else { file_system(path) };
        let number = disks::device_below(path);
        let disk = number.and_then(disks::directory_of).and_then(|directory| Disk::read(&directory));
        let Some(disk) = disk else {
            let name = file_system
                .map_or_else(|| "a file system".to_owned(), |kind| format!("a {kind} file system"));
            return Err(NoDevice::NoDisk(name));
        };
        let node = if is_block { Some(path.to_owned()) } else { node_of(&disk.directory) };
        let partition = number.filter(|_| is_block).and_then(partition);
        Ok(Found {
            what: if is_block { "block device" } else { "file" },
            class: None,
            file_system,
            partition,
            device: Device::of(&disk, node.as_deref()),
        })
    }

    /// A disk; commands are sent to it through this node, if there is one.
    pub fn of(disk: &Disk, node: Option<&Path>) -> Device {
        let mut device = builds::of(&disk.name, &disk.directory, node);
        device
            .below
            .extend(disk.below.iter().map(|below| Device::of(below, node_of(&below.directory).as_deref())));
        device
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// A fact by the names of its section and itself; for a list, the fact in the first row.
    pub fn fact(&self, section: &str, name: &str) -> Option<&Value> {
        let row = self.section(section)?.rows.first()?;
        row.iter().find(|fact| fact.name == name).map(|fact| &fact.value)
    }

    /// The value of a fact, if it is a number.
    pub fn number(&self, section: &str, name: &str) -> Option<u64> {
        match self.fact(section, name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Adds facts about a subject, if there are any.
    fn tell(&mut self, name: &'static str, facts: Facts) {
        if facts.0.is_empty() {
            return;
        }
        match self.sections.iter_mut().find(|section| section.name == name && !section.is_list) {
            Some(known) => {
                // A later, more specific source overrides earlier facts.
                known.rows[0].retain(|old| facts.0.iter().all(|new| new.name != old.name));
                known.rows[0].extend(facts.0);
            }
            None => self.sections.push(Section { name, is_list: false, rows: vec![facts.0] }),
        }
    }

    /// Adds a list of facts about a subject, if it is not empty.
    fn list(&mut self, name: &'static str, rows: Vec<Facts>) {
        if !rows.is_empty() {
            let rows = rows.into_iter().map(|facts| facts.0).collect();
            self.sections.push(Section { name, is_list: true, rows });
        }
    }
}

/// The node of the block device that sysfs describes in this directory, if it can be found.
pub(crate) fn node_of(directory: &Path) -> Option<PathBuf> {
    let number = DeviceNumber::parse(&std::fs::read_to_string(directory.join("dev")).ok()?)?;
    files::device_node(number)
}

/// The file system that a file is on.
fn file_system(path: &Path) -> Option<String> {
    let place = std::fs::canonicalize(path).ok()?;
    Mounts::now().file_system(&place).map(str::to_owned)
}

/// The partition of this number: its name and its bytes.
fn partition(number: DeviceNumber) -> Option<(String, u64)> {
    let directory = std::fs::canonicalize(number.directory()).ok()?;
    if !directory.join("partition").exists() {
        return None;
    }
    let name = directory.file_name()?.to_string_lossy().into_owned();
    Some((name, sysfs::number(&directory, "size")?.saturating_mul(512)))
}

fn of_character_device(path: &Path, found: &FileFacts) -> Result<Found, NoDevice> {
    let (Some(class), Some(number)) = (found.class, found.device) else { return Err(NoDevice::NoData) };
    let block = class.block_device(number).and_then(disks::directory_of);
    let device = match (class, block) {
        // Other views of flash are read-only, and have no facts about it.
        (class, Some(directory)) if class.passes_commands() => {
            let disk = Disk::read(&directory).ok_or(NoDevice::NoData)?;
            // (Questions to a node of bsg have another form; the block device gives the same answers.)
            let of_blocks = (class == DeviceClass::ScsiBsg).then(|| node_of(&directory)).flatten();
            Device::of(&disk, Some(of_blocks.as_deref().unwrap_or(path)))
        }
        _ => {
            let directory = PathBuf::from(format!("/sys/dev/char/{}:{}", number.major, number.minor));
            let directory = std::fs::canonicalize(&directory).unwrap_or(directory);
            let name =
                directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            builds::of_characters(class, &name, &directory, path)
        }
    };
    Ok(Found { what: "character device", class: Some(class), file_system: None, partition: None, device })
}

/// The note about facts that the user may not query.
fn hidden(what: &str, error: &std::io::Error) -> String {
    let errno = iolite_os::errno_of(error);
    if [libc::EACCES, libc::EPERM].contains(&errno) {
        let words = iolite_types::describe_error(&std::io::Error::from_raw_os_error(errno));
        return format!("{what}: {words}; root would see it");
    }
    format!("{what}: {}", iolite_types::describe_error(error))
}
