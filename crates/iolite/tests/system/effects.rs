//! Each option has an externally visible effect. This table shows it, and a test fails if an option is missing.
//!
//! A row names an option, the rest of a command line, two values of the option (or one value and the option's absence),
//! and the observation: system calls, files, numbers of the report, the exit status. The program runs twice with the
//! first value and once with the second. The first two observations must be equal and the third one different. So a row
//! fails if its observation varies by itself, or if the option changes nothing. No row observes durations, because
//! other work on the machine would change them.
//!
//! Options that need more than this have separate tests elsewhere, which the table names.
//!
//! To add an option, add a row to the file of its subject in `effects/`.

mod command_line;
mod content;
mod engines;
mod files;
mod flow;
mod logs;
mod machine;
mod pattern;
mod replay;
mod reports;
mod see;
mod timing;
mod verify;

use crate::common::{Finished, Program, scratch};
use iolite_options::definition::Status;
use iolite_options::{engines as engine_table, registry};
use iolite_testing::{partly_skipped, skip, this_test};
use see::{See, Stage};
use std::collections::HashSet;
use std::path::Path;

/// The value that stands for the absence of the option.
const ABSENT: &str = "-";

/// How the effect of an option is shown.
pub enum Effect {
    /// By three runs of a row.
    Row(Row),
    /// By a separate test (or several options share one).
    Test {
        /// The option.
        option: &'static str,
        /// The module and the name of the test.
        path: &'static str,
        /// The test itself, so that the compiler checks that it exists.
        test: fn(),
    },
    /// The option has no visible effect, for this reason. [`the_exceptions_are_few`] keeps the list short.
    None(&'static str, &'static str),
}

/// A job, and an option with two values.
pub struct Row {
    /// The option. An option of an engine is preceded by the engine's name and a colon.
    option: &'static str,
    /// The rest of the command line. `@` stands for a file of 64 KiB, and `{}` for the option, which otherwise comes
    /// last. A job `j` is begun if the line names none.
    base: &'static str,
    /// The two values. [`ABSENT`] leaves the option out, and an empty text gives it without a value.
    values: [&'static str; 2],
    see: See,
}

/// A row of the table.
const fn row(
    option: &'static str,
    base: &'static str,
    one: &'static str,
    other: &'static str,
    see: See,
) -> Effect {
    Effect::Row(Row { option, base, values: [one, other], see })
}

/// A separate test.
macro_rules! test {
    ($option:literal, $module:ident $(:: $name:ident)+) => {
        crate::effects::Effect::Test {
            option: $option,
            path: concat!(stringify!($module) $(, "::", stringify!($name))+),
            test: crate::$module$(::$name)+,
        }
    };
}
use test;

/// The tables of all subjects.
const TABLES: &[&[Effect]] = &[
    files::TABLE,
    pattern::TABLE,
    timing::TABLE,
    flow::TABLE,
    content::TABLE,
    machine::TABLE,
    reports::TABLE,
    logs::TABLE,
    replay::TABLE,
    verify::TABLE,
    engines::TABLE,
    command_line::TABLE,
];

impl Effect {
    fn option(&self) -> &'static str {
        match self {
            Effect::Row(row) => row.option,
            Effect::Test { option, .. } | Effect::None(option, _) => option,
        }
    }
}

impl Row {
    /// The command line with one of the values. The two lines of a row differ only in the value.
    fn line(&self, value: &str) -> String {
        let bare = self.option.rsplit(':').next().unwrap_or(self.option);
        let option = match value {
            ABSENT => String::new(),
            "" => format!("--{bare}"),
            value => format!("--{bare}={value}"),
        };
        let base = self.base.replace('@', "--filename=f --size=64k");
        if is_of_the_run(self.option) {
            return format!("{option} {base}");
        }
        if base.contains("{}") {
            return base.replace("{}", &option);
        }
        let begins = if base.contains("--name") || self.option == "name" { "" } else { "--name=j " };
        format!("{begins}{base} {option}")
    }

    fn seen(&self, value: &str) -> Option<(String, String)> {
        let dir = scratch();
        Stage::set(dir.path());
        let line = self.line(value);
        Some((self.see.look(dir.path(), &line)?, line))
    }

    /// The defect of the row; `None` = it has none.
    fn problem(&self) -> Option<String> {
        let [one, other] = self.values;
        let Some((first, line)) = self.seen(one) else {
            let reason = format!("effect of {}: strace or fincore is not installed", self.option);
            partly_skipped(&this_test!(), &reason);
            return None;
        };
        let (second, _) = self.seen(one)?;
        let (third, other_line) = self.seen(other)?;
        if first != second {
            return Some(format!("{}: not the same twice\n{line}\n{first}\n{second}", self.option));
        }
        (first == third).then(|| format!("{}: no difference\n{line}\n{other_line}\n{first}", self.option))
    }

    /// [`Row::problem`], but a panic counts as a defect, so that the other rows are still checked.
    fn outcome(&self) -> Option<String> {
        std::panic::catch_unwind(|| self.problem()).unwrap_or_else(|panic| {
            let why = panic.downcast_ref::<String>().map_or("", String::as_str);
            Some(format!("{}: {why}", self.option))
        })
    }
}

fn is_of_the_run(option: &str) -> bool {
    registry::run_options().any(|(name, _)| name == option)
}

