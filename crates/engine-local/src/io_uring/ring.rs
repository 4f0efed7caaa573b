//! A ring with its units: queued, held and in flight. Shared by the engines with entries of 64 and of 128 bytes.

use super::setup;
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, squeue};
use iolite_engine::file::Files;
use iolite_engine::{Completion, EngineConfig, EngineError, Errno, FileSpec, OpenMode};
use iolite_options::engines::IoUringOptions;
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

/// How long a dropped engine waits between two attempts to cancel the units in flight.
const CANCEL_PATIENCE: Duration = Duration::from_millis(50);

/// The ring of one engine. It must stay in the thread that created it: the kernel enforces that.
pub struct Ring<S: squeue::EntryMarker, C: cqueue::EntryMarker> {
    ring: IoUring<S, C>,
    /// The descriptor of the ring for io_uring_enter, and its flag.
    enter_descriptor: RawFd,
    enter_flag: u32,
    /// Files are given by their index in the kernel's table.
    registered_files: bool,
    depth: usize,
    /// Entries in the submission queue that `commit` has not seen.
    queued: usize,
    /// Entries that `commit` has seen and the kernel has not taken.
    held: usize,
    /// With a polling thread, queued entries wait here, because the thread takes entries from the queue at once.
    staged: Vec<S>,
    in_flight: usize,
    polling_thread: bool,
    polled: bool,
    defer: bool,
    /// The interval, in transfers, at which one is forced to a kernel worker (0 = never), and the transfers until the
    /// next.
    force_async: u32,
    force_countdown: u32,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> std::fmt::Debug for Ring<S, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("depth", &self.depth)
            .field("in_flight", &self.in_flight)
            .field("queued", &self.queued)
            .finish_non_exhaustive()
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Ring<S, C> {
    /// A ring for the units of an engine.
    ///
    /// # Errors
    /// io_uring_setup(2) fails. The error names the sysctl or limit behind it.
    pub fn new(config: &EngineConfig, options: &IoUringOptions) -> Result<Self, EngineError> {
        let ring = setup::ring(config, options)?;
        // Before 5.11 a polling thread could only use registered files; fio's documentation still says so.
        let registered_files = options.registerfiles || options.sqthread_poll;
        if registered_files {
            register_files(&ring, config.files)?;
        }
        let (enter_descriptor, enter_flag) = match setup::register_ring(&ring) {
            Some(index) => (index as RawFd, ENTER_REGISTERED_RING),
            None => (ring.as_raw_fd(), 0),
        };
        let depth = config.depth.min(ring.params().sq_entries() as usize);
        Ok(Ring {
            ring,
            enter_descriptor,
            enter_flag,
            registered_files,
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

    /// The ring itself, for queries and registrations.
    pub fn kernel(&self) -> &IoUring<S, C> {
        &self.ring
    }

    /// Whether the ring polls for completions.
    #[inline(always)]
    pub fn is_polled(&self) -> bool {
        self.polled
    }

    /// Opens a file, and registers it in the kernel's table.
    ///
    /// # Errors
    /// The file cannot be opened, or not registered.
    pub fn open(&self, files: &mut Files, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<RawFd> {
        let descriptor = files.open(index, spec, mode)?;
        if self.registered_files
            && let Err(error) = self.ring.submitter().register_files_update(index, &[descriptor])
        {
            // The error that matters is the one before.
            let _ = files.close(index);
            return Err(error);
        }
        Ok(descriptor)
    }

    /// Closes a file.
    ///
    /// # Errors
    /// Written data may be lost. The file is closed even so.
    pub fn close(&self, files: &mut Files, index: u32) -> io::Result<()> {
        if self.registered_files {
            self.ring.submitter().register_files_update(index, &[-1])?;
        }
        files.close(index)
    }

    /// The file field and the flags of an entry for an open file.
    #[inline(always)]
    pub fn file(&self, files: &Files, index: u32) -> (Fd, squeue::Flags) {
        if self.registered_files {
            (Fd(index as i32), squeue::Flags::FIXED_FILE)
        } else {
            (Fd(files.raw(index)), squeue::Flags::empty())
        }
    }

    /// The flag for every `force_async`th transfer, which goes to a kernel worker at once.
    #[inline(always)]
    pub fn forced(&mut self) -> squeue::Flags {
        if self.force_async == 0 {
            return squeue::Flags::empty();
        }
        self.force_countdown -= 1;
        if self.force_countdown > 0 {
            return squeue::Flags::empty();
        }
        self.force_countdown = self.force_async;
        squeue::Flags::ASYNC
    }

    /// Entries that the kernel has not taken.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.queued + self.held
    }

    /// Whether as many units are under way as the depth allows.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.waiting() + self.in_flight >= self.depth
    }

    /// Puts an entry into the queue. Returns false if there is no room.
    ///
    /// # Safety
    /// Everything that the entry points to is valid until its completion.
    #[inline(always)]
    pub unsafe fn push(&mut self, entry: S) -> bool {
        if self.polling_thread {
            self.staged.push(entry);
        } else {
            // SAFETY: everything that the entry points to is valid until the unit is reaped, as the caller promises.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                return false;
            }
        }
        self.queued += 1;
        true
    }

    /// Hands over the queued units. Returns their number.
    ///
    /// # Errors
    /// The kernel refuses the ring, not single entries.
    #[inline(always)]
    pub fn commit(&mut self) -> Result<usize, Errno> {
        let gone = std::mem::take(&mut self.queued);
        self.held += gone;
        self.hand_over()?;
        Ok(gone)
    }

    /// Resubmits entries of units that [`Ring::reap_or_repeat`] has left out. No other unit may be queued, to keep the
    /// order of queued units.
    ///
    /// # Errors
    /// As for a commit.
    ///
    /// # Safety
    /// As for [`Ring::push`].
    pub unsafe fn repeat(&mut self, entries: impl Iterator<Item = S>) -> Result<(), Errno> {
        debug_assert_eq!(self.queued, 0, "a worker commits before it reaps");
        for entry in entries {
            if self.polling_thread {
                self.staged.push(entry);
            } else {
                // SAFETY: as the caller promises.
                unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno(libc::EBUSY))?;
            }
            self.held += 1;
        }
        self.hand_over()
    }

    /// Hands over the held units, unless that is deferred to the next `reap`.
    #[inline(always)]
    fn hand_over(&mut self) -> Result<(), Errno> {
        if self.held == 0 || self.defer {
            return Ok(());
        }
        if self.polling_thread { self.publish() } else { self.submit() }
    }

    /// Appends completions to `done`, like [`Engine::reap`](iolite_engine::Engine::reap). `read` turns entries into
    /// completions.
    ///
    /// # Errors
    /// The outcome of the entries in flight is unknown.
    #[inline(always)]
    pub fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
        mut read: impl FnMut(C) -> Completion,
    ) -> Result<(), Errno> {
        self.reap_or_repeat(min, max, timeout, done, |entry| Some(read(entry)))
    }

