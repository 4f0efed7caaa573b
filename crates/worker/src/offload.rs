//! `io_submit_mode=offload`: the worker makes I/Os, and a pool of threads submits them, each with its own engine.
//!
//! The loop sees one more engine that queues. The pool has as many submitters as the job's depth, so an I/O never waits
//! for a submitter. It does wait for the wake-up and for a processor. That is part of its latency, which counts from
//! the moment it was made. Each submitter has a queue that only the worker fills. Submitters keep no I/O statistics:
//! they send the outcome with the times of issue and completion to the worker, which alone counts.

use super::usage::{self, SharedUsage};
use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued,
    Requests, Storage, Unit,
};
use iolite_engine_local::PsyncEngine;
use iolite_engines::{Visitor, stack_of, storage_of};
use iolite_os::clock::Clock;
use iolite_os::process;
use iolite_os::shared::Control;
use iolite_os::signals;
use iolite_plan::resolve::Data;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a wait for completions checks whether the job has to stop.
const LOOK: Duration = Duration::from_millis(50);

/// How long to wait for the remarks of a submitter, which may clean up first.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a submitter without orders keeps its engine alive, if the engine wants that.
const PULSE: Duration = Duration::from_secs(1);

/// A message from the worker to a submitter.
enum Order {
    End,
    Open(u32, FileSpec, OpenMode),
    Close(u32),
    Prepare(Borrowed<BufferLayout>),
    Perform(Borrowed<*const Unit>),
}

/// A message from a submitter to the worker.
enum Answer {
    /// The submitter's engine has been built, or prepared.
    Ready(Result<(), EngineError>),
    /// The file is open, or closed.
    Filed(io::Result<()>),
    /// A unit is complete.
    Performed(Performed),
    /// The engine's remarks at the end, and its counts of requests.
    Told(Vec<String>, Requests),
    /// The submitter has panicked and is gone.
    Lost,
}

/// A completed unit.
struct Performed {
    submitter: u32,
    unit: u32,
    outcome: Outcome,
    times: Times,
    /// The device's or the server's own words about a failure.
    words: Option<String>,
}

/// When a unit was issued and completed, in nanoseconds of the clock.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    issue: u64,
    complete: u64,
    first_byte: Option<u64>,
    visible: Option<u64>,
}

/// A value that points into the worker's memory.
struct Borrowed<T>(T);

// SAFETY: the worker neither moves nor uses a unit or its buffer until the answer has come back or the submitters have
// been joined (see `Engine::queue` and the `Drop` below).
unsafe impl<T> Send for Borrowed<T> {}

struct Submitter {
    orders: SyncSender<Order>,
    thread: JoinHandle<()>,
    /// The thread's id in the system.
    id: Arc<AtomicI32>,
}

/// The pool of submitters, as an engine.
pub struct Offload<'a> {
    submitters: Vec<Submitter>,
    answers: Receiver<(u32, Answer)>,
    /// Submitters that have nothing to do.
    idle: Vec<u32>,
    /// Units that are queued but not yet handed to a submitter.
    queued: Vec<*const Unit>,
    in_flight: usize,
    /// Units that completed while the worker waited for another kind of answer.
    early: Vec<Performed>,
    times: Vec<Times>,
    /// The explanation of the last failure of each unit that failed.
    words: HashMap<u32, String>,
    /// The engines' remarks at the end.
    remarks: Vec<String>,
    requests: Requests,
    /// Asks the submitters not to repeat requests any more: see [`Work::reap_one`].
    stops: Arc<AtomicBool>,
    /// The worker's own descriptors, for advice and syncs; `None` if the engine has no local files.
    files: Option<PsyncEngine>,
    /// The worker's own connection to the engine's storage.
    storage: Option<Box<dyn Storage>>,
    control: &'a Control,
}

