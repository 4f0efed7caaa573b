//! PMI-2, which Slurm offers (`srun --mpi=pmi2`): <https://wiki.mpich.org/mpich/index.php/PMI_v2_API>.

use super::Board;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int};

/// The library, and its package.
const LIBRARY: &str = "libpmi2.so.0";
/// The longest value (the interface has 1024 bytes, with a zero at the end).
const LONGEST: usize = 1000;
/// Room for a value or a name.
const ROOM: usize = 1024;
/// No hint as to which rank has written a value.
const NOBODY: c_int = -1;

type Init = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
type GetId = unsafe extern "C" fn(*mut c_char, c_int) -> c_int;
type Put = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
type Get = unsafe extern "C" fn(*const c_char, c_int, *const c_char, *mut c_char, c_int, *mut c_int) -> c_int;
type Plain = unsafe extern "C" fn() -> c_int;

/// See the module's documentation.
pub(super) struct Pmi2 {
    put: Put,
    get: Get,
    fence: Plain,
    finalize: Plain,
    job: CString,
    rank: u32,
    size: u32,
}

impl Pmi2 {
    pub fn join() -> Result<Pmi2, String> {
        let missing =
            |error: libloading::Error| format!("{LIBRARY} cannot be used: {error} (package libpmi2-0)");
        // SAFETY: the library is that of the launcher, and has these functions with these types. It stays loaded.
        unsafe {
            let library = Library::open(Some(LIBRARY), RTLD_NOW | RTLD_LOCAL).map_err(missing)?;
            let library = std::mem::ManuallyDrop::new(library);
            let init: Init = *library.get(b"PMI2_Init\0").map_err(missing)?;
            let get_id: GetId = *library.get(b"PMI2_Job_GetId\0").map_err(missing)?;
            let put: Put = *library.get(b"PMI2_KVS_Put\0").map_err(missing)?;
            let get: Get = *library.get(b"PMI2_KVS_Get\0").map_err(missing)?;
            let fence: Plain = *library.get(b"PMI2_KVS_Fence\0").map_err(missing)?;
            let finalize: Plain = *library.get(b"PMI2_Finalize\0").map_err(missing)?;
            let (mut spawned, mut size, mut rank, mut number) = (0, 0, 0, 0);
            check("PMI2_Init", init(&raw mut spawned, &raw mut size, &raw mut rank, &raw mut number))?;
            let mut name = [0; ROOM];
            check("PMI2_Job_GetId", get_id(name.as_mut_ptr(), ROOM as c_int))?;
            name[ROOM - 1] = 0;
            let job = CStr::from_ptr(name.as_ptr()).to_owned();
            let number = |value: c_int| u32::try_from(value).map_err(|_| format!("PMI2_Init: {value} ranks"));
            Ok(Pmi2 { put, get, fence, finalize, job, rank: number(rank)?, size: number(size)? })
        }
    }

    fn key(rank: u32, key: &str, part: usize) -> Result<CString, String> {
        CString::new(format!("iolite-{rank}-{key}-{part}")).map_err(|error| error.to_string())
    }
}

/// Decodes a text from these digits.
fn decoded(digits: &str) -> Option<String> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

fn check(what: &str, result: c_int) -> Result<(), String> {
    if result == 0 { Ok(()) } else { Err(format!("{what} has failed with {result}")) }
}

impl Board for Pmi2 {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    /// Splits the value into parts, because the size is limited; the number of parts comes first. In hexadecimal,
    /// because some characters are separators.
    fn put(&mut self, key: &str, words: &str) -> Result<(), String> {
        let digits: String = words.bytes().map(|byte| format!("{byte:02x}")).collect();
        let parts: Vec<&[u8]> = digits.as_bytes().chunks(LONGEST).collect();
        let count = parts.len().to_string();
        let all = std::iter::once(count.as_bytes()).chain(parts.iter().copied());
        for (number, part) in all.enumerate() {
            let (key, value) =
                (Pmi2::key(self.rank, key, number)?, CString::new(part).map_err(|error| error.to_string())?);
            // SAFETY: both are strings of C, and live during the call.
            check("PMI2_KVS_Put", unsafe { (self.put)(key.as_ptr(), value.as_ptr()) })?;
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<(), String> {
        // SAFETY: it takes nothing.
        check("PMI2_KVS_Fence", unsafe { (self.fence)() })
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, String> {
        let mut part = |number: usize| {
            let key = Pmi2::key(rank, key, number)?;
            let (mut value, mut length) = ([0; ROOM], 0);
            // SAFETY: the strings end, the value has as much room as it says, and all live during the call.
            let result = unsafe {
                (self.get)(
                    self.job.as_ptr(),
                    NOBODY,
                    key.as_ptr(),
                    value.as_mut_ptr(),
                    ROOM as c_int,
                    &raw mut length,
                )
            };
            check("PMI2_KVS_Get", result)?;
            value[ROOM - 1] = 0;
            // SAFETY: it ends with the zero above, if not before.
            let text = unsafe { CStr::from_ptr(value.as_ptr()) };
            Ok::<_, String>(text.to_string_lossy().into_owned())
        };
        let count: usize = part(0)?.parse().map_err(|_| format!("rank {rank} has said nothing"))?;
        let digits: String = (1..=count).map(&mut part).collect::<Result<_, _>>()?;
        decoded(&digits).ok_or_else(|| format!("rank {rank} has said something else"))
    }
}

impl Drop for Pmi2 {
    fn drop(&mut self) {
        // SAFETY: it takes nothing, and nothing is called after it.
        unsafe { (self.finalize)() };
    }
}
