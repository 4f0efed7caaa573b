//! One worker, from set-up to end, in a separate process or thread.
//!
//! A worker creates its files if it has to ([`creation`]), sets up its engine, buffers and generator, waits at its gate, and runs
//! its passes.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | before the start signal; passes and the end | `set_up.rs`; `passes.rs` |
//! | the loop | `io_loop.rs` (hot), `io_loop/full.rs` (what only the full loop needs), `io_loop/rare.rs`; its state: `flight.rs`, `timing.rs`, `ending.rs` |
//! | what a failed I/O means; explanations of failed direct I/O | `io_loop/errors.rs`; `alignment.rs` |
//! | units and their stamps, where the controller sees them | `in_flight.rs` |
//! | I/Os that take too long | `io_loop/overdue.rs` |
//! | units that act on names or extents, or only work | `io_loop/work.rs` |
//! | units that wait for the other end of a connection | `io_loop/connected.rs` |
//! | latency from the intended start; lifetimes of blocks; time per direction; stamps for stages | `io_loop/intended.rs`; `blocks.rs`; `spans.rs`; `stages.rs` |
//! | reading back what was written | `reading_back.rs`, `io_loop/verify.rs` |
//! | when the next I/O is due: rates and think time | `pace.rs`, `course.rs` |
//! | waiting until then | `io_loop/waiting.rs` |
//! | the search for a depth (`latency_target`) | `depth_search.rs` |
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
mod depth_search;
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
mod passes;
mod placement;
mod priority;
mod ramp;
mod reading_back;
mod record;
mod replay;
mod scheduler;
mod set_up;
#[cfg(test)]
mod short_tests;
mod syncs;
#[cfg(test)]
mod unit_tests;
mod usage;
mod zones;

use files::FileTable;
use full_generator::FullGenerator;
pub use in_flight::{UnitInFlight, UnitTables};
use io_loop::{AnyLoop, IoLoop};
use iolite_engine::completed_later::has_lent_memory;
use iolite_engine::{Engine, EngineConfig};
use iolite_engines::Visitor;
use iolite_os::clock::Clock;
use iolite_os::message::Message;
use iolite_os::process;
use iolite_os::shared::{Arena, Control, Phase, Slot};
use iolite_os::socket::Socket;
use iolite_os::{ClockSource, errno_of};
use iolite_plan::ReplayPlan;
use iolite_plan::resolve::{Data, PassKind, ResolvedWorker};
use iolite_stages::StageArea;
use iolite_types::describe_error;
use iolite_verify::Owners;
use iolite_workload::{AnyGenerator, Generator, ZonedGenerator};
use logs::Logs;
use memory::Buffers;
use offload::Offload;
use replay::Replay;
use set_up::SetUp;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tracing::debug;
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
        Message::Look.send(self.messages);
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
            return self.only_create(logs);
        }
        let config = &self.resolved.engine;
        if self.resolved.offload {
            return self.offload(config, logs);
        }
        iolite_engines::build(&self.resolved.engine_name, config, WithEngine(self, logs))
            .map_err(|error| Stop { errno: error.errno(), what: format!("func=engine_init: {error}") })?
    }

    /// The rest of a job that has only created its files: it ends as any other, with logs, which are empty, and with the
    /// removal of its files (`unlink`).
    #[inline(never)]
    fn only_create(&self, logs: Logs) -> Result<(), Stop> {
        let mut files = FileTable::new(&self.resolved.files, &self.resolved.layout);
        if let Some(recorder) = logs.trace {
            files.record_to(recorder);
        }
        self.wait_for_start(&mut || false);
        files.begin_recording(self.own_clock().now());
        self.enter(Phase::Finishing);
        // One that fails does not keep the others from being done.
        let finished = [self.finish_logs(logs.entries), self.finish_recording(&mut files)];
        let removed = match self.resolved.files.data {
            _ if !self.resolved.passes.unlink => Ok(()),
            Data::OwnStorage => creation::own_storage(&self.resolved.creation)
                .and_then(|mut storage| files.unlink(Some(&mut *storage))),
            Data::LocalFiles | Data::OtherEnd | Data::Nowhere => files.unlink(None),
        };
        let removed = removed.map_err(|error| Stop::new("func=unlink", &error));
        finished.into_iter().chain([removed]).collect()
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
