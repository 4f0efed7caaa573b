//! Statistics of the disks below the files, from `/sys/block/*/stat`.

use iolite_host::{Disk, Machine};
use iolite_os::time;
use iolite_plan::Plan;
use iolite_stats::{DiskCounters, DiskReport, DiskSnapshot};
use std::fs;
use std::path::{Path, PathBuf};
use tracing::debug;

/// A disk that is watched.
struct Watched {
    name: String,
    directory: PathBuf,
    before: Reading,
    /// The disks below it.
    below: Vec<Watched>,
}

#[derive(Clone, Copy, Default)]
struct Reading {
    counters: DiskCounters,
    /// Milliseconds in which the disk was busy.
    busy_ms: u64,
    at_ns: u64,
}

/// A disk's activity, for a line of `--debug`.
fn in_words(disk: &DiskReport) -> String {
    let DiskCounters { read_ios, write_ios, .. } = disk.counters;
    format!("{}: {read_ios} reads, {write_ios} writes, {:.2}% busy", disk.name, disk.utilisation)
}

/// All disks that the files of a plan are on.
pub struct Disks(Vec<Watched>);

impl Disks {
    /// Finds the disks and remembers their counters.
    pub fn watch(plan: &Plan, machine: &dyn Machine) -> Disks {
        let mut disks: Vec<Watched> = Vec::new();
        for worker in &plan.workers {
            if !plan.job_of(worker).watches_disks {
                continue;
            }
            for place in worker.files.places() {
                if let Some(found) = machine.disk(&place)
                    && !disks.iter().any(|disk| disk.directory == found.directory)
                {
                    disks.extend(Watched::new(found));
                }
            }
        }
        for disk in &disks {
            debug!(target: "diskutil", "{}: watched", disk.directory.display());
        }
        Disks(disks)
    }

    /// Starts counting.
    pub fn begin(&mut self) {
        self.0.iter_mut().for_each(Watched::begin);
    }

    /// What the disks have done so far.
    pub fn snapshots(&self) -> Vec<DiskSnapshot> {
        let mut snapshots = Vec::new();
        self.0.iter().for_each(|disk| disk.add_snapshots(&mut snapshots));
        snapshots
    }

    /// The activity of the disks since counting started.
    pub fn report(&self) -> Vec<DiskReport> {
        let reports: Vec<DiskReport> = self.0.iter().map(Watched::report).collect();
        reports.iter().for_each(|disk| debug!(target: "diskutil", "{}", in_words(disk)));
        reports
    }
}

impl Watched {
    fn new(disk: Disk) -> Option<Watched> {
        let before = read(&disk.directory)?;
        let below = disk.below.into_iter().filter_map(Watched::new).collect();
        Some(Watched { name: disk.name, before, below, directory: disk.directory })
    }

    fn begin(&mut self) {
        self.before = read(&self.directory).unwrap_or(self.before);
        self.below.iter_mut().for_each(Watched::begin);
    }

    fn add_snapshots(&self, to: &mut Vec<DiskSnapshot>) {
        if let Some(Reading { counters, busy_ms, at_ns }) = read(&self.directory) {
            to.push(DiskSnapshot { name: self.name.clone(), at_ns, busy_ms, counters });
        }
        self.below.iter().for_each(|disk| disk.add_snapshots(to));
    }

    fn report(&self) -> DiskReport {
        let now = read(&self.directory).unwrap_or(self.before);
        let (a, b) = (&self.before.counters, &now.counters);
        let counters = DiskCounters {
            read_ios: b.read_ios.saturating_sub(a.read_ios),
            write_ios: b.write_ios.saturating_sub(a.write_ios),
            read_sectors: b.read_sectors.saturating_sub(a.read_sectors),
            write_sectors: b.write_sectors.saturating_sub(a.write_sectors),
            read_merges: b.read_merges.saturating_sub(a.read_merges),
            write_merges: b.write_merges.saturating_sub(a.write_merges),
            read_ticks: b.read_ticks.saturating_sub(a.read_ticks),
            write_ticks: b.write_ticks.saturating_sub(a.write_ticks),
            in_queue: b.in_queue.saturating_sub(a.in_queue),
        };
        let elapsed_ms = now.at_ns.saturating_sub(self.before.at_ns) as f64 / 1e6;
        let busy = now.busy_ms.saturating_sub(self.before.busy_ms) as f64;
        let utilisation = if elapsed_ms > 0.0 { (100.0 * busy / elapsed_ms).min(100.0) } else { 0.0 };
        let slaves = self.below.iter().map(Watched::report).collect();
        DiskReport { name: self.name.clone(), counters, utilisation, slaves }
    }
}

/// The format is documented in Linux's Documentation/block/stat.rst.
fn read(directory: &Path) -> Option<Reading> {
    let text = fs::read_to_string(directory.join("stat")).ok()?;
    let at_ns = time::monotonic_ns();
    parse(&text).map(|(counters, busy_ms)| Reading { counters, busy_ms, at_ns })
}

fn parse(text: &str) -> Option<(DiskCounters, u64)> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let &[
        read_ios,
        read_merges,
        read_sectors,
        read_ticks,
        write_ios,
        write_merges,
        write_sectors,
        write_ticks,
        _in_flight,
        busy_ms,
        in_queue,
        ..,
    ] = fields.as_slice()
    else {
        return None;
    };
    let counters = DiskCounters {
        read_ios,
        write_ios,
        read_sectors,
        write_sectors,
        read_merges,
        write_merges,
        read_ticks,
        write_ticks,
        in_queue,
    };
    Some((counters, busy_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_fields_in_their_order() {
        let (counters, busy) = parse("  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n").unwrap();
        assert_eq!((counters.read_ios, counters.read_merges, counters.read_sectors), (1, 2, 3));
        assert_eq!((counters.read_ticks, counters.write_ios, counters.write_merges), (4, 5, 6));
        assert_eq!((counters.write_sectors, counters.write_ticks, counters.in_queue, busy), (7, 8, 11, 10));
        assert!(parse("1 2 3").is_none());
    }
}
