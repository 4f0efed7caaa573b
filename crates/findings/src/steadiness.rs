//! Whether one number describes a run: how a rate varied over its windows, whether it rose or fell, whether it stood still,
//! and whether it jumped between two levels.
//!
//! The rules, and why:
//! - The *coefficient of variation* is the deviation of the windows' rates in percent of their mean. It depends on the
//!   length of the windows, so that length is reported, too. Neighbouring windows are joined until they have
//!   [`MANY_IOS`] I/Os on average: with few, chance alone makes rates vary (by 1/√n).
//! - A *trend* is a line of least squares that explains more than half of the variation, and changes by more than [`TREND`] from end
//!   to end.
//! - *Two levels* are the two classes that explain most of the variation (Otsu's method: an even spread reaches 75%, a normal
//!   distribution 64%; beyond [`TWO_CLASSES`] there are two), a fifth of the mean apart, with a tenth of the windows in each.
//! - A *stall* is a sample with less than a twentieth of the median rate, where that would be at least [`ENOUGH_IOS`] I/Os.
//!
//! The first and the last window of a job are excluded, and so are those beside a gap (such as that of writes while the
//! job reads back what it wrote): the job did not run in all of them.

use crate::fall::has_fallen;
use crate::numbers as text;
use crate::{Finding, Kind, Role, Subject};

/// The I/Os that a window has on average: chance makes 5% of variation.
const MANY_IOS: f64 = 400.0;
/// The usual number of I/Os per sample below which a nearly empty sample means nothing.
const ENOUGH_IOS: f64 = 50.0;
/// The fewest windows for statements about trends and levels: in a few windows, they may be due to chance.
const FEWEST_FOR_SHAPES: usize = 20;
/// The fewest windows for any statement.
const FEWEST: usize = 5;
/// The most windows: beyond that, neighbours are joined.
const MOST: usize = 240;
/// The smallest change from end to end that counts as a trend.
const TREND: f64 = 0.10;
/// The share of the variation that two classes must explain.
const TWO_CLASSES: f64 = 0.85;
/// The least distance between them, relative to the mean.
const APART: f64 = 0.20;
/// A coefficient of variation up to which a run is steady, and beyond which its mean says little.
const STEADY: f64 = 0.05;
const UNSTEADY: f64 = 0.15;

/// One window of a direction of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Its length.
    pub seconds: f64,
    /// The I/Os in it.
    pub ios: f64,
    /// The lowest rate of the samples in it.
    pub lowest: f64,
}

/// Times with nearly no I/O.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalls {
    /// The number of stalls; or of windows with one, if windows are longer than samples.
    pub count: usize,
    /// The length of the longest stall in seconds; `None` = unknown, because windows are longer than samples.
    pub longest: Option<f64>,
}

/// Two levels that a rate jumps between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// The mean rate of the lower windows.
    pub low: f64,
    /// The mean rate of the higher windows.
    pub high: f64,
    /// The share of time with the lower rate.
    pub low_share: f64,
    /// The number of changes between them.
    pub jumps: usize,
}

/// How steady a rate was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Seconds of a window; `None` = no series: the deviation is that of the report's samples.
    pub window: Option<f64>,
    /// The number of windows.
    pub windows: usize,
    /// The mean rate of all windows.
    pub mean: f64,
    /// The deviation, relative to the mean.
    pub variation: f64,
    /// The change from the beginning to the end, relative to the mean.
    pub trend: Option<f64>,
    /// Its stalls.
    pub stalls: Option<Stalls>,
    /// Its two levels.
    pub levels: Option<Levels>,
}

impl Steadiness {
    /// The steadiness of a series, which may have gaps between pieces; `None` = too short.
    pub fn of_series(pieces: &[Vec<Point>], sample_seconds: f64) -> Option<Steadiness> {
        let inner = pieces.iter().filter_map(|piece| piece.get(1..piece.len().saturating_sub(1)));
        let inner: Vec<Point> = inner.flatten().copied().collect();
        let stalls = stalls(&inner, sample_seconds);
        let joined = joined(&inner);
        if joined.len() < FEWEST {
            return None;
        }
        let rates: Vec<f64> = joined.iter().map(|point| point.ios / point.seconds).collect();
        let mean = mean(&rates);
        if mean <= 0.0 {
            return None;
        }
        let spread = spread(&rates);
        let (change, explained) = line(&rates);
        let is_long = rates.len() >= FEWEST_FOR_SHAPES;
        let trend = (is_long && explained > 0.5 && (change / mean).abs() > TREND).then_some(change / mean);
        let levels = levels(&rates).filter(|_| is_long && !(trend.is_some() && explained > TWO_CLASSES));
        let seconds: f64 = joined.iter().map(|point| point.seconds).sum();
        Some(Steadiness {
            window: Some(seconds / joined.len() as f64),
            windows: joined.len(),
            mean,
            variation: (spread / (rates.len() - 1) as f64).sqrt() / mean,
            trend,
            stalls,
            levels,
        })
    }

