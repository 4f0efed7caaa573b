//! The server: name, port, addresses.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// Why a text does not name a server, or the server's address is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text is not a host with an optional port.
    #[error("\"{text}\" names no server: {why}; give HOST or HOST:PORT, an IPv6 address as [ADDRESS]:PORT")]
    NotAHost {
        /// The text.
        text: String,
        /// The mistake in it.
        why: &'static str,
    },
    /// The name has no address.
    #[error("http_host={host}: no address is known for this name ({why})")]
    NoAddress {
        /// The name.
        host: String,
        /// The resolver's error message.
        why: String,
    },
}

/// A server that speaks HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    encrypted: bool,
}

impl Endpoint {
    /// Parses `HOST` or `HOST:PORT`. The default port is 443 for encrypted connections and 80 for others.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str, encrypted: bool) -> Result<Endpoint, EndpointError> {
        let wrong = |why| EndpointError::NotAHost { text: text.to_owned(), why };
        if let Some((_, host)) = text.rsplit_once('@') {
            // The text before the @ may contain a password.
            let why = "a user and a password have options of their own";
            return Err(EndpointError::NotAHost { text: format!("***@{host}"), why });
        }
        if text.contains("://") {
            return Err(wrong("the option https= selects the protocol"));
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(|| wrong("\"]\" is missing"))?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| wrong("no IPv6 address in brackets"))?;
                match after.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if after.is_empty() => (host, None),
                    None => return Err(wrong("only :PORT may follow \"]\"")),
                }
            }
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(wrong("an IPv6 address stands in brackets"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        if host.is_empty() {
            return Err(wrong("the name is empty"));
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        if !host.chars().all(is_allowed) {
            return Err(wrong("a name has letters, digits, dots and hyphens"));
        }
        let port = match port {
            Some(port) => port
                .parse()
                .ok()
                .filter(|&port| port != 0)
                .ok_or_else(|| wrong("the port is not 1 to 65535"))?,
            None if encrypted => 443,
            None => 80,
        };
        Ok(Endpoint { host: host.to_owned(), port, encrypted })
    }

    /// The name or address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Resolves the name to its addresses.
    ///
    /// # Errors
    /// The resolver finds none.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, EndpointError> {
        let none = |why: String| EndpointError::NoAddress { host: self.host.clone(), why };
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<SocketAddr> = found.map_err(|error| none(error.to_string()))?.collect();
        if found.is_empty() { Err(none("the list is empty".to_owned())) } else { Ok(found) }
    }
}

/// The form of the `Host` header: with the port, unless it is the default port.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = if self.encrypted { 443 } else { 80 };
        let host = &self.host;
        match (host.contains(':'), self.port == usual) {
            (true, true) => write!(f, "[{host}]"),
            (true, false) => write!(f, "[{host}]:{}", self.port),
            (false, true) => f.write_str(host),
            (false, false) => write!(f, "{host}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_default_port_unless_one_is_given() {
        for (text, encrypted, shown) in [
            ("s3.example.com", false, "s3.example.com"),
            ("s3.example.com:443", true, "s3.example.com"),
            ("s3.example.com:443", false, "s3.example.com:443"),
            ("127.0.0.1:9000", false, "127.0.0.1:9000"),
            ("[::1]:9000", true, "[::1]:9000"),
            ("[::1]", true, "[::1]"),
        ] {
            assert_eq!(Endpoint::parse(text, encrypted).unwrap().to_string(), shown);
        }
        assert_eq!(Endpoint::parse("h", true).unwrap().port, 443);
        assert_eq!(Endpoint::parse("h", false).unwrap().port, 80);
    }

    #[test]
    fn invalid_hosts_are_refused_with_a_reason() {
        for (text, why) in [
            ("user:sesame@h:1", "\"***@h:1\""),
            ("http://h", "https= selects"),
            ("", "the name is empty"),
            (":80", "the name is empty"),
            ("h:0", "1 to 65535"),
            ("h:65536", "1 to 65535"),
            ("h:x", "1 to 65535"),
            ("::1", "in brackets"),
            ("[::1", "\"]\" is missing"),
            ("[h]:80", "no IPv6 address"),
            ("[::1]80", "only :PORT"),
            ("a/b", "letters, digits"),
        ] {
            let error = Endpoint::parse(text, false).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
