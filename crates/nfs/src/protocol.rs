//! The procedures of NFS version 3 (RFC 1813): their numbers and answers.

use crate::NfsError;
use crate::rpc::Program;
use crate::xdr::Reader;

pub(crate) const NFS: Program = Program { number: 100_003, version: 3 };

/// The procedures that this client uses.
pub(crate) mod procedure {
    pub(crate) const GETATTR: u32 = 1;
    pub(crate) const SETATTR: u32 = 2;
    pub(crate) const LOOKUP: u32 = 3;
    pub(crate) const READ: u32 = 6;
    pub(crate) const WRITE: u32 = 7;
    pub(crate) const CREATE: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const REMOVE: u32 = 12;
    pub(crate) const READDIRPLUS: u32 = 17;
    pub(crate) const FSSTAT: u32 = 18;
    pub(crate) const FSINFO: u32 = 19;
    pub(crate) const COMMIT: u32 = 21;
}

/// The maximum length of a handle in bytes.
pub(crate) const HANDLE: usize = 64;

/// Kinds of directory entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a socket or a pipe.
    Other,
}

/// The attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The kind of the file.
    pub kind: Kind,
    /// The size of the file in bytes.
    pub size: u64,
    /// The storage that the file occupies in bytes.
    pub used: u64,
}

impl Attributes {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Attributes, NfsError> {
        let kind = match reader.u32()? {
            1 => Kind::File,
            2 => Kind::Directory,
            5 => Kind::Link,
            _ => Kind::Other,
        };
        // Mode, links, user, group.
        reader.take(16)?;
        let (size, used) = (reader.u64()?, reader.u64()?);
        // Device, file system, number, three times.
        reader.take(8 + 8 + 8 + 24)?;
        Ok(Attributes { kind, size, used })
    }

    /// Reads optional attributes; `None` = the server has left them out.
    pub(crate) fn after(reader: &mut Reader<'_>) -> Result<Option<Attributes>, NfsError> {
        Ok(if reader.boolean()? { Some(Attributes::read(reader)?) } else { None })
    }
}

/// Skips the attributes of a file before and after a change.
pub(crate) fn skip_change(reader: &mut Reader<'_>) -> Result<(), NfsError> {
    if reader.boolean()? {
        reader.take(24)?;
    }
    Attributes::after(reader)?;
    Ok(())
}

/// A server's verifier, which changes when the server restarts.
pub(crate) type Verifier = [u8; 8];

pub(crate) fn verifier(reader: &mut Reader<'_>) -> Result<Verifier, NfsError> {
    let bytes = reader.take(8)?;
    Ok(bytes.try_into().expect("there are eight"))
}

/// Reads the beginning of an answer to a read: whether the file ends after the data, and how much data follows.
pub(crate) fn read_head(reader: &mut Reader<'_>) -> Result<(bool, usize), NfsError> {
    Attributes::after(reader)?;
    let count = reader.u32()? as usize;
    let is_end = reader.boolean()?;
    let length = reader.u32()? as usize;
    if length != count {
        return Err(NfsError::Malformed);
    }
    Ok((is_end, length))
}
