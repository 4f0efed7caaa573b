//! `libaio`: Linux native asynchronous I/O, through its system calls.
//!
//! Each unit has a separate control block. `queue` fills it, `commit` hands the queued blocks to io_submit(2) in one
//! call. `reap` takes completions from the ring that the kernel maps into our memory, and calls io_getevents(2) only
//! when it has to wait (or if the layout of the ring is unknown).

mod ring;

use self::ring::{Event, EventRing};
use crate::pvsync2::TransferFlags;
use iolite_engine::file::{Files, opens_files};
use iolite_engine::proc_number;
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, Outcome, Queued, Unit,
};
use iolite_options::engines::LibaioOptions;
use iolite_types::Operation;
use std::io;
use std::ptr;
use std::time::Duration;

/// The commands of <linux/aio_abi.h>.
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_PREADV: u16 = 7;
const IOCB_CMD_PWRITEV: u16 = 8;
/// The block's priority counts.
const IOCB_FLAG_IOPRIO: u32 = 1 << 1;

/// `struct iocb` of <linux/aio_abi.h> on a little-endian machine (on others, key and flags are swapped).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ControlBlock {
    data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: u32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_descriptor: u32,
}

const EMPTY_BLOCK: ControlBlock = ControlBlock {
    data: 0,
    key: 0,
    rw_flags: 0,
    opcode: 0,
    priority: 0,
    descriptor: 0,
    buffer: 0,
    length: 0,
    offset: 0,
    reserved: 0,
    flags: 0,
    event_descriptor: 0,
};

/// Queues units in a kernel AIO context.
#[derive(Debug)]
pub struct LibaioEngine {
    files: Files,
    context: Context,
    depth: usize,
    /// Data goes through the vectored commands.
    vectored: bool,
    read_flags: u32,
    write_flags: u32,
    /// One per unit of the slab.
    blocks: Vec<ControlBlock>,
    segments: Vec<libc::iovec>,
    /// Blocks that are queued and not yet taken by the kernel, oldest first. Pointers into `blocks`.
    queued: Vec<*mut ControlBlock>,
    /// How many of `queued` were already committed, but refused by a busy kernel.
    held: usize,
    /// Taken by the kernel and not reaped.
    in_flight: usize,
    /// Refused units that are still to be reaped.
    refused: Vec<Completion>,
    /// Where io_getevents writes.
    events: Vec<Event>,
}

// SAFETY: the pointers are to the engine's own blocks and to buffers of the worker, which moves with it.
unsafe impl Send for LibaioEngine {}

impl LibaioEngine {
    /// An engine with a context for `depth` requests and no file open.
    ///
    /// # Errors
    /// `AioLimit` if the system-wide limit is reached, and other refusals of io_setup(2).
    pub fn new(config: &EngineConfig, own: &LibaioOptions) -> Result<Self, EngineError> {
        let flags = TransferFlags::new(config, false, own.nowait);
        Ok(LibaioEngine {
            context: Context::new(config.depth)?,
            files: Files::new(config),
            depth: config.depth,
            vectored: own.libaio_vectored,
            read_flags: flags.read as u32,
            write_flags: flags.write as u32,
            blocks: Vec::new(),
            segments: Vec::new(),
            queued: Vec::with_capacity(config.depth),
            held: 0,
            in_flight: 0,
            refused: Vec::with_capacity(config.depth),
            events: vec![Event::default(); config.depth],
        })
    }

    /// Hands the first `self.held` queued blocks to the kernel, as far as it takes them now.
    fn submit(&mut self) {
        let mut first = 0;
        while first < self.held {
            match self.context.submit(&mut self.queued[first..self.held]) {
                Ok(count) => {
                    self.in_flight += count;
                    first += count;
                }
                Err(Errno(libc::EINTR)) => {}
                // No completion of this engine would make room: a unit that cannot be submitted now never can.
                Err(Errno(libc::EAGAIN)) if self.in_flight > 0 => break,
                Err(errno) => {
                    // The error concerns the first block: it ends here, the others continue. SAFETY: queued pointers
                    // are to our blocks, and the kernel has not taken this one.
                    let unit = unsafe { (*self.queued[first]).data } as u32;
                    self.refused.push(Completion { unit, outcome: Err(errno) });
                    first += 1;
                }
            }
        }
        self.held -= first;
        if first == self.queued.len() {
            self.queued.clear();
        } else {
            self.queued.drain(..first);
        }
    }

