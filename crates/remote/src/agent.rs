//! The agent: accepts coordinators, and runs their jobs one after the other.
//!
//! Each connection has a thread. The thread that owns the run starts a process for the run, forwards its messages, and
//! listens to the coordinator. If the coordinator disconnects or is silent for too long, the thread ends the process,
//! and all workers end with it.

use crate::address::Address;
use crate::child::{self, Permissions};
use crate::connection::{Connection, Listener, Peer};
use crate::frame::{self, FrameError};
use crate::greeting::{self, Refusal};
use crate::keys::{Keys, Role};
use crate::message::{FromAgent, Hello, Message, RUN, ToAgent, machine_name};
use crate::stream::Stream;
use crate::user;
use iolite_os::process;
use iolite_os::signals;
use iolite_os::socket::Socket;
use iolite_os::time;
use iolite_stats::Word;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for a client's greeting.
const GREETING: Duration = Duration::from_secs(10);
/// The most concurrent connections that are not authenticated yet.
const MOST_STRANGERS: usize = 64;
/// How many there may be of others.
const MOST_CLIENTS: usize = 64;
/// How many messages of a client are taken per second: comparing clocks takes tens, often at several barriers in a row.
const MOST_MESSAGES: u32 = 10_000;
/// Most refused connections that are reported per second.
const MOST_TOLD: u64 = 10;
/// The interval of checks whether something has ended.
const LOOK: Duration = Duration::from_millis(100);
/// The same while somebody waits for the result.
const SHORT: Duration = Duration::from_millis(5);
/// How long a run that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(3);
/// How long the next run waits while the last one ends: that one is asked to end, and then killed.
const TURN: Duration = GRACE.saturating_mul(3);
/// How much of a frame is written at a time.
const PIECE: usize = 64 << 10;
/// How long to wait when a connection cannot be accepted (too many open files, say).
const AGAIN: Duration = Duration::from_millis(100);

/// An agent that listens.
#[derive(Debug)]
pub struct Agent {
    listener: Listener,
    place: String,
}

/// How an agent works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file of its keys, which is read for each connection; `None` = every client is served.
    pub keys: Option<PathBuf>,
    /// A coordinator that is silent for so long is gone.
    pub timeout: Duration,
    /// The permissions of its clients.
    pub permissions: Permissions,
    /// Jobs know the address of their client, to name files after it.
    pub names_clients: bool,
    /// Program and version, in one word.
    pub program: &'static str,
    /// Prints a message for the user who runs the agent.
    pub log: fn(&str),
}

/// The state that all connections share.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    /// The client whose run this is, if there is one.
    turn: Mutex<Option<Holder>>,
    /// Connections that have not identified themselves yet, in the order in which they came.
    strangers: Mutex<VecDeque<Stranger>>,
    /// How many have come so far.
    arrived: AtomicU64,
    /// The start of the current second of refusals, and how many were reported in it.
    refusals: Mutex<(Instant, u64)>,
    /// How many there are of others.
    clients: AtomicUsize,
    /// A run was asked for.
    has_run: AtomicBool,
}

/// A connection that has not identified itself yet.
#[derive(Debug)]
struct Stranger {
    number: u64,
    /// The address; `None` = this machine.
    from: Option<IpAddr>,
    connection: Connection,
}

