//! The options as settings of the procedure.

use super::purge::Purge;
use super::target::Target;
use iolite_options::commands::{self, Asked};
use iolite_page::text::bytes;
use iolite_procedures::pts::{Class, MINUTE, Pattern, QUICK, QUICK_RANGE, Settings, Test};
use serde_json::{Value, json};

/// What the test operator has chosen.
pub struct Choices {
    pub settings: Settings,
    pub purge: Purge,
    /// What of `--test=all` is impossible here.
    pub left_out: Option<String>,
}

impl Choices {
    pub fn of(asked: &Asked, target: &Target) -> Result<Choices, String> {
        let class = match asked.value("class") {
            Some("client") => Class::Client,
            _ => Class::Enterprise,
        };
        let is_quick = asked.has("quick");
        let cell = match (cell(asked)?, is_quick) {
            (Some(seconds), _) => seconds,
            (None, true) => QUICK,
            (None, false) => MINUTE,
        };
        let number = |word: &str| -> Result<Option<u32>, String> {
            /// More than any device takes at once.
            const MOST: u64 = 4096;
            match asked.number(word, 1)? {
                Some(number) if number > MOST => Err(format!("--{word}={number}: must be at most {MOST}")),
                number => Ok(number.map(|number| number as u32)),
            }
        };
        let (tests, left_out) = tests(asked, target.block)?;
        let settings = Settings {
            file: target.path.display().to_string(),
            is_file: target.is_file,
            is_direct: target.is_direct,
            capacity: target.capacity,
            range: range(asked, target, class, is_quick)?,
            block: target.block,
            class,
            tests,
            threads: number("threads")?,
            depth: number("depth")?,
            pattern: pattern(asked.value("pattern"))?,
            cell,
            is_quick,
        };
        if settings.tests.contains(&Test::Composite) && target.block > 512 {
            return Err(format!(
                "--test=ecw: {}: its workload has blocks of 0.5 KiB, and the smallest of this device has {}",
                target.name,
                bytes(target.block as f64)
            ));
        }
        Ok(Choices { settings, purge: Purge::of(asked.value("purge"))?, left_out })
    }

    /// The parameters of the header.
    pub fn told(&self) -> Value {
        let Settings { range, class, tests, threads, depth, pattern, cell, is_quick, .. } = &self.settings;
        json!({
            "class": class.name(),
            "tests": tests.iter().map(|test| test.word()).collect::<Vec<_>>(),
            "range_bytes": range,
            "threads": threads,
            "depth": depth,
            "pattern": pattern.word(),
            "cell_seconds": cell,
            "quick": is_quick,
            "purge": self.purge.word(),
        })
    }
}

/// The tests, in the order of the specification, and what of all of them is left out for this smallest block.
fn tests(asked: &Asked, block: u64) -> Result<(Vec<Test>, Option<String>), String> {
    let words: Vec<&str> = asked.values("test").flat_map(|list| list.split(',')).map(str::trim).collect();
    if words.is_empty() {
        return Ok((Test::USUAL.to_vec(), None));
    }
    if words == ["all"] {
        let is_possible = |test: &Test| *test != Test::Composite || block <= 512;
        let possible: Vec<Test> = Test::ALL.into_iter().filter(is_possible).collect();
        let words = "the composite block size workload (ecw) is left out, because the device has no blocks of 0.5 KiB";
        let left_out = (possible.len() < Test::ALL.len()).then(|| words.to_owned());
        return Ok((possible, left_out));
    }
    let mut found = Vec::new();
    for word in words {
        let test = Test::of(word).ok_or_else(|| {
            let known: Vec<&str> = Test::ALL.iter().map(|test| test.word()).collect();
            format!("--test: {word:?} is not one of {}, all", known.join(", "))
        })?;
        found.push(test);
    }
    Ok((Test::ALL.into_iter().filter(|test| found.contains(test)).collect(), None))
}

/// Seconds of a cell.
fn cell(asked: &Asked) -> Result<Option<f64>, String> {
    const LEAST: u64 = 10_000;
    let Some(text) = asked.value("cell") else { return Ok(None) };
    let told = |why: &str| format!("--cell={text}: {why}");
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let time = if is_plain { format!("{text}s") } else { text.to_owned() };
    match commands::microseconds(&time).map_err(|why| told(&why))? {
        short if short < LEAST => Err(told("must be at least 10ms")),
        time => Ok(Some(time as f64 / 1e6)),
    }
}

/// The bytes that are used: whole MiB.
fn range(asked: &Asked, target: &Target, class: Class, is_quick: bool) -> Result<u64, String> {
    let capacity = target.capacity;
    let of_percent = |percent: f64| (capacity as f64 * percent / 100.0) as u64;
    let wanted = match asked.value("range") {
        None => of_percent(class.percent() as f64),
        Some(text) => {
            let told = |why: &str| format!("--range={text}: {why}");
            let wanted = match text.strip_suffix('%') {
                Some(percent) => {
                    let percent: f64 = percent.trim().parse().map_err(|_| told("not a number before %"))?;
                    if !(percent > 0.0 && percent <= 100.0) {
                        return Err(told("must be above 0% and at most 100%"));
                    }
                    of_percent(percent)
                }
                None => asked.number("range", 1)?.unwrap_or(0),
            };
            if wanted > capacity {
                return Err(told(&format!("{} has only {}", target.name, bytes(capacity as f64))));
            }
            wanted
        }
    };
    let wanted = if is_quick { wanted.min(QUICK_RANGE) } else { wanted };
    let whole = wanted >> 20 << 20;
    if whole < Settings::LEAST_RANGE {
        return Err(format!(
            "{}: the range has {}, and the procedure needs {} at least",
            target.name,
            bytes(whole as f64),
            bytes(Settings::LEAST_RANGE as f64)
        ));
    }
    Ok(whole)
}

fn pattern(given: Option<&str>) -> Result<Pattern, String> {
    match given {
        None | Some("random") => Ok(Pattern::Random),
        Some("zeroes") => Ok(Pattern::Zeroes),
        Some(text) => {
            let percent = text.strip_prefix("compress:").and_then(|percent| percent.parse().ok());
            match percent.filter(|percent| (1..=99).contains(percent)) {
                Some(percent) => Ok(Pattern::Compressible(percent)),
                None => {
                    Err(format!("--pattern={text}: not one of random, zeroes, compress:PERCENT (1 to 99)"))
                }
            }
        }
    }
}
