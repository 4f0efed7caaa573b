//! Refuses to map a file with data as the buffers of a job.

use iolite_host::{EntryKind, FileSystem, Machine};
use iolite_options::{JobOptions, MemoryKind};
use std::path::Path;

/// The obstacles: each with the option to blame and the reason.
///
/// With a shared mapping, the content of the buffers replaces that of the file, and the file grows to their size.
pub(crate) fn obstacles(options: &JobOptions, machine: &dyn Machine) -> Vec<(&'static str, String)> {
    let Some(name) =
        options.buffers.mem_file.as_ref().filter(|_| options.buffers.mem == MemoryKind::MmapShared)
    else {
        return Vec::new();
    };
    let path = Path::new(name);
    let what = match machine.file(path) {
        Ok(Some(found)) if found.is_block_device() => "is a block device",
        _ if holds_data(machine, path) => "is not empty",
        _ => return Vec::new(),
    };
    let message = format!(
        "mem=mmapshared:{name}: this file {what}, and buffers would overwrite it; name an empty file, or one that does \
         not exist"
    );
    vec![("mem", message)]
}

/// Whether this is a regular file with content that a run could destroy. (Files of hugetlbfs are huge pages, and files
/// of sysfs are windows into devices: neither holds data.)
pub fn holds_data(machine: &dyn Machine, path: &Path) -> bool {
    let found = machine.file(path).ok().flatten();
    let is_filled = found.is_some_and(|found| found.kind == EntryKind::Regular && found.bytes > 0);
    let is_on = |magic| machine.file_system(path).is_ok_and(|found| found.magic == magic);
    is_filled && !is_on(FileSystem::HUGE_PAGES) && !is_on(FileSystem::SYSFS)
}

/// Whether a worker would create this file, or give it a size, to map its buffers. (Files of hugetlbfs are memory.)
pub(crate) fn is_made(machine: &dyn Machine, path: &Path) -> bool {
    let found = machine.file(path).ok().flatten();
    let is_made = found.is_none_or(|found| found.kind == EntryKind::Regular && found.bytes == 0);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = if found.is_some() { path } else { parent };
    is_made && !machine.file_system(place).is_ok_and(|found| found.magic == FileSystem::HUGE_PAGES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::BufferOptions;

    #[test]
    fn files_with_content_are_not_used_as_shared_memory() {
        let machine =
            MadeUp::new().with_file("/empty", 0).with_file("/full", 4).with_file("/sys/bus/memory", 4);
        let machine = machine.with_block_device("/dev/disk", 1 << 30);
        let found = |mem, name: &str| {
            let mem_file = Some(name.to_owned());
            obstacles(
                &JobOptions {
                    buffers: BufferOptions { mem, mem_file, ..BufferOptions::default() },
                    ..JobOptions::default()
                },
                &machine,
            )
        };
        assert_eq!(found(MemoryKind::MmapShared, "/new"), [], "it is made");
        assert_eq!(found(MemoryKind::MmapShared, "/empty"), []);
        assert_eq!(found(MemoryKind::MmapShared, "/full").len(), 1);
        assert_eq!(found(MemoryKind::MmapShared, "/dev/disk").len(), 1);
        assert_eq!(found(MemoryKind::Mmap, "/dev/disk"), []);
        assert_eq!(found(MemoryKind::MmapShared, "/sys/bus/memory"), [], "a window into a device");
        assert_eq!(found(MemoryKind::Mmap, "/full"), [], "a private mapping changes no file");
    }
}
