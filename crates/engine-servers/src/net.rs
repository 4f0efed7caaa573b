//! `net` and `netsplice`: units are sent to, or received from, the other end of a connection.
//!
//! A unit is one send(2) or recv(2), if the network takes or delivers it at once. Sockets block for a moment at most:
//! then the worker decides whether the job continues ([`Queued::Busy`]), so it does not hang if its peer is silent. A
//! receiver of TCP reads ahead, so that several small units are one call.
//!
//! # Messages beside the data
//!
//! A peer that has finished says goodbye, as in fio: eight bytes after the data, or a separate datagram. So the other
//! side can distinguish a regular end from an accident. A connection that ends without it has failed. A sender of
//! datagrams also announces itself with a datagram; its receiver begins when that arrives.

mod address;
mod ahead;
mod parting;
mod socket;
mod spliced;
#[cfg(test)]
mod tests;

pub(crate) use address::Address;
use ahead::Ahead;
use iolite_engine::{
    BufferLayout, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, StageEnds, Unit,
    WITHDRAWN,
};
use iolite_options::engines::{NetOptions, Protocol, of_worker};
use iolite_os::explained;
use iolite_os::local_end::LocalEnd;
use iolite_os::time::monotonic_ns;
use iolite_types::Operation;
use spliced::SocketPipe;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The first message of a sender of datagrams.
const HELLO: [u8; 8] = *b"link\0\0\0\x98";
/// The last message of a peer. A machine with the other byte order sends the second form.
const GOODBYES: [[u8; 8]; 2] = [*b"knil\x89\0\0\0", *b"link\0\0\0\x89"];
/// Sent to a silent peer, to check whether it is still there.
const PROBE: [u8; 8] = *b"iolite?\n";

/// After this time without a datagram, the other end is probed.
const SILENT: Duration = Duration::from_secs(1);
/// After this time, the answer to a datagram counts as lost.
const LOST: Duration = Duration::from_secs(10);
/// After this time without progress, the other end of a stream counts as hanging. The kernel gives up a TCP connection
/// after a minute as well.
const IDLE: Duration = Duration::from_secs(60);

/// How long a sender may take, after the end of its job, to complete a block that was sent in part.
const OVERTIME: Duration = Duration::from_secs(1);

/// The error of a sender that receives more than a goodbye.
const SENDS_AS_WELL: &str = "the other end sends as well (one of both has to receive: rw=read), or sends blocks back \
                             (pingpong is needed at both ends)";

/// Errors of ends that would wait for each other for ever.
const NO_ANSWER: &str =
    "a block was not sent back within a minute; pingpong is needed at both ends, with the same bs";
const NOTHING_SENT: &str =
    "nothing came within a minute of the connection; the other end has to send (rw=write)";

/// Sends and receives by send(2) and recv(2).
pub type NetEngine = Connection<false>;
/// Sends and receives by splice(2), as far as the protocol can be spliced.
pub type NetspliceEngine = Connection<true>;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection<const SPLICED: bool> {
    options: NetOptions,
    /// The address or interface that the connection comes from; `None` = the system chooses.
    bind: Option<String>,
    /// Flags of send(2) for data.
    send_flags: libc::c_int,
    /// Whether this end sends.
    sends: bool,
    /// The name of the job's file: the path of a local socket.
    path: PathBuf,
    /// The local socket that this end created: its device and inode number.
    made: Option<(u64, u64)>,
    /// The listening socket.
    listener: Option<OwnedFd>,
    socket: Option<OwnedFd>,
    /// The descriptor of `socket`; -1 = not connected.
    descriptor: RawFd,
    /// The destination of datagrams, unless the socket is connected.
    far: Option<Address>,
    /// The source of the last datagram.
    from: Address,
    pipe: Option<SocketPipe>,
    /// Data that was received before its unit.
    ahead: Option<Ahead>,
    /// How many bytes of the current unit, or of its answer, have been transferred.
    done: usize,
    /// The unit itself has been transferred; its answer comes next (`pingpong`).
    answering: bool,
    /// When the last block was sent and when its answer was there (`CLOCK_MONOTONIC`), with `pingpong`.
    sent: u64,
    answered: u64,
    /// The current unit waits for the peer to accept or send data.
    waits: bool,
    /// The other end has finished.
    over: bool,
    /// When the job ended; `None` = not yet.
    job_ended: Option<Instant>,
    /// When the first slice without a datagram ended, or the last probe was sent.
    silent: Option<Instant>,
    /// How long a stream may make no progress although it should.
    patience: Duration,
    /// When the first slice without progress occurred, and how much of the unit was done then.
    idle: Option<(Instant, usize)>,
    /// This end made the connection.
    connected: bool,
    /// A unit was completed.
    begun: bool,
    /// A message about data that the other end may not have received.
    doubt: Option<String>,
    /// The message about the failure.
    failed: Option<String>,
}

