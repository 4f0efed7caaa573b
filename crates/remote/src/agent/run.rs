//! The run of a client: the process that performs it, the messages between the two, and the end.

use super::ending::by_signal;
use super::intake::Pace;
use super::turn::Turn;
use super::{GRACE, SHORT, Settings, Shared, pong};
use crate::child;
use crate::connection::Connection;
use crate::frame::{self, FrameError};
use crate::message::{FromAgent, Message, Refusal, SHOWN, ToAgent};
use crate::spool;
use crate::user;
use iolite_os::signals;
use iolite_os::socket::Socket;
use iolite_stats::Word;
use std::io;
use std::net::{IpAddr, Shutdown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The interval of checks whether something has ended.
const LOOK: Duration = Duration::from_millis(100);
/// How much of a frame is written at a time.
const PIECE: usize = 64 << 10;

/// How a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// The client has its result.
    Done,
    /// The jobs do not run, and the client knows why.
    Refused,
    /// Its process has died, and the client knows how.
    Died(String),
    /// The client is gone, or the agent is ended before it has sent the client another end.
    CutOff(String),
}

impl End {
    /// The message for the agent's user.
    fn words(&self, who: &str, signal: Option<i32>) -> String {
        match (self, signal) {
            (End::Refused, _) => format!("has refused the jobs of {who}"),
            (End::Done | End::CutOff(_), Some(signal)) => {
                format!("the jobs of {who} were ended: {}", by_signal(signal))
            }
            (End::Done, None) => format!("is done with the jobs of {who}"),
            (End::Died(why) | End::CutOff(why), _) => format!("the jobs of {who} were ended: {why}"),
        }
    }
}

/// Runs the jobs in this frame for this coordinator, which connects from this address.
pub(super) fn run(
    mut connection: Connection,
    frame: &[u8],
    (who, address): (&str, Option<IpAddr>),
    shared: &Shared,
) -> Result<(), String> {
    let refused = |why| FromAgent::Refused(Box::new(Refusal { problems: vec![why], report: None }));
    if let Some(why) = shared.ending.refusal() {
        return last_word(&mut connection, &refused(why), shared);
    }
    let turn = match shared.turns.take_next(who, &mut connection) {
        Ok(turn) => turn,
        Err(other) => {
            return last_word(&mut connection, &FromAgent::Busy(other), shared);
        }
    };
    let _running = match shared.ending.hold() {
        Ok(running) => running,
        Err(why) => return last_word(&mut connection, &refused(why), shared),
    };
    // Requests that wait for their turn stay encoded, because decoded jobs take far more memory.
    let Ok(ToAgent::Run(request)) = frame::decode(frame) else {
        return Err("the request for a run is damaged".to_owned());
    };
    let log = shared.settings.log;
    log(&format!("runs jobs for {who}"));
    let spool = spool::new();
    // With fio, two agents of one machine share files.
    let mark = if request.as_fio { "" } else { &shared.mark };
    let client = address.map(|address| format!("{address}{mark}"));
    let Settings { permissions, show, .. } = &shared.settings;
    let started = match child::start(request.as_fio, permissions, &spool, client.as_deref(), show.is_some()) {
        Ok(started) => started,
        Err(error) => {
            let why = format!("cannot be started: {error}");
            log(&End::Died(why.clone()).words(who, None));
            return last_word(&mut connection, &FromAgent::Died(why), shared);
        }
    };
    let child::Started { mut process, mut channel, gate } = started;
    // If it has died already, its end is noticed like any other.
    let _ = frame::write(&mut channel, &ToAgent::Run(request));
    let progress = Progress::default();
    let end = relay(&connection, &channel, &gate, &process, shared, &turn, &progress);
    turn.is_ending();
    // The process ends when it has nothing to wait for.
    drop(gate);
    // However the run ended, none of its processes may continue.
    let is_cut_off = matches!(end, End::CutOff(_));
    if is_cut_off {
        signals::kill(process.id() as i32, libc::SIGTERM);
    }
    if wait(&mut process, GRACE).is_none() {
        signals::kill(process.id() as i32, libc::SIGKILL);
        // A killed process ends, unless the kernel waits for a device: then it ends after that.
        wait(&mut process, GRACE);
    }
    log(&end.words(who, shared.ending.signal()));
    // Files that the client has not received are kept, and a message names their place.
    let keeps = match end {
        End::Done | End::CutOff(_) => !progress.is_safe.load(SeqCst),
        End::Refused | End::Died(_) => false,
    };
    if let Some(kept) = spool::end(&spool, keeps) {
        log(&format!("their logs stay in {}", kept.display()));
    }
    drop(turn);
    if is_cut_off {
        connection.end();
    } else {
        // The result may still be on its way.
        connection.part_within(shared.ending.patience(shared.settings.timeout));
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
        thread::sleep(SHORT);
    }
}

