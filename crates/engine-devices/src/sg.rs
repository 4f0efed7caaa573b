//! `sg`: SCSI commands, bypassing the block layer and its cache.
//!
//! A block device (`/dev/sda`) performs a command in one ioctl (SG_IO), which returns when it is done. The generic
//! device (`/dev/sg0`) takes it by write(2) and answers by read(2), so several commands of a job can be under way at a
//! time.
//!
//! Every unit of the slab has its own request, whose pointers are set once.

mod commands;
mod disk;

use self::commands::{Filler, Request};
use self::disk::Disk;
use iolite_engine::file::Files;
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileKind, FileSpec, OpenMode,
    Outcome, Queued, Unit,
};
use iolite_options::engines::SgOptions;
use iolite_os::scsi::Header;
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Sends SCSI commands to disks.
pub struct SgEngine {
    files: Files,
    disks: Vec<Option<Disk>>,
    filler: Filler,
    depth: usize,
    /// One per unit of the slab.
    requests: Box<[Request]>,
    /// Units that are ready to be sent, oldest first.
    queued: Vec<u32>,
    /// How many of `queued` were already committed, but refused by a busy driver.
    held: usize,
    /// Commands under way, for all files together. Each disk counts its own.
    in_flight: usize,
    /// Refused units that are still to be reaped.
    refused: Vec<Completion>,
    /// The descriptors to poll: one per file with commands under way.
    watched: Vec<libc::pollfd>,
}

// SAFETY: the pointers are to the engine's own requests and to buffers of the worker, which moves with it.
unsafe impl Send for SgEngine {}

impl SgEngine {
    /// An engine with no device open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its devices are opened.
    pub fn new(config: &EngineConfig, own: &SgOptions) -> Result<Self, EngineError> {
        Ok(SgEngine {
            files: Files::new(config),
            disks: Vec::new(),
            filler: Filler::new(own),
            depth: config.depth,
            requests: Box::default(),
            queued: Vec::with_capacity(config.depth),
            held: 0,
            in_flight: 0,
            refused: Vec::with_capacity(config.depth),
            watched: Vec::with_capacity(config.files),
        })
    }

    /// Puts the command of a unit into its request.
    #[inline(always)]
    fn fill(&mut self, unit: &Unit) -> Result<(), Errno> {
        let Some(Some(disk)) = self.disks.get(unit.file as usize) else { return Err(Errno(libc::EBADF)) };
        let Some(request) = self.requests.get_mut(unit.index as usize) else {
            return Err(Errno(libc::EINVAL));
        };
        self.filler.fill(request, unit, disk)
    }

    /// Sends the command of a unit through the file, and waits for its end.
    fn perform(&mut self, unit: &Unit) -> Outcome {
        self.fill(unit)?;
        let descriptor = self.files.raw(unit.file);
        let request = &mut self.requests[unit.index as usize];
        // SAFETY: the pointers are to the request and to the unit's buffer, which the caller of `queue` keeps valid.
        unsafe { request.header.perform(descriptor)? };
        request.outcome()
    }

    /// Flushes the disk's write cache to the medium, for a unit.
    #[cold]
    fn synchronize(&mut self, unit: &Unit) -> Outcome {
        let descriptor = self.files.raw(unit.file);
        let request = self.requests.get_mut(unit.index as usize).ok_or(Errno(libc::EINVAL))?;
        request.synchronize();
        // SAFETY: the pointers are to the request, and there is no data.
        unsafe { request.header.perform(descriptor)? };
        request.outcome()
    }

    /// Sends the first `self.held` queued commands, as far as the driver takes them now.
    fn send(&mut self) {
        let mut sent = 0;
        while sent < self.held {
            let index = self.queued[sent];
            let request = &self.requests[index as usize];
            let header = &raw const request.header;
            // SAFETY: the driver reads a header, whose pointers are valid until the unit is complete.
            let result =
                unsafe { libc::write(self.files.raw(request.file), header.cast(), size_of::<Header>()) };
            if result >= 0 {
                if let Some(Some(disk)) = self.disks.get_mut(request.file as usize) {
                    disk.in_flight += 1;
                }
                self.in_flight += 1;
            } else {
                match Errno::last() {
                    Errno(libc::EINTR) => continue,
                    errno if is_full(errno) && self.in_flight > 0 => {
                        break;
                    }
                    errno => self.refused.push(Completion { unit: index, outcome: Err(errno) }),
                }
            }
            sent += 1;
        }
        self.held -= sent;
        if sent == self.queued.len() {
            self.queued.clear();
        } else {
            self.queued.drain(..sent);
        }
    }

