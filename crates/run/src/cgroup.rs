//! Control groups for workers: `cgroup`, `cgroup_weight`, `cgroup_nodelete`.
//!
//! Where the block I/O controller of the first version of control groups is mounted, groups are made there (that is
//! where jobs with this option have always had theirs); otherwise in the hierarchy of the second version. Groups are
//! made by the controlling process before anything runs, each worker enters its own, and those that were made here are
//! removed when all workers are gone: by the spawner, which is there for that also when the controlling process was
//! killed, or else by the controlling process.

use iolite_host::ControlGroupVersion;
use iolite_plan::{ControlGroup, Plan, Problem};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes the weight where the kernel has a file for it.
fn set_weight(version: ControlGroupVersion, group: &Path, weight: u32) -> Result<(), String> {
    let names = match version {
        ControlGroupVersion::One => ["blkio.weight", "blkio.bfq.weight"],
        ControlGroupVersion::Two => {
            // The controller has to be handed down to the group. Where it cannot be, there is no such file.
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

/// The groups of a run. Those that were made here and are not to stay are removed when this is dropped.
#[derive(Debug, Default)]
pub struct ControlGroups(MadeGroups);

/// The groups that a run has made, and that are not to stay.
#[derive(Clone, Debug, Default)]
pub struct MadeGroups(Vec<PathBuf>);

impl MadeGroups {
    /// Removes those that are there. Nobody may be in them any more.
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
    /// Makes the groups that the jobs name, as far as they are not there.
    ///
    /// # Errors
    /// What is in the way, for all jobs; what has been made is removed again.
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

    /// Those that are to be removed.
    pub fn made(&self) -> MadeGroups {
        self.0.clone()
    }

    /// Takes the calling worker into its group, which is entered by writing to this file.
    ///
    /// # Errors
    /// What the kernel says, with the file that was written to.
    pub fn enter(entrance: &Path) -> io::Result<()> {
        // 0 is the thread or process that writes.
        fs::write(entrance, "0")
            .map_err(|error| iolite_os::explained(&error, format!("{}: {error}", entrance.display())))
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
