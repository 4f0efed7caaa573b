//! The time between the steps of I/Os in the block layer, as btt measures it.
//!
//! blktrace records what happens to an I/O: it is queued (Q), gets a request (G) or is merged into one (M, F), the request is
//! inserted into a scheduler (I), issued to the driver (D) and completed (C). A record names device, sector and length, but
//! not the I/O that it belongs to. So as in btt, a step belongs to the I/O that was queued for its sector; requests are issued
//! and completed with all I/Os that lie within them. A split I/O is never within a request, so its completion is unknown. What
//! was queued for the sector of another I/O takes its place; of others that overlap, the first one is meant (with three, btt may
//! mean another one: whichever its tree has further up). I/Os without data, and commands that are no I/Os (passthrough),
//! are left out. That is what btt was seen to do with recordings and with random records.

use crate::blk::{BlkRecord, SECTOR, action, category};
use iolite_stats::{Histogram, Moments};
use std::collections::{BTreeMap, HashMap};

/// The most I/Os that are followed at a time. (Those whose completion is missing stay until the end.)
const MOST: usize = 1 << 20;

/// From one step of an I/O to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Queued until it has a request.
    Q2G,
    /// From then until the request is inserted into a scheduler.
    G2I,
    /// Queued until it is merged into a request.
    Q2M,
    /// Inserted until issued.
    I2D,
    /// Merged until issued.
    M2D,
    /// Issued until completed: the device's time, that of the interrupt included.
    D2C,
    /// Queued until completed.
    Q2C,
    /// Queued until issued for the last time, of I/Os that completed: the time in queues. With [`Step::D2C`] of the same
    /// I/O, it is [`Step::Q2C`]. (btt has no line for it.)
    Q2D,
}

impl Step {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Step; 8] =
        [Step::Q2G, Step::G2I, Step::Q2M, Step::I2D, Step::M2D, Step::Q2D, Step::D2C, Step::Q2C];

    /// The name that btt has for it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Q2G => "Q2G",
            Step::G2I => "G2I",
            Step::Q2M => "Q2M",
            Step::I2D => "I2D",
            Step::M2D => "M2D",
            Step::D2C => "D2C",
            Step::Q2C => "Q2C",
            Step::Q2D => "Q2D",
        }
    }
}

/// The times of all steps.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    times: [Times; Step::ALL.len()],
    devices: HashMap<u32, Device>,
    followed: usize,
    /// The number of I/Os that were not followed because there were too many.
    pub left_out: u64,
}

/// The times of a step, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Their number, extremes and sum.
    pub moments: Moments,
    /// Their distribution.
    pub histogram: Histogram,
}

/// The I/Os of a device that are not complete, by their first sector.
#[derive(Clone, Debug, Default)]
struct Device {
    ios: BTreeMap<u64, Io>,
    /// The longest one so far, in sectors.
    longest: u64,
    /// How many there were.
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Io {
    /// The sector behind it.
    end: u64,
    /// Its place in the order of queueing.
    number: u64,
    queued: u64,
    request: Option<u64>,
    merged: Option<u64>,
    inserted: Option<u64>,
    issued: Option<u64>,
}

impl Device {
    /// The start of the I/O at this sector. If there are several, it is the first that was queued.
    fn at(&self, sector: u64) -> Option<u64> {
        let from = sector.saturating_sub(self.longest.saturating_sub(1));
        let there = self.ios.range(from..=sector).filter(|(_, io)| io.end > sector);
        there.min_by_key(|(_, io)| io.number).map(|(&start, _)| start)
    }

    fn io_at(&mut self, sector: u64) -> Option<&mut Io> {
        let start = self.at(sector)?;
        self.ios.get_mut(&start)
    }

    /// The starts of all I/Os within these sectors.
    fn within(&self, from: u64, to: u64) -> Vec<u64> {
        let within =
            self.ios.range(from..to).filter(|(start, io)| io.end <= to && self.at(**start) == Some(**start));
        within.map(|(&start, _)| start).collect()
    }
}

impl Steps {
    /// The times of a step.
    pub fn of(&self, step: Step) -> &Times {
        &self.times[step as usize]
    }