    #[inline(always)]
    fn fill(&mut self, unit: &Unit) -> bool {
        let index = unit.index as usize;
        let Some(block) = self.blocks.get_mut(index) else { return false };
        let write = unit.operation == Operation::Write;
        block.data = u64::from(unit.index);
        block.rw_flags = if write { self.write_flags } else { self.read_flags };
        block.descriptor = self.files.raw(unit.file) as u32;
        block.offset = unit.offset as i64;
        block.priority = unit.priority as i16;
        block.flags = if unit.priority == 0 { 0 } else { IOCB_FLAG_IOPRIO };
        if self.vectored {
            let segment = &mut self.segments[index];
            *segment = libc::iovec { iov_base: unit.buffer.cast(), iov_len: unit.length as usize };
            block.opcode = if write { IOCB_CMD_PWRITEV } else { IOCB_CMD_PREADV };
            block.buffer = ptr::from_mut(segment) as u64;
            block.length = 1;
        } else {
            block.opcode = if write { IOCB_CMD_PWRITE } else { IOCB_CMD_PREAD };
            block.buffer = unit.buffer as u64;
            block.length = unit.length;
        }
        self.queued.push(ptr::from_mut(block));
        true
    }

    /// Takes completions that are ready, without a system call if the ring can be read. Returns their number.
    #[inline(always)]
    fn take_ready(&mut self, max: usize, done: &mut Vec<Completion>) -> usize {
        let mut count = self.refused.len().min(max);
        if count > 0 {
            done.extend(self.refused.drain(..count));
        }
        if let Some(ring) = &self.context.ring {
            let taken = ring.take((max - count).min(self.in_flight), |event| done.push(completion(event)));
            self.in_flight -= taken;
            count += taken;
        }
        count
    }

    /// Waits in the kernel for `min` completions. Returns their number, which may be 0 after a signal.
    fn wait(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, Errno> {
        let max = max.min(self.in_flight);
        match self.context.events(min.min(max), &mut self.events[..max], timeout) {
            Ok(count) => {
                done.extend(self.events[..count].iter().map(completion));
                self.in_flight -= count;
                Ok(count)
            }
            Err(Errno(libc::EINTR)) => Ok(0),
            Err(errno) => Err(errno),
        }
    }
}

#[inline(always)]
fn completion(event: &Event) -> Completion {
    let outcome: Outcome = match event.result {
        bytes @ 0.. => Ok(bytes as u64),
        error => Err(Errno(-error as i32)),
    };
    Completion { unit: event.data as u32, outcome }
}

impl Engine for LibaioEngine {
    const SYNCHRONOUS: bool = false;

