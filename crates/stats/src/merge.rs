//! Merging: how the results of many workers become one report.
//!
//! Each worker's results are a [`JobReport`] that states where it belongs ([`Identity`](crate::Identity)).
//! [`Report::merge`] makes one report of any number of them. Merged reports can be merged again: results may arrive
//! one by one, in batches, or from several machines, in any order, and the jobs and groups of the merged report are
//! the same. The reasons are:
//!
//! - Sums are sums of integers, and extremes are extremes. (A sum that overflows stays at its largest value.)
//! - A value that is not a sum (a name, an error) comes from the lowest-numbered worker that has one; the options come
//!   from the highest-numbered.
//! - Whatever follows from the sums (latency classes, all directions together, the groups' rates) is derived again
//!   each time.

use crate::distribution::LatencyClasses;
use crate::idle::IdleReport;
use crate::latency::Latency;
use crate::report::{
    BlockReport, ContinuedErrors, DirectionReport, First, GroupDirection, GroupReport, JobReport, Report,
    RequestReport, SyncReport, Unified, Usage,
};
use crate::snapshot::RateLimits;
use iolite_types::{Direction, PerDirection};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::ops::AddAssign;

impl Report {
    /// Merges the parts into one report. Jobs of the same block are merged; blocks and groups are listed in ascending
    /// order.
    ///
    /// Values of a whole run or machine are not added up: the time stamp is the latest; global options, and the units
    /// of a group, series, facts and the end are those of the first part that has them; disks and CPUs of all parts are listed one after the
    /// other. A group that no part lists is not reported.
    pub fn merge(parts: impl IntoIterator<Item = Report>) -> Report {
        let mut whole = Report::default();
        let mut blocks: BTreeMap<u32, JobReport> = BTreeMap::new();
        let mut groups: BTreeMap<u32, GroupReport> = BTreeMap::new();
        for part in parts {
            whole.timestamp_ms = whole.timestamp_ms.max(part.timestamp_ms);
            if whole.global_options.is_empty() {
                whole.global_options = part.global_options;
            }
            for job in part.jobs {
                match blocks.entry(job.identity.block) {
                    Occupied(mut block) => block.get_mut().merge(job),
                    Vacant(place) => drop(place.insert(job)),
                }
            }
            for group in part.groups {
                groups.entry(group.id).or_insert(group);
            }
            whole.disks.extend(part.disks);
            if let Some(idleness) = part.idleness {
                whole.idleness.get_or_insert_with(IdleReport::default).append(idleness);
            }
            whole.series = whole.series.or(part.series);
            whole.facts = whole.facts.or(part.facts);
            whole.end = whole.end.or(part.end);
        }
        whole.jobs = blocks.into_values().collect();
        whole.jobs.iter_mut().for_each(JobReport::derive);
        whole.groups = groups.into_values().collect();
        whole.groups.iter_mut().for_each(|group| group.derive(&whole.jobs));
        whole
    }
}

impl JobReport {
    /// Merges the results of workers that are reported together with these. Derived values have to be
    /// [derived](JobReport::derive) again afterwards.
    fn merge(&mut self, mut other: JobReport) {
        if other.identity < self.identity {
            std::mem::swap(self, &mut other);
        }
        if other.identity.last > self.identity.last {
            self.identity.last = other.identity.last;
            self.options = other.options;
        }
        self.members = self.members.saturating_add(other.members);
        // A member that was told not to measure a latency does not hide that of the others.
        self.display.slat_percentiles |= other.display.slat_percentiles;
        self.display.clat_percentiles |= other.display.clat_percentiles;
        self.error = First::of(self.error.take(), other.error);
        for (mine, theirs) in self.directions.values.iter_mut().zip(&other.directions.values) {
            *mine += theirs;
        }
        if let Some(theirs) = other.continued_errors {
            *self.continued_errors.get_or_insert_default() += theirs;
        }
        add(&mut self.blocks_checked.checked, other.blocks_checked.checked);
        add(&mut self.blocks_checked.wrong, other.blocks_checked.wrong);
        if let Some(resets) = other.zone_resets {
            *self.zone_resets.get_or_insert_default() += resets;
        }
        if let Some(blocks) = &other.blocks {
            *self.blocks.get_or_insert_default() += blocks;
        }
        if let Some(theirs) = &other.accelerator {
            *self.accelerator.get_or_insert_default() += theirs;
        }
        self.sync += &other.sync;
        self.connected.append(&mut other.connected);
        self.lateness += &other.lateness;
        add(&mut self.job_runtime_ms, other.job_runtime_ms);
        add(&mut self.job_runtime_ns, other.job_runtime_ns);
        add(&mut self.log_wait_ms, other.log_wait_ms);
        add(&mut self.most_in_flight, other.most_in_flight);
        self.usage += &other.usage;
        self.requests += &other.requests;
        self.depths += &other.depths;
    }

    /// Derives the values that follow from the sums.
    fn derive(&mut self) {
        let mut all = Latency::default();
        self.directions.values.iter().for_each(|direction| all += &direction.clat);
        self.latency_classes = LatencyClasses::of(&all);
        self.mixed = (self.display.unified != Unified::Apart).then(|| {
            let mut mixed = DirectionReport::default();
            self.directions.values.iter().for_each(|direction| mixed += direction);
            mixed
        });
        // An engine that completes units in `queue` has no submission latency.
        self.display.synchronous =
            self.directions.values.iter().all(|direction| direction.slat.moments.count == 0);
    }
}

