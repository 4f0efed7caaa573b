//! Where a worker runs: CPUs, memory nodes, priorities.

use iolite_os::explained;
use iolite_os::processors::run_on;
use iolite_plan::resolve::NumaPolicyMode;
use iolite_plan::resolve::PlacementRules;
use std::io;
use std::path::Path;

/// Applies the job's placement (CPUs, NUMA nodes, priorities, user and group) to the calling thread.
///
/// # Errors
/// The first option that cannot be applied, with the kernel's error.
pub fn apply(rules: &PlacementRules) -> Result<(), (&'static str, io::Error)> {
    if let Some(cpus) = &rules.affinity {
        run_on(cpus).map_err(|error| ("cpus_allowed", error))?;
    }
    if let Some(cpus) = &rules.node_cpus {
        run_on(cpus).map_err(|error| ("numa_cpu_nodes", error))?;
    }
    if let Some(reserved) = rules.reserved_cpu {
        keep_off(reserved).map_err(|error| ("gtod_cpu", error))?;
    }
    if let Some(policy) = &rules.memory_policy {
        set_memory_policy(policy.mode, &policy.nodes).map_err(|error| ("numa_mem_policy", error))?;
    }
    if let Some(priority) = rules.io_priority {
        set_io_priority(priority).map_err(|error| ("prio", error))?;
    }
    if rules.nice != 0 {
        add_nice(rules.nice).map_err(|error| ("nice", error))?;
    }
    if let Some(name) = &rules.thread_name {
        set_name(name).map_err(|error| ("comm", error))?;
    }
    // User and group come last, because the other options may need privileges. The group comes before the user, who may
    // not change it.
    if let Some(group) = rules.group {
        change_id(libc::SYS_setresgid, group).map_err(|error| ("gid", error))?;
    }
    if let Some(user) = rules.user {
        change_id(libc::SYS_setresuid, user).map_err(|error| ("uid", error))?;
    }
    Ok(())
}

/// Moves the calling worker into its control group, by writing to the file `entrance`.
///
/// # Errors
/// The kernel's error, with the name of the file.
pub fn enter_control_group(entrance: &Path) -> io::Result<()> {
    // 0 stands for the thread or process that writes.
    std::fs::write(entrance, "0")
        .map_err(|error| explained(&error, format!("{}: {error}", entrance.display())))
}

/// Adds a remedy to the error of an option that the system refuses, if there is one.
pub fn remedy(job: &str, option: &str, error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    let remedy = match option {
        "prio" => "real time (prioclass=1) needs root or CAP_SYS_NICE; use prioclass=2",
        "nice" => "a negative value needs root or CAP_SYS_NICE; use 0 or more",
        "uid" | "gid" => "only root can become another user; leave it out, or run as root",
        _ => return error,
    };
    explained(&error, format!("job {job}: {remedy}"))
}

/// Removes this CPU from the calling thread's affinity.
pub(super) fn keep_off(reserved: u32) -> io::Result<()> {
    let mut cpus = iolite_os::processors::processors()?;
    cpus.retain(|&cpu| cpu != reserved);
    if cpus.is_empty() {
        let message = format!("CPU {reserved} is reserved for the clock, and the job may use no other");
        return Err(explained(&io::Error::from_raw_os_error(libc::EINVAL), message));
    }
    iolite_os::processors::run_on(&cpus)
}

fn set_memory_policy(mode: NumaPolicyMode, nodes: &[u32]) -> io::Result<()> {
    // See linux/mempolicy.h.
    let mode: libc::c_long = match mode {
        NumaPolicyMode::Default => 0,
        NumaPolicyMode::Prefer => 1,
        NumaPolicyMode::Bind => 2,
        NumaPolicyMode::Interleave => 3,
        NumaPolicyMode::Local => 4,
    };
    const WORDS: usize = 16;
    let mut mask = [0u64; WORDS];
    for &node in nodes {
        let word =
            mask.get_mut(node as usize / 64).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word |= 1 << (node % 64);
    }
    let (pointer, bits) =
        if nodes.is_empty() { (std::ptr::null(), 0) } else { (mask.as_ptr(), WORDS * 64 + 1) };
    // SAFETY: the mask has as many bits as passed (the kernel reads one bit less).
    if unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn set_io_priority(priority: u16) -> io::Result<()> {
    // See linux/ioprio.h.
    const WHO_PROCESS: libc::c_long = 1;
    // SAFETY: no pointers are involved; 0 means the calling thread.
    if unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, libc::c_long::from(priority)) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Names the calling thread. The kernel keeps 15 bytes.
fn set_name(name: &str) -> io::Result<()> {
    let name = std::ffi::CString::new(name).map_err(io::Error::other)?;
    // SAFETY: the string is terminated and lives through the call.
    if unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Changes the user or group of this thread only. The C library's functions would change it for all threads of the
/// process.
fn change_id(call: libc::c_long, id: u32) -> io::Result<()> {
    // SAFETY: no pointers are involved.
    if unsafe { libc::syscall(call, id, id, id) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Adds to the nice value of the calling thread, like nice(2), so a job's value adds to the program's own. Reports the
/// errors of nice(2).
fn add_nice(nice: i32) -> io::Result<()> {
    // The calling thread: on Linux, nice values belong to threads.
    const MYSELF: libc::id_t = 0;
    // SAFETY: no pointers are involved. The call cannot fail for the calling thread, so -1 is a valid nice value.
    let present = unsafe { libc::getpriority(libc::PRIO_PROCESS, MYSELF) };
    // SAFETY: no pointers are involved.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, MYSELF, present.saturating_add(nice)) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // nice(2) reports a missing privilege as EPERM.
        error if error.raw_os_error() == Some(libc::EACCES) => Err(io::Error::from_raw_os_error(libc::EPERM)),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_job_and_remedy() {
        let told = |option, errno| remedy("j", option, io::Error::from_raw_os_error(errno)).to_string();
        for option in ["prio", "nice", "uid", "gid"] {
            let text = told(option, libc::EPERM);
            assert!(text.contains("job j: ") && text.contains("root"), "{option}: {text}");
        }
        assert!(told("prio", libc::EINVAL).starts_with("Invalid argument"));
    }

    #[test]
    fn binding_is_seen_by_the_kernel() {
        std::thread::spawn(|| {
            apply(&PlacementRules { affinity: Some(vec![0]), ..PlacementRules::default() }).unwrap();
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            assert!(status.lines().any(|line| line == "Cpus_allowed_list:\t0"));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_that_names_the_option() {
        let rules = PlacementRules { affinity: Some(vec![1020]), ..PlacementRules::default() };
        let result = std::thread::spawn(move || apply(&rules)).join().unwrap();
        assert_eq!(result.unwrap_err().0, "cpus_allowed");
    }
}
