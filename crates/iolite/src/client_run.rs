//! A run for an agent, in a process that the agent has started: jobs come through a socket, and events go back.

use crate::local_run::{Drafted, draft, writes_to_output};
use crate::returned_files::{self, Left, Logs};
use crate::{run_facts, served_files, session};
use iolite_host::ThisMachine;
use iolite_options::engines::{ExternalOptions, NetOptions, Protocol};
use iolite_options::{Diagnostic, Invocation, JobOptions, Name, RunOptions};
use iolite_plan::{Plan, Problem, Share};
use iolite_remote::child::{self, Channel};
use iolite_remote::confine;
use iolite_remote::message::{Begun, Done, FromAgent, Refusal, Request, Shown, machine_identity};
use iolite_remote::permissions::Permissions;
use iolite_remote::spool;
use iolite_run::{HeldSignals, Prepared, RunError, Settings, StartGate, Trigger, Watch};
use iolite_stats::{Event, EventKind, MOST_WITH_LATENCIES, Recorder, Report, Snapshot, Word};
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The most files that the client is told of, to find those that several agents share: jobs that share files share
/// the first ones, and a thousand agents fit into the client's memory.
const MOST_FILES: usize = 100;

/// Performs the agent's request.
pub fn run(name: Name, words: &[OsString]) -> ExitCode {
    let mut channel = match Channel::take_over() {
        Ok(channel) => channel,
        Err(error) => {
            crate::messages::complain(
                name,
                &format_args!("only an agent may start this, as the process of a run: {error}"),
            );
            return ExitCode::FAILURE;
        }
    };
    // If the agent is gone, there is no one to report to.
    let Ok(mut request) = channel.request() else { return ExitCode::FAILURE };
    let permissions = Permissions::of(words);
    request.jobs.run.readonly |= !permissions.changes;
    let own = child::spool(words);
    let spool = match &permissions.only[..] {
        [] => Ok(own),
        // Before the jobs are read.
        only => {
            give_up_all_but(only, &permissions, &own).map(|()| own.join("logs")).map_err(|why| refusal([why]))
        }
    };
    let who = (child::client(words), child::is_shown(words));
    let done = spool.and_then(|spool| perform(name, &request, who, &permissions, &spool, &mut channel));
    let refused = match done {
        Ok(done) => {
            afterwards(done, request.jobs.run.trigger_remote.as_deref(), &mut channel);
            None
        }
        Err(refusal) => Some(refusal),
    };
    if let Some(mut refusal) = refused {
        // The kernel does not distinguish this from the file's own permissions.
        if !permissions.only.is_empty() && refusal.problems.iter().any(|problem| problem.contains(DENIED)) {
            let words = served_files::words(&permissions.only);
            refusal.problems.push(format!("unless the file's own permissions forbid it: {words}"));
        }
        let hint = names_here(&refusal.problems, child::client(words));
        refusal.problems.extend(hint);
        channel.tell(&FromAgent::Refused(refusal));
    }
    ExitCode::SUCCESS
}

/// The end of a run: the gate through which the client asks for files, and the files.
type Over = (Option<StartGate>, Left);

/// Runs after the result was sent. Sends the files of the run when the client asks for them (others may still be
/// measuring), and runs the command of the trigger when the client fires it. Ends when the client closes the
/// connection.
fn afterwards((gate, left): Over, command: Option<&str>, channel: &mut Channel) {
    let mut left = Some(left);
    if let Some(nothing) = left.take_if(|left| left.is_nothing()) {
        let missing = nothing.send(channel);
        channel.tell(&FromAgent::Sent(missing));
    }
    let next = || gate.as_ref().and_then(StartGate::next);
    while let Some(word) = next() {
        match word {
            Word::Send => {
                if let Some(left) = left.take() {
                    let missing = left.send(channel);
                    channel.tell(&FromAgent::Sent(missing));
                }
            }
            Word::Trigger => {
                let problem = command.and_then(run_command);
                channel.tell(&FromAgent::Triggered(problem));
            }
            Word::Start { .. } | Word::Steady(_) => {}
        }
    }
}

/// Runs the command of the trigger to its end; returns its error.
fn run_command(command: &str) -> Option<String> {
    let trigger = Trigger { command: Some(command.to_owned()), ..Trigger::default() };
    let mut watch = Watch::new(trigger, Vec::new());
    match watch.start_command() {
        Ok(()) => watch.finish_command(),
        Err(problem) => Some(problem),
    }
}

