//! A machine that exists only in a test.

use crate::control_groups::Hierarchy;
use crate::cpus::{Cpus, Node};
use crate::device_class::DeviceClass;
use crate::device_number::DeviceNumber;
use crate::direct_io::DirectIo;
use crate::disks::{AtomicWrites, Disk, Queue, Zones};
use crate::file_systems::FileSystem;
use crate::files::{Access, EntryKind, FileFacts, Identity};
use crate::in_use::InUse;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::refusal::Refusal;
use crate::{Machine, Namespace, Zone, ZoneCondition, ZoneKind};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A file, directory or device of the machine.
#[derive(Clone, Debug)]
struct Entry {
    facts: FileFacts,
    /// The size in bytes of a block device.
    bytes: u64,
    in_use: Option<InUse>,
    disk: Option<Disk>,
    atomic_writes: AtomicWrites,
    namespace: Option<Namespace>,
    writable: bool,
}

/// A machine that answers with values that a test has chosen. Initially it has one CPU, one memory node, 1 GiB of
/// memory, no limits, and only the directories `/`, `/dev` and `/tmp`; relative names refer to `/tmp`.
///
/// ```rust
/// use iolite_host::{Machine, MadeUp};
/// let machine = MadeUp::new().with_cpus(512).with_nodes(4).with_block_device("/dev/big", 100 << 40);
/// assert_eq!(machine.size("/dev/big".as_ref()), Ok(Some(100 << 40)));
/// assert_eq!(machine.nodes().unwrap()[3].cpus, (384..512).collect::<Vec<u32>>());
/// ```
#[derive(Clone, Debug)]
pub struct MadeUp {
    entries: BTreeMap<PathBuf, Entry>,
    missing_directories: Vec<PathBuf>,
    refused: BTreeMap<PathBuf, Refusal>,
    cpus: Cpus,
    nodes: Result<Vec<Node>, Refusal>,
    memory: Memory,
    limits: Limits,
    control_groups: Option<Hierarchy>,
    addresses: Vec<IpAddr>,
    drawn: Cell<u64>,
}

impl Default for MadeUp {
    fn default() -> Self {
        MadeUp {
            entries: BTreeMap::new(),
            missing_directories: Vec::new(),
            refused: BTreeMap::new(),
            cpus: Cpus { configured: 0, allowed: Vec::new(), usable: Vec::new() },
            nodes: Ok(vec![Node { number: 0, cpus: Vec::new() }]),
            memory: Memory::default(),
            limits: Limits::default(),
            control_groups: None,
            addresses: Vec::new(),
            drawn: Cell::new(0),
        }
        .with_cpus(1)
        .with_memory(1 << 30)
        .with_directory("/dev")
        .with_directory(Self::CURRENT)
    }
}

impl MadeUp {
    /// The directory that relative names refer to.
    const CURRENT: &str = "/tmp";

    /// A small machine.
    pub fn new() -> MadeUp {
        MadeUp::default()
    }

    /// With this many CPUs, distributed evenly over its nodes.
    #[must_use]
    pub fn with_cpus(mut self, number: u32) -> MadeUp {
        let all: Vec<u32> = (0..number).collect();
        self.cpus = Cpus { configured: number, allowed: all.clone(), usable: all };
        self.share_out_cpus();
        self
    }

    /// With this many memory nodes; 0 = the kernel lists no nodes.
    #[must_use]
    pub fn with_nodes(mut self, count: u32) -> MadeUp {
        self.nodes = match count {
            0 => Err(Refusal::of(libc::ENOENT)),
            _ => Ok((0..count).map(|number| Node { number, cpus: Vec::new() }).collect()),
        };
        self.share_out_cpus();
        self
    }

    fn share_out_cpus(&mut self) {
        let Ok(nodes) = &mut self.nodes else { return };
        let (cpus, count) = (u64::from(self.cpus.configured), nodes.len() as u64);
        for (node, place) in nodes.iter_mut().zip(0_u64..) {
            node.cpus = ((cpus * place / count) as u32..(cpus * (place + 1) / count) as u32).collect();
        }
    }

    /// This CPU is offline, or excluded by the cpuset.
    #[must_use]
    pub fn unusable_cpu(mut self, cpu: u32) -> MadeUp {
        self.cpus.allowed.retain(|&other| other != cpu);
        self.cpus.usable.retain(|&other| other != cpu);
        self
    }

    /// The process runs on these CPUs only, as with taskset(1).
    #[must_use]
    pub fn tied_to(mut self, cpus: &[u32]) -> MadeUp {
        self.cpus.allowed = cpus.to_vec();
        self
    }

    /// With this many bytes of available memory.
    #[must_use]
    pub fn with_memory(mut self, available: u64) -> MadeUp {
        self.memory = Memory { total: Some(available), available: Some(available), ..Memory::default() };
        self
    }

