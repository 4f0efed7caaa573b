//! PMIx, which `mpirun` of Open MPI and `srun --mpi=pmix` offer: the PMIx Standard 4.1, <https://pmix.org>.

use super::Board;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

/// The library's names.
const LIBRARIES: [&str; 2] = ["libpmix.so.2", "libpmix.so"];
/// `PMIX_MAX_NSLEN`, with the zero.
const NAME: usize = 256;
/// `PMIX_MAX_KEYLEN`, with the zero.
const KEY: usize = 512;
/// `PMIX_RANK_WILDCARD`: values for the whole job.
const ALL: u32 = u32::MAX - 1;
/// `PMIX_STRING`
const STRING: u16 = 3;
/// `PMIX_UINT32`
const UINT32: u16 = 14;
/// `PMIX_GLOBAL`: for all ranks, on all machines.
const GLOBAL: u8 = 3;
/// `PMIX_JOB_SIZE`
const JOB_SIZE: &str = "pmix.job.size";

/// `pmix_proc_t`
#[repr(C)]
#[derive(Clone)]
struct Process {
    name: [c_char; NAME],
    rank: u32,
}

/// `pmix_value_t`: a kind and a union. Of its members, the largest has three words.
#[repr(C)]
struct Value {
    kind: u16,
    content: [u64; 3],
}

type Init = unsafe extern "C" fn(*mut Process, *const c_void, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const c_void, usize) -> c_int;
type Get =
    unsafe extern "C" fn(*const Process, *const c_char, *const c_void, usize, *mut *mut Value) -> c_int;

/// See the module's documentation.
pub(super) struct Pmix {
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    finalize: Finalize,
    own: Process,
    size: u32,
}

impl Pmix {
    pub fn join() -> Result<Pmix, String> {
        let missing =
            |error: libloading::Error| format!("libpmix cannot be used: {error} (package libpmix2)");
        // SAFETY: the library is that of the launcher, and has these functions with these types. It stays loaded. Its own
        // modules find its symbols, so they are for all.
        unsafe {
            let opened = LIBRARIES.iter().map(|name| Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL));
            let library = opened.reduce(Result::or).expect("there are names").map_err(missing)?;
            let library = std::mem::ManuallyDrop::new(library);
            let init: Init = *library.get(b"PMIx_Init\0").map_err(missing)?;
            let mut joined = Pmix {
                put: *library.get(b"PMIx_Put\0").map_err(missing)?,
                commit: *library.get(b"PMIx_Commit\0").map_err(missing)?,
                fence: *library.get(b"PMIx_Fence\0").map_err(missing)?,
                get: *library.get(b"PMIx_Get\0").map_err(missing)?,
                finalize: *library.get(b"PMIx_Finalize\0").map_err(missing)?,
                own: Process { name: [0; NAME], rank: 0 },
                size: 0,
            };
            let result = init(&raw mut joined.own, ptr::null(), 0);
            if result != 0 {
                // The library is not initialised, so it must not be finalised.
                let _ = std::mem::ManuallyDrop::new(joined);
                return Err(format!("PMIx_Init has failed with {result}"));
            }
            joined.size = match joined.value(ALL, JOB_SIZE)? {
                Value { kind: UINT32, content } => content[0] as u32,
                other => return Err(format!("PMIx_Get: the number of ranks has the type {}", other.kind)),
            };
            Ok(joined)
        }
    }

    fn value(&self, rank: u32, key: &str) -> Result<Value, String> {
        let process = Process { rank, ..self.own.clone() };
        let key = fixed(key)?;
        let mut found: *mut Value = ptr::null_mut();
        // SAFETY: all arguments live during the call, and the key has the size that the interface requires.
        let result = unsafe { (self.get)(&raw const process, key.as_ptr(), ptr::null(), 0, &raw mut found) };
        if result != 0 || found.is_null() {
            return Err(format!("rank {rank} has said nothing: PMIx_Get has failed with {result}"));
        }
        // SAFETY: the library has allocated the value for the caller. It is never freed, because there are only a few
        // small values.
        Ok(unsafe { ptr::read(found) })
    }
}

fn fixed(key: &str) -> Result<[c_char; KEY], String> {
    let mut fixed = [0; KEY];
    if key.len() >= KEY {
        return Err("a key that is too long".to_owned());
    }
    fixed.iter_mut().zip(key.bytes()).for_each(|(place, byte)| *place = byte as c_char);
    Ok(fixed)
}

fn check(what: &str, result: c_int) -> Result<(), String> {
    if result == 0 { Ok(()) } else { Err(format!("{what} has failed with {result}")) }
}

impl Board for Pmix {
    fn rank(&self) -> u32 {
        self.own.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn put(&mut self, key: &str, words: &str) -> Result<(), String> {
        let key = fixed(&format!("iolite.{key}"))?;
        let words = CString::new(words).map_err(|error| error.to_string())?;
        let mut value = Value { kind: STRING, content: [0; 3] };
        value.content[0] = words.as_ptr() as u64;
        // SAFETY: all arguments live during the call, which copies them.
        check("PMIx_Put", unsafe { (self.put)(GLOBAL, key.as_ptr(), &raw mut value) })
    }

    fn fence(&mut self) -> Result<(), String> {
        // SAFETY: it takes nothing.
        check("PMIx_Commit", unsafe { (self.commit)() })?;
        // SAFETY: without processes, all of this job are meant.
        check("PMIx_Fence", unsafe { (self.fence)(ptr::null(), 0, ptr::null(), 0) })
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, String> {
        match self.value(rank, &format!("iolite.{key}"))? {
            Value { kind: STRING, content } if content[0] != 0 => {
                // SAFETY: a value of this kind has a string of C.
                Ok(unsafe { CStr::from_ptr(content[0] as *const c_char) }.to_string_lossy().into_owned())
            }
            other => Err(format!("rank {rank} has said something of the type {}", other.kind)),
        }
    }
}

impl Drop for Pmix {
    fn drop(&mut self) {
        // SAFETY: nothing is called after it.
        unsafe { (self.finalize)(ptr::null(), 0) };
    }
}
