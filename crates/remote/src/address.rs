//! Where agents are: `sock:PATH`, `ip:HOST,PORT`, `ip6:HOST,PORT`, `HOST,PORT`, `,PORT`, `ssh:USER@HOST,PORT`.

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
    /// ssh starts it there.
    Ssh(Target),
    /// A rank of a launcher.
    Rank {
        /// The rank's number.
        number: u32,
        /// Where it can be reached, the best first; this process itself starts the agent where there is none.
        places: Vec<Address>,
    },
}

impl Address {
    /// Reads an address. An empty one is the usual port of all interfaces.
    ///
    /// # Errors
    /// Why it is none.
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
                (host, port.parse().map_err(|_| format!("\"{port}\" is no port (0 to 65535)"))?)
            }
        };
        let host = host.trim();
        if host.contains([',', '/', ' ']) {
            return Err(format!("\"{host}\" is no host"));
        }
        Ok(Address::Port { host: host.to_owned(), port, six })
    }

    /// The host or path, as reports have it.
    pub fn host(&self) -> String {
        match self {
            Address::Socket(path) => path.display().to_string(),
            Address::Port { host, .. } => host.clone(),
            Address::Ssh(target) => target.host.clone(),
            Address::Rank { number, .. } => format!("rank-{number}"),
        }
    }

    /// The port, as reports have it. (As with fio, a socket has the usual one.) 0 = ssh decides.
    pub fn port(&self) -> u16 {
        match self {
            Address::Socket(_) => PORT,
            Address::Ssh(target) => target.port.unwrap_or_default(),
            Address::Rank { places, .. } => places.first().map_or(PORT, Address::port),
            Address::Port { port, .. } => *port,
        }
    }

    /// Whether its transport keeps others out: the file system, or ssh.
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

/// The addresses in a list of hosts: one per line; text after a `#` is a comment.
pub fn list(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
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
        for wrong in ["sock:", "host,x", "host,65536", "bogus,1,2", "a b", "ssh:", "ssh:-x"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_of_hosts() {
        assert_eq!(list("a\n\n # none\n b,1 # the second\r\n"), ["a", "b,1"]);
    }
}
