//! libpmem, opened at run time, so that only its users need it. Its interface is described in libpmem(7).

use iolite_engine::EngineError;
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

/// Do not wait until the copy is persistent.
pub(super) const NODRAIN: libc::c_uint = 1;
/// Bypass the CPU's caches.
pub(super) const NONTEMPORAL: libc::c_uint = 2;
/// Through the CPU's caches, which are flushed afterwards.
pub(super) const TEMPORAL: libc::c_uint = 4;

const FILE: &str = "libpmem.so.1";

type Copy = unsafe extern "C" fn(
    *mut libc::c_void,
    *const libc::c_void,
    libc::size_t,
    libc::c_uint,
) -> *mut libc::c_void;
type Drain = unsafe extern "C" fn();
type IsPersistent = unsafe extern "C" fn(*const libc::c_void, libc::size_t) -> libc::c_int;

/// The functions of the library that this engine uses. The library stays loaded as long as this exists.
pub(super) struct Library {
    copy: Copy,
    drain: Drain,
    is_persistent: IsPersistent,
    _loaded: Loaded,
}

impl Library {
    /// Loads it for an engine.
    pub(super) fn load(engine: &'static str) -> Result<Library, EngineError> {
        let missing = |error: libloading::Error| EngineError::Library {
            engine,
            library: FILE,
            debian: "libpmem1",
            rhel: "libpmem",
            why: error.to_string(),
        };
        // SAFETY: libpmem only looks at the CPU and at its environment when it is loaded. The types are those of its
        // manual page, and the functions are not used after the library.
        unsafe {
            let loaded = Loaded::open(Some(FILE), RTLD_NOW | RTLD_LOCAL).map_err(missing)?;
            Ok(Library {
                copy: *loaded.get::<Copy>(b"pmem_memcpy\0").map_err(missing)?,
                drain: *loaded.get::<Drain>(b"pmem_drain\0").map_err(missing)?,
                is_persistent: *loaded.get::<IsPersistent>(b"pmem_is_pmem\0").map_err(missing)?,
                _loaded: loaded,
            })
        }
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