impl<'a> Offload<'a> {
    /// A pool with as many submitters as the configuration's depth. `times_sending`: units are issued before
    /// the engine sends them. `is_ending` tells whether the job was asked to end: the submitters' engines look for it while
    /// they wait.
    ///
    /// # Errors
    /// An engine cannot be built, or a thread cannot be started.
    pub fn new(
        name: &str,
        config: &EngineConfig,
        data: Data,
        times_sending: bool,
        clock: Clock,
        control: &'a Control,
        is_ending: &(impl Fn() -> bool + Clone + Send + 'static),
    ) -> Result<Self, EngineError> {
        let depth = config.depth;
        // A submitter has at most one answer pending, so sending never blocks.
        let (answer, answers) = sync_channel(2 * depth);
        let usage: Arc<[SharedUsage]> = (0..depth).map(|_| SharedUsage::default()).collect();
        let own = EngineConfig { depth: 1, defer_submission: false, ..config.clone() };
        let mut pool = Offload {
            submitters: Vec::with_capacity(depth),
            answers,
            idle: (0..depth as u32).rev().collect(),
            queued: Vec::with_capacity(depth),
            in_flight: 0,
            early: Vec::with_capacity(depth),
            times: Vec::new(),
            words: HashMap::new(),
            remarks: Vec::new(),
            requests: Requests::default(),
            stops: Arc::new(AtomicBool::new(false)),
            files: if data == Data::LocalFiles { Some(PsyncEngine::new(config)?) } else { None },
            storage: if data == Data::OwnStorage { Some(storage_of(name, &own)?) } else { None },
            control,
        };
        for number in 0..depth as u32 {
            let (orders, theirs) = sync_channel(1);
            let id = Arc::new(AtomicI32::new(0));
            let work = Work {
                number,
                orders: theirs,
                answer: answer.clone(),
                times_sending,
                clock,
                usage: usage.clone(),
                id: id.clone(),
                stops: pool.stops.clone(),
            };
            let (engine, own, is_ending) = (name.to_owned(), own.clone(), is_ending.clone());
            let thread = std::thread::Builder::new()
                .name(format!("submit-{number}"))
                .stack_size(stack_of(name))
                .spawn(move || {
                    iolite_engine::stop_when(is_ending);
                    work.run(&engine, &own);
                })
                .map_err(|source| EngineError::System {
                    engine: "io_submit_mode=offload",
                    call: "clone",
                    source,
                })?;
            pool.submitters.push(Submitter { orders, thread, id });
        }
        drop(answer);
        pool.all_ready()?;
        usage::count_also(usage);
        Ok(pool)
    }

    /// Waits until every submitter is ready.
    fn all_ready(&self) -> Result<(), EngineError> {
        let mut result = Ok(());
        for _ in &self.submitters {
            let answer = match self.answers.recv() {
                Ok((_, Answer::Ready(answer))) => answer,
                _ => Err(lost_engine()),
            };
            result = result.and(answer);
        }
        result
    }

    /// Sends every submitter the same order about a file. Units in flight on other files may complete meanwhile.
    fn tell_all(&mut self, order: impl Fn() -> Order) -> io::Result<()> {
        for submitter in &self.submitters {
            submitter.orders.send(order()).map_err(|_| io::Error::from(lost()))?;
        }
        let mut result = Ok(());
        let mut awaited = self.submitters.len();
        while awaited > 0 {
            match self.answers.recv() {
                Ok((_, Answer::Filed(answer))) => {
                    result = result.and(answer);
                    awaited -= 1;
                }
                Ok((_, Answer::Performed(performed))) => self.early.push(performed),
                _ => return Err(lost().into()),
            }
        }
        result
    }

    /// Waits for the next answer, at most until `until` and at most for [`LOOK`]; `None` = none came. Interrupts the
    /// submitters if the job has to stop: one that waits for the other end of a pipe would wait for ever.
    fn wait(&self, until: Option<Instant>) -> Result<Option<Answer>, Errno> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        match self.answers.recv_timeout(left.map_or(LOOK, |left| left.min(LOOK))) {
            Ok((_, answer)) => Ok(Some(answer)),
            Err(RecvTimeoutError::Disconnected) => Err(lost()),
            Err(RecvTimeoutError::Timeout) => {
                if self.control.terminating() {
                    self.stops.store(true, Relaxed);
                    let ids = self.submitters.iter().map(|submitter| submitter.id.load(Relaxed));
                    ids.filter(|&id| id > 0).for_each(signals::interrupt_thread);
                }
                Ok(None)
            }
        }
    }

    fn take(&mut self, performed: Performed, done: &mut Vec<Completion>) {
        self.in_flight -= 1;
        self.idle.push(performed.submitter);
        self.times[performed.unit as usize] = performed.times;
        match performed.words {
            Some(words) => drop(self.words.insert(performed.unit, words)),
            // Drop the explanation of an earlier failure, which does not belong to this one.
            None if performed.outcome.is_err() => drop(self.words.remove(&performed.unit)),
            None => {}
        }
        done.push(Completion { unit: performed.unit, outcome: performed.outcome });
    }
}