    opens_files!();

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.blocks = vec![EMPTY_BLOCK; layout.count];
        if self.vectored {
            self.segments = vec![libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; layout.count];
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        if !matches!(unit.operation, Operation::Read | Operation::Write) {
            // Linux AIO has no command for trims, and fio's fsync does not queue either.
            return if self.queued.is_empty() {
                Queued::Completed(self.files.control(unit))
            } else {
                Queued::Busy
            };
        }
        if self.queued.len() + self.in_flight + self.refused.len() >= self.depth {
            return Queued::Busy;
        }
        if self.fill(unit) { Queued::Queued } else { Queued::Completed(Err(Errno(libc::EINVAL))) }
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<usize, Errno> {
        let gone = self.queued.len() - self.held;
        self.held = self.queued.len();
        if self.held > 0 {
            self.submit();
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
        let mut count = 0;
        loop {
            if self.held > 0 {
                self.submit();
            }
            count += self.take_ready(max - count, done);
            if count >= max {
                return Ok(());
            }
            if self.in_flight == 0 {
                if self.held > 0 && count < min {
                    continue; // there is room again
                }
                return Ok(());
            }
            if count >= min {
                if count == 0 && self.context.ring.is_none() {
                    self.wait(0, max, None, done)?;
                }
                return Ok(());
            }
            // A wait that ends with too few completions was ended by its timeout or a signal.
            let wanted = if self.held > 0 { 1 } else { min - count };
            let came = self.wait(wanted, max - count, timeout, done)?;
            count += came;
            if came < wanted {
                return Ok(());
            }
        }
    }
}

impl Drop for LibaioEngine {
    fn drop(&mut self) {
        // io_destroy(2) waits for units in flight, so that the kernel does not write to freed buffers.
        self.context.destroy();
    }
}

/// An AIO context of the kernel.
#[derive(Debug)]
struct Context {
    id: libc::c_ulong,
    ring: Option<EventRing>,
}

impl Context {
    fn new(depth: usize) -> Result<Self, EngineError> {
        let mut id: libc::c_ulong = 0;
        let requests = libc::c_uint::try_from(depth).unwrap_or(libc::c_uint::MAX);
        // SAFETY: io_setup writes the context's id.
        if unsafe { libc::syscall(libc::SYS_io_setup, requests, &mut id) } != 0 {
            return Err(setup_error(depth, io::Error::last_os_error()));
        }
        // SAFETY: the kernel's id of a context is the address of its ring, mapped until io_destroy.
        let ring = unsafe { EventRing::at(id as *mut u8) };
        Ok(Context { id, ring })
    }

    /// Submits blocks and returns how many the kernel took; an error concerns the first of them.
    fn submit(&mut self, blocks: &mut [*mut ControlBlock]) -> Result<usize, Errno> {
        // SAFETY: the pointers are to blocks that do not move, and the caller of `queue` promised that their buffers
        // are valid.
        let result = unsafe {
            libc::syscall(libc::SYS_io_submit, self.id, blocks.len() as libc::c_long, blocks.as_mut_ptr())
        };
        if result < 0 { Err(Errno::last()) } else { Ok(result as usize) }
    }

    fn events(&self, min: usize, events: &mut [Event], timeout: Option<Duration>) -> Result<usize, Errno> {
        let limit = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().min(i64::MAX as u64) as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        });
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the kernel writes at most as many events as the slice holds.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.id,
                min as libc::c_long,
                events.len() as libc::c_long,
                events.as_mut_ptr(),
                limit,
            )
        };
        if result < 0 { Err(Errno::last()) } else { Ok(result as usize) }
    }

    fn destroy(&mut self) {
        self.ring = None;
        // SAFETY: the context is ours, and nothing uses it after this.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

fn setup_error(depth: usize, source: io::Error) -> EngineError {
    match source.raw_os_error() {
        Some(libc::EAGAIN) => EngineError::AioLimit {
            depth,
            used: proc_number("/proc/sys/fs/aio-nr").unwrap_or(0),
            limit: proc_number("/proc/sys/fs/aio-max-nr").unwrap_or(0),
        },
        Some(libc::EINVAL) => EngineError::Depth { engine: "libaio", depth, source },
        Some(libc::ENOSYS) => EngineError::NoSystemCall { engine: "libaio", call: "io_setup" },
        _ => EngineError::System { engine: "libaio", call: "io_setup", source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_engine::{FileKind, FileSpec, OpenMode};

    #[test]
    fn control_blocks_have_the_kernels_layout() {
        assert_eq!(size_of::<ControlBlock>(), 64);
        assert_eq!(std::mem::offset_of!(ControlBlock, opcode), 16);
        assert_eq!(std::mem::offset_of!(ControlBlock, buffer), 24);
        assert_eq!(std::mem::offset_of!(ControlBlock, offset), 40);
    }

    /// A context has room for about a page of events even if fewer were requested; units beyond that are held back
    /// until there is room.
    #[test]
    fn units_beyond_a_full_context_are_submitted_later() {
        iolite_testing::or_skip!(iolite_testing::kernel::has_libaio());
        const UNITS: usize = 5000;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 512]).unwrap();
        let mut engine = LibaioEngine::new(&EngineConfig::default(), &LibaioOptions::default()).unwrap();
        engine.depth = UNITS;
        engine.events = vec![Event::default(); UNITS];
        let spec = FileSpec { path: file.path().to_path_buf(), kind: FileKind::Regular, size: 512 };
        engine.open(0, &spec, OpenMode { read: true, ..OpenMode::default() }).unwrap();
        let mut memory = vec![0u8; UNITS];
        let start = memory.as_mut_ptr();
        engine.prepare(&BufferLayout { start, stride: 1, count: UNITS, depth: UNITS, files: 1 }).unwrap();
        for index in 0..UNITS as u32 {
            let buffer = start.wrapping_add(index as usize);
            let unit = Unit {
                buffer,
                length: 1,
                offset: 0,
                index,
                file: 0,
                operation: Operation::Read,
                priority: 0,
            };
            // SAFETY: the memory outlives the engine.
            assert_eq!(unsafe { engine.queue(&unit) }, Queued::Queued);
        }
        assert_eq!(engine.commit(), Ok(UNITS));
        assert!(engine.held > 0, "the context took everything at once");
        let mut done = Vec::new();
        engine.reap(UNITS, UNITS, None, &mut done).unwrap();
        assert_eq!((engine.held, engine.in_flight), (0, 0));
        let mut units: Vec<u32> = done.iter().map(|completion| completion.unit).collect();
        units.sort_unstable();
        assert!(units.iter().copied().eq(0..UNITS as u32));
        assert!(done.iter().all(|completion| completion.outcome == Ok(1)));
        assert!(memory.iter().all(|&byte| byte == 7));
    }
}
