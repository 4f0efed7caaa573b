//! Values by the index of a file or a unit.

use crate::Errno;

/// A value for some of the indices from 0 on. There is room for the expected indices from the beginning; it grows if
/// others come.
#[derive(Debug)]
pub struct ByIndex<T>(Vec<Option<T>>);

impl<T> Default for ByIndex<T> {
    fn default() -> Self {
        ByIndex(Vec::new())
    }
}

impl<T> ByIndex<T> {
    /// No values, and room for this many.
    pub fn with_room(count: usize) -> Self {
        ByIndex((0..count).map(|_| None).collect())
    }

    /// Sets the value of an index.
    pub fn set(&mut self, index: u32, value: T) {
        let index = index as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(value);
    }

    /// The value of an index.
    pub fn get(&self, index: u32) -> Option<&T> {
        self.0.get(index as usize)?.as_ref()
    }

    /// The value of an index, to be changed.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.0.get_mut(index as usize)?.as_mut()
    }

    /// The value of an open file.
    ///
    /// # Errors
    /// The file with this index is not open (`EBADF`).
    pub fn of_open(&self, index: u32) -> Result<&T, Errno> {
        self.get(index).ok_or(Errno(libc::EBADF))
    }

    /// Removes the value of an index, and returns it.
    pub fn take(&mut self, index: u32) -> Option<T> {
        self.0.get_mut(index as usize)?.take()
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// All indices with a value are below this.
    pub fn room(&self) -> u32 {
        self.0.len() as u32
    }

    /// All values, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    /// All values, in the order of their indices, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }
}

/// Why units have failed, in the words of the server or the library.
pub type Reasons = ByIndex<Box<str>>;

impl Reasons {
    /// Notes why a unit has failed.
    pub fn note(&mut self, unit: u32, words: &str) {
        self.set(unit, words.into());
    }

    /// As [`Engine::explain`](crate::Engine::explain).
    pub fn explain(&self, unit: u32) -> Option<String> {
        self.get(unit).map(|words| words.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_index_also_beyond_the_expected_room() {
        let mut values = ByIndex::with_room(2);
        values.set(1, 'b');
        values.set(5, 'f');
        assert_eq!(
            (values.get(0), values.get(1), values.get(5), values.get(9)),
            (None, Some(&'b'), Some(&'f'), None)
        );
        assert_eq!(values.of_open(0), Err(Errno(libc::EBADF)));
        assert_eq!(values.iter().collect::<String>(), "bf");
        assert_eq!((values.take(1), values.take(1), values.take(99)), (Some('b'), None, None));
    }

    #[test]
    fn the_last_reason_of_a_unit_counts() {
        let mut reasons = Reasons::default();
        reasons.note(3, "gone");
        reasons.note(3, "refused");
        assert_eq!((reasons.explain(3), reasons.explain(0)), (Some("refused".to_owned()), None));
    }
}
