//! Whether a file can be the job's buffers.

use iolite_options::{JobOptions, MemoryKind};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// File systems whose files hold nothing that a run could destroy: huge pages, and windows into devices
/// (linux/magic.h).
const WITHOUT_DATA: [libc::__fsword_t; 2] = [libc::HUGETLBFS_MAGIC, 0x6265_6572];

/// What stands in the way: the option to blame, and why.
///
/// A file that is mapped shared becomes what the buffers hold, and grows with them.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let Some(name) = options.mem_file.as_ref().filter(|_| options.mem == MemoryKind::MmapShared) else {
        return Vec::new();
    };
    if !holds_data(Path::new(name)) {
        return Vec::new();
    }
    let message = format!(
        "mem=mmapshared:{name}: this file is not empty, and buffers would overwrite it; name an empty file, or one \
         that does not exist"
    );
    vec![("mem", message)]
}

/// Whether this is a file with contents that a run could destroy.
pub fn holds_data(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
        && file_system(path).is_none_or(|magic| !WITHOUT_DATA.contains(&magic))
}

/// The kernel's number for the kind of file system that a file is on.
fn file_system(path: &Path) -> Option<libc::__fsword_t> {
    let text = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: zero bytes are a valid statfs.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in NUL, and the structure is large enough for what is written there.
    let got = unsafe { libc::statfs(text.as_ptr(), &mut found) };
    (got == 0).then_some(found.f_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_holds_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        let found = |mem| {
            let mem_file = Some(path.display().to_string());
            obstacles(&JobOptions { mem, mem_file, ..JobOptions::default() })
        };
        assert_eq!(found(MemoryKind::MmapShared), [], "it is made");
        std::fs::write(&path, "").unwrap();
        assert_eq!(found(MemoryKind::MmapShared), []);
        std::fs::write(&path, "data").unwrap();
        assert_eq!(found(MemoryKind::MmapShared).len(), 1);
        assert_eq!(found(MemoryKind::Mmap), [], "a private mapping changes no file");
    }
}