    /// The same, but an entry for which `read` returns `None` is not a completion: its unit must be resubmitted (see
    /// [`Ring::repeat`]), and this returns without waiting any longer.
    ///
    /// # Errors
    /// As for a reap.
    #[inline(always)]
    pub fn reap_or_repeat(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
        mut read: impl FnMut(C) -> Option<Completion>,
    ) -> Result<(), Errno> {
        let min = min.min(max);
        let mut keep = |entry| match read(entry) {
            Some(completion) => {
                done.push(completion);
                true
            }
            None => false,
        };
        let Taken { kept: mut count, is_all } = self.take_ready(max, &mut keep);
        if !is_all || count >= max || (count >= min && count > 0 && self.held == 0) {
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
                // The timeout, or a signal; or a kernel that lacks resources until units in flight complete.
                Err(Errno(libc::ETIME | libc::EINTR)) => true,
                Err(Errno(libc::EAGAIN | libc::EBUSY)) if self.in_flight > 0 => false,
                Err(errno) => return Err(errno),
            };
            let Taken { kept, is_all } = self.take_ready(max - count, &mut keep);
            count += kept;
            if ended || !is_all || count >= min {
                return Ok(());
            }
        }
    }

    /// io_uring_enter(2): hands over the held units, and waits for `min` completions.
    fn enter(&mut self, min: usize, timeout: Option<Duration>) -> Result<(), Errno> {
        let mut flags = self.enter_flag | ENTER_GETEVENTS;
        // A polling thread is informed through the queue alone, see `publish`.
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

    /// Hands over the held units, as far as the kernel takes them now.
    fn submit(&mut self) -> Result<(), Errno> {
        while self.held > 0 {
            let before = self.held;
            match self.enter(0, None) {
                Ok(()) if self.held == before => return Ok(()),
                Ok(()) | Err(Errno(libc::EINTR)) => {}
                // Out of memory, or the completion queue is full: the next `reap` makes room.
                Err(Errno(libc::EAGAIN | libc::EBUSY)) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Publishes the staged and committed units to the polling thread, and wakes it if it sleeps.
    fn publish(&mut self) -> Result<(), Errno> {
        let count = self.held;
        // SAFETY: everything that the entries point to is valid until the units are reaped, as the callers of `queue`
        // promised.
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

    /// Takes entries from the queue, until `keep` has kept `max` of them.
    #[inline(always)]
    fn take_ready(&mut self, max: usize, mut keep: impl FnMut(C) -> bool) -> Taken {
        let (mut seen, mut kept) = (0, 0);
        let mut queue = self.ring.completion();
        while kept < max
            && let Some(entry) = queue.next()
        {
            kept += usize::from(keep(entry));
            seen += 1;
        }
        drop(queue);
        self.in_flight -= seen;
        Taken { kept, is_all: kept == seen }
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

/// Entries of the completion queue.
struct Taken {
    /// The number of kept entries.
    kept: usize,
    /// There were no more entries.
    is_all: bool,
}

/// How to open a device that takes commands: it ignores the flags of reads and writes, and refuses O_DIRECT.
pub fn for_commands(mode: OpenMode) -> OpenMode {
    OpenMode { direct: false, sync: false, dsync: false, create: false, ..mode }
}

/// Registers a table of this many files, all of them closed.
fn register_files<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    ring: &IoUring<S, C>,
    count: usize,
) -> Result<(), EngineError> {
    let submitter = ring.submitter();
    let count = count.max(1);
    submitter
        .register_files_sparse(count as u32)
        // Before 5.19 an empty table had to be passed explicitly.
        .or_else(|_| submitter.register_files(&vec![-1; count]))
        .map_err(|source| EngineError::System {
            engine: "io_uring",
            call: "registering files (registerfiles)",
            source,
        })
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Drop for Ring<S, C> {
    /// Cancels the units that can be cancelled and waits for the rest: the kernel writes into the worker's buffers.
    ///
    /// Units that were queued but not handed over vanish with the ring.
    fn drop(&mut self) {
        self.held = 0;
        while self.in_flight > 0 {
            // A request that the polling thread has not begun yet escapes a cancellation, so several are sent. Kernels
            // before 6.0 have no cancellation, and regular files do not support it: then this only waits.
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
                    self.take_ready(usize::MAX, |_| true);
                }
                // If waiting fails, the kernel tears down the ring, with its requests.
                Err(_) => break,
            }
        }
        if self.enter_flag != 0 {
            setup::unregister_ring(&self.ring, self.enter_descriptor as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::opcode::Nop;

    #[test]
    fn repeated_entries_are_submitted_again() {
        iolite_testing::or_skip!(iolite_testing::kernel::has_io_uring());
        for (sqthread_poll, defer_submission) in [(false, false), (false, true), (true, false)] {
            let options = IoUringOptions { sqthread_poll, ..IoUringOptions::default() };
            let config = EngineConfig { depth: 4, defer_submission, ..EngineConfig::default() };
            let mut ring: Ring<squeue::Entry, cqueue::Entry> = Ring::new(&config, &options).unwrap();
            let entry = |unit: u64| Nop::new().build().user_data(unit);
            // SAFETY: the entries point to nothing.
            unsafe {
                assert!((1..=3).all(|unit| ring.push(entry(unit))));
                assert_eq!(ring.commit(), Ok(3));
            }
            let (mut again, mut done) = (vec![1, 3], Vec::new());
            while done.len() < 3 {
                let mut repeated = Vec::new();
                ring.reap_or_repeat(3 - done.len(), 4, None, &mut done, |entry| {
                    let unit = entry.user_data() as u32;
                    match again.iter().position(|&other| other == unit) {
                        Some(place) => {
                            repeated.push(again.remove(place));
                            None
                        }
                        None => Some(Completion { unit, outcome: Ok(0) }),
                    }
                })
                .unwrap();
                // SAFETY: as above.
                unsafe { ring.repeat(repeated.into_iter().map(|unit| entry(u64::from(unit)))) }.unwrap();
            }
            let mut units: Vec<u32> = done.iter().map(|completion| completion.unit).collect();
            units.sort_unstable();
            assert_eq!((units, ring.in_flight, ring.waiting()), (vec![1, 2, 3], 0, 0));
        }
    }
}
