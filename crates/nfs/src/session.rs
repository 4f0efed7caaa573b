//! Drives the requests in flight on one connection, and restores the connection if it breaks.

mod calls;
mod damaged;
mod file;
mod mending;
mod names;
mod plain;
#[cfg(test)]
mod tests;

pub(crate) use self::calls::{Calls, What};
pub use self::damaged::{samples, take_answers};
pub(crate) use self::file::{File, Opened};

use crate::connection::{Broken, Connection};
use crate::protocol::Version;
use crate::rpc::{self, Caller};
use crate::socket::{Deadline, Stopping, connect};
use crate::url::Address;
use crate::xdr::padding;
use crate::{NfsError, v3, v4};
use iolite_types::describe_error;
use std::io;
use std::time::{Duration, Instant};

/// Where written data must be before the server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stability {
    /// Anywhere; a commit puts it on stable storage.
    #[default]
    Unstable = 0,
    /// The data is on stable storage.
    Data = 1,
    /// The data and the file's metadata are on stable storage.
    File = 2,
}

/// The limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long the server may be silent or unreachable.
    pub patience: Duration,
    /// The limit for copies of written data that is not on stable storage yet, in bytes. A commit is sent before the
    /// copies reach it. `None` = do not keep copies.
    pub keep: Option<u64>,
    /// How many requests the owner has in flight, at most.
    pub depth: u32,
}

/// A finished unit.
#[derive(Debug)]
pub struct Done {
    /// The unit.
    pub unit: u32,
    /// When the last answer to it arrived.
    pub answered: Instant,
    /// The outcome: the bytes moved, or an error.
    pub result: Result<u64, Box<NfsError>>,
}

/// An open file of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(u32);

/// Counts of events that users should know about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often a lost connection was restored.
    pub reconnected: u64,
    /// Writes that were sent again because the server restarted before they were on stable storage.
    pub rewritten: u64,
    /// The bytes of these writes.
    pub rewritten_bytes: u64,
    /// How often the server was too busy for a request.
    pub busy: u64,
    /// Sessions of version 4 that were made because the server had ended the one before.
    pub sessions: u64,
    /// Files that were opened again because the server no longer knew them.
    pub reopened: u64,
}

/// A connection to a server, and everything in flight on it.
pub struct Session {
    pub(crate) address: Address,
    /// The server with its port, for messages.
    server: String,
    port: u16,
    pub(crate) limits: Limits,
    caller: Caller,
    /// What a server of version 4 knows of this client.
    pub(crate) client: v4::Client,
    /// When the job was asked to end, and the patience until then.
    hurried: Option<(Instant, Duration)>,
    /// How calls that wait notice that the job was asked to end.
    stopping: Option<Stopping>,
    pub(crate) connection: Option<Connection>,
    /// The state of a connection that was lost and is not restored yet.
    broken: Option<mending::Gap>,
    /// The time of the last attempt to connect again.
    tried: Option<Instant>,
    /// How long calls have waited for a busy server during the recovery under way, whose patience they share.
    pub(crate) recovery: Option<Duration>,
    pub(crate) calls: Calls,
    pub(crate) root: Vec<u8>,
    /// The largest reads and writes that the server accepts.
    pub(crate) most_read: usize,
    pub(crate) most_written: usize,
    /// When the server last sent data, or when the first request was sent after a time without requests in flight.
    heard: Instant,
}

