//! The facets of an engine: all that the rest of the program has to know about it.
//!
//! Each facet answers one question, and code consults the facet of its question. No facet implies another: an engine
//! without file descriptors may keep data (an object store), and one that does no transfers may work on local files
//! (one that creates them).

use serde::{Deserialize, Serialize};

/// The location of an engine's data, which determines the meaning of its file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Data {
    /// In files and devices of this machine: names are paths, and the engine opens them.
    LocalFiles,
    /// In the engine's own storage (images, objects, exports). Only the engine knows the meaning of names: it reports
    /// sizes, and creates, extends and removes the objects.
    OwnStorage,
    /// At the other end of a connection: writes go there, and reads come from there. Nothing can be laid out, synced or
    /// read back.
    OtherEnd,
    /// Nowhere: nothing can be laid out, synced or read back.
    Nowhere,
}

/// The action of one unit of an engine, which determines how the unit counts and which resources it needs.
///
/// Every unit except a piece of work has a direction (`rw`) and counts as an I/O of that direction with its length,
/// which is the block size, whether or not that many bytes are moved. An engine returns that length on completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UnitKind {
    /// It moves data between a buffer and a place. Files are laid out before, if the engine keeps data.
    Transfers,
    /// It acts on a name: creates, looks up or removes its file or directory. Each file is one unit per pass. Files to
    /// look up or remove are created before the job, with the directories above them. `open` only passes the name to
    /// the engine.
    ActsOnNames(NameUse),
    /// It acts on a part of a file without moving data through memory: reserves it, cuts it off, swaps it. Files are
    /// laid out and opened as for transfers; buffers hold no data.
    ActsOnExtents(ExtentAct),
    /// It works without I/O and without files. A unit is a piece of work, which counts as a read of no bytes. Units
    /// follow one another until the job's time is over, or one returns that no work is left (0). Such an engine is
    /// synchronous. A long piece is done in small steps: while it is not complete, the engine returns every few
    /// milliseconds that it is busy, and between two pieces that it was interrupted (`EINTR`).
    Works,
}

/// The action on an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExtentAct {
    /// Reads and writes allocate its space, and trims deallocate it, for files as well as devices.
    Reserve,
    /// The file is cut off there. Only writes are possible.
    CutOff,
    /// Its blocks are swapped with others. Only writes are possible.
    Swap,
}

/// How an engine uses names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NameUse {
    /// The kind of object behind the name.
    pub of: NameKind,
    /// The action on it.
    pub act: NameAct,
}

impl NameUse {
    /// Whether it can be repeated on the same name at once: if the file exists already, it is opened.
    pub const fn is_repeatable(self) -> bool {
        match self.act {
            NameAct::LookUp => true,
            NameAct::Make => matches!(self.of, NameKind::File),
            NameAct::Remove => false,
        }
    }
}

/// The kind of object that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NameKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// The action on a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NameAct {
    /// It is created if it does not exist.
    Make,
    /// It is looked up.
    LookUp,
    /// It can be acted on only once: it is removed, gets another name, or gets a second one.
    Remove,
}

/// The component that completes a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Completion {
    /// The call that issues it: a depth above 1 has no effect.
    Call,
    /// The engine itself, later, when it is asked to submit or to return completions.
    Engine,
    /// The kernel, later.
    Kernel,
    /// A thread that a library has started in the worker.
    LibraryThreads,
}

/// The files of this machine on which an engine can work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// Any file that the system can open.
    #[default]
    Any,
    /// Regular files that are memory: no disk takes part in their I/O.
    DaxFile,
    /// Disks that take SCSI commands: block devices and their generic devices.
    Scsi,
    /// SCSI disks through their nodes of the block layer's generic driver.
    Bsg,
    /// Namespaces that take NVMe commands: generic devices.
    Nvme,
    /// Flash.
    Flash,
    /// Memory that is mapped as a device.
    DaxDevice,
}

