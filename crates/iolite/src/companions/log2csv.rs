//! `iolite log2csv`: latencies for spreadsheets and scripts, from json+ reports and histogram logs.

mod bins;
mod table;
mod windows;

use bins::Report;
use iolite_options::commands::Asked;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use windows::{Grouping, Windows};

/// Percentiles of a window, if none are asked for.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// The answer, to be printed.
pub fn run(asked: &Asked) -> Result<String, String> {
    let sources =
        asked.operands.iter().map(|path| Source::read(Path::new(path))).collect::<Result<Vec<_>, _>>()?;
    let reports: Vec<&Source> = sources.iter().filter(|source| source.is_report()).collect();
    match (sources.len(), reports.len()) {
        (0, _) => Err("needs a json+ report or histogram logs".to_owned()),
        (_, 0) => histograms(asked, &sources),
        (1, 1) => report(asked, reports[0]),
        (_, 1) => Err(format!("{}: a report is converted alone", reports[0].name)),
        _ => Err(format!("{}: one report at a time", reports[1].name)),
    }
}

/// The bins of a report: one table for all jobs, or files as `fio_jsonplus_clat2csv` makes them.
fn report(asked: &Asked, source: &Source) -> Result<String, String> {
    for letter in ['p', 't', 'u', 'a'] {
        if asked.value(letter).is_some() {
            return Err(format!("-{letter} is for histogram logs, and {} is a report", source.name));
        }
    }
    let report = Report::read(&source.text).map_err(|why| format!("{}:{why}", source.name))?;
    match asked.value('o') {
        None => Ok(report.table()),
        Some(output) => report.write_files(Path::new(output)),
    }
}

fn histograms(asked: &Asked, sources: &[Source]) -> Result<String, String> {
    if asked.value('o').is_some() {
        return Err("-o is for reports; a table of histograms goes to standard output".to_owned());
    }
    let percentiles = match asked.value('p') {
        None => PERCENTILES.to_vec(),
        Some(text) => percentiles(text)?,
    };
    let divisor = match asked.value('u') {
        None | Some("ns") => 1,
        Some("us") => 1_000,
        Some("ms") => 1_000_000,
        Some(other) => return Err(format!("-u {other}: not one of ns, us, ms")),
    };
    let together = match (asked.number('t', 1)?, sources.len()) {
        (Some(milliseconds), _) => Some(milliseconds),
        // Workers do not end their windows in the same millisecond.
        (None, 2..) => Some(1000),
        (None, _) => None,
    };
    let mut windows = Windows::new(Grouping { together, all_directions: asked.value('a').is_some() });
    for source in sources {
        windows.add(&source.text).map_err(|why| format!("{}:{why}", source.name))?;
    }
    Ok(windows.table(&percentiles, divisor))
}

fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let number = |part: &str| match part.trim().parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err(format!("-p {text}: \"{}\" is not a number between 0 and 100", part.trim())),
    };
    let mut percentiles = text.split([',', ':']).map(number).collect::<Result<Vec<_>, _>>()?;
    percentiles.sort_by(f64::total_cmp);
    Ok(percentiles)
}

/// A file, inflated where it was compressed.
struct Source {
    name: String,
    text: String,
}

impl Source {
    fn read(path: &Path) -> Result<Source, String> {
        let name = path.display().to_string();
        let text = text_of(path).map_err(|error| format!("{name}: {error}"))?;
        Ok(Source { name, text })
    }

    /// A report begins with a brace, possibly below notes; a log with a number.
    fn is_report(&self) -> bool {
        let first = self.text.trim_start().chars().next();
        first == Some('{')
            || (self.text.lines().any(|line| line == "{") && !first.is_some_and(|c| c.is_ascii_digit()))
    }
}

fn text_of(path: &Path) -> std::io::Result<String> {
    /// The first byte of every zlib stream.
    const ZLIB: u8 = 0x78;
    let mut reader = BufReader::new(File::open(path)?);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    if bytes.first() == Some(&ZLIB) {
        let mut inflated = Vec::new();
        iolite_logs::inflate::streams(&mut bytes.as_slice(), &mut inflated)?;
        bytes = inflated;
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not a text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is() {
        let is_report = |text: &str| Source { name: String::new(), text: text.into() }.is_report();
        assert!(is_report("{\n}") && is_report("note: cold\n{\n}\n"));
        assert!(!is_report("10, 0, 4096, 1\n") && !is_report("") && !is_report("hello"));
    }

    #[test]
    fn percentiles_are_sorted_and_checked() {
        assert_eq!(percentiles("99.9, 50:0"), Ok(vec![0.0, 50.0, 99.9]));
        assert!(percentiles("50,x").unwrap_err().contains("\"x\" is not a number"));
        assert!(percentiles("101").is_err());
    }
}
