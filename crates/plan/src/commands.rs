//! The commands around a job (`exec_prerun`, `exec_postrun`): the files for their output.

/// When a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the job.
    Before,
    /// After the job.
    After,
}

impl When {
    /// The word in file names and messages.
    pub fn word(self) -> &'static str {
        match self {
            When::Before => "prerun",
            When::After => "postrun",
        }
    }
}

/// The file for the output of a command: `JOB.prerun.txt` in the current directory, even if the job's name looks like a
/// path.
pub fn output_file(job: &str, when: When) -> String {
    format!("{}.{}.txt", job.replace('/', "_"), when.word())
}
