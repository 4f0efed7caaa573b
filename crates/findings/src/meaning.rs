//! What the figures mean if nothing is suspicious, in a sentence each.

use crate::numbers::{bandwidth, count, latency, percent};
use crate::{Case, Role, Subject};
use iolite_sweep::saturation;

/// Sentences about the figures: where more depth stops helping, and what durability costs.
pub fn meaning(subject: &Subject) -> Vec<String> {
    [bandwidths(subject), knee(subject), durable(subject)].into_iter().flatten().collect()
}

fn bandwidths(subject: &Subject) -> Option<String> {
    let of = |role| subject.of(role).find_map(|case| case.measured.main().map(|flow| flow.bandwidth));
    match (of(Role::Read), of(Role::Write)) {
        (Some(read), Some(write)) => {
            Some(format!("Sequential reads get {}, and writes {}.", bandwidth(read), bandwidth(write)))
        }
        (Some(read), None) => Some(format!("Sequential reads get {}.", bandwidth(read))),
        _ => None,
    }
}

fn knee(subject: &Subject) -> Option<String> {
    let curve = subject.curve();
    let points: Vec<(f64, &iolite_sweep::Figures)> =
        curve.iter().map(|case| (f64::from(case.depth), &case.measured.figures)).collect();
    let (first, last) = (curve.first()?, curve.last()?);
    let iops = |case: &Case| count(case.measured.figures.iops);
    let waits = |case: &Case| latency(case.measured.figures.latency_ns.unwrap_or(0.0));
    match saturation(&points).knee {
        Ok(knee) if !knee.is_last => {
            let at = curve.get(knee.point)?;
            let gain = last.measured.figures.iops / at.measured.figures.iops - 1.0;
            Some(format!(
                "Random reads: {} IOPS one at a time, {} at depth {}. Beyond that, waiting grows faster than IOPS: depth {} \
                 brings {} more and takes {} each instead of {}.",
                iops(first),
                iops(at),
                at.depth,
                last.depth,
                percent(100.0 * gain.max(0.0)),
                waits(last),
                waits(at)
            ))
        }
        Ok(_) => Some(format!(
            "Random reads grow with the depth up to the last one tried: {} IOPS at depth {}, {} at {}; there may be more \
             beyond.",
            iops(first),
            first.depth,
            iops(last),
            last.depth
        )),
        Err(_) if curve.len() > 1 => {
            let best = curve
                .iter()
                .max_by(|one, other| one.measured.figures.iops.total_cmp(&other.measured.figures.iops))?;
            Some(format!(
                "Random reads: {} IOPS one at a time, {} at most, at depth {}. The curve follows no law, so no knee is named.",
                iops(first),
                iops(best),
                best.depth
            ))
        }
        Err(_) => None,
    }
}

fn durable(subject: &Subject) -> Option<String> {
    if subject.memory.is_some() {
        return None;
    }
    let mut durable: Vec<&Case> = subject.of(Role::Durable).collect();
    durable.sort_by_key(|case| case.workers);
    let one = durable.first()?;
    let (_, took) = one.measured.sync?;
    let each = |case: &Case| case.measured.figures.iops;
    let more = durable.last().filter(|last| last.workers > one.workers).map_or_else(String::new, |last| {
        format!("; {} writers get {} per second together", last.workers, count(each(last)))
    });
    Some(format!(
        "To make a write durable (fdatasync) takes {} in the median: {} per second for one writer{more}.",
        latency(took.p50),
        count(each(one))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Percentiles;
    use crate::made_up::{case, curve, flash};

    #[test]
    fn the_knee_in_words() {
        let words = meaning(&flash(curve(16.0, 100.0)));
        assert_eq!(
            words,
            [
                "Random reads: 10k IOPS one at a time, 82.6k at depth 16. Beyond that, waiting grows faster than IOPS: depth 64 \
              brings 57% more and takes 494 µs each instead of 194 µs."
            ]
        );
        assert!(meaning(&flash(curve(1e9, 100.0)))[0].contains("there may be more beyond"));
        assert_eq!(meaning(&flash(Vec::new())), [""; 0]);
    }

    #[test]
    fn the_price_of_a_commit() {
        let of = |name: &str, workers, iops| {
            let mut durable = case(name, Role::Durable, iops, 4096.0, 9.0);
            durable.workers = workers;
            durable.measured.sync = Some((iops, Percentiles { p50: 480_000.0, ..Percentiles::default() }));
            durable
        };
        let words = meaning(&flash(vec![of("durable-1", 1, 2000.0), of("durable-8", 8, 9000.0)]));
        assert_eq!(
            words,
            [
                "To make a write durable (fdatasync) takes 480 µs in the median: 2k per second for one writer; 8 writers get 9k per second together."
            ]
        );
    }
}