    /// With these limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> MadeUp {
        self.limits = limits;
        self
    }

    /// With control groups in this hierarchy.
    #[must_use]
    pub fn with_control_groups(mut self, hierarchy: Hierarchy) -> MadeUp {
        self.control_groups = Some(hierarchy);
        self
    }

    /// With this address, in addition to those of the loopback interface.
    #[must_use]
    pub fn with_address(mut self, address: IpAddr) -> MadeUp {
        self.addresses.push(address);
        self
    }

    /// With a regular file of this size.
    #[must_use]
    pub fn with_file(self, path: impl AsRef<Path>, bytes: u64) -> MadeUp {
        self.entry(path.as_ref(), EntryKind::Regular, bytes)
    }

    /// Removes a directory. (The directories of all other files exist.)
    #[must_use]
    pub fn without_directory(mut self, path: impl AsRef<Path>) -> MadeUp {
        self.missing_directories.push(path.as_ref().to_owned());
        self
    }

    /// With a directory and its parents.
    #[must_use]
    pub fn with_directory(self, path: impl AsRef<Path>) -> MadeUp {
        self.entry(path.as_ref(), EntryKind::Directory, 0)
    }

    /// With a pipe.
    #[must_use]
    pub fn with_pipe(self, path: impl AsRef<Path>) -> MadeUp {
        self.entry(path.as_ref(), EntryKind::Pipe, 0)
    }

    /// With a character device.
    #[must_use]
    pub fn with_character_device(self, path: impl AsRef<Path>) -> MadeUp {
        self.entry(path.as_ref(), EntryKind::Char, 0)
    }

    /// With a character device that holds this many bytes.
    #[must_use]
    pub fn with_device_of(self, class: DeviceClass, path: impl AsRef<Path>, bytes: u64) -> MadeUp {
        let mut machine = self.entry(path.as_ref(), EntryKind::Char, bytes);
        machine.change(path.as_ref()).facts.class = Some(class);
        machine
    }

    /// With the generic device of an NVMe namespace.
    #[must_use]
    pub fn with_namespace(self, path: impl AsRef<Path>, namespace: Namespace) -> MadeUp {
        let mut machine = self.with_device_of(DeviceClass::NvmeGeneric, path.as_ref(), namespace.bytes());
        machine.change(path.as_ref()).namespace = Some(namespace);
        machine
    }

    /// This character device is the same storage as a block device.
    ///
    /// # Panics
    /// If one of the devices does not exist.
    #[must_use]
    pub fn same(mut self, path: impl AsRef<Path>, block_device: impl AsRef<Path>) -> MadeUp {
        let number = self.change(block_device.as_ref()).facts.device;
        self.change(path.as_ref()).facts.same_as = number;
        self
    }

    /// With a block device of this size, a disk with blocks of 512 bytes.
    #[must_use]
    pub fn with_block_device(self, path: impl AsRef<Path>, bytes: u64) -> MadeUp {
        let mut machine = self.entry(path.as_ref(), EntryKind::Block, bytes);
        let name = path.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let directory = Path::new("/sys/block").join(&name);
        let queue = Queue { logical_block: Some(512), physical_block: Some(512), ..Queue::default() };
        machine.change(path.as_ref()).disk = Some(Disk { name, directory, queue, below: Vec::new() });
        machine
    }

    /// This block device has this queue.
    ///
    /// # Panics
    /// If the block device does not exist.
    #[must_use]
    pub fn with_queue(mut self, path: impl AsRef<Path>, queue: Queue) -> MadeUp {
        self.change(path.as_ref()).disk.as_mut().expect("a block device").queue = queue;
        self
    }

    /// This block device has zones.
    ///
    /// # Panics
    /// If the block device does not exist.
    #[must_use]
    pub fn zoned(mut self, path: impl AsRef<Path>, zones: Zones) -> MadeUp {
        self.change(path.as_ref()).disk.as_mut().expect("a block device").queue.zones = Some(zones);
        self
    }

    /// This block device is in use.
    ///
    /// # Panics
    /// If the device does not exist.
    #[must_use]
    pub fn used(mut self, path: impl AsRef<Path>, by: InUse) -> MadeUp {
        self.change(path.as_ref()).in_use = Some(by);
        self
    }

    /// This file can be written atomically in these sizes.
    ///
    /// # Panics
    /// If the file does not exist.
    #[must_use]
    pub fn atomic(mut self, path: impl AsRef<Path>, writes: AtomicWrites) -> MadeUp {
        self.change(path.as_ref()).atomic_writes = writes;
        self
    }

    /// This file or directory cannot be written to.
    ///
    /// # Panics
    /// If the file does not exist.
    #[must_use]
    pub fn read_only(mut self, path: impl AsRef<Path>) -> MadeUp {
        self.change(path.as_ref()).writable = false;
        self
    }

    /// Querying this path fails with this error number.
    #[must_use]
    pub fn refused(mut self, path: impl AsRef<Path>, errno: i32) -> MadeUp {
        self.refused.insert(absolute(path.as_ref()), Refusal::of(errno));
        self
    }

    fn entry(mut self, path: &Path, kind: EntryKind, bytes: u64) -> MadeUp {
        let path = absolute(path);
        if let Some(parent) = path.parent().filter(|parent| !self.entries.contains_key(*parent)) {
            self = self.entry(parent, EntryKind::Directory, 0);
        }
        let number = self.entries.len() as u32;
        let facts = FileFacts {
            kind,
            bytes: if kind == EntryKind::Regular { bytes } else { 0 },
            identity: Identity { device: 1, inode: u64::from(number) },
            device: matches!(kind, EntryKind::Block | EntryKind::Char)
                .then_some(DeviceNumber { major: 259, minor: number }),
            class: None,
            same_as: None,
        };
        let entry = Entry {
            facts,
            bytes,
            in_use: None,
            disk: None,
            atomic_writes: AtomicWrites::default(),
            namespace: None,
            writable: true,
        };
        self.entries.insert(path, entry);
        self
    }

    fn change(&mut self, path: &Path) -> &mut Entry {
        let found = self.entries.get_mut(&absolute(path));
        found.unwrap_or_else(|| panic!("{} is to be made before it is changed", path.display()))
    }

    fn find(&self, path: &Path) -> Option<&Entry> {
        self.entries.get(&absolute(path))
    }
}

