//! `iolite ai dataset`: writes samples, which stay; and finds them again.

use super::answer::Answer;
use super::own_process::{Performer, announce};
use super::site::Site;
use super::{Outcome, of_option};
use crate::messages::complain;
use iolite_host::{Machine, ThisMachine};
use iolite_options::Name;
use iolite_options::commands::Asked;
use iolite_page::text::bytes;
use iolite_procedures::ai::dataset::{Dataset, MOST_FILES, Shape};
use iolite_procedures::ai::models::Training;
use iolite_procedures::ai::place::Place;
use iolite_procedures::ai::reader::TIMES_MEMORY;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The file that describes a dataset.
const DESCRIPTION: &str = "iolite-dataset.json";
/// What `--resume` leaves after an interruption.
pub const GOES_ON: &str = "what was written stays, and the same command goes on with it";
/// The most workers that write a dataset, unless the user wants more.
const MOST_WRITERS: u64 = 8;
/// The most samples of a file, and bytes of a sample.
const MOST: u64 = 1 << 40;

/// The published model, if one is named.
pub fn model(asked: &Asked) -> Result<Option<Training>, String> {
    asked.value("preset").map(|name| of_option("preset", name, Training::of(name))).transpose()
}

/// The dataset that options describe.
pub fn described(asked: &Asked, place: &Place) -> Result<Option<Dataset>, String> {
    let model = model(asked)?;
    let number = |option: &str, least: u64| -> Result<Option<u64>, String> {
        match asked.number(option, least)? {
            Some(value) if value > MOST => Err(format!("--{option}: must be at most {MOST}")),
            value => Ok(value),
        }
    };
    let given = [number("sample-size", 1)?, number("deviation", 0)?, number("per-file", 1)?];
    let samples = number("samples", 1)?;
    let [sample, deviation, per_file] = match model {
        Some(model) => {
            let of_model = [model.sample, model.deviation, model.per_file];
            [0, 1, 2].map(|option| given[option].unwrap_or(of_model[option]))
        }
        None => match (given[0], samples) {
            (Some(sample), _) => [sample, given[1].unwrap_or(0), given[2].unwrap_or(1)],
            (None, None) if given[1].is_none() && given[2].is_none() => return Ok(None),
            (None, _) => {
                return Err(
                    "the size of a sample is missing: --sample-size=BYTES, or a model (--preset)".to_owned()
                );
            }
        },
    };
    let Some(samples) = samples else {
        return Err("the number of samples is missing: --samples=NUMBER".to_owned());
    };
    if per_file > 1 && deviation > 0 {
        return Err(
            "--deviation: several samples in a file have one size; leave it out, or --per-file".to_owned()
        );
    }
    let shape = Shape::new(sample, deviation, per_file, place);
    if let Some(deviation) = given[1].filter(|deviation| *deviation > 0) {
        let checked = shape.check_deviation(sample, deviation);
        checked.map_err(|why| format!("--deviation={deviation}: {why}"))?;
    }
    let dataset = Dataset::with_samples(shape, samples);
    if dataset.files > MOST_FILES {
        return Err(format!(
            "--samples={samples}: a dataset has at most {MOST_FILES} files, and this would have {}",
            dataset.files
        ));
    }
    if !dataset.is_possible() {
        return Err(format!(
            "--samples={samples}: all samples together are larger than any storage; take less"
        ));
    }
    Ok(Some(dataset))
}

/// The dataset that a directory has, if there is a description. The model that it was made for is in it, too.
pub fn found(directory: &Path) -> Result<Option<(Dataset, Value)>, String> {
    let path = directory.join(DESCRIPTION);
    let told = |why: String| format!("{}: {why}", path.display());
    let text = match std::fs::read_to_string(&path) {
        // (A writer makes it, and has not filled it in yet.)
        Ok(text) if text.is_empty() => return Ok(None),
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(iolite_types::describe_error(&error))),
    };
    let damaged =
        |why: serde_json::Error| format!("damaged ({why}); remove it and the files sample.NUMBER beside it");
    let value: Value = serde_json::from_str(&text).map_err(|why| told(damaged(why)))?;
    let dataset = Dataset::of(&value).map_err(told)?;
    Ok(Some((dataset, value)))
}

