//! CPU affinity and memory nodes of workers, and checks that workers and their helper threads can run there.
//!
//! A CPU may exist and still be unusable, because it is offline or outside the cpuset of this process. (A job may name
//! a CPU that taskset(1) has excluded: an affinity mask can be widened again.)

use crate::{JobPlan, Plan, Problem};
use iolite_host::{Machine, Refusal};
use iolite_options::engines::Obstacle;
use iolite_options::{CpusPolicy, JobOptions, NumaPolicy, NumaPolicyMode};

/// The CPU affinity that a job requests (`cpus_allowed`, `cpumask`), or this worker's share of it, without the reserved
/// CPU; `None` = it requests none.
pub(crate) fn of_worker(options: &JobOptions, worker: usize, reserved: Option<u32>) -> Option<Vec<u32>> {
    if options.placement.cpus_allowed.is_empty() {
        return None;
    }
    let cpus: Vec<u32> =
        options.placement.cpus_allowed.iter().copied().filter(|&cpu| Some(cpu) != reserved).collect();
    Some(match options.placement.cpus_allowed_policy {
        CpusPolicy::Split if !cpus.is_empty() => vec![cpus[worker % cpus.len()]],
        CpusPolicy::Split | CpusPolicy::Shared => cpus,
    })
}

/// The CPUs of the memory nodes that a job's workers run on (`numa_cpu_nodes`); `None` = it names no nodes.
///
/// # Errors
/// The kernel does not list its nodes.
pub(crate) fn of_nodes(options: &JobOptions, machine: &dyn Machine) -> Result<Option<Vec<u32>>, Refusal> {
    let named = &options.placement.numa_cpu_nodes;
    if named.is_empty() {
        return Ok(None);
    }
    let nodes = machine.nodes()?.into_iter().filter(|node| named.contains(&node.number));
    Ok(Some(nodes.flat_map(|node| node.cpus).collect()))
}

/// Where the memory of a job's workers comes from (`numa_mem_policy`), with the nodes that it applies to.
///
/// # Errors
/// The kernel does not list its nodes.
pub(crate) fn memory_policy(
    options: &JobOptions,
    machine: &dyn Machine,
) -> Result<Option<NumaPolicy>, Refusal> {
    use NumaPolicyMode::{Bind, Interleave, Prefer};
    let Some(mut policy) = options.placement.numa_mem_policy.clone() else { return Ok(None) };
    // These policies need nodes. If the job names none, it means all.
    if policy.nodes.is_empty() && matches!(policy.mode, Prefer | Bind | Interleave) {
        policy.nodes = machine.nodes()?.iter().map(|node| node.number).collect();
    }
    Ok(Some(policy))
}

/// Jobs and helper threads that have no CPU to run on.
pub(crate) fn problems(plan: &Plan, machine: &dyn Machine) -> Vec<Problem> {
    let keeper = plan.jobs.iter().find(|job| job.options.measurement.gtod_cpu.is_some());
    let reserved = keeper.and_then(|job| job.options.measurement.gtod_cpu);
    let problem = |job: &JobPlan, (option, message): Obstacle| Problem::of(&job.options, option, message);
    let of_keeper = keeper.and_then(|job| Some(problem(job, without_keeper(reserved?, machine)?)));
    let of_workers = plan.jobs.iter().filter_map(|job| {
        let workers = plan.clones(job);
        Some(problem(job, without_worker(&job.options, workers, reserved, machine)?))
    });
    let of_threads = plan.jobs.iter().flat_map(|job| {
        without_threads(&job.options, machine).into_iter().map(move |found| problem(job, found))
    });
    of_keeper.into_iter().chain(of_workers).chain(of_threads).collect()
}

/// The CPUs among these that this process can use.
fn usable(cpus: &[u32], machine: &dyn Machine) -> Vec<u32> {
    let usable = machine.cpus().usable;
    cpus.iter().copied().filter(|cpu| usable.contains(cpu)).collect()
}

fn without_keeper(reserved: u32, machine: &dyn Machine) -> Option<Obstacle> {
    let message = || ("gtod_cpu", format!("gtod_cpu: this program may not run on CPU {reserved}"));
    usable(&[reserved], machine).is_empty().then(message)
}

/// The beginning of a message about the reserved CPU.
fn keeps_time(cpu: u32) -> String {
    format!("CPU {cpu} does nothing but keep the time (gtod_cpu={cpu})")
}

