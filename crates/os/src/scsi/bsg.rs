//! SCSI commands by the block layer's generic driver: version 4 of the generic interface (`sg_io_v4`), and the commands that
//! io_uring passes to it since Linux 7.1 (`bsg_uring_cmd`), both of <linux/bsg.h>.

use super::{SG_IO, TIMEOUT};
use std::io;
use std::os::fd::RawFd;

/// SCSI commands, of SCSI (`BSG_PROTOCOL_SCSI`, `BSG_SUB_PROTOCOL_SCSI_CMD`).
const PROTOCOL: u32 = 0;
const SUBPROTOCOL: u32 = 0;

/// The most sense data that the kernel copies (`SCSI_SENSE_BUFFERSIZE`), whatever the given length of the buffer.
pub const SENSE_BYTES: usize = 96;

/// `bsg_uring_cmd`: a command in the second half of a ring's entry of 128 bytes. It names the memory of the command itself, of
/// its sense data and of its data. One of the two lengths of data is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are the kernel's")]
pub struct RingCommand {
    pub request: u64,
    pub request_len: u32,
    pub protocol: u32,
    pub subprotocol: u32,
    pub max_response_len: u32,
    pub response: u64,
    pub dout_xferp: u64,
    pub dout_xfer_len: u32,
    pub dout_iovec_count: u32,
    pub din_xferp: u64,
    pub din_xfer_len: u32,
    pub din_iovec_count: u32,
    pub timeout_ms: u32,
    pub reserved: [u8; 12],
}

impl RingCommand {
    /// Bytes of the structure.
    pub const BYTES: usize = size_of::<RingCommand>();

    /// An entry without a command.
    pub const EMPTY: RingCommand = RingCommand {
        request: 0,
        request_len: 0,
        protocol: PROTOCOL,
        subprotocol: SUBPROTOCOL,
        max_response_len: 0,
        response: 0,
        dout_xferp: 0,
        dout_xfer_len: 0,
        dout_iovec_count: 0,
        din_xferp: 0,
        din_xfer_len: 0,
        din_iovec_count: 0,
        timeout_ms: TIMEOUT,
        reserved: [0; 12],
    };

    /// As the kernel reads it.
    pub fn bytes(&self) -> [u8; RingCommand::BYTES] {
        // SAFETY: the structure consists of integers without gaps between them, which the tests prove.
        unsafe { std::mem::transmute(*self) }
    }
}

/// How a command ended: the first extra word of its completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status of the device.
    pub device_status: u8,
    /// The status of the driver.
    pub driver_status: u8,
    /// The status of the adapter.
    pub host_status: u8,
    /// Bytes of sense data.
    pub sense: u8,
    /// Bytes of the data that were not transferred.
    pub missing: u32,
}

impl Answer {
    /// Decodes the word.
    pub const fn of(word: u64) -> Answer {
        let [device_status, driver_status, host_status, sense, a, b, c, d] = word.to_le_bytes();
        let missing = u32::from_le_bytes([a, b, c, d]);
        Answer { device_status, driver_status, host_status, sense, missing }
    }

    /// Whether the device, the adapter and the driver report success.
    pub const fn succeeded(&self) -> bool {
        super::succeeded(self.device_status, self.host_status as u16, self.driver_status as u16)
    }
}

/// `sg_io_v4`: a command and its result. The fields are the kernel's.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Header {
    guard: i32,
    protocol: u32,
    subprotocol: u32,
    request_len: u32,
    request: u64,
    request_tag: u64,
    request_attr: u32,
    request_priority: u32,
    request_extra: u32,
    max_response_len: u32,
    response: u64,
    dout_iovec_count: u32,
    dout_xfer_len: u32,
    din_iovec_count: u32,
    din_xfer_len: u32,
    dout_xferp: u64,
    din_xferp: u64,
    timeout: u32,
    flags: u32,
    usr_ptr: u64,
    spare_in: u32,
    driver_status: u32,
    transport_status: u32,
    device_status: u32,
    retry_delay: u32,
    info: u32,
    duration: u32,
    response_len: u32,
    din_resid: i32,
    dout_resid: i32,
    generated_tag: u64,
    spare_out: u32,
    padding: u32,
}

