//! An NFS server for tests: nfs-ganesha in separate namespaces, where its port mapper can use the standard port.
//! Clients reach it through relays on ports of this machine. It needs root.

use crate::ceph::keeper;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest time that a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// The addresses at which it listens in its namespace.
const NFS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 12049);
const MOUNT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 12050);

/// An NFS server of versions 3 and 4.
pub struct Ganesha {
    /// The port mapper. The server runs in its namespaces.
    mapper: Child,
    server: Option<Child>,
    /// When it was last started, in seconds since 1970.
    started: u64,
    directory: PathBuf,
    nfs: Relay,
    mount: Relay,
    /// The version in its URL.
    version: u32,
    export: PathBuf,
    /// The seconds after which it forgets a silent client of version 4; 0 = the usual time.
    lease: u32,
    /// After a restart, it first waits for its earlier clients of version 4.
    has_grace: bool,
}

impl Ganesha {
    /// Starts a server with its files in `directory`.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    ///
    /// # Panics
    /// When it is installed but does not start.
    pub fn start(directory: &Path) -> Result<Ganesha, String> {
        Ganesha::of_version(3, directory)
    }

    /// Starts a server for clients of this version, 3 or 4.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    ///
    /// # Panics
    /// When it is installed but does not start.
    pub fn of_version(version: u32, directory: &Path) -> Result<Ganesha, String> {
        Ganesha::with_room(version, directory, None)
    }

    /// Starts a server whose export has room for so many bytes; `None` = for as much as `directory`.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    ///
    /// # Panics
    /// When it is installed but does not start.
    pub fn with_room(version: u32, directory: &Path, room: Option<u64>) -> Result<Ganesha, String> {
        // SAFETY: takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err("only root can make name spaces for an NFS server".to_owned());
        }
        for (program, package) in [("ganesha.nfsd", "nfs-ganesha nfs-ganesha-vfs"), ("rpcbind", "rpcbind")] {
            let installed = ["/usr/bin", "/usr/sbin", "/sbin", "/bin"].iter();
            if !installed.into_iter().any(|place| Path::new(place).join(program).exists()) {
                return Err(format!(
                    "{program} is not installed ({package}, which scripts/test --everything installs)"
                ));
            }
        }
        let directory = directory.join("nfs");
        let mut export = directory.join("export");
        fs::create_dir_all(&export).map_err(|error| error.to_string())?;
        let small = room.map(|room| format!("mount -t tmpfs -o size={room} none {} && ", export.display()));
        let script = small.unwrap_or_default()
            + "mount -t tmpfs none /run && mount -t tmpfs none /var/lib/nfs && ip link set lo up && { rpcbind -f & wait; }";
        // The mapper changes its user, which clears its parent-death signal. So it gets a process namespace: all
        // processes there die with the first one.
        let mut command = Command::new("unshare");
        command.args(["-m", "-n", "-p", "-f", "--kill-child", "sh", "-c", &script]);
        let mut mapper = spawn(command)?;
        let end = Instant::now() + PATIENCE;
        while connect_in(mapper.id(), ([127, 0, 0, 1], 111).into()).is_err() {
            if let Ok(Some(status)) = mapper.try_wait() {
                return Err(format!("name spaces for an NFS server are not to be had: {status}"));
            }
            assert!(Instant::now() < end, "the port mapper does not serve");
            thread::sleep(Duration::from_millis(20));
        }
        let relay = |to| Relay::start(mapper.id(), to);
        let (nfs, mount) = (relay(NFS), relay(MOUNT));
        if room.is_some() {
            // Its file system is only in its namespace.
            let inside = export.strip_prefix("/").map_err(|error| error.to_string())?;
            export = Path::new("/proc").join(mapper.id().to_string()).join("root").join(inside);
        }
        let (server, lease, has_grace) = (None, 0, false);
        let mut ganesha =
            Ganesha { mapper, server, started: 0, directory, nfs, mount, version, export, lease, has_grace };
        ganesha.restart()?;
        Ok(ganesha)
    }

    /// Restarts it with the same files.
    ///
    /// # Errors
    /// It does not start.
    ///
    /// # Panics
    /// It does not answer.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill();
        // Its write verifier is the second in which it starts: clients would not notice a restart within that second.
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        while now() <= self.started + 1 {
            thread::sleep(Duration::from_millis(20));
        }
        self.started = now();
        let conf = self.configuration();
        fs::write(self.directory.join("conf"), conf).map_err(|error| error.to_string())?;
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.mapper.id().to_string(), "-m", "-n", "ganesha.nfsd", "-F", "-f"]);
        command.arg(self.directory.join("conf")).arg("-L").arg(self.directory.join("log"));
        command.arg("-p").arg(self.directory.join("pid")).args(["-N", "WARN"]);
        self.server = Some(spawn(command)?);
        let end = Instant::now() + PATIENCE;
        for address in [NFS, MOUNT] {
            while connect_in(self.mapper.id(), address).is_err() {
                let ended = self.server.as_mut().and_then(|server| server.try_wait().ok()).flatten();
                let log = || fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                assert!(
                    ended.is_none() && Instant::now() < end,
                    "ganesha.nfsd does not serve: {ended:?} {}",
                    log()
                );
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        end(self.server.take());
    }

    /// Sends it a signal: SIGSTOP, SIGCONT.
    pub fn signal(&self, signal: i32) {
        if let Some(server) = &self.server {
            // SAFETY: takes nothing but integers; the process has not been waited for.
            unsafe { libc::kill(server.id() as i32, signal) };
        }
    }

    /// The URL of its export.
    pub fn url(&self) -> String {
        let (nfs, mount) = (self.nfs.address.port(), self.mount.address.port());
        let export = self.directory.join("export");
        match self.version {
            4 => format!("nfs://127.0.0.1{}?version=4&nfsport={nfs}", export.display()),
            _ => format!("nfs://127.0.0.1{}?nfsport={nfs}&mountport={mount}", export.display()),
        }
    }

    /// The directory with its files.
    pub fn export(&self) -> PathBuf {
        self.export.clone()
    }

    /// From its next start on, it forgets a client of version 4 that is silent for so many seconds.
    pub fn set_lease(&mut self, seconds: u32) {
        self.lease = seconds;
    }

    /// From its next start on, it waits for earlier clients of version 4 before it lets others open files, or not.
    pub fn set_grace(&mut self, has_grace: bool) {
        self.has_grace = has_grace;
    }

    fn configuration(&self) -> String {
        let export = self.directory.join("export").display().to_string();
        let lease = match self.lease {
            0 => String::new(),
            lease => format!("Lease_Lifetime = {lease};"),
        };
        let grace = if self.has_grace { "Grace_Period = 5;" } else { "Graceless = true;" };
        format!(
            "NFS_CORE_PARAM {{ NFS_Port = {}; MNT_Port = {}; Protocols = 3, 4; Enable_NLM = false; \
             Enable_RQUOTA = false; Enable_UDP = false; }}\n\
             NFSV4 {{ {grace} {lease} RecoveryBackend = fs; Minor_Versions = 1; }}\n\
             NFS_KRB5 {{ Active_krb5 = false; }}\n\
             EXPORT {{ Export_Id = 1; Path = {export}; Pseudo = {export}; Access_Type = RW; Squash = None; \
             SecType = sys; Protocols = 3, 4; Transports = TCP; FSAL {{ Name = VFS; }} }}\n",
            NFS.port(),
            MOUNT.port()
        )
    }

    /// The number of bytes that clients have sent to it.
    pub fn bytes_sent(&self) -> u64 {
        self.nfs.bytes.load(Ordering::Relaxed)
    }

    /// Cuts all connections of clients.
    pub fn cut(&self) {
        self.nfs.cut.store(true, Ordering::Relaxed);
    }
}

