//! The controller: an event loop that handles exits of workers, messages, signals and timers.

mod bandwidth_log;
mod child_work;
mod ends;
mod gate;
mod in_flight;
mod overdue;
mod samples;
mod snapshots;
mod steady;
mod stopping;
mod watch;
mod waves;

use crate::cgroup::ControlGroups;
use crate::clock::Clock;
use crate::collect::Known;
use crate::disk::Disks;
use crate::idle::IdleMeter;
use crate::locked_memory::LockedMemory;
use crate::message::Message;
use crate::orphans::Orphans;
use crate::shared::Arena;
use crate::signals::Requests;
use crate::spawner::{Answer, Helper, Order, Spawner};
use crate::stages::{StageCollection, StageResults};
use crate::ticker::Ticker;
use crate::{Events, Outcome, RunError, Settings, signals};
pub use bandwidth_log::BANDWIDTH_LOGS;
use bandwidth_log::BandwidthLog;
use child_work::Shared;
use iolite_host::Machine;
use iolite_os::errno_of;
use iolite_os::poll;
use iolite_os::process::{self, ChildEnd};
use iolite_os::signals::SignalQueue;
use iolite_os::socket::Socket;
use iolite_os::time;
use iolite_plan::verification::Rivalries;
use iolite_plan::{Layout, Plan};
use iolite_stats::{Event, EventKind, JobError, Source, Stuck};
use iolite_types::{RunEnd, describe_error};
use iolite_verify::Owners;
use iolite_worker::{UnitTables, ZoneMaps};
use samples::Sampler;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use steady::SteadyGroup;
use stopping::Signs;
use tracing::debug;

use gate::Gate;
pub use gate::StartGate;
use in_flight::Progress;
pub use watch::{Trigger, Watch};

/// How long an interim report waits for workers to publish their resource usage.
const USAGE_PATIENCE: Duration = Duration::from_millis(5);

/// How often workers that were asked to stop are interrupted. Once is not enough: a worker may be just about to block
/// when it is interrupted.
const STOP_PATIENCE_NS: u64 = 100_000_000;

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It finished its job.
    Done,
    /// It had an error.
    Failed,
    /// A signal killed it.
    Killed,
    /// It never began, because the run was asked to end before.
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

/// The controller's knowledge about a worker.
#[derive(Clone, Debug, Default)]
struct Member {
    ordered: bool,
    released: bool,
    end: Option<End>,
    /// Why it was asked to end before its time, if that is an error.
    cut_short: Option<JobError>,
    /// Why this program killed it, if it did.
    doom: Option<JobError>,
    progress: Progress,
    /// An I/O that takes too long keeps it from going on, or from ending.
    is_overdue: bool,
    /// Signs of life after it was asked to stop.
    signs: Signs,
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
    /// The units of all workers.
    units: Arc<UnitTables>,
    clock: Clock,
    origin_ms: u64,
    messages: Socket,
    signals: SignalQueue,
    spawner: Spawner,
    /// Must come after `spawner`, which ends all workers when it is dropped: fields are dropped in order.
    _groups: ControlGroups,
    /// The same holds for this one.
    _orphans: Orphans,
    watch: Watch,
    gate: Gate,
    bandwidth_log: BandwidthLog,
    disks: Disks,
    /// A thread of the thread host keeps the time for all workers.
    keeps_time: bool,
    /// A requested part of the run other than a worker is missing: the run has failed.
    impaired: bool,
    /// Held until the run is over.
    _locked: LockedMemory,
    members: Vec<Member>,
    /// Those that were ordered as threads, and whose ends have not been noticed.
    threads: Vec<usize>,
    idle_meter: Option<IdleMeter>,
    stages: Option<StageCollection>,
    /// The stages of each worker's I/Os, once the run is over.
    stage_results: Option<StageResults>,
    /// The same for reports on the way, as of the last one.
    stages_so_far: Option<StageResults>,
    /// Groups that end when they reach a steady state.
    steady_groups: Vec<SteadyGroup>,
    /// When the time of the run began: with the I/O of the first worker, less its delay. Until that is known, when the
    /// first wave began.
    begun: u64,
    /// A worker's I/O has begun.
    has_begun: bool,
    wave: u32,
    wave_begun: u64,
    /// When workers were last started.
    looked_at: u64,
    signal: Option<i32>,
    requests: Requests,
    /// Processes that hang are abandoned.
    gives_up: bool,
    laid_out: bool,
    /// When the process that lays out files was killed because it hung; 0 = not killed.
    layout_killed: u64,
    spawner_gone: bool,
    /// No process that could send messages is left.
    deaf: bool,
    /// When the status line, a sample for the series, an interim report and a slice are due; `u64::MAX` = never.
    next_eta: u64,
    next_series: u64,
    next_status: u64,
    next_slice: u64,
    /// When to look at what is in flight.
    next_flight_look: u64,
    /// What was stuck then.
    stuck: Option<Stuck>,
    /// When workers that were asked to stop and still run are interrupted; `u64::MAX` = no such workers.
    next_interrupt: u64,
}

