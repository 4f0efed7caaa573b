//! Control groups for block I/O.

use crate::in_use::unescape;
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// The version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlGroupVersion {
    /// The controller `blkio` has its own hierarchy.
    One,
    /// One hierarchy for all controllers.
    Two,
}

/// Where control groups for block I/O are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    /// The directory of the group that holds all others.
    pub root: PathBuf,
    /// The version.
    pub version: ControlGroupVersion,
}

impl Hierarchy {
    pub(crate) fn read() -> Result<Option<Hierarchy>, Refusal> {
        const MOUNTS: &str = "/proc/self/mounts";
        let mounts = fs::read_to_string(MOUNTS).map_err(|error| {
            let refusal = Refusal::from(error);
            Refusal { words: format!("{MOUNTS} cannot be read: {}", refusal.words), ..refusal }
        })?;
        Ok(Hierarchy::among(&mounts))
    }

    /// The hierarchy to use of those in `/proc/self/mounts`. If the controller `blkio` of version 1 is mounted, it is
    /// preferred, because jobs with a group have always used it.
    fn among(mounts: &str) -> Option<Hierarchy> {
        let find = |version: ControlGroupVersion| {
            mounts.lines().find_map(|line| {
                let fields: Vec<&str> = line.split(' ').collect();
                let &[_, root, kind, options, ..] = fields.as_slice() else { return None };
                let fits = match version {
                    ControlGroupVersion::One => {
                        kind == "cgroup" && options.split(',').any(|option| option == "blkio")
                    }
                    ControlGroupVersion::Two => kind == "cgroup2",
                };
                fits.then(|| Hierarchy { root: unescape(root).into(), version })
            })
        };
        find(ControlGroupVersion::One).or_else(|| find(ControlGroupVersion::Two))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ControlGroupVersion::{One, Two};

    #[test]
    fn the_controller_of_block_io_comes_first() {
        let unified = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let cpu = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        let block = "cgroup /sys/fs/my\\040groups cgroup rw,blkio 0 0\n";
        let at = |root: &str, version| Some(Hierarchy { root: root.into(), version });
        assert_eq!(Hierarchy::among(&format!("{cpu}{unified}")), at("/sys/fs/cgroup/unified", Two));
        assert_eq!(Hierarchy::among(&format!("{unified}{block}")), at("/sys/fs/my groups", One));
        assert_eq!(Hierarchy::among(cpu), None);
    }
}
