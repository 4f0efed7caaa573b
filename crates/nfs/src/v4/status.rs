//! The statuses in answers of NFS 4.1 (RFC 8881, section 15.1).

use crate::protocol::BUSY;

pub(crate) const GRACE: u32 = 10013;
pub(super) const MINOR_VERSION_MISMATCH: u32 = 10021;
pub(super) const STALE_CLIENT: u32 = 10022;
pub(super) const ATTRIBUTE_NOT_SUPPORTED: u32 = 10032;
pub(super) const BAD_SESSION: u32 = 10052;
pub(super) const BAD_SLOT: u32 = 10053;
pub(super) const COMPLETE_ALREADY: u32 = 10054;
pub(super) const CONN_NOT_BOUND: u32 = 10055;
pub(super) const SEQ_MISORDERED: u32 = 10063;
pub(crate) const REQ_TOO_BIG: u32 = 10065;
pub(crate) const REP_TOO_BIG: u32 = 10066;
pub(crate) const RETRY_UNCACHED: u32 = 10068;
pub(super) const SEQ_FALSE_RETRY: u32 = 10076;
pub(super) const BAD_HIGH_SLOT: u32 = 10077;
pub(super) const DEAD_SESSION: u32 = 10078;

/// Whether a status says that the server does not know the state of an open file (any more).
pub(crate) fn has_lost_state(code: u32) -> bool {
    // EXPIRED, STALE_STATEID, OLD_STATEID, BAD_STATEID, ADMIN_REVOKED, DELEG_REVOKED.
    matches!(code, 10011 | 10023 | 10024 | 10025 | 10047 | 10087)
}

