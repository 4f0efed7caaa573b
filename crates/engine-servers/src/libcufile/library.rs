//! libcuda and libcufile of NVIDIA, or libamdhip64 and libhipfile of AMD, opened at run time. Their interfaces are described in
//! the CUDA Driver API and the cuFile API Reference Guide of NVIDIA, and in the references of HIP and hipFile of AMD, which have
//! the same functions by other names.

use iolite_engine::library::{Handle, functions, open};
use iolite_engine::{EngineError, Errno};
use iolite_options::engines::GpuVendor;
use libc::{c_char, c_int, c_uint, c_void, off_t, size_t, ssize_t, timespec};
use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr;
use std::sync::{Mutex, OnceLock};

functions! {
    /// The functions of a GPU's driver that this engine uses.
    Calls {
        init = "cuInit" or "hipInit": fn(c_uint) -> c_int;
        words = "cuGetErrorString" or "hipDrvGetErrorString": fn(c_int, *mut *const c_char) -> c_int;
        count = "cuDeviceGetCount" or "hipGetDeviceCount": fn(*mut c_int) -> c_int;
        device = "cuDeviceGet" or "hipDeviceGet": fn(*mut c_int, c_int) -> c_int;
        name = "cuDeviceGetName" or "hipDeviceGetName": fn(*mut c_char, c_int, c_int) -> c_int;
        allocate = "cuMemAlloc_v2" or "hipMalloc": fn(*mut u64, size_t) -> c_int;
        free = "cuMemFree_v2" or "hipFree": fn(u64) -> c_int;
        to_gpu = "cuMemcpyHtoD_v2" or "hipMemcpyHtoD": fn(u64, *const c_void, size_t) -> c_int;
        from_gpu = "cuMemcpyDtoH_v2" or "hipMemcpyDtoH": fn(*mut c_void, u64, size_t) -> c_int;
    }
}

functions! {
    /// How a thread chooses a GPU with CUDA.
    Contexts {
        retain = "cuDevicePrimaryCtxRetain": fn(*mut Handle, c_int) -> c_int;
        release = "cuDevicePrimaryCtxRelease_v2": fn(c_int) -> c_int;
        set_current = "cuCtxSetCurrent": fn(Handle) -> c_int;
    }
}

functions! {
    /// How a thread chooses a GPU with HIP.
    Choice {
        set_device = "hipSetDevice": fn(c_int) -> c_int;
    }
}

/// How a thread chooses a GPU.
pub(super) enum Choosing {
    Context(Contexts),
    Device(Choice),
}

/// The driver of a vendor's GPUs.
pub(super) struct Driver {
    pub(super) calls: Calls,
    pub(super) choosing: Choosing,
}

functions! {
    /// The functions for files that this engine uses.
    Cufile {
        open = "cuFileDriverOpen" or "hipFileDriverOpen": fn() -> Status;
        close = "cuFileDriverClose" or "hipFileDriverClose": fn() -> Status;
        register_file = "cuFileHandleRegister" or "hipFileHandleRegister": fn(*mut Handle, *mut Description) -> Status;
        deregister_file = "cuFileHandleDeregister" or "hipFileHandleDeregister": fn(Handle);
        register_memory = "cuFileBufRegister" or "hipFileBufRegister": fn(*const c_void, size_t, c_int) -> Status;
        deregister_memory = "cuFileBufDeregister" or "hipFileBufDeregister": fn(*const c_void) -> Status;
        read = "cuFileRead" or "hipFileRead": fn(Handle, *mut c_void, size_t, off_t, off_t) -> ssize_t;
        write = "cuFileWrite" or "hipFileWrite": fn(Handle, *const c_void, size_t, off_t, off_t) -> ssize_t;
    }
}

functions! {
    /// The functions of libcufile for batches. (hipFile's documentation says that its own are not implemented.)
    Batching {
        set_up_batch = "cuFileBatchIOSetUp": fn(*mut Handle, c_uint) -> Status;
        submit = "cuFileBatchIOSubmit": fn(Handle, c_uint, *mut Request, c_uint) -> Status;
        ended = "cuFileBatchIOGetStatus": fn(Handle, c_uint, *mut c_uint, *mut Event, *mut timespec) -> Status;
        destroy_batch = "cuFileBatchIODestroy": fn(Handle);
    }
}

/// A library for files.
pub(super) struct FileLibrary {
    pub(super) calls: Cufile,
    pub(super) batching: Option<Batching>,
}

