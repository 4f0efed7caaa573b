//! Checks that the lists which a job asks for, of files and of I/Os in flight, fit into memory. Otherwise the program
//! would be killed while it builds them.

use iolite_options::JobOptions;

/// Approximate memory per file, in bytes: its name in the plan, in the layout and in the worker's table.
const PER_FILE: u64 = 512;

/// Approximate memory per I/O in flight, in bytes, without its buffer: its unit, its time stamps, its queue entries.
const PER_IO: u64 = 256;

/// The option that asks for more memory than is `available` (bytes), and a message; `None` = all fits. A run that only
/// `parses` makes lists of files as well, but no queues.
pub fn exceeded(options: &JobOptions, parses: bool, available: u64) -> Option<(&'static str, String)> {
    let numbered =
        options.files.filename.is_empty() && options.files.opendir.is_none() && !options.is_replay();
    let depth = if parses { 0 } else { options.depth.iodepth };
    let files = if numbered { options.files.nrfiles } else { 0 };
    let asked = [("nrfiles", files, PER_FILE, "files"), ("iodepth", depth, PER_IO, "I/Os in flight")];
    asked.into_iter().find_map(|(option, number, each, things)| {
        let all = u64::from(number) * u64::from(options.schedule.numjobs);
        let needed = all.saturating_mul(each);
        // If each worker needs little, there are too many workers.
        let blamed = if number < options.schedule.numjobs { "numjobs" } else { option };
        (needed > available).then(|| {
            let numjobs = options.schedule.numjobs;
            let jobs = if numjobs > 1 { format!(" of {numjobs} workers") } else { String::new() };
            let message = format!(
                "{option}={number}: {things}{jobs} need about {} MiB of memory, and {} MiB are available; use a smaller {blamed}",
                needed >> 20,
                available >> 20
            );
            (blamed, message)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{DepthOptions, FileOptions, ScheduleOptions};

    #[test]
    fn what_does_not_fit_is_told_with_its_option() {
        let options = |nrfiles, iodepth, numjobs| JobOptions {
            files: FileOptions { nrfiles, ..FileOptions::default() },
            depth: DepthOptions { iodepth, ..DepthOptions::default() },
            schedule: ScheduleOptions { numjobs, ..ScheduleOptions::default() },
            ..JobOptions::default()
        };
        let blamed = |options: &JobOptions| exceeded(options, false, 1 << 30).map(|(option, _)| option);
        assert_eq!(blamed(&options(1 << 20, 1 << 16, 1)), None);
        assert_eq!(blamed(&options(u32::MAX, 1, 1)), Some("nrfiles"));
        assert_eq!(blamed(&options(1, u32::MAX, 1)), Some("iodepth"));
        assert_eq!(blamed(&options(1000, 1, 1 << 20)), Some("numjobs"));
        let named = {
            let mut options = options(u32::MAX, 1, 1);
            options.files.filename = vec!["f".into()];
            options
        };
        assert_eq!(blamed(&named), None);
        let (_, message) = exceeded(&options(1 << 22, 1, 1), false, 1 << 30).unwrap();
        assert_eq!(
            message,
            "nrfiles=4194304: files need about 2048 MiB of memory, and 1024 MiB are available; use a smaller nrfiles"
        );
    }
}
