//! A loop that only keeps a ring full: it has no statistics, no clock and no workload. Its rate is the highest that any
//! program can reach with that ring on that device.

use io_uring::{IoUring, opcode, types::Fixed};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;

/// The pattern of submissions and completions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    /// Reads in flight.
    pub depth: u32,
    /// The most reads that are submitted together.
    pub batch: u32,
    /// The number of completions to wait for. With 1, a fast loop is woken up for nearly every read and a slower loop
    /// less often, so both sides of a comparison must wait for the same number.
    pub wait: u32,
}

/// Runs random 4k reads of a device, with file and buffers registered. Returns I/Os per second.
pub fn run(device: &Path, pattern: Pattern, limit: Duration) -> io::Result<f64> {
    let Pattern { depth, batch, wait } = pattern;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(device)?;
    let blocks = io::Seek::seek(&mut &file, io::SeekFrom::End(0))? / BLOCK as u64;
    let mut ring: IoUring = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(depth)?;
    let memory = Layout::from_size_align(BLOCK * depth as usize, BLOCK).expect("a sane depth");
    // SAFETY: the size is not zero, because the depth of a ring is not.
    let buffers = unsafe { alloc_zeroed(memory) };
    if buffers.is_null() {
        handle_alloc_error(memory);
    }
    let vectors: Vec<libc::iovec> = (0..depth as usize)
        .map(|index| libc::iovec { iov_base: buffers.wrapping_add(index * BLOCK).cast(), iov_len: BLOCK })
        .collect();
    // SAFETY: the buffers stay where they are until the process ends.
    unsafe { ring.submitter().register_buffers(&vectors)? };
    ring.submitter().register_files(&[file.as_raw_fd()])?;

    let mut free: Vec<u16> = (0..depth as u16).collect();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut completed = 0u64;
    let start = Instant::now();
    loop {
        let mut queued = 0;
        while queued < batch
            && let Some(index) = free.pop()
        {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let offset = ((u128::from(random) * u128::from(blocks)) >> 64) as u64 * BLOCK as u64;
            let buffer = buffers.wrapping_add(usize::from(index) * BLOCK);
            let entry = opcode::ReadFixed::new(Fixed(0), buffer, BLOCK as u32, index)
                .offset(offset)
                .build()
                .user_data(u64::from(index));
            // SAFETY: the buffer is registered and not in flight, and the queue has an entry for each unit.
            unsafe { ring.submission().push(&entry).map_err(io::Error::other)? };
            queued += 1;
        }
        ring.submit_and_wait(if free.is_empty() { wait.min(depth) as usize } else { 0 })?;
        for entry in ring.completion() {
            if entry.result() != BLOCK as i32 {
                return Err(io::Error::from_raw_os_error(-entry.result().min(-1)));
            }
            free.push(entry.user_data() as u16);
            completed += 1;
        }
        let time = start.elapsed();
        if time >= limit {
            let rate = completed as f64 / time.as_secs_f64();
            // The reads in flight still use the buffers.
            while free.len() < depth as usize {
                ring.submit_and_wait(1)?;
                free.extend(ring.completion().map(|entry| entry.user_data() as u16));
            }
            return Ok(rate);
        }
    }
}
