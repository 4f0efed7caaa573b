//! Frames: a byte for the kind, four bytes of length (big endian), and that many bytes of CBOR.
//!
//! Each kind has a limit, which is checked before anything is read. Memory is allocated as bytes arrive, so a false
//! length costs nothing.

use crate::message::Message;
use std::io::{self, Read, Write};

/// Bytes before the content.
pub const HEADER: usize = 5;

/// The deepest nesting of values: far more than in any message, but little enough for the stack of a reading thread.
const DEEPEST: usize = 64;

/// Why a frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection has ended between two frames.
    #[error("the connection was closed")]
    Closed,
    /// The connection has failed, or ended within a frame.
    #[error("{0}")]
    Lost(#[from] io::Error),
    /// No such message exists in this direction.
    #[error("a frame of kind {0}, which is none of this protocol")]
    Unknown(u8),
    /// It is longer than a message of this kind may be.
    #[error("a frame of kind {kind} with {length} bytes; at most {limit} are allowed")]
    TooLong {
        /// The kind.
        kind: u8,
        /// The length.
        length: u32,
        /// The limit.
        limit: u32,
    },
    /// The content is not a message of this kind.
    #[error("a frame of kind {kind} that is damaged: {why}")]
    Damaged {
        /// The kind.
        kind: u8,
        /// The reason.
        why: String,
    },
}

impl FrameError {
    /// The other side has closed the connection, or has died. The system reports that as
    /// one of several errors, depending on what was under way.
    pub fn is_closed(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match self {
            FrameError::Closed => true,
            FrameError::Lost(error) => matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof),
            _ => false,
        }
    }
}

/// Encodes a frame with this message.
///
/// # Errors
/// The message is longer than its kind may be.
pub fn encode<M: Message>(message: &M) -> Result<Vec<u8>, FrameError> {
    let kind = message.kind();
    let mut bytes = vec![kind, 0, 0, 0, 0];
    ciborium::into_writer(message, &mut bytes)
        .map_err(|error| FrameError::Damaged { kind, why: error.to_string() })?;
    let limit = M::limit(kind).unwrap_or(0);
    let length = u32::try_from(bytes.len() - HEADER).unwrap_or(u32::MAX);
    if length > limit {
        return Err(FrameError::TooLong { kind, length, limit });
    }
    bytes[1..HEADER].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Reads the bytes of the next frame, its header included.
///
/// # Errors
/// See [`FrameError`].
pub fn read_raw<M: Message>(from: &mut dyn Read) -> Result<Vec<u8>, FrameError> {
    let mut header = [0; HEADER];
    loop {
        match from.read(&mut header[..1]) {
            Ok(0) => return Err(FrameError::Closed),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let kind = header[0];
    let limit = M::limit(kind).ok_or(FrameError::Unknown(kind))?;
    from.read_exact(&mut header[1..])?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
    if length > limit {
        return Err(FrameError::TooLong { kind, length, limit });
    }
    let mut bytes = header.to_vec();
    let read = from.take(length.into()).read_to_end(&mut bytes)?;
    if read < length as usize {
        return Err(FrameError::Lost(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

/// Decodes the message of a frame.
///
/// # Errors
/// The frame is damaged.
pub fn decode<M: Message>(frame: &[u8]) -> Result<M, FrameError> {
    let kind = frame.first().copied().unwrap_or_default();
    let damaged = |why: String| FrameError::Damaged { kind, why };
    let mut content = frame.get(HEADER..).ok_or_else(|| damaged("it has no header".to_owned()))?;
    let message: M = ciborium::de::from_reader_with_recursion_limit(&mut content, DEEPEST)
        .map_err(|error| damaged(error.to_string()))?;
    if !content.is_empty() {
        return Err(damaged(format!("{} bytes are left over", content.len())));
    }
    if message.kind() != kind {
        return Err(damaged("it holds another kind".to_owned()));
    }
    Ok(message)
}

/// Reads the next message.
///
/// # Errors
/// See [`FrameError`].
pub fn read<M: Message>(from: &mut dyn Read) -> Result<M, FrameError> {
    decode(&read_raw::<M>(from)?)
}

/// Writes a message.
///
/// # Errors
/// It is too long, or the connection is lost.
pub fn write<M: Message>(to: &mut dyn Write, message: &M) -> Result<(), FrameError> {
    let bytes = encode(message)?;
    to.write_all(&bytes)?;
    Ok(to.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{FromAgent, ToAgent};
    use iolite_stats::{Event, EventKind};
    use proptest::prelude::*;

    #[test]
    fn messages_come_back_as_they_were() {
        let event = Event::new(7, None, EventKind::Status(Box::default()));
        let messages = [
            FromAgent::Event(Box::new(event)),
            FromAgent::Pong { sequence: 3, now_ns: u64::MAX },
            FromAgent::Died("killed".to_owned()),
        ];
        let bytes: Vec<u8> = messages.iter().flat_map(|message| encode(message).unwrap()).collect();
        let mut rest = bytes.as_slice();
        for message in &messages {
            assert_eq!(&read::<FromAgent>(&mut rest).unwrap(), message);
        }
        assert!(matches!(read::<FromAgent>(&mut rest), Err(FrameError::Closed)));
    }

    #[test]
    fn limits_come_before_memory() {
        let ping = encode(&ToAgent::Ping(1)).unwrap();
        let mut long = ping.clone();
        long[1..HEADER].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(read::<ToAgent>(&mut long.as_slice()), Err(FrameError::TooLong { .. })));
        let mut other = ping.clone();
        other[0] = 200;
        assert!(matches!(read::<ToAgent>(&mut other.as_slice()), Err(FrameError::Unknown(200))));
        other[0] = ToAgent::Stop.kind();
        assert!(matches!(read::<ToAgent>(&mut other.as_slice()), Err(FrameError::Damaged { .. })));
        let cut = &ping[..ping.len() - 1];
        assert!(matches!(read::<ToAgent>(&mut &*cut), Err(FrameError::Lost(_))));
    }

    #[test]
    fn deep_nests_are_refused() {
        // Lists in lists, where a text is expected.
        let mut deep = vec![FromAgent::Died(String::new()).kind(), 0, 0, 0, 0];
        deep.extend([0xa1, 0x64]);
        deep.extend(b"Done");
        deep.extend(vec![0x81; 30_000]);
        let length = (deep.len() - HEADER) as u32;
        deep[1..HEADER].copy_from_slice(&length.to_be_bytes());
        let read = std::thread::Builder::new()
            .stack_size(512 << 10)
            .spawn(move || read::<FromAgent>(&mut deep.as_slice()).is_err());
        assert!(read.unwrap().join().unwrap());
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn rubbish_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), kind in 0..16_u8) {
            let _ = read::<ToAgent>(&mut bytes.as_slice());
            let mut framed = vec![kind, 0, 0, 0, bytes.len() as u8];
            framed.extend(&bytes);
            let _ = read::<FromAgent>(&mut framed.as_slice());
        }
    }
}
