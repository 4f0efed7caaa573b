//! A connection: set-up, the parameters exchanged before the first block, and closing.
//!
//! Each end registers its buffers, and a mailbox. When the other end has finished, it writes the number of messages
//! that it has sent to the mailbox. An RDMA write needs no posted receive, arrives after all earlier blocks, and can
//! still be read after the connection has ended. So a regular end can be distinguished from a lost connection.

use super::abi::{
    Capacity, CompletionChannel, CompletionQueue, DeviceAttributes, End, EventChannel, MemoryRegion,
    NOT_READY_TIMER, NewQueuePair, Parameters, ProtectionDomain, QueuePairAttributes, RELIABLE,
    RELIABLE_PORTS, access, event,
};
use super::greeting::{Greeting, Place, Reason, version};
use super::library::Library;
use super::words;
use crate::net::Address;
use iolite_engine::memory_lock_limit;
use iolite_options::engines::Verb;
use iolite_os::explained;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

/// The longest wait of one call, so that the worker can check whether its job should stop.
pub(super) const SLICE: Duration = Duration::from_millis(10);

/// The time limit for resolving an address or a route.
const RESOLVING_MS: i32 = 3000;

/// The time limit for an answer of the other end.
const ANSWER: Duration = Duration::from_secs(10);

/// The number of retries of a sender that finds no posted receive: 7 means no limit.
const AGAIN: u8 = 7;

/// The delay before such a retry (RNR timer): 8 means 0.16 ms.
const NOT_READY: u8 = 8;

/// The number of requests that may be in flight besides those for blocks: goodbyes and pulses.
const BESIDE: u32 = 4;

/// Memory that the other end writes to, and the word that this end writes to the other end's mailbox.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Mailbox {
    /// 0 = the other end is active; otherwise it has finished, and the value is the number of messages that it sent,
    /// plus one.
    inbox: AtomicU64,
    /// The target of writes that test whether this end still answers.
    pulse: AtomicU64,
    /// The word to write to the other end.
    outbox: AtomicU64,
}

/// A job's buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) start: *mut u8,
    pub(super) stride: usize,
    pub(super) count: usize,
}

impl Memory {
    pub(super) fn length(&self) -> usize {
        self.stride * self.count
    }
}

/// The properties of this end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// The operation of the client; a server learns it from the client.
    pub(super) verb: Verb,
    /// The size of every block in bytes; 0 = sizes differ.
    pub(super) block: u64,
    /// The maximum number of units in flight.
    pub(super) depth: usize,
    pub(super) memory: Memory,
    /// Received data will be verified.
    pub(super) verifies: bool,
}

/// An event of the connection manager, copied out of the library's memory.
pub(super) struct Heard {
    pub(super) kind: i32,
    status: i32,
    pub(super) end: *mut End,
    data: Vec<u8>,
    /// The maximum numbers of reads that the peer has in flight and that it answers at the same time.
    reads: (u8, u8),
}

/// One end of a connection, or a listener.
pub(super) struct Connection {
    pub(super) library: &'static Library,
    channel: *mut EventChannel,
    listener: *mut End,
    pub(super) end: *mut End,
    domain: *mut ProtectionDomain,
    pub(super) notices: *mut CompletionChannel,
    pub(super) queue: *mut CompletionQueue,
    memory: *mut MemoryRegion,
    mailbox_memory: *mut MemoryRegion,
    /// Boxed, so that it does not move: the other end writes to it.
    mailbox: Box<Mailbox>,
    has_pair: bool,
    reads: (u8, u8),
    /// The greeting of the other end.
    pub(super) far: Greeting,
    /// The address of the connection, for messages.
    pub(super) place: String,
}

impl Connection {
    /// Creates an unconnected end.
    ///
    /// # Errors
    /// The system has no RDMA device, or denies access to it.
    pub(super) fn new(library: &'static Library, place: String) -> io::Result<Connection> {
        let mut new = Connection {
            library,
            channel: null_mut(),
            listener: null_mut(),
            end: null_mut(),
            domain: null_mut(),
            notices: null_mut(),
            queue: null_mut(),
            memory: null_mut(),
            mailbox_memory: null_mut(),
            mailbox: Box::default(),
            has_pair: false,
            reads: (0, 0),
            far: Greeting::default(),
            place,
        };
        // SAFETY: the function takes no arguments.
        new.channel = unsafe { (library.manager.new_channel)() };
        if new.channel.is_null() {
            return Err(last("the connection manager of RDMA cannot be used"));
        }
        // SAFETY: the channel was made just now.
        not_waiting(unsafe { (*new.channel).descriptor })?;
        Ok(new)
    }

