//! The table of facets in `docs/engines.md`. The rest of that page is written by hand.

use crate::engines::{self, Capability, Completion, Data, EngineInfo, Facets, UnitKind};
use std::fmt::Write;

/// The lines between which the table is.
const BEGIN: &str = "<!-- facets -->\n";
const END: &str = "<!-- end of facets -->\n";

/// The page with the table regenerated; `None` = it does not contain the lines around the table.
pub fn with_facets(page: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some([before, BEGIN, &table(), END, after].concat())
}

fn table() -> String {
    let mut text = String::from(
        "| engine | where its data lives | what a unit does | who completes it | what it can do |\n\
         |---|---|---|---|---|\n",
    );
    for engine in engines::engines() {
        writeln!(text, "{}", row(engine)).expect("strings take everything");
    }
    text
}

fn row(engine: &EngineInfo) -> String {
    if engine.is_external() {
        return format!("| `{}` | as its library says | | | |", engine.name);
    }
    if engine.is_stood_in_for {
        return format!("| `{}` | as the engine that stands in | | | |", engine.name);
    }
    let Facets { data, unit, completion, .. } = engine.facets;
    let data = match data {
        Data::LocalFiles => "local files",
        Data::OwnStorage => "its own storage",
        Data::OtherEnd => "at the other end",
        Data::Nowhere => "nowhere",
    };
    let unit = match unit {
        UnitKind::Transfers => "moves data",
        UnitKind::ActsOnNames(_) => "acts on a name",
        UnitKind::ActsOnExtents(_) => "acts on an extent",
        UnitKind::Works => "works without I/O",
    };
    let completion = match completion {
        Completion::Call => "the call",
        Completion::Engine => "the engine, later",
        Completion::Kernel => "the kernel, later",
        Completion::LibraryThreads => "threads of a library",
    };
    format!("| `{}` | {data} | {unit} | {completion} | {} |", engine.name, abilities(&engine.facets))
}

/// The capabilities of an engine, as text.
fn abilities(facets: &Facets) -> String {
    let words = [
        (Capability::Sync, "sync"),
        (Capability::Trim, "trim"),
        (Capability::Ranges, "several ranges per trim"),
        (Capability::Placement, "data placement"),
        (Capability::Extend, "extend"),
        (Capability::AtomicWrites, "atomic writes"),
        (Capability::Priorities, "priorities per I/O"),
        (Capability::Polling, "polling"),
    ];
    let can = words.into_iter().filter(|(capability, _)| facets.can(*capability));
    can.map(|(_, word)| word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/engines.md");

    #[test]
    fn the_page_has_the_facets_of_today() {
        let made = with_facets(PAGE).expect("the page has a place for the table");
        assert!(made == PAGE, "cargo run -p iolite-options --example manual makes docs/engines.md anew");
    }

    #[test]
    fn every_engine_that_can_be_used_has_an_entry() {
        let headings: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("###")).collect();
        for engine in engines::engines() {
            let quoted = format!("`{}`", engine.name);
            assert!(
                headings.iter().any(|heading| heading.contains(&quoted)),
                "docs/engines.md says nothing of {quoted}"
            );
        }
    }
}
