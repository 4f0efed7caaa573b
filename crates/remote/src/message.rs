//! The messages between coordinator and agent.

use crate::returned::{FilePart, PART};
use iolite_options::SentJobs;
use iolite_stats::{Event, Report};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version of the protocol. It must be equal at both ends, so that reports and options have the same form.
pub const VERSION: u32 = 1;

/// The remedy if the versions differ.
pub(crate) const SAME_VERSION: &str = "both ends have to have the same version";

/// The most characters of the name of a program or a machine.
const LONGEST_NAME: usize = 256;
/// The size limit of a message without lists.
const SMALL: u32 = 64 << 10;
/// The size limit of a message of a few numbers, which may be frequent.
const TINY: u32 = 256;
/// The size limit of job files, with everything that they include.
const JOBS: u32 = 64 << 20;
/// The size limit of a report, which may have thousands of jobs.
const REPORT: u32 = 256 << 20;

/// The size limit of a part of a file, with its name.
const FILE_PART: u32 = PART as u32 + SMALL;

/// The kind of [`ToAgent::Run`].
pub(crate) const RUN: u8 = 1;
/// The kind of [`FromAgent::Shown`].
pub(crate) const SHOWN: u8 = 12;

/// A message of one direction.
pub trait Message: Serialize + DeserializeOwned {
    /// Its kind.
    fn kind(&self) -> u8;
    /// The size limit of a message of this kind; `None` = no such kind.
    fn limit(kind: u8) -> Option<u32>;
}

/// A peer's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Program and version, in one word.
    pub program: String,
    /// The machine's host name.
    pub machine: String,
    /// The process.
    pub pid: u32,
}

impl Hello {
    /// A copy with texts that are short enough for any other message.
    pub(crate) fn shortened(mut self) -> Hello {
        for text in [&mut self.program, &mut self.machine] {
            if let Some((end, _)) = text.char_indices().nth(LONGEST_NAME) {
                text.truncate(end);
            }
        }
        self
    }

    /// A description of the other end.
    pub(crate) fn in_words(&self) -> String {
        format!("{} (process {}) on {}", self.program, self.pid, self.machine)
    }

    /// Checks that this is the same program, in the same version. In another version, options and reports have another
    /// form, and fields that one end does not know would be dropped silently.
    ///
    /// # Errors
    /// The versions differ.
    pub(crate) fn check(&self, own: &str) -> Result<(), String> {
        if self.program == own {
            return Ok(());
        }
        Err(format!("{} is at the other end, and this is {own}; {SAME_VERSION}", self.program))
    }
}

/// A requested run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The jobs.
    pub jobs: SentJobs,
    /// The coordinator was called `fio`.
    pub as_fio: bool,
    /// The index of this machine among those that run these jobs, from 0.
    pub host: u64,
    /// How many machines run these jobs.
    pub hosts: u64,
    /// The time between two snapshots in milliseconds; 0 = no snapshots.
    pub snapshot_ms: u64,
    /// The time between two interim reports in milliseconds; 0 = no such reports.
    pub status_ms: u64,
    /// The time between two samples of all its workers together, with latencies, in milliseconds; 0 = no samples.
    pub sample_ms: u64,
    /// The report must contain the facts about the run, and its series.
    pub series: bool,
}

/// A message of a coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToAgent {
    /// The first message.
    Hello(Hello),
    /// Set these jobs up.
    Run(Box<Request>),
    /// A keepalive, with a number for the answer.
    Ping(u64),
    /// Opens a barrier when the agent's monotonic clock shows this many nanoseconds.
    Start {
        /// The barrier; 0 is the start of the run.
        barrier: u32,
        /// The moment.
        at_ns: u64,
    },
    /// End the run, and report.
    Stop,
    /// Make a report now.
    Status,
    /// This steady state is attained, judged over all machines.
    Steady(u32),
    /// Send the files of the run. All runs are over.
    Send,
    /// Run the command of the trigger, which came with the jobs.
    Trigger,
}

/// Jobs that will run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The lines that announce them.
    pub lines: String,
    /// Identifies the machine until it is rebooted, as seen from the process of the run.
    pub machine: String,
    /// Their first files, without links, and whether they make or change them.
    pub files: BTreeMap<PathBuf, bool>,
}

/// A run that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The measurements.
    pub report: Report,
    /// The run has failed.
    pub failed: bool,
    /// How many workers have failed.
    pub failures: u64,
    /// The signal that ended the run, if one did.
    pub signal: Option<i32>,
    /// It has left files, which are sent on request.
    pub leaves: bool,
}

