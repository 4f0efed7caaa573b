//! The binary traces of blktrace, record by record.
//!
//! The format is that of Linux's `include/uapi/linux/blktrace_api.h`: a stream of records of 48 bytes, each followed by
//! a payload. The byte order is that of the machine that recorded the trace; the magic number shows which one it is.

use crate::summary::Steps;
use crate::{Event, FileName, MOST_FILES, Place, Record, TraceError, text::HIGHEST};
use iolite_types::Operation;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, Write};

/// Size of a record without its payload, in bytes.
pub const RECORD_BYTES: usize = 48;

/// The upper three bytes of every record's first word; the lowest is the version.
pub const MAGIC: u32 = 0x6561_7400;

/// The only version of the format.
pub const VERSION: u32 = 7;

/// Size of a sector, the unit of offsets, in bytes.
pub const SECTOR: u64 = 512;

/// The low half of [`BlkRecord::action`].
pub mod action {
    /// An I/O was queued. A replay issues these.
    pub const QUEUE: u32 = 1;
    /// An I/O was added to the end of a request.
    pub const BACK_MERGE: u32 = 2;
    /// An I/O was added to the beginning of a request.
    pub const FRONT_MERGE: u32 = 3;
    /// An I/O got a request of its own.
    pub const GET_REQUEST: u32 = 4;
    /// The device returned a request, which will be issued again.
    pub const REQUEUE: u32 = 6;
    /// A request was issued to the device.
    pub const ISSUE: u32 = 7;
    /// A request completed.
    pub const COMPLETE: u32 = 8;
    /// A request was inserted into the scheduler.
    pub const INSERT: u32 = 12;
    /// A flag in addition to the action: the payload begins with the number of a control group.
    pub const CGROUP: u32 = 1 << 8;
    /// The bits of the action itself.
    pub const MASK: u32 = 0xffff & !CGROUP;
}

/// The high half of [`BlkRecord::action`].
pub mod category {
    /// A read.
    pub const READ: u32 = 1 << 16;
    /// A write.
    pub const WRITE: u32 = 1 << 17;
    /// A flush precedes the I/O.
    pub const FLUSH: u32 = 1 << 18;
    /// A process waits for the I/O.
    pub const SYNC: u32 = 1 << 19;
    /// A command that a program has sent through to the device.
    pub const PASSTHROUGH: u32 = 1 << 25;
    /// Not an I/O, but a message about the trace.
    pub const NOTIFY: u32 = 1 << 26;
    /// A discard.
    pub const DISCARD: u32 = 1 << 29;
    /// The I/O reaches the medium before it completes.
    pub const FUA: u32 = 1 << 31;
}

/// One record of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the format's own")]
pub struct BlkRecord {
    pub sequence: u32,
    /// In nanoseconds.
    pub time: u64,
    pub sector: u64,
    pub bytes: u32,
    /// See [`action`] and [`category`].
    pub action: u32,
    pub pid: u32,
    /// The device: 12 bits major number, 20 bits minor number.
    pub device: u32,
    pub cpu: u32,
    pub error: u16,
    pub payload: Vec<u8>,
}

impl BlkRecord {
    /// The action without the flag.
    pub fn what(&self) -> u32 {
        self.action & action::MASK
    }

    /// Whether the record is of this category.
    pub fn is(&self, category: u32) -> bool {
        self.action & category != 0
    }

    /// The device of the record.
    pub fn device_name(&self) -> FileName {
        FileName::Device { major: self.device >> 20, minor: self.device & 0xf_ffff }
    }

    /// The number of a device in the encoding of records.
    pub fn device_number(major: u32, minor: u32) -> u32 {
        major << 20 | minor & 0xf_ffff
    }
}

/// The byte order of the numbers in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest byte first.
    Little,
    /// The highest byte first.
    Big,
}

impl ByteOrder {
    /// The byte order in which these four bytes are a magic number; `None` if they are in neither.
    pub fn of_magic(bytes: [u8; 4]) -> Option<ByteOrder> {
        if u32::from_le_bytes(bytes) & !0xff == MAGIC {
            Some(ByteOrder::Little)
        } else if u32::from_be_bytes(bytes) & !0xff == MAGIC {
            Some(ByteOrder::Big)
        } else {
            None
        }
    }

    fn number<const N: usize>(self, bytes: &[u8]) -> u64 {
        let byte = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match self {
            ByteOrder::Big => bytes[..N].iter().fold(0, byte),
            ByteOrder::Little => bytes[..N].iter().rev().fold(0, byte),
        }
    }
}

/// Reads the records of a trace.
#[derive(Debug)]
pub struct BlkReader<R> {
    input: R,
    name: String,
    /// The number of records begun so far.
    count: u64,
    order: ByteOrder,
}

