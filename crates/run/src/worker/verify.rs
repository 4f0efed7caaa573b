//! Checking what was written: the worker's part of `verify`.
//!
//! [`Verification`] is what a loop has beside its plain parts when its job verifies. It stamps each write, notes which
//! have been acknowledged, knows what is to be read back ([`plan`]), and what each block that comes back should be. The
//! loop (`io_loop/verify.rs`) issues these reads, and hands what was read over to be checked, at once or by threads of
//! its own ([`pool`]).
//!
//! Several workers may write to one place ([`rivals`]). They take [`turns`] there, and know who was last ([`owners`]): each
//! insists on what is its own. Where that is not known, the write of any of them is a good answer.

mod check;
mod dump;
mod imprint;
mod others;
mod owners;
mod plan;
mod pool;
mod problems;
mod reach;
mod rivals;
mod setup;
mod state;
mod trims;
mod turns;

pub use check::{Alike, Checker, Expect, Question};
pub use plan::ReadBack;
pub use pool::{Checked, Pool};
pub use problems::{problems, problems_of_files, problems_of_states};
pub use rivals::{FileIdentity, Rivalry, Rivals};
pub use setup::{Identity as WorkerIdentity, loads_state, reads_back};
pub use state::{State, StateUse, of_worker as state_of, sync_all as sync_states};
pub use trims::Trims;
pub use turns::{Aim, Part, Turns};

use iolite_types::Direction;
use iolite_verify::block::{Field, Identity, Mismatch, Spec, SpecError, Stamper};
use iolite_workload::Io;
use iolite_workload::history::Written;
use owners::Owner;
use reach::Reach;
use std::path::PathBuf;
use std::time::SystemTime;

/// What a unit in flight means to verification.
#[derive(Clone, Copy, Debug, Default)]
pub enum Role {
    /// Nothing.
    #[default]
    Plain,
    /// A write that is to be read back.
    Write(Written),
    /// A read that is to be checked.
    Check(Io, Expect),
    /// A read of a trace: what the replay has written there is checked.
    Look(Io),
    /// A trim of what this write has written, which is to be zeros then.
    Trim(Written),
}

/// What is done about blocks that are not what they should be.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The first one ends the job.
    pub fatal: bool,
    /// Save what was read and what was expected, in this directory.
    pub dump: Option<PathBuf>,
    /// Read back after the time is over, of a time-based job or one that checks a saved state.
    pub outlasts_time: bool,
    /// Most files that are open at once.
    pub open_files: usize,
}

/// The worker's part of `verify`.
pub struct Verification {
    /// Checks in the worker itself.
    pub checker: Checker,
    /// Threads that check; `None` = the worker does.
    pub pool: Option<Pool>,
    /// What is to be read back, and when.
    pub read_back: ReadBack,
    /// What is done about wrong blocks.
    pub policy: Policy,
    /// The state for a later run; `None` = none is kept.
    pub state: Option<State>,
    /// Why there is no state although there should be one.
    pub warning: Option<String>,
    /// Blocks that are trimmed after they were written; `None` = none are.
    pub trims: Option<Trims>,
    /// Keeps apart from those who write to the same places; `None` = nobody does.
    pub turns: Option<Turns>,
    rivalry: Rivalry,
    /// The workload is a trace: what it reads of its own is checked on the way.
    is_replay: bool,
    /// How blocks have to be whose sizes are not known beforehand.
    unforeseen: Option<Spec>,
    /// What is read back now is that of a whole pass.
    pub at_end: bool,
    /// How far the run came whose writes are checked; `None` = it is known, or not asked for.
    reach: Option<Reach>,
    /// Everything that was written has been read back.
    pub is_complete: bool,
    doubt: Doubt,
    stamper: Option<Stamper>,
    job: u16,
    roles: Vec<Role>,
    next: Option<Role>,
    wrong: u64,
}

/// Reads that were made when nothing was known yet of who had written what they read.
#[derive(Clone, Copy, Debug, Default)]
struct Doubt {
    /// How many.
    reads: u64,
    /// How many of them are left to be made again; `None` = that has not begun.
    again: Option<u64>,
    /// The number of the last write that has been seen.
    there: Option<u64>,
    /// That of the first one that is not told yet, although it is not there.
    put_off: Option<u64>,
}

/// So many wrong intervals are described. There may be millions.
const MOST_TOLD: u64 = 1000;

