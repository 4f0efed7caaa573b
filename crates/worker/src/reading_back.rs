//! Passes of a verified job: reading files back after a pass, and removing the verify state when it is no longer
//! needed.

use super::io_loop::{AnyLoop, PassEnd};
use super::{Stop, Worker};
use iolite_os::message::Message;
use iolite_os::shared::Phase;
use iolite_plan::resolve::PassKind;
use iolite_verify::{Rules, Verification};
use iolite_workload::Spec;
use tracing::debug;

impl Worker<'_> {
    /// Prepares the verification; `None` = the job does not verify.
    #[inline(never)]
    pub(super) fn verification(&self, workload: &Spec) -> Result<Option<Verification>, Stop> {
        let Some(rules) = &self.resolved.verify else { return Ok(None) };
        let mut verification = Verification::begin(rules, workload, self.owners)
            .map_err(|error| Stop { errno: error.errno(), what: format!("func=verify: {error}") })?;
        let (name, history) = (&rules.job, &verification.read_back);
        debug!(target: "verify", "{name}: {history}, at most {} bytes", history.history_bytes());
        if rules.wants_no_history && history.keeps_writes() {
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
        if let Some(warning) = verification.warning.take() {
            Message::Warning(self.number(), warning).send(self.messages);
        }
        Ok(Some(verification))
    }

    /// Runs a pass, unless an earlier run has done so.
    pub(super) fn pass(&self, io_loop: &mut dyn AnyLoop<'_>) -> PassEnd {
        let verification = io_loop.common().extras.verification.as_deref();
        let is_known = verification.is_some_and(Verification::knows_all_passes);
        match self.resolved.passes.kind {
            PassKind::Perform => io_loop.pass(),
            PassKind::Assume if !is_known => io_loop.dry_pass(),
            PassKind::Assume | PassKind::Skip => PassEnd::Finished,
        }
    }

    /// After a pass: performs the pending trims and reads back the writes of the pass, from the medium if possible.
    pub(super) fn check_pass(
        &self,
        io_loop: &mut dyn AnyLoop<'_>,
        end: PassEnd,
        is_last: bool,
    ) -> Result<PassEnd, Stop> {
        let rules = self.resolved.verify.as_ref();
        // If only the last loop of the earlier run is valid, its writes are known after the last loop of this run.
        let is_known = |rules: &Rules| rules.earlier.is_none_or(|earlier| earlier.any_pass);
        let is_now = |rules: &Rules| rules.reads_back && (is_last || is_known(rules));
        let now = rules.is_some_and(is_now);
        let mut end = end;
        let (common, engine) = io_loop.with_engine();
        let goes_on = common.end.failure.is_none() && (end == PassEnd::Finished || common.may_resume());
        if goes_on && !now && common.trims_what_was_written() {
            end = io_loop.trim_the_rest();
        } else if goes_on && now {
            if rules.is_some_and(|rules| rules.writes) {
                if !self.resolved.syncs.end_fsync {
                    let synced = common.files.sync_all(engine);
                    synced.map_err(|error| Stop::new("func=fsync", &error))?;
                    common.all_flushed();
                }
                common.files.refresh(engine);
            }
            self.enter(Phase::Verifying);
            end = io_loop.read_back();
            self.control().set_phase(io_loop.common().phase());
        }
        let common = io_loop.common();
        common.conclude_checks();
        let Some(verification) = &mut common.extras.verification else { return Ok(end) };
        let is_told = is_last || end == PassEnd::Stopped || common.end.failure.is_some();
        if let Some(hint) = verification.hint(now && end == PassEnd::Finished).filter(|_| is_told) {
            Message::Warning(self.number(), format!("{}: {hint}", self.resolved.name)).send(self.messages);
        }
        let unread = verification.read_back.unread();
        verification.is_complete = now && unread_is_none(end, unread);
        if end == PassEnd::Stopped && unread > 0 && common.end.failure.is_none() && now {
            let writes = if unread == 1 { "write was" } else { "writes were" };
            let text = format!("{}: stopped before {unread} {writes} read back", self.resolved.name);
            // This is a warning so that the user sees it even if a program reads the report: the job asked for a check
            // that is incomplete.
            Message::Warning(self.number(), text).send(self.messages);
        }
        Ok(end)
    }

    /// Removes the verify state if everything was verified, unless the user asked for it. Otherwise keeps it, and
    /// prints its path if the user stopped the job.
    pub(super) fn leave_state(&self, verification: &mut Verification, is_well: bool) {
        let Some(state) = verification.state.take() else { return };
        let path = state.path().to_owned();
        if !is_well || verification.wrong() > 0 || !verification.is_complete {
            if self.stop_requested() {
                let text = format!("{}: verify state saved as {}", self.resolved.name, path.display());
                Message::Note(self.number(), text).send(self.messages);
            }
            return;
        }
        if let Err(error) = state.remove() {
            let text = format!("verify state {} cannot be removed: {error}", path.display());
            Message::Trouble(self.number(), text).send(self.messages);
        }
    }
}

/// Whether everything that a pass wrote was read back.
fn unread_is_none(end: PassEnd, unread: u64) -> bool {
    end == PassEnd::Finished || unread == 0
}
