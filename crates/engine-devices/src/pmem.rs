//! `libpmem` and `dev-dax`: persistent memory is mapped, and libpmem copies to it, because it knows how this CPU makes
//! stores persistent. `libpmem` works on files of a file system with DAX, `dev-dax` on a device without a file system.
//!
//! When the library returns, a copy may still be under way; it is persistent after a drain. `libpmem` drains for a
//! sync, or for each write of a job with `sync`; `dev-dax` drains for each write.

mod library;

use self::library::{Library, NODRAIN, NONTEMPORAL, TEMPORAL};
use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files};
use iolite_engine::{EngineConfig, EngineError, Errno, FileKind, FileSpec, OpenMode, Outcome, Unit};
use iolite_engine_local::mmap::mappable_end;
use iolite_os::{explained, faults};
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;

/// Copies to and from persistent memory by libpmem.
pub type LibpmemEngine = PmemEngine<false>;

/// Copies to and from a memory device by libpmem.
pub type DevDaxEngine = PmemEngine<true>;

/// A file that is mapped.
#[derive(Debug)]
struct Mapped {
    address: *mut u8,
    length: usize,
    /// The end of the range that a job may touch.
    end: u64,
    /// The flags of copies to it.
    flags: libc::c_uint,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us, and no pointer into it outlives a call of this engine.
        unsafe { libc::munmap(self.address.cast(), self.length) };
    }
}

/// Copies to and from mapped files.
pub struct PmemEngine<const DEVICE: bool> {
    files: Files,
    mapped: Vec<Option<Mapped>>,
    library: Library,
    direct: bool,
}

// SAFETY: the mappings belong to the engine alone.
unsafe impl<const DEVICE: bool> Send for PmemEngine<DEVICE> {}

impl<const DEVICE: bool> PmemEngine<DEVICE> {
    /// An engine with its library, and no file open.
    ///
    /// # Errors
    /// `Library` if libpmem is not installed, or too old.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        let library = Library::load(if DEVICE { "dev-dax" } else { "libpmem" })?;
        Ok(PmemEngine { files: Files::new(config), mapped: Vec::new(), library, direct: config.direct })
    }

    /// How writes to a file are copied.
    fn flags(&self, mode: OpenMode) -> libc::c_uint {
        let way = if self.direct { NONTEMPORAL } else { TEMPORAL };
        let drains = DEVICE || mode.sync || mode.dsync;
        if drains { way } else { way | NODRAIN }
    }

    fn map(&self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<Mapped> {
        let descriptor = self.files.raw(index);
        let end = mappable_end(descriptor, spec, mode)?;
        // A device is mapped completely, because parts must be multiples of its pages, which may be large.
        let length = if DEVICE { end.max(device_size(descriptor)?) } else { end };
        let length = usize::try_from(length).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        let protection = if mode.write { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let map = |flags| {
            // SAFETY: a new mapping at a place the kernel chooses replaces no other memory.
            let address =
                unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, descriptor, 0) };
            if address == libc::MAP_FAILED {
                Err(io::Error::last_os_error())
            } else {
                Ok(address.cast::<u8>())
            }
        };
        // The kernel accepts this only if stores go to the medium itself.
        match map(libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC) {
            Ok(address) => Ok(Mapped { address, length, end, flags: self.flags(mode) }),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                let mapped = Mapped { address: map(libc::MAP_SHARED)?, length, end, flags: self.flags(mode) };
                match self.library.is_persistent(mapped.address, length) {
                    true => Ok(mapped),
                    false => Err(explained(&error, NOT_PERSISTENT.to_owned())),
                }
            }
            Err(error) => Err(error),
        }
    }
}

const NOT_PERSISTENT: &str = "it is not on persistent memory: use a file system with DAX (mount -o dax), or set \
                              PMEM_IS_PMEM_FORCE=1 to take any memory for persistent";

impl<const DEVICE: bool> Transfer for PmemEngine<DEVICE> {
    has_files!();

    /// `direct` selects the way of copying, and does not affect the opening of the file.
    fn mode(mode: OpenMode) -> OpenMode {
        OpenMode { direct: false, ..mode }
    }

    fn opened(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let expected = if DEVICE { FileKind::Char } else { FileKind::Regular };
        if spec.kind != expected {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        faults::catch()?;
        let mapped = self.map(index, spec, mode)?;
        let index = index as usize;
        if index >= self.mapped.len() {
            self.mapped.resize_with(index + 1, || None);
        }
        self.mapped[index] = Some(mapped);
        Ok(())
    }

    fn closing(&mut self, index: u32) {
        self.library.drain();
        if let Some(mapped) = self.mapped.get_mut(index as usize) {
            *mapped = None;
        }
    }

    fn control(&mut self, unit: &Unit) -> Outcome {
        match unit.operation {
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange => {
                self.library.drain();
                Ok(0)
            }
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    fn synced(&mut self) -> bool {
        self.library.drain();
        true
    }

    #[inline(always)]
    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        let Some(Some(mapped)) = self.mapped.get(unit.file as usize) else { return Err(Errno(libc::EBADF)) };
        let length = unit.length.min(mapped.end.saturating_sub(unit.offset)) as usize;
        if length == 0 {
            // A write without any room would be retried for ever if it counted as short.
            return if write && unit.length > 0 { Err(Errno(libc::ENOSPC)) } else { Ok(0) };
        }
        let place = mapped.address.wrapping_add(unit.offset as usize);
        let is_complete = faults::guarded(place, length, || {
            // SAFETY: the caller promises the buffer for at least this length, and the range is within the mapping, as
            // was just seen. They are different memory, the mapping being ours alone.
            unsafe {
                match write {
                    true => self.library.copy(place, unit.buffer, length, mapped.flags),
                    false => std::ptr::copy_nonoverlapping(place, unit.buffer, length),
                }
            }
        });
        // The medium is damaged there, or the file system is full.
        if is_complete { Ok(length as u64) } else { Err(Errno(libc::EIO)) }
    }
}

/// The size of a memory device in bytes.
fn device_size(descriptor: RawFd) -> io::Result<u64> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills the struct it is given.
    if unsafe { libc::fstat(descriptor, status.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fstat succeeded.
    let number = unsafe { status.assume_init() }.st_rdev;
    let path = format!("/sys/dev/char/{}:{}/size", libc::major(number), libc::minor(number));
    let text = std::fs::read_to_string(path)?;
    text.trim().parse().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