/// The meaning of file names on this machine, for a client whose files are not found.
fn names_here(problems: &[String], client: &str) -> Option<String> {
    let is_missing = |problem: &&String| {
        ["No such file or directory", "does not exist"].iter().any(|words| problem.contains(words))
    };
    let missing: Vec<&String> = problems.iter().filter(is_missing).collect();
    let home = std::env::current_dir().ok().filter(|_| !missing.is_empty())?;
    let relative = format!("relative names of files are those in {} there", home.display());
    let prefix = format!("/{client}.");
    let is_renamed = !client.is_empty() && missing.iter().any(|problem| problem.contains(&prefix));
    Some(match is_renamed {
        true => format!(
            "{relative}, and names in a directory begin with the client's address ({client}), unless unique_filename=0"
        ),
        false => relative,
    })
}

/// The system's message if Landlock denies access to a file.
pub const DENIED: &str = "Permission denied";

/// Confines the process: from here on, it can only use the served files and the run's own directory.
pub fn give_up_all_but(only: &[PathBuf], permissions: &Permissions, own: &Path) -> Result<(), String> {
    spool::make(own).map_err(|error| format!("{}: {error}", own.display()))?;
    let asked = confine::Confinement { only, own, changes: permissions.changes, exec: permissions.exec };
    confine::confine(asked).map_err(|why| format!("--serve-only: {why}"))
}

/// Names the files of a job after its client, as fio does: here those given by name in a `directory`; `plan` does it for
/// generated names.
fn name_after(client: &str, job: &mut JobOptions) {
    client.clone_into(&mut job.files.client);
    let Some(directory) = job.files.names_in.as_ref().map(Path::new).filter(|_| job.has_files_here()) else {
        return;
    };
    let named = |name: &String| match Path::new(name).strip_prefix(directory) {
        Ok(rest) => match job.files.name_for_client(&rest.display().to_string()) {
            own if Path::new(&own) == rest => name.clone(),
            own => directory.join(own).display().to_string(),
        },
        Err(_) => name.clone(),
    };
    job.files.filename = job.files.filename.iter().map(named).collect();
}

