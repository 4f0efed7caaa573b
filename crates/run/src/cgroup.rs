//! Control groups for workers: `cgroup`, `cgroup_weight`, `cgroup_nodelete`.
//!
//! The plan has the names of the groups. The controller creates missing groups before any job runs, and each worker
//! enters its own. When all workers are gone, the spawner removes the groups that the run has created, even if the
//! controller was killed; if the spawner was killed, the controller removes them.

use iolite_host::ControlGroupVersion;
use iolite_plan::{ControlGroup, Plan, Problem};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Sets the weight of a group.
fn set_weight(version: ControlGroupVersion, group: &Path, weight: u32) -> Result<(), String> {
    let names = match version {
        ControlGroupVersion::One => ["blkio.weight", "blkio.bfq.weight"],
        ControlGroupVersion::Two => {
            // The parent has to enable the I/O controller for the group. If that fails, the group has no file for the
            // weight.
            let _ = group.parent().map(|parent| fs::write(parent.join("cgroup.subtree_control"), "+io"));
            ["io.weight", "io.bfq.weight"]
        }
    };
    let Some(file) = names.iter().map(|name| group.join(name)).find(|file| file.exists()) else {
        return Err(format!(
            "cgroup_weight={weight}: this kernel has neither {} nor {} in {}",
            names[0],
            names[1],
            group.display()
        ));
    };
    fs::write(&file, weight.to_string())
        .map_err(|error| format!("cgroup_weight={weight}: {}: {error}", file.display()))
}

/// The groups of a run. Groups that the run has created are removed when this is dropped, unless `cgroup_nodelete` is
/// set.
#[derive(Debug, Default)]
pub struct ControlGroups(MadeGroups);

/// Groups that the run has created and has to remove.
#[derive(Clone, Debug, Default)]
pub struct MadeGroups(Vec<PathBuf>);

impl MadeGroups {
    /// Removes the groups that still exist. They must not contain processes any more.
    pub fn remove(&self) {
        for group in self.0.iter().rev() {
            match fs::remove_dir(group) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    eprintln!("iolite: the control group {} cannot be removed: {error}", group.display());
                }
                _ => {}
            }
        }
    }
}

impl ControlGroups {
    /// Creates the groups that the jobs name and that do not exist.
    ///
    /// # Errors
    /// Groups that cannot be created or have no weight, for all jobs. Groups created until then are removed.
    pub fn new(plan: &Plan) -> Result<ControlGroups, Vec<Problem>> {
        let mut groups = ControlGroups::default();
        let mut problems = Vec::new();
        for job in &plan.jobs {
            let Some(group) = &job.control_group else { continue };
            problems.extend(groups.add(group).err().map(|message| job.problem("cgroup", message)));
        }
        if problems.is_empty() { Ok(groups) } else { Err(problems) }
    }

    fn add(&mut self, group: &ControlGroup) -> Result<(), String> {
        let directory = &group.directory;
        match fs::create_dir(directory) {
            Ok(()) if group.stays => {}
            Ok(()) => self.0.0.push(directory.clone()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let name = &group.name;
                return Err(format!("cgroup={name}: {} cannot be made: {error}", directory.display()));
            }
        }
        group.weight.map_or(Ok(()), |weight| set_weight(group.version, directory, weight))
    }

    /// The groups that have to be removed.
    pub fn made(&self) -> MadeGroups {
        self.0.clone()
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        self.0.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_without_a_file_for_it_is_an_error() {
        let group = std::env::temp_dir();
        let error = set_weight(ControlGroupVersion::One, &group, 500).unwrap_err();
        assert!(error.starts_with("cgroup_weight=500: this kernel has neither blkio.weight nor"), "{error}");
    }
}
