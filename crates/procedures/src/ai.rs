//! What training and inference ask of storage: datasets that are read for accelerators, checkpoints, caches of keys and values.
//!
//! The patterns, and the figures, are those of MLPerf Storage 2.0 where it defines them; each file names its source. A result is
//! no submission: those need the code of that benchmark, five runs and a review.
//!
//! | what | file |
//! |---|---|
//! | where the data is, as options of jobs | `place.rs` |
//! | published models: their samples, batches, computing times, checkpoints | `models.rs` |
//! | the samples of a dataset, and the job that writes them | `dataset.rs` |
//! | reading for accelerators; the search for their largest number | `reader.rs`, `search.rs` |
//! | checkpoints of many ranks | `checkpoint.rs` |
//! | a cache of keys and values | `kv.rs` |

pub mod checkpoint;
pub mod dataset;
pub mod kv;
pub mod models;
pub mod place;
pub mod reader;
pub mod search;

use serde_json::Value;

/// Parts of a job file.
pub(crate) struct Section {
    text: String,
}

impl Section {
    pub(crate) fn new(name: &str) -> Section {
        Section { text: format!("[{name}]\n") }
    }

    pub(crate) fn set(mut self, option: &str, value: impl std::fmt::Display) -> Section {
        self.text += &format!("{option}={value}\n");
        self
    }

    pub(crate) fn set_if(self, is_set: bool, option: &str, value: impl std::fmt::Display) -> Section {
        if is_set { self.set(option, value) } else { self }
    }

    pub(crate) fn text(self) -> String {
        self.text + "\n"
    }
}

/// The job that removes files of these names, whether or not they are there: the engine makes what is missing.
pub fn removal(place: &place::Place, names: &[String]) -> String {
    let mut section = Section::new("remove").set("ioengine", "filedelete");
    for (option, value) in &place.options {
        section = section.set(option, value);
    }
    let section = section.set_if(place.is_on_machines, "unique_filename", 0);
    section.set("filename", names.join(":")).set("filesize", 4096).text()
}

/// The jobs of a report with this name, on all machines.
pub(crate) fn jobs_named<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    let jobs = iolite_stored::jobs(report).unwrap_or_default();
    jobs.into_iter().filter(|job| job["jobname"] == name).collect()
}

/// What went wrong in a report's jobs: their errors, each once.
pub fn errors(report: &Value) -> Vec<String> {
    let jobs = iolite_stored::jobs(report).unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for job in jobs.into_iter().filter(|job| iolite_stored::number(job, "error") != 0.0) {
        let words = format!("{}: error {}", job["jobname"].as_str().unwrap_or_default(), job["error"]);
        if !found.contains(&words) {
            found.push(words);
        }
    }
    found
}

/// The histograms of some latencies as one: nanoseconds, and how many there were.
pub(crate) fn bins_of<'a>(
    latencies: impl Iterator<Item = &'a Value>,
) -> std::collections::BTreeMap<u64, u64> {
    let mut all = std::collections::BTreeMap::new();
    for (latency, count) in latencies.filter_map(iolite_stored::bins).flatten() {
        *all.entry(latency).or_default() += count;
    }
    all
}
