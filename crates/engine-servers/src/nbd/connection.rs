//! A connection to an NBD server, and the commands in flight on it.

use super::library::{Callback, FUA, Library, READABLE, Raw, SMALLEST, WRITABLE};
use crate::driven_by_worker::DrivenByWorker;
use crate::server_timeout::ServerTimeout;
use iolite_engine::is_asked_to_stop;
use iolite_engine::{EngineError, Errno};
use iolite_http::percent_decoded;
use iolite_options::engines::masked;
use iolite_os::explained;
use iolite_os::local_end::LocalEnd;
use iolite_os::time::monotonic_ns;
use libc::{c_int, c_void};
use std::cell::{Cell, UnsafeCell};
use std::ffi::CString;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::IntoRawFd;
use std::time::{Duration, Instant};

/// The longest sleep between two checks for signals and timeouts.
const NAP: Duration = Duration::from_millis(100);

/// The largest piece that is written at once when the device is laid out.
const PIECE: usize = 1 << 20;

/// Commands to the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Read(*mut u8),
    Write(*const u8, bool),
    Trim,
    Flush,
}

/// The outcomes of commands. The library calls back from within its own functions, on the worker's thread.
#[derive(Default)]
struct Outcomes {
    /// Finished commands and their error numbers (0 = success), in the order in which they finished.
    done: Vec<(u32, i32)>,
}

/// The slot of a command, which does not move.
struct Slot {
    number: u32,
    /// The command is in flight.
    is_open: Cell<bool>,
    /// When the answer to its last command arrived (`CLOCK_MONOTONIC`); 0 = it has none.
    answered: Cell<u64>,
    outcomes: *const UnsafeCell<Outcomes>,
}

/// A connection.
pub(super) struct Connection {
    library: Library,
    raw: *mut Raw,
    outcomes: Box<UnsafeCell<Outcomes>>,
    #[expect(clippy::vec_box, reason = "the library has pointers to them, so they must not move")]
    slots: Vec<Box<Slot>>,
    pub(super) in_flight: usize,
    /// The server's URI, for messages.
    uri: String,
    silence: ServerTimeout,
    /// Why the connection has failed permanently.
    failure: Option<(i32, String)>,
    pub(super) size: u64,
    pub(super) smallest: u64,
    pub(super) is_read_only: bool,
    pub(super) can_trim: bool,
    pub(super) can_flush: bool,
    pub(super) can_fua: bool,
}

/// # Safety
/// `data` is a slot, and `error` points to an error number.
unsafe extern "C" fn over(data: *mut c_void, error: *mut c_int) -> c_int {
    // SAFETY: the slot and the data it points to live as long as the connection. The library calls back only from
    // within functions that the connection calls, and the connection holds no references to the outcomes then.
    unsafe {
        let slot = &*data.cast::<Slot>();
        // (If the command was abandoned, it has been reported already.)
        if !slot.is_open.replace(false) {
            return 1;
        }
        slot.answered.set(monotonic_ns());
        (*(*slot.outcomes).get()).done.push((slot.number, *error));
    }
    // This tells the library that the caller will not ask for the command's outcome.
    1
}

/// Connects to the server of a URI from here, because the library connects from wherever the system chooses. Returns the name of the
/// export, too.
fn from(
    source: &LocalEnd,
    uri: &str,
    silence: &ServerTimeout,
) -> Result<(TcpStream, CString), (i32, String)> {
    /// The port of NBD.
    const USUAL: u16 = 10809;
    let invalid = |why: &str| (libc::EINVAL, format!("bind={source}: {why}"));
    let (scheme, rest) = uri.split_once("://").unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("nbd") {
        return Err(invalid(
            "this is for nbd://; other connections are made by libnbd, where the system chooses",
        ));
    }
    let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let export = percent_decoded(export.split(['?', '#']).next().unwrap_or_default());
    let export = export.and_then(|export| CString::new(export).ok());
    let export = export.ok_or_else(|| invalid("the name of the export is not a valid one"))?;
    let with_port = |host: &str| match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => Some((name.to_owned(), port.parse().ok()?)),
        _ => Some((host.to_owned(), USUAL)),
    };
    let (name, port) = with_port(host).ok_or_else(|| invalid("the port is not a number"))?;
    let told =
        |error: io::Error| (error.raw_os_error().unwrap_or(libc::EIO), format!("bind={source}: {error}"));
    let name = name.trim_matches(['[', ']']);
    let name = if name.is_empty() { "localhost" } else { name };
    let mut last = io::Error::from_raw_os_error(libc::EADDRNOTAVAIL);
    for address in (name, port).to_socket_addrs().map_err(told)?.filter(|to| source.reaches(to.ip())) {
        match source.connect(address, silence.limit()) {
            Ok(socket) => {
                let _ = socket.set_nodelay(true);
                return Ok((socket, export));
            }
            Err(error) => last = error,
        }
    }
    Err(told(last))
}

