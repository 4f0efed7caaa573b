//! Telling the service manager (systemd) that has started this process about its state: the protocol of `sd_notify(3)`.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The environment variable with the manager's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Tells the manager that this process serves from now on. Without a manager, nothing happens.
///
/// # Errors
/// The manager cannot be reached.
pub fn is_ready() -> io::Result<()> {
    notify("READY=1")
}

/// Tells the manager that this process is ending, and what it waits for, in one line. Without a manager, nothing happens.
///
/// # Errors
/// The manager cannot be reached.
pub fn is_stopping(waits_for: &str) -> io::Result<()> {
    notify(&format!("STOPPING=1\nSTATUS={waits_for}"))
}

fn notify(state: &str) -> io::Result<()> {
    match std::env::var_os(SOCKET).filter(|name| !name.is_empty()) {
        Some(name) => send(&name, state),
        None => Ok(()),
    }
}

fn send(name: &OsStr, state: &str) -> io::Result<()> {
    // A name without a file begins with @ in the variable.
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_sockets_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("manager");
        let own = format!("iolite-test-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&own).unwrap();
        for (manager, name) in [
            (UnixDatagram::bind(&path).unwrap(), path.clone().into_os_string()),
            (UnixDatagram::bind_addr(&abstract_name).unwrap(), format!("@{own}").into()),
        ] {
            send(&name, "READY=1").unwrap();
            let mut told = [0; 20];
            let length = manager.recv(&mut told).unwrap();
            assert_eq!(&told[..length], b"READY=1");
        }
        assert!(send(OsStr::new("/nowhere/manager"), "READY=1").is_err());
    }
}