/// Why one of these workers has no CPU to run on.
fn without_worker(
    options: &JobOptions,
    workers: std::ops::Range<usize>,
    reserved: Option<u32>,
    machine: &dyn Machine,
) -> Option<Obstacle> {
    if let Some(message) = on_named(options, workers, reserved, machine) {
        let option = options.affinity_option();
        return Some((option, format!("{option}: {message}")));
    }
    if !options.placement.numa_cpu_nodes.is_empty() {
        return on_nodes(options, reserved, machine)
            .map(|message| ("numa_cpu_nodes", format!("numa_cpu_nodes: {message}")));
    }
    // The threads that write log files run on any CPU that this process is allowed to use.
    let roams = options.placement.cpus_allowed.is_empty()
        || (options.writes_logs() && options.logs.log_compression_cpus.is_empty());
    let reserved = reserved.filter(|_| roams)?;
    (machine.cpus().allowed == [reserved]).then(|| {
        let taken = keeps_time(reserved);
        let message = format!("{taken}, and this program may run on no other (taskset, or a cpuset)");
        ("gtod_cpu", format!("gtod_cpu: {message}"))
    })
}

/// Why one of these workers has no usable CPU among those that the job allows.
fn on_named(
    options: &JobOptions,
    workers: std::ops::Range<usize>,
    reserved: Option<u32>,
    machine: &dyn Machine,
) -> Option<String> {
    // Further workers have the same shares again.
    let different = match options.placement.cpus_allowed_policy {
        CpusPolicy::Shared => 1,
        CpusPolicy::Split => options.placement.cpus_allowed.len(),
    };
    workers.take(different).find_map(|worker| {
        let cpus = of_worker(options, worker, reserved)?;
        let Some(first) = cpus.first() else {
            return Some(format!("{}, and the job may run on no other; allow it one", keeps_time(reserved?)));
        };
        usable(&cpus, machine).is_empty().then(|| format!("this program may not run on CPU {first}"))
    })
}

/// Why a worker has no CPU on the memory nodes that the job names.
fn on_nodes(options: &JobOptions, reserved: Option<u32>, machine: &dyn Machine) -> Option<String> {
    let cpus = match of_nodes(options, machine) {
        Ok(cpus) => cpus?,
        Err(refusal) => {
            return Some(format!("node {}: {refusal}", options.placement.numa_cpu_nodes.first()?));
        }
    };
    let mut usable = usable(&cpus, machine);
    if usable.is_empty() {
        return Some("this program may run on no CPU of these nodes".to_owned());
    }
    usable.retain(|&cpu| Some(cpu) != reserved);
    let reserved = reserved.filter(|_| usable.is_empty())?;
    Some(format!("{}, and these nodes have no other for the job", keeps_time(reserved)))
}