impl Verification {
    /// An I/O is about to be issued with this unit. A write is stamped.
    pub fn made(&mut self, index: u32, io: &Io, buffer: &mut [u8]) {
        let role = match (self.next.take(), io.direction) {
            (Some(role), _) => role,
            (None, Direction::Write) => Role::Write(self.stamp(io, buffer)),
            (None, Direction::Read) if self.read_back.checks_all_reads() => {
                Role::Check(*io, Expect::Anything)
            }
            (None, Direction::Read) if self.is_replay => Role::Look(*io),
            (None, Direction::Read) => Role::Plain,
            (None, Direction::Trim) => {
                self.trimmed(io);
                Role::Plain
            }
        };
        if let Some(state) = &self.state {
            match role {
                Role::Write(written) => state.issue(index, &written),
                Role::Plain | Role::Trim(_) if io.direction == Direction::Trim => state.forget(io),
                Role::Plain | Role::Trim(_) | Role::Check(..) | Role::Look(_) => {}
            }
        }
        self.roles[index as usize] = role;
        if let Some(turns) = &mut self.turns {
            turns.made(index);
        }
    }

    /// The workload trims this. A write may follow, but need not: the time may be over before.
    pub fn trimmed(&mut self, io: &Io) {
        self.read_back.forget(io);
    }

    /// What this I/O, which is about to be made, wants to do where rivals are; `None` = nothing that matters to them.
    pub fn aim(&self, io: &Io) -> Option<Aim> {
        match io.direction {
            _ if self.turns.is_none() => None,
            Direction::Write | Direction::Trim => Some(Aim::Change),
            Direction::Read => {
                let is_checked = self.is_replay || self.read_back.checks_all_reads();
                (self.next.is_some() || is_checked).then_some(Aim::Check)
            }
        }
    }

    /// What has to be found out about a block that was read, if anything.
    pub fn question(&self, io: &Io, expect: Expect) -> Option<Question> {
        let part = Part { file: io.file, offset: io.offset, length: io.length };
        let owner = self.turns.as_ref().map_or(Owner::Nobody, |turns| turns.owner(part));
        let can_tell = match owner {
            Owner::Me | Owner::Nobody => true,
            Owner::Others => {
                let rivals = self.rivalry.files.get(&(io.file as usize));
                // What is not alike is for the rival to check, and what was trimmed for nobody.
                rivals.is_none_or(|rivals| match expect {
                    Expect::Anything => !rivals.trim,
                    _ => !rivals.differ,
                })
            }
            Owner::Unknown => false,
        };
        let Io { file, offset, .. } = *io;
        can_tell.then(|| Question { file, offset, expect, is_own: owner == Owner::Me })
    }

    /// The next I/O is this read.
    pub fn announce(&mut self, io: Io, expect: Expect) {
        self.next = Some(Role::Check(io, expect));
    }

    /// The next I/O is a trim of what this write has written, which is remembered.
    pub fn announce_trim(&mut self, written: Written) {
        self.next = Some(Role::Trim(written));
    }

    /// Why this I/O of the workload cannot be verified, if it cannot.
    pub fn obstacle(&self, io: &Io) -> Option<SpecError> {
        let spec = self.unforeseen.as_ref().filter(|_| io.direction == Direction::Write)?;
        spec.validate(io.length as usize).err()
    }

    /// What was announced has been issued, or will not be now, because the job stops: then it is still to be done.
    pub fn withdraw(&mut self) {
        match self.next.take() {
            Some(Role::Check(io, expect)) => self.read_back.put_back(io, expect),
            Some(Role::Trim(written)) => {
                if let Some(trims) = &mut self.trims {
                    trims.put_back(written);
                }
            }
            Some(Role::Plain | Role::Write(_) | Role::Look(_)) | None => {}
        }
    }

    /// What to read at the end of the pass; `None` = that was all.
    pub fn next_at_end(&mut self) -> Option<(Io, Expect)> {
        if let Some(left) = &mut self.doubt.again {
            *left = left.checked_sub(1)?;
        } else if self.checker.is_in_doubt() {
            return self.next_in_doubt();
        }
        self.read_back.next_at_end()
    }

    fn next_in_doubt(&mut self) -> Option<(Io, Expect)> {
        if self.doubt.reads == 0 {
            self.read_back.mark();
        }
        let (io, expect) = self.read_back.next_at_end()?;
        self.doubt.reads += 1;
        match expect {
            Expect::Write(number) => Some((io, Expect::Doubted(number))),
            expect => Some((io, expect)),
        }
    }

    /// Goes back to the reads that were in doubt, where blocks have passed that are known to be wrong now.
    pub fn look_again(&mut self) -> bool {
        let Doubt { there, put_off, .. } = self.doubt;
        let (knows_owner, stranger) = (self.checker.knows_owner(), self.checker.stranger());
        // Behind the last write that is there, nobody knows what was written with another seed.
        let end = if knows_owner || stranger.is_none() { None } else { there }.unwrap_or(u64::MAX);
        let has_passed = knows_owner && stranger.is_some();
        let again = (has_passed || put_off.is_some_and(|first| first < end)) && self.checker.look_again(end);
        if again {
            self.doubt.again = Some(self.doubt.reads);
            self.read_back.go_back();
        }
        again
    }

