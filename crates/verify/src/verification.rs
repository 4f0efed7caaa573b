//! The verification of one worker.

use crate::block::{Field, Identity, Mismatch, SpecError, Stamper};
use crate::checker::{Checker, MOST_DESCRIBED};
use crate::compared::{Compared, Comparisons};
use crate::demands::Demands;
use crate::dump;
use crate::earlier_progress::Reach;
use crate::load_error::LoadError;
use crate::owners::{Owner, Owners};
use crate::passes::{Found, Passes};
use crate::pool::Pool;
use crate::question::{Expect, Question};
use crate::read_back::ReadBack;
use crate::repeated_reads::Doubt;
use crate::rival_states::{self, OtherStates};
use crate::rules::Alike;
use crate::rules::{Keep, Load, ReadBackRules, Rules, StateRules};
use crate::state_keeper::Keeper;
use crate::trims::Trims;
use crate::turns::{Aim, Part, Turns};
use iolite_types::Direction;
use iolite_workload::history::{Need, Written};
use iolite_workload::{Error, Io};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The purpose of a unit in flight for verification.
#[derive(Clone, Copy, Debug, Default)]
pub enum Role {
    /// Nothing.
    #[default]
    Plain,
    /// A write that must be read back.
    Write(Written),
    /// A read that must be checked.
    Check(Io, Expect),
    /// A read of a trace: checked against the replay's own writes to that place.
    Look(Io),
    /// A trim of the block of this write, which must then be zeros.
    Trim(Written),
}

/// How much is reported of a wrong interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Everything.
    Full,
    /// Everything, and a note that no more will be reported.
    Last,
    /// Nothing.
    Nothing,
}

