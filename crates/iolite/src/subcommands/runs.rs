//! `iolite runs`: the store of runs.

mod exchange;
mod filter;
mod list;

use super::stored_run::Opened;
use crate::saving;
use filter::Filter;
use iolite_options::commands::Asked;
use iolite_store::Run;
use std::fmt::Write;

/// Returns the answer.
pub fn run(program: &str, asked: &Asked) -> Result<String, String> {
    let words: Vec<String> = asked.operands.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (what, words) = words.split_first().map_or(("list", &[][..]), |(what, rest)| (what.as_str(), rest));
    check_options(asked, what)?;
    match what {
        "list" => list(asked, words),
        "show" => list::show(asked, words),
        "label" => label(asked, words),
        "remove" => remove(asked, words),
        "export" => exchange::export(asked, words),
        "import" => exchange::import(program, asked),
        "limits" => limits(program, asked, words),
        _ => check(asked, words),
    }
}

/// The options of each action. (All have the option for the store.)
const OPTIONS: [(&str, &[&str]); 8] = [
    ("list", &["label", "host", "job", "status", "since", "before", "last", "output-format"]),
    ("show", &["output", "output-format"]),
    ("label", &[]),
    ("remove", &["label", "host", "job", "status", "since", "before", "last"]),
    ("export", &["label", "host", "job", "status", "since", "before", "last", "output"]),
    ("import", &["label"]),
    ("limits", &["quota", "most", "days", "drop"]),
    ("check", &[]),
];

/// An option without meaning here is an error.
fn check_options(asked: &Asked, what: &str) -> Result<(), String> {
    let Some((_, words)) = OPTIONS.iter().find(|(name, _)| *name == what) else { return Ok(()) };
    let strange = asked.options.iter().find(|(word, _)| *word != "store" && !words.contains(word));
    strange.map_or(Ok(()), |(word, _)| Err(format!("{what} has no option --{word}")))
}

/// The runs that words name; without words, those that pass the filters.
fn chosen<'a>(opened: &'a Opened, asked: &Asked, words: &[String]) -> Result<Vec<&'a Run>, String> {
    let filter = Filter::of(asked)?;
    let mut found = Vec::new();
    for word in words {
        found.extend(opened.named(word)?);
    }
    if words.is_empty() {
        found.extend(&opened.runs);
    }
    found.sort_by_key(|run| run.number);
    found.dedup_by_key(|run| run.number);
    Ok(filter.of_runs(found))
}

fn list(asked: &Asked, words: &[String]) -> Result<String, String> {
    let opened = Opened::of(asked)?;
    let runs = chosen(&opened, asked, words)?;
    match asked.value("output-format") {
        // (The usual store is made by the first run that is kept.)
        _ if asked.has("store") && !opened.path.exists() => Err(format!(
            "{}: there is no store of runs here (--save and runs import make one)",
            opened.path.display()
        )),
        None | Some("table") if opened.runs.is_empty() => {
            Ok(format!("{}: no runs are kept yet (--save keeps one)\n", opened.path.display()))
        }
        None | Some("table") => Ok(list::table(&runs)),
        Some("json") => Ok(list::json(&runs)),
        Some(other) => Err(format!("--output-format={other}: not one of table, json")),
    }
}

fn label(asked: &Asked, words: &[String]) -> Result<String, String> {
    let [word, label] = words else {
        return Err("label needs a run and a label (\"\" takes it away): runs label 12 baseline".to_owned());
    };
    let mut opened = Opened::of(asked)?;
    let numbers: Vec<i64> = opened.named(word)?.iter().map(|run| run.number).collect();
    let labelled = opened.store()?.label(&numbers, label);
    labelled.map_err(|error| opened.told(&error))?;
    Ok(String::new())
}

fn remove(asked: &Asked, words: &[String]) -> Result<String, String> {
    if words.is_empty() && Filter::of(asked)?.is_empty() {
        return Err("remove needs runs or filters (--before=2026-01-01, --label=...)".to_owned());
    }
    let mut opened = Opened::of(asked)?;
    let numbers: Vec<i64> = chosen(&opened, asked, words)?.iter().map(|run| run.number).collect();
    if !numbers.is_empty() {
        let removed = opened.store()?.remove(&numbers);
        removed.map_err(|error| opened.told(&error))?;
    }
    let names: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(match &names[..] {
        [] => "no run is removed\n".to_owned(),
        [name] => format!("run {name} is removed\n"),
        names => format!("{} runs are removed: {}\n", names.len(), names.join(", ")),
    })
}

fn limits(program: &str, asked: &Asked, words: &[String]) -> Result<String, String> {
    none(words)?;
    let (quota, most, days) = (asked.number("quota", 1)?, asked.number("most", 1)?, asked.number("days", 0)?);
    let mut opened = Opened::of(asked)?;
    let path = opened.path.clone();
    let told = |error: iolite_store::StoreError| format!("{}: {error}", path.display());
    let mut limits = match opened.store() {
        Ok(store) => store.limits().map_err(told)?,
        Err(_) => iolite_store::Limits::default(),
    };
    if quota.is_some() || most.is_some() || days.is_some() {
        limits.bytes = quota.unwrap_or(limits.bytes);
        limits.runs = most.unwrap_or(limits.runs);
        limits.days = days.unwrap_or(limits.days);
        let mut store = saving::open(&path)?;
        let gone = store.beyond(limits, saving::now_ms()).map_err(told)?;
        if !gone.is_empty() && !asked.has("drop") {
            let named = saving::named(&gone);
            return Err(format!(
                "the new limits would drop {} of {} runs: {named}; add --drop to do that",
                gone.len(),
                opened.runs.len()
            ));
        }
        let gone = store.set_limits(limits, saving::now_ms()).map_err(told)?;
        saving::dropped(program, &gone);
        opened.runs.retain(|run| gone.iter().all(|other| other.number != run.number));
    }
    let bytes: u64 = opened.runs.iter().map(|run| run.size).sum();
    let size = |bytes: u64| iolite_page::text::bytes(bytes as f64);
    let mut text = String::new();
    line!(text, "{}", path.display());
    line!(text, "{} of {} runs, {} of {}", opened.runs.len(), limits.runs, size(bytes), size(limits.bytes));
    match limits.days {
        0 => line!(text, "kept without an end in time"),
        days => line!(text, "kept for {days} days"),
    }
    Ok(text)
}

fn check(asked: &Asked, words: &[String]) -> Result<String, String> {
    none(words)?;
    let mut opened = Opened::of(asked)?;
    let wrong = opened.store()?.check();
    let mut wrong = wrong.map_err(|error| opened.told(&error))?;
    wrong.extend(opened.runs.iter().filter_map(|run| opened.report(run).err()));
    match &wrong[..] {
        [] => Ok(format!("{}: whole, {} runs\n", opened.path.display(), opened.runs.len())),
        wrong => Err(opened.told(&wrong.join("; "))),
    }
}

fn none(words: &[String]) -> Result<(), String> {
    words.first().map_or(Ok(()), |word| Err(format!("{word:?} has no meaning here")))
}
