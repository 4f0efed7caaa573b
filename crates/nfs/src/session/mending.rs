//! Reconnects after the connection was lost, and recovers after the server restarted.

use super::calls::{Slot, What};
use super::file::Mark;
use super::{Opened, Session};
use crate::NfsError;
use crate::connection::Broken;
use crate::protocol::Verifier;
use crate::rpc;
use crate::socket::Deadline;
use crate::v4;
use std::io;
use std::time::{Duration, Instant};
use tracing::debug;

/// The time between attempts to connect.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// How many times uncommitted writes are sent to a server that keeps restarting.
const ATTEMPTS: usize = 5;

/// A time without a working connection.
pub(super) struct Gap {
    since: Instant,
    /// The time of the next attempt to connect.
    next: Instant,
    why: String,
    errno: i32,
    /// The gap has lasted too long already, so one more failure is final.
    is_over: bool,
    /// There is a new connection, on which the server has not answered yet.
    is_on_trial: bool,
}

impl Gap {
    /// The gap after a server was given up.
    pub(super) fn given_up(error: &NfsError) -> Gap {
        let now = Instant::now();
        Gap {
            since: now,
            next: now,
            why: error.to_string(),
            errno: error.errno(),
            is_over: true,
            is_on_trial: false,
        }
    }
}

impl Gap {
    /// Measures the gap from another moment on.
    pub(super) fn move_start(&mut self, moved: impl Fn(Instant) -> Instant) {
        self.since = moved(self.since);
    }
}

impl Session {
    /// Drops a connection that cannot be used any more.
    pub(super) fn lose_connection(&mut self, why: &str, errno: Option<i32>) {
        debug!(target: "net", "nfs: {}: the connection was lost: {why}", self.server);
        self.connection = None;
        let now = Instant::now();
        let next = self.tried.map_or(now, |tried| tried + PAUSE);
        let errno = errno.unwrap_or(libc::ECONNRESET);
        let gap = self.broken.get_or_insert_with(|| Gap {
            since: now,
            next,
            why: String::new(),
            errno,
            is_over: false,
            is_on_trial: false,
        });
        (gap.why, gap.errno, gap.is_on_trial) = (why.to_owned(), errno, false);
        // A server that accepts connections but answers nothing counts as unreachable.
        gap.is_over |= self.address.stays_broken || now - gap.since >= self.limits.patience;
        if gap.is_over {
            let error = self.gap_error();
            self.calls.fail_all(&error);
        }
    }

    /// Notes that the server has sent something.
    pub(super) fn hear(&mut self) {
        self.heard = Instant::now();
        self.decline_callbacks();
        if self.broken.as_ref().is_some_and(|gap| gap.is_on_trial) {
            self.calls.counts.reconnected += 1;
            self.broken = None;
        }
    }

    /// Answers calls of the server, which nobody has offered to serve.
    fn decline_callbacks(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        for id in self.calls.callbacks.drain(..) {
            rpc::decline(connection.head(), id);
        }
    }

    /// Performs an operation that waits for answers, and repeats it over a new connection if the connection is lost.
    pub(crate) fn over_any_connection<T>(
        &mut self,
        act: impl Fn(&mut Session) -> Result<T, NfsError>,
    ) -> Result<T, NfsError> {
        let mut lost = None;
        loop {
            self.reconnect()?;
            match act(self) {
                Err(NfsError::Unreachable { .. }) if self.connection.is_none() => {
                    let since: &Instant = lost.get_or_insert_with(Instant::now);
                    if since.elapsed() >= self.limits.patience {
                        return Err(self.gap_error());
                    }
                }
                result => return result,
            }
        }
    }

    fn gap_error(&self) -> NfsError {
        let (why, errno) = match &self.broken {
            Some(gap) => (gap.why.clone(), gap.errno),
            None => (String::new(), libc::ECONNRESET),
        };
        if self.address.stays_broken {
            let why = format!("the connection was lost ({why}), and autoreconnect=0 forbids another one");
            return NfsError::Unreachable { server: self.server.clone(), why, errno };
        }
        NfsError::Lost { server: self.server.clone(), why, within: self.within(), errno }
    }

