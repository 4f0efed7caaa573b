//! Agents that the system's ssh starts: `--client=ssh:USER@HOST`.
//!
//! ssh gets one end of a pair of sockets as its standard input and output, which is the connection. The other machine
//! needs only an ssh server and this program, which can be pushed.
//!
//! A shell may print text when it starts. So the script that starts the agent prints a marker line, and everything
//! before it is skipped.

use crate::carrier_process::{Carrier, Carriers, LINE, REASON, printable};
use crate::pushed;
use crate::stream::Stream;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The marker that the script prints before anything else.
const MARK: &str = "iolite-is-next";
/// How long to wait before retrying ssh after a server was too busy.
const AGAIN: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(900), Duration::from_millis(2700)];
/// The most bytes that a login shell may print before that.
const NOISE: u64 = 64 << 10;
/// How long a machine may be silent while it stores the pushed program.
const STORING: Duration = Duration::from_secs(60);
/// How long pushing the program may take: a slow line needs minutes.
const SENDING: Duration = Duration::from_secs(600);
/// How many lines of a shell's text before the marker are kept.
const NOISE_LINES: usize = 3;
/// ssh's exit status if ssh itself has failed.
const FAILED: i32 = 255;
/// The exit status of the script if the program is missing.
const MISSING: i32 = 127;

/// Finds the program and replaces the shell with it. It may be at the same path as on this machine: clusters share
/// directories, and then it is the same version.
///
/// The script contains no single quotes, no exclamation mark and no line feed, because some shells change these.
const RUN: &str = r#"p=$1; [ -x "$p" ] || p=$(command -v iolite) || exit 127; echo; echo MARK; exec "$p" "#;

/// Prints the kind of the machine, reads a program and before it its size, stores it in a private directory, and runs it. The
/// directory is removed when the shell ends. Only the user has access to a directory of mktemp; files that jobs create keep their
/// usual permissions.
const TAKE: &str = concat!(
    r#"d=$(mktemp -d "${TMPDIR:-/tmp}/iolite-XXXXXXXX") || exit 126; "#,
    r#"trap "rm -f \"$d/iolite\"; rmdir \"$d\"" EXIT; trap "exit 129" HUP INT TERM PIPE; "#,
    r#"echo; echo MARK "$(uname -sm)"; "#,
    r#"read -r n || exit 126; head -c "$n" >"$d/iolite"; [ "$(wc -c <"$d/iolite")" -eq "$n" ] || exit 126; "#,
    r#"chmod 700 "$d/iolite" && "$d/iolite" --version >/dev/null || exit 126; echo MARK; "$d/iolite" "#
);

/// The destination of ssh.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The user there; `None` = ssh decides.
    pub user: Option<String>,
    /// The host, by its name for ssh.
    pub host: String,
    /// The port; `None` = ssh decides.
    pub port: Option<u16>,
}

impl Target {
    /// Reads `[USER@]HOST[,PORT]`.
    ///
    /// # Errors
    /// Why it is not a destination.
    pub(crate) fn parse(text: &str) -> Result<Target, String> {
        let (place, port) = match text.rsplit_once(',') {
            None => (text, None),
            Some((place, port)) => {
                let number = port.trim().parse().ok().filter(|port| *port != 0);
                (
                    place,
                    Some(number.ok_or_else(|| format!("\"{}\" is not a port (1 to 65535)", port.trim()))?),
                )
            }
        };
        let (user, host) = match place.trim().rsplit_once('@') {
            None => (None, place.trim()),
            Some((user, host)) => (Some(user), host),
        };
        // ssh would take a leading dash for its own option, and before version 9.6 it passes other characters to a
        // shell if there is a ProxyCommand.
        let is_bad = |text: &str| {
            text.is_empty()
                || text.starts_with('-')
                || text.contains(|c: char| c.is_control() || " ,/'\"`$;&|<>(){}".contains(c))
        };
        let is_bad = |text: &str| is_bad(text) || text.ends_with('\\');
        if is_bad(host) || host.contains('\\') {
            return Err(format!("\"{host}\" is not a host (ssh:[USER@]HOST[,PORT])"));
        }
        if let Some(user) = user.filter(|user| is_bad(user)) {
            return Err(format!("\"{user}\" is not a user (ssh:[USER@]HOST[,PORT])"));
        }
        Ok(Target { user: user.map(str::to_owned), host: host.to_owned(), port })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ssh:")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ",{port}"))
    }
}

