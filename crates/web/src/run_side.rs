//! The run's side: it starts the process of its page, and passes events to it without ever waiting.

use crate::WORD;
use crate::access::{Rights, Token};
use crate::message::{HAS_ALL, Hello, Setup, ToPage};
use crate::security::Certified;
use iolite_os::poll::{wait_readable, wait_writable};
use iolite_os::process::{start_with_none_blocked, start_with_standard_streams_only, tie_to_this_thread};
use iolite_remote::frame;
use iolite_stats::{Event, EventKind};
use iolite_types::describe_error;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The most events that wait for a slow process. Later ones are dropped.
const MOST_WAITING: usize = 1000;

/// How long the process may take to accept the first message, and the rest when the run is over.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The process of a page, from the run's side.
#[derive(Debug)]
pub struct LivePage {
    process: Child,
    handing: Handing,
    /// The addresses of the page: with the right to end the run, and with only the right to look.
    addresses: Option<[String; 2]>,
    /// The address of the metrics.
    metrics: Option<String>,
    /// It has everything, and continues alone.
    is_released: bool,
}

/// The socket on which events go to a process that shows the run, without ever waiting.
#[derive(Debug)]
pub struct Handing {
    channel: UnixStream,
    waiting: VecDeque<Waiting>,
    /// How many bytes of the first message were sent.
    sent: usize,
    is_lost: bool,
}

/// A message that was not sent completely.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    is_sample: bool,
}

/// Who showed the run is gone. The run continues.
#[derive(Debug)]
pub struct Lost(String);

impl Lost {
    /// `what` is gone, because its process ended like this.
    pub fn of(what: &str, why: &str) -> Lost {
        Lost(format!("{what} is gone: {why}; the run continues without it"))
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a run can be watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Its page.
    pub page: Option<SocketAddr>,
    /// Its metrics.
    pub metrics: Option<SocketAddr>,
}

impl LivePage {
    /// Starts the process that serves a run at these addresses, with this encryption.
    ///
    /// # Errors
    /// An address cannot be used, or the process cannot be started; the message names the step that failed.
    pub fn start(places: Places, certified: Option<Certified>, hello: Hello) -> Result<LivePage, String> {
        // Not by path: the file may have been replaced, and both ends must be the same program.
        LivePage::start_with("/proc/self/exe", places, certified, hello)
    }

    fn start_with(
        program: &str,
        places: Places,
        certified: Option<Certified>,
        hello: Hello,
    ) -> Result<LivePage, String> {
        let failed = |step: String| move |error: io::Error| format!("{step}: {}", describe_error(&error));
        let listen = |address: Option<SocketAddr>| -> Result<Option<(TcpListener, SocketAddr)>, String> {
            let Some(address) = address else { return Ok(None) };
            let listener = TcpListener::bind(address).map_err(failed(address.to_string()))?;
            let bound = listener.local_addr().map_err(failed(address.to_string()))?;
            Ok(Some((listener, bound)))
        };
        let (of_page, of_metrics) = (listen(places.page)?, listen(places.metrics)?);
        let tokens = Token::of(&[Rights::End, Rights::Look]).map_err(failed("random secrets".to_owned()))?;
        let scheme = if certified.is_some() { "https" } else { "http" };
        let addresses = of_page.as_ref().map(|(_, address)| {
            [0, 1].map(|one: usize| format!("{scheme}://{address}/?token={}", tokens[one].secret))
        });
        let metrics = of_metrics.as_ref().map(|(_, address)| format!("{scheme}://{address}/metrics"));
        let (channel, its_channel) =
            UnixStream::pair().map_err(failed("a socket for the process of the page".to_owned()))?;
        let mut command = Command::new(program);
        command.arg0("iolite").arg(WORD).stdin(OwnedFd::from(its_channel));
        // The process may live on for long. So it must not keep the caller's output, locks or pipes open, nor any file
        // system busy.
        let given = |place: Option<(TcpListener, _)>| {
            place.map_or_else(Stdio::null, |(listener, _)| Stdio::from(OwnedFd::from(listener)))
        };
        command.stdout(given(of_page)).stderr(given(of_metrics));
        start_with_standard_streams_only(&mut command);
        command.current_dir("/");
        // An interrupt from the terminal is meant for the run: the page shows its end.
        command.process_group(0);
        tie_to_this_thread(&mut command);
        // The child unblocks the signals that its starter blocks.
        start_with_none_blocked(&mut command);
        let process = command
            .spawn()
            .map_err(failed(format!("the process of the page cannot be started from {program}")))?;
        drop(command);
        let handing = Handing::over(channel, hello, Setup { tokens, certified })
            .map_err(failed("the process of the page does not take the run".to_owned()))?;
        Ok(LivePage { process, handing, addresses, metrics, is_released: false })
    }

