//! `rdma`: moves blocks between the memory of two jobs, over InfiniBand, RoCE or iWARP.
//!
//! The server is the job with `rw=read`, which waits for a connection. The client is the job with `rw=write`: it
//! connects and chooses the `verb`. With `write` and `read` it accesses the memory of the server, which only waits
//! for the end; with `send` and `recv` one end sends and the other receives. Each unit is one work request. The job's
//! depth limits how many are in flight.
//!
//! | file | content |
//! |---|---|
//! | `abi.rs`, `library.rs` | the data structures of libibverbs and librdmacm, and how the libraries are opened |
//! | `connection.rs`, `greeting.rs` | setting up a connection, the data exchanged with it, and closing it |
//! | `traffic.rs` | requests and their completions |
//! | `words.rs` | error messages |

mod abi;
mod connection;
mod greeting;
mod library;
mod traffic;
mod words;

use crate::driven_by_worker::DrivenByWorker;
use connection::{Connection, Memory, Own, SLICE};
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Unit,
};
use iolite_options::engines::{RdmaOptions, Verb};
use iolite_os::explained;
use iolite_types::Operation;
use library::Library;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;
use traffic::{Role, Traffic};

/// The maximum message size in bytes.
const LARGEST: usize = 1 << 30;

/// One end of a connection.
pub struct RdmaEngine {
    options: RdmaOptions,
    library: &'static Library,
    depth: usize,
    /// The size of every block in bytes; 0 = sizes differ.
    block: u64,
    /// Received data will be verified.
    verifies: bool,
    /// This end is the server.
    serves: bool,
    memory: Option<Memory>,
    waiting: Option<Connection>,
    traffic: Option<Traffic>,
}

impl RdmaEngine {
    /// Creates an unconnected end.
    ///
    /// # Errors
    /// The libraries are not installed, or there is no RDMA device.
    pub fn new(config: &EngineConfig, options: &RdmaOptions) -> Result<Self, EngineError> {
        let library = Library::load()?;
        if let Some((errno, why)) =
            no_device(Path::new("/sys/class/infiniband"), Path::new("/dev/infiniband/rdma_cm"))
        {
            return Err(EngineError::Remote { engine: "rdma", errno, why });
        }
        Ok(RdmaEngine {
            options: options.clone(),
            library,
            depth: config.depth,
            block: config.block,
            verifies: config.keeps_writes,
            serves: false,
            memory: None,
            waiting: None,
            traffic: None,
        })
    }

    /// The address of the connection, for messages.
    fn place(&self) -> String {
        let RdmaOptions { hostname, bindname, port, .. } = &self.options;
        let name = if self.serves { bindname } else { hostname };
        if name.is_empty() { format!("rdma port {port}") } else { format!("rdma {name} port {port}") }
    }

    /// Prefixes an error with the address.
    fn named(&self, error: &io::Error) -> io::Error {
        let what = if self.serves { "waiting at" } else { "connecting to" };
        let why = iolite_types::describe_error(error);
        explained(error, format!("{what} {}: {why}", self.place()))
    }

    fn listen(&mut self) -> io::Result<()> {
        let here = match self.options.bindname.as_str() {
            "" => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.options.port as u16),
            name => addresses("bindname", name, self.options.port)?[0],
        };
        let mut connection = Connection::new(self.library, self.place())?;
        connection.listen(here)?;
        self.waiting = Some(connection);
        Ok(())
    }

    fn own(&self) -> io::Result<Own> {
        let memory = self.memory.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let Self { depth, block, verifies, .. } = *self;
        Ok(Own { verb: self.options.verb, block, depth, memory, verifies: verifies && self.serves })
    }

    fn connect(&self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<Connection> {
        let own = self.own()?;
        let from = match self.options.bindname.as_str() {
            "" => Vec::new(),
            name => addresses("bindname", name, 0)?,
        };
        let mut last = io::Error::from_raw_os_error(libc::EADDRNOTAVAIL);
        for there in addresses("hostname", &self.options.hostname, self.options.port)? {
            let from = from.iter().find(|from| from.is_ipv6() == there.is_ipv6()).copied();
            if from.is_none() && !self.options.bindname.is_empty() {
                continue;
            }
            let mut connection = Connection::new(self.library, self.place())?;
            match connection.connect(&own, there, from, goes_on) {
                Ok(()) => return Ok(connection),
                Err(error) => {
                    goes_on()?;
                    last = error;
                }
            }
        }
        Err(last)
    }

    fn await_client(&mut self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<Connection> {
        let own = self.own()?;
        let Some(mut connection) = self.waiting.take() else {
            return Err(io::Error::from_raw_os_error(libc::ENOTCONN));
        };
        connection.accept(&own, goes_on)?;
        Ok(connection)
    }
}

/// The error number and the remedy if this machine cannot use RDMA.
fn no_device(devices: &Path, manager: &Path) -> Option<(i32, String)> {
    let any = std::fs::read_dir(devices).is_ok_and(|mut found| found.next().is_some());
    if !any {
        let why = "this machine has no RDMA device ('rdma link' lists them); over any network card, \
                   'modprobe rdma_rxe' and 'rdma link add rxe0 type rxe netdev CARD' create one (soft-RoCE)";
        return Some((libc::ENODEV, why.to_owned()));
    }
    (!manager.exists()).then(|| {
        let why = format!("{} does not exist; 'modprobe rdma_ucm' creates it", manager.display());
        (libc::ENODEV, why)
    })
}

/// The addresses of a name; there is at least one.
fn addresses(option: &str, name: &str, port: u32) -> io::Result<Vec<SocketAddr>> {
    let invalid = |why: String| {
        explained(&io::Error::from_raw_os_error(libc::EINVAL), format!("{option}={name}: {why}"))
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port as u16)]);
    }
    let found = (name, port as u16).to_socket_addrs();
    let found: Vec<SocketAddr> =
        found.map_err(|error| invalid(iolite_types::describe_error(&error)))?.collect();
    if found.is_empty() { Err(invalid("it has no address".to_owned())) } else { Ok(found) }
}