impl GroupReport {
    /// Derives the group's totals and rates from its jobs.
    fn derive(&mut self, jobs: &[JobReport]) {
        let members = || jobs.iter().filter(|job| job.group == self.id);
        let apart = |direction: Direction| {
            let shown = members().filter(|job| job.display.unified != Unified::Mixed);
            GroupDirection::of(shown.map(|job| &job.directions[direction]))
        };
        // If a job also reports its directions separately, they count singly for the minimum and maximum.
        let mixed = members().flat_map(|job| match job.display.unified {
            Unified::Apart => &[],
            Unified::Mixed => job.mixed.as_slice(),
            Unified::Both => &job.directions.values[..],
        });
        self.mixed = GroupDirection::of(mixed);
        self.directions =
            PerDirection::new(apart(Direction::Read), apart(Direction::Write), apart(Direction::Trim));
    }
}

impl GroupDirection {
    /// The totals and rates of parts that ran side by side.
    fn of<'a>(parts: impl Iterator<Item = &'a DirectionReport>) -> GroupDirection {
        let mut sum =
            parts.filter(|part| part.runtime_ms > 0).fold(GroupDirection::default(), |mut sum, part| {
                let bandwidth = bandwidth(part.bytes, part.runtime_ms);
                let is_first = sum.max_runtime_ms == 0;
                let least = |a: u64, b: u64| if is_first { b } else { a.min(b) };
                sum.min_bandwidth = least(sum.min_bandwidth, bandwidth);
                sum.min_runtime_ms = least(sum.min_runtime_ms, part.runtime_ms);
                sum.max_bandwidth = sum.max_bandwidth.max(bandwidth);
                sum.max_runtime_ms = sum.max_runtime_ms.max(part.runtime_ms);
                add(&mut sum.bytes, part.bytes);
                sum
            });
        sum.bandwidth = bandwidth(sum.bytes, sum.max_runtime_ms);
        sum
    }
}

/// Bytes per second.
fn bandwidth(bytes: u64, runtime_ms: u64) -> u64 {
    let rate = (u128::from(bytes) * 1000).checked_div(u128::from(runtime_ms)).unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl<T> First<T> {
    /// The value of the lower-numbered worker.
    fn of(one: Option<First<T>>, other: Option<First<T>>) -> Option<First<T>> {
        one.into_iter().chain(other).min_by_key(|told| told.worker)
    }
}

impl AddAssign for ContinuedErrors {
    fn add_assign(&mut self, other: ContinuedErrors) {
        add(&mut self.count, other.count);
        self.first = First::of(self.first.take(), other.first);
    }
}

impl AddAssign<&Latency> for Latency {
    fn add_assign(&mut self, other: &Latency) {
        self.moments += &other.moments;
        self.histogram += &other.histogram;
    }
}

impl AddAssign<&SyncReport> for SyncReport {
    fn add_assign(&mut self, other: &SyncReport) {
        add(&mut self.ios, other.ios);
        self.lat += &other.lat;
    }
}

impl AddAssign<&RequestReport> for RequestReport {
    fn add_assign(&mut self, other: &RequestReport) {
        let RequestReport { repeated, throttled } = other;
        add(&mut self.repeated, *repeated);
        add(&mut self.throttled, *throttled);
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        add(&mut self.user_ms, other.user_ms);
        add(&mut self.system_ms, other.system_ms);
        add(&mut self.context_switches, other.context_switches);
        add(&mut self.major_faults, other.major_faults);
        add(&mut self.minor_faults, other.minor_faults);
    }
}

impl AddAssign<&RateLimits> for RateLimits {
    fn add_assign(&mut self, other: &RateLimits) {
        add(&mut self.min_bandwidth, other.min_bandwidth);
        add(&mut self.max_bandwidth, other.max_bandwidth);
        add(&mut self.min_iops, other.min_iops);
        add(&mut self.max_iops, other.max_iops);
    }
}

impl AddAssign<&BlockReport> for BlockReport {
    fn add_assign(&mut self, other: &BlockReport) {
        self.states.iter_mut().zip(other.states).for_each(|(mine, theirs)| add(mine, theirs));
        self.lifetimes += &other.lifetimes;
    }
}

/// Merges measurements of the same time: counts and rates are added up, and the longest run time counts.
impl AddAssign<&DirectionReport> for DirectionReport {
    fn add_assign(&mut self, other: &DirectionReport) {
        add(&mut self.bytes, other.bytes);
        add(&mut self.ios, other.ios);
        add(&mut self.issued, other.issued);
        add(&mut self.short, other.short);
        add(&mut self.dropped, other.dropped);
        self.runtime_ms = self.runtime_ms.max(other.runtime_ms);
        self.slat += &other.slat;
        self.clat += &other.clat;
        self.lat += &other.lat;
        self.intended += &other.intended;
        self.first_byte += &other.first_byte;
        self.visible += &other.visible;
        for theirs in &other.priorities {
            match self.priorities.iter_mut().find(|mine| mine.priority == theirs.priority) {
                Some(mine) => {
                    mine.order = mine.order.min(theirs.order);
                    mine.latency += &theirs.latency;
                }
                None => self.priorities.push(theirs.clone()),
            }
        }
        self.priorities.sort_by_key(|priority| priority.order);
        if let Some(theirs) = &other.stages {
            match &mut self.stages {
                Some(mine) => **mine += theirs,
                None => self.stages.clone_from(&other.stages),
            }
        }
        self.bw += &other.bw;
        self.iops += &other.iops;
    }
}

#[cfg(test)]
mod tests;