/// Runs the jobs, and sends their result.
fn perform(
    name: Name,
    request: &Request,
    (client, is_shown): (&str, bool),
    permissions: &Permissions,
    spool: &Path,
    channel: &mut Channel,
) -> Result<Over, Box<Refusal>> {
    let run = &request.jobs.run;
    let mut strange = not_from_clients(run);
    if run.trigger_remote.is_some() && !permissions.exec {
        strange.push(format!("--trigger-remote: {NOT_EXEC}"));
    }
    if !strange.is_empty() {
        return Err(refusal(strange));
    }
    let only = &permissions.only[..];
    let outside =
        if only.is_empty() { Vec::new() } else { served_files::unserved_by_run(&request.jobs, only) };
    if !outside.is_empty() {
        return Err(refusal(outside));
    }
    let (mut batches, warnings) = read(request, only, name)?;
    batches.iter_mut().flatten().for_each(|job| name_after(client, job));
    let share = Share { index: request.host, of: request.hosts };
    let unshared: Vec<Problem> = batches.iter_mut().flatten().flat_map(|job| share.take(job)).collect();
    if !unshared.is_empty() {
        return Err(refusal(unshared));
    }
    for warning in &warnings {
        channel.tell(&FromAgent::Warning(warning.as_warning().to_string()));
    }
    // Before anything is asked of an engine in a file: asking would run its code.
    let executing: Vec<String> =
        batches.iter().flatten().flat_map(|job| refused_programs(job, permissions.exec)).collect();
    if !executing.is_empty() {
        return Err(refusal(executing));
    }
    // Before anything is created: traces are merged while jobs are planned.
    let making = batches.iter().flatten().filter(|_| !permissions.changes).flat_map(refused_writes);
    let making: Vec<String> = making.collect();
    if !making.is_empty() {
        return Err(refusal(making));
    }
    let outside = batches
        .iter()
        .flatten()
        .filter(|_| !only.is_empty())
        .flat_map(|job| served_files::unserved(job, only));
    let outside: Vec<String> = outside.map(|problem| problem.to_string()).collect();
    if !outside.is_empty() {
        return Err(refusal(outside));
    }
    let logs = Logs::redirect(&mut batches, spool).map_err(refusal)?;
    let mut problems: Vec<String> = Vec::new();
    let machine = ThisMachine::new();
    let mut more = String::new();
    let drafted = draft(name, batches, run, &machine, &mut more).map_err(|problem| refusal([problem]))?;
    // Without jobs there is nothing to do: clients do not ask for merging traces alone.
    let Some(Drafted { plan, problems: found }) = drafted else { return Err(refusal(["nothing is to run"])) };
    if writes_to_output(&plan) {
        problems.push("standard output is not a place for the data of a job on another machine".to_owned());
    }
    problems.extend(found.iter().map(ToString::to_string));
    problems.extend(returned_files::too_long(&plan));
    if !problems.is_empty() {
        let report = (!found.is_empty()).then(|| RunError::Problems(found).report(&plan));
        return Err(Box::new(Refusal { problems: problems.iter().map(words).collect(), report }));
    }
    for words in told_of(&plan, &machine, name) {
        channel.tell(&FromAgent::Warning(words));
    }
    let refused = |error: RunError| of_error(&error, &plan);
    let prepared = Prepared::new(&plan, &machine).map_err(refused)?;
    let lines = session::jobs_announced(&plan, name) + &session::workers_announced(&plan);
    let (machine_identity, files) = (machine_identity(), prepared.used(MOST_FILES));
    channel.tell(&FromAgent::Begun(Begun { lines, machine: machine_identity, files }));
    let mut settings = settings(request, channel, name);
    let gate = settings.gate.clone();
    let facts = (request.series || is_shown).then(|| run_facts::of(&plan, &machine));
    let mut showing = is_shown.then(|| {
        let outline = Report { facts: facts.clone(), ..prepared.outline() };
        Showing::begin(outline, plan.blocks_of_workers(), &mut settings, channel)
    });
    let mut recorder = request.series.then(|| {
        let blocks = plan.blocks_of_workers();
        settings.sample_interval = Some(Recorder::interval(blocks.len()));
        settings.sample_latencies = blocks.len() <= MOST_WITH_LATENCIES;
        Recorder::new(blocks)
    });
    let mut forwarding = Forwarding::new(request.sample_ms, &mut settings);
    let earlier = returned_files::States::of(&plan);
    let _held = HeldSignals::new().map_err(refused)?;
    let mut outcome = prepared
        .perform(settings, &mut |event| {
            showing.iter_mut().for_each(|showing| showing.take(&event, channel));
            match (event.kind, &mut recorder) {
                (EventKind::Sample(snapshot), recorder) => {
                    if let Some(summed) = forwarding.of(&snapshot) {
                        let kind = EventKind::Sample(Box::new(summed));
                        channel.tell(&FromAgent::Event(Box::new(Event { kind, ..event })));
                    }
                    if let Some(recorder) = recorder {
                        recorder.take(*snapshot);
                    }
                }
                (kind, _) => {
                    channel.tell(&FromAgent::Event(Box::new(Event { kind, ..event })));
                }
            }
        })
        .map_err(refused)?;
    outcome.report.series = recorder.and_then(|recorder| recorder.series());
    outcome.report.facts = facts.filter(|_| request.series);
    let is_whole = !outcome.failed && outcome.signal.is_none();
    let left = logs.left(&plan, is_whole, &earlier);
    channel.tell(&FromAgent::Done(Box::new(Done {
        report: outcome.report,
        failed: outcome.failed,
        failures: outcome.failures as u64,
        signal: outcome.signal,
        leaves: !left.is_nothing(),
    })));
    Ok((gate, left))
}

/// What is said about accepted jobs. (fio's clients print the complaints of its servers as lines of the report.)
fn told_of(plan: &Plan, machine: &ThisMachine, name: Name) -> Vec<String> {
    if name.is_strict() {
        return plan.complaints_of_fio().into_iter().map(|words| format!("{name}: {words}")).collect();
    }
    plan.remarks(machine).into_iter().map(|words| format!("warning: {words}")).collect()
}

/// What the agent itself shows of the run.
struct Showing {
    pace: Pace,
}