    fn new_end(&self) -> io::Result<*mut End> {
        let mut end = null_mut();
        // SAFETY: the channel exists, and the library writes the address of the end.
        let made =
            unsafe { (self.library.manager.new_end)(self.channel, &raw mut end, null_mut(), RELIABLE_PORTS) };
        check(made, "no RDMA connection ID can be created")?;
        Ok(end)
    }

    /// Starts listening for a client.
    ///
    /// # Errors
    /// No device has the address, or it is in use.
    pub(super) fn listen(&mut self, here: SocketAddr) -> io::Result<()> {
        self.listener = self.new_end()?;
        let address = Address::internet(here);
        // SAFETY: the end was made just now, and the address outlives the call.
        let bound = unsafe { (self.library.manager.bind)(self.listener, address.pointer()) };
        check(bound, "the address cannot be used (it has to be that of an RDMA device, and its port free)")?;
        // SAFETY: the end is bound.
        check(unsafe { (self.library.manager.listen)(self.listener, 1) }, "waiting for a client failed")
    }

    /// Accepts the connection of a client.
    ///
    /// # Errors
    /// The client is another program or does not match this end; or the error of `goes_on`.
    pub(super) fn accept(
        &mut self,
        own: &Own,
        goes_on: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let heard = self.await_event(&[event::CONNECT_REQUEST], None, goes_on)?;
        self.end = heard.end;
        let far = match Greeting::of(&heard.data) {
            Ok(far) => far,
            Err(strange) => return Err(self.refuse(Reason::Version(version()), &words::stranger(strange))),
        };
        if let Some((reason, why)) = misfit(&far, own) {
            return Err(self.refuse(reason, &why));
        }
        self.far = far;
        let greeting = match self.settle(&Own { verb: far.verb, ..*own }, true) {
            Ok(greeting) => greeting,
            Err(error) => {
                self.send_refusal(Reason::Failure);
                return Err(error);
            }
        };
        self.reads = (self.reads.0.min(heard.reads.0), self.reads.1.min(heard.reads.1));
        let bytes = greeting.bytes();
        let mut parameters = self.parameters(&bytes);
        check(
            // SAFETY: the end asks to be connected and has a queue pair; the parameters outlive the call.
            unsafe { (self.library.manager.accept)(self.end, &raw mut parameters) },
            "answering the client failed",
        )?;
        self.await_event(&[event::ESTABLISHED], Some(ANSWER), goes_on)?;
        self.be_quick();
        Ok(())
    }

    /// Connects to a server, from this source address if there is one.
    ///
    /// # Errors
    /// No server answers, the server is another program, or it refuses; or the error of `goes_on`.
    pub(super) fn connect(
        &mut self,
        own: &Own,
        there: SocketAddr,
        from: Option<SocketAddr>,
        goes_on: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        self.end = self.new_end()?;
        let (there, from) = (Address::internet(there), from.map(Address::internet));
        let source = from.as_ref().map_or(null(), Address::pointer);
        // SAFETY: the end was made just now, and the addresses outlive the call.
        let asked = unsafe {
            (self.library.manager.resolve_address)(self.end, source, there.pointer(), RESOLVING_MS)
        };
        check(asked, "no RDMA device can reach it")?;
        self.await_event(&[event::ADDRESS_RESOLVED], Some(ANSWER), goes_on)?;
        check(
            // SAFETY: the end has an address.
            unsafe { (self.library.manager.resolve_route)(self.end, RESOLVING_MS) },
            "there is no route to it",
        )?;
        self.await_event(&[event::ROUTE_RESOLVED], Some(ANSWER), goes_on)?;
        let greeting = self.settle(own, false)?;
        let bytes = greeting.bytes();
        let mut parameters = self.parameters(&bytes);
        // SAFETY: the end has a route and a queue pair; the parameters outlive the call.
        check(unsafe { (self.library.manager.connect)(self.end, &raw mut parameters) }, "connecting failed")?;
        let heard = self.await_event(&[event::ESTABLISHED], Some(ANSWER), goes_on)?;
        self.far =
            Greeting::of(&heard.data).map_err(|strange| named(libc::EPROTO, &words::stranger(strange)))?;
        self.be_quick();
        Ok(())
    }

