//! `--readonly` forbids all changes to existing files and devices, and creating new ones.
//!
//! Everything is decided before the run. A job whose options ask for a change is refused for these options
//! ([`obstacles`]); a job whose files are missing, or shorter than it needs, is refused for the file ([`check`]). So a
//! run never reaches the point of changing data. The run's own output (reports, logs, recorded traces, states) goes
//! into separate files, as without `--readonly`; [`own_files`](crate::own_files) keeps them apart from data.

use crate::replay::Replay;
use crate::safety::what_changes;
use crate::{FileLayout, buffer_file};
use iolite_host::Machine;
use iolite_options::JobOptions;
use iolite_options::engines::{Capability, EngineInfo, UnitKind};
use std::path::Path;

/// The options of a job that ask for a change, and why each is refused.
pub(crate) fn obstacles(
    options: &JobOptions,
    engine: &EngineInfo,
    replays: &[Replay],
    machine: &dyn Machine,
) -> Vec<(&'static str, String)> {
    let facets = engine.facets;
    let mut found = Vec::new();
    let mut forbid =
        |option, what: String| found.push((option, format!("{what}, and --readonly forbids that")));
    if options.pattern.rw.changes() {
        let blamed = if replays.is_empty() { "rw" } else { "read_iolog" };
        forbid(blamed, format!("{} would change data", what_changes(options, replays)));
    } else if matches!(facets.unit, UnitKind::ActsOnNames(_) | UnitKind::ActsOnExtents(_))
        && !facets.can(Capability::OnlyLook)
    {
        // The effect of such a unit does not depend on its direction.
        forbid("ioengine", format!("ioengine={} changes files", options.ioengine));
    }
    let removals = [("unlink", options.files.unlink), ("unlink_each_loop", options.files.unlink_each_loop)];
    for (option, is_asked) in removals {
        // (Images and disks are not removed in any case.)
        if is_asked && facets.keeps_data() && !facets.can(Capability::FixedSize) {
            forbid(option, format!("{option}=1 would remove files"));
        }
    }
    if let Some(name) = &options.buffers.mem_file
        && buffer_file::is_made(machine, Path::new(name))
    {
        let kind = options.buffers.mem.keyword();
        forbid("mem", format!("mem={kind}:{name} would make this file, or make it as large as the buffers"));
    }
    found
}

/// Whether a file can be used as it is.
///
/// # Errors
/// It would have to be created or extended.
pub(crate) fn check(file: &FileLayout) -> Result<(), String> {
    let path = file.path.display();
    match file.extend_to {
        _ if !file.exists => Err(format!("{path} does not exist, and --readonly forbids that it is made")),
        Some(size) => Err(format!(
            "{path} would be extended to {size} bytes, and --readonly forbids that; a smaller size= leaves it as it is"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::engines::engine;
    use iolite_options::{MemoryKind, ReadWrite};

    /// The options to blame.
    fn blamed(name: &str, change: impl FnOnce(&mut JobOptions)) -> Vec<&'static str> {
        let mut options = JobOptions { name: "j".into(), ioengine: name.into(), ..JobOptions::default() };
        change(&mut options);
        let machine = MadeUp::new().with_file("/full", 4096).with_file("/empty", 0);
        obstacles(&options, engine(name).unwrap(), &[], &machine)
            .into_iter()
            .map(|(option, _)| option)
            .collect()
    }

    #[test]
    fn only_changes_are_forbidden() {
        for rw in [ReadWrite::Read, ReadWrite::RandRead] {
            assert_eq!(blamed("psync", |o| o.pattern.rw = rw), [""; 0]);
        }
        for rw in [ReadWrite::Write, ReadWrite::RandRw, ReadWrite::Trim, ReadWrite::TrimWrite] {
            assert_eq!(blamed("psync", |o| o.pattern.rw = rw), ["rw"], "{rw:?}");
        }
        assert_eq!(blamed("psync", |o| o.files.unlink = true), ["unlink"]);
        assert_eq!(blamed("psync", |o| o.files.unlink_each_loop = true), ["unlink_each_loop"]);
        assert_eq!(blamed("null", |o| o.files.unlink = true), [""; 0], "there is nothing to remove");
    }

    #[test]
    fn engines_that_do_more_than_read_are_forbidden() {
        for name in ["falloc", "ftruncate", "e4defrag", "filecreate", "filedelete", "dircreate", "dirdelete"]
        {
            assert_eq!(blamed(name, |_| ()), ["ioengine"], "{name}");
        }
        for name in ["filestat", "dirstat", "psync", "io_uring", "mmap", "http", "cpuio"] {
            assert_eq!(blamed(name, |_| ()), [""; 0], "{name}");
        }
    }

    #[test]
    fn the_file_of_the_buffers_is_not_made() {
        let of = |mem, name: &str| {
            blamed("psync", |o| (o.buffers.mem, o.buffers.mem_file) = (mem, Some(name.into())))
        };
        for mem in [MemoryKind::Mmap, MemoryKind::MmapHuge, MemoryKind::MmapShared] {
            assert_eq!(of(mem, "/new"), ["mem"]);
            assert_eq!(of(mem, "/empty"), ["mem"]);
        }
        assert_eq!(
            of(MemoryKind::Mmap, "/full"),
            [""; 0],
            "its content is the buffers', and it is not changed"
        );
        assert_eq!(blamed("psync", |o| o.buffers.mem = MemoryKind::Mmap), [""; 0]);
    }
}
