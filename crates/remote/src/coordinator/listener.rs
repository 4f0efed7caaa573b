//! The thread that listens to an agent: its messages go to the coordinator, its files to a thread that writes them.

use super::step::Clock;
use super::turns::Turns;
use super::{
    DRIFT, Heard, LOOK, Link, PING, REST, ROUND_TRIPS, ROUND_TRIPS_AGAIN, SHORT, STACK, Told, WAIT_FOR_TURN,
    Writer, lock,
};
use crate::connection::Connection;
use crate::frame;
use crate::message::{FromAgent, Hello, Refusal, Request, ToAgent, machine_name};
use crate::returned::{FilePart, Keeper};
use iolite_os::time;
use iolite_stats::{Event, EventKind};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The state shared by the threads of all agents.
pub(super) struct Shared {
    /// The channel to the coordinator.
    pub sender: Sender<(usize, Heard)>,
    /// The results are complete: later messages of a connection are ignored.
    pub is_ended: Arc<AtomicBool>,
    /// Limits concurrent comparisons of clocks.
    pub turns: Arc<Turns>,
}

/// Whether this name from an agent means this process.
fn is_this_client(who: &str) -> bool {
    let own = Hello { program: String::new(), machine: machine_name(), pid: std::process::id() };
    who.contains(&format!("{}, from ", own.shortened().in_words()))
}

/// Starts the thread that listens to an agent, and sends it its jobs.
pub(super) fn listen(
    index: usize,
    link: Link,
    request: Request,
    keeper: Keeper,
    timeout: Duration,
    Shared { sender, is_ended, turns }: Shared,
) -> std::io::Result<Writer> {
    let Link { connection, carrier, .. } = link;
    let writer = Arc::new(Mutex::new(connection.clone()));
    let mut ear = Ear {
        index,
        connection,
        writer: writer.clone(),
        sender,
        desk: Desk::Empty(keeper),
        pings: 0,
        pinged: Instant::now(),
        heard: Instant::now(),
        waits: BTreeSet::new(),
        compared: Comparison::default(),
        turns,
    };
    thread::Builder::new().name("iolite-host".into()).stack_size(STACK).spawn(move || {
        let told = match ear.listen(request, timeout) {
            Ok(last) => last,
            Err(_) if is_ended.load(SeqCst) => return,
            Err(why) => {
                Told::Lost(carrier.as_ref().map_or_else(|| why.clone(), |carrier| carrier.explain(&why)))
            }
        };
        drop(carrier);
        ear.connection.end();
        ear.tell(Heard::Told(told));
    })?;
    Ok(writer)
}

/// The listener to an agent.
struct Ear {
    index: usize,
    connection: Connection,
    writer: Writer,
    sender: Sender<(usize, Heard)>,
    desk: Desk,
    pings: u64,
    pinged: Instant,
    heard: Instant,
    /// The barriers at which it waits for the moment to continue.
    waits: BTreeSet<u32>,
    compared: Comparison,
    turns: Arc<Turns>,
}

/// The schedule of comparing its clock.
#[derive(Default)]
struct Comparison {
    /// Since when a comparison is due; `None` = not due.
    due: Option<Instant>,
    /// When the next one is due, while the machine waits for others.
    again: Option<Instant>,
    /// The shortest round trip so far.
    best_ns: Option<u64>,
}

impl Comparison {
    /// The machine has come to a barrier.
    fn is_wanted(&mut self) {
        self.again = None;
        self.due.get_or_insert_with(Instant::now);
    }

    /// How long a comparison has been due; `None` = not due.
    fn is_due(&mut self) -> Option<Duration> {
        if self.again.take_if(|again| *again <= Instant::now()).is_some() {
            self.due.get_or_insert_with(Instant::now);
        }
        self.due.map(|due| due.elapsed())
    }

