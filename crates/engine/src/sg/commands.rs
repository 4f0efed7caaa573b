//! The commands of SBC-4 (SCSI Block Commands) that units become.

use super::disk::Disk;
use crate::{Errno, Outcome, Unit};
use iolite_options::engines::{SgOptions, SgWriteMode};
use iolite_os::scsi::{Header, Transfer};
use iolite_types::Operation;

/// All of the disk's cache.
pub(super) static SYNCHRONIZE_CACHE: [u8; 10] = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A command with its answer. It stays in its place: the header points into it.
pub(super) struct Request {
    pub header: Header,
    /// The file that it is for.
    pub file: u32,
    /// The length that the unit counts with, whatever is transferred.
    length: u64,
    command: [u8; 16],
    sense: [u8; 32],
    /// The parameter list of UNMAP.
    ranges: [u8; 24],
}

impl Default for Request {
    fn default() -> Self {
        Request {
            header: Header::EMPTY,
            file: 0,
            length: 0,
            command: [0; 16],
            sense: [0; 32],
            ranges: [0; 24],
        }
    }
}

impl Request {
    /// Sets the pointers, once the request is where it stays, and the number by which its answer is known.
    pub(super) fn tie(&mut self, index: usize) {
        self.header.cmdp = self.command.as_ptr();
        self.header.sbp = self.sense.as_mut_ptr();
        self.header.mx_sb_len = self.sense.len() as u8;
        self.header.usr_ptr = index;
        // The length of the parameters behind these two bytes, and that of the one range among them.
        self.ranges[..4].copy_from_slice(&[0, 22, 0, 16]);
    }

    /// The outcome of the command.
    #[inline(always)]
    pub(super) fn outcome(&self) -> Outcome {
        if !self.header.succeeded() {
            return Err(Errno(libc::EIO));
        }
        let missing = u64::try_from(self.header.resid).unwrap_or(0);
        // A command that transfers anything but the unit's data counts with the full length.
        let is_data = u64::from(self.header.dxfer_len) == self.length;
        Ok(if is_data { self.length - missing.min(self.length) } else { self.length })
    }

    /// Why the disk refused it; `None` = it did not.
    pub(super) fn complaint(&self) -> Option<String> {
        let Header { status, host_status, driver_status, sb_len_wr, .. } = self.header;
        if self.header.succeeded() {
            return None;
        }
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let command = hex(&self.command[..self.header.cmd_len as usize]);
        let sense = &self.sense[..(sb_len_wr as usize).min(self.sense.len())];
        Some(match Sense::of(sense) {
            Some(Sense { key, code, qualifier }) => {
                let name = SENSE_KEYS[usize::from(key & 15)];
                format!("{name} (sense key {key:x}h, code {code:02x}h/{qualifier:02x}h) to command {command}")
            }
            None => format!(
                "status {status:02x}h, host status {host_status:02x}h, driver status {driver_status:02x}h to command \
                 {command}"
            ),
        })
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

impl Sense {
    /// From sense data in fixed or descriptor format.
    fn of(data: &[u8]) -> Option<Sense> {
        let byte = |place: usize| data.get(place).copied().unwrap_or(0);
        match data.first()? & 0x7f {
            0x70 | 0x71 => Some(Sense { key: byte(2) & 15, code: byte(12), qualifier: byte(13) }),
            0x72 | 0x73 => Some(Sense { key: byte(1) & 15, code: byte(2), qualifier: byte(3) }),
            _ => None,
        }
    }
}

/// The data that a command transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    None,
    /// The first block of the buffer.
    Block,
    /// All of the buffer.
    Whole,
}

/// A command for a range of blocks in its two lengths.
#[derive(Clone, Copy, Debug)]
struct Command {
    /// `None` = there is only the long one.
    short: Option<u8>,
    long: u8,
    /// The second byte.
    flags: u8,
    data: Data,
    transfer: Transfer,
    header_flags: u32,
}

/// Force unit access.
const FUA: u8 = 0x08;
/// No data-out buffer.
const NDOB: u8 = 0x01;

const UNMAP: u8 = 0x42;
const WRITE_STREAM: u8 = 0x9a;

/// Makes commands of units, as the job's options say.
pub(super) struct Filler {
    read: Command,
    write: Command,
    stream: u16,
    opens_streams: bool,
}

impl Filler {
    pub(super) fn new(own: &SgOptions) -> Filler {
        let polled = if own.hipri { Header::POLLED } else { 0 };
        let plain = |short, long, flags, data| {
            let transfer = if data == Data::None { Transfer::None } else { Transfer::ToDevice };
            Command { short, long, flags, data, transfer, header_flags: 0 }
        };
        let fua = |asked: bool| if asked { FUA } else { 0 };
        let write = match own.sg_write_mode {
            SgWriteMode::Write => {
                Command { header_flags: polled, ..plain(Some(0x2a), 0x8a, fua(own.writefua), Data::Whole) }
            }
            SgWriteMode::WriteAndVerify => plain(Some(0x2e), 0x8e, 0, Data::Whole),
            SgWriteMode::WriteSame => plain(Some(0x41), 0x93, 0, Data::Block),
            SgWriteMode::WriteSameWithoutData => plain(None, 0x93, NDOB, Data::None),
            SgWriteMode::VerifyMedium => plain(Some(0x2f), 0x8f, 0, Data::None),
            SgWriteMode::VerifyData => plain(Some(0x2f), 0x8f, 0x02, Data::Whole),
            SgWriteMode::VerifyBlock => plain(Some(0x2f), 0x8f, 0x06, Data::Block),
            SgWriteMode::WriteStream => plain(None, WRITE_STREAM, fua(own.writefua), Data::Whole),
        };
        let read = Command {
            transfer: Transfer::FromDevice,
            header_flags: polled,
            ..plain(Some(0x28), 0x88, fua(own.readfua), Data::Whole)
        };
        let is_streamed = own.sg_write_mode == SgWriteMode::WriteStream;
        Filler { read, write, stream: own.stream_id, opens_streams: is_streamed && own.stream_id == 0 }
    }

