//! Rules between the options of one job: how one affects another.
//!
//! These are the rules of the language, which apply wherever the job runs. They are applied once, when all options of
//! a job are known.

use crate::engines::{Capability, Data, HttpOptions, IscsiOptions, LibcufileOptions, NbdOptions};
use crate::values::LIST_TOO_LONG;
use crate::{Diagnostic, JobOptions, Origin, ReadWrite, Verify, engines};
use iolite_types::Direction;

/// Applies all rules.
pub(crate) fn settle(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    // Other rules ask the engine that does the work.
    if let Some(message) = engines::settle_stand_in(job) {
        warnings.push(Diagnostic { origin: origin(job, "ioengine"), message });
    }
    settle_names(job, warnings);
    settle_mix(job);
    settle_random_map(job, warnings);
    settle_depth(job, warnings);
    settle_buffers(job, warnings);
    settle_memory_of_gpu(job, warnings);
    settle_time(job, warnings);
    settle_think_time(job, warnings);
    settle_intended_starts(job, warnings);
    settle_steady_state(job, warnings);
    settle_ranges(job, warnings);
    settle_comparisons(job, warnings);
    settle_polled_trims(job, warnings);
    settle_syncs(job, warnings);
    settle_logs(job, warnings);
    settle_verification(job, warnings);
    settle_traces(job, warnings);
    settle_device(job);
    settle_engine(job, warnings);
    settle_http(job, warnings);
    settle_other_end(job);
    if job.zones.zonerange == 0 {
        job.zones.zonerange = job.zones.zonesize;
    }
    if job.durability.atomic {
        job.durability.direct = true;
    }
    if job.files.pre_read {
        // Invalidating would drop the data just read into the cache.
        job.files.invalidate = false;
    }
}

/// Warns of the engine's own options that have no effect.
fn settle_engine(job: &JobOptions, warnings: &mut Vec<Diagnostic>) {
    for (name, why) in job.engine.without_effect().into_iter().filter(|(name, _)| job.is_set(name)) {
        let message = format!("{name}: has no effect: {why}");
        warnings.push(Diagnostic { origin: origin(job, name), message });
    }
}

/// Notes whether the region is given. Warns of secrets that would travel unencrypted: an eavesdropper could read them.
fn settle_http(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    let region_is_given = job.is_set("http_s3_region");
    if let Some(own) = job.engine.of_mut::<HttpOptions>() {
        own.region_is_given = region_is_given;
    }
    if let Some(own) = job.engine.of::<HttpOptions>().filter(|own| own.identifies_in_the_open()) {
        let message = format!(
            "https=off: keys, passwords or data go to {} unencrypted, and whoever is in between can read them; use \
             https=on",
            own.http_host
        );
        warnings.push(Diagnostic { origin: origin(job, "http_host"), message });
    }
}

/// The address of a device on a server identifies it: if no name is given, all clones of a job use the same device.
fn settle_device(job: &mut JobOptions) {
    let has_names = job.files.names_files() || job.is_set("filename_format");
    if job.engine.of::<NbdOptions>().is_some() && !has_names {
        job.files.filename = vec!["nbd".to_owned()];
    }
    let Some(own) = job.engine.of_mut::<IscsiOptions>() else { return };
    job.files.filename = own.settle_names(&job.files.filename);
    // Passwords are taken from filename= only; here they would be in messages.
    for name in [Some(&mut job.files.filename_format), job.files.opendir.as_mut()].into_iter().flatten() {
        *name = engines::masked(name).into_owned();
    }
}

/// Data that an engine sends to a peer cannot be read back: the receiver verifies it. Networks count in bits.
fn settle_other_end(job: &mut JobOptions) {
    let Some(engine) = job.chosen_engine() else { return };
    if engine.facets.data == Data::OtherEnd {
        job.verification.do_verify = false;
    }
    if engine.facets.can(Capability::CountBits) && job.measurement.unit_base == 0 {
        job.measurement.unit_base = 1;
    }
}

/// The place where an option was given.
fn origin(job: &JobOptions, name: &str) -> Option<Origin> {
    job.origins.get(name).cloned()
}

/// If `nrfiles` comes after a list of names, it limits the list.
fn settle_names(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    let (given, used) = (job.files.filename.len(), job.files.most_names());
    if used < given {
        job.files.filename.truncate(used);
        let message =
            format!("nrfiles={used}: behind filename, only the first {used} of its {given} names are used");
        warnings.push(Diagnostic { origin: origin(job, "nrfiles"), message });
    }
}

