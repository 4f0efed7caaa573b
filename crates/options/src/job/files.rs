//! The files of a job: their names, how they are created, opened and removed.

use crate::typed::{FadviseHint, Fallocate, FileService, FileType, LockFile};

options! {
    /// The files of a job: their names, how they are created, opened and removed.
    pub struct FileOptions at files {
        pub directory: Vec<String>,
        /// The names, with the directory that they are in.
        pub filename: Vec<String>,
        pub filename_format: String,
        /// How many files the numbers in the names of each clone begin behind those of the clone before.
        pub filenum_increment: u32,
        pub unique_filename: bool,
        /// The address of the client for which a server runs the job; empty = no client.
        pub client: String,
        pub opendir: Option<String>,
        pub nrfiles: u32,
        /// The first number of a file.
        pub filenum_first: u32,
        /// The levels of the tree that files are spread over; 0 = there is none.
        pub tree_depth: u32,
        pub tree_breadth: u32,
        /// `filename` was given in the job's own section (or, for defaults, in a section of defaults): giving it again
        /// there adds names, as in fio.
        pub names_are_own: bool,
        /// The directory that the names in `filename` are in: the first `directory`, if that was given before them.
        pub names_in: Option<String>,
        /// `nrfiles` was given after `filename` or `opendir`: it limits how many of their files are used.
        pub nrfiles_limits_names: bool,
        /// 0 = as many as there are files.
        pub openfiles: u32,
        pub file_service_type: FileService,
        pub filetype: FileType,
        pub lockfile: LockFile,
        pub create_serialize: bool,
        pub create_fsync: bool,
        pub create_on_open: bool,
        pub create_only: bool,
        pub allow_file_create: bool,
        pub allow_mounted_write: bool,
        pub overwrite: bool,
        pub fallocate: Fallocate,
        pub pre_read: bool,
        pub invalidate: bool,
        pub fadvise_hint: FadviseHint,
        pub unlink: bool,
        pub unlink_each_loop: bool,
    }
}

impl FileOptions {
    /// Whether an option names the files, or a directory in which they are found.
    pub fn names_files(&self) -> bool {
        !self.filename.is_empty() || self.opendir.is_some()
    }

    /// The most names that are used: `nrfiles`, if it limits them.
    pub fn most_names(&self) -> usize {
        if self.nrfiles_limits_names { self.nrfiles as usize } else { usize::MAX }
    }

    /// The option by which the job removes its files, if it does.
    pub fn removal(&self) -> Option<&'static str> {
        let asked = [("unlink", self.unlink), ("unlink_each_loop", self.unlink_each_loop)];
        asked.into_iter().find(|&(_, asked)| asked).map(|(option, _)| option)
    }

    /// A name in `directory` for the client: clients of one server must not share files, unless they ask for it
    /// (`unique_filename=0`).
    pub fn name_for_client(&self, name: &str) -> String {
        match self.unique_filename && !self.client.is_empty() {
            true => format!("{}.{name}", self.client),
            false => name.to_owned(),
        }
    }
}