impl<R: BufRead> BlkReader<R> {
    /// A reader of `input`. Errors call the trace `name`.
    pub fn new(input: R, name: &str) -> Self {
        BlkReader { input, name: name.to_owned(), count: 0, order: ByteOrder::Little }
    }

    /// The number of the record that was read last, from 1.
    pub fn place(&self) -> Place {
        Place::Record(self.count)
    }

    /// The byte order of the record that was read last.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Reads a record into `record`, and reuses the memory of its payload. Returns false at the end.
    ///
    /// # Errors
    ///
    /// The trace is cut off or damaged in this record, or it cannot be read.
    pub fn read(&mut self, record: &mut BlkRecord) -> Result<bool, TraceError> {
        let mut bytes = [0; RECORD_BYTES];
        self.count += 1;
        // A record that has not arrived yet does not count as begun.
        let count = self.fill(&mut bytes).inspect_err(|_| self.count -= 1)?;
        if count == 0 {
            self.count -= 1;
            return Ok(false);
        }
        if count < 4 {
            return Err(self.wrong("the trace is cut off within it".into()));
        }
        self.order = ByteOrder::of_magic([bytes[0], bytes[1], bytes[2], bytes[3]]).ok_or_else(|| {
            self.wrong(format!("it begins with {:02x?}, which is not a record of blktrace", &bytes[..4]))
        })?;
        let order = self.order;
        let word = |at: usize| order.number::<4>(&bytes[at..]) as u32;
        let version = word(0) & 0xff;
        if version != VERSION {
            return Err(self.wrong(format!("it has version {version}, and only {VERSION} can be read")));
        }
        if count < RECORD_BYTES {
            return Err(self.wrong("the trace is cut off within it".into()));
        }
        *record = BlkRecord {
            sequence: word(4),
            time: order.number::<8>(&bytes[8..]),
            sector: order.number::<8>(&bytes[16..]),
            bytes: word(24),
            action: word(28),
            pid: word(32),
            device: word(36),
            cpu: word(40),
            error: order.number::<2>(&bytes[44..]) as u16,
            payload: std::mem::take(&mut record.payload),
        };
        let length = payload_length(order, &bytes);
        record.payload.resize(length, 0);
        if self.fill(&mut record.payload)? < length {
            return Err(self.wrong("the trace is cut off within its payload".into()));
        }
        Ok(true)
    }

    /// Reads until the buffer is full or the trace ends. Returns the number of bytes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(TraceError::io(&self.name, self.place(), error)),
            }
        }
        Ok(filled)
    }

    fn wrong(&self, message: String) -> TraceError {
        TraceError::new(&self.name, self.place(), message)
    }
}

fn payload_length(order: ByteOrder, record: &[u8; RECORD_BYTES]) -> usize {
    order.number::<2>(&record[46..]) as usize
}

/// The length of the record, with its payload, at the beginning of these bytes; `None` if there are too few bytes to
/// know it. If the bytes are not a record, it is their number.
pub(crate) fn length_of(bytes: &[u8]) -> Option<usize> {
    let record: &[u8; RECORD_BYTES] = bytes.first_chunk()?;
    let order = ByteOrder::of_magic([record[0], record[1], record[2], record[3]]);
    Some(order.map_or(bytes.len(), |order| RECORD_BYTES + payload_length(order, record)))
}

