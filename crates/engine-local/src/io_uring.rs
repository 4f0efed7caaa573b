//! `io_uring`: submission and completion queues shared with the kernel.
//!
//! `queue` writes an entry into the submission queue, `commit` tells the kernel with one io_uring_enter(2), `reap`
//! reads the completion queue and enters the kernel only when it has to wait or when the kernel has completions that it
//! posts only on request (deferred task work, polled completions).
//!
//! A unit counts as issued after `commit`, so `commit` submits. Only if that time is not recorded
//! ([`EngineConfig::defer_submission`]), the next `reap` submits and waits in a single call.

mod attributes;
pub mod buffers;
pub mod placement;
pub mod protection;
pub mod ring;
pub mod setup;

use self::attributes::Attributes;
use self::buffers::{FixedBuffers, Pieces};
use self::ring::Ring;
use crate::pvsync2::TransferFlags;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{cqueue, opcode};
use iolite_engine::file::Files;
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued,
    Unit,
};
use iolite_options::engines::IoUringOptions;
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::time::Duration;

/// The commands that move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfers {
    /// READ and WRITE.
    Plain,
    /// READV and WRITEV with one segment.
    Vectored,
    /// READ_FIXED and WRITE_FIXED if the buffer is registered.
    Fixed,
    /// One of the above, with attributes.
    Attributed,
}

/// Queues units in its own ring. It must stay in the thread that created it: the kernel enforces that.
#[derive(Debug)]
pub struct IoUringEngine {
    ring: Ring<Entry, cqueue::Entry>,
    files: Files,
    transfers: Transfers,
    fixed: Option<FixedBuffers>,
    segments: Vec<libc::iovec>,
    attributes: Option<Attributes>,
    rw_flags: TransferFlags,
    sync_file_range_flags: u32,
}

impl IoUringEngine {
    /// An engine with a ring for `depth` units and no file open.
    ///
    /// # Errors
    /// io_uring_setup(2) fails. The error names the sysctl or limit behind it.
    pub fn new(config: &EngineConfig, options: &IoUringOptions) -> Result<Self, EngineError> {
        if options.hipri && !config.direct {
            return Err(EngineError::PolledNeedsDirect);
        }
        let ring = Ring::new(config, options)?;
        let transfers = match (options.fixedbufs, options.nonvectored) {
            (true, _) => Transfers::Fixed,
            (false, Some(false)) => Transfers::Vectored,
            (false, Some(true)) => Transfers::Plain,
            (false, None) if setup::has_plain_transfers(ring.kernel()) => Transfers::Plain,
            (false, None) => Transfers::Vectored,
        };
        let attributes = Attributes::new(config, options, transfers)?;
        let transfers = if attributes.is_some() { Transfers::Attributed } else { transfers };
        Ok(IoUringEngine {
            ring,
            files: Files::new(config),
            transfers,
            fixed: None,
            segments: Vec::new(),
            attributes,
            rw_flags: TransferFlags::new(config, options.uncached, options.nowait),
            sync_file_range_flags: config.sync_file_range_flags,
        })
    }

    /// The entry of a unit.
    ///
    /// # Errors
    /// The metadata of the unit does not fit into its buffer.
    #[inline(always)]
    fn entry(&mut self, unit: &Unit) -> Result<Entry, Errno> {
        let (file, mut flags) = self.ring.file(&self.files, unit.file);
        let entry = match unit.operation {
            Operation::Read | Operation::Write => {
                flags |= self.ring.forced();
                match self.transfers {
                    Transfers::Attributed => self.attributed(unit, file)?,
                    transfers => self.transfer(unit, file, transfers),
                }
            }
            Operation::DataSync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            Operation::SyncFileRange => opcode::SyncFileRange::new(file, command_length(unit))
                .offset(unit.offset)
                .flags(self.sync_file_range_flags)
                .build(),
            Operation::Sync => opcode::Fsync::new(file).build(),
            // Performed by a separate system call, see `is_direct_call`.
            Operation::Trim | Operation::Work => unreachable!("trims do not go through the ring"),
        };
        Ok(entry.flags(flags).user_data(u64::from(unit.index)))
    }

    /// A transfer with attributes. A separate function, so that plain transfers do not pay for it.
    #[cold]
    fn attributed(&mut self, unit: &Unit, file: Fd) -> Result<Entry, Errno> {
        let base = self.attributes.as_ref().map_or(Transfers::Plain, |attributes| attributes.base);
        let entry = self.transfer(unit, file, base);
        match &mut self.attributes {
            Some(attributes) => attributes.add(unit, entry),
            None => Ok(entry),
        }
    }

