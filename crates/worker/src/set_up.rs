//! What a worker does before the start signal: its place, its memory, and the parts of its loop.

use crate::accelerator::Reader;
use crate::depth_search::LatencyTarget;
use crate::files::FileTable;
use crate::flow::Flow;
use crate::io_loop::{BlockLives, ErrorPolicy, Extras, IntendedStarts, NO_DATA, Parts, Ranges, StageStamps};
use crate::logs::Logs;
use crate::memory::Buffers;
use crate::pace::Pace;
use crate::priority::Priorities;
use crate::ramp::SizedRamp;
use crate::syncs::SyncSchedule;
use crate::{Stop, Worker, command, creation, memory, placement, scheduler};
use iolite_content::Content;
use iolite_engine::{BufferLayout, DynEngine, Storage};
use iolite_logs::Recorder;
use iolite_os::message::Message;
use iolite_os::shared::Phase;
use iolite_plan::resolve::{CreationTime, ResolvedWorker};
use iolite_types::{Direction, without_error_numbers};
use iolite_verify::Verification;
use tracing::debug;

/// Everything that a worker prepares before it opens its files.
pub(crate) struct SetUp<'a> {
    pub(crate) parts: Parts<'a>,
    /// The memory that `parts` points into.
    pub(crate) buffers: Buffers,
}

impl Worker<'_> {
    /// Starts the logs, applies the job's placement, and prepares the files. Returns the logs.
    ///
    /// Several functions here are never inlined, so that the I/O loop does not run on top of their stack frames. With a
    /// thousand threads, stack pages that stay untouched save memory.
    #[inline(never)]
    pub(crate) fn enter_place(&self) -> Result<Logs, Stop> {
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
        Some(SizedRamp::new(rules.bytes, self.control(), others.collect(), self.messages))
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

    /// Everything before the files are opened that depends neither on the engine's type nor on the generator's. It is
    /// compiled only once, and its stack frame is gone when the loop runs.
    #[inline(never)]
    pub(crate) fn set_up(&self, logs: Logs, storage: Option<&mut dyn Storage>) -> Result<SetUp<'_>, Stop> {
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

    /// Opens the files and prepares the engine.
    pub(crate) fn prepare(
        &self,
        engine: &mut dyn DynEngine,
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

    /// The priorities that I/Os draw, if they have different ones. Prepares a statistic for each.
    fn priorities(&self) -> Option<Priorities> {
        let priorities = Priorities::new(self.resolved.priorities.as_ref()?);
        for direction in Direction::ALL {
            let live = &self.slot().stats.directions[direction.index()].priorities;
            live.prepare(priorities.possible(direction));
        }
        Some(priorities)
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
