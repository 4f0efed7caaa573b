//! The I/O scheduler of the disk below a job's files (`ioscheduler`).

use crate::disk;
use std::fs;
use std::io;
use std::path::Path;

/// Sets the scheduler of the disk that holds this file. It stays when the job is over. `Ok(false)` = the file is on
/// no disk that has one.
///
/// # Errors
/// What the kernel says, with the schedulers that the disk can have.
pub fn set(file: &Path, scheduler: &str) -> io::Result<bool> {
    let Some(setting) = disk::disk_of(file).map(|disk| disk.join("queue/scheduler")) else {
        return Ok(false);
    };
    let Ok(before) = fs::read_to_string(&setting) else { return Ok(false) };
    if chosen(&before) == Some(scheduler) {
        return Ok(true);
    }
    let refused = |error: io::Error| {
        let known = before.trim().replace(['[', ']'], "");
        let message = format!("ioscheduler={scheduler}: {error} ({}; it can be {known})", setting.display());
        iolite_os::explained(&error, message)
    };
    fs::write(&setting, scheduler).map_err(refused)?;
    match fs::read_to_string(&setting) {
        Ok(after) if chosen(&after) == Some(scheduler) => Ok(true),
        _ => Err(refused(io::ErrorKind::InvalidInput.into())),
    }
}

/// The scheduler in brackets: `none [mq-deadline] bfq`.
fn chosen(setting: &str) -> Option<&str> {
    setting.split_once('[')?.1.split_once(']').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_one_is_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq\n"), Some("mq-deadline"));
        assert_eq!(chosen("[none]"), Some("none"));
        assert_eq!(chosen("none\n"), None);
    }

    #[test]
    fn a_file_without_a_disk_has_none() {
        assert!(!set(Path::new("/proc/self/stat"), "none").unwrap());
    }
}
