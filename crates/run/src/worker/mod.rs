//! One worker, from its set-up to its end, in a process or thread of its own.

mod command;
mod files;
mod io_loop;
mod memory;
mod pace;
mod placement;
mod syncs;
mod target;
mod usage;

pub use placement::LockedMemory;
pub use usage::{publish as publish_usage, reset as reset_usage};

use crate::clock::Clock;
use crate::content;
use crate::layout::{self, errno_of};
use crate::message::Message;
use crate::shared::{Control, Phase, Slot};
use crate::sys::{self, Socket};
use files::FileTable;
use io_loop::{Attempt, Failure, IoLoop, Missed, Parts, PassEnd, Rules};
use iolite_content::Content;
use iolite_engine::{AccessPattern, BufferLayout, Engine, EngineConfig, Errno, Visitor};
use iolite_options::{
    FileServiceKind, JobOptions, RandomDistribution, RandomGenerator, ReadWrite, Sequencer, SizeValue,
    SkewLaw, ZoneMode, ZoneSkip,
};
use iolite_plan::{JobPlan, Layout, WorkerPlan};
use iolite_types::{Direction, Operation, PerDirection};
use iolite_workload::{
    AnyGenerator, BlockSize, Distribution, FileOrder, General, Generator, Mix, Region, StridedZones, Zone,
    ZoneSize,
};
use memory::Buffers;
use pace::Pace;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use syncs::SyncSchedule;
use target::LatencyTarget;

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
    /// To the controller.
    pub messages: &'a Socket,
    /// The clock of the run.
    pub clock: Clock,
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
        self.control().id.store(sys::thread_id(), Relaxed);
        self.enter(Phase::Created);
        let worked = self.set_up_and_work();
        if let Some(command) = &self.options().exec_postrun
            && let Err(stop) = self.run_command(command::When::After, command)
        {
            // The job itself is over, and what it measured stands.
            Message::Warning(self.number(), stop.what).send(self.messages);
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
        self.control().set_phase(phase);
        Message::Phase(self.number()).send(self.messages);
    }

    fn stop_requested(&self) -> bool {
        self.control().terminating()
    }

    fn set_up_and_work(&self) -> Result<(), Stop> {
        let options = self.options();
        self.enter(Phase::SettingUp);
        placement::apply(options, self.plan.index)
            .map_err(|(option, error)| Stop::new(format!("func={option}"), &error))?;
        if let Some(command) = &options.exec_prerun {
            self.run_command(command::When::Before, command)?;
        }
        if !options.create_serialize {
            let mut note = |text| Message::Note(self.number(), text).send(self.messages);
            layout::create(self.job, self.layout, self.plan, &mut note, &|| self.stop_requested())
                .map_err(|error| Stop::new("func=layout", &error))?;
        }
        if options.create_only {
            self.wait_for_start();
            return Ok(());
        }
        let config = EngineConfig {
            depth: options.iodepth as usize,
            direct: options.direct,
            files: self.layout.files.len(),
            sync_file_range_flags: options.sync_file_range.map_or(0, |range| range.flags),
            access: if options.rw.is_random() { AccessPattern::Random } else { AccessPattern::Sequential },
            defer_submission: options.disable_slat && options.disable_clat,
            seed: self.plan.seed,
            ..EngineConfig::new(options.engine.clone(), options.iodepth as usize)
        };
        iolite_engine::build(self.job.engine.name, &config, WithEngine(self))
            .map_err(|error| Stop { errno: error.errno(), what: format!("func=engine_init: {error}") })?
    }

    /// Runs a command of the user's, and says where its output is.
    fn run_command(&self, when: command::When, command: &str) -> Result<(), Stop> {
        let name = &self.options().name;
        Message::Note(self.number(), command::note(name, when)).send(self.messages);
        command::run(name, when, command).map_err(|error| Stop::new("func=exec", &error))
    }

    fn wait_for_start(&self) {
        self.enter(Phase::Ready);
        self.control().wait_at_gate();
    }

    /// Everything that depends on the engine's type.
    fn with_engine<E: Engine>(&self, engine: E) -> Result<(), Stop> {
        let workload = workload_spec(self.job, self.layout, self.plan.seed);
        let full = needs_full_loop(self.options(), &workload);
        // A pace steers a mix, which only the general generator understands.
        let generator = if full {
            General::new(&workload).map(AnyGenerator::General)
        } else {
            iolite_workload::new(&workload)
        };
        let generator = generator
            .map_err(|error| Stop { errno: libc::ENOMEM, what: format!("func=workload: {error}") })?;
        if full {
            return self.work::<E, AnyGenerator, true>(engine, generator, &workload);
        }
        generator.visit(WithGenerator { worker: self, engine, workload: &workload })
    }

    fn work<E: Engine, G: Generator, const FULL: bool>(
        &self,
        mut engine: E,
        generator: G,
        workload: &iolite_workload::Spec,
    ) -> Result<(), Stop> {
        let options = self.options();
        let mut files = FileTable::new(options, self.layout);
        let largest = Direction::ALL.iter().map(|&direction| workload.block_size[direction].max()).max();
        let largest = largest.unwrap_or(1);
        let mut buffers = Buffers::new(options, largest, options.iodepth as usize)
            .map_err(|error| Stop::new("func=allocate_buffers", &error))?;
        let content = self.fill(&mut buffers);
        if options.pre_read {
            self.enter(Phase::PreReading);
            files.pre_read(&|| self.stop_requested()).map_err(|error| Stop::new("func=pre_read", &error))?;
        }
        self.open(&mut files, &mut engine, workload)?;
        let at_once = BufferLayout {
            start: buffers.start,
            stride: buffers.stride,
            count: buffers.count,
            depth: options.iodepth as usize,
            files: files.len(),
        };
        engine
            .prepare(&at_once)
            .map_err(|error| Stop { errno: error.errno(), what: format!("func=engine_prepare: {error}") })?;
        let parts = Parts {
            rules: rules(options),
            control: self.control(),
            stats: &self.slot.stats,
            clock: self.clock.chosen(options.clocksource),
            content,
            syncs: sync_schedule(options),
            pace: Pace::new(options, self.plan.seed),
            target: LatencyTarget::new(options),
            files,
            buffers: buffers.start,
            stride: buffers.stride,
        };
        let mut io_loop = IoLoop::<E, G, FULL>::new(engine, generator, parts);
        self.wait_for_start();
        usage::begin();
        io_loop.start();
        Message::Phase(self.number()).send(self.messages);
        let worked = self.loops(&mut io_loop, workload);
        let failure = io_loop.failure.take();
        let names =
            failure.and_then(|failure| failure.attempt).map(|attempt| io_loop.files.name(attempt.file));
        io_loop.finish();
        self.enter(Phase::Finishing);
        let closed = self.put_away(&mut io_loop);
        // The engine waits for what it may still have in flight, and then the buffers can go.
        drop(io_loop);
        drop(buffers);
        match failure {
            Some(Failure { errno: Errno(libc::EINTR), .. }) if self.stop_requested() => {}
            Some(failure) => return Err(self.tell(failure, names)),
            None => {}
        }
        worked.and(closed)
    }

    /// The passes that the job asks for.
    fn loops<E: Engine, G: Generator, const FULL: bool>(
        &self,
        io_loop: &mut IoLoop<E, G, FULL>,
        workload: &iolite_workload::Spec,
    ) -> Result<(), Stop> {
        let options = self.options();
        let mut left = options.loops.max(1);
        while left > 0 && !io_loop.is_over() {
            let end = io_loop.pass();
            left -= 1;
            if options.end_fsync && (options.rw.writes() || options.rw.trims()) && io_loop.failure.is_none() {
                let before = self.control().phase();
                self.control().set_phase(Phase::Syncing);
                let synced = io_loop.files.sync_all(&io_loop.engine);
                self.control().set_phase(before);
                synced.map_err(|error| Stop::new("func=end_fsync", &error))?;
            }
            if end == PassEnd::Stopped || io_loop.is_over() {
                break;
            }
            let again = left > 0 || options.time_based;
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
            if options.time_based {
                left = left.max(1);
            }
            if again && options.randrepeat && !options.time_based {
                io_loop.generator.rewind();
            } else if again {
                io_loop.generator.restart();
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
        if self.job.engine.diskless {
            // Nothing to open, but something to count: users see the files of such a job as open.
            self.control().open_files.store(files.len() as u32, Relaxed);
        }
        for file in 0..workload.open_files.min(files.len()) as u32 {
            files
                .open(engine, file)
                .map_err(|error| Stop::new(format!("func=open({})", files.name(file)), &error))?;
        }
        if self.job.engine.diskless {
            // There is nothing to lock either.
            return Ok(());
        }
        files.prepare_locks().map_err(|error| Stop::new("func=lockfile", &error))?;
        self.control().open_files.store(files.open_count(), Relaxed);
        Ok(())
    }

    /// Fills the buffers, and gives what prepares them before each write, if something has to.
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

    /// Tells the reader of the report what failed, and says it once more for the job's own line.
    fn tell(&self, failure: Failure, file: Option<String>) -> Stop {
        let error = io::Error::from_raw_os_error(failure.errno.0);
        if let Some(Missed::Rate(pace::Missed { option, asked, got })) = failure.missed {
            let unit = if option == "rate_min" { "B/s" } else { "IOPS" };
            let line = format!("{}: {option}={asked} not met, got {got} {unit}", self.options().name);
            Message::Warning(self.number(), line).send(self.messages);
            return Stop { errno: failure.errno.0, what: format!("func={option}") };
        }
        let Some(Attempt { operation, offset, length, .. }) = failure.attempt else {
            return Stop { errno: failure.errno.0, what: "func=getevents".into() };
        };
        let name = operation_name(operation);
        let file = file.unwrap_or_default();
        let text = describe_error(&error);
        if let Some(Missed::Latency(latency)) = failure.missed {
            let line = format!(
                "latency of {latency} nsec exceeds max_latency: {file} {name} offset={offset}, buflen={length}"
            );
            Message::Warning(self.number(), line).send(self.messages);
            return Stop { errno: failure.errno.0, what: format!("file={file}, func=max_latency") };
        }
        let line = format!("io_u error on file {file}: {text}: {name} offset={offset}, buflen={length}");
        Message::Warning(self.number(), line).send(self.messages);
        Stop { errno: failure.errno.0, what: format!("file={file}, func={name}") }
    }
}

/// The operating system's words for an error, without the number that the standard library adds.
pub fn describe_error(error: &io::Error) -> String {
    let mut text = error.to_string();
    while let Some(start) = text.find(" (os error ")
        && let Some(length) = text[start..].find(')')
    {
        text.replace_range(start..=start + length, "");
    }
    text
}

fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Trim => "trim",
        Operation::Sync => "sync",
        Operation::DataSync => "datasync",
        Operation::SyncFileRange => "sync_file_range",
    }
}

