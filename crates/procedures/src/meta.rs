//! `iolite meta`: operations on names, in the phases of mdtest, and the phases and the score of IO500.
//!
//! The definitions are the manual of mdtest (part of IOR 4), and IO500's list of phases with its formula
//! (<https://io500.org>). Each phase is a run of ordinary jobs, one section for each worker; `jobs` writes them. A phase
//! that creates something may have a time limit, at which its workers have got to different places: then a second run lets
//! them catch up with the first of them (what IOR and mdtest call wear-out), so that all later phases find as much of each
//! worker. [`figures`] takes the reports.

pub mod expected;
pub mod figures;
mod jobs;
mod objects;
mod phase;
mod score;

pub use jobs::{HARD, Machine, OTHER, RANK, STAMP};
pub use phase::{IO500, OBJECTS, PLAIN, Phase, Unit};
pub use score::{Score, score};

use figures::Figures;

/// Bytes of the transfers of `ior-hard`, as IO500 defines them.
pub const HARD_TRANSFER: u64 = 47_008;
/// Bytes of the files of `mdtest-hard`, as IO500 defines them.
pub const HARD_FILE: u64 = 3901;
/// Bytes of the transfers of `ior-easy`, IO500's default.
pub const EASY_TRANSFER: u64 = 2 << 20;

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The directory of the test, absolute.
    pub directory: String,
    /// The number of machines.
    pub machines: u32,
    /// Workers on each machine.
    pub tasks: u32,
    /// The most files, and directories, of each worker.
    pub files: u32,
    /// All workers use one directory.
    pub is_shared: bool,
    /// The levels of the tree below a directory of files, and the directories in each; 0 = no tree.
    pub depth: u32,
    /// The directories in each directory of the tree.
    pub breadth: u32,
    /// Bytes of a file.
    pub size: u64,
    /// Seconds after which a creating phase ends; `None` = when all is created.
    pub seconds: Option<f64>,
    /// Files are looked up and read by the worker this many places behind the one that made them (machines, if there are
    /// several; else workers).
    pub shift: u32,
    /// The most bytes of each worker in `ior-easy`, and in `ior-hard`.
    pub data: u64,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// The options of jobs that reach a bucket, if there are objects in the place of files; `directory` is what their names begin
    /// with.
    pub bucket: Option<Vec<(String, String)>>,
}

impl Setup {
    /// The directories of a tree of files.
    pub fn directories(&self) -> u64 {
        let level = |sum: u64, _| sum.saturating_mul(self.breadth.into()).saturating_add(1);
        (0..self.depth).fold(1, level)
    }

    /// The number of workers.
    pub fn workers(&self) -> u32 {
        self.machines * self.tasks
    }

    /// What is wrong with the phases: some need an earlier one.
    ///
    /// # Errors
    /// The phase, and what it needs.
    pub fn check(&self) -> Result<(), String> {
        for (position, phase) in self.phases.iter().enumerate() {
            if self.phases[..position].contains(phase) {
                return Err(format!("{}: each phase is run once, and this one is named twice", phase.name()));
            }
            for needed in phase.needs() {
                if !self.phases[..position].contains(needed) {
                    return Err(format!("{} needs {} before it", phase.name(), needed.name()));
                }
            }
            if let Some(gone) = self.phases[..position].iter().find(|before| before.takes_from(*phase)) {
                return Err(format!(
                    "{} comes too late: {} before it has taken its names away",
                    phase.name(),
                    gone.name()
                ));
            }
            if *phase == Phase::Read && self.size == 0 {
                return Err("read: the files are empty; --size= gives them data".to_owned());
            }
        }
        let directories = self.directories();
        if directories > u64::from(self.files) {
            let count = if directories == u64::MAX { "too many".to_owned() } else { directories.to_string() };
            return Err(format!(
                "the tree has {count} directories, and each worker only {} files; each directory needs one",
                self.files
            ));
        }
        Ok(())
    }
}

/// How much of each kind every worker has made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Made {
    /// Files of `create` or `mdtest-easy-write`.
    pub files: u64,
    /// Directories of `mkdir`.
    pub directories: u64,
    /// Files of `mdtest-hard-write`.
    pub hard_files: u64,
    /// Transfers of `ior-easy-write`.
    pub easy: u64,
    /// Transfers of `ior-hard-write`.
    pub hard: u64,
}

