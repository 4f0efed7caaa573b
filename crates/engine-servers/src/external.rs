//! `external`: an engine in a third-party shared object, written against `include/iolite-engine.h`.
//!
//! The library is loaded in the worker. Its code is trusted, its return values are not: they are validated wherever a
//! wrong one could corrupt this process.

mod abi;
mod library;
mod storage;

use self::library::Loaded;
use iolite_engine::completed_later::{Completer, Completions, threads_started_by};
use iolite_engine::file::Files;
use iolite_engine::{
    Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued, Storage, Unit,
};
use iolite_options::engines::{Completion as CompletedBy, ExternalOptions, Facets};
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::time::Duration;

/// Room for an engine's message when it cannot be created.
const WORDS: usize = 512;

/// The facets that the engine in a shared object declares. Loads it, so the caller must not fork later.
///
/// # Errors
/// The engine cannot be used; the error says why.
pub fn describe_external(library: &Path) -> Result<Facets, EngineError> {
    Ok(Loaded::open(library)?.facets)
}

/// The engine of a library, synchronous or not.
pub struct ExternalEngine<const SYNCHRONOUS: bool> {
    engine: abi::Engine,
    /// The state that `create` returned.
    state: *mut c_void,
    /// Present if the engine works on local files.
    files: Option<Files>,
    /// For engines whose own threads complete units.
    completions: Option<Completions>,
    threads: Vec<i32>,
    /// The units as the engine sees them: valid until they are complete. Their numbers are indices here.
    units: Box<[abi::Unit]>,
    /// The worker's number of the unit in each place; `None` = it is free.
    numbers: Box<[Option<u32>]>,
    free: Vec<u32>,
    /// The array that `reap` fills in.
    done: Vec<abi::Completion>,
    names: Vec<Option<CString>>,
    /// The parameters given to the engine, which it may read as long as it lives.
    _told: Box<Told>,
}

/// The parameters that an engine gets when it is made, and their targets.
struct Told {
    worker: abi::Worker,
    _arguments: CString,
    _completer: Option<Box<Completer>>,
}

/// A synchronous or a queueing engine.
pub enum OpenedExternal {
    /// Its units are complete when `queue` returns.
    Synchronous(ExternalEngine<true>),
    /// Its units are reaped.
    Queueing(ExternalEngine<false>),
}

/// Makes the engine of this library.
///
/// # Errors
/// The library cannot be used, or the engine's own error.
pub fn open_external(config: &EngineConfig, own: &ExternalOptions) -> Result<OpenedExternal, EngineError> {
    let loaded = Loaded::open(&own.library)?;
    Ok(match loaded.facets.is_synchronous() {
        true => OpenedExternal::Synchronous(ExternalEngine::new(config, own, loaded)?),
        false => OpenedExternal::Queueing(ExternalEngine::new(config, own, loaded)?),
    })
}

impl<const SYNCHRONOUS: bool> ExternalEngine<SYNCHRONOUS> {
    fn new(config: &EngineConfig, own: &ExternalOptions, loaded: Loaded) -> Result<Self, EngineError> {
        let Loaded { engine, facets } = loaded;
        let error = |why| EngineError::External { library: own.library.display().to_string(), why };
        let by_threads = facets.completion == CompletedBy::LibraryThreads;
        let completions = by_threads.then(|| Completions::new(config.depth));
        let told = Box::new(tell(config, own, completions.as_ref()).map_err(error)?);
        let create = || create(&engine, &told.worker);
        // Only engines that complete on threads have relevant threads.
        let (made, threads) = if by_threads { threads_started_by(create) } else { (create(), Vec::new()) };
        let unit = abi::Unit {
            buffer: ptr::null_mut(),
            length: 0,
            offset: 0,
            index: 0,
            file: 0,
            operation: 0,
            priority: 0,
        };
        Ok(ExternalEngine {
            engine,
            state: made.map_err(error)?,
            files: facets.has_local_files().then(|| Files::new(config)),
            completions,
            threads,
            units: vec![unit; config.depth].into(),
            numbers: vec![None; config.depth].into(),
            free: (0..config.depth as u32).rev().collect(),
            done: Vec::with_capacity(config.depth),
            names: vec![None; config.files],
            _told: told,
        })
    }

