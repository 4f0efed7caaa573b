//! Two results of one test (`iolite ai`, `iolite meta`), figure by figure. A result is one run, so there is no verdict.

pub use crate::pts::compare::{Comparison, Row};
use serde_json::Value;

/// The figures of a test by which results are told apart, and what else describes it.
struct Described {
    test: String,
    rows: Vec<(String, &'static str, f64)>,
    settings: Value,
}

/// Whether a value is a result of such a test.
pub fn is_one(value: &Value) -> bool {
    described(value).is_some()
}

/// Compares two results.
///
/// # Errors
/// They are of different tests, or one of them is no result.
pub fn compare(base: &Value, new: &Value) -> Result<Comparison, String> {
    let of = |side: &str, value: &Value| {
        described(value).ok_or_else(|| format!("{side}: it is no result of iolite ai or iolite meta"))
    };
    let (base, new) = (of("base", base)?, of("new", new)?);
    if base.test != new.test {
        return Err(format!("base is a result of {}, and new one of {}", base.test, new.test));
    }
    let mut comparison = Comparison::default();
    for (name, side) in [("base", &base), ("new", &new)] {
        if side.settings["complete"] == false {
            let note =
                format!("{name} is a search that was interrupted, with the figures of what it tried last");
            comparison.notes.push(note);
        }
    }
    let find = |rows: &[(String, &str, f64)], cell: &str, figure: &str| {
        rows.iter().find(|row| row.0 == cell && row.1 == figure).map(|row| row.2)
    };
    for (cell, figure, value) in base.rows {
        match find(&new.rows, &cell, figure) {
            Some(other) => comparison.rows.push(Row {
                test: base.test.clone(),
                cell,
                figure,
                base: value,
                new: other,
                is_apart: None,
            }),
            None => comparison.notes.push(format!("{cell}: only base has this")),
        }
    }
    for (cell, figure, _) in new.rows {
        if !comparison.rows.iter().any(|row| row.cell == cell && row.figure == figure) {
            comparison.notes.push(format!("{cell}: only new has this"));
        }
    }
    for (key, one) in base.settings.as_object().into_iter().flatten() {
        let two = &new.settings[key];
        let is_setting =
            !["answer", "about", "target", "directory", "most_accelerators", "reaches_least", "complete"]
                .contains(&key.as_str())
                && !key.ends_with("_ns")
                && key != "hit_percent";
        let is_plain = |value: &Value| !value.is_array() && !value.is_object();
        if is_setting && one != two && is_plain(one) && is_plain(two) {
            comparison.notes.push(format!("{key}: {one} and {two}"));
        }
    }
    Ok(comparison)
}

fn described(value: &Value) -> Option<Described> {
    let ai = &value["iolite"]["ai"];
    // In a file of its own, or in the report of a run that was kept.
    let meta = [&value["meta"], &value["iolite"]["meta"]].into_iter().find(|meta| meta.is_object());
    let meta = meta.unwrap_or(&Value::Null);
    let mut rows = Vec::new();
    let mut add = |cell: &str, figure: &'static str, value: &Value| {
        rows.extend(value.as_f64().map(|value| (cell.to_owned(), figure, value)));
    };
    if let Some(phases) = meta["phases"].as_array() {
        for phase in phases {
            let name = phase["name"].as_str()?;
            match phase["bw_bytes"].as_f64() {
                Some(_) if name.starts_with("ior-") => add(name, "bw_bytes", &phase["bw_bytes"]),
                _ => add(name, "per_second", &phase["rate_per_second"]),
            }
            add(&format!("{name}, p99"), "p99_ns", &phase["latency_ns"]["p99"]);
        }
        add("score", "number", &meta["score"]["total"]);
        return Some(Described { test: "iolite meta".to_owned(), rows, settings: meta.clone() });
    }
    let test = ai["test"].as_str()?;
    match test {
        "reader" => {
            let result = &ai["result"];
            add("accelerator utilization", "percent", &result["utilization"]);
            add("samples", "per_second", &result["samples_per_sec"]);
            add("reads", "bw_bytes", &result["bw_bytes"]);
            add("reads, p99", "p99_ns", &result["read_p99_ns"]);
            add("most accelerators", "number", &ai["most_accelerators"]);
        }
        "checkpoint" => {
            for phase in ["write", "read"] {
                add(&format!("{phase}, slowest rank"), "bw_bytes", &ai[phase]["slowest_rank_bw_bytes"]);
                add(&format!("{phase}, time of the slowest rank"), "s", &ai[phase]["slowest_s"]);
            }
        }
        "kv" => {
            add("first block, p50", "p50_ns", &ai["first_block_p50_ns"]);
            add("first block, p99", "p99_ns", &ai["first_block_p99_ns"]);
            add("reads, p99", "p99_ns", &ai["read_p99_ns"]);
            for (number, tenant) in ai["tenants"].as_array().into_iter().flatten().enumerate() {
                let of = |what: &str| format!("tenant {number}, {what}");
                add(&of("first block, p99"), "p99_ns", &tenant["first_block_p99_ns"]);
                add(&of("writes, p99"), "p99_ns", &tenant["write_p99_ns"]);
                add(&of("reads"), "bw_bytes", &tenant["read_bw_bytes"]);
                add(&of("writes"), "bw_bytes", &tenant["write_bw_bytes"]);
            }
        }
        _ => return None,
    }
    Some(Described { test: format!("iolite ai {test}"), rows, settings: ai.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_those_of_the_test() {
        let reader = |utilization: f64, batch: u64| {
            let result = json!({"utilization": utilization, "samples_per_sec": 10, "bw_bytes": 4096});
            json!({"jobs": [], "iolite": {"ai": {"test": "reader", "batch": batch, "target": "a", "result": result}}})
        };
        let found = compare(&reader(80.0, 4), &reader(40.0, 8)).unwrap();
        assert_eq!((found.rows[0].figure, found.rows[0].change()), ("percent", Some(-0.5)));
        assert_eq!((found.rows.len(), &found.notes[..]), (3, &["batch: 4 and 8".to_owned()][..]));
        let mut search = reader(80.0, 4);
        search["iolite"]["ai"]["complete"] = false.into();
        let found = compare(&reader(80.0, 4), &search).unwrap();
        let note = "new is a search that was interrupted, with the figures of what it tried last";
        assert_eq!(found.notes, [note]);
        let meta = |name: &str| {
            let phase =
                json!({"name": name, "rate_per_second": 100.0, "bw_bytes": 0.0, "latency_ns": {"p99": 5.0}});
            json!({"meta": {"tasks": 2, "phases": [phase]}})
        };
        let found = compare(&meta("stat"), &meta("stat")).unwrap();
        assert_eq!(found.rows.iter().map(|row| row.figure).collect::<Vec<_>>(), ["per_second", "p99_ns"]);
        let found = compare(&meta("stat"), &meta("create")).unwrap();
        assert!(found.rows.is_empty() && found.notes.contains(&"create: only new has this".to_owned()));
        assert!(compare(&meta("stat"), &reader(1.0, 1)).unwrap_err().contains("iolite ai reader"));
        assert!(!is_one(&json!({"jobs": []})));
    }
}
