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
