//! Where a worker runs: CPUs, memory nodes, priorities, rights.

use crate::{ControlGroup, Plan, WorkerPlan, affinity};
use iolite_options::NumaPolicy;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where and with which rights a worker runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementRules {
    /// The CPUs on which it may run, without the one that keeps the time; `None` = any.
    pub affinity: Option<Vec<u32>>,
    /// The CPUs of the memory nodes on which it runs; `None` = of any.
    pub node_cpus: Option<Vec<u32>>,
    /// Where its memory comes from, with the nodes that the policy applies to; `None` = the system's own policy.
    pub memory_policy: Option<NumaPolicy>,
    /// The I/O priority, in the kernel's encoding; `None` = unchanged.
    pub io_priority: Option<u16>,
    /// The increment of its nice value.
    pub nice: i32,
    /// The name of its thread (`comm`).
    pub thread_name: Option<String>,
    /// The group it becomes.
    pub group: Option<u32>,
    /// The user it becomes.
    pub user: Option<u32>,
    /// The file to which it writes its number to enter its control group.
    pub control_group: Option<PathBuf>,
    /// The CPU that is reserved for the clock thread (`gtod_cpu`).
    pub reserved_cpu: Option<u32>,
}

pub(super) fn rules(plan: &Plan, worker: &WorkerPlan) -> PlacementRules {
    let job = plan.job_of(worker);
    let options = &*job.options;
    let reserved_cpu = plan.reserved_cpu();
    PlacementRules {
        affinity: affinity::of_worker(options, worker.index, reserved_cpu),
        node_cpus: job.node_cpus.clone(),
        memory_policy: job.memory_policy.clone(),
        io_priority: options.io_priority(),
        nice: options.placement.nice,
        thread_name: options.placement.comm.clone(),
        group: options.placement.gid,
        user: options.placement.uid,
        control_group: job.control_group.as_ref().map(ControlGroup::entrance),
        reserved_cpu,
    }
}
