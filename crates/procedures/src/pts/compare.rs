//! Two results, cell by cell.
//!
//! A result is one run, and the rounds of its window are no repeats of the run. So there is no verdict; a change is marked where the
//! windows do not overlap: all rounds of one side are above all of the other.

use super::result::{self, MARK};
use serde_json::Value;

/// A figure of a cell on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The unit: `iops`.
    pub test: String,
    /// The cell: `65/35 4 KiB`.
    pub cell: String,
    /// The figure: `iops`, `bw_bytes`, `mean_ns`, `max_ns`.
    pub figure: &'static str,
    /// Its value on the first side.
    pub base: f64,
    /// Its value on the second one.
    pub new: f64,
    /// The windows do not overlap; `None` = that is not known, as for a figure that has no rounds.
    pub is_apart: Option<bool>,
}

impl Row {
    /// The change, as a share of the first side.
    pub fn change(&self) -> Option<f64> {
        (self.base > 0.0).then(|| self.new / self.base - 1.0)
    }
}

/// A comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// All cells that both sides have.
    pub rows: Vec<Row>,
    /// What differs between the sides besides their figures, and what only one of them has.
    pub notes: Vec<String>,
}

/// Compares two results.
///
/// # Errors
/// One of them is none, or is of another version.
pub fn compare(base: &Value, new: &Value) -> Result<Comparison, String> {
    for (side, value) in [("base", base), ("new", new)] {
        match value[MARK].as_u64() {
            Some(result::VERSION) => {}
            Some(version) => {
                return Err(format!("{side}: its form has the version {version}, and this program knows 1"));
            }
            None => return Err(format!("{side}: it is no result of iolite pts")),
        }
    }
    let mut comparison = Comparison { notes: notes(base, new), ..Comparison::default() };
    for test in list(&base["tests"]) {
        let name = text(&test["name"]);
        let Some(other) = list(&new["tests"]).iter().find(|other| other["name"] == test["name"]) else {
            comparison.notes.push(format!("{name}: only base has this test"));
            continue;
        };
        for (side, one) in [("base", test), ("new", other)] {
            if one["steady"]["reached"] == false {
                comparison.notes.push(format!("{name}: {side} did not reach a steady state"));
            }
        }
        of_test(&mut comparison, name, test, other);
    }
    let has = |test: &&Value| list(&base["tests"]).iter().all(|known| known["name"] != test["name"]);
    for test in list(&new["tests"]).iter().filter(has) {
        comparison.notes.push(format!("{}: only new has this test", text(&test["name"])));
    }
    Ok(comparison)
}

/// The figures that are compared.
fn figures(test: &str) -> &'static [&'static str] {
    match test {
        "tp" => &["bw_bytes"],
        "lat" => &["mean_ns", "max_ns"],
        "dirth" | "ecw" => &["iops", "mean_ns"],
        _ => &["iops"],
    }
}

/// What tells the figures of a cell apart.
fn what(test: &str, figure: &str) -> &'static str {
    match figure {
        "max_ns" => ", longest",
        "mean_ns" if test != "lat" => ", mean response time",
        _ => "",
    }
}

fn of_test(comparison: &mut Comparison, name: &str, base: &Value, new: &Value) {
    let key = |cell: &Value| (cell["what"].clone(), cell["threads"].clone(), cell["depth"].clone());
    for cell in list(&base["matrix"]) {
        let Some(other) = list(&new["matrix"]).iter().find(|other| key(other) == key(cell)) else {
            comparison.notes.push(format!("{name}: only base has {}", text(&cell["what"])));
            continue;
        };
        for &figure in figures(text(&base["test"])) {
            let Some((one, two)) = cell[figure].as_f64().zip(other[figure].as_f64()) else { continue };
            let windows =
                [(base, cell), (new, other)].map(|(test, cell)| window(test, &cell["rounds"][figure]));
            comparison.rows.push(Row {
                test: name.to_owned(),
                cell: called(text(&base["test"]), cell) + what(text(&base["test"]), figure),
                figure,
                base: one,
                new: two,
                is_apart: apart(windows),
            });
        }
    }
    of_groups(comparison, name, base, new);
}

/// Tests without rounds: the mean of each group of cells.
fn of_groups(comparison: &mut Comparison, name: &str, base: &Value, new: &Value) {
    let mut groups: Vec<&str> = Vec::new();
    for cell in list(&base["cells"]) {
        let group = text(&cell["group"]);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        let mean = |test: &Value| {
            let cells = list(&test["cells"]).iter().filter(|cell| text(&cell["group"]) == group);
            let values: Vec<f64> = cells.filter_map(|cell| cell["iops"].as_f64()).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        if let Some((base, new)) = mean(base).zip(mean(new)) {
            let (test, cell) = (name.to_owned(), group.to_owned());
            comparison.rows.push(Row { test, cell, figure: "iops", base, new, is_apart: None });
        }
    }
}

/// What a cell is called: where demands vary, by its demand.
fn called(test: &str, cell: &Value) -> String {
    match test {
        "dirth" | "ecw" => format!("{} threads, depth {}", cell["threads"], cell["depth"]),
        _ => text(&cell["what"]).to_owned(),
    }
}

/// The least and the largest value of a window.
fn window(test: &Value, values: &Value) -> Option<(f64, f64)> {
    let window = &test["steady"]["window"];
    let (first, last) = (window["first"].as_u64()? as usize, window["last"].as_u64()? as usize);
    let values = values.as_array()?.get(first.checked_sub(1)?..last)?;
    let values: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    let low = values.iter().copied().reduce(f64::min)?;
    Some((low, values.iter().copied().reduce(f64::max)?))
}

fn apart(windows: [Option<(f64, f64)>; 2]) -> Option<bool> {
    let [one, two] = windows;
    one.zip(two).map(|(one, two)| one.1 < two.0 || two.1 < one.0)
}

/// What differs in the headers.
fn notes(base: &Value, new: &Value) -> Vec<String> {
    let mut notes = Vec::new();
    for (side, value) in [("base", base), ("new", new)] {
        if value["conforming"] != true {
            notes.push(format!("{side} does not conform to the specification"));
        }
    }
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let sections =
        [("device", &["model", "firmware", "serial", "size_bytes"][..]), ("machine", &["name", "kernel"])];
    for (section, keys) in sections {
        for key in keys {
            let (one, two) = (&base["header"][section][*key], &new["header"][section][*key]);
            if one != two {
                notes.push(format!("{section}, {key}: {} and {}", shown(one), shown(two)));
            }
        }
    }
    let parameters = |value: &Value| value["header"]["parameters"].as_object().cloned().unwrap_or_default();
    let (ones, twos) = (parameters(base), parameters(new));
    for (key, one) in &ones {
        let two = twos.get(key).cloned().unwrap_or_default();
        // Two results may have different tests.
        if *one != two && key != "tests" {
            notes.push(format!("parameter {key}: {} and {}", shown(one), shown(&two)));
        }
    }
    notes
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
