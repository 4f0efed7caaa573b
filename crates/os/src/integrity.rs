//! Metadata of blocks, and write streams, of block devices, as the kernel reports them.

use crate::nvme::{Guard, Protection};
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::{fs, mem};

/// The metadata of a device's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integrity {
    /// Bytes of data per piece of metadata.
    pub interval: u32,
    /// Bytes of this metadata.
    pub metadata: u16,
    /// The protection information in it, if there is any.
    pub protection: Option<Protection>,
}

/// `struct logical_block_metadata_cap` of <linux/fs.h>
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Capability {
    flags: u32,
    interval: u16,
    size: u8,
    opaque_size: u8,
    opaque_offset: u8,
    information_size: u8,
    information_offset: u8,
    guard: u8,
    application_size: u8,
    reference_size: u8,
    storage_size: u8,
    padding: u8,
}

/// `FS_IOC_GETLBMD_CAP`
const GET_CAPABILITY: libc::c_ulong = 0xc010_1502;

/// `LBMD_PI_CAP_REFTAG`: there is a reference tag.
const HAS_REFERENCE: u32 = 1 << 1;

/// `LBMD_PI_CSUM_…`
const NO_GUARD: u8 = 0;
const GUARD_CRC16: u8 = 2;
const GUARD_CRC64: u8 = 4;

/// The metadata of an open block device.
///
/// # Errors
/// The device has no metadata, or in an unknown format; the error is a message for the user.
pub fn of(device: RawFd) -> Result<Integrity, String> {
    let mut told = Capability::default();
    // SAFETY: the kernel writes one structure.
    match unsafe { libc::ioctl(device, GET_CAPABILITY as _, &raw mut told) } {
        0 => of_capability(&told),
        _ => of_sysfs(&directory(device)?),
    }
}

const NONE: &str = "the device has no metadata with its blocks";

fn of_capability(told: &Capability) -> Result<Integrity, String> {
    if told.size == 0 || told.interval == 0 {
        return Err(NONE.to_owned());
    }
    let (size, at) = (u16::from(told.information_size), u16::from(told.information_offset));
    let metadata = u16::from(told.size);
    let guard = match told.guard {
        NO_GUARD => None,
        GUARD_CRC16 => Some(Guard::Crc16),
        GUARD_CRC64 => Some(Guard::Crc64),
        other => {
            return Err(format!(
                "the guard of its protection information is of kind {other}, which is not a CRC"
            ));
        }
    };
    if guard.is_some() && at != 0 && at + size != metadata {
        return Err("its protection information is in the middle of the metadata".to_owned());
    }
    let protection = guard.map(|guard| Protection {
        kind: if told.flags & HAS_REFERENCE != 0 { 1 } else { 3 },
        guard,
        first: at == 0,
        storage_tag: 0,
    });
    Ok(Integrity { interval: told.interval.into(), metadata, protection })
}

/// From sysfs, for kernels before 6.17. They report only protection information, so no other metadata is assumed.
fn of_sysfs(directory: &Path) -> Result<Integrity, String> {
    let read = |name: &str| fs::read_to_string(directory.join("integrity").join(name)).unwrap_or_default();
    let format = read("format");
    let (guard, metadata) = match format.trim() {
        "T10-DIF-TYPE1-CRC" | "T10-DIF-TYPE3-CRC" => (Guard::Crc16, 8),
        "EXT-DIF-TYPE1-CRC64" | "EXT-DIF-TYPE3-CRC64" => (Guard::Crc64, 16),
        "" | "none" => return Err(NONE.to_owned()),
        other => {
            return Err(format!(
                "the kernel tells no size of its metadata, of format {other}; Linux does since 6.17"
            ));
        }
    };
    let kind = if format.contains("TYPE3") { 3 } else { 1 };
    let interval = read("protection_interval_bytes").trim().parse().ok().filter(|&bytes: &u32| bytes > 0);
    let interval = interval.ok_or("the kernel does not report the interval of its protection information")?;
    let protection = Some(Protection { kind, guard, first: true, storage_tag: 0 });
    Ok(Integrity { interval, metadata, protection })
}

/// How many write streams an open block device has.
///
/// # Errors
/// It has none, or the kernel does not support them; the error is a message for the user.
pub fn write_streams(device: RawFd) -> Result<u16, String> {
    let told = fs::read_to_string(directory(device)?.join("queue/max_write_streams"));
    let told = told.map_err(|_| "the kernel has no write streams, which Linux has since 6.16".to_owned())?;
    match told.trim().parse() {
        Err(_) => Err(format!("the kernel reports \"{}\" as the number of its write streams", told.trim())),
        Ok(0) => {
            Err("the device says that it has no write streams (max_write_streams of its queue is 0)"
                .to_owned())
        }
        Ok(most) => Ok(most),
    }
}

