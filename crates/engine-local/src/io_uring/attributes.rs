//! Attributes of `io_uring` reads and writes of block devices: write streams, and metadata with protection information.
//! Both are fields of the submission queue entry and the structures that it points to
//! (`struct io_uring_sqe` and `struct io_uring_attr_pi` of <linux/io_uring.h>).

use super::Transfers;
use super::buffers::metadata_buffers;
use super::placement::Placement;
use super::protection::{self, Damage, Tags};
use io_uring::squeue::Entry;
use iolite_engine::{Completion, EngineConfig, EngineError, Errno, OpenMode, Outcome, Unit};
use iolite_options::engines::{Checks, IoUringOptions};
use iolite_os::explained;
use iolite_os::integrity::{self, Integrity};
use iolite_os::nvme::{Format, Handle};
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;

/// The place of `write_stream` in an entry, and of `attr_ptr` and `attr_type_mask`, in bytes.
const STREAM: usize = 44;
const ATTRIBUTE: usize = 48;
const ATTRIBUTE_KINDS: usize = 56;

/// `IORING_RW_ATTR_FLAG_PI`
const PROTECTION: u64 = 1;

/// `IO_INTEGRITY_CHK_…`: the checks for the device to do.
const CHECK_GUARD: u16 = 1;
const CHECK_REFERENCE: u16 = 1 << 1;
const CHECK_APPLICATION: u16 = 1 << 2;

/// `struct io_uring_attr_pi`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Attribute {
    flags: u16,
    application: u16,
    length: u32,
    address: u64,
    /// The reference tag of the first block.
    seed: u64,
    reserved: u64,
}

/// The attributes of an engine's transfers.
#[derive(Debug)]
pub(super) struct Attributes {
    /// The commands of the transfers.
    pub base: Transfers,
    placement: Option<Placement>,
    /// The streams that can be used on each file.
    streams: Vec<Vec<u16>>,
    metadata: Option<Metadata>,
}

/// The metadata of transfers.
#[derive(Debug)]
struct Metadata {
    tags: Tags,
    /// Words of each unit's buffer.
    words: usize,
    /// The metadata of each file's blocks.
    formats: Vec<Option<Format>>,
    buffers: Vec<u64>,
    units: Box<[Transfer]>,
}

/// A transfer with metadata.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    attribute: Attribute,
    data: *const u8,
    file: u32,
    reads: bool,
    /// The unit is a transfer that has not completed. (Syncs use units of the same slab, and have no metadata.)
    in_flight: bool,
    end: End,
}

/// How the last transfer of a unit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Ok,
    /// The kernel refuses it.
    Refused,
    Damaged(Damage),
    /// Its metadata has this many bytes and does not fit into the buffer.
    MetadataTooLarge(u64),
}

impl Attributes {
    /// The attributes for these options; `None` = plain transfers.
    ///
    /// # Errors
    /// The kernel has no attributes, or the file with a scheme cannot be read.
    pub(super) fn new(
        config: &EngineConfig,
        options: &IoUringOptions,
        base: Transfers,
    ) -> Result<Option<Attributes>, EngineError> {
        let placement = Placement::new("io_uring", &options.placement, config.seed)?;
        let metadata = options.has_metadata().then(|| Metadata {
            tags: Tags { application: options.apptag, mask: options.apptag_mask, checks: options.pi_chk },
            words: options.md_per_io_size.div_ceil(8) as usize,
            formats: Vec::new(),
            buffers: Vec::new(),
            units: Box::default(),
        });
        if metadata.is_some() && !integrity::rings_take_attributes() {
            let why = "md_per_io_size: the kernel takes no metadata with reads and writes, which Linux does since 6.14; use \
                       ioengine=io_uring_cmd, or leave pi_act=0 out: the kernel makes and checks protection information then";
            return Err(EngineError::Remote {
                engine: "io_uring",
                errno: libc::EOPNOTSUPP,
                why: why.to_owned(),
            });
        }
        let is_plain = placement.is_none() && metadata.is_none();
        Ok((!is_plain).then_some(Attributes { base, placement, streams: Vec::new(), metadata }))
    }

