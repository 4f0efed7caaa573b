//! The figures of a case for people: one row, or one for each direction of a mix.

use super::cases::Case;
use iolite_findings::{Flow, Measured, Percentiles, Role};

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name by which `--expect` knows it.
    pub name: String,
    /// What it does, in a few words.
    pub what: String,
    pub iops: f64,
    /// Bytes per second; `None` = no data is moved.
    pub bandwidth: Option<f64>,
    pub latency: Percentiles,
    /// IOPS over time.
    pub rates: Vec<f64>,
}

/// The names of the rows of a case.
pub fn names(case: &Case) -> Vec<String> {
    match case.role {
        Role::Mix => ["read", "write"].map(|direction| format!("{}-{direction}", case.name)).into(),
        _ => vec![case.name.clone()],
    }
}

/// The rows of a case.
pub fn of(case: &Case, measured: &Measured) -> Vec<Row> {
    let row = |name: String, flow: &Flow| Row {
        name,
        what: case.what.clone(),
        iops: flow.iops,
        bandwidth: (case.role != Role::Names).then_some(flow.bandwidth),
        // The cost of a durable write is that of the sync.
        latency: match (case.role, measured.sync) {
            (Role::Durable, Some((_, took))) => took,
            _ => flow.latency,
        },
        rates: flow.rates(),
    };
    if case.role == Role::Mix {
        let rows = measured.flows.iter().map(|flow| row(format!("{}-{}", case.name, flow.direction), flow));
        return rows.collect();
    }
    measured.main().map(|flow| row(case.name.clone(), flow)).into_iter().collect()
}
