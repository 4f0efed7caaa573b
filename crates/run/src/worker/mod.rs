//! One worker, from its set-up to its end, in a process or thread of its own.

mod alignment;
mod command;
#[cfg(test)]
mod delay_tests;
mod files;
mod flow;
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
mod rules;
#[cfg(test)]
mod short_tests;
mod syncs;
mod target;
mod telling;
mod usage;
pub(crate) mod verify;

pub use placement::{LockedMemory, cpus_of_node};
pub use usage::{publish as publish_usage, reset as reset_usage};

use crate::cgroup::ControlGroups;
use crate::clock::Clock;
use crate::layout;
use crate::message::Message;
use crate::scheduler;
use crate::shared::{Arena, Control, Phase, Slot};
use crate::sys::{self, Socket};
use files::FileTable;
use flow::Flow;
use io_loop::{BlockLives, ErrorPolicy, Extras, Failure, IntendedStarts, IoLoop, Parts, PassEnd};
use iolite_content::Content;
use iolite_engine::{AccessPattern, BufferLayout, Engine, EngineConfig, Errno, Visitor};
use iolite_logs::Recorder;
use iolite_options::{JobOptions, SubmitMode};
use iolite_os::{ClockSource, errno_of};
use iolite_plan::resolve::{content, workload_spec};
use iolite_plan::{JobPlan, Layout, Plan, ReplayPlan, WorkerPlan};
use iolite_types::Direction;
use iolite_types::describe_error;
use iolite_workload::{AnyGenerator, General, Generator};
use logs::Logs;
use memory::Buffers;
use offload::Offload;
use pace::Pace;
use priority::Priorities;
use ramp::SizedRamp;
use replay::Replay;
use rules::{needs_full_loop, rules, sync_schedule};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use target::LatencyTarget;
use tracing::debug;
use verify::Verification;

/// What a worker is given.
pub struct Worker<'a> {
    /// Its job.
    pub job: &'a JobPlan,
    /// Its own part of the plan.
    pub plan: &'a WorkerPlan,
    /// Its files.
    pub layout: &'a Layout,
    /// Its part of the arena.
    pub slot: &'a Slot,
    /// Everybody's plan, and parts of the arena.
    pub all: (&'a Plan, &'a Arc<Arena>),
    /// To the controller.
    pub messages: &'a Socket,
    /// The clock of the run.
    pub clock: Clock,
    /// The CPU that is not for workers.
    pub reserved_cpu: Option<u32>,
    /// Who writes to the same places.
    pub rivals: &'a verify::Rivals,
}

