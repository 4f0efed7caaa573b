//! The identity of a namespace: its size and the format of its blocks.

use super::command_set::{NVM, ZONED};
use super::{ZoneGeometry, identify, number, receive, structure};
use std::io;
use std::os::fd::RawFd;

/// A namespace as it describes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its number (NSID).
    pub number: u32,
    /// Logical blocks (NSZE).
    pub blocks: u64,
    /// The format of a block.
    pub format: Format,
    /// The optional commands of its controller (ONCS).
    pub optional: u16,
    /// Its zones, if it has any.
    pub zones: Option<ZoneGeometry>,
}

/// The LBA format that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bytes of data in a block.
    pub data: u32,
    /// Bytes of metadata with each block.
    pub metadata: u16,
    /// The metadata of a block follows its data in the same buffer; otherwise it has a separate buffer.
    pub extended: bool,
    /// The protection information in the metadata, if there is any.
    pub protection: Option<Protection>,
}

/// End-to-end protection information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Type 1, 2 or 3.
    pub kind: u8,
    /// The guard of the data.
    pub guard: Guard,
    /// It occupies the first bytes of the metadata; otherwise the last.
    pub first: bool,
    /// How many bits of the reference tag's field are a storage tag.
    pub storage_tag: u8,
}

/// A placement handle of a namespace, as Reclaim Unit Handle Status reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The placement identifier by which a write refers to it.
    pub identifier: u16,
    /// The reclaim unit handle that it stands for.
    pub unit: u16,
    /// Logical blocks that can still be written to its reclaim unit.
    pub room: u64,
}

/// The placement handles of a namespace, in the device's order.
///
/// # Errors
/// The device has no Flexible Data Placement, or it is not enabled.
pub fn handles(device: RawFd, number: u32) -> io::Result<Vec<Handle>> {
    ask_handles(|answer| receive(device, number, HANDLE_STATUS, answer))
}

/// The placement features of a device: whether it supports Flexible Data Placement and has it enabled for the
/// namespace; and the number of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementSupport {
    /// The controller has Flexible Data Placement.
    pub has_fdp: bool,
    /// The endurance group of the namespace, and whether Flexible Data Placement is enabled there; `None` = unknown.
    pub enabled: Option<(u16, bool)>,
    /// The most streams, 0 = the controller has no streams; `None` = unknown.
    pub streams: Option<u16>,
}

impl PlacementSupport {
    /// Queries the device of a namespace.
    ///
    /// # Errors
    /// The device does not support the query, or permission is missing.
    pub fn of(device: RawFd, number: u32) -> io::Result<PlacementSupport> {
        const FEATURE: u8 = 0x1d;
        const DIRECTIVES: u8 = 0;
        const STREAMS: u8 = 1;
        let controller = identify(device, 0, structure::CONTROLLER, NVM)?;
        let namespace = identify(device, number, structure::NAMESPACE, NVM)?;
        let group = u16::from_le_bytes([namespace[102], namespace[103]]);
        let has_fdp = word(&controller[..], 96) & 1 << 19 != 0;
        let has_directives = controller[256] & 1 << 5 != 0;
        let enabled = has_fdp.then(|| super::feature(device, 0, FEATURE, group.into()));
        let enabled = enabled.and_then(|value| Some((group, value.ok()? & 1 != 0)));
        // A bit for each supported directive; and the parameters of streams, which start with their number.
        let mut known = [0; 32];
        let mut parameters = [0; 32];
        let streams = match has_directives.then(|| super::directive(device, number, DIRECTIVES, &mut known)) {
            None => Some(0),
            Some(Ok(())) if known[0] & 1 << STREAMS == 0 => Some(0),
            Some(_) => super::directive(device, number, STREAMS, &mut parameters)
                .ok()
                .map(|()| u16::from_le_bytes([parameters[0], parameters[1]])),
        };
        Ok(PlacementSupport { has_fdp, enabled, streams })
    }
}

