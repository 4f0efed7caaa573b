//! Servers of block devices for tests: nbdkit and qemu-nbd (NBD), tgt (iSCSI), and qemu-storage-daemon (vhost-user). Their data is in a directory of the
//! test, and they end with it.

use crate::ceph::keeper;
use crate::objects::certificate;
use crate::servers::free_port;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time that a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server process.
struct Serving(Child);

impl Serving {
    /// Starts a server and waits until it is ready.
    fn start(mut command: Command, is_ready: impl Fn() -> bool) -> Result<Serving, String> {
        let program = command.get_program().display().to_string();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // (It dies with the tests, even if they are killed.)
        let mut serving = Serving(keeper(command).map_err(|error| format!("{program}: {error}"))?);
        let end = Instant::now() + PATIENCE;
        while !is_ready() {
            if let Ok(Some(status)) = serving.0.try_wait() {
                return Err(format!("{program} has ended: {status}"));
            }
            assert!(Instant::now() < end, "{program} does not serve");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(serving)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: takes nothing but integers; the process has not been waited for.
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The child has not been waited for, so no other process has its ID.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that serves a file as a disk of virtio, on a Unix socket.
pub struct VhostUserDisk {
    serving: Option<Serving>,
    /// The daemon's description of the disk.
    storage: String,
    socket: PathBuf,
}

impl VhostUserDisk {
    /// The number of its queues.
    pub const QUEUES: u32 = 4;

    /// Starts qemu-storage-daemon for a file, with a socket in this directory.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn start(directory: &Path, image: &Path) -> Result<VhostUserDisk, String> {
        VhostUserDisk::of(directory, format!("driver=file,filename={},discard=unmap", image.display()))
    }

    /// The same, without room for any write.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn full(directory: &Path, image: &Path) -> Result<VhostUserDisk, String> {
        let full = "inject-error.0.event=none,inject-error.0.errno=28,inject-error.0.iotype=write";
        let below = format!("image.driver=file,image.filename={}", image.display());
        VhostUserDisk::of(directory, format!("driver=blkdebug,{below},{full}"))
    }

    fn of(directory: &Path, storage: String) -> Result<VhostUserDisk, String> {
        let mut disk = VhostUserDisk { serving: None, storage, socket: directory.join("vhost.sock") };
        disk.restart()?;
        Ok(disk)
    }

    /// Ends it, and starts it again on the same socket.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill();
        let _ = fs::remove_file(&self.socket);
        // The daemon's own name of its socket is another one than that in job files, as with any process that was started
        // elsewhere: the kernel reports such names as they were bound.
        let (directory, name) = (self.socket.parent(), self.socket.file_name());
        let (directory, name) = directory.zip(name).ok_or("the socket has no directory")?;
        let mut command = Command::new("qemu-storage-daemon");
        command.current_dir(directory);
        command.arg("--blockdev").arg(format!("node-name=disk,{}", self.storage));
        command.arg("--export").arg(format!(
            "type=vhost-user-blk,id=export,node-name=disk,writable=on,num-queues={},addr.type=unix,addr.path={}",
            VhostUserDisk::QUEUES,
            name.display()
        ));
        // The socket is bound before it listens.
        let listens = || UnixStream::connect(&self.socket).is_ok();
        self.serving = Some(Serving::start(command, listens)?);
        Ok(())
    }

    /// The path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.serving = None;
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        self.serving.iter().for_each(|serving| serving.signal(signal));
    }
}

/// A server of one network block device.
pub struct NbdServer {
    serving: Option<Serving>,
    uri: String,
}

impl NbdServer {
    /// Starts nbdkit on a Unix socket in this directory. `words` follow its options: `memory 64M`.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn nbdkit(directory: &Path, words: &str) -> Result<NbdServer, String> {
        let (socket, pid) = (directory.join("nbd.sock"), directory.join("nbd.pid"));
        let _ = fs::remove_file(&socket);
        let _ = fs::remove_file(&pid);
        let mut command = Command::new("nbdkit");
        command.arg("-f").arg("-U").arg(&socket).arg("-P").arg(&pid).args(words.split_whitespace());
        let is_ready = || fs::metadata(&pid).is_ok_and(|metadata| metadata.len() > 0);
        let serving = Serving::start(command, is_ready)?;
        Ok(NbdServer { serving: Some(serving), uri: local(&socket) })
    }

    /// Starts nbdkit on a port of this machine.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn on_port(directory: &Path, words: &str) -> Result<NbdServer, String> {
        let (address, pid) = (free_port(), directory.join("nbdp.pid"));
        let _ = fs::remove_file(&pid);
        let mut command = Command::new("nbdkit");
        command.args(["-f", "-i", "127.0.0.1", "-p", &address.port().to_string(), "-P"]).arg(&pid);
        command.args(words.split_whitespace());
        let is_ready = || fs::metadata(&pid).is_ok_and(|metadata| metadata.len() > 0);
        let serving = Serving::start(command, is_ready)?;
        Ok(NbdServer { serving: Some(serving), uri: format!("nbd://{address}/") })
    }

    /// Starts nbdkit on a port of this machine, with TLS and the certificate `server` of the tests.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn encrypted(directory: &Path, words: &str) -> Result<NbdServer, String> {
        let keys = directory.join("certificates");
        fs::create_dir_all(&keys).map_err(|error| error.to_string())?;
        let names = [
            ("authority.crt", "ca-cert.pem"),
            ("server.crt", "server-cert.pem"),
            ("server.key", "server-key.pem"),
        ];
        for (from, to) in names {
            fs::copy(certificate(from), keys.join(to)).map_err(|error| error.to_string())?;
        }
        let (address, pid) = (free_port(), directory.join("nbds.pid"));
        let _ = fs::remove_file(&pid);
        let mut command = Command::new("nbdkit");
        command.args(["-f", "-i", "127.0.0.1", "-p", &address.port().to_string(), "--tls=require"]);
        command.arg(format!("--tls-certificates={}", keys.display())).arg("-P").arg(&pid);
        command.args(words.split_whitespace());
        let is_ready = || fs::metadata(&pid).is_ok_and(|metadata| metadata.len() > 0);
        let serving = Serving::start(command, is_ready)?;
        let uri = format!("nbds://localhost:{}?tls-certificates={}", address.port(), keys.display());
        Ok(NbdServer { serving: Some(serving), uri })
    }

    /// Starts qemu-nbd for a file.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn qemu(directory: &Path, image: &Path) -> Result<NbdServer, String> {
        let socket = directory.join("qemu.sock");
        let mut command = Command::new("qemu-nbd");
        command.arg("-k").arg(&socket).args(["-f", "raw", "-t", "-e", "8", "--discard=unmap"]).arg(image);
        let serving = Serving::start(command, || socket.exists())?;
        Ok(NbdServer { serving: Some(serving), uri: local(&socket) })
    }

    /// Its URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        self.serving = None;
    }

    /// Sends it a signal: SIGSTOP, SIGCONT.
    pub fn signal(&self, signal: i32) {
        self.serving.iter().for_each(|serving| serving.signal(signal));
    }
}