    /// The steadiness from the samples of a report without a series; `None` = too few samples.
    pub fn of_samples(count: u64, mean: f64, deviation: f64) -> Option<Steadiness> {
        let windows = usize::try_from(count).ok().filter(|&count| count >= FEWEST)?;
        (mean > 0.0).then_some(Steadiness {
            window: None,
            windows,
            mean,
            variation: deviation / mean,
            trend: None,
            stalls: None,
            levels: None,
        })
    }

    /// Whether the mean describes the run.
    pub fn is_one_number(&self) -> bool {
        self.variation <= UNSTEADY && self.trend.is_none() && self.stalls.is_none() && self.levels.is_none()
    }

    /// A few words for a table.
    pub fn in_short(&self) -> String {
        let mut words = Vec::new();
        let is_explained = self.levels.is_some() || self.trend.is_some();
        if !is_explained && (self.stalls.is_none() || self.variation > UNSTEADY) {
            let word = match self.variation {
                small if small <= STEADY => "steady",
                middling if middling <= UNSTEADY => "varies a little",
                _ => "varies",
            };
            words.push(word.to_owned());
        }
        if let Some(levels) = self.levels {
            words.push(format!("two levels: {} and {}", text::count(levels.low), text::count(levels.high)));
        }
        if let Some(trend) = self.trend {
            words.push(match trend.abs() < 1.0 {
                true => format!("{} by {}", rises(trend), text::percent(100.0 * trend.abs())),
                // The ends of the line: what falls by more than its mean ends at zero.
                false => {
                    let end = |part: f64| text::count((self.mean * (1.0 + part * trend / 2.0)).max(0.0));
                    format!("{} from {} to {}", rises(trend), end(-1.0), end(1.0))
                }
            });
        }
        match self.stalls {
            Some(Stalls { count, longest: Some(_) }) => {
                words.push(format!("{count} stall{}", if count == 1 { "" } else { "s" }));
            }
            Some(Stalls { count, longest: None }) => {
                words.push(format!("stalls in {count} window{}", if count == 1 { "" } else { "s" }));
            }
            None => {}
        }
        format!("{} (CV {})", words.join(", "), text::percent(100.0 * self.variation))
    }

    /// Sentences on why the mean does not describe the run; none if it does.
    pub fn sentences(&self) -> Vec<String> {
        let mean = text::count(self.mean);
        let mut sentences = Vec::new();
        if let Some(Levels { low, high, low_share, jumps }) = self.levels {
            sentences.push(format!(
                "IOPS have two levels, about {} for {} of the time and about {} for the rest, with {jumps} change{} between them; \
                 their mean of {mean} describes neither.",
                text::count(low),
                text::percent(100.0 * low_share),
                text::count(high),
                if jumps == 1 { "" } else { "s" },
            ));
        }
        if let Some(trend) = self.trend {
            sentences.push(format!(
                "IOPS {} by {} from the beginning to the end; the mean of {mean} depends on how long it ran.",
                if trend > 0.0 { "rise" } else { "fall" },
                text::percent(100.0 * trend.abs()),
            ));
        }
        if let Some(Stalls { count, longest }) = self.stalls {
            let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
            sentences.push(match longest {
                Some(longest) => format!(
                    "I/O stood nearly still {times}, for up to {}; the figures of the whole run hide that.",
                    text::seconds(longest),
                ),
                None => format!(
                    "In {count} window{} I/O stood nearly still for a moment; the figures of the whole run hide that.",
                    if count == 1 { "" } else { "s" },
                ),
            });
        }
        if self.levels.is_none() && self.trend.is_none() && self.variation > UNSTEADY {
            let of_what = match self.window {
                Some(seconds) => format!("windows of {}", text::seconds(seconds)),
                None => format!("{} samples", self.windows),
            };
            sentences.push(format!(
                "IOPS vary by {} (coefficient of variation over {of_what}): the mean of {mean} is one of many values.",
                text::percent(100.0 * self.variation),
            ));
        }
        sentences
    }
}

