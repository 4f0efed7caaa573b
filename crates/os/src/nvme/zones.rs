//! Zones of a namespace by commands: those of the NVM Express Zoned Namespace Command Set Specification.

use super::{Command, IOCTL_IO, Namespace, opcode};
use crate::zone::{Zone, ZoneCondition, ZoneKind};
use std::io;
use std::os::fd::RawFd;

/// Actions of Zone Management Send, in dword 13.
pub mod action {
    /// Makes the zone full.
    pub const FINISH: u32 = 2;
    /// Makes the zone empty.
    pub const RESET: u32 = 4;
}

/// The zones in one report. A descriptor has as many bytes as the report's header.
const BATCH: usize = 255;
const DESCRIPTOR: usize = 64;

/// At most `most` zones from the one that contains this byte on, in bytes of data.
///
/// # Errors
/// The device refuses it, or the user may not send the command.
pub(crate) fn report(device: RawFd, namespace: &Namespace, from: u64, most: usize) -> io::Result<Vec<Zone>> {
    let Some(geometry) = namespace.zones.filter(|zones| zones.blocks > 0) else {
        return Err(io::Error::from_raw_os_error(libc::ENOTTY));
    };
    let block = u64::from(namespace.format.data);
    let mut zones = Vec::new();
    let mut next = from / block / geometry.blocks * geometry.blocks;
    let mut answer = vec![0; DESCRIPTOR * (1 + BATCH)];
    while zones.len() < most && next < namespace.blocks {
        let wanted = BATCH.min(most - zones.len());
        let room = DESCRIPTOR * (1 + wanted);
        let mut command = report_of(namespace.number, next, room);
        (command.address, command.data_length) = (answer.as_mut_ptr() as u64, room as u32);
        // SAFETY: the kernel writes at most the length of the answer.
        unsafe { command.perform(device, IOCTL_IO)? };
        let found = read(&answer[..room], block, geometry.blocks);
        let Some(last) = found.last() else { break };
        next = (last.start + last.size) / block;
        zones.extend(found);
    }
    Ok(zones)
}

/// Zone Management Receive: all zones from this block on, as many as fit.
fn report_of(nsid: u32, first: u64, room: usize) -> Command {
    /// The report's count includes only the zones in the answer.
    const PARTIAL: u32 = 1 << 16;
    Command {
        opcode: opcode::ZONE_MANAGEMENT_RECEIVE,
        nsid,
        cdw10: first as u32,
        cdw11: (first >> 32) as u32,
        // The number of dwords, less one.
        cdw12: room as u32 / 4 - 1,
        cdw13: PARTIAL,
        ..Command::default()
    }
}

/// Reads a report. `block` are the bytes of a logical block, `size` the blocks of a zone.
fn read(answer: &[u8], block: u64, size: u64) -> Vec<Zone> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("these are eight bytes"));
    let zone = |descriptor: &[u8]| {
        let start = number(&descriptor[16..]) * block;
        let condition = ZoneCondition::of(descriptor[1] >> 4).unwrap_or(ZoneCondition::Offline);
        Zone {
            start,
            size: size * block,
            capacity: number(&descriptor[8..]) * block,
            pointer: number(&descriptor[24..]).saturating_mul(block),
            kind: ZoneKind::Sequential,
            condition,
        }
    };
    let count = number(answer) as usize;
    answer[DESCRIPTOR..].chunks_exact(DESCRIPTOR).take(count).map(zone).collect()
}

/// Zone Management Send: performs an action on the zone that begins at this block.
pub fn send(nsid: u32, first: u64, action: u32) -> Command {
    Command {
        opcode: opcode::ZONE_MANAGEMENT_SEND,
        nsid,
        cdw10: first as u32,
        cdw11: (first >> 32) as u32,
        cdw13: action,
        ..Command::default()
    }
}

/// Performs an action on each zone in a range of bytes that consists of whole zones.
///
/// # Errors
/// The device refuses it, or the user may not send the command.
pub(crate) fn act(
    device: RawFd,
    namespace: &Namespace,
    action: u32,
    start: u64,
    length: u64,
) -> io::Result<()> {
    let block = u64::from(namespace.format.data);
    let zone = namespace.zones.map_or(0, |zones| zones.blocks * block);
    if zone == 0 {
        return Err(io::Error::from_raw_os_error(libc::ENOTTY));
    }
    (start..start + length).step_by(zone as usize).try_for_each(|start| {
        let mut command = send(namespace.number, start / block, action);
        // SAFETY: there is no data.
        unsafe { command.perform(device, IOCTL_IO) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_asked_for_and_read_as_the_standard_says() {
        let command = report_of(7, 0x2_0000_0010, 64 * 3);
        assert_eq!((command.opcode, command.nsid), (0x7a, 7));
        let dwords = [command.cdw10, command.cdw11, command.cdw12, command.cdw13];
        assert_eq!(dwords, [0x10, 2, 47, 0x1_0000]);
        let mut answer = vec![0; 64 * 4];
        answer[0] = 2;
        let mut zone = |place: usize, state: u8, numbers: [u64; 3]| {
            answer[64 * place] = 2;
            answer[64 * place + 1] = state << 4;
            for (number, at) in numbers.iter().zip([8, 16, 24]) {
                answer[64 * place + at..64 * place + at + 8].copy_from_slice(&number.to_le_bytes());
            }
        };
        zone(1, 2, [768, 1024, 1030]);
        zone(2, 0xe, [768, 2048, u64::MAX]);
        zone(3, 1, [768, 3072, 3072]);
        let [open, full] = read(&answer, 4096, 1024)[..] else { panic!("two are counted") };
        let expected = Zone {
            start: 4 << 20,
            size: 4 << 20,
            capacity: 3 << 20,
            pointer: 1030 * 4096,
            kind: ZoneKind::Sequential,
            condition: ZoneCondition::ImplicitlyOpen,
        };
        assert_eq!((open, full.condition), (expected, ZoneCondition::Full));
    }

    #[test]
    fn zones_are_acted_on_as_the_standard_says() {
        let command = send(3, 0x1_0000_0400, action::RESET);
        assert_eq!((command.opcode, command.nsid), (0x79, 3));
        assert_eq!([command.cdw10, command.cdw11, command.cdw12, command.cdw13], [0x400, 1, 0, 4]);
        assert_eq!(send(3, 0, action::FINISH).cdw13, 2);
    }
}
