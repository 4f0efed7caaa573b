//! All points together: figures, curves, and a comparison of targets.

use super::load::Case;
use super::{Run, Sweep, targets};
use crate::run_series;
use iolite_report::clock;
use iolite_summary::csv::field;
use iolite_sweep::{Figures, Point, Saturation, StageModel, little, saturation};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// A measured point, or why it has no measurements.
pub type PointOutcome = Result<Measured, String>;

/// A measured point.
pub struct Measured {
    pub depth: f64,
    pub figures: Figures,
    pub warnings: Vec<String>,
    pub circumstances: Circumstances,
}

/// When the points were measured: in milliseconds since 1970.
pub struct Times {
    pub begun: u64,
    /// When the sweep was continued for the last time, after an interruption.
    pub continued: Option<u64>,
}

/// When, where and with what a point was measured: the names and values of the columns of `result.csv` for it.
pub type Circumstances = [(&'static str, String); 7];

/// The names of the places of the data among the circumstances.
const FILES: &str = "files";
const DEVICE: &str = "device";

fn circumstances(run: &Run, report: &Value) -> Circumstances {
    let load = &run.load;
    let time = report["timestamp_ms"].as_u64().map_or_else(String::new, clock::minute);
    let host = report["iolite"]["host"]["name"].as_str().unwrap_or_default().to_owned();
    let targets = report["iolite"]["targets"].as_array().into_iter().flatten();
    let files: Vec<&str> = targets.filter_map(|target| target["files"].as_str()).collect();
    [
        ("time", time),
        ("host", host),
        (FILES, files.join(", ")),
        (DEVICE, run_series::devices(report)),
        ("ioengine", load.engine.clone()),
        ("rw", load.rw.clone()),
        ("bs", load.bs.clone()),
    ]
}

impl Measured {
    /// Reads a report.
    pub fn of(run: &Run, case: &Case, report: &Value) -> Result<Measured, String> {
        let mut figures = Figures::of(report).map_err(|error| error.to_string())?;
        let told = report["iolite"]["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut warnings: Vec<String> = told.map(|warning| run.load.placed(warning, case)).collect();
        if figures.error != 0 {
            let errno = i32::try_from(figures.error).unwrap_or(0);
            warnings.push(format!("a job had an error: {}", iolite_types::describe_job_error(errno)));
        }
        let depth = run.load.depth;
        warnings.extend(figures.in_flight.and_then(|in_flight| little(in_flight, depth)));
        // Rates and latencies have edges of their own, so their product may be a little more than there can be.
        figures.in_flight = figures.in_flight.map(|in_flight| in_flight.min(depth));
        Ok(Measured { depth, figures, warnings, circumstances: circumstances(run, report) })
    }
}

/// Points over one option, with equal values of all others.
pub struct Curve {
    /// The values of the others.
    pub others: Vec<(String, String)>,
    /// Positions of points, by rising depth.
    pub points: Vec<usize>,
    pub found: Saturation,
    /// What follows from the stages, if all points have them.
    pub stages: Option<StageModel>,
}

/// The result of a sweep.
pub struct Outcome<'a> {
    pub sweep: &'a Sweep,
    pub points: &'a [PointOutcome],
    pub curves: Vec<Curve>,
    /// Each warning, with the positions of the points that had it.
    pub warnings: Vec<(String, Vec<usize>)>,
    /// When, where and with what it was measured, in a line for the table and the page.
    pub about: String,
    pub times: &'a Times,
    /// The result for programs and for the page.
    pub value: Value,
}

impl<'a> Outcome<'a> {
    /// The outcome of these points.
    pub fn new(sweep: &'a Sweep, points: &'a [PointOutcome], times: &'a Times) -> Outcome<'a> {
        let curves = curves(sweep, points);
        let warnings = warnings(points);
        let about = about(points, times);
        let mut outcome = Outcome { sweep, points, curves, warnings, about, times, value: Value::Null };
        outcome.value = value(&outcome);
        outcome
    }
}

/// When, where and with what all points were measured: `2026-11-20 12:33, host a, files f, device vda, ioengine=psync,
/// rw=read|write, bs=4k`.
fn about(points: &[PointOutcome], times: &Times) -> String {
    let mut words = clock::minute(times.begun);
    if let Some(continued) = times.continued {
        words += &format!(" (continued at {})", clock::minute(continued));
    }
    let measured = || points.iter().filter_map(|point| point.as_ref().ok());
    let names = measured().next().map(|point| point.circumstances.each_ref().map(|(name, _)| *name));
    for (position, name) in names.into_iter().flatten().enumerate().skip(1) {
        let mut values: Vec<&str> = Vec::new();
        for point in measured() {
            let value = point.circumstances[position].1.as_str();
            if !value.is_empty() && !values.contains(&value) {
                values.push(value);
            }
        }
        if !values.is_empty() {
            let between = if matches!(name, "host" | FILES | DEVICE) { " " } else { "=" };
            words += &format!(", {name}{between}{}", values.join("|"));
        }
    }
    words
}

/// Each warning once, in the order of the points.
fn warnings(points: &[PointOutcome]) -> Vec<(String, Vec<usize>)> {
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (position, point) in points.iter().enumerate() {
        for words in warnings_of(point) {
            let place = *places.entry(words).or_insert(all.len());
            if place == all.len() {
                all.push((words.clone(), Vec::new()));
            }
            all[place].1.push(position);
        }
    }
    all
}

/// The warnings of a point, or the reason why it failed.
fn warnings_of(point: &PointOutcome) -> &[String] {
    match point {
        Ok(point) => &point.warnings,
        Err(why) => std::slice::from_ref(why),
    }
}

/// The option that sets the depth, if it has several values.
fn depth_option(sweep: &Sweep) -> Option<&str> {
    ["iodepth", "numjobs"].into_iter().find(|name| sweep.is_varied(name))
}

fn curves(sweep: &Sweep, points: &[PointOutcome]) -> Vec<Curve> {
    let Some(option) = depth_option(sweep) else { return Vec::new() };
    let mut groups: Vec<(Point, Vec<usize>)> = Vec::new();
    for (position, run) in sweep.runs.iter().enumerate() {
        let others: Vec<(String, String)> =
            run.values.iter().filter(|(name, _)| name != option).cloned().collect();
        match groups.iter_mut().find(|(known, _)| *known == others) {
            Some((_, members)) => members.push(position),
            None => groups.push((others, vec![position])),
        }
    }
    // With options varied one at a time, most combinations of the others have a single point.
    groups.retain(|(_, members)| members.len() > 1);
    let curve = |(others, members): (Point, Vec<usize>)| {
        let mut measured: Vec<(usize, &Measured)> = members
            .into_iter()
            .filter_map(|position| Some((position, points[position].as_ref().ok()?)))
            .collect();
        measured.sort_by(|(_, one), (_, other)| one.depth.total_cmp(&other.depth));
        let figures: Vec<(f64, &Figures)> =
            measured.iter().map(|(_, point)| (point.depth, &point.figures)).collect();
        let found = saturation(&figures);
        // Values that all points share are left out.
        let others = others.into_iter().filter(|(name, _)| sweep.is_varied(name)).collect();
        let stages: Option<Vec<_>> =
            figures.iter().map(|(depth, figures)| Some((*depth, figures.iops, figures.stages?))).collect();
        let stages = stages.and_then(|points| StageModel::of(&points));
        let points = measured.into_iter().map(|(position, _)| position).collect();
        Curve { others, points, found, stages }
    };
    groups.into_iter().map(curve).collect()
}

impl Curve {
    /// Describes the knee in a sentence or two.
    pub fn words(&self, outcome: &Outcome<'_>) -> String {
        let mut text = match &self.found.knee {
            Ok(knee) => {
                let option = depth_option(outcome.sweep).unwrap_or_default();
                let value = |point: usize| {
                    let run = &outcome.sweep.runs[self.points[point]];
                    run.values.iter().find(|(name, _)| name == option).map_or("", |(_, value)| value)
                };
                let beyond = if knee.is_last { ", the last point: it may be beyond" } else { "" };
                let tie = knee.tie.map_or_else(String::new, |tie| {
                    let (percent, less) = (100.0 * (tie.iops - 1.0), if tie.iops < 1.0 { "less" } else { "more" });
                    format!(
                        ", a near tie: {option}={}, with {:.0}% {less} IOPS, has only {:.1}% less IOPS / latency",
                        value(tie.point),
                        percent.abs(),
                        100.0 * tie.margin
                    )
                });
                let rise = knee.rise.filter(|rise| knee.tie.is_none_or(|tie| tie.point != rise.point));
                let rise = rise.map_or_else(String::new, |rise| {
                    let percent = 100.0 * (rise.iops - 1.0);
                    format!(
                        "; IOPS rise further, to {percent:.0}% more at {option}={}, and latency rises faster",
                        value(rise.point)
                    )
                });
                format!("the knee is at {option}={}{beyond}{tie}{rise}", value(knee.point))
            }
            Err(why) => format!("no knee is named: {why}"),
        };
        if let Some(law) = &self.found.law {
            let peak = match law.peak() {
                Some(peak) => format!("highest at a depth of {peak:.0}"),
                None => "without a peak".to_owned(),
            };
            // Writing to a String does not fail.
            let _ = write!(
                text,
                " (law: λ {} IOPS, σ {}, κ {}, {peak}; R² {:.3})",
                iolite_page::text::count(law.lambda),
                iolite_page::text::digits(law.sigma),
                iolite_page::text::digits(law.kappa),
                law.fit
            );
        }
        text
    }
}

fn object(values: &[(String, String)]) -> Value {
    values
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn value(outcome: &Outcome<'_>) -> Value {
    let sweep = outcome.sweep;
    let point = |(run, point): (&Run, &PointOutcome)| {
        let mut value =
            json!({ "number": run.number, "values": object(&run.values), "depth": run.load.depth });
        if let Ok(Measured { figures, circumstances, .. }) = point {
            value["measured"] = circumstances.iter().map(|(name, value)| (*name, value.as_str())).collect();
            value["figures"] = json!({
                "iops": figures.iops, "bw_bytes": figures.bandwidth, "mean_ns": figures.latency_ns, "p50_ns": figures.p50_ns,
                "p99_ns": figures.p99_ns, "cpu_percent": figures.cpu_percent, "in_flight": figures.in_flight, "error": figures.error,
            });
        }
        if let Ok(Measured { figures: Figures { stages: Some(stages), .. }, .. }) = point {
            value["stages"] = json!({ "submit_ns": stages.submit, "queue_ns": stages.queue, "device_ns": stages.device, "reap_ns": stages.reap });
        }
        value["warnings"] = json!(warnings_of(point));
        value
    };
    let number = |position: &usize| sweep.runs[*position].number;
    let curve = |curve: &Curve| {
        let knee = curve.found.knee.as_ref().ok();
        json!({
            "values": object(&curve.others),
            "points": curve.points.iter().map(number).collect::<Vec<_>>(),
            "law": curve.found.law.map(|law| json!({
                "lambda": law.lambda, "sigma": law.sigma, "kappa": law.kappa, "r2": law.fit, "peak_depth": law.peak() })),
            "knee": knee.map(|knee| json!({
                "point": number(&curve.points[knee.point]), "is_last": knee.is_last,
                "tie": knee.tie.map(|tie| json!({
                    "point": number(&curve.points[tie.point]), "margin_percent": 100.0 * tie.margin, "iops_ratio": tie.iops })),
                "rise": knee.rise.map(|rise| json!({
                    "point": number(&curve.points[rise.point]), "iops_ratio": rise.iops })) })),
            "words": curve.words(outcome),
            "stages": curve.stages.as_ref().map(|model| json!({
                "issue_ns": model.issue_ns, "delay_ns": model.delay_ns, "move_ns": model.move_ns, "r2": model.fit,
                "move_ns_of_points": model.points.iter().map(|point| point.move_ns).collect::<Vec<_>>(),
                "iops": model.points.iter().map(|point| point.iops).collect::<Vec<_>>() })),
        })
    };
    let warning = |(words, points): &(String, Vec<usize>)| json!({ "words": words, "points": points.iter().map(number).collect::<Vec<_>>() });
    let options: Vec<Value> =
        sweep.axes.iter().map(|axis| json!({ "name": axis.name, "values": axis.values })).collect();
    let mut value = json!({
        "sweep": {
            "name": sweep.name, "program": iolite_options::Name::Iolite.own_version(), "options": options,
            "one_at_a_time": sweep.one_at_a_time, "depth_option": depth_option(sweep), "cases": sweep.cases.len() > 1, "about": outcome.about,
            "begun_ms": outcome.times.begun, "continued_ms": outcome.times.continued,
        },
        "points": sweep.runs.iter().zip(outcome.points).map(point).collect::<Vec<_>>(),
        "curves": outcome.curves.iter().map(curve).collect::<Vec<_>>(),
        "warnings": outcome.warnings.iter().map(warning).collect::<Vec<_>>(),
    });
    if let Some(relative) = relative(outcome) {
        value["relative"] = relative;
    }
    value
}

/// Options that choose a target: results for different values are compared with each other.
const TARGETS: [&str; 13] = [
    targets::AXIS,
    "directory",
    "filename",
    "ioengine",
    "nfs_url",
    "uri",
    "http_host",
    "hostname",
    "volume",
    "brick",
    "namenode",
    "pool",
    "rbdname",
];

/// The targets relative to the first one, for a sweep that varies only cases and targets.
fn relative(outcome: &Outcome<'_>) -> Option<Value> {
    let varied: Vec<_> = outcome.sweep.axes.iter().filter(|axis| axis.values.len() > 1).collect();
    let [axis] = varied[..] else { return None };
    if !TARGETS.contains(&axis.name.as_str()) {
        return None;
    }
    let mut by_case: BTreeMap<usize, Vec<(usize, Option<&Measured>)>> = BTreeMap::new();
    for (run, point) in outcome.sweep.runs.iter().zip(outcome.points) {
        let value = run.values.iter().find(|(name, _)| *name == axis.name).map(|(_, value)| value);
        let column = axis.values.iter().position(|known| Some(known) == value)?;
        by_case.entry(run.case).or_default().push((column, point.as_ref().ok()));
    }
    type Figure = (&'static str, fn(&Figures) -> f64, fn(f64) -> String);
    let figures: [Figure; 3] = [
        ("MB/s", |figures| figures.bandwidth / 1e6, iolite_page::text::digits),
        ("IOPS", |figures| figures.iops, iolite_page::text::count),
        ("CPU %", |figures| figures.cpu_percent, iolite_page::text::digits),
    ];
    let mut rows = Vec::new();
    for (case, cells) in by_case {
        for (unit, figure, words) in figures {
            let of = |column: usize| {
                let found = cells.iter().find(|(place, _)| *place == column).and_then(|(_, point)| *point);
                found.map(|point| figure(&point.figures))
            };
            let first = of(0).filter(|first| *first > 0.0);
            let cell = |column: usize| match (of(column), first) {
                (Some(value), Some(first)) if column > 0 => {
                    format!("{} ({:.0}%)", words(value), 100.0 * value / first)
                }
                (Some(value), _) => words(value),
                (None, _) => "–".to_owned(),
            };
            let columns = 0..axis.values.len();
            let name = match outcome.sweep.cases[case].name.as_str() {
                "" => unit.to_owned(),
                name => format!("{name}, {unit}"),
            };
            rows.push(json!({ "name": name, "values": columns.clone().map(of).collect::<Vec<_>>(), "words": columns.map(cell).collect::<Vec<_>>() }));
        }
    }
    Some(json!({ "option": axis.name, "columns": axis.values, "rows": rows }))
}

/// The result for programs.
pub fn json(outcome: &Outcome<'_>) -> String {
    format!("{:#}\n", outcome.value)
}

/// A line for each point.
pub fn csv(outcome: &Outcome<'_>) -> String {
    let mut out = String::from("point");
    let names = outcome.sweep.runs.first().map_or(&[][..], |run| &run.values);
    names.iter().for_each(|(name, _)| out += &format!(",{}", field(name)));
    out += ",depth,iops,bw_bytes,mean_ns,p50_ns,p99_ns,cpu_percent,in_flight,error";
    // Values of options have columns already.
    let is_new = |name: &str| names.iter().all(|(known, _)| known != name);
    let measured = || outcome.points.iter().filter_map(|point| point.as_ref().ok());
    let about = measured().next().into_iter().flat_map(|point| &point.circumstances);
    let about: Vec<&str> = about.map(|(name, _)| *name).filter(|name| is_new(name)).collect();
    about.iter().for_each(|name| out += &format!(",{name}"));
    out.push('\n');
    for (run, point) in outcome.sweep.runs.iter().zip(outcome.points) {
        out += &run.number.to_string();
        run.values.iter().for_each(|(_, value)| out += &format!(",{}", field(value)));
        out += &format!(",{}", run.load.depth);
        let Ok(Measured { figures, circumstances, .. }) = point else {
            out += &",".repeat(8 + about.len());
            out.push('\n');
            continue;
        };
        let told = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let Figures { iops, bandwidth, cpu_percent, error, .. } = figures;
        let latencies = [figures.latency_ns, figures.p50_ns, figures.p99_ns].map(told).join(",");
        out += &format!(",{iops},{bandwidth},{latencies},{cpu_percent},{},{error}", told(figures.in_flight));
        for (_, value) in circumstances.iter().filter(|(name, _)| about.contains(name)) {
            out += &format!(",{}", field(value));
        }
        out.push('\n');
    }
    out
}