/// How an agent is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentStart<'a> {
    /// Push a program: this file, or one of this directory ([`pushed`]).
    pub push: Option<&'a Path>,
    /// Jobs may run programs, and change settings of the machine.
    pub exec: bool,
    /// An end that is silent for this long counts as gone.
    pub timeout: Duration,
}

impl AgentStart<'_> {
    /// The arguments of the program.
    fn words(self) -> String {
        let exec = if self.exec { " --serve-exec" } else { "" };
        format!("--server=stdio --client-timeout={}ms{exec}", self.timeout.as_millis())
    }
}

/// Starts ssh, and thereby the agent. Returns the connection and its carrier. Calls `logged_in` after the login.
///
/// # Errors
/// The agent could not be started. The error has ssh's own message, if any.
pub(crate) fn start(
    target: &Target,
    how: AgentStart<'_>,
    carriers: &Carriers,
    mut logged_in: impl FnMut(),
) -> Result<(Arc<Stream>, Arc<Carrier>), String> {
    // The login gets as much time as the connection.
    let until = Instant::now() + 2 * how.timeout;
    for pause in AGAIN {
        match try_to_start(target, how, carriers, until, &mut logged_in) {
            Err(why) if is_dropped_login(&why) && Instant::now() + pause < until => thread::sleep(pause),
            done => return done,
        }
    }
    try_to_start(target, how, carriers, until, &mut logged_in)
}

/// Whether the server, or a jump host, dropped the connection before the login, because too many arrived at once
/// (MaxStartups).
fn is_dropped_login(said: &str) -> bool {
    ["kex_exchange_identification", "ssh_exchange_identification", "Exceeded MaxStartups"]
        .iter()
        .any(|words| said.contains(words))
}

fn try_to_start(
    target: &Target,
    how: AgentStart<'_>,
    carriers: &Carriers,
    until: Instant,
    logged_in: &mut dyn FnMut(),
) -> Result<(Arc<Stream>, Arc<Carrier>), String> {
    let program =
        std::fs::read_link("/proc/self/exe").map_err(|error| format!("where this program is: {error}"))?;
    let far = remote_words(if how.push.is_some() { TAKE } else { RUN }, how, &program.to_string_lossy());
    let (mine, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    let failed = |error: io::Error| format!("ssh cannot be started: {error} (package openssh-client)");
    let mine = Stream::over_socket(mine).map_err(|error| error.to_string())?;
    let carrier =
        Arc::new(Carrier::start("ssh", command(target, &far, how.timeout), theirs).map_err(failed)?);
    carriers.add(&carrier)?;
    mine.set_deadline(Some(until));
    let marked = wait_for_mark(&mine);
    if marked.is_ok() {
        logged_in();
    }
    let prepared = match how.push {
        Some(from) => marked.and_then(|kind| push(&mine, from, &kind)),
        None => marked.map(drop),
    };
    let why = match prepared {
        Ok(()) => return Ok((Arc::new(mine), carrier)),
        Err(why) => why,
    };
    drop(mine);
    Err(match carrier.end_within(REASON).and_then(|status| status.code()) {
        Some(MISSING) if how.push.is_none() => format!(
            "there is no iolite on that machine, neither in PATH nor at {}: install it, or copy it with --push",
            program.display()
        ),
        Some(FAILED) => with_remedy(carrier.said_or(&why.to_string())),
        None => carrier.explain(&why.to_string()),
        Some(_) => with_remedy(carrier.explain(&match why {
            Missed::Closed(said) if said.is_empty() => "the agent cannot be started there".to_owned(),
            Missed::Closed(why) | Missed::Other(why) => format!("the agent cannot be started there: {why}"),
        })),
    })
}

/// ssh's message, with the remedy.
fn with_remedy(said: String) -> String {
    let known = [
        (
            "Host key verification failed",
            "log in there once by hand (ssh), and look whether its key is the right one",
        ),
        (
            "/iolite: Permission denied",
            "programs cannot be run from the temporary directory there (noexec): set TMPDIR for logins, or install the program",
        ),
        (
            "Permission denied",
            "ssh cannot ask for a password here: it needs a key that is accepted there, or its agent",
        ),
        (
            "mktemp: ",
            "--push needs a directory there that can be written: set TMPDIR for logins, or install the program",
        ),
        (
            "kex_exchange_identification",
            "that server lets in few at a time (MaxStartups of sshd), or does not let this machine in",
        ),
    ];
    match known.iter().find(|(words, _)| said.contains(words)) {
        Some((_, remedy)) => format!("{said}; {remedy}"),
        None => said,
    }
}

/// Why the marker line has not arrived.
#[derive(Debug)]
enum Missed {
    /// The other end has ended, after this last output.
    Closed(String),
    /// Another reason, as text.
    Other(String),
}

impl std::fmt::Display for Missed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missed::Closed(said) if said.is_empty() => f.write_str("the connection was closed"),
            Missed::Closed(said) => write!(f, "the connection was closed; it had said: {said}"),
            Missed::Other(why) => f.write_str(why),
        }
    }
}

