//! libcuda and libcufile, opened at run time. Their interfaces are described in the CUDA Driver API and in the cuFile API
//! Reference Guide of NVIDIA.

use iolite_engine::EngineError;
use iolite_engine::library::{Handle, functions, open};
use libc::{c_char, c_int, c_uint, c_void, off_t, size_t, ssize_t, timespec};
use std::ffi::CStr;
use std::ptr;
use std::sync::OnceLock;

pub(super) const NAME: &str = "libcufile";
const CUDA: &str = "libcuda.so.1";
const CUFILE: &str = "libcufile.so.0";

functions! {
    /// The functions of the CUDA driver that this engine uses.
    Cuda {
        init = "cuInit": fn(c_uint) -> c_int;
        words = "cuGetErrorString": fn(c_int, *mut *const c_char) -> c_int;
        count = "cuDeviceGetCount": fn(*mut c_int) -> c_int;
        device = "cuDeviceGet": fn(*mut c_int, c_int) -> c_int;
        name = "cuDeviceGetName": fn(*mut c_char, c_int, c_int) -> c_int;
        retain = "cuDevicePrimaryCtxRetain": fn(*mut Handle, c_int) -> c_int;
        release = "cuDevicePrimaryCtxRelease_v2": fn(c_int) -> c_int;
        set_current = "cuCtxSetCurrent": fn(Handle) -> c_int;
        allocate = "cuMemAlloc_v2": fn(*mut u64, size_t) -> c_int;
        free = "cuMemFree_v2": fn(u64) -> c_int;
        to_gpu = "cuMemcpyHtoD_v2": fn(u64, *const c_void, size_t) -> c_int;
        from_gpu = "cuMemcpyDtoH_v2": fn(*mut c_void, u64, size_t) -> c_int;
    }
}

functions! {
    /// The functions of libcufile that this engine uses.
    Cufile {
        open = "cuFileDriverOpen": fn() -> Status;
        close = "cuFileDriverClose": fn() -> Status;
        register_file = "cuFileHandleRegister": fn(*mut Handle, *mut Description) -> Status;
        deregister_file = "cuFileHandleDeregister": fn(Handle);
        register_memory = "cuFileBufRegister": fn(*const c_void, size_t, c_int) -> Status;
        deregister_memory = "cuFileBufDeregister": fn(*const c_void) -> Status;
        read = "cuFileRead": fn(Handle, *mut c_void, size_t, off_t, off_t) -> ssize_t;
        write = "cuFileWrite": fn(Handle, *const c_void, size_t, off_t, off_t) -> ssize_t;
        set_up_batch = "cuFileBatchIOSetUp": fn(*mut Handle, c_uint) -> Status;
        submit = "cuFileBatchIOSubmit": fn(Handle, c_uint, *mut Request, c_uint) -> Status;
        ended = "cuFileBatchIOGetStatus": fn(Handle, c_uint, *mut c_uint, *mut Event, *mut timespec) -> Status;
        cancel = "cuFileBatchIOCancel": fn(Handle) -> Status;
        destroy_batch = "cuFileBatchIODestroy": fn(Handle);
    }
}

/// `CUfileError_t`: an error of libcufile, and one of the driver of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Status {
    pub(super) error: c_int,
    pub(super) of_cuda: c_int,
}

/// `CUfileDescr_t`, for a file descriptor.
#[repr(C)]
pub(crate) struct Description {
    kind: c_int,
    /// A union with a pointer.
    descriptor: u64,
    operations: *const c_void,
}

impl Description {
    pub(super) fn of(descriptor: c_int) -> Description {
        const OPAQUE_FD: c_int = 1;
        Description { kind: OPAQUE_FD, descriptor: descriptor as u64, operations: ptr::null() }
    }
}

/// `CUfileIOParams_t`: a request of a batch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Request {
    pub(super) mode: c_int,
    pub(super) memory: *mut c_void,
    pub(super) file_offset: off_t,
    pub(super) memory_offset: off_t,
    pub(super) size: size_t,
    pub(super) file: Handle,
    pub(super) is_write: c_int,
    pub(super) cookie: *mut c_void,
}

/// `CUfileIOEvents_t`: the end of a request.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Event {
    pub(super) cookie: *mut c_void,
    pub(super) status: c_int,
    /// Bytes, or a negated error.
    pub(super) result: ssize_t,
}

impl Event {
    pub(super) const NONE: Event = Event { cookie: ptr::null_mut(), status: 0, result: 0 };
}

/// What became of a request of a batch (`CUfileStatus_t`).
pub(super) mod status {
    pub(in super::super) const WAITING: i32 = 0x01;
    pub(in super::super) const PENDING: i32 = 0x02;
    pub(in super::super) const COMPLETE: i32 = 0x10;
    pub(in super::super) const CANCELED: i32 = 0x08;
    pub(in super::super) const TIMEOUT: i32 = 0x20;
}

fn missing(library: &'static str, debian: &'static str, rhel: &'static str, why: &str) -> EngineError {
    EngineError::Library { engine: NAME, library, debian, rhel, why: why.to_owned() }
}

