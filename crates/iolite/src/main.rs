//! Iolite: an I/O tester that speaks fio.
//!
//! This file reads like a table of contents: options, plan, run, report. Each has its own crate.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | one run as its user sees it: announcement, status lines, warnings, the report | `session.rs`, `console.rs`; the file of the report: `destination.rs` |
//! | failures that many I/Os and workers repeat, shown once | `repeated.rs` |
//! | facts about the machine of a run; `--save` | `facts.rs`; `saving.rs` |
//! | files of the whole run, and none that a job needs | `run_files.rs` |
//! | `--debug`; self-tests; the table of the profile `act` | `debug.rs`; `self_tests.rs`; `act.rs` |
//! | subcommands | `subcommands.rs`, a file for each |
//! | several runs (`iolite sweep`, `--repeat`): checks before the first, their directory, continuation | `points.rs`, `points/foresight.rs`, `points/directory.rs`, `points/runner.rs`; `repeat.rs` |
//! | `--web`: the run's side; jobs from a page | `live.rs`; `from_page.rs` |
//! | `--client`, `--mpi`; `--server` | `cluster.rs`, `mpi.rs`; `agent.rs`, runs for clients in a process of their own: `elsewhere.rs` |
//! | files that go back to clients; files that they may name; keys of connections | `returned.rs`; `served.rs`; `protection.rs` |
//! | what engines know before there is a plan | `external.rs` (facets of engines in shared objects), `stored_names.rs` (names in their storages) |

mod act;
mod agent;
mod cluster;
mod console;
mod debug;
mod destination;
mod drawn_logs;
mod elsewhere;
mod external;
mod facts;
mod from_page;
mod live;
mod merge;
mod mpi;
mod points;
mod protection;
mod repeat;
mod repeated;
mod returned;
mod run_files;
mod saving;
mod self_tests;
mod served;
mod session;
mod stored_names;
mod subcommands;

use console::Console;
use iolite_host::ThisMachine;
use iolite_options::{Diagnostic, Invocation, JobOptions, NO_JOBS, Name, OutputFormat, RunOptions, commands};
use iolite_plan::{Plan, Problem};
use iolite_remote::ranks::Meeting;
use iolite_report::Program;
use iolite_run::{HeldSignals, Outcome, Prepared, RunError, survive_size_limit};
use iolite_types::is_standard_stream;
use saving::Saving;
use session::Session;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// The exit status when a signal ended the run, as users of fio know it.
const INTERRUPTED: u8 = 128;
/// The highest exit status that counts failed jobs: higher ones have special meanings in a shell. (fio's count wraps,
/// so that 256 failed jobs count as success.)
const MOST_FAILURES: usize = 125;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = Name::of(&args.next().unwrap_or_default());
    let args: Vec<OsString> = args.collect();
    // If that fails, exceeding the limit of file sizes kills the program, as usual.
    let _ = survive_size_limit();
    if args.first().is_some_and(|word| word == iolite_remote::child::WORD) {
        return elsewhere::run(name, &args[1..]);
    }
    if args.first().is_some_and(|word| word == iolite_web::WORD) {
        return serve_page(name);
    }
    if args.first().is_some_and(|word| word == iolite_web::JOB_WORD) {
        return from_page::run(name, &args[1..]);
    }
    if let Some(subcommand) = commands::called_by(&args) {
        return subcommands::run(name.word(), subcommand, &args[1..]);
    }
    if let Some(repeated) = iolite_options::repeated(&args, name) {
        return ExitCode::from(repeat::run(name, &repeated));
    }
    debug::set_up(name, iolite_options::run_options(&args));
    let status = match iolite_options::launched(&args) {
        Some(launched) => mpi::run(name, &args, &launched),
        None => perform(name, &args, None),
    };
    debug::release();
    status
}

/// Performs the command line; under a launcher, with the other ranks.
fn perform(name: Name, args: &[OsString], ranks: Option<Meeting>) -> ExitCode {
    match iolite_options::parse(args, &|name| std::env::var(name).ok(), name) {
        Ok(Invocation::Print { text, status }) => answer(name.word(), &text, status),
        Ok(Invocation::NoJobs { usage }) => {
            let status = answer(name.word(), &usage, 1);
            complain(name, &NO_JOBS);
            status
        }
        Ok(Invocation::Test(test)) => self_tests::run(name.word(), &test),
        Ok(Invocation::InflateLog(file)) => inflate(name.word(), &file),
        Ok(Invocation::Serve(serving)) => {
            debug::release();
            agent::serve(name, &serving)
        }
        Ok(Invocation::RunElsewhere(run)) => ExitCode::from(cluster::run(name, *run, ranks)),
        Ok(Invocation::Run { batches, run, warnings }) => {
            let is_said = |warning: &Diagnostic| name.is_strict() && warning.is_said_by_fio();
            let (said, others): (Vec<_>, Vec<_>) = warnings.into_iter().partition(is_said);
            console::print_error(&told(name, &said));
            ExitCode::from(run_all(name, batches, &run, told(name, &others)))
        }
        Err(errors) => {
            errors.iter().for_each(|error| complain(name, error));
            ExitCode::FAILURE
        }
    }
}

