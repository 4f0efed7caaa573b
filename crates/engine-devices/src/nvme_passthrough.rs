//! `io_uring_cmd`: NVMe commands passed through to a namespace by its generic device (`/dev/ng0n1`), bypassing the
//! block layer and its cache.
//!
//! Entries of the ring have 128 bytes, of which a command takes 72, and completions have 32, which hold the device's
//! answer. Every unit of the slab has its own request, which does not move.

mod commands;

use self::commands::{Commands, Range, Target, Unfit};
use io_uring::squeue::Entry128;
use io_uring::{cqueue, opcode, squeue};
use iolite_engine::file::Files;
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued,
    Unit,
};
use iolite_engine_local::io_uring::buffers::{FixedBuffers, Pieces, metadata_buffers};
use iolite_engine_local::io_uring::placement::Placement;
use iolite_engine_local::io_uring::protection::{self, Damage};
use iolite_engine_local::io_uring::ring::{Ring, for_commands};
use iolite_options::engines::IoUringCmdOptions;
use iolite_os::explained;
use iolite_os::nvme::{self, Command, Namespace, Status, URING_IO, URING_IO_VECTOR};
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// How often to resend a command that a kernel worker could not pass on. A retry may end up with a worker as well: the
/// kernel uses workers when the device has no room for a command.
const MOST_TRIES: u32 = 1000;

/// Passes NVMe commands through a ring. It must stay in the thread that created it: the kernel enforces that.
pub struct IoUringCmdEngine {
    ring: Ring<Entry128, cqueue::Entry32>,
    files: Files,
    targets: Vec<Option<Target>>,
    commands: Commands,
    own: IoUringCmdOptions,
    /// Data placement of writes; `None` = the device decides.
    placement: Option<Placement>,
    /// The values of placement that can be used on each file.
    placed: Vec<Vec<u16>>,
    /// The separate metadata buffers of all units, one after the other.
    metadata: Vec<u64>,
    /// Buffers are passed as a vector with one part.
    vectored: bool,
    fixes_buffers: bool,
    fixed: Option<FixedBuffers>,
    /// One per unit of the slab.
    requests: Box<[Request]>,
    /// Units whose commands must be resent.
    again: Vec<u32>,
    /// How many commands have reached the device only by resending.
    sent_again: u64,
}

/// A command, the data that it points to, and its outcome.
struct Request {
    command: Command,
    /// The file that it is for.
    file: u32,
    /// The length with which the completed unit counts.
    length: u64,
    /// The command uses the unit's buffer.
    is_transfer: bool,
    /// How often it was resent.
    tries: u32,
    segment: libc::iovec,
    /// The ranges of a trim, if there is more than one, followed by their form in the command.
    extents: Vec<(u64, u64)>,
    ranges: Vec<Range>,
    end: End,
    /// This engine checks its protection information.
    guarded: bool,
    /// The next read of the unit compares.
    compares: bool,
    /// Where the device has put appended data, in bytes.
    landed: Option<u64>,
    /// The message of [`End::Told`].
    told: String,
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
    /// The driver has cancelled it.
    Cancelled,
    /// The device refuses it.
    Device(Status),
    /// The data that was read is damaged.
    Damaged(Damage),
    /// The device reports that it has appended at this block, which is not in the zone.
    Strayed(u64),
    /// Its metadata has this many bytes and does not fit into the buffer.
    Crowded(usize),
    /// A call failed and has explained the error.
    Told,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            command: Command::default(),
            file: 0,
            length: 0,
            is_transfer: false,
            tries: 0,
            segment: libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 },
            extents: Vec::new(),
            ranges: Vec::new(),
            end: End::Well,
            guarded: false,
            compares: false,
            landed: None,
            told: String::new(),
        }
    }
}

impl Request {
    /// Makes the command of a unit.
    #[inline(always)]
    fn fill(&mut self, commands: &mut Commands, unit: &Unit, target: &Target) -> Result<(), Errno> {
        self.end = End::Well;
        self.guarded = false;
        self.landed = None;
        self.file = unit.file;
        let compares = self.compares;
        self.command = match commands.of(unit, target, &self.extents, &mut self.ranges, compares) {
            Ok(command) => command,
            Err(unfit) => {
                // The unit's next trim sets its own ranges.
                self.extents.clear();
                self.end = End::Unfit(unfit, target.block);
                return Err(unfit.into());
            }
        };
        let is_sync = !matches!(unit.operation, Operation::Read | Operation::Write | Operation::Trim);
        self.length = if is_sync { 0 } else { unit.length };
        self.is_transfer = self.command.data_length > 0 && self.command.address == unit.buffer as u64;
        self.tries = 0;
        Ok(())
    }

