//! Calls whose answers a function of the session waits for.

use super::Session;
use super::calls::{What, is_busy};
use super::mending::{PAUSE, sleep};
use crate::NfsError;
use crate::connection::Broken;
use crate::protocol::{Arguments, Ask};
use crate::rpc;
use crate::v3;
use crate::v4;
use crate::xdr::{Reader, Writer};
use std::io;
use std::time::Instant;

impl Session {
    /// Makes a call and waits for the answer. Repeats the call if the server is busy or the connection is lost.
    pub(crate) fn call(&mut self, ask: Ask, arguments: Arguments<'_>) -> Result<Vec<u8>, NfsError> {
        self.over_any_connection(|session| session.patiently(ask, arguments))
    }

    /// Makes a call on the current connection, and repeats it while the server is busy. The answer begins with its
    /// status. (All calls of a recovery together wait for a busy server as long as one call does otherwise: a server may
    /// put off each of many files.)
    pub(crate) fn patiently(&mut self, ask: Ask, arguments: Arguments<'_>) -> Result<Vec<u8>, NfsError> {
        let version = self.address.version;
        let begun = Instant::now();
        loop {
            let answer = self.call_once(ask, arguments);
            let code = match &answer {
                Ok(answer) => Reader::new(answer).u32()?,
                Err(NfsError::Refused { code, .. }) => *code,
                Err(_) => return answer,
            };
            // The server has performed the call, but no longer has its answer. Calls whose answers are not kept can be
            // repeated.
            let is_unkept = code == v4::RETRY_UNCACHED;
            let waited = self.recovery.unwrap_or_else(|| begun.elapsed());
            if !(is_unkept || is_busy(version, code)) || waited >= self.limits.patience {
                return answer;
            }
            self.calls.counts.busy += u64::from(!is_unkept);
            self.recovery = self.recovery.map(|waited| waited + PAUSE);
            let _ = sleep(PAUSE);
        }
    }

    /// Makes a call on the current connection only, and waits for the answer. If the connection is lost, the error is
    /// [`NfsError::Unreachable`].
    pub(crate) fn call_once(&mut self, ask: Ask, arguments: Arguments<'_>) -> Result<Vec<u8>, NfsError> {
        let lost = || NfsError::Unreachable {
            server: String::new(),
            why: "the connection was lost".to_owned(),
            errno: libc::ECONNRESET,
        };
        if self.calls.room() == 0 {
            return Err(NfsError::Call("too many calls are in flight".to_owned()));
        }
        if self.calls.open() == self.calls.later.len() {
            self.heard = Instant::now();
        }
        if self.connection.is_none() {
            return Err(lost());
        }
        let place = self.calls.begin(What::Plain, None, 0, (0, std::ptr::null_mut(), 0));
        self.calls.call.clear();
        arguments(&mut Writer(&mut self.calls.call));
        self.calls.answer = None;
        let mut is_sent = false;
        loop {
            match &self.calls.answer {
                Some((answered, _)) if *answered == place => {
                    let (_, answer) = self.calls.answer.take().expect("there is an answer");
                    return answer;
                }
                _ => {}
            }
            self.look_for_the_end();
            is_sent = is_sent || self.send_plain(place, ask);
            let Some(connection) = &mut self.connection else {
                self.calls.abandon(place);
                return Err(lost());
            };
            match connection.exchange(None, &mut self.calls) {
                Ok(true) => self.hear(),
                Ok(false) => self.check_silence(),
                Err(Broken::System(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(broken) => {
                    self.calls.abandon(place);
                    self.note_broken(broken);
                    return Err(lost());
                }
            }
        }
    }

    /// Writes a call, which the next exchange sends. Returns false if there is no free slot in the session of version
    /// 4: then other calls have to be answered first.
    fn send_plain(&mut self, place: usize, ask: Ask) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        let calls = &mut self.calls;
        if let Ask::Compound { .. } = ask {
            let Some(slot) = calls.table.take_for(&calls.call) else { return false };
            calls.slots[place].session_slot = Some(slot);
        }
        let (id, session_slot) = (calls.slots[place].id, calls.slots[place].session_slot);
        let head = connection.head();
        let start = match ask {
            Ask::Procedure(number) => rpc::begin(head, id, v3::NFS, number, &self.caller),
            Ask::Compound { operations, .. } => v4::begin(head, id, &self.caller, operations + 1),
            Ask::WithoutSession => v4::begin(head, id, &self.caller, 1),
        };
        if let (Ask::Compound { is_kept, .. }, Some(slot)) = (ask, session_slot) {
            calls.table.sequence(slot, is_kept, &mut Writer(head));
        }
        head.extend_from_slice(&calls.call);
        rpc::end(head, start, 0);
        true
    }
}
