//! `io_uring`: submission and completion queues shared with the kernel.
//!
//! `queue` writes an entry into the submission queue, `commit` tells the kernel with one io_uring_enter(2),
//! `reap` reads the completion queue and enters the kernel only when it has to wait or when the kernel has
//! completions in store that it posts only on request (deferred task work, polled completions).
//!
//! The time at which a unit counts as issued is after `commit`, so `commit` is what submits. Only where nobody
//! looks at that time ([`EngineConfig::defer_submission`]) it is left to the next `reap`, which then submits and
//! waits in a single call.

mod buffers;
pub(crate) mod setup;

use self::buffers::FixedBuffers;
use crate::file::Files;
use crate::pvsync2::TransferFlags;
use crate::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued,
    Unit,
};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use iolite_options::engines::IoUringOptions;
use iolite_types::Operation;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Flags of io_uring_enter(2).
const ENTER_GETEVENTS: u32 = 1;
const ENTER_SQ_WAKEUP: u32 = 1 << 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_REGISTERED_RING: u32 = 1 << 4;

/// How long a dropped engine waits between two attempts to cancel what is in flight.
const CANCEL_PATIENCE: Duration = Duration::from_millis(50);

/// Which commands move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfers {
    /// READ and WRITE.
    Plain,
    /// READV and WRITEV with one segment.
    Vectored,
    /// READ_FIXED and WRITE_FIXED where the buffer is registered.
    Fixed,
}

/// Queues units in a ring of its own. It must stay in the thread that made it: the kernel holds us to that.
pub struct IoUringEngine {
    ring: IoUring,
    /// What to name the ring by in io_uring_enter, and the flag that goes with it.
    enter_descriptor: RawFd,
    enter_flag: u32,
    files: Files,
    /// Files are named by their index in the kernel's table.
    registered_files: bool,
    transfers: Transfers,
    fixed: Option<FixedBuffers>,
    segments: Vec<libc::iovec>,
    rw_flags: TransferFlags,
    sync_file_range_flags: u32,
    depth: usize,
    /// Entries in the submission queue that `commit` has not seen.
    queued: usize,
    /// Entries that `commit` has seen and the kernel has not taken.
    held: usize,
    /// With a polling thread, queued entries wait here: the thread takes what it sees in the queue at once.
    staged: Vec<Entry>,
    in_flight: usize,
    polling_thread: bool,
    polled: bool,
    defer: bool,
    /// Every how many transfers one is forced to a kernel worker (0 = never), and how many to go.
    force_async: u32,
    force_countdown: u32,
}

impl std::fmt::Debug for IoUringEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IoUringEngine")
            .field("depth", &self.depth)
            .field("in_flight", &self.in_flight)
            .field("queued", &self.queued)
            .field("transfers", &self.transfers)
            .finish_non_exhaustive()
    }
}

impl IoUringEngine {
    /// An engine with a ring for `depth` units and no file open.
    ///
    /// # Errors
    /// What io_uring_setup(2) refuses, with the sysctl or limit that is behind it.
    pub fn new(config: &EngineConfig, options: &IoUringOptions) -> Result<Self, EngineError> {
        let ring = setup::ring(config, options)?;
        // Before 5.11 a polling thread could only use registered files; fio's documentation still says so.
        let registered_files = options.registerfiles || options.sqthread_poll;
        if registered_files {
            register_files(&ring, config.files)?;
        }
        let transfers = match (options.fixedbufs, options.nonvectored) {
            (true, _) => Transfers::Fixed,
            (false, Some(false)) => Transfers::Vectored,
            (false, Some(true)) => Transfers::Plain,
            (false, None) if setup::has_plain_transfers(&ring) => Transfers::Plain,
            (false, None) => Transfers::Vectored,
        };
        let (enter_descriptor, enter_flag) = match setup::register_ring(&ring) {
            Some(index) => (index as RawFd, ENTER_REGISTERED_RING),
            None => (ring.as_raw_fd(), 0),
        };
        let depth = config.depth.min(ring.params().sq_entries() as usize);
        Ok(IoUringEngine {
            ring,
            enter_descriptor,
            enter_flag,
            files: Files::new(config),
            registered_files,
            transfers,
            fixed: None,
            segments: Vec::new(),
            rw_flags: TransferFlags::new(config, options.uncached, options.nowait),
            sync_file_range_flags: config.sync_file_range_flags,
            depth,
            queued: 0,
            held: 0,
            staged: Vec::with_capacity(if options.sqthread_poll { depth } else { 0 }),
            in_flight: 0,
            polling_thread: options.sqthread_poll,
            polled: options.hipri,
            defer: config.defer_submission && !options.sqthread_poll,
            force_async: options.force_async,
            force_countdown: options.force_async,
        })
    }

