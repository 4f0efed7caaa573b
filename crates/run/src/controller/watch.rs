//! Files and moments that the controller watches for: the trigger, and the wish to see how it stands.
//!
//! A file that appears is a message from a user or a script who has no other way in. It is looked for now and then,
//! and removed when it was seen, so that the next one is a new message.

use super::{Controller, Events};
use iolite_plan::verification::kept_states;
use iolite_stats::EventKind;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often files are looked for.
const LOOK_NS: u64 = 100_000_000;

/// When the run is to end early, and what is to be run then.
#[derive(Clone, Debug, Default)]
pub struct Trigger {
    /// When this file appears.
    pub file: Option<PathBuf>,
    /// When the jobs have run for so long.
    pub after: Option<Duration>,
    /// The command, for a shell.
    pub command: Option<String>,
}

/// What is watched.
#[derive(Debug, Default)]
pub(super) struct Watch {
    trigger: Trigger,
    status_files: Vec<PathBuf>,
    /// When to look again.
    next_look: u64,
    /// When the trigger is pulled whatever happens; `u64::MAX` = never.
    deadline: u64,
    pulled: bool,
    command: Option<Child>,
}

impl Watch {
    pub(super) fn new(trigger: Trigger, status_files: Vec<PathBuf>) -> Watch {
        Watch { trigger, status_files, deadline: u64::MAX, ..Watch::default() }
    }

    /// The jobs begin now.
    pub(super) fn begin(&mut self, now: u64) {
        self.next_look = now;
        if let Some(after) = self.trigger.after {
            self.deadline = now.saturating_add(after.as_nanos() as u64);
        }
    }

    /// When something is to be looked for; `u64::MAX` = there is nothing.
    pub(super) fn due(&self) -> u64 {
        let looks = !self.status_files.is_empty() || (self.trigger.file.is_some() && !self.pulled);
        let look = if looks { self.next_look } else { u64::MAX };
        if self.pulled { look } else { look.min(self.deadline) }
    }

    /// Whether a file was there that asks for a status. Files that cannot be removed are forgotten, with the reason:
    /// they would ask for ever.
    fn status_wanted(&mut self, problems: &mut Vec<String>) -> bool {
        let mut wanted = false;
        self.status_files.retain(|file| match std::fs::remove_file(file) {
            Ok(()) => {
                wanted = true;
                true
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            // Also in a directory that may not be searched, where nobody can leave a message for this user.
            Err(_) if !file.exists() => true,
            Err(error) => {
                problems
                    .push(format!("{} asks for a status, but cannot be removed: {error}", file.display()));
                wanted = true;
                false
            }
        });
        wanted
    }

    /// Whether the trigger is pulled now.
    fn is_pulled(&mut self, now: u64, problems: &mut Vec<String>) -> bool {
        if self.pulled {
            return false;
        }
        if let Some(file) = &self.trigger.file
            && file.exists()
        {
            self.pulled = true;
            if let Err(error) = std::fs::remove_file(file) {
                problems.push(format!("the trigger file {} cannot be removed: {error}", file.display()));
            }
        }
        self.pulled |= now >= self.deadline;
        self.pulled
    }

    /// Starts the trigger's command. It runs beside the workers, who are about to end.
    fn start_command(&mut self) -> Result<(), String> {
        let Some(command) = &self.trigger.command else { return Ok(()) };
        let started = Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::null()).spawn();
        self.command = Some(started.map_err(|error| format!("the trigger \"{command}\": {error}"))?);
        Ok(())
    }

    /// Waits for the trigger's command; what went wrong with it.
    fn finish_command(&mut self) -> Option<String> {
        let mut child = self.command.take()?;
        let command = self.trigger.command.as_deref().unwrap_or_default();
        match child.wait() {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("the trigger \"{command}\" ended with {status}")),
            Err(error) => Some(format!("the trigger \"{command}\": {error}")),
        }
    }
}