/// Checks that all files of a dataset are there, with sizes that it can have. Returns their bytes.
pub fn check(directory: &Path, dataset: &Dataset) -> Result<u64, String> {
    let mut all = 0;
    for number in 0..dataset.files {
        let path = directory.join(format!("sample.{number}"));
        let told = |why: &str| {
            format!(
                "{}: {why}; iolite ai dataset writes it again, after rm {directory}/sample.[0-9]* {directory}/{DESCRIPTION}",
                path.display(),
                directory = directory.display()
            )
        };
        let found = std::fs::metadata(&path).map_err(|error| told(&iolite_types::describe_error(&error)))?;
        if !dataset.has_size(found.len()) {
            return Err(told(&format!("{} bytes are no size of a sample of this dataset", found.len())));
        }
        all += found.len();
    }
    Ok(all)
}

/// A warning if a dataset may be read from memory.
pub fn too_small(dataset: &Dataset, is_on_machines: bool) -> Option<String> {
    let memory = ThisMachine::new().memory().total.filter(|_| !is_on_machines)?;
    let wanted = memory.saturating_mul(TIMES_MEMORY);
    (dataset.bytes() < wanted).then(|| {
        format!(
            "the dataset of {} is smaller than {TIMES_MEMORY} times the memory of this machine ({TIMES_MEMORY} × {} = {}): caches \
             may answer, and the rules of MLPerf Storage ask for more",
            bytes(dataset.bytes() as f64),
            bytes(memory as f64),
            bytes(wanted as f64)
        )
    })
}

/// Writes a dataset.
pub fn run(program: &str, asked: &Asked, target: &str) -> Result<Outcome, String> {
    let mut site = Site::of(asked, target)?;
    let Some(dataset) = described(asked, &site.place)? else {
        return Err(
            "the samples are missing: --preset=unet3d --samples=168, or --sample-size=BYTES --samples=NUMBER"
                .to_owned(),
        );
    };
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let writers = asked.number("writers", 1)?.unwrap_or(processors.min(MOST_WRITERS)).min(1 << 12);
    let resumes = asked.has("resume");
    if resumes && site.directory.is_none() {
        let why = match site.place.is_on_machines {
            true => {
                "what other machines have of a dataset is not seen from here; call iolite ai dataset on each of them"
            }
            false => {
                "a server keeps no description of a dataset, so that nobody knows whose samples it has, and whether they are \
                      complete; remove them, or name another place, and leave --resume out"
            }
        };
        return Err(format!("--resume: {why}"));
    }
    if asked.has("show-job") && !resumes {
        return Ok(Outcome::Said(dataset.job(&site.place, writers)));
    }
    let description = {
        let mut value = dataset.described();
        value["model"] = model(asked)?.map_or(Value::Null, |model| model.name.into());
        value["writers"] = writers.into();
        value
    };
    // The lock is held to the end.
    let mut _lock = None;
    let rest;
    if let Some(directory) = &site.directory {
        let missing: Vec<&Path> = directory.ancestors().take_while(|path| !path.exists()).collect();
        let prepared = prepare(&site, directory, &dataset, &description, asked);
        if prepared.is_err() {
            // A refusal leaves no directories. (Only empty ones can be removed.)
            missing.iter().for_each(|path| drop(std::fs::remove_dir(path)));
        }
        match prepared? {
            Prepared::Complete(answer) => return Ok(Outcome::Said(answer)),
            Prepared::Locked(lock, files) => (_lock, rest) = (lock, files),
        }
    } else {
        site.check_server()?;
        site.check_names(&dataset)?;
        rest = None;
    }
    let make = |place: &Place| match &rest {
        Some(files) => dataset.job_of(place, files),
        None => dataset.job(place, writers),
    };
    if asked.has("show-job") {
        return Ok(Outcome::Said(make(&site.place)));
    }
    let left = rest.as_ref().map(|files| files.iter().map(|files| files.end - files.start).sum());
    let begun = format!(
        "dataset: {} samples in {} files of about {} are written to {}: {} in all{}",
        dataset.samples(),
        dataset.files,
        bytes(dataset.shape.file_bytes() as f64),
        site.name,
        bytes(dataset.bytes() as f64),
        left.map_or_else(String::new, |left: u64| format!(
            "; {} files are there already, and {left} are left",
            dataset.files - left
        ))
    );
    announce(program, asked, &begun);
    if let (Some(files), Some(directory)) = (&rest, &site.directory) {
        // (A file that is written again may become shorter.)
        remove_files(&site, directory, &dataset, |file| files.iter().any(|files| files.contains(&file)))?;
    }
    let report = match Performer::new(asked)?.perform(&site.place, &make, None) {
        Ok(Ok(report)) => report,
        Ok(Err(Outcome::Elsewhere)) => return Ok(Outcome::Elsewhere),
        Ok(Err(other)) if resumes => return Ok(other),
        Err(why) if resumes => return Err(format!("{}: {why}; {GOES_ON}", site.name)),
        Ok(Err(other)) => {
            remove_all(&site, &dataset)?;
            return Ok(other);
        }
        Err(why) => {
            let left = remove_all(&site, &dataset).err();
            let left = left.map(|why| format!("; what was written cannot be removed: {why}"));
            return Err(format!("{}: {why}{}", site.name, left.unwrap_or_default()));
        }
    };
    let mut written = Dataset::written(&report);
    if let Some(directory) = &site.directory {
        written = check(directory, &dataset)?;
        describe(directory, &description, true)?;
    }
    let each = if site.place.is_on_machines { " on each machine" } else { "" };
    let mut text = String::new();
    line!(
        text,
        "{}: {} samples in {} files{each}, {}",
        site.name,
        dataset.samples(),
        dataset.files,
        bytes(written as f64)
    );
    if let Some(warning) = too_small(&dataset, site.place.is_on_machines) {
        line!(text, "Note: {warning}.");
    }
    line!(text, "Read it with: iolite ai reader {}{}", site.name, reader_options(asked, &site, &dataset));
    let value = json!({
        "test": "dataset", "target": site.name, "samples": dataset.samples(), "files": dataset.files, "bytes": written,
        "dataset": description,
    });
    Ok(Outcome::Answered(Box::new(Answer { text, value, report, status: 0 })))
}

