//! The size and the limits of the zones of a namespace.

use super::command_set::ZONED;
use super::{PAGE, identify, structure};
use std::io;
use std::os::fd::RawFd;

/// The zone geometry and limits of a namespace. Zones begin at multiples of their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneGeometry {
    /// Logical blocks from one zone to the next (ZSZE).
    pub blocks: u64,
    /// The most zones that are open (MOR); 0 = no limit.
    pub most_open: u32,
    /// The most zones that are partly written (MAR); 0 = no limit.
    pub most_active: u32,
    /// The most bytes of a Zone Append (ZASL, or else MDTS); 0 = no limit.
    pub largest_append: u64,
}

impl ZoneGeometry {
    /// Queries the namespace behind a descriptor. `format` is the number of the format that is in use.
    pub(super) fn of(device: RawFd, number: u32, format: usize, transfer: u8) -> io::Result<ZoneGeometry> {
        let namespace = identify(device, number, structure::NAMESPACE_OF_SET, ZONED)?;
        let controller = identify(device, 0, structure::CONTROLLER_OF_SET, ZONED)?;
        Ok(ZoneGeometry::read(&namespace[..], controller[0], format, transfer))
    }

    fn read(namespace: &[u8], append: u8, format: usize, transfer: u8) -> ZoneGeometry {
        let word = |place: usize| {
            u32::from_le_bytes(namespace[place..place + 4].try_into().expect("these are four bytes"))
        };
        // Counted from 0; all ones mean no limit.
        let limit = |place: usize| word(place).wrapping_add(1);
        let place = 2816 + 16 * format;
        let power = if append == 0 { transfer } else { append };
        ZoneGeometry {
            blocks: u64::from(word(place)) | u64::from(word(place + 4)) << 32,
            most_active: limit(4),
            most_open: limit(8),
            largest_append: if power == 0 { 0 } else { PAGE << power.min(50) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_geometry_is_read_from_namespace_data() {
        let mut namespace = vec![0; 4096];
        namespace[4..8].copy_from_slice(&5u32.to_le_bytes());
        namespace[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        namespace[2816 + 32..2816 + 40].copy_from_slice(&0x1_0000_0400_u64.to_le_bytes());
        let geometry = ZoneGeometry::read(&namespace, 3, 2, 7);
        let expected =
            ZoneGeometry { blocks: 0x1_0000_0400, most_open: 0, most_active: 6, largest_append: 32 << 10 };
        assert_eq!(geometry, expected);
        let largest = |append, transfer| ZoneGeometry::read(&namespace, append, 2, transfer).largest_append;
        assert_eq!((largest(0, 7), largest(0, 0)), (512 << 10, 0), "as large as a transfer");
    }
}
