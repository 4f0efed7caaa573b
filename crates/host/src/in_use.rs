//! Whether the system uses a block device, so that writing to it would destroy something.
//!
//! A device is in use when it, one of its partitions, or the disk that it is a partition of is mounted or is swap; when
//! another device (LVM, md, dm, bcache) is built on it; or when the kernel will not open it exclusively, which also
//! detects users that are not listed anywhere. A character device that holds data is in use when the block device that
//! shows the same data is in use, or when UBI is built on it.

use crate::device_class::{DeviceClass, ubi_on};
use crate::device_number::DeviceNumber;
use crate::files::{device_node, look};
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Why a device must not be written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InUse {
    /// It (or a related device) is mounted at this place.
    Mounted(String),
    /// It (or a related device) is swap.
    Swap,
    /// Another device is built on it.
    Held(String),
    /// The kernel refuses to open it exclusively.
    Busy,
    /// Unknown, for this reason.
    Unknown(String),
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InUse::Mounted(place) => write!(f, "it is mounted on {place}"),
            InUse::Swap => f.write_str("it is used as swap"),
            InUse::Held(by) => write!(f, "the device {by} is built on it"),
            InUse::Busy => f.write_str("the system holds it open exclusively"),
            InUse::Unknown(why) => write!(f, "it cannot be told whether it is in use: {why}"),
        }
    }
}

/// Why the device at this path is in use, or may be; `None` when it is free, or holds no data.
pub(crate) fn in_use(path: &Path) -> Option<InUse> {
    let found = look(path).ok()??;
    // Passthrough commands bypass the protection of the block device, so it must not be in use at all.
    let is_generic = found.class.is_some_and(DeviceClass::passes_commands);
    let (device, node) = match found.class {
        None => (found.block_device()?, Some(path.to_owned())),
        Some(class) => match class.block_device(found.device?) {
            Some(device) => (device, device_node(device)),
            None if is_generic => {
                return Some(InUse::Unknown(
                    "/sys does not show which block device holds its data".to_owned(),
                ));
            }
            None => return None,
        },
    };
    let is_flash = found.class == Some(DeviceClass::Flash);
    if is_flash && let Some(ubi) = ubi_on(device.minor) {
        return Some(InUse::Held(ubi));
    }
    let (mounts, swaps) = match tables(Path::new("/proc")).and_then(|tables| {
        // Without this directory, related devices cannot be found either. Flash only has a block device if mtdblock is
        // loaded.
        if !is_flash {
            explained(&device.directory(), fs::metadata(device.directory()))?;
        }
        Ok(tables)
    }) {
        Ok(tables) => tables,
        Err(why) => return Some(InUse::Unknown(why.words)),
    };
    let family = family(device);
    if let Some(place) = mounts.into_iter().find(|(mounted, _)| family.contains(mounted)) {
        return Some(InUse::Mounted(place.1));
    }
    if swaps.iter().any(|swap| family.contains(swap)) {
        return Some(InUse::Swap);
    }
    for &member in &family {
        if let Some(holder) = names_in(&member.directory().join("holders")).into_iter().next() {
            return Some(InUse::Held(holder));
        }
    }
    if let Some(by) = loop_devices().into_iter().find(|(_, below)| family.contains(below)) {
        return Some(InUse::Held(by.0));
    }
    held_exclusively(node.as_deref(), is_generic)
}

/// Whether the kernel refuses to open the block device exclusively. If it cannot be queried, a job that opens the block
/// device itself fails anyway; a job that uses the generic device does not (`is_generic`).
fn held_exclusively(node: Option<&Path>, is_generic: bool) -> Option<InUse> {
    let unknown = |why: String| is_generic.then_some(InUse::Unknown(why));
    let Some(node) = node else {
        return unknown("its block device has no node below /dev".to_owned());
    };
    match fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(node) {
        Ok(_) => None,
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Some(InUse::Busy),
        Err(error) => unknown(Refusal::from(error).about(node.display()).words),
    }
}

/// Why the system uses a regular file, or may: a loop device is built on it, or it is swap.
pub fn file_in_use(path: &Path) -> Option<InUse> {
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    let unknown = |path: &Path, error: io::Error| {
        Some(InUse::Unknown(Refusal::from(error).about(path.display()).words))
    };
    let own = match identity(path) {
        Ok(own) => own,
        Err(error) => return unknown(path, error),
    };
    let is_same = |name: &str| identity(Path::new(name)).is_ok_and(|found| found == own);
    let swaps = Path::new("/proc/swaps");
    match fs::read_to_string(swaps) {
        Ok(text) if swap_names(&text).any(|name| is_same(&name)) => return Some(InUse::Swap),
        Ok(_) => {}
        Err(error) => return unknown(swaps, error),
    }
    let blocks = Path::new("/sys/block");
    if let Err(error) = fs::read_dir(blocks) {
        return unknown(blocks, error);
    }
    let loops = names_in(blocks).into_iter().filter(|name| name.starts_with("loop"));
    loops.into_iter().find(|name| backing_file(name).is_some_and(|file| is_same(&file))).map(InUse::Held)
}

/// The file below a loop device.
fn backing_file(name: &str) -> Option<String> {
    let file = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).ok()?;
    Some(file.trim_end_matches('\n').to_owned())
}

fn block_device(path: &Path) -> Option<DeviceNumber> {
    look(path).ok()??.block_device()
}

