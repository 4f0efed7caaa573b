//! libgfapi, opened at run time. glusterfs/api/glfs.h describes its interface.

use iolite_engine::EngineError;
use iolite_engine::library::{Handle, functions, open};
use libc::{c_char, c_int, c_void, dirent64, mode_t, off64_t, size_t, ssize_t, stat64, statvfs64};
use std::sync::OnceLock;

/// A thread of the library calls this when an I/O is done, with the file, the number of bytes (or -1 with an error
/// number in errno), the file's attributes before and after, and the caller's data.
pub(super) type Callback = unsafe extern "C" fn(Handle, ssize_t, Handle, Handle, *mut c_void);

functions! {
    /// The functions of the library that this engine uses.
    Gfapi {
        // Never called: its presence shows that this is version 6 or later, which changed the types of other functions
        // but not their names.
        _since_six = "glfs_copy_file_range": fn();
        create = "glfs_new": fn(*const c_char) -> Handle;
        set_server = "glfs_set_volfile_server": fn(Handle, *const c_char, *const c_char, c_int) -> c_int;
        set_logging = "glfs_set_logging": fn(Handle, *const c_char, c_int) -> c_int;
        set_option = "glfs_set_xlator_option": fn(Handle, *const c_char, *const c_char, *const c_char) -> c_int;
        init = "glfs_init": fn(Handle) -> c_int;
        open = "glfs_open": fn(Handle, *const c_char, c_int) -> Handle;
        make = "glfs_creat": fn(Handle, *const c_char, c_int, mode_t) -> Handle;
        close = "glfs_close": fn(Handle) -> c_int;
        mkdir = "glfs_mkdir": fn(Handle, *const c_char, mode_t) -> c_int;
        unlink = "glfs_unlink": fn(Handle, *const c_char) -> c_int;
        stat = "glfs_stat": fn(Handle, *const c_char, *mut stat64) -> c_int;
        fstat = "glfs_fstat": fn(Handle, *mut stat64) -> c_int;
        statvfs = "glfs_statvfs": fn(Handle, *const c_char, *mut statvfs64) -> c_int;
        open_directory = "glfs_opendir": fn(Handle, *const c_char) -> Handle;
        read_directory = "glfs_readdirplus_r": fn(Handle, *mut stat64, *mut dirent64, *mut *mut dirent64) -> c_int;
        close_directory = "glfs_closedir": fn(Handle) -> c_int;
        truncate = "glfs_ftruncate": fn(Handle, off64_t, Handle, Handle) -> c_int;
        allocate = "glfs_fallocate": fn(Handle, c_int, off64_t, size_t) -> c_int;
        read = "glfs_pread": fn(Handle, *mut c_void, size_t, off64_t, c_int, Handle) -> ssize_t;
        write = "glfs_pwrite": fn(Handle, *const c_void, size_t, off64_t, c_int, Handle, Handle) -> ssize_t;
        discard = "glfs_discard": fn(Handle, off64_t, size_t) -> c_int;
        sync = "glfs_fsync": fn(Handle, Handle, Handle) -> c_int;
        data_sync = "glfs_fdatasync": fn(Handle, Handle, Handle) -> c_int;
        read_async = "glfs_pread_async": fn(Handle, *mut c_void, size_t, off64_t, c_int, Callback, *mut c_void) -> c_int;
        write_async = "glfs_pwrite_async": fn(Handle, *const c_void, size_t, off64_t, c_int, Callback, *mut c_void) -> c_int;
        discard_async = "glfs_discard_async": fn(Handle, off64_t, size_t, Callback, *mut c_void) -> c_int;
        sync_async = "glfs_fsync_async": fn(Handle, Callback, *mut c_void) -> c_int;
        data_sync_async = "glfs_fdatasync_async": fn(Handle, Callback, *mut c_void) -> c_int;
    }
}

/// The file name of the library.
const FILE: &str = "libgfapi.so.0";

impl Gfapi {
    /// Loads the library, once per process.
    ///
    /// # Errors
    /// The library is not installed, or is too old.
    pub(super) fn load(engine: &'static str) -> Result<&'static Gfapi, EngineError> {
        static LOADED: OnceLock<Result<Gfapi, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            // SAFETY: the types are those of its header. The one function with another type is never called.
            unsafe { open(FILE, |library| Gfapi::found(library)) }
        });
        loaded.as_ref().map_err(|why| EngineError::Library {
            engine,
            library: FILE,
            debian: "libgfapi0",
            rhel: "glusterfs-api",
            why: why.clone(),
        })
    }
}