fn no_pipe(source: io::Error) -> EngineError {
    EngineError::Pipe { engine: "netsplice", source }
}

/// The result of trying to transfer the rest of a unit.
enum Step {
    Done,
    Wait,
    Over,
    Failed(Errno),
}

impl<const SPLICED: bool> Connection<SPLICED> {
    /// Creates an end that is not connected.
    ///
    /// # Errors
    /// The system refuses to create a pipe.
    pub fn new(config: &EngineConfig, options: &NetOptions) -> Result<Self, EngineError> {
        let splices = SPLICED && options.protocol.is_tcp();
        let gathers = options.protocol.is_tcp() && !options.nodelay && !options.pingpong && !config.pauses;
        Ok(Connection {
            // (A list with mistakes is no option.)
            bind: of_worker(&options.bind, config.worker).ok().flatten(),
            options: options.clone(),
            send_flags: libc::MSG_NOSIGNAL | if gathers { libc::MSG_MORE } else { 0 },
            sends: false,
            path: PathBuf::new(),
            made: None,
            listener: None,
            socket: None,
            descriptor: -1,
            far: None,
            from: Address::room(),
            pipe: splices.then(SocketPipe::new).transpose().map_err(no_pipe)?,
            ahead: None,
            done: 0,
            answering: false,
            sent: 0,
            answered: 0,
            waits: false,
            over: false,
            job_ended: None,
            silent: None,
            patience: IDLE,
            idle: None,
            connected: false,
            begun: false,
            doubt: None,
            failed: None,
        })
    }

    /// The other end of the connection, for messages.
    fn place(&self) -> String {
        let NetOptions { protocol, hostname, port, .. } = &self.options;
        match (protocol, hostname.is_empty()) {
            (Protocol::Unix, _) => format!("{}", self.path.display()),
            (_, true) => format!("{} port {port}", protocol.keyword()),
            (_, false) => format!("{} {hostname} port {port}", protocol.keyword()),
        }
    }

    /// Adds the place of an error to its message.
    fn named(&self, what: &str, error: io::Error) -> io::Error {
        match error.raw_os_error() {
            Some(libc::EINTR) | None => error,
            Some(_) => explained(&error, format!("{what} {}", self.place())),
        }
    }

    /// Starts listening.
    fn listen(&mut self) -> io::Result<()> {
        let address = address::here(&self.options, &self.path)?;
        let socket = socket::new(&self.options, self.sends)?;
        if self.options.protocol == Protocol::Unix {
            remove_socket(&self.path, None)?;
        }
        socket::bind(&socket, &address, &self.options)?;
        if self.options.protocol == Protocol::Unix {
            self.made = std::fs::symlink_metadata(&self.path).ok().map(|made| (made.dev(), made.ino()));
        }
        if let Some(group) = self.options.group() {
            socket::join(&socket, group, &self.options.interface)?;
        }
        self.listener = Some(socket);
        Ok(())
    }

    /// Uses this socket from now on.
    fn use_socket(&mut self, socket: OwnedFd) -> io::Result<()> {
        socket::wait_in_slices(&socket)?;
        self.descriptor = socket.as_raw_fd();
        // Data that was read ahead is no longer visible to calls that look for a goodbye (`pingpong`), or to the kernel
        // when the other end asks what was received (local sockets).
        let reads_ahead = !self.sends && self.options.protocol.is_tcp() && !self.options.pingpong;
        self.ahead = (reads_ahead && self.pipe.is_none()).then(Ahead::new);
        self.socket = Some(socket);
        Ok(())
    }