/// Runs the rows of one table.
fn check(table: &[Effect]) {
    if Program::under_test().is_peer {
        skip!("the table is about our own options");
    }
    let mut problems = Vec::new();
    for effect in table {
        let Effect::Row(row) = effect else { continue };
        problems.extend(row.outcome());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

macro_rules! tables {
    ($($subject:ident)+) => {$(
        mod $subject {
            #[test]
            fn have_their_effect() {
                super::super::check(super::super::$subject::TABLE);
            }
        }
    )+};
}

mod options_of {
    tables! { files pattern timing flow content machine reports logs replay verify engines command_line }
}

/// Every implemented option: job options, options of engines (preceded by the engine's name), and options of the run.
fn landed() -> Vec<String> {
    let works = |status: Status| status == Status::Works;
    let of_jobs = registry::job_options()
        .filter(|definition| works(definition.status()))
        .map(|definition| definition.name.to_string());
    let of_engines = engine_table::engines().iter().flat_map(|engine| {
        let landed = engine.options.iter().filter(|definition| works(definition.status()));
        landed.map(|definition| format!("{}:{}", engine.name, definition.name))
    });
    let of_the_run =
        registry::run_options().filter(|(_, status)| works(*status)).map(|(name, _)| name.to_string());
    of_jobs.chain(of_engines).chain(of_the_run).collect()
}

#[test]
fn every_option_that_has_landed_is_in_the_table() {
    let known: HashSet<&str> = TABLES.iter().flat_map(|table| table.iter()).map(Effect::option).collect();
    let landed = landed();
    let missing: Vec<&String> = landed.iter().filter(|option| !known.contains(option.as_str())).collect();
    assert!(
        missing.is_empty(),
        "options without an effect in the table: {missing:?} (see the head of effects.rs)"
    );
    let landed: HashSet<&str> = landed.iter().map(String::as_str).collect();
    let stale: Vec<&&str> = known.iter().filter(|option| !landed.contains(**option)).collect();
    assert!(stale.is_empty(), "in the table, but not implemented: {stale:?}");
}

/// The file of a separate test has to mention the option, and the function has to be a test.
#[test]
fn separate_tests_mention_their_option() {
    for effect in TABLES.iter().flat_map(|table| table.iter()) {
        let Effect::Test { option, path, test } = effect else { continue };
        let (module, name) = path.rsplit_once("::").expect("a module and a function");
        let source_of = |module: &str| {
            let source = format!("tests/system/{}.rs", module.replace("::", "/"));
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
        };
        // (A module of tests that a macro makes is in the file of the module above.)
        let above = || source_of(module.rsplit_once("::").expect("a module above").0);
        let source = source_of(module).or_else(|_| above()).expect("the module has a file");
        let bare = option.rsplit(':').next().unwrap_or(option);
        let mut names: Vec<&str> =
            registry::find_job(bare).map_or(Vec::new(), |definition| definition.names().collect());
        names.push(bare);
        assert!(
            names.iter().any(|name| source.contains(name)),
            "the file of {path} does not mention {option}"
        );
        let is_made = source.contains("#[test] pub fn $name()") && source.contains(&format!("\nfn {name}("));
        let is_test = is_made || source.contains(&format!("#[test]\npub fn {name}()"));
        assert!(is_test, "{path} is not a test ({test:p})");
    }
}

/// Options that are not implemented are refused by name; none is accepted and ignored.
#[test]
fn every_other_option_is_refused() {
    let dir = scratch();
    let refused = |name: &str, line: &str| -> Finished {
        Program::under_test().line(dir.path(), line).refused().says(&format!("{name} is not supported yet"))
    };
    for definition in registry::job_options().filter(|definition| definition.status() == Status::NotYet) {
        let text = format!("[k]\n{}=nonsense\n", definition.name);
        std::fs::write(dir.path().join("job.fio"), text).expect("a job file can be written");
        refused(definition.name, "--name=j --ioengine=null --size=4k job.fio");
    }
    for engine in engine_table::engines() {
        for definition in engine.options.iter().filter(|definition| definition.status() == Status::NotYet) {
            refused(
                definition.name,
                &format!("--name=j --ioengine={} --{}=nonsense", engine.name, definition.name),
            );
        }
    }
    for (name, _) in registry::run_options().filter(|(_, status)| *status == Status::NotYet) {
        let run =
            Program::under_test().line(dir.path(), &format!("--name=j --ioengine=null --size=4k --{name}=x"));
        run.refused().says(name);
    }
}

/// A row fails if its observation never changes, or changes at random.
#[test]
fn rows_that_show_nothing_fail() {
    let problem = |effect: Effect| match effect {
        Effect::Row(row) => row.outcome(),
        _ => None,
    };
    const JOB: &str = "--ioengine=null --size=64k";
    let blind = problem(row("description", JOB, "one", "two", See::Status)).expect("there is nothing to see");
    assert!(blind.contains("no difference"), "{blind}");
    let chance = row("description", JOB, "one", "two", See::Json("timestamp_ms"));
    let chance = problem(chance).expect("it differs by itself");
    assert!(chance.contains("not the same twice"), "{chance}");
    assert!(problem(row("description", JOB, "one", "two", See::Json("jobs.0.desc"))).is_none());
    let refused = row("bs", JOB, "4k", "100k", See::Says("Run status"));
    let refused = problem(refused).expect("a block is larger than the file");
    assert!(refused.contains("exit status: 1"), "{refused}");
}

#[test]
fn the_exceptions_are_few() {
    let exceptions = TABLES.iter().flat_map(|table| table.iter()).filter_map(|effect| match effect {
        Effect::None(option, reason) => Some((*option, *reason)),
        _ => None,
    });
    let exceptions: Vec<(&str, &str)> = exceptions.collect();
    assert!(exceptions.iter().all(|(_, reason)| reason.len() > 20), "{exceptions:?}");
    assert!(exceptions.len() <= 7, "an option without effect has no place in the program: {exceptions:?}");
}

/// Runs a line.
fn run(dir: &Path, line: &str) -> Finished {
    Program::under_test().line(dir, line)
}