impl Controller<'_> {
    /// Looks for what is watched, if it is time.
    pub(super) fn look_around(&mut self, events: &mut Events<'_>) {
        let now = self.now();
        if now < self.watch.due() {
            return;
        }
        self.watch.next_look = now + LOOK_NS;
        let mut problems = Vec::new();
        if self.watch.status_wanted(&mut problems) {
            let report = self.fresh_report();
            self.tell(None, EventKind::Status(Box::new(report)), events);
        }
        if self.watch.is_pulled(now, &mut problems) {
            self.pull_trigger(events);
        }
        problems.into_iter().for_each(|problem| self.tell(None, EventKind::Warning(problem), events));
    }

    /// Ends the run, and runs the command.
    fn pull_trigger(&mut self, events: &mut Events<'_>) {
        self.tell(None, EventKind::Note("trigger: the run ends here".to_owned()), events);
        // The command may be the end of this machine. (The states then do not know what the workers write from now on, and
        // accept it.)
        for state in kept_states(self.plan) {
            if let Err(error) = iolite_verify::state::sync(&state) {
                let problem = format!("{}: {error}", state.display());
                self.tell(None, EventKind::Warning(problem), events);
            }
        }
        if let Err(problem) = self.watch.start_command() {
            self.tell(None, EventKind::Warning(problem), events);
        }
        (0..self.members.len()).for_each(|index| self.terminate(index));
    }

    /// The run is over: waits for what the trigger started.
    pub(super) fn finish_trigger(&mut self, events: &mut Events<'_>) {
        if let Some(problem) = self.watch.finish_command() {
            self.tell(None, EventKind::Warning(problem), events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_one_message() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("status");
        let mut watch = Watch::new(Trigger::default(), vec![file.clone()]);
        let mut problems = Vec::new();
        assert!(!watch.status_wanted(&mut problems));
        std::fs::write(&file, "").unwrap();
        assert!(watch.status_wanted(&mut problems) && !file.exists());
        assert!(!watch.status_wanted(&mut problems));
        // What cannot be removed asks once.
        std::fs::create_dir(&file).unwrap();
        assert!(watch.status_wanted(&mut problems));
        assert!(!watch.status_wanted(&mut problems));
        assert_eq!(problems.len(), 1, "{problems:?}");
    }

    #[test]
    fn a_place_that_cannot_be_looked_at_asks_for_nothing() {
        // As in a directory that may not be searched, the file cannot be removed for a reason other than its absence.
        let plain_file = tempfile::NamedTempFile::new().unwrap();
        let mut watch = Watch::new(Trigger::default(), vec![plain_file.path().join("status")]);
        let mut problems = Vec::new();
        assert!(!watch.status_wanted(&mut problems));
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn a_trigger_is_pulled_once_by_file_or_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trigger");
        let by_file = Trigger { file: Some(file.clone()), ..Trigger::default() };
        let mut watch = Watch::new(by_file, Vec::new());
        watch.begin(0);
        let mut problems = Vec::new();
        assert!(!watch.is_pulled(u64::MAX - 1, &mut problems));
        std::fs::write(&file, "").unwrap();
        assert!(watch.is_pulled(1, &mut problems) && !file.exists());
        assert!(!watch.is_pulled(2, &mut problems));

        let by_time = Trigger { after: Some(Duration::from_secs(1)), ..Trigger::default() };
        let mut watch = Watch::new(by_time, Vec::new());
        assert_eq!(watch.due(), u64::MAX);
        watch.begin(5);
        assert_eq!(watch.due(), 1_000_000_005);
        assert!(!watch.is_pulled(1_000_000_004, &mut problems));
        assert!(watch.is_pulled(1_000_000_005, &mut problems));
        assert_eq!(watch.due(), u64::MAX);
    }

    #[test]
    fn how_the_command_ended_is_told() {
        for (command, complaint) in [("true", None), ("exit 3", Some("exit status: 3"))] {
            let trigger = Trigger { command: Some(command.into()), ..Trigger::default() };
            let mut watch = Watch::new(trigger, Vec::new());
            watch.start_command().unwrap();
            let told = watch.finish_command();
            assert_eq!(told.is_some(), complaint.is_some(), "{told:?}");
            assert!(complaint.is_none_or(|text| told.unwrap().contains(text)));
        }
    }
}
