//! Zones of devices (`zonemode=zbd`): where a job may use them, and how.
//!
//! A zoned device reports its zones. On any other block device or regular file, `zonesize` defines emulated zones,
//! which exist only for the run and are empty when it begins.

mod devices;

pub use devices::ZonedDevice;

use crate::{FileLayout, JobPlan, Layout, ZonedFile};
use iolite_host::{DeviceClass, Machine, Zone, ZoneCondition, ZoneKind};
use iolite_options::engines::{
    Capability, Completion, EngineInfo, IoUringCmdOptions, IoUringOptions, NvmeWriteMode, Target,
};
use iolite_options::{JobOptions, SizeValue, SubmitMode, ZoneSkip};
use iolite_types::units::exact_bytes;
use iolite_types::{Direction, FileKind};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;

/// The smallest emulated zones, in bytes.
const SMALLEST_ZONE: u64 = 512;

/// The most emulated zones of a file. Each takes memory.
const MOST_ZONES: u64 = 1 << 22;

/// How a worker uses zones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ZoneRules {
    /// Bytes of a zone, the same for all its files.
    pub zone: u64,
    /// Bytes skipped behind a finished zone.
    pub skip: u64,
    /// Reads may go beyond the write pointer.
    pub read_beyond: bool,
    /// Full zones are written again.
    pub rewrites: bool,
    /// All zones are reset before each pass.
    pub begins_empty: bool,
    /// The rest of a zone is written with a smaller block.
    pub writes_remainder: bool,
    /// Zones are reset when more than this share is written.
    pub reset_threshold: f64,
    /// The next zone is reset after this many writes; 0 = never.
    pub reset_every: u64,
    /// The most zones that this worker may have open; 0 = no such limit.
    pub most_open: u32,
    /// After a failed write, the device is asked for the write pointer.
    pub recovers: bool,
    /// A zone of a device has one write in flight at a time, because the engine submits writes in any order.
    pub one_by_one: bool,
    /// Skips past the end continue at the beginning.
    pub skip_wraps: bool,
    /// A pass starts over on the zones until its bytes are done.
    pub laps: bool,
}

/// Obstacles that follow from the options alone.
pub(crate) fn obstacles(options: &JobOptions, engine: &EngineInfo) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if !options.zones.is_zbd() {
        return found;
    }
    let name = engine.name;
    if !engine.facets.has_local_files() || !engine.facets.moves_data() {
        found.push((
            "zonemode",
            format!("zonemode=zbd: ioengine={name} does no I/O to devices; use psync, libaio or io_uring"),
        ));
    }
    if options.is_replay() {
        found.push((
            "zonemode",
            "zonemode=zbd: a replay writes where its trace says; leave zonemode out".to_owned(),
        ));
    }
    if options.files.openfiles != 0 {
        found
            .push(("openfiles", "openfiles: with zonemode=zbd all devices are open all the time".to_owned()));
    }
    if options.mixes_sizes_by_randomness() {
        let message = "bs_is_seq_rand: with zonemode=zbd each direction has its own block sizes; leave bs_is_seq_rand out, \
                       or make the job sequential or random throughout";
        found.push(("bs_is_seq_rand", message.to_owned()));
    }
    if options.verification.trim_percentage > 0 {
        let message =
            "trim_percentage: with zonemode=zbd only whole zones are trimmed; leave trim_percentage out";
        found.push(("trim_percentage", message.to_owned()));
    }
    if options.mix().is_some() && options.pattern.rw.trims() {
        let message = "rwtmix: with zonemode=zbd a trim is the reset of a whole zone; use rw=trimwrite, or a job of trims beside \
                       one of reads and writes";
        found.push(("rwtmix", message.to_owned()));
    }
    let is_random = options.pattern.rw.is_random() && options.pattern.rw.writes();
    let several = options.most_in_flight(engine.facets) > 1;
    if options.relies_on_earlier_run() && is_random && (several || options.schedule.numjobs > 1) {
        let message = "zonemode=zbd: which zones a run has written at random with several writes at once cannot be told \
                       from its options; use iodepth=1, or sequential writes";
        found.push(("zonemode", message.to_owned()));
    } else if options.relies_on_earlier_run() && options.is_read_write_mix() && several {
        let message = "zonemode=zbd: how much a mix with several I/Os at once has written cannot be told from its options, \
                       because a read becomes a write where no written data is left to read; use iodepth=1, or only writes";
        found.push(("zonemode", message.to_owned()));
    }
    if options.relies_on_earlier_run()
        && options.appends()
        && (options.depth.iodepth > 1 || options.schedule.numjobs > 1)
    {
        let message = "write_mode=append: where the device has put the blocks of another run is known only if it wrote one after \
                       the other; use iodepth=1, or verify in the run that writes";
        found.push(("write_mode", message.to_owned()));
    }
    if options.as_fio && options.verification.is_on() && options.verification.experimental_verify {
        let message = "zonemode=zbd does not support experimental verify (leave experimental_verify out)";
        found.push(("experimental_verify", message.to_owned()));
    }
    let writes = options.pattern.rw.writes();
    if options.zones.recover_zbd_write_error && writes {
        if !options.errors.continue_on_error.write {
            let message =
                "recover_zbd_write_error=1: the first error ends the job; add continue_on_error=write";
            let in_fio = "recover_zbd_write_error works only when continue_on_error is set";
            found.push(("recover_zbd_write_error", options.reason(in_fio, message.to_owned())));
        }
        if options.verification.is_on() && !engine.facets.is_synchronous() {
            let message = format!(
                "recover_zbd_write_error=1: with ioengine={name} it is not known which data a failed write has left, \
                 and nothing can be verified; use a synchronous engine (psync)"
            );
            let in_fio = "recover_zbd_write_error for async IO engines does not support verify";
            found.push(("recover_zbd_write_error", options.reason(in_fio, message)));
        }
    }
    found
}

