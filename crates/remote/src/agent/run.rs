//! The run of a client: the process that performs it, what is passed on between the two, and the end.

use super::limits::Pace;
use super::turn::Turn;
use super::{SHORT, Shared, pong};
use crate::child;
use crate::connection::Connection;
use crate::frame::{self, FrameError};
use crate::message::{FromAgent, Message, ToAgent};
use crate::user;
use iolite_os::signals;
use iolite_os::socket::Socket;
use iolite_stats::Word;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The interval of checks whether something has ended.
const LOOK: Duration = Duration::from_millis(100);
/// How long a run that was asked to end may take before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// How much of a frame is written at a time.
const PIECE: usize = 64 << 10;

/// Runs the jobs in this frame for this coordinator, who comes from this address.
pub(super) fn run(
    mut connection: Connection,
    frame: &[u8],
    (who, address): (&str, Option<IpAddr>),
    shared: &Shared,
) -> Result<(), String> {
    let turn = match shared.turns.take_next(who, &mut connection) {
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
        thread::sleep(SHORT);
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
    use super::super::turn::{self, Turns};
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
        let turns = Turns::default();
        let turn = turn::take(&turns);
        let mut process = std::process::Command::new("sh").args(["-c", "kill -9 $$"]).spawn().unwrap();
        let progress = Progress::default();
        relay(&connection, &channel, &gate, &process, Duration::from_secs(600), &turn, &progress).unwrap();
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