    /// Tries to connect again if it is time. Otherwise sleeps until the next attempt is due, but no longer than
    /// `timeout`.
    pub(super) fn mend(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.try_again() {
            return Ok(());
        }
        let left =
            self.broken.as_ref().map_or(PAUSE, |gap| gap.next.saturating_duration_since(Instant::now()));
        let nap = timeout.map_or(left, |timeout| timeout.min(left));
        if !nap.is_zero() {
            sleep(nap)?;
        }
        Ok(())
    }

    /// Waits until there is a connection, or it is given up.
    pub(super) fn reconnect(&mut self) -> Result<(), NfsError> {
        while self.connection.is_none() {
            self.look_for_the_end();
            if self.try_again() {
                continue;
            }
            if self.broken.as_ref().is_none_or(|gap| gap.is_over) {
                return Err(self.gap_error());
            }
            let _ = sleep(PAUSE);
        }
        Ok(())
    }

    /// Tries to connect again if it is time. Returns whether there is a connection. If there has been none for too
    /// long, everything in flight fails.
    fn try_again(&mut self) -> bool {
        let now = Instant::now();
        let patience = self.limits.patience;
        let Some(gap) = &mut self.broken else { return self.connection.is_some() };
        if self.address.stays_broken {
            let error = self.gap_error();
            self.calls.fail_all(&error);
            return false;
        }
        if now < gap.next {
            return false;
        }
        gap.next = now + PAUSE;
        self.tried = Some(now);
        let left = patience.saturating_sub(now - gap.since).clamp(PAUSE, Duration::from_secs(1));
        match self.new_connection(&mut Deadline::new(left, self.stopping)) {
            Ok(connection) => {
                self.connection = Some(connection);
                self.heard = Instant::now();
                self.recovery = Some(Duration::ZERO);
                let outcome = self.go_on();
                self.recovery = None;
                if outcome.is_ok() {
                    debug!(target: "net", "nfs: {}: connected again", self.server);
                    if let Some(gap) = &mut self.broken {
                        gap.is_on_trial = true;
                    }
                    if self.calls.open() == 0 {
                        // (Nothing is in flight, so there will be no answer to wait for.)
                        self.hear();
                    }
                    return true;
                }
                // (If the server is silent, it has been given up already. What it refuses is the reason to tell.)
                self.connection = None;
                if let Err(error) = outcome
                    && !matches!(
                        error,
                        NfsError::Unreachable { .. } | NfsError::Lost { .. } | NfsError::Silent { .. }
                    )
                    && let Some(gap) = &mut self.broken
                {
                    (gap.why, gap.errno) = (error.to_string(), error.errno());
                }
            }
            Err(NfsError::Unreachable { why, errno, .. }) => {
                if let Some(gap) = &mut self.broken {
                    (gap.why, gap.errno) = (why, errno);
                }
            }
            Err(_) => {}
        }
        let is_over = self.broken.as_mut().is_some_and(|gap| {
            gap.is_over |= gap.since.elapsed() >= patience;
            gap.is_over
        });
        if is_over {
            let error = self.gap_error();
            self.calls.fail_all(&error);
        }
        false
    }

