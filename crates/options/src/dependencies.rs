//! Options that have an effect only together with others.
//!
//! `log_hist_msec` has no effect in a job without `write_hist_log`. A user who gives it alone has probably forgotten
//! the other option, so a warning names it. There is no warning about a value that switches the option off (a default,
//! say), nor about an option in `[global]` that has an effect on some of the jobs after it.

use crate::engines::{CommandPriorities, IoUringOptions};
use crate::name::refusal;
use crate::registry::{asks_for_nothing, find};
use crate::{
    DataPlacement, DedupeMode, Diagnostic, JobOptions, LogOptions, MemoryKind, Name, Origin, PlacementChoice,
    RandomDistribution, VerifyOptions, ZoneMode,
};
use iolite_types::{Direction, PerDirection};
use std::collections::HashMap;

/// Some options, and the condition under which they have an effect.
struct Need {
    options: &'static [&'static str],
    /// The condition, as in the message.
    leader: &'static str,
    is_met: fn(&JobOptions) -> bool,
    /// What fio says about it, if it does.
    in_fio: Option<&'static str>,
}

const fn need(
    options: &'static [&'static str],
    leader: &'static str,
    is_met: fn(&JobOptions) -> bool,
) -> Need {
    Need { options, leader, is_met, in_fio: None }
}

impl Need {
    /// Adds the sentence of fio.
    const fn said_by_fio(mut self, sentence: &'static str) -> Need {
        self.in_fio = Some(sentence);
        self
    }
}

fn any<T: Copy + PartialOrd + Default>(values: PerDirection<T>) -> bool {
    values.values.into_iter().any(|value| value > T::default())
}

fn has_rate(job: &JobOptions) -> bool {
    Direction::ALL.into_iter().any(|direction| job.has_rate(direction))
}

fn has_command_priorities(job: &JobOptions) -> bool {
    job.engine.priorities().is_some_and(CommandPriorities::is_on)
}

fn replays(job: &JobOptions) -> bool {
    job.is_replay()
}

/// Whether the job may have several files. The files of a directory or a trace are not known here.
fn may_have_several_files(job: &JobOptions) -> bool {
    job.files.nrfiles > 1 || job.files.filename.len() > 1 || job.files.opendir.is_some() || replays(job)
}

/// Whether `rwmixread` fits the directions of the job: the job is a mix, or the percentage gives all I/Os to its only
/// direction.
fn mixes(job: &JobOptions) -> bool {
    match (job.pattern.rw.reads(), job.pattern.rw.writes()) {
        (true, true) => true,
        (true, false) => job.pattern.rwmixread == 100,
        (false, _) => job.pattern.rwmixread == 0,
    }
}