/// What differs between vendors of GPUs.
pub(super) struct Vendor {
    /// The name of the engine and of its library for files.
    pub(super) engine: &'static str,
    pub(super) name: &'static str,
    is_amd: bool,
    /// The interface to the GPU.
    interface: &'static str,
    /// The program that lists GPUs.
    pub(super) lister: &'static str,
    /// What the names of functions for files begin with.
    prefix: &'static str,
    /// How data gets to files directly, and the driver for that.
    technology: &'static str,
    module: &'static str,
    /// The files of both libraries, and the packages of Debian and RHEL. The second name of a file is for a library
    /// without versions.
    driver_file: [&'static str; 2],
    driver_packages: [&'static str; 2],
    files_file: [&'static str; 2],
    files_packages: [&'static str; 2],
    driver: OnceLock<Result<Driver, String>>,
    files: OnceLock<Result<FileLibrary, String>>,
    /// The workers of this process that have the library for files open.
    pub(super) users: Mutex<usize>,
}

static NVIDIA: Vendor = Vendor {
    engine: "libcufile",
    name: "NVIDIA",
    is_amd: false,
    interface: "CUDA",
    lister: "nvidia-smi",
    prefix: "cuFile",
    technology: "GPUDirect Storage",
    module: "nvidia-fs",
    driver_file: ["libcuda.so.1"; 2],
    driver_packages: ["libcuda1", "nvidia-driver-cuda-libs"],
    files_file: ["libcufile.so.0"; 2],
    files_packages: ["libcufile0", "libcufile"],
    driver: OnceLock::new(),
    files: OnceLock::new(),
    users: Mutex::new(0),
};

static AMD: Vendor = Vendor {
    engine: "libhipfile",
    name: "AMD",
    is_amd: true,
    interface: "HIP",
    lister: "amd-smi list",
    prefix: "hipFile",
    technology: "hipFile",
    module: "amdgpu",
    driver_file: ["libamdhip64.so.7", "libamdhip64.so"],
    driver_packages: ["amdrocm-core-sdk", ""],
    files_file: ["libhipfile.so.0", "libhipfile.so"],
    files_packages: ["amdrocm-core-sdk", ""],
    driver: OnceLock::new(),
    files: OnceLock::new(),
    users: Mutex::new(0),
};

/// `CUfileError_t` and `hipFileError_t`: an error of the library, and one of the GPU's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Status {
    pub(super) error: c_int,
    pub(super) of_driver: c_int,
}

/// `CUfileDescr_t` and `hipFileDescr_t`, for a file descriptor.
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

/// Opens the first of these files that is there.
///
/// # Safety
/// As for [`open`].
unsafe fn open_any<T>(
    files: &[&str; 2],
    find: impl Fn(&libloading::os::unix::Library) -> Result<T, libloading::Error>,
) -> Result<T, String> {
    // SAFETY: the caller promises that.
    unsafe { open(files[0], &find).or_else(|why| open(files[1], &find).map_err(|_| why)) }
}

impl Vendor {
    pub(super) fn of(vendor: GpuVendor) -> &'static Vendor {
        match vendor {
            GpuVendor::Nvidia => &NVIDIA,
            GpuVendor::Amd => &AMD,
        }
    }

    pub(super) fn refused(&self, errno: i32, why: String) -> EngineError {
        EngineError::Remote { engine: self.engine, errno, why }
    }

    fn missing(&self, files: [&'static str; 2], packages: [&'static str; 2], why: &str) -> EngineError {
        let [debian, rhel] = packages;
        EngineError::Library { engine: self.engine, library: files[0], debian, rhel, why: why.to_owned() }
    }

    /// The library of the GPU's driver. It is loaded once per process.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub(super) fn driver(&self) -> Result<&Driver, EngineError> {
        // SAFETY: the types are those of its header.
        let loaded = self.driver.get_or_init(|| unsafe {
            open_any(&self.driver_file, |library| {
                let choosing = match self.is_amd {
                    true => Choosing::Device(Choice::found(library)?),
                    false => Choosing::Context(Contexts::found(library)?),
                };
                Ok(Driver { calls: Calls::found(library, self.is_amd)?, choosing })
            })
        });
        loaded.as_ref().map_err(|why| self.missing(self.driver_file, self.driver_packages, why))
    }

    /// The library for files. It is loaded once per process.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub(super) fn files(&self) -> Result<&FileLibrary, EngineError> {
        // SAFETY: the types are those of its header.
        let loaded = self.files.get_or_init(|| unsafe {
            open_any(&self.files_file, |library| {
                let mut calls = Cufile::found(library, self.is_amd)?;
                // What NVIDIA's header makes of cuFileDriverClose. Older libraries do not have it.
                if let Ok(close) = library.get::<unsafe extern "C" fn() -> Status>(b"cuFileDriverClose_v2\0")
                {
                    calls.close = *close;
                }
                let batching = if self.is_amd { None } else { Some(Batching::found(library)?) };
                Ok(FileLibrary { calls, batching })
            })
        });
        loaded.as_ref().map_err(|why| self.missing(self.files_file, self.files_packages, why))
    }

