//! One worker, from set-up to end, in a separate process or thread.
//!
//! A worker creates its files if it has to ([`creation`]), sets up its engine, buffers and generator, waits at its gate, and runs
//! its passes.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | the loop | `io_loop.rs` (hot), `io_loop/full.rs` (what only the full loop needs), `io_loop/rare.rs`; its state: `flight.rs`, `timing.rs`, `ending.rs` |
//! | what a failed I/O means; explanations of failed direct I/O | `io_loop/errors.rs`; `alignment.rs` |
//! | units and their stamps, where the controller sees them | `in_flight.rs` |
//! | I/Os that take too long | `io_loop/overdue.rs` |
//! | units that act on names or extents, or only work | `io_loop/work.rs` |
//! | units that wait for the other end of a connection | `io_loop/connected.rs` |
//! | latency from the intended start; lifetimes of blocks; time per direction; stamps for stages | `io_loop/intended.rs`; `blocks.rs`; `spans.rs`; `stages.rs` |
//! | reading back what was written | `reading_back.rs`, `io_loop/verify.rs` |
//! | rates and think time; waiting for the next start; the search for a depth | `pace.rs`, `course.rs`; `io_loop/waiting.rs`; `target.rs` |
//! | periodic syncs: when; of which files | `syncs.rs`; `files/syncing.rs` |
//! | jobs in step (`flow`), ramps in bytes, samples for an accelerator | `flow.rs`, `ramp.rs`, `accelerator.rs` |
//! | replays; zoned jobs, with write pointers that workers share | `replay.rs`, `io_loop/script.rs`; `zones.rs` |
//! | threads that submit (`io_submit_mode=offload`) | `offload.rs` |
//! | CPUs, memory nodes, priorities, control groups | `placement.rs`; of single I/Os: `priority.rs`; I/O schedulers: `scheduler.rs` |
//! | the `cpu` line | `usage.rs` |
//! | `write_iolog` | `record.rs` |

mod accelerator;
mod alignment;
mod command;
mod course;
pub mod creation;
#[cfg(test)]
mod delay_tests;
mod end_messages;
mod files;
mod flow;
mod full_generator;
mod in_flight;
mod io_loop;
mod logs;
mod memory;
mod offload;
mod pace;
mod placement;
mod priority;
mod ramp;
mod reading_back;
mod record;
mod replay;
mod scheduler;
#[cfg(test)]
mod short_tests;
mod syncs;
mod target;
#[cfg(test)]
mod unit_tests;
mod usage;
mod zones;

use accelerator::Reader;
use files::FileTable;
use flow::Flow;
use full_generator::FullGenerator;
pub use in_flight::{UnitInFlight, UnitTables};
use io_loop::{
    AnyLoop, BlockLives, Common, ErrorPolicy, Extras, Failure, IntendedStarts, IoLoop, NO_DATA, Parts,
    PassEnd, Ranges, StageStamps,
};
use iolite_content::Content;
use iolite_engine::completed_later::has_lent_memory;
use iolite_engine::{BufferLayout, Engine, EngineConfig, Errno, Requests, Storage};
use iolite_engines::Visitor;
use iolite_logs::Recorder;
use iolite_os::clock::Clock;
use iolite_os::message::Message;
use iolite_os::process;
use iolite_os::shared::{Arena, Control, Phase, Slot};
use iolite_os::socket::Socket;
use iolite_os::time;
use iolite_os::{ClockSource, errno_of, explained};
use iolite_plan::ReplayPlan;
use iolite_plan::resolve::{Creation, CreationTime, Data, PassKind, PassRules, ResolvedWorker};
use iolite_stages::StageArea;
use iolite_types::{Direction, describe_errno, describe_error, without_error_numbers};
use iolite_verify::{Owners, Verification};
use iolite_workload::{AnyGenerator, Generator, ZonedGenerator};
use logs::Logs;
use memory::Buffers;
use offload::Offload;
use pace::Pace;
use priority::Priorities;
use ramp::SizedRamp;
use replay::Replay;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use syncs::SyncSchedule;
use target::LatencyTarget;
use tracing::debug;
use usage::OfEngine;
pub use zones::ZoneMaps;
use zones::{WorkerZones, zone_use};

