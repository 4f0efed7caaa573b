//! The first bytes from both ends: enough for a foreign server to see a complete message to reject, and for each end to
//! recognise the other.

use crate::message::VERSION;
use crate::stream::Stream;
use std::io::{self, Read, Write};

/// The length of the greeting.
const LENGTH: usize = 64;
/// The beginning of a greeting.
const NAME: &str = "iolite remote ";
/// The least that other programs send before they wait for an answer.
const ENOUGH: usize = 4;
/// Instead of a version: the sender accepts only clients with keys.
const NEEDS_KEYS: &str = "needs keys";
/// Instead of a version: the sender has too many connections.
const IS_FULL: &str = "is full";
/// Instead of a version: the sender cannot read its own keys.
const LACKS_KEYS: &str = "lacks keys";

/// The other end, if it is not an Iolite with the same protocol.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stranger {
    #[error("a fio is at the other end; its protocol is not spoken, and both ends have to be Iolite")]
    Fio,
    #[error(
        "the other end speaks version {0} of the protocol, this one version {VERSION}; install the same Iolite at both ends (iolite \
         --version)"
    )]
    Version(u32),
    #[error(
        "whatever is at the other end is not an Iolite; check its address and port: an agent is what iolite --server starts, and \
         only --client of another Iolite speaks to it"
    )]
    Other,
    #[error("an Iolite without keys is at the other end")]
    Plain,
    #[error(
        "the client talks without protection, and this server has keys: give the client its keys (--keys=FILE), or start the \
         server with --insecure on a network where everybody is trusted"
    )]
    PlainClient,
    #[error(
        "the server talks without protection (--insecure), and this end has keys: start the server with its keys \
         (--keys=FILE), or say --insecure here as well on a network where everybody is trusted"
    )]
    PlainServer,
    #[error(
        "the server talks to nobody without keys: give this end the coordinator's (--keys=FILE, or IOLITE_KEYS; iolite keys \
         new makes them), and leave --insecure out"
    )]
    NeedsKeys,
    #[error(
        "the client talks TLS, and this server was told --insecure: start the server with its keys (--keys=FILE), or say \
         --insecure at the client as well on a network where everybody is trusted"
    )]
    Tls,
    #[error(
        "the server cannot use its own keys (they are missing, damaged, or expired); its own message says why"
    )]
    LacksKeys,
    #[error("the server has too many connections; try again later")]
    Full,
    #[error("{0}")]
    Keys(String),
    #[error("no answer: {0}")]
    Silent(io::Error),
    #[error("the other end has closed the connection without a word; is it an Iolite?")]
    Closed,
}

/// Sends the greeting.
pub(crate) fn send(to: &mut dyn Write) -> Result<(), Stranger> {
    to.write_all(&greeting(&VERSION.to_string())).map_err(Stranger::Silent)
}

/// Why a client is not served. The message goes to an Iolite without encryption, or to one that understands it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    NeedsKeys,
    LacksKeys,
    IsFull,
}

/// Tells the other end why it is not served. The message may not arrive.
pub(crate) fn refuse(stream: &Stream, why: Refusal) {
    let words = match why {
        Refusal::NeedsKeys => NEEDS_KEYS,
        Refusal::LacksKeys => LACKS_KEYS,
        Refusal::IsFull => IS_FULL,
    };
    if stream.is_writable() {
        // These few bytes fit at once, or not at all.
        let _ = stream.write(&greeting(words));
    }
}

fn greeting(what: &str) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let text = format!("{NAME}{what}\n");
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Reads the other end's greeting.
pub(crate) fn receive(from: &mut dyn Read) -> Result<(), Stranger> {
    judge(&gather(from)?)
}

/// Reads the first bytes of the other end: if they are not TLS, enough to identify it.
pub(crate) fn first_bytes(stream: &Stream) -> Result<Vec<u8>, Stranger> {
    struct From<'a>(&'a Stream);
    impl Read for From<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.0.read(bytes)
        }
    }
    gather(&mut From(stream))
}