    /// The entry of a unit, without its user data.
    #[inline(always)]
    fn entry(&mut self, unit: &Unit) -> Entry {
        let (file, mut flags) = if self.registered_files {
            (Fd(unit.file as i32), Flags::FIXED_FILE)
        } else {
            (Fd(self.files.raw(unit.file)), Flags::empty())
        };
        let entry = match unit.operation {
            Operation::Read | Operation::Write => {
                flags |= self.forced();
                self.transfer(unit, file)
            }
            Operation::DataSync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            Operation::SyncFileRange => opcode::SyncFileRange::new(file, command_length(unit))
                .offset(unit.offset)
                .flags(self.sync_file_range_flags)
                .build(),
            Operation::Sync => opcode::Fsync::new(file).build(),
            // Performed by a call of its own, see `is_direct_call`.
            Operation::Trim | Operation::Work => unreachable!("trims do not go through the ring"),
        };
        entry.flags(flags).user_data(u64::from(unit.index))
    }

    #[inline(always)]
    fn transfer(&mut self, unit: &Unit, file: Fd) -> Entry {
        let write = unit.operation == Operation::Write;
        let (buffer, length, offset) = (unit.buffer, command_length(unit), unit.offset);
        let (rw_flags, priority) = (self.rw_flags.of(write), unit.priority);
        if let Some(fixed) = &self.fixed
            && let Some(piece) = fixed.piece_of(buffer, unit.length)
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
        if self.transfers == Transfers::Vectored {
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

    /// The flag that sends every `force_async`th transfer to a kernel worker at once.
    #[inline(always)]
    fn forced(&mut self) -> Flags {
        if self.force_async == 0 {
            return Flags::empty();
        }
        self.force_countdown -= 1;
        if self.force_countdown > 0 {
            return Flags::empty();
        }
        self.force_countdown = self.force_async;
        Flags::ASYNC
    }

    /// Whether this operation is done with a system call of its own rather than through the ring.
    #[inline(always)]
    fn is_direct_call(&self, unit: &Unit) -> bool {
        match unit.operation {
            Operation::Read | Operation::Write => false,
            Operation::Trim | Operation::Work => true,
            // A ring with polled completions takes transfers only.
            Operation::Sync | Operation::DataSync => self.polled,
            // The command's length has 32 bits.
            Operation::SyncFileRange => self.polled || unit.length > u64::from(u32::MAX),
        }
    }

    /// io_uring_enter(2): hands over what is held, and waits for `min` completions.
    fn enter(&mut self, min: usize, timeout: Option<Duration>) -> Result<(), Errno> {
        let mut flags = self.enter_flag | ENTER_GETEVENTS;
        // A polling thread is told through the queue alone, see `publish`.
        let to_submit = if self.polling_thread { 0 } else { self.held };
        if self.polling_thread {
            // The tail must be visible before we look whether the thread sleeps.
            fence(Ordering::SeqCst);
            if self.ring.submission().need_wakeup() {
                flags |= ENTER_SQ_WAKEUP;
            }
        }
        let limit = timeout.map(Timespec::from);
        let arguments = limit.as_ref().map(|limit| SubmitArgs::new().timespec(limit));
        let (argument, size) = match &arguments {
            Some(arguments) => {
                flags |= ENTER_EXT_ARG;
                (ptr::from_ref(arguments).cast::<libc::c_void>(), size_of::<SubmitArgs<'_, '_>>())
            }
            None => (ptr::null(), 0),
        };
        // SAFETY: entries in the queue name buffers and blocks whose validity `queue` was promised; the argument
        // is the kernel's struct and lives through the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.enter_descriptor,
                to_submit as libc::c_uint,
                min as libc::c_uint,
                flags,
                argument,
                size,
            )
        };
        if result < 0 {
            return Err(Errno::last());
        }
        let taken = (result as usize).min(to_submit);
        self.held -= taken;
        self.in_flight += taken;
        Ok(())
    }

