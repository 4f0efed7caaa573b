//! Many machines: `--server`, `--client`, and the job files that are sent from one to the other.
//!
//! Job files are sent as text, each with its name, so that the machine that runs them resolves them with its own facts,
//! and mistakes are reported with line and column. Included files are sent with them.

use crate::jobfile::{self, Surroundings, Texts};
use crate::machine_options::{Named, WhenLost, on_command_line};
use crate::run_options::Asked;
use crate::section::Section;
use crate::{Diagnostic, OutputFormat, RunOptions, WebTls};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A job file for another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SentFile {
    /// Its text is sent with the jobs.
    Here(String),
    /// It is on the other machine.
    There(String),
}

/// The jobs for another machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SentJobs {
    /// The job files, in order.
    pub files: Vec<SentFile>,
    /// The texts of the files that are sent, and of their includes, by name.
    pub texts: BTreeMap<String, Vec<u8>>,
    /// The sections to run; empty = all.
    pub sections: Vec<String>,
    /// Options of the run as a whole. Output options concern the sender only.
    pub run: RunOptions,
}

/// A machine that will run jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// The value of `--client`: an address, or a file with a list of addresses.
    pub address: String,
    /// Its jobs.
    pub jobs: SentJobs,
}

/// A run on other machines.
#[derive(Clone, Debug, PartialEq)]
pub struct RunElsewhere {
    /// The machines, with their jobs. With [`RunElsewhere::on_ranks`], one entry represents all.
    pub clients: Vec<Client>,
    /// `--mpi`: the machines are those of the ranks of a launcher.
    pub on_ranks: bool,
    /// Options of the run as a whole.
    pub run: RunOptions,
    /// The file of this end's keys (`--keys`).
    pub keys: Option<PathBuf>,
    /// Communicate without protection (`--insecure`).
    pub insecure: bool,
    /// `--push`: send a program along to machines on which ssh starts it: this file, or one of this directory. Empty = this
    /// program.
    pub push: Option<String>,
    /// `--serve-exec`: where ssh starts the program, jobs may run programs, and change settings of the machine.
    pub exec: bool,
    /// `--client-lost`
    pub when_lost: WhenLost,
    /// `--client-timeout` in milliseconds.
    pub timeout_ms: u64,
    /// Suspicious input that is accepted.
    pub warnings: Vec<Diagnostic>,
}

/// The settings of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The value of `--server`; empty = the usual port of all interfaces.
    pub address: String,
    /// `--daemonize`: the file for the process id.
    pub pid_file: Option<PathBuf>,
    /// The file of this end's keys (`--keys`).
    pub keys: Option<PathBuf>,
    /// Communicate without protection (`--insecure`).
    pub insecure: bool,
    /// `--readonly`
    pub readonly: bool,
    /// `--serve-exec`: jobs may run programs, and change settings of the machine.
    pub exec: bool,
    /// `--serve-only`: the files and directories that jobs may use; empty = all.
    pub only: Vec<PathBuf>,
    /// `--client-timeout` in milliseconds.
    pub timeout_ms: u64,
    /// `--metrics`: where the metrics of the runs are.
    pub metrics: Option<SocketAddr>,
    /// `--web-tls`: their certificate and key.
    pub metrics_tls: Option<WebTls>,
    /// Suspicious input that is accepted.
    pub warnings: Vec<Diagnostic>,
}

/// A process that a launcher has started as one of many (`--mpi`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// How it finds the others; empty = by the means of the launcher.
    pub way: String,
    /// How it serves the others. (It does not choose its own address.)
    pub serving: Serving,
}

/// The role of a process that a launcher started; `None` = no launcher did, or the process only answers a question.
pub(crate) fn launched(asked: &Asked) -> Option<Launched> {
    let way = asked.others.mpi.clone().filter(|_| asked.question.is_none())?;
    Some(Launched { way, serving: serving_as(asked, String::new()) })
}

