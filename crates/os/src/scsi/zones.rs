//! Zones of a disk by commands: those of ZBC-2 (Zoned Block Commands), REPORT ZONES and the actions of ZBC OUT.

use super::{Interface, capacity};
use crate::zone::{Zone, ZoneCondition, ZoneKind};
use std::io;
use std::os::fd::RawFd;

const REPORT_ZONES: u8 = 0x95;
const ZBC_OUT: u8 = 0x94;

/// Actions on a zone: service actions of ZBC OUT.
pub mod action {
    /// FINISH ZONE makes it full.
    pub const FINISH: u8 = 2;
    /// RESET WRITE POINTER makes it empty.
    pub const RESET: u8 = 4;
}

/// The zones in one report. A descriptor has as many bytes as the report's header.
const BATCH: usize = 255;
const DESCRIPTOR: usize = 64;

/// At most `most` zones from the one that contains this byte on, in bytes.
///
/// # Errors
/// The disk refuses it, or the user may not send the command.
pub(crate) fn report(device: RawFd, block: u64, from: u64, most: usize) -> io::Result<Vec<Zone>> {
    let end = capacity(device, Interface::Third)?.blocks.saturating_mul(block);
    let mut zones: Vec<Zone> = Vec::new();
    let mut next = from;
    let mut answer = vec![0; DESCRIPTOR * (1 + BATCH)];
    // (One more than is asked for, because a gap may follow.)
    while zones.len() <= most && next < end {
        let room = DESCRIPTOR * (1 + BATCH.min((most - zones.len()).saturating_add(1)));
        super::read(device, Interface::Third, &report_of(next / block, room as u32), &mut answer[..room])?;
        let found = read(&answer[..room], block);
        // (A disk whose zones do not grow would be asked for ever.)
        let Some(grown) = found.last().and_then(|last| end_of(&last.zone)).filter(|&end| end > next) else {
            break;
        };
        next = grown;
        join(&mut zones, found);
    }
    zones.truncate(most);
    Ok(zones)
}

fn end_of(zone: &Zone) -> Option<u64> {
    zone.start.checked_add(zone.size)
}

/// Appends zones. A gap belongs to the zone before it, of which it cannot be used.
fn join(zones: &mut Vec<Zone>, found: Vec<Found>) {
    for Found { zone, is_gap } in found {
        match zones.last_mut() {
            Some(last) if is_gap => last.size = last.size.saturating_add(zone.size),
            None if is_gap => {}
            _ => zones.push(zone),
        }
    }
}

/// A zone in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    zone: Zone,
    /// There are no blocks in it.
    is_gap: bool,
}

/// REPORT ZONES: all zones from this block on, as many as fit.
fn report_of(first: u64, room: u32) -> [u8; 16] {
    /// The report's length includes only the zones in the answer.
    const PARTIAL: u8 = 0x80;
    let mut command = [0; 16];
    command[0] = REPORT_ZONES;
    command[2..10].copy_from_slice(&first.to_be_bytes());
    command[10..14].copy_from_slice(&room.to_be_bytes());
    command[14] = PARTIAL;
    command
}

/// Reads a report. `block` are the bytes of a logical block.
fn read(answer: &[u8], block: u64) -> Vec<Found> {
    const GAP: u8 = 5;
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().expect("these are eight bytes"));
    let zone = |descriptor: &[u8]| {
        let size = number(&descriptor[8..]).saturating_mul(block);
        let kind = match descriptor[0] & 0xf {
            2 => ZoneKind::Sequential,
            3 => ZoneKind::Preferred,
            _ => ZoneKind::Conventional,
        };
        let condition = match descriptor[1] >> 4 {
            0 => ZoneCondition::Conventional,
            code => ZoneCondition::of(code).unwrap_or(ZoneCondition::Offline),
        };
        let zone = Zone {
            start: number(&descriptor[16..]).saturating_mul(block),
            size,
            capacity: size,
            pointer: number(&descriptor[24..]).saturating_mul(block),
            kind,
            condition,
        };
        Found { zone, is_gap: descriptor[0] & 0xf == GAP }
    };
    // The length is that of the descriptors; disks that do not know the flag count those that did not fit as well.
    let length = u32::from_be_bytes(answer[..4].try_into().expect("these are four bytes")) as usize;
    answer[DESCRIPTOR..].chunks_exact(DESCRIPTOR).take(length / DESCRIPTOR).map(zone).collect()
}

