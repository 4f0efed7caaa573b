//! SCSI commands for ranges of blocks, in the forms of SBC-4 (SCSI Block Commands). Each engine sends them in its own way.

use iolite_engine::{Errno, Unit};
use iolite_options::engines::CdbLength;

/// SYNCHRONIZE CACHE of the complete disk.
pub(crate) static SYNCHRONIZE_CACHE: [u8; 10] = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Force unit access, in the byte with the flags.
pub(crate) const FUA: u8 = 0x08;
/// No data-out buffer (WRITE SAME).
pub(crate) const NDOB: u8 = 0x01;

const UNMAP: u8 = 0x42;
/// The long form of WRITE LONG is an action of another command.
const WRITE_LONG_ACTION: u8 = 0x11;
/// Commands with 32 bytes (VARIABLE LENGTH CDB): the operation code, and the number of bytes after byte 7.
const VARIABLE_LENGTH: u8 = 0x7f;
const ADDITIONAL_LENGTH: u8 = 0x18;

/// The data that a command transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    None,
    /// The first block of the buffer.
    Block,
    /// The complete buffer.
    Whole,
}

/// A command for a range of blocks in its forms. `None` = it does not have this form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// The operation code with 10 bytes.
    pub ten: Option<u8>,
    /// The operation code of the form with 16 bytes.
    pub sixteen: Option<u8>,
    /// The service action with 32 bytes.
    pub thirty_two: Option<u16>,
    pub flags: u8,
    pub data: Data,
    /// It covers one block, and has no block count.
    pub is_single: bool,
}

/// A command with all its forms.
const fn command(ten: u8, sixteen: u8, thirty_two: u16, data: Data) -> Command {
    Command {
        ten: Some(ten),
        sixteen: Some(sixteen),
        thirty_two: Some(thirty_two),
        flags: 0,
        data,
        is_single: false,
    }
}

impl Command {
    pub(crate) const READ: Command = command(0x28, 0x88, 0x09, Data::Whole);
    pub(crate) const WRITE: Command = command(0x2a, 0x8a, 0x0b, Data::Whole);
    pub(crate) const WRITE_AND_VERIFY: Command = command(0x2e, 0x8e, 0x0c, Data::Whole);
    pub(crate) const WRITE_SAME: Command = command(0x41, 0x93, 0x0d, Data::Block);
    /// WRITE SAME of zeros, or of data that the disk chooses.
    pub(crate) const WRITE_SAME_WITHOUT_DATA: Command =
        Command { ten: None, flags: NDOB, data: Data::None, ..Command::WRITE_SAME };
    /// VERIFY of the medium (BYTCHK=00b).
    pub(crate) const VERIFY_MEDIUM: Command = command(0x2f, 0x8f, 0x0a, Data::None);
    /// VERIFY of each block against its data (BYTCHK=01b).
    pub(crate) const VERIFY_DATA: Command =
        Command { flags: 0x02, data: Data::Whole, ..Command::VERIFY_MEDIUM };
    /// VERIFY of every block against a single block (BYTCHK=11b).
    pub(crate) const VERIFY_BLOCK: Command =
        Command { flags: 0x06, data: Data::Block, ..Command::VERIFY_MEDIUM };
    /// PRE-FETCH, which is complete when the blocks are in the cache.
    pub(crate) const PREFETCH: Command = Command { thirty_two: None, ..command(0x34, 0x90, 0, Data::None) };
    /// WRITE LONG that marks a block as uncorrectable (WR_UNCOR), without data.
    pub(crate) const WRITE_UNCORRECTABLE: Command =
        Command { thirty_two: None, flags: 0x40, is_single: true, ..command(0x3f, 0x9f, 0, Data::None) };

    /// Sets this bit if `is_asked`.
    pub(crate) const fn with(self, bit: u8, is_asked: bool) -> Command {
        let bit = if is_asked { bit } else { 0 };
        Command { flags: self.flags | bit, ..self }
    }

