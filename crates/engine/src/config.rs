//! The configuration with which an engine is made.

use iolite_options::EngineOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How the worker will access its files, for engines that tell the kernel themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessPattern {
    /// No promise.
    #[default]
    Normal,
    /// Offsets mostly grow.
    Sequential,
    /// Offsets jump about.
    Random,
}

/// Everything that an engine needs to know about its job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineConfig {
    /// The own options of the engine.
    pub options: EngineOptions,
    /// Most units in flight, at least 1.
    pub depth: usize,
    /// Bytes of every I/O; 0 = they differ.
    pub block: u64,
    /// The job's files are opened with O_DIRECT.
    pub direct: bool,
    /// The job may change data.
    pub changes_data: bool,
    /// Writes must be all or nothing (RWF_ATOMIC), for engines that support it.
    pub atomic: bool,
    /// Files in the worker's list, open or not; indices are below this.
    pub files: usize,
    /// `SYNC_FILE_RANGE_*` flags of [`Operation::SyncFileRange`](iolite_types::Operation::SyncFileRange).
    pub sync_file_range_flags: u32,
    /// How the job moves through its files (mmap advises its mappings).
    pub access: AccessPattern,
    /// The time of submission is not recorded (no slat, no clat): `commit` may leave the system call to the `reap` that
    /// follows, which then submits and waits in one.
    pub defer_submission: bool,
    /// There are pauses between units, because of rates or think time.
    pub pauses: bool,
    /// Written data must survive, because the job syncs or verifies it. Otherwise it is never read again.
    pub keeps_writes: bool,
    /// The job verifies data, and so looks at what it reads and writes.
    pub verifies: bool,
    /// The number of the worker, among those of all jobs.
    pub worker: u32,
    /// Seed of the choices an engine makes itself (`hipri_percentage`).
    pub seed: u64,
    /// The name of the job.
    pub job: String,
    /// For how long the job runs, in microseconds; 0 = no limit.
    pub runtime_us: u64,
    /// The directory of files that the run creates for itself (`--aux-path`); empty = the current one.
    pub auxiliary: PathBuf,
}

impl EngineConfig {
    /// A configuration with these options and this depth for one file, and defaults otherwise.
    pub fn new(options: EngineOptions, depth: usize) -> Self {
        EngineConfig {
            options,
            depth: depth.max(1),
            block: 0,
            direct: false,
            changes_data: true,
            atomic: false,
            files: 1,
            sync_file_range_flags: 0,
            access: AccessPattern::Normal,
            defer_submission: false,
            pauses: false,
            keeps_writes: true,
            verifies: true,
            worker: 0,
            seed: 1,
            job: String::new(),
            runtime_us: 0,
            auxiliary: PathBuf::new(),
        }
    }
}

/// For an engine without options of its own, or one that gets them in another way: one file, one unit in flight.
impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig::new(EngineOptions::None, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_of_zero_is_one() {
        assert_eq!(EngineConfig::new(EngineOptions::None, 0).depth, 1);
    }
}
