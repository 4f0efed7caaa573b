//! The answers to refused commands, in words (SPC-5, SCSI Primary Commands).

use super::Header;
use std::fmt;

/// A failed command: the statuses, and the disk's explanation.
pub struct Complaint<'a> {
    /// The status of the device.
    pub device: u8,
    /// The status of the adapter.
    pub host: u16,
    /// The status of the driver.
    pub driver: u16,
    /// The device's sense data.
    pub sense: &'a [u8],
    /// The command.
    pub command: &'a [u8],
}

impl<'a> Complaint<'a> {
    /// For a command that was sent by version 3 of the kernel's interface, with this room for sense data.
    pub fn of(header: &Header, room: &'a [u8], command: &'a [u8]) -> Complaint<'a> {
        let Header { status, host_status, driver_status, sb_len_wr, .. } = *header;
        let sense = &room[..usize::from(sb_len_wr).min(room.len())];
        Complaint { device: status, host: host_status, driver: driver_status, sense, command }
    }

    /// Whether the disk found a difference from the data to compare with.
    pub fn is_miscompare(&self) -> bool {
        const MISCOMPARE: u8 = 0x0e;
        Sense::of(self.sense).is_some_and(|sense| sense.key == MISCOMPARE)
    }
}

impl fmt::Display for Complaint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Sense::of(self.sense) {
            Some(Sense { key, code, qualifier }) => {
                let name = SENSE_KEYS[usize::from(key & 15)];
                let of_zone = REFUSALS_OF_ZONES.iter().find(|(own, _)| *own == [code, qualifier]);
                let (colon, why) = of_zone.map_or(("", ""), |(_, words)| (": ", words));
                write!(f, "{name}{colon}{why} (sense key {key:x}h, code {code:02x}h/{qualifier:02x}h)")?;
            }
            None => write!(
                f,
                "status {:02x}h, host status {:02x}h, driver status {:02x}h",
                self.device, self.host, self.driver
            )?,
        }
        f.write_str(" to command")?;
        self.command.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
    }
}

/// A disk's explanation of a refused command.
struct Sense {
    key: u8,
    code: u8,
    qualifier: u8,
}

/// The names of sense keys (SPC-5).
const SENSE_KEYS: [&str; 16] = [
    "no sense",
    "recovered error",
    "not ready",
    "medium error",
    "hardware error",
    "illegal request",
    "unit attention",
    "data protect",
    "blank check",
    "vendor specific",
    "copy aborted",
    "aborted command",
    "reserved",
    "volume overflow",
    "miscompare",
    "completed",
];

/// Additional sense codes, with their qualifiers, of disks with zones (SPC-5, ZBC-2).
const REFUSALS_OF_ZONES: [([u8; 2], &str); 12] = [
    ([0x0c, 0x12], "write error - insufficient zone resources"),
    ([0x21, 0x04], "unaligned write command, not at the write pointer of its zone"),
    ([0x21, 0x05], "write boundary violation, beyond the end of its zone"),
    ([0x21, 0x06], "attempt to read invalid data, beyond the write pointer"),
    ([0x21, 0x07], "read boundary violation, beyond the end of its zone"),
    ([0x21, 0x09], "attempt to access a gap zone"),
    ([0x27, 0x08], "zone is read only"),
    ([0x2c, 0x0d], "reset write pointer not allowed"),
    ([0x2c, 0x0e], "zone is offline"),
    ([0x2c, 0x12], "zone is inactive"),
    ([0x55, 0x0e], "insufficient zone resources, which a lower max_open_zones needs less of"),
    ([0x55, 0x0f], "insufficient zone resources to complete the write"),
];

impl Sense {
    /// Parses sense data in fixed or descriptor format.
    fn of(data: &[u8]) -> Option<Sense> {
        let byte = |place: usize| data.get(place).copied().unwrap_or(0);
        match data.first()? & 0x7f {
            0x70 | 0x71 => Some(Sense { key: byte(2) & 15, code: byte(12), qualifier: byte(13) }),
            0x72 | 0x73 => Some(Sense { key: byte(1) & 15, code: byte(2), qualifier: byte(3) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_described_in_words() {
        let told = |sense: &[u8]| {
            let complaint = Complaint { device: 2, host: 0, driver: 8, sense, command: &[0x2f, 2] };
            (complaint.to_string(), complaint.is_miscompare())
        };
        let mut sense = [0; 18];
        (sense[0], sense[2], sense[12]) = (0x70, 0x0e, 0x1d);
        let miscompare = "miscompare (sense key eh, code 1dh/00h) to command 2f 02".to_owned();
        assert_eq!(told(&sense), (miscompare, true));
        (sense[0], sense[1], sense[2]) = (0x72, 3, 0x11);
        let (text, is_miscompare) = told(&sense);
        assert!(text.starts_with("medium error (sense key 3h, code 11h") && !is_miscompare, "{text}");
        (sense[1], sense[2], sense[3]) = (5, 0x21, 4);
        let unaligned = "illegal request: unaligned write command, not at the write pointer of its zone (sense key 5h, \
                         code 21h/04h) to command 2f 02";
        assert_eq!(told(&sense).0, unaligned);
        let none = "status 02h, host status 00h, driver status 08h to command 2f 02".to_owned();
        assert_eq!(told(&[]), (none, false));
    }
}
