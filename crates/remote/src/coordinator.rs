//! The coordinator: sends jobs to agents, starts all of them at the same moment, and receives their messages.
//!
//! Each agent has a thread that reads its messages, and one channel brings everything to the caller's thread. So an
//! agent that hangs delays the others at most for the time that it may be silent.

mod listener;
mod step;
mod turns;

use crate::address::Address;
use crate::carrier_process::{self, Carrier, Carriers};
use crate::connection::Connection;
use crate::frame;
use crate::keys::Keys;
use crate::message::{Begun, Done, FromAgent, Hello, Refusal, Request, SAME_VERSION, ToAgent, machine_name};
use crate::returned::Keeper;
use crate::ssh;
use iolite_os::time;
use iolite_stats::{Event, InStep, Measured, StartSpread, SteadyReport};
use listener::listen;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use step::{Clock, Gone, Steps};
use turns::Turns;

/// The time between two pings.
const PING: Duration = Duration::from_millis(500);
/// The interval of checks whether a slow disk has taken data.
const SHORT: Duration = Duration::from_millis(5);
/// The interval of checks for the user's requests.
const LOOK: Duration = Duration::from_millis(50);
/// Round trips of one comparison of clocks. The shortest is the most accurate.
const ROUND_TRIPS: u32 = 32;
/// Round trips of a later comparison, if one of them is about as short as the shortest so far.
const ROUND_TRIPS_AGAIN: u32 = 4;
/// How many clocks are compared at a time: a round trip must measure the network, not the queue for this machine's
/// CPUs.
const COMPARED_AT_A_TIME: usize = 8;
/// How long a machine waits for its turn. If the others take longer, most of their round trips is network time, so more
/// can run at a time.
const WAIT_FOR_TURN: Duration = Duration::from_secs(3);
/// While a machine waits for others, its clock is compared again after this time: clocks drift by some tens of microseconds
/// in a second.
const DRIFT: Duration = Duration::from_secs(2);
/// But it waits at least this many times as long as the last comparison took, including the wait for its turn: among a
/// thousand machines, those that are ready must not keep the others from comparing.
const REST: u32 = 8;
/// How many connections are set up at a time. An encrypted one costs about a millisecond of CPU time.
const REACHED_AT_A_TIME: usize = 64;
/// The most concurrent logins by ssh: servers and jump hosts drop some from ten on (MaxStartups).
const LOGINS_AT_A_TIME: usize = 8;
/// The time from the decision to start until the start, in addition to the delay of messages.
const MARGIN_NS: u64 = 100_000_000;
/// The time to send a start message to one machine.
const TELLING_NS: u64 = 200_000;
/// Memory for the stack of a thread that reads messages.
const STACK: usize = 512 << 10;

/// The settings of a run on several machines.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A machine that is silent for this long counts as lost.
    pub timeout: Duration,
    /// When a machine is lost, the others are ended.
    pub abort_when_lost: bool,
    /// Machines get a program before ssh starts it: this file, or from this directory the one for their processor
    /// ([`crate::pushed`]).
    pub push: Option<Arc<Path>>,
    /// Agents that ssh starts let jobs run programs, and change settings of the machine.
    pub exec: bool,
    /// Program and version, in one word.
    pub program: &'static str,
}

/// Messages of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A warning about accepted input.
    Warning(String),
    /// Its jobs will run.
    Begun(Begun),
    /// An event of its run.
    Event(Box<Event>),
    /// Its jobs do not run.
    Refused(Box<Refusal>),
    /// All machines have got the start time of their jobs, which is the same for all.
    AllBegin,
    /// All machines have been asked to end their jobs.
    AllEnd,
    /// The next jobs of the machine are set up and wait for other machines; `false` = they wait no longer.
    Waits(bool),
    /// A file that its run has left cannot be kept here, or has not arrived.
    NotKept(String),
    /// The number of files of its run that could not be sent; its warnings say why.
    Missing(u64),
    /// The command of its trigger has failed.
    Trigger(String),
    /// Its run has ended.
    Done(Box<Done>),
    /// Its run was ended by this signal, which the user has not requested here.
    CutShort(i32, Box<Done>),
    /// It is lost, or its run has died; this says why.
    Lost(String),
}

