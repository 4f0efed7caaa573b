//! The joint result of the points over one option.

use crate::{Figures, Law, fit};

/// The fewest points for naming a knee.
const LEAST_POINTS: usize = 4;
/// The smallest share of the variance that the law must explain for naming a knee.
const LEAST_FIT: f64 = 0.9;
/// Ratios of IOPS to latency that differ by less than this share are a tie: repeats of one run differ as much.
const NEAR: f64 = 0.05;

/// A share of IOPS that is worth mentioning.
const MUCH: f64 = 0.1;

/// The point beyond which more depth costs more latency than it gains in IOPS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// The index of the point.
    pub point: usize,
    /// It is the last point: rates may rise further beyond it.
    pub is_last: bool,
    /// Another point that is nearly as good; `None` = the knee is clear.
    pub tie: Option<Tie>,
    /// The point with the most IOPS, if it is beyond the knee and has at least a tenth more: rates still rise, at a price
    /// in latency.
    pub rise: Option<Rise>,
}

/// Rates that rise beyond the knee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rise {
    /// The index of the point with the most IOPS.
    pub point: usize,
    /// Its IOPS relative to the knee's.
    pub iops: f64,
}

/// A point that chance alone may keep from being the knee. Of several, the one whose IOPS differ most from the knee's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tie {
    /// The index of the point.
    pub point: usize,
    /// The share by which its ratio of IOPS to latency is smaller than the knee's.
    pub margin: f64,
    /// Its IOPS relative to the knee's.
    pub iops: f64,
}

/// The result of a curve of rates over depths.
#[derive(Clone, Debug, PartialEq)]
pub struct Saturation {
    /// The law that fits best.
    pub law: Option<Law>,
    /// The knee, or why none is named.
    pub knee: Result<Knee, String>,
}