    /// Makes a new connection ready, commits uncommitted writes on it, and then sends the requests in flight again.
    fn go_on(&mut self) -> Result<(), NfsError> {
        self.calls.protocol.resume(self)?;
        for file in 0..self.calls.files.len() as u32 {
            let has_unstable =
                self.calls.files[file as usize].as_ref().is_some_and(|file| file.unstable() > 0);
            if has_unstable {
                self.commit_all(file)?;
            }
        }
        self.calls.is_restless = false;
        self.calls.again.clear();
        self.calls.later.clear();
        self.calls.waiting.clear();
        let mut places: Vec<usize> = (0..self.calls.slots.len())
            .filter(|&place| !matches!(self.calls.slots[place].what, What::Nothing | What::Plain))
            .collect();
        places.sort_by_key(|&place| self.calls.slots[place].order);
        for place in places {
            let Slot { what, length, .. } = self.calls.slots[place];
            match what {
                // Another session of version 4 may permit less than the one before.
                What::Read if length > self.most_read => self.calls.refuse(place, v4::REP_TOO_BIG),
                What::Write if length > self.most_written => self.calls.refuse(place, v4::REQ_TOO_BIG),
                _ => {}
            }
            if self.calls.slots[place].what == What::Nothing {
                continue;
            }
            // Writes have been committed in the meantime, so the commit covers all writes up to now.
            if self.calls.slots[place].what == What::Commit {
                let file = self.calls.files[self.calls.slots[place].file as usize].as_ref();
                self.calls.slots[place].mark = file.map_or_else(Default::default, |file| file.noted);
            }
            self.send(place);
        }
        self.flush();
        if self.connection.is_some() { Ok(()) } else { Err(self.gap_error()) }
    }