impl Drop for Ganesha {
    fn drop(&mut self) {
        self.kill();
        let _ = self.mapper.kill();
        let _ = self.mapper.wait();
    }
}

/// Starts a program that dies with the tests.
fn spawn(mut command: Command) -> Result<Child, String> {
    let program = command.get_program().display().to_string();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    keeper(command).map_err(|error| format!("{program}: {error}"))
}

fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        // The child has not been waited for, so no other process has its ID.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Connects to an address in the network namespace of another process.
fn connect_in(process: u32, address: SocketAddr) -> std::io::Result<TcpStream> {
    let network = File::open(format!("/proc/{process}/ns/net"))?;
    // A separate thread enters that namespace. Its sockets belong to the namespace for ever.
    let connecting = thread::spawn(move || {
        // SAFETY: the descriptor is open; the call affects only this thread.
        if unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        TcpStream::connect_timeout(&address, Duration::from_secs(5))
    });
    connecting.join().expect("it does not panic")
}

/// Forwards connections from a port of this machine.
struct Relay {
    address: SocketAddr,
    bytes: Arc<AtomicU64>,
    cut: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl Relay {
    fn start(process: u32, to: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        let relay = Relay { address, bytes: Arc::default(), cut: Arc::default(), is_over: Arc::default() };
        let (bytes, cut, is_over) = (relay.bytes.clone(), relay.cut.clone(), relay.is_over.clone());
        thread::spawn(move || {
            for client in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                cut.store(false, Ordering::Relaxed);
                let (Ok(client), Ok(server)) = (client, connect_in(process, to)) else { continue };
                let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else {
                    continue;
                };
                let (bytes, cut_too, cut) = (bytes.clone(), cut.clone(), cut.clone());
                thread::spawn(move || pass_on(client, server, &bytes, &cut));
                thread::spawn(move || pass_on(server_too, client_too, &AtomicU64::new(0), &cut_too));
            }
        });
        relay
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Forwards data in one direction until either end closes.
fn pass_on(mut from: TcpStream, mut to: TcpStream, bytes: &AtomicU64, cut: &AtomicBool) {
    let mut buffer = vec![0; 256 << 10];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || cut.load(Ordering::Relaxed) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
        bytes.fetch_add(count as u64, Ordering::Relaxed);
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
