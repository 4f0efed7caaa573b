//! The process of a run, which the agent starts: the same program with a special first argument. Its standard input is
//! the connection to the agent, its standard output the socket on which it receives the moment of the start.

use crate::frame::{self, FrameError};
use crate::message::{FromAgent, Request, ToAgent};
use crate::permissions::Permissions;
use iolite_os::process::{replace, start_with_blocked, tie_to_this_thread};
use iolite_os::socket::Socket;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The first argument.
pub const WORD: &str = "--run-for-an-agent";
/// A further argument: the agent itself shows the run.
const SHOWN: &str = "shown";
/// The variables of the environment that every run has.
const KEPT: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"];
/// The beginning of the argument that names the directory for returned files.
const SPOOL: &str = "spool=";

/// The beginning of the argument that has the client's address.
const CLIENT: &str = "client=";

/// The signals that a run acts on.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1];

pub(crate) fn with(word: &str, path: &Path) -> OsString {
    let mut word = OsString::from(word);
    word.push(path);
    word
}

/// Reads the directory for returned files (see [`crate::spool`]) from the arguments of a command line. It does not exist
/// yet; the agent removes it at the end.
pub fn spool(words: &[OsString]) -> PathBuf {
    let named = words.iter().find_map(|word| word.as_bytes().strip_prefix(SPOOL.as_bytes()));
    // An empty path cannot be created.
    named.map(|path| Path::new(OsStr::from_bytes(path)).to_owned()).unwrap_or_default()
}

/// Whether the agent itself shows the run, and wants to know of it.
pub fn is_shown(words: &[OsString]) -> bool {
    words.iter().any(|word| word == SHOWN)
}

/// What names of files have of the client: its address, perhaps with the place of the agent; empty = files are not named after the client.
pub fn client(words: &[OsString]) -> &str {
    words.iter().find_map(|word| word.to_str()?.strip_prefix(CLIENT)).unwrap_or_default()
}

/// The agent's end.
#[derive(Debug)]
pub(crate) struct Started {
    pub process: Child,
    pub channel: UnixStream,
    pub gate: Socket,
}

/// The command that starts this program again, with this word, as the process of a run with these permissions. It is killed when
/// this thread ends.
pub fn command(word: &str, as_fio: bool, permissions: &Permissions, spool: &Path) -> Command {
    // Not by path: the file may have been replaced, and both ends must be the same program.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(if as_fio { "fio" } else { "iolite" }).arg(word).args(permissions.words());
    command.arg(with(SPOOL, spool));
    if !permissions.only.is_empty() {
        // Clients get only the environment variables on the list, too.
        let kept: Vec<_> =
            std::env::vars_os().filter(|(name, _)| KEPT.iter().any(|kept| name == kept)).collect();
        command.env_clear().envs(kept);
    }
    tie_to_this_thread(&mut command);
    // If a run is asked to end while it is being planned, the signal must not kill it: it takes the signal later, and
    // reports.
    start_with_blocked(&mut command, &SIGNALS);
    command
}

/// Starts the process of a run for a coordinator.
pub(crate) fn start(
    as_fio: bool,
    permissions: &Permissions,
    spool: &Path,
    client: Option<&str>,
    is_shown: bool,
) -> io::Result<Started> {
    let (channel, its_channel) = UnixStream::pair()?;
    let (gate, its_gate) = Socket::pair()?;
    let mut command = command(WORD, as_fio, permissions, spool);
    command.args(client.map(|client| format!("{CLIENT}{client}"))).args(is_shown.then_some(SHOWN));
    command.stdin(OwnedFd::from(its_channel)).stdout(OwnedFd::from(its_gate));
    let process = command.spawn()?;
    Ok(Started { process, channel, gate })
}

/// The run's end.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    gate: Option<Socket>,
}

impl Channel {
    /// Takes over the socket from the agent, and replaces standard input and output, so that jobs find nothing there.
    ///
    /// # Errors
    /// This process was not started by an agent.
    pub fn take_over() -> io::Result<Channel> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        stream.peer_addr()?;
        let gate = Socket::from(io::stdout().as_fd().try_clone_to_owned()?);
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        replace(&io::stdin(), &nothing)?;
        replace(&io::stdout(), &nothing)?;
        Ok(Channel { stream, gate: Some(gate) })
    }

    /// The requested run.
    ///
    /// # Errors
    /// The agent is gone.
    pub fn request(&mut self) -> Result<Request, FrameError> {
        match frame::read(&mut self.stream)? {
            ToAgent::Run(request) => Ok(*request),
            other => Err(FrameError::Damaged {
                kind: crate::message::Message::kind(&other),
                why: "a run was expected".to_owned(),
            }),
        }
    }

    /// The socket on which the moment of the start arrives.
    pub fn gate(&mut self) -> Option<Socket> {
        self.gate.take()
    }

    /// Sends the coordinator a message. Returns false if the agent is gone; then the run ends by its gate.
    pub fn tell(&mut self, message: &FromAgent) -> bool {
        match frame::write(&mut self.stream, message) {
            Ok(()) => true,
            Err(error @ (FrameError::TooLong { .. } | FrameError::Damaged { .. })) => {
                let warning = FromAgent::Warning(format!("not sent: {error}"));
                frame::write(&mut self.stream, &warning).is_ok()
            }
            Err(_) => false,
        }
    }
}