    /// Fails with the words of the driver. `calls` are the names of the function, of NVIDIA and of AMD.
    pub(super) fn check(&self, driver: &Driver, calls: [&str; 2], result: c_int) -> Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        let mut words = ptr::null();
        // SAFETY: there is room for the pointer; the text is a constant that ends with a zero.
        let told = unsafe { (driver.calls.words)(result, &raw mut words) == 0 && !words.is_null() };
        // SAFETY: as above.
        let words = if told { unsafe { CStr::from_ptr(words) }.to_string_lossy() } else { "unknown".into() };
        Err(format!("{}: {words} (error {result} of {})", calls[usize::from(self.is_amd)], self.interface))
    }

    /// Fails with what an error means. `call` is the name of the function without its beginning.
    pub(super) fn check_files(&self, call: &str, Status { error, of_driver }: Status) -> Result<(), String> {
        const OF_DRIVER: c_int = 5011;
        let prefix = self.prefix;
        match error {
            0 => Ok(()),
            OF_DRIVER => {
                Err(format!("{prefix}{call}: an error of {}'s driver ({of_driver})", self.interface))
            }
            error => Err(format!("{prefix}{call}: {}", self.in_words(error))),
        }
    }

    /// What a negative result of a read or a write means: an errno, or an error of the library with its words.
    pub(super) fn failure(&self, result: isize) -> (Errno, Option<String>) {
        match result.wrapping_neg() {
            errno @ 1..4096 => (Errno(errno as i32), None),
            error @ 4096.. => (Errno(libc::EIO), Some(self.in_words(error as c_int))),
            _ => (Errno(libc::EIO), None),
        }
    }

    /// What an error of the library for files (`CUfileOpError`, `hipFileOpError_t`) means.
    pub(super) fn in_words(&self, error: c_int) -> String {
        let Vendor { engine, technology, module, .. } = self;
        let words: Cow<'_, str> = match error - 5000 {
            1 if !self.is_amd => {
                "the driver nvidia-fs is not loaded: load it (modprobe nvidia-fs), or allow the mode without it \
                 (allow_compat_mode in cufile.json, or CUFILE_FORCE_COMPAT_MODE=true)"
                    .into()
            }
            1 => "the library is not initialized".into(),
            4 | 5 => format!("the version of the driver {module} does not fit the library").into(),
            7 => format!("{technology} is not supported on this platform").into(),
            8 if self.is_amd => {
                "hipFile is not supported on this file; HIPFILE_ALLOW_COMPAT_MODE=true permits copies through memory"
                    .into()
            }
            8 => format!("{technology} is not supported on this file").into(),
            9 => format!("{technology} is not supported on this GPU").into(),
            10 => format!("an error of the driver {module}").into(),
            12..=15 => "the memory is not memory of the GPU that was chosen".into(),
            16 | 17 => "more memory than can be mapped".into(),
            18 => "files of this type are not supported".into(),
            19 => "the file is opened in a way that is not supported".into(),
            20 => "the file is not opened with direct=1".into(),
            22 => "a wrong argument".into(),
            24 => "the memory is not registered".into(),
            25 => "no permission for the driver or the file".into(),
            29 => "there is no such GPU".into(),
            34 if !self.is_amd => "GPUDirect Storage is switched off for this file (cufile.json)".into(),
            35 => "the batch was not submitted".into(),
            36 => "no memory of the GPU could be pinned".into(),
            37 => "the batch is full".into(),
            _ => return format!("error {error} of {engine}"),
        };
        format!("{words} (error {error} of {engine})")
    }
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
        let told = |vendor: &Vendor, error, of_driver| {
            vendor.check_files("DriverOpen", Status { error, of_driver }).err().unwrap_or_default()
        };
        assert_eq!(told(&NVIDIA, 0, 0), "");
        assert!(told(&NVIDIA, 5001, 0).starts_with("cuFileDriverOpen: the driver nvidia-fs is not loaded"));
        assert_eq!(told(&NVIDIA, 5011, 2), "cuFileDriverOpen: an error of CUDA's driver (2)");
        assert_eq!(told(&NVIDIA, 5999, 0), "cuFileDriverOpen: error 5999 of libcufile");
        assert_eq!(NVIDIA.failure(-28), (Errno(libc::ENOSPC), None));
        let words = Some("a wrong argument (error 5022 of libcufile)".to_owned());
        assert_eq!(NVIDIA.failure(-5022), (Errno(libc::EIO), words));
        let of_amd = "hipFileDriverOpen: an error of the driver amdgpu (error 5010 of libhipfile)";
        assert_eq!(told(&AMD, 5010, 0), of_amd);
    }
}
