//! A device that takes only so many requests at a time.

use crate::numbers::count;
use crate::{Case, Finding, Kind, Subject};

/// By how much IOPS grow up to the depth of the queue at least, and beyond it at most: runs differ by some percent.
const GROWS: f64 = 1.2;
const STAYS: f64 = 1.05;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let Some((disk, queue)) = subject.disk.as_ref().and_then(|disk| Some((disk, disk.queue?))) else {
        return Vec::new();
    };
    let curve = subject.curve();
    let rate = |case: &Case| case.measured.figures.iops;
    // (SATA disks often take 31, which is as good as 32.)
    let within: Vec<&&Case> = curve.iter().filter(|case| case.depth <= queue.saturating_add(1)).collect();
    let beyond: Vec<&&Case> = curve.iter().filter(|case| case.depth >= queue.saturating_mul(2)).collect();
    let ([.., before, at], [_, ..]) = (&within[..], &beyond[..]) else { return Vec::new() };
    let most = beyond.iter().map(|case| rate(case)).fold(0.0, f64::max);
    // The last depth within the queue is near its end, and the depth before is half of that.
    if at.depth.saturating_mul(2) <= queue || rate(at) < GROWS * rate(before) || most > STAYS * rate(at) {
        return Vec::new();
    }
    vec![Finding {
        kind: Kind::Queue,
        words: format!(
            "{} takes {queue} requests at a time: more depth only waits in this machine, and adds latency.",
            disk.name
        ),
        evidence: format!(
            "queue_depth is {queue}; random reads reach {} IOPS at depth {}, and at most {} beyond",
            count(rate(at)),
            at.depth,
            count(most)
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use crate::made_up::{case, flash};

    /// A device with this many places, whose queue is said to have this depth.
    fn of(places: u32, queue: u32) -> Vec<Finding> {
        let step = |depth: u32| Case {
            depth,
            ..case(
                &format!("randread-{depth}"),
                Role::Step,
                f64::from(depth.min(places)) * 10_000.0,
                4096.0,
                100.0,
            )
        };
        let mut subject = flash([1, 2, 4, 8, 16, 32, 64, 128].map(step).into());
        subject.disk.as_mut().unwrap().queue = Some(queue);
        findings(&subject)
    }

    #[test]
    fn the_queue_is_full() {
        let found = of(32, 32);
        assert_eq!(
            found[0].words,
            "sda takes 32 requests at a time: more depth only waits in this machine, and adds latency."
        );
        assert!(found[0].evidence.contains("320k IOPS at depth 32, and at most 320k beyond"), "{found:?}");
        assert!(of(31, 31)[0].evidence.contains("310k IOPS at depth 32"));
        assert_eq!(of(100, 100), [], "no depth is near its end");
        assert_eq!(of(8, 32), [], "it was full before");
        assert_eq!(of(128, 32), [], "IOPS still grow");
    }
}
