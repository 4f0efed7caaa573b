//! Handling of errors.

use crate::typed::{ErrorKinds, IgnoredErrors};

options! {
    /// Handling of errors.
    pub struct ErrorOptions at errors {
        pub continue_on_error: ErrorKinds,
        pub ignore_error: IgnoredErrors,
        pub error_dump: bool,
        /// The longest time that an I/O may take, in microseconds; 0 = no limit.
        pub io_timeout: u64,
    }
}

impl ErrorOptions {
    /// Whether the job goes on after any kind of error.
    pub fn any(&self) -> bool {
        self.continue_on_error != ErrorKinds::NONE || self.ignore_error != IgnoredErrors::default()
    }

    /// Whether the job goes on after failed writes, so that not all of its writes may have happened.
    pub fn tolerates_failed_writes(&self) -> bool {
        self.continue_on_error.write || !self.ignore_error.write.is_empty()
    }
}