impl Session {
    /// Connects to a server and finds the export. With `stopping`, this and all calls that wait for their answer check
    /// repeatedly whether the job was asked to end. Then they act as after [`Session::hurry`].
    ///
    /// # Errors
    /// The server cannot be reached, or refuses access to the export.
    pub fn connect(
        address: Address,
        limits: Limits,
        stopping: Option<Stopping>,
    ) -> Result<Session, NfsError> {
        let caller = Caller::new(&address);
        let mut deadline = Deadline::new(limits.patience, stopping);
        let (root, port) = match address.version {
            Version::Three => (
                v3::mount(&address, &caller, &mut deadline)?,
                v3::port_of_nfs(&address, &caller, &mut deadline)?,
            ),
            Version::Four => (Vec::new(), address.nfs_port.unwrap_or(v3::USUAL_PORT)),
        };
        let host = &address.host;
        let server = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut session = Session {
            server,
            port,
            limits,
            caller,
            hurried: None,
            stopping,
            connection: None,
            broken: None,
            tried: None,
            recovery: None,
            calls: Calls::new(address.version, limits.keep.is_some(), limits.patience),
            client: v4::Client::new(limits.depth),
            root,
            most_read: 4096,
            most_written: 4096,
            heard: Instant::now(),
            address,
        };
        session.connection = Some(session.new_connection(&mut deadline)?);
        // If the job was asked to end, the first call belongs to connecting, which has one limit.
        if let Some(left) = deadline.left_after_the_end() {
            session.hurry(left);
        }
        session.calls.protocol.begin(&mut session)?;
        if let (Some(_), Some((_, longest))) = (session.hurried, stopping) {
            session.wait_for(limits.patience.min(longest));
        }
        Ok(session)
    }

    fn new_connection(&self, deadline: &mut Deadline) -> Result<Connection, NfsError> {
        let made = connect(&self.address, self.port, deadline).and_then(Connection::new);
        made.map_err(|error| deadline.error(&self.server, &error))
    }

    /// Keeps an open file.
    fn keep_file(&mut self, opened: Opened) -> Handle {
        let file = File::new(opened);
        let files = &mut self.calls.files;
        match files.iter().position(Option::is_none) {
            Some(place) => {
                files[place] = Some(file);
                Handle(place as u32)
            }
            None => {
                files.push(Some(file));
                Handle(files.len() as u32 - 1)
            }
        }
    }

    /// Begins a read. Returns false if there is no room: then other requests have to complete first.
    ///
    /// # Safety
    /// The memory is valid for writing `length` bytes until the unit is done or the session is dropped. No other unit
    /// in flight has this number.
    pub unsafe fn read(&mut self, unit: u32, file: Handle, offset: u64, to: *mut u8, length: usize) -> bool {
        self.begin(What::Read, unit, file, (offset, to, length), Stability::Unstable)
    }

    /// Begins a write. Returns false if there is no room: then other requests have to complete first.
    ///
    /// # Safety
    /// The memory is valid for reading `length` bytes until the unit is done or the session is dropped. No other unit
    /// in flight has this number.
    pub unsafe fn write(
        &mut self,
        unit: u32,
        file: Handle,
        offset: u64,
        from: *const u8,
        length: usize,
        stability: Stability,
    ) -> bool {
        self.begin(What::Write, unit, file, (offset, from.cast_mut(), length), stability)
    }

    /// Begins to commit the earlier writes to a file. Returns false if there is no room.
    pub fn commit(&mut self, unit: u32, file: Handle) -> bool {
        if self.calls.room() == 0 {
            return false;
        }
        self.listen();
        self.calls.begin_unit(unit, 0, 0, 1);
        self.begin_commit(Some(unit), file.0);
        true
    }

    fn begin_commit(&mut self, unit: Option<u32>, file: u32) {
        let place = self.calls.begin(What::Commit, unit, file, (0, std::ptr::null_mut(), 0));
        if let Some(file) = &mut self.calls.files[file as usize] {
            file.commits += 1;
            let slot = &mut self.calls.slots[place];
            slot.mark = file.noted;
        }
        self.send(place);
    }

    fn begin(
        &mut self,
        what: What,
        unit: u32,
        file: Handle,
        (offset, at, length): (u64, *mut u8, usize),
        stability: Stability,
    ) -> bool {
        let most = if what == What::Read { self.most_read } else { self.most_written };
        let count = length.div_ceil(most).max(1);
        if count > self.calls.room() {
            return false;
        }
        self.listen();
        self.calls.begin_unit(unit, offset, length as u64, count as u32);
        for part in 0..count {
            let start = part * most;
            let range = (offset + start as u64, at.wrapping_add(start), (length - start).min(most));
            let place = self.calls.begin(what, Some(unit), file.0, range);
            self.calls.slots[place].stability = stability;
            self.send(place);
        }
        true
    }