/// The options by which a reader knows a dataset that no description is kept of.
fn reader_options(asked: &Asked, site: &Site, dataset: &Dataset) -> String {
    if site.directory.is_some() {
        return String::new();
    }
    let options = ["preset", "sample-size", "deviation", "per-file"];
    let given = options.iter().filter_map(|option| Some(format!(" --{option}={}", asked.value(option)?)));
    given.collect::<String>() + &format!(" --samples={}", dataset.samples())
}

/// A directory that is ready.
enum Prepared {
    /// The dataset is there already, says this answer.
    Complete(String),
    /// It can be written: these files of it (`None` = all of them). Nobody else writes it as long as this file is open; for a
    /// look, it is not locked.
    Locked(Option<File>, Option<Vec<Range<u64>>>),
}

/// Prepares a directory.
fn prepare(
    site: &Site,
    directory: &Path,
    dataset: &Dataset,
    description: &Value,
    asked: &Asked,
) -> Result<Prepared, String> {
    let (resumes, is_shown) = (asked.has("resume"), asked.has("show-job"));
    let told = |error: std::io::Error| format!("{}: {}", site.name, iolite_types::describe_error(&error));
    if is_shown && !directory.exists() {
        return Ok(Prepared::Locked(None, None));
    }
    std::fs::create_dir_all(directory).map_err(told)?;
    let complete = |value: &Value| {
        if !Dataset::of(value).is_ok_and(|there| there == *dataset) {
            return Err(format!(
                "{}: there is another dataset; name another directory, or remove it",
                site.name
            ));
        }
        check(directory, dataset)?;
        Ok(Prepared::Complete(format!("{}: the dataset is there already, and complete\n", site.name)))
    };
    let check_new = || {
        let names = std::fs::read_dir(directory).map_err(told)?.flatten();
        if names.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("sample.")) {
            return Err(format!(
                "{}: there are files called sample.NUMBER of somebody else; name another directory",
                site.name
            ));
        }
        site.check_room(directory, dataset.bytes())
    };
    match found(directory)? {
        Some((_, value)) if value["complete"] == true => return complete(&value),
        // Nothing is left there by a refusal.
        None if !directory.join(DESCRIPTION).exists() => check_new()?,
        _ => {}
    }
    let lock = if is_shown { None } else { Some(locked(site, directory)?) };
    match found(directory)? {
        Some((_, value)) if value["complete"] == true => return complete(&value),
        Some((there, value)) if resumes => {
            let rest = rest_of(site, directory, dataset, (&there, &value), asked)?;
            let left = rest.iter().map(|files| files.end - files.start).sum::<u64>();
            site.check_room(directory, left.saturating_mul(dataset.shape.file_bytes()))?;
            return Ok(Prepared::Locked(lock, Some(rest)));
        }
        // It was interrupted: all of it is written again.
        Some((there, _)) => {
            remove_files(site, directory, &there, |_| true)?;
            site.check_room(directory, dataset.bytes())?;
        }
        None => check_new()?,
    }
    if !is_shown {
        describe(directory, description, false)?;
    }
    Ok(Prepared::Locked(lock, None))
}