/// Reclaim Unit Handle Status, a management operation of I/O Management Receive.
const HANDLE_STATUS: u8 = 1;

/// Bytes of the status before the handles, and of each handle.
const HEADER: usize = 16;
const HANDLE: usize = 32;

/// Queries the number of handles, and then exactly the bytes that they take: if the kernel passes the length in an SGL,
/// a device refuses a length that is larger than its answer.
fn ask_handles(mut ask: impl FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<Vec<Handle>> {
    let mut header = [0; HEADER];
    ask(&mut header)?;
    let mut answer = vec![0; HEADER + HANDLE * count_of_handles(&header)];
    ask(&mut answer)?;
    Ok(read_handles(&answer))
}

fn count_of_handles(answer: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([answer[14], answer[15]]))
}

fn read_handles(answer: &[u8]) -> Vec<Handle> {
    let handle = |bytes: &[u8]| Handle {
        identifier: u16::from_le_bytes([bytes[0], bytes[1]]),
        unit: u16::from_le_bytes([bytes[2], bytes[3]]),
        room: u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")),
    };
    answer[HEADER..].chunks_exact(HANDLE).take(count_of_handles(answer)).map(handle).collect()
}

/// The guard of a block's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// CRC-16: 8 bytes of protection information.
    Crc16,
    /// CRC-32C: 16 bytes.
    Crc32,
    /// CRC-64: 16 bytes.
    Crc64,
}

impl Namespace {
    /// Queries the namespace behind a descriptor.
    ///
    /// # Errors
    /// It is not a namespace, or the user may not send the command.
    pub fn of(device: RawFd) -> io::Result<Namespace> {
        let number = number(device)?;
        let namespace = identify(device, number, structure::NAMESPACE, NVM)?;
        let controller = identify(device, 0, structure::CONTROLLER, NVM)?;
        // Controllers without extended formats (CTRATT.ELBAS) do not know the third structure.
        let has_extended = word(&controller[..], 96) & 1 << 15 != 0;
        let formats =
            if has_extended { identify(device, number, structure::NAMESPACE_OF_SET, NVM).ok() } else { None };
        let formats = formats.as_ref().map(|formats| &formats[..]);
        let format = Format::read(&namespace[..], formats)
            .ok_or_else(|| io::Error::other("its identity names a format that it does not have"))?;
        let blocks = u64::from_le_bytes(namespace[..8].try_into().expect("eight bytes"));
        let optional = u16::from_le_bytes([controller[520], controller[521]]);
        // Controllers that know no command sets know no descriptors either.
        let descriptors = identify(device, number, structure::DESCRIPTORS, NVM).ok();
        let is_zoned = descriptors.is_some_and(|descriptors| command_set(&descriptors[..]) == Some(ZONED));
        let place = Format::place(&namespace[..]);
        let zones = is_zoned.then(|| ZoneGeometry::of(device, number, place, controller[77])).transpose()?;
        Ok(Namespace { number, blocks, format, optional, zones })
    }

    /// Whether its controller has Compare.
    pub const fn has_compare(&self) -> bool {
        self.optional & 1 != 0
    }

    /// How many bytes of data it holds.
    pub fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.format.data.into())
    }
}

impl Format {
    /// Whether the device inserts and strips protection information, if `device_makes` it, so that blocks are
    /// transferred without metadata.
    const fn strips(&self, device_makes: bool) -> bool {
        match self.protection {
            Some(protection) => device_makes && protection.guard.bytes() == self.metadata as usize,
            None => false,
        }
    }

    /// Bytes of a block in the buffer of a command: its data, followed by its metadata if that is interleaved.
    pub const fn in_buffer(&self, device_makes: bool) -> u32 {
        if self.extended && !self.strips(device_makes) { self.data + self.metadata as u32 } else { self.data }
    }

    /// Bytes of a block's metadata in the separate metadata buffer of a command.
    pub const fn apart(&self, device_makes: bool) -> u16 {
        if self.extended || self.strips(device_makes) { 0 } else { self.metadata }
    }

