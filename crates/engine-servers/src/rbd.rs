//! `rbd`: images of a Ceph cluster by librbd, which are block devices without a kernel in between. The file of a job is
//! the image, whatever the file's name.
//!
//! Requests are sent when they are queued, and threads of the library complete them. A sync flushes the library's cache
//! of an image. A job that only reads opens the image in a way that changes nothing and does not disturb other clients.

mod image;
mod librbd;

use self::image::Image;
use self::librbd::Librbd;
use crate::ceph::{Failed, Pool, in_words, is_down};
use iolite_engine::by_index::ByIndex;
use iolite_engine::completed_later::threads_started_by;
use iolite_engine::completed_later::tickets::{Act, Ticket, Tickets, has_tickets};
use iolite_engine::library::Handle;
use iolite_engine::{
    Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Storage, Stored, Unit,
};
use iolite_options::engines::RbdOptions;
use iolite_os::explained;
use iolite_types::Operation;
use std::io;
use std::mem::{self, ManuallyDrop};
use std::path::{Path, PathBuf};
use std::ptr;

/// The name of the engine.
const NAME: &str = "rbd";

/// The engine.
pub struct RbdEngine {
    // Images are closed before their pool. Closing it ends the threads that use the tickets, so it is closed before the
    // tickets are freed. If the library still has a ticket when the engine is dropped, none of this happens.
    files: ByIndex<Image>,
    pool: ManuallyDrop<Pool>,
    tickets: Tickets,
    rbd: &'static Librbd,
    options: RbdOptions,
    threads: Vec<i32>,
}

impl RbdEngine {
    /// An engine that is connected to its cluster.
    ///
    /// # Errors
    /// A library is missing, or the cluster cannot be reached, or has no such pool.
    pub fn new(config: &EngineConfig, options: &RbdOptions) -> Result<Self, EngineError> {
        let rbd = Librbd::load()?;
        let (pool, threads) = threads_started_by(|| Pool::open(NAME, &options.at, None));
        let tickets = Tickets::new(options.at.busy_poll);
        let files = ByIndex::with_room(config.files);
        Ok(RbdEngine {
            files,
            pool: ManuallyDrop::new(pool?),
            tickets,
            rbd,
            options: options.clone(),
            threads,
        })
    }

    /// The image, for messages.
    fn place(&self) -> String {
        format!("image {} of pool {}", self.options.rbdname, self.pool.name)
    }

    fn given_up_in_words(&self) -> Option<String> {
        Some(format!("{}: {}", self.place(), is_down(&self.tickets.why_given_up()?)))
    }

    /// Hands a unit to the library. On failure returns a negated error number, and the unused completion.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn submit(
        rbd: &Librbd,
        image: Handle,
        unit: &Unit,
        ticket: *const Ticket,
    ) -> Result<(), (i32, Handle)> {
        let mut completion = ptr::null_mut();
        // SAFETY: the ticket lives until the unit is complete, and there is room for the completion.
        let made = unsafe { (rbd.completion)(ticket.cast_mut().cast(), Some(done), &raw mut completion) };
        if made < 0 {
            return Err((made, ptr::null_mut()));
        }
        let (buffer, offset) = (unit.buffer.cast(), unit.offset);
        // SAFETY: the caller promises the buffer; the image is open, and the completion valid.
        let result = unsafe {
            match unit.operation {
                Operation::Read => (rbd.aio_read)(image, offset, unit.length as usize, buffer, completion),
                Operation::Write => (rbd.aio_write)(image, offset, unit.length as usize, buffer, completion),
                Operation::Trim => (rbd.aio_discard)(image, offset, unit.length, completion),
                _ => (rbd.aio_flush)(image, completion),
            }
        };
        if result < 0 { Err((result, completion)) } else { Ok(()) }
    }
}