/// A submitter ended without being asked.
fn lost() -> Errno {
    Errno(libc::EFAULT)
}

fn lost_engine() -> EngineError {
    EngineError::System { engine: "offload", call: "submitting thread", source: lost().into() }
}

impl Engine for Offload<'_> {
    const SYNCHRONOUS: bool = false;
    const STAMPS: bool = true;
    const REQUESTS: bool = true;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        if let Some(files) = &mut self.files {
            files.open(index, spec, mode)?;
        }
        self.tell_all(|| Order::Open(index, spec.clone(), mode))
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        let closed = self.tell_all(|| Order::Close(index));
        let own = self.files.as_mut().map_or(Ok(()), |files| files.close(index));
        closed.and(own)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files.as_ref().and_then(|files| files.descriptor(index))
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        match &mut self.storage {
            Some(storage) => Some(&mut **storage),
            None => None,
        }
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.times = vec![Times::default(); layout.count];
        for submitter in &self.submitters {
            let order = Order::Prepare(Borrowed(*layout));
            submitter.orders.send(order).map_err(|_| lost_engine())?;
        }
        self.all_ready()
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        if self.queued.len() + self.in_flight >= self.submitters.len() {
            return Queued::Busy;
        }
        self.queued.push(unit);
        Queued::Queued
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        let count = self.queued.len();
        for unit in self.queued.drain(..) {
            let Some(submitter) = self.idle.pop() else { unreachable!("there is a submitter for each unit") };
            let orders = &self.submitters[submitter as usize].orders;
            orders.send(Order::Perform(Borrowed(unit))).map_err(|_| lost())?;
            self.in_flight += 1;
        }
        Ok(count)
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let mut count = 0;
        while count < max
            && let Some(performed) = self.early.pop()
        {
            self.take(performed, done);
            count += 1;
        }
        while count < max && self.in_flight > 0 {
            let answer = match self.answers.try_recv() {
                Ok((_, answer)) => Some(answer),
                Err(TryRecvError::Disconnected) => return Err(lost()),
                Err(TryRecvError::Empty) if count >= min => return Ok(()),
                Err(TryRecvError::Empty) => self.wait(until)?,
            };
            match answer {
                Some(Answer::Performed(performed)) => {
                    self.take(performed, done);
                    count += 1;
                }
                Some(_) => return Err(lost()),
                None if until.is_some_and(|until| Instant::now() >= until) => return Ok(()),
                None => {}
            }
        }
        Ok(())
    }

    fn times(&self, unit: u32) -> (u64, u64) {
        let times = self.times[unit as usize];
        (times.issue, times.complete)
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.words.get(&unit).cloned()
    }

    fn first_byte(&self, unit: u32) -> Option<u64> {
        self.times[unit as usize].first_byte
    }

    fn visible(&self, unit: u32) -> Option<u64> {
        self.times[unit as usize].visible
    }

    fn requests(&self) -> Requests {
        self.requests
    }

    /// Collects the remarks of all submitters, each line once.
    fn remarks(&mut self) -> Vec<String> {
        let asked = self.submitters.iter().filter(|submitter| submitter.orders.send(Order::End).is_ok());
        let mut awaited = asked.count();
        while awaited > 0 {
            let Ok((_, answer)) = self.answers.recv_timeout(PATIENCE) else { break };
            let (lines, requests) = match answer {
                Answer::Told(lines, requests) => (lines, requests),
                Answer::Lost => {
                    awaited -= 1;
                    continue;
                }
                // (Units that are no longer awaited may complete.)
                _ => continue,
            };
            awaited -= 1;
            for line in lines {
                if !self.remarks.contains(&line) {
                    self.remarks.push(line);
                }
            }
            self.requests.repeated += requests.repeated;
            self.requests.throttled += requests.throttled;
        }
        std::mem::take(&mut self.remarks)
    }
}

impl Drop for Offload<'_> {
    /// Returns when the last submitter has ended, so that none of them touches a buffer any more.
    fn drop(&mut self) {
        for Submitter { orders, thread, .. } in self.submitters.drain(..) {
            drop(orders);
            // A submitter that panicked has already reported that.
            let _ = thread.join();
        }
    }
}