/// The options with sizes in zones (`4z`) converted to bytes.
///
/// # Errors
/// The size of a zone is unknown.
pub(crate) fn in_bytes<'a>(
    options: &'a JobOptions,
    paths: &[&Path],
    machine: &dyn Machine,
) -> Result<Cow<'a, JobOptions>, String> {
    let extent = &options.extent;
    let sizes = [
        ("size", extent.size.unwrap_or_default()),
        ("io_size", extent.io_size.unwrap_or_default()),
        ("offset", extent.offset),
        ("offset_increment", extent.offset_increment),
    ];
    let Some((option, zones)) = sizes.iter().find_map(|(option, size)| match size {
        SizeValue::Zones(zones) => Some((option, zones)),
        _ => None,
    }) else {
        return Ok(Cow::Borrowed(options));
    };
    let real = paths.iter().find_map(|path| Some(own_zones(path, machine)?.0));
    let zone = match (real, options.zones.zonesize) {
        (Some(size), _) => size,
        (None, 0) => {
            let path = paths.first().map_or_else(String::new, |path| path.display().to_string());
            return Err(format!(
                "{option}={zones}z: {path} has no zones; give zonesize=, or the size in bytes"
            ));
        }
        (None, size) => size,
    };
    let in_bytes = |size: SizeValue| match size {
        SizeValue::Zones(zones) => SizeValue::Bytes(u64::from(zones).saturating_mul(zone)),
        size => size,
    };
    let mut options = options.clone();
    let extent = &mut options.extent;
    (extent.size, extent.io_size) = (extent.size.map(in_bytes), extent.io_size.map(in_bytes));
    (extent.offset, extent.offset_increment) = (in_bytes(extent.offset), in_bytes(extent.offset_increment));
    Ok(Cow::Owned(options))
}

/// The size of the real zones of a device, and the limits of open and active zones.
fn own_zones(path: &Path, machine: &dyn Machine) -> Option<(u64, u64, u64)> {
    let found = machine.file(path).ok()??;
    if found.class == Some(DeviceClass::ScsiGeneric) {
        // A disk that has too many zones open for the next write closes one of them itself.
        let zones = machine.zones(path).ok()??;
        return Some((zones.first()?.size, 0, 0));
    }
    if found.is_block_device() {
        let zones = machine.disk(path)?.queue.zones?;
        return Some((zones.size, zones.most_open, zones.most_active));
    }
    let namespace = machine.namespace(path).ok()??;
    let zones = namespace.zones?;
    let size = zones.blocks.saturating_mul(namespace.format.data.into());
    Some((size, zones.most_open.into(), zones.most_active.into()))
}

