//! Iolite: an I/O tester that speaks fio.
//!
//! This file reads like a table of contents: options, plan, run, report. Each is a crate of its own.

mod act;
mod companions;
mod console;
mod debug;
mod external;
mod merge;
mod self_tests;
mod session;
mod stored_names;

use console::Console;
use iolite_host::ThisMachine;
use iolite_options::{Invocation, JobOptions, NO_JOBS, RunOptions, commands};
use iolite_plan::{Plan, own_files};
use iolite_report::Program;
use iolite_run::{HeldSignals, Prepared, RunError};
use iolite_types::is_standard_stream;
use session::Session;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// The exit status when a signal ended the run, as users of fio know it.
const INTERRUPTED: u8 = 128;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    let name =
        if Path::new(&program).file_name().is_some_and(|name| name == "fio") { "fio" } else { "iolite" };
    let args: Vec<OsString> = args.collect();
    if let Some(companion) = commands::called_by(&args) {
        return companions::run(name, companion, &args[1..]);
    }
    debug::set_up(iolite_options::run_options(&args));
    match iolite_options::parse(&args, &|name| std::env::var(name).ok(), name == "fio") {
        Ok(Invocation::Print { text, status }) => answer(name, &text, status),
        Ok(Invocation::NoJobs { usage }) => {
            let status = answer(name, &usage, 1);
            complain(name, &NO_JOBS);
            status
        }
        Ok(Invocation::Test(test)) => self_tests::run(name, &test),
        Ok(Invocation::InflateLog(file)) => inflate(name, &file),
        Ok(Invocation::Run { batches, run, warnings }) => {
            warnings.iter().for_each(|warning| complain(name, &warning.as_warning()));
            ExitCode::from(run_all(name, batches, &run))
        }
        Err(errors) => {
            errors.iter().for_each(|error| complain(name, error));
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

/// Prints what was asked for, and ends with this status unless the answer is lost.
fn answer(name: &str, text: &str, status: u8) -> ExitCode {
    match console::print(text) {
        Ok(()) => ExitCode::from(status),
        Err(error) => {
            complain(name, &format_args!("standard output cannot be written: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Who says what to whom: diagnostics go to standard error, with the program's name.
fn complain(name: &str, what: &dyn Display) {
    console::print_error(&format!("{name}: {}\n", iolite_types::without_error_numbers(&what.to_string())));
}

fn program(name: &str) -> Program {
    let own = concat!("iolite-", env!("CARGO_PKG_VERSION"));
    Program { version: if name == "fio" { format!("fio-3.42 ({own})") } else { own.to_owned() } }
}

/// Runs all jobs; the exit status.
///
/// Several job files are one run with one report, in which each file waits for the one before.
fn run_all(name: &'static str, batches: Vec<Vec<JobOptions>>, run: &RunOptions) -> u8 {
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
                complain(
                    name,
                    &"warning: --merge-blktrace-only: no job has merge_blktrace_file and read_iolog",
                );
            }
            Ok(_) => {}
            Err(problem) if run.merge_blktrace_only => {
                complain(name, &problem);
                return 1;
            }
            Err(problem) => problems.push(problem),
        }
        if run.merge_blktrace_only {
            return 0;
        }
        if problems.is_empty() {
            let known = external::describe(&mut jobs).and_then(|()| stored_names::look_up(&mut jobs));
            problems = known.err().unwrap_or_default();
        }
    }
    // Everything is decided from the same facts.
    let machine = ThisMachine::new();
    let (plan, found) = Plan::draft(jobs, run, &machine);
    if problems.is_empty() {
        problems = found;
    }
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
    let mut console = match open_console(run, &plan, &machine) {
        Ok(console) => console,
        Err(error) => {
            complain(name, &error);
            return 1;
        }
    };
    let mut session = Session::new(name, program(name), run, &mut console);
    session.begin(&plan);
    // Until the report is written.
    let performed = HeldSignals::new().and_then(|held| {
        let outcome = prepared.perform(session.settings(), &mut |event| session.take(event))?;
        Ok((held, outcome))
    });
    let (held, outcome) = match performed {
        Ok(performed) => performed,
        Err(error) => {
            tell_refusal(name, &error);
            session.refuse(&error.report(&plan));
            return 1;
        }
    };
    held.end_at_the_second(INTERRUPTED.into());
    session.end(&outcome.report);
    if let Some(error) = session.take_write_error() {
        complain(name, &format_args!("the report cannot be written: {error}"));
        return 1;
    }
    match outcome {
        outcome if outcome.signal.is_some() => INTERRUPTED,
        outcome if outcome.failed => 1,
        _ => 0,
    }
}

/// Opens the place of the report, unless it is a file that the run needs.
fn open_console(run: &RunOptions, plan: &Plan, machine: &ThisMachine) -> Result<Console, console::OpenError> {
    if let Some(path) = &run.output
        && let Some(what) = own_files::at(plan, path, machine)
    {
        return Err(console::OpenError::taken(path, &what));
    }
    let output_is_data = writes_to_output(plan);
    if output_is_data {
        debug::use_standard_error();
    }
    Console::open(run, output_is_data)
}

/// Whether standard output is where some job's data goes.
fn writes_to_output(plan: &Plan) -> bool {
    plan.workers.iter().any(|worker| {
        let job = plan.job_of(worker);
        job.rw.writes()
            && job.engine.facets.has_local_files()
            && worker.files.iter().any(|file| is_standard_stream(file))
    })
}

/// Says why nothing runs, to a person and to programs.
fn refuse(name: &'static str, run: &RunOptions, plan: &Plan, machine: &ThisMachine, error: &RunError) -> u8 {
    tell_refusal(name, error);
    if !run.parse_only && session::has_program_format(run) {
        match open_console(run, plan, machine) {
            Ok(mut console) => {
                Session::new(name, program(name), run, &mut console).refuse(&error.report(plan));
            }
            Err(error) => complain(name, &error),
        }
    }
    1
}

fn tell_refusal(name: &str, error: &RunError) {
    match error {
        RunError::Problems(problems) => problems.iter().for_each(|problem| complain(name, problem)),
        RunError::System(..) => complain(name, error),
    }
}
