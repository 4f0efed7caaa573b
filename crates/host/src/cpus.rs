//! CPUs and memory nodes.

use crate::refusal::Refusal;
use iolite_os::processors::{every_processor, processors};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The CPUs of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpus {
    /// The number of CPUs that the system is configured for; they are numbered from 0.
    pub configured: u32,
    /// The CPUs that this process may run on, in ascending order: taskset(1) may have excluded some.
    pub allowed: Vec<u32>,
    /// The CPUs that this process could choose to run on, in ascending order: neither offline nor excluded by its
    /// cpuset.
    pub usable: Vec<u32>,
}

impl Cpus {
    pub(crate) fn read() -> Cpus {
        // SAFETY: always succeeds.
        let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let configured = u32::try_from(configured).unwrap_or(1).max(1);
        let allowed = processors().unwrap_or_else(|_| (0..configured).collect());
        // If the kernel cannot be queried, the worker itself will find out.
        let usable = every_processor().unwrap_or_else(|_| (0..configured).collect());
        Cpus { configured, allowed, usable }
    }
}

/// A memory node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// Its CPUs; some nodes have none.
    pub cpus: Vec<u32>,
}

impl Node {
    /// All nodes that the kernel lists.
    pub(crate) fn all() -> Result<Vec<Node>, Refusal> {
        const PLACE: &str = "/sys/devices/system/node";
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok();
        let mut numbers: Vec<u32> = fs::read_dir(PLACE)?.flatten().filter_map(number).collect();
        numbers.sort_unstable();
        let node = |number| {
            let list = fs::read_to_string(Path::new(PLACE).join(format!("node{number}/cpulist")))?;
            Ok(Node { number, cpus: parse_list(list.trim()) })
        };
        numbers.into_iter().map(node).collect()
    }
}

/// `0-3,8,10-11`
pub(crate) fn parse_list(list: &str) -> Vec<u32> {
    list.split(',')
        .filter_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.parse::<u32>().ok()?..=high.parse().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::processors::run_on;

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_list("0-2,5,8-9"), [0, 1, 2, 5, 8, 9]);
        assert_eq!(parse_list(""), [0; 0]);
    }

    #[test]
    fn a_thread_that_is_tied_to_one_cpu_could_use_the_others() {
        let all = Cpus::read();
        assert!(all.configured as usize >= all.usable.len() && !all.usable.is_empty());
        let first = all.usable[0];
        let tied =
            std::thread::spawn(move || run_on(&[first]).map(|()| Cpus::read())).join().unwrap().unwrap();
        assert_eq!((tied.allowed, tied.usable), (vec![first], all.usable));
    }

    #[test]
    fn nodes_have_the_cpus_of_the_machine() {
        // Some kernels are built without nodes.
        let nodes = iolite_testing::or_skip!(Node::all());
        let usable = Cpus::read().usable;
        assert!(usable.iter().all(|cpu| nodes.iter().any(|node| node.cpus.contains(cpu))), "{nodes:?}");
    }
}