/// Holds a place among the unidentified connections, as long as it lives and the client is not identified.
struct Place<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Place<'_> {
    /// Keeps the place reserved: another owner will free it.
    fn keep(self) -> u64 {
        let number = self.number;
        std::mem::forget(self);
        number
    }

    fn leave(&self) {
        self.shared.strangers().retain(|stranger| stranger.number != self.number);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Counts a client as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    /// Counts one more; `None` = there are so many already.
    fn one_of(counter: &'a AtomicUsize, most: usize) -> Option<Counted<'a>> {
        let counted = Counted(counter);
        (counter.fetch_add(1, SeqCst) < most).then_some(counted)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The client of the current run.
#[derive(Clone, Debug)]
struct Holder {
    who: String,
    /// The run is over, or is being ended.
    is_ending: bool,
}

impl Agent {
    /// Listens at this address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub fn listen(address: &Address) -> Result<Agent, String> {
        let listener = Listener::at(address).map_err(|error| format!("{address}: {error}"))?;
        Ok(Agent { place: listener.place(address), listener })
    }

    /// Serves the process that started this one, over standard input and output, until it is done. Nothing else may be
    /// written there meanwhile.
    ///
    /// # Errors
    /// Serving is not possible, or the other end is no client.
    pub fn serve_starter(settings: Settings) -> Result<(), String> {
        let connection = standard_connection().map_err(|error| error.to_string())?;
        let shared = Shared::new(settings);
        let place = shared.admit(&connection, Peer::Starter);
        attend(&connection, Peer::Starter, &shared, &place)
    }

    /// Serves one run until it is done. Waits this long for its client.
    ///
    /// # Errors
    /// No client comes, or it may not be served.
    pub fn serve_one(&self, settings: Settings, patience: Duration) -> Result<(), String> {
        let shared = Shared::new(settings);
        let until = Instant::now() + patience;
        let mut why = format!("no client has come in {patience:?}");
        while !shared.has_run.load(SeqCst) {
            if !self.listener.is_ready_within(until.saturating_duration_since(Instant::now())) {
                return Err(why);
            }
            let served = self.listener.accept().map_err(|error| error.to_string());
            let served = served.and_then(|(connection, peer)| {
                let place = shared.admit(&connection, peer);
                attend(&connection, peer, &shared, &place).inspect_err(|_| connection.part())
            });
            match served {
                Err(reason) => why = reason,
                Ok(()) if !shared.has_run.load(SeqCst) => {
                    return Err("the client has gone without asking for anything".to_owned());
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Where it listens.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Serves for ever.
    pub fn serve(self, settings: Settings) -> ! {
        let shared = Arc::new(Shared::new(settings));
        loop {
            let (connection, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    (shared.settings.log)(&format!("a connection is refused: {error}"));
                    thread::sleep(AGAIN);
                    continue;
                }
            };
            let number = shared.admit(&connection, peer).keep();
            let theirs = shared.clone();
            let body = move || {
                // The place lasts until the connection is closed: a refused client that still gets its answer has a
                // thread, too.
                let place = Place { shared: &theirs, number };
                if let Err(why) = attend(&connection, peer, &theirs, &place) {
                    theirs.log_refusal(&format!("{peer}: {why}"));
                    connection.part();
                }
            };
            if thread::Builder::new().name("iolite-agent".into()).spawn(body).is_err() {
                drop(Place { shared: &shared, number });
            }
        }
    }
}

/// The standard input and output of this process, as a connection. They are replaced, so that jobs find nothing there.
fn standard_connection() -> io::Result<Connection> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    if input.is_terminal() || output.is_terminal() {
        return Err(io::Error::other(
            "standard input and output are a terminal; a client starts this over ssh",
        ));
    }
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    process::replace(&io::stdin(), &nothing)?;
    process::replace(&io::stdout(), &nothing)?;
    Connection::over(Stream::over_pipes(input, output))
}

impl Shared {
    fn new(settings: Settings) -> Shared {
        Shared {
            settings,
            turn: Mutex::new(None),
            strangers: Mutex::default(),
            arrived: AtomicU64::new(0),
            refusals: Mutex::new((Instant::now(), 0)),
            clients: AtomicUsize::new(0),
            has_run: AtomicBool::new(false),
        }
    }

    fn turn(&self) -> MutexGuard<'_, Option<Holder>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn strangers(&self) -> MutexGuard<'_, VecDeque<Stranger>> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection a place among those that have not identified themselves. If all are taken, the oldest one
    /// from the address with the most of them is closed: a client that opens many connections only shuts out itself.
    fn admit(&self, connection: &Connection, peer: Peer) -> Place<'_> {
        let number = self.arrived.fetch_add(1, SeqCst);
        let from = peer.address();
        let mut strangers = self.strangers();
        if strangers.len() >= MOST_STRANGERS {
            let of_address = |from| strangers.iter().filter(|stranger| stranger.from == from).count();
            let most = strangers.iter().map(|stranger| of_address(stranger.from)).max();
            let oldest = strangers.iter().position(|stranger| Some(of_address(stranger.from)) == most);
            if let Some(made_room) = oldest.and_then(|oldest| strangers.remove(oldest)) {
                made_room.connection.refuse(Refusal::IsFull);
                made_room.connection.end();
            }
        }
        strangers.push_back(Stranger { number, from, connection: connection.clone() });
        drop(strangers);
        Place { shared: self, number }
    }

    /// Logs a refused connection, up to a rate limit, so that a scanner cannot fill the disk.
    fn log_refusal(&self, text: &str) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, told) = &mut *refusals;
        let mut more = 0;
        if since.elapsed() >= Duration::from_secs(1) {
            more = told.saturating_sub(MOST_TOLD);
            (*since, *told) = (Instant::now(), 0);
        }
        *told += 1;
        let is_told = *told <= MOST_TOLD;
        drop(refusals);
        if more > 0 {
            (self.settings.log)(&format!("{more} more connections were refused"));
        }
        if is_told {
            (self.settings.log)(text);
        }
    }

    /// Takes the agent for a run; or whose run it is.
    fn take(&self, who: &str) -> Result<Turn<'_>, Holder> {
        let mut turn = self.turn();
        if let Some(other) = &*turn {
            return Err(other.clone());
        }
        *turn = Some(Holder { who: who.to_owned(), is_ending: false });
        Ok(Turn(self))
    }

    /// The same, but waits for a run that is over already: its client knows the result, and the next run may come at
    /// once. Answers pings meanwhile.
    fn take_next(&self, who: &str, connection: &mut Connection) -> Result<Turn<'_>, String> {
        let until = Instant::now() + TURN;
        loop {
            match self.take(who) {
                Ok(turn) => return Ok(turn),
                Err(other) if !other.is_ending || Instant::now() >= until => return Err(other.who),
                Err(_) if !connection.is_readable_within(SHORT) => {}
                Err(other) => match frame::read(connection) {
                    Ok(ToAgent::Ping(sequence)) => pong(connection, sequence).map_err(|_| other.who)?,
                    // It wants nothing any more, or is gone.
                    _ => return Err(other.who),
                },
            }
        }
    }
}

