//! One run of jobs, in a process of its own, here or on other machines.

use super::super::meta::machines::{self, Machines};
use super::Outcome;
use crate::messages::complain;
use crate::run_series::{End, Runner, Start, in_memory};
use iolite_options::Name;
use iolite_options::commands::Asked;
use iolite_procedures::ai::place::{Kind, Place};
use iolite_procedures::ai::removal;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The names that jobs make in a place.
pub type Names<'a> = &'a dyn Fn(&Place) -> Vec<String>;

/// Performs runs.
pub struct Performer {
    runner: Runner,
    clients: Vec<String>,
    mpi: Option<OsString>,
    several: Option<Several>,
}

/// Several runs of the ranks of a launcher, which meet for each of them in this directory. The first rank removes it at the end.
struct Several {
    directory: PathBuf,
    is_first: bool,
    count: u32,
}

impl Drop for Several {
    fn drop(&mut self) {
        if self.is_first {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

impl Performer {
    /// From now on, signals end runs in order.
    pub fn new(asked: &Asked) -> Result<Performer, String> {
        let runner = Runner::new().map_err(|error| format!("signals cannot be received: {error}"))?;
        let mpi = asked.value("mpi").map(|means| match means {
            "auto" => "--mpi".into(),
            means => format!("--mpi={means}").into(),
        });
        let clients = match asked.has("client").then(|| Machines::of(asked)).transpose()? {
            Some(Machines::Clients(clients)) => clients,
            _ => Vec::new(),
        };
        Ok(Performer { runner, clients, mpi, several: None })
    }

    /// For several runs, whose number is not known before. Ranks that are not the first one take part in all of them with the
    /// first one that they perform.
    pub fn of_several(asked: &Asked) -> Result<Performer, String> {
        let mut performer = Performer::new(asked)?;
        let Some(means) = asked.value("mpi") else { return Ok(performer) };
        let directory = means.strip_prefix("dir:").filter(|path| !path.is_empty()).ok_or_else(|| {
            format!(
                "--mpi={means}: --accelerators=max takes several runs, for each of which the ranks meet: give them a directory that \
                 all of them see, --mpi=dir:PATH (it is made, and removed)"
            )
        })?;
        let directory = std::path::absolute(directory).map_err(|error| format!("--mpi={means}: {error}"))?;
        let is_first = is_first(asked);
        if is_first {
            let made = std::fs::DirBuilder::new().mode(0o700).create(&directory);
            made.map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    format!(
                        "--mpi={means}: it exists already, from another run or one that was killed; remove it"
                    )
                }
                _ => format!("--mpi={means}: {}", iolite_types::describe_error(&error)),
            })?;
        }
        performer.several = Some(Several { directory, is_first, count: 0 });
        Ok(performer)
    }

    /// Runs the jobs that are made for a place. `made`: the names that they make there, which they remove themselves at their end.
    /// Returns the report, or how it ended without one; then these names are removed from other machines.
    pub fn perform(
        &mut self,
        place: &Place,
        make: &dyn Fn(&Place) -> String,
        made: Option<Names<'_>>,
    ) -> Result<Result<Value, Outcome>, String> {
        if let Some(several) = self.several.as_ref().filter(|several| !several.is_first) {
            let directory = several.directory.clone();
            return self.follow(&directory);
        }
        let told = |error: std::io::Error| format!("a report cannot be kept: {error}");
        let (mut report, path) = in_memory("").map_err(told)?;
        // The files of the jobs are open until the run has ended.
        if let Some(several) = &mut self.several {
            self.mpi = Some(meeting(&machines::meeting(&several.directory, several.count)));
            several.count += 1;
        }
        let (start, _files) = self.start(place, make).map_err(told)?;
        let end = self.runner.perform(&start, &path)?;
        let mut text = String::new();
        report.seek(SeekFrom::Start(0)).and_then(|_| report.read_to_string(&mut text)).map_err(told)?;
        if !matches!(end, End::Done | End::Failed(_))
            && place.kind == Kind::Files
            && !self.clients.is_empty()
            && let Some(made) = made
        {
            self.remove(place, &|place| removal(place, &made(place)));
        }
        match end {
            End::Interrupted => Ok(Err(Outcome::Interrupted)),
            End::Failed(why) | End::Killed(why) => Err(in_short(&why)),
            End::Doubtful(words) => Err(in_short(&words)),
            End::Done if self.mpi.is_some() && text.trim().is_empty() => Ok(Err(Outcome::Elsewhere)),
            End::Done => iolite_stored::last_report(&text).map(Ok).map_err(|why| why.of("the report")),
        }
    }

