//! The agent: waits for coordinators, and runs the jobs of one after the other.
//!
//! Each connection has a thread. The one whose run it is starts a process for it, hands on what that says, and hears the
//! coordinator: when he is gone, or silent for too long, it ends the process, and all workers end with it.

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
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Who has connected says who he is within this time.
const GREETING: Duration = Duration::from_secs(10);
/// How many connections there may be at a time of those who have not said yet who they are.
const MOST_STRANGERS: usize = 64;
/// How many there may be of others.
const MOST_CLIENTS: usize = 64;
/// How many that were refused are kept open for a while, so that they hear why.
const MOST_PARTING: usize = 16;
/// The time between two looks whether something has ended.
const LOOK: Duration = Duration::from_millis(100);
/// The same where somebody waits for it.
const SHORT: Duration = Duration::from_millis(5);
/// How long a run that was told to end has for it, before it is killed.
const GRACE: Duration = Duration::from_secs(3);
/// How long the next run waits for the end of one that is over: that one is told to end, and then killed.
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
    /// The file of its keys, which is read for each connection; `None` = whoever gets here is served.
    pub keys: Option<PathBuf>,
    /// A coordinator that is silent for so long is gone.
    pub timeout: Duration,
    /// What it may be asked to do.
    pub permissions: Permissions,
    /// Program and version, in one word.
    pub program: &'static str,
    /// Tells whoever runs the agent something.
    pub log: fn(&str),
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    /// Whose run it is.
    turn: Mutex<Option<Holder>>,
    /// How many connections there are of those who have not said yet who they are.
    strangers: AtomicUsize,
    /// How many there are of others.
    clients: AtomicUsize,
    /// A run was asked for.
    has_run: AtomicBool,
}

/// As long as this lives, somebody counts.
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

/// Whose run it is.
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
    /// The address is taken, or is none of this machine.
    pub fn listen(address: &Address) -> Result<Agent, String> {
        let listener = Listener::at(address).map_err(|error| format!("{address}: {error}"))?;
        Ok(Agent { place: listener.place(address), listener })
    }

    /// Serves whoever has started this process, over standard input and output, to its end. Nothing else may be written
    /// there meanwhile.
    ///
    /// # Errors
    /// Why that is not possible, or the other end is no client.
    pub fn serve_starter(settings: Settings) -> Result<(), String> {
        let connection = standard_connection().map_err(|error| error.to_string())?;
        let shared = Shared::new(settings);
        shared.strangers.fetch_add(1, SeqCst);
        attend(&connection, Peer::Starter, &shared)
    }

    /// Serves one run to its end. Waits so long for who wants it.
    ///
    /// # Errors
    /// Nobody wants one, or who has come is none that is served: in words.
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
                shared.strangers.fetch_add(1, SeqCst);
                attend(&connection, peer, &shared).inspect_err(|_| connection.part())
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
        let mut parting = VecDeque::new();
        loop {
            let (connection, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    (shared.settings.log)(&format!("a connection is refused: {error}"));
                    thread::sleep(AGAIN);
                    continue;
                }
            };
            if shared.strangers.load(SeqCst) >= MOST_STRANGERS {
                connection.refuse(Refusal::IsFull);
                parting.push_back(connection);
                // The oldest ones are closed.
                parting.drain(..parting.len().saturating_sub(MOST_PARTING));
                continue;
            }
            parting.clear();
            let theirs = shared.clone();
            let body = move || {
                if let Err(why) = attend(&connection, peer, &theirs) {
                    (theirs.settings.log)(&format!("{peer}: {why}"));
                    connection.part();
                }
            };
            shared.strangers.fetch_add(1, SeqCst);
            if thread::Builder::new().name("iolite-agent".into()).spawn(body).is_err() {
                shared.strangers.fetch_sub(1, SeqCst);
            }
        }
    }
}

/// What this process was started with, as a connection. Jobs find nothing there.
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
            strangers: AtomicUsize::new(0),
            clients: AtomicUsize::new(0),
            has_run: AtomicBool::new(false),
        }
    }

    fn turn(&self) -> MutexGuard<'_, Option<Holder>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The same, but a run that is over already is waited for: its client knows its result, and the next one may come at
    /// once. Meanwhile this one is told that somebody is here.
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

/// As long as this lives, nobody else's jobs run.
struct Turn<'a>(&'a Shared);

