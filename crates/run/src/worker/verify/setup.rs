//! From the options of a job to its [`Verification`].

use super::others::{self, OtherStates};
use super::owners::Owners;
use super::plan::Backlog;
use super::reach::Reach;
use super::state::{self, Demands, LoadError, State};
use super::{Alike, Checker, Policy, Pool, ReadBack, Rivalry, Trims, Turns, Verification};
use iolite_content::Fill;
use iolite_options::{JobOptions, VerifyHeaderFormat};
use iolite_plan::resolve::content;
use iolite_plan::{Layout, ReplayPlan};
use iolite_types::Direction;
use iolite_verify::block::{HeaderFormat, Kind, Spec, SpecError, Stamper};
use iolite_workload::history::{Need, Replay, Standing, can_repeat};
use iolite_workload::{BlockSize, Error, FileOrder, Mix};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A trace says itself when its files are opened; so many of them are left open to be read back.
const MOST_OPEN: usize = 64;

/// What a worker knows about itself.
pub struct Identity {
    /// The seed of its contents.
    pub seed: u64,
    /// Its number in headers.
    pub job: u16,
    /// Those who write to the same places.
    pub rivalry: Rivalry,
    /// Who wrote last to what is shared.
    pub owners: Arc<Owners>,
    /// Whether what its engine writes is kept.
    pub keeps_data: bool,
    /// Where dumps and states go.
    pub directory: PathBuf,
    /// Its number in the run, from 0.
    pub worker: usize,
    /// What it replays.
    pub replay: Option<Arc<ReplayPlan>>,
    /// The same in a run of all sections.
    pub place: u64,
}

