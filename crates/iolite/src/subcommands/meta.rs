//! `iolite meta`: operations on names in a directory, as mdtest and IO500 do them.
//!
//! The crate `procedures` knows the phases, their job files and their figures. Each phase is a run of its own, in a separate
//! process of this program, with the same options for one machine, for agents and for ranks; so all workers begin it
//! together.
//!
//! | what | file |
//! |---|---|
//! | options | `meta/asked.rs` |
//! | the machines: this one, agents, ranks | `meta/machines.rs` |
//! | the course: one phase after the other | `meta/perform.rs` |
//! | objects in the place of files | `meta/objects.rs` |
//! | `--verify` | `meta/tree.rs` |
//! | the answer, `--output` | `meta/answer.rs`, `meta/page.rs` |

mod answer;
mod asked;
pub mod machines;
mod objects;
mod page;
mod perform;
mod rows;
mod tree;

use super::test::own_directory::{Kind, OwnDirectory};
use crate::exit_status::INTERRUPTED;
use crate::messages::complain;
use crate::run_series::Runner;
use crate::saving::{Saving, now_ms};
use iolite_options::commands::Asked;
use iolite_procedures::meta::Setup;
use machines::Machines;
use objects::Bucket;
use perform::End;
use std::path::{Path, PathBuf};

/// The directories of these tests.
pub static OWN: Kind = Kind {
    prefix: "iolite-meta.",
    lock: "iolite-meta.lock",
    words: "This directory belongs to a running `iolite meta`. If none is running, `iolite meta --clean` removes it.\n",
    is_own: |name| {
        let of_worker = |rest: &str| rest.split('.').all(|part| part.parse::<u32>().is_ok());
        matches!(name, "all" | "hard" | "stamp" | "ior.hard")
            || name.strip_prefix('w').is_some_and(of_worker)
            || name.strip_prefix("ior.").is_some_and(of_worker)
            || name.starts_with("meet-")
    },
};

/// The answer as text, and the exit status.
pub fn run(program: &str, asked: &Asked) -> Result<(String, u8), String> {
    let bucket = match &asked.operands[..] {
        [word] if !Path::new(word).exists() => Bucket::of(asked, &word.to_string_lossy())?,
        _ => None,
    };
    if let Some(bucket) = bucket {
        return on_objects(program, asked, bucket);
    }
    let target = target(asked)?;
    if asked.has("clean") {
        return clean(&target).map(|text| (text, 0));
    }
    let machines = Machines::of(asked)?;
    let output = asked.value("output").map(answer::Format::of).transpose()?;
    let setup = asked::setup(asked, &target, &machines)?;
    setup.check()?;
    if asked.has("show-job") {
        return Ok((perform::show(setup, &machines), 0));
    }
    if let Machines::Ranks { rank, .. } = machines
        && rank > 0
    {
        return follow(&target, setup, &machines).map(|status| (String::new(), status));
    }
    asked::check_room(&setup, &target)?;
    let kept = Kept::prepare(asked, output)?;
    for told in OwnDirectory::remove_left(&target, &OWN)? {
        complain(program, &format_args!("meta: {told}"));
    }
    // Until everything is removed again, whatever a person types.
    let mut runner = receive_signals()?;
    let own = match &machines {
        Machines::Ranks { .. } => OwnDirectory::make_named(machines::common_name(&target), &OWN)?,
        _ => OwnDirectory::make(&target, &OWN)?,
    };
    let ended =
        perform::perform(program, setup, &machines, &mut runner, Some(&own.path), asked.has("verify"));
    drop((own, runner));
    kept.end(program, target, ended)
}

/// From now on, signals end runs in order.
fn receive_signals() -> Result<Runner, String> {
    Runner::new().map_err(|error| format!("signals cannot be received: {error}"))
}

