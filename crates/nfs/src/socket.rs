//! Connects to a server.

use crate::NfsError;
use crate::url::Address;
use iolite_os::local_end::{LocalEnd, with_raw};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// How often a wait checks whether the job was asked to end.
const LOOK: Duration = Duration::from_millis(100);

/// A check whether the job was asked to end, and how long it then waits for the server.
pub type Stopping = (fn() -> bool, Duration);

/// The limit of waits while a session connects. It becomes shorter once the job was asked to end.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// How long a step may take.
    limit: Duration,
    /// The end of this step.
    end: Instant,
    stopping: Option<Stopping>,
    /// The end of all steps, once the job was asked to end.
    last: Option<Instant>,
}

impl Deadline {
    /// Each step may take as long as `limit`.
    pub(crate) fn new(limit: Duration, stopping: Option<Stopping>) -> Deadline {
        Deadline { limit, end: Instant::now() + limit, stopping, last: None }
    }

    /// Begins the next step. A job that was asked to end has one limit for all of them.
    pub(crate) fn begin_step(&mut self) {
        self.end = Instant::now() + self.limit;
    }

    /// How much longer this step may take.
    pub(crate) fn left(&mut self) -> Duration {
        let of_step = self.end.saturating_duration_since(Instant::now());
        self.left_after_the_end().map_or(of_step, |left| left.min(of_step))
    }

    /// How much longer all remaining steps may take; `None` = the job was not asked to end.
    pub(crate) fn left_after_the_end(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.last.is_none()
            && let Some((is_asked, longest)) = self.stopping
            && is_asked()
        {
            self.last = Some(now + longest);
        }
        self.last.map(|last| last.saturating_duration_since(now))
    }

    /// Whether the end of the job limits this step.
    fn is_hurried(&self) -> bool {
        self.last.is_some_and(|last| last < self.end)
    }

    /// Whether the job was asked to end, and the time since then is up.
    pub(crate) fn is_given_up(&mut self) -> bool {
        self.left().is_zero() && self.is_hurried()
    }

    /// For how long the server was waited for, as text.
    pub(crate) fn within(&self) -> String {
        match self.stopping {
            Some((_, longest)) if self.is_hurried() => NfsError::after_the_end(longest),
            _ => NfsError::within(self.limit),
        }
    }

    /// The error of a step with this server.
    pub(crate) fn error(&self, server: &str, error: &io::Error) -> NfsError {
        let kind = error.kind();
        if kind == io::ErrorKind::WouldBlock || (kind == io::ErrorKind::TimedOut && self.is_hurried()) {
            return NfsError::Silent { server: server.to_owned(), within: self.within() };
        }
        NfsError::unreachable(server, error)
    }

    /// Reads this many bytes.
    ///
    /// # Errors
    /// `WouldBlock` if the time is up; or the connection is lost.
    pub(crate) fn read_exact(&mut self, stream: &mut TcpStream, mut to: &mut [u8]) -> io::Result<()> {
        stream.set_read_timeout(Some(LOOK))?;
        while !to.is_empty() {
            match stream.read(to) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    to = &mut to[read..];
                    if !to.is_empty() && self.left().is_zero() {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.left().is_zero() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The local ports that many servers require of their clients, because only root can use them.
const RESERVED: std::ops::Range<u16> = 600..1024;

/// Connects to this port of a host.
///
/// # Errors
/// The name is unknown, no address accepts the connection, or it takes too long.
pub(crate) fn connect(of: &Address, port: u16, deadline: &mut Deadline) -> io::Result<TcpStream> {
    let (host, source) = (of.host.as_str(), of.source.as_ref());
    deadline.begin_step();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let unknown =
        |error: io::Error| io::Error::other(format!("the name in nfs_url= cannot be resolved ({error})"));
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(unknown)?.collect();
    for (number, &address) in addresses.iter().enumerate() {
        let (now, left) = (Instant::now(), deadline.left());
        let end = share(now, now + left, addresses.len() - number);
        match to(address, source, end, deadline) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The deadline for the next of the remaining addresses: a silent address must leave time for those after it.
fn share(now: Instant, end: Instant, addresses: usize) -> Instant {
    now + end.saturating_duration_since(now) / addresses as u32
}

fn to(
    address: SocketAddr,
    source: Option<&LocalEnd>,
    end: Instant,
    deadline: &mut Deadline,
) -> io::Result<TcpStream> {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return from_port(address, source, None, end, deadline);
    }
    let count = u32::from(RESERVED.end - RESERVED.start);
    let first = random();
    for step in 0..count {
        let port = RESERVED.start + (first.wrapping_add(step) % count) as u16;
        match from_port(address, source, Some(port), end, deadline) {
            Err(error) if is_taken(&error) => {}
            Err(error) if source.is_some() && error.raw_os_error() == Some(libc::EACCES) => break,
            result => return result,
        }
    }
    from_port(address, source, None, end, deadline)
}

/// Whether the port is in use, or was in use a moment ago.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL))
}

fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

fn from_port(
    address: SocketAddr,
    source: Option<&LocalEnd>,
    port: Option<u16>,
    end: Instant,
    deadline: &mut Deadline,
) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: takes nothing but integers.
    let descriptor =
        unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    if let Some(interface @ LocalEnd::Interface(_)) = source {
        interface.bind(&socket)?;
    }
    let from = match (source, address) {
        (Some(LocalEnd::Address(from)), _) if from.is_ipv4() == address.is_ipv4() => Some(*from),
        (Some(LocalEnd::Address(from)), _) => {
            let words = format!("the server has no address of the same version of IP as bind={from}");
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, words));
        }
        (_, SocketAddr::V4(_)) => port.map(|_| [0, 0, 0, 0].into()),
        (_, SocketAddr::V6(_)) => port.map(|_| [0_u16; 8].into()),
    };
    if let Some(from) = from {
        match with_raw((from, port.unwrap_or(0)).into(), |raw, length| {
            // SAFETY: the address is valid for its length.
            unsafe { libc::bind(descriptor, raw, length) }
        }) {
            // A name space may forbid such ports even to root.
            Err(error) if error.raw_os_error() == Some(libc::EACCES) && source.is_none() => {}
            result => result?,
        }
    }
    let begun = with_raw(address, |raw, length| {
        // SAFETY: the address is valid for its length.
        unsafe { libc::connect(descriptor, raw, length) }
    });
    match begun {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => loop {
            let left = end.saturating_duration_since(Instant::now()).min(deadline.left());
            match wait(descriptor, libc::POLLOUT, Some(left.min(LOOK))) {
                Ok(true) => break,
                Ok(false) if left.is_zero() => return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT)),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        },
        result => result?,
    }
    let stream = TcpStream::from(socket);
    match stream.take_error()? {
        Some(error) => Err(error),
        None => {
            stream.set_nonblocking(false)?;
            Ok(stream)
        }
    }
}