    fn add(times: &mut [Times], step: Step, from: u64, to: u64) {
        let time = to.saturating_sub(from);
        times[step as usize].moments.record(time);
        times[step as usize].histogram.record(time);
    }

    /// Takes the next record.
    pub(crate) fn take(&mut self, record: &BlkRecord) {
        let (now, from, sectors) = (record.time, record.sector, u64::from(record.bytes) / SECTOR);
        if sectors == 0 || record.is(category::NOTIFY | category::PASSTHROUGH) {
            return;
        }
        let Some(to) = from.checked_add(sectors) else { return };
        let device = self.devices.entry(record.device).or_default();
        let times = &mut self.times;
        match record.what() {
            action::QUEUE => {
                let number = device.ios.get(&from).map(|io| io.number);
                if number.is_none() && self.followed == MOST {
                    self.left_out += 1;
                    return;
                }
                device.count += 1;
                self.followed += usize::from(number.is_none());
                let io = Io {
                    end: to,
                    number: number.unwrap_or(device.count),
                    queued: now,
                    request: None,
                    merged: None,
                    inserted: None,
                    issued: None,
                };
                device.ios.insert(from, io);
                device.longest = device.longest.max(sectors);
            }
            action::GET_REQUEST => {
                if let Some(io) = device.io_at(from) {
                    Steps::add(times, Step::Q2G, io.queued, now);
                    io.request = Some(now);
                }
            }
            action::INSERT => {
                if let Some(io) = device.io_at(from) {
                    if let Some(request) = io.request {
                        Steps::add(times, Step::G2I, request, now);
                    }
                    io.inserted = Some(now);
                }
            }
            action::BACK_MERGE | action::FRONT_MERGE => {
                if let Some(io) = device.io_at(from) {
                    Steps::add(times, Step::Q2M, io.queued, now);
                    io.merged = Some(now);
                }
            }
            action::ISSUE => {
                for start in device.within(from, to) {
                    let Some(io) = device.ios.get_mut(&start) else { continue };
                    match (io.inserted, io.merged) {
                        (Some(inserted), _) => Steps::add(times, Step::I2D, inserted, now),
                        (None, Some(merged)) => Steps::add(times, Step::M2D, merged, now),
                        (None, None) => {}
                    }
                    io.issued = Some(now);
                }
            }
            action::COMPLETE => {
                for start in device.within(from, to) {
                    let Some(io) = device.ios.remove(&start) else { continue };
                    self.followed -= 1;
                    if let Some(issued) = io.issued {
                        Steps::add(times, Step::Q2D, io.queued, issued);
                        Steps::add(times, Step::D2C, issued, now);
                    }
                    Steps::add(times, Step::Q2C, io.queued, now);
                }
            }
            _ => {}
        }
    }

