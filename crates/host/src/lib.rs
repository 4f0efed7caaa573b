//! Facts about the machine, and errors in reading them, as plain values that can be stored and sent.
//!
//! Nothing is decided here. Code that decides (mostly the plan) asks a [`Machine`]. There are two: [`ThisMachine`]
//! reads facts from the system on demand and remembers them, so that everything in a run is decided by the same facts;
//! [`MadeUp`] returns values that a test has chosen.
//!
//! The queries are methods of [`Machine`]; their implementation is in the file of their subject. What a run tells about its
//! machine is in `about.rs` (`EXPLAINING`), the description of a device in `device.rs` and its parts, character devices that hold
//! data in `device_class.rs`, devices in use in `in_use.rs`.

pub mod about;
mod control_groups;
mod cpus;
mod device;
mod device_class;
mod device_number;
mod direct_io;
mod disks;
mod file_systems;
mod files;
mod in_use;
mod limits;
mod made_up;
mod memory;
mod mounts;
mod refusal;
mod this_machine;
mod tracepoints;

pub use control_groups::{ControlGroupVersion, Hierarchy};
pub use cpus::{Cpus, Node};
pub use device::{Device, Fact, Found, NoDevice, Section, Value};
pub use device_class::DeviceClass;
pub use device_number::DeviceNumber;
pub use direct_io::DirectIo;
pub use disks::{AtomicWrites, Disk, Queue, Scheduler, ZoneModel, Zones};
pub use file_systems::FileSystem;
pub use files::{Access, EntryKind, FileFacts, FileKey, Identity};
pub use in_use::{InUse, file_in_use};
pub use limits::{AioRequests, Limit, Limits};
pub use made_up::MadeUp;
pub use memory::{HugePages, Memory};
pub use mounts::Mounts;
pub use refusal::Refusal;
pub use this_machine::ThisMachine;
pub use tracepoints::{Field, Page, Tracepoint, Tracing};

pub use iolite_os::nvme::{Format, Guard, Namespace, Protection, ZoneGeometry};
pub use iolite_os::zones::{Zone, ZoneCondition, ZoneKind};

use iolite_types::FileKind;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The facts about a machine.
///
/// Facts are read on demand, because most plans need few of them, and do not change for the lifetime of the value. To
/// see later changes (such as the size of a file that an earlier job wrote), create a new [`ThisMachine`].
pub trait Machine: fmt::Debug {
    /// The file of this name, with symbolic links followed; `None` = it does not exist. The name `-` is standard input
    /// or output, which is a pipe.
    ///
    /// # Errors
    /// The system refuses the query, for a reason other than a missing file.
    fn file(&self, path: &Path) -> Result<Option<FileFacts>, Refusal>;

    /// The path where a file of this name would be created: links followed, its directory without links.
    fn place(&self, path: &Path) -> PathBuf;

    /// The key that identifies the file of this name. A file that cannot be queried counts as one that does not exist.
    fn key(&self, path: &Path) -> FileKey {
        match self.file(path) {
            Ok(Some(facts)) => facts.key(),
            Ok(None) | Err(_) => FileKey::Missing(self.place(path)),
        }
    }

    /// The size in bytes of a regular file, a block device, or a character device that holds data; `None` = it does not
    /// exist, or is of another kind. A device is opened for this.
    ///
    /// # Errors
    /// The system does not report it.
    fn size(&self, path: &Path) -> Result<Option<u64>, Refusal>;

    /// The kind and the size of the file that a job finds under a name, or of the regular file that it would create.
    /// The size is `None` if the file does not exist or has no size.
    ///
    /// # Errors
    /// It is a directory (`EISDIR`), or the system does not report it.
    fn usable_file(&self, path: &Path) -> Result<(FileKind, Option<u64>), Refusal> {
        let Some(found) = self.file(path)? else { return Ok((FileKind::Regular, None)) };
        let kind = found.kind.file_kind().ok_or_else(|| Refusal::of(libc::EISDIR))?;
        Ok((kind, self.size(path)?))
    }

