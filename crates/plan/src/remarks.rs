//! Remarks about jobs that do as they are told, but perhaps not what their user means.

use crate::Plan;
use iolite_host::{FileSystem, Machine};
use iolite_types::{BlockSize, Direction};
use std::path::Path;

/// A job may have millions of files.
const MOST_LOOKED_AT: usize = 100;

impl Plan {
    /// Remarks for the user, at most one per job.
    pub fn remarks(&self, machine: &dyn Machine) -> Vec<String> {
        let jobs = self.jobs.iter().filter(|job| {
            job.options.durability.direct && job.does_io() && job.engine.facets.has_local_files()
        });
        let told = jobs.filter_map(|job| {
            let files = &self.workers[job.first_worker].files;
            let path = files.iter().take(MOST_LOOKED_AT).find(|path| is_in_memory(machine, path))?;
            Some(format!(
                "{}: direct=1: {} is on a file system in memory (tmpfs), so no device is measured; choose a directory on one",
                job.name,
                path.display()
            ))
        });
        told.collect()
    }

    /// What fio says on standard error about the jobs that it is about to run, in its words and as often as it does: about
    /// alignments once per job, about the others once per clone.
    pub fn complaints_of_fio(&self) -> Vec<&'static str> {
        let told = self.workers.iter().flat_map(|worker| {
            let options = &*self.jobs[worker.job].options;
            let pattern = &options.pattern;
            // (It looks at all directions, also those that the job does not use.)
            let sizes = Direction::ALL.map(|direction| options.block_size_as_given(direction));
            let smallest = sizes.iter().map(BlockSize::min).min();
            let is_aligned =
                sizes.iter().zip(pattern.ba.values).any(|(size, ba)| ba != 0 && ba != size.min());
            let has_own_map = options.is_set("norandommap") && pattern.norandommap;
            let varies = sizes.iter().map(BlockSize::max).max() > smallest;
            [
                (
                    worker.clone == 0 && is_aligned && pattern.rw.is_random() && !has_own_map,
                    "Any use of blockalign= turns off randommap",
                ),
                (
                    pattern.norandommap && options.verification.is_on() && varies,
                    "norandommap given for variable block sizes, verify limited",
                ),
                (pattern.bs_unaligned && options.durability.direct, "bs_unaligned may not work with raw io"),
            ]
        });
        told.filter_map(|(applies, words)| applies.then_some(words)).collect()
    }
}

/// Whether this file is, or will be, on a file system that keeps its files in memory.
fn is_in_memory(machine: &dyn Machine, path: &Path) -> bool {
    let mut places =
        path.ancestors().map(|place| if place.as_os_str().is_empty() { Path::new(".") } else { place });
    let found = places.find_map(|place| machine.file_system(place).ok());
    // (The name of a device is on a file system in memory; the device is not.)
    let is_file =
        machine.file(path).ok().flatten().is_none_or(|found| found.kind == iolite_host::EntryKind::Regular);
    is_file && found.is_some_and(|found| [FileSystem::TMPFS, FileSystem::RAMFS].contains(&found.magic))
}