    /// Accepts the connection of the other end, or its first datagram.
    fn await_somebody(
        &mut self,
        listener: OwnedFd,
        goes_on: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.options.protocol.is_udp() {
            let socket = socket::accept(&listener, goes_on)?;
            socket::settle_stream(&socket, &self.options)?;
            return self.use_socket(socket);
        }
        socket::tell_errors(&listener, self.options.protocol)?;
        self.use_socket(listener)?;
        loop {
            goes_on()?;
            let mut message = [0; 9];
            match self.datagram(message.as_mut_ptr(), message.len()) {
                Ok(8) if message[..8] == HELLO => break,
                // A late goodbye of another job, or a probe for its peer.
                Ok(8) if is_goodbye(&message[..8]) || message[..8] == PROBE => {}
                Ok(length) => {
                    let words = format!(
                        "the first datagram at {} has {length} bytes and announces no sender: it comes from another \
                         program, or the sender began before this job was ready",
                        self.place()
                    );
                    return Err(explained(&io::Error::from_raw_os_error(libc::EPROTO), words));
                }
                Err(Errno(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED)) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.far = Some(self.from);
        Ok(())
    }

    /// Connects to the other end.
    fn connect(&mut self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut last = io::Error::from_raw_os_error(libc::EADDRNOTAVAIL);
        let source = self.bind.as_deref().map(LocalEnd::of_machine).transpose();
        let source = source.map_err(|why| io::Error::other(format!("bind={why}")))?;
        for address in address::there(&self.options, &self.path)? {
            let socket = socket::new(&self.options, self.sends)?;
            if let Some(source) = &source {
                source.bind(&socket).map_err(|error| explained(&error, format!("bind={source}")))?;
            }
            if let Some(group) = self.options.group() {
                socket::send_to_group(&socket, group, &self.options)?;
                self.far = Some(address);
                self.use_socket(socket)?;
                return self.say(&HELLO).map_err(Into::into);
            }
            match socket::connect(&socket, &address, goes_on) {
                Ok(()) => {
                    self.connected = true;
                    self.use_socket(socket)?;
                    return if self.options.protocol.is_udp() { self.announce() } else { Ok(()) };
                }
                Err(error) => {
                    goes_on()?;
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Announces datagrams to the receiver. If nothing listens there, its machine answers with an error, immediately if
    /// it is this machine.
    fn announce(&mut self) -> io::Result<()> {
        self.say(&HELLO)?;
        let Some(socket) = &self.socket else { return Ok(()) };
        match socket::pending_error(socket)? {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Sends a message in addition to the data.
    fn say(&self, message: &[u8]) -> Result<(), Errno> {
        match self.send_bytes(message.as_ptr(), message.len(), libc::MSG_NOSIGNAL) {
            0.. => Ok(()),
            _ => Err(Errno::last()),
        }
    }

    #[inline(always)]
    fn send_bytes(&self, bytes: *const u8, length: usize, flags: libc::c_int) -> isize {
        match &self.far {
            // SAFETY: the caller has that many bytes there.
            None => unsafe { libc::send(self.descriptor, bytes.cast(), length, flags) },
            // SAFETY: as above; the address outlives the call.
            Some(far) => unsafe {
                libc::sendto(self.descriptor, bytes.cast(), length, flags, far.pointer(), far.length)
            },
        }
    }

    /// Receives a datagram. Returns its length, which may exceed the room.
    fn datagram(&mut self, room: *mut u8, length: usize) -> Result<usize, Errno> {
        self.from.length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let (from, from_length) = (self.from.pointer_mut(), &raw mut self.from.length);
        // SAFETY: the caller has that much room there, and the address has as much as its length says.
        let result = unsafe {
            libc::recvfrom(self.descriptor, room.cast(), length, libc::MSG_TRUNC, from, from_length)
        };
        if result < 0 { Err(Errno::last()) } else { Ok(result as usize) }
    }

    /// Sends the rest of the unit.
    #[inline(always)]
    fn send(&mut self, unit: &Unit) -> Step {
        let length = unit.length as usize;
        let moved = match &mut self.pipe {
            None => {
                let rest = unit.buffer.wrapping_add(self.done);
                self.send_bytes(rest, length - self.done, self.send_flags)
            }
            Some(pipe) => pipe.send(self.descriptor, unit.buffer.wrapping_add(self.done), length - self.done),
        };
        if moved < 0 {
            return self.not_sent(Errno::last());
        }
        self.done += moved as usize;
        if self.done == length { Step::Done } else { Step::Wait }
    }

    #[cold]
    fn not_sent(&mut self, errno: Errno) -> Step {
        match errno {
            Errno(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) if self.options.protocol.is_udp() => Step::Wait,
            Errno(libc::EAGAIN | libc::EINTR) => self.look_across(),
            Errno(libc::EPIPE | libc::ECONNRESET | libc::ECONNREFUSED) if self.was_told_goodbye() => {
                Step::Over
            }
            errno => {
                let what = match errno.0 {
                    libc::EPIPE | libc::ECONNRESET => {
                        "the other end closed the connection before everything was sent"
                    }
                    libc::ECONNREFUSED => "nothing receives there",
                    libc::ETIMEDOUT => "the other end has taken nothing for a minute",
                    libc::EMSGSIZE => "a block has to fit into a datagram: at most 65507 bytes",
                    _ => "sending failed",
                };
                self.fail(errno, what)
            }
        }
    }

    /// The peer accepts no data. It may have finished, or may not be receiving.
    fn look_across(&mut self) -> Step {
        let mut message = [0u8; 8];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: the message has as much room as is said.
        match unsafe { libc::recv(self.descriptor, message.as_mut_ptr().cast(), message.len(), flags) } {
            0 => self.fail(
                Errno(libc::ECONNRESET),
                "the other end closed the connection before everything was sent",
            ),
            8 if is_goodbye(&message) => Step::Over,
            1.. if !self.options.pingpong => self.fail(Errno(libc::EPROTO), SENDS_AS_WELL),
            _ => self.find_idle(),
        }
    }

    /// Handles a slice in which a stream made no progress. A sender waits for each answer (`pingpong`), and a receiver
    /// that made the connection waits for a first block. If the other end waits as well, neither would ever end.
    ///
    /// Other ends may wait: for a sender that pauses, or has not begun, or for a receiver, as long as the kernel allows
    /// it.
    #[cold]
    fn find_idle(&mut self) -> Step {
        let is_due = if self.sends { self.options.pingpong } else { self.connected && !self.begun };
        if !is_due {
            return Step::Wait;
        }
        match self.idle_time() < self.patience {
            true => Step::Wait,
            false => self.fail(Errno(libc::ETIMEDOUT), if self.sends { NO_ANSWER } else { NOTHING_SENT }),
        }
    }

    /// For how long the current unit, or its answer, has made no progress, measured in slices.
    fn idle_time(&mut self) -> Duration {
        let now = Instant::now();
        match self.idle {
            Some((since, done)) if done == self.done => now - since,
            _ => {
                self.idle = Some((now, self.done));
                Duration::ZERO
            }
        }
    }

    /// Whether the other end said goodbye. It does so before it closes the connection.
    fn was_told_goodbye(&self) -> bool {
        let mut message = [0u8; 4096];
        let mut tail = [0u8; 8];
        loop {
            // SAFETY: the message has as much room as is said.
            let result = unsafe {
                libc::recv(self.descriptor, message.as_mut_ptr().cast(), message.len(), libc::MSG_DONTWAIT)
            };
            match result {
                8.. => {
                    let end = result as usize;
                    tail.copy_from_slice(&message[end - 8..end]);
                    if self.options.protocol.is_udp() && is_goodbye(&tail) {
                        return true;
                    }
                }
                // Less than a complete message: the goodbye may be split between this piece and the one before.
                1.. => return false,
                0 => return is_goodbye(&tail),
                _ if Errno::last() == Errno(libc::ECONNREFUSED) && self.options.protocol.is_udp() => {}
                _ => return is_goodbye(&tail),
            }
        }
    }

    /// Receives the rest of the unit.
    #[inline(always)]
    fn receive(&mut self, unit: &Unit) -> Step {
        if self.options.protocol.is_udp() {
            return self.receive_datagram(unit);
        }
        let length = unit.length as usize;
        if let Some(ahead) = &mut self.ahead {
            self.done += ahead.take(unit.buffer.wrapping_add(self.done), length - self.done);
            if self.done == length {
                return Step::Done;
            }
        }
        let (rest, left) = (unit.buffer.wrapping_add(self.done), length - self.done);
        let moved = match (&mut self.pipe, &mut self.ahead) {
            (Some(pipe), _) => pipe.receive(self.descriptor, rest, left),
            (None, Some(ahead)) => ahead.receive(self.descriptor, rest, left),
            // SAFETY: the buffer is valid for the unit's length, of which `left` bytes follow.
            (None, None) => unsafe { libc::recv(self.descriptor, rest.cast(), left, libc::MSG_WAITALL) },
        };
        if moved > 0 {
            self.done += moved as usize;
            return if self.done == length { Step::Done } else { Step::Wait };
        }
        let errno = if moved == 0 { None } else { Some(Errno::last()) };
        self.not_received(unit, errno)
    }

    /// Handles a call that received nothing: there is no data yet, or the stream has ended (`None`).
    #[cold]
    fn not_received(&mut self, unit: &Unit, errno: Option<Errno>) -> Step {
        let waits = matches!(errno, Some(Errno(libc::EAGAIN | libc::EINTR)));
        // SAFETY: that many bytes of the buffer have been received.
        let received = unsafe { std::slice::from_raw_parts(unit.buffer, self.done) };
        if let Some(data) = received.len().checked_sub(8)
            && is_goodbye(&received[data..])
        {
            self.done = data;
            return Step::Over;
        }
        match errno {
            _ if waits => self.find_idle(),
            None | Some(Errno(libc::ECONNRESET)) => {
                self.fail(Errno(libc::ECONNRESET), "the other end closed the connection before it was done")
            }
            Some(errno) => self.fail(errno, "receiving failed"),
        }
    }

    fn receive_datagram(&mut self, unit: &Unit) -> Step {
        let length = unit.length as usize;
        let (rest, left) = (unit.buffer.wrapping_add(self.done), length - self.done);
        let received = match self.datagram(rest, left) {
            Ok(received) => received,
            Err(Errno(libc::EAGAIN)) => return self.find_silent(),
            Err(Errno(libc::EINTR)) => return Step::Wait,
            Err(Errno(libc::ECONNREFUSED)) if self.was_told_goodbye() => return Step::Over,
            Err(Errno(libc::ECONNREFUSED)) => {
                return self
                    .fail(Errno(libc::ECONNRESET), "the other end closed the connection before it was done");
            }
            Err(errno) => return self.fail(errno, "receiving failed"),
        };
        if !self.sends && self.far.as_ref().is_some_and(|far| !far.is(&self.from)) {
            // The datagram is from another sender to this port.
            return Step::Wait;
        }
        self.silent = None;
        if received > left {
            let what = format!(
                "a datagram of {received} bytes came where {left} are left of the block; bs= is to be the same at both ends"
            );
            return self.fail(Errno(libc::EMSGSIZE), &what);
        }
        if received == 8 {
            // SAFETY: that many bytes were received there.
            let message = unsafe { std::slice::from_raw_parts(rest, 8) };
            if is_goodbye(message) {
                return Step::Over;
            }
            if message == PROBE || message == HELLO {
                return Step::Wait;
            }
        }
        self.done += received;
        if self.done == length { Step::Done } else { Step::Wait }
    }

    /// Handles a slice without a datagram. If the peer has gone, its machine answers a probe with an error.
    #[cold]
    fn find_silent(&mut self) -> Step {
        if self.sends && self.idle_time() >= LOST {
            let what = "a block was not sent back within 10 seconds: a datagram is lost, or the other end does not answer \
                        (pingpong is needed at both ends, with the same bs)";
            return self.fail(Errno(libc::ETIMEDOUT), what);
        }
        let now = Instant::now();
        if now - *self.silent.get_or_insert(now) < SILENT {
            return Step::Wait;
        }
        self.silent = Some(now);
        // A peer that waits for an answer would mistake a probe for it.
        if (self.sends || !self.options.pingpong) && self.say(&PROBE).is_err() {
            return self
                .fail(Errno(libc::ECONNRESET), "the other end closed the connection before it was done");
        }
        Step::Wait
    }

    /// Whether the engine completes the current unit although the job is over. A sender does, within limits, if a part
    /// of the unit was sent: the other end then receives only complete blocks.
    #[cold]
    fn goes_on(&self) -> bool {
        let Some(ended) = self.job_ended else { return true };
        self.sends && (self.done > 0 || self.answering) && ended.elapsed() <= OVERTIME
    }

    #[cold]
    fn fail(&mut self, errno: Errno, what: &str) -> Step {
        self.failed = Some(format!("{}: {what}", self.place()));
        Step::Failed(errno)
    }
}

fn is_goodbye(message: &[u8]) -> bool {
    GOODBYES.iter().any(|goodbye| message == goodbye)
}

/// Removes a socket file, which may be left over from another process. With `made`, only if it is that file.
fn remove_socket(path: &Path, made: Option<(u64, u64)>) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if made.is_some_and(|made| made != (found.dev(), found.ino())) => Ok(()),
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => {
            let exists = io::Error::from_raw_os_error(libc::EEXIST);
            Err(explained(&exists, format!("{} exists and is not a socket", path.display())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl<const SPLICED: bool> Engine for Connection<SPLICED> {
    const SYNCHRONOUS: bool = true;

    fn open(&mut self, _index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        self.sends = mode.write;
        self.path = match self.options.hostname.is_empty() {
            true => spec.path.clone(),
            false => PathBuf::from(&self.options.hostname),
        };
        if self.options.waits(!self.sends) {
            self.listen().map_err(|error| self.named("waiting at", error))?;
        }
        Ok(())
    }

    fn close(&mut self, _index: u32) -> io::Result<()> {
        if let Some(ahead) = &mut self.ahead {
            ahead.end(self.descriptor);
        }
        let parted = if self.failed.is_some() { self.part().or(Ok(())) } else { self.part() };
        self.descriptor = -1;
        self.socket = None;
        self.listener = None;
        self.done = 0;
        self.waits = false;
        parted
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        if let Some(pipe) = &mut self.pipe {
            pipe.make_room(layout.stride).map_err(no_pipe)?;
        }
        Ok(())
    }

    fn announcements(&self) -> Vec<String> {
        let waits = self.listener.is_some() && !self.options.protocol.is_udp();
        if waits { vec!["fio: waiting for connection".to_owned()] } else { Vec::new() }
    }

    fn meet(&mut self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let met = match self.listener.take() {
            Some(listener) => self.await_somebody(listener, goes_on),
            None => self.connect(goes_on),
        };
        met.map_err(|error| self.named(if self.sends { "sending to" } else { "receiving from" }, error))
    }

    fn explain(&self, _unit: u32) -> Option<String> {
        self.failed.clone()
    }

    fn stage_ends(&self, _unit: u32) -> Option<StageEnds> {
        (self.answered > 0).then_some([self.sent, self.answered, 0, 0])
    }

    fn warnings(&mut self) -> Vec<String> {
        self.doubt.take().into_iter().collect()
    }

    #[inline]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let writes = match unit.operation {
            Operation::Write => true,
            Operation::Read => false,
            _ => return Queued::Completed(Err(Errno(libc::EINVAL))),
        };
        if self.over {
            return Queued::Over;
        }
        if self.job_ended.is_some() && !self.goes_on() {
            return Queued::Completed(Err(WITHDRAWN));
        }
        loop {
            let step = if writes != self.answering { self.send(unit) } else { self.receive(unit) };
            match step {
                Step::Done if self.options.pingpong && !self.answering => {
                    self.answering = true;
                    self.sent = monotonic_ns();
                    self.done = 0;
                    self.idle = None;
                }
                Step::Done => {
                    if self.answering {
                        self.answered = monotonic_ns();
                    }
                    self.answering = false;
                    self.waits = false;
                    self.begun = true;
                    self.idle = None;
                    self.done = 0;
                    return Queued::Completed(Ok(unit.length));
                }
                Step::Wait => {
                    self.waits = true;
                    return Queued::Busy;
                }
                Step::Over => {
                    self.over = true;
                    let done = std::mem::take(&mut self.done) as u64;
                    // The other end receives no more, so a block that was sent in part was not received.
                    let is_partial = done > 0 && !self.sends && !self.answering;
                    return if is_partial { Queued::Completed(Ok(done)) } else { Queued::Over };
                }
                Step::Failed(errno) => return Queued::Completed(Err(errno)),
            }
        }
    }

    fn leave(&mut self) {
        self.job_ended.get_or_insert_with(Instant::now);
    }
}

impl<const SPLICED: bool> Drop for Connection<SPLICED> {
    fn drop(&mut self) {
        if let Some(made) = self.made {
            // Another process may have removed it already.
            let _ = remove_socket(&self.path, Some(made));
        }
    }
}
