//! NVMe commands passed through to a namespace: `nvme_passthru_cmd` and `nvme_uring_cmd` of <linux/nvme_ioctl.h>, which
//! have the same layout, and the answers of Identify, as the NVM Express Base and NVM Command Set Specifications define
//! them.

pub mod erasure;
mod identify;
mod status;
mod zone_geometry;
pub mod zones;

pub use identify::{Format, Guard, Handle, Namespace, PlacementSupport, Protection, handles};
pub use status::Status;
pub use zone_geometry::ZoneGeometry;

use crate::explained;
use iolite_types::describe_errno;
use std::io;
use std::os::fd::RawFd;

/// `NVME_IOCTL_ID`: the number of the namespace behind a descriptor.
const IOCTL_ID: libc::c_ulong = 0x4e40;
/// `NVME_IOCTL_ADMIN_CMD`
const IOCTL_ADMIN: libc::c_ulong = 0xc048_4e41;
/// `NVME_IOCTL_IO_CMD`
const IOCTL_IO: libc::c_ulong = 0xc048_4e43;

/// `NVME_URING_CMD_IO`: the operation of a ring's command whose address is that of the data.
pub const URING_IO: u32 = 0xc048_4e80;
/// `NVME_URING_CMD_IO_VEC`: the same, where the address is that of a vector, and the length counts its parts.
pub const URING_IO_VECTOR: u32 = 0xc048_4e81;

/// The minimum page size of controllers, in which they express limits. (The actual one is in a register that only the
/// driver can read; all known controllers have 4 KiB.)
pub const PAGE: u64 = 4096;

/// Structures that Identify returns (CNS).
pub mod structure {
    /// Of a namespace.
    pub const NAMESPACE: u8 = 0x00;
    /// Of a controller.
    pub const CONTROLLER: u8 = 0x01;
    /// The list of active namespaces.
    pub const ACTIVE: u8 = 0x02;
    /// The list of allocated namespaces, of the whole subsystem.
    pub const ALLOCATED: u8 = 0x10;
    /// Descriptors that name a namespace.
    pub const DESCRIPTORS: u8 = 0x03;
    /// Of a namespace, for one command set.
    pub const NAMESPACE_OF_SET: u8 = 0x05;
    /// Of a controller, for one command set.
    pub const CONTROLLER_OF_SET: u8 = 0x06;
}

/// Command sets (CSI).
pub mod command_set {
    /// The NVM Command Set.
    pub const NVM: u8 = 0;
    /// The Zoned Namespace Command Set.
    pub const ZONED: u8 = 2;
}

/// Opcodes of the NVM and the Zoned Namespace Command Set.
pub mod opcode {
    /// Flush
    pub const FLUSH: u8 = 0x00;
    /// Write
    pub const WRITE: u8 = 0x01;
    /// Read
    pub const READ: u8 = 0x02;
    /// Write Uncorrectable
    pub const WRITE_UNCORRECTABLE: u8 = 0x04;
    /// Compare
    pub const COMPARE: u8 = 0x05;
    /// Write Zeroes
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// Verify
    pub const VERIFY: u8 = 0x0c;

    /// I/O Management Receive
    pub const IO_MANAGEMENT_RECEIVE: u8 = 0x12;

    /// Zone Management Send
    pub const ZONE_MANAGEMENT_SEND: u8 = 0x79;
    /// Zone Management Receive
    pub const ZONE_MANAGEMENT_RECEIVE: u8 = 0x7a;
    /// Zone Append
    pub const ZONE_APPEND: u8 = 0x7d;

    /// The command's name in the standard.
    pub fn name(opcode: u8) -> &'static str {
        match opcode {
            FLUSH => "Flush",
            WRITE => "Write",
            READ => "Read",
            WRITE_UNCORRECTABLE => "Write Uncorrectable",
            COMPARE => "Compare",
            WRITE_ZEROES => "Write Zeroes",
            DATASET_MANAGEMENT => "Dataset Management",
            VERIFY => "Verify",
            IO_MANAGEMENT_RECEIVE => "I/O Management Receive",
            ZONE_MANAGEMENT_SEND => "Zone Management Send",
            ZONE_MANAGEMENT_RECEIVE => "Zone Management Receive",
            ZONE_APPEND => "Zone Append",
            _ => "command",
        }
    }
}

/// Opcodes of admin commands.
mod admin {
    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const IDENTIFY: u8 = 0x06;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_FEATURES: u8 = 0x0a;
    pub const DIRECTIVE_RECEIVE: u8 = 0x1a;
    pub const FORMAT: u8 = 0x80;
    pub const SANITIZE: u8 = 0x84;

    pub fn name(opcode: u8) -> &'static str {
        match opcode {
            GET_LOG_PAGE => "Get Log Page",
            IDENTIFY => "Identify",
            SET_FEATURES => "Set Features",
            GET_FEATURES => "Get Features",
            DIRECTIVE_RECEIVE => "Directive Receive",
            FORMAT => "Format NVM",
            SANITIZE => "Sanitize",
            _ => "admin command",
        }
    }
}

