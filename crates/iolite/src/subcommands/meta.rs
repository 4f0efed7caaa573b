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
//! | `--verify` | `meta/tree.rs` |
//! | the answer, `--output` | `meta/answer.rs`, `meta/page.rs` |

mod answer;
mod asked;
mod machines;
mod page;
mod perform;
mod rows;
mod tree;

use super::test::own_directory::{Kind, OwnDirectory};
use crate::exit_status::INTERRUPTED;
use crate::messages::complain;
use iolite_options::commands::Asked;
use machines::Machines;
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
        return machines::follow(&target, &setup, &machines).map(|status| (String::new(), status));
    }
    asked::check_room(&setup, &target)?;
    let output = output.map(answer::Format::open).transpose()?;
    for told in OwnDirectory::remove_left(&target, &OWN)? {
        complain(program, &format_args!("meta: {told}"));
    }
    let own = match &machines {
        Machines::Ranks { .. } => OwnDirectory::make_named(machines::common_name(&target), &OWN)?,
        _ => OwnDirectory::make(&target, &OWN)?,
    };
    let ended = perform::perform(program, setup, &machines, &own.path, asked.has("verify"));
    drop(own);
    let mut outcome = match ended? {
        End::Through(outcome) => *outcome,
        End::Interrupted => return Ok((String::new(), INTERRUPTED)),
    };
    outcome.target = target;
    let is_kept = output.is_none_or(|output| output.write(program, &outcome));
    let is_good = is_kept && outcome.failures.is_empty();
    Ok((answer::text(&outcome), u8::from(!is_good)))
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
