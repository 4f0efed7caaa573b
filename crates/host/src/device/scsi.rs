//! Facts about SCSI and ATA disks: from sysfs, and from INQUIRY, READ CAPACITY and LOG SENSE if the user may send them
//! (SPC-4, SBC-4). Numbers are big endian.

use super::sysfs::{self, number, text};
use super::{Device, Facts, hidden};
use iolite_os::scsi::{self, Interface};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

/// Pages of vital product data.
const SERIAL: u8 = 0x80;
const LIMITS: u8 = 0xb0;
const CHARACTERISTICS: u8 = 0xb1;
/// Pages of logs.
const TEMPERATURE: u8 = 0x0d;
const SOLID_STATE: u8 = 0x11;

/// Adds the facts about the disk.
pub(super) fn tell(device: &mut Device, directory: &Path, node: Option<&Path>) {
    let below = &directory.join("device");
    // The kernel stores the page; the serial number follows four bytes of header.
    let kept = fs::read(below.join("vpd_pg80")).ok().and_then(|page| serial(&page));
    device.tell("identity", Facts::default().with("serial", kept).with("wwid", text(below, "wwid")));
    let disk = fs::read_dir(below.join("scsi_disk")).into_iter().flatten().flatten().next();
    if let Some(disk) = disk.map(|entry| entry.path()) {
        let cache = Facts::default()
            .with("cache_type", text(&disk, "cache_type"))
            .with("fua_of_disk", sysfs::switch(&disk, "FUA"));
        device.tell("cache", cache);
        let commands = Facts::default()
            .with("trims_by", text(&disk, "provisioning_mode"))
            .with("thin", sysfs::switch(&disk, "thin_provisioning"))
            .with("zeroes_by", text(&disk, "zeroing_mode"));
        device.tell("commands", commands);
        let kind = number(&disk, "protection_type").filter(|&kind| kind > 0);
        device.tell("format", Facts::default().with("protection_information_type", kind));
    }
    let temperature = sysfs::temperature(below);
    device.tell("health", Facts::default().with("temperature_celsius", temperature));
    const COMMANDS: &str = "limits, rotation, protection information, wear and temperature";
    let Some(node) = node else {
        return device
            .untold
            .push(format!("{COMMANDS}: the device has no node below /dev that could be asked"));
    };
    let opened = File::open(node);
    if let Err(error) = opened.and_then(|file| ask(device, file.as_raw_fd())) {
        device.untold.push(hidden(COMMANDS, &error));
    }
}

/// Queries the disk by commands.
fn ask(device: &mut Device, file: RawFd) -> io::Result<()> {
    let mut page = [0; 252];
    match inquiry(file, SERIAL, &mut page) {
        Ok(()) => device.tell("identity", Facts::default().with("serial", serial(&page))),
        // The disk does not have this page, but may have the others.
        Err(error) if matches!(iolite_os::errno_of(&error), libc::EIO | libc::EOPNOTSUPP) => {}
        Err(error) => return Err(error),
    }
    let mut page = [0; 64];
    if inquiry(file, LIMITS, &mut page).is_ok() {
        limits(device, &page);
    }
    let mut page = [0; 64];
    if inquiry(file, CHARACTERISTICS, &mut page).is_ok() {
        characteristics(device, &page);
    }
    let mut capacity = [0; 32];
    let long = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
    if scsi::read(file, Interface::Third, &long, &mut capacity).is_ok() {
        format(device, &capacity);
    }
    let mut untold = Vec::new();
    for (page, what) in [(TEMPERATURE, "temperature"), (SOLID_STATE, "wear")] {
        let mut log = [0; 252];
        // A missing page is not worth a note: ATA disks have none of these.
        match log_sense(file, page, &mut log) {
            Ok(()) => health(device, page, &log),
            Err(error) if iolite_os::errno_of(&error) == libc::EPERM => untold.push(hidden(what, &error)),
            Err(_) => {}
        }
    }
    device.untold.extend(untold);
    Ok(())
}

fn inquiry(file: RawFd, page: u8, answer: &mut [u8]) -> io::Result<()> {
    scsi::read(file, Interface::Third, &[0x12, 1, page, 0, answer.len() as u8, 0], answer)?;
    // A disk without this page may answer with another one.
    if answer[1] == page { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)) }
}

fn log_sense(file: RawFd, page: u8, answer: &mut [u8]) -> io::Result<()> {
    /// The current values.
    const CURRENT: u8 = 0x40;
    scsi::read(
        file,
        Interface::Third,
        &[0x4d, 0, CURRENT | page, 0, 0, 0, 0, 0, answer.len() as u8, 0],
        answer,
    )?;
    if answer[0] & 0x3f == page { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)) }
}

