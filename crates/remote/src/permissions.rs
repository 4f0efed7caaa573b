//! What the clients of an agent may do. The process of a run checks its jobs against this (`client_run.rs` and
//! `served_files.rs` of the program), and the kernel confines it ([`crate::confine`]).

use crate::child::with;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// An argument of the process of a run: see [`Permissions::exec`].
const EXEC: &str = "exec";
/// The same: see [`Permissions::changes`].
const CHANGES: &str = "changes";
/// The beginning of an argument that names a file or directory that may be used.
const ONLY: &str = "only=";

/// The permissions of an agent's clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Run programs, and change settings of the machine.
    pub exec: bool,
    /// Write, trim, create and remove files.
    pub changes: bool,
    /// Use only these files and directories: see [`crate::confine`]. Empty = all.
    pub only: Vec<PathBuf>,
}

impl Permissions {
    /// Reads the permissions from the arguments of a command line.
    pub fn of(words: &[OsString]) -> Permissions {
        let has = |wanted: &str| words.iter().any(|word| word == wanted);
        let only = words.iter().filter_map(|word| word.as_bytes().strip_prefix(ONLY.as_bytes()));
        let only = only.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
        Permissions { exec: has(EXEC), changes: has(CHANGES), only }
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = OsString> {
        let can = [(EXEC, self.exec), (CHANGES, self.changes)].into_iter();
        let can = can.filter_map(|(word, has)| has.then_some(OsString::from(word)));
        can.chain(self.only.iter().map(|path| with(ONLY, path)))
    }
}
