//! `rados`: objects of a Ceph cluster by librados. Each file is an object of the pool with the file's name, and the
//! same offsets.
//!
//! Requests are sent when they are queued, and threads of the library complete them. Data that the cluster has
//! acknowledged is on stable storage, so a sync does nothing. Trims fill with zeros, which frees the space.

mod storage;

use crate::ceph::{Failed, Librados, Pool, in_words, is_down, text};
use iolite_engine::by_index::ByIndex;
use iolite_engine::completed_later::threads_started_by;
use iolite_engine::completed_later::tickets::{Act, Ticket, Tickets, has_tickets};
use iolite_engine::library::Handle;
use iolite_engine::{Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Storage, Unit};
use iolite_options::engines::RadosOptions;
use iolite_types::Operation;
use std::ffi::CString;
use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr;

/// The name of the engine.
const NAME: &str = "rados";

/// The engine.
pub struct RadosEngine {
    // Closing it ends the threads that use the tickets, so it is closed before the tickets are freed. If the library
    // still has a ticket when the engine is dropped, neither happens.
    pool: ManuallyDrop<Pool>,
    tickets: Tickets,
    options: RadosOptions,
    files: ByIndex<Object>,
    threads: Vec<i32>,
}

/// An open file.
struct Object {
    name: CString,
    /// Missing data reads as zeros.
    is_sparse: bool,
}

impl RadosEngine {
    /// An engine that is connected to its cluster.
    ///
    /// # Errors
    /// The library is missing, or the cluster cannot be reached, or has no such pool.
    pub fn new(config: &EngineConfig, options: &RadosOptions) -> Result<Self, EngineError> {
        let (pool, threads) = threads_started_by(|| Pool::open(NAME, &options.at, Some(&options.conf)));
        let tickets = Tickets::new(options.at.busy_poll);
        let files = ByIndex::with_room(config.files);
        Ok(RadosEngine { pool: ManuallyDrop::new(pool?), tickets, options: options.clone(), files, threads })
    }

    fn rados(&self) -> &'static Librados {
        self.pool.rados
    }

    /// Checks the result of a request for an object.
    fn checked(&self, name: &CString, result: i32) -> io::Result<()> {
        if result >= 0 {
            return Ok(());
        }
        let words = self.words(name, -result, 0, 0);
        Err(iolite_os::explained(&io::Error::from_raw_os_error(-result), words))
    }

    fn words(&self, name: &CString, errno: i32, length: u64, moved: u64) -> String {
        let place = format!("object {} in pool {}", name.to_string_lossy(), self.pool.name);
        in_words(&Failed { place: &place, errno, length, moved, limit: self.pool.limit })
    }

    /// Creates an empty object if it does not exist.
    fn touch(&self, name: &CString) -> io::Result<()> {
        let nothing = c"";
        // SAFETY: nothing is written from there.
        let result = unsafe { (self.rados().write)(self.pool.handle, name.as_ptr(), nothing.as_ptr(), 0, 0) };
        self.checked(name, result)
    }

    /// Hands a unit to the library. On failure returns a negated error number, and the unused completion.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn submit(&self, unit: &Unit, name: &CString, ticket: *const Ticket) -> Result<(), (i32, Handle)> {
        let (rados, pool, name) = (self.rados(), self.pool.handle, name.as_ptr());
        let mut completion = ptr::null_mut();
        // SAFETY: the ticket lives until the unit is complete, and there is room for the completion.
        let made =
            unsafe { (rados.completion)(ticket.cast_mut().cast(), Some(done), None, &raw mut completion) };
        if made < 0 {
            return Err((made, ptr::null_mut()));
        }
        let (buffer, length) = (unit.buffer.cast(), unit.length as usize);
        // SAFETY: the caller promises the buffer; the name and the completion are valid, and the library copies the
        // parts of the operation that it needs.
        let result = unsafe {
            match unit.operation {
                Operation::Read => (rados.aio_read)(pool, name, completion, buffer, length, unit.offset),
                Operation::Write => (rados.aio_write)(pool, name, completion, buffer, length, unit.offset),
                _ => {
                    let operation = (rados.operation)();
                    (rados.zero)(operation, unit.offset, unit.length);
                    let result = (rados.aio_operate)(operation, pool, completion, name, ptr::null_mut(), 0);
                    (rados.release_operation)(operation);
                    result
                }
            }
        };
        if result < 0 { Err((result, completion)) } else { Ok(()) }
    }
}

/// Called by a thread of the library.
unsafe extern "C" fn done(completion: Handle, ticket: Handle) {
    // The library was loaded before any completion.
    let Ok(rados) = Librados::load(NAME) else { return };
    // SAFETY: the completion is that of a unit which has this ticket, and is not used after this.
    unsafe {
        let result = (rados.result)(completion);
        (rados.release)(completion);
        (*ticket.cast::<Ticket>()).complete(result.into());
    }
}

/// An object's name.
fn object_name(path: &Path) -> io::Result<CString> {
    let name =
        path.to_str().ok_or_else(|| invalid(format!("{}: names of objects are UTF-8", path.display())))?;
    text("filename", name).map_err(|(_, words)| invalid(words))
}

fn invalid(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

impl Engine for RadosEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let name = object_name(&spec.path)?;
        if self.options.touch_objects && (mode.write || self.options.lenient) {
            self.touch(&name)?;
        }
        // A job that writes decides itself which parts of its objects exist.
        self.files.set(index, Object { name, is_sparse: mode.write || self.options.lenient });
        Ok(())
    }

    has_tickets!();

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let Some(object) = self.files.get(unit.file) else {
            return Queued::Completed(Err(Errno(libc::EBADF)));
        };
        let act = match unit.operation {
            Operation::Read if object.is_sparse => Act::ReadOrZeros,
            Operation::Read => Act::Read,
            Operation::Write | Operation::Trim => Act::Other,
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange => {
                return Queued::Completed(Ok(0));
            }
            Operation::Work => return Queued::Completed(Err(Errno(libc::ENOSYS))),
        };
        let ticket = match self.tickets.begin(unit, act) {
            Ok(ticket) => ticket,
            Err(errno) => return Queued::Completed(Err(errno)),
        };
        // SAFETY: the caller upholds the same contract.
        let submitted = unsafe { self.submit(unit, &object.name, ticket) };
        let rados = self.rados();
        self.tickets.answer(unit.index, submitted, |completion: Handle| {
            if !completion.is_null() {
                // SAFETY: the callback has not been called with it.
                unsafe { (rados.release)(completion) };
            }
        })
    }

    fn threads(&self) -> Vec<i32> {
        self.threads.clone()
    }

    fn explain(&self, unit: u32) -> Option<String> {
        if let Some(silence) = self.tickets.why_given_up() {
            return Some(format!("pool {}: {}", self.pool.name, is_down(&silence)));
        }
        let flight = self.tickets.flight(unit).filter(|flight| flight.errno != 0)?;
        let object = self.files.get(flight.file)?;
        Some(self.words(&object.name, flight.errno, flight.length, flight.result.max(0) as u64))
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}

impl Drop for RadosEngine {
    fn drop(&mut self) {
        if self.tickets.drain() {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.pool) };
        } else {
            self.tickets.leave();
        }
    }
}