    /// Fetches an answer of a file, and waits for one if there is no answer yet. Returns whether there was one: a
    /// signal ends the wait.
    #[inline(always)]
    fn fetch(&mut self, file: u32, done: &mut Vec<Completion>) -> Result<bool, Errno> {
        let mut answer = Header::EMPTY;
        let descriptor = self.files.raw(file);
        // SAFETY: the driver writes a header.
        let result = unsafe { libc::read(descriptor, (&raw mut answer).cast(), size_of::<Header>()) };
        if result < 0 {
            return match Errno::last() {
                Errno(libc::EINTR) => Ok(false),
                errno => Err(errno),
            };
        }
        let index = answer.usr_ptr as u32;
        let Some(request) = self.requests.get_mut(index as usize) else { return Err(Errno(libc::EIO)) };
        request.header = answer;
        if let Some(Some(disk)) = self.disks.get_mut(file as usize) {
            disk.in_flight -= 1;
        }
        self.in_flight -= 1;
        done.push(Completion { unit: index, outcome: request.outcome() });
        Ok(true)
    }

    /// Fetches up to `most` answers that are ready. Returns their number.
    fn fetch_waiting(&mut self, most: usize, done: &mut Vec<Completion>) -> Result<usize, Errno> {
        let mut fetched = 0;
        for file in 0..self.disks.len() as u32 {
            if fetched == most {
                break;
            }
            if !self.is_used(file) {
                continue;
            }
            let waiting = disk::answers_waiting(self.files.raw(file))?;
            for _ in 0..waiting.min(most - fetched) {
                fetched += usize::from(self.fetch(file, done)?);
            }
        }
        Ok(fetched)
    }

    fn is_used(&self, file: u32) -> bool {
        matches!(self.disks.get(file as usize), Some(Some(disk)) if disk.in_flight > 0)
    }

    /// The only file with commands under way.
    fn only_file(&self) -> Option<u32> {
        let mut used = (0..self.disks.len() as u32).filter(|&file| self.is_used(file));
        used.next().filter(|_| used.next().is_none())
    }

    /// Waits until one of the files has an answer, or the time is up. Returns whether one has.
    fn wait(&mut self, until: Option<Instant>) -> Result<bool, Errno> {
        self.watched.clear();
        for file in 0..self.disks.len() as u32 {
            if self.is_used(file) {
                self.watched.push(libc::pollfd {
                    fd: self.files.raw(file),
                    events: libc::POLLIN,
                    revents: 0,
                });
            }
        }
        let limit = until.map_or(-1, |until| {
            let left = until.saturating_duration_since(Instant::now());
            left.as_micros().div_ceil(1000).min(1 << 30) as libc::c_int
        });
        let count = self.watched.len() as libc::nfds_t;
        // SAFETY: the list is valid for its length.
        match unsafe { libc::poll(self.watched.as_mut_ptr(), count, limit) } {
            -1 => match Errno::last() {
                Errno(libc::EINTR) => Ok(false),
                errno => Err(errno),
            },
            ready => Ok(ready > 0),
        }
    }

    /// Waits for an answer and fetches it, if one arrives in time. Returns the number of answers.
    #[inline(always)]
    fn fetch_next(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) -> Result<usize, Errno> {
        match self.only_file() {
            Some(file) if until.is_none() => Ok(usize::from(self.fetch(file, done)?)),
            _ if self.wait(until)? => self.fetch_waiting(1, done),
            _ => Ok(0),
        }
    }

    fn take_refused(&mut self, most: usize, done: &mut Vec<Completion>) -> usize {
        let count = self.refused.len().min(most);
        done.extend(self.refused.drain(..count));
        count
    }
}