    /// The number of the format in use, from the structure of a namespace.
    fn place(namespace: &[u8]) -> usize {
        let (last, chosen) = (namespace[25], namespace[26]);
        // With more than 16 formats, their numbers have six bits; the upper two are stored separately.
        let upper = if last < 16 { 0 } else { chosen >> 1 & 0x30 };
        usize::from(chosen & 0x0f | upper)
    }

    /// Reads the format in use from the structures of a namespace. The second structure is that of extended formats, if
    /// the controller has it.
    fn read(namespace: &[u8], extended: Option<&[u8]>) -> Option<Format> {
        let chosen = namespace[26];
        let place = Format::place(namespace);
        let format = word(namespace, 128 + 4 * place);
        let shift = format >> 16 & 0xff;
        let data = if (9..32).contains(&shift) { 1u32 << shift } else { return None };
        let metadata = format as u16;
        let (kind, first) = (namespace[29] & 7, namespace[29] & 8 != 0);
        let more = extended.map_or(0, |structure| word(structure, 12 + 4 * place));
        let guard = match more >> 7 & 3 {
            1 => Guard::Crc32,
            2 => Guard::Crc64,
            _ => Guard::Crc16,
        };
        let protection = Protection { kind, guard, first, storage_tag: (more & 0x7f) as u8 };
        let is_protected = (1..=3).contains(&kind) && usize::from(metadata) >= guard.bytes();
        let protection = is_protected.then_some(protection);
        Some(Format { data, metadata, extended: metadata > 0 && chosen & 0x10 != 0, protection })
    }
}

impl Guard {
    /// Bytes of protection information with this guard.
    pub const fn bytes(self) -> usize {
        match self {
            Guard::Crc16 => 8,
            Guard::Crc32 | Guard::Crc64 => 16,
        }
    }
}

/// The command set of a namespace, from its identification descriptors: type, length, two reserved bytes, value.
fn command_set(descriptors: &[u8]) -> Option<u8> {
    const COMMAND_SET: u8 = 4;
    let mut rest = descriptors;
    while let [kind, length, _, _, said @ ..] = rest
        && *length > 0
    {
        if *kind == COMMAND_SET {
            return said.first().copied();
        }
        rest = said.get(usize::from(*length)..).unwrap_or_default();
    }
    None
}

