//! Drives the requests in flight on one connection, and restores the connection if it breaks.

mod calls;
mod file;
mod mending;
mod names;
#[cfg(test)]
mod tests;

use self::calls::{Calls, What};
use self::file::File;
use crate::NfsError;
use crate::connection::{Broken, Connection};
use crate::mount::{mount, port_of_nfs};
use crate::protocol::{Attributes, NFS, procedure};
use crate::rpc::{self, Caller};
use crate::socket::{Deadline, Stopping, connect};
use crate::url::Address;
use crate::xdr::{Reader, Writer, padding};
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
}

/// A connection to a server, and everything in flight on it.
pub struct Session {
    address: Address,
    /// The server with its port, for messages.
    server: String,
    port: u16,
    limits: Limits,
    caller: Caller,
    /// When the job was asked to end, and the patience until then.
    hurried: Option<(Instant, Duration)>,
    /// How calls that wait notice that the job was asked to end.
    stopping: Option<Stopping>,
    connection: Option<Connection>,
    /// The state of a connection that was lost and is not restored yet.
    broken: Option<mending::Gap>,
    /// The time of the last attempt to connect again.
    tried: Option<Instant>,
    calls: Calls,
    root: Vec<u8>,
    /// The largest reads and writes that the server accepts.
    most_read: usize,
    most_written: usize,
    /// When the server last sent data, or when the first request was sent after a time without requests in flight.
    heard: Instant,
}

impl Session {
    /// Connects to a server and mounts the export. With `stopping`, this and all calls that wait for their answer check
    /// repeatedly whether the job was asked to end. Then they act as after [`Session::hurry`].
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the mount.
    pub fn connect(
        address: Address,
        limits: Limits,
        stopping: Option<Stopping>,
    ) -> Result<Session, NfsError> {
        let caller = Caller::new(&address);
        let mut deadline = Deadline::new(limits.patience, stopping);
        let root = mount(&address, &caller, &mut deadline)?;
        let port = port_of_nfs(&address, &caller, &mut deadline)?;
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
            calls: Calls::new(limits.keep.is_some(), limits.patience),
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
        session.learn_limits()?;
        if let (Some(_), Some((_, longest))) = (session.hurried, stopping) {
            session.wait_for(limits.patience.min(longest));
        }
        Ok(session)
    }

    fn new_connection(&self, deadline: &mut Deadline) -> Result<Connection, NfsError> {
        let made = connect(&self.address.host, self.port, deadline).and_then(Connection::new);
        made.map_err(|error| deadline.error(&self.server, &error))
    }

    /// Asks the server for the largest reads and writes that it accepts.
    fn learn_limits(&mut self) -> Result<(), NfsError> {
        let root = self.root.clone();
        let answer = self.call(procedure::FSINFO, |writer| {
            writer.opaque(&root);
        })?;
        let mut reader = Reader::new(&answer);
        self.granted(&mut reader, || "FSINFO".to_owned())?;
        Attributes::after(&mut reader)?;
        let (most_read, _, _, most_written) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        // (No real server answers zero. The minimum makes sure that requests can be sent at all.)
        self.most_read = (most_read as usize).clamp(512, 32 << 20);
        self.most_written = (most_written as usize).clamp(512, 32 << 20);
        Ok(())
    }

    /// Keeps a file that has this handle on the server.
    fn keep_file(&mut self, handle: Vec<u8>, name: String) -> Handle {
        let file = File::new(handle, name);
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
    /// restored.
    fn send(&mut self, place: usize) {
        let Some(connection) = &mut self.connection else { return };
        let slot = &self.calls.slots[place];
        let Some(file) = &self.calls.files[slot.file as usize] else { return };
        let head = connection.head();
        let number = match slot.what {
            What::Read => procedure::READ,
            What::Write => procedure::WRITE,
            _ => procedure::COMMIT,
        };
        let start = rpc::begin(head, slot.id, NFS, number, &self.caller);
        let mut writer = Writer(head);
        writer.opaque(&file.handle);
        match slot.what {
            What::Write => {
                let length = slot.length as u32;
                writer.u64(slot.offset).u32(length).u32(slot.stability as u32).u32(length);
                let padding = padding(slot.length);
                rpc::end(head, start, slot.length + padding);
                connection.body(slot.at, slot.length, padding);
            }
            // A commit covers the whole file.
            What::Commit => {
                writer.u64(0).u32(0);
                rpc::end(head, start, 0);
            }
            _ => {
                writer.u64(slot.offset).u32(slot.length as u32);
                rpc::end(head, start, 0);
            }
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
    fn wait_for(&mut self, patience: Duration) {
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

    /// Makes a call and waits for the answer. Repeats the call if the server is busy or the connection is lost.
    fn call(&mut self, number: u32, arguments: impl Fn(&mut Writer<'_>)) -> Result<Vec<u8>, NfsError> {
        self.over_any_connection(|session| session.patiently(number, &arguments))
    }

    /// Makes a call on the current connection only, and waits for the answer. If the connection is lost, the error is
    /// [`NfsError::Unreachable`].
    fn call_once(&mut self, number: u32, arguments: impl Fn(&mut Writer<'_>)) -> Result<Vec<u8>, NfsError> {
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
        let connection = self.connection.as_mut().ok_or_else(lost)?;
        let place = self.calls.begin(What::Plain, None, 0, (0, std::ptr::null_mut(), 0));
        let id = self.calls.slots[place].id;
        let head = connection.head();
        let start = rpc::begin(head, id, NFS, number, &self.caller);
        arguments(&mut Writer(head));
        rpc::end(head, start, 0);
        self.calls.answer = None;
        loop {
            match &self.calls.answer {
                Some((answered, _)) if *answered == place => {
                    let (_, answer) = self.calls.answer.take().expect("there is an answer");
                    return answer;
                }
                _ => {}
            }
            self.look_for_the_end();
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

    /// Reads the status of an answer. An error status becomes an error.
    fn granted(&self, reader: &mut Reader<'_>, what: impl FnOnce() -> String) -> Result<(), NfsError> {
        match reader.u32()? {
            0 => Ok(()),
            code => Err(NfsError::Refused { what: what(), code }),
        }
    }
}
