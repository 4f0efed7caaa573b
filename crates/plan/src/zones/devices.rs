//! The devices whose zones the workers of a run share, and notes about them for the user.

use super::{most_open_of_device, zones_of};
use crate::{FileLayout, Layout, Plan, Problem, WorkerPlan, ZonedFile};
use iolite_host::{FileKey, Machine, Zone, ZoneCondition, ZoneKind};
use iolite_options::JobOptions;
use iolite_types::Direction;
use iolite_types::units::exact_bytes;
use std::path::PathBuf;

/// A device or file whose zones the workers of a run share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonedDevice {
    /// The names by which workers know it.
    pub names: Vec<PathBuf>,
    /// Its zones when the run begins.
    pub zones: Vec<Zone>,
    /// They are the device's own.
    pub is_real: bool,
    /// Closed, partly written zones count as open.
    pub counts_closed: bool,
    /// The regions that are written to; the open zones in them count.
    pub written: Vec<(u64, u64)>,
    /// Notes for the user about their use: the index of a worker, and a text.
    pub notes: Vec<(usize, String)>,
}

impl ZonedDevice {
    /// Whether a zone counts as open.
    pub fn is_open(&self, zone: &Zone) -> bool {
        self.written.iter().any(|&region| self.is_open_in(zone, region))
    }

    fn is_open_in(&self, zone: &Zone, (from, to): (u64, u64)) -> bool {
        let is_written = zone.start < to && from < zone.start + zone.size;
        let counts = match zone.condition {
            ZoneCondition::ImplicitlyOpen | ZoneCondition::ExplicitlyOpen => true,
            ZoneCondition::Closed => self.counts_closed,
            _ => false,
        };
        counts && self.is_real && is_written
    }
}

