//! Where a worker runs: CPUs, memory nodes, priorities, rights.

use crate::{ControlGroup, Plan, WorkerPlan};
use iolite_options::{CpusPolicy, JobOptions, NumaPolicy};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where and with which rights a worker runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementRules {
    /// The CPUs on which it may run, without the one that keeps the time; `None` = any.
    pub affinity: Option<Vec<u32>>,
    /// Only the CPUs of these memory nodes; empty = any.
    pub cpu_nodes: Vec<u32>,
    /// Where its memory comes from; `None` = the system's own policy.
    pub memory_policy: Option<NumaPolicy>,
    /// The I/O priority, as the kernel writes it; `None` = the one it is started with.
    pub io_priority: Option<u16>,
    /// What is added to its nice value.
    pub nice: i32,
    /// The name of its thread (`comm`).
    pub thread_name: Option<String>,
    /// The group it becomes.
    pub group: Option<u32>,
    /// The user it becomes.
    pub user: Option<u32>,
    /// The file to which it writes its number to enter its control group.
    pub control_group: Option<PathBuf>,
    /// The CPU that keeps the time for all workers, and is left to that (`gtod_cpu`).
    pub reserved_cpu: Option<u32>,
}

pub(super) fn rules(plan: &Plan, worker: &WorkerPlan) -> PlacementRules {
    let job = plan.job_of(worker);
    let options = &*job.options;
    let reserved_cpu = plan.reserved_cpu();
    PlacementRules {
        affinity: (!options.cpus_allowed.is_empty()).then(|| affinity(options, worker.index, reserved_cpu)),
        cpu_nodes: options.numa_cpu_nodes.clone(),
        memory_policy: options.numa_mem_policy.clone(),
        io_priority: options.io_priority(),
        nice: options.nice,
        thread_name: options.comm.clone(),
        group: options.gid,
        user: options.uid,
        control_group: job.control_group.as_ref().map(ControlGroup::entrance),
        reserved_cpu,
    }
}

/// The CPUs that the job names, or this worker's share of them. (That something is left has been seen before.)
fn affinity(options: &JobOptions, worker: usize, reserved: Option<u32>) -> Vec<u32> {
    let cpus: Vec<u32> = options.cpus_allowed.iter().copied().filter(|&cpu| Some(cpu) != reserved).collect();
    match options.cpus_allowed_policy {
        CpusPolicy::Split if !cpus.is_empty() => vec![cpus[worker % cpus.len()]],
        CpusPolicy::Split | CpusPolicy::Shared => cpus,
    }
}