    /// Whether anything was measured.
    pub(crate) fn is_known(&self) -> bool {
        self.times.iter().any(|times| times.moments.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word is a step with its sector and length (`0+8` if it has none); ten nanoseconds pass with each.
    fn steps(words: &str) -> Steps {
        let mut steps = Steps::default();
        for (number, word) in words.split(' ').enumerate() {
            let what = match &word[..1] {
                "Q" => action::QUEUE,
                "G" => action::GET_REQUEST,
                "M" => action::BACK_MERGE,
                "F" => action::FRONT_MERGE,
                "I" => action::INSERT,
                "D" => action::ISSUE,
                "R" => action::REQUEUE,
                "C" => action::COMPLETE,
                other => panic!("{other}"),
            };
            let place = word[1..].split_once('+').unwrap_or(("0", "8"));
            let [sector, sectors] = [place.0, place.1].map(|number| number.parse::<u64>().unwrap());
            steps.take(&BlkRecord {
                time: 10 * number as u64,
                sector,
                bytes: (sectors * SECTOR) as u32,
                action: what | category::READ,
                ..BlkRecord::default()
            });
        }
        steps
    }

    /// Smallest, sum, largest and number of each step that occurs.
    fn found(words: &str) -> Vec<(&'static str, [u64; 4])> {
        let steps = steps(words);
        let all = Step::ALL.into_iter().map(|step| (step.name(), &steps.of(step).moments));
        let found = all.filter(|(_, of)| of.count > 0);
        found.map(|(name, of)| (name, [of.min, of.sum as u64, of.max, of.count])).collect()
    }

    /// The expectations are what btt 2.09 prints for the same records. (It has no Q2D.)
    #[test]
    fn steps_are_matched_as_by_btt() {
        let one = |time| [time, time, time, 1];
        for (words, expected) in [
            (
                "Q G I D C",
                vec![
                    ("Q2G", one(10)),
                    ("G2I", one(10)),
                    ("I2D", one(10)),
                    ("D2C", one(10)),
                    ("Q2C", one(40)),
                ],
            ),
            // Two were merged into the request of the first.
            (
                "Q0+8 G0+8 Q8+8 M8+8 Q16+8 M16+8 D0+24 C0+24",
                vec![
                    ("Q2G", one(10)),
                    ("Q2M", [10, 20, 10, 2]),
                    ("M2D", [10, 40, 30, 2]),
                    ("D2C", [10, 30, 10, 3]),
                    ("Q2C", [30, 150, 70, 3]),
                ],
            ),
            // The device returned it.
            (
                "Q G I D R D C",
                vec![
                    ("Q2G", one(10)),
                    ("G2I", one(10)),
                    ("I2D", [10, 40, 30, 2]),
                    ("D2C", one(10)),
                    ("Q2C", one(60)),
                ],
            ),
            (
                "Q G I D I D C",
                vec![
                    ("Q2G", one(10)),
                    ("G2I", [10, 40, 30, 2]),
                    ("I2D", [10, 20, 10, 2]),
                    ("D2C", one(10)),
                    ("Q2C", one(60)),
                ],
            ),
            // A split one.
            (
                "Q0+16 G0+8 G8+8 I0+8 I8+8 D0+8 D8+8 C0+8 C8+8",
                vec![("Q2G", [10, 30, 20, 2]), ("G2I", [10, 30, 20, 2])],
            ),
            // Lost records.
            ("G I D C", vec![]),
            ("Q G I C", vec![("Q2G", one(10)), ("G2I", one(10)), ("Q2C", one(30))]),
            ("Q C C", vec![("Q2C", one(10))]),
            ("Q0+8 D0+4 C0+8", vec![("Q2C", one(20))]),
            // Several at one place.
            (
                "Q G Q G I I D C",
                vec![
                    ("Q2G", [10, 20, 10, 2]),
                    ("G2I", [10, 30, 20, 2]),
                    ("I2D", one(10)),
                    ("D2C", one(10)),
                    ("Q2C", one(50)),
                ],
            ),
            ("Q0+16 Q8+8 D0+16 C0+16", vec![("D2C", one(10)), ("Q2C", one(30))]),
            ("Q0+16 Q8+8 C0+16 C8+8", vec![("Q2C", [20, 40, 20, 2])]),
            ("Q8+8 Q0+16 G8+8 C8+8 C0+16", vec![("Q2G", one(20)), ("Q2C", [30, 60, 30, 2])]),
            // Without data.
            ("Q0+0 G0+0 D0+0 C0+0", vec![]),
        ] {
            let found = found(words);
            let of_btt: Vec<_> = found.iter().copied().filter(|(name, _)| *name != "Q2D").collect();
            assert_eq!(of_btt, expected, "{words}");
        }
    }

    #[test]
    fn queue_and_device_add_up() {
        let steps = steps("Q G I D R D C Q8+8 M8+8 D8+8 C8+8");
        let sum = |step| steps.of(step).moments.sum;
        assert_eq!(sum(Step::Q2D) + sum(Step::D2C), sum(Step::Q2C));
        assert_eq!(steps.of(Step::Q2D).moments.count, 2);
    }

    #[test]
    fn devices_and_commands_are_told_apart() {
        let mut steps = Steps::default();
        let queued =
            BlkRecord { bytes: 4096, action: action::QUEUE | category::READ, ..BlkRecord::default() };
        let done = BlkRecord { time: 5, action: action::COMPLETE | category::READ, ..queued.clone() };
        steps.take(&queued);
        steps.take(&BlkRecord { device: 1, ..done.clone() });
        steps.take(&BlkRecord { action: done.action | category::PASSTHROUGH, ..done.clone() });
        assert!(!steps.is_known());
        steps.take(&done);
        assert_eq!(steps.of(Step::Q2C).moments.count, 1);
    }
}