/// Starts the agent of this machine. Returns the connection and its carrier.
///
/// # Errors
/// It cannot be started.
pub(crate) fn start_here(
    how: AgentStart<'_>,
    carriers: &Carriers,
) -> Result<(Arc<Stream>, Arc<Carrier>), String> {
    let failed = |error: io::Error| format!("the agent cannot be started: {error}");
    let (mine, theirs) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new("/proc/self/exe");
    command.args(how.words().split(' '));
    let mine = Stream::over_socket(mine).map_err(failed)?;
    let carrier = Arc::new(Carrier::start("its agent", command, theirs).map_err(failed)?);
    carriers.add(&carrier)?;
    Ok((Arc::new(mine), carrier))
}

/// The command line of ssh.
fn command(target: &Target, far: &str, timeout: Duration) -> Command {
    let mut command = Command::new("ssh");
    // ssh must not prompt or forward anything else, and prints only errors.
    command.args(["-T", "-x", "-a", "-oBatchMode=yes", "-oLogLevel=ERROR", "-oClearAllForwardings=yes"]);
    // Do not become a master, which could not end while another connection uses it; an existing master is used. And a
    // command in ssh's settings for the host must not replace ours.
    command.args(["-oControlMaster=no", "-oRemoteCommand=none"]);
    command.arg(format!("-oConnectTimeout={}", timeout.as_secs().max(1)));
    if let Some(port) = target.port {
        command.arg("-p").arg(port.to_string());
    }
    if let Some(user) = &target.user {
        command.arg("-l").arg(user);
    }
    command.args(["--", &target.host, far]);
    command
}

/// The command line for the other machine. A plain `sh` runs the script, whatever the user's shell is.
fn remote_words(script: &str, how: AgentStart<'_>, argument: &str) -> String {
    let script = script.replace("MARK", MARK) + &how.words();
    format!("exec sh -c '{script}' iolite {}", quoted(argument))
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Skips output of shells up to the script's own line; returns the text after the mark.
fn wait_for_mark(stream: &Stream) -> Result<String, Missed> {
    let mut line = Vec::new();
    let mut said = VecDeque::new();
    for _ in 0..NOISE {
        // One byte at a time: later bytes belong to the protocol.
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => {
                said.push_back(printable(&String::from_utf8_lossy(&line)));
                let said: Vec<String> = said.into_iter().filter(|line| !line.is_empty()).collect();
                return Err(Missed::Closed(said.join("; ")));
            }
            Ok(_) if byte[0] != b'\n' => line.push(byte[0]),
            Ok(_) => {
                let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                if let Some(rest) = text.strip_prefix(MARK) {
                    return Ok(rest.trim().to_owned());
                }
                said.push_back(printable(&text).chars().take(LINE).collect());
                if said.len() > NOISE_LINES {
                    said.pop_front();
                }
            }
            Err(error) => return Err(Missed::Other(error.to_string())),
        }
    }
    Err(Missed::Other("the login shell there says too much before it runs anything".to_owned()))
}