impl Target {
    /// A description of the files that the engine needs, for errors; `None` = any.
    pub const fn needed(self) -> Option<&'static str> {
        match self {
            Target::Any => None,
            Target::DaxFile => Some("a regular file"),
            Target::Scsi => Some("a disk that takes SCSI commands (/dev/sda or /dev/sg0)"),
            // Written as in a job, where a plain colon would begin another name.
            Target::Bsg => Some("the bsg node of a SCSI disk (/dev/bsg/0\\:0\\:0\\:0)"),
            Target::Nvme => Some("the generic device of an NVMe namespace (/dev/ng0n1)"),
            Target::Flash => Some("a flash device (/dev/mtd0)"),
            Target::DaxDevice => Some("a DAX device (/dev/dax0.0)"),
        }
    }
}

/// An ability that only some engines have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Capability {
    /// Put written data on stable storage (`fsync`, `end_fsync` and the like). Engines without data have this
    /// capability; their syncs do nothing.
    Sync,
    /// Trim (`rw=trim` and its mixes).
    Trim,
    /// Trim several ranges with one command (`num_range`).
    Ranges,
    /// Tell the device with each write where to put it (`dataplacement`).
    Placement,
    /// Request atomic writes, which are stored completely or not at all (`atomic`).
    AtomicWrites,
    /// Give single I/Os a priority (`cmdprio_percentage`, `cmdprio_bssplit`).
    Priorities,
    /// Poll the device for completions (`hipri`).
    Polling,
    /// Write beyond the end of a file, which makes it longer. Other engines have to know its size when they open it.
    Extend,
    /// Copy data into memory that is a part of the file. A write may then end where the worker is interrupted.
    CopyIntoFile,
    /// Act on names, or on parts of files, without changing any of them.
    OnlyLook,
    /// Combine several I/Os in one system call, so that the submission of a single I/O cannot be timed.
    Coalesce,
    /// Count sending as a part of the I/O, as an engine does that sends a request and waits for the answer in one call: I/Os
    /// are requests whose completion latency begins before they are sent, and there is no submission apart from it.
    TimeSending,
    /// Tell when the answer to an I/O arrived (`stages`).
    TimeAnswers,
    /// Create objects only by writing them. No object is laid out before a job unless the job requests it.
    MadeByWriting,
    /// Create and extend files only for jobs that write: they are on a server, and a job that only reads must find its
    /// data there, unless it only creates files (`create_only`).
    OnlyWritersMake,
    /// Work on objects of a fixed size: images and disks, which no job creates, extends or removes.
    FixedSize,
    /// Report rates in bits, unless `unit_base` says otherwise.
    CountBits,
    /// Accept `verify` although it keeps no data that could be verified.
    FeignVerify,
    /// Lend the pages of a buffer to the kernel, which may still send them after the write has completed and the buffer
    /// is reused.
    LendBuffers,
}

impl Capability {
    const ALL: [Capability; 19] = [
        Capability::Sync,
        Capability::Trim,
        Capability::Ranges,
        Capability::Placement,
        Capability::AtomicWrites,
        Capability::Priorities,
        Capability::Polling,
        Capability::Extend,
        Capability::CopyIntoFile,
        Capability::OnlyLook,
        Capability::Coalesce,
        Capability::TimeSending,
        Capability::TimeAnswers,
        Capability::MadeByWriting,
        Capability::OnlyWritersMake,
        Capability::FixedSize,
        Capability::CountBits,
        Capability::FeignVerify,
        Capability::LendBuffers,
    ];
}

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Capability>", into = "Vec<Capability>")]
pub struct Capabilities(u32);

impl Capabilities {
    /// The set of these capabilities.
    pub const fn of(list: &[Capability]) -> Capabilities {
        let (mut bits, mut index) = (0, 0);
        while index < list.len() {
            bits |= 1 << list[index] as u32;
            index += 1;
        }
        Capabilities(bits)
    }

    /// Whether the set contains this one.
    pub const fn has(self, one: Capability) -> bool {
        self.0 & (1 << one as u32) != 0
    }
}

impl From<Vec<Capability>> for Capabilities {
    fn from(list: Vec<Capability>) -> Self {
        Capabilities::of(&list)
    }
}

