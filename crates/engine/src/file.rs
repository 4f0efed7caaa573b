//! Local files: their kinds, how they are opened, and the operations that are the same for every engine.

use crate::{EngineConfig, Errno, FileKind, FileSpec, OpenMode, Outcome, Unit};
use iolite_types::Operation;
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A new file's permission bits, before the umask: those of files that are laid out before a job runs.
const CREATE_MODE: libc::c_uint = 0o644;

/// ioctl numbers of <linux/fs.h>.
const BLKDISCARD: libc::c_ulong = 0x1277;
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;

/// The size in bytes of the block device behind an open descriptor.
///
/// # Errors
/// It is no block device.
pub fn device_size(descriptor: RawFd) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: BLKGETSIZE64 writes one u64.
    match unsafe { libc::ioctl(descriptor, BLKGETSIZE64 as _, &mut bytes) } {
        0 => Ok(bytes),
        _ => Err(io::Error::last_os_error()),
    }
}

/// One entry of the worker's list of files.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// -1 = closed: the kernel then answers EBADF.
    descriptor: RawFd,
    kind: FileKind,
    /// A trim resets a zone.
    trims_reset_zones: bool,
}

const CLOSED: Slot = Slot { descriptor: -1, kind: FileKind::Regular, trims_reset_zones: false };

/// The open files of a worker, by their index in its list.
#[derive(Debug)]
pub struct Files {
    slots: Vec<Slot>,
    sync_file_range_flags: u32,
}

impl Files {
    /// The files of an engine, none of them open.
    pub fn new(config: &EngineConfig) -> Self {
        let EngineConfig { files, sync_file_range_flags, .. } = *config;
        Files { slots: vec![CLOSED; files], sync_file_range_flags }
    }

    /// Opens the file at `index` of the worker's list. Returns its descriptor.
    ///
    /// # Errors
    /// It is open already, or the system refuses.
    pub fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<RawFd> {
        let index = index as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, CLOSED);
        }
        if self.slots[index].descriptor >= 0 {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        let descriptor = open_descriptor(spec, mode)?;
        self.slots[index] = Slot { descriptor, kind: spec.kind, trims_reset_zones: mode.trims_reset_zones };
        Ok(descriptor)
    }

    /// Closes the file at `index`.
    ///
    /// # Errors
    /// It is not open, or written data may be lost. It is closed even so.
    pub fn close(&mut self, index: u32) -> io::Result<()> {
        let slot = self.slots.get_mut(index as usize).ok_or(io::Error::from_raw_os_error(libc::EBADF))?;
        close_slot(slot)
    }

    /// Leaves all files open until the process ends, because something may still use them.
    pub fn leave(&mut self) {
        self.slots.clear();
    }

    /// The descriptor of an open file.
    pub fn descriptor(&self, index: u32) -> Option<RawFd> {
        Some(self.raw(index)).filter(|&descriptor| descriptor >= 0)
    }

    /// The descriptor, or -1.
    #[inline(always)]
    pub fn raw(&self, index: u32) -> RawFd {
        self.slots.get(index as usize).map_or(-1, |slot| slot.descriptor)
    }

    /// Whether it is open and a pipe, whose calls may wait for ever.
    #[inline]
    pub fn is_pipe(&self, index: u32) -> bool {
        self.slots.get(index as usize).is_some_and(|slot| slot.kind == FileKind::Pipe)
    }

    /// Performs a sync or a trim with the system call made for it.
    ///
    /// # Errors
    /// Those of the call; `EINVAL` for a unit that moves data.
    #[cold]
    pub fn control(&self, unit: &Unit) -> Outcome {
        let descriptor = self.raw(unit.file);
        loop {
            let result = match unit.operation {
                // SAFETY: these take nothing but integers.
                Operation::Sync => unsafe { libc::fsync(descriptor) },
                // SAFETY: as above.
                Operation::DataSync => unsafe { libc::fdatasync(descriptor) },
                // SAFETY: as above.
                Operation::SyncFileRange => unsafe {
                    libc::sync_file_range(
                        descriptor,
                        unit.offset as i64,
                        unit.length as i64,
                        self.sync_file_range_flags,
                    )
                },
                Operation::Trim => return self.trim(unit),
                Operation::Read | Operation::Write | Operation::Work => return Err(Errno(libc::EINVAL)),
            };
            match result {
                0 => return Ok(0),
                _ => match Errno::last() {
                    Errno(libc::EINTR) => continue,
                    errno => return Err(errno),
                },
            }
        }
    }

    /// Discards the unit's range of a block device; other files have no such request. The zones of a regular file exist
    /// only in the run, which resets them itself: the file stays as it is.
    fn trim(&self, unit: &Unit) -> Outcome {
        let slot = self.slots.get(unit.file as usize).copied().unwrap_or(CLOSED);
        if slot.descriptor < 0 {
            return Err(Errno(libc::EBADF));
        }
        if slot.kind == FileKind::Regular && slot.trims_reset_zones {
            return Ok(unit.length);
        }
        if slot.kind != FileKind::Block {
            return Err(Errno(libc::ENOTTY));
        }
        if slot.trims_reset_zones {
            let reset = iolite_os::zones::reset_of(slot.descriptor, unit.offset, unit.length);
            return reset.map(|()| unit.length).map_err(Errno::from);
        }
        let range = [unit.offset, unit.length];
        // SAFETY: BLKDISCARD reads two u64.
        match unsafe { libc::ioctl(slot.descriptor, BLKDISCARD as _, range.as_ptr()) } {
            0 => Ok(unit.length),
            _ => Err(Errno::last()),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            // The error of such a late close cannot be handled. The worker closes the important files earlier.
            let _ = close_slot(slot);
        }
    }
}