/// Sends the program for a machine of this kind.
fn push(stream: &Stream, from: &Path, theirs: &str) -> Result<(), Missed> {
    let program = pushed::program_for(from, &printable(theirs)).map_err(Missed::Other)?;
    stream.set_patience(STORING);
    stream.set_deadline(Some(Instant::now() + SENDING));
    let sent = program.metadata().and_then(|metadata| {
        let mut to = To(stream);
        writeln!(to, "{}", metadata.len())?;
        // (What another process adds meanwhile would be taken for the protocol.)
        io::copy(&mut program.take(metadata.len()), &mut to)
    });
    // If ssh has closed the connection, its exit status explains why.
    sent.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Missed::Closed(String::new()),
        _ => Missed::Other(format!("--push: {error}")),
    })?;
    // The program must be stored completely before anything else is sent.
    match wait_for_mark(stream) {
        Err(Missed::Other(why)) => Err(Missed::Other(format!("--push: {why}"))),
        other => other.map(drop),
    }
}

/// A stream to write to.
struct To<'a>(&'a Stream);

impl io::Write for To<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn ssh_targets_are_parsed() {
        let target = |user: Option<&str>, host: &str, port| {
            Ok(Target { user: user.map(str::to_owned), host: host.to_owned(), port })
        };
        assert_eq!(Target::parse("one"), target(None, "one", None));
        assert_eq!(Target::parse("u@one,2222"), target(Some("u"), "one", Some(2222)));
        assert_eq!(Target::parse("a@b@::1"), target(Some("a@b"), "::1", None));
        assert_eq!(Target::parse("D\\u@one"), target(Some("D\\u"), "one", None));
        assert_eq!(Target::parse("u@one,22").unwrap().to_string(), "ssh:u@one,22");
        for wrong in [
            "",
            "@",
            "u@",
            "@one",
            "-oProxyCommand=x",
            "-u@one",
            "one,",
            "one,0",
            "one,x",
            "one,65536",
            "a b",
            "o'e",
            "a`b`",
            "a$(b)",
            "$a@one",
            "a;b@one",
            "a\\@one",
            "one\\",
        ] {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Quoted text passes through a shell unchanged.
    #[test]
    fn words_survive_shells() {
        for word in ["/usr/bin/iolite", "it's", "a b\"$HOME`x`\\'", "''", "*?~#;&|<>"] {
            let out =
                Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&out.stdout), word);
        }
        for script in [RUN, TAKE] {
            assert!(!script.contains(['\'', '!', '\n']), "{script}");
        }
    }

    #[test]
    fn shell_output_before_the_marker_is_skipped() {
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        let mine = Stream::over_socket(mine).unwrap();
        theirs.write_all(format!("Welcome!\n\nbye\n{MARK} Linux x86_64\nrest").as_bytes()).unwrap();
        assert_eq!(wait_for_mark(&mine).unwrap(), "Linux x86_64");
        let mut rest = [0; 4];
        assert_eq!(mine.read(&mut rest).unwrap(), 4);
        assert_eq!(&rest, b"rest");
        let writer = thread::spawn(move || drop(theirs.write_all(&vec![b'x'; NOISE as usize])));
        assert!(wait_for_mark(&mine).unwrap_err().to_string().contains("too much"));
        writer.join().unwrap();
        assert!(wait_for_mark(&mine).unwrap_err().to_string().contains("closed"));
        // A refused login prints its message before the marker.
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"\nThis account is\x1b[0m not available.\n").unwrap();
        drop(theirs);
        let missed = wait_for_mark(&Stream::over_socket(mine).unwrap()).unwrap_err();
        assert!(
            matches!(&missed, Missed::Closed(said) if said == "This account is[0m not available."),
            "{missed}"
        );
    }
}