fn local(socket: &Path) -> String {
    format!("nbd+unix:///?socket={}", socket.display())
}

/// A server of iSCSI disks.
pub struct Tgt {
    serving: Option<Serving>,
    directory: PathBuf,
    address: SocketAddr,
}

impl Tgt {
    /// The name of its target.
    pub const TARGET: &'static str = "iqn.2026-01.test:disk";
    /// The user name for servers with authentication.
    pub const USER: &'static str = "somebody";
    /// The password of that user.
    pub const PASSWORD: &'static str = "sesame-open-123";
    /// The password with which it authenticates itself to clients, as the user `disk`.
    pub const PROOF: &'static str = "sesame-disk-456";

    /// Starts a server with a disk of this many bytes, in blocks of `block` bytes. If `asks`, clients have to
    /// authenticate themselves.
    ///
    /// # Errors
    /// It cannot be started.
    ///
    /// # Panics
    /// It runs but refuses a command.
    pub fn start(directory: &Path, bytes: u64, block: u32, asks: bool) -> Result<Tgt, String> {
        let address = free_port();
        let mut tgt = Tgt { serving: None, directory: directory.join("tgt"), address };
        fs::create_dir_all(&tgt.directory).map_err(|error| error.to_string())?;
        let image = tgt.directory.join("image");
        let made = fs::File::create(&image).and_then(|file| file.set_len(bytes));
        made.map_err(|error| error.to_string())?;
        let mut command = Command::new("tgtd");
        command
            .args(["-f", "--iscsi", &format!("portal={address}")])
            .env("TGT_IPC_SOCKET", tgt.directory.join("ipc"));
        let is_ready = || TcpStream::connect(address).is_ok() && tgt.tell("--op show --mode sys").is_ok();
        tgt.serving = Some(Serving::start(command, is_ready)?);
        let told = |line: &str| {
            if let Err(why) = tgt.tell(line) {
                panic!("tgtadm {line}: {why}");
            }
        };
        told(&format!("--lld iscsi --mode target --op new --tid 1 --targetname {}", Tgt::TARGET));
        told(&format!(
            "--lld iscsi --mode logicalunit --op new --tid 1 --lun 1 --blocksize {block} --backing-store {}",
            image.display()
        ));
        told("--lld iscsi --mode logicalunit --op update --tid 1 --lun 1 --params thin_provisioning=1");
        if asks {
            let account = format!("--user {} --password {}", Tgt::USER, Tgt::PASSWORD);
            told(&format!("--lld iscsi --mode account --op new {account}"));
            told(&format!("--lld iscsi --mode account --op bind --tid 1 --user {}", Tgt::USER));
            told(&format!("--lld iscsi --mode account --op new --user disk --password {}", Tgt::PROOF));
            told("--lld iscsi --mode account --op bind --tid 1 --user disk --outgoing");
        }
        told("--lld iscsi --mode target --op bind --tid 1 -I ALL");
        Ok(tgt)
    }

    fn tell(&self, line: &str) -> Result<(), String> {
        let mut command = Command::new("tgtadm");
        command.args(line.split_whitespace()).env("TGT_IPC_SOCKET", self.directory.join("ipc"));
        let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// The URL of its disk: `iscsi://127.0.0.1:PORT/TARGET/1`, with colons escaped as in a list of file names.
    pub fn name(&self, user: &str) -> String {
        format!(r"iscsi\://{user}127.0.0.1\:{}/{}/1", self.address.port(), Tgt::TARGET.replace(':', r"\:"))
    }

    /// The query of its URL that makes the server authenticate itself.
    pub fn proof(&self) -> String {
        format!("?target_user=disk&target_password={}", Tgt::PROOF)
    }

    /// The file with the data of the disk.
    pub fn image(&self) -> PathBuf {
        self.directory.join("image")
    }

    /// Makes its disk read-only.
    ///
    /// # Panics
    /// When it refuses.
    pub fn protect(&self) {
        self.tell("--lld iscsi --mode logicalunit --op update --tid 1 --lun 1 --params readonly=1")
            .expect("tgt can make a disk read-only");
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        self.serving = None;
    }

    /// Sends it a signal: SIGSTOP, SIGCONT.
    pub fn signal(&self, signal: i32) {
        self.serving.iter().for_each(|serving| serving.signal(signal));
    }
}
