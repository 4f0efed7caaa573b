//! How workers end.
//!
//! Each worker runs to its planned end, or it was asked to end early (a signal, `exitall`, a trigger, a steady state),
//! or it has an error that gives the reason: no worker ends silently.

use super::{Controller, End, Events, Member};
use crate::shared::{Phase, attention};
use crate::spawner::{Answer, Helper, NO_WORKER};
use iolite_os::poll;
use iolite_os::process::ChildEnd;
use iolite_plan::ExitWhat;
use iolite_stats::{EventKind, JobError};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tracing::debug;

/// How long to wait for the last messages of killed processes.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Member {
    /// Why it was killed, if known.
    pub(super) fn why_killed(&mut self) -> Option<JobError> {
        self.doom.take().or_else(|| self.cut_short.take())
    }
}

/// How a worker ends, and its error, unless the error is known already.
type Verdict = (End, Option<JobError>);

impl Controller<'_> {
    /// The spawner's next answer.
    pub(super) fn answer(&mut self, events: &mut Events<'_>) -> io::Result<Option<Answer>> {
        if self.spawner_gone {
            return Ok(None);
        }
        match self.spawner.answer() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.lose_spawner(events)?;
                Ok(None)
            }
            result => result,
        }
    }

    /// The spawner has died, or cannot be reached. All processes that it started die with it.
    pub(super) fn lose_spawner(&mut self, events: &mut Events<'_>) -> io::Result<()> {
        self.spawner_gone = true;
        let what = match self.spawner.end() {
            // The failed connection is the reason.
            None | Some(ChildEnd::Exited(0)) => "func=spawner: the connection to it was lost".to_owned(),
            Some(end) => format!("func=spawner: {end}"),
        };
        let patience = Instant::now() + LAST_WORDS;
        // When all processes are gone, the other ends of this socket are closed.
        while !self.deaf
            && let Some(left) = patience.checked_duration_since(Instant::now())
        {
            poll::wait_readable(&[self.messages.as_raw_fd()], Some(left))?;
            self.handle_messages(events)?;
        }
        self.fail_all(&JobError { errno: libc::ECHILD, what }, events);
        Ok(())
    }

    /// The run cannot continue. Workers that have finished keep their ends; the others are gone, with their
    /// measurements until now, or never begin.
    pub(super) fn fail_all(&mut self, error: &JobError, events: &mut Events<'_>) {
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            if member.end.is_some() {
                continue;
            }
            let (end, error) = match self.arena.slot(index).control.phase() {
                Phase::Exited => self.verdict(index, ChildEnd::Exited(0)),
                _ => (End::Killed, Some(member.why_killed().unwrap_or_else(|| error.clone()))),
            };
            self.note_end(index, end, error, events);
        }
    }

    /// The process that lays out files has ended.
    pub(super) fn layout_ended(&mut self, end: ChildEnd, events: &mut Events<'_>) {
        self.laid_out = true;
        let has_told = self.members.iter().any(|member| member.known.error.is_some());
        match end {
            ChildEnd::Exited(0) => {}
            ChildEnd::Exited(1) if has_told => {}
            ChildEnd::Exited(_) | ChildEnd::Killed(_) => {
                let errno = if let ChildEnd::Killed(_) = end { libc::EINTR } else { libc::ECHILD };
                self.fail_all(&JobError { errno, what: format!("func=layout: {end}") }, events);
            }
        }
        // End the workers whose files could not be laid out.
        for index in 0..self.members.len() {
            if self.members[index].known.error.is_some() && self.members[index].end.is_none() {
                self.end_worker(index, End::Failed, None, events);
            }
        }
    }

    /// Something could not be started.
    pub(super) fn not_started(&mut self, worker: u32, errno: i32, events: &mut Events<'_>) {
        let error = JobError { errno, what: "func=fork".into() };
        if worker == NO_WORKER {
            // Every worker needs it.
            self.laid_out = true;
            self.fail_all(&error, events);
        } else {
            self.end_worker(worker as usize, End::Failed, Some(error), events);
        }
    }

    /// The thread host has ended, with all worker threads and the clock thread.
    pub(super) fn thread_host_ended(&mut self, end: ChildEnd, events: &mut Events<'_>) {
        for index in 0..self.members.len() {
            if self.is_thread(index) && self.members[index].ordered {
                self.ended(index, end, events);
            }
        }
        if self.keeps_time {
            // The clock of all other workers has stopped.
            self.impaired = true;
            let text = "the thread that kept the time (gtod_cpu) is gone: the run ends";
            self.tell(None, EventKind::Trouble(text.to_owned()), events);
            self.cut_short("func=gtod_cpu: the thread that kept the time is gone", events);
        }
    }

    /// A process that measures has ended before its time.
    pub(super) fn helper_ended(&mut self, helper: Helper, end: ChildEnd, events: &mut Events<'_>) {
        let option = match helper {
            Helper::Idleness => self.idle_meter.take().map(|_| "--idle-prof"),
            // At the end of the run it writes its results and ends.
            Helper::Stages if self.stage_results.is_none() && end == ChildEnd::Exited(0) => {
                self.stage_results = self.stages.as_ref().and_then(|stages| stages.read().ok());
                for text in self.stage_results.iter().flat_map(|results| results.trouble.clone()) {
                    self.impaired = true;
                    self.tell(None, EventKind::Trouble(text), events);
                }
                self.stage_results.is_none().then_some("stages")
            }
            Helper::Stages => {
                self.stages_so_far = None;
                self.stages.take().map(|_| "stages")
            }
        };
        if let Some(option) = option {
            self.impaired = true;
            let text = format!("{option}: the process that measures is gone ({end}): nothing is reported");
            self.tell(None, EventKind::Trouble(text), events);
        }
    }

    /// Ends all workers early. That is an error of each.
    fn cut_short(&mut self, why: &str, events: &mut Events<'_>) {
        let error = JobError { errno: libc::ECANCELED, what: why.to_owned() };
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            match member.end {
                Some(_) => {}
                None if member.ordered => {
                    member.cut_short.get_or_insert_with(|| error.clone());
                    self.terminate(index);
                }
                None => {
                    self.arena.slot(index).control.ask(attention::TERMINATE);
                    self.note_end(index, End::Failed, Some(error.clone()), events);
                }
            }
        }
        if !self.laid_out {
            self.expect_stops();
        }
    }

    pub(super) fn is_thread(&self, index: usize) -> bool {
        self.plan.job_of(&self.plan.workers[index]).thread
    }

    /// Handles the end of a worker's process or thread.
    pub(super) fn ended(&mut self, index: usize, end: ChildEnd, events: &mut Events<'_>) {
        if self.members[index].end.is_none() {
            let (end, error) = self.verdict(index, end);
            self.end_worker(index, end, error, events);
        }
    }

    /// The meaning of the end of its process or thread for a worker.
    fn verdict(&mut self, index: usize, end: ChildEnd) -> Verdict {
        let control = &self.arena.slot(index).control;
        let (phase, errno) = (control.phase(), control.errno.load(Relaxed));
        let member = &mut self.members[index];
        match (phase, end) {
            // The end of its process after that does not matter.
            (Phase::Exited, _) if member.known.error.is_some() => (End::Failed, None),
            (Phase::Exited, _) if errno != 0 => {
                let what = "func=worker: the failed operation could not be reported".to_owned();
                (End::Failed, Some(JobError { errno, what }))
            }
            (Phase::Exited, _) => match member.cut_short.take() {
                None => (End::Done, None),
                error => (End::Failed, error),
            },
            (_, ChildEnd::Killed(signal)) => {
                (End::Killed, Some(member.why_killed().unwrap_or_else(|| killed(signal))))
            }
            (_, ChildEnd::Exited(_)) if member.known.error.is_some() => (End::Failed, None),
            (Phase::Planned, ChildEnd::Exited(_)) => {
                (End::Failed, Some(JobError { errno: libc::EAGAIN, what: "func=start".into() }))
            }
            (_, end) => {
                let what = format!("func=worker: {end} while it was {}", phase.in_words());
                (End::Failed, Some(JobError { errno: libc::ECHILD, what }))
            }
        }
    }

    /// A worker has ended, and others with it if its job says so.
    pub(super) fn end_worker(
        &mut self,
        index: usize,
        end: End,
        error: Option<JobError>,
        events: &mut Events<'_>,
    ) {
        self.note_end(index, end, error, events);
        let rules = self.plan.job_of(&self.plan.workers[index]).end;
        if let Some(whom) = rules.ended_by(matches!(end, End::Failed | End::Killed)) {
            self.exit_others(index, whom);
        }
        if self.plan.job_of(&self.plan.workers[index]).does_io() {
            self.end_with_io();
        }
    }

    /// Ends the workers that end with the I/O (`exit_on_io_done`) if the I/O of this wave and of those before has
    /// ended. As with fio, they continue if there was no I/O.
    pub(super) fn end_with_io(&mut self) {
        let has_ended = |index: usize| self.members[index].end.is_some();
        let (mut has_io, mut ending) = (false, Vec::new());
        for worker in self.plan.workers.iter().filter(|worker| worker.wave <= self.wave) {
            let job = self.plan.job_of(worker);
            if job.does_io() {
                has_io = true;
                if !has_ended(worker.index) {
                    return;
                }
            } else if job.ends_with_io && !has_ended(worker.index) {
                ending.push(worker.index);
            }
        }
        if has_io {
            ending.into_iter().for_each(|index| self.terminate(index));
        }
    }

    fn note_end(&mut self, index: usize, end: End, error: Option<JobError>, events: &mut Events<'_>) {
        debug!(target: "process", job = index + 1, "worker {} {}", index + 1, end.in_words());
        let control = &self.arena.slot(index).control;
        // This is set even for a worker that never began, because others read it to decide whether to wait.
        if control.ended_ns.load(Relaxed) == 0 {
            control.ended_ns.store(self.clock.now(), Relaxed);
        }
        control.open_files.store(0, Relaxed);
        // No worker may wait for a zone of a killed worker.
        control.zones.store(0, Relaxed);
        self.sample_last(index);
        if let Some(error) = error {
            self.tell_failure(index, &error, events);
            self.members[index].known.error.get_or_insert(error);
        }
        self.members[index].end = Some(end);
    }

    /// Ends other workers with this one (`exitall`).
    fn exit_others(&mut self, index: usize, what: ExitWhat) {
        let group = self.plan.job_of(&self.plan.workers[index]).group;
        for other in 0..self.members.len() {
            let worker = &self.plan.workers[other];
            let concerned = match what {
                ExitWhat::All => true,
                ExitWhat::Stonewall => worker.wave == self.wave,
                ExitWhat::Group => self.plan.job_of(worker).group == group,
            };
            if concerned {
                self.terminate(other);
            }
        }
    }

    /// Asks a worker to finish. A worker that has not begun is skipped.
    pub(super) fn terminate(&mut self, index: usize) {
        let member = &mut self.members[index];
        if member.end.is_some() {
            return;
        }
        debug!(target: "process", job = index + 1, "worker {} is asked to stop", index + 1);
        if member.ordered {
            self.arena.slot(index).control.ask(attention::TERMINATE);
            self.expect_stops();
        } else {
            member.end = Some(End::Skipped);
        }
    }

    pub(super) fn skip_the_rest(&mut self) {
        for index in 0..self.members.len() {
            self.arena.slot(index).control.ask(attention::TERMINATE);
            self.members[index].end.get_or_insert(End::Skipped);
        }
    }
}

fn killed(signal: i32) -> JobError {
    let why = match signal {
        libc::SIGBUS => ": a mapped file became shorter, its file system is full, or its medium failed",
        _ => "",
    };
    JobError { errno: libc::EINTR, what: format!("func=killed by signal {signal}{why}") }
}
