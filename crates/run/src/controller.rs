//! The controller: an event loop that handles exits of workers, messages, signals and timers.

mod bandwidth_log;
mod children;
mod samples;
mod steady;
mod telling;
mod watch;
mod waves;

use crate::cgroup::ControlGroups;
use crate::clock::Clock;
use crate::collect::Known;
use crate::disk::Disks;
use crate::idle::IdleMeter;
use crate::locked_memory::LockedMemory;
use crate::message::Message;
use crate::shared::{Arena, Phase, attention};
use crate::spawner::{Answer, Order, Spawner};
use crate::ticker::Ticker;
use crate::{Events, Outcome, RunError, Settings, signals};
use bandwidth_log::BandwidthLog;
use children::Shared;
use iolite_host::Machine;
use iolite_os::poll;
use iolite_os::process::ChildEnd;
use iolite_os::signals::SignalQueue;
use iolite_os::socket::Socket;
use iolite_os::time;
use iolite_plan::verification::Rivalries;
use iolite_plan::{ExitWhat, Layout, Plan};
use iolite_stats::{Event, EventKind, JobError, Source};
use iolite_verify::Owners;
use samples::Sampler;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use steady::SteadyGroup;
use tracing::debug;
use watch::Watch;

pub use watch::Trigger;

/// How long a report on the way waits for workers to publish their resource usage.
const USAGE_PATIENCE: Duration = Duration::from_millis(5);

/// How often workers that were asked to stop are interrupted. Once is not enough: a worker may be just about to block
/// when it is interrupted.
const STOP_PATIENCE_NS: u64 = 100_000_000;

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By itself.
    Done,
    /// With an error.
    Failed,
    /// By a signal.
    Killed,
    /// It never began, because the run ended before.
    Skipped,
}

impl End {
    /// For a line of `--debug`.
    fn in_words(self) -> &'static str {
        match self {
            End::Done => "is done",
            End::Failed => "has failed",
            End::Killed => "was killed",
            End::Skipped => "never began",
        }
    }
}

/// What the controller knows of a worker.
#[derive(Clone, Debug, Default)]
struct Member {
    ordered: bool,
    released: bool,
    end: Option<End>,
    /// The earliest time to start it, in nanoseconds of the clock.
    not_before: u64,
    sampler: Sampler,
    known: Known,
}

/// The state of a run.
pub struct Controller<'a> {
    plan: &'a Plan,
    layouts: Vec<Layout>,
    settings: Settings,
    arena: Arc<Arena>,
    clock: Clock,
    origin_ms: u64,
    messages: Socket,
    signals: SignalQueue,
    spawner: Spawner,
    /// Must come after `spawner`, which ends all workers when it is dropped: fields are dropped in order.
    _groups: ControlGroups,
    watch: Watch,
    bandwidth_log: BandwidthLog,
    disks: Disks,
    /// A thread of the thread host keeps the time for all workers.
    keeps_time: bool,
    /// That thread has died, which ends the run.
    clock_lost: bool,
    /// Held until the run is over.
    _locked: LockedMemory,
    members: Vec<Member>,
    idle_meter: Option<IdleMeter>,
    /// Groups that end when they reach a steady state.
    steady_groups: Vec<SteadyGroup>,
    /// From when on snapshots count the time.
    created: u64,
    /// When the files were laid out and the first wave began.
    begun: u64,
    wave: u32,
    wave_begun: u64,
    /// When workers were last started.
    looked_at: u64,
    signal: Option<i32>,
    laid_out: bool,
    spawner_gone: bool,
    /// When the status line, a report on the way and a slice are due; `u64::MAX` = never.
    next_eta: u64,
    next_status: u64,
    next_slice: u64,
    /// When workers that were asked to stop and still run are interrupted; `u64::MAX` = there are none.
    next_interrupt: u64,
}