/// Requests of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserRequest {
    /// No request.
    None,
    /// To end the run, and report.
    Stop,
    /// To wait no longer.
    GiveUp,
    /// A report now.
    Status,
}

/// An agent that has been reached.
#[derive(Debug)]
struct Link {
    connection: Connection,
    hello: Hello,
    // After the connection, because the carrier waits for its end.
    carrier: Option<Arc<Carrier>>,
}

/// Why no run begins.
#[derive(Debug)]
pub enum NotReached {
    /// These agents cannot be reached, each with its index and the reason.
    Failed(Vec<(usize, String)>),
    /// The user has asked for the end.
    Stopped,
}

/// Agents that have been reached.
#[derive(Debug)]
pub struct Coordinator {
    links: Vec<Link>,
    settings: Settings,
}

/// Messages from the thread of a machine.
#[derive(Debug)]
enum Heard {
    Told(Told),
    InStep(InStep),
    /// It waits at this barrier, with this clock; without a clock, none of its jobs waits there any more.
    Waits(u32, Option<Clock>),
    /// It has begun, this many nanoseconds after the given moment.
    Started(u64),
    Measured(Measured),
    /// It has sent the files that its run has left, except for this many.
    Sent(u64),
    /// The command of its trigger has ended, with this error.
    Triggered(Option<String>),
}

/// The state of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its run is not over.
    Running,
    /// Its result has arrived, but not its files.
    Done,
    /// Its files have arrived as well.
    Safe,
    /// The command of its trigger runs.
    Triggered,
    /// It sends no further messages.
    Over,
}

/// Joint results of several machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Together {
    /// The spread of their starts, if they started.
    pub start: Option<StartSpread>,
    /// The steady states that were judged over several machines.
    pub steady: Vec<SteadyReport>,
}

impl Coordinator {
    /// Reaches all agents; those reached over TCP must hold keys of this set. Agents that have been reached get signs
    /// of life while this waits for others.
    ///
    /// This starts threads, so the process must not fork any more.
    ///
    /// # Errors
    /// Some agents cannot be reached, or the user has asked for the end.
    pub fn reach(
        addresses: &[Address],
        keys: Option<Keys>,
        settings: Settings,
        request: &mut dyn FnMut() -> UserRequest,
    ) -> Result<Coordinator, NotReached> {
        let carriers = Arc::new(Carriers::default());
        let reached = reach_all(addresses, keys, &settings, &carriers, request);
        let Some(reached) = reached else {
            carriers.end();
            return Err(NotReached::Stopped);
        };
        let (mut links, mut failed) = (Vec::new(), Vec::new());
        for (index, one) in reached.into_iter().enumerate() {
            match one {
                Ok(link) => links.push(link),
                Err(why) => failed.push((index, why)),
            }
        }
        if failed.is_empty() {
            return Ok(Coordinator { links, settings });
        }
        // Ends all connections first, and then waits for all carriers together.
        links.iter().for_each(|link| link.connection.end());
        let carriers: Vec<_> = links.iter().filter_map(|link| link.carrier.clone()).collect();
        carrier_process::wait_for_all(&carriers, carrier_process::GRACE);
        Err(NotReached::Failed(failed))
    }

    /// The machines' descriptions of themselves.
    pub fn machines(&self) -> impl Iterator<Item = &Hello> {
        self.links.iter().map(|link| &link.hello)
    }