fn serving_as(asked: &Asked, address: String) -> Serving {
    Serving {
        address,
        pid_file: asked.others.pid_file.clone(),
        keys: asked.others.keys.clone(),
        insecure: asked.others.insecure,
        readonly: asked.run.readonly,
        exec: asked.others.exec,
        only: asked.others.only.clone(),
        timeout_ms: asked.others.timeout(),
        metrics: asked.run.metrics,
        metrics_tls: asked.run.web_tls.clone(),
        warnings: Vec::new(),
    }
}

/// The server that the command line requests, if any.
pub(crate) fn serving(
    asked: &Asked,
    sections: &[Section],
    has_jobs: bool,
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> Option<Serving> {
    let address = asked.others.server.clone()?;
    if has_jobs || !asked.others.clients.is_empty() || asked.others.mpi.is_some() {
        let what = "--server: a server runs the jobs of its clients; give it no jobs, and no --client";
        errors.push(on_command_line(what.to_owned()));
    } else {
        warnings.extend(not_served(asked, sections));
    }
    Some(Serving { warnings: std::mem::take(warnings), ..serving_as(asked, address) })
}

/// Options of the command line that have no meaning for a server: its clients choose how their jobs run, and where
/// reports go.
fn not_served(asked: &Asked, sections: &[Section]) -> Vec<Diagnostic> {
    let (run, usual) = (&asked.run, RunOptions::default());
    let idle = [
        ("--output", run.output.is_some()),
        ("--output-format", run.output_format != usual.output_format || asked.append_terse),
        ("--terse-version", run.terse_version != usual.terse_version),
        ("--eta", run.eta != usual.eta),
        ("--live", run.live != usual.live),
        ("--eta-newline", run.eta_newline != usual.eta_newline),
        ("--eta-interval", run.eta_interval != usual.eta_interval),
        ("--status-interval", run.status_interval != usual.status_interval),
        ("--section", !asked.sections.is_empty()),
        ("--showcmd", asked.showcmd),
        ("--parse-only", run.parse_only),
        ("--merge-blktrace-only", run.merge_blktrace_only),
        ("--idle-prof", run.idle_prof.is_some()),
        ("--aux-path", run.aux_path.is_some()),
        ("--bandwidth-log", run.bandwidth_log),
        ("--trigger", run.trigger.is_some()),
        ("--trigger-file", run.trigger_file.is_some()),
        ("--trigger-timeout", run.trigger_timeout.is_some()),
        ("--repeat", run.repeat.is_some()),
        ("--trigger-remote", run.trigger_remote.is_some()),
        ("--client-lost", asked.others.when_lost.is_some()),
    ];
    let idle = idle.into_iter().filter(|(_, is_given)| *is_given);
    let mut told: Vec<Diagnostic> = idle
        .map(|(option, _)| {
            on_command_line(format!("{option}: has no effect with --server; it is an option of the client"))
        })
        .collect();
    let set = sections.iter().filter(|section| !section.settings.is_empty());
    told.extend(set.map(|section| Diagnostic {
        origin: Some(section.origin.clone()),
        message:
            "--server: job options beside it limit nothing; the jobs of clients have their own".to_owned(),
    }));
    told
}

/// The run on other machines that the command line requests. Reads the job files.
pub(crate) fn elsewhere(
    asked: &Asked,
    sections: &[Section],
    files: &[OsString],
    surroundings: &mut Surroundings<'_>,
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> RunElsewhere {
    errors.extend(not_sent(asked, sections));
    let on_ranks = asked.others.mpi.is_some();
    if on_ranks && !asked.others.clients.is_empty() {
        let what = "--mpi: the ranks of the launcher run the jobs; leave --client out";
        errors.push(on_command_line(what.to_owned()));
    }
    let ranks = Named { address: "rank".to_owned(), files_before: files.len(), remote_files: Vec::new() };
    let named = if on_ranks { &vec![ranks] } else { &asked.others.clients };
    let mut clients: Vec<Client> = Vec::new();
    let common = &files[..named[0].files_before];
    let common = jobs(asked, common, &asked.others.remote_files, surroundings, errors);
    for (index, one) in named.iter().enumerate() {
        let end = named.get(index + 1).map_or(files.len(), |next| next.files_before);
        let own = &files[one.files_before..end];
        let own = jobs(asked, own, &one.remote_files, surroundings, errors);
        let jobs = if own.files.is_empty() { common.clone() } else { own };
        clients.push(Client { address: one.address.clone(), jobs });
    }
    // A machine without its own jobs has those of the next one: `--client=a --client=b job.fio`.
    for index in (0..clients.len().saturating_sub(1)).rev() {
        if clients[index].jobs.files.is_empty() {
            clients[index].jobs = clients[index + 1].jobs.clone();
        }
    }
    if errors.is_empty() {
        let idle = clients.iter().filter(|client| client.jobs.files.is_empty());
        let what = |client: &Client| match on_ranks {
            true => "--mpi: there is no job file for it".to_owned(),
            false => format!("--client={}: there is no job file for it", client.address),
        };
        errors.extend(idle.map(|client| on_command_line(what(client))));
    }
    let mut run = asked.run.clone();
    if asked.append_terse && !run.output_format.contains(&OutputFormat::Terse) {
        run.output_format.push(OutputFormat::Terse);
    }
    RunElsewhere {
        clients,
        on_ranks,
        run,
        keys: asked.others.keys.clone(),
        insecure: asked.others.insecure,
        push: asked.others.push.clone(),
        exec: asked.others.exec,
        when_lost: asked.others.when_lost.unwrap_or_default(),
        timeout_ms: asked.others.timeout(),
        warnings: std::mem::take(warnings),
    }
}

/// Options of the command line that are not sent to the clients.
fn not_sent(asked: &Asked, sections: &[Section]) -> Vec<Diagnostic> {
    let run = &asked.run;
    let with = if asked.others.mpi.is_some() { "--mpi" } else { "--client" };
    let here = [
        ("--showcmd", asked.showcmd),
        ("--parse-only", run.parse_only),
        ("--merge-blktrace-only", run.merge_blktrace_only),
        ("--bandwidth-log", run.bandwidth_log),
        ("--profile", run.profile.is_some()),
        ("--debug", run.debug != crate::DebugWish::default()),
        ("--repeat", run.repeat.is_some()),
    ];
    let mut told: Vec<Diagnostic> = here
        .into_iter()
        .filter(|(_, is_given)| *is_given)
        .map(|(option, _)| on_command_line(format!("{option}: not supported yet together with {with}")))
        .collect();
    let first = sections.iter().find(|section| !section.settings.is_empty());
    if let Some(section) = first.filter(|_| run.profile.is_none()) {
        let message =
            format!("{with}: job options of the command line are not sent; put them into a job file");
        told.push(Diagnostic { origin: Some(section.origin.clone()), message });
    }
    told
}

/// Reads the job files for one machine, with their includes.
fn jobs(
    asked: &Asked,
    files: &[OsString],
    remote: &[String],
    surroundings: &mut Surroundings<'_>,
    errors: &mut Vec<Diagnostic>,
) -> SentJobs {
    // The trigger is evaluated on this machine, and the page is served here.
    let run = RunOptions {
        trigger: None,
        trigger_file: None,
        trigger_timeout: None,
        web: None,
        web_tls: None,
        web_linger: None,
        ..asked.run.clone()
    };
    let mut sent = SentJobs { sections: asked.sections.clone(), run, ..SentJobs::default() };
    for file in files {
        let Some(name) = file.to_str() else {
            let message =
                format!("{}: the name of a job file that is sent has to be valid UTF-8", file.display());
            errors.push(Diagnostic { origin: None, message });
            continue;
        };
        let (mut mistakes, mut ignored) = (Vec::new(), Vec::new());
        let known = std::mem::replace(&mut surroundings.texts, Texts::Kept(BTreeMap::new()));
        jobfile::read(file, surroundings, &mut mistakes, &mut ignored);
        let Texts::Kept(texts) = std::mem::replace(&mut surroundings.texts, known) else {
            unreachable!("reading a job file does not change where texts are");
        };
        if texts.contains_key(name) {
            sent.texts.extend(texts);
            sent.files.push(SentFile::Here(name.to_owned()));
        } else {
            // It cannot be read at all. Mistakes in its content are reported by the machine that runs it.
            errors.append(&mut mistakes);
        }
    }
    sent.files.extend(remote.iter().cloned().map(SentFile::There));
    sent
}
