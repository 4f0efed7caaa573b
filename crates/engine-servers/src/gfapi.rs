//! `gfapi` and `gfapi_async`: files on GlusterFS volumes, with libgfapi, without mounting the volumes.
//!
//! `gfapi` makes one call of the library for each unit and waits until it returns; with `gfapi_async`, threads of the
//! library complete units. Clients of GlusterFS cache writes (write-behind): if one fails later, the next sync reports
//! it. So a file that was written is synced before it is closed, and lost data is an error.

mod library;
mod storage;
mod volume;

use self::volume::{Volume, about, checked, in_words, last_errno, volume_name};
use iolite_engine::by_index::ByIndex;
use iolite_engine::completed_later::threads_started_by;
use iolite_engine::completed_later::tickets::{Act, Ticket, Tickets, has_tickets};
use iolite_engine::library::Handle;
use iolite_engine::{
    Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued, Storage, Unit,
};
use iolite_options::engines::GfapiOptions;
use iolite_os::explained;
use iolite_types::Operation;
use libc::{c_int, c_void, off64_t, ssize_t};
use std::ffi::CString;
use std::io;
use std::ptr;

/// The common part of both engines.
struct Files {
    volume: Volume,
    options: GfapiOptions,
    open: ByIndex<File>,
    /// The names of all files that have been open, for messages.
    names: ByIndex<String>,
    threads: Vec<i32>,
}

/// An open file.
struct File {
    handle: Handle,
    name: CString,
    writes: bool,
    /// Writes may exist only in the client until a sync.
    holds_back: bool,
}

/// The message when a file cannot be synced before it is closed.
const HELD_BACK: &str = "what was written since the last sync may be lost";

impl Files {
    fn new(
        engine: &'static str,
        config: &EngineConfig,
        options: &GfapiOptions,
    ) -> Result<Files, EngineError> {
        let (volume, threads) = threads_started_by(|| Volume::open(engine, options));
        let (open, names) = (ByIndex::with_room(config.files), ByIndex::with_room(config.files));
        Ok(Files { volume: volume?, options: options.clone(), open, names, threads })
    }

    fn open_file(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let name = volume_name(&spec.path)?;
        let mut flags = if mode.write { libc::O_RDWR } else { libc::O_RDONLY };
        for (asked, flag) in
            [(mode.direct, libc::O_DIRECT), (mode.sync, libc::O_SYNC), (mode.dsync, libc::O_DSYNC)]
        {
            flags |= if asked { flag } else { 0 };
        }
        let opened = match mode.create {
            true => self.volume.make_file(&name, flags),
            false => self.volume.open_file(&name, flags),
        };
        let shown = spec.path.display().to_string();
        let handle = opened.map_err(|error| about(&shown, &self.options, &error))?;
        self.names.set(index, shown);
        let holds_back = mode.write && !mode.sync && !mode.dsync;
        self.open.set(index, File { handle, name, writes: mode.write, holds_back });
        Ok(())
    }

    fn close_file(&mut self, index: u32) -> io::Result<()> {
        let Some(file) = self.open.take(index) else { return Ok(()) };
        let lib = self.volume.lib;
        // SAFETY: the file is open, and is not used after this.
        let closed = unsafe {
            let synced = if file.writes {
                checked((lib.sync)(file.handle, ptr::null_mut(), ptr::null_mut()))
            } else {
                Ok(())
            };
            let closed = checked((lib.close)(file.handle));
            // (Errors of closing a file that was only read do not matter.)
            if file.writes { synced.and(closed) } else { Ok(()) }
        };
        closed.map_err(|error| {
            let error = about(self.names.get(index).map_or("", String::as_str), &self.options, &error);
            if file.holds_back { explained(&error, format!("{HELD_BACK}: {error}")) } else { error }
        })
    }

    fn of(&self, unit: &Unit) -> Result<Handle, Errno> {
        let file = self.open.of_open(unit.file)?;
        // (The library would write even to files that are open only for reading.)
        match unit.operation {
            Operation::Write | Operation::Trim if !file.writes => Err(Errno(libc::EBADF)),
            _ => Ok(file.handle),
        }
    }

    /// Explains the error of an I/O on a file.
    fn explain(&self, file: u32, errno: i32) -> Option<String> {
        Some(in_words(self.names.get(file)?, &self.options, errno))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for index in 0..self.open.room() {
            // (A caller that needs the error has closed the file earlier, and has seen it.)
            let _ = self.close_file(index);
        }
    }
}

/// `gfapi`
pub struct GfapiEngine {
    files: Files,
    /// The file and the error number of the last failed unit.
    failed: (u32, i32),
}

impl GfapiEngine {
    /// An engine that is connected to its volume.
    ///
    /// # Errors
    /// The library is missing, or the server or the volume is not there.
    pub fn new(config: &EngineConfig, options: &GfapiOptions) -> Result<Self, EngineError> {
        Ok(GfapiEngine { files: Files::new("gfapi", config, options)?, failed: (0, 0) })
    }

    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn perform(&self, unit: &Unit) -> Outcome {
        let (lib, file) = (self.files.volume.lib, self.files.of(unit)?);
        let (buffer, length, offset) =
            (unit.buffer.cast::<c_void>(), unit.length as usize, unit.offset as off64_t);
        let nothing = ptr::null_mut();
        // SAFETY: the file is open, and the caller promises the buffer.
        let result = unsafe {
            match unit.operation {
                Operation::Read => (lib.read)(file, buffer, length, offset, 0, nothing),
                Operation::Write => (lib.write)(file, buffer, length, offset, 0, nothing, nothing),
                Operation::Trim => (lib.discard)(file, offset, length) as ssize_t,
                Operation::DataSync => (lib.data_sync)(file, nothing, nothing) as ssize_t,
                Operation::Sync | Operation::SyncFileRange => (lib.sync)(file, nothing, nothing) as ssize_t,
                Operation::Work => return Err(Errno(libc::ENOSYS)),
            }
        };
        match (unit.operation, result) {
            (_, ..0) => Err(Errno(last_errno())),
            (Operation::Trim, _) => Ok(unit.length),
            (_, bytes) => Ok(bytes as u64),
        }
    }
}

