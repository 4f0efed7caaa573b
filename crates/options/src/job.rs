//! The options of one job, typed: every option that has an effect, with defaults filled in.
//!
//! Field names are option names. Times are in microseconds unless a field says otherwise, sizes in bytes.
//! [`JobOptions::is_set`] tells whether an option was given rather than left at its default, because some rules
//! depend on that.

use crate::engines::{EngineInfo, EngineOptions, ExternalOptions, engine};
use crate::typed::{
    ClockSource, CpusPolicy, DedupeMode, ErrorKinds, ExitWhat, FadviseHint, Fallocate, FileService, FileType,
    IgnoredErrors, LockFile, MemoryKind, NumaPolicy, PatternPiece, RandomDistribution, RandomGenerator,
    Range, RateProcess, ReadWrite, ReadWriteModifier, ReplaySkip, Sequencer, SizeValue, SplitEntry,
    SteadyState, SubmitMode, SyncFileRange, SyncMode, ThinktimeBlocks, UnifiedReporting, WriteHint, ZoneMode,
    ZoneSkip,
};
use crate::{LogOptions, Origin, VerifyOptions};
use iolite_types::PerDirection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The options of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the options' own; units are in the module documentation")]
pub struct JobOptions {
    // job
    pub name: String,
    pub description: Option<String>,
    pub wait_for: Option<String>,
    pub loops: u64,
    pub numjobs: u32,
    pub thread: bool,
    pub stonewall: bool,
    pub new_group: bool,
    pub group_reporting: bool,
    pub exitall: bool,
    pub exitall_on_error: bool,
    pub exit_what: ExitWhat,
    pub startdelay: Option<Range>,
    /// 0 = no limit.
    pub runtime: u64,
    pub time_based: bool,
    pub ramp_time: u64,
    /// Bytes; 0 = none.
    pub ramp_size: u64,
    pub stats: bool,

    // files
    pub directory: Vec<String>,
    pub filename: Vec<String>,
    pub filename_format: String,
    pub unique_filename: bool,
    pub opendir: Option<String>,
    pub nrfiles: u32,
    /// `filename` was given in the job's own section (or, for defaults, in a section of defaults): giving it again
    /// there adds names, as in fio.
    pub names_are_own: bool,
    /// `nrfiles` was given after `filename` or `opendir`: it limits how many of their files are used.
    pub nrfiles_limits_names: bool,
    /// 0 = as many as there are files.
    pub openfiles: u32,
    pub file_service_type: FileService,
    pub filesize: Option<Range>,
    pub size: Option<SizeValue>,
    pub io_size: Option<SizeValue>,
    pub offset: SizeValue,
    pub offset_increment: SizeValue,
    /// 0 = aligned to `ba` only.
    pub offset_align: u64,
    pub file_append: bool,
    pub fill_device: bool,
    /// 0 = no limit.
    pub number_ios: u64,
    pub create_serialize: bool,
    pub create_fsync: bool,
    pub create_on_open: bool,
    pub create_only: bool,
    pub allow_file_create: bool,
    pub allow_mounted_write: bool,
    pub overwrite: bool,
    pub fallocate: Fallocate,
    pub pre_read: bool,
    pub invalidate: bool,
    pub fadvise_hint: FadviseHint,
    pub unlink: bool,
    pub unlink_each_loop: bool,
    pub lockfile: LockFile,
    pub filetype: FileType,

    // pattern
    pub rw: ReadWrite,
    pub rw_modifier: ReadWriteModifier,
    pub rw_sequencer: Sequencer,
    /// Percent of reads in a mixed workload; `rwmixwrite` lands here as 100 − value.
    pub rwmixread: u32,
    pub percentage_random: PerDirection<u32>,
    pub bs: PerDirection<u64>,
    /// The block size alignment of random offsets; 0 = the smallest block size of the direction.
    pub ba: PerDirection<u64>,
    pub bsrange: Option<PerDirection<Range>>,
    /// Empty where a direction has no split.
    pub bssplit: Option<PerDirection<Vec<SplitEntry>>>,
    pub bs_unaligned: bool,
    pub bs_is_seq_rand: bool,
    pub norandommap: bool,
    pub softrandommap: bool,
    pub random_generator: RandomGenerator,
    pub random_distribution: RandomDistribution,
    pub random_sequence_stride: bool,
    pub zonemode: ZoneMode,
    /// Bytes of I/O in a zone before the next; 0 only without zones.
    pub zonesize: u64,
    /// Bytes of the file that a zone covers; with zones, `zonesize` where it was not given.
    pub zonerange: u64,
    pub zoneskip: ZoneSkip,
    pub sprandom: bool,
    /// Over-provisioning that sprandom assumes, as a fraction of what can be addressed.
    pub spr_op: f64,
    pub spr_cs: u64,
    pub spr_num_regions: u32,
    pub randrepeat: bool,
    pub randseed: u64,