/// Whether the driver accepts no more commands now. A file has room for 16 commands; beyond that, the error is EDOM.
fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno(libc::EDOM | libc::ENOMEM | libc::EAGAIN | libc::EBUSY))
}

impl Engine for SgEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let is_generic = spec.kind == FileKind::Char;
        // All commands are sent by writing to the generic device.
        let mode = if is_generic { OpenMode { write: true, ..mode } } else { mode };
        let descriptor = self.files.open(index, spec, mode)?;
        let place = index as usize;
        if place >= self.disks.len() {
            self.disks.resize_with(place + 1, || None);
        }
        let disk = Disk::open(descriptor, is_generic, self.filler.opens_streams());
        self.disks[place] = Some(disk.inspect_err(|_| {
            // The earlier error matters.
            let _ = self.files.close(index);
        })?);
        if let Some(disk) = &mut self.disks[place] {
            disk.resets_zones = mode.trims_reset_zones;
        }
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        if let Some(disk) = self.disks.get_mut(index as usize).and_then(Option::take) {
            disk.close(self.files.raw(index));
        }
        self.files.close(index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files.descriptor(index)
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.requests = (0..layout.count).map(|_| Request::default()).collect();
        self.requests.iter_mut().zip(0..).for_each(|(request, index)| request.tie(index));
        Ok(())
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        if !matches!(unit.operation, Operation::Read | Operation::Write | Operation::Trim) {
            return match self.queued.is_empty() {
                true if unit.operation == Operation::Work => Queued::Completed(Err(Errno(libc::EINVAL))),
                true => match self.synchronize(unit) {
                    Err(errno) if is_full(errno) && self.in_flight > 0 => Queued::Busy,
                    outcome => Queued::Completed(outcome),
                },
                false => Queued::Busy,
            };
        }
        let is_generic = matches!(self.disks.get(unit.file as usize), Some(Some(disk)) if disk.is_generic);
        if !is_generic {
            return Queued::Completed(self.perform(unit));
        }
        if self.queued.len() + self.in_flight + self.refused.len() >= self.depth {
            return Queued::Busy;
        }
        match self.fill(unit) {
            Ok(()) => {
                self.queued.push(unit.index);
                Queued::Queued
            }
            Err(errno) => Queued::Completed(Err(errno)),
        }
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<usize, Errno> {
        let gone = self.queued.len() - self.held;
        self.held = self.queued.len();
        if self.held > 0 {
            self.send();
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
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let mut count = 0;
        loop {
            if self.held > 0 {
                self.send();
            }
            count += self.take_refused(max - count, done);
            if self.in_flight == 0 && self.held > 0 && count < min {
                continue;
            }
            if count >= max || self.in_flight == 0 {
                return Ok(());
            }
            if count < min {
                let came = self.fetch_next(until, done)?;
                if came == 0 {
                    return Ok(());
                }
                count += came;
            }
            if count < max && self.in_flight > 0 {
                count += self.fetch_waiting(max - count, done)?;
            }
            if count >= min {
                return Ok(());
            }
        }
    }

    fn sync_file(&mut self, index: u32) -> Option<io::Result<()>> {
        let mut request = Request::default();
        request.tie(0);
        request.synchronize();
        // SAFETY: the pointers are to the request, which stays in its place, and there is no data.
        let performed = unsafe { request.header.perform(self.files.raw(index)) };
        Some(performed.and_then(|()| match request.complaint() {
            None => Ok(()),
            Some(words) => Err(iolite_os::explained(&io::Error::from_raw_os_error(libc::EIO), words)),
        }))
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.requests.get(unit as usize)?.complaint()
    }
}

impl Drop for SgEngine {
    fn drop(&mut self) {
        // No buffer may be written to after the engine has been dropped.
        self.held = 0;
        let mut done = Vec::new();
        while let Some(file) = (0..self.disks.len() as u32).find(|&file| self.is_used(file)) {
            if self.fetch(file, &mut done).is_err() {
                return;
            }
        }
    }
}
