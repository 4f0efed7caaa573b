//! librados, opened at run time. Its interface is described in rados/librados.h.

use iolite_engine::EngineError;
use iolite_engine::library::{Handle, functions, open};
use libc::{c_char, c_int, size_t, time_t};
use std::sync::OnceLock;

/// Called by a thread of the library when a request is done.
pub(crate) type Callback = unsafe extern "C" fn(Handle, Handle);

functions! {
    /// The functions of librados that this engine uses.
    Librados {
        create = "rados_create": fn(*mut Handle, *const c_char) -> c_int;
        create_named = "rados_create2": fn(*mut Handle, *const c_char, *const c_char, u64) -> c_int;
        conf_read_file = "rados_conf_read_file": fn(Handle, *const c_char) -> c_int;
        conf_get = "rados_conf_get": fn(Handle, *const c_char, *mut c_char, size_t) -> c_int;
        conf_set = "rados_conf_set": fn(Handle, *const c_char, *const c_char) -> c_int;
        connect = "rados_connect": fn(Handle) -> c_int;
        shutdown = "rados_shutdown": fn(Handle);
        pool_open = "rados_ioctx_create": fn(Handle, *const c_char, *mut Handle) -> c_int;
        pool_close = "rados_ioctx_destroy": fn(Handle);
        stat = "rados_stat": fn(Handle, *const c_char, *mut u64, *mut time_t) -> c_int;
        truncate = "rados_trunc": fn(Handle, *const c_char, u64) -> c_int;
        remove = "rados_remove": fn(Handle, *const c_char) -> c_int;
        write = "rados_write": fn(Handle, *const c_char, *const c_char, size_t, u64) -> c_int;
        list_open = "rados_nobjects_list_open": fn(Handle, *mut Handle) -> c_int;
        list_next = "rados_nobjects_list_next": fn(Handle, *mut *const c_char, *mut *const c_char, *mut *const c_char) -> c_int;
        list_close = "rados_nobjects_list_close": fn(Handle);
        completion = "rados_aio_create_completion": fn(Handle, Option<Callback>, Option<Callback>, *mut Handle) -> c_int;
        result = "rados_aio_get_return_value": fn(Handle) -> c_int;
        release = "rados_aio_release": fn(Handle);
        aio_read = "rados_aio_read": fn(Handle, *const c_char, Handle, *mut c_char, size_t, u64) -> c_int;
        aio_write = "rados_aio_write": fn(Handle, *const c_char, Handle, *const c_char, size_t, u64) -> c_int;
        operation = "rados_create_write_op": fn() -> Handle;
        release_operation = "rados_release_write_op": fn(Handle);
        zero = "rados_write_op_zero": fn(Handle, u64, u64);
        aio_operate = "rados_aio_write_op_operate": fn(Handle, Handle, Handle, *const c_char, *mut time_t, c_int) -> c_int;
    }
}

impl Librados {
    /// The library, for an engine. It is loaded once per process.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub(crate) fn load(engine: &'static str) -> Result<&'static Librados, EngineError> {
        static LOADED: OnceLock<Result<Librados, String>> = OnceLock::new();
        const FILE: &str = "librados.so.2";
        let loaded = LOADED.get_or_init(|| {
            // SAFETY: the types are those of its header.
            unsafe { open(FILE, |library| Librados::found(library)) }
        });
        loaded.as_ref().map_err(|why| EngineError::Library {
            engine,
            library: FILE,
            debian: "librados2",
            rhel: "librados2",
            why: why.clone(),
        })
    }
}
