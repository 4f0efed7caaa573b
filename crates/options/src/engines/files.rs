//! Options of engines that work on files as such.

use super::own::{OwnOptions, named_by, own, own_options, place};
use super::{Completion, Facets, shared};
use crate::JobOptions;
use crate::definition::{Definition, Kind, Places};
use iolite_types::prefixed;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The system call that looks a name up (`stat_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatCall {
    /// stat(2), which follows a symbolic link.
    #[default]
    Stat,
    /// lstat(2), which does not follow links.
    Lstat,
    /// statx(2), with all fields requested.
    Statx,
}

own_options! {
    /// The options of `filestat` and `dirstat`.
    pub struct StatOptions declared by STAT with places {
        /// The system call that looks up a name.
        pub stat_type: StatCall,
        /// Names are looked up through io_uring.
        pub uring: bool,
    }
}

impl Places for StatOptions {
    fn uring(&mut self) -> Option<&mut bool> {
        Some(&mut self.uring)
    }
}

impl OwnOptions for StatOptions {
    fn facets(&self, facets: Facets) -> Facets {
        acting(facets, self.uring)
    }
}

own_options! {
    /// The options of `filecreate`, `filedelete`, `dircreate` and `dirdelete`.
    pub struct NameOptions declared by NAME with places {
        /// Names are acted on through io_uring.
        pub uring: bool,
    }
}

impl Places for NameOptions {
    fn uring(&mut self) -> Option<&mut bool> {
        Some(&mut self.uring)
    }
}

impl OwnOptions for NameOptions {
    fn facets(&self, facets: Facets) -> Facets {
        acting(facets, self.uring)
    }
}

/// The facets of an engine that acts on names, synchronously or through io_uring.
fn acting(facets: Facets, uring: bool) -> Facets {
    Facets { completion: if uring { Completion::Kernel } else { facets.completion }, ..facets }
}

static STAT_TYPE: Definition = Definition::engine("stat_type", Kind::Str, "Which system call looks it up")
    .default("stat")
    .keywords(&[("stat", "stat(2)"), ("lstat", "lstat(2)"), ("statx", "statx(2), where the system has it")])
    .lands_in_engine(|own, given| {
        place::<StatOptions>(own)?.stat_type = match given.keyword()? {
            "lstat" => StatCall::Lstat,
            "statx" => StatCall::Statx,
            _ => StatCall::Stat,
        };
        Ok(())
    });

/// `filestat` and `dirstat`
pub static STAT: &[&Definition] = &[&STAT_TYPE, &shared::URING];

/// `filecreate`, `filedelete`, `dircreate` and `dirdelete`
pub static NAME: &[&Definition] = &[&shared::URING];

own_options! {
    /// The options of `filewrite`.
    pub struct FileWriteOptions declared by FILE_WRITE {
        /// Each file is synced before it is closed.
        pub file_sync: bool,
    }
}

impl OwnOptions for FileWriteOptions {}

static FILE_SYNC: Definition =
    Definition::engine("file_sync", Kind::Bool, "Sync each file before it is closed")
        .default("0")
        .lands_in_engine(own!(FileWriteOptions.file_sync, boolean()));

/// `filewrite`
pub static FILE_WRITE: &[&Definition] = &[&FILE_SYNC];

own_options! {
    /// The options of `filerename` and `filelink`.
    pub struct NewNameOptions declared by NEW_NAME {
        /// The end of the new name, behind the old one.
        pub new_suffix: String,
        /// The directory of the new name; empty = that of the old one.
        pub new_directory: String,
    }
}

impl OwnOptions for NewNameOptions {
    fn obstacle_to_run(&self, job: &JobOptions) -> Option<String> {
        let _ = job;
        if self.new_suffix.contains('/') {
            return Some(format!(
                "new_suffix={}: a suffix has no slash; new_directory= names another directory",
                self.new_suffix
            ));
        }
        None
    }
}

static NEW_SUFFIX: Definition = Definition::engine(
    "new_suffix",
    Kind::Str,
    "The end of the new name, behind the old one; by default .new, or nothing with new_directory",
)
.lands_in_engine(own!(NewNameOptions.new_suffix, string()));
static NEW_DIRECTORY: Definition = Definition::engine(
    "new_directory",
    Kind::Str,
    "The directory of new names; by default that of the old name",
)
.names_files(|job| named_by(job, |own: &NewNameOptions| &own.new_directory))
.lands_in_engine(own!(NewNameOptions.new_directory, string()));

/// `filerename` and `filelink`
pub static NEW_NAME: &[&Definition] = &[&NEW_SUFFIX, &NEW_DIRECTORY];

/// The largest value of an extended attribute: XATTR_SIZE_MAX of linux/limits.h.
const MOST_XATTR: u64 = 65_536;

own_options! {
    /// The options of `filesetxattr` and `filegetxattr`.
    pub struct XattrOptions declared by XATTR {
        /// The attribute's name with its namespace.
        pub xattr_name: String,
        /// Bytes of its value.
        pub xattr_size: u32,
    }
}

impl OwnOptions for XattrOptions {
    fn obstacle_to_run(&self, job: &JobOptions) -> Option<String> {
        let is_named = self
            .xattr_name
            .split_once('.')
            .is_some_and(|(space, name)| !space.is_empty() && !name.is_empty());
        (!is_named).then(|| {
            format!(
                "ioengine={}: xattr_name={}: a name begins with its namespace, such as user.iolite",
                job.ioengine, self.xattr_name
            )
        })
    }
}

static XATTR_NAME: Definition =
    Definition::engine("xattr_name", Kind::Str, "The name of the extended attribute, with its namespace")
        .default("user.iolite")
        .lands_in_engine(own!(XattrOptions.xattr_name, string()));
static XATTR_SIZE: Definition =
    Definition::engine("xattr_size", Kind::Int, "Bytes of the extended attribute's value")
        .default("64")
        .range(1, MOST_XATTR as i64)
        .lands_in_engine(|own, given| {
            place::<XattrOptions>(own)?.xattr_size = given.integer()? as u32;
            Ok(())
        });

/// `filesetxattr` and `filegetxattr`
pub static XATTR: &[&Definition] = &[&XATTR_NAME, &XATTR_SIZE];

own_options! {
    /// The options of `dirread`.
    pub struct DirReadOptions declared by DIR_READ {
        /// Each entry is looked up.
        pub entry_stat: bool,
        /// Entries match whose name contains this; empty = all.
        pub entry_name: String,
        /// Entries match that are files of this many bytes; 0 = all.
        pub entry_size: u64,
        /// Entries match that have changed since this file did; empty = all.
        pub entry_newer: String,
    }
}

impl OwnOptions for DirReadOptions {}

impl DirReadOptions {
    /// Whether entries have to be looked up, for the figures or to know whether they match.
    pub fn looks_up(&self) -> bool {
        self.entry_stat || self.entry_size > 0 || !self.entry_newer.is_empty()
    }
}

static ENTRY_STAT: Definition =
    Definition::engine("entry_stat", Kind::Bool, "Also look up each entry (statx(2))")
        .default("0")
        .lands_in_engine(own!(DirReadOptions.entry_stat, boolean()));
static ENTRY_NAME: Definition =
    Definition::engine("entry_name", Kind::Str, "Count entries as matching only if their name contains this")
        .lands_in_engine(own!(DirReadOptions.entry_name, string()));
static ENTRY_SIZE: Definition = Definition::engine(
    "entry_size",
    Kind::Int,
    "Count entries as matching only if they are files of this many bytes",
)
.default("0")
.range(0, i64::MAX)
.lands_in_engine(|own, given| {
    place::<DirReadOptions>(own)?.entry_size = given.integer()? as u64;
    Ok(())
});
static ENTRY_NEWER: Definition = Definition::engine(
    "entry_newer",
    Kind::Str,
    "Count entries as matching only if they changed after this file",
)
.names_files(|job| named_by(job, |own: &DirReadOptions| &own.entry_newer))
.lands_in_engine(own!(DirReadOptions.entry_newer, string()));

/// `dirread`
pub static DIR_READ: &[&Definition] = &[&ENTRY_STAT, &ENTRY_NAME, &ENTRY_SIZE, &ENTRY_NEWER];

own_options! {
    /// The options of `e4defrag`.
    pub struct E4defragOptions declared by E4DEFRAG {
        /// The file that extents are swapped with, on the same file system, below the `directory` of the job. It is
        /// created if it is missing.
        pub donorname: String,
        /// Each I/O allocates the donor's space; otherwise it is allocated once before the first I/O.
        pub inplace: bool,
    }
}

impl OwnOptions for E4defragOptions {
    fn obstacle_to_run(&self, job: &JobOptions) -> Option<String> {
        let what = match self.donorname.is_empty() {
            true => "donorname= is missing, a file on the same file system to swap blocks with",
            false if job.files.directory.len() > 1 => {
                "donorname= is a file below directory=, which has to be one directory"
            }
            false => return None,
        };
        Some(format!("ioengine=e4defrag: {what}"))
    }
}

impl E4defragOptions {
    /// Looks for the donor in the job's directory, as for its files: absolute names are below it as well.
    pub(crate) fn settle_donor(&mut self, directory: &Path) {
        if !self.donorname.is_empty() {
            self.donorname = prefixed(directory, Path::new(&self.donorname)).display().to_string();
        }
    }
}

static DONORNAME: Definition =
    Definition::engine("donorname", Kind::Str, "File that extents are swapped with")
        .names_files(|job| named_by(job, |own: &E4defragOptions| &own.donorname))
        .lands_in_engine(own!(E4defragOptions.donorname, string()));
static INPLACE: Definition =
    Definition::engine("inplace", Kind::Int, "When the other file gets its space: 0 at the start, 1 per I/O")
        .range(0, 1)
        .lands_in_engine(|own, given| {
            place::<E4defragOptions>(own)?.inplace = given.integer()? != 0;
            Ok(())
        });

/// `e4defrag`
pub static E4DEFRAG: &[&Definition] = &[&DONORNAME, &INPLACE];