/// Writes one record.
///
/// # Errors
///
/// `InvalidInput` if the payload has more than 65535 bytes; otherwise the error of writing to `output`.
pub fn write(output: &mut impl Write, order: ByteOrder, record: &BlkRecord) -> io::Result<()> {
    let length = u16::try_from(record.payload.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a payload has at most 65535 bytes"))?;
    let mut bytes = Vec::with_capacity(RECORD_BYTES + record.payload.len());
    let mut put = |value: u64, width: usize| match order {
        ByteOrder::Little => bytes.extend_from_slice(&value.to_le_bytes()[..width]),
        ByteOrder::Big => bytes.extend_from_slice(&value.to_be_bytes()[8 - width..]),
    };
    put(u64::from(MAGIC | VERSION), 4);
    put(u64::from(record.sequence), 4);
    put(record.time, 8);
    put(record.sector, 8);
    for word in [record.bytes, record.action, record.pid, record.device, record.cpu] {
        put(u64::from(word), 4);
    }
    put(u64::from(record.error), 2);
    put(u64::from(length), 2);
    bytes.extend_from_slice(&record.payload);
    output.write_all(&bytes)
}

/// Reads a binary trace as a stream of the events that all traces have.
#[derive(Debug)]
pub struct BinaryReader<R> {
    records: BlkReader<R>,
    record: BlkRecord,
    files: Vec<FileName>,
    places: HashMap<u32, u32>,
    /// Events of the last record that have not been returned yet.
    waiting: VecDeque<Record>,
    /// The time between the steps of I/Os; `None` = it is not measured.
    pub(crate) steps: Option<Box<Steps>>,
}

impl<R: BufRead> BinaryReader<R> {
    /// A reader of `input`. Errors call the trace `name`.
    pub fn new(input: R, name: &str) -> Self {
        BinaryReader {
            records: BlkReader::new(input, name),
            record: BlkRecord::default(),
            files: Vec::new(),
            places: HashMap::new(),
            waiting: VecDeque::with_capacity(4),
            steps: None,
        }
    }

    /// The devices seen so far.
    pub fn files(&self) -> &[FileName] {
        &self.files
    }

    /// The number of the last record, from 1.
    pub fn place(&self) -> Place {
        self.records.place()
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    ///
    /// The trace is cut off or damaged in this record, or it cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some(record) = self.waiting.pop_front() {
                return Ok(Some(record));
            }
            if !self.records.read(&mut self.record)? {
                return Ok(None);
            }
            if let Some(steps) = &mut self.steps {
                steps.take(&self.record);
            }
            self.interpret()?;
        }
    }

    /// Translates a record into events. A flush is a sync, followed by the data of the record, if any.
    fn interpret(&mut self) -> Result<(), TraceError> {
        let record = &self.record;
        if record.is(category::NOTIFY) {
            return Ok(());
        }
        let (time_ns, what) = (record.time, record.what());
        if !matches!(what, action::QUEUE | action::ISSUE | action::REQUEUE | action::COMPLETE) {
            return Ok(());
        }
        if time_ns > HIGHEST {
            return Err(self.records.wrong(format!("the time {time_ns} is too large")));
        }
        let length = u64::from(record.bytes);
        let offset = record.sector.checked_mul(SECTOR).filter(|offset| *offset <= HIGHEST - length);
        let (has_flush, is_trim, is_write) =
            (record.is(category::FLUSH), record.is(category::DISCARD), record.is(category::WRITE));
        let has_direction = is_trim || is_write || record.is(category::READ);
        let file = self.place_of_device()?;
        let mut push = |event| self.waiting.push_back(Record { time_ns, file, event });
        // A flush has a second completion, without data and without the flag, for its issuer. It is not a request to the
        // device.
        let is_request = length > 0 || has_flush;
        match what {
            action::ISSUE | action::REQUEUE | action::COMPLETE if !is_request => {}
            action::ISSUE => push(Event::Issued),
            action::REQUEUE | action::COMPLETE => push(Event::Returned),
            _ => {
                if has_flush {
                    push(Event::Io { operation: Operation::Sync, offset: 0, length: 0 });
                }
                if length == 0 || !has_direction {
                    return Ok(());
                }
                let Some(offset) = offset else {
                    let sector = self.record.sector;
                    return Err(self
                        .records
                        .wrong(format!("sector {sector} is beyond what a device can have")));
                };
                let operation = match (is_trim, is_write) {
                    (true, _) => Operation::Trim,
                    (false, true) => Operation::Write,
                    (false, false) => Operation::Read,
                };
                push(Event::Io { operation, offset, length });
            }
        }
        Ok(())
    }

    fn place_of_device(&mut self) -> Result<u32, TraceError> {
        let next = self.files.len() as u32;
        if let Some(&place) = self.places.get(&self.record.device) {
            return Ok(place);
        }
        if self.files.len() >= MOST_FILES {
            return Err(self.records.wrong(format!("more than {MOST_FILES} devices")));
        }
        self.places.insert(self.record.device, next);
        self.files.push(self.record.device_name());
        self.waiting.push_back(Record { time_ns: self.record.time, file: next, event: Event::Add });
        self.waiting.push_back(Record { time_ns: self.record.time, file: next, event: Event::Open });
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = BlkRecord> {
        (any::<(u32, u64, u64, u32, u32)>(), any::<(u32, u32, u32, u16)>(), any::<Vec<u8>>()).prop_map(
            |((sequence, time, sector, bytes, action), (pid, device, cpu, error), payload)| BlkRecord {
                sequence,
                time,
                sector,
                bytes,
                action,
                pid,
                device,
                cpu,
                error,
                payload,
            },
        )
    }

    fn queued(time: u64, sector: u64, bytes: u32, category: u32) -> BlkRecord {
        let device = BlkRecord::device_number(8, 17);
        BlkRecord { time, sector, bytes, action: action::QUEUE | category, device, ..BlkRecord::default() }
    }

    fn bytes(order: ByteOrder, records: &[BlkRecord]) -> Vec<u8> {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| write(&mut bytes, order, record).unwrap());
        bytes
    }

    fn events(bytes: &[u8]) -> Result<Vec<Event>, String> {
        let mut reader = BinaryReader::new(bytes, "b");
        std::iter::from_fn(|| reader.next_record().transpose())
            .map(|record| record.map(|record| record.event))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_layout_is_the_kernels() {
        let record = BlkRecord { payload: vec![9; 3], error: 0x0102, ..queued(5, 8, 4096, category::READ) };
        let little = bytes(ByteOrder::Little, std::slice::from_ref(&record));
        assert_eq!(little.len(), 51);
        assert_eq!(little[..4], [0x07, 0x74, 0x61, 0x65]);
        assert_eq!(little[28..32], [1, 0, 1, 0]);
        assert_eq!(little[36..40], [0x11, 0x00, 0x80, 0x00]);
        assert_eq!(little[44..], [2, 1, 3, 0, 9, 9, 9]);
        let big = bytes(ByteOrder::Big, &[record]);
        assert_eq!(big[..4], [0x65, 0x61, 0x74, 0x07]);
        assert_eq!(big[44..48], [1, 2, 0, 3]);
    }

    #[test]
    fn only_queued_requests_are_ios() {
        let io = |operation, offset, length| Event::Io { operation, offset, length };
        let done = BlkRecord { action: action::COMPLETE | category::READ, ..queued(9, 0, 512, 0) };
        let notice = BlkRecord { action: 1 | category::NOTIFY, ..queued(0, 0, 4, 0) };
        let in_group =
            BlkRecord { payload: vec![0; 8], ..queued(8, 8, 512, action::CGROUP | category::READ) };
        let records = [
            notice,
            queued(1, 8, 4096, category::READ),
            queued(2, 16, 512, category::WRITE | category::SYNC | category::FUA),
            queued(3, 24, 1024, category::DISCARD | category::WRITE),
            queued(4, 0, 0, category::FLUSH | category::WRITE),
            queued(5, 0, 512, category::FLUSH | category::WRITE),
            queued(6, 0, 0, category::READ),
            in_group,
            done,
            BlkRecord { action: action::COMPLETE | category::FLUSH, ..queued(10, 0, 0, 0) },
            BlkRecord { action: action::COMPLETE | category::WRITE, ..queued(11, 0, 0, 0) },
        ];
        let expected = [
            Event::Add,
            Event::Open,
            io(Operation::Read, 4096, 4096),
            io(Operation::Write, 8192, 512),
            io(Operation::Trim, 12_288, 1024),
            io(Operation::Sync, 0, 0),
            io(Operation::Sync, 0, 0),
            io(Operation::Write, 0, 512),
            io(Operation::Read, 4096, 512),
            Event::Returned,
            Event::Returned,
        ];
        for order in [ByteOrder::Little, ByteOrder::Big] {
            assert_eq!(events(&bytes(order, &records)).unwrap(), expected);
        }
        let mut reader = BinaryReader::new(&[][..], "b");
        assert_eq!(reader.next_record().unwrap(), None);
    }

    #[test]
    fn mistakes_have_a_record_number() {
        let good =
            bytes(ByteOrder::Big, &[queued(1, 8, 512, category::READ), queued(2, 8, 512, category::READ)]);
        for cut in [50, 60, 95] {
            assert_eq!(events(&good[..cut]).unwrap_err(), "b: record 2: the trace is cut off within it");
        }
        let mut payload =
            bytes(ByteOrder::Little, &[BlkRecord { payload: vec![0; 9], ..BlkRecord::default() }]);
        payload.pop();
        assert!(events(&payload).unwrap_err().contains("record 1: the trace is cut off within its payload"));
        let mut corrupt = good.clone();
        corrupt[49] = 0;
        assert!(events(&corrupt).unwrap_err().contains("record 2: it begins with [65, 00, 74, 07]"));
        let mut version = good;
        version[51] = 6;
        assert!(events(&version).unwrap_err().contains("record 2: it has version 6"));
        let far = bytes(ByteOrder::Little, &[queued(1, u64::MAX, 512, category::READ)]);
        assert!(events(&far).unwrap_err().contains("beyond"));
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn records_survive_both_byte_orders(records in prop::collection::vec(record(), 0..8), big: bool) {
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let bytes = bytes(order, &records);
            let mut reader = BlkReader::new(&bytes[..], "b");
            let mut read = Vec::new();
            let mut record = BlkRecord::default();
            while reader.read(&mut record).unwrap() {
                prop_assert_eq!(reader.order(), order);
                read.push(record.clone());
            }
            prop_assert_eq!(read, records);
        }

        #[test]
        fn no_bytes_are_too_strange(
            records in prop::collection::vec(record(), 0..4),
            at in any::<prop::sample::Index>(),
            byte: u8,
        ) {
            let mut bytes = bytes(ByteOrder::Little, &records);
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut reader = BinaryReader::new(&bytes[..], "b");
            while let Ok(Some(_)) = reader.next_record() {}
        }
    }
}