impl<'a> Controller<'a> {
    /// Sets up what the run needs and forks the spawner.
    pub fn start(
        plan: &'a Plan,
        machine: &dyn Machine,
        layouts: Vec<Layout>,
        (rivalries, owners): (Rivalries, Arc<Owners>),
        settings: Settings,
    ) -> Result<Self, RunError> {
        let system = |what| move |error| RunError::System(what, error);
        let clock = Clock::calibrate();
        let now = clock.now();
        debug!(target: "time", "clock: {}", clock.description());
        crate::debug::plan(plan, &layouts);
        let origin_ms = (time::wall_ns() - now) / 1_000_000;
        let arena = Arc::new(Arena::new(plan.workers.len()).map_err(system("no memory for the statistics"))?);
        let (mine, theirs) = Socket::pair().map_err(system("no socket for messages"))?;
        let signals = signals::queue()?;
        let locked = LockedMemory::of(plan).map_err(system("lockmem"))?;
        let disks = Disks::watch(plan, machine);
        let ticker = Ticker::new(plan, clock).map_err(system("no memory for the clock"))?;
        let idle_meter = settings.idleness.map(|per_cpu| IdleMeter::new(per_cpu, clock)).transpose();
        let idle_meter = idle_meter.map_err(system("--idle-prof"))?;
        let groups = ControlGroups::new(plan).map_err(RunError::Problems)?;
        let shared = Shared {
            plan: plan.clone(),
            layouts: layouts.clone(),
            rivalries,
            owners,
            arena: arena.clone(),
            messages: theirs,
            clock,
            idle_meter: idle_meter.clone(),
            ticker,
            groups: groups.made(),
        };
        let spawner = Spawner::start(shared).map_err(system("the spawner cannot be started"))?;
        if ticker.is_some() {
            spawner.order(Order::KeepTime).map_err(system("the clock cannot be started"))?;
        }
        if let Some(meter) = &idle_meter {
            let ready = spawner.order(Order::MeasureIdleness).and_then(|()| meter.wait_until_ready());
            ready.map_err(system("--idle-prof"))?;
        }
        let after = |interval: Option<Duration>| {
            interval.map_or(u64::MAX, |interval| now.saturating_add(interval.as_nanos() as u64))
        };
        Ok(Controller {
            idle_meter,
            keeps_time: ticker.is_some(),
            clock_lost: false,
            members: vec![Member::default(); plan.workers.len()],
            steady_groups: SteadyGroup::all(plan),
            plan,
            layouts,
            arena,
            clock,
            origin_ms,
            messages: mine,
            signals,
            spawner,
            _groups: groups,
            bandwidth_log: BandwidthLog::new(settings.bandwidth_log)?,
            watch: Watch::new(settings.trigger.clone(), settings.status_files.clone()),
            disks,
            _locked: locked,
            begun: now,
            wave: 0,
            wave_begun: now,
            looked_at: now,
            signal: None,
            laid_out: false,
            spawner_gone: false,
            next_eta: after(settings.eta_interval),
            next_status: after(settings.status_interval),
            next_slice: after(settings.slice_interval),
            next_interrupt: u64::MAX,
            settings,
            created: now,
        })
    }

    /// Runs everything to the end.
    pub fn run(mut self, events: &mut Events<'_>) -> Result<Outcome, RunError> {
        let system = |error| RunError::System("the run cannot be controlled", error);
        let goes_on = self.lay_out(events).map_err(system)?;
        // Laying out files is not measured.
        self.disks.begin();
        self.begun = self.now();
        if goes_on {
            self.idle_meter.iter().for_each(IdleMeter::begin);
            self.begin_wave();
            self.watch.begin(self.now());
            while !self.is_over() {
                self.start_what_may_start().map_err(system)?;
                self.wait().map_err(system)?;
                self.handle(events).map_err(system)?;
                self.interrupt().map_err(system)?;
                self.sample();
                self.watch_steadiness();
                self.tell_on_the_way(events);
                self.look_around(events);
                self.log_bandwidth(false, events);
                self.advance();
            }
            self.idle_meter.iter().for_each(IdleMeter::end);
            self.finish_trigger(events);
            self.log_bandwidth(true, events);
        }
        let report = self.report();
        let has_failed = |member: &&Member| {
            member.known.error.is_some() || matches!(member.end, Some(End::Failed | End::Killed))
        };
        let failures = self.members.iter().filter(has_failed).count();
        let failed = self.clock_lost || self.bandwidth_log.has_failed() || failures > 0;
        Ok(Outcome { report, failed, failures, signal: self.signal })
    }

