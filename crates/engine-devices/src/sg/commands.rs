//! Turns units into commands of SBC-4 (SCSI Block Commands).

use super::disk::Disk;
use crate::scsi::{Cdb, Command, Data, FUA, Ranges, SYNCHRONIZE_CACHE, Unfit, blocks, ranges};
use iolite_engine::{Errno, Outcome, Unit};
use iolite_options::engines::{CdbLength, SgOptions, SgWriteMode};
use iolite_os::scsi::{Complaint, Header, Transfer, zones};
use iolite_types::Operation;
use std::ptr;

/// A command with its answer. It must not move: the header points into it.
pub(super) struct Request {
    pub header: Header,
    /// The file that it is for.
    pub file: u32,
    /// The length with which the unit counts, whatever is transferred.
    length: u64,
    command: Cdb,
    sense: [u8; 32],
    /// The parameter list of UNMAP.
    ranges: Ranges,
    /// Why there is no command for the unit, on a disk with blocks of this size.
    unfit: Option<(Unfit, u64)>,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            header: Header::EMPTY,
            file: 0,
            length: 0,
            command: Cdb::EMPTY,
            sense: [0; 32],
            ranges: ranges(0, 0),
            unfit: None,
        }
    }
}

impl Request {
    /// Sets the pointers, once the request is in its final place, and the number that identifies its answer.
    pub(super) fn tie(&mut self, index: usize) {
        self.header.cmdp = self.command.bytes.as_ptr();
        self.header.sbp = self.sense.as_mut_ptr();
        self.header.mx_sb_len = self.sense.len() as u8;
        self.header.usr_ptr = index;
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

    /// Why there is no command, or why the disk refused it; `None` = no failure.
    pub(super) fn complaint(&self) -> Option<String> {
        if let Some((unfit, block)) = self.unfit {
            return Some(unfit.explain(block));
        }
        let refused = || Complaint::of(&self.header, &self.sense, self.command.as_slice()).to_string();
        (!self.header.succeeded()).then(refused)
    }

    /// Makes it a SYNCHRONIZE CACHE of the complete disk.
    pub(super) fn synchronize(&mut self) {
        self.command = Cdb::of(&SYNCHRONIZE_CACHE);
        self.header.cmd_len = self.command.length;
        self.header.dxfer_direction = Transfer::None as i32;
        (self.header.dxfer_len, self.header.dxferp, self.header.flags) = (0, ptr::null_mut(), 0);
        // The answer to the previous command does not belong to this one, even if this one cannot be sent.
        (self.header.status, self.header.host_status, self.header.driver_status) = (0, 0, 0);
        (self.header.sb_len_wr, self.header.resid) = (0, 0);
        (self.length, self.unfit) = (0, None);
    }

    /// Makes it an UNMAP of these blocks.
    fn unmap(&mut self, first: u64, count: u32) {
        self.command = Cdb::UNMAP;
        self.ranges = ranges(first, count);
        self.header.cmd_len = self.command.length;
        self.header.dxfer_direction = Transfer::ToDevice as i32;
        self.header.dxfer_len = self.ranges.len() as u32;
        self.header.dxferp = self.ranges.as_mut_ptr();
        self.header.flags = 0;
    }

    /// Makes it a RESET WRITE POINTER of the zone that begins at this block.
    fn reset_zone(&mut self, first: u64) {
        self.command = Cdb::of(&zones::act_on(first, zones::action::RESET));
        self.header.cmd_len = self.command.length;
        self.header.dxfer_direction = Transfer::None as i32;
        (self.header.dxfer_len, self.header.dxferp, self.header.flags) = (0, ptr::null_mut(), 0);
    }
}

/// A command, and the flags of its header.
#[derive(Clone, Copy, Debug)]
struct Kind {
    command: Command,
    header_flags: u32,
}

const WRITE_STREAM: u8 = 0x9a;

/// Turns units into commands, as the job's options say.
pub(super) struct Filler {
    read: Kind,
    write: Kind,
    stream: u16,
    opens_streams: bool,
}

impl Filler {
    pub(super) fn new(own: &SgOptions) -> Filler {
        let polled = if own.hipri { Header::POLLED } else { 0 };
        let plain = |command| Kind { command, header_flags: 0 };
        let write = Command::WRITE.with(FUA, own.writefua);
        let write = match own.sg_write_mode {
            SgWriteMode::Write => Kind { command: write, header_flags: polled },
            SgWriteMode::WriteAndVerify => plain(Command::WRITE_AND_VERIFY),
            SgWriteMode::WriteSame => plain(Command::WRITE_SAME),
            SgWriteMode::WriteSameWithoutData => plain(Command::WRITE_SAME_WITHOUT_DATA),
            SgWriteMode::VerifyMedium => plain(Command::VERIFY_MEDIUM),
            SgWriteMode::VerifyData => plain(Command::VERIFY_DATA),
            SgWriteMode::VerifyBlock => plain(Command::VERIFY_BLOCK),
            SgWriteMode::WriteStream => {
                plain(Command { ten: None, sixteen: Some(WRITE_STREAM), thirty_two: None, ..write })
            }
        };
        let read = Kind { command: Command::READ.with(FUA, own.readfua), header_flags: polled };
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
        request.unfit = None;
        self.make(request, unit, disk).map_err(|unfit| {
            request.unfit = Some((unfit, disk.block));
            unfit.into()
        })
    }

