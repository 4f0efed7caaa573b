//! libnbd, opened at run time, so that only its users need it. libnbd(3) describes its interface.

use iolite_engine::EngineError;
use iolite_engine::library::{functions, open};
use libc::{c_char, c_int, c_uint, c_void, size_t};
use std::ffi::CStr;

const FILE: &str = "libnbd.so.0";

/// Writes are on stable storage when the server answers them.
pub(super) const FUA: u32 = 1;
/// Asks for the size of which every offset and length must be a multiple (LIBNBD_SIZE_MINIMUM).
pub(super) const SMALLEST: c_int = 0;
/// The directions in which the library waits for the socket.
pub(super) const READABLE: c_uint = 1;
pub(super) const WRITABLE: c_uint = 2;

/// A connection of the library.
pub(crate) enum Raw {}

/// Called when a command is done: with the caller's data, and a pointer to its error number.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Callback {
    pub(super) call: unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    pub(super) data: *mut c_void,
    pub(super) free: Option<unsafe extern "C" fn(*mut c_void)>,
}

functions! {
    /// The functions of the library that this engine uses.
    Library {
        create = "nbd_create": fn() -> *mut Raw;
        close = "nbd_close": fn(*mut Raw);
        disconnect = "nbd_aio_disconnect": fn(*mut Raw, u32) -> c_int;
        error = "nbd_get_error": fn() -> *const c_char;
        errno = "nbd_get_errno": fn() -> c_int;
        allow_local_file = "nbd_set_uri_allow_local_file": fn(*mut Raw, bool) -> c_int;
        connect = "nbd_aio_connect_uri": fn(*mut Raw, *const c_char) -> c_int;
        name_export = "nbd_set_export_name": fn(*mut Raw, *const c_char) -> c_int;
        connect_socket = "nbd_aio_connect_socket": fn(*mut Raw, c_int) -> c_int;
        poll = "nbd_poll": fn(*mut Raw, c_int) -> c_int;
        is_ready = "nbd_aio_is_ready": fn(*mut Raw) -> c_int;
        is_dead = "nbd_aio_is_dead": fn(*mut Raw) -> c_int;
        is_closed = "nbd_aio_is_closed": fn(*mut Raw) -> c_int;
        size = "nbd_get_size": fn(*mut Raw) -> i64;
        block_size = "nbd_get_block_size": fn(*mut Raw, c_int) -> i64;
        is_read_only = "nbd_is_read_only": fn(*mut Raw) -> c_int;
        can_flush = "nbd_can_flush": fn(*mut Raw) -> c_int;
        can_trim = "nbd_can_trim": fn(*mut Raw) -> c_int;
        can_fua = "nbd_can_fua": fn(*mut Raw) -> c_int;
        read = "nbd_aio_pread": fn(*mut Raw, *mut c_void, size_t, u64, Callback, u32) -> i64;
        write = "nbd_aio_pwrite": fn(*mut Raw, *const c_void, size_t, u64, Callback, u32) -> i64;
        trim = "nbd_aio_trim": fn(*mut Raw, u64, u64, Callback, u32) -> i64;
        flush = "nbd_aio_flush": fn(*mut Raw, Callback, u32) -> i64;
        descriptor = "nbd_aio_get_fd": fn(*mut Raw) -> c_int;
        direction = "nbd_aio_get_direction": fn(*mut Raw) -> c_uint;
        readable = "nbd_aio_notify_read": fn(*mut Raw) -> c_int;
        writable = "nbd_aio_notify_write": fn(*mut Raw) -> c_int;
    }
}

impl Library {
    /// Loads the library.
    pub(super) fn load() -> Result<Library, EngineError> {
        // SAFETY: libnbd does nothing when it is loaded. The types are those of its header.
        unsafe { open(FILE, |library| Library::found(library)) }.map_err(|why| EngineError::Library {
            engine: "nbd",
            library: FILE,
            debian: "libnbd0",
            rhel: "libnbd",
            why,
        })
    }

    /// The library's message about the last failed call of this thread, without the function names at its beginning.
    pub(super) fn last_error(&self) -> (i32, String) {
        // SAFETY: the functions take no arguments. The first returns NULL, or a text that is valid until the next
        // call.
        let (text, errno) = unsafe { ((self.error)(), (self.errno)()) };
        let words = match text.is_null() {
            true => "unknown error".to_owned(),
            // SAFETY: the text ends with a zero byte.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        let plain = words
            .split_once(": ")
            .filter(|(name, _)| name.starts_with("nbd_"))
            .map(|(_, rest)| rest.to_owned());
        (if errno == 0 { libc::EIO } else { errno }, plain.unwrap_or(words))
    }
}
