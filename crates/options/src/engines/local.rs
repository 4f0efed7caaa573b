//! Options of engines that need nothing but the kernel.

use super::own::{AsFio, OwnOptions, own, own_options, place};
use crate::JobOptions;
use crate::definition::{Definition, Kind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

/// The kind of work that keeps the CPU busy (`cpumode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CpuMode {
    /// Only counting.
    #[default]
    Noop,
    /// Sorting, which uses memory and more energy.
    Qsort,
}

impl CpuMode {
    /// Its keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            CpuMode::Noop => "noop",
            CpuMode::Qsort => "qsort",
        }
    }
}

own_options! {
    /// The options of `cpuio`.
    pub struct CpuioOptions declared by CPUIO {
        /// Percent of one CPU to use, at most 100; 0 = not given.
        pub cpuload: u32,
        /// The busy part of a cycle in microseconds.
        pub cpuchunks: u64,
        /// The kind of work that keeps the CPU busy.
        pub cpumode: CpuMode,
        /// The job ends when all jobs that do I/O have ended.
        pub exit_on_io_done: bool,
    }
}

impl OwnOptions for CpuioOptions {
    fn obstacle_to_run(&self, _: &JobOptions) -> Option<String> {
        let what = "ioengine=cpuio: cpuload= is missing, the percent of a CPU to use (1 to 100)";
        (self.cpuload == 0).then(|| what.to_owned())
    }
}

static CPULOAD: Definition =
    option("cpuload", Kind::Int, "Percent of one CPU to use").lands_in_engine(|own, given| {
        // More than 100% means 100%.
        place::<CpuioOptions>(own)?.cpuload = given.number::<u32>()?.min(100);
        Ok(())
    });
static CPUCHUNKS: Definition = option("cpuchunks", Kind::Int, "Length of one busy spell, in µs")
    .default("50000")
    .lands_in_engine(own!(CpuioOptions.cpuchunks, number()));
static CPUMODE: Definition = option("cpumode", Kind::Str, "The work that keeps the CPU busy")
    .default("noop")
    .keywords(&[("noop", "Doing nothing"), ("qsort", "Sorting")])
    .lands_in_engine(|own, given| {
        place::<CpuioOptions>(own)?.cpumode = match given.keyword()? {
            "qsort" => CpuMode::Qsort,
            _ => CpuMode::Noop,
        };
        Ok(())
    });
static EXIT_ON_IO_DONE: Definition =
    option("exit_on_io_done", Kind::Bool, "End when all jobs that do I/O have ended")
        .default("0")
        .lands_in_engine(own!(CpuioOptions.exit_on_io_done, boolean()));

/// `cpuio`
pub static CPUIO: &[&Definition] = &[&CPULOAD, &CPUCHUNKS, &CPUMODE, &EXIT_ON_IO_DONE];

own_options! {
    /// The options of `exec`.
    pub struct ExecOptions declared by EXEC {
        /// The program; empty = not given.
        pub program: String,
        /// Its arguments in one line, as they were given.
        pub arguments: String,
        /// Seconds between SIGTERM and SIGKILL.
        pub grace_time: u32,
        /// Its output goes to files named after the job.
        pub std_redirect: bool,
        /// The text for missing arguments in lines for the user; empty = no text.
        pub without_arguments: String,
    }
}

impl ExecOptions {
    /// The files for standard output and standard error of the job's program; `None` = the program inherits ours.
    pub fn outputs(&self, directory: &Path, job: &str) -> Option<[PathBuf; 2]> {
        let output = |stream: &str| directory.join(format!("{}.{stream}", job.replace('/', "_")));
        self.std_redirect.then(|| [output("stdout"), output("stderr")])
    }
}

impl OwnOptions for ExecOptions {
    fn be_as_fio(&mut self, _asked: AsFio) {
        self.without_arguments = "(null)".to_owned();
    }

    fn starts_programs(&self) -> bool {
        true
    }

    fn obstacle_to_run(&self, _: &JobOptions) -> Option<String> {
        let what = "ioengine=exec: program= is missing, the program to run";
        self.program.is_empty().then(|| what.to_owned())
    }
}

static PROGRAM: Definition =
    option("program", Kind::Str, "Program to run").lands_in_engine(own!(ExecOptions.program, string()));
static ARGUMENTS: Definition =
    option("arguments", Kind::Str, "Its arguments; %r is the run time and %n the job's name")
        .lands_in_engine(own!(ExecOptions.arguments, string()));
static GRACE_TIME: Definition =
    option("grace_time", Kind::Int, "Seconds between asking it to end and killing it")
        .default("1")
        .lands_in_engine(own!(ExecOptions.grace_time, number()));
static STD_REDIRECT: Definition =
    option("std_redirect", Kind::Bool, "Send its output to files named after the job")
        .default("1")
        .lands_in_engine(own!(ExecOptions.std_redirect, boolean()));

/// `exec`
pub static EXEC: &[&Definition] = &[&PROGRAM, &ARGUMENTS, &GRACE_TIME, &STD_REDIRECT];

own_options! {
    /// The options of `mtd`.
    pub struct MtdOptions declared by MTD {
        /// Blocks that are known to be bad are skipped.
        pub skip_bad: bool,
    }
}

impl OwnOptions for MtdOptions {}

static SKIP_BAD: Definition =
    option("skip_bad", Kind::Bool, "Fail I/Os to known bad blocks without touching the blocks")
        .default("0")
        .lands_in_engine(own!(MtdOptions.skip_bad, boolean()));

/// `mtd`
pub static MTD: &[&Definition] = &[&SKIP_BAD];
