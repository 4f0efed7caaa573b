//! A job from its start signal to its end: its passes, and what happens between them and behind them.

use crate::files::FileTable;
use crate::io_loop::{AnyLoop, Common, Failure, PassEnd};
use crate::usage::OfEngine;
use crate::{Stop, Worker, creation, usage};
use iolite_engine::{DynEngine, Errno, Requests};
use iolite_os::explained;
use iolite_os::message::Message;
use iolite_os::shared::Phase;
use iolite_os::time;
use iolite_plan::resolve::{Creation, Data, PassKind, PassRules, ResolvedWorker};
use iolite_types::describe_errno;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

impl Worker<'_> {
    /// Waits for the start signal, runs the job, and cleans up.
    pub(crate) fn follow_plan(&self, io_loop: &mut dyn AnyLoop<'_>) -> Result<(), Stop> {
        let (common, engine) = io_loop.with_engine();
        self.wait_for_start(&mut || engine.keep_alive());
        self.meet(engine)?;
        usage::count_of_engine(match self.resolved.counts_process {
            true => OfEngine::Process,
            false => OfEngine::threads(engine.threads()),
        });
        usage::begin();
        common.start();
        if let Some(clock) = self.resolved.start_clock {
            let now = time::clock_ms(clock).map_err(|error| Stop::new("func=job_start_clock_id", &error))?;
            self.control().own_start_ms.store(now, Relaxed);
        }
        Message::Look.send(self.messages);
        let worked = self.loops(io_loop);
        let (common, engine) = io_loop.with_engine();
        let failure = common.end.failure.take();
        if common.is_ramping() && failure.is_none() && worked.is_ok() {
            self.warn_of_ramp();
        }
        let trouble = common.end.trouble.take();
        let names =
            failure.and_then(|failure| failure.attempt).map(|attempt| common.files.name(attempt.file));
        common.finish();
        self.enter(Phase::Finishing);
        let logged = self.finish_logs(common.extras.log.take());
        let put_away = self.put_away(common, engine);
        let remarks = if common.has_given_up() { Vec::new() } else { engine.remarks() };
        for line in remarks {
            Message::Note(self.number(), line).send(self.messages);
        }
        // If the other end is a job of this run, its report shows what arrived.
        let warnings = if self.resolved.other_ends.is_empty() { engine.warnings() } else { Vec::new() };
        for line in warnings {
            let text = format!("{}: {line}", self.resolved.name);
            Message::Warning(self.number(), text).send(self.messages);
        }
        let requests = engine.requests().since(common.requests_before());
        if let Some(words) = requests.in_words() {
            Message::Note(self.number(), format!("{}: {words}", self.resolved.engine_name))
                .send(self.messages);
        }
        let Requests { repeated, throttled } = requests;
        self.slot().stats.repeated.set(repeated);
        self.slot().stats.throttled.set(throttled);
        if let Some(verification) = &mut common.extras.verification {
            self.leave_state(verification, failure.is_none() && worked.is_ok());
        }
        let failed = match failure {
            Some(Failure { errno: Errno(libc::EINTR), .. }) if self.stop_requested() => None,
            Some(failure) => Some(self.tell(failure, names, trouble)),
            None => None,
        };
        // (Stopping a worker interrupts its system calls. That is not a failure.)
        let is_stopped = |stop: &Stop| stop.errno == libc::EINTR && self.stop_requested();
        let stops = failed.into_iter().chain(worked.err()).chain(logged.err()).chain(put_away);
        let mut stops = stops.filter(|stop| !is_stopped(stop));
        let first = stops.next();
        // A job has one error. Further errors, such as writes that a server may have lost, become warnings.
        for Stop { errno, what } in stops {
            let text = format!("{}: {what} ({})", self.resolved.name, describe_errno(errno));
            Message::Warning(self.number(), text).send(self.messages);
        }
        first.map_or(Ok(()), Err)
    }

    /// Lets the engine meet the other end of its connection.
    fn meet(&self, engine: &mut dyn DynEngine) -> Result<(), Stop> {
        let others = &self.resolved.other_ends;
        let has_ended = |&other: &usize| self.arena.slot(other).control.phase() == Phase::Exited;
        let mut goes_on = || {
            if self.stop_requested() {
                return Err(io::Error::from_raw_os_error(libc::EINTR));
            }
            if !others.is_empty() && others.iter().all(has_ended) {
                let reset = io::Error::from_raw_os_error(libc::ECONNABORTED);
                let words = "the job at the other end has ended before it came".to_owned();
                return Err(explained(&reset, words));
            }
            Ok(())
        };
        engine.meet(&mut goes_on).map_err(|error| Stop::new("func=connect", &error))
    }

    /// Warns that the job ended before counting began.
    fn warn_of_ramp(&self) {
        let ramp = if self.resolved.sized_ramp.is_some() { "ramp_size" } else { "ramp_time" };
        let name = &self.resolved.name;
        let text = format!("{name}: ended within its ramp ({ramp}): the report is about the ramp");
        Message::Warning(self.number(), text).send(self.messages);
    }

    /// Warns that the job ended before its time, because there was nothing to do.
    fn warn_of_idleness(&self) {
        let name = &self.resolved.name;
        let what = match self.resolved.zones {
            Some(_) => "no zone had anything to read, room to write, or data to trim",
            None if self.resolved.passes.is_only_one => "it was at the end of its files (file_append)",
            None => "a pass found nothing to do",
        };
        let text = format!("{name}: ended before its runtime: {what}");
        Message::Warning(self.number(), text).send(self.messages);
    }

    /// Runs the passes of the job.
    fn loops(&self, io_loop: &mut dyn AnyLoop<'_>) -> Result<(), Stop> {
        let PassRules { loops, time_based, is_only_one, unlink_each_loop, repeat_choices, kind, .. } =
            self.resolved.passes;
        let mut left = loops;
        while left > 0 && !io_loop.common().is_over() {
            io_loop.common().begin_pass();
            let end = self.pass(io_loop);
            left -= 1;
            // The next pass would have nothing to do either, and would never check the time.
            let was_idle = is_only_one || io_loop.common().was_idle();
            let is_idle = time_based && kind == PassKind::Perform && end == PassEnd::Finished && was_idle;
            let again = (left > 0 || time_based) && !is_idle;
            if again {
                io_loop.sync_between_passes();
            }
            let (common, engine) = io_loop.with_engine();
            if self.resolved.syncs.end_fsync && common.end.failure.is_none() {
                self.sync_all(common, engine)?;
            }
            common.end_pass();
            let end = self.check_pass(io_loop, end, !again)?;
            let (common, engine) = io_loop.with_engine();
            if end == PassEnd::Stopped || common.is_over() {
                break;
            }
            if is_idle {
                self.warn_of_idleness();
                break;
            }
            if again && unlink_each_loop && !common.has_given_up() {
                self.make_anew(common, engine)?;
            } else if again {
                self.renew(common, engine)?;
            }
            if time_based {
                left = left.max(1);
            }
            if again && repeat_choices {
                io_loop.generator().rewind();
            } else if again {
                io_loop.generator().restart();
            }
            if again && let Some(verification) = &mut io_loop.common().extras.verification {
                verification.next_pass(repeat_choices, || self.stop_requested());
            }
        }
        Ok(())
    }

    /// Syncs all files after a pass (`end_fsync`).
    fn sync_all(&self, common: &mut Common<'_>, engine: &mut dyn DynEngine) -> Result<(), Stop> {
        let before = self.control().phase();
        self.control().set_phase(Phase::Syncing);
        let synced = common.files.sync_all(engine);
        self.control().set_phase(before);
        synced.map_err(|error| Stop::new("func=end_fsync", &error))?;
        common.all_flushed();
        Ok(())
    }

    /// Between two passes: removes the files and creates them again (`unlink_each_loop`).
    fn make_anew(&self, common: &mut Common<'_>, engine: &mut dyn DynEngine) -> Result<(), Stop> {
        let ResolvedWorker { name, creation, layout, .. } = self.resolved;
        common.files.close_all(engine).map_err(|error| Stop::new("func=close", &error))?;
        common.files.unlink(engine.storage()).map_err(|error| Stop::new("func=unlink", &error))?;
        let mut quiet = |_| ();
        // (What was just removed may not be free yet.)
        let on_open = creation.on_open || creation.again_on_open;
        let creation = &Creation { surely_written: None, on_open, ..creation.clone() };
        creation::create(name, creation, &layout.removed(), &mut quiet, &|| self.stop_requested())
            .map_err(|error| Stop::new("func=layout", &error))?;
        self.open(&mut common.files, engine)
    }

    /// Between two passes: drops the files' pages from the page cache and, unless they are kept open, reopens the
    /// files.
    fn renew(&self, common: &mut Common<'_>, engine: &mut dyn DynEngine) -> Result<(), Stop> {
        if self.resolved.passes.keep_open || common.has_given_up() {
            common.files.refresh(engine);
            return Ok(());
        }
        common.files.close_all(engine).map_err(|error| Stop::new("func=close", &error))?;
        self.open(&mut common.files, engine)
    }

    /// Syncs, closes and removes files at the end, as the job says.
    fn put_away(&self, common: &mut Common<'_>, engine: &mut dyn DynEngine) -> Vec<Stop> {
        let mut stops = Vec::new();
        if self.stop_requested() {
            engine.stop_repeating();
        }
        if common.has_given_up() {
            // Files stay open: I/O on them may still come back.
            return stops;
        }
        if self.resolved.syncs.end_syncfs {
            let synced = common.files.sync_file_systems(engine);
            stops.extend(synced.err().map(|error| Stop::new("func=end_syncfs", &error)));
        }
        let closed = common.files.close_all(engine);
        self.control().open_files.store(0, Relaxed);
        stops.extend(closed.err().map(|error| Stop::new("func=close", &error)));
        stops.extend(self.finish_recording(&mut common.files).err());
        if self.resolved.passes.unlink {
            let removed = common.files.unlink(engine.storage());
            stops.extend(removed.err().map(|error| Stop::new("func=unlink", &error)));
        }
        stops
    }

    /// Opens the files that are open when the job starts.
    pub(crate) fn open(&self, files: &mut FileTable, engine: &mut dyn DynEngine) -> Result<(), Stop> {
        let has_local_files = self.resolved.files.data == Data::LocalFiles;
        if !has_local_files {
            // The engine opens no files, but users expect the job's files to be counted as open.
            self.control().open_files.store(files.len() as u32, Relaxed);
        }
        for file in 0..self.resolved.workload.open_files.min(files.len()) as u32 {
            files
                .open(engine, file)
                .map_err(|error| Stop::new(format!("func=open({})", files.name(file)), &error))?;
        }
        if has_local_files {
            self.control().open_files.store(files.open_count(), Relaxed);
        }
        Ok(())
    }
}