/// The role of an end.
fn role(verb: Verb, serves: bool) -> Role {
    match (verb, serves) {
        (Verb::Write | Verb::Read, true) => Role::Lends,
        (Verb::Write, false) => Role::Writes,
        (Verb::Read, false) => Role::Reads,
        (Verb::Send, false) | (Verb::Receive, true) => Role::Sends,
        (Verb::Receive, false) | (Verb::Send, true) => Role::Receives,
    }
}

impl Engine for RdmaEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, _: u32, _: &FileSpec, mode: OpenMode) -> io::Result<()> {
        self.serves = !mode.write;
        if self.serves { self.listen().map_err(|error| self.named(&error)) } else { Ok(()) }
    }

    fn close(&mut self, _: u32) -> io::Result<()> {
        if let Some(mut traffic) = self.traffic.take() {
            traffic.part();
        }
        self.waiting = None;
        Ok(())
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        if layout.stride > LARGEST {
            let why = format!("bs={}: a block has at most {LARGEST} bytes", layout.stride);
            return Err(EngineError::Remote { engine: "rdma", errno: libc::EINVAL, why });
        }
        self.memory = Some(Memory { start: layout.start, stride: layout.stride, count: layout.count });
        Ok(())
    }

    fn announcements(&self) -> Vec<String> {
        let waits = self.waiting.is_some();
        if waits { vec!["fio: waiting for connection".to_owned()] } else { Vec::new() }
    }

    fn meet(&mut self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let met = if self.serves { self.await_client(goes_on) } else { self.connect(goes_on) };
        let connection = met.map_err(|error| self.named(&error))?;
        let verb = if self.serves { connection.far.verb } else { self.options.verb };
        self.traffic = Some(Traffic::new(connection, role(verb, self.serves), self.depth));
        Ok(())
    }

    fn explain(&self, _: u32) -> Option<String> {
        self.traffic.as_ref()?.failure().map(|(_, words)| words.to_owned())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let Some(traffic) = &mut self.traffic else {
            return Queued::Completed(Err(Errno(libc::ENOTCONN)));
        };
        if !matches!(unit.operation, Operation::Read | Operation::Write) {
            return Queued::Completed(Err(Errno(libc::EINVAL)));
        }
        if traffic.role == Role::Lends && traffic.failure().is_none() && !traffic.has_all() {
            // The worker handles signals between calls, so each wait is short.
            let _ = traffic.drive(Some(SLICE));
        }
        if let Some((errno, _)) = traffic.failure() {
            return Queued::Completed(Err(errno));
        }
        match traffic.has_all() {
            true if traffic.outstanding() == 0 => return Queued::Over,
            true => return Queued::Busy,
            false if traffic.role == Role::Lends => return Queued::Busy,
            false => {}
        }
        traffic.stage(unit);
        Queued::Queued
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        if let Some(traffic) = &mut self.traffic {
            traffic.hand_over();
        }
        Ok(0)
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        if let Some(traffic) = &mut self.traffic {
            traffic.drive_until(min, max, timeout);
            done.extend(traffic.take(max).map(|(unit, outcome)| Completion { unit, outcome }));
        }
        Ok(())
    }

    fn stop_repeating(&mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        if let Some(traffic) = &mut self.traffic {
            traffic.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roles_of_client_and_server_match() {
        for verb in Verb::ALL {
            let (client, server) = (role(verb, false), role(verb, true));
            let expected = match client {
                Role::Writes | Role::Reads => Role::Lends,
                Role::Sends => Role::Receives,
                Role::Receives => Role::Sends,
                Role::Lends => panic!("a client lends nothing"),
            };
            assert_eq!(server, expected, "{verb:?}");
        }
    }

    #[test]
    fn missing_devices_are_reported_with_a_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let (devices, manager) = (directory.path().join("infiniband"), directory.path().join("rdma_cm"));
        let (errno, why) = no_device(&devices, &manager).unwrap();
        assert_eq!(errno, libc::ENODEV);
        assert!(why.contains("rdma link add rxe0"), "{why}");
        std::fs::create_dir(&devices).unwrap();
        assert!(no_device(&devices, &manager).is_some(), "a driver without a device");
        std::fs::create_dir(devices.join("rxe0")).unwrap();
        assert!(no_device(&devices, &manager).unwrap().1.contains("modprobe rdma_ucm"));
        std::fs::write(&manager, "").unwrap();
        assert_eq!(no_device(&devices, &manager), None);
    }

    #[test]
    fn names_without_an_address_name_the_option() {
        assert_eq!(addresses("hostname", "::1", 7).unwrap(), ["[::1]:7".parse().unwrap()]);
        let error = addresses("hostname", "no such host", 7).unwrap_err();
        assert!(error.to_string().starts_with("hostname=no such host: "), "{error}");
    }
}