/// Shares of trims turn a mix of reads and writes into one of three directions.
fn settle_mix(job: &mut JobOptions) {
    let Some(shares) = job.pattern.rwtmix else { return };
    job.pattern.rw = match job.pattern.rw {
        ReadWrite::Rw if shares[Direction::Trim] > 0 => ReadWrite::RwTrim,
        ReadWrite::RandRw if shares[Direction::Trim] > 0 => ReadWrite::RandRwTrim,
        other => other,
    };
    job.pattern.rwmixread = shares[Direction::Read];
}

/// Offsets that are not multiples of the block size do not fit a map of blocks.
fn settle_random_map(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    if job.pattern.norandommap || !job.pattern.rw.is_random() {
        return;
    }
    let own_alignment = |direction: Direction| {
        let alignment = job.pattern.ba[direction];
        alignment != 0 && alignment != job.block_size(direction).min()
    };
    if job.pattern.rw.directions().any(own_alignment) {
        job.pattern.norandommap = true;
        warnings.push(Diagnostic {
            origin: origin(job, "ba"),
            message: "ba: an alignment other than the block size switches the random map off (norandommap)"
                .to_owned(),
        });
    }
}

/// A synchronous engine has one I/O in flight.
fn settle_depth(job: &JobOptions, warnings: &mut Vec<Diagnostic>) {
    let depth = job.depth.iodepth;
    let alone = job.chosen_engine().is_some_and(|engine| !job.can_queue(engine.facets));
    if depth > 1 && alone && job.is_set("iodepth") {
        warnings.push(Diagnostic {
            origin: origin(job, "iodepth"),
            message: format!(
                "iodepth={depth}: ioengine={} is synchronous, its depth is always 1",
                job.ioengine
            ),
        });
    }
}

/// A pattern takes precedence over zeroes, and neither is scrambled unless requested. Compressible and duplicate data
/// is generated for each write.
fn settle_buffers(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    if !job.buffers.buffer_pattern.is_empty() {
        job.buffers.zero_buffers = false;
    }
    if let Some(why) =
        ["buffer_compress_percentage", "dedupe_percentage"].into_iter().find(|&name| job.is_set(name))
    {
        let mut overruled = |name: &str| {
            warnings.push(Diagnostic {
                origin: origin(job, name),
                message: format!("{name}: has no effect together with {why}"),
            });
        };
        if job.is_set("refill_buffers") && !job.buffers.refill_buffers {
            overruled("refill_buffers");
        }
        let mixed = job.buffers.buffer_compress_percentage > 0 || job.buffers.dedupe_percentage > 0;
        if job.buffers.zero_buffers && mixed {
            overruled("zero_buffers");
            job.buffers.zero_buffers = false;
        }
        job.buffers.refill_buffers = true;
    }
    let is_all_pattern =
        !job.buffers.buffer_pattern.is_empty() && job.buffers.buffer_compress_percentage == 0;
    if is_all_pattern && job.buffers.dedupe_percentage > 0 && job.is_set("dedupe_percentage") {
        let message = "dedupe_percentage: has no effect together with buffer_pattern".to_owned();
        warnings.push(Diagnostic { origin: origin(job, "dedupe_percentage"), message });
    }
    let fixed = job.buffers.zero_buffers || !job.buffers.buffer_pattern.is_empty();
    if fixed && !job.is_set("scramble_buffers") {
        job.buffers.scramble_buffers = false;
    }
}

/// Unless data is verified, a GPU's memory keeps what buffers had when the job began: patterns, zeros and compressible data
/// get there, but what changes from write to write does not.
fn settle_memory_of_gpu(job: &JobOptions, warnings: &mut Vec<Diagnostic>) {
    let is_on_gpu = job.engine.of::<LibcufileOptions>().is_some();
    if !is_on_gpu || job.verification.is_on() || !(job.pattern.rw.writes() || job.is_replay()) {
        return;
    }
    let asked = [
        ("refill_buffers", job.buffers.refill_buffers),
        ("scramble_buffers", job.buffers.scramble_buffers),
        ("dedupe_percentage", job.buffers.dedupe_percentage > 0),
    ];
    for (name, _) in asked.into_iter().filter(|&(name, is_on)| is_on && job.is_set(name)) {
        let message =
            format!("{name}: has no effect without verify: new data is not copied to the GPU for each write");
        warnings.push(Diagnostic { origin: origin(job, name), message });
    }
}

