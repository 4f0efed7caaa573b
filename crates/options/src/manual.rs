//! The manual, generated from the tables: `docs/options.md`, the man page `docs/iolite.1`, and the table of facets in
//! `docs/engines.md`.
//!
//! They are checked in, so that they can be read without a build. After a change to an option or an engine,
//! `cargo run -p iolite-options --example manual` generates them again; until then a test fails.

mod facets;
mod markdown;
mod roff;

pub use facets::with_facets;
pub use markdown::markdown;
pub use roff::roff;

use crate::definition::{Category, Definition, Kind, Limits, Status};
use crate::engines::{self, EngineInfo};
use crate::registry;

/// The note about an option that has no effect yet.
const NOT_YET: &str = "Not supported yet.";

/// The types of values: their names in the manual, and how they are written.
const VALUES: &[(&str, &str)] = &[
    ("text", "Anything. Surrounding blanks are removed."),
    ("word", "One of the words listed with the option."),
    (
        "integer",
        "Decimal, or hexadecimal behind 0x. The suffixes k, m, g, t, p (also kb, mb, …; in either case) multiply by \
         powers of 1024; kib, mib, … by powers of 1000. With kb_base=1000 it is the other way round. In parentheses, \
         an expression: (4k*3+512). Where directions differ: reads,writes,trims.",
    ),
    ("size", "Like an integer, in bytes, or with % a part of the file or device."),
    (
        "time",
        "A number and d, h, m, s, ms or us. Without a unit, in seconds unless the option says otherwise.",
    ),
    ("0 or 1", "No or yes."),
    ("flag", "Like 0 or 1; the name alone means 1."),
    ("range", "Two integers: 4k-16k. Where directions differ: 4k-8k,1k-2k."),
    ("numbers", "Numbers with fractions, separated by colons: 99:99.9:99.99."),
];

/// The name of an option's value in the manual.
fn value_name(definition: &Definition) -> &'static str {
    match definition.kind {
        Kind::Str if definition.keywords.is_empty() => "text",
        Kind::Str | Kind::StrNumber => "word",
        Kind::Time => "time",
        Kind::Int => "integer",
        Kind::Size => "size",
        Kind::Bool => "0 or 1",
        Kind::Flag => "flag",
        Kind::Range => "range",
        Kind::FloatList => "numbers",
    }
}

/// The limits of an option's numbers, unless they are those of its type.
fn limits(definition: &Definition) -> Option<String> {
    match definition.limits {
        _ if matches!(definition.kind, Kind::Bool | Kind::Flag) => None,
        Limits::None | Limits::AtLeast(0) | Limits::OnlyMin(0) => None,
        Limits::AtLeast(least) | Limits::OnlyMin(least) => Some(format!("at least {least}")),
        Limits::Between(least, most) => Some(format!("{least} to {most}")),
        Limits::Floats(least, most) => Some(format!("{least} to {most}")),
    }
}

/// The options of a category, in the order of the table.
fn of_category(category: Category) -> impl Iterator<Item = &'static Definition> {
    registry::job_options().filter(move |definition| definition.category == category)
}

/// Every option of engines, once, with the engines that have it.
fn engine_options() -> Vec<(&'static Definition, Vec<&'static EngineInfo>)> {
    let mut all: Vec<(&'static Definition, Vec<&'static EngineInfo>)> = Vec::new();
    for engine in engines::engines() {
        for &definition in engine.options {
            match all.iter_mut().find(|(known, _)| std::ptr::eq(*known, definition)) {
                Some((_, engines)) => engines.push(engine),
                None => all.push((definition, vec![engine])),
            }
        }
    }
    all
}

/// The help of an option, as sentences.
fn meaning(definition: &Definition) -> String {
    let mut text = format!("{}.", definition.help.trim_end_matches('.'));
    if definition.status() == Status::NotYet {
        text.push(' ');
        text.push_str(NOT_YET);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_its_place() {
        let listed: usize = Category::ALL.into_iter().map(|category| of_category(category).count()).sum();
        assert_eq!(listed, registry::job_options().count());
        let (page, table) = (roff(), markdown());
        for definition in registry::job_options() {
            assert!(table.contains(&format!("| `{}`", definition.name)), "{}", definition.name);
            assert!(
                page.contains(&format!("\\fB{}\\fR", definition.name.replace('-', "\\-"))),
                "{}",
                definition.name
            );
        }
        for engine in engines::engines() {
            for definition in engine.options {
                assert!(table.contains(&format!("| `{}`", definition.name)), "{}", definition.name);
            }
        }
    }

    #[test]
    fn every_kind_of_value_is_explained() {
        for definition in registry::job_options() {
            let name = value_name(definition);
            assert!(VALUES.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