    /// The bytes of the command for these blocks, in a form of this length.
    #[inline(always)]
    pub(crate) fn about(&self, first: u64, count: u32, length: CdbLength) -> Result<Cdb, Unfit> {
        if self.is_single && count != 1 {
            return Err(Unfit::Single);
        }
        let count = if self.is_single { 0 } else { count };
        let is_short = first <= u64::from(u32::MAX) && count <= u32::from(u16::MAX);
        let form = |form: Option<u8>| form.ok_or(Unfit::NoForm);
        let mut bytes = [0; Cdb::MOST];
        let length = match length {
            CdbLength::AsNeeded | CdbLength::Ten if is_short && self.ten.is_some() => 10,
            CdbLength::Ten => {
                form(self.ten)?;
                return Err(Unfit::Short);
            }
            CdbLength::AsNeeded | CdbLength::Sixteen => 16,
            CdbLength::ThirtyTwo => 32,
        };
        match length {
            10 => {
                bytes[0] = form(self.ten)?;
                bytes[1] = self.flags;
                bytes[2..6].copy_from_slice(&(first as u32).to_be_bytes());
                bytes[7..9].copy_from_slice(&(count as u16).to_be_bytes());
            }
            16 => {
                bytes[0] = form(self.sixteen)?;
                bytes[1] = self.flags | if self.is_single { WRITE_LONG_ACTION } else { 0 };
                bytes[2..10].copy_from_slice(&first.to_be_bytes());
                bytes[10..14].copy_from_slice(&count.to_be_bytes());
            }
            _ => {
                let action = self.thirty_two.ok_or(Unfit::NoForm)?;
                (bytes[0], bytes[7]) = (VARIABLE_LENGTH, ADDITIONAL_LENGTH);
                bytes[8..10].copy_from_slice(&action.to_be_bytes());
                bytes[10] = self.flags;
                bytes[12..20].copy_from_slice(&first.to_be_bytes());
                bytes[28..32].copy_from_slice(&count.to_be_bytes());
            }
        }
        Ok(Cdb { bytes, length })
    }
}

/// The bytes of a command (Command Descriptor Block).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cdb {
    pub bytes: [u8; Cdb::MOST],
    pub length: u8,
}

impl Cdb {
    /// The length of the longest command in bytes.
    const MOST: usize = 32;

    /// No command.
    pub(crate) const EMPTY: Cdb = Cdb { bytes: [0; Cdb::MOST], length: 0 };

    /// UNMAP. Its ranges are in its data.
    pub(crate) const UNMAP: Cdb = {
        let mut bytes = [0; Cdb::MOST];
        (bytes[0], bytes[8]) = (UNMAP, size_of::<Ranges>() as u8);
        Cdb { bytes, length: 10 }
    };

