//! The names of state files: `local-NAME-NUMBER-verify.state`.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The names of the states of a job's clones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateNames {
    /// Their directory.
    pub directory: PathBuf,
    /// The name of the job.
    pub job: String,
    /// The places of the clones in the job file, from 0.
    pub places: Range<u64>,
}

impl StateNames {
    /// The state of the clone at this place.
    pub fn at(&self, place: u64) -> PathBuf {
        let name = self.job.replace('/', ".");
        self.directory.join(format!("local-{name}-{place}-verify.state"))
    }

    /// Whether one of these files exists.
    pub fn any_exists(&self) -> bool {
        self.places.clone().any(|place| self.at(place).exists())
    }
}

/// Whether this is the name of a state.
pub fn is_state_name(name: &Path) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("local-") && name.ends_with("-verify.state"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_the_job_and_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let names = StateNames { directory: directory.path().into(), job: "a/b".into(), places: 3..5 };
        assert_eq!(names.at(4), directory.path().join("local-a.b-4-verify.state"));
        assert!(is_state_name(Path::new("local-a.b-4-verify.state")) && !is_state_name(Path::new("local-a")));
        std::fs::write(names.at(5), "").unwrap();
        assert!(!names.any_exists());
        std::fs::write(names.at(4), "").unwrap();
        assert!(names.any_exists());
    }
}
