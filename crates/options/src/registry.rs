//! All options of the language: looking one up by name, and applying a value to a job.

use crate::definition::{Definition, Given, Kind, Scope, Status};
use crate::engines::{self, EngineInfo};
use crate::spelling::closest;
use crate::values::{self, Notes};
use crate::{Diagnostic, JobOptions, Name, Origin, defs, profiles, rules};
use std::borrow::Cow;

/// Every job option, in the order of the help.
pub fn job_options() -> impl Iterator<Item = &'static Definition> {
    defs::ALL.iter().flat_map(|group| group.iter())
}

/// The options of the run as a whole, by name, in the order of the help.
pub fn run_options() -> impl Iterator<Item = (&'static str, Status)> {
    crate::run_options::ALL
        .iter()
        .map(|option| (option.name, if option.land.is_some() { Status::Works } else { Status::NotYet }))
}

/// The option of this name or alias: of every job or of this engine; otherwise an obsolete one of fio, or one of a
/// profile.
pub fn find(name: &str, engine: &str) -> Option<&'static Definition> {
    find_job(name)
        .or_else(|| engines::engine(engine)?.option(name))
        .or_else(|| defs::PAST.iter().find(|definition| definition.answers_to(name)))
        .or_else(|| profiles::find_option(name).map(|(_, definition)| definition))
}

/// The job option of this name or alias.
pub fn find_job(name: &str) -> Option<&'static Definition> {
    job_options().find(|definition| definition.answers_to(name))
}

/// The engines that have an own option of this name or alias, in the order of the help.
pub fn find_any_engine(name: &str) -> Vec<(&'static EngineInfo, &'static Definition)> {
    engines::engines().iter().filter_map(|engine| Some((engine, engine.option(name)?))).collect()
}

/// The value of an option for output: a placeholder if it is a secret of any engine, and without the passwords of URLs.
pub fn shown<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    let is_secret = || find_any_engine(name).iter().any(|(_, definition)| definition.is_secret);
    if !value.is_empty() && is_secret() {
        return Cow::Borrowed(engines::PLACEHOLDER);
    }
    match value.rsplit_once('@') {
        // (A host without a scheme, which is refused. It may contain a password.)
        Some((_, host)) if name == "http_host" => format!("{}@{host}", engines::PLACEHOLDER).into(),
        _ => engines::masked(value),
    }
}

/// A line without `=`, for output: only its first word if that is an option whose value is a secret.
pub fn shown_line(line: &str) -> &str {
    let name = line.split_whitespace().next().unwrap_or_default();
    if shown(name, line) == line { line } else { name }
}

/// The job option, or option of this engine, that was probably meant by an unknown name.
pub fn suggest(name: &str, engine: &str) -> Option<&'static str> {
    let own = engines::engine(engine).map_or(&[][..], |engine| engine.options);
    let names = job_options().chain(own.iter().copied()).flat_map(Definition::names);
    closest(name, names)
}

/// Parses a value, checks it, stores it in the job and remembers where it came from.
///
/// Suspicious but accepted input adds to `warnings`; what is accepted depends on the name of the program (see [`Notes`]).
///
/// # Errors
/// The option has no effect yet, or the value is wrong. The message names option and value, and the job is unchanged.
pub fn apply(
    job: &mut JobOptions,
    definition: &'static Definition,
    value: Option<&str>,
    origin: Origin,
    warnings: &mut Vec<Diagnostic>,
    name: Name,
) -> Result<(), Diagnostic> {
    let text = value.map(str::trim);
    let as_given = match text {
        Some(text) => format!("{}={}", definition.name, shown(definition.name, text)),
        None => definition.name.to_owned(),
    };
    let diagnostic = |message: String| Diagnostic {
        origin: Some(origin.clone()),
        message: format!("{as_given}: {message}"),
    };
    if name.is_strict() {
        refused_by_fio(definition, value.unwrap_or_default()).map_or(Ok(()), |why| Err(diagnostic(why)))?;
    }
    let mut given = Given { definition, text, kb_base: job.measurement.kb_base, notes: Notes::of(name) };
    match definition.land {
        Some(land) => land.put(job, &mut given).map_err(diagnostic)?,
        None if definition.scope == Scope::Profile => profiles::ignore(&mut given).map_err(diagnostic)?,
        None if asks_for_nothing(definition, text) => {}
        None => return Err(diagnostic(format!("option {} is not supported yet", definition.name))),
    }
    warnings.extend(given.notes.take().into_iter().map(diagnostic));
    job.origins.insert(definition.name.to_owned(), origin);
    Ok(())
}

/// Numbers behind which fio takes no percent sign. (Behind others it ignores it.)
const WITHOUT_PERCENT: [&str; 3] = ["iodepth", "verify_offset", "replay_time_scale"];

/// Why fio refuses a value that we would read. (In job files, blanks around values have been taken.)
fn refused_by_fio(definition: &Definition, value: &str) -> Option<String> {
    if value.ends_with('%') && WITHOUT_PERCENT.contains(&definition.name) {
        return Some("is a number, without a % sign".to_owned());
    }
    let has_blanks = value.starts_with(char::is_whitespace)
        || value.ends_with(char::is_whitespace) && !value.contains([',', ':']);
    let is_keyword = definition.kind == Kind::Str && !definition.keywords.is_empty();
    (is_keyword && has_blanks).then(|| "is a keyword, without blanks around it".to_owned())
}

/// Whether this is the option's default, or a value that switches it off.
pub(crate) fn asks_for_nothing(definition: &Definition, text: Option<&str>) -> bool {
    let Some(text) = text else {
        return false;
    };
    if definition.default == Some(text) || definition.off.contains(&text) {
        return true;
    }
    let neutral = definition.default.unwrap_or("0");
    let same = |part: &str| match definition.kind {
        Kind::Int | Kind::Bool | Kind::Flag | Kind::Size => {
            same_value(part, neutral, |text, notes| values::integer(text, 1024, notes))
        }
        Kind::Time => same_value(part, neutral, |text, notes| values::time(text, values::SECOND, notes)),
        Kind::FloatList => {
            definition.default.is_some()
                && same_value(part, neutral, |text, notes| {
                    values::floats(text, (f64::MIN, f64::MAX), 1, notes)
                })
        }
        Kind::Str | Kind::StrNumber | Kind::Range => false,
    };
    values::split(text, &[',']).into_iter().all(same)
}

/// Whether two texts have the same meaning, and neither causes a note.
fn same_value<T: PartialEq>(
    left: &str,
    right: &str,
    read: impl Fn(&str, &mut Notes) -> Result<T, String>,
) -> bool {
    let mut notes = Notes::default();
    match (read(left, &mut notes), read(right, &mut notes)) {
        (Ok(left), Ok(right)) => left == right && notes.is_empty(),
        _ => false,
    }
}

/// Applies the rules that concern several options of one job, once all of its options are applied.
///
/// Suspicious input adds to `warnings`.
pub fn finish(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    rules::settle(job, warnings);
}

#[cfg(test)]
mod tests;
