//! Durable writes that cost less than they can.

use crate::numbers::{count, latency};
use crate::{Case, Finding, Kind, Subject};

/// Half a turn of the fastest disks, which have 15000 per minute: what a rotating disk needs on average until the place
/// passes its head. A median below it means that no platter was waited for.
const HALF_A_TURN_NS: f64 = 2e6;
/// A command that does nothing takes longer on any device: 4 µs are the fastest answer of an NVMe drive (Optane P5800X,
/// 5 µs).
const FASTEST_COMMAND_NS: f64 = 4000.0;
/// A writer that waits for each sync causes one flush each; half leaves room for those that file systems combine.
const FLUSHES_PER_SYNC: f64 = 0.5;
/// The fewest syncs for statements.
const ENOUGH_SYNCS: f64 = 20.0;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let one = subject.cases.iter().find(|case| case.is_durable() && case.workers == 1);
    let (Some(case), None) = (one, &subject.memory) else { return Vec::new() };
    let Some((syncs, took)) = case.measured.sync.filter(|(syncs, _)| *syncs >= ENOUGH_SYNCS) else {
        return Vec::new();
    };
    evidence(subject, case, syncs, took.p50)
        .map(|evidence| Finding {
            kind: Kind::NotDurable,
            words: "Writes are reported as durable before a medium can have them: a loss of power may lose data that \
                    was acknowledged, unless the cache that took them is protected (by a battery, or capacitors)."
                .to_owned(),
            evidence,
        })
        .into_iter()
        .collect()
}

fn evidence(subject: &Subject, case: &Case, syncs: f64, p50: f64) -> Option<String> {
    let disk = subject.disk.as_ref()?;
    if let (Some(true), Some(flushes)) = (disk.is_flushed, case.flushes)
        && (flushes as f64) < FLUSHES_PER_SYNC * syncs
    {
        return Some(format!(
            "{} called fdatasync {} times, and {} got {} flushes although it has a volatile cache (write back)",
            case.name,
            count(syncs),
            disk.name,
            count(flushes as f64)
        ));
    }
    if subject.rotates() && p50 < HALF_A_TURN_NS {
        return Some(format!(
            "half of the calls of fdatasync took at most {}; a rotating disk needs {} for half a turn",
            latency(p50),
            latency(HALF_A_TURN_NS)
        ));
    }
    (p50 < FASTEST_COMMAND_NS).then(|| {
        format!(
            "half of the calls of fdatasync took at most {}; a command to any device takes longer",
            latency(p50)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{case, flash};
    use crate::{Percentiles, Role};

    fn durable(p50_us: f64, flushes: u64) -> Subject {
        let mut one = case("durable-1", Role::Durable, 100.0, 4096.0, 5.0);
        let took = Percentiles { p50: p50_us * 1000.0, ..Percentiles::default() };
        one.measured.sync = Some((1000.0, took));
        one.flushes = Some(flushes);
        flash(vec![one])
    }

    #[test]
    fn syncs_without_flushes() {
        assert_eq!(findings(&durable(400.0, 500)), []);
        let found = findings(&durable(400.0, 499));
        assert!(
            found[0].evidence.starts_with("durable-1 called fdatasync 1k times, and sda got 499 flushes")
        );
        let mut through = durable(400.0, 0);
        through.disk.as_mut().unwrap().is_flushed = Some(false);
        assert_eq!(findings(&through), [], "a cache that is written through needs no flushes");
    }

    #[test]
    fn faster_than_a_platter_turns() {
        let rotating = |p50_us| {
            let mut subject = durable(p50_us, 1000);
            subject.disk.as_mut().unwrap().rotational = Some(true);
            findings(&subject)
        };
        assert_eq!(rotating(2100.0), []);
        assert!(rotating(1900.0)[0].evidence.contains("1.9 ms; a rotating disk needs 2 ms"));
        let mut flash = durable(1900.0, 1000);
        flash.disk.as_mut().unwrap().rotational = Some(true);
        flash.cases.push(case("randread", Role::RandomRead, 1000.0, 4096.0, 90.0));
        assert_eq!(findings(&flash), [], "the kernel takes it for a disk, and it is none");
    }

    #[test]
    fn faster_than_a_command() {
        assert_eq!(findings(&durable(4.1, 1000)), []);
        assert_eq!(findings(&durable(3.9, 1000)).len(), 1);
        let in_memory = Subject { memory: Some("tmpfs".into()), ..durable(1.0, 0) };
        assert_eq!(findings(&in_memory), [], "that is said elsewhere");
    }
}