impl From<Capabilities> for Vec<Capability> {
    fn from(set: Capabilities) -> Self {
        Capability::ALL.into_iter().filter(|&one| set.has(one)).collect()
    }
}

/// The facets of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facets {
    /// Where its data lives.
    pub data: Data,
    /// The local files on which it can work.
    #[serde(default)]
    pub target: Target,
    /// The action of one of its units.
    pub unit: UnitKind,
    /// The component that completes a unit.
    pub completion: Completion,
    /// Its capabilities.
    pub capabilities: Capabilities,
}

impl Facets {
    /// Whether its files are files and devices of this machine: names are paths, which others may use as well.
    pub const fn has_local_files(&self) -> bool {
        matches!(self.data, Data::LocalFiles)
    }

    /// Whether written data persists, so that it can be synced and read back.
    pub const fn keeps_data(&self) -> bool {
        matches!(self.data, Data::LocalFiles | Data::OwnStorage)
    }

    /// Whether reads return data that was once written, so that it can be checked.
    pub const fn reads_data(&self) -> bool {
        !matches!(self.data, Data::Nowhere)
    }

    /// Whether its units move data between buffers and files: the data of writes can be generated, read back and
    /// verified.
    pub const fn moves_data(&self) -> bool {
        matches!(self.unit, UnitKind::Transfers)
    }

    /// Its action on extents, if it acts on extents.
    pub const fn extent_act(&self) -> Option<ExtentAct> {
        match self.unit {
            UnitKind::ActsOnExtents(act) => Some(act),
            _ => None,
        }
    }

    /// Its action on names, if it acts on names.
    pub const fn name_use(&self) -> Option<NameUse> {
        match self.unit {
            UnitKind::ActsOnNames(name_use) => Some(name_use),
            _ => None,
        }
    }

    /// Whether its units remove their targets, whatever the direction.
    pub const fn removes(&self) -> bool {
        matches!(self.unit, UnitKind::ActsOnNames(NameUse { act: NameAct::Remove, .. }))
    }

    /// Whether its files have to exist, in the size that the job needs, before its first unit.
    pub const fn needs_files(&self) -> bool {
        self.keeps_data()
            && matches!(self.unit, UnitKind::Transfers | UnitKind::ActsOnExtents(_))
            && !self.can(Capability::MadeByWriting)
    }

    /// Whether a unit is complete when the call that issues it returns.
    pub const fn is_synchronous(&self) -> bool {
        matches!(self.completion, Completion::Call)
    }

    /// These facets with one more capability.
    pub fn and(self, one: Capability) -> Facets {
        let capabilities = Capabilities(self.capabilities.0 | 1 << one as u32);
        Facets { capabilities, ..self }
    }

    /// These facets, for names whose objects are created before the job, like files.
    pub fn laid_out(self) -> Facets {
        let mut capabilities = Vec::from(self.capabilities);
        capabilities.retain(|&one| one != Capability::MadeByWriting);
        Facets { capabilities: Capabilities::from(capabilities), ..self }
    }

    /// Whether it has this capability.
    pub const fn can(&self, what: Capability) -> bool {
        self.capabilities.has(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_listed() {
        let set = Capabilities::of(&[Capability::Sync, Capability::CopyIntoFile]);
        assert!(set.has(Capability::Sync) && set.has(Capability::CopyIntoFile));
        assert!(!set.has(Capability::Trim) && !Capabilities::default().has(Capability::Sync));
        assert_eq!(Vec::from(set), [Capability::Sync, Capability::CopyIntoFile]);
    }

    #[test]
    fn facets_travel() {
        let facets = Facets {
            data: Data::OwnStorage,
            target: Target::Any,
            unit: UnitKind::Transfers,
            completion: Completion::LibraryThreads,
            capabilities: Capabilities::of(&[Capability::Trim]),
        };
        let text = serde_json::to_string(&facets).unwrap();
        assert!(text.contains(r#""capabilities":["Trim"]"#), "{text}");
        assert_eq!(serde_json::from_str::<Facets>(&text).unwrap(), facets);
    }
}
