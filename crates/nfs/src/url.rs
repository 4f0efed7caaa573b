//! Parses URLs in the form of libnfs: `nfs://SERVER[:PORT]/EXPORT[?KEY=VALUE[&…]]`.

use crate::protocol::Version;
use iolite_os::local_end::LocalEnd;

/// The address of an export, and the user for the requests to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The server's name or address.
    pub host: String,
    /// The path of the export on the server, or of a directory in it.
    pub export: String,
    /// The version of the protocol.
    pub version: Version,
    /// The port of NFS; `None` = ask the server's port mapper (version 3), or 2049 (version 4).
    pub nfs_port: Option<u16>,
    /// The port of the mount protocol; `None` = ask the server's port mapper.
    pub mount_port: Option<u16>,
    /// The user ID to send to the server; `None` = the user ID of this process.
    pub uid: Option<u32>,
    /// The group ID to send to the server; `None` = the group ID of this process.
    pub gid: Option<u32>,
    /// A broken connection is not restored (`autoreconnect=0`).
    pub stays_broken: bool,
    /// Where connections come from; `None` = the system chooses. (No part of the URL.)
    pub source: Option<LocalEnd>,
    /// Parameters of the URL that have no effect here.
    pub idle: Vec<String>,
}

/// Mistakes in a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text is not an `nfs://` URL.
    #[error("it must be nfs://SERVER/EXPORT")]
    Scheme,
    /// The server is missing.
    #[error("the server is missing, as in nfs://SERVER/EXPORT")]
    Host,
    /// The export is missing.
    #[error("the export is missing, as in nfs://SERVER/EXPORT")]
    Export,
    /// The URL has a user or a password before the server.
    #[error(
        "NFS knows no names and passwords; give the user with ?uid= and gid= (an @ in the export is written %40)"
    )]
    User,
    /// A parameter has an invalid value.
    #[error("{key}={value}: {why}")]
    Value {
        /// The name of the parameter.
        key: String,
        /// Its value.
        value: String,
        /// The reason.
        why: &'static str,
    },
    /// The parameter is unknown.
    #[error("{0}= is unknown; there are version, nfsport, mountport, uid, gid and autoreconnect")]
    Key(String),
}

/// Parameters that only affect how libnfs works inside.
const IDLE: [&str; 11] = [
    "readahead",
    "dircache",
    "auto-traverse-mounts",
    "tcp-syncnt",
    "debug",
    "if",
    "readdir-buffer",
    "rsize",
    "wsize",
    "timeo",
    "retrans",
];

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    /// The URL is invalid. (No error repeats the text before an `@`, which may be a password.)
    pub fn parse(url: &str) -> Result<Address, UrlError> {
        let rest = url.strip_prefix("nfs://").ok_or(UrlError::Scheme)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').ok_or(UrlError::Export)?;
        // What looks like a port may be the beginning of a password that contains a slash or a question mark.
        let has_colon = authority.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
        if authority.contains('@') || (has_colon && rest.contains('@')) {
            return Err(UrlError::User);
        }
        let (host, port) = split_port(authority)?;
        if host.is_empty() {
            return Err(UrlError::Host);
        }
        let mut address = Address {
            host: host.to_owned(),
            export: decoded(&format!("/{path}")),
            nfs_port: port,
            ..Address::default()
        };
        for word in query.split('&').filter(|word| !word.is_empty()) {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            address.take(key, value)?;
        }
        if address.version == Version::Four && address.mount_port.is_some() {
            address.idle.push("mountport".to_owned());
        }
        Ok(address)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), UrlError> {
        let wrong = |why| UrlError::Value { key: key.to_owned(), value: value.to_owned(), why };
        let port = || match value.parse::<u16>() {
            Ok(port) if port > 0 => Ok(Some(port)),
            _ => Err(wrong("a port is a number from 1 to 65535")),
        };
        let number = || value.parse::<u32>().map(Some).map_err(|_| wrong("a number is needed"));
        match key {
            "version" | "vers" => {
                self.version = match value {
                    "3" => Version::Three,
                    "4" | "4.1" => Version::Four,
                    _ => return Err(wrong("this engine speaks version 3 and, as version=4, version 4.1")),
                }
            }
            "nfsport" | "port" => self.nfs_port = port()?,
            "mountport" => self.mount_port = port()?,
            "uid" => self.uid = number()?,
            "gid" => self.gid = number()?,
            "autoreconnect" => {
                self.stays_broken = value.parse::<i64>().map_err(|_| wrong("a number is needed"))? == 0;
            }
            "sec" if value == "sys" => {}
            "sec" => {
                return Err(wrong(
                    "this engine identifies itself only by the numbers of user and group, not with Kerberos; use sec=sys",
                ));
            }
            "xprtsec" if value == "none" => {}
            "xprtsec" => return Err(wrong("connections are not encrypted")),
            _ if IDLE.contains(&key) => self.idle.push(key.to_owned()),
            _ => return Err(UrlError::Key(key.to_owned())),
        }
        Ok(())
    }
}