/// A command for the device. The dwords are the standard's; unnamed ones stay 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are the standard's")]
pub struct Command {
    pub opcode: u8,
    pub flags: u8,
    pub reserved: u16,
    pub nsid: u32,
    pub cdw2: u32,
    pub cdw3: u32,
    pub metadata: u64,
    pub address: u64,
    pub metadata_length: u32,
    pub data_length: u32,
    pub cdw10: u32,
    pub cdw11: u32,
    pub cdw12: u32,
    pub cdw13: u32,
    pub cdw14: u32,
    pub cdw15: u32,
    /// 0 = the driver's default.
    pub timeout_ms: u32,
    /// The first dword of the answer; in a ring's command, 0.
    pub result: u32,
}

impl Command {
    /// Bytes of the structure.
    pub const BYTES: usize = size_of::<Command>();

    /// As the kernel reads it.
    pub fn bytes(&self) -> [u8; Command::BYTES] {
        // SAFETY: the structure consists of integers without gaps between them, which the tests prove.
        unsafe { std::mem::transmute(*self) }
    }

    /// Sends it by an ioctl of an open device, and waits for its end.
    ///
    /// # Safety
    /// The addresses are those of memory that is valid for the corresponding lengths.
    unsafe fn perform(&mut self, device: RawFd, ioctl: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the kernel reads and writes the command and the memory it points to, as the caller promises.
        match unsafe { libc::ioctl(device, ioctl as _, &raw mut *self) } {
            0 => Ok(()),
            status @ 1.. => {
                let status = Status::of(status as u16);
                let name =
                    if ioctl == IOCTL_ADMIN { admin::name(self.opcode) } else { opcode::name(self.opcode) };
                let error = io::Error::from_raw_os_error(status.errno());
                Err(explained(&error, format!("{status} to {name}")))
            }
            _ => Err(refusal(io::Error::last_os_error())),
        }
    }
}

/// The error for a command that the kernel refuses to pass on.
pub fn refusal(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(errno @ (libc::EACCES | libc::EPERM)) => explained(&error, forbidden(errno)),
        Some(errno) if is_cancelled(errno) => {
            explained(&io::Error::from_raw_os_error(libc::EIO), CANCELLED.to_owned())
        }
        _ => error,
    }
}

/// Whether the driver has cancelled a command, for which it returns EINTR. (Signals do not interrupt commands.)
/// Repeating it means waiting for another timeout.
pub fn is_cancelled(errno: i32) -> bool {
    matches!(errno, libc::EINTR | libc::ECANCELED)
}

/// The message for a command that the driver has cancelled.
pub const CANCELLED: &str =
    "the driver has cancelled the command, after a timeout or a reset of the controller";

/// The remedy for a command that the kernel refuses to pass on.
pub fn forbidden(errno: i32) -> String {
    let words = describe_errno(errno);
    format!(
        "{words}: the kernel passes commands to a device for root only (CAP_SYS_ADMIN); since Linux 6.2 also for whoever may \
         read and, to change data, write its node"
    )
}

/// Queries the number of the namespace behind a descriptor.
///
/// # Errors
/// It is not an NVMe namespace (ENOTTY).
pub fn number(device: RawFd) -> io::Result<u32> {
    // SAFETY: the ioctl has no argument.
    match unsafe { libc::ioctl(device, IOCTL_ID as _) } {
        number @ 1.. => Ok(number as u32),
        0 => Err(io::Error::from_raw_os_error(libc::ENOTTY)),
        _ => Err(refusal(io::Error::last_os_error())),
    }
}

/// Flushes the device's write cache to the medium.
///
/// # Errors
/// The device refuses it.
pub fn flush(device: RawFd, nsid: u32) -> io::Result<()> {
    let mut command = Command { opcode: opcode::FLUSH, nsid, ..Command::default() };
    // SAFETY: there is no data.
    unsafe { command.perform(device, IOCTL_IO) }
}

/// I/O Management Receive: the first bytes of an answer, as many as fit (a multiple of 4). A device may refuse a
/// request for more bytes than it has.
///
/// # Errors
/// The device does not know the operation, or it has fewer bytes.
fn receive(device: RawFd, nsid: u32, operation: u8, answer: &mut [u8]) -> io::Result<()> {
    let mut command = Command {
        opcode: opcode::IO_MANAGEMENT_RECEIVE,
        nsid,
        address: answer.as_mut_ptr() as u64,
        data_length: answer.len() as u32,
        cdw10: operation.into(),
        // The number of dwords, less one.
        cdw11: answer.len() as u32 / 4 - 1,
        ..Command::default()
    };
    // SAFETY: the kernel writes at most the length of the answer.
    unsafe { command.perform(device, IOCTL_IO) }
}

/// Identify: the data of a namespace or its controller. Numbers of structures are in [`structure`], those of
/// command sets in [`command_set`].
///
/// # Errors
/// The device does not support the structure, or the user may not send the command.
pub fn identify(device: RawFd, nsid: u32, structure: u8, command_set: u8) -> io::Result<Box<[u8; 4096]>> {
    let mut answer = Box::new([0; 4096]);
    let command = Command {
        opcode: admin::IDENTIFY,
        nsid,
        cdw10: structure.into(),
        cdw11: u32::from(command_set) << 24,
        ..Command::default()
    };
    ask(device, command, &mut answer[..])?;
    Ok(answer)
}

