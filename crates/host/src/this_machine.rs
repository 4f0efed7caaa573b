//! The machine that the program runs on.

use crate::control_groups::Hierarchy;
use crate::cpus::{Cpus, Node};
use crate::device_class::DeviceClass;
use crate::device_number::DeviceNumber;
use crate::direct_io::DirectIo;
use crate::disks::{AtomicWrites, Disk};
use crate::file_systems::FileSystem;
use crate::files::{Access, EntryKind, FileFacts};
use crate::files::{access, among_devices, device_node, device_size, list, look, place_of};
use crate::in_use::InUse;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::refusal::Refusal;
use crate::{Machine, Namespace, Zone, disks, in_use};
use iolite_os::zones::ZonedDevice;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::hash::Hash;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Earlier answers, by subject.
#[derive(Debug)]
struct Known<K, V>(RefCell<HashMap<K, V>>);

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Known(RefCell::default())
    }
}

impl<K: Hash + Eq, V: Clone> Known<K, V> {
    fn get<Q>(&self, asked: &Q, find: impl FnOnce() -> V) -> V
    where
        Q: ?Sized + Hash + Eq + ToOwned<Owned = K>,
        K: std::borrow::Borrow<Q>,
    {
        if let Some(known) = self.0.borrow().get(asked) {
            return known.clone();
        }
        let found = find();
        self.0.borrow_mut().insert(asked.to_owned(), found.clone());
        found
    }
}

/// The machine that the program runs on. Each fact is read once and then remembered.
#[derive(Debug, Default)]
pub struct ThisMachine {
    files: Known<PathBuf, Result<Option<FileFacts>, Refusal>>,
    device_sizes: Known<PathBuf, Result<Option<u64>, Refusal>>,
    namespaces: Known<PathBuf, Result<Option<Namespace>, Refusal>>,
    lists: Known<PathBuf, Result<Vec<PathBuf>, Refusal>>,
    in_use: Known<PathBuf, Option<InUse>>,
    disks: Known<DeviceNumber, Option<Disk>>,
    cpus: OnceCell<Cpus>,
    nodes: OnceCell<Result<Vec<Node>, Refusal>>,
    memory: OnceCell<Memory>,
    limits: OnceCell<Limits>,
    control_groups: OnceCell<Result<Option<Hierarchy>, Refusal>>,
    tracing: OnceCell<Result<crate::Tracing, Refusal>>,
}

impl ThisMachine {
    /// This machine, without any facts read yet.
    pub fn new() -> ThisMachine {
        ThisMachine::default()
    }
}

impl Machine for ThisMachine {
    fn file(&self, path: &Path) -> Result<Option<FileFacts>, Refusal> {
        self.files.get(path, || look(path))
    }

    fn place(&self, path: &Path) -> PathBuf {
        place_of(path)
    }

