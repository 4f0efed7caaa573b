//! The machine, devices and file systems of a run.

use serde::{Deserialize, Serialize};

/// A fact: its name in reports (`kernel`, `model`, …), and its value.
pub type Fact = (String, String);

/// The machine and the storage of a run. Facts that the system does not report are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The machine: `name`, `kernel`, `cpu`, `cpus`, `memory_bytes`.
    pub host: Vec<Fact>,
    /// Where the jobs' data is, each place once: `files`, `file_system`, `device`, `model`, `firmware`, `size_bytes`,
    /// `scheduler`, `rotational`, …; of an engine with its own storage, `engine`.
    pub targets: Vec<Vec<Fact>>,
    /// The warnings, about the input and during the run.
    pub warnings: Vec<String>,
}