    /// Makes each machine run its jobs, all from the same moment on. Ends when each has finished, has refused, or is
    /// lost. `tags`: the machines' names in the names of returned files.
    pub fn run(
        self,
        requests: Vec<Request>,
        tags: &[String],
        tell: &mut dyn FnMut(usize, Told),
        request: &mut dyn FnMut() -> UserRequest,
    ) -> Finished {
        let Coordinator { links, settings } = self;
        let timeout = settings.timeout;
        let (sender, heard) = mpsc::channel();
        let mut run = Run {
            settings,
            states: vec![State::Running; links.len()],
            steps: Steps::of(links.len()),
            lates: vec![None; links.len()],
            round_trip_ns: 0,
            is_stopped: false,
            is_given_up: false,
            is_ended: Arc::new(AtomicBool::new(false)),
            writers: Vec::new(),
        };
        let turns = Arc::new(Turns::new(COMPARED_AT_A_TIME));
        // Waits for them together, when all connections are closed.
        let carriers: Vec<_> = links.iter().filter_map(|link| link.carrier.clone()).collect();
        for (index, ((link, request), tag)) in links.into_iter().zip(requests).zip(tags).enumerate() {
            let keeper = Keeper::new(Path::new(""), tag);
            let shared = listener::Shared {
                sender: sender.clone(),
                is_ended: run.is_ended.clone(),
                turns: turns.clone(),
            };
            match listen(index, link, request, keeper, timeout, shared) {
                Ok(writer) => run.writers.push(Some(writer)),
                Err(error) => {
                    run.writers.push(None);
                    // This cannot fail: the receiver exists here.
                    let _ = sender.send((index, Heard::Told(Told::Lost(error.to_string()))));
                }
            }
        }
        drop(sender);
        run.hear_all(&heard, tell, request);
        Finished { run, heard, carriers }
    }
}

/// Runs that have ended on all machines. Their files are still there.
#[derive(Debug)]
pub struct Finished {
    run: Run,
    heard: Receiver<(usize, Heard)>,
    carriers: Vec<Arc<Carrier>>,
}

impl Finished {
    /// The joint results of the machines.
    pub fn together(&self) -> Together {
        Together { start: self.run.spread(), steady: self.run.steps.judged() }
    }

    /// Makes the machines send the files of their runs, which are stored in the current directory. They may be
    /// gigabytes.
    pub fn gather(&mut self, tell: &mut dyn FnMut(usize, Told)) {
        self.run.send_to_those(State::Done, &ToAgent::Send);
        self.run.hear_while(State::Done, &self.heard, tell);
    }

    /// Makes the machines run the command of the trigger. The command may cut off a machine, so losing one is expected.
    pub fn trigger(&mut self, tell: &mut dyn FnMut(usize, Told)) {
        self.run.send_to_those(State::Safe, &ToAgent::Trigger);
        for state in self.run.states.iter_mut().filter(|state| **state == State::Safe) {
            *state = State::Triggered;
        }
        self.run.hear_while(State::Triggered, &self.heard, tell);
    }

    /// Ends all connections.
    pub fn end(mut self) {
        self.run.is_ended.store(true, SeqCst);
        self.run.writers.drain(..).flatten().for_each(|writer| lock(&writer).end());
        let patience = if self.run.is_given_up { Duration::ZERO } else { carrier_process::GRACE };
        carrier_process::wait_for_all(&self.carriers, patience);
    }
}

/// A run on several machines.
#[derive(Debug)]
struct Run {
    settings: Settings,
    states: Vec<State>,
    steps: Steps,
    /// How late each machine began.
    lates: Vec<Option<u64>>,
    /// The longest round trip of a machine.
    round_trip_ns: u64,
    is_stopped: bool,
    is_given_up: bool,
    /// All results have arrived: later messages of the connections are ignored.
    is_ended: Arc<AtomicBool>,
    writers: Vec<Option<Writer>>,
}

type Writer = Arc<Mutex<Connection>>;