/// Continues with an engine of a known type.
struct WithEngine<'a, 'b>(&'a Worker<'b>);

impl Visitor for WithEngine<'_, '_> {
    type Out = Result<(), Stop>;

    fn visit<E: Engine + 'static>(self, engine: E) -> Self::Out {
        self.0.with_engine(engine)
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
        self.worker.work::<E, G, false>(self.engine, generator, self.workload)
    }
}

/// Whether the job needs anything that the plain loop leaves out.
fn needs_full_loop(options: &JobOptions, workload: &iolite_workload::Spec) -> bool {
    !sync_schedule(options).is_empty()
        || options.write_barrier > 0
        || (options.serialize_overlap && options.iodepth > 1)
        || options.lockfile != iolite_options::LockFile::None
        || workload.open_files < workload.files.len()
        || options.max_latency.values.iter().any(|&limit| limit > 0)
        || Pace::new(options, 1).is_some()
        || options.latency_target > 0
}

fn sync_schedule(options: &JobOptions) -> SyncSchedule {
    let range = options.sync_file_range.map_or(0, |range| range.interval);
    SyncSchedule::new(u64::from(options.fsync), u64::from(options.fdatasync), range)
}

fn rules(options: &JobOptions) -> Rules {
    let depth = options.iodepth.max(1);
    let complete_min = options.iodepth_batch_complete_min.min(depth);
    let complete_max = match options.iodepth_batch_complete_max {
        0 => complete_min.max(1),
        max => max.clamp(complete_min.max(1), depth.max(complete_min)),
    };
    let measured = |disabled: bool| !disabled && options.stats;
    Rules {
        depth,
        batch: options.iodepth_batch.clamp(1, depth),
        complete_min,
        complete_max,
        low: if options.iodepth_low == 0 { depth } else { options.iodepth_low.min(depth) },
        slat: measured(options.disable_slat),
        clat: measured(options.disable_clat),
        lat: measured(options.disable_lat),
        slat_buckets: options.slat_percentiles,
        // The latency classes of the report come from this histogram, so it is kept in any case.
        clat_buckets: true,
        lat_buckets: options.lat_percentiles,
        ramp_ns: options.ramp_time.saturating_mul(1000),
        runtime_ns: if options.runtime == 0 { u64::MAX } else { options.runtime.saturating_mul(1000) },
        fill_device: options.fill_device,
        serialize_overlap: options.serialize_overlap && depth > 1,
        write_barrier: options.write_barrier,
        time_decides: options.latency_target > 0 || options.max_latency.values.iter().any(|&limit| limit > 0),
        max_latency_ns: options.max_latency.values.map(|limit| match limit {
            0 => u64::MAX,
            limit => limit.saturating_mul(1000),
        }),
    }
}

