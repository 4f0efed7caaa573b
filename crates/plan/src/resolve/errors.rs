//! The I/O errors that a job tolerates.
//!
//! A job tolerates an error if `continue_on_error` or `ignore_error` names the kind of I/O, and the error is in the list
//! of `ignore_error` for that kind. Without a list these are `EIO` and `EILSEQ`, with which a medium reports lost data,
//! and with `io_timeout` also `ETIMEDOUT`. Any other error would occur again and again.

use iolite_options::JobOptions;
use serde::{Deserialize, Serialize};

/// The errors that are tolerated if no list is given.
const LOST_DATA: [i32; 2] = [libc::EIO, libc::EILSEQ];

/// How errors of one kind of I/O are handled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tolerance {
    /// They are counted.
    pub counts: bool,
    /// The errors that the job tolerates.
    pub errnos: Vec<i32>,
}

impl Tolerance {
    fn new(goes_on: bool, ignored: &[i32], limits_time: bool) -> Tolerance {
        match (goes_on, ignored) {
            (false, []) => Tolerance::default(),
            (true, []) => {
                let too_late = limits_time.then_some(libc::ETIMEDOUT);
                Tolerance { counts: true, errnos: LOST_DATA.into_iter().chain(too_late).collect() }
            }
            (_, ignored) => Tolerance { counts: true, errnos: ignored.to_vec() },
        }
    }
}

/// How a job handles errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRules {
    /// Of reads.
    pub read: Tolerance,
    /// Of writes, trims and syncs.
    pub write: Tolerance,
    /// For data that differs from the data written.
    pub verify: Tolerance,
    /// Errors that do not end the job are described, too.
    pub dump: bool,
}

pub(super) fn rules(options: &JobOptions) -> ErrorRules {
    let (goes_on, ignored) = (options.errors.continue_on_error, &options.errors.ignore_error);
    let limits_time = options.errors.io_timeout > 0;
    ErrorRules {
        read: Tolerance::new(goes_on.read, &ignored.read, limits_time),
        write: Tolerance::new(goes_on.write, &ignored.write, limits_time),
        verify: Tolerance::new(goes_on.verify, &ignored.verify, false),
        dump: options.errors.error_dump,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{ErrorKinds, ErrorOptions, IgnoredErrors};

    fn tolerances(kinds: ErrorKinds, read: &[i32], write: &[i32]) -> [Tolerance; 2] {
        let options = JobOptions {
            errors: ErrorOptions {
                continue_on_error: kinds,
                ignore_error: IgnoredErrors { read: read.to_vec(), write: write.to_vec(), verify: vec![] },
                ..ErrorOptions::default()
            },
            ..JobOptions::default()
        };
        let rules = rules(&options);
        [rules.read, rules.write]
    }

    #[test]
    fn io_that_took_too_long_is_tolerated_like_lost_data() {
        let errors = ErrorOptions {
            continue_on_error: ErrorKinds { read: true, write: false, verify: false },
            io_timeout: 1,
            ..ErrorOptions::default()
        };
        let rules = rules(&JobOptions { errors, ..JobOptions::default() });
        assert!(rules.read.errnos.contains(&libc::ETIMEDOUT) && rules.write.errnos.is_empty());
    }

    #[test]
    fn errors_that_a_job_goes_on_after() {
        let none = Tolerance::default();
        let lost = Tolerance { counts: true, errnos: vec![libc::EIO, libc::EILSEQ] };
        let full = Tolerance { counts: true, errnos: vec![libc::ENOSPC] };
        assert_eq!(tolerances(ErrorKinds::NONE, &[], &[]), [none.clone(), none.clone()]);
        assert_eq!(tolerances(ErrorKinds::ALL, &[], &[]), [lost.clone(), lost.clone()]);
        // A list replaces the default, for its kind only.
        assert_eq!(tolerances(ErrorKinds::NONE, &[], &[libc::ENOSPC]), [none, full.clone()]);
        assert_eq!(tolerances(ErrorKinds::ALL, &[], &[libc::ENOSPC]), [lost, full]);
    }
}