    /// Tells the engine about a file that is used from now on.
    fn tell_open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let Some(open) = self.engine.open else { return Ok(()) };
        let name = name_of(&spec.path)?;
        let file = abi::File {
            size: size_of::<abi::File>() as u32,
            flags: flags_of(mode),
            name: name.as_ptr(),
            end: spec.size,
            descriptor: self.descriptor(index).unwrap_or(-1),
            reserved: 0,
        };
        // SAFETY: the file and its name are valid through the call.
        let result = checked(unsafe { open(self.state, index, &raw const file) });
        if self.names.len() <= index as usize {
            self.names.resize(index as usize + 1, None);
        }
        // Engines are allowed to keep the name for as long as the file is open.
        self.names[index as usize] = Some(name);
        result
    }

    /// The unit's answer from `queue`, as ours.
    fn answered(&mut self, place: u32, answer: i64) -> Queued {
        let completed = match answer {
            abi::QUEUED if !SYNCHRONOUS => return Queued::Queued,
            abi::BUSY if !SYNCHRONOUS => Queued::Busy,
            // The engine has promised to complete units in the call.
            abi::QUEUED | abi::BUSY => Queued::Completed(Err(Errno(libc::EPROTO))),
            result => Queued::Completed(self.outcome(place, result)),
        };
        if let Some(completions) = &mut self.completions
            && !completions.take_back(place)
        {
            // A thread has completed it already, which takes precedence.
            return Queued::Queued;
        }
        self.release(place);
        completed
    }

    /// Frees a place. Returns the number of the unit that was in it, if any.
    fn release(&mut self, place: u32) -> Option<u32> {
        let number = self.numbers.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(number)
    }

    /// A result as an outcome. A result above the unit's length is an error.
    fn outcome(&self, place: u32, result: i64) -> Outcome {
        let asked = self.units[place as usize].length;
        match u64::try_from(result) {
            Ok(bytes) if bytes <= asked => Ok(bytes),
            Ok(_) => Err(Errno(libc::EPROTO)),
            Err(_) => Err(errno_of(result)),
        }
    }

    /// Asks an engine that completes its units itself.
    fn ask(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let Some(reap) = self.engine.reap else { return Ok(()) };
        let flying = self.units.len() - self.free.len();
        let (min, max) = (min.min(flying), max.min(flying));
        if max == 0 {
            return Ok(());
        }
        self.done.clear();
        self.done.resize(max, abi::Completion::default());
        let timeout = timeout.map_or(-1, |timeout| i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
        // SAFETY: there is room for `max` completions.
        let answer = unsafe { reap(self.state, min as u32, max as u32, timeout, self.done.as_mut_ptr()) };
        let count = match usize::try_from(answer) {
            Ok(count) if count <= max => count,
            Ok(_) => return Err(Errno(libc::EPROTO)),
            Err(_) if answer == -libc::EINTR => 0,
            Err(_) => return Err(errno_of(answer.into())),
        };
        for completed in 0..count {
            let abi::Completion { unit: place, result, .. } = self.done[completed];
            // A completion for a unit that is not in flight is a mistake of the engine.
            let unit = self.release(place).ok_or(Errno(libc::EPROTO))?;
            done.push(Completion { unit, outcome: self.outcome(place, result) });
        }
        Ok(())
    }
}

/// Builds the parameters of an engine.
fn tell(
    config: &EngineConfig,
    own: &ExternalOptions,
    completions: Option<&Completions>,
) -> Result<Told, String> {
    let arguments = CString::new(own.arguments.as_str()).map_err(|error| format!("arguments: {error}"))?;
    let completer = completions.map(|completions| Box::new(completions.completer()));
    let address = completer.as_deref().map_or(ptr::null(), ptr::from_ref);
    let flags = [(config.direct, abi::DIRECT), (config.atomic, abi::ATOMIC)];
    let worker = abi::Worker {
        size: size_of::<abi::Worker>() as u32,
        depth: config.depth as u32,
        files: config.files as u32,
        flags: or(&flags),
        seed: config.seed,
        arguments: arguments.as_ptr(),
        completer: address.cast_mut().cast(),
        complete: completer.is_some().then_some(complete),
    };
    Ok(Told { worker, _arguments: arguments, _completer: completer })
}

/// Creates the engine; on failure returns the reason.
fn create(engine: &abi::Engine, worker: &abi::Worker) -> Result<*mut c_void, String> {
    let create = engine.create.ok_or("it has no create")?;
    let mut state = ptr::null_mut();
    let mut why = [0 as c_char; WORDS];
    // SAFETY: the worker lives as long as the engine, and there is room for the state and for these words.
    let result = unsafe { create(worker, &raw mut state, why.as_mut_ptr(), WORDS) };
    if result == 0 {
        return Ok(state);
    }
    why[WORDS - 1] = 0;
    // SAFETY: there is a zero at the end.
    let words = unsafe { std::ffi::CStr::from_ptr(why.as_ptr()) }.to_string_lossy().into_owned();
    let error = iolite_types::describe_error(&io::Error::from(errno_of(result.into())));
    Err(if words.is_empty() { format!("the engine cannot be created: {error}") } else { words })
}

