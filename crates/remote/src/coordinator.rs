//! The coordinator: sends jobs to agents, has all begin at the same moment, and hears what they say.
//!
//! Each agent has a thread that reads what comes from it, and one channel brings everything to the caller's. So an agent
//! that hangs makes nobody wait for longer than the time that it may be silent.

mod step;

use crate::address::Address;
use crate::carrier::{self, Carrier, Carriers};
use crate::connection::Connection;
use crate::frame::{self, FrameError};
use crate::keys::Keys;
use crate::message::{Done, FromAgent, Hello, Refusal, Request, SAME_VERSION, ToAgent, machine_name};
use crate::returned::{FilePart, Keeper};
use crate::ssh;
use iolite_os::time;
use iolite_stats::{Event, EventKind, InStep, Measured, StartSpread, SteadyReport};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use step::{Clock, Gone, Steps};

/// The time between two pings.
const PING: Duration = Duration::from_millis(500);
/// The time between two looks whether a slow disk has taken something.
const SHORT: Duration = Duration::from_millis(5);
/// The time between two looks whether something is asked for.
const LOOK: Duration = Duration::from_millis(50);
/// How often a clock is compared. The round trip that took least says most.
const ROUND_TRIPS: u32 = 32;
/// While a machine waits for others, its clock is compared again after this time: clocks drift by some tens of microseconds
/// in a second.
const DRIFT: Duration = Duration::from_secs(2);
/// From the decision to begin until that moment, besides what messages need.
const MARGIN_NS: u64 = 100_000_000;
/// Memory for the stack of a thread that reads messages.
const STACK: usize = 512 << 10;

/// How a run on several machines is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A machine that is silent for so long is lost.
    pub timeout: Duration,
    /// When a machine is lost, the others are ended.
    pub abort_when_lost: bool,
    /// Agents that ssh starts get this program first.
    pub push: bool,
    /// Agents that ssh starts let jobs run programs, and change settings of the machine.
    pub exec: bool,
    /// Program and version, in one word.
    pub program: &'static str,
}

/// What a machine tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Suspicious input that is accepted.
    Warning(String),
    /// The lines that announce its jobs.
    Begun(String),
    /// Something happened in its run.
    Event(Box<Event>),
    /// Its jobs do not run.
    Refused(Box<Refusal>),
    /// All machines begin their jobs at this moment.
    AllBegin,
    /// A file that its run has left cannot be kept here, or does not come.
    NotKept(String),
    /// So many files that its run has left could not be sent; it has told why.
    Missing(u64),
    /// The command of its trigger has failed.
    Trigger(String),
    /// Its run is over.
    Done(Box<Done>),
    /// Its run was ended by this signal, for which nobody has asked here.
    CutShort(i32, Box<Done>),
    /// It is lost, or its run has died; this says why.
    Lost(String),
}

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
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
    // Behind the connection, because it waits for the end of that.
    carrier: Option<Arc<Carrier>>,
}

/// Why no run begins.
#[derive(Debug)]
pub enum NotReached {
    /// These cannot be reached, each with its number and the reason.
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

/// What the thread of a machine hears.
#[derive(Debug)]
enum Heard {
    Told(Told),
    InStep(InStep),
    /// It waits at this barrier, by this clock; without one, nothing of it does any more.
    Waits(u32, Option<Clock>),
    /// It has begun, so much later than at the moment that it was given.
    Started(u64),
    Measured(Measured),
    /// It has sent what its run has left, but for so many files.
    Sent(u64),
    /// The command of its trigger has ended; what went wrong.
    Triggered(Option<String>),
}

/// Where a machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its run is not over.
    Running,
    /// Its result is here, and what it has left is not.
    Done,
    /// That is here as well.
    Safe,
    /// The command of its trigger runs.
    Triggered,
    /// Nothing comes from it any more.
    Over,
}

/// What machines have done together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Together {
    /// How far apart they began, if they did.
    pub start: Option<StartSpread>,
    /// The steady states that were judged over all of them.
    pub steady: Vec<SteadyReport>,
}

