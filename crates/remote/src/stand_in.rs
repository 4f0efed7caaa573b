//! A stand-in for agents, to test and measure their clients: it listens, greets and answers like an agent, and runs
//! nothing. Measurements have a thousand of them in one process.

use crate::address::Address;
use crate::connection::{Connection, Listener, Peer};
use crate::frame::{self, FrameError};
use crate::greeting;
use crate::keys::{Keys, Role};
use crate::message::{FromAgent, Hello, ToAgent};
use crate::stream::Stream;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Listens in place of an agent.
#[derive(Debug)]
pub struct StandIn {
    listener: Listener,
    place: String,
    keys: Option<Keys>,
}

impl StandIn {
    /// Listens at this address, with the agents' keys in this file if there is one.
    ///
    /// # Errors
    /// The address is in use, or the keys cannot be used.
    pub fn listen(address: &Address, keys: Option<&Path>) -> Result<StandIn, String> {
        let keys = keys.map(|file| Keys::read(file, Role::Agent)).transpose()?;
        let listener = Listener::at(address).map_err(|error| format!("{address}: {error}"))?;
        Ok(StandIn { place: listener.place(address), listener, keys })
    }

    /// Its address, in the form of `--client=`.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Waits for the next client. Sends nothing yet.
    ///
    /// # Errors
    /// The connection cannot be accepted.
    pub fn accept(&self) -> Result<Caller<'_>, String> {
        let (connection, peer) = self.listener.accept().map_err(|error| error.to_string())?;
        Ok(Caller { connection, peer, keys: self.keys.as_ref() })
    }
}

/// A client that has connected.
#[derive(Debug)]
pub struct Caller<'a> {
    connection: Connection,
    peer: Peer,
    keys: Option<&'a Keys>,
}

impl<'a> Caller<'a> {
    /// A client over TCP that sends only these bytes and reads nothing.
    ///
    /// # Errors
    /// No socket can be created, or it has no room for the bytes.
    pub fn with(bytes: &[u8], keys: Option<&'a Keys>) -> io::Result<Caller<'a>> {
        let (here, mut there) = UnixStream::pair()?;
        there.set_nonblocking(true)?;
        there.write_all(bytes)?;
        let connection = Connection::over(Stream::over_socket(here))?;
        Ok(Caller { connection, peer: Peer::At(([127, 0, 0, 1], 1).into()), keys })
    }

    /// Greets the client in the name of this machine, as the same program in the same version.
    ///
    /// # Errors
    /// It is another program, or its keys are refused.
    pub fn greet(self, machine: &str) -> Result<Conversation, String> {
        let words = |why: greeting::Stranger| why.to_string();
        let mut connection = match (self.keys, self.peer) {
            (Some(keys), Peer::At(_)) => self.connection.protect(keys).map_err(words)?,
            _ => self.connection,
        };
        greeting::send(&mut connection).map_err(words)?;
        greeting::receive(&mut connection).map_err(words)?;
        let mut conversation = Conversation { connection };
        let ToAgent::Hello(Hello { program, .. }) = conversation.hear().map_err(|error| error.to_string())?
        else {
            return Err("does not say who it is".to_owned());
        };
        let hello = Hello { program, machine: machine.to_owned(), pid: std::process::id() };
        conversation.say(&FromAgent::Hello(hello)).map_err(|error| error.to_string())?;
        Ok(conversation)
    }
}

/// A client that has exchanged greetings.
#[derive(Debug)]
pub struct Conversation {
    connection: Connection,
}

impl Conversation {
    /// Waits for a message. Returns whether there is one.
    pub fn has_word_within(&self, patience: Duration) -> bool {
        self.connection.is_readable_within(patience)
    }

    /// The next message of the client.
    ///
    /// # Errors
    /// The client is gone, or its message cannot be decoded.
    pub fn hear(&mut self) -> Result<ToAgent, FrameError> {
        frame::read(&mut self.connection)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The client is gone.
    pub fn say(&mut self, message: &FromAgent) -> Result<(), FrameError> {
        frame::write(&mut self.connection, message)
    }

    /// Sends an encoded message ([`frame::encode`]).
    ///
    /// # Errors
    /// The client is gone.
    pub fn say_encoded(&mut self, frame: &[u8]) -> Result<(), FrameError> {
        Ok(self.connection.write_all(frame)?)
    }
}
