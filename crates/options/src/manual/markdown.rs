//! `docs/options.md`: all options in tables.

use super::{VALUES, engine_options, limits, meaning, of_category, value_name};
use crate::definition::{Category, Definition};
use crate::engines::{self, EngineInfo};
use std::fmt::Write;

/// `write!` to a string, which cannot fail.
macro_rules! put {
    ($text:expr, $($format:tt)*) => { write!($text, $($format)*).expect("strings take everything") };
}

/// The whole document.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Options\n\n\
         Made from the table of options by `cargo run -p iolite-options --example manual`; do not edit.\n\n\
         `iolite --cmdhelp=NAME` says the same about one option, `iolite --enghelp=ENGINE` lists those of an engine.\n\n\
         ## Values\n\n| kind | how it is written |\n|---|---|\n",
    );
    for (name, meaning) in VALUES {
        put!(text, "| {name} | {} |\n", cell(meaning));
    }
    for category in Category::ALL {
        if of_category(category).next().is_none() {
            continue;
        }
        put!(
            text,
            "\n## {}\n\n| option | value | default | meaning |\n|---|---|---|---|\n",
            category.title()
        );
        of_category(category).for_each(|definition| row(&mut text, definition, &meaning(definition)));
    }
    text.push_str("\n## Engines\n\n| `ioengine` | what it does |\n|---|---|\n");
    for engine in engines::engines() {
        let names = names(std::iter::once(engine.name).chain(engine.aliases.iter().copied()));
        put!(text, "| {names} | {}. |\n", cell(engine.help));
    }
    put!(
        text,
        "\n## {}\n\n| option | value | default | meaning |\n|---|---|---|---|\n",
        Category::Engine.title()
    );
    for (definition, engines) in engine_options() {
        let of = names(engines.iter().map(|engine: &&EngineInfo| engine.name));
        row(&mut text, definition, &format!("{of}: {}", meaning(definition)));
    }
    text
}

fn row(text: &mut String, definition: &Definition, meaning: &str) {
    let value = match limits(definition) {
        Some(limits) => format!("{}, {limits}", value_name(definition)),
        None => value_name(definition).to_owned(),
    };
    let default = definition.default.map_or(String::new(), |default| format!("`{}`", cell(default)));
    let mut meaning = cell(meaning);
    for (keyword, what) in definition.keywords {
        put!(meaning, "<br>`{keyword}`");
        if !what.is_empty() {
            put!(meaning, ": {}", cell(what));
        }
    }
    put!(text, "| {} | {value} | {default} | {meaning} |\n", names(definition.names()));
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Escapes characters that would end a cell or count as markup.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*")
}