/// ZBC OUT: an action on the zone that begins at this block.
pub fn act_on(first: u64, action: u8) -> [u8; 16] {
    let mut command = [0; 16];
    (command[0], command[1]) = (ZBC_OUT, action);
    command[2..10].copy_from_slice(&first.to_be_bytes());
    command
}

/// Performs an action on each zone in a range of bytes that consists of whole zones.
///
/// # Errors
/// The disk refuses it, or the user may not send the command.
pub(crate) fn act(device: RawFd, block: u64, action: u8, start: u64, length: u64) -> io::Result<()> {
    let end = start.saturating_add(length);
    // The first zone tells how many there may be.
    let (mut next, mut most) = (start, 1);
    while next < end {
        let zones = report(device, block, next, most)?;
        let before = next;
        for zone in zones.iter().take_while(|zone| zone.start < end) {
            super::read(device, Interface::Third, &act_on(next / block, action), &mut [])?;
            next = end_of(zone).filter(|&end| end > next).ok_or_else(unusable)?;
        }
        if next == before {
            return Err(unusable());
        }
        most = ((end.saturating_sub(next)) / (next - before)).clamp(1, BATCH as u64) as usize;
    }
    Ok(())
}

/// The disk reports zones that cannot be.
fn unusable() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_asked_for_and_read_as_the_standard_says() {
        let command = report_of(0x1_0000_0200, 192);
        assert_eq!(command, [0x95, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 192, 0x80, 0]);
        let mut answer = vec![0; 64 * 4];
        // A zone more than there is room for.
        answer[..4].copy_from_slice(&(64_u32 * 4).to_be_bytes());
        let mut zone = |place: usize, kind: u8, state: u8, numbers: [u64; 3]| {
            (answer[64 * place], answer[64 * place + 1]) = (kind, state << 4);
            for (number, at) in numbers.iter().zip([8, 16, 24]) {
                answer[64 * place + at..64 * place + at + 8].copy_from_slice(&number.to_be_bytes());
            }
        };
        zone(1, 1, 0, [1024, 0, u64::MAX]);
        zone(2, 2, 2, [1024, 1024, 1030]);
        zone(3, 0x12, 0xe, [1024, 2048, u64::MAX]);
        let [conventional, open, full] = read(&answer, 512)[..] else { panic!("three fit") };
        let (conventional, open, full) = (conventional.zone, open.zone, full.zone);
        let expected = Zone {
            start: 512 << 10,
            size: 512 << 10,
            capacity: 512 << 10,
            pointer: 1030 * 512,
            kind: ZoneKind::Sequential,
            condition: ZoneCondition::ImplicitlyOpen,
        };
        assert_eq!(open, expected);
        assert_eq!((full.kind, full.condition), (ZoneKind::Sequential, ZoneCondition::Full));
        assert_eq!(
            (conventional.kind, conventional.condition),
            (ZoneKind::Conventional, ZoneCondition::Conventional)
        );
    }

    #[test]
    fn gaps_belong_to_the_zone_before_them() {
        let found = |start: u64, size: u64, is_gap| {
            let (kind, condition) = (ZoneKind::Sequential, ZoneCondition::Empty);
            Found { zone: Zone { start, size, capacity: size, pointer: start, kind, condition }, is_gap }
        };
        let mut zones = Vec::new();
        join(&mut zones, vec![found(0, 1, true), found(1, 3, false)]);
        join(&mut zones, vec![found(4, 1, true), found(5, 3, false), found(8, 1, true)]);
        let sizes: Vec<_> = zones.iter().map(|zone| (zone.start, zone.size, zone.capacity)).collect();
        assert_eq!(sizes, [(1, 4, 3), (5, 4, 3)]);
    }

    #[test]
    fn zones_are_acted_on_as_the_standard_says() {
        let reset = act_on(0x0102_0304_0506, action::RESET);
        assert_eq!(reset, [0x94, 4, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0]);
        assert_eq!(act_on(0, action::FINISH)[1], 2);
    }
}