    /// Creates the queue pair and registers the memory. Returns the greeting for the other end.
    fn settle(&mut self, own: &Own, serves: bool) -> io::Result<Greeting> {
        // SAFETY: the end exists, and has a device by now.
        let device = unsafe { (*self.end).device };
        if device.is_null() {
            return Err(named(libc::ENODEV, "the address is not that of an RDMA device"));
        }
        let mut attributes = DeviceAttributes::room();
        let verbs = &self.library.verbs;
        code(
            // SAFETY: the device is open; the library writes the attributes, for which there is room.
            unsafe { (verbs.device_attributes)(device, &raw mut attributes) },
            "the device cannot be queried",
        )?;
        let depth = u32::try_from(own.depth).unwrap_or(u32::MAX);
        let (sends, receives) = (depth.saturating_add(BESIDE), depth);
        let most = attributes.requests.max(0) as u32;
        let entries = i32::try_from(u64::from(sends) + u64::from(receives)).unwrap_or(i32::MAX);
        if sends > most || entries > attributes.completions {
            let most = most.min(attributes.completions.max(0) as u32 / 2).saturating_sub(BESIDE);
            let why = format!("iodepth={depth}: the device takes {most} requests at once");
            return Err(named(libc::EINVAL, &why));
        }
        let reads = |most: i32| most.clamp(0, i32::from(u8::MAX)) as u8;
        self.reads = (reads(attributes.reads_answered), reads(attributes.reads_begun));
        // SAFETY: the device is open, and each object depends only on earlier ones, which outlive it (see `drop`).
        unsafe {
            self.domain = (verbs.new_domain)(device);
            present(self.domain, "no protection domain can be created")?;
            self.notices = (verbs.new_channel)(device);
            present(self.notices, "no completion channel can be created")?;
            not_waiting((*self.notices).descriptor)?;
            self.queue = (verbs.new_queue)(device, entries, null_mut(), self.notices, 0);
            present(self.queue, "no completion queue can be created")?;
            let mut pair = NewQueuePair {
                context: null_mut(),
                send_queue: self.queue,
                receive_queue: self.queue,
                shared_receives: null_mut(),
                capacity: Capacity { sends, receives, send_pieces: 1, receive_pieces: 1, inline_bytes: 0 },
                kind: RELIABLE,
                signals_all: 1,
            };
            check(
                (self.library.manager.new_pair)(self.end, self.domain, &raw mut pair),
                "no queue pair can be created",
            )?;
        }
        self.has_pair = true;
        let access = access::LOCAL_WRITE | access::REMOTE_WRITE | access::REMOTE_READ;
        let Memory { start, .. } = own.memory;
        self.memory = self.register(start.cast(), own.memory.length(), access)?;
        let mailbox = (&raw mut *self.mailbox).cast::<libc::c_void>();
        self.mailbox_memory = self.register(mailbox, size_of::<Mailbox>(), access)?;
        // SAFETY: both were registered just now.
        let keys = unsafe { ((*self.memory).remote_key, (*self.mailbox_memory).remote_key) };
        let shared = Place { address: start as u64, key: keys.0 };
        Ok(Greeting {
            verb: own.verb,
            block: own.block,
            mailbox: Place { address: mailbox as u64, key: keys.1 },
            memory: if serves && own.verb.is_one_sided() { shared } else { Place::default() },
            length: if serves { own.memory.length() } else { own.memory.stride } as u64,
        })
    }

    fn register(
        &self,
        start: *mut libc::c_void,
        length: usize,
        access: i32,
    ) -> io::Result<*mut MemoryRegion> {
        // SAFETY: the memory outlives its registration: the mailbox as this does, and the buffers as the engine does.
        let region = unsafe { (self.library.verbs.register)(self.domain, start, length, access) };
        if !region.is_null() {
            return Ok(region);
        }
        let error = io::Error::last_os_error();
        let what = match (error.raw_os_error(), memory_lock_limit()) {
            (Some(libc::ENOMEM | libc::EPERM | libc::EAGAIN), Some(limit)) => format!(
                "{length} bytes cannot be locked in memory and registered; RLIMIT_MEMLOCK is {limit} bytes: \
                 raise it with 'ulimit -l unlimited' or in limits.conf, or lower iodepth or bs"
            ),
            _ => format!("{length} bytes cannot be registered with the device; lower iodepth or bs"),
        };
        Err(explained(&error, what))
    }

    fn parameters(&self, data: &[u8]) -> Parameters {
        Parameters {
            data: data.as_ptr().cast(),
            data_length: data.len() as u8,
            reads_answered: self.reads.0,
            reads_begun: self.reads.1,
            flow_control: 1,
            retries: AGAIN,
            not_ready_retries: AGAIN,
            shared_receives: 0,
            pair_number: 0,
        }
    }

