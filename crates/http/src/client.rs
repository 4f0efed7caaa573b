//! Keeps connections alive, and drives the requests in flight on them.
//!
//! Each request in flight has its own connection: the most recently used idle one, or else a new one. epoll reports
//! changes of sockets (edge-triggered), so a request costs one system call to send, one to receive, and a share of
//! one wait.
//!
//! A server may end an idle connection at any time. If it ends a kept connection before it has answered anything, the
//! request is sent again on a new connection at once: repeating these requests is harmless (PUT, GET, HEAD, DELETE).
//! This does not count as a retry. Retries happen only if they are requested ([`Limits::retries`]), after a pause
//! that doubles each time.

mod link;
mod request;
mod verbose;

pub use self::request::{Counts, Done, Failure, Head, Limits, Marks, Request, Sink};

use self::link::{Flight, Link, again};
use self::verbose::{tell, tell_answer, tell_request};
use crate::answer::{Answer, Incoming, MOST_HEAD};
use crate::connection::Connection;
use crate::digest::Asked;
use crate::endpoint::{Endpoint, EndpointError};
use crate::store::{Headers, Method, Object, Protocol, Store};
use crate::tls::{self, Trust, TrustError};
use iolite_os::local_end::LocalEnd;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The size of the buffer for bytes that have not been parsed: a whole head must fit.
const INBOX: usize = MOST_HEAD;
/// The maximum number of events per wait.
const EVENTS: usize = 64;
/// The pause before the first retry. It doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The time limit for connecting to an address while there are other addresses to try.
const CONNECT: Duration = Duration::from_secs(5);
/// The minimum rate in bytes per second. An attempt that is slower on average is ended, even if data still moves.
const SLOWEST: u64 = 64 << 10;
/// How many timeouts longer a patient request may take, as long as the server sends something.
const PATIENCE: u32 = 10;
/// A request that is sent again gets a new signature if the old one has reached this age: servers refuse signatures
/// that are 15 minutes old.
const SIGNATURE: Duration = Duration::from_secs(10 * 60);
/// The interval at which [`Client::perform`] checks whether the job was asked to end.
const LOOK: Duration = Duration::from_millis(200);
/// The longest timeout after retries have been stopped.
const LAST: Duration = Duration::from_secs(10);
/// The maximum number of authentication challenges that a request answers.
const QUESTIONS: u32 = 3;
/// The longest pause before a retry, even if the server asks for a longer one (`Retry-After`).
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One of the hosts that offer the same objects.
struct Host {
    endpoint: Endpoint,
    store: Store,
    addresses: Vec<SocketAddr>,
    /// The index of the address that was last connected to.
    reachable: usize,
    encryption: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// The host has answered a request.
    has_answered: bool,
}

impl Host {
    fn new(endpoint: Endpoint, protocol: Protocol, trust: &Trust) -> Result<Host, ClientError> {
        let addresses = endpoint.addresses()?;
        let encryption = match endpoint.is_encrypted() {
            true => {
                let host = endpoint.host().to_owned();
                let why = "certificates cannot be made for such a name";
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| EndpointError::NotAHost { text: host, why })?;
                Some((trust.config()?, name))
            }
            false => None,
        };
        let store = Store::new(endpoint.to_string(), protocol);
        Ok(Host { endpoint, store, addresses, reachable: 0, encryption, has_answered: false })
    }

    /// Whether an unencrypted connection may have failed because the server expects TLS.
    fn may_want_encryption(&self, error: &io::Error) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, InvalidData, UnexpectedEof};
        let ends = matches!(
            error.kind(),
            BrokenPipe | ConnectionAborted | ConnectionReset | InvalidData | UnexpectedEof
        );
        ends && self.encryption.is_none() && !self.has_answered
    }
}

