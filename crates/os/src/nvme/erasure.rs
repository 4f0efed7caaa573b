//! Commands that erase a namespace: Format NVM and Sanitize, of the NVM Express Base Specification (2.0c, 5.14 and 5.24).

use super::command_set::NVM;
use super::{Command, IOCTL_ADMIN, admin, identify, log_page, number, structure};
use std::io;
use std::os::fd::RawFd;

/// Milliseconds that a format may take: that of a slow device takes hours.
const FORMAT_TIMEOUT: u32 = 4 * 3600 * 1000;
/// The log page of a sanitize operation.
const SANITIZE_STATUS: u8 = 0x81;
/// The feature of the volatile write cache.
const WRITE_CACHE: u8 = 0x06;

/// What a controller can do to erase its namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erasures {
    /// It knows Format NVM.
    pub formats: bool,
    /// Format NVM erases all its namespaces.
    pub formats_all: bool,
    /// It knows Sanitize with an erasure of blocks.
    pub erases_blocks: bool,
    /// It knows Sanitize by a new key of its encryption.
    pub changes_key: bool,
    /// It has a volatile write cache.
    pub has_write_cache: bool,
}

impl Erasures {
    /// Asks the controller of an open device.
    ///
    /// # Errors
    /// The user may not ask it, or it is no NVMe device.
    pub fn of(device: RawFd) -> io::Result<Erasures> {
        Ok(Erasures::read(&identify(device, 0, structure::CONTROLLER, NVM)?[..]))
    }

    fn read(controller: &[u8]) -> Erasures {
        let (optional, format) = (controller[256], controller[524]);
        let sanitize = controller[328];
        Erasures {
            formats: optional & 1 << 1 != 0,
            // Bit 0 is about formats, bit 1 about those that erase.
            formats_all: format & 3 != 0,
            erases_blocks: sanitize & 1 << 1 != 0,
            changes_key: sanitize & 1 != 0,
            has_write_cache: controller[525] & 1 != 0,
        }
    }
}

/// How many namespaces the subsystem has, whether they are attached or not; `None` = this cannot be known.
///
/// # Errors
/// The user may not ask the controller.
pub fn namespaces(device: RawFd) -> io::Result<Option<usize>> {
    let controller = identify(device, 0, structure::CONTROLLER, NVM)?;
    let list = match source(&controller[..]) {
        Source::One => return Ok(Some(1)),
        Source::Unknown => return Ok(None),
        Source::Allocated => structure::ALLOCATED,
        Source::Active => structure::ACTIVE,
    };
    let list = identify(device, 0, list, NVM)?;
    Ok(Some(list.chunks_exact(4).take_while(|number| *number != [0; 4]).count()))
}

/// What says how many namespaces there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// There can be only one.
    One,
    /// The list of allocated ones.
    Allocated,
    /// The list of active ones: there is no other controller, and none is managed.
    Active,
    Unknown,
}

fn source(controller: &[u8]) -> Source {
    const MANAGEMENT: u8 = 1 << 3;
    const SEVERAL_CONTROLLERS: u8 = 1 << 1;
    match () {
        () if controller[516..520] == [1, 0, 0, 0] => Source::One,
        () if controller[256] & MANAGEMENT != 0 => Source::Allocated,
        () if controller[76] & SEVERAL_CONTROLLERS == 0 => Source::Active,
        () => Source::Unknown,
    }
}

/// How far a sanitize operation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sanitized {
    /// It is done.
    Done,
    /// It is on its way: the share that is done.
    Going(f64),
    /// It failed.
    Failed,
}

/// Format NVM of the namespace behind a descriptor: all data is erased, and the format stays what it is. Waits for its end.
///
/// # Errors
/// The device refuses it.
pub fn format(device: RawFd) -> io::Result<()> {
    let nsid = number(device)?;
    let namespace = identify(device, nsid, structure::NAMESPACE, NVM)?;
    let cdw10 = same_format(namespace[26], namespace[29]);
    let mut command =
        Command { opcode: admin::FORMAT, nsid, cdw10, timeout_ms: FORMAT_TIMEOUT, ..Command::default() };
    // SAFETY: there is no data.
    unsafe { command.perform(device, IOCTL_ADMIN) }
}

/// Dword 10 of a format that erases user data and keeps the format: `flbas` and `dps` are those of the namespace.
fn same_format(flbas: u8, dps: u8) -> u32 {
    const ERASE_USER_DATA: u32 = 1;
    let (flbas, dps) = (u32::from(flbas), u32::from(dps));
    let (lower, separate, upper) = (flbas & 0xf, flbas >> 4 & 1, flbas >> 5 & 3);
    let (protection, first) = (dps & 7, dps >> 3 & 1);
    lower | separate << 4 | protection << 5 | first << 8 | ERASE_USER_DATA << 9 | upper << 12
}