    fn size(&self, path: &Path) -> Result<Option<u64>, Refusal> {
        Ok(match self.file(path)? {
            Some(FileFacts { kind: EntryKind::Regular, bytes, .. }) => Some(bytes),
            Some(found) if found.is_block_device() => {
                self.device_sizes.get(path, || device_size(path).map(Some))?
            }
            Some(FileFacts { class: Some(class), device: Some(number), .. }) => {
                self.device_sizes.get(path, || class.size(path, number))?
            }
            _ => None,
        })
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, Refusal> {
        self.lists.get(directory, || list(directory))
    }

    fn access(&self, path: &Path, wanted: Access) -> Result<(), Refusal> {
        access(path, wanted)
    }

    fn among_devices(&self, path: &Path) -> bool {
        among_devices(path)
    }

    fn in_use(&self, path: &Path) -> Option<InUse> {
        self.in_use.get(path, || in_use::in_use(path))
    }

    fn device_node(&self, number: DeviceNumber) -> Option<PathBuf> {
        device_node(number)
    }

    fn disk(&self, path: &Path) -> Option<Disk> {
        let device = disks::device_below(path)?;
        self.disks.get(&device, || Disk::read(&disks::directory_of(device)?))
    }

    fn zones(&self, path: &Path) -> Result<Option<Vec<Zone>>, Refusal> {
        let is_zoned = match self.file(path)? {
            Some(found) if found.is_block_device() => {
                self.disk(path).is_some_and(|disk| disk.queue.zones.is_some())
            }
            Some(FileFacts {
                class: Some(class @ DeviceClass::ScsiGeneric), device: Some(number), ..
            }) => {
                let directory = class.block_device(number).and_then(disks::directory_of);
                directory.and_then(|disk| Disk::read(&disk)).is_some_and(|disk| disk.queue.zones.is_some())
            }
            Some(_) => self.namespace(path)?.is_some_and(|namespace| namespace.zones.is_some()),
            None => false,
        };
        if !is_zoned {
            return Ok(None);
        }
        let zones = ZonedDevice::of(std::fs::File::open(path)?)?.report(0, usize::MAX)?;
        Ok((!zones.is_empty()).then_some(zones))
    }

    fn namespace(&self, path: &Path) -> Result<Option<Namespace>, Refusal> {
        match self.file(path)? {
            Some(FileFacts { class: Some(DeviceClass::NvmeGeneric), .. }) => {
                self.namespaces.get(path, || {
                    let device = std::fs::File::open(path).map_err(iolite_os::nvme::refusal)?;
                    Ok(Some(Namespace::of(device.as_raw_fd())?))
                })
            }
            _ => Ok(None),
        }
    }

    fn atomic_writes(&self, path: &Path) -> Option<AtomicWrites> {
        AtomicWrites::of(path)
    }

    fn direct_io(&self, path: &Path) -> Option<DirectIo> {
        DirectIo::of(path, || self.disk(path))
    }

    fn file_system(&self, path: &Path) -> Result<FileSystem, Refusal> {
        FileSystem::of(path)
    }

    fn current_directory(&self) -> Result<PathBuf, Refusal> {
        Ok(std::env::current_dir()?)
    }

    fn cpus(&self) -> Cpus {
        self.cpus.get_or_init(Cpus::read).clone()
    }

    fn nodes(&self) -> Result<Vec<Node>, Refusal> {
        self.nodes.get_or_init(Node::all).clone()
    }

    fn memory(&self) -> Memory {
        self.memory.get_or_init(Memory::now).clone()
    }

    fn limits(&self) -> Limits {
        *self.limits.get_or_init(Limits::read)
    }

    fn clock(&self, number: i32) -> Result<(), Refusal> {
        iolite_os::time::clock_ms(number as u32).map(|_| ()).map_err(Refusal::from)
    }

    fn control_groups(&self) -> Result<Option<Hierarchy>, Refusal> {
        self.control_groups.get_or_init(Hierarchy::read).clone()
    }

    fn tracing(&self) -> Result<crate::Tracing, Refusal> {
        self.tracing.get_or_init(crate::Tracing::read).clone()
    }

    fn has_address(&self, address: IpAddr) -> bool {
        // The system refuses addresses of other machines, unless it allows all addresses (net.ipv4.ip_nonlocal_bind).
        let refused = UdpSocket::bind((address, 0)).err();
        refused.is_none_or(|error| error.kind() != ErrorKind::AddrNotAvailable)
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        if iolite_os::by_number::getrandom(&mut bytes) == bytes.len() as isize {
            return u64::from_ne_bytes(bytes);
        }
        // Only very old kernels get here; the time is random enough for a workload.
        std::time::UNIX_EPOCH.elapsed().map_or(1, |elapsed| elapsed.as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_cached_per_machine_value() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        let machine = ThisMachine::new();
        assert_eq!(machine.size(&file), Ok(None));
        std::fs::write(&file, "123").unwrap();
        assert_eq!(machine.size(&file), Ok(None));
        assert_eq!(ThisMachine::new().size(&file), Ok(Some(3)));
    }

    #[test]
    fn clocks_are_known_by_number() {
        let machine = ThisMachine::new();
        assert_eq!(machine.clock(libc::CLOCK_REALTIME), Ok(()));
        assert_eq!(machine.clock(12345), Err(Refusal::of(libc::EINVAL)));
    }

    #[test]
    fn addresses_of_this_machine_are_known() {
        let machine = ThisMachine::new();
        assert!(machine.has_address("127.0.0.1".parse().unwrap()));
        let nonlocal = std::fs::read_to_string("/proc/sys/net/ipv4/ip_nonlocal_bind");
        if nonlocal.is_ok_and(|setting| setting.trim() == "0") {
            assert!(
                !machine.has_address("192.0.2.1".parse().unwrap()),
                "nobody has an address for documentation"
            );
        }
    }

    #[test]
    fn random_numbers_differ() {
        let machine = ThisMachine::new();
        assert_ne!(machine.random(), machine.random());
    }

    #[test]
    fn character_devices_and_directories_have_no_size() {
        let machine = ThisMachine::new();
        assert_eq!(machine.size(Path::new("/dev/null")), Ok(None));
        assert_eq!(machine.size(Path::new("/proc")), Ok(None));
    }
}
