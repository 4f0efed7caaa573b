//! The first bytes of both ends: so many that whatever else listens there has a whole message to refuse, and that each end
//! can tell what the other one is.

use crate::message::VERSION;
use std::io::{self, Read, Write};

/// The length of the greeting.
const LENGTH: usize = 64;
/// What it begins with.
const NAME: &str = "iolite remote ";
/// The least that others say before they wait for an answer.
const ENOUGH: usize = 4;

/// Who is at the other end, if it is no Iolite of the same protocol.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stranger {
    #[error("a fio is at the other end; its protocol is not spoken, and both ends have to be Iolite")]
    Fio,
    #[error(
        "the other end speaks version {0} of the protocol, this one version {VERSION}; both ends have to have the same Iolite"
    )]
    Version(u32),
    #[error("whatever is at the other end is no Iolite")]
    Other,
    #[error("no answer: {0}")]
    Silent(io::Error),
    #[error("the other end has closed the connection without a word; is it an Iolite?")]
    Closed,
}

/// Tells the other end who this is.
pub(crate) fn send(to: &mut dyn Write) -> Result<(), Stranger> {
    let mut bytes = [0; LENGTH];
    let text = format!("{NAME}{VERSION}\n");
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    to.write_all(&bytes).map_err(Stranger::Silent)
}

/// Reads who is at the other end.
pub(crate) fn receive(from: &mut dyn Read) -> Result<(), Stranger> {
    let mut bytes = Vec::with_capacity(LENGTH);
    while bytes.len() < LENGTH {
        let mut more = [0; LENGTH];
        let room = LENGTH - bytes.len();
        match from.read(&mut more[..room]) {
            Ok(0) if bytes.is_empty() => return Err(Stranger::Closed),
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&more[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if !bytes.is_empty() && error.kind() != io::ErrorKind::TimedOut => break,
            Err(error) => return Err(Stranger::Silent(error)),
        }
        // Whoever is no Iolite may wait for an answer before it says as much.
        let common = bytes.len().min(NAME.len());
        if bytes.len() >= ENOUGH && bytes[..common] != NAME.as_bytes()[..common] {
            break;
        }
    }
    judge(&bytes)
}

fn judge(bytes: &[u8]) -> Result<(), Stranger> {
    let Some(rest) = bytes.strip_prefix(NAME.as_bytes()) else {
        return Err(if is_fio(bytes) { Stranger::Fio } else { Stranger::Other });
    };
    let digits: String = rest.iter().map(|&byte| char::from(byte)).take_while(char::is_ascii_digit).collect();
    match digits.parse() {
        Ok(VERSION) if bytes.len() == LENGTH => Ok(()),
        Ok(version) if version != VERSION => Err(Stranger::Version(version)),
        _ => Err(Stranger::Other),
    }
}

/// What a fio says begins with the version of its protocol (113 in fio 3.41) and the number of a command, in two bytes each,
/// the lower one first.
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
        assert!(hears(b"GET / HTTP/1.1\r\n").contains("no Iolite"));
        assert!(hears(b"\x16\x03\x01\x02\x00").contains("no Iolite"));
        assert!(hears(&own[..20]).contains("no Iolite"));
        assert!(hears(b"").contains("without a word"));
    }
}
