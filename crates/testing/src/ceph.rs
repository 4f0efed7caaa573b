//! A Ceph cluster on one machine for tests: a monitor, a manager and one object store (OSD), with authentication, on
//! private ports; and a gateway for S3 and Swift.
//!
//! It uses the system's packages (`scripts/test --everything` installs Debian's). Starting it takes ten seconds, so the
//! tests of a binary share one cluster ([`Ceph::shared`]), each with its own objects or images. Its processes die with
//! the test binary, even if that is killed.

use crate::servers::free_port;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// The longest time that a program of the cluster may take to become ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// The programs of a cluster, except the gateway.
const PROGRAMS: [&str; 8] =
    ["ceph-mon", "ceph-mgr", "ceph-osd", "ceph", "rados", "rbd", "ceph-authtool", "monmaptool"];

/// Where an object store keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// In its memory.
    Memory,
    /// In a file, so that it can be killed and started again.
    File,
}

/// A cluster.
pub struct Ceph {
    directory: PathBuf,
    processes: Mutex<Processes>,
    gateway: OnceLock<Result<Gateway, String>>,
}

/// The processes of the cluster.
#[derive(Default)]
struct Processes {
    others: Vec<Child>,
    store: Option<Child>,
}

/// A gateway to the cluster for S3 and Swift.
#[derive(Clone, Debug)]
pub struct Gateway {
    address: SocketAddr,
}

impl Ceph {
    /// The pool that the cluster has, for objects and images.
    pub const POOL: &'static str = "pool";

