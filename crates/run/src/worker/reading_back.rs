//! Between the passes of a verified job: its files are read back, and its state goes when it is needed no more.

use super::io_loop::{IoLoop, PassEnd};
use super::verify::{self, Verification, WorkerIdentity};
use super::{Stop, Worker};
use crate::message::Message;
use crate::shared::Phase;
use iolite_engine::Engine;
use iolite_workload::{Generator, Spec};
use tracing::debug;

impl Worker<'_> {
    /// What can be verified, and how; `None` = nothing is.
    #[inline(never)]
    pub(super) fn verification(&self, workload: &Spec) -> Result<Option<Verification>, Stop> {
        let identity = WorkerIdentity {
            seed: self.plan.seed,
            job: self.plan.number(),
            rivalry: self.rivals.of_worker(self.plan.index),
            owners: self.rivals.owners().clone(),
            keeps_data: self.job.engine.facets.keeps_data(),
            directory: self.job.auxiliary.clone(),
            worker: self.plan.index,
            replay: self.plan.replay.clone(),
            place: self.plan.place,
        };
        let mut verification =
            Verification::new(self.options(), workload, &self.resolved.layout, identity)
                .map_err(|error| Stop { errno: error.errno(), what: format!("func=verify: {error}") })?;
        if let Some(verification) = &verification {
            let (name, history) = (&self.options().name, &verification.read_back);
            debug!(target: "verify", "{name}: {history}, at most {} bytes", history.history_bytes());
            if self.options().verification.experimental_verify && history.keeps_writes() {
                let text = format!(
                    "{name}: experimental_verify=1: running this workload again does not tell what its writes have left; \
                     {history}, at most {} bytes",
                    history.history_bytes()
                );
                Message::Warning(self.number(), text).send(self.messages);
            }
            if let Some(state) = &verification.state {
                let (path, bytes) = (state.path().display(), state.bytes());
                debug!(target: "verify", "{name}: state in {path}, {bytes} bytes");
            }
        }
        if let Some(warning) = verification.as_mut().and_then(|verification| verification.warning.take()) {
            Message::Warning(self.number(), warning).send(self.messages);
        }
        Ok(verification)
    }

    /// A pass: nothing is done where an earlier run has done it.
    pub(super) fn pass<E: Engine, G: Generator, const FULL: bool>(
        &self,
        io_loop: &mut IoLoop<E, G, FULL>,
    ) -> PassEnd {
        let options = self.options();
        if verify::loads_state(options) {
            return PassEnd::Finished;
        }
        if options.verify_only && options.rw.writes() {
            return io_loop.dry_pass();
        }
        io_loop.pass()
    }

    /// Trims what waits for that, and reads back what a pass has written, from the medium as far as that is possible.
    pub(super) fn check_pass<E: Engine, G: Generator, const FULL: bool>(
        &self,
        io_loop: &mut IoLoop<E, G, FULL>,
        end: PassEnd,
        is_last: bool,
    ) -> Result<PassEnd, Stop> {
        let options = self.options();
        // What earlier runs have written can be checked as it is after the last loop only.
        let now = verify::reads_back(options) && (is_last || !options.verify_only);
        let mut end = end;
        let goes_on = io_loop.end.failure.is_none() && (end == PassEnd::Finished || io_loop.may_resume());
        if goes_on && !now && io_loop.trims_what_was_written() {
            end = io_loop.trim_the_rest();
        }
        if goes_on && now {
            if options.rw.writes() && !options.verify_only {
                if !options.end_fsync {
                    let synced = io_loop.files.sync_all(&io_loop.engine);
                    synced.map_err(|error| Stop::new("func=fsync", &error))?;
                    io_loop.all_flushed();
                }
                io_loop.files.refresh(&io_loop.engine);
            }
            self.enter(Phase::Verifying);
            end = io_loop.read_back();
            self.control().set_phase(io_loop.phase());
        }
        io_loop.conclude_checks();
        let Some(verification) = &mut io_loop.extras.verification else { return Ok(end) };
        if let Some(hint) = verification.hint(now && end == PassEnd::Finished) {
            Message::Warning(self.number(), format!("{}: {hint}", options.name)).send(self.messages);
        }
        let unread = verification.read_back.unread();
        verification.is_complete = now && unread_is_none(end, unread);
        if end == PassEnd::Stopped && unread > 0 && io_loop.end.failure.is_none() && now {
            let writes = if unread == 1 { "write was" } else { "writes were" };
            let text = format!("{}: stopped before {unread} {writes} read back", options.name);
            // Also beside a report for programs: who asked for proof has not got all of it.
            Message::Warning(self.number(), text).send(self.messages);
        }
        Ok(end)
    }

    /// Removes the state of a job that was verified to its end; of any other, says where it is.
    pub(super) fn leave_state(&self, verification: &mut Verification, is_well: bool) {
        let Some(state) = verification.state.take() else { return };
        let path = state.path().to_owned();
        if !is_well || verification.wrong() > 0 || !verification.is_complete {
            if self.stop_requested() {
                let text = format!("{}: verify state saved as {}", self.options().name, path.display());
                Message::Note(self.number(), text).send(self.messages);
            }
            return;
        }
        if let Err(error) = state.remove() {
            let text = format!("verify state {} cannot be removed: {error}", path.display());
            Message::Warning(self.number(), text).send(self.messages);
        }
    }
}

/// Whether a pass has been read back to its end: it was finished, or ended on the way without anything left.
fn unread_is_none(end: PassEnd, unread: u64) -> bool {
    end == PassEnd::Finished || unread == 0
}