/// The meaning of a status: the system's error number, the protocol's name, and a description.
pub(crate) fn status(code: u32) -> (i32, &'static str, &'static str) {
    match code {
        1 => (libc::EPERM, "NFS4ERR_PERM", "operation not permitted"),
        2 => (libc::ENOENT, "NFS4ERR_NOENT", "no such file or directory"),
        5 => (libc::EIO, "NFS4ERR_IO", "input or output error of the server"),
        6 => (libc::ENXIO, "NFS4ERR_NXIO", "no such device"),
        13 => (libc::EACCES, "NFS4ERR_ACCESS", "permission denied to this user"),
        17 => (libc::EEXIST, "NFS4ERR_EXIST", "it exists already"),
        18 => (libc::EXDEV, "NFS4ERR_XDEV", "it is on another device"),
        20 => (libc::ENOTDIR, "NFS4ERR_NOTDIR", "not a directory"),
        21 => (libc::EISDIR, "NFS4ERR_ISDIR", "it is a directory"),
        22 => (libc::EINVAL, "NFS4ERR_INVAL", "the server does not accept this argument"),
        27 => (libc::EFBIG, "NFS4ERR_FBIG", "the file would be too large"),
        28 => (libc::ENOSPC, "NFS4ERR_NOSPC", "no space left on the server"),
        30 => (libc::EROFS, "NFS4ERR_ROFS", "the export can only be read"),
        31 => (libc::EMLINK, "NFS4ERR_MLINK", "too many links"),
        63 => (libc::ENAMETOOLONG, "NFS4ERR_NAMETOOLONG", "the name is too long"),
        66 => (libc::ENOTEMPTY, "NFS4ERR_NOTEMPTY", "the directory is not empty"),
        69 => (libc::EDQUOT, "NFS4ERR_DQUOT", "the quota is used up"),
        70 => (libc::ESTALE, "NFS4ERR_STALE", "the file no longer exists"),
        10001 => (libc::ESTALE, "NFS4ERR_BADHANDLE", "the server does not know this handle"),
        10003 => (libc::EIO, "NFS4ERR_BAD_COOKIE", "the directory has changed meanwhile"),
        10004 => (libc::EOPNOTSUPP, "NFS4ERR_NOTSUPP", "the server cannot do that"),
        10005 => (libc::EINVAL, "NFS4ERR_TOOSMALL", "the buffer is too small"),
        10006 => (libc::EIO, "NFS4ERR_SERVERFAULT", "the server has an internal error"),
        BUSY => (libc::EAGAIN, "NFS4ERR_DELAY", "the server is busy with it"),
        10011 => (libc::EIO, "NFS4ERR_EXPIRED", "the lease has run out"),
        10012 => (libc::EAGAIN, "NFS4ERR_LOCKED", "another client has locked it"),
        GRACE => (
            libc::EAGAIN,
            "NFS4ERR_GRACE",
            "the server has restarted and first waits for its earlier clients, often for 90 s; a longer nfs_timeout \
             outlasts that",
        ),
        10014 => (libc::ESTALE, "NFS4ERR_FHEXPIRED", "the server does not know this handle any more"),
        10015 => (libc::EACCES, "NFS4ERR_SHARE_DENIED", "another client has the file for itself"),
        10016 => (
            libc::EACCES,
            "NFS4ERR_WRONGSEC",
            "the server requires Kerberos, which this engine does not support; export it with sec=sys as well",
        ),
        10018 => (libc::ENFILE, "NFS4ERR_RESOURCE", "the server has no room for it"),
        10019 => (
            libc::EREMOTE,
            "NFS4ERR_MOVED",
            "its data is on another server, to which the server refers; name that one in nfs_url",
        ),
        MINOR_VERSION_MISMATCH => (
            libc::EPROTONOSUPPORT,
            "NFS4ERR_MINOR_VERS_MISMATCH",
            "the server speaks only another minor version, such as 4.0; version=4 of nfs_url is 4.1, and version=3 may \
             work",
        ),
        STALE_CLIENT => (libc::EIO, "NFS4ERR_STALE_CLIENTID", "the server does not know the client any more"),
        10023 => (libc::EIO, "NFS4ERR_STALE_STATEID", "the server does not know the open file any more"),
        10024 => (libc::EIO, "NFS4ERR_OLD_STATEID", "the state of the open file has changed meanwhile"),
        10025 => (libc::EIO, "NFS4ERR_BAD_STATEID", "the server does not know the open file"),
        10029 => (libc::EINVAL, "NFS4ERR_SYMLINK", "it is a symbolic link, which is not followed"),
        ATTRIBUTE_NOT_SUPPORTED => {
            (libc::EOPNOTSUPP, "NFS4ERR_ATTRNOTSUPP", "the server does not know this attribute")
        }
        10033 => (libc::EIO, "NFS4ERR_NO_GRACE", "the time in which files can be reclaimed is over"),
        10034 => (libc::EIO, "NFS4ERR_RECLAIM_BAD", "the server does not give the open file back"),
        10035 => (libc::EIO, "NFS4ERR_RECLAIM_CONFLICT", "another client has opened the file meanwhile"),
        10036 => (libc::EPROTO, "NFS4ERR_BADXDR", "the server cannot decode the call"),
        10038 => (
            libc::EACCES,
            "NFS4ERR_OPENMODE",
            "the file is open only for what the server permits to this user: it is not to be written, or not to be read",
        ),
        10040 => (libc::EINVAL, "NFS4ERR_BADCHAR", "the server does not accept the name"),
        10041 => (libc::EINVAL, "NFS4ERR_BADNAME", "the server does not accept the name"),
        10044 => (libc::EPROTO, "NFS4ERR_OP_ILLEGAL", "the server does not know the operation"),
        10046 => (libc::EBUSY, "NFS4ERR_FILE_OPEN", "another client has it open"),
        10047 => (libc::EIO, "NFS4ERR_ADMIN_REVOKED", "the server's administrator has closed the file"),
        BAD_SESSION => (libc::EIO, "NFS4ERR_BADSESSION", "the server does not know the session any more"),
        BAD_SLOT => (libc::EIO, "NFS4ERR_BADSLOT", "the session has no such slot"),
        COMPLETE_ALREADY => (libc::EIO, "NFS4ERR_COMPLETE_ALREADY", "nothing is left to reclaim"),
        CONN_NOT_BOUND => {
            (libc::EIO, "NFS4ERR_CONN_NOT_BOUND_TO_SESSION", "the connection does not belong to the session")
        }
        SEQ_MISORDERED => (libc::EIO, "NFS4ERR_SEQ_MISORDERED", "calls are missing in a slot of the session"),
        REQ_TOO_BIG => (libc::EINVAL, "NFS4ERR_REQ_TOO_BIG", "the call is longer than the session permits"),
        REP_TOO_BIG => (libc::EINVAL, "NFS4ERR_REP_TOO_BIG", "the answer is longer than the session permits"),
        10067 => (libc::EINVAL, "NFS4ERR_REP_TOO_BIG_TO_CACHE", "the answer is too long to be kept"),
        RETRY_UNCACHED => (libc::EIO, "NFS4ERR_RETRY_UNCACHED_REP", "the answer was not kept"),
        10070 => (libc::EINVAL, "NFS4ERR_TOO_MANY_OPS", "the call has too many operations"),
        10071 => (libc::EPROTO, "NFS4ERR_OP_NOT_IN_SESSION", "the operation needs a session"),
        10074 => (libc::EBUSY, "NFS4ERR_CLIENTID_BUSY", "the client still has files open"),
        SEQ_FALSE_RETRY => (libc::EIO, "NFS4ERR_SEQ_FALSE_RETRY", "another call was in the slot before"),
        BAD_HIGH_SLOT => (libc::EIO, "NFS4ERR_BAD_HIGH_SLOT", "the session has no such slot"),
        DEAD_SESSION => (libc::EIO, "NFS4ERR_DEADSESSION", "the server ends the session"),
        10083 => (libc::EINVAL, "NFS4ERR_WRONG_TYPE", "it is not a regular file"),
        10087 => (libc::EIO, "NFS4ERR_DELEG_REVOKED", "the server has withdrawn the delegation"),
        _ => (libc::EIO, "", "this client does not know it"),
    }
}
