//! Verification in the loop: reads between writes and after a pass, and checking the blocks that were read.

use super::ending::PassEnd;
use super::failure::{Attempt, Failure, Missed, failed_check};
use super::{Common, IoLoop};
use iolite_engine::{Engine, Errno};
use iolite_os::message::Message;
use iolite_types::Direction;
use iolite_types::describe_error;
use iolite_verify::block::{Mismatch, SpecError};
use iolite_verify::{Checked, Compared, Expect, Keeper, Part, Role, Telling, Trims, Verification};
use iolite_workload::history::Written;
use iolite_workload::{Generator, Io, Next};
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// The errno for data that differs from the data written.
const WRONG_DATA: Errno = Errno(iolite_types::WRONG_DATA);

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Reads back the writes since the last time, if that is due.
    pub(super) fn read_back_some(&mut self) {
        let Some(verification) = &self.common.extras.verification else { return };
        let reads = verification.read_back.is_due();
        if reads || verification.trims.as_ref().is_some_and(Trims::is_due) {
            self.trim_some(reads);
        }
        if !reads {
            return;
        }
        // Writes must complete before they are read back, and no later write may overtake the read.
        self.drain();
        self.check_all(|verification| verification.read_back.next_due());
    }

    /// Issues reads until `next` has no more. Returns when nothing is in flight.
    fn check_all(&mut self, next: fn(&mut Verification) -> Option<(Io, Expect)>) {
        let began = self.common.clock.now();
        self.within_span(Direction::Read, |it| it.issue_checks(next));
        let now = self.common.clock.now();
        if let Some(pace) = &mut self.common.extras.pace {
            pace.read_back(began, now);
        }
    }

    fn issue_checks(&mut self, next: fn(&mut Verification) -> Option<(Io, Expect)>) {
        loop {
            if self.common.control.attention() != 0 {
                self.attend();
            }
            if self.common.end.stopping {
                break;
            }
            let Some(verification) = &mut self.common.extras.verification else { break };
            let Some((io, expect)) = next(verification) else { break };
            self.submit_check(io, expect);
        }
        self.drain();
    }

    /// Reads back the writes of the pass. Returns when nothing is in flight.
    pub fn read_back(&mut self) -> PassEnd {
        self.end_checked_pass(|it| {
            it.trim_some(true);
            it.common.announce(Verification::begin_reads);
            it.announce_reads();
            it.common.announce(|verification| verification.at_end = true);
            it.check_all(Verification::next_at_end);
            let control = it.common.control;
            while !it.common.end.stopping
                && let Some(verification) = &mut it.common.extras.verification
                && verification.read_again(|| control.terminating())
            {
                // These blocks are counted when they are checked for good.
                let checked = &it.common.stats.checked_blocks;
                checked.set(checked.get().saturating_sub(verification.repeated_reads()));
                it.announce_reads();
                it.check_all(Verification::next_at_end);
            }
            it.common.announce(|verification| verification.at_end = false);
        })
    }

    /// Does the pending trims of a pass that is not read back. Returns when nothing is in flight.
    pub fn trim_the_rest(&mut self) -> PassEnd {
        self.end_checked_pass(|it| it.trim_some(true))
    }

    /// Runs `act` at the end of a pass. If the job outlasts its time, `act` runs even if the time is over.
    fn end_checked_pass(&mut self, act: impl FnOnce(&mut Self)) -> PassEnd {
        let resumed = self.common.resume();
        // `act` goes on if the time ends meanwhile. The end of the ramp still counts.
        if self.common.outlasts_time() {
            self.common.time.put_off = Some(self.common.time.next_event);
            if !self.common.time.ramping {
                self.common.time.next_event = u64::MAX;
            }
        }
        act(self);
        let end = if self.common.end.stopping { PassEnd::Stopped } else { PassEnd::Finished };
        self.common.end.stopping |= resumed;
        if let Some(event) = self.common.time.put_off.take()
            && !self.common.time.ramping
        {
            self.common.time.next_event = event;
        }
        end
    }

    /// Publishes the number of reads that the job will have done at the end, for the estimate of the time left.
    fn announce_reads(&self) {
        let Some(verification) = &self.common.extras.verification else { return };
        let until = self.common.stats.moved(Direction::Read.index()).ios + verification.expected_reads();
        self.common.control.read_until.store(until, Relaxed);
    }

    /// Goes through a pass without issuing I/O, because an earlier run has done it.
    pub fn dry_pass(&mut self) -> PassEnd {
        while !self.common.end.stopping {
            if self.common.control.attention() != 0 {
                self.attend();
            }
            match self.generator.next() {
                Next::Io(io) => self.assume(io),
                Next::Script(step) => self.follow_dryly(step),
                Next::Close(_) | Next::Lap => {}
                Next::Done => break,
            }
        }
        if self.common.end.stopping { PassEnd::Stopped } else { PassEnd::Finished }
    }

    /// Notes an I/O that an earlier run has done.
    fn assume(&mut self, io: Io) {
        let Some(verification) = &mut self.common.extras.verification else { return };
        match io.direction {
            Direction::Write => {
                if let Some(error) = verification.obstacle(&io) {
                    self.give_up_on(&io, &error);
                    return;
                }
                verification.assume(io);
            }
            Direction::Trim => verification.trimmed(&io),
            Direction::Read => {}
        }
    }

    /// Ends the job, because verification cannot follow this I/O.
    pub(super) fn give_up_on(&mut self, io: &Io, error: &SpecError) {
        let (length, offset, name) = (io.length, io.offset, self.common.files.name(io.file));
        self.give_up(
            libc::EINVAL,
            format!("a write of {length} bytes at offset {offset} of {name}: {error}"),
        );
    }

    /// Does the trims that are due, or all pending ones if `all`. Returns when nothing is in flight.
    fn trim_some(&mut self, all: bool) {
        if !self.common.trims_what_was_written() {
            return;
        }
        // A trim must come after its write.
        self.drain();
        self.within_span(Direction::Trim, |it| {
            while !it.common.end.stopping
                && let Some(trims) = it
                    .common
                    .extras
                    .verification
                    .as_mut()
                    .and_then(|verification| verification.trims.as_mut())
                && let Some(written) = trims.next(all)
            {
                it.common.announce(|verification| verification.announce_trim(written));
                it.submit(Io { direction: Direction::Trim, ..written.io });
                it.common.announce(Verification::withdraw);
                if !E::SYNCHRONOUS && it.common.flight.count >= it.common.flight.limit {
                    it.make_room();
                }
            }
            it.drain();
        });
    }

    fn submit_check(&mut self, io: Io, expect: Expect) {
        let Some(verification) = &mut self.common.extras.verification else { return };
        let Some(expect) = verification.after_trims(expect) else { return };
        let place = verification.place_of(&io);
        let is_at_end = verification.at_end && verification.rules.writes;
        if !self.common.files.is_open(io.file)
            && self.common.files.open_count() as usize >= verification.rules.open_files
        {
            // After the last pass everything has been synced.
            if !verification.at_end {
                self.sync_what_is_due();
            }
            self.drain();
            if let Err(error) = self.common.files.close_all(&mut self.engine) {
                self.common.refused(Attempt::at(&io), error.into());
                return;
            }
        }
        if is_at_end
            && !self.common.files.is_open(io.file)
            && let Err(error) = self.common.files.reopen(&mut self.engine, io.file)
        {
            self.common.refused(Attempt::at(&io), error.into());
            return;
        }
        self.common.announce(|verification| verification.announce(io, expect));
        self.submit(place);
        self.common.announce(Verification::withdraw);
        if !E::SYNCHRONOUS && self.common.flight.count >= self.common.flight.limit {
            self.make_room();
        }
    }

    /// If no unit is free, waits for one that is being checked, or whose I/O was given up. There may be none if the job
    /// ends meanwhile.
    pub(super) fn await_unit(&mut self) {
        while self.common.flight.is_exhausted() && (self.collect(true) || self.await_return()) {}
    }

    /// Handles the role of a completed unit. Returns whether the unit is still in use.
    pub(super) fn act_on(&mut self, index: u32, role: Role) -> bool {
        let Some(verification) = &mut self.common.extras.verification else { return false };
        match role {
            Role::Plain | Role::Trim(_) => false,
            Role::Write(written) => {
                verification.read_back.wrote(written);
                if let Some(trims) = &mut verification.trims {
                    trims.wrote(written);
                }
                if let Some(state) = &verification.state {
                    state.acknowledge(index);
                }
                false
            }
            Role::Look(io) => self.look(index, io),
            Role::Check(io, expect) => {
                let compared = verification.compared(index);
                if compared == Compared::Same {
                    self.common.stats.checked_blocks.add(1);
                    return false;
                }
                let Some(question) = verification.question(&io, expect) else { return false };
                self.common.stats.checked_blocks.add(1);
                // SAFETY: the bytes are within the buffer of a unit that is not in flight.
                let block = unsafe { &*self.common.flight.buffers.part(index, 0, io.length) };
                if compared == Compared::No
                    && let Some(pool) = &mut verification.pool
                {
                    // The block has been read and its owner is known, so other workers need not wait until the check is
                    // done.
                    if let Some(turns) = &mut verification.turns {
                        turns.left(index);
                    }
                    // SAFETY: the unit is not released until it comes back (`collect`), and the loop drops its pool
                    // before the buffers.
                    unsafe { pool.ask(index, block, question) };
                    verification.keep(index, role);
                    return true;
                }
                let mismatches = verification.checker.check(block, question);
                let found = verification.checker.found();
                if compared == Compared::Different && mismatches.is_empty() {
                    self.common.differs_unseen(io);
                }
                let Some(verification) = &mut self.common.extras.verification else { return false };
                if verification.checked(&io, expect, &mismatches, found) {
                    self.common.found_wrong(&self.generator, index, 0, io, &mismatches);
                }
                false
            }
        }
    }

    /// Checks the data that a replay has read, as far as the replay itself wrote it and has not overwritten it.
    fn look(&mut self, index: u32, read: Io) -> bool {
        let end = read.offset + read.length;
        let mut rest = read;
        while let Some(verification) = &self.common.extras.verification
            && let Some(Written { io: part, number }) = verification.read_back.first_within(&rest)
        {
            let part = Io { direction: Direction::Read, ..part };
            let expect = Expect::Write(number);
            if part == read {
                return self.act_on(index, Role::Check(read, expect));
            }
            self.look_at(index, &read, part, expect);
            let next = part.offset + part.length;
            rest = Io { offset: next, length: end - next, ..rest };
        }
        false
    }

    /// Checks a part of the data read.
    fn look_at(&mut self, index: u32, read: &Io, part: Io, expect: Expect) {
        let from = (part.offset - read.offset) as usize;
        let Some(verification) = &mut self.common.extras.verification else { return };
        let Some(question) = verification.question(&part, expect) else { return };
        // SAFETY: the bytes are within the buffer of a unit that is not in flight.
        let block = unsafe { &*self.common.flight.buffers.part(index, from, part.length) };
        let mismatches = verification.checker.check(block, question);
        self.common.stats.checked_blocks.add(1);
        self.common.found_wrong(&self.generator, index, from, part, &mismatches);
    }

    /// Takes back units that were checked: all that are ready, after waiting for one if `wait`. Returns whether there
    /// were any.
    pub(super) fn collect(&mut self, wait: bool) -> bool {
        let mut any = false;
        while let Some(pool) =
            self.common.extras.verification.as_mut().and_then(|verification| verification.pool.as_mut())
            && let Some(Checked { index, mismatches, found }) = pool.answer(wait && !any)
        {
            any = true;
            let role = self
                .common
                .extras
                .verification
                .as_mut()
                .map_or(Role::Plain, |verification| verification.role(index));
            if let Role::Check(io, expect) = role
                && let Some(verification) = &mut self.common.extras.verification
                && verification.checked(&io, expect, &mismatches, found)
            {
                self.common.found_wrong(&self.generator, index, 0, io, &mismatches);
            }
            self.release(index);
        }
        any
    }

    /// Waits for all units that are being checked.
    pub(super) fn collect_all(&mut self) {
        while self.collect(true) {}
    }

    /// Takes the turn for an I/O if other writers share its place. Returns whether the I/O may be issued.
    pub(super) fn take_turn(&mut self, io: &Io) -> bool {
        let Some(verification) = &mut self.common.extras.verification else { return true };
        let Some(aim) = verification.aim(io) else { return true };
        let Some(descriptor) = self.engine.descriptor(io.file) else { return true };
        let part = Part { file: io.file, offset: io.offset, length: io.length };
        let mut turn =
            verification.turns.as_mut().map_or(Ok(true), |turns| turns.take(descriptor, part, aim));
        while let Ok(false) = turn {
            // A worker that waits must not hold turns that another one waits for.
            self.drain();
            if self.common.end.failure.is_some() {
                return false;
            }
            let turns =
                self.common.extras.verification.as_mut().and_then(|verification| verification.turns.as_mut());
            turn = turns.map_or(Ok(()), |turns| turns.wait(descriptor, part, aim)).map(|()| true);
            let is_over = self.common.control.terminating();
            turn = turn.or_else(|error| match error.kind() {
                io::ErrorKind::Interrupted if !is_over => Ok(false),
                _ => Err(error),
            });
        }
        if let Err(error) = turn {
            if error.kind() != io::ErrorKind::Interrupted {
                self.common.trouble_with_turns(io, &error);
            }
            self.common.refused(Attempt::at(io), error.into());
            return false;
        }
        true
    }
}

