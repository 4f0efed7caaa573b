//! What has gone wrong, in words.

use super::abi::{event, status};
use super::greeting::{Reason, Strange};
use iolite_options::engines::Verb;

/// Who has said something else than a greeting.
pub(super) fn stranger(strange: Strange) -> String {
    match strange {
        Strange::Foreign => {
            "the other end is another program (this engine talks to its own kind only, not to fio)".to_owned()
        }
        Strange::Version(version) => format!(
            "the other end is of another release, and speaks version {version} where this one speaks version {}; use the \
             same release at both ends",
            super::greeting::version()
        ),
    }
}

/// Why there is no connection: an error number and words for what has happened to an end.
pub(super) fn of_event(kind: i32, status: i32, refusal: Option<Reason>) -> (i32, String) {
    // Where it is an error of the system, it says more.
    let errno = if (-4095..0).contains(&status) { -status } else { 0 };
    let or = |otherwise| if errno == 0 { otherwise } else { errno };
    let text = |what: &str| match errno {
        0 => what.to_owned(),
        errno => {
            let error = std::io::Error::from_raw_os_error(errno);
            format!("{what} ({})", iolite_types::describe_error(&error))
        }
    };
    match kind {
        event::ADDRESS_ERROR => {
            (or(libc::EHOSTUNREACH), text("no RDMA device leads to this address, or no machine has it"))
        }
        event::ROUTE_ERROR => (or(libc::EHOSTUNREACH), text("there is no route to it for RDMA")),
        event::UNREACHABLE => (
            or(libc::ETIMEDOUT),
            text("no answer: no RDMA device is there, or the way is closed (RoCE needs UDP port 4791)"),
        ),
        event::REJECTED => (libc::ECONNREFUSED, refused(status, refusal)),
        event::DISCONNECTED => (libc::ECONNRESET, "the other end has gone away again".to_owned()),
        event::DEVICE_REMOVAL => (libc::ENODEV, "the RDMA device has been removed".to_owned()),
        event::CONNECT_ERROR => (or(libc::ECONNREFUSED), text("connecting failed")),
        other => (or(libc::EPROTO), text(&format!("event {other} came, which does not belong here"))),
    }
}

/// Why a server has refused.
fn refused(status: i32, reason: Option<Reason>) -> String {
    match reason {
        Some(Reason::Version(version)) => stranger(Strange::Version(version.min(255) as u8)),
        Some(Reason::Block(0)) => {
            "the blocks of the server differ in size; messages need one bs, the same at both ends".to_owned()
        }
        Some(Reason::Block(bytes)) => {
            format!(
                "the blocks of the server have {bytes} bytes; messages need one bs, the same at both ends"
            )
        }
        Some(Reason::Memory(bytes)) => {
            format!("the server has memory of {bytes} bytes, less than a block; raise its bs or its iodepth")
        }
        Some(Reason::Verification) => {
            "the server is to verify what it receives, and with this verb it receives nothing; use \
                                       verb=send, or leave verify out there"
                .to_owned()
        }
        Some(Reason::Failure) => "the server could not take the connection; see its own message".to_owned(),
        // A reason of InfiniBand: no such service.
        None if status == 8 || status == -libc::ECONNREFUSED => {
            "nobody waits there (a job with rw=read and this port is to be started first)".to_owned()
        }
        None => format!(
            "the other end refuses (reason {status}): it serves another client, or is another program"
        ),
    }
}

/// What a client is told of whom nothing is received.
pub(super) fn nothing_to_verify(verb: Verb) -> String {
    let verb = verb.keyword();
    format!(
        "verify: the client asks for verb={verb}, with which this end receives nothing that could be verified; use verb=send"
    )
}

/// A block that does not fit into the memory of a server.
pub(super) fn too_little_memory(block: u64, memory: u64) -> String {
    format!(
        "the blocks of the client have up to {block} bytes, and the memory of this end has {memory}; raise bs or iodepth"
    )
}

/// Blocks that differ.
pub(super) fn other_blocks(own: u64, far: u64) -> String {
    let size = |bytes: u64| if bytes == 0 { "different sizes".to_owned() } else { format!("{bytes} bytes") };
    format!(
        "messages need one bs, the same at both ends: the blocks of this end have {}, those of the other {}",
        size(own),
        size(far)
    )
}

/// A request that failed: an error number and words. `library` are those of the library.
pub(super) fn of_status(found: i32, library: &str) -> (i32, String) {
    match found {
        status::TOO_LONG => {
            (libc::EMSGSIZE, "a message is longer than the block that receives it".to_owned())
        }
        status::FLUSHED => (libc::ECONNRESET, GONE.to_owned()),
        status::REMOTE_INVALID => {
            (libc::EREMOTEIO, "the other end refuses: the block does not fit there".to_owned())
        }
        status::REMOTE_ACCESS => {
            (libc::EREMOTEIO, "the other end refuses: its memory is not there any more".to_owned())
        }
        status::NO_ANSWER => (libc::ETIMEDOUT, "the other end does not answer any more".to_owned()),
        status::NOT_READY => (libc::ETIMEDOUT, "the other end receives nothing any more".to_owned()),
        _ => (libc::EIO, format!("a request failed: {library}")),
    }
}

/// The connection has ended without a goodbye.
pub(super) const GONE: &str = "the other end is gone without having said that it is done";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_say_what_helps() {
        let (errno, why) = of_event(event::REJECTED, 8, None);
        assert_eq!(errno, libc::ECONNREFUSED);
        assert!(why.starts_with("nobody waits there"), "{why}");
        assert!(of_event(event::REJECTED, 28, None).1.contains("is another program"));
        assert!(of_event(event::REJECTED, 28, Some(Reason::Block(512))).1.contains("have 512 bytes"));
        let (errno, why) = of_event(event::ADDRESS_ERROR, -libc::ENODEV, None);
        assert_eq!(errno, libc::ENODEV);
        assert!(why.ends_with("(No such device)"), "{why}");
        assert_eq!(of_event(event::UNREACHABLE, -libc::ETIMEDOUT, None).0, libc::ETIMEDOUT);
        assert_eq!(of_event(event::DEVICE_REMOVAL, 0, None).0, libc::ENODEV);
    }
}