/// All conditions. An option may have several.
static NEEDS: &[Need] = &[
    need(
        &[
            "per_job_logs",
            "log_entries",
            "log_avg_msec",
            "log_window_value",
            "log_offset",
            "log_prio",
            "log_issue_time",
            "log_compression",
            "log_compression_cpus",
            "log_store_compressed",
            "log_alternate_epoch",
        ],
        "a log (write_bw_log, write_lat_log, write_iops_log, write_hist_log or write_asked_log)",
        |job| LogOptions::any(&job.logs),
    ),
    need(&["log_alternate_epoch_clock_id"], "log_alternate_epoch", |job| job.logs.log_alternate_epoch),
    need(&["log_hist_msec", "log_hist_coarseness"], "write_hist_log", |job| {
        job.logs.write_hist_log.is_some()
    }),
    need(&["latency_window", "latency_run", "latency_percentile"], "latency_target", |job| {
        job.rates.latency_target > 0
    }),
    need(&["write_asked_log"], "a rate_schedule with rate_ignore_thinktime=0", |job| {
        job.fixed_schedule().is_some()
    }),
    need(&["rate_process", "rate_ignore_thinktime"], "rate, rate_iops or rate_schedule", has_rate),
    need(&["rate_cycle"], "rate_min or rate_iops_min", |job| {
        any(job.rates.rate_min) || any(job.rates.rate_iops_min)
    }),
    need(
        &[
            "rate_ignore_thinktime",
            "thinktime_spin",
            "thinkcycles",
            "thinktime_blocks",
            "thinktime_blocks_type",
            "thinktime_iotime",
        ],
        "thinktime",
        |job| job.rates.thinktime > 0,
    ),
    need(&["batch_sample", "batch_compute", "batch_prefetch"], "batch_size", |job| {
        job.batches.batch_size > 0
    }),
    need(&["filenum_increment"], "several workers (numjobs)", |job| job.schedule.numjobs > 1),
    need(&["flow_id", "flow_sleep"], "flow", |job| job.rates.flow > 0),
    need(&["dedupe_mode", "dedupe_working_set_percentage", "dedupe_global"], "dedupe_percentage", |job| {
        job.buffers.dedupe_percentage > 0
    }),
    need(&["dedupe_working_set_percentage", "dedupe_global"], "dedupe_mode=working_set", |job| {
        job.buffers.dedupe_mode == DedupeMode::WorkingSet
    }),
    need(&["buffer_compress_chunk"], "buffer_compress_percentage", |job| {
        job.buffers.buffer_compress_percentage > 0
    }),
    need(&["hugepage-size"], "huge pages (mem=shmhuge or mem=mmaphuge)", |job| {
        matches!(job.buffers.mem, MemoryKind::ShmHuge | MemoryKind::MmapHuge)
    }),
    need(&["spr_op", "spr_cs", "spr_num_regions"], "sprandom", |job| job.pattern.sprandom),
    need(&["random_sequence_stride"], "random_distribution=sequence", |job| {
        matches!(job.pattern.random_distribution, RandomDistribution::Sequence(_))
    }),
    need(&["rw_sequencer"], "a number behind rw (rw=randread:8)", |job| {
        job.pattern.rw_modifier.0 != 0 || replays(job)
    }),
    need(&["rwtmix"], "a mix (rw=rw or rw=randrw)", |job| job.mix().is_some()),
    need(&["rwmixread", "rwmixwrite"], "a mix (rw=rw or rw=randrw)", |job| mixes(job) || replays(job)),
    need(&["plid_select", "plids", "dp_scheme"], "dataplacement=fdp or streams", |job| {
        job.data_placement.dataplacement != DataPlacement::None
    }),
    need(&["dp_scheme"], "plid_select=scheme", |job| {
        job.data_placement.plid_select == PlacementChoice::Scheme
            || job.data_placement.dataplacement == DataPlacement::None
    }),
    need(&["zoneskip"], "zonemode=strided or zbd", |job| job.zones.zonemode != ZoneMode::None),
    need(&["zonerange"], "zonemode=strided", |job| job.zones.zonemode == ZoneMode::Strided),
    need(
        &[
            "zonecapacity",
            "read_beyond_wp",
            "max_open_zones",
            "job_max_open_zones",
            "ignore_zone_limits",
            "zone_reset_threshold",
            "recover_zbd_write_error",
            "write_zone_remainder",
        ],
        "zonemode=zbd",
        |job| job.zones.is_zbd(),
    ),
    need(&["job_max_open_zones"], "writes (rw)", |job| !job.zones.is_zbd() || job.pattern.rw.writes())
        .said_by_fio("'job_max_open_zones' is valid only for write jobs"),
    need(&["zone_reset_frequency"], "zonemode=zbd", |job| job.zones.is_zbd()),
    need(&["zone_reset_threshold"], "zone_reset_frequency", |job| job.zones.zone_reset_frequency > 0.0),
    need(&["file_service_type"], "several files (nrfiles, filename or opendir)", may_have_several_files),
    need(&["openfiles"], "several files (nrfiles, filename or opendir)", |job| {
        job.files.openfiles <= 1 || may_have_several_files(job)
    }),
    need(&["error_dump"], "continue_on_error or ignore_error", |job| job.errors.any()),
    need(&["exit_what"], "exitall or exitall_on_error", |job| {
        job.schedule.exitall || job.schedule.exitall_on_error
    }),
    need(
        &["cmdprio_class", "cmdprio", "cmdprio_hint"],
        "cmdprio_percentage or cmdprio_bssplit",
        has_command_priorities,
    ),
    need(&["sqthread_poll_cpu"], "sqthread_poll", |job| {
        job.engine.of::<IoUringOptions>().is_some_and(|own| own.sqthread_poll)
    }),
    need(&["cpus_allowed_policy"], "cpus_allowed", |job| !job.placement.cpus_allowed.is_empty()),
    need(&["cgroup_weight", "cgroup_nodelete"], "cgroup", |job| job.placement.cgroup.is_some()),
    need(
        // Options that switch off a check, or the state file, request only the behaviour of a job without verify.
        &[
            "verify_policy",
            "verify_interval",
            "verify_offset",
            "verify_pattern_interval",
            "verify_fatal",
            "verify_dump",
            "verify_async",
            "verify_async_cpus",
            "verify_backlog",
            "verify_backlog_batch",
            "experimental_verify",
            "verify_state_load",
            "verify_header_format",
            "trim_percentage",
        ],
        "verify",
        |job| VerifyOptions::is_on(&job.verification),
    ),
    need(&["verify_async_cpus"], "verify_async", |job| job.verification.verify_async > 0),
    need(&["verify_backlog_batch"], "verify_backlog", |job| job.verification.verify_backlog > 0),
    need(&["trim_verify_zero", "trim_backlog", "trim_backlog_batch"], "trim_percentage", |job| {
        job.verification.trim_percentage > 0
    }),
    need(&["block_error_percentiles"], "trims or writes (rw)", |job| {
        job.pattern.rw.trims() || job.pattern.rw.writes() || replays(job)
    }),
    need(&["steadystate_ramp_time", "steadystate_check_interval"], "steadystate_duration", |job| {
        job.is_set("steadystate_duration")
    }),
    need(
        &[
            "read_iolog_chunked",
            "replay_no_stall",
            "replay_redirect",
            "replay_scale",
            "replay_align",
            "replay_time_scale",
            "replay_skip",
            "merge_blktrace_file",
        ],
        "read_iolog",
        replays,
    ),
    need(&["merge_blktrace_scalars", "merge_blktrace_iters"], "merge_blktrace_file", |job| {
        job.replay.merge_blktrace_file.is_some()
    }),
];

