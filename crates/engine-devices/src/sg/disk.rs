//! An open disk: the properties that commands depend on.

use iolite_options::engines::Target;
use iolite_os::explained;
use iolite_os::scsi::{self, Complaint, Header, Interface, Transfer};
use std::io;
use std::os::fd::RawFd;

/// Queries how many answers can be read without waiting (<scsi/sg.h>).
const SG_GET_NUM_WAITING: libc::c_ulong = 0x227d;

/// An open disk.
pub(super) struct Disk {
    /// It is the generic device, which queues.
    pub is_generic: bool,
    /// Bytes of a logical block.
    pub block: u64,
    /// A trim resets a zone.
    pub resets_zones: bool,
    /// The stream that was opened for the job.
    pub stream: Option<u16>,
    /// Commands under way.
    pub in_flight: usize,
}

impl Disk {
    pub(super) fn open(descriptor: RawFd, is_generic: bool, opens_stream: bool) -> io::Result<Disk> {
        let block = match scsi::capacity(descriptor, Interface::Third) {
            Ok(told) if told.block > 0 => u64::from(told.block),
            Ok(_) => return Err(io::Error::from_raw_os_error(libc::ENOMEDIUM)),
            Err(error) => return Err(without_scsi(error)),
        };
        let stream = if opens_stream { Some(open_stream(descriptor)?) } else { None };
        Ok(Disk { is_generic, block, resets_zones: false, stream, in_flight: 0 })
    }

    /// Closes the stream that was opened. The disk closes it, too, when it needs streams.
    pub(super) fn close(&self, descriptor: RawFd) {
        if let Some(stream) = self.stream {
            let command = stream_control(CLOSE, stream);
            let mut header = Header { cmd_len: command.len() as u8, cmdp: command.as_ptr(), ..Header::EMPTY };
            // SAFETY: the command lives through the call, and there is no data. An error has no consequence any more.
            let _ = unsafe { header.perform(descriptor) };
        }
    }
}

/// Only the driver knows whether a block device takes SCSI commands. If not, its answer is ENOTTY, or EINVAL for loop
/// devices.
fn without_scsi(error: io::Error) -> io::Error {
    match Target::Scsi.needed() {
        Some(needed) if matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => {
            explained(&error, format!("it is not {needed}"))
        }
        _ => error,
    }
}

const OPEN: u8 = 1;
const CLOSE: u8 = 2;

/// STREAM CONTROL of SBC-4.
fn stream_control(control: u8, stream: u16) -> [u8; 16] {
    let [high, low] = stream.to_be_bytes();
    let answer = if control == OPEN { 8 } else { 0 };
    [0x9e, control << 5 | 0x14, 0, 0, high, low, 0, 0, 0, 0, 0, 0, 0, answer, 0, 0]
}

/// Opens a stream. Returns its number.
fn open_stream(descriptor: RawFd) -> io::Result<u16> {
    let (command, mut answer, mut sense) = (stream_control(OPEN, 0), [0; 8], [0; 32]);
    let mut header = Header {
        dxfer_direction: Transfer::FromDevice as i32,
        cmd_len: command.len() as u8,
        cmdp: command.as_ptr(),
        dxfer_len: answer.len() as u32,
        dxferp: answer.as_mut_ptr(),
        mx_sb_len: sense.len() as u8,
        sbp: sense.as_mut_ptr(),
        ..Header::EMPTY
    };
    // SAFETY: all pointers are to arrays of the lengths that stand beside them, and live through the call.
    unsafe { header.perform(descriptor)? };
    match header.succeeded() {
        true => Ok(u16::from_be_bytes([answer[4], answer[5]])),
        false => Err(without_stream(&Complaint::of(&header, &sense, &command))),
    }
}

/// The disk has refused to open a stream.
fn without_stream(complaint: &Complaint) -> io::Error {
    let error = io::Error::from_raw_os_error(libc::EIO);
    let remedy = "stream_id=NUMBER writes to a stream that is open already";
    explained(&error, format!("the disk opens no stream (STREAM CONTROL): {complaint}; {remedy}"))
}

/// The number of answers of a generic device that have not been fetched.
pub(super) fn answers_waiting(descriptor: RawFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: the ioctl writes one int.
    match unsafe { libc::ioctl(descriptor, SG_GET_NUM_WAITING as _, &raw mut count) } {
        0 => Ok(usize::try_from(count).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_opened_and_closed_by_the_standard() {
        assert_eq!(stream_control(OPEN, 0), [0x9e, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
        assert_eq!(stream_control(CLOSE, 0x102), [0x9e, 0x54, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_disk_without_streams_is_reported_in_its_words() {
        let command = stream_control(OPEN, 0);
        let mut sense = [0; 32];
        (sense[0], sense[2], sense[12]) = (0x70, 5, 0x20);
        let header = Header { status: 2, driver_status: 8, sb_len_wr: 18, ..Header::EMPTY };
        let error = without_stream(&Complaint::of(&header, &sense, &command));
        assert_eq!(iolite_os::errno_of(&error), libc::EIO);
        let expected = "the disk opens no stream (STREAM CONTROL): illegal request (sense key 5h, code 20h/00h) to command 9e \
                        34 00 00 00 00 00 00 00 00 00 00 00 08 00 00; stream_id=NUMBER writes to a stream that is open already";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_device_without_scsi_commands_is_reported() {
        iolite_testing::or_skip!(iolite_testing::kernel::takes_ioctls());
        let null = std::fs::File::open("/dev/null").unwrap();
        let Err(error) = Disk::open(std::os::fd::AsRawFd::as_raw_fd(&null), false, false) else {
            panic!("it is not a disk")
        };
        assert_eq!(iolite_os::errno_of(&error), libc::ENOTTY);
        assert_eq!(error.to_string(), "it is not a disk that takes SCSI commands (/dev/sda or /dev/sg0)");
        let loop_device = without_scsi(io::Error::from_raw_os_error(libc::EINVAL));
        assert_eq!(loop_device.to_string(), error.to_string());
        let other = without_scsi(io::Error::from_raw_os_error(libc::EIO));
        assert_eq!(other.raw_os_error(), Some(libc::EIO));
    }
}
