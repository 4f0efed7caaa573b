//! What a test came to, as JSON: the figures of all rounds, the steady state, and the means of its window.

use super::cells::Cell;
use super::course::{Outcome, Quantity, Rounds, Single, Unit};
use super::figures::{Figures, PERCENTILES};
use super::settings::{Settings, Test};
use super::steady::{EXCURSION, SLOPE, Window, settled};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The mark of results, and the version of their form.
pub const MARK: &str = "iolite pts";
/// The version of the form.
pub const VERSION: u64 = 1;
/// What the procedure is.
pub const SPECIFICATION: &str = "SNIA Solid State Storage Performance Test Specification 2.0.2";
/// What the result is not.
pub const DISCLAIMER: &str =
    "The procedure follows the public text of this specification. The result was not reviewed by SNIA.";

/// Whether a value is a result.
pub fn is_one(value: &Value) -> bool {
    value.get(MARK).is_some()
}

/// A unit as JSON.
pub fn of_unit(settings: &Settings, unit: &Unit, outcome: &Outcome<'_>) -> Value {
    let mut value = json!({
        "name": unit.name,
        "test": unit.test.word(),
        "title": unit.test.title(),
    });
    if let Some(block) = unit.block {
        value["block_bytes"] = block.into();
    }
    if let Some(figures) = outcome.preconditioning {
        value["preconditioning"] = json!({
            "written_bytes": figures.written,
            "seconds": figures.seconds,
            "bw_bytes": figures.bandwidth,
        });
    }
    if let Some(rounds) = &outcome.rounds {
        add_rounds(&mut value, settings, rounds);
    }
    if unit.test == Test::WriteSaturation {
        value["steady"] = saturated(outcome);
    }
    if !outcome.singles.is_empty() {
        let mut written = 0_u64;
        let singles = outcome.singles.iter().map(|single| of_single(single, &mut written));
        value["cells"] = singles.collect();
    }
    value
}

fn add_rounds(value: &mut Value, settings: &Settings, rounds: &Rounds<'_>) {
    let (place, quantity) = rounds.tracked;
    let Some(tracked) = rounds.cells.get(place) else { return };
    let window = rounds.window();
    value["rounds"] = rounds.figures.len().into();
    value["steady"] = steady(rounds.steady.is_some(), window.as_ref(), &rounds.values(), quantity);
    value["steady"]["tracked"] = words(tracked).into();
    let cells = rounds.cells.iter().enumerate().filter(|(_, cell)| !cell.is_preparation);
    value["matrix"] = cells
        .map(|(place, cell)| {
            let all: Vec<&Figures> = rounds.figures.iter().map(|round| round[place]).collect();
            of_cell(cell, &all, window.as_ref())
        })
        .collect();
    if settings.block > 512 && matches!(value["test"].as_str(), Some("iops" | "lat")) {
        value["left_out"] = json!(["0.5 KiB"]);
    }
}

/// A steady state, or the window that is none.
fn steady(is_reached: bool, window: Option<&Window>, values: &[f64], quantity: Quantity) -> Value {
    let mut told = json!({"reached": is_reached, "quantity": quantity.key(), "values": values,
        "excursion_limit": EXCURSION, "slope_limit": SLOPE});
    if let Some(window) = window {
        told["window"] = json!({
            "first": window.first,
            "last": window.last(),
            "average": window.average,
            "excursion": window.excursion,
            "slope": window.slope,
            "line_at_0": window.line.0,
            "line_per_round": window.line.1,
        });
    }
    told
}

/// Write saturation does not end at its steady state, but tells where it was.
fn saturated(outcome: &Outcome<'_>) -> Value {
    let values: Vec<f64> = outcome.singles.iter().map(|single| single.figures.iops).collect();
    let found = settled(&values);
    let last = || Window::ending(&values, values.len());
    let window = found.clone().or_else(last);
    let mut told = steady(found.is_some(), window.as_ref(), &[], Quantity::Iops);
    told["tracked"] = outcome.singles.first().map(|single| words(&single.cell)).into();
    told
}

fn words(cell: &Cell) -> String {
    format!("{}/{} {}", cell.read, 100 - cell.read, cell.block.words())
}

