//! Failed requests, and their remedies.

use iolite_types::describe_error;
use std::io;

/// The longest time that a request may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) seconds: f64,
    /// The option that sets it, of the job or of the cluster's configuration.
    pub(crate) option: &'static str,
}

/// A failed request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed<'a> {
    /// The place: `object o in pool p`.
    pub(crate) place: &'a str,
    /// The error number.
    pub(crate) errno: i32,
    /// Bytes requested.
    pub(crate) length: u64,
    /// Bytes moved.
    pub(crate) moved: u64,
    /// The time limit of the request.
    pub(crate) limit: Limit,
}

/// The message for a cluster that does not answer; `silence` describes for how long.
pub(crate) fn is_down(silence: &str) -> String {
    format!("{silence}: the cluster, or the part of it that has this, is down (see ceph -s)")
}

/// The message for a failed request.
pub(crate) fn in_words(failed: &Failed<'_>) -> String {
    let &Failed { place, errno, length, moved, limit } = failed;
    let why = match errno {
        libc::ENODATA => format!(
            "there are {moved} of these {length} bytes; a section with rw=write makes it longer, and so does this one with \
             create_only=1"
        ),
        libc::ENOENT => {
            "it does not exist; a section with rw=write creates it, and so does this one with create_only=1"
                .to_owned()
        }
        libc::ETIMEDOUT => is_down(&format!("no answer in {} s ({})", limit.seconds, limit.option)),
        libc::EFBIG => {
            "an object cannot be so large (osd_max_object_size, usually 128 MiB); use several with nrfiles="
                .to_owned()
        }
        libc::ENOSPC | libc::EDQUOT => "the pool is full (see ceph df)".to_owned(),
        libc::EPERM | libc::EACCES => {
            "the user has no permission for that (ceph auth get shows the permissions)".to_owned()
        }
        libc::ENOTCONN | libc::ESHUTDOWN => {
            "the cluster has put this client on its blocklist (ceph osd blocklist ls)".to_owned()
        }
        errno => describe_error(&io::Error::from_raw_os_error(errno)),
    };
    format!("{place}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_a_remedy() {
        let said = |errno| {
            in_words(&Failed {
                place: "object o in pool p",
                errno,
                length: 4096,
                moved: 100,
                limit: Limit { seconds: 2.5, option: "ceph_timeout" },
            })
        };
        assert!(said(libc::ENODATA).starts_with("object o in pool p: there are 100 of these 4096 bytes"));
        assert!(said(libc::ENOENT).contains("create_only=1"));
        assert!(said(libc::ETIMEDOUT).contains("no answer in 2.5 s (ceph_timeout)"));
        assert!(said(libc::EFBIG).contains("nrfiles="));
        assert!(said(libc::EIO).contains("Input/output error"));
    }
}
