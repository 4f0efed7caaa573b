//! `iolite log2csv`: latencies for spreadsheets and scripts, from json+ reports and histogram logs.

mod bins;
mod input;
mod table;
mod windows;

use bins::Report;
use input::Source;
use iolite_options::commands::Asked;
use std::path::Path;
use windows::{Grouping, Windows};

/// The default percentiles of a window.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// Returns the answer. Files are opened one after the other: there may be many, or pipes that are filled in turn.
pub fn run(program: &str, asked: &Asked) -> Result<String, String> {
    let mut sources = asked.operands.iter().map(|path| Source::open(program, Path::new(path)));
    let first = sources.next().ok_or("needs a json+ report or histogram logs")??;
    match &first.report {
        Some(text) if asked.operands.len() == 1 => report(asked, &first.name, text),
        Some(_) => Err(alone(&first)),
        None => histograms(asked, std::iter::once(Ok(first)).chain(sources)),
    }
}

/// The error for a report among other files: reports are not merged.
fn alone(report: &Source) -> String {
    format!("{}: a report is converted alone", report.name)
}

/// The bins of a report: one table for all jobs, or files as `fio_jsonplus_clat2csv` makes them.
fn report(asked: &Asked, name: &str, text: &str) -> Result<String, String> {
    for option in ["percentiles", "together", "unit", "all"] {
        if asked.has(option) {
            return Err(format!("--{option} is for histogram logs, and {name} is a report"));
        }
    }
    let report = Report::read(text).map_err(|why| format!("{name}:{why}"))?;
    match asked.value("output") {
        None => Ok(report.table()),
        Some(output) => report.write_files(Path::new(output)),
    }
}

fn histograms(
    asked: &Asked,
    sources: impl Iterator<Item = Result<Source, String>>,
) -> Result<String, String> {
    if asked.has("output") {
        return Err("--output is for reports; a table of histograms goes to standard output".to_owned());
    }
    let percentiles = match asked.value("percentiles") {
        None => PERCENTILES.to_vec(),
        Some(text) => percentiles(text)?,
    };
    let divisor = match asked.value("unit") {
        Some("us") => 1_000,
        Some("ms") => 1_000_000,
        _ => 1,
    };
    let together = match (asked.number("together", 1)?, asked.operands.len()) {
        (Some(milliseconds), _) => Some(milliseconds),
        // Workers do not end their windows in exactly the same millisecond.
        (None, 2..) => Some(1000),
        (None, _) => None,
    };
    let mut windows = Windows::new(Grouping { together, all_directions: asked.has("all") });
    for source in sources {
        let mut source = source?;
        if source.report.is_some() {
            return Err(alone(&source));
        }
        source.lines_to(&mut windows.log()).map_err(|why| format!("{}:{why}", source.name))?;
    }
    Ok(windows.table(&percentiles, divisor))
}

fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let number = |part: &str| match part.trim().parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err(format!("--percentiles={text}: \"{}\" is not a number between 0 and 100", part.trim())),
    };
    let mut percentiles = text.split([',', ':']).map(number).collect::<Result<Vec<_>, _>>()?;
    percentiles.sort_by(f64::total_cmp);
    Ok(percentiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_sorted_and_checked() {
        assert_eq!(percentiles("99.9, 50:0"), Ok(vec![0.0, 50.0, 99.9]));
        assert!(percentiles("50,x").unwrap_err().contains("\"x\" is not a number"));
        assert!(percentiles("101").is_err());
    }
}
