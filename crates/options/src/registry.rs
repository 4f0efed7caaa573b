//! All options of the language: finding one by name, and putting a value into a job.

use crate::definition::{Definition, Kind, Status};
use crate::engines::{self, EngineInfo};
use crate::values::{self, Given};
use crate::{Diagnostic, JobOptions, Origin, defs, rules};

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

/// The option of this name or alias: an option of every job, or one that this engine has.
pub fn find(name: &str, engine: &str) -> Option<&'static Definition> {
    find_job(name).or_else(|| engines::engine(engine)?.option(name))
}

/// The job option of this name or alias.
pub fn find_job(name: &str) -> Option<&'static Definition> {
    job_options().find(|definition| definition.answers_to(name))
}

/// The engines that have an option of this name or alias of their own, in the order of the help.
pub fn find_any_engine(name: &str) -> Vec<(&'static EngineInfo, &'static Definition)> {
    engines::engines().iter().filter_map(|engine| Some((engine, engine.option(name)?))).collect()
}

/// The name that was probably meant by an unknown one, among the job options and this engine's.
pub fn suggest(name: &str, engine: &str) -> Option<&'static str> {
    let own = engines::engine(engine).map_or(&[][..], |engine| engine.options);
    let names = job_options().chain(own.iter().copied()).flat_map(Definition::names);
    closest(name, names)
}

/// The candidate nearest to `word`, if one is near enough to be a typing mistake or begins with the word.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let limit = (length / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let longer = candidate.chars().count().abs_diff(length);
            if length >= 3 && candidate.starts_with(word) {
                return Some((longer, candidate));
            }
            // No distance is smaller than this; words may be very long.
            let distance = if longer > limit { longer } else { edit_distance(word, candidate) };
            // Words that have no letter in common are not alike, however short they are.
            (distance <= limit && distance < length).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edit_distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=from.len() {
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[from.len()][to.len()]
}

/// Reads a value, checks it, puts it into the job and remembers where it came from.
///
/// What is accepted but suspicious is added to `warnings`. The error names option and value. A job is as it was when
/// its option is refused.
pub fn apply(
    job: &mut JobOptions,
    definition: &'static Definition,
    value: Option<&str>,
    origin: Origin,
    warnings: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    let text = value.map(str::trim);
    let shown = match text {
        Some(text) => format!("{}={text}", definition.name),
        None => definition.name.to_owned(),
    };
    let diagnostic =
        |message: String| Diagnostic { origin: Some(origin.clone()), message: format!("{shown}: {message}") };
    let mut given = Given { definition, text, kb_base: job.kb_base, notes: Vec::new() };
    match definition.land {
        Some(land) => land.put(job, &mut given).map_err(diagnostic)?,
        None if asks_for_nothing(definition, text) => {}
        None => return Err(diagnostic(format!("option {} is not supported yet", definition.name))),
    }
    warnings.extend(given.notes.into_iter().map(diagnostic));
    job.origins.insert(definition.name.to_owned(), origin);
    Ok(())
}

/// Is this the option's default, or a value that switches it off?
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

/// Do two texts mean the same, without any doubt about either?
fn same_value<T: PartialEq>(
    left: &str,
    right: &str,
    read: impl Fn(&str, &mut Vec<String>) -> Result<T, String>,
) -> bool {
    let mut notes = Vec::new();
    match (read(left, &mut notes), read(right, &mut notes)) {
        (Ok(left), Ok(right)) => left == right && notes.is_empty(),
        _ => false,
    }
}

/// The rules of the language that concern several options of one job, once all of its options were applied.
///
/// What is suspicious goes to `warnings`.
pub fn finish(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    rules::settle(job, warnings);
}

#[cfg(test)]
mod tests;
