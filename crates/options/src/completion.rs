//! Completion of the command line for bash, zsh and fish, generated from the tables: options, engines, keywords.
//!
//! Each script is self-contained: it does not run the program while the user waits, and works without it.

mod bash;
mod fish;
mod zsh;

use crate::definition::{Definition, Kind};
use crate::run_options::{self, Argument};
use crate::{commands, engines, registry};

/// The script for a shell.
pub fn script(shell: &str) -> Option<String> {
    match shell {
        "bash" => Some(bash::script()),
        "zsh" => Some(zsh::script()),
        "fish" => Some(fish::script()),
        _ => None,
    }
}

/// The possible values of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// The option has no value.
    None,
    /// A value that cannot be completed.
    Anything,
    /// The name of a file or directory.
    File,
    /// The name of a section of a job file on the command line.
    Section,
    /// One of these words.
    Words(Vec<&'static str>),
}

/// An option as a shell sees it.
#[derive(Clone, Debug)]
struct Word {
    names: Vec<&'static str>,
    help: String,
    /// It may be given without a value.
    alone: bool,
    value: Value,
}

/// The job options whose values are file names.
const FILES: &[&str] = &["filename", "directory", "opendir"];

/// The options of the run.
fn run_words() -> impl Iterator<Item = Word> {
    run_options::ALL.iter().filter(|option| option.land.is_some()).map(|option| Word {
        names: vec![option.name],
        help: option.help.join(" "),
        alone: matches!(option.argument, Argument::None | Argument::Optional(_)),
        value: run_value(option),
    })
}

/// The options of jobs, except engines' own.
fn job_words() -> impl Iterator<Item = Word> {
    registry::job_options().filter(|definition| definition.land.is_some()).map(job_word)
}

/// All options with dashes, except engines' own: those of the run, then those of jobs.
fn words() -> Vec<Word> {
    run_words().chain(job_words()).collect()
}

/// The engines that can be used, with their own options.
fn engine_words() -> Vec<(&'static str, Vec<Word>)> {
    let of = |engine: &engines::EngineInfo| {
        engine.options.iter().filter(|definition| definition.land.is_some()).map(|d| job_word(d)).collect()
    };
    engines::engines().iter().map(|engine| (engine.name, of(engine))).collect()
}

/// The profiles, with their own options.
fn profile_words() -> Vec<(&'static str, Vec<Word>)> {
    let of = |profile: &crate::profiles::Profile| profile.options.iter().map(|d| job_word(d)).collect();
    crate::profiles::ALL.iter().map(|profile| (profile.name, of(profile))).collect()
}

fn job_word(definition: &'static Definition) -> Word {
    let value = match definition.name {
        "ioengine" => Value::Words(engine_names()),
        name if FILES.contains(&name) => Value::File,
        _ if !definition.keywords.is_empty() => {
            Value::Words(definition.keywords.iter().map(|(keyword, _)| *keyword).collect())
        }
        _ if matches!(definition.kind, Kind::Bool | Kind::Flag) => Value::Words(vec!["0", "1"]),
        _ => Value::Anything,
    };
    Word {
        names: definition.names().collect(),
        help: definition.help.to_owned(),
        alone: definition.kind.value_is_optional(),
        value,
    }
}

fn run_value(option: &run_options::RunOption) -> Value {
    match option.name {
        "cmdhelp" => Value::Words(registry::job_options().map(|definition| definition.name).collect()),
        "enghelp" => Value::Words(engine_names()),
        "output" | "aux-path" => Value::File,
        "section" => Value::Section,
        "output-format" => Value::Words(crate::OutputFormat::NAMES.map(|(name, _)| name).to_vec()),
        "terse-version" => Value::Words(vec!["2", "3", "4", "5"]),
        "live" => Value::Words(vec!["line", "full"]),
        "eta" | "color" => Value::Words(vec!["always", "never", "auto"]),
        "help" => Value::Words(vec!["all"]),
        "profile" => Value::Words(crate::profiles::ALL.iter().map(|profile| profile.name).collect()),
        "trigger-file" | "remote-config" | "inflate-log" => Value::File,
        "debug" => Value::Words(run_options::DEBUG_CATEGORIES.to_vec()),
        _ if option.argument == Argument::None => Value::None,
        _ => Value::Anything,
    }
}

/// The names that take no word after them.
fn alone<'a>(words: impl IntoIterator<Item = &'a Word>) -> impl Iterator<Item = &'static str> {
    words.into_iter().filter(|word| word.alone).flat_map(|word| word.names.iter().copied())
}

fn engine_names() -> Vec<&'static str> {
    engines::engines().iter().map(|engine| engine.name).collect()
}

fn subcommands() -> Vec<&'static str> {
    commands::ALL.iter().map(|command| command.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_tables() {
        let words = words();
        let value = |name: &str| {
            let word = words.iter().find(|word| word.names.contains(&name));
            word.unwrap_or_else(|| panic!("{name} is missing")).value.clone()
        };
        assert_eq!(value("blocksize"), Value::Anything);
        assert_eq!(value("filename"), Value::File);
        assert_eq!(value("direct"), Value::Words(vec!["0", "1"]));
        assert_eq!(value("version"), Value::None);
        let Value::Words(engines) = value("ioengine") else { panic!("no words") };
        assert!(engines.contains(&"io_uring") && engines.contains(&"psync"));
        let Value::Words(directions) = value("rw") else { panic!("no words") };
        assert!(directions.contains(&"randread"));
    }

    #[test]
    fn options_without_effect_are_not_offered() {
        for word in words() {
            let name = word.names[0];
            let works = registry::find_job(name).is_some_and(|definition| definition.land.is_some());
            let runs = run_options::ALL.iter().any(|option| option.name == name && option.land.is_some());
            assert!(works || runs, "{name}");
        }
    }

    #[test]
    fn there_is_a_script_for_each_shell_that_is_named() {
        let completion = commands::ALL.iter().find(|command| command.name == "completion");
        for shell in completion.expect("it is a subcommand").choices {
            assert!(script(shell).is_some(), "{shell}");
        }
        assert!(script("tcsh").is_none());
    }
}
