//! The subject of repeats: job files, each with the options of the command line.

use crate::local_run::{draft, run_all};
use crate::run_files;
use crate::run_series::foresight::Foresight;
use crate::run_series::{self, Start};
use crate::saving::Saving;
use iolite_host::ThisMachine;
use iolite_options::{Diagnostic, Invocation, JobOptions, NO_JOBS, Name, Repeated, RunOptions, parse_with};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

/// A job file, or the jobs of the command line.
pub struct Case {
    /// The file name as given.
    pub shown: String,
    /// The name of its directory, and the end of its label.
    pub stem: String,
    /// The file; `None` = the jobs are those of the command line.
    file: Option<OsString>,
    /// Its text, if it can be read only once.
    text: Option<Vec<u8>>,
    /// Identifies its jobs. (Not as text: they may have secrets.)
    pub fingerprint: u128,
    /// Its shortest run time, in seconds.
    pub seconds: u64,
    /// The names of its jobs.
    pub names: BTreeSet<String>,
    /// Warnings about accepted input.
    pub warnings: Vec<Diagnostic>,
    batches: Vec<Vec<JobOptions>>,
    run: RunOptions,
    /// Keeps its runs.
    pub saving: Option<Saving>,
}

/// Reads all job files.
///
/// # Errors
/// All mistakes in them.
pub fn read(name: Name, repeated: &Repeated) -> Result<Vec<Case>, Vec<String>> {
    let files = repeated.files.iter().map(Some);
    let files: Vec<Option<&OsString>> = if repeated.files.is_empty() { vec![None] } else { files.collect() };
    let mut cases: Vec<Case> = Vec::new();
    let mut mistakes = Vec::new();
    for file in files {
        match Case::read(name, repeated, file) {
            Ok(case) if cases.iter().any(|other| other.shown == case.shown) => {
                mistakes.push(format!(
                    "{}: this job file is given twice; --repeat=N runs it N times",
                    case.shown
                ));
            }
            Ok(case) => cases.push(case),
            Err(more) => mistakes.extend(more),
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    for index in 1..cases.len() {
        let stem = cases[index].stem.clone();
        let is_taken = |stem: &String| cases[..index].iter().any(|other| other.stem == *stem);
        let free = std::iter::once(stem.clone()).chain((2..).map(|number| format!("{stem}-{number}")));
        cases[index].stem = free.into_iter().find(|stem| !is_taken(stem)).unwrap_or(stem);
    }
    Ok(cases)
}

/// Checks the cases as their runs will, and adds the places where these are kept, if requested.
///
/// # Errors
/// A run would be refused, or cannot be kept there.
pub fn kept(name: Name, repeated: &Repeated, cases: Vec<Case>) -> Result<Vec<Case>, Vec<String>> {
    let several = cases.len() > 1;
    let machine = ThisMachine::new();
    let mut foresight = Foresight::new(name);
    let with_saving = |case: Case| {
        foresight.check(case.batches.clone(), &case.run)?;
        // Facts about the machine are read when the case runs.
        let looking = RunOptions { parse_only: true, ..case.run.clone() };
        let drafted = draft(name, case.batches.clone(), &looking, &machine, &mut String::new());
        let drafted = drafted.map_err(|problem| vec![problem.to_string()])?;
        let Some(drafted) = drafted else { return Ok(case) };
        let label = |label: &String| match &label[..] {
            "" => String::new(),
            label if several => format!("{label}-{}", case.stem),
            label => label.to_owned(),
        };
        let RunOptions { save, store, .. } = &repeated.run;
        let run =
            RunOptions { save: save.as_ref().map(label), store: store.clone(), ..RunOptions::default() };
        let check = |store: &Path| run_files::check_store(store, &drafted.plan, &machine);
        let saving = Saving::prepare(name, &run, &check).map_err(|why| vec![why])?;
        Ok(Case { saving, ..case })
    };
    cases.into_iter().map(with_saving).collect()
}

impl Case {
    fn read(name: Name, repeated: &Repeated, file: Option<&OsString>) -> Result<Case, Vec<String>> {
        let text = file.map(text_of).transpose().map_err(|why| vec![why])?.flatten();
        let parsed = parsed(name, repeated, file, text.as_deref())?;
        let (shown, stem) = match file {
            None => ("the command line".to_owned(), "jobs".to_owned()),
            Some(file) if file == "-" => ("-".to_owned(), "stdin".to_owned()),
            Some(file) => (file.display().to_string(), stem(Path::new(file))),
        };
        let Parsed { batches, run, warnings } = parsed;
        let jobs = batches.concat();
        Ok(Case {
            shown,
            stem,
            file: file.cloned(),
            text,
            fingerprint: fingerprint(repeated, &batches),
            seconds: run_series::seconds(&jobs),
            names: jobs.iter().map(|job| job.name.clone()).collect(),
            warnings,
            batches,
            run,
            saving: None,
        })
    }

    /// Only checks whether it could be run; returns the exit status.
    pub fn check(self, name: Name) -> u8 {
        // Warnings have been printed already.
        run_all(name, self.batches, &self.run, String::new())
    }

    /// The command of a run.
    ///
    /// # Errors
    /// The job file has changed.
    pub fn start(&self, name: Name, repeated: &Repeated) -> Result<Start, String> {
        if self.text.is_none() && self.file.is_some() {
            let now =
                parsed(name, repeated, self.file.as_ref(), None).map_err(|mistakes| mistakes.join("; "))?;
            if fingerprint(repeated, &now.batches) != self.fingerprint {
                return Err(format!(
                    "{}: the job file has changed since the first run, so what follows would be no repeats",
                    self.shown
                ));
            }
        }
        let file = if self.text.is_some() { Some("-".into()) } else { self.file.clone() };
        Ok(Start {
            options: repeated.common.clone(),
            file,
            environment: Vec::new(),
            input: self.text.clone().unwrap_or_default(),
            may_be_kept: false,
            shows_progress: false,
        })
    }
}

/// The content of a file that can only be read once: standard input, a pipe.
fn text_of(file: &OsString) -> Result<Option<Vec<u8>>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut text = Vec::new();
    if file == "-" {
        std::io::stdin().read_to_end(&mut text).map_err(told)?;
        return Ok(Some(text));
    }
    let path = Path::new(file);
    // The parser reports a missing file.
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return std::fs::read(path).map(Some).map_err(told);
    }
    Ok(None)
}