/// `complete` of `struct iolite_worker`.
unsafe extern "C" fn complete(completer: *mut c_void, unit: u32, result: i64) -> c_int {
    // SAFETY: it is the completer that the engine was given, which lives as long as the engine.
    let completer = unsafe { &*completer.cast::<Completer>().cast_const() };
    let outcome = u64::try_from(result).map_err(|_| errno_of(result));
    if completer.complete(unit, outcome) { 0 } else { -libc::EINVAL }
}

/// Converts a negated errno from an engine. Any other value breaks the interface's promise and becomes `EPROTO`.
fn errno_of(result: i64) -> Errno {
    /// The largest error number (`MAX_ERRNO` of the kernel).
    const MOST: i64 = 4095;
    Errno(if (-MOST..0).contains(&result) { -result as i32 } else { libc::EPROTO })
}

fn checked(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(errno_of(result.into()).into()) }
}

fn name_of(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn or(flags: &[(bool, u32)]) -> u32 {
    flags.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag)
}

fn flags_of(mode: OpenMode) -> u32 {
    or(&[
        (mode.read, abi::READS),
        (mode.write, abi::WRITES),
        (mode.create, abi::CREATES),
        (mode.direct, abi::FILE_DIRECT),
        (mode.sync, abi::FILE_SYNC),
        (mode.dsync, abi::FILE_DSYNC),
    ])
}

impl<const SYNCHRONOUS: bool> Engine for ExternalEngine<SYNCHRONOUS> {
    const SYNCHRONOUS: bool = SYNCHRONOUS;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        if let Some(files) = &mut self.files {
            files.open(index, spec, mode)?;
        }
        self.tell_open(index, spec, mode).inspect_err(|_| {
            if let Some(files) = &mut self.files {
                // The earlier error matters.
                let _ = files.close(index);
            }
        })
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        let told = match self.engine.close {
            // SAFETY: takes nothing but the engine's own state and a number.
            Some(close) => checked(unsafe { close(self.state, index) }),
            None => Ok(()),
        };
        if let Some(name) = self.names.get_mut(index as usize) {
            *name = None;
        }
        match &mut self.files {
            Some(files) => told.and(files.close(index)),
            None => told,
        }
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files.as_ref()?.descriptor(index)
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let Some(queue) = self.engine.queue else { return Queued::Completed(Err(Errno(libc::ENOSYS))) };
        let Some(place) = self.free.pop() else { return Queued::Busy };
        self.units[place as usize] = abi::Unit {
            buffer: unit.buffer.cast(),
            length: unit.length,
            offset: unit.offset,
            index: place,
            file: unit.file,
            operation: unit.operation as u32,
            priority: unit.priority.into(),
        };
        self.numbers[place as usize] = Some(unit.index);
        if let Some(completions) = &mut self.completions {
            completions.begin(place);
        }
        // SAFETY: the unit stays where it is, and the caller promises that its buffer is valid until it is complete.
        let answer = unsafe { queue(self.state, &raw const self.units[place as usize]) };
        self.answered(place, answer)
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        let Some(commit) = self.engine.commit else { return Ok(0) };
        // SAFETY: takes nothing but the engine's own state.
        match unsafe { commit(self.state) } {
            0 => Ok(0),
            error => Err(errno_of(error.into())),
        }
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let Some(completions) = &mut self.completions else { return self.ask(min, max, timeout, done) };
        let before = done.len();
        completions.reap(min, max, timeout, done)?;
        for completion in &mut done[before..] {
            let place = completion.unit;
            let asked = self.units[place as usize].length;
            // A completion for a unit that is not in flight is a mistake of the engine.
            completion.unit = self.release(place).ok_or(Errno(libc::EPROTO))?;
            if completion.outcome.is_ok_and(|bytes| bytes > asked) {
                completion.outcome = Err(Errno(libc::EPROTO));
            }
        }
        Ok(())
    }

    fn threads(&self) -> Vec<i32> {
        self.threads.clone()
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        if self.engine.size_of.is_some() { Some(self) } else { None }
    }
}

impl<const SYNCHRONOUS: bool> Drop for ExternalEngine<SYNCHRONOUS> {
    fn drop(&mut self) {
        if let Some(destroy) = self.engine.destroy {
            // SAFETY: this is the last that the engine hears.
            unsafe { destroy(self.state) };
        }
    }
}
