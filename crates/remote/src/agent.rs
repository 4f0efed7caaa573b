//! The agent: accepts coordinators, and runs their jobs one after the other.
//!
//! Each connection has a thread. The thread that owns the run starts a process for the run, forwards its messages, and
//! listens to the coordinator. If the coordinator disconnects or is silent for too long, the thread ends the process,
//! and all workers end with it.

mod ending;
mod intake;
mod run;
mod turn;

use crate::address::Address;
use crate::connection::{Connection, Listener, Peer};
use crate::frame::{self, FrameError};
use crate::greeting::{self, Refusal};
use crate::keys::{Keys, Role};
use crate::message::{FromAgent, Hello, RUN, Shown, ToAgent, machine_name};
use crate::permissions::Permissions;
use crate::spool;
use crate::stream::Stream;
use crate::unidentified::{Place, Strangers};
use ending::{Ending, OnTerm, OwnFile};
use intake::{Arrivals, Counted, OF_CLIENT, OF_STRANGER, Pace, Refusals};
use iolite_os::process;
use iolite_os::signals::SignalQueue;
use iolite_os::time;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use turn::Turns;

/// How long a run that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(3);
/// Time limit for a client's greeting.
const GREETING: Duration = Duration::from_secs(10);
/// The most concurrent connections that are authenticated.
const MOST_CLIENTS: usize = 64;
/// The interval of checks while a client waits for the result.
const SHORT: Duration = Duration::from_millis(5);
/// How long to wait when a connection cannot be accepted (too many open files, say).
const AGAIN: Duration = Duration::from_millis(100);

/// An agent that listens.
#[derive(Debug)]
pub struct Agent {
    listener: Listener,
    place: String,
    /// Files to remove when a signal ends the agent.
    files: Vec<OwnFile>,
}

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file of its keys, which is read for each connection; `None` = every client is served.
    pub keys: Option<PathBuf>,
    /// A coordinator that is silent for this long counts as gone.
    pub timeout: Duration,
    /// The permissions of its clients.
    pub permissions: Permissions,
    /// Jobs know the address of their client, to name files after it. If this agent does not listen at the usual place,
    /// its address and port are added.
    pub names_clients: bool,
    /// Program and version, in one word.
    pub program: &'static str,
    /// Prints a message for the user who runs the agent.
    pub log: fn(&str),
    /// Who shows the runs here; `None` = nobody.
    pub show: Option<Show>,
}

/// Takes what an agent itself shows of its runs.
#[derive(Clone)]
pub struct Show(pub Arc<dyn Fn(Shown) + Send + Sync>);

impl fmt::Debug for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Show").finish_non_exhaustive()
    }
}

/// The state that all connections share.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    turns: Turns,
    strangers: Strangers<Connection>,
    refusals: Refusals,
    /// The number of clients that have identified themselves and are still connected.
    clients: AtomicUsize,
    ending: Ending,
    /// A run was requested.
    has_run: AtomicBool,
    /// Distinguishes the files that jobs make from those of other agents of this machine ([`Listener::mark`]).
    mark: String,
}