/// The worker's workload, from its options and files.
fn workload_spec(job: &JobPlan, layout: &Layout, seed: u64) -> iolite_workload::Spec {
    let options = &job.options;
    let rw = options.rw;
    let mix = match rw {
        ReadWrite::Read | ReadWrite::RandRead => Mix::Single(Direction::Read),
        ReadWrite::Write | ReadWrite::RandWrite => Mix::Single(Direction::Write),
        ReadWrite::Trim | ReadWrite::RandTrim => Mix::Single(Direction::Trim),
        ReadWrite::Rw | ReadWrite::RandRw => Mix::ReadWrite(options.rwmixread),
        ReadWrite::TrimWrite | ReadWrite::RandTrimWrite => Mix::TrimWrite,
    };
    let random = rw.is_random();
    let block_size = per_direction(|direction| block_size(options, direction));
    let modifier = options.rw_modifier.0;
    let count = layout.files.len();
    iolite_workload::Spec {
        files: layout.files.iter().map(|file| Region { offset: file.offset, length: file.length }).collect(),
        file_order: match options.file_service_type.kind {
            FileServiceKind::Random => FileOrder::Random,
            FileServiceKind::RoundRobin => FileOrder::RoundRobin,
            FileServiceKind::Sequential => FileOrder::Sequential,
            FileServiceKind::Skewed(law) => FileOrder::Skewed(skew(law)),
        },
        ios_per_file: options.file_service_type.ios.max(1),
        open_files: if options.openfiles == 0 { count } else { (options.openfiles as usize).min(count) },
        mix,
        random_percent: if random { options.percentage_random } else { PerDirection::all(0) },
        align: per_direction(|direction| match options.ba[direction] {
            0 => block_size[direction].min(),
            align => align,
        }),
        block_size,
        unaligned: options.bs_unaligned,
        size_by_randomness: options.bs_is_seq_rand,
        cover: !options.norandommap,
        cover_softly: options.softrandommap,
        lfsr: options.random_generator == RandomGenerator::Lfsr,
        distribution: distribution(options),
        zones: strided_zones(options),
        precondition: options.sprandom.then(|| iolite_workload::Precondition {
            over_provisioning: options.spr_op,
            cache: options.spr_cs,
            regions: u64::from(options.spr_num_regions),
        }),
        sequential_skip: if random { 0 } else { modifier },
        skip_wraps: layout.files.iter().all(|file| file.is_whole),
        // What the page cache holds is dropped before each lap, or later laps would measure the cache.
        announce_laps: options.invalidate && !options.direct && !job.engine.diskless,
        ios_per_random: if random { modifier.max(1) as u64 } else { 1 },
        identical: options.rw_sequencer == Sequencer::Identical,
        pass_bytes: layout.pass_bytes,
        total_ios: (options.number_ios > 0).then_some(options.number_ios),
        // One long pass, so what happens between passes (`end_fsync`, `unlink_each_loop`) happens once or not at all
        // (as with fio).
        endless: options.time_based,
        seed,
    }
}

