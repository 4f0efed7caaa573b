//! The signals between the threads that write logs and their job.

use std::fmt;
use std::sync::Arc;

/// The signs between a job and the threads that write its logs.
pub trait JobSigns: Send + Sync {
    /// Whether the job has to stop. A thread that waits for the reader of a pipe then gives up.
    fn is_stopping(&self) -> bool;

    /// Whether the process may be killed soon, so that all data in memory has to be written to the files now.
    fn must_save(&self) -> bool {
        false
    }

    /// One more thread has data in memory.
    fn holds(&self) {}

    /// A thread has ended, or has responded to [`JobSigns::must_save`]: its entries are in the files.
    fn saved(&self) {}

    /// Data was written to a file.
    fn wrote(&self) {}
}

/// A job for which logs are written.
#[derive(Clone)]
pub struct Job(Arc<dyn JobSigns>);

impl Job {
    /// The job that has these signs.
    pub fn new(signs: impl JobSigns + 'static) -> Job {
        Job(Arc::new(signs))
    }

    /// A job that only signals whether it is asked to stop.
    pub fn stopping_when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Job {
        Job::new(StoppingWhen(asked))
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.is_stopping()
    }

    pub(crate) fn must_save(&self) -> bool {
        self.0.must_save()
    }

    pub(crate) fn wrote(&self) {
        self.0.wrote();
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Job {{ stopping: {} }}", self.is_stopping())
    }
}

struct StoppingWhen<F>(F);

impl<F: Fn() -> bool + Send + Sync> JobSigns for StoppingWhen<F> {
    fn is_stopping(&self) -> bool {
        (self.0)()
    }
}

/// As long as this lives, a thread has data in memory, unless it has been saved.
#[derive(Debug)]
pub(crate) struct Holding {
    job: Job,
    is_saved: bool,
}

impl Holding {
    pub fn new(job: Job) -> Holding {
        job.0.holds();
        Holding { job, is_saved: false }
    }

    /// The entries that were held when the job asked are now in the files.
    pub fn saved(&mut self) {
        if !std::mem::replace(&mut self.is_saved, true) {
            self.job.0.saved();
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.saved();
    }
}
