//! `io_uring_cmd` with `cmd_type=bsg`: SCSI commands passed through to a disk by its node of the block layer's generic
//! driver (`/dev/bsg/0:0:0:0`), since Linux 7.1.
//!
//! Entries of the ring have 128 bytes, of which a command takes the last 80; completions have 32, which hold the result
//! of the command. An entry points to the memory of the command, of its data and of the disk's explanation: every unit
//! of the slab has its own, which does not move.

use crate::command_shares::Shares;
use crate::scsi::{self, Cdb, Data, FUA, Ranges, SYNCHRONIZE_CACHE, Unfit};
use io_uring::squeue::Entry128;
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};
use iolite_engine::file::Files;
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued,
    Unit,
};
use iolite_engine_local::io_uring::buffers::{FixedBuffers, Pieces};
use iolite_engine_local::io_uring::ring::{Ring, for_commands};
use iolite_options::engines::{ByteCheck, CdbLength, IoUringCmdOptions, NvmeWriteMode};
use iolite_os::explained;
use iolite_os::scsi::bsg::{Answer, RingCommand, SENSE_BYTES};
use iolite_os::scsi::{Complaint, Interface, capacity, read};
use iolite_types::{Operation, describe_errno};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Passes SCSI commands through a ring. It must stay in the thread that created it: the kernel enforces that.
pub struct BsgEngine {
    ring: Ring<Entry128, cqueue::Entry32>,
    files: Files,
    /// Bytes of a block of each open disk.
    blocks: Vec<Option<u64>>,
    commands: Commands,
    fixes_buffers: bool,
    fixed: Option<FixedBuffers>,
    /// One per unit of the slab.
    requests: Box<[Request]>,
    /// The kernel has passed a command.
    passes: bool,
}

/// Turns units into commands, as the job's options say.
#[derive(Debug)]
struct Commands {
    length: CdbLength,
    read: scsi::Command,
    /// The commands that writes become; the first, if there are no shares.
    writes: Vec<scsi::Command>,
    /// The shares of these commands.
    shares: Option<Shares>,
}

/// A command, its answer, and its outcome.
struct Request {
    command: Cdb,
    sense: [u8; SENSE_BYTES],
    /// The parameter list of UNMAP.
    ranges: Ranges,
    /// The length with which the completed unit counts.
    length: u64,
    /// Bytes of data that are transferred, and whether they go to the disk.
    transfer: (u32, bool),
    end: End,
    /// The next read of the unit compares.
    compares: bool,
}

/// Why a unit failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// No failure.
    Well,
    /// No command fits it; the size of a block in bytes.
    Unfit(Unfit, u64),
    /// The kernel does not pass the command on.
    Kernel(Errno),
    /// The disk refuses it.
    Disk(Answer),
}

impl Default for Request {
    fn default() -> Self {
        Request {
            command: Cdb::EMPTY,
            sense: [0; SENSE_BYTES],
            ranges: scsi::ranges(0, 0),
            length: 0,
            transfer: (0, false),
            end: End::Well,
            compares: false,
        }
    }
}

impl Commands {
    fn new(own: &IoUringCmdOptions, seed: u64) -> Commands {
        use scsi::Command as C;
        /// Of WRITE SAME: the disk may deallocate the blocks.
        const UNMAP: u8 = 0x08;
        let command = |&(mode, _): &(NvmeWriteMode, u32)| match mode {
            // (The plan refuses Zone Append, which SCSI has not.)
            NvmeWriteMode::Write | NvmeWriteMode::Append => C::WRITE.with(FUA, own.writefua),
            NvmeWriteMode::Uncorrectable => C::WRITE_UNCORRECTABLE,
            NvmeWriteMode::Zeroes => C::WRITE_SAME_WITHOUT_DATA.with(UNMAP, own.deac),
            NvmeWriteMode::Verify => match own.verify_bytchk {
                ByteCheck::Medium => C::VERIFY_MEDIUM,
                ByteCheck::Data => C::VERIFY_DATA,
                ByteCheck::Block => C::VERIFY_BLOCK,
            },
        };
        Commands {
            length: own.cdb_len,
            read: if own.prefetches { C::PREFETCH } else { C::READ.with(FUA, own.readfua) },
            writes: own.write_mode.shares().iter().map(command).collect(),
            shares: Shares::of(&own.write_mode, seed),
        }
    }

