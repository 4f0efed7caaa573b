//! Iolite: an I/O tester that speaks fio.
//!
//! This file reads like a table of contents: options, plan, run, report. Each has its own crate.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | a run on this machine, from its jobs to its exit status; what is said beside the report | `local_run.rs`, `exit_status.rs`; `messages.rs` |
//! | one run as its user sees it: announcement, status lines, warnings, the report | `session.rs`, `console.rs`; the file of the report: `output_file.rs` |
//! | facts about the machine of a run; `--save` | `run_facts.rs`; `saving.rs` |
//! | files of the whole run, and none that a job needs | `run_files.rs` |
//! | what to type instead of a directory or a device | `first_words.rs` |
//! | what a program without some features of cargo says | `left_out.rs` |
//! | `--debug`; self-tests; the table of the profile `act` | `debug.rs`; `self_tests.rs`; `act_profile.rs` |
//! | subcommands | `subcommands.rs`, a file for each |
//! | several runs (`iolite sweep`, `--repeat`): checks before the first, their directory, continuation | `run_series.rs`, `run_series/foresight.rs`, `run_series/directory.rs`, `run_series/runner.rs`; `repeat.rs` |
//! | `--web`: the run's side; jobs from a page | `live_page.rs`; `job_from_page.rs` |
//! | `--client`, `--mpi`; `--server` | `cluster.rs`, `mpi.rs`; `agent.rs`, runs for clients in a process of their own: `client_run.rs` |
//! | files that go back to clients; files that they may name; keys of connections | `returned_files.rs`; `served_files.rs`; `connection_keys.rs` |
//! | what engines know before there is a plan | `external_engines.rs` (facets of engines in shared objects), `storage_names.rs` (names in their storages) |

mod act_profile;
#[cfg(feature = "agents")]
mod agent;
#[cfg(feature = "agents")]
mod client_run;
#[cfg(feature = "agents")]
mod cluster;
#[cfg(feature = "agents")]
mod connection_keys;
mod console;
mod debug;
mod exit_status;
mod external_engines;
mod first_words;
#[cfg(feature = "web")]
mod job_from_page;
mod left_out;
#[cfg(feature = "web")]
mod live_page;
#[cfg(not(feature = "web"))]
#[path = "live_page/left_out.rs"]
mod live_page;
mod local_run;
mod merged_traces;
mod messages;
#[cfg(feature = "web")]
mod metrics_push;
#[cfg(not(feature = "web"))]
#[path = "metrics_push/left_out.rs"]
mod metrics_push;
#[cfg(feature = "agents")]
mod mpi;
mod output_file;
mod page_logs;
mod repeat;
mod report_formats;
#[cfg(feature = "agents")]
mod returned_files;
mod run_facts;
mod run_files;
mod run_series;
mod saving;
mod self_tests;
#[cfg(feature = "agents")]
mod served_files;
mod session;
mod storage_names;
mod subcommands;
mod terminal;

use iolite_options::{Diagnostic, Invocation, NO_JOBS, Name, RunElsewhere, RunOptions, commands};
use iolite_run::survive_size_limit;
use messages::{answer, complain, told};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Does what the command line says.
pub fn main() -> ExitCode {
    iolite_run::begin_calibration();
    let mut args = std::env::args_os();
    let name = Name::of(&args.next().unwrap_or_default());
    let args: Vec<OsString> = args.collect();
    // If that fails, exceeding the limit of file sizes kills the program, as usual.
    let _ = survive_size_limit();
    #[cfg(feature = "agents")]
    if args.first().is_some_and(|word| word == iolite_remote::child::WORD) {
        return client_run::run(name, &args[1..]);
    }
    #[cfg(feature = "web")]
    if args.first().is_some_and(|word| word == iolite_web::WORD) {
        return serve_page(name);
    }
    #[cfg(feature = "web")]
    if args.first().is_some_and(|word| word == iolite_full_screen::WORD) {
        return show_run(name, args.get(1));
    }
    #[cfg(feature = "web")]
    if args.first().is_some_and(|word| word == iolite_web::JOB_WORD) {
        return job_from_page::run(name, &args[1..]);
    }
    if let Some(subcommand) = commands::called_by(&args) {
        return subcommands::run(name.word(), subcommand, &args[1..]);
    }
    if !name.is_strict()
        && let Some(version) = commands::called_by_version(&args)
    {
        return subcommands::run(name.word(), version, &[]);
    }
    if let Some(repeated) = iolite_options::repeated(&args, name) {
        return ExitCode::from(repeat::run(name, &repeated));
    }
    if !name.is_strict()
        && let Some(words) = first_words::instead(&args)
    {
        complain(name, &words);
        return ExitCode::FAILURE;
    }
    debug::set_up(name, iolite_options::run_options(&args));
    let status = match iolite_options::launched(&args) {
        #[cfg(feature = "agents")]
        Some(launched) => mpi::run(name, &launched, |ranks| {
            perform(name, &args, |run| ExitCode::from(cluster::run(name, run, Some(ranks))))
        }),
        #[cfg(feature = "agents")]
        None => perform(name, &args, |run| ExitCode::from(cluster::run(name, run, None))),
        #[cfg(not(feature = "agents"))]
        _ => perform(name, &args, |run| {
            left_out::refuse(name, if run.on_ranks { "--mpi" } else { "--client" }, "agents")
        }),
    };
    debug::release();
    status
}

