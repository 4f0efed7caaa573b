//! The curves of a comparison: the runs of each side over time, and the distribution of their latencies.
//!
//! Runs have different windows, so they are resampled to one grid. Each side is drawn as the median of its runs, with a
//! band from the lowest to the highest. So a picture of hundreds of runs is as large as one of two.

use crate::logs::BUCKETS_PER_CLASS;
use iolite_compare::{Comparison, Side, WHOLE_JOB, job_name};
use iolite_stats::{bucket_of, lower_bound};
use iolite_stored::{DIRECTIONS, bins, has_moved, latency_with_percentiles, percentile_of_bins};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most sides with colours that everyone can distinguish.
pub const MOST_SIDES: usize = 4;
/// The most jobs and directions that are drawn.
const MOST_PARTS: usize = 200;
/// Points of a picture over time.
const ACROSS: f64 = 200.0;
/// Points of a curve of percentiles for each nine, and its number of nines.
const PER_NINE: u32 = 20;
const NINES: u32 = 5;
/// A job with fewer windows is drawn completely. For others, the first and the last window are left out: the job ran
/// only for a part of them.
const FEW_WINDOWS: usize = 5;

/// The curves of each side's results.
#[derive(Debug, Default)]
pub struct Curves {
    /// By job and direction.
    sides: Vec<BTreeMap<(String, &'static str), Vec<OfRun>>>,
}

/// One run of a job in one direction; jobs with the same name count as one.
#[derive(Debug, Default)]
struct OfRun {
    jobs: Vec<Vec<Span>>,
    latencies: Vec<Latencies>,
}

/// A window of a run.
#[derive(Debug)]
struct Span {
    /// Seconds from the beginning of the job's first window.
    begin: f64,
    end: f64,
    ios: f64,
    p99: Option<f64>,
}

/// The distribution of the latencies of a run.
#[derive(Debug)]
struct Latencies {
    /// Percentiles as they were reported, by the text of their key.
    told: BTreeMap<String, f64>,
    bins: Option<BTreeMap<u64, u64>>,
}

/// A value of each point of a curve, of one run.
type Curve = Vec<Option<f64>>;

impl Curves {
    /// Takes a result of the side with this position.
    pub fn add(&mut self, side: usize, report: &Value) {
        if side >= MOST_SIDES {
            return;
        }
        if self.sides.len() <= side {
            self.sides.resize_with(side + 1, BTreeMap::new);
        }
        let mut run: BTreeMap<(String, &'static str), OfRun> = BTreeMap::new();
        for (position, job) in iolite_stored::jobs(report).unwrap_or_default().into_iter().enumerate() {
            for direction in DIRECTIONS.into_iter().filter(|direction| has_moved(&job[direction])) {
                let of = run.entry((job_name(job), direction)).or_default();
                of.jobs.extend(spans(&report["iolite"]["series"], position, direction));
                of.latencies.extend(latencies(&job[direction]));
            }
        }
        for (place, of) in run {
            self.sides[side].entry(place).or_default().push(of);
        }
    }

    /// The data for the script.
    pub fn drawn(&self, sides: &[Side], comparison: &Comparison) -> Value {
        let mut places: Vec<(String, &'static str)> = Vec::new();
        for block in comparison.blocks.iter().filter(|block| block.direction != WHOLE_JOB) {
            let place = (block.job.clone(), block.direction);
            if !places.contains(&place) && places.len() < MOST_PARTS {
                places.push(place);
            }
        }
        let parts: Vec<Value> = places.iter().filter_map(|place| self.part(place)).collect();
        let names: Vec<&String> = sides.iter().take(MOST_SIDES).map(|side| &side.name).collect();
        json!({ "sides": names, "parts": parts })
    }

    /// The pictures of a job in a direction; `None` = its results have nothing to draw.
    fn part(&self, place: &(String, &'static str)) -> Option<Value> {
        let nobody = Vec::new();
        let sides: Vec<&Vec<OfRun>> =
            self.sides.iter().map(|side| side.get(place).unwrap_or(&nobody)).collect();
        let (times, percentiles, classes) = (over_time(&sides), percentiles(&sides), classes(&sides));
        if times.is_none() && percentiles.is_none() {
            return None;
        }
        Some(json!({
            "job": place.0, "direction": place.1, "over_time": times, "percentiles": percentiles, "classes": classes,
        }))
    }
}

/// The windows of a job in a direction, without those in which no I/O was expected.
fn spans(series: &Value, position: usize, direction: &str) -> Option<Vec<Span>> {
    let entry =
        series["jobs"].as_array()?.iter().find(|entry| entry["job"].as_u64() == Some(position as u64))?;
    let part = &entry[direction];
    let ends: Vec<f64> = series["end_us"].as_array()?.iter().filter_map(Value::as_f64).collect();
    let first = usize::try_from(part["first_window"].as_u64()?).ok()?;
    let counts = part["ios"].as_array()?;
    let before = |window: usize| match window {
        0 => series["begin_us"].as_f64(),
        later => ends.get(later - 1).copied(),
    };
    let origin = before(first)?;
    let is_short = counts.len() < FEW_WINDOWS;
    let mut spans = Vec::new();
    for (index, count) in counts.iter().enumerate() {
        let is_part = !is_short && (index == 0 || index == counts.len() - 1);
        let (Some(ios), Some(&end), Some(begin)) =
            (count.as_f64(), ends.get(first + index), before(first + index))
        else {
            continue;
        };
        if end > begin && !is_part {
            let p99 = part["p99_ns"][index].as_f64().filter(|value| *value > 0.0);
            spans.push(Span { begin: (begin - origin) / 1e6, end: (end - origin) / 1e6, ios, p99 });
        }
    }
    (!spans.is_empty()).then_some(spans)
}

fn latencies(measured: &Value) -> Option<Latencies> {
    let (_, latency) = latency_with_percentiles(measured)?;
    let told = latency["percentile"].as_object()?.iter();
    let told =
        told.filter_map(|(key, value)| Some((key.clone(), value.as_f64().filter(|value| *value > 0.0)?)));
    Some(Latencies { told: told.collect(), bins: bins(latency).filter(|bins| !bins.is_empty()) })
}

/// The median, lowest and highest curve of the runs of each side; `None` = no side has curves.
fn summed(sides: Vec<Vec<Curve>>, points: usize) -> Option<Vec<Value>> {
    let mut made = Vec::new();
    for (position, runs) in sides.iter().enumerate().filter(|(_, runs)| !runs.is_empty()) {
        let [mut middles, mut lows, mut highs] = [const { Vec::new() }; 3];
        for point in 0..points {
            let mut values: Vec<f64> =
                runs.iter().filter_map(|run| run.get(point).copied().flatten()).collect();
            values.sort_by(f64::total_cmp);
            let middle = values.len() / 2;
            let median = match values.len() {
                0 => None,
                odd if odd % 2 == 1 => Some(values[middle]),
                _ => Some((values[middle - 1] + values[middle]) / 2.0),
            };
            middles.push(rounded(median));
            lows.push(rounded(values.first().copied()));
            highs.push(rounded(values.last().copied()));
        }
        let mut side = json!({ "side": position, "runs": runs.len(), "ys": middles });
        if runs.len() > 1 {
            (side["lows"], side["highs"]) = (lows.into(), highs.into());
        }
        made.push(side);
    }
    (!made.is_empty()).then_some(made)
}

/// Rounds to four digits: a picture does not show more.
fn rounded(value: Option<f64>) -> Value {
    let value = value.filter(|value| value.is_finite());
    value.map_or(Value::Null, |value| format!("{value:.3e}").parse::<f64>().unwrap_or(value).into())
}

/// Rates and the 99th percentile over time, on one grid for all runs.
fn over_time(sides: &[&Vec<OfRun>]) -> Option<Value> {
    let all = || sides.iter().flat_map(|runs| runs.iter()).flat_map(|run| run.jobs.iter());
    let longest = all().flatten().map(|span| span.end).fold(0.0, f64::max);
    // A point of the grid must not be shorter than the windows: some points would have no I/Os.
    let usual =
        all().map(|spans| spans.iter().map(|span| span.end - span.begin).sum::<f64>() / spans.len() as f64);
    let step = usual.fold(longest / ACROSS, f64::max);
    if longest <= 0.0 || step <= 0.0 {
        return None;
    }
    let points = (longest / step).ceil().clamp(1.0, ACROSS) as usize;
    let of_sides = |of: fn(&OfRun, usize, f64) -> Curve| -> Vec<Vec<Curve>> {
        let of_run = |run: &OfRun| of(run, points, step);
        let with_windows = |run: &&OfRun| !run.jobs.is_empty();
        sides.iter().map(|runs| runs.iter().filter(with_windows).map(of_run).collect()).collect()
    };
    let xs: Vec<Value> = (0..points).map(|point| rounded(Some((point as f64 + 0.5) * step))).collect();
    Some(json!({
        "xs": xs, "end": longest, "iops": summed(of_sides(rates), points)?, "p99": summed(of_sides(tails), points)?,
    }))
}

/// The points of a grid that a span overlaps, with the seconds of the overlap.
fn shares(span: &Span, points: usize, step: f64) -> impl Iterator<Item = (usize, f64)> {
    let (begin, end) = (span.begin, span.end);
    let last = ((end / step).ceil() as usize + 1).min(points);
    let inside = (((begin / step) as usize)..last).map(move |point| {
        let left = point as f64 * step;
        (point, end.min(left + step) - begin.max(left))
    });
    inside.filter(|(_, seconds)| *seconds > 0.0)
}

/// I/Os per second of all jobs with the same name together.
fn rates(run: &OfRun, points: usize, step: f64) -> Curve {
    let mut sums: Curve = vec![None; points];
    for spans in &run.jobs {
        let (mut ios, mut known) = (vec![0.0; points], vec![0.0; points]);
        for span in spans {
            for (point, seconds) in shares(span, points, step) {
                ios[point] += span.ios * seconds / (span.end - span.begin);
                known[point] += seconds;
            }
        }
        for (point, sum) in sums.iter_mut().enumerate() {
            // If most of a point is unknown, its rate is unknown.
            if known[point] > step / 2.0 {
                *sum = Some(sum.unwrap_or(0.0) + ios[point] / known[point]);
            }
        }
    }
    sums
}

/// The largest of the 99th percentiles of the windows there: percentiles cannot be added.
fn tails(run: &OfRun, points: usize, step: f64) -> Curve {
    let mut largest: Curve = vec![None; points];
    for span in run.jobs.iter().flatten() {
        // A window that overlaps two points counts for the one with the larger part.
        let most = (span.end - span.begin).min(step) / 2.0 - 1e-9;
        for (point, _) in shares(span, points, step).filter(|(_, seconds)| *seconds > most) {
            largest[point] = match (largest[point], span.p99) {
                (Some(one), Some(other)) => Some(one.max(other)),
                (one, other) => one.or(other),
            };
        }
    }
    largest
}

/// The histogram of a run; `None` = some of its jobs have no histogram.
fn histogram(run: &OfRun) -> Option<BTreeMap<u64, u64>> {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for latencies in &run.latencies {
        for (&latency, &count) in latencies.bins.as_ref()? {
            let sum = all.entry(latency).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Latencies over percentiles, on a scale of nines: from histograms if all runs have them, otherwise from the
/// percentiles that all runs report.
fn percentiles(sides: &[&Vec<OfRun>]) -> Option<Value> {
    let nines = |percentile: f64| -(1.0 - percentile / 100.0).log10();
    let histograms: Option<Vec<Vec<BTreeMap<u64, u64>>>> =
        sides.iter().map(|runs| runs.iter().map(histogram).collect()).collect();
    let (xs, curves): (Vec<f64>, Vec<Vec<Curve>>) = match histograms {
        Some(histograms) => {
            let xs: Vec<f64> =
                (0..=NINES * PER_NINE).map(|point| f64::from(point) / f64::from(PER_NINE)).collect();
            let percentile = |x: &f64| 100.0 * (1.0 - 10_f64.powf(-x));
            let curve = |bins: &BTreeMap<u64, u64>| {
                xs.iter().map(|x| percentile_of_bins(bins, percentile(x))).collect()
            };
            let curves = histograms.iter().map(|runs| runs.iter().map(curve).collect()).collect();
            (xs, curves)
        }
        None => {
            // Percentiles of several jobs cannot be added without histograms.
            let told = |run: &OfRun| match &run.latencies[..] {
                [one] => one.told.clone(),
                _ => BTreeMap::new(),
            };
            let all: Vec<Vec<BTreeMap<String, f64>>> =
                sides.iter().map(|runs| runs.iter().map(told).collect()).collect();
            let first = all.iter().flatten().next()?;
            let mut keys: Vec<(f64, &String)> = first
                .keys()
                .filter_map(|key| {
                    Some((key.parse::<f64>().ok().filter(|of| (0.0..100.0).contains(of))?, key))
                })
                .collect();
            keys.sort_by(|one, other| one.0.total_cmp(&other.0));
            let curve =
                |run: &BTreeMap<String, f64>| keys.iter().map(|(_, key)| run.get(*key).copied()).collect();
            let curves = all.iter().map(|runs| runs.iter().map(curve).collect()).collect();
            (keys.iter().map(|(percentile, _)| nines(*percentile)).collect(), curves)
        }
    };
    let points = xs.len();
    let xs: Vec<Value> = xs.into_iter().map(|x| rounded(Some(x))).collect();
    (points > 1).then_some(())?;
    Some(json!({ "xs": xs, "latency": summed(curves, points)? }))
}

/// The class of a latency: eight for each power of two, as in a series.
fn class_of(nanoseconds: u64) -> usize {
    bucket_of(nanoseconds) / BUCKETS_PER_CLASS
}

fn class_begin(class: usize) -> f64 {
    lower_bound(class * BUCKETS_PER_CLASS) as f64
}

/// The share of I/Os in each class of latency, if all runs have histograms.
fn classes(sides: &[&Vec<OfRun>]) -> Option<Value> {
    let of_run = |run: &OfRun| -> Option<BTreeMap<usize, f64>> {
        let histogram = histogram(run)?;
        let total = histogram.values().map(|&count| count as f64).sum::<f64>();
        let mut shares = BTreeMap::new();
        for (latency, count) in histogram {
            *shares.entry(class_of(latency)).or_insert(0.0) += 100.0 * count as f64 / total;
        }
        Some(shares)
    };
    let runs: Vec<Vec<BTreeMap<usize, f64>>> =
        sides.iter().map(|runs| runs.iter().map(of_run).collect()).collect::<Option<_>>()?;
    let all = || runs.iter().flatten().flat_map(|run| run.keys().copied());
    let (first, last) = (all().min()?.saturating_sub(1), all().max()? + 1);
    let curve = |run: &BTreeMap<usize, f64>| {
        (first..=last).map(|class| Some(run.get(&class).copied().unwrap_or(0.0))).collect()
    };
    let curves = runs.iter().map(|runs| runs.iter().map(curve).collect()).collect();
    let middle = |class: usize| rounded(Some(((class_begin(class) + class_begin(class + 1)) / 2.0).max(1.0)));
    let xs: Vec<Value> = (first..=last).map(middle).collect();
    let points = xs.len();
    Some(json!({ "xs": xs, "share": summed(curves, points)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_compare::Run;
    use iolite_stats::BUCKETS;

    /// A run of one job with windows of a second with these rates.
    fn report(ios: &[u64], latency: u64) -> Value {
        let ends: Vec<u64> = (1..=ios.len() as u64).map(|window| window * 1_000_000).collect();
        let mut bins = serde_json::Map::new();
        bins.insert(latency.to_string(), json!(99));
        bins.insert((10 * latency).to_string(), json!(1));
        json!({
            "jobs": [{"jobname": "a", "job_start": latency, "read": {
                "total_ios": 100, "io_bytes": 4096, "iops": 10.0, "runtime": 1000, "bw_bytes": 9,
                "clat_ns": {"N": 100, "mean": 5.0, "percentile": {"50.000000": latency, "99.000000": latency}, "bins": bins},
            }}],
            "iolite": {"series": {"begin_us": 0, "end_us": ends, "jobs": [{"job": 0, "read": {
                "first_window": 0, "ios": ios, "p99_ns": ios.iter().map(|_| latency).collect::<Vec<_>>(),
            }}]}},
        })
    }

    fn drawn(sides: &[Vec<Value>]) -> Value {
        let mut curves = Curves::default();
        let mut compared = Vec::new();
        for (side, reports) in sides.iter().enumerate() {
            reports.iter().for_each(|report| curves.add(side, report));
            let runs = reports.iter().map(|report| Run::of("r", report).unwrap()).collect();
            compared.push(Side { name: format!("side {side}"), runs });
        }
        let comparison = iolite_compare::compare(&compared, &[], &[]).unwrap();
        curves.drawn(&compared, &comparison)
    }

    #[test]
    fn runs_of_a_side_are_a_line_and_a_band() {
        let made = drawn(&[
            vec![report(&[1, 10, 10, 10, 10, 1], 100), report(&[1, 30, 30, 30, 30, 1], 200)],
            vec![report(&[1, 7, 7, 7, 7, 1], 400)],
        ]);
        assert_eq!(made["sides"], json!(["side 0", "side 1"]));
        let part = &made["parts"][0];
        assert_eq!((&part["job"], &part["direction"]), (&json!("a"), &json!("read")));
        let times = &part["over_time"];
        assert_eq!(
            times["xs"],
            json!([0.5, 1.5, 2.5, 3.5, 4.5]),
            "the last window is partly outside of the run"
        );
        let [base, new] = [0, 1].map(|side| &times["iops"][side]);
        assert_eq!(base["ys"], json!([null, 20.0, 20.0, 20.0, 20.0]), "it began within the first window");
        assert_eq!(
            (&base["lows"][1], &base["highs"][1], &base["runs"]),
            (&json!(10.0), &json!(30.0), &json!(2))
        );
        assert_eq!((&new["ys"][1], new.get("lows")), (&json!(7.0), None));
        assert_eq!(times["p99"][0]["ys"], json!([null, 150.0, 150.0, 150.0, 150.0]));
        // 99% have the first latency, the rest ten times that.
        let latency = &part["percentiles"]["latency"];
        assert_eq!((&latency[1]["ys"][0], &latency[1]["ys"][100]), (&json!(400.0), &json!(4000.0)));
        let sum = |side: usize| {
            let shares = part["classes"]["share"][side]["ys"].as_array().unwrap();
            shares.iter().map(|share| share.as_f64().unwrap()).sum::<f64>()
        };
        assert!((sum(1) - 100.0).abs() < 0.1, "{}", sum(1));
    }

    #[test]
    fn results_without_series_and_histograms_have_percentiles() {
        let mut bare = report(&[5], 100);
        bare["iolite"] = Value::Null;
        bare["jobs"][0]["read"]["clat_ns"]["bins"] = Value::Null;
        let made = drawn(&[vec![bare.clone()], vec![report(&[1; 6], 300)]]);
        let part = &made["parts"][0];
        assert_eq!(part["percentiles"]["latency"][0]["ys"], json!([100.0, 100.0]));
        assert_eq!(
            (part["classes"].is_null(), part["over_time"]["iops"].as_array().unwrap().len()),
            (true, 1)
        );
        bare["jobs"][0]["read"]["clat_ns"] = Value::Null;
        assert_eq!(drawn(&[vec![bare.clone()], vec![bare]])["parts"], json!([]));
    }

    #[test]
    fn classes_are_those_of_a_series() {
        for nanoseconds in [0, 7, 8, 127, 128, 143, 144, 1000, 82_432, 123_456_789, 16_000_000_000] {
            let class = class_of(nanoseconds);
            let value = nanoseconds as f64;
            assert!(class_begin(class) <= value && value <= class_begin(class + 1), "{nanoseconds}");
        }
        assert_eq!(class_of(u64::MAX), BUCKETS / BUCKETS_PER_CLASS - 1, "the last one is open");
    }

    /// A stored file may contain anything.
    #[test]
    fn odd_results_are_drawn_as_far_as_they_go() {
        let good = report(&[1; 6], 300);
        for odd in [json!(null), json!(1e300), json!("x"), json!([]), json!({}), json!([[], {}, -7])] {
            for place in [
                "/iolite/series",
                "/iolite/series/end_us",
                "/iolite/series/jobs",
                "/iolite/series/jobs/0/read/ios",
                "/iolite/series/jobs/0/read/first_window",
                "/jobs/0/read/clat_ns/bins",
                "/jobs/0/read/clat_ns/percentile",
            ] {
                let mut one = good.clone();
                *one.pointer_mut(place).unwrap() = odd.clone();
                one["jobs"][0]["job_start"] = json!(9);
                assert_eq!(drawn(&[vec![one], vec![good.clone()]])["parts"].as_array().unwrap().len(), 1);
            }
        }
    }
}