/// Sends a command that returns data or no data. Returns whether it succeeded.
pub(super) fn ask(device: RawFd, command: &[u8], data: &mut [u8]) -> io::Result<bool> {
    let mut header = Header {
        guard: i32::from(b'Q'),
        protocol: PROTOCOL,
        subprotocol: SUBPROTOCOL,
        request_len: command.len() as u32,
        request: command.as_ptr() as u64,
        din_xfer_len: data.len() as u32,
        din_xferp: if data.is_empty() { 0 } else { data.as_mut_ptr() as u64 },
        timeout: TIMEOUT,
        ..Header::default()
    };
    loop {
        // SAFETY: the kernel reads and writes the header; its pointers are to slices of the given lengths.
        if unsafe { libc::ioctl(device, SG_IO as _, &raw mut header) } == 0 {
            let statuses = (header.device_status, header.transport_status, header.driver_status);
            return Ok(super::succeeded(statuses.0 as u8, statuses.1 as u16, statuses.2 as u16));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// <linux/bsg.h> has the structures and says what the bits of the answer are.
    #[test]
    fn commands_have_the_kernels_layout() {
        assert_eq!(RingCommand::BYTES, 80, "static_assert(sizeof(struct bsg_uring_cmd) == 80)");
        let command = RingCommand {
            request: 0x0807_0605_0403_0201,
            request_len: 0x0c0b_0a09,
            protocol: 0x100f_0e0d,
            subprotocol: 0x1413_1211,
            max_response_len: 0x1817_1615,
            response: 0x201f_1e1d_1c1b_1a19,
            dout_xferp: 0x2827_2625_2423_2221,
            dout_xfer_len: 0x2c2b_2a29,
            dout_iovec_count: 0x302f_2e2d,
            din_xferp: 0x3837_3635_3433_3231,
            din_xfer_len: 0x3c3b_3a39,
            din_iovec_count: 0x403f_3e3d,
            timeout_ms: 0x4443_4241,
            reserved: [0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f, 0x50],
        };
        let expected: Vec<u8> = (1..=80).collect();
        assert_eq!(command.bytes()[..], expected[..], "every byte has its place, and there are no gaps");
    }

    #[test]
    fn headers_have_the_kernels_layout() {
        assert_eq!(size_of::<Header>(), 160);
        let places = [
            (offset_of!(Header, request), 16),
            (offset_of!(Header, max_response_len), 44),
            (offset_of!(Header, response), 48),
            (offset_of!(Header, din_xfer_len), 68),
            (offset_of!(Header, dout_xferp), 72),
            (offset_of!(Header, timeout), 88),
            (offset_of!(Header, usr_ptr), 96),
            (offset_of!(Header, driver_status), 108),
            (offset_of!(Header, device_status), 116),
            (offset_of!(Header, din_resid), 136),
            (offset_of!(Header, generated_tag), 144),
        ];
        assert!(places.iter().all(|(place, expected)| place == expected), "{places:?}");
    }

    #[test]
    fn answers_are_taken_apart() {
        let answer = Answer::of(0x0000_0200_1203_0802);
        let expected = Answer { device_status: 2, driver_status: 8, host_status: 3, sense: 18, missing: 512 };
        assert_eq!(answer, expected);
        assert!(!answer.succeeded() && Answer::of(0).succeeded() && Answer::of(4).succeeded());
        assert!(!Answer::of(0x0001_0000).succeeded(), "the adapter is not content");
        assert!(Answer::of(0x200 << 32).succeeded(), "a short transfer is none of the statuses");
    }
}