    /// The kind of command for a unit.
    #[inline(always)]
    fn of(&mut self, operation: Operation, compares: bool) -> &scsi::Command {
        match operation {
            Operation::Write => {
                let place = self.shares.as_mut().map_or(0, Shares::draw);
                &self.writes[place]
            }
            _ if compares => &scsi::Command::VERIFY_DATA,
            _ => &self.read,
        }
    }
}

impl Request {
    /// Makes the command of a unit, for a disk with blocks of this size.
    #[inline(always)]
    fn fill(&mut self, commands: &mut Commands, unit: &Unit, block: u64) -> Result<(), Errno> {
        self.end = End::Well;
        self.length = unit.length;
        let compares = std::mem::take(&mut self.compares);
        let made = match unit.operation {
            Operation::Read | Operation::Write | Operation::Trim => {
                self.make(commands, unit, block, compares)
            }
            _ => {
                (self.command, self.transfer, self.length) = (Cdb::of(&SYNCHRONIZE_CACHE), (0, false), 0);
                Ok(())
            }
        };
        made.map_err(|unfit| {
            self.end = End::Unfit(unfit, block);
            unfit.into()
        })
    }

    #[inline(always)]
    fn make(
        &mut self,
        commands: &mut Commands,
        unit: &Unit,
        block: u64,
        compares: bool,
    ) -> Result<(), Unfit> {
        let (first, count) = scsi::blocks(unit, block)?;
        if unit.operation == Operation::Trim {
            self.command = Cdb::UNMAP;
            self.ranges = scsi::ranges(first, count);
            self.transfer = (self.ranges.len() as u32, true);
            return Ok(());
        }
        let length = commands.length;
        let command = commands.of(unit.operation, compares);
        // A comparison has a form of every length; it uses the form of the reads.
        self.command = command.about(first, count, length)?;
        let bytes = match command.data {
            Data::None => 0,
            Data::Block => block,
            Data::Whole => unit.length,
        };
        let bytes = u32::try_from(bytes).map_err(|_| Unfit::Length)?;
        self.transfer = (bytes, compares || unit.operation == Operation::Write);
        Ok(())
    }

    /// The command in the kernel's form. The unit's data is at this address.
    #[inline(always)]
    fn ring_command(&mut self, buffer: *mut u8) -> RingCommand {
        let (bytes, is_out) = self.transfer;
        let is_trim = self.command == Cdb::UNMAP;
        let data = if is_trim { self.ranges.as_ptr() as u64 } else { buffer as u64 };
        let data = if bytes == 0 { 0 } else { data };
        let (dout, din) = if is_out { ((data, bytes), (0, 0)) } else { ((0, 0), (data, bytes)) };
        RingCommand {
            request: self.command.bytes.as_ptr() as u64,
            request_len: self.command.length.into(),
            response: self.sense.as_mut_ptr() as u64,
            max_response_len: SENSE_BYTES as u32,
            dout_xferp: dout.0,
            dout_xfer_len: dout.1,
            din_xferp: din.0,
            din_xfer_len: din.1,
            ..RingCommand::EMPTY
        }
    }

    /// The outcome of the command.
    #[inline(always)]
    fn ended(&mut self, result: i32, answer: Answer) -> Outcome {
        if result < 0 {
            self.end = End::Kernel(Errno(-result));
            return Err(Errno(-result));
        }
        if answer.succeeded() {
            // A command that transfers anything but the unit's data counts with the full length.
            let is_data = u64::from(self.transfer.0) == self.length;
            let missing = if is_data { u64::from(answer.missing) } else { 0 };
            return Ok(self.length - missing.min(self.length));
        }
        self.end = End::Disk(answer);
        // Distinguish wrong data from missing data.
        let is_miscompare = self.complaint(&answer).is_miscompare();
        Err(Errno(if is_miscompare { libc::EILSEQ } else { libc::EIO }))
    }

    fn complaint(&self, answer: &Answer) -> Complaint<'_> {
        Complaint {
            device: answer.device_status,
            host: answer.host_status.into(),
            driver: answer.driver_status.into(),
            sense: &self.sense[..usize::from(answer.sense).min(SENSE_BYTES)],
            command: self.command.as_slice(),
        }
    }
}

