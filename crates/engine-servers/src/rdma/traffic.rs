//! Blocks in flight: requests are posted to the device in batches, and polled for completions.
//!
//! A waiting thread polls for some microseconds first, because most completions arrive within them. Then it sleeps
//! until the device or the connection manager has an event.

use super::abi::{
    CompletionQueue, Piece, QueuePair, ReceiveRequest, SendRequest, WorkCompletion, event, opcode, status,
};
use super::connection::{Connection, SLICE, ready};
use super::greeting::Place;
use super::words;
use crate::driven_by_worker::DrivenByWorker;
use iolite_engine::{Errno, Outcome, Unit, WITHDRAWN};
use std::collections::VecDeque;
use std::ffi::CStr;
use std::io;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// The ID of requests that do not belong to a unit.
const BESIDE: u64 = u64::MAX;

/// How long the thread polls before it sleeps.
const LOOKING: Duration = Duration::from_micros(30);

/// The maximum number of completions per poll.
const BATCH: usize = 16;

/// After this many empty polls, the connection is checked as well: a thread that never sleeps must notice its end,
/// too.
const VAIN: u32 = 256;

/// After this much silence, a pulse tests whether the other end still answers.
const SILENCE: Duration = Duration::from_secs(5);

/// The time limit for units in flight once the job has to stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time limit for the goodbye of the other end.
const PARTING: Duration = Duration::from_secs(2);

/// How this end takes part in the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Writes to the memory of the other end.
    Writes,
    /// Reads from the memory of the other end.
    Reads,
    /// Sends messages.
    Sends,
    /// Receives messages.
    Receives,
    /// Exposes its memory to the other end.
    Lends,
}

/// A connection with its requests in flight.
pub(super) struct Traffic {
    pub(super) connection: Connection,
    pub(super) role: Role,
    /// The address and the length of each unit's block.
    blocks: Vec<Piece>,
    /// Whether a unit is in flight or staged, indexed by unit.
    flying: Vec<bool>,
    /// The units of the next batch.
    staged: Vec<u32>,
    sends: Vec<SendRequest>,
    receives: Vec<ReceiveRequest>,
    done: VecDeque<(u32, Outcome)>,
    /// The number of units in flight, including staged ones.
    in_flight: usize,
    /// The number of messages sent or received.
    messages: u64,
    /// The number of requests in flight that do not belong to a unit.
    beside: u32,
    /// The time of the last sign of life from the other end.
    heard: Instant,
    /// Set when this end has finished: the deadline for units in flight.
    leaving: Option<Instant>,
    /// Either end has ended the connection.
    is_over: bool,
    /// The first error.
    failed: Option<(Errno, String)>,
    /// Empty polls since the start; every `VAIN`-th one checks the connection.
    vain: u32,
}

impl Traffic {
    pub(super) fn new(connection: Connection, role: Role, depth: usize) -> Traffic {
        Traffic {
            connection,
            role,
            blocks: vec![Piece::default(); depth],
            flying: vec![false; depth],
            staged: Vec::with_capacity(depth),
            sends: Vec::with_capacity(depth),
            receives: Vec::with_capacity(depth),
            done: VecDeque::with_capacity(depth),
            in_flight: 0,
            messages: 0,
            beside: 0,
            heard: Instant::now(),
            leaving: None,
            is_over: false,
            failed: None,
            vain: 0,
        }
    }

    /// The first error, if there is one.
    pub(super) fn failure(&self) -> Option<(Errno, &str)> {
        self.failed.as_ref().map(|(errno, words)| (*errno, words.as_str()))
    }

    fn fail(&mut self, (errno, why): (i32, String)) {
        let place = &self.connection.place;
        self.failed.get_or_insert_with(|| (Errno(errno), format!("{place}: {why}")));
    }

    /// Whether no more units should start: the other end has finished, and each message that it sent has arrived or has
    /// a receive in flight.
    pub(super) fn has_all(&self) -> bool {
        match (self.connection.told(), self.role) {
            (None, _) => false,
            (Some(sent), Role::Receives) => self.messages + self.in_flight as u64 >= sent,
            (Some(_), _) => true,
        }
    }