impl<'a> Controller<'a> {
    /// Sets up the resources of the run and forks the spawner.
    pub fn start(
        plan: &'a Plan,
        machine: &dyn Machine,
        layouts: Vec<Layout>,
        (rivalries, owners): (Rivalries, Arc<Owners>),
        zones: Arc<ZoneMaps>,
        settings: Settings,
    ) -> Result<Self, RunError> {
        let system = |what| move |error| RunError::System(what, error);
        let clock = Clock::calibrate();
        let now = clock.now();
        debug!(target: "time", "clock: {}", clock.description());
        crate::debug::plan(plan, &layouts);
        let origin_ms = (time::wall_ns() - now) / 1_000_000;
        let arena = Arc::new(Arena::new(plan.workers.len()).map_err(system("no memory for the statistics"))?);
        let depths = plan.workers.iter().map(|worker| plan.job_of(worker).depth);
        let units =
            Arc::new(UnitTables::new(depths).map_err(system("no memory for I/Os in flight (iodepth)"))?);
        let (mine, theirs) = Socket::pair().map_err(system("no socket for messages"))?;
        let signals = signals::queue()?;
        let locked = LockedMemory::of(plan).map_err(system("lockmem"))?;
        let disks = Disks::watch(plan, machine);
        let ticker = Ticker::new(plan, clock).map_err(system("no memory for the clock"))?;
        let idle_meter = settings.idleness.map(|per_cpu| IdleMeter::new(per_cpu, clock)).transpose();
        let idle_meter = idle_meter.map_err(system("--idle-prof"))?;
        let stages = StageCollection::new(plan, &layouts, machine)?;
        let groups = ControlGroups::new(plan).map_err(RunError::Problems)?;
        let shared = Shared {
            plan: plan.clone(),
            layouts: layouts.clone(),
            rivalries,
            owners,
            zones,
            arena: arena.clone(),
            units: units.clone(),
            messages: theirs,
            clock,
            idle_meter: idle_meter.clone(),
            stages: stages.clone(),
            ticker,
            groups: groups.made(),
        };
        let orphans = Orphans::of(plan);
        let spawner = Spawner::start(shared).map_err(system("the spawner cannot be started"))?;
        if ticker.is_some() {
            spawner.order(Order::KeepTime).map_err(system("the clock cannot be started"))?;
        }
        if let Some(meter) = &idle_meter {
            let ready = spawner.order(Order::Help(Helper::Idleness)).and_then(|()| meter.wait_until_ready());
            ready.map_err(system("--idle-prof"))?;
        }
        if let Some(stages) = &stages {
            let ready = spawner.order(Order::Help(Helper::Stages)).and_then(|()| stages.wait_until_ready());
            ready.map_err(system("stages"))?;
        }
        let after = |interval: Option<Duration>| {
            interval.map_or(u64::MAX, |interval| now.saturating_add(interval.as_nanos() as u64))
        };
        Ok(Controller {
            idle_meter,
            stages,
            stage_results: None,
            stages_so_far: None,
            keeps_time: ticker.is_some(),
            impaired: false,
            members: vec![Member::default(); plan.workers.len()],
            threads: Vec::new(),
            steady_groups: SteadyGroup::all(plan, settings.gate.is_some()),
            plan,
            layouts,
            arena,
            units,
            stuck: None,
            clock,
            origin_ms,
            messages: mine,
            signals,
            spawner,
            _groups: groups,
            _orphans: orphans,
            bandwidth_log: BandwidthLog::new(settings.bandwidth_log)?,
            gate: Gate::new(settings.gate.clone(), plan),
            watch: Watch::new(settings.trigger.clone(), settings.status_files.clone()),
            disks,
            _locked: locked,
            begun: now,
            has_begun: false,
            wave: 0,
            wave_begun: now,
            looked_at: now,
            signal: None,
            requests: Requests::none(),
            gives_up: false,
            laid_out: false,
            layout_killed: 0,
            spawner_gone: false,
            deaf: false,
            next_eta: after(settings.eta_interval),
            next_series: after(settings.sample_interval),
            next_status: after(settings.status_interval),
            next_slice: after(settings.slice_interval),
            next_flight_look: now,
            next_interrupt: u64::MAX,
            settings,
        })
    }

