//! `libblkio`: block devices through the library libblkio, whose drivers reach files and devices of this machine, NVMe
//! namespaces, and devices of virtio that another process, the kernel or the hardware serves.
//!
//! A unit is one request of the library: read, write, discard or write zeroes, flush. The library has no threads: requests
//! go to the device when the worker commits, and completions are taken when it reaps. Some drivers do I/O only in memory
//! that is shared with the device, so buffers come from the library ([`Storage::memory`]), unless the job asks for a kind of
//! memory of its own.

mod instance;
mod library;
mod queue;
mod storage;

use self::instance::{Instance, Refusal};
use self::library::{Library, NAME, Region};
use self::queue::{Queue, Use, error_of};
use crate::server_timeout::ServerTimeout;
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Storage,
    Unit,
};
use iolite_options::engines::LibblkioOptions;
use iolite_types::Operation;
use libc::c_int;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The engine.
pub struct LibblkioEngine {
    instance: Arc<Instance>,
    queue: Queue,
    /// The number of the queue.
    number: c_int,
    /// A queue that is not polled, for flushes and trims of a worker whose own queue takes none.
    plain: Option<Queue>,
    /// The size of every I/O in bytes; 0 = sizes differ.
    block: u64,
    depth: usize,
    /// Submissions may wait for the next reap.
    defers: bool,
    /// Writes are on stable storage when they are complete.
    is_stable: bool,
    /// Memory of the library, until the engine is dropped.
    memory: Vec<Region>,
    /// Memory of the worker that the device may use.
    mapped: Option<Region>,
    /// Requests that were not submitted yet.
    waiting: usize,
}

impl LibblkioEngine {
    /// Makes an engine, and connects to the device.
    ///
    /// # Errors
    /// libblkio is missing, an option is wrong, or the driver cannot connect.
    pub fn new(config: &EngineConfig, options: &LibblkioOptions) -> Result<Self, EngineError> {
        let instance = Instance::of(config, options)?;
        let library = Library::load()?;
        let (number, raw) = instance.take_queue().map_err(|refusal| refused(&instance, refusal))?;
        let plain = instance.plain_queue();
        let how = Use::of(options);
        let queue = |raw, how, units| {
            let silence = ServerTimeout::new("libblkio_timeout", options.libblkio_timeout);
            Queue::new(instance.clone(), library, raw, how, units, silence)
        };
        Ok(LibblkioEngine {
            queue: queue(raw, how, config.depth),
            number,
            plain: plain.map(|raw| queue(raw, how, 1)),
            block: config.block,
            depth: config.depth,
            defers: config.defer_submission,
            is_stable: false,
            memory: Vec::new(),
            mapped: None,
            waiting: 0,
            instance,
        })
    }

    /// Why the device does not take a request like this.
    fn misfit(&self, operation: Operation, offset: u64, length: u64) -> Option<String> {
        let Instance { alignment, most, .. } = *self.instance;
        let moves_data = matches!(operation, Operation::Read | Operation::Write);
        let has_place = moves_data || operation == Operation::Trim;
        // (Devices have a power of two, for which the first test is exact and needs no division.)
        let is_aligned = (offset | length) & (alignment - 1) == 0
            || (offset.is_multiple_of(alignment) && length.is_multiple_of(alignment));
        if has_place && !is_aligned {
            return Some(format!("the device takes multiples of {alignment} bytes"));
        }
        (moves_data && most > 0 && length > most)
            .then(|| format!("the device takes at most {most} bytes in one request"))
    }

    /// Puts written data on stable storage. Nothing is in flight.
    fn flush(&mut self) -> io::Result<()> {
        let unit = Unit {
            buffer: std::ptr::null_mut(),
            length: 0,
            offset: 0,
            index: 0,
            file: 0,
            operation: Operation::Sync,
            priority: 0,
        };
        let done = match &mut self.plain {
            Some(plain) => perform_alone(&self.instance, plain, &unit),
            // SAFETY: no data is moved.
            None => unsafe { self.queue.perform(&unit, false) },
        };
        done.map_err(error_of)
    }