impl Run {
    fn hear_all(
        &mut self,
        heard: &Receiver<(usize, Heard)>,
        tell: &mut dyn FnMut(usize, Told),
        request: &mut dyn FnMut() -> UserRequest,
    ) {
        while self.states.contains(&State::Running) {
            match heard.recv_timeout(LOOK) {
                Ok((index, what)) => self.take(index, what, tell),
                Err(RecvTimeoutError::Timeout) => {}
                // The last message of each thread says that its machine is done, unless the thread has failed.
                Err(RecvTimeoutError::Disconnected) => {
                    return self.give_up("internal error: the thread of this host has ended", tell);
                }
            }
            match request() {
                UserRequest::None => {}
                UserRequest::Status => self.send_all(&ToAgent::Status),
                UserRequest::Stop => self.stop(tell),
                UserRequest::GiveUp => {
                    self.is_given_up = true;
                    self.give_up("given up: it did not end when it was asked to", tell);
                }
            }
            self.begin_what_is_ready(tell);
        }
    }

    /// Receives messages as long as a machine is in this state.
    fn hear_while(
        &mut self,
        state: State,
        heard: &Receiver<(usize, Heard)>,
        tell: &mut dyn FnMut(usize, Told),
    ) {
        while self.states.contains(&state) {
            // The last message of each thread says that its machine is lost, unless the thread has failed.
            let Ok((index, what)) = heard.recv() else {
                return self.give_up("internal error: the thread of this host has ended", tell);
            };
            self.take(index, what, tell);
        }
    }

    /// Stops waiting for all machines.
    fn give_up(&mut self, why: &str, tell: &mut dyn FnMut(usize, Told)) {
        for (index, state) in self.states.iter_mut().enumerate() {
            // Files of other machines may still arrive.
            if *state == State::Running {
                *state = State::Over;
                tell(index, Told::Lost(why.to_owned()));
            }
        }
    }

    fn take(&mut self, index: usize, what: Heard, tell: &mut dyn FnMut(usize, Told)) {
        let state = self.states[index];
        if state == State::Over {
            return;
        }
        match what {
            Heard::Sent(missing) => {
                self.states[index] = State::Safe;
                if missing > 0 {
                    tell(index, Told::Missing(missing));
                }
            }
            Heard::Triggered(problem) => {
                self.states[index] = State::Safe;
                problem.into_iter().for_each(|why| tell(index, Told::Trigger(why)));
            }
            Heard::Told(Told::Lost(why)) if state != State::Running => {
                self.states[index] = State::Over;
                // Its result has arrived.
                if state == State::Done {
                    tell(index, Told::NotKept(format!("what its run has left does not come back: {why}")));
                }
            }
            Heard::InStep(together) => self.steps.announced(index, together),
            Heard::Waits(barrier, clock) => {
                self.steps.waits(index, barrier, clock);
                tell(index, Told::Waits(clock.is_some()));
            }
            Heard::Measured(measured) => {
                let attained = self.steps.measured(index, measured);
                attained.into_iter().for_each(|attained| self.end_what_is_steady(&attained));
            }
            Heard::Started(late_ns) => self.lates[index] = Some(late_ns),
            Heard::Told(told) => {
                let told = match told {
                    Told::Done(done) => self.judge(done),
                    other => other,
                };
                let ends =
                    matches!(told, Told::Done(_) | Told::CutShort(..) | Told::Refused(_) | Told::Lost(_));
                // If one machine refuses its jobs, no machine runs.
                let ends_all = matches!(told, Told::Refused(_))
                    || (matches!(told, Told::Lost(_)) && self.settings.abort_when_lost);
                let (how, then) = match &told {
                    Told::Done(_) => (Gone::Done, State::Done),
                    Told::CutShort(..) => (Gone::Lost, State::Done),
                    _ => (Gone::Lost, State::Over),
                };
                tell(index, told);
                if ends {
                    self.states[index] = then;
                    let attained = self.steps.over(index, how);
                    attained.iter().for_each(|attained| self.end_what_is_steady(attained));
                }
                if ends_all {
                    self.stop(tell);
                }
            }
        }
    }