    /// The cluster that all tests of this binary share. It keeps its data in memory.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn shared() -> Result<&'static Ceph, String> {
        static SHARED: OnceLock<Result<Ceph, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            let place = std::env::temp_dir().join(format!("iolite-test-ceph-{}", std::process::id()));
            let cluster = Ceph::start(&place, Store::Memory)?;
            // SAFETY: the function takes nothing, returns nothing, and does not unwind.
            unsafe { libc::atexit(end_shared) };
            Ok(cluster)
        });
        extern "C" fn end_shared() {
            if let Some(Ok(cluster)) = SHARED.get() {
                cluster.end();
                let _ = fs::remove_dir_all(&cluster.directory);
            }
        }
        shared.as_ref().map_err(Clone::clone)
    }

    /// Starts a cluster with all its files in this directory. It ends when it is dropped.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    ///
    /// # Panics
    /// When the programs exist but the cluster does not start.
    pub fn start(directory: &Path, store: Store) -> Result<Ceph, String> {
        if let Some(missing) = PROGRAMS.iter().find(|name| program(name).is_none()) {
            return Err(format!(
                "{missing} is not installed (Debian: ceph-mon ceph-mgr ceph-osd ceph-common, which scripts/test --everything \
                 installs)"
            ));
        }
        let cluster =
            Ceph { directory: directory.to_owned(), processes: Mutex::default(), gateway: OnceLock::new() };
        match cluster.begin(store) {
            Ok(()) => Ok(cluster),
            Err(why) => panic!("the Ceph cluster does not start: {why}\n{}", cluster.logs()),
        }
    }

    fn begin(&self, store: Store) -> Result<(), String> {
        let made = ["mon", "mgr", "osd", "run", "log", "rgw"]
            .iter()
            .try_for_each(|name| fs::create_dir_all(self.directory.join(name)));
        made.map_err(|error| error.to_string())?;
        let (cluster, store_id) = (unique(), unique());
        let (first, second) = (free_port(), free_port());
        let addresses = format!("[v2:{first},v1:{second}]");
        let text = configuration(&self.directory, &cluster, &addresses, store);
        fs::write(self.conf(), text).map_err(|error| error.to_string())?;
        self.keys()?;
        self.run("monmaptool", &["--create", "--addv", "a", &addresses, "--fsid", &cluster, "monmap"])?;
        self.run("ceph-mon", &["-i", "a", "--mkfs", "--monmap", "monmap", "--keyring", "keyring"])?;
        self.serve("ceph-mon", &["-f", "-i", "a"])?;
        self.serve("ceph-mgr", &["-f", "-i", "x"])?;
        self.run("ceph", &["osd", "new", &store_id])?;
        self.run("ceph-osd", &["-i", "0", "--mkfs", "--osd-uuid", &store_id])?;
        self.start_store()?;
        // Creating a pool hangs until there is a manager.
        self.until(|| Ok(self.run("ceph", &["mgr", "stat"])?.contains("\"available\": true")))?;
        self.run("ceph", &["osd", "pool", "create", Ceph::POOL, "8"])?;
        self.run("ceph", &["osd", "pool", "application", "enable", Ceph::POOL, "rbd"])?;
        Ok(())
    }

    /// Creates the keys of all daemons and of the administrator.
    fn keys(&self) -> Result<(), String> {
        let all = |of: &str| [format!("--cap={of}"), "allow *".to_owned()];
        let profile = |of: &str, name: &str| [format!("--cap={of}"), format!("allow profile {name}")];
        let users = [
            ("mon.", vec![all("mon")]),
            ("client.admin", vec![all("mon"), all("osd"), all("mgr")]),
            ("mgr.x", vec![profile("mon", "mgr"), all("osd")]),
            ("osd.0", vec![profile("mon", "osd"), all("osd"), profile("mgr", "osd")]),
            ("client.rgw", vec![all("mon"), all("osd")]),
        ];
        for (number, (user, rights)) in users.into_iter().enumerate() {
            let mut words: Vec<String> = vec!["keyring".into(), "--gen-key".into(), "-n".into(), user.into()];
            if number == 0 {
                words.push("-C".into());
            }
            for [option, value] in rights {
                let (option, of) = option.split_once('=').expect("it contains an equals sign");
                words.extend([option.to_owned(), of.to_owned(), value]);
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.run("ceph-authtool", &words)?;
        }
        Ok(())
    }

    /// The configuration file for clients of the cluster.
    pub fn conf(&self) -> PathBuf {
        self.directory.join("ceph.conf")
    }

    /// Writes another configuration file, in which these lines replace the lines with the same keys.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn conf_with(&self, name: &str, lines: &str) -> PathBuf {
        let text = fs::read_to_string(self.conf()).expect("it has been written");
        let option = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
        let is_kept = |line: &&str| !lines.lines().any(|new| option(new) == option(line));
        let kept: Vec<&str> = text.lines().filter(is_kept).collect();
        let text = kept.join("\n").replacen("[global]", &format!("[global]\n{lines}"), 1);
        let path = self.directory.join(name);
        fs::write(&path, text + "\n").expect("it can be written");
        path
    }

    /// Runs one of Ceph's tools (`rbd`, `rados`, `ceph`) as the administrator, and returns its output.
    ///
    /// # Panics
    /// When it fails.
    pub fn tool(&self, name: &str, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.run(name, &words).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The same with arguments that may contain spaces.
    ///
    /// # Panics
    /// When it fails.
    pub fn tool_with(&self, name: &str, words: &[&str]) -> String {
        self.run(name, words).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Runs a tool that may fail; returns its output.
    ///
    /// # Errors
    /// Its output, if it fails.
    pub fn try_tool(&self, name: &str, words: &str) -> Result<String, String> {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.run(name, &words)
    }

    /// Kills the object store (SIGKILL).
    pub fn kill_store(&self) {
        if let Some(mut store) = self.processes().store.take() {
            end(&mut store);
        }
    }

    /// Starts the object store with its existing data, and waits until it serves.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_store(&self) -> Result<(), String> {
        // Only the epoch at which it comes up again shows that it was restarted.
        let before = self.up_from()?;
        let child = self.spawn("ceph-osd", &["-f", "-i", "0"])?;
        self.processes().store = Some(child);
        self.until(|| Ok(self.up_from()?.is_some_and(|epoch| Some(epoch) > before)))
    }

    /// The epoch of the cluster since which the object store is up; `None` = it is not up.
    fn up_from(&self) -> Result<Option<u64>, String> {
        let told = self.run("ceph", &["osd", "dump"])?;
        let line = told.lines().find(|line| line.starts_with("osd.0 up")).unwrap_or_default();
        let mut words = line.split_whitespace().skip_while(|&word| word != "up_from");
        Ok(words.nth(1).and_then(|epoch| epoch.parse().ok()))
    }

    /// The gateway. The first call starts it.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn gateway(&self) -> Result<&Gateway, String> {
        self.gateway.get_or_init(|| self.start_gateway()).as_ref().map_err(Clone::clone)
    }

    fn start_gateway(&self) -> Result<Gateway, String> {
        if program("radosgw").is_none() || program("radosgw-admin").is_none() {
            return Err(
                "radosgw is not installed (Debian: radosgw, which scripts/test --everything installs)"
                    .to_owned(),
            );
        }
        let address = free_port();
        let frontends = format!("--rgw-frontends=beast endpoint={address}");
        let started = (|| {
            self.serve("radosgw", &["-f", "-n", "client.rgw", &frontends])?;
            self.until(|| Ok(TcpStream::connect(address).is_ok()))?;
            let (id, secret) = (Gateway::ID, Gateway::SECRET);
            let user =
                format!("user create --uid=u --display-name=u --access-key={id} --secret-key={secret}");
            let words: Vec<&str> = user.split_whitespace().collect();
            self.run("radosgw-admin", &words)?;
            self.run(
                "radosgw-admin",
                &["subuser", "create", "--uid=u", "--subuser=u:swift", "--access=full"],
            )?;
            let key = format!("--secret-key={}", Gateway::SWIFT_SECRET);
            self.run("radosgw-admin", &["key", "create", "--subuser=u:swift", "--key-type=swift", &key])
        })();
        match started {
            Ok(_) => Ok(Gateway { address }),
            Err(why) => panic!("the gateway does not start: {why}\n{}", self.logs()),
        }
    }

    fn processes(&self) -> std::sync::MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, name: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program(name).unwrap_or_else(|| name.into()));
        command.args(words).current_dir(&self.directory).env("CEPH_CONF", self.conf());
        command.env_remove("CEPH_ARGS").env("HOME", &self.directory).stdin(Stdio::null());
        command
    }

    /// Runs a program to its end.
    fn run(&self, name: &str, words: &[&str]) -> Result<String, String> {
        let mut command = self.command(name, words);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
        let read = |from: Option<&mut dyn Read>| {
            let mut text = Vec::new();
            from.map(|from| from.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        };
        let finished = std::thread::scope(|scope| {
            let said = scope.spawn(move || read(out.as_mut().map(|out| out as _)));
            let complained = scope.spawn(move || read(err.as_mut().map(|err| err as _)));
            let status = wait(&mut child);
            (status, said.join().unwrap_or_default(), complained.join().unwrap_or_default())
        });
        match finished {
            (Some(true), said, _) => Ok(said),
            (status, said, complained) => {
                let how = if status.is_none() { "does not end" } else { "fails" };
                Err(format!("{name} {} {how}: {said}{complained}", words.join(" ")))
            }
        }
    }

    /// Starts a program that serves until the cluster ends.
    fn serve(&self, name: &str, words: &[&str]) -> Result<(), String> {
        let child = self.spawn(name, words)?;
        self.processes().others.push(child);
        Ok(())
    }

    fn spawn(&self, name: &str, words: &[&str]) -> Result<Child, String> {
        let mut command = self.command(name, words);
        let log = fs::File::create(self.directory.join(format!("log/{name}.out")))
            .map_err(|error| error.to_string())?;
        let copy = log.try_clone().map_err(|error| error.to_string())?;
        command.stdout(log).stderr(copy);
        keeper(command).map_err(|error| format!("{name}: {error}"))
    }

    fn until(&self, mut is_so: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while !is_so()? {
            if Instant::now() > end {
                return Err(format!("nothing happened in {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The last lines of all logs.
    fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.directory.join("log")).into_iter().flatten().flatten() {
            let log = fs::read_to_string(entry.path()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(20)..].join("\n");
            let _ = writeln!(text, "--- {}\n{last}", entry.file_name().display());
        }
        text
    }

    fn end(&self) {
        let mut processes = std::mem::take(&mut *self.processes());
        // The clients end first.
        processes.others.reverse();
        processes.others.iter_mut().chain(&mut processes.store).for_each(end);
    }
}

impl Drop for Ceph {
    fn drop(&mut self) {
        self.end();
    }
}

impl Gateway {
    /// The access key of the S3 user.
    pub const ID: &'static str = "an-access-key";
    /// The secret key of the S3 user.
    pub const SECRET: &'static str = "a-very-secret-key";
    /// The key of the Swift user `u:swift`.
    pub const SWIFT_SECRET: &'static str = "a-swift-secret";

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// A token for Swift. Containers and objects are below the path `/swift/v1`.
    ///
    /// # Panics
    /// When the gateway gives none.
    pub fn swift_token(&self) -> String {
        let key = Gateway::SWIFT_SECRET;
        let answer = self.ask("GET /auth/v1.0", &format!("X-Auth-User: u:swift\r\nX-Auth-Key: {key}"));
        let token = answer.lines().find_map(|line| line.strip_prefix("X-Auth-Token: "));
        token.unwrap_or_else(|| panic!("no token: {answer}")).trim().to_owned()
    }

    /// Creates a container, which is a bucket for S3.
    ///
    /// # Panics
    /// When the gateway refuses to.
    pub fn make_container(&self, name: &str) {
        let token = format!("X-Auth-Token: {}\r\nContent-Length: 0", self.swift_token());
        let answer = self.ask(&format!("PUT /swift/v1/{name}"), &token);
        assert!(answer.starts_with("HTTP/1.1 20"), "no container: {answer}");
    }

    fn ask(&self, request: &str, fields: &str) -> String {
        let asked = || {
            let mut connection = TcpStream::connect(self.address)?;
            connection.set_read_timeout(Some(PATIENCE))?;
            let host = self.address;
            let head = format!("{request} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\nConnection: close\r\n\r\n");
            std::io::Write::write_all(&mut connection, head.as_bytes())?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer)?;
            std::io::Result::Ok(answer)
        };
        asked().expect("the gateway answers")
    }
}

/// Ends a child that has not been waited for, so that no other process has its ID.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Whether a child succeeded; `None` = it did not end and was killed.
fn wait(child: &mut Child) -> Option<bool> {
    let limit = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < limit => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                end(child);
                return None;
            }
        }
    }
}