    /// Reads the streams and the metadata format of an open file.
    ///
    /// # Errors
    /// It has no streams, or no metadata.
    pub(super) fn opened(&mut self, index: u32, descriptor: RawFd, mode: OpenMode) -> io::Result<()> {
        let place = index as usize;
        let refused = |why| explained(&io::Error::from_raw_os_error(libc::EOPNOTSUPP), why);
        if let Some(placement) = &self.placement
            && mode.write
        {
            let most = integrity::write_streams(descriptor)
                .map_err(|why| refused(format!("dataplacement={}: {why}", placement.keyword())))?;
            let values = streams(placement, most).map_err(refused)?;
            self.streams.resize(self.streams.len().max(place + 1), Vec::new());
            self.streams[place] = values;
        }
        if let Some(metadata) = &mut self.metadata {
            let format = integrity::of(descriptor)
                .map(|integrity| format(&integrity))
                .map_err(|why| refused(format!("md_per_io_size with pi_act=0: {why}")))?;
            metadata.formats.resize(metadata.formats.len().max(place + 1), None);
            metadata.formats[place] = Some(format);
        }
        Ok(())
    }

    /// Makes room for the units of a slab.
    pub(super) fn prepare(&mut self, count: usize) {
        let Some(metadata) = &mut self.metadata else { return };
        let idle = Transfer {
            attribute: Attribute::default(),
            data: std::ptr::null(),
            file: 0,
            reads: false,
            in_flight: false,
            end: End::Ok,
        };
        metadata.units = vec![idle; count].into_boxed_slice();
        metadata.buffers = metadata_buffers(count * metadata.words);
    }

    /// Adds the attributes of a unit to its entry.
    ///
    /// # Errors
    /// There is no room for its metadata.
    pub(super) fn add(&mut self, unit: &Unit, entry: Entry) -> Result<Entry, Errno> {
        let mut bytes = bytes_of(entry);
        if let Some(placement) = &mut self.placement
            && unit.operation == Operation::Write
        {
            let (_, value) = placement.next(&self.streams[unit.file as usize], unit.offset);
            bytes[STREAM] = (value >> 16) as u8;
        }
        if let Some(metadata) = &mut self.metadata {
            let address = metadata.fill(unit)?;
            bytes[ATTRIBUTE..ATTRIBUTE_KINDS].copy_from_slice(&address.to_ne_bytes());
            bytes[ATTRIBUTE_KINDS..].copy_from_slice(&PROTECTION.to_ne_bytes());
        }
        Ok(entry_of(bytes))
    }

    /// The outcome of a unit, after its metadata was checked.
    pub(super) fn check_completion(&mut self, done: Completion) -> Completion {
        let Completion { unit, outcome } = done;
        let outcome =
            self.metadata.as_mut().map_or(outcome, |metadata| metadata.check_completion(unit, outcome));
        Completion { unit, outcome }
    }

    /// Why a unit failed, if it is because of its attributes.
    pub(super) fn explain(&self, unit: u32) -> Option<String> {
        let metadata = self.metadata.as_ref()?;
        let transfer = metadata.units.get(unit as usize)?;
        match transfer.end {
            End::Ok => None,
            End::Damaged(damage) => Some(damage.to_string()),
            End::MetadataTooLarge(needed) => {
                Some(format!("it has {needed} bytes of metadata; md_per_io_size={needed} has room for them"))
            }
            End::Refused => Some(format!(
                "the kernel does not take {} bytes of metadata with the transfer",
                transfer.attribute.length
            )),
        }
    }
}

impl Metadata {
    /// Fills the attribute of a unit, and the metadata of a write. Returns the address of the attribute.
    fn fill(&mut self, unit: &Unit) -> Result<u64, Errno> {
        let transfer = &mut self.units[unit.index as usize];
        let Some(format) = self.formats.get(unit.file as usize).copied().flatten() else {
            return Err(Errno(libc::EBADF));
        };
        let first = unit.offset / u64::from(format.data);
        let length = unit.length / u64::from(format.data) * u64::from(format.metadata);
        let reads = unit.operation == Operation::Read;
        *transfer = Transfer {
            data: unit.buffer,
            file: unit.file,
            reads,
            in_flight: false,
            end: End::Ok,
            ..*transfer
        };
        if length > self.words as u64 * 8 {
            transfer.end = End::MetadataTooLarge(length);
            return Err(Errno(libc::ENOBUFS));
        }
        let from = self.words * unit.index as usize;
        transfer.attribute = Attribute {
            flags: flags(&format, &self.tags),
            application: self.tags.application,
            length: length as u32,
            address: self.buffers[from..].as_mut_ptr() as u64,
            seed: first,
            reserved: 0,
        };
        if !reads {
            // SAFETY: the unit's buffer is valid for its length, its metadata for what was just computed, and neither is in
            // flight.
            unsafe {
                each_block(transfer, &format, |block, data, metadata| {
                    if let Some(protection) = &format.protection {
                        protection::protect(&format, protection, &self.tags, block, data, metadata);
                    }
                    None::<()>
                });
            }
        }
        transfer.in_flight = true;
        Ok(&raw const transfer.attribute as u64)
    }

