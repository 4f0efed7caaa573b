//! `iolite keys`: makes, shows, renews and revokes the keys of machines.

use crate::console::harmless;
use iolite_options::commands::Asked;
use iolite_remote::keys::home::{self, DAYS, MOST_DAYS};
use iolite_remote::keys::{self, Keys, Role};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Returns the answer.
pub fn run(asked: &Asked) -> Result<String, String> {
    let Some((what, rest)) = asked.operands.split_first() else {
        return Err("needs to know what to do: new, show, renew or revoke".to_owned());
    };
    let what = what.to_string_lossy();
    let days = match asked.number("days", 1)? {
        Some(_) if what == "show" => return Err("--days has no effect on show".to_owned()),
        Some(days) if days > MOST_DAYS => return Err(format!("--days={days}: must be at most {MOST_DAYS}")),
        days => days.unwrap_or(DAYS),
    };
    match &*what {
        "new" => new(&only_directory(rest)?, days),
        "show" => show(rest),
        "renew" => renew(&only_directory(rest)?, days),
        _ => revoke(rest, days),
    }
}

fn usual_directory() -> Result<PathBuf, String> {
    let found = keys::directory(&|name| std::env::var_os(name));
    found.ok_or_else(|| "neither XDG_CONFIG_HOME nor HOME is set; name a directory".to_owned())
}

/// The one directory that may be named.
fn only_directory(words: &[OsString]) -> Result<PathBuf, String> {
    match words {
        [] => usual_directory(),
        [directory] => Ok(directory.into()),
        [_, other, ..] => Err(format!("one directory can be named, and {} is a second one", other.display())),
    }
}

fn new(directory: &Path, days: u64) -> Result<String, String> {
    let [authority, coordinator, agents] = home::make(directory, days, SystemTime::now())?;
    let mut text = String::new();
    for (keys, what) in [
        (&coordinator, "for where iolite --client is called"),
        (&agents, "copy it to each machine with an iolite --server"),
        (
            &authority,
            "leave it here, or better on a machine that sends no jobs: anyone who has it can make keys of this set",
        ),
    ] {
        line!(text, "{}: {what}", keys.file.display());
    }
    line!(text, "valid until {} (UTC)", keys::date(coordinator.until));
    line!(text, "{}", where_to(&[coordinator, agents]));
    Ok(text)
}

/// Where files are found by default.
fn where_to(files: &[Keys]) -> String {
    let names: Vec<&str> = files.iter().map(|keys| keys.role.file_name()).collect();
    format!(
        "{} are found in ~/.config/iolite of their user, with mode 0600, or named by --keys=FILE or {}",
        names.join(" and "),
        keys::VARIABLE
    )
}

fn renew(directory: &Path, days: u64) -> Result<String, String> {
    let made = home::renew(directory, days, SystemTime::now())?;
    let mut text = String::new();
    for keys in &made {
        line!(text, "{}: valid until {} (UTC)", keys.file.display(), keys::date(keys.until));
    }
    line!(text, "copy them again; the keys before remain valid until they expire, or are revoked");
    Ok(text)
}

fn revoke(words: &[OsString], days: u64) -> Result<String, String> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // A directory with the name of a key must be written as ./agents.
    let (directory, revoked) = match words.split_first() {
        Some((first, rest)) if !home::is_key(first) && Path::new(first).is_dir() => {
            (PathBuf::from(first), rest)
        }
        _ => (usual_directory()?, &words[..]),
    };
    if revoked.is_empty() {
        return Err("needs to know which keys: coordinator, agents, or ids (iolite keys show)".to_owned());
    }
    let (ids, made) = home::revoke(&directory, revoked, days, SystemTime::now())?;
    let mut text = String::new();
    ids.iter().for_each(|id| line!(text, "revoked: {id}"));
    for keys in &made {
        line!(
            text,
            "{}: key {}, valid until {} (UTC)",
            keys.file.display(),
            keys.id(),
            keys::date(keys.until)
        );
    }
    line!(text, "copy both again; a machine without the new file still trusts revoked keys");
    Ok(text)
}

fn show(words: &[OsString]) -> Result<String, String> {
    let places: Vec<PathBuf> = match words {
        [] => vec![usual_directory()?],
        words => words.iter().map(PathBuf::from).collect(),
    };
    let mut text = String::new();
    for place in places {
        let files: Vec<PathBuf> = if place.is_dir() {
            let roles = [Role::Coordinator, Role::Agent, Role::Authority];
            let files = roles.into_iter().map(|role| place.join(role.file_name()));
            files.filter(|file| file.symlink_metadata().is_ok()).collect()
        } else {
            vec![place.clone()]
        };
        if files.is_empty() {
            return Err(format!("{}: there are no keys here (iolite keys new makes some)", place.display()));
        }
        for file in files {
            describe(&Keys::read_any(&file)?, &mut text);
        }
    }
    Ok(String::from_utf8_lossy(&harmless(text.as_bytes())).into_owned())
}

fn describe(keys: &Keys, text: &mut String) {
    const DAY_S: u64 = 86_400;
    let left = match keys.until.duration_since(SystemTime::now()) {
        Ok(left) if left >= Duration::from_secs(DAY_S) => format!("{} days left", left.as_secs() / DAY_S),
        Ok(_) => "less than a day left".to_owned(),
        Err(_) => "expired".to_owned(),
    };
    line!(text, "{}: the keys {}", keys.file.display(), keys.role.whose());
    line!(text, "  key        {}", keys.id());
    line!(text, "  authority  {}", keys.authority_id());
    line!(text, "  valid      until {} (UTC), {left}", keys::date(keys.until));
    let revoked: Vec<&str> = keys.revoked.iter().map(String::as_str).collect();
    for one in keys.issued.iter().filter(|one| !keys.revoked.contains(&one.id)) {
        let until = keys::date(one.until);
        line!(text, "  issued     {} to {}, until {until}", one.id, one.role.article());
    }
    line!(text, "  revoked    {}", if revoked.is_empty() { "none".to_owned() } else { revoked.join(" ") });
}