    /// Whether a run ended normally or was cut short.
    fn judge(&self, done: Box<Done>) -> Told {
        match done.signal {
            Some(signal) if !self.is_stopped => Told::CutShort(signal, done),
            _ => Told::Done(done),
        }
    }

    /// Sends the machines that wait at a barrier the moment at which to continue, once all have arrived.
    fn begin_what_is_ready(&mut self, tell: &mut dyn FnMut(usize, Told)) {
        if self.is_stopped {
            return;
        }
        for begin in self.steps.begin() {
            let longest = begin.machines.iter().map(|(_, clock)| clock.round_trip_ns).max();
            let Some(longest) = longest else { continue };
            self.round_trip_ns = self.round_trip_ns.max(longest);
            let telling = begin.machines.len() as u64 * TELLING_NS;
            let at = time::monotonic_ns() + MARGIN_NS + telling + 2 * longest;
            for (index, clock) in &begin.machines {
                self.send(*index, &ToAgent::Start { barrier: begin.barrier, at_ns: clock.at(at) });
            }
            // Callbacks may take long, so they come after all messages have been sent.
            begin.machines.iter().for_each(|(index, _)| tell(*index, Told::Waits(false)));
            if begin.barrier == 0 {
                tell(0, Told::AllBegin);
            }
        }
    }

    fn end_what_is_steady(&self, (place, machines): &(u32, Vec<usize>)) {
        machines.iter().for_each(|&index| self.send(index, &ToAgent::Steady(*place)));
    }

    fn stop(&mut self, tell: &mut dyn FnMut(usize, Told)) {
        if !std::mem::replace(&mut self.is_stopped, true) {
            self.send_all(&ToAgent::Stop);
            tell(0, Told::AllEnd);
        }
    }

    fn send_all(&self, message: &ToAgent) {
        (0..self.states.len()).for_each(|index| self.send(index, message));
    }

    fn send_to_those(&self, state: State, message: &ToAgent) {
        let those = (0..self.states.len()).filter(|&index| self.states[index] == state);
        those.for_each(|index| self.send(index, message));
    }

    fn send(&self, index: usize, message: &ToAgent) {
        if let (Some(writer), false) = (&self.writers[index], self.states[index] == State::Over) {
            // If the machine cannot be reached, the thread that listens to it notices its silence.
            let _ = frame::write(&mut *lock(writer), message);
        }
    }

    /// The spread of the starts; `None` = fewer than two machines started.
    fn spread(&self) -> Option<StartSpread> {
        let lates = || self.lates.iter().flatten().copied();
        lates().nth(1)?;
        let spread_ns = lates().max()?.saturating_sub(lates().min()?);
        Some(StartSpread { spread_ns, uncertainty_ns: self.round_trip_ns })
    }
}