/// Get Log Page: the first bytes of a page, as many as fit (a multiple of 4). `specific` is the Log Specific
/// Identifier, which for some pages is the number of an endurance group.
///
/// # Errors
/// The device does not know the page, or the user may not send the command.
pub fn log_page(device: RawFd, nsid: u32, page: u8, specific: u16, answer: &mut [u8]) -> io::Result<()> {
    // The number of dwords, less one, in two halves.
    let dwords = (answer.len() / 4) as u32 - 1;
    let command = Command {
        opcode: admin::GET_LOG_PAGE,
        nsid,
        cdw10: u32::from(page) | (dwords & 0xffff) << 16,
        cdw11: dwords >> 16 | u32::from(specific) << 16,
        ..Command::default()
    };
    ask(device, command, answer)
}

/// Get Features: the current value of a feature; only the first dword of the answer.
///
/// # Errors
/// The device does not know the feature, or the user may not send the command.
pub fn feature(device: RawFd, nsid: u32, feature: u8, dword11: u32) -> io::Result<u32> {
    let mut command = Command {
        opcode: admin::GET_FEATURES,
        nsid,
        cdw10: feature.into(),
        cdw11: dword11,
        ..Command::default()
    };
    // SAFETY: there is no data.
    unsafe { command.perform(device, IOCTL_ADMIN)? };
    Ok(command.result)
}

/// Directive Receive, Return Parameters: the parameters of a directive type (1 = streams) in a namespace.
///
/// # Errors
/// The device does not support the directive, or the user may not send the command.
pub fn directive(device: RawFd, nsid: u32, kind: u8, answer: &mut [u8]) -> io::Result<()> {
    const RETURN_PARAMETERS: u32 = 1;
    let command = Command {
        opcode: admin::DIRECTIVE_RECEIVE,
        nsid,
        cdw10: (answer.len() / 4) as u32 - 1,
        cdw11: RETURN_PARAMETERS | u32::from(kind) << 8,
        ..Command::default()
    };
    ask(device, command, answer)
}

/// Sends an admin command that answers with data.
fn ask(device: RawFd, command: Command, answer: &mut [u8]) -> io::Result<()> {
    let mut command =
        Command { address: answer.as_mut_ptr() as u64, data_length: answer.len() as u32, ..command };
    // SAFETY: the kernel writes at most the length of the answer.
    unsafe { command.perform(device, IOCTL_ADMIN) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn commands_have_the_kernels_layout() {
        assert_eq!(Command::BYTES, 72);
        let command = Command {
            opcode: 1,
            flags: 2,
            reserved: 0x0403,
            nsid: 0x0807_0605,
            cdw2: 0x0c0b_0a09,
            cdw3: 0x100f_0e0d,
            metadata: 0x1817_1615_1413_1211,
            address: 0x201f_1e1d_1c1b_1a19,
            metadata_length: 0x2423_2221,
            data_length: 0x2827_2625,
            cdw10: 0x2c2b_2a29,
            cdw11: 0x302f_2e2d,
            cdw12: 0x3433_3231,
            cdw13: 0x3837_3635,
            cdw14: 0x3c3b_3a39,
            cdw15: 0x403f_3e3d,
            timeout_ms: 0x4443_4241,
            result: 0x4847_4645,
        };
        let expected: Vec<u8> = (1..=72).collect();
        assert_eq!(command.bytes()[..], expected[..], "every byte has its place, and there are no gaps");
    }

    #[test]
    fn ring_operations_are_numbered_as_ioctls_are() {
        // _IOWR('N', number, a structure of 72 bytes)
        let number = |number: u32| 3 << 30 | 72 << 16 | u32::from(b'N') << 8 | number;
        assert_eq!((URING_IO, URING_IO_VECTOR), (number(0x80), number(0x81)));
        assert_eq!((IOCTL_ADMIN as u32, IOCTL_IO as u32), (number(0x41), number(0x43)));
    }

    #[test]
    fn files_that_are_not_namespaces_have_no_number() {
        iolite_testing::or_skip!(iolite_testing::kernel::takes_ioctls());
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(number(null.as_raw_fd()).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert!(Namespace::of(null.as_raw_fd()).is_err());
    }

    #[test]
    fn a_missing_permission_is_explained() {
        let told = refusal(io::Error::from_raw_os_error(libc::EACCES));
        assert_eq!(crate::errno_of(&told), libc::EACCES);
        assert!(told.to_string().starts_with("Permission denied: the kernel passes commands"), "{told}");
        assert_eq!(refusal(io::Error::from_raw_os_error(libc::ENXIO)).raw_os_error(), Some(libc::ENXIO));
        let cancelled = refusal(io::Error::from_raw_os_error(libc::EINTR));
        assert_eq!((crate::errno_of(&cancelled), cancelled.to_string()), (libc::EIO, CANCELLED.to_owned()));
    }
}
