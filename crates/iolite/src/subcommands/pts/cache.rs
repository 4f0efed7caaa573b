//! The volatile write cache: off for enterprise devices, on for clients'. It is set where there is a way, and restored at the end.

use super::target::Target;
use iolite_os::nvme::erasure::{self, Erasures};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// How the cache is switched.
enum Way {
    /// By Set Features of the controller.
    Nvme,
    /// By a file in sysfs, which has one of these words.
    File(PathBuf),
    /// The device has no such cache.
    Absent,
    /// Not at all, for this reason.
    Unknown(String),
}

/// What was done about the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Set {
    /// It is as wanted.
    Wanted,
    /// There is none.
    Absent,
    /// It could not be set, for this reason.
    Not(String),
}

/// Whether the cache is on; `None` = there is none, or it cannot be switched.
pub fn is_on(target: &Target) -> Option<bool> {
    current(target, &way(target)).ok().flatten()
}

/// Switches the cache.
pub fn set(target: &Target, is_on: bool) -> Set {
    let way = way(target);
    let was = match current(target, &way) {
        Ok(Some(was)) => was,
        Ok(None) => return Set::Absent,
        Err(why) => return Set::Not(why),
    };
    if was == is_on {
        return Set::Wanted;
    }
    let switched = switch(target, &way, is_on).and_then(|()| current(target, &way));
    match switched {
        Ok(Some(now)) if now == is_on => Set::Wanted,
        Ok(_) => Set::Not("the device took the command and did not obey it".to_owned()),
        Err(why) => Set::Not(why),
    }
}

fn way(target: &Target) -> Way {
    let Some(disk) = &target.disk else {
        return Way::Unknown("a file has the cache of its file system's device".to_owned());
    };
    match target.kind() {
        "NVMe namespace" => return Way::Nvme,
        "SCSI disk" | "ATA disk" => {
            let disks = fs::read_dir(disk.directory.join("device/scsi_disk")).into_iter().flatten().flatten();
            if let Some(found) = disks.map(|entry| entry.path().join("cache_type")).find(|path| path.exists())
            {
                return Way::File(found);
            }
        }
        "virtio disk" => {
            let found = disk.directory.join("cache_type");
            if found.exists() {
                return Way::File(found);
            }
        }
        "memory" | "null device (null_blk)" => return Way::Absent,
        _ => {}
    }
    Way::Unknown(format!("there is no known way to set it on a {}", target.kind()))
}

/// Whether the cache is on; `None` = there is none.
fn current(target: &Target, way: &Way) -> Result<Option<bool>, String> {
    match way {
        Way::Absent => Ok(None),
        Way::Unknown(why) => Err(why.clone()),
        Way::Nvme => {
            let file = File::open(&target.path).map_err(|error| error.to_string())?;
            let can = Erasures::of(file.as_raw_fd()).map_err(|error| error.to_string())?;
            if !can.has_write_cache {
                return Ok(None);
            }
            erasure::write_cache(file.as_raw_fd()).map(Some).map_err(|error| error.to_string())
        }
        Way::File(path) => {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            match text.trim() {
                "none" => Ok(None),
                // Drives may have a cache of reads as well: "write back, no read (daft)".
                text => Ok(Some(text.starts_with("write back"))),
            }
        }
    }
}

fn switch(target: &Target, way: &Way, is_on: bool) -> Result<(), String> {
    match way {
        Way::Nvme => {
            let file = File::options().read(true).write(true).open(&target.path);
            let file = file.map_err(|error| error.to_string())?;
            erasure::set_write_cache(file.as_raw_fd(), is_on).map_err(|error| error.to_string())
        }
        Way::File(path) => {
            let word = if is_on { "write back" } else { "write through" };
            fs::write(path, word).map_err(|error| format!("{}: {error}", path.display()))
        }
        Way::Absent | Way::Unknown(_) => Ok(()),
    }
}
