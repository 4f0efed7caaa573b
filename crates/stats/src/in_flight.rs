//! I/Os in flight: what a run waits for.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An I/O older than this is worth telling without being asked.
pub const STUCK_AFTER: Duration = Duration::from_secs(5);

/// An I/O in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The name of its job.
    pub job: String,
    /// The number of its worker in the run, from 0.
    pub worker: u32,
    /// What it does: `read`, `write`, `trim`, `sync`, …
    pub operation: String,
    /// Its file.
    pub file: String,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// How long ago it was issued, in nanoseconds; `None` = not known (it is new, or the job takes no time stamps).
    pub age_ns: Option<u64>,
}

/// The I/Os that have been in flight for longer than [`STUCK_AFTER`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// How many there are.
    pub ios: u64,
    /// The age of the oldest one, in nanoseconds.
    pub age_ns: u64,
    /// Its file.
    pub file: String,
    /// Its offset, in bytes.
    pub offset: u64,
    /// Where the kernel has it, if that is known (`stages`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<StuckAt>,
}

/// Where the kernel has an I/O that has been in flight for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StuckAt {
    /// In a queue of the kernel: the driver has not got all of it.
    Queue,
    /// In the device.
    Device,
}

impl Stuck {
    /// Those of two runs together.
    pub fn and(self, other: Stuck) -> Stuck {
        let ios = self.ios.saturating_add(other.ios);
        let oldest = if other.age_ns > self.age_ns { other } else { self };
        Stuck { ios, ..oldest }
    }

    /// `1 I/O in flight for 34 s: /dev/vdb offset 81920`.
    pub fn in_words(&self) -> String {
        let Stuck { ios, age_ns, file, offset, at } = self;
        let seconds = age_ns / 1_000_000_000;
        let limit = STUCK_AFTER.as_secs();
        let at = match at {
            None => "",
            Some(StuckAt::Queue) => ", in the queue",
            Some(StuckAt::Device) => ", in the device",
        };
        match ios {
            0 | 1 => format!("1 I/O in flight for {seconds} s: {file} offset {offset}{at}"),
            _ => format!(
                "{ios} I/Os in flight for more than {limit} s, the oldest for {seconds} s: {file} offset {offset}{at}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_all_is_named() {
        let stuck = |ios, seconds: u64, offset| Stuck {
            ios,
            age_ns: seconds * 1_000_000_000 + 999_999_999,
            file: "/dev/vdb".into(),
            offset,
            at: None,
        };
        assert_eq!(stuck(1, 34, 81920).in_words(), "1 I/O in flight for 34 s: /dev/vdb offset 81920");
        let in_device = Stuck { at: Some(StuckAt::Device), ..stuck(1, 34, 8) };
        assert_eq!(in_device.in_words(), "1 I/O in flight for 34 s: /dev/vdb offset 8, in the device");
        let words = "4 I/Os in flight for more than 5 s, the oldest for 34 s: /dev/vdb offset 81920";
        for whole in [stuck(1, 34, 81920).and(stuck(3, 7, 0)), stuck(3, 7, 0).and(stuck(1, 34, 81920))] {
            assert_eq!(whole.in_words(), words);
        }
    }
}
