//! Facts about the machine: the values of `$pagesize`, `$mb_memory` and `$ncpus`.

/// The values of the reserved words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineFacts {
    /// Bytes in a page of memory.
    pub page_size: u64,
    /// Mebibytes of memory.
    pub memory_mebibytes: u64,
    /// CPUs that are online.
    pub cpus: u64,
}

impl MachineFacts {
    /// The values on this machine.
    pub fn of_this_machine() -> Self {
        let page_size = ask(libc::_SC_PAGESIZE);
        let pages = ask(libc::_SC_PHYS_PAGES);
        MachineFacts {
            page_size,
            memory_mebibytes: page_size.saturating_mul(pages) >> 20,
            cpus: ask(libc::_SC_NPROCESSORS_ONLN),
        }
    }
}

fn ask(name: libc::c_int) -> u64 {
    // SAFETY: sysconf takes any integer, accesses no memory of ours, and returns -1 for unknown names.
    let answer = unsafe { libc::sysconf(name) };
    u64::try_from(answer).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_and_a_cpu() {
        let facts = MachineFacts::of_this_machine();
        assert!(facts.page_size.is_power_of_two());
        assert!(facts.memory_mebibytes >= 16);
        assert!(facts.cpus >= 1);
    }
}
