//! The status of a command, in the standard's words.

use std::fmt;

/// The status of a command: its type and code, without the bits about retrying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

/// Generic: of any command.
const GENERIC: u8 = 0;
/// Specific to the command.
const SPECIFIC: u8 = 1;
/// Of the medium, and of the integrity of data.
const MEDIA: u8 = 2;
/// Of the path to the device.
const PATH: u8 = 3;

impl Status {
    /// Decodes the kernel's result: the status code in the lower eight bits, its type in the three above.
    pub const fn of(field: u16) -> Status {
        Status(field & 0x7ff)
    }

    /// The status code type.
    pub const fn kind(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The status code.
    pub const fn code(self) -> u8 {
        self.0 as u8
    }

    /// The system error for this status, as `continue_on_error` and `ignore_error` see it: `EIO` for lost data, `EILSEQ`
    /// for failed integrity checks.
    /// The block layer of the kernel has other errors for some of these (`ENODATA` for the medium, `ENOLINK` for paths,
    /// `EREMOTEIO` for an interrupted command), which those options do not know.
    pub fn errno(self) -> i32 {
        match (self.kind(), self.code()) {
            (GENERIC, 0x01 | 0x02 | 0x0b) | (SPECIFIC, 0x80) => libc::EOPNOTSUPP,
            (GENERIC, 0x80 | 0x82) => libc::EREMOTEIO,
            (GENERIC, 0x81) => libc::ENOSPC,
            (GENERIC, 0x83) => libc::EBADE,
            (GENERIC, 0x15 | 0x20) => libc::EACCES,
            (SPECIFIC, 0x81) | (MEDIA, 0x82..=0x85 | 0x88) => libc::EILSEQ,
            (SPECIFIC, 0xbd) => libc::EOVERFLOW,
            (SPECIFIC, 0xbe) => libc::ETOOMANYREFS,
            _ => libc::EIO,
        }
    }

    /// The name of the code in the standard; `None` = a code that data commands do not return.
    fn name(self) -> Option<&'static str> {
        let name = match (self.kind(), self.code()) {
            (GENERIC, 0x00) => "Successful Completion",
            (GENERIC, 0x01) => "Invalid Command Opcode",
            (GENERIC, 0x02) => "Invalid Field in Command",
            (GENERIC, 0x03) => "Command ID Conflict",
            (GENERIC, 0x04) => "Data Transfer Error",
            (GENERIC, 0x05) => "Commands Aborted due to Power Loss Notification",
            (GENERIC, 0x06) => "Internal Error",
            (GENERIC, 0x07) => "Command Abort Requested",
            (GENERIC, 0x08) => "Command Aborted due to SQ Deletion",
            (GENERIC, 0x0b) => "Invalid Namespace or Format",
            (GENERIC, 0x0c) => "Command Sequence Error",
            (GENERIC, 0x0d) => "Invalid SGL Segment Descriptor",
            (GENERIC, 0x0e) => "Invalid Number of SGL Descriptors",
            (GENERIC, 0x0f) => "Data SGL Length Invalid",
            (GENERIC, 0x10) => "Metadata SGL Length Invalid",
            (GENERIC, 0x11) => "SGL Descriptor Type Invalid",
            (GENERIC, 0x13) => "PRP Offset Invalid",
            (GENERIC, 0x14) => "Atomic Write Unit Exceeded",
            (GENERIC, 0x15) => "Operation Denied",
            (GENERIC, 0x1c) => "Sanitize Failed",
            (GENERIC, 0x1d) => "Sanitize In Progress",
            (GENERIC, 0x20) => "Namespace is Write Protected",
            (GENERIC, 0x21) => "Command Interrupted",
            (GENERIC, 0x22) => "Transient Transport Error",
            (GENERIC, 0x29) => "FDP Disabled",
            (GENERIC, 0x2a) => "Invalid Placement Handle List",
            (GENERIC, 0x80) => "LBA Out of Range",
            (GENERIC, 0x81) => "Capacity Exceeded",
            (GENERIC, 0x82) => "Namespace Not Ready",
            (GENERIC, 0x83) => "Reservation Conflict",
            (GENERIC, 0x84) => "Format In Progress",
            (SPECIFIC, 0x80) => "Conflicting Attributes",
            (SPECIFIC, 0x81) => "Invalid Protection Information",
            (SPECIFIC, 0x82) => "Attempted Write to Read Only Range",
            (SPECIFIC, 0x83) => "Command Size Limit Exceeded",
            (SPECIFIC, 0xb8) => "Zoned Boundary Error",
            (SPECIFIC, 0xb9) => "Zone Is Full",
            (SPECIFIC, 0xba) => "Zone Is Read Only",
            (SPECIFIC, 0xbb) => "Zone Is Offline",
            (SPECIFIC, 0xbc) => "Zone Invalid Write",
            (SPECIFIC, 0xbd) => "Too Many Active Zones",
            (SPECIFIC, 0xbe) => "Too Many Open Zones",
            (SPECIFIC, 0xbf) => "Invalid Zone State Transition",
            (MEDIA, 0x80) => "Write Fault",
            (MEDIA, 0x81) => "Unrecovered Read Error",
            (MEDIA, 0x82) => "End-to-end Guard Check Error",
            (MEDIA, 0x83) => "End-to-end Application Tag Check Error",
            (MEDIA, 0x84) => "End-to-end Reference Tag Check Error",
            (MEDIA, 0x85) => "Compare Failure",
            (MEDIA, 0x86) => "Access Denied",
            (MEDIA, 0x87) => "Deallocated or Unwritten Logical Block",
            (MEDIA, 0x88) => "End-to-End Storage Tag Check Error",
            (PATH, 0x00) => "Internal Path Error",
            (PATH, 0x01) => "Asymmetric Access Persistent Loss",
            (PATH, 0x02) => "Asymmetric Access Inaccessible",
            (PATH, 0x03) => "Asymmetric Access Transition",
            (PATH, 0x60) => "Controller Pathing Error",
            (PATH, 0x70) => "Host Pathing Error",
            (PATH, 0x71) => "Command Aborted By Host",
            _ => return None,
        };
        Some(name)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind() {
            GENERIC => "Generic Command Status",
            SPECIFIC => "Command Specific Status",
            MEDIA => "Media and Data Integrity Errors",
            PATH => "Path Related Status",
            7 => "Vendor Specific",
            _ => "reserved",
        };
        let name = self.name().unwrap_or("unknown status");
        write!(f, "{name} (status code type {}h, {kind}; status code {:02x}h)", self.kind(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_described_in_the_standards_words() {
        // As the kernel returns it, with Do Not Retry (bit 14) and More (bit 13).
        let status = Status::of(0x4080);
        assert_eq!((status.kind(), status.code()), (0, 0x80));
        assert_eq!(
            status.to_string(),
            "LBA Out of Range (status code type 0h, Generic Command Status; status code 80h)"
        );
        assert_eq!(Status::of(0x6285), Status::of(0x285));
        assert!(Status::of(0x285).to_string().starts_with("Compare Failure (status code type 2h, Media"));
        assert!(
            Status::of(0x7c1).to_string().starts_with("unknown status (status code type 7h, Vendor Specific")
        );
    }

    #[test]
    fn status_codes_map_to_matching_error_numbers() {
        let errno = |field| Status::of(field).errno();
        assert_eq!([0x280, 0x281, 0x006].map(errno), [libc::EIO; 3], "the medium, the device");
        assert_eq!([0x282, 0x283, 0x284, 0x285].map(errno), [libc::EILSEQ; 4], "wrong data");
        assert_eq!([0x001, 0x002].map(errno), [libc::EOPNOTSUPP; 2]);
        assert_eq!([0x081, 0x1bd, 0x1be].map(errno), [libc::ENOSPC, libc::EOVERFLOW, libc::ETOOMANYREFS]);
    }
}
