//! A connection: how both ends find each other, what they exchange before the first block, and how they part.
//!
//! Each end registers its buffers, and a mailbox into which the other end writes: that it is done, and how many messages it
//! has sent. Such a word needs no receive, comes behind all blocks before it, and is there when the connection is not any more. So
//! an end is told from an accident.

use super::abi::{
    Capacity, CompletionChannel, CompletionQueue, DeviceAttributes, End, EventChannel, MemoryRegion,
    NOT_READY_TIMER, NewQueuePair, Parameters, ProtectionDomain, QueuePairAttributes, RELIABLE,
    RELIABLE_PORTS, access, event,
};
use super::greeting::{Greeting, Place, Reason, version};
use super::library::Library;
use super::words;
use crate::error::memory_lock_limit;
use crate::net::Address;
use iolite_options::engines::Verb;
use iolite_os::explained;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

/// How long a call may wait before the worker looks at whatever may have ended its job.
pub(super) const SLICE: Duration = Duration::from_millis(10);

/// How long the system may look for an address or a route.
const RESOLVING_MS: i32 = 3000;

/// How long the other end may take for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// How often a sender tries again before it gives up: without end, because the other end or its absence ends it.
const AGAIN: u8 = 7;

/// Senders that found no receive try again after 0.16 ms.
const NOT_READY: u8 = 8;

/// Requests beside those for blocks: goodbyes and pulses.
const BESIDE: u32 = 4;

/// What the other end writes to, and where own words are when they are written there.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Mailbox {
    /// 0 = the other end goes on; otherwise it is done, and has sent one message less.
    inbox: AtomicU64,
    /// Written to see whether there is still somebody.
    pulse: AtomicU64,
    /// What is said to the other end.
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

/// What this end is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// What the client does; a server learns it.
    pub(super) verb: Verb,
    /// Bytes of every block; 0 = they differ.
    pub(super) block: u64,
    /// Most units in flight.
    pub(super) depth: usize,
    pub(super) memory: Memory,
    /// What is received is to be verified.
    pub(super) verifies: bool,
}

/// Something that has happened to an end, without what belongs to the library.
pub(super) struct Heard {
    pub(super) kind: i32,
    status: i32,
    pub(super) end: *mut End,
    data: Vec<u8>,
    /// Reads of the other that the other end asks to be answered at once, and how many it answers.
    reads: (u8, u8),
}

/// One end of a connection, or who waits for one.
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
    /// It does not move, because others write to it.
    mailbox: Box<Mailbox>,
    has_pair: bool,
    reads: (u8, u8),
    /// What the other end has said.
    pub(super) far: Greeting,
    /// What this end is connected to, or waits at.
    pub(super) place: String,
}

