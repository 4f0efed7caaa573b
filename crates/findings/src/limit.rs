//! Limits at round numbers: quotas of clouds, containers and hypervisors.

use crate::numbers::{count, signed};
use crate::{Case, Finding, Flow, Kind, Role, Subject};

/// How near to a round number: providers count in their own windows, and runs include their beginning.
const NEAR: f64 = 0.02;
/// The digits of limits that are sold: AWS (125, 250, 500, 1000 MB/s; 3000, 16000 IOPS), Azure (120, 240, 500, 1100, 2300,
/// 5000, 7500 IOPS; 25, 60, 100, 125, 150, 200, 250 MB/s), Google Cloud (15000, 25000, 100000 IOPS; 240, 400, 1200 MB/s).
const DIGITS: [f64; 16] = [1.0, 1.1, 1.2, 1.25, 1.5, 1.6, 2.0, 2.3, 2.4, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0];
/// A limiter is even: the coefficient of variation of the parts of a case up to which its rate may be one. Media vary by
/// more.
const EVEN: f64 = 0.02;
/// The parts of a case that are compared. (Limiters let bursts through that are shorter: Linux counts in slices of a tenth
/// of a second.)
const PARTS: usize = 5;
/// A depth that is at least this many times another one gives more, unless there is a limit.
const DEEPER: u32 = 2;
/// The least rate that anybody limits to: a disk's own 100 IOPS are a round number as well.
const LEAST_IOPS: f64 = 400.0;
const LEAST_BANDWIDTH: f64 = 10e6;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let mut found: Vec<Finding> = of_iops(subject).into_iter().collect();
    for case in subject.of(Role::Read).chain(subject.of(Role::Write)) {
        found.extend(of_bandwidth(case));
    }
    found
}

/// The round number that a rate is near to.
fn round(rate: f64) -> Option<f64> {
    if rate <= 0.0 {
        return None;
    }
    let power = 10_f64.powf(rate.log10().floor());
    let all = DIGITS.into_iter().chain([10.0]).map(|digits| digits * power);
    all.filter(|round| (rate / round - 1.0).abs() <= NEAR)
        .min_by(|one, other| (rate / one - 1.0).abs().total_cmp(&(rate / other - 1.0).abs()))
}

/// Whether a rate does not vary from part to part of the case.
fn is_even(flow: &Flow) -> bool {
    let [piece] = &flow.pieces[..] else { return false };
    // The case did not run in all of its first and last window.
    let Some(inner) = piece.get(1..piece.len().saturating_sub(1)).filter(|inner| inner.len() >= PARTS) else {
        return false;
    };
    let cut = |part: usize| part * inner.len() / PARTS;
    let rates = (0..PARTS).map(|part| {
        let part = &inner[cut(part)..cut(part + 1)];
        part.iter().map(|point| point.ios).sum::<f64>() / part.iter().map(|point| point.seconds).sum::<f64>()
    });
    let rates: Vec<f64> = rates.collect();
    let mean = rates.iter().sum::<f64>() / PARTS as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    mean > 0.0 && (squares / (PARTS - 1) as f64).sqrt() <= EVEN * mean
}

/// Random reads have the same, round rate at very different depths.
fn of_iops(subject: &Subject) -> Option<Finding> {
    let cases = [Role::RandomRead, Role::Step, Role::Mix].into_iter().flat_map(|role| subject.of(role));
    let mut at_limits: Vec<(&Case, &Flow, f64)> = cases
        .filter_map(|case| {
            let flow = case.measured.flow("read").filter(|flow| is_even(flow))?;
            let limit = round(flow.iops).filter(|limit| *limit >= LEAST_IOPS)?;
            Some((case, flow, limit))
        })
        .collect();
    at_limits.sort_by_key(|(case, ..)| case.depth);
    let (deep, high, limit) = *at_limits.last()?;
    let (shallow, low, _) =
        at_limits.iter().find(|(case, _, other)| *other == limit && case.depth * DEEPER <= deep.depth)?;
    Some(Finding {
        kind: Kind::Limit,
        words: format!(
            "Reads look limited to {} IOPS (a quota of a cloud, a container or a hypervisor): more depth only waits.",
            count(limit)
        ),
        evidence: format!(
            "random reads have {} IOPS at depth {} ({}) and {} at depth {} ({}), evenly; that is {} from the round number",
            count(low.iops),
            shallow.depth,
            shallow.name,
            count(high.iops),
            deep.depth,
            deep.name,
            signed(high.iops / limit - 1.0)
        ),
    })
}