/// Begins to sanitize the whole subsystem: by erasing its blocks, or by a new key. [`sanitized`] says how far it is.
///
/// # Errors
/// The device refuses it.
pub fn sanitize(device: RawFd, by_key: bool) -> io::Result<()> {
    const BLOCK_ERASE: u32 = 2;
    const CRYPTO_ERASE: u32 = 4;
    let cdw10 = if by_key { CRYPTO_ERASE } else { BLOCK_ERASE };
    let mut command = Command { opcode: admin::SANITIZE, cdw10, ..Command::default() };
    // SAFETY: there is no data.
    unsafe { command.perform(device, IOCTL_ADMIN) }
}

/// How far the last sanitize operation is.
///
/// # Errors
/// The device does not tell.
pub fn sanitized(device: RawFd) -> io::Result<Sanitized> {
    let mut log = [0; 32];
    log_page(device, u32::MAX, SANITIZE_STATUS, 0, &mut log)?;
    Ok(state(&log))
}

fn state(log: &[u8; 32]) -> Sanitized {
    match log[2] & 7 {
        2 => Sanitized::Going(f64::from(u16::from_le_bytes([log[0], log[1]])) / 65536.0),
        3 => Sanitized::Failed,
        _ => Sanitized::Done,
    }
}

/// Whether the volatile write cache is on.
///
/// # Errors
/// The device has none, or does not tell.
pub fn write_cache(device: RawFd) -> io::Result<bool> {
    Ok(super::feature(device, 0, WRITE_CACHE, 0)? & 1 != 0)
}

/// Switches the volatile write cache (Set Features), until the next reset of the controller.
///
/// # Errors
/// The device refuses it.
pub fn set_write_cache(device: RawFd, is_on: bool) -> io::Result<()> {
    let mut command = Command {
        opcode: admin::SET_FEATURES,
        cdw10: WRITE_CACHE.into(),
        cdw11: is_on.into(),
        ..Command::default()
    };
    // SAFETY: there is no data.
    unsafe { command.perform(device, IOCTL_ADMIN) }
}

/// Units of 1000 times 512 bytes that the controller was told to write in its life.
///
/// # Errors
/// The user may not ask it.
pub fn data_units_written(device: RawFd) -> io::Result<u64> {
    const HEALTH: u8 = 0x02;
    let mut log = [0; 512];
    log_page(device, u32::MAX, HEALTH, 0, &mut log)?;
    let mut units = [0; 8];
    units.copy_from_slice(&log[48..56]);
    Ok(u64::from_le_bytes(units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_keeps_what_it_finds() {
        assert_eq!(same_format(0, 0), 1 << 9);
        // Format 0x21 (upper bits 2), metadata with the data, protection of type 1 in the first bytes.
        assert_eq!(same_format(0b0101_0001, 0b1001), 2 << 12 | 1 << 9 | 1 << 8 | 1 << 5 | 1 << 4 | 1);
    }

    #[test]
    fn abilities_are_read() {
        let mut controller = [0; 4096];
        assert_eq!(Erasures::read(&controller), Erasures::default());
        (controller[256], controller[328], controller[524], controller[525]) = (2, 3, 2, 1);
        let all = Erasures {
            formats: true,
            formats_all: true,
            erases_blocks: true,
            changes_key: true,
            has_write_cache: true,
        };
        assert_eq!(Erasures::read(&controller), all);
    }

    #[test]
    fn namespaces_are_counted_where_all_are_known() {
        let mut controller = [0; 4096];
        assert_eq!(source(&controller), Source::Active);
        controller[76] = 2;
        assert_eq!(source(&controller), Source::Unknown);
        controller[256] = 8;
        assert_eq!(source(&controller), Source::Allocated);
        controller[516] = 1;
        assert_eq!(source(&controller), Source::One);
    }

    #[test]
    fn states_of_sanitizing() {
        let mut log = [0; 32];
        assert_eq!(state(&log), Sanitized::Done);
        (log[1], log[2]) = (0x80, 2);
        assert_eq!(state(&log), Sanitized::Going(0.5));
        log[2] = 3;
        assert_eq!(state(&log), Sanitized::Failed);
        log[2] = 4;
        assert_eq!(state(&log), Sanitized::Done);
    }
}