fn lock(writer: &Writer) -> std::sync::MutexGuard<'_, Connection> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reaches all agents, each in its own thread; `None` = the user has asked for the end, and some threads may still
/// wait.
fn reach_all(
    addresses: &[Address],
    keys: Option<Keys>,
    settings: &Settings,
    carriers: &Arc<Carriers>,
    request: &mut dyn FnMut() -> UserRequest,
) -> Option<Vec<Result<Link, String>>> {
    let keys = keys.map(Arc::new);
    let turns = Arc::new([REACHED_AT_A_TIME, LOGINS_AT_A_TIME].map(Turns::new));
    let (sender, arriving) = mpsc::channel();
    for (index, address) in addresses.iter().enumerate() {
        let (address, keys, carriers) = (address.clone(), keys.clone(), carriers.clone());
        let (theirs, turns, settings) = (sender.clone(), turns.clone(), settings.clone());
        let body = move || {
            let [turns, of_ssh] = &*turns;
            let turns = if matches!(address, Address::Ssh(_)) { of_ssh } else { turns };
            // Machines may hang, and the others must not wait long for them.
            let mut turn = turns.take_within(settings.timeout / 2);
            let mut logged_in = || drop(turn.take());
            // If the caller no longer waits, the link ends here.
            let _ =
                theirs.send((index, reach(&address, keys.as_deref(), &settings, &carriers, &mut logged_in)));
        };
        let started = thread::Builder::new().name("iolite-reach".into()).stack_size(STACK).spawn(body);
        if let Err(error) = started {
            // The receiver exists until all are reached.
            let _ = sender.send((index, Err(error.to_string())));
        }
    }
    drop(sender);
    let mut reached: Vec<Option<Result<Link, String>>> = addresses.iter().map(|_| None).collect();
    let mut pinged = Instant::now();
    while reached.iter().any(Option::is_none) {
        match arriving.recv_timeout(LOOK) {
            Ok((index, one)) => reached[index] = Some(one),
            Err(RecvTimeoutError::Timeout) => {}
            // A thread has panicked.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if matches!(request(), UserRequest::Stop | UserRequest::GiveUp) {
            return None;
        }
        if pinged.elapsed() >= PING {
            pinged = Instant::now();
            for link in reached.iter_mut().flatten().flatten() {
                // Clocks are not compared by this ping. If the agent is gone, the coordinator notices that when it
                // sends the jobs.
                let _ = frame::write(&mut link.connection, &ToAgent::Ping(0));
            }
        }
    }
    Some(reached.into_iter().map(|one| one.unwrap_or_else(|| Err("failed".to_owned()))).collect())
}

/// Reaches one agent. `logged_in` is called after the login, if there is one.
fn reach(
    address: &Address,
    keys: Option<&Keys>,
    settings: &Settings,
    carriers: &Carriers,
    logged_in: &mut dyn FnMut(),
) -> Result<Link, String> {
    let push = settings.push.as_deref();
    let how = ssh::AgentStart { push, exec: settings.exec, timeout: settings.timeout };
    let (stream, carrier) = match address {
        Address::Ssh(target) => ssh::start(target, how, carriers, logged_in)?,
        Address::Rank { places, .. } if places.is_empty() => ssh::start_here(how, carriers)?,
        address => {
            let mut connection = Connection::reach(address, keys, settings.timeout)?;
            let hello = meet(&mut connection, settings)?;
            return Ok(Link { connection, hello, carrier: None });
        }
    };
    let connection = Connection::carried(stream);
    connection.set_deadline(Some(Instant::now() + settings.timeout));
    let met = connection.clone().greeted().and_then(|mut connection| meet(&mut connection, settings));
    match met {
        Ok(hello) => Ok(Link { connection, hello, carrier: Some(carrier) }),
        Err(why) => {
            connection.end();
            let is_other = matches!(address, Address::Ssh(_)) && why.ends_with(SAME_VERSION);
            let remedy = match push {
                _ if !is_other => "",
                None => "; --push sends this one along",
                Some(_) => "; --push has sent another version",
            };
            Err(carrier.explain(&format!("{why}{remedy}")))
        }
    }
}

/// Checks that the other end is the same version of this program; returns its introduction.
fn meet(connection: &mut Connection, settings: &Settings) -> Result<Hello, String> {
    let machine = machine_name();
    let hello = Hello { program: settings.program.to_owned(), machine, pid: std::process::id() };
    frame::write(connection, &ToAgent::Hello(hello)).map_err(|error| error.to_string())?;
    match frame::read(connection) {
        Ok(FromAgent::Hello(hello)) => {
            let hello = hello.shortened();
            hello.check(settings.program)?;
            connection.set_deadline(None);
            connection.set_patience(settings.timeout);
            Ok(hello)
        }
        Ok(_) => Err("it does not say who it is".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
