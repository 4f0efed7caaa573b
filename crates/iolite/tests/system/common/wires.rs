//! Networks between the machines of a test: separate namespaces joined by cables that can be pulled, and proxies that
//! delay, stall, cut and damage traffic.

use iolite_testing::Luck;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A network namespace of the test. It ends with this value, and with the test at the latest.
pub struct Namespace(File);

/// Puts the calling thread into this network.
fn enter(network: RawFd) -> io::Result<()> {
    // SAFETY: a plain system call that affects only this thread.
    match unsafe { libc::setns(network, libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Namespace {
    /// Creates an empty network.
    ///
    /// # Errors
    /// This user may not create one, or the machine does not support it.
    pub fn new() -> io::Result<Namespace> {
        // The namespace would end with the thread that created it, but a descriptor keeps it.
        let made = thread::spawn(|| {
            // SAFETY: a plain system call that affects only this thread.
            match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
                0 => File::open("/proc/thread-self/ns/net"),
                _ => Err(io::Error::last_os_error()),
            }
        });
        made.join().expect("it does not panic").map(Namespace)
    }

    /// Makes a program start in this network, which has to exist until then.
    pub fn enter(&self, command: &mut Command) {
        let network = self.0.as_raw_fd();
        // SAFETY: only a system call is made between fork and exec.
        unsafe { command.pre_exec(move || enter(network)) };
    }

    /// Runs commands of ip(8), one per line.
    fn ip(&self, commands: &str) -> io::Result<()> {
        let mut command = Command::new("ip");
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.enter(&mut command);
        let mut running = command.spawn()?;
        running.stdin.take().expect("it is piped").write_all(commands.as_bytes())?;
        let finished = running.wait_with_output()?;
        match finished.status.success() {
            true => Ok(()),
            false => Err(io::Error::other(String::from_utf8_lossy(&finished.stderr).trim().to_owned())),
        }
    }

    /// The namespace's path for ip(8).
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// Machines in separate networks, and a switch between them, which is a machine as well.
pub struct Network {
    pub switch: Namespace,
    pub machines: Vec<Namespace>,
}

impl Network {
    /// Creates networks for this many machines.
    ///
    /// # Errors
    /// This user may not create them, or the machine does not support it.
    pub fn new(machines: usize) -> io::Result<Network> {
        let network = Network {
            switch: Namespace::new()?,
            machines: (0..machines).map(|_| Namespace::new()).collect::<io::Result<_>>()?,
        };
        let mut commands = format!(
            "link set lo up\nlink add name switch type bridge\nlink set switch up\naddr add {}/24 dev switch\n",
            Network::MIDDLE
        );
        for (number, machine) in network.machines.iter().enumerate() {
            let path = machine.path();
            commands += &format!("link add name port{number} type veth peer name cable netns {path}\n");
            commands += &format!("link set port{number} master switch\nlink set port{number} up\n");
        }
        network.switch.ip(&commands)?;
        for (number, machine) in network.machines.iter().enumerate() {
            let address = network.address(number);
            machine.ip(&format!("link set lo up\naddr add {address}/24 dev cable\nlink set cable up\n"))?;
        }
        Ok(network)
    }

    /// The address of the machine at the switch.
    pub const MIDDLE: &str = "10.77.0.254";

    /// The address of a machine.
    pub fn address(&self, machine: usize) -> String {
        format!("10.77.0.{}", machine + 1)
    }

    /// Pulls the cable of a machine, or plugs it in again.
    pub fn connect(&self, machine: usize, is_connected: bool) {
        let state = if is_connected { "up" } else { "down" };
        self.switch.ip(&format!("link set port{machine} {state}\n")).expect("it is there");
    }
}

/// One end of a connection.
enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Wire {
    fn again(&self) -> Wire {
        match self {
            Wire::Tcp(stream) => Wire::Tcp(stream.try_clone().expect("there are descriptors")),
            Wire::Unix(stream) => Wire::Unix(stream.try_clone().expect("there are descriptors")),
        }
    }

    /// Closes a direction. The connection may have ended already.
    fn shut(&self, how: Shutdown) {
        let _ = match self {
            Wire::Tcp(stream) => stream.shutdown(how),
            Wire::Unix(stream) => stream.shutdown(how),
        };
    }
}

impl Read for Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Tcp(stream) => stream.read(bytes),
            Wire::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Tcp(stream) => stream.write(bytes),
            Wire::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The action of a proxy on its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Ends the connection, in both directions.
    Cut,
    /// Forwards nothing any more, not even the end of a connection.
    Stall,
    /// Forwards some bytes twice.
    Repeat,
    /// Flips a bit.
    Flip,
}

impl Fault {
    /// Faults that every connection has to cope with.
    pub const OF_ANY: [Fault; 2] = [Fault::Cut, Fault::Stall];
    /// Faults that protected connections have to detect as well.
    pub const OF_PROTECTED: [Fault; 4] = [Fault::Cut, Fault::Stall, Fault::Repeat, Fault::Flip];
}

/// The direction of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Agent,
    Client,
}

/// A planned fault.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub fault: Fault,
    /// The direction in which bytes are counted, repeated or changed.
    pub to: To,
    /// The number of bytes before the fault.
    pub after: u64,
}

impl Plan {
    /// Draws one of these faults and a position within a connection's first 16 KiB. All magnitudes of the position are
    /// equally likely.
    pub fn draw(luck: &mut Luck, faults: &[Fault]) -> Plan {
        let fault = faults[luck.below(faults.len() as u64) as usize];
        let to = [To::Agent, To::Client][luck.below(2) as usize];
        let most = 1 << (5 + luck.below(10));
        Plan { fault, to, after: luck.below(most) }
    }
}