impl Coordinator {
    /// Reaches all agents; those that are reached over TCP have to show that they belong to these keys. Whoever is there
    /// already hears of this machine while others are waited for.
    ///
    /// This starts threads: the process is not to fork any more.
    ///
    /// # Errors
    /// Those that cannot be reached, or the user has asked for the end.
    pub fn reach(
        addresses: &[Address],
        keys: Option<Keys>,
        settings: Settings,
        wish: &mut dyn FnMut() -> Wish,
    ) -> Result<Coordinator, NotReached> {
        let carriers = Arc::new(Carriers::default());
        let reached = reach_all(addresses, keys, settings, &carriers, wish);
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
        // All of them first, and then all are waited for together.
        links.iter().for_each(|link| link.connection.end());
        let carriers: Vec<_> = links.iter().filter_map(|link| link.carrier.clone()).collect();
        carrier::wait_for_all(&carriers, carrier::GRACE);
        Err(NotReached::Failed(failed))
    }

    /// What the machines say of themselves.
    pub fn machines(&self) -> impl Iterator<Item = &Hello> {
        self.links.iter().map(|link| &link.hello)
    }

    /// Has each machine run its jobs, all from the same moment on. Ends when each is done, has refused, or is lost. The machines
    /// have these names in those of the files that their runs leave.
    pub fn run(
        self,
        requests: Vec<Request>,
        tags: &[String],
        tell: &mut dyn FnMut(usize, Told),
        wish: &mut dyn FnMut() -> Wish,
    ) -> Finished {
        let Coordinator { links, settings } = self;
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
        // They are waited for together, when all connections are closed.
        let carriers: Vec<_> = links.iter().filter_map(|link| link.carrier.clone()).collect();
        for (index, ((link, request), tag)) in links.into_iter().zip(requests).zip(tags).enumerate() {
            let keeper = Keeper::new(Path::new(""), tag);
            match listen(
                index,
                link,
                request,
                keeper,
                settings.timeout,
                (sender.clone(), run.is_ended.clone()),
            ) {
                Ok(writer) => run.writers.push(Some(writer)),
                Err(error) => {
                    run.writers.push(None);
                    // The receiver is here.
                    let _ = sender.send((index, Heard::Told(Told::Lost(error.to_string()))));
                }
            }
        }
        drop(sender);
        run.hear_all(&heard, tell, wish);
        Finished { run, heard, carriers }
    }
}

/// Runs that are over on all machines. What they have left is still there.
#[derive(Debug)]
pub struct Finished {
    run: Run,
    heard: Receiver<(usize, Heard)>,
    carriers: Vec<Arc<Carrier>>,
}

impl Finished {
    /// What the machines have done together.
    pub fn together(&self) -> Together {
        Together { start: self.run.spread(), steady: self.run.steps.judged() }
    }

    /// Has the machines send what their runs have left, which is kept in the present directory. It may be gigabytes.
    pub fn gather(&mut self, tell: &mut dyn FnMut(usize, Told)) {
        self.run.send_to_those(State::Done, &ToAgent::Send);
        self.run.hear_while(State::Done, &self.heard, tell);
    }

    /// Has the machines run the command of the trigger. One that is lost meanwhile is what the command may be for.
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
        let patience = if self.run.is_given_up { Duration::ZERO } else { carrier::GRACE };
        carrier::wait_for_all(&self.carriers, patience);
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
    /// All is told: what the connections still say is nothing new.
    is_ended: Arc<AtomicBool>,
    writers: Vec<Option<Writer>>,
}

type Writer = Arc<Mutex<Connection>>;

impl Run {
    fn hear_all(
        &mut self,
        heard: &Receiver<(usize, Heard)>,
        tell: &mut dyn FnMut(usize, Told),
        wish: &mut dyn FnMut() -> Wish,
    ) {
        while self.states.contains(&State::Running) {
            match heard.recv_timeout(LOOK) {
                Ok((index, what)) => self.take(index, what, tell),
                Err(RecvTimeoutError::Timeout) => {}
                // Each thread says last that its machine is over, unless it has failed.
                Err(RecvTimeoutError::Disconnected) => {
                    return self.give_up("nobody listens to it any more: this program has failed", tell);
                }
            }
            match wish() {
                Wish::None => {}
                Wish::Status => self.send_all(&ToAgent::Status),
                Wish::Stop => self.stop(),
                Wish::GiveUp => {
                    self.is_given_up = true;
                    self.give_up("given up: it did not end when it was asked to", tell);
                }
            }
            if self.begin_what_is_ready() {
                tell(0, Told::AllBegin);
            }
        }
    }