impl Connection {
    /// An end that is not connected.
    ///
    /// # Errors
    /// The system has no device, or lets nobody use it.
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
        // SAFETY: takes nothing.
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
        // SAFETY: the channel is there; the library writes where the end is.
        let made =
            unsafe { (self.library.manager.new_end)(self.channel, &raw mut end, null_mut(), RELIABLE_PORTS) };
        check(made, "no end of a connection can be made")?;
        Ok(end)
    }

    /// Waits for a client here, from now on.
    ///
    /// # Errors
    /// The address is not that of a device, or is in use.
    pub(super) fn listen(&mut self, here: SocketAddr) -> io::Result<()> {
        self.listener = self.new_end()?;
        let address = Address::internet(here);
        // SAFETY: the end was made just now, and the address outlives the call.
        let bound = unsafe { (self.library.manager.bind)(self.listener, address.pointer()) };
        check(bound, "the address cannot be used (it has to be that of an RDMA device, and its port free)")?;
        // SAFETY: the end is bound.
        check(unsafe { (self.library.manager.listen)(self.listener, 1) }, "waiting for a client failed")
    }

    /// Takes the connection that a client makes.
    ///
    /// # Errors
    /// It is another program, or does not fit; or what `goes_on` says.
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

    /// Connects to a server, from this address if one is given.
    ///
    /// # Errors
    /// Nobody is there, who is there is another program, or refuses; or what `goes_on` says.
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
        check(asked, "there is no way from an RDMA device to it")?;
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

    /// Makes the queue pair and registers what it works on; what the other end has to know of it.
    fn settle(&mut self, own: &Own, serves: bool) -> io::Result<Greeting> {
        // SAFETY: the end is there, and has a device by now.
        let device = unsafe { (*self.end).device };
        if device.is_null() {
            return Err(named(libc::ENODEV, "the address is not that of an RDMA device"));
        }
        let mut attributes = DeviceAttributes::room();
        let verbs = &self.library.verbs;
        code(
            // SAFETY: the device is open; the library writes the attributes, for which there is room.
            unsafe { (verbs.device_attributes)(device, &raw mut attributes) },
            "the device tells nothing about itself",
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
        // SAFETY: the device is open, and each object is made for those before it, which outlive it (see `drop`).
        unsafe {
            self.domain = (verbs.new_domain)(device);
            present(self.domain, "no protection domain can be made")?;
            self.notices = (verbs.new_channel)(device);
            present(self.notices, "no completion channel can be made")?;
            not_waiting((*self.notices).descriptor)?;
            self.queue = (verbs.new_queue)(device, entries, null_mut(), self.notices, 0);
            present(self.queue, "no completion queue can be made")?;
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
                "no queue pair can be made",
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
                "{length} bytes cannot be registered, which locks them in memory; RLIMIT_MEMLOCK is {limit} bytes: \
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

    /// Lets a sender that finds no receive try again soon; without this, it waits for 655 ms. Devices that refuse only take
    /// longer.
    fn be_quick(&self) {
        let mut attributes = QueuePairAttributes::with_not_ready_timer(NOT_READY);
        // SAFETY: the end has a queue pair, and the attributes outlive the call.
        unsafe { (self.library.verbs.change_pair)((*self.end).pair, &raw mut attributes, NOT_READY_TIMER) };
    }

    /// Refuses the client, which is told why.
    fn refuse(&self, reason: Reason, why: &str) -> io::Error {
        self.send_refusal(reason);
        named(libc::EPROTO, why)
    }

    fn send_refusal(&self, reason: Reason) {
        let bytes = reason.bytes();
        // Whoever is not told sees that there is no connection.
        // SAFETY: the end asks to be connected; the bytes outlive the call.
        unsafe { (self.library.manager.reject)(self.end, bytes.as_ptr().cast(), bytes.len() as u8) };
    }

    /// What has happened next, if anything has.
    pub(super) fn hear(&self) -> io::Result<Option<Heard>> {
        let mut next = null_mut();
        // SAFETY: the channel is there; the library writes where the event is.
        if unsafe { (self.library.manager.next_event)(self.channel, &raw mut next) } != 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        // SAFETY: the event is there until it is acknowledged. Only events about connecting have data, and others say that it
        // has no length; the library has room for what it says.
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
        // SAFETY: nothing of it is used any more.
        unsafe { (self.library.manager.acknowledge)(next) };
        Ok(Some(heard))
    }

    /// Waits until one of these has happened. What else happens is an error.
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
                    // Somebody else: there is one client.
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

    /// Refuses somebody who is one too many.
    pub(super) fn turn_away(&self, end: *mut End) {
        // SAFETY: the end asks to be connected, and is used by nobody after this.
        unsafe {
            (self.library.manager.reject)(end, null(), 0);
            (self.library.manager.free_end)(end);
        }
    }

    /// What becomes readable when something has happened to the connection.
    pub(super) fn descriptor(&self) -> RawFd {
        // SAFETY: the channel is there.
        unsafe { (*self.channel).descriptor }
    }

    /// What becomes readable when a request is complete, after that was asked for.
    pub(super) fn notice_descriptor(&self) -> RawFd {
        // SAFETY: the channel is there when the connection is.
        unsafe { (*self.notices).descriptor }
    }

    /// Ends the connection. All requests that are not complete are, at once.
    pub(super) fn disconnect(&self) {
        if self.has_pair {
            // The other end may have done so before.
            // SAFETY: the end is there.
            unsafe { (self.library.manager.disconnect)(self.end) };
        }
    }

    /// How many messages the other end has sent in all; `None` = it goes on.
    #[inline]
    pub(super) fn told(&self) -> Option<u64> {
        self.mailbox.inbox.load(Acquire).checked_sub(1)
    }

    /// Key of the own buffers.
    pub(super) fn key(&self) -> u32 {
        // SAFETY: the buffers are registered when the connection is there.
        unsafe { (*self.memory).local_key }
    }

    /// Prepares what is said last, after so many messages: from where, with which key, and to where.
    pub(super) fn goodbye(&self, messages: u64) -> (u64, u32, Place) {
        self.mailbox.outbox.store(messages.saturating_add(1), Relaxed);
        self.word(std::mem::offset_of!(Mailbox, inbox))
    }

    /// The same for a word that means nothing, but has to arrive.
    pub(super) fn pulse(&self) -> (u64, u32, Place) {
        self.word(std::mem::offset_of!(Mailbox, pulse))
    }

    fn word(&self, offset: usize) -> (u64, u32, Place) {
        // SAFETY: the mailbox is registered when the connection is there.
        let key = unsafe { (*self.mailbox_memory).local_key };
        let Place { address, key: far_key } = self.far.mailbox;
        let there = Place { address: address.wrapping_add(offset as u64), key: far_key };
        (&raw const self.mailbox.outbox as u64, key, there)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Library { verbs, manager } = self.library;
        // SAFETY: each is given back once, what was made for it first. (What the system does not want to take back ends with
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

/// What does not go together, as the client is told and as the server says it.
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

/// Waits until one of these can be read, for so long at most. Returns which.
pub(super) fn ready(descriptors: &[RawFd], time: Duration) -> io::Result<Vec<RawFd>> {
    let asked = descriptors.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let mut asked: Vec<libc::pollfd> = asked.collect();
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // SAFETY: as many structures as are said, which outlive the call.
    match unsafe { libc::ppoll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, &raw const time, null()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(asked.iter().filter(|asked| asked.revents != 0).map(|asked| asked.fd).collect()),
    }
}

fn not_waiting(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: takes nothing but integers.
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

/// The result of a function that leaves an error number behind.
fn check(result: i32, what: &str) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(last(what)) }
}

/// The result of a function that gives an error number.
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
