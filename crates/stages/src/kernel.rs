//! The kernel's records, decoded with the offsets that its `format` files give.

use iolite_host::{Field, Tracepoint, Tracing};

/// The number of a block device, as the kernel's records have it.
pub(crate) type Device = u32;

/// Sectors of 512 bytes: the first, and the one behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sectors {
    pub first: u64,
    pub end: u64,
}

impl Sectors {
    pub(crate) fn count(self) -> u64 {
        self.end - self.first
    }

    /// The sectors that both have.
    pub(crate) fn and(self, other: Sectors) -> Option<Sectors> {
        let both = Sectors { first: self.first.max(other.first), end: self.end.min(other.end) };
        (both.first < both.end).then_some(both)
    }
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The block layer got a request (a bio).
    Queued(Device, Sectors),
    /// The driver got a request.
    Issued(Device, Sectors),
    /// The device has completed sectors.
    Completed(Device, Sectors),
    /// A request ended without the driver: it failed, or could not be queued without waiting.
    Ended(Device, Sectors),
    /// Sectors of `from` are those of `to` on another device.
    Remapped { from: (Device, u64), to: (Device, Sectors) },
    /// The driver of a command set got a command; it stands for one sector of a device that does not exist.
    Commanded(Device, Sectors),
    /// The command is complete.
    Answered(Device, Sectors),
    /// The thread created this ring.
    RingMade { ring: u64 },
    /// The thread submits this unit of this ring.
    Submitted { ring: u64, unit: u32 },
    /// The unit goes to a thread of the kernel.
    HandedOn { ring: u64, unit: u32 },
}

/// A record with its time and thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time: u64,
    pub thread: i32,
    pub what: What,
}

/// Where a number is in a record.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: usize,
    size: usize,
}

impl Place {
    fn of(point: &Tracepoint, name: &str) -> Option<Place> {
        point.field(name).map(|&Field { offset, size, .. }| Place { offset, size })
    }

    fn read(self, data: &[u8]) -> Option<u64> {
        let bytes = data.get(self.offset..self.offset + self.size)?;
        match self.size {
            1 => Some(bytes[0].into()),
            2 => Some(u16::from_ne_bytes(bytes.try_into().ok()?).into()),
            4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
            8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }
}

/// What the queues of commands have for the number of a device. (Real devices have smaller ones.)
const NVME: Device = 1 << 31;
const SCSI: Device = NVME | 1 << 30;

/// Whether a device stands for a queue of commands.
pub(crate) fn is_of_commands(device: Device) -> bool {
    device & NVME != 0
}

/// How the records of one tracepoint are read.
#[derive(Clone, Copy, Debug)]
enum Reader {
    Block {
        kind: fn(Device, Sectors) -> What,
        device: Place,
        sector: Place,
        count: Place,
    },
    Remap {
        device: Place,
        sector: Place,
        count: Place,
        old_device: Place,
        old_sector: Place,
    },
    /// Commands, by their queue and their number in it.
    Command {
        kind: fn(Device, Sectors) -> What,
        set: Device,
        queue: [Place; 2],
        number: Place,
    },
    RingMade {
        ring: Place,
    },
    Ring {
        kind: fn(u64, u32) -> What,
        ring: Place,
        unit: Place,
    },
}

impl Reader {
    fn new(name: &str, point: &Tracepoint) -> Option<Reader> {
        let place = |field: &str| Place::of(point, field);
        let block = |kind| {
            Some(Reader::Block {
                kind,
                device: place("dev")?,
                sector: place("sector")?,
                count: place("nr_sector")?,
            })
        };
        let command = |kind, set, [first, second]: [&str; 2], number: &str| {
            Some(Reader::Command {
                kind,
                set,
                queue: [place(first)?, place(second)?],
                number: place(number)?,
            })
        };
        match name.split_once('/')?.1 {
            "block_bio_queue" => block(What::Queued),
            "block_rq_issue" => block(What::Issued),
            "block_rq_complete" => block(What::Completed),
            "block_bio_complete" => block(What::Ended),
            "block_bio_remap" => Some(Reader::Remap {
                device: place("dev")?,
                sector: place("sector")?,
                count: place("nr_sector")?,
                old_device: place("old_dev")?,
                old_sector: place("old_sector")?,
            }),
            "nvme_setup_cmd" => command(What::Commanded, NVME, ["ctrl_id", "qid"], "cid"),
            "nvme_complete_rq" => command(What::Answered, NVME, ["ctrl_id", "qid"], "cid"),
            "scsi_dispatch_cmd_start" => command(What::Commanded, SCSI, ["host_no", "id"], "driver_tag"),
            "scsi_dispatch_cmd_done" => command(What::Answered, SCSI, ["host_no", "id"], "driver_tag"),
            "io_uring_create" => Some(Reader::RingMade { ring: place("ctx")? }),
            "io_uring_submit_req" | "io_uring_submit_sqe" => Some(Reader::Ring {
                kind: |ring, unit| What::Submitted { ring, unit },
                ring: place("ctx")?,
                unit: place("user_data")?,
            }),
            "io_uring_queue_async_work" => Some(Reader::Ring {
                kind: |ring, unit| What::HandedOn { ring, unit },
                ring: place("ctx")?,
                unit: place("user_data")?,
            }),
            _ => None,
        }
    }

