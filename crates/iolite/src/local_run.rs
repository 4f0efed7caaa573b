//! A run on this machine: plan, refusals, the run itself, its exit status.

use crate::console::Console;
use crate::messages::{complain, diagnostic, program};
use crate::metrics_push::Collector;
use crate::saving::Saving;
use crate::session::{self, Session};
use crate::{console, debug, exit_status, external_engines, merged_traces, run_files, storage_names};
use iolite_host::ThisMachine;
use iolite_options::{JobOptions, LiveView, Name, OutputFormat, RunOptions};
use iolite_plan::{Plan, Problem};
use iolite_run::{HeldSignals, Outcome, Prepared, RunError};
use iolite_types::is_standard_stream;
use std::path::Path;

/// Runs all jobs, and prints the warnings about the input where users expect them. Returns the exit status.
///
/// Callers of `fio` take any line on standard error for a failure. Under that name, warnings are lines of the normal
/// report, like fio's own notices, and reports for programs do not contain them (except for those that fio itself prints
/// on standard error, which the caller has printed there). If a run is refused, they also go to standard error, because
/// they may explain why.
pub(crate) fn run_all(
    name: Name,
    batches: Vec<Vec<JobOptions>>,
    run: &RunOptions,
    mut warnings: String,
) -> u8 {
    let told = warnings.clone();
    if !name.is_strict() {
        console::print_error(&std::mem::take(&mut warnings));
    }
    let status = run_jobs(name, batches, run, &told, &mut warnings);
    // There was no report for the warnings.
    if status != 0 {
        console::print_error(&warnings);
    } else if run.is_for_people() && console::print(&warnings).is_err() {
        return 1;
    }
    status
}

/// A plan, and the problems that prevent it.
pub(crate) struct Drafted {
    pub(crate) plan: Plan,
    pub(crate) problems: Vec<Problem>,
}

/// Plans the jobs for this machine. `None` = only merging traces was requested.
///
/// Several job files are one run with one report, in which each file waits for the one before.
///
/// # Errors
/// Traces cannot be merged, and nothing else was requested.
pub(crate) fn draft(
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
        match merged_traces::all(&mut jobs) {
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
            let known =
                external_engines::describe(&mut jobs).and_then(|()| storage_names::look_up(&mut jobs));
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
pub(crate) fn run_jobs(
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
    let collector = match Collector::of(run) {
        Ok(collector) => collector,
        Err(why) => {
            complain(name, &why);
            return 1;
        }
    };
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
    if writes_to_output(&plan) && run.live == LiveView::Full {
        complain(
            name,
            &"--live=full: a job writes its data to standard output; leave the option out, or give the job a file",
        );
        return 1;
    }
    // The screen of standard output is taken by data.
    let plain;
    let run = if writes_to_output(&plan) && !run.has_chosen_format {
        plain = RunOptions { output_format: vec![OutputFormat::Normal], ..run.clone() };
        &plain
    } else {
        run
    };
    let mut session = Session::new(name, program(name), run, &mut console);
    session.record(&plan, &machine, saving.is_some());
    session.remember(told);
    let complaints = if name.is_strict() { plan.complaints_of_fio() } else { Vec::new() };
    for complaint in complaints {
        console::print_error(&diagnostic(name, &complaint));
    }
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
    held.give_up_when_asked(outcome.requests, console::taken, exit_status::INTERRUPTED.into(), move || {
        complain(name, &"the report is given up: nothing reads it");
    });
    let written = session.end(&mut outcome.report);
    if let Err(error) = &written {
        complain(name, error);
    }
    // A report that could not be written is stored all the same.
    let is_kept = saving.is_none_or(|saving| saving.keep(&outcome.report));
    let pushed = collector.map_or(Ok(()), |collector| collector.push(name, &outcome.report));
    if let Err(why) = &pushed {
        complain(name, why);
    }
    // Shown last: if the page's process hangs, the report is already written and stored.
    session.show(&outcome.report);
    match status(name, &outcome) {
        _ if written.is_err() => 1,
        0 if !is_kept || pushed.is_err() => 1,
        status => status,
    }
}

/// The exit status of a run.
pub(crate) fn status(name: Name, outcome: &Outcome) -> u8 {
    exit_status::of(name, outcome.signal.is_some(), outcome.failed, outcome.failures)
}

/// Opens the destination of the report, unless a file that the run needs would be lost.
pub(crate) fn open_console(
    run: &RunOptions,
    plan: &Plan,
    machine: &ThisMachine,
) -> Result<Console, console::OpenError> {
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
pub(crate) fn writes_to_output(plan: &Plan) -> bool {
    plan.workers.iter().any(|worker| {
        let job = plan.job_of(worker);
        job.rw.writes()
            && job.engine.facets.has_local_files()
            && worker.files.iter().any(|file| is_standard_stream(&file))
    })
}

/// Reports why nothing runs, to the user and to programs.
pub(crate) fn refuse(
    name: Name,
    run: &RunOptions,
    plan: &Plan,
    machine: &ThisMachine,
    error: &RunError,
) -> u8 {
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

pub(crate) fn tell_refusal(name: Name, error: &RunError) {
    words_of(error).iter().for_each(|words| complain(name, words));
}

/// All problems that prevent a run.
pub(crate) fn words_of(error: &RunError) -> Vec<String> {
    match error {
        RunError::Problems(problems) => problems.iter().map(ToString::to_string).collect(),
        RunError::System(..) => vec![error.to_string()],
    }
}
