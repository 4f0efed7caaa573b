//! The engines that act on names, through io_uring (`uring=1`): the job's depth is the number of names at a time.
//!
//! The kernel copies a name when it takes the command, and commands are written in `commit`. So no command refers to
//! text that has moved because another file was opened meanwhile.

use super::{Act, NameTable};
use ::io_uring::squeue::{Entry, Flags};
use ::io_uring::types::{DestinationSlot, Fd, Fixed, SubmitArgs, Timespec};
use ::io_uring::{EnterFlags, IoUring, Probe, opcode};
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued,
    Unit,
};
use iolite_engine_local::io_uring::setup;
use iolite_options::engines::IoUringOptions;
use iolite_types::Operation;
use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The action of an engine on a name, as commands of a ring.
pub trait RingAct: Act {
    /// The opcode that the ring must support, and its name in the manual.
    const COMMAND: (u8, &'static str);

    /// The command opens a file, which a second one closes.
    const OPENS: bool = false;

    /// The command. A file that it opens goes into this slot of the ring's table of files; attributes of the name go to
    /// `found`.
    fn command(&self, name: &CStr, slot: u32, found: *mut libc::statx) -> Entry;
}

/// Relative names begin in the current directory.
pub(crate) const HERE: Fd = Fd(libc::AT_FDCWD);

/// Bit of a command's number: it opens the file that the next one closes.
const OPENING: u64 = 1 << 32;

/// An engine whose units perform one action on a name, many at a time.
pub struct RingNameEngine<A> {
    ring: IoUring,
    names: NameTable,
    act: A,
    depth: usize,
    /// Units that are not committed: their indices in the slab, and their files.
    queued: Vec<(u32, u32)>,
    /// Units in the ring.
    in_flight: usize,
    /// Per unit in flight: the length to return when it is complete.
    lengths: Vec<u64>,
    /// Per unit in flight: the error of opening its file; 0 = no error.
    refusals: Vec<i32>,
    /// Per unit in flight: the attributes of its name.
    found: Vec<libc::statx>,
}

impl<A> std::fmt::Debug for RingNameEngine<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingNameEngine")
            .field("depth", &self.depth)
            .field("queued", &self.queued.len())
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

impl<A: RingAct> RingNameEngine<A> {
    /// An engine without names.
    ///
    /// # Errors
    /// The system refuses a ring, or its rings do not have the command.
    pub fn with(act: A, config: &EngineConfig) -> Result<Self, EngineError> {
        let commands = if A::OPENS { 2 } else { 1 };
        let ring: IoUring = setup::ring(
            &EngineConfig { depth: config.depth * commands, ..config.clone() },
            &IoUringOptions::default(),
        )?;
        let depth = config.depth.min(ring.params().sq_entries() as usize / commands);
        let mut probe = Probe::new();
        let (code, call) = A::COMMAND;
        if ring.submitter().register_probe(&mut probe).is_err() || !probe.is_supported(code) {
            return Err(EngineError::NoRingCommand { call });
        }
        if A::OPENS {
            ring.submitter().register_files_sparse(depth as u32).map_err(|source| EngineError::System {
                engine: "uring=1",
                call: "registering as many files as iodepth (ulimit -n)",
                source,
            })?;
        }
        Ok(RingNameEngine {
            ring,
            names: NameTable::new(config.files),
            act,
            depth,
            queued: Vec::with_capacity(depth),
            in_flight: 0,
            lengths: Vec::new(),
            refusals: Vec::new(),
            found: Vec::new(),
        })
    }

    /// Writes the commands of a unit into the ring. There is room: the ring has entries for as many units as the depth.
    fn push(&mut self, unit: u32, file: u32) -> Result<(), Errno> {
        let slot = unit as usize;
        let Some(name) = self.names.of(file) else { return Err(Errno(libc::EBADF)) };
        let command = self.act.command(name, unit, &raw mut self.found[slot]);
        let full = Errno(libc::EBUSY);
        let mut queue = self.ring.submission();
        // SAFETY: the name is copied when the command is taken, before this engine changes its table, and the place of
        // the answer belongs to this unit until it is reaped. The ring ends before both.
        unsafe {
            if A::OPENS {
                let open = command.user_data(OPENING | u64::from(unit)).flags(Flags::IO_LINK);
                let close = opcode::Close::new(Fixed(unit)).build().user_data(u64::from(unit));
                queue.push_multiple(&[open, close]).map_err(|_| full)
            } else {
                queue.push(&command.user_data(u64::from(unit))).map_err(|_| full)
            }
        }
    }

    /// Hands over the written entries, as far as the kernel takes them now, and waits for `min` completions.
    fn enter(&mut self, min: usize, timeout: Option<Duration>) -> Result<(), Errno> {
        let submitter = self.ring.submitter();
        let limit = timeout.map(Timespec::from);
        let result = match &limit {
            Some(limit) if min > 0 => submitter.submit_with_args(min, &SubmitArgs::new().timespec(limit)),
            _ => submitter.submit_and_wait(min),
        };
        result.map(drop).map_err(Errno::from)
    }

