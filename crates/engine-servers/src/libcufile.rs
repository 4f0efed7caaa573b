//! `libcufile` and `libhipfile`: files and memory of GPUs of NVIDIA and of AMD. Both vendors have the same interface by other
//! names ([`library`]).
//!
//! Each unit in flight has memory on the GPU of its worker, as large as its buffer. Directly (`cuda_io=cufile`, `hip_io=hipfile`), the
//! library moves data between file and GPU; buffers of the machine take part only where data is verified, and when the
//! job begins, so that the GPU's memory has the content of buffers. With `posix`, data goes through the buffer: what
//! applications do without the library. With a depth, requests of libcufile go in batches ([`batches`]).

mod batches;
mod gpu;
mod library;

use self::batches::Batches;
use self::gpu::Gpu;
use self::library::{Cufile, Description, FileLibrary, Request, Vendor};
use crate::server_timeout::ServerTimeout;
use iolite_engine::by_index::{ByIndex, Reasons};
use iolite_engine::file::Files;
use iolite_engine::library::Handle;
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued,
    Unit,
};
use iolite_options::engines::{GpuIo, LibcufileOptions};
use iolite_os::explained;
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::PoisonError;
use std::time::Duration;

/// The engine. It is synchronous where no requests go in batches: with AMD's library, and through memory.
pub struct LibcufileEngine<const SYNCHRONOUS: bool> {
    files: Files,
    /// Of which the library knows.
    handles: ByIndex<usize>,
    /// `None` = each unit is complete when [`Engine::queue`] returns.
    batches: Option<Batches>,
    vendor: &'static Vendor,
    /// `None` = data goes through memory of the machine.
    cufile: Option<Opened>,
    gpu: Gpu,
    number: u32,
    verifies: bool,
    stride: usize,
    /// The operation and the buffer of each unit in flight, for the copy after a read.
    flights: Vec<(bool, *mut u8)>,
    reasons: Reasons,
    remarks: Vec<String>,
    /// The memory of the GPU is registered with the library.
    is_registered: bool,
}

// SAFETY: the pointers are to buffers of the worker, which moves with the engine.
unsafe impl<const SYNCHRONOUS: bool> Send for LibcufileEngine<SYNCHRONOUS> {}

/// The library, open. A process opens it once: the first of its workers opens it, and the last one closes it.
struct Opened(&'static Vendor, &'static Cufile);

impl Opened {
    /// Opens the library, unless another worker has.
    fn open(vendor: &'static Vendor, cufile: &'static Cufile) -> Result<Opened, String> {
        let mut users = vendor.users.lock().unwrap_or_else(PoisonError::into_inner);
        if *users == 0 {
            // SAFETY: it takes nothing.
            vendor.check_files("DriverOpen", unsafe { (cufile.open)() })?;
        }
        *users += 1;
        Ok(Opened(vendor, cufile))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        *users -= 1;
        if *users == 0 {
            // SAFETY: nothing of the library is used any more.
            let _ = unsafe { (self.1.close)() };
        }
    }
}

