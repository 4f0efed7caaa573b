//! A level that ends, and a lower one that stays: a cache of the device, or a credit, has run out.

use crate::numbers::{bandwidth, bytes, count, seconds};
use crate::{Case, Finding, Flow, Kind, Point, Role, Subject};

/// The least fall, as a share of the first level: what a device's caches and credits of clouds hide is a factor of two
/// and more, and neighbours on shared storage rarely take a third at once.
const FALL: f64 = 0.3;
/// The share of the variation that the two levels must explain, as for two levels in `steadiness.rs`.
const EXPLAINED: f64 = 0.85;
/// The least share of the windows that each level has, and the least number.
const SHARE: f64 = 0.1;
const FEWEST: usize = 5;

/// A fall from one level to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// IOPS before.
    pub before: f64,
    /// IOPS after.
    pub after: f64,
    /// When, in seconds from the beginning.
    pub seconds: f64,
    /// The I/Os until then.
    pub ios: f64,
}

impl Fall {
    /// The fall of a series; `None` = there is none.
    pub fn of(points: &[Point]) -> Option<Fall> {
        // The case did not run in all of its first and last window.
        let inner = points.get(1..points.len().saturating_sub(1))?;
        let rates: Vec<f64> = inner.iter().map(|point| point.ios / point.seconds).collect();
        let least = ((SHARE * rates.len() as f64) as usize).max(FEWEST);
        let total: f64 = rates.iter().sum();
        let mean = total / rates.len() as f64;
        let all: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let mut sum = 0.0;
        let mut best: Option<(f64, usize)> = None;
        for (position, rate) in rates.iter().enumerate() {
            let (first, rest) = (position as f64, (rates.len() - position) as f64);
            if position >= least && rates.len() - position >= least {
                let between = first * rest / (first + rest) * (sum / first - (total - sum) / rest).powi(2);
                if best.is_none_or(|(most, _)| between > most) {
                    best = Some((between, position));
                }
            }
            sum += rate;
        }
        let (between, split) = best?;
        let level = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (before, after) = (level(&rates[..split]), level(&rates[split..]));
        let middle = (before + after) / 2.0;
        let crossings = rates.windows(2).filter(|pair| (pair[0] < middle) != (pair[1] < middle)).count();
        if after > (1.0 - FALL) * before || between < EXPLAINED * all || crossings != 1 {
            return None;
        }
        let until = &points[..=split];
        Some(Fall {
            before,
            after,
            seconds: until.iter().map(|point| point.seconds).sum(),
            ios: until.iter().map(|point| point.ios).sum(),
        })
    }

    fn of_flow(flow: &Flow) -> Option<Fall> {
        let [piece] = &flow.pieces[..] else { return None };
        Fall::of(piece)
    }
}

/// Whether a case fell: then it is not said once more that it has two levels.
pub(crate) fn has_fallen(case: &Case) -> bool {
    case.measured.main().and_then(Fall::of_flow).is_some()
}

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let cases = subject.cases.iter().filter(|case| case.role != Role::Names);
    cases.filter_map(|case| finding(case, case.measured.main()?)).collect()
}

fn finding(case: &Case, flow: &Flow) -> Option<Finding> {
    let fall = Fall::of_flow(flow)?;
    let size = if flow.ios > 0.0 { flow.bytes / flow.ios } else { 0.0 };
    let is_large = size >= 65_536.0;
    let rate = |iops: f64| if is_large { bandwidth(iops * size) } else { format!("{} IOPS", count(iops)) };
    Some(Finding {
        kind: Kind::Fell,
        words: format!(
            "What lasts is {}, not more: a fast cache of the device (SLC) was full, or a credit for bursts was used up.",
            rate(fall.after)
        ),
        evidence: format!(
            "{} fell from {} to {} after {} ({}), and stayed there",
            case.name,
            rate(fall.before),
            rate(fall.after),
            bytes(fall.ios * size),
            seconds(fall.seconds)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{case, flash, points};

    fn found(rates: &[f64]) -> Vec<Finding> {
        let mut fill = case("fill", Role::Fill, 1000.0, 1_048_576.0, 100.0);
        fill.measured.flows[0].pieces = vec![points(rates)];
        findings(&flash(vec![fill]))
    }

    #[test]
    fn a_cache_that_is_full() {
        let found = found(&[[2000.0; 40].as_slice(), &[600.0; 60]].concat());
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].evidence,
            "fill fell from 1.95 GiB/s to 600 MiB/s after 7.81 GiB (4 s), and stayed there"
        );
    }

    #[test]
    fn what_comes_back_or_hardly_falls_is_none() {
        assert_eq!(found(&[[2000.0; 40].as_slice(), &[1500.0; 60]].concat()), []);
        assert_eq!(found(&[[2000.0; 40].as_slice(), &[600.0; 30], &[2000.0; 30]].concat()), []);
        assert_eq!(found(&[[600.0; 40].as_slice(), &[2000.0; 60]].concat()), [], "it rises");
        let slope: Vec<f64> = (0..100).map(|position| 2000.0 - 14.0 * f64::from(position)).collect();
        assert_eq!(found(&slope), [], "a slope has no levels");
        assert_eq!(found(&[2000.0; 4]), []);
    }
}