    /// A comparison was made.
    fn is_made(&mut self, clock: Clock) {
        let took = self.due.take().map_or(Duration::ZERO, |due| due.elapsed());
        self.again = Some(Instant::now() + DRIFT.max(took * REST));
        self.best_ns = Some(self.best_ns.unwrap_or(u64::MAX).min(clock.round_trip_ns));
    }

    /// Whether this many round trips are enough: the shortest of them is about as short as the shortest before.
    fn is_enough(&self, made: u32, clock: Option<Clock>) -> bool {
        let as_before = || Some(clock?.round_trip_ns <= self.best_ns? + self.best_ns? / 4);
        made >= ROUND_TRIPS || (made >= ROUND_TRIPS_AGAIN && as_before() == Some(true))
    }
}

/// Why an agent is lost that has closed its connection, or has died.
const GONE: &str = "it has closed the connection";

impl Ear {
    fn tell(&self, heard: Heard) {
        // Sending fails only if the run is over.
        let _ = self.sender.send((self.index, heard));
    }

    fn send(&self, message: &ToAgent) -> Result<(), String> {
        frame::write(&mut *lock(&self.writer), message).map_err(|error| match error.is_closed() {
            true => GONE.to_owned(),
            false => format!("it cannot be reached: {error}"),
        })
    }

    fn ping(&mut self) -> Result<(), String> {
        self.pings += 1;
        self.pinged = Instant::now();
        self.send(&ToAgent::Ping(self.pings))
    }

    /// Listens to the end. Returns the last message for the coordinator; the error says why the agent is lost.
    fn listen(&mut self, request: Request, timeout: Duration) -> Result<Told, String> {
        self.send(&ToAgent::Run(Box::new(request)))?;
        self.heard = Instant::now();
        loop {
            self.stay()?;
            let mut patience = PING.min(timeout / 4).saturating_sub(self.pinged.elapsed());
            if !self.waits.is_empty()
                && let Some(overdue) = self.compared.is_due()
            {
                let turns = self.turns.clone();
                let turn = turns.take();
                if turn.is_none() && overdue < WAIT_FOR_TURN {
                    patience = LOOK;
                } else if let Err(last) = self.compare_clocks(timeout)? {
                    return Ok(last);
                }
            }
            if let Some(message) = self.next(patience, timeout)?
                && let Some(last) = self.act(message)?
            {
                return Ok(last);
            }
        }
    }

    /// Sends keepalives to the agent.
    fn stay(&mut self) -> Result<(), String> {
        if self.pinged.elapsed() >= PING {
            self.ping()?;
        }
        Ok(())
    }

    /// Acts on a message. Returns a message for the coordinator if it is the last one.
    fn act(&mut self, message: FromAgent) -> Result<Option<Told>, String> {
        let told = match message {
            FromAgent::Hello(_) | FromAgent::Pong { .. } | FromAgent::Shown(_) => return Ok(None),
            FromAgent::Warning(text) => Told::Warning(text),
            FromAgent::Begun(begun) => Told::Begun(begun),
            FromAgent::Event(event) => match self.keep_step(event) {
                Some(event) => Told::Event(event),
                None => return Ok(None),
            },
            FromAgent::Busy(who) => {
                let problems = vec![match is_this_client(&who) {
                    true => "it is given twice, and performs one run at a time: give it once (with several job files after it), or \
                             start a second server there, at another port or socket"
                        .to_owned(),
                    false => format!("it runs the jobs of another client: {who}"),
                }];
                return Ok(Some(Told::Refused(Box::new(Refusal { problems, report: None }))));
            }
            FromAgent::Refused(refusal) => return Ok(Some(Told::Refused(refusal))),
            FromAgent::Done(done) => Told::Done(done),
            FromAgent::Died(why) => return Ok(Some(Told::Lost(why))),
            FromAgent::File(part) => {
                self.keep(*part)?;
                return Ok(None);
            }
            FromAgent::Sent(missing) => {
                self.finish_keeping()?;
                self.tell(Heard::Sent(missing));
                return Ok(None);
            }
            FromAgent::Triggered(problem) => {
                self.tell(Heard::Triggered(problem));
                return Ok(None);
            }
        };
        self.tell(Heard::Told(told));
        Ok(None)
    }