/// Why there can be no verification.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The options cannot be followed.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// There is no memory for the history.
    #[error(transparent)]
    History(#[from] Error),
    /// The state cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The state cannot be saved.
    #[error("verify_state_save: {0}: {1}")]
    Save(PathBuf, #[source] io::Error),
    /// The threads that check cannot be started.
    #[error("verify_async: {0}")]
    Threads(#[from] io::Error),
}

impl SetupError {
    /// The number that stands for it.
    pub fn errno(&self) -> i32 {
        match self {
            SetupError::Spec(_) | SetupError::Load(_) => libc::EINVAL,
            SetupError::History(_) => libc::ENOMEM,
            SetupError::Save(_, error) | SetupError::Threads(error) => {
                error.raw_os_error().unwrap_or(libc::EINVAL)
            }
        }
    }
}

/// How blocks of these sizes are made and checked; `None` = the data of the job is not verified. `unaligned` sizes may
/// be any between the smallest and the largest.
pub fn spec(options: &JobOptions, sizes: &BlockSize, unaligned: bool) -> Option<Spec> {
    let wanted = &options.verification;
    let kind = Kind::from_name(wanted.verify.keyword())?;
    let fill = if wanted.verify_pattern.is_empty() {
        Fill::Random
    } else {
        Fill::Pattern(wanted.verify_pattern.iter().map(content::piece).collect())
    };
    let mut spec = Spec {
        interval: wanted.verify_interval as usize,
        offset: wanted.verify_offset as usize,
        fill,
        pattern_interval: wanted.verify_pattern_interval as usize,
        compress: content::compress(options),
        format: match wanted.verify_header_format {
            VerifyHeaderFormat::V342 => HeaderFormat::V342,
            VerifyHeaderFormat::V333 => HeaderFormat::V333,
        },
        check_seed: wanted.verify_header_seed,
        check_sequence: wanted.verify_write_sequence,
        ..Spec::new(kind)
    };
    let common = if !options.read_iolog.is_empty() {
        // What a trace has in common may be known only at its end: its blocks are cut into those of the job, which is
        // what a later job reads.
        options.block_size(checked_direction(options)).common() as usize
    } else if unaligned {
        0
    } else {
        // Blocks of several sizes are cut into intervals of what divides them all, where a header fits into that.
        sizes.common() as usize
    };
    if spec.interval == 0 && common > 0 && spec.validate(common).is_ok() {
        spec.interval = common;
    }
    Some(spec)
}

/// How the blocks of a workload are made and checked; `None` = they are not verified.
pub fn spec_of(options: &JobOptions, workload: &iolite_workload::Spec) -> Option<Spec> {
    spec(options, &workload.block_size[checked_direction(options)], workload.unaligned)
}

/// The direction whose blocks are checked: what is written, or else read.
pub(super) fn checked_direction(options: &JobOptions) -> Direction {
    if options.rw.writes() { Direction::Write } else { Direction::Read }
}

/// Whether the job reads back what it, or an earlier run of it, has written.
pub fn reads_back(options: &JobOptions) -> bool {
    let verification = &options.verification;
    loads_state(options)
        || (verification.is_on() && options.rw.writes() && (verification.do_verify || options.verify_only))
}

/// Whether the job checks what a saved state demands, and does nothing else.
pub fn loads_state(options: &JobOptions) -> bool {
    options.verification.is_on() && options.verification.verify_state_load
}

/// Whether the job does the I/Os that its generator says: no mix is steered, no writes may fail, and their number does
/// not depend on a ramp.
fn is_predictable(options: &JobOptions, workload: &iolite_workload::Spec) -> bool {
    let steered = matches!(workload.mix, Mix::ReadWrite(_)) && options.is_steered();
    let may_fail =
        options.fill_device || options.continue_on_error.write || !options.ignore_error.write.is_empty();
    !steered && !may_fail && !options.counts_after_ramp()
}

/// What an earlier run with another seed has in common with this job.
pub(super) fn alike(
    options: &JobOptions,
    workload: &iolite_workload::Spec,
    replay: Option<&ReplayPlan>,
) -> Alike {
    // The order in a trace is always the same, and who only reads does no writes in its mind.
    if replay.is_some() || !options.rw.writes() {
        return Alike::Writes;
    }
    let is_one_file = workload.files.len() == 1;
    let used = [
        (Direction::Read, options.rw.reads()),
        (Direction::Write, options.rw.writes()),
        (Direction::Trim, options.rw.trims()),
    ];
    let used = || used.into_iter().filter(|&(_, used)| used).map(|(direction, _)| direction);
    let sizes_are_fixed =
        used().all(|direction| matches!(workload.block_size[direction], BlockSize::Fixed(_)));
    let files_take_turns = match workload.file_order {
        FileOrder::RoundRobin | FileOrder::Sequential => true,
        FileOrder::Random | FileOrder::Skewed(_) => is_one_file,
    };
    // The seed picks the size of each file from a range, and the blocks that are trimmed after they were written.
    let files_are_fixed = options.filesize.is_none_or(|range| range.low == range.high);
    let trims_are_fixed = matches!(options.verification.trim_percentage, 0 | 100..);
    if !files_are_fixed || !trims_are_fixed {
        return Alike::Nothing;
    }
    let is_random = options.rw.is_random();
    // In a mix the seed says which I/Os are writes, and so how many each file gets in a pass.
    if options.has_choice() {
        let is_one_pass = options.loops <= 1 && !can_repeat(workload);
        let is_one_row = is_one_file && is_one_pass && sizes_are_fixed && !is_random;
        return if is_one_row { Alike::Beginning } else { Alike::Nothing };
    }
    if sizes_are_fixed && files_take_turns && !is_random {
        return Alike::Writes;
    }
    // Nothing is left over at the end where every block is a multiple of the smallest.
    let sizes_fit = !workload.unaligned
        && used().all(|direction| {
            let sizes = &workload.block_size[direction];
            sizes.common() == sizes.min()
        });
    let bytes: u64 = workload.files.iter().fold(0, |sum, region| sum.saturating_add(region.length));
    let is_whole = workload.total_ios.is_none() && workload.pass_bytes.is_none_or(|limit| limit >= bytes);
    let is_even = if is_random { sizes_are_fixed && !can_repeat(workload) } else { !can_repeat(workload) };
    if sizes_fit && is_whole && is_even { Alike::Places } else { Alike::Nothing }
}

/// What is read back when.
fn read_back(
    options: &JobOptions,
    workload: &iolite_workload::Spec,
    replay: Option<&ReplayPlan>,
) -> Result<ReadBack, Error> {
    if !options.rw.writes() {
        return Ok(ReadBack::all_reads());
    }
    if !reads_back(options) {
        return Ok(ReadBack::nothing());
    }
    let verification = &options.verification;
    if verification.verify_backlog > 0 && !options.verify_only {
        let (every, batch) = (verification.verify_backlog, verification.verify_backlog_batch);
        return Ok(ReadBack::backlog(Backlog::new(every, batch, can_repeat(workload))));
    }
    let mut need = Need::of(workload, is_predictable(options, workload));
    if replay.is_some_and(|replay| need.is_more_than_list(&workload.files, replay.ios[Direction::Write])) {
        need = Need::Extents;
    }
    Ok(match Standing::new(workload, need)? {
        Some(standing) => ReadBack::standing(standing),
        None => ReadBack::replay(Replay::new(workload)?),
    })
}

/// Whether a table of all blocks is large for what a trace writes.
fn has_few_writes(replay: &ReplayPlan, workload: &iolite_workload::Spec) -> bool {
    /// A state of so many bytes is kept without being asked for.
    const USUAL: u64 = 64 << 20;
    let need = Need::of(workload, false);
    need.map_bytes(&workload.files) > USUAL
        && need.is_more_than_list(&workload.files, replay.ios[Direction::Write])
}

/// Whether the job keeps a state, if it can be kept.
pub(super) fn keeps_state(options: &JobOptions, keeps_data: bool) -> bool {
    let wanted = &options.verification;
    let checks = Kind::from_name(wanted.verify.keyword()).is_some_and(|kind| kind != Kind::Null);
    options.rw.writes() && !options.verify_only && wanted.verify_state_save && keeps_data && checks
}

/// Whether a job that cannot keep a state must not run.
pub(super) fn insists_on_state(options: &JobOptions) -> bool {
    options.is_set("verify_state_save") && options.verification.verify_state_save
}

/// Begins the state file. Where none was asked for, that there can be none is no reason to stop, but is said.
fn begin_state(
    path: &Path,
    options: &JobOptions,
    workload: &iolite_workload::Spec,
    (layout, replay): (&Layout, Option<&ReplayPlan>),
    identity: (u64, u16),
) -> Result<(Option<State>, Option<String>), SetupError> {
    let insists = insists_on_state(options);
    let flushes = replay.is_some_and(|replay| replay.flushes);
    if !insists && replay.is_some_and(|replay| has_few_writes(replay, workload)) {
        let warning = format!(
            "{}: there is no verify state: the few writes of the trace are so far apart that it would be large; \
             verify_state_save=1 insists on it",
            options.name
        );
        return Ok((None, Some(warning)));
    }
    match State::begin(path, options, workload, (layout, flushes), identity) {
        Ok(None) if insists => Err(SetupError::Save(path.to_owned(), io::Error::other(state::NO_TABLE))),
        Ok(None) => {
            let warning = format!(
                "{}: there is no verify state: {} (verify_state_save=0 does without)",
                options.name,
                state::NO_TABLE
            );
            Ok((None, Some(warning)))
        }
        Ok(state) => Ok((state, None)),
        Err(error) if insists => Err(SetupError::Save(path.to_owned(), error)),
        Err(error) => {
            let warning = format!(
                "{}: there is no verify state {}: {error}; if the run is interrupted, what was written cannot be verified \
                 (another --aux-path may have room for it, and verify_state_save=0 does without)",
                options.name,
                path.display()
            );
            Ok((None, Some(warning)))
        }
    }
}

/// How the worker keeps apart from its rivals; `None` = it has none now.
fn turns(
    layout: &Layout,
    rivalry: &Rivalry,
    units: usize,
    owners: Arc<Owners>,
    worker: u16,
) -> Option<Turns> {
    let shared = |file: usize| rivalry.files.get(&file).and_then(|rivals| rivals.shared);
    let takes_turns = rivalry.files.keys().any(|&file| shared(file).is_some());
    takes_turns.then(|| Turns::new((0..layout.files.len()).map(shared).collect(), units, owners, worker))
}

impl Verification {
    /// What the options ask for; `None` = nothing is verified.
    pub fn new(
        options: &JobOptions,
        workload: &iolite_workload::Spec,
        layout: &Layout,
        identity: Identity,
    ) -> Result<Option<Verification>, SetupError> {
        let Some(spec) = spec_of(options, workload) else { return Ok(None) };
        let wanted = &options.verification;
        let Identity { seed, job, rivalry, owners, keeps_data, directory, worker, place, replay } = identity;
        let replay = replay.as_deref();
        let state_path = state::path(&directory, &options.name, place);
        let (mut read_back, mut seed, mut writer) = (read_back(options, workload, replay)?, seed, job);
        if loads_state(options) {
            let demands = Demands::load(&state_path, options, workload, layout)?;
            (seed, writer) = demands.identity;
            read_back = ReadBack::demands(demands);
        }
        let mut checker =
            Checker::new(&spec, seed, writer, Arc::new(rivalry.numbers())).with_atomic_writes(options.atomic);
        if loads_state(options) {
            let policy = state::policy(options);
            // What was there before the run has been looked at.
            if options.exec_prerun.is_some() {
                rivalry.states().try_for_each(|(path, name)| others::check(path, name, policy))?;
            }
            checker = checker.beside(OtherStates::load(policy, &rivalry)?);
        }
        if !keeps_data {
            checker = checker.that_pretends();
        }
        checker = checker.that_stops_at_the_first(wanted.verify_fatal);
        if options.verify_only && !loads_state(options) {
            let is_own = options.is_set("verify_header_seed") && wanted.verify_header_seed;
            checker = match options.randrepeat && is_own {
                true => checker.of_an_earlier_run_of_its_own(),
                false => checker.of_an_earlier_run(alike(options, workload, replay)),
            };
        }
        let units = options.iodepth.max(1) as usize;
        let pool = match wanted.verify_async {
            0 => None,
            count => Some(Pool::start(count, &wanted.verify_async_cpus, units, &checker)?),
        };
        let writes = options.rw.writes() && !options.verify_only;
        let (state, warning) = if keeps_state(options, keeps_data) {
            begin_state(&state_path, options, workload, (layout, replay), (seed, job))?
        } else {
            (None, None)
        };
        Ok(Some(Verification {
            checker,
            pool,
            read_back,
            state,
            warning,
            trims: (wanted.trim_percentage > 0 && options.rw.writes()).then(|| {
                let batches = (wanted.trim_backlog, wanted.trim_backlog_batch);
                Trims::new(wanted.trim_percentage, seed, batches, wanted.trim_verify_zero)
            }),
            turns: turns(layout, &rivalry, units, owners, (worker + 1) as u16),
            rivalry,
            is_replay: replay.is_some(),
            unforeseen: replay.filter(|replay| replay.is_live && writes).map(|_| spec.clone()),
            reach: (options.verify_only && !loads_state(options) && !wanted.verify_fatal)
                .then(|| Reach::new(options)),
            at_end: false,
            is_complete: false,
            doubt: Default::default(),
            policy: Policy {
                fatal: wanted.verify_fatal,
                dump: wanted.verify_dump.then_some(directory),
                outlasts_time: options.time_based || loads_state(options),
                open_files: if replay.is_some() { MOST_OPEN } else { workload.open_files },
            },
            stamper: writes.then(|| Stamper::new(&spec)),
            job,
            roles: vec![Default::default(); units],
            next: None,
            wrong: 0,
        }))
    }
}