impl BsgEngine {
    /// An engine with a ring for `depth` units and no file open.
    ///
    /// # Errors
    /// io_uring_setup(2) fails. The error names the cause.
    pub fn new(config: &EngineConfig, own: &IoUringCmdOptions) -> Result<Self, EngineError> {
        Ok(BsgEngine {
            ring: Ring::new(config, &own.ring)?,
            files: Files::new(config),
            blocks: Vec::new(),
            commands: Commands::new(own, config.seed),
            fixes_buffers: own.ring.fixedbufs,
            fixed: None,
            requests: Box::default(),
            passes: false,
        })
    }

    /// Puts the command of a unit into its request.
    #[inline(always)]
    fn fill(&mut self, unit: &Unit) -> Result<(), Errno> {
        let Some(request) = self.requests.get_mut(unit.index as usize) else {
            return Err(Errno(libc::EINVAL));
        };
        let Some(&Some(block)) = self.blocks.get(unit.file as usize) else {
            request.end = End::Kernel(Errno(libc::EBADF));
            return Err(Errno(libc::EBADF));
        };
        request.fill(&mut self.commands, unit, block)
    }

    /// The entry of a unit whose request is filled.
    #[inline(always)]
    fn entry(&mut self, unit: &Unit) -> Entry128 {
        let (file, mut flags) = self.ring.file(&self.files, unit.file);
        flags |= self.ring.forced();
        let request = &mut self.requests[unit.index as usize];
        let command = request.ring_command(unit.buffer);
        let bytes = u64::from(request.transfer.0);
        let is_of_unit = bytes > 0 && unit.operation != Operation::Trim;
        let piece = self
            .fixed
            .as_ref()
            .filter(|_| is_of_unit)
            .and_then(|f| f.piece_of(unit.index, unit.buffer, bytes));
        entry(file, &command, piece).flags(flags).user_data(u64::from(unit.index))
    }

    /// Reads the property of a disk on which commands depend: the size of its blocks.
    fn look_at(&mut self, descriptor: RawFd) -> io::Result<u64> {
        if !self.passes {
            passes(descriptor)?;
            self.passes = true;
        }
        match capacity(descriptor, Interface::Fourth)?.block {
            0 => Err(io::Error::from_raw_os_error(libc::ENOMEDIUM)),
            block => Ok(block.into()),
        }
    }
}

/// The entry of a command. `piece`: the registered buffer with its data, if any.
#[inline(always)]
fn entry(file: Fd, command: &RingCommand, piece: Option<u16>) -> Entry128 {
    // The driver has one operation, and ignores its number.
    opcode::UringCmd80::new(file, 0).cmd(command.bytes()).buf_index(piece).build()
}

/// Checks that the kernel passes commands from a ring to this node, with a command that does nothing (TEST UNIT READY);
/// any answer of the disk will do.
fn passes(descriptor: RawFd) -> io::Result<()> {
    let command = [0u8; 6];
    let mut ring = IoUring::<Entry128, cqueue::Entry32>::builder().build(1)?;
    let command = RingCommand {
        request: command.as_ptr() as u64,
        request_len: command.len() as u32,
        ..RingCommand::EMPTY
    };
    let entry = entry(Fd(descriptor), &command, None);
    // SAFETY: the command lives until its completion, for which the call waits.
    unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)?;
    while let Err(error) = ring.submit_and_wait(1) {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let result = ring.completion().next().map_or(0, |entry| entry.result());
    refusal(-result)
}

/// The meaning if the kernel ends that command with this error; 0 = it passes commands.
fn refusal(errno: i32) -> io::Result<()> {
    let error = io::Error::from_raw_os_error(errno);
    Err(match errno {
        0 => return Ok(()),
        // Up to Linux 7.0, the driver does not support rings.
        libc::EOPNOTSUPP | libc::EINVAL | libc::ENOTTY => explained(
            &error,
            "cmd_type=bsg: this kernel passes no SCSI commands from io_uring to a disk, which Linux does since 7.1; \
             ioengine=sg sends them with every kernel"
                .to_owned(),
        ),
        libc::EACCES | libc::EPERM => explained(&error, forbidden(errno)),
        _ => error,
    })
}

/// The remedy for a command that the kernel refuses to pass on.
fn forbidden(errno: i32) -> String {
    format!(
        "{}: the kernel passes this SCSI command for root only (CAP_SYS_RAWIO); from others it takes the usual ones that read, and, \
         with permission to write the node, those that write",
        describe_errno(errno)
    )
}

