//! The structures of `include/iolite-engine.h`, which documents them.

use std::ffi::{c_char, c_int, c_void};

/// `IOLITE_ENGINE_VERSION`
pub(super) const VERSION: u32 = 1;

/// The size of `struct iolite_engine` when this version began. Later members follow it; engines built before do not
/// have them.
pub(super) const FIRST_SIZE: usize = std::mem::offset_of!(Engine, list) + size_of::<usize>();

/// The name of the variable that an engine consists of, with the zero at its end.
pub(super) const SYMBOL: &[u8] = b"iolite_engine\0";

/// `IOLITE_QUEUED`
pub(super) const QUEUED: i64 = i64::MIN;
/// `IOLITE_BUSY`
pub(super) const BUSY: i64 = i64::MIN + 1;

/// `enum iolite_capability`
pub(super) const CAN_SYNC: u64 = 1;
pub(super) const CAN_TRIM: u64 = 2;
pub(super) const CAN_EXTEND: u64 = 4;
pub(super) const CAN_WRITE_ATOMICALLY: u64 = 8;

/// `enum iolite_worker_flag`
pub(super) const DIRECT: u32 = 1;
pub(super) const ATOMIC: u32 = 2;

/// `enum iolite_file_flag`
pub(super) const READS: u32 = 1;
pub(super) const WRITES: u32 = 2;
pub(super) const CREATES: u32 = 4;
pub(super) const FILE_DIRECT: u32 = 8;
pub(super) const FILE_SYNC: u32 = 16;
pub(super) const FILE_DSYNC: u32 = 32;

/// `struct iolite_unit`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Unit {
    pub(super) buffer: *mut c_void,
    pub(super) length: u64,
    pub(super) offset: u64,
    pub(super) index: u32,
    pub(super) file: u32,
    pub(super) operation: u32,
    pub(super) priority: u32,
}

/// `struct iolite_completion`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Completion {
    pub(super) unit: u32,
    pub(super) reserved: u32,
    pub(super) result: i64,
}

/// `struct iolite_worker`
#[derive(Debug)]
#[repr(C)]
pub(super) struct Worker {
    pub(super) size: u32,
    pub(super) depth: u32,
    pub(super) files: u32,
    pub(super) flags: u32,
    pub(super) seed: u64,
    pub(super) arguments: *const c_char,
    pub(super) completer: *mut c_void,
    pub(super) complete: Option<unsafe extern "C" fn(*mut c_void, u32, i64) -> c_int>,
}

/// `struct iolite_file`
#[derive(Debug)]
#[repr(C)]
pub(super) struct File {
    pub(super) size: u32,
    pub(super) flags: u32,
    pub(super) name: *const c_char,
    pub(super) end: u64,
    pub(super) descriptor: c_int,
    pub(super) reserved: u32,
}

/// Called for each name of a list.
pub(super) type Each = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;

/// `struct iolite_engine`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Engine {
    pub(super) version: u32,
    pub(super) size: u32,
    pub(super) name: *const c_char,
    pub(super) data: u32,
    pub(super) completion: u32,
    pub(super) capabilities: u64,
    pub(super) create:
        Option<unsafe extern "C" fn(*const Worker, *mut *mut c_void, *mut c_char, usize) -> c_int>,
    pub(super) destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(super) open: Option<unsafe extern "C" fn(*mut c_void, u32, *const File) -> c_int>,
    pub(super) close: Option<unsafe extern "C" fn(*mut c_void, u32) -> c_int>,
    pub(super) queue: Option<unsafe extern "C" fn(*mut c_void, *const Unit) -> i64>,
    pub(super) commit: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub(super) reap: Option<unsafe extern "C" fn(*mut c_void, u32, u32, i64, *mut Completion) -> c_int>,
    pub(super) size_of: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *mut u64) -> c_int>,
    pub(super) extend: Option<unsafe extern "C" fn(*mut c_void, *const c_char, u64) -> c_int>,
    pub(super) write_at:
        Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_void, u64, u64) -> c_int>,
    pub(super) sync: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int>,
    pub(super) unlink: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int>,
    pub(super) list: Option<unsafe extern "C" fn(*mut c_void, *const c_char, Each, *mut c_void) -> c_int>,
}
