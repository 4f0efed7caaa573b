//! Whether the machine has the CPUs and memory nodes that a job names.

use iolite_options::JobOptions;
use std::collections::BTreeSet;

/// What jobs can be placed on.
struct Machine {
    cpus: u32,
    /// Its memory nodes, where the kernel tells.
    nodes: Option<BTreeSet<u32>>,
}

impl Machine {
    fn here() -> Machine {
        // SAFETY: always succeeds.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let number =
            |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok();
        let nodes = std::fs::read_dir("/sys/devices/system/node").ok();
        Machine {
            cpus: u32::try_from(cpus).unwrap_or(1).max(1),
            nodes: nodes.map(|entries| entries.flatten().filter_map(number).collect()),
        }
    }
}

/// What stands in the way: the option to blame, and why.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    missing(options, &Machine::here())
}

/// CPUs and memory nodes that are not there.
fn missing(options: &JobOptions, machine: &Machine) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Some(cpu) = options.cpus_allowed.iter().find(|&&cpu| cpu >= machine.cpus) {
        let option = if options.is_set("cpus_allowed") { "cpus_allowed" } else { "cpumask" };
        found.push((option, format!("{option}: there is no CPU {cpu}, the last is {}", machine.cpus - 1)));
    }
    if let Some(cpu) = options.gtod_cpu.filter(|&cpu| cpu >= machine.cpus) {
        found
            .push(("gtod_cpu", format!("gtod_cpu: there is no CPU {cpu}, the last is {}", machine.cpus - 1)));
    }
    let policy = options.numa_mem_policy.as_ref().map_or(&[][..], |policy| &policy.nodes[..]);
    for (option, nodes) in [("numa_cpu_nodes", &options.numa_cpu_nodes[..]), ("numa_mem_policy", policy)] {
        if let Some(known) = &machine.nodes
            && let Some(node) = nodes.iter().find(|node| !known.contains(node))
        {
            let known: Vec<String> = known.iter().map(u32::to_string).collect();
            found.push((
                option,
                format!("{option}: there is no memory node {node}, only {}", known.join(", ")),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_and_nodes_have_to_be_there() {
        let machine = Machine { cpus: 2, nodes: Some(BTreeSet::from([0])) };
        let found = |change: &dyn Fn(&mut JobOptions)| {
            let mut options = JobOptions::default();
            change(&mut options);
            missing(&options, &machine).into_iter().map(|(option, _)| option).collect::<Vec<_>>()
        };
        assert_eq!(found(&|o| o.cpus_allowed = vec![0, 1]), [""; 0]);
        assert_eq!(found(&|o| o.cpus_allowed = vec![0, 2]), ["cpumask"]);
        assert_eq!(found(&|o| o.numa_cpu_nodes = vec![0]), [""; 0]);
        assert_eq!(found(&|o| o.numa_cpu_nodes = vec![0, 1]), ["numa_cpu_nodes"]);
        let unknown = Machine { cpus: 2, nodes: None };
        let options = JobOptions { numa_cpu_nodes: vec![7], ..JobOptions::default() };
        assert_eq!(missing(&options, &unknown), []);
    }
}