/// Starts a program that dies with this process. The kernel ends such a child together with the thread that started it,
/// and the threads of tests end. So one thread that never ends starts all of them.
pub(crate) fn keeper(command: Command) -> std::io::Result<Child> {
    type Order = (Command, mpsc::Sender<std::io::Result<Child>>);
    static KEEPER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (orders, taken) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in taken {
                // SAFETY: the call may be made between fork and exec, and touches nothing else.
                unsafe {
                    command.pre_exec(|| {
                        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                        Ok(())
                    })
                };
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let (answer, answered) = mpsc::channel();
    let orders = keeper.lock().unwrap_or_else(PoisonError::into_inner);
    let gone = |_| std::io::Error::other("the thread that starts servers is gone");
    orders
        .send((command, answer))
        .map_err(|_| std::io::Error::other("the thread that starts servers is gone"))?;
    answered.recv().map_err(gone)?
}

/// Finds a program in `PATH` or in the directories for administrators.
fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join(OsStr::new(name))).find(|program| program.exists())
}

/// A new UUID.
fn unique() -> String {
    let made = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("the kernel generates UUIDs");
    made.trim().to_owned()
}

fn configuration(directory: &Path, cluster: &str, addresses: &str, store: Store) -> String {
    let place = directory.display();
    let store = match store {
        Store::Memory => "osd objectstore = memstore\nmemstore device bytes = 1073741824",
        Store::File => "osd objectstore = bluestore\nbluestore block size = 4294967296",
    };
    format!(
        "[global]\n\
         fsid = {cluster}\n\
         mon host = {addresses}\n\
         public addr = 127.0.0.1\n\
         cluster addr = 127.0.0.1\n\
         auth cluster required = cephx\n\
         auth service required = cephx\n\
         auth client required = cephx\n\
         auth allow insecure global id reclaim = false\n\
         keyring = {place}/keyring\n\
         run dir = {place}/run\n\
         admin socket = {place}/run/$name.$pid.asok\n\
         pid file = {place}/run/$name.pid\n\
         log file = {place}/log/$name.log\n\
         crash dir = {place}/run\n\
         osd pool default size = 1\n\
         osd pool default min size = 1\n\
         osd crush chooseleaf type = 0\n\
         osd pool default pg num = 8\n\
         osd pool default pg autoscale mode = off\n\
         osd fast shutdown = true\n\
         mon allow pool delete = true\n\
         mon allow pool size one = true\n\
         mon warn on pool no redundancy = false\n\
         mon data = {place}/mon\n\
         mon data avail crit = 1\n\
         mgr data = {place}/mgr\n\
         mgr initial modules =\n\
         osd data = {place}/osd\n\
         {store}\n\
         [client.rgw]\n\
         rgw data = {place}/rgw\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::or_skip;

    #[test]
    fn a_cluster_keeps_objects_and_has_a_gateway() {
        let cluster = or_skip!(Ceph::shared());
        let file = cluster.conf();
        cluster.tool("rados", &format!("-p {} put x {}", Ceph::POOL, file.display()));
        assert_eq!(cluster.tool("rados", &format!("-p {} ls", Ceph::POOL)), "x\n");
        let gateway = or_skip!(cluster.gateway());
        assert!(!gateway.swift_token().is_empty());
    }
}
