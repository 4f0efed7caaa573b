//! Turns units into commands of the NVM Command Set Specification.

use crate::command_shares::Shares;
use iolite_engine::{Errno, Unit};
use iolite_engine_local::io_uring::protection::{self, Tags};
use iolite_options::engines::{IoUringCmdOptions, NvmeWriteMode};
use iolite_os::nvme::zones::{self, action};
use iolite_os::nvme::{Command, Guard, Namespace, Protection, opcode};
use iolite_types::Operation;

/// Bits of dword 12 of commands that transfer blocks: Force Unit Access, and Deallocate of Write Zeroes.
const FUA: u32 = 1 << 30;
const DEAC: u32 = 1 << 25;

/// Protection information: the device makes and strips it; it checks guard, application tag and reference tag.
const PRACT: u32 = 1 << 29;
const CHECK_GUARD: u32 = 1 << 28;
const CHECK_APPLICATION: u32 = 1 << 27;
const CHECK_REFERENCE: u32 = 1 << 26;

/// Bit of dword 11 of Dataset Management: Attribute – Deallocate.
const DEALLOCATE: u32 = 1 << 2;

/// Commands count their blocks in 16 bits, from 1.
const MOST_BLOCKS: u64 = 1 << 16;

/// A range of Dataset Management, as the standard has it: attributes, blocks, the first block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Range {
    attributes: u32,
    blocks: u32,
    first: u64,
}

/// Why there is no command for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It does not consist of whole blocks.
    Blocks,
    /// It has more blocks, or more bytes, than a command can have.
    Length,
    /// It is a Zone Append, but there are no zones.
    NoZones,
}

impl From<Unfit> for Errno {
    fn from(_: Unfit) -> Errno {
        Errno(libc::EINVAL)
    }
}

/// A namespace, and the layout of its blocks in the buffers of commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub namespace: Namespace,
    /// Bytes of a block in the buffer of a unit.
    pub block: u64,
    /// Bytes of a block's metadata in a separate buffer.
    pub metadata: usize,
    /// The protection information of its blocks, if they have any.
    pub protection: Option<Protection>,
    /// A trim resets a zone.
    pub resets_zones: bool,
    /// The bits of dword 12 for protection information.
    flags: u32,
}

impl Target {
    pub(super) fn new(namespace: Namespace, own: &IoUringCmdOptions) -> Target {
        let format = namespace.format;
        let flag = |asked: bool, flag| if asked { flag } else { 0 };
        let flags = format.protection.map_or(0, |protection| {
            flag(own.pi_act, PRACT)
                | flag(own.pi_chk.guard, CHECK_GUARD)
                | flag(own.pi_chk.application, CHECK_APPLICATION)
                // Type 3 has no reference tag.
                | flag(own.pi_chk.reference && protection.kind != 3, CHECK_REFERENCE)
        });
        Target {
            namespace,
            block: format.in_buffer(own.pi_act).into(),
            metadata: format.apart(own.pi_act).into(),
            protection: format.protection,
            resets_zones: false,
            flags,
        }
    }

    /// The offset in bytes at which a device has appended that reports this block; `None` = the block is not in the
    /// zone of the command.
    pub(super) fn landed(&self, command: &Command, block: u64) -> Option<u64> {
        let zone = self.namespace.zones?.blocks;
        let begin = u64::from(command.cdw11) << 32 | u64::from(command.cdw10);
        (begin..begin + zone).contains(&block).then_some(block * self.block)
    }

    /// Sets the fields of a command that concern the protection information of its blocks.
    #[inline(always)]
    fn protect(&self, command: &mut Command, first: u64, tags: &Tags) {
        let Some(protection) = &self.protection else { return };
        command.cdw12 |= self.flags;
        command.cdw15 = u32::from(tags.mask) << 16 | u32::from(tags.application);
        let reference = protection::reference(protection, first);
        command.cdw14 = reference as u32;
        match protection.guard {
            Guard::Crc16 => {}
            Guard::Crc64 => command.cdw3 = (reference >> 32) as u32 & 0xffff,
            Guard::Crc32 => command.cdw3 = (reference >> 32) as u32,
        }
    }
}

