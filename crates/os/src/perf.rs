//! Tracepoints of the kernel through perf_event_open(2): one ring of records for each CPU.

use crate::memory;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// What an event is, as far as a tracepoint needs it (`struct perf_event_attr`, version 5: 112 bytes).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    registers: u64,
    aux_watermark: u32,
    most_stack: u16,
    reserved: u16,
}

const TYPE_TRACEPOINT: u32 = 2;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_RAW: u64 = 1 << 10;
const FLAG_USE_CLOCK: u64 = 1 << 25;
const OPEN_CLOEXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_SET_OUTPUT`
const SET_OUTPUT: libc::c_ulong = 0x2405;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// Where the control page has the positions of the ring (`struct perf_event_mmap_page`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const DATA_OFFSET: usize = 1040;

/// One record of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A tracepoint was passed.
    Event {
        /// `CLOCK_MONOTONIC`, nanoseconds.
        time: u64,
        /// The process that passed it, in the namespace of the caller; 0 = none.
        process: i32,
        /// The thread.
        thread: i32,
        /// The fields, at the offsets that the tracepoint's `format` gives.
        data: &'a [u8],
    },
    /// So many records did not fit into the ring.
    Lost(u64),
}

/// Opens one tracepoint on one CPU, and closes it: whether this process may.
///
/// # Errors
/// `EACCES` or `EPERM` = it lacks the rights; other errors of perf_event_open(2).
pub fn try_tracepoint(id: u64, cpu: u32) -> io::Result<()> {
    open(id, cpu).map(drop)
}

fn open(id: u64, cpu: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: TYPE_TRACEPOINT,
        size: size_of::<Attributes>() as u32,
        config: id,
        period: 1,
        sample: SAMPLE_TID | SAMPLE_TIME | SAMPLE_RAW,
        flags: FLAG_USE_CLOCK,
        // The reader looks at its own times. A wake-up for each record would cost ten times as much as the record.
        wakeup: 0,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let (all, no_group) = (-1 as libc::pid_t, -1 as libc::c_int);
    // SAFETY: the attributes are valid for the call, and their size is in them.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, all, cpu, no_group, OPEN_CLOEXEC)
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
}

/// Tracepoints that are recorded, on all CPUs, for all processes.
#[derive(Debug)]
pub struct Tracepoints {
    rings: Vec<Ring>,
}

impl Tracepoints {
    /// Records these tracepoints on these CPUs, in rings of this many bytes (rounded up to a power of two).
    ///
    /// # Errors
    /// Those of perf_event_open(2); `ENOMEM` or `EPERM` = the rings do not fit into the limit of locked memory.
    pub fn open(ids: &[u64], cpus: &[u32], bytes: usize) -> io::Result<Tracepoints> {
        let rings = cpus.iter().map(|&cpu| Ring::open(ids, cpu, bytes)).collect::<io::Result<_>>()?;
        Ok(Tracepoints { rings })
    }

    /// Takes all records that are there, ring by ring: those of one ring are in order.
    pub fn drain(&mut self, mut visit: impl FnMut(usize, Record<'_>)) {
        for (number, ring) in self.rings.iter_mut().enumerate() {
            ring.drain(|record| visit(number, record));
        }
    }
}

/// The ring of one CPU.
#[derive(Debug)]
struct Ring {
    pages: *mut u8,
    length: usize,
    /// Where the records begin, and how much room they have.
    start: usize,
    room: usize,
    /// A record that goes over the end of the ring, in one piece.
    joined: Vec<u8>,
    /// The first one has the mapping.
    _events: Vec<OwnedFd>,
}

// SAFETY: the mapping belongs to the ring and moves with it.
unsafe impl Send for Ring {}

impl Ring {
    fn open(ids: &[u64], cpu: u32, bytes: usize) -> io::Result<Ring> {
        let page = page_size();
        let length = page + bytes.max(page).next_power_of_two();
        let mut events = Vec::with_capacity(ids.len());
        for &id in ids {
            events.push(open(id, cpu)?);
        }
        let Some(first) = events.first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let pages: *mut u8 = memory::map(length, libc::MAP_SHARED, first.as_raw_fd())?.cast();
        // SAFETY: the control page is mapped; the kernel has set this field before mmap(2) returned. (0 = an old kernel:
        // the records follow the control page.)
        let start = match unsafe { pages.add(DATA_OFFSET).cast::<u64>().read() } as usize {
            0 => page,
            start => start,
        };
        let ring = Ring { pages, length, start, room: length - start, joined: Vec::new(), _events: events };
        for event in &ring._events[1..] {
            // SAFETY: both descriptors are events of this CPU.
            if unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, ring._events[0].as_raw_fd()) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(ring)
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both fields are aligned words of the control page, which is mapped as long as the ring exists; the
        // kernel and this process access them as atomics.
        unsafe { AtomicU64::from_ptr(self.pages.add(at).cast()) }
    }

    fn drain(&mut self, mut visit: impl FnMut(Record<'_>)) {
        const HEADER: usize = 8;
        let head = self.position(HEAD).load(Acquire);
        let mut tail = self.position(TAIL).load(Acquire);
        while tail < head {
            let size = usize::from(u16::from_ne_bytes(self.copied::<2>(tail + 6)));
            if size < HEADER {
                // The ring is damaged. There is nothing better than to begin anew.
                tail = head;
                break;
            }
            let kind = u32::from_ne_bytes(self.copied::<4>(tail));
            let at = (tail as usize) & (self.room - 1);
            let body = if at + size <= self.room {
                // SAFETY: the bytes are within the mapping, and the kernel does not write to them until the tail moves.
                unsafe { std::slice::from_raw_parts(self.pages.add(self.start + at + HEADER), size - HEADER) }
            } else {
                self.join(at, size);
                &self.joined[HEADER..size]
            };
            if let Some(record) = parsed(kind, body) {
                visit(record);
            }
            tail += size as u64;
        }
        self.position(TAIL).store(tail, Release);
    }

    /// A few bytes of the ring. Records are multiples of eight bytes, so these do not go over its end.
    fn copied<const N: usize>(&self, position: u64) -> [u8; N] {
        let at = (position as usize) & (self.room - 1);
        // SAFETY: the bytes are within the mapping, see above.
        unsafe { self.pages.add(self.start + at).cast::<[u8; N]>().read_unaligned() }
    }

    /// Joins both pieces of a record that goes over the end.
    fn join(&mut self, at: usize, size: usize) {
        let first = self.room - at;
        self.joined.clear();
        // SAFETY: both pieces are within the mapping, and the kernel does not write to them until the tail moves.
        unsafe {
            let data = self.pages.add(self.start);
            self.joined.extend_from_slice(std::slice::from_raw_parts(data.add(at), first));
            self.joined.extend_from_slice(std::slice::from_raw_parts(data, size - first));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the ring owns the mapping, and nothing refers to it any more.
        unsafe { memory::unmap(self.pages.cast(), self.length) };
    }
}

/// The parts of a record; `None` = one of another kind.
fn parsed(kind: u32, body: &[u8]) -> Option<Record<'_>> {
    let word = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(body.get(at..at + 8)?.try_into().ok()?));
    match kind {
        // In the order of `PERF_SAMPLE_TID`, `PERF_SAMPLE_TIME`, `PERF_SAMPLE_RAW`.
        RECORD_SAMPLE => Some(Record::Event {
            process: word(0)?.cast_signed(),
            thread: word(4)?.cast_signed(),
            time: long(8)?,
            data: body.get(20..20 + word(16)? as usize)?,
        }),
        // The event, and how many.
        RECORD_LOST => Some(Record::Lost(long(8)?)),
        _ => None,
    }
}

fn page_size() -> usize {
    // SAFETY: asks for a constant of the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_apart() {
        let mut body = Vec::new();
        body.extend(7_u32.to_ne_bytes());
        body.extend(8_u32.to_ne_bytes());
        body.extend(123_456_u64.to_ne_bytes());
        body.extend(3_u32.to_ne_bytes());
        body.extend([1, 2, 3, 0]);
        let event = Record::Event { time: 123_456, process: 7, thread: 8, data: &[1, 2, 3] };
        assert_eq!(parsed(RECORD_SAMPLE, &body), Some(event));
        assert_eq!(parsed(RECORD_SAMPLE, &body[..22]), None, "cut off");
        let lost: Vec<u8> = [5_u64, 42].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(parsed(RECORD_LOST, &lost), Some(Record::Lost(42)));
        assert_eq!(parsed(1, &lost), None);
    }
}
