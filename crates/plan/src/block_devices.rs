//! Refuses trims (BLKDISCARD), write streams and metadata for files other than block devices.
//!
//! Without this check the file would be created and filled, and the first I/O would fail. Engines that trim files in
//! another way are not checked.

use iolite_host::{EntryKind, Machine};
use iolite_options::JobOptions;
use iolite_options::engines::IoUringOptions;
use iolite_types::is_standard_stream;
use std::path::{Path, PathBuf};

/// A feature that a job needs and only block devices have.
pub(crate) struct Need {
    /// The option that asks for it.
    option: &'static str,
    /// The option in a job file.
    text: String,
    /// Why other files are refused.
    because: &'static str,
    /// The alternative, for the message.
    remedy: &'static str,
}

/// Why these files are refused: the option to blame, and the message.
pub(crate) fn obstacle<'a>(
    need: &Need,
    options: &JobOptions,
    files: impl IntoIterator<Item = &'a PathBuf>,
    machine: &dyn Machine,
) -> Option<(&'static str, String)> {
    let other = |path: &'a PathBuf| Some((path, other_than_block_device(path, machine)?));
    let (name, is) = match &options.files.opendir {
        Some(directory) => (directory.clone(), "holds regular files"),
        None => {
            let (path, is) = files.into_iter().find_map(other)?;
            (path.display().to_string(), is)
        }
    };
    let Need { option, text, because, remedy } = need;
    Some((
        option,
        format!("{text}: {name} {is}, and {because}; name one (losetup makes one of a file), or {remedy}"),
    ))
}

/// The trims of a job.
pub(crate) fn trims(options: &JobOptions) -> Option<Need> {
    let verification = &options.verification;
    if !options.changes_data() {
        return None;
    }
    let need = |option, text, remedy| {
        Some(Need { option, text, because: "only block devices can be trimmed", remedy })
    };
    // A trim of zones that exist only in the run trims nothing of the file.
    if options.pattern.rw.trims() && !options.zones.is_zbd() {
        let (option, text) = options.trim_option();
        return need(option, text, "trim nothing");
    }
    let share = verification.trim_percentage;
    let after_writes = options.verifies_writes() && share > 0;
    if !after_writes {
        return None;
    }
    need("trim_percentage", format!("trim_percentage={share}"), "leave trim_percentage and trim_backlog out")
}

/// The write streams of a job whose engine takes files of any kind.
pub(crate) fn streams(options: &JobOptions) -> Option<Need> {
    options.placement_option().map(|option| Need {
        option,
        text: format!("dataplacement={}", options.data_placement.dataplacement.keyword()),
        because: "only block devices have write streams",
        remedy: "leave it out",
    })
}

/// The metadata of a job's reads and writes through the block layer.
pub(crate) fn metadata(options: &JobOptions) -> Option<Need> {
    let own = options.engine.of::<IoUringOptions>()?;
    own.has_metadata().then(|| Need {
        option: "md_per_io_size",
        text: format!("md_per_io_size={} with pi_act=0", own.md_per_io_size),
        because: "only block devices have metadata",
        remedy: "leave both out",
    })
}

/// The kind of this file, unless it is a block device (or will never be created).
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
    use iolite_options::{DataPlacement, PatternOptions, ReadWrite, Verify, ZoneMode};

    fn found(path: &str, change: impl FnOnce(&mut JobOptions)) -> Option<&'static str> {
        let mut options = JobOptions {
            pattern: PatternOptions { rw: ReadWrite::Write, ..PatternOptions::default() },
            ..JobOptions::default()
        };
        change(&mut options);
        let machine =
            MadeUp::new().with_block_device("/dev/disk", 1 << 30).with_character_device("/dev/null");
        let needs = [trims(&options), streams(&options), metadata(&options)];
        let found = |need: &Need| obstacle(need, &options, &[PathBuf::from(path)], &machine);
        needs.iter().flatten().find_map(found).map(|(option, _)| option)
    }

    #[test]
    fn only_block_devices_are_trimmed() {
        let trim = |o: &mut JobOptions| o.pattern.rw = ReadWrite::TrimWrite;
        for path in ["/no/such/file", "/dev/null", "/dev/", "-"] {
            assert_eq!(found(path, trim), Some("rw"), "{path}");
        }
        assert_eq!(found("/dev/disk", trim), None);
        let zones = |o: &mut JobOptions| {
            trim(o);
            o.zones.zonemode = ZoneMode::Zbd;
        };
        assert_eq!(found("/a/file", zones), None, "zones that exist only in the run are reset");
        let in_directory = |o: &mut JobOptions| {
            trim(o);
            o.files.opendir = Some("/dev/".into());
        };
        assert_eq!(found("", in_directory), Some("rw"));
    }

    #[test]
    fn only_block_devices_have_streams_and_metadata() {
        let streams = |o: &mut JobOptions| o.data_placement.dataplacement = DataPlacement::Streams;
        let metadata = |o: &mut JobOptions| {
            let own = IoUringOptions { pi_act: false, md_per_io_size: 8, ..IoUringOptions::default() };
            o.engine = own.into();
        };
        for path in ["/no/such/file", "/dev/null", "-"] {
            assert_eq!(found(path, streams), Some("fdp"), "{path}");
            assert_eq!(found(path, metadata), Some("md_per_io_size"), "{path}");
        }
        assert_eq!((found("/dev/disk", streams), found("/dev/disk", metadata)), (None, None));
        let reads = |o: &mut JobOptions| {
            streams(o);
            o.pattern.rw = ReadWrite::Read;
        };
        assert_eq!(found("f", reads), None, "reads are placed nowhere");
    }

    #[test]
    fn jobs_that_trim_are_found() {
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
