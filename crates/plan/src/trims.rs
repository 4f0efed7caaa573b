//! Checks that a job trims only devices that support it.
//!
//! Trims are discards (BLKDISCARD), which only block devices support. Without this check the first trim would fail,
//! after layout. Engines that trim files in another way are not checked.

use iolite_host::{EntryKind, Machine};
use iolite_options::JobOptions;
use iolite_types::is_standard_stream;
use std::path::{Path, PathBuf};

/// Obstacles to trimming these files: each with the option to blame and the reason.
pub(crate) fn obstacles<'a>(
    options: &JobOptions,
    files: impl IntoIterator<Item = &'a PathBuf>,
    machine: &dyn Machine,
) -> Option<(&'static str, String)> {
    let (option, what, remedy) = trims(options)?;
    let other = |path: &'a PathBuf| Some((path, other_than_block_device(path, machine)?));
    let (name, is) = match &options.files.opendir {
        Some(directory) => (directory.clone(), "holds regular files"),
        None => {
            let (path, is) = files.into_iter().find_map(other)?;
            (path.display().to_string(), is)
        }
    };
    Some((
        option,
        format!(
            "{what}: {name} {is}, and only block devices can be trimmed; name one (losetup makes one of a file), or \
             {remedy}"
        ),
    ))
}

/// The option that makes the job trim, its text in a job file, and the alternative.
fn trims(options: &JobOptions) -> Option<(&'static str, String, &'static str)> {
    let verification = &options.verification;
    if !options.changes_data() {
        return None;
    }
    if options.pattern.rw.trims() {
        return Some(("rw", format!("rw={}", options.pattern.rw.name()), "give another rw"));
    }
    let share = verification.trim_percentage;
    let after_writes = verification.is_on() && options.pattern.rw.writes() && share > 0;
    after_writes.then(|| {
        ("trim_percentage", format!("trim_percentage={share}"), "leave trim_percentage and trim_backlog out")
    })
}

/// The kind of this file, unless it is a block device (or will never be made).
fn other_than_block_device(path: &Path, machine: &dyn Machine) -> Option<&'static str> {
    if is_standard_stream(path) {
        return Some("is a pipe");
    }
    let Ok(Some(found)) = machine.file(path) else { return Some("would be a regular file") };
    match found.kind {
        EntryKind::Block => None,
        EntryKind::Char => Some("is a character device"),
        EntryKind::Pipe => Some("is a pipe or a socket"),
        EntryKind::Directory => Some("is a directory"),
        EntryKind::Regular => Some("is a regular file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::{PatternOptions, ReadWrite, Verify};

    fn found(path: &str, change: impl FnOnce(&mut JobOptions)) -> Option<&'static str> {
        let mut options = JobOptions {
            pattern: PatternOptions { rw: ReadWrite::Write, ..PatternOptions::default() },
            ..JobOptions::default()
        };
        change(&mut options);
        let machine =
            MadeUp::new().with_block_device("/dev/disk", 1 << 30).with_character_device("/dev/null");
        obstacles(&options, &[PathBuf::from(path)], &machine).map(|(option, _)| option)
    }

    #[test]
    fn only_block_devices_are_trimmed() {
        let trim = |o: &mut JobOptions| o.pattern.rw = ReadWrite::TrimWrite;
        for path in ["/no/such/file", "/dev/null", "/dev/", "-"] {
            assert_eq!(found(path, trim), Some("rw"), "{path}");
        }
        assert_eq!(found("/dev/disk", trim), None);
        let in_directory = |o: &mut JobOptions| {
            trim(o);
            o.files.opendir = Some("/dev/".into());
        };
        assert_eq!(found("", in_directory), Some("rw"));
    }

    #[test]
    fn what_trims() {
        let share = |o: &mut JobOptions| {
            o.verification.verify = Verify::Crc32c;
            o.verification.trim_percentage = 10;
        };
        assert_eq!(found("f", |_| ()), None);
        assert_eq!(found("f", share), Some("trim_percentage"));
        // Without verify, there is no record of blocks that could be trimmed.
        assert_eq!(found("f", |o| o.verification.trim_percentage = 10), None);
        let checked = |o: &mut JobOptions| {
            share(o);
            o.verification.verify_only = true;
        };
        assert_eq!(found("f", checked), None);
        assert_eq!(found("f", |o| (o.pattern.rw, o.files.create_only) = (ReadWrite::RandTrim, true)), None);
    }
}