/// A client of one server, which may have several hosts.
pub struct Client {
    hosts: Vec<Host>,
    /// The host of the next request: they take turns.
    turn: usize,
    /// Where connections come from; `None` = the system chooses.
    source: Option<LocalEnd>,
    limits: Limits,
    epoll: OwnedFd,
    links: Vec<Option<Link>>,
    free: Vec<usize>,
    /// Links without a request, the most recently used one last.
    idle: Vec<usize>,
    /// Requests that wait for their next attempt.
    paused: Vec<Paused>,
    /// Failed requests are not repeated any more: since when, and the timeout until then.
    stopped: Option<(Instant, Option<Duration>)>,
    done: VecDeque<Done>,
    /// Buffers for heads, for reuse.
    heads: Vec<String>,
    events: Vec<Event>,
    /// No request in flight has a deadline before this.
    next_deadline: Option<Instant>,
    generation: u32,
    in_flight: usize,
    counts: Counts,
    is_asked_to_stop: fn() -> bool,
}

/// A request that failed and will be sent again.
struct Paused {
    due: Instant,
    flight: Flight,
    /// The outcome of the last attempt.
    last: Result<Answer, Failure>,
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be found.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The client's certificates cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A system call failed.
    #[error("epoll: {0}")]
    System(io::Error),
}

