//! libblkio, opened at run time, so that only its users need it. blkio(3) describes its interface.

use iolite_engine::EngineError;
use iolite_engine::library::{functions, open};
use libc::{c_char, c_int, c_void, iovec, size_t, timespec};
use std::ffi::CStr;
use std::sync::OnceLock;

pub(super) const NAME: &str = "libblkio";
const FILE: &str = "libblkio.so.1";

/// A write is on stable storage when it is complete (`BLKIO_REQ_FUA`).
pub(super) const FUA: u32 = 1;

/// `struct blkio`: a driver with its device.
pub(crate) enum Raw {}

/// `struct blkioq`: a queue of a device.
pub(crate) enum RawQueue {}

/// `struct blkio_mem_region`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Region {
    pub(super) start: *mut c_void,
    pub(super) length: size_t,
    pub(super) iova: u64,
    pub(super) offset: i64,
    pub(super) descriptor: c_int,
    pub(super) flags: u32,
}

/// `struct blkio_completion`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RawCompletion {
    pub(super) data: *mut c_void,
    pub(super) words: *const c_char,
    pub(super) result: c_int,
    reserved: [u8; 12],
}

impl RawCompletion {
    pub(super) const NONE: RawCompletion =
        RawCompletion { data: std::ptr::null_mut(), words: std::ptr::null(), result: 0, reserved: [0; 12] };
}

functions! {
    /// The functions of the library that this engine uses.
    Library {
        words = "blkio_get_error_msg": fn() -> *const c_char;
        create = "blkio_create": fn(*const c_char, *mut *mut Raw) -> c_int;
        connect = "blkio_connect": fn(*mut Raw) -> c_int;
        start = "blkio_start": fn(*mut Raw) -> c_int;
        destroy = "blkio_destroy": fn(*mut *mut Raw);
        get_bool = "blkio_get_bool": fn(*mut Raw, *const c_char, *mut bool) -> c_int;
        get_int = "blkio_get_int": fn(*mut Raw, *const c_char, *mut c_int) -> c_int;
        get_u64 = "blkio_get_uint64": fn(*mut Raw, *const c_char, *mut u64) -> c_int;
        set = "blkio_set_str": fn(*mut Raw, *const c_char, *const c_char) -> c_int;
        allocate = "blkio_alloc_mem_region": fn(*mut Raw, *mut Region, size_t) -> c_int;
        free = "blkio_free_mem_region": fn(*mut Raw, *const Region);
        map = "blkio_map_mem_region": fn(*mut Raw, *const Region) -> c_int;
        unmap = "blkio_unmap_mem_region": fn(*mut Raw, *const Region);
        queue = "blkio_get_queue": fn(*mut Raw, c_int) -> *mut RawQueue;
        poll_queue = "blkio_get_poll_queue": fn(*mut Raw, c_int) -> *mut RawQueue;
        add_queue = "blkio_add_queue": fn(*mut Raw) -> c_int;
        add_poll_queue = "blkio_add_poll_queue": fn(*mut Raw) -> c_int;
        read = "blkioq_read": fn(*mut RawQueue, u64, *mut c_void, size_t, *mut c_void, u32);
        write = "blkioq_write": fn(*mut RawQueue, u64, *const c_void, size_t, *mut c_void, u32);
        readv = "blkioq_readv": fn(*mut RawQueue, u64, *const iovec, c_int, *mut c_void, u32);
        writev = "blkioq_writev": fn(*mut RawQueue, u64, *const iovec, c_int, *mut c_void, u32);
        write_zeroes = "blkioq_write_zeroes": fn(*mut RawQueue, u64, u64, *mut c_void, u32);
        discard = "blkioq_discard": fn(*mut RawQueue, u64, u64, *mut c_void, u32);
        flush = "blkioq_flush": fn(*mut RawQueue, *mut c_void, u32);
        do_io = "blkioq_do_io": fn(*mut RawQueue, *mut RawCompletion, c_int, c_int, *mut timespec) -> c_int;
        descriptor = "blkioq_get_completion_fd": fn(*mut RawQueue) -> c_int;
        announce = "blkioq_set_completion_fd_enabled": fn(*mut RawQueue, bool);
    }
}

impl Library {
    /// The library. It is loaded once per process.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub(super) fn load() -> Result<&'static Library, EngineError> {
        static LOADED: OnceLock<Result<Library, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            // SAFETY: the types are those of its header.
            unsafe { open(FILE, |library| Library::found(library)) }
        });
        loaded.as_ref().map_err(|why| EngineError::Library {
            engine: NAME,
            library: FILE,
            debian: "libblkio1",
            rhel: "libblkio",
            why: why.clone(),
        })
    }

    /// The library's words about the last error of this thread.
    pub(super) fn error(&self) -> String {
        // SAFETY: the function takes no arguments; its text stays until this thread's next call of the library.
        unsafe { text((self.words)()) }.unwrap_or_default()
    }
}

/// A text of the library.
///
/// # Safety
/// It is null, or ends with a zero.
pub(super) unsafe fn text(words: *const c_char) -> Option<String> {
    // SAFETY: the caller promises that.
    (!words.is_null()).then(|| unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned())
}