impl Turn<'_> {
    /// The run is over, or is being ended: whoever comes next may wait for that.
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
fn attend(connection: &Connection, peer: Peer, shared: &Shared) -> Result<(), String> {
    let words = |error: FrameError| error.to_string();
    // Counted by whoever has accepted it.
    let stranger = Counted(&shared.strangers);
    // One moment for all of it: whoever sends a byte now and then holds a place no longer than anybody else.
    connection.set_deadline(Some(Instant::now() + GREETING.min(shared.settings.timeout)));
    let mut connection = match (&shared.settings.keys, peer) {
        (Some(file), Peer::At(_)) => {
            let keys =
                Keys::read(file, Role::Agent).inspect_err(|_| connection.refuse(Refusal::LacksKeys))?;
            connection.protect(&keys).map_err(|why| why.to_string())?
        }
        _ => connection.clone(),
    };
    // Before anything else, so that whoever is there can tell who this is.
    greeting::send(&mut connection).map_err(|why| why.to_string())?;
    greeting::receive(&mut connection).map_err(|why| why.to_string())?;
    let ToAgent::Hello(client) = frame::read(&mut connection).map_err(words)? else {
        return Err("does not say who it is".to_owned());
    };
    let client = client.shortened();
    let machine = machine_name();
    let hello = Hello { program: shared.settings.program.to_owned(), machine, pid: std::process::id() };
    // Told in any case, so that the other end can say what differs.
    frame::write(&mut connection, &FromAgent::Hello(hello)).map_err(words)?;
    client.check(shared.settings.program)?;
    let timeout = shared.settings.timeout;
    drop(stranger);
    let Some(_client) = Counted::one_of(&shared.clients, MOST_CLIENTS) else {
        return Err("there are too many clients".to_owned());
    };
    connection.set_deadline(None);
    connection.set_patience(timeout);
    loop {
        let frame = match frame::read_raw::<ToAgent>(&mut connection) {
            Ok(frame) => frame,
            Err(FrameError::Closed) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        if frame[0] == RUN {
            shared.has_run.store(true, SeqCst);
            let who =
                format!("{} (process {}) on {}, from {peer}", client.program, client.pid, client.machine);
            return run(connection, &frame, &who, shared);
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

/// Runs the jobs in this frame for this coordinator.
fn run(mut connection: Connection, frame: &[u8], who: &str, shared: &Shared) -> Result<(), String> {
    let turn = match shared.take_next(who, &mut connection) {
        Ok(turn) => turn,
        Err(other) => {
            return last_word(&mut connection, &FromAgent::Busy(other), shared);
        }
    };
    // Of those who wait for their turn, nobody has his jobs taken apart, which needs far more memory than they do.
    let Ok(ToAgent::Run(request)) = frame::decode(frame) else {
        return Err("the request for a run is damaged".to_owned());
    };
    (shared.settings.log)(&format!("runs jobs for {who}"));
    let spool = child::new_spool();
    let started = match child::start(request.as_fio, &shared.settings.permissions, &spool) {
        Ok(started) => started,
        Err(error) => {
            let died = FromAgent::Died(format!("cannot be started: {error}"));
            return last_word(&mut connection, &died, shared);
        }
    };
    let child::Started { mut process, mut channel, gate } = started;
    let sent = frame::write(&mut channel, &ToAgent::Run(request));
    let relayed = sent
        .map_err(|error| error.to_string())
        .and_then(|()| relay(&connection, &channel, &gate, &process, shared.settings.timeout, &turn));
    turn.is_ending();
    // Whatever it was: nothing of it goes on.
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
    // Killed, it has left that behind.
    let _ = std::fs::remove_dir_all(&spool);
    let end = if is_lost { "the jobs of" } else { "is done with the jobs of" };
    (shared.settings.log)(&match &relayed {
        Ok(()) => format!("{end} {who}"),
        Err(why) => format!("{end} {who} were ended: {why}"),
    });
    drop(turn);
    if is_lost {
        connection.end();
    } else {
        // The result may still be on its way.
        connection.part_within(shared.settings.timeout);
    }
    Ok(())
}

/// Says something that ends the connection, and ends it when the other end has heard that.
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

/// Hands on what the run says, and does what the coordinator says, until the run is over.
///
/// The error says why the coordinator is taken to be gone.
fn relay(
    connection: &Connection,
    channel: &UnixStream,
    gate: &Socket,
    process: &Child,
    timeout: Duration,
    turn: &Turn<'_>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let writer = Mutex::new(connection.clone());
    let mut reader = connection.clone();
    let is_over = AtomicBool::new(false);
    let is_cut_off = AtomicBool::new(false);
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        let told = thread::Builder::new().spawn_scoped(scope, || {
            let result = hand_on(channel, &writer, process, &is_cut_off, &taken, turn);
            is_over.store(true, SeqCst);
            result
        });
        let told = told.map_err(failed)?;
        let heard = hear(&mut reader, &writer, (channel, gate), process, timeout, &is_over, &taken);
        if heard.is_err() {
            // Its workers go on until it is told.
            turn.is_ending();
            is_cut_off.store(true, SeqCst);
            signals::kill(process.id() as i32, libc::SIGTERM);
            // Nobody reads any more: the other thread is not to wait for that.
            connection.end();
            let _ = channel.shutdown(std::net::Shutdown::Both);
        }
        let told = told.join().unwrap_or_else(|_| Err("the relay has failed".to_owned()));
        heard.and(told)
    })
}

/// Does what the coordinator says.
fn hear(
    reader: &mut Connection,
    writer: &Mutex<Connection>,
    (channel, gate): (&UnixStream, &Socket),
    process: &Child,
    timeout: Duration,
    is_over: &AtomicBool,
    taken: &AtomicU64,
) -> Result<(), String> {
    let mut heard = Instant::now();
    let mut seen = 0;
    while !is_over.load(SeqCst) {
        // While a coordinator reads a long report, it says nothing.
        let now_taken = taken.load(SeqCst);
        if now_taken != seen {
            (heard, seen) = (Instant::now(), now_taken);
        }
        if user::peek_end(process.id() as i32, Duration::ZERO).is_some() {
            // Workers have this end of the channel as well, and one that waits for a device keeps it open. What the
            // process has said before its end is read all the same.
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
            Err(_) if is_over.load(SeqCst) => return Ok(()),
            Err(FrameError::Closed) => return Err("the client is gone".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        heard = Instant::now();
        match message {
            ToAgent::Ping(sequence) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                pong(&mut writer, sequence).map_err(|error| error.to_string())?;
            }
            ToAgent::Start { barrier, at_ns } => say(gate, Word::Start { barrier, at_ns }),
            ToAgent::Steady(place) => say(gate, Word::Steady(place)),
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

/// Tells the run something. If it has ended meanwhile, it does not matter; one that hears nothing is not waited for.
fn say(gate: &Socket, word: Word) {
    let _ = gate.send_if_there_is_room(&word.to_bytes());
}

/// Hands on what the run says, to its last message.
fn hand_on(
    mut channel: &UnixStream,
    writer: &Mutex<Connection>,
    process: &Child,
    is_cut_off: &AtomicBool,
    taken: &AtomicU64,
    turn: &Turn<'_>,
) -> Result<(), String> {
    let last = [FromAgent::Done(Box::default()).kind(), FromAgent::Refused(Box::default()).kind()];
    loop {
        let frame = match frame::read_raw::<FromAgent>(&mut channel) {
            Ok(frame) => frame,
            // The other thread ends the run, and says why.
            Err(_) if is_cut_off.load(SeqCst) => return Ok(()),
            Err(error) => {
                turn.is_ending();
                let died = FromAgent::Died(how_it_died(process, &error));
                return write(writer, &frame::encode(&died).map_err(|error| error.to_string())?, taken);
            }
        };
        // Nothing comes after these.
        let is_last = last.contains(&frame[0]);
        if is_last {
            // Before the coordinator knows: who has the result may come back at once.
            turn.is_ending();
        }
        write(writer, &frame, taken)?;
        if is_last {
            return Ok(());
        }
    }
}

/// Writes a frame, and counts how often there was no room for more of it and then was: the other end has taken something.
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

/// How a process has ended that said nothing about it. Whoever has started it waits for it later.
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
            program: "test",
            log: |_| {},
        });
        let turn = shared.take("me").unwrap();
        let mut process = std::process::Command::new("sh").args(["-c", "kill -9 $$"]).spawn().unwrap();
        relay(&connection, &channel, &gate, &process, Duration::from_secs(600), &turn).unwrap();
        assert_eq!(
            frame::read::<FromAgent>(&mut client).unwrap(),
            FromAgent::Died("the process of the run was killed by signal 9".to_owned())
        );
        process.wait().unwrap();
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
