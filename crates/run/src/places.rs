//! Whether workers, and the threads beside them, may run on the CPUs that jobs name. Told before the first file is
//! touched.
//!
//! A CPU that is there may still be out of bounds: it is offline, or the cpuset of this process leaves it out. Only the
//! kernel knows, so it is asked. (What taskset(1) has left out is not out of bounds: a job that names such a CPU gets it.)

use crate::processors::{processors, run_on};
use crate::worker::cpus_of_node;
use iolite_options::{CpusPolicy, JobOptions, LogOptions};
use iolite_plan::{JobPlan, Plan, Problem};

/// All jobs, or the threads beside them, that would have no CPU.
pub fn missing(plan: &Plan) -> Vec<Problem> {
    let keeper = plan.jobs.iter().find(|job| job.options.gtod_cpu.is_some());
    let reserved = keeper.and_then(|job| job.options.gtod_cpu);
    let problem = |job: &JobPlan, (option, message): (&str, String)| Problem {
        job: job.options.name.clone(),
        origin: job.options.origins.get(option).cloned(),
        message,
    };
    let of_keeper = keeper.and_then(|job| Some(problem(job, without_keeper(reserved?)?)));
    let of_workers = plan.jobs.iter().filter_map(|job| {
        let workers = plan.clones(job);
        Some(problem(job, without_worker(&job.options, workers, reserved)?))
    });
    let of_threads = plan
        .jobs
        .iter()
        .flat_map(|job| without_threads(&job.options).into_iter().map(move |found| problem(job, found)));
    of_keeper.into_iter().chain(of_workers).chain(of_threads).collect()
}

/// Those of these CPUs on which this process may run.
fn usable(cpus: &[u32]) -> Vec<u32> {
    // A thread of its own, so that nothing has to be put back.
    let ask = || cpus.iter().copied().filter(|&cpu| run_on(&[cpu]).is_ok()).collect();
    std::thread::scope(|scope| {
        let asked = std::thread::Builder::new().spawn_scoped(scope, ask);
        // Where there is no thread to ask with, the worker itself will see.
        asked.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| cpus.to_vec())
    })
}

fn without_keeper(reserved: u32) -> Option<(&'static str, String)> {
    usable(&[reserved])
        .is_empty()
        .then(|| ("gtod_cpu", format!("gtod_cpu: this program may not run on CPU {reserved}")))
}

/// Why one of these workers has no CPU to run on.
fn without_worker(
    options: &JobOptions,
    workers: std::ops::Range<usize>,
    reserved: Option<u32>,
) -> Option<(&'static str, String)> {
    let taken = |cpu: u32, from: &str| {
        format!("CPU {cpu} does nothing but keep the time (gtod_cpu={cpu}), and {from}")
    };
    if !options.cpus_allowed.is_empty() {
        let option = if options.is_set("cpus_allowed") { "cpus_allowed" } else { "cpumask" };
        let named: Vec<u32> =
            options.cpus_allowed.iter().copied().filter(|&cpu| Some(cpu) != reserved).collect();
        if named.is_empty() {
            let taken = taken(reserved?, "the job may run on no other; allow it one");
            return Some((option, format!("{option}: {taken}")));
        }
        let usable = usable(&named);
        let unusable = match options.cpus_allowed_policy {
            CpusPolicy::Shared => usable.is_empty().then_some(named[0]),
            CpusPolicy::Split => {
                workers.map(|worker| named[worker % named.len()]).find(|cpu| !usable.contains(cpu))
            }
        };
        if let Some(cpu) = unusable {
            return Some((option, format!("{option}: this program may not run on CPU {cpu}")));
        }
    }
    if !options.numa_cpu_nodes.is_empty() {
        return on_nodes(&options.numa_cpu_nodes, reserved)
            .map(|message| ("numa_cpu_nodes", format!("numa_cpu_nodes: {message}")));
    }
    // Log files are written wherever this program may run.
    let roams = options.cpus_allowed.is_empty()
        || (LogOptions::any(&options.logs) && options.logs.log_compression_cpus.is_empty());
    let reserved = reserved.filter(|_| roams)?;
    let is_only = processors().is_ok_and(|all| all == [reserved]);
    is_only.then(|| {
        let taken = taken(reserved, "this program may run on no other (taskset, or a cpuset)");
        ("gtod_cpu", format!("gtod_cpu: {taken}"))
    })
}