/// Splits a server into its name and its optional port: `host`, `host:2049`, `[::1]:2049`.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), UrlError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(UrlError::Host)?;
            (host, rest.strip_prefix(':'))
        }
        // An IPv6 address without brackets has several colons and no port.
        None if authority.matches(':').count() > 1 => (authority, None),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let Some(port) = port else { return Ok((host, None)) };
    match port.parse::<u16>() {
        Ok(number) if number > 0 => Ok((host, Some(number))),
        _ => Err(UrlError::Value {
            key: "port".to_owned(),
            value: port.to_owned(),
            why: "a port is a number from 1 to 65535",
        }),
    }
}

/// Decodes percent-encoded characters of a path.
fn decoded(path: &str) -> String {
    let (bytes, mut plain) = (path.as_bytes(), Vec::with_capacity(path.len()));
    let mut at = 0;
    while at < bytes.len() {
        let code = path.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 3;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(plain).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let all = Address::parse(
            "nfs://h:2050/a/b%20c?version=3&mountport=12&uid=5&gid=6&autoreconnect=0&readahead=9",
        );
        let expected = Address {
            host: "h".into(),
            export: "/a/b c".into(),
            version: Version::Three,
            nfs_port: Some(2050),
            mount_port: Some(12),
            uid: Some(5),
            gid: Some(6),
            stays_broken: true,
            source: None,
            idle: vec!["readahead".into()],
        };
        assert_eq!(all, Ok(expected));
        let host = |url| Address::parse(url).map(|address| (address.host, address.nfs_port));
        assert_eq!(host("nfs://[::1]:7/x"), Ok(("::1".into(), Some(7))));
        assert_eq!(host("nfs://fe80::1/x"), Ok(("fe80::1".into(), None)));
        assert_eq!(host("nfs://[::1]/x?nfsport=8"), Ok(("::1".into(), Some(8))));
        let version =
            |words: &str| Address::parse(&format!("nfs://h/x?{words}")).map(|address| address.version);
        assert_eq!((version("version=4"), version("vers=4.1")), (Ok(Version::Four), Ok(Version::Four)));
        let idle = Address::parse("nfs://h/x?version=4&mountport=5").unwrap().idle;
        assert_eq!(idle, ["mountport"], "version 4 has no mount protocol");
        assert_eq!(Address::parse("nfs://h/").unwrap().export, "/");
        assert_eq!(Address::parse("nfs://[::1]/at@home").unwrap().export, "/at@home");
        assert_eq!(Address::parse("nfs://h:7/at%40home").unwrap().export, "/at@home");
    }

    #[test]
    fn invalid_urls_are_reported_without_their_secrets() {
        for (url, words) in [
            ("http://h/x", "it must be nfs://SERVER/EXPORT"),
            ("nfs:///x", "the server is missing"),
            ("nfs://h", "the export is missing"),
            ("nfs://me:sesame@h/x", "knows no names and passwords"),
            ("nfs://me:ses/ame@h/x", "knows no names and passwords"),
            ("nfs://me:s/esame?@h/x", "an @ in the export is written %40"),
            (
                "nfs://h/x?version=4.0",
                "version=4.0: this engine speaks version 3 and, as version=4, version 4.1",
            ),
            ("nfs://h/x?nfsport=0", "nfsport=0: a port is a number"),
            ("nfs://h:y/x", "port=y: a port is a number"),
            ("nfs://h/x?uid=me", "uid=me: a number is needed"),
            ("nfs://h/x?sec=krb5", "sec=krb5: this engine identifies itself"),
            ("nfs://h/x?colour=red", "colour= is unknown"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("ses"), "{url}: {error}");
        }
    }
}
