//! Memory of a GPU.

use super::library::{Choosing, Driver, Vendor};
use iolite_engine::EngineError;
use iolite_engine::library::Handle;
use libc::{c_int, c_void};
use std::ptr;

/// A GPU that this thread has chosen, and memory on it for all units of a worker.
pub(super) struct Gpu {
    vendor: &'static Vendor,
    driver: &'static Driver,
    device: c_int,
    /// The context of CUDA.
    context: Handle,
    /// The first byte of the memory; 0 = none is allocated.
    pub(super) memory: u64,
}

impl Gpu {
    /// Opens the GPU with this number.
    ///
    /// # Errors
    /// The library is missing, or there is no such GPU.
    pub(super) fn open(vendor: &'static Vendor, number: u32) -> Result<Gpu, EngineError> {
        let driver = vendor.driver()?;
        let absent = |why| vendor.refused(libc::ENODEV, why);
        let check = |calls, result| vendor.check(driver, calls, result);
        let Vendor { name, lister, .. } = vendor;
        // SAFETY: takes an integer.
        check(["cuInit", "hipInit"], unsafe { (driver.calls.init)(0) })
            .map_err(|why| absent(format!("no GPU of {name} can be used: {why}; {lister} lists them")))?;
        let mut count = 0;
        // SAFETY: there is room for the number.
        let counted = unsafe { (driver.calls.count)(&raw mut count) };
        check(["cuDeviceGetCount", "hipGetDeviceCount"], counted).map_err(absent)?;
        if number >= count.unsigned_abs() {
            let last = match count {
                0 => "there is none".to_owned(),
                count => format!("the last one is {}", count - 1),
            };
            return Err(absent(format!(
                "gpu_dev_ids={number}: there is no such GPU: {last} ({lister} lists them)"
            )));
        }
        let mut gpu = Gpu { vendor, driver, device: 0, context: ptr::null_mut(), memory: 0 };
        // SAFETY: there is room for the number.
        let found = unsafe { (driver.calls.device)(&raw mut gpu.device, number as c_int) };
        check(["cuDeviceGet", "hipDeviceGet"], found).map_err(absent)?;
        match &driver.choosing {
            Choosing::Context(contexts) => {
                // SAFETY: there is room for the handle.
                let retained = unsafe { (contexts.retain)(&raw mut gpu.context, gpu.device) };
                check(["cuDevicePrimaryCtxRetain", ""], retained).map_err(absent)?;
                // SAFETY: the context is valid.
                let set = unsafe { (contexts.set_current)(gpu.context) };
                check(["cuCtxSetCurrent", ""], set).map_err(absent)?;
            }
            Choosing::Device(choice) => {
                // SAFETY: takes an integer.
                let set = unsafe { (choice.set_device)(number as c_int) };
                check(["", "hipSetDevice"], set).map_err(absent)?;
            }
        }
        Ok(gpu)
    }

    /// Its name.
    pub(super) fn name(&self) -> String {
        let mut name = [0_u8; 100];
        // SAFETY: there is as much room as is said.
        let told =
            unsafe { (self.driver.calls.name)(name.as_mut_ptr().cast(), name.len() as c_int, self.device) };
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        if told == 0 { String::from_utf8_lossy(&name[..end]).into_owned() } else { "GPU".to_owned() }
    }

    fn check(&self, calls: [&str; 2], result: c_int) -> Result<(), String> {
        self.vendor.check(self.driver, calls, result)
    }

    /// Allocates the memory.
    ///
    /// # Errors
    /// There is not as much.
    pub(super) fn allocate(&mut self, bytes: usize) -> Result<(), EngineError> {
        // SAFETY: there is room for the address.
        let taken = unsafe { (self.driver.calls.allocate)(&raw mut self.memory, bytes) };
        self.check(["cuMemAlloc", "hipMalloc"], taken).map_err(|why| {
            let why = format!("no memory of the GPU for {bytes} bytes of buffers (iodepth, bs): {why}");
            self.vendor.refused(libc::ENOMEM, why)
        })
    }

    /// Copies to the GPU's memory, from this offset on.
    ///
    /// # Safety
    /// The memory is valid for the length, and so is that of the GPU.
    pub(super) unsafe fn put(&self, offset: usize, from: *const u8, length: usize) -> Result<(), String> {
        // SAFETY: the caller promises that.
        let copied = unsafe { (self.driver.calls.to_gpu)(self.memory + offset as u64, from.cast(), length) };
        self.check(["cuMemcpyHtoD", "hipMemcpyHtoD"], copied)
    }

    /// Copies from the GPU's memory, from this offset on.
    ///
    /// # Safety
    /// As for `put`; the memory is writable.
    pub(super) unsafe fn get(&self, offset: usize, to: *mut u8, length: usize) -> Result<(), String> {
        // SAFETY: the caller promises that.
        let copied = unsafe { (self.driver.calls.from_gpu)(to.cast(), self.memory + offset as u64, length) };
        self.check(["cuMemcpyDtoH", "hipMemcpyDtoH"], copied)
    }

    /// Leaves memory and context until the process ends, because something may still use them.
    pub(super) fn leave(&mut self) {
        (self.memory, self.context) = (0, ptr::null_mut());
    }

    /// The address for the library for files.
    pub(super) fn pointer(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.memory as usize)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: nothing uses the memory and the context any more.
        unsafe {
            if self.memory != 0 {
                (self.driver.calls.free)(self.memory);
            }
            if let (false, Choosing::Context(contexts)) = (self.context.is_null(), &self.driver.choosing) {
                (contexts.release)(self.device);
            }
        }
    }
}