fn close_slot(slot: &mut Slot) -> io::Result<()> {
    let descriptor = std::mem::replace(slot, CLOSED).descriptor;
    match descriptor {
        -1 => Err(io::Error::from_raw_os_error(libc::EBADF)),
        // SAFETY: the descriptor was opened here and is forgotten now.
        _ => match unsafe { libc::close(descriptor) } {
            0 => Ok(()),
            // Linux has freed the descriptor even when close was interrupted.
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        },
    }
}

fn open_descriptor(spec: &FileSpec, mode: OpenMode) -> io::Result<RawFd> {
    if spec.path == Path::new("-") {
        return standard_stream(mode);
    }
    let path = CString::new(spec.path.as_os_str().as_bytes())
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let flags = open_flags(spec.kind, mode);
    // Opening a pipe waits for its other end, maybe for ever: there an interruption is passed on.
    let patient = spec.kind != FileKind::Pipe;
    let is_uncached = spec.kind == FileKind::Char && mode.direct;
    match open_path(&path, flags, patient) {
        Err(error) if is_uncached && error.raw_os_error() == Some(libc::EINVAL) => {
            let why = "a character device has no cache to bypass; leave direct out";
            Err(iolite_os::explained(&error, why.to_owned()))
        }
        // Only the owner may use O_NOATIME; the job does not need it.
        Err(error) if flags & libc::O_NOATIME != 0 && error.raw_os_error() == Some(libc::EPERM) => {
            open_path(&path, flags & !libc::O_NOATIME, patient)
        }
        result => result,
    }
}

fn open_path(path: &CString, flags: libc::c_int, patient: bool) -> io::Result<RawFd> {
    loop {
        // SAFETY: a terminated string and integers.
        let descriptor = unsafe { libc::open(path.as_ptr(), flags, CREATE_MODE) };
        if descriptor >= 0 {
            return Ok(descriptor);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted && patient => continue,
            error => return Err(error),
        }
    }
}

/// A copy of standard input or output, so that closing it leaves the stream open for the rest of the process.
fn standard_stream(mode: OpenMode) -> io::Result<RawFd> {
    let stream = match mode {
        OpenMode { read: true, write: true, .. } => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
        OpenMode { write: true, .. } => libc::STDOUT_FILENO,
        _ => libc::STDIN_FILENO,
    };
    // SAFETY: takes nothing but integers.
    match unsafe { libc::fcntl(stream, libc::F_DUPFD_CLOEXEC, 0) } {
        -1 => Err(io::Error::last_os_error()),
        descriptor => Ok(descriptor),
    }
}