/// Fits the regions of a layout to the zones of its files.
///
/// # Errors
/// Why the files cannot be used with zones, and the remedy.
pub(crate) fn fit(
    options: &JobOptions,
    engine: &EngineInfo,
    layout: &mut Layout,
    machine: &dyn Machine,
) -> Result<(), String> {
    if !options.zones.is_zbd() {
        return Ok(());
    }
    for file in &mut layout.files {
        let zoned = zoned_file(options, file, machine)?;
        check(options, file, zoned, machine)?;
        round(options, engine, file, zoned, machine)?;
        file.zoned = Some(zoned);
    }
    let sizes: Vec<u64> = layout.files.iter().filter_map(|file| Some(file.zoned?.size)).collect();
    if sizes.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(
            "zonemode=zbd: the zones of its devices differ in size; give each device a job".to_owned()
        );
    }
    Ok(())
}

fn zoned_file(options: &JobOptions, file: &FileLayout, machine: &dyn Machine) -> Result<ZonedFile, String> {
    let (path, zones) = (file.path.display(), &options.zones);
    let most_open = match zones.max_open_zones {
        0 if zones.ignore_zone_limits => 0,
        0 => most_open_of_device(&file.path, machine).0,
        asked => asked,
    };
    if let Some((size, ..)) = own_zones(&file.path, machine) {
        if zones.zonesize != 0 && zones.zonesize != size {
            let asked = zones.zonesize;
            return Err(options.reason(
                format_args!("{path} job parameter zonesize {asked} does not match disk zone size {size}."),
                format!(
                    "zonesize={asked}: the zones of {path} have {}; leave zonesize out",
                    exact_bytes(size)
                ),
            ));
        }
        return Ok(ZonedFile { size, is_real: true, most_open });
    }
    let is_namespace = || matches!(machine.namespace(&file.path), Ok(Some(_)));
    if !matches!(file.kind, FileKind::Regular | FileKind::Block) && !is_namespace() {
        return Err(format!(
            "zonemode=zbd: {path} is neither a block device nor a regular file, and has no zones"
        ));
    }
    match zones.zonesize {
        0 => Err(options.reason(
            format_args!(
                "{path}: Specifying the zone size is mandatory for regular file/block device with --zonemode=zbd"
            ),
            format!("zonemode=zbd: {path} has no zones; give the size of a zone (zonesize=)"),
        )),
        size if size < SMALLEST_ZONE => Err(options.reason(
            format_args!("{path}: zone size must be at least 512 bytes for --zonemode=zbd"),
            format!("zonesize={size}: a zone has at least {SMALLEST_ZONE} bytes"),
        )),
        size if zones.zonecapacity > size => Err(options.reason(
            format_args!(
                "{path}: job parameter zonecapacity {} is larger than zone size {size}",
                zones.zonecapacity
            ),
            format!(
                "zonecapacity={}: no more than the zone itself (zonesize={size}) can be used",
                zones.zonecapacity
            ),
        )),
        size => Ok(ZonedFile { size, is_real: false, most_open }),
    }
}