    /// The addresses of the page: with the right to end the run, and with only the right to look. They contain secrets.
    pub fn addresses(&self) -> Option<&[String; 2]> {
        self.addresses.as_ref()
    }

    /// The address of the metrics.
    pub fn metrics(&self) -> Option<&str> {
        self.metrics.as_deref()
    }

    /// Passes on an event, if pages show it. Does not block.
    ///
    /// # Errors
    /// The process has ended. This is reported once.
    pub fn take(&mut self, event: &Event) -> Result<(), Lost> {
        self.handing.take(event).map_err(|error| self.lost(&error))
    }

    /// Whether the process has ended, which has been reported.
    pub fn is_lost(&self) -> bool {
        self.handing.is_lost
    }

    fn lost(&mut self, error: &io::Error) -> Lost {
        let how = self.process.try_wait().ok().flatten();
        let why = how.map_or_else(|| describe_error(error), |status| format!("its process had {status}"));
        Lost::of("the page of this run (--web)", &why)
    }

    /// The run is over: passes on the page of its report. The process stays for its readers, and is not waited for.
    ///
    /// # Errors
    /// The process is gone, or accepts no data.
    pub fn end(mut self, page: String) -> Result<(), Lost> {
        if self.is_lost() {
            return Ok(());
        }
        self.handing.end([ToPage::End(page)]).map_err(|error| self.lost(&error))?;
        self.is_released = true;
        Ok(())
    }
}

impl Drop for LivePage {
    fn drop(&mut self) {
        if !self.is_released {
            // Both fail only if it has ended and has been reaped.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

impl Handing {
    /// Announces a run to a process that shows it without serving anything.
    ///
    /// # Errors
    /// The process does not take it.
    pub fn to_viewer(channel: UnixStream, hello: Hello) -> io::Result<Handing> {
        Handing::over(channel, hello, Setup::default())
    }

    /// Announces a run over this socket.
    pub(crate) fn over(channel: UnixStream, hello: Hello, setup: Setup) -> io::Result<Handing> {
        let bytes = frame::encode(&ToPage::Hello(Box::new(hello), setup)).map_err(io::Error::other)?;
        channel.set_nonblocking(true)?;
        let waiting = VecDeque::from([Waiting { bytes, is_sample: false }]);
        let mut handing = Handing { channel, waiting, sent: 0, is_lost: false };
        handing.send_all(Instant::now() + LAST_PATIENCE)?;
        Ok(handing)
    }

    /// Passes an event on, if it is shown. Does not block.
    ///
    /// # Errors
    /// The process is gone. This is reported once.
    pub fn take(&mut self, event: &Event) -> io::Result<()> {
        if self.is_lost {
            return Ok(());
        }
        let is_sample = matches!(event.kind, EventKind::Sample(_));
        let is_shown = match event.kind {
            EventKind::Note(_)
            | EventKind::Warning(_)
            | EventKind::Trouble(_)
            | EventKind::Fatal(_)
            | EventKind::Tolerated(..)
            | EventKind::WrongData(_)
            | EventKind::Failed { .. }
            | EventKind::Terminating(_) => self.waiting.len() < MOST_WAITING,
            // A later sample replaces it.
            EventKind::Sample(_) => !self.waiting.iter().any(|one| one.is_sample),
            // Of the layout, there are no samples.
            EventKind::Snapshot(ref snapshot) => snapshot.is_laying_out && self.waiting.is_empty(),
            _ => false,
        };
        if is_shown && let Ok(bytes) = frame::encode(&ToPage::Event(Box::new(event.clone()))) {
            self.waiting.push_back(Waiting { bytes, is_sample });
        }
        self.send().inspect_err(|_| {
            self.is_lost = true;
            self.waiting.clear();
        })
    }

    /// Sends as much as the socket accepts.
    fn send(&mut self) -> io::Result<()> {
        while let Some(first) = self.waiting.front() {
            match self.channel.write(&first.bytes[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.sent == first.bytes.len() {
                self.waiting.pop_front();
                self.sent = 0;
            }
        }
        Ok(())
    }

    /// Sends all waiting messages; fails at this time.
    fn send_all(&mut self, until: Instant) -> io::Result<()> {
        loop {
            self.send()?;
            if self.waiting.is_empty() {
                return Ok(());
            }
            wait_writable(self.channel.as_raw_fd(), left(until)?)?;
        }
    }

    /// Sends the rest and these last messages, and waits a limited time until the page has received everything.
    pub(crate) fn end(&mut self, last: impl IntoIterator<Item = ToPage>) -> io::Result<()> {
        self.end_until(last, Instant::now() + LAST_PATIENCE)
    }

    /// One deadline covers everything, so that a slow process cannot extend it with each part.
    fn end_until(&mut self, last: impl IntoIterator<Item = ToPage>, until: Instant) -> io::Result<()> {
        for message in last {
            let bytes = frame::encode(&message).map_err(io::Error::other)?;
            self.waiting.push_back(Waiting { bytes, is_sample: false });
        }
        self.send_all(until)?;
        let mut answer = [0];
        loop {
            match self.channel.read(&mut answer) {
                Ok(1) if answer == [HAS_ALL] => return Ok(()),
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_readable(&[self.channel.as_raw_fd()], Some(left(until)?))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "its process did not take or confirm everything in time",
        ));
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_stats::Report;
    use std::net::Ipv4Addr;
    use std::thread;

    fn hello() -> Hello {
        Hello {
            outline: Report::default(),
            blocks: Vec::new(),
            program: "iolite".to_owned(),
            interval_ns: 1,
            of_hosts: false,
            linger_ms: None,
        }
    }

    /// One deadline covers everything.
    #[test]
    fn a_slow_process_cannot_extend_the_deadline() {
        let (ours, mut its) = UnixStream::pair().unwrap();
        let mut handing = Handing::over(ours, hello(), Setup::default()).unwrap();
        let taker = thread::spawn(move || {
            let mut part = [0; 4096];
            while !matches!(its.read(&mut part), Ok(0) | Err(_)) {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let page = "x".repeat(64 << 20);
        let ended = handing.end_until([ToPage::End(page)], Instant::now() + Duration::from_millis(50));
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(!handing.waiting.is_empty(), "it was given up on the way");
        drop(handing);
        taker.join().unwrap();
    }

    #[test]
    fn the_end_needs_an_answer() {
        let (ours, mut its) = UnixStream::pair().unwrap();
        let mut handing = Handing::over(ours, hello(), Setup::default()).unwrap();
        let silent = handing.end_until([], Instant::now() + Duration::from_millis(5));
        assert_eq!(silent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        its.write_all(&[HAS_ALL]).unwrap();
        handing.end([]).unwrap();
        drop(its);
        assert_ne!(handing.end([]).unwrap_err().kind(), io::ErrorKind::TimedOut, "it is gone");
    }

    #[test]
    fn the_step_that_failed_is_named() {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let page = |address| Places { page: Some(address), metrics: None };
        let told = LivePage::start_with("/dev/null/exe", page(free), None, hello()).unwrap_err();
        let expected = "the process of the page cannot be started from /dev/null/exe: Not a directory";
        assert_eq!(told, expected);
        let listener = TcpListener::bind(free).unwrap();
        let taken = listener.local_addr().unwrap();
        let told = LivePage::start(page(taken), None, hello()).unwrap_err();
        assert_eq!(told, format!("{taken}: Address already in use"));
    }
}