    /// Performs a unit on the queue that is not polled, after those that were queued before it.
    fn aside(&mut self, unit: &Unit) -> Queued {
        if self.waiting > 0 {
            return Queued::Busy;
        }
        let Some(plain) = &mut self.plain else { return Queued::Busy };
        // (Its only unit has the index 0.)
        let Unit { buffer, length, offset, file, operation, priority, .. } = *unit;
        let alone = Unit { buffer, length, offset, index: 0, file, operation, priority };
        let length = if operation == Operation::Trim { length } else { 0 };
        let outcome = match perform_alone(&self.instance, plain, &alone) {
            Ok(()) => Ok(length),
            Err((errno, words)) => {
                self.queue.reasons.note(unit.index, &words);
                Err(Errno(errno))
            }
        };
        Queued::Completed(outcome)
    }
}

/// Performs a flush or a trim on the queue that is not polled, which the workers of an instance share.
fn perform_alone(instance: &Instance, plain: &mut Queue, unit: &Unit) -> Result<(), Refusal> {
    let mut turn = instance.plain.lock().unwrap_or_else(PoisonError::into_inner);
    // The completion of a request that another worker has given up has another mark.
    *turn += 1;
    plain.mark_from(*turn);
    // SAFETY: neither flushes nor trims move data.
    unsafe { plain.perform(unit, false) }
}

fn refused(instance: &Instance, (errno, words): Refusal) -> EngineError {
    EngineError::Remote { engine: NAME, errno, why: format!("{}: {words}", instance.name) }
}

impl Engine for LibblkioEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let obstacle = match index {
            0 => self
                .misfit(if mode.read { Operation::Read } else { Operation::Trim }, 0, self.block)
                .map(|why| format!("bs={}: {why}", self.block)),
            _ => Some("libblkio_path= names one device, and jobs of this engine have one file".to_owned()),
        };
        self.is_stable = mode.sync || mode.dsync;
        match obstacle {
            None => Ok(()),
            Some(words) => Err(error_of((libc::EINVAL, format!("{}: {words}", spec.path.display())))),
        }
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        let bytes = layout.stride.saturating_mul(layout.count);
        let mapped = self.instance.map(layout.start, bytes, &self.queue.silence);
        self.mapped = mapped.map_err(|refusal| refused(&self.instance, refusal))?;
        let units = layout.count.max(layout.depth);
        if units > self.depth {
            self.depth = units;
            self.queue.grow(units);
        }
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        if let Some(why) = self.misfit(unit.operation, unit.offset, unit.length) {
            let words = format!("{} bytes at {}: {why} (bsrange, bssplit, offset)", unit.length, unit.offset);
            self.queue.reasons.note(unit.index, &words);
            return Queued::Completed(Err(Errno(libc::EINVAL)));
        }
        match unit.operation {
            Operation::Read | Operation::Write => {}
            Operation::Work => return Queued::Completed(Err(Errno(libc::ENOSYS))),
            _ if self.plain.is_some() => return self.aside(unit),
            _ => {}
        }
        let is_stable = self.is_stable && unit.operation == Operation::Write;
        // SAFETY: the caller upholds the same contract.
        match unsafe { self.queue.request(unit, is_stable) } {
            Ok(()) => {
                self.waiting += 1;
                Queued::Queued
            }
            Err(errno) => Queued::Completed(Err(errno)),
        }
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        let count = std::mem::take(&mut self.waiting);
        if count > 0 && !self.defers {
            self.queue.submit()?;
        }
        Ok(count)
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.queue.reap(min, max, timeout, done)
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.queue.words(unit)
    }

    fn stop_repeating(&mut self) {
        self.queue.hurry();
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}

impl Drop for LibblkioEngine {
    fn drop(&mut self) {
        self.queue.drain();
        if self.queue.failure().is_some() || self.queue.in_flight() > 0 {
            // The device may still use the memory.
            return;
        }
        self.memory.iter().for_each(|region| self.instance.free(region));
        self.mapped.iter().for_each(|region| self.instance.unmap(region));
        self.instance.give_queue_back(self.number);
    }
}