/// Why helper threads cannot run on the CPUs that the job names for them.
fn without_threads(options: &JobOptions, machine: &dyn Machine) -> Vec<Obstacle> {
    let all = [
        ("verify_async_cpus", &options.verification.verify_async_cpus),
        ("log_compression_cpus", &options.logs.log_compression_cpus),
    ];
    let refused = |(option, cpus): (&'static str, &Vec<u32>)| {
        let usable = if cpus.is_empty() { return None } else { usable(cpus, machine) };
        let cpu = cpus.iter().find(|cpu| !usable.contains(cpu))?;
        Some((option, format!("{option}: CPU {cpu} does not exist, or may not be used")))
    };
    all.into_iter().filter_map(refused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::{PlacementOptions, RunOptions};

    fn told(jobs: Vec<JobOptions>, machine: &MadeUp) -> Vec<String> {
        let plan = Plan::build(jobs, &RunOptions::default(), machine).unwrap();
        problems(&plan, machine).into_iter().map(|problem| problem.message).collect()
    }

    fn job(change: impl FnOnce(&mut JobOptions)) -> JobOptions {
        let mut options = JobOptions { name: "j".into(), ioengine: "null".into(), ..JobOptions::default() };
        options.extent.size = Some(iolite_options::SizeValue::Bytes(4096));
        change(&mut options);
        options
    }

    fn allowed(cpus: &[u32]) -> JobOptions {
        job(|o| o.placement.cpus_allowed = cpus.to_vec())
    }

    #[test]
    fn the_cpu_that_keeps_the_time_does_nothing_else() {
        let machine = MadeUp::new().with_cpus(4);
        let keeper = || job(|o| o.measurement.gtod_cpu = Some(3));
        assert_eq!(told(vec![allowed(&[3])], &machine), [""; 0]);
        assert_eq!(told(vec![keeper()], &machine), [""; 0]);
        // The clock of one job serves all jobs.
        let found = told(vec![allowed(&[3]), keeper()], &machine);
        let taken = "CPU 3 does nothing but keep the time (gtod_cpu=3)";
        assert_eq!(found, [format!("cpumask: {taken}, and the job may run on no other; allow it one")]);
        let found = told(vec![keeper()], &machine.clone().tied_to(&[3]));
        let elsewhere = "this program may run on no other (taskset, or a cpuset)";
        assert_eq!(found, [format!("gtod_cpu: {taken}, and {elsewhere}")]);
        let found = told(vec![keeper()], &machine.unusable_cpu(3));
        assert_eq!(found, ["gtod_cpu: this program may not run on CPU 3"]);
    }

    #[test]
    fn cpus_may_lie_outside_the_programs_own_affinity() {
        let machine = MadeUp::new().with_cpus(4).tied_to(&[0]);
        assert_eq!(told(vec![allowed(&[2, 3])], &machine), [""; 0]);
    }

    #[test]
    fn a_cpu_that_may_not_be_used_is_named() {
        let machine = MadeUp::new().with_cpus(4).unusable_cpu(2);
        assert_eq!(told(vec![allowed(&[0, 2])], &machine), [""; 0]);
        let message = "cpumask: this program may not run on CPU 2";
        assert_eq!(told(vec![allowed(&[2])], &machine), [message]);
        let split = |numjobs| {
            let mut options = allowed(&[0, 2]);
            options.placement.cpus_allowed_policy = CpusPolicy::Split;
            options.schedule.numjobs = numjobs;
            options
        };
        assert_eq!(told(vec![split(1)], &machine), [""; 0], "the second is of another clone");
        assert_eq!(told(vec![split(2)], &machine), [message]);
    }

    #[test]
    fn a_node_needs_a_cpu_for_the_job() {
        let machine = MadeUp::new().with_cpus(8).with_nodes(4);
        let on = |node| job(|o| o.placement.numa_cpu_nodes = vec![node]);
        let keeper = |cpu| job(move |o| o.measurement.gtod_cpu = Some(cpu));
        assert_eq!(told(vec![on(3), keeper(7)], &machine), [""; 0]);
        let offline = machine.clone().unusable_cpu(6);
        let found = told(vec![on(3), keeper(7)], &offline);
        assert!(found.len() == 1 && found[0].ends_with("these nodes have no other for the job"), "{found:?}");
        let found = told(vec![on(3)], &offline.unusable_cpu(7));
        assert_eq!(found, ["numa_cpu_nodes: this program may run on no CPU of these nodes"]);
        let found = told(vec![on(1)], &machine.with_nodes(0));
        assert_eq!(found, ["numa_cpu_nodes: node 1: No such file or directory"]);
    }

    #[test]
    fn policies_that_need_nodes_have_all_of_them() {
        let machine = MadeUp::new().with_nodes(4);
        let nodes = |mode, named: &[u32]| {
            let numa_mem_policy = Some(NumaPolicy { mode, nodes: named.to_vec() });
            let options = JobOptions {
                placement: PlacementOptions { numa_mem_policy, ..PlacementOptions::default() },
                ..JobOptions::default()
            };
            memory_policy(&options, &machine).unwrap().unwrap().nodes
        };
        assert_eq!(nodes(NumaPolicyMode::Interleave, &[]), [0, 1, 2, 3]);
        assert_eq!(nodes(NumaPolicyMode::Interleave, &[1]), [1]);
        assert_eq!(nodes(NumaPolicyMode::Local, &[]), [0; 0]);
    }

    #[test]
    fn threads_beside_a_worker_need_a_cpu() {
        let machine = MadeUp::new().with_cpus(2);
        let told = |cpu| told(vec![job(|o| o.logs.log_compression_cpus = vec![0, cpu])], &machine);
        assert_eq!(told(1), [""; 0]);
        assert_eq!(told(1023), ["log_compression_cpus: CPU 1023 does not exist, or may not be used"]);
    }
}