    /// Adds a unit to the next batch.
    pub(super) fn stage(&mut self, unit: &Unit) {
        let index = unit.index as usize;
        self.blocks[index] =
            Piece { address: unit.buffer as u64, length: unit.length as u32, key: self.connection.key() };
        self.flying[index] = true;
        self.in_flight += 1;
        self.staged.push(unit.index);
    }

    /// Posts the batch to the device.
    pub(super) fn hand_over(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        let staged = std::mem::take(&mut self.staged);
        match self.role {
            Role::Receives => self.hand_over_receives(&staged),
            _ => self.hand_over_sends(&staged),
        }
        self.staged = staged;
        self.staged.clear();
    }

    fn hand_over_receives(&mut self, staged: &[u32]) {
        self.receives.clear();
        for &unit in staged {
            let pieces = &raw mut self.blocks[unit as usize];
            self.receives.push(ReceiveRequest { id: unit.into(), next: null_mut(), pieces, count: 1 });
        }
        let first = self.receives.as_mut_ptr();
        (1..staged.len()).for_each(|next| self.receives[next - 1].next = first.wrapping_add(next));
        let (pair, mut refused) = (self.pair(), null_mut());
        // SAFETY: the requests and their pieces outlive the call, and the blocks belong to the units while these are
        // in flight.
        let result = unsafe { ((*(*pair).context).operations.receive)(pair, first, &raw mut refused) };
        self.handed_over(staged, result, refused as usize, first as usize, size_of::<ReceiveRequest>());
    }

    fn hand_over_sends(&mut self, staged: &[u32]) {
        let opcode = match self.role {
            Role::Writes => opcode::WRITE,
            Role::Reads => opcode::READ,
            _ => opcode::SEND,
        };
        self.sends.clear();
        for &unit in staged {
            let Place { address, key } = self.there(unit);
            let pieces = &raw mut self.blocks[unit as usize];
            let request = SendRequest::new(unit.into(), opcode);
            self.sends.push(SendRequest { pieces, remote_address: address, remote_key: key, ..request });
        }
        let first = self.sends.as_mut_ptr();
        (1..staged.len()).for_each(|next| self.sends[next - 1].next = first.wrapping_add(next));
        let (pair, mut refused) = (self.pair(), null_mut());
        // SAFETY: as above.
        let result = unsafe { ((*(*pair).context).operations.send)(pair, first, &raw mut refused) };
        self.handed_over(staged, result, refused as usize, first as usize, size_of::<SendRequest>());
    }

    /// The place of a unit's block in the memory of the other end. Units have distinct places if there is enough
    /// room.
    fn there(&self, unit: u32) -> Place {
        if !matches!(self.role, Role::Writes | Role::Reads) {
            return Place::default();
        }
        let length = u64::from(self.blocks[unit as usize].length).max(1);
        let places = (self.connection.far.length / length).max(1);
        let Place { address, key } = self.connection.far.memory;
        Place { address: address + u64::from(unit) % places * length, key }
    }

    /// Handles the result of posting a batch: the refused unit and all after it fail.
    fn handed_over(&mut self, staged: &[u32], result: i32, refused: usize, first: usize, size: usize) {
        if result == 0 {
            if self.role == Role::Sends {
                self.messages += staged.len() as u64;
            }
            return;
        }
        let taken = (refused.saturating_sub(first) / size).min(staged.len());
        if self.role == Role::Sends {
            self.messages += taken as u64;
        }
        let error = io::Error::from_raw_os_error(result.abs());
        let why = format!("the device takes no request: {}", iolite_types::describe_error(&error));
        self.fail((result.abs(), why));
        for &unit in &staged[taken..] {
            self.finish(unit, Err(Errno(result.abs())));
        }
    }

    fn finish(&mut self, unit: u32, outcome: Outcome) {
        if std::mem::take(&mut self.flying[unit as usize]) {
            self.in_flight -= 1;
            self.done.push_back((unit, outcome));
        }
    }