/// Checks the other requirements.
fn check(
    options: &JobOptions,
    file: &FileLayout,
    zoned: ZonedFile,
    machine: &dyn Machine,
) -> Result<(), String> {
    let (path, size, rw) = (file.path.display(), zoned.size, options.pattern.rw);
    let bytes = machine.size(&file.path).ok().flatten().unwrap_or(0);
    if bytes < size {
        return Err(options.reason(
            format_args!("{path}: file/device size {bytes} is smaller than zone size {size}"),
            format!(
                "zonemode=zbd: {path} has {}, less than a zone ({}); make it larger",
                exact_bytes(bytes),
                exact_bytes(size)
            ),
        ));
    }
    let count = size_of_zoned(options, file, machine) / size;
    if !zoned.is_real && count > MOST_ZONES {
        return Err(format!(
            "zonesize={size}: {path} would have {count} zones, and at most {MOST_ZONES} are possible; use larger zones"
        ));
    }
    let trim = options.block_size(Direction::Trim);
    if rw.trims() && trim.only() != Some(size) {
        return Err(options.reason(
            format_args!("{path}: trim block size {} is not the zone size {size}", trim.min()),
            format!(
                "rw={}: a trim is the reset of a zone of {path}, which has {}; use bs=,,{size}",
                rw.name(),
                exact_bytes(size)
            ),
        ));
    }
    if let ZoneSkip::Bytes(skip) = options.zones.zoneskip
        && !skip.is_multiple_of(size)
    {
        return Err(options.reason(
            format_args!("{path}: zoneskip {skip} is not a multiple of the device zone size {size}."),
            format!(
                "zoneskip={skip}: is not a multiple of the zones of {path} ({}); use zoneskip=1z",
                exact_bytes(size)
            ),
        ));
    }
    let own = options.zones.job_max_open_zones;
    if own > 0 && rw.writes() && zoned.most_open == 0 {
        return Err(options.reason(
            "'job_max_open_zones' cannot be used without a global open zones limit",
            format!(
                "job_max_open_zones={own}: nothing limits how many zones of {path} all workers together have open; add \
                 max_open_zones="
            ),
        ));
    }
    let most = most_open_of_device(&file.path, machine).0;
    let asked = options.zones.max_open_zones;
    if asked > most && most > 0 && !options.zones.ignore_zone_limits {
        return Err(options.reason(
            format_args!("Specified --max_open_zones ({asked}) is larger than max ({most})"),
            format!(
                "max_open_zones={asked}: {path} has at most {most} open zones; use max_open_zones={most}, or \
                 ignore_zone_limits=1 to try"
            ),
        ));
    }
    Ok(())
}

/// The most zones that a device has open (0 = no limit), and whether closed ones count.
fn most_open_of_device(path: &Path, machine: &dyn Machine) -> (u32, bool) {
    let Some((_, open, active)) = own_zones(path, machine) else { return (0, false) };
    let most = match (open, active) {
        (0, most) | (most, 0) => most,
        (open, active) => open.min(active),
    };
    (most.min(u64::from(u32::MAX)) as u32, active > 0)
}

/// The zones of a file, real or emulated.
fn zones_of(
    options: &JobOptions,
    file: &FileLayout,
    zoned: ZonedFile,
    machine: &dyn Machine,
) -> Result<Vec<Zone>, String> {
    if zoned.is_real {
        let zones = machine.zones(&file.path).map_err(|why| format!("{}: {why}", file.path.display()))?;
        return zones.ok_or_else(|| format!("{}: the system does not report its zones", file.path.display()));
    }
    let (size, capacity) = (zoned.size, options.zones.zonecapacity);
    let bytes = size_of_zoned(options, file, machine);
    let zone = |number: u64| Zone {
        start: number * size,
        size,
        capacity: if capacity == 0 { size } else { capacity },
        pointer: number * size,
        kind: ZoneKind::Sequential,
        condition: ZoneCondition::Empty,
    };
    Ok((0..bytes / size).map(zone).collect())
}

/// The future size of a file with emulated zones.
fn size_of_zoned(options: &JobOptions, file: &FileLayout, machine: &dyn Machine) -> u64 {
    let now = machine.size(&file.path).ok().flatten().unwrap_or(0);
    match options.extent.fill_device {
        // The final length of the file is not known; its zones are those of its present length.
        true => now,
        false => now.max(file.extend_to.unwrap_or(0)),
    }
}

/// Refuses writes through the page cache to sequential zones of a device, because the cache writes in any order. (Without
/// `direct`, fio refuses them in conventional zones as well.)
fn refuse_cached(
    options: &JobOptions,
    engine: &EngineInfo,
    path: &Path,
    in_sequence: bool,
) -> Result<(), String> {
    let path = path.display();
    // Commands bypass the cache.
    if matches!(engine.facets.target, Target::Nvme | Target::Scsi) {
        return Ok(());
    }
    if !options.durability.direct && (in_sequence || options.as_fio) {
        return Err(options.reason(
            "Using direct I/O is mandatory for writing to ZBD drives",
            format!(
                "zonemode=zbd: writes to {path} through the page cache do not arrive in sequence; add direct=1"
            ),
        ));
    }
    if in_sequence && engine.facets.can(Capability::CopyIntoFile) {
        return Err(format!(
            "zonemode=zbd: what ioengine={} writes to {path} goes through the page cache and does not arrive in sequence; \
             use psync, libaio or io_uring",
            engine.name
        ));
    }
    Ok(())
}

