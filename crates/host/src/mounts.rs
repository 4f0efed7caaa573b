//! Mounts.

use crate::in_use::unescape;
use std::fs;
use std::path::{Path, PathBuf};

/// The mounts of this machine, as proc_pid_mountinfo(5) has them, read once.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    /// The mount point and the file system of each mount.
    all: Vec<(PathBuf, String)>,
}

impl Mounts {
    /// The current mounts.
    pub fn now() -> Mounts {
        Mounts::of(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    fn of(text: &str) -> Mounts {
        let mounts = text.lines().filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            Some((unescape(left.split(' ').nth(4)?).into(), right.split(' ').next()?.to_owned()))
        });
        Mounts { all: mounts.collect() }
    }

    /// The name of the file system at a path without symbolic links: `ext4`. The innermost mount counts, and of several
    /// at one place, the last.
    pub fn file_system(&self, place: &Path) -> Option<&str> {
        self.around(place).map(|(_, kind)| kind)
    }

    /// The file system of a directory that does not exist yet, for messages: ` on /mnt (ext4)`; empty if unknown.
    pub fn place_of(directory: &Path) -> String {
        let above = directory
            .ancestors()
            .map(|above| if above.as_os_str().is_empty() { Path::new(".") } else { above });
        let existing = above.filter_map(|above| above.canonicalize().ok()).next();
        let mounts = Mounts::now();
        let around = existing.as_ref().and_then(|existing| mounts.around(existing));
        around.map_or_else(String::new, |(point, kind)| format!(" on {} ({kind})", point.display()))
    }

    /// The mount point of that file system, and its name.
    pub fn around(&self, place: &Path) -> Option<(&Path, &str)> {
        let around = self.all.iter().filter(|(point, _)| place.starts_with(point));
        let innermost = around.max_by_key(|(point, _)| point.as_os_str().len());
        innermost.map(|(point, kind)| (point.as_path(), kind.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / /mnt/a\\040b rw shared:1 - xfs /dev/b rw\n\
                      3 1 0:3 / /mnt rw - tmpfs t rw\n4 1 0:4 / /mnt rw - btrfs t rw\n\
                      5 1 0:5 / /mnt/t\\011b\\134c rw - zfs t rw\n";
        let mounts = Mounts::of(mounts);
        let at = |path: &str| mounts.file_system(Path::new(path)).unwrap();
        assert_eq!((at("/mnt/a b/c"), at("/mnt/x"), at("/home")), ("xfs", "btrfs", "ext4"));
        assert_eq!((at("/mnt/t\tb\\c/d"), Mounts::default().file_system(Path::new("/"))), ("zfs", None));
    }
}
