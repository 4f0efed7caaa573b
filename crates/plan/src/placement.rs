//! Checks that the CPUs and memory nodes that a job names exist.

use iolite_host::Machine;
use iolite_options::JobOptions;

/// CPUs and memory nodes that do not exist: the option to blame, and a message.
pub(crate) fn obstacles(options: &JobOptions, machine: &dyn Machine) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let missing = |cpus: &[u32]| {
        // Most jobs name none.
        let configured = if cpus.is_empty() { return None } else { machine.cpus().configured };
        let cpu = cpus.iter().find(|&&cpu| cpu >= configured)?;
        Some(format!("there is no CPU {cpu}, the last is {}", configured - 1))
    };
    if let Some(why) = missing(&options.placement.cpus_allowed) {
        let option = options.affinity_option();
        found.push((option, format!("{option}: {why}")));
    }
    if let Some(why) = missing(options.measurement.gtod_cpu.as_slice()) {
        found.push(("gtod_cpu", format!("gtod_cpu: {why}")));
    }
    let policy = options.placement.numa_mem_policy.as_ref().map_or(&[][..], |policy| &policy.nodes[..]);
    for (option, named) in
        [("numa_cpu_nodes", &options.placement.numa_cpu_nodes[..]), ("numa_mem_policy", policy)]
    {
        // If the kernel does not list nodes, `impossible` refuses the job later.
        let nodes = if named.is_empty() { continue } else { machine.nodes() };
        let Ok(nodes) = nodes else { continue };
        if let Some(node) = named.iter().find(|&&named| nodes.iter().all(|node| node.number != named)) {
            let known: Vec<String> = nodes.iter().map(|node| node.number.to_string()).collect();
            let known = known.join(", ");
            found.push((option, format!("{option}: there is no memory node {node}, only {known}")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;

    fn blamed(machine: &MadeUp, change: &dyn Fn(&mut JobOptions)) -> Vec<(&'static str, String)> {
        let mut options = JobOptions::default();
        change(&mut options);
        obstacles(&options, machine)
    }

    #[test]
    fn cpus_and_nodes_have_to_be_there() {
        let machine = MadeUp::new().with_cpus(512).with_nodes(4);
        let found = |change: &dyn Fn(&mut JobOptions)| blamed(&machine, change);
        assert_eq!(found(&|o| o.placement.cpus_allowed = vec![0, 511]), []);
        let message = "cpumask: there is no CPU 512, the last is 511".to_owned();
        assert_eq!(found(&|o| o.placement.cpus_allowed = vec![0, 512]), [("cpumask", message)]);
        assert_eq!(found(&|o| o.measurement.gtod_cpu = Some(600))[0].0, "gtod_cpu");
        assert_eq!(found(&|o| o.placement.numa_cpu_nodes = vec![0, 3]), []);
        let message = "numa_cpu_nodes: there is no memory node 4, only 0, 1, 2, 3".to_owned();
        assert_eq!(found(&|o| o.placement.numa_cpu_nodes = vec![3, 4]), [("numa_cpu_nodes", message)]);
    }

    #[test]
    fn nodes_that_the_kernel_does_not_list_are_left_to_the_worker() {
        let machine = MadeUp::new().with_nodes(0);
        assert_eq!(blamed(&machine, &|o| o.placement.numa_cpu_nodes = vec![7]), []);
    }
}