    /// Whether the command must be resent: a kernel worker could not access its buffers, and the device has not seen
    /// the command.
    #[inline(always)]
    fn comes_again(&mut self, result: i32) -> bool {
        let comes = result == -libc::EFAULT && self.tries < MOST_TRIES;
        self.tries += u32::from(comes);
        comes
    }

    /// The outcome of a flush by system call.
    fn flushed(&mut self, flushed: io::Result<()>) -> Outcome {
        self.end = End::Well;
        let Err(error) = flushed else { return Ok(0) };
        let errno = Errno(iolite_os::errno_of(&error));
        self.end = match error.raw_os_error() {
            Some(_) => End::Kernel(errno),
            None => {
                self.told = error.to_string();
                End::Told
            }
        };
        self.command = Command { opcode: nvme::opcode::FLUSH, ..Command::default() };
        Err(errno)
    }
}

impl IoUringCmdEngine {
    /// An engine with a ring for `depth` units and no file open.
    ///
    /// # Errors
    /// io_uring_setup(2) fails. The error names the cause.
    pub fn new(config: &EngineConfig, own: &IoUringCmdOptions) -> Result<Self, EngineError> {
        Ok(IoUringCmdEngine {
            ring: Ring::new(config, &own.ring)?,
            files: Files::new(config),
            targets: Vec::new(),
            commands: Commands::new(own, config.seed),
            own: own.clone(),
            placement: Placement::new("io_uring_cmd", &own.placement, config.seed)?,
            placed: Vec::new(),
            metadata: Vec::new(),
            // Registered buffers are passed by address.
            vectored: own.ring.nonvectored == Some(false) && !own.ring.fixedbufs,
            fixes_buffers: own.ring.fixedbufs,
            fixed: None,
            requests: Box::default(),
            again: Vec::new(),
            sent_again: 0,
        })
    }

    /// Puts the command of a unit into its request.
    #[inline(always)]
    fn fill(&mut self, unit: &Unit) -> Result<(), Errno> {
        let Some(request) = self.requests.get_mut(unit.index as usize) else {
            return Err(Errno(libc::EINVAL));
        };
        let Some(Some(target)) = self.targets.get(unit.file as usize) else {
            request.end = End::Kernel(Errno(libc::EBADF));
            return Err(Errno(libc::EBADF));
        };
        request.fill(&mut self.commands, unit, target)?;
        if let Some(placement) = &mut self.placement
            && matches!(request.command.opcode, nvme::opcode::WRITE | nvme::opcode::WRITE_ZEROES)
        {
            let (kind, value) = placement.next(&self.placed[unit.file as usize], unit.offset);
            request.command.cdw12 |= kind;
            request.command.cdw13 |= value;
        }
        if target.namespace.format.metadata > 0 && request.command.data_length > 0 {
            return self.add_metadata(unit);
        }
        Ok(())
    }

    /// Adds the buffer for the metadata of a transfer, and makes protection information for a write.
    fn add_metadata(&mut self, unit: &Unit) -> Result<(), Errno> {
        let Some(Some(target)) = self.targets.get(unit.file as usize) else { return Err(Errno(libc::EBADF)) };
        let request = &mut self.requests[unit.index as usize];
        if !matches!(request.command.opcode, nvme::opcode::READ | nvme::opcode::WRITE) {
            return Ok(());
        }
        let needed = (unit.length / target.block) as usize * target.metadata;
        let words = words_per_unit(&self.own);
        if needed > words * 8 {
            // The plan has checked the sizes that it knows, but not those of a replay.
            request.end = End::Crowded(needed);
            return Err(Errno(libc::ENOBUFS));
        }
        if needed > 0 {
            let from = words * unit.index as usize;
            request.command.metadata = self.metadata[from..from + words].as_mut_ptr() as u64;
            request.command.metadata_length = needed as u32;
        }
        request.guarded = target.protection.is_some() && !self.own.pi_act;
        if request.guarded && request.command.opcode == nvme::opcode::WRITE {
            let (format, tags) = (target.namespace.format, self.commands.tags);
            // SAFETY: the unit's buffer and its metadata are valid for these lengths, and not in flight.
            unsafe {
                each_block(&request.command, target, |block, data, metadata| {
                    if let Some(protection) = &format.protection {
                        protection::protect(&format, protection, &tags, block, data, metadata);
                    }
                    None::<()>
                });
            }
        }
        Ok(())
    }

