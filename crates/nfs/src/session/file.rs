//! An open file, and what of it is not on stable storage.

use crate::NfsError;
use crate::protocol::Verifier;

/// An open file.
pub(super) struct File {
    /// What the server calls it.
    pub(super) handle: Vec<u8>,
    /// What people call it.
    pub(super) name: String,
    /// Bytes that the server has taken and not put on stable storage.
    pub(super) unstable: u64,
    /// The server's verifier when it took the first of them.
    pub(super) verifier: Option<Verifier>,
    /// The server has started anew since.
    pub(super) has_changed: bool,
    /// Where each of these writes begins and how long it was, with their data one after the other.
    pub(super) kept: Vec<(u64, usize)>,
    pub(super) data: Vec<u8>,
    /// Commits in flight.
    pub(super) commits: usize,
    /// Commits whose units wait until the data has been sent again.
    pub(super) waiting: Vec<Option<u32>>,
    /// Bytes that a server may have lost, and that nobody can send again.
    pub(super) lost: u64,
}

impl File {
    pub(super) fn new(handle: Vec<u8>, name: String) -> File {
        File {
            handle,
            name,
            unstable: 0,
            verifier: None,
            has_changed: false,
            kept: Vec::new(),
            data: Vec::new(),
            commits: 0,
            waiting: Vec::new(),
            lost: 0,
        }
    }

    /// Notes a write that is not on stable storage. Whether what was written earlier has to be sent again.
    pub(super) fn note(
        &mut self,
        offset: u64,
        length: usize,
        kept: Option<&[u8]>,
        verifier: Verifier,
    ) -> bool {
        let is_another = self.unstable > 0 && self.verifier != Some(verifier);
        if is_another && kept.is_none() {
            self.lost += self.unstable;
            self.unstable = 0;
        }
        if self.unstable == 0 {
            self.verifier = Some(verifier);
        }
        self.unstable += length as u64;
        if let Some(data) = kept {
            self.kept.push((offset, length));
            self.data.extend_from_slice(data);
            self.has_changed |= is_another;
        }
        is_another && kept.is_some()
    }

    /// The first so many writes, of so many bytes, are on stable storage.
    pub(super) fn is_stable(&mut self, count: usize, bytes: u64) {
        self.unstable = self.unstable.saturating_sub(bytes);
        let count = count.min(self.kept.len());
        let kept: usize = self.kept.drain(..count).map(|(_, length)| length).sum();
        self.data.drain(..kept);
        if self.unstable == 0 {
            self.verifier = None;
        }
    }

    /// Nobody will put on stable storage what is not there.
    pub(super) fn give_up(&mut self) {
        self.lost += std::mem::take(&mut self.unstable);
        self.kept.clear();
        self.data.clear();
        self.verifier = None;
        self.has_changed = false;
    }

    /// The same, in words.
    pub(super) fn lose(&mut self) -> NfsError {
        self.give_up();
        let bytes = std::mem::take(&mut self.lost);
        NfsError::MayBeLost { name: self.name.clone(), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stable_is_forgotten_and_what_came_later_is_not() {
        let mut file = File::new(vec![1], "f".into());
        assert!(!file.note(0, 4, Some(b"abcd"), [1; 8]));
        assert!(!file.note(8, 2, Some(b"ef"), [1; 8]));
        let (mark, marked) = (file.kept.len(), file.unstable);
        assert!(!file.note(4, 3, Some(b"xyz"), [1; 8]));
        file.is_stable(mark, marked);
        assert_eq!(
            (file.unstable, file.kept.as_slice(), file.data.as_slice()),
            (3, &[(4, 3)][..], &b"xyz"[..])
        );
        assert!(file.note(0, 1, Some(b"n"), [2; 8]), "the server has started anew");
        assert_eq!((file.verifier, file.unstable), (Some([1; 8]), 4));
    }

    #[test]
    fn without_a_copy_it_is_known_how_much_may_be_lost() {
        let mut file = File::new(vec![1], "f".into());
        assert!(!file.note(0, 100, None, [1; 8]) && !file.note(0, 20, None, [2; 8]));
        assert_eq!((file.lost, file.unstable, file.verifier), (100, 20, Some([2; 8])));
        assert_eq!(file.lose(), NfsError::MayBeLost { name: "f".into(), bytes: 120 });
    }
}