/// A proxy between a client and an agent.
pub struct Proxy {
    /// The address for the option `--client=`.
    pub address: String,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    plan: Mutex<Option<Plan>>,
    delay_ms: AtomicU64,
    is_stalled: AtomicBool,
    /// The planned fault has happened.
    has_come: AtomicBool,
    has_ended: AtomicBool,
    wires: Mutex<Vec<Wire>>,
    /// The bytes from a client up to the end of its first connection.
    heard: Mutex<Vec<u8>>,
    connections: AtomicU64,
}

/// The socket at which a proxy waits for clients.
enum Door {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Door {
    fn next(&self) -> io::Result<Wire> {
        match self {
            Door::Tcp(listener) => listener.accept().map(|(stream, _)| Wire::Tcp(stream)),
            Door::Unix(listener) => listener.accept().map(|(stream, _)| Wire::Unix(stream)),
        }
    }
}

impl Proxy {
    /// A TCP proxy on this machine to the address that an agent has printed (`127.0.0.1,PORT`).
    pub fn on_port(agent: &str) -> Proxy {
        let agent = agent.replace(',', ":");
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
        let address = listener.local_addr().expect("it has one").to_string().replace(':', ",");
        Proxy::start(address, Door::Tcp(listener), move || TcpStream::connect(&agent).map(Wire::Tcp))
    }

    /// A proxy on a new Unix socket `path` to the socket of an agent.
    pub fn on_socket(path: &Path, agent: PathBuf) -> Proxy {
        let listener = UnixListener::bind(path).expect("a socket can be created");
        let address = format!("sock:{}", path.display());
        Proxy::start(address, Door::Unix(listener), move || UnixStream::connect(&agent).map(Wire::Unix))
    }

    /// Applies this fault to the traffic.
    pub fn plan(&self, plan: Plan) {
        *self.faults.plan.lock().expect("nobody panics") = Some(plan);
    }

    /// Delays all traffic by this time, in both directions.
    pub fn delay(&self, ms: u64) {
        self.faults.delay_ms.store(ms, SeqCst);
    }

    /// Forwards nothing from now on.
    pub fn stall(&self) {
        self.faults.is_stalled.store(true, SeqCst);
    }

    /// Whether the planned fault has happened.
    pub fn has_come(&self) -> bool {
        self.faults.has_come.load(SeqCst)
    }

    /// The bytes from the first client so far.
    pub fn heard(&self) -> Vec<u8> {
        self.faults.heard.lock().expect("nobody panics").clone()
    }

    fn start(address: String, door: Door, connect: impl Fn() -> io::Result<Wire> + Send + 'static) -> Proxy {
        let faults = Arc::new(Faults::default());
        let shared = faults.clone();
        // This thread accepts connections. If it is blocked, it ends with the test process.
        thread::spawn(move || {
            while let Ok(client) = door.next() {
                let Ok(agent) = connect() else { continue };
                if let Wire::Tcp(one) = &client
                    && let Wire::Tcp(other) = &agent
                {
                    let _ = one.set_nodelay(true).and_then(|()| other.set_nodelay(true));
                }
                let number = shared.connections.fetch_add(1, SeqCst);
                shared.wires.lock().expect("nobody panics").extend([client.again(), agent.again()]);
                for (from, into, to) in
                    [(client.again(), agent.again(), To::Agent), (agent.again(), client.again(), To::Client)]
                {
                    let faults = shared.clone();
                    thread::spawn(move || faults.pass(from, into, to, number));
                }
            }
        });
        Proxy { address, faults }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.faults.has_ended.store(true, SeqCst);
        self.faults.cut();
    }
}

impl Faults {
    fn cut(&self) {
        self.wires.lock().expect("nobody panics").drain(..).for_each(|wire| wire.shut(Shutdown::Both));
    }

    /// Waits while the proxy is stalled. Returns whether the proxy still exists.
    fn wait(&self) -> bool {
        while self.is_stalled.load(SeqCst) && !self.has_ended.load(SeqCst) {
            thread::sleep(Duration::from_millis(2));
        }
        !self.has_ended.load(SeqCst)
    }

    /// The fault that comes within these bytes of this direction, and its offset in them; `None` = no fault is due.
    fn due(&self, to: To, passed: u64, count: usize) -> Option<(Fault, usize)> {
        let mut plan = self.plan.lock().expect("nobody panics");
        let due = plan.filter(|plan| plan.to == to && plan.after < passed + count as u64)?;
        *plan = None;
        self.has_come.store(true, SeqCst);
        Some((due.fault, due.after.saturating_sub(passed) as usize))
    }

    /// Forwards data from one side until it closes.
    fn pass(&self, mut from: Wire, mut into: Wire, to: To, number: u64) {
        let mut bytes = vec![0; 16 << 10];
        let mut passed = 0;
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            thread::sleep(Duration::from_millis(self.delay_ms.load(SeqCst)));
            let piece = &mut bytes[..count];
            let mut written = Ok(());
            let mut at = 0;
            if let Some((fault, place)) = self.due(to, passed, count) {
                match fault {
                    Fault::Cut => {
                        let _ = into.write_all(&piece[..place]);
                        return self.cut();
                    }
                    Fault::Stall => {
                        written = into.write_all(&piece[..place]);
                        at = place;
                        self.is_stalled.store(true, SeqCst);
                    }
                    Fault::Repeat => written = into.write_all(piece),
                    Fault::Flip => piece[place] ^= 1,
                }
            }
            if !self.wait() {
                return;
            }
            if number == 0 && to == To::Agent {
                self.heard.lock().expect("nobody panics").extend_from_slice(piece);
            }
            if written.and_then(|()| into.write_all(&piece[at..])).is_err() {
                break;
            }
            passed += count as u64;
        }
        if self.wait() {
            into.shut(Shutdown::Write);
        }
    }
}