    // durability
    pub direct: bool,
    /// Writes are whole or not at all, also when the power fails.
    pub atomic: bool,
    /// How long written data is expected to live; `None` = not set.
    pub write_hint: Option<WriteHint>,
    pub sync: SyncMode,
    pub fsync: u32,
    pub fdatasync: u32,
    pub sync_file_range: Option<SyncFileRange>,
    pub write_barrier: u32,
    pub end_fsync: bool,
    pub end_syncfs: bool,
    pub fsync_on_close: bool,

    // buffers and memory
    pub zero_buffers: bool,
    pub refill_buffers: bool,
    pub scramble_buffers: bool,
    /// Empty = none.
    pub buffer_pattern: Vec<PatternPiece>,
    pub buffer_compress_percentage: u32,
    /// 0 = the block size.
    pub buffer_compress_chunk: u32,
    pub dedupe_percentage: u32,
    pub dedupe_mode: DedupeMode,
    /// Percent of the file's blocks.
    pub dedupe_working_set_percentage: u32,
    pub dedupe_global: bool,
    pub mem: MemoryKind,
    /// The file behind `mem=mmap:FILE`, `mmapshared:FILE` or `mmaphuge:FILE`.
    pub mem_file: Option<String>,
    pub iomem_align: u64,
    pub lockmem: u64,
    pub hugepage_size: u64,

    // recording and replaying
    /// Where the job's I/O is recorded.
    pub write_iolog: Option<String>,
    /// The traces to replay, one per clone; empty = no replay.
    pub read_iolog: Vec<String>,
    pub read_iolog_chunked: bool,
    pub replay_no_stall: bool,
    pub replay_redirect: Option<String>,
    /// Offsets are divided by this; 0 means 1.
    pub replay_scale: u64,
    /// A power of two; 0 = not aligned.
    pub replay_align: u64,
    /// Percent of the recorded speed.
    pub replay_time_scale: u64,
    pub replay_skip: ReplaySkip,
    pub merge_blktrace_file: Option<String>,
    /// Speed of each of the merged traces, in percent of its recorded time; empty = 100 for all.
    pub merge_blktrace_scalars: Vec<f64>,
    /// How often each of the merged traces runs; empty = once.
    pub merge_blktrace_iters: Vec<u64>,

    // depth
    pub iodepth: u32,
    /// Units submitted at once.
    pub iodepth_batch: u32,
    /// Fewest completions to wait for; 0 = poll.
    pub iodepth_batch_complete_min: u32,
    /// Most completions to fetch at once; 0 = same as the minimum.
    pub iodepth_batch_complete_max: u32,
    /// The depth to drain to before the queue is filled again; 0 = same as `iodepth`.
    pub iodepth_low: u32,
    pub serialize_overlap: bool,
    pub io_submit_mode: SubmitMode,

    pub verify_only: bool,
    pub verification: VerifyOptions,

    // rates
    pub thinktime: u64,
    pub thinktime_spin: u64,
    pub thinkcycles: u64,
    pub thinktime_blocks: u64,
    pub thinktime_blocks_type: ThinktimeBlocks,
    /// 0 = pauses depend on the number of I/Os, not on time.
    pub thinktime_iotime: u64,
    /// Bytes per second; 0 = no limit.
    pub rate: PerDirection<u64>,
    /// Bytes per second; 0 = no minimum.
    pub rate_min: PerDirection<u64>,
    pub rate_process: RateProcess,
    /// Milliseconds.
    pub rate_cycle: u64,
    pub rate_ignore_thinktime: bool,
    /// I/Os per second; 0 = no limit.
    pub rate_iops: PerDirection<u64>,
    /// I/Os per second; 0 = no minimum.
    pub rate_iops_min: PerDirection<u64>,
    /// 0 = no limit.
    pub max_latency: PerDirection<u64>,
    /// 0 = none.
    pub latency_target: u64,
    pub latency_window: u64,
    /// Percent of the I/Os that must keep to the target.
    pub latency_percentile: f64,
    pub latency_run: bool,
    pub flow_id: u32,
    /// The job's weight in its flow; 0 = it is in no flow.
    pub flow: u32,
    pub flow_sleep: u64,

