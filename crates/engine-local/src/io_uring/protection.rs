//! Protection information: made before a write and checked after a read, unless the device does that (`pi_act=0`).
//!
//! The layouts are those of the NVM Command Set Specification, section "End-to-end Data Protection": a guard, which is a CRC of
//! the data (and of the metadata before the information), an application tag, and a field that a storage tag and a
//! reference tag share.

use iolite_options::engines::Checks;
use iolite_os::nvme::{Format, Guard, Protection};
use std::fmt;

/// The expected tags of protection information.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    /// The application tag.
    pub application: u16,
    /// Its bits that count.
    pub mask: u16,
    /// The checks to make.
    pub checks: Checks,
}

/// The mistakes in the protection information of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The block.
    pub block: u64,
    part: Part,
    found: u64,
    expected: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Guard,
    Application,
    Reference,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { block, part, found, expected } = self;
        let part = match part {
            Part::Guard => "guard",
            Part::Application => "application tag",
            Part::Reference => "reference tag",
        };
        write!(f, "protection information of block {block}: {part} {found:#x}, and not {expected:#x}")
    }
}

/// The bytes of metadata before the information.
fn place(format: &Format, protection: &Protection) -> usize {
    if protection.first { 0 } else { usize::from(format.metadata) - protection.guard.bytes() }
}

/// Bits of the field that storage tag and reference tag share.
const fn field(guard: Guard) -> u32 {
    match guard {
        Guard::Crc16 => 32,
        Guard::Crc32 => 80,
        Guard::Crc64 => 48,
    }
}

/// The reference tag of a block: the lower bits of its address; 0 for type 3.
pub fn reference(protection: &Protection, block: u64) -> u64 {
    let bits = field(protection.guard).saturating_sub(protection.storage_tag.into());
    match (protection.kind, bits) {
        (3, _) | (_, 0) => 0,
        (_, 64..) => block,
        (_, bits) => block & ((1 << bits) - 1),
    }
}

/// Bytes of the guard.
const fn guard_bytes(guard: Guard) -> usize {
    match guard {
        Guard::Crc16 => 2,
        Guard::Crc32 => 4,
        Guard::Crc64 => 8,
    }
}

/// The guard of a block's data and of the metadata before the information.
fn guard(guard: Guard, data: &[u8], before: &[u8]) -> u64 {
    match guard {
        Guard::Crc16 => crc16(crc16(0, data), before).into(),
        Guard::Crc32 => u64::from(!crc32(crc32(!0, data), before)),
        Guard::Crc64 => !crc64(crc64(!0, data), before),
    }
}

/// Writes the information of a block into its metadata.
pub fn protect(
    format: &Format,
    protection: &Protection,
    tags: &Tags,
    block: u64,
    data: &[u8],
    metadata: &mut [u8],
) {
    let (before, information) = metadata.split_at_mut(place(format, protection));
    let sum = guard(protection.guard, data, before);
    let (size, all) = (guard_bytes(protection.guard), protection.guard.bytes());
    information[..size].copy_from_slice(&sum.to_be_bytes()[8 - size..]);
    information[size..size + 2].copy_from_slice(&tags.application.to_be_bytes());
    let field = &mut information[size + 2..all];
    field.fill(0);
    let reference = reference(protection, block).to_be_bytes();
    let length = field.len().min(8);
    let from = field.len() - length;
    field[from..].copy_from_slice(&reference[8 - length..]);
}

/// Checks the information of a block. Returns the mistakes.
pub fn check(
    format: &Format,
    protection: &Protection,
    tags: &Tags,
    block: u64,
    data: &[u8],
    metadata: &[u8],
) -> Option<Damage> {
    let (before, information) = metadata.split_at(place(format, protection));
    let (size, all) = (guard_bytes(protection.guard), protection.guard.bytes());
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
    let application = number(&information[size..size + 2]) as u16;
    let field = &information[size + 2..all];
    // The standard's marker for "no checks".
    let is_free = application == u16::MAX && (protection.kind != 3 || field.iter().all(|&byte| byte == 0xff));
    if is_free {
        return None;
    }
    let damage =
        |part, found, expected| (found != expected).then_some(Damage { block, part, found, expected });
    let Checks { guard: checks_guard, application: checks_application, reference: checks_reference } =
        tags.checks;
    if checks_guard {
        let expected = guard(protection.guard, data, before);
        if let Some(damage) = damage(Part::Guard, number(&information[..size]), expected) {
            return Some(damage);
        }
    }
    if checks_application {
        let (found, expected) = (application & tags.mask, tags.application & tags.mask);
        if let Some(damage) = damage(Part::Application, found.into(), expected.into()) {
            return Some(damage);
        }
    }
    if checks_reference && protection.kind != 3 {
        // The storage tag is zeros.
        return damage(Part::Reference, number(field), reference(protection, block));
    }
    None
}

/// A table for a CRC whose bits go from the highest to the lowest.
const fn table16(polynomial: u16) -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000 != 0 { value << 1 ^ polynomial } else { value << 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

/// A table for a CRC whose bits go from the lowest to the highest. `polynomial` is reflected.
const fn table64(polynomial: u64) -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 != 0 { value >> 1 ^ polynomial } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

/// CRC-16 of T10: polynomial 8BB7h, not reflected, initial value 0.
fn crc16(sum: u16, data: &[u8]) -> u16 {
    static TABLE: [u16; 256] = table16(0x8bb7);
    data.iter().fold(sum, |sum, &byte| sum << 8 ^ TABLE[usize::from((sum >> 8) as u8 ^ byte)])
}

/// CRC-32C, Castagnoli: polynomial 1EDC6F41h, reflected.
fn crc32(sum: u32, data: &[u8]) -> u32 {
    static TABLE: [u64; 256] = table64(0x82f6_3b78);
    data.iter().fold(sum, |sum, &byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)] as u32)
}

