//! `--expect`: limits on figures, `randread.p99<2ms`.

use super::cases::{self, Pace};
use super::course::Measured;
use super::rows::{self, Row};
use super::target::Target;
use iolite_options::commands::{amount, microseconds};
use iolite_options::spelling::{closest, did_you_mean};
use iolite_page::text::{bandwidth, count, latency};

/// The figures that have limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Iops,
    Bandwidth,
    Mean,
    P50,
    P99,
    P999,
    Max,
}

const FIGURES: [(&str, Figure); 7] = [
    ("iops", Figure::Iops),
    ("bw", Figure::Bandwidth),
    ("p50", Figure::P50),
    ("p99", Figure::P99),
    ("p99.9", Figure::P999),
    ("max", Figure::Max),
    ("mean", Figure::Mean),
];

/// A limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// As it was given.
    text: String,
    /// The target that it is about; `None` = all.
    target: Option<String>,
    case: String,
    figure: Figure,
    /// The figure must be below the value; otherwise above.
    is_most: bool,
    value: f64,
}

/// The limits of all options.
pub fn all<'a>(given: impl Iterator<Item = &'a str>) -> Result<Vec<Limit>, String> {
    let mut limits = Vec::new();
    for text in given {
        let mut column = 1;
        for part in text.split(',') {
            let limit = Limit::parse(part)
                .map_err(|(at, why)| format!("--expect={text}: at character {}: {why}", column + at))?;
            limits.push(limit);
            column += part.chars().count() + 1;
        }
    }
    Ok(limits)
}

/// Checks that the limits are about cases that will be measured.
pub fn check(limits: &[Limit], targets: &[Target], pace: &Pace) -> Result<(), String> {
    for limit in limits {
        let mut known = Vec::new();
        let mut is_named = false;
        for target in targets {
            if limit.target.as_ref().is_some_and(|name| *name != target.name) {
                continue;
            }
            is_named = true;
            let place = target.place_before(pace)?;
            known.extend(cases::all(&place, pace).iter().flat_map(rows::names));
        }
        if !is_named {
            let names = targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(format!(
                "--expect={}: {} is no target ({names})",
                limit.text,
                limit.target.as_deref().unwrap_or_default()
            ));
        }
        if !known.contains(&limit.case) {
            let meant = did_you_mean(closest(&limit.case, known.iter().map(String::as_str)));
            known.dedup();
            return Err(format!(
                "--expect={}: there is no case {:?}{meant} (cases: {})",
                limit.text,
                limit.case,
                known.join(", ")
            ));
        }
    }
    Ok(())
}

impl Limit {
    /// Reads a limit. An error has the position of the mistake, in characters.
    fn parse(text: &str) -> Result<Limit, (usize, String)> {
        let at = |byte: usize| text[..byte].chars().count();
        let Some(sign) = text.find(['<', '>']) else {
            return Err((0, format!("{:?} needs a < or >, as in randread.p99<2ms", text.trim())));
        };
        let (left, right) = (&text[..sign], text[sign + 1..].trim_start_matches('='));
        let begin = left.len() - left.trim_start().len();
        let name = left.trim();
        let (target, name) = match name.rsplit_once(':') {
            Some((target, name)) => (Some(target.to_owned()), name),
            None => (None, name),
        };
        let Some((case, figure)) = name.split_once('.') else {
            return Err((at(begin), format!("{name:?} needs a case and a figure, as in randread.p99")));
        };
        let Some((_, figure)) = FIGURES.into_iter().find(|(known, _)| *known == figure) else {
            let place = at(sign).saturating_sub(left.len() - left.trim_end().len() + figure.chars().count());
            let known = FIGURES.map(|(known, _)| known);
            let meant = did_you_mean(closest(figure, known));
            return Err((place, format!("{figure:?} is none of {}{meant}", known.join(", "))));
        };
        let value =
            figure.value(right.trim()).map_err(|why| (at(text.len() - right.trim_start().len()), why))?;
        Ok(Limit {
            text: text.trim().to_owned(),
            target,
            case: case.to_owned(),
            figure,
            is_most: text[sign..].starts_with('<'),
            value,
        })
    }

    /// Whether it holds on each target that it is about, with the figures.
    pub fn judge(&self, results: &[Measured]) -> Vec<Result<String, String>> {
        let is_about =
            |result: &&Measured| self.target.as_ref().is_none_or(|name| *name == result.target.name);
        let judge = |result: &Measured| {
            let of = if results.len() > 1 { format!(" on {}", result.target.name) } else { String::new() };
            let Some(row) = result.rows().find(|row| row.name == self.case) else {
                return Err(format!("{}{of}: it was not measured", self.text));
            };
            let (value, words) = self.figure.of(&row);
            let words = format!("{}{of}: {words}", self.text);
            let holds = if self.is_most { value < self.value } else { value > self.value };
            if holds { Ok(words) } else { Err(words) }
        };
        results.iter().filter(is_about).map(judge).collect()
    }
}

impl Figure {
    /// A value with its unit.
    fn value(self, text: &str) -> Result<f64, String> {
        let told = |why: String| format!("{text:?}: {why}");
        match self {
            Figure::Iops => amount(text).map(|value| value as f64).map_err(told),
            Figure::Bandwidth => {
                let number = text.strip_suffix("/s").unwrap_or(text);
                amount(number).map(|value| value as f64).map_err(told)
            }
            _ if text.ends_with(|letter: char| letter.is_ascii_digit()) => {
                Err(told("a time needs a unit: us, ms, s".to_owned()))
            }
            _ => microseconds(text).map(|value| value as f64 * 1000.0).map_err(told),
        }
    }

    fn of(self, row: &Row) -> (f64, String) {
        let time = |value: f64| (value, latency(value));
        match self {
            Figure::Iops => (row.iops, format!("{} IOPS", count(row.iops))),
            Figure::Bandwidth => {
                let moved = row.bandwidth.unwrap_or(0.0);
                (moved, bandwidth(moved))
            }
            Figure::Mean => time(row.latency.mean),
            Figure::P50 => time(row.latency.p50),
            Figure::P99 => time(row.latency.p99),
            Figure::P999 => time(row.latency.p999),
            Figure::Max => time(row.latency.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let limits =
            all(["randread.p99<2ms,write.bw>500MB/s", " /mnt/a:durable-1.p99.9 <= 80us"].into_iter())
                .unwrap();
        let told: Vec<_> = limits
            .iter()
            .map(|limit| {
                (limit.target.as_deref(), limit.case.as_str(), limit.figure, limit.is_most, limit.value)
            })
            .collect();
        assert_eq!(
            told,
            [
                (None, "randread", Figure::P99, true, 2e6),
                (None, "write", Figure::Bandwidth, false, 500e6),
                (Some("/mnt/a"), "durable-1", Figure::P999, true, 80e3),
            ]
        );
    }

    #[test]
    fn mistakes_have_a_place_and_a_remedy() {
        for (text, at, why) in [
            ("randread.p99", 1, "needs a < or >"),
            ("read.bw>1GB/s,p99<2ms", 15, "needs a case and a figure"),
            ("randread.p98<2ms", 10, "\"p98\" is none of iops, bw, p50"),
            ("randread.p99<2", 14, "a time needs a unit"),
            ("randread.p99<2lightyears", 14, "2lightyears"),
            ("read.iops>x", 11, "\"x\""),
            ("", 1, "needs a < or >"),
        ] {
            let error = all([text].into_iter()).unwrap_err();
            assert!(
                error.contains(&format!("at character {at}: ")) && error.contains(why),
                "{text}: {error}"
            );
        }
    }
}
