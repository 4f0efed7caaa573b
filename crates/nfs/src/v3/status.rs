//! The statuses in answers of NFS 3 (RFC 1813).

use crate::protocol::BUSY;

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
        BUSY => (libc::EAGAIN, "NFS3ERR_JUKEBOX", "the server is busy with it"),
        _ => (libc::EIO, "", "the protocol does not know it"),
    }
}