/// The flags of open(2): like fio, opens regular files and devices for reading as well if they are written, and
/// requests no access times on devices.
fn open_flags(kind: FileKind, mode: OpenMode) -> libc::c_int {
    let mut flags = libc::O_CLOEXEC;
    flags |= match (mode.write, kind) {
        (true, FileKind::Pipe) if !mode.read => libc::O_WRONLY,
        (true, _) => libc::O_RDWR,
        (false, _) => libc::O_RDONLY,
    };
    if mode.direct {
        flags |= libc::O_DIRECT;
    }
    if mode.sync {
        flags |= libc::O_SYNC;
    }
    if mode.dsync {
        flags |= libc::O_DSYNC;
    }
    if mode.create && kind == FileKind::Regular {
        flags |= libc::O_CREAT;
    }
    if matches!(kind, FileKind::Block | FileKind::Char) {
        flags |= libc::O_NOATIME;
    }
    flags
}

/// The part of [`crate::Engine`] that opens and closes files, for engines that keep them in `self.files` and have
/// nothing to add.
#[macro_export]
macro_rules! opens_files {
    () => {
        fn open(
            &mut self,
            index: u32,
            spec: &$crate::FileSpec,
            mode: $crate::OpenMode,
        ) -> std::io::Result<()> {
            self.files.open(index, spec, mode).map(drop)
        }

        fn close(&mut self, index: u32) -> std::io::Result<()> {
            self.files.close(index)
        }

        fn descriptor(&self, index: u32) -> Option<std::os::fd::RawFd> {
            self.files.descriptor(index)
        }
    };
}
pub use crate::opens_files;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_fio_uses() {
        let read = OpenMode { read: true, ..OpenMode::default() };
        let write = OpenMode { write: true, create: true, ..OpenMode::default() };
        let close_on_exec = libc::O_CLOEXEC;
        assert_eq!(open_flags(FileKind::Regular, read), libc::O_RDONLY | close_on_exec);
        assert_eq!(open_flags(FileKind::Regular, write), libc::O_RDWR | libc::O_CREAT | close_on_exec);
        assert_eq!(open_flags(FileKind::Block, write), libc::O_RDWR | libc::O_NOATIME | close_on_exec);
        let direct = OpenMode { direct: true, dsync: true, ..read };
        assert_eq!(
            open_flags(FileKind::Block, direct),
            libc::O_RDONLY | libc::O_NOATIME | libc::O_DIRECT | libc::O_DSYNC | close_on_exec
        );
    }

    #[test]
    fn direct_io_to_a_character_device_is_refused_with_the_reason() {
        let spec = FileSpec { path: "/dev/null".into(), kind: FileKind::Char, size: 0 };
        let direct = OpenMode { read: true, direct: true, ..OpenMode::default() };
        let error = Files::new(&EngineConfig::default()).open(0, &spec, direct).unwrap_err();
        assert_eq!(iolite_os::errno_of(&error), libc::EINVAL);
        assert_eq!(error.to_string(), "a character device has no cache to bypass; leave direct out");
    }

    #[test]
    fn a_slot_is_open_once_and_closes_once() {
        let directory = tempfile::tempdir().unwrap();
        let spec = FileSpec { path: directory.path().join("f"), kind: FileKind::Regular, size: 0 };
        let mut files = Files::new(&EngineConfig::default());
        let read = OpenMode { read: true, ..OpenMode::default() };
        assert_eq!(files.open(0, &spec, read).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        let write = OpenMode { write: true, create: true, ..OpenMode::default() };
        files.open(0, &spec, write).unwrap();
        assert!(files.descriptor(0).is_some());
        assert_eq!(files.open(0, &spec, write).unwrap_err().raw_os_error(), Some(libc::EBUSY));
        files.close(0).unwrap();
        assert_eq!(files.descriptor(0), None);
        assert_eq!(files.close(0).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(files.close(9).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn standard_streams_are_one_way() {
        let both = OpenMode { read: true, write: true, ..OpenMode::default() };
        assert_eq!(standard_stream(both).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn files_made_on_opening_are_as_readable_as_others() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let spec = FileSpec { path: path.clone(), kind: FileKind::Regular, size: 0 };
        let mut files = Files::new(&EngineConfig::default());
        files.open(0, &spec, OpenMode { write: true, create: true, ..OpenMode::default() }).unwrap();
        // An ordinary new file gets mode 0666 without the umask's bits; other users must not write to ours.
        let ordinary = std::fs::File::create(directory.path().join("g")).unwrap();
        let mode =
            |metadata: std::io::Result<std::fs::Metadata>| metadata.unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(std::fs::metadata(&path)), mode(ordinary.metadata()) & 0o644);
    }
}