impl Showing {
    /// The shortest time between two samples.
    const INTERVAL_MS: u64 = 500;

    fn begin(
        outline: Report,
        blocks: Vec<Option<u32>>,
        settings: &mut Settings,
        channel: &mut Channel,
    ) -> Showing {
        if settings.sample_interval.is_none() {
            settings.sample_interval =
                Some(Recorder::interval(blocks.len()).max(Duration::from_millis(Self::INTERVAL_MS)));
            settings.sample_latencies = blocks.len() <= MOST_WITH_LATENCIES;
        }
        let interval_ns = Recorder::interval(blocks.len()).as_nanos() as u64;
        channel.tell(&FromAgent::Shown(Box::new(Shown::Begins(outline, blocks, interval_ns))));
        Showing { pace: Pace::new(Self::INTERVAL_MS) }
    }

    fn take(&mut self, event: &Event, channel: &mut Channel) {
        let is_shown = match &event.kind {
            EventKind::Sample(snapshot) => {
                // The last one is about the end.
                self.pace.is_due(snapshot.elapsed_ns) || snapshot.workers.iter().all(|worker| !worker.running)
            }
            EventKind::Snapshot(_) | EventKind::Status(_) | EventKind::Slice(_) | EventKind::Measured(_) => {
                false
            }
            _ => true,
        };
        if is_shown {
            channel.tell(&FromAgent::Shown(Box::new(Shown::Event(event.clone()))));
        }
    }
}

/// Samples at even intervals of those that come more often.
struct Pace {
    interval_ns: u64,
    /// When the next one is due, in time of the run.
    due_ns: u64,
}

impl Pace {
    fn new(interval_ms: u64) -> Pace {
        Pace { interval_ns: Duration::from_millis(interval_ms).as_nanos() as u64, due_ns: 0 }
    }

    fn is_due(&mut self, elapsed_ns: u64) -> bool {
        // The time of the run begins anew with the common start.
        if elapsed_ns + self.interval_ns < self.due_ns {
            self.due_ns = elapsed_ns;
        }
        if self.interval_ns == 0 || elapsed_ns < self.due_ns {
            return false;
        }
        // Even if this one is late.
        let late_ns = (elapsed_ns - self.due_ns) % self.interval_ns;
        self.due_ns = elapsed_ns - late_ns + self.interval_ns;
        true
    }
}

/// Samples that the client gets, for its page: of all workers together.
struct Forwarding(Pace);

impl Forwarding {
    /// One sample about every `interval_ms`. The run is sampled at least as often.
    fn new(interval_ms: u64, settings: &mut Settings) -> Forwarding {
        let interval = Duration::from_millis(interval_ms);
        if interval_ms > 0 && settings.sample_interval.is_none() {
            (settings.sample_interval, settings.sample_latencies) = (Some(interval), true);
        }
        settings.sample_disks = interval_ms > 0;
        Forwarding(Pace::new(interval_ms))
    }

    /// The sample for the client, if one is due.
    fn of(&mut self, snapshot: &Snapshot) -> Option<Snapshot> {
        let summed = || Snapshot {
            workers: vec![snapshot.summed()],
            stuck: snapshot.stuck.clone(),
            disks: snapshot.disks.clone(),
            ..*snapshot
        };
        self.0.is_due(snapshot.elapsed_ns).then(summed)
    }
}

/// The jobs of each file.
type Batches = Vec<Vec<JobOptions>>;

/// The jobs, as this machine understands them, and warnings.
fn read(request: &Request, only: &[PathBuf], name: Name) -> Result<(Batches, Vec<Diagnostic>), Box<Refusal>> {
    let environment = |variable: &str| std::env::var(variable).ok();
    let may_read = |path: &Path| match only.is_empty() || confine::covers(only, path) {
        true => Ok(()),
        false => Err(served_files::words(only)),
    };
    match iolite_options::parse_sent(&request.jobs, &environment, &may_read, name) {
        Ok(Invocation::Run { batches, warnings, .. }) => Ok((batches, warnings)),
        Ok(_) => Err(refusal([iolite_options::NO_JOBS])),
        Err(errors) => Err(refusal(errors)),
    }
}

/// The refusal if that is not allowed.
const NOT_EXEC: &str = "the server lets no jobs run programs or change the machine (--serve-exec)";

