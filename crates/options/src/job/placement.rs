//! Where workers run and with which rights: CPUs, memory nodes, priorities, control groups, users.

use crate::typed::{CpusPolicy, NumaPolicy};

options! {
    /// Where workers run and with which rights: CPUs, memory nodes, priorities, control groups, users.
    pub struct PlacementOptions at placement {
        /// From `cpus_allowed` or `cpumask`; empty = not set.
        pub cpus_allowed: Vec<u32>,
        pub cpus_allowed_policy: CpusPolicy,
        /// Empty = not set, or all nodes.
        pub numa_cpu_nodes: Vec<u32>,
        pub numa_mem_policy: Option<NumaPolicy>,
        pub nice: i32,
        pub prio: Option<u32>,
        pub prioclass: Option<u32>,
        pub priohint: Option<u32>,
        pub ioscheduler: Option<String>,
        pub cgroup: Option<String>,
        pub cgroup_weight: Option<u32>,
        pub cgroup_nodelete: bool,
        pub comm: Option<String>,
        pub uid: Option<u32>,
        pub gid: Option<u32>,
    }
}
