//! `--showcmd`: a job file as a command line.
//!
//! Names are canonical, and options are in the order in which they are applied. The defaults of the command line, and
//! those at the start of the file, come first, without a name; later defaults need `--name=global`, otherwise they
//! would be options of the job before them. Values that a shell would split are quoted. An option without a value that
//! stands for the job's name (`write_lat_log`) gets that name, because on a command line the next word would be its
//! value; in defaults it becomes an option of each job. A section that `name=` renames gets the `filename_format` that
//! keeps its file names. A placeholder replaces each secret.

use crate::assemble::{files_named_after, in_file_order};
use crate::registry;
use crate::section::Section;
use std::fmt::Write;

/// The command line for the sections of one job file, with its final newline. `defaults` are given on the command
/// line and apply to this file; if the file is empty they are left out.
pub(crate) fn render(program: &str, defaults: &[&Section], sections: &[&Section]) -> String {
    if sections.is_empty() {
        return "\n".to_owned();
    }
    let as_written = defaults.iter().map(|section| (section, section.settings.iter().collect()));
    let of_file = sections.iter().map(|section| (section, in_file_order(&section.settings)));
    let mut line = String::new();
    let mut jobs = 0;
    let mut standing_alone: Vec<&str> = Vec::new();
    let mut default_format =
        registry::find_job("filename_format").and_then(|it| it.default).unwrap_or_default();
    for (section, settings) in as_written.chain(of_file) {
        if !section.is_global {
            push(&mut line, "name", Some(section.job_name()), false);
            standing_alone.iter().for_each(|name| push(&mut line, name, Some(section.job_name()), false));
            jobs += 1;
        } else if jobs > 0 {
            push(&mut line, "name", Some("global"), false);
        }
        let format = section.last("filename_format").unwrap_or(default_format);
        if section.is_global {
            default_format = format;
        }
        for setting in settings {
            // Here `--name` would start another job.
            if setting.key == "name" {
                continue;
            }
            let definition = registry::find_job(&setting.key);
            let name = definition.map_or(setting.key.as_str(), |definition| definition.name);
            let is_empty = setting.value.as_deref().is_none_or(str::is_empty);
            let stands_alone = is_empty && definition.is_some_and(|definition| definition.stands_alone);
            if section.is_global {
                standing_alone.retain(|known| *known != name);
                if stands_alone {
                    standing_alone.push(name);
                    continue;
                }
            }
            let value = setting.value.as_deref().map(|value| registry::shown(name, value));
            let value = if stands_alone { Some(section.job_name()) } else { value.as_deref() };
            push(&mut line, name, value, name == "description");
        }
        if !section.is_global && section.job_name() != section.name {
            push(&mut line, "filename_format", Some(&files_named_after(&section.name, format)), false);
        }
    }
    if line.is_empty() { "\n".to_owned() } else { format!("{program} {line}\n") }
}

fn push(line: &mut String, name: &str, value: Option<&str>, always_quoted: bool) {
    // Writing to a String does not fail.
    let _ = match value {
        None => write!(line, "--{name} "),
        Some(value) if always_quoted => write!(line, "--{name}={} ", double_quoted(value)),
        Some(value) if value.chars().all(is_plain) => write!(line, "--{name}={value} "),
        Some(value) => write!(line, "--{name}={} ", single_quoted(value)),
    };
}

/// Characters that have no special meaning in any shell.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || "%+,-./:=@^_".contains(character)
}

fn single_quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}

fn double_quoted(value: &str) -> String {
    let mut quoted = String::from("\"");
    for character in value.chars() {
        if matches!(character, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}
