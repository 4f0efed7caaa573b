//! The I/O scheduler of the disk below a job's files (`ioscheduler`).

use iolite_host::{Machine, Scheduler, ThisMachine};
use std::fs;
use std::io;
use std::path::Path;

/// Sets the scheduler of the disk that holds this file. It is not restored after the job. `Ok(false)` = the file is not
/// on a disk with a scheduler.
///
/// # Errors
/// The kernel's error, with the schedulers that the disk supports.
pub fn set(file: &Path, scheduler: &str) -> io::Result<bool> {
    // Look the disk up now, because other jobs may have changed its scheduler since the run began.
    let Some(disk) = ThisMachine::new().disk(file) else { return Ok(false) };
    let Some(before) = disk.queue.scheduler else { return Ok(false) };
    if before.chosen.as_deref() == Some(scheduler) {
        return Ok(true);
    }
    let setting = disk.directory.join("queue/scheduler");
    let refused = |error: io::Error| {
        let known = before.known.join(" ");
        let message = format!("ioscheduler={scheduler}: {error} ({}; it can be {known})", setting.display());
        iolite_os::explained(&error, message)
    };
    fs::write(&setting, scheduler).map_err(refused)?;
    match Scheduler::read(&disk.directory).and_then(|after| after.chosen) {
        Some(chosen) if chosen == scheduler => Ok(true),
        _ => Err(refused(io::ErrorKind::InvalidInput.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_disk_has_none() {
        assert!(!set(Path::new("/proc/self/stat"), "none").unwrap());
    }
}
