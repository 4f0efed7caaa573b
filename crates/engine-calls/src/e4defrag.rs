//! `e4defrag`: a write swaps the blocks of a range with those of a donor file (`EXT4_IOC_MOVE_EXT`), as
//! defragmentation does; the data stays the same.
//!
//! The donor gets its space before the first unit, as much as the largest file has; with `inplace=1`, each unit
//! allocates the space and frees it again. The donor must be on the same ext4 file system.

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files};
use iolite_engine::{EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Unit};
use iolite_options::engines::E4defragOptions;
use iolite_os::explained;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `struct move_extent` of the kernel's ext4 (fs/ext4/ext4.h documents it as its user interface). Places and lengths are
/// in blocks of the file system.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor: u32,
    start: u64,
    donor_start: u64,
    length: u64,
    moved: u64,
}

/// `_IOWR('f', 15, struct move_extent)`
const EXT4_IOC_MOVE_EXT: libc::c_ulong = 0xc028_660f;

/// Swaps the blocks of files with those of a donor.
#[derive(Debug)]
pub struct E4defragEngine {
    files: Files,
    name: PathBuf,
    /// It does not exist before the first unit, so that a probe leaves no file behind.
    donor: Option<Donor>,
    /// The size of the largest file that was opened.
    largest: u64,
    /// Each unit allocates the donor's space and frees it again.
    in_place: bool,
    /// Why the last failed unit failed.
    failed: Option<String>,
}

/// The file with which blocks are swapped.
#[derive(Debug)]
struct Donor {
    file: File,
    /// Bytes of a block of its file system.
    block: u64,
}

impl Donor {
    fn open(name: &Path) -> io::Result<Donor> {
        let file = File::options().write(true).create(true).truncate(false).open(name)?;
        let block = file.metadata()?.blksize();
        Ok(Donor { file, block })
    }

    /// Allocates its space for this range.
    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        // SAFETY: takes nothing but integers.
        match unsafe { libc::fallocate(self.file.as_raw_fd(), 0, offset as i64, length as i64) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Allocates space from the start of the donor. If there is too little, the allocated part is freed again.
    fn reserve_all(&self, length: u64) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        self.reserve(0, length).inspect_err(|_| {
            // The earlier error matters.
            let _ = self.file.set_len(before);
        })
    }

    /// An explanation for a swap's error if the system's message does not explain it.
    fn why(&self, errno: Errno, unit: &Unit, file: RawFd, name: &Path) -> Option<String> {
        let name = name.display();
        let is_beyond =
            || status_of(file).is_some_and(|status| unit.offset + unit.length > status.st_size as u64);
        match errno.0 {
            libc::ENOTTY | libc::EOPNOTSUPP => {
                Some("the file system cannot swap extents; e4defrag needs ext4".to_owned())
            }
            libc::EXDEV | libc::EINVAL if !is_with(file, self.file.as_raw_fd()) => {
                Some(format!("the donor, {name}, has to be on the file system of the job's files"))
            }
            libc::EINVAL if is_beyond() => Some(NO_PLACE.to_owned()),
            libc::ENODATA => Some(NO_PLACE.to_owned()),
            libc::EBUSY => Some(
                "the data of these blocks is still on its way to the disk; sync the file first, and with fsync=1 after each swap"
                    .to_owned(),
            ),
            libc::ENOSPC => Some(format!("there is no room for the donor, {name}")),
            _ => None,
        }
    }

    /// Swaps the range of a unit with the same range of the donor.
    fn swap(&self, unit: &Unit, file: RawFd) -> Outcome {
        let (start, end) = (unit.offset / self.block, (unit.offset + unit.length).div_ceil(self.block));
        let mut request = MoveExtent {
            reserved: 0,
            donor: self.file.as_raw_fd() as u32,
            start,
            donor_start: start,
            length: end - start,
            moved: 0,
        };
        // SAFETY: the request has the layout that this ioctl reads and writes.
        match unsafe { libc::ioctl(file, EXT4_IOC_MOVE_EXT as _, &mut request) } {
            // A range without blocks is not always an error there.
            0 if request.moved == 0 => Err(Errno(libc::ENODATA)),
            0 => Ok((request.moved * self.block).saturating_sub(unit.offset % self.block).min(unit.length)),
            _ => Err(Errno::last()),
        }
    }
}

/// Why holes, and ranges beyond the end of a file, cannot be swapped.
const NO_PLACE: &str = "only blocks that have their places on the disk can be swapped; write the file first";

/// The status of an open file.
fn status_of(descriptor: RawFd) -> Option<libc::stat> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat writes the whole structure if it succeeds.
    unsafe { (libc::fstat(descriptor, found.as_mut_ptr()) == 0).then(|| found.assume_init()) }
}

/// Whether both are on the same file system.
fn is_with(file: RawFd, other: RawFd) -> bool {
    let device = |descriptor| status_of(descriptor).map(|status| status.st_dev);
    device(file) == device(other)
}

impl E4defragEngine {
    /// Allocates the donor's space, if necessary, and swaps the blocks of a unit.
    fn swap(&self, donor: &Donor, unit: &Unit, file: RawFd) -> Outcome {
        if !self.in_place {
            return donor.swap(unit, file);
        }
        let swapped = donor
            .reserve(unit.offset, unit.length)
            .map_err(Errno::from)
            .and_then(|()| donor.swap(unit, file));
        donor.file.set_len(0)?;
        swapped
    }

    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: the donor is opened when the files are.
    pub fn new(config: &EngineConfig, own: &E4defragOptions) -> Result<Self, EngineError> {
        Ok(E4defragEngine {
            files: Files::new(config),
            name: PathBuf::from(&own.donorname),
            donor: None,
            largest: 0,
            in_place: own.inplace,
            failed: None,
        })
    }
}

impl Transfer for E4defragEngine {
    has_files!();

    fn opened(&mut self, _index: u32, spec: &FileSpec, _mode: OpenMode) -> io::Result<()> {
        if spec.size > self.largest {
            self.largest = spec.size;
            if let (Some(donor), false) = (&self.donor, self.in_place) {
                donor.reserve_all(spec.size)?;
            }
        }
        Ok(())
    }

    fn prepared(&mut self) -> Result<(), EngineError> {
        let refused = |source: io::Error| {
            let is_no_file = matches!(
                source.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::ENODEV | libc::EISDIR | libc::ESPIPE | libc::EINVAL)
            );
            let source = match is_no_file {
                true => explained(
                    &source,
                    "it has to be a file on the ext4 file system of the job's files".to_owned(),
                ),
                false => source,
            };
            EngineError::Donor { name: self.name.clone(), source }
        };
        let donor = Donor::open(&self.name).map_err(refused)?;
        if !self.in_place && self.largest > 0 {
            donor.reserve_all(self.largest).map_err(refused)?;
        }
        self.donor = Some(donor);
        Ok(())
    }

    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        let (Some(donor), true) = (&self.donor, write) else { return Err(Errno(libc::EINVAL)) };
        let file = self.files.raw(unit.file);
        let swapped = self.swap(donor, unit, file);
        if let Err(errno) = swapped {
            self.failed = donor.why(errno, unit, file, &self.name);
        }
        swapped
    }

    fn explained(&self) -> Option<String> {
        self.failed.clone()
    }
}