impl Common<'_> {
    /// Whether to trim and read back the writes of a pass although the pass was stopped, because the time of a
    /// time-based job was over or the device was full.
    pub fn may_resume(&self) -> bool {
        let ended = (self.end.timed_out && self.outlasts_time()) || self.end.device_full;
        ended && self.end.failure.is_none() && !self.control.terminating()
    }

    fn outlasts_time(&self) -> bool {
        self.extras.verification.as_ref().is_some_and(|verification| verification.rules.outlasts_time)
    }

    /// Resumes after such an end. Returns whether there was one.
    fn resume(&mut self) -> bool {
        let resumes = self.end.stopping && self.may_resume();
        if resumes {
            self.end.stopping = false;
            self.time.next_event = u64::MAX;
        }
        resumes
    }

    /// The pass is over. Wrong blocks that have not ended the job yet end it now.
    pub fn conclude_checks(&mut self) {
        if let Some(attempt) = self.end.wrong.take() {
            self.fail_check(attempt);
        }
    }

    /// Whether the job trims blocks after writing them.
    pub fn trims_what_was_written(&self) -> bool {
        self.extras.verification.as_ref().is_some_and(|verification| verification.trims.is_some())
    }

    /// Calls `what` with the verification, if there is one.
    fn announce(&mut self, what: impl FnOnce(&mut Verification)) {
        if let Some(verification) = &mut self.extras.verification {
            what(verification);
        }
    }

    /// Notes that all files have been synced while nothing was in flight.
    pub fn all_flushed(&mut self) {
        for file in 0..self.files.len() as u32 {
            if let Some(state) = self.state() {
                state.flushed_file(file);
            }
        }
    }

    /// The state that is saved for a later run.
    pub(super) fn state(&mut self) -> Option<&mut Keeper> {
        self.extras.verification.as_mut()?.state.as_mut()
    }

    /// The storage reports that a block differs from the data it was compared with. Returns whether to read the block,
    /// to find the difference.
    pub(super) fn reads_what_differs(&mut self, index: u32, errno: Errno) -> bool {
        errno == WRONG_DATA
            && self.extras.verification.as_mut().is_some_and(|verification| verification.differs(index))
    }

    /// The storage reported a difference, but the data that it reads back is right.
    #[cold]
    fn differs_unseen(&mut self, io: Io) {
        let Some(verification) = &mut self.extras.verification else { return };
        let offset = verification.place_of(&io).offset;
        let text = format!(
            "verify: bad block at file {} offset {offset}: the device says that it differs (Compare Failure), but reads what \
             was written",
            self.files.name(io.file)
        );
        if verification.count_wrong() != Telling::Nothing {
            Message::WrongData(self.errors.worker(), text).send(self.errors.messages());
        }
        self.stats.wrong_blocks.add(1);
        self.count_wrong_data(WRONG_DATA);
        if !self.errors.tolerates_wrong_data(WRONG_DATA) {
            self.fail_check(Attempt::at(&io));
        }
    }

    /// Whether this unit is a read that is not part of the workload.
    pub(super) fn is_check(&self, index: u32) -> bool {
        self.extras.verification.as_ref().is_some_and(|verification| is_check(verification.role_of(index)))
    }

    /// Notes that the unit's I/O has failed.
    pub(super) fn forget_role(&mut self, index: u32) {
        let Some(verification) = &mut self.extras.verification else { return };
        if let Some(turns) = &verification.turns {
            turns.failed(index);
        }
        let role = verification.role(index);
        if let Role::Write(written) | Role::Trim(written) = role {
            verification.read_back.forget(&written.io);
        }
        if let (Role::Write(_), Some(state)) = (role, &verification.state) {
            state.failed(index);
        }
    }

    fn trouble_with_turns(&self, io: &Io, error: &io::Error) {
        let text = format!(
            "verify: {}: cannot be locked, which verify needs if several jobs write: {}; give each job its own file",
            self.files.name(io.file),
            describe_error(error)
        );
        Message::Trouble(self.errors.worker(), text).send(self.errors.messages());
    }

    fn fail_check(&mut self, attempt: Attempt) {
        self.fail(Failure { errno: WRONG_DATA, attempt: Some(attempt), missed: Some(Missed::Data) });
    }

    /// Counts wrong data, also as an error if the job counts such errors.
    fn count_wrong_data(&self, errno: Errno) {
        self.stats.failures[Direction::Read.index()].count(errno.0);
        if self.errors.counts_wrong_data() {
            self.count(errno);
        }
    }

    /// Handles the result for a block that was checked. It starts `from` bytes into the unit's buffer.
    fn found_wrong(
        &mut self,
        generator: &dyn Generator,
        index: u32,
        from: usize,
        io: Io,
        mismatches: &[Mismatch],
    ) {
        if !mismatches.is_empty() {
            self.tell_wrong(generator, index, from, io, mismatches);
        }
    }

    #[cold]
    fn tell_wrong(
        &mut self,
        generator: &dyn Generator,
        index: u32,
        from: usize,
        io: Io,
        mismatches: &[Mismatch],
    ) {
        let attempt = Attempt::at(&io);
        let name = self.files.name(io.file);
        let Some(verification) = &self.extras.verification else { return };
        let (fatal, first) = (verification.rules.fatal, verification.wrong() == 0);
        for mismatch in mismatches {
            self.describe(generator, index, from, io, &name, mismatch);
        }
        self.stats.wrong_blocks.add(1);
        self.count_wrong_data(WRONG_DATA);
        if self.errors.tolerates_wrong_data(WRONG_DATA) {
            if first {
                Message::WentOn(self.errors.worker(), WRONG_DATA.0, failed_check(&name))
                    .send(self.errors.messages());
            }
            // The job ends, but without an error.
            self.end.stopping |= fatal;
            return;
        }
        if fatal {
            self.fail_check(attempt);
        } else {
            self.end.wrong.get_or_insert(attempt);
        }
    }

    /// Reports a mismatch in a block, and saves the block if the job asks for that.
    fn describe(
        &mut self,
        generator: &dyn Generator,
        index: u32,
        from: usize,
        io: Io,
        name: &str,
        mismatch: &Mismatch,
    ) {
        // SAFETY: the bytes are within the buffer of a unit that is not in flight.
        let block = unsafe { &*self.flight.buffers.part(index, from, io.length) };
        let Some(verification) = &mut self.extras.verification else { return };
        let telling = verification.count_wrong();
        if telling == Telling::Nothing {
            return;
        }
        let mut lines = vec![mismatch.text(name)];
        let place = verification.place_of(&io);
        if place.offset != io.offset {
            lines.push(format!("  it was appended: the device has put it at offset {}", place.offset));
        }
        lines.extend(generator.loss(&place).map(|why| format!("  {why}")));
        lines.extend(verification.dump(name, block, mismatch));
        if telling == Telling::Last {
            lines.push("verify: further wrong blocks are counted, but not described".to_owned());
        }
        Message::WrongData(self.errors.worker(), lines.join("\n")).send(self.errors.messages());
    }

    /// A read met the end of the file. If it checks written data, the data beyond the end is lost. Returns whether it
    /// does.
    pub(super) fn found_end(&mut self, generator: &dyn Generator, index: u32) -> bool {
        if !self
            .extras
            .verification
            .as_ref()
            .is_some_and(|verification| matches!(verification.role_of(index), Role::Check(..)))
        {
            return false;
        }
        let end = self.flight.table.units[index as usize].offset;
        let Some(verification) = &mut self.extras.verification else { return false };
        if let Role::Check(io, expect) = verification.role(index) {
            self.stats.checked_blocks.add(1);
            let mismatch = verification.checker.cut_off(&io, end, expect);
            if verification.checked(&io, expect, mismatch.as_slice(), None) {
                self.found_wrong(generator, index, 0, io, mismatch.as_slice());
            }
        }
        true
    }
}

/// Whether this is a read that is not part of the workload.
pub(super) fn is_check(role: &Role) -> bool {
    matches!(role, Role::Check(_, expect) if *expect != Expect::Anything)
}