    /// Polls the device; returns the number of completions.
    fn poll(&mut self) -> usize {
        let mut found = [WorkCompletion::default(); BATCH];
        let queue: *mut CompletionQueue = self.connection.queue;
        // SAFETY: the queue exists as long as the connection, and there is room for a batch.
        let count = unsafe { ((*(*queue).context).operations.poll)(queue, BATCH as i32, found.as_mut_ptr()) };
        let Ok(count) = usize::try_from(count).map(|count| count.min(BATCH)) else {
            // No unit in flight will ever complete.
            self.fail((libc::EIO, "polling the completion queue failed".to_owned()));
            (0..self.flying.len() as u32).for_each(|unit| self.finish(unit, Err(Errno(libc::EIO))));
            return 0;
        };
        found[..count].iter().for_each(|completion| self.completed(completion));
        count
    }

    fn completed(&mut self, completion: &WorkCompletion) {
        let &WorkCompletion { id, status: found, length, .. } = completion;
        if id == BESIDE {
            self.beside = self.beside.saturating_sub(1);
        }
        if found != status::SUCCESS {
            return self.not_completed(id, found);
        }
        if id == BESIDE {
            return;
        }
        let unit = id as u32;
        if self.role != Role::Receives {
            let length = self.blocks[unit as usize].length;
            return self.finish(unit, Ok(length.into()));
        }
        self.messages += 1;
        match self.flying[unit as usize] {
            true => self.finish(unit, Ok(length.into())),
            // The unit was withdrawn, but the other end does not know yet that this job has finished.
            false => self.receive_again(unit),
        }
    }

    #[cold]
    fn not_completed(&mut self, id: u64, found: i32) {
        let is_expected = self.leaving.is_some() || self.connection.told().is_some();
        if !is_expected || found != status::FLUSHED && id != BESIDE {
            let mut why = words::of_status(found, &self.words_of(found));
            if let (status::FLUSHED, Some((errno, _))) = (found, &self.failed) {
                // Flushed requests repeat the first error.
                why.0 = errno.0;
            }
            self.fail(why);
        }
        if id != BESIDE {
            let outcome = match &self.failed {
                Some((errno, _)) => Err(*errno),
                None => Err(WITHDRAWN),
            };
            self.finish(id as u32, outcome);
        }
    }

    fn words_of(&self, found: i32) -> String {
        // SAFETY: the function takes an integer, and returns a static text.
        let text = unsafe { CStr::from_ptr((self.connection.library.verbs.status_words)(found)) };
        text.to_string_lossy().into_owned()
    }

    /// Reposts a receive whose message no unit waits for.
    #[cold]
    fn receive_again(&mut self, unit: u32) {
        let pieces = &raw mut self.blocks[unit as usize];
        let mut request = ReceiveRequest { id: unit.into(), next: null_mut(), pieces, count: 1 };
        let (pair, mut refused) = (self.pair(), null_mut());
        // If this fails, the other end retries its next message until one of them ends the connection.
        // SAFETY: the request and its piece outlive the call, and the block exists as long as the engine.
        unsafe { ((*(*pair).context).operations.receive)(pair, &raw mut request, &raw mut refused) };
    }

    fn pair(&self) -> *mut QueuePair {
        // SAFETY: the end has a queue pair while the connection exists.
        unsafe { (*self.connection.end).pair }
    }

    /// Writes a word to the mailbox of the other end.
    fn say(&mut self, (address, key, there): (u64, u32, Place)) {
        let mut piece = Piece { address, length: 8, key };
        let mut request = SendRequest {
            pieces: &raw mut piece,
            remote_address: there.address,
            remote_key: there.key,
            ..SendRequest::new(BESIDE, opcode::WRITE)
        };
        let (pair, mut refused) = (self.pair(), null_mut());
        // SAFETY: the request and its piece outlive the call, and the mailbox exists as long as the connection.
        let result =
            unsafe { ((*(*pair).context).operations.send)(pair, &raw mut request, &raw mut refused) };
        self.beside += u32::from(result == 0);
    }

