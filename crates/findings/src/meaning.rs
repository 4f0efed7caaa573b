//! What the figures mean if nothing is suspicious, in a sentence each.

use crate::numbers::{bandwidth, count, latency};
use crate::{Case, Role, Subject};
use iolite_sweep::saturation;

/// Sentences about the figures: where more depth stops helping, and what durability costs.
pub fn meaning(subject: &Subject) -> Vec<String> {
    [bandwidths(subject), knee(subject), durable(subject), objects(subject)].into_iter().flatten().collect()
}

/// Objects of a store: what one takes, and what many at a time bring.
fn objects(subject: &Subject) -> Option<String> {
    let find = |verb: &str, size: &str, is_deep: bool| {
        let begin = format!("{verb}-{size}");
        let mut cases = subject.of(Role::Objects).filter(move |case| case.name.starts_with(&begin));
        cases.find(|case| (case.depth > 1) == is_deep)?.measured.main()
    };
    let (put, get) = (find("put", "4k", false)?, find("get", "4k", false)?);
    let mut words = format!(
        "One object of 4 KiB at a time: to PUT it takes {}, to GET it {} in the median.",
        latency(put.latency.p50),
        latency(get.latency.p50)
    );
    if let (Some(puts), Some(gets)) = (find("put", "4k", true), find("get", "4k", true)) {
        words += &format!(
            " 16 at a time make {} PUTs and {} GETs per second.",
            count(puts.iops),
            count(gets.iops)
        );
    }
    if let (Some(puts), Some(gets)) = (find("put", "1m", true), find("get", "1m", true)) {
        words += &format!(
            " Objects of 1 MiB move {} in and {} out",
            bandwidth(puts.bandwidth),
            bandwidth(gets.bandwidth)
        );
        if let Some(first) = gets.first_byte {
            words += &format!("; the first byte of one comes after {} in the median", latency(first));
        }
        words.push('.');
    }
    Some(words)
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

/// The share of the highest IOPS from which more is within what runs differ.
const ENOUGH: f64 = 0.9;

fn knee(subject: &Subject) -> Option<String> {
    let curve = subject.curve();
    let points: Vec<(f64, &iolite_sweep::Figures)> =
        curve.iter().map(|case| (f64::from(case.depth), &case.measured.figures)).collect();
    let (first, last) = (curve.first()?, curve.last()?);
    let rate = |case: &Case| case.measured.figures.iops;
    let waits = |case: &Case| latency(case.measured.figures.latency_ns.unwrap_or(0.0));
    let best = curve.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    let mut words = format!(
        "Random reads: {} IOPS one at a time, {} each; at most {} at depth {}, {} each.",
        count(rate(first)),
        waits(first),
        count(rate(best)),
        best.depth,
        waits(best)
    );
    match saturation(&points).knee {
        Ok(knee) if knee.is_last => words += " IOPS still grow at the last depth tried.",
        Ok(knee) if knee.point == 0 => words += " More depth costs more in waiting than it brings in IOPS.",
        Ok(knee) => {
            let at = curve.get(knee.point)?;
            words += &format!(
                " The knee is at depth {} ({} IOPS, {} each): beyond it, waiting grows faster than IOPS.",
                at.depth,
                count(rate(at)),
                waits(at)
            );
        }
        // Without a law, a knee may be due to chance.
        Err(_) => {}
    }
    let enough = curve.iter().find(|case| rate(case) >= ENOUGH * rate(best))?;
    if enough.depth < last.depth {
        words += &format!(" Beyond depth {}, latency grows and IOPS hardly do.", enough.depth);
    }
    Some(words)
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
    fn objects_in_words() {
        let deep = |case: Case| Case { depth: 16, ..case };
        let mut large = deep(case("get-1m", Role::Objects, 500.0, 1_048_576.0, 9000.0));
        large.measured.flows[0].first_byte = Some(2e6);
        let cases = vec![
            case("put-4k", Role::Objects, 100.0, 4096.0, 900.0),
            case("get-4k", Role::Objects, 200.0, 4096.0, 400.0),
            deep(case("put-4k-16", Role::Objects, 1000.0, 4096.0, 900.0)),
            deep(case("get-4k-16", Role::Objects, 2000.0, 4096.0, 400.0)),
            deep(case("put-1m", Role::Objects, 100.0, 1_048_576.0, 9000.0)),
            large,
        ];
        assert_eq!(
            meaning(&flash(cases)),
            [
                "One object of 4 KiB at a time: to PUT it takes 900 µs, to GET it 400 µs in the median. 16 at a time make 1k PUTs and 2k \
              GETs per second. Objects of 1 MiB move 100 MiB/s in and 500 MiB/s out; the first byte of one comes after 2 ms in \
              the median."
            ]
        );
    }

    #[test]
    fn the_knee_in_words() {
        let of = |places| meaning(&flash(curve(places, 100.0))).remove(0);
        assert_eq!(
            of(16.0),
            "Random reads: 10k IOPS one at a time, 100 µs each; at most 130k at depth 64, 494 µs each. The knee is at depth 16 \
             (82.6k IOPS, 194 µs each): beyond it, waiting grows faster than IOPS."
        );
        assert!(of(2.0).ends_with("Beyond depth 8, latency grows and IOPS hardly do."), "{}", of(2.0));
        assert!(of(1e9).ends_with("IOPS still grow at the last depth tried."));
        assert!(of(1.0).contains("More depth costs more in waiting"), "{}", of(1.0));
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