    // placement
    /// From `cpus_allowed` or `cpumask`; empty = not set.
    pub cpus_allowed: Vec<u32>,
    pub cpus_allowed_policy: CpusPolicy,
    /// Empty = not set, or all nodes.
    pub numa_cpu_nodes: Vec<u32>,
    pub numa_mem_policy: Option<NumaPolicy>,
    pub nice: i32,
    pub prio: Option<u32>,
    pub prioclass: Option<u32>,
    pub priohint: Option<u32>,

    pub ioscheduler: Option<String>,
    pub cgroup: Option<String>,
    pub cgroup_weight: Option<u32>,
    pub cgroup_nodelete: bool,
    pub comm: Option<String>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub exec_prerun: Option<String>,
    pub exec_postrun: Option<String>,

    // errors
    pub continue_on_error: ErrorKinds,
    pub ignore_error: IgnoredErrors,
    pub error_dump: bool,

    // measurement
    pub clocksource: Option<ClockSource>,
    /// The CPU of the thread that keeps the time for all workers.
    pub gtod_cpu: Option<u32>,
    /// The number of the system clock from which the report takes the start of the job; 0 = the wall clock.
    pub job_start_clock_id: u32,
    pub gtod_reduce: bool,
    pub disable_lat: bool,
    pub disable_clat: bool,
    pub disable_slat: bool,
    pub disable_bw: bool,
    pub clat_percentiles: bool,
    pub lat_percentiles: bool,
    pub slat_percentiles: bool,
    /// Sorted, at most 20.
    pub percentile_list: Vec<f64>,
    pub unified_rw_reporting: UnifiedReporting,
    pub lat_from_intended_start: bool,
    pub block_error_percentiles: bool,
    pub steadystate: SteadyState,
    /// 0 = do not wait for a steady state.
    pub steadystate_duration: u64,
    pub steadystate_ramp_time: u64,
    pub steadystate_check_interval: u64,
    pub significant_figures: u32,
    /// 1024 or 1000.
    pub kb_base: u32,
    /// 0 = automatic, 8 = bytes, 1 = bits.
    pub unit_base: u32,
    pub disk_util: bool,
    pub logs: LogOptions,
    /// Milliseconds.
    pub bwavgtime: u32,
    /// Milliseconds.
    pub iopsavgtime: u32,

    // engine
    /// The name of an engine in the catalogue; see [`JobOptions::choose_engine`].
    pub ioengine: String,
    /// The own options of that engine.
    pub engine: EngineOptions,

    /// The options that this section set (without the global ones): canonical name and text, in order, for the JSON
    /// report. A flag without a value has empty text.
    pub given: Vec<(String, String)>,
    /// The options that the `[global]` sections before this job set, likewise.
    pub given_global: Vec<(String, String)>,
    /// Where each option that was set (canonical name) got its value, from this section or a global one.
    pub origins: BTreeMap<String, Origin>,
    /// How many workers the jobs before this one would have had that `--section` leaves out.
    pub left_out_before: u64,
}

impl JobOptions {
    /// Whether this option (canonical name) was set, in this section or a global one.
    pub fn is_set(&self, canonical_name: &str) -> bool {
        self.origins.contains_key(canonical_name)
    }

    /// Chooses an engine. If it is another one than before, the old engine's options are forgotten, and the new one's
    /// have their defaults.
    pub fn choose_engine(&mut self, chosen: &EngineInfo) {
        if chosen.name == self.ioengine {
            return;
        }
        for definition in engine(&self.ioengine).map_or(&[][..], |before| before.options) {
            self.origins.remove(definition.name);
        }
        self.ioengine = chosen.name.to_owned();
        self.engine = (chosen.own)();
    }

    /// Chooses the engine in this shared object.
    pub(crate) fn choose_library(&mut self, external: &EngineInfo, library: PathBuf) {
        if self.engine.of::<ExternalOptions>().is_some_and(|own| own.library != library) {
            // It is another engine, although of the same name.
            self.choose_engine(&EngineInfo { name: "", ..*external });
        }
        self.choose_engine(external);
        if let Some(own) = self.engine.of_mut::<ExternalOptions>() {
            own.library = library;
        }
    }

    /// The I/O priority of the workers (`prio`, `prioclass`, `priohint`), encoded as in the kernel; `None` =
    /// unchanged.
    pub fn io_priority(&self) -> Option<u16> {
        // A level without a class is one of the default class.
        const BEST_EFFORT: u32 = 2;
        let given = [self.prioclass, self.prio, self.priohint];
        given.iter().any(Option::is_some).then(|| {
            let class = self.prioclass.unwrap_or(BEST_EFFORT);
            iolite_types::io_priority(class, self.prio.unwrap_or(0), self.priohint.unwrap_or(0))
        })
    }
}