impl Engine for BsgEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let descriptor = self.ring.open(&mut self.files, index, spec, for_commands(mode))?;
        let block = self.look_at(descriptor).inspect_err(|_| {
            // The earlier error matters.
            let _ = self.ring.close(&mut self.files, index);
        })?;
        let place = index as usize;
        self.blocks.resize(self.blocks.len().max(place + 1), None);
        self.blocks[place] = Some(block);
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        if let Some(block) = self.blocks.get_mut(index as usize) {
            *block = None;
        }
        self.ring.close(&mut self.files, index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files.descriptor(index)
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.requests = (0..layout.count).map(|_| Request::default()).collect();
        if self.fixes_buffers {
            self.fixed = FixedBuffers::register(self.ring.kernel(), layout, Pieces::Few)?;
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        if unit.operation == Operation::Work {
            return Queued::Completed(Err(Errno(libc::EINVAL)));
        }
        if self.ring.is_full() {
            return Queued::Busy;
        }
        if let Err(errno) = self.fill(unit) {
            return Queued::Completed(Err(errno));
        }
        let entry = self.entry(unit);
        // SAFETY: the request stays in its place, and the unit's buffer is valid until the unit is reaped, as the caller
        // promises.
        if unsafe { self.ring.push(entry) } { Queued::Queued } else { Queued::Busy }
    }

    fn compares(&mut self, unit: u32) {
        if let Some(request) = self.requests.get_mut(unit as usize) {
            request.compares = true;
        }
    }

    fn remarks(&mut self) -> Vec<String> {
        self.commands.shares.iter().map(ToString::to_string).collect()
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<usize, Errno> {
        self.ring.commit()
    }

    #[inline(always)]
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let requests = &mut self.requests;
        self.ring.reap(min, max, timeout, done, |entry| {
            let unit = entry.user_data() as u32;
            let answer = Answer::of(entry.big_cqe()[0]);
            Completion { unit, outcome: requests[unit as usize].ended(entry.result(), answer) }
        })
    }

    fn sync_file(&mut self, index: u32) -> Option<io::Result<()>> {
        Some(read(self.files.raw(index), Interface::Fourth, &SYNCHRONIZE_CACHE, &mut []))
    }

    fn explain(&self, unit: u32) -> Option<String> {
        let request = self.requests.get(unit as usize)?;
        match request.end {
            End::Well => None,
            End::Unfit(unfit, block) => Some(unfit.explain(block)),
            End::Kernel(Errno(errno @ (libc::EACCES | libc::EPERM))) => Some(forbidden(errno)),
            End::Kernel(Errno(libc::EINVAL)) if request.transfer.0 > 0 => Some(format!(
                "the kernel does not pass on a command with {} bytes; max_hw_sectors_kb of the disk's queue is how many it \
                 does",
                request.transfer.0
            )),
            End::Kernel(_) => None,
            End::Disk(answer) => Some(request.complaint(&answer).to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::engines::WriteModes;

    const BUFFER: u64 = 0x1122_3344_5566_7000;

    fn unit(operation: Operation, length: u64) -> Unit {
        let buffer = BUFFER as *mut u8;
        Unit { buffer, length, offset: 512 * 0x1234, index: 0, file: 0, operation, priority: 0 }
    }

    /// The request of a unit, and its command for the ring.
    fn made(
        own: &IoUringCmdOptions,
        operation: Operation,
        length: u64,
        compares: bool,
    ) -> Result<(Box<Request>, RingCommand), Errno> {
        let mut request = Box::new(Request { compares, ..Request::default() });
        request.fill(&mut Commands::new(own, 1), &unit(operation, length), 512)?;
        let command = request.ring_command(BUFFER as *mut u8);
        Ok((request, command))
    }

    /// The bytes of the SCSI command, those to the disk and those from it.
    fn command(
        own: &IoUringCmdOptions,
        operation: Operation,
        length: u64,
    ) -> Result<(Vec<u8>, u32, u32), Errno> {
        let (request, ring) = made(own, operation, length, false)?;
        Ok((request.command.as_slice().to_vec(), ring.dout_xfer_len, ring.din_xfer_len))
    }

    /// The second half of the entry (<linux/io_uring.h>: from byte 48 on), by the fields of `bsg_uring_cmd`.
    #[test]
    fn entries_are_what_the_kernels_interface_demands() {
        let plain = IoUringCmdOptions::default();
        let (request, ring) = made(&plain, Operation::Write, 4096, false).unwrap();
        // SAFETY: an entry consists of integers without gaps.
        let bytes: [u8; 128] = unsafe { std::mem::transmute(entry(Fd(5), &ring, Some(3)).user_data(7)) };
        assert_eq!((bytes[0], bytes[1]), (46, 0), "IORING_OP_URING_CMD");
        assert_eq!(bytes[4..8], 5i32.to_le_bytes());
        assert_eq!(bytes[8..16], [0; 8], "cmd_op");
        assert_eq!(bytes[28..32], 1u32.to_le_bytes(), "IORING_URING_CMD_FIXED");
        assert_eq!(bytes[32..40], 7u64.to_le_bytes());
        assert_eq!(bytes[40..42], 3u16.to_le_bytes(), "buf_index");
        let mut expected = Vec::new();
        expected.extend((request.command.bytes.as_ptr() as u64).to_le_bytes());
        // The length of the command, protocol, subprotocol, room for sense data.
        [10, 0, 0, 96].iter().for_each(|word: &u32| expected.extend(word.to_le_bytes()));
        expected.extend((request.sense.as_ptr() as u64).to_le_bytes());
        expected.extend(BUFFER.to_le_bytes());
        // To the disk: bytes, parts. From it: address, bytes, parts. Milliseconds.
        [4096, 0, 0, 0, 0, 0, 60_000].iter().for_each(|word: &u32| expected.extend(word.to_le_bytes()));
        expected.extend([0; 12]);
        assert_eq!(bytes[48..], expected[..]);
        // SAFETY: as above.
        let plain: [u8; 128] = unsafe { std::mem::transmute(entry(Fd(5), &ring, None)) };
        assert_eq!(
            (&plain[28..32], &plain[40..42]),
            (&[0; 4][..], &[0; 2][..]),
            "its buffer is not registered"
        );
    }

    #[test]
    fn units_are_commands_of_the_standard() {
        let plain = IoUringCmdOptions::default();
        let told = |operation, length| command(&plain, operation, length).unwrap();
        let ten = |code: u8, flags| vec![code, flags, 0, 0, 0x12, 0x34, 0, 0, 8, 0];
        assert_eq!(told(Operation::Read, 4096), (ten(0x28, 0), 0, 4096));
        assert_eq!(told(Operation::Write, 4096), (ten(0x2a, 0), 4096, 0));
        assert_eq!(told(Operation::Trim, 4096), (vec![0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], 24, 0));
        for sync in [Operation::Sync, Operation::DataSync, Operation::SyncFileRange] {
            assert_eq!(told(sync, 0), (vec![0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0, 0));
        }
        let fua = IoUringCmdOptions { readfua: true, writefua: true, ..plain.clone() };
        assert_eq!(command(&fua, Operation::Read, 4096).unwrap().0, ten(0x28, 8));
        assert_eq!(command(&fua, Operation::Write, 4096).unwrap().0, ten(0x2a, 8));
        let prefetches = IoUringCmdOptions { prefetches: true, ..plain.clone() };
        assert_eq!(command(&prefetches, Operation::Read, 4096).unwrap(), (ten(0x34, 0), 0, 0));
        let (trim, ring) = made(&plain, Operation::Trim, 4096, false).unwrap();
        assert_eq!(ring.dout_xferp, trim.ranges.as_ptr() as u64);
        assert_eq!(trim.ranges[8..20], [0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 8]);
        let (compare, ring) = made(&prefetches, Operation::Read, 4096, true).unwrap();
        assert_eq!(compare.command.as_slice(), ten(0x2f, 2), "VERIFY, BYTCHK=01b");
        assert_eq!((ring.dout_xferp, ring.dout_xfer_len, ring.din_xfer_len), (BUFFER, 4096, 0));
    }

    #[test]
    fn modes_of_writing_are_commands_of_their_own() {
        let mode = |write_mode: NvmeWriteMode, change: fn(&mut IoUringCmdOptions), length| {
            let mut own = IoUringCmdOptions { write_mode: write_mode.into(), ..Default::default() };
            change(&mut own);
            let (bytes, out, from) = command(&own, Operation::Write, length).unwrap();
            assert_eq!(from, 0);
            (bytes[0], bytes[1], out)
        };
        let verify = NvmeWriteMode::Verify;
        assert_eq!(mode(verify, |_| (), 4096), (0x2f, 0, 0));
        assert_eq!(mode(verify, |own| own.verify_bytchk = ByteCheck::Data, 4096), (0x2f, 2, 4096));
        assert_eq!(mode(verify, |own| own.verify_bytchk = ByteCheck::Block, 4096), (0x2f, 6, 512));
        assert_eq!(mode(NvmeWriteMode::Zeroes, |_| (), 4096), (0x93, 1, 0), "WRITE SAME, NDOB");
        assert_eq!(mode(NvmeWriteMode::Zeroes, |own| own.deac = true, 4096), (0x93, 9, 0), "and UNMAP");
        assert_eq!(mode(NvmeWriteMode::Uncorrectable, |_| (), 512), (0x3f, 0x40, 0));
        let shares = WriteModes::of(&[(NvmeWriteMode::Write, 50), (NvmeWriteMode::Zeroes, 50)]);
        let own = IoUringCmdOptions { write_mode: shares, ..IoUringCmdOptions::default() };
        let mut commands = Commands::new(&own, 1);
        let mut request = Request::default();
        let drawn: Vec<u8> = (0..100)
            .map(|_| {
                request.fill(&mut commands, &unit(Operation::Write, 4096), 512).unwrap();
                request.command.bytes[0]
            })
            .collect();
        assert!(drawn.contains(&0x2a) && drawn.contains(&0x93), "{drawn:?}");
    }

    #[test]
    fn lengths_of_commands_are_those_asked_for() {
        let with = |cdb_len| IoUringCmdOptions { cdb_len, ..IoUringCmdOptions::default() };
        for (cdb_len, length) in [
            (CdbLength::AsNeeded, 10),
            (CdbLength::Ten, 10),
            (CdbLength::Sixteen, 16),
            (CdbLength::ThirtyTwo, 32),
        ] {
            let (_, ring) = made(&with(cdb_len), Operation::Read, 4096, false).unwrap();
            assert_eq!(ring.request_len, length);
        }
        let refused = |own, length| made(&own, Operation::Write, length, false).err();
        assert_eq!(refused(with(CdbLength::Ten), 512 << 16), Some(Errno(libc::EINVAL)));
        assert_eq!(refused(with(CdbLength::AsNeeded), 1000), Some(Errno(libc::EINVAL)), "a part of a block");
        let zeroes = IoUringCmdOptions { write_mode: NvmeWriteMode::Zeroes.into(), ..with(CdbLength::Ten) };
        assert_eq!(refused(zeroes, 4096), Some(Errno(libc::EINVAL)), "without data, there is no short form");
    }

    #[test]
    fn answers_are_outcomes() {
        let (mut request, _) = made(&IoUringCmdOptions::default(), Operation::Read, 4096, false).unwrap();
        assert_eq!(request.ended(0, Answer::of(0)), Ok(4096));
        assert_eq!(request.ended(0, Answer::of(512 << 32)), Ok(4096 - 512), "the residual");
        assert_eq!(request.ended(-libc::EPERM, Answer::of(0)), Err(Errno(libc::EPERM)));
        assert_eq!(request.end, End::Kernel(Errno(libc::EPERM)));
        (request.sense[0], request.sense[2], request.sense[12]) = (0x70, 3, 0x11);
        let check = Answer { device_status: 2, driver_status: 8, sense: 18, ..Answer::default() };
        assert_eq!(request.ended(0, check), Err(Errno(libc::EIO)));
        let told = request.complaint(&check).to_string();
        assert!(told.starts_with("medium error (sense key 3h, code 11h/00h) to command 28 00"), "{told}");
        (request.sense[2], request.sense[12]) = (0x0e, 0x1d);
        assert_eq!(request.ended(0, check), Err(Errno(libc::EILSEQ)), "MISCOMPARE");
        let (mut trim, _) = made(&IoUringCmdOptions::default(), Operation::Trim, 4096, false).unwrap();
        assert_eq!(trim.ended(0, Answer::of(24 << 32)), Ok(4096), "its data is not the unit's");
    }

    #[test]
    fn kernels_that_pass_nothing_are_named() {
        assert!(refusal(0).is_ok());
        let told = |errno| refusal(errno).unwrap_err().to_string();
        let old = told(libc::EOPNOTSUPP);
        assert!(old.contains("which Linux does since 7.1; ioengine=sg"), "{old}");
        assert!(told(libc::EPERM).contains("CAP_SYS_RAWIO"));
    }
}
