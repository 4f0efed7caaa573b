//! Settings of the machine that cost.

use crate::numbers::{bytes, count, latency};
use crate::{Finding, Kind, Subject};

/// The rate from which the scheduler bfq costs more than it gives: its documentation (Linux: Documentation/block/
/// bfq-iosched.rst) measured at most 400000 IOPS on a fast desktop processor, and 80000 on a small ARM.
const FAST_IOPS: f64 = 50_000.0;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let Some(disk) = &subject.disk else { return Vec::new() };
    let mut found = Vec::new();
    if let (Some(true), false, Some(p50)) = (disk.rotational, subject.rotates(), subject.random_read_ns()) {
        found.push(Finding {
            kind: Kind::Setting,
            words: format!(
                "The kernel takes {0} for a rotating disk, and it does not answer like one: file systems and \
                 schedulers spare it seeks that cost nothing. echo 0 > /sys/block/{0}/queue/rotational (as root) says so.",
                disk.name
            ),
            evidence: format!("queue/rotational is 1, and half of the random reads took at most {}", latency(p50)),
        });
    }
    let most = subject.cases.iter().map(|case| case.measured.figures.iops).fold(0.0, f64::max);
    if disk.scheduler.as_deref() == Some("bfq") && most >= FAST_IOPS {
        found.push(Finding {
            kind: Kind::Setting,
            words: format!(
                "The I/O scheduler bfq is for slow disks, and costs processor time for each I/O here. echo none > \
                 /sys/block/{}/queue/scheduler (as root) does without.",
                disk.name
            ),
            evidence: format!("queue/scheduler is bfq, and there were up to {} IOPS", count(most)),
        });
    }
    if let (Some(start), Some(block)) = (disk.partition_start, disk.physical_block)
        && block > 0
        && start % block != 0
    {
        found.push(Finding {
            kind: Kind::Misaligned,
            words: "The partition is misaligned: blocks of the file system straddle two blocks of the device, which then \
                    reads and writes both. A partition that begins at a multiple of 1 MiB is aligned."
                .to_owned(),
            evidence: format!(
                "it begins at byte {start}, which is no multiple of the {} that {} writes at once",
                bytes(block as f64),
                disk.name
            ),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{case, flash};
    use crate::{Disk, Role};

    fn with(change: impl FnOnce(&mut Disk), iops: f64, p50_us: f64) -> Vec<Finding> {
        let mut subject = flash(vec![case("randread", Role::RandomRead, iops, 4096.0, p50_us)]);
        change(subject.disk.as_mut().unwrap());
        findings(&subject)
    }

    #[test]
    fn flash_that_is_taken_for_a_disk() {
        let rotating = |disk: &mut Disk| disk.rotational = Some(true);
        assert!(with(rotating, 1000.0, 950.0)[0].words.contains("/sys/block/sda/queue/rotational"));
        assert_eq!(with(rotating, 100.0, 6000.0), [], "a disk is one");
        assert_eq!(with(|_| {}, 1000.0, 90.0), []);
    }

    #[test]
    fn a_scheduler_for_slow_disks() {
        let bfq = |disk: &mut Disk| disk.scheduler = Some("bfq".into());
        assert_eq!(with(bfq, 49_000.0, 90.0), []);
        assert!(with(bfq, 51_000.0, 90.0)[0].evidence.contains("51k IOPS"));
    }

    #[test]
    fn partitions_begin_at_blocks() {
        let at = |start| with(move |disk: &mut Disk| disk.partition_start = Some(start), 1000.0, 90.0);
        assert_eq!(at(1 << 20), []);
        assert!(at(63 * 512)[0].evidence.contains("byte 32256, which is no multiple of the 4 KiB"));
    }
}
