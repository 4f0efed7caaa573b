//! The system's ssh server, on a private port, with keys and settings in a directory of the test.

use crate::programs::write_program;
use crate::servers::{Serving, free_port};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The empty directory that sshd needs when root starts it. Packages create it when the machine boots.
const EMPTY: &str = "/run/sshd";

/// A server that lets `ssh` log in as the user who runs the tests.
pub struct Sshd {
    serving: Serving,
    /// The port on 127.0.0.1.
    pub port: u16,
    /// A directory with an `ssh` that uses the settings of the test; tests put it in front of `PATH`.
    pub bin: PathBuf,
    /// The directory for temporary files of the programs that are started over ssh.
    pub temporary: PathBuf,
}

impl Sshd {
    /// Starts a server with all its files in `directory`.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn start(directory: &Path) -> Result<Sshd, String> {
        let program = ["/usr/sbin/sshd", "/sbin/sshd"].iter().map(Path::new).find(|path| path.exists());
        let program = program.ok_or("sshd is missing (package openssh-server)")?;
        let keygen =
            Command::new("ssh-keygen").arg("-?").stdout(Stdio::null()).stderr(Stdio::null()).status();
        keygen.map_err(|error| format!("ssh-keygen: {error} (package openssh-client)"))?;
        let address = free_port();
        Sshd::prepare(directory, address.port()).map_err(|error| format!("settings of sshd: {error}"))?;
        let mut command = if Path::new(EMPTY).exists() || !is_root() {
            Command::new(program)
        } else {
            // In a separate mount namespace, so that it changes nothing on this machine.
            let script = format!(
                "mount -t tmpfs none /run && mkdir -m 755 {EMPTY} && exec {} \"$@\"",
                program.display()
            );
            let mut command = Command::new("unshare");
            command.args(["-m", "sh", "-c", &script, "sshd"]);
            command
        };
        command
            .args(["-D", "-f"])
            .arg(directory.join("sshd_config"))
            .arg("-E")
            .arg(directory.join("sshd.log"));
        let serving = Serving::start(&mut command, address)?;
        let sshd = Sshd {
            serving,
            port: address.port(),
            bin: directory.join("bin"),
            temporary: directory.join("tmp"),
        };
        let tried = Command::new(sshd.bin.join("ssh"))
            .args(["-oBatchMode=yes", "-p", &sshd.port.to_string(), "127.0.0.1", "true"])
            .stdin(Stdio::null())
            .output();
        match tried {
            Ok(output) if output.status.success() => Ok(sshd),
            Ok(output) => {
                Err(format!("sshd lets nobody in: {}", String::from_utf8_lossy(&output.stderr).trim()))
            }
            Err(error) => Err(format!("ssh: {error}")),
        }
    }

    fn prepare(directory: &Path, port: u16) -> io::Result<()> {
        let shown = directory.display();
        for name in ["bin", "tmp"] {
            fs::create_dir_all(directory.join(name))?;
        }
        for key in ["host_key", "user_key", "foreign_key"] {
            let file = directory.join(key);
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(file)
                .status()?;
            if !made.success() {
                return Err(io::Error::other("ssh-keygen has failed"));
            }
        }
        fs::copy(directory.join("user_key.pub"), directory.join("authorized"))?;
        let host_key = fs::read_to_string(directory.join("host_key.pub"))?;
        fs::write(directory.join("known"), format!("[127.0.0.1]:{port} {host_key}"))?;
        fs::write(
            directory.join("sshd_config"),
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/host_key\nPidFile none\nUsePAM no\nStrictModes no\n\
                 AuthorizedKeysFile {shown}/authorized\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
                 MaxStartups 100\nSetEnv TMPDIR={shown}/tmp\n"
            ),
        )?;
        // `ssh` ignores HOME and reads the settings of the account, so its configuration file is passed explicitly.
        fs::write(
            directory.join("ssh_config"),
            format!(
                "IdentityFile {shown}/user_key\nIdentitiesOnly yes\nUserKnownHostsFile {shown}/known\n\
                 GlobalKnownHostsFile none\nStrictHostKeyChecking yes\n"
            ),
        )?;
        write_program(
            &directory.join("bin/ssh"),
            &format!("#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin exec ssh -F {shown}/ssh_config \"$@\"\n"),
        )
    }

    /// Its process ID.
    pub fn pid(&self) -> i32 {
        self.serving.pid()
    }
}

fn is_root() -> bool {
    // SAFETY: no pointers are involved; the call cannot fail.
    unsafe { libc::geteuid() == 0 }
}
