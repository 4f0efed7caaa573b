//! The rivals of a worker: others that write to the places that it verifies.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

/// Everything that a worker has to know about its rivals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rivals {
    /// The rivals in each file, by its index. A file that is missing here belongs to this worker alone.
    pub files: BTreeMap<usize, FileRivals>,
}

/// The rivals in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRivals {
    /// The numbers (in headers, from 1) of the rivals whose writes may be found.
    pub numbers: BTreeSet<u16>,
    /// The states of writers in an earlier run, each with its name for the file.
    pub states: BTreeSet<(PathBuf, String)>,
    /// Some of them divide their blocks in other ways, or trim: their blocks cannot be checked in places that this
    /// worker shares.
    pub differ: bool,
    /// Some of them trim: trimmed places contain no block.
    pub trim: bool,
    /// How the file is shared; `None` = no turns are taken.
    pub shared: Option<SharedFile>,
}

/// A file that rivals write to at the same time: its number among the places whose [owners](crate::Owners) are known.
/// `None`: its owners are not known.
pub type SharedFile = Option<usize>;

impl Rivals {
    /// The numbers of the rivals whose writes may be found, by index of the file.
    pub fn numbers(&self) -> HashMap<u32, Vec<u16>> {
        let files = self.files.iter().filter(|(_, rivals)| !rivals.numbers.is_empty());
        files.map(|(&file, rivals)| (file as u32, rivals.numbers.iter().copied().collect())).collect()
    }

    /// The states of writers in an earlier run, each with its name for the file.
    pub fn states(&self) -> impl Iterator<Item = &(PathBuf, String)> {
        self.files.values().flat_map(|rivals| &rivals.states)
    }

    /// Whether turns are taken in any file.
    pub fn take_turns(&self) -> bool {
        self.files.values().any(|rivals| rivals.shared.is_some())
    }

    /// How the file of this index is shared; `None` = no turns are taken there.
    pub fn shared(&self, file: usize) -> Option<SharedFile> {
        self.files.get(&file).and_then(|rivals| rivals.shared)
    }
}