    /// How many reads the end of the pass is expected to take from here.
    pub fn expected_reads(&self) -> u64 {
        self.doubt.again.unwrap_or_else(|| self.read_back.unread())
    }

    /// What may be the matter when wrong blocks were found, or what has not been checked: with no block of this job's own,
    /// it may have looked elsewhere. `is_all`: everything has been read.
    pub fn hint(&self, is_all: bool) -> Option<String> {
        let alike = self.checker.alike().filter(|_| self.checker.is_in_doubt());
        let (stranger, other) = (self.checker.stranger(), self.checker.other_job());
        let why = match (alike, self.doubt.there) {
            (Some(Alike::Beginning), Some(last)) if is_all && stranger.is_some() => format!(
                "how many of its I/Os are writes depends on its seed, so what was written behind write {last}, the last one \
                 that was found, is not known and has not been checked"
            ),
            (Some(Alike::Places | Alike::Nothing), _) if self.wrong > 0 && other.is_some() => {
                "what this workload writes where depends on its seed".to_owned()
            }
            (Some(Alike::Nothing), _) if is_all && stranger.is_some() => {
                "what this workload writes where depends on its seed, so what was written elsewhere has not been checked"
                    .to_owned()
            }
            _ => return self.reach.filter(|_| is_all)?.hint(),
        };
        Some(format!(
            "no block has a seed of this job (number {}), and some are of job {}: {why}; check from the same place in the same \
             job file (those that --section leaves out count), with the same randseed, or load the state of the run that \
             wrote (verify_state_load=1)",
            self.job,
            other.unwrap_or_default()
        ))
    }

    /// What a block that is read back should be; `None` = nobody can say, and it is not read.
    pub fn after_trims(&self, expect: Expect) -> Option<Expect> {
        match (&self.trims, expect) {
            (Some(trims), Expect::Write(number) | Expect::Doubted(number)) if trims.chooses(number) => {
                trims.are_zeros.then_some(Expect::Zeros)
            }
            _ => Some(expect),
        }
    }

    /// What this unit was issued for. It is asked for once.
    pub fn role(&mut self, index: u32) -> Role {
        std::mem::take(&mut self.roles[index as usize])
    }

    /// What this unit was issued for.
    pub fn role_of(&self, index: u32) -> &Role {
        &self.roles[index as usize]
    }

    /// The unit is still in use for this.
    pub fn keep(&mut self, index: u32, role: Role) {
        self.roles[index as usize] = role;
    }

    /// Whether writes get their content here.
    pub fn stamps(&self) -> bool {
        self.stamper.is_some()
    }

    fn stamp(&mut self, io: &Io, buffer: &mut [u8]) -> Written {
        let number = self.read_back.issue();
        if let Some(stamper) = &mut self.stamper {
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            stamper.stamp(
                buffer,
                &Identity {
                    offset: io.offset,
                    sequence: number,
                    seed: self.checker.seed(number),
                    seconds: now.as_secs() as u32,
                    nanoseconds: now.subsec_nanos(),
                    job: self.job,
                },
            );
        }
        Written { io: *io, number }
    }

    /// An interval is wrong: whether it is to be described, and what is said instead when there were too many.
    pub fn count_wrong(&mut self) -> Telling {
        self.wrong += 1;
        match self.wrong.cmp(&MOST_TOLD) {
            std::cmp::Ordering::Less => Telling::Full,
            std::cmp::Ordering::Equal => Telling::Last,
            std::cmp::Ordering::Greater => Telling::Nothing,
        }
    }

    /// The block of a write has been checked; whether it is told now what is wrong with it.
    pub fn checked(&mut self, expect: Expect, mismatches: &[Mismatch]) -> bool {
        let (Expect::Write(number) | Expect::Doubted(number)) = expect else { return true };
        if self.doubt.again.is_some() {
            return true;
        }
        if let Some(reach) = &mut self.reach {
            reach.checked(number, mismatches);
        }
        let puts_off = self.checker.puts_off(expect, mismatches);
        if puts_off {
            self.doubt.put_off = Some(self.doubt.put_off.map_or(number, |first| first.min(number)));
        } else {
            self.doubt.there = self.doubt.there.max(Some(number));
        }
        !puts_off
    }

    /// How many intervals were wrong.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// Saves the blocks of a mismatch where that was asked for. One line per file, or per failure.
    pub fn dump(&self, file: &str, read: &[u8], mismatch: &Mismatch) -> Vec<String> {
        match &self.policy.dump {
            Some(directory) if mismatch.field != Field::End => dump::save(directory, file, read, mismatch),
            Some(_) | None => Vec::new(),
        }
    }
}

/// How much is said about a wrong block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// All.
    Full,
    /// All, and that no more will be said.
    Last,
    /// Nothing.
    Nothing,
}
