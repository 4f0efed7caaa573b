//! Addresses of agents: `sock:PATH`, `ip:HOST,PORT`, `ip6:HOST,PORT`, `HOST,PORT`, `,PORT`, `ssh:USER@HOST,PORT`.

use crate::ssh::Target;
use std::fmt;
use std::path::PathBuf;

/// The port of agents.
pub const PORT: u16 = 8765;

/// The place of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A socket in the file system.
    Socket(PathBuf),
    /// A port of a machine.
    Port {
        /// Its name or number; empty = all interfaces.
        host: String,
        /// The port.
        port: u16,
        /// `Some(true)` = version 6 of IP only, `Some(false)` = version 4 only.
        six: Option<bool>,
    },
    /// A machine on which ssh starts the agent.
    Ssh(Target),
    /// A rank of a launcher.
    Rank {
        /// The rank's number.
        number: u32,
        /// Its addresses, the best first; if there are none, this process starts the agent.
        places: Vec<Address>,
    },
}

impl Address {
    /// Parses an address. An empty one means the default port on all interfaces.
    ///
    /// # Errors
    /// Why it is not an address.
    pub fn parse(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("sock:") {
            return match path {
                "" => Err("sock: needs the path of a socket".to_owned()),
                path => Ok(Address::Socket(path.into())),
            };
        }
        if let Some(target) = text.strip_prefix("ssh:") {
            return Target::parse(target).map(Address::Ssh);
        }
        let kinds = [("ip:", Some(false)), ("ip4:", Some(false)), ("ip6:", Some(true)), ("", None)];
        let (rest, six) = kinds
            .into_iter()
            .find_map(|(prefix, six)| text.strip_prefix(prefix).map(|rest| (rest, six)))
            .unwrap_or((text, None));
        let (host, port) = match rest.rsplit_once(',') {
            None => (rest, PORT),
            Some((host, port)) => {
                let port = port.trim();
                (host, port.parse().map_err(|_| format!("\"{port}\" is not a port (0 to 65535)"))?)
            }
        };
        let host = host.trim();
        if six.is_none() && host.parse::<u16>().is_ok() {
            return Err(format!("\"{host}\" is not a host; a port alone comes behind a comma: ,{host}"));
        }
        check_host(host)?;
        Ok(Address::Port { host: host.to_owned(), port, six })
    }

    /// The address at which a client reaches it: an empty host is this machine.
    #[must_use]
    pub fn to_reach(self) -> Address {
        match self {
            Address::Port { host, port, six } if host.is_empty() => {
                let host = if six == Some(true) { "::1" } else { "127.0.0.1" };
                Address::Port { host: host.to_owned(), port, six }
            }
            other => other,
        }
    }

    /// The host or path, for reports.
    pub fn host(&self) -> String {
        match self {
            Address::Socket(path) => path.display().to_string(),
            Address::Port { host, .. } => host.clone(),
            Address::Ssh(target) => target.host.clone(),
            Address::Rank { number, .. } => format!("rank-{number}"),
        }
    }

    /// The port, for reports. (As with fio, a socket has the default port.) 0 = ssh decides.
    pub fn port(&self) -> u16 {
        match self {
            Address::Socket(_) => PORT,
            Address::Ssh(target) => target.port.unwrap_or_default(),
            Address::Rank { places, .. } => places.first().map_or(PORT, Address::port),
            Address::Port { port, .. } => *port,
        }
    }

    /// Whether its transport protects it: the file system, or ssh.
    pub fn is_protected(&self) -> bool {
        match self {
            Address::Socket(_) | Address::Ssh(_) => true,
            Address::Port { .. } => false,
            Address::Rank { places, .. } => places.iter().all(Address::is_protected),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Socket(path) => write!(f, "sock:{}", path.display()),
            Address::Port { host, port, .. } => write!(f, "{host},{port}"),
            Address::Ssh(target) => target.fmt(f),
            Address::Rank { number, .. } => write!(f, "rank {number}"),
        }
    }
}

/// Checks that this can be the name or the address of a host; empty = all interfaces.
fn check_host(host: &str) -> Result<(), String> {
    // Other programs separate the port by a colon, and put the address into brackets.
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    if is_port && (bare.is_some() || !name.contains(':')) {
        let name = bare.unwrap_or(name);
        return Err(format!("\"{host}\": the port comes behind a comma: {name},{port}"));
    }
    let is_part = |c: char| c.is_alphanumeric() || ".-_:%".contains(c);
    if host.chars().all(is_part) && (!host.contains(':') || name.contains(':')) {
        return Ok(());
    }
    match host.contains('/') {
        true => Err(format!("\"{host}\" is not a host, and there is no such file with a list of hosts")),
        false => Err(format!("\"{host}\" is not a host")),
    }
}

/// The addresses in a list of hosts, with their lines (from 1): one per line; text after a `#` is a comment.
pub fn list(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    (1..).zip(lines).filter(|(_, line)| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms() {
        let port = |host: &str, port, six| Ok(Address::Port { host: host.into(), port, six });
        assert_eq!(Address::parse(""), port("", 8765, None));
        assert_eq!(Address::parse(",4444"), port("", 4444, None));
        assert_eq!(Address::parse("ip:host,4444"), port("host", 4444, Some(false)));
        assert_eq!(Address::parse("ip6:::1,4444"), port("::1", 4444, Some(true)));
        assert_eq!(Address::parse("1.2.3.4"), port("1.2.3.4", 8765, None));
        assert_eq!(Address::parse("sock:/tmp/a,b"), Ok(Address::Socket("/tmp/a,b".into())));
        assert_eq!(Address::parse("fe80::1%eth0"), port("fe80::1%eth0", 8765, None));
        for wrong in [
            "sock:",
            "host,x",
            "host,65536",
            "bogus,1,2",
            "a b",
            "ssh:",
            "ssh:-x",
            "[global]",
            "rw=read",
            "a:b",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
        for (wrong, remedy) in [
            ("host:8765", "\"host:8765\": the port comes behind a comma: host,8765"),
            ("ip:1.2.3.4:80", "\"1.2.3.4:80\": the port comes behind a comma: 1.2.3.4,80"),
            ("[fe80::1]:80", "\"[fe80::1]:80\": the port comes behind a comma: fe80::1,80"),
            ("8766", "\"8766\" is not a host; a port alone comes behind a comma: ,8766"),
            ("./list", "\"./list\" is not a host, and there is no such file with a list of hosts"),
        ] {
            assert_eq!(Address::parse(wrong), Err(remedy.to_owned()));
        }
    }

    #[test]
    fn a_client_reaches_this_machine_by_no_host() {
        let reached = |text| Address::parse(text).map(|address| address.to_reach().to_string());
        for (text, to) in [
            ("", "127.0.0.1,8765"),
            (",4444", "127.0.0.1,4444"),
            ("ip:,4444", "127.0.0.1,4444"),
            ("ip6:,4444", "::1,4444"),
            ("one", "one,8765"),
        ] {
            assert_eq!(reached(text), Ok(to.to_owned()));
        }
    }

    #[test]
    fn a_list_of_hosts() {
        let found: Vec<_> = list("a\n\n # none\n b,1 # the second\r\n").collect();
        assert_eq!(found, [(1, "a"), (4, "b,1")]);
    }
}