    /// The directories above a name that do not exist, the innermost first. One that cannot be queried counts as
    /// existing: the file itself is then refused.
    fn missing_directories(&self, path: &Path) -> Vec<PathBuf> {
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        above.take_while(|above| matches!(self.file(above), Ok(None))).map(Path::to_owned).collect()
    }

    /// All regular files in a directory and its subdirectories, sorted. Symbolic links are left out.
    ///
    /// # Errors
    /// One of the directories cannot be read.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, Refusal>;

    /// Whether this process has this kind of access.
    ///
    /// # Errors
    /// The reason why it does not.
    fn access(&self, path: &Path, access: Access) -> Result<(), Refusal>;

    /// Whether a file created under this name would be among the device nodes, on the file system of /dev. (Other file
    /// systems that are mounted below /dev, such as /dev/shm, are for files.)
    fn among_devices(&self, path: &Path) -> bool;

    /// Why the device at this path is in use, or may be; `None` = it is free, or holds no data.
    fn in_use(&self, path: &Path) -> Option<InUse>;

    /// The node below /dev of the block device with this number, if there is one.
    fn device_node(&self, number: DeviceNumber) -> Option<PathBuf>;

    /// The disk that holds a file, or the nearest directory above it that exists; for a block device, its disk. `None`
    /// = no disk of this machine.
    fn disk(&self, path: &Path) -> Option<Disk>;

    /// The current zones of a block device, or of an NVMe namespace by its generic device; `None` = it is not zoned. A
    /// device is opened for this.
    ///
    /// # Errors
    /// The system does not report them.
    fn zones(&self, path: &Path) -> Result<Option<Vec<Zone>>, Refusal>;

    /// The NVMe namespace of a generic device; `None` = it is not such a device. The device is opened and queried.
    ///
    /// # Errors
    /// The system does not report it.
    fn namespace(&self, path: &Path) -> Result<Option<Namespace>, Refusal>;

    /// The sizes of atomic writes to the file at a path; `None` = unknown, as for a file that does not exist yet.
    fn atomic_writes(&self, path: &Path) -> Option<AtomicWrites>;

    /// The alignment that direct I/O to a file requires; `None` = unknown, as for a file that does not exist.
    fn direct_io(&self, path: &Path) -> Option<DirectIo>;

    /// The file system that a file is on.
    ///
    /// # Errors
    /// The system does not report it, or there is no such file.
    fn file_system(&self, path: &Path) -> Result<FileSystem, Refusal>;

    /// The directory that relative names refer to.
    ///
    /// # Errors
    /// It has been removed, or cannot be read.
    fn current_directory(&self) -> Result<PathBuf, Refusal>;

    /// The CPUs.
    fn cpus(&self) -> Cpus;

    /// The memory (NUMA) nodes, in ascending order.
    ///
    /// # Errors
    /// The kernel does not report them.
    fn nodes(&self) -> Result<Vec<Node>, Refusal>;

    /// The memory.
    fn memory(&self) -> Memory;

    /// The limits of this process and of the whole system.
    fn limits(&self) -> Limits;

    /// Whether the system has the clock of this number (clock_gettime(2)).
    ///
    /// # Errors
    /// The system does not have the clock.
    fn clock(&self, number: i32) -> Result<(), Refusal>;

    /// Where control groups for block I/O are made; `None` = none are mounted.
    ///
    /// # Errors
    /// The list of mounts cannot be read.
    fn control_groups(&self) -> Result<Option<Hierarchy>, Refusal>;

    /// The kernel's tracepoints of block I/O, if this process may record them.
    ///
    /// # Errors
    /// The kernel does not show them, or this process lacks the rights; the words name the remedy.
    fn tracing(&self) -> Result<Tracing, Refusal>;

    /// Whether an address may be one of this machine's.
    fn has_address(&self, address: IpAddr) -> bool;

    /// A random number, a new one each time.
    fn random(&self) -> u64;
}