    /// Handles events of the connection and their consequences.
    fn attend(&mut self) {
        while let Ok(Some(heard)) = self.connection.hear() {
            match heard.kind {
                event::CONNECT_REQUEST => self.connection.turn_away(heard.end),
                event::DISCONNECTED if self.is_over => {}
                event::DISCONNECTED | event::DEVICE_REMOVAL => {
                    if heard.kind == event::DEVICE_REMOVAL {
                        self.fail(words::of_event(heard.kind, 0, None));
                    } else if self.connection.told().is_none() {
                        self.fail((libc::ECONNRESET, words::GONE.to_owned()));
                    }
                    self.end();
                }
                _ => {}
            }
        }
        self.withdraw();
        let now = Instant::now();
        if self.leaving.is_some_and(|until| now > until) {
            self.end();
        }
        if now.duration_since(self.heard) > SILENCE && self.beside == 0 && !self.is_over {
            // If the other end is gone, this write fails.
            self.heard = now;
            self.say(self.connection.pulse());
        }
    }

    /// Withdraws receives for messages that will not come.
    fn withdraw(&mut self) {
        let all_came = self.connection.told().is_some_and(|sent| self.messages >= sent);
        if self.role != Role::Receives || self.in_flight == 0 || !(self.leaving.is_some() || all_came) {
            return;
        }
        self.hand_over();
        (0..self.flying.len() as u32).for_each(|unit| self.finish(unit, Err(WITHDRAWN)));
    }

    /// Ends the connection: everything in flight completes, possibly with an error.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.connection.disconnect();
        }
    }

    /// The job has to stop: from now on, waiting has a deadline.
    pub(super) fn leave(&mut self) {
        if self.leaving.is_none() {
            self.leaving = Some(Instant::now() + PATIENCE);
        }
        self.withdraw();
    }

    /// Sends a goodbye and waits for the other end's goodbye, up to a time limit.
    pub(super) fn part(&mut self) {
        self.leave();
        if self.failed.is_none() && !self.is_over {
            let sent = if self.role == Role::Sends { self.messages } else { 0 };
            self.say(self.connection.goodbye(sent));
            let until = Instant::now() + PARTING;
            while !self.is_over
                && (self.beside > 0 || self.connection.told().is_none())
                && Instant::now() < until
            {
                // This also fails when nothing has completed yet; the limit ends the loop.
                let _ = self.drive(Some(SLICE));
            }
        }
        self.end();
    }

    /// Waits for an event, for at most `SLICE`.
    fn sleep(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let queue = self.connection.queue;
        // SAFETY: the queue exists as long as the connection.
        unsafe { ((*(*queue).context).operations.notify)(queue, 0) };
        if self.poll() > 0 {
            return Ok(());
        }
        let time = timeout.unwrap_or(SLICE).min(SLICE);
        let notices = self.connection.notice_descriptor();
        let found = ready(&[notices, self.connection.descriptor()], time)?;
        if found.contains(&notices) {
            self.take_notice();
        }
        Ok(())
    }

    /// Consumes a completion notification.
    fn take_notice(&mut self) {
        let (mut queue, mut context) = (null_mut(), null_mut());
        let verbs = &self.connection.library.verbs;
        // SAFETY: the channel exists as long as the connection, and the library writes the address of the queue.
        unsafe {
            if (verbs.next_notice)(self.connection.notices, &raw mut queue, &raw mut context) == 0 {
                (verbs.noticed)(queue, 1);
            }
        }
    }

    /// Takes up to `most` completed units.
    pub(super) fn take(&mut self, most: usize) -> impl Iterator<Item = (u32, Outcome)> + '_ {
        let count = self.done.len().min(most);
        self.done.drain(..count)
    }
}

impl DrivenByWorker for Traffic {
    fn outstanding(&self) -> usize {
        self.in_flight + self.done.len()
    }

    fn count_done(&mut self) -> usize {
        self.done.len()
    }

    /// Fails with `Interrupted` if nothing has completed, so that the worker checks the time.
    fn drive(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let before = self.done.len();
        if self.poll() > 0 {
            return Ok(());
        }
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            self.vain = self.vain.wrapping_add(1);
            if self.vain.is_multiple_of(VAIN) {
                self.attend();
            }
            return Ok(());
        }
        let looking = Instant::now();
        while self.in_flight > 0 && looking.elapsed() < LOOKING {
            if self.poll() > 0 {
                self.heard = looking;
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.sleep(timeout)?;
        self.attend();
        if self.poll() > 0 {
            self.heard = Instant::now();
        }
        if self.done.len() > before { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    }
}