/// Turns units into commands, as the job's options say.
#[derive(Debug)]
pub(super) struct Commands {
    read: Kind,
    compare: Kind,
    /// The commands that writes become; the first, if there are no shares.
    writes: Vec<Kind>,
    /// The shares of these commands.
    pub shares: Option<Shares>,
    /// The expected tags of protection information.
    pub tags: Tags,
}

/// A command for a range of blocks.
#[derive(Clone, Copy, Debug)]
struct Kind {
    opcode: u8,
    /// The bits of dword 12 in addition to the number of blocks.
    flags: u32,
    has_data: bool,
}

impl Commands {
    /// The commands for these options.
    pub(super) fn new(own: &IoUringCmdOptions, seed: u64) -> Commands {
        let flag = |asked: bool, flag| if asked { flag } else { 0 };
        let fua = flag(own.writefua, FUA);
        let kind = |&(mode, _): &(NvmeWriteMode, u32)| match mode {
            NvmeWriteMode::Write => Kind { opcode: opcode::WRITE, flags: fua, has_data: true },
            // It has no flags.
            NvmeWriteMode::Uncorrectable => {
                Kind { opcode: opcode::WRITE_UNCORRECTABLE, flags: 0, has_data: false }
            }
            NvmeWriteMode::Zeroes => {
                Kind { opcode: opcode::WRITE_ZEROES, flags: fua | flag(own.deac, DEAC), has_data: false }
            }
            NvmeWriteMode::Verify => Kind { opcode: opcode::VERIFY, flags: fua, has_data: false },
            NvmeWriteMode::Append => Kind { opcode: opcode::ZONE_APPEND, flags: fua, has_data: true },
        };
        let of_reads = |opcode| Kind { opcode, flags: flag(own.readfua, FUA), has_data: true };
        Commands {
            read: of_reads(opcode::READ),
            compare: of_reads(opcode::COMPARE),
            writes: own.write_mode.shares().iter().map(kind).collect(),
            shares: Shares::of(&own.write_mode, seed),
            tags: Tags { application: own.apptag, mask: own.apptag_mask, checks: own.pi_chk },
        }
    }

    /// The command of a unit. It points to the unit's buffer, or for a trim to `ranges`, which are filled in with
    /// `extents`, or with the unit's own range if there are no extents. A read that `compares` has the expected data in
    /// its buffer.
    #[inline(always)]
    pub(super) fn of(
        &mut self,
        unit: &Unit,
        target: &Target,
        extents: &[(u64, u64)],
        ranges: &mut Vec<Range>,
        compares: bool,
    ) -> Result<Command, Unfit> {
        let empty = Command { nsid: target.namespace.number, ..Command::default() };
        let kind = match unit.operation {
            Operation::Read if compares => &self.compare,
            Operation::Read => &self.read,
            Operation::Write => {
                let place = self.shares.as_mut().map_or(0, Shares::draw);
                &self.writes[place]
            }
            Operation::Trim if target.resets_zones => {
                let (first, _) = blocks(unit.offset, unit.length, target.block)?;
                return Ok(zones::send(target.namespace.number, first, action::RESET));
            }
            Operation::Trim => {
                ranges.clear();
                let own = [(unit.offset, unit.length)];
                let extents = if extents.is_empty() { &own } else { extents };
                for &(offset, length) in extents {
                    ranges.push(Range::of(offset, length, target.block)?);
                }
                return Ok(Command {
                    opcode: opcode::DATASET_MANAGEMENT,
                    address: ranges.as_ptr() as u64,
                    data_length: (ranges.len() * size_of::<Range>()) as u32,
                    // The number of ranges, from 1.
                    cdw10: ranges.len() as u32 - 1,
                    cdw11: DEALLOCATE,
                    ..empty
                });
            }
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange | Operation::Work => {
                return Ok(Command { opcode: opcode::FLUSH, ..empty });
            }
        };
        let (mut first, blocks) = blocks(unit.offset, unit.length, target.block)?;
        if blocks > MOST_BLOCKS {
            return Err(Unfit::Length);
        }
        if kind.opcode == opcode::ZONE_APPEND {
            // It names the zone by its first block.
            first -= first % target.namespace.zones.ok_or(Unfit::NoZones)?.blocks.max(1);
        }
        let (address, data_length) = if kind.has_data {
            // 65536 blocks of 64 KiB exceed the length field by one byte.
            (unit.buffer as u64, u32::try_from(unit.length).map_err(|_| Unfit::Length)?)
        } else {
            (0, 0)
        };
        let mut command = Command {
            opcode: kind.opcode,
            address,
            data_length,
            cdw10: first as u32,
            cdw11: (first >> 32) as u32,
            cdw12: (blocks - 1) as u32 | kind.flags,
            ..empty
        };
        if kind.opcode != opcode::WRITE_UNCORRECTABLE {
            target.protect(&mut command, first, &self.tags);
        }
        Ok(command)
    }
}

