//! The expected content of a block.

/// Where a block was read, and which writes are valid there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected<'a> {
    /// Where the block was read: the offset in the file, in bytes.
    pub offset: u64,
    /// The writes whose data is valid here, the latest first. Empty: the writer of the block is unknown, and any
    /// write to this place is valid.
    pub writes: &'a [Write],
}

/// The known properties of a write. `None` matches any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// Its number in its job, from 0.
    pub sequence: Option<u64>,
    /// The seed of its content.
    pub seed: Option<u64>,
    /// The number of its job in headers.
    pub job: Option<u16>,
}