fn word(structure: &[u8], place: usize) -> u32 {
    structure
        .get(place..place + 4)
        .map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure with these bytes at these places.
    fn structure(bytes: &[(usize, &[u8])]) -> Vec<u8> {
        let mut all = vec![0; 4096];
        bytes.iter().for_each(|(place, bytes)| all[*place..place + bytes.len()].copy_from_slice(bytes));
        all
    }

    #[test]
    fn the_format_in_use_is_read() {
        // Two formats: 512 bytes, and 4096 with 8 of metadata. The second is in use.
        let formats: &[u8] = &[0, 0, 9, 0, 8, 0, 12, 0];
        let namespace = |chosen, protection| {
            structure(&[(25, &[1]), (26, &[chosen]), (29, &[protection]), (128, formats)])
        };
        let plain = Format { data: 512, metadata: 0, extended: false, protection: None };
        assert_eq!(Format::read(&namespace(0, 0), None), Some(plain));
        let separate = Format { data: 4096, metadata: 8, extended: false, protection: None };
        assert_eq!(Format::read(&namespace(1, 0), None), Some(separate));
        let protection = Protection { kind: 1, guard: Guard::Crc16, first: false, storage_tag: 0 };
        let interleaved = Format { extended: true, protection: Some(protection), ..separate };
        assert_eq!(Format::read(&namespace(0x11, 1), None), Some(interleaved));
        let first =
            Format { protection: Some(Protection { kind: 3, first: true, ..protection }), ..separate };
        assert_eq!(Format::read(&namespace(1, 0xb), None), Some(first));
        assert_eq!(Format::read(&namespace(2, 0), None), None, "blocks of one byte");
        let sizes = |format: Format, device| (format.in_buffer(device), format.apart(device));
        assert_eq!([sizes(interleaved, false), sizes(interleaved, true)], [(4104, 0), (4096, 0)]);
        assert_eq!([sizes(first, false), sizes(first, true)], [(4096, 8), (4096, 0)]);
        assert_eq!(
            [sizes(separate, false), sizes(separate, true)],
            [(4096, 8); 2],
            "there is nothing to strip"
        );
        let more = Format { metadata: 16, ..interleaved };
        assert_eq!(sizes(more, true), (4112, 0), "there is more than protection information");
    }

    #[test]
    fn guards_of_64_bits_are_read_from_the_extended_formats() {
        let namespace = structure(&[(26, &[0]), (29, &[1]), (128, &[16, 0, 12, 0])]);
        let extended = structure(&[(12, &[0x00, 0x01, 0, 0])]);
        let protection = Format::read(&namespace, Some(&extended)).unwrap().protection.unwrap();
        assert_eq!(
            (protection.guard, protection.storage_tag, protection.guard.bytes()),
            (Guard::Crc64, 0, 16)
        );
        let with_storage_tag = structure(&[(12, &[0x90, 0, 0, 0])]);
        let protection = Format::read(&namespace, Some(&with_storage_tag)).unwrap().protection.unwrap();
        assert_eq!((protection.guard, protection.storage_tag), (Guard::Crc32, 16));
    }

    #[test]
    fn the_command_set_is_read_from_the_descriptors() {
        let uuid: &[u8] = &[3, 16, 0, 0];
        assert_eq!(command_set(&structure(&[(0, uuid), (20, &[4, 1, 0, 0, 2])])), Some(ZONED));
        assert_eq!(command_set(&structure(&[(0, uuid), (20, &[4, 1, 0, 0, 0])])), Some(NVM));
        assert_eq!(command_set(&structure(&[(0, uuid)])), None);
        assert_eq!(command_set(&[3, 200, 0, 0, 4, 1]), None, "it ends in the middle");
    }

    #[test]
    fn handles_are_read_in_their_order() {
        let mut answer = structure(&[(14, &[2])]);
        answer[16..20].copy_from_slice(&[0, 0, 0, 0]);
        answer[24] = 7;
        answer[48..52].copy_from_slice(&[1, 2, 3, 0]);
        let handle = |identifier, unit, room| Handle { identifier, unit, room };
        assert_eq!(read_handles(&answer), [handle(0, 0, 7), handle(0x201, 3, 0)]);
    }

    /// A device that refuses any other length, as QEMU's does with Linux 6.12; 128 handles are the maximum.
    #[test]
    fn a_device_is_asked_for_as_many_handles_as_it_has() {
        for count in [0_u16, 4, 128] {
            let mut status = vec![0_u8; 16 + 32 * usize::from(count)];
            status[14..16].copy_from_slice(&count.to_le_bytes());
            for handle in 0..count {
                let place = 16 + 32 * usize::from(handle);
                status[place..place + 2].copy_from_slice(&handle.to_le_bytes());
            }
            let found = ask_handles(|answer| {
                if ![16, status.len()].contains(&answer.len()) {
                    return Err(io::Error::from_raw_os_error(libc::EIO));
                }
                answer.copy_from_slice(&status[..answer.len()]);
                Ok(())
            });
            let identifiers: Vec<u16> = found.unwrap().iter().map(|handle| handle.identifier).collect();
            assert_eq!(identifiers, (0..count).collect::<Vec<u16>>());
        }
        let refused = ask_handles(|_| Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
    }

    #[test]
    fn formats_beyond_the_sixteenth_have_six_bits() {
        let namespace = structure(&[(25, &[20]), (26, &[0x22]), (128 + 4 * 18, &[0, 0, 12, 0])]);
        assert_eq!(Format::read(&namespace, None).unwrap().data, 4096);
    }
}