    #[inline(always)]
    fn transfer(&mut self, unit: &Unit, file: Fd, transfers: Transfers) -> Entry {
        let write = unit.operation == Operation::Write;
        let (buffer, length, offset) = (unit.buffer, command_length(unit), unit.offset);
        let (rw_flags, priority) = (self.rw_flags.of(write), unit.priority);
        if transfers == Transfers::Fixed
            && let Some(fixed) = &self.fixed
            && let Some(piece) = fixed.piece_of(unit.index, buffer, unit.length)
        {
            return if write {
                opcode::WriteFixed::new(file, buffer, length, piece)
                    .offset(offset)
                    .rw_flags(rw_flags)
                    .ioprio(priority)
                    .build()
            } else {
                opcode::ReadFixed::new(file, buffer, length, piece)
                    .offset(offset)
                    .rw_flags(rw_flags)
                    .ioprio(priority)
                    .build()
            };
        }
        if transfers == Transfers::Vectored {
            let segment = &mut self.segments[unit.index as usize];
            *segment = libc::iovec { iov_base: buffer.cast(), iov_len: unit.length as usize };
            return if write {
                opcode::Writev::new(file, segment, 1)
                    .offset(offset)
                    .rw_flags(rw_flags)
                    .ioprio(priority)
                    .build()
            } else {
                opcode::Readv::new(file, segment, 1)
                    .offset(offset)
                    .rw_flags(rw_flags)
                    .ioprio(priority)
                    .build()
            };
        }
        if write {
            opcode::Write::new(file, buffer, length)
                .offset(offset)
                .rw_flags(rw_flags)
                .ioprio(priority)
                .build()
        } else {
            opcode::Read::new(file, buffer, length).offset(offset).rw_flags(rw_flags).ioprio(priority).build()
        }
    }

    /// Whether this operation is a separate system call rather than an entry of the ring.
    #[inline(always)]
    fn is_direct_call(&self, unit: &Unit) -> bool {
        match unit.operation {
            Operation::Read | Operation::Write => false,
            Operation::Trim | Operation::Work => true,
            // A ring with polled completions takes transfers only.
            Operation::Sync | Operation::DataSync => self.ring.is_polled(),
            // The command's length has 32 bits.
            Operation::SyncFileRange => self.ring.is_polled() || unit.length > u64::from(u32::MAX),
        }
    }
}

/// The length field of a command. The kernel moves at most 2 GiB at once, as with every other system call.
#[inline(always)]
fn command_length(unit: &Unit) -> u32 {
    unit.length.min(u64::from(u32::MAX)) as u32
}

impl Engine for IoUringEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let descriptor = self.ring.open(&mut self.files, index, spec, mode)?;
        let Some(attributes) = &mut self.attributes else { return Ok(()) };
        attributes.opened(index, descriptor, mode).inspect_err(|_| {
            // The earlier error matters.
            let _ = self.ring.close(&mut self.files, index);
        })
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        self.ring.close(&mut self.files, index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files.descriptor(index)
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.segments = vec![libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; layout.count];
        let base = self.attributes.as_ref().map_or(self.transfers, |attributes| attributes.base);
        if let Some(attributes) = &mut self.attributes {
            attributes.prepare(layout.count);
        }
        if base == Transfers::Fixed {
            self.fixed = FixedBuffers::register(self.ring.kernel(), layout, Pieces::Few)?;
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        if self.is_direct_call(unit) {
            let waits = self.ring.waiting() > 0;
            return if waits { Queued::Busy } else { Queued::Completed(self.files.control(unit)) };
        }
        if self.ring.is_full() || unit.index as usize >= self.segments.len() {
            return self.refuse(unit);
        }
        let entry = match self.entry(unit) {
            Ok(entry) => entry,
            Err(errno) => return Queued::Completed(Err(errno)),
        };
        // SAFETY: everything that the entry points to is valid until the unit is reaped, as the caller promises; attributes
        // stay in their place.
        if unsafe { self.ring.push(entry) } { Queued::Queued } else { Queued::Busy }
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<usize, Errno> {
        self.ring.commit()
    }

    #[inline(always)]
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let before = done.len();
        self.ring.reap(min, max, timeout, done, |entry| {
            let outcome: Outcome = match entry.result() {
                bytes @ 0.. => Ok(bytes as u64),
                error => Err(Errno(-error)),
            };
            Completion { unit: entry.user_data() as u32, outcome }
        })?;
        if let Some(attributes) = &mut self.attributes {
            done[before..].iter_mut().for_each(|done| *done = attributes.check_completion(*done));
        }
        Ok(())
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.attributes.as_ref()?.explain(unit)
    }
}

impl IoUringEngine {
    /// A full queue means `Busy`; a unit from outside the slab is a mistake of the caller.
    #[cold]
    fn refuse(&self, unit: &Unit) -> Queued {
        if unit.index as usize >= self.segments.len() {
            Queued::Completed(Err(Errno(libc::EINVAL)))
        } else {
            Queued::Busy
        }
    }
}
