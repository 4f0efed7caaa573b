//! CPU affinity: the processors that a thread may use.

use std::io;

/// The processors that the calling thread may use.
///
/// # Errors
/// sched_getaffinity(2) fails.
pub fn processors() -> io::Result<Vec<u32>> {
    // SAFETY: the set is plain data, valid as zeros, and filled in by the call; CPU_ISSET stays inside of it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| libc::CPU_ISSET(cpu, &set))
            .map(|cpu| cpu as u32)
            .collect())
    }
}

/// Sets the affinity of the calling thread to these processors.
///
/// # Errors
/// None of these processors exists or may be used, or a number is too large.
pub fn run_on(cpus: &[u32]) -> io::Result<()> {
    // SAFETY: the set is plain data; CPU_SET stays inside of it for numbers below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            if cpu as usize >= libc::CPU_SETSIZE as usize {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            libc::CPU_SET(cpu as usize, &mut set);
        }
        if libc::sched_setaffinity(0, size_of_val(&set), &raw const set) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The processors that this process could use if it set its affinity: those that are online and in its cpuset.
///
/// # Errors
/// A thread cannot be started, or its affinity cannot be set or read.
pub fn every_processor() -> io::Result<Vec<u32>> {
    // A new thread asks for all processors, so there is no affinity to restore. The kernel grants those that are
    // possible.
    let all: Vec<u32> = (0..libc::CPU_SETSIZE as u32).collect();
    let ask = move || run_on(&all).and_then(|()| processors());
    let asked = std::thread::Builder::new().spawn(ask)?.join();
    asked.unwrap_or_else(|_| Err(io::Error::other("the thread that asked has panicked")))
}

/// Makes the calling thread run only when the processor is idle otherwise (`SCHED_IDLE`).
///
/// # Errors
/// sched_setscheduler(2) fails.
pub fn run_when_idle() -> io::Result<()> {
    // The kernel's structure has one number. (By number: musl's function only returns an error.)
    let priority: libc::c_int = 0;
    // SAFETY: the structure is valid; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_is_tied_to() {
        let all = processors().unwrap();
        let last = *all.last().unwrap();
        let tied = std::thread::spawn(move || run_on(&[last]).and_then(|()| processors())).join().unwrap();
        assert_eq!(tied.unwrap(), [last]);
        let tied =
            std::thread::spawn(move || run_on(&[last]).and_then(|()| every_processor())).join().unwrap();
        assert!(all.iter().all(|cpu| tied.as_ref().unwrap().contains(cpu)), "{tied:?}");
        assert!(run_on(&[u32::MAX]).is_err());
    }
}
