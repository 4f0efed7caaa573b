//! What the user of a run of many machines asks for, by signals and the trigger.

use crate::messages::complain;
use iolite_options::Name;
use iolite_os::signals::SignalQueue;
use iolite_remote::coordinator::UserRequest;
use iolite_run::{Request as Asked, Requests, Watch};
use std::cell::Cell;
use std::os::unix::process::parent_id;
use std::time::Instant;

/// Requests of the user by signals and the trigger.
pub(super) struct UserRequests<'a> {
    pub(super) signals: SignalQueue,
    pub(super) requests: Requests,
    /// The run was asked to end.
    pub(super) asked: bool,
    /// Set when a report is requested.
    pub(super) wants_report: &'a Cell<bool>,
    /// The process of the launcher that has started this one.
    pub(super) launcher: Option<u32>,
    /// Watches for the trigger, from the common start.
    pub(super) watch: Watch,
    pub(super) has_begun: &'a Cell<bool>,
    pub(super) since: Instant,
    pub(super) watches: bool,
    pub(super) has_fired: bool,
    pub(super) name: Name,
}

impl UserRequests<'_> {
    pub(super) fn next(&mut self) -> UserRequest {
        // The launcher was killed, so the run ends too.
        if self.launcher.take_if(|launcher| *launcher != parent_id()).is_some() {
            self.asked = true;
            return UserRequest::Stop;
        }
        if self.fires_now() {
            return UserRequest::Stop;
        }
        match self.signals.next() {
            None => {
                self.requests.seen_none(Instant::now());
                UserRequest::None
            }
            Some(libc::SIGUSR1) => {
                self.wants_report.set(true);
                UserRequest::Status
            }
            Some(_) => {
                self.asked = true;
                match self.requests.take(Instant::now()) {
                    Asked::End => UserRequest::Stop,
                    Asked::Again => UserRequest::None,
                    Asked::GiveUp => UserRequest::GiveUp,
                }
            }
        }
    }

    fn fires_now(&mut self) -> bool {
        let now = self.since.elapsed().as_nanos() as u64;
        if self.has_begun.take() {
            self.watch.begin(now);
            self.watches = true;
        }
        let mut problems = Vec::new();
        let fires = self.watches && self.watch.fires(now, &mut problems);
        self.has_fired |= fires;
        problems.iter().for_each(|problem| complain(self.name, problem));
        fires
    }
}
