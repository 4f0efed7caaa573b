//! A job that was written in a page (`iolite web --allow-run`), in the process that the page's server has started for
//! it.
//!
//! Before the process reads the job, it gives up access to all files except those served, as a run for a client does.
//! For a check, the job is parsed, planned and prepared, which changes nothing. A run then sends its events to the
//! page, as any run does.

use crate::client_run::{DENIED, executes, give_up_all_but};
use crate::local_run::{Drafted, draft};
use crate::messages::program;
use crate::{run_facts, served_files};
use iolite_host::ThisMachine;
use iolite_options::engines::{Data, chosen};
use iolite_options::{
    Diagnostic, Invocation, JobOptions, NO_JOBS, Name, Origin, RunOptions, SentFile, SentJobs,
};
use iolite_page::Html;
use iolite_plan::{Plan, Problem, own_files};
use iolite_remote::child;
use iolite_remote::confine::covers;
use iolite_remote::permissions::Permissions;
use iolite_report::{Exporter, Json};
use iolite_run::{HeldSignals, Prepared, RunError, Settings};
use iolite_stats::{EventKind, Facts, MOST_WITH_LATENCIES, Recorder, Report};
use iolite_types::without_error_numbers;
use iolite_web::{Held, Hello, JobChannel, Judgement, Mistake, Step, Written};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name of the job file in messages; the editor shows places without it.
const FILE: &str = "job.fio";
/// The most files of a directory that are confirmed one by one; more are confirmed by the name of the directory.
const MOST_ALONE: usize = 4;
/// At most this many mistakes are reported.
const MOST_MISTAKES: usize = 200;

/// Performs the request of the page's server.
pub fn run(name: Name, words: &[OsString]) -> ExitCode {
    let mut channel = match JobChannel::take_over() {
        Ok(channel) => channel,
        Err(error) => {
            let what =
                format_args!("only the server of a page may start this, as the process of a job: {error}");
            crate::messages::complain(name, &what);
            return ExitCode::FAILURE;
        }
    };
    let permissions = Permissions::of(words);
    let own = child::spool(words);
    // Before the job is read.
    let confined = settle(&permissions, &own);
    // If the server is gone, there is no one to report to.
    let Ok(written) = channel.written() else { return ExitCode::FAILURE };
    match confined {
        Ok(()) => perform(name, written, &permissions, channel),
        Err(why) => channel.judge(Judgement { mistakes: vec![mistake(why)], held: Vec::new() }),
    }
    ExitCode::SUCCESS
}

/// Changes to the first served directory, and gives up access to everything else.
fn settle(permissions: &Permissions, own: &Path) -> Result<(), String> {
    if permissions.only.is_empty() {
        return Err("without --serve-only, nothing is run for a page".to_owned());
    }
    let home = permissions.only.iter().find(|path| path.is_dir());
    give_up_all_but(&permissions.only, permissions, own)?;
    let home = home.map_or(own, PathBuf::as_path);
    std::env::set_current_dir(home).map_err(|error| format!("{}: {error}", home.display()))
}

