//! The turn of a client: an agent performs one run at a time.

use super::{GRACE, SHORT, pong};
use crate::connection::Connection;
use crate::frame;
use crate::message::ToAgent;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the next run waits for the end of the previous one, which is asked to end, and then killed.
const PATIENCE: Duration = GRACE.saturating_mul(3);

/// The client of the current run, if any.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<Option<Holder>>);

/// The client of the current run.
#[derive(Clone, Debug)]
struct Holder {
    who: String,
    /// The run is over, or is being ended.
    is_ending: bool,
}

impl Turns {
    fn holder(&self) -> MutexGuard<'_, Option<Holder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no run is active.
    pub fn is_free(&self) -> bool {
        self.holder().is_none()
    }

    /// Takes the agent for a run; on failure returns the client of the current run.
    fn take(&self, who: &str) -> Result<Turn<'_>, Holder> {
        let mut holder = self.holder();
        if let Some(other) = &*holder {
            return Err(other.clone());
        }
        *holder = Some(Holder { who: who.to_owned(), is_ending: false });
        Ok(Turn(self))
    }

    /// The same, but waits for a run that is over already: its client knows the result, and the next run may come at
    /// once. Answers pings meanwhile.
    pub fn take_next(&self, who: &str, connection: &mut Connection) -> Result<Turn<'_>, String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.take(who) {
                Ok(turn) => return Ok(turn),
                Err(other) if !other.is_ending || Instant::now() >= until => return Err(other.who),
                Err(_) if !connection.is_readable_within(SHORT) => {}
                Err(other) => match frame::read(connection) {
                    Ok(ToAgent::Ping(sequence)) => pong(connection, sequence).map_err(|_| other.who)?,
                    // The client has closed the connection, or is gone.
                    _ => return Err(other.who),
                },
            }
        }
    }
}

/// As long as this lives, no other client's jobs run.
pub(super) struct Turn<'a>(&'a Turns);

impl Turn<'_> {
    /// The run is over, or is being ended: the next client may wait for that.
    pub fn is_ending(&self) {
        if let Some(holder) = &mut *self.0.holder() {
            holder.is_ending = true;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.holder() = None;
    }
}

#[cfg(test)]
pub(super) fn take(turns: &Turns) -> Turn<'_> {
    turns.take("me").unwrap()
}
