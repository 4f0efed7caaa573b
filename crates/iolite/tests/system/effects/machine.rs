//! Options for the machine: the CPUs, users, priorities and memory of workers.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

macro_rules! tells {
    ($script:literal) => {
        concat!("@ --exec_prerun=./", $script)
    };
}
const TOLD: super::See = File("j.prerun.txt");

pub const TABLE: &[Effect] = &[
    row("thread", "--ioengine=null --size=4k", ABSENT, "", Says("Starting 1 thread\n")),
    row("comm", "@", ABSENT, "worker-x", CallsWith("prctl", "PR_SET_NAME")),
    row("nice", tells!("see-nice"), "1", "5", TOLD),
    row("prio", tells!("see-prio"), "1", "5", TOLD),
    row("prioclass", tells!("see-prio --prio=3"), "2", "3", TOLD),
    row("priohint", "@ --prio=3 --prioclass=2", ABSENT, "1", Calls("ioprio_set")),
    row("cpumask", tells!("see-cpus"), "1", "2", TOLD),
    row("cpus_allowed", tells!("see-cpus"), "0", "1", TOLD),
    row(
        "cpus_allowed_policy",
        "--ioengine=null --size=4k --numjobs=2 --cpus_allowed=0-1",
        "shared",
        "split",
        Calls("sched_setaffinity"),
    ),
    row("numa_cpu_nodes", "@", ABSENT, "0", Calls("sched_setaffinity")),
    row("numa_mem_policy", "@", ABSENT, "bind:0", Calls("set_mempolicy")),
    row("uid", tells!("see-ids --filename=in/x"), ABSENT, "1234", TOLD),
    row("gid", tells!("see-ids --filename=in/x"), ABSENT, "1234", TOLD),
    row("lockmem", "@", ABSENT, "1m", Calls("mlock")),
    row("mem", "@", "malloc", "shm", Calls("shmget")),
    row("iomem_align", "@", "512", "1m", BuffersAligned(1 << 20)),
    row("hugepage-size", "@ --mem=mmaphuge", "2m", "4m", Attempts("mmap", "MAP_HUGETLB")),
    test!("ioscheduler", machine::the_io_scheduler_is_set_and_stays),
    test!("cgroup", machine::workers_run_in_their_control_group),
    test!("cgroup_nodelete", machine::workers_run_in_their_control_group),
    test!("cgroup_weight", machine::a_weight_is_written_or_refused_clearly),
    test!("gtod_cpu", machine::a_thread_of_its_own_keeps_the_time),
    test!("job_start_clock_id", machine::job_start_is_measured_by_the_requested_clock),
];