/// The first block, and the number of blocks.
#[inline(always)]
fn blocks(offset: u64, length: u64, block: u64) -> Result<(u64, u64), Unfit> {
    if block.is_power_of_two() {
        let (shift, rest) = (block.trailing_zeros(), block - 1);
        let is_whole = (offset | length) & rest == 0 && length > 0;
        return if is_whole { Ok((offset >> shift, length >> shift)) } else { Err(Unfit::Blocks) };
    }
    // The block size includes interleaved metadata.
    let is_whole = offset.is_multiple_of(block) && length.is_multiple_of(block) && length > 0;
    if is_whole { Ok((offset / block, length / block)) } else { Err(Unfit::Blocks) }
}

impl Range {
    fn of(offset: u64, length: u64, block: u64) -> Result<Range, Unfit> {
        let (first, blocks) = blocks(offset, length, block)?;
        let blocks = u32::try_from(blocks).map_err(|_| Unfit::Length)?;
        Ok(Range { attributes: 0, blocks: blocks.to_le(), first: first.to_le() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::engines::Checks;
    use iolite_os::nvme::{Format, ZoneGeometry};

    fn target(data: u32) -> Target {
        let format = Format { data, metadata: 0, extended: false, protection: None };
        of_format(format, &IoUringCmdOptions::default())
    }

    fn of_format(format: Format, own: &IoUringCmdOptions) -> Target {
        Target::new(Namespace { number: 3, blocks: 1 << 40, format, optional: 0, zones: None }, own)
    }

    fn unit(operation: Operation, offset: u64, length: u64) -> Unit {
        let buffer = 0x1122_3344_5566_7000_u64 as *mut u8;
        Unit { buffer, length, offset, index: 0, file: 0, operation, priority: 0 }
    }

    fn command(own: &IoUringCmdOptions, unit: &Unit, block: u32) -> Result<(Command, Vec<Range>), Unfit> {
        let mut ranges = Vec::new();
        let command = Commands::new(own, 1).of(unit, &target(block), &[], &mut ranges, false)?;
        Ok((command, ranges))
    }

    /// The submission queue entry of the command, without the fields that only the driver fills in: bytes 0 and 4 to 7,
    /// and from byte 40 on.
    fn entry(own: &IoUringCmdOptions, unit: &Unit) -> Vec<u8> {
        let bytes = command(own, unit, 512).unwrap().0.bytes();
        [&bytes[..1], &bytes[4..8], &bytes[40..64]].concat()
    }

    #[test]
    fn reads_and_writes_are_encoded_as_the_standard_says() {
        let plain = IoUringCmdOptions::default();
        // 8 blocks at block 0x1_0000_0002.
        let offset = 0x1_0000_0002_u64 * 512;
        let blocks = [2, 0, 0, 0, 1, 0, 0, 0, 7, 0];
        let tail = [0; 14];
        let expected = |opcode: u8, tail: [u8; 14]| [&[opcode, 3, 0, 0, 0][..], &blocks, &tail].concat();
        assert_eq!(entry(&plain, &unit(Operation::Read, offset, 4096)), expected(2, tail));
        assert_eq!(entry(&plain, &unit(Operation::Write, offset, 4096)), expected(1, tail));
        let fua = |own: IoUringCmdOptions, operation, opcode| {
            let mut forced = tail;
            forced[1] = 0x40;
            assert_eq!(entry(&own, &unit(operation, offset, 4096)), expected(opcode, forced));
        };
        fua(IoUringCmdOptions { readfua: true, ..plain.clone() }, Operation::Read, 2);
        fua(IoUringCmdOptions { writefua: true, ..plain.clone() }, Operation::Write, 1);
        let (read, _) = command(&plain, &unit(Operation::Read, 0, 4096), 4096).unwrap();
        assert_eq!((read.cdw12, read.data_length, read.address), (0, 4096, 0x1122_3344_5566_7000));
    }

    #[test]
    fn modes_of_writing_are_commands_of_their_own() {
        let mode = |write_mode, deac| {
            let write_mode = NvmeWriteMode::into(write_mode);
            let own = IoUringCmdOptions { write_mode, deac, writefua: true, ..IoUringCmdOptions::default() };
            let (command, _) = command(&own, &unit(Operation::Write, 512, 1024), 512).unwrap();
            assert_eq!((command.cdw10, command.cdw11), (1, 0));
            assert_eq!((command.address, command.data_length), (0, 0), "nothing is transferred");
            (command.opcode, command.cdw12)
        };
        assert_eq!(mode(NvmeWriteMode::Uncorrectable, false), (4, 1), "there is no FUA");
        assert_eq!(mode(NvmeWriteMode::Zeroes, false), (8, 0x4000_0001));
        assert_eq!(mode(NvmeWriteMode::Zeroes, true), (8, 0x4200_0001));
        assert_eq!(mode(NvmeWriteMode::Verify, true), (12, 0x4000_0001));
    }

    #[test]
    fn commands_of_zones_name_them_by_their_first_block() {
        let own = IoUringCmdOptions {
            write_mode: NvmeWriteMode::Append.into(),
            writefua: true,
            ..IoUringCmdOptions::default()
        };
        let zones = ZoneGeometry { blocks: 0x300, most_open: 0, most_active: 0, largest_append: 0 };
        let plain = target(4096);
        let namespace = Namespace { zones: Some(zones), ..plain.namespace };
        let zoned = Target { namespace, resets_zones: true, ..plain };
        let mut commands = Commands::new(&own, 1);
        let mut made = |unit: Unit, target: &Target| commands.of(&unit, target, &[], &mut Vec::new(), false);
        let append = made(unit(Operation::Write, 0x10_0000_0401 * 4096, 8192), &zoned).unwrap();
        let first = 0x10_0000_0401_u64 / 0x300 * 0x300;
        assert_eq!(
            (append.opcode, append.nsid, append.cdw12, append.data_length),
            (0x7d, 3, 0x4000_0001, 8192)
        );
        assert_eq!((append.cdw10, append.cdw11), (first as u32, (first >> 32) as u32));
        assert_eq!(zoned.landed(&append, first + 5), Some((first + 5) * 4096));
        assert_eq!((zoned.landed(&append, first + 0x300), zoned.landed(&append, first - 1)), (None, None));
        assert_eq!(made(unit(Operation::Write, 0, 4096), &plain).err(), Some(Unfit::NoZones));
        let reset = made(unit(Operation::Trim, 0x600 * 4096, 0x300 * 4096), &zoned).unwrap();
        assert_eq!((reset.opcode, reset.cdw10, reset.cdw13, reset.data_length), (0x79, 0x600, 4, 0));
    }

    #[test]
    fn compare_commands_transfer_their_data() {
        let own = IoUringCmdOptions { readfua: true, ..IoUringCmdOptions::default() };
        let unit = unit(Operation::Read, 4096, 4096);
        let compare = Commands::new(&own, 1).of(&unit, &target(512), &[], &mut Vec::new(), true).unwrap();
        let dwords = [compare.cdw10, compare.cdw11, compare.cdw12];
        assert_eq!((compare.opcode, dwords, compare.data_length), (5, [8, 0, 0x4000_0007], 4096));
        assert_eq!(compare.address, 0x1122_3344_5566_7000);
    }

    #[test]
    fn trims_are_ranges_to_be_deallocated() {
        let own = IoUringCmdOptions::default();
        let (trim, ranges) = command(&own, &unit(Operation::Trim, 4096, 1 << 30), 512).unwrap();
        assert_eq!((trim.opcode, trim.cdw10, trim.cdw11, trim.data_length), (9, 0, 4, 16));
        assert_eq!(trim.address, ranges.as_ptr() as u64);
        // SAFETY: a range consists of integers without gaps.
        let bytes = |range: Range| -> [u8; 16] { unsafe { std::mem::transmute(range) } };
        let [range] = ranges[..] else { panic!("one") };
        assert_eq!(bytes(range), [0, 0, 0, 0, 0, 0, 0x20, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        let mut ranges = Vec::new();
        let extents = [(0, 512), (1 << 20, 4096)];
        let several = Commands::new(&own, 1)
            .of(&unit(Operation::Trim, 0, 4608), &target(512), &extents, &mut ranges, false)
            .unwrap();
        assert_eq!((several.opcode, several.cdw10, several.cdw11, several.data_length), (9, 1, 4, 32));
        assert_eq!(bytes(ranges[0]), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(ranges[1]), [0, 0, 0, 0, 8, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn protection_information_is_asked_for_as_the_standard_says() {
        let protection = Protection { kind: 1, guard: Guard::Crc16, first: false, storage_tag: 0 };
        let separate = Format { data: 512, metadata: 8, extended: false, protection: Some(protection) };
        let all = Checks { guard: true, application: true, reference: true };
        let first = 0x1_0203_0405_u64;
        let made = |format: Format, pi_act, pi_chk| {
            let own = IoUringCmdOptions {
                pi_act,
                pi_chk,
                apptag: 0xabcd,
                apptag_mask: 0xff00,
                ..Default::default()
            };
            let target = of_format(format, &own);
            let unit = unit(Operation::Read, first * target.block, 8 * target.block);
            Commands::new(&own, 1).of(&unit, &target, &[], &mut Vec::new(), false).unwrap()
        };
        let command = made(separate, true, Checks::default());
        assert_eq!((command.cdw12, command.cdw14, command.cdw15), (0x2000_0007, 0x0203_0405, 0xff00_abcd));
        assert_eq!(made(separate, false, all).cdw12, 0x1c00_0007);
        assert_eq!(made(separate, true, Checks { guard: false, ..all }).cdw12, 0x2c00_0007);
        let third = Format { protection: Some(Protection { kind: 3, ..protection }), ..separate };
        let command = made(third, false, all);
        assert_eq!((command.cdw12, command.cdw14), (0x1800_0007, 0), "there is no reference tag");
        let long = Protection { guard: Guard::Crc64, ..protection };
        let interleaved = Format { metadata: 16, extended: true, protection: Some(long), ..separate };
        let command = made(interleaved, false, all);
        assert_eq!((command.cdw3, command.cdw14, command.data_length), (1, 0x0203_0405, 8 * 528));
        assert_eq!(made(interleaved, true, all).data_length, 8 * 512, "the device strips it");
        assert_eq!(made(Format { protection: None, ..separate }, true, all).cdw12, 7);
    }

    #[test]
    fn syncs_are_flushes() {
        let own = IoUringCmdOptions::default();
        for operation in [Operation::Sync, Operation::DataSync, Operation::SyncFileRange] {
            let (flush, _) = command(&own, &unit(operation, 0, 0), 512).unwrap();
            assert_eq!(flush, Command { nsid: 3, ..Command::default() });
        }
    }

    #[test]
    fn units_that_do_not_fit_in_a_command_are_refused() {
        let own = IoUringCmdOptions::default();
        let refused = |operation, offset, length| command(&own, &unit(operation, offset, length), 4096).err();
        assert_eq!(refused(Operation::Read, 512, 4096), Some(Unfit::Blocks));
        assert_eq!(refused(Operation::Write, 0, 1000), Some(Unfit::Blocks));
        assert_eq!(refused(Operation::Trim, 0, 512), Some(Unfit::Blocks));
        assert_eq!(refused(Operation::Read, 0, 4096 << 16), None);
        assert_eq!(refused(Operation::Read, 0, 4096 * 65537), Some(Unfit::Length));
        assert_eq!(refused(Operation::Trim, 0, 4096 << 32), Some(Unfit::Length));
        let large = |length| command(&own, &unit(Operation::Write, 0, length), 1 << 16);
        assert_eq!(large(65535 << 16).map(|(command, _)| command.data_length), Ok(65535 << 16));
        assert_eq!(large(65536 << 16).err(), Some(Unfit::Length), "its bytes do not fit into 32 bits");
    }
}
