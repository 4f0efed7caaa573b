//! How a run ended: written into its report, and read by the code that lists or compares stored runs.

use serde::{Deserialize, Serialize};

/// Whether a run went to its planned end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RunStatus {
    /// It reached its planned end, without errors.
    Ended,
    /// It was ended early, by a signal, the button of its page, a trigger, or the loss of a machine.
    Interrupted,
    /// A job, or a part of the run itself, had an error; or the run could not begin.
    Failed,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [RunStatus; 3] = [RunStatus::Ended, RunStatus::Interrupted, RunStatus::Failed];

    /// Its name, in reports and for users.
    pub const fn name(self) -> &'static str {
        match self {
            RunStatus::Ended => "ended",
            RunStatus::Interrupted => "interrupted",
            RunStatus::Failed => "failed",
        }
    }

    /// The status of this name.
    pub fn of_name(name: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// How a run ended, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Whether it went to its planned end.
    pub status: RunStatus,
    /// The reason why it did not, as text after a colon (`ended by SIGINT`); empty if it did, or if the reason is
    /// unknown.
    pub why: String,
}

impl RunEnd {
    /// The run went to its planned end.
    pub fn planned() -> RunEnd {
        RunEnd { status: RunStatus::Ended, why: String::new() }
    }

    /// The run was ended before its planned end.
    pub fn interrupted(why: impl Into<String>) -> RunEnd {
        RunEnd { status: RunStatus::Interrupted, why: why.into() }
    }

    /// The run had errors.
    pub fn failed(why: impl Into<String>) -> RunEnd {
        RunEnd { status: RunStatus::Failed, why: why.into() }
    }

    /// The run was ended by the trigger (`--trigger-file`, `--trigger-timeout`).
    pub fn by_trigger() -> RunEnd {
        RunEnd::interrupted("ended by the trigger")
    }

    /// The number of workers that had errors; 0 = only the run itself had one.
    pub fn with_failures(failures: usize) -> RunEnd {
        RunEnd::failed(match failures {
            0 => "a part of the run other than its jobs had an error".to_owned(),
            1 => "1 worker had an error".to_owned(),
            several => format!("{several} workers had errors"),
        })
    }

    /// The text for users: `interrupted: ended by SIGINT`.
    pub fn in_words(&self) -> String {
        let RunEnd { status, why } = self;
        if why.is_empty() { status.name().to_owned() } else { format!("{}: {why}", status.name()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::of_name(status.name()), Some(status));
        }
        assert_eq!(RunStatus::of_name("done"), None);
        assert_eq!(RunEnd::planned().in_words(), "ended");
        assert_eq!(RunEnd::with_failures(2).in_words(), "failed: 2 workers had errors");
    }
}