fn perform(name: Name, written: Written, permissions: &Permissions, mut channel: JobChannel) {
    let run = RunOptions { readonly: !permissions.changes, ..RunOptions::default() };
    let machine = ThisMachine::new();
    let mut warnings = Vec::new();
    let drafted = read(written.text, &run, name, &mut warnings)
        .and_then(|batches| plan(name, batches, &run, permissions, &machine));
    let drafted = match drafted {
        Ok(drafted) => drafted,
        Err(problems) => return channel.judge(judgement(problems, warnings, permissions)),
    };
    let prepared = match Prepared::new(&drafted, &machine) {
        Ok(prepared) => prepared,
        Err(error) => return channel.judge(judgement(of_error(error), warnings, permissions)),
    };
    let held = held(prepared.holding());
    let found = Judgement { held, ..judgement(Vec::new(), warnings.clone(), permissions) };
    match written.step {
        Step::Check => return channel.judge(found),
        Step::Start { confirmed } if found.unconfirmed(&confirmed) => return channel.judge(found),
        Step::Start { .. } => {}
    }
    let blocks = drafted.blocks_of_workers();
    let told = warnings.into_iter().map(|one| one.message).collect();
    let facts = Facts { warnings: told, ..run_facts::of(&drafted, &machine) };
    let outline = Report { facts: Some(facts.clone()), ..prepared.outline() };
    let own_version = name.own_version().to_owned();
    let hello = Hello {
        outline,
        interval_ns: Recorder::interval(blocks.len()).as_nanos() as u64,
        blocks: blocks.clone(),
        of_hosts: false,
        program: own_version,
        linger_ms: None,
    };
    if channel.begin(hello).is_err() {
        return;
    }
    let mut report = measure(&drafted, prepared, blocks, &mut channel);
    report.facts = Some(facts);
    let bytes = |exporter: &dyn Exporter| {
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = exporter.write(&report, &program(name), &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    channel.end(Some(bytes(&Json { bins: true })), bytes(&Html));
}

/// Runs the jobs; the report.
fn measure(
    plan: &Plan,
    prepared: Prepared<'_>,
    blocks: Vec<Option<u32>>,
    channel: &mut JobChannel,
) -> Report {
    let workers = blocks.len();
    let mut recorder = Recorder::new(blocks);
    let settings = Settings {
        sample_interval: Some(Recorder::interval(workers)),
        sample_latencies: workers <= MOST_WITH_LATENCIES,
        ..Settings::default()
    };
    let performed = HeldSignals::new().and_then(|held| {
        let outcome = prepared.perform(settings, &mut |event| {
            channel.take(&event);
            if let EventKind::Sample(snapshot) = event.kind {
                recorder.take(*snapshot);
            }
        })?;
        Ok((held, outcome))
    });
    match performed {
        Ok((_held, outcome)) => Report { series: recorder.series(), ..outcome.report },
        Err(error) => error.report(plan),
    }
}

/// The jobs, as this machine understands them.
fn read(
    text: String,
    run: &RunOptions,
    name: Name,
    warnings: &mut Vec<Mistake>,
) -> Result<Vec<Vec<JobOptions>>, Vec<Mistake>> {
    let sent = SentJobs {
        files: vec![SentFile::Here(FILE.to_owned())],
        texts: BTreeMap::from([(FILE.to_owned(), text.into_bytes())]),
        sections: Vec::new(),
        run: run.clone(),
    };
    // There are no files except the one that is sent.
    let may_read = |_: &Path| Err("a job file of a page includes nothing".to_owned());
    match iolite_options::parse_sent(&sent, &|variable| std::env::var(variable).ok(), &may_read, name) {
        Ok(Invocation::Run { batches, warnings: told, .. }) => {
            warnings.extend(told.iter().map(|one| Mistake { is_warning: true, ..of_diagnostic(one) }));
            Ok(batches)
        }
        Ok(_) => Err(vec![mistake(NO_JOBS.to_owned())]),
        Err(errors) => Err(errors.iter().map(of_diagnostic).collect()),
    }
}

/// The plan of the jobs, if a page may run such jobs.
fn plan(
    name: Name,
    batches: Vec<Vec<JobOptions>>,
    run: &RunOptions,
    permissions: &Permissions,
    machine: &ThisMachine,
) -> Result<Plan, Vec<Mistake>> {
    // Checked before engines are probed: probing may run foreign code or connect to servers.
    let refused = batches.iter().flatten().flat_map(|job| {
        let mut problems = not_from_pages(job);
        problems.extend(served_files::unserved(job, &permissions.only));
        problems
    });
    let refused: Vec<Mistake> = refused.map(of_problem).collect();
    if !refused.is_empty() {
        return Err(refused);
    }
    let Drafted { plan, problems } = match draft(name, batches, run, machine, &mut String::new()) {
        Ok(Some(drafted)) => drafted,
        Ok(None) => return Err(vec![mistake("nothing is to run".to_owned())]),
        Err(problem) => return Err(vec![of_problem(problem)]),
    };
    let mut mistakes: Vec<Mistake> = problems.into_iter().map(of_problem).collect();
    let outside = own_files::made(&plan).filter(|(_, _, path)| !covers(&permissions.only, path));
    mistakes.extend(outside.map(|(job, option, path)| {
        let words = served_files::words(&permissions.only);
        of_problem(Problem::of(job, option, format!("{option}={}: {words}", path.display())))
    }));
    if crate::local_run::writes_to_output(&plan) {
        mistakes.push(mistake("standard output is not a place for the data of a job of a page".to_owned()));
    }
    if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
}

/// Options that jobs from a page must not have, whoever wrote them: they run programs, change settings of the machine,
/// reach other machines, or hide what the job destroys.
fn not_from_pages(job: &JobOptions) -> Vec<Problem> {
    let mut found: Vec<(&str, &str)> = executes(job)
        .map(|option| (option, "jobs of a page run no programs, and change no settings of the machine"))
        .collect();
    let reaches = matches!(
        chosen(&job.ioengine, &job.engine).map(|engine| engine.facets.data),
        Some(Data::OwnStorage | Data::OtherEnd)
    );
    if reaches {
        found.push(("ioengine", "jobs of a page use files and devices of this machine only"));
    }
    if job.replay.merge_blktrace_file.is_some() {
        found.push(("merge_blktrace_file", "jobs of a page merge no traces; merge them before"));
    }
    if job.replay.read_iolog_chunked {
        found.push((
            "read_iolog_chunked",
            "what a trace writes to has to be known before, so that it can be confirmed; leave this option out",
        ));
    }
    found.into_iter().map(|(option, why)| Problem::of(job, option, format!("{option}: {why}"))).collect()
}

/// The targets that the user confirms by name: files and devices, or the directory of many files.
fn held(found: Vec<(PathBuf, Option<u64>)>) -> Vec<Held> {
    let mut directories: BTreeMap<PathBuf, BTreeSet<usize>> = BTreeMap::new();
    for (place, (path, _)) in found.iter().enumerate() {
        directories.entry(path.parent().unwrap_or(Path::new("")).to_owned()).or_default().insert(place);
    }
    let bytes = |size: Option<u64>| {
        size.map_or("holds data".to_owned(), |size| {
            format!("holds {} of data", iolite_page::text::bytes(size as f64))
        })
    };
    let mut held = Vec::new();
    for (directory, places) in directories {
        if places.len() > MOST_ALONE {
            let name = if directory.as_os_str().is_empty() { ".".to_owned() } else { shown(&directory) };
            let total = places.iter().filter_map(|place| found[*place].1).sum();
            held.push(Held { name, what: format!("{} files in it, {}", places.len(), bytes(Some(total))) });
        } else {
            held.extend(places.into_iter().map(|place| {
                let (path, size) = &found[place];
                Held { name: shown(path), what: bytes(*size) }
            }));
        }
    }
    held
}

/// A name as the user types it: on one line.
fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}

fn judgement(mut mistakes: Vec<Mistake>, warnings: Vec<Mistake>, permissions: &Permissions) -> Judgement {
    // The kernel does not distinguish this from the file's own permissions.
    if mistakes.iter().any(|one| one.message.contains(DENIED)) {
        let words = served_files::words(&permissions.only);
        mistakes.push(mistake(format!("unless the file's own permissions forbid it: {words}")));
    }
    mistakes.extend(warnings);
    mistakes.sort_by_key(|one| one.place.unwrap_or((u32::MAX, 0)));
    mistakes.dedup();
    mistakes.truncate(MOST_MISTAKES);
    Judgement { mistakes, held: Vec::new() }
}

fn of_error(error: RunError) -> Vec<Mistake> {
    match error {
        RunError::Problems(problems) => problems.into_iter().map(of_problem).collect(),
        RunError::System(..) => vec![mistake(error.to_string())],
    }
}

fn of_problem(problem: Problem) -> Mistake {
    let message = format!("{}: {}", problem.job, problem.message);
    Mistake { place: place(problem.origin.as_ref()), ..mistake(message) }
}

fn of_diagnostic(told: &Diagnostic) -> Mistake {
    Mistake { place: place(told.origin.as_ref()), ..mistake(told.message.clone()) }
}

fn place(origin: Option<&Origin>) -> Option<(u32, u32)> {
    match origin {
        Some(Origin::File { line, column, .. }) => Some((*line, *column)),
        _ => None,
    }
}

fn mistake(message: String) -> Mistake {
    Mistake { place: None, message: without_error_numbers(&message), is_warning: false }
}