/// The input of a worker.
pub struct Worker<'a> {
    /// The worker's job, fully resolved.
    pub resolved: &'a ResolvedWorker,
    /// The trace to replay, if any. It is not part of `resolved`, because it may be open already and is not a plain value.
    pub replay: Option<&'a Arc<ReplayPlan>>,
    /// The memory that all workers of the run share.
    pub arena: &'a Arc<Arena>,
    /// The socket to the controller.
    pub messages: &'a Socket,
    /// The clock of the run.
    pub clock: Clock,
    /// The job that last wrote to each place that workers share.
    pub owners: &'a Arc<Owners>,
    /// The zones that workers share.
    pub zones: &'a Arc<ZoneMaps>,
    /// Where stamps of I/Os go, if stages are measured.
    pub stages: Option<&'a StageArea>,
    /// The units of all workers.
    pub units: &'a Arc<UnitTables>,
}

/// Why a worker has to stop.
struct Stop {
    errno: i32,
    what: String,
}

impl Stop {
    fn new(what: impl Into<String>, error: &io::Error) -> Stop {
        let named = error.raw_os_error().is_none();
        let what = what.into();
        let what = if named { format!("{what}: {}", describe_error(error)) } else { what };
        Stop { errno: errno_of(error), what }
    }
}

impl Worker<'_> {
    /// Does the worker's whole job. Reports a failure to the controller. Returns the exit status: 0, or 1 after a
    /// failure.
    pub fn run(&self) -> i32 {
        // All trace events below belong to this worker.
        let _worker = tracing::info_span!(target: "job", "worker", number = self.number() + 1).entered();
        self.control().id.store(process::thread_id(), Relaxed);
        if let Some(area) = self.stages {
            area.begin(self.resolved.index, process::thread_id());
        }
        iolite_engine::stop_when(self.end_check());
        self.enter(Phase::Created);
        let worked = self.set_up_and_work();
        if let Some(command) = &self.resolved.command_after
            && let Err(stop) = self.run_command(command::When::After, command)
        {
            // The job is over and its results are valid, so this is only a warning.
            let what = format!("{}: {}", self.resolved.name, stop.what);
            Message::Warning(self.number(), what).send(self.messages);
        }
        let status = match worked {
            Ok(()) => 0,
            // Stopping a worker interrupts its system calls. That is not a failure.
            Err(stop) if stop.errno == libc::EINTR && self.stop_requested() => 0,
            Err(stop) => {
                self.control().errno.store(stop.errno, Relaxed);
                Message::Failed(self.number(), stop.errno, stop.what).send(self.messages);
                1
            }
        };
        self.enter(Phase::Exited);
        status
    }

    fn number(&self) -> u32 {
        self.resolved.index as u32
    }

    fn slot(&self) -> &Slot {
        self.arena.slot(self.resolved.index)
    }

    fn control(&self) -> &Control {
        &self.slot().control
    }

    fn enter(&self, phase: Phase) {
        debug!(target: "process", "{}: {}", self.resolved.name, phase.in_words());
        self.control().set_phase(phase);
        Message::Phase(self.number()).send(self.messages);
    }

    /// The clock that the job has chosen.
    fn own_clock(&self) -> Clock {
        use iolite_plan::resolve::ClockSource as Asked;
        self.clock.chosen(match self.resolved.clock {
            None | Some(Asked::Cpu) => ClockSource::Best,
            Some(Asked::ClockGetTime) => ClockSource::Monotonic,
            Some(Asked::GetTimeOfDay) => ClockSource::TimeOfDay,
        })
    }

    fn stop_requested(&self) -> bool {
        self.control().terminating()
    }

    fn set_up_and_work(&self) -> Result<(), Stop> {
        let logs = self.enter_place()?;
        if self.resolved.create_only {
            self.wait_for_start(&mut || false);
            return Ok(());
        }
        let config = &self.resolved.engine;
        if self.resolved.offload {
            return self.offload(config, logs);
        }
        iolite_engines::build(&self.resolved.engine_name, config, WithEngine(self, logs))
            .map_err(|error| Stop { errno: error.errno(), what: format!("func=engine_init: {error}") })?
    }

    /// Starts the logs, applies the job's placement, and prepares the files. Returns the logs.
    ///
    /// Several functions here are never inlined, so that the I/O loop does not run on top of their stack frames. With a
    /// thousand threads, stack pages that stay untouched save memory.
    #[inline(never)]
    fn enter_place(&self) -> Result<Logs, Stop> {
        let ResolvedWorker { name, placement, creation, layout, .. } = self.resolved;
        self.enter(Phase::SettingUp);
        let logs = self.start_logs()?;
        if let Some(entrance) = &placement.control_group {
            placement::enter_control_group(entrance).map_err(|error| Stop::new("func=cgroup", &error))?;
        }
        self.set_scheduler()?;
        placement::apply(placement).map_err(|(option, error)| {
            Stop::new(format!("func={option}"), &placement::remedy(name, option, error))
        })?;
        if let Some(command) = &self.resolved.command_before {
            self.run_command(command::When::Before, command)?;
        }
        if creation.time == CreationTime::ByWorker {
            let mut note = |text| Message::Note(self.number(), text).send(self.messages);
            creation::create(name, creation, layout, &mut note, &|| self.stop_requested())
                .map_err(|error| Stop::new("func=layout", &error))?;
        }
        Ok(logs)
    }

    /// The flow that this worker belongs to.
    fn flow(&self) -> Option<Flow<'_>> {
        let rules = self.resolved.flow.as_ref()?;
        let others = rules.others.iter().map(|&(other, weight)| (&self.arena.slot(other).control, weight));
        Some(Flow::new(self.control(), rules.weight, others.collect(), rules.sleep_ns))
    }

    /// The accelerator that this worker reads for.
    fn accelerator(&self) -> Option<Reader<'_>> {
        let rules = self.resolved.batches.as_ref()?;
        let others = rules.others.iter().map(|&other| &self.arena.slot(other).control);
        let shared = &self.arena.slot(rules.first).control.accelerator;
        let lengths = self.resolved.layout.files.iter().map(|file| file.length);
        Some(Reader::new(rules, shared, self.control(), others.collect(), lengths))
    }

    /// The ramp in bytes, with the workers that share it.
    fn sized_ramp(&self) -> Option<SizedRamp<'_>> {
        let rules = self.resolved.sized_ramp.as_ref()?;
        let others = rules.others.iter().map(|&other| &self.arena.slot(other).control);
        let teller = (self.number(), self.messages);
        Some(SizedRamp::new(rules.bytes, self.control(), others.collect(), teller))
    }

    /// Where the stamps of its I/Os go.
    fn stages(&self) -> Option<StageStamps<'_>> {
        let (rules, area) = (self.resolved.stages?, self.stages?);
        let depth = self.resolved.issue.depth;
        Some(StageStamps::new(area, self.resolved.index, self.own_clock(), rules, depth))
    }

    /// Sets the I/O scheduler of the disks that hold the files.
    fn set_scheduler(&self) -> Result<(), Stop> {
        let Some(scheduler) = &self.resolved.io_scheduler else { return Ok(()) };
        for file in &self.resolved.layout.files {
            let set = scheduler::set(&file.path, scheduler);
            if !set.map_err(|error| Stop::new("func=ioscheduler", &error))? {
                let words = format!("ioscheduler={scheduler}: {} is on no disk", file.path.display());
                Message::Warning(self.number(), words).send(self.messages);
            }
        }
        Ok(())
    }

    /// Runs a command of the user and reports where its output is.
    fn run_command(&self, when: command::When, command: &str) -> Result<(), Stop> {
        let name = &self.resolved.name;
        Message::Note(self.number(), command::note(name, when)).send(self.messages);
        // The command after a job runs even if the run was asked to end.
        let stops = || when == command::When::Before && self.stop_requested();
        let group = &self.control().command_group;
        command::run(name, when, command, group, stops).map_err(|error| Stop::new("func=exec", &error))
    }

    fn wait_for_start(&self, keep_alive: &mut dyn FnMut() -> bool) {
        self.enter(Phase::Ready);
        debug!(target: "mutex", "{}: waits at its gate", self.resolved.name);
        self.control().wait_at_gate(keep_alive);
        debug!(target: "mutex", "{}: the gate is open", self.resolved.name);
    }

    /// A function that tells engines, on any thread of this worker, whether the job was asked to end.
    fn end_check(&self) -> impl Fn() -> bool + Clone + Send + 'static {
        self.arena.end_check(self.resolved.index)
    }

    /// Runs the job with a pool of threads that submit. Only these threads know the engine's type.
    #[inline(never)]
    fn offload(&self, config: &EngineConfig, logs: Logs) -> Result<(), Stop> {
        let clock = self.own_clock();
        let data = self.resolved.files.data;
        let (name, times_sending) = (&self.resolved.engine_name, self.resolved.issue.times_sending);
        let mut pool =
            Offload::new(name, config, data, times_sending, clock, self.control(), &self.end_check())
                .map_err(|error| Stop { errno: error.errno(), what: format!("func=engine_init: {error}") })?;
        let set_up = self.set_up(logs, pool.storage())?;
        let generator = self.special()?.map_or_else(|| self.workload(), Ok)?;
        self.work::<Offload<'_>, FullGenerator, true>(pool, generator, set_up)
    }

    /// The generator of a replay or a zoned job.
    #[inline(never)]
    fn special(&self) -> Result<Option<FullGenerator>, Stop> {
        if let Some(plan) = self.replay {
            let has_files = self.resolved.files.data == Data::LocalFiles;
            return Ok(Some(FullGenerator::Replay(Box::new(Replay::new(
                plan,
                self.resolved.replay_speed,
                has_files,
            )))));
        }
        let Some(rules) = &self.resolved.zones else { return Ok(None) };
        let is_dry = self.resolved.passes.kind == PassKind::Assume;
        let writes = self.resolved.files.mode.write;
        let place = (self.arena, self.resolved.index);
        for text in self.zones.notes_of(self.resolved.index) {
            Message::Note(self.number(), format!("{}: {text}", self.resolved.name)).send(self.messages);
        }
        let zones = WorkerZones::new(self.zones, rules, &self.resolved.layout, is_dry, writes, place)
            .map_err(|error| Stop::new("func=zones", &error))?;
        let generator =
            ZonedGenerator::new(&self.resolved.workload, zone_use(rules), zones).map_err(no_workload)?;
        Ok(Some(FullGenerator::Zoned(Box::new(generator))))
    }

    /// The generator of any other job in the full loop.
    fn workload(&self) -> Result<FullGenerator, Stop> {
        Ok(FullGenerator::Workload(self.general()?))
    }

    /// The generator that supports every workload.
    fn general(&self) -> Result<AnyGenerator, Stop> {
        iolite_workload::general(&self.resolved.workload).map_err(no_workload)
    }

    /// Runs the job with an engine of a known type.
    #[inline(never)]
    fn with_engine<E: Engine + 'static>(&self, mut engine: E, logs: Logs) -> Result<(), Stop> {
        let ResolvedWorker { name, workload, issue, .. } = self.resolved;
        debug!(target: "io", "{name}: engine {}, depth {}", self.resolved.engine_name, issue.depth);
        let set_up = self.set_up(logs, engine.storage())?;
        let special = self.special()?;
        if special.is_some() || set_up.parts.needs_full_loop() {
            let generator = special.map_or_else(|| self.workload(), Ok)?;
            return engine.visit_shared(InFullLoop { worker: self, generator, set_up });
        }
        let generator = if self.resolved.general_workload {
            self.general()?
        } else {
            iolite_workload::new(workload).map_err(no_workload)?
        };
        if E::EACH_GENERATOR {
            generator.visit(WithGenerator { worker: self, engine, set_up })
        } else {
            self.work::<E, AnyGenerator, false>(engine, generator, set_up)
        }
    }

    /// Everything before the files are opened that depends neither on the engine's type nor on the generator's. It is
    /// compiled only once, and its stack frame is gone when the loop runs.
    #[inline(never)]
    fn set_up(&self, logs: Logs, storage: Option<&mut dyn Storage>) -> Result<SetUp<'_>, Stop> {
        let ResolvedWorker { name, layout, workload, issue, .. } = self.resolved;
        let mut files = FileTable::new(&self.resolved.files, layout);
        if let Some(recorder) = logs.trace {
            files.record_to(recorder);
        }
        let mut buffers = Buffers::new(&self.resolved.buffers, storage)
            .map_err(|error| Stop::new("func=allocate_buffers", &error))?;
        debug!(target: "mem", "{name}: {} buffers of {} bytes at {:p}", buffers.count, buffers.stride, buffers.start);
        let verification = self.verification(workload)?.map(Box::new);
        let stamps = verification.as_ref().is_some_and(|verification| verification.stamps());
        let filled = self.make_ready(&mut buffers);
        let has_later = buffers.count > self.resolved.buffers.ready;
        let later_units = filled.as_ref().filter(|_| has_later).cloned();
        let content = filled.filter(|content| !stamps && content.needs_prepare());
        if self.resolved.pre_read {
            self.enter(Phase::PreReading);
            files.pre_read(&|| self.stop_requested()).map_err(|error| Stop::new("func=pre_read", &error))?;
        }
        let direct = self.resolved.engine.direct;
        let parts = Parts {
            rules: *issue,
            errors: ErrorPolicy::new(&self.resolved.errors, direct, self.messages, self.number()),
            control: self.control(),
            stats: &self.slot().stats,
            clock: self.own_clock(),
            content,
            extras: self.extras(logs.entries, verification, later_units)?,
            // SAFETY: a worker has one loop.
            table: unsafe { self.units.table(self.resolved.index) },
            priority: self.resolved.placement.io_priority.unwrap_or(0),
            opens_on_the_way: workload.open_files < files.len(),
            files,
            buffers: buffers.start,
            // The size of a name's file counts as the length of the action. No buffer is that large, and none is
            // needed.
            stride: if self.resolved.layout.named.is_some() { NO_DATA } else { buffers.stride },
            ready: self.resolved.buffers.ready as u32,
        };
        Ok(SetUp { parts, buffers })
    }

    /// Builds the parts that only the full loop uses.
    #[inline(never)]
    fn extras(
        &self,
        log: Option<Recorder>,
        verification: Option<Box<Verification>>,
        later_units: Option<Content>,
    ) -> Result<Box<Extras<'_>>, Stop> {
        let ResolvedWorker { layout, syncs, issue, .. } = self.resolved;
        let lives = |size| BlockLives::new(size, layout, &self.slot().stats.blocks);
        Ok(Box::new(Extras {
            syncs: SyncSchedule::new(syncs, &self.resolved.workload),
            pace: self.resolved.pace.as_ref().map(Pace::new),
            target: self.resolved.target.map(LatencyTarget::new),
            intended: issue.intended_starts.then(|| IntendedStarts::new(issue.depth as usize)),
            blocks: self
                .resolved
                .block_lives
                .map(lives)
                .transpose()
                .map_err(|what| Stop { errno: libc::EINVAL, what: format!("func={what}") })?,
            priorities: self.priorities(),
            ranges: (issue.ranges > 1).then(|| Ranges::new(issue.ranges)),
            flow: self.flow(),
            accelerator: self.accelerator(),
            sized_ramp: self.sized_ramp(),
            stages: self.stages(),
            log,
            verification,
            later_units,
        }))
    }

    #[inline(never)]
    fn work<E: Engine, G: Generator, const FULL: bool>(
        &self,
        mut engine: E,
        generator: G,
        set_up: SetUp<'_>,
    ) -> Result<(), Stop> {
        let SetUp { mut parts, buffers } = set_up;
        self.prepare(&mut engine, &mut parts, &buffers)?;
        let mut io_loop = IoLoop::<E, G, FULL>::new(engine, generator, parts);
        let worked = self.follow_plan(&mut io_loop);
        if io_loop.common().has_given_up() {
            // It would wait for them, and they may still use the buffers.
            std::mem::forget((io_loop, buffers));
            return worked;
        }
        // Dropping the engine waits for the units in flight. Only then may the buffers be freed.
        drop(io_loop);
        self.give_back(buffers);
        worked
    }

    /// Opens the files and prepares the engine.
    fn prepare(
        &self,
        engine: &mut dyn iolite_engine::DynEngine,
        parts: &mut Parts<'_>,
        buffers: &Buffers,
    ) -> Result<(), Stop> {
        self.open(&mut parts.files, engine)?;
        for line in engine.announcements() {
            Message::Note(self.number(), line).send(self.messages);
        }
        let at_once = BufferLayout {
            start: buffers.start,
            stride: buffers.stride,
            count: buffers.count,
            depth: self.resolved.issue.depth as usize,
            files: parts.files.len(),
        };
        engine.prepare(&at_once).map_err(|error| {
            let words = without_error_numbers(&error.to_string());
            Stop { errno: error.errno(), what: format!("func=engine_prepare: {words}") }
        })
    }

    /// Frees the buffers, which nothing uses any longer.
    fn give_back(&self, buffers: Buffers) {
        if has_lent_memory() {
            // (An abandoned library may still use them.)
            std::mem::forget(buffers);
        } else {
            drop(buffers);
            debug!(target: "mem", "{}: buffers given back", self.resolved.name);
        }
    }

    /// Waits for the start signal, runs the job, and cleans up.
    fn follow_plan(&self, io_loop: &mut dyn AnyLoop<'_>) -> Result<(), Stop> {
        let (common, engine) = io_loop.with_engine();
        self.wait_for_start(&mut || engine.keep_alive());
        self.meet(engine)?;
        usage::count_of_engine(match self.resolved.counts_process {
            true => OfEngine::Process,
            false => OfEngine::threads(engine.threads()),
        });
        usage::begin();
        common.start();
        if let Some(clock) = self.resolved.start_clock {
            let now = time::clock_ms(clock).map_err(|error| Stop::new("func=job_start_clock_id", &error))?;
            self.control().own_start_ms.store(now, Relaxed);
        }
        Message::Phase(self.number()).send(self.messages);
        let worked = self.loops(io_loop);
        let (common, engine) = io_loop.with_engine();
        let failure = common.end.failure.take();
        if common.is_ramping() && failure.is_none() && worked.is_ok() {
            self.warn_of_ramp();
        }
        let trouble = common.end.trouble.take();
        let names =
            failure.and_then(|failure| failure.attempt).map(|attempt| common.files.name(attempt.file));
        common.finish();
        self.enter(Phase::Finishing);
        let logged = self.finish_logs(common.extras.log.take());
        let put_away = self.put_away(common, engine);
        let remarks = if common.has_given_up() { Vec::new() } else { engine.remarks() };
        for line in remarks {
            Message::Note(self.number(), line).send(self.messages);
        }
        // If the other end is a job of this run, its report shows what arrived.
        let warnings = if self.resolved.other_ends.is_empty() { engine.warnings() } else { Vec::new() };
        for line in warnings {
            let text = format!("{}: {line}", self.resolved.name);
            Message::Warning(self.number(), text).send(self.messages);
        }
        let requests = engine.requests().since(common.requests_before());
        if let Some(words) = requests.in_words() {
            Message::Note(self.number(), format!("{}: {words}", self.resolved.engine_name))
                .send(self.messages);
        }
        let Requests { repeated, throttled } = requests;
        self.slot().stats.repeated.set(repeated);
        self.slot().stats.throttled.set(throttled);
        if let Some(verification) = &mut common.extras.verification {
            self.leave_state(verification, failure.is_none() && worked.is_ok());
        }
        let failed = match failure {
            Some(Failure { errno: Errno(libc::EINTR), .. }) if self.stop_requested() => None,
            Some(failure) => Some(self.tell(failure, names, trouble)),
            None => None,
        };
        // (Stopping a worker interrupts its system calls. That is not a failure.)
        let is_stopped = |stop: &Stop| stop.errno == libc::EINTR && self.stop_requested();
        let stops = failed.into_iter().chain(worked.err()).chain(logged.err()).chain(put_away);
        let mut stops = stops.filter(|stop| !is_stopped(stop));
        let first = stops.next();
        // A job has one error. Further errors, such as writes that a server may have lost, become warnings.
        for Stop { errno, what } in stops {
            let text = format!("{}: {what} ({})", self.resolved.name, describe_errno(errno));
            Message::Warning(self.number(), text).send(self.messages);
        }
        first.map_or(Ok(()), Err)
    }

    /// Lets the engine meet the other end of its connection.
    fn meet(&self, engine: &mut dyn iolite_engine::DynEngine) -> Result<(), Stop> {
        let others = &self.resolved.other_ends;
        let has_ended = |&other: &usize| self.arena.slot(other).control.phase() == Phase::Exited;
        let mut goes_on = || {
            if self.stop_requested() {
                return Err(io::Error::from_raw_os_error(libc::EINTR));
            }
            if !others.is_empty() && others.iter().all(has_ended) {
                let reset = io::Error::from_raw_os_error(libc::ECONNABORTED);
                let words = "the job at the other end has ended before it came".to_owned();
                return Err(explained(&reset, words));
            }
            Ok(())
        };
        engine.meet(&mut goes_on).map_err(|error| Stop::new("func=connect", &error))
    }

    /// Warns that the job ended before counting began.
    fn warn_of_ramp(&self) {
        let ramp = if self.resolved.sized_ramp.is_some() { "ramp_size" } else { "ramp_time" };
        let name = &self.resolved.name;
        let text = format!("{name}: ended within its ramp ({ramp}): the report is about the ramp");
        Message::Warning(self.number(), text).send(self.messages);
    }

    /// Warns that the job ended before its time, because there was nothing to do.
    fn warn_of_idleness(&self) {
        let name = &self.resolved.name;
        let what = match self.resolved.zones {
            Some(_) => "no zone had anything to read, room to write, or data to trim",
            None => "a pass found nothing to do",
        };
        let text = format!("{name}: ended before its runtime: {what}");
        Message::Warning(self.number(), text).send(self.messages);
    }

    /// The priorities that I/Os draw, if they have different ones. Prepares a statistic for each.
    fn priorities(&self) -> Option<Priorities> {
        let priorities = Priorities::new(self.resolved.priorities.as_ref()?);
        for direction in Direction::ALL {
            let live = &self.slot().stats.directions[direction.index()].priorities;
            live.prepare(priorities.possible(direction));
        }
        Some(priorities)
    }

    /// Runs the passes of the job.
    fn loops(&self, io_loop: &mut dyn AnyLoop<'_>) -> Result<(), Stop> {
        let PassRules { loops, time_based, unlink_each_loop, repeat_choices, kind, .. } =
            self.resolved.passes;
        let mut left = loops;
        while left > 0 && !io_loop.common().is_over() {
            io_loop.common().begin_pass();
            let end = self.pass(io_loop);
            left -= 1;
            // The next pass would have nothing to do either, and would never check the time.
            let was_idle = io_loop.common().was_idle();
            let is_idle = time_based && kind == PassKind::Perform && end == PassEnd::Finished && was_idle;
            let again = (left > 0 || time_based) && !is_idle;
            if again {
                io_loop.sync_between_passes();
            }
            let (common, engine) = io_loop.with_engine();
            if self.resolved.syncs.end_fsync && common.end.failure.is_none() {
                self.sync_all(common, engine)?;
            }
            common.end_pass();
            let end = self.check_pass(io_loop, end, !again)?;
            let (common, engine) = io_loop.with_engine();
            if end == PassEnd::Stopped || common.is_over() {
                break;
            }
            if is_idle {
                self.warn_of_idleness();
                break;
            }
            if again && unlink_each_loop && !common.has_given_up() {
                self.make_anew(common, engine)?;
            } else if again {
                self.renew(common, engine)?;
            }
            if time_based {
                left = left.max(1);
            }
            if again && repeat_choices {
                io_loop.generator().rewind();
            } else if again {
                io_loop.generator().restart();
            }
            if again && let Some(verification) = &mut io_loop.common().extras.verification {
                verification.next_pass(repeat_choices, || self.stop_requested());
            }
        }
        Ok(())
    }

    /// Syncs all files after a pass (`end_fsync`).
    fn sync_all(
        &self,
        common: &mut Common<'_>,
        engine: &mut dyn iolite_engine::DynEngine,
    ) -> Result<(), Stop> {
        let before = self.control().phase();
        self.control().set_phase(Phase::Syncing);
        let synced = common.files.sync_all(engine);
        self.control().set_phase(before);
        synced.map_err(|error| Stop::new("func=end_fsync", &error))?;
        common.all_flushed();
        Ok(())
    }

    /// Between two passes: removes the files and creates them again (`unlink_each_loop`).
    fn make_anew(
        &self,
        common: &mut Common<'_>,
        engine: &mut dyn iolite_engine::DynEngine,
    ) -> Result<(), Stop> {
        let ResolvedWorker { name, creation, layout, .. } = self.resolved;
        common.files.close_all(engine).map_err(|error| Stop::new("func=close", &error))?;
        common.files.unlink(engine).map_err(|error| Stop::new("func=unlink", &error))?;
        let mut quiet = |_| ();
        // (What was just removed may not be free yet.)
        let creation = &Creation { surely_written: None, ..creation.clone() };
        creation::create(name, creation, &layout.removed(), &mut quiet, &|| self.stop_requested())
            .map_err(|error| Stop::new("func=layout", &error))?;
        self.open(&mut common.files, engine)
    }

    /// Between two passes: drops the files' pages from the page cache and, unless they are kept open, reopens the
    /// files.
    fn renew(&self, common: &mut Common<'_>, engine: &mut dyn iolite_engine::DynEngine) -> Result<(), Stop> {
        if self.resolved.passes.keep_open || common.has_given_up() {
            common.files.refresh(engine);
            return Ok(());
        }
        common.files.close_all(engine).map_err(|error| Stop::new("func=close", &error))?;
        self.open(&mut common.files, engine)
    }

    /// Syncs, closes and removes files at the end, as the job says.
    fn put_away(&self, common: &mut Common<'_>, engine: &mut dyn iolite_engine::DynEngine) -> Vec<Stop> {
        let mut stops = Vec::new();
        if self.stop_requested() {
            engine.stop_repeating();
        }
        if common.has_given_up() {
            // Files stay open: I/O on them may still come back.
            return stops;
        }
        if self.resolved.syncs.end_syncfs {
            let synced = common.files.sync_file_systems(engine);
            stops.extend(synced.err().map(|error| Stop::new("func=end_syncfs", &error)));
        }
        let closed = common.files.close_all(engine);
        self.control().open_files.store(0, Relaxed);
        stops.extend(closed.err().map(|error| Stop::new("func=close", &error)));
        stops.extend(self.finish_recording(&mut common.files).err());
        if self.resolved.passes.unlink {
            let removed = common.files.unlink(engine);
            stops.extend(removed.err().map(|error| Stop::new("func=unlink", &error)));
        }
        stops
    }

    /// Opens the files that are open when the job starts.
    fn open(&self, files: &mut FileTable, engine: &mut dyn iolite_engine::DynEngine) -> Result<(), Stop> {
        let has_local_files = self.resolved.files.data == Data::LocalFiles;
        if !has_local_files {
            // The engine opens no files, but users expect the job's files to be counted as open.
            self.control().open_files.store(files.len() as u32, Relaxed);
        }
        for file in 0..self.resolved.workload.open_files.min(files.len()) as u32 {
            files
                .open(engine, file)
                .map_err(|error| Stop::new(format!("func=open({})", files.name(file)), &error))?;
        }
        if !has_local_files {
            // There are no files to lock.
            return Ok(());
        }
        if self.replay.is_some() {
            // A replay locks each file when it opens it.
            return Ok(());
        }
        files.prepare_locks().map_err(|error| Stop::new("func=lockfile", &error))?;
        self.control().open_files.store(files.open_count(), Relaxed);
        Ok(())
    }

    /// Prepares the buffers that are in use from the start: fills them, or touches them, so that no page fault is
    /// measured as a part of an I/O. Returns the content that they are filled with.
    #[inline(never)]
    fn make_ready(&self, buffers: &mut Buffers) -> Option<Content> {
        let first = buffers.iter_mut().take(self.resolved.buffers.ready);
        let Some(spec) = &self.resolved.content else {
            // The content of a file must not change.
            if self.resolved.buffers.file.is_none() {
                first.for_each(memory::touch);
            }
            return None;
        };
        let mut content = Content::new(spec);
        if self.resolved.writes_only {
            content = content.for_writes_only();
        }
        first.for_each(|buffer| content.fill(buffer));
        Some(content)
    }
}