    /// What a record says; `None` = nothing of interest, such as a flush, which has no sectors.
    fn read(self, data: &[u8]) -> Option<What> {
        let sectors = |first: Place, count: Place| {
            let (first, count) = (first.read(data)?, count.read(data)?);
            Some(Sectors { first, end: first.checked_add(count)? }).filter(|sectors| sectors.count() > 0)
        };
        match self {
            Reader::Block { kind, device, sector, count } => {
                Some(kind(device.read(data)? as u32, sectors(sector, count)?))
            }
            Reader::Remap { device, sector, count, old_device, old_sector } => Some(What::Remapped {
                from: (old_device.read(data)? as u32, old_sector.read(data)?),
                to: (device.read(data)? as u32, sectors(sector, count)?),
            }),
            Reader::Command { kind, set, queue: [first, second], number } => {
                let number = number.read(data)?;
                let queue =
                    (first.read(data)? as Device & 0xff) << 16 | (second.read(data)? as Device & 0xffff);
                Some(kind(set | queue, Sectors { first: number, end: number + 1 }))
            }
            Reader::RingMade { ring } => Some(What::RingMade { ring: ring.read(data)? }),
            Reader::Ring { kind, ring, unit } => Some(kind(ring.read(data)?, unit.read(data)? as u32)),
        }
    }
}

/// Decodes the records of all tracepoints.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// By the number of the tracepoint, which each record begins with.
    readers: Vec<(u16, Place, Reader)>,
    /// Their names: `block/block_rq_issue`.
    names: Vec<&'static str>,
}

impl Decoder {
    /// Commands are decoded only if an engine passes them to devices itself.
    pub(crate) fn new(tracing: &Tracing, with_commands: bool) -> Decoder {
        let mut decoder = Decoder { readers: Vec::new(), names: Vec::new() };
        let is_wanted =
            |name: &str| with_commands || !(name.starts_with("nvme/") || name.starts_with("scsi/"));
        for (name, point) in tracing.points.iter().filter(|(name, _)| is_wanted(name)) {
            if let (Some(thread), Some(reader)) = (Place::of(point, "common_pid"), Reader::new(name, point)) {
                decoder.readers.push((point.id as u16, thread, reader));
                decoder.names.push(name);
            }
        }
        decoder
    }

    /// The tracepoints to record.
    pub(crate) fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// The event of a record.
    pub(crate) fn decode(&self, time: u64, data: &[u8]) -> Option<Event> {
        let id = u16::from_ne_bytes(data.get(..2)?.try_into().ok()?);
        let (_, thread, reader) = self.readers.iter().find(|(known, ..)| *known == id)?;
        Some(Event { time, thread: thread.read(data)? as i32, what: reader.read(data)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(id: u64, fields: &[(&str, usize, usize)]) -> Tracepoint {
        let field =
            |&(name, offset, size): &(&str, usize, usize)| Field { name: name.to_owned(), offset, size };
        Tracepoint { id, fields: fields.iter().map(field).collect() }
    }

    #[test]
    fn fields_are_read_where_the_kernel_says() {
        // In this made-up kernel the count comes first.
        let issue =
            point(300, &[("common_pid", 4, 4), ("nr_sector", 8, 4), ("dev", 12, 4), ("sector", 16, 8)]);
        let submit = point(7, &[("common_pid", 4, 4), ("ctx", 8, 8), ("user_data", 16, 8)]);
        let tracing = Tracing {
            points: vec![("block/block_rq_issue", issue), ("io_uring/io_uring_submit_req", submit)],
            ..Tracing::default()
        };
        let decoder = Decoder::new(&tracing, false);
        assert_eq!(decoder.names(), ["block/block_rq_issue", "io_uring/io_uring_submit_req"]);
        let mut data = vec![0; 24];
        data[..2].copy_from_slice(&300_u16.to_ne_bytes());
        data[4..8].copy_from_slice(&2_u32.to_ne_bytes());
        data[8..12].copy_from_slice(&16_u32.to_ne_bytes());
        data[12..16].copy_from_slice(&0x0080_0010_u32.to_ne_bytes());
        data[16..24].copy_from_slice(&4096_u64.to_ne_bytes());
        let what = What::Issued(0x0080_0010, Sectors { first: 4096, end: 4112 });
        assert_eq!(decoder.decode(5, &data), Some(Event { time: 5, thread: 2, what }));
        assert_eq!(decoder.decode(5, &data[..20]), None, "cut off");
        data[8..12].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(decoder.decode(5, &data), None, "a flush has no sectors");
        data[..2].copy_from_slice(&7_u16.to_ne_bytes());
        let Some(Event { what: What::Submitted { unit: 4096, .. }, .. }) = decoder.decode(5, &data) else {
            panic!("{:?}", decoder.decode(5, &data));
        };
        data[..2].copy_from_slice(&9_u16.to_ne_bytes());
        assert_eq!(decoder.decode(5, &data), None, "a tracepoint of others");
    }
}