    /// Passes a part of a file to the thread that writes it, so that a hanging local disk does not make the client look
    /// dead.
    fn keep(&mut self, part: FilePart) -> Result<(), String> {
        if matches!(self.desk, Desk::Empty(_))
            && let Desk::Empty(keeper) = std::mem::replace(&mut self.desk, Desk::Closed)
        {
            match Desk::open(keeper, (self.index, self.sender.clone())) {
                Ok(desk) => self.desk = desk,
                Err(error) => self.tell(Heard::Told(Told::NotKept(error.to_string()))),
            }
        }
        let Desk::Open(parts, _) = &self.desk else { return Ok(()) };
        let parts = parts.clone();
        let mut left = Some(part);
        while let Some(part) = left.take() {
            match parts.try_send(part) {
                Err(TrySendError::Full(part)) => {
                    left = Some(part);
                    self.stay()?;
                    thread::sleep(SHORT);
                    // Its messages are not read meanwhile, so this is not silence.
                    self.heard = Instant::now();
                }
                // The thread has failed, which is reported at the end.
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            }
        }
        Ok(())
    }

    /// Waits until all data is written.
    fn finish_keeping(&mut self) -> Result<(), String> {
        let Desk::Open(parts, thread) = std::mem::replace(&mut self.desk, Desk::Closed) else {
            return Ok(());
        };
        drop(parts);
        while !thread.is_finished() {
            self.stay()?;
            thread::sleep(SHORT);
            self.heard = Instant::now();
        }
        if thread.join().is_err() {
            self.tell(Heard::Told(Told::NotKept(
                "its files are not kept: internal error: the thread that writes them has failed".to_owned(),
            )));
        }
        Ok(())
    }

    /// Passes on the events that concern several machines; all others need no action.
    fn keep_step(&mut self, event: Box<Event>) -> Option<Box<Event>> {
        match event.kind {
            EventKind::InStep(together) => self.tell(Heard::InStep(together)),
            EventKind::Ready(barrier) => {
                self.waits.insert(barrier);
                self.compared.is_wanted();
            }
            EventKind::Passed(barrier) => {
                self.waits.remove(&barrier);
                self.tell(Heard::Waits(barrier, None));
            }
            EventKind::Started { barrier, late_ns } => {
                self.waits.remove(&barrier);
                // Later barriers announce the moment in the same way.
                if barrier == 0 {
                    self.tell(Heard::Started(late_ns));
                }
            }
            EventKind::Measured(measured) => self.tell(Heard::Measured(measured)),
            _ => return Some(event),
        }
        None
    }

    /// The next message; `None` = none has arrived in this time.
    fn next(&mut self, patience: Duration, timeout: Duration) -> Result<Option<FromAgent>, String> {
        if !self.connection.is_readable_within(patience) {
            return match self.heard.elapsed() >= timeout {
                true => Err(format!("it was silent for {timeout:?}")),
                false => Ok(None),
            };
        }
        let message = frame::read(&mut self.connection)
            .map_err(|error| if error.is_closed() { GONE.to_owned() } else { error.to_string() })?;
        self.heard = Instant::now();
        Ok(Some(message))
    }