    /// Hands over what is held, as far as the kernel takes it now.
    fn submit(&mut self) -> Result<(), Errno> {
        while self.held > 0 {
            let before = self.held;
            match self.enter(0, None) {
                Ok(()) if self.held == before => return Ok(()),
                Ok(()) | Err(Errno(libc::EINTR)) => {}
                // Short of memory, or the completion queue is full: the next `reap` makes room.
                Err(Errno(libc::EAGAIN | libc::EBUSY)) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Publishes what is staged and committed to the polling thread, and wakes it if it sleeps.
    fn publish(&mut self) -> Result<(), Errno> {
        let count = self.held;
        // SAFETY: what the entries name is valid until the units are reaped, as `queue` was promised.
        if unsafe { self.ring.submission().push_multiple(&self.staged[..count]) }.is_err() {
            // The thread has not consumed earlier entries yet; the next `commit` or `reap` tries again.
            return Ok(());
        }
        self.staged.drain(..count);
        self.in_flight += count;
        self.held = 0;
        // The tail must be visible before we look whether the thread sleeps.
        fence(Ordering::SeqCst);
        if self.ring.submission().need_wakeup() {
            self.enter(0, None)?;
        }
        Ok(())
    }

    /// Moves completions from the queue to `done`; how many.
    #[inline(always)]
    fn take_ready(&mut self, max: usize, done: &mut Vec<Completion>) -> usize {
        let mut count = 0;
        let mut queue = self.ring.completion();
        while count < max
            && let Some(entry) = queue.next()
        {
            let outcome: Outcome = match entry.result() {
                bytes @ 0.. => Ok(bytes as u64),
                error => Err(Errno(-error)),
            };
            done.push(Completion { unit: entry.user_data() as u32, outcome });
            count += 1;
        }
        drop(queue);
        self.in_flight -= count;
        count
    }

    /// Whether the kernel has completions that it will only post when it is entered.
    #[inline(always)]
    fn must_enter(&mut self) -> bool {
        if self.polled && !self.polling_thread {
            return true;
        }
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }
}

/// The length as a command holds it. The kernel moves at most 2 GiB at once, as with every other system call.
#[inline(always)]
fn command_length(unit: &Unit) -> u32 {
    unit.length.min(u64::from(u32::MAX)) as u32
}

/// Gives the kernel a table of so many files, all of them closed.
fn register_files(ring: &IoUring, count: usize) -> Result<(), EngineError> {
    let submitter = ring.submitter();
    let count = count.max(1);
    submitter
        .register_files_sparse(count as u32)
        // Before 5.19 an empty table was spelled out.
        .or_else(|_| submitter.register_files(&vec![-1; count]))
        .map_err(|source| EngineError::System {
            engine: "io_uring",
            call: "registering files (registerfiles)",
            source,
        })
}

impl Engine for IoUringEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let descriptor = self.files.open(index, spec, mode)?;
        if self.registered_files
            && let Err(error) = self.ring.submitter().register_files_update(index, &[descriptor])
        {
            // The error that matters is the one before.
            let _ = self.files.close(index);
            return Err(error);
        }
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        if self.registered_files {
            self.ring.submitter().register_files_update(index, &[-1])?;
        }
        self.files.close(index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files.descriptor(index)
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.segments = vec![libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; layout.count];
        if self.transfers == Transfers::Fixed {
            self.fixed = FixedBuffers::register(&self.ring, layout)?;
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let waiting = self.queued + self.held;
        if self.is_direct_call(unit) {
            return if waiting == 0 { Queued::Completed(self.files.control(unit)) } else { Queued::Busy };
        }
        if waiting + self.in_flight >= self.depth || unit.index as usize >= self.segments.len() {
            return self.refuse(unit);
        }
        let entry = self.entry(unit);
        if self.polling_thread {
            self.staged.push(entry);
        } else {
            // SAFETY: what the entry names is valid until the unit is reaped, as the caller promises.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                return Queued::Busy;
            }
        }
        self.queued += 1;
        Queued::Queued
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<usize, Errno> {
        let gone = std::mem::take(&mut self.queued);
        self.held += gone;
        if self.held == 0 || self.defer {
            return Ok(gone);
        }
        if self.polling_thread {
            self.publish()?
        } else {
            self.submit()?
        }
        Ok(gone)
    }

    #[inline(always)]
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let min = min.min(max);
        let mut count = self.take_ready(max, done);
        if count >= max || (count >= min && count > 0 && self.held == 0) {
            return Ok(());
        }
        loop {
            if self.polling_thread && self.held > 0 {
                self.publish()?;
            }
            let outstanding = self.in_flight + if self.polling_thread { 0 } else { self.held };
            let wanted = min.saturating_sub(count).min(outstanding);
            if wanted == 0 && (outstanding == 0 || (self.held == 0 && !self.must_enter())) {
                return Ok(());
            }
            let ended = match self.enter(wanted, timeout) {
                Ok(()) => false,
                // The timeout, or a signal; and a kernel that is short of something needs what is in flight.
                Err(Errno(libc::ETIME | libc::EINTR)) => true,
                Err(Errno(libc::EAGAIN | libc::EBUSY)) if self.in_flight > 0 => false,
                Err(errno) => return Err(errno),
            };
            count += self.take_ready(max - count, done);
            if ended || count >= min {
                return Ok(());
            }
        }
    }
}

impl IoUringEngine {
    /// A full queue is busy; a unit from outside the slab is a mistake of the caller.
    #[cold]
    fn refuse(&self, unit: &Unit) -> Queued {
        if unit.index as usize >= self.segments.len() {
            Queued::Completed(Err(Errno(libc::EINVAL)))
        } else {
            Queued::Busy
        }
    }
}

impl Drop for IoUringEngine {
    /// Cancels what can be cancelled and waits for the rest: the kernel writes into the worker's buffers.
    ///
    /// What was queued and not handed over vanishes with the ring.
    fn drop(&mut self) {
        self.held = 0;
        let mut done = Vec::with_capacity(self.in_flight);
        while self.in_flight > 0 {
            // A request that the polling thread has not begun yet escapes a cancellation, so there are several.
            // Kernels before 6.0 have none, and regular files do not cancel: those are only waited for.
            let patience = match self
                .ring
                .submitter()
                .register_sync_cancel(Some(Timespec::from(CANCEL_PATIENCE)), CancelBuilder::any())
            {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => None,
                _ => Some(CANCEL_PATIENCE),
            };
            match self.enter(1, patience) {
                Ok(()) | Err(Errno(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {
                    self.take_ready(usize::MAX, &mut done);
                }
                // A ring that cannot be waited on any more is torn down by the kernel, with its requests.
                Err(_) => break,
            }
        }
        if self.enter_flag != 0 {
            setup::unregister_ring(&self.ring, self.enter_descriptor as u32);
        }
    }
}
