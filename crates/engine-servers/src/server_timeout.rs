//! How long a server may be silent.

use iolite_engine::{LAST_WAIT, UNLIMITED};
use std::time::{Duration, Instant};

/// The limit of a server's silence, and when it was last heard.
#[derive(Debug)]
pub(crate) struct ServerTimeout {
    limit: Duration,
    heard: Instant,
    /// The option that sets the limit.
    option: &'static str,
    /// The limit is that of a job that was asked to end.
    is_hurried: bool,
}

impl ServerTimeout {
    /// A limit in microseconds, from an option (0 = none). The server is heard now.
    pub(crate) fn new(option: &'static str, limit_us: u64) -> ServerTimeout {
        let limit = if limit_us == 0 { UNLIMITED } else { Duration::from_micros(limit_us) };
        ServerTimeout { limit, heard: Instant::now(), option, is_hurried: false }
    }

    /// The server has answered, or gets a first request after a pause.
    pub(crate) fn hears(&mut self) {
        self.heard = Instant::now();
    }

    /// The limit, if there is one.
    pub(crate) fn limit(&self) -> Option<Duration> {
        Some(self.limit).filter(|limit| *limit != UNLIMITED)
    }

    /// How much longer it may be silent.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.heard.elapsed())
    }

    /// Whether it has been silent for too long.
    pub(crate) fn is_too_long(&self) -> bool {
        self.left().is_zero()
    }

    /// Limits a wait without limit to 10 s, because the job was asked to end. Other limits stay: a device may take long to
    /// flush its cache.
    pub(crate) fn hurry(&mut self) {
        if self.limit == UNLIMITED {
            (self.limit, self.is_hurried) = (LAST_WAIT, true);
            self.hears();
        }
    }

    /// `no answer within 60 s (nbd_timeout)`
    pub(crate) fn words(&self) -> String {
        let limit = self.limit.as_secs_f64();
        match self.is_hurried {
            true => format!("no answer in {limit} s after the job was asked to end"),
            false => format!("no answer within {limit} s ({})", self.option),
        }
    }

    /// Acts as if the server had last been heard this long ago.
    #[cfg(test)]
    pub(crate) fn began_before(&mut self, time: Duration) {
        self.heard = Instant::now().checked_sub(time).expect("the machine is older");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_to_end_waits_less() {
        let mut silence = ServerTimeout::new("nbd_timeout", 500_000);
        assert_eq!(silence.words(), "no answer within 0.5 s (nbd_timeout)");
        silence.hurry();
        assert_eq!(silence.words(), "no answer within 0.5 s (nbd_timeout)", "a limit stays");
        silence.began_before(Duration::from_secs(1));
        assert!(silence.is_too_long());
        let mut silence = ServerTimeout::new("nbd_timeout", 0);
        silence.began_before(Duration::from_secs(20));
        silence.hurry();
        assert!(!silence.is_too_long(), "it has 10 s from now on");
        silence.began_before(Duration::from_secs(10));
        silence.hurry();
        assert!(silence.is_too_long(), "which do not begin again");
        assert_eq!(silence.words(), "no answer in 10 s after the job was asked to end");
    }
}