    /// Makes a sender that finds no posted receive retry soon; by default it waits for 655 ms. If the device does not
    /// support this, such retries only take longer.
    fn be_quick(&self) {
        let mut attributes = QueuePairAttributes::with_not_ready_timer(NOT_READY);
        // SAFETY: the end has a queue pair, and the attributes outlive the call.
        unsafe { (self.library.verbs.change_pair)((*self.end).pair, &raw mut attributes, NOT_READY_TIMER) };
    }

    /// Refuses the client, and sends it the reason.
    fn refuse(&self, reason: Reason, why: &str) -> io::Error {
        self.send_refusal(reason);
        named(libc::EPROTO, why)
    }

    fn send_refusal(&self, reason: Reason) {
        let bytes = reason.bytes();
        // If sending fails, the client sees the connection fail.
        // SAFETY: the end asks to be connected; the bytes outlive the call.
        unsafe { (self.library.manager.reject)(self.end, bytes.as_ptr().cast(), bytes.len() as u8) };
    }

    /// The next event, if there is one.
    pub(super) fn hear(&self) -> io::Result<Option<Heard>> {
        let mut next = null_mut();
        // SAFETY: the channel exists, and the library writes the address of the event.
        if unsafe { (self.library.manager.next_event)(self.channel, &raw mut next) } != 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        // SAFETY: the event is valid until it is acknowledged. Only connection events have private data; for other
        // events its length is not read. The library provides the number of bytes that it states.
        let heard = unsafe {
            let event = &*next;
            let has_data =
                matches!(event.kind, event::CONNECT_REQUEST | event::ESTABLISHED | event::REJECTED)
                    && !event.parameters.data.is_null();
            let length = if has_data { usize::from(event.parameters.data_length) } else { 0 };
            let data = match length {
                0 => Vec::new(),
                _ => std::slice::from_raw_parts(event.parameters.data.cast::<u8>(), length).to_vec(),
            };
            let reads = (event.parameters.reads_answered, event.parameters.reads_begun);
            Heard { kind: event.kind, status: event.status, end: event.end, data, reads }
        };
        // SAFETY: the event is not used after this.
        unsafe { (self.library.manager.acknowledge)(next) };
        Ok(Some(heard))
    }

