//! The repeated runs of one side: how much the figures vary from run to run, and how precisely their means are known.
//!
//! Means and variations are the same as in comparisons, and a run is one value here, too. The confidence interval of
//! a mean is Student's, computed from logarithms.

use crate::run::Part;
use crate::{ERROR, Figure, Side, Summary, WHOLE_JOB, welch};
use std::collections::BTreeSet;

/// A figure over all runs.
#[derive(Clone, Debug)]
pub struct SpreadRow {
    /// The figure.
    pub figure: Figure,
    /// Its mean and variation.
    pub summary: Summary,
    /// The interval of the mean, with the confidence level [`SPREAD_CONFIDENCE`]; `None` = there is only one run.
    pub interval: Option<(f64, f64)>,
    /// The lowest value of all runs.
    pub lowest: f64,
    /// The highest value of all runs.
    pub highest: f64,
}

/// The figures of a job in a direction.
#[derive(Clone, Debug)]
pub struct SpreadBlock {
    /// The job.
    pub job: String,
    /// The direction, or [`WHOLE_JOB`].
    pub direction: &'static str,
    /// Notes for the user, about missing runs or errors.
    pub notes: Vec<String>,
    /// Its figures.
    pub rows: Vec<SpreadRow>,
}

/// The confidence level of each interval.
pub const SPREAD_CONFIDENCE: f64 = 1.0 - ERROR;

/// Summarises how the runs of a side vary.
pub fn spread(side: &Side) -> Vec<SpreadBlock> {
    let mut seen = BTreeSet::new();
    let jobs = side.runs.iter().flat_map(|run| &run.jobs).map(|job| job.name.as_str());
    let names: Vec<&str> = jobs.filter(|name| seen.insert(*name)).collect();
    let mut blocks = Vec::new();
    for name in names {
        let of_job: Vec<_> = side
            .runs
            .iter()
            .filter_map(|run| Some((run, run.jobs.iter().find(|job| job.name == name)?)))
            .collect();
        for direction in iolite_stored::DIRECTIONS.into_iter().chain([WHOLE_JOB]) {
            let parts: Vec<&Part> = of_job
                .iter()
                .filter_map(|(_, job)| job.parts.iter().find(|part| part.direction == direction))
                .collect();
            if parts.is_empty() {
                continue;
            }
            let mut notes = Vec::new();
            if parts.len() < side.runs.len() {
                notes.push(format!(
                    "only {} of {} runs did I/O here; the figures come from these runs",
                    parts.len(),
                    side.runs.len()
                ));
            }
            if let Some((run, _)) = of_job.iter().find(|(_, job)| job.error != 0) {
                notes.push(format!("there are runs with errors, such as {}", run.name));
            }
            let rows: Vec<SpreadRow> =
                Figure::ALL.into_iter().filter_map(|figure| SpreadRow::of(figure, &parts)).collect();
            for row in rows.iter().filter(|row| row.summary.runs < parts.len()) {
                notes.push(format!("{} is known in {} runs only", row.figure.name(), row.summary.runs));
            }
            if rows.is_empty() && notes.is_empty() {
                continue;
            }
            blocks.push(SpreadBlock { job: name.to_owned(), direction, notes, rows });
        }
    }
    blocks
}

impl SpreadRow {
    fn of(figure: Figure, parts: &[&Part]) -> Option<SpreadRow> {
        let values: Vec<f64> = parts.iter().filter_map(|part| part.figure(figure)).collect();
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let summary = Summary::of(&values, &logarithms)?;
        let step = parts.iter().map(|part| part.step(figure)).fold(0.0, f64::max);
        let interval = (values.len() > 1).then(|| {
            let (centre, half) = welch::mean_within(&logarithms, ERROR, step);
            ((centre - half).exp(), (centre + half).exp())
        });
        Some(SpreadRow {
            figure,
            summary,
            interval,
            lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
            highest: values.iter().copied().fold(0.0, f64::max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use serde_json::json;

    fn run(number: usize, iops: f64, error: i64) -> Run {
        let report = json!({"jobs": [{"jobname": "j", "error": error, "job_start": number + 1,
            "read": {"iops": iops, "total_ios": iops, "bw_bytes": iops * 4096.0, "runtime": 1_000_000}}]});
        Run::of(&format!("run {number}"), &report).unwrap()
    }

    /// Computed by hand: the logarithms 2, 3, 4 have the mean 3 and the standard deviation 1, so the interval extends
    /// 4.303 / √3 to either side.
    #[test]
    fn an_interval_by_hand() {
        let values = [2.0_f64, 3.0, 4.0].map(f64::exp);
        let runs = values.iter().enumerate().map(|(number, iops)| run(number, *iops, 0)).collect();
        let blocks = spread(&Side { name: "a".to_owned(), runs });
        let block = blocks.iter().find(|block| block.direction == "read").unwrap();
        let row = &block.rows[0];
        assert_eq!(
            (row.figure, row.summary.runs, row.lowest, row.highest),
            (Figure::Iops, 3, values[0], values[2])
        );
        assert!((row.summary.mean.ln() - 3.0).abs() < 1e-9);
        let (low, high) = row.interval.unwrap();
        let half = 4.303 / 3.0_f64.sqrt();
        assert!(
            (low.ln() - 3.0 + half).abs() < 0.001 && (high.ln() - 3.0 - half).abs() < 0.001,
            "{low} {high}"
        );
        assert!(block.notes.is_empty());
    }

    #[test]
    fn missing_and_failed_runs_are_noted() {
        let runs = vec![run(0, 100.0, 0)];
        let one = spread(&Side { name: "a".to_owned(), runs });
        assert!(one[0].rows[0].interval.is_none() && one[0].rows[0].summary.variation.is_none());
        let runs = vec![run(0, 100.0, 0), run(1, 110.0, 5), run(2, 0.0, 0)];
        let three = spread(&Side { name: "a".to_owned(), runs });
        assert!(three[0].notes[0].starts_with("only 2 of 3 runs"), "{:?}", three[0].notes);
        assert!(three[0].notes[1].contains("errors, such as run 1"), "{:?}", three[0].notes);
    }
}