/// Rounds a region to complete zones, unless it has only conventional zones.
fn round(
    options: &JobOptions,
    engine: &EngineInfo,
    file: &mut FileLayout,
    zoned: ZonedFile,
    machine: &dyn Machine,
) -> Result<(), String> {
    let zones = zones_of(options, file, zoned, machine)?;
    let (from, to) = (file.offset, file.offset.saturating_add(file.length));
    let is_within = |zone: &&Zone| zone.start < to && from < zone.start + zone.size;
    let mut sequential = zones.iter().filter(is_within).filter(|zone| zone.kind != ZoneKind::Conventional);
    let first = sequential.next();
    if zoned.is_real && options.pattern.rw.writes() {
        refuse_cached(options, engine, &file.path, first.is_some())?;
    }
    let Some(first) = first else { return Ok(()) };
    let smallest = options.block_size(Direction::Write).min();
    if options.pattern.rw.writes() && first.capacity < smallest {
        return Err(options.reason(
            "I/O buflen exceeds zone size",
            format!(
                "bs: a block of {} does not fit into a zone of {}, which can hold {}; use smaller blocks",
                exact_bytes(smallest),
                file.path.display(),
                exact_bytes(first.capacity)
            ),
        ));
    }
    let start = from.checked_next_multiple_of(zoned.size).unwrap_or(from);
    let whole_end = zones.last().map_or(0, |zone| zone.start + zone.size);
    let end = if to >= whole_end { whole_end } else { to / zoned.size * zoned.size };
    if start >= end {
        let path = file.path.display();
        return Err(options.reason(
            format_args!("{path}: io_size must be at least one zone"),
            format!(
                "offset={from}: there is no whole zone of {path} in the {} from there; zones have {}, use sizes in zones \
                 (size=1z)",
                exact_bytes(file.length),
                exact_bytes(zoned.size)
            ),
        ));
    }
    (file.offset, file.length, file.amount) = (start, end - start, end - start);
    file.extend_to = file.extend_to.map(|wanted| wanted.max(end));
    Ok(())
}

/// Whether writes that are issued one after the other may reach the device in another order.
fn is_unordered(options: &JobOptions, engine: &EngineInfo) -> bool {
    // The order of commands is not kept, but commands that append need none.
    options.engine.of::<IoUringCmdOptions>().is_some_and(|own| !own.write_mode.is_only(NvmeWriteMode::Append))
        // The generic driver of SCSI may put a command in front of those that wait.
        || engine.facets.target == Target::Scsi
        || options.depth.io_submit_mode == SubmitMode::Offload
        || engine.facets.completion == Completion::LibraryThreads
        || options.engine.of::<IoUringOptions>().is_some_and(|own| own.force_async > 0)
}

/// How a worker uses zones; `None` = it does not.
pub(crate) fn rules(job: &JobPlan, layout: &Layout) -> Option<ZoneRules> {
    let options = &*job.options;
    let zone = layout.files.iter().find_map(|file| file.zoned)?.size;
    let zones = &options.zones;
    let verifies = options.verifies_writes();
    Some(ZoneRules {
        zone,
        skip: zones.skipped(zone),
        read_beyond: zones.read_beyond_wp,
        rewrites: !verifies,
        begins_empty: verifies,
        writes_remainder: zones.write_zone_remainder,
        reset_threshold: zones.zone_reset_threshold,
        reset_every: match zones.zone_reset_frequency {
            // Data to verify stays until it is read.
            frequency if frequency > 0.0 && !verifies => (1.0 / frequency) as u64,
            _ => 0,
        },
        most_open: zones.job_max_open_zones,
        // A failed Zone Append leaves no gap, and the commands after it continue.
        recovers: zones.recover_zbd_write_error || options.appends(),
        one_by_one: is_unordered(options, &job.engine)
            && layout.files.iter().any(|file| file.zoned.is_some_and(|zoned| zoned.is_real)),
        skip_wraps: layout.files.iter().all(|file| file.is_whole),
        // `io_size` is the amount of work. (`size` with `filesize` is not: it ends a pass early.)
        laps: options.extent.io_size.is_some(),
    })
}