/// How the cases went over time, apart from those that fell to a lower level.
pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let cases = subject.cases.iter().filter(|case| !matches!(case.role, Role::Step | Role::Names));
    let mut found = Vec::new();
    let mut varying = Vec::new();
    for case in cases.filter(|case| !has_fallen(case)) {
        let Some(steadiness) = case.measured.main().and_then(crate::Flow::steadiness) else { continue };
        let is_shaped =
            steadiness.levels.is_some() || steadiness.trend.is_some() || steadiness.stalls.is_some();
        match is_shaped {
            true => {
                let kind = if steadiness.stalls.is_some() { Kind::Stalls } else { Kind::Unsteady };
                let words = format!("{}: {}", case.name, steadiness.sentences().join(" "));
                let evidence = format!("{} over {} windows", steadiness.in_short(), steadiness.windows);
                found.push(Finding { kind, words, evidence });
            }
            false if steadiness.variation > UNSTEADY => {
                varying.push(format!("{} by {}", case.name, text::percent(100.0 * steadiness.variation)));
            }
            false => {}
        }
    }
    if !varying.is_empty() {
        found.push(Finding {
            kind: Kind::Unsteady,
            words: "Rates vary from moment to moment: a mean is one of many values, and another test may give another one."
                .to_owned(),
            evidence: format!("coefficients of variation: {}", varying.join(", ")),
        });
    }
    found
}

fn rises(trend: f64) -> &'static str {
    if trend > 0.0 { "rises" } else { "falls" }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of squared distances from the mean.
fn spread(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Joins neighbouring windows, so that there are not too many, with enough I/Os in each.
fn joined(points: &[Point]) -> Vec<Point> {
    let total: f64 = points.iter().map(|point| point.ios).sum();
    let mean = total / points.len().max(1) as f64;
    let for_ios = if mean > 0.0 { (MANY_IOS / mean).ceil() as usize } else { 1 };
    let each = for_ios.max(points.len().div_ceil(MOST)).max(1);
    // The remainder belongs to the last chunk.
    let count = points.len() / each;
    let chunk = |number: usize| {
        let end = if number + 1 == count { points.len() } else { (number + 1) * each };
        let chunk = &points[number * each..end];
        Point {
            seconds: chunk.iter().map(|point| point.seconds).sum(),
            ios: chunk.iter().map(|point| point.ios).sum(),
            lowest: chunk.iter().map(|point| point.lowest).fold(f64::INFINITY, f64::min),
        }
    };
    (0..count).map(chunk).collect()
}

/// The change of the fitted line from end to end, and the share of the variation that it explains.
fn line(values: &[f64]) -> (f64, f64) {
    let (middle, mean) = ((values.len() - 1) as f64 / 2.0, mean(values));
    let (mut products, mut squares) = (0.0, 0.0);
    for (position, value) in values.iter().enumerate() {
        let distance = position as f64 - middle;
        products += distance * (value - mean);
        squares += distance * distance;
    }
    let slope = products / squares;
    let all = spread(values);
    (slope * (values.len() - 1) as f64, if all > 0.0 { slope * products / all } else { 0.0 })
}

fn levels(rates: &[f64]) -> Option<Levels> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let all = spread(&sorted);
    let (least, mean_of_all) = ((rates.len() / 10).max(2), mean(&sorted));
    if all <= 0.0 || rates.len() < 2 * least + 1 {
        return None;
    }
    let total: f64 = sorted.iter().sum();
    let mut sum = 0.0;
    let mut best: Option<(f64, usize)> = None;
    for (position, value) in sorted.iter().enumerate() {
        let (below, above) = (position as f64, (sorted.len() - position) as f64);
        if position >= least && sorted.len() - position >= least {
            let between = below * above / (below + above) * (sum / below - (total - sum) / above).powi(2);
            if best.is_none_or(|(most, _)| between > most) {
                best = Some((between, position));
            }
        }
        sum += value;
    }
    let (between, split) = best?;
    let (low, high) = (mean(&sorted[..split]), mean(&sorted[split..]));
    if between / all < TWO_CLASSES || high - low < APART * mean_of_all {
        return None;
    }
    let limit = (low + high) / 2.0;
    let jumps = rates.windows(2).filter(|pair| (pair[0] < limit) != (pair[1] < limit)).count();
    Some(Levels { low, high, low_share: split as f64 / sorted.len() as f64, jumps })
}

