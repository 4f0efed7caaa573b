//! The shared object of an external engine: finds it, inspects it, loads it, and checks its declaration.
//!
//! A file is inspected before it is loaded, because loading runs its code: a file that does not even mention our symbol
//! is not loaded. Engines made for fio are recognised by fio's symbol.

use super::abi;
use iolite_engine::EngineError;
use iolite_options::engines::{Capabilities, Capability, Completion, Data, Facets, Target, UnitKind};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The symbol of engines made for fio.
const SYMBOL_OF_FIO: &[u8] = b"ioengine\0";

/// An engine that is loaded, and stays loaded: threads that it has started may still run in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub(super) engine: abi::Engine,
    pub(super) facets: Facets,
}

impl Loaded {
    /// Loads the engine in this file.
    ///
    /// # Errors
    /// The engine cannot be used; the error says why.
    pub(super) fn open(library: &Path) -> Result<Loaded, EngineError> {
        load(library).map_err(|why| EngineError::External { library: library.display().to_string(), why })
    }
}

fn load(library: &Path) -> Result<Loaded, String> {
    // With a slash in its name, a file is not searched in library directories.
    let path: PathBuf = std::path::absolute(library).map_err(|error| error.to_string())?;
    let [ours, of_fio] = mentions(&path, [abi::SYMBOL, SYMBOL_OF_FIO])?;
    if !ours && of_fio {
        return Err("it was made for fio, and such engines are part of fio itself; build it against \
                    include/iolite-engine.h (docs/engines-external.md says how)"
            .to_owned());
    }
    if !ours {
        return Err(missing_symbol());
    }
    // SAFETY: the user has named this file as code to be run. Its initialisers may do anything.
    let loaded = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let loaded = loaded.map_err(|error| format!("it cannot be loaded: {}", words(&error)))?;
    // SAFETY: every version of the interface has version and size at these places, and no more than the engine's size is
    // read. The library is never unloaded.
    let engine = unsafe {
        let declared =
            loaded.get::<*const abi::Engine>(abi::SYMBOL).map_err(|_| missing_symbol())?.into_raw();
        let declared = declared.cast::<abi::Engine>().cast_const();
        let (version, size) = ((&raw const (*declared).version).read(), (&raw const (*declared).size).read());
        check_version(version, size)?;
        copied(declared, size)
    };
    std::mem::forget(loaded);
    Ok(Loaded { facets: facets(&engine)?, engine })
}

/// The declaration, up to its size: engines built with an older edition of the header lack later members.
///
/// # Safety
/// `size` bytes can be read there.
unsafe fn copied(declared: *const abi::Engine, size: u32) -> abi::Engine {
    let length = (size as usize).min(size_of::<abi::Engine>());
    // SAFETY: all members are numbers, pointers, or functions that may be missing: zeros are valid. The caller promises the
    // bytes.
    unsafe {
        let mut engine: abi::Engine = std::mem::zeroed();
        std::ptr::copy_nonoverlapping(declared.cast::<u8>(), (&raw mut engine).cast::<u8>(), length);
        engine
    }
}

fn missing_symbol() -> String {
    "it has no symbol iolite_engine, which every engine has; see docs/engines-external.md".to_owned()
}