    /// Has the files laid out; false = the run ends here.
    fn lay_out(&mut self, events: &mut Events<'_>) -> io::Result<bool> {
        self.order(Order::LayOut)?;
        loop {
            self.wait_until(self.next_interrupt)?;
            self.handle_signals(events);
            if self.signal.is_some() {
                // Files that are laid out stay. Nothing has run yet.
                self.skip_the_rest();
                self.expect_stops();
            }
            self.handle_messages(events)?;
            match self.answer(events)? {
                Some(Answer::LaidOut(end)) => {
                    self.handle_messages(events)?;
                    self.laid_out = true;
                    if let ChildEnd::Killed(signal) = end {
                        self.end_worker(0, End::Killed, Some(killed(signal)), events);
                        self.skip_the_rest();
                    }
                    // Workers without their files are over. The others run.
                    for index in 0..self.members.len() {
                        if self.members[index].known.error.is_some() && self.members[index].end.is_none() {
                            self.end_worker(index, End::Failed, None, events);
                        }
                    }
                    return Ok(!self.is_over());
                }
                Some(Answer::NotStarted(_, errno)) => return Err(io::Error::from_raw_os_error(errno)),
                _ if self.is_over() && self.spawner_gone => return Ok(false),
                _ => {}
            }
            self.interrupt()?;
        }
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The time until `due`; `None` = forever.
    fn until(&self, due: u64) -> Option<Duration> {
        (due != u64::MAX).then(|| Duration::from_nanos(due.saturating_sub(self.now())))
    }

    /// The spawner's next answer. If the spawner has died, all workers have died with it.
    fn answer(&mut self, events: &mut Events<'_>) -> io::Result<Option<Answer>> {
        match self.spawner.answer() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.handle_messages(events)?;
                self.spawner_gone = true;
                for index in 0..self.members.len() {
                    let member = &self.members[index];
                    match member.end {
                        None if member.ordered => {
                            let error =
                                JobError { errno: libc::ECHILD, what: "func=spawner: it was killed".into() };
                            self.end_worker(index, End::Killed, Some(error), events);
                        }
                        None => self.members[index].end = Some(End::Skipped),
                        Some(_) => {}
                    }
                }
                Ok(None)
            }
            result => result,
        }
    }

    /// Sends an order to the spawner. (If it has died, the end of its answers says so.)
    fn order(&self, order: Order) -> io::Result<()> {
        match self.spawner.order(order) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    fn is_over(&self) -> bool {
        self.members.iter().all(|member| member.end.is_some())
    }

    /// Waits until something happens or a timer is due.
    fn wait(&self) -> io::Result<()> {
        let due = self.due();
        match self.until(due) {
            Some(time) => debug!(target: "helperthread", "waits, at most {time:?}"),
            None => debug!(target: "helperthread", "waits for whatever happens"),
        }
        self.wait_until(due)
    }

    /// When the next timer is due; `u64::MAX` = none is set.
    fn due(&self) -> u64 {
        let timers = [
            self.next_start(),
            self.next_of_samples(),
            self.next_look().unwrap_or(u64::MAX),
            self.next_eta,
            self.next_status,
            self.next_slice,
            self.next_interrupt,
            self.watch.due(),
            self.bandwidth_log.due(),
        ];
        timers.into_iter().fold(u64::MAX, u64::min)
    }

    /// When the next worker is to be sampled. (The slot of a killed worker still says that it runs.)
    fn next_of_samples(&self) -> u64 {
        let running = self.present().filter(|&index| self.members[index].end.is_none());
        running.filter_map(|index| self.next_sample(index)).min().unwrap_or(u64::MAX)
    }

    fn wait_until(&self, due: u64) -> io::Result<()> {
        let descriptors = [self.spawner.descriptor(), self.messages.as_raw_fd(), self.signals.as_raw_fd()];
        poll::wait_readable(&descriptors, self.until(due))
    }

    fn handle(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        self.handle_signals(events);
        // Read a worker's messages before its exit is handled.
        self.handle_messages(events)?;
        while let Some(answer) = self.answer(events)? {
            self.handle_messages(events)?;
            match answer {
                Answer::Process(worker, end) => self.ended(worker as usize, end, events),
                Answer::ThreadHost(end) => {
                    let threads: Vec<usize> = (0..self.members.len())
                        .filter(|&index| {
                            let worker = &self.plan.workers[index];
                            let member = &self.members[index];
                            self.plan.job_of(worker).thread && member.ordered && member.end.is_none()
                        })
                        .collect();
                    threads.into_iter().for_each(|index| self.ended(index, end, events));
                    if self.keeps_time {
                        // The clock of all other workers has stopped.
                        self.clock_lost = true;
                        let text = "the thread that kept the time (gtod_cpu) is gone: the run ends";
                        self.tell(None, EventKind::Trouble(text.to_owned()), events);
                        (0..self.members.len()).for_each(|index| self.terminate(index));
                    }
                }
                Answer::NotStarted(worker, errno) => {
                    let error = JobError { errno, what: "func=fork".into() };
                    self.end_worker(worker as usize, End::Failed, Some(error), events);
                }
                Answer::LaidOut(_) => {}
            }
        }
        Ok(())
    }

    /// Tells that this happened, in a worker or in the run as a whole.
    fn tell(&self, worker: Option<u32>, kind: EventKind, events: &mut Events<'_>) {
        let source = worker.map(|worker| {
            let job = self.plan.job_of(&self.plan.workers[worker as usize]);
            Source { job: job.name.clone(), worker }
        });
        events(Event::new(self.clock.now(), source, kind));
    }

    fn tell_failure(&self, index: usize, error: &JobError, events: &mut Events<'_>) {
        let pid = self.arena.slot(index).control.id.load(Relaxed);
        let kind = EventKind::Failed { pid, error: error.clone() };
        self.tell(Some(index as u32), kind, events);
    }

    fn handle_messages(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        while let Some(message) = Message::receive(&self.messages)? {
            match message {
                Message::Phase(_) => {}
                Message::Note(worker, text) => self.tell(Some(worker), EventKind::Note(text), events),
                Message::Warning(worker, text) => self.tell(Some(worker), EventKind::Warning(text), events),
                Message::Trouble(worker, text) => self.tell(Some(worker), EventKind::Trouble(text), events),
                Message::WrongData(worker, text) => {
                    self.tell(Some(worker), EventKind::WrongData(text), events);
                }
                Message::Failed(worker, errno, what) => {
                    let index = worker as usize;
                    let error = JobError { errno, what };
                    self.tell_failure(index, &error, events);
                    self.members[index].known.error.get_or_insert(error);
                }
                Message::WentOn(worker, errno, what) => {
                    self.members[worker as usize].known.went_on.get_or_insert(JobError { errno, what });
                }
                Message::ThreadOver(worker) => self.ended(worker as usize, ChildEnd::Exited(0), events),
            }
        }
        Ok(())
    }

    /// Handles the end of a worker's process or thread.
    fn ended(&mut self, index: usize, end: ChildEnd, events: &mut Events<'_>) {
        if self.members[index].end.is_some() {
            return;
        }
        let finished = self.arena.slot(index).control.phase() == Phase::Exited;
        match end {
            ChildEnd::Killed(signal) => {
                self.end_worker(index, End::Killed, Some(killed(signal)), events);
            }
            _ if self.members[index].known.error.is_some() => {
                self.end_worker(index, End::Failed, None, events);
            }
            _ if finished => self.end_worker(index, End::Done, None, events),
            ChildEnd::Exited(_) => {
                let error = JobError { errno: libc::EAGAIN, what: "func=start".into() };
                self.end_worker(index, End::Failed, Some(error), events);
            }
        }
    }

    fn end_worker(&mut self, index: usize, end: End, error: Option<JobError>, events: &mut Events<'_>) {
        debug!(target: "process", job = index + 1, "worker {} {}", index + 1, end.in_words());
        let control = &self.arena.slot(index).control;
        // This is set even for a worker that never began, because others read it to see whether to wait.
        if control.ended_ns.load(Relaxed) == 0 {
            control.ended_ns.store(self.clock.now(), Relaxed);
        }
        control.open_files.store(0, Relaxed);
        self.sample_last(index);
        if let Some(error) = error {
            self.tell_failure(index, &error, events);
            self.members[index].known.error.get_or_insert(error);
        }
        self.members[index].end = Some(end);
        let rules = self.plan.job_of(&self.plan.workers[index]).end;
        if let Some(whom) = rules.ended_by(matches!(end, End::Failed | End::Killed)) {
            self.exit_others(index, whom);
        }
    }

    /// Ends other workers with this one (`exitall`).
    fn exit_others(&mut self, index: usize, what: ExitWhat) {
        let group = self.plan.job_of(&self.plan.workers[index]).group;
        for other in 0..self.members.len() {
            let worker = &self.plan.workers[other];
            let concerned = match what {
                ExitWhat::All => true,
                ExitWhat::Stonewall => worker.wave == self.wave,
                ExitWhat::Group => self.plan.job_of(worker).group == group,
            };
            if concerned {
                self.terminate(other);
            }
        }
    }

    /// Asks a worker to finish. A worker that has not begun is skipped.
    fn terminate(&mut self, index: usize) {
        let member = &mut self.members[index];
        if member.end.is_some() {
            return;
        }
        debug!(target: "process", job = index + 1, "worker {} is asked to stop", index + 1);
        if member.ordered {
            self.arena.slot(index).control.ask(attention::TERMINATE);
            self.expect_stops();
        } else {
            member.end = Some(End::Skipped);
        }
    }

    /// Workers have been asked to stop.
    fn expect_stops(&mut self) {
        self.next_interrupt = self.next_interrupt.min(self.now() + STOP_PATIENCE_NS);
    }

    /// Interrupts workers that were asked to stop a while ago and still run.
    fn interrupt(&mut self) -> io::Result<()> {
        if self.now() < self.next_interrupt {
            return Ok(());
        }
        let is_awaited =
            |index: usize| self.members[index].end.is_none() && self.arena.slot(index).control.terminating();
        let laying_out = !self.laid_out;
        if laying_out || (0..self.members.len()).any(is_awaited) {
            self.next_interrupt = self.now() + STOP_PATIENCE_NS;
            return self.order(Order::Interrupt);
        }
        self.next_interrupt = u64::MAX;
        Ok(())
    }

    fn skip_the_rest(&mut self) {
        for index in 0..self.members.len() {
            self.arena.slot(index).control.ask(attention::TERMINATE);
            self.members[index].end.get_or_insert(End::Skipped);
        }
    }

    fn handle_signals(&mut self, events: &mut Events<'_>) {
        while let Some(signal) = self.signals.next() {
            debug!(target: "process", "signal {signal}");
            if signal == libc::SIGUSR1 {
                let report = self.fresh_report();
                self.tell(None, EventKind::Status(Box::new(report)), events);
                continue;
            }
            if self.signal.is_some() {
                // The second signal ends the run at once. What was measured is in the arena and is reported.
                self.spawner.finish();
                for member in &mut self.members {
                    member.end.get_or_insert(End::Killed);
                }
                continue;
            }
            self.tell(None, EventKind::Terminating(signal), events);
            self.signal = Some(signal);
            (0..self.members.len()).for_each(|index| self.terminate(index));
        }
    }
}

fn killed(signal: i32) -> JobError {
    let why = match signal {
        libc::SIGBUS => ": a mapped file became shorter, or its medium failed",
        _ => "",
    };
    JobError { errno: libc::EINTR, what: format!("func=killed by signal {signal}{why}") }
}
