//! Error messages.

use super::abi::{event, status};
use super::greeting::{Reason, Strange};
use iolite_options::engines::Verb;

/// The message for a peer that sent no valid greeting.
pub(super) fn stranger(strange: Strange) -> String {
    match strange {
        Strange::Foreign => {
            "the other end is another program (this engine talks to its own kind only, not to fio)".to_owned()
        }
        Strange::Version(version) => format!(
            "the other end is another release: it speaks version {version}, and this end version {}; use the \
             same release at both ends",
            super::greeting::version()
        ),
    }
}

/// Why a connection failed: the error number and the message for an event.
pub(super) fn of_event(kind: i32, status: i32, refusal: Option<Reason>) -> (i32, String) {
    // A negative status is a system error, which is more specific.
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
            text(
                "no answer: there is no RDMA device, or a firewall is in between (RoCE needs UDP port 4791)",
            ),
        ),
        event::REJECTED => (libc::ECONNREFUSED, refused(status, refusal)),
        event::DISCONNECTED => (libc::ECONNRESET, "the other end has disconnected".to_owned()),
        event::DEVICE_REMOVAL => (libc::ENODEV, "the RDMA device has been removed".to_owned()),
        event::CONNECT_ERROR => (or(libc::ECONNREFUSED), text("connecting failed")),
        other => (or(libc::EPROTO), text(&format!("unexpected event {other}"))),
    }
}

/// Why the server refused.
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
            "the server verifies what it receives, but with this verb it receives nothing; use \
             verb=send, or leave verify out there"
                .to_owned()
        }
        Some(Reason::Failure) => "the server could not take the connection; see its own message".to_owned(),
        // Reason 8 of InfiniBand: invalid service ID.
        None if status == 8 || status == -libc::ECONNREFUSED => {
            "nothing listens there (start the job with rw=read and this port first)".to_owned()
        }
        None => format!(
            "the other end refuses (reason {status}): it serves another client, or is another program"
        ),
    }
}

/// The error of a server that verifies, when the verb of the client sends it no data.
pub(super) fn nothing_to_verify(verb: Verb) -> String {
    let verb = verb.keyword();
    format!(
        "verify: the client asks for verb={verb}, with which this end receives nothing that could be verified; use verb=send"
    )
}

/// The error for a block that does not fit into the memory of the server.
pub(super) fn too_little_memory(block: u64, memory: u64) -> String {
    format!(
        "the blocks of the client have up to {block} bytes, and the memory of this end has {memory}; raise bs or iodepth"
    )
}

/// The error for different block sizes.
pub(super) fn other_blocks(own: u64, far: u64) -> String {
    let size = |bytes: u64| if bytes == 0 { "different sizes".to_owned() } else { format!("{bytes} bytes") };
    format!(
        "messages need one bs, the same at both ends: the blocks of this end have {}, those of the other {}",
        size(own),
        size(far)
    )
}

/// A failed request: its error number and message. `library` is the library's own text.
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
            (libc::EREMOTEIO, "the other end refuses: its memory is no longer registered".to_owned())
        }
        status::NO_ANSWER => (libc::ETIMEDOUT, "the other end does not answer any more".to_owned()),
        status::NOT_READY => (libc::ETIMEDOUT, "the other end receives nothing any more".to_owned()),
        _ => (libc::EIO, format!("a request failed: {library}")),
    }
}

/// The connection ended without a goodbye.
pub(super) const GONE: &str = "the other end closed the connection before it was done";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_explained() {
        let (errno, why) = of_event(event::REJECTED, 8, None);
        assert_eq!(errno, libc::ECONNREFUSED);
        assert!(why.starts_with("nothing listens there"), "{why}");
        assert!(of_event(event::REJECTED, 28, None).1.contains("is another program"));
        assert!(of_event(event::REJECTED, 28, Some(Reason::Block(512))).1.contains("have 512 bytes"));
        let (errno, why) = of_event(event::ADDRESS_ERROR, -libc::ENODEV, None);
        assert_eq!(errno, libc::ENODEV);
        assert!(why.ends_with("(No such device)"), "{why}");
        assert_eq!(of_event(event::UNREACHABLE, -libc::ETIMEDOUT, None).0, libc::ETIMEDOUT);
        assert_eq!(of_event(event::DEVICE_REMOVAL, 0, None).0, libc::ENODEV);
    }
}
