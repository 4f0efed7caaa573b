//! Programs that carry a connection to an agent: ssh, or an agent that this process has started.
//!
//! Such a program has one end of a pair of sockets as its standard input and output. Its messages on standard error are
//! kept, to be reported if the connection is lost.

use iolite_os::process::start_with_none_blocked;
use iolite_os::signals;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How many lines of its messages are kept, and the most bytes of each.
const LINES: usize = 8;
pub(crate) const LINE: usize = 512;
/// How long it may take to end after the connection has ended.
pub(crate) const GRACE: Duration = Duration::from_secs(4);
/// How long to wait for the reason of a lost connection.
pub(crate) const REASON: Duration = Duration::from_secs(1);

/// A program that carries a connection.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// Its name in messages.
    name: &'static str,
    process: Mutex<Child>,
    words: Arc<Words>,
}

/// The last lines that it printed.
#[derive(Debug, Default)]
struct Words {
    lines: Mutex<(VecDeque<String>, bool)>,
    is_complete: Condvar,
}

impl Carrier {
    /// Starts a program with this socket as its standard input and output.
    pub fn start(name: &'static str, mut command: Command, socket: UnixStream) -> io::Result<Carrier> {
        let output = socket.try_clone()?;
        command.stdin(OwnedFd::from(socket)).stdout(OwnedFd::from(output)).stderr(Stdio::piped());
        // A ^C is meant for this program, which ends the run in order, not for the carrier.
        command.process_group(0);
        start_with_none_blocked(&mut command);
        let mut process = command.spawn()?;
        // The child now has the only other handle of the socket.
        drop(command);
        let words = Arc::new(Words::default());
        if let Some(said) = process.stderr.take() {
            let kept = words.clone();
            thread::Builder::new().name("iolite-carrier".into()).spawn(move || kept.keep(said))?;
        }
        Ok(Carrier { name, process: Mutex::new(process), words })
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its end; `None` = not ended in this time.
    pub fn end_within(&self, patience: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + patience;
        loop {
            if let Ok(Some(status)) = self.process().try_wait() {
                return Some(status);
            }
            if Instant::now() >= until {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it with all its children, such as ssh's proxy command.
    fn kill(&self) {
        let mut process = self.process();
        // Until it has been reaped, its number is that of its group.
        if let Ok(None) = process.try_wait() {
            signals::kill_group(process.id() as libc::pid_t, libc::SIGKILL);
            let _ = process.wait();
        }
    }

    /// Explains a failure, with the lines that the program has printed.
    pub fn explain(&self, why: &str) -> String {
        match self.words.said() {
            said if said.is_empty() => why.to_owned(),
            said => format!("{why} ({}: {said})", self.name),
        }
    }

    /// The lines that the program has printed, or this text if there are none.
    pub fn said_or(&self, why: &str) -> String {
        let name = format!("{}: ", self.name);
        match self.words.said() {
            said if said.is_empty() => why.to_owned(),
            said if said.starts_with(&name) => said,
            said => name + &said,
        }
    }
}

/// Waits for the carriers after their connections were closed: when they end, their agents have ended, and a pushed
/// program has been removed. Those that still run after `patience` are killed.
pub(crate) fn wait_for_all(carriers: &[Arc<Carrier>], patience: Duration) {
    let until = Instant::now() + patience;
    for carrier in carriers {
        carrier.end_within(until.saturating_duration_since(Instant::now()));
        carrier.kill();
    }
}

/// All carriers of a run, so that they can be ended while they are still connecting.
#[derive(Debug, Default)]
pub(crate) struct Carriers {
    /// The carriers, and whether they have been asked to end.
    all: Mutex<(Vec<Arc<Carrier>>, bool)>,
}

impl Carriers {
    fn all(&self) -> MutexGuard<'_, (Vec<Arc<Carrier>>, bool)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a carrier, unless all must end.
    pub fn add(&self, carrier: &Arc<Carrier>) -> Result<(), String> {
        let mut all = self.all();
        if all.1 {
            carrier.kill();
            return Err("given up".to_owned());
        }
        all.0.push(carrier.clone());
        Ok(())
    }

    /// Ends all carriers now, and those that are added later.
    pub fn end(&self) {
        let mut all = self.all();
        all.1 = true;
        all.0.drain(..).for_each(|carrier| carrier.kill());
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // After a run, all of them have ended already.
        self.end_within(GRACE);
        self.kill();
    }
}

impl Words {
    /// Reads to the end, and keeps the last lines.
    fn keep(&self, said: impl Read) {
        let mut said = BufReader::new(said);
        loop {
            let mut line = Vec::new();
            let read = (&mut said).take(LINE as u64).read_until(b'\n', &mut line);
            if !matches!(read, Ok(length) if length > 0) {
                break;
            }
            let text = printable(&String::from_utf8_lossy(&line));
            let mut kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if !text.is_empty() {
                kept.0.push_back(text);
            }
            if kept.0.len() > LINES {
                kept.0.pop_front();
            }
        }
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.is_complete.notify_all();
    }

    /// The last lines, joined. If the connection has just been lost, the reason may still be on its way.
    fn said(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.is_complete.wait_timeout_while(lines, REASON, |(_, is_complete)| !*is_complete);
        let (lines, _) = waited.unwrap_or_else(PoisonError::into_inner);
        lines.0.iter().map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// The same without control characters.
pub(crate) fn printable(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_output_are_kept() {
        let words = Words::default();
        let said: String = (0..100).map(|line| format!("\x1b[31mline {line}\r\n")).collect();
        words.keep(said.as_bytes());
        let kept = words.said();
        assert!(kept.starts_with("[31mline 92; ") && kept.ends_with("line 99"), "{kept}");
        let words = Words::default();
        words.keep([b'x'; 3 * LINE].as_slice());
        assert!(words.said().len() < 4 * LINE);
    }
}
