//! Finds the logs to draw for a result (`--logs`).

use iolite_logs::reading::LogName;
use iolite_options::commands::Asked;
use iolite_page::logs::{LogFile, places, prefixes};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most logs that are searched for.
const MOST: usize = 100_000;

type Named = (PathBuf, LogName);

/// The logs that were given.
///
/// # Errors
/// There are no such logs, or they do not belong to this result.
pub fn given(asked: &Asked, report: &Value) -> Result<Vec<LogFile>, String> {
    let words = asked.values("logs").flat_map(|value| value.split(','));
    let (mut all, mut known): (Vec<Named>, HashSet<PathBuf>) = Default::default();
    for word in words {
        let found = found(word, report).map_err(|why| format!("--logs={word}: {why}"))?;
        all.extend(found.into_iter().filter(|(path, _)| known.insert(path.clone())));
    }
    if all.is_empty() {
        return Ok(Vec::new());
    }
    iolite_stored::jobs(report).map_err(|why| why.to_string())?;
    places(report, all).map_err(|why| format!("--logs: {why}"))
}

/// The logs that a word names: a file, those in a directory, or those with a prefix.
fn found(word: &str, report: &Value) -> Result<Vec<Named>, String> {
    let path = Path::new(word);
    if word.is_empty() {
        return Err("needs a prefix of logs, a log, or a directory with logs".to_owned());
    }
    if path.is_dir() {
        let known = prefixes(report);
        if known.is_empty() {
            return Err(
                "the result does not name its logs (write_bw_log and the like); give their prefix".to_owned()
            );
        }
        let found = in_directory(path, &|name| known.contains(&name.prefix))?;
        return if found.is_empty() {
            Err(format!("there are no logs of the result in it ({}_bw.1.log and the like)", known[0]))
        } else {
            Ok(found)
        };
    }
    let last = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(name) = LogName::of(&last) {
        return match fs::metadata(path) {
            Ok(_) => Ok(vec![(path.to_owned(), name)]),
            Err(error) => Err(iolite_types::describe_error(&error)),
        };
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let found = in_directory(directory, &|name| name.prefix == last)?;
    if found.is_empty() && path.is_file() {
        return Err(
            "this is not what logs are called: PREFIX_bw.N.log, _iops, _slat, _clat, _lat or _clat_hist"
                .to_owned(),
        );
    }
    if found.is_empty() {
        return Err(format!(
            "there are no logs with this prefix ({word}_bw.1.log and the like); --logs takes what write_bw_log has, a log, or \
             the directory that they are in"
        ));
    }
    Ok(found)
}

/// The logs in a directory, in the order of their names.
fn in_directory(directory: &Path, is_wanted: &dyn Fn(&LogName) -> bool) -> Result<Vec<Named>, String> {
    let told =
        |error: std::io::Error| format!("{}: {}", directory.display(), iolite_types::describe_error(&error));
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(told)? {
        let entry = entry.map_err(told)?;
        let name = LogName::of(&entry.file_name().to_string_lossy()).filter(is_wanted);
        if let Some(name) = name {
            let path = entry.path();
            found.push((path.strip_prefix("./").map(Path::to_owned).unwrap_or(path), name));
        }
        if found.len() > MOST {
            return Err(format!("there are more than {MOST} logs"));
        }
    }
    // Sort workers by number, not alphabetically.
    found.sort_by(|(path, name), (other, other_name)| {
        (&name.prefix, name.kind, name.worker, path).cmp(&(
            &other_name.prefix,
            other_name.kind,
            other_name.worker,
            other,
        ))
    });
    Ok(found)
}