/// The options that have had an effect on no job yet.
pub(crate) struct Loners {
    found: HashMap<(Origin, &'static str, &'static str), Option<Diagnostic>>,
    name: Name,
}

impl Loners {
    /// None yet, in a program of this name.
    pub fn of(name: Name) -> Loners {
        Loners { found: HashMap::new(), name }
    }

    /// Checks the options given for a job, once its options are settled.
    pub fn look_at(&mut self, job: &JobOptions) {
        for need in NEEDS {
            for &option in need.options {
                let Some(origin) = job.origins.get(option) else { continue };
                let matters = (need.is_met)(job) || is_nothing(job, option);
                let reason = || {
                    let reason = format!("has no effect without {}", need.leader);
                    match need.in_fio {
                        Some(sentence) => refusal(self.name.is_strict(), sentence, reason),
                        None => reason,
                    }
                };
                let warning = (!matters).then(|| Diagnostic {
                    origin: Some(origin.clone()),
                    message: format!("{option}: {}", reason()),
                });
                let known = self
                    .found
                    .entry((origin.clone(), option, need.leader))
                    .or_insert_with(|| warning.clone());
                if warning.is_none() {
                    *known = None;
                }
            }
        }
    }

    /// A warning for each option that had an effect on no job; if it has several conditions, about the first.
    pub fn warnings(self) -> Vec<Diagnostic> {
        let rank = |leader: &str| NEEDS.iter().position(|need| need.leader == leader);
        let mut found: Vec<_> =
            self.found.into_iter().filter_map(|(key, warning)| Some((key, warning?))).collect();
        found.sort_by_key(|((_, option, leader), _)| (*option, rank(leader)));
        found.dedup_by(|((origin, option, _), _), ((other_origin, other, _), _)| {
            option == other && origin == other_origin
        });
        found.into_iter().map(|(_, warning)| warning).collect()
    }
}

/// Whether the value that applies switches the option off.
fn is_nothing(job: &JobOptions, option: &str) -> bool {
    let given = job.given.iter().rev().chain(job.given_global.iter().rev()).find(|(name, _)| name == option);
    match (given, find(option, &job.ioengine)) {
        (Some((_, text)), Some(definition)) => asks_for_nothing(definition, Some(text)),
        _ => false,
    }
}

/// The options of the table, by their canonical names.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NEEDS.iter().flat_map(|need| need.options.iter().copied())
}