    /// Whether a stream is opened on each disk.
    pub(super) fn opens_streams(&self) -> bool {
        self.opens_streams
    }

    /// Puts the command of a unit into its request.
    #[inline(always)]
    pub(super) fn fill(&self, request: &mut Request, unit: &Unit, disk: &Disk) -> Result<(), Errno> {
        let (first, rest) = (unit.offset / disk.block, unit.offset % disk.block);
        let (blocks, part) = (unit.length / disk.block, unit.length % disk.block);
        // A disk has nothing smaller than its blocks, and a command counts them in 32 bits.
        let Ok(count) = u32::try_from(blocks) else { return Err(Errno(libc::EINVAL)) };
        if rest != 0 || part != 0 {
            return Err(Errno(libc::EINVAL));
        }
        request.file = unit.file;
        request.length = unit.length;
        if unit.operation == Operation::Trim {
            request.unmap(first, count);
            return Ok(());
        }
        let what = if unit.operation == Operation::Write { &self.write } else { &self.read };
        let Request { header, command, .. } = request;
        command.fill(0);
        command[1] = what.flags;
        match what.short {
            Some(operation) if first <= u64::from(u32::MAX) && count <= u32::from(u16::MAX) => {
                command[0] = operation;
                command[2..6].copy_from_slice(&(first as u32).to_be_bytes());
                command[7..9].copy_from_slice(&(count as u16).to_be_bytes());
                header.cmd_len = 10;
            }
            _ => {
                command[0] = what.long;
                command[2..10].copy_from_slice(&first.to_be_bytes());
                command[10..14].copy_from_slice(&count.to_be_bytes());
                header.cmd_len = 16;
            }
        }
        if what.long == WRITE_STREAM {
            // It counts in 16 bits; the stream stands where others have the upper half.
            let Ok(count) = u16::try_from(count) else { return Err(Errno(libc::EINVAL)) };
            let stream = disk.stream.unwrap_or(self.stream);
            command[10..12].copy_from_slice(&stream.to_be_bytes());
            command[12..14].copy_from_slice(&count.to_be_bytes());
        }
        let bytes = match what.data {
            Data::None => 0,
            Data::Block => disk.block.min(unit.length),
            Data::Whole => unit.length,
        };
        header.dxfer_direction = what.transfer as i32;
        header.dxfer_len = bytes as u32;
        header.dxferp = unit.buffer;
        header.flags = what.header_flags;
        Ok(())
    }
}

impl Request {
    /// Makes it an UNMAP of these blocks.
    fn unmap(&mut self, first: u64, count: u32) {
        self.command.fill(0);
        self.command[0] = UNMAP;
        self.command[8] = self.ranges.len() as u8;
        self.ranges[8..16].copy_from_slice(&first.to_be_bytes());
        self.ranges[16..20].copy_from_slice(&count.to_be_bytes());
        self.header.cmd_len = 10;
        self.header.dxfer_direction = Transfer::ToDevice as i32;
        self.header.dxfer_len = self.ranges.len() as u32;
        self.header.dxferp = self.ranges.as_mut_ptr();
        self.header.flags = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command of a unit, how many bytes go which way, and the flags of the header.
    fn command(
        change: impl FnOnce(&mut SgOptions),
        operation: Operation,
        (offset, length): (u64, u64),
    ) -> Result<(Vec<u8>, i32, u32, u32), Errno> {
        let mut own = SgOptions::default();
        change(&mut own);
        let disk = Disk { is_generic: true, block: 512, stream: None, in_flight: 0 };
        let unit =
            Unit { buffer: std::ptr::null_mut(), length, offset, index: 0, file: 0, operation, priority: 0 };
        let mut request = Request::default();
        request.tie(0);
        Filler::new(&own).fill(&mut request, &unit, &disk)?;
        let Header { cmd_len, dxfer_direction, dxfer_len, flags, .. } = request.header;
        Ok((request.command[..cmd_len as usize].to_vec(), dxfer_direction, dxfer_len, flags))
    }

    const ONE: (u64, u64) = (512 * 0x1234, 4096);

    #[test]
    fn short_commands_are_used_as_long_as_numbers_fit() {
        let read = |place| command(|_| (), Operation::Read, place).unwrap();
        assert_eq!(read(ONE), (vec![0x28, 0, 0, 0, 0x12, 0x34, 0, 0, 8, 0], -3, 4096, 0));
        let (long, ..) = read((512 << 32, 4096));
        assert_eq!(long, [0x88, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
        let (long, ..) = read((0, 512 << 16));
        assert_eq!(long, [0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn writes_are_what_the_mode_says() {
        use SgWriteMode::*;
        let modes = [
            (Write, 0x2a, 0, 4096),
            (WriteAndVerify, 0x2e, 0, 4096),
            (WriteSame, 0x41, 0, 512),
            (WriteSameWithoutData, 0x93, 1, 0),
            (VerifyMedium, 0x2f, 0, 0),
            (VerifyData, 0x2f, 2, 4096),
            (VerifyBlock, 0x2f, 6, 512),
        ];
        for (mode, operation, flags, bytes) in modes {
            let set = |own: &mut SgOptions| own.sg_write_mode = mode;
            let (cdb, direction, length, _) = command(set, Operation::Write, ONE).unwrap();
            let expected = if bytes == 0 { -1 } else { -2 };
            assert_eq!((cdb[0], cdb[1], direction, length), (operation, flags, expected, bytes), "{mode:?}");
        }
        let stream = |own: &mut SgOptions| (own.sg_write_mode, own.stream_id) = (WriteStream, 7);
        let (cdb, ..) = command(stream, Operation::Write, ONE).unwrap();
        assert_eq!(cdb, [0x9a, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 7, 0, 8, 0, 0]);
        assert_eq!(command(stream, Operation::Write, (0, 512 << 16)), Err(Errno(libc::EINVAL)));
    }

    #[test]
    fn flags_go_where_they_belong() {
        let all = |own: &mut SgOptions| (own.readfua, own.writefua, own.hipri) = (true, true, true);
        for operation in [Operation::Read, Operation::Write] {
            let (cdb, .., flags) = command(all, operation, ONE).unwrap();
            assert_eq!((cdb[1], flags), (FUA, Header::POLLED));
        }
        let (cdb, direction, bytes, flags) = command(all, Operation::Trim, ONE).unwrap();
        assert_eq!(
            (cdb, direction, bytes, flags),
            (vec![0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], -2, 24, 0),
            "UNMAP is not polled"
        );
    }

    #[test]
    fn parts_of_blocks_are_refused() {
        for place in [(512, 1000), (100, 512), (0, 512 << 32)] {
            assert_eq!(command(|_| (), Operation::Read, place), Err(Errno(libc::EINVAL)), "{place:?}");
        }
    }

    #[test]
    fn complaints_are_told_in_words() {
        let mut request = Request::default();
        assert_eq!(request.complaint(), None);
        request.command[..2].copy_from_slice(&[0x2f, 2]);
        request.header = Header { cmd_len: 2, status: 2, sb_len_wr: 18, ..Header::EMPTY };
        (request.sense[0], request.sense[2], request.sense[12]) = (0x70, 0x0e, 0x1d);
        let told = "miscompare (sense key eh, code 1dh/00h) to command 2f 02";
        assert_eq!(request.complaint().as_deref(), Some(told));
        (request.sense[0], request.sense[1], request.sense[2]) = (0x72, 3, 0x11);
        assert!(request.complaint().unwrap().starts_with("medium error (sense key 3h, code 11h"));
        request.header.sb_len_wr = 0;
        assert!(request.complaint().unwrap().starts_with("status 02h, host status 00h"));
    }
}
