//! Where workers run and with which rights: CPUs, memory nodes, priorities, control groups.

use crate::definition::{Category, Definition, Kind};
use crate::values::{cpu_list, cpu_mask, numa_nodes, numa_policy};

const fn placement(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Placement, kind, help)
}

/// Priorities.
pub static PRIORITIES: &[Definition] = &[
    placement("comm", Kind::Str, "Name of the workers in the process list; 15 bytes of it are shown").lands(
        |job, given| {
            job.placement.comm = Some(given.string()?);
            Ok(())
        },
    ),
    placement("nice", Kind::Int, "Nice value of the workers, added to that of the program")
        .default("0")
        .range(-20, 19)
        .lands(put!(placement.nice, number())),
    placement("prio", Kind::Int, "I/O priority, 0 (highest) to 7").range(0, 7).lands(|job, given| {
        job.placement.prio = Some(given.number()?);
        Ok(())
    }),
    placement("prioclass", Kind::Int, "I/O priority class: 1 real time, 2 best effort, 3 idle")
        .range(0, 3)
        .lands(|job, given| {
            job.placement.prioclass = Some(given.number()?);
            Ok(())
        }),
    placement("priohint", Kind::Int, "I/O priority hint for the device").range(0, 1023).lands(
        |job, given| {
            job.placement.priohint = Some(given.number()?);
            Ok(())
        },
    ),
];

/// CPUs and memory nodes.
pub static PROCESSORS: &[Definition] = &[
    placement("cpumask", Kind::Int, "CPUs for the workers, as the bits of a number").min(0).lands(
        |job, given| {
            job.placement.cpus_allowed = cpu_mask(given.number()?)?;
            Ok(())
        },
    ),
    placement("cpus_allowed", Kind::Str, "CPUs for the workers: 0,5,8-15").lands(|job, given| {
        job.placement.cpus_allowed = cpu_list(given.required()?, &mut given.notes)?;
        Ok(())
    }),
    placement("cpus_allowed_policy", Kind::Str, "How workers share these CPUs")
        .under("cpus_allowed")
        .keywords(&[("shared", "Each may run on all of them"), ("split", "Each gets a separate one")])
        .lands(put_keyword!(placement.cpus_allowed_policy, CpusPolicy)),
    placement("numa_cpu_nodes", Kind::Str, "Memory nodes on whose CPUs the workers run: 0-1, all").lands(
        |job, given| {
            job.placement.numa_cpu_nodes = numa_nodes(given.required()?, &mut given.notes)?;
            Ok(())
        },
    ),
    placement(
        "numa_mem_policy",
        Kind::Str,
        "Memory nodes to allocate from: default, local, or prefer, bind, interleave with :NODES",
    )
    .lands(|job, given| {
        job.placement.numa_mem_policy = Some(numa_policy(given.required()?, &mut given.notes)?);
        Ok(())
    }),
];

/// Schedulers, control groups, users.
pub static IDENTITY: &[Definition] = &[
    placement("profile", Kind::Str, "A ready-made set of jobs; only on the command line")
        .keywords(&[
            ("tiobench", "Like the tiobench program"),
            ("act", "Like Aerospike's certification tool"),
        ])
        .lands(|_, given| {
            let profile = given.keyword()?;
            given.notes.push(format!(
                "the jobs of a profile do not come from a job file, so this has no effect (as with fio); run \
                 --profile={profile} for them"
            ));
            Ok(())
        }),
    placement("cgroup", Kind::Str, "Control group for the workers; created if it does not exist").lands(
        |job, given| {
            let name = given.string()?;
            if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
                return Err(
                    "is the name of a control group, relative to the root of its hierarchy".to_owned()
                );
            }
            job.placement.cgroup = Some(name);
            Ok(())
        },
    ),
    placement("cgroup_nodelete", Kind::Bool, "Leave the control group when the job has ended")
        .under("cgroup")
        .default("0")
        .lands(put!(placement.cgroup_nodelete, boolean())),
    placement("cgroup_weight", Kind::Int, "I/O weight of the control group")
        .under("cgroup")
        .range(100, 1000)
        .lands(|job, given| {
            job.placement.cgroup_weight = Some(given.number()?);
            Ok(())
        }),
    placement("uid", Kind::Int, "User to run as, by number").min(0).lands(|job, given| {
        job.placement.uid = Some(given.number()?);
        Ok(())
    }),
    placement("gid", Kind::Int, "Group to run as, by number").min(0).lands(|job, given| {
        job.placement.gid = Some(given.number()?);
        Ok(())
    }),
];