/// The most percentiles that fio reports, and for which its terse format has room.
const PERCENTILES_OF_FIO: usize = 20;

/// Under the name `fio`, a report has as many percentiles as fio's: the first of those that were given.
pub(crate) fn keep_percentiles_of_fio(job: &mut JobOptions) -> Option<Diagnostic> {
    let list = &mut job.measurement.percentile_list;
    if list.len() <= PERCENTILES_OF_FIO {
        return None;
    }
    let left_out: Vec<String> = list.drain(PERCENTILES_OF_FIO..).map(|one| one.to_string()).collect();
    let message =
        format!("percentile_list: {LIST_TOO_LONG} {PERCENTILES_OF_FIO} (left out: {})", left_out.join(", "));
    Some(Diagnostic { origin: origin(job, "percentile_list"), message })
}

/// The fields of a terse line do not change, however many percentiles there are.
pub(crate) fn percentiles_beyond_terse(job: &JobOptions) -> Option<Diagnostic> {
    let given = job.measurement.percentile_list.len();
    (given > PERCENTILES_OF_FIO).then(|| Diagnostic {
        origin: origin(job, "percentile_list"),
        message: format!(
            "percentile_list: a terse line has room for the lowest {PERCENTILES_OF_FIO} of {given} only"
        ),
    })
}

/// The warning about `time_based` alone.
pub(crate) const NEEDS_RUNTIME: &str = "time_based: needs a runtime, ignored without one";

/// Without a runtime, `time_based` has no meaning.
fn settle_time(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    if job.schedule.time_based && job.schedule.runtime == 0 {
        job.schedule.time_based = false;
        warnings.push(Diagnostic { origin: origin(job, "time_based"), message: NEEDS_RUNTIME.to_owned() });
    }
}

/// Only a rate or a trace determines when an I/O is intended to start.
fn settle_intended_starts(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    let replays = job.is_replay() && !job.replay.replay_no_stall;
    let has_rate = Direction::ALL.into_iter().any(|direction| job.has_rate(direction));
    if job.measurement.lat_from_intended_start && !has_rate && !replays {
        job.measurement.lat_from_intended_start = false;
        warnings.push(Diagnostic {
            origin: origin(job, "lat_from_intended_start"),
            message: "lat_from_intended_start: needs a rate (rate or rate_iops), ignored without one"
                .to_owned(),
        });
    }
}

/// The window for a steady state holds a whole number of measurements, at least one.
fn settle_steady_state(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    job.measurement.steadystate_check_interval = job.measurement.steadystate_check_interval.max(1);
    let (duration, interval) =
        (job.measurement.steadystate_duration, job.measurement.steadystate_check_interval);
    let (option, what) = if duration == 0 && job.is_set("steadystate") {
        ("steadystate", "steadystate: needs steadystate_duration, ignored without one".to_owned())
    } else if duration > 0 && duration < interval {
        job.measurement.steadystate_duration = 0;
        let what = "steadystate_duration: is shorter than steadystate_check_interval, so steady state is not looked for";
        ("steadystate_duration", what.to_owned())
    } else if duration % interval != 0 {
        job.measurement.steadystate_duration -= duration % interval;
        let what = "steadystate_duration: rounded down to whole intervals of steadystate_check_interval";
        ("steadystate_duration", what.to_owned())
    } else {
        return;
    };
    warnings.push(Diagnostic { origin: origin(job, option), message: what });
}

/// Only trims carry ranges.
fn settle_ranges(job: &JobOptions, warnings: &mut Vec<Diagnostic>) {
    if job.extent.num_range > 1 && !job.pattern.rw.trims() {
        let message =
            format!("num_range={}: has no effect on a job that does not trim", job.extent.num_range);
        warnings.push(Diagnostic { origin: origin(job, "num_range"), message });
    }
}