impl Connection {
    /// Connects to a server. `silence` limits its silence.
    pub(super) fn new(
        uri: &str,
        shown: &str,
        source: Option<&LocalEnd>,
        silence: ServerTimeout,
    ) -> Result<Connection, EngineError> {
        let library = Library::load()?;
        let refused = |errno, why: String| EngineError::Remote {
            engine: "nbd",
            errno,
            // The library's message may contain the URI.
            why: format!("uri={shown}: {}", masked(&why.replace(uri, shown))),
        };
        let Ok(address) = CString::new(uri) else {
            return Err(refused(libc::EINVAL, "there is a zero in it".to_owned()));
        };
        // SAFETY: the function takes no arguments.
        let raw = unsafe { (library.create)() };
        if raw.is_null() {
            let (errno, why) = library.last_error();
            return Err(refused(errno, why));
        }
        let mut connection = Connection {
            library,
            raw,
            outcomes: Box::default(),
            slots: Vec::new(),
            in_flight: 0,
            uri: shown.to_owned(),
            silence,
            failure: None,
            size: 0,
            smallest: 1,
            is_read_only: false,
            can_trim: false,
            can_flush: false,
            can_fua: false,
        };
        let socket = source.map(|source| from(source, uri, &connection.silence)).transpose();
        let socket = socket.map_err(|(errno, why)| refused(errno, why))?;
        connection.open(&address, socket).map_err(|(errno, why)| refused(errno, why))?;
        Ok(connection)
    }

    fn open(&mut self, address: &CString, socket: Option<(TcpStream, CString)>) -> Result<(), (i32, String)> {
        let lib = &self.library;
        // SAFETY: the connection exists, and the address ends with a zero byte.
        unsafe {
            // Certificates and keys are in files that the URI names.
            (lib.allow_local_file)(self.raw, true);
            let begun = match socket {
                None => (lib.connect)(self.raw, address.as_ptr()),
                // The library closes the socket.
                Some((socket, export)) => match (lib.name_export)(self.raw, export.as_ptr()) {
                    0 => (lib.connect_socket)(self.raw, socket.into_raw_fd()),
                    failed => failed,
                },
            };
            if begun < 0 {
                return Err(lib.last_error());
            }
            while (lib.is_ready)(self.raw) != 1 {
                if (lib.is_dead)(self.raw) == 1 || (lib.is_closed)(self.raw) == 1 {
                    return Err(lib.last_error());
                }
                if (lib.poll)(self.raw, NAP.as_millis() as c_int) < 0 && lib.last_error().0 != libc::EINTR {
                    return Err(lib.last_error());
                }
                if is_asked_to_stop() {
                    self.silence.hurry();
                }
                if self.silence.is_too_long() {
                    return Err((libc::ETIMEDOUT, self.silence.words()));
                }
            }
            self.size = u64::try_from((lib.size)(self.raw)).map_err(|_| lib.last_error())?;
            self.smallest = u64::try_from((lib.block_size)(self.raw, SMALLEST)).unwrap_or(0).max(1);
            self.is_read_only = (lib.is_read_only)(self.raw) == 1;
            self.can_trim = (lib.can_trim)(self.raw) == 1;
            self.can_flush = (lib.can_flush)(self.raw) == 1;
            self.can_fua = (lib.can_fua)(self.raw) == 1;
        }
        Ok(())
    }

    /// Begins a command.
    ///
    /// # Safety
    /// The buffer of the command is valid for `length` bytes until the command is done or the connection is dropped.
    /// No other command in flight has this number.
    pub(super) unsafe fn begin(
        &mut self,
        number: u32,
        command: Command,
        offset: u64,
        length: u64,
    ) -> Result<(), (Errno, String)> {
        if let Some((errno, why)) = &self.failure {
            return Err((Errno(*errno), why.clone()));
        }
        while self.slots.len() <= number as usize {
            let number = self.slots.len() as u32;
            self.slots.push(Box::new(Slot {
                number,
                is_open: Cell::new(false),
                answered: Cell::new(0),
                outcomes: &raw const *self.outcomes,
            }));
        }
        if self.in_flight == 0 {
            self.silence.hears();
        }
        self.slots[number as usize].is_open.set(true);
        self.slots[number as usize].answered.set(0);
        let data = (&raw const *self.slots[number as usize]).cast_mut().cast();
        let callback = Callback { call: over, data, free: None };
        let (lib, raw, count) = (&self.library, self.raw, length as usize);
        // SAFETY: the caller promises that the memory is valid, and the callback's data is valid until the connection
        // is closed.
        let begun = unsafe {
            match command {
                Command::Read(to) => (lib.read)(raw, to.cast(), count, offset, callback, 0),
                Command::Write(from, is_stable) => {
                    let flags = if is_stable { FUA } else { 0 };
                    (lib.write)(raw, from.cast(), count, offset, callback, flags)
                }
                Command::Trim => (lib.trim)(raw, length, offset, callback, 0),
                Command::Flush => (lib.flush)(raw, callback, 0),
            }
        };
        if begun < 0 {
            let (errno, why) = lib.last_error();
            // The callback may have run nevertheless.
            let is_called_back = !self.slots[number as usize].is_open.replace(false);
            // This command may be the first to notice that the connection is lost.
            if self.is_over() {
                self.lose(errno, &why);
            }
            if is_called_back {
                self.in_flight += 1;
                return Ok(());
            }
            let words = self.failure().map_or_else(|| format!("{}: {why}", self.uri), str::to_owned);
            return Err((Errno(errno), words));
        }
        self.in_flight += 1;
        // The command may have ended already, because sending it showed that the connection is lost.
        if !self.slots[number as usize].is_open.get() && self.is_over() {
            self.lose(libc::ENOTCONN, "the server takes no more commands");
        }
        Ok(())
    }

