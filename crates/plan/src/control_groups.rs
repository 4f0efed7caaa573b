//! The control groups that jobs name (`cgroup`): where they are, and how a worker enters one.

use iolite_host::{ControlGroupVersion, Hierarchy, Machine};
use iolite_options::JobOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A control group of workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// Its name, as the job has it.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// The version of control groups.
    pub version: ControlGroupVersion,
    /// Its weight for block I/O; `None` = the kernel's default.
    pub weight: Option<u32>,
    /// It is not removed after the run.
    pub stays: bool,
}

impl ControlGroup {
    /// The group that the job names, if any.
    pub(crate) fn of(options: &JobOptions, machine: &dyn Machine) -> Result<Option<ControlGroup>, String> {
        let Some(name) = &options.placement.cgroup else { return Ok(None) };
        let found = machine.control_groups().map_err(|refusal| refusal.to_string())?;
        let Hierarchy { root, version } = found.ok_or_else(|| {
            "neither the control groups of blkio nor those of version 2 are mounted; \
             mount -t cgroup2 none DIRECTORY mounts them"
                .to_owned()
        })?;
        if version == ControlGroupVersion::Two && options.schedule.thread {
            return Err(format!(
                "cgroup={name}: with control groups of version 2, threads of one process cannot be in different \
                 groups; leave thread out"
            ));
        }
        Ok(Some(ControlGroup {
            name: name.clone(),
            directory: root.join(name),
            version,
            weight: options.placement.cgroup_weight,
            stays: options.placement.cgroup_nodelete,
        }))
    }

    /// The file to which a process writes its number to enter the group.
    pub fn entrance(&self) -> PathBuf {
        self.directory.join(match self.version {
            ControlGroupVersion::One => "tasks",
            ControlGroupVersion::Two => "cgroup.procs",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::{PlacementOptions, ScheduleOptions};

    fn found(version: ControlGroupVersion, thread: bool) -> Result<Option<ControlGroup>, String> {
        let machine = MadeUp::new().with_control_groups(Hierarchy { root: "/sys/fs/cgroup".into(), version });
        let cgroup = Some("mine".into());
        ControlGroup::of(
            &JobOptions {
                placement: PlacementOptions { cgroup, ..PlacementOptions::default() },
                schedule: ScheduleOptions { thread, ..ScheduleOptions::default() },
                ..JobOptions::default()
            },
            &machine,
        )
    }

    #[test]
    fn groups_are_entered_where_they_are() {
        let entrance = |version| found(version, false).unwrap().unwrap().entrance();
        assert_eq!(entrance(ControlGroupVersion::One).to_str(), Some("/sys/fs/cgroup/mine/tasks"));
        assert_eq!(entrance(ControlGroupVersion::Two).to_str(), Some("/sys/fs/cgroup/mine/cgroup.procs"));
    }

    #[test]
    fn impossible_control_groups_are_refused() {
        assert!(found(ControlGroupVersion::One, true).is_ok());
        let refused = found(ControlGroupVersion::Two, true).unwrap_err();
        assert!(refused.starts_with("cgroup=mine: with control groups of version 2, threads"), "{refused}");
        let options = JobOptions {
            placement: PlacementOptions { cgroup: Some("mine".into()), ..PlacementOptions::default() },
            ..JobOptions::default()
        };
        let refused = ControlGroup::of(&options, &MadeUp::new()).unwrap_err();
        assert!(refused.starts_with("neither the control groups of blkio"), "{refused}");
        assert_eq!(ControlGroup::of(&JobOptions::default(), &MadeUp::new()), Ok(None));
    }
}
