//! `iolite compare`: compares stored results.

mod data;
mod sides;
mod standard_tests;
mod table;

use crate::subcommands::report;
use iolite_compare::{Comparison, Limit, Outcome, Side};
use iolite_options::commands::Asked;
use iolite_page::Curves;
use std::path::Path;

/// The sides and the result of the comparison.
pub struct Answer {
    sides: Vec<Side>,
    limits: Vec<Limit>,
    comparison: Comparison,
    /// The curves, if the answer is a page.
    curves: Curves,
}

/// The comparison as text, and the exit status.
pub fn run(program: &str, asked: &Asked) -> Result<(String, u8), String> {
    if let Some(text) = standard_tests::answer(asked)? {
        let sources = asked.operands.iter().map(|word| (Path::new(word), "one of the results"));
        return Ok((report::deliver(asked, text, sources)?, 0));
    }
    let print = match asked.value("output-format") {
        Some("json") => data::json,
        Some("csv") => data::csv,
        Some("html") => page,
        _ => table::text,
    };
    let limits = limits(asked)?;
    let allowed = allowed(asked)?;
    let is_drawn = asked.value("output-format") == Some("html");
    let mut curves = Curves::default();
    let sides = sides::read(program, asked, |side, report| {
        if is_drawn {
            curves.add(side, report);
        }
    })?;
    let comparison =
        iolite_compare::compare(&sides, &limits, &allowed).map_err(|why| format!("--fail-if: {why}"))?;
    let status = match comparison.limits.iter().max() {
        Some(Outcome::Broken) => 1,
        Some(Outcome::Open) if asked.has("fail-inconclusive") => 1,
        Some(Outcome::Open) => 3,
        Some(Outcome::Kept) | None => 0,
    };
    let answer = Answer { sides, limits, comparison, curves };
    let text = print(&answer);
    let runs = answer.sides.iter().flat_map(|side| &side.runs);
    let sources = runs.map(|run| match run.name.as_str() {
        sides::STDIN => Path::new("/dev/stdin"),
        name => Path::new(name),
    });
    let sources = sources.map(|source| (source, "one of the results"));
    Ok((report::deliver(asked, text, sources)?, status))
}

impl Answer {
    /// Compares sides with the first of them. The options in `allowed` may differ.
    pub fn of(sides: Vec<Side>, allowed: &[String]) -> Result<Answer, String> {
        let comparison = iolite_compare::compare(&sides, &[], allowed)?;
        Ok(Answer { sides, limits: Vec::new(), comparison, curves: Curves::default() })
    }

    /// The answer as text.
    pub fn text(&self) -> String {
        table::text(self)
    }

    /// The answer as JSON.
    pub fn json(&self) -> String {
        data::json(self)
    }
}

fn page(answer: &Answer) -> String {
    iolite_page::of_comparison("", &answer.sides, &answer.comparison, &answer.limits, &answer.curves)
}

fn limits(asked: &Asked) -> Result<Vec<Limit>, String> {
    let read = |text: &str| {
        Limit::parse(text)
            .map_err(|bad| format!("--fail-if={text}: at character {}: {}", bad.column, bad.why))
    };
    asked.values("fail-if").map(read).collect()
}

fn allowed(asked: &Asked) -> Result<Vec<String>, String> {
    let lists = asked.values("allow");
    let names = lists.flat_map(|list| list.split(',')).map(|name| name.trim().to_owned());
    let check = |name: String| {
        if iolite_compare::may_differ().any(|known| known == name) {
            return Ok(name);
        }
        let known: Vec<&str> = iolite_compare::may_differ().collect();
        Err(format!("--allow: {name:?} is not one of {}", known.join(", ")))
    };
    names.map(check).collect()
}