fn words(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Reports which of these byte strings a file contains.
fn mentions(path: &Path, wanted: [&[u8]; 2]) -> Result<[bool; 2], String> {
    /// Bytes to read at once.
    const PIECE: usize = 1 << 16;
    let refused = |error: std::io::Error| iolite_types::describe_error(&error);
    let mut file = File::open(path).map_err(refused)?;
    let overlap = wanted.iter().map(|one| one.len() - 1).max().unwrap_or(0);
    let mut buffer = vec![0; overlap + PIECE];
    let mut found = [false; 2];
    let mut kept = 0;
    loop {
        let count = file.read(&mut buffer[kept..]).map_err(refused)?;
        if count == 0 {
            return Ok(found);
        }
        let held = &buffer[..kept + count];
        for (found, one) in found.iter_mut().zip(wanted) {
            *found = *found || held.windows(one.len()).any(|window| window == one);
        }
        // A match may begin in this piece and end in the next.
        let keep = held.len().min(overlap);
        let from = held.len() - keep;
        buffer.copy_within(from..from + keep, 0);
        kept = keep;
    }
}

fn check_version(version: u32, size: u32) -> Result<(), String> {
    if version != abi::VERSION {
        return Err(format!(
            "it speaks version {version} of the interface, and this program version {}; build it against the \
             include/iolite-engine.h of this program",
            abi::VERSION
        ));
    }
    if (size as usize) < abi::FIRST_SIZE {
        return Err(format!(
            "its declaration has {size} bytes, and one of version {version} has at least {}; begin it with \
             IOLITE_ENGINE_HEAD",
            abi::FIRST_SIZE
        ));
    }
    Ok(())
}

/// The facets that the engine declares, if it has the functions that they require.
fn facets(engine: &abi::Engine) -> Result<Facets, String> {
    let data = match engine.data {
        0 => Data::LocalFiles,
        1 => Data::OwnStorage,
        2 => Data::Nowhere,
        other => return Err(format!("data={other} is none of enum iolite_data")),
    };
    let completion = match engine.completion {
        0 => Completion::Call,
        1 => Completion::Engine,
        2 => Completion::LibraryThreads,
        other => return Err(format!("completion={other} is none of enum iolite_completion_by")),
    };
    let own = data == Data::OwnStorage;
    let demanded = [
        ("name", !engine.name.is_null()),
        ("create", engine.create.is_some()),
        ("queue", engine.queue.is_some()),
        ("reap", engine.reap.is_some() || completion != Completion::Engine),
        // An engine that completes units later must be stopped before their buffers are freed.
        ("destroy", engine.destroy.is_some() || completion == Completion::Call),
        ("size_of", engine.size_of.is_some() || !own),
        ("extend", engine.extend.is_some() || !own),
        ("write_at", engine.write_at.is_some() || !own),
        ("sync", engine.sync.is_some() || !own),
        ("unlink", engine.unlink.is_some() || !own),
        ("list", engine.list.is_some() || !own),
    ];
    if let Some((name, _)) = demanded.iter().find(|(_, is_there)| !is_there) {
        return Err(format!("its declaration has no {name}, which it needs"));
    }
    if engine.size_of.is_some() && !own {
        return Err("its declaration has size_of, but data is not IOLITE_OWN_STORAGE; set data, or remove the storage \
                    functions"
            .to_owned());
    }
    let known = [
        (abi::CAN_SYNC, Capability::Sync),
        (abi::CAN_TRIM, Capability::Trim),
        (abi::CAN_EXTEND, Capability::Extend),
        (abi::CAN_WRITE_ATOMICALLY, Capability::AtomicWrites),
    ];
    let unknown = known.iter().fold(engine.capabilities, |left, (bit, _)| left & !bit);
    if unknown != 0 {
        return Err(format!("capabilities={unknown:#x} are none of enum iolite_capability"));
    }
    let can: Vec<Capability> =
        known.iter().filter(|(bit, _)| engine.capabilities & bit != 0).map(|&(_, can)| can).collect();
    Ok(Facets {
        data,
        target: Target::Any,
        unit: UnitKind::Transfers,
        completion,
        capabilities: Capabilities::of(&can),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn declared() -> abi::Engine {
        // SAFETY: all members are numbers, pointers, or functions that may be missing: zeros are valid.
        let mut engine: abi::Engine = unsafe { std::mem::zeroed() };
        unsafe extern "C" fn create(
            _: *const abi::Worker,
            _: *mut *mut std::ffi::c_void,
            _: *mut std::ffi::c_char,
            _: usize,
        ) -> std::ffi::c_int {
            0
        }
        unsafe extern "C" fn queue(_: *mut std::ffi::c_void, _: *const abi::Unit) -> i64 {
            0
        }
        engine.name = c"x".as_ptr();
        engine.create = Some(create);
        engine.queue = Some(queue);
        engine
    }

    #[test]
    fn a_declaration_must_have_the_functions_its_facets_need() {
        let engine = declared();
        let found = facets(&engine).unwrap();
        assert_eq!((found.data, found.completion), (Data::LocalFiles, Completion::Call));
        let needs = |change: fn(&mut abi::Engine)| {
            let mut engine = declared();
            change(&mut engine);
            facets(&engine).unwrap_err()
        };
        assert!(needs(|engine| engine.create = None).contains("no create"));
        assert!(needs(|engine| engine.completion = 1).contains("no reap"));
        assert!(needs(|engine| engine.data = 1).contains("no size_of"));
        unsafe extern "C" fn size_of(
            _: *mut std::ffi::c_void,
            _: *const std::ffi::c_char,
            _: *mut u64,
        ) -> std::ffi::c_int {
            0
        }
        assert!(needs(|engine| engine.size_of = Some(size_of)).contains("data is not IOLITE_OWN_STORAGE"));
        assert!(needs(|engine| engine.data = 3).contains("data=3"));
        assert!(needs(|engine| engine.completion = 3).contains("completion=3"));
        assert!(needs(|engine| engine.capabilities = 1 << 40).contains("0x10000000000"));
        let can = Capabilities::of(&[Capability::Sync, Capability::Trim]);
        assert_eq!(facets(&abi::Engine { capabilities: 3, ..engine }).unwrap().capabilities, can);
    }

    #[test]
    fn engines_with_fewer_and_with_more_members_are_loaded() {
        let first = abi::FIRST_SIZE as u32;
        assert_eq!(check_version(1, first), Ok(()));
        assert_eq!(
            check_version(1, first + 64),
            Ok(()),
            "members at the end that this program does not know"
        );
        let whole = declared();
        let until_queue = std::mem::offset_of!(abi::Engine, queue) as u32;
        // SAFETY: the declaration is longer than the one and as long as the other.
        let (shorter, same) =
            unsafe { (copied(&raw const whole, until_queue), copied(&raw const whole, u32::MAX)) };
        assert_eq!((shorter.create.is_some(), shorter.queue.is_some()), (true, false));
        assert_eq!((same.create.is_some(), same.queue.is_some()), (true, true));
        assert!(check_version(2, 1000).unwrap_err().contains("version 2 of the interface"));
        assert!(check_version(1, 8).unwrap_err().contains("8 bytes"));
    }

    #[test]
    fn words_are_found_wherever_they_lie() {
        for before in [0, 1, 65_530, 65_536, 65_548, 65_549, 200_000] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&vec![7; before]).unwrap();
            file.write_all(b"get_ioengine\0").unwrap();
            assert_eq!(mentions(file.path(), [abi::SYMBOL, SYMBOL_OF_FIO]), Ok([false, true]), "{before}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(mentions(file.path(), [abi::SYMBOL, SYMBOL_OF_FIO]), Ok([false, false]));
        assert!(mentions(Path::new("/proc/no/such"), [abi::SYMBOL, SYMBOL_OF_FIO]).is_err());
    }
}
