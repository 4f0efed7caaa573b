//! Where the connections of a client come from.

use crate::error::check;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// An address or an interface of this machine, from which sockets connect (`bind`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEnd {
    /// This address.
    Address(IpAddr),
    /// Whatever address this interface has.
    Interface(CString),
}

impl fmt::Display for LocalEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocalEnd::Address(address) => address.fmt(f),
            LocalEnd::Interface(name) => name.to_string_lossy().fmt(f),
        }
    }
}

impl LocalEnd {
    /// The address or the interface with this name, if the machine has it.
    ///
    /// # Errors
    /// It does not, or the user may not choose it. The error says so, beginning with the name.
    pub fn of_machine(name: &str) -> Result<LocalEnd, String> {
        let source = match name.trim_matches(['[', ']']).parse() {
            Ok(address) => LocalEnd::Address(address),
            Err(_) => LocalEnd::Interface(
                CString::new(name).map_err(|_| format!("{name:?}: there is a zero byte in this name"))?,
            ),
        };
        let family = match source {
            LocalEnd::Address(IpAddr::V6(_)) => libc::AF_INET6,
            _ => libc::AF_INET,
        };
        // SAFETY: takes nothing but integers.
        let socket = check(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) });
        // SAFETY: it was opened just now, and nothing else owns it.
        let tried = socket.and_then(|socket| source.bind(&unsafe { OwnedFd::from_raw_fd(socket) }));
        let Err(error) = tried else { return Ok(source) };
        let why = match (error.raw_os_error(), &source) {
            (Some(libc::EADDRNOTAVAIL), _) => {
                "this machine has no such address (ip address shows those that it has)".to_owned()
            }
            (Some(libc::ENODEV), _) => {
                "this machine has neither such an address nor such an interface (ip address shows those that it has)"
                    .to_owned()
            }
            _ => error.to_string(),
        };
        Err(format!("{source}: {why}"))
    }

    /// Whether connections to this address can come from here: both are of the same version of IP.
    pub fn reaches(&self, address: IpAddr) -> bool {
        match self {
            LocalEnd::Address(own) => own.is_ipv4() == address.is_ipv4(),
            LocalEnd::Interface(_) => true,
        }
    }

    /// Connects to an address from here, and waits for that as long as the system does, or for this time.
    ///
    /// # Errors
    /// The connection is refused, or cannot come from here.
    pub fn connect(&self, to: SocketAddr, limit: Option<Duration>) -> io::Result<TcpStream> {
        let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: takes nothing but integers.
        let socket = check(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: it was opened just now, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        self.bind(&socket)?;
        let stream = TcpStream::from(socket);
        // On Linux, the limit of sending is also that of connecting.
        stream.set_write_timeout(limit)?;
        let connected = with_raw(to, |raw, length| {
            // SAFETY: the address has this length, and outlives the call.
            unsafe { libc::connect(stream.as_raw_fd(), raw, length) }
        });
        match connected {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {
                return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
            }
            other => other?,
        };
        stream.set_write_timeout(None)?;
        Ok(stream)
    }

    /// Makes the connection of a socket, which has none yet, come from here.
    ///
    /// # Errors
    /// The machine does not have the address or the interface (any more).
    pub fn bind(&self, socket: &impl AsRawFd) -> io::Result<()> {
        let socket = socket.as_raw_fd();
        let set = |level, option, value: *const libc::c_void, length: usize| {
            // SAFETY: the caller's value has this length, and outlives the call.
            check(unsafe { libc::setsockopt(socket, level, option, value, length as libc::socklen_t) })
        };
        let address = match self {
            LocalEnd::Interface(name) => {
                let bytes = name.as_bytes();
                return set(libc::SOL_SOCKET, libc::SO_BINDTODEVICE, bytes.as_ptr().cast(), bytes.len())
                    .map(drop);
            }
            LocalEnd::Address(address) => address,
        };
        // The port is chosen when the socket connects: one port may then have connections to several servers. (A hint.)
        let on: libc::c_int = 1;
        let _ =
            set(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, (&raw const on).cast(), size_of_val(&on));
        with_raw(SocketAddr::new(*address, 0), |raw, length| {
            // SAFETY: the address has this length, and outlives the call.
            unsafe { libc::bind(socket, raw, length) }
        })
    }
}

/// Acts with an address as system calls have it.
///
/// # Errors
/// That of the system call.
pub fn with_raw(
    address: SocketAddr,
    act: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> libc::c_int,
) -> io::Result<()> {
    let done = match address {
        SocketAddr::V4(address) => {
            // SAFETY: the structure is plain data, valid as zeros.
            let mut raw: libc::sockaddr_in = unsafe { std::mem::zeroed() };
            raw.sin_family = libc::AF_INET as libc::sa_family_t;
            raw.sin_port = address.port().to_be();
            raw.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
            act((&raw const raw).cast(), size_of_val(&raw) as libc::socklen_t)
        }
        SocketAddr::V6(address) => {
            // SAFETY: the structure is plain data, valid as zeros.
            let mut raw: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
            raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            raw.sin6_port = address.port().to_be();
            raw.sin6_addr.s6_addr = address.ip().octets();
            raw.sin6_scope_id = address.scope_id();
            act((&raw const raw).cast(), size_of_val(&raw) as libc::socklen_t)
        }
    };
    check(done).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn connections_come_from_the_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for (name, from) in [("127.0.0.7", "127.0.0.7"), ("lo", "127.0.0.1")] {
            let source = LocalEnd::of_machine(name).unwrap();
            let there = listener.local_addr().unwrap();
            assert!(source.reaches(there.ip()));
            let stream = source.connect(there, None).unwrap();
            assert_eq!(listener.accept().unwrap().1, stream.local_addr().unwrap());
            assert_eq!(stream.local_addr().unwrap().ip().to_string(), from);
        }
    }

    #[test]
    fn what_the_machine_lacks_is_named() {
        for (name, why) in [
            ("192.0.2.77", "192.0.2.77: this machine has no such address"),
            ("none9", "none9: this machine has neither"),
        ] {
            assert!(LocalEnd::of_machine(name).unwrap_err().starts_with(why));
        }
    }
}