/// Why a worker could not go on.
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
    /// Does everything. Failures are told to the controller; the exit status says whether there was one.
    pub fn run(&self) -> i32 {
        // What is told from here on belongs to this worker.
        let _worker = tracing::info_span!(target: "job", "worker", number = self.number() + 1).entered();
        self.control().id.store(sys::thread_id(), Relaxed);
        self.enter(Phase::Created);
        let worked = self.set_up_and_work();
        if let Some(command) = &self.options().exec_postrun
            && let Err(stop) = self.run_command(command::When::After, command)
        {
            // The job itself is over, and what it measured stands.
            let what = format!("{}: {}", self.options().name, stop.what);
            Message::Warning(self.number(), what).send(self.messages);
        }
        let status = match worked {
            Ok(()) => 0,
            // The wait of one that is to stop was ended for just that: it is no failure.
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
        self.plan.index as u32
    }

    fn control(&self) -> &Control {
        &self.slot.control
    }

    fn options(&self) -> &JobOptions {
        &self.job.options
    }

    fn enter(&self, phase: Phase) {
        debug!(target: "process", "{}: {}", self.options().name, phase.in_words());
        self.control().set_phase(phase);
        Message::Phase(self.number()).send(self.messages);
    }

    /// The clock that the job asks for.
    fn own_clock(&self) -> Clock {
        use iolite_options::ClockSource as Asked;
        self.clock.chosen(match self.options().clocksource {
            None | Some(Asked::Cpu) => ClockSource::Best,
            Some(Asked::ClockGetTime) => ClockSource::Monotonic,
            Some(Asked::GetTimeOfDay) => ClockSource::TimeOfDay,
        })
    }

    fn stop_requested(&self) -> bool {
        self.control().terminating()
    }

    fn set_up_and_work(&self) -> Result<(), Stop> {
        let options = self.options();
        let logs = self.enter_place()?;
        if options.create_only {
            self.wait_for_start();
            return Ok(());
        }
        let config = self.engine_config();
        if options.io_submit_mode == SubmitMode::Offload {
            return self.offload(&config, logs);
        }
        iolite_engine::build(self.job.engine.name, &config, WithEngine(self, logs))
            .map_err(|error| Stop { errno: error.errno(), what: format!("func=engine_init: {error}") })?
    }

    /// Goes where the job is to run, and does what comes before its I/O. Gives its logs.
    ///
    /// This and others here are never inlined: what they need of the stack is given back before the I/O begins, and what
    /// a thousand threads do not touch is memory saved.
    #[inline(never)]
    fn enter_place(&self) -> Result<Logs, Stop> {
        let options = self.options();
        self.enter(Phase::SettingUp);
        let logs = self.start_logs()?;
        ControlGroups::enter(options).map_err(|error| Stop::new("func=cgroup", &error))?;
        self.set_scheduler()?;
        placement::apply(options, self.plan.index, self.reserved_cpu).map_err(|(option, error)| {
            Stop::new(format!("func={option}"), &placement::remedy(options, option, error))
        })?;
        if let Some(command) = &options.exec_prerun {
            self.run_command(command::When::Before, command)?;
        }
        if !options.create_serialize && !options.verify_only && !verify::loads_state(options) {
            let mut note = |text| Message::Note(self.number(), text).send(self.messages);
            layout::create(self.job, self.layout, self.plan, &mut note, &|| self.stop_requested())
                .map_err(|error| Stop::new("func=layout", &error))?;
        }
        Ok(logs)
    }

    fn engine_config(&self) -> EngineConfig {
        let options = self.options();
        EngineConfig {
            depth: options.iodepth as usize,
            direct: options.direct,
            atomic: options.atomic,
            files: self.layout.files.len(),
            sync_file_range_flags: self.sync_file_range_flags(),
            access: if options.rw.is_random() { AccessPattern::Random } else { AccessPattern::Sequential },
            defer_submission: options.disable_slat && options.disable_clat && !options.logs.any(),
            seed: self.plan.seed,
            ..EngineConfig::new(options.engine.clone(), options.iodepth as usize)
        }
    }

    /// What sync_file_range(2) is asked for. Traces do not say; without flags it would do nothing.
    fn sync_file_range_flags(&self) -> u32 {
        let unsaid = if self.plan.replay.is_some() { libc::SYNC_FILE_RANGE_WRITE } else { 0 };
        self.options().sync_file_range.map_or(unsaid, |range| range.flags)
    }

    /// The other workers whose jobs are like this.
    fn others(&self, are: impl Fn(&JobPlan) -> bool) -> impl Iterator<Item = (&JobPlan, &Control)> {
        let (plan, arena) = self.all;
        let others = plan.workers.iter().filter(move |other| other.index != self.plan.index);
        let others = others.map(move |other| (plan.job_of(other), &arena.slot(other.index).control));
        others.filter(move |(job, _)| are(job))
    }

    /// The workers that this one keeps in step with.
    fn flow(&self) -> Option<Flow<'_>> {
        let options = self.options();
        (options.flow > 0).then(|| {
            let others = self.others(|job| job.options.flow > 0 && job.options.flow_id == options.flow_id);
            let others = others.map(|(job, control)| (control, job.options.flow)).collect();
            Flow::new(self.control(), options.flow, others, options.flow_sleep)
        })
    }

    /// The ramp in bytes, with those who share it.
    fn sized_ramp(&self) -> Option<SizedRamp<'_>> {
        let options = self.options();
        (options.ramp_size > 0).then(|| {
            let others = self.others(|job| {
                let merged = options.group_reporting && job.options.group_reporting;
                merged && job.group == self.job.group && job.options.ramp_size > 0
            });
            let others = others.map(|(_, control)| control).collect();
            SizedRamp::new(options.ramp_size, self.control(), others)
        })
    }

    /// Sets the I/O scheduler of the disks below the files.
    fn set_scheduler(&self) -> Result<(), Stop> {
        let Some(scheduler) = &self.options().ioscheduler else { return Ok(()) };
        for file in &self.layout.files {
            let set = scheduler::set(&file.path, scheduler);
            if !set.map_err(|error| Stop::new("func=ioscheduler", &error))? {
                let words = format!("ioscheduler={scheduler}: {} is on no disk", file.path.display());
                Message::Warning(self.number(), words).send(self.messages);
            }
        }
        Ok(())
    }

    /// Runs a command of the user's, and says where its output is.
    fn run_command(&self, when: command::When, command: &str) -> Result<(), Stop> {
        let name = &self.options().name;
        Message::Note(self.number(), command::note(name, when)).send(self.messages);
        command::run(name, when, command).map_err(|error| Stop::new("func=exec", &error))
    }

    fn wait_for_start(&self) {
        self.enter(Phase::Ready);
        debug!(target: "mutex", "{}: waits at its gate", self.options().name);
        self.control().wait_at_gate();
        debug!(target: "mutex", "{}: the gate is open", self.options().name);
    }

    /// Everything, with a pool of threads that submit. The engine's type is theirs to know.
    #[inline(never)]
    fn offload(&self, config: &EngineConfig, logs: Logs) -> Result<(), Stop> {
        let clock = self.own_clock();
        let engine = self.job.engine;
        let pool = Offload::new(engine.name, config, engine.facets.has_local_files(), clock, self.control())
            .map_err(|error| Stop { errno: error.errno(), what: format!("func=engine_init: {error}") })?;
        if let Some(plan) = &self.plan.replay {
            return self.replay(plan, pool, logs);
        }
        let workload = workload_spec(self.job, self.plan, self.layout);
        let generator = General::new(&workload).map(AnyGenerator::from);
        let generator = generator
            .map_err(|error| Stop { errno: libc::ENOMEM, what: format!("func=workload: {error}") })?;
        self.work::<Offload<'_>, AnyGenerator, true>(pool, generator, &workload, logs)
    }

    /// Everything, with I/O from a trace.
    #[inline(never)]
    fn replay<E: Engine>(&self, plan: &Arc<ReplayPlan>, engine: E, logs: Logs) -> Result<(), Stop> {
        let workload = workload_spec(self.job, self.plan, self.layout);
        let replay = Replay::new(plan, self.options(), self.job.engine.facets.has_local_files());
        self.work::<E, Replay, true>(engine, replay, &workload, logs)
    }

    /// Everything that depends on the engine's type.
    #[inline(never)]
    fn with_engine<E: Engine>(&self, engine: E, logs: Logs) -> Result<(), Stop> {
        let options = self.options();
        debug!(target: "io", "{}: engine {}, depth {}", options.name, self.job.engine.name, options.iodepth);
        if let Some(plan) = &self.plan.replay {
            return self.replay(plan, engine, logs);
        }
        let workload = workload_spec(self.job, self.plan, self.layout);
        let full = needs_full_loop(options, &workload);
        // A pace steers a mix, and a ramp makes I/Os that do not count: only the general generator understands that.
        let generator = if full || options.counts_after_ramp() {
            General::new(&workload).map(AnyGenerator::from)
        } else {
            iolite_workload::new(&workload)
        };
        let generator = generator
            .map_err(|error| Stop { errno: libc::ENOMEM, what: format!("func=workload: {error}") })?;
        if full {
            return self.work::<E, AnyGenerator, true>(engine, generator, &workload, logs);
        }
        generator.visit(WithGenerator { worker: self, engine, workload: &workload })
    }

    /// Everything that does not depend on the type of the engine or the generator, before the files are opened. What is
    /// not compiled for each of them is smaller, and a thread's stack is touched less.
    #[inline(never)]
    fn set_up(&self, workload: &iolite_workload::Spec, logs: Logs) -> Result<SetUp<'_>, Stop> {
        let options = self.options();
        let replay = self.plan.replay.as_deref();
        let mut files =
            FileTable::new(options, self.layout, replay, self.job.engine.facets.has_local_files());
        if let Some(recorder) = logs.trace {
            files.record_to(recorder);
        }
        let largest = Direction::ALL.iter().map(|&direction| workload.block_size[direction].max()).max();
        let largest = largest.unwrap_or(1);
        let mut buffers = Buffers::new(options, largest, options.iodepth as usize)
            .map_err(|error| Stop::new("func=allocate_buffers", &error))?;
        debug!(target: "mem", "{}: {} buffers of {} bytes at {:p}", options.name, buffers.count, buffers.stride, buffers.start);
        let verification = self.verification(workload)?.map(Box::new);
        let stamps = verification.as_ref().is_some_and(|verification| verification.stamps());
        let content = self.fill(&mut buffers).filter(|_| !stamps);
        if options.pre_read {
            self.enter(Phase::PreReading);
            files.pre_read(&|| self.stop_requested()).map_err(|error| Stop::new("func=pre_read", &error))?;
        }
        let parts = Parts {
            rules: rules(options, workload),
            errors: ErrorPolicy::new(options, self.messages, self.number()),
            control: self.control(),
            stats: &self.slot.stats,
            clock: self.own_clock(),
            content,
            extras: self.extras(logs.entries, verification)?,
            priority: options.io_priority().unwrap_or(0),
            files,
            buffers: buffers.start,
            stride: buffers.stride,
        };
        Ok(SetUp { parts, buffers })
    }

    /// What only a full loop uses.
    #[inline(never)]
    fn extras(
        &self,
        log: Option<Recorder>,
        verification: Option<Box<Verification>>,
    ) -> Result<Box<Extras<'_>>, Stop> {
        let options = self.options();
        Ok(Box::new(Extras {
            syncs: sync_schedule(options),
            pace: Pace::new(options, self.plan.seed),
            target: LatencyTarget::new(options),
            intended: options
                .lat_from_intended_start
                .then(|| IntendedStarts::new(options.iodepth.max(1) as usize)),
            blocks: BlockLives::new(options, self.layout, &self.slot.stats.blocks)
                .map_err(|what| Stop { errno: libc::EINVAL, what: format!("func={what}") })?,
            priorities: self.priorities(),
            flow: self.flow(),
            sized_ramp: self.sized_ramp(),
            log,
            verification,
        }))
    }

    #[inline(never)]
    fn work<E: Engine, G: Generator, const FULL: bool>(
        &self,
        mut engine: E,
        generator: G,
        workload: &iolite_workload::Spec,
        logs: Logs,
    ) -> Result<(), Stop> {
        let SetUp { mut parts, buffers } = self.set_up(workload, logs)?;
        self.open(&mut parts.files, &mut engine, workload)?;
        let at_once = BufferLayout {
            start: buffers.start,
            stride: buffers.stride,
            count: buffers.count,
            depth: self.options().iodepth as usize,
            files: parts.files.len(),
        };
        engine
            .prepare(&at_once)
            .map_err(|error| Stop { errno: error.errno(), what: format!("func=engine_prepare: {error}") })?;
        let mut io_loop = IoLoop::<E, G, FULL>::new(engine, generator, parts);
        let worked = self.follow_plan(&mut io_loop, workload);
        // The engine waits for what it may still have in flight, and then the buffers can go.
        drop(io_loop);
        drop(buffers);
        debug!(target: "mem", "{}: buffers given back", self.options().name);
        worked
    }

    /// Waits for the start, does what the job asks for, and puts everything away.
    fn follow_plan<E: Engine, G: Generator, const FULL: bool>(
        &self,
        io_loop: &mut IoLoop<'_, E, G, FULL>,
        workload: &iolite_workload::Spec,
    ) -> Result<(), Stop> {
        let options = self.options();
        self.wait_for_start();
        usage::begin();
        io_loop.start();
        if options.job_start_clock_id > 0 {
            let now = sys::clock_ms(options.job_start_clock_id)
                .map_err(|error| Stop::new("func=job_start_clock_id", &error))?;
            self.control().own_start_ms.store(now, Relaxed);
        }
        Message::Phase(self.number()).send(self.messages);
        let worked = self.loops(io_loop, workload);
        let failure = io_loop.failure.take();
        if io_loop.is_ramping() && failure.is_none() && worked.is_ok() {
            self.warn_of_ramp();
        }
        let trouble = io_loop.trouble.take();
        let names =
            failure.and_then(|failure| failure.attempt).map(|attempt| io_loop.files.name(attempt.file));
        io_loop.finish();
        self.enter(Phase::Finishing);
        let logged = self.finish_logs(io_loop.extras.log.take());
        let closed = self.put_away(io_loop);
        if let Some(verification) = &mut io_loop.extras.verification {
            self.leave_state(verification, failure.is_none() && worked.is_ok());
        }
        match failure {
            Some(Failure { errno: Errno(libc::EINTR), .. }) if self.stop_requested() => {}
            Some(failure) => return Err(self.tell(failure, names, trouble)),
            None => {}
        }
        worked.and(logged).and(closed)
    }

    /// The job was over before counting began.
    fn warn_of_ramp(&self) {
        let options = self.options();
        let ramp = if options.ramp_size > 0 { "ramp_size" } else { "ramp_time" };
        let text = format!("{}: ended within its ramp ({ramp}): what is reported is the ramp", options.name);
        Message::Warning(self.number(), text).send(self.messages);
    }

    /// Draws priorities, where I/Os have different ones, which are then told apart in the statistics.
    fn priorities(&self) -> Option<Priorities> {
        let priorities = Priorities::new(self.options(), self.plan.seed)?;
        for direction in Direction::ALL {
            let live = &self.slot.stats.directions[direction.index()].priorities;
            live.prepare(priorities.possible(direction));
        }
        Some(priorities)
    }

    /// The passes that the job asks for.
    fn loops<E: Engine, G: Generator, const FULL: bool>(
        &self,
        io_loop: &mut IoLoop<E, G, FULL>,
        workload: &iolite_workload::Spec,
    ) -> Result<(), Stop> {
        let options = self.options();
        // A saved state is gone through once: loops and time are those of the run that left it.
        let repeats = !verify::loads_state(options);
        let time_based = options.time_based && repeats;
        let mut left = if repeats { options.loops.max(1) } else { 1 };
        while left > 0 && !io_loop.is_over() {
            io_loop.begin_pass();
            let end = self.pass(io_loop);
            left -= 1;
            let again = left > 0 || time_based;
            if FULL && again {
                io_loop.sync_between_passes();
            }
            if options.end_fsync && (options.rw.writes() || options.rw.trims()) && io_loop.failure.is_none() {
                let before = self.control().phase();
                self.control().set_phase(Phase::Syncing);
                let synced = io_loop.files.sync_all(&io_loop.engine);
                self.control().set_phase(before);
                synced.map_err(|error| Stop::new("func=end_fsync", &error))?;
                if FULL {
                    io_loop.all_flushed();
                }
            }
            io_loop.end_pass();
            let end = if FULL { self.check_pass(io_loop, end, !again)? } else { end };
            if end == PassEnd::Stopped || io_loop.is_over() {
                break;
            }
            if options.unlink_each_loop && again {
                io_loop
                    .files
                    .close_all(&mut io_loop.engine)
                    .map_err(|error| Stop::new("func=close", &error))?;
                io_loop.files.unlink().map_err(|error| Stop::new("func=unlink", &error))?;
                let mut quiet = |_| ();
                layout::create(self.job, self.layout, self.plan, &mut quiet, &|| self.stop_requested())
                    .map_err(|error| Stop::new("func=layout", &error))?;
                self.open(&mut io_loop.files, &mut io_loop.engine, workload)?;
            }
            if again && !options.unlink_each_loop {
                self.renew(io_loop, workload)?;
            }
            if time_based {
                left = left.max(1);
            }
            let same = options.randrepeat && !time_based;
            if again && same {
                io_loop.generator.rewind();
            } else if again {
                io_loop.generator.restart();
            }
            if again && let Some(verification) = &mut io_loop.extras.verification {
                verification.read_back.next_pass(same, || self.stop_requested());
            }
        }
        Ok(())
    }

    /// Between two passes: the files are as if they had not been touched yet, as far as caches are concerned.
    fn renew<E: Engine, G: Generator, const FULL: bool>(
        &self,
        io_loop: &mut IoLoop<E, G, FULL>,
        workload: &iolite_workload::Spec,
    ) -> Result<(), Stop> {
        if self.options().time_based {
            io_loop.files.refresh(&io_loop.engine);
            return Ok(());
        }
        io_loop.files.close_all(&mut io_loop.engine).map_err(|error| Stop::new("func=close", &error))?;
        self.open(&mut io_loop.files, &mut io_loop.engine, workload)
    }

    /// Syncs, closes and removes what is to be synced, closed and removed at the end.
    fn put_away<E: Engine, G: Generator, const FULL: bool>(
        &self,
        io_loop: &mut IoLoop<E, G, FULL>,
    ) -> Result<(), Stop> {
        let options = self.options();
        let mut result = Ok(());
        if options.end_syncfs {
            let synced = io_loop.files.sync_file_systems(&io_loop.engine);
            result = synced.map_err(|error| Stop::new("func=end_syncfs", &error));
        }
        let closed = io_loop.files.close_all(&mut io_loop.engine);
        self.control().open_files.store(0, Relaxed);
        result = result.and(closed.map_err(|error| Stop::new("func=close", &error)));
        let recorded = self.finish_recording(&mut io_loop.files);
        result = result.and(recorded);
        if options.unlink {
            let removed = io_loop.files.unlink();
            result = result.and(removed.map_err(|error| Stop::new("func=unlink", &error)));
        }
        result
    }

    /// Opens the files that are open from the start.
    fn open<E: Engine>(
        &self,
        files: &mut FileTable,
        engine: &mut E,
        workload: &iolite_workload::Spec,
    ) -> Result<(), Stop> {
        if !self.job.engine.facets.has_local_files() {
            // Nothing to open, but something to count: users see the files of such a job as open.
            self.control().open_files.store(files.len() as u32, Relaxed);
        }
        for file in 0..workload.open_files.min(files.len()) as u32 {
            files
                .open(engine, file)
                .map_err(|error| Stop::new(format!("func=open({})", files.name(file)), &error))?;
        }
        if !self.job.engine.facets.has_local_files() {
            // There is nothing to lock either.
            return Ok(());
        }
        if self.plan.replay.is_some() {
            // Its files are locked as they are opened.
            return Ok(());
        }
        files.prepare_locks().map_err(|error| Stop::new("func=lockfile", &error))?;
        self.control().open_files.store(files.open_count(), Relaxed);
        Ok(())
    }

    /// Fills the buffers, and gives what prepares them before each write, if something has to.
    #[inline(never)]
    fn fill(&self, buffers: &mut Buffers) -> Option<Content> {
        let options = self.options();
        if !options.rw.writes() {
            return None;
        }
        let spec = content::spec(options, self.layout, self.plan);
        let mut content = Content::new(&spec);
        if !options.rw.reads() {
            content = content.for_writes_only();
        }
        buffers.iter_mut().for_each(|buffer| content.fill(buffer));
        content.needs_prepare().then_some(content)
    }
}

/// What a worker has prepared before its files are opened.
struct SetUp<'a> {
    parts: Parts<'a>,
    /// What the parts point into.
    buffers: Buffers,
}

/// Continues with an engine of a known type.
struct WithEngine<'a, 'b>(&'a Worker<'b>, Logs);

impl Visitor for WithEngine<'_, '_> {
    type Out = Result<(), Stop>;

    fn visit<E: Engine + 'static>(self, engine: E) -> Self::Out {
        self.0.with_engine(engine, self.1)
    }
}

/// Continues, in the plain loop, with a generator of a known type.
struct WithGenerator<'a, 'b, E> {
    worker: &'a Worker<'b>,
    engine: E,
    workload: &'a iolite_workload::Spec,
}

impl<E: Engine> iolite_workload::Visitor for WithGenerator<'_, '_, E> {
    type Output = Result<(), Stop>;

    fn visit<G: Generator>(self, generator: G) -> Self::Output {
        // A job with logs needs the full loop.
        self.worker.work::<E, G, false>(self.engine, generator, self.workload, Logs::default())
    }
}
