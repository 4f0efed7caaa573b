//! SCSI commands by the kernel's generic interface, version 3: `sg_io_hdr` of <scsi/sg.h>, documented in the kernel's
//! Documentation/scsi/scsi-generic.rst and <https://sg.danny.cz/sg/p/sg_v3_ho.html>. Nodes of the block layer's generic
//! driver have version 4 ([`bsg`]).

pub mod bsg;
pub mod erasure;
mod sense;
pub mod zones;

pub use self::sense::Complaint;

use crate::explained;
use std::io;
use std::os::fd::RawFd;

/// The ioctl that sends a command and waits for its end.
const SG_IO: libc::c_ulong = 0x2285;

/// Milliseconds after which the kernel aborts a command.
pub const TIMEOUT: u32 = 60_000;

/// The interface that a node of a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Version 3: block devices and generic devices (`/dev/sda`, `/dev/sg0`).
    Third,
    /// Version 4: the nodes of the block layer's generic driver (`/dev/bsg/0:0:0:0`).
    Fourth,
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Transfer {
    /// There is no data.
    None = -1,
    /// To the device.
    ToDevice = -2,
    /// From the device.
    FromDevice = -3,
}

/// `sg_io_hdr`: a command and its result. The fields are the kernel's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are the kernel's")]
pub struct Header {
    pub interface_id: i32,
    pub dxfer_direction: i32,
    pub cmd_len: u8,
    pub mx_sb_len: u8,
    pub iovec_count: u16,
    pub dxfer_len: u32,
    pub dxferp: *mut u8,
    pub cmdp: *const u8,
    pub sbp: *mut u8,
    pub timeout: u32,
    pub flags: u32,
    pub pack_id: i32,
    pub usr_ptr: usize,
    pub status: u8,
    pub masked_status: u8,
    pub msg_status: u8,
    pub sb_len_wr: u8,
    pub host_status: u16,
    pub driver_status: u16,
    pub resid: i32,
    pub duration: u32,
    pub info: u32,
}

impl Header {
    /// Poll the device for the end of the command (`SGV4_FLAG_HIPRI`).
    pub const POLLED: u32 = 0x800;

    /// A header without a command.
    pub const EMPTY: Header = Header {
        interface_id: b'S' as i32,
        dxfer_direction: Transfer::None as i32,
        cmd_len: 0,
        mx_sb_len: 0,
        iovec_count: 0,
        dxfer_len: 0,
        dxferp: std::ptr::null_mut(),
        cmdp: std::ptr::null(),
        sbp: std::ptr::null_mut(),
        timeout: TIMEOUT,
        flags: 0,
        pack_id: 0,
        usr_ptr: 0,
        status: 0,
        masked_status: 0,
        msg_status: 0,
        sb_len_wr: 0,
        host_status: 0,
        driver_status: 0,
        resid: 0,
        duration: 0,
        info: 0,
    };

    /// Whether the device, the adapter and the driver report success.
    pub fn succeeded(&self) -> bool {
        succeeded(self.status, self.host_status, self.driver_status)
    }

    /// Sends the command through an open device and waits for its end.
    ///
    /// # Errors
    /// The command could not be sent. The device's own errors are in the header.
    ///
    /// # Safety
    /// The pointers are valid for the corresponding lengths; for a transfer from the device, the data is writable.
    pub unsafe fn perform(&mut self, device: RawFd) -> io::Result<()> {
        loop {
            // SAFETY: the caller promises that the header's pointers are valid.
            if unsafe { libc::ioctl(device, SG_IO as _, &raw mut *self) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

/// Whether these statuses of a device, an adapter and a driver mean success.
pub(crate) const fn succeeded(device: u8, host: u16, driver: u16) -> bool {
    const GOOD: u8 = 0;
    /// The answer to PRE-FETCH if all blocks fit into the cache.
    const CONDITION_MET: u8 = 4;
    /// The driver reports that there is sense data; so does the device's status.
    const SENSE: u16 = 8;
    matches!(device, GOOD | CONDITION_MET) && host == 0 && driver & !SENSE == 0
}

/// The size of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Logical blocks.
    pub blocks: u64,
    /// Bytes per block.
    pub block: u32,
}

/// Queries the size of a device (READ CAPACITY).
///
/// # Errors
/// It does not accept SCSI commands, or not this one.
pub fn capacity(device: RawFd, interface: Interface) -> io::Result<Capacity> {
    /// The result of READ CAPACITY(10) if 32 bits do not suffice.
    const MORE: u32 = u32::MAX;
    let mut short = [0; 8];
    read(device, interface, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &mut short)?;
    let word = |bytes: &[u8]| bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    let last = word(&short[..4]);
    if last != u64::from(MORE) {
        return Ok(Capacity { blocks: last + 1, block: word(&short[4..]) as u32 });
    }
    let mut long = [0; 32];
    read(device, interface, &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], &mut long)?;
    Ok(Capacity { blocks: word(&long[..8]).saturating_add(1), block: word(&long[8..12]) as u32 })
}

/// Sends a command that returns data (or no data, with an empty slice), and waits for its end.
///
/// # Errors
/// It could not be sent, or the device refuses it (EIO, with the device's explanation by version 3).
pub fn read(device: RawFd, interface: Interface, command: &[u8], data: &mut [u8]) -> io::Result<()> {
    let refused = || io::Error::from_raw_os_error(libc::EIO);
    match interface {
        Interface::Third => ask(device, command, data)?.map_err(|complaint| explained(&refused(), complaint)),
        Interface::Fourth => bsg::ask(device, command, data)?.then_some(()).ok_or_else(refused),
    }
}

/// Sends a command by version 3. Returns the device's explanation if it refuses.
fn ask(device: RawFd, command: &[u8], data: &mut [u8]) -> io::Result<Result<(), String>> {
    let mut sense = [0; 32];
    let transfer = if data.is_empty() { Transfer::None } else { Transfer::FromDevice };
    let mut header = Header {
        dxfer_direction: transfer as i32,
        cmd_len: command.len() as u8,
        cmdp: command.as_ptr(),
        dxfer_len: data.len() as u32,
        dxferp: data.as_mut_ptr(),
        mx_sb_len: sense.len() as u8,
        sbp: sense.as_mut_ptr(),
        ..Header::EMPTY
    };
    // SAFETY: all pointers are to slices of the given lengths that live through the call.
    unsafe { header.perform(device)? };
    let complaint = || Complaint::of(&header, &sense, command).to_string();
    Ok(if header.succeeded() { Ok(()) } else { Err(complaint()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn headers_have_the_kernels_layout() {
        assert_eq!(size_of::<Header>(), 88);
        assert_eq!(std::mem::offset_of!(Header, dxferp), 16);
        assert_eq!(std::mem::offset_of!(Header, status), 64);
        assert_eq!(std::mem::offset_of!(Header, info), 80);
    }

    #[test]
    fn devices_without_scsi_commands_have_no_capacity() {
        iolite_testing::or_skip!(iolite_testing::kernel::takes_ioctls());
        let null = std::fs::File::open("/dev/null").unwrap();
        for interface in [Interface::Third, Interface::Fourth] {
            let refused = capacity(null.as_raw_fd(), interface).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
        }
    }

    #[test]
    fn success_is_when_nobody_complains() {
        assert!(Header::EMPTY.succeeded());
        assert!(!Header { status: 2, driver_status: 8, ..Header::EMPTY }.succeeded());
        assert!(!Header { host_status: 1, ..Header::EMPTY }.succeeded());
        assert!(Header { status: 4, ..Header::EMPTY }.succeeded(), "PRE-FETCH has found room for all");
    }
}
