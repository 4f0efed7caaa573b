//! Snapshots for the status line, and reports.

use super::{Controller, End, Events, Member, USAGE_PATIENCE};
use crate::collect::{self, Circumstances};
use crate::eta;
use crate::idle::IdleMeter;
use crate::shared::{Phase, attention};
use iolite_os::time;
use iolite_plan::{JobPlan, ReadWrite};
use iolite_stats::EventKind;
use iolite_stats::{Report, Snapshot, WorkerSnapshot};
use iolite_types::{Direction, PerDirection};
use std::sync::atomic::Ordering::Relaxed;

/// Reports include the remaining time only after the run has lasted for this long.
const ETA_AFTER_NS: u64 = 2_000_000_000;

impl Controller<'_> {
    pub(super) fn tell_on_the_way(&mut self, events: &mut Events<'_>) {
        let now = self.now();
        if let Some(interval) = self.settings.eta_interval
            && now >= self.next_eta
        {
            self.next_eta = now + interval.as_nanos() as u64;
            let snapshot = self.snapshot(false);
            self.tell(None, EventKind::Snapshot(Box::new(snapshot)), events);
        }
        if let Some(interval) = self.settings.sample_interval
            && now >= self.next_series
        {
            // At even intervals, however late the controller checks.
            let interval = interval.as_nanos() as u64;
            self.next_series += ((now - self.next_series) / interval + 1) * interval;
            self.tell_sample(events);
        }
        if let Some(interval) = self.settings.status_interval
            && now >= self.next_status
        {
            self.next_status = now + interval.as_nanos() as u64;
            let report = self.fresh_report();
            self.tell(None, EventKind::Status(Box::new(report)), events);
        }
        if let Some(interval) = self.settings.slice_interval
            && now >= self.next_slice
        {
            self.next_slice += interval.as_nanos() as u64;
            let report = Box::new(self.report());
            self.tell(None, EventKind::Slice(report), events);
        }
    }

    /// Sends a snapshot for the status line while files are laid out, since `began`.
    pub(super) fn tell_layout(&mut self, began: u64, events: &mut Events<'_>) {
        let now = self.now();
        if let Some(interval) = self.settings.eta_interval
            && now >= self.next_eta
        {
            self.next_eta = now + interval.as_nanos() as u64;
            let elapsed_ns = now.saturating_sub(began);
            let snapshot = Snapshot { is_laying_out: true, elapsed_ns, ..Snapshot::default() };
            self.tell(None, EventKind::Snapshot(Box::new(snapshot)), events);
        }
    }

    /// Sends a snapshot for the run's series.
    pub(super) fn tell_sample(&self, events: &mut Events<'_>) {
        if self.settings.sample_interval.is_some() {
            let mut snapshot = self.snapshot(self.settings.sample_latencies);
            if self.settings.sample_disks {
                snapshot.disks = self.disks.snapshots();
            }
            self.tell(None, EventKind::Sample(Box::new(snapshot)), events);
        }
    }

    /// The remaining time of a worker in seconds, not counting the time until it starts.
    fn left(&self, index: usize, now: u64) -> Option<f64> {
        if self.members[index].end.is_some() {
            return Some(0.0);
        }
        let slot = self.arena.slot(index);
        let job = self.plan.job_of(&self.plan.workers[index]);
        eta::seconds_left(&job.estimate, self.layouts[index].bytes_per_pass(), slot, now)
    }

    /// The remaining time of the run in seconds. Waves follow each other, and each lasts until its last worker ends.
    /// Workers may start late, or after others.
    fn left_in_all(&self, now: u64) -> Option<f64> {
        let mut left = vec![0.0_f64; self.plan.workers.len()];
        let mut waves = vec![0.0_f64; self.plan.waves as usize];
        for worker in self.plan.workers.iter().filter(|worker| worker.wave >= self.wave) {
            // The workers that it waits for come before it.
            let awaited = left[worker.wait_for.clone()].iter().copied().fold(0.0, f64::max);
            let starts = awaited.max(self.delay_left(worker.index, now) as f64 / 1e9);
            let ends = starts + self.left(worker.index, now)?;
            left[worker.index] = ends;
            let wave = &mut waves[worker.wave as usize];
            *wave = wave.max(ends);
        }
        Some(waves.iter().sum())
    }

    pub(super) fn snapshot(&self, with_latencies: bool) -> Snapshot {
        let now = self.now();
        let stuck = self.stuck.clone();
        let mut snapshot =
            Snapshot { elapsed_ns: self.lasted(), kb_base: 1024, stuck, ..Snapshot::default() };
        for worker in &self.plan.workers {
            let job = self.plan.job_of(worker);
            snapshot.workers.push(self.worker_snapshot(worker.index, job, with_latencies));
            snapshot.kb_base = job.report.display.kb_base;
            snapshot.unit_base = job.report.display.unit_base;
        }
        if let Some(left) = self.left_in_all(now) {
            snapshot.percent = Some(eta::percent(now.saturating_sub(self.begun) as f64 / 1e9, left));
            snapshot.eta_s = Some(left.round() as u64);
        }
        snapshot
    }

    fn worker_snapshot(&self, index: usize, job: &JobPlan, with_latencies: bool) -> WorkerSnapshot {
        let slot = self.arena.slot(index);
        let member = &self.members[index];
        let mut snapshot = WorkerSnapshot {
            state: state_letter(member, slot.control.phase(), job.rw),
            running: member.ordered && member.end.is_none(),
            open_files: slot.control.open_files.load(Relaxed),
            uses: PerDirection::new(job.rw.reads(), job.rw.writes(), job.rw.trims()),
            limits: job.limits,
            failures: slot.stats.failures(),
            stages: self.stages.as_ref().map(|stages| stages.so_far(index)).unwrap_or_default(),
            ..WorkerSnapshot::default()
        };
        let (counters, resets) = slot.stats.counters(with_latencies);
        snapshot.resets = resets;
        for (direction, counters) in Direction::ALL.into_iter().zip(counters) {
            snapshot.counters[direction] = counters;
        }
        if let Some(demand) = &job.demand {
            let asked = demand.until(collect::lasted(&slot.control, self.now()));
            job.rw.directions().for_each(|direction| snapshot.counters[direction].asked = asked);
        }
        snapshot
    }

    /// A report for which running workers have published their resource usage.
    pub(super) fn fresh_report(&mut self) -> Report {
        let running = |controller: &Self, index: usize| {
            controller.members[index].released && controller.members[index].end.is_none()
        };
        let asked: Vec<usize> = (0..self.members.len()).filter(|&index| running(self, index)).collect();
        for &index in &asked {
            self.arena.slot(index).control.ask(attention::USAGE);
        }
        if !asked.is_empty() {
            std::thread::sleep(USAGE_PATIENCE);
        }
        if let Some(stages) = &self.stages {
            // What was known before is better than nothing.
            self.stages_so_far = stages.read_so_far().or(self.stages_so_far.take());
        }
        self.report()
    }

    /// The remaining time of the run in seconds, for reports. As with fio, it is missing at the beginning.
    fn told_eta(&self, now: u64) -> Option<u64> {
        let has_run = now.saturating_sub(self.begun) >= ETA_AFTER_NS;
        self.left_in_all(now).filter(|_| has_run).map(|left| left.round() as u64)
    }

    pub(super) fn report(&mut self) -> Report {
        for index in 0..self.members.len() {
            self.members[index].known.steady_state = self.steady_state(index).cloned();
        }
        let now = self.now();
        let at = Circumstances {
            plan: self.plan,
            timestamp_ms: time::wall_ns() / 1_000_000,
            now_ns: now,
            begun_ns: self.begun,
            origin_ms: self.origin_ms,
            eta_s: self.told_eta(now),
            disks: self.disks.report(),
            idleness: self.idle_meter.as_ref().map(IdleMeter::report),
            stages: self.stage_results.as_ref().or(self.stages_so_far.as_ref()),
        };
        collect::report(at, |index| self.arena.slot(index), |index| &self.members[index].known)
    }
}

/// The letter for a worker's state in the status line.
fn state_letter(member: &Member, phase: Phase, rw: ReadWrite) -> char {
    use ReadWrite::*;
    match member.end {
        Some(End::Done | End::Skipped) => return '_',
        Some(End::Failed) => return 'X',
        Some(End::Killed) => return 'K',
        None => {}
    }
    match phase {
        Phase::Planned => 'P',
        Phase::Created => 'C',
        Phase::SettingUp | Phase::Ready => 'I',
        Phase::PreReading => 'p',
        Phase::Ramping => '/',
        Phase::Verifying => 'V',
        Phase::Syncing => 'F',
        Phase::Finishing => 'f',
        Phase::Exited => 'E',
        Phase::Running => match rw {
            Read => 'R',
            RandRead => 'r',
            Write => 'W',
            RandWrite => 'w',
            Trim => 'D',
            RandTrim => 'd',
            Rw | RwTrim | TrimWrite => 'M',
            RandRw | RandRwTrim | RandTrimWrite => 'm',
        },
    }
}