    #[inline(always)]
    fn make(&self, request: &mut Request, unit: &Unit, disk: &Disk) -> Result<(), Unfit> {
        let (first, count) = blocks(unit, disk.block)?;
        request.file = unit.file;
        request.length = unit.length;
        if unit.operation == Operation::Trim {
            match disk.resets_zones {
                true => request.reset_zone(first),
                false => request.unmap(first, count),
            }
            return Ok(());
        }
        let is_write = unit.operation == Operation::Write;
        let Kind { command, header_flags } = if is_write { &self.write } else { &self.read };
        request.command = command.about(first, count, CdbLength::AsNeeded)?;
        if command.sixteen == Some(WRITE_STREAM) {
            // It counts in 16 bits; the stream replaces the upper half of the count.
            let count = u16::try_from(count).map_err(|_| Unfit::Stream)?;
            let stream = disk.stream.unwrap_or(self.stream);
            request.command.bytes[10..12].copy_from_slice(&stream.to_be_bytes());
            request.command.bytes[12..14].copy_from_slice(&count.to_be_bytes());
        }
        let bytes = match command.data {
            Data::None => 0,
            Data::Block => disk.block.min(unit.length),
            Data::Whole => unit.length,
        };
        let transfer = match command.data {
            Data::None => Transfer::None,
            _ if is_write => Transfer::ToDevice,
            _ => Transfer::FromDevice,
        };
        let header = &mut request.header;
        header.cmd_len = request.command.length;
        header.dxfer_direction = transfer as i32;
        header.dxfer_len = bytes as u32;
        header.dxferp = unit.buffer;
        header.flags = *header_flags;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command of a unit, the number of bytes and their direction, and the flags of the header.
    fn command(
        change: impl FnOnce(&mut SgOptions),
        operation: Operation,
        (offset, length): (u64, u64),
    ) -> Result<(Vec<u8>, i32, u32, u32), Errno> {
        command_on(false, change, operation, (offset, length))
    }

    /// The same on a disk whose trims reset zones.
    fn command_on(
        resets_zones: bool,
        change: impl FnOnce(&mut SgOptions),
        operation: Operation,
        (offset, length): (u64, u64),
    ) -> Result<(Vec<u8>, i32, u32, u32), Errno> {
        let mut own = SgOptions::default();
        change(&mut own);
        let disk = Disk { is_generic: true, block: 512, resets_zones, stream: None, in_flight: 0 };
        let unit =
            Unit { buffer: std::ptr::null_mut(), length, offset, index: 0, file: 0, operation, priority: 0 };
        let mut request = Request::default();
        request.tie(0);
        Filler::new(&own).fill(&mut request, &unit, &disk)?;
        let Header { cmd_len, dxfer_direction, dxfer_len, flags, .. } = request.header;
        Ok((request.command.bytes[..cmd_len as usize].to_vec(), dxfer_direction, dxfer_len, flags))
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
        let (cdb, direction, bytes, flags) = command_on(true, all, Operation::Trim, ONE).unwrap();
        assert_eq!(
            (&cdb[..10], direction, bytes, flags),
            (&[0x94, 4, 0, 0, 0, 0, 0, 0, 0x12, 0x34][..], -1, 0, 0)
        );
    }

    #[test]
    fn parts_of_blocks_are_refused() {
        for place in [(512, 1000), (100, 512), (0, 512 << 32)] {
            assert_eq!(command(|_| (), Operation::Read, place), Err(Errno(libc::EINVAL)), "{place:?}");
        }
    }

    #[test]
    fn complaints_about_a_unit_last_until_the_next_unit() {
        let disk = Disk { is_generic: true, block: 512, resets_zones: false, stream: None, in_flight: 0 };
        let own = SgOptions { sg_write_mode: SgWriteMode::WriteStream, stream_id: 7, ..SgOptions::default() };
        let (filler, mut request) = (Filler::new(&own), Request::default());
        let mut told = |operation, length| {
            let buffer = std::ptr::null_mut();
            let unit = Unit { buffer, length, offset: 0, index: 0, file: 0, operation, priority: 0 };
            // The tests above check the result.
            let _ = filler.fill(&mut request, &unit, &disk);
            request.complaint()
        };
        let part = "the disk has blocks of 512 bytes, and a command must cover whole blocks";
        assert_eq!(told(Operation::Read, 1000).as_deref(), Some(part));
        assert_eq!(told(Operation::Read, 1024), None);
        let long = "a write to a stream covers at most 65535 blocks of 512 bytes; use a smaller bs";
        assert_eq!(told(Operation::Write, 512 << 16).as_deref(), Some(long));
    }

    #[test]
    fn complaints_are_described_in_words() {
        let mut request = Request::default();
        assert_eq!(request.complaint(), None);
        request.command = Cdb::of(&[0x2f, 2]);
        request.header = Header { cmd_len: 2, status: 2, sb_len_wr: 18, ..Header::EMPTY };
        (request.sense[0], request.sense[2], request.sense[12]) = (0x70, 0x0e, 0x1d);
        let told = "miscompare (sense key eh, code 1dh/00h) to command 2f 02";
        assert_eq!(request.complaint().as_deref(), Some(told));
        request.header.sb_len_wr = 0;
        assert!(request.complaint().unwrap().starts_with("status 02h, host status 00h"));
        // A flush, after a unit that was refused and had data.
        request.header.dxfer_len = 4096;
        request.synchronize();
        assert_eq!((request.header.cmd_len, request.header.dxfer_len, request.complaint()), (10, 0, None));
        (request.header.status, request.header.sb_len_wr, request.sense[2]) = (2, 18, 5);
        let told = request.complaint().unwrap();
        assert!(told.starts_with("illegal request") && told.contains("to command 35 00"), "{told}");
        request.header.status = 0;
        assert_eq!(request.outcome(), Ok(0));
    }
}