    /// Checks the protection information of a completed read.
    fn check_completion(&mut self, unit: u32, outcome: Outcome) -> Outcome {
        let Some(transfer) = self.units.get_mut(unit as usize) else { return outcome };
        if !std::mem::take(&mut transfer.in_flight) {
            transfer.end = End::Ok;
            return outcome;
        }
        if outcome == Err(Errno(libc::EINVAL)) {
            transfer.end = End::Refused;
        }
        let format = self.formats.get(transfer.file as usize).copied().flatten();
        let (Some(format), Ok(bytes), true) = (format, outcome, transfer.reads) else { return outcome };
        // Only the blocks that a short read has read.
        let metadata = bytes / u64::from(format.data) * u64::from(format.metadata);
        transfer.attribute.length = transfer.attribute.length.min(metadata as u32);
        let Some(protection) = format.protection else { return outcome };
        // SAFETY: the transfer is complete, and its buffers are still those of the unit.
        let damage = unsafe {
            each_block(transfer, &format, |block, data, metadata| {
                protection::check(&format, &protection, &self.tags, block, data, metadata)
            })
        };
        let Some(damage) = damage else { return outcome };
        transfer.end = End::Damaged(damage);
        Err(Errno(libc::EILSEQ))
    }
}

/// The check flags for the kernel, which has no mask for the application tag.
fn flags(format: &Format, tags: &Tags) -> u16 {
    let Some(protection) = format.protection else { return 0 };
    let Checks { guard, application, reference } = tags.checks;
    let flag = |asked: bool, flag| if asked { flag } else { 0 };
    flag(guard, CHECK_GUARD)
        | flag(reference && protection.kind != 3, CHECK_REFERENCE)
        | flag(application && tags.mask == u16::MAX, CHECK_APPLICATION)
}

/// Calls a function with the data and the metadata of each block of a transfer, until it returns a value.
///
/// # Safety
/// The transfer's buffers are valid for their lengths, and are not used otherwise.
unsafe fn each_block<T>(
    transfer: &Transfer,
    format: &Format,
    mut act: impl FnMut(u64, &[u8], &mut [u8]) -> Option<T>,
) -> Option<T> {
    let (size, metadata_size) = (format.data as usize, usize::from(format.metadata));
    let Attribute { length, address, seed, .. } = transfer.attribute;
    (0..length as usize / metadata_size).find_map(|block| {
        let data = transfer.data.wrapping_add(block * size);
        let metadata = (address as *mut u8).wrapping_add(block * metadata_size);
        // SAFETY: both are parts of the buffers, which do not overlap.
        let (data, metadata) = unsafe {
            (std::slice::from_raw_parts(data, size), std::slice::from_raw_parts_mut(metadata, metadata_size))
        };
        act(seed + block as u64, data, metadata)
    })
}

/// The streams that a job may use on a device with `most` streams, counted from 1. The kernel numbers placement handles
/// the same way: place 0 is stream 1. An entry has eight bits for a stream.
fn streams(placement: &Placement, most: u16) -> Result<Vec<u16>, String> {
    let most = most.min(u16::from(u8::MAX));
    let handles: Vec<Handle> =
        (1..=most).map(|stream| Handle { identifier: stream, unit: stream - 1, room: 0 }).collect();
    if let Some(beyond) = placement.streams().find(|&stream| stream == 0 || stream > most) {
        return Err(format!("plids={beyond}: the device has {most} write streams, counted from 1"));
    }
    placement.values(&handles)
}

/// The format of blocks with metadata in a separate buffer.
fn format(integrity: &Integrity) -> Format {
    let Integrity { interval, metadata, protection } = *integrity;
    Format { data: interval, metadata, extended: false, protection }
}

fn bytes_of(entry: Entry) -> [u8; 64] {
    // SAFETY: an entry is the kernel's structure, all of whose bytes are parts of integers.
    unsafe { std::mem::transmute(entry) }
}