/// The device, its partitions, and the disk that it is a partition of.
fn family(device: DeviceNumber) -> HashSet<DeviceNumber> {
    let directory = device.directory();
    let mut family = HashSet::from([device]);
    let number_of = |directory: &Path| {
        fs::read_to_string(directory.join("dev")).ok().and_then(|text| DeviceNumber::parse(&text))
    };
    for name in names_in(&directory) {
        let child = directory.join(name);
        if child.join("partition").exists() {
            family.extend(number_of(&child));
        }
    }
    if directory.join("partition").exists()
        && let Ok(real) = fs::canonicalize(&directory)
        && let Some(parent) = real.parent()
    {
        family.extend(number_of(parent));
    }
    family
}

/// Loop devices on top of block devices, each with the device below. The kernel does not list them as holders.
fn loop_devices() -> Vec<(String, DeviceNumber)> {
    let backing = |name: &String| block_device(Path::new(&backing_file(name)?));
    names_in(Path::new("/sys/block"))
        .into_iter()
        .filter(|name| name.starts_with("loop"))
        .filter_map(|name| Some((name.clone(), backing(&name)?)))
        .collect()
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Mounted devices with their mount points, and swap devices.
type Tables = (Vec<(DeviceNumber, String)>, Vec<DeviceNumber>);

/// Reads the tables of the process file system that is mounted at this path. A failure to read them is an error: a
/// device in use must not be taken for a free one.
fn tables(proc: &Path) -> Result<Tables, Refusal> {
    let read = |name: &str| explained(&proc.join(name), fs::read_to_string(proc.join(name)));
    Ok((parse_mounts(&read("self/mountinfo")?, block_device), parse_swaps(&read("swaps")?)))
}

/// The result, or a refusal that names the file.
fn explained<T>(path: &Path, result: std::io::Result<T>) -> Result<T, Refusal> {
    result.map_err(|error| Refusal::from(error).about(path.display()))
}

/// Mounted devices with their mount points. File systems over several devices (btrfs) have an anonymous number in the
/// third field and one of their devices as the source, so both are looked at.
///
/// The format is documented in proc_pid_mountinfo(5).
fn parse_mounts(
    text: &str,
    device_of: impl Fn(&Path) -> Option<DeviceNumber>,
) -> Vec<(DeviceNumber, String)> {
    let mut mounts = Vec::new();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let (Some(number), Some(place)) = (fields.nth(2), fields.nth(1)) else { continue };
        let place = unescape(place);
        if let Some(number) = DeviceNumber::parse(number) {
            mounts.push((number, place.clone()));
        }
        let source = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').nth(1));
        if let Some(device) = source.and_then(|source| device_of(Path::new(&unescape(source)))) {
            mounts.push((device, place));
        }
    }
    mounts
}

/// `\040` and its like stand for white space and backslashes in the kernel's tables.
pub(crate) fn unescape(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(value) if byte == b'\\' => {
                plain.push(value);
                rest = &tail[3..];
            }
            _ => {
                plain.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The format is documented in proc_swaps(5).
fn parse_swaps(text: &str) -> Vec<DeviceNumber> {
    swap_names(text).filter_map(|name| block_device(Path::new(&name))).collect()
}

fn swap_names(text: &str) -> impl Iterator<Item = String> {
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(unescape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(major: u32, minor: u32) -> DeviceNumber {
        DeviceNumber { major, minor }
    }

    #[test]
    fn mountinfo_gives_number_and_source() {
        let text = "36 35 98:0 / /mnt/a\\040b rw,noatime master:1 - ext4 /dev/root rw\n\
                    37 35 0:45 / /srv rw - btrfs /dev/sdb rw\n";
        let mounts = parse_mounts(text, |path| (path == Path::new("/dev/sdb")).then_some(number(8, 16)));
        assert_eq!(
            mounts,
            [
                (number(98, 0), "/mnt/a b".into()),
                (number(0, 45), "/srv".into()),
                (number(8, 16), "/srv".into())
            ]
        );
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape("a\\040b\\134c\\"), "a b\\c\\");
    }

    #[test]
    fn files_that_are_not_block_devices_are_not_in_use() {
        assert_eq!(in_use(Path::new("/dev/null")), None);
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(in_use(&directory.path().join("none")), None);
    }

    #[test]
    fn generic_devices_are_not_free_if_their_block_device_cannot_be_asked() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("nvme0n1");
        let unknown = |node: Option<&Path>| match held_exclusively(node, true) {
            Some(InUse::Unknown(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(unknown(None), "its block device has no node below /dev");
        let why = unknown(Some(&missing));
        assert!(why.contains("nvme0n1") && why.ends_with("No such file or directory"), "{why}");
        assert_eq!([held_exclusively(None, false), held_exclusively(Some(&missing), false)], [None, None]);
        fs::write(&missing, "").unwrap();
        assert_eq!(held_exclusively(Some(&missing), true), None);
    }

    #[test]
    fn unreadable_tables_are_an_error() {
        let proc = tempfile::tempdir().unwrap();
        let missing = |name: &str| {
            let why = tables(proc.path()).unwrap_err().words;
            assert!(why.contains(name) && why.ends_with("No such file or directory"), "{why}");
            let text = InUse::Unknown(why).to_string();
            assert!(text.starts_with("it cannot be told whether it is in use: "), "{text}");
        };
        missing("self/mountinfo");
        fs::create_dir(proc.path().join("self")).unwrap();
        fs::write(proc.path().join("self/mountinfo"), "36 35 98:0 / /mnt rw - ext4 none rw\n").unwrap();
        missing("swaps");
        fs::write(proc.path().join("swaps"), "Filename Type Size Used Priority\n").unwrap();
        assert_eq!(tables(proc.path()), Ok((vec![(number(98, 0), "/mnt".into())], vec![])));
    }
}
