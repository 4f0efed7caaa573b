//! A GlusterFS volume of one brick for tests, on a server in separate namespaces, because it accepts no loopback
//! address. Clients are started in its network. It ends with the test, with everything in its namespaces.

use crate::ceph::keeper;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that the server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// Prepares the namespaces before the server starts.
const SCRIPT: &str = "set -e
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add 10.77.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
mkdir -p lib log brick /var/lib/glusterd /var/log/glusterfs
mount --bind lib /var/lib/glusterd
mount --bind log /var/log/glusterfs
mount -t tmpfs none /run
mkdir /run/gluster
glusterd -N &
wait";

/// A server with a volume.
pub struct Gluster {
    /// When this process dies, everything in the namespaces dies.
    outside: Child,
    /// The ID of the first process in the namespaces.
    inside: u32,
    directory: PathBuf,
}

impl Gluster {
    /// The volume.
    pub const VOLUME: &'static str = "vol";
    /// The address of its server in the namespaces' network.
    pub const SERVER: &'static str = "10.77.0.1";

    /// Starts a server with its files in `directory`.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    ///
    /// # Panics
    /// When it is installed but does not start.
    pub fn start(directory: &Path) -> Result<Gluster, String> {
        // SAFETY: takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err("only root can make name spaces for a GlusterFS server".to_owned());
        }
        if !["/usr/sbin/glusterd", "/sbin/glusterd"].iter().any(|place| Path::new(place).exists()) {
            return Err(
                "glusterd is not installed (glusterfs-server, which scripts/test --everything installs)"
                    .to_owned(),
            );
        }
        let directory = directory.join("gluster");
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let mut command = Command::new("unshare");
        command.args(["-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", SCRIPT]);
        let log = fs::File::create(directory.join("server.log")).map_err(|error| error.to_string())?;
        command.current_dir(&directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let outside = keeper(command).map_err(|error| format!("unshare: {error}"))?;
        let mut gluster = Gluster { outside, inside: 0, directory };
        let end = Instant::now() + PATIENCE;
        while !gluster.serves() {
            let words = || fs::read_to_string(gluster.directory.join("server.log")).unwrap_or_default();
            if let Ok(Some(status)) = gluster.outside.try_wait() {
                return Err(format!("name spaces for GlusterFS are not to be had: {status}: {}", words()));
            }
            assert!(Instant::now() < end, "glusterd does not serve: {}", words());
            thread::sleep(Duration::from_millis(50));
        }
        let brick = format!("{}:{}", Gluster::SERVER, gluster.brick().display());
        // (Not every file system supports the extended attributes of a brick.)
        gluster.tell(&["volume", "create", Gluster::VOLUME, &brick, "force"])?;
        gluster.tell(&["volume", "start", Gluster::VOLUME])?;
        Ok(gluster)
    }

    fn serves(&mut self) -> bool {
        let parent = self.outside.id();
        let children =
            fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let child = children.split_whitespace().next().and_then(|child| child.parse().ok());
        self.inside = child.unwrap_or(0);
        child.is_some() && self.tell(&["pool", "list"]).is_ok()
    }

    /// Runs a `gluster` command.
    ///
    /// # Errors
    /// The server's message.
    pub fn tell(&self, words: &[&str]) -> Result<(), String> {
        let mut command = Command::new("timeout");
        command.args(["60", "nsenter", "-t", &self.inside.to_string(), "-m", "-n", "-p"]);
        command.args(["gluster", "--mode=script"]).args(words).stdin(Stdio::null());
        let told = command.output().map_err(|error| format!("nsenter: {error}"))?;
        let said = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        match told.status.success() {
            true => Ok(()),
            false => {
                Err(format!("gluster {}: {}{}", words.join(" "), said(&told.stdout), said(&told.stderr)))
            }
        }
    }

    /// A command that runs a program in the server's network.
    pub fn client(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.inside.to_string(), "-n"]).arg(program);
        command
    }

    /// The directory with the brick's files.
    pub fn brick(&self) -> PathBuf {
        self.directory.join("brick")
    }

    /// The number of connections to glusterd.
    pub fn connections(&self) -> usize {
        let all = fs::read_to_string(format!("/proc/{}/net/tcp", self.inside)).unwrap_or_default();
        // Established, with port 24007 at the other end.
        let is_one = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words[..], [_, _, other, "01", ..] if other.ends_with(":5DC7"))
        };
        all.lines().filter(is_one).count()
    }

    /// Sends a signal to the server of the brick.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal_brick(&self, signal: i32) {
        let name = self.brick().display().to_string();
        let processes = fs::read_dir("/proc").expect("there are processes").flatten();
        let is_it = |id: &i32| {
            let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words);
            words.contains("glusterfsd\0") && words.contains(&name)
        };
        let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let id = ids.find(is_it).expect("the brick's server runs");
        // SAFETY: takes nothing but integers. Only this brick's server has that directory in its command line.
        unsafe { libc::kill(id, signal) };
    }

    /// Restarts the server of the brick.
    ///
    /// # Errors
    /// The server's message.
    pub fn start_brick(&self) -> Result<(), String> {
        self.tell(&["volume", "start", Gluster::VOLUME, "force"])
    }
}

impl Drop for Gluster {
    fn drop(&mut self) {
        // The child has not been waited for, so no other process has its ID.
        let _ = self.outside.kill();
        let _ = self.outside.wait();
        // The namespace ends when its last process does, which takes a moment.
        let end = Instant::now() + Duration::from_secs(10);
        while Path::new(&format!("/proc/{}", self.inside)).exists() && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
