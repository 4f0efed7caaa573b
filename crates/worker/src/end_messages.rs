//! Messages about the end of a job.

use super::io_loop::{Attempt, Failure, Missed, failed_check, failed_operation};
use super::{Stop, Worker, pace};
use iolite_os::message::Message;

impl Worker<'_> {
    /// Describes the failure that ended the job, for its line in the report. Sends the user any message that the loop
    /// has not sent yet.
    pub(super) fn tell(&self, failure: Failure, file: Option<String>, trouble: Option<String>) -> Stop {
        if failure.missed == Some(Missed::Script) {
            let line = format!("{}: {}", self.resolved.name, trouble.unwrap_or_default());
            Message::Trouble(self.number(), line).send(self.messages);
            return Stop { errno: failure.errno.0, what: "func=read_iolog".into() };
        }
        if let Some(Missed::Rate(pace::Missed { option, asked, got })) = failure.missed {
            let unit = if option == "rate_min" { "B/s" } else { "IOPS" };
            let line = format!("{}: {option}={asked} not met, got {got} {unit}", self.resolved.name);
            Message::Trouble(self.number(), line).send(self.messages);
            return Stop { errno: failure.errno.0, what: format!("func={option}") };
        }
        let Some(Attempt { operation, offset, length, .. }) = failure.attempt else {
            return Stop { errno: failure.errno.0, what: "func=getevents".into() };
        };
        let name = operation.name();
        let file = file.unwrap_or_default();
        if let Some(Missed::Data) = failure.missed {
            return Stop { errno: failure.errno.0, what: failed_check(&file) };
        }
        if let Some(Missed::Latency(latency)) = failure.missed {
            let limits = self.resolved.issue.max_latency_ns;
            let limit = operation.direction().map_or(0, |direction| limits[direction.index()] / 1000);
            let line = format!(
                "latency of {latency} nsec exceeds max_latency={limit}us: {file} {name} offset={offset}, buflen={length}"
            );
            Message::Trouble(self.number(), line).send(self.messages);
            return Stop { errno: failure.errno.0, what: format!("file={file}, func=max_latency") };
        }
        Stop { errno: failure.errno.0, what: failed_operation(&file, operation) }
    }
}
