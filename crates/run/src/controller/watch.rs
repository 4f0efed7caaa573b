//! Files and times that the controller watches: the trigger, and requests for a report.
//!
//! With a file, a user or a script can talk to a running program. The controller looks for it regularly and removes it,
//! so that it can appear again.

use super::{Controller, Events};
use iolite_os::signals;
use iolite_plan::verification::kept_states;
use iolite_stats::EventKind;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The time between two checks for files.
const LOOK_NS: u64 = 100_000_000;

/// The time between two checks whether the trigger's command has ended, when nothing else is left to do.
const COMMAND_LOOK: Duration = Duration::from_millis(10);

/// The condition that ends the run early, and the command to run then.
#[derive(Clone, Debug, Default)]
pub struct Trigger {
    /// The run ends when this file appears.
    pub file: Option<PathBuf>,
    /// The run ends when the jobs have run for this long.
    pub after: Option<Duration>,
    /// The command, for a shell.
    pub command: Option<String>,
}

/// The watched files and times.
#[derive(Debug, Default)]
pub struct Watch {
    trigger: Trigger,
    status_files: Vec<PathBuf>,
    /// When to look for files again.
    next_look: u64,
    /// When the trigger's time expires; `u64::MAX` = never.
    deadline: u64,
    has_fired: bool,
    command: Option<Child>,
}

impl Watch {
    /// Watching starts when the jobs begin.
    pub fn new(trigger: Trigger, status_files: Vec<PathBuf>) -> Watch {
        Watch { trigger, status_files, deadline: u64::MAX, ..Watch::default() }
    }

    /// The jobs begin now.
    pub fn begin(&mut self, now: u64) {
        self.next_look = now;
        if let Some(after) = self.trigger.after {
            self.deadline = now.saturating_add(after.as_nanos() as u64);
        }
    }

    /// When to look next; `u64::MAX` = never.
    pub(super) fn due(&self) -> u64 {
        let looks = !self.status_files.is_empty() || (self.trigger.file.is_some() && !self.has_fired);
        let look = if looks { self.next_look } else { u64::MAX };
        if self.has_fired { look } else { look.min(self.deadline) }
    }

    /// Whether a file has asked for a report. A file that cannot be removed is no longer watched (it would ask
    /// forever), and the reason is added to `problems`.
    fn status_wanted(&mut self, problems: &mut Vec<String>) -> bool {
        let mut wanted = false;
        self.status_files.retain(|file| match std::fs::remove_file(file) {
            Ok(()) => {
                wanted = true;
                true
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            // A file in a directory that this user cannot search does not exist for this user.
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

    /// Whether the trigger fires now.
    pub fn fires(&mut self, now: u64, problems: &mut Vec<String>) -> bool {
        if self.has_fired {
            return false;
        }
        if let Some(file) = &self.trigger.file
            && file.exists()
        {
            self.has_fired = true;
            if let Err(error) = std::fs::remove_file(file) {
                problems.push(format!("the trigger file {} cannot be removed: {error}", file.display()));
            }
        }
        self.has_fired |= now >= self.deadline;
        self.has_fired
    }

    /// Whether the trigger has fired.
    pub(super) fn has_fired(&self) -> bool {
        self.has_fired
    }

    /// Starts the trigger's command. It runs while the workers end.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_command(&mut self) -> Result<(), String> {
        let Some(command) = &self.trigger.command else { return Ok(()) };
        let started =
            Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::null()).process_group(0).spawn();
        self.command = Some(started.map_err(|error| format!("the trigger \"{command}\": {error}"))?);
        Ok(())
    }

    /// Whether the trigger's command is still running.
    fn command_runs(&mut self) -> bool {
        self.command.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Stops waiting for the trigger's command. Returns a message about that.
    fn give_up_command(&mut self) -> Option<String> {
        let mut child = self.command.take()?;
        let command = self.trigger.command.as_deref().unwrap_or_default();
        signals::kill_group(child.id() as i32, libc::SIGKILL);
        match child.wait() {
            Ok(_) => Some(format!("the trigger \"{command}\" did not end, and is given up")),
            Err(error) => Some(format!("the trigger \"{command}\": {error}")),
        }
    }

    /// Waits for the trigger's command; returns its error.
    pub fn finish_command(&mut self) -> Option<String> {
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
    /// Checks the watched files and times, if that is due.
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
        if self.watch.fires(now, &mut problems) {
            self.fire_trigger(events);
        }
        problems.into_iter().for_each(|problem| self.tell(None, EventKind::Trouble(problem), events));
    }

    /// Ends the run and starts the command.
    fn fire_trigger(&mut self, events: &mut Events<'_>) {
        self.tell(None, EventKind::Note("trigger: the run ends here".to_owned()), events);
        // The command may cut the power. (Further writes of the workers are consistent with these states.)
        for state in kept_states(self.plan) {
            if let Err(error) = iolite_verify::state::sync(&state) {
                let problem = format!("{}: {error}", state.display());
                self.tell(None, EventKind::Trouble(problem), events);
            }
        }
        if let Err(problem) = self.watch.start_command() {
            self.tell(None, EventKind::Trouble(problem), events);
        }
        (0..self.members.len()).for_each(|index| self.terminate(index));
    }

    /// Waits for the command that the trigger started.
    pub(super) fn finish_trigger(&mut self, events: &mut Events<'_>) {
        while self.watch.command_runs() && !self.gives_up {
            std::thread::sleep(COMMAND_LOOK);
            self.handle_signals(events);
        }
        let problem = match self.watch.command_runs() {
            true => self.watch.give_up_command(),
            false => self.watch.finish_command(),
        };
        if let Some(problem) = problem {
            self.tell(None, EventKind::Trouble(problem), events);
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
        // A file that cannot be removed asks once.
        std::fs::create_dir(&file).unwrap();
        assert!(watch.status_wanted(&mut problems));
        assert!(!watch.status_wanted(&mut problems));
        assert_eq!(problems.len(), 1, "{problems:?}");
    }

    #[test]
    fn a_place_that_cannot_be_looked_at_asks_for_nothing() {
        // Removing fails, for a reason other than that the file does not exist: as in a directory that cannot be
        // searched.
        let plain_file = tempfile::NamedTempFile::new().unwrap();
        let mut watch = Watch::new(Trigger::default(), vec![plain_file.path().join("status")]);
        let mut problems = Vec::new();
        assert!(!watch.status_wanted(&mut problems));
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn a_trigger_fires_once_by_file_or_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trigger");
        let by_file = Trigger { file: Some(file.clone()), ..Trigger::default() };
        let mut watch = Watch::new(by_file, Vec::new());
        watch.begin(0);
        let mut problems = Vec::new();
        assert!(!watch.fires(u64::MAX - 1, &mut problems));
        std::fs::write(&file, "").unwrap();
        assert!(watch.fires(1, &mut problems) && !file.exists());
        assert!(!watch.fires(2, &mut problems));

        let by_time = Trigger { after: Some(Duration::from_secs(1)), ..Trigger::default() };
        let mut watch = Watch::new(by_time, Vec::new());
        assert_eq!(watch.due(), u64::MAX);
        watch.begin(5);
        assert_eq!(watch.due(), 1_000_000_005);
        assert!(!watch.fires(1_000_000_004, &mut problems));
        assert!(watch.fires(1_000_000_005, &mut problems));
        assert_eq!(watch.due(), u64::MAX);
    }

    #[test]
    fn failed_trigger_commands_are_reported() {
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