    /// A command of these bytes.
    pub(crate) fn of(command: &[u8]) -> Cdb {
        let mut bytes = [0; Cdb::MOST];
        bytes[..command.len()].copy_from_slice(command);
        Cdb { bytes, length: command.len() as u8 }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The data of UNMAP: a header and one range.
pub(crate) type Ranges = [u8; 24];

/// The data of an UNMAP of these blocks.
#[inline(always)]
pub(crate) fn ranges(first: u64, count: u32) -> Ranges {
    let mut ranges = [0; size_of::<Ranges>()];
    // The length of the parameters after these two bytes, and the length of the one range descriptor in them.
    ranges[..4].copy_from_slice(&[0, 22, 0, 16]);
    ranges[8..16].copy_from_slice(&first.to_be_bytes());
    ranges[16..20].copy_from_slice(&count.to_be_bytes());
    ranges
}

/// Why there is no command for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It does not consist of whole blocks.
    Blocks,
    /// It has more blocks than a command counts.
    Length,
    /// It has too many blocks for the short form, or blocks beyond its range.
    Short,
    /// The command has no form of this length.
    NoForm,
    /// The command covers one block.
    Single,
    /// It has more blocks than a command for a stream counts.
    Stream,
}

impl From<Unfit> for Errno {
    fn from(_: Unfit) -> Errno {
        Errno(libc::EINVAL)
    }
}

impl Unfit {
    /// The message, for a disk with blocks of this size.
    pub(crate) fn explain(self, block: u64) -> String {
        match self {
            Unfit::Blocks => {
                format!("the disk has blocks of {block} bytes, and a command must cover whole blocks")
            }
            Unfit::Length => format!("a command covers fewer than 4294967296 blocks of {block} bytes"),
            Unfit::Short => format!(
                "a command of 10 bytes covers at most 65535 blocks of {block} bytes, which lie before block \
                 4294967296; use cdb_len=16"
            ),
            Unfit::NoForm => "the command has no form of this length; leave cdb_len out".to_owned(),
            Unfit::Single => {
                format!(
                    "WRITE LONG makes one block unreadable, and the disk has blocks of {block} bytes; use bs={block}"
                )
            }
            Unfit::Stream => {
                format!("a write to a stream covers at most 65535 blocks of {block} bytes; use a smaller bs")
            }
        }
    }
}

/// The first block of a unit, and the number of blocks. Commands cover complete blocks, and count them in 32 bits.
#[inline(always)]
pub(crate) fn blocks(unit: &Unit, block: u64) -> Result<(u64, u32), Unfit> {
    let (first, rest) = (unit.offset / block, unit.offset % block);
    let (count, part) = (unit.length / block, unit.length % block);
    let count = u32::try_from(count).map_err(|_| Unfit::Length)?;
    if rest != 0 || part != 0 { Err(Unfit::Blocks) } else { Ok((first, count)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(command: Command, length: CdbLength) -> Result<Vec<u8>, Unfit> {
        command.about(0x1234, 8, length).map(|cdb| cdb.as_slice().to_vec())
    }

    /// SBC-4, the tables of READ, WRITE, WRITE AND VERIFY, WRITE SAME, VERIFY and PRE-FETCH.
    #[test]
    fn commands_have_the_forms_of_the_standard() {
        let all = [
            (Command::READ, [0x28, 0x88], Some(0x09)),
            (Command::WRITE, [0x2a, 0x8a], Some(0x0b)),
            (Command::WRITE_AND_VERIFY, [0x2e, 0x8e], Some(0x0c)),
            (Command::WRITE_SAME, [0x41, 0x93], Some(0x0d)),
            (Command::VERIFY_MEDIUM, [0x2f, 0x8f], Some(0x0a)),
            (Command::PREFETCH, [0x34, 0x90], None),
        ];
        for (command, [ten, sixteen], action) in all {
            let command = command.with(0x10, true);
            assert_eq!(
                bytes(command, CdbLength::Ten).unwrap(),
                [ten, 0x10, 0, 0, 0x12, 0x34, 0, 0, 8, 0],
                "{ten:x}"
            );
            let expected = [sixteen, 0x10, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 8, 0, 0];
            assert_eq!(bytes(command, CdbLength::Sixteen).unwrap(), expected, "{sixteen:x}");
            let long = bytes(command, CdbLength::ThirtyTwo);
            let Some(action) = action else {
                assert_eq!(long, Err(Unfit::NoForm));
                continue;
            };
            let mut expected = [0; 32];
            // VARIABLE LENGTH, 24 bytes behind the eighth; the service action; the flags; the first block; the count.
            (expected[0], expected[7], expected[9], expected[10]) = (0x7f, 0x18, action, 0x10);
            (expected[18], expected[19], expected[31]) = (0x12, 0x34, 8);
            assert_eq!(long.unwrap(), expected, "{action:x}");
        }
        assert_eq!(
            [Command::VERIFY_DATA.flags, Command::VERIFY_BLOCK.flags],
            [0x02, 0x06],
            "BYTCHK, bits 2 and 1"
        );
        assert_eq!(Command::WRITE.with(FUA, true).flags, 0x08);
        assert_eq!(Command::WRITE.with(FUA, false).flags, 0);
    }

    #[test]
    fn short_forms_are_used_as_long_as_numbers_fit() {
        let length = |first, count| Command::READ.about(first, count, CdbLength::AsNeeded).unwrap().length;
        assert_eq!(length(u32::MAX.into(), 0xffff), 10);
        assert_eq!([length(1 << 32, 1), length(0, 0x1_0000)], [16, 16]);
        let ten = |first, count| Command::READ.about(first, count, CdbLength::Ten);
        assert_eq!([ten(1 << 32, 1), ten(0, 0x1_0000)], [Err(Unfit::Short); 2]);
        let zeros = Command::WRITE_SAME_WITHOUT_DATA;
        assert_eq!(zeros.about(0, 1, CdbLength::AsNeeded).unwrap().as_slice()[..2], [0x93, 0x01]);
        assert_eq!(zeros.about(0, 1, CdbLength::Ten), Err(Unfit::NoForm));
    }

    #[test]
    fn one_block_is_made_unreadable_at_a_time() {
        let uncorrectable =
            |count, length| Command::WRITE_UNCORRECTABLE.about(0x0102_0304_0506, count, length);
        let long = uncorrectable(1, CdbLength::AsNeeded).unwrap();
        assert_eq!(
            long.as_slice(),
            [0x9f, 0x51, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0],
            "SERVICE ACTION OUT(16)"
        );
        let short = Command::WRITE_UNCORRECTABLE.about(7, 1, CdbLength::AsNeeded).unwrap();
        assert_eq!(short.as_slice(), [0x3f, 0x40, 0, 0, 0, 7, 0, 0, 0, 0]);
        assert_eq!(uncorrectable(2, CdbLength::AsNeeded), Err(Unfit::Single));
        assert_eq!(uncorrectable(1, CdbLength::ThirtyTwo), Err(Unfit::NoForm));
    }

    #[test]
    fn unmapped_blocks_are_one_range() {
        assert_eq!(Cdb::UNMAP.as_slice(), [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]);
        let expected = [0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0];
        assert_eq!(ranges(0x01_0203_0405, 0x0607_0809), expected);
    }
}
