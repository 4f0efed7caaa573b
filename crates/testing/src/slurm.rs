//! A Slurm cluster of two nodes on one machine, on private ports, with all its files in a directory of the test.

use crate::servers::free_port;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time that the nodes may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster. It is stopped when this value is dropped.
pub struct Slurm {
    daemons: Vec<Child>,
    /// Its settings, for `SLURM_CONF`.
    pub settings: PathBuf,
}

impl Slurm {
    /// Starts a cluster with all its files in `directory`.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn start(directory: &Path) -> Result<Slurm, String> {
        // SAFETY: no pointers are involved; the call cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err("a Slurm cluster needs root".to_owned());
        }
        let find = |program: &str| {
            let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
            let found = places.iter().map(|place| Path::new(place).join(program)).find(|path| path.exists());
            found.ok_or_else(|| format!("{program} is missing (scripts/test --everything installs Slurm)"))
        };
        let [munged, slurmctld, slurmd] = ["munged", "slurmctld", "slurmd"].map(find);
        let (munged, slurmctld, slurmd, sinfo) = (munged?, slurmctld?, slurmd?, find("sinfo")?);
        let settings = prepare(directory).map_err(|error| format!("settings of Slurm: {error}"))?;
        let mut slurm = Slurm { daemons: Vec::new(), settings };
        let shown = directory.display();
        let mut command = Command::new(munged);
        command.args([
            "-F",
            "--force",
            &format!("--key-file={shown}/key"),
            &format!("--socket={shown}/munge"),
        ]);
        command.args([&format!("--pid-file={shown}/pid"), &format!("--seed-file={shown}/seed")]);
        slurm.add(command.arg(format!("--log-file={shown}/munge.log")))?;
        let until = Instant::now() + PATIENCE;
        while !directory.join("munge").exists() {
            slurm.wait("munged", until)?;
        }
        slurm.add(Command::new(slurmctld).args(["-D", "-c"]))?;
        for node in ["n1", "n2"] {
            slurm.add(Command::new(&slurmd).args(["-D", "-N", node]))?;
        }
        loop {
            let output =
                Command::new(&sinfo).args(["-h", "-o", "%D:%t"]).env("SLURM_CONF", &slurm.settings).output();
            if output.is_ok_and(|output| output.stdout.starts_with(b"2:idle")) {
                return Ok(slurm);
            }
            slurm.wait("the nodes", until)?;
        }
    }

    fn add(&mut self, command: &mut Command) -> Result<(), String> {
        let program = command.get_program().display().to_string();
        command.env("SLURM_CONF", &self.settings);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(command.spawn().map_err(|error| format!("{program}: {error}"))?);
        Ok(())
    }

    /// Waits a moment for something that does not exist yet.
    fn wait(&mut self, what: &str, until: Instant) -> Result<(), String> {
        let ended = |daemon: &mut Child| daemon.try_wait().is_ok_and(|status| status.is_some());
        if self.daemons.iter_mut().any(ended) {
            return Err(format!("Slurm does not start here: a daemon has ended before {what} came"));
        }
        if Instant::now() > until {
            return Err(format!("Slurm does not start here: {what} did not come in {PATIENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
        Ok(())
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // These children have not been waited for, so no other process has their IDs.
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn prepare(directory: &Path) -> io::Result<PathBuf> {
    for name in ["state", "n1", "n2"] {
        fs::create_dir_all(directory.join(name))?;
    }
    let mut key = vec![0; 1024];
    fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    fs::write(directory.join("key"), key)?;
    fs::set_permissions(directory.join("key"), fs::Permissions::from_mode(0o600))?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let [control, first, second] = [(); 3].map(|()| free_port().port());
    let (host, shown) = (host.trim(), directory.display());
    let node = |name: &str, port: u16| {
        format!("NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=1000\n")
    };
    let settings = format!(
        "ClusterName=lab\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={control}\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nAuthInfo=socket={shown}/munge\nMpiDefault=none\nProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\nReturnToService=2\nStateSaveLocation={shown}/state\nSlurmdSpoolDir={shown}/%n\n\
         SlurmctldPidFile={shown}/ctl.pid\nSlurmdPidFile={shown}/%n.pid\nSlurmctldLogFile={shown}/ctl.log\n\
         SlurmdLogFile={shown}/%n.log\nSelectType=select/cons_tres\nJobAcctGatherType=jobacct_gather/none\n\
         SlurmdParameters=config_overrides\n{}{}PartitionName=p Nodes=ALL Default=YES State=UP\n",
        node("n1", first),
        node("n2", second)
    );
    let file = directory.join("slurm.conf");
    fs::write(&file, settings)?;
    Ok(file)
}