/// Only data that the job itself has written is compared.
fn settle_comparisons(job: &JobOptions, warnings: &mut Vec<Diagnostic>) {
    let is_asked = job.engine.of::<engines::IoUringCmdOptions>().is_some_and(|own| own.compares);
    if !is_asked || job.compares_by_device() {
        return;
    }
    let why = match job.verification.is_on() {
        true => "a job that only reads checks its own reads",
        false => "without verify=",
    };
    let message = format!("verify_mode=compare: has no effect: {why}");
    warnings.push(Diagnostic { origin: origin(job, "verify_mode"), message });
}

/// Trims of some drivers do not go through queues that are polled.
fn settle_polled_trims(job: &JobOptions, warnings: &mut Vec<Diagnostic>) {
    let is_polled = |own: &engines::LibblkioOptions| own.hipri && own.opens_files();
    let is_concerned = job.engine.of().is_some_and(is_polled);
    if is_concerned && job.pattern.rw.trims() && job.depth.iodepth > 1 {
        let message = "hipri: trims run one at a time, whatever iodepth is, because queues that are polled do not take them";
        warnings.push(Diagnostic { origin: origin(job, "hipri"), message: message.to_owned() });
    }
}

/// A job that only creates, looks up or removes names writes no data that could be synced.
fn settle_syncs(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    if job.chosen_engine().and_then(|engine| engine.facets.name_use()).is_none() {
        return;
    }
    while let Some(option) = job.sync_asked_for() {
        let engine = &job.ioengine;
        let why = match engine.as_str() {
            "filewrite" => "which closes each file at once; file_sync=1 syncs it before",
            _ => "which writes no data to be synced",
        };
        let message = format!("{option}: has no effect with ioengine={engine}, {why}");
        warnings.push(Diagnostic { origin: origin(job, option), message });
        let durability = &mut job.durability;
        match option {
            "fsync" => durability.fsync = 0,
            "fdatasync" => durability.fdatasync = 0,
            "sync_file_range" => durability.sync_file_range = None,
            "end_fsync" => durability.end_fsync = false,
            "end_syncfs" => durability.end_syncfs = false,
            _ => durability.fsync_on_close = false,
        }
    }
}

/// Histograms are logged only per window.
fn settle_logs(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    if job.logs.write_hist_log.is_some() && job.logs.log_hist_msec == 0 {
        warnings.push(Diagnostic {
            origin: origin(job, "write_hist_log"),
            message: "write_hist_log: the log stays empty without log_hist_msec".to_owned(),
        });
    }
}

/// Clones that record into one file mix their records.
fn settle_traces(job: &JobOptions, warnings: &mut Vec<Diagnostic>) {
    if job.replay.write_iolog.is_some() && job.schedule.numjobs > 1 {
        let numjobs = job.schedule.numjobs;
        warnings.push(Diagnostic {
            origin: origin(job, "write_iolog"),
            message: format!("write_iolog: numjobs={numjobs}: all clones record into one file, mixed up"),
        });
    }
}

/// The busy part of a pause is not longer than the pause.
fn settle_think_time(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    if job.rates.thinktime > 0 && job.rates.thinktime_spin > job.rates.thinktime {
        warnings.push(Diagnostic {
            origin: origin(job, "thinktime_spin"),
            message: format!(
                "thinktime_spin: {} µs are longer than the pause of {} µs (thinktime), all of which is busy",
                job.rates.thinktime_spin, job.rates.thinktime
            ),
        });
        job.rates.thinktime_spin = job.rates.thinktime;
    }
}

/// How the options of verification affect each other.
fn settle_verification(job: &mut JobOptions, warnings: &mut Vec<Diagnostic>) {
    let verification = &mut job.verification;
    if !verification.is_on() && !verification.verify_pattern.is_empty() && !job.origins.contains_key("verify")
    {
        // A pattern to verify implies verification.
        verification.verify = Verify::PatternHeader;
    }
    let mut warn = |option: &str, message: String| {
        warnings.push(Diagnostic { origin: job.origins.get(option).cloned(), message });
    };
    if verification.verify_only && !verification.is_on() {
        warn("verify_only", "verify_only: without verify there is nothing to check".to_owned());
    }
    let interval = verification.verify_interval;
    if verification.is_on()
        && interval > 0
        && let Some(size) =
            job.block_size(job.verified_direction()).not_multiple_of(interval, job.pattern.bs_unaligned)
    {
        warn(
            "verify_interval",
            format!(
                "verify_interval={interval}: does not divide blocks of {size} bytes, they get one header each"
            ),
        );
    }
}