/// What an interrupted writer has left to be written.
fn rest_of(
    site: &Site,
    directory: &Path,
    dataset: &Dataset,
    (there, value): (&Dataset, &Value),
    asked: &Asked,
) -> Result<Vec<Range<u64>>, String> {
    let writers = value["writers"].as_u64().filter(|writers| (1..=1 << 12).contains(writers));
    let Some(writers) = writers.filter(|_| there == dataset) else {
        return Err(format!(
            "--resume: {}: another dataset was interrupted there; take its options, or leave --resume out, which writes this one \
             in its place",
            site.name
        ));
    };
    if let Some(other) = asked.number("writers", 1)?.filter(|other| *other != writers) {
        return Err(format!("--writers={other}: it was begun by {writers}; leave the option out"));
    }
    let is_there = |file: u64| {
        let opened = File::open(directory.join(format!("sample.{file}")));
        // After a crash of the machine, data of a file may be missing.
        opened.is_ok_and(|file| {
            let length = file.metadata().map_or(0, |found| found.len());
            dataset.has_size(length) && iolite_os::files::first_hole(&file).is_none_or(|hole| hole >= length)
        })
    };
    Ok(dataset.rest(writers, is_there))
}

/// The description, locked, so that no other writer removes files as those of an interrupted one.
fn locked(site: &Site, directory: &Path) -> Result<File, String> {
    let path = directory.join(DESCRIPTION);
    let told =
        |error: std::io::Error| format!("{}: {}", path.display(), iolite_types::describe_error(&error));
    let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(told)?;
    let is_there = |file: &File| {
        let (own, there) = (file.metadata().ok()?, std::fs::metadata(&path).ok()?);
        Some((own.dev(), own.ino()) == (there.dev(), there.ino()))
    };
    match iolite_os::files::try_lock(&file) {
        // A writer that has just ended may have removed it.
        Ok(()) if is_there(&file) == Some(true) => Ok(file),
        // Some file systems have no locks.
        Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => Ok(file),
        _ => {
            Err(format!("{}: another iolite ai dataset is writing there; wait for it, or stop it", site.name))
        }
    }
}

/// Writes the description. It is never empty in between: a writer that is killed there would leave files of nobody.
fn describe(directory: &Path, description: &Value, is_complete: bool) -> Result<(), String> {
    let path = directory.join(DESCRIPTION);
    let mut value = description.clone();
    value["complete"] = is_complete.into();
    let text = format!("{value:#}\n");
    let written = File::options().write(true).create(true).truncate(false).open(&path).and_then(|file| {
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(text.len() as u64)
    });
    written.map_err(|error| format!("{}: {}", path.display(), iolite_types::describe_error(&error)))
}

/// Removes what an interrupted run has written.
fn remove_all(site: &Site, dataset: &Dataset) -> Result<(), String> {
    let Some(directory) = &site.directory else {
        if site.place.is_on_machines {
            let words = "what was written stays on the machines, in files whose names end in sample.NUMBER";
            complain(Name::Iolite, &format_args!("ai: {}: {words}", site.name));
        }
        return site.remove(dataset).map(drop);
    };
    remove_files(site, directory, dataset, |_| true)?;
    let _ = std::fs::remove_file(directory.join(DESCRIPTION));
    Ok(())
}

/// Removes these files of a dataset, and nothing else.
fn remove_files(
    site: &Site,
    directory: &Path,
    dataset: &Dataset,
    which: impl Fn(u64) -> bool,
) -> Result<(), String> {
    let told = |path: &Path, error: &std::io::Error| {
        format!("{}: {}", path.display(), iolite_types::describe_error(error))
    };
    for entry in std::fs::read_dir(directory).map_err(|error| told(directory, &error))?.flatten() {
        if !dataset.number_of(&site.place, &entry.file_name().to_string_lossy()).is_some_and(&which) {
            continue;
        }
        match std::fs::remove_file(entry.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(told(&entry.path(), &error));
            }
            _ => {}
        }
    }
    Ok(())
}
