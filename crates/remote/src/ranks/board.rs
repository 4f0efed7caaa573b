//! The ranks' shared board.

/// Words that all ranks can read.
pub trait Board {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;
    /// The number of ranks.
    fn size(&self) -> u32;
    /// Writes a value, which others can read after the next [`Board::fence`].
    ///
    /// # Errors
    /// The launcher reports an error.
    fn put(&mut self, key: &str, words: &str) -> Result<(), String>;
    /// Waits until all ranks are here.
    ///
    /// # Errors
    /// The launcher reports an error.
    fn fence(&mut self) -> Result<(), String>;
    /// Reads a value that a rank has written.
    ///
    /// # Errors
    /// It has written nothing, or the launcher reports an error.
    fn get(&mut self, rank: u32, key: &str) -> Result<String, String>;
}
