//! What a buffer holds when it is written: random data, zeros, a pattern.

/// One piece of a pattern; the pieces repeat until the buffer is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternPiece {
    /// These bytes as they are.
    Bytes(Vec<u8>),
    /// The offset of the block in its file: 64 bits, little endian.
    Offset,
}

/// How buffers are filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What is in them.
    pub fill: Fill,
    /// Fill anew before every write (`refill_buffers`) rather than once.
    pub refill: bool,
    /// Where they are not refilled: change them a little before every write, so that no two writes carry the
    /// same data (`scramble_buffers`).
    pub scramble: bool,
    /// Seed of all random content of this worker.
    pub seed: u64,
}

/// What is in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Zeros.
    Zeros,
    /// Random bytes.
    Random,
    /// A repeated pattern.
    Pattern(Vec<PatternPiece>),
}