/// The progress of a run.
#[derive(Debug, Default)]
struct Progress {
    /// The run's messages are no longer passed on.
    is_over: AtomicBool,
    /// The client is gone, so nothing can be passed on.
    is_cut_off: AtomicBool,
    /// What the coordinator has been told about the end.
    told: OnceLock<End>,
    /// The coordinator also has all files of the run.
    is_safe: AtomicBool,
    /// How often the coordinator has accepted data after the agent had to wait for it.
    taken: AtomicU64,
}

/// Passes on the run's messages and carries out the coordinator's, until the coordinator has everything, or counts as
/// gone. Returns how the run has ended.
fn relay(
    connection: &Connection,
    channel: &UnixStream,
    gate: &Socket,
    process: &Child,
    shared: &Shared,
    turn: &Turn<'_>,
    progress: &Progress,
) -> End {
    let writer = Mutex::new(connection.clone());
    let mut reader = connection.clone();
    thread::scope(|scope| {
        let told = thread::Builder::new().spawn_scoped(scope, || {
            let result = hand_on(channel, &writer, process, shared, progress, turn);
            progress.is_over.store(true, SeqCst);
            result
        });
        let told = match told {
            Ok(told) => told,
            Err(error) => return End::CutOff(error.to_string()),
        };
        let heard = hear(&mut reader, &writer, (channel, gate), process, shared, progress);
        let must_end = !progress.is_over.load(SeqCst);
        if must_end {
            progress.is_cut_off.store(true, SeqCst);
        }
        // The run waits in case the coordinator wants more.
        gate.finish_sending();
        if heard.is_err() {
            // Its workers continue until they are stopped.
            turn.is_ending();
            signals::kill(process.id() as i32, libc::SIGTERM);
            // The client no longer reads, and the other thread must not wait for that.
            connection.end();
            let _ = channel.shutdown(Shutdown::Both);
        } else if must_end {
            let _ = user::peek_end(process.id() as i32, GRACE);
            let _ = channel.shutdown(Shutdown::Both);
        }
        let told = told.join().unwrap_or_else(|_| Err("the relay has failed".to_owned()));
        match heard.and(told) {
            Err(why) => End::CutOff(why),
            // Both directions of the relay end without an error only when the end of the run is known.
            Ok(()) => progress.told.get().cloned().unwrap_or(End::CutOff(CLIENT_GONE.to_owned())),
        }
    })
}

/// Why a run is ended if its client has closed its connection, or has died.
const CLIENT_GONE: &str = "the client is gone";

/// Why the connection to a client ended.
fn loss(error: FrameError) -> String {
    if error.is_closed() { CLIENT_GONE.to_owned() } else { error.to_string() }
}

