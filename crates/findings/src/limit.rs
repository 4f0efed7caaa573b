//! Limits at round numbers: quotas of clouds, containers and hypervisors.

use crate::numbers::{count, signed};
use crate::{Case, Finding, Flow, Kind, Role, Subject};

/// How near to a round number: providers count in their own windows, and runs include their beginning.
const NEAR: f64 = 0.02;
/// The digits of limits that are sold: AWS (125, 250, 500, 1000 MB/s; 3000, 16000 IOPS), Azure (120, 240, 500, 1100, 2300,
/// 5000, 7500 IOPS; 25, 60, 100, 125, 150, 200, 250 MB/s), Google Cloud (15000, 25000, 100000 IOPS; 240, 400, 1200 MB/s).
const DIGITS: [f64; 16] = [1.0, 1.1, 1.2, 1.25, 1.5, 1.6, 2.0, 2.3, 2.4, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0];
/// A limiter is even: the coefficient of variation up to which a rate may be one. Media vary by more.
const EVEN: f64 = 0.02;
/// Twice the depth gains at most this at a limit.
const FLAT: f64 = 0.02;
/// The least rate that anybody limits to: a disk's own 100 IOPS are a round number as well.
const LEAST_IOPS: f64 = 400.0;
const LEAST_BANDWIDTH: f64 = 10e6;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let mut found: Vec<Finding> = of_curve(subject).into_iter().collect();
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

/// A rate that does not vary.
fn is_even(flow: &Flow) -> bool {
    flow.steadiness().is_some_and(|steadiness| {
        steadiness.variation <= EVEN && steadiness.stalls.is_none() && steadiness.levels.is_none()
    })
}

/// The deepest two steps of the curve have the same, round rate.
fn of_curve(subject: &Subject) -> Option<Finding> {
    let curve = subject.curve();
    let [.., before, last] = &curve[..] else { return None };
    let (low, high) = (before.only_reads()?, last.only_reads()?);
    let gain = high.iops / low.iops - 1.0;
    let limit = round(high.iops).filter(|limit| *limit >= LEAST_IOPS)?;
    (gain.abs() <= FLAT && round(low.iops) == Some(limit) && is_even(high) && is_even(low)).then(|| Finding {
        kind: Kind::Limit,
        words: format!(
            "Something limits this storage to {} IOPS (a quota of a cloud, a container or a hypervisor): more depth only \
             waits.",
            count(limit)
        ),
        evidence: format!(
            "random reads have {} IOPS at depth {} and {} at depth {} ({} from the round number), evenly",
            count(low.iops),
            before.depth,
            count(high.iops),
            last.depth,
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
            "{} has {rate:.1} {unit} ({} from the round number), evenly, whatever the block size and the depth",
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
            let rates: Vec<f64> = (0..100).map(|n| iops * if n % 3 == 0 { 0.9 } else { 1.05 }).collect();
            case.measured.flows[0].pieces = vec![points(&rates)];
        }
        assert_eq!(findings(&subject), []);
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