    /// Waits for one of these events. Any other event is an error.
    fn await_event(
        &self,
        wanted: &[i32],
        limit: Option<Duration>,
        goes_on: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Heard> {
        let until = limit.map(|limit| Instant::now() + limit);
        loop {
            goes_on()?;
            if let Some(heard) = self.hear()? {
                if wanted.contains(&heard.kind) {
                    return Ok(heard);
                }
                if heard.kind == event::CONNECT_REQUEST {
                    // Another client: this end serves only one.
                    self.turn_away(heard.end);
                    continue;
                }
                let (errno, why) = words::of_event(heard.kind, heard.status, Reason::of(&heard.data));
                return Err(named(errno, &why));
            }
            if until.is_some_and(|until| Instant::now() > until) {
                let seconds = limit.unwrap_or_default().as_secs();
                let why =
                    format!("no answer within {seconds} s (RoCE needs UDP port 4791 between both machines)");
                return Err(named(libc::ETIMEDOUT, &why));
            }
            ready(&[self.descriptor()], SLICE)?;
        }
    }

    /// Rejects a surplus client.
    pub(super) fn turn_away(&self, end: *mut End) {
        // SAFETY: the end asks to be connected, and is not used after this.
        unsafe {
            (self.library.manager.reject)(end, null(), 0);
            (self.library.manager.free_end)(end);
        }
    }

    /// Readable when there is an event.
    pub(super) fn descriptor(&self) -> RawFd {
        // SAFETY: the channel exists.
        unsafe { (*self.channel).descriptor }
    }

    /// Readable when a request has completed, once notification was requested.
    pub(super) fn notice_descriptor(&self) -> RawFd {
        // SAFETY: the channel exists while the connection exists.
        unsafe { (*self.notices).descriptor }
    }

    /// Ends the connection. All outstanding requests complete at once, as flushed.
    pub(super) fn disconnect(&self) {
        if self.has_pair {
            // This fails if the other end disconnected first. SAFETY: the end exists.
            unsafe { (self.library.manager.disconnect)(self.end) };
        }
    }

    /// The number of messages that the other end sent in total; `None` = it is still active.
    #[inline]
    pub(super) fn told(&self) -> Option<u64> {
        self.mailbox.inbox.load(Acquire).checked_sub(1)
    }

    /// The local key of the buffers.
    pub(super) fn key(&self) -> u32 {
        // SAFETY: the buffers are registered while the connection exists.
        unsafe { (*self.memory).local_key }
    }

    /// Prepares the last word to the other end, which has the number of messages sent. Returns the word's address and
    /// key on this end, and the mailbox of the other end.
    pub(super) fn goodbye(&self, messages: u64) -> (u64, u32, Place) {
        self.mailbox.outbox.store(messages.saturating_add(1), Relaxed);
        self.word(std::mem::offset_of!(Mailbox, inbox))
    }

    /// Prepares a write that only tests whether the other end answers, with the same results.
    pub(super) fn pulse(&self) -> (u64, u32, Place) {
        self.word(std::mem::offset_of!(Mailbox, pulse))
    }

    fn word(&self, offset: usize) -> (u64, u32, Place) {
        // SAFETY: the mailbox is registered while the connection exists.
        let key = unsafe { (*self.mailbox_memory).local_key };
        let Place { address, key: far_key } = self.far.mailbox;
        let there = Place { address: address.wrapping_add(offset as u64), key: far_key };
        (&raw const self.mailbox.outbox as u64, key, there)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Library { verbs, manager } = self.library;
        // SAFETY: each object is freed once, dependent ones first. (Objects that the system refuses to free end with
        // the process.)
        unsafe {
            if self.has_pair {
                (manager.free_pair)(self.end);
            }
            for region in [self.memory, self.mailbox_memory] {
                if !region.is_null() {
                    (verbs.unregister)(region);
                }
            }
            if !self.queue.is_null() {
                (verbs.free_queue)(self.queue);
            }
            if !self.notices.is_null() {
                (verbs.free_channel)(self.notices);
            }
            if !self.domain.is_null() {
                (verbs.free_domain)(self.domain);
            }
            for end in [self.end, self.listener] {
                if !end.is_null() {
                    (manager.free_end)(end);
                }
            }
            if !self.channel.is_null() {
                (manager.free_channel)(self.channel);
            }
        }
    }
}

/// Why client and server do not match: the reason for the client, and the message of the server.
fn misfit(far: &Greeting, own: &Own) -> Option<(Reason, String)> {
    let length = own.memory.length() as u64;
    if far.verb.is_one_sided() {
        if own.verifies {
            return Some((Reason::Verification, words::nothing_to_verify(far.verb)));
        }
        let largest = if far.block == 0 { far.length } else { far.block };
        return (largest > length)
            .then(|| (Reason::Memory(length), words::too_little_memory(largest, length)));
    }
    if own.verifies && far.verb == Verb::Receive {
        return Some((Reason::Verification, words::nothing_to_verify(far.verb)));
    }
    let differs = far.block != own.block || own.block == 0;
    differs.then(|| (Reason::Block(own.block), words::other_blocks(own.block, far.block)))
}

/// Waits until one of these descriptors is readable, for at most `time`. Returns the readable ones.
pub(super) fn ready(descriptors: &[RawFd], time: Duration) -> io::Result<Vec<RawFd>> {
    let asked = descriptors.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let mut asked: Vec<libc::pollfd> = asked.collect();
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // SAFETY: there are as many structures as the given count, and they outlive the call.
    match unsafe { libc::ppoll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, &raw const time, null()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(asked.iter().filter(|asked| asked.revents != 0).map(|asked| asked.fd).collect()),
    }
}

fn not_waiting(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: the calls take only integers.
    let result = unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn named(errno: i32, why: &str) -> io::Error {
    explained(&io::Error::from_raw_os_error(errno), why.to_owned())
}

fn last(what: &str) -> io::Error {
    let error = io::Error::last_os_error();
    let why = format!("{what}: {}", iolite_types::describe_error(&error));
    explained(&error, why)
}

/// The result of a function that sets `errno`.
fn check(result: i32, what: &str) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(last(what)) }
}

/// The result of a function that returns an error number.
fn code(result: i32, what: &str) -> io::Result<()> {
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::from_raw_os_error(result.abs());
    let why = format!("{what}: {}", iolite_types::describe_error(&error));
    Err(explained(&error, why))
}

fn present<T>(pointer: *mut T, what: &str) -> io::Result<()> {
    if pointer.is_null() { Err(last(what)) } else { Ok(()) }
}