    /// Resends the uncommitted data to a restarted server. Waits for the requests in flight first.
    ///
    /// # Errors
    /// A signal interrupted the wait. The next call continues.
    pub(super) fn restore_after_flight(&mut self) -> io::Result<()> {
        while self.calls.open() > 0 {
            let next = self.resend();
            let Some(connection) = &mut self.connection else { return Ok(()) };
            match connection.exchange(next, &mut self.calls) {
                Ok(true) => self.hear(),
                Ok(false) => self.check_silence(),
                Err(Broken::System(error)) if error.kind() == io::ErrorKind::Interrupted => {
                    return Err(error);
                }
                Err(broken) => {
                    self.note_broken(broken);
                    return Ok(());
                }
            }
        }
        self.calls.is_restless = false;
        for file in 0..self.calls.files.len() as u32 {
            let has_changed = self.calls.files[file as usize].as_ref().is_some_and(|file| file.has_changed);
            if has_changed && self.commit_all(file).is_err() {
                // The connection was lost. The next connection does all of this again.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Puts all of a file's data on stable storage, if necessary by sending it again. Returns an error only if the
    /// connection is lost. If the server refuses, the waiting commits end with the error, and closing the file
    /// reports it.
    pub(super) fn commit_all(&mut self, file: u32) -> Result<(), NfsError> {
        let outcome = match self.try_commit_all(file) {
            Err(error) if self.connection.is_none() => return Err(error),
            outcome => outcome,
        };
        let Some(kept) = &mut self.calls.files[file as usize] else { return Ok(()) };
        kept.has_changed = false;
        let waiting = std::mem::take(&mut kept.waiting);
        let outcome = match outcome {
            Ok(mark) => {
                kept.is_stable(mark);
                Ok(())
            }
            Err(error) => {
                kept.give_up();
                Err(error)
            }
        };
        for unit in waiting {
            self.calls.end_part(unit, outcome.clone());
        }
        Ok(())
    }

    fn try_commit_all(&mut self, file: u32) -> Result<Mark, NfsError> {
        let Some(kept) = &self.calls.files[file as usize] else { return Ok(Mark::default()) };
        let (mut expected, mut mark) = (kept.verifier, kept.noted);
        if kept.unstable() == 0 {
            return self.commit_now(file).map(|_| mark);
        }
        for _ in 0..ATTEMPTS {
            let has_changed = self.calls.files[file as usize].as_ref().is_some_and(|file| file.has_changed);
            if !has_changed && Some(self.commit_now(file)?) == expected {
                return Ok(mark);
            }
            let Some(kept) = &mut self.calls.files[file as usize] else { return Ok(mark) };
            if !self.calls.keeps {
                // (Closing the file will report the error as well.)
                kept.give_up();
                return Err(NfsError::MayBeLost { name: kept.opened.name.clone(), bytes: kept.lost });
            }
            kept.has_changed = false;
            (expected, mark) = self.send_kept(file)?;
        }
        let name = self.calls.files[file as usize].as_ref().map(|file| file.opened.name.clone());
        Err(NfsError::Restless(name.unwrap_or_default()))
    }

    /// Sends all copies of a file's data again, in order. Returns the server's verifier; `None` = it changed in
    /// between.
    fn send_kept(&mut self, file: u32) -> Result<(Option<Verifier>, Mark), NfsError> {
        let (mut first, mut is_one) = (None, true);
        let Some(kept) = &self.calls.files[file as usize] else { return Ok((None, Mark::default())) };
        let (opened, mut next) = (kept.opened.clone(), 0);
        while let Some((number, offset, data)) =
            self.calls.files[file as usize].as_ref().and_then(|file| file.copy(next))
        {
            let (data, mut sent) = (data.to_vec(), 0);
            next = number + 1;
            while sent < data.len() {
                let part = &data[sent..data.len().min(sent + self.most_written)];
                let start = offset + sent as u64;
                let (count, verifier) = self.write_now(&opened, start, part)?;
                is_one &= *first.get_or_insert(verifier) == verifier;
                sent += count;
            }
            self.calls.counts.rewritten += 1;
            self.calls.counts.rewritten_bytes += data.len() as u64;
        }
        let Some(kept) = &mut self.calls.files[file as usize] else { return Ok((None, Mark::default())) };
        if let Some(verifier) = first {
            kept.verifier = Some(verifier);
        }
        Ok((first.filter(|_| is_one), kept.noted))
    }

    /// Writes and waits for the answer. Returns how many bytes were written, and the server's verifier.
    pub(super) fn write_now(
        &mut self,
        file: &Opened,
        offset: u64,
        data: &[u8],
    ) -> Result<(usize, Verifier), NfsError> {
        let (count, verifier) = self.calls.protocol.write_now(self, file, offset, data)?;
        if count == 0 || count > data.len() {
            return Err(NfsError::Malformed);
        }
        Ok((count, verifier))
    }

    pub(super) fn commit_now(&mut self, file: u32) -> Result<Verifier, NfsError> {
        let Some(kept) = &self.calls.files[file as usize] else { return Err(NfsError::Malformed) };
        let opened = kept.opened.clone();
        self.calls.protocol.commit_now(self, &opened)
    }

    /// Begins to commit if the copies are too large.
    pub(super) fn commit_what_is_much(&mut self) {
        let Some(most) = self.limits.keep else { return };
        if self.kept() <= most / 2 {
            return;
        }
        // Copies that are being committed will be freed. Of the others, the largest are committed first, until little
        // is left.
        let files = self.calls.files.iter().enumerate();
        let mut idle: Vec<(u64, usize)> = files
            .filter_map(|(place, file)| {
                Some((file.as_ref().filter(|file| file.commits == 0)?.kept_bytes, place))
            })
            .collect();
        idle.sort_unstable();
        let mut rest: u64 = idle.iter().map(|(bytes, _)| bytes).sum();
        while let Some((bytes, place)) = idle.pop()
            && rest > most / 2
            && self.calls.room() > 0
        {
            self.begin_commit(None, place as u32);
            rest -= bytes;
        }
    }

    /// The size of the copies of all files in bytes.
    fn kept(&self) -> u64 {
        self.calls.files.iter().flatten().map(|file| file.kept_bytes).sum()
    }

    /// Whether the copies have reached their limit, so that nothing may be written until some are committed.
    pub fn is_full(&self) -> bool {
        self.limits.keep.is_some_and(|most| self.kept() >= most)
    }
}

/// Sleeps, unless a signal arrives.
pub(super) fn sleep(time: Duration) -> io::Result<()> {
    let time = libc::timespec {
        tv_sec: time.as_secs().min(1 << 30) as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the time is valid, and the remaining time is not requested.
    match unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