/// The submitter's side.
struct Work {
    number: u32,
    orders: Receiver<Order>,
    answer: SyncSender<(u32, Answer)>,
    times_sending: bool,
    clock: Clock,
    usage: Arc<[SharedUsage]>,
    id: Arc<AtomicI32>,
    stops: Arc<AtomicBool>,
}

impl Work {
    fn run(self, name: &str, config: &EngineConfig) {
        self.id.store(process::thread_id(), Relaxed);
        let (number, answer, id) = (self.number, self.answer.clone(), self.id.clone());
        let worked = catch_unwind(AssertUnwindSafe(|| iolite_engines::build(name, config, self)));
        id.store(0, Relaxed);
        // Sending the answer fails only if the pool is gone.
        let _ = match worked {
            Ok(Ok(())) => return,
            Ok(Err(error)) => answer.send((number, Answer::Ready(Err(error)))),
            Err(_) => answer.send((number, Answer::Lost)),
        };
    }

    fn perform<E: Engine>(&self, engine: &mut E, unit: &Unit, done: &mut Vec<Completion>) -> Performed {
        let mut issue = self.clock.now();
        let outcome = loop {
            // SAFETY: the worker guarantees it for this unit, and does not touch the unit until it receives the answer.
            match unsafe { engine.queue(unit) } {
                Queued::Completed(outcome) => break outcome,
                Queued::Over => unreachable!("connections are not handed over"),
                Queued::Queued => {
                    let committed = engine.commit();
                    if !self.times_sending {
                        issue = self.clock.now();
                    }
                    break committed.and_then(|_| self.reap_one(engine, done));
                }
                Queued::Busy => {
                    if let Err(errno) = engine.commit() {
                        break Err(errno);
                    }
                }
            }
        };
        let first_byte = if E::REQUESTS { engine.first_byte(unit.index) } else { None };
        let visible = if E::REQUESTS { engine.visible(unit.index) } else { None };
        let times = Times { issue, complete: self.clock.now(), first_byte, visible };
        let words = if outcome.is_err() { engine.explain(unit.index) } else { None };
        Performed { submitter: self.number, unit: unit.index, outcome, times, words }
    }

    /// Waits for the only unit in flight.
    fn reap_one<E: Engine>(&self, engine: &mut E, done: &mut Vec<Completion>) -> Outcome {
        loop {
            engine.reap(1, 1, None, done)?;
            if let Some(completion) = done.pop() {
                return completion.outcome;
            }
            if self.stops.load(Relaxed) {
                engine.stop_repeating();
            }
        }
    }
}

impl Visitor for Work {
    type Out = ();

    fn visit<E: Engine + 'static>(self, mut engine: E) {
        /// How often a submitter publishes the resources that it has used.
        const USAGE_NS: u64 = 1_000_000;
        let mut done = Vec::with_capacity(1);
        let mut measured = 0;
        if self.answer.send((self.number, Answer::Ready(Ok(())))).is_err() {
            return;
        }
        // (A submitter may have no orders for long, even while the job is busy.)
        let has_pulse = engine.keep_alive();
        loop {
            let order = match has_pulse {
                true => self.orders.recv_timeout(PULSE),
                false => self.orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let order = match order {
                Ok(order) => order,
                Err(RecvTimeoutError::Timeout) => {
                    engine.keep_alive();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let answer = match order {
                Order::Open(index, spec, mode) => Answer::Filed(engine.open(index, &spec, mode)),
                Order::Close(index) => Answer::Filed(engine.close(index)),
                Order::End => {
                    let lines = engine.remarks();
                    Answer::Told(lines, engine.requests())
                }
                Order::Prepare(Borrowed(layout)) => Answer::Ready(engine.prepare(&layout)),
                Order::Perform(Borrowed(unit)) => {
                    // SAFETY: the worker does not move its units, and does not touch this one until it receives the
                    // answer.
                    let performed = self.perform(&mut engine, unsafe { &*unit }, &mut done);
                    if performed.times.complete - measured >= USAGE_NS {
                        measured = performed.times.complete;
                        self.usage[self.number as usize].publish();
                    }
                    Answer::Performed(performed)
                }
            };
            if self.answer.send((self.number, answer)).is_err() {
                return;
            }
        }
    }
}