/// Handles the messages of the coordinator.
///
/// # Errors
/// The coordinator counts as gone, or the agent is ended; the error says why.
fn hear(
    reader: &mut Connection,
    writer: &Mutex<Connection>,
    (channel, gate): (&UnixStream, &Socket),
    process: &Child,
    shared: &Shared,
    progress: &Progress,
) -> Result<(), String> {
    let timeout = shared.settings.timeout;
    let mut heard = Instant::now();
    let mut asked_to_end = None;
    let mut seen = 0;
    let mut pace = Pace::of_messages();
    while !progress.is_over.load(SeqCst) {
        // While a coordinator reads a long report, it sends nothing.
        let now_taken = progress.taken.load(SeqCst);
        if now_taken != seen {
            (heard, seen) = (Instant::now(), now_taken);
        }
        if user::peek_end(process.id() as i32, Duration::ZERO).is_some() {
            // Workers hold this end of the channel as well, and a worker that waits for a device keeps it open. The
            // last messages of the process are read nevertheless.
            let _ = channel.shutdown(Shutdown::Read);
        }
        if let Some(signal) = shared.ending.signal() {
            // It reports, and the client gets its files, unless that takes too long.
            let since = *asked_to_end.get_or_insert_with(|| {
                signals::kill(process.id() as i32, libc::SIGTERM);
                Instant::now()
            });
            match progress.told.get() {
                Some(_) if since.elapsed() >= GRACE * 2 => return Ok(()),
                None if since.elapsed() >= GRACE => return Err(by_signal(signal)),
                _ => {}
            }
        }
        if !reader.is_readable_within(LOOK) {
            if heard.elapsed() >= timeout {
                return Err(format!("the client was silent for {timeout:?}"));
            }
            continue;
        }
        let message: ToAgent = match frame::read(reader) {
            Ok(message) => message,
            // The coordinator has everything. (If it could not read that, the other thread has noticed it.)
            Err(FrameError::Closed | FrameError::Lost(_)) if progress.told.get().is_some() => return Ok(()),
            Err(error) => return Err(loss(error)),
        };
        heard = Instant::now();
        pace.take();
        match message {
            ToAgent::Ping(sequence) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                match pong(&mut writer, sequence) {
                    Err(_) if progress.told.get().is_some() => return Ok(()),
                    ponged => ponged.map_err(loss)?,
                }
            }
            ToAgent::Start { barrier, at_ns } => say(gate, Word::Start { barrier, at_ns }),
            ToAgent::Steady(place) => say(gate, Word::Steady(place)),
            ToAgent::Send => say(gate, Word::Send),
            ToAgent::Trigger => say(gate, Word::Trigger),
            // The process is not reaped before this loop has ended, so the number is still its own.
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
///
/// # Errors
/// The coordinator could not be told how the run has ended.
fn hand_on(
    mut channel: &UnixStream,
    writer: &Mutex<Connection>,
    process: &Child,
    shared: &Shared,
    progress: &Progress,
    turn: &Turn<'_>,
) -> Result<(), String> {
    let done = FromAgent::Done(Box::default()).kind();
    let sent = FromAgent::Sent(0).kind();
    let refused = FromAgent::Refused(Box::default()).kind();
    let taken = &progress.taken;
    loop {
        let frame = frame::read_raw::<FromAgent>(&mut channel);
        // The other thread ends the run, and reports why. Later messages are lost, or not needed.
        if progress.is_cut_off.load(SeqCst) && frame.is_err() {
            return Ok(());
        }
        let (frame, end) = match frame {
            Ok(frame) if frame[0] == SHOWN => {
                if let (Some(show), Ok(FromAgent::Shown(shown))) =
                    (&shared.settings.show, frame::decode(&frame))
                {
                    (show.0)(*shown);
                }
                continue;
            }
            Ok(frame) if frame[0] == done => (frame, Some(End::Done)),
            Ok(frame) if frame[0] == refused => (frame, Some(End::Refused)),
            Ok(frame) => (frame, None),
            Err(error) => {
                let how = how_it_died(process, &error);
                let died = frame::encode(&FromAgent::Died(how.clone())).map_err(|error| error.to_string())?;
                (died, Some(End::Died(how)))
            }
        };
        let is_last = end.is_some() && frame[0] != done;
        let mut is_result = false;
        if let Some(end) = end {
            // Before the coordinator knows, because it may request the next run at once.
            turn.is_ending();
            // Also before it knows: it may then end the connection. If the process dies after its result, the result
            // remains.
            is_result = progress.told.set(end).is_ok();
        }
        progress.is_safe.fetch_or(frame[0] == sent, SeqCst);
        match write(writer, &frame, taken) {
            // It knows the result, and has closed the connection.
            Err(_) if !is_result && progress.told.get().is_some() => return Ok(()),
            written => written.map_err(|error| loss(error.into()))?,
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Writes a frame, and counts how often it had to wait for room and got it: that shows that the other end reads.
fn write(writer: &Mutex<Connection>, frame: &[u8], taken: &AtomicU64) -> io::Result<()> {
    use io::Write;
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    for piece in frame.chunks(PIECE) {
        let waits = !writer.is_writable();
        writer.write_all(piece)?;
        if waits {
            taken.fetch_add(1, SeqCst);
        }
    }
    Ok(())
}

/// How a process ended without a message about its end. The caller reaps it later.
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
    use super::super::turn;
    use super::*;
    use crate::permissions::Permissions;
    use crate::stream::Stream;
    use std::io::Read;

    /// A worker that waits for a device also has the other end of the channel, and cannot be ended.
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
            show: None,
        });
        let turn = turn::take(&shared.turns);
        let mut process = std::process::Command::new("sh").args(["-c", "kill -9 $$"]).spawn().unwrap();
        let progress = Progress::default();
        let end = relay(&connection, &channel, &gate, &process, &shared, &turn, &progress);
        let how = "the process of the run was killed by signal 9".to_owned();
        assert_eq!(frame::read::<FromAgent>(&mut client).unwrap(), FromAgent::Died(how.clone()));
        assert_eq!(end, End::Died(how));
        process.wait().unwrap();
    }

    #[test]
    fn a_client_that_receives_a_long_frame_is_alive() {
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