    /// Performs the whole run. If an error ends workers early, they are reported with it, and with their measurements
    /// until then.
    pub fn run(mut self, events: &mut Events<'_>) -> Outcome {
        if let Err(error) = self.control(events) {
            let text = format!("the run cannot be controlled: {}", describe_error(&error));
            self.tell(None, EventKind::Trouble(text), events);
            self.spawner.end();
            self.fail_all(&JobError { errno: errno_of(&error), what: "func=control".into() }, events);
        }
        self.idle_meter.iter().for_each(IdleMeter::end);
        self.finish_stages(events);
        self.finish_trigger(events);
        self.log_bandwidth(true, events);
        self.tell_sample(events);
        let mut report = self.report();
        let has_failed = |member: &&Member| {
            member.known.error.is_some() || matches!(member.end, Some(End::Failed | End::Killed))
        };
        let failures = self.members.iter().filter(has_failed).count();
        let failed = self.impaired || self.bandwidth_log.has_failed() || failures > 0;
        report.end = Some(match self.signal {
            Some(signal) => RunEnd::interrupted(format!("ended by {}", signals::name(signal))),
            None if self.watch.has_fired() => RunEnd::by_trigger(),
            None if failed => RunEnd::with_failures(failures),
            None => RunEnd::planned(),
        });
        Outcome { report, failed, failures, signal: self.signal, requests: self.requests }
    }

    fn control(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        let laid_out = self.lay_out(events);
        // Laying out files is not measured.
        self.disks.begin();
        self.begin_time(self.now());
        laid_out?;
        if self.is_over() {
            return Ok(());
        }
        self.idle_meter.iter().for_each(IdleMeter::begin);
        self.hold_ramps();
        self.tell_sample(events);
        self.begin_wave();
        self.watch.begin(self.now());
        while !self.is_over() {
            let opened = self.mind_the_gate(events);
            self.start_what_may_start()?;
            self.tell_starts(&opened, events);
            self.wait()?;
            self.handle(events)?;
            self.interrupt(events)?;
            self.begin_with_the_first();
            self.sample();
            self.watch_steadiness(events);
            self.look_at_flights(events)?;
            self.tell_on_the_way(events);
            self.look_around(events);
            self.log_bandwidth(false, events);
            self.advance();
        }
        Ok(())
    }

    /// Orders the layout of the files, and waits for it.
    fn lay_out(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        self.order(Order::LayOut)?;
        let began = self.now();
        while !self.laid_out && !self.spawner_gone {
            self.wait_until(self.next_interrupt.min(self.next_eta))?;
            self.handle(events)?;
            self.tell_layout(began, events);
            if self.signal.is_none() {
                self.hear_the_gate(events);
            }
            if self.signal.is_some() {
                // Files that are laid out are kept. No worker has run yet.
                self.skip_the_rest();
                self.expect_stops();
            }
            self.interrupt(events)?;
        }
        Ok(())
    }

