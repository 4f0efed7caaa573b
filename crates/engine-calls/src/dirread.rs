//! `dirread`: lists a directory by getdents64(2), and looks up its entries if asked to.

use crate::names::Act;
use iolite_engine::{EngineError, Errno, Outcome};
use iolite_options::engines::DirReadOptions;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Bytes of entries per call, as the C library asks for.
const BUFFER: usize = 32 << 10;

/// The offsets in a `linux_dirent64` of its length and of its name: getdents(2).
const LENGTH_AT: usize = 16;
const NAME_AT: usize = 19;

/// Lists a directory per unit.
#[derive(Debug)]
pub struct DirRead {
    options: DirReadOptions,
    /// The last change of the file that entries are compared with: seconds and nanoseconds.
    since: Option<(i64, i64)>,
    /// Aligned as entries are.
    buffer: Vec<u64>,
    entries: u64,
    matches: u64,
}

impl DirRead {
    /// With these options.
    ///
    /// # Errors
    /// The file of `entry_newer` cannot be looked up.
    pub fn new(options: &DirReadOptions) -> Result<DirRead, EngineError> {
        let since = match options.entry_newer.as_str() {
            "" => None,
            path => {
                let found = std::fs::metadata(path).map_err(|source| EngineError::System {
                    engine: "dirread",
                    call: "looking up the file of entry_newer",
                    source,
                })?;
                Some((found.mtime(), found.mtime_nsec()))
            }
        };
        Ok(DirRead {
            options: options.clone(),
            since,
            buffer: vec![0; BUFFER / size_of::<u64>()],
            entries: 0,
            matches: 0,
        })
    }

    /// Counts an entry of the open directory.
    fn count(&mut self, directory: libc::c_int, name: &CStr) -> Result<(), Errno> {
        if matches!(name.to_bytes(), b"." | b"..") {
            return Ok(());
        }
        self.entries += 1;
        let wanted = self.options.entry_name.as_bytes();
        let is_named = wanted.is_empty() || name.to_bytes().windows(wanted.len()).any(|part| part == wanted);
        let is_match = match self.options.looks_up() {
            true => self.looked_up(directory, name)?,
            false => true,
        };
        self.matches += u64::from(is_named && is_match);
        Ok(())
    }

    /// Looks an entry up. Returns whether it has the size and the time that are asked for.
    fn looked_up(&self, directory: libc::c_int, name: &CStr) -> Result<bool, Errno> {
        let mut found = MaybeUninit::<libc::statx>::uninit();
        // SAFETY: the name ends with a zero, and the result has room for the structure.
        let result = unsafe {
            iolite_os::by_number::statx(
                directory,
                name.as_ptr(),
                libc::AT_SYMLINK_NOFOLLOW,
                libc::STATX_BASIC_STATS,
                found.as_mut_ptr(),
            )
        };
        match result {
            0 => {}
            // It was removed since it was listed.
            _ if Errno::last() == Errno(libc::ENOENT) => return Ok(false),
            _ => return Err(Errno::last()),
        }
        // SAFETY: the call has filled it.
        let found = unsafe { found.assume_init() };
        let is_file = u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG;
        let has_size = self.options.entry_size == 0 || (is_file && found.stx_size == self.options.entry_size);
        let changed = (found.stx_mtime.tv_sec, i64::from(found.stx_mtime.tv_nsec));
        Ok(has_size && self.since.is_none_or(|since| changed > since))
    }

    /// The bytes of the next entries; 0 = there are no more.
    fn next_entries(&mut self, directory: libc::c_int) -> Result<usize, Errno> {
        // SAFETY: the buffer has this many bytes.
        let bytes =
            unsafe { libc::syscall(libc::SYS_getdents64, directory, self.buffer.as_mut_ptr(), BUFFER) };
        usize::try_from(bytes).map_err(|_| Errno::last())
    }
}

impl Act for DirRead {
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        // SAFETY: the name ends with a zero.
        let descriptor =
            unsafe { libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) };
        if descriptor < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the descriptor was opened here, and nobody else has it.
        let directory = unsafe { OwnedFd::from_raw_fd(descriptor) };
        loop {
            let bytes = self.next_entries(directory.as_raw_fd())?;
            if bytes == 0 {
                return Ok(length);
            }
            let buffer = std::mem::take(&mut self.buffer);
            let counted =
                entries(&buffer, bytes).try_for_each(|name| self.count(directory.as_raw_fd(), name));
            self.buffer = buffer;
            counted?;
        }
    }

    fn remark(&self) -> Option<String> {
        let filter = &self.options;
        let is_filtered =
            !filter.entry_name.is_empty() || filter.entry_size > 0 || !filter.entry_newer.is_empty();
        let matches = if is_filtered { format!(", {} of them match", self.matches) } else { String::new() };
        Some(format!("dirread: {} entries{matches}", self.entries))
    }
}

/// The names of the entries in a buffer of which this many bytes are filled.
fn entries(buffer: &[u64], filled: usize) -> impl Iterator<Item = &CStr> {
    // SAFETY: any words are bytes.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), size_of_val(buffer)) };
    let mut rest = &bytes[..filled.min(bytes.len())];
    std::iter::from_fn(move || {
        let length = u16::from_ne_bytes(rest.get(LENGTH_AT..LENGTH_AT + 2)?.try_into().ok()?);
        let (entry, others) = rest.split_at_checked(usize::from(length).max(NAME_AT))?;
        rest = others;
        CStr::from_bytes_until_nul(&entry[NAME_AT..]).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn entries_are_counted_and_compared() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("since"), "").unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
        std::fs::File::options().write(true).open(path("since")).unwrap().set_modified(old).unwrap();
        let list = path("list");
        std::fs::create_dir(&list).unwrap();
        // More than one call returns.
        for number in 0..2000 {
            let size = if number % 2 == 0 { 3901 } else { 10 };
            std::fs::write(list.join(format!("file.with.a.longer.name.{number:04}")), vec![0; size]).unwrap();
        }
        let name = CString::new(list.to_str().unwrap()).unwrap();
        let counted = |change: &dyn Fn(&mut DirReadOptions)| {
            let mut options = DirReadOptions::default();
            change(&mut options);
            let mut engine = DirRead::new(&options).unwrap();
            assert_eq!(engine.act(&name, 77), Ok(77));
            (engine.entries, engine.matches)
        };
        assert_eq!(counted(&|_| ()), (2000, 2000));
        assert_eq!(counted(&|options| options.entry_size = 3901), (2000, 1000));
        assert_eq!(counted(&|options| options.entry_name = "19".into()), (2000, 139));
        assert_eq!(
            counted(&|options| options.entry_newer = path("since").display().to_string()),
            (2000, 2000)
        );
        let newest = list.join("file.with.a.longer.name.1999").display().to_string();
        assert!(counted(&|options| options.entry_newer.clone_from(&newest)).1 < 2000);
        let missing = DirReadOptions { entry_newer: "/none/such".into(), ..DirReadOptions::default() };
        assert!(DirRead::new(&missing).is_err());
    }
}