/// Called by a thread of the library.
unsafe extern "C" fn done(completion: Handle, ticket: Handle) {
    // The library was loaded before any completion.
    let Ok(rbd) = Librbd::load() else { return };
    // SAFETY: the completion is that of a unit which has this ticket, and is not used after this.
    unsafe {
        let result = (rbd.result)(completion);
        (rbd.release)(completion);
        (*ticket.cast::<Ticket>()).complete(result as i64);
    }
}

impl Engine for RbdEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, _: &FileSpec, mode: OpenMode) -> io::Result<()> {
        // The library starts threads with the first image.
        let (image, threads) =
            threads_started_by(|| Image::open(self.rbd, &self.pool, &self.options, mode.write));
        // (With each opening, some threads start, and some earlier ones have ended.)
        self.threads.retain(|thread| Path::new(&format!("/proc/self/task/{thread}")).exists());
        self.threads.extend(threads);
        self.files.set(index, image?);
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        let image = self.files.take(index);
        if let Some(words) = self.given_up_in_words() {
            // (Closing would wait for I/Os that the job has abandoned.)
            mem::forget(image);
            return Err(explained(&io::Error::from_raw_os_error(libc::ETIMEDOUT), words));
        }
        image.map_or(Ok(()), Image::close)
    }

    has_tickets!();

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let Some(image) = self.files.get(unit.file) else {
            return Queued::Completed(Err(Errno(libc::EBADF)));
        };
        let (rbd, image) = (image.rbd, image.handle);
        let act = match unit.operation {
            Operation::Read => Act::Read,
            Operation::Work => return Queued::Completed(Err(Errno(libc::ENOSYS))),
            _ => Act::Other,
        };
        let ticket = match self.tickets.begin(unit, act) {
            Ok(ticket) => ticket,
            Err(errno) => return Queued::Completed(Err(errno)),
        };
        // SAFETY: the caller upholds the same contract.
        let submitted = unsafe { RbdEngine::submit(rbd, image, unit, ticket) };
        self.tickets.answer(unit.index, submitted, |completion: Handle| {
            if !completion.is_null() {
                // SAFETY: the callback has not been called with it.
                unsafe { (rbd.release)(completion) };
            }
        })
    }

    fn threads(&self) -> Vec<i32> {
        self.threads.clone()
    }

    fn explain(&self, unit: u32) -> Option<String> {
        if let Some(words) = self.given_up_in_words() {
            return Some(words);
        }
        let flight = self.tickets.flight(unit).filter(|flight| flight.errno != 0)?;
        let place = self.place();
        let limit = self.pool.limit;
        let (length, moved) = (flight.length, flight.result.max(0) as u64);
        Some(in_words(&Failed { place: &place, errno: flight.errno, length, moved, limit }))
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}

impl Drop for RbdEngine {
    fn drop(&mut self) {
        if self.tickets.drain() {
            self.files.clear();
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.pool) };
        } else {
            mem::forget(mem::take(&mut self.files));
            self.tickets.leave();
        }
    }
}

impl Storage for RbdEngine {
    fn size(&mut self, _: &Path) -> io::Result<Option<u64>> {
        Image::open(self.rbd, &self.pool, &self.options, false)?.size().map(Some)
    }

    fn open(&mut self, _: &Path) -> io::Result<Box<dyn Stored + '_>> {
        Err(cannot("an image is not made by a job; rbd create makes one"))
    }

    // Closing an image flushes it, so only open ones are left.
    fn sync(&mut self, _: &Path) -> io::Result<()> {
        self.files.iter().try_for_each(Image::flush)
    }

    fn unlink(&mut self, _: &Path) -> io::Result<()> {
        Err(cannot("an image cannot be removed by a job; rbd rm removes one"))
    }

    fn list(&mut self, _: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        Err(cannot("ioengine=rbd has one image, that of rbdname="))
    }
}

fn cannot(words: &str) -> io::Error {
    explained(&io::Error::from_raw_os_error(libc::EOPNOTSUPP), words.to_owned())
}