    /// Waits until the stages of all I/Os are known.
    fn finish_stages(&mut self, events: &mut Events<'_>) {
        /// At the end it only has to join the records of the last few milliseconds, and to write its results.
        const PATIENCE_NS: u64 = 30_000_000_000;
        let Some(stages) = &self.stages else { return };
        stages.end();
        // The last report has those of the end, or none.
        self.stages_so_far = None;
        let until = self.now().saturating_add(PATIENCE_NS);
        while self.stages.is_some()
            && self.stage_results.is_none()
            && !self.spawner_gone
            && self.now() < until
        {
            if self.wait_until(until).and_then(|()| self.handle(events)).is_err() {
                break;
            }
        }
        if self.stages.is_some() && self.stage_results.is_none() {
            self.impaired = true;
            let text = "stages: the process that measures has not finished within 30 s: nothing is reported";
            self.tell(None, EventKind::Trouble(text.to_owned()), events);
        }
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Starts the time of the run: its samples and its log of bandwidth count from here.
    fn begin_time(&mut self, now: u64) {
        self.begun = now;
        if let Some(interval) = self.settings.sample_interval {
            self.next_series = now.saturating_add(interval.as_nanos() as u64);
        }
    }

    /// The time of the run begins where the logs of its first worker begin, so that their windows are the same.
    fn begin_with_the_first(&mut self) {
        if self.has_begun {
            return;
        }
        let starts = self.present().filter_map(|index| {
            let started = self.arena.slot(index).control.started_ns.load(Relaxed);
            (started > 0).then(|| started.saturating_sub(self.plan.workers[index].start_delay_ns))
        });
        if let Some(first) = starts.min() {
            self.has_begun = true;
            self.begin_time(first);
        }
    }

    /// How long the run has lasted. It ends with its last worker, rounded to milliseconds as in logs.
    fn lasted(&self) -> u64 {
        const MILLISECOND: u64 = 1_000_000;
        let now = self.now().saturating_sub(self.begun);
        if !self.has_begun {
            // The first worker may need a while to begin, and it will be the first moment behind its delay.
            let delays = self.present().map(|index| self.plan.workers[index].start_delay_ns);
            return now.min(delays.min().unwrap_or(0));
        }
        let mut last = 0;
        for worker in &self.plan.workers {
            let control = &self.arena.slot(worker.index).control;
            match control.ended_ns.load(Relaxed) {
                0 => return now,
                ended if control.started_ns.load(Relaxed) > 0 => last = last.max(ended),
                _ => {}
            }
        }
        let lasted = (last.saturating_sub(self.begun) + MILLISECOND / 2) / MILLISECOND * MILLISECOND;
        lasted.max(MILLISECOND)
    }

    /// The time until `due`; `None` = forever.
    fn until(&self, due: u64) -> Option<Duration> {
        (due != u64::MAX).then(|| Duration::from_nanos(due.saturating_sub(self.now())))
    }

    /// Sends an order to the spawner. (If it has died, the end of its answers shows that.)
    fn order(&self, order: Order) -> io::Result<()> {
        match self.spawner.order(order) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    fn is_over(&self) -> bool {
        self.members.iter().all(|member| member.end.is_some())
    }

    /// Waits for an event or a timer.
    fn wait(&self) -> io::Result<()> {
        let due = self.due();
        match self.until(due) {
            Some(time) => debug!(target: "helperthread", "waits, at most {time:?}"),
            None => debug!(target: "helperthread", "waits for whatever happens"),
        }
        self.wait_until(due)
    }

    /// When the next timer is due; `u64::MAX` = no timer is set.
    fn due(&self) -> u64 {
        let timers = [
            self.next_start(),
            self.next_of_samples(),
            self.next_look().unwrap_or(u64::MAX),
            self.next_eta,
            self.next_series,
            self.next_status,
            self.next_slice,
            self.next_flight_look,
            self.next_interrupt,
            self.watch.due(),
            self.gate.due(),
            self.bandwidth_log.due().saturating_add(self.begun),
        ];
        timers.into_iter().fold(u64::MAX, u64::min)
    }

    /// When the next worker is due for a sample. (The slot of a killed worker still shows it as running.)
    fn next_of_samples(&self) -> u64 {
        let running = self.present().filter(|&index| self.members[index].end.is_none());
        running.filter_map(|index| self.next_sample(index)).min().unwrap_or(u64::MAX)
    }

    fn wait_until(&self, due: u64) -> io::Result<()> {
        let mut descriptors = vec![self.signals.as_raw_fd()];
        // Sockets whose other ends are gone are always readable.
        descriptors.extend((!self.spawner_gone).then(|| self.spawner.descriptor()));
        descriptors.extend((!self.deaf).then(|| self.messages.as_raw_fd()));
        descriptors.extend(self.gate.descriptor());
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
                Answer::ThreadHost(end) => self.thread_host_ended(end, events),
                Answer::NotStarted(worker, errno) => self.not_started(worker, errno, events),
                Answer::LaidOut(end) => self.layout_ended(end, events),
                Answer::Helper(helper, end) => self.helper_ended(helper, end, events),
            }
        }
        if self.deaf && !self.spawner_gone {
            // No message can arrive any more: not even that a thread has ended.
            self.lose_spawner(events)?;
        }
        Ok(())
    }