impl<const SYNCHRONOUS: bool> LibcufileEngine<SYNCHRONOUS> {
    /// Makes an engine, and opens its GPU.
    ///
    /// # Errors
    /// A library is missing, there is no such GPU, or the library for files cannot be used.
    pub fn new(config: &EngineConfig, options: &LibcufileOptions) -> Result<Self, EngineError> {
        let number = options.gpu_of(config.worker);
        let vendor = Vendor::of(options.vendor);
        let library = match options.way {
            GpuIo::Direct => Some(vendor.files()?),
            GpuIo::Posix => None,
        };
        let gpu = Gpu::open(vendor, number)?;
        let opened = |library: &'static FileLibrary| {
            Opened::open(vendor, &library.calls).map_err(|why| vendor.refused(libc::ENODEV, why))
        };
        let cufile = library.map(opened).transpose()?;
        let batching = library.and_then(|library| library.batching.as_ref());
        let batches = batching.filter(|_| !SYNCHRONOUS && config.depth > 1).map(|calls| {
            let silence = ServerTimeout::new("libcufile_timeout", options.libcufile_timeout);
            Batches::new(vendor, calls, config.depth, silence)
        });
        Ok(LibcufileEngine {
            files: Files::new(config),
            handles: ByIndex::with_room(config.files),
            batches,
            vendor,
            cufile,
            gpu,
            number,
            verifies: config.verifies,
            stride: 0,
            flights: Vec::new(),
            reasons: Reasons::with_room(config.depth),
            remarks: Vec::new(),
            is_registered: false,
        })
    }

    /// Whether the library has requests that nobody waits for any more, and which may use files and memory.
    fn is_abandoned(&self) -> bool {
        self.batches.as_ref().is_some_and(Batches::is_abandoned)
    }

    /// The place of a unit's memory on the GPU. Without batches, units share one place, one after the other: a thread that
    /// submits (`io_submit_mode=offload`) is told of all units of the job, but has one in flight.
    fn place(&self, unit: u32) -> usize {
        if self.batches.is_some() { unit as usize * self.stride } else { 0 }
    }

    /// Moves the data of a unit in this call.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn perform(&mut self, unit: &Unit) -> Result<u64, (Errno, Option<String>)> {
        let is_write = unit.operation == Operation::Write;
        let (place, length) = (self.place(unit.index), unit.length as usize);
        let of_copy = |words| (Errno(libc::EIO), Some(words));
        // SAFETY: the caller promises the buffer, and the GPU has memory for each unit.
        unsafe {
            let Some(Opened(_, cufile)) = &self.cufile else {
                return self.through_memory(unit);
            };
            if is_write && self.verifies {
                self.gpu.put(place, unit.buffer, length).map_err(of_copy)?;
            }
            let file = *self.handles.of_open(unit.file).map_err(|errno| (errno, None))?;
            let file: Handle = ptr::with_exposed_provenance_mut(file);
            let (memory, offset, place) = (self.gpu.pointer(), unit.offset as i64, place as i64);
            let moved = match is_write {
                true => (cufile.write)(file, memory, length, offset, place),
                false => (cufile.read)(file, memory, length, offset, place),
            };
            let bytes = match moved {
                0.. => moved as u64,
                // The system has refused it.
                -1 => return Err((Errno::last(), None)),
                error => return Err(self.vendor.failure(error)),
            };
            if !is_write && self.verifies {
                self.gpu.get(place as usize, unit.buffer, bytes as usize).map_err(of_copy)?;
            }
            Ok(bytes)
        }
    }

    /// Moves the data of a unit between file and GPU through the unit's buffer.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn through_memory(&self, unit: &Unit) -> Result<u64, (Errno, Option<String>)> {
        let (place, length) = (self.place(unit.index), unit.length as usize);
        let (file, buffer, offset) = (self.files.raw(unit.file), unit.buffer, unit.offset as i64);
        let of_copy = |words| (Errno(libc::EIO), Some(words));
        // SAFETY: the caller promises the buffer, and the GPU has memory for each unit.
        unsafe {
            if unit.operation == Operation::Write {
                if self.verifies {
                    self.gpu.put(place, buffer, length).map_err(of_copy)?;
                }
                self.gpu.get(place, buffer, length).map_err(of_copy)?;
                let written = libc::pwrite(file, buffer.cast(), length, offset);
                return u64::try_from(written).map_err(|_| (Errno::last(), None));
            }
            let read = libc::pread(file, buffer.cast(), length, offset);
            let read = u64::try_from(read).map_err(|_| (Errno::last(), None))?;
            self.gpu.put(place, buffer, read as usize).map_err(of_copy)?;
            Ok(read)
        }
    }

    fn note(&mut self, unit: u32, refusal: Result<u64, (Errno, Option<String>)>) -> Outcome {
        refusal.map_err(|(errno, words)| {
            words.into_iter().for_each(|words| self.reasons.note(unit, &words));
            errno
        })
    }
}