/// The directory of an open block device in sysfs; of a partition, that of the whole device.
fn directory(device: RawFd) -> Result<PathBuf, String> {
    // SAFETY: all bytes zero are a valid structure.
    let mut found: libc::stat = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one structure.
    if unsafe { libc::fstat(device, &raw mut found) } != 0 {
        return Err(iolite_types::describe_error(&io::Error::last_os_error()));
    }
    if found.st_mode & libc::S_IFMT != libc::S_IFBLK {
        return Err("it is not a block device".to_owned());
    }
    let (major, minor) = (libc::major(found.st_rdev), libc::minor(found.st_rdev));
    let own = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // The link has to be followed first: a partition is a directory of its device.
    let own = own.canonicalize().unwrap_or(own);
    match own.parent() {
        Some(whole) if own.join("partition").exists() => Ok(whole.to_owned()),
        _ => Ok(own),
    }
}

/// `IORING_FEAT_RW_ATTR`
const TAKES_ATTRIBUTES: u32 = 1 << 16;

/// Whether rings take attributes with reads and writes (since Linux 6.14).
pub fn rings_take_attributes() -> bool {
    // `struct io_uring_params`: 30 words, of which the sixth has the features.
    let mut parameters = [0u32; 30];
    // SAFETY: the kernel reads and writes one structure of this size.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    if ring < 0 {
        return false;
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    unsafe { libc::close(ring as libc::c_int) };
    parameters[5] & TAKES_ATTRIBUTES != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    /// The structure that Linux 6.18 fills for a namespace with 16 bytes of metadata, 8 of them protection information at the end.
    #[test]
    fn capabilities_are_read() {
        assert_eq!((size_of::<Capability>(), mem::offset_of!(Capability, guard)), (16, 11));
        let told = Capability {
            flags: 3,
            interval: 4096,
            size: 16,
            opaque_size: 8,
            information_size: 8,
            information_offset: 8,
            guard: GUARD_CRC16,
            ..Capability::default()
        };
        let protection = Protection { kind: 1, guard: Guard::Crc16, first: false, storage_tag: 0 };
        let expected = Integrity { interval: 4096, metadata: 16, protection: Some(protection) };
        assert_eq!(of_capability(&told), Ok(expected));
        let first = Capability { flags: 1, information_offset: 0, guard: GUARD_CRC64, ..told };
        let protection = Protection { kind: 3, guard: Guard::Crc64, first: true, storage_tag: 0 };
        assert_eq!(of_capability(&first).unwrap().protection, Some(protection));
        let plain = Capability { guard: NO_GUARD, information_size: 0, information_offset: 0, ..told };
        assert_eq!(of_capability(&plain).unwrap().protection, None);
        assert_eq!(of_capability(&Capability::default()), Err(NONE.to_owned()));
        for (wrong, words) in [
            (Capability { guard: 1, ..told }, "kind 1"),
            (Capability { information_offset: 4, ..told }, "in the middle"),
        ] {
            let why = of_capability(&wrong).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn older_kernels_report_integrity_in_sysfs() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(of_sysfs(directory.path()), Err(NONE.to_owned()));
        fs::create_dir(directory.path().join("integrity")).unwrap();
        let put =
            |name: &str, text: &str| fs::write(directory.path().join("integrity").join(name), text).unwrap();
        put("format", "EXT-DIF-TYPE3-CRC64\n");
        put("protection_interval_bytes", "4096\n");
        let protection = Protection { kind: 3, guard: Guard::Crc64, first: true, storage_tag: 0 };
        let expected = Integrity { interval: 4096, metadata: 16, protection: Some(protection) };
        assert_eq!(of_sysfs(directory.path()), Ok(expected));
        for wrong in ["", "0\n", "x"] {
            put("protection_interval_bytes", wrong);
            assert!(
                of_sysfs(directory.path()).unwrap_err().contains("interval of its protection information")
            );
        }
        put("format", "nop\n");
        assert!(of_sysfs(directory.path()).unwrap_err().contains("format nop; Linux does since 6.17"));
    }

    #[test]
    fn files_have_neither() {
        let file = tempfile::tempfile().unwrap();
        let why = "it is not a block device";
        assert_eq!(write_streams(file.as_raw_fd()), Err(why.to_owned()));
        assert!(of(file.as_raw_fd()).is_err());
    }
}