    /// Starts to measure the server's silence, if no unit is in flight yet.
    fn listen(&mut self) {
        if self.calls.units == 0 {
            self.heard = Instant::now();
        }
    }

    /// Writes a call, which the next flush sends. Without a connection, the call is sent when the connection is
    /// restored; without a free slot in the session of version 4, when there is one.
    fn send(&mut self, place: usize) {
        let Some(connection) = &mut self.connection else { return };
        let calls = &mut self.calls;
        if self.address.version == Version::Four && calls.slots[place].session_slot.is_none() {
            calls.slots[place].session_slot = calls.table.take();
            if calls.slots[place].session_slot.is_none() {
                calls.waiting.push_back(place);
                return;
            }
        }
        calls.slots[place].state = calls.opened(place).map_or_else(Default::default, |opened| opened.state);
        let head = connection.head();
        let start = calls.protocol.write_request(head, calls, place, &self.caller);
        let slot = &calls.slots[place];
        match slot.what {
            What::Write => {
                let padding = padding(slot.length);
                rpc::end(head, start, slot.length + padding);
                connection.body(slot.at, slot.length, padding);
            }
            _ => rpc::end(head, start, 0),
        }
    }

    /// Sends calls that have waited for a slot of the session.
    fn send_waiting(&mut self) {
        while !self.calls.waiting.is_empty() && self.connection.is_some() && self.calls.table.has_free() {
            let Some(place) = self.calls.waiting.pop_front() else { return };
            self.send(place);
        }
    }

    /// Sends queued calls, unless more are to be expected at once, because finished units wait to be taken and replaced.
    /// (Sending costs more than all else.)
    pub fn submit(&mut self) {
        /// So many bytes are sent in any case.
        const MUCH: usize = 64 << 10;
        let unsent = self.connection.as_ref().map_or(0, Connection::unsent);
        if self.calls.done.is_empty() || unsent >= MUCH {
            self.flush();
        }
    }

    /// Sends as many queued calls as the connection accepts.
    pub fn flush(&mut self) {
        if let Some(connection) = &mut self.connection
            && let Err(error) = connection.flush()
        {
            self.lose_connection(&describe_error(&error), error.raw_os_error());
        }
    }

    /// Limits the waits for the server to `longest`, because the job was asked to end.
    pub fn hurry(&mut self, longest: Duration) {
        let own = self.limits.patience;
        let Some(less) = own.checked_sub(longest).filter(|less| !less.is_zero()) else { return };
        let now = Instant::now();
        // A wait that has begun already ends at its own limit, if that is sooner.
        let moved = |since: Instant| since.checked_add(less).map_or(now, |since| since.min(now));
        self.wait_for(longest);
        self.hurried = Some((now, own));
        self.heard = moved(self.heard);
        if let Some(gap) = &mut self.broken {
            gap.move_start(moved);
        }
    }

    /// Limits each wait for the server.
    pub(crate) fn wait_for(&mut self, patience: Duration) {
        self.limits.patience = patience;
        self.calls.patience = patience;
    }

    /// Shortens the waits from now on if the job was asked to end.
    fn look_for_the_end(&mut self) {
        if let Some((is_asked, longest)) = self.stopping
            && is_asked()
        {
            self.hurry(longest);
        }
    }

    /// How long the session waited for the server, as text.
    fn within(&self) -> String {
        let patience = self.limits.patience;
        match self.hurried {
            Some((since, _)) if since.elapsed() >= patience => {
                NfsError::after_the_end(self.stopping.map_or(patience, |(_, longest)| longest))
            }
            Some((_, own)) => NfsError::within(own),
            None => NfsError::within(patience),
        }
    }

    /// How many units are in flight.
    pub fn in_flight(&self) -> usize {
        self.calls.units
    }

