//! Standard tests: the procedures by which storage is qualified, each as a plan of ordinary jobs.
//!
//! A procedure takes what is known of its target and gives cases ([`Case`]): text of job files, in an order that may depend on
//! what was measured so far. It takes the reports of cases and gives the figures that its definition asks for. This crate runs
//! no jobs, and reads and writes no files; whoever runs the cases keeps their reports, from which a procedure finds its place
//! again after an interruption.

pub mod ai;
pub mod compare;
pub mod meta;
pub mod pts;

/// A case: a job file of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name, which no other case of the procedure has; it may be used as a file name.
    pub name: String,
    /// What it does, in a few words.
    pub what: String,
    /// The text of its job file.
    pub job: String,
    /// Seconds that it takes at least, as far as that is known.
    pub seconds: f64,
}