fn stalls(points: &[Point], sample_seconds: f64) -> Option<Stalls> {
    let mut rates: Vec<f64> = points.iter().map(|point| point.ios / point.seconds).collect();
    rates.sort_by(f64::total_cmp);
    let median = *rates.get(rates.len() / 2)?;
    if median * sample_seconds < ENOUGH_IOS {
        return None;
    }
    // A window of several samples shows that one of them was low, but not how many or which.
    let is_low = |point: &&Point| point.lowest < median / 20.0;
    let seconds: f64 = points.iter().map(|point| point.seconds).sum();
    if seconds / points.len() as f64 > 1.5 * sample_seconds {
        let count = points.iter().filter(is_low).count();
        return (count > 0).then_some(Stalls { count, longest: None });
    }
    let (mut count, mut longest, mut now) = (0, 0.0_f64, 0.0);
    for point in points {
        if !is_low(&point) {
            now = 0.0;
            continue;
        }
        if now == 0.0 {
            count += 1;
        }
        now += point.seconds;
        longest = longest.max(now);
    }
    (count > 0).then_some(Stalls { count, longest: Some(longest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of a tenth of a second with these rates.
    fn series(rates: &[f64]) -> Vec<Point> {
        rates.iter().map(|&rate| Point { seconds: 0.1, ios: rate / 10.0, lowest: rate }).collect()
    }

    fn of(rates: &[f64]) -> Steadiness {
        Steadiness::of_series(&[series(rates)], 0.1).unwrap()
    }

    /// A small periodic disturbance, which is neither a trend nor two levels.
    fn noise(position: usize) -> f64 {
        [0.3, -0.9, 1.1, -0.2, 0.6, -1.0, 0.1][position % 7]
    }

    #[test]
    fn cases_that_jump_or_stop_are_found() {
        use crate::made_up::{case, flash, points};
        let found = |rates: &[f64]| {
            let mut read = case("randread", Role::RandomRead, 1000.0, 4096.0, 90.0);
            read.measured.flows[0].pieces = vec![points(rates)];
            findings(&flash(vec![read]))
        };
        assert_eq!(found(&[20_000.0; 100]), []);
        let jumping: Vec<f64> =
            (0..100).map(|n| if n / 10 % 2 == 0 { 52_000.0 } else { 104_000.0 }).collect();
        assert_eq!(found(&jumping)[0].kind, Kind::Unsteady);
        let mut standing = [20_000.0; 100];
        standing[50..53].fill(0.0);
        let found_standing = found(&standing);
        assert_eq!(found_standing[0].kind, Kind::Stalls);
        assert!(found_standing[0].words.starts_with("randread: "), "{found_standing:?}");
        let wild: Vec<f64> = (0..15).map(|n| if n % 3 == 0 { 2000.0 } else { 20_000.0 }).collect();
        assert!(found(&wild)[0].evidence.contains("variation: randread by"));
        let fallen = [[104_000.0; 40].as_slice(), &[52_000.0; 60]].concat();
        assert_eq!(found(&fallen), [], "that is said in other words");
    }

    #[test]
    fn a_steady_run_is_one_number() {
        let found = of(&(0..100).map(|n| 50_000.0 + 400.0 * noise(n)).collect::<Vec<_>>());
        assert!(found.is_one_number() && found.sentences().is_empty(), "{found:?}");
        assert!(found.variation > 0.004 && found.variation < 0.01);
        assert_eq!(found.in_short(), format!("steady (CV {})", text::percent(100.0 * found.variation)));
    }

    #[test]
    fn two_levels_are_distinguished_from_a_wide_spread() {
        let jumping: Vec<f64> =
            (0..100).map(|n| if n / 10 % 2 == 0 { 52_000.0 } else { 104_000.0 } + 900.0 * noise(n)).collect();
        let levels = of(&jumping).levels.unwrap();
        assert!((levels.low - 52_000.0).abs() < 500.0 && (levels.high - 104_000.0).abs() < 500.0);
        assert_eq!(levels.jumps, 9);
        let words = of(&jumping).sentences().join(" ");
        assert!(words.contains("two levels, about 5") && words.contains("9 changes"), "{words}");
        // An even spread has no levels.
        let even: Vec<f64> = (0..100).map(|n| 50_000.0 + 400.0 * f64::from(n * 37 % 100)).collect();
        assert_eq!((of(&even).levels, of(&even).trend), (None, None));
        assert!(!of(&even).is_one_number());
    }

    #[test]
    fn a_trend_is_not_a_pair_of_levels() {
        let falling: Vec<f64> = (0..100).map(|n| 80_000.0 - 400.0 * n as f64 + 200.0 * noise(n)).collect();
        let found = of(&falling);
        assert_eq!(found.levels, None);
        assert!((found.trend.unwrap() + 0.65).abs() < 0.05, "{found:?}");
        assert!(found.in_short().starts_with("falls by 6"), "{}", found.in_short());
        // A step is two levels, with one change.
        let step: Vec<f64> =
            (0..100).map(|n| if n < 60 { 80_000.0 } else { 40_000.0 } + 200.0 * noise(n)).collect();
        assert_eq!(of(&step).levels.unwrap().jumps, 1);
    }

    #[test]
    fn stalls_are_found_within_windows() {
        let mut points = series(&[50_000.0; 60]);
        points[20].lowest = 0.0;
        points[40].lowest = 100.0;
        points[41].lowest = 0.0;
        // The job began and ended in these windows.
        points[0].lowest = 0.0;
        points[59].lowest = 0.0;
        let found = Steadiness::of_series(&[points], 0.1).unwrap();
        let stalls = found.stalls.unwrap();
        assert_eq!(stalls.count, 2);
        assert!((stalls.longest.unwrap() - 0.2).abs() < 1e-9);
        assert!(found.sentences()[0].contains("2 times, for up to 0.2 s"), "{:?}", found.sentences());
        assert!(found.in_short().starts_with("2 stalls (CV 0%"), "{}", found.in_short());
        // Windows of ten samples show only that there was a stall.
        let mut long: Vec<Point> =
            (0..60).map(|_| Point { seconds: 1.0, ios: 50_000.0, lowest: 50_000.0 }).collect();
        (20..30).for_each(|at| long[at].lowest = 0.0);
        let found = Steadiness::of_series(&[long], 0.1).unwrap();
        assert_eq!(found.stalls, Some(Stalls { count: 10, longest: None }));
        assert!(found.sentences()[0].starts_with("In 10 windows I/O stood nearly still"));
        assert!(found.in_short().starts_with("stalls in 10 windows (CV"), "{}", found.in_short());
        // A run that also varies gets both sentences.
        let wild: Vec<f64> = (0..60).map(|n| 50_000.0 + 400.0 * f64::from(n * 37 % 100)).collect();
        let mut points = series(&wild);
        points[20].lowest = 0.0;
        let found = Steadiness::of_series(&[points], 0.1).unwrap();
        assert!(found.in_short().starts_with("varies, 1 stall (CV "), "{}", found.in_short());
        assert_eq!(found.sentences().len(), 2);
    }

    #[test]
    fn few_ios_are_not_stalls_and_make_long_windows() {
        let rates: Vec<f64> = (0..3000).map(|n| if n % 3 == 0 { 0.0 } else { 30.0 }).collect();
        let found = of(&rates);
        assert_eq!(found.stalls, None, "that is chance");
        assert!(found.window.unwrap() > 2.0 && found.variation < 0.05, "{found:?}");
    }

    /// While the job reads back what it wrote, no writes are expected; the windows beside that are partial.
    #[test]
    fn gaps_are_not_stalls() {
        let piece = [&[900.0][..], &[50_000.0; 20], &[700.0]].concat();
        let found = Steadiness::of_series(&vec![series(&piece); 4], 0.1).unwrap();
        assert!(found.is_one_number() && found.windows == 80, "{found:?}");
    }

    #[test]
    fn leftover_samples_are_counted() {
        let found = joined(&series(&[100.0; 99]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found.iter().map(|point| point.ios).sum::<f64>() - 990.0).abs() < 1e-6);
    }

    #[test]
    fn a_few_windows_show_no_shape() {
        let rates = [0.0, 4400.0, 5700.0, 4500.0, 6000.0, 4200.0, 5500.0, 0.0];
        let found = of(&rates);
        assert_eq!((found.trend, found.levels), (None, None));
    }

    #[test]
    fn short_runs_are_not_judged() {
        assert_eq!(Steadiness::of_series(&[series(&[100.0; 6])], 0.1), None);
        assert_eq!(Steadiness::of_series(&[], 0.1), None);
        assert_eq!(Steadiness::of_series(&[Vec::new(), series(&[1.0])], 0.1), None);
        assert_eq!(Steadiness::of_samples(4, 100.0, 1.0), None);
        let found = Steadiness::of_samples(20, 1000.0, 300.0).unwrap();
        assert!(found.sentences()[0].contains("vary by 30% (coefficient of variation over 20 samples)"));
    }
}