    /// Compares the agent's clock with that of this machine, and reports the result for all barriers where the agent
    /// waits; or returns the last message for the coordinator.
    fn compare_clocks(&mut self, timeout: Duration) -> Result<Result<(), Told>, String> {
        let mut best: Option<Clock> = None;
        let mut made = 0;
        while !self.compared.is_enough(made, best) {
            made += 1;
            let sent_ns = time::monotonic_ns();
            self.ping()?;
            let awaited = self.pings;
            loop {
                match self.next(LOOK, timeout)? {
                    Some(FromAgent::Pong { sequence, now_ns }) if sequence == awaited => {
                        let arrived_ns = time::monotonic_ns();
                        let round_trip_ns = arrived_ns.saturating_sub(sent_ns);
                        let offset_ns = i128::from(now_ns) - i128::from(sent_ns + round_trip_ns / 2);
                        let clock = Clock { offset_ns, round_trip_ns };
                        best = best.into_iter().chain([clock]).min_by_key(|clock| clock.round_trip_ns);
                        break;
                    }
                    Some(message) => {
                        if let Some(last) = self.act(message)? {
                            return Ok(Err(last));
                        }
                    }
                    None => {}
                }
            }
        }
        let clock = best.ok_or_else(|| "its clock cannot be compared".to_owned())?;
        self.compared.is_made(clock);
        self.waits.iter().for_each(|&barrier| self.tell(Heard::Waits(barrier, Some(clock))));
        Ok(Ok(()))
    }
}

/// Writes the files of a machine.
enum Desk {
    /// No file has arrived yet.
    Empty(Keeper),
    /// The channel to the thread that writes the parts.
    Open(SyncSender<FilePart>, JoinHandle<()>),
    Closed,
}

impl Desk {
    /// The most parts that wait.
    const ROOM: usize = 4;

    fn open(mut keeper: Keeper, (index, sender): (usize, Sender<(usize, Heard)>)) -> std::io::Result<Desk> {
        let (parts, written) = mpsc::sync_channel::<FilePart>(Desk::ROOM);
        let body = move || {
            for part in written {
                if let Err(why) = keeper.take(&part) {
                    // Sending fails only if the run is over.
                    let _ = sender.send((index, Heard::Told(Told::NotKept(why))));
                }
            }
        };
        let thread = thread::Builder::new().name("iolite-files".into()).stack_size(STACK).spawn(body)?;
        Ok(Desk::Open(parts, thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;

    /// The clocks are compared again while a machine waits, because they have drifted since it was ready.
    #[test]
    fn clocks_are_compared_again_while_a_machine_waits() {
        const SHIFT_NS: u64 = 1 << 50;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let over = |socket| Connection::over(Stream::over_socket(socket)).unwrap();
        let (connection, mut agent) = (over(ours), over(theirs));
        let (sender, heard) = mpsc::channel();
        let mut ear = Ear {
            index: 0,
            writer: Arc::new(Mutex::new(connection.clone())),
            connection,
            sender,
            desk: Desk::Closed,
            pings: 0,
            pinged: Instant::now(),
            heard: Instant::now(),
            waits: BTreeSet::new(),
            compared: Comparison::default(),
            turns: Arc::new(Turns::new(1)),
        };
        thread::scope(|scope| {
            scope.spawn(move || {
                let ready = FromAgent::Event(Box::new(Event::new(0, None, EventKind::Ready(0))));
                let mut pings = 0;
                loop {
                    match frame::read(&mut agent) {
                        Ok(ToAgent::Ping(sequence)) => {
                            pings += 1;
                            let shift = if pings > ROUND_TRIPS { SHIFT_NS } else { 0 };
                            let now_ns = time::monotonic_ns() + shift;
                            frame::write(&mut agent, &FromAgent::Pong { sequence, now_ns }).unwrap();
                        }
                        Ok(ToAgent::Run(_)) => frame::write(&mut agent, &ready).unwrap(),
                        _ => return,
                    }
                }
            });
            let connection = ear.connection.clone();
            scope.spawn(move || {
                let request = Request { hosts: 1, ..Request::default() };
                ear.listen(request, Duration::from_secs(600))
            });
            let mut offsets = heard.iter().filter_map(|(_, what)| match what {
                Heard::Waits(0, Some(clock)) => Some(clock.offset_ns),
                _ => None,
            });
            assert!(offsets.next().unwrap() < i128::from(SHIFT_NS / 2));
            assert!(offsets.next().unwrap() > i128::from(SHIFT_NS / 2));
            connection.end();
        });
    }
}