/// Why a job from another machine cannot have an engine in a file, whatever the server permits.
const NOT_IN_A_FILE: &str = "an engine in a file is code, and jobs from other machines cannot name one; run the job on \
                             the machine that has the file";

/// Whether the job's engine is in a file.
fn has_engine_in_a_file(job: &JobOptions) -> bool {
    job.engine.of::<ExternalOptions>().is_some()
}

/// The options of a job that run programs or change settings of the machine.
pub fn executes(job: &JobOptions) -> impl Iterator<Item = &'static str> {
    let by_engine = job.engine.starts_programs() || has_engine_in_a_file(job);
    let found = [
        ("exec_prerun", job.schedule.exec_prerun.is_some()),
        ("exec_postrun", job.schedule.exec_postrun.is_some()),
        ("ioengine", by_engine),
        ("ioscheduler", job.placement.ioscheduler.is_some()),
        ("cgroup", job.placement.cgroup.is_some()),
    ];
    found.into_iter().filter(|(_, is_there)| *is_there).map(|(option, _)| option)
}

/// Refuses options that run code, except those that the server permits.
fn refused_programs(job: &JobOptions, is_permitted: bool) -> Vec<String> {
    let told = executes(job).filter_map(|option| {
        let why = match option {
            "ioengine" if has_engine_in_a_file(job) => NOT_IN_A_FILE,
            _ if is_permitted => return None,
            _ => NOT_EXEC,
        };
        Some(Problem::of(job, option, format!("{option}: {why}")).to_string())
    });
    told.collect()
}

/// Options that create, replace or remove a file in spite of `--readonly`. A local run may do that, for its own records
/// in files that its user has chosen. On a server, the client has chosen them.
fn refused_writes(job: &JobOptions) -> Vec<String> {
    let waits_at_socket = |net: &NetOptions| net.protocol == Protocol::Unix && job.waits_for_peer();
    let found = [
        ("write_iolog", job.replay.write_iolog.is_some()),
        ("merge_blktrace_file", job.replay.merge_blktrace_file.is_some()),
        ("protocol", job.engine.of::<NetOptions>().is_some_and(waits_at_socket)),
    ];
    let found = found.into_iter().filter(|(_, is_there)| *is_there);
    let told = found.map(|(option, _)| {
        let message =
            format!("{option}: the job would make a file, and the server's --readonly forbids that");
        Problem::of(job, option, message).to_string()
    });
    told.collect()
}

/// Options of a run that no client sends.
fn not_from_clients(run: &RunOptions) -> Vec<String> {
    let found = [
        ("--parse-only", run.parse_only),
        ("--merge-blktrace-only", run.merge_blktrace_only),
        ("--bandwidth-log", run.bandwidth_log),
        ("--trigger", run.trigger.is_some()),
        ("--trigger-file", run.trigger_file.is_some()),
        ("--trigger-timeout", run.trigger_timeout.is_some()),
    ];
    let found = found.into_iter().filter(|(_, is_there)| *is_there);
    found.map(|(option, _)| format!("{option}: not supported for a run on another machine")).collect()
}

fn settings(request: &Request, channel: &mut Channel, name: Name) -> Settings {
    let run: &RunOptions = &request.jobs.run;
    let every = |milliseconds: u64| (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
    Settings {
        eta_interval: every(request.snapshot_ms),
        status_interval: every(request.status_ms),
        idleness: run.idle_prof.map(|profile| profile == iolite_options::IdleProfile::PerCpu),
        tells_flights: !name.is_strict(),
        gate: channel.gate().map(StartGate::new),
        ..Settings::default()
    }
}

fn words(what: &impl Display) -> String {
    iolite_types::without_error_numbers(&what.to_string())
}

fn refusal(problems: impl IntoIterator<Item = impl Display>) -> Box<Refusal> {
    Box::new(Refusal {
        problems: problems.into_iter().map(|problem| words(&problem)).collect(),
        report: None,
    })
}

fn of_error(error: &RunError, plan: &Plan) -> Box<Refusal> {
    let report: Option<Report> = Some(error.report(plan));
    let problems = match error {
        RunError::Problems(problems) => problems.iter().map(words).collect(),
        RunError::System(..) => vec![words(error)],
    };
    Box::new(Refusal { problems, report })
}
