//! In words: what ended a job.

use super::io_loop::{Attempt, Failure, Missed};
use super::{Stop, Worker, pace};
use crate::message::Message;
use iolite_types::Operation;
use std::io;

impl Worker<'_> {
    /// Tells the reader of the report what failed, and says it once more for the job's own line.
    pub(super) fn tell(&self, failure: Failure, file: Option<String>) -> Stop {
        let error = io::Error::from_raw_os_error(failure.errno.0);
        if let Some(Missed::Rate(pace::Missed { option, asked, got })) = failure.missed {
            let unit = if option == "rate_min" { "B/s" } else { "IOPS" };
            let line = format!("{}: {option}={asked} not met, got {got} {unit}", self.options().name);
            Message::Warning(self.number(), line).send(self.messages);
            return Stop { errno: failure.errno.0, what: format!("func={option}") };
        }
        let Some(Attempt { operation, offset, length, .. }) = failure.attempt else {
            return Stop { errno: failure.errno.0, what: "func=getevents".into() };
        };
        let name = operation_name(operation);
        let file = file.unwrap_or_default();
        let text = describe_error(&error);
        if let Some(Missed::Latency(latency)) = failure.missed {
            let line = format!(
                "latency of {latency} nsec exceeds max_latency: {file} {name} offset={offset}, buflen={length}"
            );
            Message::Warning(self.number(), line).send(self.messages);
            return Stop { errno: failure.errno.0, what: format!("file={file}, func=max_latency") };
        }
        let line = format!("io_u error on file {file}: {text}: {name} offset={offset}, buflen={length}");
        Message::Warning(self.number(), line).send(self.messages);
        Stop { errno: failure.errno.0, what: format!("file={file}, func={name}") }
    }
}

/// The operating system's words for an error, without the number that the standard library adds.
pub fn describe_error(error: &io::Error) -> String {
    let mut text = error.to_string();
    while let Some(start) = text.find(" (os error ")
        && let Some(length) = text[start..].find(')')
    {
        text.replace_range(start..=start + length, "");
    }
    text
}

fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Trim => "trim",
        Operation::Sync => "sync",
        Operation::DataSync => "datasync",
        Operation::SyncFileRange => "sync_file_range",
    }
}