/// Performs the command line. `elsewhere`: performs runs on other machines.
fn perform(name: Name, args: &[OsString], elsewhere: impl FnOnce(RunElsewhere) -> ExitCode) -> ExitCode {
    match iolite_options::parse(args, &|name| std::env::var(name).ok(), name) {
        Ok(Invocation::Print { text, status }) => answer(name.word(), &text, status),
        Ok(Invocation::NoJobs { usage }) => {
            let status = answer(name.word(), &usage, 1);
            match name.is_strict() {
                true => complain(name, &NO_JOBS),
                false => {
                    complain(
                        name,
                        &format_args!("{NO_JOBS}; iolite test DIRECTORY measures storage without any"),
                    );
                }
            }
            status
        }
        Ok(Invocation::Test(test)) => self_tests::run(name.word(), &test),
        Ok(Invocation::InflateLog(file)) => inflate(name.word(), &file),
        #[cfg(feature = "agents")]
        Ok(Invocation::Serve(serving)) => {
            debug::release();
            agent::serve(name, &serving)
        }
        #[cfg(not(feature = "agents"))]
        Ok(Invocation::Serve(_)) => left_out::refuse(name, "--server", "agents"),
        Ok(Invocation::RunElsewhere(mut run)) => match prepare(name, &mut run.run) {
            Ok(()) => elsewhere(*run),
            Err(why) => {
                complain(name, &why);
                ExitCode::FAILURE
            }
        },
        Ok(Invocation::Run { batches, mut run, warnings }) => {
            if let Err(why) = prepare(name, &mut run) {
                complain(name, &why);
                return ExitCode::FAILURE;
            }
            let is_said = |warning: &Diagnostic| name.is_strict() && warning.is_said_by_fio();
            let (said, others): (Vec<_>, Vec<_>) = warnings.into_iter().partition(is_said);
            console::print_error(&told(name, &said));
            ExitCode::from(local_run::run_all(name, batches, &run, told(name, &others)))
        }
        Err(errors) => {
            errors.iter().for_each(|error| complain(name, error));
            ExitCode::FAILURE
        }
    }
}

/// Checks that this program can do what the run asks for, and chooses its format.
fn prepare(name: Name, run: &mut RunOptions) -> Result<(), String> {
    left_out::check(run)?;
    terminal::choose_format(name, run)?;
    terminal::check_live(run)
}

/// Serves the page of a run that has started this process.
#[cfg(feature = "web")]
fn serve_page(name: Name) -> ExitCode {
    match iolite_web::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let what = format_args!("only a run may start this, as the process of its page: {error}");
            complain(name, &what);
            ExitCode::FAILURE
        }
    }
}

/// Shows the run that has started this process on the whole terminal.
#[cfg(feature = "web")]
fn show_run(name: Name, look: Option<&OsString>) -> ExitCode {
    match iolite_full_screen::serve(&look.map_or(Default::default(), |word| word.to_string_lossy())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let what = format_args!("only a run may start this, as the process of its screen: {error}");
            complain(name, &what);
            ExitCode::FAILURE
        }
    }
}

/// Prints the lines of a compressed log.
fn inflate(name: &str, file: &Path) -> ExitCode {
    let inflated = std::fs::File::open(file).and_then(|file| {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        iolite_logs::inflate::streams(&mut std::io::BufReader::new(file), &mut out)?;
        out.flush()
    });
    match console::unless_closed(inflated) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(name, &format_args!("--inflate-log={}: {error}", file.display()));
            ExitCode::FAILURE
        }
    }
}