impl Plan {
    /// The devices whose zones the workers share.
    ///
    /// # Errors
    /// Jobs contradict each other about a device, or more of its zones are open than allowed.
    pub fn zoned_devices(
        &self,
        layouts: &[Layout],
        machine: &dyn Machine,
    ) -> Result<Vec<ZonedDevice>, Vec<Problem>> {
        let mut devices = Vec::new();
        let mut problems: Vec<Problem> = Vec::new();
        for (worker, layout) in self.workers.iter().zip(layouts) {
            for file in layout.files.iter().filter(|file| file.zoned.is_some()) {
                if let Err(message) = self.join(&mut devices, worker, file, machine) {
                    let problem = Problem::of_job(&self.job_of(worker).name, message);
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        problems.extend(self.by_two_nodes(layouts, machine));
        problems.extend(self.by_different_ranges(layouts, machine));
        if !problems.is_empty() {
            return Err(problems);
        }
        let devices =
            devices.into_iter().map(|(key, device)| self.with_crowds(&key, device, layouts, machine));
        Ok(devices.collect())
    }

    /// Workers that change the same zones of a device by different nodes at the same time. Since Linux 6.10 the kernel
    /// keeps write pointers of a block device, and it does not see passthrough commands.
    fn by_two_nodes(&self, layouts: &[Layout], machine: &dyn Machine) -> Vec<Problem> {
        let mut users: Vec<(FileKey, usize, &FileLayout)> = Vec::new();
        for (worker, layout) in self.workers.iter().zip(layouts) {
            if self.job_of(worker).options.changes_data() {
                let real = layout.files.iter().filter(|file| file.zoned.is_some_and(|zoned| zoned.is_real));
                users.extend(real.map(|file| (machine.key(&file.path), worker.index, file)));
            }
        }
        if users.iter().all(|(_, _, file)| file.kind == users[0].2.kind) {
            return Vec::new();
        }
        let mut problems: Vec<Problem> = Vec::new();
        for (key, one, file) in &users {
            let rival = users.iter().find(|(of, other, rival)| {
                let meets =
                    file.offset < rival.offset + rival.length && rival.offset < file.offset + file.length;
                rival.kind != file.kind
                    && of == key
                    && meets
                    && (one == other || self.run_together(*one, *other))
            });
            let Some((_, other, rival)) = rival else { continue };
            let options = |worker: usize| &self.job_of(&self.workers[worker]).options;
            let message = format!(
                "filename: job {} changes the same zones by {}, which {} does not see; name one node in both, give each its own \
                 zones (offset, size), or let one wait (stonewall, wait_for)",
                options(*other).name,
                rival.path.display(),
                file.path.display()
            );
            let problem = Problem::of(options(*one), "filename", message);
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }

    /// Jobs that reset zones by a threshold and write to different ranges of a device. fio refuses them. Here each job
    /// compares the written bytes of its own range, so they are refused under the name `fio` only.
    fn by_different_ranges(&self, layouts: &[Layout], machine: &dyn Machine) -> Vec<Problem> {
        let mut ranges: Vec<(FileKey, (u64, u64))> = Vec::new();
        let mut problems: Vec<Problem> = Vec::new();
        for (worker, layout) in self.workers.iter().zip(layouts) {
            let options = &self.job_of(worker).options;
            let threshold = options.zones.zone_reset_threshold;
            if !options.as_fio || threshold <= 0.0 || !options.pattern.rw.writes() {
                continue;
            }
            for file in layout.files.iter().filter(|file| file.zoned.is_some()) {
                let (key, range) = (machine.key(&file.path), (file.offset, file.length));
                if ranges.iter().any(|(of, other)| *of == key && *other != range) {
                    let message = format!(
                        "multi-jobs with different write ranges are not supported with zone_reset_threshold \
                         (zone_reset_threshold={threshold}: the jobs that write to {} need the same offset and size; leave \
                         it out)",
                        file.path.display()
                    );
                    let problem = Problem::of(options, "zone_reset_threshold", message);
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
                ranges.push((key, range));
            }
        }
        problems
    }

    /// Adds notes if more workers write to a device at a time than zones of it may be open.
    fn with_crowds(
        &self,
        key: &FileKey,
        mut device: ZonedDevice,
        layouts: &[Layout],
        machine: &dyn Machine,
    ) -> ZonedDevice {
        let all = || self.workers.iter().zip(layouts);
        let writers = all().filter(|(worker, _)| self.job_of(worker).options.pattern.rw.writes());
        let on_it = |layout: &Layout| {
            let file = layout.files.iter().find(|file| machine.key(&file.path) == *key)?;
            Some((file.zoned?.most_open, file.path.clone()))
        };
        let writers: Vec<_> = writers.filter_map(|(worker, layout)| Some((worker, on_it(layout)?))).collect();
        for (place, (worker, (most, path))) in writers.iter().enumerate() {
            let is_first = writers[..place].iter().all(|(before, _)| before.wave != worker.wave);
            let count = writers.iter().filter(|(other, _)| other.wave == worker.wave).count();
            if is_first && *most > 0 && count > *most as usize {
                let text = format!(
                    "{count} workers write to {path}, and only {most} of its zones may be open at a time: they wait for one \
                     another; let fewer write, or raise max_open_zones if the device allows it",
                    path = path.display()
                );
                device.notes.push((worker.index, text));
            }
        }
        device
    }

    /// Adds a worker's file to the devices.
    fn join(
        &self,
        devices: &mut Vec<(FileKey, ZonedDevice)>,
        worker: &WorkerPlan,
        file: &FileLayout,
        machine: &dyn Machine,
    ) -> Result<(), String> {
        let Some(zoned) = file.zoned else { return Ok(()) };
        let options = &self.job_of(worker).options;
        let writes = options.pattern.rw.writes() && options.changes_data();
        let key = machine.key(&file.path);
        let place = match devices.iter().position(|(other, _)| *other == key) {
            Some(place) => place,
            None => {
                let device = ZonedDevice {
                    names: Vec::new(),
                    zones: zones_of(options, file, zoned, machine)?,
                    is_real: zoned.is_real,
                    counts_closed: most_open_of_device(&file.path, machine).1,
                    written: Vec::new(),
                    notes: Vec::new(),
                };
                devices.push((key, device));
                devices.len() - 1
            }
        };
        let device = &mut devices[place].1;
        if device.zones.first().is_some_and(|zone| zone.size != zoned.size) {
            let (path, size, first) = (file.path.display(), zoned.size, device.zones[0].size);
            return Err(options.reason(
                format_args!("{path}: zonesize {size} does not match the device zone size {first}."),
                format!(
                    "zonesize={size}: another job divides {path} into zones of another size; give all the same zonesize"
                ),
            ));
        }
        if !device.names.contains(&file.path) {
            device.names.push(file.path.clone());
        }
        let region = (file.offset, file.offset + file.length);
        if writes && device.written.last() != Some(&region) {
            device.written.push(region);
        }
        if writes && let Some(text) = waste(options, file, device) {
            let is_known =
                |(known, told): &(usize, String)| self.workers[*known].job == worker.job && *told == text;
            if !device.notes.iter().any(is_known) {
                device.notes.push((worker.index, text));
            }
        }
        if writes { not_too_many_open(options, file, zoned, device) } else { Ok(()) }
    }
}

/// Checks that a region does not have more open zones than a worker may have.
fn not_too_many_open(
    options: &JobOptions,
    file: &FileLayout,
    zoned: ZonedFile,
    device: &ZonedDevice,
) -> Result<(), String> {
    let region = (file.offset, file.offset + file.length);
    let open = device.zones.iter().filter(|zone| device.is_open_in(zone, region)).count();
    let limits =
        [("max_open_zones", zoned.most_open), ("job_max_open_zones", options.zones.job_max_open_zones)];
    match limits.into_iter().find(|&(_, most)| most > 0 && open > most as usize) {
        None => Ok(()),
        Some((option, most)) => Err(options.reason(
            "Number of open zones exceeds max_open_zones limit",
            format!(
                "{option}={most}: {open} zones of {path} are open already; reset or finish some (blkzone reset {path}), or \
                 allow more",
                path = file.path.display()
            ),
        )),
    }
}

/// The space that stays unwritten because the capacity of zones is not a multiple of the block size.
fn waste(options: &JobOptions, file: &FileLayout, device: &ZonedDevice) -> Option<String> {
    let smallest = options.block_size(Direction::Write).min().max(1);
    let is_within = |zone: &&Zone| zone.start >= file.offset && zone.start < file.offset + file.length;
    let mut sequential =
        device.zones.iter().filter(is_within).filter(|zone| zone.kind != ZoneKind::Conventional);
    let capacity = sequential.next()?.capacity;
    let left = capacity % smallest;
    (left > 0 && !options.zones.write_zone_remainder).then(|| {
        format!(
            "blocks of {} do not divide the {} of a zone of {}: {} of each stay unwritten; use blocks that do, or \
             write_zone_remainder=1",
            exact_bytes(smallest),
            exact_bytes(capacity),
            file.path.display(),
            exact_bytes(left)
        )
    })
}