impl Cuda {
    /// The library of NVIDIA's driver. It is loaded once per process.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub(super) fn load() -> Result<&'static Cuda, EngineError> {
        static LOADED: OnceLock<Result<Cuda, String>> = OnceLock::new();
        // SAFETY: the types are those of its header.
        let loaded = LOADED.get_or_init(|| unsafe { open(CUDA, |library| Cuda::found(library)) });
        loaded.as_ref().map_err(|why| missing(CUDA, "libcuda1", "nvidia-driver-cuda-libs", why))
    }

    /// Fails with the words of the driver.
    pub(super) fn check(&self, call: &str, result: c_int) -> Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        let mut words = ptr::null();
        // SAFETY: there is room for the pointer; the text is a constant that ends with a zero.
        let told = unsafe { (self.words)(result, &raw mut words) == 0 && !words.is_null() };
        // SAFETY: as above.
        let words = if told { unsafe { CStr::from_ptr(words) }.to_string_lossy() } else { "unknown".into() };
        Err(format!("{call}: {words} (error {result} of CUDA)"))
    }
}

impl Cufile {
    /// The library. It is loaded once per process.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub(super) fn load() -> Result<&'static Cufile, EngineError> {
        static LOADED: OnceLock<Result<Cufile, String>> = OnceLock::new();
        // SAFETY: the types are those of its header.
        let loaded = LOADED.get_or_init(|| unsafe {
            open(CUFILE, |library| {
                let mut found = Cufile::found(library)?;
                // What the header makes of cuFileDriverClose. Older libraries do not have it.
                if let Ok(close) = library.get::<unsafe extern "C" fn() -> Status>(b"cuFileDriverClose_v2\0")
                {
                    found.close = *close;
                }
                Ok(found)
            })
        });
        loaded.as_ref().map_err(|why| missing(CUFILE, "libcufile0", "libcufile", why))
    }
}

impl Status {
    /// Fails with what the error means.
    pub(super) fn check(self, call: &str) -> Result<(), String> {
        const OF_CUDA: c_int = 5011;
        match self.error {
            0 => Ok(()),
            OF_CUDA => Err(format!("{call}: an error of CUDA's driver ({})", self.of_cuda)),
            error => Err(format!("{call}: {}", in_words(error))),
        }
    }
}

/// What an error of libcufile (`CUfileOpError`) means.
pub(super) fn in_words(error: c_int) -> String {
    let words = match error - 5000 {
        1 => {
            "the driver nvidia-fs is not loaded: load it (modprobe nvidia-fs), or allow the mode without it \
              (allow_compat_mode in cufile.json, or CUFILE_FORCE_COMPAT_MODE=true)"
        }
        4 | 5 => "the version of the driver nvidia-fs does not fit the library",
        7 => "GPUDirect Storage is not supported on this platform",
        8 => "GPUDirect Storage is not supported on this file",
        9 => "GPUDirect Storage is not supported on this GPU",
        10 => "an error of the driver nvidia-fs",
        12..=15 => "the memory is not memory of the GPU that was chosen",
        16 | 17 => "more memory than can be mapped",
        18 => "files of this type are not supported",
        19 => "the file is opened in a way that is not supported",
        20 => "the file is not opened with direct=1",
        22 => "a wrong argument",
        24 => "the memory is not registered",
        25 => "no permission for the driver or the file",
        29 => "there is no such GPU",
        34 => "GPUDirect Storage is switched off for this file (cufile.json)",
        35 => "the batch was not submitted",
        36 => "no memory of the GPU could be pinned",
        37 => "the batch is full",
        _ => return format!("error {error} of libcufile"),
    };
    format!("{words} (error {error} of libcufile)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn structures_have_the_layout_of_the_header() {
        assert_eq!((size_of::<Status>(), size_of::<Description>()), (8, 24));
        assert_eq!((offset_of!(Description, descriptor), offset_of!(Description, operations)), (8, 16));
        assert_eq!(
            (size_of::<Request>(), offset_of!(Request, memory), offset_of!(Request, file)),
            (64, 8, 40)
        );
        assert_eq!((offset_of!(Request, is_write), offset_of!(Request, cookie)), (48, 56));
        assert_eq!((size_of::<Event>(), offset_of!(Event, status), offset_of!(Event, result)), (24, 8, 16));
    }

    #[test]
    fn errors_are_told_in_words() {
        assert_eq!(Status { error: 0, of_cuda: 0 }.check("x"), Ok(()));
        let told = |error, of_cuda| Status { error, of_cuda }.check("cuFileDriverOpen").unwrap_err();
        assert!(told(5001, 0).starts_with("cuFileDriverOpen: the driver nvidia-fs is not loaded"));
        assert_eq!(told(5011, 2), "cuFileDriverOpen: an error of CUDA's driver (2)");
        assert_eq!(told(5999, 0), "cuFileDriverOpen: error 5999 of libcufile");
    }
}
