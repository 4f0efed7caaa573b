//! The procedures of NFS version 3 (RFC 1813): their numbers, answers and errors.

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

/// The status of a server that is busy with the request: try again later.
pub(crate) const JUKEBOX: u32 = 10008;

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

/// The meaning of a status: the system's error number, the protocol's name, and a description.
pub(crate) fn status(code: u32) -> (i32, &'static str, &'static str) {
    match code {
        1 => (libc::EPERM, "NFS3ERR_PERM", "operation not permitted"),
        2 => (libc::ENOENT, "NFS3ERR_NOENT", "no such file or directory"),
        5 => (libc::EIO, "NFS3ERR_IO", "input or output error of the server"),
        6 => (libc::ENXIO, "NFS3ERR_NXIO", "no such device"),
        13 => (libc::EACCES, "NFS3ERR_ACCES", "permission denied to this user"),
        17 => (libc::EEXIST, "NFS3ERR_EXIST", "it exists already"),
        18 => (libc::EXDEV, "NFS3ERR_XDEV", "it is on another device"),
        19 => (libc::ENODEV, "NFS3ERR_NODEV", "no such device"),
        20 => (libc::ENOTDIR, "NFS3ERR_NOTDIR", "not a directory"),
        21 => (libc::EISDIR, "NFS3ERR_ISDIR", "it is a directory"),
        22 => (libc::EINVAL, "NFS3ERR_INVAL", "the server does not accept this argument"),
        27 => (libc::EFBIG, "NFS3ERR_FBIG", "the file would be too large"),
        28 => (libc::ENOSPC, "NFS3ERR_NOSPC", "no space left on the server"),
        30 => (libc::EROFS, "NFS3ERR_ROFS", "the export can only be read"),
        31 => (libc::EMLINK, "NFS3ERR_MLINK", "too many links"),
        63 => (libc::ENAMETOOLONG, "NFS3ERR_NAMETOOLONG", "the name is too long"),
        66 => (libc::ENOTEMPTY, "NFS3ERR_NOTEMPTY", "the directory is not empty"),
        69 => (libc::EDQUOT, "NFS3ERR_DQUOT", "the quota is used up"),
        70 => (libc::ESTALE, "NFS3ERR_STALE", "the file no longer exists"),
        71 => (libc::EREMOTE, "NFS3ERR_REMOTE", "it is on another server"),
        10001 => (libc::ESTALE, "NFS3ERR_BADHANDLE", "the server does not know this handle"),
        10003 => (libc::EIO, "NFS3ERR_BAD_COOKIE", "the directory has changed meanwhile"),
        10004 => (libc::EOPNOTSUPP, "NFS3ERR_NOTSUPP", "the server cannot do that"),
        10005 => (libc::EINVAL, "NFS3ERR_TOOSMALL", "the buffer is too small"),
        10006 => (libc::EIO, "NFS3ERR_SERVERFAULT", "the server has an internal error"),
        10007 => (libc::EINVAL, "NFS3ERR_BADTYPE", "the server does not support this type of file"),
        JUKEBOX => (libc::EAGAIN, "NFS3ERR_JUKEBOX", "the server is busy with it"),
        _ => (libc::EIO, "an error", "the protocol does not know it"),
    }
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
