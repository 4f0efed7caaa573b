//! Limits: of this process, and of the system as a whole.

use serde::{Deserialize, Serialize};

/// A limit of this process (getrlimit(2)); `None` = unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The current limit.
    pub soft: Option<u64>,
    /// The limit up to which the process may raise it.
    pub hard: Option<u64>,
}

impl Limit {
    fn of(resource: libc::c_int) -> Limit {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the structure lives through the call. If the call fails, there is no such limit.
        unsafe { libc::getrlimit(resource as _, &raw mut limit) };
        let finite = |value| (value != libc::RLIM_INFINITY).then_some(value);
        Limit { soft: finite(limit.rlim_cur), hard: finite(limit.rlim_max) }
    }
}

/// The kernel's account of asynchronous requests (libaio).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AioRequests {
    /// The maximum: `fs.aio-max-nr`.
    pub most: u64,
    /// The number in use: `fs.aio-nr`.
    pub taken: u64,
}

/// The limits of this process and of the whole system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Open files.
    pub open_files: Limit,
    /// Locked memory in bytes.
    pub locked_memory: Limit,
    /// Processes and threads of the user.
    pub processes: Limit,
    /// The address space of a process, in bytes.
    pub address_space: Limit,
    /// Asynchronous requests of all processes; `None` = unknown.
    pub aio: Option<AioRequests>,
    /// Threads of all processes; `None` = unknown.
    pub threads: Option<u64>,
    /// Mappings of a process; `None` = unknown.
    pub mappings: Option<u64>,
}

impl Limits {
    pub(crate) fn read() -> Limits {
        let number = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let aio = || Some(AioRequests { most: number("fs/aio-max-nr")?, taken: number("fs/aio-nr")? });
        Limits {
            open_files: Limit::of(libc::RLIMIT_NOFILE as _),
            locked_memory: Limit::of(libc::RLIMIT_MEMLOCK as _),
            processes: Limit::of(libc::RLIMIT_NPROC as _),
            address_space: Limit::of(libc::RLIMIT_AS as _),
            aio: aio(),
            threads: number("kernel/threads-max"),
            mappings: number("vm/max_map_count"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_limits() {
        let limits = Limits::read();
        let Limit { soft: Some(soft), hard } = limits.open_files else { panic!("{limits:?}") };
        assert!(soft > 0 && hard.is_none_or(|hard| hard >= soft));
        assert!(limits.threads.is_none_or(|threads| threads > 0));
    }
}
