//! libpmem, opened at run time, so that only its users need it. Its interface is described in libpmem(7).

use iolite_engine::EngineError;
use iolite_engine::library::{functions, open};
use libc::{c_int, c_uint, c_void, size_t};

/// Do not wait until the copy is persistent.
pub(super) const NODRAIN: libc::c_uint = 1;
/// Bypass the CPU's caches.
pub(super) const NONTEMPORAL: libc::c_uint = 2;
/// Through the CPU's caches, which are flushed afterwards.
pub(super) const TEMPORAL: libc::c_uint = 4;

const FILE: &str = "libpmem.so.1";

functions! {
    /// The functions of the library that this engine uses.
    Library {
        copy = "pmem_memcpy": fn(*mut c_void, *const c_void, size_t, c_uint) -> *mut c_void;
        drain = "pmem_drain": fn();
        is_persistent = "pmem_is_pmem": fn(*const c_void, size_t) -> c_int;
    }
}

impl Library {
    /// Loads it for an engine.
    pub(super) fn load(engine: &'static str) -> Result<Library, EngineError> {
        // SAFETY: libpmem only looks at the CPU and at its environment when it is loaded. The types are those of its
        // manual page.
        unsafe { open(FILE, |library| Library::found(library)) }.map_err(|why| EngineError::Library {
            engine,
            library: FILE,
            debian: "libpmem1",
            rhel: "libpmem",
            why,
        })
    }

    /// Copies to persistent memory.
    ///
    /// # Safety
    /// Both places are valid for the length, and apart from each other.
    #[inline(always)]
    pub(super) unsafe fn copy(&self, to: *mut u8, from: *const u8, length: usize, flags: libc::c_uint) {
        // SAFETY: the caller upholds the function's contract.
        unsafe { (self.copy)(to.cast(), from.cast(), length, flags) };
    }

    /// Waits until all copies of this thread are persistent.
    pub(super) fn drain(&self) {
        // SAFETY: takes nothing.
        unsafe { (self.drain)() };
    }

    /// Whether the library considers this mapping persistent memory.
    pub(super) fn is_persistent(&self, address: *const u8, length: usize) -> bool {
        // SAFETY: the function compares numbers.
        unsafe { (self.is_persistent)(address.cast(), length) == 1 }
    }
}