    /// Takes part in the runs of the first rank, to their end.
    fn follow(&mut self, directory: &Path) -> Result<Result<Value, Outcome>, String> {
        let (_report, path) = in_memory("").map_err(|error| error.to_string())?;
        let status = machines::follow(directory, &mut self.runner, &mut |at, runner| {
            runner.perform(&alone(vec![meeting(at)], String::new()), &path)
        });
        match status.map_err(|why| format!("--mpi: {why}"))? {
            0 => Ok(Err(Outcome::Elsewhere)),
            _ => Ok(Err(Outcome::Interrupted)),
        }
    }

    /// Removes from other machines what a run has left there that was ended before its own end.
    fn remove(&mut self, place: &Place, make: &dyn Fn(&Place) -> String) {
        let removed = in_memory("").and_then(|report| Ok((report, self.start(place, make)?)));
        let removed = removed.map_err(|error| error.to_string()).and_then(
            |((_file, path), (start, _files))| match self.runner.perform(&start, &path)? {
                End::Done => Ok(()),
                End::Interrupted => Err("interrupted".to_owned()),
                End::Failed(why) | End::Killed(why) | End::Doubtful(why) => Err(in_short(&why)),
            },
        );
        if let Err(why) = removed {
            let words =
                format!("files whose names begin with {} may be left on the machines: {why}", place.prefix);
            complain(Name::Iolite, &format_args!("ai: {words}"));
        }
    }

    /// How the run is started, with the files that it reads. Machines have names of their own, because they may share storage.
    fn start(&self, place: &Place, make: &dyn Fn(&Place) -> String) -> std::io::Result<(Start, Vec<File>)> {
        let named = |mark: &str| make(&Place { prefix: format!("{}{mark}", place.prefix), ..place.clone() });
        if let Some(mpi) = &self.mpi {
            let mark = rank_variable().map_or_else(String::new, |name| format!("rank-${{{name}}}."));
            return Ok((alone(vec![mpi.clone()], named(&mark)), Vec::new()));
        }
        if self.clients.is_empty() {
            return Ok((alone(Vec::new(), make(place)), Vec::new()));
        }
        let mut options: Vec<OsString> = Vec::new();
        let mut files = Vec::new();
        for (number, client) in self.clients.iter().enumerate() {
            let (file, path) = in_memory(&named(&format!("m{number}.")))?;
            options.extend([format!("--client={client}").into(), path.into_os_string()]);
            files.push(file);
        }
        Ok((
            Start {
                options,
                file: None,
                environment: Vec::new(),
                input: Vec::new(),
                may_be_kept: false,
                shows_progress: true,
            },
            files,
        ))
    }
}

/// A run of this process, or of the ranks, with the jobs of this text.
fn alone(options: Vec<OsString>, input: String) -> Start {
    Start {
        options,
        file: Some("-".into()),
        environment: Vec::new(),
        input: input.into(),
        may_be_kept: false,
        shows_progress: true,
    }
}

/// The option by which ranks meet here.
fn meeting(at: &Path) -> OsString {
    let mut option = OsString::from("--mpi=dir:");
    option.push(at);
    option
}

/// Says what begins, once for all ranks.
pub fn announce(program: &str, asked: &Asked, what: &str) {
    if is_first(asked) {
        complain(program, &format_args!("ai: {what}"));
    }
}

/// Whether this process has the results: it is no rank of a launcher, or the first one.
pub fn is_first(asked: &Asked) -> bool {
    let rank = rank_variable().filter(|_| asked.has("mpi")).and_then(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank.trim() == "0")
}

/// On how many machines a test is. (What is wrong with them is said when they are to be reached.)
pub fn machines(asked: &Asked) -> u64 {
    Machines::of(asked).map_or(1, |machines| machines.count().into())
}

/// The variable with the number of this rank.
#[cfg(feature = "agents")]
fn rank_variable() -> Option<&'static str> {
    iolite_remote::ranks::variable()
}

#[cfg(not(feature = "agents"))]
fn rank_variable() -> Option<&'static str> {
    None
}

/// Messages of a run as one line, without the name of the program.
fn in_short(words: &str) -> String {
    let lines = words.trim().lines().map(|line| line.strip_prefix("iolite: ").unwrap_or(line));
    // fio's line with `pid=` repeats the one before it, if there is one.
    let (repeated, others): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.trim_start().starts_with("pid="));
    if others.is_empty() { repeated.join("; ") } else { others.join("; ") }
}
