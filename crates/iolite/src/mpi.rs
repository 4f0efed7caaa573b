//! `--mpi`: a run on all ranks of a launcher. Rank 0 reads the job files and coordinates; the others are agents for one run.

use crate::messages::complain;
use iolite_options::{Launched, Name};
use iolite_os::signals::SignalQueue;
use iolite_remote::agent::Settings;
use iolite_remote::permissions::Permissions;
use iolite_remote::ranks::{self, Meeting, Work};
use std::process::ExitCode;
use std::time::Duration;

/// Meets the other ranks, and takes on the role of this one. `lead`: performs the command line as rank 0.
pub fn run(name: Name, launched: &Launched, lead: impl FnOnce(Meeting) -> ExitCode) -> ExitCode {
    // The libraries of launchers start threads.
    let signals = SignalQueue::new(&[libc::SIGINT, libc::SIGTERM]);
    let board = signals
        .map_err(|error| error.to_string())
        .and_then(|signals| Ok((signals, ranks::join(&launched.way)?)));
    let (signals, meeting) = match board {
        Ok((signals, board)) => (signals, Meeting::new(board)),
        Err(why) => {
            complain(name, &format_args!("--mpi: {why}"));
            return ExitCode::FAILURE;
        }
    };
    if meeting.leads() {
        // The run handles signals itself.
        drop(signals);
        return lead(meeting);
    }
    // ^C at mpirun reaches all ranks: rank 0 ends the run, including this rank's part. If rank 0 is gone, this rank
    // ends, too.
    let _signals = signals;
    let serving = &launched.serving;
    let settings = Settings {
        keys: None,
        timeout: Duration::from_millis(serving.timeout_ms),
        permissions: Permissions { exec: serving.exec, changes: !serving.readonly, only: Vec::new() },
        names_clients: false,
        program: name.own_version(),
        log: |_| {},
        show: None,
    };
    match meeting.attend(settings) {
        Ok(Work::Served) => ExitCode::SUCCESS,
        // Rank 0 reports the reason.
        Ok(Work::CalledOff) => ExitCode::FAILURE,
        Err(why) => {
            complain(name, &format_args!("--mpi: {why}"));
            ExitCode::FAILURE
        }
    }
}