impl<const SYNCHRONOUS: bool> Engine for LibcufileEngine<SYNCHRONOUS> {
    const SYNCHRONOUS: bool = SYNCHRONOUS;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let descriptor = self.files.open(index, spec, mode)?;
        let Some(Opened(_, cufile)) = &self.cufile else { return Ok(()) };
        let (mut handle, mut description) = (ptr::null_mut(), Description::of(descriptor));
        // SAFETY: both are valid through the call.
        let told = unsafe { (cufile.register_file)(&raw mut handle, &raw mut description) };
        if let Err(words) = self.vendor.check_files("HandleRegister", told) {
            // The earlier error matters.
            let _ = self.files.close(index);
            let words = format!("{}: {words}", spec.path.display());
            return Err(explained(&io::Error::from_raw_os_error(libc::ENOTSUP), words));
        }
        self.handles.set(index, handle.expose_provenance());
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        if self.is_abandoned() {
            // The library would read or write the next file that gets this descriptor.
            return Ok(());
        }
        if let (Some(handle), Some(Opened(_, cufile))) = (self.handles.take(index), &self.cufile) {
            // SAFETY: no request uses the file any more.
            unsafe { (cufile.deregister_file)(ptr::with_exposed_provenance_mut(handle)) };
        }
        self.files.close(index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files.descriptor(index)
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        /// The library wants this for transfers without copies.
        const ALIGNMENT: usize = 4096;
        self.stride = layout.stride.next_multiple_of(ALIGNMENT);
        let units = if self.batches.is_some() { layout.count.max(layout.depth) } else { 1 };
        self.flights = vec![(false, ptr::null_mut()); units];
        let bytes = self.stride.saturating_mul(units);
        self.gpu.allocate(bytes)?;
        for unit in 0..layout.count.min(units) {
            let buffer = layout.start.wrapping_add(unit * layout.stride);
            // SAFETY: the worker has a buffer for each unit, and so has the GPU.
            let copied = unsafe { self.gpu.put(unit * self.stride, buffer, layout.stride) };
            copied.map_err(|why| self.vendor.refused(libc::EIO, why))?;
        }
        if let Some(Opened(_, cufile)) = &self.cufile {
            // SAFETY: the memory is the GPU's, until it is deregistered.
            let told = unsafe { (cufile.register_memory)(self.gpu.pointer(), bytes, 0) };
            match self.vendor.check_files("BufRegister", told) {
                Ok(()) => self.is_registered = true,
                Err(why) => self.remarks.push(format!(
                    "{}: the buffers on the GPU could not be registered, and the library copies: {why}",
                    self.vendor.engine
                )),
            }
        }
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        // The reason of an earlier failure of this unit does not explain the next one.
        self.reasons.take(unit.index);
        if !matches!(unit.operation, Operation::Read | Operation::Write) {
            let waits = self.batches.as_ref().is_some_and(|batches| !batches.is_empty());
            return if waits { Queued::Busy } else { Queued::Completed(self.files.control(unit)) };
        }
        let is_write = unit.operation == Operation::Write;
        let (place, length) = (self.place(unit.index), unit.length as usize);
        if self.batches.is_none() {
            // SAFETY: the caller upholds the same contract.
            let performed = unsafe { self.perform(unit) };
            return Queued::Completed(self.note(unit.index, performed));
        }
        if is_write && self.verifies {
            // SAFETY: the caller promises the buffer, and the GPU has memory for each unit.
            let copied = unsafe { self.gpu.put(place, unit.buffer, length) };
            if let Err(words) = copied {
                self.reasons.note(unit.index, &words);
                return Queued::Completed(Err(Errno(libc::EIO)));
            }
        }
        let file = match self.handles.of_open(unit.file) {
            Ok(&file) => ptr::with_exposed_provenance_mut(file),
            Err(errno) => return Queued::Completed(Err(errno)),
        };
        if let Some(flight) = self.flights.get_mut(unit.index as usize) {
            *flight = (!is_write && self.verifies, unit.buffer);
        }
        const BATCH: i32 = 1;
        let request = Request {
            mode: BATCH,
            memory: self.gpu.pointer(),
            file_offset: unit.offset as i64,
            memory_offset: place as i64,
            size: length,
            file,
            is_write: i32::from(is_write),
            cookie: ptr::without_provenance_mut(unit.index as usize),
        };
        self.batches.iter_mut().for_each(|batches| batches.queue(request));
        Queued::Queued
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        Ok(self.batches.as_mut().map_or(0, |batches| batches.submit(&mut self.reasons)))
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let Some(batches) = &mut self.batches else { return Ok(()) };
        let before = done.len();
        batches.reap(min, max, timeout, done, &mut self.reasons);
        for completion in &mut done[before..] {
            let unit = completion.unit;
            let (reads, buffer) =
                self.flights.get(unit as usize).copied().unwrap_or((false, ptr::null_mut()));
            if let (Ok(bytes), true) = (completion.outcome, reads) {
                // SAFETY: the unit's buffer is valid until it is reaped.
                let copied = unsafe { self.gpu.get(unit as usize * self.stride, buffer, bytes as usize) };
                if let Err(words) = copied {
                    self.reasons.note(unit, &words);
                    completion.outcome = Err(Errno(libc::EIO));
                }
            }
        }
        Ok(())
    }

    fn announcements(&self) -> Vec<String> {
        vec![format!("{}: GPU {} ({})", self.vendor.engine, self.number, self.gpu.name())]
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.reasons.explain(unit)
    }

    fn stop_repeating(&mut self) {
        self.batches.iter_mut().for_each(Batches::hurry);
    }

    fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }
}

impl<const SYNCHRONOUS: bool> Drop for LibcufileEngine<SYNCHRONOUS> {
    fn drop(&mut self) {
        self.batches.iter_mut().for_each(Batches::drain);
        // Requests use files and memory, files and memory the library.
        if self.is_abandoned() {
            std::mem::forget((self.batches.take(), self.cufile.take()));
            self.files.leave();
            self.gpu.leave();
            return;
        }
        drop(self.batches.take());
        let Some(Opened(_, cufile)) = &self.cufile else { return };
        for index in 0..self.handles.room() {
            if let Some(handle) = self.handles.take(index) {
                // SAFETY: no request uses the file any more.
                unsafe { (cufile.deregister_file)(ptr::with_exposed_provenance_mut(handle)) };
            }
        }
        if self.is_registered {
            // SAFETY: no request uses the memory any more.
            let _ = unsafe { (cufile.deregister_memory)(self.gpu.pointer()) };
        }
    }
}
