//! From words to typed jobs: the input of users and its meaning.

mod command_line;
mod dependencies;
mod job_files;
mod offsets;
mod properties;
mod run_options;
mod showcmd;

use crate::jobfile::{Surroundings, Texts};
use crate::parse::parse_in;
use crate::system_variables::MachineFacts;
use crate::*;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const FACTS: MachineFacts = MachineFacts { page_size: 4096, memory_mebibytes: 24105, cpus: 2 };

fn invoke_as(words: &[OsString], input: &str, name: Name) -> Result<Invocation, Vec<String>> {
    let mut input = input.as_bytes();
    let environment = |name: &str| (name == "SIZE").then(|| "64m".to_owned());
    let surroundings = Surroundings {
        environment: &environment,
        facts: FACTS,
        standard_input: &mut input as &mut dyn Read,
        texts: Texts::OnDisk,
        name,
    };
    parse_in(words, surroundings, name).map_err(|errors| errors.iter().map(Diagnostic::to_string).collect())
}

fn invoke(words: &[&str], input: &str) -> Result<Invocation, Vec<String>> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    invoke_as(&words, input, Name::Iolite)
}

struct Ran {
    batches: Vec<Vec<JobOptions>>,
    run: RunOptions,
    warnings: Vec<String>,
}

#[track_caller]
fn run_with(words: &[&str], input: &str) -> Ran {
    match invoke(words, input) {
        Ok(Invocation::Run { batches, run, warnings }) => {
            Ran { batches, run: *run, warnings: warnings.iter().map(Diagnostic::to_string).collect() }
        }
        other => panic!("{words:?} does not run: {other:?}"),
    }
}

#[track_caller]
fn run(words: &[&str]) -> Ran {
    run_with(words, "")
}

/// The jobs of a command line that has one batch and no warnings.
#[track_caller]
fn jobs(words: &[&str]) -> Vec<JobOptions> {
    let ran = run(words);
    assert_eq!(ran.warnings, [""; 0]);
    let [batch] = ran.batches.try_into().expect("one batch");
    batch
}

/// The one job of a job file.
#[track_caller]
fn job_of(text: &str) -> JobOptions {
    let [batch] = run_with(&["-"], text).batches.try_into().expect("one batch");
    let [job] = batch.try_into().expect("one job");
    job
}

#[track_caller]
fn errors(words: &[&str]) -> Vec<String> {
    errors_with(words, "")
}

#[track_caller]
fn errors_with(words: &[&str], input: &str) -> Vec<String> {
    match invoke(words, input) {
        Err(errors) => errors,
        Ok(invocation) => panic!("{words:?} is not an error: {invocation:?}"),
    }
}

#[track_caller]
fn printed(words: &[&str], input: &str) -> (String, u8) {
    match invoke(words, input) {
        Ok(Invocation::Print { text, status }) => (text, status),
        other => panic!("{words:?} does not print: {other:?}"),
    }
}

fn pairs(given: &[(String, String)]) -> Vec<(&str, &str)> {
    given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}