    /// How many finished units [`Session::next_done`] has not returned yet.
    pub fn count_done(&self) -> usize {
        self.calls.done.len()
    }

    /// Returns the unit that finished first, and forgets it.
    pub fn next_done(&mut self) -> Option<Done> {
        self.calls.done.pop_front()
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.calls.counts
    }

    /// Sends and receives, waiting for data for at most `timeout` (`None` = until the next check is due).
    ///
    /// # Errors
    /// A signal interrupted the wait.
    pub fn drive(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = match self.resend() {
            Some(next) => Some(timeout.map_or(next, |timeout| timeout.min(next))),
            None => timeout,
        };
        let Some(connection) = &mut self.connection else { return self.mend(timeout) };
        match connection.exchange(timeout, &mut self.calls) {
            Ok(true) => self.hear(),
            Ok(false) => self.check_silence(),
            Err(Broken::System(error)) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(broken) => self.note_broken(broken),
        }
        if self.calls.table.is_lost() && self.connection.is_some() {
            self.lose_connection("the server has restarted", None);
        }
        if !self.calls.waiting.is_empty() {
            self.send_waiting();
            self.flush();
        }
        if self.calls.has_doubtful && self.connection.is_some() {
            // (If the connection is lost meanwhile, the next one opens them.)
            self.recovery = Some(Duration::ZERO);
            let _ = self.calls.protocol.reopen(self);
            self.recovery = None;
        }
        if self.calls.is_restless && self.connection.is_some() {
            self.restore_after_flight()?;
        }
        self.commit_what_is_much();
        Ok(())
    }

    fn note_broken(&mut self, broken: Broken) {
        match broken {
            Broken::System(error) => self.lose_connection(&describe_error(&error), error.raw_os_error()),
            Broken::Protocol(error) => self.lose_connection(&error.to_string(), Some(error.errno())),
        }
    }

    /// Resends requests that the server has performed only in part, or was too busy for. Returns the time until the
    /// next one is due.
    fn resend(&mut self) -> Option<Duration> {
        self.send_waiting();
        while let Some(place) = self.calls.again.pop() {
            self.calls.renew(place);
            self.send(place);
        }
        if self.calls.later.is_empty() {
            return None;
        }
        let now = Instant::now();
        if self.calls.open() == self.calls.later.len() {
            // (There was nothing for the server to answer in the meantime.)
            self.heard = now;
        }
        let (due, later): (Vec<_>, Vec<_>) = self.calls.later.drain(..).partition(|(when, _)| *when <= now);
        self.calls.later = later;
        for (_, place) in due {
            self.calls.renew(place);
            self.send(place);
        }
        self.calls.later.iter().map(|(when, _)| when.saturating_duration_since(now)).min()
    }

    /// Gives up on a server that has been silent for too long.
    fn check_silence(&mut self) {
        let silence = self.heard.elapsed();
        // (The calls in `later` have not been sent again yet, so the server has nothing to answer.)
        if self.calls.open() > self.calls.later.len() && silence >= self.limits.patience {
            let error = self.silent();
            self.connection = None;
            self.broken = Some(mending::Gap::given_up(&error));
            self.calls.fail_all(&error);
        }
    }

    fn silent(&self) -> NfsError {
        NfsError::Silent { server: self.server.clone(), within: self.within() }
    }

    /// Renews the lease of version 4 if nothing else has for a while. Call this again and again while nothing is in
    /// flight; it does not wait. Returns whether there is a lease.
    pub fn keep_alive(&mut self) -> bool {
        let Some(renewal) = self.client.renewal() else { return false };
        if self.connection.is_none() {
            return true;
        }
        if self.calls.open() == 0 {
            if self.heard.elapsed() < renewal {
                return true;
            }
            self.heard = Instant::now();
            let place = self.calls.begin(What::Renew, None, u32::MAX, (0, std::ptr::null_mut(), 0));
            self.send(place);
        }
        let _ = self.drive(Some(Duration::ZERO));
        true
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.calls.protocol.leave(self);
    }
}