/// What a rank does that is not the first one.
fn follow(target: &Path, setup: Setup, machines: &Machines) -> Result<u8, String> {
    let own = machines::common_name(target);
    let mut runner = receive_signals()?;
    let setup = Setup { directory: own.display().to_string(), ..setup };
    machines::follow(&own, &mut runner, &mut |meeting, runner| {
        Ok(machines.ready(&setup, Vec::new(), meeting)?.perform(runner)?.0)
    })
}

/// Likewise, of objects.
fn on_objects(program: &str, asked: &Asked, mut bucket: Bucket) -> Result<(String, u8), String> {
    if asked.has("clean") {
        return bucket.clean().map(|text| (text, 0));
    }
    let machines = Machines::of(asked)?;
    let output = asked.value("output").map(answer::Format::of).transpose()?;
    let target = PathBuf::from(&bucket.name);
    let setup = bucket.setup(asked, asked::setup(asked, &target, &machines)?)?;
    setup.check()?;
    if asked.has("show-job") {
        return Ok((perform::show(setup, &machines), 0));
    }
    let kept = Kept::prepare(asked, output)?;
    let mut runner = receive_signals()?;
    bucket.begin()?;
    let ended = perform::perform(program, setup, &machines, &mut runner, None, false);
    drop((bucket, runner));
    kept.end(program, target, ended)
}

/// Where the result is kept, opened before anything is measured.
struct Kept {
    output: Option<answer::Opened>,
    saving: Option<Saving>,
    begun_ms: u64,
}

impl Kept {
    fn prepare(asked: &Asked, output: Option<answer::Format>) -> Result<Kept, String> {
        Ok(Kept {
            output: output.map(answer::Format::open).transpose()?,
            saving: Saving::of_subcommand(asked, "meta", &|_| Ok(()))?,
            begun_ms: now_ms(),
        })
    }

    /// Keeps the result of a test that has ended. Returns the answer as text, and the exit status.
    fn end(self, program: &str, target: PathBuf, ended: Result<End, String>) -> Result<(String, u8), String> {
        let mut outcome = match ended? {
            End::Through(outcome) => *outcome,
            End::Interrupted => {
                complain(program, &"meta: interrupted: nothing is reported");
                return Ok((String::new(), INTERRUPTED));
            }
        };
        outcome.target = target;
        let is_kept = self.output.is_none_or(|output| output.write(program, &outcome));
        let saved = |saving: Saving| saving.keep_text(&answer::report(&outcome, self.begun_ms));
        let is_saved = self.saving.is_none_or(saved);
        let is_good = is_kept && is_saved && outcome.failures.is_empty();
        Ok((answer::text(&outcome), u8::from(!is_good)))
    }
}

/// The directory in which the test makes its own.
fn target(asked: &Asked) -> Result<PathBuf, String> {
    let [path] = &asked.operands[..] else {
        return Err(
            "needs one directory, such as iolite meta /mnt/data, or iolite meta . for the current one"
                .to_owned(),
        );
    };
    let path = Path::new(path);
    let told = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let found = std::fs::metadata(path).map_err(|error| told(&iolite_types::describe_error(&error)))?;
    if !found.is_dir() {
        return Err(told(&"this is not a directory, and operations on names need one"));
    }
    let path = std::fs::canonicalize(path).map_err(|error| told(&error))?;
    // It becomes a part of job files.
    match path.to_str() {
        Some(text) if !text.contains(['\n', '$', '"', '#', ';', ',', '*', '?']) && !text.contains("  ") => {
            Ok(path)
        }
        _ => Err(told(&"job files cannot have names with such characters; use another directory")),
    }
}

/// Removes what killed tests have left.
fn clean(target: &Path) -> Result<String, String> {
    use std::fmt::Write;
    let found = OwnDirectory::left(target, &OWN)?;
    if found.is_empty() {
        return Ok(format!("{}: no test has left anything here\n", target.display()));
    }
    let mut text = String::new();
    for left in found {
        left.remove()?;
        line!(text, "{}: removed; a test that was killed had left it", left.path.display());
    }
    Ok(text)
}