fn entry_of(bytes: [u8; 64]) -> Entry {
    // SAFETY: as above.
    unsafe { std::mem::transmute(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::types::Fd;
    use io_uring::{IoUring, opcode};
    use iolite_options::{DataPlacement, DataPlacementOptions, PlacementChoice};
    use iolite_os::nvme::{Guard, Protection};
    use iolite_testing::skip;
    use std::os::fd::AsRawFd;

    const PROTECTION: Protection = Protection { kind: 1, guard: Guard::Crc16, first: true, storage_tag: 0 };
    const FORMAT: Format = Format { data: 512, metadata: 8, extended: false, protection: Some(PROTECTION) };

    fn unit(operation: Operation, buffer: &mut [u8], offset: u64) -> Unit {
        let length = buffer.len() as u64;
        Unit { buffer: buffer.as_mut_ptr(), length, offset, index: 1, file: 0, operation, priority: 0 }
    }

    fn entry(unit: &Unit) -> Entry {
        opcode::Write::new(Fd(9), unit.buffer, unit.length as u32).offset(unit.offset).build()
    }

    /// As after `open` and `prepare`, on a file whose blocks have metadata.
    fn with_metadata(change: impl FnOnce(&mut Tags)) -> Attributes {
        let checks = Checks { guard: true, application: true, reference: true };
        let mut tags = Tags { application: 0x1234, mask: 0xffff, checks };
        change(&mut tags);
        let (formats, buffers, units) = (vec![Some(FORMAT)], Vec::new(), Box::default());
        let metadata = Some(Metadata { tags, words: 2, formats, buffers, units });
        let mut attributes =
            Attributes { base: Transfers::Plain, placement: None, streams: Vec::new(), metadata };
        attributes.prepare(2);
        attributes
    }

    #[test]
    fn the_stream_of_a_write_is_a_byte_of_its_entry() {
        let options = DataPlacementOptions {
            dataplacement: DataPlacement::Fdp,
            plids: vec![2, 0],
            plid_select: PlacementChoice::RoundRobin,
            ..DataPlacementOptions::default()
        };
        let placement = Placement::new("io_uring", &options, 1).unwrap().unwrap();
        assert_eq!(streams(&placement, 4), Ok(vec![3, 1]));
        assert!(streams(&placement, 2).unwrap_err().contains("has 2 placement handles"));
        let mut attributes = Attributes {
            base: Transfers::Plain,
            placement: Some(placement),
            streams: vec![vec![3, 1]],
            metadata: None,
        };
        let mut data = [0; 512];
        let write = unit(Operation::Write, &mut data, 4096);
        let plain = bytes_of(entry(&write));
        for stream in [3, 1, 3] {
            let mut expected = plain;
            expected[44] = stream;
            assert_eq!(bytes_of(attributes.add(&write, entry(&write)).unwrap()), expected);
        }
        let read = unit(Operation::Read, &mut data, 4096);
        assert_eq!(bytes_of(attributes.add(&read, entry(&read)).unwrap()), plain, "reads go nowhere");
        let named = DataPlacementOptions {
            dataplacement: DataPlacement::Streams,
            plids: vec![4, 5],
            ..DataPlacementOptions::default()
        };
        let placement = Placement::new("io_uring", &named, 1).unwrap().unwrap();
        assert_eq!(streams(&placement, 5), Ok(vec![4, 5]));
        assert!(streams(&placement, 4).unwrap_err().contains("plids=5: the device has 4 write streams"));
        for (none, most) in [(0, 5), (256, 1000)] {
            let named = DataPlacementOptions { plids: vec![none], ..named.clone() };
            let placement = Placement::new("io_uring", &named, 1).unwrap().unwrap();
            let why = streams(&placement, most).unwrap_err();
            assert!(
                why.contains(&format!("plids={none}: the device has {} write streams", most.min(255))),
                "{why}"
            );
        }
    }

    /// `struct io_uring_attr_pi` and the fields of the entry that name it, byte by byte.
    #[test]
    fn metadata_is_an_attribute_of_its_entry() {
        let mut attributes = with_metadata(|_| ());
        let mut data = [0xa5; 1024];
        let write = unit(Operation::Write, &mut data, 0x1_0000);
        let bytes = bytes_of(attributes.add(&write, entry(&write)).unwrap());
        let metadata = attributes.metadata.as_ref().unwrap();
        let transfer = &metadata.units[1];
        let address = &raw const transfer.attribute as u64;
        assert_eq!(bytes[..48], bytes_of(entry(&write))[..48]);
        assert_eq!((&bytes[48..56], &bytes[56..]), (&address.to_ne_bytes()[..], &1u64.to_ne_bytes()[..]));
        // SAFETY: the structure consists of integers without gaps.
        let attribute: [u8; 32] = unsafe { std::mem::transmute(transfer.attribute) };
        let buffer = metadata.buffers[2..].as_ptr();
        let expected = [
            &7u16.to_ne_bytes()[..],
            &0x1234u16.to_ne_bytes(),
            &16u32.to_ne_bytes(),
            &(buffer as u64).to_ne_bytes(),
            &128u64.to_ne_bytes(),
            &[0; 8],
        ];
        assert_eq!(attribute.to_vec(), expected.concat());
        // SAFETY: the unit has two words of metadata.
        let made = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), 16) }.to_vec();
        let mut block = [0; 8];
        protection::protect(&FORMAT, &PROTECTION, &metadata.tags, 128, &data[..512], &mut block);
        assert_eq!(made[..8], block);
        protection::protect(&FORMAT, &PROTECTION, &metadata.tags, 129, &data[512..], &mut block);
        assert_eq!(made[8..], block);
        // The kernel has no mask for the application tag, and type 3 has no reference tag.
        let masked = Tags { mask: 0xff00, ..metadata.tags };
        assert_eq!(flags(&FORMAT, &masked), CHECK_GUARD | CHECK_REFERENCE);
        let third = Format { protection: Some(Protection { kind: 3, ..PROTECTION }), ..FORMAT };
        assert_eq!(flags(&third, &metadata.tags), CHECK_GUARD | CHECK_APPLICATION);
    }

    #[test]
    fn reads_are_checked() {
        let mut attributes = with_metadata(|_| ());
        let mut data = [0x5a; 1024];
        let write = unit(Operation::Write, &mut data, 512 * 7);
        attributes.add(&write, entry(&write)).unwrap();
        let done = |outcome| Completion { unit: 1, outcome };
        assert_eq!(attributes.check_completion(done(Ok(1024))).outcome, Ok(1024));
        // The buffers now hold what a device would read back.
        let read = unit(Operation::Read, &mut data, 512 * 7);
        attributes.add(&read, entry(&read)).unwrap();
        assert_eq!(attributes.check_completion(done(Ok(1024))).outcome, Ok(1024));
        let moved = unit(Operation::Read, &mut data, 512 * 9);
        attributes.add(&moved, entry(&moved)).unwrap();
        assert_eq!(attributes.check_completion(done(Ok(1024))).outcome, Err(Errno(libc::EILSEQ)));
        let words = "protection information of block 9: reference tag 0x7, and not 0x9";
        assert_eq!(attributes.explain(1).as_deref(), Some(words));
        // A sync on the unit of a damaged read has no metadata, and a short read is not complete yet.
        assert_eq!(attributes.check_completion(done(Ok(0))).outcome, Ok(0));
        assert_eq!(attributes.explain(1), None);
        assert_eq!(
            attributes.check_completion(done(Err(Errno(libc::EINVAL)))).outcome,
            Err(Errno(libc::EINVAL))
        );
        assert_eq!(attributes.explain(1), None);
        // Of a short read, only the blocks that were read are checked.
        let metadata = attributes.metadata.as_mut().unwrap();
        let second = metadata.words + 1;
        metadata.buffers[second] ^= 1;
        for (bytes, outcome) in [(512, Ok(512)), (1024, Err(Errno(libc::EILSEQ)))] {
            attributes.add(&read, entry(&read)).unwrap();
            assert_eq!(attributes.check_completion(done(Ok(bytes))).outcome, outcome);
        }
        let mut much = [0; 2048];
        let large = unit(Operation::Read, &mut much, 0);
        assert_eq!(attributes.add(&large, entry(&large)).err(), Some(Errno(libc::ENOBUFS)));
        assert!(attributes.explain(1).unwrap().contains("md_per_io_size=32 has room"));
    }

    /// A kernel with attributes refuses them for a file without metadata: so it has found them in the entry.
    #[test]
    fn the_kernel_finds_attributes() {
        if !integrity::rings_take_attributes() {
            skip!("this kernel takes no attributes, which Linux does since 6.14");
        }
        let mut ring = IoUring::new(2).unwrap();
        let file = tempfile::tempfile().unwrap();
        let mut attributes = with_metadata(|_| ());
        let mut data = [0xa5; 1024];
        let write = unit(Operation::Write, &mut data, 0);
        let plain = opcode::Write::new(Fd(file.as_raw_fd()), write.buffer, 1024).build();
        let attributed = attributes.add(&write, plain.clone()).unwrap();
        let mut ended = |entry: &Entry| {
            // SAFETY: what the entry names stays until it is complete.
            unsafe { ring.submission().push(entry).unwrap() };
            ring.submit_and_wait(1).unwrap();
            ring.completion().next().unwrap().result()
        };
        assert_eq!((ended(&plain), ended(&attributed)), (1024, -libc::EINVAL));
        attributes.check_completion(Completion { unit: 1, outcome: Err(Errno(libc::EINVAL)) });
        assert!(attributes.explain(1).unwrap().contains("16 bytes of metadata"));
    }

    #[test]
    fn plain_transfers_have_none() {
        let none =
            Attributes::new(&EngineConfig::default(), &IoUringOptions::default(), Transfers::Plain).unwrap();
        assert!(none.is_none());
    }
}