    /// Hears those that stand there, until none does any more.
    fn hear_while(
        &mut self,
        state: State,
        heard: &Receiver<(usize, Heard)>,
        tell: &mut dyn FnMut(usize, Told),
    ) {
        while self.states.contains(&state) {
            // Each thread says last that its machine is lost, unless it has failed.
            let Ok((index, what)) = heard.recv() else {
                return self.give_up("nobody listens to it any more: this program has failed", tell);
            };
            self.take(index, what, tell);
        }
    }

    /// Waits for nobody any more.
    fn give_up(&mut self, why: &str, tell: &mut dyn FnMut(usize, Told)) {
        for (index, state) in self.states.iter_mut().enumerate() {
            // What others have left may still come.
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
                // Its result is here.
                if state == State::Done {
                    tell(index, Told::NotKept(format!("what its run has left does not come back: {why}")));
                }
            }
            Heard::InStep(together) => self.steps.announced(index, together),
            Heard::Waits(barrier, clock) => self.steps.waits(index, barrier, clock),
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
                // Where one of them cannot run, nothing runs.
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
                    self.stop();
                }
            }
        }
    }

    /// What it means that a run is over.
    fn judge(&self, done: Box<Done>) -> Told {
        match done.signal {
            Some(signal) if !self.is_stopped => Told::CutShort(signal, done),
            _ => Told::Done(done),
        }
    }

    /// Gives the machines that wait at a barrier the moment at which they go on, once all are there: whether that is the start.
    fn begin_what_is_ready(&mut self) -> bool {
        let mut is_start = false;
        if self.is_stopped {
            return false;
        }
        for begin in self.steps.begin() {
            let longest = begin.machines.iter().map(|(_, clock)| clock.round_trip_ns).max();
            let Some(longest) = longest else { continue };
            self.round_trip_ns = self.round_trip_ns.max(longest);
            let at = time::monotonic_ns() + MARGIN_NS + 2 * longest;
            for (index, clock) in begin.machines {
                self.send(index, &ToAgent::Start { barrier: begin.barrier, at_ns: clock.at(at) });
            }
            is_start |= begin.barrier == 0;
        }
        is_start
    }

    fn end_what_is_steady(&self, (place, machines): &(u32, Vec<usize>)) {
        machines.iter().for_each(|&index| self.send(index, &ToAgent::Steady(*place)));
    }

    fn stop(&mut self) {
        if !std::mem::replace(&mut self.is_stopped, true) {
            self.send_all(&ToAgent::Stop);
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
            // Who cannot be reached is found to be silent by the one who listens.
            let _ = frame::write(&mut *lock(writer), message);
        }
    }

    fn spread(&self) -> Option<StartSpread> {
        let lates = || self.lates.iter().flatten().copied();
        let spread_ns = lates().max()?.saturating_sub(lates().min()?);
        Some(StartSpread { spread_ns, uncertainty_ns: self.round_trip_ns })
    }
}