/// The course of a test.
#[derive(Clone, Debug)]
pub struct Course {
    /// What is asked for.
    pub setup: Setup,
    /// What is there.
    pub made: Made,
    /// The phases that have been run.
    pub done: Vec<Phase>,
}

impl Course {
    /// A test that has not begun.
    pub fn new(setup: Setup) -> Course {
        Course { setup, made: Made::default(), done: Vec::new() }
    }

    /// The next phase.
    pub fn next(&self) -> Option<Phase> {
        self.setup.phases.get(self.done.len()).copied()
    }

    /// The most that each worker does in a phase.
    pub fn most(&self, phase: Phase) -> u64 {
        let Setup { files, data, .. } = self.setup;
        match phase.unit() {
            Unit::Files if phase.creates() => files.into(),
            Unit::Files => self.made.files,
            Unit::Directories if phase.creates() => files.into(),
            Unit::Directories => self.made.directories,
            Unit::HardFiles if phase.creates() => files.into(),
            Unit::HardFiles => self.made.hard_files,
            Unit::Easy if phase.creates() => (data / EASY_TRANSFER).max(1),
            Unit::Easy => self.made.easy,
            Unit::Hard if phase.creates() => (data / HARD_TRANSFER).max(1),
            Unit::Hard => self.made.hard,
            Unit::Lists => 0,
        }
    }

    /// What a worker does in a phase that no limit ends; `None` = that depends on the worker.
    pub fn exactly(&self, phase: Phase) -> Option<u64> {
        match phase.unit() {
            Unit::Lists if self.setup.bucket.is_some() => Some(objects::pages(self)),
            Unit::Lists if phase == Phase::Readdir => Some(self.setup.directories()),
            Unit::Lists => None,
            _ => Some(self.most(phase)),
        }
    }

    /// The job file of a phase for a machine. `from`: for each worker of the machine, what it has done already; empty =
    /// the phase begins. `None` = nothing is left to do there.
    pub fn job(&self, phase: Phase, machine: Machine, from: &[u64], to: u64) -> Option<String> {
        jobs::job(self, phase, machine, from, to)
    }

    /// The number up to which all workers have to catch up after a run that has ended; `None` = all are equally far.
    pub fn catch_up(&self, phase: Phase, figures: &Figures) -> Option<u64> {
        let done = figures.workers.iter().map(|worker| worker.ops);
        let (least, most) = (done.clone().min()?, done.max()?);
        (phase.creates() && least < most).then_some(most)
    }

    /// A phase has been run; `each`: what each worker has done.
    pub fn finish(&mut self, phase: Phase, each: u64) {
        if phase.creates() {
            let Made { files, directories, hard_files, easy, hard } = &mut self.made;
            match phase.unit() {
                Unit::Files => *files = each,
                Unit::Directories => *directories = each,
                Unit::HardFiles => *hard_files = each,
                Unit::Easy => *easy = each,
                Unit::Hard => *hard = each,
                Unit::Lists => {}
            }
        }
        self.done.push(phase);
    }

    /// Whether a phase has been run.
    pub fn has_done(&self, phase: Phase) -> bool {
        self.done.contains(&phase)
    }

    /// The entries of the directories that a phase lists; `None` = it lists none.
    pub fn entries(&self, phase: Phase) -> Option<u64> {
        let workers = u64::from(self.setup.workers());
        match phase {
            Phase::Find => Some((self.made.files + self.made.hard_files) * workers),
            Phase::Readdir => {
                let is = |made: Phase, gone: Phase| u64::from(self.has_done(made) && !self.has_done(gone));
                let files = self.made.files
                    * (is(Phase::Create, Phase::Unlink) + u64::from(self.has_done(Phase::Link)));
                let of_worker = files + self.made.directories * is(Phase::Mkdir, Phase::Rmdir);
                let tree = self.setup.directories() - 1;
                // Of a shared directory, each worker lists the entries of all.
                Some(match self.setup.is_shared {
                    true => (of_worker * workers + tree) * workers,
                    false => (of_worker + tree) * workers,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