    /// Sends this event, which belongs to a worker or to the whole run.
    fn tell(&self, worker: Option<u32>, kind: EventKind, events: &mut Events<'_>) {
        let source = worker.map(|worker| {
            let job = self.plan.job_of(&self.plan.workers[worker as usize]);
            Source { job: job.name.clone(), worker }
        });
        events(Event::new(self.clock.now(), source, kind));
    }

    fn tell_failure(&self, index: usize, error: &JobError, events: &mut Events<'_>) {
        let slot = self.arena.slot(index);
        let (pid, blocks) = (slot.control.id.load(Relaxed), slot.stats.blocks_checked());
        let kind = EventKind::Failed { pid, error: error.clone(), blocks };
        self.tell(Some(index as u32), kind, events);
    }

    fn next_message(&mut self) -> io::Result<Option<Message>> {
        if self.deaf {
            return Ok(None);
        }
        match Message::receive(&self.messages) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.deaf = true;
                Ok(None)
            }
            result => result,
        }
    }

    /// Handles what workers said, and then the ends of those that are threads.
    fn handle_messages(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        let mut over = Vec::new();
        while self.read_messages(events)? || !over.is_empty() {
            for index in over {
                self.ended(index, ChildEnd::Exited(0), events);
            }
            // What these have said last may not have been read.
            over = self.threads_over();
        }
        Ok(())
    }

    /// Threads that have ended since the last time.
    fn threads_over(&mut self) -> Vec<usize> {
        let arena = &self.arena;
        self.threads.extract_if(.., |index| arena.slot(*index).control.is_thread_over()).collect()
    }

    /// Handles all messages that have arrived. Returns whether there were any.
    fn read_messages(&mut self, events: &mut Events<'_>) -> io::Result<bool> {
        let mut any = false;
        while let Some(message) = self.next_message()? {
            any = true;
            match message {
                Message::Look => {}
                Message::Note(worker, text) => self.tell(Some(worker), EventKind::Note(text), events),
                Message::Warning(worker, text) => self.tell(Some(worker), EventKind::Warning(text), events),
                Message::Trouble(worker, text) => self.tell(Some(worker), EventKind::Trouble(text), events),
                Message::Fatal(worker, text) => self.tell(Some(worker), EventKind::Fatal(text), events),
                Message::Tolerated(worker, count, text) => {
                    let count = count.unsigned_abs().into();
                    self.tell(Some(worker), EventKind::Tolerated(text, count), events);
                }
                Message::WrongData(worker, text) => {
                    self.tell(Some(worker), EventKind::WrongData(text), events);
                }
                Message::Failed(worker, errno, what) => {
                    let index = worker as usize;
                    let error = JobError { errno, what: with_limit(errno, what) };
                    self.tell_failure(index, &error, events);
                    self.members[index].known.error.get_or_insert(error);
                }
                Message::WentOn(worker, errno, what) => {
                    self.members[worker as usize].known.went_on.get_or_insert(JobError { errno, what });
                }
            }
        }
        Ok(any)
    }
}

/// Describes a failure, with the limit of file sizes if that is the reason. (Users may expect the signal SIGXFSZ.)
fn with_limit(errno: i32, what: String) -> String {
    match process::file_size_limit() {
        Some(bytes) if errno == libc::EFBIG => {
            format!("{what} (files may have at most {bytes} bytes here: ulimit -f, SIGXFSZ)")
        }
        _ => what,
    }
}