    /// Checks the protection information of the data that was read.
    fn damage(request: &Request, target: &Target, commands: &Commands) -> Option<Damage> {
        let (format, tags) = (target.namespace.format, commands.tags);
        // SAFETY: the command is complete, and its buffers are still those of the unit.
        unsafe {
            each_block(&request.command, target, |block, data, metadata| {
                protection::check(&format, &format.protection?, &tags, block, data, metadata)
            })
        }
    }

    /// The entry of a unit whose request is filled.
    #[inline(always)]
    fn entry(&mut self, unit: u32, forced: squeue::Flags) -> Entry128 {
        let request = &mut self.requests[unit as usize];
        let (file, flags) = self.ring.file(&self.files, request.file);
        let (mut operation, mut piece) = (URING_IO, None);
        let mut command = request.command;
        if request.is_transfer && self.vectored {
            let buffer = command.address as *mut libc::c_void;
            request.segment = libc::iovec { iov_base: buffer, iov_len: command.data_length as usize };
            command.address = &raw const request.segment as u64;
            command.data_length = 1;
            operation = URING_IO_VECTOR;
        } else if request.is_transfer
            && let Some(fixed) = &self.fixed
        {
            piece = fixed.piece_of(unit, command.address as *mut u8, command.data_length.into());
        }
        let mut bytes = [0; 80];
        bytes[..Command::BYTES].copy_from_slice(&command.bytes());
        opcode::UringCmd80::new(file, operation)
            .cmd(bytes)
            .buf_index(piece)
            .build()
            .flags(flags | forced)
            .user_data(u64::from(unit))
    }

    /// Resends commands that a kernel worker could not pass on, without requesting a worker.
    #[cold]
    fn send_again(&mut self) -> Result<(), Errno> {
        let units = std::mem::take(&mut self.again).into_iter();
        let entries: Vec<_> = units.map(|unit| self.entry(unit, squeue::Flags::empty())).collect();
        // SAFETY: the requests are in their places, and the units are not reaped: their buffers are valid.
        unsafe { self.ring.repeat(entries.into_iter()) }
    }

    /// Takes completions, and notes the units whose commands must be resent.
    #[inline(always)]
    fn reap_some(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let IoUringCmdEngine { requests, targets, commands, again, sent_again, .. } = self;
        self.ring.reap_or_repeat(min, max, timeout, done, |entry| {
            let unit = entry.user_data() as u32;
            let request = &mut requests[unit as usize];
            if request.comes_again(entry.result()) {
                again.push(unit);
                return None;
            }
            if request.tries > 0 && entry.result() != -libc::EFAULT {
                *sent_again += 1;
            }
            let mut outcome = ended(request, entry.result());
            if request.guarded
                && outcome.is_ok()
                && request.command.opcode == nvme::opcode::READ
                && let Some(Some(target)) = targets.get(request.file as usize)
                && let Some(damage) = Self::damage(request, target, commands)
            {
                request.end = End::Damaged(damage);
                outcome = Err(Errno(libc::EILSEQ));
            }
            if request.command.opcode == nvme::opcode::ZONE_APPEND && outcome.is_ok() {
                outcome = landed(request, targets, entry.big_cqe()[0]);
            }
            Some(Completion { unit, outcome })
        })
    }

    /// Flushes by a system call, and keeps the message of a failure for the unit.
    fn flush_for(&mut self, unit: &Unit) -> Outcome {
        let flushed = self.flush(unit.file);
        let Some(request) = self.requests.get_mut(unit.index as usize) else {
            return Err(Errno(libc::EINVAL));
        };
        request.flushed(flushed)
    }

