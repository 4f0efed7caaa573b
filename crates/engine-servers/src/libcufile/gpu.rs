//! Memory of a GPU.

use super::library::{Cuda, NAME};
use iolite_engine::EngineError;
use iolite_engine::library::Handle;
use libc::{c_int, c_void};
use std::ptr;

/// A GPU, with its context current in this thread, and memory on it for all units of a worker.
pub(super) struct Gpu {
    cuda: &'static Cuda,
    device: c_int,
    context: Handle,
    /// The first byte of the memory; 0 = none is allocated.
    pub(super) memory: u64,
}

fn refused(errno: i32, why: String) -> EngineError {
    EngineError::Remote { engine: NAME, errno, why }
}

impl Gpu {
    /// Opens the GPU with this number.
    ///
    /// # Errors
    /// The library is missing, or there is no such GPU.
    pub(super) fn open(number: u32) -> Result<Gpu, EngineError> {
        let cuda = Cuda::load()?;
        let absent = |why| refused(libc::ENODEV, why);
        // SAFETY: takes an integer.
        cuda.check("cuInit", unsafe { (cuda.init)(0) })
            .map_err(|why| absent(format!("no GPU of NVIDIA can be used: {why}; nvidia-smi lists them")))?;
        let mut count = 0;
        // SAFETY: there is room for the number.
        cuda.check("cuDeviceGetCount", unsafe { (cuda.count)(&raw mut count) }).map_err(absent)?;
        if number >= count.unsigned_abs() {
            let last = match count {
                0 => "there is none".to_owned(),
                count => format!("the last one is {}", count - 1),
            };
            return Err(absent(format!(
                "gpu_dev_ids={number}: there is no such GPU: {last} (nvidia-smi lists them)"
            )));
        }
        let mut gpu = Gpu { cuda, device: 0, context: ptr::null_mut(), memory: 0 };
        // SAFETY: there is room for the number.
        let found = unsafe { (cuda.device)(&raw mut gpu.device, number as c_int) };
        cuda.check("cuDeviceGet", found).map_err(absent)?;
        // SAFETY: there is room for the handle.
        let retained = unsafe { (cuda.retain)(&raw mut gpu.context, gpu.device) };
        cuda.check("cuDevicePrimaryCtxRetain", retained).map_err(absent)?;
        // SAFETY: the context is valid.
        cuda.check("cuCtxSetCurrent", unsafe { (cuda.set_current)(gpu.context) }).map_err(absent)?;
        Ok(gpu)
    }

    /// Its name.
    pub(super) fn name(&self) -> String {
        let mut name = [0_u8; 100];
        // SAFETY: there is as much room as is said.
        let told = unsafe { (self.cuda.name)(name.as_mut_ptr().cast(), name.len() as c_int, self.device) };
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        if told == 0 { String::from_utf8_lossy(&name[..end]).into_owned() } else { "GPU".to_owned() }
    }

    /// Allocates the memory.
    ///
    /// # Errors
    /// There is not as much.
    pub(super) fn allocate(&mut self, bytes: usize) -> Result<(), EngineError> {
        // SAFETY: there is room for the address.
        let taken = unsafe { (self.cuda.allocate)(&raw mut self.memory, bytes) };
        self.cuda.check("cuMemAlloc", taken).map_err(|why| {
            refused(
                libc::ENOMEM,
                format!("no memory of the GPU for {bytes} bytes of buffers (iodepth, bs): {why}"),
            )
        })
    }

    /// Copies to the GPU's memory, from this offset on.
    ///
    /// # Safety
    /// The memory is valid for the length, and so is that of the GPU.
    pub(super) unsafe fn put(&self, offset: usize, from: *const u8, length: usize) -> Result<(), String> {
        // SAFETY: the caller promises that.
        let copied = unsafe { (self.cuda.to_gpu)(self.memory + offset as u64, from.cast(), length) };
        self.cuda.check("cuMemcpyHtoD", copied)
    }

    /// Copies from the GPU's memory, from this offset on.
    ///
    /// # Safety
    /// As for `put`; the memory is writable.
    pub(super) unsafe fn get(&self, offset: usize, to: *mut u8, length: usize) -> Result<(), String> {
        // SAFETY: the caller promises that.
        let copied = unsafe { (self.cuda.from_gpu)(to.cast(), self.memory + offset as u64, length) };
        self.cuda.check("cuMemcpyDtoH", copied)
    }

    /// Leaves memory and context until the process ends, because something may still use them.
    pub(super) fn leave(&mut self) {
        (self.memory, self.context) = (0, ptr::null_mut());
    }

    /// The address for libcufile.
    pub(super) fn pointer(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.memory as usize)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: nothing uses the memory and the context any more.
        unsafe {
            if self.memory != 0 {
                (self.cuda.free)(self.memory);
            }
            if !self.context.is_null() {
                (self.cuda.release)(self.device);
            }
        }
    }
}