/// The name without `.` and `..`. (There are no symbolic links here.)
fn absolute(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for component in Path::new(MadeUp::CURRENT).join(path).components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

impl Machine for MadeUp {
    fn file(&self, path: &Path) -> Result<Option<FileFacts>, Refusal> {
        if iolite_types::is_standard_stream(path) {
            return Ok(Some(FileFacts::standard_stream()));
        }
        match self.refused.get(&absolute(path)) {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(self.find(path).map(|entry| entry.facts)),
        }
    }

    fn place(&self, path: &Path) -> PathBuf {
        absolute(path)
    }

    fn size(&self, path: &Path) -> Result<Option<u64>, Refusal> {
        let has_size = |found: &FileFacts| found.kind == EntryKind::Regular || found.is_storage_device();
        Ok(self.file(path)?.filter(has_size).and(self.find(path)).map(|entry| entry.bytes))
    }

    fn missing_directories(&self, path: &Path) -> Vec<PathBuf> {
        let is_missing = |above: &&Path| self.missing_directories.iter().any(|missing| missing == above);
        path.ancestors().skip(1).filter(is_missing).map(Path::to_owned).collect()
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, Refusal> {
        if self.file(directory)?.is_none() {
            return Err(Refusal::of(libc::ENOENT));
        }
        let place = absolute(directory);
        let below = self.entries.iter().filter(|(_, entry)| entry.facts.kind == EntryKind::Regular);
        let below = below.filter_map(|(path, _)| path.strip_prefix(&place).ok());
        Ok(below.map(|name| directory.join(name)).collect())
    }

    fn access(&self, path: &Path, _: Access) -> Result<(), Refusal> {
        match self.find(path) {
            None => Err(Refusal::of(libc::ENOENT)),
            Some(entry) if !entry.writable => Err(Refusal::of(libc::EACCES)),
            Some(_) => Ok(()),
        }
    }

    fn among_devices(&self, path: &Path) -> bool {
        absolute(path).starts_with("/dev")
    }

    fn in_use(&self, path: &Path) -> Option<InUse> {
        self.find(path)?.in_use.clone()
    }

    fn device_node(&self, number: DeviceNumber) -> Option<PathBuf> {
        let mut devices = self.entries.iter();
        devices.find(|(_, entry)| entry.facts.block_device() == Some(number)).map(|(path, _)| path.clone())
    }

    fn disk(&self, path: &Path) -> Option<Disk> {
        self.find(path)?.disk.clone()
    }

    fn namespace(&self, path: &Path) -> Result<Option<Namespace>, Refusal> {
        Ok(self.find(path).and_then(|entry| entry.namespace))
    }

    fn zones(&self, path: &Path) -> Result<Option<Vec<Zone>>, Refusal> {
        if let Some(refusal) = self.refused.get(&absolute(path)) {
            return Err(refusal.clone());
        }
        let of_disk = |entry: &Entry| {
            Some((entry.disk.as_ref()?.queue.zones?.size, entry.disk.as_ref()?.queue.zones?.count))
        };
        let of_namespace = |entry: &Entry| {
            let namespace = entry.namespace?;
            let blocks = namespace.zones?.blocks;
            Some((blocks * u64::from(namespace.format.data), namespace.blocks / blocks))
        };
        let geometry = self.find(path).and_then(|entry| of_disk(entry).or_else(|| of_namespace(entry)));
        let zone = |number, size| Zone {
            start: number * size,
            size,
            capacity: size,
            pointer: number * size,
            kind: ZoneKind::Sequential,
            condition: ZoneCondition::Empty,
        };
        Ok(geometry.map(|(size, count)| (0..count).map(|number| zone(number, size)).collect()))
    }

    fn atomic_writes(&self, path: &Path) -> Option<AtomicWrites> {
        self.find(path).map(|entry| entry.atomic_writes)
    }

    fn direct_io(&self, path: &Path) -> Option<DirectIo> {
        let entry = self.find(path)?;
        let Some(disk) = &entry.disk else { return Some(DirectIo::Aligned { memory: 4, offset: 512 }) };
        let block = disk.queue.logical_block?;
        Some(DirectIo::Aligned { memory: block, offset: block })
    }

    fn file_system(&self, path: &Path) -> Result<FileSystem, Refusal> {
        const EXT4: i64 = 0xef53;
        match self.find(path) {
            None => Err(Refusal::of(libc::ENOENT)),
            Some(_) if absolute(path).starts_with("/sys") => {
                Ok(FileSystem { magic: FileSystem::SYSFS, block: 4096, bytes: 0, available: 0 })
            }
            Some(_) => Ok(FileSystem { magic: EXT4, block: 4096, bytes: 1 << 40, available: 1 << 40 }),
        }
    }

    fn current_directory(&self) -> Result<PathBuf, Refusal> {
        Ok(Self::CURRENT.into())
    }

    fn cpus(&self) -> Cpus {
        self.cpus.clone()
    }

    fn nodes(&self) -> Result<Vec<Node>, Refusal> {
        self.nodes.clone()
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn clock(&self, number: i32) -> Result<(), Refusal> {
        if (0..12).contains(&number) { Ok(()) } else { Err(Refusal::of(libc::EINVAL)) }
    }

    fn control_groups(&self) -> Result<Option<Hierarchy>, Refusal> {
        Ok(self.control_groups.clone())
    }

    fn tracing(&self) -> Result<crate::Tracing, Refusal> {
        Ok(crate::Tracing::default())
    }

    fn has_address(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.contains(&address)
    }

    fn random(&self) -> u64 {
        // Distinct numbers are random enough for a test.
        self.drawn.set(self.drawn.get() + 1);
        self.drawn.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::ZoneModel;

    #[test]
    fn files_are_found_by_all_their_names() {
        let machine = MadeUp::new().with_file("/data/sub/f", 7).with_file("g", 8).with_pipe("/data/p");
        assert_eq!(machine.size(Path::new("/data/./sub/../sub/f")), Ok(Some(7)));
        assert_eq!(machine.size(Path::new("/tmp/g")), Ok(Some(8)));
        assert_eq!(machine.file(Path::new("/data/sub")).unwrap().unwrap().kind, EntryKind::Directory);
        assert_eq!(machine.list(Path::new("/data")), Ok(vec![PathBuf::from("/data/sub/f")]));
        assert_eq!(machine.file(Path::new("/data/none")), Ok(None));
        assert!(machine.among_devices(Path::new("/dev/none")) && !machine.among_devices(Path::new("none")));
    }

    #[test]
    fn devices() {
        let zones =
            Zones { model: ZoneModel::HostManaged, size: 256 << 20, count: 64, most_open: 8, most_active: 8 };
        let machine = MadeUp::new()
            .with_block_device("/dev/zns", 16 << 30)
            .zoned("/dev/zns", zones)
            .with_block_device("/dev/sda", 1 << 30)
            .used("/dev/sda", InUse::Mounted("/".into()));
        let [zns, sda] = ["/dev/zns", "/dev/sda"].map(Path::new);
        assert_eq!(machine.disk(zns).unwrap().queue.zones, Some(zones));
        assert_eq!(machine.disk(sda).unwrap().queue.zones, None);
        assert_eq!((machine.in_use(zns), machine.in_use(sda)), (None, Some(InUse::Mounted("/".into()))));
        let number = machine.file(zns).unwrap().unwrap().block_device().unwrap();
        assert_eq!(machine.device_node(number).as_deref(), Some(zns));
    }

    #[test]
    fn refusals() {
        let machine = MadeUp::new().refused("/secret", libc::EACCES).with_file("/f", 0).read_only("/f");
        assert_eq!(machine.file(Path::new("/secret")), Err(Refusal::of(libc::EACCES)));
        assert_eq!(machine.access(Path::new("/f"), Access::Write), Err(Refusal::of(libc::EACCES)));
    }
}