fn lock(writer: &Writer) -> std::sync::MutexGuard<'_, Connection> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reaches all agents, each in a thread of its own; `None` = the user has asked for the end, and some threads may still wait.
fn reach_all(
    addresses: &[Address],
    keys: Option<Keys>,
    settings: Settings,
    carriers: &Arc<Carriers>,
    wish: &mut dyn FnMut() -> Wish,
) -> Option<Vec<Result<Link, String>>> {
    let keys = keys.map(Arc::new);
    let (sender, arriving) = mpsc::channel();
    for (index, address) in addresses.iter().enumerate() {
        let (address, keys, carriers) = (address.clone(), keys.clone(), carriers.clone());
        let theirs = sender.clone();
        let body = move || {
            // If nobody waits any more, the link ends here.
            let _ = theirs.send((index, reach(&address, keys.as_deref(), settings, &carriers)));
        };
        let started = thread::Builder::new().name("iolite-reach".into()).stack_size(STACK).spawn(body);
        if let Err(error) = started {
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
            // A thread has failed without a word.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if matches!(wish(), Wish::Stop | Wish::GiveUp) {
            return None;
        }
        if pinged.elapsed() >= PING {
            pinged = Instant::now();
            for link in reached.iter_mut().flatten().flatten() {
                // The number is none that clocks are compared with. Who is gone meanwhile is found when it gets its jobs.
                let _ = frame::write(&mut link.connection, &ToAgent::Ping(0));
            }
        }
    }
    Some(reached.into_iter().map(|one| one.unwrap_or_else(|| Err("failed".to_owned()))).collect())
}

/// Reaches one agent.
fn reach(
    address: &Address,
    keys: Option<&Keys>,
    settings: Settings,
    carriers: &Carriers,
) -> Result<Link, String> {
    let wish = ssh::Wish { push: settings.push, exec: settings.exec, timeout: settings.timeout };
    let (stream, carrier) = match address {
        Address::Ssh(target) => ssh::start(target, wish, carriers)?,
        Address::Rank { places, .. } if places.is_empty() => ssh::start_here(wish, carriers)?,
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
            let remedy = if is_other { "; --push sends this one along" } else { "" };
            Err(carrier.explain(&format!("{why}{remedy}")))
        }
    }
}

