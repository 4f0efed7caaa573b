//! The requirements of a saved state for the files of a job.

use crate::load_error::LoadError;
use crate::question::SavedWrites;
use crate::rules::Load;
use crate::state::{FileIdentity, Saved, SavedFile, StateError, StateImprint, StateNames};
use iolite_types::Direction;
use iolite_workload::Io;
use std::io;

/// The requirements of a state, place by place.
#[derive(Debug)]
pub struct Demands {
    /// The seed of the job that wrote.
    pub(crate) seed: u64,
    /// That job's number in headers.
    pub(crate) number: u16,
    /// The job's files are not those of the state.
    pub(crate) warning: Option<String>,
    issued: u64,
    is_copied: bool,
    per_pass: u64,
    files: Vec<SavedFile>,
    /// Bytes of the largest block that fits into the buffers.
    largest: u64,
    /// The file of the next place, and its block in the table.
    file: usize,
    block: usize,
}

impl Demands {
    /// Loads a state. `None`: it does not exist, but others of the same run do. So its worker has read everything back,
    /// or has written nothing.
    ///
    /// # Errors
    ///
    /// All states of the run are missing; or the state cannot be read, is damaged, or belongs to another job.
    pub fn load(load: &Load) -> Result<Option<Demands>, LoadError> {
        let failed = |error| LoadError::State(load.path.clone(), error);
        let saved = match Saved::open(&load.path) {
            Err(StateError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                let has_company = load.company.iter().any(StateNames::any_exists);
                return if has_company { Ok(None) } else { Err(LoadError::missing(&load.path)) };
            }
            saved => saved.map_err(failed)?,
        };
        check_job(load, &saved)?;
        let warning = other_files(load, &saved);
        let files = (0..saved.setup.files.len() as u32).map(|file| saved.file(file, load.policy));
        let files: Vec<SavedFile> = files.collect::<Result<_, _>>().map_err(failed)?;
        check_blocks(load, &saved, &files)?;
        Ok(Some(Demands {
            seed: saved.setup.seed,
            number: saved.setup.number,
            warning,
            issued: saved.issued,
            is_copied: saved.setup.is_copied,
            per_pass: saved.setup.per_pass,
            files,
            largest: load.largest,
            file: 0,
            block: 0,
        }))
    }

    /// How many places are left.
    pub(crate) fn left(&self) -> u64 {
        let from = |file: usize| if file == self.file { self.block } else { 0 };
        let files = self.files.iter().enumerate().skip(self.file);
        files.map(|(index, file)| file.demands_from(from(index)).count() as u64).sum()
    }

    /// The next place, and the writes that it may hold.
    pub(crate) fn next(&mut self) -> Option<(Io, SavedWrites)> {
        loop {
            let file = self.files.get(self.file)?;
            let Some((demand, block)) = file.next_demand(self.block) else {
                self.file += 1;
                self.block = 0;
                continue;
            };
            self.block = block;
            if demand.length > self.largest {
                // It was written after the state was loaded: the job of the state is still running.
                continue;
            }
            let direction = Direction::Read;
            let io = Io { offset: demand.offset, length: demand.length, file: demand.file, direction };
            let Demands { issued, per_pass, is_copied, .. } = *self;
            return Some((io, SavedWrites { accepted: demand.accepted, issued, per_pass, is_copied }));
        }
    }
}

/// Whether a state belongs to this job, according to its description.
fn check_job(load: &Load, saved: &Saved) -> Result<(), LoadError> {
    let same = |method: &str| method.replace("crc32c-intel", "crc32c");
    if same(&saved.setup.kind) != same(&load.method) {
        return Err(other(load, "verify", &saved.setup.kind, &load.method));
    }
    if saved.setup.files.len() != load.files.len() {
        let of_state: Vec<&str> = saved.setup.files.iter().map(|file| file.name.as_str()).collect();
        return Err(other(load, "filename", &of_state.join(":"), &load.files.join(":")));
    }
    Ok(())
}

/// A warning that the job's files are not those of the state: copies, or files that were renamed before their identity
/// was known. Whether they are right is for their content to say.
fn other_files(load: &Load, saved: &Saved) -> Option<String> {
    let mut pairs = saved.setup.files.iter().zip(&load.files);
    let (of_state, of_job) = pairs.find(|(file, name)| !file.is(name, load.are_local))?;
    let exists = load.are_local && FileIdentity::of(of_job).is_some();
    let is = if of_state.identity.is_some() && exists { "is" } else { "may be" };
    let (state, of_state) = (load.path.display(), &of_state.name);
    Some(match of_state == of_job {
        true => format!("{of_job} is not the file that {state} was kept for, but another one of this name"),
        false => format!("{state} is the state of {of_state}, and {of_job} {is} another file"),
    })
}

/// Whether the job can check the blocks that a state requires.
fn check_blocks(load: &Load, saved: &Saved, files: &[SavedFile]) -> Result<(), LoadError> {
    let lengths = || files.iter().flat_map(SavedFile::demands).map(|demand| demand.length);
    let (length, largest) = (lengths().max().unwrap_or(0), load.largest);
    if length > largest {
        return Err(LoadError::Length { path: load.path.clone(), length, largest });
    }
    let difference = saved.setup.imprint.as_ref().and_then(|imprint| {
        let (option, found, wanted) = difference(imprint, &load.imprint, lengths())?;
        Some(other(load, option, &found, &wanted))
    });
    difference.map_or(Ok(()), Err)
}

fn other(load: &Load, option: &'static str, found: &str, wanted: &str) -> LoadError {
    LoadError::Other { path: load.path.clone(), option, found: found.to_owned(), wanted: wanted.to_owned() }
}

/// The first option that makes the blocks of a state differ from those of a job: its name, its value in the state, and
/// in the job. (An interval matters if it divides a block of one of these lengths differently.)
fn difference(
    of_state: &StateImprint,
    of_job: &StateImprint,
    mut lengths: impl Iterator<Item = u64>,
) -> Option<(&'static str, String, String)> {
    let cut = |interval: u64, length: u64| match interval {
        interval if interval > 0 && length.is_multiple_of(interval) => interval,
        _ => length,
    };
    let named = |pattern: &str| if pattern.is_empty() { "(none)".to_owned() } else { pattern.to_owned() };
    let numbers = |option, one: u64, other: u64| Some((option, one.to_string(), other.to_string()));
    let (one, other) = (of_state, of_job);
    if let Some(length) = lengths.find(|&length| cut(one.interval, length) != cut(other.interval, length)) {
        return numbers("verify_interval", cut(one.interval, length), cut(other.interval, length));
    }
    if one.offset != other.offset {
        return numbers("verify_offset", one.offset, other.offset);
    }
    if one.pattern != other.pattern {
        return Some(("verify_pattern", named(&one.pattern), named(&other.pattern)));
    }
    let interval =
        |imprint: &StateImprint| if imprint.pattern.is_empty() { 0 } else { imprint.pattern_interval };
    if interval(one) != interval(other) {
        return numbers("verify_pattern_interval", interval(one), interval(other));
    }
    None
}
