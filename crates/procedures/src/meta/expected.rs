//! The tree on disk that the phases so far must have left.

use super::{Course, EASY_TRANSFER, HARD_FILE, HARD_TRANSFER, Phase};

/// A file or a directory of workers. (The directories that they are in are not listed.)
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its path below the directory of the test.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// It has the extended attribute.
    pub has_xattr: bool,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file of this size, with so many names.
    File {
        /// Bytes.
        size: u64,
        /// Names.
        links: u64,
    },
    /// A file of at least this size.
    AtLeast(u64),
}

/// The extended attribute of `setxattr`, and the bytes of its value: the defaults of the engine.
pub const XATTR: (&str, usize) = ("user.iolite", 64);

impl Course {
    /// All entries that must be there now.
    pub fn expected(&self) -> impl Iterator<Item = Entry> + '_ {
        let workers = || {
            (0..self.setup.machines)
                .flat_map(|machine| (0..self.setup.tasks).map(move |task| format!("{machine}.{task}")))
        };
        let each = move |count: u64| {
            workers().flat_map(move |worker| (0..count).map(move |number| (worker.clone(), number)))
        };
        let is_there = |made: &[Phase], gone: &[Phase]| {
            made.iter().any(|phase| self.has_done(*phase)) && !gone.iter().any(|phase| self.has_done(*phase))
        };
        let has_files =
            is_there(&[Phase::Create, Phase::MdtestEasyWrite], &[Phase::Unlink, Phase::MdtestEasyDelete]);
        let at = |phase: Phase| self.done.iter().position(|done| *done == phase);
        let (link, rename) = (at(Phase::Link), at(Phase::Rename));
        let has_xattr = self.has_done(Phase::Setxattr);
        let size = if self.has_done(Phase::Create) { self.setup.size } else { 0 };
        let links = u64::from(has_files) + u64::from(link.is_some());
        let file = Kind::File { size, links };
        let of_files = |is: bool| if is { self.made.files } else { 0 };
        let entry = |path, kind, has_xattr| Entry { path, kind, has_xattr };
        let suffix = if rename.is_some() { ".new" } else { "" };
        // A link has the name that its file had then, with an end of its own.
        let link_suffix = if rename.is_some() && rename < link { ".new.link" } else { ".link" };
        let files = each(of_files(has_files))
            .map(move |(worker, number)| entry(self.path(&worker, "f", number) + suffix, file, has_xattr));
        let linked = each(of_files(link.is_some())).map(move |(worker, number)| {
            entry(self.path(&worker, "f", number) + link_suffix, file, has_xattr)
        });
        let count = if is_there(&[Phase::Mkdir], &[Phase::Rmdir]) { self.made.directories } else { 0 };
        let directories = each(count)
            .map(move |(worker, number)| entry(self.path(&worker, "d", number), Kind::Directory, false));
        let count = if is_there(&[Phase::MdtestHardWrite], &[Phase::MdtestHardDelete]) {
            self.made.hard_files
        } else {
            0
        };
        let hard = each(count).map(move |(worker, number)| {
            entry(format!("hard/{worker}.f{number}"), Kind::File { size: HARD_FILE, links: 1 }, false)
        });
        let bytes = self.made.easy * EASY_TRANSFER;
        let easy = each(u64::from(bytes > 0)).map(move |(worker, _)| {
            entry(format!("ior.{worker}"), Kind::File { size: bytes, links: 1 }, false)
        });
        let bytes = self.made.hard * u64::from(self.setup.workers()) * HARD_TRANSFER;
        let shared = (bytes > 0).then(|| entry("ior.hard".to_owned(), Kind::AtLeast(bytes), false));
        files.chain(linked).chain(directories).chain(hard).chain(easy).chain(shared)
    }

    /// The path of a worker's file or directory.
    fn path(&self, worker: &str, kind: &str, number: u64) -> String {
        let breadth = u64::from(self.setup.breadth);
        let (mut tree, mut at) = (String::new(), number % self.setup.directories());
        while at > 0 {
            tree = format!("t{}/{tree}", (at - 1) % breadth);
            at = (at - 1) / breadth;
        }
        // (Directories of IO500 have no tree.)
        match self.setup.is_shared {
            true => format!("all/{tree}{worker}.{kind}{number}"),
            false => format!("w{worker}/{tree}{kind}{number}"),
        }
    }
}
