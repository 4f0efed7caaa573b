//! Command-line options about other machines.

use crate::{Diagnostic, Origin, RunOptions};
use std::path::PathBuf;

/// How long a machine may be silent before it counts as lost, in milliseconds.
const CLIENT_TIMEOUT_MS: u64 = 10_000;

/// The options that fire a trigger.
const CONDITIONS: &str = "--trigger-file or --trigger-timeout";

/// The fate of a run when a machine is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenLost {
    /// The others continue.
    #[default]
    Continue,
    /// The others are ended.
    Abort,
}

/// The command line's options about other machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    /// `--server`
    pub server: Option<String>,
    /// `--daemonize`
    pub pid_file: Option<PathBuf>,
    /// `--client`, in order.
    pub clients: Vec<Named>,
    /// `--mpi`: how the ranks find each other.
    pub mpi: Option<String>,
    /// `--remote-config` before the first `--client`.
    pub remote_files: Vec<String>,
    /// `--keys`
    pub keys: Option<PathBuf>,
    /// `--insecure`
    pub insecure: bool,
    /// `--serve-exec`
    pub exec: bool,
    /// `--serve-only`
    pub only: Vec<PathBuf>,
    /// `--push`
    pub push: Option<String>,
    /// `--client-lost`
    pub when_lost: Option<WhenLost>,
    /// `--client-timeout` in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// One `--client`.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// Its address.
    pub address: String,
    /// The number of job files before it.
    pub files_before: usize,
    /// Job files on the other machine.
    pub remote_files: Vec<String>,
}

impl Others {
    /// `--remote-config`
    pub fn add_remote_file(&mut self, file: &str) {
        let of = self.clients.last_mut().map_or(&mut self.remote_files, |client| &mut client.remote_files);
        of.push(file.to_owned());
    }

    /// How long a machine may be silent, in milliseconds.
    pub fn timeout(&self) -> u64 {
        self.timeout_ms.unwrap_or(CLIENT_TIMEOUT_MS)
    }

    /// Options that have no effect without others.
    pub fn idle(&self, run: &RunOptions) -> Vec<Diagnostic> {
        let (serves, asks) = (self.server.is_some(), !self.clients.is_empty() || self.mpi.is_some());
        let never_fires = run.trigger_file.is_none() && run.trigger_timeout.is_none();
        let idle = [
            ("--daemonize", self.pid_file.is_some() && !serves, "--server"),
            ("--remote-config", !self.remote_files.is_empty() && !asks, "--client"),
            ("--trigger-remote", run.trigger_remote.is_some() && !asks && !serves, "--client"),
            ("--trigger", run.trigger.is_some() && never_fires && !serves, CONDITIONS),
            ("--trigger-remote", run.trigger_remote.is_some() && never_fires && asks, CONDITIONS),
            ("--client-lost", self.when_lost.is_some() && !asks, "--client"),
            ("--client-timeout", self.timeout_ms.is_some() && !asks && !serves, "--client or --server"),
            ("--serve-exec", self.exec && !serves && !asks, "--server or --client=ssh:HOST"),
            ("--serve-only", !self.only.is_empty() && !serves, "--server"),
            ("--push", self.push.is_some() && !asks, "--client=ssh:HOST"),
            ("--keys", self.keys.is_some() && !asks && !serves, "--client or --server"),
            ("--insecure", self.insecure && !asks && !serves, "--client or --server"),
        ];
        let told = idle.into_iter().filter(|(_, is_idle, _)| *is_idle);
        told.map(|(option, _, other)| on_command_line(format!("{option}: has no effect without {other}")))
            .collect()
    }
}

/// A message about options that exist only on the command line.
pub(crate) fn on_command_line(message: String) -> Diagnostic {
    Diagnostic { origin: Some(Origin::CommandLine(0)), message }
}
