//! librbd, opened at run time. Its interface is described in rbd/librbd.h.

use crate::ceph::Callback;
use iolite_engine::EngineError;
use iolite_engine::library::{Handle, functions, open};
use libc::{c_char, c_int, c_void, size_t, ssize_t};
use std::sync::OnceLock;

functions! {
    /// The functions of librbd that this engine uses.
    Librbd {
        open = "rbd_open": fn(Handle, *const c_char, *mut Handle, *const c_char) -> c_int;
        open_read_only = "rbd_open_read_only": fn(Handle, *const c_char, *mut Handle, *const c_char) -> c_int;
        close = "rbd_close": fn(Handle) -> c_int;
        size = "rbd_get_size": fn(Handle, *mut u64) -> c_int;
        flush = "rbd_flush": fn(Handle) -> c_int;
        completion = "rbd_aio_create_completion": fn(Handle, Option<Callback>, *mut Handle) -> c_int;
        result = "rbd_aio_get_return_value": fn(Handle) -> ssize_t;
        release = "rbd_aio_release": fn(Handle);
        aio_read = "rbd_aio_read": fn(Handle, u64, size_t, *mut c_char, Handle) -> c_int;
        aio_write = "rbd_aio_write": fn(Handle, u64, size_t, *const c_char, Handle) -> c_int;
        aio_discard = "rbd_aio_discard": fn(Handle, u64, u64, Handle) -> c_int;
        aio_flush = "rbd_aio_flush": fn(Handle, Handle) -> c_int;
    }
}

functions! {
    /// Functions for encrypted images, since Ceph 16.
    Encryption {
        load = "rbd_encryption_load": fn(Handle, c_int, *mut c_void, size_t) -> c_int;
    }
}

/// `rbd_encryption_luks1_format_options_t`, and the same for LUKS 2.
#[repr(C)]
pub(super) struct LuksOptions {
    pub(super) algorithm: c_int,
    pub(super) passphrase: *const c_char,
    pub(super) length: size_t,
}

/// The file.
const FILE: &str = "librbd.so.1";

impl Librbd {
    /// The library. It is loaded once per process.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub(super) fn load() -> Result<&'static Librbd, EngineError> {
        static LOADED: OnceLock<Result<Librbd, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            // SAFETY: the types are those of its header.
            unsafe { open(FILE, |library| Librbd::found(library)) }
        });
        loaded.as_ref().map_err(|why| EngineError::Library {
            engine: super::NAME,
            library: FILE,
            debian: "librbd1",
            rhel: "librbd1",
            why: why.clone(),
        })
    }
}

impl Encryption {
    /// Finds the library's functions for encrypted images.
    ///
    /// # Errors
    /// The library does not have it.
    pub(super) fn load() -> Result<&'static Encryption, String> {
        static LOADED: OnceLock<Result<Encryption, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            // SAFETY: the types are those of its header.
            unsafe { open(FILE, |library| Encryption::found(library)) }
        });
        loaded
            .as_ref()
            .map_err(|why| format!("{FILE} knows no encryption, which needs Ceph 16 or newer ({why})"))
    }
}
