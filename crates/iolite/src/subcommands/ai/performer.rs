//! One run of jobs, in a process of its own, here or on other machines.

use super::Outcome;
use crate::run_series::{End, Runner, Start};
use iolite_options::commands::Asked;
use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Performs runs.
pub struct Performer {
    runner: Runner,
    options: Vec<OsString>,
    is_rank: bool,
}

impl Performer {
    /// From now on, signals end runs in order.
    pub fn new(asked: &Asked) -> Result<Performer, String> {
        let runner = Runner::new().map_err(|error| format!("signals cannot be received: {error}"))?;
        let mpi = asked.value("mpi").map(|means| match means {
            "auto" => "--mpi".into(),
            means => format!("--mpi={means}").into(),
        });
        let is_rank = mpi.is_some();
        let clients = asked.values("client").map(|host| OsString::from(format!("--client={host}")));
        Ok(Performer { runner, options: clients.chain(mpi).collect(), is_rank })
    }

    /// Runs the jobs of a text. Returns the report, or how it ended without one.
    pub fn perform(&mut self, job: &str) -> Result<Result<Value, Outcome>, String> {
        let told = |error: std::io::Error| format!("a report cannot be kept: {error}");
        // Nothing of it is left, however this program ends.
        let mut file = iolite_os::memory::file(c"report").map_err(told)?;
        let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        let start = Start {
            options: self.options.clone(),
            file: Some("-".into()),
            input: job.into(),
            may_be_kept: false,
        };
        let end = self.runner.perform(&start, &path)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(told)?;
        match end {
            End::Interrupted => Ok(Err(Outcome::Interrupted)),
            End::Failed(why) => Err(in_short(&why)),
            End::Doubtful(words) => Err(in_short(&words)),
            End::Done if self.is_rank && text.trim().is_empty() => Ok(Err(Outcome::Elsewhere)),
            End::Done => iolite_stored::last_report(&text).map(Ok).map_err(|why| why.of("the report")),
        }
    }
}

/// Messages of a run as one line, without the name of the program.
fn in_short(words: &str) -> String {
    let lines = words.trim().lines().map(|line| line.strip_prefix("iolite: ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("; ")
}