    /// Moves completions from the queue to `done`. Returns their number.
    fn take_ready(&mut self, max: usize, done: &mut Vec<Completion>) -> usize {
        let mut count = 0;
        let mut queue = self.ring.completion();
        while count < max
            && let Some(entry) = queue.next()
        {
            let unit = entry.user_data() as u32;
            let slot = unit as usize;
            if entry.user_data() & OPENING != 0 {
                self.refusals[slot] = (-entry.result()).max(0);
                continue;
            }
            // A file that could not be opened need not be closed: that command was cancelled.
            let refusal = match std::mem::take(&mut self.refusals[slot]) {
                0 => (-entry.result()).max(0),
                refusal => refusal,
            };
            let outcome: Outcome = if refusal == 0 { Ok(self.lengths[slot]) } else { Err(Errno(refusal)) };
            done.push(Completion { unit, outcome });
            count += 1;
        }
        drop(queue);
        self.in_flight -= count;
        count
    }

    /// Makes the kernel post completions that it posts only when it is entered.
    fn collect(&mut self) -> Result<(), Errno> {
        let queue = self.ring.submission();
        let (waiting, must_enter) = (queue.len(), queue.taskrun() || queue.cq_overflow());
        drop(queue);
        if waiting == 0 && !must_enter {
            return Ok(());
        }
        // SAFETY: everything that the entries point to is valid, as in `push`.
        let entered = unsafe {
            self.ring.submitter().enter::<libc::sigset_t>(
                waiting as u32,
                0,
                EnterFlags::GETEVENTS.bits(),
                None,
            )
        };
        entered.map(drop).map_err(Errno::from)
    }
}

impl<A: RingAct> Engine for RingNameEngine<A> {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, _mode: OpenMode) -> io::Result<()> {
        self.names.tell(index, spec.path.as_os_str().as_bytes())
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.lengths = vec![0; layout.count];
        self.refusals = vec![0; layout.count];
        // SAFETY: it is plain data, for which zeros are a value.
        self.found = vec![unsafe { std::mem::zeroed() }; layout.count];
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        match unit.operation {
            Operation::Read | Operation::Write | Operation::Trim => {}
            // No open file could be synced.
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange | Operation::Work => {
                return Queued::Completed(Err(Errno(libc::EINVAL)));
            }
        }
        let Some(length) = self.lengths.get_mut(unit.index as usize) else {
            return Queued::Completed(Err(Errno(libc::EINVAL)));
        };
        if self.queued.len() + self.in_flight >= self.depth {
            return Queued::Busy;
        }
        if self.names.of(unit.file).is_none() {
            return Queued::Completed(Err(Errno(libc::EBADF)));
        }
        *length = unit.length;
        self.queued.push((unit.index, unit.file));
        Queued::Queued
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        let units = std::mem::take(&mut self.queued);
        let written = units.iter().try_for_each(|&(unit, file)| self.push(unit, file));
        let gone = units.len();
        self.queued = units;
        self.queued.clear();
        written?;
        self.in_flight += gone;
        // The kernel copies names when it takes commands. Commands that it did not take here would point to text that
        // may move.
        while !self.ring.submission().is_empty() {
            match self.enter(0, None) {
                Ok(()) | Err(Errno(libc::EINTR | libc::EAGAIN)) => {}
                // The completion queue is full.
                Err(Errno(libc::EBUSY)) => self.collect()?,
                Err(errno) => return Err(errno),
            }
        }
        Ok(gone)
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let min = min.min(max).min(self.in_flight);
        let mut count = self.take_ready(max, done);
        if count == 0 && min == 0 {
            self.collect()?;
            self.take_ready(max, done);
        }
        while count < min {
            // Each unit that opens has two completions, and the first does not count yet.
            match self.enter(1, timeout) {
                Ok(()) | Err(Errno(libc::EAGAIN | libc::EBUSY)) => {}
                Err(Errno(libc::ETIME | libc::EINTR)) => {
                    self.take_ready(max - count, done);
                    return Ok(());
                }
                Err(errno) => return Err(errno),
            }
            count += self.take_ready(max - count, done);
        }
        Ok(())
    }
}

impl<A> Drop for RingNameEngine<A> {
    /// Waits for units in flight: the kernel writes into this engine's memory.
    fn drop(&mut self) {
        let commands = self.in_flight;
        let mut seen = 0;
        while seen < commands {
            seen += self.ring.completion().filter(|entry| entry.user_data() & OPENING == 0).count();
            // If waiting fails, the kernel tears down the ring, with its commands.
            if seen < commands
                && self.ring.submit_and_wait(1).is_err_and(|error| error.raw_os_error() != Some(libc::EINTR))
            {
                break;
            }
        }
    }
}

/// The command that opens a name, for the place `slot` of the ring's table of files.
pub(crate) fn open(name: &CStr, slot: u32, flags: libc::c_int, mode: libc::mode_t) -> Entry {
    let place = DestinationSlot::try_from_slot_target(slot).ok();
    opcode::OpenAt::new(HERE, name.as_ptr()).flags(flags).mode(mode).file_index(place).build()
}
