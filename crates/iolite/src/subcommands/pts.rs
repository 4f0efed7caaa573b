//! `iolite pts`: the SNIA SSS Performance Test Specification on a device.
//!
//! What is done, and in which order, is decided by the crate `procedures`; here it is done.
//!
//! | what | file |
//! |---|---|
//! | the device, its safety, its facts | `pts/target.rs` |
//! | the options as settings | `pts/choices.rs` |
//! | the course: steps, progress, resuming | `pts/course.rs` |
//! | what is noted for a continuation, and what was written meanwhile | `pts/state.rs` |
//! | purging | `pts/purge.rs` |
//! | the volatile write cache | `pts/cache.rs` |
//! | results: JSON, page, text | `pts/output.rs` |

mod cache;
mod choices;
mod course;
mod output;
mod purge;
mod state;
pub mod target;

use crate::exit_status::INTERRUPTED;
use crate::run_series::directory::{Directory, Place};
use crate::saving::Saving;
use choices::Choices;
use course::{Course, End};
use iolite_options::commands::Asked;
use iolite_procedures::pts::{Done, Figures, Settings, Step, Unit, discard, units};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use target::Target;

/// The answer as text, and the exit status.
pub fn run(program: &str, asked: &Asked) -> Result<(String, u8), String> {
    let [operand] = &asked.operands[..] else {
        return Err("needs one device: iolite pts /dev/nvme0n1 --destroy=SERIAL (iolite device DEVICE shows its serial number)".to_owned());
    };
    let target = Target::of(operand, asked.has("allow-file"))?;
    let choices = Choices::of(asked, &target)?;
    if asked.has("show-job") {
        return Ok((show_jobs(&target, &choices), 0));
    }
    target.check_destruction(asked.value("destroy"))?;
    let _held = target.hold()?;
    let is_resumed = asked.has("resume");
    let place = match asked.value("output") {
        Some(path) => Place::Named(path.into()),
        None if is_resumed => Place::Usual(target.place_of_before(Path::new("."))?),
        None => Place::Usual(target.usual_place()),
    };
    let plan = described(&target, &choices);
    let saving = Saving::of_subcommand(asked, "pts", &|_| Ok(()))?;
    let directory = if is_resumed {
        Directory::resume(place, "pts", plan)?
    } else {
        Directory::open(place, "pts", plan, &|plan| {
            plan["pts"] = target.path.display().to_string().into();
            Ok(())
        })?
    };
    if directory.begun_before.is_some() && !is_resumed {
        return Err(format!(
            "{}: this procedure was interrupted; --resume continues it, and --output=DIRECTORY begins another one",
            directory.path.display()
        ));
    }
    let course = Course::new(program, target, choices, directory)?;
    match course.perform()? {
        End::Through(result) => {
            let is_saved = saving.is_none_or(|saving| saving.keep_text(&output::report(&result)));
            Ok((output::text(&result), u8::from(!(is_saved && output::is_good(&result)))))
        }
        End::Interrupted => Ok((String::new(), INTERRUPTED)),
    }
}

/// The description by which a resumed procedure is recognised as the same.
fn described(target: &Target, choices: &Choices) -> Value {
    // A device may have another name after a reboot, if it can be told from all others without it.
    let path = target.unique.is_none().then(|| target.path.display().to_string());
    json!({
        "format": 1,
        "pts": path,
        "serial": target.serial,
        "unique": target.unique,
        "capacity_bytes": target.capacity,
        "parameters": choices.told(),
    })
}

/// The jobs of all tests, each kind of cell once.
fn show_jobs(target: &Target, choices: &Choices) -> String {
    let settings = &choices.settings;
    let mut text = String::new();
    line!(text, "# The cases of `iolite pts` for {}, each once. They destroy its data.", target.name);
    line!(
        text,
        "# Those of a round, whose number is behind the test's name, are repeated until the device is steady."
    );
    let mut unit_before = String::new();
    for (unit, step) in kinds(settings) {
        if unit.name != unit_before {
            line!(text, "\n# {}", unit.test.title());
            unit_before.clone_from(&unit.name);
        }
        match step {
            Step::Purge(name) if choices.purge.is_discard(target) => {
                line!(text, "# purge: discards all blocks");
                text += &stonewalled(&discard(settings, name).job);
            }
            Step::Purge(_) => line!(text, "# purge: {}", choices.purge.words()),
            Step::Run { case, .. } => {
                line!(text, "\n# {}", case.what);
                text += &stonewalled(&case.job);
            }
        }
    }
    text
}

/// A job file whose jobs wait for those before.
fn stonewalled(job: &str) -> String {
    job.replace("]\n", "]\nstonewall\n")
}

/// The steps of all units, of cases that differ only in their round or number the first one.
fn kinds(settings: &Settings) -> Vec<(Unit, Step)> {
    let anything =
        Figures { iops: 1.0, bandwidth: 1.0, mean_ns: 1.0, written: settings.capacity, ..Figures::default() };
    let mut steps = Vec::new();
    for unit in units(settings) {
        let (mut done, mut seen) = (Done::new(), BTreeSet::new());
        while let Err(next) = unit.walk(settings, 1, &done) {
            let step = next.step;
            done.insert(step.name().to_owned(), anything.clone());
            let is_new = match &step {
                Step::Purge(_) => true,
                Step::Run { kind, .. } => seen.insert(kind.clone()),
            };
            if is_new {
                steps.push((unit.clone(), step));
            }
        }
    }
    steps
}