impl Client {
    /// Makes a client of the server with these hosts. The requests go to them in turn, each as the protocol wants it.
    /// The client connects with the first request.
    ///
    /// # Errors
    /// A name has no address, certificates cannot be used, or there is no file descriptor left.
    ///
    /// # Panics
    /// There is no host.
    pub fn new(
        endpoints: Vec<Endpoint>,
        protocol: &Protocol,
        trust: &Trust,
        limits: Limits,
    ) -> Result<Client, ClientError> {
        assert!(!endpoints.is_empty(), "a client has a host");
        let hosts = endpoints.into_iter().map(|endpoint| Host::new(endpoint, protocol.clone(), trust));
        let hosts = hosts.collect::<Result<_, _>>()?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| ClientError::System(error.into()))?;
        Ok(Client {
            hosts,
            turn: 0,
            source: None,
            limits,
            epoll,
            links: Vec::new(),
            free: Vec::new(),
            idle: Vec::new(),
            paused: Vec::new(),
            stopped: None,
            done: VecDeque::new(),
            heads: Vec::new(),
            events: Vec::with_capacity(EVENTS),
            next_deadline: None,
            generation: 0,
            in_flight: 0,
            counts: Counts::default(),
            is_asked_to_stop: || false,
        })
    }

    /// Adds these fields to the heads of all requests from now on.
    pub fn set_headers(&mut self, headers: &Headers) {
        self.hosts.iter_mut().for_each(|host| host.store.set_headers(headers.clone()));
    }

    /// Makes all connections come from there.
    ///
    /// # Errors
    /// A host cannot be reached from there, because it has no address of that version of IP.
    pub fn connect_from(&mut self, source: LocalEnd) -> Result<(), ClientError> {
        for host in &mut self.hosts {
            host.addresses.retain(|address| source.reaches(address.ip()));
            if host.addresses.is_empty() {
                let why = format!("none of the version of IP that bind={source} has");
                return Err(EndpointError::NoAddress { host: host.endpoint.host().to_owned(), why }.into());
            }
        }
        self.source = Some(source);
        Ok(())
    }

    /// The first host of the server.
    pub fn endpoint(&self) -> &Endpoint {
        &self.hosts[0].endpoint
    }

    /// Builds the head of a request with this body, for the next host.
    pub fn head(&mut self, method: Method, object: &Object<'_>, body: &[u8]) -> Head {
        let host = self.turn;
        self.turn = (host + 1) % self.hosts.len();
        let mut text = self.heads.pop().unwrap_or_default();
        self.hosts[host].store.head(method, object, body, &mut text);
        Head { text, host }
    }

    /// Stops retries: requests that wait for a retry end with the outcome of their last attempt. The timeout of others
    /// is 10 s at most, so that a silent server does not keep them.
    pub fn stop_repeating(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        let now = Instant::now();
        self.stopped = Some((now, self.limits.timeout));
        for Paused { flight, last, .. } in std::mem::take(&mut self.paused) {
            self.over(flight, last);
        }
        let end = now + LAST;
        let sooner = |own: Option<Instant>| Some(own.map_or(end, |own| own.min(end)));
        self.limits.timeout = Some(self.limits.timeout.map_or(LAST, |timeout| timeout.min(LAST)));
        for flight in self.links.iter_mut().flatten().filter_map(|link| link.flight.as_mut()) {
            if flight.request.patient {
                flight.latest = [flight.latest, now.checked_add(LAST * PATIENCE)].into_iter().flatten().min();
            }
            let deadline = sooner(flight.deadline);
            fall_due(&mut self.next_deadline, flight, deadline);
        }
    }

    /// Sets the function with which [`Client::perform`] repeatedly checks whether the job was asked to end. If so, it
    /// acts as after [`Client::stop_repeating`].
    pub fn stop_if(&mut self, is_asked_to: fn() -> bool) {
        self.is_asked_to_stop = is_asked_to;
    }

    /// How many requests are in flight, including finished ones that [`Client::next_done`] has not returned yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Begins a request, and sends as much of it as the socket accepts now.
    ///
    /// # Safety
    /// Until the request is over or the client is dropped, the body and the memory of the sink stay valid, the body is
    /// not written to, and nothing else accesses the memory.
    pub unsafe fn begin(&mut self, token: u32, request: Request) {
        let flight = self.flight(token, request);
        self.send(flight);
    }

    /// Begins a request after a pause. If the client is asked to stop meanwhile, there is no answer.
    ///
    /// # Safety
    /// As [`Client::begin`].
    pub unsafe fn begin_after(&mut self, pause: Duration, token: u32, request: Request) {
        let flight = self.flight(token, request);
        let last = Err(Failure { words: "the job was asked to end".to_owned() });
        self.paused.push(Paused { due: Instant::now() + pause, flight, last });
    }

    fn flight(&mut self, token: u32, request: Request) -> Flight {
        self.in_flight += 1;
        Flight {
            token,
            request,
            incoming: Incoming::new(),
            sent: 0,
            is_reused: false,
            is_connected: false,
            address: 0,
            unreachable: 0,
            is_repeated: false,
            latest: None,
            retries: 0,
            questions: 0,
            signed: Instant::now(),
            deadline: None,
            marks: Marks::default(),
        }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// There is no answer.
    pub fn call(&mut self, head: Head, body: &[u8], head_only: bool) -> Result<Answer, Failure> {
        self.call_until(None, head, body, head_only)
    }

    /// Sends a request and waits for its answer, no longer than until `end`.
    ///
    /// # Errors
    /// There is no answer.
    pub fn call_until(
        &mut self,
        end: Option<Instant>,
        head: Head,
        body: &[u8],
        head_only: bool,
    ) -> Result<Answer, Failure> {
        let body_at = (body.as_ptr(), body.len());
        let request =
            Request { head, body: body_at, sink: Sink::Text, head_only, fields: true, patient: false };
        // SAFETY: the body is borrowed until this returns.
        unsafe { self.perform(end, request) }.result
    }

    /// Performs one request, until it is finished or `end` has come. Returns its outcome, whether it was repeated,
    /// and when it reached what. Drops all other requests.
    ///
    /// # Safety
    /// Until this returns, the body and the memory of the sink stay valid, the body is not written to, and nothing else
    /// accesses the memory.
    pub unsafe fn perform(&mut self, end: Option<Instant>, request: Request) -> Done {
        // After a job has given up, other requests may still be in flight. Their answers are not needed any more.
        self.drop_flights();
        let failed = |words| Done {
            token: 0,
            result: Err(Failure { words }),
            marks: Marks::default(),
            // It is not known whether it was repeated. The safe assumption is that it was.
            is_repeated: true,
        };
        // SAFETY: the caller's promise holds until this returns, and the request is over by then.
        unsafe { self.begin(0, request) };
        loop {
            if let Some(done) = self.next_done() {
                return done;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                self.drop_flights();
                return failed("no answer in time".to_owned());
            }
            let driven = self.drive(Some(left.map_or(LOOK, |left| left.min(LOOK))));
            if (self.is_asked_to_stop)() {
                self.stop_repeating();
            }
            match driven {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // After this, nothing accesses the body any more.
                    self.drop_flights();
                    return failed(format!("epoll: {error}"));
                }
            }
        }
    }

    /// Returns the next finished request, and forgets it.
    pub fn next_done(&mut self) -> Option<Done> {
        let done = self.done.pop_front()?;
        self.in_flight -= 1;
        Some(done)
    }

    /// How many finished requests [`Client::next_done`] has not returned yet.
    pub fn count_done(&self) -> usize {
        self.done.len()
    }

    /// Waits until a connection is ready, for at most `timeout` (`None` = no limit), and makes progress on all ready
    /// connections.
    ///
    /// # Errors
    /// A signal interrupted the wait, or the system cannot wait.
    pub fn drive(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = self.until_due(timeout);
        let limit = timeout.map(|time| Timespec {
            tv_sec: time.as_secs().min(i64::MAX as u64) as i64,
            tv_nsec: time.subsec_nanos().into(),
        });
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let waited = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), limit.as_ref());
        for event in &events {
            self.happened(event.data.u64(), event.flags);
        }
        self.events = events;
        waited?;
        self.look_at_the_clock();
        Ok(())
    }

    /// Shortens `timeout` so that the wait ends at the next deadline or end of a pause.
    fn until_due(&self, timeout: Option<Duration>) -> Option<Duration> {
        let pauses = self.paused.iter().map(|paused| paused.due).min();
        let due = [self.next_deadline, pauses].into_iter().flatten().min();
        let Some(due) = due.filter(|_| timeout != Some(Duration::ZERO)) else { return timeout };
        // Rounded up, so that it is due when the wait ends.
        let left = due.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        Some(timeout.map_or(left, |timeout| timeout.min(left)))
    }

    fn happened(&mut self, data: u64, flags: EventFlags) {
        let slot = (data & u64::from(u32::MAX)) as usize;
        let Some(link) = self.links.get_mut(slot).and_then(Option::as_mut) else { return };
        if u64::from(link.generation) != data >> 32 {
            return;
        }
        let is_over = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if let Some(flight) = &mut link.flight {
            if !flight.is_connected {
                // If anything was sent, the connection had been established, even if it has failed since. (An encrypted
                // one is given nothing to send before it is established, because it would buffer that.)
                if flight.sent == 0
                    && let Some(error) = link.connection.refused()
                {
                    self.failed(slot, error);
                    return;
                }
                flight.is_connected = flight.sent > 0 || flags.intersects(EventFlags::OUT | EventFlags::IN);
                if flight.is_connected {
                    self.hosts[flight.request.head.host].reachable = flight.address;
                    flight.marks.connected.get_or_insert_with(Instant::now);
                    flight.unreachable = 0;
                    // Connecting has its own limit.
                    let deadline = self.limits.timeout.map(|timeout| Instant::now() + timeout);
                    fall_due(&mut self.next_deadline, flight, deadline);
                }
            }
            self.advance(slot, flags.contains(EventFlags::IN) || is_over, is_over);
        } else if is_over || (flags.contains(EventFlags::IN) && !link.connection.is_encrypted()) {
            // An idle connection ends, or TLS sends a message of the protocol itself. Any other data is unexpected.
            self.idle.retain(|&idle| idle != slot);
            self.close(slot);
        }
    }

    /// Sends a request on an idle connection, or on a new one if none is idle.
    fn send(&mut self, mut flight: Flight) {
        flight.sent = 0;
        flight.incoming = Incoming::new();
        self.limit(&mut flight);
        if self.limits.verbose > 0 {
            tell_request(&flight.request.head.text, self.limits.verbose);
        }
        let host = flight.request.head.host;
        // (The most recently used one, which is the last unless there are several hosts.)
        match self
            .idle
            .iter()
            .rposition(|&slot| self.links[slot].as_ref().is_some_and(|link| link.host == host))
        {
            Some(place) => {
                let slot = self.idle.remove(place);
                let link = self.links[slot].as_mut().expect("an idle link exists");
                (flight.is_reused, flight.is_connected) = (true, true);
                link.filled = 0;
                link.flight = Some(flight);
                self.advance(slot, false, false);
            }
            None => self.connect(flight),
        }
    }

    /// Limits the time of an attempt that begins now.
    fn limit(&mut self, flight: &mut Flight) {
        let Some(timeout) = self.limits.timeout else {
            (flight.deadline, flight.latest) = (None, None);
            return;
        };
        let deadline = Instant::now() + timeout;
        let longer = match flight.request.patient {
            true => timeout.saturating_mul(PATIENCE),
            false => Duration::from_secs(flight.request.bytes() / SLOWEST),
        };
        flight.latest = deadline.checked_add(longer);
        fall_due(&mut self.next_deadline, flight, Some(deadline));
    }

    fn connect(&mut self, mut flight: Flight) {
        (flight.is_reused, flight.is_connected) = (false, false);
        // (Another request may find that another address is reachable, while this one tries all.)
        if flight.unreachable == 0 {
            flight.address = self.hosts[flight.request.head.host].reachable;
        }
        let host = &self.hosts[flight.request.head.host];
        let address = flight.address;
        if flight.unreachable + 1 < host.addresses.len() {
            let deadline = Instant::now() + CONNECT;
            let sooner = flight.deadline.map_or(deadline, |own| own.min(deadline));
            fall_due(&mut self.next_deadline, &mut flight, Some(sooner));
        }
        let encryption = match &host.encryption {
            Some((config, name)) => match ClientConnection::new(config.clone(), name.clone()) {
                Ok(connection) => Some(connection),
                Err(error) => return self.give_up(flight, &io::Error::other(error)),
            },
            None => None,
        };
        let made = Connection::begin(&host.addresses[address], self.source.as_ref(), encryption);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.links.push(None);
            self.links.len() - 1
        });
        self.generation = self.generation.wrapping_add(1);
        let data = EventData::new_u64(u64::from(self.generation) << 32 | slot as u64);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let watched = made.and_then(|connection| {
            epoll::add(&self.epoll, &connection, data, flags)?;
            Ok(connection)
        });
        match watched {
            Ok(connection) => {
                self.counts.connections += 1;
                let (generation, inbox) = (self.generation, vec![0; INBOX].into());
                let (host, is_encrypted) = (flight.request.head.host, connection.is_encrypted());
                self.links[slot] =
                    Some(Link { connection, host, generation, flight: Some(flight), inbox, filled: 0 });
                // A connection to this machine may be established already. For an encrypted one, an event says so.
                if !is_encrypted {
                    self.advance(slot, false, false);
                }
            }
            Err(error) => {
                self.free.push(slot);
                self.not_connected(flight, error);
            }
        }
    }

    /// Continues the request of a link.
    fn advance(&mut self, slot: usize, receives: bool, is_over: bool) {
        let link = self.links[slot].as_mut().expect("a link with a request exists");
        match link.advance(receives, is_over) {
            Ok(false) => {
                // There was an event, so data has moved.
                if let (Some(timeout), Some(flight)) = (self.limits.timeout, &mut link.flight)
                    && flight.is_connected
                {
                    let deadline = Instant::now() + timeout;
                    let deadline = flight.latest.map_or(deadline, |latest| latest.min(deadline));
                    fall_due(&mut self.next_deadline, flight, Some(deadline));
                }
            }
            Ok(true) => self.complete(slot),
            Err(error) => self.failed(slot, error),
        }
    }

    /// Handles a complete answer.
    fn complete(&mut self, slot: usize) {
        let link = self.links[slot].as_mut().expect("a link with a request exists");
        let mut flight = link.flight.take().expect("the link has a request");
        let is_sent = flight.sent == flight.request.head.text.len() + flight.request.body.1;
        if flight.incoming.closes || !is_sent || link.filled > 0 {
            self.close(slot);
        } else {
            self.idle.push(slot);
        }
        // A server may send 408 when it ends an idle connection. That is not an answer to this request.
        if flight.incoming.answer.status == 408 && flight.is_reused {
            return self.connect(again(flight));
        }
        let answer = std::mem::take(&mut flight.incoming.answer);
        let host = &mut self.hosts[flight.request.head.host];
        host.has_answered = true;
        if self.limits.verbose > 0 {
            tell_answer(&answer, self.limits.verbose);
        }
        if answer.status == 401
            && flight.questions < QUESTIONS
            && let Some(asked) = host.store.identify(&answer, &mut flight.request.head.text)
        {
            flight.questions += u32::from(asked == Asked::Anew);
            flight.marks = Marks::default();
            return self.send(flight);
        }
        self.counts.throttled += u64::from(matches!(answer.status, 429 | 503));
        let may_pass = matches!(answer.status, 429 | 500 | 502 | 503 | 504);
        if may_pass && flight.retries < self.limits.retries && self.stopped.is_none() {
            let asked = answer.field("retry-after").and_then(|text| text.trim().parse().ok());
            return self.pause(flight, asked.map(Duration::from_secs), Ok(answer));
        }
        self.over(flight, Ok(answer));
    }

    /// Handles an error of a link with a request.
    fn failed(&mut self, slot: usize, error: io::Error) {
        let link = self.links[slot].as_mut().expect("a link with a request exists");
        let flight = link.flight.take().expect("the link has a request");
        self.close(slot);
        if flight.is_reused && !flight.incoming.has_begun && error.kind() != io::ErrorKind::TimedOut {
            return self.connect(again(flight));
        }
        if !flight.is_connected && flight.sent == 0 {
            return self.not_connected(flight, error);
        }
        self.again_or_over(flight, &error);
    }

    /// Handles a failed attempt to connect: tries the next address, if there is one.
    fn not_connected(&mut self, mut flight: Flight, error: io::Error) {
        let host = &self.hosts[flight.request.head.host];
        let (address, count) = (host.addresses[flight.address], host.addresses.len());
        if flight.unreachable + 1 < count && self.stopped.is_none() {
            flight.unreachable += 1;
            flight.address = (flight.address + 1) % count;
            self.limit(&mut flight);
            return self.connect(flight);
        }
        flight.unreachable = 0;
        let words = format!("http_host={}: cannot connect to {address}: {}", host.endpoint, plain(&error));
        self.again_or_over(flight, &io::Error::new(error.kind(), words));
    }

    fn again_or_over(&mut self, flight: Flight, error: &io::Error) {
        if flight.retries < self.limits.retries && self.stopped.is_none() && !is_about_trust(error) {
            let last = Err(Failure { words: plain(error) });
            return self.pause(flight, None, last);
        }
        self.give_up(flight, error);
    }

    fn pause(&mut self, mut flight: Flight, asked: Option<Duration>, last: Result<Answer, Failure>) {
        let own = FIRST_PAUSE.saturating_mul(1 << flight.retries.min(16)).min(LONGEST_PAUSE);
        let pause = asked.map_or(own, |asked| asked.min(LONGEST_PAUSE).max(own));
        flight.retries += 1;
        flight.marks = Marks::default();
        flight.is_repeated = true;
        self.counts.retries += 1;
        self.paused.push(Paused { due: Instant::now() + pause, flight, last });
    }

    fn give_up(&mut self, flight: Flight, error: &io::Error) {
        let host = &self.hosts[flight.request.head.host];
        let words = match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => {
                format!("http_host={}: no encrypted connection: {}", host.endpoint, tls::words(error))
            }
            None if host.may_want_encryption(error) => {
                format!("{}; the server may expect encrypted connections (https=on)", plain(error))
            }
            None => plain(error),
        };
        if self.limits.verbose > 0 {
            tell(&format!("< {words}"));
        }
        self.over(flight, Err(Failure { words }));
    }

    fn over(&mut self, flight: Flight, result: Result<Answer, Failure>) {
        let mut head = flight.request.head.text;
        head.clear();
        self.heads.push(head);
        let Flight { token, marks, is_repeated, .. } = flight;
        self.done.push_back(Done { token, result, marks, is_repeated });
    }

    fn close(&mut self, slot: usize) {
        // (Closing the socket removes it from the epoll instance.)
        self.links[slot] = None;
        self.free.push(slot);
    }

    /// Ends attempts that have taken too long, and sends requests again whose pauses are over.
    fn look_at_the_clock(&mut self) {
        if self.paused.is_empty() && self.next_deadline.is_none() {
            return;
        }
        let now = Instant::now();
        while let Some(due) = self.paused.iter().position(|paused| paused.due <= now) {
            let Paused { mut flight, .. } = self.paused.swap_remove(due);
            if now.duration_since(flight.signed) >= SIGNATURE {
                let Head { text, host } = &mut flight.request.head;
                self.hosts[*host].store.sign_again(text, SystemTime::now());
                flight.signed = now;
            }
            self.send(flight);
        }
        if self.next_deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.next_deadline = None;
        for slot in 0..self.links.len() {
            let flight = self.links[slot].as_ref().and_then(|link| link.flight.as_ref());
            let Some((deadline, is_connected)) =
                flight.and_then(|flight| Some((flight.deadline?, flight.is_connected || flight.sent > 0)))
            else {
                continue;
            };
            if deadline <= now {
                self.failed(slot, self.too_long(now, is_connected));
            } else {
                self.next_deadline = Some(self.next_deadline.map_or(deadline, |next| next.min(deadline)));
            }
        }
    }

    /// The error of a request whose deadline has come.
    fn too_long(&self, now: Instant, is_connected: bool) -> io::Error {
        let (timeout, whose) = match self.stopped {
            Some((since, own)) if own.is_none_or(|own| own > LAST) && now - since >= LAST => {
                (LAST, "after the job was asked to end")
            }
            Some((_, own)) => (own.unwrap_or(LAST), "(http_timeout)"),
            None => (self.limits.timeout.unwrap_or_default(), "(http_timeout)"),
        };
        let seconds = timeout.as_secs_f64();
        let words = match is_connected {
            true => format!("no complete answer: the server was silent for {seconds} s {whose}, or too slow"),
            false => format!("no answer within {seconds} s {whose}"),
        };
        io::Error::new(io::ErrorKind::TimedOut, words)
    }

    /// Drops all requests and closes their connections, so that nothing accesses the requests' memory any more. Idle
    /// connections stay.
    fn drop_flights(&mut self) {
        for slot in 0..self.links.len() {
            if self.links[slot].as_ref().is_some_and(|link| link.flight.is_some()) {
                self.close(slot);
            }
        }
        self.paused.clear();
        self.done.clear();
        self.in_flight = 0;
    }
}

/// Sets the deadline of a flight. `next` is no later than any.
fn fall_due(next: &mut Option<Instant>, flight: &mut Flight, deadline: Option<Instant>) {
    flight.deadline = deadline;
    *next = [*next, deadline].into_iter().flatten().min();
}

/// Whether the error is one of TLS, such as an untrusted certificate: another attempt would fail the same way.
fn is_about_trust(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}

fn plain(error: &io::Error) -> String {
    iolite_types::describe_error(error)
}

#[cfg(test)]
mod tests;
