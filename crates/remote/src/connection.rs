//! Connections to agents, and listeners for them: Unix sockets, and TCP.

use crate::address::{Address, PORT};
use crate::greeting::{self, Stranger};
use crate::keys::{Keys, Role};
use crate::stream::{IntakeLimit, Stream};
use crate::tls::Encrypted;
use crate::user;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection. Its clones are handles of the same connection: one thread may read while another one writes.
#[derive(Clone, Debug)]
pub(crate) enum Connection {
    /// Unencrypted: local sockets of this user, ssh, or `--insecure`.
    Plain(Arc<Stream>),
    /// With keys at both ends.
    Tls(Arc<Encrypted>),
}

impl Connection {
    /// Connects to an agent.
    ///
    /// # Errors
    /// There is no listener, or the socket belongs to another user.
    fn to(address: &Address, patience: Duration) -> io::Result<Connection> {
        match address {
            Address::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                check_peer(&stream)?;
                Connection::over(Stream::over_socket(stream))
            }
            Address::Ssh(_) => Err(io::Error::other("ssh starts the agent there (see ssh.rs)")),
            Address::Rank { places, .. } => {
                let mut last = io::Error::from(io::ErrorKind::NotFound);
                for place in places {
                    match Connection::to(place, patience) {
                        Ok(connection) => return Ok(connection),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Address::Port { .. } => {
                let mut last = io::Error::from(io::ErrorKind::NotFound);
                for place in resolve(address).map_err(unknown)? {
                    match TcpStream::connect_timeout(&place, patience) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Connection::over(Stream::over_socket(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Connects to an agent, and authenticates it by its keys if it is reached over TCP and keys are given. This, and
    /// the greeting after it, must be done within the patience.
    ///
    /// # Errors
    /// There is no agent, it is the wrong agent, or the keys of one end are refused.
    pub fn reach(address: &Address, keys: Option<&Keys>, patience: Duration) -> Result<Connection, String> {
        let connection = Connection::to(address, patience).map_err(|error| not_reached(address, &error))?;
        connection.set_deadline(Some(Instant::now() + patience));
        let protected = match (keys, address.is_protected()) {
            (Some(keys), false) => connection.protect(keys),
            _ => Ok(connection.clone()),
        };
        protected.map_err(|why| connection.part_with(&why))?.greeted()
    }

    /// Sends the greeting and receives the other end's.
    ///
    /// # Errors
    /// The other end is not an Iolite with this protocol.
    pub fn greeted(mut self) -> Result<Connection, String> {
        let greeted = greeting::send(&mut self).and_then(|()| greeting::receive(&mut self));
        greeted.map_err(|why| self.part_with(&why))?;
        Ok(self)
    }

    /// The connection with TLS, as coordinator or as agent, depending on the keys.
    pub fn protect(&self, keys: &Keys) -> Result<Connection, Stranger> {
        let Connection::Plain(stream) = self else { return Ok(self.clone()) };
        let encrypted = match keys.role {
            Role::Agent => Encrypted::accept(stream.clone(), keys)?,
            _ => Encrypted::connect(stream.clone(), keys)?,
        };
        Ok(Connection::Tls(Arc::new(encrypted)))
    }

    /// Ends the connection after sending the reason to the other end. Returns the reason.
    fn part_with(&self, why: &Stranger) -> String {
        self.stream().part();
        why.to_string()
    }

    /// A connection over the stream of an agent that ssh has started.
    pub fn carried(stream: Arc<Stream>) -> Connection {
        Connection::Plain(stream)
    }

    /// A connection over a stream that needs no encryption.
    pub fn over(stream: io::Result<Stream>) -> io::Result<Connection> {
        Ok(Connection::Plain(Arc::new(stream?)))
    }

    fn stream(&self) -> &Stream {
        match self {
            Connection::Plain(stream) => stream,
            Connection::Tls(encrypted) => encrypted.stream(),
        }
    }

    /// Ends it when the other end has read the last message, or has had time for that: closing a connection with unread
    /// data would lose data on its way.
    pub fn part(&self) {
        self.stream().part();
    }

    /// The same, with this much time.
    pub fn part_within(&self, patience: Duration) {
        self.stream().part_within(patience);
    }

    /// Tells an Iolite why it is not served.
    pub fn refuse(&self, why: greeting::Refusal) {
        greeting::refuse(self.stream(), why);
    }

    /// Limits how much is read from here on.
    pub fn limit_intake(&self, limit: IntakeLimit) {
        self.stream().limit_intake(limit);
    }

    /// How long a read or a write may take.
    pub fn set_patience(&self, patience: Duration) {
        self.stream().set_patience(patience);
    }

    /// The deadline of reads and writes; `None` = no deadline.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.stream().set_deadline(deadline);
    }

    /// Ends it, for all handles.
    pub fn end(&self) {
        self.stream().end();
    }

    /// Waits until data can be read or the connection has ended. Returns whether there is anything to read.
    pub fn is_readable_within(&self, patience: Duration) -> bool {
        match self {
            Connection::Plain(stream) => stream.is_readable_within(patience),
            Connection::Tls(encrypted) => encrypted.is_readable_within(patience),
        }
    }

    /// Whether a write would not wait.
    pub fn is_writable(&self) -> bool {
        self.stream().is_writable()
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Plain(stream) => stream.read(bytes),
            Connection::Tls(encrypted) => encrypted.read(bytes),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Connection::Plain(stream) => stream.write(bytes),
            Connection::Tls(encrypted) => encrypted.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why an agent cannot be reached, and the remedy.
fn not_reached(address: &Address, error: &io::Error) -> String {
    let words = error.to_string();
    match (address, error.kind()) {
        (Address::Socket(path), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            format!("{words}: no server listens there (iolite --server=sock:{})", path.display())
        }
        (Address::Port { host, port, six }, io::ErrorKind::ConnectionRefused) => {
            // A server without this prefix listens on version 4 only.
            let prefix = if *six == Some(true) || host.contains(':') { "ip6:" } else { "" };
            format!("{words}: no server listens on port {port} there (iolite --server={prefix},{port})")
        }
        (Address::Port { .. }, io::ErrorKind::TimedOut) => {
            format!(
                "{words}: the machine does not answer; it may be down, or a firewall keeps its port closed"
            )
        }
        _ => words,
    }
}

/// Checks that the other end belongs to this user or root.
fn check_peer(stream: &UnixStream) -> io::Result<()> {
    let peer = user::of_peer(stream)?;
    if peer == user::own() || peer == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "user {peer} is at the other end, not this one; run both ends as one user, or use TCP with keys"
        ),
    ))
}

/// The error of a client that does not find a host.
fn unknown(error: io::Error) -> io::Error {
    let text = error.to_string();
    let why = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
    let words = format!("the name cannot be resolved ({why}), and it is not a file with a list of hosts");
    io::Error::new(error.kind(), words)
}

fn resolve(address: &Address) -> io::Result<Vec<SocketAddr>> {
    let Address::Port { host, port, six } = address else { return Ok(Vec::new()) };
    let found = (host.as_str(), *port).to_socket_addrs()?;
    let fits = |place: &SocketAddr| six.is_none_or(|six| place.is_ipv6() == six);
    let fitting: Vec<SocketAddr> = found.filter(fits).collect();
    match fitting.is_empty() {
        true => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the host has no address of this kind; leave ip: or ip6: out",
        )),
        false => Ok(fitting),
    }
}

/// Accepts connections.
#[derive(Debug)]
pub(crate) enum Listener {
    Socket(UnixListener),
    Tcp(TcpListener),
}

/// As many connections may wait to be accepted as the system permits. The usual 128 are soon taken when many strangers
/// connect, and then the kernel drops what clients ask.
fn with_room(listener: TcpListener) -> io::Result<Listener> {
    rustix::net::listen(&listener, i32::MAX)?;
    Ok(Listener::Tcp(listener))
}

impl Listener {
    /// Listens at this address. A socket in the file system without a listener is replaced.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub fn at(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Socket(path) => {
                // If two servers find the same dead socket, the lock makes one of them check after the other has
                // created its own.
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let directory = File::open(directory.unwrap_or(Path::new(".")))?;
                user::lock(&directory).map_err(|error| match error.kind() {
                    io::ErrorKind::WouldBlock => io::Error::new(
                        error.kind(),
                        "another process holds a lock on the directory; name a file in a directory of your own",
                    ),
                    _ => error,
                })?;
                remove_dead(path)?;
                user::private_listener(path).map(Listener::Socket)
            }
            Address::Port { host, port, six } if host.is_empty() => {
                let any = if *six == Some(true) {
                    IpAddr::from([0_u16; 8])
                } else {
                    IpAddr::V4(Ipv4Addr::UNSPECIFIED)
                };
                with_room(TcpListener::bind((any, *port))?)
            }
            Address::Ssh(_) | Address::Rank { .. } => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a client that says this starts the server itself, over ssh; nothing is to be started here",
            )),
            Address::Port { .. } => with_room(TcpListener::bind(&resolve(address)?[..])?),
        }
    }

    /// The address at which it listens, for messages.
    pub fn place(&self, asked: &Address) -> String {
        match self {
            Listener::Socket(_) => asked.to_string(),
            Listener::Tcp(listener) => match listener.local_addr() {
                Ok(place) => format!("{},{}", place.ip(), place.port()),
                Err(_) => asked.to_string(),
            },
        }
    }

    /// Distinguishes this place from others of the same machine, in names of files: `-8766`, or `-10.0.0.7-8766` if only
    /// this address is listened at; empty for all addresses and the usual port.
    pub fn mark(&self) -> String {
        let Listener::Tcp(listener) = self else { return String::new() };
        match listener.local_addr() {
            Ok(place) if !place.ip().is_unspecified() => format!("-{}-{}", place.ip(), place.port()),
            Ok(place) if place.port() != PORT => format!("-{}", place.port()),
            _ => String::new(),
        }
    }

    /// Waits at most this long for a connection. Returns whether there is one.
    pub fn is_ready_within(&self, patience: Duration) -> bool {
        let descriptor = match self {
            Listener::Socket(listener) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        };
        user::is_readable_within(descriptor, patience)
    }

    /// Accepts the next connection. Returns its peer, too.
    pub fn accept(&self) -> io::Result<(Connection, Peer)> {
        match self {
            Listener::Socket(listener) => {
                let (stream, _) = listener.accept()?;
                check_peer(&stream)?;
                Ok((Connection::over(Stream::over_socket(stream))?, Peer::Here))
            }
            Listener::Tcp(listener) => {
                let (stream, place) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok((Connection::over(Stream::over_socket(stream))?, Peer::At(place)))
            }
        }
    }
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// This user, on this machine.
    Here,
    /// The process that started this one.
    Starter,
    /// A client at this address.
    At(SocketAddr),
}

impl Peer {
    /// Its address; `None` = it is on this machine.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Peer::At(place) => Some(place.ip().to_canonical()),
            Peer::Here | Peer::Starter => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Here => f.write_str("this machine"),
            Peer::Starter => f.write_str("standard input"),
            Peer::At(place) => write!(f, "{}", place.ip()),
        }
    }
}

/// Removes a socket without a listener, which a killed agent has left.
fn remove_dead(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file that is not a socket; give another path",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "a server listens there; end it, or give another path",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_is_a_server_that_the_client_reaches() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        for (client, server) in [
            (",9", ",9"),
            ("ip:one,9", ",9"),
            ("one,9", ",9"),
            ("ip6:,9", "ip6:,9"),
            ("ip6:one,9", "ip6:,9"),
            ("::1,9", "ip6:,9"),
        ] {
            let words = not_reached(&Address::parse(client).unwrap().to_reach(), &refused);
            assert!(words.ends_with(&format!("(iolite --server={server})")), "{client}: {words}");
        }
    }
}
