//! Options of engines that work on files as such.

use crate::definition::{Definition, Kind};

static STAT_TYPE: Definition = Definition::engine("stat_type", Kind::Str, "Which system call looks it up")
    .default("stat")
    .keywords(&[("stat", "stat(2)"), ("lstat", "lstat(2)"), ("statx", "statx(2), where the system has it")]);

/// `filestat` and `dirstat`
pub static STAT: &[&Definition] = &[&STAT_TYPE];

static DONORNAME: Definition =
    Definition::engine("donorname", Kind::Str, "File that extents are swapped with");
static INPLACE: Definition =
    Definition::engine("inplace", Kind::Int, "When the other file gets its space: 0 at the start, 1 per I/O")
        .range(0, 1);

/// `e4defrag`
pub static E4DEFRAG: &[&Definition] = &[&DONORNAME, &INPLACE];