/// Waits until a descriptor is ready for one of these events. Returns false if the time is up.
///
/// # Errors
/// A signal interrupted the wait, or the system call failed.
pub(crate) fn wait(descriptor: RawFd, events: libc::c_short, timeout: Option<Duration>) -> io::Result<bool> {
    let mut watched = libc::pollfd { fd: descriptor, events, revents: 0 };
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(1 << 30) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: there is one descriptor; it and the time are valid through the call, and there is no mask.
    match unsafe { libc::ppoll(&raw mut watched, 1, limit, std::ptr::null()) } {
        0 => Ok(false),
        1.. => Ok(true),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_from_the_source() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connected = |source: LocalEnd| {
            let of = Address { host: "127.0.0.1".into(), source: Some(source), ..Address::default() };
            connect(&of, port, &mut Deadline::new(Duration::from_secs(60), None))
        };
        let from = LocalEnd::Address([127, 0, 0, 7].into());
        for (source, from) in [(from, "127.0.0.7"), (LocalEnd::Interface(c"lo".into()), "127.0.0.1")] {
            let stream = connected(source).unwrap();
            assert_eq!(listener.accept().unwrap().1, stream.local_addr().unwrap());
            assert_eq!(stream.local_addr().unwrap().ip().to_string(), from);
        }
        let other = connected(LocalEnd::Address([0_u16; 8].into())).unwrap_err();
        assert!(other.to_string().contains("of the same version of IP"), "{other}");
    }

    #[test]
    fn an_address_that_is_silent_leaves_time_for_the_others() {
        let now = Instant::now();
        let end = now + Duration::from_secs(60);
        assert_eq!(share(now, end, 3), now + Duration::from_secs(20));
        assert_eq!(share(now, end, 1), end);
        assert_eq!(share(end, now, 1), end, "the time is up");
    }

    #[test]
    fn a_job_that_is_to_end_waits_less() {
        let hour = Duration::from_secs(3600);
        let mut deadline = Deadline::new(hour, Some((|| true, Duration::from_secs(10))));
        let left = deadline.left();
        assert!(left <= Duration::from_secs(10) && !left.is_zero());
        let last = deadline.last;
        deadline.begin_step();
        assert!(deadline.left() <= Duration::from_secs(10) && deadline.last == last);
        assert!(deadline.within().contains("10 s after the job was asked to end"));
        let mut shorter = Deadline::new(Duration::from_secs(1), Some((|| true, Duration::from_secs(10))));
        assert!(shorter.left() <= Duration::from_secs(1) && shorter.within().contains("within 1 s"));
        let mut patient = Deadline::new(hour, Some((|| false, Duration::from_secs(10))));
        assert!(patient.left() > Duration::from_secs(10) && patient.left_after_the_end().is_none());
    }
}