/// What a cell is.
fn described(cell: &Cell) -> Map<String, Value> {
    let mut told = Map::new();
    let mut add = |key: &str, value: Value| told.insert(key.to_owned(), value);
    add("what", words(cell).into());
    add("read_percent", cell.read.into());
    add("block", cell.block.words().into());
    add("random", cell.is_random.into());
    add("threads", cell.threads.into());
    add("depth", cell.depth.into());
    told
}

/// A cell of all rounds, and its means over the window; the longest response time is the longest of the window.
fn of_cell(cell: &Cell, all: &[&Figures], window: Option<&Window>) -> Value {
    let mut told = described(cell);
    let list = |of: &dyn Fn(&Figures) -> f64| -> Value { all.iter().map(|figures| of(figures)).collect() };
    told.insert(
        "rounds".to_owned(),
        json!({
            "iops": list(&|figures| figures.iops),
            "bw_bytes": list(&|figures| figures.bandwidth),
            "mean_ns": list(&|figures| figures.mean_ns),
            "max_ns": list(&|figures| figures.max_ns),
        }),
    );
    if let Some(window) = window {
        let within = &all[window.first - 1..window.last()];
        let mean = |of: &dyn Fn(&Figures) -> f64| {
            within.iter().map(|figures| of(figures)).sum::<f64>() / within.len() as f64
        };
        told.insert("iops".to_owned(), mean(&|figures| figures.iops).into());
        told.insert("bw_bytes".to_owned(), mean(&|figures| figures.bandwidth).into());
        told.insert("mean_ns".to_owned(), mean(&|figures| figures.mean_ns).into());
        let longest = within.iter().map(|figures| figures.max_ns).fold(0.0, f64::max);
        told.insert("max_ns".to_owned(), longest.into());
        let mut together = Figures::default();
        for (nanoseconds, count) in within.iter().flat_map(|figures| &figures.bins) {
            let entry = together.bins.entry(*nanoseconds).or_default();
            *entry = entry.saturating_add(*count);
        }
        told.insert("percentiles_ns".to_owned(), percentiles(&together));
    }
    Value::Object(told)
}

/// The percentiles of response times, with as many nines as there are I/Os for.
fn percentiles(figures: &Figures) -> Value {
    let count = figures.bins.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    // One I/O in a hundred thousand is known only if there are as many.
    let is_known = |percentile: &f64| count as f64 * (1.0 - percentile / 100.0) >= 0.999;
    let told = PERCENTILES
        .into_iter()
        .filter(is_known)
        .filter_map(|percentile| Some((percentile.to_string(), figures.percentile(percentile)?.into())));
    Value::Object(told.collect())
}

/// A cell that comes once. `written`: bytes that were written before it, and then after it.
fn of_single(single: &Single<'_>, written: &mut u64) -> Value {
    let Figures { iops, bandwidth, mean_ns, max_ns, .. } = *single.figures;
    *written = written.saturating_add(single.figures.written);
    let mut told = described(&single.cell);
    told.insert("group".to_owned(), single.group.clone().into());
    told.insert("iops".to_owned(), iops.into());
    told.insert("bw_bytes".to_owned(), bandwidth.into());
    told.insert("mean_ns".to_owned(), mean_ns.into());
    told.insert("max_ns".to_owned(), max_ns.into());
    told.insert("written_bytes".to_owned(), (*written).into());
    told.insert("seconds".to_owned(), single.figures.seconds.into());
    told.insert("percentiles_ns".to_owned(), percentiles(single.figures));
    if single.group.contains("histogram") || single.group.ends_with("demand") {
        told.insert("histogram_ns".to_owned(), histogram(&single.figures.bins));
    }
    Value::Object(told)
}

/// Response times in classes, each a fifth further than the one before: pairs of the upper end and the number of I/Os.
fn histogram(bins: &BTreeMap<u64, u64>) -> Value {
    const WIDER: f64 = 1.2;
    let mut classes: Vec<(u64, u64)> = Vec::new();
    for (nanoseconds, count) in bins {
        match classes.last_mut() {
            Some((end, known)) if *nanoseconds <= *end => *known = known.saturating_add(*count),
            _ => {
                let mut end = 1000.0_f64;
                while (end as u64) < *nanoseconds {
                    end *= WIDER;
                }
                classes.push((end as u64, *count));
            }
        }
    }
    classes.into_iter().map(|(end, count)| json!([end, count])).collect()
}
