//! The work of the spawner's children: they lay out files, and run workers.

use crate::cgroup::MadeGroups;
use crate::clock::Clock;
use crate::idle::IdleMeter;
use crate::message::Message;
use crate::shared::{Arena, Phase};
use crate::spawner::{Helper, Work};
use crate::stages::StageCollection;
use crate::ticker::Ticker;
use iolite_os::socket::Socket;
use iolite_os::usage::Usage;
use iolite_os::{process, signals};
use iolite_plan::resolve::CreationTime;
use iolite_plan::verification::Rivalries;
use iolite_plan::{Layout, Plan};
use iolite_verify::Owners;
use iolite_worker::creation;
use iolite_worker::{UnitTables, Worker, ZoneMaps};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The data that the spawner's children need. Fork copies it.
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) layouts: Vec<Layout>,
    /// The workers that write to places that others verify.
    pub(super) rivalries: Rivalries,
    /// The last writer of each shared place.
    pub(super) owners: Arc<Owners>,
    /// The zones that workers share.
    pub(super) zones: Arc<ZoneMaps>,
    pub(super) arena: Arc<Arena>,
    /// The units of all workers.
    pub(super) units: Arc<UnitTables>,
    pub(super) messages: Socket,
    pub(super) clock: Clock,
    pub(super) idle_meter: Option<IdleMeter>,
    /// Measures the stages of I/Os.
    pub(super) stages: Option<StageCollection>,
    /// Keeps the time that the workers see.
    pub(super) ticker: Option<Ticker>,
    /// The groups to remove when all workers are gone.
    pub(super) groups: MadeGroups,
}

impl Shared {
    /// Resolves a worker, now that all workers before it have finished, and runs it.
    fn resolve_and_run(&self, index: usize) -> i32 {
        let plan = &self.plan.workers[index];
        // Files that were filled have the size that the file system had room for; the layout fails without any room. If
        // a size can no longer be read, the worker fails to open that file, and reports it.
        let rules = self.plan.creation(plan, &self.layouts[index]);
        let filled = rules.fills.then(|| creation::reached(&rules, &self.layouts[index]).ok()).flatten();
        let layout = filled.as_ref().unwrap_or(&self.layouts[index]);
        let worker = Worker {
            resolved: &Box::new(self.plan.resolve(plan, layout, self.rivalries.of_worker(index))),
            replay: plan.replay.as_ref(),
            arena: &self.arena,
            messages: &self.messages,
            clock: self.ticker.map_or(self.clock, |ticker| ticker.clock(self.clock)),
            owners: &self.owners,
            zones: &self.zones,
            stages: self.stages.as_ref().map(StageCollection::area),
            units: &self.units,
        };
        worker.run()
    }
}

impl Work for Shared {
    fn lay_out(&self) -> i32 {
        let mut status = 0;
        for worker in &self.plan.workers {
            let layout = &self.layouts[worker.index];
            let number = worker.index as u32;
            let name = &self.plan.job_of(worker).name;
            // All clones of a job leave out the same files, unless they begin at different offsets.
            if let Some(text) = layout.left_out.in_words().filter(|_| worker.clone == 0) {
                Message::Note(number, format!("{name}: {text}")).send(&self.messages);
            }
            let rules = self.plan.creation(worker, layout);
            if rules.time != CreationTime::BeforeAll {
                continue;
            }
            let control = &self.arena.slot(worker.index).control;
            iolite_engine::stop_when(self.arena.end_check(worker.index));
            let mut note = |text| Message::Note(number, text).send(&self.messages);
            let stop = || control.terminating();
            let mut made = creation::create(name, &rules, layout, &mut note, &stop);
            if rules.fills {
                made = made.and_then(|()| creation::reached(&rules, layout).map(drop));
            }
            if let Err(error) = made {
                let errno = iolite_os::errno_of(&error);
                if errno == libc::EINTR && stop() {
                    // It was interrupted by a request to stop. That is not a failure.
                    continue;
                }
                // No process is started for the worker.
                control.id.store(process::process_id(), Relaxed);
                control.errno.store(errno, Relaxed);
                Message::Failed(number, errno, format!("func=layout: {error}")).send(&self.messages);
                status = 1;
            }
        }
        status
    }

    fn worker(&self, worker: u32) -> i32 {
        let index = worker as usize;
        let run = std::panic::AssertUnwindSafe(|| self.resolve_and_run(index));
        std::panic::catch_unwind(run).unwrap_or_else(|_| {
            let control = &self.arena.slot(index).control;
            control.errno.store(libc::EFAULT, Relaxed);
            let what = "func=worker: it ran into a defect of this program and was stopped".to_owned();
            Message::Failed(index as u32, libc::EFAULT, what).send(&self.messages);
            control.set_phase(Phase::Exited);
            101
        })
    }

    fn stack(&self, worker: u32) -> usize {
        iolite_engines::stack_of(self.plan.job_of(&self.plan.workers[worker as usize]).engine.name)
    }

    fn killed(&self, worker: u32, used: Usage) {
        let control = &self.arena.slot(worker as usize).control;
        // If an interim report was requested, it has published a part of that.
        for (published, used) in [
            (&control.user_us, used.user_us),
            (&control.system_us, used.system_us),
            (&control.context_switches, used.context_switches),
            (&control.major_faults, used.major_faults),
            (&control.minor_faults, used.minor_faults),
        ] {
            published.fetch_max(used, Relaxed);
        }
    }

    fn thread_over(&self, worker: u32) {
        self.arena.slot(worker as usize).control.end_thread();
        Message::Look.send(&self.messages);
    }

    fn keep_time(&self) {
        if let Some(ticker) = self.ticker {
            ticker.run(self.clock);
        }
    }

    fn help(&self, helper: Helper) -> i32 {
        match helper {
            Helper::Idleness => self.idle_meter.as_ref().map_or(0, IdleMeter::run),
            Helper::Stages => self.stages.as_ref().map_or(0, StageCollection::run),
        }
    }

    fn starts_programs(&self) -> bool {
        self.plan.jobs.iter().any(|job| job.starts_programs)
    }

    fn clean_up(&self) {
        self.groups.remove();
        self.stages.iter().for_each(StageCollection::clean_up);
        // A killed worker leaves the command that it ran; kill that too.
        for worker in &self.plan.workers {
            match self.arena.slot(worker.index).control.command_group.load(Relaxed) {
                0 => {}
                group => signals::kill_group(group, libc::SIGKILL),
            }
        }
    }

    fn may_be_deaf(&self, worker: u32) -> bool {
        let control = &self.arena.slot(worker as usize).control;
        // At its end a worker syncs and closes its files, which must not be interrupted.
        control.terminating() && (Phase::Created..Phase::Finishing).contains(&control.phase())
    }

    fn interrupt_threads(&self) {
        for worker in &self.plan.workers {
            if self.plan.job_of(worker).thread && self.may_be_deaf(worker.index as u32) {
                signals::interrupt_thread(self.arena.slot(worker.index).control.id.load(Relaxed));
            }
        }
    }
}
