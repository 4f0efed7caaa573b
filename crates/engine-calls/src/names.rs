//! The common part of the engines that act on names: they get the names when files are opened, and perform one action
//! on the name of each unit, in the call or through io_uring (`ring`). A job of millions of files that has one open at a
//! time (`openfiles=1`) keeps one name.

mod ring;

pub(crate) use ring::{HERE, open};
pub use ring::{RingAct, RingNameEngine};

use iolite_engine::{Engine, EngineConfig, Errno, FileSpec, OpenMode, Outcome, Queued, Unit};
use iolite_types::Operation;
use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// The action of an engine on a name.
pub trait Act {
    /// Performs the action. `length`: the bytes of the file, and those that the unit counts as, which is the answer.
    ///
    /// # Errors
    /// A system call fails.
    fn act(&mut self, name: &CStr, length: u64) -> Outcome;

    /// A line about what was found, for the end of the run.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// An engine whose units perform one action on a name, in the call, whatever their direction.
#[derive(Debug)]
pub struct NameEngine<A> {
    names: NameTable,
    act: A,
}

impl<A: Act> NameEngine<A> {
    /// An engine without names.
    pub fn with(act: A, config: &EngineConfig) -> Self {
        NameEngine { names: NameTable::new(config.files), act }
    }
}

impl<A: Act> Engine for NameEngine<A> {
    const SYNCHRONOUS: bool = true;

    fn open(&mut self, index: u32, spec: &FileSpec, _mode: OpenMode) -> io::Result<()> {
        self.names.tell(index, spec.path.as_os_str().as_bytes())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        self.names.forget_last(index);
        Ok(())
    }

    #[inline]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        Queued::Completed(match unit.operation {
            Operation::Read | Operation::Write | Operation::Trim => match self.names.of(unit.file) {
                Some(name) => self.act.act(name, unit.length),
                None => Err(Errno(libc::EBADF)),
            },
            // No open file could be synced.
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange | Operation::Work => {
                Err(Errno(libc::EINVAL))
            }
        })
    }

    fn remarks(&mut self) -> Vec<String> {
        self.act.remark().into_iter().collect()
    }
}

/// Names by their index in the worker's list, one after the other in one allocation: a job may have millions.
///
/// A name is kept when its file is closed, because a reopened file has the same name, unless it is the last one.
#[derive(Debug)]
pub(crate) struct NameTable {
    /// The names, each with a zero at its end.
    text: Vec<u8>,
    /// The start of each name.
    starts: Vec<u32>,
}

/// The start of an unknown name.
const UNTOLD: u32 = u32::MAX;

impl NameTable {
    pub fn new(files: usize) -> NameTable {
        NameTable { text: Vec::new(), starts: vec![UNTOLD; files] }
    }

    /// Remembers the name of a file.
    ///
    /// # Errors
    /// The name contains a zero (`EINVAL`), or all names together exceed 4 GiB (`ENOMEM`).
    pub(crate) fn tell(&mut self, index: u32, name: &[u8]) -> io::Result<()> {
        let slot = index as usize;
        if slot >= self.starts.len() {
            self.starts.resize(slot + 1, UNTOLD);
        }
        if self.of(index).is_some_and(|known| known.to_bytes() == name) {
            return Ok(());
        }
        if name.contains(&0) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let start = u32::try_from(self.text.len()).ok().filter(|&start| start != UNTOLD);
        self.starts[slot] = start.ok_or(io::Error::from_raw_os_error(libc::ENOMEM))?;
        self.text.extend_from_slice(name);
        self.text.push(0);
        Ok(())
    }

    /// Forgets a name if it is the last one in memory.
    fn forget_last(&mut self, index: u32) {
        let Some(length) = self.of(index).map(|name| name.count_bytes() + 1) else { return };
        let start = self.starts[index as usize];
        if start as usize + length == self.text.len() {
            self.text.truncate(start as usize);
            self.starts[index as usize] = UNTOLD;
        }
    }

    /// The name of a file, if it is known.
    #[inline]
    pub(crate) fn of(&self, index: u32) -> Option<&CStr> {
        let start = *self.starts.get(index as usize)?;
        CStr::from_bytes_until_nul(self.text.get(start as usize..)?).ok()
    }
}

/// The outcome of a unit of this length whose system call returned 0, or -1 for an error.
#[inline]
pub(crate) fn answer(result: libc::c_int, length: u64) -> Outcome {
    if result == 0 { Ok(length) } else { Err(Errno::last()) }
}

/// The last component of a name.
pub(crate) fn last_of(name: &CStr) -> &[u8] {
    let bytes = name.to_bytes();
    bytes.iter().rposition(|&byte| byte == b'/').map_or(bytes, |slash| &bytes[slash + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once() {
        let mut names = NameTable::new(2);
        names.tell(0, b"a").unwrap();
        names.tell(1, b"directory/b").unwrap();
        names.tell(5, b"c").unwrap();
        assert_eq!(names.of(0), Some(c"a"));
        assert_eq!(names.of(1), Some(c"directory/b"));
        assert_eq!((names.of(4), names.of(5), names.of(6)), (None, Some(c"c"), None));
        let size = names.text.len();
        (0..100).for_each(|_| names.tell(1, b"directory/b").unwrap());
        assert_eq!(names.text.len(), size, "a file that is opened again has the name that it had");
        names.tell(1, b"d").unwrap();
        assert_eq!(names.of(1), Some(c"d"));
        let size = names.text.len();
        names.forget_last(5);
        assert_eq!((names.of(5), names.text.len()), (Some(c"c"), size), "others follow");
        names.forget_last(1);
        assert_eq!((names.of(1), names.text.len()), (None, size - 2));
        (0..100).for_each(|_| {
            names.tell(1, b"e").unwrap();
            names.forget_last(1);
        });
        assert_eq!((names.of(5), names.text.len()), (Some(c"c"), size - 2));
        assert_eq!(names.tell(0, b"x\0y").unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