    fn flush(&self, file: u32) -> io::Result<()> {
        match self.targets.get(file as usize) {
            Some(Some(target)) => nvme::flush(self.files.raw(file), target.namespace.number),
            _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }
}

/// The values of placement that the job can use on a namespace.
fn placed(placement: &Placement, device: RawFd, number: u32) -> io::Result<Vec<u16>> {
    let refused = |errno, why| explained(&io::Error::from_raw_os_error(errno), why);
    // Even if querying is forbidden, writing may be allowed.
    let support = nvme::PlacementSupport::of(device, number).ok();
    if let Some(why) = support.and_then(|support| placement.refusal(&support)) {
        return Err(refused(libc::EOPNOTSUPP, why));
    }
    let handles = if placement.needs_handles() {
        nvme::handles(device, number).map_err(|error| {
            explained(&error, format!("dataplacement=fdp: the device tells no placement handles: {error}"))
        })?
    } else {
        Vec::new()
    };
    placement.values(&handles).map_err(|why| refused(libc::EINVAL, why))
}

/// Words of metadata per unit.
fn words_per_unit(own: &IoUringCmdOptions) -> usize {
    own.md_per_io_size.div_ceil(8) as usize
}

/// Calls a function with the data and the metadata of each block of a transfer, until it returns a value.
///
/// # Safety
/// The command's buffers are valid for their lengths, and are not used otherwise.
unsafe fn each_block<T>(
    command: &Command,
    target: &Target,
    mut act: impl FnMut(u64, &[u8], &mut [u8]) -> Option<T>,
) -> Option<T> {
    let format = target.namespace.format;
    let (size, metadata) = (format.data as usize, usize::from(format.metadata));
    let first = u64::from(command.cdw11) << 32 | u64::from(command.cdw10);
    let count = u64::from(command.data_length) / target.block;
    (0..count).find_map(|block| {
        let place = block as usize;
        let data = (command.address as *mut u8).wrapping_add(place * target.block as usize);
        let beside = match target.metadata {
            0 => data.wrapping_add(size),
            apart => (command.metadata as *mut u8).wrapping_add(place * apart),
        };
        // SAFETY: both are parts of the buffers, and do not overlap.
        let (data, beside) = unsafe {
            (std::slice::from_raw_parts(data, size), std::slice::from_raw_parts_mut(beside, metadata))
        };
        act(first + block, data, beside)
    })
}

/// The outcome of a command.
#[inline(always)]
fn ended(request: &mut Request, result: i32) -> Outcome {
    request.extents.clear();
    request.compares = false;
    match result {
        0 => Ok(request.length),
        1.. => {
            let status = Status::of(result as u16);
            request.end = End::Device(status);
            Err(Errno(status.errno()))
        }
        // This is neither a signal nor the end of the job: error handling must see it.
        _ if nvme::is_cancelled(-result) => {
            request.end = End::Cancelled;
            Err(Errno(libc::EIO))
        }
        _ => {
            request.end = End::Kernel(Errno(-result));
            Err(Errno(-result))
        }
    }
}

/// Notes where the device has put appended data.
fn landed(request: &mut Request, targets: &[Option<Target>], block: u64) -> Outcome {
    let target = targets.get(request.file as usize).and_then(Option::as_ref);
    request.landed = target.and_then(|target| target.landed(&request.command, block));
    if request.landed.is_some() {
        return Ok(request.length);
    }
    request.end = End::Strayed(block);
    Err(Errno(libc::EIO))
}

impl Engine for IoUringCmdEngine {
    const SYNCHRONOUS: bool = false;
    const PLACES: bool = true;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let descriptor =
            self.ring.open(&mut self.files, index, spec, for_commands(mode)).map_err(nvme::refusal)?;
        let namespace = Namespace::of(descriptor);
        let place = index as usize;
        if place >= self.targets.len() {
            self.targets.resize(place + 1, None);
        }
        let namespace = namespace.inspect_err(|_| {
            // The earlier error matters.
            let _ = self.ring.close(&mut self.files, index);
        })?;
        if let Some(placement) = &self.placement
            && mode.write
        {
            let values = placed(placement, descriptor, namespace.number).inspect_err(|_| {
                let _ = self.ring.close(&mut self.files, index);
            })?;
            self.placed.resize(self.placed.len().max(place + 1), Vec::new());
            self.placed[place] = values;
        }
        let resets_zones = mode.trims_reset_zones && namespace.zones.is_some();
        let mut target = Target::new(namespace, &self.own);
        target.resets_zones = resets_zones;
        self.targets[place] = Some(target);
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        if let Some(target) = self.targets.get_mut(index as usize) {
            *target = None;
        }
        self.ring.close(&mut self.files, index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files.descriptor(index)
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.requests = (0..layout.count).map(|_| Request::default()).collect();
        self.metadata = metadata_buffers(layout.count * words_per_unit(&self.own));
        if self.fixes_buffers {
            self.fixed = FixedBuffers::register(self.ring.kernel(), layout, Pieces::OnePerBuffer)?;
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        if unit.operation == Operation::Work {
            return Queued::Completed(Err(Errno(libc::EINVAL)));
        }
        // A ring with polled completions takes transfers only.
        let is_sync = !matches!(unit.operation, Operation::Read | Operation::Write | Operation::Trim);
        if is_sync && self.ring.is_polled() {
            if self.ring.waiting() > 0 {
                return Queued::Busy;
            }
            return Queued::Completed(self.flush_for(unit));
        }
        if self.ring.is_full() {
            return Queued::Busy;
        }
        if let Err(errno) = self.fill(unit) {
            return Queued::Completed(Err(errno));
        }
        let forced = self.ring.forced();
        let entry = self.entry(unit.index, forced);
        // SAFETY: the request stays in its place, and the unit's buffer is valid until the unit is reaped, as the caller
        // promises.
        if unsafe { self.ring.push(entry) } { Queued::Queued } else { Queued::Busy }
    }

    fn trims(&mut self, unit: u32, ranges: &[(u64, u64)]) {
        if let Some(request) = self.requests.get_mut(unit as usize) {
            request.extents.clear();
            request.extents.extend_from_slice(ranges);
        }
    }

    fn compares(&mut self, unit: u32) {
        if let Some(request) = self.requests.get_mut(unit as usize) {
            request.compares = true;
        }
    }

    #[inline(always)]
    fn placed(&self, unit: u32) -> Option<u64> {
        self.requests.get(unit as usize)?.landed
    }

    fn remarks(&mut self) -> Vec<String> {
        let mut remarks: Vec<_> = self.commands.shares.iter().map(ToString::to_string).collect();
        if self.sent_again > 0 {
            remarks.push(format!(
                "workers of the kernel could not reach the buffers of {} commands, which were sent again",
                self.sent_again
            ));
        }
        remarks
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
        let before = done.len();
        loop {
            let count = done.len() - before;
            self.reap_some(min.saturating_sub(count), max - count, timeout, done)?;
            if self.again.is_empty() {
                return Ok(());
            }
            self.send_again()?;
            // A time limit must not restart.
            if done.len() - before >= min || timeout.is_some() {
                return Ok(());
            }
        }
    }

    fn sync_file(&mut self, index: u32) -> Option<io::Result<()>> {
        Some(self.flush(index))
    }

    fn explain(&self, unit: u32) -> Option<String> {
        let request = self.requests.get(unit as usize)?;
        let Command { opcode, cdw10, cdw11, cdw12, .. } = request.command;
        match request.end {
            End::Well => None,
            End::Unfit(Unfit::Blocks, block) => Some(format!(
                "the namespace has blocks of {block} bytes, and a command must cover whole blocks"
            )),
            End::Unfit(Unfit::Length, block) => Some(format!(
                "a command covers at most 65536 blocks of {block} bytes, and less than 4 GiB of data"
            )),
            End::Unfit(Unfit::NoZones, _) => Some("the namespace has no zones to append to".to_owned()),
            End::Strayed(block) => Some(format!(
                "the device says that Zone Append has put the data at block {block}, which is not in the zone at block {}",
                u64::from(cdw11) << 32 | u64::from(cdw10)
            )),
            End::Kernel(Errno(errno @ (libc::EACCES | libc::EPERM))) => Some(nvme::forbidden(errno)),
            End::Kernel(Errno(libc::EINVAL))
                if request.command.data_length > 0 && opcode != nvme::opcode::DATASET_MANAGEMENT =>
            {
                let fixed = match self.fixes_buffers {
                    true => {
                        "; fixedbufs needs Linux 6.1, and before Linux 6.12 a buffer may have at most as many pages as \
                         max_segments of that queue says"
                    }
                    false => "",
                };
                Some(format!(
                    "the kernel does not pass on a command with {} bytes; max_hw_sectors_kb of the device's queue is how \
                     many it does{fixed}",
                    request.length
                ))
            }
            End::Kernel(Errno(libc::EFAULT)) => {
                Some(format!("the kernel did not reach the buffer in {} attempts", request.tries + 1))
            }
            End::Cancelled => Some(nvme::CANCELLED.to_owned()),
            End::Told => Some(request.told.clone()),
            End::Kernel(_) => None,
            End::Damaged(damage) => Some(damage.to_string()),
            End::Crowded(needed) => {
                Some(format!("it has {needed} bytes of metadata; md_per_io_size={needed} has room for them"))
            }
            End::Device(status) => {
                let name = nvme::opcode::name(opcode);
                Some(match opcode {
                    nvme::opcode::FLUSH | nvme::opcode::DATASET_MANAGEMENT => format!("{status} to {name}"),
                    nvme::opcode::ZONE_MANAGEMENT_SEND => {
                        let first = u64::from(cdw11) << 32 | u64::from(cdw10);
                        format!("{status} to {name} (reset) of the zone at block {first}")
                    }
                    _ => {
                        let (first, count) =
                            (u64::from(cdw11) << 32 | u64::from(cdw10), (cdw12 & 0xffff) + 1);
                        let blocks = if count == 1 { "block" } else { "blocks" };
                        format!("{status} to {name} of {count} {blocks} at block {first}")
                    }
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_outcomes() {
        let mut request = Request { length: 4096, ..Request::default() };
        assert_eq!(ended(&mut request, 0), Ok(4096));
        assert_eq!(ended(&mut request, 0x4281), Err(Errno(libc::EIO)));
        assert_eq!(request.end, End::Device(Status::of(0x281)));
        assert_eq!(ended(&mut request, -libc::EACCES), Err(Errno(libc::EACCES)));
        assert_eq!(request.end, End::Kernel(Errno(libc::EACCES)));
        for cancelled in [libc::EINTR, libc::ECANCELED] {
            assert_eq!(ended(&mut request, -cancelled), Err(Errno(libc::EIO)), "it is a separate I/O error");
            assert_eq!(request.end, End::Cancelled);
        }
    }

    #[test]
    fn only_efault_is_retried_and_not_forever() {
        let mut request = Request::default();
        for result in [0, 0x4281, -libc::EINVAL, -libc::EIO] {
            assert!(!request.comes_again(result));
        }
        assert!((0..MOST_TRIES).all(|_| request.comes_again(-libc::EFAULT)));
        assert!(!request.comes_again(-libc::EFAULT));
    }

    #[test]
    fn flushes_by_call_report_their_own_error() {
        let mut request = Request { end: End::Device(Status::of(0x281)), ..Request::default() };
        assert_eq!(request.flushed(Ok(())), Ok(0));
        assert_eq!(request.end, End::Well, "what the unit's last command ended with is not told of this one");
        let error = io::Error::from_raw_os_error(libc::EIO);
        let refused = explained(&error, "Internal Error to Flush".to_owned());
        assert_eq!(request.flushed(Err(refused)), Err(Errno(libc::EIO)));
        assert_eq!((request.end, request.told.as_str()), (End::Told, "Internal Error to Flush"));
    }

    #[test]
    fn ranges_of_a_trim_that_could_not_be_made_are_forgotten() {
        let format = nvme::Format { data: 4096, metadata: 0, extended: false, protection: None };
        let namespace = Namespace { number: 1, blocks: 1 << 20, format, optional: 0, zones: None };
        let target = Target::new(namespace, &IoUringCmdOptions::default());
        let mut commands = Commands::new(&IoUringCmdOptions::default(), 1);
        let unit = Unit {
            buffer: std::ptr::null_mut(),
            length: 4096,
            offset: 4096,
            index: 0,
            file: 0,
            operation: Operation::Trim,
            priority: 0,
        };
        let mut request = Request { extents: vec![(0, 512), (4096, 4096)], ..Request::default() };
        assert_eq!(request.fill(&mut commands, &unit, &target), Err(Errno(libc::EINVAL)));
        assert_eq!(request.fill(&mut commands, &unit, &target), Ok(()), "the trim of one range that follows");
        assert_eq!(request.ranges.len(), 1);
    }
}