/// CRC-64 of NVMe: polynomial AD93D23594C93659h, reflected.
fn crc64(sum: u64, data: &[u8]) -> u64 {
    static TABLE: [u64; 256] = table64(0x9a6c_9329_ac4b_c9b5);
    data.iter().fold(sum, |sum, &byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Checks = Checks { guard: true, application: true, reference: true };
    const TAGS: Tags = Tags { application: 0x1234, mask: 0xffff, checks: ALL };

    fn protected(kind: u8, guard: Guard, first: bool, metadata: u16) -> (Format, Protection) {
        let protection = Protection { kind, guard, first, storage_tag: 0 };
        (Format { data: 512, metadata, extended: false, protection: Some(protection) }, protection)
    }

    #[test]
    fn guards_are_those_of_the_standard() {
        // The check values of "123456789", and the examples of the NVM Command Set Specification for CRC-64.
        let digits = b"123456789";
        assert_eq!(guard(Guard::Crc16, digits, &[]), 0xd0db);
        assert_eq!(guard(Guard::Crc32, digits, &[]), 0xe306_9283);
        assert_eq!(guard(Guard::Crc64, digits, &[]), 0xae8b_1486_0a79_9888);
        assert_eq!(guard(Guard::Crc64, &[0; 4096], &[]), 0x6482_d367_eb22_b64e);
        assert_eq!(guard(Guard::Crc64, &[0xff; 4096], &[]), 0xc0dd_ba73_02ec_a3ac);
        let (front, back) = digits.split_at(4);
        for kind in [Guard::Crc16, Guard::Crc32, Guard::Crc64] {
            assert_eq!(
                guard(kind, front, back),
                guard(kind, digits, &[]),
                "metadata continues where data ends"
            );
        }
    }

    #[test]
    fn information_is_laid_out_as_the_standard_says() {
        let data = [0xa5; 512];
        let (format, protection) = protected(1, Guard::Crc16, false, 8);
        let mut metadata = [0xee; 8];
        protect(&format, &protection, &TAGS, 0x1_0203_0405, &data, &mut metadata);
        let sum = crc16(0, &data).to_be_bytes();
        assert_eq!(metadata, [sum[0], sum[1], 0x12, 0x34, 2, 3, 4, 5]);
        let (format, protection) = protected(1, Guard::Crc64, false, 16);
        let mut metadata = [0xee; 16];
        protect(&format, &protection, &TAGS, 0x0a01_0203_0405_0607, &data, &mut metadata);
        let sum = (!crc64(!0, &data)).to_be_bytes();
        assert_eq!((&metadata[..8], &metadata[8..]), (&sum[..], &[0x12, 0x34, 2, 3, 4, 5, 6, 7][..]));
        let (format, protection) = protected(2, Guard::Crc32, true, 20);
        let mut metadata = [0xee; 20];
        protect(&format, &protection, &TAGS, 0x0a01_0203_0405_0607, &data, &mut metadata);
        assert_eq!(metadata[4..], [0x12, 0x34, 0, 0, 0x0a, 1, 2, 3, 4, 5, 6, 7, 0xee, 0xee, 0xee, 0xee]);
        let (format, protection) = protected(3, Guard::Crc16, false, 8);
        protect(&format, &protection, &TAGS, 7, &data, &mut metadata[..8]);
        assert_eq!(metadata[4..8], [0; 4], "type 3 has no reference tag");
    }

    #[test]
    fn each_damage_is_found() {
        for (kind, guard, first, size) in [
            (1, Guard::Crc16, false, 8),
            (2, Guard::Crc16, true, 16),
            (3, Guard::Crc16, false, 16),
            (1, Guard::Crc64, false, 16),
            (2, Guard::Crc64, true, 24),
        ] {
            let (format, protection) = protected(kind, guard, first, size);
            let mut data = vec![0x5a; 512];
            let mut metadata = vec![0x33; size.into()];
            protect(&format, &protection, &TAGS, 77, &data, &mut metadata);
            let look = |data: &[u8], metadata: &[u8]| check(&format, &protection, &TAGS, 77, data, metadata);
            assert_eq!(look(&data, &metadata), None, "{kind} {guard:?}");
            data[100] ^= 1;
            assert_eq!(look(&data, &metadata).map(|damage| damage.part), Some(Part::Guard));
            let blind = Tags { checks: Checks { guard: false, ..ALL }, ..TAGS };
            assert_eq!(check(&format, &protection, &blind, 77, &data, &metadata), None);
            data[100] ^= 1;
            let other = Tags { application: 0x1235, ..TAGS };
            let damage = check(&format, &protection, &other, 77, &data, &metadata).unwrap();
            assert_eq!(
                damage.to_string(),
                "protection information of block 77: application tag 0x1234, and not 0x1235"
            );
            let masked = Tags { mask: 0xff00, ..other };
            assert_eq!(check(&format, &protection, &masked, 77, &data, &metadata), None);
            let moved = check(&format, &protection, &TAGS, 78, &data, &metadata);
            assert_eq!(moved.map(|damage| damage.part), (kind != 3).then_some(Part::Reference));
            let place = place(&format, &protection) + guard_bytes(guard);
            metadata[place..place + 2].fill(0xff);
            let free = check(&format, &protection, &TAGS, 78, &data, &metadata);
            assert_eq!(free.is_none(), kind != 3, "an application tag of ones switches checks off");
        }
    }
}
