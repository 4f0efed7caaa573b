//! Memory that a run locks, so that less is left for the page cache (`lockmem`).

use iolite_os::explained;
use iolite_os::memory;
use iolite_plan::Plan;
use iolite_types::describe_error;
use std::io;

/// Locked memory, which the page cache cannot use until this is dropped.
pub struct LockedMemory {
    start: *mut libc::c_void,
    bytes: usize,
}

impl LockedMemory {
    /// Locks this many bytes; 0 locks nothing.
    ///
    /// # Errors
    /// There is not enough memory, or the limit on locked memory is lower.
    pub fn new(bytes: u64) -> io::Result<LockedMemory> {
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        if bytes == 0 {
            return Ok(LockedMemory { start: std::ptr::null_mut(), bytes });
        }
        let start = memory::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
        let locked = LockedMemory { start, bytes };
        // SAFETY: the mapping is `bytes` long, and lives as long as `locked`.
        match unsafe { libc::mlock(start, bytes) } {
            0 => Ok(locked),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The most that any job asks for. It is locked once for the whole run, as the page cache is shared by all jobs.
    ///
    /// # Errors
    /// As [`LockedMemory::new`], with the job that asks for it.
    pub fn of(plan: &Plan) -> io::Result<LockedMemory> {
        let Some(job) = plan.jobs.iter().max_by_key(|job| job.locked_memory) else {
            return LockedMemory::new(0);
        };
        let (name, bytes) = (&job.name, job.locked_memory);
        LockedMemory::new(bytes).map_err(|error| {
            let what = describe_error(&error);
            explained(
                &error,
                format!(
                    "job {name} asks for {bytes} bytes: {what}; lock less than is free, and than `ulimit -l` allows \
                     (no limit for root)"
                ),
            )
        })
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the mapping is this value's own, and references into it borrow from the value.
            unsafe { memory::unmap(self.start, self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_memory_is_given_back() {
        let locked_kib = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let before = locked_kib();
        let locked = LockedMemory::new(64 << 10).unwrap();
        assert_eq!(locked_kib(), before + 64);
        drop(locked);
        assert_eq!(locked_kib(), before);
        drop(LockedMemory::new(0).unwrap());
    }
}