/// Why a worker has no CPU on these memory nodes.
fn on_nodes(nodes: &[u32], reserved: Option<u32>) -> Option<String> {
    let mut cpus = Vec::new();
    for &node in nodes {
        match cpus_of_node(node) {
            Ok(found) => cpus.extend(found),
            Err(error) => return Some(error.to_string()),
        }
    }
    let mut usable = usable(&cpus);
    if usable.is_empty() {
        return Some("this program may run on no CPU of these nodes".to_owned());
    }
    usable.retain(|&cpu| Some(cpu) != reserved);
    let reserved = reserved.filter(|_| usable.is_empty())?;
    Some(format!(
        "CPU {reserved} does nothing but keep the time (gtod_cpu={reserved}), and these nodes have no other for the job"
    ))
}

/// Threads beside the workers that are to run where they may not.
fn without_threads(options: &JobOptions) -> Vec<(&'static str, String)> {
    let all = [
        ("verify_async_cpus", &options.verification.verify_async_cpus),
        ("log_compression_cpus", &options.logs.log_compression_cpus),
    ];
    let refused = |(option, cpus): (&'static str, &Vec<u32>)| {
        let usable = if cpus.is_empty() { return None } else { usable(cpus) };
        let cpu = cpus.iter().find(|cpu| !usable.contains(cpu))?;
        Some((option, format!("{option}: CPU {cpu} is not there, or may not be used")))
    };
    all.into_iter().filter_map(refused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::RunOptions;

    fn problems(jobs: Vec<JobOptions>) -> Vec<String> {
        let plan = Plan::build(jobs, &RunOptions::default(), &iolite_host::ThisMachine::new()).unwrap();
        missing(&plan).into_iter().map(|problem| problem.message).collect()
    }

    fn job(change: impl FnOnce(&mut JobOptions)) -> JobOptions {
        let mut options = JobOptions { name: "j".into(), ioengine: "null".into(), ..JobOptions::default() };
        options.size = Some(iolite_options::SizeValue::Bytes(4096));
        change(&mut options);
        options
    }

    /// Does something in a thread that may run on one CPU only.
    fn tied<T: Send>(cpu: u32, act: impl FnOnce() -> T + Send) -> T {
        let tied = || {
            run_on(&[cpu]).unwrap();
            act()
        };
        std::thread::scope(|scope| scope.spawn(tied).join().unwrap())
    }

    #[test]
    fn the_cpu_that_keeps_the_time_does_nothing_else() {
        let cpu = processors().unwrap()[0];
        let allowed = |cpus: &[u32]| {
            let cpus = cpus.to_vec();
            job(move |o| o.cpus_allowed = cpus)
        };
        let keeper = || job(|o| o.gtod_cpu = Some(cpu));
        assert_eq!(problems(vec![allowed(&[cpu])]), [""; 0]);
        // Another job's clock is everybody's.
        let found = problems(vec![allowed(&[cpu]), keeper()]);
        assert!(found.iter().any(|text| text.starts_with("cpumask: ")), "{found:?}");
        let found = tied(cpu, || problems(vec![keeper()]));
        assert!(found.len() == 1 && found[0].starts_with("gtod_cpu: "), "{found:?}");
        if processors().unwrap().len() > 1 {
            assert_eq!(problems(vec![keeper()]), [""; 0]);
        }
    }

    #[test]
    fn what_a_thread_was_tied_to_is_no_bound() {
        let all = processors().unwrap();
        assert_eq!(tied(all[0], || usable(&all)), all);
        assert_eq!(usable(&[all[0], 1023, 60_000]), [all[0]]);
    }

    #[test]
    fn a_cpu_that_may_not_be_used_is_named() {
        // The plan refuses CPUs that are not there; here it is not asked.
        let of = |change: &dyn Fn(&mut JobOptions), workers| {
            let options = job(|o| change(o));
            without_worker(&options, workers, None).map(|(_, message)| message)
        };
        let all = processors().unwrap();
        assert_eq!(of(&|o| o.cpus_allowed = vec![all[0], 1023], 0..4), None);
        let told = of(&|o| o.cpus_allowed = vec![1023], 0..1);
        assert_eq!(told.unwrap(), "cpumask: this program may not run on CPU 1023");
        let split = |o: &mut JobOptions| {
            o.cpus_allowed = vec![all[0], 1023];
            o.cpus_allowed_policy = CpusPolicy::Split;
        };
        assert_eq!(of(&split, 0..1), None, "the second is of another clone");
        assert_eq!(of(&split, 0..2).unwrap(), "cpumask: this program may not run on CPU 1023");
    }

    #[test]
    fn threads_beside_a_worker_need_a_cpu() {
        let options = job(|o| o.logs.log_compression_cpus = vec![0, 1023]);
        let told = without_threads(&options);
        assert_eq!(
            told,
            [(
                "log_compression_cpus",
                "log_compression_cpus: CPU 1023 is not there, or may not be used".into()
            )]
        );
        assert_eq!(without_threads(&job(|_| ())), []);
    }
}