impl Agent {
    /// Listens at this address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub fn listen(address: &Address) -> Result<Agent, String> {
        let listener = Listener::at(address).map_err(|error| format!("{address}: {error}"))?;
        let files = match address {
            Address::Socket(path) => OwnFile::at(path).into_iter().collect(),
            _ => Vec::new(),
        };
        Ok(Agent { place: listener.place(address), listener, files })
    }

    /// Makes the agent remove this file when a signal ends it.
    pub fn owns(&mut self, file: &Path) {
        self.files.extend(OwnFile::at(file));
    }

    /// Serves the process that started this one, over standard input and output, until it has finished. Nothing else
    /// may be written there meanwhile. Each of these signals ends the run, and then the process.
    ///
    /// # Errors
    /// Serving is not possible, or the other end is not a client.
    pub fn serve_starter(settings: Settings, signals: SignalQueue) -> Result<(), String> {
        let connection = standard_connection().map_err(|error| error.to_string())?;
        spool::remove_dead();
        let shared = Arc::new(Shared::new(settings));
        ending::by_signals(&shared, signals, Vec::new(), OnTerm::End);
        let place = shared.admit(&connection, Peer::Starter);
        attend(&connection, Peer::Starter, &shared, &place)
    }

    /// Serves one run to its end. Waits this long for its client.
    ///
    /// # Errors
    /// No client connects, or it may not be served.
    pub fn serve_one(&self, settings: Settings, patience: Duration) -> Result<(), String> {
        spool::remove_dead();
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

    /// The address at which it listens.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Serves until one of these signals comes. SIGTERM waits for the end of the run, another signal ends it; then the
    /// process ends.
    pub fn serve(self, settings: Settings, signals: SignalQueue) -> ! {
        for left in spool::remove_dead() {
            (settings.log)(&format!("removes {}, which a killed server has left", left.display()));
        }
        let shared = Arc::new(Shared { mark: self.listener.mark(), ..Shared::new(settings) });
        ending::by_signals(&shared, signals, self.files, OnTerm::Finish);
        let mut arrivals = Arrivals::default();
        let (mut pace, mut pace_of_refusals) = (Pace::of_arrivals(), Pace::of_refusals());
        loop {
            let (connection, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    shared.refusals.log(&format!("a connection is refused: {error}"));
                    thread::sleep(AGAIN);
                    continue;
                }
            };
            if peer.address().is_some_and(|from| !arrivals.take(from, Instant::now())) {
                // A flood is worked off quickly: while it fills the queue of the kernel, nobody else gets in.
                pace_of_refusals.take();
                shared.refusals.log(&format!("{peer}: opens too many connections"));
                connection.refuse(Refusal::IsFull);
                connection.end();
                continue;
            }
            pace.take();
            let place = shared.admit(&connection, peer);
            let theirs = shared.clone();
            let body = move || {
                // The place is held until the connection is closed: a refused client that still gets its answer has a
                // thread, too.
                if let Err(why) = attend(&connection, peer, &theirs, &place) {
                    theirs.refusals.log(&format!("{peer}: {why}"));
                    connection.part();
                }
            };
            // If the thread cannot be started, the connection is closed.
            let _ = thread::Builder::new().name("iolite-agent".into()).spawn(body);
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
            refusals: Refusals::new(settings.log),
            settings,
            turns: Turns::default(),
            strangers: Strangers::default(),
            clients: AtomicUsize::new(0),
            ending: Ending::default(),
            has_run: AtomicBool::new(false),
            mark: String::new(),
        }
    }

    /// Gives a connection a place among those that have not identified themselves yet.
    fn admit(&self, connection: &Connection, peer: Peer) -> Place<Connection> {
        let (place, displaced) = self.strangers.admit(connection.clone(), peer.address());
        if let Some(displaced) = displaced {
            displaced.refuse(Refusal::IsFull);
            displaced.end();
        }
        place
    }
}

/// Serves one connection to its end.
fn attend(
    connection: &Connection,
    peer: Peer,
    shared: &Shared,
    place: &Place<Connection>,
) -> Result<(), String> {
    let words = |error: FrameError| error.to_string();
    // One deadline for the whole greeting: a client that sends single bytes holds its place no longer than any other.
    connection.set_deadline(Some(Instant::now() + GREETING.min(shared.settings.timeout)));
    connection.limit_intake(OF_STRANGER);
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
    connection.limit_intake(OF_CLIENT);
    let mut pace = Pace::of_messages();
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
            return run::run(connection, &frame, (&who, address), shared);
        }
        match frame::decode(&frame).map_err(words)? {
            ToAgent::Ping(sequence) => pong(&mut connection, sequence).map_err(words)?,
            _ => return Ok(()),
        }
    }
}

/// Answers a ping.
fn pong(connection: &mut Connection, sequence: u64) -> Result<(), FrameError> {
    frame::write(connection, &FromAgent::Pong { sequence, now_ns: time::monotonic_ns() })
}
