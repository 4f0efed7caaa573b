//! `iolite ai`: what training and inference ask of storage.
//!
//! Jobs and figures are made by `iolite_procedures::ai`. Each test is one run of this program in a process of its own, so that it
//! can be on other machines as well; only the search for the largest number of accelerators has several.
//!
//! | what | file |
//! |---|---|
//! | where the data is; what is removed | `ai/site.rs` |
//! | one run | `ai/own_process.rs` |
//! | datasets and their descriptions; readers | `ai/dataset.rs`, `ai/reader.rs` |
//! | checkpoints; caches | `ai/checkpoint.rs`, `ai/kv.rs` |
//! | the answer, as text and files | `ai/answer.rs` |

mod answer;
mod checkpoint;
mod dataset;
mod kv;
mod own_process;
mod reader;
mod site;

use crate::exit_status::INTERRUPTED;
use crate::saving::Saving;
use answer::{Answer, File};
use iolite_options::commands::Asked;
use iolite_procedures::ai::models::{SAVED, SOURCE, TRAINING};
use std::fmt::Write;

/// Options that belong to some of the tests only.
const OWN: [(&str, &[&str]); 4] = [
    ("dataset", &["preset", "samples", "sample-size", "deviation", "per-file", "writers", "resume"]),
    (
        "reader",
        &[
            "preset",
            "samples",
            "sample-size",
            "deviation",
            "per-file",
            "accelerators",
            "gpu",
            "batch",
            "compute",
            "readers",
            "prefetch",
            "epochs",
            "seconds",
            "shuffle",
            "least",
            "resume",
        ],
    ),
    ("checkpoint", &["preset", "ranks", "size", "scale", "layout", "files"]),
    ("kv", &["seconds", "size", "block", "rates", "blocks", "hits", "evict", "destroy"]),
];

/// How a test ended.
enum Outcome {
    Answered(Box<Answer>),
    /// Only words.
    Said(String),
    Interrupted,
    /// Another rank has the results.
    Elsewhere,
}

/// The answer as text, and the exit status.
pub fn run(program: &str, asked: &Asked) -> Result<(String, u8), String> {
    if asked.value("preset") == Some("list") {
        return Ok((presets(), 0));
    }
    let Some((what, targets)) = asked.operands.split_first() else {
        return Err("needs to know what to do: dataset, reader, checkpoint or kv; and where: iolite ai checkpoint /mnt/data"
            .to_owned());
    };
    let what = what.to_string_lossy();
    check_options(&what, asked)?;
    let target = match targets {
        [target] => target.to_string_lossy(),
        [] => {
            return Err(format!(
                "{what}: needs a target: a directory, s3://BUCKET/PREFIX or nfs://HOST/EXPORT"
            ));
        }
        [_, other, ..] => {
            return Err(format!("{what}: one target can be named, and {} is a second one", other.display()));
        }
    };
    if asked.has("clean") {
        // This program recognises the files of tests by their names. The jobs that run on other machines cannot.
        if asked.has("client") || asked.has("mpi") {
            let option = if asked.has("client") { "client" } else { "mpi" };
            return Err(format!(
                "--{option}: --clean works on this machine; call iolite ai kv --clean {target} on each (mpirun does, without --mpi)"
            ));
        }
        return site::clean(&target).map(|text| (text, 0));
    }
    // (The first rank of a launcher has the result.)
    let mut file = match own_process::is_first(asked) {
        true => asked.value("output").map(File::open).transpose()?,
        false => None,
    };
    let saving = Saving::of_subcommand(asked, "ai", &|_| Ok(()))?;
    let outcome = match &*what {
        "dataset" => dataset::run(program, asked, &target),
        "reader" => reader::run(program, asked, &target, file.as_mut()),
        "checkpoint" => checkpoint::run(program, asked, &target),
        _ => kv::run(program, asked, &target),
    }?;
    Ok(match outcome {
        Outcome::Answered(mut answer) => {
            if let Some(file) = file {
                file.write(&answer)?;
            }
            if saving.is_some_and(|saving| !saving.keep_text(&answer.whole().to_string())) {
                answer.status = 1;
            }
            let is_json = asked.value("output-format") == Some("json");
            (if is_json { format!("{:#}\n", answer.value) } else { answer.text }, answer.status)
        }
        Outcome::Said(text) => (text, 0),
        Outcome::Interrupted => {
            let kept = match file.as_ref().and_then(File::search_so_far) {
                Some(part) => format!("; --resume goes on with the search in {}", part.display()),
                None if what == "dataset" && asked.has("resume") => format!("; {}", dataset::GOES_ON),
                None => String::new(),
            };
            own_process::announce(program, asked, &format!("interrupted: nothing is reported{kept}"));
            (String::new(), INTERRUPTED)
        }
        Outcome::Elsewhere => (String::new(), 0),
    })
}

/// Refuses options of other tests.
fn check_options(what: &str, asked: &Asked) -> Result<(), String> {
    let takes = |options: &[&str], option: &str| options.contains(&option);
    let own = OWN.iter().find(|(test, _)| *test == what).map_or(&[][..], |(_, options)| options);
    let all = OWN.iter().flat_map(|(_, options)| options.iter());
    let Some(option) = all.into_iter().find(|option| asked.has(option) && !takes(own, option)) else {
        return Ok(());
    };
    let tests: Vec<&str> =
        OWN.iter().filter(|(_, options)| takes(options, option)).map(|(test, _)| *test).collect();
    Err(format!("--{option} belongs to {}, not to {what}", tests.join(" and ")))
}

/// The published models.
fn presets() -> String {
    let mut text = String::new();
    line!(text, "Source: {SOURCE} (github.com/mlcommons/storage, configurations and rules)");
    for model in TRAINING {
        let [a100, h100] = model.compute_us.map(|us| us as f64 / 1000.0);
        line!(
            text,
            "{:12} {}: samples of {} bytes (standard deviation {}), {} in a file; batches of {}, computed in {a100} ms (A100) or \
             {h100} ms (H100); {} readers for each accelerator, which has to be busy for {}%",
            model.name,
            model.title,
            model.sample,
            model.deviation,
            model.per_file,
            model.batch,
            model.readers,
            model.least_percent
        );
    }
    for model in SAVED {
        let gigabytes = model.bytes / 1_000_000_000;
        line!(
            text,
            "{:12} {}: checkpoints of {gigabytes} GB by {} ranks",
            model.name,
            model.title,
            model.ranks
        );
    }
    text
}

/// Why a value is refused, with its option.
fn of_option<T>(option: &str, value: &str, found: Result<T, String>) -> Result<T, String> {
    found.map_err(|why| format!("--{option}={value}: {why}"))
}