/// Makes sure that the same version of this program is at the other end: who it is.
fn meet(connection: &mut Connection, settings: Settings) -> Result<Hello, String> {
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

/// Starts the thread that listens to an agent, and sends it its jobs.
fn listen(
    index: usize,
    link: Link,
    request: Request,
    keeper: Keeper,
    timeout: Duration,
    (sender, is_ended): (Sender<(usize, Heard)>, Arc<AtomicBool>),
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
        compared: None,
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

/// Who listens to an agent.
struct Ear {
    index: usize,
    connection: Connection,
    writer: Writer,
    sender: Sender<(usize, Heard)>,
    desk: Desk,
    pings: u64,
    pinged: Instant,
    heard: Instant,
    /// The barriers at which it waits for the moment to go on.
    waits: BTreeSet<u32>,
    /// When its clock was compared for the last of them, if it was.
    compared: Option<Instant>,
}

impl Ear {
    fn tell(&self, heard: Heard) {
        // If nobody wants to know any more, the run is over.
        let _ = self.sender.send((self.index, heard));
    }

    fn send(&self, message: &ToAgent) -> Result<(), String> {
        frame::write(&mut *lock(&self.writer), message)
            .map_err(|error| format!("it cannot be reached: {error}"))
    }

    fn ping(&mut self) -> Result<(), String> {
        self.pings += 1;
        self.send(&ToAgent::Ping(self.pings))
    }

    /// Listens to the end: the last thing that there is to tell. The error says why the agent is lost.
    fn listen(&mut self, request: Request, timeout: Duration) -> Result<Told, String> {
        self.send(&ToAgent::Run(Box::new(request)))?;
        self.heard = Instant::now();
        loop {
            self.stay()?;
            if !self.waits.is_empty() && self.compared.is_none_or(|at| at.elapsed() >= DRIFT) {
                match self.compare_clocks(timeout)? {
                    Ok(clock) => {
                        self.waits.iter().for_each(|&barrier| self.tell(Heard::Waits(barrier, Some(clock))));
                    }
                    Err(last) => return Ok(last),
                }
            }
            if let Some(message) = self.next(timeout)?
                && let Some(last) = self.act(message)?
            {
                return Ok(last);
            }
        }
    }

    /// Tells the agent now and then that somebody is here.
    fn stay(&mut self) -> Result<(), String> {
        if self.pinged.elapsed() >= PING {
            self.pinged = Instant::now();
            self.ping()?;
        }
        Ok(())
    }

    /// Does what a message is for; if nothing comes after it, that is what there is to tell.
    fn act(&mut self, message: FromAgent) -> Result<Option<Told>, String> {
        let told = match message {
            FromAgent::Hello(_) | FromAgent::Pong { .. } => return Ok(None),
            FromAgent::Warning(text) => Told::Warning(text),
            FromAgent::Begun(text) => Told::Begun(text),
            FromAgent::Event(event) => match self.keep_step(event) {
                Some(event) => Told::Event(event),
                None => return Ok(None),
            },
            FromAgent::Busy(who) => {
                let problems = vec![format!("it runs the jobs of another client: {who}")];
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

    /// Has a part of a file written, in a thread of its own: a disk that stands still here is not a client that is gone.
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
                    // Nobody reads what it says meanwhile.
                    self.heard = Instant::now();
                }
                // The thread has failed: that is told at the end.
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            }
        }
        Ok(())
    }

    /// Waits until all is written.
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
                "its files are not kept: this program has failed".to_owned(),
            )));
        }
        Ok(())
    }

    /// Hands on what machines do together; everything else is nothing to keep step by.
    fn keep_step(&mut self, event: Box<Event>) -> Option<Box<Event>> {
        match event.kind {
            EventKind::InStep(together) => self.tell(Heard::InStep(together)),
            EventKind::Ready(barrier) => {
                self.waits.insert(barrier);
                self.compared = None;
            }
            EventKind::Passed(barrier) => {
                self.waits.remove(&barrier);
                self.tell(Heard::Waits(barrier, None));
            }
            EventKind::Started { barrier, late_ns } => {
                self.waits.remove(&barrier);
                // Of later ones, the moment was told in the same way.
                if barrier == 0 {
                    self.tell(Heard::Started(late_ns));
                }
            }
            EventKind::Measured(measured) => self.tell(Heard::Measured(measured)),
            _ => return Some(event),
        }
        None
    }

    /// The next message; `None` = there is none yet.
    fn next(&mut self, timeout: Duration) -> Result<Option<FromAgent>, String> {
        if !self.connection.is_readable_within(LOOK) {
            return match self.heard.elapsed() >= timeout {
                true => Err(format!("it was silent for {timeout:?}")),
                false => Ok(None),
            };
        }
        let message = frame::read(&mut self.connection).map_err(|error| match error {
            FrameError::Closed => "it has closed the connection".to_owned(),
            error => error.to_string(),
        })?;
        self.heard = Instant::now();
        Ok(Some(message))
    }

    /// Compares the agent's clock with that of this machine; or the last thing that there is to tell.
    fn compare_clocks(&mut self, timeout: Duration) -> Result<Result<Clock, Told>, String> {
        let mut best: Option<Clock> = None;
        for _ in 0..ROUND_TRIPS {
            let sent_ns = time::monotonic_ns();
            self.ping()?;
            let awaited = self.pings;
            loop {
                match self.next(timeout)? {
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
        self.compared = Some(Instant::now());
        best.map(Ok).ok_or_else(|| "its clock cannot be compared".to_owned())
    }
}

/// Where the files of a machine are written.
enum Desk {
    /// There was none yet.
    Empty(Keeper),
    /// Parts go this way to the thread that writes them.
    Open(SyncSender<FilePart>, JoinHandle<()>),
    Closed,
}

impl Desk {
    /// How many parts wait at most.
    const ROOM: usize = 4;

    fn open(mut keeper: Keeper, (index, sender): (usize, Sender<(usize, Heard)>)) -> std::io::Result<Desk> {
        let (parts, written) = mpsc::sync_channel::<FilePart>(Desk::ROOM);
        let body = move || {
            for part in written {
                if let Err(why) = keeper.take(&part) {
                    // If nobody wants to know any more, the run is over.
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

    /// Who waits for others has another clock than when it was ready.
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
            compared: None,
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
                let jobs = iolite_options::SentJobs::default();
                let request = Request {
                    jobs,
                    as_fio: false,
                    host: 0,
                    hosts: 1,
                    snapshot_ms: 0,
                    status_ms: 0,
                    series: false,
                };
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
