//! The rules of a worker's verification, as plain values.

use crate::block::Spec;
use crate::rivals::Rivals;
use crate::state::{Policy, StateFile, StateImprint, StateNames};
use iolite_workload::history::Need;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The rules of a worker's verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// The name of the job.
    pub job: String,
    /// The job's number in headers.
    pub number: u16,
    /// The index of the worker in the run, from 0.
    pub worker: usize,
    /// The seed from which the seeds of its blocks are derived.
    pub seed: u64,
    /// How blocks are written and checked.
    pub spec: Spec,
    /// How many I/Os may be in flight, at least 1.
    pub depth: u32,
    /// It writes: its writes are stamped. (A job that only verifies the writes of an earlier run does none.)
    pub writes: bool,
    /// The writes of this run, or of an earlier one, are read back after a pass.
    pub reads_back: bool,
    /// Selects the blocks that are read back, and how they are remembered. A loaded state replaces this.
    pub read_back: ReadBackRules,
    /// The writes are those of an earlier run (`verify_only`); `None` = they are its own, or a saved state lists them.
    pub earlier: Option<EarlierRun>,
    /// The state for a later run, or of an earlier one.
    pub state: StateRules,
    /// Some of the blocks are trimmed after they were written; `None` = no trims.
    pub trims: Option<TrimRules>,
    /// The other workers that write to the same places.
    pub rivals: Rivals,
    /// Threads that check blocks (`verify_async`); 0 = the worker does.
    pub threads: u32,
    /// The CPUs of these threads; empty = the worker's CPUs.
    pub thread_cpus: Vec<u32>,
    /// The engine reads real data. If not, every block counts as correct.
    pub reads_data: bool,
    /// A write that was in flight is there completely or not at all (`atomic`).
    pub atomic_writes: bool,
    /// The workload is a trace: its reads of its own writes are checked when they complete.
    pub is_replay: bool,
    /// Block sizes are not known beforehand: each write is checked when it is issued.
    pub has_unforeseen_blocks: bool,
    /// The storage compares blocks with their expected content, and they are read only if they differ.
    pub compares: bool,
    /// The first wrong block ends the job.
    pub fatal: bool,
    /// The directory in which wrong blocks are saved, with the expected data; `None` = not saved.
    pub dump: Option<PathBuf>,
    /// Written blocks are read back even after the time of the job is over.
    pub outlasts_time: bool,
    /// The most files that are open at once while they are read back.
    pub open_files: usize,
    /// `experimental_verify` is set: warn if the writes have to be remembered nevertheless.
    pub wants_no_history: bool,
}

/// Selects the blocks that are read back, and how they are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadBackRules {
    /// The reads of the job itself cover an earlier run's writes, and all of them are checked.
    AllReads,
    /// No blocks.
    Nothing,
    /// The writes since the last check, after a number of writes (`verify_backlog`).
    Backlog {
        /// Writes from one check to the next.
        every: u64,
        /// How many are checked at a time; 0 = all that wait.
        batch: u64,
        /// Blocks may be written again, and only the last write of each counts.
        repeats: bool,
    },
    /// Everything at the end of each pass.
    AtEnd(Need),
}

/// How far an earlier run agrees with this job, whatever its seed was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Alike {
    /// Each write, and its place.
    Writes,
    /// The same, except for the number of writes.
    Beginning,
    /// The set of blocks that are written, in any order.
    Places,
    /// No agreement.
    Nothing,
}

/// The writes of an earlier run, which are known because this job would do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierRun {
    /// It certainly had the seeds of this job.
    pub has_own_seeds: bool,
    /// How far it agrees with this job, whatever its seed was.
    pub alike: Alike,
    /// Some of its writes may have failed.
    pub may_have_failed: bool,
    /// It mixed reads and writes: how many writes there were depends on the seed.
    pub is_mix: bool,
    /// It may have written its workload any number of times. If not, it did so as often as this job would.
    pub any_pass: bool,
    /// Its blocks have several sizes, so that a block may hold intervals of several writes.
    pub mixes_sizes: bool,
}

/// The use of a saved state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateRules {
    /// No state is kept or loaded.
    None,
    /// A state is kept for a later run.
    Keep(Keep),
    /// A state should be kept, but cannot be.
    Impossible {
        /// The reason.
        message: String,
        /// This is an error, not only a warning.
        is_required: bool,
    },
    /// The state of an earlier run decides which blocks are checked.
    Load(Load),
}

/// A state that is kept for a later run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// The file.
    pub path: PathBuf,
    /// `verify_state_save=1` was given: the job must not run without a state, and it keeps the state even if everything
    /// was read back.
    pub is_asked_for: bool,
    /// `verify`, as it was given.
    pub method: String,
    /// Bytes of a block: all offsets (within their region) and lengths of writes are multiples of it.
    pub block: u64,
    /// All writes have the same length, and their offsets (within their region) are multiples of it.
    pub is_uniform: bool,
    /// Completed writes are durable without a flush.
    pub is_durable: bool,
    /// The engine itself copies the data to its place, so a write in flight may end at any byte.
    pub is_copied: bool,
    /// How many writes a pass over the workload has; 0 = that is not known.
    pub per_pass: u64,
    /// The workload flushes.
    pub has_flushes: bool,
    /// How blocks are written.
    pub imprint: StateImprint,
    /// The files and regions that are written to. Their identities are found when the job begins.
    pub files: Vec<StateFile>,
    /// They are files of this machine.
    pub are_local: bool,
    /// They are made again for each pass, and do not keep their identities.
    pub are_made_again: bool,
}

/// A state that an earlier run has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The file.
    pub path: PathBuf,
    /// The writes that are required.
    pub policy: Policy,
    /// `verify`, as it was given.
    pub method: String,
    /// How the job expects blocks to be written.
    pub imprint: StateImprint,
    /// The names of the job's files.
    pub files: Vec<String>,
    /// They are files of this machine.
    pub are_local: bool,
    /// Bytes of the largest block that fits into the job's buffers.
    pub largest: u64,
    /// A command that runs before the job may provide the state (`exec_prerun`).
    pub comes_later: bool,
    /// The states that the workers of the run load, including this one. If any of them exists, a worker without a state
    /// left nothing to be checked.
    pub company: Vec<StateNames>,
}

/// Trims of blocks that were written (`trim_percentage`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimRules {
    /// The percentage of the writes that are trimmed.
    pub percentage: u32,
    /// Trim after this many writes; 0 = before they are read back.
    pub every: u64,
    /// How many are trimmed at a time; 0 = all that wait.
    pub batch: u64,
    /// Trimmed blocks have to read as zeros.
    pub are_zeros: bool,
}
