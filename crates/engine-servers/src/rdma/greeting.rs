//! The private data that the ends attach to the connection request, to its answer, and to a refusal. A peer that
//! sends anything else is another program.
//!
//! Numbers are big-endian. A greeting has 56 bytes, the maximum for a connection request over InfiniBand:
//!
//! | bytes | content |
//! |---|---|
//! | 0 | `iolrdma` and the version |
//! | 8 | the verb (0 write, 1 read, 2 send, 3 recv), chosen by the client and repeated by the server; 3 zeros |
//! | 12 | the key of the mailbox |
//! | 16 | the size of every block; 0 = they differ |
//! | 24 | the address of the mailbox |
//! | 32 | the address of the server's memory; 0 = this is a client |
//! | 40 | its length |
//! | 48 | its key; 4 zeros |
//!
//! A refusal has the same first 8 bytes, the code of a [`Reason`] in the next 8, then its parameter.

use iolite_options::engines::Verb;

/// The first bytes of a greeting.
const MAGIC: [u8; 7] = *b"iolrdma";
/// The version of the format.
const VERSION: u8 = 1;

/// The length of a greeting in bytes.
pub(super) const LENGTH: usize = 56;

/// The parameters of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Greeting {
    /// The operation of the client.
    pub verb: Verb,
    /// The size of every block in bytes; 0 = sizes differ.
    pub block: u64,
    /// The mailbox of the sender of the greeting.
    pub mailbox: Place,
    /// The memory of a server, for reads and writes of the client.
    pub memory: Place,
    /// Its length in bytes.
    pub length: u64,
}

/// An address in the memory of one end, with its remote key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub address: u64,
    pub key: u32,
}

/// Why a server refuses a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The server has this other version.
    Version(u64),
    /// The server's blocks have this size in bytes, which is not the client's; 0 = sizes differ.
    Block(u64),
    /// The server's memory has this many bytes, and no room for a block of the client.
    Memory(u64),
    /// The server verifies what it receives, but would receive nothing.
    Verification,
    /// The server failed, and reports why itself.
    Failure,
}

/// Private data that is not a greeting of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strange {
    /// It is not from this program.
    Foreign,
    /// It is from another version of this program.
    Version(u8),
}

impl Greeting {
    /// The encoded form.
    pub(super) fn bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&head());
        bytes[8] = Verb::ALL.iter().position(|&verb| verb == self.verb).unwrap_or_default() as u8;
        bytes[12..16].copy_from_slice(&self.mailbox.key.to_be_bytes());
        for (at, number) in
            [(16, self.block), (24, self.mailbox.address), (32, self.memory.address), (40, self.length)]
        {
            bytes[at..at + 8].copy_from_slice(&number.to_be_bytes());
        }
        bytes[48..52].copy_from_slice(&self.memory.key.to_be_bytes());
        bytes
    }

    /// Decodes received data, which may be padded with zeros.
    ///
    /// # Errors
    /// It is not a greeting of this version.
    pub(super) fn of(received: &[u8]) -> Result<Greeting, Strange> {
        let rest = body(received)?;
        let number =
            |at: usize| rest.get(at - 8..at).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let key = |at: usize| {
            rest.get(at - 8..at - 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
        };
        let verb = rest.first().and_then(|&verb| Verb::ALL.get(usize::from(verb)).copied());
        let found = || {
            Some(Greeting {
                verb: verb?,
                block: number(16)?,
                mailbox: Place { address: number(24)?, key: key(12)? },
                memory: Place { address: number(32)?, key: key(48)? },
                length: number(40)?,
            })
        };
        found().ok_or(Strange::Foreign)
    }
}

impl Reason {
    /// The encoded form.
    pub(super) fn bytes(self) -> [u8; 24] {
        let (code, number) = match self {
            Reason::Version(version) => (0u64, version),
            Reason::Block(bytes) => (1, bytes),
            Reason::Memory(bytes) => (2, bytes),
            Reason::Verification => (3, 0),
            Reason::Failure => (4, 0),
        };
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&head());
        bytes[8..16].copy_from_slice(&code.to_be_bytes());
        bytes[16..].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    /// Decodes received data, which may be padded with zeros; `None` = it is not from this program.
    pub(super) fn of(received: &[u8]) -> Option<Reason> {
        let rest = match body(received) {
            Ok(rest) => rest,
            Err(Strange::Version(version)) => return Some(Reason::Version(version.into())),
            Err(Strange::Foreign) => return None,
        };
        let number =
            |at: usize| rest.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let value = number(8)?;
        Some(match number(0)? {
            0 => Reason::Version(value),
            1 => Reason::Block(value),
            2 => Reason::Memory(value),
            3 => Reason::Verification,
            _ => Reason::Failure,
        })
    }
}

fn head() -> [u8; 8] {
    let mut head = [VERSION; 8];
    head[..7].copy_from_slice(&MAGIC);
    head
}

/// The data after the first 8 bytes, if the version is the one of this program.
fn body(received: &[u8]) -> Result<&[u8], Strange> {
    match received.strip_prefix(&MAGIC) {
        Some([VERSION, rest @ ..]) => Ok(rest),
        Some([version, ..]) => Err(Strange::Version(*version)),
        _ => Err(Strange::Foreign),
    }
}

/// The version of this program's greetings.
pub(super) fn version() -> u64 {
    VERSION.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Greeting {
        Greeting {
            verb: Verb::Receive,
            block: 4096,
            mailbox: Place { address: 0x7f00_1234_5678, key: 0xdead_beef },
            memory: Place { address: 0x7f00_0000_1000, key: 7 },
            length: 1 << 20,
        }
    }

    #[test]
    fn greetings_arrive_with_zeros_behind_them() {
        for verb in Verb::ALL {
            let said = Greeting { verb, ..some() };
            let mut received = said.bytes().to_vec();
            assert_eq!(Greeting::of(&received), Ok(said));
            received.resize(196, 0);
            assert_eq!(Greeting::of(&received), Ok(said));
        }
    }

    #[test]
    fn strangers_are_distinguished_from_other_versions() {
        assert_eq!(Greeting::of(&[]), Err(Strange::Foreign));
        assert_eq!(Greeting::of(&[0; 56]), Err(Strange::Foreign));
        let mut bytes = some().bytes();
        bytes[8] = 9;
        assert_eq!(Greeting::of(&bytes), Err(Strange::Foreign), "no such verb");
        assert_eq!(Greeting::of(&bytes[..55]), Err(Strange::Foreign));
        bytes[7] = 2;
        assert_eq!(Greeting::of(&bytes), Err(Strange::Version(2)));
        assert_eq!(Reason::of(&bytes), Some(Reason::Version(2)));
    }

    #[test]
    fn refusals_say_why() {
        for reason in [
            Reason::Version(3),
            Reason::Block(4096),
            Reason::Memory(1 << 40),
            Reason::Verification,
            Reason::Failure,
        ] {
            let mut received = reason.bytes().to_vec();
            received.resize(148, 0);
            assert_eq!(Reason::of(&received), Some(reason));
        }
        assert_eq!(Reason::of(b"no"), None);
        assert_eq!(Reason::of(&[]), None);
    }
}