fn serial(page: &[u8]) -> Option<String> {
    let length = usize::from(*page.get(3)?);
    let text = String::from_utf8_lossy(page.get(4..4 + length)?);
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn limits(device: &mut Device, page: &[u8; 64]) {
    // Zeros mean that the disk does not report it.
    let blocks = |from: usize, to: usize| Some(word(&page[from..to])).filter(|&blocks| blocks > 0);
    let facts = Facts::default()
        .with("largest_transfer_blocks", blocks(8, 12))
        .with("optimal_transfer_blocks", blocks(12, 16))
        .with("largest_unmap_blocks", blocks(20, 24))
        .with("unmap_ranges", blocks(24, 28))
        .with("unmap_granularity_blocks", blocks(28, 32))
        .with("largest_write_same_blocks", blocks(36, 44));
    device.tell("commands", facts);
    let atomic = Facts::default()
        .with("disk_blocks", blocks(44, 48))
        .with("alignment_blocks", blocks(48, 52))
        .with("granularity_blocks", blocks(52, 56));
    device.tell("atomic_writes", atomic);
}

fn characteristics(device: &mut Device, page: &[u8; 64]) {
    let rotation = word(&page[4..6]);
    let form = match page[7] & 0xf {
        1 => Some("5.25\""),
        2 => Some("3.5\""),
        3 => Some("2.5\""),
        4 => Some("1.8\""),
        5 => Some("less than 1.8\""),
        _ => None,
    };
    let facts = Facts::default()
        // 1 means that the medium does not rotate; other values below 401h are reserved.
        .with("rotations_per_minute", (rotation > 0x400).then_some(rotation))
        .with("form_factor", form);
    device.tell("identity", facts);
}

fn format(device: &mut Device, capacity: &[u8; 32]) {
    let block = word(&capacity[8..12]);
    let is_protected = capacity[12] & 1 != 0;
    let kind = is_protected.then(|| u64::from(capacity[12] >> 1 & 7) + 1);
    let facts = Facts::default()
        .with("data_bytes", Some(block))
        .with("physical_bytes", Some(block << (capacity[13] & 0xf)))
        .with("protection_information_type", kind);
    device.tell("format", facts);
    device.tell("commands", Facts::default().with("thin", Some(capacity[14] & 0x80 != 0)));
}

/// A page of parameters: a number of two bytes, a byte, the length, and the value.
fn health(device: &mut Device, page: u8, log: &[u8]) {
    let mut rest = &log[4..(4 + word(&log[2..4]) as usize).min(log.len())];
    let mut facts = Facts::default();
    while let [high, low, _, length, more @ ..] = rest {
        let Some(value) = more.get(..usize::from(*length)) else { break };
        match (page, [*high, *low], value) {
            // FFh: the disk does not know the temperature at the moment.
            (TEMPERATURE, [0, 0], [_, celsius, ..]) if *celsius != 0xff => {
                facts.add("temperature_celsius", Some(u64::from(*celsius)));
            }
            (TEMPERATURE, [0, 1], [_, celsius, ..]) if *celsius != 0xff => {
                facts.add("warning_temperature_celsius", Some(u64::from(*celsius)));
            }
            (SOLID_STATE, [0, 1], [.., percent]) => facts.add("wear_percent", Some(u64::from(*percent))),
            _ => {}
        }
        rest = &more[usize::from(*length)..];
    }
    device.tell("health", facts);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_disk() {
        let mut device = Device::default();
        assert_eq!(serial(&[0, 0x80, 0, 4, b' ', b'4', b'2', b' ', 9]).as_deref(), Some("42"));
        assert_eq!(serial(&[0, 0x80, 0, 40]), None, "it ends early");
        let mut page = [0; 64];
        page[20..28].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 8]);
        page[47] = 16;
        limits(&mut device, &page);
        assert_eq!(device.number("commands", "largest_unmap_blocks"), Some(65536));
        assert_eq!(
            (device.number("commands", "unmap_ranges"), device.number("atomic_writes", "disk_blocks")),
            (Some(8), Some(16))
        );
        let mut page = [0; 64];
        page[4..8].copy_from_slice(&[0x1c, 0x20, 0, 2]);
        characteristics(&mut device, &page);
        assert_eq!(device.number("identity", "rotations_per_minute"), Some(7200));
        let mut capacity = [0; 32];
        capacity[8..15].copy_from_slice(&[0, 0, 2, 0, 3, 3, 0x80]);
        format(&mut device, &capacity);
        assert_eq!(device.number("format", "physical_bytes"), Some(4096));
        assert_eq!(device.number("format", "protection_information_type"), Some(2));
    }

    #[test]
    fn parameters_of_logs() {
        let mut device = Device::default();
        health(
            &mut device,
            TEMPERATURE,
            &[TEMPERATURE, 0, 0, 12, 0, 0, 3, 2, 0, 38, 0, 1, 3, 2, 0, 65, 9, 9],
        );
        health(&mut device, SOLID_STATE, &[SOLID_STATE, 0, 0, 8, 0, 1, 3, 4, 0, 0, 0, 7]);
        let told = ["temperature_celsius", "warning_temperature_celsius", "wear_percent"];
        assert_eq!(told.map(|name| device.number("health", name)), [Some(38), Some(65), Some(7)]);
        let mut damaged = Device::default();
        health(&mut damaged, TEMPERATURE, &[TEMPERATURE, 0, 0xff, 0xff, 0, 0, 3, 200, 0, 38]);
        assert!(damaged.sections.is_empty());
    }
}