    /// Takes up to `most` finished commands, each with its error number.
    pub(super) fn take(&mut self, most: usize) -> std::vec::Drain<'_, (u32, i32)> {
        let done = &mut self.outcomes.get_mut().done;
        let count = done.len().min(most);
        self.in_flight -= count;
        done.drain(..count)
    }

    /// When the answer to a command arrived (`CLOCK_MONOTONIC`); 0 = it has none.
    pub(super) fn answered(&self, number: u32) -> u64 {
        self.slots.get(number as usize).map_or(0, |slot| slot.answered.get())
    }

    /// Why the connection can no longer be used.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_ref().map(|(_, why)| why.as_str())
    }

    /// What the library waits for.
    fn direction(&self) -> u32 {
        // SAFETY: the connection exists.
        unsafe { (self.library.direction)(self.raw) }
    }

    /// Sleeps until the socket is ready for the operation that the library waits for.
    fn wait(&self, limit: Duration) -> io::Result<u32> {
        // SAFETY: the connection exists.
        let descriptor = unsafe { (self.library.descriptor)(self.raw) };
        let wanted = self.direction();
        let mut events = 0;
        events |= if wanted & READABLE != 0 { libc::POLLIN } else { 0 };
        events |= if wanted & WRITABLE != 0 { libc::POLLOUT } else { 0 };
        let mut watched = libc::pollfd { fd: descriptor, events, revents: 0 };
        let limit = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos().into() };
        // SAFETY: there is one descriptor; it and the time are valid through the call, and there is no mask.
        if unsafe { libc::ppoll(&raw mut watched, 1, &raw const limit, std::ptr::null()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut ready = 0;
        ready |=
            if watched.revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 { READABLE } else { 0 };
        ready |= if watched.revents & libc::POLLOUT != 0 { WRITABLE } else { 0 };
        Ok(ready)
    }

    /// Lets the library process the events that are ready.
    fn notify(&mut self, ready: u32) {
        // SAFETY: the connection exists; the caller of `begin` keeps the buffers of commands in flight.
        let failed = unsafe {
            let lib = &self.library;
            match (lib.direction)(self.raw) & ready {
                0 => false,
                wanted if wanted & READABLE != 0 => (lib.readable)(self.raw) < 0,
                _ => (lib.writable)(self.raw) < 0,
            }
        };
        if failed || self.is_over() {
            let (errno, why) = self.library.last_error();
            self.lose(errno, &why);
        }
    }

    /// Whether the connection is closed or dead.
    fn is_over(&self) -> bool {
        // SAFETY: the connection exists.
        unsafe { (self.library.is_dead)(self.raw) == 1 || (self.library.is_closed)(self.raw) == 1 }
    }

    fn lose(&mut self, errno: i32, why: &str) {
        self.failure = Some((errno, format!("{}: the connection was lost: {why}", self.uri)));
        self.fail_all(errno);
    }

    /// Fails all commands for which the library has not called back.
    fn fail_all(&mut self, errno: i32) {
        let done = &mut self.outcomes.get_mut().done;
        let open = self.slots.iter().filter(|slot| slot.is_open.replace(false));
        done.extend(open.map(|slot| (slot.number, errno)));
    }

    /// Limits the wait for a silent server if it has no limit, because the job has been asked to end.
    pub(super) fn hurry(&mut self) {
        self.silence.hurry();
    }

    fn check_silence(&mut self) {
        if self.in_flight > 0 && self.silence.is_too_long() {
            let why = format!("{}: {}", self.uri, self.silence.words());
            self.failure = Some((libc::ETIMEDOUT, why));
            self.fail_all(libc::ETIMEDOUT);
        }
    }

    /// Performs a command and waits for it. Nothing else may be in flight.
    fn call(&mut self, command: Command, offset: u64, length: u64) -> io::Result<()> {
        let told = |errno: i32, why: String| explained(&io::Error::from_raw_os_error(errno), why);
        // SAFETY: the buffer stays valid until the command is done, because the loop below waits for that.
        unsafe { self.begin(0, command, offset, length) }.map_err(|(errno, why)| told(errno.0, why))?;
        while self.count_done() == 0 {
            // A signal does not end this wait, because the caller would not repeat it. Other errors are in the outcome.
            let _ = self.drive(None);
            if is_asked_to_stop() {
                self.hurry();
            }
        }
        let outcome = self.take(1).next();
        match (outcome, self.failure()) {
            (Some((_, 0)), _) => Ok(()),
            (Some((_, errno)), Some(why)) => Err(told(errno, why.to_owned())),
            (Some((_, errno)), None) => Err(io::Error::from_raw_os_error(errno)),
            (None, _) => Ok(()),
        }
    }

    /// Puts written data on the server's stable storage. If the server does not support flush, the data is there
    /// already.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.can_flush { self.call(Command::Flush, 0, 0) } else { Ok(()) }
    }

    /// Writes all of these bytes.
    pub(super) fn write_all(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let smallest = self.smallest;
        if !offset.is_multiple_of(smallest) || !(bytes.len() as u64).is_multiple_of(smallest) {
            let words = format!(
                "{}: {} bytes at {offset}: the server wants multiples of {smallest} bytes (offset, size, bs)",
                self.uri,
                bytes.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        for (number, piece) in (0..).zip(bytes.chunks(PIECE)) {
            let start = offset + number * PIECE as u64;
            self.call(Command::Write(piece.as_ptr(), false), start, piece.len() as u64)?;
        }
        Ok(())
    }
}

impl DrivenByWorker for Connection {
    fn outstanding(&self) -> usize {
        self.in_flight
    }

    fn count_done(&mut self) -> usize {
        self.outcomes.get_mut().done.len()
    }

    fn drive(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        let before = self.count_done();
        // With a command that is sent in part, the library wants to know what the socket is really ready for: told that an
        // answer can be read, it waits for one, and for nothing else. Otherwise a read that finds nothing is the
        // cheapest question.
        let ready = if self.direction() & WRITABLE != 0 { self.wait(Duration::ZERO)? } else { READABLE };
        self.notify(ready);
        if self.count_done() > before {
            self.silence.hears();
            return Ok(());
        }
        let limit = timeout.map_or(NAP, |timeout| timeout.min(NAP));
        if self.failure.is_some() {
            return Ok(());
        }
        if limit.is_zero() {
            // A caller that does not wait must notice a silent server, too.
            self.check_silence();
            return Ok(());
        }
        let ready = self.wait(limit)?;
        self.notify(ready);
        match self.count_done() > before {
            true => self.silence.hears(),
            false => self.check_silence(),
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the connection exists, and slots and outcomes outlive it.
        unsafe {
            // Announces the end to the server, which answers by closing the connection. Waits only a short time for
            // that.
            if self.in_flight == 0 && self.failure.is_none() && (self.library.is_ready)(self.raw) == 1 {
                let _ = (self.library.disconnect)(self.raw, 0);
                let begun = Instant::now();
                while !self.is_over() && begun.elapsed() < NAP {
                    if (self.library.poll)(self.raw, NAP.as_millis() as c_int) < 0 {
                        break;
                    }
                }
            }
            // This cancels all commands in flight. From now on, the library does not access any buffer.
            (self.library.close)(self.raw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_testing::{NbdServer, or_skip};

    /// The connection waits until more of a large command can be sent, and not only for answers.
    #[test]
    fn a_command_that_is_sent_in_part_is_sent_on() {
        let directory = tempfile::tempdir().unwrap();
        let server = or_skip!(NbdServer::nbdkit(directory.path(), "memory 64M"));
        let silence = ServerTimeout::new("nbd_timeout", 60_000_000);
        let mut connection = or_skip!(
            Connection::new(server.uri(), server.uri(), None, silence).map_err(|error| error.to_string())
        );
        server.signal(libc::SIGSTOP);
        let data = vec![7; 16 << 20];
        // SAFETY: the data lives until the command is done.
        unsafe { connection.begin(0, Command::Write(data.as_ptr(), false), 0, data.len() as u64) }.unwrap();
        for _ in 0..3 {
            connection.drive(Some(Duration::ZERO)).unwrap();
            assert_ne!(connection.direction() & WRITABLE, 0, "more has to be sent");
        }
        server.signal(libc::SIGCONT);
        while connection.count_done() == 0 {
            connection.drive(None).unwrap();
        }
        assert_eq!(connection.take(1).next(), Some((0, 0)));
    }
}