/// Serves the page of a run that has started this process.
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

/// Warnings about the input as lines.
fn told(name: Name, warnings: &[Diagnostic]) -> String {
    warnings.iter().map(|warning| diagnostic(name, &warning.as_warning())).collect()
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

/// Prints the answer. The exit status is this one unless printing fails.
fn answer(name: &str, text: &str, status: u8) -> ExitCode {
    match console::print(text) {
        Ok(()) => ExitCode::from(status),
        Err(error) => {
            complain(name, &format_args!("standard output cannot be written: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a diagnostic to standard error, after the program's name.
fn complain(name: impl Display, what: &dyn Display) {
    console::print_error(&diagnostic(name, what));
}

fn diagnostic(name: impl Display, what: &dyn Display) -> String {
    format!("{name}: {}\n", iolite_types::without_error_numbers(&what.to_string()))
}

fn program(name: Name) -> Program {
    Program { version: name.version().to_owned(), own_version: name.own_version().to_owned() }
}

/// Runs all jobs, and prints the warnings about the input where users expect them. Returns the exit status.
///
/// Callers of `fio` take any line on standard error for a failure. Under that name, warnings are lines of the normal
/// report, like fio's own notices, and reports for programs do not contain them (except for those that fio itself prints
/// on standard error, which the caller has printed there). If a run is refused, they also go to standard error, because
/// they may explain why.
fn run_all(name: Name, batches: Vec<Vec<JobOptions>>, run: &RunOptions, mut warnings: String) -> u8 {
    let told = warnings.clone();
    if !name.is_strict() {
        console::print_error(&std::mem::take(&mut warnings));
    }
    let status = run_jobs(name, batches, run, &told, &mut warnings);
    // There was no report for the warnings.
    if status != 0 {
        console::print_error(&warnings);
    } else if run.output_format.contains(&OutputFormat::Normal) && console::print(&warnings).is_err() {
        return 1;
    }
    status
}

/// A plan, and the problems that prevent it.
struct Drafted {
    plan: Plan,
    problems: Vec<Problem>,
}

/// Plans the jobs for this machine. `None` = only merging traces was requested.
///
/// Several job files are one run with one report, in which each file waits for the one before.
///
/// # Errors
/// Traces cannot be merged, and nothing else was requested.
fn draft(
    name: Name,
    batches: Vec<Vec<JobOptions>>,
    run: &RunOptions,
    machine: &ThisMachine,
    warnings: &mut String,
) -> Result<Option<Drafted>, Problem> {
    let mut jobs = Vec::new();
    for (position, mut batch) in batches.into_iter().enumerate() {
        if let Some(first) = batch.first_mut() {
            first.schedule.stonewall |= position > 0;
        }
        jobs.append(&mut batch);
    }
    let mut problems = Vec::new();
    if !run.parse_only {
        match merge::all(&mut jobs) {
            Ok(0) if run.merge_blktrace_only => {
                let what = "warning: --merge-blktrace-only: no job has merge_blktrace_file and read_iolog";
                *warnings += &diagnostic(name, &what);
            }
            Ok(_) => {}
            Err(problem) if run.merge_blktrace_only => return Err(problem),
            Err(problem) => problems.push(problem),
        }
        if run.merge_blktrace_only {
            return Ok(None);
        }
        if problems.is_empty() {
            let known = external::describe(&mut jobs).and_then(|()| stored_names::look_up(&mut jobs));
            problems = known.err().unwrap_or_default();
        }
    }
    for job in &mut jobs {
        if name.is_strict() {
            job.be_as_fio(run.readonly);
        }
    }
    let (plan, found) = Plan::draft(jobs, run, machine);
    if problems.is_empty() {
        problems = found;
    }
    Ok(Some(Drafted { plan, problems }))
}

/// Runs all jobs; returns the exit status. `warnings` still have to be printed, and go into the report; `told` have
/// been printed.
fn run_jobs(
    name: Name,
    batches: Vec<Vec<JobOptions>>,
    run: &RunOptions,
    told: &str,
    warnings: &mut String,
) -> u8 {
    // All decisions use the same facts.
    let machine = ThisMachine::new();
    let Drafted { plan, problems } = match draft(name, batches, run, &machine, warnings) {
        Ok(Some(drafted)) => drafted,
        Ok(None) => return 0,
        Err(problem) => {
            complain(name, &problem);
            return 1;
        }
    };
    if !problems.is_empty() {
        return refuse(name, run, &plan, &machine, &RunError::Problems(problems));
    }
    if run.parse_only {
        return 0;
    }
    let prepared = match Prepared::new(&plan, &machine) {
        Ok(prepared) => prepared,
        Err(error) => return refuse(name, run, &plan, &machine, &error),
    };
    // Before the file of the report is opened and becomes an empty file.
    let check = |store: &Path| run_files::check_store(store, &plan, &machine);
    let opened = Saving::prepare(name, run, &check)
        .map_err(console::OpenError::from)
        .and_then(|saving| Ok((saving, open_console(run, &plan, &machine)?)));
    let (saving, mut console) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            complain(name, &error);
            return 1;
        }
    };
    let mut session = Session::new(name, program(name), run, &mut console);
    session.record(&plan, &machine, saving.is_some());
    session.remember(told);
    // fio makes no such remarks.
    let remarks = if name.is_strict() { Vec::new() } else { plan.remarks(&machine) };
    for remark in remarks {
        let line = diagnostic(name, &format_args!("warning: {remark}"));
        console::print_error(&line);
        session.remember(&line);
    }
    if let Err(why) = session.serve(&plan, || prepared.outline()) {
        complain(name, &why);
        return 1;
    }
    session.begin(&plan, &std::mem::take(warnings));
    // Until the report is written.
    let performed = HeldSignals::new().and_then(|held| {
        let outcome = prepared.perform(session.settings(), &mut |event| session.take(event))?;
        Ok((held, outcome))
    });
    let (held, mut outcome) = match performed {
        Ok(performed) => performed,
        Err(error) => {
            tell_refusal(name, &error);
            let report = error.report(&plan);
            if let Err(error) = session.refuse(&report) {
                complain(name, &error);
            }
            session.show_refusal(words_of(&error), report);
            return 1;
        }
    };
    held.give_up_when_asked(outcome.requests, console::taken, INTERRUPTED.into(), move || {
        complain(name, &"the report is given up: nothing reads it");
    });
    let written = session.end(&mut outcome.report);
    if let Err(error) = &written {
        complain(name, error);
    }
    // A report that could not be written is stored all the same.
    let is_kept = saving.is_none_or(|saving| saving.keep(&outcome.report));
    // Shown last: if the page's process hangs, the report is already written and stored.
    session.show(&outcome.report);
    match exit_status(name, &outcome) {
        _ if written.is_err() => 1,
        0 if !is_kept => 1,
        status => status,
    }
}

/// The exit status of a run.
fn exit_status(name: Name, outcome: &Outcome) -> u8 {
    status_of(name, outcome.signal.is_some(), outcome.failed, outcome.failures)
}

/// The exit status of a run that a signal has ended, or that has failed, with this many failed workers.
fn status_of(name: Name, is_interrupted: bool, has_failed: bool, failures: usize) -> u8 {
    match has_failed {
        _ if is_interrupted => INTERRUPTED,
        true if name.is_strict() => failures.clamp(1, MOST_FAILURES).try_into().unwrap_or(u8::MAX),
        true => 1,
        false => 0,
    }
}

/// Opens the destination of the report, unless a file that the run needs would be lost.
fn open_console(run: &RunOptions, plan: &Plan, machine: &ThisMachine) -> Result<Console, console::OpenError> {
    run_files::check(run, plan, machine)?;
    let output_is_data = writes_to_output(plan);
    if output_is_data {
        debug::avoid_standard_output();
    }
    let mut console = Console::open(run, output_is_data)?;
    debug::follow(&mut console);
    Ok(console)
}

/// Whether a job writes its data to standard output.
fn writes_to_output(plan: &Plan) -> bool {
    plan.workers.iter().any(|worker| {
        let job = plan.job_of(worker);
        job.rw.writes()
            && job.engine.facets.has_local_files()
            && worker.files.iter().any(|file| is_standard_stream(&file))
    })
}

/// Reports why nothing runs, to the user and to programs.
fn refuse(name: Name, run: &RunOptions, plan: &Plan, machine: &ThisMachine, error: &RunError) -> u8 {
    tell_refusal(name, error);
    if !run.parse_only && session::has_program_format(run) {
        match open_console(run, plan, machine) {
            Ok(mut console) => {
                let written =
                    Session::new(name, program(name), run, &mut console).refuse(&error.report(plan));
                if let Err(error) = written {
                    complain(name, &error);
                }
            }
            Err(error) => complain(name, &error),
        }
    }
    1
}

fn tell_refusal(name: Name, error: &RunError) {
    words_of(error).iter().for_each(|words| complain(name, words));
}

/// All problems that prevent a run.
fn words_of(error: &RunError) -> Vec<String> {
    match error {
        RunError::Problems(problems) => problems.iter().map(ToString::to_string).collect(),
        RunError::System(..) => vec![error.to_string()],
    }
}