fn gather(from: &mut dyn Read) -> Result<Vec<u8>, Stranger> {
    let mut bytes = Vec::with_capacity(LENGTH);
    while bytes.len() < LENGTH {
        let mut more = [0; LENGTH];
        let room = LENGTH - bytes.len();
        match from.read(&mut more[..room]) {
            Ok(0) if bytes.is_empty() => return Err(Stranger::Closed),
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&more[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The key of one end is refused.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Stranger::Keys(error.to_string()));
            }
            Err(error) if !bytes.is_empty() && error.kind() != io::ErrorKind::TimedOut => break,
            Err(error) => return Err(Stranger::Silent(error)),
        }
        // A program other than Iolite may wait for an answer before it sends this many bytes.
        let common = bytes.len().min(NAME.len());
        if bytes.len() >= ENOUGH && bytes[..common] != NAME.as_bytes()[..common] {
            break;
        }
    }
    Ok(bytes)
}

/// Whether these are the first bytes of TLS: a record of one of its four kinds.
pub(crate) fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x14..=0x17, 0x03, ..])
}

/// The program that sends these bytes instead of TLS.
pub(crate) fn stranger(bytes: &[u8]) -> Stranger {
    judge(bytes).err().unwrap_or(Stranger::Plain)
}

fn judge(bytes: &[u8]) -> Result<(), Stranger> {
    let Some(rest) = bytes.strip_prefix(NAME.as_bytes()) else {
        return Err(match bytes {
            _ if is_tls(bytes) => Stranger::Tls,
            _ if is_fio(bytes) => Stranger::Fio,
            _ => Stranger::Other,
        });
    };
    for (words, why) in
        [(NEEDS_KEYS, Stranger::NeedsKeys), (LACKS_KEYS, Stranger::LacksKeys), (IS_FULL, Stranger::Full)]
    {
        if rest.starts_with(words.as_bytes()) {
            return Err(why);
        }
    }
    let digits: String = rest.iter().map(|&byte| char::from(byte)).take_while(char::is_ascii_digit).collect();
    match digits.parse() {
        Ok(VERSION) if bytes.len() == LENGTH => Ok(()),
        Ok(version) if version != VERSION => Err(Stranger::Version(version)),
        _ => Err(Stranger::Other),
    }
}

/// A message of fio begins with the version of its protocol (113 in fio 3.41) and the number of a command, in two bytes
/// each, the lower one first.
fn is_fio(bytes: &[u8]) -> bool {
    matches!(bytes, [version, 0, command, 0, ..] if (50..=200).contains(version) && *command < 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(mut bytes: &[u8]) -> String {
        receive(&mut bytes).map_or_else(|why| why.to_string(), |()| "friend".to_owned())
    }

    #[test]
    fn everybody_is_recognised() {
        let mut own = Vec::new();
        send(&mut own).unwrap();
        assert_eq!(hears(&own), "friend");
        let mut newer = own.clone();
        newer[NAME.len()] = b'7';
        assert!(hears(&newer).contains("speaks version 7 of the protocol, this one version 1"));
        assert!(hears(b"q\0\x05\0\0\0\0\0\0\0\0\0").contains("a fio is at the other end"));
        assert!(hears(b"q\0\x0a\0").contains("a fio"));
        assert!(hears(b"GET / HTTP/1.1\r\n").contains("not an Iolite"));
        assert!(hears(b"\x16\x03\x01\x02\x00").contains("the client talks TLS"));
        assert!(hears(&greeting(NEEDS_KEYS)).contains("nobody without keys"));
        assert!(hears(&greeting(LACKS_KEYS)).contains("its own keys"));
        assert!(hears(&greeting(IS_FULL)).contains("too many connections"));
        assert!(hears(&own[..20]).contains("not an Iolite"));
        assert!(hears(b"").contains("without a word"));
    }
}