fn skew(skew: iolite_options::Skew) -> iolite_workload::Skew {
    use iolite_workload::Law;
    let law = match skew.law {
        SkewLaw::Zipf => Law::Zipf(skew.value),
        SkewLaw::Pareto => Law::Pareto(skew.value),
        SkewLaw::Normal => Law::Normal(skew.value),
    };
    iolite_workload::Skew { law, centre: skew.centre }
}

fn distribution(options: &JobOptions) -> Distribution {
    match &options.random_distribution {
        RandomDistribution::Random => Distribution::Even,
        RandomDistribution::Skewed(law) => Distribution::Skewed(skew(*law)),
        RandomDistribution::Zoned(zones) => Distribution::Zones(per_direction(|direction| {
            let zone = |zone: &iolite_options::ZoneShare| Zone {
                share: zone.share,
                size: match zone.size {
                    SizeValue::Bytes(bytes) => ZoneSize::Bytes(bytes),
                    SizeValue::Percent(percent) => ZoneSize::Percent(f64::from(percent)),
                },
            };
            zones[direction].iter().map(zone).collect()
        })),
        RandomDistribution::Sequence(blocks) => {
            Distribution::Sequence { blocks: blocks.clone(), stride: options.random_sequence_stride }
        }
    }
}

fn strided_zones(options: &JobOptions) -> Option<StridedZones> {
    (options.zonemode == ZoneMode::Strided).then(|| StridedZones {
        size: options.zonesize,
        range: options.zonerange,
        skip: match options.zoneskip {
            ZoneSkip::Bytes(bytes) => bytes,
            ZoneSkip::Zones(zones) => options.zonesize.saturating_mul(u64::from(zones)),
        },
    })
}

fn per_direction<T>(mut value: impl FnMut(Direction) -> T) -> PerDirection<T> {
    PerDirection::new(value(Direction::Read), value(Direction::Write), value(Direction::Trim))
}

/// The sizes of the I/Os of a direction.
pub fn block_size(options: &JobOptions, direction: Direction) -> BlockSize {
    if let Some(split) = &options.bssplit
        && !split[direction].is_empty()
    {
        return BlockSize::Split(split[direction].iter().map(|entry| (entry.size, entry.percent)).collect());
    }
    match &options.bsrange {
        Some(range) if range[direction].low != range[direction].high => {
            BlockSize::Range(range[direction].low, range[direction].high)
        }
        Some(range) => BlockSize::Fixed(range[direction].low),
        None => BlockSize::Fixed(options.bs[direction]),
    }
}