fn of_bandwidth(case: &Case) -> Option<Finding> {
    let flow = case.measured.main()?;
    if flow.bandwidth < LEAST_BANDWIDTH || !is_even(flow) {
        return None;
    }
    let binary = 1_048_576.0;
    let (limit, unit, rate) = match (round(flow.bandwidth / 1e6), round(flow.bandwidth / binary)) {
        (Some(limit), _) => (limit, "MB/s", flow.bandwidth / 1e6),
        (None, Some(limit)) => (limit, "MiB/s", flow.bandwidth / binary),
        (None, None) => return None,
    };
    Some(Finding {
        kind: Kind::Limit,
        words: format!(
            "The bandwidth looks limited to {} {unit}: a quota, or the speed of a link.",
            count(limit)
        ),
        evidence: format!(
            "{} has {rate:.1} {unit} ({} from the round number), evenly",
            case.name,
            signed(rate / limit - 1.0)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{case, curve, flash, points};

    /// A device whose IOPS are cut off.
    fn capped(limit: f64) -> Subject {
        let mut cases = curve(64.0, 100.0);
        for case in &mut cases {
            let flow = &mut case.measured.flows[0];
            flow.iops = flow.iops.min(limit);
            flow.pieces = vec![points(&[flow.iops; 100])];
        }
        flash(cases)
    }

    #[test]
    fn iops_at_a_round_number() {
        let found = findings(&capped(16_100.0));
        assert!(found[0].words.contains("16k IOPS"), "{found:?}");
        assert_eq!(findings(&capped(17_000.0)), [], "17000 is not round");
        assert_eq!(findings(&flash(curve(64.0, 100.0))), [], "no limit");
    }

    #[test]
    fn a_rate_that_varies_is_no_limit() {
        let mut subject = capped(16_000.0);
        for case in &mut subject.cases {
            let iops = case.measured.flows[0].iops;
            let rates: Vec<f64> =
                (0..100).map(|n| iops * if n / 20 % 2 == 0 { 0.97 } else { 1.03 }).collect();
            case.measured.flows[0].pieces = vec![points(&rates)];
        }
        assert_eq!(findings(&subject), []);
    }

    /// As Linux's limiter made them: steps of a second have a burst at their beginning, longer cases have not.
    #[test]
    fn a_limit_of_cases_at_different_depths() {
        let of = |mix_iops: f64| {
            let alone = case("randread", Role::RandomRead, 2980.0, 4096.0, 74.0);
            let mut mix = case("mix", Role::Mix, mix_iops, 4096.0, 758.0);
            mix.depth = 16;
            findings(&flash(vec![alone, mix]))
        };
        assert!(
            of(3010.0)[0]
                .evidence
                .starts_with("random reads have 2.98k IOPS at depth 1 (randread) and 3.01k")
        );
        assert_eq!(of(3100.0), []);
    }

    #[test]
    fn bandwidth_at_a_round_number() {
        let of = |bandwidth: f64| {
            let mut read = case("read", Role::Read, bandwidth / 131_072.0, 131_072.0, 900.0);
            read.measured.flows[0].bandwidth = bandwidth;
            findings(&flash(vec![read]))
        };
        assert!(of(124.0e6)[0].words.contains("125 MB/s"));
        assert!(of(1.315e8)[0].words.contains("125 MiB/s"));
        assert_eq!(of(141e6), []);
        assert_eq!(of(5e6), [], "too slow for a quota");
    }
}
