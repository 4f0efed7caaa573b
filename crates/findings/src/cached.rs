//! Reads that a cache, or memory, has answered.

use crate::numbers::{bytes, latency};
use crate::{Case, Finding, Kind, Role, Subject};

/// The share of the bytes asked for that a disk must have counted. Without a cache each byte read is counted once (Linux:
/// Documentation/admin-guide/iostats.rst); half leaves room for blocks that happened to be cached.
const COUNTED: f64 = 0.5;

/// No medium answers a read sooner: the fastest one sold (Intel's Optane P5800X) takes 5 µs for 4 KiB in its data sheet.
const FASTEST_MEDIUM_NS: f64 = 4000.0;

/// The least that was asked for: below, the blocks of the file system count as much.
const ENOUGH_BYTES: f64 = (1 << 20) as f64;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    if let Some(file_system) = &subject.memory {
        return vec![Finding {
            kind: Kind::Cached,
            words: "These are figures of this machine's memory, not of storage.".to_owned(),
            evidence: format!("the files are on {file_system}, which keeps them in memory"),
        }];
    }
    let reads = || subject.cases.iter().filter_map(|case| Some((case, case.only_reads()?)));
    let uncounted = reads().filter_map(|(case, flow)| {
        let counted = case.measured.counted.as_ref()?;
        (flow.bytes >= ENOUGH_BYTES && counted.read.0 < COUNTED * flow.bytes).then_some((
            case,
            flow.bytes,
            counted.read.0,
        ))
    });
    let uncounted: Vec<(&Case, f64, f64)> = uncounted.collect();
    if let Some((first, asked, counted)) = uncounted.first() {
        let others = match uncounted.len() - 1 {
            0 => String::new(),
            1 => ", and so did another case".to_owned(),
            more => format!(", and so did {more} other cases"),
        };
        return vec![Finding {
            kind: Kind::Cached,
            words: "Reads were answered by a cache above the device: their figures are those of memory. A file several \
                    times as large as memory, or direct I/O, shows the device."
                .to_owned(),
            evidence: format!(
                "{} read {}, of which {} counted {}{others}",
                first.name,
                bytes(*asked),
                subject.device(),
                bytes(*counted)
            ),
        }];
    }
    if let Some(backing) = subject.disk.as_ref().and_then(|disk| disk.backing.as_ref())
        && !backing.is_direct
        && reads().next().is_some()
    {
        return vec![Finding {
            kind: Kind::Cached,
            words: "Below this loop device is the page cache of the machine, which may have answered reads and taken \
                    writes; losetup --direct-io=on goes around it."
                .to_owned(),
            evidence: format!(
                "{} is the file {}, opened without direct I/O (loop/dio is 0)",
                subject.device(),
                backing.file
            ),
        }];
    }
    let fast = subject.of(Role::RandomRead).find_map(|case| {
        let p50 = case.only_reads()?.latency.p50;
        (p50 > 0.0 && p50 < FASTEST_MEDIUM_NS).then_some((case, p50))
    });
    fast.map(|(case, p50)| Finding {
        kind: Kind::Cached,
        words: "Memory has answered, on this machine or in the device: no storage medium is that fast."
            .to_owned(),
        evidence: format!(
            "half of the random reads of {} took at most {}; the fastest media take {}",
            case.name,
            latency(p50),
            latency(FASTEST_MEDIUM_NS)
        ),
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backing;
    use crate::made_up::{case, flash};

    fn random_reads(p50_us: f64, counted: f64) -> Subject {
        let mut read = case("randread", Role::RandomRead, 10_000.0, 4096.0, p50_us);
        let flow = read.measured.flows[0].bytes;
        read.measured.counted.as_mut().unwrap().read.0 = counted * flow;
        flash(vec![read])
    }

    #[test]
    fn a_device_that_read_too_little() {
        let found = findings(&random_reads(90.0, 0.4));
        assert_eq!(found[0].evidence, "randread read 391 MiB, of which sda counted 156 MiB");
        assert_eq!(findings(&random_reads(90.0, 0.6)), []);
    }

    #[test]
    fn memory_is_not_storage() {
        let subject = Subject { memory: Some("tmpfs".into()), ..random_reads(1.0, 0.0) };
        let found = findings(&subject);
        assert!(found.len() == 1 && found[0].evidence.contains("tmpfs"), "{found:?}");
    }

    #[test]
    fn faster_than_any_medium() {
        assert!(findings(&random_reads(3.9, 1.0))[0].evidence.contains("3.9 µs"));
        assert_eq!(findings(&random_reads(5.0, 1.0)), []);
    }

    #[test]
    fn loop_devices_have_the_page_cache_below() {
        let mut subject = random_reads(90.0, 1.0);
        let backing = Backing { file: "/f.img".into(), is_direct: false };
        subject.disk.as_mut().unwrap().backing = Some(backing.clone());
        assert!(findings(&subject)[0].evidence.contains("/f.img"));
        subject.disk.as_mut().unwrap().backing = Some(Backing { is_direct: true, ..backing });
        assert_eq!(findings(&subject), []);
    }
}
