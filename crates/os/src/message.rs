//! Messages from workers to the controller, through one socket that keeps message boundaries and order.

use crate::socket::Socket;
use std::io;

/// The longest text of a message in bytes. Longer texts are cut.
const MOST_TEXT: usize = 8000;

/// A message to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Something in the slot of a worker changed: its phase, or its thread has ended.
    Look,
    /// A line for the user, like "Laying out IO file".
    Note(u32, String),
    /// A warning for the user: something is suspicious, but nothing has failed.
    Warning(u32, String),
    /// Something went wrong, for example with an I/O or a file.
    Trouble(u32, String),
    /// A report of data that differs from the data written.
    WrongData(u32, String),
    /// The job failed with this errno. The text says what failed.
    Failed(u32, i32, String),
    /// The first error after which the job continues. The text says what failed.
    WentOn(u32, i32, String),
    /// The same as [`Message::Trouble`], about the failure that ends the job.
    Fatal(u32, String),
    /// So many errors of this kind, after which the job continues.
    Tolerated(u32, i32, String),
}

impl Message {
    /// Sends the message. Does nothing if the controller is gone.
    pub fn send(&self, socket: &Socket) {
        let (tag, worker, errno, text) = match self {
            Message::Look => (0u8, 0, 0, ""),
            Message::Note(worker, text) => (1, *worker, 0, text.as_str()),
            Message::Warning(worker, text) => (2, *worker, 0, text.as_str()),
            Message::Failed(worker, errno, text) => (3, *worker, *errno, text.as_str()),
            Message::WentOn(worker, errno, text) => (5, *worker, *errno, text.as_str()),
            Message::WrongData(worker, text) => (6, *worker, 0, text.as_str()),
            Message::Trouble(worker, text) => (7, *worker, 0, text.as_str()),
            Message::Fatal(worker, text) => (8, *worker, 0, text.as_str()),
            Message::Tolerated(worker, count, text) => (9, *worker, *count, text.as_str()),
        };
        let mut bytes = Vec::with_capacity(9 + text.len().min(MOST_TEXT));
        bytes.push(tag);
        bytes.extend_from_slice(&worker.to_ne_bytes());
        bytes.extend_from_slice(&errno.to_ne_bytes());
        bytes.extend_from_slice(&text.as_bytes()[..text.len().min(MOST_TEXT)]);
        // Sending fails only if the controller is gone. Then this process is about to be killed.
        let _ = match self {
            // If there is no room, there are messages to read, and the controller looks at all slots after reading them.
            // (Thousands of workers that waited for room would all be woken for each message that is read.)
            Message::Look => socket.send_if_there_is_room(&bytes).map(drop),
            _ => socket.send(&bytes),
        };
    }

    /// Receives the next message; `None` = no message is waiting.
    ///
    /// # Errors
    /// `UnexpectedEof` if no sender is left. Otherwise the socket cannot be read.
    pub fn receive(socket: &Socket) -> io::Result<Option<Message>> {
        let mut buffer = [0; 9 + MOST_TEXT];
        let Some(length) = socket.try_receive_or_end(&mut buffer)? else { return Ok(None) };
        let bytes = &buffer[..length];
        let (Some(&tag), Some(worker), Some(errno)) = (bytes.first(), bytes.get(1..5), bytes.get(5..9))
        else {
            return Ok(None);
        };
        let worker = u32::from_ne_bytes([worker[0], worker[1], worker[2], worker[3]]);
        let errno = i32::from_ne_bytes([errno[0], errno[1], errno[2], errno[3]]);
        let text = String::from_utf8_lossy(&bytes[9..]).into_owned();
        Ok(Some(match tag {
            1 => Message::Note(worker, text),
            2 => Message::Warning(worker, text),
            3 => Message::Failed(worker, errno, text),
            5 => Message::WentOn(worker, errno, text),
            6 => Message::WrongData(worker, text),
            7 => Message::Trouble(worker, text),
            8 => Message::Fatal(worker, text),
            9 => Message::Tolerated(worker, errno, text),
            _ => Message::Look,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (one, other) = Socket::pair().unwrap();
        let messages = [
            Message::Look,
            Message::Note(1, "a: Laying out IO file (1 file / 1MiB)".into()),
            Message::Failed(2, 28, "write".into()),
            Message::Warning(3, String::new()),
            Message::Trouble(3, "io_u error".into()),
            Message::Fatal(3, "io_u error".into()),
            Message::Tolerated(3, 70_000, "io_u error".into()),
            Message::WrongData(3, "md5: verify failed\n       Expected CRC: 0".into()),
            Message::WentOn(3, 5, "read".into()),
        ];
        messages.iter().for_each(|message| message.send(&one));
        for message in messages {
            assert_eq!(Message::receive(&other).unwrap(), Some(message));
        }
        assert_eq!(Message::receive(&other).unwrap(), None);
        drop(one);
        assert_eq!(Message::receive(&other).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_full_socket_takes_no_more_hints_and_loses_nothing_else() {
        let (one, other) = Socket::pair().unwrap();
        const HINTS: usize = 100_000;
        (0..HINTS).for_each(|_| Message::Look.send(&one));
        let failed = Message::Failed(7, 28, "write".into());
        let said = failed.clone();
        let sender = std::thread::spawn(move || said.send(&one));
        let mut hints = 0;
        loop {
            match Message::receive(&other) {
                Ok(Some(Message::Look)) => hints += 1,
                Ok(Some(message)) => break assert_eq!(message, failed),
                Ok(None) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        sender.join().unwrap();
        assert!((1..HINTS).contains(&hints), "{hints}");
    }
}