/// A parsed command line.
struct Parsed {
    batches: Vec<Vec<JobOptions>>,
    run: RunOptions,
    warnings: Vec<Diagnostic>,
}

fn parsed(
    name: Name,
    repeated: &Repeated,
    file: Option<&OsString>,
    text: Option<&[u8]>,
) -> Result<Parsed, Vec<String>> {
    let mut words = repeated.common.clone();
    words.push("--".into());
    words.extend(file.map(|file| if text.is_some() { "-".into() } else { file.clone() }));
    let environment = |name: &str| std::env::var(name).ok();
    match parse_with(&words, &environment, &mut text.unwrap_or_default(), name) {
        Ok(Invocation::Run { batches, run, warnings }) => Ok(Parsed { batches, run: *run, warnings }),
        Ok(_) => Err(vec![NO_JOBS.to_owned()]),
        Err(mistakes) => Err(mistakes.iter().map(ToString::to_string).collect()),
    }
}

fn fingerprint(repeated: &Repeated, batches: &[Vec<JobOptions>]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(format!("{:?} {batches:?}", repeated.common).as_bytes())
}

/// The name of a job file, for a directory and a label.
fn stem(path: &Path) -> String {
    /// File systems take names of 255 bytes, and labels 200 characters.
    const MOST: usize = 60;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "._-+@".contains(c);
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(MOST).collect();
    // Avoid hidden directories, and the names of the files of repeats.
    let name = name.trim_start_matches('.').replace(".json", "_json");
    if name.is_empty() { "jobs".to_owned() } else { name }
}