/// As long as this lives, no other client's jobs run.
struct Turn<'a>(&'a Shared);

impl Turn<'_> {
    /// The run is over, or is being ended: the next client may wait for that.
    fn is_ending(&self) {
        if let Some(holder) = &mut *self.0.turn() {
            holder.is_ending = true;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.turn() = None;
    }
}

/// Serves one connection to its end.
fn attend(connection: &Connection, peer: Peer, shared: &Shared, place: &Place<'_>) -> Result<(), String> {
    let words = |error: FrameError| error.to_string();
    // One deadline for the whole greeting: a client that sends single bytes holds its place no longer than any other.
    connection.set_deadline(Some(Instant::now() + GREETING.min(shared.settings.timeout)));
    let mut connection = match (&shared.settings.keys, peer) {
        (Some(file), Peer::At(_)) => {
            let keys =
                Keys::read(file, Role::Agent).inspect_err(|_| connection.refuse(Refusal::LacksKeys))?;
            connection.protect(&keys).map_err(|why| why.to_string())?
        }
        _ => connection.clone(),
    };
    // Sent first, so that the other end can recognise us.
    greeting::send(&mut connection).map_err(|why| why.to_string())?;
    greeting::receive(&mut connection).map_err(|why| why.to_string())?;
    let ToAgent::Hello(client) = frame::read(&mut connection).map_err(words)? else {
        return Err("does not say who it is".to_owned());
    };
    let client = client.shortened();
    let machine = machine_name();
    let hello = Hello { program: shared.settings.program.to_owned(), machine, pid: std::process::id() };
    // Sent in any case, so that the other end can report the difference.
    frame::write(&mut connection, &FromAgent::Hello(hello)).map_err(words)?;
    client.check(shared.settings.program)?;
    let timeout = shared.settings.timeout;
    place.leave();
    let Some(_client) = Counted::one_of(&shared.clients, MOST_CLIENTS) else {
        return Err("there are too many clients".to_owned());
    };
    connection.set_deadline(None);
    connection.set_patience(timeout);
    let mut pace = Pace::new();
    loop {
        pace.take();
        let frame = match frame::read_raw::<ToAgent>(&mut connection) {
            Ok(frame) => frame,
            Err(FrameError::Closed) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        if frame[0] == RUN {
            shared.has_run.store(true, SeqCst);
            let who = format!("{}, from {peer}", client.in_words());
            let address = shared.settings.names_clients.then(|| peer.address()).flatten();
            return run(connection, &frame, (&who, address), shared);
        }
        match frame::decode(&frame).map_err(words)? {
            ToAgent::Ping(sequence) => pong(&mut connection, sequence).map_err(words)?,
            _ => return Ok(()),
        }
    }
}

/// Keeps a client that says too much from keeping this machine busy.
struct Pace {
    since: Instant,
    taken: u32,
}

impl Pace {
    fn new() -> Pace {
        Pace { since: Instant::now(), taken: 0 }
    }

    /// Takes a message: later, if there were too many in this second.
    fn take(&mut self) {
        const SECOND: Duration = Duration::from_secs(1);
        if self.taken >= MOST_MESSAGES {
            thread::sleep(SECOND.saturating_sub(self.since.elapsed()));
        }
        if self.since.elapsed() >= SECOND {
            *self = Pace::new();
        }
        self.taken += 1;
    }
}

/// Answers a ping.
fn pong(connection: &mut Connection, sequence: u64) -> Result<(), FrameError> {
    frame::write(connection, &FromAgent::Pong { sequence, now_ns: time::monotonic_ns() })
}

/// Runs the jobs in this frame for this coordinator, who comes from this address.
fn run(
    mut connection: Connection,
    frame: &[u8],
    (who, address): (&str, Option<IpAddr>),
    shared: &Shared,
) -> Result<(), String> {
    let turn = match shared.take_next(who, &mut connection) {
        Ok(turn) => turn,
        Err(other) => {
            return last_word(&mut connection, &FromAgent::Busy(other), shared);
        }
    };
    // Requests that wait for their turn stay encoded, because decoded jobs take far more memory.
    let Ok(ToAgent::Run(request)) = frame::decode(frame) else {
        return Err("the request for a run is damaged".to_owned());
    };
    (shared.settings.log)(&format!("runs jobs for {who}"));
    let spool = child::new_spool();
    let started = match child::start(request.as_fio, &shared.settings.permissions, &spool, address) {
        Ok(started) => started,
        Err(error) => {
            let died = FromAgent::Died(format!("cannot be started: {error}"));
            return last_word(&mut connection, &died, shared);
        }
    };
    let child::Started { mut process, mut channel, gate } = started;
    let sent = frame::write(&mut channel, &ToAgent::Run(request));
    let progress = Progress::default();
    let relayed = sent.map_err(|error| error.to_string()).and_then(|()| {
        relay(&connection, &channel, &gate, &process, shared.settings.timeout, &turn, &progress)
    });
    turn.is_ending();
    // It ends when there is nothing to wait for.
    drop(gate);
    // However the run ended, none of its processes may continue.
    let (ended, is_lost) = match &relayed {
        Ok(()) => (wait(&mut process, GRACE), false),
        Err(_) => {
            signals::kill(process.id() as i32, libc::SIGTERM);
            (wait(&mut process, GRACE), true)
        }
    };
    if ended.is_none() {
        signals::kill(process.id() as i32, libc::SIGKILL);
        // Killed, it ends; unless the kernel waits for a device, and then it ends with that.
        wait(&mut process, GRACE);
    }
    // Files that the client has not received stay, and a message tells where.
    let is_kept =
        spool.exists() && !progress.is_safe.load(SeqCst) && (is_lost || progress.is_done.load(SeqCst));
    if !is_kept {
        let _ = std::fs::remove_dir_all(&spool);
    }
    let end = if is_lost { "the jobs of" } else { "is done with the jobs of" };
    (shared.settings.log)(&match &relayed {
        Ok(()) => format!("{end} {who}"),
        Err(why) => format!("{end} {who} were ended: {why}"),
    });
    if is_kept {
        (shared.settings.log)(&format!("their logs stay in {}", spool.display()));
    }
    drop(turn);
    if is_lost {
        connection.end();
    } else {
        // The result may still be on its way.
        connection.part_within(shared.settings.timeout);
    }
    Ok(())
}

/// Sends a last message, and ends the connection when the other end has received it.
fn last_word(connection: &mut Connection, word: &FromAgent, shared: &Shared) -> Result<(), String> {
    frame::write(connection, word).map_err(|error| error.to_string())?;
    connection.part_within(shared.settings.timeout);
    Ok(())
}

/// Waits for the end of a process; `None` = it has not ended.
fn wait(process: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + patience;
    loop {
        if let Ok(Some(status)) = process.try_wait() {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// How far a run is.
#[derive(Debug, Default)]
struct Progress {
    /// The run's messages are not passed on any more.
    is_over: AtomicBool,
    /// The client is gone, so nothing can be passed on.
    is_cut_off: AtomicBool,
    /// The coordinator has its result.
    is_done: AtomicBool,
    /// It also has all files that the run has left.
    is_safe: AtomicBool,
    /// How often the coordinator has accepted data after the agent had to wait for it.
    taken: AtomicU64,
}

/// Passes on the run's messages and carries out the coordinator's, until the coordinator has all that it wants.
///
/// # Errors
/// The coordinator is considered gone; the error says why.
fn relay(
    connection: &Connection,
    channel: &UnixStream,
    gate: &Socket,
    process: &Child,
    timeout: Duration,
    turn: &Turn<'_>,
    progress: &Progress,
) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let writer = Mutex::new(connection.clone());
    let mut reader = connection.clone();
    thread::scope(|scope| {
        let told = thread::Builder::new().spawn_scoped(scope, || {
            let result = hand_on(channel, &writer, process, progress, turn);
            progress.is_over.store(true, SeqCst);
            result
        });
        let told = told.map_err(failed)?;
        let heard = hear(&mut reader, &writer, (channel, gate), process, timeout, progress);
        // The run waits in case the coordinator wants more.
        gate.finish_sending();
        if heard.is_err() {
            // Its workers go on until they are stopped.
            turn.is_ending();
            progress.is_cut_off.store(true, SeqCst);
            signals::kill(process.id() as i32, libc::SIGTERM);
            // Nobody reads any more, and the other thread must not wait for that.
            connection.end();
            let _ = channel.shutdown(std::net::Shutdown::Both);
        } else if !progress.is_over.load(SeqCst) {
            progress.is_cut_off.store(true, SeqCst);
            let _ = user::peek_end(process.id() as i32, GRACE);
            let _ = channel.shutdown(std::net::Shutdown::Both);
        }
        let told = told.join().unwrap_or_else(|_| Err("the relay has failed".to_owned()));
        heard.and(told)
    })
}

/// Handles the messages of the coordinator.
fn hear(
    reader: &mut Connection,
    writer: &Mutex<Connection>,
    (channel, gate): (&UnixStream, &Socket),
    process: &Child,
    timeout: Duration,
    progress: &Progress,
) -> Result<(), String> {
    let mut heard = Instant::now();
    let mut seen = 0;
    let mut pace = Pace::new();
    while !progress.is_over.load(SeqCst) {
        // While a coordinator reads a long report, it says nothing.
        let now_taken = progress.taken.load(SeqCst);
        if now_taken != seen {
            (heard, seen) = (Instant::now(), now_taken);
        }
        if user::peek_end(process.id() as i32, Duration::ZERO).is_some() {
            // Workers hold this end of the channel as well, and a worker that waits for a device keeps it open. The
            // last messages of the process are read even so.
            let _ = channel.shutdown(std::net::Shutdown::Read);
        }
        if !reader.is_readable_within(LOOK) {
            if heard.elapsed() >= timeout {
                return Err(format!("the client was silent for {timeout:?}"));
            }
            continue;
        }
        let message: ToAgent = match frame::read(reader) {
            Ok(message) => message,
            Err(_) if progress.is_over.load(SeqCst) => return Ok(()),
            // It has everything that it wanted.
            Err(FrameError::Closed) if progress.is_done.load(SeqCst) => return Ok(()),
            Err(FrameError::Closed) => return Err("the client is gone".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        heard = Instant::now();
        pace.take();
        match message {
            ToAgent::Ping(sequence) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                pong(&mut writer, sequence).map_err(|error| error.to_string())?;
            }
            ToAgent::Start { barrier, at_ns } => say(gate, Word::Start { barrier, at_ns }),
            ToAgent::Steady(place) => say(gate, Word::Steady(place)),
            ToAgent::Send => say(gate, Word::Send),
            ToAgent::Trigger => say(gate, Word::Trigger),
            // The process is not waited for before this loop has ended, so the number is its own.
            ToAgent::Stop => signals::kill(process.id() as i32, libc::SIGINT),
            ToAgent::Status => signals::kill(process.id() as i32, libc::SIGUSR1),
            ToAgent::Hello(_) | ToAgent::Run(_) => {
                return Err("a message that does not belong here".to_owned());
            }
        }
    }
    Ok(())
}

/// Sends the run a message. An error does not matter, because the run may have ended; if there is no room, the message
/// is dropped.
fn say(gate: &Socket, word: Word) {
    let _ = gate.send_if_there_is_room(&word.to_bytes());
}

/// Passes on the run's messages, up to the last one.
fn hand_on(
    mut channel: &UnixStream,
    writer: &Mutex<Connection>,
    process: &Child,
    progress: &Progress,
    turn: &Turn<'_>,
) -> Result<(), String> {
    let done = FromAgent::Done(Box::default()).kind();
    let sent = FromAgent::Sent(0).kind();
    let refused = FromAgent::Refused(Box::default()).kind();
    let taken = &progress.taken;
    loop {
        let frame = match frame::read_raw::<FromAgent>(&mut channel) {
            Ok(frame) => frame,
            // The other thread ends the run, and says why.
            Err(_) if progress.is_cut_off.load(SeqCst) => return Ok(()),
            Err(error) => {
                turn.is_ending();
                let died = FromAgent::Died(how_it_died(process, &error));
                return write(writer, &frame::encode(&died).map_err(|error| error.to_string())?, taken);
            }
        };
        let kind = frame[0];
        if kind == done || kind == refused {
            // Before the coordinator knows, because it may come back with the next run at once.
            turn.is_ending();
        }
        // Before it knows as well: it may end the connection then.
        progress.is_done.fetch_or(kind == done, SeqCst);
        progress.is_safe.fetch_or(kind == sent, SeqCst);
        write(writer, &frame, taken)?;
        if kind == refused {
            return Ok(());
        }
    }
}

/// Writes a frame, and counts how often it had to wait for room and got it, which shows that the other end reads.
fn write(writer: &Mutex<Connection>, frame: &[u8], taken: &AtomicU64) -> Result<(), String> {
    use std::io::Write;
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    for piece in frame.chunks(PIECE) {
        let waits = !writer.is_writable();
        writer.write_all(piece).map_err(|error| error.to_string())?;
        if waits {
            taken.fetch_add(1, SeqCst);
        }
    }
    Ok(())
}

/// How a process has ended that sent no message about it. The caller reaps it later.
fn how_it_died(process: &Child, error: &FrameError) -> String {
    match user::peek_end(process.id() as i32, GRACE) {
        Some(status) if status.signal().is_some() => {
            format!("the process of the run was killed by signal {}", status.signal().unwrap_or_default())
        }
        Some(status) => format!("the process of the run has ended without a report ({status})"),
        None => format!("the process of the run is silent: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;
    use std::io::Read;

    /// A worker that waits for a device has the other end of the channel as well, and cannot be ended.
    #[test]
    fn the_end_of_a_run_is_noticed_whoever_keeps_its_channel() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let over = |socket| Connection::over(Stream::over_socket(socket)).unwrap();
        let (connection, mut client) = (over(ours), over(theirs));
        let (channel, _kept) = UnixStream::pair().unwrap();
        let (gate, _its_gate) = Socket::pair().unwrap();
        let shared = Shared::new(Settings {
            keys: None,
            timeout: Duration::from_secs(600),
            permissions: Permissions::default(),
            names_clients: true,
            program: "test",
            log: |_| {},
        });
        let turn = shared.take("me").unwrap();
        let mut process = std::process::Command::new("sh").args(["-c", "kill -9 $$"]).spawn().unwrap();
        let progress = Progress::default();
        relay(&connection, &channel, &gate, &process, Duration::from_secs(600), &turn, &progress).unwrap();
        assert_eq!(
            frame::read::<FromAgent>(&mut client).unwrap(),
            FromAgent::Died("the process of the run was killed by signal 9".to_owned())
        );
        process.wait().unwrap();
    }

    /// A client that opens many connections only shuts out itself.
    #[test]
    fn strangers_of_one_address_keep_nobody_else_out() {
        let shared = Shared::new(Settings {
            keys: None,
            timeout: Duration::from_secs(600),
            permissions: Permissions::default(),
            names_clients: true,
            program: "test",
            log: |_| {},
        });
        let mut others = Vec::new();
        let mut come = |ip: [u8; 4]| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let connection = Connection::over(Stream::over_socket(ours)).unwrap();
            let number = shared.admit(&connection, Peer::At((ip, 1).into())).keep();
            others.push((theirs, connection));
            number
        };
        let own = come([10, 0, 0, 1]);
        let many: Vec<u64> = (0..200).map(|_| come([10, 0, 0, 2])).collect();
        let later = come([10, 0, 0, 3]);
        let numbers: Vec<u64> = shared.strangers().iter().map(|stranger| stranger.number).collect();
        assert_eq!(numbers.len(), MOST_STRANGERS);
        assert!(numbers.contains(&own) && numbers.contains(&later) && numbers.contains(many.last().unwrap()));
        assert!(!numbers.contains(&many[0]));
        // The connection that was closed got a message first.
        let mut said = Vec::new();
        others[1].0.read_to_end(&mut said).unwrap();
        assert!(!said.is_empty());
        drop(Place { shared: &shared, number: own });
        assert_eq!(shared.strangers().len(), MOST_STRANGERS - 1);
    }

    #[test]
    fn who_says_too_much_waits() {
        let mut pace = Pace::new();
        let begun = pace.since;
        (0..=MOST_MESSAGES).for_each(|_| pace.take());
        assert!(begun.elapsed() >= Duration::from_secs(1) && pace.taken <= MOST_MESSAGES);
    }

    #[test]
    fn who_takes_a_long_frame_is_there() {
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        let mine = Connection::over(Stream::over_socket(mine)).unwrap();
        let writer = Mutex::new(mine.clone());
        let taken = AtomicU64::new(0);
        write(&writer, &[7; 100], &taken).unwrap();
        assert_eq!(taken.load(SeqCst), 0, "there was room for it");
        let long = vec![7; 8 << 20];
        thread::scope(|scope| {
            scope.spawn(|| {
                while mine.is_writable() {
                    thread::yield_now();
                }
                let mut bytes = vec![0; 100 + long.len()];
                theirs.read_exact(&mut bytes).unwrap();
            });
            write(&writer, &long, &taken).unwrap();
        });
        assert!(taken.load(SeqCst) > 0);
    }
}