impl Engine for GfapiEngine {
    const SYNCHRONOUS: bool = true;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        self.files.open_file(index, spec, mode)
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        self.files.close_file(index)
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        // SAFETY: the caller upholds the same contract.
        let outcome = unsafe { self.perform(unit) };
        if let Err(Errno(errno)) = outcome {
            self.failed = (unit.file, errno);
        }
        Queued::Completed(outcome)
    }

    fn threads(&self) -> Vec<i32> {
        self.files.threads.clone()
    }

    fn explain(&self, _: u32) -> Option<String> {
        let (file, errno) = self.failed;
        self.files.explain(file, errno).filter(|_| errno != 0)
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(&mut self.files)
    }
}

/// `gfapi_async`
pub struct GfapiAsyncEngine {
    files: Files,
    tickets: Tickets,
}

impl GfapiAsyncEngine {
    /// An engine that is connected to its volume.
    ///
    /// # Errors
    /// The library is missing, or the server or the volume is not there.
    pub fn new(config: &EngineConfig, options: &GfapiOptions) -> Result<Self, EngineError> {
        Ok(GfapiAsyncEngine {
            files: Files::new("gfapi_async", config, options)?,
            tickets: Tickets::new(false),
        })
    }

    fn given_up_in_words(&self) -> Option<String> {
        let silence = self.tickets.why_given_up()?;
        let volume = &self.files.options.volume;
        Some(format!(
            "volume {volume}: {silence}: a brick is down or hangs (see gluster volume status); {HELD_BACK}"
        ))
    }

    /// Passes a unit to the library. Returns an error number if the library refuses it.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn submit(&self, unit: &Unit, file: Handle, ticket: *const Ticket) -> Result<(), i32> {
        let lib = self.files.volume.lib;
        let (buffer, length, offset) =
            (unit.buffer.cast::<c_void>(), unit.length as usize, unit.offset as off64_t);
        let ticket = ticket.cast_mut().cast::<c_void>();
        // SAFETY: the file is open, the caller promises the buffer, and the ticket lives until the unit is complete.
        let result: c_int = unsafe {
            match unit.operation {
                Operation::Read => (lib.read_async)(file, buffer, length, offset, 0, done, ticket),
                Operation::Write => (lib.write_async)(file, buffer, length, offset, 0, done, ticket),
                Operation::Trim => (lib.discard_async)(file, offset, length, done, ticket),
                Operation::DataSync => (lib.data_sync_async)(file, done, ticket),
                _ => (lib.sync_async)(file, done, ticket),
            }
        };
        if result < 0 { Err(last_errno()) } else { Ok(()) }
    }
}

/// Called by a thread of the library.
unsafe extern "C" fn done(_: Handle, result: ssize_t, _: Handle, _: Handle, ticket: *mut c_void) {
    let result = if result < 0 { -i64::from(last_errno()) } else { result as i64 };
    // SAFETY: this is the ticket of a unit that the library has accepted.
    unsafe { (*ticket.cast::<Ticket>()).complete(result) };
}

impl Engine for GfapiAsyncEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        self.files.open_file(index, spec, mode)
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        if let Some(words) = self.given_up_in_words() {
            // (Closing would wait for I/Os that the job has abandoned.)
            return Err(explained(&io::Error::from_raw_os_error(libc::ETIMEDOUT), words));
        }
        self.files.close_file(index)
    }

    has_tickets!();

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let act = match unit.operation {
            Operation::Read | Operation::Write => Act::Partly,
            Operation::Work => return Queued::Completed(Err(Errno(libc::ENOSYS))),
            _ => Act::Other,
        };
        let begun = self.files.of(unit).and_then(|file| Ok((file, self.tickets.begin(unit, act)?)));
        let (file, ticket) = match begun {
            Ok(begun) => begun,
            Err(errno) => return Queued::Completed(Err(errno)),
        };
        // SAFETY: the caller upholds the same contract.
        let submitted = unsafe { self.submit(unit, file, ticket) };
        self.tickets.answer(unit.index, submitted.map_err(|errno| (-errno, ())), |()| {})
    }

    fn threads(&self) -> Vec<i32> {
        self.files.threads.clone()
    }

    fn explain(&self, unit: u32) -> Option<String> {
        if let Some(words) = self.given_up_in_words() {
            return Some(words);
        }
        let flight = self.tickets.flight(unit).filter(|flight| flight.errno != 0)?;
        self.files.explain(flight.file, flight.errno)
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(&mut self.files)
    }
}

impl Drop for GfapiAsyncEngine {
    fn drop(&mut self) {
        if !self.tickets.drain() {
            // The library still uses these files, and the I/Os in flight on them.
            std::mem::forget(std::mem::take(&mut self.files.open));
            self.tickets.leave();
        }
    }
}
