//! The phases, as data.

use Phase::*;

/// A phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "their names say it, and `about` says it to users")]
pub enum Phase {
    Mkdir,
    Dirstat,
    Create,
    Stat,
    Read,
    Setxattr,
    Getxattr,
    Link,
    Readdir,
    Rename,
    Unlink,
    Rmdir,
    IorEasyWrite,
    MdtestEasyWrite,
    IorHardWrite,
    MdtestHardWrite,
    Find,
    IorEasyRead,
    MdtestEasyStat,
    IorHardRead,
    MdtestHardStat,
    MdtestEasyDelete,
    MdtestHardRead,
    MdtestHardDelete,
}

/// What a phase counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Files in the directory of their worker, or in the shared one.
    Files,
    /// Directories.
    Directories,
    /// Files of `mdtest-hard`, in one directory.
    HardFiles,
    /// Transfers of `ior-easy`.
    Easy,
    /// Transfers of `ior-hard`.
    Hard,
    /// Listed directories.
    Lists,
}

/// The phases of a plain test, in their order.
pub const PLAIN: [Phase; 12] =
    [Mkdir, Dirstat, Create, Stat, Read, Setxattr, Getxattr, Link, Readdir, Rename, Unlink, Rmdir];

/// The phases of IO500, in its order.
pub const IO500: [Phase; 12] = [
    IorEasyWrite,
    MdtestEasyWrite,
    IorHardWrite,
    MdtestHardWrite,
    Find,
    IorEasyRead,
    MdtestEasyStat,
    IorHardRead,
    MdtestHardStat,
    MdtestEasyDelete,
    MdtestHardRead,
    MdtestHardDelete,
];

/// The phases on objects, in their usual order.
pub const OBJECTS: [Phase; 5] = [Create, Stat, Read, Readdir, Unlink];

/// Facts about a phase: its name, what it does, its unit, the phases that it needs.
type Facts = (&'static str, &'static str, Unit, &'static [Phase]);

impl Phase {
    fn facts(self) -> Facts {
        match self {
            Mkdir => ("mkdir", "creates directories", Unit::Directories, &[]),
            Dirstat => ("dirstat", "looks up directories", Unit::Directories, &[Mkdir]),
            Create => ("create", "creates files with their data", Unit::Files, &[]),
            Stat => ("stat", "looks up files", Unit::Files, &[Create]),
            Read => ("read", "opens, reads and closes files", Unit::Files, &[Create]),
            Setxattr => ("setxattr", "sets an extended attribute of files", Unit::Files, &[Create]),
            Getxattr => ("getxattr", "reads that attribute", Unit::Files, &[Create, Setxattr]),
            Link => ("link", "gives files a hard link", Unit::Files, &[Create]),
            Readdir => ("readdir", "lists directories", Unit::Lists, &[Create]),
            Rename => ("rename", "renames files", Unit::Files, &[Create]),
            Unlink => ("unlink", "removes files", Unit::Files, &[Create]),
            Rmdir => ("rmdir", "removes directories", Unit::Directories, &[Mkdir]),
            IorEasyWrite => ("ior-easy-write", "writes a file per worker, 2 MiB each time", Unit::Easy, &[]),
            MdtestEasyWrite => {
                ("mdtest-easy-write", "creates empty files, a directory per worker", Unit::Files, &[])
            }
            IorHardWrite => ("ior-hard-write", "writes 47008 bytes in turns into one file", Unit::Hard, &[]),
            MdtestHardWrite => {
                ("mdtest-hard-write", "creates files of 3901 bytes in one directory", Unit::HardFiles, &[])
            }
            Find => (
                "find",
                "looks up all files, for those of 3901 bytes with 01 in their names",
                Unit::Lists,
                &[],
            ),
            IorEasyRead => ("ior-easy-read", "reads the files of ior-easy", Unit::Easy, &[IorEasyWrite]),
            MdtestEasyStat => {
                ("mdtest-easy-stat", "looks up the files of mdtest-easy", Unit::Files, &[MdtestEasyWrite])
            }
            IorHardRead => ("ior-hard-read", "reads the file of ior-hard", Unit::Hard, &[IorHardWrite]),
            MdtestHardStat => {
                ("mdtest-hard-stat", "looks up the files of mdtest-hard", Unit::HardFiles, &[MdtestHardWrite])
            }
            MdtestEasyDelete => {
                ("mdtest-easy-delete", "removes the files of mdtest-easy", Unit::Files, &[MdtestEasyWrite])
            }
            MdtestHardRead => {
                ("mdtest-hard-read", "reads the files of mdtest-hard", Unit::HardFiles, &[MdtestHardWrite])
            }
            MdtestHardDelete => (
                "mdtest-hard-delete",
                "removes the files of mdtest-hard",
                Unit::HardFiles,
                &[MdtestHardWrite],
            ),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// What it does.
    pub fn about(self) -> &'static str {
        self.facts().1
    }

    /// What it counts.
    pub fn unit(self) -> Unit {
        self.facts().2
    }

    /// The phases that have to be run before.
    pub(super) fn needs(self) -> &'static [Phase] {
        self.facts().3
    }

    /// Whether it removes the names that another phase works on.
    pub(super) fn takes_from(self, later: Phase) -> bool {
        match self {
            Unlink => later.unit() == Unit::Files,
            Rmdir => later == Dirstat,
            _ => false,
        }
    }

    /// The phase of this name, among those that can be chosen.
    pub fn of_name(name: &str) -> Option<Phase> {
        PLAIN.into_iter().find(|phase| phase.name() == name)
    }

    /// Whether it makes what later phases use, and may have a time limit.
    pub fn creates(self) -> bool {
        matches!(self, Mkdir | Create | IorEasyWrite | MdtestEasyWrite | IorHardWrite | MdtestHardWrite)
    }

    /// Whether it changes what is there.
    pub fn changes(self) -> bool {
        self.creates()
            || matches!(self, Setxattr | Link | Rename | Unlink | Rmdir | MdtestEasyDelete | MdtestHardDelete)
    }

    /// Whether its figure is a bandwidth.
    pub fn is_bandwidth(self) -> bool {
        matches!(self.unit(), Unit::Easy | Unit::Hard)
    }
}