/// Finds the knee: the point with the largest ratio of IOPS to latency (L. Kleinrock's *power*). Latency includes
/// submission, so by Little's law that is the point with the largest ratio of the square of IOPS to the I/Os in flight.
/// It is named only if there are enough points, and they follow the Universal Scalability Law: otherwise the maximum
/// may be due to chance.
///
/// `points`: depth and figures, by rising depth.
pub fn saturation(points: &[(f64, &Figures)]) -> Saturation {
    let rates: Vec<(f64, f64)> = points.iter().map(|(depth, figures)| (*depth, figures.iops)).collect();
    let law = fit(&rates);
    let power = |figures: &Figures| {
        figures.latency_ns.filter(|latency| *latency > 0.0).map(|latency| figures.iops / latency)
    };
    let powers: Option<Vec<f64>> = points.iter().map(|(_, figures)| power(figures)).collect();
    let knee = match (law, powers) {
        _ if points.len() < LEAST_POINTS => {
            Err(format!("{} points; a knee is named from {LEAST_POINTS} on", points.len()))
        }
        (_, None) => Err("a point has no latency".to_owned()),
        (None, _) => Err("the rates follow no law of saturation".to_owned()),
        (Some(law), _) if law.fit < LEAST_FIT => Err(format!(
            "the law of saturation explains only {:.0}% of how rates differ (R²); a knee is named from {:.0}% on",
            100.0 * law.fit.max(0.0),
            100.0 * LEAST_FIT
        )),
        (Some(_), Some(powers)) => {
            let best =
                (0..powers.len()).max_by(|&one, &other| powers[one].total_cmp(&powers[other])).unwrap_or(0);
            let tie = |point: usize| Tie {
                point,
                margin: 1.0 - powers[point] / powers[best],
                iops: points[point].1.iops / points[best].1.iops,
            };
            let others = (0..powers.len()).filter(|point| *point != best).map(tie);
            let near = others.filter(|other| other.margin < NEAR);
            let difference = |tie: &Tie| tie.iops.ln().abs();
            let tie = near.max_by(|one, other| difference(one).total_cmp(&difference(other)));
            let iops = |point: usize| points[point].1.iops;
            let most = (best..points.len()).max_by(|&one, &other| iops(one).total_cmp(&iops(other)));
            let rise = most.map(|point| Rise { point, iops: iops(point) / iops(best) });
            let rise = rise.filter(|rise| rise.iops >= 1.0 + MUCH);
            Ok(Knee { point: best, is_last: best + 1 == powers.len(), tie, rise })
        }
    };
    Saturation { law, knee }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that serves this many I/Os at once, each in a millisecond, and queues the others.
    fn disk(places: f64, depths: &[f64]) -> Vec<(f64, Figures)> {
        let law = Law { lambda: 1000.0, sigma: 1.0 / places, kappa: 0.0, fit: 0.0 };
        let at = |depth: f64| {
            let iops = law.rate(depth);
            Figures { iops, latency_ns: Some(1e9 * depth / iops), ..Figures::default() }
        };
        depths.iter().map(|&depth| (depth, at(depth))).collect()
    }

    fn look(points: &[(f64, Figures)]) -> Saturation {
        let points: Vec<(f64, &Figures)> = points.iter().map(|(depth, figures)| (*depth, figures)).collect();
        saturation(&points)
    }

    #[test]
    fn the_knee_is_where_the_law_bends() {
        let found = look(&disk(16.0, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]));
        let knee = found.knee.unwrap();
        assert_eq!((knee.point, knee.is_last, knee.tie), (4, false, None));
        assert!((found.law.unwrap().sigma - 1.0 / 16.0).abs() < 1e-9);
        let found = look(&disk(1e9, &[1.0, 2.0, 4.0, 8.0]));
        assert_eq!(found.knee, Ok(Knee { point: 3, is_last: true, tie: None, rise: None }));
    }

    /// By Little's law, 40% more IOPS at twice the depth are 2% less IOPS for each unit of latency.
    #[test]
    fn a_near_tie_is_said_to_be_one() {
        let mut points = disk(16.0, &[1.0, 2.0, 4.0, 8.0, 16.0]);
        let iops = points[4].1.iops * 1.4;
        points.push((32.0, Figures { iops, latency_ns: Some(1e9 * 32.0 / iops), ..Figures::default() }));
        let knee = look(&points).knee.unwrap();
        let tie = knee.tie.unwrap();
        assert_eq!((knee.point, knee.is_last, tie.point), (4, false, 5));
        assert!((tie.margin - 0.02).abs() < 1e-9 && (tie.iops - 1.4).abs() < 1e-9, "{tie:?}");
    }

    /// Twice the IOPS at eight times the depth are half of the IOPS for each unit of latency: a price, but also a gain.
    #[test]
    fn rates_that_rise_beyond_the_knee_are_mentioned() {
        let mut points = disk(4.0, &[1.0, 2.0, 4.0]);
        let knee = points[2].1.iops;
        for (depth, factor) in [(8.0, 1.3), (16.0, 1.6), (32.0, 2.0), (64.0, 1.9)] {
            let iops = knee * factor;
            points
                .push((depth, Figures { iops, latency_ns: Some(1e9 * depth / iops), ..Figures::default() }));
        }
        let found = look(&points).knee.unwrap();
        let rise = found.rise.unwrap();
        assert_eq!((found.point, rise.point), (2, 5));
        assert!((rise.iops - 2.0).abs() < 1e-9, "{rise:?}");
    }

    #[test]
    fn no_knee_without_reason() {
        let found = look(&disk(4.0, &[1.0, 4.0, 16.0]));
        assert!(found.knee.unwrap_err().contains("3 points"));
        let mut wild = disk(4.0, &[1.0, 2.0, 4.0, 8.0, 16.0]);
        wild[1].1.iops *= 7.0;
        wild[3].1.iops /= 9.0;
        assert!(look(&wild).knee.unwrap_err().contains("explains only"));
        let mut dead = disk(4.0, &[1.0, 2.0, 4.0, 8.0]);
        dead[2].1.iops = 0.0;
        assert!(look(&dead).knee.unwrap_err().contains("follow no law"));
        dead[2].1.latency_ns = None;
        assert!(look(&dead).knee.unwrap_err().contains("no latency"));
        assert!(look(&[]).knee.is_err());
    }
}
