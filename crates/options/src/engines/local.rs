//! Options of engines that need nothing but the kernel.

use crate::definition::{Definition, Kind};

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static CPULOAD: Definition = option("cpuload", Kind::Int, "Percent of one CPU to use");
static CPUCHUNKS: Definition =
    option("cpuchunks", Kind::Int, "Length of one busy spell, in µs").default("50000");
static CPUMODE: Definition = option("cpumode", Kind::Str, "What keeps the CPU busy")
    .default("noop")
    .keywords(&[("noop", "Doing nothing"), ("qsort", "Sorting")]);
static EXIT_ON_IO_DONE: Definition =
    option("exit_on_io_done", Kind::Bool, "End when all jobs that do I/O have ended").default("0");

/// `cpuio`
pub static CPUIO: &[&Definition] = &[&CPULOAD, &CPUCHUNKS, &CPUMODE, &EXIT_ON_IO_DONE];

static PROGRAM: Definition = option("program", Kind::Str, "Program to run");
static ARGUMENTS: Definition =
    option("arguments", Kind::Str, "Its arguments; %r is the run time and %n the job's name");
static GRACE_TIME: Definition =
    option("grace_time", Kind::Int, "Seconds between asking it to end and killing it").default("1");
static STD_REDIRECT: Definition =
    option("std_redirect", Kind::Bool, "Send what it prints to files named after the job").default("1");

/// `exec`
pub static EXEC: &[&Definition] = &[&PROGRAM, &ARGUMENTS, &GRACE_TIME, &STD_REDIRECT];

static SKIP_BAD: Definition =
    option("skip_bad", Kind::Bool, "Leave out blocks that are known to be bad").default("0");

/// `mtd`
pub static MTD: &[&Definition] = &[&SKIP_BAD];
