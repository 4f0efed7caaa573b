//! The option language: job files and command lines in, typed options out.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | the name, default and help of an option; obsolete ones | `defs/`, one item per option; `defs/past.rs` |
//! | its field | `job/`, a group of options per file; fields that several engines share: `definition/places.rs` |
//! | options of engines; what an engine is | `engines/`; `engines/catalogue.rs` in the words of `engines/facets.rs` |
//! | parsing of values, and what of them is ignored; their types | `values/`, `values/notes.rs`; `typed.rs` |
//! | job files | `jobfile.rs`, `substitute.rs`; sections that `--section` leaves out: `assemble.rs` |
//! | the meaning of several options together | `decided.rs`, `rules.rs`, `dependencies.rs` |
//! | what differs under the name `fio`; refusals in its words | `name.rs`; `JobOptions::be_as_fio` and `reason` in `decided.rs` |
//! | suggestions for misspelt words | `spelling.rs` |
//! | secrets: what stands in their place, and where they come from | `is_secret` in `definition.rs`; `engines/secret.rs`; in URLs: `engines/url.rs` |
//! | profiles | `profiles/` |
//! | subcommands and their words; completion | `commands.rs`; `completion/` |
//! | arguments with `--client`; of the runs of `--repeat` | `clients.rs`; `repeat.rs` |
//! | docs/options.md, the man page, the table of facets in docs/engines.md | `manual.rs`, `manual/facets.rs`; made by `cargo run -p iolite-options --example manual` |

mod assemble;
mod clients;
mod command_line;
pub mod commands;
pub mod completion;
mod decided;
mod defaults;
pub mod definition;
mod defs;
mod dependencies;
pub mod engines;
mod expression;
pub mod help;
mod job;
mod jobfile;
mod machine_options;
pub mod manual;
mod name;
mod parse;
pub mod profiles;
pub mod registry;
mod repeat;
mod rules;
mod run;
mod run_options;
mod section;
mod showcmd;
pub mod spelling;
mod substitute;
mod system_variables;
#[cfg(test)]
mod tests;
mod typed;
mod usage;
pub mod values;
mod web;
mod wrap;

pub use clients::{Client, Launched, RunElsewhere, SentFile, SentJobs, Serving};
pub use engines::EngineOptions;
pub use job::*;
pub use jobfile::wrong_encoding;
pub use machine_options::WhenLost;
pub use name::Name;
pub use parse::{NO_JOBS, launched, parse, parse_sent, parse_with, repeated, run_options};
pub use repeat::{Repeat, Repeated};
pub use run::*;
pub use typed::*;
pub use web::{WebTls, check_web, metrics_address, web_address, web_tls};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// The word of the command line with this index (1 = the first after the program's name).
    CommandLine(usize),
    /// A line and column (both from 1) of a job file.
    File {
        /// The file as it was named; `-` for standard input.
        path: String,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine(_) => write!(f, "command line"),
            Origin::File { path, line, column } => write!(f, "{path}:{line}:{column}"),
        }
    }
}

/// A mistake or a suspicious part of the input, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The place; `None` if it is not at a single place.
    pub origin: Option<Origin>,
    /// The mistake and the remedy, with the names of option and value.
    pub message: String,
}

impl Diagnostic {
    /// The same as a warning. The word `warning` comes after the place, where programs that parse messages expect it.
    pub fn as_warning(&self) -> Diagnostic {
        Diagnostic { origin: self.origin.clone(), message: format!("warning: {}", self.message) }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The request of a command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Invocation {
    /// Run jobs. Each inner list is one job file (or the jobs of the command line); they run one after the other. The
    /// job files of another machine are one list.
    Run {
        /// The jobs of each file, in order. No batch is empty. The jobs of the command line are in the first batch,
        /// together with those of the first file. With `--parse-only` there may be no batch.
        batches: Vec<Vec<JobOptions>>,
        /// Options of the run as a whole.
        run: Box<RunOptions>,
        /// Suspicious input that is accepted.
        warnings: Vec<Diagnostic>,
    },
    /// Run jobs on other machines.
    RunElsewhere(Box<RunElsewhere>),
    /// Run the jobs of other machines.
    Serve(Serving),
    /// Test or measure this machine.
    Test(SelfTest),
    /// Print the lines of this compressed log.
    InflateLog(PathBuf),
    /// Print this text (help, version, `--showcmd`, …) and exit with this status.
    Print {
        /// The whole text, with its final newline.
        text: String,
        /// The exit status.
        status: u8,
    },
    /// No jobs are given: print the usage, and report the missing jobs as an error.
    NoJobs {
        /// The whole text, with its final newline.
        usage: String,
    },
}