/// Why jobs do not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// All problems, each with its place.
    pub problems: Vec<String>,
    /// The report of the jobs that did not run, if the jobs are known.
    pub report: Option<Report>,
}

/// A message of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromAgent {
    /// The first message.
    Hello(Hello),
    /// Another client's run is not over; names the client.
    Busy(String),
    /// The answer to a ping, with its number and the agent's monotonic clock.
    Pong {
        /// The number.
        sequence: u64,
        /// The clock, in nanoseconds.
        now_ns: u64,
    },
    /// The jobs do not run.
    Refused(Box<Refusal>),
    /// A warning about accepted input.
    Warning(String),
    /// The jobs will run.
    Begun(Begun),
    /// An event of the run.
    Event(Box<Event>),
    /// The run has ended.
    Done(Box<Done>),
    /// The process of the run has ended without a report; this says how.
    Died(String),
    /// A part of a file that the run has left. Parts come after [`FromAgent::Done`].
    File(Box<FilePart>),
    /// All files that the run has left have been sent, except for this many that could not be read.
    Sent(u64),
    /// The command of the trigger has ended, with an error if it failed.
    Triggered(Option<String>),
    /// What the agent itself shows of the run. Clients do not get it.
    Shown(Box<Shown>),
}

/// What an agent itself shows of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shown {
    /// It begins: the report before the first measurement, the report block of each worker, and the nanoseconds between two
    /// samples.
    Begins(Report, Vec<Option<u32>>, u64),
    /// An event of it.
    Event(Event),
}

impl Message for ToAgent {
    fn kind(&self) -> u8 {
        match self {
            ToAgent::Hello(_) => 0,
            ToAgent::Run(_) => RUN,
            ToAgent::Ping(_) => 2,
            ToAgent::Start { .. } => 3,
            ToAgent::Stop => 4,
            ToAgent::Status => 5,
            ToAgent::Steady(_) => 6,
            ToAgent::Send => 7,
            ToAgent::Trigger => 8,
        }
    }

    fn limit(kind: u8) -> Option<u32> {
        match kind {
            RUN => Some(JOBS),
            0 => Some(SMALL),
            2..=8 => Some(TINY),
            _ => None,
        }
    }
}

impl Message for FromAgent {
    fn kind(&self) -> u8 {
        match self {
            FromAgent::Hello(_) => 0,
            FromAgent::Busy(_) => 1,
            FromAgent::Pong { .. } => 2,
            FromAgent::Refused(_) => 3,
            FromAgent::Warning(_) => 4,
            FromAgent::Begun(_) => 5,
            FromAgent::Event(_) => 6,
            FromAgent::Done(_) => 7,
            FromAgent::Died(_) => 8,
            FromAgent::File(_) => 9,
            FromAgent::Sent(_) => 10,
            FromAgent::Triggered(_) => 11,
            FromAgent::Shown(_) => SHOWN,
        }
    }

    fn limit(kind: u8) -> Option<u32> {
        match kind {
            3 | 5..=7 | SHOWN => Some(REPORT),
            9 => Some(FILE_PART),
            0..=11 => Some(SMALL),
            _ => None,
        }
    }
}

/// Identifies this machine until it is rebooted, as seen from the namespaces of this process: where it is the same, a path
/// is the same file.
pub fn machine_identity() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mounts = std::fs::read_link("/proc/self/ns/mnt").unwrap_or_default();
    format!("{} {}", boot.trim(), mounts.display())
}

/// The host name of this machine.
pub fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_fit_into_other_messages() {
        let long = Hello { program: "é".repeat(30_000), machine: "m".repeat(60_000), pid: 7 };
        let short = long.shortened();
        assert_eq!(short.program, "é".repeat(LONGEST_NAME));
        assert_eq!(short.machine, "m".repeat(LONGEST_NAME));
        let usual = Hello { program: "iolite-0.1.0".into(), machine: "one".into(), pid: 7 };
        assert_eq!(usual.clone().shortened(), usual);
    }

    #[test]
    fn versions_are_compared() {
        let hello = Hello { program: "iolite-0.1.0".into(), machine: "one".into(), pid: 7 };
        assert_eq!(hello.check("iolite-0.1.0"), Ok(()));
        let differs = hello.check("iolite-0.2.0").unwrap_err();
        assert!(differs.contains("iolite-0.1.0") && differs.contains("iolite-0.2.0"), "{differs}");
    }
}