/// Everything that a worker prepares before it opens its files.
struct SetUp<'a> {
    parts: Parts<'a>,
    /// The memory that `parts` points into.
    buffers: Buffers,
}

/// Continues with an engine whose type is known.
struct WithEngine<'a, 'b>(&'a Worker<'b>, Logs);

impl Visitor for WithEngine<'_, '_> {
    type Out = Result<(), Stop>;

    fn visit<E: Engine + 'static>(self, engine: E) -> Self::Out {
        self.0.with_engine(engine, self.1)
    }
}

/// Continues in the full loop. Its jobs do more for each I/O than a call through a pointer costs.
struct InFullLoop<'a, 'b> {
    worker: &'a Worker<'b>,
    generator: FullGenerator,
    set_up: SetUp<'a>,
}

impl Visitor for InFullLoop<'_, '_> {
    type Out = Result<(), Stop>;

    fn visit<E: Engine + 'static>(self, engine: E) -> Self::Out {
        self.worker.work::<E, FullGenerator, true>(engine, self.generator, self.set_up)
    }
}

/// There is not enough memory for the workload.
fn no_workload(error: iolite_workload::Error) -> Stop {
    Stop { errno: libc::ENOMEM, what: format!("func=workload: {error}") }
}

/// Continues in the plain loop with a generator whose type is known.
struct WithGenerator<'a, 'b, E> {
    worker: &'a Worker<'b>,
    engine: E,
    set_up: SetUp<'a>,
}

impl<E: Engine> iolite_workload::Visitor for WithGenerator<'_, '_, E> {
    type Output = Result<(), Stop>;

    fn visit<G: Generator>(self, generator: G) -> Self::Output {
        self.worker.work::<E, G, false>(self.engine, generator, self.set_up)
    }
}
