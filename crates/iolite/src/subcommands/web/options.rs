//! The options for the job editor: names, types, help, keywords. Derived from their declarations.

use iolite_options::definition::{Definition, Kind, Status};
use iolite_options::engines::engines;
use iolite_options::registry::job_options;
use serde_json::{Value, json};

/// All options that have an effect, in JSON: `edit.js` of `iolite-page` reads it.
pub fn as_json() -> String {
    let of_jobs =
        job_options().filter(|option| option.status() == Status::Works).map(|option| told(option, None));
    let of_engines = engines().iter().flat_map(|engine| {
        let own = engine.options.iter().filter(|option| option.status() == Status::Works);
        own.map(move |option| told(option, Some(engine.name)))
    });
    Value::Array(of_jobs.chain(of_engines).collect()).to_string()
}

fn told(option: &Definition, engine: Option<&str>) -> Value {
    let keywords: Vec<[&str; 2]> = match option.name {
        "ioengine" => engines().iter().map(|engine| [engine.name, engine.help]).collect(),
        _ => option.keywords.iter().map(|(word, help)| [*word, *help]).collect(),
    };
    json!({
        "name": option.name,
        "aliases": option.aliases,
        "type": type_of(option.kind),
        "default": option.default,
        "help": option.help,
        "keywords": keywords,
        "engine": engine,
    })
}

/// The type of a value, in a word or two. (The words of the command line's help are fio's.)
fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Str | Kind::StrNumber => "text",
        Kind::Time => "time",
        Kind::Int => "number",
        Kind::Size => "size",
        Kind::Bool => "0 or 1",
        Kind::Flag => "switch",
        Kind::Range => "range",
        Kind::FloatList => "numbers",
    }
}