/// Why a verification cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// There is no memory for the history of writes.
    #[error(transparent)]
    History(#[from] Error),
    /// The state cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The state cannot be saved.
    #[error("verify_state_save: {0}: {1}")]
    Save(PathBuf, #[source] io::Error),
    /// No state can be kept of this workload, but the job requires one.
    #[error("{0}")]
    NoState(String),
    /// The threads that check cannot be started.
    #[error("verify_async: {0}")]
    Threads(#[from] io::Error),
}

impl SetupError {
    /// The errno for reports.
    pub fn errno(&self) -> i32 {
        match self {
            SetupError::Load(_) | SetupError::NoState(_) => libc::EINVAL,
            SetupError::History(_) => libc::ENOMEM,
            SetupError::Save(_, error) | SetupError::Threads(error) => {
                error.raw_os_error().unwrap_or(libc::EINVAL)
            }
        }
    }
}

/// The verification of one worker.
pub struct Verification {
    /// The rules.
    pub rules: Rules,
    /// Checks blocks in the worker itself.
    pub checker: Checker,
    /// Threads that check; `None` = the worker does.
    pub pool: Option<Pool>,
    /// The blocks to read back, and when.
    pub read_back: ReadBack,
    /// The state for a later run; `None` = none is kept.
    pub state: Option<Keeper>,
    /// Why the expected state does not exist.
    pub warning: Option<String>,
    /// Trims of blocks that were written; `None` = no trims.
    pub trims: Option<Trims>,
    /// Serializes I/O with other writers of the same places; `None` = no other writers.
    pub turns: Option<Turns>,
    /// The reads at the end of a pass have begun.
    pub at_end: bool,
    /// Everything that was written has been read back.
    pub is_complete: bool,
    /// How far the earlier run got whose writes are checked; `None` = known, or not needed.
    reach: Option<Reach>,
    doubt: Doubt,
    /// The passes of the earlier run; `None` = only one is valid, or they cannot be told apart.
    passes: Option<Passes>,
    stamper: Option<Stamper>,
    /// The storage compares; `None` = blocks are read and checked here.
    comparisons: Option<Comparisons>,
    /// Actual offsets of appended writes, by file and requested offset. (Only if they differ.)
    landings: HashMap<(u32, u64), u64>,
    /// The purpose of each unit.
    roles: Vec<Role>,
    /// The purpose of the next I/O.
    next: Option<Role>,
    wrong: u64,
}

impl Verification {
    /// Begins the verification of a worker with this workload. `owners`: the last writers of shared places.
    ///
    /// # Errors
    ///
    /// There is no memory for the history of writes, the state cannot be loaded or kept, or threads cannot be started.
    pub fn begin(
        rules: &Rules,
        workload: &iolite_workload::Spec,
        owners: &Arc<Owners>,
    ) -> Result<Verification, SetupError> {
        let units = rules.depth as usize;
        let mut other_files = None;
        let read_back = match &rules.state {
            StateRules::Load(load) => {
                let demands = Demands::load(load)?;
                other_files = demands.as_ref().and_then(|demands| demands.warning.clone());
                ReadBack::demands(demands)
            }
            _ => ReadBack::of(&rules.read_back, workload)?,
        };
        // A state names the job that wrote; its blocks have that job's seeds.
        let (seed, writer) = read_back.writer().unwrap_or((rules.seed, rules.number));
        let checker = checker(rules, seed, writer)?;
        let pool = match rules.threads {
            0 => None,
            count => Some(Pool::start(count, &rules.thread_cpus, units, &checker)?),
        };
        let (state, warning) = begin_state(rules, &read_back)?;
        let checker_passes = checker.accepts_any_pass();
        Ok(Verification {
            checker,
            pool,
            read_back,
            state,
            warning: warning.or_else(|| other_files.map(|what| format!("{}: {what}", rules.job))),
            trims: rules.trims.map(|trims| Trims::new(trims, seed)),
            turns: turns(rules, workload.files.len(), owners),
            at_end: false,
            is_complete: false,
            reach: rules.earlier.as_ref().filter(|_| !rules.fatal).map(Reach::new),
            doubt: Doubt::default(),
            passes: checker_passes.then(|| Passes::new(rules, workload)),
            stamper: (rules.writes && !rules.spec.leaves_data()).then(|| Stamper::new(&rules.spec)),
            comparisons: rules.compares.then(|| Comparisons::new(Stamper::new(&rules.spec), units)),
            landings: HashMap::new(),
            roles: vec![Role::default(); units],
            next: None,
            wrong: 0,
            rules: rules.clone(),
        })
    }

    /// An I/O is about to be issued with this unit. A write is stamped.
    pub fn made(&mut self, index: u32, io: &Io, buffer: &mut [u8]) {
        let role = match (self.next.take(), io.direction) {
            (Some(role), _) => role,
            (None, Direction::Write) => Role::Write(self.stamp(io, buffer)),
            (None, Direction::Read) if self.read_back.checks_all_reads() => {
                Role::Check(*io, Expect::Anything)
            }
            (None, Direction::Read) if self.rules.is_replay => Role::Look(*io),
            (None, Direction::Read) => Role::Plain,
            (None, Direction::Trim) => {
                self.trimmed(io);
                Role::Plain
            }
        };
        if self.comparisons.is_some() {
            self.prepare_comparison(index, role, buffer);
        }
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

    /// Puts the expected content of a block into the buffer of the unit that is about to compare it, if it is known.
    fn prepare_comparison(&mut self, index: u32, role: Role, buffer: &mut [u8]) {
        let known = match role {
            Role::Check(io, Expect::Write(number) | Expect::Doubted(number)) => {
                Some(Some(self.identity(&io, number)))
            }
            Role::Check(_, Expect::Zeros) => Some(None),
            _ => None,
        };
        let Some(comparisons) = &mut self.comparisons else { return };
        match known {
            Some(written) => comparisons.prepare(index, buffer, written.as_ref()),
            None => comparisons.forget(index),
        }
    }

    /// Whether the unit that is about to be issued is a comparison.
    pub fn compares(&self, index: u32) -> bool {
        self.compared(index) == Compared::Same
    }

    /// The result of the storage's comparison for the block of a completed unit.
    pub fn compared(&self, index: u32) -> Compared {
        self.comparisons.as_ref().map_or(Compared::No, |comparisons| comparisons.of(index))
    }

    /// The storage reports that the block of this unit differs. Returns whether a comparison was requested.
    pub fn differs(&mut self, index: u32) -> bool {
        self.comparisons.as_mut().is_some_and(|comparisons| comparisons.differs(index))
    }

    /// Records where the device has put an appended write.
    pub fn landed(&mut self, index: u32, offset: u64) {
        let Role::Write(Written { io, .. }) = self.roles[index as usize] else { return };
        if io.offset == offset {
            self.landings.remove(&(io.file, io.offset));
        } else {
            self.landings.insert((io.file, io.offset), offset);
        }
    }

    /// The same I/O at the place where the data of this write has landed.
    pub fn place_of(&self, io: &Io) -> Io {
        let offset = self.landings.get(&(io.file, io.offset)).copied().unwrap_or(io.offset);
        Io { offset, ..*io }
    }

    /// The workload trims this place. A write usually follows, unless the time is over before.
    pub fn trimmed(&mut self, io: &Io) {
        self.read_back.forget(io);
    }

    /// The purpose of the next I/O at its place; `None` = it does not concern rivals.
    pub fn aim(&self, io: &Io) -> Option<Aim> {
        match io.direction {
            _ if self.turns.is_none() => None,
            Direction::Write | Direction::Trim => Some(Aim::Change),
            Direction::Read => {
                let is_checked = self.rules.is_replay || self.read_back.checks_all_reads();
                (self.next.is_some() || is_checked).then_some(Aim::Check)
            }
        }
    }

    /// The question to ask about a block that was read; `None` = it cannot be checked.
    pub fn question(&self, io: &Io, expect: Expect) -> Option<Question> {
        let part = Part { file: io.file, offset: io.offset, length: io.length };
        let owner = self.turns.as_ref().map_or(Owner::Nobody, |turns| turns.owner(part));
        let can_tell = match owner {
            Owner::Me | Owner::Nobody => true,
            Owner::Others => {
                let rivals = self.rules.rivals.files.get(&(io.file as usize));
                // Blocks of another shape are checked only by the rival that wrote them, trimmed ones by no worker.
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

    /// The next I/O is a trim of the block of this write, which is remembered.
    pub fn announce_trim(&mut self, written: Written) {
        self.next = Some(Role::Trim(written));
    }

    /// Why this I/O of the workload cannot be verified; `None` = no obstacle.
    pub fn obstacle(&self, io: &Io) -> Option<SpecError> {
        let is_unforeseen = self.rules.has_unforeseen_blocks && io.direction == Direction::Write;
        is_unforeseen.then(|| self.rules.spec.validate(io.length as usize).err())?
    }

    /// The announced I/O has been issued, or will not be issued because the job stops: then it remains to be done.
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

    /// The block to read at the end of the pass; `None` = no more blocks.
    pub fn next_at_end(&mut self) -> Option<(Io, Expect)> {
        match &mut self.passes {
            Some(passes) if passes.goes_on() => passes.next(&mut self.read_back),
            _ => self.doubt.next(&self.checker, &mut self.read_back),
        }
    }

    /// Goes back to blocks that passed and are now known to be wrong: because they were read before the owner of the
    /// writes was known, or because other blocks are of a later pass. Goes on to blocks that only later passes wrote.
    /// Returns whether there are any. (This may take long, so it calls `stop` now and then and gives up if that is true.)
    pub fn read_again(&mut self, stop: impl Fn() -> bool) -> bool {
        let goes_on = self.passes.as_ref().is_some_and(Passes::goes_on);
        if !goes_on && self.doubt.read_again(&self.checker, &mut self.read_back) {
            return true;
        }
        let again = self.passes.as_mut().is_some_and(|passes| passes.judge(&self.read_back, stop));
        if again {
            self.checker.set_stopped_at(self.passes.as_ref().and_then(Passes::stopped_at));
            self.read_back.go_back();
            // What was read in doubt has been repeated.
            self.checker.start_over();
        }
        again
    }

    /// How many reads the end of the pass is expected to take from here.
    pub fn expected_reads(&self) -> u64 {
        match &self.passes {
            Some(passes) if passes.goes_on() => passes.expected_reads(),
            _ => self.doubt.expected_reads(&self.read_back),
        }
    }

    /// How many of them were read before.
    pub fn repeated_reads(&self) -> u64 {
        let reads_later = self.passes.as_ref().is_some_and(Passes::reads_later);
        if reads_later { 0 } else { self.expected_reads() }
    }

    /// The reads of an earlier run's writes begin.
    pub fn begin_reads(&mut self) {
        let per_pass = self.read_back.issued();
        self.checker.set_per_pass(per_pass);
        if let Some(passes) = &mut self.passes {
            passes.begin(per_pass);
        }
    }

    /// Whether one pass over the workload suffices to know all places of an earlier run's writes, and it is over.
    pub fn knows_all_passes(&self) -> bool {
        self.rules.earlier.is_some_and(|earlier| earlier.any_pass) && self.read_back.issued() > 0
    }

    /// An earlier run has written this.
    pub fn assume(&mut self, io: Io) {
        self.read_back.assume(io);
    }

    /// The next pass begins: with the `same` random choices as the first, or with new ones. The writes of an earlier run
    /// are read once more. `stop` returns whether to stop early.
    pub fn next_pass(&mut self, same: bool, stop: impl Fn() -> bool) {
        if !self.knows_all_passes() {
            return self.read_back.next_pass(same, stop);
        }
        self.read_back.go_back();
        self.doubt = Doubt::default();
        self.checker.start_over();
    }

    /// An explanation for wrong or unchecked blocks: if there is no block of this job, it may have read the wrong
    /// places. `is_all`: everything has been read.
    pub fn hint(&self, is_all: bool) -> Option<String> {
        let alike = self.checker.alike().filter(|_| self.checker.is_in_doubt());
        let (stranger, other) = (self.checker.stranger(), self.checker.other_job());
        let why = match (alike, self.doubt.last_there()) {
            (Some(Alike::Beginning), Some(last)) if is_all && stranger.is_some() => format!(
                "how many of its I/Os are writes depends on its seed, so what was written behind write {last}, the last one \
                 that was found, is not known and has not been checked"
            ),
            (Some(Alike::Places | Alike::Nothing), _) if self.wrong > 0 && other.is_some() => {
                "the places of this workload's writes depend on its seed".to_owned()
            }
            (Some(Alike::Nothing), _) if is_all && stranger.is_some() => {
                "the places of this workload's writes depend on its seed, so writes to other places have not been checked"
                    .to_owned()
            }
            _ if !is_all => return None,
            _ => {
                let reach = self.reach.and_then(|reach| reach.hint());
                return reach.or_else(|| self.passes.as_ref().filter(|_| self.wrong == 0)?.hint());
            }
        };
        Some(format!(
            "no block has a seed of this job (number {}), and some are of job {}: {why}; check from the same place in the same \
             job file (those that --section leaves out count), with the same randseed, or load the state of the run that \
             wrote (verify_state_load=1)",
            self.rules.number,
            other.unwrap_or_default()
        ))
    }

    /// The expected content of a block to be read back; `None` = unknown, so the block is not read.
    pub fn after_trims(&self, expect: Expect) -> Option<Expect> {
        match (&self.trims, expect) {
            (Some(trims), Expect::Write(number) | Expect::Doubted(number)) if trims.chooses(number) => {
                trims.are_zeros().then_some(Expect::Zeros)
            }
            _ => Some(expect),
        }
    }

    /// Takes the purpose of this unit.
    pub fn role(&mut self, index: u32) -> Role {
        std::mem::take(&mut self.roles[index as usize])
    }

    /// The purpose of this unit.
    pub fn role_of(&self, index: u32) -> &Role {
        &self.roles[index as usize]
    }

    /// The unit remains in use for this purpose.
    pub fn keep(&mut self, index: u32, role: Role) {
        self.roles[index as usize] = role;
    }

    /// Whether writes get their content here.
    pub fn stamps(&self) -> bool {
        self.stamper.is_some()
    }

    fn stamp(&mut self, io: &Io, buffer: &mut [u8]) -> Written {
        let number = self.read_back.issue();
        let identity = self.identity(io, number);
        if let Some(stamper) = &mut self.stamper {
            stamper.stamp(buffer, &identity);
        }
        Written { io: *io, number }
    }

    /// The identity in the block of a write. In blocks for comparison the time is 0, because they are generated again.
    fn identity(&self, io: &Io, number: u64) -> Identity {
        let now = match self.comparisons {
            None if self.stamper.is_some() => SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default(),
            _ => Duration::ZERO,
        };
        Identity {
            offset: io.offset,
            sequence: number,
            seed: self.checker.seed(number),
            seconds: now.as_secs() as u32,
            nanoseconds: now.subsec_nanos(),
            job: self.rules.number,
        }
    }

    /// Counts a wrong interval. Returns how much of it to report.
    pub fn count_wrong(&mut self) -> Telling {
        self.wrong += 1;
        match self.wrong.cmp(&MOST_DESCRIBED) {
            std::cmp::Ordering::Less => Telling::Full,
            std::cmp::Ordering::Equal => Telling::Last,
            std::cmp::Ordering::Greater => Telling::Nothing,
        }
    }

    /// A block has been checked. Returns whether to report its mismatches now.
    pub fn checked(
        &mut self,
        io: &Io,
        expect: Expect,
        mismatches: &[Mismatch],
        found: Option<Found>,
    ) -> bool {
        if let (Some(passes), Some(found), Expect::Write(expected) | Expect::Doubted(expected)) =
            (&mut self.passes, found, expect)
            && mismatches.is_empty()
            && (passes.reads_later() || !self.doubt.reads_again())
        {
            passes.found(&self.read_back, io, expected, found);
        }
        let number = found.map(|found| found.number);
        self.doubt.checked(&self.checker, self.reach.as_mut(), expect, mismatches, number)
    }

    /// How many intervals were wrong.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// Saves a wrong interval and its intended content, if `verify_dump` is set. Returns a line for each file with its
    /// path, or the reason why it could not be saved.
    pub fn dump(&self, file: &str, read: &[u8], mismatch: &Mismatch) -> Vec<String> {
        match &self.rules.dump {
            Some(directory) if mismatch.field != Field::End => dump::save(directory, file, read, mismatch),
            Some(_) | None => Vec::new(),
        }
    }
}

/// Checks blocks of the job with this number whose contents come from `seed`.
fn checker(rules: &Rules, seed: u64, number: u16) -> Result<Checker, LoadError> {
    let checker = Checker::new(&rules.spec, seed, number, Arc::new(rules.rivals.numbers()))
        .with_atomic_writes(rules.atomic_writes)
        .that_accepts_all(!rules.reads_data)
        .that_stops_at_the_first(rules.fatal);
    let checker = match &rules.state {
        StateRules::Load(Load { policy, comes_later, .. }) => {
            // All other states of rivals have been checked before the run.
            if *comes_later {
                rules
                    .rivals
                    .states()
                    .try_for_each(|(path, name)| rival_states::check(path, name, *policy))?;
            }
            checker.beside(OtherStates::load(*policy, &rules.rivals)?)
        }
        _ => checker,
    };
    let overwrites = rules.read_back != ReadBackRules::AtEnd(Need::Replay);
    Ok(match &rules.earlier {
        Some(earlier) => checker.of_an_earlier_run(earlier, overwrites),
        None => checker,
    })
}

/// Creates the state file. A state that cannot be kept is only a warning unless it was requested; a state to be loaded
/// that does not exist is always only a warning.
fn begin_state(rules: &Rules, read_back: &ReadBack) -> Result<(Option<Keeper>, Option<String>), SetupError> {
    match &rules.state {
        StateRules::None => Ok((None, None)),
        StateRules::Load(load) => {
            Ok((None, read_back.is_nothing().then(|| nothing_left(&rules.job, &load.path))))
        }
        StateRules::Impossible { message, is_required: true } => Err(SetupError::NoState(message.clone())),
        StateRules::Impossible { message, is_required: false } => Ok((None, Some(message.clone()))),
        StateRules::Keep(keep) => match Keeper::begin(keep, rules) {
            Ok(keeper) => Ok((Some(keeper), None)),
            Err(error) if keep.is_asked_for => Err(SetupError::Save(keep.path.clone(), error)),
            Err(error) => Ok((None, Some(no_state(&rules.job, keep, &error)))),
        },
    }
}

fn nothing_left(job: &str, path: &Path) -> String {
    format!(
        "{job}: there is no {}, so nothing is left to check here: whoever kept it has read everything back, or has written \
         nothing (verify_state_save=1 in the job that writes keeps it)",
        path.display()
    )
}

fn no_state(job: &str, keep: &Keep, error: &io::Error) -> String {
    format!(
        "{job}: there is no verify state {}: {error}; if the run is interrupted, what was written cannot be verified (another \
         --aux-path may have room for it, and verify_state_save=0 does without)",
        keep.path.display()
    )
}

/// Serializes the worker's I/O with its rivals'; `None` = it has no rivals now.
fn turns(rules: &Rules, files: usize, owners: &Arc<Owners>) -> Option<Turns> {
    rules.rivals.take_turns().then(|| {
        let shared = (0..files).map(|file| rules.rivals.shared(file)).collect();
        Turns::new(shared, rules.depth as usize, owners.clone(), (rules.worker + 1) as u16)
    })
}
