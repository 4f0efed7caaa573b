//! An open file, and its writes that are not on stable storage yet.

use crate::NfsError;
use crate::protocol::Verifier;
use crate::v4::State;
use std::collections::VecDeque;

/// How much has been written to a file since it was opened. A mark never shrinks, so its meaning does not depend on
/// commits in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) writes: u64,
    pub(super) bytes: u64,
}

/// What the server knows of an open file.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// The server's handle.
    pub(crate) handle: Vec<u8>,
    /// The name, for messages.
    pub(crate) name: String,
    /// The state of the open file in version 4.
    pub(crate) state: State,
}

impl Opened {
    pub(crate) fn new(handle: Vec<u8>, name: String) -> Opened {
        Opened { handle, name, state: State::default() }
    }
}

/// An open file.
pub(crate) struct File {
    pub(crate) opened: Opened,
    /// The server may no longer know the file's state: open it again.
    pub(crate) is_doubtful: bool,
    /// The writes that the server has accepted.
    pub(super) noted: Mark,
    /// The writes that are on stable storage, or were given up.
    pub(super) stable: Mark,
    /// The server's verifier for the first write that is not on stable storage.
    pub(super) verifier: Option<Verifier>,
    /// The server has restarted since that write.
    pub(super) has_changed: bool,
    /// Copies of the writes from `stable` to `noted`: their offsets and their data. (Empty if no copies are kept.)
    kept: VecDeque<(u64, Box<[u8]>)>,
    /// The size of the copies in bytes.
    pub(super) kept_bytes: u64,
    /// Commits in flight.
    pub(super) commits: usize,
    /// Commits whose units wait until the data has been sent again.
    pub(super) waiting: Vec<Option<u32>>,
    /// How many bytes the server may have lost that cannot be sent again.
    pub(super) lost: u64,
}

impl File {
    pub(super) fn new(opened: Opened) -> File {
        File {
            opened,
            is_doubtful: false,
            noted: Mark::default(),
            stable: Mark::default(),
            verifier: None,
            has_changed: false,
            kept: VecDeque::new(),
            kept_bytes: 0,
            commits: 0,
            waiting: Vec::new(),
            lost: 0,
        }
    }

    /// How many bytes the server has accepted but not put on stable storage.
    pub(super) fn unstable(&self) -> u64 {
        self.noted.bytes - self.stable.bytes
    }

    /// Notes a write that is not on stable storage. Returns whether earlier writes have to be sent again.
    pub(super) fn note(
        &mut self,
        offset: u64,
        length: usize,
        kept: Option<&[u8]>,
        verifier: Verifier,
    ) -> bool {
        let is_another = self.unstable() > 0 && self.verifier != Some(verifier);
        if is_another && kept.is_none() {
            self.give_up();
        }
        if self.unstable() == 0 {
            self.verifier = Some(verifier);
        }
        self.noted.writes += 1;
        self.noted.bytes += length as u64;
        if let Some(data) = kept {
            self.kept.push_back((offset, data.into()));
            self.kept_bytes += length as u64;
            self.has_changed |= is_another;
        }
        is_another && kept.is_some()
    }

    /// Notes that the writes up to this mark are on stable storage. (This may be known already.)
    pub(super) fn is_stable(&mut self, mark: Mark) {
        while self.stable.writes < mark.writes {
            self.stable.writes += 1;
            if let Some((_, data)) = self.kept.pop_front() {
                self.kept_bytes -= data.len() as u64;
            }
        }
        self.stable.bytes = self.stable.bytes.max(mark.bytes);
        if self.unstable() == 0 {
            self.verifier = None;
        }
    }

    /// Returns the number, offset and data of the write with this number, counted since the file was opened. If this
    /// write is on stable storage already, returns the first write that is not.
    pub(super) fn copy(&self, number: u64) -> Option<(u64, u64, &[u8])> {
        let number = number.max(self.stable.writes);
        let (offset, data) = self.kept.get((number - self.stable.writes) as usize)?;
        Some((number, *offset, data))
    }

    /// Counts the data that is not on stable storage as lost.
    pub(super) fn give_up(&mut self) {
        self.lost += self.unstable();
        self.is_stable(self.noted);
        self.has_changed = false;
    }

    /// Gives up the data that is not on stable storage, and returns the error for all lost data.
    pub(super) fn lose(&mut self) -> NfsError {
        self.give_up();
        let bytes = std::mem::take(&mut self.lost);
        NfsError::MayBeLost { name: self.opened.name.clone(), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(file: &mut File, offset: u64, data: &[u8]) -> Mark {
        assert!(!file.note(offset, data.len(), Some(data), [1; 8]));
        file.noted
    }

    fn kept(file: &File) -> Vec<(u64, &[u8])> {
        file.kept.iter().map(|(offset, data)| (*offset, &data[..])).collect()
    }

    #[test]
    fn stable_writes_are_forgotten_and_later_ones_kept() {
        let mut file = File::new(Opened::new(vec![1], "f".into()));
        note(&mut file, 0, b"abcd");
        let mark = note(&mut file, 8, b"ef");
        note(&mut file, 4, b"xyz");
        file.is_stable(mark);
        assert_eq!((file.unstable(), file.kept_bytes, kept(&file)), (3, 3, vec![(4, &b"xyz"[..])]));
        assert!(file.note(0, 1, Some(b"n"), [2; 8]), "the server has restarted");
        assert_eq!((file.verifier, file.unstable()), (Some([1; 8]), 4));
    }

    #[test]
    fn each_commit_covers_the_writes_sent_before_it() {
        let mut file = File::new(Opened::new(vec![1], "f".into()));
        for at in 1..5 {
            note(&mut file, at, b"a");
        }
        let first = note(&mut file, 5, b"a");
        note(&mut file, 6, b"b");
        let second = note(&mut file, 7, b"b");
        note(&mut file, 8, b"c");
        file.is_stable(first);
        assert_eq!(kept(&file).len(), 3);
        file.is_stable(second);
        assert_eq!((kept(&file), file.unstable(), file.verifier), (vec![(8, &b"c"[..])], 1, Some([1; 8])));
        // A late answer to an earlier commit changes nothing.
        file.is_stable(first);
        assert_eq!((file.unstable(), file.copy(0)), (1, Some((7, 8, &b"c"[..]))));
        assert!(file.note(9, 1, Some(b"d"), [2; 8]), "the eighth write is sent again to a restarted server");
    }

    #[test]
    fn without_a_copy_it_is_known_how_much_may_be_lost() {
        let mut file = File::new(Opened::new(vec![1], "f".into()));
        assert!(!file.note(0, 100, None, [1; 8]) && !file.note(0, 20, None, [2; 8]));
        assert_eq!((file.lost, file.unstable(), file.verifier), (100, 20, Some([2; 8])));
        assert_eq!(file.lose(), NfsError::MayBeLost { name: "f".into(), bytes: 120 });
    }
}
